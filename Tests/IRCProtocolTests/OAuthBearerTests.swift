import IRCProtocol
import Testing

@Suite("OAUTHBEARER")
struct OAuthBearerTests {
    struct Good: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// `|` stands for ^A.
        var message: String
        var authzid = ""
        var token = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="
    }

    private static func bytes(_ text: String) -> [UInt8] { text.utf8.map { $0 == UInt8(ascii: "|") ? 0x01 : $0 } }
    private static let token = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="

    @Test(
        "whom it names, and the token",
        arguments: [
            Good(
                testDescription: "RFC 7628 §4.1",
                message: "n,a=user@example.com,|host=server.example.com|port=143|auth=Bearer \(token)||",
                authzid: "user@example.com"),
            Good(testDescription: "gamja and senpai, without a name", message: "n,,|auth=Bearer \(token)||"),
            Good(testDescription: "soju's client side", message: "n,a=ann,|auth=Bearer \(token)||", authzid: "ann"),
            Good(testDescription: "a client that could bind", message: "y,,|auth=Bearer \(token)||"),
            Good(testDescription: "the scheme in small letters", message: "n,,|auth=bearer \(token)||"),
            Good(testDescription: "blanks before the token", message: "n,,|auth=Bearer   \(token)||"),
            Good(
                testDescription: "a comma in the name", message: "n,a=a=2Cb=3D,|auth=Bearer x||", authzid: "a,b=",
                token: "x"),
            Good(
                testDescription: "a JWT", message: "n,,|auth=Bearer eyJh-b_c.eyJz~.c+/||", token: "eyJh-b_c.eyJz~.c+/"),
            Good(testDescription: "keys that nobody knows", message: "n,,|user=x y|auth=Bearer x|qos=||", token: "x"),
            Good(
                testDescription: "as long as may be",
                message: "n,,|auth=Bearer \(String(repeating: "t", count: 8192 - 18))||",
                token: String(repeating: "t", count: 8192 - 18)),
        ])
    func good(_ row: Good) throws {
        let response = try SASLOAuthBearerResponse(parsing: Self.bytes(row.message))
        #expect(response.authzid == row.authzid)
        #expect(response.token == row.token)
    }

    struct Bad: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var message: String
        var error = SASLOAuthBearerResponse.ParseError.malformed
    }

    @Test(
        "what is none is told apart",
        arguments: [
            Bad(testDescription: "nothing", message: ""),
            Bad(testDescription: "the answer to a refusal", message: "|"),
            Bad(testDescription: "two separators alone", message: "||"),
            Bad(testDescription: "PLAIN's message", message: "\0ann\0secret"),
            Bad(testDescription: "a NUL in the token", message: "n,,|auth=Bearer a\0b||"),
            Bad(testDescription: "one separator at the end", message: "n,,|auth=Bearer x|"),
            Bad(testDescription: "a header without its last comma", message: "n,|auth=Bearer x||"),
            Bad(testDescription: "words behind the header", message: "n,,x|auth=Bearer x||"),
            Bad(testDescription: "another letter than a", message: "n,b=ann,|auth=Bearer x||"),
            Bad(testDescription: "an empty name", message: "n,a=,|auth=Bearer x||"),
            Bad(testDescription: "a stray equals sign", message: "n,a=a=2,|auth=Bearer x||"),
            Bad(
                testDescription: "a name of 256 bytes",
                message: "n,a=\(String(repeating: "a", count: 256)),|auth=Bearer x||"),
            Bad(testDescription: "no key", message: "n,,|=Bearer x||"),
            Bad(testDescription: "a key with a digit", message: "n,,|a1=x|auth=Bearer x||"),
            Bad(testDescription: "no value", message: "n,,|auth||"),
            Bad(
                testDescription: "a byte too long",
                message: "n,,|auth=Bearer \(String(repeating: "t", count: 8192 - 17))||"),
            Bad(
                testDescription: "a bound channel", message: "p=tls-exporter,,|auth=Bearer x||",
                error: .channelBindingRequired),
            Bad(testDescription: "no token", message: "n,,|host=h||", error: .noBearerToken),
            Bad(testDescription: "an empty token", message: "n,,|auth=Bearer ||", error: .noBearerToken),
            Bad(testDescription: "another scheme", message: "n,,|auth=Basic eDp5||", error: .noBearerToken),
            Bad(testDescription: "a scheme alone", message: "n,,|auth=Bearer||", error: .noBearerToken),
            Bad(testDescription: "two tokens", message: "n,,|auth=Bearer x|auth=Bearer y||", error: .noBearerToken),
            Bad(
                testDescription: "a line break in the token", message: "n,,|auth=Bearer x\r\nEvil: y||",
                error: .noBearerToken),
            Bad(
                testDescription: "an equals sign in the middle", message: "n,,|auth=Bearer x=y||", error: .noBearerToken
            ),
        ])
    func bad(_ row: Bad) {
        #expect(throws: row.error) { try SASLOAuthBearerResponse(parsing: Self.bytes(row.message)) }
    }

    @Test("text that is no UTF-8 is no header")
    func notUTF8() {
        #expect(throws: SASLOAuthBearerResponse.ParseError.malformed) {
            try SASLOAuthBearerResponse(parsing: Self.bytes("n,a=") + [0xFF] + Self.bytes(",|auth=Bearer x||"))
        }
    }

    @Test("the token does not stand in what is printed")
    func redacted() throws {
        let response = try SASLOAuthBearerResponse(parsing: Self.bytes("n,a=ann,|auth=Bearer very-secret||"))
        var dumped = ""
        dump(response, to: &dumped)
        for text in ["\(response)", String(reflecting: response), dumped] { #expect(!text.contains("very-secret")) }
    }

    @Test("a token may be longer than a password")
    func lengths() {
        let bytes = [UInt8](repeating: 7, count: SASLOAuthBearerResponse.maxBytes)
        for (mechanism, fits) in [(SASLMechanism.oauthBearer, true), (.plain, false)] {
            var exchange = IRCSASLExchange()
            _ = exchange.received(mechanism.rawValue, offered: SASLMechanism.allCases)
            let outcomes = IRCSASLExchange.chunks(of: bytes).map {
                exchange.received($0, offered: SASLMechanism.allCases)
            }
            #expect((outcomes.last == .response(mechanism, bytes)) == fits)
            #expect(outcomes.contains(.endless) == !fits)
        }
    }
}
