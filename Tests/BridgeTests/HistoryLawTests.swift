import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A room with a random past here and at the backend, and a client that leafs through it.
private final class RandomRoom {
    let stage: HistoryStage
    private var random: SeededGenerator
    private var number = 0
    /// What the client should find, in order.
    private(set) var expected: [String] = []

    /// Clocks are wrong, and no two messages bear one time.
    private let hasWrongClocks: Bool
    private var times: Set<Int64> = []
    private var wrongAtFirst = 0

    init(_ place: HistoryPlace, seed: UInt64, hasWrongClocks: Bool = false) throws {
        random = SeededGenerator(seed: seed)
        self.hasWrongClocks = hasWrongClocks
        let count = place.older == .none ? 0 : Int(random.next() % 700)
        var age = Int64(count) * 1000
        var older: [(text: String, age: Int64)] = []
        for index in 0..<count {
            // Some are said in one moment.
            if random.next() % 4 > 0 || hasWrongClocks { age -= 1 + Int64(random.next() % 999) }
            older.append(("o\(index)", max(age, 0)))
        }
        stage = try HistoryStage(place, older: older)
        times = Set(stage.log.map(\.at))
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
        guard !hasWrongClocks else { return sayByWrongClock() }
        stage.say("n\(number)")
        if random.next() % 3 > 0 { stage.harness.advance(by: .milliseconds(1 + Int64(random.next() % 3000))) }
    }

    private func sayByWrongClock() {
        // Nothing that is missing is told of at this moment.
        stage.harness.advance(by: .milliseconds(1 + Int64(random.next() % 3000)))
        let wall = stage.harness.clock.now.wall.milliseconds
        // What is further ahead is shown as said now.
        var clock: Int64 = [0, 0, -3_600_000, 200_000, 90_000_000].randomElement(using: &random) ?? 0
        if clock < 0 { clock += Int64(random.next() % 3_600_000) }
        // Where the backend is asked for what is older by a time, most clocks of those who spoke first must be right.
        if number <= 15 {
            if clock < 0, wrongAtFirst == 7 { clock = 0 }
            if clock < 0 { wrongAtFirst += 1 }
        }
        while !times.insert(wall + (clock > 300_000 ? 0 : clock)).inserted { clock -= 1 }
        stage.say("n\(number)", clock: clock)
    }

    /// Words, ids and times of a page.
    private func page(_ line: String) -> [(words: String, msgid: String, time: String)] {
        stage.ask("CHATHISTORY " + line).compactMap { line in
            guard let words = HistoryStage.words(line) else { return nil }
            return (words, HistoryStage.tag("msgid", line) ?? "", HistoryStage.tag("time", line) ?? "")
        }
    }

    /// Every page in turn by the times of messages, from the newest one back.
    func backwardsByTime() -> [String] {
        var last = page("LATEST #lobby * \(limit())")
        var found = last.map(\.words)
        while let first = last.first, found.count <= expected.count {
            let at = "timestamp=" + first.time
            let isBetween = random.next() % 4 == 0
            last = page(
                isBetween
                    ? "BETWEEN #lobby \(at) timestamp=1990-01-01T00:00:00.000Z \(limit())"
                    : "BEFORE #lobby \(at) \(limit())")
            found = last.map(\.words) + found
        }
        return found
    }

    /// Every page in turn by the times of messages, from the oldest one on.
    func forwardsByTime() -> [String] {
        var last = page("AFTER #lobby timestamp=1990-01-01T00:00:00.000Z \(limit())")
        var found = last.map(\.words)
        while let end = last.last, found.count <= expected.count {
            let at = "timestamp=" + end.time
            let isBetween = random.next() % 4 == 0
            last = page(
                isBetween
                    ? "BETWEEN #lobby \(at) timestamp=2090-01-01T00:00:00.000Z \(limit())"
                    : "AFTER #lobby \(at) \(limit())")
            found += last.map(\.words)
        }
        return found
    }

    /// A line, a screen, a page as clients ask for it, and the most that there is.
    private func limit() -> Int {
        [1, 2, 1 + Int(random.next() % 60), 100, 500].randomElement(using: &random) ?? 1
    }

