import BridgeTestSupport
import IRCProtocol
import Testing

@Suite("IRC names")
struct NamesTests {
    @Test(
        "folding",
        arguments: [
            ("Nick", "nick", "nick"), ("a[]\\~B", "a[]\\~b", "a{}|^b"), ("{}|^", "{}|^", "{}|^"), ("ÉA", "Éa", "Éa"),
            ("", "", ""),
            ("@Z[`", "@z[`", "@z{`"),
        ])
    func fold(text: String, ascii: String, rfc1459: String) {
        #expect(IRCCasemapping.ascii.fold(text) == ascii)
        #expect(IRCCasemapping.rfc1459.fold(text) == rfc1459)
        #expect(IRCCasemapping.ascii.fold(IRCCasemapping.rfc1459.foldPunctuation(text)) == rfc1459)
        #expect(IRCCasemapping.ascii.foldPunctuation(text) == text)
    }

    @Test("folding twice is folding once, byte for byte", arguments: IRCCasemapping.allCases)
    func idempotent(mapping: IRCCasemapping) {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<500 {
            let text = String(
                String.UnicodeScalarView(
                    (0..<20).compactMap { _ in Unicode.Scalar(UInt32.random(in: 0..<0x250, using: &generator)) }))
            let once = mapping.fold(text)
            #expect(Array(mapping.fold(once).utf8) == Array(once.utf8))
            #expect(once.utf8.count == text.utf8.count)
        }
    }

    @Test(
        "nicks that anybody may take",
        arguments: [
            "a", "Remy", "a1", "_a", "[a]", "`a", "a-", "{|}^\\", "a~b", "a#b", "a'b", "Zoë", "林黛玉", "e\u{301}", "😀",
        ])
    func goodNicks(nick: String) {
        #expect(IRCNames.isValidNickname(nick))
    }

    @Test(
        "nicks that nobody may take",
        arguments: [
            "", "1a", "-a", "#a", "&a", "~a", "@a", "+a", "%a", "$a", ":a", "=a", "a b", "a,b", "a*", "a?", "a.b",
            "a!b", "a@b",
            "a:b", "*", "a\0", "a\r", "a\n", "a\t", "a\u{7F}", "a\u{85}", "a\u{A0}", "a\u{200B}", "a\u{200D}b",
            "a\u{202E}b",
            "\u{301}a", "a\u{FE0F}", "a\u{AD}", "a\u{2028}", "a\u{FEFF}", "a\u{3164}", "a\u{E000}", "a\u{FFFF}",
            "0123456789012345678901234567890", "abcdefghijklmnopqrstuvwxyzabcde",
        ])
    func badNicks(nick: String) {
        #expect(!IRCNames.isValidNickname(nick))
    }

    @Test("the length of a nick is in bytes")
    func nickBytes() {
        #expect(IRCNames.isValidNickname("éé", maxBytes: 4))
        #expect(!IRCNames.isValidNickname("éé", maxBytes: 3))
        #expect(!IRCNames.isValidNickname("a", maxBytes: 0))
        #expect(!IRCNames.isValidNickname("a", maxBytes: -1))
    }

    @Test("without UTF-8 only RFC 2812's characters are taken")
    func plainNicks() {
        #expect(IRCNames.isValidNickname("Az09-[]\\`_^{|}", utf8: false))
        for nick in ["é", "a'b", "a~", "a b", "a#", "1a", "-a", "a\u{7F}", "😀"] {
            #expect(!IRCNames.isValidNickname(nick, utf8: false), "\(nick)")
        }
    }
}

@Suite("IRC tables")
struct TableTests {
    @Test("a numeric's code has three digits", arguments: IRCNumeric.allCases)
    func numerics(numeric: IRCNumeric) {
        #expect(numeric.code.utf8.count == 3)
        #expect(UInt16(numeric.code) == numeric.rawValue)
    }

    @Test("005 lines fit whatever the tokens' lengths", arguments: 1..<120)
    func supportFill(length: Int) {
        var support = IRCISupport()
        for index in 0..<40 { support.add(String(repeating: "T", count: length + index % 3)) }
        for row in support.rows {
            let line = IRCMessage(
                source: String(repeating: "s", count: 63), numeric: .rplISupport,
                params: [String(repeating: "n", count: 64)] + row + [IRCISupport.trailingText])
            #expect((1...13).contains(row.count))
            #expect(encode(line).hasSuffix(" :\(IRCISupport.trailingText)\r\n"))
            #expect(encode(line).utf8.count <= 512)
        }
        #expect(support.rows.flatMap { $0 } == support.tokens)
    }

    @Test("values are escaped and controls dropped")
    func supportEscapes() {
        var support = IRCISupport()
        support.add("A", "b c=\\\r\n\0")
        support.add("B")
        #expect(support.tokens == [#"A=b\x20c\x3D\x5C"#, "B"])
        #expect(IRCISupport().rows == [])
    }

    @Test("client-only tags of any name pass, but for receipts")
    func clientTags() {
        for name in ["+typing", "+draft/react", "+other", "+example.org/x", "+Typing", "++typing", "+draft/reading"] {
            #expect(IRCClientTags.isAllowed(name))
        }
        for name in ["", "+", "msgid", "time", "typing", "+draft/read", "+draft/delivered"] {
            #expect(!IRCClientTags.isAllowed(name))
        }
    }

