import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Digests
import IRCProtocol
import Identities
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Logins in the forms in which clients really send them.
@Suite("Logging in with SASL")
struct SASLLoginTests {
    private let harness: BridgeHarness

    init() {
        harness = Self.harness()
    }

    private static func account(_ name: String, _ password: String, certificates: [String] = []) -> AccountSettings {
        AccountSettings(
            name: name,
            password: SCRAMVerifier(
                password: SecretBytes(password.utf8), salt: Array("saltsalt".utf8), iterations: 4096),
            certificates: certificates)
    }

    private static func harness(mechanisms: [SASLMechanism] = SASLMechanism.allCases) -> BridgeHarness {
        var limits = LimitSettings()
        limits.messagesPerSecond = nil
        return BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "tests",
                accounts: [account("alice", "secret", certificates: ["aabb"]), account("bob", "x=,")],
                saslMechanisms: mechanisms, limits: limits, rooms: []))
    }

    private func commands(_ lines: [String]) -> [String] {
        lines.compactMap { line in
            line.split(separator: " ").first { !$0.hasPrefix(":") && !$0.hasPrefix("@") }.map(String.init)
        }
    }

    private func begin(_ client: UInt64, _ lines: String..., security: ClientOrigin.Security = .plain) {
        harness.connect(client, security: security)
        for line in lines { harness.send(client, line) }
        _ = harness.takeLines(client)
    }

    /// What `AUTHENTICATE` lines of an answer carry, decoded.
    private func challenge(_ lines: [String]) -> [UInt8]? {
        var chunks = lines.filter { $0.hasPrefix("AUTHENTICATE ") }.map { String($0.dropFirst("AUTHENTICATE ".count)) }
        guard !chunks.isEmpty else { return nil }
        if chunks.last == "+" { chunks.removeLast() }
        return Base64.decode(chunks.joined())
    }

    private func respond(_ client: UInt64, _ bytes: [UInt8]) -> [String] {
        for chunk in IRCSASLExchange.chunks(of: bytes) { harness.send(client, "AUTHENTICATE " + chunk) }
        return harness.takeLines(client)
    }

    private func scram(
        _ client: UInt64, _ name: String, _ password: String, header: String = "n,,", nonce: String = "abcdef"
    ) throws -> [String] {
        var side = SCRAMClient(name: name, password: password, nonce: nonce, header: header)
        harness.send(client, "AUTHENTICATE SCRAM-SHA-256")
        #expect(harness.takeLines(client) == ["AUTHENTICATE +"])
        let first = respond(client, side.first)
        guard let proof = challenge(first).flatMap({ side.proof($0) }) else { return first }
        let second = respond(client, proof)
        guard let signature = challenge(second) else { return second }
        #expect(signature == side.expectedSignature)
        harness.send(client, "AUTHENTICATE +")
        return harness.takeLines(client)
    }

    // MARK: - SCRAM-SHA-256

    @Test(
        "SCRAM lets in who knows the password",
        arguments: [
            ("alice", "secret", "n,,", "alice"), ("ALICE", "secret", "y,,", "alice"),
            ("alice", "secret", "n,a=alice,", "alice"), ("alice@phone", "secret", "n,,", "alice"),
            ("alice@phone", "secret", "n,a=alice,", "alice"), ("bob", "x=,", "n,,", "bob"),
        ])
    func scramSucceeds(_ name: String, _ password: String, _ header: String, _ account: String) throws {
        begin(1, "CAP LS 302", "CAP REQ sasl", "NICK me", "USER u 0 * :r")
        let lines = try scram(1, name, password, header: header)
        #expect(commands(lines) == ["900", "903"])
        #expect(lines.first?.contains(" \(account) :You are now logged in as \(account)") == true)
        // Nobody had to wait for an expensive check.
        #expect(harness.passwordChecks.isEmpty)
        harness.send(1, "CAP END")
        #expect(commands(harness.takeLines(1)).first == "001")
        if name.hasSuffix("@phone") {
            #expect(harness.bridge.irc.sessions[ClientID(rawValue: 1)]?.clientName == "phone")
        }
    }

    @Test(
        "SCRAM refuses everybody else, in the same words",
        arguments: [("alice", "Secret"), ("alice", ""), ("nobody", "secret"), ("bob", "secret")])
    func scramFails(_ name: String, _ password: String) throws {
        begin(1, "CAP REQ sasl")
        let lines = try scram(1, name, password)
        #expect(lines == [":bridge 904 * :SASL authentication failed"])
    }

    @Test("an unknown name is asked for its password like a known one, with the same salt each time")
    func unknownName() throws {
        func salt(_ client: UInt64, _ name: String) throws -> [String] {
            begin(client, "CAP REQ sasl")
            harness.send(client, "AUTHENTICATE SCRAM-SHA-256")
            _ = harness.takeLines(client)
            let lines = respond(client, SCRAMClient(name: name, password: "", nonce: "abcdef").first)
            let text = String(decoding: try #require(challenge(lines)), as: UTF8.self)
            return text.split(separator: ",").dropFirst().map(String.init)
        }
        let (eve, again, capital) = try (salt(1, "eve"), salt(2, "eve"), salt(3, "EVE"))
        #expect(eve == again && eve == capital)
        #expect(eve.last == "i=4096")
        #expect(try salt(4, "eva") != eve)
        #expect(try salt(5, "alice").last == "i=4096")
    }

    @Test("wrong proofs are answered later and later, and the wait cannot be dodged")
    func throttled() throws {
        begin(1, "CAP REQ sasl")
        _ = try scram(1, "alice", "wrong")
        #expect(try scram(1, "alice", "wrong") == [])
        harness.send(1, "AUTHENTICATE SCRAM-SHA-256")
        #expect(harness.takeLines(1) == [":bridge 904 * :Wait for the answer to your last try"])
        harness.advance(by: .seconds(1))
        #expect(harness.takeLines(1) == [":bridge 904 * :SASL authentication failed"])
        // As many as with PLAIN.
        for _ in 0..<3 {
            #expect(harness.isConnected(1))
            _ = try scram(1, "alice", "wrong")
            harness.advance(by: .seconds(8))
            _ = harness.takeLines(1)
        }
        #expect(!harness.isConnected(1))
    }

    struct Break: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// What the client sends after `AUTHENTICATE SCRAM-SHA-256`; `{first}` and `{proof}` are right messages.
        var lines: [String]
        var answers: [String]
    }

    private static let malformed = "904 :The SASL response is malformed"

    @Test(
        "an exchange that breaks off leaves nothing behind",
        arguments: [
            Break(testDescription: "no base64", lines: ["!"], answers: [malformed]),
            Break(testDescription: "no message", lines: ["+"], answers: [malformed]),
            Break(testDescription: "PLAIN's message", lines: ["AGFsaWNlAHNlY3JldA=="], answers: [malformed]),
            Break(
                testDescription: "a bound channel", lines: [Base64.encode(Array("p=tls-unique,,n=alice,r=a".utf8))],
                answers: ["904 :This server binds no channels; use SCRAM-SHA-256 without"]),
            Break(
                testDescription: "an extension", lines: [Base64.encode(Array("n,,m=1,n=alice,r=a".utf8))],
                answers: ["904 :The SASL response asks for an extension that this server does not know"]),
            Break(
                testDescription: "acting as another", lines: [Base64.encode(Array("n,a=bob,n=alice,r=a".utf8))],
                answers: ["904 :You may only log in as yourself"]),
            Break(
                testDescription: "given up after the challenge", lines: ["{first}", "*"],
                answers: ["906 :SASL authentication aborted"]),
            Break(testDescription: "nothing for a proof", lines: ["{first}", "+"], answers: [malformed]),
            Break(testDescription: "the first message twice", lines: ["{first}", "{first}"], answers: [malformed]),
            Break(
                testDescription: "words after the proof", lines: ["{first}", "{proof}", "AAAA"], answers: [malformed]),
            Break(
                testDescription: "given up after the proof", lines: ["{first}", "{proof}", "*"],
                answers: ["906 :SASL authentication aborted"]),
            Break(
                testDescription: "a line that is too long", lines: ["{first}", String(repeating: "A", count: 401)],
                answers: ["905 :SASL message too long"]),
            Break(
                testDescription: "lines without end",
                lines: [String](repeating: String(repeating: "A", count: 400), count: 4),
                answers: ["904 :The SASL response is too long"]),
        ])
    func broken(_ row: Break) throws {
        begin(1, "CAP REQ sasl")
        var side = SCRAMClient(name: "alice", password: "secret", nonce: "abcdef")
        harness.send(1, "AUTHENTICATE SCRAM-SHA-256")
        _ = harness.takeLines(1)
        var heard: [UInt8] = []
        var refusals: [String] = []
        for line in row.lines {
            let chunks: [String] =
                switch line {
                case "{first}": IRCSASLExchange.chunks(of: side.first)
                case "{proof}": IRCSASLExchange.chunks(of: side.proof(heard) ?? [])
                default: [line]
                }
            for chunk in chunks { harness.send(1, "AUTHENTICATE " + chunk) }
            let lines = harness.takeLines(1)
            if let bytes = challenge(lines) { heard = bytes }
            refusals += lines.filter { $0.hasPrefix(":bridge 9") }.map {
                $0.replacing(":bridge ", with: "").replacing(" *", with: "")
            }
        }
        #expect(refusals == row.answers)
        // The next try begins anew.
        #expect(commands(try scram(1, "alice", "secret")) == ["900", "903"])
    }

    @Test("long messages go both ways in pieces of 400 bytes")
    func chunks() throws {
        begin(1, "CAP REQ sasl")
        // WeeChat's nonce is short; nothing keeps others from long ones.
        for length in [256, 230, 200] {
            let lines = try scram(1, "alice", "secret", nonce: String(repeating: "n", count: length))
            #expect(commands(lines) == ["900", "903"])
        }
    }

    @Test("who goes on with registering while logging in is let in without")
    func abandoned() throws {
        begin(1, "CAP REQ sasl", "NICK me", "USER u 0 * :r")
        harness.send(1, "AUTHENTICATE SCRAM-SHA-256")
        _ = harness.takeLines(1)
        _ = respond(1, SCRAMClient(name: "alice", password: "secret").first)
        harness.send(1, "CAP END")
        #expect(commands(harness.takeLines(1)).prefix(2) == ["906", "001"])
        harness.send(1, "AUTHENTICATE +")
        #expect(commands(harness.takeLines(1)) == ["908", "904"])
        // And may log in later.
        #expect(commands(try scram(1, "alice", "secret")) == ["900", "903"])
    }

    @Test("what registering ended in the middle is not taken up again")
    func abandonedAndBegunAnew() throws {
        begin(1, "CAP REQ sasl", "NICK me", "USER u 0 * :r")
        harness.send(1, "AUTHENTICATE SCRAM-SHA-256")
        _ = harness.takeLines(1)
        _ = respond(1, SCRAMClient(name: "alice", password: "secret").first)
        harness.send(1, "CAP END")
        #expect(commands(harness.takeLines(1)).prefix(2) == ["906", "001"])
        #expect(commands(try scram(1, "alice", "secret")) == ["900", "903"])
    }

    // MARK: - The nick

    /// What clients send: NICK and USER with the first line, before anybody can know who they are.
    struct Wish: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var nick: String
        /// Who logs in, and with what; nil: nobody.
        var login: (name: String, password: String)?
        /// The nick that bob's other client has chosen; nil: there is none.
        var other: String?
        /// The nick with which the client is welcomed; nil: it is refused.
        var outcome: String?
    }

    static let bob = (name: "bob", password: "x=,")
    static let alice = (name: "alice", password: "secret")
    static let wishes = [
        Wish(testDescription: "bob, alone", nick: "bob", login: bob, outcome: "bob"),
        Wish(testDescription: "bob, in other letters", nick: "BOB", login: bob, outcome: "BOB"),
        Wish(testDescription: "bob, at another client too", nick: "bob", login: bob, other: "bob", outcome: "bob"),
        Wish(
            testDescription: "bob, who is called robert now", nick: "bob", login: bob, other: "robert",
            outcome: "robert"),
        Wish(testDescription: "robert, who is bob", nick: "robert", login: bob, other: "robert", outcome: "robert"),
        Wish(testDescription: "nobody", nick: "bob"),
        Wish(testDescription: "nobody, while bob is here", nick: "bob", other: "bob"),
        Wish(testDescription: "nobody, what bob is called now", nick: "robert", other: "robert"),
        Wish(testDescription: "somebody who does not know the password", nick: "bob", login: ("bob", "wrong")),
        Wish(testDescription: "alice", nick: "bob", login: alice),
        Wish(testDescription: "alice, while bob is here", nick: "bob", login: alice, other: "bob"),
        Wish(
            testDescription: "alice, the nick of somebody upstream who is absent", nick: "kim", login: alice,
            outcome: "kim"),
        Wish(
            testDescription: "alice, what looks like the nick of somebody upstream who is absent", nick: "KIM",
            login: alice, outcome: "KIM"),
        Wish(testDescription: "nobody, the nick of somebody upstream who is absent", nick: "kim"),
        Wish(testDescription: "alice, the nick of somebody upstream who is there", nick: "lea", login: alice),
    ]

    @Test("a nick that is asked for before logging in is judged by who it is in the end", arguments: wishes)
    func wish(_ row: Wish) throws {
        let now = harness.clock.now.monotonic
        let identities = harness.bridge.context.identities
        for name in ["kim", "lea"] {
            let known = identities.resolve(
                ChatPerson(id: ChatID(name), name: name), backend: "chat", authenticated: false, now: now)
            if name == "lea" { identities.entered(known.id) }
        }
        if let other = row.other {
            begin(9, "CAP LS 302", "NICK bob", "USER u 0 * :r", "CAP REQ :sasl")
            _ = try scram(9, "bob", "x=,")
            for line in ["CAP END", "NICK " + other] { harness.send(9, line) }
            _ = harness.takeLines(9)
        }
        begin(1, "CAP LS 302", "NICK \(row.nick)", "USER u 0 * :r", "CAP REQ :sasl")
        if let login = row.login {
            let lines = try scram(1, login.name, login.password)
            #expect(lines.last?.contains(login.password == "wrong" ? " 904 " : " 903 ") == true)
        }
        harness.send(1, "CAP END")
        harness.advance(by: .seconds(5))
        let lines = harness.takeLines(1)
        let welcome = lines.first { $0.contains(" 001 ") }?.split(separator: " ")[2]
        #expect(welcome.map(String.init) == row.outcome, "\(lines)")
        guard row.outcome == nil else { return }
        // Here, or at once where no login could change it. It is nobody's yet, and comes in under another.
        #expect(harness.bridge.irc.sessions[ClientID(rawValue: 1)]?.person == nil)
        harness.send(1, "NICK guest")
        harness.advance(by: .seconds(5))
        let guest = row.login?.name == "bob" && row.login?.password != "wrong" ? nil : "guest"
        #expect(harness.takeLines(1).first { $0.contains(" 001 ") }?.split(separator: " ")[2] == guest.map { $0[...] })
    }

    @Test("who is refused a nick that only a login could give hears so at the latest when registration ends")
    func refusedAtTheEnd() {
        for (client, nick) in [(1, "bob"), (2, "alice")] as [(UInt64, String)] {
            begin(client, "CAP LS 302", "NICK " + nick, "USER u 0 * :r", "CAP REQ :sasl")
            #expect(harness.takeLines(client) == [])
            harness.send(client, "CAP END")
            #expect(harness.takeLines(client) == [":bridge 433 * \(nick) :Nickname is already in use"])
        }
        harness.connect(3)
        harness.send(3, "NICK bob")
        #expect(harness.takeLines(3) == [])
        harness.send(3, "USER u 0 * :r")
        #expect(harness.takeLines(3) == [":bridge 433 * bob :Nickname is already in use"])
    }

    // MARK: - What is offered

    @Test(
        "only what can succeed on a connection is offered there",
        arguments: [
            (ClientOrigin.Security.plain, true, "sasl=PLAIN,SCRAM-SHA-256"),
            (.encrypted, true, "sasl=PLAIN,SCRAM-SHA-256"),
            (.certified("ccdd"), true, "sasl=PLAIN,SCRAM-SHA-256,EXTERNAL"),
            (.plain, false, nil),
        ] as [(ClientOrigin.Security, Bool, String?)])
    func offered(_ security: ClientOrigin.Security, _ allowsLogin: Bool, _ value: String?) throws {
        harness.connect(1, allowsLogin: allowsLogin, security: security)
        harness.send(1, "CAP LS 302")
        let words = harness.takeLines(1).flatMap { $0.split(separator: " ").map(String.init) }
        #expect(words.first { $0.hasPrefix("sasl") } == value)
        #expect(!words.contains { $0.hasPrefix("draft/account-registration") })
    }

    @Test(
        "the operator may leave ways out", arguments: [[], [.scramSHA256], [.external, .plain]] as [[SASLMechanism]])
    func chosen(_ mechanisms: [SASLMechanism]) {
        let harness = Self.harness(mechanisms: mechanisms)
        harness.connect(1, security: .certified("aabb"))
        harness.send(1, "CAP LS 302")
        let words = harness.takeLines(1).flatMap { $0.split(separator: " ").map(String.init) }
        let value = mechanisms.isEmpty ? nil : "sasl=" + mechanisms.map(\.rawValue).joined(separator: ",")
        #expect(words.first { $0.hasPrefix("sasl") } == value)
        guard !mechanisms.contains(.plain) else { return }
        harness.send(1, "CAP REQ sasl")
        harness.send(1, "AUTHENTICATE PLAIN")
        #expect(harness.takeLines(1).contains { $0.contains(" 904 ") })
    }

    @Test("a certificate that was not shown logs nobody in, whatever the client says")
    func noCertificate() {
        begin(1, "CAP REQ sasl")
        harness.send(1, "AUTHENTICATE EXTERNAL")
        #expect(commands(harness.takeLines(1)) == ["908", "904"])
    }

    @Test(
        "EXTERNAL takes the account's name or none",
        arguments: [
            ("+", true), ("=", true), ("YWxpY2U=", true), ("QUxJQ0U=", true),
            (Base64.encode(Array("alice@phone".utf8)), true), ("Ym9i", false), ("AA==", false), ("//8=", false),
        ])
    func external(_ response: String, _ succeeds: Bool) {
        begin(1, "CAP REQ sasl", security: .certified("aabb"))
        harness.send(1, "AUTHENTICATE EXTERNAL")
        harness.send(1, "AUTHENTICATE " + response)
        #expect(
            commands(harness.takeLines(1)) == (succeeds ? ["AUTHENTICATE", "900", "903"] : ["AUTHENTICATE", "904"]))
    }
}
