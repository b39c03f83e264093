import ChatModel
import Dialects
import JSONText
import Testing

@Suite("Envelope dialect")
struct EnvelopeDialectTests {
    static let fixtures = Result { try FixtureSet("envelope") }
    static var inLines: [FixtureLine] { (try? fixtures.get().inLines) ?? [] }
    static var outLines: [FixtureLine] { (try? fixtures.get().outLines) ?? [] }

    @Test("the fixtures are there")
    func fixturesAreThere() throws {
        #expect(try Self.fixtures.get().inLines.count == 61)
        #expect(try Self.fixtures.get().outLines.count == 10)
    }

    @Test("a frame decodes as its fixture says", arguments: inLines)
    func decodes(_ line: FixtureLine) throws {
        let difference = try Self.fixtures.get().verifyIn(line, EnvelopeDialect())
        #expect(difference == nil)
    }

    @Test("a command encodes as its fixture says", arguments: outLines)
    func encodes(_ line: FixtureLine) throws {
        let difference = try Self.fixtures.get().verifyOut(line, EnvelopeDialect())
        #expect(difference == nil)
    }

    @Test("a frame cut anywhere is malformed", arguments: inLines.prefix(3))
    func cuts(_ line: FixtureLine) throws {
        let bytes = try #require(line.frameBytes)
        for length in 0..<bytes.count {
            #expect(decode(Array(bytes.prefix(length))) == .dropped(.malformed, typeKey: nil), "\(length) bytes")
        }
    }

    @Test("a drop names the type value, if the frame has one")
    func typeKeys() {
        #expect(decode(#"{"event":"reaction"}"#) == .dropped(.unknownType, typeKey: "reaction"))
        #expect(decode(#"{"event":5}"#) == .dropped(.unknownType, typeKey: "5"))
        #expect(decode(#"{"event":"message"}"#) == .dropped(.missingField, typeKey: "message"))
        #expect(decode(#"{"event":"message","body":5}"#) == .dropped(.wrongType, typeKey: "message"))
        #expect(decode(#"{"body":"x"}"#) == .dropped(.missingField, typeKey: nil))
    }

    @Test("the last of members with one name counts, and escaped names are names")
    func repeatedMembers() {
        let frame = #"{"event":"typing","\u0062ody":"b","body":"a","\u0065vent":"message","body":"c"}"#
        #expect(decode(frame) == .events([.message(ChatMessage(text: "c"))]))
    }

    @Test("somebody without an id is not us, even under our name")
    func nameAlone() {
        let decoded = decode(#"{"event":"message","sender_name":"Ada","body":""}"#)
        #expect(decoded == .events([.message(ChatMessage(sender: ChatPerson(name: "Ada"), text: ""))]))
    }

    // MARK: - Writing

    private let ada = ChatPerson(id: ChatID("A"), name: "Ada")
    private let at = ChatTimestamp(milliseconds: 1_763_695_136_000)

    private func encode(_ command: ChatCommand) -> EncodedCommand {
        EnvelopeDialect().encode(command, context: DialectContext(room: "kitchen"))
    }

    @Test("a command without what the apps insist on is not written")
    func incomplete() {
        let missing = EncodedCommand.unsupported(.missingField)
        #expect(encode(.message(ChatMessage(sender: ada, text: "x", at: at))) == missing)
        #expect(encode(.message(ChatMessage(id: ChatID("1"), sender: ada, text: "x"))) == missing)
        #expect(encode(.message(ChatMessage(id: ChatID("1"), text: "x", at: at))) == missing)
        #expect(encode(.typing(ChatTyping(state: .start, sender: ada, at: at))) == missing)
        #expect(encode(.receipt(ChatReceipt(state: .read, ids: [], by: ada, at: at))) == missing)
    }

    @Test("somebody without a name is written under the id")
    func nameless() throws {
        let encoded = encode(
            .message(ChatMessage(id: ChatID("1"), sender: ChatPerson(id: ChatID("A")), text: "", at: at)))
        guard let frames = encoded.frames, let frame = frames.first else {
            Issue.record("\(encoded)")
            return
        }
        #expect(try JSONValue(parsing: frame.bytes)["sender_name"] == .string("A"))
    }

    @Test("a frame of exactly the largest size is written, one byte more is too long")
    func size() throws {
        func encoded(_ text: String) -> EncodedCommand {
            encode(.message(ChatMessage(id: ChatID("1"), sender: ada, text: text, at: at)))
        }
        guard let frames = encoded("").frames, let empty = frames.first else {
            Issue.record("no frame")
            return
        }
        let room = EnvelopeDialect().traits.maxFrameBytes - empty.bytes.count
        let fitting = String(repeating: "\n", count: room / 2) + (room % 2 == 0 ? "" : "x")
        guard let full = encoded(fitting).frames else {
            Issue.record("no frame")
            return
        }
        #expect(full.map(\.bytes.count) == [1024 * 1024])
        #expect(encoded(fitting + "x") == .unsupported(.tooLong))
    }

    @Test("what is written reads back as what was meant", arguments: 0..<8)
    func roundTrip(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        for _ in 0..<200 {
            let text = String(
                String.UnicodeScalarView(
                    (0..<Int.random(in: 0...30, using: &random)).compactMap { _ in
                        Unicode.Scalar(UInt32.random(in: 0...0x2100, using: &random))
                    }))
            let message = ChatMessage(
                id: ChatID(String(random.next())), sender: ada, text: text,
                at: ChatTimestamp(milliseconds: Int64.random(in: 1...99_999_999_999_000, using: &random)))
            guard let frames = encode(.message(message)).frames, let frame = frames.first else {
                Issue.record("no frame for \(message)")
                return
            }
            #expect(decode(frame.bytes) == .events([.message(message)]))
        }
    }

    // MARK: - Noise

    @Test("random and spoilt bytes end in events or a drop", arguments: 0..<8)
    func noise(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        let frames = Self.inLines.compactMap(\.frameBytes).filter { $0.count < 1000 }
        let words = [
            #""event""#, #""message""#, #""typing""#, #""readReceipt""#, #""body""#, #""message_id""#, #""sent_at""#,
            ":",
            ",", "{", "}", "[", "null", "1e9", "-1", #""\ud800""#, "\u{FEFF}",
        ].map { Array($0.utf8) }
        var drops = 0
        var events = 0
        for round in 0..<2000 {
            var frame: [UInt8] = []
            switch round % 3 {
            case 0:
                frame = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
            case 1:
                for _ in 0..<Int.random(in: 1...20, using: &random) {
                    frame += words.randomElement(using: &random) ?? []
                }
            default:
                frame = frames.randomElement(using: &random) ?? []
                for _ in 0..<Int.random(in: 1...3, using: &random) where !frame.isEmpty {
                    frame[Int.random(in: 0..<frame.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
            }
            switch decode(frame) {
            case .event, .several: events += 1
            case .dropped: drops += 1
            }
        }
        // Spoilt letters within a text leave a message, most else does not.
        #expect(drops > events)
        #expect(events > 0)
    }

    private func decode(_ text: String) -> DecodedFrame { decode(Array(text.utf8)) }

    private func decode(_ bytes: [UInt8]) -> DecodedFrame {
        let context = DialectContext(selfIDs: [ChatID("U")], selfNames: ["Ada"], room: "kitchen")
        return bytes.withUnsafeBytes { EnvelopeDialect().decode($0, isBinary: false, context: context) }
    }
}

/// A small generator whose runs can be repeated.
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
