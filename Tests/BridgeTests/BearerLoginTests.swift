import BridgeTestSupport
import BridgeTypes
import Digests
import HTTPProtocol
import IRCProtocol
import Identities
import Testing
import Upstream
import WireBytes

@testable import Accounts
@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Logins with a token that the backend is asked about.
@Suite("Logging in with OAUTHBEARER")
struct BearerLoginTests {
    private let harness: BridgeHarness

    init() throws {
        harness = try Self.harness()
    }

    private static func harness(bearer: String? = "main") throws -> BridgeHarness {
        let dialect = AccountDialect()
        var room = RoomSettings(
            name: "lobby", backend: "main", dialect: dialect, url: try HTTPURL(parsing: "ws://chat.example/lobby"))
        room.ping = .zero
        let verifier = SCRAMVerifier(
            password: SecretBytes("secret".utf8), salt: Array("saltsalt".utf8), iterations: 4096)
        var limits = LimitSettings()
        limits.messagesPerSecond = nil
        var settings = BridgeSettings(
            serverName: "bridge", instanceID: "tests",
            accounts: [AccountSettings(name: "remy", password: verifier, isAdmin: true, tokenOwners: ["1"])],
            limits: limits, rooms: [room],
            backends: [
                BackendSettings(name: "main", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"))
            ])
        settings.bearerBackend = bearer
        let harness = BridgeHarness(settings: settings)
        harness.accounts.server = { call in
            switch call.token {
            case "token-of-remy": TokenServer.answer(200, #"{"id":"1","name":"Remy"}"#)
            case "token-of-ann": TokenServer.answer(200, #"{"id":"7","name":"Ann"}"#)
            case "token-of-a-look-alike": TokenServer.answer(200, #"{"id":"ann@x.org","name":"Ann"}"#)
            case "token-in-capitals": TokenServer.answer(200, #"{"id":"ANN","name":"Ann"}"#)
            case "token-of-nobody": TokenServer.answer(200, "{}")
            case "token-in-trouble": TokenServer.answer(503, "token-in-trouble is too much for me")
            case "token-lost": .failure(BackendCallFailure(sentence: "chat.example: no answer"))
            case "token-open": nil
            default: TokenServer.answer(401, #"{"detail":"bad token"}"#)
            }
        }
        harness.start()
        return harness
    }

    private func begin(_ client: UInt64, nick: String = "me", address: String = "127.0.0.1") {
        harness.connect(client, address: address)
        for line in ["CAP LS 302", "NICK \(nick)", "USER u 0 * :r", "CAP REQ :sasl"] { harness.send(client, line) }
        _ = harness.takeLines(client)
    }

    /// As clients do it: `name` in the header, where there is one.
    private func show(_ client: UInt64, _ token: String, name: String = "") -> [String] {
        harness.send(client, "AUTHENTICATE OAUTHBEARER")
        #expect(harness.takeLines(client) == ["AUTHENTICATE +"])
        let header = name.isEmpty ? "n,," : "n,a=\(name),"
        return respond(client, Array("\(header)\u{1}auth=Bearer \(token)\u{1}\u{1}".utf8))
    }

    private func respond(_ client: UInt64, _ bytes: [UInt8]) -> [String] {
        for chunk in IRCSASLExchange.chunks(of: bytes) { harness.send(client, "AUTHENTICATE " + chunk) }
        return harness.takeLines(client)
    }

    private static let refusal = "AUTHENTICATE " + Base64.encode(Array(#"{"status":"invalid_token"}"#.utf8))

    @Test("it is offered where a backend can be asked, and only there")
    func offered() throws {
        for (bearer, value) in [
            ("main", "sasl=PLAIN,SCRAM-SHA-256,OAUTHBEARER"), (nil, "sasl=PLAIN,SCRAM-SHA-256"),
            ("other", "sasl=PLAIN,SCRAM-SHA-256"),
        ] {
            let harness = try Self.harness(bearer: bearer)
            harness.connect(1)
            harness.send(1, "CAP LS 302")
            let words = harness.takeLines(1).flatMap { $0.split(separator: " ").map(String.init) }
            #expect(words.first { $0.hasPrefix("sasl") } == value)
            harness.send(1, "CAP REQ sasl")
            _ = harness.takeLines(1)
            harness.send(1, "AUTHENTICATE OAUTHBEARER")
            #expect(
                harness.takeLines(1).first
                    == (bearer == "main"
                        ? "AUTHENTICATE +" : ":bridge 908 * PLAIN,SCRAM-SHA-256 :are available SASL mechanisms"))
            harness.connect(2, allowsLogin: false)
            harness.send(2, "CAP LS 302")
            #expect(!harness.takeLines(2).contains { $0.contains(" sasl") })
        }
    }

    struct Login: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var token: String
        var name = ""
        var account: String
        var client: String?
    }

    @Test(
        "whose token it is, the backend says",
        arguments: [
            Login(testDescription: "somebody of the backend", token: "token-of-ann", account: "7@main"),
            Login(testDescription: "named as the account", token: "token-of-ann", name: "7@main", account: "7@main"),
            Login(testDescription: "named by id", token: "token-of-ann", name: "7", account: "7@main"),
            Login(testDescription: "named by name", token: "token-of-ann", name: "ANN", account: "7@main"),
            Login(
                testDescription: "one of several clients", token: "token-of-ann", name: "ann@Phone", account: "7@main",
                client: "phone"),
            Login(
                testDescription: "one of several clients of the whole name", token: "token-of-ann",
                name: "7@main@desk", account: "7@main", client: "desk"),
            Login(testDescription: "an account that names them", token: "token-of-remy", account: "remy"),
            Login(
                testDescription: "that account's client", token: "token-of-remy", name: "remy@phone", account: "remy",
                client: "phone"),
        ])
    func whose(_ row: Login) {
        begin(1)
        let lines = show(1, row.token, name: row.name)
        #expect(
            lines == [
                ":bridge 900 me me!~u@bridge \(row.account) :You are now logged in as \(row.account)",
                ":bridge 903 me :SASL authentication successful",
            ])
        #expect(harness.accounts.calls.map(\.path) == ["/me"])
        #expect(harness.accounts.calls.map(\.token) == [row.token])
        harness.send(1, "CAP END")
        #expect(harness.takeLines(1).first?.hasPrefix(":bridge 001 me ") == true)
        let session = harness.bridge.irc.sessions[ClientID(rawValue: 1)]
        #expect(session?.account?.name == row.account)
        if let client = row.client { #expect(session?.clientName == client) }
        harness.send(1, "WHOIS me")
        #expect(harness.takeLines(1).contains(":bridge 330 me me \(row.account) :is logged in as"))
    }

    @Test("who logs in this way twice is one person, with the password too")
    func onePerson() {
        begin(1, nick: "remy")
        _ = show(1, "token-of-remy")
        harness.send(1, "CAP END")
        begin(2, nick: "other")
        harness.send(2, "AUTHENTICATE PLAIN")
        _ = harness.takeLines(2)
        _ = respond(2, Array("\0remy\0secret".utf8))
        harness.send(2, "CAP END")
        #expect(harness.takeLines(2).contains { $0.hasPrefix(":bridge 001 remy ") })
        begin(3, nick: "third")
        _ = show(3, "token-of-ann")
        harness.send(3, "CAP END")
        #expect(harness.takeLines(3).contains { $0.hasPrefix(":bridge 001 third ") })
        let people = ["7@main", "remy"].map { harness.bridge.context.identities.person(account: $0) }
        #expect(people.count { $0 != nil } == 2 && Set(people).count == 2)
    }

    @Test("acting as somebody else is not for this", arguments: ["remy", "bob", "8", "7main", "annie@phone"])
    func another(_ name: String) {
        begin(1)
        #expect(show(1, "token-of-ann", name: name) == [":bridge 904 me :You may only log in as yourself"])
        #expect(harness.bridge.irc.sessions[ClientID(rawValue: 1)]?.account == nil)
    }

    @Test("an account is never two people's", arguments: ["token-of-a-look-alike", "token-in-capitals"])
    func lookAlike(_ token: String) {
        begin(1)
        #expect(
            show(1, token) == [
                ":bridge 904 me :Your name there cannot be an account here; ask for an account of your own"
            ])
    }

    @Test("a refused token is told as the mechanism has it, and the client says that it heard")
    func refused() {
        begin(1)
        #expect(show(1, "token-that-ended") == [Self.refusal])
        harness.send(1, "AUTHENTICATE AQ==")
        #expect(harness.takeLines(1) == [":bridge 904 me :SASL authentication failed"])
        // A new try, given up after the word.
        harness.send(1, "AUTHENTICATE OAUTHBEARER")
        _ = respond(1, Array("n,,\u{1}auth=Bearer token-that-ended\u{1}\u{1}".utf8))
        harness.advance(by: .seconds(5))
        #expect(harness.takeLines(1).contains(Self.refusal))
        harness.send(1, "AUTHENTICATE *")
        #expect(harness.takeLines(1) == [":bridge 906 me :SASL authentication aborted"])
        #expect(show(1, "token-of-ann").count == 2)
    }

    @Test(
        "however a client takes a refusal, it was a try",
        arguments: ["AQ==", "*", "not base64", String(repeating: "A", count: 401)])
    func everyRefusalCounts(answer: String) {
        begin(1)
        for number in 1...IRCServer.maxLoginTries {
            #expect(harness.isConnected(1), "after \(number - 1)")
            _ = harness.takeLines(1)
            _ = show(1, "token-that-ended")
            harness.advance(by: .seconds(8))
            #expect(harness.takeLines(1).allSatisfy { $0 == Self.refusal })
            harness.send(1, "AUTHENTICATE " + answer)
        }
        #expect(harness.takeLines(1).last?.hasSuffix("(Too many failed logins)") == true)
        #expect(!harness.isConnected(1))
    }

    @Test("a token that is given up before the backend's word was a try where it is refused, and only there")
    func givenUp() throws {
        begin(1)
        for number in 1...IRCServer.maxLoginTries {
            for (isLast, answer) in [
                (false, TokenServer.answer(200, #"{"id":"7","name":"Ann"}"#)), (true, TokenServer.answer(401)),
            ] {
                #expect(show(1, "token-open") == [])
                harness.send(1, "AUTHENTICATE *")
                #expect(harness.takeLines(1) == [":bridge 906 me :SASL authentication aborted"])
                let call = try #require(harness.accounts.calls.last)
                harness.perform { $0.backendAnswered(call.id, call.order.backend, answer, now: $1) }
                harness.advance(by: .seconds(1))
                #expect(harness.isConnected(1) == !(isLast && number == IRCServer.maxLoginTries))
                #expect(harness.bridge.irc.sessions[ClientID(rawValue: 1)]?.account == nil)
                _ = harness.takeLines(1)
            }
        }
    }

    @Test("whoever registers instead of saying so may try again")
    func refusedAndRegistered() {
        begin(1)
        #expect(show(1, "token-that-ended") == [Self.refusal])
        harness.send(1, "CAP END")
        #expect(harness.takeLines(1).first == ":bridge 906 me :SASL authentication aborted")
        #expect(show(1, "token-of-ann").first == ":bridge 900 me me!~u@bridge 7@main :You are now logged in as 7@main")
    }

    @Test("refusals come later and later, and the wait cannot be dodged")
    func throttled() {
        begin(1)
        #expect(show(1, "bad") == [Self.refusal])
        _ = respond(1, [1])
        #expect(show(1, "bad") == [])
        harness.send(1, "AUTHENTICATE OAUTHBEARER")
        #expect(harness.takeLines(1) == [":bridge 904 me :Wait for the answer to your last try"])
        harness.advance(by: .seconds(1))
        #expect(harness.takeLines(1) == [Self.refusal])
        #expect(respond(1, [1]) == [":bridge 904 me :SASL authentication failed"])
        for _ in 0..<3 {
            #expect(harness.isConnected(1))
            _ = show(1, "bad")
            harness.advance(by: .seconds(8))
            _ = respond(1, [1])
        }
        #expect(!harness.isConnected(1))
    }

    @Test(
        "a backend that cannot say is no refusal",
        arguments: ["token-of-nobody", "token-in-trouble", "token-lost"])
    func trouble(_ token: String) {
        begin(1)
        for _ in 0..<10 {
            #expect(
                show(1, token) == [
                    ":bridge 904 me :chat.example cannot say at the moment whose token that is; try again"
                ])
        }
        #expect(harness.isConnected(1))
        #expect(show(1, "token-of-ann").count == 2)
    }

    @Test("a message that is none is refused at once, and nobody is asked")
    func malformed() {
        begin(1)
        for (text, answer) in [
            ("\0ann\0secret", "The SASL response is malformed"),
            ("n,,\u{1}auth=Basic eDp5\u{1}\u{1}", "The SASL response has no bearer token"),
            ("p=tls-unique,,\u{1}auth=Bearer x\u{1}\u{1}", "This server binds no channels; use OAUTHBEARER without"),
        ] {
            harness.send(1, "AUTHENTICATE OAUTHBEARER")
            _ = harness.takeLines(1)
            #expect(respond(1, Array(text.utf8)) == [":bridge 904 me :\(answer)"])
        }
        #expect(harness.accounts.calls.isEmpty)
    }

    @Test("whoever goes on meanwhile comes in with the answer")
    func wentOn() throws {
        begin(1)
        #expect(show(1, "token-open") == [])
        harness.send(1, "CAP END")
        #expect(harness.takeLines(1) == [])
        let call = try #require(harness.accounts.calls.first)
        harness.perform { bridge, now in
            bridge.backendAnswered(
                call.id, call.order.backend, TokenServer.answer(200, #"{"id":"7","name":"Ann"}"#), now: now)
        }
        let numerics = harness.takeLines(1).compactMap { $0.split(separator: " ").dropFirst().first }
        #expect(numerics.prefix(3) == ["900", "903", "001"])
        #expect(harness.bridge.irc.sessions[ClientID(rawValue: 1)]?.account?.name == "7@main")
        #expect(harness.bridge.irc.logins.queries.isEmpty)
    }

    @Test("a client that is gone is not missed, and no more are asked about than may be at a time")
    func bounded() {
        for client in 1...UInt64(TokenQuery.maxUnderway) {
            begin(client, nick: "n\(client)")
            #expect(show(client, "token-open") == [])
        }
        begin(100)
        #expect(
            show(100, "token-of-ann") == [":bridge 904 me :Too many people log in at this moment; try again"])
        harness.disconnect(1)
        let calls = harness.accounts.calls
        harness.perform { bridge, now in
            for call in calls { bridge.backendAnswered(call.id, call.order.backend, TokenServer.answer(401), now: now) }
        }
        #expect(harness.bridge.irc.logins.queries.isEmpty)
        #expect(harness.violations == [])
    }

    @Test("a token comes in pieces, and stands in no note and no line")
    func secrecy() {
        begin(1)
        let long = String(repeating: "s3cr3t", count: 700)
        #expect(show(1, long) == [Self.refusal])
        _ = respond(1, [1])
        _ = show(1, "token-in-trouble")
        _ = show(1, "token-of-ann")
        #expect(!harness.notes.isEmpty)
        let events = Set(harness.notes.map(\.event))
        #expect(events.isSuperset(of: ["client-token-refused", "backend-call-failed", "client-login"]))
        for note in harness.notes {
            let text = "\(note)"
            #expect(!text.contains("s3cr3t") && !text.contains("token-in-") && !text.contains("token-of-"))
        }
        #expect(harness.accounts.calls.allSatisfy { $0.order.carriesClientTokenOnly })
        // Nor where an action is printed.
        #expect(harness.accounts.calls.count == 3)
        for call in harness.accounts.calls { #expect(!"\(call.order)".contains("token-of-")) }
    }

    @Test("another who is here already changes who it is")
    func again() {
        begin(1)
        harness.send(1, "CAP END")
        _ = harness.takeLines(1)
        #expect(show(1, "token-of-ann").first?.contains(" 900 me ") == true)
        #expect(show(1, "token-of-remy").contains { $0.contains("ACCOUNT remy") || $0.contains(" 900 ") })
        let lines = show(1, "token-of-ann")
        #expect(lines.contains { $0.contains(" 900 ") })
        #expect(harness.bridge.irc.sessions[ClientID(rawValue: 1)]?.account?.name == "7@main")
        #expect(harness.violations == [])
    }
}
