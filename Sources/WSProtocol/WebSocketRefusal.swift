import HTTPProtocol

/// Why an opening handshake gave no WebSocket. Always the remote side's doing; the transport is of no further use.
public enum WebSocketRefusal: Error, Equatable, Sendable {
    /// The server answered with another status than 101. `retryAfter` is the header as it came.
    case status(Int, reason: String, retryAfter: String?, location: String?)
    /// The server answered with 301, 302, 303, 307 or 308 and a Location, which is as it came.
    case redirect(Int, location: String)
    /// A 101 that does not belong to the request, and its fault.
    case notWebSocket(String)
    /// The server chose a subprotocol that was not offered.
    case subprotocolNotOffered(String)
    /// The server chose an extension that was not offered.
    case extensionNotOffered(String)
    /// The server's permessage-deflate does not fit the offer, and why.
    case compressionNotAsOffered(String)
    /// The bytes are not an HTTP head, and why.
    case malformed(String)

    /// The reason, for an operator.
    public var sentence: String {
        switch self {
        case .status(let status, let reason, let retryAfter, _):
            "the server answered \(status)\(reason.isEmpty ? "" : " " + reason)"
                + RetryAfter.clause(retryAfter)
        case .redirect(let status, let location): "the server answered \(status) and points to \(location)"
        case .notWebSocket(let why): "the server's 101 is not a WebSocket handshake: \(why)"
        case .subprotocolNotOffered(let name): "the server chose the subprotocol \(name), which was not offered"
        case .extensionNotOffered(let name): "the server chose the extension \(name), which was not offered"
        case .compressionNotAsOffered(let why): "the server's permessage-deflate does not fit our offer: \(why)"
        case .malformed(let why): "the server's answer is not HTTP: \(why)"
        }
    }
}

/// Why a handshake request could not be made. A local fault: the configuration asks for something impossible.
public enum WebSocketHandshakeError: Error, Equatable, Sendable {
    /// The handshake sets this header itself.
    case reservedHeader(String)
    /// The name or value has a character that must not stand in a header.
    case invalidHeader(String)
    case invalidSubprotocol(String)
    case invalidNonce

    public var sentence: String {
        switch self {
        case .reservedHeader(let name): "the header \(name) is set by the handshake itself"
        case .invalidHeader(let name): "the header \(name) has a character that is not allowed"
        case .invalidSubprotocol(let name): "\"\(name)\" is not a subprotocol, or is listed twice"
        case .invalidNonce: "the nonce is not 16 bytes"
        }
    }
}
