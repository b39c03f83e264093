import WireBytes

/// Bounds of a message body besides its own length, checked at the byte that crosses them.
public enum HTTPBodyLimits {
    /// Default bound of a body, in bytes. Forms and JSON answers are far smaller; uploads set their own.
    public static let maxBodyBytes = 1024 * 1024
    /// Size and extensions of one chunk, in bytes without CRLF. No known sender needs more than a signature.
    public static let maxChunkLineBytes = 256
    /// Extensions of all chunks of a body, in bytes: one-byte chunks with long extensions would be much input for
    /// little content. Source: RFC 9112 §7.1.1, "a recipient … should limit the total length of chunk extensions".
    public static let maxChunkExtensionBytes = 4096
    /// The trailer section with its line ends, in bytes. Digests and timings fit many times.
    public static let maxTrailerBytes = 4096
}

/// How the end of a body is known.
///
/// Source: RFC 9112 §6.3.
public enum HTTPBodyFraming: Equatable, Sendable {
    case none
    case length(Int)
    case chunked
    /// Responses only.
    case untilClose

    /// The framing of a request's body.
    ///
    /// Stricter than the RFC, which lets a server pick one of two lengths and pass the message on: here every doubt is
    /// an error, so that no other server on the way can read the message differently.
    public init(request head: HTTPRequestHead) throws(HTTPProtocolError) {
        if try Self.isChunked(head.headers, version: head.version) {
            self = .chunked
        } else {
            let length = try Self.contentLength(head.headers) ?? 0
            self = length == 0 ? .none : .length(length)
        }
    }

    /// The framing of a final response's body.
    ///
    /// - Parameter method: of the request that is answered.
    public init(response head: HTTPResponseHead, to method: String) throws(HTTPProtocolError) {
        if method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304 {
            self = .none
        } else if try Self.isChunked(head.headers, version: head.version) {
            self = .chunked
        } else if let length = try Self.contentLength(head.headers) {
            self = length == 0 ? .none : .length(length)
        } else {
            self = .untilClose
        }
    }

    /// Source: RFC 9112 §6.1, §6.3 (items 3 and 4).
    private static func isChunked(_ headers: HTTPHeaders, version: HTTPVersion) throws(HTTPProtocolError) -> Bool {
        let fields = headers.all("Transfer-Encoding")
        guard let field = fields.first else { return false }
        guard version >= .http11, fields.count == 1, headers.first("Content-Length") == nil else {
            throw .ambiguousBodyLength
        }
        if ASCII.equalsIgnoringCase(field, "chunked") { return true }
        let codings = headers.listItems("Transfer-Encoding")
        // Without chunked at the end the body's end is unknown; with it, the body is still in an unsupported coding.
        guard codings.count > 1, let last = codings.last, ASCII.equalsIgnoringCase(last, "chunked"),
            !codings.dropLast().contains(where: { ASCII.equalsIgnoringCase($0, "chunked") })
        else { throw .ambiguousBodyLength }
        throw .unsupportedTransferCoding
    }

    /// Source: RFC 9112 §6.2, §6.3 (item 5).
    private static func contentLength(_ headers: HTTPHeaders) throws(HTTPProtocolError) -> Int? {
        let fields = headers.all("Content-Length")
        guard let field = fields.first else { return nil }
        guard fields.count == 1, let length = ASCII.decimal(field.utf8) else { throw .ambiguousBodyLength }
        return length
    }
}

/// Finds the parts of one body in bytes as they come, and its end.
///
/// Source: RFC 9112 §6, §7.1.
public struct HTTPBodyDecoder: Sendable {
    public enum Step: Equatable, Sendable {
        /// All bytes fed were taken; none of them belongs to the content, or the content is yet to come.
        case needMoreData
        /// These of the bytes fed last are content. Feed again what comes after them.
        case part(Range<Int>)
        /// `consumed` bytes of those fed last belong to the body; the rest are the next message.
        case end(consumed: Int)
    }

    private enum State {
        case length(left: Int)
        case untilClose
        case chunkSize(digits: Int, size: Int)
        case chunkExtension(size: Int)
        case chunkLineFeed(size: Int)
        case chunkData(left: Int)
        case chunkDataCR
        case chunkDataLF
        case trailers
        case ended
    }

    private var state: State
    private let maxBytes: Int
    /// Content bytes so far, and those of the chunk that was announced.
    private var total = 0
    private var lineBytes = 0
    private var extensionBytes = 0
    private var trailerBytes: [UInt8] = []
    private var trailerLineStart = 0

    /// - Parameter maxBytes: content beyond it is an error, as soon as it is announced.
    public init(_ framing: HTTPBodyFraming, maxBytes: Int = HTTPBodyLimits.maxBodyBytes) throws(HTTPProtocolError) {
        self.maxBytes = maxBytes
        switch framing {
        case .none: state = .length(left: 0)
        case .length(let length):
            guard length <= maxBytes else { throw .bodyTooLarge(limit: maxBytes) }
            state = .length(left: length)
        case .chunked: state = .chunkSize(digits: 0, size: 0)
        case .untilClose: state = .untilClose
        }
    }

    /// Whether the end of the connection would end the body as it should.
    public var mayEndHere: Bool {
        switch state {
        case .untilClose, .ended, .length(left: 0): true
        default: false
        }
    }

