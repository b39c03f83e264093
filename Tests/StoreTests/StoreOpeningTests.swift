import CSQLite
import ChatModel
import Foundation
import Glibc
import Testing

@testable import Store

@Suite("A store opens what it can, and says what it cannot")
struct StoreOpeningTests {
    private func open(_ folder: StoreFolder, _ name: String = "a.db") throws -> (Store, StoreOpening) {
        try Store.open(StoreSettings(path: folder.file(name)), wallClockMilliseconds: StoreStage.someTime)
    }

    /// Makes a database by SQL.
    private func make(_ path: String, _ sql: String) throws {
        var handle: OpaquePointer?
        #expect(sqlite3_open(path, &handle) == SQLITE_OK)
        let result = sqlite3_exec(handle, sql, nil, nil, nil)
        #expect(result == SQLITE_OK, "\(String(cString: sqlite3_errmsg(handle)))")
        sqlite3_close(handle)
    }

    private func sentence(_ body: () throws -> Void) -> String {
        do {
            try body()
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test("the file is the owner's alone, also one that was not")
    func mode() throws {
        let folder = try StoreFolder()
        func modes() throws -> [String: Int] {
            try Dictionary(
                uniqueKeysWithValues: folder.names.map {
                    let attributes = try FileManager.default.attributesOfItem(atPath: folder.file($0))
                    return ($0, (attributes[.posixPermissions] as? Int ?? -1) & 0o777)
                })
        }
        #expect(
            FileManager.default.createFile(
                atPath: folder.file("a.db"), contents: nil, attributes: [.posixPermissions: 0o644]))
        let (store, opening) = try open(folder)
        #expect(opening == StoreOpening())
        #expect(try modes() == ["a.db": 0o600, "a.db-shm": 0o600, "a.db-wal": 0o600, "a.db.lock": 0o600])
        store.close(within: .seconds(1))
    }

    @Test("two cannot have one file, and the second hears so; afterwards it may")
    func inUse() throws {
        let folder = try StoreFolder()
        let (store, _) = try open(folder)
        #expect(throws: StoreOpenError.inUse(path: folder.file("a.db"))) { try open(folder) }
        #expect(
            sentence { _ = try open(folder) }
                == "The database \(folder.file("a.db")) is in use by another process. Two cannot share one file.")
        store.close(within: .seconds(1))
        try open(folder).0.close(within: .seconds(1))
    }