    @Test(
        "each line of a message bears its client-only tags where they are short, and the first alone what it answers",
        arguments: [(124, ["account", "+x"]), (125, ["account", "+x"]), (126, ["account"]), (4000, ["account"])])
    func tagsOfLines(length: Int, names: [String]) {
        let tags = [
            IRCTag("msgid", "m"), IRCTag("account", "ann"), IRCTag("+reply", "n"), IRCTag("+draft/reply", "n"),
            IRCTag("+x", String(repeating: "y", count: length)),
        ]
        let said = IRCUtterance(
            head: IRCMessage(tags: tags, source: "ann!a@h", command: "PRIVMSG", params: ["#lobby"]),
            lines: [IRCUtterance.Line("one"), IRCUtterance.Line("two"), IRCUtterance.Line("three")])
        let lines = said.messages(for: [.messageTags]) { "1" }
        #expect(lines.map { $0.tags.map(\.name) } == [tags.map(\.name), names, names])
    }

    @Test("what a client sent as tags fits when it is relayed, and a reply's second name gives way")
    func clientTagBytes() throws {
        /// The relayed tags of a client's line with these tags, beside tags of the server.
        func relayed(_ tags: [IRCTag]) throws -> [String] {
            let server = [
                IRCTag("time", "2026-11-21T12:00:00.000Z"), IRCTag("msgid", String(repeating: "m", count: 40)),
            ]
            let bytes = encode(
                IRCMessage(
                    tags: server + IRCClientTags.relayed(tags), source: "a!b@c", command: "TAGMSG", params: ["#lobby"]))
            return try parse(String(bytes.dropLast())).tags.map(\.name).filter { $0.hasPrefix("+") }
        }
        let full = IRCTag("+x", String(repeating: "y", count: 4091))
        #expect(try relayed([full]) == ["+x"])
        #expect(try relayed([IRCTag("+x", String(repeating: ";", count: 2046))]) == [])
        #expect(try relayed([IRCTag("+x", String(repeating: ";", count: 2045))]) == ["+x"])
        // `+reply=0123456789;+x=…` takes 4094, and has no room for `+draft/reply`.
        let reply = IRCTag("+reply", "0123456789")
        #expect(try relayed([reply, IRCTag("+x", String(repeating: "y", count: 4073))]) == ["+reply", "+x"])
        let both = 4094 - "+reply=0123456789;+draft/reply=0123456789;+x=".utf8.count
        for (spare, names) in [(0, ["+reply", "+draft/reply", "+x"]), (1, ["+reply", "+x"])] {
            let tag = IRCTag("+x", String(repeating: "y", count: both + spare))
            #expect(try relayed([reply, tag]) == names)
        }
    }

    @Test(
        "WHOX requests",
        arguments: [
            (
                "%tcuhnfdlaor,42",
                [.token, .channel, .user, .host, .nick, .flags, .hopCount, .idle, .account, .opLevel, .realname], "42",
                ""
            ),
            ("o%nt", [.token, .nick], nil, "o"), ("%", [], nil, ""), ("%nnnn,1", [.nick], "1", ""),
            ("%n,", [.nick], nil, ""),
            ("%n,1234", [.nick], nil, ""), ("%n,ab", [.nick], nil, ""), ("%n,1,2", [.nick], nil, ""),
            ("%zé,7", [], "7", ""),
            ("%n,007", [.nick], "007", ""),
        ] as [(String, [IRCWhoxRequest.Field], String?, String)])
    func whox(param: String, fields: [IRCWhoxRequest.Field], token: String?, flags: String) {
        let request = IRCWhoxRequest(parsing: param)
        #expect(request?.fields == fields)
        #expect(request?.token == token)
        #expect(request?.flags == flags)
    }

    @Test("a WHO without % is a plain one", arguments: ["", "o", "tcu,42"])
    func plainWho(param: String) {
        #expect(IRCWhoxRequest(parsing: param) == nil)
    }

    @Test("standard replies")
    func standardReplies() {
        #expect(
            encode(.fail("PRIVMSG", "CANNOT_SEND", "#a", text: "Not now", source: "irc"))
                == ":irc FAIL PRIVMSG CANNOT_SEND #a :Not now\r\n")
        #expect(encode(.warn("*", "X", text: "Mind")) == "WARN * X :Mind\r\n")
        #expect(encode(.note("A", "B", "c", "d", text: "E f")) == "NOTE A B c d :E f\r\n")
    }

    @Test("tags are found and set by name")
    func tags() {
        var message = IRCMessage(tags: [IRCTag("a", "1")], command: "PING")
        message.setTag("b", "2")
        message.setTag("a", "3")
        message.setTag("c", "")
        #expect(message.tags == [IRCTag("a", "3"), IRCTag("b", "2"), IRCTag("c")])
        #expect(message.tag("b")?.value == "2")
        #expect(message.tag("A") == nil)
        #expect(IRCTag("+a").isClientOnly && !IRCTag("a").isClientOnly && !IRCTag("").isClientOnly)
    }
}
