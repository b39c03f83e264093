import ChatModel

/// Applies operations on the writer's connection, within a transaction of the caller's.
///
/// Two values change with every message of a room: its next sequence number and the time up to which it was live. They
/// are cached and written once a transaction.
final class StoreChanges: @unchecked Sendable {
    // Sendable because it has one user at a time: the opener of the store until the writer's thread starts, then that
    // thread alone.

    let connection: SQLiteConnection
    private let boot: String?
    private let values = SQLiteValues()

    private let outbox: StoreOutbox
    private let findRoom: SQLiteStatement
    private let addRoom: SQLiteStatement
    private let saveRoom: SQLiteStatement
    private let message: SQLiteStatement
    private let learn: SQLiteStatement
    private let edit: SQLiteStatement
    private let takeBack: SQLiteStatement
    private let takeBackEvents: SQLiteStatement
    private let redacted: RedactedContent
    private let marker: SQLiteStatement
    private let receipt: SQLiteStatement
    private let identity: SQLiteStatement
    private let deleteIdentity: SQLiteStatement
    private let cursor: SQLiteStatement
    private let dropCursor: SQLiteStatement
    private let account: SQLiteStatement
    private let deleteAccount: SQLiteStatement
    private let front: SQLiteStatement
    private let removeFront: SQLiteStatement
    private let placeFromBack: SQLiteStatement
    private let placeFromFront: SQLiteStatement
    private let allRooms: SQLiteStatement
    private let removeMessages: SQLiteStatement
    private let removeRoom: SQLiteStatement
    private let personal: StorePersonalChanges
    private let mirrored: StoreMirroredChanges
    private let conversationBounds: StoreConversationBounds
    private let orphans: StoreOrphans

    // MARK: - Rooms

    private struct RoomRecord {
        var id: Int64
        var nextSequence: Int64
        var liveUntil: Int64?
        var liveCounted: Int64?
        var isHistoryUnasked = false
        /// Messages since the last ``saveRooms()``.
        var messages = 0
        var isChanged = false
    }

    private var rooms: [RoomRecord] = []
    private var indexes: [StoredRoomKey: Int] = [:]
    /// The unused indexes of ``rooms``.
    private var freeIndexes: [Int] = []
    private var changedRooms: [Int] = []
    /// The file's own limit, during a preview of pending writes.
    private var savedPageLimit: Int64?

    /// Messages that rooms received since their number was last checked against the limit; by the room's id.
    private(set) var grown: [Int64: Int] = [:]

