import ChatModel
import Dialects
import Foundation
import JSONText
import Testing

/// Options that are refused, and where the fault is.
struct RefusedOptions: Sendable, CustomTestStringConvertible {
    let json: String
    let path: [String]

    init(_ json: String, _ path: String...) {
        self.json = json
        self.path = path
    }

    var testDescription: String { json }

    /// The path of the error that `make` throws for the options; nil when it throws none.
    func errorPath(_ make: (consuming DialectOptions) throws(DialectOptionError) -> Void) throws -> [String]? {
        let options = DialectOptions(try JSONValue(parsing: json))
        do throws(DialectOptionError) {
            try make(options)
            return nil
        } catch {
            return error.path
        }
    }
}

@Suite("Typed dialect")
struct TypedDialectTests {
    static let fixtures = Result { try FixtureSet("typed") }
    static var inLines: [FixtureLine] { (try? fixtures.get().inLines) ?? [] }
    static var outLines: [FixtureLine] { (try? fixtures.get().outLines) ?? [] }

    private static func dialect(_ options: String = "{}") throws -> TypedDialect {
        try TypedDialect(DialectOptions(try JSONValue(parsing: options)))
    }

    /// A frame with its payload decoded, by another decoder than ours.
    private static func opened(_ frame: JSONValue) throws -> JSONValue {
        guard case .object(let members) = frame, let base64 = frame["payload"]?.string,
            let payload = Data(base64Encoded: base64)
        else { throw NoPayload() }
        let value = try JSONValue(parsing: Array(payload))
        return .object(members.map { .init($0.key, $0.key == "payload" ? value : $0.value) })
    }

    @Test("the fixtures are there")
    func fixturesAreThere() throws {
        #expect(try Self.fixtures.get().inLines.count == 52)
        #expect(try Self.fixtures.get().outLines.count == 9)
    }

    @Test("a frame decodes as its fixture says", arguments: inLines)
    func decodes(_ line: FixtureLine) throws {
        let fixtures = try Self.fixtures.get()
        #expect(fixtures.verifyIn(line, try TypedDialect(DialectOptions(fixtures.options))) == nil)
    }

    @Test("a command encodes as its fixture says", arguments: outLines)
    func encodes(_ line: FixtureLine) throws {
        let fixtures = try Self.fixtures.get()
        let difference = try fixtures.verifyOut(
            line, try TypedDialect(DialectOptions(fixtures.options)), isBinary: true, unwrap: Self.opened)
        #expect(difference == nil)
    }

    @Test("a frame cut anywhere is malformed", arguments: inLines.prefix(3))
    func cuts(_ line: FixtureLine) throws {
        let bytes = try #require(line.frameBytes)
        for length in 0..<bytes.count {
            #expect(try decode(Array(bytes.prefix(length))) == .dropped(.malformed, typeKey: nil), "\(length) bytes")
        }
    }

    @Test("a payload is the same in every form it comes in")
    func payloadForms() throws {
        let payload = #"{"id":"t1","senderId":"u2","text":"ÿþ??>>~~","sentAt":785387936.5}"#
        let base64 = Data(payload.utf8).base64EncodedString()
        let loose = base64.replacingOccurrences(of: "=", with: "")
        let safe = base64.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
        let mixed = loose.replacingOccurrences(of: "+", with: "-")
        let list = payload.utf8.map(String.init).joined(separator: ", ")
        let wanted = DecodedFrame.events([
            .message(
                ChatMessage(
                    id: ChatID("t1"), sender: ChatPerson(id: ChatID("u2")), text: "ÿþ??>>~~",
                    at: ChatTimestamp(milliseconds: 1_763_695_136_500)))
        ])
        #expect(base64.contains("/") && base64.contains("+") || safe != base64)
        for form in [
            "\"\(base64)\"", "\"\(loose)\"", "\"\(safe)\"", "\"\(mixed)\"", "\"\(base64)====\"",
            "\"\(base64.replacingOccurrences(of: "/", with: "\\/"))\"",
            "\"\(base64.replacingOccurrences(of: "e", with: "\\u0065"))\"", payload, "[\(list)]",
        ] {
            #expect(try decode(#"{"type":"chat.message","payload":\#(form)}"#) == wanted, "\(form.prefix(40))")
        }
    }

