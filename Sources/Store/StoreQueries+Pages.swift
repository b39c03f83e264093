import ChatModel

/// The statements behind pages and searches.
struct StorePageStatements {
    let byMsgid: SQLiteStatement
    let firstAt: SQLiteStatement
    let firstOfAnotherTime: SQLiteStatement
    let oldest: SQLiteStatement
    let newest: SQLiteStatement
    let beginning: SQLiteStatement
    let searchForwards: SQLiteStatement
    let searchBackwards: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(SQLiteError) {
        byMsgid = try connection.prepare("SELECT seq FROM messages WHERE room = ? AND msgid = ?")
        // By the index alone, through all times from there on: where clocks go right that is what was said since.
        firstAt = try connection.prepare(
            "SELECT min(seq) FROM messages INDEXED BY messages_room_time WHERE room = ? AND at >= ?")
        firstOfAnotherTime = try connection.prepare(
            "SELECT seq FROM messages WHERE room = ? AND seq >= ? AND at <> ? ORDER BY seq LIMIT 1")
        // The flags that a message must not have come last.
        let visible = "room = ? AND seq >= ? AND seq < ? AND flags & ? = 0 AND kind <> ?"
        oldest = try connection.prepare("SELECT seq FROM messages WHERE \(visible) ORDER BY seq LIMIT ?")
        newest = try connection.prepare("SELECT seq FROM messages WHERE \(visible) ORDER BY seq DESC LIMIT ?")
        let columns = StoreColumns.message.joined(separator: ", ")
        beginning = try connection.prepare("SELECT \(columns) FROM messages WHERE room = ? ORDER BY seq LIMIT ?")
        func search(_ direction: String) throws(SQLiteError) -> SQLiteStatement {
            try connection.prepare(
                """
                SELECT \(columns) FROM
                (SELECT * FROM messages WHERE room = ?1 ORDER BY seq \(direction) LIMIT \(StoredSearch.maxLooked))
                WHERE at >= ?2 AND at <= ?3
                AND kind IN (\(StoredMessage.Kind.message.rawValue), \(StoredMessage.Kind.notice.rawValue))
                AND flags & \(StoredFlag.takenBack) = 0 AND (?4 IS NULL OR nick = ?4 COLLATE NOCASE)
                AND (?5 IS NULL OR text LIKE ?5 ESCAPE '\\') ORDER BY seq \(direction) LIMIT ?6
                """)
        }
        searchForwards = try search("ASC")
        searchBackwards = try search("DESC")
    }

    /// The pattern of LIKE that stands for all texts with `part` in them.
    static func pattern(_ part: String) -> String {
        var pattern = "%"
        for scalar in part.unicodeScalars {
            if "%_\\".unicodeScalars.contains(scalar) { pattern += "\\" }
            pattern.unicodeScalars.append(scalar)
        }
        return pattern + "%"
    }
}

/// One room's messages on disk, as an order.
struct StoredRoomOrder: StoredOrder {
    typealias Failure = SQLiteError

    let queries: StoreQueries
    let statements: StorePageStatements
    let room: Int64
    let query: StoredPageQuery

    private var values: SQLiteValues { queries.values }

    func span(of reference: StoredReference) throws(SQLiteError) -> StoredSpan? {
        switch reference {
        case .beginning: return .beginning
        case .message(let msgid):
            values.add(room)
            values.add(msgid)
            return try values.integer(statements.byMsgid).map { StoredSpan(start: $0, end: $0 &+ 1) }
        case .time(let at):
            values.add(room)
            values.add(at.milliseconds)
            guard let start = try values.integer(statements.firstAt) else { return .end }
            values.add(room)
            values.add(start)
            values.add(at.milliseconds)
            return StoredSpan(start: start, end: try values.integer(statements.firstOfAnotherTime) ?? .max)
        }
    }

    func oldest(_ limit: Int, from lower: Int64, before upper: Int64) throws(SQLiteError) -> [Int64] {
        try places(statements.oldest, limit, lower, upper)
    }

    func newest(_ limit: Int, from lower: Int64, before upper: Int64) throws(SQLiteError) -> [Int64] {
        try places(statements.newest, limit, lower, upper).reversed()
    }

    private func places(
        _ statement: SQLiteStatement, _ limit: Int, _ lower: Int64, _ upper: Int64
    ) throws(SQLiteError) -> [Int64] {
        guard limit > 0, lower < upper else { return [] }
        values.add(room)
        values.add(lower)
        values.add(upper)
        values.add(query.withTakenBack ? 0 : StoredFlag.takenBack)
        values.add(query.withEvents ? Self.noKind : Int64(StoredMessage.Kind.event.rawValue))
        values.add(Int64(limit))
        var found: [Int64] = []
        try queries.each(statement) { found.append($0.integer(0)) }
        return found
    }

    private static let noKind: Int64 = -1

    /// The place of the room's oldest message, taken back or not; nil: there is none.
    func oldestOfAll() throws(SQLiteError) -> Int64? {
        values.add(room)
        values.add(Int64.min)
        values.add(Int64.max)
        values.add(Int64(0))
        values.add(Self.noKind)
        values.add(Int64(1))
        return try values.integer(statements.oldest)
    }

    func beginning() throws(SQLiteError) -> [StoredMessage] {
        values.add(room)
        values.add(Int64(StoredPlaces.beginningCount))
        var found: [StoredMessage] = []
        try queries.each(statements.beginning) { found.append($0.message()) }
        return found
    }
}
