import BridgeTypes
import ChatModel

/// The order of queued messages: a round robin of authors, so that a talkative sender delays no other.
///
/// | line              | contents                                                          | goes                      |
/// |-------------------|-------------------------------------------------------------------|---------------------------|
/// | again             | chosen before, not written or to be written again                 | first, in the old order   |
/// | author, network,  | queued messages of a person, of all guests of a network address,  | one message of each in    |
/// | relay             | of a bot under other names, of a room elsewhere                   | turn                      |
///
/// Pieces of one message are written together, and count as one message. An author, or a client, with an entry in a
/// line stays in that line until it is empty: no change of address, nick or login reorders messages.
///
/// Linked lists over the slots of ``OutboxLists``, and a ring of non-empty lines: every verb costs the same with any
/// number of entries and lines. Entries that must wait are passed over once.
struct OutboxTurns {
    enum Line: Hashable {
        case again
        /// One person, by the id upstream.
        case author(ChatID)
        /// Indistinguishable guests.
        case network(String)
        /// All names under which a bot speaks, by the bot's nick; and all people of a room elsewhere, by its place.
        case relay(String)

        /// Of a message under another name.
        ///
        /// A room elsewhere has one line by whichever mirror its messages come: where two mirrors lead to it, the one may bring a
        /// message and the other the next.
        static func relayed(_ tags: [StoredTag], by carrier: String) -> Self {
            .relay(OriginChain(tags: tags).places.first?.text ?? carrier)
        }
    }

    private enum Member: Hashable {
        case author(ChatID)
        case client(ClientID)
    }

    private struct Link {
        /// Nil: the slot is not queued.
        var line: Line?
        var previous: Int?
        var next: Int?
        /// The message of a piece.
        var group: UInt64?
        var author: ChatID?
        var client: ClientID?
        /// See ``OutboxEntry/place``.
        var place: UInt64 = 0

        init() {}

        init(_ entry: OutboxEntry) {
            group = entry.part?.group
            author = entry.origin.puppet
            client = entry.origin.client
            place = entry.place
        }

        var members: [Member] { [author.map { .author($0) }, client.map { .client($0) }].compactMap { $0 } }
    }

    private struct Ends {
        var first: Int?
        var last: Int?
        var isInRing = false
        /// Entries up to here must wait, until a release.
        var passed: Int?
        var passedAtRelease = 0
    }

    private var links: [Link] = []
    private var lines: [Line: Ends] = [:]
    /// The line in which a member has entries, and their number. The line `again` is not counted: it comes first
    /// anyway.
    private var places: [Member: (line: Line, count: Int)] = [:]
    /// The lines whose turn comes, from ``head`` on.
    private var ring: [Line] = []
    private var head = 0
    /// Lines out of the ring whose entries must wait.
    private var blocked: [Line] = []
    private var releases = 0
    private var count = 0
    /// The line and the message of the last piece taken.
    private var underway: (line: Line, group: UInt64)?

    // MARK: - The choice

    /// The slot that goes next.
    ///
    /// - Parameter waiting: authors who have to wait.
    mutating func next(passingOver waiting: [ChatID: Int]) -> Int? {
        if let slot = first(of: .again, waiting) { return slot }
        if let (line, group) = underway, let slot = first(of: line, waiting), links[slot].group == group { return slot }
        while head < ring.count {
            let line = ring[head]
            if let slot = first(of: line, waiting) { return slot }
            head += 1
            guard let ends = lines[line] else { continue }
            lines[line]?.isInRing = false
            if ends.first == nil { lines[line] = nil } else { blocked.append(line) }
        }
        return nil
    }

    private mutating func first(of line: Line, _ waiting: [ChatID: Int]) -> Int? {
        guard let ends = lines[line] else { return nil }
        guard !waiting.isEmpty else { return ends.first }
        var passed = ends.passedAtRelease == releases ? ends.passed : nil
        var slot = passed.map { links[$0].next } ?? ends.first
        while let at = slot, let author = links[at].author, waiting[author] != nil {
            passed = at
            slot = links[at].next
        }
        lines[line]?.passed = passed
        lines[line]?.passedAtRelease = releases
        return slot
    }

    /// Removes the entry chosen by ``next(passingOver:)`` and advances the ring.
    ///
    /// - Parameter home: the entry's own line, also where it is sent again.
    mutating func take(_ slot: Int, of home: Line) {
        guard let line = links[slot].line else { return }
        if head < ring.count, ring[head] == line {
            head += 1
            ring.append(line)
            if head >= 256, head * 2 > ring.count {
                ring.removeFirst(head)
                head = 0
            }
        }
        let group = links[slot].group
        if line != .again {
            underway = group.map { (home, $0) }
        } else if let group, let rest = lines[home]?.first, links[rest].group == group {
            // Retransmitted entries may also lie in front of a message whose first pieces are confirmed.
            underway = (home, group)
        }
        remove(slot)
    }

