/// Sanitised text for IRC lines and log entries.
package enum PrintableText {
    /// Limit in code points for text from peers.
    package static let maxScalars = 120

    package static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || scalar.value == 0x7F || (0x80...0x9F).contains(scalar.value)
            || (0x2028...0x2029).contains(scalar.value)
    }

    /// The start of a text, without control characters.
    package static func of(_ text: String, maxScalars: Int = maxScalars) -> String {
        // As it is, as most are.
        if text.utf8.count <= maxScalars, text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text }
        var kept = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(maxScalars) where !isControl(scalar) { kept.append(scalar) }
        return String(kept)
    }

    /// The same in at most so many bytes.
    package static func of(_ text: String, maxBytes: Int) -> String { prefix(of: of(text), maxBytes: maxBytes) }

    /// The longest prefix of whole characters that fits.
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

    /// A duration in words.
    package static func spoken(seconds: Int) -> String {
        if seconds < 120 { return "\(max(seconds, 1)) s" }
        if seconds < 7200 { return "\(seconds / 60) min" }
        return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
    }
}
