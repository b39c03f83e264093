import BridgeTestSupport
import Digests
import Testing

@Suite("Digests")
struct DigestsTests {
    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test("SHA-1 and SHA-256 give the values of FIPS 180")
    func hashes() {
        #expect(hex(SHA1.hash([])) == "da39a3ee5e6b4b0d3255bfef95601890afd80709")
        #expect(hex(SHA1.hash(Array("abc".utf8))) == "a9993e364706816aba3e25717850c26c9cd0d89d")
        #expect(hex(SHA256.hash([])) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(
            hex(SHA256.hash(Array("abc".utf8))) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }

    @Test("HMAC gives the values of RFC 4231, and an empty key is a key")
    func hmac() {
        #expect(
            hex(HMACSHA256.authenticate(Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8)))
                == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        _ = HMACSHA256.authenticate([1], key: [2])
        #expect(
            hex(HMACSHA256.authenticate([], key: []))
                == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
    }

    @Test("PBKDF2 gives the values of RFC 7914 §11")
    func pbkdf2() {
        let derived = PBKDF2.sha256(password: Array("passwd".utf8), salt: Array("salt".utf8), iterations: 1, count: 64)
        #expect(
            hex(derived) == "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
                + "49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783")
    }

    @Test("a name-based identifier is the one of RFC 9562, in upper case")
    func uuidV5() {
        let dns = UUIDText.parse("6ba7b810-9dad-11d1-80b4-00c04fd430c8") ?? []
        #expect(UUIDv5.make(namespace: dns, name: "www.example.com") == "2ED6657D-E927-568B-95E1-2665A8AEA6A2")
    }

    @Test(
        "what is not an identifier is not parsed",
        arguments: ["", "6ba7b8109dad11d180b400c04fd430c8", "6ba7b810-9dad-11d1-80b4-00c04fd430cg", "{6ba7b810}"])
    func uuidParse(_ text: String) { #expect(UUIDText.parse(text) == nil) }

    @Test("comparison looks at every byte")
    func equality() {
        #expect(constantTimeEqual([], []))
        #expect(constantTimeEqual([1, 2, 3], [1, 2, 3]))
        #expect(!constantTimeEqual([1, 2, 3], [1, 2, 4]))
        #expect(!constantTimeEqual([0, 2, 3], [1, 2, 3]))
        #expect(!constantTimeEqual([1, 2], [1, 2, 3]))
    }
}
