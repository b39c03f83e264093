import WireBytes

/// A rate limit with a burst. Time is an argument; a bucket without a rate never refuses.
struct TokenBucket {
    /// Tokens a second; 0: unlimited. Every client has two buckets, so they are kept small.
    private let tokensPerSecond: Double
    let burst: Double
    private var tokens: Double
    private var refilledAt = MonotonicInstant(nanoseconds: .min)

    /// Tokens a second; nil: unlimited.
    var rate: Double? { tokensPerSecond > 0 ? tokensPerSecond : nil }

    init(rate: Double?, burst: Double) {
        // A rate of nothing would make the next grant never and always at once.
        self.tokensPerSecond = rate.map { max($0, 0) } ?? 0
        self.burst = max(burst, 1)
        self.tokens = self.burst
    }

    private mutating func refill(_ now: MonotonicInstant, _ rate: Double) {
        if refilledAt.nanoseconds != .min, now > refilledAt {
            tokens = min(burst, tokens + Double((now - refilledAt).wholeNanoseconds) / 1e9 * rate)
        }
        refilledAt = max(now, refilledAt)
    }

    /// Takes `cost` tokens when there are any; a cost above what is left makes the next wait longer instead of never
    /// being granted.
    mutating func take(_ cost: Double = 1, now: MonotonicInstant) -> Bool {
        guard let rate, cost > 0 else { return true }
        refill(now, rate)
        guard tokens >= 1 else { return false }
        tokens -= cost
        return true
    }

    /// When ``take(_:now:)`` will be granted again.
    mutating func nextGrant(now: MonotonicInstant) -> MonotonicInstant {
        guard let rate else { return now }
        refill(now, rate)
        guard tokens < 1 else { return now }
        // A nanosecond more than computed, so that rounding cannot wake us too early for ever.
        return now + .nanoseconds(Int64(min((1 - tokens) / rate, 1e6) * 1e9) + 1)
    }
}