    private struct Walk {
        /// Words and ids, oldest first.
        var found: [(words: String, msgid: String)] = []
        /// Pages that were not full though there was more.
        var shortPages: [String] = []
        private var last: String?

        /// - Returns: there may be more.
        mutating func add(_ page: [(words: String, msgid: String, time: String)], limit: Int, isOlder: Bool) -> Bool {
            // What came before it was no last page.
            if !page.isEmpty, let last { shortPages.append(last) }
            last = page.count < limit ? "\(page.count) of \(limit)" : nil
            let rows = page.map { (words: $0.words, msgid: $0.msgid) }
            found = isOlder ? rows + found : found + rows
            return !page.isEmpty
        }
    }

    /// The whole room by pages of all sizes, from the newest message back or from the oldest one on, told how by a client that
    /// knows ids.
    func walk(back: Bool) -> (found: [(words: String, msgid: String)], shortPages: [String]) {
        var walk = Walk()
        var line = back ? "LATEST #lobby *" : "AFTER #lobby timestamp=1990-01-01T00:00:00.000Z"
        var limit = limit()
        while walk.add(page(line + " \(limit)"), limit: limit, isOlder: back), walk.found.count <= expected.count {
            let isBetween = random.next() % 4 == 0
            let end = "msgid=" + ((back ? walk.found.first : walk.found.last)?.msgid ?? "")
            line =
                back
                ? isBetween
                    ? "BETWEEN #lobby \(end) timestamp=1990-01-01T00:00:00.000Z" : "BEFORE #lobby \(end)"
                : isBetween
                    ? "BETWEEN #lobby \(end) timestamp=2090-01-01T00:00:00.000Z" : "AFTER #lobby \(end)"
            limit = self.limit()
        }
        return (walk.found, walk.shortPages)
    }

    /// Asks for what is around a message, and gives that beside what stands around it.
    func around(_ middle: (words: String, msgid: String)) -> (found: [String], expected: [String]) {
        let limit = limit()
        let found = page("AROUND #lobby msgid=\(middle.msgid) \(limit)").map(\.words)
        guard let place = expected.firstIndex(of: middle.words) else { return (found, []) }
        let least = min(expected.count - place, limit - limit / 2)
        let first = place - min(place, limit - least)
        return (found, Array(expected[first..<min(first + limit, expected.count)]))
    }

    /// Some of the room's messages, whatever their place.
    func some(_ count: Int, of found: [(words: String, msgid: String)]) -> [(words: String, msgid: String)] {
        (0..<count).compactMap { _ in found.randomElement(using: &random) }
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
        let back = room.walk(back: true)
        #expect(back.found.map(\.words) == room.expected, "\(row)")
        #expect(back.shortPages == [], "\(row)")
        let on = room.walk(back: false)
        #expect(on.found.map(\.words) == room.expected, "\(row)")
        #expect(on.found.map(\.msgid) == back.found.map(\.msgid), "\(row)")
        #expect(on.shortPages == [], "\(row)")
        for middle in room.some(5, of: back.found) {
            let (found, expected) = room.around(middle)
            #expect(found == expected, "\(row), around \(middle.words)")
        }
        #expect(room.stage.harness.violations == [], "\(row)")
    }

    @Test(
        "who leafs by the times of messages gets each message once and in order too, whatever clocks say, where no two bear one",
        arguments: cases)
    func leafingByTime(_ row: Case) throws {
        let room = try RandomRoom(row.place, seed: row.seed, hasWrongClocks: true)
        #expect(room.backwardsByTime() == room.expected, "\(row)")
        #expect(room.forwardsByTime() == room.expected, "\(row)")
        #expect(room.stage.harness.violations == [], "\(row)")
    }

    @Test(
        "who leafs by the times of messages gets each message once and in order also where several bear the same",
        arguments: cases)
    func leafingBySameTimes(_ row: Case) throws {
        let room = try RandomRoom(row.place, seed: row.seed)
        #expect(room.backwardsByTime() == room.expected, "\(row)")
        #expect(room.forwardsByTime() == room.expected, "\(row)")
        #expect(room.stage.harness.violations == [], "\(row)")
    }

