/// Text in front of a person: pieces with a style each, from which everything is gone that a terminal takes for a command.
struct ScreenText: Equatable, ExpressibleByStringLiteral {
    enum Style: Equatable {
        case plain
        /// Of lesser importance: times, dividers, news of the room.
        case dim
        case bold
        case failure
        /// A person's own colour, by a number of theirs.
        case person(Int)
    }

    struct Piece: Equatable {
        var text: String
        var style: Style
    }

    private(set) var pieces: [Piece] = []

    init() {}

    init(_ text: String, _ style: Style = .plain) { append(text, style) }

    init(stringLiteral text: String) { append(text) }

    var isEmpty: Bool { pieces.allSatisfy(\.text.isEmpty) }

    mutating func append(_ text: String, _ style: Style = .plain) {
        pieces.append(Piece(text: Self.printable(text), style: style))
    }

    func appending(_ text: String, _ style: Style = .plain) -> Self {
        var copy = self
        copy.append(text, style)
        return copy
    }

    /// Without controls of terminals and of IRC's formatting, and without what turns the direction of the text around it.
    static func printable(_ text: String) -> String {
        if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text }
        var kept = String.UnicodeScalarView()
        var digits = 0
        var isColour = false
        for scalar in text.unicodeScalars {
            // A colour of IRC is followed by up to two numbers. Source: modern.ircdocs.horse/formatting.
            if isColour {
                if ("0"..."9").contains(scalar), digits % 3 < 2, digits < 5 {
                    digits += 1
                    continue
                }
                if scalar == ",", digits == 1 || digits == 2 {
                    digits = 3
                    continue
                }
                isColour = false
            }
            switch scalar.value {
            case 0x03: (isColour, digits) = (true, 0)
            case 0x00..<0x20, 0x7F...0x9F, 0x202A...0x202E, 0x2066...0x2069, 0x200E, 0x200F, 0x2028, 0x2029: break
            default: kept.append(scalar)
            }
        }
        return String(kept)
    }

    /// Lines of at most so many columns, broken at spaces where there are any; those behind the first are indented.
    func wrapped(columns: Int?, indent: Int) -> [ScreenText] {
        guard let columns, columns > indent + 8 else { return [self] }
        var lines: [ScreenText] = []
        var line: [(character: Character, style: Style)] = []
        var width = 0
        func flush(_ count: Int) {
            lines.append(Self.line(line[..<count], indent: lines.isEmpty ? 0 : indent))
        }
        for piece in pieces {
            for character in piece.text {
                let columnsOfIt = TextWidth.of(character)
                if width + columnsOfIt > columns - (lines.isEmpty ? 0 : indent) {
                    if character == " " {
                        // The break takes its place.
                        flush(line.count)
                        (line, width) = ([], 0)
                        continue
                    }
                    // Words are kept whole that take no more than the rest of a line.
                    let space = line.lastIndex { $0.character == " " }
                    let cut = space.map { $0 + 1 > line.count / 2 ? $0 : line.count } ?? line.count
                    flush(cut)
                    line.removeFirst(min(line.count, cut < line.count ? cut + 1 : cut))
                    width = line.reduce(0) { $0 + TextWidth.of($1.character) }
                }
                line.append((character, piece.style))
                width += columnsOfIt
            }
        }
        if !line.isEmpty || lines.isEmpty { flush(line.count) }
        return lines
    }

    private static func line(_ characters: ArraySlice<(character: Character, style: Style)>, indent: Int) -> ScreenText
    {
        var text = ScreenText()
        if indent > 0 { text.pieces.append(Piece(text: String(repeating: " ", count: indent), style: .plain)) }
        for (character, style) in characters {
            if text.pieces.last?.style == style, let last = text.pieces.indices.last {
                text.pieces[last].text.append(character)
            } else {
                text.pieces.append(Piece(text: String(character), style: style))
            }
        }
        return text
    }

    /// The beginning of the text that fits so many columns.
    func prefix(columns: Int) -> ScreenText {
        var text = ScreenText()
        var width = 0
        for piece in pieces {
            var part = ""
            for character in piece.text {
                width += TextWidth.of(character)
                if width > columns { break }
                part.append(character)
            }
            text.pieces.append(Piece(text: part, style: piece.style))
            if width > columns { break }
        }
        return text
    }

    /// - Parameter hasColour: the terminal shows styles.
    func written(hasColour: Bool) -> String {
        pieces.map { piece in
            guard hasColour, let code = Self.code(piece.style), !piece.text.isEmpty else { return piece.text }
            return "\u{1B}[\(code)m\(piece.text)\u{1B}[0m"
        }.joined()
    }

    /// Colours that can be read on light and dark ground.
    private static let colours = [31, 32, 33, 34, 35, 36]

    /// Source: ECMA-48 §8.3.117 (SGR).
    private static func code(_ style: Style) -> String? {
        switch style {
        case .plain: nil
        case .dim: "2"
        case .bold: "1"
        case .failure: "31"
        case .person(let number): "1;\(colours[abs(number % colours.count)])"
        }
    }
}
