import BridgeTestSupport
import ChatModel
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Histories of backends that give few messages at a time.
@Suite("A history, page by page")
struct HistoryPagesTests {
    private static func outage(_ wire: StoredWire, missing count: Int, limit: Int = 50) throws -> StoredStage {
        let stage = try StoredStage(wire, limit: limit)
        stage.start()
        stage.enter("bob")
        for text in ["zero", "one"] {
            stage.say(text)
            stage.harness.advance(by: .seconds(1))
        }
        _ = stage.heard()
        stage.loseLink(saying: (1...count).map { "m\($0)" }, for: .seconds(1))
        return stage
    }

    @Test(
        "what was missed is asked for until something known comes", arguments: [100, 7], [230, 100, 5])
    func pages(page: Int, count: Int) throws {
        for wire in StoredWire.paged(page) {
            let stage = try Self.outage(wire, missing: count)
            stage.regainLink()
            stage.say("last")
            let heard = stage.heard()
            #expect(heard.filter { $0.from == "ann" }.map(\.text) == (1...count).map { "m\($0)" } + ["last"], "\(wire)")
            #expect(heard.compactMap(\.gap).isEmpty, "\(wire)")
            #expect(stage.room.catchUp.gap == nil)
            #expect(stage.answerCount <= count / (page - 2) + 5, "\(wire): no more questions than pages")
        }
    }

    @Test("no more is asked for than is shown, and the rest is told")
    func bound() throws {
        for wire in StoredWire.paged(100) where !wire.givesOldest {
            let stage = try Self.outage(wire, missing: 1500)
            stage.regainLink()
            let heard = stage.heard().filter { $0.from == "ann" || $0.gap != nil }
            #expect(heard.count <= CatchUp.maxShown + 2, "\(wire)")
            #expect(heard.last?.text == "m1500")
            #expect(heard.first?.gap != nil)
            #expect(stage.answerCount <= 15)
            let gaps = stage.kept.filter { $0.kind == .gap }
            let shown = Set(heard.map(\.text))
            for lost in stage.log.dropFirst(2) where !shown.contains(lost.text) {
                let at = ChatTimestamp(milliseconds: lost.at)
                #expect(gaps.contains { $0.gapFrom ?? $0.at <= at && at <= $0.at }, "\(wire): \(lost.text)")
            }
        }
    }

    @Test("a backend that does not go by what it is asked is not asked for ever, and what is missing is told")
    func ignored() throws {
        for wire in StoredWire.paged(100) where !wire.givesOldest {
            let stage = try Self.outage(wire, missing: 230)
            stage.ignoresBefore = true
            stage.regainLink()
            let heard = stage.heard()
            #expect(heard.filter { $0.from == "ann" }.map(\.text) == (131...230).map { "m\($0)" }, "\(wire)")
            #expect(heard.filter { $0.gap != nil }.count == 1, "\(wire)")
            #expect(stage.answerCount <= 5)
        }
    }

    @Test("of a backend that gives the oldest first, the newest are shown, and the rest is told")
    func boundForward() throws {
        let oldest = StoredWire.paged(100).first { $0.givesOldest }
        let wire = try #require(oldest)
        let stage = try Self.outage(wire, missing: 1500)
        stage.regainLink()
        stage.say("last")
        let heard = stage.heard().filter { $0.from == "ann" || $0.gap != nil }
        #expect(heard.first?.gap != nil && heard.filter { $0.gap != nil }.count == 1)
        #expect(heard.dropFirst().map(\.text) == (501...1500).map { "m\($0)" } + ["last"])
        #expect(stage.answerCount <= 20)
    }

    @Test(
        "an answer that leaves out what it begins behind shows no gap where the dialect says so",
        arguments: [true, false])
    func exclusive(saysSo: Bool) throws {
        let wire = StoredWire.exclusive(100, saysSo: saysSo)
        for count in [7, 230] {
            let stage = try Self.outage(wire, missing: count)
            let before = stage.answerCount
            stage.regainLink()
            stage.say("last")
            let heard = stage.heard()
            #expect(heard.filter { $0.from == "ann" }.map(\.text) == (1...count).map { "m\($0)" } + ["last"])
            #expect(heard.compactMap(\.gap).isEmpty == saysSo)
            #expect(stage.answerCount - before <= count / 100 + (saysSo ? 2 : 4))
        }
    }

    @Test("an answer without a message behind the known one is no gap")
    func exclusiveAndEmpty() throws {
        let stage = try StoredStage(.exclusive(100, saysSo: true), limit: 50)
        stage.start()
        stage.enter("bob")
        stage.say("zero")
        stage.loseLink(for: .seconds(1))
        stage.regainLink()
        stage.say("last")
        let heard = stage.heard()
        #expect(heard.filter { $0.from == "ann" }.map(\.text) == ["zero", "last"])
        #expect(heard.compactMap(\.gap).isEmpty)
    }

