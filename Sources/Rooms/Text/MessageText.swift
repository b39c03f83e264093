import BridgeTypes
import WireBytes

/// Rules for message texts common to all front ends.
package enum MessageText {
    /// Length of the excerpt in a reply, in characters.
    static let excerptCharacters = 60
    /// … and in bytes, so that a few characters of a thousand marks each do not fill a line.
    static let excerptBytes = 240

    /// Upstream text without control characters; line ends stay, a tab becomes a blank.
    package static func cleanBody(_ text: String) -> String {
        var clean = text
        let isClean = clean.withUTF8 { bytes in
            bytes.allSatisfy { ($0 >= 0x20 && $0 != 0x7F && $0 < 0x80) || $0 == 0x0A }
        }
        if isClean { return clean }
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x0A, 0x0D: scalars.append(scalar)
            case 0x09: scalars.append(" ")
            case 0x85, 0x2028, 0x2029: scalars.append("\n")
            case 0x00..<0x20, 0x7F..<0xA0: break
            default: scalars.append(scalar)
            }
        }
        return String(scalars)
    }

    package static func excerpt(_ text: String) -> String {
        // A message may be megabytes long; only the visible part is processed.
        let head = String(text.unicodeScalars.prefix(excerptCharacters * 8))
        let flat = cleanBody(head).split(whereSeparator: \.isNewline).joined(separator: " ")
        let kept = PrintableText.prefix(of: String(flat.prefix(excerptCharacters)), maxBytes: excerptBytes)
        return kept.utf8.count < flat.utf8.count || head.utf8.count < text.utf8.count ? kept + "…" : kept
    }

    // MARK: - Client formats

    /// The words of a CTCP ACTION, or nil for an ordinary text.
    package static func action(_ text: String) -> String? {
        guard text.hasPrefix("\u{1}ACTION ") else { return nil }
        let words = text.dropFirst(8)
        return String(words.last == "\u{1}" ? words.dropLast() : words)
    }

    private static func hasControls(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { !ByteScan.has(noByteBelow: 0x20, UnsafeRawBufferPointer($0)) }
    }

    /// Whether nothing is left without formatting codes.
    package static func isBlank(_ text: String) -> Bool {
        if let first = text.utf8.first, first > 0x20 { return false }
        return withoutFormatting(text).isEmpty
    }

    /// Text without IRC formatting codes: bold, italics, underline, strikethrough, monospace, reverse, reset, colours.
    package static func withoutFormatting(_ text: String) -> String {
        guard hasControls(text) else { return text }
        var out = String.UnicodeScalarView()
        let scalars = Array(text.unicodeScalars)
        var index = 0
        func digits(_ most: Int, hex: Bool) {
            var taken = 0
            while taken < most, index < scalars.count, scalars[index].isASCII,
                hex ? scalars[index].properties.isASCIIHexDigit : (0x30...0x39).contains(scalars[index].value)
            {
                index += 1
                taken += 1
            }
        }
        while index < scalars.count {
            let scalar = scalars[index]
            index += 1
            switch scalar.value {
            case 0x03, 0x04:
                // Colour codes carry digits: up to two decimal, or six hexadecimal, and a background after a comma.
                let hex = scalar.value == 0x04
                let start = index
                digits(hex ? 6 : 2, hex: hex)
                if index > start, index + 1 < scalars.count, scalars[index] == ",", scalars[index + 1].isASCII,
                    hex
                        ? scalars[index + 1].properties.isASCIIHexDigit
                        : (0x30...0x39).contains(scalars[index + 1].value)
                {
                    index += 1
                    digits(hex ? 6 : 2, hex: hex)
                }
            case 0x09, 0x0A: out.append(scalar)
            case 0x00..<0x20: break
            default: out.append(scalar)
            }
        }
        return String(out)
    }
}
