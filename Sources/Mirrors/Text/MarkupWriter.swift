extension MarkedText {
    /// The text in a syntax, cut into pieces; white space at their ends is left out. Linear in its length.
    ///
    /// A piece ends behind white space where there is some in its last third, else between grapheme clusters; a cluster
    /// or a link that is longer than a piece by itself is cut. Styles and blocks that go on are ended and begun again.
    ///
    /// - Parameters:
    ///   - maxCharacters: of a piece, in units of UTF-16, which are never fewer than code points or clusters: so the
    /// limit
    ///     holds however the tool counts. Less than ``MarkupWriter/minCharacters`` counts as that.
    ///   - defusesMentions: `@here` and the like get an invisible space; else they are mentions where the tool has
    /// them.
    package func written(
        as syntax: MarkupSyntax, defusesMentions: Bool = true, maxCharacters: Int = .max
    ) -> [String] {
        var writer = MarkupWriter(syntax, defusesMentions: defusesMentions, maxCharacters: maxCharacters)
        writer.write(self)
        return writer.finish()
    }
}

/// Writes texts in a syntax, in pieces.
struct MarkupWriter {
    /// Room for every mark and a few words.
    static let minCharacters = 64

    /// Where the piece could have ended.
    struct Break {
        var headEnd: String.Index
        var tailStart: String.Index
        /// Of the styles that go on.
        var style: MarkedText.Style
    }

    enum LineState { case start, number, within }

    let syntax: MarkupSyntax
    private let defusesMentions: Bool
    let limit: Int
    var pieces: [String] = []
    var piece = ""
    /// Of ``piece``.
    var count = 0
    /// White space that is written before the next word, outside of marks.
    var blanks = ""
    private var style: MarkedText.Style = []
    var line = LineState.start
    var lastBreak: Break?
    /// Behind the part that is being written stands a link.
    private var precedesLink = false

    init(_ syntax: MarkupSyntax, defusesMentions: Bool, maxCharacters: Int) {
        self.syntax = syntax
        self.defusesMentions = defusesMentions
        limit = max(maxCharacters, Self.minCharacters)
    }

    /// The pieces; none where nothing but white space was written.
    consuming func finish() -> [String] {
        endPiece()
        return pieces
    }

    mutating func write(_ text: MarkedText) {
        let edges = text.parts.map(Edges.init)
        for (index, part) in text.parts.enumerated() {
            let before = index > 0 ? edges[index - 1].last : nil
            let after = index + 1 < edges.count ? edges[index + 1].first : nil
            let isFree = syntax.hasIRCCodes || edges[index].isFree(before, after)
            if index + 1 < edges.count, case .link = text.parts[index + 1] {
                precedesLink = true
            } else {
                precedesLink = false
            }
            switch part {
            case .text(let words, let style): write(words, isFree ? writable(style, words) : [])
            case .link(let address, let label, let style): write(address, label, isFree ? style : [], before, after)
            case .block(let lines): writeBlock(lines)
            }
        }
    }

    /// A line in the tool's form of quotes, and what follows on a line of its own.
    mutating func quote(_ text: MarkedText) {
        breakLine()
        place("> ", [], max: 2)
        line = .within
        write(text)
        breakLine()
        if syntax.quotesGoOn { blanks.append("\n") }
    }

    // MARK: - Styles

    /// What stands at the ends of a part, for the marks beside it.
    struct Edges {
        enum Edge {
            case blank, word
            /// A character that is neither, and whether marks may stand beside it.
            case sign(isPlain: Bool)
        }

        var first: Edge
        var last: Edge

        init(_ part: MarkedText.Part) {
            switch part {
            case .text(let words, let style):
                first = Self.edge(words.unicodeScalars.first, style)
                last = Self.edge(words.unicodeScalars.last, style)
            case .link: (first, last) = (.word, .word)
            case .block: (first, last) = (.blank, .blank)
            }
        }

        private static func edge(_ scalar: Unicode.Scalar?, _ style: MarkedText.Style) -> Edge {
            guard let scalar else { return .word }
            if scalar.properties.isWhitespace { return .blank }
            return MarkupSyntax.isWord(scalar) ? .word : .sign(isPlain: style.isEmpty)
        }

