import BridgeTestSupport
import IRCProtocol
import Testing
import WireBytes

/// A conversation: the client's parameters of AUTHENTICATE, and the outcome of each.
struct SASLRow: CustomTestStringConvertible, Sendable {
    var name: String
    var params: [String]
    var outcomes: [IRCSASLExchange.Outcome]
    var testDescription: String { name }

    init(_ name: String, _ params: [String], _ outcomes: [IRCSASLExchange.Outcome]) {
        self.name = name
        self.params = params
        self.outcomes = outcomes
    }
}

private let full = String(repeating: "A", count: 400)
private let zeros300 = [UInt8](repeating: 0, count: 300)

private let saslRows = [
    SASLRow(
        "a response in one line", ["PLAIN", "AGFsaWNlAHNlY3JldA=="],
        [.challenge, .response(.plain, Array("\0alice\0secret".utf8))]),
    SASLRow(
        "the mechanism in small letters", ["plain", "AGEAYg=="], [.challenge, .response(.plain, [0, 97, 0, 98])]),
    SASLRow("an empty response", ["PLAIN", "+"], [.challenge, .response(.plain, [])]),
    SASLRow("an empty response as SMTP has it", ["PLAIN", "="], [.challenge, .response(.plain, [])]),
    SASLRow("an equals sign behind a full line", ["PLAIN", full, "="], [.challenge, .needMoreData, .malformed]),
    SASLRow(
        "a full line and its end", ["PLAIN", full, "+"], [.challenge, .needMoreData, .response(.plain, zeros300)]),
    SASLRow(
        "a full line and a rest", ["PLAIN", full, "AA=="],
        [.challenge, .needMoreData, .response(.plain, zeros300 + [0])]),
    SASLRow("an unknown mechanism", ["SCRAM-SHA-1"], [.unknownMechanism]),
    SASLRow("a response without a beginning", ["AGFsaWNlAHNlY3JldA=="], [.unknownMechanism]),
    SASLRow("an end without a beginning", ["+"], [.unknownMechanism]),
    SASLRow("nothing given up", ["*"], [.aborted]),
    SASLRow("given up before the response", ["PLAIN", "*", "AGEAYg=="], [.challenge, .aborted, .unknownMechanism]),
    SASLRow("given up in the middle", ["PLAIN", full, "*"], [.challenge, .needMoreData, .aborted]),
    SASLRow("a line of 401 bytes", ["PLAIN", full + "A", "PLAIN"], [.challenge, .tooLong, .challenge]),
    SASLRow("a first line of 401 bytes", [full + "A"], [.tooLong]),
    SASLRow(
        "lines without end", ["PLAIN", full, full, full, full],
        [.challenge, .needMoreData, .needMoreData, .needMoreData, .endless]),
    SASLRow("no base64", ["PLAIN", "AGFs!WNl"], [.challenge, .malformed]),
    SASLRow("base64 without its padding", ["PLAIN", "AGEAYg"], [.challenge, .malformed]),
    SASLRow("padding in the middle", ["PLAIN", "AA==AA=="], [.challenge, .malformed]),
    SASLRow("an empty parameter", ["PLAIN", ""], [.challenge, .response(.plain, [])]),
    SASLRow(
        "again after a failure", ["PLAIN", "!", "PLAIN", "AGEAYg=="],
        [.challenge, .malformed, .challenge, .response(.plain, [0, 97, 0, 98])]),
]

@Suite("SASL on IRC")
struct SASLTests {
    @Test("a conversation comes to this", arguments: saslRows)
    func conversation(_ row: SASLRow) {
        var exchange = IRCSASLExchange()
        #expect(row.params.map { exchange.received($0, offered: [.plain]) } == row.outcomes)
    }

    @Test("a mechanism goes on where it wants more, in chunks too, and may be given up there")
    func more() {
        var exchange = IRCSASLExchange()
        let offered: [SASLMechanism] = [.scramSHA256]
        #expect(exchange.received("SCRAM-SHA-256", offered: offered) == .challenge)
        #expect(exchange.received("AA==", offered: offered) == .response(.scramSHA256, [0]))
        exchange.expectMore(.scramSHA256)
        #expect(exchange.isUnderway)
        #expect(exchange.received(full, offered: offered) == .needMoreData)
        #expect(exchange.received("+", offered: offered) == .response(.scramSHA256, zeros300))
        #expect(!exchange.isUnderway)
        exchange.expectMore(.scramSHA256)
        #expect(exchange.received("*", offered: offered) == .aborted)
        #expect(exchange.received("+", offered: offered) == .unknownMechanism)
    }

    @Test("a mechanism that is not offered is unknown")
    func notOffered() {
        var exchange = IRCSASLExchange()
        let outcome = exchange.received("PLAIN", offered: [])
        #expect(outcome == .unknownMechanism)
        #expect(!exchange.isUnderway)
    }

    @Test("what a client leaves behind is told once")
    func abandon() {
        var exchange = IRCSASLExchange()
        _ = exchange.received("PLAIN", offered: [.plain])
        #expect(exchange.isUnderway)
        let (first, second) = (exchange.abandon(), exchange.abandon())
        #expect(first && !second)
    }

