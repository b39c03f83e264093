/// Text that is safe in a line and in a log.
package enum PrintableText {
    /// Code points of somebody else's words that are shown.
    private static let mostShown = 120

    package static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || scalar.value == 0x7F || (0x80...0x9F).contains(scalar.value)
            || (0x2028...0x2029).contains(scalar.value)
    }

    /// The beginning of a text, without controls.
    package static func of(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(mostShown).filter { !isControl($0) }))
    }

    /// The same in at most so many bytes.
    package static func of(_ text: String, maxBytes: Int) -> String { prefix(of: of(text), maxBytes: maxBytes) }

    /// The longest run of whole characters from the front that fits.
    package static func prefix(of text: String, maxBytes: Int) -> String {
        guard text.utf8.count > maxBytes else { return text }
        var kept = ""
        var size = 0
        for character in text {
            size += character.utf8.count
            if size > maxBytes { break }
            kept.append(character)
        }
        return kept
    }

    /// How long that is, in words.
    package static func spoken(seconds: Int) -> String {
        if seconds < 120 { return "\(max(seconds, 1)) s" }
        if seconds < 7200 { return "\(seconds / 60) min" }
        return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
    }
}
