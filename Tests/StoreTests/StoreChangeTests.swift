import ChatModel
import Testing

@testable import Store

@Suite("What changes do")
struct StoreChangeTests {
    struct Case: CustomTestStringConvertible {
        var testDescription: String
        var changes: [StoreOperation]
        /// Of the lobby.
        var outcome: (inout StoredRoom) -> Void
        var reason: String?
    }

    private static let upper = "0E5A7F3C-1111-4222-8333-ABCDEFABCDEF"
    private static let lower = "0e5a7f3c-1111-4222-8333-abcdefabcdef"

    private static func person(_ id: String) -> ChatPerson { ChatPerson(id: ChatID(id)) }

    /// Each begins with messages 0 and 1 and the accepted `x` in the lobby.
    private static let base: [StoreOperation] = [
        .message(.lobby, .plain(0)), .message(.lobby, .plain(1)), .accept(.plain("x")),
    ]

    nonisolated(unsafe) static let cases: [Case] = [
        Case(testDescription: "a message whose msgid is known moves to the new place") { room in
            room.messages = [.plain(1), StoredMessage(moved: 7)]
            room.nextSequence = 8
        } changes: {
            [.message(.lobby, StoredMessage(moved: 7))]
        },
        Case(testDescription: "the same message again at its place replaces it") { room in
            room.messages[0].text = "new"
        } changes: {
            [.message(.lobby, .plain(0, text: "new"))]
        },
        Case(testDescription: "a second message at a taken place is left out, and the others are kept") { room in
            room.messages.append(.plain(2))
            room.nextSequence = 3
        } changes: {
            var other = StoredMessage.plain(1)
            other.msgid = "other"
            return [.message(.lobby, other), .message(.lobby, .plain(2))]
        } reason: {
            "UNIQUE"
        },
        Case(testDescription: "the backend's id becomes known") { room in
            room.messages[1].upstreamID = ChatID("u1")
        } changes: {
            [.learn(.lobby, msgid: "m1", upstreamID: ChatID("u1"))]
        },
        Case(testDescription: "an edit changes the text") { room in
            room.messages[1].text = "better"
        } changes: {
            [.edit(.lobby, msgid: "m1", text: "better")]
        },
        Case(testDescription: "an edit replaces what went up, too") { room in
            room.messages[1].text = "better"
        } changes: {
            var message = StoredMessage.plain(1)
            message.sentAs = "alice: as it went"
            return [.message(.lobby, message), .edit(.lobby, msgid: "m1", text: "better")]
        },
        Case(testDescription: "what is taken back loses its words, keeps its place, and is not edited any more") {
            room in
            room.messages[1].text = ""
            room.messages[1].isTakenBack = true
        } changes: {
            var message = StoredMessage.plain(1)
            message.sentAs = "as it went"
            message.attachments = [ChatAttachment(kind: .image, url: "https://h/x.png")]
            message.clientTags = [StoredTag(name: "+x", value: "words")]
            return [
                .message(.lobby, message), .takeBack(.lobby, msgid: "m1"), .edit(.lobby, msgid: "m1", text: "again"),
            ]
        },
        Case(testDescription: "what was not taken back after all is as it was, once") { room in
            room.messages[1].sentAs = "as it went"
            room.messages[1].attachments = [ChatAttachment(kind: .image, url: "https://h/x.png")]
            room.messages[1].clientTags = [StoredTag(name: "+x", value: "words")]
        } changes: {
            var message = StoredMessage.plain(1)
            message.sentAs = "as it went"
            message.attachments = [ChatAttachment(kind: .image, url: "https://h/x.png")]
            message.clientTags = [StoredTag(name: "+x", value: "words")]
            return [
                .message(.lobby, message), .takeBack(.lobby, msgid: "m1"), .takeBack(.lobby, msgid: "m1"),
                .restore(.attic, msgid: "m1"), .restore(.lobby, msgid: "m1"), .restore(.lobby, msgid: "m1"),
            ]
        },
        Case(testDescription: "of more than a few nothing comes back") { room in
            for index in room.messages.indices where room.messages[index].msgid == "m1" {
                room.messages[index].takeBack()
            }
        } changes: {
            let others = (0..<Int64(RedactedContent.capacity)).map { StoredMessage.plain(100 + $0) }
            return [.message(.lobby, .plain(1)), .takeBack(.lobby, msgid: "m1")]
                + others.flatMap { other -> [StoreOperation] in
                    [
                        .message(.attic, other), .takeBack(.attic, msgid: other.msgid),
                    ]
                } + [.restore(.lobby, msgid: "m1")]
        },
        Case(testDescription: "changes of what is not kept change nothing") { _ in
        } changes: {
            [
                .learn(.lobby, msgid: "m9", upstreamID: ChatID("u")), .edit(.lobby, msgid: "m9", text: "?"),
                .takeBack(.lobby, msgid: "m9"), .restore(.lobby, msgid: "m9"), .edit(.attic, msgid: "m1", text: "?"),
                .takeBack(.attic, msgid: "m1"),
                .learn(.attic, msgid: "m1", upstreamID: ChatID("u")), .leaveOutbox(ChatID("y")),
                .outboxState(ChatID("y"), .told, confirmedPieces: 3, reason: "?"),
                .removeIdentity(backend: "b", person("nobody")),
                .dropCursor(account: "a", client: "c", .lobby), .dropCursor(account: "a", client: "c", .attic),
            ]
        },
        Case(testDescription: "what is known of an accepted message changes") { room in
            room.outbox[0].state = .failed
            room.outbox[0].confirmedPieces = 2
            room.outbox[0].reason = "too old"
        } changes: {
            [
                .outboxState(ChatID("x"), .written, confirmedPieces: 1, reason: nil),
                .outboxState(ChatID("x"), .failed, confirmedPieces: 2, reason: "too old"),
            ]
        },
        Case(testDescription: "an accepted message leaves the outbox") { room in
            room.outbox = []
        } changes: {
            [.leaveOutbox(ChatID("x"))]
        },
        Case(testDescription: "an accepted UUID is the same in either case, and keeps its spelling") { room in
            room.outbox.append(.plain(lower, state: .written))
        } changes: {
            [
                .accept(.plain(lower)), .outboxState(ChatID(upper), .written, confirmedPieces: 0, reason: nil),
                .accept(.plain("0e5a7f3c-1111-4222-8333-000000000001")),
                .leaveOutbox(ChatID("0E5A7F3C-1111-4222-8333-000000000001")),
            ]
        },
        Case(testDescription: "how far somebody has read is kept once for each person") { room in
            room.markers = [
                StoredMarker(reader: ChatID(lower), at: ChatTimestamp(milliseconds: 2), sequence: 1)
            ]
        } changes: {
            [
                .marker(.lobby, StoredMarker(reader: ChatID(upper), at: ChatTimestamp(milliseconds: 1), sequence: 0)),
                .marker(.lobby, StoredMarker(reader: ChatID(lower), at: ChatTimestamp(milliseconds: 2), sequence: 1)),
            ]
        },
        Case(testDescription: "who received what is kept once for each author and reader") { room in
            room.receipts = [
                StoredReceipt(author: ChatID("a"), reader: person("r"), deliveredSequence: 1, readSequence: 0),
                StoredReceipt(
                    author: ChatID("a"), reader: ChatPerson(name: "r"), deliveredSequence: 0, readSequence: -1),
            ]
        } changes: {
            [
                .receipt(
                    .lobby,
                    StoredReceipt(author: ChatID("a"), reader: person("r"), deliveredSequence: 0, readSequence: -1)),
                .receipt(
                    .lobby,
                    StoredReceipt(
                        author: ChatID("a"), reader: ChatPerson(name: "r"), deliveredSequence: 0, readSequence: -1)),
                .receipt(
                    .lobby,
                    StoredReceipt(author: ChatID("a"), reader: person("r"), deliveredSequence: 1, readSequence: 0)),
            ]
        },
        Case(testDescription: "how far a room was heard is what was said last, even when the clock went back") { room in
            room.liveUntil = ChatTimestamp(milliseconds: 50)
        } changes: {
            [
                .live(.lobby, until: ChatTimestamp(milliseconds: 100)),
                .live(.lobby, until: ChatTimestamp(milliseconds: 50)),
            ]
        },
        Case(testDescription: "a cursor beyond all messages keeps its places from being given again") { room in
            room.nextSequence = 42
        } changes: {
            [.cursor(StoredCursor(account: "a", client: "c", room: .lobby, sequence: 41))]
        },
        Case(testDescription: "the last place that there is does not overflow") { room in
            room.messages.append(.plain(.max))
            room.nextSequence = .max
        } changes: {
            [.message(.lobby, .plain(.max))]
        },
    ]

