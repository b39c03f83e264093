import WireBytes

/// Counts of durations by upper bound, and their sum.
public struct Histogram: Equatable, Sendable {
    /// Upper bounds, inclusive, in microseconds: half a millisecond to 2.5 s.
    public static let bounds: [Int64] = [
        500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    ]

    /// For each bound the durations up to it and above the one before; last, those above all bounds.
    public fileprivate(set) var counts = [Int](repeating: 0, count: Histogram.bounds.count + 1)
    public fileprivate(set) var sum: Duration = .zero

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

/// Counts of sizes by upper bound, and their sum.
public struct ByteHistogram: Equatable, Sendable {
    /// Upper bounds, inclusive, in bytes: nothing to a mebibyte.
    public static let bounds = [0, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20]

    /// As of ``Histogram/counts``.
    public private(set) var counts = [Int](repeating: 0, count: ByteHistogram.bounds.count + 1)
    public private(set) var sum = 0

    public init() {}

    public mutating func observe(_ bytes: Int) {
        counts[Self.bounds.firstIndex { bytes <= $0 } ?? Self.bounds.count] += 1
        sum += bytes
    }
}

extension Histogram {
    /// The durations that were counted since an earlier state of this histogram.
    public func since(_ earlier: Histogram) -> Histogram {
        var rest = self
        for place in counts.indices { rest.counts[place] -= earlier.counts[place] }
        rest.sum -= earlier.sum
        return rest
    }

    public static func + (a: Histogram, b: Histogram) -> Histogram {
        var both = a
        for place in both.counts.indices { both.counts[place] += b.counts[place] }
        both.sum += b.sum
        return both
    }

    /// The duration below which this share of all lies, taking those between two bounds as evenly spread, as Prometheus
    /// does; the largest bound for those above it. Nil: nothing was counted.
    public func quantile(_ share: Double) -> Duration? {
        let total = count
        guard total > 0 else { return nil }
        let rank = Double(total) * share
        var below = 0
        for (place, bound) in Self.bounds.enumerated() {
            let here = counts[place]
            if here > 0, Double(below + here) >= rank {
                let lower = place == 0 ? 0 : Self.bounds[place - 1]
                let part = max(0, rank - Double(below)) / Double(here)
                return .microseconds(lower + Int64(Double(bound - lower) * part))
            }
            below += here
        }
        return .microseconds(Self.bounds[Self.bounds.count - 1])
    }
}
