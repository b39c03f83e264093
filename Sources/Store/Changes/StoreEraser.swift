import CSQLite
import ChatModel

/// Erases a person from the file, in steps of one transaction each.
///
/// | stage    | does                                                              | then                      |
/// |----------|-------------------------------------------------------------------|---------------------------|
/// | actions  | reactions and changes: by the person, and of their messages       | of the last room: messages |
/// | messages | the person's other messages                                       | of the last room: records |
/// | records  | rows about the person in the other tables                         | scrub                     |
/// | scrub    | writes the file anew, and empties the log                         | –                         |
///
/// An interrupted erasure is completed by the next one: a message is found by its author, so it is erased behind the
/// actions on it, which are found by the message.
struct StoreEraser {
    private enum Stage { case actions, messages, records, scrub }

    private struct Room {
        var id: Int64
        var key: StoredRoomKey
    }

    /// Rows read in one transaction: a few milliseconds.
    static let sliceCount = 1000
    /// Tries to empty the log while the reader uses it; each waits ``StoreFile/busyMilliseconds``.
    private static let maxCheckpoints = 2

    let person: StoredPerson
    /// Writes up to this one come before it.
    let after: StoreTicket
    private(set) var erased = StoredErasure()
    private var stage = Stage.actions
    private var rooms: [Room] = []
    private var room = 0
    private var place = Int64.min
    private let connection: SQLiteConnection
    private let values = SQLiteValues()
    private let slice: SQLiteStatement
    private let byMsgid: SQLiteStatement
    private let erase: SQLiteStatement

    private static let columns = "seq, kind, msgid, sender_id, sender_name, nick, source, account, flags, tags, author"

    init(_ person: StoredPerson, after: StoreTicket, _ connection: SQLiteConnection) throws(SQLiteError) {
        self.person = person
        self.after = after
        self.connection = connection
        slice = try connection.prepare(
            "SELECT \(Self.columns) FROM messages WHERE room = ? AND seq > ? ORDER BY seq LIMIT \(Self.sliceCount)")
        byMsgid = try connection.prepare("SELECT \(Self.columns) FROM messages WHERE room = ? AND msgid = ?")
        erase = try connection.prepare(
            """
            UPDATE messages SET text = '', sent_as = NULL, attachments = NULL, tags = NULL, nick = '', source = '',
            account = NULL, client = NULL, reply_to = NULL, sender_id = NULL, sender_name = NULL,
            author = iif(author IS NULL, NULL, '\(ChatID.erased.rawValue)'),
            flags = flags | \(StoredFlag.takenBack) WHERE room = ? AND seq = ?
            """)
        let all = try connection.prepare("SELECT id, backend, room FROM rooms ORDER BY id")
        defer { all.reset() }
        while try all.step() {
            rooms.append(Room(id: all.integer(0), key: StoredRoomKey(backend: all.text(1), room: all.text(2))))
        }
    }

    /// Whether only ``scrub(_:)`` is left.
    var isScrubbing: Bool { stage == .scrub }

    /// Does one step, in a transaction.
    mutating func step(_ changes: StoreChanges) throws(SQLiteError) {
        try changes.begin()
        switch stage {
        case .actions, .messages: try eraseSlice()
        case .records:
            try eraseRecords(changes)
            stage = .scrub
        case .scrub: break
        }
        try changes.commit()
    }

    // MARK: - Messages

    private mutating func eraseSlice() throws(SQLiteError) {
        guard room < rooms.count else {
            (stage, room, place) = (stage == .actions ? .messages : .records, 0, .min)
            return
        }
        let rows = try read(slice, rooms[room], place)
        for row in rows where !row.isErased && (row.target != nil) == (stage == .actions) {
            guard try concerns(row, rooms[room]) else { continue }
            values.add(rooms[room].id)
            values.add(row.sequence)
            try values.run(erase)
            erased.count(row.kind)
        }
        if let last = rows.last, rows.count == Self.sliceCount {
            place = last.sequence
        } else {
            (room, place) = (room + 1, .min)
        }
    }