    @Test("change by change", arguments: cases.indices)
    func changes(_ index: Int) async throws {
        let row = Self.cases[index]
        let stage = try StoreStage()
        await stage.submitAndSettle(Self.base)
        var wanted = try await stage.room(.lobby)
        #expect(wanted.messages.count == 2 && wanted.outbox.count == 1, "\(row.testDescription)")
        row.outcome(&wanted)
        await stage.submitAndSettle(row.changes)
        #expect(try await stage.room(.lobby) == wanted, "\(row.testDescription)")
        #expect(stage.refused == [])
        #expect(stage.reasons.count == (row.reason == nil ? 0 : 1))
        if let reason = row.reason { #expect(stage.reasons.first?.contains(reason) == true) }
    }

    @Test("an id that is accepted already is refused, with the rest of its order kept")
    func acceptedTwice() async throws {
        let stage = try StoreStage()
        await stage.submitAndSettle([.accept(.plain("x", text: "first"))])
        stage.submit([.message(.lobby, .plain(0)), .accept(.plain("x", text: "second"))])
        stage.submit([.accept(.plain("y"))])
        await stage.settle()
        #expect(stage.refused == [2])
        let room = try await stage.room(.lobby)
        #expect(room.outbox.map(\.text) == ["first", "hello"])
        #expect(room.messages == [.plain(0)])
    }

    @Test("the outbox is in the order of acceptance, whatever the ids are")
    func order() async throws {
        let stage = try StoreStage()
        for index in 0..<100 {
            stage.submit([.accept(.plain("\((index * 37) % 100)", in: index % 2 == 0 ? .lobby : .attic))])
        }
        await stage.settle()
        let (lobby, attic) = (try await stage.room(.lobby), try await stage.room(.attic))
        #expect(lobby.outbox.map(\.id.rawValue) == stride(from: 0, to: 100, by: 2).map { "\(($0 * 37) % 100)" })
        #expect(attic.outbox.map(\.id.rawValue) == stride(from: 1, to: 100, by: 2).map { "\(($0 * 37) % 100)" })
    }

    @Test("of messages whose authors were told, the last 200 of a room are remembered")
    func told() async throws {
        let stage = try StoreStage()
        for index in 0..<250 {
            await stage.submitAndSettle([.accept(.plain("f\(index)", state: .failed))])
        }
        await stage.submitAndSettle([.accept(.plain("other", in: .attic, state: .failed))])
        await stage.submitAndSettle([.outboxState(ChatID("other"), .told, confirmedPieces: 0, reason: nil)])
        for index in 0..<240 {
            stage.submit([.outboxState(ChatID("f\(index)"), .told, confirmedPieces: 0, reason: "r")])
        }
        await stage.settle()
        let outbox = try await stage.room(.lobby).outbox
        #expect(outbox.filter { $0.state == .told }.map(\.id.rawValue) == (40..<240).map { "f\($0)" })
        #expect(outbox.filter { $0.state == .failed }.map(\.id.rawValue) == (240..<250).map { "f\($0)" })
        #expect(try await stage.room(.attic).outbox.map(\.state) == [.told])
    }

    @Test("somebody is known by their id whatever their name, or by their name alone")
    func identities() async throws {
        func identity(_ person: ChatPerson, _ nick: String, _ backend: String = "b") -> StoredIdentity {
            StoredIdentity(
                backend: backend, person: person, nick: nick, realname: "R", lastSeen: ChatTimestamp(milliseconds: 1))
        }
        let stage = try StoreStage()
        await stage.submitAndSettle([
            .identity(identity(ChatPerson(id: ChatID(Self.lower), name: "Old"), "one")),
            .identity(identity(ChatPerson(id: ChatID(Self.upper), name: "New"), "two")),
            .identity(identity(ChatPerson(name: "i" + Self.upper), "three")),
            .identity(identity(ChatPerson(name: "gone"), "four")),
            .identity(identity(ChatPerson(name: "gone"), "five", "c")),
            .identity(identity(ChatPerson(), "six")),
            .removeIdentity(backend: "b", ChatPerson(name: "gone")),
        ])
        stage.store.close(within: .seconds(10))
        let state = try stored(stage.folder)
        #expect(Set(state.identities.map(\.nick)) == ["two", "three", "five", "six"])
        #expect(state.identities.first { $0.nick == "two" }?.person == ChatPerson(id: ChatID(Self.lower), name: "New"))
        #expect(state.rooms.isEmpty)
    }

    @Test("an account is one for each name as it is written, and goes when it is forgotten")
    func accounts() async throws {
        func account(_ name: String, _ password: String, _ milliseconds: Int64) -> StoredAccount {
            StoredAccount(name: name, password: password, madeAt: ChatTimestamp(milliseconds: milliseconds))
        }
        let stage = try StoreStage()
        await stage.submitAndSettle([
            .account(account("late", "a", 3)), .account(account("early", "b", 1)), .account(account("gone", "c", 2)),
            .account(account("late", "d", 4)), .removeAccount(name: "gone"), .removeAccount(name: "never"),
        ])
        stage.store.close(within: .seconds(10))
        #expect(try stored(stage.folder).accounts == [account("early", "b", 1), account("late", "d", 4)])
    }

    @Test("a cursor is one for each account, client and room, and goes when it is dropped")
    func cursors() async throws {
        func cursor(_ account: String, _ client: String, _ room: StoredRoomKey, _ sequence: Int64) -> StoredCursor {
            StoredCursor(account: account, client: client, room: room, sequence: sequence)
        }
        let stage = try StoreStage()
        await stage.submitAndSettle([
            .cursor(cursor("a", "phone", .lobby, 1)), .cursor(cursor("a", "phone", .lobby, 2)),
            .cursor(cursor("a", "desk", .lobby, 3)), .cursor(cursor("a", "phone", .attic, 4)),
            .cursor(cursor("b", "phone", .lobby, 5)), .dropCursor(account: "a", client: "desk", .lobby),
        ])
        stage.store.close(within: .seconds(10))
        #expect(
            Set(try stored(stage.folder).cursors) == [
                cursor("a", "phone", .lobby, 2), cursor("a", "phone", .attic, 4), cursor("b", "phone", .lobby, 5),
            ])
    }
}

extension StoreChangeTests.Case {
    fileprivate init(
        testDescription: String, outcome: @escaping (inout StoredRoom) -> Void, changes: () -> [StoreOperation],
        reason: () -> String? = { nil }
    ) {
        self.init(testDescription: testDescription, changes: changes(), outcome: outcome, reason: reason())
    }
}

extension StoredMessage {
    /// Message 0 at another place.
    fileprivate init(moved sequence: Int64) {
        self = .plain(0)
        self.sequence = sequence
    }
}
