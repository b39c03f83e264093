/// A text with marks, in the syntax of no tool.
package struct MarkedText: Hashable, Sendable {
    package struct Style: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let bold = Style(rawValue: 1)
        package static let italic = Style(rawValue: 2)
        package static let strikethrough = Style(rawValue: 4)
        package static let underline = Style(rawValue: 8)
        /// Monospace; nothing in it is markup.
        package static let code = Style(rawValue: 16)
    }

    package enum Part: Hashable, Sendable {
        /// May have line ends.
        case text(String, Style = [])
        /// Lines in monospace, without the line end behind the last one.
        case block(String)
        /// - Parameter label: nil: the address itself is shown.
        case link(String, label: String? = nil, Style = [])
    }

    package var parts: [Part]

    package init(_ parts: [Part] = []) { self.parts = parts }

    /// Without marks.
    package init(plain text: String) { parts = text.isEmpty ? [] : [.text(text)] }

    /// The text without marks: addresses follow their labels in parentheses, blocks stand on lines of their own.
    package var plain: String {
        var text = ""
        var endsBlock = false
        func breakLine() { if !text.isEmpty, text.last != "\n" { text += "\n" } }
        for part in parts {
            if endsBlock { breakLine() }
            endsBlock = false
            switch part {
            case .text(let words, _): text += words
            case .link(let address, let label, _): text += Self.plainLink(address, label)
            case .block(let lines):
                breakLine()
                text += lines
                endsBlock = true
            }
        }
        return text
    }

    /// It has nothing but white space and controls.
    var isBlank: Bool { written(as: .plain).isEmpty }

    static func plainLink(_ address: String, _ label: String?) -> String {
        guard let label, label != address else { return address }
        return "\(label) (\(address))"
    }

    /// The same with `style` on all words.
    func adding(_ style: Style) -> MarkedText {
        MarkedText(
            parts.map { part in
                switch part {
                case .text(let words, let own): .text(words, own.union(style))
                case .link(let address, let label, let own): .link(address, label: label, own.union(style))
                case .block: part
                }
            })
    }

    /// Appends words, to the last part where that has the same style.
    mutating func append(_ words: String, _ style: Style) {
        guard !words.isEmpty else { return }
        guard case .text(var joined, style)? = parts.last else { return parts.append(.text(words, style)) }
        // Taken out, so that it grows in place.
        parts.removeLast()
        joined += words
        parts.append(.text(joined, style))
    }
}
