import BridgeTestSupport
import ChatModel
import Dialects
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Whatever happens in whatever order, the room's order on disk is the backend's.
@Suite("The order over restarts, as a law")
struct RestartLawTests {
    @Test(
        "nothing is in the order twice, it is the backend's order, and what is missing lies in a gap",
        arguments: StoredWire.withHistory + StoredWire.withoutHistory + StoredWire.paged(20), LawSeeds.seeds(8))
    func law(wire: StoredWire, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let stage = try StoredStage(wire, room: { $0.ping = .seconds(4) })
        stage.start()
        stage.enter("bob")
        var spoken = 0
        // Each process draws other numbers.
        var crashes: UInt64 = 0
        /// What was said before anything of the room was on disk is the past.
        var base = 0
        func text() -> String {
            spoken += 1
            return "t\(spoken)"
        }
        func texts(_ range: ClosedRange<Int>) -> [String] {
            (0..<Int.random(in: range, using: &random)).map { _ in text() }
        }
        stage.harness.store.commits = false
        for _ in 0..<80 {
            switch Int.random(in: 0..<24, using: &random) {
            case 0..<9: stage.say(text())
            case 9..<12:
                let count = Int.random(in: 1...4, using: &random)
                stage.harness.perform { _, _ in stage.harness.store.commit(count) }
            case 12..<15: stage.harness.advance(by: .milliseconds(Int64.random(in: 1...4000, using: &random)))
            case 15, 16:
                stage.loseLink(saying: texts(0...3), for: .milliseconds(Int64.random(in: 1...5000, using: &random)))
                if Bool.random(using: &random) { stage.regainLink() }
            case 17:
                if stage.upstream.state != .open { stage.regainLink() }
            case 20, 21:
                stage.standStill(
                    saying: texts(0...3), losing: texts(0...3), isStopped: Bool.random(using: &random))
                if Bool.random(using: &random) { stage.regainLink() }
            default:
                crashes += 1
                stage.crash(saying: texts(0...3), seed: seed &* 1000 &+ crashes)
                if stage.harness.store.disk.rooms[stage.key]?.liveUntil == nil { base = stage.log.count }
                stage.start()
                stage.enter("bob")
            }
        }
        stage.regainLink()
        stage.harness.store.commits = true
        stage.harness.advance(by: .seconds(60))
        stage.say(text())
        #expect(stage.harness.violations == [])

        let rows = stage.kept
        #expect(Set(rows.map(\.msgid)).count == rows.count)
        let places = Dictionary(uniqueKeysWithValues: stage.log.enumerated().map { ($1.text, $0) })
        let order = rows.filter { $0.kind == .message }.compactMap { places[$0.text] }
        #expect(order == Array(Set(order)).sorted(), "seed \(seed)")
        var missing = Set(base..<stage.log.count).subtracting(order)
        if wire.history != .none {
            #expect(missing.isEmpty, "seed \(seed)")
            #expect(rows.allSatisfy { $0.kind == .message }, "seed \(seed)")
        }
        // By their times and by their places.
        var behind = -1
        for (index, row) in rows.enumerated() {
            guard row.kind == .gap else {
                behind = places[row.text] ?? behind
                continue
            }
            let next = rows[index...].first { $0.kind == .message }.flatMap { places[$0.text] } ?? stage.log.count
            missing = missing.filter { place in
                let at = ChatTimestamp(milliseconds: stage.log[place].at)
                return !(behind < place && place < next && row.gapFrom ?? row.at <= at && at <= row.at)
            }
        }
        #expect(missing.isEmpty, "seed \(seed): \(missing.sorted().map { stage.log[$0].text })")
    }
}
