import ChatModel

/// What waits for its backend, or was given up, on the writer's connection.
final class StoreOutbox {
    /// Given-up messages whose author was told are remembered for a late confirmation, so many of a room.
    static let toldPerRoom = 200

    private let connection: SQLiteConnection
    private let accept: SQLiteStatement
    private let outboxState: SQLiteStatement
    private let forgetTold: SQLiteStatement
    private let leaveOutbox: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(SQLiteError) {
        self.connection = connection
        accept = try connection.prepare(
            """
            INSERT INTO outbox(key, \(StoreColumns.outbox.joined(separator: ", ")))
            VALUES(?, \(StoreColumns.outbox.map { _ in "?" }.joined(separator: ", ")))
            """)
        outboxState = try connection.prepare(
            "UPDATE outbox SET state = ?, confirmed = ?, reason = ? WHERE key = ?")
        forgetTold = try connection.prepare(
            """
            DELETE FROM outbox WHERE room = ?1 AND state = \(StoredOutboxEntry.State.told.rawValue) AND position <=
            (SELECT position FROM outbox WHERE room = ?1 AND state = \(StoredOutboxEntry.State.told.rawValue)
            ORDER BY position DESC LIMIT 1 OFFSET \(Self.toldPerRoom))
            """)
        leaveOutbox = try connection.prepare("DELETE FROM outbox WHERE key = ?")
    }

    func set(
        _ id: ChatID, _ state: StoredOutboxEntry.State, confirmedPieces: Int, reason: String?, _ values: SQLiteValues
    ) throws(SQLiteError) {
        values.add(Int64(state.rawValue))
        values.add(Int64(confirmedPieces))
        values.add(reason)
        values.add(id.canonical)
        try values.run(outboxState)
        if state == .told { try trimTold(id, values) }
    }

    func leave(_ id: ChatID, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(id.canonical)
        try values.run(leaveOutbox)
    }

    func accept(_ entry: StoredOutboxEntry, room: Int64, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(entry.id.canonical)
        // In the order of StoreColumns.outbox.
        values.add(entry.id)
        values.add(room)
        values.add(entry.link)
        values.add(entry.sender)
        values.add(entry.sentAs)
        values.add(entry.attachments)
        values.add(entry.replyTo)
        values.add(entry.acceptedAt.milliseconds)
        values.add(entry.author)
        values.add(entry.nick)
        values.add(entry.source)
        values.add(entry.account)
        values.add(entry.client)
        values.add(entry.text)
        values.add(entry.clientTags)
        values.add(Int64(entry.state.rawValue))
        values.add(Int64(entry.confirmedPieces))
        values.add(entry.reason)
        values.add(entry.saidAfter)
        try values.run(accept)
    }

    private func trimTold(_ id: ChatID, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(id.canonical)
        guard let room = try values.integer(roomOfEntry()) else { return }
        values.add(room)
        try values.run(forgetTold)
    }

    private var preparedRoomOfEntry: SQLiteStatement?

    /// Rarely needed, so prepared when it first is.
    private func roomOfEntry() throws(SQLiteError) -> SQLiteStatement {
        if let preparedRoomOfEntry { return preparedRoomOfEntry }
        let statement = try connection.prepare("SELECT room FROM outbox WHERE key = ?")
        preparedRoomOfEntry = statement
        return statement
    }
}
