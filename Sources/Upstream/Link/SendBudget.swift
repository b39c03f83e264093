import BridgeTypes
import WireBytes

/// The rate limit of one link, and the pauses that the backend asks for.
package struct SendBudget {
    /// The shortest pause, for a backend that asks for none and refuses again.
    package static let shortestPause: Duration = .milliseconds(100)

    private var bucket: TokenBucket
    /// The backend accepts nothing before this.
    private var heldUntil: MonotonicInstant?

    package var rate: Double? { bucket.rate }
    package var burst: Double { bucket.burst }

    package init(rate: Double?, burst: Double) { bucket = TokenBucket(rate: rate, burst: burst) }

    package mutating func take(now: MonotonicInstant) -> Bool {
        if let heldUntil {
            guard now >= heldUntil else { return false }
            self.heldUntil = nil
        }
        return bucket.take(now: now)
    }

    /// When ``take(now:)`` will be granted again.
    package mutating func nextGrant(now: MonotonicInstant) -> MonotonicInstant {
        let grant = bucket.nextGrant(now: now)
        return heldUntil.map { max($0, grant) } ?? grant
    }

    /// Pauses, as the backend asks, within bounds.
    package mutating func hold(for pause: Duration, now: MonotonicInstant) {
        let until = now + min(max(pause, Self.shortestPause), ReconnectPolicy.longestRetryAfter)
        heldUntil = max(heldUntil ?? until, until)
    }
}
