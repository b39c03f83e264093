import ChatModel
import Testing

@testable import Store

@Suite("Orders are kept in order, as a whole, and not for ever in memory")
struct StoreWriteTests {
    @Test("settlements go through all tickets in order, and what waits is one batch")
    func batches() async throws {
        let stage = try StoreStage(starts: false) { $0.batchMaxMessages = 10 }
        for index in 0..<25 { stage.submit([.message(.lobby, .plain(Int64(index)))]) }
        stage.start()
        var steps: [UInt64] = []
        while stage.through < 25 {
            await stage.next()
            steps.append(stage.through)
        }
        #expect(steps == [10, 20, 25])
    }

    @Test("an order may have more changes than a batch has orders, and one without changes is settled too")
    func sizes() async throws {
        let stage = try StoreStage(starts: false) { $0.batchMaxMessages = 10 }
        stage.submit([])
        stage.submit((0..<50).map { .message(.lobby, .plain($0)) })
        stage.submit([])
        stage.start()
        await stage.settle()
        #expect(try await stage.count(.lobby) == 50)
        await stage.submitAndSettle([])
        #expect(stage.through == 4)
    }

    @Test("a batch gathers for as long as it may, and no longer when it is full")
    func gathering() async throws {
        // Full long before the hour is over, or the test does not end.
        let stage = try StoreStage {
            $0.batchMaxWait = .seconds(3600)
            $0.batchMaxMessages = 3
        }
        for index in 0..<3 { stage.submit([.message(.lobby, .plain(Int64(index)))]) }
        await stage.settle()
        #expect(stage.through == 3)
        let brief = try StoreStage { $0.batchMaxWait = .milliseconds(1) }
        await brief.submitAndSettle([.message(.lobby, .plain(0))])
        // Closing does not wait for the hour either.
        stage.submit([.message(.lobby, .plain(3))])
        stage.store.close(within: .seconds(30))
        #expect(try stored(stage.folder).rooms[.lobby]?.messages.count == 4)
    }

    @Test("a process that ends leaves a beginning of the orders, each whole, and all that were settled")
    func crash() async throws {
        let stage = try StoreStage { $0.batchMaxMessages = 7 }
        var copies: [(name: String, settled: UInt64)] = []
        for index in 0..<300 {
            let sequence = Int64(index)
            stage.submit([
                .accept(.plain("x\(index)")), .message(.lobby, .plain(sequence)), .message(.attic, .plain(sequence)),
            ])
            if index % 50 == 49 {
                await stage.next()
                // The writer works on meanwhile; between two batches the files are of one moment.
                let (folder, name) = (stage.folder, "copy\(index).db")
                let settled = stage.through
                await stage.onWriter { _ in
                    do { try folder.crashCopy(of: "a.db", as: name) } catch { Issue.record(error) }
                }
                copies.append((name, settled))
            }
        }
        await stage.settle()
        for copy in copies {
            let state = try stored(stage.folder, copy.name)
            let kept = state.rooms[.lobby]?.outbox.count ?? 0
            #expect(kept >= Int(copy.settled))
            #expect(state.rooms[.lobby]?.outbox.map(\.id.rawValue) == (0..<kept).map { "x\($0)" })
            #expect(state.rooms[.lobby]?.messages == (0..<Int64(kept)).map { .plain($0) })
            #expect(state.rooms[.attic]?.messages.count == kept)
            #expect(state.rooms[.attic]?.nextSequence == Int64(kept))
        }
    }

    @Test("when the inbox is full nothing more is taken, until there is room again")
    func inboxFull() async throws {
        let stage = try StoreStage(starts: false) { $0.inboxBytes = 100_000 }
        let long = String(repeating: "x", count: 30_000)
        var taken = 0
        while stage.submit([.message(.lobby, .plain(Int64(taken), text: long))]) != nil { taken += 1 }
        #expect(taken == 3)
        stage.start()
        while stage.through < 3 { await stage.next() }
        let after = stage.submit([.message(.lobby, .plain(9, text: long))])
        #expect(after != nil)
        while stage.through < after ?? 0 { await stage.next() }
        #expect(try await stage.messages(.lobby).map(\.sequence) == [0, 1, 2, 9])
        #expect(stage.submit([.message(.lobby, .plain(10, text: String(repeating: "x", count: 200_000)))]) == nil)
    }

    @Test("questions see what was handed over before them, and are answered while others write")
    func reading() async throws {
        let stage = try StoreStage { $0.batchMaxMessages = 20 }
        for index in 0..<400 {
            stage.submit([.message(.lobby, .plain(Int64(index)))])
            if index % 20 == 7 {
                let found = try await stage.messages(.lobby, after: Int64(index - 3), limit: 3)
                #expect(found.map(\.sequence) == [index - 2, index - 1, index].map(Int64.init))
                #expect(try await stage.count(.lobby) == index + 1)
            }
        }
        await stage.settle()
    }

    @Test("closing keeps what waits; after it nothing is taken and questions are refused")
    func closing() async throws {
        let stage = try StoreStage { $0.batchMaxMessages = 10 }
        for index in 0..<1000 { stage.submit([.message(.lobby, .plain(Int64(index)))]) }
        stage.store.close(within: .seconds(30))
        stage.store.close(within: .seconds(30))
        #expect(stage.submit([.message(.lobby, .plain(5000))]) == nil)
        await #expect(throws: StoreFailure("the store is closed")) { try await stage.messages(.lobby) }
        #expect(stage.folder.names == ["a.db", "a.db.lock"])
        let state = try stored(stage.folder)
        #expect(state.rooms[.lobby]?.nextSequence == 1000)
    }

    @Test("a store that never started closes, and lets go of its file")
    func neverStarted() async throws {
        let folder = try StoreFolder()
        let (store, _) = try Store.open(StoreSettings(path: folder.file("a.db")), wallClockMilliseconds: 0)
        #expect(store.submit(StoreTicket(rawValue: 1), []))
        let answer = await withCheckedContinuation { continuation in
            store.countMessages(.lobby, after: 0, through: 9) { continuation.resume(returning: $0) }
            store.close(within: .seconds(1))
        }
        #expect(answer == .failure(StoreFailure("the store is closed")))
        #expect(!store.submit(StoreTicket(rawValue: 2), []))
        store.start(settled: { _ in Issue.record("settled") }, condition: { _ in Issue.record("told") })
        #expect(try stored(folder) == StoredState())
    }
}
