import BridgeTypes
import ChatModel

/// Who is next among those whose messages are queued: a round robin, so that a talkative sender delays nobody else.
///
/// | line              | contents                                                          | goes                      |
/// |-------------------|-------------------------------------------------------------------|---------------------------|
/// | again             | chosen before, not written or to be written again                 | first, in the old order   |
/// | author, network,  | what a person, all guests of one network address, or a bot under  | one message of each in    |
/// | relay             | other names have queued                                           | turn                      |
///
/// Pieces of one message are written together, and count as one message. An author, and a client, with something in a line
/// stays in that line until it is empty: nobody's messages are swapped by a new address, a new nick or a login.
///
/// Linked lists over the slots of ``OutboxLists``, and a ring of the lines that have something: every verb costs the same
/// however many entries, and lines, there are. Entries that may not go are passed over once.
struct OutboxTurns {
    enum Line: Hashable {
        case again
        /// One person, by the id upstream.
        case author(ChatID)
        /// Guests who cannot be told apart.
        case network(String)
        /// All names under which a bot speaks, by the bot's nick.
        case relay(String)
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
        /// What stays together.
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
        /// What lies up to here may not go, as long as nobody was released.
        var passed: Int?
        var passedAtRelease = 0
    }

    private var links: [Link] = []
    private var lines: [Line: Ends] = [:]
    /// Where members have something queued, and how much. The line `again` counts for none: it comes first anyway.
    private var places: [Member: (line: Line, count: Int)] = [:]
    /// The lines whose turn comes, from ``head`` on.
    private var ring: [Line] = []
    private var head = 0
    /// Lines out of the ring in which nothing may go.
    private var blocked: [Line] = []
    private var releases = 0
    private var count = 0
    /// The line and the message of which a piece was taken last.
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

    /// Takes out what ``next(passingOver:)`` chose: the next line has its turn.
    ///
    /// - Parameter home: the entry's own line, also where it goes again.
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
            // What goes again may also lie in front of a message of which the first pieces have arrived.
            underway = (home, group)
        }
        remove(slot)
    }

    /// Some author no longer has to wait.
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

    // MARK: - Entering and leaving

    /// At the end of its line. Returns which that is.
    mutating func append(_ slot: Int, _ entry: OutboxEntry) -> Line {
        let link = Link(entry)
        let line = link.members.lazy.compactMap { [places] in places[$0]?.line }.first ?? entry.turn
        enter(slot, link, line, before: nil)
        return line
    }

    /// What an earlier process left, in front of what the same authors said since. Returns their lines.
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

    /// Chosen before, and to be chosen again: by its place among what was chosen.
    mutating func putBack(_ slot: Int, _ entry: OutboxEntry) {
        // Hardly anything stands in front of it.
        var before = lines[.again]?.first
        while let at = before, links[at].place < entry.place { before = links[at].next }
        enter(slot, Link(entry), .again, before: before)
    }

    /// In front of another, in the same line.
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
        // What a long outage needed is given back.
        links.removeAll(keepingCapacity: links.count <= 1024)
        ring.removeAll(keepingCapacity: ring.count <= 1024)
        lines = [:]
        blocked = []
        head = 0
    }

    private mutating func join(_ member: Member, _ line: Line) {
        let place = places[member] ?? (line, 0)
        places[member] = (place.line, place.count + 1)
    }

    private mutating func leave(_ member: Member) {
        guard let place = places[member] else { return }
        places[member] = place.count > 1 ? (place.line, place.count - 1) : nil
    }

    /// The entry's author is somebody else now.
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
