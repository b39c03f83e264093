import BridgeTestSupport
import ChatModel
import Testing

@testable import Store

@Suite("While nothing can be kept, questions see what waits")
struct StoreWaitingTests {
    private static let attic = StoredRoomKey(backend: "", room: "ann bob")
    private let long = String(repeating: "x", count: 50_000)

    private func fill(_ stage: StoreStage) async { await stage.sql("PRAGMA max_page_count = 1") }

    private func makeRoom(_ stage: StoreStage) async { await stage.sql("PRAGMA max_page_count = 1000000") }

    /// A store that cannot write, with something large pending.
    private func full(_ change: (inout StoreSettings) -> Void = { _ in }) async throws -> StoreStage {
        let stage = try StoreStage {
            $0.retryPause = .seconds(3600)
            change(&$0)
        }
        await stage.submitAndSettle([.message(.lobby, .plain(0))])
        await fill(stage)
        stage.submit([.message(.lobby, .plain(1, text: long))])
        await stage.condition(.failing("the disk is full"))
        return stage
    }

    @Test("a question sees every order that was handed over before it, and nothing of them is on the disk")
    func order() async throws {
        let stage = try await full()
        for place in 2..<10 {
            stage.submit([.message(.lobby, .plain(Int64(place)))])
            #expect(try await stage.messages(.lobby).last == .plain(Int64(place)))
        }
        #expect(try await stage.room(.lobby).nextSequence == 10)
        #expect(try await stage.count(.lobby) == 10)
        try stage.folder.crashCopy(of: "a.db", as: "copy.db")
        #expect(try stored(stage.folder, "copy.db").rooms[.lobby]?.messages == [.plain(0)])
        #expect(stage.through == 1)
    }

    @Test("what was taken back before comes back, and what SQLite refuses for itself is left out")
    func changes() async throws {
        let stage = try StoreStage { $0.retryPause = .seconds(3600) }
        await stage.submitAndSettle([.message(.lobby, .plain(0)), .message(.lobby, .plain(1))])
        await stage.submitAndSettle([.takeBack(.lobby, msgid: "m0")])
        await fill(stage)
        stage.submit([.message(.lobby, .plain(2, text: long))])
        await stage.condition(.failing("the disk is full"))
        stage.submit([.restore(.lobby, msgid: "m0"), .edit(.lobby, msgid: "m1", text: "new")])
        var twice = StoredMessage.plain(1)
        twice.msgid = "other"
        stage.submit([.message(.lobby, twice), .message(.lobby, .plain(3))])
        let wanted = [.plain(0), .plain(1, text: "new"), .plain(2, text: long), StoredMessage.plain(3)]
        #expect(try await stage.messages(.lobby) == wanted)
        await makeRoom(stage)
        stage.store.close(within: .seconds(30))
        #expect(try stored(stage.folder).rooms[.lobby]?.messages == wanted)
    }

    @Test("attempts go on between the questions, and when one succeeds the disk answers")
    func attempts() async throws {
        let stage = try await full { $0.retryPause = .milliseconds(1) }
        for place in 2..<30 {
            stage.submit([.message(.lobby, .plain(Int64(place)))])
            #expect(try await stage.count(.lobby) == place + 1)
        }
        await makeRoom(stage)
        await stage.settle()
        #expect(stage.conditions.last == .sound)
        #expect(try await stage.count(.lobby) == 30)
        stage.store.close(within: .seconds(30))
        #expect(try stored(stage.folder).rooms[.lobby]?.messages.count == 30)
    }

