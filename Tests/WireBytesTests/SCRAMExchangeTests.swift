import BridgeTestSupport
import Testing
import WireBytes

@testable import Digests

@Suite("SCRAM-SHA-256, the server's side")
struct SCRAMExchangeTests {
    private static let salt = Base64.decode("W22ZaJ0SNY7soEsUEjb6gQ==") ?? []
    private static let verifier = SCRAMVerifier(
        password: SecretBytes("pencil".utf8), salt: salt, iterations: 4096)
    private static let randomness = [UInt8](0..<18)

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    private func exchange(_ first: String = "n,,n=user,r=abc") throws -> SCRAMServerExchange {
        SCRAMServerExchange(
            try SCRAMClientFirst(parsing: Array(first.utf8)), verifier: Self.verifier, randomness: Self.randomness)
    }

    @Test("the example of RFC 7677 comes out")
    func example() throws {
        let first = try SCRAMClientFirst(parsing: Array("n,,n=user,r=rOprNGfwEbeRWgbNEkqO".utf8))
        #expect(first.name == "user" && first.authzid.isEmpty)
        let exchange = SCRAMServerExchange(
            first, verifier: Self.verifier, serverNonce: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
        #expect(
            text(exchange.challenge)
                == "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
        let final =
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
            + "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        #expect(try text(exchange.finish(Array(final.utf8))) == "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    }

    struct First: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var message: String
        var name = "user"
        var authzid = ""
    }

    @Test(
        "a beginning is read",
        arguments: [
            First(testDescription: "without a word of binding", message: "n,,n=user,r=abc"),
            First(testDescription: "from a client that could bind", message: "y,,n=user,r=abc"),
            First(testDescription: "acting as somebody", message: "n,a=boss,n=user,r=abc", authzid: "boss"),
            First(
                testDescription: "a comma and an equals sign in the name", message: "n,,n=a=2Cb=3Dc,r=abc",
                name: "a,b=c"),
            First(testDescription: "no ASCII in the name", message: "n,,n=rémy,r=abc", name: "rémy"),
            First(testDescription: "extensions behind the nonce", message: "n,,n=user,r=abc,x=1,y=2=3"),
            First(testDescription: "a name of one client", message: "n,,n=user@phone,r=abc", name: "user@phone"),
        ])
    func firsts(_ row: First) throws {
        let first = try SCRAMClientFirst(parsing: Array(row.message.utf8))
        #expect(first.name == row.name && first.authzid == row.authzid)
    }

