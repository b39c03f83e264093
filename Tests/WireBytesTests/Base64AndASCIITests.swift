import BridgeTestSupport
import Testing
import WireBytes

@Suite("Base64")
struct Base64Tests {
    // RFC 4648 §10.
    static let vectors: [(String, String)] = [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ]

    @Test("the vectors of RFC 4648 hold in both directions", arguments: vectors)
    func rfcVectors(plain: String, encoded: String) {
        #expect(Base64.encode(Array(plain.utf8)) == encoded)
        #expect(Base64.decode(encoded) == Array(plain.utf8))
    }

    @Test(
        "what is not strict base64 is refused",
        arguments: [
            "Zg", "Zg=", "Zg===", "Z", "====", "=", "Zm9v\n", " Zm9v", "Zm 9v", "Zm-_", "Zh==", "Zm9=", "Z=9v",
            "Zg==Zg==",
            "Zm9é",
        ])
    func refused(_ text: String) { #expect(Base64.decode(text) == nil) }

    @Test("the URL-safe form needs no padding and has its own alphabet")
    func urlSafe() {
        #expect(Base64.encodeURLSafe([0xFB, 0xFF]) == "-_8")
        #expect(Base64.decodeURLSafe("-_8") == [0xFB, 0xFF])
        #expect(Base64.decodeURLSafe("-_8=") == [0xFB, 0xFF])
        #expect(Base64.decodeURLSafe("+/8") == nil)
        #expect(Base64.decodeURLSafe("A") == nil)
    }

    @Test("decoding undoes encoding", arguments: [UInt64(7), 8])
    func roundTrip(seed: UInt64) {
        var rng = SeededGenerator(seed: seed)
        for length in 0..<200 {
            let bytes = rng.bytes(length)
            #expect(Base64.decode(Base64.encode(bytes)) == bytes, "\(rng)")
            #expect(Base64.decodeURLSafe(Base64.encodeURLSafe(bytes)) == bytes, "\(rng)")
        }
    }
}

@Suite("ASCII")
struct ASCIITests {
    @Test("only A to Z change case")
    func lowercase() {
        for byte in UInt8.min...UInt8.max {
            let isUpper = byte >= 0x41 && byte <= 0x5A
            #expect(ASCII.lowercased(byte) == (isUpper ? byte + 32 : byte))
        }
        #expect(ASCII.lowercased("ÄBC[]") == "Äbc[]")
        #expect(ASCII.equalsIgnoringCase("Upgrade", "uPGRADE"))
        #expect(!ASCII.equalsIgnoringCase("Upgrade", "Upgrade "))
        #expect(!ASCII.equalsIgnoringCase("[", "{"))
    }

    @Test(
        "decimals are digits alone and never overflow",
        arguments: [
            ("0", 0), ("007", 7), ("999999999999999999", 999_999_999_999_999_999), ("", nil), ("+1", nil), ("-1", nil),
            ("1 ", nil), ("1e3", nil), ("9999999999999999999", nil),
        ] as [(String, Int?)])
    func decimal(text: String, value: Int?) { #expect(ASCII.decimal(text.utf8) == value) }

    @Test("tokens have no separators")
    func token() {
        #expect(ASCII.isToken("Sec-WebSocket-Key"))
        for text in ["", "a b", "a:b", "a\r", "a,b", "é", "a/b", "\"a\""] { #expect(!ASCII.isToken(text), "\(text)") }
    }

    @Test("optional white space is cut at both ends only")
    func trim() {
        #expect(Array(ASCII.trimmingOWS(Array(" \t a b\t".utf8)[...])) == Array("a b".utf8))
        #expect(ASCII.trimmingOWS(Array(" \t".utf8)[...]).isEmpty)
    }
}
