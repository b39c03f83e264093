import ChatModel
import Dialects
import JSONText
import Testing

@Suite("jwt-rooms dialect")
struct JWTRoomsDialectTests {
    static let fixtures = Result { try FixtureSet("jwt-rooms") }
    static var inLines: [FixtureLine] { (try? fixtures.get().inLines) ?? [] }
    static var outLines: [FixtureLine] { (try? fixtures.get().outLines) ?? [] }

    static func fixtureDialect() throws -> JWTRoomsDialect {
        try JWTRoomsDialect(DialectOptions(fixtures.get().options))
    }

    @Test("the fixtures are there")
    func fixturesAreThere() throws {
        #expect(try Self.fixtures.get().inLines.count == 56)
        #expect(try Self.fixtures.get().outLines.count == 13)
    }

    @Test("a frame decodes as its fixture says", arguments: inLines)
    func decodes(_ line: FixtureLine) throws {
        let difference = try Self.fixtures.get().verifyIn(line, Self.fixtureDialect())
        #expect(difference == nil)
    }

    @Test("a command encodes as its fixture says", arguments: outLines)
    func encodes(_ line: FixtureLine) throws {
        let difference = try Self.fixtures.get().verifyOut(line, Self.fixtureDialect())
        #expect(difference == nil)
    }

    @Test("a frame cut anywhere is malformed", arguments: inLines.prefix(3))
    func cuts(_ line: FixtureLine) throws {
        let bytes = try #require(line.frameBytes)
        for length in 0..<bytes.count {
            #expect(try decode(Array(bytes.prefix(length))) == .dropped(.malformed, typeKey: nil), "\(length) bytes")
        }
    }

    // MARK: - Options

    static let known = ["base", "naive_offset", "room_id", "typing"]
    static let badBase = "must be the address of a web server, such as \"https://chat.example\""

