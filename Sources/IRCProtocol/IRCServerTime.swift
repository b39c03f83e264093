import WireBytes

/// Times in the format of IRCv3: `2026-11-21T03:04:05.678Z`, UTC, always with milliseconds.
///
/// Source: IRCv3 server-time.
public enum IRCServerTime {
    /// Bytes of every formatted instant.
    public static let byteCount = 24

    private static let millisecondsPerDay: Int64 = 86_400_000

    /// Formats milliseconds since 1970-01-01T00:00:00Z. Instants outside the years 0 to 9999 are clamped.
    public static func format(milliseconds: Int64) -> String {
        let instant = min(max(milliseconds, CivilTime.range.lowerBound), CivilTime.range.upperBound)
        var day = instant / millisecondsPerDay
        var rest = instant % millisecondsPerDay
        if rest < 0 {
            rest += millisecondsPerDay
            day -= 1
        }
        let date = CivilTime.date(day: day)
        return String(unsafeUninitializedCapacity: byteCount) { out in
            var at = 0
            func put(_ number: Int64, _ width: Int, then mark: Unicode.Scalar) {
                var divisor: Int64 = width == 4 ? 1000 : width == 3 ? 100 : 10
                while divisor > 0 {
                    out.initializeElement(
                        at: at, to: UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: number / divisor % 10))
                    at &+= 1
                    divisor /= 10
                }
                out.initializeElement(at: at, to: UInt8(ascii: mark))
                at &+= 1
            }
            put(date.year, 4, then: "-")
            put(date.month, 2, then: "-")
            put(date.day, 2, then: "T")
            put(rest / 3_600_000, 2, then: ":")
            put(rest / 60_000 % 60, 2, then: ":")
            put(rest / 1000 % 60, 2, then: ".")
            put(rest % 1000, 3, then: "Z")
            return at
        }
    }

    /// Milliseconds since 1970-01-01T00:00:00Z of `text`, or nil unless it has exactly that form and names an instant.
    ///
    /// The second 60 is taken, as leap seconds are written so; it counts as the first of the next minute.
    public static func parse(_ text: String) -> Int64? {
        let bytes = Array(text.utf8.prefix(byteCount + 1))
        guard bytes.count == byteCount else { return nil }
        for (index, mark) in [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"), (19, "."), (23, "Z")]
            as [(Int, Unicode.Scalar)]
        where bytes[index] != UInt8(ascii: mark) { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            var number: Int64 = 0
            for byte in bytes[range] {
                guard Byte.isDigit(byte) else { return nil }
                number = number * 10 + Int64(byte &- UInt8(ascii: "0"))
            }
            return number
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
            let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19),
            let millisecond = number(20..<23),
            (1...12).contains(month), day >= 1, day <= daysInMonth(month, year: year),
            hour < 24, minute < 60, second <= 60
        else { return nil }
        let days = CivilTime.day(year: year, month: month, day: day)
        return days * millisecondsPerDay + ((hour * 60 + minute) * 60 + second) * 1000 + millisecond
    }

    private static func daysInMonth(_ month: Int64, year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}
