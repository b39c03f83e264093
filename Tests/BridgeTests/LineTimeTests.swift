import BridgeTestSupport
import ChatModel
import Dialects
import IRCProtocol
import JSONText
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// What lines show as their times.
@Suite("The times that lines show")
struct LineTimeTests {
    /// Lines of a room, in milliseconds.
    struct Row: CustomTestStringConvertible, Sendable {
        var name: String
        /// When each was said, and our clock when it came.
        var lines: [(said: Int64, now: Int64)]
        var shown: [Int64]
        var testDescription: String { name }

        init(_ name: String, _ lines: [(Int64, Int64)], _ shown: [Int64]) {
            (self.name, self.lines, self.shown) = (name, lines.map { (said: $0.0, now: $0.1) }, shown)
        }
    }

    private static let day: Int64 = 86_400_000

    static let rows: [Row] = [
        Row("each later than the one before", [(1, 1), (5, 5), (9, 9)], [1, 5, 9]),
        Row("whole seconds", [(1000, 1200), (1000, 1500), (1000, 1900), (2000, 2000)], [1000, 1001, 1002, 2000]),
        Row(
            "another time comes between",
            [(1000, 1000), (1000, 1500), (1400, 1500), (1000, 1600), (1000, 1700)], [1000, 1001, 1400, 1401, 1402]),
        Row(
            "two clocks that are not one", [(5000, 5000), (4000, 5010), (5020, 5020), (4030, 5030)],
            [5000, 5001, 5020, 5021]),
        Row("a sender's clock that leads", [(200_000, 1000), (1100, 1100), (200_100, 1200)], [1000, 1100, 1200]),
        Row(
            "a clock that is slow by a little less than a minute",
            [(100_000, 100_000), (40_001, 100_001), (40_002, 100_002)], [100_000, 100_001, 100_002]),
        Row("a clock that is slow by a minute", [(100_000, 100_000), (40_000, 100_001)], [100_000, 40_000]),
        Row(
            "a slow clock that counts whole seconds",
            [(500_000, 500_000), (100_000, 500_100), (100_000, 500_200), (500_300, 500_300), (100_000, 500_400)],
            [500_000, 100_000, 100_001, 500_300, 100_002]),
        Row(
            "our clock is set forward and back",
            [(1000, 1000), (2000 + day, 2000 + day), (3000, 3000), (3000, 3000)],
            [1000, 2000 + day, 3000, 3001]),
        Row(
            "our clock is set back by less than a minute",
            [(46_000, 46_000), (1000, 46_100), (3000, 3000), (46_000, 46_000), (47_000, 47_000)],
            [46_000, 46_001, 46_002, 46_003, 47_000]),
        Row(
            "our clock is set back by more, and comes near", [(90_000, 90_000), (1000, 1000), (31_000, 31_000)],
            [90_000, 1000, 90_001]),
        Row(
            "a line of before our clock was set forward comes late, behind one of after it",
            [(5000, 5000), (9000 + day, 9000 + day), (4000, 9001 + day), (4001, 9002 + day)],
            [5000, 9000 + day, 5001, 5002]),
        Row("our clock slips a little", [(5000, 5000), (4900, 4900)], [5000, 5001]),
        Row("times that cannot be", [(.max, 1000), (.min, 1000), (1000, 1000)], [1000, .min, 1001]),
    ]

    private static func say(_ said: Int64, now: Int64, _ recent: RecentLog) -> Int64 {
        let at = recent.lineTime(ChatTimestamp(milliseconds: said), now: ChatTimestamp(milliseconds: now))
        let row = StoredMessage(
            sequence: Int64(recent.nextSequence), msgid: "m\(recent.nextSequence)", at: at, nick: "n", source: "n",
            text: "")
        recent.append(row, by: nil, nick: "n", text: "")
        return at.milliseconds
    }

    @Test("a line shows when it was said, and later than those before it", arguments: rows)
    func shown(row: Row) {
        let recent = RecentLog()
        #expect(row.lines.map { Self.say($0.said, now: $0.now, recent) } == row.shown)
    }

    @Test("more lines of one moment than are remembered are in order, and those that come too late for it too")
    func many() {
        let recent = RecentLog()
        let live = (0..<5000).map { _ in Self.say(1000, now: 1000, recent) }
        #expect(live == Array(1000..<6000))
        #expect(recent.end(wall: ChatTimestamp(milliseconds: 1000)).milliseconds == 5999)
        #expect(Self.say(600_000, now: 600_000, recent) == 600_000)
        let late = (0..<1000).map { _ in Self.say(500_000, now: 600_001, recent) }
        #expect(late == Array(500_000..<501_000))
    }

    @Test("a flood raises no line by more than a minute, and shows no time of a remembered line again")
    func flood() {
        let recent = RecentLog()
        let shown = (0..<60_500).map { _ in Self.say(1000, now: 1000, recent) - 1000 }
        #expect(shown == Array(0...60_000) + Array(0..<499))
    }