    init(
        _ connection: SQLiteConnection, _ conversationLimits: StoreConversationBounds.Limits, boot: String?
    ) throws(SQLiteError) {
        self.connection = connection
        self.boot = boot
        findRoom = try connection.prepare(
            "SELECT \(StoreColumns.room) FROM rooms WHERE backend = ? AND room = ?")
        addRoom = try connection.prepare("INSERT INTO rooms(backend, room) VALUES(?, ?) RETURNING id")
        saveRoom = try connection.prepare(
            "UPDATE rooms SET next_sequence = ?, live_until = ?, live_counted = ?, live_boot = ?, history_unasked = ? "
                + "WHERE id = ?")
        outbox = try StoreOutbox(connection)
        let columns = StoreColumns.message
        message = try connection.prepare(
            """
            INSERT INTO messages(room, \(columns.joined(separator: ", ")))
            VALUES(?, \(columns.map { _ in "?" }.joined(separator: ", ")))
            ON CONFLICT(room, msgid) DO UPDATE SET \(columns.map { "\($0) = excluded.\($0)" }.joined(separator: ", "))
            """)
        learn = try connection.prepare("UPDATE messages SET upstream_id = ? WHERE room = ? AND msgid = ?")
        edit = try connection.prepare(
            """
            UPDATE messages SET text = ?, sent_as = NULL
            WHERE room = ? AND msgid = ? AND flags & \(StoredFlag.takenBack) = 0
            """)
        takeBack = try connection.prepare(
            """
            UPDATE messages SET text = '', sent_as = NULL, attachments = NULL, tags = NULL,
            flags = flags | \(StoredFlag.takenBack) WHERE room = ? AND msgid = ?
            """)
        // Only messages after it can refer to it. The tags are a list as JSON, and no msgid has anything to escape.
        takeBackEvents = try connection.prepare(
            """
            UPDATE messages SET text = '', sent_as = NULL, attachments = NULL, tags = NULL,
            flags = flags | \(StoredFlag.takenBack)
            WHERE room = ?1 AND seq > (SELECT seq FROM messages WHERE room = ?1 AND msgid = ?2)
            AND kind IN (\(StoredMessage.Kind.ofDeeds.numbers)) AND instr(tags, '["\(StoredMessage.replyTag)","' || ?2 || '"]') > 0
            """)
        redacted = try RedactedContent(connection)
        marker = try connection.prepare(
            "INSERT OR REPLACE INTO markers(room, key, reader, at, seq) VALUES(?, ?, ?, ?, ?)")
        receipt = try connection.prepare(
            """
            INSERT OR REPLACE INTO
            receipts(room, author_key, reader_key, author, reader_id, reader_name, delivered, read)
            VALUES(?, ?, ?, ?, ?, ?, ?, ?)
            """)
        identity = try connection.prepare(
            """
            INSERT OR REPLACE INTO identities(backend, key, person_id, person_name, nick, realname, last_seen)
            VALUES(?, ?, ?, ?, ?, ?, ?)
            """)
        deleteIdentity = try connection.prepare("DELETE FROM identities WHERE backend = ? AND key = ?")
        cursor = try connection.prepare("INSERT OR REPLACE INTO cursors(account, client, room, seq) VALUES(?, ?, ?, ?)")
        dropCursor = try connection.prepare("DELETE FROM cursors WHERE account = ? AND client = ? AND room = ?")
        account = try connection.prepare("INSERT OR REPLACE INTO accounts(name, password, made_at) VALUES(?, ?, ?)")
        deleteAccount = try connection.prepare("DELETE FROM accounts WHERE name = ?")
        front = try connection.prepare("SELECT seq, at FROM messages WHERE room = ? ORDER BY seq LIMIT ?")
        removeFront = try connection.prepare("DELETE FROM messages WHERE room = ? AND seq <= ?")
        placeFromBack = try connection.prepare(
            "SELECT seq FROM messages WHERE room = ? ORDER BY seq DESC LIMIT 1 OFFSET ?")
        placeFromFront = try connection.prepare(
            "SELECT seq FROM messages WHERE room = ? ORDER BY seq LIMIT 1 OFFSET ?")
        allRooms = try connection.prepare("SELECT id FROM rooms ORDER BY id")
        removeMessages = try connection.prepare("DELETE FROM messages WHERE room = ?")
        removeRoom = try connection.prepare("DELETE FROM rooms WHERE id = ?")
        personal = try StorePersonalChanges(connection)
        mirrored = try StoreMirroredChanges(connection)
        conversationBounds = try StoreConversationBounds(connection, conversationLimits)
        orphans = try StoreOrphans(connection)
    }

    /// The room's index; nil when the store has nothing of it.
    private func knownRoom(_ key: StoredRoomKey) throws(SQLiteError) -> Int? {
        if let index = indexes[key] { return index }
        values.add(boot)
        values.add(key.backend)
        values.add(key.room)
        defer { values.finish(findRoom) }
        try values.bind(to: findRoom)
        guard try findRoom.step() else { return nil }
        return enter(
            key,
            RoomRecord(
                id: findRoom.integer(0), nextSequence: findRoom.integer(1), liveUntil: findRoom.optionalInteger(2),
                liveCounted: findRoom.optionalInteger(3), isHistoryUnasked: findRoom.integer(4) != 0))
    }

    private func room(_ key: StoredRoomKey) throws(SQLiteError) -> Int {
        if let index = try knownRoom(key) { return index }
        values.add(key.backend)
        values.add(key.room)
        guard let id = try values.integer(addRoom) else {
            throw SQLiteError(code: 1, sentence: "the database gives rooms no numbers")
        }
        return enter(key, RoomRecord(id: id, nextSequence: 0))
    }

    private func enter(_ key: StoredRoomKey, _ record: RoomRecord) -> Int {
        if let index = freeIndexes.popLast() {
            rooms[index] = record
            indexes[key] = index
            return index
        }
        rooms.append(record)
        indexes[key] = rooms.count - 1
        return rooms.count - 1
    }

    private func change(_ index: Int) {
        if rooms[index].isChanged { return }
        rooms[index].isChanged = true
        changedRooms.append(index)
    }

