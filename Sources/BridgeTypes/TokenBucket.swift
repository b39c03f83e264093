import WireBytes

/// A rate limit with a burst. Time is a parameter; a bucket without a rate never refuses.
package struct TokenBucket {
    /// Rate and burst. Buckets with the same limit store only their levels.
    package struct Limit {
        /// Tokens a second; 0: unlimited.
        fileprivate let tokensPerSecond: Double
        package let burst: Double

        package init(rate: Double?, burst: Double) {
            // With a rate of zero the next grant would be never and immediate at once: unlimited instead.
            self.tokensPerSecond = rate.map { max($0, 0) } ?? 0
            self.burst = max(burst, 1)
        }
    }

    /// The fill level of a bucket.
    package struct Level {
        fileprivate var tokens: Double
        fileprivate var refilledAt = MonotonicInstant(nanoseconds: .min)

        package static func full(_ limit: Limit) -> Level { Level(tokens: limit.burst) }
    }

    private let limit: Limit
    package private(set) var level: Level

    /// Tokens a second; nil: unlimited.
    package var rate: Double? { limit.tokensPerSecond > 0 ? limit.tokensPerSecond : nil }
    package var burst: Double { limit.burst }

    package init(rate: Double?, burst: Double) {
        let limit = Limit(rate: rate, burst: burst)
        self.init(limit, .full(limit))
    }

    package init(_ limit: Limit, _ level: Level) {
        self.limit = limit
        self.level = level
    }

    private mutating func refill(_ now: MonotonicInstant, _ rate: Double) {
        if level.refilledAt.nanoseconds != .min, now > level.refilledAt {
            let elapsed = Double((now - level.refilledAt).wholeNanoseconds) / 1e9
            // Tokens above the burst are not taken away.
            level.tokens = max(level.tokens, min(burst, level.tokens + elapsed * rate))
        }
        level.refilledAt = max(now, level.refilledAt)
    }

    /// Takes `cost` tokens if at least one is available. A cost above the level is granted and makes the next wait longer.
    package mutating func take(_ cost: Double = 1, now: MonotonicInstant) -> Bool {
        guard let rate, cost > 0 else { return true }
        refill(now, rate)
        guard level.tokens >= 1 else { return false }
        level.tokens -= cost
        return true
    }

    /// Adds tokens once, also beyond the burst.
    package mutating func give(_ tokens: Double) { level.tokens += max(tokens, 0) }

    /// When ``take(_:now:)`` will be granted again.
    package mutating func nextGrant(now: MonotonicInstant) -> MonotonicInstant {
        guard let rate else { return now }
        refill(now, rate)
        guard level.tokens < 1 else { return now }
        // One nanosecond more than computed: rounding must not cause an endless series of early wake-ups.
        return now + .nanoseconds(Int64(min((1 - level.tokens) / rate, 1e6) * 1e9) + 1)
    }
}
