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
            func put(_ byte: UInt8) {
                out.initializeElement(at: at, to: byte)
                at &+= 1
            }
            func put(digit: UInt32) { put(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: digit)) }
            // Divisors are constants: the processor divides by them without dividing.
            func put(pair: UInt32) {
                put(digit: pair / 10 % 10)
                put(digit: pair % 10)
            }
            let (year, time) = (UInt32(truncatingIfNeeded: date.year), UInt32(truncatingIfNeeded: rest))
            put(pair: year / 100)
            put(pair: year % 100)
            put(UInt8(ascii: "-"))
            put(pair: UInt32(truncatingIfNeeded: date.month))
            put(UInt8(ascii: "-"))
            put(pair: UInt32(truncatingIfNeeded: date.day))
            put(UInt8(ascii: "T"))
            put(pair: time / 3_600_000)
            put(UInt8(ascii: ":"))
            put(pair: time / 60_000 % 60)
            put(UInt8(ascii: ":"))
            put(pair: time / 1000 % 60)
            put(UInt8(ascii: "."))
            put(digit: time / 100 % 10)
            put(pair: time % 100)
            put(UInt8(ascii: "Z"))
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