    /// Marks sequence numbers up to `sequence` as used. Cursors and marks count too: they may refer to messages that
    /// were not stored.
    private func markUsed(_ sequence: Int64, in index: Int) {
        let next = sequence == .max ? sequence : sequence + 1
        guard next > rooms[index].nextSequence else { return }
        rooms[index].nextSequence = next
        change(index)
    }

    // MARK: - Transactions

    func begin() throws(SQLiteError) { try connection.execute("BEGIN IMMEDIATE") }

    /// Writes the cached values of rooms.
    private func saveRooms() throws(SQLiteError) {
        for index in changedRooms {
            values.add(rooms[index].nextSequence)
            values.add(rooms[index].liveUntil)
            values.add(rooms[index].liveCounted)
            values.add(boot)
            values.add(rooms[index].isHistoryUnasked ? 1 : 0)
            values.add(rooms[index].id)
            try values.run(saveRoom)
        }
    }

    func commit() throws(SQLiteError) {
        try saveRooms()
        try connection.execute("COMMIT")
        for index in changedRooms {
            if rooms[index].messages > 0 { grown[rooms[index].id, default: 0] += rooms[index].messages }
            rooms[index].messages = 0
            rooms[index].isChanged = false
        }
        changedRooms.removeAll(keepingCapacity: true)
    }

    /// Rolls the transaction back, and drops the cache of rooms, since some of them may be gone with it.
    func rollBack() {
        connection.rollBack()
        rooms.removeAll()
        indexes.removeAll()
        freeIndexes.removeAll()
        changedRooms.removeAll()
        conversationBounds.removeAll()
    }

    // MARK: - A preview of pending writes

    /// More than SQLite counts: a file that may grow no further is no reason to refuse a preview.
    private static let mostPages: Int64 = 4_294_967_294

    /// Begins a transaction that is not committed, for ``preview(_:)``. It stays in memory, and needs no room on the disk.
    func beginPreview() throws(SQLiteError) {
        try begin()
        connection.set("cache_spill", to: 0)
        savedPageLimit = try connection.integer("PRAGMA max_page_count")
        connection.set("max_page_count", to: Self.mostPages)
    }

    /// Applies pending writes; operations that SQLite refuses for themselves are left out, as they will be when
    /// committed.
    func preview(_ writes: ArraySlice<StoreWrite>) throws(SQLiteError) {
        for operation in writes.lazy.flatMap(\.operations) {
            do {
                try apply(operation)
            } catch {
                guard error.scope == .operation, connection.isInTransaction else { throw error }
            }
        }
        try saveRooms()
    }

    func endPreview() {
        rollBack()
        connection.set("cache_spill", to: 1)
        guard let savedPageLimit else { return }
        self.savedPageLimit = nil
        // SQLite takes no limit below the number of pages that it knows; asking for the count resets it to the file's.
        _ = try? connection.integer("PRAGMA page_count")
        connection.set("max_page_count", to: savedPageLimit)
    }

    /// Writes and deletes something large, to test whether the disk has room.
    func probe() throws(SQLiteError) {
        try connection.execute(
            "BEGIN IMMEDIATE; INSERT OR REPLACE INTO probe VALUES(1, zeroblob(\(Self.probeBytes))); COMMIT;")
        try connection.execute("DELETE FROM probe")
    }

    /// The size of a batch of messages: a disk with room for less is full, or the next batch would find that it is.
    static let probeBytes = 256 << 10

    // MARK: - Operations

