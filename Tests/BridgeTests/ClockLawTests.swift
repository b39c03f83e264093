import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// No clock is right: ours is set forward and back, and so are those of senders; what is said stays what it is.
@Suite("The order under wrong clocks, as a law")
struct ClockLawTests {
    /// Seconds by which clocks jump.
    private static let jumps: [Int64] = [0, 0, 45, -45, 3600, -3600, 86_400, -86_400, 90_000, -7200]

    static let wires =
        StoredWire.withHistory.filter(\.hasIDs) + [
            StoredWire(name: "ids of clients, history pushed", history: .pushed, origin: .client)
        ]

    @Test(
        "nothing is lost, shown twice or out of order, and no old message is shown again",
        arguments: wires, LawSeeds.seeds(12))
    func law(wire: StoredWire, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed &* 31)
        // Most of the log is older than what a room remembers of its first history.
        let stage = try StoredStage(wire, limit: 50, { $0.confirmation = .receipt }) {
            $0.queueMaxAge = .seconds(86_400 * 4)
        }
        var spoken = 0
        var crashes: UInt64 = 0
        func any<Value>(_ values: [Value]) -> Value { values[Int.random(in: 0..<values.count, using: &random)] }
        func setClock() { stage.harness.clock.lead = .seconds(any(Self.jumps)) }
        func text() -> String {
            spoken += 1
            // One sender in three has no clock to speak of.
            stage.senderLead = any([0, 0, any(Self.jumps)]) * 1000
            return "t\(spoken)"
        }
        func texts() -> [String] { (0..<Int.random(in: 0...3, using: &random)).map { _ in text() } }
        // Long ago.
        for _ in 0..<120 {
            stage.say(text())
            stage.harness.clock.move(to: stage.harness.clock.now.monotonic + .seconds(2))
        }
        let base = stage.log.count
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(15))
        let speaks = wire.origin == .client
        for _ in 0..<80 {
            switch Int.random(in: 0..<24, using: &random) {
            case 0..<9: stage.say(text())
            case 9..<12:
                guard speaks else { continue }
                spoken += 1
                stage.harness.send(1, "PRIVMSG #lobby :t\(spoken)")
                stage.take(tells: any([true, true, false]))
            case 12..<15: stage.harness.advance(by: .milliseconds(Int64.random(in: 1...4000, using: &random)))
            case 15..<17:
                stage.loseLink(saying: texts(), for: .milliseconds(Int64.random(in: 1...5000, using: &random)))
                if Bool.random(using: &random) { stage.regainLink() }
                stage.take()
            case 17: if stage.upstream.state != .open { stage.regainLink() }
            case 18..<22: setClock()
            default:
                if Bool.random(using: &random) { setClock() }
                crashes += 1
                stage.crash(saying: texts(), seed: seed &* 1000 &+ crashes)
                if Bool.random(using: &random) { setClock() }
                stage.start()
                stage.enter("bob")
                stage.take()
            }
        }
        // With it go the answers that were lost.
        if stage.upstream.state == .open { stage.loseLink() }
        for _ in 0..<3 {
            stage.regainLink()
            stage.harness.advance(by: .seconds(60))
            stage.take()
        }
        stage.say("last")
        #expect(stage.harness.violations == [])

        let rows = stage.kept
        #expect(Set(rows.map(\.msgid)).count == rows.count)
        let places = Dictionary(stage.log.enumerated().map { ($1.text, $0) }, uniquingKeysWith: { $1 })
        let order = rows.filter { $0.kind == .message }.compactMap { places[$0.text] }
        let old = order.prefix { $0 < base }
        #expect(order.count == Set(order).count, "seed \(seed)")
        // The first history is there once and in front; its order may be that of its times.
        #expect(order.dropFirst(old.count).allSatisfy { $0 >= base }, "seed \(seed): an old message is shown again")
        let remote = order.dropFirst(old.count).filter { stage.log[$0].sender == "ann" }
        #expect(remote == remote.sorted(), "seed \(seed)")
        let lost = Set(base..<stage.log.count).subtracting(order).sorted().map { stage.log[$0] }
        #expect(lost.isEmpty, "seed \(seed)")
        #expect(
            rows.allSatisfy { $0.kind == .message || $0.gapFrom == nil }, "seed \(seed): a gap is told that is none")
        for (index, word) in rows.enumerated() where word.kind == .gap {
            let next = rows[index...].first { $0.kind == .message }.flatMap { places[$0.text] }
            let isTrue = rows[..<index].contains { places[$0.text] ?? -1 > next ?? .max }
            #expect(isTrue, "seed \(seed): nothing in front of it is newer than what is told to come late")
        }
    }
}