    @Test("the times of the remembered lines are those that came and did not go", arguments: LawSeeds.seeds(8))
    func remembered(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var times = ShownTimes()
        var lines: [Int64] = []
        func time() -> ChatTimestamp { ChatTimestamp(milliseconds: Int64.random(in: 0..<60, using: &random)) }
        for _ in 0..<2000 {
            let some = time()
            if lines.count < 40 {
                times.insert(some)
                lines.append(some.milliseconds)
            } else {
                times.remove(ChatTimestamp(milliseconds: lines.removeFirst()))
            }
            let asked = time()
            #expect(times.contains(asked) == lines.contains(asked.milliseconds), "seed \(seed)")
            #expect(times.latest(before: asked)?.milliseconds == lines.filter { $0 < asked.milliseconds }.max())
            #expect(times.free(from: asked).milliseconds == (asked.milliseconds...).first { !lines.contains($0) })
        }
        for line in lines { times.remove(ChatTimestamp(milliseconds: line)) }
        #expect(times.latest(before: ChatTimestamp(milliseconds: .max)) == nil)
    }

    @Test("a time that must not be shown is not", arguments: [0, 1])
    func taken(lines: Int) {
        let recent = RecentLog()
        for _ in 0..<lines { _ = Self.say(1000, now: 1000, recent) }
        let taken = ChatTimestamp(milliseconds: 1000 + Int64(lines))
        let at = recent.lineTime(ChatTimestamp(milliseconds: 1000), now: taken, but: taken)
        #expect(at.milliseconds == taken.milliseconds + 1)
    }

    @Test(
        "by their times lines are in the order of the room, whatever clocks say within a minute",
        arguments: LawSeeds.seeds(8))
    func law(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let recent = RecentLog()
        var now: Int64 = 1_000_000
        let leads = (0..<5).map { _ in Int64.random(in: -55_000...300_000, using: &random) }
        var shown: [Int64] = []
        for _ in 0..<3000 {
            now += Int64.random(in: 0...300, using: &random)
            let exact = now + leads[Int.random(in: 0..<5, using: &random)]
            let said = Bool.random(using: &random) ? exact : exact / 1000 * 1000
            let at = Self.say(said, now: now, recent)
            #expect(at >= min(said, now))
            #expect(at - min(said, now) <= 60_000)
            shown.append(at)
        }
        #expect(zip(shown, shown.dropFirst()).allSatisfy { $0 < $1 }, "seed \(seed)")
    }

    // MARK: - Over a restart

    @Test("lines go on behind those of an earlier process", arguments: [true, false])
    func restart(isFast: Bool) throws {
        let stage = try StoredStage(StoredWire.withoutHistory[1])
        stage.start()
        stage.enter("bob")
        let moment = stage.wall
        func say(_ text: String) { stage.say(text, at: moment) }
        for text in ["one", "two", "three"] { say(text) }
        stage.crash(down: isFast ? .zero : .seconds(5))
        stage.start()
        stage.enter("bob")
        for text in ["four", "five"] { say(text) }
        let times = stage.kept.filter { $0.kind == .message }.map(\.at.milliseconds)
        #expect(times.count == 5)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
    }

    // MARK: - Read markers

    private static func stage() throws -> StoredStage {
        let stage = try StoredStage(
            StoredWire.withoutHistory[0],
            {
                $0.confirmation = .receipt
                $0.readReport = .eachMessage
            })
        stage.start()
        stage.enter("eve", caps: "message-tags server-time echo-message draft/read-marker")
        return stage
    }

    /// The ids of messages that the backend is told are read.
    private static func read(_ at: Int64, _ stage: StoredStage) -> [String] {
        stage.harness.send(1, "MARKREAD #lobby timestamp=" + IRCServerTime.format(milliseconds: at))
        stage.harness.advance(by: .seconds(5))
        return stage.sent("receipt").compactMap { $0["ids"]?.array?.first?.string }
    }

    @Test("a marker reaches a line that shows an earlier time than those read before it")
    func slowClock() throws {
        let stage = try Self.stage()
        stage.say("one", from: "remy")
        stage.harness.advance(by: .seconds(5))
        func time() -> Int64 { stage.kept.last?.at.milliseconds ?? 0 }
        let first = time()
        #expect(Self.read(first, stage) == ["m1"])
        stage.senderLead = -3_600_000
        stage.say("two")
        #expect(time() < first)
        #expect(Self.read(time(), stage) == ["m2"])
        stage.say("three")
        stage.say("four")
        #expect(Self.read(time(), stage) == ["m3", "m4"])
        #expect(Self.read(first, stage) == [])
        #expect(stage.room.markers.values.map(\.at.milliseconds) == [first], "it never moves back")
    }

    @Test("a marker reaches lines that our clock dated in the future", arguments: [0, 1])
    func misdated(line: Int) throws {
        let stage = try Self.stage()
        stage.enter("bob", 2)
        stage.harness.clock.lead = .seconds(86_400)
        stage.harness.send(2, "PRIVMSG #lobby :mine")
        stage.take()
        stage.harness.clock.lead = .zero
        stage.say("one")
        stage.harness.advance(by: .seconds(5))
        let times = stage.kept.map(\.at.milliseconds)
        #expect(times.count == 2 && times[1] < times[0])
        let now = stage.wall
        #expect(Self.read(times[line], stage) == [stage.log[0].id, "m2"])
        #expect(stage.room.markers.values.map(\.sequence) == [1])
        #expect(stage.room.markers.values.allSatisfy { $0.at.milliseconds <= now }, "never into the future")
    }
}