    struct Hostile: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var message: String
        var failure = SCRAMFailure.malformed
    }

    @Test(
        "a beginning that is none is refused",
        arguments: [
            Hostile(testDescription: "nothing", message: ""),
            Hostile(testDescription: "commas", message: ",,,"),
            Hostile(testDescription: "no header", message: "n=user,r=abc"),
            Hostile(
                testDescription: "a bound channel", message: "p=tls-unique,,n=user,r=abc",
                failure: .channelBindingRequired),
            Hostile(testDescription: "an unknown flag", message: "x,,n=user,r=abc"),
            Hostile(testDescription: "a flag in capitals", message: "N,,n=user,r=abc"),
            Hostile(testDescription: "words where the authzid stands", message: "n,boss,n=user,r=abc"),
            Hostile(testDescription: "an empty authzid that is written", message: "n,a=,n=user,r=abc"),
            Hostile(
                testDescription: "an extension that must be known", message: "n,,m=x,n=user,r=abc",
                failure: .extensionRequired),
            Hostile(testDescription: "no name", message: "n,,r=abc,n=user"),
            Hostile(testDescription: "an empty name", message: "n,,n=,r=abc"),
            Hostile(testDescription: "an equals sign in the name", message: "n,,n=us=er,r=abc"),
            Hostile(testDescription: "half an escape", message: "n,,n=user=2,r=abc"),
            Hostile(testDescription: "an escape in small letters", message: "n,,n=us=2cer,r=abc"),
            Hostile(testDescription: "no nonce", message: "n,,n=user"),
            Hostile(testDescription: "an empty nonce", message: "n,,n=user,r="),
            Hostile(testDescription: "a space in the nonce", message: "n,,n=user,r=a c"),
            Hostile(testDescription: "letters beyond ASCII in the nonce", message: "n,,n=user,r=é"),
            Hostile(
                testDescription: "a nonce that is too long",
                message: "n,,n=user,r=" + String(repeating: "a", count: 257)),
            Hostile(
                testDescription: "a name that is too long",
                message: "n,,n=" + String(repeating: "a", count: 256) + ",r=abc"),
            Hostile(testDescription: "a comma at the end", message: "n,,n=user,r=abc,"),
            Hostile(testDescription: "an extension without a value", message: "n,,n=user,r=abc,x="),
            Hostile(testDescription: "a NUL", message: "n,,n=us\0er,r=abc"),
        ])
    func hostileFirsts(_ row: Hostile) {
        #expect(throws: row.failure) { try SCRAMClientFirst(parsing: Array(row.message.utf8)) }
    }

    @Test("bytes that are no text are refused, at any place")
    func noText() {
        let whole = Array("n,,n=user,r=abc".utf8)
        for index in whole.indices {
            var bytes = whole
            bytes[index] = 0xFF
            #expect(throws: SCRAMFailure.malformed) { try SCRAMClientFirst(parsing: bytes) }
        }
    }

    @Test("a proof is right for its own exchange, whoever acts as whom", arguments: ["n,,", "y,,", "n,a=user,"])
    func proofs(_ header: String) throws {
        var client = SCRAMClient(name: "user", password: "pencil", header: header)
        let exchange = SCRAMServerExchange(
            try SCRAMClientFirst(parsing: client.first), verifier: Self.verifier, randomness: Self.randomness)
        let proofMade = client.proof(exchange.challenge)
        let proof = try #require(proofMade)
        #expect(try exchange.finish(proof) == client.expectedSignature)
        // Another exchange has another nonce.
        let other = SCRAMServerExchange(
            try SCRAMClientFirst(parsing: client.first), verifier: Self.verifier, randomness: [UInt8](1..<19))
        #expect(throws: SCRAMFailure.nonceDiffers) { try other.finish(proof) }
    }

    @Test("extensions of the second message are proven with it")
    func extensions() throws {
        var client = SCRAMClient(name: "user", password: "pencil", nonce: "abc")
        let exchange = try exchange()
        let proofMade = client.proof(exchange.challenge) { $0 + ",x=1" }
        let proof = try #require(proofMade)
        #expect(try exchange.finish(proof) == client.expectedSignature)
        let demandingMade = client.proof(exchange.challenge) { $0 + ",m=1" }
        let demanding = try #require(demandingMade)
        #expect(throws: SCRAMFailure.extensionRequired) { try exchange.finish(demanding) }
    }

    struct Final: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var failure: SCRAMFailure
        /// Of a right message.
        var change: @Sendable (String) -> String
    }

    @Test(
        "a second message that was changed is refused",
        arguments: [
            Final(testDescription: "nothing", failure: .malformed) { _ in "" },
            Final(testDescription: "no proof", failure: .malformed) { String($0.prefix { $0 != "p" }.dropLast()) },
            Final(testDescription: "a short proof", failure: .malformed) { $0.replacing(/p=.*/, with: "p=AAAA") },
            Final(testDescription: "a proof of nothing", failure: .malformed) { $0.replacing(/p=.*/, with: "p=") },
            Final(testDescription: "a proof that is no base64", failure: .malformed) {
                $0.replacing(/p=...../, with: "p=!!!!!")
            },
            Final(testDescription: "a proof of zeros", failure: .wrongProof) {
                $0.replacing(/p=.*/, with: "p=" + String(repeating: "A", count: 43) + "=")
            },
            Final(testDescription: "another binding", failure: .channelBindingDiffers) {
                $0.replacing("c=biws", with: "c=eSws")
            },
            Final(testDescription: "a binding that is no base64", failure: .malformed) {
                $0.replacing("c=biws", with: "c=biw")
            },
            Final(testDescription: "another nonce", failure: .nonceDiffers) { $0.replacing("r=abc", with: "r=abd") },
            Final(testDescription: "half of the nonce", failure: .nonceDiffers) {
                $0.replacing(/r=[^,]*/, with: "r=abc")
            },
            Final(testDescription: "in another order", failure: .malformed) {
                $0.replacing("c=biws,r=", with: "r=biws,c=")
            },
            Final(testDescription: "something behind the proof", failure: .malformed) { $0 + ",x=1" },
            Final(testDescription: "an extension that was not proven", failure: .wrongProof) {
                $0.replacing(",p=", with: ",x=1,p=")
            },
            Final(testDescription: "an extension that is none", failure: .malformed) {
                $0.replacing(",p=", with: ",1=1,p=")
            },
            Final(testDescription: "an empty one", failure: .malformed) { $0.replacing(",p=", with: ",,p=") },
        ])
    func hostileFinals(_ row: Final) throws {
        var client = SCRAMClient(name: "user", password: "pencil", nonce: "abc")
        let exchange = try exchange()
        let made = client.proof(exchange.challenge)
        let right = text(try #require(made))
        #expect(throws: row.failure) { try exchange.finish(Array(row.change(right).utf8)) }
        // The exchange itself does not change.
        #expect(try exchange.finish(Array(right.utf8)) == client.expectedSignature)
    }

    @Test("another password proves nothing")
    func wrongPassword() throws {
        let exchange = try exchange()
        for password in ["", "Pencil", "pencil "] {
            var client = SCRAMClient(name: "user", password: password, nonce: "abc")
            let proofMade = client.proof(exchange.challenge)
            let proof = try #require(proofMade)
            #expect(throws: SCRAMFailure.wrongProof) { try exchange.finish(proof) }
        }
    }

    @Test("a name that does not exist looks like one that does, the same each time")
    func imitation() throws {
        let key = Array("secret".utf8)
        let first = SCRAMVerifier.imitation(of: "eve", key: key, iterations: 4096)
        #expect(first == .imitation(of: "eve", key: key, iterations: 4096))
        #expect(first.salt.count == SCRAMVerifier.saltByteCount)
        #expect(first.salt != SCRAMVerifier.imitation(of: "eva", key: key, iterations: 4096).salt)
        #expect(first.salt != SCRAMVerifier.imitation(of: "eve", key: Array("other".utf8), iterations: 4096).salt)
        #expect(first.storedKey.count == 32 && first.serverKey.count == 32)
        #expect(!first.matches(SecretBytes("".utf8)))
        var client = SCRAMClient(name: "eve", password: "", nonce: "abc")
        let exchange = SCRAMServerExchange(
            try SCRAMClientFirst(parsing: client.first), verifier: first, randomness: Self.randomness)
        let proofMade = client.proof(exchange.challenge)
        let proof = try #require(proofMade)
        #expect(throws: SCRAMFailure.wrongProof) { try exchange.finish(proof) }
    }
}
