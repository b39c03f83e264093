import Accounts
import BridgeTestSupport
import IRCProtocol
import Testing
import Transport

@testable import BridgeCore
@testable import ChatBridge
@testable import Configuration
@testable import IRCServer
@testable import Rooms

@Suite("Accounts in the configuration")
struct AccountConfigurationTests {
    private static let digits = String(repeating: "0123456789abcdef", count: 4)

    private func account(_ name: String, _ more: String) -> String {
        "[[accounts]]\nname = \"\(name)\"\npassword = \"\(examplePasswordHash)\"\n\(more)\n"
    }

    @Test("by default nobody makes an account, and every mechanism is there")
    func defaults() throws {
        let configuration = try load(withRoom(""))
        #expect(configuration.identity.registration == .off)
        #expect(configuration.identity.sasl == SASLMechanism.allCases)
        let settings = try BridgeSettings(configuration, instanceID: "tests")
        #expect(settings.registration == .nobody && settings.saslMechanisms == SASLMechanism.allCases)
    }

    @Test("accounts come back to their rooms as is written", arguments: [true, false])
    func rejoin(_ isOn: Bool) throws {
        #expect(try BridgeSettings(try load(withRoom("")), instanceID: "tests").rejoins)
        let configuration = try load(withRoom("[identity]\nrejoin = \(isOn)"))
        #expect(try BridgeSettings(configuration, instanceID: "tests").rejoins == isOn)
        #expect(problems(withRoom("[identity]\nrejoin = \"yes\"")).count == 1)
    }

    @Test(
        "who may make an account is what is written",
        arguments: [("off", RegistrationPolicy.nobody), ("local", .local), ("on", .everybody)])
    func registration(_ word: String, _ policy: RegistrationPolicy) throws {
        let configuration = try load(withRoom("[identity]\nregistration = \"\(word)\""))
        #expect(try BridgeSettings(configuration, instanceID: "tests").registration == policy)
    }

    @Test("fingerprints are taken as chatbridge and as openssl print them")
    func fingerprints() throws {
        var pairs: [String] = []
        var rest = Self.digits.uppercased()[...]
        while !rest.isEmpty {
            pairs.append(String(rest.prefix(2)))
            rest = rest.dropFirst(2)
        }
        for written in [Self.digits, Self.digits.uppercased(), pairs.joined(separator: ":")] {
            let configuration = try load(withRoom(account("alice", "certfp = [\"\(written)\"]")))
            #expect(configuration.accounts.first?.certificates == [Self.digits])
            #expect(
                try BridgeSettings(configuration, instanceID: "tests").accounts.first?.certificates == [Self.digits])
        }
    }

    struct Mistake: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var text: String
        var complaint: String
    }

    @Test(
        "what is wrong is said where it stands",
        arguments: [
            Mistake(
                testDescription: "a digit too few", text: "certfp = [\"\(digits.dropLast())\"]",
                complaint: "is not the 64 hexadecimal digits of a SHA-256"),
            Mistake(
                testDescription: "a key's pin", text: "certfp = [\"W22ZaJ0SNY7soEsUEjb6gQ==\"]",
                complaint: "is not the 64 hexadecimal digits of a SHA-256"),
            Mistake(
                testDescription: "a certificate of two",
                text: "certfp = [\"\(digits)\"]\n"
                    + "[[accounts]]\nname = \"bob\"\npassword = \"\(examplePasswordHash)\"\ncertfp = [\"\(digits)\"]",
                complaint: "account \"bob\" has a certificate that is also of account \"alice\""),
            Mistake(
                testDescription: "an unknown mechanism", text: "[identity]\nsasl = [\"SCRAM-SHA-265\"]",
                complaint: "(did you mean \"SCRAM-SHA-256\"?)"),
            Mistake(
                testDescription: "an unknown policy", text: "[identity]\nregistration = \"yes\"",
                complaint: "expected"),
        ])
    func mistakes(_ row: Mistake) {
        let found = problems(withRoom(account("alice", row.text)))
        #expect(found.count == 1 && found.first?.contains(row.complaint) == true, "\(found)")
        #expect(found.first?.hasPrefix("chatbridge.toml:") == true)
    }

    @Test(
        "an account with a certificate or a token needs no password",
        arguments: ["certfp = [\"\(digits)\"]", "bearer = [\"alice\"]"])
    func withoutPassword(_ way: String) throws {
        let backend =
            "[backends.shop]\nurl = \"ws://shop.test/\"\ndialect = \"jwt-rooms\"\n[identity]\nbearer = \"shop\"\n"
        let room = "[[rooms]]\nname = \"till\"\nbackend = \"shop\"\n"
        let configuration = try load(backend + room + "[[accounts]]\nname = \"alice\"\n\(way)\n")
        let account = try #require(try BridgeSettings(configuration, instanceID: "tests").accounts.first)
        #expect(account.name == "alice" && account.password == nil)
        #expect(account.certificates + account.tokenOwners != [])
    }

    @Test("people who may make accounts settle who comes in from other machines")
    func settled() {
        let open = "[[listeners]]\nbind = \"irc+insecure://0.0.0.0:6667\"\n"
        #expect(problems(withRoom(open)).count == 1)
        #expect(problems(withRoom(open + "[identity]\nregistration = \"on\"")) == [])
        #expect(problems(withRoom("[identity]\nrequire_login = \"always\"")).count == 1)
        #expect(problems(withRoom("[identity]\nrequire_login = \"always\"\nregistration = \"local\"")) == [])
    }

    @Test("clients are asked for a certificate where an account has one, and by authorities where these are named")
    func asked() throws {
        var listener = ListenerConfiguration()
        listener.bind = ListenerAddress(scheme: .ircs, endpoint: HostPort(host: "127.0.0.1", port: 6697))
        #expect(listener.tlsSettings()?.clientCertificates == .ignored)
        #expect(listener.tlsSettings(asksForCertificates: true)?.clientCertificates == .welcomed)
        listener.clientAuthorities = "ca.pem"
        #expect(listener.tlsSettings(asksForCertificates: true)?.clientCertificates == .requested(.file("ca.pem")))
        listener.bind = ListenerAddress(scheme: .irc, endpoint: HostPort(host: "127.0.0.1", port: 6667))
        #expect(listener.tlsSettings(asksForCertificates: true) == nil)
    }
}
