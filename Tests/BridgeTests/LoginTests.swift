import BridgeTestSupport
import ChatModel
import Digests
import Testing
import WireBytes

@testable import BridgeCore
@testable import ChatBridge
@testable import Configuration

@Suite("LoginThrottle")
struct LoginThrottleTests {
    private func at(_ seconds: Int64) -> MonotonicInstant { MonotonicInstant(nanoseconds: seconds * 1_000_000_000) }

    @Test("the first failure is answered at once, the others later and later, none after half a minute")
    func waits() {
        var throttle = LoginThrottle()
        let waits = (0..<20).map { _ in throttle.failed("192.0.2.1", .unknown, now: at(5)) }
        #expect(
            waits.prefix(7) == [.zero, .seconds(1), .seconds(2), .seconds(4), .seconds(8), .seconds(16), .seconds(30)])
        #expect(waits.dropFirst(7).allSatisfy { $0 == .seconds(30) })
        #expect(throttle.failed("192.0.2.2", .unknown, now: at(5)) == .zero)
    }

    @Test(
        "an IPv6 address counts as its network",
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "::ffff:192.0.2.1"), ("::1", "::/64"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
            ("2001:db8::7", "2001:db8::/64"), ("fe80::1%eth0", "fe80::/64"), ("/run/irc.sock", "/run/irc.sock"),
        ])
    func networks(_ address: String, _ network: String) {
        #expect(LoginThrottle.network(of: address) == network)
    }

    @Test("a success forgives what failed at the same, and a quarter of an hour all")
    func forgets() {
        var throttle = LoginThrottle()
        for _ in 0..<3 { _ = throttle.failed("a", .account("ann"), now: at(0)) }
        for other in [.account("bob"), .server, .gateway, .token, .unknown] as [LoginThrottle.Target] {
            throttle.succeeded("a", other)
        }
        #expect(throttle.failed("a", .account("ann"), now: at(1)) == .seconds(4))
        throttle.succeeded("a", .account("ann"))
        #expect(throttle.failed("a", .account("ann"), now: at(1)) == .zero)
        for _ in 0..<3 { _ = throttle.failed("b", .unknown, now: at(0)) }
        #expect(throttle.failed("b", .unknown, now: at(15 * 60)) > .zero)
        #expect(throttle.failed("b", .unknown, now: at(15 * 60 + 15 * 60 + 1)) == .zero)
    }

    @Test("an account's failures keep waiting whoever comes from elsewhere, and not where it was the last eight times")
    func homes() {
        var throttle = LoginThrottle()
        for number in 1...9 { throttle.succeeded("203.0.113.\(number)", .account("ann")) }
        for number in 1...20 { _ = throttle.failed("198.51.100.\(number)", .account("ann"), now: at(0)) }
        #expect(throttle.failed("203.0.113.9", .account("ann"), now: at(1)) == .zero)
        #expect(throttle.failed("203.0.113.2", .account("ann"), now: at(1)) == .zero)
        #expect(throttle.failed("203.0.113.1", .account("ann"), now: at(1)) == LoginThrottle.longest)
        #expect(throttle.failed("203.0.113.8", .account("bob"), now: at(1)) == .zero)
    }

    @Test(
        "what is right waits for what was wrong before it, for a while, and not for others' where the account was before",
        arguments: [
            ("nothing failed", [], "a", "ann", 0, 0), ("a slip", [("a", "ann")], "a", "ann", 0, 0),
            ("two", [("a", "ann"), ("a", "ann")], "a", "ann", 0, 1),
            ("two at others", [("a", "bob"), ("a", "cal")], "a", "ann", 0, 1),
            ("two from elsewhere", [("b", "ann"), ("c", "ann")], "a", "ann", 0, 1),
            ("two at others from elsewhere", [("b", "bob"), ("b", "bob")], "a", "ann", 0, 0),
            ("many", Array(repeating: ("a", "ann"), count: 9), "a", "ann", 0, 10),
            ("many, a while ago", Array(repeating: ("a", "ann"), count: 9), "a", "ann", 25, 5),
            ("many, long ago", Array(repeating: ("a", "ann"), count: 9), "a", "ann", 31, 0),
            ("at home, from elsewhere", [("b", "eve"), ("c", "eve")], "home", "eve", 0, 0),
            ("at home, at others", [("home", "bob"), ("home", "bob")], "home", "eve", 0, 0),
            ("at home, at this", [("home", "eve"), ("home", "eve")], "home", "eve", 0, 1),
        ] as [(String, [(String, String)], String, String, Int64, Int64)])
    func owed(
        _ name: String, _ failures: [(String, String)], _ address: String, _ account: String, _ later: Int64,
        _ wait: Int64
    ) {
        var throttle = LoginThrottle()
        throttle.succeeded("home", .account("eve"))
        for failure in failures { _ = throttle.failed(failure.0, .account(failure.1), now: at(0)) }
        #expect(throttle.owed(address, .account(account), now: at(later)) == .seconds(wait), "\(name)")
    }

    @Test("guesses at any number of accounts from one address are one address's, and fit the memory")
    func manyTargets() {
        var throttle = LoginThrottle()
        for number in 0..<1000 { _ = throttle.failed("a", .account("\(number)"), now: at(0)) }
        #expect(throttle.failed("a", .account("ann"), now: at(1)) == LoginThrottle.longest)
        throttle.succeeded("a", .account("999"))
        #expect(throttle.failed("a", .unknown, now: at(1)) == LoginThrottle.longest)
    }

    @Test("any number of addresses fits the memory, and those that failed last are remembered")
    func bounded() {
        var throttle = LoginThrottle()
        for index in 0..<30_000 { _ = throttle.failed("address \(index)", .unknown, now: at(Int64(index / 100))) }
        #expect(throttle.count <= LoginThrottle.capacity)
        #expect(throttle.failed("address 29999", .unknown, now: at(300)) == .seconds(1))
        #expect(throttle.failed("address 0", .unknown, now: at(300)) == .zero)
    }
}

@Suite("Who may be whom")
struct AccountIdentityTests {
    private let map: IdentityMap

    init() {
        let accounts = ["alice", "Bob"].map {
            AccountSettings(name: $0, password: SCRAMVerifier.unmatchable(iterations: 1))
        }
        map = IdentityMap(
            settings: BridgeSettings(serverName: "bridge", instanceID: "tests", accounts: accounts, rooms: []))
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
