import ChatModel
import Dialects
import JSONText
import Testing

@Suite("Swiftchat dialect")
struct SwiftChatDialectTests {
    static let fixtures = Result { try FixtureSet("swiftchat") }
    static var inLines: [FixtureLine] { (try? fixtures.get().inLines) ?? [] }
    static var outLines: [FixtureLine] { (try? fixtures.get().outLines) ?? [] }

    @Test("the fixtures are there")
    func fixturesAreThere() throws {
        #expect(try Self.fixtures.get().inLines.count == 41)
        #expect(try Self.fixtures.get().outLines.count == 12)
    }

    @Test("a frame decodes as its fixture says", arguments: inLines)
    func decodes(_ line: FixtureLine) throws {
        let fixtures = try Self.fixtures.get()
        #expect(fixtures.verifyIn(line, try SwiftChatDialect(DialectOptions(fixtures.options))) == nil)
    }

    @Test("a command encodes as its fixture says", arguments: outLines)
    func encodes(_ line: FixtureLine) throws {
        let fixtures = try Self.fixtures.get()
        let difference = try fixtures.verifyOut(line, try SwiftChatDialect(DialectOptions(fixtures.options)))
        #expect(difference == nil)
    }

    @Test("a frame cut anywhere is malformed", arguments: inLines.prefix(3))
    func cuts(_ line: FixtureLine) throws {
        let bytes = try #require(line.frameBytes)
        for length in 0..<bytes.count {
            #expect(try decode(Array(bytes.prefix(length))) == .dropped(.malformed, typeKey: nil), "\(length) bytes")
        }
    }

    @Test("there are no options")
    func options() throws {
        let path = try RefusedOptions(#"{"typing":true}"#).errorPath { options throws(DialectOptionError) in
            _ = try SwiftChatDialect(options)
        }
        #expect(path == ["typing"])
    }

    @Test("the last of members with one name counts, and a name alone is never us")
    func oddFrames() throws {
        let decoded = try decode(Array(#"{"message":5,"user":"Kim","m\u0065ssage":"x"}"#.utf8))
        #expect(decoded == .events([.message(ChatMessage(sender: ChatPerson(name: "Kim"), text: "x"))]))
    }

    // MARK: - Writing

    private let kim = ChatPerson(id: ChatID("3F2504E0-4F89-41D3-9A0C-0305E82C3301"), name: "Kim")

    private func encode(_ text: String, _ sender: ChatPerson) throws -> EncodedCommand {
        try SwiftChatDialect().encode(
            .message(ChatMessage(sender: sender, text: text)), context: DialectContext(room: "chat"))
    }

    @Test(
        "only a UUID is a user",
        arguments: [
            ("3F2504E0-4F89-41D3-9A0C-0305E82C3301", true), ("3f2504e0-4f89-41d3-9a0c-0305e82c3301", true),
            ("{3F2504E0-4F89-41D3-9A0C-0305E82C3301}", false), ("3F2504E04F8941D39A0C0305E82C3301", false),
            ("3F2504E0-4F89-41D3-9A0C-0305E82C330", false), ("3F2504E0-4F89-41D3-9A0C-0305E82C330G", false),
            ("3F2504E0-4F89-41D3-9A0C0-305E82C3301", false), ("", false),
        ])
    func users(_ id: String, _ isWritten: Bool) throws {
        let encoded = try encode("x", ChatPerson(id: ChatID(id), name: "Kim"))
        if isWritten {
            guard let frames = encoded.frames else {
                Issue.record("\(encoded)")
                return
            }
            #expect(try JSONValue(parsing: frames[0].bytes)["userID"] == .string(id))
        } else {
            #expect(encoded == .unsupported(.wrongType))
        }
        #expect(try encode("x", ChatPerson(name: "Kim")) == .unsupported(.wrongType))
    }

    @Test("somebody without a name is written under the id")
    func nameless() throws {
        guard let frames = (try encode("x", ChatPerson(id: kim.id))).frames else {
            Issue.record("no frame")
            return
        }
        #expect(try JSONValue(parsing: frames[0].bytes)["user"] == .string("3F2504E0-4F89-41D3-9A0C-0305E82C3301"))
    }

    @Test("a frame of exactly 16384 bytes is written, one byte more is too long")
    func size() throws {
        guard let frames = (try encode("", kim)).frames, let empty = frames.first else {
            Issue.record("no frame")
            return
        }
        let room = 16384 - empty.bytes.count
        let fitting = String(repeating: "\n", count: room / 2) + (room % 2 == 0 ? "" : "x")
        guard let full = (try encode(fitting, kim)).frames else {
            Issue.record("no frame")
            return
        }
        #expect(full.map(\.bytes.count) == [16384])
        #expect(try encode(fitting + "x", kim) == .unsupported(.tooLong))
    }

    @Test("a long text is cut so that every part is a frame, and nothing is lost")
    func cutsLongTexts() throws {
        let dialect = try SwiftChatDialect()
        let text = (0..<400).map { "line \($0) \(String(repeating: "🦀\"", count: $0 % 40))\n" }.joined()
        var rest = text[...]
        var parts = 0
        while !rest.isEmpty {
            let message = ChatMessage(sender: kim, text: String(rest))
            let end = try #require(dialect.cut(of: message, context: DialectContext(room: "chat")))
            let part = String(message.text[..<end])
            guard let frames = (try encode(part, kim)).frames else {
                Issue.record("a part that does not fit")
                return
            }
            #expect(frames[0].bytes.count <= 16384)
            #expect(part.hasSuffix("\n"))
            rest = rest.dropFirst(part.count)
            parts += 1
        }
        #expect(parts == 4)
    }

    @Test("what is written reads back as what was meant, but for what the server adds", arguments: 0..<4)
    func roundTrip(_ seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        for _ in 0..<100 {
            let text = String(
                String.UnicodeScalarView(
                    (0..<Int.random(in: 0...30, using: &random)).compactMap { _ in
                        Unicode.Scalar(UInt32.random(in: 0...0x2100, using: &random))
                    }))
            guard let frames = (try encode(text, kim)).frames, let frame = frames.first else {
                Issue.record("no frame for \(text)")
                return
            }
            let wanted = ChatMessage(sender: kim, text: text, isSelf: true)
            #expect(try decode(frame.bytes) == .events([.message(wanted)]))
        }
    }

    // MARK: - Noise

    @Test("random and spoilt frames end in events or a drop", arguments: 0..<8)
    func noise(_ seed: UInt64) throws {
        let words = ["message", "user", "userID", "date", "id", "2025-11-21T03:18:56Z"].map { "\"\($0)\"" }
        var source = NoiseSource(seed: seed, frames: Self.inLines.compactMap(\.frameBytes), words: words)
        var drops = 0
        var events = 0
        for _ in 0..<3000 {
            switch try decode(source.next()) {
            case .event, .several: events += 1
            case .dropped: drops += 1
            }
        }
        #expect(drops > events / 2)
        #expect(events > 0)
    }

    private func decode(_ bytes: [UInt8]) throws -> DecodedFrame {
        let dialect = try SwiftChatDialect()
        let context = DialectContext(selfIDs: kim.id.map { [$0] } ?? [], selfNames: ["Kim"], room: "chat")
        return bytes.withUnsafeBytes { dialect.decode($0, isBinary: false, context: context) }
    }
}
