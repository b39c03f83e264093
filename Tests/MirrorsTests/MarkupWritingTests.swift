import BridgeTestSupport
import Mirrors
import Testing

@Suite struct MarkupWritingTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var syntax: MarkupSyntax
        var parts: [MarkedText.Part]
        var text: String

        init(_ syntax: MarkupSyntax, _ parts: [MarkedText.Part], _ text: String) {
            self.syntax = syntax
            self.parts = parts
            self.text = text
        }

        var testDescription: String { text.debugDescription }
    }

    private static let styled: [MarkedText.Part] = [
        .text("a "), .text("bold ", .bold), .text("both", [.bold, .italic]), .text(" "), .text("s", .strikethrough),
        .text(" "), .text("u", .underline), .text(" "), .text("c*d", .code),
    ]

    @Test(arguments: [
        Case(.slack, styled, "a *bold* *_both_* ~s~ u `c*d`"),
        Case(.discord, styled, "a **bold** ***both*** ~~s~~ __u__ `c*d`"),
        Case(.mattermost, styled, "a **bold** ***both*** ~~s~~ u `c*d`"),
        Case(.rocketChat, styled, "a *bold* *_both_* ~s~ u `c*d`"),
        Case(.teamsCard, styled, "a **bold** **_both_** s u c\\*d"),
        Case(.plain, styled, "a bold both s u c*d"),
        Case(
            .irc, styled, "a \u{02}bold\u{02} \u{02}\u{1D}both\u{1D}\u{02} \u{1E}s\u{1E} \u{1F}u\u{1F} \u{11}c*d\u{11}"),
        // Marks end with their line, and are none within a word.
        Case(.slack, [.text("a\n b", .bold)], "*a*\n *b*"),
        Case(.discord, [.text("un"), .text("believ", .bold), .text("able")], "unbelievable"),
        Case(.irc, [.text("un"), .text("believ", .bold), .text("able")], "un\u{02}believ\u{02}able"),
        // What would be markup.
        Case(
            .slack, [.text("*a* snake_case `x` <@U1> &")],
            "\u{200B}*\u{200B}a\u{200B}*\u{200B} snake_case \u{200B}`\u{200B}x\u{200B}`\u{200B} &lt;@U1&gt; &amp;"),
        Case(.slack, [.text("> q")], "\u{200B}&gt; q"),
        Case(.discord, [.text("**a** <@1> ||b|| [c](http://d)")], "\\*\\*a\\*\\* \\<@1> \\|\\|b\\|\\| \\[c](http://d)"),
        Case(.discord, [.text("# h\n- l\n1. n\n> q\na - b")], "\\# h\n\\- l\n1\\. n\n\\> q\na - b"),
        Case(.mattermost, [.text("~town &amp; a_b _c_")], "\\~town \\&amp; a_b \\_c\\_"),
        Case(.rocketChat, [.text("*a* [b](c) > d")], "\u{2217}a\u{2217} [b\u{200B}]\u{200B}(c) > d"),
        Case(.teamsCard, [.text("a\nb *c*")], "a\n\nb \\*c\\*"),
        Case(.irc, [.text("a\u{02}b\0\u{03}4c")], "ab4c"),
        // Mentions of everybody.
        Case(.slack, [.text("@here @channel. @hereby")], "@\u{200B}here @\u{200B}channel. @hereby"),
        Case(.discord, [.text("@everyone @HERE")], "@\u{200B}everyone @\u{200B}here"),
        Case(.mattermost, [.text("@all me@all")], "@\u{200B}all me@\u{200B}all"),
        Case(.plain, [.text("@all")], "@all"),
        // Links.
        Case(
            .slack, [.link("https://x.org/?a=1&b=<|>"), .text(" "), .link("https://x.org", label: "<a|b>")],
            "<https://x.org/?a=1&amp;b=%3C%7C%3E> <https://x.org|&lt;ab&gt;>"),
        Case(
            .discord, [.link("https://x.org/a_b"), .text(" "), .link("https://x.org/(a)", label: "l*[]")],
            "https://x.org/a_b [l\\*\\[\\]](https://x.org/%28a%29)"),
        Case(.discord, [.text("("), .link("https://x.org"), .text(")")], "(<https://x.org>)"),
        Case(.rocketChat, [.text("("), .link("https://x.org"), .text(")")], "([https://x.org](https://x.org))"),
        Case(.discord, [.link("javascript:x", label: "l")], "l (javascript:x)"),
        Case(.irc, [.link("https://x.org", label: "l")], "l (https://x.org)"),
        Case(.discord, [.link("https://x.org", .bold)], "https://x.org"),
        Case(.slack, [.link("https://x.org", .bold)], "*<https://x.org>*"),
        // Blocks.
        Case(.slack, [.text("a"), .block("x <y>\n*z*"), .text("b")], "a\n```\nx &lt;y&gt;\n*z*\n```\nb"),
        Case(.discord, [.block("a```b")], "```\na``\u{200B}`b\n```"),
        Case(.plain, [.text("a"), .block("x\ny"), .text("b")], "a\nx\ny\nb"),
        Case(.irc, [.text("a"), .block("x\n\ny")], "a\n\u{11}x\u{11}\n\n\u{11}y\u{11}"),
    ])
    func writes(_ row: Case) {
        #expect(MarkedText(row.parts).written(as: row.syntax) == [row.text])
    }

    @Test func mentionsWhereTheyAreWanted() {
        let text = MarkedText(plain: "@here and @everyone, @all")
        #expect(text.written(as: .slack, defusesMentions: false) == ["<!here> and <!everyone>, @all"])
        #expect(text.written(as: .discord, defusesMentions: false) == ["@here and @everyone, @all"])
    }

    @Test(arguments: ["", " ", "\n\n", "\0"])
    func nothingIsNothing(_ text: String) {
        for syntax in MarkupReadingTests.all { #expect(MarkedText(plain: text).written(as: syntax) == []) }
    }

    // MARK: - Cutting

    @Test func cutsBehindWords() {
        let words = (0..<30).map { "word\($0)" }.joined(separator: " ")
        let pieces = MarkedText([.text(words, .bold)]).written(as: .discord, maxCharacters: 64)
        #expect(pieces.count > 3)
        #expect(pieces.allSatisfy { $0.utf16.count <= 64 && $0.hasPrefix("**word") && $0.hasSuffix("**") })
        #expect(pieces.map { $0.dropFirst(2).dropLast(2) }.joined(separator: " ") == words)
    }

    @Test func blocksAreClosedAndOpenedAgain() {
        let lines = (0..<20).map { "line \($0)" }.joined(separator: "\n")
        let pieces = MarkedText([.block(lines)]).written(as: .slack, maxCharacters: 64)
        #expect(pieces.count > 2)
        #expect(pieces.allSatisfy { $0.utf16.count <= 64 && $0.hasPrefix("```\n") && $0.hasSuffix("\n```") })
    }

    @Test func linksAndClustersAreNotCut() {
        let link = MarkedText.Part.link("https://example.org/path", label: "label")
        let flags = MarkedText.Part.text(String(repeating: "👨‍👩‍👧‍👦", count: 10))
        let pieces = MarkedText([.text(String(repeating: "x", count: 80)), .text(" "), link, .text(" "), flags])
            .written(
                as: .discord, maxCharacters: 100)
        #expect(pieces.contains { $0.contains("[label](https://example.org/path)") })
        #expect(pieces.joined().filter { $0 == "👨‍👩‍👧‍👦" }.count == 10)
    }

    // MARK: - Properties

    /// Random texts of what matters to the tools.
    private static func randomText(_ random: inout SeededGenerator, maxUnits: Int) -> String {
        let units = [
            "a", "b1", "*", "**", "_", "__", "~", "~~", "<", ">", "&", "&amp;", "\\", "|", "||", "[", "](", ")", "#",
            "- ",
            "1. ", "@here", "<@U1>", "<@1>", " ", " ", "\n", "é", "e\u{301}", "👩‍👩‍👧", "❤️", ":", "!", "```", "`", "``", "+",
            "=",
            "\u{05D0}", "漢", "x_y", ".",
        ]
        return (0..<Int.random(in: 1...maxUnits, using: &random)).map { _ in
            units[Int.random(in: 0..<units.count, using: &random)]
        }.joined()
    }

    /// Without white space, of which writing moves some, and with the characters for which Rocket.Chat has no escape.
    private static func essence(_ text: String) -> String {
        let text = text.replacing("%28", with: "(").replacing("%29", with: ")")
        let alike: [Character: Character] = ["\u{2217}": "*", "\u{FF3F}": "_", "\u{223C}": "~", "\u{02CB}": "`"]
        return String(text.filter { !$0.isWhitespace }.map { alike[$0] ?? $0 })
    }

    /// What a reader sees.
    private static func words(_ written: String, _ syntax: MarkupSyntax) -> String {
        let words = essence(MarkedText(written, as: syntax).plain)
        return words
    }

    private static let readable: [MarkupSyntax] = [.slack, .discord, .mattermost, .rocketChat, .teamsCard]

    @Test(arguments: LawSeeds.seeds(100))
    func plainTextStaysPlain(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let text = Self.randomText(&random, maxUnits: 30)
        for syntax in Self.readable {
            let written = MarkedText(plain: text).written(as: syntax).joined()
            let read = MarkedText(written, as: syntax)
            #expect(read.parts.count <= 1, "\(random): \(text.debugDescription) is \(written.debugDescription)")
            #expect(
                Self.essence(read.plain) == Self.essence(text), "\(random): \(written.debugDescription)")
        }
    }

    private static func randomMarked(_ random: inout SeededGenerator) -> MarkedText {
        MarkedText(
            (0..<Int.random(in: 1...6, using: &random)).map { _ in
                let words = randomText(&random, maxUnits: 8)
                let style = MarkedText.Style(rawValue: UInt8.random(in: 0..<16, using: &random))
                switch Int.random(in: 0..<6, using: &random) {
                case 0: return .link("https://x.org/a_b?c=(d)&e", style)
                case 1: return .link("https://x.org/\(words.utf8.count)", label: "label", style)
                case 2: return .block(words.filter { $0 != "`" } + "x")
                case 3: return .text(words, .code)
                default: return .text(words, style)
                }
            })
    }

    @Test(arguments: LawSeeds.seeds(100))
    func wordsAreTheSameInEveryTool(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let text = Self.randomMarked(&random)
        for syntax in Self.readable {
            let written = text.written(as: syntax).joined()
            #expect(
                Self.words(written, syntax) == Self.essence(text.plain),
                "\(random): \(text.parts) is \(written.debugDescription)"
            )
        }
    }

    @Test(arguments: LawSeeds.seeds(60))
    func cuttingLosesNothing(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let text = MarkedText((0..<8).flatMap { _ in Self.randomMarked(&random).parts })
        let limit = Int.random(in: 100...200, using: &random)
        for syntax in Self.readable {
            let pieces = text.written(as: syntax, maxCharacters: limit)
            #expect(pieces.allSatisfy { $0.utf16.count <= limit }, "\(random)")
            let plain = pieces.map { Self.words($0, syntax) }.joined()
            let whole = text.written(as: syntax).map { Self.words($0, syntax) }.joined()
            #expect(plain == whole, "\(random)")
        }
    }
}
