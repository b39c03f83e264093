import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import IRCProtocol
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("A configuration that is read again")
struct ReloadTests {
    /// Two rooms and two accounts; alice is logged in.
    private final class Stage {
        let harness: BridgeHarness
        private(set) var settings: BridgeSettings
        /// What the backends got until the last look.
        private(set) var frames: [(room: Int, text: String)] = []

        init(connect: ConnectPolicy = .always, store: StoreStage? = nil) throws {
            settings = BridgeSettings(
                serverName: "bridge", instanceID: "t",
                rooms: [try .stub("lobby", connect: connect), try .stub("den", connect: connect)])
            settings.accounts = ["alice", "root"].map { name in
                AccountSettings(name: name, password: SCRAMVerifier(quickly: "secret"), isAdmin: name == "root")
            }
            settings.limits.messagesPerSecond = nil
            settings.limits.acceptsPerSecondPerAddress = nil
            harness = BridgeHarness(settings: settings, store: store)
            harness.start()
        }

        func enter(_ client: UInt64, _ nick: String, account: String? = nil, _ rooms: String = "#lobby,#den") {
            harness.connect(client)
            if let account { harness.send(client, "PASS \(account):secret") }
            harness.send(client, "NICK " + nick)
            harness.send(client, "USER u 0 * :r")
            harness.send(client, "JOIN " + rooms)
            _ = harness.takeOutputs()
        }

        func reload(_ reconnecting: Set<String> = [], _ change: (inout BridgeSettings) throws -> Void) throws {
            try change(&settings)
            let now = settings
            harness.perform { bridge, time in
                bridge.reload(now, reconnecting: reconnecting, backends: [], now: time)
            }
        }

        /// What clients see since the last look, as `1< line`; `1<` at its end.
        func seen() -> [String] {
            harness.takeOutputs().compactMap { output in
                switch output {
                case .line(let client, let bytes): return "\(client)< " + String(decoding: bytes, as: UTF8.self)
                case .clientClosed(let client): return "\(client)<"
                case .upstream(let room, .frame(let bytes, _)):
                    frames.append((room, String(decoding: bytes, as: UTF8.self)))
                    return nil
                default: return nil
                }
            }
        }

        func said(_ text: String, room: Int, id: String) {
            harness.sendFrame(
                room, #"{"kind":"message","id":"\#(id)","sender":{"id":"s","name":"Remy"},"text":"\#(text)"}"#)
        }
    }

    @Test("a link whose credentials were refused looks for others at once: settings do not show that a file changed")
    func looksForCredentials() throws {
        func token(_ text: String) -> Result<UpstreamCredentials, UpstreamCredentialsFailure> {
            .success(UpstreamCredentials(headers: [.init(name: "Authorization", value: "Bearer \(text)")]))
        }
        var room = try RoomSettings.stub("lobby")
        room.authenticates = true
        let settings = BridgeSettings(serverName: "bridge", instanceID: "t", rooms: [room])
        let harness = BridgeHarness(settings: settings)
        harness.acceptsConnections = false
        harness.credentials[0] = token("wrong")
        harness.start()
        for _ in 0..<2 {
            harness.refuse(0, status: 401)
            harness.advance(by: .milliseconds(1))
        }
        let status = try #require(harness.bridge.status(now: harness.clock.now).rooms.first)
        #expect(status.awaitsCredentials)
        #expect(status.retryIn.map { $0 > .seconds(800) } == true)
        func reload() {
            harness.perform { $0.reload(settings, reconnecting: [], backends: [], now: $1) }
            harness.advance(by: .milliseconds(1))
        }
        reload()
        #expect(harness.upstreams[0].connectCount == 2, "the same are not tried")
        harness.credentials[0] = token("right")
        reload()
        #expect(harness.upstreams[0].connectCount == 3)
        harness.accept(0)
        #expect(harness.bridge.roomStates[0].isUp)
        #expect(harness.bridge.status(now: harness.clock.now).rooms.first?.awaitsCredentials == false)
    }

    @Test("nothing that is the same is touched")
    func same() throws {
        let stage = try Stage()
        stage.enter(1, "alice", account: "alice")
        try stage.reload { _ in }
        #expect(stage.seen() == [])
        stage.said("hello", room: 0, id: "m1")
        #expect(stage.seen().last == "1< :Remy!chat@b PRIVMSG #lobby :hello")
    }