        /// Whether the part has marks: these are none within a word or beside other marks.
        func isFree(_ before: Edge?, _ after: Edge?) -> Bool {
            func isFree(_ own: Edge, _ other: Edge?) -> Bool {
                if case .blank = own { return true }
                switch other {
                case nil, .blank?, .sign(isPlain: true)?: return true
                default: return false
                }
            }
            return isFree(first, before) && isFree(last, after)
        }
    }

    /// The part of a style that the syntax can show around `words`.
    func writable(_ style: MarkedText.Style, _ words: String) -> MarkedText.Style {
        var known = syntax.marks.reduce(MarkedText.Style()) { $0.union($1.style) }.intersection(style)
        let isCode = known.contains(.code) && !syntax.hasIRCCodes
        if isCode, words.contains(where: { $0 == "`" || $0.isNewline }) { known.remove(.code) }
        return known
    }

    private func openers(_ style: MarkedText.Style) -> String {
        syntax.marks.reduce("") { style.contains($1.style) ? $0 + $1.text : $0 }
    }

    private func closers(_ style: MarkedText.Style) -> String {
        syntax.marks.reversed().reduce("") { style.contains($1.style) ? $0 + $1.text : $0 }
    }

    // MARK: - Pieces

    mutating func append(_ text: String) {
        piece += text
        count += text.utf16.count
    }

    private mutating func endPiece() {
        append(closers(style))
        if !piece.isEmpty { pieces.append(piece) }
        (piece, count, blanks, style, line, lastBreak) = ("", 0, "", [], .start, nil)
    }

    mutating func breakLine() {
        if !piece.isEmpty, blanks.last != "\n" { blanks.append("\n") }
    }

    /// Ends the piece where no room is left for `needed` more characters in `next`, and their end.
    private mutating func makeRoom(_ needed: Int, _ next: MarkedText.Style) {
        guard isFull(needed, next), !piece.isEmpty else { return }
        if let cut = lastBreak, piece.utf16.distance(from: piece.startIndex, to: cut.headEnd) > limit - limit / 3 {
            let (tail, going, pending, state) = (String(piece[cut.tailStart...]), style, blanks, line)
            pieces.append(piece[..<cut.headEnd] + closers(cut.style))
            (piece, count, lastBreak) = ("", 0, nil)
            append(openers(cut.style) + tail)
            (style, blanks, line) = (going, pending, state)
            guard isFull(needed, next) else { return }
        }
        endPiece()
    }

    private func isFull(_ needed: Int, _ next: MarkedText.Style) -> Bool {
        // Line ends may be longer in this syntax.
        let taken = count + blanks.utf16.count * syntax.lineEnd.utf16.count + needed
        guard taken + Self.minCharacters > limit else { return false }
        return taken + closers(style).utf16.count + 2 * openers(next).utf16.count > limit
    }

    /// Places something that is not cut.
    ///
    /// - Parameter isMovable: it means the same at the beginning of a line.
    mutating func place(_ text: String, _ next: MarkedText.Style, max needed: Int, isMovable: Bool = true) {
        makeRoom(needed, next)
        if piece.isEmpty { blanks = "" }
        let hasLineEnd = blanks.contains("\n")
        if next != style || hasLineEnd {
            append(closers(style))
            style = []
        }
        let headEnd = piece.endIndex
        if !blanks.isEmpty {
            append(syntax.lineEnd == "\n" ? blanks : blanks.replacing("\n", with: syntax.lineEnd))
            if isMovable || hasLineEnd { lastBreak = Break(headEnd: headEnd, tailStart: piece.endIndex, style: style) }
            blanks = ""
        }
        if next != style {
            append(openers(next))
            style = next
        }
        append(text)
    }

    // MARK: - Words

    mutating func write(_ words: String, _ style: MarkedText.Style) {
        let characters = Array(words)
        var index = 0
        while index < characters.count {
            let character = characters[index]
            index += 1
            if character.isNewline {
                blanks.append("\n")
                line = .start
            } else if character.isWhitespace {
                blanks.append(character)
            } else if character == "@", let name = everybody(characters[index...]) {
                write(mention: name, style)
                index += name.count
            } else if character == "@", defusesMentions, syntax.mentionsNames, !style.contains(.code),
                index < characters.count, !characters[index].isWhitespace
            {
                write(mention: "", style)
            } else if character == "!", defusesMentions, syntax.mentionsNames, index > 1, characters[index - 2] == "<" {
                // Mattermost takes Slack's mentions too.
                place("\(MarkupSyntax.guardian)!", style, max: 2)
                line = .within
            } else {
                let before = index > 1 ? characters[index - 2].unicodeScalars.last : nil
                let after = index < characters.count ? characters[index].unicodeScalars.first : nil
                write(character, style, before, after)
            }
        }
    }

