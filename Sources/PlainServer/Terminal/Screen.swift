/// What a person sees: lines that stay, and in character mode below them one row about the moment and the line being typed.
///
/// In line mode the person's own terminal shows what is typed, so nothing is drawn but lines.
struct Screen {
    enum Mode {
        case lines
        case characters
    }

    /// What the terminal can do.
    struct Abilities: Equatable {
        /// It moves the cursor by control sequences.
        var hasCursor = false
        var hasColour = false

        init() {}

        /// - Parameter terminalType: in lower case.
        init(terminalType: String) {
            let isKnown = Self.known.contains { terminalType.hasPrefix($0) }
            hasCursor = isKnown
            hasColour = isKnown && !terminalType.hasPrefix("vt")
        }

        private static let known = [
            "xterm", "screen", "tmux", "rxvt", "linux", "ansi", "vt1", "vt2", "vt3", "vt4", "vt5", "konsole", "gnome",
            "putty",
            "alacritty", "foot", "kitty", "st-", "cygwin", "iterm", "wezterm", "contour", "eterm", "vte", "nsterm",
            "mintty",
        ]
    }

    /// Narrower than this nothing can be laid out; wider is no terminal of a person.
    private static let usableColumns = 20...1000
    private static let assumedColumns = 80
    private static let indent = 6

    private(set) var mode = Mode.lines
    private var abilities = Abilities()
    /// Nil: not known.
    private var columns: Int?
    private var output = ""
    /// What is asked, in front of the line being typed.
    private var prompt = ""
    /// In line mode: the row with the question, while neither its answer's Enter nor anything else has ended it.
    private var question = Question.none
    /// About this moment: who is typing, how far a message is.
    private var status = ScreenText()
    /// The line is not shown, as it is a password.
    private var isSecret = false
    /// What was drawn below the lines that stay; nil: nothing.
    private var drawn: Drawing?

    private enum Question {
        case none
        /// In the output: no Enter that has arrived so far was pressed on this row.
        case written
        case sent
    }

    private struct Drawing: Equatable {
        var status: String
        var row: String
        /// Columns in front of the cursor, and in all.
        var cursor: Int
        var width: Int
    }

    mutating func takeOutput() -> String {
        defer { output = "" }
        if question == .written { question = .sent }
        return output
    }

    /// There is a row about the moment.
    var hasStatus: Bool { mode == .characters && abilities.hasCursor }

    mutating func setAbilities(terminalType: String) { abilities = Abilities(terminalType: terminalType) }

    mutating func setColumns(_ count: Int) { columns = Self.usableColumns.contains(count) ? count : nil }

    mutating func change(to mode: Mode) {
        guard mode != self.mode else { return }
        erase()
        self.mode = mode
        guard mode == .characters else { return }
        if question == .none {
            output += "\r"
        } else {
            let width = TextWidth.of(prompt)
            drawn = Drawing(status: "", row: "", cursor: width, width: width)
        }
        question = .none
    }

    // MARK: - Lines that stay

    mutating func show(_ text: ScreenText) {
        erase()
        question = .none
        for line in text.wrapped(columns: columns, indent: Self.indent) {
            output += line.written(hasColour: abilities.hasColour) + "\r\n"
        }
    }

    /// Asks on the row of the cursor, where the answer follows.
    mutating func ask(_ question: String) {
        prompt = question
        guard mode == .lines else { return }
        output += question
        self.question = .written
    }

    /// Asks the same in these words.
    mutating func rephrase(_ question: String) {
        guard question != prompt else { return }
        if self.question != .none { output += "\r" + String(repeating: " ", count: TextWidth.of(prompt)) + "\r" }
        ask(question)
    }

    /// The person's own terminal has gone on to the next row.
    mutating func enterPressed() { if question == .sent { question = .none } }

