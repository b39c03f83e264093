import BridgeTestSupport
import ChatModel
import JSONText
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Whatever moment the process ends at: what it said that it had is delivered once, or its author is told.
@Suite("Outbox on disk")
struct DurableOutboxTests {
    private static let texts = ["t1", "t2", "t3"]

    private enum Step {
        case say(Int)
        case commit, take, answer
    }

    /// Each message finished before the next, all in step, and all said before anything else happens.
    private static func scripts() -> [[Step]] {
        let rest: [Step] = [.commit, .commit, .take, .answer, .commit]
        let one = texts.indices.flatMap { [.say($0)] + rest }
        let together = texts.indices.map { Step.say($0) } + rest.flatMap { [Step](repeating: $0, count: texts.count) }
        let staggered: [Step] =
            [.say(0), .commit, .say(1), .commit, .take, .commit, .say(2), .take, .answer]
            + rest + rest + rest
        return [one, together, staggered]
    }

    @Test("killed at each step between accepting and confirming", arguments: DurableKind.all)
    func killed(kind: DurableKind) throws {
        for (number, script) in Self.scripts().enumerated() {
            for end in 0...script.count {
                for arrives in [false, true] {
                    let stage = try DurableStage(kind)
                    stage.harness.store.commits = false
                    let bob = stage.enter("bob")
                    for step in script[..<end] {
                        switch step {
                        case .say(let index):
                            stage.say(Self.texts[index], bob)
                            stage.ping("p\(index)", bob)
                        case .commit: stage.commit(1)
                        case .take: _ = stage.takeFrame()
                        case .answer: _ = stage.answerOne()
                        }
                    }
                    stage.look()
                    let accepted = Self.texts.indices.filter { stage.hasPong("p\($0)", bob) }.map { Self.texts[$0] }
                    let written = stage.texts + stage.wire.compactMap { $0["text"]?.string }
                    let kept = stage.everKept
                    #expect(Set(written).isSubset(of: kept), "something went up that was not on disk")
                    stage.restart(arrives: arrives, down: .seconds(3))
                    _ = stage.enter("bob")
                    stage.run()
                    // Until no history need be asked for what only a pong confirmed.
                    for _ in 0..<3 {
                        stage.advance(.seconds(61))
                        stage.run()
                    }
                    let problems = stage.problems(accepted: accepted, order: Self.texts)
                    #expect(problems == [], "\(kind), script \(number), \(end) steps, arrives: \(arrives)")
                }
            }
        }
    }

    /// Seeds that once found something. 121: whose messages came back after a crash, as somebody else's, could not have their
    /// nick again.
    private static let telling: [UInt64] = [121]

    @Test(
        "nothing is lost, doubled or swapped, whatever happens in which order", arguments: LawSeeds.seeds(60) + telling)
    func law(seed: UInt64) throws {
        let kind = DurableKind.all[Int(seed) % DurableKind.all.count]
        var random = SeededGenerator(seed: seed)
        let stage = try DurableStage(kind)
        var bob = stage.enter("bob")
        var order: [String] = []
        var open: [(token: String, text: String)] = []
        var accepted: [String] = []
        stage.harness.store.commits = false
        func look() {
            stage.look()
            for (token, text) in open where stage.hasPong(token, bob) && !accepted.contains(text) {
                accepted.append(text)
            }
        }
        for number in 0..<120 {
            switch Int.random(in: 0..<18, using: &random) {
            case 0...4:
                let text = "t\(number)"
                order.append(text)
                stage.say(text, bob)
                stage.ping("p\(number)", bob)
                open.append(("p\(number)", text))
            case 5...7: stage.commit(Int.random(in: 1...3, using: &random))
            case 8...9: _ = stage.takeFrame()
            case 10...11: _ = stage.answerOne()
            case 12: stage.advance(.milliseconds(Int.random(in: 1...9000, using: &random)))
            case 13: stage.loseLink(arrives: Bool.random(using: &random))
            case 14: stage.answerQuestions()
            case 15: stage.harness.store.refusal = Int.random(in: 0..<4, using: &random) == 0 ? "the disk is full" : nil
            case 16: stage.harness.store.room = Int.random(in: 0..<3, using: &random) == 0 ? 2 : .max
            default:
                look()
                open = []
                stage.restart(arrives: Bool.random(using: &random), commits: false, down: .seconds(2))
                bob = stage.enter("bob")
            }
            look()
        }
        stage.harness.store.commits = true
        stage.harness.store.refusal = nil
        stage.harness.store.room = .max
        stage.commit()
        for _ in 0..<4 {
            stage.advance(.seconds(31))
            stage.run()
        }
        #expect(stage.problems(accepted: accepted, order: order) == [], "\(kind), seed \(seed)")
    }
}
