import Dialects
import WireBytes

/// The delay before the next attempt after a link was lost: exponential, capped, jittered, never giving up.
package struct ReconnectPolicy {
    package let traits: BackoffTraits

    /// Refused credentials are tried this seldom: a wrong password tried quickly locks accounts.
    package static let refusedDelay: Duration = .seconds(15 * 60)
    /// The longest `Retry-After` that is honoured; a longer one is more likely a mistake.
    package static let longestRetryAfter: Duration = .seconds(60 * 60)

    /// The least pause for an overloaded backend: waiting for a connection of its own database, it answers no request
    /// for 30 s.
    package static let overloadDelay: Duration = .seconds(30)

    /// Delay before the attempt after `failures` failures in a row (1 or more).
    ///
    /// `random` spreads it by ± jitter, so that a thousand rooms of one backend do not come back in step.
    package func delay(
        failures: Int, retryAfter: Duration? = nil, random: inout some RandomNumberGenerator
    ) -> Duration {
        var seconds = Double(traits.first.wholeNanoseconds) / 1e9
        let cap = Double(traits.cap.wholeNanoseconds) / 1e9
        for _ in 1..<max(failures, 1) where seconds < cap { seconds *= max(traits.factor, 1) }
        seconds = min(seconds, cap)
        let unit = Double(random.next() >> 11) / Double(1 << 53)
        seconds *= 1 + traits.jitter * (2 * unit - 1)
        let backoff = Duration.nanoseconds(Int64(max(seconds, 0) * 1e9))
        guard let retryAfter else { return backoff }
        return max(backoff, min(retryAfter, Self.longestRetryAfter))
    }

    /// Delay before the next use of a login that works, after it ended at once `ends` times in a row (1 or more): 1 s,
    /// 2 s, 4 s and so on up to ``refusedDelay``.
    package static func loginDelay(ends: Int, jitter: Double, random: inout some RandomNumberGenerator) -> Duration {
        ReconnectPolicy(traits: BackoffTraits(first: .seconds(1), factor: 2, cap: refusedDelay, jitter: jitter))
            .delay(failures: ends, random: &random)
    }
}