    @Test(
        "a payload that is none is dropped for its reason",
        arguments: [
            (#""a""#, .malformed), (#""e30 ""#, .malformed), (#""e3\n0=""#, .malformed), (#""=e30""#, .malformed),
            (#""e=30""#, .malformed), (#""é30=""#, .malformed), (#""====""#, .malformed), ("[]", .malformed),
            ("[123]", .malformed), ("[256]", .wrongType), ("[-1]", .wrongType), ("[123.0,125]", .wrongType),
            (#"["a"]"#, .wrongType), ("[null]", .wrongType), ("[[123,125]]", .wrongType), ("true", .wrongType),
            ("1.5", .wrongType), (#""W10=""#, .notObject), (#""Im5vIg==""#, .notObject), ("{}", .missingField),
            ("[123,125]", .missingField), (#""e30""#, .missingField), (#""\ud83e\udd80""#, .malformed),
        ] as [(String, DropReason)])
    func badPayloads(_ payload: String, _ reason: DropReason) throws {
        let decoded = try decode(#"{"type":"chat.message","payload":\#(payload)}"#)
        #expect(decoded == .dropped(reason, typeKey: "chat.message"))
    }

    @Test(
        "what is wrong inside a payload is dropped under its type",
        arguments: [
            ("chat.edit", #"{"text":"x"}"#, .missingField), ("chat.edit", #"{"id":"1","text":5}"#, .missingField),
            ("chat.delete", #"{"ids":"12"}"#, .missingField), ("chat.delete", #"{"ids":[null,{},""]}"#, .missingField),
            ("chat.typing", "{}", .missingField), ("chat.typing", #"{"active":"yes"}"#, .wrongType),
            ("chat.receipt", #"{"ids":["1"]}"#, .unknownType),
            ("chat.receipt", #"{"ids":["1"],"state":1}"#, .unknownType),
            ("chat.receipt", #"{"state":"read"}"#, .missingField), ("chat.presence", "{}", .unknownType),
            ("chat.presence", #"{"state":"asleep"}"#, .unknownType), ("chat.presence", #"{"state":{}}"#, .unknownType),
            ("chat.reaction", #"{"messageId":"1"}"#, .missingField),
            ("chat.reaction", #"{"messageId":"1","emoji":""}"#, .missingField),
            ("chat.message", #"{"text":null,"attachments":[]}"#, .missingField),
            ("chat.message", #"{"attachments":[5,"x"]}"#, .missingField), ("chat.message", #"{"text":[]}"#, .wrongType),
            ("chat.messages", "{}", .unknownType), ("Chat.message", "{}", .unknownType), ("", "{}", .unknownType),
        ] as [(String, String, DropReason)])
    func badEvents(_ type: String, _ payload: String, _ reason: DropReason) throws {
        let decoded = try decode(#"{"payload":\#(payload),"type":"\#(type)"}"#)
        #expect(decoded == .dropped(reason, typeKey: type))
    }

    @Test("a name alone is never us, and presence of our own is")
    func selves() throws {
        let named = try decode(#"{"type":"chat.message","payload":{"senderName":"dot","text":""}}"#)
        #expect(named == .events([.message(ChatMessage(sender: ChatPerson(name: "dot"), text: ""))]))
        let joined = try decode(#"{"type":"chat.presence","payload":{"userId":"u-me","state":"joined"}}"#)
        #expect(joined == .events([.join(ChatMembership(user: ChatPerson(id: ChatID("u-me")), isSelf: true))]))
    }

    @Test("an attachment is read as far as it goes")
    func attachments() throws {
        let decoded = try decode(
            #"{"type":"chat.message","payload":{"attachments":[{"url":"https://f/1","size":"12","kind":"audio"},"#
                + #"{"mimeType":"application/pdf","size":-1},{"kind":"hologram","size":1.5},7]}}"#)
        let files = [
            ChatAttachment(kind: .audio, url: "https://f/1", size: 12),
            ChatAttachment(kind: .document, mime: "application/pdf"), ChatAttachment(kind: .file, size: 1),
        ]
        #expect(decoded == .events([.message(ChatMessage(text: "", attachments: files))]))
    }

    // MARK: - Options

    @Test("a renamed type is known by its new name alone, both ways")
    func renamed() throws {
        let dialect = try Self.dialect(#"{"types":{"chat.message":"m\"sg","chat.typing":"chat.message"}}"#)
        let message = ChatMessage(
            id: ChatID("1"), sender: ChatPerson(id: ChatID("u"), name: "Ada"), text: "hi",
            at: ChatTimestamp(milliseconds: 1_763_695_136_500))
        guard let frames = dialect.encode(.message(message), context: DialectContext(room: "reef")).frames else {
            Issue.record("no frame")
            return
        }
        #expect(frames.count == 1)
        #expect(try JSONValue(parsing: frames[0].bytes)["type"] == .string("m\"sg"))
        var wanted = message
        wanted.room = "reef"
        #expect(try decode(frames[0].bytes, dialect) == .events([.message(wanted)]))
        let typing = try decode(Array(#"{"type":"chat.message","payload":{"active":false}}"#.utf8), dialect)
        #expect(typing == .events([.typing(ChatTyping(state: .stop))]))
        let old = try decode(Array(#"{"type":"chat.typing","payload":{"active":false}}"#.utf8), dialect)
        #expect(old == .dropped(.unknownType, typeKey: "chat.typing"))
    }

    @Test(
        "wrong options are refused where they stand",
        arguments: [
            RefusedOptions(#"{"typos":1}"#, "typos"), RefusedOptions(#"{"types":[]}"#, "types"),
            RefusedOptions(#"{"types":{"chat.massage":"x"}}"#, "types", "chat.massage"),
            RefusedOptions(#"{"types":{"chat.edit":5}}"#, "types", "chat.edit"),
            RefusedOptions(#"{"types":{"chat.edit":""}}"#, "types", "chat.edit"),
            RefusedOptions(#"{"types":{"chat.edit":"chat.message"}}"#, "types", "chat.edit"),
            RefusedOptions(#"{"types":{"chat.edit":"x","chat.error":"x"}}"#, "types", "chat.error"),
            RefusedOptions(#"{"fallback_text":"yes"}"#, "fallback_text"),
            RefusedOptions(#"{"fallback_sender":5}"#, "fallback_sender"),
        ])
    func refused(_ row: RefusedOptions) throws {
        let path = try row.errorPath { options throws(DialectOptionError) in _ = try TypedDialect(options) }
        #expect(path == row.path)
    }

    @Test("with fallback_text a frame that is no object is somebody's words")
    func fallbackIn() throws {
        let dialect = try Self.dialect(#"{"fallback_text":true,"fallback_sender":"board"}"#)
        for text in ["hi there", "42", "null", "[1]", #""quoted""#, "{", "{\"a\":1} ", "é🦀\u{0}\n", " "] {
            let decoded = try decode(Array(text.utf8), dialect)
            if text.hasPrefix("{\"a") {
                #expect(decoded == .dropped(.missingField, typeKey: nil))
            } else {
                let wanted = ChatMessage(sender: ChatPerson(name: "board"), text: text)
                #expect(decoded == .events([.message(wanted)]), "\(text)")
            }
        }
        #expect(try decode([], dialect) == .dropped(.malformed, typeKey: nil))
        #expect(try decode([0xFF, 0xFE], dialect) == .dropped(.malformed, typeKey: nil))
        #expect(
            try decode([0xEF, 0xBB, 0xBF, 0x78], try Self.dialect(#"{"fallback_text":true}"#))
                == .events([.message(ChatMessage(text: "x"))]))
        let typed = try decode(Array(#"{"type":"chat.typing","payload":{"active":false}}"#.utf8), dialect)
        #expect(typed == .events([.typing(ChatTyping(state: .stop))]))
    }

    @Test("with fallback_text a message is its text and nothing else is said")
    func fallbackOut() throws {
        let dialect = try Self.dialect(#"{"fallback_text":true}"#)
        #expect(dialect.traits.identity == .single)
        #expect(dialect.traits.confirmation == .none)
        #expect(!dialect.traits.confirmationIsGuess)
        let context = DialectContext(room: "reef")
        let file = ChatAttachment(kind: .image, url: "https://f/1")
        #expect(
            dialect.encode(.message(ChatMessage(text: "hi", attachments: [file])), context: context)
                == .frames([EncodedFrame(bytes: Array("hi\nhttps://f/1".utf8), isBinary: false)]))
        #expect(
            dialect.encode(.message(ChatMessage(text: "")), context: context) == .unsupported(.missingField))
        let sender = ChatPerson(id: ChatID("u"), name: "Ada")
        #expect(
            dialect.encode(.typing(ChatTyping(state: .start, sender: sender)), context: context)
                == .unsupported(.unsupported))
        let long = String(repeating: "x", count: dialect.traits.maxFrameBytes + 1)
        #expect(dialect.encode(.message(ChatMessage(text: long)), context: context) == .unsupported(.tooLong))
    }

    // MARK: - Writing

    private let ada = ChatPerson(id: ChatID("A"), name: "Ada")
    private let at = ChatTimestamp(milliseconds: 1_763_695_136_000)

    private func encode(_ command: ChatCommand) throws -> EncodedCommand {
        try Self.dialect().encode(command, context: DialectContext(room: "reef"))
    }

    @Test("a command without what the wire insists on is not written")
    func incomplete() throws {
        let missing = EncodedCommand.unsupported(.missingField)
        let nobody = ChatPerson(name: "Ada")
        #expect(try encode(.message(ChatMessage(sender: ada, text: "x", at: at))) == missing)
        #expect(try encode(.message(ChatMessage(id: ChatID("1"), sender: ada, text: "x"))) == missing)
        #expect(try encode(.message(ChatMessage(id: ChatID("1"), sender: nobody, text: "x", at: at))) == missing)
        #expect(try encode(.edit(ChatEdit(id: ChatID("1"), text: "x", sender: ada))) == missing)
        #expect(try encode(.delete(ChatDelete(ids: [], sender: ada))) == missing)
        #expect(try encode(.typing(ChatTyping(state: .stop, sender: nobody))) == missing)
        #expect(try encode(.receipt(ChatReceipt(state: .read, ids: [], by: ada))) == missing)
        #expect(try encode(.join(ChatMembership(user: nobody))) == missing)
        #expect(
            try encode(.reaction(ChatReaction(target: ChatID("1"), emoji: "x", operation: .add))) == missing)
    }

    @Test("what the wire has no frame for is not written")
    func unsupported() throws {
        let commands: [ChatCommand] = [
            .receipt(ChatReceipt(state: .sent, ids: [ChatID("1")], by: ada)), .auth(.accessToken("x"), ref: nil),
            .subscribe(room: nil, limit: nil), .fetch(room: nil, ref: nil, limit: nil, before: nil, since: nil),
            .ping(ref: nil), .pong(ref: nil),
        ]
        for command in commands { #expect(try encode(command) == .unsupported(.unsupported)) }
    }

    @Test("whatever is written reads back as what was meant")
    func commandsReadBack() throws {
        let id = ChatID("1")
        let rows: [(ChatCommand, ChatEvent)] = [
            (
                .edit(ChatEdit(id: id, text: "x", sender: ada, at: at)),
                .edit(ChatEdit(id: id, text: "x", room: "reef", sender: ada, at: at))
            ),
            (.delete(ChatDelete(ids: [id], sender: ada)), .delete(ChatDelete(ids: [id], room: "reef", sender: ada))),
            (
                .typing(ChatTyping(state: .stop, sender: ada, room: "other")),
                .typing(ChatTyping(state: .stop, sender: ada, room: "other"))
            ),
            (
                .receipt(ChatReceipt(state: .delivered, ids: [id, id])),
                .receipt(ChatReceipt(state: .delivered, ids: [id, id], room: "reef"))
            ),
            (.join(ChatMembership(user: ada)), .join(ChatMembership(user: ada, room: "reef"))),
            (.leave(ChatMembership(user: ada)), .leave(ChatMembership(user: ada, room: "reef"))),
            (
                .presence(ChatPresence(user: ada, state: .away)),
                .presence(ChatPresence(user: ada, state: .away, room: "reef"))
            ),
            (
                .reaction(ChatReaction(target: id, emoji: "❤️", operation: .remove, sender: ada)),
                .reaction(ChatReaction(target: id, emoji: "❤️", operation: .remove, sender: ada, room: "reef"))
            ),
        ]
        for (command, event) in rows {
            guard let frames = (try encode(command)).frames, let frame = frames.first else {
                Issue.record("no frame for \(command)")
                continue
            }
            #expect(frame.isBinary && frames.count == 1)
            #expect(try decode(frame.bytes) == .events([event]))
        }
    }

    @Test("what is written reads back as what was meant, whatever the text", arguments: 0..<8)
    func roundTrip(_ seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        for _ in 0..<100 {
            let text = String(
                String.UnicodeScalarView(
                    (0..<Int.random(in: 0...30, using: &random)).compactMap { _ in
                        Unicode.Scalar(UInt32.random(in: 0...0x2100, using: &random))
                    }))
            let message = ChatMessage(
                id: ChatID(String(random.next())), room: "reef", sender: ada, text: text,
                at: ChatTimestamp(milliseconds: Int64.random(in: 1...2_178_307_199_000, using: &random)),
                attachments: text.count % 3 == 0 ? [ChatAttachment(kind: .video, url: text + "u", size: 4)] : [],
                replyTo: text.count % 2 == 0 ? ChatID("t0") : nil)
            guard let frames = (try encode(.message(message))).frames, let frame = frames.first else {
                Issue.record("no frame for \(message)")
                return
            }
            #expect(try decode(frame.bytes) == .events([.message(message)]))
        }
    }

    @Test("a frame up to the largest size is written, a longer one is too long")
    func size() throws {
        func encoded(_ count: Int) throws -> EncodedCommand {
            try encode(
                .message(
                    ChatMessage(id: ChatID("1"), sender: ada, text: String(repeating: "x", count: count), at: at)))
        }
        let limit = try Self.dialect().traits.maxFrameBytes
        var low = 0
        var high = limit
        while high - low > 1 {
            let middle = (low + high) / 2
            if let frames = try encoded(middle).frames {
                #expect(frames[0].bytes.count <= limit)
                low = middle
            } else {
                high = middle
            }
        }
        #expect(low > limit * 7 / 10)
        #expect(try encoded(low + 1) == .unsupported(.tooLong))
    }

    // MARK: - Noise

    @Test("random and spoilt frames end in events or a drop", arguments: 0..<8)
    func noise(_ seed: UInt64) throws {
        let words = [
            "type", "payload", "chat.message", "chat.edit", "chat.history", "chat.receipt", "chat.delete", "id", "ids",
            "text", "senderId", "sentAt", "attachments", "messages", "state", "read", "eyJ0ZXh0IjoieCJ9",
        ].map { "\"\($0)\"" }
        var source = NoiseSource(seed: seed, frames: Self.inLines.compactMap(\.frameBytes), words: words)
        let dialect = try Self.dialect()
        var drops = 0
        var events = 0
        for _ in 0..<3000 {
            switch try decode(source.next(), dialect) {
            case .event, .several: events += 1
            case .dropped: drops += 1
            }
        }
        #expect(drops > events)
        #expect(events > 0)
    }

    private func decode(_ text: String) throws -> DecodedFrame { try decode(Array(text.utf8)) }

    private func decode(_ bytes: [UInt8], _ dialect: TypedDialect? = nil) throws -> DecodedFrame {
        let dialect = try dialect ?? Self.dialect()
        let context = DialectContext(selfIDs: [ChatID("u-me")], selfNames: ["dot"], room: "reef")
        return bytes.withUnsafeBytes { dialect.decode($0, isBinary: true, context: context) }
    }
}

/// A fixture of a frame without its payload.
private struct NoPayload: Error {}