    /// All pages that somebody gets who goes on from the end of each by its time.
    ///
    /// - Parameter isRemembered: the pages are told to one client, one after the other.
    private func leaf(
        _ rows: [StoredMessage], limit: Int, isForwards: Bool, isRemembered: Bool
    ) -> (found: [Int64], pages: Int) {
        var (found, ends): ([Int64], PageBoundaries?) = ([], nil)
        func page(_ end: Int64?) -> [Int64] {
            let at = end.map { StoredReference.time(rows[Int($0)].at) }
            let asked: StoredPageQuery.Selection =
                isForwards ? .oldest(after: at ?? .beginning) : .newest(after: nil, before: at)
            let page = StoredPlaces(StoredPageQuery(ends?.goingOn(asked) ?? asked, limit: limit), of: rows).sequences
            if isRemembered {
                ends = PageBoundaries()
                for place in page { ends?.told(rows[Int(place)]) }
            }
            return page
        }
        var last = page(nil)
        var pages = 1
        while let end = isForwards ? last.last : last.first, pages <= rows.count {
            found = isForwards ? found + last : last + found
            last = page(end)
            pages += 1
        }
        return (found, pages)
    }

    private func rows(_ times: [Int64]) -> [StoredMessage] {
        times.enumerated().map { place, at in
            StoredMessage(
                sequence: Int64(place), msgid: "m\(place)", at: ChatTimestamp(milliseconds: at), nick: "ann",
                source: "ann",
                text: "")
        }
    }

    @Test(
        "whoever leafs by times gets each message once, in order, and comes to an end, whatever messages bear the same",
        arguments: LawSeeds.seeds(300))
    func ending(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let most = Int64(1 + random.next() % 30)
        let rows = rows((0..<Int(random.next() % 120)).map { _ in Int64(random.next() % UInt64(most)) })
        let limit = 1 + Int(random.next() % 12)
        for isForwards in [true, false] {
            let (found, pages) = leaf(rows, limit: limit, isForwards: isForwards, isRemembered: true)
            #expect(found == rows.map(\.sequence), "seed \(seed)")
            #expect(pages <= rows.count + 1, "seed \(seed)")
        }
    }

    @Test(
        "whoever leafs by times, each page over a connection of its own, misses nothing where those who bear the same are within a page",
        arguments: LawSeeds.seeds(300))
    func jitter(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var times: [Int64] = []
        let isWholeSeconds = random.next() % 2 == 0
        for place in 0..<Int(random.next() % 120) {
            // Clocks that differ by seconds, and count no less; or one clock, and several messages in a second.
            times.append(Int64(place / 2) + (isWholeSeconds ? 0 : Int64(random.next() % 3)))
        }
        let rows = rows(times)
        let limit = 8 + Int(random.next() % 12)
        for isForwards in [true, false] {
            let found = leaf(rows, limit: limit, isForwards: isForwards, isRemembered: false).found
            #expect(Set(found).sorted() == rows.map(\.sequence), "seed \(seed)")
        }
    }

    @Test("no line comes twice, whoever asks, where no two messages bear the same time", arguments: LawSeeds.seeds(100))
    func unique(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let rows = rows((0..<Int64(random.next() % 100)).shuffled(using: &random))
        let limit = 1 + Int(random.next() % 12)
        for isForwards in [true, false] {
            let found = leaf(rows, limit: limit, isForwards: isForwards, isRemembered: false).found
            #expect(found == rows.map(\.sequence), "seed \(seed)")
        }
    }

    @Test("from a time that stays nothing is left out, however far from each other those are who bear it")
    func staying() {
        let rows = rows([5] + Array(100..<200) + [5] + Array(200..<210))
        func page(_ selection: StoredPageQuery.Selection) -> [Int64] {
            StoredPlaces(StoredPageQuery(selection, limit: 500), of: rows).sequences
        }
        let at = StoredReference.time(ChatTimestamp(milliseconds: 5))
        let end = StoredReference.time(ChatTimestamp(milliseconds: 209))
        #expect(page(.newest(after: at, before: nil)) == Array(1..<112))
        #expect(page(.between(end, at)) == Array(1..<111))
        #expect(page(.between(at, end)) == Array(1..<111))
        #expect(page(.oldest(after: at)) == Array(1..<112))
    }
}
