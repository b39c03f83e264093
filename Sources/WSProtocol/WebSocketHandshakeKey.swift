import Digests
import WireBytes

/// The proof that a server understood the WebSocket request.
enum WebSocketHandshakeKey {
    /// Bytes of random that a client sends. Source: RFC 6455 §4.1.
    static let nonceByteCount = 16

    /// The `Sec-WebSocket-Accept` that answers a `Sec-WebSocket-Key`.
    ///
    /// Source: RFC 6455 §4.2.2.
    static func accept(for key: String) -> String {
        Base64.encode(SHA1.hash(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
    }
}
