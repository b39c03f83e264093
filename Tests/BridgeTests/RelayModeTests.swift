import BridgeTestSupport
import ChatModel
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// `mode = "relay"`: one nick for all upstream people. What is shown live is in transcript 16-relay-mode.
@Suite("Rooms in relay mode")
struct RelayModeTests {
    @Test(
        "rows of a history have the form of live messages, before, during and after an outage",
        arguments: StoredWire.withHistory)
    func history(wire: StoredWire) throws {
        let stage = try StoredStage(wire, room: { $0.relayNick = "gateway" })
        stage.say("before")
        stage.harness.advance(by: .seconds(90))
        stage.start()
        stage.enter("bob")
        stage.say("live", from: "zoe")
        stage.loseLink(saying: ["missed"])
        stage.regainLink()
        #expect(stage.said() == ["<zoe> live", "<ann> missed"])
        #expect(
            stage.kept.filter { $0.kind == .message }.map(\.text) == ["<ann> before", "<zoe> live", "<ann> missed"])
        #expect(stage.kept.filter { $0.kind == .message }.allSatisfy { $0.nick == "gateway" })

        stage.restart(saying: ["asleep"])
        stage.enter("bob")
        stage.say("awake")
        #expect(stage.said().suffix(1) == ["<ann> awake"])
        #expect(stage.kept.filter { $0.kind == .message }.map(\.text).suffix(2) == ["<ann> asleep", "<ann> awake"])
        #expect(stage.harness.violations == [])
    }

    @Test("an edit by its author is that person's, another's is a notice, and no one joins for a reaction")
    func actions() throws {
        let wire = try #require(StoredWire.withHistory.first)
        let stage = try StoredStage(wire, room: { $0.relayNick = "gateway" })
        stage.start()
        stage.enter("bob")
        stage.say("helo")
        _ = stage.raw()
        let room = stage.room
        let (ann, zoe) = (ChatPerson(id: ChatID("u-ann"), name: "ann"), ChatPerson(id: ChatID("u-zoe"), name: "zoe"))
        stage.harness.perform { bridge, _ in
            room.editReceived(ChatEdit(id: ChatID("m1"), text: "hello", sender: ann), bridge.context)
            room.reactionReceived(
                ChatReaction(target: ChatID("m1"), emoji: "👍", operation: .add, sender: zoe), bridge.context)
        }
        #expect(stage.heard().map { "\($0.from) \($0.text)" } == ["gateway <ann> * hello"])
        #expect(stage.kept.first?.text == "<ann> hello")
        stage.harness.perform { bridge, _ in
            room.editReceived(ChatEdit(id: ChatID("m1"), text: "goodbye", sender: zoe), bridge.context)
        }
        let told = stage.heard()
        #expect(told.count == 1)
        #expect(told.first?.from == "bridge")
        #expect(told.first?.text.contains("A message of ann's") == true, "\(told)")
        #expect(room.upstreamCount == 0)
    }

    @Test("rooms of one backend share the nick, which leaves no room while another has it")
    func shared() throws {
        let stage = try BacklogStage(rooms: 2, room: { $0.relayNick = "gateway" })
        stage.connect(1, "guest", caps: "message-tags")
        stage.harness.send(1, "JOIN #lobby,#room1")
        _ = stage.raw(1)
        stage.harness.send(1, "WHOIS gateway")
        let lines = stage.raw(1)
        #expect(lines.contains { $0.hasSuffix(" 319 guest gateway :#lobby #room1") }, "\(lines)")
    }
}
