import ChatModel

/// The content of recently redacted messages, for a redaction that the backend refuses after clients were notified of
/// it. In memory alone, so it ends with the process.
final class RedactedContent {
    /// Messages, each with the events that refer to it: a refusal comes within seconds.
    static let capacity = 20
    /// Rows of all of them together.
    static let maxRows = 500

    private let values = SQLiteValues()
    private let saveMessage: SQLiteStatement
    private let saveEvents: SQLiteStatement
    private let trim: SQLiteStatement
    private let restoreRows: SQLiteStatement
    private let delete: SQLiteStatement

    /// The columns that a redaction empties.
    private static let columns = "text, sent_as, attachments, tags, flags"

    /// - Parameter connection: the writer's; its temporary tables are in memory.
    init(_ connection: SQLiteConnection) throws(SQLiteError) {
        let columns = Self.columns
        try connection.execute(
            """
            CREATE TEMP TABLE IF NOT EXISTS withdrawn(
                number INTEGER PRIMARY KEY, about TEXT NOT NULL, room INTEGER NOT NULL, seq INTEGER NOT NULL, \(columns))
            """)
        let insert =
            "INSERT INTO temp.withdrawn(about, room, seq, \(columns)) SELECT ?2, room, seq, \(columns) FROM messages"
        saveMessage = try connection.prepare(
            "\(insert) WHERE room = ?1 AND msgid = ?2 AND flags & \(StoredFlag.takenBack) = 0")
        saveEvents = try connection.prepare(
            """
            \(insert) WHERE room = ?1 AND seq > (SELECT seq FROM messages WHERE room = ?1 AND msgid = ?2)
            AND flags & \(StoredFlag.takenBack) = 0 AND kind IN (\(StoredMessage.Kind.ofDeeds.numbers))
            AND instr(tags, '["\(StoredMessage.replyTag)","' || ?2 || '"]') > 0
            """)
        trim = try connection.prepare(
            """
            DELETE FROM temp.withdrawn WHERE number <= (SELECT max(number) FROM temp.withdrawn) - \(Self.maxRows)
            OR about NOT IN
            (SELECT about FROM temp.withdrawn GROUP BY about ORDER BY max(number) DESC LIMIT \(Self.capacity))
            """)
        restoreRows = try connection.prepare(
            """
            UPDATE messages SET (\(columns)) = (SELECT \(columns) FROM temp.withdrawn AS kept
            WHERE kept.room = ?1 AND kept.about = ?2 AND kept.seq = messages.seq ORDER BY number DESC LIMIT 1)
            WHERE room = ?1 AND seq IN (SELECT seq FROM temp.withdrawn WHERE room = ?1 AND about = ?2)
            """)
        delete = try connection.prepare("DELETE FROM temp.withdrawn WHERE room = ?1 AND about = ?2")
    }

    /// Copies the content; to be called before it is removed.
    func save(_ msgid: String, of room: Int64) throws(SQLiteError) {
        try run(saveMessage, msgid, room)
        try run(saveEvents, msgid, room)
        try values.run(trim)
    }

    func restore(_ msgid: String, of room: Int64) throws(SQLiteError) {
        try run(restoreRows, msgid, room)
        try run(delete, msgid, room)
    }

    private func run(_ statement: SQLiteStatement, _ msgid: String, _ room: Int64) throws(SQLiteError) {
        values.add(room)
        values.add(msgid)
        try values.run(statement)
    }
}