    @Test("a stranger that holds the file has questions refused, rather than answered without what waits")
    func heldByAnother() async throws {
        let stage = try await full()
        let stranger = try SQLiteConnection(
            path: stage.folder.file("a.db"), isReadOnly: false, isExclusive: false, busyMilliseconds: 0)
        defer { stranger.close() }
        await stage.sql("PRAGMA busy_timeout = 1")
        try stranger.execute("BEGIN IMMEDIATE")
        await #expect(throws: StoreFailure("another program holds the database")) {
            try await stage.messages(.lobby)
        }
        try stranger.execute("ROLLBACK")
        #expect(try await stage.count(.lobby) == 2)
    }

    @Test("closing refuses what is asked then, and nothing that waited is half there")
    func closing() async throws {
        let stage = try await full()
        #expect(try await stage.count(.lobby) == 2)
        stage.store.close(within: .seconds(30))
        await #expect(throws: StoreFailure("the store is closed")) { try await stage.count(.lobby) }
        #expect(try stored(stage.folder).rooms[.lobby]?.messages == [.plain(0)])
    }

    // MARK: - The property

    private static func operations(_ count: Int, from first: Int64, _ random: inout SeededGenerator) -> [StoreOperation]
    {
        (0..<count).map { index in
            let place = first + Int64(index)
            let key = Int.random(in: 0..<4, using: &random) == 0 ? attic : .lobby
            let msgid = "m\(Int64.random(in: 0..<max(1, place), using: &random))"
            switch Int.random(in: 0..<20, using: &random) {
            case 0...1: return .edit(key, msgid: msgid, text: "edited \(place)")
            case 2...3: return .takeBack(key, msgid: msgid)
            case 4: return .restore(key, msgid: msgid)
            case 5: return .learn(key, msgid: msgid, upstreamID: ChatID("u\(place)"))
            case 6: return .live(key, until: ChatTimestamp(milliseconds: place))
            case 7 where Int.random(in: 0..<8, using: &random) == 0: return .removeConversation(attic)
            default:
                var row = StoredMessage.plain(place, at: 1000 + Int64.random(in: 0...60, using: &random))
                row.account = "ann"
                row.sender = ChatPerson(id: ChatID("p\(place % 3)"))
                if Int.random(in: 0..<4, using: &random) == 0 {
                    row.kind = .event
                    row.clientTags = [StoredTag(name: StoredMessage.replyTag, value: msgid)]
                }
                if Int.random(in: 0..<12, using: &random) == 0 { row.kind = .gap }
                // A repetition, at another place now.
                if Int.random(in: 0..<12, using: &random) == 0 { row.msgid = msgid }
                return .message(key, row)
            }
        }
    }

    private static func query(_ random: inout SeededGenerator) -> StoredPageQuery {
        func reference(_ random: inout SeededGenerator) -> StoredReference {
            let at = ChatTimestamp(milliseconds: 995 + Int64.random(in: 0...70, using: &random))
            let msgid = "m\(Int.random(in: 0..<90, using: &random))"
            return switch Int.random(in: 0..<5, using: &random) {
            case 0: .messageOrTime(msgid, at)
            case 1: .time(at)
            case 2: .timeOrBeginning(at)
            default: .message(msgid)
            }
        }
        let selection: StoredPageQuery.Selection =
            switch Int.random(in: 0..<6, using: &random) {
            case 0: .newest(after: nil, before: nil)
            case 1: .newest(after: reference(&random), before: nil)
            case 2: .newest(after: nil, before: reference(&random))
            case 3: .oldest(after: reference(&random))
            case 4: .around(reference(&random))
            default: .between(reference(&random), reference(&random))
            }
        var mutes = StoredMutes()
        if Int.random(in: 0..<3, using: &random) == 0 { mutes.ids = [ChatID("p1")] }
        return StoredPageQuery(
            selection, limit: Int.random(in: 0...12, using: &random), withTakenBack: Bool.random(using: &random),
            withEvents: Bool.random(using: &random), without: mutes)
    }

    @Test(
        "a store that can keep nothing answers as one that keeps everything, and has all of it when there is room",
        arguments: LawSeeds.seeds(8))
    func law(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let sound = try StoreStage()
        let stage = try StoreStage { $0.retryPause = .milliseconds(seed % 2 == 0 ? 1 : 200) }
        let before = Self.operations(Int.random(in: 0...40, using: &random), from: 1, &random)
        for operation in before {
            sound.submit([operation])
            stage.submit([operation])
        }
        await sound.settle()
        await stage.settle()
        await fill(stage)
        stage.submit([.message(.lobby, .plain(50, text: long))])
        await sound.submitAndSettle([.message(.lobby, .plain(50, text: long))])
        await stage.condition(.failing("the disk is full"))
        for operation in Self.operations(40, from: 51, &random) {
            stage.submit([operation])
            await sound.submitAndSettle([operation])
            try await compare(stage, sound, Self.query(&random), "seed \(seed)")
        }
        await makeRoom(stage)
        await stage.settle()
        for _ in 0..<20 {
            try await compare(stage, sound, Self.query(&random), "seed \(seed), with room")
        }
    }

    private func compare(
        _ stage: StoreStage, _ sound: StoreStage, _ query: StoredPageQuery, _ comment: Comment
    ) async throws {
        for key in [StoredRoomKey.lobby, Self.attic] {
            let places: StoredPlaces = try await ask { stage.store.findPlaces(key, query, $0) }
            let wanted: StoredPlaces = try await ask { sound.store.findPlaces(key, query, $0) }
            #expect(places == wanted, "\(comment): \(query)")
            #expect(try await stage.messages(key) == (try await sound.messages(key)), comment)
            let (first, second) = (try await stage.room(key), try await sound.room(key))
            #expect(first == second, comment)
            let search = StoredSearch(text: "edited", limit: 10)
            let found: StoredSearchStep = try await ask { stage.store.search(key, search, $0) }
            let wantedFound: StoredSearchStep = try await ask { sound.store.search(key, search, $0) }
            #expect(found == wantedFound, comment)
        }
    }
}
