import ChatModel
import Dialects
import JSONText
import Testing

@Suite("plainjson dialect")
struct PlainJSONDialectTests {
    static let fixtures = Result { try FixtureSet("plainjson") }
    static var inLines: [FixtureLine] { (try? fixtures.get().inLines) ?? [] }
    static var outLines: [FixtureLine] { (try? fixtures.get().outLines) ?? [] }

    static func fixtureDialect() throws -> PlainJSONDialect {
        try PlainJSONDialect(DialectOptions(fixtures.get().options))
    }

    @Test("the fixtures are there")
    func fixturesAreThere() throws {
        #expect(try Self.fixtures.get().inLines.count == 46)
        #expect(try Self.fixtures.get().outLines.count == 9)
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

    static let known = ["ack_on", "base", "history_url", "send_last_online", "timestamp"]
    static let badPlaceholder =
        "can have only the placeholders {room}, {since}, {limit}, {before}, {?before}, {before_id}, {?before_id}"
    static let badCharacter = "must be percent-encoded and without a fragment"
    static let badHost = "must not have placeholders in scheme, host or port"

    @Test(
        "an option is taken, or refused with its place",
        arguments: [
            OptionRow("{}"), OptionRow(#"{"timestamp":"reference","ack_on":"never","send_last_online":true}"#),
            OptionRow(#"{"base":"https://chat.example"}"#),
            OptionRow(#"{"history_url":"/messages/{room}?since={since}&limit={limit}","send_last_online":false}"#),
            OptionRow(#"{"history_url":"https://chat.example:8443/{room}"}"#),
            OptionRow(#"{"history_url":"https://chat.example?room={room}"}"#),
            OptionRow(
                #"{"timestamp":"unix"}"#, fails: ["timestamp"], #"must be one of "iso8601", "reference""#),
            OptionRow(#"{"timestamp":1}"#, fails: ["timestamp"], "must be a string"),
            OptionRow(#"{"ack_on":"sent"}"#, fails: ["ack_on"], #"must be one of "read", "delivered", "never""#),
            OptionRow(#"{"send_last_online":1}"#, fails: ["send_last_online"], "must be true or false"),
            OptionRow(
                #"{"send_last_online":true,"history_url":"/{room}"}"#, fails: ["send_last_online"],
                "cannot be on together with \"history_url\""),
            OptionRow(#"{"history_url":"/{user}"}"#, fails: ["history_url"], badPlaceholder),
            OptionRow(#"{"history_url":"/{room"}"#, fails: ["history_url"], badPlaceholder),
            OptionRow(#"{"history_url":"/room}"}"#, fails: ["history_url"], badPlaceholder),
            OptionRow(#"{"history_url":"/a b"}"#, fails: ["history_url"], badCharacter),
            OptionRow(#"{"history_url":"/é"}"#, fails: ["history_url"], badCharacter),
            OptionRow(#"{"history_url":"/a#b"}"#, fails: ["history_url"], badCharacter),
            OptionRow(#"{"history_url":"https://{room}.example/"}"#, fails: ["history_url"], badHost),
            OptionRow(#"{"history_url":"https://chat.example:{limit}/"}"#, fails: ["history_url"], badHost),
            OptionRow(#"{"history_url":"https://chat.example{room}"}"#, fails: ["history_url"], badHost),
            OptionRow(#"{"history_url":"https:///{room}"}"#, fails: ["history_url"], "must name a host"),
            OptionRow(
                #"{"history_url":"//evil.example/{room}"}"#, fails: ["history_url"],
                #"must begin with "/", "http://" or "https://""#),
            OptionRow(
                #"{"history_url":"{room}"}"#, fails: ["history_url"], #"must begin with "/", "http://" or "https://""#),
            OptionRow(#"{"base":"//chat.example"}"#, fails: ["base"], JWTRoomsDialectTests.badBase),
            OptionRow(#"{"ackOn":"read"}"#, fails: ["ackOn"], "unknown option", known: known),
        ])
    func options(_ row: OptionRow) throws {
        let direct = try row.failure { options throws(DialectOptionError) in _ = try PlainJSONDialect(options) }
        #expect(direct == row.failure)
        let named = try row.failure { options throws(DialectOptionError) in
            _ = try DialectTable.dialect(named: "article", options: options)
        }
        #expect(named == row.failure)
    }

    @Test("the traits are those of the wire, and the options show in them")
    func traits() throws {
        let traits = try dialect().traits
        #expect(traits.identity == .puppet)
        #expect(traits.messageIDOrigin == .client)
        #expect(traits.confirmation == .receipt)
        #expect(traits.typingOut == .startStop)
        #expect(traits.readReport == .eachMessage)
        #expect(traits.history == .none && traits.older == .none)
        #expect(traits.backoff == BackoffTraits(first: .seconds(2), factor: 2, cap: .seconds(30), jitter: 0.5))
        #expect(try dialect().calls == nil)
        #expect(try dialect(#"{"ack_on":"delivered"}"#).traits.readReport == .none)
        #expect(try dialect(#"{"ack_on":"never"}"#).traits.readReport == .none)
        #expect(try dialect(#"{"send_last_online":true}"#).traits.history == .socket)
        #expect(try dialect(#"{"send_last_online":true}"#).traits.older == .none)
        #expect(try dialect(#"{"history_url":"/{room}"}"#).traits.older == .call)
        #expect(try dialect(#"{"history_url":"/{room}"}"#).traits.history == .call)
    }

    @Test(
        "a receipt is written when the option says so",
        arguments: [
            ("read", ChatReceipt.State.read, true), ("read", .delivered, false), ("read", .sent, false),
            ("delivered", .delivered, true), ("delivered", .read, false), ("never", .read, false),
            ("never", .delivered, false),
        ])
    func acks(_ option: String, _ state: ChatReceipt.State, _ isWritten: Bool) throws {
        let encoded = try dialect(#"{"ack_on":"\#(option)"}"#).encode(
            .receipt(ChatReceipt(state: state, ids: [ChatID("p1")])), context: context)
        if isWritten {
            #expect(try frames(encoded) == [JSONValue(parsing: #"{"type":"ack","messageId":"p1"}"#)])
        } else {
            #expect(encoded == .unsupported(.unsupported))
        }
    }

    // MARK: - Times

    private func written(_ milliseconds: Int64, _ options: String = "{}") throws -> JSONValue? {
        let message = ChatMessage(
            id: ChatID("1"), sender: ChatPerson(id: ChatID("A")), text: "",
            at: ChatTimestamp(milliseconds: milliseconds))
        return try frames(dialect(options).encode(.message(message), context: context)).first?["timestamp"]
    }

    @Test(
        "a time is written in whole seconds",
        arguments: [
            (0 as Int64, "1970-01-01T00:00:00Z"), (1_763_695_136_999, "2025-11-21T03:18:56Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"), (951_868_799_000, "2000-02-29T23:59:59Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00Z"), (1_735_689_599_000, "2024-12-31T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"), (253_402_300_799_999, "9999-12-31T23:59:59Z"),
            (-1, "1970-01-01T00:00:00Z"), (Int64.max, "9999-12-31T23:59:59Z"), (Int64.min, "1970-01-01T00:00:00Z"),
        ])
    func times(_ milliseconds: Int64, _ text: String) throws {
        #expect(try written(milliseconds) == .string(text))
    }

    @Test("or since 2001, with its fraction")
    func referenceTimes() throws {
        let options = #"{"timestamp":"reference"}"#
        #expect(try written(1_763_695_136_250, options) == .double(785_387_936.25))
        #expect(try written(0, options) == .integer(-978_307_200))
        #expect(try written(Int64.min, options) == .integer(-978_307_200))
    }

    @Test("what is written reads back as what was meant", arguments: ["iso8601", "reference"])
    func roundTrip(_ style: String) throws {
        var random = SplitMix(seed: 7)
        let dialect = try dialect(#"{"timestamp":"\#(style)"}"#)
        for _ in 0..<1000 {
            // Since 2001: earlier times are negative there, and below what is read.
            let seconds = Int64.random(in: 978_307_201...2_100_000_000, using: &random)
            let text = String(
                String.UnicodeScalarView(
                    (0..<Int.random(in: 0...30, using: &random)).compactMap { _ in
                        Unicode.Scalar(UInt32.random(in: 0...0x2100, using: &random))
                    }))
            let message = ChatMessage(
                id: ChatID(String(random.next())), room: "abc", sender: ChatPerson(id: ChatID("A"), name: "Ada"),
                text: text, at: ChatTimestamp(milliseconds: seconds * 1000))
            guard let frames = dialect.encode(.message(message), context: context).frames,
                let frame = frames.first
            else {
                Issue.record("no frame for \(message)")
                return
            }
            #expect(try decode(frame.bytes) == .events([.message(message)]))
        }
    }

    // MARK: - History on the socket

    private func fetch(_ since: ChatTimestamp?, _ options: String) throws -> EncodedCommand {
        try dialect(options).encode(
            .fetch(room: nil, ref: "f", limit: 50, before: nil, since: since), context: context)
    }

    @Test("being back is told where the option says so, from a second before the last message")
    func lastOnline() throws {
        let since = ChatTimestamp(milliseconds: 1_763_695_136_250)
        #expect(
            try frames(fetch(since, #"{"send_last_online":true}"#))
                == [JSONValue(parsing: #"{"type":"lastOnline","timestamp":"2025-11-21T03:18:55Z"}"#)])
        #expect(
            try frames(fetch(since, #"{"send_last_online":true,"timestamp":"reference"}"#))
                == [JSONValue(parsing: #"{"type":"lastOnline","timestamp":785387935.25}"#)])
        #expect(try fetch(since, "{}") == .unsupported(.unsupported))
        #expect(try fetch(nil, #"{"send_last_online":true}"#) == .unsupported(.missingField))
    }

    @Test("only messages of an array are history")
    func arrays() throws {
        let frame = #"""
            [{"id":"1","text":"a"},{"type":"system","text":"b"},{"type":"typing","userId":"x","text":"c"},
            {"type":"ack","messageId":"1","text":"d"},{"text":5},[],null,{"id":"2","text":"e","type":"later"}]
            """#
        #expect(
            try decode(Array(frame.utf8))
                == .events([
                    .history(
                        ChatHistory(messages: [
                            ChatMessage(id: ChatID("1"), text: "a"), ChatMessage(id: ChatID("2"), text: "e"),
                        ]))
                ]))
    }

    // MARK: - Reading beyond the fixtures

    @Test(
        "the address of a file goes by many names, the first of them before the others",
        arguments: [
            (
                #"{"audioUrl":"g","videoUrl":"f","imageUrl":"e","file_url":"d","fileURL":"c","fileUrl":"b","url":"a"}"#,
                "a"
            ),
            (#"{"audioUrl":"g","file_url":"d","fileURL":"c"}"#, "c"), (#"{"audioUrl":"g"}"#, "g"),
            (#"{"url":"","fileUrl":"b"}"#, "b"), (#"{"url":null,"fileUrl":"b"}"#, "b"),
        ])
    func addresses(_ metadata: String, _ url: String) throws {
        let attachments = try message(#""type":"audio","metadata":\#(metadata)"#)?.attachments
        #expect(attachments == [ChatAttachment(kind: .audio, url: url)])
    }

    @Test("metadata that is no object, or says nothing of an address, makes no file of a text")
    func noAddress() throws {
        for metadata in [#""x""#, "[]", "5", #"{"url":5.5e0,"url":{}}"#, #"{"filename":"a.txt"}"#, "{}"] {
            #expect(try message(#""text":"t","metadata":\#(metadata)"#)?.attachments == [], "\(metadata)")
        }
    }

    @Test("a relative address is the backend's, where its address is known")
    func relative() throws {
        let frame = #"{"type":"image","metadata":{"url":"/a.png"}}"#
        let decoded = try decode(Array(frame.utf8), dialect(#"{"base":"https://chat.example/"}"#))
        let file = ChatAttachment(kind: .image, url: "https://chat.example/a.png")
        #expect(decoded == .events([.message(ChatMessage(text: "", attachments: [file]))]))
    }

    @Test("an ack of an unknown status means read, and names its conversation if it says one")
    func ackStatus() throws {
        let frame = #"{"type":"ack","messageId":7,"status":"seen","userId":"me-1","conversationId":"other"}"#
        let receipt = ChatReceipt(
            state: .read, ids: [ChatID("7")], by: ChatPerson(id: ChatID("me-1")), room: "other", isSelf: true)
        #expect(try decode(Array(frame.utf8)) == .events([.receipt(receipt)]))
    }

    @Test("a null type is no type, and a drop names the type value, if the frame has one")
    func types() throws {
        #expect(try message(#""type":null,"text":"x""#) == ChatMessage(text: "x"))
        #expect(try decode(Array(#"{"type":null}"#.utf8)) == .dropped(.missingField, typeKey: nil))
        #expect(try decode(Array(#"{"type":"ack"}"#.utf8)) == .dropped(.missingField, typeKey: "ack"))
        #expect(try decode(Array(#"{"type":"audio"}"#.utf8)) == .dropped(.unknownType, typeKey: "audio"))
        #expect(try decode(Array(#"{"type":4,"text":"x"}"#.utf8)) == .dropped(.wrongType, typeKey: "4"))
    }

    // MARK: - Writing beyond the fixtures

    @Test("a command without what the apps insist on is not written")
    func incomplete() throws {
        let dialect = try dialect()
        let ada = ChatPerson(id: ChatID("A"), name: "Ada")
        let at = ChatTimestamp(milliseconds: 1_763_695_136_000)
        for command: ChatCommand in [
            .message(ChatMessage(sender: ada, text: "x", at: at)),
            .message(ChatMessage(id: ChatID("1"), sender: ada, text: "x")),
            .message(ChatMessage(id: ChatID("1"), sender: ChatPerson(name: "Ada"), text: "x", at: at)),
            .typing(ChatTyping(state: .start, sender: ChatPerson(name: "Ada"))),
            .receipt(ChatReceipt(state: .read, ids: [])),
        ] {
            #expect(dialect.encode(command, context: context) == .unsupported(.missingField))
        }
    }

    @Test("several files become several frames, the text with the first")
    func severalFiles() throws {
        let message = ChatMessage(
            id: ChatID("m"), room: "elsewhere", sender: ChatPerson(id: ChatID("A")), text: "two",
            at: ChatTimestamp(milliseconds: 0),
            attachments: [
                ChatAttachment(kind: .audio, url: "https://f.example/1.mp3", name: "1.mp3"),
                ChatAttachment(kind: .video, url: "https://f.example/2.mp4"),
            ])
        let front = #""senderId":"A","senderName":"A""#
        let back = #""timestamp":"1970-01-01T00:00:00Z","conversationId":"elsewhere""#
        let wanted = try [
            JSONValue(
                parsing: #"""
                    {"id":"m",\#(front),"text":"two\nhttps://f.example/1.mp3",\#(back),"type":"text",
                    "metadata":{"url":"https://f.example/1.mp3","filename":"1.mp3"}}
                    """#),
            JSONValue(
                parsing: #"""
                    {"id":"m.1",\#(front),"text":"",\#(back),"type":"video",
                    "metadata":{"url":"https://f.example/2.mp4"}}
                    """#),
        ]
        let got = try frames(dialect().encode(.message(message), context: context))
        #expect(got.count == 2 && zip(got, wanted).allSatisfy { FixtureCompare.same($0, $1) }, "\(got.map(\.text))")
    }

    @Test("a frame of exactly the largest size is written, one byte more is too long")
    func size() throws {
        let dialect = try dialect()
        func encode(_ text: String) -> EncodedCommand {
            dialect.encode(
                .message(
                    ChatMessage(
                        id: ChatID("1"), sender: ChatPerson(id: ChatID("A")), text: text,
                        at: ChatTimestamp(milliseconds: 0))), context: context)
        }
        guard let frames = encode("").frames, let empty = frames.first else {
            Issue.record("no frame")
            return
        }
        let fitting = String(repeating: "x", count: dialect.traits.maxFrameBytes - empty.bytes.count)
        guard let full = encode(fitting).frames else {
            Issue.record("no frame")
            return
        }
        #expect(full.map(\.bytes.count) == [dialect.traits.maxFrameBytes])
        #expect(encode(fitting + "x") == .unsupported(.tooLong))
    }

    // MARK: - Noise

    static let words = [
        "type", "typing", "stopTyping", "ack", "text", "system", "image", "audio", "id", "senderId", "senderName",
        "timestamp", "metadata", "url", "fileUrl", "size", "mimeType", "conversationId", "userId", "messageId",
        "status",
    ]

    @Test("random and spoilt bytes end in events or a drop", arguments: 0..<8)
    func noise(_ seed: UInt64) throws {
        let spoilt = SpoiltFrames(lines: Self.inLines, words: Self.words)
        expectEventsOrDrops(spoilt, seed: seed, try Self.fixtureDialect(), context)
    }

    // MARK: - Tools

    private let context = DialectContext(selfIDs: [ChatID("me-1")], selfNames: ["me"], room: "abc")

    private func dialect(_ options: String = "{}") throws -> PlainJSONDialect {
        try PlainJSONDialect(DialectOptions(try JSONValue(parsing: options)))
    }

    private func decode(_ bytes: [UInt8], _ dialect: PlainJSONDialect? = nil) throws -> DecodedFrame {
        let dialect = try dialect ?? Self.fixtureDialect()
        return bytes.withUnsafeBytes { dialect.decode($0, isBinary: false, context: context) }
    }

    private func message(_ members: String) throws -> ChatMessage? {
        guard let events = try decode(Array("{\(members)}".utf8)).events,
            case .message(let message) = events.first
        else { return nil }
        return message
    }

    private func frames(_ encoded: EncodedCommand) throws -> [JSONValue] {
        guard let frames = encoded.frames else {
            Issue.record("\(encoded)")
            return []
        }
        return try frames.map { try JSONValue(parsing: $0.bytes) }
    }
}
