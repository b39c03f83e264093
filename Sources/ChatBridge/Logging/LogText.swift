import WireBytes

/// Escapes that confine a record to one line and protect terminals from any input.
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

    /// `text` as a JSON string with its quotes.
    static func quoted(_ text: String) -> String {
        var line: [UInt8] = []
        appendJSON(text, to: &line)
        return String(decoding: line, as: UTF8.self)
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

    /// C0 and C1 controls, and characters that turn or break lines: the rest must not be shown backwards or as another
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
    /// `2026-11-21T03:04:05.678Z` from milliseconds since 1970.
    static func format(milliseconds: Int64) -> String {
        let rest = "\((milliseconds % 1000 + 1000) % 1000)"
        return CivilTime.text(milliseconds: milliseconds).replacing(" ", with: "T") + "."
            + String(repeating: "0", count: 3 - rest.utf8.count) + rest + "Z"
    }
}
