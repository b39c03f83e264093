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
@testable import IRCServer
@testable import Rooms

@Suite("*bridge about rooms and links")
struct ServiceRoomTests {
    private func words(_ lines: [String]) -> [String] {
        lines.compactMap { $0.firstMatch(of: #/:\*bridge!bridge@bridge PRIVMSG \S+ :(.*)$/#).map { String($0.1) } }
    }

    @Test("it knows an account's own link, and as whom the backend sees each")
    func ownLink() throws {
        let stage = try OwnLinkStage(OwnLinkStage.silent())
        stage.enterBoth()
        func ask(_ text: String, _ client: UInt64) -> [String] {
            stage.harness.send(client, "PRIVMSG *bridge :" + text)
            return words(stage.harness.takeLines(client))
        }
        #expect(ask("whoami", 1).last == "#lobby: Alice B, yourself")
        #expect(ask("whoami", 2).last == "#lobby: chatbridge, which speaks for everybody from here")
        #expect(ask("status #lobby", 1) == ["#lobby: linked to chat.example."])
        stage.harness.acceptsConnections = false
        stage.loseOwn()
        stage.harness.send(1, "PRIVMSG #lobby :later")
        _ = stage.heard(1)
        for command in ["status", "status #lobby"] {
            let told = ask(command, 1).suffix(2)
            #expect(told.first == "#lobby: linked to chat.example.")
            #expect(told.last?.hasPrefix("#lobby: Your own link to chat.example was lost") == true)
            #expect(ask(command, 2).last == "#lobby: linked to chat.example.")
        }
        #expect(ask("seen #lobby", 1).first == "1 message of yours waits for chat.example.")
        #expect(ask("seen #lobby", 2).first?.contains("waits") == false)
    }

    private func room(_ name: String) throws -> RoomSettings {
        var room = RoomSettings(
            name: name, backend: "main", dialect: EnvelopeDialect(), url: try HTTPURL(parsing: "ws://chat.example/"),
            upstreamRoom: name)
        room.ping = .zero
        room.connect = .whileJoined
        return room
    }

    private func harness(accounts: [AccountSettings] = []) throws -> BridgeHarness {
        let lobby = try room("lobby")
        let harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t", accounts: accounts,
                limits: LimitSettings { $0.messagesPerSecond = nil }, rooms: [lobby],
                backends: [BackendSettings(name: "main", dialect: EnvelopeDialect(), httpBase: nil)],
                template: RoomTemplate(backend: "main") { name in
                    var settings = lobby
                    settings.name = name
                    settings.channel = "#" + name
                    settings.upstreamRoom = name
                    return settings
                }))
        harness.start()
        return harness
    }

    private func enter(_ harness: BridgeHarness, _ client: UInt64, _ nick: String, pass: String? = nil) {
        harness.connect(client)
        if let pass { harness.send(client, "PASS " + pass) }
        for line in ["NICK " + nick, "USER u 0 * :u"] { harness.send(client, line) }
        _ = harness.takeOutputs()
    }

    @Test("rooms that nobody has opened are listed, and links that exist while somebody is there")
    func unopened() throws {
        let password = SCRAMVerifier(quickly: "a")
        let harness = try harness(
            accounts: [
                AccountSettings(name: "ann", password: password, rooms: ["attic"]),
                AccountSettings(name: "dot", password: password, rooms: ["nowhere"]),
                AccountSettings(name: "chef", password: password, isAdmin: true),
            ])
        harness.bridge.irc.roomsListed(["lobby", "attic", "cellar"].map { BackendRoom(id: $0, name: $0) })
        func ask(_ text: String, _ client: UInt64) -> [String] {
            harness.send(client, "PRIVMSG *bridge :" + text)
            return words(harness.takeLines(client))
        }
        enter(harness, 1, "bob")
        #expect(
            ask("rooms", 1) == [
                "#lobby: nobody; linked to chat.example while somebody is there",
                "#attic: not open; whoever enters it opens it", "#cellar: not open; whoever enters it opens it",
                "3 rooms. JOIN enters one.",
            ])
        #expect(
            ask("status lobby", 1) == [
                "#lobby: not linked; the link to chat.example is there while somebody is in the room."
            ])
        enter(harness, 2, "ann", pass: "ann:a")
        #expect(ask("rooms", 2) == ["#attic: not open; whoever enters it opens it", "1 room. JOIN enters one."])
        #expect(ask("status", 2).count == 1, "of rooms that it may not enter nothing is told")
        #expect(ask("status #lobby", 2) == ask("status #nowhere", 2).map { $0.replacing("#nowhere", with: "#lobby") })
        enter(harness, 3, "dot", pass: "dot:a")
        #expect(ask("rooms", 3) == ["There is no room that you may enter."])
        harness.send(1, "JOIN #attic")
        _ = harness.takeOutputs()
        #expect(ask("rooms", 1)[1] == "#attic: 1 person, you among them; linked to chat.example")
        enter(harness, 4, "chef", pass: "chef:a")
        #expect(ask("reconnect lobby", 4) == ["#lobby has no link now: it is opened when a user enters."])
        #expect(harness.violations == [])
    }

    @Test("what a person chose of receipts holds in rooms that they enter later too")
    func receiptsLater() throws {
        let harness = try harness()
        enter(harness, 1, "bob")
        harness.send(1, "PRIVMSG *bridge :receipts off")
        harness.send(1, "JOIN #lobby")
        #expect(harness.bridge.rooms[0].locals[ClientID(rawValue: 1)]?.receipts == .off)
        harness.send(1, "PRIVMSG *bridge :receipts default")
        #expect(harness.bridge.rooms[0].locals[ClientID(rawValue: 1)]?.receipts == .marker)
        harness.disconnect(1)
        enter(harness, 1, "bob")
        harness.send(1, "JOIN #lobby")
        #expect(harness.bridge.rooms[0].locals[ClientID(rawValue: 1)]?.receipts == .marker)
    }
}
