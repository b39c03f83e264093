import BridgeTestSupport
import IRCProtocol
import Testing

private struct SplitRow: Sendable, CustomTestStringConvertible {
    let name: String
    let text: String
    let budget: Int
    let pieces: [String]
    var testDescription: String { name }

    init(_ name: String, _ text: String, _ budget: Int, _ pieces: String...) {
        self.name = name
        self.text = text
        self.budget = budget
        self.pieces = pieces
    }
}

private let family = "👩‍👩‍👧"  // 18 bytes
private let flags = "🇩🇪🇫🇷"  // 8 bytes each

private let splitRows: [SplitRow] = [
    SplitRow("an empty text", "", 10, ""),
    SplitRow("a text that fits", "0123456789", 10, "0123456789"),
    SplitRow("no white space", "0123456789ab", 10, "0123456789", "ab"),
    SplitRow("white space near the end of the piece", "0123456 89abc", 10, "0123456 ", "89abc"),
    SplitRow("white space too far in front", "01 3456789ab", 10, "01 3456789", "ab"),
    SplitRow("the last white space is taken", "01234 6 89abc", 10, "01234 6 ", "89abc"),
    SplitRow("white space as the last byte that fits", "012345678 abc", 10, "012345678 ", "abc"),
    SplitRow("white space just beyond", "0123456789 abc", 10, "0123456789", " abc"),
    SplitRow("only white space", "            ", 10, "          ", "  "),
    SplitRow(
        "a space under a combining mark is no white space", "012345 \u{301}9abcd", 10, "012345 \u{301}9", "abcd"),
    SplitRow("two-byte letters", "ééééé", 5, "éé", "éé", "é"),
    SplitRow("combining marks stay", "abce\u{301}e\u{301}", 5, "abc", "e\u{301}", "e\u{301}"),
    SplitRow("a family stays", "ab" + family + family, 20, "ab" + family, family),
    SplitRow("flags stay in pairs", flags, 12, "🇩🇪", "🇫🇷"),
    SplitRow("a cluster beyond the budget is cut between code points", "👩‍👩", 5, "👩", "\u{200D}", "👩"),
    SplitRow("a budget below a code point counts as 4", "😀😀", 1, "😀", "😀"),
    SplitRow("a negative budget counts as 4", "😀😀", -7, "😀", "😀"),
]

@Suite("IRC text splitter")
struct TextTests {
    @Test("a text is cut where it should be", arguments: splitRows)
    fileprivate func splits(row: SplitRow) {
        let pieces = IRCTextSplitter.split(row.text, budget: row.budget)
        #expect(pieces.map { Array($0.utf8) } == row.pieces.map { Array($0.utf8) })
    }

    @Test(
        "pieces rejoin, keep their budget and cut no cluster that fits", arguments: LawSeeds.seeds(40))
    func law(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let alphabet = [
            "a", "b", " ", "  ", "é", "e\u{301}\u{302}", "本", family, "🇩🇪", "🇫", "👍🏽", "\u{301}", "\u{200D}", "각", "ᄀ",
            "ᆨ",
            "\u{0600}", "क्षि", "\u{FE0F}", "\t", "\r\n",
        ]
        for _ in 0..<30 {
            let text = (0..<Int.random(in: 0..<90, using: &generator))
                .map { _ in alphabet.randomElement(using: &generator) ?? "" }.joined()
            let budget = Int.random(in: 4..<60, using: &generator)
            let pieces = IRCTextSplitter.split(text, budget: budget)
            #expect(pieces.flatMap { Array($0.utf8) } == Array(text.utf8), "seed \(seed)")
            #expect(pieces.allSatisfy { $0.utf8.count <= budget }, "seed \(seed)")
            #expect(text.isEmpty || !pieces.contains(""), "seed \(seed)")
            var boundaries: Set<Int> = [0]
            var insideLargeCluster: Set<Int> = []
            var offset = 0
            for cluster in text {
                let size = cluster.utf8.count
                if size > budget { insideLargeCluster.formUnion(offset...(offset + size)) }
                offset += size
                boundaries.insert(offset)
            }
            var cut = 0
            for piece in pieces {
                cut += piece.utf8.count
                #expect(boundaries.contains(cut) || insideLargeCluster.contains(cut), "seed \(seed)")
            }
        }
    }

