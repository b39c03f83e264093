import Accounts
import BridgeTestSupport
import BridgeTypes
import Dialects
import Digests
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A WHO that looks through a crowd does so in portions, whatever it finds.
@Suite("Looking through a crowd")
struct WhoWalkTests {
    private static let crowd = 2000

    /// alice and bob in a room with a crowd; alice takes nothing of what is sent to her unless the test says so.
    private func stage(rooms: [String] = ["lobby"]) throws -> ActionsStage {
        let stage = try ActionsStage(
            ActionsStubDialect(says: ["message"]) { $0.tellsOfLeaves = true }, rooms: rooms)
        for room in rooms.indices {
            for number in 1...Self.crowd { stage.backend("join|from=s\(number)|name=p\(number)", room: room) }
        }
        stage.enter(1, "alice")
        stage.enter(2, "bob")
        stage.harness.advance(by: .seconds(60))
        _ = stage.happened()
        stage.harness.setSlow(1, true)
        return stage
    }

    /// Lets alice take what she was sent, turn by turn, until the answer ends. What came in each turn.
    private func turns(_ stage: ActionsStage, until end: String) -> [[String]] {
        var turns = [stage.harness.takeLines(1)]
        for _ in 0..<200 {
            if turns.contains(where: { $0.contains { $0.contains(" \(end) ") } }) { return turns }
            stage.harness.perform { bridge, now in
                bridge.clientDrained(ClientID(rawValue: 1), now: now)
                #expect(bridge.irc.walk.count <= ReplyBudget.limit + 2, "a turn looked at too many")
            }
            turns.append(stage.harness.takeLines(1))
        }
        Issue.record("the answer has no end")
        return turns
    }

    /// The nicks, in the order in which they were told.
    private func found(_ turns: [[String]]) -> [String] {
        turns.joined().filter { $0.contains(" 352 ") }.compactMap { line in
            let words = line.drop { $0 != ":" }.split(separator: " ")
            return words.count > 7 ? String(words[7]) : nil
        }
    }

    @Test(
        "every turn looks at so many people at most, and all are found once",
        arguments: [("*nobody*", []), ("p77?7*", []), ("p*77", Array(stride(from: 77, through: 1977, by: 100)))])
    func portions(_ mask: String, _ expected: [Int]) throws {
        let stage = try stage()
        stage.harness.send(1, "WHO \(mask)")
        let turns = turns(stage, until: "315")
        #expect(found(turns) == expected.map { "p\($0)" })
        #expect(turns.count > Self.crowd / ReplyBudget.limit)
    }

    @Test("somebody in several rooms is looked at in each and told once")
    func severalRooms() throws {
        let stage = try stage(rooms: ["lobby", "kitchen"])
        stage.harness.send(1, "WHO *p*42*")
        let turns = turns(stage, until: "315")
        let found = found(turns)
        #expect(Set(found).count == found.count)
        #expect(found.count == (1...Self.crowd).count { "\($0)".contains("42") })
    }

    @Test("operators of a crowd are looked for in portions too")
    func operators() throws {
        let stage = try stage()
        stage.harness.send(1, "WHO #lobby o")
        let turns = turns(stage, until: "315")
        #expect(found(turns) == [])
        #expect(turns.count > Self.crowd / ReplyBudget.limit)
    }

    @Test("what *bridge tells of a crowd is looked for in portions, and the lines are as full as ever")
    func service() throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG *bridge :who #lobby")
        var turns = [stage.harness.takeLines(1)]
        while !turns.contains(where: { $0.contains { $0.hasSuffix("2002 people in #lobby.") } }), turns.count < 200 {
            stage.harness.perform { bridge, now in
                bridge.clientDrained(ClientID(rawValue: 1), now: now)
                #expect(bridge.irc.walk.count <= ReplyBudget.limit + 2, "a turn looked at too many")
            }
            turns.append(stage.harness.takeLines(1))
        }
        // Once for the IRC users, once for the others.
        #expect(turns.count > 2 * Self.crowd / ReplyBudget.limit && turns.count < 200)
        let told = turns.joined().filter { $0.contains(":*bridge!") }
            .compactMap { line in line.firstRange(of: "alice :").map { String(line[$0.upperBound...]) } }
        #expect(told.first == "On IRC: alice, bob")
        let named = told.dropFirst().dropLast().flatMap { $0.matches(of: /p[0-9]+/).map { String($0.0) } }
        #expect(named == (1...Self.crowd).map { "p\($0)" })
        // Shorter only by the name that did not fit.
        let longest = told.map(\.utf8.count).max() ?? 0
        #expect(longest > 400 && told.dropFirst().dropLast(2).allSatisfy { $0.utf8.count > longest - 10 })
    }

    @Test("what *bridge tells of rooms that the asker may not enter is looked for in portions too")
    func closedRooms() throws {
        let stage = try ActionsStage(
            ActionsStubDialect(says: ["message"]), rooms: (1...1000).map { "room\($0)" },
            accounts: [
                AccountSettings(
                    name: "ann",
                    password: SCRAMVerifier(quickly: "a"),
                    rooms: ["room1000"])
            ])
        let harness = stage.harness
        harness.connect(1)
        for line in ["PASS ann:a", "NICK ann", "USER a 0 * :Ann"] { harness.send(1, line) }
        _ = harness.takeLines(1)
        for command in ["rooms", "status"] {
            harness.setSlow(1, true)
            harness.send(1, "PRIVMSG *bridge :\(command)")
            var turns = 0
            while harness.bridge.irc.sessions[ClientID(rawValue: 1)]?.hasLongAnswers == true, turns < 100 {
                turns += 1
                harness.perform { bridge, now in
                    bridge.clientDrained(ClientID(rawValue: 1), now: now)
                    #expect(bridge.irc.walk.count <= ReplyBudget.limit + 2, "a turn looked at too many")
                }
            }
            #expect(turns >= 3 && turns < 100, "\(command)")
            #expect(harness.takeLines(1).contains { $0.contains("#room1000: ") })
        }
    }

    @Test("what somebody says meanwhile does not wait for the end")
    func meanwhile() throws {
        let stage = try stage()
        stage.harness.send(1, "WHO *nobody*")
        #expect(stage.harness.takeLines(1) == [])
        stage.harness.send(2, "NOTICE #lobby :are you there?")
        #expect(stage.harness.takeLines(1).contains { $0.hasSuffix("NOTICE #lobby :are you there?") })
        stage.harness.setSlow(1, false)
        #expect(stage.harness.takeLines(1) == [":bridge 315 alice *nobody* :End of /WHO list"])
    }
}