    @Test("a child that was made while it was open does not keep the file")
    func inherited() throws {
        let folder = try StoreFolder()
        let (store, _) = try open(folder)
        // The descriptors of a child between fork and exec.
        let lock = folder.file("a.db.lock")
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap(Int32.init)
        let mine = descriptors.filter {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == lock
        }
        let copy = dup(try #require(mine.first))
        defer { close(copy) }
        store.close(within: .seconds(1))
        try open(folder).0.close(within: .seconds(1))
    }

    @Test("another process has the file")
    func otherProcess() throws {
        let folder = try StoreFolder()
        // flock holds for an open file, whichever process has it.
        let other = Glibc.open(folder.file("a.db.lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(other >= 0)
        #expect(flock(other, LOCK_EX | LOCK_NB) == 0)
        #expect(throws: StoreOpenError.inUse(path: folder.file("a.db"))) { try open(folder) }
        close(other)
        try open(folder).0.close(within: .seconds(1))
    }

    /// Puts something in the way of the file that several processes share; answers its path.
    private func obstructShared(_ folder: StoreFolder) throws -> String {
        let path = folder.file("a.db-shm")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: folder.file("nothing"))
        return path
    }

    @Test("where the shared file cannot be made, as on a full disk, the store has the database for itself")
    func alone() async throws {
        let folder = try StoreFolder()
        do {
            let stage = try StoreStage(folder)
            await stage.submitAndSettle([.message(.lobby, .plain(0))])
            stage.store.close(within: .seconds(30))
        }
        let shared = try obstructShared(folder)
        let stage = try StoreStage(folder)
        let reason = "Too many levels of symbolic links"
        #expect(stage.opening == StoreOpening(exclusiveReason: reason))
        await stage.submitAndSettle([.message(.lobby, .plain(1))])
        await stage.submitAndSettle([.accept(.plain("a"))])
        #expect(stage.refused == [])
        #expect(try await stage.messages(.lobby) == [.plain(0), .plain(1)])
        // No other looks into it, and none begins anew beside it.
        let other = try SQLiteConnection(
            path: folder.file("a.db"), isReadOnly: true, isExclusive: false, busyMilliseconds: 0)
        #expect(throws: SQLiteError.self) { try other.integer("SELECT count(*) FROM message") }
        other.close()
        try folder.crashCopy(of: "a.db", as: "b.db")
        stage.store.close(within: .seconds(30))

        // Also the file that such a process leaves when it is killed.
        try FileManager.default.removeItem(atPath: shared)
        for name in ["a.db", "b.db"] {
            let next = try StoreStage(folder, name: name)
            #expect(next.opening == StoreOpening())
            #expect(try await next.messages(.lobby) == [.plain(0), .plain(1)])
            #expect(try await next.room(.lobby).outbox.count == 1)
            next.store.close(within: .seconds(30))
        }
    }

    @Test("a store that begins on a full disk says so before anybody wants something kept")
    func aloneAndFull() async throws {
        let folder = try StoreFolder()
        try StoreStage(folder).store.close(within: .seconds(30))
        _ = try obstructShared(folder)
        let stage = try StoreStage(folder) { $0.maxPageCount = 1 }
        await stage.condition(.failing("the disk is full"))
        await stage.sql("PRAGMA max_page_count = 1000000")
        await stage.condition(.sound)
    }

    // MARK: - Versions

    @Test("a file of every earlier version opens with everything in it", arguments: 1..<StoreSchema.version)
    func earlier(_ version: Int) async throws {
        let folder = try StoreFolder()
        let dump = try #require(Bundle.module.url(forResource: "Dumps/v\(version)", withExtension: "sql"))
        try make(folder.file("a.db"), String(decoding: try Data(contentsOf: dump), as: UTF8.self))
        let state = try stored(folder)

        let (lobby, attic) = (
            StoredRoomKey(backend: "chat", room: "lobby"), StoredRoomKey(backend: "chat", room: "attic")
        )
        func at(_ milliseconds: Int64) -> ChatTimestamp {
            ChatTimestamp(milliseconds: 1_750_000_000_000 + milliseconds)
        }
        let uuid = ChatID("0e5a7f3c-1111-4222-8333-abcdefabcdef")
        let messages = [
            StoredMessage(
                sequence: 4, msgid: "m4", upstreamID: uuid, sender: ChatPerson(id: ChatID("p1"), name: "Päivi"),
                at: at(0),
                backendAt: at(1), nick: "paivi", source: "paivi!p@chat", text: "hello",
                attachments: [ChatAttachment(kind: .image, url: "https://h/x.png", size: 12, duration: 1.5)],
                isEncrypted: true, replyTo: "m1"),
            StoredMessage(
                sequence: 5, msgid: "m5", sender: ChatPerson(id: ChatID("a"), name: "Ann"), at: at(100), nick: "ann",
                source: "ann!ann@host", account: "ann", text: "\u{1}ACTION waves\u{1}", sentAs: "* waves",
                clientTags: [StoredTag(name: "+x", value: "v"), StoredTag(name: "+y", value: nil)], author: ChatID("a"),
                client: "phone"),
            StoredMessage(
                kind: .gap, sequence: 6, msgid: "m6", at: at(400), gapFrom: at(200), nick: "bridge", source: "bridge",
                text: "*** missing"),
        ]
        let outbox = [
            StoredOutboxEntry(
                id: uuid, room: lobby, link: "ann", sender: ChatPerson(id: ChatID("a"), name: "Ann"), sentAs: "as sent",
                replyTo: uuid, acceptedAt: at(300), author: ChatID("a"), nick: "ann", source: "ann!ann@host",
                account: "ann", client: "phone", text: "as said", clientTags: [StoredTag(name: "+x", value: "v")],
                state: .failed, confirmedPieces: 1, reason: "too old"),
            StoredOutboxEntry(
                id: ChatID("second"), room: lobby, sender: ChatPerson(name: "Ann"), sentAs: "b", acceptedAt: at(301),
                author: ChatID("a"), nick: "ann", source: "ann!ann@host", text: "b", state: .written),
        ]
        let known = StoredReceipt(
            author: ChatID("b"), reader: ChatPerson(id: ChatID("r1"), name: "Remy"), deliveredSequence: 5,
            readSequence: 4)
        let earlier = version < 3 ? [] : [StoredAccount(name: "bea", password: "hash of hers", madeAt: at(600))]
        let nicks = version < 4 ? [] : [StoredNick(folded: "beatrix", nick: "Beatrix", account: "bea")]
        let memberships =
            version < 5 ? [] : [StoredMembership(account: "bea", room: lobby, channel: "#lobby", position: 0)]
        let mirrored =
            version < 8
            ? [] : [StoredMirrored(mirror: "team", room: lobby, msgid: "m4", toolID: "17", isTheirs: true)]
        let bookmarks =
            version < 9 ? [] : [StoredBookmark(mirror: "team", subject: "batch lobby", place: "4")]
        let choices =
            version < 4
            ? []
            : [
                StoredChoices(
                    account: "bea", receipts: "off", wantsNotices: true,
                    mutes: [StoredMute(target: .nick("cleo"), nick: "Cleo")])
            ]
        #expect(
            state
                == StoredState(
                    rooms: [
                        lobby: StoredRoom(
                            messages: messages, outbox: outbox,
                            markers: [StoredMarker(reader: ChatID("a"), at: at(350), sequence: 5)],
                            receipts: version < 2 ? [] : [known], liveUntil: at(500), nextSequence: 7),
                        attic: StoredRoom(),
                    ],
                    identities: [
                        StoredIdentity(
                            backend: "chat", person: ChatPerson(id: ChatID("p1"), name: "Päivi"), nick: "paivi",
                            realname: "Päivi P.", lastSeen: at(0))
                    ], cursors: [StoredCursor(account: "ann", client: "phone", room: lobby, sequence: 6)],
                    accounts: earlier, nicks: nicks, choices: choices, memberships: memberships,
                    mirrored: mirrored, bookmarks: bookmarks))

        // Messages that did not fit can be stored now.
        let stage = try StoreStage(folder)
        let receipt = StoredReceipt(
            author: ChatID("a"), reader: ChatPerson(name: "r"), deliveredSequence: 4, readSequence: -1)
        let account = StoredAccount(name: "ann", password: "hash", madeAt: at(0))
        let nick = StoredNick(folded: "annie", nick: "Annie", account: "ann")
        let chosen = StoredChoices(
            account: "ann", receipts: "off", wantsNotices: true, rejoins: false,
            mutes: [StoredMute(target: .account("bob"), nick: "bobby")])
        let membership = StoredMembership(account: "ann", room: lobby, channel: "#lobby", position: 1)
        let key = StoredRoomKey.conversation("ann", "bob")
        let bookmark = StoredBookmark(mirror: "team", subject: "batch lobby", place: "6")
        await stage.submitAndSettle([
            .receipt(lobby, receipt), .account(account), .nick(nick), .choices(chosen), .message(key, .plain(0)),
            .membership(membership), .bookmark(bookmark),
        ])
        #expect(try await stage.room(lobby).receipts == [receipt] + (version < 2 ? [] : [known]))
        stage.store.close(within: .seconds(10))
        let after = try stored(folder)
        #expect(after.accounts == [account] + earlier)
        #expect(after.nicks == nicks + [nick] && after.choices == [chosen] + choices)
        #expect(after.memberships == [membership] + memberships)
        #expect(after.mirrored == mirrored && after.bookmarks == [bookmark])
        #expect(
            after.conversations == [
                StoredConversation(key: key, newestAt: StoredMessage.plain(0).at, nextSequence: 1)
            ])
    }