    @Test("a new room can be joined at once; one that is gone is parted, and its messages still go up")
    func comesAndGoes() throws {
        let stage = try Stage()
        stage.enter(1, "ann")
        stage.enter(2, "bob")
        stage.harness.send(1, "PRIVMSG #den :last words")
        _ = stage.seen()
        try stage.reload { settings in
            settings.rooms = [settings.rooms[0], try .stub("attic")]
        }
        #expect(
            stage.seen() == [
                "1< :ann!~u@bridge PART #den :This room is no longer here",
                "2< :ann!~u@bridge PART #den :This room is no longer here",
                "2< :bob!~u@bridge PART #den :This room is no longer here",
            ])
        stage.harness.send(1, "JOIN #den")
        #expect(stage.seen() == ["1< :bridge 403 ann #den :No such room; LIST shows them"])
        stage.harness.send(1, "JOIN #attic")
        #expect(stage.seen().first == "1< :ann!~u@bridge JOIN #attic")
        stage.said("up here", room: 2, id: "m1")
        #expect(stage.seen().last == "1< :Remy!chat@b PRIVMSG #attic :up here")
        // The confirmation of the last words ends the room.
        let frame = try #require(stage.frames.last { $0.room == 1 && $0.text.contains("last words") })
        stage.harness.sendFrame(1, frame.text)
        #expect(stage.harness.bridge.rooms.map(\.channel) == ["#lobby", "#attic"])
        stage.harness.send(1, "LIST")
        #expect(
            stage.seen().filter { $0.contains(" 322 ") }.map { String($0.prefix(25)) } == [
                "1< :bridge 322 ann #lobby", "1< :bridge 322 ann #attic",
            ])
    }

    @Test("a room that is gone is closed when its last message is settled, however long that takes")
    func closesAtLast() throws {
        let stage = try Stage()
        stage.enter(1, "ann")
        stage.harness.acceptsConnections = false
        stage.harness.endTransport(1, reason: "the connection was reset")
        stage.harness.send(1, "PRIVMSG #den :last words")
        try stage.reload { $0.rooms.removeLast() }
        stage.harness.advance(by: .seconds(45))
        #expect(stage.harness.bridge.rooms.count == 2)
        stage.harness.accept(1)
        #expect(stage.harness.bridge.rooms.map(\.channel) == ["#lobby"])
        #expect(stage.harness.violations == [])
    }

    @Test("the bridge's own message opens the link of an empty room, which is closed when it has gone")
    func saysIntoEmptyRoom() throws {
        let stage = try Stage(connect: .whileJoined)
        let room = try #require(stage.harness.bridge.rooms.first)
        #expect(room.link.state == .stopped)
        stage.harness.acceptsConnections = false
        stage.harness.perform { _ = $0.say("hello", in: "lobby", now: $1) }
        stage.harness.advance(by: .seconds(45))
        #expect(room.link.state != .stopped)
        stage.harness.accept(0)
        _ = stage.seen()
        #expect(stage.frames.contains { $0.room == 0 && $0.text.contains("hello") })
        #expect(room.link.state == .stopped && room.emptySince == nil)
        #expect(stage.harness.violations == [])
    }

    @Test("a room that comes back before it was closed goes on")
    func comesBack() throws {
        let stage = try Stage()
        stage.enter(1, "ann")
        stage.harness.send(1, "PRIVMSG #den :under way")
        let den = stage.settings.rooms[1]
        try stage.reload { $0.rooms.removeLast() }
        _ = stage.seen()
        try stage.reload { $0.rooms.append(den) }
        stage.harness.send(1, "JOIN #den")
        #expect(stage.seen().first == "1< :ann!~u@bridge JOIN #den")
        stage.harness.advance(by: .seconds(600))
        #expect(stage.harness.bridge.rooms.map(\.channel) == ["#lobby", "#den"])
    }

    @Test("of a room that is called otherwise, what it had to send goes once", arguments: [false, true])
    func calledOtherwise(isDurable: Bool) throws {
        let stage = try Stage(store: isDurable ? StoreStage() : nil)
        stage.enter(1, "ann")
        stage.harness.endTransport(1, reason: "the connection was reset")
        stage.harness.send(1, "PRIVMSG #den :under way")
        var attic = stage.settings.rooms[1]
        (attic.name, attic.channel) = ("attic", "#attic")
        try stage.reload { $0.rooms[1] = attic }
        #expect(stage.seen().contains("1< :ann!~u@bridge PART #den :This room is no longer here"))
        #expect(stage.harness.bridge.rooms.last?.isLoading == true, "the old one's turn is first")
        for line in ["JOIN #attic", "PRIVMSG #attic :later"] { stage.harness.send(1, line) }
        stage.harness.advance(by: .seconds(600))
        #expect(stage.seen().contains("1< :ann!~u@bridge JOIN #attic"))
        let texts = stage.frames.compactMap { frame in
            ["under way", "later"].first { frame.text.contains("\"\($0)\"") }
        }
        #expect(texts == ["under way", "later"])
        #expect(stage.harness.bridge.rooms.map(\.channel) == ["#lobby", "#attic"])
        #expect(stage.harness.violations == [])
        stage.harness.send(1, "JOIN #den")
        #expect(stage.seen().contains { $0.contains(" 403 ann #den ") })
    }

    @Test("a room that comes back as another is another", arguments: ["dialect", "upstream_room"])
    func comesBackAsAnother(key: String) throws {
        let stage = try Stage()
        stage.enter(1, "ann")
        stage.harness.endTransport(1, reason: "the connection was reset")
        stage.harness.send(1, "PRIVMSG #den :under way")
        var den = stage.settings.rooms[1]
        try stage.reload { $0.rooms.removeLast() }
        if key == "upstream_room" { den.upstreamRoom = "cave" }
        if key == "dialect" { den.dialect = StubDialect { $0.messageIDOrigin = .server } }
        try stage.reload { $0.rooms.append(den) }
        #expect(stage.harness.bridge.rooms.map(\.channel) == ["#lobby", "#den", "#den"])
        stage.harness.send(1, "JOIN #den")
        stage.harness.advance(by: .seconds(600))
        _ = stage.seen()
        #expect(stage.frames.filter { $0.text.contains("under way") }.map(\.room) == [1])
        #expect(stage.harness.bridge.rooms.map(\.id.index) == [0, 2])
        stage.said("here", room: 2, id: "x1")
        #expect(stage.seen().contains { $0.hasSuffix("PRIVMSG #den :here") })
    }

    @Test("an account does not return to a room that is gone and still sends")
    func noReturn() throws {
        let stage = try Stage()
        stage.enter(1, "alice", account: "alice")
        stage.harness.endTransport(1, reason: "the connection was reset")
        stage.harness.send(1, "PRIVMSG #den :last words")
        try stage.reload { $0.rooms.removeLast() }
        _ = stage.seen()
        stage.enter(2, "alice", account: "alice", "#lobby")
        #expect(stage.harness.bridge.rooms.map(\.locals.isEmpty) == [false, true])
        stage.harness.send(2, "WHOIS alice")
        #expect(stage.seen().filter { $0.contains(" 319 ") } == ["2< :bridge 319 alice alice @#lobby"])
    }

    @Test("a room that opens is linked once it is read, also when a user joined before")
    func linkedOnceRead() throws {
        let stage = try BacklogStage(rooms: 2)
        stage.reload(rooms: [0])
        stage.harness.advance(by: .seconds(10))
        stage.harness.store.answersQuestions = false
        stage.reload(rooms: [0, 1])
        stage.enter(1, "alice@phone", room: "#room1")
        let room = try #require(stage.harness.bridge.rooms.last)
        #expect(room.locals.isEmpty, "a JOIN waits a moment for the link")
        stage.harness.advance(by: .seconds(2))
        #expect(room.isLoading && !room.locals.isEmpty && room.link.state == .stopped)
        stage.harness.store.answersQuestions = true
        stage.harness.perform { _, _ in }
        #expect(!room.isLoading && room.link.state != .stopped)
    }

    @Test("a topic changes where it is shown; a link is opened anew under its clients")
    func changes() throws {
        let stage = try Stage()
        stage.enter(1, "ann")
        try stage.reload(["den"]) { settings in
            settings.rooms[0].topic = "soup"
            settings.rooms[1].url = try HTTPURL(parsing: "ws://elsewhere.example/den")
        }
        #expect(stage.seen().first == "1< :bridge TOPIC #lobby :soup")
        stage.harness.send(1, "PRIVMSG #den :still here")
        stage.harness.advance(by: .seconds(2))
        _ = stage.seen()
        #expect(stage.harness.bridge.rooms[1].link.isUp)
        #expect(stage.harness.bridge.rooms[1].link.settings.url.host == "elsewhere.example")
        #expect(stage.frames.contains { $0.room == 1 && $0.text.contains("still here") })
        stage.harness.send(1, "NAMES #den")
        #expect(stage.seen().contains("1< :bridge 353 ann = #den :@ann"))
    }

    @Test("accounts come, lose rooms and rights, and go")
    func accounts() throws {
        let stage = try Stage()
        stage.enter(1, "alice", account: "alice")
        stage.enter(2, "root", account: "root")
        try stage.reload { settings in
            settings.accounts[0].rooms = ["lobby"]
            settings.accounts.append(AccountSettings(name: "new", password: SCRAMVerifier(quickly: "secret")))
        }
        #expect(
            stage.seen().filter { $0.hasPrefix("1<") } == [
                "1< :alice!~u@bridge PART #den :Your account may not be here any more"
            ])
        stage.harness.connect(3)
        stage.harness.send(3, "PASS new:secret")
        stage.harness.send(3, "NICK new")
        stage.harness.send(3, "USER u 0 * :r")
        #expect(stage.seen().contains { $0.hasPrefix("3< :bridge 001 new") })
        try stage.reload { $0.accounts[1].isAdmin = false }
        #expect(
            stage.seen().contains("2< ERROR :Closing Link: 127.0.0.1 (Your account's rights have changed, reconnect)"))
        try stage.reload { $0.accounts.removeFirst() }
        #expect(stage.seen().contains("1< ERROR :Closing Link: 127.0.0.1 (Your account is no longer here)"))
        // The name is anybody's now.
        stage.harness.connect(4)
        stage.harness.send(4, "NICK alice")
        stage.harness.send(4, "USER u 0 * :r")
        #expect(stage.seen().contains { $0.hasPrefix("4< :bridge 001 alice") })
    }

    /// A check of a password takes a second on a busy machine, and a configuration may be read again meanwhile.
    @Test(
        "a log-in counts for the account as it is when it succeeds",
        arguments: [
            (.gone, "Password incorrect"), (.otherPassword, "Password incorrect"), (.fewerRooms, nil), (.noAdmin, nil),
        ] as [(Meanwhile, String?)])
    func duringCheck(_ change: Meanwhile, _ refusal: String?) throws {
        let stage = try Stage()
        stage.harness.checksPasswords = false
        stage.enter(1, "root", account: "root")
        let uploader = try #require(stage.harness.bridge.uploader("root"))
        try stage.reload { change.carryOut(&$0.accounts) }
        #expect((stage.harness.bridge.present(uploader) == nil) == (refusal != nil))
        stage.harness.answerPasswordCheck(1, .correct)
        let seen = stage.seen()
        #expect(seen.contains { $0.hasPrefix("1< :bridge 900 ") } == (refusal == nil))
        #expect(seen.contains { refusal.map($0.contains) ?? $0.hasPrefix("1< :bridge 001 root") })
        guard refusal == nil else { return }
        #expect(seen.contains { $0.contains("JOIN #lobby") })
        #expect(seen.contains { $0.contains("JOIN #den") } == (change != .fewerRooms))
        #expect(stage.harness.bridge.irc.sessions[ClientID(rawValue: 1)]?.account?.isAdmin == (change != .noAdmin))
    }

    @Test("a signature accepted after a reload proves nothing to an account that is gone", arguments: [true, false])
    func duringSCRAM(_ isGone: Bool) throws {
        let stage = try Stage()
        func answer(_ bytes: [UInt8]) -> [UInt8] {
            for chunk in IRCSASLExchange.chunks(of: bytes) { stage.harness.send(1, "AUTHENTICATE " + chunk) }
            let line = stage.harness.takeLines(1).first { $0.hasPrefix("AUTHENTICATE ") } ?? ""
            return Base64.decode(String(line.dropFirst("AUTHENTICATE ".count))) ?? []
        }
        stage.harness.connect(1)
        for line in ["CAP REQ sasl", "NICK root", "USER u 0 * :r", "AUTHENTICATE SCRAM-SHA-256"] {
            stage.harness.send(1, line)
        }
        _ = stage.harness.takeLines(1)
        var side = SCRAMClient(name: "root", password: "secret", nonce: "abcdef", header: "n,,")
        let proof = side.proof(answer(side.first))
        #expect(answer(try #require(proof)) == side.expectedSignature)
        try stage.reload { if isGone { $0.accounts.removeLast() } }
        stage.harness.send(1, "AUTHENTICATE +")
        #expect(stage.harness.takeLines(1).map { $0.split(separator: " ")[1] } == (isGone ? ["904"] : ["900", "903"]))
    }

    enum Meanwhile: Sendable {
        case gone, otherPassword, fewerRooms, noAdmin

        func carryOut(_ accounts: inout [AccountSettings]) {
            switch self {
            case .gone: accounts.removeLast()
            case .otherPassword: accounts[1].password = SCRAMVerifier(quickly: "another")
            case .fewerRooms: accounts[1].rooms = ["lobby"]
            case .noAdmin: accounts[1].isAdmin = false
            }
        }
    }

    @Test("limits hold for those who are there")
    func limits() throws {
        let stage = try Stage()
        stage.enter(1, "ann")
        try stage.reload { $0.limits.maxClients = 1 }
        stage.harness.connect(2)
        #expect(stage.seen().contains { $0.hasPrefix("2< ERROR") && $0.contains("too many clients") })
        try stage.reload { $0.limits.pingInterval = .seconds(10) }
        stage.harness.answersPings = false
        stage.harness.advance(by: .seconds(11))
        #expect(stage.seen() == ["1< PING bridge"])
    }
}
