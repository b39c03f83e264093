import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import Testing
import Upstream

@testable import BridgeCore
@testable import ChatBridge
@testable import Configuration
@testable import IRCServer
@testable import Rooms

/// What one person may take of the rooms that joining opens, and by which spelling a room is opened.
@Suite("Rooms of a template: shares and spellings")
struct TemplateFairnessTests {
    private static func harness(limit: Int = 100, accounts: [AccountSettings] = []) throws -> BridgeHarness {
        @Sendable func room(_ name: String) -> RoomSettings? {
            guard let url = try? HTTPURL(parsing: "ws://chat.example/\(HTTPURL.percentEncoded(name))") else {
                return nil
            }
            var room = RoomSettings(
                name: name, backend: "main", dialect: EnvelopeDialect(), url: url, upstreamRoom: name)
            room.ping = .zero
            return room
        }
        let harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t", accounts: accounts,
                limits: LimitSettings {
                    $0.messagesPerSecond = nil
                    $0.templateRooms = limit
                }, rooms: [],
                backends: [BackendSettings(name: "main", dialect: EnvelopeDialect(), httpBase: nil)],
                template: RoomTemplate(backend: "main") { room($0) }))
        harness.start()
        return harness
    }

    private static func enter(_ harness: BridgeHarness, _ client: UInt64, login: String? = nil) {
        harness.connect(client)
        if let login { harness.send(client, "PASS \(login):secret") }
        harness.send(client, "NICK n\(client)")
        harness.send(client, "USER u 0 * :r")
        _ = harness.takeOutputs()
    }

    private static func account(_ name: String, rooms: Set<String>? = nil) -> AccountSettings {
        AccountSettings(
            name: name,
            password: SCRAMVerifier(password: SecretBytes("secret".utf8), salt: Array("salt".utf8), iterations: 1),
            rooms: rooms)
    }

    private func open(_ harness: BridgeHarness) -> [String] { harness.bridge.rooms.map(\.channel) }

    // MARK: - Shares

    @Test("one person has ten rooms open, and the others have the rest")
    func share() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        Self.enter(harness, 2)
        for number in 1...10 { harness.send(1, "JOIN #a\(number)") }
        _ = harness.takeOutputs()
        harness.send(1, "JOIN #a11")
        #expect(
            harness.takeLines(1) == [
                ":bridge 405 n1 #a11 :You have opened 10 rooms that are still in use, and may not open more; leave one first"
            ])
        for number in 1...10 { harness.send(2, "JOIN #b\(number)") }
        #expect(open(harness).count == 20)
        harness.send(1, "JOIN #b1")
        #expect(
            harness.takeLines(1).first?.hasSuffix(" JOIN #b1") == true, "a room that is open is entered all the same")
        harness.send(1, "PART #a3")
        harness.send(1, "JOIN #a11")
        #expect(open(harness).contains("#a11"))
        #expect(harness.violations == [])
    }

    @Test("rooms whose links do not open count too, and all clients of an account count as one")
    func shareOfAnAccount() throws {
        let harness = try Self.harness(accounts: [Self.account("alice")])
        harness.acceptsConnections = false
        Self.enter(harness, 1, login: "alice")
        Self.enter(harness, 2, login: "alice")
        for number in 1...20 { harness.send(UInt64(number % 2 + 1), "JOIN #a\(number)") }
        // One after the other: each JOIN waits for its link.
        harness.advance(by: .seconds(60))
        #expect(open(harness).count == 10)
    }

    @Test("whoever left a room to others has it no longer")
    func handedOver() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        Self.enter(harness, 2)
        for number in 1...10 {
            harness.send(1, "JOIN #a\(number)")
            harness.send(2, "JOIN #a\(number)")
            harness.send(1, "PART #a\(number)")
        }
        harness.send(1, "JOIN #b")
        #expect(open(harness).count == 11)
    }

    // MARK: - Spellings

    @Test("a room is opened as it is written, and under another spelling refused while it is open")
    func spelling() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        Self.enter(harness, 2)
        harness.send(1, "JOIN #GENERAL")
        _ = harness.takeOutputs()
        harness.send(2, "JOIN #general")
        #expect(
            harness.takeLines(2) == [
                ":bridge 403 n2 #general :It is open as #GENERAL, which may be another room of main; JOIN that, or wait until it is empty"
            ])
        harness.send(2, "JOIN #GENERAL")
        #expect(harness.takeLines(2).first?.hasSuffix(" JOIN #GENERAL") == true)
        harness.send(1, "JOIN #general")
        #expect(
            harness.takeLines(1).allSatisfy { !$0.contains(" 403 ") }, "who is in it is in it, as IRC compares names")
    }

    @Test("a spelling in which nobody is any more gives way")
    func spellingGivesWay() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        Self.enter(harness, 2)
        harness.send(1, "JOIN #GENERAL")
        harness.send(1, "PART #GENERAL")
        harness.send(2, "JOIN #general")
        #expect(harness.takeLines(2).first?.contains(" 403 ") == true)
        harness.advance(by: .seconds(10))
        harness.send(2, "JOIN #general")
        #expect(open(harness) == ["#general"])
        #expect(harness.bridge.rooms.first?.settings.upstreamRoom == "general")
    }

    @Test("an account that is limited to a room opens it by its exact name alone, and enters no other spelling of it")
    func limitedAccount() throws {
        let harness = try Self.harness(accounts: [Self.account("alice", rooms: ["general"])])
        Self.enter(harness, 1, login: "alice")
        Self.enter(harness, 2)
        harness.send(1, "JOIN #General")
        #expect(harness.takeLines(1) == [":bridge 403 n1 #General :No such room; LIST shows them"])
        harness.send(2, "JOIN #GENERAL")
        harness.send(1, "JOIN #general")
        harness.send(1, "JOIN #GENERAL")
        #expect(harness.takeLines(1).allSatisfy { $0.contains(" 403 ") })
        harness.send(2, "PART #GENERAL")
        harness.advance(by: .seconds(400))
        harness.send(1, "JOIN #general")
        #expect(harness.takeLines(1).first?.hasSuffix(" JOIN #general") == true)
    }

    // MARK: - Addresses

    @Test(
        "a name that would climb in the WebSocket's address is none",
        arguments: [
            ("..%2Fadmin", false), ("..%2fadmin", false), ("..", false), ("x%2f..", false), ("..\\admin", false),
            ("%2e%2e", false), ("a/../b", false), ("%252e%252e%252fadmin", false), ("attic", true), ("a..b", true),
            ("100%", true), ("a/b", true),
        ])
    func climbing(_ name: String, _ isOne: Bool) throws {
        let configuration = try load(
            """
            [backends.main]
            dialect = "typed"
            url = "ws://127.0.0.1:8080/rooms/{room}?as=bridge"
            [[rooms]]
            name = "*"
            backend = "main"
            """)
        let settings = try BridgeSettings(configuration, instanceID: "t")
        #expect((try #require(settings.template).settings(name) != nil) == isOne)
    }

    @Test("nor is it one in the configuration", arguments: ["..%2Fadmin", "a/../b", "..", "."])
    func climbingConfiguration(_ name: String) {
        let text =
            """
            [[rooms]]
            name = "lobby"
            dialect = "typed"
            url = "ws://127.0.0.1:8080/rooms/{room}"
            upstream_room = "\(name)"
            """
        #expect(problems(text) == ["chatbridge.toml:5:17: a room upstream cannot be called \"\(name)\""])
    }
}