    private mutating func write(
        _ character: Character, _ style: MarkedText.Style, _ before: Unicode.Scalar?, _ after: Unicode.Scalar?
    ) {
        var longest = character.utf16.count
        guard longest <= limit / 4 else {
            for scalar in character.unicodeScalars { write(Character(scalar), style, nil, nil) }
            return
        }
        // An entity, or a zero-width space on either side.
        longest += 4
        makeRoom(longest, style)
        if piece.isEmpty { line = .start }
        let scalars = character.unicodeScalars
        let written =
            scalars.count == 1 && scalars.first?.isASCII == true ? escaped(scalars, style, before, after) : nil
        let text = written ?? String(character)
        guard !text.isEmpty else { return }
        let isLineMark = scalars.first.map { syntax.lineStart.contains($0) || ("0"..."9").contains($0) } ?? false
        place(text, style, max: longest, isMovable: !isLineMark)
        line = line != .within && ("0"..."9").contains(character) ? .number : .within
    }

    /// The form of an ASCII character, empty for a control; nil: itself.
    private func escaped(
        _ scalars: String.UnicodeScalarView, _ style: MarkedText.Style, _ before: Unicode.Scalar?,
        _ after: Unicode.Scalar?
    ) -> String? {
        guard let scalar = scalars.first else { return nil }
        if scalar.value < 0x20 || scalar.value == 0x7F { return "" }
        var text = entity(scalar)
        if style.contains(.code) { return text }
        let guardian = String(MarkupSyntax.guardian)
        let isWithinWord =
            syntax.wordBound.contains(scalar) && [before, after].allSatisfy { $0.map(isLetter) ?? false }
        if let other = syntax.substitutes[scalar], !isWithinWord { text = String(other) }
        if isWithinWord { return text }
        if syntax.backslashed.contains(scalar) { return "\\" + (text ?? String(scalar)) }
        // Not the mark of an image.
        if scalar == "!", after == nil, precedesLink, syntax.hasMarkdownLinks {
            return syntax.backslashed.isEmpty ? "!" + guardian : "\\!"
        }
        if syntax.guarded.contains(scalar) { return guardian + (text ?? String(scalar)) + guardian }
        let isLineMark = line == .start && scalar != "." || line == .number && scalar == "."
        guard isLineMark, syntax.lineStart.contains(scalar) else { return text }
        return (syntax.backslashed.isEmpty ? guardian : "\\") + (text ?? String(scalar))
    }

    private func isLetter(_ scalar: Unicode.Scalar) -> Bool {
        MarkupSyntax.isWord(scalar) && scalar != MarkupSyntax.guardian
    }

    func entity(_ scalar: Unicode.Scalar) -> String? {
        guard syntax.hasEntities else { return nil }
        switch scalar {
        case "&": return "&amp;"
        case "<": return "&lt;"
        case ">": return "&gt;"
        default: return nil
        }
    }

    /// The name for all members at the beginning of `rest`, as a word of its own.
    private func everybody(_ rest: ArraySlice<Character>) -> String? {
        MarkupSyntax.everybody.first { name in
            guard rest.count >= name.count,
                rest.prefix(name.count).elementsEqual(name, by: { $0.lowercased() == String($1) })
            else { return false }
            return !(rest.dropFirst(name.count).first?.unicodeScalars.first.map(isLetter) ?? false)
        }
    }

    private mutating func write(mention name: String, _ style: MarkedText.Style) {
        let text =
            if style.contains(.code) {
                "@\(name)"
            } else if defusesMentions {
                syntax.emphases.isEmpty ? "@\(name)" : "@\(MarkupSyntax.guardian)\(name)"
            } else if case .slack = syntax.angleForm, name != "all" {
                "<!\(name)>"
            } else {
                "@\(name)"
            }
        place(text, style, max: text.utf16.count)
        line = .within
    }
}
