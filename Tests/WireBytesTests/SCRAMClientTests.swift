import BridgeTestSupport
import Testing
import WireBytes

@testable import Digests

@Suite("SCRAM-SHA-256, the client's side")
struct SCRAMClientTests {
    private static let nonce = "rOprNGfwEbeRWgbNEkqO"
    private static let challenge =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"

    private func exchange() -> SCRAMClientExchange {
        SCRAMClientExchange(name: "user", password: SecretBytes("pencil".utf8), nonce: Self.nonce)
    }

    @Test("the example of RFC 7677 comes out")
    func example() throws {
        var client = exchange()
        #expect(client.first == Array("n,,n=user,r=rOprNGfwEbeRWgbNEkqO".utf8))
        let proof = try client.respond(to: Array(Self.challenge.utf8))
        #expect(
            String(decoding: proof, as: UTF8.self)
                == "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
                + "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
        try client.verify(Array("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=".utf8))
    }

    @Test("both sides of this library agree, whatever the name", arguments: ["user", "a,b=c", "rémy"])
    func bothSides(_ name: String) throws {
        let password = SecretBytes("pässword".utf8)
        let verifier = SCRAMVerifier(password: password, salt: [1, 2, 3, 4, 5, 6, 7, 8], iterations: 4096)
        var client = SCRAMClientExchange(name: name, password: password, randomness: [UInt8](0..<18))
        let first = try SCRAMClientFirst(parsing: client.first)
        #expect(first.name == name)
        let server = SCRAMServerExchange(first, verifier: verifier, randomness: [UInt8](18..<36))
        let proof = try client.respond(to: server.challenge)
        try client.verify(server.finish(proof))
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var challenge: String
        var failure: SCRAMServerFailure
    }

    @Test(
        "a challenge that is none ends the exchange",
        arguments: [
            Row(testDescription: "nothing", challenge: "", failure: .malformed),
            Row(testDescription: "an extension", challenge: "m=x,\(challenge)", failure: .extensionRequired),
            Row(testDescription: "another nonce", challenge: "r=abcdefgh,s=QUJD,i=4096", failure: .nonceDiffers),
            Row(testDescription: "our own nonce alone", challenge: "r=\(nonce),s=QUJD,i=4096", failure: .nonceDiffers),
            Row(testDescription: "no salt", challenge: "r=\(nonce)x,s=,i=4096", failure: .malformed),
            Row(testDescription: "salt that is no base64", challenge: "r=\(nonce)x,s=!,i=4096", failure: .malformed),
            Row(
                testDescription: "too few iterations", challenge: "r=\(nonce)x,s=QUJD,i=1",
                failure: .iterationsOutOfRange),
            Row(
                testDescription: "iterations for a day", challenge: "r=\(nonce)x,s=QUJD,i=2147483647",
                failure: .iterationsOutOfRange),
            Row(
                testDescription: "iterations beyond numbers",
                challenge: "r=\(nonce)x,s=QUJD,i=99999999999999999999999", failure: .iterationsOutOfRange),
            Row(testDescription: "negative iterations", challenge: "r=\(nonce)x,s=QUJD,i=-1", failure: .malformed),
            Row(testDescription: "NUL", challenge: "r=\(nonce)x\0,s=QUJD,i=4096", failure: .malformed),
        ])
    func hostile(_ row: Row) {
        #expect(throws: row.failure) {
            var client = exchange()
            _ = try client.respond(to: Array(row.challenge.utf8))
        }
    }

    @Test("a server that does not know the password is found out")
    func imposter() throws {
        var client = exchange()
        #expect(throws: SCRAMServerFailure.malformed) { try client.verify(Array("v=AAAA".utf8)) }
        _ = try client.respond(to: Array(Self.challenge.utf8))
        #expect(throws: SCRAMServerFailure.wrongSignature) { try client.verify(Array("v=AAAA".utf8)) }
        #expect(throws: SCRAMServerFailure.refused) { try client.verify(Array("e=invalid-proof".utf8)) }
        #expect(throws: SCRAMServerFailure.malformed) { try client.verify(Array("w=AAAA".utf8)) }
    }
}
