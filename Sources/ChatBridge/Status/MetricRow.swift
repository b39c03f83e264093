import BridgeTypes

/// One metric: what is said of it, and where its values come from. ``MetricsText`` and docs/METRICS.md are made of the
/// rows.
struct MetricRow: Sendable {
    enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    enum Value: Equatable {
        case number(Double)
        case histogram(Histogram)
    }

    /// The value for some labels, in the order of the row's.
    struct Sample: Equatable {
        var labels: [String]
        var value: Value

        init(_ labels: [String] = [], _ value: Double) { (self.labels, self.value) = (labels, .number(value)) }

        init(_ labels: [String] = [], _ count: Int) { self.init(labels, Double(count)) }

        init(_ labels: [String] = [], _ histogram: Histogram) {
            (self.labels, self.value) = (labels, .histogram(histogram))
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
