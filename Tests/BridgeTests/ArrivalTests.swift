import BridgeTestSupport
import BridgeTypes
import ChatModel
import IRCProtocol
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// gamja asks for targets as soon as it is welcome, and for what came after the newest line that it has by then.
@Suite("Clients that fetch what they missed, when they come back")
struct ArrivalTests {
    private static let caps = BacklogStage.caps + " draft/chathistory draft/read-marker labeled-response"
    private static let past = "timestamp=2026-11-21T11:00:00.000Z"

    /// Alice was in both rooms, and something was said since.
    private func stage() throws -> BacklogStage {
        let stage = try BacklogStage(rooms: 2)
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.harness.send(1, "JOIN #room1")
        stage.leave(1)
        stage.say("missed")
        stage.harness.advance(by: .seconds(1))
        stage.harness.answersPings = false
        return stage
    }

    private func targets(_ lines: [String]) -> [String] {
        lines.compactMap { $0.firstMatch(of: #/CHATHISTORY TARGETS (#\S+)/#).map { String($0.1) } }
    }

    private func joined(_ lines: [String]) -> [String] {
        lines.compactMap { $0.firstMatch(of: #/:alice!\S+ JOIN (#\S+)/#).map { String($0.1) } }
    }

    @Test("no line of a room comes before the answer to what they ask first")
    func asksFirst() throws {
        let stage = try stage()
        stage.connect(2, "alice@phone", caps: Self.caps)
        let now = "timestamp=2026-11-21T12:00:00.900Z"
        stage.say("live")
        stage.harness.send(2, "CHATHISTORY TARGETS \(Self.past) \(now) 50")
        let first = stage.raw(2)
        #expect(first.contains { $0.contains(" 001 ") })
        #expect(joined(first) == [] && !first.contains { $0.hasSuffix(":live") })
        #expect(targets(first) == ["#lobby"], "also where more was said since the client's now")
        #expect(stage.answer(2))
        #expect(joined(stage.raw(2)) == ["#lobby", "#room1"])
        stage.say("later")
        #expect(stage.heard(2) == ["ann: later"])
        stage.harness.send(2, "CHATHISTORY TARGETS \(Self.past) \(now) 50")
        #expect(targets(stage.raw(2)) == [], "from now on a bound is a bound")
    }

    @Test("who does not answer is in the rooms after three seconds, and who joins is there at once")
    func doesNotAnswer() throws {
        let stage = try stage()
        stage.connect(2, "alice@phone", caps: Self.caps)
        stage.harness.advance(by: .milliseconds(2900))
        #expect(joined(stage.raw(2)) == [])
        stage.harness.send(2, "JOIN #room1")
        #expect(joined(stage.raw(2)) == ["#room1"])
        stage.harness.advance(by: .milliseconds(100))
        #expect(joined(stage.raw(2)) == ["#lobby"])
        #expect(stage.session(2)?.rooms.count == 2)
        stage.answer(2)
        #expect(joined(stage.raw(2)) == [])
    }

    @Test("what the account's other clients enter meanwhile is entered then, too")
    func withOthers() throws {
        let stage = try stage()
        stage.connect(2, "alice@phone", caps: Self.caps)
        stage.connect(3, "alice@desk")
        #expect(joined(stage.raw(3)) == ["#lobby", "#room1"], "without history nothing is asked first")
        stage.harness.send(3, "PART #lobby")
        #expect(joined(stage.raw(2)) == [])
        #expect(stage.answer(2))
        #expect(joined(stage.raw(2)) == ["#room1"])
        stage.harness.send(3, "JOIN #lobby")
        #expect(joined(stage.raw(2)) == ["#lobby"])
        #expect(stage.harness.violations == [])
    }

    @Test("another nick of the account is known to a client that is in no room yet")
    func otherNick() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@desk")
        stage.harness.answersPings = false
        stage.connect(2, "alice@phone", caps: Self.caps)
        _ = stage.raw(2)
        stage.harness.send(1, "NICK alicia")
        #expect(stage.raw(2).contains { $0.contains(":alice!") && $0.hasSuffix(" NICK alicia") })
        #expect(stage.answer(2))
        #expect(stage.raw(2).contains { $0.contains(":alicia!") && $0.contains(" JOIN #lobby") })
    }

    @Test("for what they ask when they come they have an allowance, once")
    func allowance() throws {
        let limits = LimitSettings {
            $0.acceptsPerSecondPerAddress = nil
            $0.messagesPerSecond = 1
            $0.messagesBurst = 5
            $0.upstreamMessagesPerSecond = nil
        }
        func answered(_ stage: BacklogStage, _ client: UInt64) -> Int {
            for _ in 0..<50 { stage.harness.send(client, "TIME") }
            return stage.raw(client).filter { $0.contains(" 391 ") }.count
        }
        for (caps, atOnce) in [(Self.caps, 6...15), (BacklogStage.caps, 0...5)] {
            let stage = try BacklogStage(limits: limits)
            stage.enter(1, "alice@phone", caps: caps)
            stage.harness.advance(by: .seconds(60))
            stage.leave(1)
            stage.connect(2, "alice@phone", caps: caps)
            let first = answered(stage, 2)
            #expect(atOnce.contains(first), "\(first): \(caps)")
            stage.harness.advance(by: .seconds(100))
            _ = stage.raw(2)
            #expect(answered(stage, 2) == 5, "like everybody from then on: \(caps)")
        }
    }

    @Test("an account without rooms is asked nothing")
    func withoutRooms() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.connect(1, "bob@phone", caps: Self.caps)
        #expect(!stage.answer(1))
    }

    @Test("a client may mark as read what it sees of its own PART")
    func marksItsPart() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.harness.send(1, "PART #lobby")
        _ = stage.raw(1)
        stage.harness.send(1, "@label=m MARKREAD #lobby timestamp=2026-11-21T12:00:00.000Z")
        #expect(stage.raw(1) == ["@label=m;time=2026-11-21T12:00:00.000Z :bridge ACK"])
        stage.harness.send(1, "MARKREAD #elsewhere timestamp=2026-11-21T12:00:00.000Z")
        #expect(stage.raw(1).first?.contains("FAIL MARKREAD INVALID_PARAMS") == true)
    }
}
