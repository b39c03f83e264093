import WireBytes

/// Counts of durations by upper bound, and their sum.
public struct Histogram: Equatable, Sendable {
    /// Upper bounds, inclusive, in microseconds: half a millisecond to 2.5 s.
    public static let bounds: [Int64] = [
        500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    ]

    /// For each bound the durations up to it and above the one before; last, those above all bounds.
    public private(set) var counts = [Int](repeating: 0, count: Histogram.bounds.count + 1)
    public private(set) var sum: Duration = .zero

    public init() {}

    public var count: Int { counts.reduce(0, +) }

    /// Counts a duration, as if it had been seen `times` times; a negative one as zero.
    public mutating func observe(_ duration: Duration, times: Int = 1) {
        let nanoseconds = max(0, duration.wholeNanoseconds)
        let place = Self.bounds.firstIndex { nanoseconds <= $0 * 1000 } ?? Self.bounds.count
        counts[place] += times
        sum += .nanoseconds(nanoseconds) * times
    }
}
