import ChatModel

/// The statements behind pages and searches.
struct StorePageStatements {
    let byMsgid: SQLiteStatement
    let firstNotBefore: SQLiteStatement
    let oldestAt: SQLiteStatement
    let newestAt: SQLiteStatement
    let next: SQLiteStatement
    let oldest: SQLiteStatement
    let newest: SQLiteStatement
    let oldestVoices: SQLiteStatement
    let newestVoices: SQLiteStatement
    let beginning: SQLiteStatement
    let searchForwards: SQLiteStatement
    let searchBackwards: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(SQLiteError) {
        byMsgid = try connection.prepare("SELECT seq FROM messages WHERE room = ? AND msgid = ?")
        // By the index alone, through all times from there on: with correct clocks those are the messages since.
        firstNotBefore = try connection.prepare(
            "SELECT min(seq) FROM messages INDEXED BY messages_room_time WHERE room = ? AND at >= ?")
        // The index has the places of one time in their order.
        func at(_ bound: String, _ direction: String) throws(SQLiteError) -> SQLiteStatement {
            try connection.prepare(
                """
                SELECT seq FROM messages INDEXED BY messages_room_time WHERE room = ? AND at = ? AND seq \(bound) ?
                ORDER BY seq \(direction) LIMIT 1
                """)
        }
        oldestAt = try at(">=", "ASC")
        newestAt = try at("<=", "DESC")
        next = try connection.prepare("SELECT seq FROM messages WHERE room = ? AND seq > ? ORDER BY seq LIMIT 1")
        // The flags that a message must not have come last; events about redacted messages are invisible.
        let visible = """
            room = ? AND seq >= ? AND seq < ? AND flags & ? = 0 AND kind <> ?
            AND NOT (kind IN (\(StoredMessage.Kind.ofDeeds.numbers)) AND flags & \(StoredFlag.takenBack) <> 0)
            """
        oldest = try connection.prepare("SELECT seq FROM messages WHERE \(visible) ORDER BY seq LIMIT ?")
        newest = try connection.prepare("SELECT seq FROM messages WHERE \(visible) ORDER BY seq DESC LIMIT ?")
        // For readers who mute some senders: read until there are enough, some at a time.
        let voices = "seq, kind, sender_id, sender_name, nick, account, author"
        oldestVoices = try connection.prepare("SELECT \(voices) FROM messages WHERE \(visible) ORDER BY seq LIMIT ?")
        newestVoices = try connection.prepare(
            "SELECT \(voices) FROM messages WHERE \(visible) ORDER BY seq DESC LIMIT ?")
        let columns = StoreColumns.message.joined(separator: ", ")
        beginning = try connection.prepare("SELECT \(columns) FROM messages WHERE room = ? ORDER BY seq LIMIT ?")
        // The text is read only of messages that meet the other conditions: SQLite reads a column when it is needed.
        func search(_ direction: String) throws(SQLiteError) -> SQLiteStatement {
            try connection.prepare(
                """
                SELECT \(voices),
                CASE WHEN at >= ?2 AND at <= ?3 AND (?4 IS NULL OR nick = ?4 COLLATE NOCASE
                OR ?8 AND \(StoredSearch.loweredPunctuation(sql: "nick")) =
                \(StoredSearch.loweredPunctuation(sql: "?4")) COLLATE NOCASE)
                AND kind IN (\(StoredMessage.Kind.ofWords.numbers))
                AND flags & \(StoredFlag.takenBack) = 0 THEN CASE WHEN ?5 THEN text ELSE '' END END
                FROM messages WHERE room = ?1 AND seq >= ?6 AND seq < ?7 ORDER BY seq \(direction)
                """)
        }
        searchForwards = try search("ASC")
        searchBackwards = try search("DESC")
    }
}

/// One room's messages on disk, ordered by sequence number.
struct StoredRoomOrder: TimedOrder {
    typealias Failure = SQLiteError

    let queries: StoreQueries
    let statements: StorePageStatements
    let room: Int64
    let query: StoredPageQuery
    let step: StorePageStep