    @Test(
        "a history that has but the oldest messages is none of what was missed, which is told",
        arguments: [false, true])
    func onlyOldest(isRestarted: Bool) throws {
        let stage = try StoredStage(.oldestAlone(50), limit: 50)
        for number in 1...60 { stage.say("old \(number)") }
        stage.harness.advance(by: .seconds(60))
        stage.start()
        stage.enter("bob")
        for number in 1...5 {
            stage.say("live \(number)")
            stage.harness.advance(by: .seconds(5))
        }
        if isRestarted {
            stage.restart(saying: ["missed"])
            stage.enter("bob")
        } else {
            stage.loseLink(saying: ["missed"], for: .seconds(1))
            stage.regainLink()
        }
        stage.say("last")
        #expect(stage.heard().last?.text == "last")
        #expect(stage.kept.filter { $0.kind == .gap }.count == 1)
        #expect(stage.room.historyFailure?.hasPrefix("the answer ends long before") == true)
        #expect(stage.kept.last?.text == "last")
    }

    @Test("a history that does not come in time has a reason for who asks")
    func late() throws {
        let stage = try StoredStage(.oldestAlone(50), limit: 50)
        stage.keepsSilent = true
        stage.start()
        stage.harness.advance(by: CatchUp.patience)
        #expect(stage.room.historyFailure == "it did not come in time")
    }

    /// A backend that begins with its oldest messages, and gives 50 at a time.
    private static func beforeTheFirstLink(said count: Int) throws -> StoredStage {
        let oldest = StoredWire.paged(100).first { $0.givesOldest }
        let stage = try StoredStage(try #require(oldest), limit: 50)
        stage.beginsWithOldest = true
        for number in 1...count {
            stage.say("old \(number)")
            stage.harness.advance(by: .seconds(1))
        }
        stage.harness.advance(by: .seconds(60))
        return stage
    }

    @Test("a first history that begins with the oldest is followed to its end, and none of it is missed later")
    func firstForward() throws {
        let stage = try Self.beforeTheFirstLink(said: 230)
        stage.start()
        stage.enter("bob")
        stage.say("live")
        #expect(stage.kept.map(\.text) == (181...230).map { "old \($0)" } + ["live"])
        stage.loseLink(saying: ["missed"], for: .seconds(1))
        stage.regainLink()
        let heard = stage.heard()
        #expect(heard.filter { $0.from == "ann" }.map(\.text) == ["live", "missed"])
        #expect(heard.compactMap(\.gap).isEmpty)
        #expect(stage.answerCount <= 9)
    }

    @Test(
        "of a first history that stops midway one page is taken; several lack what is newer, and would be no history",
        arguments: [(answers: 1, kept: 1...50), (2, nil)])
    func firstForwardStops(answers: Int, kept: ClosedRange<Int>?) throws {
        let stage = try Self.beforeTheFirstLink(said: 230)
        stage.answersLeft = answers
        stage.start()
        stage.enter("bob")
        stage.say("live")
        stage.harness.advance(by: .seconds(10))
        stage.answersLeft = nil
        for _ in 0..<3 {
            stage.serve()
            stage.harness.advance(by: .seconds(60))
        }
        #expect(stage.kept.map(\.text) == (kept.map { $0.map { "old \($0)" } } ?? []) + ["live"])
        stage.loseLink(saying: ["missed"], for: .seconds(1))
        stage.regainLink()
        let heard = stage.heard()
        #expect(heard.filter { $0.from == "ann" }.map(\.text) == ["live", "missed"])
        #expect(heard.compactMap(\.gap).isEmpty)
    }

    @Test("of a first history that stops midway nothing is missed later, also where nothing is said in between")
    func firstForwardStopsInSilence() throws {
        let stage = try Self.beforeTheFirstLink(said: 330)
        stage.answersLeft = 2
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(10))
        stage.answersLeft = nil
        stage.serve()
        stage.loseLink(saying: ["missed"], for: .seconds(1))
        stage.regainLink()
        let heard = stage.heard()
        #expect(heard.filter { $0.from == "ann" }.map(\.text) == ["missed"])
        #expect(heard.compactMap(\.gap).isEmpty)
    }

    @Test("a first history that begins with the oldest and is too long is left out")
    func firstForwardTooLong() throws {
        let stage = try Self.beforeTheFirstLink(said: CatchUp.maxForward + 100)
        stage.start()
        stage.enter("bob")
        stage.say("live")
        #expect(stage.kept.map(\.text) == ["live"])
        #expect(stage.heard().compactMap(\.gap).isEmpty)
    }