    @Test(
        "responses of all lengths survive their cutting into lines",
        arguments: [0, 1, 2, 3, 298, 299, 300, 301, 302, 598, 599, 600, 601, 900, 1021, 1022, 1023, 1024])
    func lengths(_ count: Int) {
        var random = SeededGenerator(seed: UInt64(count))
        let bytes = (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        let chunks = IRCSASLExchange.chunks(of: bytes)
        #expect(chunks.allSatisfy { (1...400).contains($0.utf8.count) })
        #expect(chunks.dropLast().allSatisfy { $0.utf8.count == 400 })
        var exchange = IRCSASLExchange()
        let outcomes = (["PLAIN"] + chunks).map { exchange.received($0, offered: [.plain]) }
        #expect(outcomes.first == .challenge)
        #expect(outcomes.dropFirst().dropLast().allSatisfy { $0 == .needMoreData })
        #expect(outcomes.last == .response(.plain, bytes))
    }

    @Test("one byte more than a response may have is too much")
    func tooLarge() {
        let chunks = IRCSASLExchange.chunks(of: [UInt8](repeating: 7, count: 1025))
        var exchange = IRCSASLExchange()
        _ = exchange.received("PLAIN", offered: [.plain])
        let outcomes = chunks.map { exchange.received($0, offered: [.plain]) }
        #expect(outcomes.last == .malformed || outcomes.last == .endless)
    }

    @Test("any parameters end in an outcome, and what is held stays small", arguments: 0..<20)
    func anything(_ seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        var exchange = IRCSASLExchange()
        let pool = ["PLAIN", "*", "+", full, full + "AAAA", "AGEAYg==", "=", "é", "\0", "EXTERNAL", "AA"]
        var sinceChallenge = 0
        for _ in 0..<500 {
            let outcome = exchange.received(pool.randomElement(using: &random) ?? "", offered: [.plain])
            sinceChallenge = outcome == .needMoreData ? sinceChallenge + 1 : 0
            // 1368 digits at the most, in lines of 400.
            #expect(sinceChallenge <= 3)
            if case .response(_, let bytes) = outcome { #expect(bytes.count <= IRCSASLExchange.maxResponseBytes) }
        }
    }
}

struct PlainRow: CustomTestStringConvertible, Sendable {
    var name: String
    var bytes: [UInt8]
    var error: SASLPlainResponse.ParseError
    var testDescription: String { name }

    init(_ name: String, _ bytes: [UInt8], _ error: SASLPlainResponse.ParseError) {
        self.name = name
        self.bytes = bytes
        self.error = error
    }

    init(_ name: String, _ text: String, _ error: SASLPlainResponse.ParseError) {
        self.init(name, Array(text.utf8), error)
    }
}

@Suite("SASL PLAIN")
struct SASLPlainTests {
    static let refused = [
        PlainRow("nothing", "", .notThreeParts),
        PlainRow("no NUL", "alice secret", .notThreeParts),
        PlainRow("one NUL", "alice\0secret", .notThreeParts),
        PlainRow("three NUL", "\0alice\0sec\0ret", .notThreeParts),
        PlainRow("only NUL", [UInt8](repeating: 0, count: 1000), .notThreeParts),
        PlainRow("no name", "\0\0secret", .emptyName),
        PlainRow("no password", "\0alice\0", .emptyPassword),
        PlainRow("two NUL alone", "\0\0", .emptyName),
        PlainRow("a name that is no UTF-8", [0, 0xFF, 0, 0x61], .invalidUTF8),
        PlainRow("a password that is no UTF-8", [0, 0x61, 0, 0xC3], .invalidUTF8),
        PlainRow("an overlong NUL in the name", [0, 0xC0, 0x80, 0, 0x61], .invalidUTF8),
        PlainRow("a surrogate", [0, 0xED, 0xA0, 0x80, 0, 0x61], .invalidUTF8),
        PlainRow("a name too long", "\0" + String(repeating: "a", count: 256) + "\0b", .partTooLong),
        PlainRow("a password too long", "\0a\0" + String(repeating: "b", count: 701), .partTooLong),
        PlainRow("an identity too long", String(repeating: "c", count: 256) + "\0a\0b", .partTooLong),
    ]

    @Test("what is no PLAIN message is refused for its reason", arguments: refused)
    func refusal(_ row: PlainRow) {
        #expect(throws: row.error) { try SASLPlainResponse(parsing: row.bytes) }
    }

    @Test("the parts come out as they are, up to 255 bytes each")
    func parts() throws {
        let long = String(repeating: "x", count: 255)
        let response = try SASLPlainResponse(parsing: Array("\(long)\0\(long)\0\(long)".utf8))
        #expect(response.authzid == long && response.authcid == long && response.password == Array(long.utf8))
        let short = try SASLPlainResponse(parsing: Array("\0é\0pä:ss \u{1}".utf8))
        #expect(short.authzid.isEmpty && short.authcid == "é" && short.password == Array("pä:ss \u{1}".utf8))
    }
}
