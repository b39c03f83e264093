import BridgeTestSupport
import ChatModel
import Dialects
import Identities
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Who is here")
struct PresenceTests {
    private func frames(_ stage: ActionsStage) -> [String] { stage.happened().filter { $0.hasPrefix("U") } }

    private func come(_ stage: ActionsStage, _ client: UInt64, _ nick: String) {
        stage.harness.connect(client)
        for line in ["NICK \(nick)", "USER u 0 * :r", "JOIN #lobby"] { stage.harness.send(client, line) }
    }

    // MARK: - Up

    @Test("IRC users join, are away and back, change their nick and leave upstream as well")
    func up() throws {
        let stage = try ActionsStage(ActionsStubDialect())
        come(stage, 1, "alice")
        #expect(frames(stage) == ["U0> join|from=[alice]|name=alice"])
        stage.harness.send(1, "AWAY :lunch")
        stage.harness.send(1, "AWAY :long lunch")
        stage.harness.send(1, "AWAY")
        #expect(
            frames(stage) == [
                "U0> presence|from=[alice]|name=alice|state=away", "U0> presence|from=[alice]|name=alice|state=online",
            ])
        stage.harness.send(1, "NICK carol")
        #expect(frames(stage) == ["U0> leave|from=[alice]|name=alice", "U0> join|from=[carol]|name=carol"])
        stage.harness.send(1, "PART #lobby")
        #expect(frames(stage) == ["U0> leave|from=[carol]|name=carol"])
        stage.harness.send(1, "JOIN #lobby")
        stage.harness.disconnect(1)
        #expect(frames(stage) == ["U0> join|from=[carol]|name=carol", "U0> leave|from=[carol]|name=carol"])
    }

    @Test("somebody away who joins is said to be so; after an outage everybody is told anew")
    func anew() throws {
        let stage = try ActionsStage(ActionsStubDialect())
        come(stage, 1, "alice")
        stage.harness.send(1, "AWAY :lunch")
        come(stage, 2, "bob")
        _ = stage.happened()
        stage.harness.endTransport(0, reason: "gone")
        stage.harness.send(2, "QUIT")
        come(stage, 3, "carol")
        #expect(frames(stage) == [])
        stage.harness.advance(by: .seconds(5))
        #expect(
            frames(stage) == [
                "U0> join|from=[alice]|name=alice", "U0> join|from=[carol]|name=carol",
                "U0> presence|from=[alice]|name=alice|state=away",
            ])
    }

    @Test("a wire says what it can: only presence, only joins, nothing")
    func parts() throws {
        let presence = try ActionsStage(ActionsStubDialect(says: ["message", "presence"]))
        come(presence, 1, "alice")
        presence.harness.send(1, "QUIT")
        #expect(
            frames(presence) == [
                "U0> presence|from=[alice]|name=alice|state=online",
                "U0> presence|from=[alice]|name=alice|state=offline",
            ])
        let joins = try ActionsStage(ActionsStubDialect(says: ["message", "join"]))
        come(joins, 1, "alice")
        joins.harness.send(1, "AWAY :x")
        joins.harness.send(1, "QUIT")
        #expect(frames(joins) == ["U0> join|from=[alice]|name=alice"])
        for silent in [ActionsStubDialect(says: ["message"]), ActionsStubDialect(identity: .single)] {
            let stage = try ActionsStage(silent)
            come(stage, 1, "alice")
            stage.harness.send(1, "QUIT")
            #expect(frames(stage) == [])
        }
    }

    @Test("a crowd is announced at the room's pace, behind what people say, and who is gone by then is not")
    func crowd() throws {
        let stage = try ActionsStage(ActionsStubDialect())
        for client in UInt64(1)...30 { come(stage, client, "n\(client)") }
        #expect(frames(stage).count == 10)
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        for client in UInt64(26)...30 { stage.harness.send(client, "QUIT") }
        stage.harness.advance(by: .milliseconds(250))
        #expect(frames(stage).first?.hasPrefix("U0> message|") == true)
        stage.harness.advance(by: .seconds(20))
        let rest = frames(stage)
        #expect(rest.count == 15)
        #expect(rest.allSatisfy { $0.hasPrefix("U0> join|") })
    }

    // MARK: - Down

    @Test("somebody in two rooms is away in both, told once to each room")
    func twoRooms() throws {
        let stage = try ActionsStage(ActionsStubDialect(), rooms: ["lobby", "kitchen"])
        stage.enter(1, "alice", caps: "away-notify")
        stage.harness.connect(2)
        for line in ["CAP REQ away-notify", "NICK bob", "USER u 0 * :r", "CAP END", "JOIN #kitchen"] {
            stage.harness.send(2, line)
        }
        for room in 0...1 { stage.backend("message|id=m\(room)|from=s1|name=Remy|text=x", room: room) }
        _ = stage.happened()
        for room in 0...1 { stage.backend("presence|from=s1|name=Remy|state=away", room: room) }
        #expect(
            stage.happened() == ["C1< :Remy!chat@chat.example AWAY :away", "C2< :Remy!chat@chat.example AWAY :away"])
        stage.backend("presence|from=s1|name=Remy|state=online", room: 1)
        #expect(stage.happened() == ["C1< :Remy!chat@chat.example AWAY", "C2< :Remy!chat@chat.example AWAY"])
    }

    @Test("the time of an AWAY is told where clients want times, also at the door of another room")
    func awayTimes() throws {
        let stage = try ActionsStage(ActionsStubDialect(), rooms: ["lobby", "kitchen"])
        stage.enter(1, "alice", caps: "away-notify server-time")
        stage.backend("message|id=m1|from=s1|name=Remy|text=x")
        _ = stage.happened()
        stage.backend("presence|from=s1|name=Remy|state=away")
        stage.backend("message|id=m2|from=s1|name=Remy|text=x", room: 1)
        let lines = stage.happened().filter { $0.contains(" AWAY") }
        #expect(lines.count == 2)
        #expect(lines.allSatisfy { $0.hasPrefix("C1< @time=") && $0.hasSuffix(" AWAY :away") }, "\(lines)")
    }

    @Test("the backend's topic is the room's, told when it changes, and IRC users cannot set another")
    func topic() throws {
        let stage = try ActionsStage(ActionsStubDialect())
        stage.enter(1, "alice", caps: "")
        stage.backend("topic|text=soup")
        stage.backend("topic|text=soup")
        #expect(stage.happened() == ["C1< :bridge TOPIC #lobby :soup"])
        stage.harness.send(1, "TOPIC #lobby :mine")
        #expect(stage.happened().first?.hasPrefix("C1< :bridge 482 alice #lobby :The topic of this room comes") == true)
        stage.backend("topic|text=")
        #expect(stage.happened() == ["C1< :bridge TOPIC #lobby :"])
    }

    @Test("somebody away who enters another room is away there")
    func awayEntering() throws {
        let stage = try ActionsStage(ActionsStubDialect(), rooms: ["lobby", "kitchen"])
        stage.enter(1, "alice", caps: "away-notify")
        stage.backend("presence|from=s1|name=Remy|state=offline")
        _ = stage.happened()
        stage.backend("message|id=m1|from=s1|name=Remy|text=x", room: 1)
        #expect(
            stage.happened().dropLast() == [
                "C1< :Remy!chat@chat.example JOIN #kitchen", "C1< :Remy!chat@chat.example AWAY :offline",
            ])
    }

    @Test("what the backend says of our own people makes no second ones")
    func own() throws {
        let stage = try ActionsStage(ActionsStubDialect())
        stage.enter(1, "alice", caps: "away-notify")
        stage.backend("presence|from=[alice]|name=alice|state=away")
        stage.backend("join|from=[alice]|name=alice")
        stage.backend("leave|from=[alice]|name=alice")
        #expect(stage.happened() == [])
    }

    @Test("joining again is no news; without leaves on the wire people go when they were silent")
    func repeatedJoins() throws {
        let stage = try ActionsStage(ActionsStubDialect())
        stage.enter(1, "alice")
        for _ in 1...3 { stage.backend("join|from=s1|name=Remy") }
        #expect(stage.happened() == ["C1< :Remy!chat@chat.example JOIN #lobby"])
        stage.harness.advance(by: .seconds(31 * 60))
        #expect(stage.happened() == ["C1< :Remy!chat@chat.example PART #lobby :idle"])
        stage.backend("join|from=s1|name=Remy")
        stage.backend("leave|from=s1|name=Remy")
        #expect(
            stage.happened() == [
                "C1< :Remy!chat@chat.example JOIN #lobby", "C1< :Remy!chat@chat.example PART #lobby",
            ])
    }

    // MARK: - Nicks of people who are gone

    private static let leaves = ActionsStubDialect { $0.tellsOfLeaves = true }

    /// The nick under which somebody upstream says something now.
    private func speaker(_ stage: ActionsStage, _ id: String, _ name: String) -> String? {
        let number = stage.harness.bridge.rooms[0].recent.nextSequence
        stage.backend("message|id=n\(number)|from=\(id)|name=\(name)|text=x")
        return stage.happened().last?.firstMatch(of: #/:(\S+)!\S+ PRIVMSG /#).map { String($0.1) }
    }

    @Test(
        "who comes has the nick before somebody who left long ago, and who left gets another when they return",
        arguments: [("REMY", "REMY"), ("Remy!", "Remy"), ("Rеmy", "Rеmy")])
    func givenUp(_ name: String, _ nick: String) throws {
        let stage = try ActionsStage(Self.leaves)
        stage.enter(1, "alice", caps: "")
        for line in ["join", "leave"] { stage.backend("\(line)|from=s1|name=Remy") }
        stage.harness.advance(by: IdentityMap.nickCooldown)
        _ = stage.happened()
        stage.backend("message|id=m1|from=s2|name=\(name)|text=x")
        #expect(
            stage.happened() == [
                "C1< :\(nick)!chat@chat.example JOIN #lobby", "C1< :\(nick)!chat@chat.example PRIVMSG #lobby :x",
            ])
        stage.backend("join|from=s1|name=Remy")
        #expect(stage.happened() == ["C1< :Remy2!chat@chat.example JOIN #lobby"])
        // Neither takes anything from the other, whoever speaks and whoever goes for a while.
        for _ in 0..<3 {
            #expect(speaker(stage, "s2", name) == nick)
            #expect(speaker(stage, "s1", "Remy") == "Remy2")
            stage.backend("leave|from=s2|name=\(name)")
            stage.harness.advance(by: IdentityMap.nickCooldown * 2)
            #expect(speaker(stage, "s1", "Remy") == "Remy2")
        }
    }

    struct Kept: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var tellsOfLeaves = true
        /// What happens between Remy's first words and those of the other.
        var meanwhile: @Sendable (ActionsStage) -> Void
    }

    static let notGone = [
        Kept(testDescription: "who is there, however silent") { $0.harness.advance(by: .seconds(24 * 3600)) },
        Kept(testDescription: "who is silent, where nobody tells of leaves", tellsOfLeaves: false) {
            $0.harness.advance(by: .seconds(24 * 3600))
        },
        Kept(testDescription: "who left a moment ago") {
            $0.backend("leave|from=s1|name=Remy")
            $0.harness.advance(by: IdentityMap.nickCooldown - .seconds(1))
        },
        Kept(testDescription: "who may have come back while the link was gone") {
            $0.backend("leave|from=s1|name=Remy")
            $0.harness.endTransport(0, reason: "gone")
            $0.harness.advance(by: IdentityMap.nickCooldown * 2)
        },
        Kept(testDescription: "who could not be seen any more, and never left") {
            $0.harness.acceptsConnections = false
            $0.harness.endTransport(0, reason: "gone")
            $0.harness.advance(by: IdentityMap.nickCooldown * 2)
            $0.harness.acceptsConnections = true
            $0.harness.accept(0)
        },
    ]

    @Test("nobody upstream loses a nick who is not known to be gone for long", arguments: notGone)
    func keepsNick(_ row: Kept) throws {
        let stage = try ActionsStage(ActionsStubDialect { $0.tellsOfLeaves = row.tellsOfLeaves })
        stage.enter(1, "alice", caps: "")
        #expect(speaker(stage, "s1", "Remy") == "Remy")
        row.meanwhile(stage)
        _ = stage.happened()
        #expect(speaker(stage, "s2", "REMY") == "REMY2")
        #expect(speaker(stage, "s1", "Remy") == "Remy")
    }

    @Test("where the backend vouches for ids, one of the same name is somebody else", arguments: [true, false])
    func vouched(_ authenticates: Bool) throws {
        let stage = try ActionsStage(
            ActionsStubDialect {
                $0.tellsOfLeaves = true
                $0.authenticatesSenders = authenticates
            })
        stage.enter(1, "alice", caps: "")
        for line in ["join", "leave"] { stage.backend("\(line)|from=s1|name=Remy") }
        #expect(speaker(stage, "s2", "Remy") == (authenticates ? "Remy2" : "Remy"))
    }

    @Test("what somebody said is not called somebody else's own who has their nick now")
    func reactions() throws {
        let stage = try ActionsStage(Self.leaves)
        stage.enter(1, "alice", caps: "")
        stage.backend("message|id=m1|from=s1|name=Remy|text=soup")
        stage.backend("leave|from=s1|name=Remy")
        _ = stage.happened()
        stage.backend("react|target=m1|emoji=👍|op=add|from=s2|name=Remy")
        #expect(stage.happened().last == "C1< :bridge NOTICE #lobby :*** Remy reacted with 👍 to Remy's: soup")
        stage.backend("message|id=m2|from=s2|name=Remy|text=stew")
        _ = stage.happened()
        stage.backend("react|target=m2|emoji=👍|op=add|from=s2|name=Remy")
        #expect(stage.happened().last == "C1< :bridge NOTICE #lobby :*** Remy reacted with 👍 to their own: stew")
    }
}