    func apply(_ operation: StoreOperation) throws(SQLiteError) {
        switch operation {
        case .accept(let entry): try outbox.accept(entry, room: rooms[room(entry.room)].id, values)
        case .outboxState(let id, let state, let confirmedPieces, let reason):
            try outbox.set(id, state, confirmedPieces: confirmedPieces, reason: reason, values)
        case .leaveOutbox(let id): try outbox.leave(id, values)
        case .message(let key, let message): try save(message, in: key)
        case .learn(let key, let msgid, let upstreamID): try change(learn, msgid, of: key) { values.add(upstreamID) }
        case .edit(let key, let msgid, let text): try change(edit, msgid, of: key) { values.add(text) }
        case .takeBack(let key, let msgid):
            guard let index = try knownRoom(key) else { return }
            try takeBack(msgid, of: rooms[index].id)
        case .restore(let key, let msgid):
            guard let index = try knownRoom(key) else { return }
            try redacted.restore(msgid, of: rooms[index].id)
        case .marker(let key, let mark): try save(mark, in: key)
        case .receipt(let key, let known): try save(known, in: key)
        case .live(let key, let until, let counted):
            let index = try room(key)
            rooms[index].liveUntil = until.milliseconds
            rooms[index].liveCounted = counted
            change(index)
        case .historyUnasked(let key, let isUnasked):
            let index = try room(key)
            rooms[index].isHistoryUnasked = isUnasked
            change(index)
        case .identity(let known): try save(known)
        case .removeIdentity(let backend, let person):
            values.add(backend)
            values.addKey(person)
            try values.run(deleteIdentity)
        case .cursor(let place): try save(place)
        case .dropCursor(let account, let client, let key):
            guard let index = try knownRoom(key) else { return }
            values.add(account)
            values.add(client)
            values.add(rooms[index].id)
            try values.run(dropCursor)
        case .account(let made):
            values.add(made.name)
            values.add(made.password)
            values.add(made.madeAt.milliseconds)
            try values.run(account)
        case .removeAccount(let name):
            values.add(name)
            try values.run(deleteAccount)
        case .removeAuthor(let author, let nobody): try personal.anonymise(author, as: nobody, values)
        case .removeConversation(let key): try deleteConversation(key)
        case .nick(let known): try personal.save(known, values)
        case .removeNick(let folded): try personal.delete(nick: folded, values)
        case .choices(let chosen): try personal.save(chosen, values)
        case .membership(let known): try personal.save(known, values)
        case .endMembership(let account, let key): try personal.end(account, key, values)
        case .mirrored(let known): try mirrored.save(known, values)
        case .bookmark(let known): try mirrored.save(known, values)
        }
    }

    /// Updates one column of a stored message.
    private func change(
        _ statement: SQLiteStatement, _ msgid: String, of key: StoredRoomKey, addValue: () -> Void
    ) throws(SQLiteError) {
        guard let index = try knownRoom(key) else { return }
        addValue()
        values.add(rooms[index].id)
        values.add(msgid)
        try values.run(statement)
    }

    private func takeBack(_ msgid: String, of room: Int64) throws(SQLiteError) {
        try redacted.save(msgid, of: room)
        values.add(room)
        values.add(msgid)
        try values.run(takeBack)
        values.add(room)
        values.add(msgid)
        try values.run(takeBackEvents)
    }

    private func save(_ mark: StoredMarker, in key: StoredRoomKey) throws(SQLiteError) {
        let index = try room(key)
        values.add(rooms[index].id)
        values.add(mark.reader.canonical)
        values.add(mark.reader)
        values.add(mark.at.milliseconds)
        values.add(mark.sequence)
        try values.run(marker)
        markUsed(mark.sequence, in: index)
    }

    private func save(_ known: StoredIdentity) throws(SQLiteError) {
        values.add(known.backend)
        values.addKey(known.person)
        values.add(known.person)
        values.add(known.nick)
        values.add(known.realname)
        values.add(known.lastSeen.milliseconds)
        try values.run(identity)
    }

    private func save(_ place: StoredCursor) throws(SQLiteError) {
        let index = try room(place.room)
        values.add(place.account)
        values.add(place.client)
        values.add(rooms[index].id)
        values.add(place.sequence)
        try values.run(cursor)
        markUsed(place.sequence, in: index)
    }

    private func save(_ new: StoredMessage, in key: StoredRoomKey) throws(SQLiteError) {
        let index = try room(key)
        values.add(rooms[index].id)
        // In the order of StoreColumns.message.
        values.add(new.sequence)
        values.add(new.msgid)
        values.add(Int64(new.kind.rawValue))
        values.add(new.at.milliseconds)
        values.add(new.backendAt?.milliseconds)
        values.add(new.gapFrom?.milliseconds)
        values.add(new.upstreamID)
        values.add(new.sender)
        values.add(new.nick)
        values.add(new.source)
        values.add(new.account)
        values.add(new.text)
        values.add(new.sentAs)
        values.add(new.attachments)
        values.add((new.isEncrypted ? StoredFlag.encrypted : 0) | (new.isTakenBack ? StoredFlag.takenBack : 0))
        values.add(new.replyTo)
        values.add(new.clientTags)
        values.add(new.author)
        values.add(new.client)
        try values.run(message)
        markUsed(new.sequence, in: index)
        rooms[index].messages += 1
        change(index)
        guard key.parties != nil else { return }
        try trimConversation(rooms[index].id, newest: new.sequence)
        try conversationBounds.entered(new, room: rooms[index].id, key, values)
    }

