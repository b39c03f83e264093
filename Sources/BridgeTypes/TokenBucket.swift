import WireBytes

/// A rate limit with a burst. Time is an argument; a bucket without a rate never refuses.
package struct TokenBucket {
    /// What a bucket is allowed. Where many buckets are allowed the same, they keep only their levels.
    package struct Terms {
        /// Tokens a second; 0: unlimited.
        fileprivate let tokensPerSecond: Double
        package let burst: Double

        package init(rate: Double?, burst: Double) {
            // A rate of nothing would make the next grant never and always at once.
            self.tokensPerSecond = rate.map { max($0, 0) } ?? 0
            self.burst = max(burst, 1)
        }
    }

    /// How full a bucket is.
    package struct Level {
        fileprivate var tokens: Double
        fileprivate var refilledAt = MonotonicInstant(nanoseconds: .min)

        package static func full(_ terms: Terms) -> Level { Level(tokens: terms.burst) }
    }

    private let terms: Terms
    package private(set) var level: Level

    /// Tokens a second; nil: unlimited.
    package var rate: Double? { terms.tokensPerSecond > 0 ? terms.tokensPerSecond : nil }
    package var burst: Double { terms.burst }

    package init(rate: Double?, burst: Double) {
        let terms = Terms(rate: rate, burst: burst)
        self.init(terms, .full(terms))
    }

    package init(_ terms: Terms, _ level: Level) {
        self.terms = terms
        self.level = level
    }

    private mutating func refill(_ now: MonotonicInstant, _ rate: Double) {
        if level.refilledAt.nanoseconds != .min, now > level.refilledAt {
            let elapsed = Double((now - level.refilledAt).wholeNanoseconds) / 1e9
            // What was given beyond that stays.
            level.tokens = max(level.tokens, min(burst, level.tokens + elapsed * rate))
        }
        level.refilledAt = max(now, level.refilledAt)
    }

    /// Takes `cost` tokens when there are any; a cost above what is left makes the next wait longer instead of never
    /// being granted.
    package mutating func take(_ cost: Double = 1, now: MonotonicInstant) -> Bool {
        guard let rate, cost > 0 else { return true }
        refill(now, rate)
        guard level.tokens >= 1 else { return false }
        level.tokens -= cost
        return true
    }

    /// Adds tokens, once, beyond what the bucket holds otherwise.
    package mutating func give(_ tokens: Double) { level.tokens += max(tokens, 0) }

    /// When ``take(_:now:)`` will be granted again.
    package mutating func nextGrant(now: MonotonicInstant) -> MonotonicInstant {
        guard let rate else { return now }
        refill(now, rate)
        guard level.tokens < 1 else { return now }
        // A nanosecond more than computed, so that rounding cannot wake us too early for ever.
        return now + .nanoseconds(Int64(min((1 - level.tokens) / rate, 1e6) * 1e9) + 1)
    }
}
