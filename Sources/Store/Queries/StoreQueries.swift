import ChatModel

/// Queries on a connection, within its open transaction where there is one.
final class StoreQueries: @unchecked Sendable {
    // Sendable because it is used by one thread at a time: the opener's until the store starts, then the reader's, or
    // the writer's, whose connection it is on.

    let connection: SQLiteConnection
    private let boot: String?

    private let roomRow: SQLiteStatement
    private let roomRows: SQLiteStatement
    private let newest: SQLiteStatement
    private let between: SQLiteStatement
    private let count: SQLiteStatement
    private let outbox: SQLiteStatement
    private let markers: SQLiteStatement
    private let receipts: SQLiteStatement
    private let identities: SQLiteStatement
    private let cursors: SQLiteStatement
    private let accounts: SQLiteStatement
    let values = SQLiteValues()
    private let pages: StorePageStatements
    private let personal: StorePersonalQueries

    init(_ connection: SQLiteConnection, boot: String?) throws(SQLiteError) {
        self.connection = connection
        self.boot = boot
        roomRow = try connection.prepare(
            "SELECT \(StoreColumns.room) FROM rooms WHERE backend = ? AND room = ?")
        // Private conversations are read on demand.
        roomRows = try connection.prepare(
            """
            SELECT \(StoreColumns.room), backend, room FROM rooms WHERE backend <> '' OR room = '' ORDER BY id
            """)
        let messageColumns = StoreColumns.message.joined(separator: ", ")
        newest = try connection.prepare(
            "SELECT \(messageColumns) FROM messages WHERE room = ? ORDER BY seq DESC LIMIT ?")
        between = try connection.prepare(
            "SELECT \(messageColumns) FROM messages WHERE room = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?")
        count = try connection.prepare("SELECT count(*) FROM messages WHERE room = ? AND seq > ? AND seq <= ?")
        outbox = try connection.prepare(
            "SELECT \(StoreColumns.outbox.joined(separator: ", ")) FROM outbox WHERE room = ? ORDER BY position")
        markers = try connection.prepare("SELECT reader, at, seq FROM markers WHERE room = ? ORDER BY key")
        receipts = try connection.prepare(
            """
            SELECT author, reader_id, reader_name, delivered, read FROM receipts WHERE room = ?
            ORDER BY author_key, reader_key
            """)
        identities = try connection.prepare(
            """
            SELECT backend, person_id, person_name, nick, realname, last_seen FROM identities
            ORDER BY backend, last_seen, key
            """)
        cursors = try connection.prepare(
            """
            SELECT account, client, seq, backend, rooms.room FROM cursors JOIN rooms ON rooms.id = cursors.room
            ORDER BY account, client, rooms.id
            """)
        accounts = try connection.prepare("SELECT name, password, made_at FROM accounts ORDER BY made_at, name")
        pages = try StorePageStatements(connection)
        personal = try StorePersonalQueries(connection)
    }

    /// Calls `body` within one transaction, so that all it reads is one snapshot.
    private func inSnapshot<R>(_ body: () throws(SQLiteError) -> R) throws(SQLiteError) -> R {
        if connection.isInTransaction { return try body() }
        try connection.execute("BEGIN")
        defer { connection.rollBack() }
        return try body()
    }

    // MARK: - Questions of the bridge

    func everything(messagesPerRoom: Int) throws(SQLiteError) -> StoredState {
        try inSnapshot { () throws(SQLiteError) in
            var state = try personal.read(self)
            var rows: [(id: Int64, key: StoredRoomKey, room: StoredRoom)] = []
            values.add(boot)
            try each(roomRows) { row in
                rows.append(
                    (row.integer(0), StoredRoomKey(backend: row.text(5), room: row.text(6)), Self.room(row)))
            }
            for (id, key, room) in rows { state.rooms[key] = try fill(room, id, key, messagesPerRoom: messagesPerRoom) }
            try each(identities) { row in
                state.identities.append(
                    StoredIdentity(
                        backend: row.text(0), person: row.person(1), nick: row.text(3), realname: row.text(4),
                        lastSeen: row.timestamp(5)))
            }
            try each(cursors) { row in
                state.cursors.append(
                    StoredCursor(
                        account: row.text(0), client: row.text(1),
                        room: StoredRoomKey(backend: row.text(3), room: row.text(4)), sequence: row.integer(2)))
            }
            try each(accounts) { row in
                state.accounts.append(
                    StoredAccount(name: row.text(0), password: row.text(1), madeAt: row.timestamp(2)))
            }
            state.mirrored = try mirrored()
            state.bookmarks = try bookmarks()
            return state
        }
    }

