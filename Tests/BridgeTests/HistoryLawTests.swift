import BridgeTestSupport
import ChatModel
import Dialects
import Testing

@testable import BridgeCore

/// A room with a random past here and at the backend, and a client that leafs through it.
private final class RandomRoom {
    let stage: HistoryStage
    private var random: SeededGenerator
    private var number = 0
    /// What the client should find, in order.
    private(set) var expected: [String] = []

    init(_ place: HistoryPlace, seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        let count = place.older == .none ? 0 : Int(random.next() % 700)
        var age = Int64(count) * 1000
        var older: [(text: String, age: Int64)] = []
        for index in 0..<count {
            // Some are said in one moment.
            if random.next() % 4 > 0 { age -= Int64(random.next() % 1000) }
            older.append(("o\(index)", max(age, 0)))
        }
        stage = try HistoryStage(place, older: older)
        expected = older.map(\.text)
        stage.enter()
        for _ in 0..<(1 + Int(random.next() % 150)) { say() }
        if place.isDurable, random.next() % 2 == 0 {
            stage.restart()
            // What was said meanwhile is missing, in its place.
            let kept = stage.harness.store.disk.rooms[stage.room.storedKey]?.messages ?? []
            expected += kept.filter { $0.kind == .gap }.map(\.text)
            stage.enter()
            for _ in 0..<Int(random.next() % 20) { say() }
        }
        _ = stage.raw()
    }

    private func say() {
        number += 1
        expected.append("n\(number)")
        stage.say("n\(number)")
        if random.next() % 3 > 0 { stage.harness.advance(by: .milliseconds(1 + Int64(random.next() % 3000))) }
    }

    /// Words and ids of a page.
    private func page(_ line: String) -> [(words: String, msgid: String)] {
        stage.ask("CHATHISTORY " + line).compactMap { line in
            guard let words = HistoryStage.words(line) else { return nil }
            return (words, HistoryStage.tag("msgid", line) ?? "")
        }
    }

    private func limit() -> Int { 1 + Int(random.next() % 60) }

    /// Every page in turn, from the newest message back.
    func backwards() -> (found: [String], short: Int) {
        var limit = limit()
        var last = page("LATEST #lobby * \(limit)")
        var (found, short) = (last.map(\.words), last.count < limit ? 1 : 0)
        while let first = last.first {
            limit = self.limit()
            let end =
                random.next() % 4 == 0 ? "BETWEEN #lobby msgid=\(first.msgid) timestamp=1990-01-01T00:00:00.000Z" : nil
            last = page((end ?? "BEFORE #lobby msgid=\(first.msgid)") + " \(limit)")
            found = last.map(\.words) + found
            if last.count < limit { short += 1 }
        }
        return (found, short)
    }

    /// Every page in turn, from the oldest message on.
    func forwards() -> (found: [String], short: Int) {
        var limit = limit()
        var last = page("AFTER #lobby timestamp=1990-01-01T00:00:00.000Z \(limit)")
        var (found, short) = (last.map(\.words), last.count < limit ? 1 : 0)
        while let end = last.last {
            limit = self.limit()
            last = page("AFTER #lobby msgid=\(end.msgid) \(limit)")
            found += last.map(\.words)
            if last.count < limit { short += 1 }
        }
        return (found, short)
    }

    /// Whatever is around a message is what stands around it.
    func around() -> Bool {
        let all = page("LATEST #lobby * 500")
        guard let middle = all.randomElement(using: &random) else { return false }
        let limit = limit()
        let found = page("AROUND #lobby msgid=\(middle.msgid) \(limit)").map(\.words)
        guard let place = expected.firstIndex(of: middle.words) else { return false }
        let least = min(expected.count - place, limit - limit / 2)
        let first = place - min(place, limit - least)
        return found == Array(expected[first..<min(first + limit, expected.count)])
    }
}

@Suite("CHATHISTORY laws")
struct HistoryLawTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var place: HistoryPlace
        var seed: UInt64
        var testDescription: String { "\(place.testDescription), seed \(seed)" }
    }

    static let cases = HistoryPlace.all.flatMap { place in LawSeeds.seeds(6).map { Case(place: place, seed: $0) } }

    @Test(
        "who leafs through a room gets each message once and in order, and no page is short but at the end",
        arguments: cases)
    func leafing(_ row: Case) throws {
        let room = try RandomRoom(row.place, seed: row.seed)
        let back = room.backwards()
        #expect(back.found == room.expected, "\(row)")
        #expect(back.short <= 2, "\(row)")
        let on = room.forwards()
        #expect(on.found == room.expected, "\(row)")
        #expect(on.short <= 2, "\(row)")
        for _ in 0..<5 { #expect(room.around(), "\(row)") }
        #expect(room.stage.harness.violations == [], "\(row)")
    }
}
