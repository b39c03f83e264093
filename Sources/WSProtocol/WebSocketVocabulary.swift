import Digests
import WireBytes

/// The local side of a connection.
public enum WebSocketRole: Sendable, CaseIterable {
    case client, server

    /// The other side.
    public var peer: WebSocketRole { self == .client ? .server : .client }
}

/// The four bits that give a frame's kind. Unknown values are representable, so that they can be refused by name.
///
/// Source: RFC 6455 §5.2, §11.8.
public struct WebSocketOpcode: RawRepresentable, Hashable, Sendable {
    /// 0...15.
    public let rawValue: UInt8

    /// Takes the low four bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue & 0x0F }

    public static let continuation = WebSocketOpcode(rawValue: 0x0)
    public static let text = WebSocketOpcode(rawValue: 0x1)
    public static let binary = WebSocketOpcode(rawValue: 0x2)
    public static let close = WebSocketOpcode(rawValue: 0x8)
    public static let ping = WebSocketOpcode(rawValue: 0x9)
    public static let pong = WebSocketOpcode(rawValue: 0xA)

    public var isControl: Bool { rawValue & 0x8 != 0 }

    /// Whether RFC 6455 gives it a meaning.
    public var isKnown: Bool { rawValue <= 0x2 || (rawValue >= 0x8 && rawValue <= 0xA) }
}

/// Why a connection was closed.
///
/// Source: RFC 6455 §7.4; the IANA registry of WebSocket close codes.
public struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let normalClosure = WebSocketCloseCode(rawValue: 1000)
    public static let goingAway = WebSocketCloseCode(rawValue: 1001)
    public static let protocolError = WebSocketCloseCode(rawValue: 1002)
    public static let invalidPayload = WebSocketCloseCode(rawValue: 1007)
    public static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
    public static let internalError = WebSocketCloseCode(rawValue: 1011)
    public static let serviceRestart = WebSocketCloseCode(rawValue: 1012)

    /// Whether a Close frame may carry it: 1000-1003, 1007-1014 and 3000-4999.
    public var isAllowedOnWire: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}

extension WebSocketCloseCode: CustomStringConvertible {
    public var description: String { String(rawValue) }
}

/// Bounds of one connection.
public struct WebSocketLimits: Equatable, Sendable {
    /// Payload of an accepted frame, in bytes. No chat backend sends more than 1 MiB a frame unless asked; the rest is
    /// room for histories.
    public static let defaultMaxFrameBytes = 4 * 1024 * 1024
    /// Payload of a message, all its fragments together, in bytes. As for a frame: a message is one frame as a rule.
    public static let defaultMaxMessageBytes = 4 * 1024 * 1024
    /// Payload of a control frame, in bytes. Source: RFC 6455 §5.5.
    public static let maxControlPayloadBytes = 125
    /// Reason of a Close, in bytes of UTF-8: a control payload less the code. Source: RFC 6455 §5.5.1.
    public static let maxCloseReasonBytes = maxControlPayloadBytes - 2
    /// Time for the peer's Close, or for a server to end the transport. A live peer answers within a round trip; one
    /// that does not is not worth a descriptor.
    public static let closeTimeout: Duration = .seconds(5)

    public var maxFrameBytes: Int
    public var maxMessageBytes: Int

    public init(
        maxFrameBytes: Int = WebSocketLimits.defaultMaxFrameBytes,
        maxMessageBytes: Int = WebSocketLimits.defaultMaxMessageBytes
    ) {
        self.maxFrameBytes = maxFrameBytes
        self.maxMessageBytes = maxMessageBytes
    }
}

/// How a peer broke the protocol. The remote side's fault, but for one case; the connection is over, and a Close with
/// ``closeCode`` has been written.
public enum WebSocketFailure: Error, Hashable, Sendable {
    case reservedBitsSet
    /// RSV1 on a control frame or a continuation.
    case compressionBitMisplaced
    case reservedOpcode(UInt8)
    case fragmentedControlFrame
    case controlFrameTooLong
    /// A client's frame without a mask.
    case maskMissing
    /// A server's frame with a mask.
    case maskUnexpected
    case lengthNotMinimal
    case lengthHighBitSet
    case frameTooLarge(byteCount: UInt64, limit: Int)
    case messageTooLarge(limit: Int)
    case continuationWithoutMessage
    /// A new message before the last fragment of the one in progress.
    case messageInterrupted
    case invalidUTF8
    /// A compressed message that is not DEFLATE, or ends in the middle of it.
    case invalidCompressedData
    /// No memory for a decompressor. The one failure that is not the peer's.
    case decompressorUnavailable
    case closePayloadTooShort
    case invalidCloseCode(UInt16)
    case invalidCloseReason

    /// The code in the Close to the peer.
    ///
    /// Source: RFC 6455 §7.4.1, §8.1, §10.4.
    public var closeCode: WebSocketCloseCode {
        switch self {
        case .frameTooLarge, .messageTooLarge: .messageTooBig
        case .invalidUTF8, .invalidCloseReason, .invalidCompressedData: .invalidPayload
        case .decompressorUnavailable: .internalError
        default: .protocolError
        }
    }

    /// The failure, for an operator and as the reason in the Close. At most ``WebSocketLimits/maxCloseReasonBytes``
    /// bytes.
    public var sentence: String {
        switch self {
        case .reservedBitsSet: "reserved bits set without an extension"
        case .compressionBitMisplaced: "compression bit on a frame that does not start a message"
        case .reservedOpcode(let opcode): "reserved opcode \(opcode)"
        case .fragmentedControlFrame: "fragmented control frame"
        case .controlFrameTooLong: "control frame of more than 125 bytes"
        case .maskMissing: "frame from a client without a mask"
        case .maskUnexpected: "frame from a server with a mask"
        case .lengthNotMinimal: "frame length not in its shortest form"
        case .lengthHighBitSet: "frame length with the highest bit set"
        case .frameTooLarge(let byteCount, let limit): "frame of \(byteCount) bytes, the limit is \(limit)"
        case .messageTooLarge(let limit): "message of more than \(limit) bytes"
        case .continuationWithoutMessage: "continuation frame without a message"
        case .messageInterrupted: "new message before the end of the last one"
        case .invalidUTF8: "text that is not UTF-8"
        case .invalidCompressedData: "compressed message that is not DEFLATE"
        case .decompressorUnavailable: "no memory to decompress"
        case .closePayloadTooShort: "close frame with half a code"
        case .invalidCloseCode(let code): "close code \(code) is not allowed in a frame"
        case .invalidCloseReason: "close reason that is not UTF-8"
        }
    }
}

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
