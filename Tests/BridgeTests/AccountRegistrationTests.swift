import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Making an account")
struct AccountRegistrationTests {
    private static func settings(
        _ registration: RegistrationPolicy = .everybody, password: String? = nil, accounts: [AccountSettings] = []
    ) throws -> BridgeSettings {
        var limits = LimitSettings()
        limits.messagesPerSecond = nil
        limits.acceptsPerSecondPerAddress = nil
        var room = RoomSettings(
            name: "lobby", backend: "chat", dialect: EnvelopeDialect(), url: try HTTPURL(parsing: "ws://chat/lobby"))
        room.ping = .zero
        return BridgeSettings(
            serverName: "bridge", instanceID: "tests", password: password.map { .plain(SecretBytes($0.utf8)) },
            accounts: accounts, registration: registration, passwordIterations: 4096, limits: limits, rooms: [room])
    }

    private static func harness(
        _ registration: RegistrationPolicy = .everybody, password: String? = nil, accounts: [AccountSettings] = [],
        store: StoreStage? = StoreStage()
    ) throws -> BridgeHarness {
        let harness = BridgeHarness(
            settings: try settings(registration, password: password, accounts: accounts), store: store)
        harness.start()
        _ = harness.takeOutputs()
        return harness
    }

    private static let caps = "draft/account-registration sasl standard-replies labeled-response batch account-notify"

    private static func enter(_ client: UInt64, _ nick: String, _ harness: BridgeHarness, caps: String = caps) {
        harness.connect(client)
        for line in ["CAP REQ :" + caps, "NICK " + nick, "USER u 0 * :r", "CAP END"] { harness.send(client, line) }
        _ = harness.takeLines(client)
    }

    private static func plain(_ name: String, _ password: String) -> String {
        "AUTHENTICATE " + Base64.encode(Array("\0\(name)\0\(password)".utf8))
    }

    /// Whether that login works.
    private static func logsIn(_ client: UInt64, _ name: String, _ password: String, _ harness: BridgeHarness) -> Bool {
        harness.connect(client)
        for line in ["CAP REQ sasl", "AUTHENTICATE PLAIN", plain(name, password)] { harness.send(client, line) }
        return harness.takeLines(client).contains { $0.contains(" 903 ") }
    }

    private static func capabilities(
        _ client: UInt64, _ harness: BridgeHarness, isLocal: Bool = true, allowsLogin: Bool = true
    ) -> [String] {
        harness.connect(
            client, address: isLocal ? "127.0.0.1" : "192.0.2.7", isLocal: isLocal, allowsLogin: allowsLogin)
        harness.send(client, "CAP LS 302")
        return harness.takeLines(client).flatMap { $0.split(separator: " ") }.map(String.init)
            .map { $0.hasPrefix(":") ? String($0.dropFirst()) : $0 }
            .filter { $0.hasPrefix("draft/account-registration") || $0.hasPrefix("sasl") }
    }

    // MARK: - Offered