    private var values: SQLiteValues { queries.values }

    func place(of msgid: String) throws(SQLiteError) -> Int64? {
        values.add(room)
        values.add(msgid)
        return try values.integer(statements.byMsgid)
    }

    func firstPlace(notBefore at: ChatTimestamp) throws(SQLiteError) -> Int64? {
        if let known = step.firstPlace(of: at) { return known }
        values.add(room)
        values.add(at.milliseconds)
        let place = try values.integer(statements.firstNotBefore)
        if !query.without.isEmpty { step.remember(firstPlace: place, of: at) }
        return place
    }

    func oldestPlace(at: ChatTimestamp, from lower: Int64) throws(SQLiteError) -> Int64? {
        try integer(statements.oldestAt, at.milliseconds, lower)
    }

    func newestPlace(at: ChatTimestamp, through upper: Int64) throws(SQLiteError) -> Int64? {
        try integer(statements.newestAt, at.milliseconds, upper)
    }

    private func integer(_ statement: SQLiteStatement, _ a: Int64, _ b: Int64) throws(SQLiteError) -> Int64? {
        values.add(room)
        values.add(a)
        values.add(b)
        return try values.integer(statement)
    }

    func oldest(_ limit: Int, from lower: Int64, before upper: Int64) throws(SQLiteError) -> [Int64] {
        try places(StorePageSearch.Range(isForwards: true, limit: limit, lower: lower, upper: upper))
    }

    func newest(_ limit: Int, from lower: Int64, before upper: Int64) throws(SQLiteError) -> [Int64] {
        try places(StorePageSearch.Range(isForwards: false, limit: limit, lower: lower, upper: upper)).reversed()
    }

    private func places(_ range: StorePageSearch.Range) throws(SQLiteError) -> [Int64] {
        guard range.limit > 0, range.lower < range.upper else { return [] }
        guard !query.without.isEmpty else {
            var found: [Int64] = []
            addRange(range, limit: range.limit)
            try queries.each(range.isForwards ? statements.oldest : statements.newest) { found.append($0.integer(0)) }
            return found
        }
        return try step.find(range) { (rest, most, wanted) throws(SQLiteError) in
            var found: [Int64] = []
            var (count, last): (Int, Int64?) = (0, nil)
            addRange(rest, limit: most)
            try queries.some(range.isForwards ? statements.oldestVoices : statements.newestVoices) { row in
                count += 1
                last = row.integer(0)
                if !query.without.cover(row.voice()) { found.append(row.integer(0)) }
                return found.count < wanted
            }
            return (found, count, last)
        }
    }

    private func addRange(_ range: StorePageSearch.Range, limit: Int) {
        values.add(room)
        values.add(range.lower)
        values.add(range.upper)
        values.add(query.withTakenBack ? 0 : StoredFlag.takenBack)
        values.add(query.withEvents ? Self.noKind : Int64(StoredMessage.Kind.event.rawValue))
        values.add(Int64(limit))
    }

    private static let noKind: Int64 = -1

    /// The sequence number of the room's oldest message, redacted or not; nil: there is none.
    func oldestOfAll() throws(SQLiteError) -> Int64? {
        values.add(room)
        values.add(Int64.min)
        return try values.integer(statements.next)
    }

    func beginning() throws(SQLiteError) -> [StoredMessage] {
        values.add(room)
        values.add(Int64(StoredPlaces.beginningCount))
        var found: [StoredMessage] = []
        try queries.each(statements.beginning) { found.append($0.message()) }
        return found
    }
}

extension SQLiteStatement {
    /// A row of ``StorePageStatements/oldestVoices``, as far as it identifies the sender.
    func voice() -> StoredMessage {
        StoredMessage(
            kind: StoredMessage.Kind(rawValue: Int(integer(1))) ?? .message, sequence: integer(0), msgid: "",
            sender: person(2), at: ChatTimestamp(milliseconds: 0), nick: text(4), source: "", account: optionalText(5),
            text: "", author: optionalID(6))
    }
}
