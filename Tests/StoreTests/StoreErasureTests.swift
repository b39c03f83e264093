import ChatModel
import Foundation
import Testing

@testable import Store

/// The erasure of a person: what stays, and what is nowhere in the files.
@Suite("Store: erasure")
struct StoreErasureTests {
    private static let own = ChatID("11111111-2222-4333-8444-555555555555")
    private static let ada = StoredPerson.account("ada", ids: [own])
    private static let pia = StoredPerson.upstream(backend: "b", ChatPerson(id: ChatID("pia"), name: "pia"))

    private static func words(_ number: Int64) -> String {
        "unspeakable-\(number)-" + String(repeating: "w", count: 300)
    }

    /// A message of the account, or of an upstream user.
    private static func message(_ number: Int64, by account: String? = "Ada", sender: String? = nil) -> StoredMessage {
        var message = StoredMessage.plain(number, text: words(number))
        (message.account, message.author) = (account, account == nil ? nil : ChatID("of-\(account ?? "")"))
        message.sender = ChatPerson(id: ChatID(sender ?? "shared"), name: "unspeakable-name")
        (message.nick, message.source) = ("unspeakable-nick", "unspeakable-nick!u@h")
        message.client = "unspeakable-client"
        message.upstreamID = ChatID("up\(number)")
        message.sentAs = words(number) + " as it went"
        message.attachments = [ChatAttachment(kind: .image, url: "https://h/unspeakable.png")]
        message.clientTags = [StoredTag(name: "+x", value: "unspeakable-tag")]
        return message
    }

    private static func change(_ number: Int64, of msgid: String, kind: StoredMessage.Kind = .change) -> StoredMessage {
        var change = StoredMessage.plain(number, text: "*** changed to unspeakable-change")
        change.kind = kind
        change.clientTags = [StoredTag(name: StoredMessage.replyTag, value: msgid)]
        return change
    }

    private func erase(_ person: StoredPerson, _ stage: StoreStage) async throws -> StoredErasure {
        try await ask { stage.store.erase(person, $0) }
    }

    /// How often the words stand in the files of the database.
    private func traces(_ folder: StoreFolder, of word: String = "unspeakable") throws -> Int {
        try folder.names.reduce(0) { count, name in
            // Not Data.range(of:), which takes minutes for these sizes without optimization.
            try Data(contentsOf: URL(fileURLWithPath: folder.file(name))).withUnsafeBytes { bytes in
                guard var place = bytes.baseAddress, let first = word.utf8.first else { return count }
                let end = place + bytes.count
                var found = count
                while let match = memchr(place, Int32(first), end - place).map({ UnsafeRawPointer($0) }) {
                    if end - match >= word.utf8.count, memcmp(match, word, word.utf8.count) == 0 { found += 1 }
                    place = match + 1
                }
                return found
            }
        }
    }

    @Test("messages lose words and author, with what was done to them; ids, times and places stay")
    func account() async throws {
        let stage = try StoreStage()
        let bob = Self.message(3, by: "bob")
        await stage.submitAndSettle([
            .message(.lobby, Self.message(1)), .message(.lobby, Self.change(2, of: "m1")), .message(.lobby, bob),
            .message(.lobby, Self.change(4, of: "m3", kind: .event)), .message(.attic, Self.message(5)),
        ])
        let before = try await stage.messages(.lobby)
        let erased = try await erase(Self.ada, stage)
        #expect(erased.messages == 2 && erased.actions == 1)
        let after = try await stage.messages(.lobby)
        var expected = before
        expected[0].erase()
        expected[1].erase()
        #expect(after == expected)
        #expect(after[0].upstreamID == ChatID("up1") && after[0].author == .erased && after[0].isTakenBack)
        #expect(try await stage.messages(.attic).map(\.isErased) == [true])
        #expect(try await erase(Self.ada, stage) == StoredErasure())
    }

    @Test("an upstream user is found by the id on that backend alone, with the row of the nick and what they have read")
    func upstream() async throws {
        let stage = try StoreStage()
        let elsewhere = StoredRoomKey(backend: "c", room: "lobby")
        let person = ChatPerson(id: ChatID("pia"))
        await stage.submitAndSettle([
            .message(.lobby, Self.message(1, by: nil, sender: "pia")),
            .message(.lobby, Self.message(2, by: nil, sender: "remy")),
            .message(elsewhere, Self.message(1, by: nil, sender: "pia")),
            .receipt(.lobby, StoredReceipt(author: Self.own, reader: person, deliveredSequence: 1, readSequence: 1)),
            .identity(
                StoredIdentity(
                    backend: "b", person: person, nick: "unspeakable-nick", realname: "Pia",
                    lastSeen: ChatTimestamp(milliseconds: 0))),
        ])
        let erased = try await erase(Self.pia, stage)
        #expect(erased.messages == 1 && erased.records == 2)
        #expect(try await stage.messages(.lobby).map(\.isErased) == [true, false])
        #expect(try await stage.messages(elsewhere).map(\.isErased) == [false])
        #expect(try await stage.room(.lobby).receipts.isEmpty)
    }

