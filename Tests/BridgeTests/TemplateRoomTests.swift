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

@Suite("Rooms of a template")
struct TemplateRoomTests {
    /// One configured room `#lobby` of backend `main`, and a template of the same backend.
    private static func harness(
        limit: Int = 100, accounts: [AccountSettings] = [], connect: ConnectPolicy = .always,
        dialect: any Dialect = EnvelopeDialect(), listsRooms: Bool = false,
        roomDialect: any Dialect = EnvelopeDialect(),
        server: ((AccountStage.Call) -> Result<BackendCallResponse, BackendCallFailure>?)? = nil
    ) throws -> BridgeHarness {
        @Sendable func room(_ name: String) -> RoomSettings? {
            guard let url = try? HTTPURL(parsing: "ws://chat.example/ws/\(HTTPURL.percentEncoded(name))") else {
                return nil
            }
            var room = RoomSettings(
                name: name, backend: "main", dialect: roomDialect, url: url, upstreamRoom: name)
            room.ping = .zero
            room.connect = connect
            return room
        }
        let harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t", accounts: accounts,
                limits: LimitSettings {
                    $0.messagesPerSecond = nil
                    $0.templateRooms = limit
                },
                rooms: [try #require(room("lobby"))],
                backends: [
                    BackendSettings(
                        name: "main", dialect: dialect,
                        httpBase: listsRooms ? try HTTPURL(parsing: "http://chat.example") : nil)
                ],
                template: RoomTemplate(backend: "main") { name in name == "impossible" ? nil : room(name) }))
        harness.accounts.server = server
        harness.start()
        return harness
    }

    private static func enter(_ harness: BridgeHarness, _ client: UInt64) {
        harness.connect(client)
        harness.send(client, "NICK n\(client)")
        harness.send(client, "USER u 0 * :r")
        _ = harness.takeOutputs()
    }

    /// The backend answers what it was asked.
    private static func answer(
        _ harness: BridgeHarness, _ answer: Result<BackendCallResponse, BackendCallFailure>
    ) {
        for call in harness.accounts.takeCalls() {
            harness.perform { bridge, now in bridge.backendAnswered(call.id, call.order.backend, answer, now: now) }
        }
    }

    private static let noAnswer = Result<BackendCallResponse, BackendCallFailure>.failure(
        BackendCallFailure(sentence: "connection refused"))

    private static func upstream(_ harness: BridgeHarness, _ room: Int) -> [ScriptedUpstream.Event] {
        harness.takeOutputs().compactMap { if case .upstream(room, let event) = $0 { event } else { nil } }
    }

    private static let hello =
        #"{"event":"message","message_id":"m","sender_id":"s","sender_name":"Remy","body":"hello","sent_at":1795262400}"#

    // MARK: - Opening

    @Test("a joined channel opens the backend's room of that name, and messages cross it")
    func opens() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        harness.send(1, "JOIN #Attic")
        let outputs = harness.takeOutputs()
        #expect(outputs.contains(.upstream(room: 1, .detail("GET /ws/Attic"))))
        #expect(outputs.contains(.line(client: 1, Array(":n1!~u@bridge JOIN #Attic".utf8))))
        harness.sendFrame(1, Self.hello)
        #expect(harness.takeLines(1) == [":Remy!chat@main JOIN #Attic", ":Remy!chat@main PRIVMSG #Attic :hello"])
        harness.send(1, "PRIVMSG #attic :hi")
        #expect(
            Self.upstream(harness, 1).contains { if case .frame = $0 { true } else { false } })
        Self.enter(harness, 2)
        harness.send(2, "JOIN #Attic")
        #expect(harness.bridge.rooms.count == 2, "one room")
        #expect(harness.violations == [])
    }

    @Test(
        "what cannot be a room's name is refused",
        arguments: [
            "#", "#.", "#..", "#a*", "#a?b", "lobby", "&x", "#impossible", "#" + String(repeating: "x", count: 64),
        ])
    func refusedNames(_ channel: String) throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        harness.send(1, "JOIN \(channel)")
        #expect(harness.takeLines(1).map { $0.split(separator: " ")[1] } == ["403"])
        #expect(harness.bridge.rooms.count == 1)
    }

    @Test("joins that wait for the backend's list are few for each client, each channel once, and end with it")
    func waitingJoins() throws {
        let harness = try Self.harness(dialect: AccountDialect(), listsRooms: true)
        Self.enter(harness, 1)
        for _ in 0..<3 { harness.send(1, "JOIN #a,#A") }
        #expect(harness.takeLines(1) == [])
        for first in [0, 10] {
            harness.send(1, "JOIN " + (first..<first + 10).map { "#b\($0)" }.joined(separator: ","))
        }
        #expect(harness.takeLines(1).map { $0.split(separator: " ")[1...3] } == [["403", "n1", "#b19"]])
        Self.enter(harness, 2)
        harness.send(2, "JOIN #a")
        #expect(harness.takeLines(2) == [], "there is room for others")
        harness.disconnect(2)
        harness.advance(by: .seconds(10))
        #expect(harness.takeLines(1).count == 20)
        harness.send(1, "JOIN #a")
        #expect(harness.bridge.irc.directory.hasJoins)
        harness.disconnect(1)
        #expect(!harness.bridge.irc.directory.hasJoins)
        #expect(harness.violations == [])
    }

    @Test("who is in a room that the backend refuses is told each reason once, however often it is tried")
    func refusedRoom() throws {
        let harness = try Self.harness(roomDialect: StubDialect())
        Self.enter(harness, 1)
        harness.acceptsConnections = false
        harness.send(1, "JOIN #ghost")
        func notices() -> [String] {
            harness.takeLines(1).compactMap { $0.firstMatch(of: #/ NOTICE #ghost :\*\*\* (.*)/#).map { String($0.1) } }
        }
        harness.refuse(1, status: 404)
        #expect(
            notices().map { $0.contains("no link to chat.example at the moment: the server answered 404") } == [true])
        for status in [404, 500, 404, 500, 500] {
            harness.advance(by: .seconds(40))
            harness.refuse(1, status: status)
        }
        #expect(notices().map { $0.hasPrefix("chat.example cannot be reached: the server answered 500") } == [true])
        harness.advance(by: .seconds(40))
        harness.accept(1)
        #expect(notices().map { $0.hasPrefix("This room is linked to chat.example now") }.first == true)
        for _ in 0..<3 { harness.sendFrame(1, #"{"kind":"error","code":"4404","text":"no such room"}"#) }
        #expect(notices() == ["chat.example reports an error: no such room."])
        harness.sendFrame(1, #"{"kind":"error","code":"E7","text":"","ref":"of the first frame"}"#)
        #expect(notices() == ["chat.example reports an error: E7."])
        for number in 0..<9 { harness.sendFrame(1, #"{"kind":"error","code":"E","text":"reason \#(number)"}"#) }
        #expect(notices().count == 6, "eight different ones")
        harness.advance(by: .seconds(3600))
        harness.sendFrame(1, #"{"kind":"error","code":"4404","text":"no such room"}"#)
        #expect(notices().last == "chat.example reports an error: no such room.", "again after an hour")
    }

    @Test("without a template an unknown channel is none")
    func withoutTemplate() throws {
        let room = RoomSettings(
            name: "lobby", dialect: EnvelopeDialect(), url: try HTTPURL(parsing: "ws://chat.example/"))
        let harness = BridgeHarness(
            settings: BridgeSettings(serverName: "bridge", instanceID: "t", rooms: [room]))
        harness.start()
        Self.enter(harness, 1)
        harness.send(1, "JOIN #attic")
        #expect(harness.takeLines(1) == [":bridge 403 n1 #attic :No such room; LIST shows them"])
    }

    @Test("the limit is told, and an empty room gives way before it is")
    func limit() throws {
        let harness = try Self.harness(limit: 2)
        Self.enter(harness, 1)
        harness.send(1, "JOIN #a,#b")
        _ = harness.takeOutputs()
        harness.send(1, "JOIN #c")
        #expect(
            harness.takeLines(1) == [":bridge 405 n1 #c :2 rooms are open, and there may be no more; try again later"])
        harness.send(1, "PART #a")
        harness.advance(by: .seconds(1))
        harness.send(1, "JOIN #c")
        harness.advance(by: .seconds(3))
        #expect(harness.bridge.rooms.map(\.channel) == ["#lobby", "#b", "#c"])
        #expect(harness.violations == [])
    }

    @Test("an account with rooms of its own opens only these")
    func accounts() throws {
        let harness = try Self.harness(accounts: [
            AccountSettings(name: "alice", password: .unmatchable(iterations: 1), rooms: ["attic"])
        ])
        Self.enter(harness, 1)
        let session = try #require(harness.bridge.irc.sessions[ClientID(rawValue: 1)])
        session.account = harness.bridge.irc.accounts["alice"]
        harness.send(1, "JOIN #cellar")
        #expect(harness.takeLines(1) == [":bridge 403 n1 #cellar :No such room; LIST shows them"])
        harness.send(1, "JOIN #attic")
        #expect(harness.bridge.rooms.map(\.channel) == ["#lobby", "#attic"])
    }

    // MARK: - The backend's list

    private static func listed(_ harness: BridgeHarness) {
        harness.bridge.irc.roomsListed([
            BackendRoom(id: "1", name: "General Chat", topic: "All\r\nof it"), BackendRoom(id: "2", name: "lobby"),
            BackendRoom(id: "3", name: "general-chat"), BackendRoom(id: "4", name: "Attic"),
            BackendRoom(id: "", name: "Nameless"), BackendRoom(id: "", name: " \u{7} "),
        ])
    }

    @Test("names of the backend's list are found without regard to case, blanks as dashes, and by id")
    func byList() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        Self.listed(harness)
        harness.send(1, "JOIN #GENERAL-chat")
        #expect(harness.takeOutputs().contains(.upstream(room: 1, .detail("GET /ws/1"))))
        #expect(harness.bridge.rooms.last?.channel == "#general-chat")
        #expect(harness.bridge.rooms.last?.settings.topic == "Allof it")
        harness.send(1, "JOIN #1")
        #expect(harness.bridge.rooms.count == 2, "the same room")
        harness.send(1, "JOIN #3")
        #expect(harness.takeOutputs().contains(.upstream(room: 2, .detail("GET /ws/3"))), "its name was taken")
        harness.send(1, "JOIN #nameless")
        #expect(harness.takeOutputs().contains(.upstream(room: 3, .detail("GET /ws/Nameless"))))
    }

    @Test("a room that the backend does not have is refused, and one that is configured is pointed to")
    func unknownRoom() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        Self.listed(harness)
        harness.send(1, "JOIN #nowhere")
        #expect(harness.takeLines(1) == [":bridge 403 n1 #nowhere :main has no such room; LIST shows them"])
        harness.send(1, "JOIN #2")
        #expect(harness.takeLines(1) == [":bridge 403 n1 #2 :That room is #lobby here"])
    }

    @Test("LIST shows configured rooms, open ones and the backend's others, each once")
    func list() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        Self.listed(harness)
        harness.send(1, "JOIN #attic")
        _ = harness.takeOutputs()
        harness.send(1, "LIST")
        #expect(
            harness.takeLines(1) == [
                ":bridge 321 n1 Channel :Users  Name", ":bridge 322 n1 #lobby 0 :", ":bridge 322 n1 #attic 1 :",
                ":bridge 322 n1 #general-chat 0 :Allof it", ":bridge 322 n1 #3 0 :", ":bridge 322 n1 #nameless 0 :",
                ":bridge 323 n1 :End of /LIST",
            ])
        harness.send(1, "LIST #General-Chat")
        #expect(
            harness.takeLines(1) == [
                ":bridge 321 n1 Channel :Users  Name", ":bridge 322 n1 #general-chat 0 :Allof it",
                ":bridge 323 n1 :End of /LIST",
            ])
    }

    @Test("a join waits for the list of a backend that has one")
    func waitsForList() throws {
        let harness = try Self.harness(dialect: ListingDialect())
        Self.enter(harness, 1)
        Self.enter(harness, 2)
        harness.send(1, "JOIN #general-chat,#nowhere")
        harness.send(2, "JOIN #general-chat")
        harness.disconnect(2)
        #expect(harness.takeLines(1) == [])
        Self.listed(harness)
        harness.advance(by: .zero)
        harness.send(1, "PING x")
        #expect(
            harness.takeLines(1) == [
                ":n1!~u@bridge JOIN #general-chat", ":bridge 332 n1 #general-chat :Allof it",
                ":bridge 333 n1 #general-chat bridge 1795262400", ":bridge 353 n1 = #general-chat :@n1",
                ":bridge 366 n1 #general-chat :End of /NAMES list",
                ":bridge 403 n1 #nowhere :main has no such room; LIST shows them", ":bridge PONG bridge x",
            ])
        harness.advance(by: .seconds(60))
        #expect(harness.takeLines(1) == [])
    }

    @Test("a join does not wait for ever")
    func listNeverComes() throws {
        let harness = try Self.harness(dialect: ListingDialect())
        Self.enter(harness, 1)
        harness.send(1, "JOIN #attic")
        harness.advance(by: .seconds(9))
        #expect(harness.takeLines(1) == [])
        harness.advance(by: .seconds(2))
        #expect(
            harness.takeLines(1) == [
                ":bridge 403 n1 #attic :The rooms of the backend are not known yet; try again later"
            ])
        #expect(harness.bridge.rooms.count == 1)
    }

    @Test("a LIST right after the start waits for the backend's rooms, and for as long as that is asked")
    func listWaits() throws {
        let harness = try Self.harness(dialect: ListingDialect(), listsRooms: true)
        Self.enter(harness, 1)
        harness.send(1, "LIST")
        harness.send(1, "PING x")
        #expect(harness.takeLines(1) == [":bridge 321 n1 Channel :Users  Name", ":bridge 322 n1 #lobby 0 :"])
        Self.answer(harness, TokenServer.answer(200, "attic cellar"))
        #expect(
            harness.takeLines(1) == [
                ":bridge 322 n1 #attic 0 :", ":bridge 322 n1 #cellar 0 :", ":bridge 323 n1 :End of /LIST",
                ":bridge PONG bridge x",
            ])
    }

    @Test("a LIST does not wait for a backend that does not tell, or takes long", arguments: [true, false])
    func listDoesNotWait(fails: Bool) throws {
        let harness = try Self.harness(dialect: ListingDialect(), listsRooms: true)
        Self.enter(harness, 1)
        harness.send(1, "LIST")
        harness.send(1, "PING x")
        _ = harness.takeLines(1)
        if fails {
            Self.answer(harness, TokenServer.answer(404))
        } else {
            harness.advance(by: .seconds(3))
        }
        #expect(harness.takeLines(1) == [":bridge 323 n1 :End of /LIST", ":bridge PONG bridge x"])
        harness.send(1, "LIST")
        harness.advance(by: fails ? .zero : .seconds(3))
        #expect(harness.takeLines(1).last == ":bridge 323 n1 :End of /LIST")
    }

    @Test("a list that fails is asked for again, soon at first, and whoever waits has it then")
    func listFails() throws {
        var tries = 0
        let harness = try Self.harness(dialect: ListingDialect(), listsRooms: true) { _ in
            tries += 1
            return tries < 3 ? Self.noAnswer : TokenServer.answer(200, "attic")
        }
        Self.enter(harness, 1)
        harness.send(1, "JOIN #attic")
        #expect(harness.takeLines(1) == [])
        harness.advance(by: .seconds(8))
        #expect(harness.takeLines(1).first == ":n1!~u@bridge JOIN #attic")
        harness.advance(by: .seconds(600))
        #expect(tries == 3, "once it is known it is asked for when somebody wants it")
    }

    @Test("a backend that never answers is asked every minute at most")
    func listAlwaysFails() throws {
        var tries = 0
        let harness = try Self.harness(dialect: ListingDialect(), listsRooms: true) { _ in
            tries += 1
            return Self.noAnswer
        }
        harness.advance(by: .seconds(3600))
        #expect((60...70).contains(tries))
    }

    @Test("a backend that refuses to tell is asked again after 2, 4, 10, 30 and then every 60 seconds")
    func listIsRefused() throws {
        var tries: [Int] = []
        var second = 0
        let harness = try Self.harness(dialect: ListingDialect(), listsRooms: true) { _ in
            tries.append(second)
            return TokenServer.answer(404, "")
        }
        for _ in 0..<240 {
            second += 1
            harness.advance(by: .seconds(1))
        }
        #expect(tries == [0, 2, 6, 16, 46, 106, 166, 226])
    }

    @Test(
        "names become channels",
        arguments: [
            ("General", "#general"), ("a  b", "#a-b"), (" a ", "#a"), ("Ärger, viel", "#Ärger-viel"), ("", nil),
            (" , ", nil), ("x\u{0}y", "#x-y"),
            (String(repeating: "é", count: 40), "#" + String(repeating: "é", count: 31)),
        ] as [(String, String?)])
    func channels(_ name: String, _ expected: String?) {
        #expect(BackendListing.channel(name) == expected)
    }

    // MARK: - Closing

    @Test("an empty room keeps its link for a while, then says goodbye and is removed; its number is not used again")
    func closes() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        harness.send(1, "JOIN #attic")
        harness.sendFrame(1, Self.hello)
        harness.send(1, "PART #attic")
        harness.advance(by: .seconds(299))
        #expect(harness.bridge.rooms.count == 2)
        #expect(!Self.upstream(harness, 1).contains(.close(code: 1001)))
        harness.advance(by: .seconds(4))
        let events = Self.upstream(harness, 1)
        #expect(events.contains(.close(code: 1001)))
        #expect(harness.bridge.rooms.map(\.channel) == ["#lobby"])
        #expect(harness.bridge.roomTable.ofTemplate.isEmpty)
        harness.send(1, "WHOIS Remy")
        #expect(!harness.takeLines(1).contains { $0.contains("#attic") })
        harness.send(1, "JOIN #attic")
        #expect(harness.bridge.rooms.map(\.id.index) == [0, 2])
        // What comes late for the old room reaches nobody.
        harness.bridge.upstreamClosed(RoomID(index: 1), reason: "late", now: harness.clock.now)
        harness.bridge.upstreamConnected(RoomID(index: -1), now: harness.clock.now)
        #expect(harness.bridge.room(RoomID(index: 2))?.link.isUp == true)
        #expect(harness.violations == [])
    }

    @Test("what is counted of a room begins at 0 when it is opened, also again")
    func counts() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        func counted() -> Int? { harness.bridge.status(now: harness.clock.now).rooms.last?.messagesIn }
        for open in [1, 2] {
            harness.send(1, "JOIN #attic")
            #expect(harness.bridge.rooms.map(\.id.index) == [0, open])
            #expect(counted() == 0)
            harness.sendFrame(open, Self.hello)
            #expect(counted() == 1)
            harness.send(1, "PART #attic")
            harness.advance(by: .seconds(303))
        }
    }

    @Test("whoever comes back in time finds the link as it was")
    func comesBack() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        harness.send(1, "JOIN #attic")
        harness.send(1, "PART #attic")
        harness.advance(by: .seconds(200))
        harness.send(1, "JOIN #attic")
        _ = harness.takeOutputs()
        harness.advance(by: .seconds(1000))
        #expect(Self.upstream(harness, 1) == [])
        #expect(harness.bridge.rooms.count == 2)
    }

    @Test("whoever comes while the link says goodbye gets a new one")
    func comesBackLate() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        harness.send(1, "JOIN #attic")
        harness.upstreams[1].isSilent = true
        harness.send(1, "PART #attic")
        harness.advance(by: .seconds(301))
        #expect(harness.bridge.room(RoomID(index: 1))?.link.state == .closing)
        harness.send(1, "JOIN #attic")
        harness.upstreams[1].isSilent = false
        harness.advance(by: .seconds(5))
        #expect(harness.bridge.room(RoomID(index: 1))?.link.isUp == true)
        #expect(harness.violations == [])
    }

    @Test("a client that drops out leaves the room empty too")
    func clientGone() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        harness.send(1, "JOIN #attic")
        harness.disconnect(1)
        harness.advance(by: .seconds(310))
        #expect(harness.bridge.rooms.count == 1)
    }

    @Test("what was said still goes up before an empty room closes")
    func waitsForOutbox() throws {
        let harness = try Self.harness()
        harness.acceptsConnections = false
        Self.enter(harness, 1)
        harness.send(1, "JOIN #attic")
        harness.send(1, "PRIVMSG #attic :last words")
        harness.send(1, "PART #attic")
        harness.advance(by: .seconds(400))
        #expect(harness.bridge.rooms.count == 2)
        harness.echoes = true
        harness.accept(1)
        #expect(Self.upstream(harness, 1).contains { if case .frame = $0 { true } else { false } })
        harness.advance(by: .seconds(60))
        #expect(harness.bridge.rooms.count == 1)
    }

    @Test("shutting down ends rooms of the template too, whatever they are doing")
    func shutdown() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        harness.send(1, "JOIN #a,#b")
        harness.upstreams[1].isSilent = true
        harness.send(1, "PART #a")
        harness.advance(by: .seconds(301))
        harness.shutdown()
        harness.advance(by: .seconds(20))
        #expect(harness.takeOutputs().last == .stopped)
        #expect(harness.violations == [])
    }

    // MARK: - Configured rooms

    @Test("a configured room with connect = while-joined connects with the first and stays when the last has left")
    func whileJoined() throws {
        let harness = try Self.harness(connect: .whileJoined)
        #expect(Self.upstream(harness, 0) == [])
        #expect(harness.bridge.roomStates.map(\.isOnDemand) == [true])
        Self.enter(harness, 1)
        harness.send(1, "JOIN #lobby")
        #expect(Self.upstream(harness, 0).contains(.connected))
        #expect(harness.bridge.roomStates.map(\.isUp) == [true])
        harness.send(1, "PART #lobby")
        harness.advance(by: .seconds(303))
        #expect(harness.bridge.roomStates.map(\.link) == [.stopped])
        harness.send(1, "JOIN #lobby")
        harness.advance(by: .seconds(1))
        #expect(harness.bridge.roomStates.map(\.isUp) == [true])
    }
}

/// A backend that can be asked for its rooms.
private struct ListingDialect: Dialect {
    private let envelope = EnvelopeDialect()
    var traits: DialectTraits { envelope.traits }
    var calls: (any DialectCalls)? { Calls() }

    func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame {
        envelope.decode(frame, isBinary: isBinary, context: context)
    }

    func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand {
        envelope.encode(command, context: context)
    }

    private struct Calls: DialectCalls {
        func request(for call: BackendCall, context: DialectContext) -> BackendRequest? {
            call == .rooms ? BackendRequest(.get, "/rooms") : nil
        }
        func reply(to call: BackendCall, answer: BackendAnswer, context: DialectContext) -> BackendReply {
            .rooms(
                String(decoding: answer.body, as: UTF8.self).split(separator: " ").map {
                    BackendRoom(id: String($0), name: String($0))
                })
        }
        func complaint(_ answer: BackendAnswer) -> String? { nil }
    }
}
