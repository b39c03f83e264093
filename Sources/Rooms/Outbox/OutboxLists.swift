/// The entries of an outbox in several ordered lists, with constant cost for every operation on an entry.
///
/// Linked lists over one array of slots. An entry stays in its slot while it moves from list to list; the slot is
/// reused when it is gone.
struct OutboxLists {
    /// In the order in which the lists follow each other.
    enum Name: Int, CaseIterable {
        /// Written with an unknown outcome: over a lost link, or without an answer in time.
        case open
        case written
        /// To be written once the attempt is persisted.
        case recordingAttempt
        case queued
        /// Not persisted yet.
        case accepting
    }

    private struct Slot {
        var entry: OutboxEntry?
        var list = Name.queued
        var previous: Int?
        var next: Int?
        /// The neighbours by age, across lists.
        var older: Int?
        var newer: Int?
        /// Distinguishes this entry from earlier ones in the slot.
        var serial: UInt64 = 0
    }

    private struct Ends {
        var first: Int?
        var last: Int?
        var count = 0
    }

    private var slots: [Slot] = []
    private var free: [Int] = []
    private var ends = [Ends](repeating: Ends(), count: Name.allCases.count)
    private var lastSerial: UInt64 = 0
    /// The entry that was accepted first.
    private(set) var oldest: Int?
    private var newest: Int?

    var count: Int { slots.count - free.count }

    func count(_ name: Name) -> Int { ends[name.rawValue].count }
    func first(_ name: Name) -> Int? { ends[name.rawValue].first }
    func last(_ name: Name) -> Int? { ends[name.rawValue].last }
    func next(after slot: Int) -> Int? { slots[slot].next }
    func previous(before slot: Int) -> Int? { slots[slot].previous }
    func list(of slot: Int) -> Name { slots[slot].list }
    func serial(of slot: Int) -> UInt64 { slots[slot].serial }
    func holds(_ slot: Int, serial: UInt64) -> Bool {
        slots.indices.contains(slot) && slots[slot].entry != nil && slots[slot].serial == serial
    }

    /// Lent, since entries are large: one property of an entry costs no copy of the others.
    subscript(slot: Int) -> OutboxEntry? { _read { yield slots[slot].entry } }

    mutating func modify(_ slot: Int, _ body: (inout OutboxEntry) -> Void) { slots[slot].entry?.change(body) }

    /// The entries of a list, first to last. Walks all of it.
    func entries(_ name: Name) -> [OutboxEntry] {
        var found: [OutboxEntry] = []
        var slot = first(name)
        while let at = slot {
            if let entry = slots[at].entry { found.append(entry) }
            slot = slots[at].next
        }
        return found
    }

    /// The first slot of a list whose entry fits.
    func first(_ name: Name, where fits: (OutboxEntry) -> Bool) -> Int? {
        var slot = first(name)
        while let at = slot {
            if let entry = slots[at].entry, fits(entry) { return at }
            slot = slots[at].next
        }
        return nil
    }

    // MARK: - Changes

    mutating func append(_ entry: consuming OutboxEntry, to name: Name) -> Int {
        insert(entry, into: name, before: nil, olderThan: nil)
    }

    /// - Parameters:
    ///   - before: a slot of that list; nil: at its end.
    ///   - newer: the entry that was accepted next; nil: none.
    mutating func insert(_ entry: consuming OutboxEntry, into name: Name, before: Int?, olderThan newer: Int?) -> Int {
        let slot: Int
        if let used = free.popLast() {
            slot = used
        } else {
            slot = slots.count
            slots.append(Slot())
        }
        lastSerial += 1
        slots[slot].entry = consume entry
        slots[slot].serial = lastSerial
        link(slot, into: name, before: before)
        let older = newer.map { slots[$0].older } ?? newest
        (slots[slot].older, slots[slot].newer) = (older, newer)
        if let older { slots[older].newer = slot } else { oldest = slot }
        if let newer { slots[newer].older = slot } else { newest = slot }
        return slot
    }

    mutating func remove(_ slot: Int) -> OutboxEntry? {
        guard let entry = slots[slot].entry.take() else { return nil }
        unlink(slot)
        let (older, newer) = (slots[slot].older, slots[slot].newer)
        if let older { slots[older].newer = newer } else { oldest = newer }
        if let newer { slots[newer].older = older } else { newest = older }
        free.append(slot)
        // Memory of a long outage is released.
        if free.count == slots.count {
            slots.removeAll(keepingCapacity: slots.count <= 1024)
            free.removeAll(keepingCapacity: free.count <= 1024)
        }
        return entry
    }

    mutating func move(_ slot: Int, to name: Name, before: Int? = nil) {
        unlink(slot)
        link(slot, into: name, before: before)
    }

    private mutating func link(_ slot: Int, into name: Name, before: Int?) {
        slots[slot].list = name
        slots[slot].next = before
        let previous = before.map { slots[$0].previous } ?? ends[name.rawValue].last
        slots[slot].previous = previous
        if let previous { slots[previous].next = slot } else { ends[name.rawValue].first = slot }
        if let before { slots[before].previous = slot } else { ends[name.rawValue].last = slot }
        ends[name.rawValue].count += 1
    }

    private mutating func unlink(_ slot: Int) {
        let name = slots[slot].list.rawValue
        let (previous, next) = (slots[slot].previous, slots[slot].next)
        if let previous { slots[previous].next = next } else { ends[name].first = next }
        if let next { slots[next].previous = previous } else { ends[name].last = previous }
        slots[slot].previous = nil
        slots[slot].next = nil
        ends[name].count -= 1
    }
}
