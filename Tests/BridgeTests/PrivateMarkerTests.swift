import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Read markers of private conversations")
struct PrivateMarkerTests {
    private static let caps = "draft/read-marker"

    private func stage(store: StoreStage? = nil, at clock: ManualClock = ManualClock()) throws -> BridgeHarness {
        let verifier = SCRAMVerifier(quickly: "secret")
        let room = RoomSettings(
            name: "lobby", backend: "chat.example", dialect: ActionsStubDialect(),
            url: try HTTPURL(parsing: "ws://chat.example/lobby"))
        let harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t", accounts: [AccountSettings(name: "ann", password: verifier)],
                limits: LimitSettings { $0.messagesPerSecond = nil }, rooms: [room]),
            store: store, startingAt: clock)
        harness.start()
        return harness
    }

    private func enter(_ harness: BridgeHarness, _ client: UInt64, _ nick: String, account: Bool = false) {
        harness.connect(client)
        harness.send(client, "CAP REQ :\(Self.caps)")
        if account { harness.send(client, "PASS \(nick):secret") }
        for line in ["NICK \(nick)", "USER u 0 * :r", "CAP END"] { harness.send(client, line) }
        _ = harness.takeOutputs()
    }

    private func ask(_ harness: BridgeHarness, _ client: UInt64, _ line: String) -> [String] {
        harness.send(client, line)
        return harness.takeLines(client)
    }

    private static let early = "timestamp=2026-11-21T11:00:00.000Z"
    private static let late = "timestamp=2026-11-21T11:30:00.000Z"

    @Test("what was never read has no marker, a room as little as a person")
    func none() throws {
        let harness = try stage()
        enter(harness, 1, "bob")
        for target in ["remy", "#nowhere", "#lobby"] {
            #expect(ask(harness, 1, "MARKREAD \(target)") == [":bridge MARKREAD \(target) *"])
        }
    }

    @Test("a marker moves forward only, never into the future, and whatever the case of the nick")
    func moves() throws {
        let harness = try stage()
        enter(harness, 1, "bob")
        #expect(ask(harness, 1, "MARKREAD Remy \(Self.early)") == [":bridge MARKREAD Remy \(Self.early)"])
        #expect(ask(harness, 1, "MARKREAD remy \(Self.late)") == [":bridge MARKREAD remy \(Self.late)"])
        #expect(ask(harness, 1, "MARKREAD remy \(Self.early)") == [":bridge MARKREAD remy \(Self.late)"])
        #expect(ask(harness, 1, "MARKREAD REMY") == [":bridge MARKREAD REMY \(Self.late)"])
        #expect(
            ask(harness, 1, "MARKREAD remy timestamp=2099-01-01T00:00:00.000Z") == [
                ":bridge MARKREAD remy timestamp=2026-11-21T12:00:00.000Z"
            ])
    }

    @Test("the account's other clients are told, and it outlasts client and process")
    func ofAccount() throws {
        let store = StoreStage()
        let harness = try stage(store: store)
        enter(harness, 1, "ann", account: true)
        enter(harness, 2, "ann", account: true)
        _ = ask(harness, 1, "MARKREAD remy \(Self.early)")
        harness.send(1, "MARKREAD remy \(Self.late)")
        #expect(harness.takeLines(2) == [":bridge MARKREAD remy \(Self.late)"])
        let after = try stage(store: harness.store, at: harness.clock)
        enter(after, 1, "ann", account: true)
        #expect(ask(after, 1, "MARKREAD remy") == [":bridge MARKREAD remy \(Self.late)"])
    }

    @Test("without an account a marker ends with its person, whoever has the nick next, and follows a new nick")
    func ofVisitor() throws {
        let harness = try stage()
        enter(harness, 1, "bob")
        _ = ask(harness, 1, "MARKREAD remy \(Self.early)")
        harness.send(1, "NICK robert")
        enter(harness, 2, "bob")
        #expect(ask(harness, 2, "MARKREAD remy") == [":bridge MARKREAD remy *"])
        #expect(ask(harness, 1, "MARKREAD remy").last == ":bridge MARKREAD remy \(Self.early)")
        harness.disconnect(1)
        enter(harness, 3, "robert")
        #expect(ask(harness, 3, "MARKREAD remy") == [":bridge MARKREAD remy *"])
    }

    @Test("a person has so many markers and no more, and none for what is no nick")
    func bounded() throws {
        let harness = try stage()
        enter(harness, 1, "bob")
        for number in 0..<PrivateMarkers.maxCountOfPerson { harness.send(1, "MARKREAD r\(number) \(Self.early)") }
        _ = harness.takeOutputs()
        #expect(
            ask(harness, 1, "MARKREAD other \(Self.early)") == [
                ":bridge FAIL MARKREAD INTERNAL_ERROR other :You have too many read markers"
            ])
        #expect(ask(harness, 1, "MARKREAD r0 \(Self.late)") == [":bridge MARKREAD r0 \(Self.late)"])
        #expect(
            ask(harness, 1, "MARKREAD a!b \(Self.early)") == [
                ":bridge FAIL MARKREAD INVALID_PARAMS a!b :Nobody has such a name"
            ])
    }
}
