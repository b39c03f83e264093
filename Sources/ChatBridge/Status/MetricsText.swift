import BridgeTypes
import WireBytes

/// The metrics as text.
///
/// Source: Prometheus, "Text-based format", version 0.0.4; OpenMetrics 1.0.
struct MetricsText {
    enum Format: Sendable {
        case prometheus
        case openMetrics

        var contentType: String {
            switch self {
            case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
            case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
        }

        /// The format that a scraper asked for.
        init(accept: [String]) {
            let wanted = accept.contains { $0.lowercased().contains("application/openmetrics-text") }
            self = wanted ? .openMetrics : .prometheus
        }
    }

    let format: Format
    /// Without: the values of all rooms are merged.
    let hasRoomLabels: Bool
    private(set) var text = ""

    init(_ format: Format, hasRoomLabels: Bool = true) {
        self.format = format
        self.hasRoomLabels = hasRoomLabels
    }

    static func text(
        _ reading: MetricsReading, _ format: Format, hasRoomLabels: Bool = true, rows: [MetricRow] = MetricsTable.rows
    ) -> String {
        var made = MetricsText(format, hasRoomLabels: hasRoomLabels)
        for row in rows { made.append(row, row.read(reading)) }
        if format == .openMetrics { made.text += "# EOF\n" }
        return made.text
    }

    mutating func append(_ row: MetricRow, _ samples: [MetricRow.Sample]) {
        guard let (labels, samples) = reduced(row, samples) else { return }
        // OpenMetrics names the family without the suffix of its samples.
        let suffix = "_total"
        let family =
            format == .openMetrics && row.kind == .counter && row.name.hasSuffix(suffix)
            ? String(row.name.dropLast(suffix.count)) : row.name
        text += "# HELP \(family) \(Self.escaped(row.help, quotes: format == .openMetrics))\n"
        text += "# TYPE \(family) \(row.kind.rawValue)\n"
        let sorted = samples.sorted { $0.labels.lexicographicallyPrecedes($1.labels) }
        for sample in sorted {
            let pairs = zip(labels, sample.labels).map { "\($0)=\"\(Self.escaped($1, quotes: true))\"" }
            switch sample.value {
            case .number(let value): line(row.name, pairs, value)
            case .histogram(let bounds, let counts, let sum): append(bounds, counts, sum, row.name, pairs)
            }
        }
    }

    private mutating func append(
        _ bounds: [Double], _ counts: [Int], _ sum: Double, _ name: String, _ pairs: [String]
    ) {
        var below = 0
        for (bound, count) in zip(bounds, counts) {
            below += count
            line(name + "_bucket", pairs + ["le=\"\(Self.number(bound))\""], Double(below))
        }
        let all = Double(counts.reduce(0, +))
        line(name + "_bucket", pairs + ["le=\"+Inf\""], all)
        line(name + "_sum", pairs, sum)
        line(name + "_count", pairs, all)
    }

    private mutating func line(_ name: String, _ pairs: [String], _ value: Double) {
        text += pairs.isEmpty ? name : "\(name){\(pairs.joined(separator: ","))}"
        text += " \(Self.number(value))\n"
    }

    /// Without the room's label where it is not wanted. Nil: nothing is left.
    private func reduced(
        _ row: MetricRow, _ samples: [MetricRow.Sample]
    ) -> (labels: [String], samples: [MetricRow.Sample])? {
        guard !hasRoomLabels, let place = row.labels.firstIndex(of: MetricsTable.roomLabel) else {
            return samples.isEmpty ? nil : (row.labels, samples)
        }
        var labels = row.labels
        labels.remove(at: place)
        var sums: [[String]: Double] = [:]
        for sample in samples {
            guard case .number(let value) = sample.value else { continue }
            var key = sample.labels
            key.remove(at: place)
            sums[key] = row.merge(sums[key], value)
        }
        return sums.isEmpty ? nil : (labels, sums.map { MetricRow.Sample($0.key, $0.value) })
    }

    /// Source: "Text-based format", "Comments, help text, and type information".
    private static func escaped(_ text: String, quotes: Bool) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\"" where quotes: out += "\\\""
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }

    private static func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }
}

extension MetricRow {
    /// What the values of two rooms are together: the worst of them where a sum means nothing.
    fileprivate func merge(_ a: Double?, _ b: Double) -> Double {
        guard let a else { return b }
        if name.hasSuffix("_timestamp_seconds") { return min(a, b) }
        return name.hasSuffix("_seconds") ? max(a, b) : a + b
    }
}