    @Test("a backend that does not go on is not asked for ever, and what may be missing is told")
    func stuckForward() throws {
        let oldest = StoredWire.paged(20).first { $0.givesOldest }
        let wire = try #require(oldest)
        let stage = try StoredStage(wire)
        stage.start()
        stage.enter("bob")
        stage.say("one")
        stage.loseLink(for: .seconds(1))
        // More in one moment than it gives at a time.
        for number in 1...30 { stage.say("m\(number)") }
        stage.harness.advance(by: .seconds(5))
        stage.regainLink()
        let heard = stage.heard().filter { $0.from == "ann" || $0.gap != nil }
        #expect(heard.dropLast().last?.text == "m20" && heard.last?.gap != nil)
        #expect(stage.answerCount <= 6)
        let row = try #require(stage.kept.last)
        #expect(row.gapFrom?.milliseconds ?? .max <= stage.log[25].at && stage.log[25].at <= row.at.milliseconds)
    }

    @Test("what fails midway leaves the gap open, is told, and is asked for again")
    func failure() throws {
        for wire in StoredWire.paged(100) {
            let stage = try Self.outage(wire, missing: 230)
            stage.answersLeft = 2
            stage.regainLink()
            stage.say("live")
            stage.harness.advance(by: .seconds(10))
            let early = stage.heard()
            #expect(early.contains { $0.text.contains("cannot be fetched at the moment") }, "\(wire)")
            #expect(early.filter { $0.from == "ann" }.map(\.text) == ["live"], "\(wire)")
            #expect(stage.room.catchUp.gap != nil)
            stage.answersLeft = nil
            for _ in 0..<5 {
                stage.harness.advance(by: .seconds(10))
                stage.serve()
            }
            let late = stage.heard()
            #expect(late.filter { $0.from == "ann" }.map(\.text) == (1...230).map { "m\($0)" }, "\(wire)")
            #expect(late.compactMap(\.gap).isEmpty, "\(wire)")
            #expect(stage.room.catchUp.gap == nil)
        }
    }

    @Test("a link that is lost midway begins the pages anew")
    func lostMidway() throws {
        for wire in StoredWire.paged(100) {
            let stage = try Self.outage(wire, missing: 230)
            stage.answersLeft = 2
            stage.regainLink()
            stage.loseLink(saying: ["m231"], for: .seconds(1))
            stage.answersLeft = nil
            stage.regainLink()
            for _ in 0..<5 {
                stage.harness.advance(by: .seconds(10))
                stage.serve()
            }
            let heard = stage.heard()
            #expect(heard.filter { $0.from == "ann" }.map(\.text) == (1...231).map { "m\($0)" }, "\(wire)")
            #expect(heard.compactMap(\.gap).isEmpty, "\(wire)")
        }
    }

    // MARK: - What of a page is older

    private static func message(_ id: String, _ at: Int64?) -> ChatMessage {
        ChatMessage(id: ChatID(id), text: id, at: at.map { ChatTimestamp(milliseconds: $0) })
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var name: String
        var page: [(id: String, at: Int64?)]
        var known: [(id: String, at: Int64?)]
        var older: [String]
        var testDescription: String { name }
    }

    static let rows: [Row] = [
        Row(name: "all of it", page: [("a", 1), ("b", 2)], known: [("c", 3), ("d", 4)], older: ["a", "b"]),
        Row(
            name: "but for what is known", page: [("a", 1), ("b", 2), ("c", 3)], known: [("c", 3), ("d", 4)],
            older: ["a", "b"]),
        Row(
            name: "of one moment, in another order", page: [("a", 1), ("c", 3), ("b", 3)],
            known: [("c", 3), ("d", 3)], older: ["a", "b"]),
        Row(
            name: "nothing of what came since", page: [("c", 3), ("d", 4), ("e", 5)], known: [("c", 3), ("d", 4)],
            older: []),
        Row(name: "nothing of another page", page: [("e", 5), ("f", 6)], known: [("c", 3), ("d", 4)], older: []),
        Row(
            name: "without times by what is known", page: [("a", nil), ("b", nil), ("c", nil)], known: [("c", nil)],
            older: ["a", "b"]),
        Row(name: "without times and without anything known", page: [("a", nil)], known: [("c", nil)], older: []),
        Row(name: "an empty one", page: [], known: [("c", 3)], older: []),
    ]

    @Test("of an older page counts", arguments: rows)
    func older(row: Row) {
        let page = row.page.map { Self.message($0.id, $0.at) }
        let known = row.known.map { Self.message($0.id, $0.at) }
        #expect(CatchUp.older(in: page, than: known).map(\.text) == row.older)
    }
}
