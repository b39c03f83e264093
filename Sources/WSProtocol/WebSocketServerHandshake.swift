import HTTPProtocol
import WireBytes

/// The opening handshake of a server: request bytes in, response bytes out.
///
/// Feed bytes until the outcome is other than `.needMoreData`; on `.accept`, look at the request (path, Origin, token) and
/// then write either ``accept(subprotocol:into:)`` or ``refuse(status:reason:headers:body:into:)``.
///
/// Source: RFC 6455 §4.2.
public struct WebSocketServerHandshake: Sendable {
    public enum Outcome: Equatable, Sendable {
        case needMoreData
        /// A WebSocket request that may be accepted. `consumed` bytes of those fed last belong to it; `subprotocols` are
        /// those offered, the client's favourite first.
        case accept(request: HTTPRequestHead, subprotocols: [String], consumed: Int)
        /// A well-formed HTTP request that asks for no WebSocket; the owner may serve a page.
        case plainHTTP(HTTPRequestHead, consumed: Int)
        /// Write these bytes, then end the transport. `why` is for the log.
        case refused(response: [UInt8], why: String)
    }

    private var decoder = HTTPHeadDecoder(.request)
    private var finished: Outcome?
    private var key: String?
    private let offered: WebSocketCompression?
    private var answer: (text: String, agreement: WebSocketCompression)?

    /// - Parameter compression: the server's own parameters; nil for no compression.
    public init(compression: WebSocketCompression? = nil) { offered = compression }

    /// The agreed compression, when the request is accepted; nil without.
    public var compression: WebSocketCompression? { answer?.agreement }

    /// Feeds bytes from the client. After an outcome other than `.needMoreData` the handshake repeats it.
    public mutating func bytesReceived(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        if let finished { return finished }
        let outcome: Outcome
        do throws(HTTPProtocolError) {
            guard case .request(let request, let consumed) = try decoder.bytesReceived(bytes) else {
                return .needMoreData
            }
            outcome = judge(request, consumed: consumed)
        } catch {
            outcome = Self.refusal(status: error.statusHint, why: error.sentence)
        }
        finished = outcome
        return outcome
    }

    private mutating func judge(_ request: HTTPRequestHead, consumed: Int) -> Outcome {
        let headers = request.headers
        guard headers.contains(token: "websocket", in: "Upgrade") else {
            return .plainHTTP(request, consumed: consumed)
        }
        guard request.method == "GET", request.version >= .http11 else {
            return Self.refusal(status: 400, why: "a WebSocket is opened with GET and HTTP/1.1")
        }
        guard headers.contains(token: "upgrade", in: "Connection") else {
            return Self.refusal(status: 400, why: "the Connection header has no upgrade")
        }
        guard headers.first("Transfer-Encoding") == nil, headers.first("Content-Length") ?? "0" == "0" else {
            return Self.refusal(status: 400, why: "a WebSocket request has no body")
        }
        guard headers.all("Sec-WebSocket-Version") == ["13"] else {
            return Self.refusal(
                status: 426, why: "the WebSocket version is not 13",
                headers: [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")])
        }
        let keys = headers.all("Sec-WebSocket-Key")
        guard keys.count == 1, let key = keys.first,
            Base64.decode(key)?.count == WebSocketHandshakeKey.nonceByteCount
        else { return Self.refusal(status: 400, why: "Sec-WebSocket-Key is not 16 bytes in base64") }
        let subprotocols = headers.listItems("Sec-WebSocket-Protocol")
        guard subprotocols.allSatisfy({ ASCII.isToken($0) }) else {
            return Self.refusal(status: 400, why: "Sec-WebSocket-Protocol is malformed")
        }
        // A list of the wrong form fails the handshake (RFC 6455 §9.1); an offer that makes no sense is only declined.
        guard let extensions = WebSocketExtension.parse(headers.all("Sec-WebSocket-Extensions")) else {
            return Self.refusal(status: 400, why: "Sec-WebSocket-Extensions is malformed")
        }
        answer = offered?.answer(to: extensions)
        self.key = key
        return .accept(request: request, subprotocols: subprotocols, consumed: consumed)
    }

    // MARK: - Answers

    /// Writes the response that opens the WebSocket. Frames may follow at once.
    ///
    /// - Parameter subprotocol: one of those offered, or nil.
    /// - Returns: false, with nothing written, when there is no request to accept, or the subprotocol was not offered.
    public func accept(subprotocol: String? = nil, into out: inout ByteWriter) -> Bool {
        guard case .accept(_, let offered, _) = finished, let key else { return false }
        var fields = HTTPHeaders([
            ("Upgrade", "websocket"), ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", WebSocketHandshakeKey.accept(for: key)),
        ])
        if let subprotocol {
            guard offered.contains(subprotocol) else { return false }
            fields.append(name: "Sec-WebSocket-Protocol", value: subprotocol)
        }
        if let answer { fields.append(name: "Sec-WebSocket-Extensions", value: answer.text) }
        do throws(HTTPProtocolError) {
            try HTTPResponseHead(status: 101, reason: "Switching Protocols", headers: fields).serialize(into: &out)
            return true
        } catch {
            return false
        }
    }

    /// Writes a whole answer that refuses the request; the owner ends the transport after it.
    ///
    /// - Parameter body: plain text, UTF-8.
    /// - Returns: false, with nothing written, when the status, the reason or a header is invalid.
    public static func refuse(
        status: Int, reason: String, headers: [(name: String, value: String)] = [], body: String = "",
        into out: inout ByteWriter
    ) -> Bool {
        var fields = HTTPHeaders(headers)
        fields.append(name: "Connection", value: "close")
        fields.append(name: "Content-Type", value: "text/plain; charset=utf-8")
        fields.append(name: "Content-Length", value: String(body.utf8.count))
        do throws(HTTPProtocolError) {
            try HTTPResponseHead(status: status, reason: reason, headers: fields).serialize(into: &out)
        } catch {
            return false
        }
        out.append(body)
        return true
    }

    private static func refusal(
        status: Int, why: String, headers: [(name: String, value: String)] = []
    ) -> Outcome {
        let reason =
            switch status {
            case 414: "URI Too Long"
            case 426: "Upgrade Required"
            case 431: "Request Header Fields Too Large"
            case 505: "HTTP Version Not Supported"
            default: "Bad Request"
            }
        var out = ByteWriter()
        _ = refuse(status: status, reason: reason, headers: headers, body: why + "\n", into: &out)
        return .refused(response: out.take().withUnsafeBytes { Array($0) }, why: why)
    }
}