    /// A room; an empty one when the store has nothing of it.
    func room(_ key: StoredRoomKey, messagesPerRoom: Int) throws(SQLiteError) -> StoredRoom {
        try inSnapshot { () throws(SQLiteError) in
            var found: (id: Int64, room: StoredRoom)?
            values.add(boot)
            values.add(key.backend)
            values.add(key.room)
            try each(roomRow) { row in found = (row.integer(0), Self.room(row)) }
            guard let found else { return StoredRoom() }
            return try fill(found.room, found.id, key, messagesPerRoom: messagesPerRoom)
        }
    }

    func messages(
        _ key: StoredRoomKey, after: Int64, through: Int64, limit: Int
    ) throws(SQLiteError) -> [StoredMessage] {
        try inSnapshot { () throws(SQLiteError) in
            guard limit > 0, let id = try roomID(key) else { return [] }
            values.add(id)
            values.add(after)
            values.add(through)
            values.add(Int64(limit))
            var found: [StoredMessage] = []
            try each(between) { found.append($0.message()) }
            return found
        }
    }

    /// Takes one step of a search.
    ///
    /// - Parameters:
    ///   - search: the progress of the steps before.
    ///   - count: messages to read.
    /// - Returns: nil when the search is not complete.
    func places(
        _ key: StoredRoomKey, _ query: StoredPageQuery, _ search: inout StorePageSearch,
        count: Int = StorePageSearch.stepCount
    ) throws(SQLiteError) -> StoredPlaces? {
        let step = StorePageStep(search, count: count)
        defer { search = step.search }
        return try inSnapshot { () throws(SQLiteError) in
            guard let id = try roomID(key) else { return StoredPlaces(query, of: []) }
            let order = StoredRoomOrder(queries: self, statements: pages, room: id, query: query, step: step)
            let (sequences, spans) = try query.find(in: order)
            guard !step.isPaused else {
                if step.search.lookedCount < StorePageSearch.maxReadCount { return nil }
                throw SQLiteError(code: 1, sentence: "too many messages are of people who are left out")
            }
            var places = StoredPlaces(sequences: sequences, spans: spans)
            if places.reachesBeginning(query, first: try order.oldestOfAll()) {
                places.beginning = try order.beginning()
            }
            return places
        }
    }

    /// Takes one step of a search.
    ///
    /// - Parameter count: messages to read.
    func search(
        _ key: StoredRoomKey, _ search: StoredSearch, count: Int = StoredSearch.stepCount
    ) throws(SQLiteError) -> StoredSearchStep {
        try inSnapshot { () throws(SQLiteError) in
            guard search.limit > 0, let id = try roomID(key) else { return StoredSearchStep() }
            values.add(id)
            values.add(search.after?.milliseconds ?? .min)
            values.add(search.before?.milliseconds ?? .max)
            values.add(search.nick)
            values.add(search.text?.isEmpty == false ? 1 : 0)
            values.add(search.isForwards ? search.last.map { $0 &+ 1 } ?? .min : .min)
            values.add(search.isForwards ? .max : search.last ?? .max)
            values.add(search.foldsPunctuation ? 1 : 0)
            var look = StoredSearchLook(search, count: count)
            var places: [Int64] = []
            try some(search.isForwards ? pages.searchForwards : pages.searchBackwards) { row in
                let place = row.integer(0)
                let isMeant = search.without.isEmpty || !search.without.cover(row.voice())
                let matches = row.withBytes(7) { look.matches(place: place, isMeant ? $0 : nil) }
                if matches ?? look.matches(place: place, nil) { places.append(place) }
                return look.goesOn
            }
            var found: [StoredMessage] = []
            for place in search.isForwards ? places : places.reversed() {
                values.add(id)
                values.add(place &- 1)
                values.add(place)
                values.add(Int64(1))
                try each(between) { found.append($0.message()) }
            }
            return look.step(found)
        }
    }

