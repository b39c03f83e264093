import ChatModel
import Dialects
import Testing

/// A wire whose frames are nothing but the text, at most eight bytes, and on which a hash sign cannot be said.
private struct TinyDialect: Dialect {
    var traits: DialectTraits {
        var traits = EnvelopeDialect().traits
        traits.maxFrameBytes = 8
        return traits
    }

    func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame {
        .dropped(.unsupported, typeKey: nil)
    }

    func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand {
        guard case .message(let message) = command, !message.text.contains("#") else {
            return .unsupported(.unsupported)
        }
        let bytes = Array(message.text.utf8)
        return bytes.count > traits.maxFrameBytes
            ? .unsupported(.tooLong) : .frames([EncodedFrame(bytes: bytes, isBinary: false)])
    }
}

@Suite("Cutting texts to frames")
struct TextFittingTests {
    /// The parts that repeated cutting gives.
    private func parts(_ text: String, _ dialect: some Dialect = TinyDialect()) -> [String]? {
        var parts: [String] = []
        var rest = text
        repeat {
            let message = ChatMessage(
                id: ChatID("1"), sender: ChatPerson(id: ChatID("A"), name: "Ada"), text: rest,
                at: ChatTimestamp(milliseconds: 1))
            guard let end = dialect.cut(of: message, context: DialectContext(room: "kitchen")) else { return nil }
            parts.append(String(rest.unicodeScalars[..<end]))
            rest = String(rest.unicodeScalars[end...])
        } while !rest.isEmpty
        return parts
    }

    @Test(
        "a text is cut after line breaks, then blanks, then code points",
        arguments: [
            ("", [""]), ("12345678", ["12345678"]), ("123456789", ["12345678", "9"]),
            ("12345 789abc", ["12345 ", "789abc"]), ("1234\n6 89", ["1234\n", "6 89"]),
            ("1 345678 9", ["1 345678", " 9"]), ("1\n34567 9", ["1\n34567 ", "9"]),
            ("ééééé", ["éééé", "é"]), ("🦀🦀🦀", ["🦀🦀", "🦀"]), ("xxxxx🦀🦀", ["xxxxx", "🦀🦀"]),
            ("e\u{301}e\u{301}e\u{301}", ["e\u{301}e\u{301}e", "\u{301}"]),
        ] as [(String, [String])])
    func cuts(_ text: String, _ expected: [String]) throws {
        let got = try #require(parts(text))
        #expect(got.map { Array($0.utf8) } == expected.map { Array($0.utf8) })
    }

    @Test("what cannot be said at any length is not cut")
    func unsayable() { #expect(parts("# 123456789") == nil) }

    @Test("a long message on the envelope goes out in as many frames as it needs")
    func envelope() throws {
        let text = String(repeating: "\u{1}", count: 400_000)
        let got = try #require(parts(text, EnvelopeDialect()))
        #expect(got.count == 3)
        #expect(got.joined() == text)
    }
}