    @Test(
        "an option is taken, or refused with its place",
        arguments: [
            OptionRow("{}"),
            OptionRow(#"{"room_id":7,"base":"https://chat.example/app/","naive_offset":-3600,"typing":"both"}"#),
            OptionRow(#"{"room_id":"7"}"#), OptionRow(#"{"room_id":null}"#),
            OptionRow(#"{"room_id":-1}"#, fails: ["room_id"], "must be a whole number or a string"),
            OptionRow(#"{"room_id":".."}"#, fails: ["room_id"], "must be a whole number or a string"),
            OptionRow(#"{"room_id":1.5}"#, fails: ["room_id"], "must be a whole number or a string"),
            OptionRow(#"{"base":"chat.example"}"#, fails: ["base"], badBase),
            OptionRow(#"{"base":"https://"}"#, fails: ["base"], badBase),
            OptionRow(#"{"base":"https:///x"}"#, fails: ["base"], badBase),
            OptionRow(#"{"base":"ftp://chat.example"}"#, fails: ["base"], badBase),
            OptionRow(#"{"base":"https://chat.example/?a"}"#, fails: ["base"], badBase),
            OptionRow(#"{"base":5}"#, fails: ["base"], "must be a string"),
            OptionRow(
                #"{"naive_offset":90000}"#, fails: ["naive_offset"], "must be a whole number from -64800 to 64800"),
            OptionRow(
                #"{"typing":"start"}"#, fails: ["typing"], #"must be one of "start_stop", "typing", "both""#),
            OptionRow(#"{"rooms":1}"#, fails: ["rooms"], "unknown option", known: known),
        ])
    func options(_ row: OptionRow) throws {
        let direct = try row.failure { options throws(DialectOptionError) in _ = try JWTRoomsDialect(options) }
        #expect(direct == row.failure)
        let named = try row.failure { options throws(DialectOptionError) in
            _ = try DialectTable.dialect(named: "jwt-rooms", options: options)
        }
        #expect(named == row.failure)
    }

    @Test("the traits are those of the wire, typing as the option says")
    func traits() throws {
        let traits = try dialect().traits
        #expect(traits.identity == .single)
        #expect(traits.messageIDOrigin == .server)
        #expect(traits.confirmation == .none)
        #expect(traits.readReport == .call)
        #expect(traits.history == .call && traits.older == .call)
        #expect(traits.waitsForReady)
        #expect(traits.reactionChoices == ["👍", "❤️", "😂", "😮", "😢", "😡"])
        #expect(
            traits.backoff
                == BackoffTraits(first: .seconds(2), factor: 2, cap: .seconds(60), jitter: 0.25, degradedAfter: 5))
        #expect(traits.typingOut == .startStop)
        #expect(try dialect(#"{"typing":"both"}"#).traits.typingOut == .startStop)
        #expect(try dialect(#"{"typing":"typing"}"#).traits.typingOut == .startOnly)
    }

    @Test(
        "typing is written as the option says",
        arguments: [
            ("start_stop", ["typing_start"], ["typing_stop"]), ("typing", ["typing"], []),
            ("both", ["typing_start", "typing"], ["typing_stop"]),
        ])
    func typingStyles(_ style: String, _ start: [String], _ stop: [String]) throws {
        let dialect = try dialect(#"{"typing":"\#(style)"}"#)
        for (state, types) in [(ChatTyping.State.start, start), (.stop, stop)] {
            let encoded = dialect.encode(.typing(ChatTyping(state: state)), context: context)
            guard !types.isEmpty else {
                #expect(encoded == .unsupported(.unsupported))
                continue
            }
            let frames = try frames(encoded)
            #expect(
                frames
                    == types.map {
                        .object([
                            .init("type", .string($0)), .init("room_id", .integer(1)),
                            .init("sender", .string("bridge")),
                        ])
                    })
        }
    }

    @Test("times without a zone are that far from UTC")
    func naiveOffset() throws {
        let frame = #"{"type":"user_joined","sender":"admin","timestamp":"2025-11-21T03:18:56"}"#
        let decoded = try decode(Array(frame.utf8), dialect(#"{"naive_offset":3600}"#))
        #expect(
            decoded
                == .events([
                    .join(
                        ChatMembership(
                            user: ChatPerson(name: "admin"), at: ChatTimestamp(milliseconds: 1_763_691_536_000)))
                ]))
    }

    @Test(
        "a time is read with escapes as without, and not at all when it is too long",
        arguments: [
            (#"2025-11-21T03:18:56"#, true), (#"2025\u002d11-21T03\u003a18:56"#, true),
            (#"\t 2025-11-21 03:18:56 \n"#, true), (#"1763695136\u0030\u0030\u0030"#, true),
            ("2025-11-21T03:18:56" + String(repeating: " ", count: 45), true),
            ("2025-11-21T03:18:56" + String(repeating: " ", count: 46), false),
            (String(repeating: #"\u0030"#, count: 60) + "1763695136", false), ("", false), (#"\u0000"#, false),
        ])
    func escapedTimes(_ written: String, _ isRead: Bool) throws {
        let at = isRead ? ChatTimestamp(milliseconds: 1_763_695_136_000) : nil
        #expect(try message(#""message":"x","timestamp":"\#(written)""#)?.at == at)
    }

    // MARK: - Reading beyond the fixtures

    private func message(_ members: String) throws -> ChatMessage? {
        guard
            let events = try decode(Array(#"{"type":"message",\#(members)}"#.utf8)).events,
            case .message(let message) = events.first
        else { return nil }
        return message
    }

    @Test("a message that says nothing is dropped, whatever nothing it says")
    func emptyMessages() throws {
        for members in [#""message":"""#, #""content":"","message":null"#, #""message_type":"text","file_url":"""#] {
            #expect(
                try decode(Array(#"{"type":"message","message_id":8,\#(members)}"#.utf8))
                    == .dropped(.missingField, typeKey: "message"))
        }
    }

    @Test("names of members count however they are written")
    func escapedNames() throws {
        let frame =
            #"{"type":"message","room_id":1,"message_id":7,"sender":"Jo","content":"x","message_type":"image","#
            + #""file_url":"http://h/f","file_name":"f","file_size":3,"mime_type":"image/png","#
            + #""timestamp":"2025-11-21T03:18:56","is_encrypted":true}"#
        let plain = try decode(Array(frame.utf8))
        guard case .event(.message(let message)) = plain else {
            Issue.record("\(plain)")
            return
        }
        #expect(message.isEncrypted && message.attachments.first?.mime == "image/png" && message.at != nil)
        for name in [
            "type", "room_id", "message_id", "sender", "content", "message_type", "file_url", "file_name", "file_size",
            "mime_type", "timestamp", "is_encrypted",
        ] {
            let letter = String(name.utf8.last ?? 0, radix: 16)
            let escaped = frame.split(separator: "\"\(name)\":", maxSplits: 1, omittingEmptySubsequences: false)
                .joined(separator: "\"\(name.dropLast())\\u00\(letter)\":")
            #expect(escaped != frame)
            #expect(try decode(Array(escaped.utf8)) == plain, "\(name)")
        }
        let counted = #"{"type":"reaction_added","message_id":7,"reaction_type":"👍","reaction_summary":[]}"#
        guard case .event(.reaction(let reaction)) = try decode(Array(counted.utf8)) else {
            Issue.record("no reaction")
            return
        }
        #expect(reaction.emoji == "👍")
    }

    @Test("an encrypted message is one, even without a text that we can read")
    func encrypted() throws {
        let message = try message(#""message_id":8,"message":null,"is_encrypted":true,"encrypted_content":"AAAA""#)
        #expect(message == ChatMessage(id: ChatID("8"), text: "", isEncrypted: true))
    }

    @Test(
        "the address of a file stays with the backend unless it has a scheme",
        arguments: [
            ("/api/files/a", "http://chat.example:8000/api/files/a"),
            ("api/files/a", "http://chat.example:8000/api/files/a"),
            ("//evil.example/a", "http://chat.example:8000/evil.example/a"),
            ("/", "http://chat.example:8000/"), ("HTTPS://cdn.example/a", "HTTPS://cdn.example/a"),
            ("1a:b", "http://chat.example:8000/1a:b"), (":a", "http://chat.example:8000/:a"),
        ])
    func resolved(_ url: String, _ whole: String) throws {
        #expect(try message(#""file_url":"\#(url)""#)?.attachments.first?.url == whole)
    }

    @Test("without a base an address stays as it is")
    func unresolved() throws {
        let frame = #"{"type":"message","file_url":"/a.png","mime_type":"image/png"}"#
        #expect(
            try decode(Array(frame.utf8), JWTRoomsDialect())
                == .events([
                    .message(
                        ChatMessage(
                            text: "", attachments: [ChatAttachment(kind: .image, url: "/a.png", mime: "image/png")]))
                ]))
    }

    @Test(
        "a size is a number above zero, in quotes or not",
        arguments: [
            ("5", 5 as Int64?), (#""5""#, 5), ("5.9", 5), ("0", nil), ("-5", nil), (#""-5""#, nil), ("true", nil),
            ("1e300", nil), (#""9999999999999999999""#, nil), (#""""#, nil), ("null", nil),
            ("9223372036854775807", Int64.max), ("9223372036854775808", nil),
        ])
    func sizes(_ written: String, _ size: Int64?) throws {
        #expect(try message(#""file_url":"/a","file_size":\#(written)"#)?.attachments.first?.size == size)
    }

    @Test("a nested attachment without address and name is none")
    func emptyAttachment() throws {
        #expect(try message(#""message":"x","attachment":{"type":"image","size":5}"#)?.attachments == [])
        #expect(try message(#""message":"x","attachment":{"filename":"a.txt"}"#)?.attachments.first?.kind == .file)
    }

    @Test("counts that cannot be read do not cost the reaction")
    func reactionCounts() throws {
        let frame = #"""
            {"type":"reaction_added","message_id":7,"reaction_type":"x","reaction_summary":[5,{"count":2},
            {"reaction_type":"y","users":["a",5]}]}
            """#
        #expect(
            try decode(Array(frame.utf8))
                == .events([
                    .reaction(
                        ChatReaction(
                            target: ChatID("7"), emoji: "x", operation: .add,
                            counts: [ChatReaction.Count(emoji: "y", count: 1, users: ["a"])]))
                ]))
    }

    // MARK: - Writing beyond the fixtures

    private func roomID(_ options: String, _ context: DialectContext) throws -> JSONValue? {
        let encoded = try dialect(options).encode(.message(ChatMessage(text: "x")), context: context)
        if case .unsupported(.missingField) = encoded { return nil }
        return try #require(frames(encoded).first)["room_id"]
    }

    @Test("frames name the room as the backend announced it, else as the option or the room says")
    func roomNumbers() throws {
        let announced = DialectContext(selfNames: ["bridge"], room: "General", announcedRoom: "3")
        #expect(try roomID(#"{"room_id":1}"#, announced) == .integer(3))
        #expect(try roomID("{}", announced) == .integer(3))
        #expect(try roomID(#"{"room_id":1}"#, DialectContext(room: "General")) == .integer(1))
        #expect(try roomID("{}", DialectContext(room: "12")) == .integer(12))
        #expect(try roomID("{}", DialectContext(room: "General")) == nil)
        #expect(try roomID("{}", DialectContext(room: "General", announcedRoom: "r-1")) == .string("r-1"))
        #expect(try roomID("{}", DialectContext(room: "General", announcedRoom: "01")) == .string("01"))
        #expect(
            try roomID("{}", DialectContext(room: "x", announcedRoom: "18446744073709551616"))
                == .literal("18446744073709551616"))
    }

    @Test("the sender is the account, whoever of us speaks")
    func sender() throws {
        let command = ChatCommand.message(ChatMessage(sender: ChatPerson(name: "ada"), text: "x"))
        let first = try frames(dialect().encode(command, context: context)).first
        #expect(try #require(first)["sender"] == .string("bridge"))
        let unknown = DialectContext(room: "1")
        #expect(try frames(dialect().encode(command, context: unknown)).first?["sender"] == .string("ada"))
    }

    @Test(
        "a reaction goes to a number and is one of six",
        arguments: [
            ("7", "👍", true), ("7", "❤️", true), ("7", "❤", false), ("007", "👍", false), ("", "👍", false),
            ("-7", "👍", false), ("7", "", false),
        ])
    func reactions(_ target: String, _ emoji: String, _ isWritten: Bool) throws {
        let encoded = try dialect().encode(
            .reaction(ChatReaction(target: ChatID(target), emoji: emoji, operation: .remove)), context: context)
        if isWritten {
            #expect(try frames(encoded).first?["action"] == .string("remove"))
        } else {
            #expect(encoded == .unsupported(.unsupported))
        }
    }

    @Test("a frame of exactly the largest size is written, one byte more is too long")
    func size() throws {
        let dialect = try dialect()
        func size(_ text: String) throws -> Int {
            guard let frames = dialect.encode(.message(ChatMessage(text: text)), context: context).frames else {
                return 0
            }
            return frames.reduce(0) { $0 + $1.bytes.count }
        }
        let fitting = String(repeating: "x", count: try dialect.traits.maxFrameBytes - size(""))
        #expect(try size(fitting) == dialect.traits.maxFrameBytes)
        #expect(
            dialect.encode(.message(ChatMessage(text: fitting + "x")), context: context) == .unsupported(.tooLong))
    }

    // MARK: - Noise

    @Test("random and spoilt bytes end in events or a drop", arguments: 0..<8)
    func noise(_ seed: UInt64) throws {
        let spoilt = SpoiltFrames(
            lines: Self.inLines,
            words: [
                "type", "message", "typing", "reaction_added", "connected", "error", "user_joined", "room_id",
                "message_id",
                "sender", "content", "attachment", "url", "filename", "size", "duration", "width", "file_url",
                "file_size",
                "timestamp", "reaction_type", "reaction_summary", "count", "users", "is_encrypted", "message_type",
            ])
        expectEventsOrDrops(spoilt, seed: seed, try Self.fixtureDialect(), context)
    }

    // MARK: - Tools

    private let context = DialectContext(selfNames: ["bridge"], room: "General", announcedRoom: "1")

    private func dialect(_ options: String = "{}") throws -> JWTRoomsDialect {
        try JWTRoomsDialect(DialectOptions(try JSONValue(parsing: options)))
    }

    private func decode(_ bytes: [UInt8], _ dialect: JWTRoomsDialect? = nil) throws -> DecodedFrame {
        let dialect = try dialect ?? Self.fixtureDialect()
        return bytes.withUnsafeBytes { dialect.decode($0, isBinary: false, context: context) }
    }

    private func frames(_ encoded: EncodedCommand) throws -> [JSONValue] {
        guard let frames = encoded.frames else {
            Issue.record("\(encoded)")
            return []
        }
        return try frames.map { try JSONValue(parsing: $0.bytes) }
    }
}
