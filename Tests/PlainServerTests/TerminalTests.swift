import Testing

@testable import PlainServer

@Suite("What people type, and what they see")
struct TerminalTests {
    private func keys(_ bytes: [UInt8]) -> [Key] {
        var reader = KeyReader()
        return bytes.compactMap { reader.received($0) }
    }

    @Test("keys of terminals")
    func keys() {
        let rows: [(String, [Key])] = [
            ("a\r\n", [.scalar("a"), .enter]), ("a\r\0b", [.scalar("a"), .enter, .scalar("b")]), ("\n", [.enter]),
            ("\r\r", [.enter, .enter]), ("é汤🍳", [.scalar("é"), .scalar("汤"), .scalar("🍳")]),
            ("\u{1B}[A\u{1B}OB", [.up, .down]), ("\u{1B}[3~\u{1B}[1~\u{1B}[8~", [.delete, .home, .end]),
            ("\u{1B}[1;5C", [.right]), ("\u{1B}[200~x", [.scalar("x")]), ("\u{1B}xy", [.scalar("y")]),
            (
                "\u{7F}\u{8}\t\u{3}\u{4}\u{15}\u{17}",
                [.backspace, .backspace, .tab, .interrupt, .endOfInput, .eraseLine, .eraseWord]
            ),
            (
                "\u{1}\u{2}\u{5}\u{6}\u{B}\u{C}\u{E}\u{10}",
                [.home, .left, .end, .right, .eraseToEnd, .redraw, .down, .up]
            ),
        ]
        for (text, wanted) in rows { #expect(keys(Array(text.utf8)) == wanted, "\(text.debugDescription)") }
    }

    @Test("what is no UTF-8 is said to be none, and nothing after it is lost")
    func unreadable() {
        #expect(keys([0xFF, 0x61]) == [.unreadable, .scalar("a")])
        #expect(keys([0xC0, 0x80, 0x61]).last == .scalar("a"))
        #expect(keys([0xED, 0xA0, 0x80, 0x0D]) == [.unreadable, .enter])
        #expect(keys([0xE2, 0x0D]) == [.enter])
        #expect(keys([0xC2, 0x9B]) == [], "a control of terminals")
    }

    @Test("a backspace takes what people see as one")
    func backspace() {
        for text in ["a", "é", "e\u{301}", "🍳", "👩\u{200D}🍳", "👍🏽", "🇫🇷", "汤", "한", "✈\u{FE0F}"] {
            var editor = LineEditor()
            editor.insert("x" + text)
            editor.backspace()
            #expect(editor.text == "x", "\(text)")
            #expect(editor.byteCount == 1)
        }
    }

    @Test("a line is bounded, and says so until it is empty")
    func bounded() {
        var editor = LineEditor()
        for _ in 0..<LineEditor.maxBytes + 10 { editor.insert("x") }
        #expect(editor.byteCount == LineEditor.maxBytes && editor.isTooLong)
        editor.eraseToStart()
        #expect(editor.isEmpty && !editor.isTooLong)
    }

    @Test("the arrows go through what was typed, and back to what is being typed")
    func history() {
        var editor = LineEditor()
        for line in ["one", "two", "two"] {
            editor.insert(line)
            _ = editor.take(isKept: true)
        }
        editor.insert("dra")
        var seen: [String] = []
        for isBack in [true, true, true, false, false, false] {
            if isBack { editor.earlier() } else { editor.later() }
            seen.append(editor.text)
        }
        #expect(seen == ["two", "one", "one", "two", "dra", "dra"])
    }

    @Test("columns of characters")
    func widths() {
        let rows: [(Character, Int)] = [
            ("a", 1), ("é", 1), ("e\u{301}", 1), ("汤", 2), ("한", 2), ("🍳", 2), ("👩\u{200D}🍳", 2), ("🇫🇷", 2),
            ("✈\u{FE0F}", 2),
            ("✈", 1), ("\u{200B}", 0), ("ｱ", 1), ("Ａ", 2), ("→", 1),
        ]
        for (character, width) in rows { #expect(TextWidth.of(character) == width, "\(character)") }
    }

    @Test("nothing of a text is an order to the terminal")
    func printable() {
        let rows = [
            ("a\u{1B}[2Jb", "a[2Jb"), ("a\u{7}\u{9B}b\u{7F}", "ab"), ("\u{2}bold\u{2}", "bold"),
            ("\u{3}04,12red", "red"),
            ("\u{3}7 1", " 1"), ("\u{202E}evil", "evil"), ("汤🍳", "汤🍳"), ("a\nb\rc", "abc"), ("\u{3}12345", "345"),
        ]
        for (text, shown) in rows { #expect(ScreenText.printable(text) == shown, "\(text.debugDescription)") }
    }

    @Test("lines break at words where there are any, and never in a wide character")
    func wrapping() {
        func wrapped(_ text: String, _ columns: Int) -> [String] {
            ScreenText(text).wrapped(columns: columns, indent: 2).map { $0.written(hasColour: false) }
        }
        #expect(wrapped("the soup is ready now", 12) == ["the soup is", "  ready now"])
        #expect(wrapped("汤汤汤汤汤汤汤", 11) == ["汤汤汤汤汤", "  汤汤"])
        #expect(wrapped("short", 80) == ["short"])
        #expect(wrapped("", 80) == [""])
        for columns in 11...30 {
            for line in wrapped("12:01 <Remy> a 汤 word, anotherlongerword and 🍳 some more of it", columns) {
                #expect(TextWidth.of(line) <= columns, "\(columns): \(line)")
            }
        }
    }

    @Test("what is typed stands below what is said, and is drawn again around it")
    func redrawing() {
        for type in ["xterm", "dumb"] {
            var screen = Screen()
            screen.setAbilities(terminalType: type)
            screen.setColumns(40)
            screen.change(to: .characters)
            screen.setPrompt("> ")
            var editor = LineEditor()
            editor.insert("half a li")
            screen.draw(editor)
            #expect(screen.takeOutput().contains("> half a li"))
            editor.insert("n")
            screen.draw(editor)
            #expect(screen.takeOutput() == "n", "no more than the letter")
            screen.show(ScreenText("12:01 <Remy> hi"))
            screen.draw(editor)
            let output = screen.takeOutput()
            #expect(output.hasPrefix("\r"))
            #expect(output.contains("12:01 <Remy> hi\r\n") && output.contains("> half a lin"))
            screen.draw(editor)
            #expect(screen.takeOutput() == "", "nothing has changed")
            screen.setSecret(true)
            screen.draw(editor)
            #expect(!screen.takeOutput().contains("half"))
        }
    }
}