    @Test("a new file is of the newest version, and opening it again changes nothing")
    func newest() throws {
        let folder = try StoreFolder()
        for _ in 0..<2 { #expect(try stored(folder) == StoredState()) }
        let connection = try SQLiteConnection(
            path: folder.file("a.db"), isReadOnly: true, isExclusive: false, busyMilliseconds: 0)
        #expect(try connection.integer("PRAGMA user_version") == Int64(StoreSchema.version))
        #expect(try connection.integer("PRAGMA application_id") == StoreSchema.applicationID)
        connection.close()
    }

    @Test("a file of a later version is refused with a sentence, and left as it is")
    func newer() throws {
        let folder = try StoreFolder()
        try open(folder).0.close(within: .seconds(1))
        try make(folder.file("a.db"), "PRAGMA user_version = 99; CREATE TABLE future(x);")
        let before = try Data(contentsOf: URL(fileURLWithPath: folder.file("a.db")))
        let error = StoreOpenError.newer(path: folder.file("a.db"), found: 99, known: StoreSchema.version)
        #expect(throws: error) { try open(folder) }
        #expect(
            sentence { _ = try open(folder) }
                == "The database \(folder.file("a.db")) is of version 99, and this program knows versions up to "
                + "\(StoreSchema.version): it was written by a newer one. Use that, or another file.")
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.file("a.db"))) == before)
    }

    @Test("a database of another program is left as it is")
    func foreign() throws {
        let folder = try StoreFolder()
        try make(folder.file("a.db"), "CREATE TABLE theirs(x); INSERT INTO theirs VALUES(1);")
        #expect(
            sentence { _ = try open(folder) }
                == "The file \(folder.file("a.db")) is a database of another program. It was left as it is.")
        try make(folder.file("b.db"), "PRAGMA user_version = 1;")
        #expect(sentence { _ = try open(folder, "b.db") }.hasSuffix("It was left as it is."))
        #expect(folder.names.filter { $0.contains("damaged") } == [])
    }

    // MARK: - Damage

    struct Damage: CustomTestStringConvertible {
        var testDescription: String
        var spoil: @Sendable (Data) -> Data
    }

    static let damages = [
        Damage(testDescription: "garbage") { _ in Data(repeating: 0x2A, count: 9000) },
        Damage(testDescription: "a few bytes") { _ in Data([1, 2, 3]) },
        Damage(testDescription: "a page is cut off") { $0.prefix($0.count - 4096) },
        Damage(testDescription: "half a page is cut off") { $0.prefix($0.count - 2000) },
        Damage(testDescription: "all pages but the first are cut off") { $0.prefix(4096) },
        Damage(testDescription: "pages are overwritten") { data in
            data.prefix(8192) + Data(repeating: 0xA5, count: data.count - 8192)
        },
    ]

    @Test("a damaged file is moved aside with its log, and a new one is begun", arguments: damages)
    func damaged(_ row: Damage) async throws {
        let folder = try StoreFolder()
        let first = try StoreStage(folder)
        await first.submitAndSettle((0..<500).map { .message(.lobby, .plain($0)) })
        first.store.close(within: .seconds(30))
        let url = URL(fileURLWithPath: folder.file("a.db"))
        let spoilt = row.spoil(try Data(contentsOf: url))
        try spoilt.write(to: url)

        let second = try StoreStage(folder)
        let aside = folder.file("a.db.damaged-1750000000")
        #expect(second.opening.movedAside == aside)
        #expect(try Data(contentsOf: URL(fileURLWithPath: aside)) == spoilt)
        await second.submitAndSettle([.message(.lobby, .plain(0))])
        #expect(try await second.messages(.lobby) == [.plain(0)])
        second.store.close(within: .seconds(30))

        // The names do not run out.
        try spoilt.write(to: url)
        let (third, opening) = try open(folder)
        #expect(opening.movedAside == aside + "-2")
        third.close(within: .seconds(1))
    }

    @Test("a log that is damaged or cut off costs its end alone", arguments: [0.25, 0.5, 0.9])
    func damagedLog(part: Double) async throws {
        let stage = try StoreStage { $0.batchMaxMessages = 5 }
        for index in 0..<100 { stage.submit([.message(.lobby, .plain(Int64(index)))]) }
        await stage.settle()
        let folder = stage.folder
        await stage.onWriter { _ in
            do { try folder.crashCopy(of: "a.db", as: "b.db") } catch { Issue.record(error) }
        }
        let url = URL(fileURLWithPath: folder.file("b.db-wal"))
        let log = try Data(contentsOf: url)
        let cut = Int(Double(log.count) * part)
        for spoilt in [log.prefix(cut), log.prefix(cut) + Data(repeating: 0xFF, count: log.count - cut)] {
            try Data(spoilt).write(to: url)
            let room = try stored(folder, "b.db").rooms[.lobby] ?? StoredRoom()
            #expect(room.messages == (0..<Int64(room.messages.count)).map { .plain($0) })
            #expect(room.messages.count < 100)
            // For the second round.
            try FileManager.default.removeItem(atPath: folder.file("b.db"))
            try FileManager.default.copyItem(atPath: folder.file("a.db"), toPath: folder.file("b.db"))
        }
    }

    // MARK: - Places

    struct Place: CustomTestStringConvertible {
        var testDescription: String
        var path: String
        var sentence: String
    }

    static let places = [
        Place(
            testDescription: "a folder that does not exist", path: "none/a.db",
            sentence: "The file $/none/a.db.lock cannot be opened: No such file or directory."),
        Place(
            testDescription: "a folder instead of a file", path: "folder",
            sentence: "The database $/folder cannot be opened: Is a directory."),
        Place(
            testDescription: "a path with NUL", path: "a\0b", sentence: "A database needs a path; \"$/a\0b\" is none."),
    ]

    @Test("a place that cannot be used is named", arguments: places)
    func place(_ row: Place) throws {
        let folder = try StoreFolder()
        try FileManager.default.createDirectory(atPath: folder.file("folder"), withIntermediateDirectories: true)
        let expected = row.sentence.replacingOccurrences(of: "$", with: folder.path)
        #expect(sentence { _ = try open(folder, row.path) } == expected)
    }
}
