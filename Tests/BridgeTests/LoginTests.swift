import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Digests
import Identities
import Testing
import WireBytes

@testable import BridgeCore
@testable import ChatBridge
@testable import Configuration
@testable import IRCServer
@testable import Rooms

@Suite("Who may be whom")
struct AccountIdentityTests {
    private let map: IdentityMap

    init() {
        let accounts = ["alice", "Bob"].map {
            AccountSettings(name: $0, password: SCRAMVerifier.unmatchable(iterations: 1))
        }
        map = IdentityMap(
            IdentitySettings(
                BridgeSettings(serverName: "bridge", instanceID: "tests", accounts: accounts, rooms: [])))
    }

    @Test(
        "an account's name, and what looks like it, is kept for it",
        arguments: [
            ("alice", nil, true), ("ALICE", nil, true), ("a1ice", nil, true), ("аlice", nil, true),
            ("alice", "alice", false), ("Alice", "alice", false), ("alice", "Bob", true), ("bob", "Bob", false),
            ("carol", nil, false), ("carol", "alice", false), ("alice_", nil, false),
        ] as [(String, String?, Bool)])
    func reserved(_ nick: String, _ account: String?, _ isRefused: Bool) {
        #expect((map.refusal(nick: nick, holder: nil, account: account) == .inUse) == isRefused)
    }

    @Test("an account has one id upstream, whatever its nick; a nick has its own")
    func puppets() throws {
        func puppet(_ nick: String, _ account: String?) throws -> String {
            let id = map.addLocal(
                client: ClientID(rawValue: 1), nick: nick, ident: "~u", host: "h", realname: "r", account: account)
            defer { map.remove(id) }
            return map.puppetID(of: try #require(map[id]), backend: "chat").rawValue
        }
        let account = try puppet("alice", "alice")
        #expect(try puppet("away", "alice") == account)
        #expect(try puppet("alice", nil) != account)
        #expect(try puppet("bob", "Bob") != account)
        #expect(account == account.uppercased() && account.utf8.count == 36)
        #expect(
            account
                == UUIDv5.make(namespace: IdentityMap.puppetNamespace, name: "tests/chat/a:alice"))
    }

    @Test("somebody upstream with an account's name gets another nick")
    func upstream() {
        let now = MonotonicInstant(nanoseconds: 0)
        let found = map.resolve(
            ChatPerson(id: ChatID("u1"), name: "Alice"), backend: "chat", authenticated: false, now: now)
        #expect(map[found.id]?.nick == "Alice2")
    }
}

@Suite("chatbridge hash-password")
struct HashPasswordTests {
    private func line(_ password: String) throws(HashPasswordCommand.InputError) -> String {
        var random = SeededGenerator(seed: 1)
        return try HashPasswordCommand.line(
            for: SecretBytes(password.utf8), iterations: 4096, using: &random)
    }

    @Test("what it prints is what the configuration takes, and only its password fits")
    func roundTrip() throws {
        let printed = try line("correct horse")
        let configuration = try load(
            withRoom("[[accounts]]\nname = \"alice\"\npassword = \"\(printed)\"\n[identity]\npassword = \"\(printed)\"")
        )
        let verifier = try #require(configuration.accounts.first?.password)
        #expect(verifier.matches(SecretBytes("correct horse".utf8)))
        #expect(!verifier.matches(SecretBytes("correct Horse".utf8)))
        #expect(configuration.identity.password == .hashed(verifier))
    }

    @Test("a printed configuration holds neither password nor hash")
    func blanked() throws {
        let hash = try line("correct horse")
        let configuration = try load(withRoom("[[accounts]]\nname = \"alice\"\npassword = \"\(hash)\""))
        let printed = ConfigurationPrinter.text(configuration)
        #expect(printed.contains("name = \"alice\"") && !printed.contains("scram"))
    }

    @Test(
        "what is no password is refused with a sentence",
        arguments: [("", "empty"), (String(repeating: "x", count: 701), "700 bytes"), ("a\0b", "NUL")])
    func refused(_ password: String, _ word: String) {
        let error = #expect(throws: HashPasswordCommand.InputError.self) { try line(password) }
        #expect(error?.message.contains(word) == true)
    }

    @Test("the iterations are a number that a check can stand")
    func iterations() throws {
        #expect(try CommandLineParser.parse(["hash-password"]) == .hashPassword(iterations: 600_000))
        #expect(try CommandLineParser.parse(["hash-password", "--iterations=5000"]) == .hashPassword(iterations: 5000))
        for wrong in ["0", "4095", "many", "999999999999"] {
            #expect(throws: UsageError.self) { try CommandLineParser.parse(["hash-password", "--iterations", wrong]) }
        }
    }

    @Test("accounts settle who may come in from other machines, unless nobody need log in")
    func listeners() {
        let open = "[[listeners]]\nbind = \"irc+insecure://0.0.0.0:6667\"\n"
        let account = "[[accounts]]\nname = \"alice\"\npassword = \"\(examplePasswordHash)\"\n"
        #expect(problems(withRoom(open)).count == 1)
        #expect(problems(withRoom(open + account)) == [])
        #expect(problems(withRoom(open + account + "[identity]\nrequire_login = \"never\"")) == [])
    }
}