    public mutating func bytesReceived(_ bytes: UnsafeRawBufferPointer) throws(HTTPProtocolError) -> Step {
        var index = 0
        while true {
            switch state {
            case .ended: return .end(consumed: index)
            case .length(let left):
                guard left > 0 else {
                    state = .ended
                    continue
                }
                guard index < bytes.count else { return .needMoreData }
                let taken = min(left, bytes.count - index)
                state = .length(left: left - taken)
                return .part(index..<(index + taken))
            case .untilClose:
                guard index < bytes.count else { return .needMoreData }
                try count(bytes.count - index)
                return .part(index..<bytes.count)
            case .chunkData(let left):
                guard left > 0 else {
                    state = .chunkDataCR
                    continue
                }
                guard index < bytes.count else { return .needMoreData }
                let taken = min(left, bytes.count - index)
                state = .chunkData(left: left - taken)
                return .part(index..<(index + taken))
            case .chunkSize, .chunkExtension, .chunkLineFeed, .chunkDataCR, .chunkDataLF, .trailers:
                guard index < bytes.count else { return .needMoreData }
                try take(bytes[index])
                index += 1
            }
        }
    }

    private mutating func count(_ more: Int) throws(HTTPProtocolError) {
        guard more <= maxBytes - total else { throw .bodyTooLarge(limit: maxBytes) }
        total += more
    }

    // MARK: - Chunks

    /// Source: RFC 9112 §7.1. Deviation: no white space before the first semicolon, where the RFC allows "bad" white
    /// space; its only senders are attackers that probe for the end of a size.
    private mutating func take(_ byte: UInt8) throws(HTTPProtocolError) {
        switch state {
        case .chunkSize(let digits, let size):
            try countLineByte(byte)
            if ASCII.isHexDigit(byte) {
                // Fifteen digits are 60 bits: the sum cannot overflow.
                guard digits < 15 else { throw .malformedChunk }
                let value = ASCII.isDigit(byte) ? byte &- UInt8(ascii: "0") : (byte | 0x20) &- UInt8(ascii: "a") &+ 10
                state = .chunkSize(digits: digits + 1, size: size << 4 | Int(value))
            } else if digits > 0, byte == UInt8(ascii: ";") {
                state = .chunkExtension(size: size)
            } else if digits > 0, byte == UInt8(ascii: "\r") {
                state = .chunkLineFeed(size: size)
            } else {
                throw .malformedChunk
            }
        case .chunkExtension(let size):
            if byte == UInt8(ascii: "\r") {
                state = .chunkLineFeed(size: size)
            } else {
                try countLineByte(byte)
                extensionBytes += 1
                guard extensionBytes <= HTTPBodyLimits.maxChunkExtensionBytes else {
                    throw .chunkExtensionsTooLong(limit: HTTPBodyLimits.maxChunkExtensionBytes)
                }
                guard HTTPFieldLine.isFieldByte(byte) else { throw .malformedChunk }
            }
        case .chunkLineFeed(let size):
            guard byte == UInt8(ascii: "\n") else { throw .malformedChunk }
            lineBytes = 0
            try count(size)
            state = size == 0 ? .trailers : .chunkData(left: size)
        case .chunkDataCR:
            guard byte == UInt8(ascii: "\r") else { throw .malformedChunk }
            state = .chunkDataLF
        case .chunkDataLF:
            guard byte == UInt8(ascii: "\n") else { throw .malformedChunk }
            state = .chunkSize(digits: 0, size: 0)
        case .trailers: try takeTrailer(byte)
        case .length, .untilClose, .chunkData, .ended: break
        }
    }

    private mutating func countLineByte(_ byte: UInt8) throws(HTTPProtocolError) {
        guard byte != UInt8(ascii: "\r") else { return }
        lineBytes += 1
        guard lineBytes <= HTTPBodyLimits.maxChunkLineBytes else {
            throw .chunkLineTooLong(limit: HTTPBodyLimits.maxChunkLineBytes)
        }
    }

    // MARK: - Trailers

    /// Fields that a trailer must not have, because they frame, route or authorise the message that it ends.
    ///
    /// Source: RFC 9110 §6.5.1.
    static let forbiddenTrailers = [
        "Transfer-Encoding", "Content-Length", "Host", "Connection", "Content-Encoding", "Content-Type",
        "Content-Range",
        "Trailer", "Authorization", "Cookie", "Set-Cookie", "Expect", "TE", "Upgrade",
    ]

    /// Checks a byte of the trailer section, whose fields are not passed on.
    private mutating func takeTrailer(_ byte: UInt8) throws(HTTPProtocolError) {
        guard trailerBytes.count < HTTPBodyLimits.maxTrailerBytes else {
            throw .trailersTooLarge(limit: HTTPBodyLimits.maxTrailerBytes)
        }
        let previous = trailerBytes.count > trailerLineStart ? trailerBytes.last : nil
        trailerBytes.append(byte)
        guard byte == UInt8(ascii: "\n") else {
            if previous == UInt8(ascii: "\r") { throw .lineEndingNotCRLF }
            return
        }
        guard previous == UInt8(ascii: "\r") else { throw .lineEndingNotCRLF }
        let line = trailerBytes[trailerLineStart..<(trailerBytes.count - 2)]
        trailerLineStart = trailerBytes.count
        guard !line.isEmpty else {
            state = .ended
            return
        }
        let field = try HTTPFieldLine.parse(line)
        guard !Self.forbiddenTrailers.contains(where: { ASCII.equalsIgnoringCase($0, field.name) }) else {
            throw .forbiddenTrailer
        }
    }
}
