import BridgeTypes
import WireBytes

/// What may go over one link: a rate, and the pauses that the backend asks for.
package struct SendBudget {
    /// The shortest pause: a backend that says "now" and refuses again is not asked in a circle.
    package static let shortestPause: Duration = .milliseconds(100)

    private var bucket: TokenBucket
    /// The backend takes nothing before this.
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

    /// The backend wants to be left alone. What it says is believed within reason.
    package mutating func hold(for pause: Duration, now: MonotonicInstant) {
        let until = now + min(max(pause, Self.shortestPause), ReconnectPolicy.longestRetryAfter)
        heldUntil = max(heldUntil ?? until, until)
    }
}