    /// Leaves the row as it is, with this text as what was typed, and goes on below.
    mutating func leaveRow(_ text: String) {
        if mode == .lines {
            if question != .none { output += text + "\r\n" }
            question = .none
        } else {
            erase()
            let characters = Array(text)
            output += drawing(characters, cursor: characters.count).row + "\r\n"
        }
    }

    /// Everything is to be drawn again, as something else has written on the terminal.
    mutating func forget() {
        erase()
        drawn = nil
    }

    /// What is written next goes over what is on the cursor's row.
    mutating func returnToStart() { output += "\r" }

    mutating func beep() { output += "\u{7}" }

    // MARK: - The line being typed

    mutating func setPrompt(_ prompt: String) { self.prompt = prompt }

    mutating func setStatus(_ status: ScreenText) { self.status = status }

    mutating func setSecret(_ isSecret: Bool) { self.isSecret = isSecret }

    private mutating func erase() {
        guard let drawn else { return }
        self.drawn = nil
        if abilities.hasCursor {
            output += drawn.status.isEmpty ? "\r\u{1B}[J" : "\r\u{1B}[A\u{1B}[J"
        } else {
            output += "\r" + String(repeating: " ", count: drawn.width) + "\r"
        }
    }

    /// Draws again what has changed below the lines; behind everything else of a turn.
    mutating func draw(_ editor: LineEditor) {
        guard mode == .characters else { return }
        let next = isSecret ? drawing([], cursor: 0) : drawing(editor.characters, cursor: editor.cursor)
        guard next != drawn else { return }
        if let drawn, drawn.status == next.status {
            output += extending(drawn, to: next) ?? "\r" + row(next, over: drawn.width)
        } else {
            erase()
            output += (next.status.isEmpty ? "" : next.status + "\r\n") + row(next, over: 0)
        }
        drawn = next
    }

    /// From the cursor on, where something was typed at the end.
    private func extending(_ old: Drawing, to new: Drawing) -> String? {
        guard old.cursor == old.width, new.cursor == new.width, new.row.utf8.starts(with: old.row.utf8) else {
            return nil
        }
        // A mark that changes the character before needs the whole row.
        let added = String(decoding: Array(new.row.utf8).dropFirst(old.row.utf8.count), as: UTF8.self)
        return TextWidth.of(added) == new.width - old.width ? added : nil
    }

    private func row(_ drawing: Drawing, over width: Int) -> String {
        var text = drawing.row
        var back = drawing.width - drawing.cursor
        if abilities.hasCursor {
            text += "\u{1B}[K"
        } else if width > drawing.width {
            text += String(repeating: " ", count: width - drawing.width)
            back += width - drawing.width
        }
        guard back > 0 else { return text }
        return text + (abilities.hasCursor ? "\u{1B}[\(back)D" : String(repeating: "\u{8}", count: back))
    }

    /// The part of the line around the cursor that fits.
    private func drawing(_ characters: [Character], cursor: Int) -> Drawing {
        let columns = (columns ?? Self.assumedColumns) - 1
        let question = String(ScreenText(prompt).prefix(columns: columns / 2).written(hasColour: false))
        let asked = TextWidth.of(question)
        var start = cursor
        var width = 0
        // To the left of the cursor as much as three quarters, and all where it fits.
        let left = (columns - asked) * 3 / 4
        let isWhole = asked + TextWidth.of(characters) <= columns
        while start > 0 {
            let next = TextWidth.of(characters[start - 1])
            guard isWhole || width + next <= left else { break }
            width += next
            start -= 1
        }
        var text = question + String(characters[start..<cursor])
        let before = asked + width
        var all = before
        for character in characters[cursor...] {
            let next = TextWidth.of(character)
            guard all + next <= columns else { break }
            text.append(character)
            all += next
        }
        let status =
            abilities.hasCursor ? self.status.prefix(columns: columns).written(hasColour: abilities.hasColour) : ""
        return Drawing(status: status, row: text, cursor: before, width: all)
    }
}
