import ChatModel
import JSONText

// The rows of single users: their nicks, and their preferences.

/// The writes of them, on the writer's connection.
struct StorePersonalChanges {
    private let nick: SQLiteStatement
    private let deleteNick: SQLiteStatement
    private let choices: SQLiteStatement
    private let deleteChoices: SQLiteStatement
    private let membership: SQLiteStatement
    private let endMembership: SQLiteStatement
    private let deleteMarkers: SQLiteStatement
    private let deleteReceipts: SQLiteStatement
    private let disownMessages: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(SQLiteError) {
        nick = try connection.prepare(
            """
            INSERT OR REPLACE INTO nicks(nick, shown, account, position)
            VALUES(?, ?, ?, (SELECT coalesce(max(position), 0) + 1 FROM nicks))
            """)
        deleteNick = try connection.prepare("DELETE FROM nicks WHERE nick = ?")
        choices = try connection.prepare(
            "INSERT OR REPLACE INTO choices(account, receipts, notices, rejoin, mutes) VALUES(?, ?, ?, ?, ?)")
        deleteChoices = try connection.prepare("DELETE FROM choices WHERE account = ?")
        membership = try connection.prepare(
            "INSERT OR REPLACE INTO memberships(account, backend, room, channel, position) VALUES(?, ?, ?, ?, ?)")
        endMembership = try connection.prepare(
            "DELETE FROM memberships WHERE account = ? AND backend = ? AND room = ?")
        // Markers of conversations begin with their owner. There is no index for this: it happens when an account is
        // made.
        deleteMarkers = try connection.prepare(
            "DELETE FROM markers WHERE key = ?1 OR substr(key, 1, length(?1) + 1) = ?1 || ' '")
        deleteReceipts = try connection.prepare("DELETE FROM receipts WHERE author_key = ?")
        let (failed, told) = (StoredOutboxEntry.State.failed.rawValue, StoredOutboxEntry.State.told.rawValue)
        disownMessages = try connection.prepare(
            """
            UPDATE outbox SET author = ?2, client = NULL, state = CASE state WHEN \(failed) THEN \(told) ELSE state END
            WHERE author = ?1
            """)
    }

    func save(_ known: StoredNick, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(known.folded)
        values.add(known.nick)
        values.add(known.account)
        try values.run(nick)
    }

    func delete(nick folded: String, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(folded)
        try values.run(deleteNick)
    }

    func anonymise(_ author: ChatID, as nobody: ChatID, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(author.canonical)
        try values.run(deleteMarkers)
        values.add(author.canonical)
        try values.run(deleteReceipts)
        values.add(author)
        values.add(nobody)
        try values.run(disownMessages)
    }

    func save(_ chosen: StoredChoices, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(chosen.account)
        guard !chosen.isEmpty else { return _ = try values.run(deleteChoices) }
        values.add(chosen.receipts)
        values.add(Int64(chosen.wantsNotices ? 1 : 0))
        if let rejoins = chosen.rejoins { values.add(Int64(rejoins ? 1 : 0)) } else { values.addNull() }
        values.add(chosen.mutes)
        try values.run(choices)
    }

    func save(_ known: StoredMembership, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(known.account)
        values.add(known.room.backend)
        values.add(known.room.room)
        values.add(known.channel)
        values.add(known.position)
        try values.run(membership)
    }

    func end(_ account: String, _ room: StoredRoomKey, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(account)
        values.add(room.backend)
        values.add(room.room)
        try values.run(endMembership)
    }
}

/// The queries of them.
struct StorePersonalQueries {
    private let conversations: SQLiteStatement
    private let nicks: SQLiteStatement
    private let choices: SQLiteStatement
    private let memberships: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(SQLiteError) {
        let messages =
            "FROM messages WHERE room = rooms.id AND kind <> \(StoredMessage.Kind.event.rawValue) ORDER BY seq DESC"
        // A conversation has two speakers, so the first name and the last are all.
        let lately = "FROM (SELECT account \(messages) LIMIT \(StoredConversation.speakingCount))"
        conversations = try connection.prepare(
            """
            SELECT room, next_sequence, (SELECT at \(messages) LIMIT 1) AS newest, (SELECT min(account) \(lately)),
            (SELECT max(account) \(lately))
            FROM rooms WHERE backend = '' AND room <> '' ORDER BY newest DESC, room
            """)
        nicks = try connection.prepare("SELECT nick, shown, account FROM nicks ORDER BY position")
        choices = try connection.prepare(
            "SELECT account, receipts, notices, rejoin, mutes FROM choices ORDER BY account")
        memberships = try connection.prepare(
            "SELECT account, backend, room, channel, position FROM memberships ORDER BY account, position, backend, room"
        )
    }

    /// A state with the rows of users, and nothing else.
    func read(_ queries: StoreQueries) throws(SQLiteError) -> StoredState {
        var found = StoredState()
        try queries.each(conversations) { row in
            found.conversations.append(
                StoredConversation(
                    key: StoredRoomKey(backend: "", room: row.text(0)), newestAt: row.optionalTimestamp(2),
                    nextSequence: row.integer(1),
                    speakers: Set([row.optionalText(3), row.optionalText(4)].compactMap(\.self))))
        }
        try queries.each(nicks) { row in
            found.nicks.append(StoredNick(folded: row.text(0), nick: row.text(1), account: row.text(2)))
        }
        try queries.each(choices) { row in
            found.choices.append(
                StoredChoices(
                    account: row.text(0), receipts: row.optionalText(1), wantsNotices: row.integer(2) != 0,
                    rejoins: row.optionalInteger(3).map { $0 != 0 }, mutes: row.mutes(4)))
        }
        try queries.each(memberships) { row in
            found.memberships.append(
                StoredMembership(
                    account: row.text(0), room: StoredRoomKey(backend: row.text(1), room: row.text(2)),
                    channel: row.text(3), position: row.integer(4)))
        }
        return found
    }
}

// MARK: - Columns

extension SQLiteValues {
    /// Each as a list: the kind, the key by which the user is known, and the nick at the end.
    fileprivate func add(_ mutes: [StoredMute]) {
        if mutes.isEmpty { return addNull() }
        var writer = JSONWriter()
        writer.beginArray()
        for mute in mutes {
            writer.beginArray()
            switch mute.target {
            case .remote(let backend, let person):
                writer.string("remote")
                writer.string(backend)
                if let id = person.id?.rawValue { writer.string(id) } else { writer.null() }
                if let name = person.name { writer.string(name) } else { writer.null() }
            case .account(let name):
                writer.string("account")
                writer.string(name)
            case .nick(let folded):
                writer.string("nick")
                writer.string(folded)
            }
            writer.string(mute.nick)
            writer.endArray()
        }
        writer.endArray()
        writer.withBytes { add($0) }
    }
}

extension SQLiteStatement {
    fileprivate func mutes(_ column: Int32) -> [StoredMute] {
        list(column).compactMap { value in
            guard let parts = value.array, parts.count >= 3, let known = parts[1].string,
                let nick = parts[parts.count - 1].string
            else { return nil }
            switch parts[0].string {
            case "remote" where parts.count == 5:
                let person = ChatPerson(id: parts[2].string.map { ChatID($0) }, name: parts[3].string)
                return StoredMute(target: .remote(backend: known, person), nick: nick)
            case "account": return StoredMute(target: .account(known), nick: nick)
            case "nick": return StoredMute(target: .nick(known), nick: nick)
            default: return nil
            }
        }
    }
}
