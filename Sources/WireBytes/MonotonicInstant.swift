/// A point on a clock that never jumps, in nanoseconds from an arbitrary origin.
///
/// Machines receive it as `now`; nothing in the cores reads a clock.
public struct MonotonicInstant: Comparable, Hashable, Sendable {
    /// Nanoseconds since the clock's origin. Only differences are meaningful.
    public var nanoseconds: Int64

    @inlinable
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    @inlinable
    public static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }

    /// The earlier of two moments, each of which may be missing.
    @inlinable
    public static func earlier(_ a: Self?, _ b: Self?) -> Self? {
        guard let a, let b else { return a ?? b }
        return min(a, b)
    }

    /// This instant plus `duration`; saturates instead of overflowing, so that "never" stays never.
    @inlinable
    public static func + (instant: Self, duration: Duration) -> Self {
        let (sum, overflow) = instant.nanoseconds.addingReportingOverflow(duration.wholeNanoseconds)
        return Self(nanoseconds: overflow ? (duration < .zero ? .min : .max) : sum)
    }

    /// The time from `earlier` to `later`.
    @inlinable
    public static func - (later: Self, earlier: Self) -> Duration {
        .nanoseconds(later.nanoseconds &- earlier.nanoseconds)
    }
}

extension Duration {
    /// The duration in whole nanoseconds, saturated to what 64 bits can hold (292 years).
    @inlinable
    public var wholeNanoseconds: Int64 {
        // Most are of minutes at the most, whose attoseconds have 72 bits: a division of 64 bits then, by 10^9 / 2^9.
        if let part = Int64(exactly: attoseconds >> 9), part >= 0 { return part / 1_953_125 }
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carried) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return carried ? (seconds < 0 ? .min : .max) : sum
    }
}