    /// An author no longer has to wait.
    mutating func release() {
        releases += 1
        for line in blocked { awake(line) }
        blocked = []
    }

    private mutating func awake(_ line: Line) {
        guard line != .again, lines[line]?.first != nil, lines[line]?.isInRing == false else { return }
        lines[line]?.isInRing = true
        ring.append(line)
    }

    // MARK: - Insertion and removal

    /// Appends to the entry's line. Returns that line.
    mutating func append(_ slot: Int, _ entry: OutboxEntry) -> Line {
        let link = Link(entry)
        let line = link.members.lazy.compactMap { [places] in places[$0]?.line }.first ?? entry.turn
        enter(slot, link, line, before: nil)
        return line
    }

    /// Inserts restored entries in front of newer ones of the same authors. Returns their lines.
    mutating func restore(_ left: [(slot: Int, entry: OutboxEntry)]) -> [Line] {
        var fronts: [Line: Int?] = [:]
        return left.map { slot, entry in
            let link = Link(entry)
            let line = places[.author(entry.origin.puppet)]?.line ?? entry.turn
            let front = fronts[line] ?? lines[line]?.first
            fronts.updateValue(front, forKey: line)
            enter(slot, link, line, before: front)
            return line
        }
    }

    /// Inserts an entry that was chosen before, in the order of choice.
    mutating func putBack(_ slot: Int, _ entry: OutboxEntry) {
        // Few entries stand in front of it.
        var before = lines[.again]?.first
        while let at = before, links[at].place < entry.place { before = links[at].next }
        enter(slot, Link(entry), .again, before: before)
    }

    /// Inserts in front of another, in the same line.
    mutating func insert(_ slot: Int, _ entry: OutboxEntry, before other: Int) {
        guard let line = links[other].line else { return }
        enter(slot, Link(entry), line, before: other)
    }

    private mutating func enter(_ slot: Int, _ link: Link, _ line: Line, before: Int?) {
        while links.count <= slot { links.append(Link()) }
        var ends = lines[line] ?? Ends()
        let previous = before.map { links[$0].previous } ?? ends.last
        links[slot] = link
        links[slot].line = line
        links[slot].previous = previous
        links[slot].next = before
        if let previous { links[previous].next = slot } else { ends.first = slot }
        if let before {
            links[before].previous = slot
            ends.passed = nil
        } else {
            ends.last = slot
        }
        lines[line] = ends
        count += 1
        if line != .again { for member in link.members { join(member, line) } }
        awake(line)
    }

    mutating func remove(_ slot: Int) {
        guard links.indices.contains(slot), let line = links[slot].line, var ends = lines[line] else { return }
        let link = links[slot]
        if let previous = link.previous { links[previous].next = link.next } else { ends.first = link.next }
        if let next = link.next { links[next].previous = link.previous } else { ends.last = link.previous }
        if ends.passed == slot { ends.passed = link.previous }
        // A line that is in the ring is dropped when its turn comes.
        lines[line] = ends.first == nil && !ends.isInRing ? nil : ends
        links[slot] = Link()
        if line != .again { for member in link.members { leave(member) } }
        count -= 1
        guard count == 0 else { return }
        // Memory of a long outage is released.
        ring.removeAll(keepingCapacity: ring.count <= 1024)
        lines = [:]
        blocked = []
        head = 0
    }

    /// No slot holds an entry any more, queued or not: memory of a long outage is released. Not earlier, since the next
    /// entry in a high slot would have all lower ones made again.
    mutating func slotsReleased() { links.removeAll(keepingCapacity: links.count <= 1024) }

    private mutating func join(_ member: Member, _ line: Line) {
        let place = places[member] ?? (line, 0)
        places[member] = (place.line, place.count + 1)
    }

    private mutating func leave(_ member: Member) {
        guard let place = places[member] else { return }
        places[member] = place.count > 1 ? (place.line, place.count - 1) : nil
    }

    /// The entry has another author now.
    mutating func reattribute(_ slot: Int, _ entry: OutboxEntry) {
        guard links.indices.contains(slot), let line = links[slot].line else { return }
        let new = Link(entry)
        if line != .again {
            for member in links[slot].members { leave(member) }
            for member in new.members { join(member, line) }
        }
        links[slot].author = new.author
        links[slot].client = new.client
    }
}
