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
}
