import ChatModel
import Testing

@testable import Store

@Suite("Private conversations, nicks and choices on disk")
struct StorePrivateTests {
    private static let ours = StoredRoomKey.conversation("ann", "bob")
    private static let theirs = StoredRoomKey.conversation("cleo", "ann")

    private func reopened(_ stage: StoreStage) throws -> StoredState {
        stage.store.close(within: .seconds(10))
        return try stored(stage.folder)
    }

    @Test("a conversation has one name, whoever is named first, and no room has it")
    func names() throws {
        #expect(StoredRoomKey.conversation("bob", "ann") == Self.ours)
        let parties = try #require(Self.ours.parties)
        #expect(parties.one == "ann" && parties.other == "bob")
        #expect(StoredRoomKey(backend: "chat", room: "ann\nbob").parties == nil)
        #expect(StoredRoomKey(backend: "", room: "").parties == nil)
    }

    @Test("a bridge that starts gets conversations by their newest message, and none of them as a room")
    func listed() async throws {
        let stage = try StoreStage()
        var event = StoredMessage.plain(3, at: 9)
        event.kind = .event
        await stage.submitAndSettle([
            .message(Self.ours, .plain(0, at: 1)), .message(Self.ours, .plain(1, at: 2)),
            .message(Self.theirs, .plain(2, at: 3)), .message(Self.ours, event), .message(.lobby, .plain(0)),
        ])
        #expect(try await stage.messages(Self.ours) == [.plain(0, at: 1), .plain(1, at: 2), event])
        let state = try reopened(stage)
        #expect(Set(state.rooms.keys) == [.lobby])
        #expect(
            state.conversations == [
                StoredConversation(key: Self.theirs, newestAt: ChatTimestamp(milliseconds: 3), nextSequence: 3),
                StoredConversation(key: Self.ours, newestAt: ChatTimestamp(milliseconds: 2), nextSequence: 4),
            ])
    }

    @Test("who spoke lately is told with a conversation")
    func speakers() async throws {
        let stage = try StoreStage()
        func said(_ place: Int64, by account: String, in key: StoredRoomKey) -> StoreOperation {
            var message = StoredMessage.plain(place, at: place)
            message.account = account
            return .message(key, message)
        }
        var operations = [said(0, by: "Ann", in: Self.ours), said(1, by: "bob", in: Self.ours)]
        operations += (0..<3).map { said($0, by: "cleo", in: Self.theirs) }
        await stage.submitAndSettle(operations)
        let lately = Int64(StoredConversation.speakingCount)
        let long = StoredRoomKey.conversation("x", "y")
        await stage.submitAndSettle((0...lately).map { said($0, by: $0 == 0 ? "x" : "y", in: long) })
        let found = try reopened(stage).conversations
        #expect(found.map(\.key) == [long, Self.theirs, Self.ours])
        #expect(found.map(\.speakers) == [["y"], ["cleo"], ["Ann", "bob"]])
    }

    @Test("a forgotten conversation leaves nothing behind, and what comes next begins it anew")
    func forgotten() async throws {
        let stage = try StoreStage()
        await stage.submitAndSettle([.message(Self.ours, .plain(0)), .message(Self.theirs, .plain(0))])
        // The number of the one may be given to the other within the same transaction.
        await stage.submitAndSettle([
            .message(Self.theirs, .plain(1)), .removeConversation(Self.theirs), .removeConversation(Self.theirs),
            .message(.attic, .plain(7)),
        ])
        #expect(try await stage.messages(Self.theirs) == [])
        #expect(try await stage.messages(Self.ours) == [.plain(0)])
        await stage.submitAndSettle([.message(Self.theirs, .plain(4))])
        let state = try reopened(stage)
        #expect(state.conversations.map(\.key) == [Self.ours, Self.theirs])
        #expect(state.rooms[.attic]?.nextSequence == 8 && state.rooms[.attic]?.messages == [.plain(7)])
    }

    @Test("what is taken back in a conversation is gone for good, and its place is found by its id")
    func takenBack() async throws {
        let stage = try StoreStage()
        func row(_ place: Int64) -> StoredMessage {
            var message = StoredMessage.plain(place, at: place + 1)
            message.account = "Ann"
            message.text = "words \(place)"
            return message
        }
        var reaction = StoredMessage.plain(3, at: 4)
        reaction.kind = .event
        reaction.text = "TAGMSG"
        reaction.clientTags = [StoredTag(name: StoredMessage.replyTag, value: row(1).msgid)]
        let rows = [row(0), row(1), row(2), reaction]
        await stage.submitAndSettle(
            rows.map { .message(Self.ours, $0) } + [.message(Self.theirs, row(1))])
        await stage.submitAndSettle([.takeBack(Self.ours, msgid: row(1).msgid)])
        var gone = row(1)
        gone.takeBack()
        reaction.takeBack()
        #expect(try await stage.messages(Self.ours) == [row(0), gone, row(2), reaction])
        #expect(try await stage.messages(Self.theirs) == [row(1)])
        // The query of a user who wants to redact it.
        let query = StoredPageQuery(.around(.message(row(1).msgid)), limit: 1, withTakenBack: true)
        #expect(try await ask { stage.store.findPlaces(Self.ours, query, $0) }.sequences == [1])
        for (text, found) in [("words 1", []), ("words", [row(0), row(2)])] as [(String, [StoredMessage])] {
            let search = StoredSearch(text: text, limit: 9)
            #expect(try await ask { stage.store.search(Self.ours, search, $0) }.found == found)
        }
        await stage.submitAndSettle([.restore(Self.ours, msgid: row(1).msgid)])
        var again = reaction
        again.text = "TAGMSG"
        again.clientTags = [StoredTag(name: StoredMessage.replyTag, value: row(1).msgid)]
        again.isTakenBack = false
        #expect(
            try await stage.messages(Self.ours) == [row(0), row(1), row(2), again], "unless it was refused at once")
        let state = try reopened(stage)
        let known = state.conversations.first { $0.key == Self.ours }
        #expect(known?.nextSequence == 4 && known?.newestAt == row(2).at && known?.speakers == ["Ann"])
    }

    @Test("a conversation of which everything was taken back is still one")
    func allTakenBack() async throws {
        let stage = try StoreStage()
        await stage.submitAndSettle([
            .message(Self.ours, .plain(0, at: 1)), .takeBack(Self.ours, msgid: StoredMessage.plain(0).msgid),
            .takeBack(Self.ours, msgid: "never"), .takeBack(Self.theirs, msgid: "never"),
        ])
        #expect(
            try reopened(stage).conversations == [
                StoredConversation(key: Self.ours, newestAt: ChatTimestamp(milliseconds: 1), nextSequence: 1)
            ])
    }

    @Test("what somebody left of whom another has the name now is nobody's, in all rooms")
    func forgottenAuthor() async throws {
        let stage = try StoreStage()
        let (bob, ann, nobody) = (ChatID("BOB-ID"), ChatID("ANN-ID"), ChatID("NOBODY"))
        let privately = StoredRoomKey(backend: "", room: "")
        func mark(_ reader: String) -> StoredMarker {
            StoredMarker(reader: ChatID(reader), at: ChatTimestamp(milliseconds: 1), sequence: 0)
        }
        func receipt(_ author: ChatID) -> StoredReceipt {
            StoredReceipt(author: author, reader: ChatPerson(name: "remy"), deliveredSequence: 1, readSequence: 1)
        }
        func entry(_ id: String, _ author: ChatID, _ room: StoredRoomKey) -> StoredOutboxEntry {
            StoredOutboxEntry(
                id: ChatID(id), room: room, sender: ChatPerson(id: author), sentAs: id,
                acceptedAt: ChatTimestamp(milliseconds: 1), author: author, nick: "bob", source: "bob!u@h",
                account: "bob", client: "phone", text: id, state: .queued)
        }
        var operations: [StoreOperation] = [
            .marker(privately, mark("BOB-ID zoe")), .marker(privately, mark("BOB-IDX zoe")),
            .marker(privately, mark("ANN-ID bob")),
        ]
        for (room, number) in [(StoredRoomKey.lobby, 1), (.attic, 2)] {
            operations += [
                .marker(room, mark("BOB-ID")), .marker(room, mark("ANN-ID")), .receipt(room, receipt(bob)),
                .receipt(room, receipt(ann)), .accept(entry("waits\(number)", bob, room)),
                .accept(entry("failed\(number)", bob, room)), .accept(entry("ann's\(number)", ann, room)),
                .outboxState(ChatID("failed\(number)"), .failed, confirmedPieces: 0, reason: "no"),
            ]
        }
        await stage.submitAndSettle(operations)
        await stage.submitAndSettle([.removeAuthor(bob, as: nobody)])
        let state = try reopened(stage)
        #expect(Set(state.rooms[privately]?.markers.map(\.reader.rawValue) ?? []) == ["ANN-ID bob", "BOB-IDX zoe"])
        for room in [StoredRoomKey.lobby, .attic] {
            let left = try #require(state.rooms[room])
            #expect(left.markers.map(\.reader) == [ann] && left.receipts.map(\.author) == [ann])
            #expect(left.outbox.map(\.author) == [nobody, nobody, ann])
            #expect(left.outbox.map(\.client) == [nil, nil, "phone"])
            #expect(left.outbox.map(\.sender.id) == [bob, bob, ann])
            #expect(left.outbox.map(\.state) == [.queued, .told, .queued])
        }
    }

    @Test("a conversation has so many messages and no more")
    func bounded() async throws {
        let stage = try StoreStage()
        let count = StoredConversation.maxMessages + 200
        await stage.submitAndSettle((0..<count).map { .message(Self.ours, .plain($0)) })
        let kept = try await stage.count(Self.ours)
        #expect(kept >= Int(StoredConversation.maxMessages) && kept < Int(StoredConversation.maxMessages) + 64)
        #expect(try await stage.messages(Self.ours, after: count - 2) == [.plain(count - 1)])
    }

    private func long(_ place: Int64, _ count: Int) -> StoredMessage {
        var message = StoredMessage.plain(place)
        message.text = String(repeating: "\u{E9}", count: count / 2)
        return message
    }

    @Test("a conversation has so many bytes and no more, whatever the messages are, in the next process too")
    func boundedInBytes() async throws {
        let folder = try StoreFolder()
        let limits = StoreConversationBounds.Limits(conversation: 100_000, account: 1_000_000)
        var kept: [StoredMessage] = []
        for process in 0..<2 as Range<Int64> {
            let stage = try StoreStage(folder) { $0.conversationLimits = limits }
            let begin = process * 100
            for place in begin..<(begin + 100) {
                await stage.submitAndSettle([.message(Self.ours, long(place, 4000))])
            }
            await stage.submitAndSettle([.message(Self.theirs, .plain(begin))])
            kept = try await stage.messages(Self.ours)
            let bytes = kept.reduce(0) { $0 + StoredConversation.byteCount(of: $1) }
            #expect(bytes <= limits.conversation && bytes > limits.conversation / 16 * 14)
            #expect(kept.last?.sequence == begin + 99)
            #expect(kept.map(\.sequence) == Array((begin + 100 - Int64(kept.count))..<(begin + 100)))
            #expect(try await stage.count(Self.theirs) == Int(process) + 1)
            stage.store.close(within: .seconds(10))
        }
        // One message that is more than all may be is there until the next one.
        let stage = try StoreStage(folder) { $0.conversationLimits = limits }
        await stage.submitAndSettle([.message(Self.ours, long(1000, 200_000))])
        #expect(try await stage.messages(Self.ours).map(\.sequence) == [1000])
        await stage.submitAndSettle([.message(Self.ours, long(1001, 10))])
        #expect(try await stage.messages(Self.ours).map(\.sequence) == [1001])
    }

    @Test("an account has so many bytes and no more: the largest of its conversations give, the small ones stay")
    func accountBoundedInBytes() async throws {
        let limits = StoreConversationBounds.Limits(conversation: 100_000, account: 200_000)
        let stage = try StoreStage { $0.conversationLimits = limits }
        let small = StoredRoomKey.conversation("ann", "mallory")
        let others = (0..<5).map { StoredRoomKey.conversation("mallory", " v\($0)") }
        // A user whose name only begins or ends the same is another one.
        let strangers = [StoredRoomKey.conversation("mallory2", "ann"), .conversation("zmallory", "ann")]
        await stage.submitAndSettle(([small] + strangers).map { .message($0, long(0, 1000)) })
        for place in 0..<40 as Range<Int64> {
            await stage.submitAndSettle(others.map { .message($0, long(place, 4000)) })
        }
        var sum: Int64 = 0
        for key in others {
            let kept = try await stage.messages(key)
            let bytes = kept.reduce(0) { $0 + StoredConversation.byteCount(of: $1) }
            #expect(kept.last?.sequence == 39 && bytes > limits.account / 8 && bytes < limits.account / 3)
            sum += bytes
        }
        #expect(sum <= limits.account && sum > limits.account / 16 * 13)
        for key in [small] + strangers { #expect(try await stage.count(key) == 1) }
    }

    @Test("of a conversation whose messages are all too old the next bridge hears that it is empty")
    func aged() async throws {
        let stage = try StoreStage { $0.retention = .seconds(7200) }
        let (old, done) = (StoreStage.someTime - 3 * 3_600_000, StoredRoomKey.conversation("ann", "dora"))
        // Of one only the events are left.
        var event = StoredMessage.plain(1)
        event.kind = .event
        await stage.submitAndSettle([
            .message(Self.ours, .plain(0, at: old)), .message(done, .plain(0, at: old)), .message(done, event),
            .message(Self.theirs, .plain(0)),
        ])
        await stage.removeOld()
        #expect(try await stage.count(Self.ours) == 0)
        #expect(try await stage.count(done) == 1)
        let found = try reopened(stage).conversations
        #expect(found.map(\.key) == [Self.theirs, Self.ours, done])
        #expect(found.map { $0.newestAt != nil } == [true, false, false])
        #expect(found.map(\.nextSequence) == [1, 1, 2])
    }

    @Test("of a nick the last account counts, and the order in which they were entered")
    func nicks() async throws {
        let stage = try StoreStage()
        func nick(_ name: String, _ account: String) -> StoredNick {
            StoredNick(folded: name, nick: name.uppercased(), account: account)
        }
        await stage.submitAndSettle([
            .nick(nick("a", "ann")), .nick(nick("b", "ann")), .nick(nick("c", "ann")), .nick(nick("a", "bob")),
            .removeNick(folded: "b"), .removeNick(folded: "never"),
        ])
        #expect(try reopened(stage).nicks == [nick("c", "ann"), nick("a", "bob")])
    }

    @Test("what an account chose is kept as a whole, and nothing of who chose nothing")
    func choices() async throws {
        let stage = try StoreStage()
        let some = StoredChoices(
            account: "ann", receipts: "off", wantsNotices: true, rejoins: true,
            mutes: [
                StoredMute(target: .remote(backend: "b", ChatPerson(id: ChatID("1"), name: nil)), nick: "Remy"),
                StoredMute(target: .remote(backend: "b", ChatPerson(id: nil, name: "Lin")), nick: "Lin"),
                StoredMute(target: .account("bob"), nick: "bobby"), StoredMute(target: .nick("cleo"), nick: "Cleo"),
            ])
        let other = StoredChoices(account: "bob", receipts: "marker")
        await stage.submitAndSettle([.choices(StoredChoices(account: "ann", receipts: "marker")), .choices(other)])
        await stage.submitAndSettle([.choices(some), .choices(StoredChoices(account: "bob"))])
        #expect(try reopened(stage).choices == [some])
    }

    @Test("rooms of accounts come in the order in which they were entered, and go by account, backend and room")
    func memberships() async throws {
        let stage = try StoreStage()
        func membership(
            _ account: String, _ room: String, _ position: Int64, backend: String = "b", channel: String? = nil
        ) -> StoredMembership {
            StoredMembership(
                account: account, room: StoredRoomKey(backend: backend, room: room), channel: channel ?? "#" + room,
                position: position)
        }
        await stage.submitAndSettle([
            .membership(membership("bob", "x", 1)), .membership(membership("ann", "z", 1)),
            .membership(membership("ann", "y", 2)), .membership(membership("ann", "y", 3, backend: "other")),
            .membership(membership("ann", "a", 4)), .membership(membership("ann", "z", 1, channel: "#zoo")),
        ])
        await stage.submitAndSettle([
            .endMembership(account: "ann", StoredRoomKey(backend: "b", room: "y")),
            .endMembership(account: "cleo", StoredRoomKey(backend: "b", room: "z")),
        ])
        #expect(
            try reopened(stage).memberships == [
                membership("ann", "z", 1, channel: "#zoo"), membership("ann", "y", 3, backend: "other"),
                membership("ann", "a", 4), membership("bob", "x", 1),
            ])
    }
}
