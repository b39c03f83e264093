import BridgeTestSupport
import IRCProtocol
import Testing

struct ParseRow: Sendable, CustomTestStringConvertible {
    let name: String
    let line: String
    let message: IRCMessage
    var testDescription: String { name }

    init(
        _ name: String, _ line: String, tags: [IRCTag] = [], source: String? = nil, _ command: String,
        _ params: String...
    ) {
        self.name = name
        self.line = line
        message = IRCMessage(tags: tags, source: source, command: command, params: params)
    }
}

let parseRows: [ParseRow] = [
    ParseRow("a bare verb", "PING", "PING"),
    ParseRow("middle parameters", "foo bar baz asdf", "FOO", "bar", "baz", "asdf"),
    ParseRow("a trailing parameter", "PRIVMSG #a :b c", "PRIVMSG", "#a", "b c"),
    ParseRow("an empty trailing parameter", "TOPIC #a :", "TOPIC", "#a", ""),
    ParseRow("a trailing parameter of a colon", "PRIVMSG a ::)", "PRIVMSG", "a", ":)"),
    ParseRow("trailing spaces belong to the trailing parameter", "PRIVMSG a :b  ", "PRIVMSG", "a", "b  "),
    ParseRow("trailing spaces after a middle parameter do not", "MODE #a +n   ", "MODE", "#a", "+n"),
    ParseRow("runs of spaces", ":irc.x  432   #momo  :Bad nick", source: "irc.x", "432", "#momo", "Bad nick"),
    ParseRow("leading spaces", "   JOIN #a", "JOIN", "#a"),
    ParseRow("a colon within a parameter", "MODE #a k:ey x:y", "MODE", "#a", "k:ey", "x:y"),
    ParseRow("a tab is no space", "PRIVMSG a\tb :c", "PRIVMSG", "a\tb", "c"),
    ParseRow("formatting in a source", ":c!a@n\u{03}5w PRIVMSG f :b", source: "c!a@n\u{03}5w", "PRIVMSG", "f", "b"),
    ParseRow("an empty source", ": PING x", "PING", "x"),
    ParseRow("a verb in lower case", "privMsg a b", "PRIVMSG", "a", "b"),
    ParseRow("a numeric", ":s 001 n :Hi", source: "s", "001", "n", "Hi"),
    ParseRow("text beyond ASCII", "PRIVMSG #é :grüße 👩‍👩‍👧", "PRIVMSG", "#é", "grüße 👩‍👩‍👧"),
    ParseRow("CRs left at the end", "PING x\r\r", "PING", "x"),
    ParseRow(
        "the fifteenth parameter takes the rest", "M 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 :17 18",
        "M", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15 16 :17 18"),
    ParseRow(
        "the fifteenth parameter loses its colon", "M 1 2 3 4 5 6 7 8 9 10 11 12 13 14 :15 16",
        "M", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15 16"),
    // IRCv3 message-tags.
    ParseRow("a tag without value", "@a PING", tags: [IRCTag("a")], "PING"),
    ParseRow("an empty value is no value", "@a= PING", tags: [IRCTag("a")], "PING"),
    ParseRow(
        "several tags, spaces after them", "@a=b;+c/d=e;f   :s PING",
        tags: [IRCTag("a", "b"), IRCTag("+c/d", "e"), IRCTag("f")],
        source: "s", "PING"),
    ParseRow("a value with an equals sign", "@a=b=c PING", tags: [IRCTag("a", "b=c")], "PING"),
    ParseRow(
        "every escape", #"@a=\:\s\\\r\n PING"#, tags: [IRCTag("a", "; \\\r\n")], "PING"),
    ParseRow("a needless escape", #"@a=va\lue\1 PING"#, tags: [IRCTag("a", "value1")], "PING"),
    ParseRow("a lone backslash at the end", #"@a=b\;c=d PING"#, tags: [IRCTag("a", "b"), IRCTag("c", "d")], "PING"),
    ParseRow("an escaped backslash before an s", #"@a=\\s PING"#, tags: [IRCTag("a", #"\s"#)], "PING"),
    ParseRow("a backslash before text beyond ASCII", "@a=\\é PING", tags: [IRCTag("a", "é")], "PING"),
    ParseRow("nothing but a backslash", #"@a=\ PING"#, tags: [IRCTag("a")], "PING"),
    ParseRow(
        "of a repeated tag the last stands", "@a=1;b=2;a=3 PING", tags: [IRCTag("b", "2"), IRCTag("a", "3")], "PING"),
    ParseRow("vendor tags are others", "@a=1;v/a=2 PING", tags: [IRCTag("a", "1"), IRCTag("v/a", "2")], "PING"),
    ParseRow("tags differ by case", "@a=1;A=2 PING", tags: [IRCTag("a", "1"), IRCTag("A", "2")], "PING"),
    ParseRow("empty tags are skipped", "@;;a;;=x PING", tags: [IRCTag("a")], "PING"),
    ParseRow("an empty tag section", "@ PING", "PING"),
]

struct RefusalRow: Sendable, CustomTestStringConvertible {
    let name: String
    let bytes: [UInt8]
    let error: IRCLineError
    var testDescription: String { name }

    init(_ name: String, _ bytes: [UInt8], _ error: IRCLineError) {
        self.name = name
        self.bytes = bytes
        self.error = error
    }

    init(_ name: String, _ text: String, _ error: IRCLineError) { self.init(name, Array(text.utf8), error) }
}

let refusalRows: [RefusalRow] = [
    RefusalRow("nothing", "", .empty),
    RefusalRow("spaces", "     ", .empty),
    RefusalRow("CRs", "\r\r", .empty),
    RefusalRow("a source alone", ":a!b@c", .noCommand),
    RefusalRow("a source and spaces", ":a!b@c   ", .noCommand),
    RefusalRow("a colon alone", ":", .noCommand),
    RefusalRow("tags alone", "@a=b", .malformedTags),
    RefusalRow("an at sign alone", "@", .malformedTags),
    RefusalRow("tags and spaces", "@a=b  ", .noCommand),
    RefusalRow("NUL in the first eight bytes", "PI\0NG", .containsNUL),
    RefusalRow("NUL after them", "PRIVMSG #a :x\0", .containsNUL),
    RefusalRow("NUL in the middle of a long line", "PRIVMSG #a :xxxxxxxx\0xxxxxxxxxxxxxxxx", .containsNUL),
    RefusalRow("CR within", "PRIVMSG #a :x\ry", .containsNUL),
    RefusalRow("LF within", "PRIVMSG #a :xxxxxxxxxxxxx\nyyyyyyyyyyy", .containsNUL),
    RefusalRow("Latin-1", Array("PRIVMSG #a :".utf8) + [0xE9], .invalidUTF8),
    RefusalRow("an overlong slash", Array("PING ".utf8) + [0xC0, 0xAF], .invalidUTF8),
    RefusalRow("a surrogate", Array("PING ".utf8) + [0xED, 0xA0, 0x80], .invalidUTF8),
    RefusalRow("beyond U+10FFFF", Array("PING ".utf8) + [0xF4, 0x90, 0x80, 0x80], .invalidUTF8),
    RefusalRow("a cut code point", Array("PING ".utf8) + [0xF0, 0x9F, 0x98], .invalidUTF8),
    RefusalRow("a code point cut by a space", Array("PING ".utf8) + [0xF0, 0x9F, 0x20, 0x98], .invalidUTF8),
]

@Suite("IRC line parser")
struct ParseTests {
    @Test("a line becomes its message", arguments: parseRows)
    func parses(row: ParseRow) throws {
        let message = try parse(row.line)
        #expect(message == row.message)
        // Equality of strings is by canonical equivalence; a parser must preserve the bytes.
        #expect(message.params.map { Array($0.utf8) } == row.message.params.map { Array($0.utf8) })
    }

    @Test("a line that is no message is refused with its reason", arguments: refusalRows)
    func refuses(row: RefusalRow) {
        #expect(throws: row.error) { try parse(bytes: row.bytes) }
    }

    @Test("every reason has a row")
    func complete() {
        #expect(Set(refusalRows.map(\.error)) == Set(IRCLineError.allCases))
    }

    @Test("many tags: the last of each name stands, in order, as with few")
    func manyTags() throws {
        let names = (0..<600).map { "t\($0 % 200)=\($0)" }
        let message = try parse("@" + names.joined(separator: ";") + " PING")
        #expect(message.tags == (400..<600).map { IRCTag("t\($0 % 200)", "\($0)") })
    }

    @Test("a verb that begins like tags does not become tags when it is written again")
    func verbLikeTags() throws {
        let message = try parse(": @a b")
        #expect(message.source == nil)
        #expect(message.command == "@A")
        #expect(encode(message) == "_A b\r\n")
    }

    @Test(
        "any bytes give a message or a named error, and a message survives encoding", arguments: LawSeeds.seeds(20)
    )
    func hostile(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let alphabet: [UInt8] = Array(": @;=\\!#aZ0+,\r\n\0\t".utf8) + [0xC3, 0xA9, 0xF0, 0x9F, 0xFF, 0x80]
        var accepted = 0
        for _ in 0..<500 {
            let bytes = (0..<Int.random(in: 0..<60, using: &generator)).map { _ in
                alphabet.randomElement(using: &generator) ?? 0
            }
            guard let message = try? parse(bytes: bytes) else { continue }
            accepted += 1
            let line = encode(message)
            #expect(line.utf8.filter { $0 == 0x0A || $0 == 0x0D || $0 == 0 }.count == 2, "seed \(seed): \(bytes)")
            _ = try parse(String(line.unicodeScalars.dropLast(2).map(Character.init)))
        }
        #expect(accepted > 0)
    }
}
