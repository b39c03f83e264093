/// Removes what is about messages that are gone: a backend may give its people new ids at every start, and then who has read
/// what would grow for ever.
struct StoreTidying {
    /// Markers of a room that are kept whatever they say: they are where people, who come back after a year, have read up to.
    /// As many as the bridge itself remembers.
    static let markersPerRoom = 10_000

    private let receipts: SQLiteStatement
    private let markers: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(SQLiteError) {
        // Of a room without messages everything that has a place is gone.
        let oldest = """
            coalesce((SELECT min(seq) FROM messages WHERE room = ?1), (SELECT next_sequence FROM rooms WHERE id = ?1))
            """
        receipts = try connection.prepare(
            "DELETE FROM receipts WHERE room = ?1 AND max(delivered, read) < \(oldest)")
        markers = try connection.prepare(
            """
            DELETE FROM markers WHERE room = ?1 AND seq < \(oldest) AND key NOT IN
            (SELECT key FROM markers WHERE room = ?1 ORDER BY at DESC, key LIMIT \(Self.markersPerRoom))
            """)
    }

    func tidy(room: Int64, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(room)
        try values.run(receipts)
        values.add(room)
        try values.run(markers)
    }
}
