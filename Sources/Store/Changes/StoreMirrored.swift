import ChatModel

/// What mirrors have to know after a restart, on the writer's connection: the ids under which their tools have messages, and
/// their bookmarks.
final class StoreMirroredChanges {
    /// New rows of a mirror between two removals of its oldest.
    private static let removalInterval = 500

    private let insert: SQLiteStatement
    private let removeOldest: SQLiteStatement
    private let bookmark: SQLiteStatement
    private var grown: [String: Int] = [:]

    init(_ connection: SQLiteConnection) throws(SQLiteError) {
        insert = try connection.prepare(
            "INSERT OR REPLACE INTO mirrored(mirror, backend, room, msgid, tool_id, is_theirs) VALUES(?, ?, ?, ?, ?, ?)"
        )
        removeOldest = try connection.prepare(
            """
            DELETE FROM mirrored WHERE mirror = ?1 AND position <= (SELECT position FROM mirrored WHERE mirror = ?1
            ORDER BY position DESC LIMIT 1 OFFSET \(StoredMirrored.perMirror))
            """)
        bookmark = try connection.prepare("INSERT OR REPLACE INTO bookmarks(mirror, subject, place) VALUES(?, ?, ?)")
    }

    func save(_ known: StoredBookmark, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(known.mirror)
        values.add(known.subject)
        values.add(known.place)
        try values.run(bookmark)
    }

    func save(_ known: StoredMirrored, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(known.mirror)
        values.add(known.room.backend)
        values.add(known.room.room)
        values.add(known.msgid)
        values.add(known.toolID)
        values.add(Int64(known.isTheirs ? 1 : 0))
        try values.run(insert)
        grown[known.mirror, default: 0] += 1
        guard grown[known.mirror, default: 0] >= Self.removalInterval else { return }
        grown[known.mirror] = 0
        values.add(known.mirror)
        try values.run(removeOldest)
    }
}

extension StoreQueries {
    /// The newest of each mirror, oldest first.
    func mirrored() throws(SQLiteError) -> [StoredMirrored] {
        var found: [StoredMirrored] = []
        let statement = try connection.prepare(
            "SELECT mirror, backend, room, msgid, tool_id, is_theirs FROM mirrored ORDER BY position")
        try each(statement) { row in
            found.append(
                StoredMirrored(
                    mirror: row.text(0), room: StoredRoomKey(backend: row.text(1), room: row.text(2)),
                    msgid: row.text(3), toolID: row.text(4), isTheirs: row.integer(5) != 0))
        }
        return found
    }

    func bookmarks() throws(SQLiteError) -> [StoredBookmark] {
        var found: [StoredBookmark] = []
        let statement = try connection.prepare("SELECT mirror, subject, place FROM bookmarks ORDER BY mirror, subject")
        try each(statement) { row in
            found.append(StoredBookmark(mirror: row.text(0), subject: row.text(1), place: row.text(2)))
        }
        return found
    }
}
