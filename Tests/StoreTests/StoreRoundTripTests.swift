import BridgeTestSupport
import ChatModel
import Testing

@testable import Store

@Suite("What was kept is read as it was")
struct StoreRoundTripTests {
    /// Texts are equal when their bytes are: Swift's own equality would take é for e and an accent.
    private func spelled(_ value: some Any) -> [UInt8] { Array(String(reflecting: value).utf8) }

    @Test("every field of every record, after reopening and by question", arguments: LawSeeds.seeds(30))
    func everyField(seed: UInt64) async throws {
        var maker = RecordMaker(random: SeededGenerator(seed: seed))
        let key = StoredRoomKey(backend: "b" + maker.text(), room: maker.text())
        let (first, step) = (
            Int64.random(in: -5...1000, using: &maker.random), Int64.random(in: 1...9, using: &maker.random)
        )
        var room = StoredRoom(liveUntil: maker.time(), liveCounted: maker.time().milliseconds, isHistoryUnasked: true)
        var state = StoredState()
        var operations: [StoreOperation] = []
        for index in 0..<20 {
            let message = maker.message(sequence: first + Int64(index) * step)
            room.messages.append(message)
            operations.append(.message(key, message))
            let entry = maker.entry(in: key)
            room.outbox.append(entry)
            operations.append(.accept(entry))
            room.markers.append(StoredMarker(reader: maker.id(), at: maker.time(), sequence: Int64(index)))
            room.receipts.append(
                StoredReceipt(
                    author: maker.id(), reader: ChatPerson(id: maker.id(), name: maker.maybeText()),
                    deliveredSequence: -1, readSequence: Int64(index)))
            state.identities.append(
                StoredIdentity(
                    backend: maker.text(), person: ChatPerson(id: maker.id(), name: maker.maybeText()),
                    nick: maker.text(), realname: maker.text(), lastSeen: maker.time()))
            state.cursors.append(
                StoredCursor(
                    account: "\(index)." + maker.text(), client: maker.text(), room: key, sequence: Int64(index)))
            state.accounts.append(
                StoredAccount(name: "\(index)." + maker.text(), password: maker.text(), madeAt: maker.time()))
            state.nicks.append(
                StoredNick(folded: "\(index)." + maker.text(), nick: maker.text(), account: maker.text()))
            state.choices.append(maker.choices(of: "\(index)." + maker.text()))
            state.memberships.append(
                StoredMembership(
                    account: "\(index)." + maker.text(),
                    room: StoredRoomKey(backend: maker.text(), room: maker.text()), channel: maker.text(),
                    position: Int64(index)))
            state.mirrored.append(
                StoredMirrored(
                    mirror: maker.text(), room: key, msgid: "\(index)." + maker.text(), toolID: maker.text(),
                    isTheirs: index % 2 == 0))
            state.bookmarks.append(
                StoredBookmark(mirror: maker.text(), subject: "\(index)." + maker.text(), place: maker.text()))
        }
        operations += room.markers.map { .marker(key, $0) } + room.receipts.map { .receipt(key, $0) }
        operations += state.identities.map { .identity($0) } + state.cursors.map { .cursor($0) }
        operations += state.accounts.map { .account($0) }
        operations += state.nicks.map { .nick($0) } + state.choices.map { .choices($0) }
        operations += state.memberships.map { .membership($0) }
        operations += state.mirrored.map { .mirrored($0) } + state.bookmarks.map { .bookmark($0) }
        operations.append(.live(key, until: room.liveUntil ?? maker.time(), counted: room.liveCounted))
        operations.append(.historyUnasked(key, room.isHistoryUnasked))
        room.nextSequence = max(20, first + 19 * step + 1)

        let stage = try StoreStage { $0.boot = "first" }
        await stage.submitAndSettle(operations)
        #expect(stage.refused == [] && stage.reasons == [])
        let asked = try await stage.room(key)
        let read = try await stage.messages(key, after: .min)
        #expect(try await stage.count(key, after: .min) == 20)
        stage.store.close(within: .seconds(10))
        let found = try stored(stage.folder, boot: "first")

        #expect(spelled(read) == spelled(room.messages))
        for one in [asked, found.rooms[key] ?? StoredRoom()] {
            #expect(spelled(one.messages) == spelled(room.messages))
            #expect(spelled(one.outbox) == spelled(room.outbox))
            #expect(Set(one.markers.map(spelled)) == Set(room.markers.map(spelled)))
            #expect(Set(one.receipts.map(spelled)) == Set(room.receipts.map(spelled)))
            #expect(one.liveUntil == room.liveUntil)
            #expect(one.liveCounted == room.liveCounted)
            #expect(one.isHistoryUnasked)
            #expect(one.nextSequence == room.nextSequence)
        }
        #expect(found.rooms.count == 1)
        #expect(Set(found.identities.map(spelled)) == Set(state.identities.map(spelled)))
        #expect(Set(found.cursors.map(spelled)) == Set(state.cursors.map(spelled)))
        #expect(Set(found.accounts.map(spelled)) == Set(state.accounts.map(spelled)))
        #expect(found.nicks.map(spelled) == state.nicks.map(spelled))
        #expect(Set(found.memberships.map(spelled)) == Set(state.memberships.map(spelled)))
        #expect(found.mirrored.map(spelled) == state.mirrored.map(spelled))
        #expect(Set(found.bookmarks.map(spelled)) == Set(state.bookmarks.map(spelled)))
        #expect(Set(found.choices.map(spelled)) == Set(state.choices.filter { !$0.isEmpty }.map(spelled)))
    }

