import HTTPProtocol
import WireBytes

/// The opening handshake of a client: request bytes out, response bytes in.
///
/// Source: RFC 6455 §4.1, §4.2.2.
public struct WebSocketClientHandshake: Sendable {
    public enum Outcome: Equatable, Sendable {
        case needMoreData
        /// `consumed` bytes of those fed last belong to the response; the rest are frames. `subprotocol` is one of those
        /// offered, or nil when the server chose none.
        case accepted(subprotocol: String?, consumed: Int)
        case refused(WebSocketRefusal)
    }

    /// Interim answers (100, 103) that are skipped before the final one. None is useful here; proxies send one or two.
    public static let maxInterimResponses = 4

    /// Headers that carry the handshake, or frame a body, and so cannot come from a configuration.
    private static let reservedHeaders = [
        "Host", "Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Accept",
        "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions", "Content-Length", "Transfer-Encoding",
    ]

    private let head: HTTPRequestHead
    private let subprotocols: [String]
    private let expectedAccept: String
    private let offer: WebSocketCompression?
    /// The agreed compression, once the outcome is `.accepted`; nil without compression.
    public private(set) var compression: WebSocketCompression?
    private var decoder = HTTPHeadDecoder(.response)
    private var interimCount = 0
    private var finished: Outcome?

    /// - Parameters:
    ///   - headers: sent besides the handshake's own; a `User-Agent` among them replaces `userAgent`.
    ///   - subprotocols: offered in this order.
    ///   - userAgent: sent when not empty.
    ///   - compression: offered to the server; nil for none.
    ///   - nonce: 16 random bytes, new for each connection.
    public init(
        url: HTTPURL, headers: [(name: String, value: String)] = [], subprotocols: [String] = [],
        userAgent: String = "", compression: WebSocketCompression? = nil, nonce: [UInt8]
    ) throws(WebSocketHandshakeError) {
        guard nonce.count == WebSocketHandshakeKey.nonceByteCount else { throw .invalidNonce }
        let key = Base64.encode(nonce)
        var fields = HTTPHeaders([
            ("Host", url.hostHeader), ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Key", key),
            ("Sec-WebSocket-Version", "13"),
        ])
        for (index, name) in subprotocols.enumerated() {
            guard ASCII.isToken(name), !subprotocols[..<index].contains(name) else { throw .invalidSubprotocol(name) }
        }
        if !subprotocols.isEmpty {
            fields.append(name: "Sec-WebSocket-Protocol", value: subprotocols.joined(separator: ", "))
        }
        if let compression { fields.append(name: "Sec-WebSocket-Extensions", value: compression.offer) }
        for (name, value) in headers {
            guard ASCII.isToken(name), HTTPHeaders.isValidValue(value) else { throw .invalidHeader(name) }
            guard !Self.reservedHeaders.contains(where: { ASCII.equalsIgnoringCase($0, name) }) else {
                throw .reservedHeader(name)
            }
            fields.append(name: name, value: value)
        }
        if !userAgent.isEmpty, fields.first("User-Agent") == nil {
            guard HTTPHeaders.isValidValue(userAgent) else { throw .invalidHeader("User-Agent") }
            fields.append(name: "User-Agent", value: userAgent)
        }
        head = HTTPRequestHead(method: "GET", target: url.pathAndQuery, headers: fields)
        self.subprotocols = subprotocols
        offer = compression
        expectedAccept = WebSocketHandshakeKey.accept(for: key)
    }

    /// Writes the request. Everything in it was checked when the handshake was made.
    public func request(into out: inout ByteWriter) {
        do throws(HTTPProtocolError) {
            try head.serialize(into: &out)
        } catch {
            assertionFailure(error.sentence)
        }
    }

    /// Feeds bytes from the server. After an outcome other than `.needMoreData` the handshake is over and repeats it.
    public mutating func bytesReceived(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        if let finished { return finished }
        var offset = 0
        while true {
            let step: HTTPHeadDecoder.Step
            do throws(HTTPProtocolError) {
                step = try decoder.bytesReceived(UnsafeRawBufferPointer(rebasing: bytes[offset...]))
            } catch {
                return finish(.refused(.malformed(error.sentence)))
            }
            guard case .response(let response, let consumed) = step else { return .needMoreData }
            offset += consumed
            if (100...199).contains(response.status), response.status != 101, interimCount < Self.maxInterimResponses {
                interimCount += 1
                decoder = HTTPHeadDecoder(.response)
                continue
            }
            do throws(WebSocketRefusal) {
                let subprotocol = try judge(response)
                compression = try judgeExtensions(response.headers)
                return finish(.accepted(subprotocol: subprotocol, consumed: offset))
            } catch {
                return finish(.refused(error))
            }
        }
    }

    private mutating func finish(_ outcome: Outcome) -> Outcome {
        finished = outcome
        return outcome
    }

    /// The subprotocol of a response that opens a WebSocket.
    private func judge(_ response: HTTPResponseHead) throws(WebSocketRefusal) -> String? {
        let headers = response.headers
        let location = headers.first("Location")
        guard response.status == 101 else {
            if [301, 302, 303, 307, 308].contains(response.status), let location {
                throw .redirect(response.status, location: location)
            }
            throw .status(
                response.status, reason: response.reason, retryAfter: headers.first("Retry-After"), location: location)
        }
        guard response.version >= .http11 else { throw .notWebSocket("it is HTTP/1.0") }
        guard headers.contains(token: "websocket", in: "Upgrade") else {
            throw .notWebSocket("the Upgrade header is not websocket")
        }
        guard headers.contains(token: "upgrade", in: "Connection") else {
            throw .notWebSocket("the Connection header has no upgrade")
        }
        guard headers.all("Sec-WebSocket-Accept") == [expectedAccept] else {
            throw .notWebSocket("Sec-WebSocket-Accept does not fit our key")
        }
        let chosen = headers.all("Sec-WebSocket-Protocol")
        guard let subprotocol = chosen.first else { return nil }
        guard chosen.count == 1, subprotocols.contains(subprotocol) else {
            throw .subprotocolNotOffered(chosen.joined(separator: ", "))
        }
        return subprotocol
    }

    /// The agreed compression, or nil when the server chose none.
    private func judgeExtensions(_ headers: HTTPHeaders) throws(WebSocketRefusal) -> WebSocketCompression? {
        guard let chosen = WebSocketExtension.parse(headers.all("Sec-WebSocket-Extensions")) else {
            throw .notWebSocket("Sec-WebSocket-Extensions is malformed")
        }
        if let other = chosen.first(where: { offer == nil || $0.name != WebSocketCompression.name }) {
            throw .extensionNotOffered(other.name)
        }
        guard let offer, let answer = chosen.first else { return nil }
        guard chosen.count == 1 else { throw .compressionNotAsOffered("it is there twice") }
        return try offer.agreement(withAnswer: answer)
    }
}