    @Test("pieces are not needlessly small: no two neighbours of a text without white space would fit together")
    func density() {
        let text = String(repeating: "aé本😀", count: 300)
        let pieces = IRCTextSplitter.split(text, budget: 100)
        for (one, next) in zip(pieces, pieces.dropFirst()) { #expect(one.utf8.count + next.utf8.count > 100) }
    }

    @Test(
        "a word that is an address is cut only when it fits no piece",
        arguments: [
            ("a https://x/yz", 14, ["a https://x/yz"]), ("a https://x/yz", 13, ["a ", "https://x/yz"]),
            ("a b c https://x/yz d", 12, ["a b c ", "https://x/yz", " d"]),
            ("a https://x/yz", 11, ["a https://x", "/yz"]), ("é <https://x/y> z", 14, ["é ", "<https://x/y> ", "z"]),
            ("a httpsxxx/yzzz", 13, ["a httpsxxx/yz", "zz"]), ("a b:/ c:// d", 8, ["a b:/ ", "c:// d"]),
            ("://a ://b ://c", 5, ["://a ", "://b ", "://c"]),
        ])
    func addresses(text: String, budget: Int, pieces: [String]) {
        #expect(IRCTextSplitter.split(text, budget: budget) == pieces)
    }

    @Test("hostile texts take linear time", arguments: ["\u{301}", "🇩", "\u{200D}", "a", " ", "👩\u{200D}", "क्"])
    func hostile(unit: String) {
        let text = String(repeating: unit, count: 200_000)
        let pieces = IRCTextSplitter.split("x" + text, budget: 400)
        #expect(pieces.reduce(0) { $0 + $1.utf8.count } == text.utf8.count + 1)
        #expect(pieces.count <= text.utf8.count / 200 + 2)
    }

    @Test("a text cut to its budget fills a line and no more")
    func budget() throws {
        let budget = IRCTextSplitter.budget(source: "n!u@h", command: "PRIVMSG", target: "#room")
        let text = IRCTextSplitter.split(String(repeating: "x", count: 1000), budget: budget)[0]
        let line = encode(IRCMessage(source: "n!u@h", command: "PRIVMSG", params: ["#room", text]))
        #expect(line.utf8.count == 512)
        #expect(try parse(String(line.dropLast())).params[1] == text)
        let huge = String(repeating: "h", count: 600)
        #expect(IRCTextSplitter.budget(source: huge, command: "PRIVMSG", target: "#a") == 4)
    }

    @Test(
        "a body becomes its physical lines, without controls",
        arguments: [
            ("", [""]), ("a", ["a"]), ("a\nb", ["a", "b"]), ("a\r\nb", ["a", "b"]), ("a\rb", ["a", "b"]),
            ("a\n\rb", ["a", "", "b"]), ("a\n", ["a"]), ("a\r\n", ["a"]), ("a\n\n", ["a", ""]), ("\n", [""]),
            ("\na", ["", "a"]),
            ("a\0b\u{07}c\u{1B}[0m\u{7F}", ["abc[0m"]), ("a\tb", ["a b"]),
            (
                "\u{02}\u{03}4\u{04}\u{0F}\u{11}\u{16}\u{1D}\u{1E}\u{1F}",
                ["\u{02}\u{03}4\u{04}\u{0F}\u{11}\u{16}\u{1D}\u{1E}\u{1F}"]
            ),
            ("\u{01}ACTION x\u{01}", ["ACTION x"]), ("é\u{0301}\n本", ["é\u{0301}", "本"]),
        ])
    func lines(text: String, lines: [String]) {
        #expect(IRCTextSplitter.lines(text) == lines)
        #expect(IRCTextSplitter.lineCount(text) == lines.count)
    }

    @Test("CTCP marks stay when asked for")
    func ctcp() {
    }

    @Test("no more lines than asked for are made; the count still tells how many there are")
    func maxLines() {
        let text = String(repeating: "x\n", count: 100_000)
        #expect(IRCTextSplitter.lines(text, maxLines: 3) == ["x", "x", "x"])
        #expect(IRCTextSplitter.lines(text, maxLines: 0) == [])
        #expect(IRCTextSplitter.lineCount(text) == 100_000)
    }
}

@Suite("IRC server-time")
struct ServerTimeTests {
    @Test(
        "an instant has one text",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1_795_230_245_678, "2026-11-21T03:04:05.678Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"), (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func text(milliseconds: Int64, text: String) {
        #expect(IRCServerTime.format(milliseconds: milliseconds) == text)
        #expect(IRCServerTime.parse(text) == milliseconds)
    }

    @Test("instants beyond four-digit years are clamped")
    func clamped() {
        #expect(IRCServerTime.format(milliseconds: .max) == "9999-12-31T23:59:59.999Z")
        #expect(IRCServerTime.format(milliseconds: .min) == "0000-01-01T00:00:00.000Z")
    }

    @Test("parse(format(x)) == x")
    func law() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<5000 {
            let instant = Int64.random(in: -62_167_219_200_000...253_402_300_799_999, using: &generator)
            #expect(IRCServerTime.parse(IRCServerTime.format(milliseconds: instant)) == instant)
        }
    }

    @Test("a leap second is the first of the next minute")
    func leapSecond() {
        #expect(
            IRCServerTime.parse("2012-06-30T23:59:60.419Z") == IRCServerTime.parse("2012-07-01T00:00:00.419Z"))
    }

    @Test(
        "anything else is refused",
        arguments: [
            "", "*", "2026-11-21", "2026-11-21T03:04:05Z", "2026-11-21T03:04:05.67Z", "2026-11-21T03:04:05.6789Z",
            "2026-11-21T03:04:05.678z", "2026-11-21t03:04:05.678Z", "2026-11-21 03:04:05.678Z",
            "2026-11-21T03:04:05.678+",
            "2026-13-01T00:00:00.000Z", "2026-00-01T00:00:00.000Z", "2026-01-00T00:00:00.000Z",
            "2026-04-31T00:00:00.000Z",
            "2026-02-29T00:00:00.000Z", "1900-02-29T00:00:00.000Z", "2026-01-01T24:00:00.000Z",
            "2026-01-01T00:60:00.000Z",
            "2026-01-01T00:00:61.000Z", "-026-01-01T00:00:00.000Z", "+026-01-01T00:00:00.000Z",
            "２026-01-01T00:00:00.00Z",
            " 2026-11-21T03:04:05.678", "2026-11-21T03:04:05.678Z ",
        ])
    func refused(text: String) {
        #expect(IRCServerTime.parse(text) == nil)
    }
}
