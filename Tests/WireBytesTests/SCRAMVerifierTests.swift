import Digests
import Testing
import WireBytes

@Suite("SCRAMVerifier")
struct SCRAMVerifierTests {
    // Source: RFC 7677 §3: user "user", password "pencil". The keys follow from its salt; the server key makes the
    // signature that the RFC prints.
    private static let text =
        "$scram-sha-256$4096$W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
        + "$wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

    private func secret(_ text: String) -> SecretBytes { SecretBytes(text.utf8) }

    @Test("the example of RFC 7677 comes out, and back in")
    func example() throws {
        let salt = try #require(Base64.decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
        let made = SCRAMVerifier(password: secret("pencil"), salt: salt, iterations: 4096)
        #expect(made.description == Self.text)
        let parsed = try SCRAMVerifier(parsing: Self.text)
        #expect(parsed == made)
        let message =
            "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
            + "s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
        let signature = HMACSHA256.authenticate(Array(message.utf8), key: parsed.serverKey)
        #expect(Base64.encode(signature) == "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    }

    @Test(
        "one password fits", arguments: [("pencil", true), ("pencil ", false), ("Pencil", false), ("", false)])
    func matches(_ password: String, _ fits: Bool) throws {
        let verifier = try SCRAMVerifier(parsing: Self.text)
        #expect(verifier.matches(secret(password)) == fits)
        #expect(verifier.matches(secret(password), costing: 5000) == fits)
    }

    @Test("no password fits the verifier of a name that is none")
    func unmatchable() {
        for password in ["", "pencil", "\0"] {
            #expect(!SCRAMVerifier.unmatchable(iterations: 1).matches(secret(password)))
        }
    }

    @Test("a password typed with marks of their own is the same password")
    func normalised() {
        let verifier = SCRAMVerifier(password: secret("caf\u{E9}"), salt: Array("saltsalt".utf8), iterations: 1)
        #expect(verifier.matches(secret("cafe\u{301}")))
        #expect(!verifier.matches(secret("cafe")))
        // Ill-formed text is compared as bytes.
        let bytes = SecretBytes([0xFF, 0xFE])
        #expect(SCRAMVerifier(password: bytes, salt: [1], iterations: 1).matches(bytes))
    }

    @Test(
        "what is no verifier is refused",
        arguments: [
            "", "pencil", "$scram-sha-1$4096$QQ==$QQ==$QQ==", "$scram-sha-256$", "$scram-sha-256$4096$",
            text + "$", text.replacing("4096", with: "4095"), text.replacing("4096", with: "-4096"),
            text.replacing("4096", with: "99999999999999999999"), text.replacing("4096", with: "+4096"),
            text.replacing("4096", with: "٤٠٩٦"), text.replacing("W22ZaJ0SNY7soEsUEjb6gQ==", with: "QQ=="),
            text.replacing("W22ZaJ0SNY7soEsUEjb6gQ==", with: "!"), text.replacing("2dU=", with: "2dU"),
            text.replacing("2dU=", with: ""),
        ])
    func refused(_ text: String) {
        #expect(throws: SCRAMVerifier.ParseError.self) { try SCRAMVerifier(parsing: text) }
    }

    @Test("secrets show nothing of themselves")
    func hidden() {
        let bytes = secret("pencil")
        #expect("\(bytes)" == "***" && String(reflecting: bytes) == "***")
        var dumped = ""
        dump(bytes, to: &dumped)
        #expect(!dumped.contains("pencil") && !dumped.contains("112"))
        #expect(bytes == secret("pencil") && bytes != secret("pencils") && bytes != secret("pencim"))
        #expect(bytes.withUnsafeBytes { Array($0) } == Array("pencil".utf8))
    }
}
