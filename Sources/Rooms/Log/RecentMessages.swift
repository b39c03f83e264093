import ChatModel

/// The last lines of a room's order, for replies, read markers and receipts. The store has older ones.
///
/// What the bridge tells, a gap or what somebody made of another's message, has its place in the order and nothing else: nobody
/// answers it, takes it back or is told of it upstream.
package final class RecentMessages {
    package static let capacity = 2000

    package struct Entry {
        /// The bridge's id.
        package var msgid: String
        /// The backend's id.
        package var upstreamID: ChatID?
        /// The id of an IRC user of ours who wrote it; nil: somebody upstream.
        package var puppet: ChatID?
        /// As whom the backend knows its author, where that is somebody else by now and `puppet` is nobody.
        fileprivate(set) var formerPuppet: ChatID?
        /// As whom the backend names its author, where that is somebody upstream.
        var sender: ChatPerson
        package var nick: String
        /// The beginning of what was said, for quoting.
        fileprivate var beginning: String
        /// The beginning of what went up for it, where that is something else.
        fileprivate var wentUpAs: String?
        /// The beginning of what somebody else made of it, as was told last.
        fileprivate var changedTo: String?
        /// Nothing answers it any more and nothing quotes it.
        package fileprivate(set) var isTakenBack = false

        /// The first words, for somebody who answers. Made when asked for: most messages are never answered.
        package var excerpt: String { MessageText.excerpt(beginning) }
        /// The time that IRC clients were shown.
        package var at: ChatTimestamp
        /// It was said then or later: a line shows no time that is later by more.
        var saidNoEarlier: ChatTimestamp { at.after(-RecentMessages.mostRaised) }
        /// Grows with the order of the room.
        package var sequence: Int
        /// The bridge's own: something is missing here, or was changed.
        var isNotice = false
        fileprivate var msgidHash: UInt32 = 0
        fileprivate var upstreamIDHash: UInt32 = 0
    }

    /// Bytes of a text that are kept: more than an excerpt shows, and no megabyte is held for sixty characters.
    private static let keptBytes = 1024

    private static func beginning(of text: String) -> String {
        text.utf8.count <= keptBytes ? text : String(text.unicodeScalars.prefix(keptBytes / 4)) + "…"
    }

    private var ring: [Entry] = []
    private var oldest = 0
    /// The place of what is entered next.
    private(set) var nextSequence = 0
    /// The latest time that a line bore, and the same where none counts as later than our clock when it came.
    private var latestSaid: ChatTimestamp?
    private var latestHeard: ChatTimestamp?
    /// What the remembered lines show as their times; a gap is a line too.
    private var shownTimes = ShownTimes()
    private var msgids = SlotTable()
    private var upstreamIDs = SlotTable()

    /// The next place is this one, unless it was given already.
    func goOn(from sequence: Int) { nextSequence = min(max(nextSequence, sequence), Self.maxPlace) }

    /// Whatever a file says: places go on growing.
    private static let maxPlace = Int.max / 2

    /// A line with this time came.
    func heard(_ at: ChatTimestamp, wall: ChatTimestamp) {
        let heard = min(at, wall)
        latestSaid = latestSaid.map { max($0, at) } ?? at
        latestHeard = latestHeard.map { max($0, heard) } ?? heard
    }

    /// The latest time of a line, none of which was said later than now; nil: there is no line.
    func latest(wall: ChatTimestamp) -> ChatTimestamp? {
        if let latestSaid, latestSaid <= wall { return latestSaid }
        return latestHeard.map { min($0, wall) }
    }

    /// - Parameter sender: as whom the backend names an author upstream.
    /// - Returns: its place in the order.
    @discardableResult
    func append(
        msgid: String, upstreamID: ChatID?, puppet: ChatID?, sender: ChatPerson = ChatPerson(), nick: String,
        text: String, at: ChatTimestamp
    ) -> Int {
        let slot = push(
            Entry(
                msgid: msgid, upstreamID: upstreamID, puppet: puppet, sender: puppet == nil ? sender : ChatPerson(),
                nick: nick, beginning: Self.beginning(of: text), at: at, sequence: nextSequence))
        let hash = SlotTable.hash(msgid)
        if let known = self.slot(of: msgid, hash) { msgids.remove(known, hash) }
        ring[slot].msgidHash = hash
        msgids.insert(slot, hash)
        if let upstreamID { name(slot, upstreamID) }
        return ring[slot].sequence
    }

    /// - Returns: its place in the order.
    @discardableResult
    func appendNotice(msgid: String, at: ChatTimestamp) -> Int {
        let slot = push(
            Entry(
                msgid: msgid, upstreamID: nil, puppet: nil, sender: ChatPerson(), nick: "", beginning: "", at: at,
                sequence: nextSequence, isNotice: true))
        return ring[slot].sequence
    }

    private func push(_ entry: Entry) -> Int {
        let slot: Int
        if ring.count < Self.capacity {
            slot = ring.count
            ring.append(entry)
        } else {
            slot = oldest
            if !ring[slot].isNotice { msgids.remove(slot, ring[slot].msgidHash) }
            if ring[slot].upstreamID != nil { upstreamIDs.remove(slot, ring[slot].upstreamIDHash) }
            shownTimes.remove(ring[slot].at)
            ring[slot] = entry
            oldest = (oldest + 1) % Self.capacity
        }
        nextSequence += 1
        shownTimes.insert(entry.at)
        return slot
    }

    /// Gives a place to what nobody answers and nobody is told of upstream, and does not remember it.
    func takePlace() -> Int {
        nextSequence += 1
        return lastSequence
    }

    func entry(msgid: String) -> Entry? { slot(of: msgid).map { ring[$0] } }

    func entry(upstreamID: ChatID) -> Entry? { slot(of: upstreamID, SlotTable.hash(upstreamID)).map { ring[$0] } }

    private func slot(of msgid: String) -> Int? { slot(of: msgid, SlotTable.hash(msgid)) }

    private func slot(of msgid: String, _ hash: UInt32) -> Int? { msgids.slot(hash) { ring[$0].msgid == msgid } }

    private func slot(of upstreamID: ChatID, _ hash: UInt32) -> Int? {
        upstreamIDs.slot(hash) { ring[$0].upstreamID == upstreamID }
    }

    /// The backend calls the message so, and no other.
    private func name(_ slot: Int, _ upstreamID: ChatID) {
        let hash = SlotTable.hash(upstreamID)
        if let known = self.slot(of: upstreamID, hash) { upstreamIDs.remove(known, hash) }
        ring[slot].upstreamID = upstreamID
        ring[slot].upstreamIDHash = hash
        upstreamIDs.insert(slot, hash)
    }

    /// The message was taken back: its words go, and it is known only so that taking it back again is no news.
    func takeBack(msgid: String) {
        guard let slot = slot(of: msgid) else { return }
        ring[slot].beginning = ""
        ring[slot].wentUpAs = nil
        ring[slot].changedTo = nil
        ring[slot].isTakenBack = true
    }

    /// It was not taken back after all: what it was before, as the caller kept it.
    func restore(_ entry: Entry) {
        guard let slot = slot(of: entry.msgid), ring[slot].isTakenBack else { return }
        ring[slot].beginning = entry.beginning
        ring[slot].wentUpAs = entry.wentUpAs
        ring[slot].isTakenBack = false
    }

    /// What an IRC user said is nobody's any more.
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

    /// What the backend was given as the text: with a prefix perhaps, or a quotation.
    func went(up text: String, msgid: String) {
        guard let slot = slot(of: msgid) else { return }
        let beginning = Self.beginning(of: text)
        if beginning != ring[slot].beginning { ring[slot].wentUpAs = beginning }
    }

    /// The whole of a message as the backend has it, where that is remembered.
    func text(of msgid: String) -> String? {
        guard let entry = entry(msgid: msgid), !entry.isTakenBack else { return nil }
        let text = entry.wentUpAs ?? entry.beginning
        return text.hasSuffix("…") ? nil : text
    }

    /// The message has other words on the backend now; here too, if they are its author's. False when they are what was told
    /// last, as far as that is remembered.
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

    /// The backend's id of a message of ours became known.
    func learn(_ upstreamID: ChatID, of msgid: String) {
        guard let slot = slot(of: msgid) else { return }
        if ring[slot].upstreamID != nil { upstreamIDs.remove(slot, ring[slot].upstreamIDHash) }
        name(slot, upstreamID)
    }

    /// The newest place that was given in the order of the room; -1: none.
    var lastSequence: Int { nextSequence - 1 }

    /// The newest `limit` of what came after a place.
    ///
    /// - Returns: the place after which they begin; how many more there are, where so far back is remembered; and whether
    ///   there are more, where that is known.
    func newest(_ limit: Int, after place: Int) -> (start: Int, leftOut: Int?, isMore: Bool?) {
        func entry(_ index: Int) -> Entry { ring[(oldest + index) % ring.count] }
        // The first one after the place: their places grow.
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
        // What is not remembered lies in front of what is.
        let front = ring.isEmpty ? lastSequence : entry(0).sequence - 1
        let start = max(place, front - (limit - count))
        return (start, nil, start > place ? nil : false)
    }

    var newest: Entry? {
        guard !ring.isEmpty else { return nil }
        return ring.count < Self.capacity ? ring.last : ring[(oldest + ring.count - 1) % ring.count]
    }

    /// The newest of somebody upstream's that the backend can name, up to a place.
    func newestNamed(upTo place: Int) -> Entry? {
        for index in ring.indices.reversed() {
            let entry = ring[(oldest + index) % ring.count]
            if entry.sequence <= place, entry.puppet == nil, entry.upstreamID != nil { return entry }
        }
        return nil
    }

    // MARK: - Times that lines show

    /// A line is shown later than it was said by no more than this, in milliseconds.
    fileprivate static let mostRaised: Int64 = 60_000

    /// What the next line shows as its time: when it was said, and later than what any line before it shows. So clients that
    /// sort by time have them in the order of the room, and those that ask for what came after the time of their last line
    /// get all of it, once; backends count whole seconds, lines come at once, and no two clocks agree.
    ///
    /// | it was said                                       | it shows                                           |
    /// |---------------------------------------------------|------------------------------------------------------|
    /// | later than all that is shown                      | that time                                          |
    /// | later than now                                    | now: a sender's clock that leads makes nobody late |
    /// | earlier, by less than ``mostRaised``              | a millisecond after the latest that is shown       |
    /// | earlier by more: late, or by a clock that is slow | that time, or the next that no line shows          |
    ///
    /// Lines that show later times by more than that are of a clock that was set back since, or that leads: they are passed
    /// over, and the others raise it all the same.
    ///
    /// - Parameter taken: a time that it must not show.
    func lineTime(_ said: ChatTimestamp, now: ChatTimestamp, but taken: ChatTimestamp? = nil) -> ChatTimestamp {
        var shown = min(said, now)
        let end = shown.after(Self.mostRaised)
        if let latest = shownTimes.latest(before: end), latest >= shown {
            // Behind the latest of those before the end there is none up to there.
            let next = latest.after(1)
            shown = next < end || !hasLine(at: next) ? next : shownTimes.free(from: shown)
        }
        return shown == taken ? shownTimes.free(from: shown.after(1)) : shown
    }

    /// Until when lines were said: now, or the latest time that is only later for being set behind others.
    func end(wall: ChatTimestamp) -> ChatTimestamp {
        shownTimes.latest(before: wall.after(Self.mostRaised + 1)).map { max($0, wall) } ?? wall
    }

    /// Whether a line bears this very time.
    func hasLine(at: ChatTimestamp) -> Bool { shownTimes.contains(at) }

    /// What was said at a place in the order, where that is remembered.
    func entry(sequence: Int) -> Entry? {
        ring.first { $0.sequence == sequence && !$0.isNotice }
    }

    /// The newest of what one IRC user said.
    func newest(by puppet: ChatID) -> Entry? {
        ring.lazy.filter { $0.puppet == puppet }.max { $0.sequence < $1.sequence }
    }

    /// The place of the last line that bears this very time.
    func lastSequence(at: ChatTimestamp) -> Int? { ring.lazy.filter { $0.at == at }.map(\.sequence).max() }

    /// Messages that a read marker passes when it moves to `upTo`, oldest first: those that came after what it passed
    /// before, or after its owner, and those that bear a later time.
    ///
    /// - Parameter through: what stands up to here in the order of the room is passed too, whatever time it bears.
    func passed(from marker: ReadMarker?, joinedAfter: Int, upTo: ChatTimestamp, through: Int? = nil) -> [Entry] {
        (0..<ring.count).lazy.map { self.ring[(self.oldest + $0) % self.ring.count] }.filter { entry in
            guard entry.at <= upTo || through.map({ entry.sequence <= $0 }) ?? false else { return false }
            guard let marker else { return entry.sequence > joinedAfter }
            return entry.sequence > marker.sequence || entry.at > marker.at
        }
    }
}