    func countMessages(_ key: StoredRoomKey, after: Int64, through: Int64) throws(SQLiteError) -> Int {
        try inSnapshot { () throws(SQLiteError) in
            guard let id = try roomID(key) else { return 0 }
            values.add(id)
            values.add(after)
            values.add(through)
            return Int(try values.integer(count) ?? 0)
        }
    }

    // MARK: - Rows

    private func roomID(_ key: StoredRoomKey) throws(SQLiteError) -> Int64? {
        values.add(boot)
        values.add(key.backend)
        values.add(key.room)
        return try values.integer(roomRow)
    }

    /// Calls `body` for each row that `statement` returns for the added values.
    func each(_ statement: SQLiteStatement, _ body: (SQLiteStatement) -> Void) throws(SQLiteError) {
        defer { values.finish(statement) }
        try values.bind(to: statement)
        while try statement.step() { body(statement) }
    }

    /// Calls `body` for each row that `statement` returns for the added values, until it returns false.
    func some(_ statement: SQLiteStatement, _ body: (SQLiteStatement) -> Bool) throws(SQLiteError) {
        defer { values.finish(statement) }
        try values.bind(to: statement)
        while try statement.step(), body(statement) {}
    }

    /// The newest ones of the room that was added to ``values``, oldest first.
    private func newestMessages() throws(SQLiteError) -> [StoredMessage] {
        var found: [StoredMessage] = []
        try each(newest) { found.append($0.message()) }
        found.reverse()
        return found
    }

    private static func room(_ row: SQLiteStatement) -> StoredRoom {
        StoredRoom(
            liveUntil: row.optionalTimestamp(2), liveCounted: row.optionalInteger(3),
            isHistoryUnasked: row.integer(4) != 0, nextSequence: row.integer(1))
    }

    private func fill(
        _ empty: StoredRoom, _ id: Int64, _ key: StoredRoomKey, messagesPerRoom: Int
    ) throws(SQLiteError) -> StoredRoom {
        var room = empty
        values.add(id)
        values.add(Int64(max(0, messagesPerRoom)))
        room.messages = try newestMessages()
        values.add(id)
        try each(outbox) { room.outbox.append($0.outboxEntry(key)) }
        values.add(id)
        try each(markers) { row in
            room.markers.append(StoredMarker(reader: row.id(0), at: row.timestamp(1), sequence: row.integer(2)))
        }
        values.add(id)
        try each(receipts) { row in
            room.receipts.append(
                StoredReceipt(
                    author: row.id(0), reader: row.person(1), deliveredSequence: row.integer(3),
                    readSequence: row.integer(4)))
        }
        return room
    }
}

extension SQLiteStatement {
    /// A row of ``StoreColumns/message``.
    func message() -> StoredMessage {
        let flags = integer(15)
        return StoredMessage(
            kind: StoredMessage.Kind(rawValue: Int(integer(2))) ?? .message, sequence: integer(0), msgid: text(1),
            upstreamID: optionalID(6), sender: person(7), at: timestamp(3), backendAt: optionalTimestamp(4),
            gapFrom: optionalTimestamp(5), nick: text(9), source: text(10), account: optionalText(11), text: text(12),
            sentAs: optionalText(13), attachments: attachments(14), isEncrypted: flags & StoredFlag.encrypted != 0,
            replyTo: optionalText(16), clientTags: tags(17), author: optionalID(18), client: optionalText(19),
            isTakenBack: flags & StoredFlag.takenBack != 0)
    }

    /// A row of ``StoreColumns/outbox``.
    fileprivate func outboxEntry(_ room: StoredRoomKey) -> StoredOutboxEntry {
        StoredOutboxEntry(
            id: id(0), room: room, link: text(2), sender: person(3), sentAs: text(5), attachments: attachments(6),
            replyTo: optionalID(7), acceptedAt: timestamp(8), saidAfter: optionalInteger(19), author: id(9),
            nick: text(10), source: text(11),
            account: optionalText(12), client: optionalText(13), text: text(14), clientTags: tags(15),
            state: StoredOutboxEntry.State(rawValue: Int(integer(16))) ?? .written,
            confirmedPieces: Int(integer(17)), reason: optionalText(18))
    }
}