    @Test("positions, memberships, preferences, conversations and given-up messages go; what waits stays")
    func records() async throws {
        let stage = try StoreStage()
        let now = ChatTimestamp(milliseconds: StoreStage.someTime)
        let talk = StoredRoomKey.conversation("ada", "bob")
        var waiting = StoredOutboxEntry.plain("w")
        waiting.author = Self.own
        var failed = StoredOutboxEntry.plain("f", state: .failed, text: Self.words(9))
        failed.author = Self.own
        await stage.submitAndSettle([
            .accept(waiting), .accept(failed), .message(talk, Self.message(1)),
            .marker(.lobby, StoredMarker(reader: Self.own, at: now, sequence: 0)),
            .cursor(StoredCursor(account: "ada", client: "phone", room: .lobby, sequence: 0)),
            .cursor(StoredCursor(account: "bob", client: "phone", room: .lobby, sequence: 0)),
            .membership(StoredMembership(account: "Ada", room: .lobby, channel: "#lobby", position: 1)),
            .choices(StoredChoices(account: "ada", wantsNotices: true)),
            .nick(StoredNick(folded: "ada_", nick: "ada_", account: "Ada")),
        ])
        let erased = try await erase(Self.ada, stage)
        #expect(erased.conversations == 1 && erased.records == 5)
        let room = try await stage.room(.lobby)
        #expect(room.markers.isEmpty && room.outbox.map(\.author) == [.erased] && room.outbox.map(\.text) == ["hello"])
        stage.store.close(within: .seconds(10))
        let left = try stored(stage.folder)
        #expect(left.cursors.map(\.account) == ["bob"] && left.memberships.isEmpty && left.choices.isEmpty)
        #expect(left.conversations.isEmpty && left.nicks.isEmpty)
    }

    @Test("afterwards the words are nowhere in the files, not in free pages and not in the log")
    func bytes() async throws {
        let stage = try StoreStage()
        // Removed before: their pages are free.
        await stage.submitAndSettle((0..<3000).map { .message(.conversation("x", "y"), Self.message($0)) })
        await stage.submitAndSettle([.removeConversation(.conversation("x", "y"))])
        for start in stride(from: Int64(0), to: 5000, by: 500) {
            await stage.submitAndSettle((start..<start + 500).map { .message(.lobby, Self.message($0)) })
        }
        await stage.submitAndSettle([.takeBack(.lobby, msgid: "m7"), .message(.lobby, Self.change(5001, of: "m4"))])
        #expect(try traces(stage.folder) > 5000)
        let erased = try await erase(Self.ada, stage)
        #expect(erased.messages == 5000 && erased.actions == 1)
        #expect(try traces(stage.folder) == 0)
        #expect(try await stage.count(.lobby) == 5001)
        await stage.submitAndSettle([.message(.lobby, .plain(6000))])
        #expect(try await stage.messages(.lobby, after: 5999).map(\.text) == ["text 6000"])
    }

    @Test("one that is interrupted at any step is completed by the next")
    func interrupted() async throws {
        for steps in 1..<9 {
            let stage = try StoreStage()
            await stage.submitAndSettle([
                .message(.lobby, Self.message(1)), .message(.lobby, Self.change(2, of: "m1")),
                .message(.attic, Self.message(3)), .message(.attic, .plain(4)),
            ])
            await stage.onWriter { writer in
                do {
                    var eraser = try StoreEraser(Self.ada, after: StoreTicket(rawValue: 0), writer.connection)
                    for _ in 0..<steps where !eraser.isScrubbing { try eraser.step(writer.changes) }
                } catch {
                    Issue.record("\(error)")
                }
            }
            _ = try await erase(Self.ada, stage)
            #expect(try await stage.messages(.lobby).map(\.isErased) == [true, true], "\(steps)")
            #expect(try await stage.messages(.attic).map(\.isErased) == [true, false], "\(steps)")
            #expect(try traces(stage.folder) == 0, "\(steps)")
        }
    }

    @Test("one that fails for a full disk is completed by the same command, once there is room")
    func fullDisk() async throws {
        let stage = try StoreStage()
        await stage.submitAndSettle([.message(.lobby, Self.message(1))])
        await stage.sql("PRAGMA max_page_count = 1")
        // Written before it, and too long for the rest of the file.
        stage.submit([.message(.lobby, .plain(2, text: String(repeating: "x", count: 50_000)))])
        await #expect(throws: StoreFailure.self) { try await erase(Self.ada, stage) }
        #expect(try await stage.messages(.lobby).map(\.isErased) == [false, false])
        await stage.sql("PRAGMA max_page_count = 1000000")
        await stage.settle()
        #expect(stage.conditions == [.failing("the disk is full"), .sound])
        #expect(try await erase(Self.ada, stage).messages == 1)
        #expect(try await stage.messages(.lobby).map(\.isErased) == [true, false])
        #expect(try traces(stage.folder) == 0)
    }

    @Test("a program that reads the database all the time makes it incomplete, and it says so")
    func reader() async throws {
        let stage = try StoreStage()
        await stage.submitAndSettle([.message(.lobby, Self.message(1))])
        let reading = try SQLiteConnection(
            path: stage.folder.file("a.db"), isReadOnly: true, isExclusive: false, busyMilliseconds: 0)
        try reading.execute("BEGIN")
        _ = try reading.integer("SELECT count(*) FROM messages")
        await #expect(throws: StoreFailure.self) { try await erase(Self.ada, stage) }
        reading.close()
        #expect(try await erase(Self.ada, stage) == StoredErasure())
        #expect(try traces(stage.folder) == 0)
    }
}
