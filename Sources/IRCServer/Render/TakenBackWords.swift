import BridgeTypes

extension TokenBucket {
    /// Lines about messages that were taken back, for clients that do not know REDACT: a few a minute.
    static let takenBackWords = TokenBucket(rate: 0.2, burst: 5)
}
