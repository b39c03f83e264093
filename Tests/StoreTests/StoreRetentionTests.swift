import ChatModel
import Testing

@testable import Store

@Suite("Messages go when they are too old or too many, in slices")
struct StoreRetentionTests {
    private static let hour: Int64 = 3_600_000
    private static let now = StoreStage.someTime

    @Test("by age: what is older than the limit goes, from the front of each room; the outbox stays")
    func age() async throws {
        let stage = try StoreStage { $0.retention = .seconds(7200) }
        // More than three slices are too old.
        await stage.submitAndSettle(
            (0..<3000).map { index in
                .message(.lobby, .plain(index, at: Self.now - (index >= 1800 ? 1 : 3) * Self.hour))
            })
        var entry = StoredOutboxEntry.plain("x")
        entry.acceptedAt = ChatTimestamp(milliseconds: 0)
        await stage.submitAndSettle([.accept(entry), .message(.attic, .plain(0, at: 0))])
        await stage.removeOld()
        let room = try await stage.room(.lobby)
        #expect(room.messages.map(\.sequence) == Array(1800..<3000))
        #expect(room.outbox == [entry])
        #expect(room.nextSequence == 3000)
        // An empty room still knows which places it gave.
        #expect(try await stage.room(.attic) == StoredRoom(nextSequence: 1))
    }

    @Test("what bears an old time because its sender's clock is wrong stays as long as what was said before it")
    func wrongClock() async throws {
        let stage = try StoreStage { $0.retention = .seconds(7200) }
        await stage.submitAndSettle(
            (0..<1300).map { index in
                .message(
                    .lobby,
                    .plain(index, at: index < 10 ? Self.now - 3 * Self.hour : index % 2 == 0 ? Self.now : 1000))
            })
        await stage.removeOld()
        #expect(try await stage.messages(.lobby).map(\.sequence) == Array(10..<1300))
    }

    @Test("by count: of each room the newest stay")
    func count() async throws {
        let stage = try StoreStage { $0.maxMessagesPerRoom = 100 }
        await stage.submitAndSettle((0..<1700).map { .message(.lobby, .plain($0 * 3)) })
        await stage.submitAndSettle((0..<101).map { .message(.attic, .plain($0)) })
        await stage.removeOld()
        #expect(try await stage.messages(.lobby).map(\.sequence) == (1600..<1700).map { $0 * 3 })
        #expect(try await stage.messages(.attic).map(\.sequence) == Array(1...100))
        #expect(try await stage.room(.lobby).nextSequence == 5098)
        await stage.removeOld()
        #expect(try await stage.count(.lobby) == 100)
    }

    @Test("both, and rooms that an earlier run left too full")
    func both() async throws {
        let folder = try StoreFolder()
        do {
            let stage = try StoreStage(folder)
            await stage.submitAndSettle((0..<50).map { .message(.lobby, .plain($0, at: Self.now)) })
            await stage.submitAndSettle((0..<50).map { .message(.attic, .plain($0, at: Self.now - 2 * Self.hour)) })
            await stage.removeOld()
            #expect(try await stage.count(.lobby) == 50)
            stage.store.close(within: .seconds(30))
        }
        let stage = try StoreStage(folder) {
            $0.retention = .seconds(3600)
            $0.maxMessagesPerRoom = 10
        }
        await stage.removeOld()
        #expect(try await stage.messages(.lobby).map(\.sequence) == Array(40..<50))
        #expect(try await stage.count(.attic) == 0)
    }

    @Test(
        "ages and counts beyond all bounds are no trap", arguments: [Duration.zero, .seconds(Int64.max), .seconds(-5)])
    func bounds(_ age: Duration) async throws {
        let stage = try StoreStage {
            $0.retention = age
            $0.maxMessagesPerRoom = age > .zero ? .max : -3
        }
        await stage.submitAndSettle([.message(.lobby, .plain(0, at: .max)), .message(.lobby, .plain(1, at: .min))])
        await stage.removeOld()
        #expect(try await stage.count(.lobby, after: .min) <= 2)
    }

    @Test("while the disk is full nothing is removed, and it goes on afterwards")
    func full() async throws {
        let stage = try StoreStage { $0.maxMessagesPerRoom = 10 }
        await stage.submitAndSettle((0..<30).map { .message(.lobby, .plain($0)) })
        await stage.sql("PRAGMA query_only = ON")
        stage.submit([.message(.lobby, .plain(30))])
        await stage.condition(.failing("the database may not be written"))
        await stage.sql("PRAGMA query_only = OFF")
        await stage.settle()
        await stage.removeOld()
        #expect(try await stage.messages(.lobby).map(\.sequence) == Array(21...30))
    }

    @Test("with the messages goes who has read them, and of what was read up to only what nobody can come back for")
    func receipts() async throws {
        let stage = try StoreStage { $0.maxMessagesPerRoom = 10 }
        func receipt(_ reader: String, delivered: Int64, read: Int64) -> StoredReceipt {
            StoredReceipt(
                author: ChatID("a"), reader: ChatPerson(id: ChatID(reader), name: nil), deliveredSequence: delivered,
                readSequence: read)
        }
        func marker(_ index: Int) -> StoredMarker {
            StoredMarker(
                reader: ChatID("r\(index)"), at: ChatTimestamp(milliseconds: Int64(index)), sequence: Int64(index))
        }
        await stage.submitAndSettle((0..<30).map { .message(.lobby, .plain($0)) } + [.message(.attic, .plain(0))])
        await stage.submitAndSettle(
            [
                .receipt(.lobby, receipt("gone", delivered: 20, read: -1)),
                .receipt(.lobby, receipt("reads", delivered: 19, read: 21)),
                .receipt(.lobby, receipt("gets", delivered: 21, read: 3)),
                .receipt(.attic, receipt("elsewhere", delivered: -1, read: 0)),
            ])
        await stage.submitAndSettle((0..<StoreOrphans.markersPerRoom + 3).map { .marker(.lobby, marker($0)) })
        await stage.submitAndSettle([.message(.lobby, .plain(Int64(StoreOrphans.markersPerRoom) + 3))])
        await stage.removeOld()
        let room = try await stage.room(.lobby)
        #expect(room.messages.count == 10)
        #expect(Set(room.receipts.compactMap(\.reader.id)) == [ChatID("reads"), ChatID("gets")])
        #expect(room.markers.count == StoreOrphans.markersPerRoom)
        #expect(!room.markers.contains { $0.sequence < 3 })
        #expect(try await stage.room(.attic).receipts.count == 1)
    }
}