    @Test("it is offered where somebody allowed it, can keep it, and may send a password")
    func offered() throws {
        let both = ["sasl=PLAIN,SCRAM-SHA-256", "draft/account-registration=before-connect,custom-account-name"]
        #expect(Self.capabilities(1, try Self.harness()) == both)
        #expect(Self.capabilities(1, try Self.harness(), isLocal: false) == both)
        #expect(Self.capabilities(1, try Self.harness(), isLocal: false, allowsLogin: false) == [])
        #expect(Self.capabilities(1, try Self.harness(.local)) == both)
        #expect(Self.capabilities(1, try Self.harness(.local), isLocal: false) == [])
        #expect(Self.capabilities(1, try Self.harness(.nobody)) == [])
        #expect(Self.capabilities(1, try Self.harness(store: nil)) == [])
        #expect(
            Self.capabilities(1, try Self.harness(password: "sesame"))
                == [both[0], "draft/account-registration=custom-account-name"])
    }

    @Test("where it is not offered there is no such command", arguments: ["REGISTER * * long-enough", "VERIFY a b"])
    func unknown(_ line: String) throws {
        let harness = try Self.harness(.nobody)
        harness.connect(1)
        harness.send(1, line)
        #expect(harness.takeLines(1) == [":bridge 451 * :You have not registered"])
        Self.enter(2, "remy", harness, caps: "sasl")
        harness.send(2, line)
        #expect(harness.takeLines(2) == [":bridge 421 remy \(line.split(separator: " ")[0]) :Unknown command"])
    }

    @Test("who hears of capabilities hears when the disk is full, and when there is room again")
    func comesAndGoes() throws {
        let harness = try Self.harness()
        Self.enter(1, "remy", harness, caps: "cap-notify draft/account-registration")
        harness.store.failure = "the disk is full"
        harness.perform { _, _ in }
        #expect(
            harness.takeLines(1).filter { $0.contains(" CAP ") } == [
                ":bridge CAP remy DEL :sasl draft/account-registration"
            ]
        )
        harness.send(1, "REGISTER * * long-enough")
        #expect(
            harness.takeLines(1)
                == [":bridge FAIL REGISTER TEMPORARILY_UNAVAILABLE remy :Accounts cannot be stored at the moment"]
        )
        harness.store.failure = nil
        harness.perform { _, _ in }
        #expect(
            harness.takeLines(1).filter { $0.contains(" CAP ") }
                == [
                    ":bridge CAP remy NEW :sasl draft/account-registration"
                ])
    }

    @Test("the first account that is made makes logging in worth offering")
    func firstAccount() throws {
        let harness = try Self.harness(.local)
        harness.connect(1, address: "192.0.2.7", isLocal: false)
        for line in ["CAP LS 302", "NICK far", "USER u 0 * :r", "CAP END"] { harness.send(1, line) }
        Self.enter(2, "remy", harness)
        harness.send(2, "REGISTER * * long-enough")
        #expect(harness.takeLines(1).contains(":bridge CAP far NEW :sasl=PLAIN,SCRAM-SHA-256"))
    }

    // MARK: - Made

    @Test("an account that was made is there after a restart, and every mechanism knows it")
    func kept() throws {
        let harness = try Self.harness()
        Self.enter(1, "linguini", harness)
        harness.send(1, "REGISTER ratatouille * long-enough")
        #expect(
            harness.takeLines(1) == [
                ":bridge REGISTER SUCCESS ratatouille :Account created",
                ":bridge 900 linguini linguini!~u@bridge ratatouille :You are now logged in as ratatouille",
                ":linguini!~u@bridge ACCOUNT ratatouille",
            ])
        let stored = try #require(harness.store.disk.accounts.first)
        #expect(stored.name == "ratatouille" && !stored.password.contains("long-enough"))
        #expect(try SCRAMVerifier(parsing: stored.password).matches(SecretBytes("long-enough".utf8)))

        // Also where nobody may make one any more.
        let next = try Self.harness(.nobody, store: harness.store.afterCrash)
        #expect(Self.logsIn(1, "Ratatouille", "long-enough", next))
        #expect(!Self.logsIn(2, "ratatouille", "long-enough?", next))
        Self.enter(3, "skinner", next, caps: "sasl")
        next.send(3, "NICK ratatoui11e")
        #expect(next.takeLines(3).first?.contains(" 433 ") == true)
    }

    @Test("a configured account of the same name counts, and the log says so")
    func shadowed() throws {
        let made = SCRAMVerifier(password: SecretBytes("made".utf8), salt: Array("saltsalt".utf8), iterations: 4096)
        let written = SCRAMVerifier(
            password: SecretBytes("written".utf8), salt: Array("saltsalt".utf8), iterations: 4096)
        var state = StoredState()
        state.accounts = [
            StoredAccount(name: "Remy", password: made.description, madeAt: ChatTimestamp(milliseconds: 0)),
            StoredAccount(name: "ann", password: "spoilt", madeAt: ChatTimestamp(milliseconds: 0)),
        ]
        let harness = try Self.harness(
            accounts: [AccountSettings(name: "remy", password: written)], store: StoreStage(state))
        #expect(harness.notes.filter { $0.event == "account-shadowed" }.map(\.metadata) == [["account": "Remy"]])
        #expect(harness.notes.filter { $0.event == "account-unreadable" }.map(\.metadata) == [["account": "ann"]])
        #expect(!Self.logsIn(1, "remy", "made", harness))
        #expect(Self.logsIn(2, "remy", "written", harness))
        #expect(!Self.logsIn(3, "ann", "spoilt", harness))
    }

    @Test("an account that was made is gone when it is erased, with its clients; one of the configuration stays")
    func erased() throws {
        let boss = SCRAMVerifier(password: SecretBytes("secret".utf8), salt: Array("saltsalt".utf8), iterations: 4096)
        let accounts = [AccountSettings(name: "boss", password: boss)]
        let harness = try Self.harness(accounts: accounts)
        Self.enter(1, "linguini", harness)
        harness.send(1, "REGISTER * * long-enough")
        #expect(harness.store.disk.accounts.map(\.name) == ["linguini"])
        for name in ["linguini", "boss"] {
            harness.perform { bridge, now in
                for person in bridge.people(called: name, isAccount: true) { _ = bridge.erase(person, now: now) }
            }
        }
        #expect(harness.takeLines(1).last?.contains("Your account was erased") == true && !harness.isConnected(1))
        for next in [harness, try Self.harness(accounts: accounts, store: harness.store.afterCrash)] {
            #expect(!Self.logsIn(2, "linguini", "long-enough", next))
            #expect(Self.logsIn(3, "boss", "secret", next))
        }
    }

    @Test("success is told when the account is on disk, and what the client sends meanwhile waits")
    func waits() throws {
        let harness = try Self.harness()
        harness.store.commits = false
        Self.enter(1, "linguini", harness)
        harness.send(1, "@label=a REGISTER * * long-enough")
        harness.send(1, "@label=b PING x")
        Self.enter(2, "remy", harness)
        harness.send(2, "REGISTER linguini * long-enough")
        #expect(harness.takeOutputs().count == 1, "Remy hears that there is one; Linguini hears nothing yet")
        // What others say is not part of the answer that is to come.
        harness.send(2, "PRIVMSG linguini :hello")
        #expect(harness.takeLines(1) == [":remy!~u@bridge PRIVMSG linguini :hello"])
        #expect(!Self.logsIn(3, "linguini", "long-enough", harness))
        harness.store.commit()
        harness.perform { _, _ in }
        let lines = harness.takeLines(1)
        #expect(lines.first?.hasPrefix("@label=a :bridge BATCH +") == true)
        #expect(lines.contains { $0.contains("REGISTER SUCCESS linguini") })
        #expect(lines.last == "@label=b :bridge PONG bridge x")
        #expect(Self.logsIn(4, "linguini", "long-enough", harness))
    }

    @Test("before it is connected, a client makes the account and comes in with it")
    func beforeConnect() throws {
        let harness = try Self.harness()
        harness.connect(1)
        for line in ["CAP REQ draft/account-registration", "NICK ann", "USER u 0 * :r"] { harness.send(1, line) }
        _ = harness.takeLines(1)
        harness.send(1, "REGISTER ann * long-enough")
        #expect(
            harness.takeLines(1) == [
                ":bridge REGISTER SUCCESS ann :Account created",
                ":bridge 900 ann ann!~u@bridge ann :You are now logged in as ann",
            ])
        harness.send(1, "CAP END")
        harness.send(1, "WHOIS ann")
        #expect(harness.takeLines(1).contains(":bridge 330 ann ann ann :is logged in as"))
    }

    @Test("a client that goes while its account is made leaves it, or nothing, behind")
    func gone() throws {
        let harness = try Self.harness()
        harness.checksPasswords = false
        Self.enter(1, "ann", harness)
        harness.send(1, "REGISTER * * long-enough")
        harness.disconnect(1)
        harness.answerPasswordHashing(1)
        #expect(harness.store.disk.accounts == [])
        // The name is free again.
        Self.enter(2, "ann", harness)
        harness.store.commits = false
        harness.send(2, "REGISTER * * long-enough")
        harness.answerPasswordHashing(2)
        harness.disconnect(2)
        harness.store.commit()
        harness.perform { _, _ in }
        #expect(harness.store.disk.accounts.map(\.name) == ["ann"])
        harness.checksPasswords = true
        #expect(Self.logsIn(3, "ann", "long-enough", harness))
    }

    // MARK: - Refused

    struct Refusal: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var line: String
        var answer: String
    }

    @Test(
        "what is refused is refused in the spec's words",
        arguments: [
            Refusal(testDescription: "too few words", line: "REGISTER * *", answer: "461 linguini REGISTER"),
            Refusal(
                testDescription: "a name of a configured account", line: "REGISTER boss * long-enough",
                answer: "FAIL REGISTER ACCOUNT_EXISTS boss"),
            Refusal(
                testDescription: "in other letters", line: "REGISTER BOSS * long-enough",
                answer: "FAIL REGISTER ACCOUNT_EXISTS BOSS"),
            Refusal(
                testDescription: "what looks like one", line: "REGISTER b0ss * long-enough",
                answer: "FAIL REGISTER BAD_ACCOUNT_NAME b0ss"),
            Refusal(
                testDescription: "a name of somebody here", line: "REGISTER remy * long-enough",
                answer: "FAIL REGISTER ACCOUNT_EXISTS remy"),
            Refusal(
                testDescription: "what looks like one's", line: "REGISTER rеmy * long-enough",
                answer: "FAIL REGISTER BAD_ACCOUNT_NAME rеmy"),
            Refusal(
                testDescription: "a name of somebody upstream", line: "REGISTER Colette * long-enough",
                answer: "FAIL REGISTER ACCOUNT_EXISTS Colette"),
            Refusal(
                testDescription: "the server's name", line: "REGISTER bridge * long-enough",
                answer: "FAIL REGISTER BAD_ACCOUNT_NAME bridge"),
            Refusal(
                testDescription: "no nick", line: "REGISTER a@b * long-enough",
                answer: "FAIL REGISTER BAD_ACCOUNT_NAME a@b"),
            Refusal(
                testDescription: "a name that is too long",
                line: "REGISTER \(String(repeating: "x", count: 31)) * long-enough",
                answer: "FAIL REGISTER BAD_ACCOUNT_NAME xxx"),
            Refusal(
                testDescription: "an address", line: "REGISTER * a@example.com long-enough",
                answer: "FAIL REGISTER INVALID_EMAIL linguini"),
            Refusal(
                testDescription: "a short password", line: "REGISTER * * 1234567",
                answer: "FAIL REGISTER WEAK_PASSWORD linguini"),
            Refusal(
                testDescription: "the name for a password", line: "REGISTER * * LINGUINI",
                answer: "FAIL REGISTER WEAK_PASSWORD linguini"),
            Refusal(
                testDescription: "an endless password", line: "REGISTER * * \(String(repeating: "x", count: 500))",
                answer: "417 linguini"),
            Refusal(
                testDescription: "no code was sent", line: "VERIFY linguini 123",
                answer: "FAIL VERIFY INVALID_CODE linguini"),
        ])
    func refused(_ row: Refusal) throws {
        let boss = SCRAMVerifier(password: SecretBytes("secret".utf8), salt: Array("saltsalt".utf8), iterations: 4096)
        let harness = try Self.harness(accounts: [AccountSettings(name: "boss", password: boss)])
        Self.enter(1, "linguini", harness)
        Self.enter(2, "remy", harness)
        harness.sendFrame(
            0,
            #"{"event":"message","message_id":"m1","sender_id":"c1","sender_name":"Colette","body":"hi","sent_at":1}"#)
        _ = harness.takeOutputs()
        harness.send(1, row.line)
        let lines = harness.takeLines(1)
        #expect(lines.count == 1 && lines.first?.hasPrefix(":bridge " + row.answer) == true, "\(lines)")
        #expect(harness.store.disk.accounts == [])
        // Nothing is held for what was not made.
        harness.send(1, "REGISTER * * long-enough")
        #expect(harness.takeLines(1).first?.contains("SUCCESS linguini") == true)
    }

    @Test("who has one, or has no nick yet, makes none")
    func notNow() throws {
        let harness = try Self.harness()
        harness.connect(1)
        harness.send(1, "CAP REQ :standard-replies draft/account-registration sasl")
        harness.send(1, "REGISTER * * long-enough")
        harness.send(1, "REGISTER ann * long-enough")
        harness.send(1, "NICK ann")
        harness.send(1, "AUTHENTICATE PLAIN")
        harness.send(1, "REGISTER ann * long-enough")
        harness.send(1, "AUTHENTICATE *")
        harness.send(1, "REGISTER ann * long-enough")
        harness.send(1, "REGISTER bob * long-enough")
        harness.send(1, "VERIFY ann 1")
        #expect(
            harness.takeLines(1).dropFirst() == [
                ":bridge FAIL REGISTER NEED_NICK * :Choose a nick first",
                ":bridge FAIL REGISTER NEED_NICK * :Choose a nick first",
                "AUTHENTICATE +",
                ":bridge FAIL REGISTER TEMPORARILY_UNAVAILABLE ann :Finish logging in first",
                ":bridge 906 ann :SASL authentication aborted",
                ":bridge REGISTER SUCCESS ann :Account created",
                ":bridge 900 ann ann!*@bridge ann :You are now logged in as ann",
                ":bridge FAIL REGISTER ALREADY_AUTHENTICATED ann :You are logged in as ann",
                ":bridge FAIL VERIFY ALREADY_AUTHENTICATED ann :You are logged in as ann",
            ])
    }

    @Test("whose wish for a nick was refused hears that somebody has it, and may choose another name")
    func refusedNick() throws {
        let harness = try Self.harness()
        Self.enter(1, "root", harness)
        harness.connect(2)
        for line in ["NICK root", "REGISTER * * long-enough", "REGISTER twig * long-enough"] { harness.send(2, line) }
        #expect(
            harness.takeLines(2) == [
                ":bridge 433 * root :Nickname is already in use",
                ":bridge FAIL REGISTER ACCOUNT_EXISTS root :Somebody here is called that",
                ":bridge REGISTER SUCCESS twig :Account created",
                ":bridge 900 * *!*@bridge twig :You are now logged in as twig",
            ])
    }

    @Test("a server's password comes first")
    func serverPassword() throws {
        let harness = try Self.harness(password: "sesame")
        harness.connect(1)
        for line in ["CAP REQ :standard-replies", "NICK ann", "REGISTER * * long-enough", "VERIFY ann 1"] {
            harness.send(1, line)
        }
        #expect(
            harness.takeLines(1).dropFirst() == [
                ":bridge FAIL REGISTER COMPLETE_CONNECTION_REQUIRED * :Connect first",
                ":bridge FAIL VERIFY COMPLETE_CONNECTION_REQUIRED ann :Connect first",
            ])
        for line in ["PASS sesame", "USER u 0 * :r", "CAP END"] { harness.send(1, line) }
        _ = harness.takeLines(1)
        harness.send(1, "REGISTER * * long-enough")
        #expect(harness.takeLines(1).first == ":bridge REGISTER SUCCESS ann :Account created")
    }

    @Test("where accounts are made only inside, the offer says so, and outside nobody makes one")
    func onlyInside() throws {
        var settings = try Self.settings(.everybody)
        settings.registersBeforeConnect = false
        let harness = BridgeHarness(settings: settings, store: StoreStage())
        harness.start()
        _ = harness.takeOutputs()
        harness.connect(1)
        for line in ["CAP LS 302", "NICK ann", "REGISTER * * long-enough"] { harness.send(1, line) }
        let outside = harness.takeLines(1)
        let offer = outside.joined(separator: " ").split(separator: " ").first {
            $0.hasPrefix("draft/account-registration")
        }
        #expect(offer == "draft/account-registration=custom-account-name")
        #expect(outside.last == ":bridge FAIL REGISTER COMPLETE_CONNECTION_REQUIRED * :Connect first")
        for line in ["USER u 0 * :r", "CAP END"] { harness.send(1, line) }
        _ = harness.takeLines(1)
        harness.send(1, "REGISTER * * long-enough")
        #expect(harness.takeLines(1).first == ":bridge REGISTER SUCCESS ann :Account created")
    }

    @Test("from one address come five in an hour, and from this machine as many as fit")
    func throttled() throws {
        let harness = try Self.harness()
        func make(_ number: Int, isLocal: Bool) -> Bool {
            let client = UInt64(number)
            harness.connect(client, address: isLocal ? "127.0.0.1" : "2001:db8::\(number)", isLocal: isLocal)
            harness.send(client, "NICK person\(number)")
            harness.send(client, "REGISTER * * long-enough")
            let succeeded = harness.takeLines(client).contains { $0.contains(" SUCCESS ") }
            harness.disconnect(client)
            return succeeded
        }
        #expect((1...7).map { make($0, isLocal: false) } == [true, true, true, true, true, false, false])
        #expect((11...17).allSatisfy { make($0, isLocal: true) })
        harness.advance(by: .seconds(60 * 60))
        #expect(make(8, isLocal: false))
    }

    // MARK: - Failures

    enum Trouble: String, CaseIterable { case noThread, noRoom, fullBefore, fullAfter, slow }

    @Test("an account that cannot be kept is none, and its name is free again", arguments: Trouble.allCases)
    func failing(_ trouble: Trouble) throws {
        let harness = try Self.harness()
        harness.checksPasswords = false
        Self.enter(1, "ann", harness)
        harness.send(1, "REGISTER * * long-enough")
        switch trouble {
        case .noThread: harness.answerPasswordHashing(1, isDone: false)
        case .noRoom:
            harness.store.room = 0
            harness.answerPasswordHashing(1)
            harness.store.room = .max
        case .fullBefore:
            harness.store.failure = "the disk is full"
            harness.perform { _, _ in }
            harness.answerPasswordHashing(1)
        case .fullAfter:
            harness.store.commits = false
            harness.answerPasswordHashing(1)
            harness.store.failure = "the disk is full"
        case .slow:
            harness.store.commits = false
            harness.answerPasswordHashing(1)
            harness.advance(by: AccountRegistrations.timeout)
        }
        harness.perform { _, _ in }
        let answers = harness.takeLines(1).filter { $0.contains("REGISTER") }
        #expect(answers.count == 1 && answers[0].contains("FAIL REGISTER TEMPORARILY_UNAVAILABLE ann"), "\(answers)")
        harness.store.failure = nil
        harness.store.commits = true
        harness.store.commit()
        harness.advance(by: .seconds(1))
        #expect(harness.store.disk.accounts == [])
        #expect(harness.bridge.irc.registrations.count == 0)
        harness.checksPasswords = true
        #expect(!Self.logsIn(2, "ann", "long-enough", harness))
        harness.send(1, "REGISTER * * long-enough")
        #expect(harness.takeLines(1).contains { $0.contains("SUCCESS ann") })
        #expect(harness.store.disk.accounts.map(\.name) == ["ann"])
    }
}
