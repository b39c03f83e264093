import ChatModel
import Foundation
import Testing

@testable import Store

@Suite("When nothing can be kept, that is said, and what waits is kept later")
struct StoreFailureTests {
    private let long = String(repeating: "x", count: 50_000)

    /// Stops the file from growing, and fills the rest of it.
    private func fill(_ stage: StoreStage) async {
        await stage.sql("PRAGMA max_page_count = 1")
    }

    private func makeRoom(_ stage: StoreStage) async {
        await stage.sql("PRAGMA max_page_count = 1000000")
    }

    @Test("a full disk refuses acceptances, keeps the rest waiting in order, and is tried again")
    func fullDisk() async throws {
        let stage = try StoreStage { $0.retryPause = .milliseconds(1) }
        await stage.submitAndSettle([.message(.lobby, .plain(0))])
        await fill(stage)

        stage.submit([.accept(.plain("a", text: long))])
        await stage.condition(.failing("the disk is full"))
        await stage.refusal(of: 2)
        #expect(stage.reasons.last == "the disk is full")
        #expect(stage.through == 2)

        // Acceptances are dropped out of writes of which the rest is pending.
        stage.submit([.message(.lobby, .plain(1, text: long))])
        stage.submit([.accept(.plain("b")), .message(.lobby, .plain(2))])
        stage.submit([.accept(.plain("c"))])
        stage.submit([.message(.lobby, .plain(3))])
        await stage.refusal(of: 4)
        await stage.refusal(of: 5)
        #expect(stage.through == 2)
        #expect(!stage.conditions.contains(.sound))
        let all = [.plain(0), .plain(1, text: long), .plain(2), StoredMessage.plain(3)]
        #expect(try await stage.messages(.lobby) == all)

        await makeRoom(stage)
        await stage.settle()
        #expect(stage.conditions.last == .sound)
        #expect(stage.refused == [2, 4, 5])
        #expect(try await stage.messages(.lobby) == all)
        #expect(try await stage.room(.lobby).outbox == [])
        await stage.submitAndSettle([.accept(.plain("d"))])
        #expect(stage.refused == [2, 4, 5])
    }

    @Test("with nothing waiting, the store finds out by itself that there is room again")
    func probing() async throws {
        let stage = try StoreStage()
        await fill(stage)
        stage.submit([.accept(.plain("a", text: long))])
        await stage.refusal(of: 1)
        // Attempts go by without a report.
        for _ in 0..<3 { await stage.onWriter { _ in } }
        #expect(stage.conditions == [.failing("the disk is full")])
        await makeRoom(stage)
        await stage.condition(.sound)
        await stage.submitAndSettle([.accept(.plain("b"))])
        #expect(stage.refused == [1])
    }

    @Test("what a failed transaction began is not half there")
    func rolledBack() async throws {
        let stage = try StoreStage(starts: false) { $0.maxPageCount = 30 }
        // The room itself, its next place and the first messages are of the batch that fails.
        for index in 0..<10 { stage.submit([.message(.lobby, .plain(Int64(index), text: index < 5 ? nil : long))]) }
        stage.submit([.accept(.plain("a"))])
        stage.start()
        await stage.refusal(of: 11)
        #expect(stage.through == 0)
        try stage.folder.crashCopy(of: "a.db", as: "copy.db")
        #expect(try stored(stage.folder, "copy.db").rooms.isEmpty)
        await makeRoom(stage)
        await stage.settle()
        let room = try await stage.room(.lobby)
        #expect(room.messages.map(\.sequence) == Array(0..<10))
        #expect(room.nextSequence == 10)
        #expect(room.outbox == [])
    }

    @Test("what waits while the disk is full is bounded, refused acceptances too")
    func bounded() async throws {
        let stage = try StoreStage {
            $0.inboxBytes = 200_000
            $0.retryPause = .seconds(3600)
        }
        await fill(stage)
        stage.submit([.message(.lobby, .plain(0, text: long))])
        await stage.condition(.failing("the disk is full"))
        // More than the inbox could hold: refused writes take up nothing.
        for index in 0..<2000 {
            let ticket = try #require(stage.submit([.accept(.plain("\(index)"))]))
            if index % 100 == 99 { await stage.refusal(of: ticket) }
        }
        #expect(stage.through == 0)
        var taken = 0
        while stage.submit([.message(.lobby, .plain(Int64(taken + 1), text: long))]) != nil { taken += 1 }
        #expect(taken == 2)
        // Closing tries once more, and does not wait for the next attempt.
        await makeRoom(stage)
        stage.store.close(within: .seconds(30))
        #expect(try stored(stage.folder).rooms[.lobby]?.messages.map(\.sequence) == [0, 1, 2])
    }

    @Test("a store that closes while the disk is full ends, and what it had stays")
    func closingWhileFull() async throws {
        let stage = try StoreStage()
        await stage.submitAndSettle([.message(.lobby, .plain(0))])
        await fill(stage)
        stage.submit([.message(.lobby, .plain(1, text: long)), .message(.lobby, .plain(2))])
        await stage.condition(.failing("the disk is full"))
        stage.store.close(within: .seconds(30))
        #expect(try stored(stage.folder).rooms[.lobby]?.messages == [.plain(0)])
    }

    @Test("a file that turns out damaged is given up for good, loudly, and begun anew at the next start")
    func damagedInUse() async throws {
        let folder = try StoreFolder()
        do {
            let stage = try StoreStage(folder)
            await stage.submitAndSettle((0..<2000).map { .message(.lobby, .plain($0)) })
            stage.store.close(within: .seconds(30))
        }
        let stage = try StoreStage(folder)
        // Everything but the first page: the next read is garbage.
        let size = try #require(try FileManager.default.attributesOfItem(atPath: folder.file("a.db"))[.size] as? Int)
        let file = try #require(FileHandle(forWritingAtPath: folder.file("a.db")))
        try file.seek(toOffset: 4096)
        try file.write(contentsOf: Data(repeating: 0xA5, count: size - 4096))
        try file.close()
        await stage.sql("PRAGMA shrink_memory")

        stage.submit([.message(.lobby, .plain(5000)), .accept(.plain("a"))])
        stage.submit([.message(.lobby, .plain(5001))])
        await stage.settle()
        #expect(stage.refused == [1])
        #expect(stage.conditions == [.failing("the database is damaged; the next start begins with a new one")])
        await #expect(throws: StoreFailure("the database is damaged")) { try await stage.messages(.lobby) }
        await stage.submitAndSettle([.accept(.plain("b"))])
        #expect(stage.refused == [1, 3])
        stage.store.close(within: .seconds(30))

        let next = try StoreStage(folder, wall: 1_750_000_000_999)
        #expect(next.opening.movedAside == folder.file("a.db.damaged-1750000000"))
        await next.submitAndSettle([.message(.lobby, .plain(0))])
        #expect(try await next.messages(.lobby) == [.plain(0)])
        next.store.close(within: .seconds(30))
        #expect(folder.names == ["a.db", "a.db.damaged-1750000000", "a.db.lock"])
    }
}
