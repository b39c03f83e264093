import WireBytes

/// Removes messages that are too old or too many, in slices, so that nobody waits long for the writer. Never touches what
/// is in the outbox.
struct StoreRetention {
    /// Nanoseconds from one look to the next, 10 s: what a minute of a busy room brings is removed in pieces.
    static let interval: Int64 = 10_000_000_000

    /// Messages removed in one transaction: a few milliseconds.
    static let sliceCount = 500

    /// Nanoseconds between two times that a room loses what was about messages that went, an hour: all of a room's receipts
    /// are looked at.
    static let tidyInterval: Int64 = 3_600_000_000_000

    private let maxAgeMilliseconds: Int64?
    private let maxPerRoom: Int?

    private var nextLook: Int64
    /// Rooms that may have messages that are too old.
    private var agedRooms: [Int64] = []
    private var crowdedRooms: [Int64] = []
    /// Rooms that lost messages since they were tidied, and those to tidy now.
    private var shortenedRooms: Set<Int64> = []
    private var untidyRooms: [Int64] = []
    private var nextTidying: Int64
    private var hasLooked = false
    private var mustLook = false
    private var whoWaits: [@Sendable () -> Void] = []

    init(_ settings: StoreSettings, now: Int64) {
        maxAgeMilliseconds = settings.retention.map { $0.wholeNanoseconds / 1_000_000 }
        maxPerRoom = settings.maxMessagesPerRoom.map { max(0, $0) }
        nextLook = now
        nextTidying = now
    }

    private var hasWork: Bool { !agedRooms.isEmpty || !crowdedRooms.isEmpty || !untidyRooms.isEmpty }

    /// When the next slice is to be removed; nil: never.
    func due(_ now: Int64) -> Int64? {
        if hasWork || mustLook { return now }
        return maxAgeMilliseconds == nil && maxPerRoom == nil ? nil : nextLook
    }

    func isDue(_ now: Int64) -> Bool { due(now).map { $0 <= now } ?? false }

    mutating func hurry(_ done: @escaping @Sendable () -> Void) {
        whoWaits.append(done)
        mustLook = true
    }

    /// Removes one slice.
    mutating func slice(_ changes: StoreChanges, now: Int64, wallClockMilliseconds: Int64) throws(SQLiteError) {
        if !hasWork, mustLook || now >= nextLook { try look(changes, now: now) }
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
                    // Looking at a room costs something even when nothing goes.
                    left -= max(removed, 1)
                }
            } else if let room = crowdedRooms.last, let maxPerRoom {
                let removed = try changes.removeMessages(ofRoom: room, beyond: maxPerRoom, limit: Self.sliceCount)
                if removed > 0 { shortenedRooms.insert(room) }
                if removed < Self.sliceCount {
                    crowdedRooms.removeLast()
                    changes.forgetGrowth(ofRoom: room)
                }
            } else if let room = untidyRooms.last {
                try changes.tidy(room: room)
                untidyRooms.removeLast()
            }
            try changes.commit()
            if agedRooms.isEmpty, crowdedRooms.isEmpty, !shortenedRooms.isEmpty, now >= nextTidying || !whoWaits.isEmpty
            {
                untidyRooms += shortenedRooms
                shortenedRooms = []
                nextTidying = now &+ Self.tidyInterval
            }
        }
        if !hasWork, !mustLook {
            for done in whoWaits { done() }
            whoWaits = []
        }
    }

    private mutating func look(_ changes: StoreChanges, now: Int64) throws(SQLiteError) {
        agedRooms = maxAgeMilliseconds != nil ? try changes.allRoomIDs() : []
        if let maxPerRoom {
            // Finding the place to cut at costs as much as the room has messages, so it must be worth it.
            let worth = mustLook ? 0 : max(100, maxPerRoom / 16)
            crowdedRooms =
                hasLooked ? changes.grown.compactMap { $0.value >= worth ? $0.key : nil } : try changes.allRoomIDs()
        }
        hasLooked = true
        mustLook = false
        nextLook = now &+ Self.interval
    }
}
