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

    /// What the turns know of an entry.
    struct Link {
        /// The number of its line; nil: the slot is not queued.
        fileprivate var line: Int?
        fileprivate var previous: Int?
        fileprivate var next: Int?
        /// The message of a piece.
        fileprivate var group: UInt64?
        fileprivate var author: ChatID?
        fileprivate var client: ClientID?
        /// See ``OutboxEntry/place``.
        fileprivate var place: UInt64 = 0

        fileprivate init() {}

        init(author: ChatID, client: ClientID?, group: UInt64?, place: UInt64) {
            (self.author, self.client, self.group, self.place) = (author, client, group, place)
        }
    }

    private struct Ends {
        let line: Line
        var first: Int?
        var last: Int?
        var isInRing = false
        /// Entries up to here must wait, until a release.
        var passed: Int?
        var passedAtRelease = 0

        init(_ line: Line) { self.line = line }
    }

    /// The number of the line `again`, which is always there.
    private static let again = 0

    private var links: [Link] = []
    /// The lines by number; that of a line that is gone is given to another.
    private var ends = [Ends(.again)]
    private var numbers: [Line: Int] = [:]
    private var freeNumbers: [Int] = []
    /// The line in which a member has entries, and their number. The line `again` is not counted: it comes first
    /// anyway.
    ///
    /// By its name: a line may be gone, and its number another's, while one that had entries there still has some elsewhere.
    private var places: [Member: (line: Line, count: Int)] = [:]
    /// The lines whose turn comes, from ``head`` on.
    private var ring: [Int] = []
    private var head = 0
    /// Lines out of the ring whose entries must wait.
    private var blocked: [Int] = []
    private var releases = 0
    private var count = 0
    /// The line and the message of the last piece taken.
    private var underway: (line: Int, group: UInt64)?
    /// The only entry, where nothing else waits: it needs no line, and most messages are written before another comes.
    private var lone: Int?
    private var loneLink = Link()
    private var loneLine = Line.again

    // MARK: - The choice

    /// The slot that goes next.
    ///
    /// - Parameter waiting: authors who have to wait.
    mutating func next(passingOver waiting: [ChatID: Int]) -> Int? {
        if waiting.isEmpty, let lone { return lone }
        lineUp()
        if let slot = first(of: Self.again, waiting) { return slot }
        if let (line, group) = underway, let slot = first(of: line, waiting), links[slot].group == group { return slot }
        while head < ring.count {
            let line = ring[head]
            if let slot = first(of: line, waiting) { return slot }
            head += 1
            ends[line].isInRing = false
            if ends[line].first == nil { drop(line) } else { blocked.append(line) }
        }
        return nil
    }

    private mutating func first(of line: Int, _ waiting: [ChatID: Int]) -> Int? {
        guard !waiting.isEmpty else { return ends[line].first }
        var passed = ends[line].passedAtRelease == releases ? ends[line].passed : nil
        var slot = passed.map { links[$0].next } ?? ends[line].first
        while let at = slot, let author = links[at].author, waiting[author] != nil {
            passed = at
            slot = links[at].next
        }
        ends[line].passed = passed
        ends[line].passedAtRelease = releases
        return slot
    }

    /// Removes the entry chosen by ``next(passingOver:)`` and advances the ring.
    ///
    /// - Parameter home: the entry's own line, also where it is sent again.
    mutating func take(_ slot: Int, of home: Line) {
        if lone == slot { return lone = nil }
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
        if line != Self.again {
            underway = group.map { (line, $0) }
        } else if let group, let own = numbers[home], let rest = ends[own].first, links[rest].group == group {
            // Retransmitted entries may also lie in front of a message whose first pieces are confirmed.
            underway = (own, group)
        }
        remove(slot)
    }

    /// An author no longer has to wait.
    mutating func release() {
        releases += 1
        for line in blocked { awake(line) }
        blocked = []
    }

    private mutating func awake(_ line: Int) {
        guard line != Self.again, ends[line].first != nil, !ends[line].isInRing else { return }
        ends[line].isInRing = true
        ring.append(line)
    }

    // MARK: - Insertion and removal

    /// Appends to the entry's line. Returns that line.
    ///
    /// - Parameter turn: its line where neither its author nor its client has an entry.
    mutating func append(_ slot: Int, _ link: Link, turn: Line) -> Line {
        if count == 0, lone == nil, link.group == nil {
            (lone, loneLink, loneLine) = (slot, link, turn)
            return turn
        }
        lineUp()
        let line =
            link.author.flatMap { places[.author($0)]?.line } ?? link.client.flatMap { places[.client($0)]?.line }
            ?? turn
        enter(slot, link, number(of: line), before: nil)
        return line
    }

    /// The only entry is the only one no longer.
    private mutating func lineUp() {
        guard let slot = lone else { return }
        lone = nil
        enter(slot, loneLink, number(of: loneLine), before: nil)
    }

    /// Inserts restored entries in front of newer ones of the same authors. Returns their lines.
    mutating func restore(_ left: [(slot: Int, entry: OutboxEntry)]) -> [Line] {
        lineUp()
        var fronts: [Int: Int?] = [:]
        return left.map { slot, entry in
            let line = number(of: places[.author(entry.origin.puppet)]?.line ?? entry.turn)
            let front = fronts[line] ?? ends[line].first
            fronts.updateValue(front, forKey: line)
            enter(slot, entry.link, line, before: front)
            return ends[line].line
        }
    }

    /// Inserts an entry that was chosen before, in the order of choice.
    mutating func putBack(_ slot: Int, _ link: Link) {
        lineUp()
        // Few entries stand in front of it.
        var before = ends[Self.again].first
        while let at = before, links[at].place < link.place { before = links[at].next }
        enter(slot, link, Self.again, before: before)
    }

    /// Inserts in front of another, in the same line.
    mutating func insert(_ slot: Int, _ link: Link, before other: Int) {
        lineUp()
        guard let line = links[other].line else { return }
        enter(slot, link, line, before: other)
    }

    private mutating func enter(_ slot: Int, _ link: Link, _ line: Int, before: Int?) {
        while links.count <= slot { links.append(Link()) }
        let previous = before.map { links[$0].previous } ?? ends[line].last
        links[slot] = link
        links[slot].line = line
        links[slot].previous = previous
        links[slot].next = before
        if let previous { links[previous].next = slot } else { ends[line].first = slot }
        if let before {
            links[before].previous = slot
            ends[line].passed = nil
        } else {
            ends[line].last = slot
        }
        count += 1
        if line != Self.again { join(link, ends[line].line) }
        awake(line)
    }

    mutating func remove(_ slot: Int) {
        if lone == slot { return lone = nil }
        guard links.indices.contains(slot), let line = links[slot].line else { return }
        let link = links[slot]
        if let previous = link.previous { links[previous].next = link.next } else { ends[line].first = link.next }
        if let next = link.next { links[next].previous = link.previous } else { ends[line].last = link.previous }
        if ends[line].passed == slot { ends[line].passed = link.previous }
        links[slot] = Link()
        if line != Self.again { leave(link) }
        count -= 1
        guard count == 0 else {
            // A line that is in the ring is dropped when its turn comes.
            if ends[line].first == nil, !ends[line].isInRing { drop(line) }
            return
        }
        // Memory of a long outage is released.
        let isSmall = ring.count <= 1024 && ends.count <= 1024
        ring.removeAll(keepingCapacity: isSmall)
        numbers.removeAll(keepingCapacity: isSmall)
        freeNumbers.removeAll(keepingCapacity: isSmall)
        ends.removeAll(keepingCapacity: isSmall)
        ends.append(Ends(.again))
        blocked = []
        head = 0
        underway = nil
    }

    /// No slot holds an entry any more, queued or not: memory of a long outage is released. Not earlier, since the next
    /// entry in a high slot would have all lower ones made again.
    mutating func slotsReleased() { links.removeAll(keepingCapacity: links.count <= 1024) }

    // MARK: - Lines and members

    private mutating func number(of line: Line) -> Int {
        if line == .again { return Self.again }
        if let number = numbers[line] { return number }
        let number = freeNumbers.popLast() ?? ends.count
        if number == ends.count { ends.append(Ends(line)) } else { ends[number] = Ends(line) }
        numbers[line] = number
        return number
    }

    private mutating func drop(_ line: Int) {
        guard line != Self.again else { return }
        numbers[ends[line].line] = nil
        freeNumbers.append(line)
    }

    private mutating func join(_ link: Link, _ line: Line) {
        if let author = link.author { join(.author(author), line) }
        if let client = link.client { join(.client(client), line) }
    }

    private mutating func join(_ member: Member, _ line: Line) {
        guard let index = places.index(forKey: member) else { return places[member] = (line, 1) }
        places.values[index].count += 1
    }

    private mutating func leave(_ link: Link) {
        if let author = link.author { leave(.author(author)) }
        if let client = link.client { leave(.client(client)) }
    }

    private mutating func leave(_ member: Member) {
        guard let index = places.index(forKey: member) else { return }
        if places.values[index].count > 1 { places.values[index].count -= 1 } else { places.remove(at: index) }
    }

    /// The entry has another author now.
    mutating func reattribute(_ slot: Int, _ new: Link) {
        lineUp()
        guard links.indices.contains(slot), let line = links[slot].line else { return }
        if line != Self.again {
            leave(links[slot])
            join(new, ends[line].line)
        }
        links[slot].author = new.author
        links[slot].client = new.client
    }
}
