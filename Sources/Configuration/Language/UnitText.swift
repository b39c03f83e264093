/// Durations as configurations write them: a whole number and a unit.
package enum DurationText {
    private static let units: [(suffix: String, milliseconds: Int64)] = [
        ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]

    /// Longest duration, in milliseconds: ten years. Beyond it a value is a slip, and sums of instants stay far from
    /// overflow.
    static let maxMilliseconds: Int64 = 3650 * 86_400_000

    /// Reads `500ms`, `30s`, `5m`, `12h`, `7d`; `0` and `off` are zero. Nil for anything else.
    package static func parse(_ text: String) -> Duration? {
        if text == "0" || text == "off" { return .zero }
        guard let unitStart = text.firstIndex(where: { !$0.isASCII || !$0.isNumber }),
            let count = Int64(text[..<unitStart]),
            let unit = units.first(where: { $0.suffix == text[unitStart...] })
        else { return nil }
        let (milliseconds, overflow) = count.multipliedReportingOverflow(by: unit.milliseconds)
        guard !overflow, milliseconds <= maxMilliseconds else { return nil }
        return .milliseconds(milliseconds)
    }

    /// The shortest text that ``parse(_:)`` reads back, to the millisecond.
    static func format(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        let milliseconds = seconds * 1000 + attoseconds / 1_000_000_000_000_000
        for unit in units.reversed() where milliseconds != 0 && milliseconds % unit.milliseconds == 0 {
            return "\(milliseconds / unit.milliseconds)\(unit.suffix)"
        }
        return "0s"
    }
}

/// Sizes as configurations write them: bytes, or a whole number of binary units.
enum SizeText {
    private static let units: [(suffix: String, bytes: Int)] = [
        ("", 1), ("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30),
    ]

    /// Reads `512`, `64KiB`, `1MiB`, `1GiB` into bytes; `0` and `off` are zero. Nil for anything else.
    static func parse(_ text: String) -> Int? {
        if text == "off" { return 0 }
        let unitStart = text.firstIndex { !$0.isASCII || !$0.isNumber } ?? text.endIndex
        guard let count = Int(text[..<unitStart]), let unit = units.first(where: { $0.suffix == text[unitStart...] })
        else { return nil }
        let (bytes, overflow) = count.multipliedReportingOverflow(by: unit.bytes)
        return overflow ? nil : bytes
    }

    /// The shortest text that ``parse(_:)`` reads back exactly.
    static func format(_ bytes: Int) -> String {
        for unit in units.reversed() where bytes != 0 && bytes % unit.bytes == 0 && unit.suffix != "B" {
            return "\(bytes / unit.bytes)\(unit.suffix)"
        }
        return "\(bytes)"
    }
}
