import ChatModel

/// The last lines of a room, for replies, read markers and receipts. The store has older ones.
///
/// Lines of the bridge, such as a gap or an edit by another person, have a sequence number only: they cannot be
/// answered, redacted or reported upstream.
package final class RecentLog {
    package static let capacity = 2000

    package struct Entry {
        /// The line as it is logged; of a long one, without its text and files.
        fileprivate var row: StoredMessage
        /// The upstream id of its author, an IRC user; nil: an upstream person.
        package fileprivate(set) var puppet: ChatID?
        package fileprivate(set) var nick: String
        /// The beginning of the text, for quoting.
        fileprivate var beginning: String
        /// The beginning of the transmitted text, where it differs.
        fileprivate var wentUpAs: String?
        fileprivate var msgidHash: UInt32 = 0
        fileprivate var upstreamIDHash: UInt32 = 0
        /// What few have; boxed so that the ring is small. Nil: nothing of it.
        private var rare: Box?

        private struct Rare {
            var formerPuppet: ChatID?
            var changedTo: String?
        }

        private final class Box: Sendable {
            let rare: Rare
            init(_ rare: Rare) { self.rare = rare }
        }

        fileprivate init(_ row: StoredMessage, by puppet: ChatID?, nick: String, beginning: String) {
            self.row = row
            self.puppet = puppet
            self.nick = nick
            self.beginning = beginning
        }

        /// The author's former id on the backend, where it was reassigned and `puppet` is a placeholder.
        fileprivate(set) var formerPuppet: ChatID? {
            get { rare?.rare.formerPuppet }
            set { if newValue != formerPuppet { changeRare { $0.formerPuppet = newValue } } }
        }

        /// The beginning of the last reported edit by another person.
        fileprivate var changedTo: String? {
            get { rare?.rare.changedTo }
            set { if newValue != changedTo { changeRare { $0.changedTo = newValue } } }
        }

        private mutating func changeRare(_ change: (inout Rare) -> Void) {
            var changed = rare?.rare ?? Rare()
            change(&changed)
            rare = Box(changed)
        }

        /// The relay's id.
        package var msgid: String { row.msgid }
        /// The backend's id.
        package var upstreamID: ChatID? { row.upstreamID }
        /// The author on the backend, where that is an upstream person.
        var sender: ChatPerson { puppet == nil ? row.sender : ChatPerson() }
        /// It can be neither answered nor quoted any more.
        package var isTakenBack: Bool { row.isTakenBack }
        /// Its author is unknown too, and it cannot be restored.
        fileprivate var isErased: Bool { row.isErased }
        /// The time that IRC clients were shown.
        package var at: ChatTimestamp { row.at }
        /// Grows in the order of the room.
        package var sequence: Int { Int(row.sequence) }
        /// A line of the bridge: a gap or an edit.
        var isNotice: Bool { row.isOfBridge }

        /// The first words, for a reply. Computed on demand: most messages are never answered.
        package var excerpt: String { MessageText.excerpt(beginning) }
        /// A lower bound of its time: a line shows no time that is later by more.
        var saidNoEarlier: ChatTimestamp { at.after(-RecentLog.mostRaised) }

        /// Whether a message has a later time and another text.
        func isOlder(than message: ChatMessage) -> Bool {
            // No line shows a time before its own.
            guard !isTakenBack, let at = message.at, at > self.at.after(CatchUp.serverClockTolerance) else {
                return false
            }
            let beginning = RecentLog.beginning(of: message.text)
            return beginning != self.beginning && beginning != wentUpAs && beginning != changedTo
        }
    }

    /// Retained bytes of a text: more than an excerpt shows, without holding a megabyte for sixty characters.
    private static let keptBytes = 1024

    private static func beginning(of text: String) -> String {
        text.utf8.count <= keptBytes ? text : String(text.unicodeScalars.prefix(keptBytes / 4)) + "…"
    }

    private var ring: [Entry] = []
    private var oldest = 0
    /// The next sequence number.
    private(set) var nextSequence = 0
    /// The latest time of a line, and the same with each capped at the local clock on arrival.
    private var latestSaid: ChatTimestamp?
    private var latestHeard: ChatTimestamp?
    /// The times shown by the retained lines; a gap is a line too.
    private var shownTimes = ShownTimes()
    private var msgids = SlotTable()
    private var upstreamIDs = SlotTable()

    /// Continues from this sequence number, unless it was used already.
    func goOn(from sequence: Int) { nextSequence = min(max(nextSequence, sequence), Self.maxPlace) }

    /// The maximum accepted from a file: sequence numbers must go on growing.
    private static let maxPlace = Int.max / 2

    /// Records the time of a line.
    func heard(_ at: ChatTimestamp, wall: ChatTimestamp) {
        let heard = min(at, wall)
        latestSaid = latestSaid.map { max($0, at) } ?? at
        latestHeard = latestHeard.map { max($0, heard) } ?? heard
    }

    /// The latest time of a line, capped at now; nil: there is no line.
    func latest(wall: ChatTimestamp) -> ChatTimestamp? {
        if let latestSaid, latestSaid <= wall { return latestSaid }
        return latestHeard.map { min($0, wall) }
    }

    /// Adds a message.
    ///
    /// - Parameters:
    ///   - row: with the next sequence number.
    ///   - puppet: the upstream id of its author, an IRC user.
    ///   - text: for quoting.
    func append(_ row: StoredMessage, by puppet: ChatID?, nick: String, text: String) {
        let slot = push(
            Entry(held(row), by: puppet, nick: nick, beginning: Self.beginning(of: text)))
        let hash = SlotTable.hash(row.msgid)
        if let known = self.slot(of: row.msgid, hash) { msgids.remove(known, hash) }
        ring[slot].msgidHash = hash
        msgids.insert(slot, hash)
        if let upstreamID = row.upstreamID { index(slot, upstreamID) }
    }

    /// Adds a line of the bridge, with the next sequence number.
    func append(notice row: StoredMessage) {
        _ = push(Entry(held(row), by: nil, nick: "", beginning: ""))
    }

    /// The row as it is held here: with the next sequence number instead of a file's, and without its bulk.
    private func held(_ row: StoredMessage) -> StoredMessage {
        var row = row
        if row.sequence != Int64(nextSequence) { row.sequence = Int64(nextSequence) }
        guard row.memoryByteCount > Self.keptBytes else { return row }
        row.change { ($0.text, $0.sentAs, $0.attachments, $0.clientTags) = ("", nil, [], []) }
        return row
    }

    // A call would copy the entry.
    @inline(__always)
    private func push(_ entry: consuming Entry) -> Int {
        let slot: Int
        let at = entry.row.at
        if ring.count < Self.capacity {
            slot = ring.count
            ring.append(entry)
        } else {
            slot = oldest
            let dropped = ring[slot].row
            if !dropped.isOfBridge { msgids.remove(slot, ring[slot].msgidHash) }
            if dropped.upstreamID != nil { upstreamIDs.remove(slot, ring[slot].upstreamIDHash) }
            shownTimes.remove(dropped.at)
            ring[slot] = entry
            oldest = (oldest + 1) % Self.capacity
        }
        nextSequence += 1
        shownTimes.insert(at)
        return slot
    }

    /// Takes a sequence number for a line that cannot be answered or reported upstream, without retaining it.
    func takePlace() -> Int {
        nextSequence += 1
        return lastSequence
    }

    /// The time that a message was shown with; nil: it is not here.
    func time(of msgid: String) -> ChatTimestamp? { slot(of: msgid).map { ring[$0].row.at } }

    func entry(msgid: String) -> Entry? { slot(of: msgid).map { ring[$0] } }

    func entry(upstreamID: ChatID) -> Entry? { slot(of: upstreamID, SlotTable.hash(upstreamID)).map { ring[$0] } }

    private func slot(of msgid: String) -> Int? { slot(of: msgid, SlotTable.hash(msgid)) }

    private func slot(of msgid: String, _ hash: UInt32) -> Int? { msgids.slot(hash) { ring[$0].row.msgid == msgid } }

    private func slot(of upstreamID: ChatID, _ hash: UInt32) -> Int? {
        upstreamIDs.slot(hash) { ring[$0].row.upstreamID == upstreamID }
    }

    /// Makes the message known by its backend's only id.
    private func index(_ slot: Int, _ upstreamID: ChatID) {
        let hash = SlotTable.hash(upstreamID)
        if let known = self.slot(of: upstreamID, hash) { upstreamIDs.remove(known, hash) }
        ring[slot].upstreamIDHash = hash
        upstreamIDs.insert(slot, hash)
    }

    /// Redacts the message: the text is removed, and the entry remains to deduplicate another redaction.
    func takeBack(msgid: String) {
        guard let slot = slot(of: msgid) else { return }
        ring[slot].row.takeBack()
        ring[slot].beginning = ""
        ring[slot].wentUpAs = nil
        ring[slot].changedTo = nil
    }

    /// Undoes a redaction with the caller's copy.
    func restore(_ entry: Entry) {
        guard let slot = slot(of: entry.msgid), ring[slot].isTakenBack, !ring[slot].isErased else { return }
        let upstreamID = ring[slot].upstreamID
        ring[slot].row = entry.row
        if let upstreamID, upstreamID != entry.upstreamID { ring[slot].row.learn(upstreamID) }
        ring[slot].beginning = entry.beginning
        ring[slot].wentUpAs = entry.wentUpAs
    }

    /// Removes the words and the author of a person's messages.
    ///
    /// - Returns: the messages that were not redacted before, in the order of the room.
    func erase(_ person: StoredPerson, on backend: String) -> [String] {
        let written = ring.filter {
            person.wrote(author: $0.formerPuppet ?? $0.puppet, sender: $0.sender, on: backend)
        }
        for entry in written { erase(msgid: entry.msgid) }
        return written.filter { !$0.isTakenBack }.sorted { $0.sequence < $1.sequence }.map(\.msgid)
    }

    func erase(msgid: String) {
        guard let slot = slot(of: msgid) else { return }
        takeBack(msgid: msgid)
        ring[slot].row.erase()
        (ring[slot].nick, ring[slot].formerPuppet) = ("", nil)
        if ring[slot].puppet != nil { ring[slot].puppet = .erased }
    }

    /// Reassigns the messages of an IRC user to a placeholder.
    func disown(_ author: ChatID, as nobody: ChatID) {
        for slot in ring.indices where ring[slot].puppet == author { disown(slot, as: nobody) }
    }

    func disown(msgid: String, as nobody: ChatID) {
        if let slot = slot(of: msgid) { disown(slot, as: nobody) }
    }

    private func disown(_ slot: Int, as nobody: ChatID) {
        ring[slot].formerPuppet = ring[slot].puppet
        ring[slot].puppet = nobody
    }

    /// Records the transmitted text: possibly with a prefix or a quotation.
    func went(up text: String, msgid: String) {
        guard let slot = slot(of: msgid) else { return }
        let beginning = Self.beginning(of: text)
        if beginning != ring[slot].beginning { ring[slot].wentUpAs = beginning }
    }

    /// The complete text of a message as the backend has it, while it is retained.
    func text(of msgid: String) -> String? {
        guard let entry = entry(msgid: msgid), !entry.isTakenBack else { return nil }
        let text = entry.wentUpAs ?? entry.beginning
        return text.hasSuffix("…") ? nil : text
    }

    /// Records an edited text on the backend; replaces the text here too, if it is the author's edit. False when it
    /// equals the last report, while that is retained.
    func edit(msgid: String, text: String, byAuthor: Bool) -> Bool {
        guard let slot = slot(of: msgid) else { return false }
        let beginning = Self.beginning(of: text)
        let known = ring[slot].changedTo ?? ring[slot].wentUpAs ?? ring[slot].beginning
        guard known != beginning || text.utf8.count > Self.keptBytes else { return false }
        guard byAuthor else {
            ring[slot].changedTo = beginning
            return true
        }
        ring[slot].beginning = beginning
        ring[slot].wentUpAs = nil
        ring[slot].changedTo = nil
        return true
    }

    /// Records the backend's id of a relayed message.
    func learn(_ upstreamID: ChatID, of msgid: String) {
        guard let slot = slot(of: msgid) else { return }
        if ring[slot].upstreamID != nil { upstreamIDs.remove(slot, ring[slot].upstreamIDHash) }
        ring[slot].row.learn(upstreamID)
        index(slot, upstreamID)
    }

    /// The newest sequence number in the room; -1: none.
    var lastSequence: Int { nextSequence - 1 }

    /// The newest `limit` entries after a sequence number.
    ///
    /// - Returns: the sequence number after which they begin; the number of further ones, while that far back is
    ///   retained; and whether there are further ones, where that is known.
    func newest(_ limit: Int, after place: Int) -> (start: Int, leftOut: Int?, isMore: Bool?) {
        func entry(_ index: Int) -> Entry { ring[(oldest + index) % ring.count] }
        // The first entry after it: sequence numbers grow.
        var first = 0
        var end = ring.count
        while first < end {
            let middle = (first + end) / 2
            if entry(middle).sequence > place { end = middle } else { first = middle + 1 }
        }
        let count = ring.count - first
        let reachesBack = first > 0 || (!ring.isEmpty && entry(0).sequence == place + 1) || place >= lastSequence
        if count > limit {
            let start = entry(ring.count - limit).sequence - 1
            return (start, reachesBack ? count - limit : nil, true)
        }
        if reachesBack { return (place, 0, false) }
        // Entries that are not retained precede the retained ones.
        let front = ring.isEmpty ? lastSequence : entry(0).sequence - 1
        let start = max(place, front - (limit - count))
        return (start, nil, start > place ? nil : false)
    }

    var newest: Entry? {
        guard !ring.isEmpty else { return nil }
        return ring.count < Self.capacity ? ring.last : ring[(oldest + ring.count - 1) % ring.count]
    }

    /// The newest message with an id on the backend.
    var newestIdentified: Entry? {
        ring.indices.lazy.reversed().map { self.ring[(self.oldest + $0) % self.ring.count] }
            .first { $0.upstreamID != nil }
    }

    /// The newest message of an upstream person with an id on the backend, up to a sequence number.
    func newestNamed(upTo place: Int) -> Entry? {
        for index in ring.indices.reversed() {
            let entry = ring[(oldest + index) % ring.count]
            if entry.sequence <= place, entry.puppet == nil, entry.upstreamID != nil { return entry }
        }
        return nil
    }

    /// Messages of upstream people later than a time, without those with these ids.
    func countOfOthers(later at: ChatTimestamp, without ids: Set<ChatID>) -> Int {
        ring.count { entry in
            entry.puppet == nil && !entry.isNotice && !entry.isTakenBack && entry.at > at
                && entry.upstreamID.map { !ids.contains($0) } ?? true
        }
    }

    // MARK: - Times of lines

    /// Largest lead of a line's time over the message's, in milliseconds.
    fileprivate static let mostRaised: Int64 = 60_000

    /// The time of the next line: the message's, raised above all earlier lines. So clients that sort by time keep the
    /// room's order, and clients that query from the time of their last line get all later ones, once; backends count
    /// whole seconds, lines come at once, and no two clocks agree.
    ///
    /// | time of the message                               | time of the line                                   |
    /// |---------------------------------------------------|------------------------------------------------------|
    /// | later than all lines                              | the same                                           |
    /// | later than now                                    | now: a fast clock delays no later line             |
    /// | earlier, by less than ``mostRaised``              | a millisecond after the latest line                |
    /// | earlier by more: late, or by a slow clock         | the same, or the next free one                     |
    ///
    /// Lines with later times by more than that are of a clock that was set back since, or runs ahead: they are
    /// ignored, and the others raise it all the same.
    ///
    /// - Parameter taken: a time that it must not show.
    func lineTime(_ said: ChatTimestamp, now: ChatTimestamp, but taken: ChatTimestamp? = nil) -> ChatTimestamp {
        var shown = min(said, now)
        let end = shown.after(Self.mostRaised)
        if let latest = shownTimes.latest(before: end), latest >= shown {
            // Up to the latest line before the limit none is free.
            let next = latest.after(1)
            shown = next < end || !hasLine(at: next) ? next : shownTimes.free(from: shown)
        }
        return shown == taken ? shownTimes.free(from: shown.after(1)) : shown
    }

    /// The latest time of the lines so far: now, or the latest one that was raised above others.
    func end(wall: ChatTimestamp) -> ChatTimestamp {
        shownTimes.latest(before: wall.after(Self.mostRaised + 1)).map { max($0, wall) } ?? wall
    }

    /// Whether a line bears exactly this time.
    func hasLine(at: ChatTimestamp) -> Bool { shownTimes.contains(at) }

    /// The message with a sequence number, while it is retained.
    func entry(sequence: Int) -> Entry? {
        ring.first { $0.sequence == sequence && !$0.isNotice }
    }

    /// The newest message of an IRC user.
    func newest(by puppet: ChatID) -> Entry? {
        ring.lazy.filter { $0.puppet == puppet }.max { $0.sequence < $1.sequence }
    }

    /// The sequence number of the last line with exactly this time.
    func lastSequence(at: ChatTimestamp) -> Int? { ring.lazy.filter { $0.at == at }.map(\.sequence).max() }

    /// Messages that a read marker passes when it moves to `upTo`, oldest first: those after its previous position, or
    /// after its owner's JOIN, and those with a later time.
    ///
    /// - Parameter through: entries up to here in the order of the room are passed too, with any time.
    func passed(from marker: ReadMarker?, joinedAfter: Int, upTo: ChatTimestamp, through: Int? = nil) -> [Entry] {
        (0..<ring.count).lazy.map { self.ring[(self.oldest + $0) % self.ring.count] }.filter { entry in
            guard entry.at <= upTo || through.map({ entry.sequence <= $0 }) ?? false else { return false }
            guard let marker else { return entry.sequence > joinedAfter }
            return entry.sequence > marker.sequence || entry.at > marker.at
        }
    }
}

extension StoredMessage {
    /// A line of the bridge, which cannot be answered.
    fileprivate var isOfBridge: Bool { self.kind == .gap || self.kind == .change }
}
