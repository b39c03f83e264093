import WireBytes

/// How an outgoing body is delimited.
public enum HTTPOutgoingBody: Equatable, Sendable {
    case none
    /// Exactly this many bytes will follow.
    case length(Int)
    /// Of unknown length: chunked, or until the end of the connection for HTTP/1.0.
    case stream
}

/// Writes one body and holds it to its announced length.
///
/// Source: RFC 9112 §6.2, §7.1.
struct HTTPBodyWriter {
    enum Framing: Equatable {
        /// Nothing is sent: there is no body, or the answer is to HEAD. Its bytes are dropped.
        case suppressed
        case length(left: Int)
        case chunked
        case untilClose
    }

    private(set) var framing: Framing

    init(_ framing: Framing) { self.framing = framing }

    mutating func append(_ bytes: UnsafeRawBufferPointer, into out: inout ByteWriter) throws(HTTPProtocolError) {
        guard bytes.count > 0 else { return }
        switch framing {
        case .suppressed: break
        case .length(let left):
            guard bytes.count <= left else { throw .misuse("the body is longer than announced") }
            framing = .length(left: left - bytes.count)
            out.append(bytes)
        case .chunked:
            out.append(String(bytes.count, radix: 16))
            out.append("\r\n")
            out.append(bytes)
            out.append("\r\n")
        case .untilClose: out.append(bytes)
        }
    }

    /// Ends the body.
    func finish(into out: inout ByteWriter) throws(HTTPProtocolError) {
        switch framing {
        case .suppressed, .untilClose: break
        case .length(let left): guard left == 0 else { throw .misuse("the body is shorter than announced") }
        case .chunked: out.append("0\r\n\r\n")
        }
    }
}

extension HTTPHeaders {
    /// Fields that frame a message: a connection writes them, not its caller.
    ///
    /// Source: RFC 9112 §6, §9.6.
    func checkUnframed() throws(HTTPProtocolError) {
        for name in ["Content-Length", "Transfer-Encoding", "Connection", "Trailer"] where first(name) != nil {
            throw .misuse("\(name) is the connection's business")
        }
    }
}
