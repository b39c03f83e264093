import ChatModel

/// The outbox table: messages unconfirmed by the backend or given up, on the writer's connection.
final class StoreOutbox {
    /// Given-up messages of a room that stay, after their author was notified, for a late confirmation.
    static let reportedPerRoom = 200

    private let connection: SQLiteConnection
    private let accept: SQLiteStatement
    private let outboxState: SQLiteStatement
    private let deleteReported: SQLiteStatement
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
        deleteReported = try connection.prepare(
            """
            DELETE FROM outbox WHERE room = ?1 AND state = \(StoredOutboxEntry.State.told.rawValue) AND position <=
            (SELECT position FROM outbox WHERE room = ?1 AND state = \(StoredOutboxEntry.State.told.rawValue)
            ORDER BY position DESC LIMIT 1 OFFSET \(Self.reportedPerRoom))
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
        if state == .told { try trimReported(id, values) }
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

    private func trimReported(_ id: ChatID, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(id.canonical)
        guard let room = try values.integer(roomOfEntry()) else { return }
        values.add(room)
        try values.run(deleteReported)
    }

    private var preparedRoomOfEntry: SQLiteStatement?

    /// Rarely needed, so prepared on first use.
    private func roomOfEntry() throws(SQLiteError) -> SQLiteStatement {
        if let preparedRoomOfEntry { return preparedRoomOfEntry }
        let statement = try connection.prepare("SELECT room FROM outbox WHERE key = ?")
        preparedRoomOfEntry = statement
        return statement
    }
}