    // MARK: - Private conversations

    /// The oldest messages of a full conversation are removed once every so many messages.
    private static let conversationSliceCount: Int64 = 64

    /// Its sequence numbers have hardly any holes, so they alone give the number of messages.
    private func trimConversation(_ room: Int64, newest: Int64) throws(SQLiteError) {
        guard newest >= StoredConversation.maxMessages, newest % Self.conversationSliceCount == 0 else { return }
        values.add(room)
        values.add(newest - StoredConversation.maxMessages)
        try values.run(removeFront)
    }

    private func deleteConversation(_ key: StoredRoomKey) throws(SQLiteError) {
        guard key.parties != nil, let index = try knownRoom(key) else { return }
        values.add(rooms[index].id)
        try values.run(removeMessages)
        values.add(rooms[index].id)
        try values.run(removeRoom)
        // Its id may be reused for another room.
        grown[rooms[index].id] = nil
        conversationBounds.remove(room: rooms[index].id)
        changedRooms.removeAll { $0 == index }
        indexes[key] = nil
        freeIndexes.append(index)
    }

    private func save(_ known: StoredReceipt, in key: StoredRoomKey) throws(SQLiteError) {
        let index = try room(key)
        values.add(rooms[index].id)
        values.add(known.author.canonical)
        values.addKey(known.reader)
        values.add(known.author)
        values.add(known.reader)
        values.add(known.deliveredSequence)
        values.add(known.readSequence)
        try values.run(receipt)
        markUsed(max(known.deliveredSequence, known.readSequence), in: index)
    }

    // MARK: - Retention

    /// Removes up to `limit` of a room's oldest messages, as far as they are from before `milliseconds`; returns their
    /// number.
    ///
    /// A message is removed no earlier than those in front of it. Its time is its sender's claim: by that alone, a
    /// message from a wrong clock would be removed at once, before all clients had it, and shown again by the next
    /// history.
    func removeMessages(
        ofRoom room: Int64, before milliseconds: Int64, limit: Int
    ) throws(SQLiteError) -> Int {
        var end: Int64?
        do {
            values.add(room)
            values.add(Int64(max(0, limit)))
            defer { values.finish(front) }
            try values.bind(to: front)
            while try front.step(), front.integer(1) < milliseconds { end = front.integer(0) }
        }
        guard let end else { return 0 }
        values.add(room)
        values.add(end)
        return try values.run(removeFront)
    }

    /// Removes up to `limit` of a room's oldest messages, as far as the room has more than `kept`; returns their
    /// number.
    func removeMessages(ofRoom room: Int64, beyond kept: Int, limit: Int) throws(SQLiteError) -> Int {
        guard let place = try place(placeFromBack, room: room, offset: kept) else { return 0 }
        let slice = try self.place(placeFromFront, room: room, offset: max(0, limit - 1)) ?? place
        values.add(room)
        values.add(min(place, slice))
        return try values.run(removeFront)
    }

    private func place(_ statement: SQLiteStatement, room: Int64, offset: Int) throws(SQLiteError) -> Int64? {
        values.add(room)
        values.add(Int64(max(0, offset)))
        return try values.integer(statement)
    }

    func allRoomIDs() throws(SQLiteError) -> [Int64] {
        defer { allRooms.reset() }
        var ids: [Int64] = []
        while try allRooms.step() { ids.append(allRooms.integer(0)) }
        return ids
    }

    /// Removes rows that refer to removed messages of the room.
    func removeOrphans(room: Int64) throws(SQLiteError) { try orphans.remove(room: room, values) }

    func clearGrowth(ofRoom room: Int64) { grown[room] = nil }
}

/// The columns of the two wide tables, in the order in which they are written and read, without `room`.
enum StoreColumns {
    /// Begins with a parameter: the boot id of the machine.
    static let room = "id, next_sequence, live_until, iif(live_boot = ?, live_counted, NULL), history_unasked"

    static let message = [
        "seq", "msgid", "kind", "at", "backend_at", "gap_from", "upstream_id", "sender_id", "sender_name", "nick",
        "source", "account", "text", "sent_as", "attachments", "flags", "reply_to", "tags", "author", "client",
    ]

    static let outbox = [
        "id", "room", "link", "sender_id", "sender_name", "sent_as", "attachments", "reply_to", "accepted_at", "author",
        "nick", "source", "account", "client", "text", "tags", "state", "confirmed", "reason",
        "said_after",
    ]
}
