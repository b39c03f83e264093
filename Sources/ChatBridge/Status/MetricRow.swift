import BridgeTypes
import WireBytes

/// One metric: what is said of it, and where its values come from. ``MetricsText`` and docs/METRICS.md are made of the
/// rows.
struct MetricRow: Sendable {
    enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    enum Value: Equatable {
        case number(Double)
        /// Upper bounds, the counts between them and above the last, and the sum of all values.
        case histogram(bounds: [Double], counts: [Int], sum: Double)
    }

    /// The value for some labels, in the order of the row's.
    struct Sample: Equatable {
        var labels: [String]
        var value: Value

        init(_ labels: [String] = [], _ value: Double) { (self.labels, self.value) = (labels, .number(value)) }

        init(_ labels: [String] = [], _ count: Int) { self.init(labels, Double(count)) }

        init(_ labels: [String] = [], _ histogram: Histogram) {
            self.labels = labels
            value = .histogram(
                bounds: Histogram.bounds.map { Double($0) / 1e6 }, counts: histogram.counts,
                sum: Double(histogram.sum.wholeNanoseconds) / 1e9)
        }

        init(_ histogram: ByteHistogram) {
            labels = []
            value = .histogram(
                bounds: ByteHistogram.bounds.map(Double.init), counts: histogram.counts, sum: Double(histogram.sum))
        }
    }

    let name: String
    let kind: Kind
    let help: String
    let labels: [String]
    let read: @Sendable (MetricsReading) -> [Sample]

    init(
        _ kind: Kind, _ name: String, _ help: String, labels: [String] = [],
        _ read: @escaping @Sendable (MetricsReading) -> [Sample]
    ) {
        (self.kind, self.name, self.help, self.labels, self.read) = (kind, name, help, labels, read)
    }
}