    private func concerns(_ row: StoredMessage, _ room: Room) throws(SQLiteError) -> Bool {
        if person.wrote(row, in: room.key) { return true }
        guard let target = row.target else { return false }
        values.add(room.id)
        values.add(target)
        return try read(byMsgid).contains { person.wrote($0, in: room.key) }
    }

    private func read(_ statement: SQLiteStatement, _ room: Room, _ place: Int64) throws(SQLiteError) -> [StoredMessage]
    {
        values.add(room.id)
        values.add(place)
        return try read(statement)
    }

    /// Without texts.
    private func read(_ statement: SQLiteStatement) throws(SQLiteError) -> [StoredMessage] {
        defer { values.finish(statement) }
        try values.bind(to: statement)
        var rows: [StoredMessage] = []
        while try statement.step() {
            let kind = StoredMessage.Kind(rawValue: Int(statement.integer(1))) ?? .message
            rows.append(
                StoredMessage(
                    kind: kind, sequence: statement.integer(0), msgid: statement.text(2),
                    sender: statement.person(3), at: ChatTimestamp(milliseconds: 0), nick: statement.text(5),
                    source: statement.text(6), account: statement.optionalText(7), text: "",
                    clientTags: StoredMessage.Kind.ofDeeds.contains(kind) ? statement.tags(9) : [],
                    author: statement.optionalID(10),
                    isTakenBack: statement.integer(8) & StoredFlag.takenBack != 0))
        }
        return rows
    }

    // MARK: - Other tables

    private mutating func eraseRecords(_ changes: StoreChanges) throws(SQLiteError) {
        // Copies of redacted messages, for a redaction that is refused.
        try connection.execute("DELETE FROM temp.withdrawn")
        switch person {
        case .account(let name, let ids):
            for table in ["choices", "memberships", "cursors", "nicks"] {
                try delete("\(table) WHERE lower(account) = ?") { $0.add(name) }
            }
            for id in ids.sorted(by: { $0.canonical < $1.canonical }) {
                try changes.apply(.removeAuthor(id, as: .erased))
            }
            for room in rooms {
                guard let parties = room.key.parties, parties.one == name || parties.other == name else { continue }
                try changes.apply(.removeConversation(room.key))
                erased.countConversation()
            }
            // Given up: they are not sent any more.
            let over = [StoredOutboxEntry.State.failed, .told].map { String($0.rawValue) }.joined(separator: ", ")
            try delete("outbox WHERE author = ? AND state IN (\(over))") { $0.add(ChatID.erased) }
        case .upstream(let backend, let person):
            for key in [person, ChatPerson(name: person.name)] {
                try delete("identities WHERE backend = ? AND key = ?") {
                    $0.add(backend)
                    $0.addKey(key)
                }
                try delete("receipts WHERE reader_key = ? AND room IN (SELECT id FROM rooms WHERE backend = ?)") {
                    $0.addKey(key)
                    $0.add(backend)
                }
            }
        }
    }

    private mutating func delete(_ rows: String, _ bind: (SQLiteValues) -> Void) throws(SQLiteError) {
        let statement = try connection.prepare("DELETE FROM \(rows)")
        bind(values)
        erased.count(records: try values.run(statement))
    }

    // MARK: - Free pages

    /// Writes the file anew without its free pages, and moves the log into it, which is then empty.
    ///
    /// A connection of its own: the writer's temporary tables are in memory, and a copy of the file need not fit there.
    static func scrub(_ settings: StoreSettings, isExclusive: Bool) throws(SQLiteError) {
        let connection = try SQLiteConnection(
            path: settings.path, isReadOnly: false, isExclusive: isExclusive,
            busyMilliseconds: StoreFile.busyMilliseconds)
        defer { connection.close() }
        try connection.execute("PRAGMA temp_store = FILE; PRAGMA secure_delete = ON; VACUUM;")
        for _ in 0..<maxCheckpoints {
            // The first column: whether a reader was in the way.
            if try connection.integer("PRAGMA wal_checkpoint(TRUNCATE)") == 0 { return }
        }
        throw SQLiteError(code: SQLITE_BUSY, sentence: "another program is reading the database")
    }
}
