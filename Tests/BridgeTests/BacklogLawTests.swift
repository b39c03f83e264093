import BridgeTestSupport
import BridgeTypes
import ChatModel
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Clients of an account come, go, hang and answer or not, a room talks, the disk lags, and the bridge dies now and then.
/// What a client wrote down, without what came again under the same id, is the room's order from its first JOIN on. Where
/// several programs go by its name at the same time, each of them has its own place, and it is their records together: each
/// connection's lines are in order, and what one writes behind a later line of another is no older than what was written
/// before it came.
private final class RandomReturns {
    let stage: BacklogStage
    private var random: SeededGenerator
    private var number = 0
    private var nextConnection: UInt64 = 1
    /// Connections by client.
    private var open: [(connection: UInt64, client: String)] = []
    /// What was said since each client's first JOIN, and is not lost.
    private var expected: [String: [String]] = [:]
    /// What each client wrote down: id and words, each id once.
    private var record: [String: [String]] = [:]
    private var known: [String: [String: String]] = [:]
    /// The last message that each connection wrote down.
    private var newest: [UInt64: Int] = [:]
    /// The newest message that any connection of a client wrote down.
    private var newestOfAll: [String: Int] = [:]
    /// The same when a connection came.
    private var newestBefore: [UInt64: Int] = [:]
    private var lastSaid: [String] = []
    private(set) var problems: [String] = []

    init(seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        stage = try BacklogStage(
            limits: LimitSettings {
                $0.acceptsPerSecondPerAddress = nil
                $0.messagesPerSecond = nil
                $0.upstreamMessagesPerSecond = nil
                $0.backlog = 100_000
            })
        stage.harness.answersPings = false
    }

    private func chance(_ percent: UInt64) -> Bool { random.next() % 100 < percent }

    func run(steps: Int) {
        for _ in 0..<steps { step() }
        // Everybody comes back for good.
        stage.harness.store.commits = true
        say()
        for (connection, _) in open { goAway(connection) }
        for client in expected.keys.sorted() { come(client) }
        say()
        for (connection, client) in open { write(connection, client) }
        for client in expected.keys.sorted() { check(client) }
    }

    private func step() {
        switch random.next() % 20 {
        case 0, 1, 2: if open.count < 5 { come(["phone", "desk", "tablet"][Int(random.next() % 3)]) }
        case 3, 4: if let (connection, _) = open.randomElement(using: &random) { goAway(connection) }
        case 5: stage.harness.store.commits = chance(60)
        case 6: stage.harness.store.commit(Int(random.next() % 4))
        case 7: if chance(25) { crash() }
        case 8, 9, 10: if let (connection, _) = open.randomElement(using: &random) { stage.answer(connection) }
        case 11: if chance(40) { for _ in 0..<(random.next() % 230) { say() } }
        case 12: stage.harness.advance(by: .milliseconds(Int64(random.next() % 5000)))
        case 13:
            if let (connection, _) = open.randomElement(using: &random) {
                stage.harness.setSlow(connection, chance(50))
            }
        default: say()
        }
        for (connection, client) in open { write(connection, client) }
    }

    private func say() {
        number += 1
        let words = "m\(number)"
        stage.say(words)
        for client in expected.keys { expected[client]?.append(words) }
    }

    private func come(_ client: String) {
        let connection = nextConnection
        nextConnection += 1
        stage.connect(connection, "alice@" + client, caps: BacklogStage.caps)
        if stage.session(connection)?.rooms.isEmpty ?? true { stage.harness.send(connection, "JOIN #lobby") }
        newestBefore[connection] = newestOfAll[client]
        open.append((connection, client))
        if expected[client] == nil { expected[client] = [] }
    }

    private func goAway(_ connection: UInt64) {
        if let (_, client) = open.first(where: { $0.connection == connection }) { write(connection, client) }
        open.removeAll { $0.connection == connection }
        stage.leave(connection)
    }

    /// What was said and not kept is lost with the process; whoever saw it saw it all the same.
    private func crash() {
        for (connection, client) in open { write(connection, client) }
        open = []
        let kept = Set(stage.harness.store.disk.rooms[stage.room.storedKey]?.messages.map(\.text) ?? [])
        let cursors = Set(stage.harness.store.disk.cursors.map { NumberedClientName($0.client).base })
        for client in expected.keys {
            expected[client] = expected[client]?.filter { kept.contains($0) || record[client]?.contains($0) == true }
            // Its first JOIN was not kept either; so the next one is the first.
            if !cursors.contains(client) {
                expected[client] = nil
                record[client] = nil
                known[client] = nil
                newestOfAll[client] = nil
            }
        }
        stage.crash()
        stage.harness.store.commits = true
    }

    private func write(_ connection: UInt64, _ client: String) {
        for line in stage.raw(connection) {
            guard let match = line.firstMatch(of: #/msgid=([^; ]+).* PRIVMSG #lobby :(.*)$/#) else {
                if line.contains("left out") { problems.append("something was left out") }
                continue
            }
            let (msgid, words) = (String(match.1), String(match.2))
            let order = Int(words.dropFirst()) ?? 0
            if let before = newest[connection], order <= before {
                problems.append("\(client)'s connection \(connection) wrote \(words) after m\(before)")
            }
            newest[connection] = order
            if let before = known[client]?[msgid] {
                if before != words { problems.append("\(msgid) was \(before) and is \(words)") }
                continue
            }
            if let before = newestBefore[connection], order < before {
                problems.append("\(client) wrote \(words) after m\(before), over a connection that came later")
            }
            newestOfAll[client] = max(order, newestOfAll[client] ?? 0)
            known[client, default: [:]][msgid] = words
            record[client, default: []].append(words)
        }
    }

    private func check(_ client: String) {
        // Where each connection kept the order, and each began where those before it had ended, only what was written by several
        // at the same time can be in another.
        let (wrote, said) = (record[client, default: []].sorted(), expected[client, default: []].sorted())
        if wrote != said { problems.append("\(client) wrote \(wrote), said was \(said)") }
    }
}

@Suite("Backlog laws")
struct BacklogLawTests {
    @Test("each client's record is the room's order from its first JOIN on", arguments: LawSeeds.seeds(16))
    func returns(_ seed: UInt64) throws {
        let returns = try RandomReturns(seed: seed)
        returns.run(steps: 250)
        #expect(returns.problems == [], "seed \(seed)")
        #expect(returns.stage.harness.violations == [], "seed \(seed)")
    }
}