    @Test("long texts and files within messages are kept")
    func long() async throws {
        let stage = try StoreStage()
        let text = String(repeating: "🦊", count: 1 << 18)
        var message = StoredMessage.plain(0, text: text)
        message.attachments = [ChatAttachment(kind: .image, inline: String(repeating: "QUJD", count: 2 << 20))]
        await stage.submitAndSettle([.message(.lobby, message), .message(.lobby, .plain(1))])
        #expect(try await stage.messages(.lobby) == [message, .plain(1)])
    }

    @Test("a message without any words, id or name is one")
    func empty() async throws {
        let stage = try StoreStage()
        let message = StoredMessage(
            sequence: 0, msgid: "", at: ChatTimestamp(milliseconds: 0), nick: "", source: "", text: "")
        await stage.submitAndSettle([.message(StoredRoomKey(backend: "", room: ""), message)])
        #expect(try await stage.messages(StoredRoomKey(backend: "", room: "")) == [message])
    }

    @Test("what the monotonic clock counted is known until the machine starts anew")
    func counted() async throws {
        let folder = try StoreFolder()
        func said(_ boot: String?, _ operations: [StoreOperation] = []) async throws -> Int64? {
            let stage = try StoreStage(folder) { $0.boot = boot }
            await stage.submitAndSettle(operations)
            let counted = try await stage.room(.lobby).liveCounted
            stage.store.close(within: .seconds(10))
            #expect(try stored(folder, boot: boot).rooms[.lobby]?.liveCounted == counted)
            return counted
        }
        let until = ChatTimestamp(milliseconds: 1)
        #expect(try await said("first", [.live(.lobby, until: until, counted: 5)]) == 5)
        #expect(try await said("first", [.message(.lobby, .plain(0))]) == 5)
        #expect(try await said("second") == nil)
        #expect(try await said(nil) == nil)
        #expect(try await said("first") == 5, "nothing was written since")
        #expect(try await said("second", [.message(.lobby, .plain(1))]) == nil)
        #expect(try await said("first") == nil)
        #expect(try await said(nil, [.live(.lobby, until: until, counted: 5)]) == nil)
    }

    @Test("a bridge gets the newest of a room's messages, oldest first, and the place after them all")
    func newest() async throws {
        let stage = try StoreStage()
        await stage.submitAndSettle(
            (0..<50).map { .message(.lobby, .plain($0 * 2)) } + [.live(.attic, until: .init(milliseconds: 5))])
        stage.store.close(within: .seconds(10))
        let (store, _) = try Store.open(
            StoreSettings(path: stage.folder.file("a.db")), wallClockMilliseconds: StoreStage.someTime)
        let state = try store.load(messagesPerRoom: 3)
        #expect(state.rooms[.lobby]?.messages == [.plain(94), .plain(96), .plain(98)])
        #expect(state.rooms[.lobby]?.nextSequence == 99)
        #expect(state.rooms[.attic] == StoredRoom(liveUntil: ChatTimestamp(milliseconds: 5)))
        #expect(try store.load(messagesPerRoom: 0).rooms[.lobby]?.messages == [])
        store.close(within: .seconds(10))
        #expect(throws: StoreFailure.self) { try store.load() }
    }

    struct Range: CustomTestStringConvertible {
        var testDescription: String
        var (after, through, limit): (Int64, Int64, Int)
        var found: [Int64]
    }

    static let ranges = [
        Range(testDescription: "all", after: -1, through: 100, limit: 100, found: [0, 10, 20, 30]),
        Range(testDescription: "behind a cursor", after: 10, through: 100, limit: 100, found: [20, 30]),
        Range(testDescription: "through a place", after: -1, through: 20, limit: 100, found: [0, 10, 20]),
        Range(testDescription: "between places that are empty", after: 5, through: 25, limit: 100, found: [10, 20]),
        Range(testDescription: "the oldest of more", after: -1, through: 20, limit: 2, found: [0, 10]),
        Range(testDescription: "none wanted", after: -1, through: 100, limit: 0, found: []),
        Range(testDescription: "fewer than none wanted", after: -1, through: 100, limit: -7, found: []),
        Range(testDescription: "the wrong way round", after: 20, through: 10, limit: 100, found: []),
        Range(
            testDescription: "as far as numbers go", after: .min, through: .max, limit: .max, found: [0, 10, 20, 30]),
    ]

    @Test("messages are read by their place", arguments: ranges)
    func between(_ row: Range) async throws {
        let stage = try StoreStage()
        await stage.submitAndSettle(
            [30, 0, 20, 10].map { .message(.lobby, .plain($0)) } + [.message(.attic, .plain(15))])
        let read = try await stage.messages(.lobby, after: row.after, through: row.through, limit: row.limit)
        #expect(read.map(\.sequence) == row.found)
        if row.limit > 3 {
            #expect(try await stage.count(.lobby, after: row.after, through: row.through) == row.found.count)
        }
    }

    @Test("of a room that nobody knows, nothing is found")
    func unknownRoom() async throws {
        let stage = try StoreStage()
        #expect(try await stage.messages(.lobby) == [])
        #expect(try await stage.count(.lobby) == 0)
        #expect(try await stage.room(.lobby) == StoredRoom())
    }
}
