import BridgeTestSupport
import Dialects
import Testing

@testable import BridgeCore

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
                #expect(bridge.walkedCount <= Bridge.longAnswerWalk + 2, "a turn looked at too many")
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
        #expect(turns.count > Self.crowd / Bridge.longAnswerWalk)
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
        #expect(turns.count > Self.crowd / Bridge.longAnswerWalk)
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
