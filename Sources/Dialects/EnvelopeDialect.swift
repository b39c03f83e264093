import ChatModel

/// Placeholder until the codec lands in the next commit.
public struct EnvelopeDialect: Dialect {
    public init() {}

    public var traits: DialectTraits {
        DialectTraits(
            name: "envelope", identity: .puppet, messageIDOrigin: .client, echoesOwnMessages: true,
            confirmation: .echoByID, typingOut: .startOnly, sendsReadReceipts: true, authenticatesSenders: false,
            hasMembership: false, waitsForReady: false, maxFrameBytes: 1024 * 1024, liveness: .protocolPing,
            backoff: BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0.25))
    }

    public func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame {
        .dropped(.malformed, typeKey: nil)
    }

    public func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand { .unsupported(.unsupported) }
}
