import BridgeTestSupport
import ChatModel
import Testing

@testable import Store

@Suite("Pages and searches")
struct StorePageTests {
    private func ask<Answer: Sendable>(
        _ question: (@escaping @Sendable (Result<Answer, StoreFailure>) -> Void) -> Void
    ) async throws -> Answer {
        try await withCheckedContinuation { continuation in question { continuation.resume(returning: $0) } }.get()
    }

    private func places(_ stage: StoreStage, _ key: StoredRoomKey, _ query: StoredPageQuery) async throws
        -> StoredPlaces
    {
        try await ask { stage.store.findPlaces(key, query, $0) }
    }

    private func found(_ stage: StoreStage, _ search: StoredSearch) async throws -> [Int64] {
        try await ask { stage.store.search(.lobby, search, $0) }.map(\.sequence)
    }

    @Test("the disk finds the pages that memory finds, whatever the clocks", arguments: LawSeeds.seeds(12))
    func pages(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let stage = try StoreStage()
        var rows: [StoredMessage] = []
        var place: Int64 = 0
        for _ in 0..<Int.random(in: 0...60, using: &random) {
            place += Int64.random(in: 1...3, using: &random)
            var row = StoredMessage.plain(place, at: 1000 + Int64.random(in: 0...40, using: &random))
            row.isTakenBack = Int.random(in: 0..<5, using: &random) == 0
            if row.isTakenBack { row.text = "" }
            if Int.random(in: 0..<5, using: &random) == 0 { row.kind = .event }
            rows.append(row)
        }
        // Another room's messages are in none of it.
        await stage.submitAndSettle(
            rows.map { .message(.lobby, $0) } + (0..<5).map { .message(.attic, .plain($0, at: 1010)) })
        func reference() -> StoredReference {
            switch Int.random(in: 0..<10, using: &random) {
            case 0: .beginning
            case 1: .message("unknown")
            case 2...5: .message(rows.randomElement(using: &random)?.msgid ?? "none")
            default: .time(ChatTimestamp(milliseconds: 995 + Int64.random(in: 0...50, using: &random)))
            }
        }
        for _ in 0..<200 {
            let selection: StoredPageQuery.Selection =
                switch Int.random(in: 0..<6, using: &random) {
                case 0: .newest(after: nil, before: nil)
                case 1: .newest(after: reference(), before: nil)
                case 2: .newest(after: nil, before: reference())
                case 3: .oldest(after: reference())
                case 4: .around(reference())
                default: .between(reference(), reference())
                }
            let query = StoredPageQuery(
                selection, limit: Int.random(in: 0...12, using: &random), withTakenBack: Bool.random(using: &random),
                withEvents: Bool.random(using: &random))
            #expect(try await places(stage, .lobby, query) == StoredPlaces(query, of: rows), "seed \(seed): \(query)")
        }
    }

    @Test("a room of which nothing is kept has empty pages")
    func unknownRoom() async throws {
        let stage = try StoreStage()
        let query = StoredPageQuery(.oldest(after: .time(ChatTimestamp(milliseconds: 5))), limit: 5)
        #expect(try await places(stage, .attic, query) == StoredPlaces(spans: [.end]))
        let unknown = StoredPageQuery(.around(.message("m")), limit: 5)
        #expect(try await places(stage, .attic, unknown) == StoredPlaces(spans: [nil]))
        #expect(try await found(stage, StoredSearch(text: "x", limit: 5)) == [])
    }

    @Test("the disk finds what memory finds", arguments: LawSeeds.seeds(12))
    func searches(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let words = ["soup", "SOUP", "100%", "a_b", "back\\slash", "été", "Été", "garlic bread", "'; --", "%"]
        let stage = try StoreStage()
        var rows: [StoredMessage] = []
        for place in 0..<40 as Range<Int64> {
            let text = (0..<3).compactMap { _ in words.randomElement(using: &random) }.joined(separator: " ")
            var row = StoredMessage.plain(place, at: Int64.random(in: 0...30, using: &random), text: text)
            row.nick = ["remy", "Remy", "linguini"].randomElement(using: &random) ?? ""
            row.isTakenBack = Int.random(in: 0..<6, using: &random) == 0
            if Int.random(in: 0..<9, using: &random) == 0 { row.kind = .gap }
            rows.append(row)
        }
        await stage.submitAndSettle(rows.map { .message(.lobby, $0) })
        for _ in 0..<200 {
            let (from, to) = (Int64.random(in: 0...30, using: &random), Int64.random(in: 0...30, using: &random))
            var search = StoredSearch(limit: Int.random(in: 0...8, using: &random))
            search.text = Bool.random(using: &random) ? words.randomElement(using: &random) : nil
            search.nick =
                Bool.random(using: &random) ? ["REMY", "linguini", "nobody"].randomElement(using: &random) : nil
            search.after = Bool.random(using: &random) ? ChatTimestamp(milliseconds: from) : nil
            search.before = Bool.random(using: &random) ? ChatTimestamp(milliseconds: to) : nil
            #expect(
                try await found(stage, search) == search.find(in: rows).map(\.sequence), "seed \(seed): \(search)")
        }
    }

    @Test("a page sees what was handed over before it")
    func sees() async throws {
        let stage = try StoreStage()
        for place in 0..<50 as Range<Int64> {
            stage.submit([.message(.lobby, .plain(place))])
            let query = StoredPageQuery(.newest(after: nil, before: nil), limit: 1)
            #expect(try await places(stage, .lobby, query).sequences == [place])
        }
    }
}
