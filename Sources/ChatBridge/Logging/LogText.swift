/// Escapes that keep one log line one line, and a terminal harmless, whatever a peer sent.
enum LogText {
    /// Longest value that is written whole, in bytes: enough for a URL or an error, too little to fill a disk with.
    static let maxValueByteCount = 2048

    /// Appends `text` as a JSON string with its quotes. Source: RFC 8259 §7.
    static func appendJSON(_ text: String, to line: inout [UInt8]) {
        line.append(UInt8(ascii: "\""))
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": line += "\\\"".utf8
            case "\\": line += "\\\\".utf8
            case "\n": line += "\\n".utf8
            case "\r": line += "\\r".utf8
            case "\t": line += "\\t".utf8
            case _ where isUnsafe(scalar):
                // Every unsafe scalar lies in the basic plane, so one escape does.
                line += "\\u".utf8
                appendHex(scalar.value, digits: 4, to: &line)
            default: line += UTF8.encode(scalar).map(Array.init) ?? []
            }
        }
        line.append(UInt8(ascii: "\""))
    }

    /// Appends `text` for people: controls become visible escapes.
    static func appendPlain(_ text: String, quoting: Bool = false, to line: inout [UInt8]) {
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": line += "\\n".utf8
            case "\r": line += "\\r".utf8
            case "\t": line += "\\t".utf8
            case "\"" where quoting: line += "\\\"".utf8
            case "\\" where quoting: line += "\\\\".utf8
            case _ where isUnsafe(scalar):
                line += "\\u{".utf8
                appendHex(scalar.value, digits: 1, to: &line)
                line += "}".utf8
            default: line += UTF8.encode(scalar).map(Array.init) ?? []
            }
        }
    }

    /// Appends a metadata value: bare where it is one plain word, else in quotes.
    static func appendValue(_ text: String, to line: inout [UInt8]) {
        let isWord =
            !text.isEmpty
            && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "=") }
        if isWord {
            appendPlain(text, to: &line)
        } else {
            line.append(UInt8(ascii: "\""))
            appendPlain(text, quoting: true, to: &line)
            line.append(UInt8(ascii: "\""))
        }
    }

    /// The beginning of an overlong value, with a mark.
    static func shortened(_ text: String) -> String {
        guard text.utf8.count > maxValueByteCount else { return text }
        return String(decoding: text.utf8.prefix(maxValueByteCount), as: UTF8.self) + "…"
    }

    /// C0 and C1 controls, and those that turn or break lines: what follows must not be shown backwards or as another
    /// line. Source: Unicode 15 §23.2 (bidirectional controls), §5.8 (newlines).
    private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F...0x9F, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
        default: false
        }
    }

    private static func appendHex(_ value: UInt32, digits: Int, to line: inout [UInt8]) {
        let text = String(value, radix: 16)
        line += repeatElement(UInt8(ascii: "0"), count: max(digits - text.utf8.count, 0))
        line += text.utf8
    }
}

/// UTC as logs write it.
enum LogTime {
    /// `2026-11-21T03:04:05.678Z` from milliseconds since 1970. Any value gives some text.
    static func format(milliseconds: Int64) -> String {
        let day: Int64 = 86_400_000
        let inDay = (milliseconds % day + day) % day
        let days = (milliseconds - inDay) / day
        let (year, month, dayOfMonth) = civil(days: days)
        let seconds = inDay / 1000
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(dayOfMonth, 2))T\(padded(seconds / 3600, 2)):"
            + "\(padded(seconds / 60 % 60, 2)):\(padded(seconds % 60, 2)).\(padded(inDay % 1000, 3))Z"
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let text = "\(number)"
        return String(repeating: "0", count: max(width - text.utf8.count, 0)) + text
    }

    /// Days since 1970-01-01 to a date of the proleptic Gregorian calendar, in years that begin on 1 March so that the
    /// leap day is the last.
    private static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }
}
