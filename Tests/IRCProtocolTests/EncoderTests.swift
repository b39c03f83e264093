import BridgeTestSupport
import IRCProtocol
import Testing
import WireBytes

struct EncodeRow: Sendable, CustomTestStringConvertible {
    let name: String
    let message: IRCMessage
    let line: String
    var testDescription: String { name }

    init(_ name: String, _ message: IRCMessage, _ line: String) {
        self.name = name
        self.message = message
        self.line = line
    }
}

private let encodeRows: [EncodeRow] = [
    EncodeRow("a bare verb", IRCMessage(command: "PING"), "PING"),
    EncodeRow("a word at the end needs no colon", IRCMessage(command: "MODE", params: ["#a", "+n"]), "MODE #a +n"),
    EncodeRow("a text gets its colon always", IRCMessage(command: "PRIVMSG", params: ["#a", "hi"]), "PRIVMSG #a :hi"),
    EncodeRow("an empty last parameter", IRCMessage(command: "MODE", params: ["#a", ""]), "MODE #a :"),
    EncodeRow("a leading colon", IRCMessage(command: "MODE", params: ["#a", ":)"]), "MODE #a ::)"),
    EncodeRow("a space", IRCMessage(source: "s", command: "X", params: ["a b"]), ":s X :a b"),
    EncodeRow(
        "a numeric", IRCMessage(source: "irc", numeric: .rplWelcome, params: ["n", "Hi there"]), ":irc 001 n :Hi there"),
    EncodeRow(
        "tags in their order",
        IRCMessage(tags: [IRCTag("b", "1"), IRCTag("+a"), IRCTag("time", "t")], command: "PING"),
        "@b=1;+a;time=t PING"),
    EncodeRow("an empty value", IRCMessage(tags: [IRCTag("a", "")], command: "PING"), "@a PING"),
    EncodeRow(
        "every escape", IRCMessage(tags: [IRCTag("a", "; \\\r\n\0é")], command: "PING"), #"@a=\:\s\\\r\né PING"#),
    EncodeRow(
        "names that would break the section are left out",
        IRCMessage(tags: [IRCTag(""), IRCTag("a b"), IRCTag("a;b"), IRCTag("a=b"), IRCTag("a\nb")], command: "PING"),
        "PING"),
    EncodeRow(
        "CR, LF and NUL in a text", IRCMessage(command: "PRIVMSG", params: ["#a", "x\r\nQUIT\0 :y\n"]),
        "PRIVMSG #a :x  QUIT :y "),
    EncodeRow("a LF alone in a last word", IRCMessage(command: "X", params: ["a\nb"]), "X :a b"),
    EncodeRow(
        "middle parameters that would shift the others",
        IRCMessage(command: "X", params: ["", ":a", "b c", "d\r\ne", "\0", "f"]), "X * _a b_c d__e * f"),
    EncodeRow("a source with a space", IRCMessage(source: "a b\r\nc", command: "X"), ":a_b__c X"),
    EncodeRow("an empty source", IRCMessage(source: "", command: "X"), "X"),
    EncodeRow("a command with a line break", IRCMessage(command: "X\r\nY", params: ["a"]), "X__Y a"),
    EncodeRow(
        "more than fifteen parameters", IRCMessage(command: "X", params: (1...17).map(String.init)),
        "X 1 2 3 4 5 6 7 8 9 10 11 12 13 14 :15 16 17"),
]

@Suite("IRC encoder")
struct EncoderTests {
    @Test("a message becomes one line", arguments: encodeRows)
    fileprivate func encodes(row: EncodeRow) {
        #expect(Array(encode(row.message).utf8) == Array((row.line + "\r\n").utf8))
    }

    @Test("what was parsed encodes to what parses the same", arguments: parseRows)
    func roundTrip(row: ParseRow) throws {
        let line = encode(row.message)
        #expect(line.hasSuffix("\r\n"))
        #expect(try parse(String(line.dropLast())) == row.message)
    }

    @Test("decode(encode(x)) == x", arguments: LawSeeds.seeds(40))
    func law(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            let message = Self.randomMessage(using: &generator)
            let line = encode(message)
            #expect(try parse(String(line.dropLast())) == message, "seed \(seed): \(line)")
        }
    }

    @Test("whatever the strings hold, one line of at most 510 bytes comes out", arguments: LawSeeds.seeds(40))
    func hostile(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let pieces = ["\r", "\n", "\0", "\r\n", " ", ":", ";", "=", "\\", "@", "a", "é", "👩‍👩‍👧", "\u{FEFF}", "e\u{301}"]
        func text() -> String {
            (0..<Int.random(in: 0..<120, using: &generator)).map { _ in pieces.randomElement(using: &generator) ?? "" }
                .joined()
        }
        for _ in 0..<50 {
            let message = IRCMessage(
                tags: (0..<Int.random(in: 0..<5, using: &generator)).map { _ in IRCTag(text(), text()) },
                source: Bool.random(using: &generator) ? text() : nil, command: text(),
                params: (0..<Int.random(in: 0..<18, using: &generator)).map { _ in text() })
            var writer = ByteWriter()
            writer.append("before\r\n")
            IRCEncoder.append(message, to: &writer)
            let bytes = writer.take().withUnsafeBytes { Array($0) }.dropFirst(8)
            #expect(bytes.suffix(2) == [0x0D, 0x0A])
            let content = Array(bytes.dropLast(2))
            #expect(!content.contains { $0 == 0 || $0 == 0x0D || $0 == 0x0A }, "seed \(seed)")
            #expect(String(validating: content, as: UTF8.self) != nil, "seed \(seed)")
            let lines = decode([bytes[...]], limits: .ofServerLines).lines
            #expect(lines.count == 1 && lines != [.tooLong], "seed \(seed)")
        }
    }

    @Test("content is cut at 510 bytes between code points", arguments: 0..<8)
    func cut(shift: Int) {
        let text = String(repeating: "a", count: shift) + String(repeating: "😀", count: 200)
        let line = encode(IRCMessage(tags: [IRCTag("time", "x")], command: "PRIVMSG", params: ["#a", text]))
        let content = line.utf8.count - "@time=x ".utf8.count - 2
        #expect(content <= 510 && content > 506)
        #expect(!line.unicodeScalars.contains("\u{FFFD}"))
    }

    @Test("a huge source, command or parameter still ends in one short line")
    func hugeParts() {
        let huge = String(repeating: "x", count: 100_000)
        for message in [
            IRCMessage(source: huge, command: "A"), IRCMessage(command: huge),
            IRCMessage(command: "A", params: [huge, huge, "b"]),
        ] {
            #expect(encode(message).utf8.count == 512)
        }
    }

    @Test("when not all tags fit, the important ones stay and the others are dropped whole")
    func tagAllowance() throws {
        let filler = (0..<50).map { IRCTag("filler\($0)", String(repeating: "f", count: 200)) }
        let important = IRCEncoder.importantTags.map { IRCTag($0, "value") }
        let message = IRCMessage(tags: filler + important, command: "PING")
        let line = encode(message)
        let parsed = try parse(String(line.dropLast()))
        #expect(parsed.tags.prefix(5) == important[...])
        #expect(parsed.tags.count > 5)
        #expect(parsed.tags.dropFirst(5).allSatisfy { filler.contains($0) })
        #expect(line.utf8.count - "PING\r\n".utf8.count <= 4094 + 2)
    }

    @Test("client-only tags and the server's have 4094 bytes each")
    func separateAllowances() throws {
        let value = String(repeating: "v", count: 4000)
        let message = IRCMessage(
            tags: [IRCTag("+big", value), IRCTag("+bigger", value), IRCTag("a", value), IRCTag("b", value)],
            command: "PING")
        let line = encode(message)
        #expect(try parse(String(line.dropLast())).tags.map(\.name) == ["+big", "a"])
        #expect(line.utf8.count - "PING\r\n".utf8.count <= 8191)
    }

    private static func randomMessage(using generator: inout SeededGenerator) -> IRCMessage {
        let letters = ["a", "b", "Z", "0", "-", "é", "😀", "本"]
        let text = letters + [" ", ":", ";", "\\", "=", "@", "\t", "\u{02}"]
        func word(_ alphabet: [String], _ counts: Range<Int>) -> String {
            (0..<Int.random(in: counts, using: &generator))
                .map { _ in alphabet.randomElement(using: &generator) ?? "" }.joined()
        }
        var tags: [IRCTag] = []
        for index in 0..<Int.random(in: 0..<6, using: &generator) {
            let mark = Bool.random(using: &generator) ? "+" : ""
            tags.append(IRCTag("\(mark)t\(index)", word(text + ["\r", "\n"], 0..<12)))
        }
        var params = (0..<Int.random(in: 0..<14, using: &generator)).map { _ in word(letters, 1..<5) }
        if Bool.random(using: &generator) { params.append(word(text, 0..<20)) }
        return IRCMessage(
            tags: tags, source: Bool.random(using: &generator) ? word(letters, 1..<9) : nil,
            command: word(["A", "B", "1"], 1..<8), params: params)
    }
}
