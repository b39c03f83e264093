import WireBytes

/// Removes messages that are too old or too many, in slices, so that the writer is never blocked for long. Never
/// touches the outbox.
struct StoreRetention {
    /// Nanoseconds between two checks, 10 s: a minute of a busy room is removed in pieces.
    static let interval: Int64 = 10_000_000_000

    /// Messages removed in one transaction: a few milliseconds.
    static let sliceCount = 500

    /// Nanoseconds between two removals of a room's rows about removed messages, an hour: all of a room's receipts are
    /// read.
    static let orphanInterval: Int64 = 3_600_000_000_000

    private let maxAgeMilliseconds: Int64?
    private let maxPerRoom: Int?

    private var nextCheck: Int64
    /// Rooms that may have messages that are too old.
    private var agedRooms: [Int64] = []
    private var fullRooms: [Int64] = []
    /// Rooms that lost messages since their last removal of orphaned rows, and those that are due now.
    private var shortenedRooms: Set<Int64> = []
    private var orphanedRooms: [Int64] = []
    private var nextOrphanRemoval: Int64
    private var hasChecked = false
    private var isForced = false
    private var completions: [@Sendable () -> Void] = []

    init(_ settings: StoreSettings, now: Int64) {
        maxAgeMilliseconds = settings.retention.map { $0.wholeNanoseconds / 1_000_000 }
        maxPerRoom = settings.maxMessagesPerRoom.map { max(0, $0) }
        nextCheck = now
        nextOrphanRemoval = now
    }

    private var hasWork: Bool { !agedRooms.isEmpty || !fullRooms.isEmpty || !orphanedRooms.isEmpty }

    /// When the next slice is due; nil: never.
    func due(_ now: Int64) -> Int64? {
        if hasWork || isForced { return now }
        return maxAgeMilliseconds == nil && maxPerRoom == nil ? nil : nextCheck
    }

    func isDue(_ now: Int64) -> Bool { due(now).map { $0 <= now } ?? false }

    mutating func force(_ done: @escaping @Sendable () -> Void) {
        completions.append(done)
        isForced = true
    }

    /// Removes one slice.
    mutating func slice(_ changes: StoreChanges, now: Int64, wallClockMilliseconds: Int64) throws(SQLiteError) {
        if !hasWork, isForced || now >= nextCheck { try check(changes, now: now) }
        if hasWork {
            try changes.begin()
            if let age = maxAgeMilliseconds, !agedRooms.isEmpty {
                let (cutoff, overflow) = wallClockMilliseconds.subtractingReportingOverflow(age)
                var left = Self.sliceCount
                while left > 0, let room = agedRooms.last {
                    let removed = try changes.removeMessages(
                        ofRoom: room, before: overflow ? .min : cutoff, limit: left)
                    if removed > 0 { shortenedRooms.insert(room) }
                    if removed < left { agedRooms.removeLast() }
                    // Checking a room has a cost even when nothing is removed.
                    left -= max(removed, 1)
                }
            } else if let room = fullRooms.last, let maxPerRoom {
                let removed = try changes.removeMessages(ofRoom: room, beyond: maxPerRoom, limit: Self.sliceCount)
                if removed > 0 { shortenedRooms.insert(room) }
                if removed < Self.sliceCount {
                    fullRooms.removeLast()
                    changes.clearGrowth(ofRoom: room)
                }
            } else if let room = orphanedRooms.last {
                try changes.removeOrphans(room: room)
                orphanedRooms.removeLast()
            }
            try changes.commit()
            if agedRooms.isEmpty, fullRooms.isEmpty, !shortenedRooms.isEmpty,
                now >= nextOrphanRemoval || !completions.isEmpty
            {
                orphanedRooms += shortenedRooms
                shortenedRooms = []
                nextOrphanRemoval = now &+ Self.orphanInterval
            }
        }
        if !hasWork, !isForced {
            for done in completions { done() }
            completions = []
        }
    }

    private mutating func check(_ changes: StoreChanges, now: Int64) throws(SQLiteError) {
        agedRooms = maxAgeMilliseconds != nil ? try changes.allRoomIDs() : []
        if let maxPerRoom {
            // Finding the place to cut costs as much as the room has messages, so it must be worth it.
            let worth = isForced ? 0 : max(100, maxPerRoom / 16)
            fullRooms =
                hasChecked ? changes.grown.compactMap { $0.value >= worth ? $0.key : nil } : try changes.allRoomIDs()
        }
        hasChecked = true
        isForced = false
        nextCheck = now &+ Self.interval
    }
}

/// Removes receipts and markers that refer to removed messages: with a backend that gives its users new ids at every
/// start, they would grow without bound.
struct StoreOrphans {
    /// Markers of a room that are never removed: they are the read position of users who come back after a year. As
    /// many as the bridge has in memory.
    static let markersPerRoom = 10_000

    private let receipts: SQLiteStatement
    private let markers: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(SQLiteError) {
        // Of a room without messages every row with a sequence number is orphaned.
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

    func remove(room: Int64, _ values: SQLiteValues) throws(SQLiteError) {
        values.add(room)
        try values.run(receipts)
        values.add(room)
        try values.run(markers)
    }
}
