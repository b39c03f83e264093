import BridgeTypes
import ChatModel
import Dialects
import WireBytes

// What IRC users said and the backend has not confirmed yet.
//
// | state    | meaning                                    | leaves by                                                  |
// |----------|--------------------------------------------|------------------------------------------------------------|
// | accepting| the store was told to keep it              | queued (on disk); gone, and told (refused); failed (age)   |
// | queued   | not on the wire of this connection         | written (link usable, budget left); intending (the same,   |
// |          |                                            | where it must be known before); failed (age)               |
// | intending| the store was told that it may be written  | written (on disk); queued (link lost, no room); failed     |
// | written  | the socket took the frame                  | confirmed (echo, ack, pong); doubtful (10 s); refused; link |
// |          |                                            | lost                                                       |
// | doubtful | written, no answer, but the link is alive  | confirmed; refused; failed (age); link lost; unsettled     |
// |          |                                            | where the server makes the ids and a history can tell      |
// | unsettled| written over a link that was lost, or      | confirmed (history, echo); queued (two histories lack it); |
// |          | unanswered for long                        | failed (age; no history can tell; sent twice already)      |
//
// A lost link: where the ids are ours, the same message may be sent again, so what was written is queued; where the server
// makes the ids, a second sending is a second message, so what was written is unsettled until a history tells.
//
// A pong says that the backend's connection has read a message, not that the backend has processed it. What only a pong
// confirmed is shown to IRC, and where there is a history it is kept beside the outbox (`DeliveredMessages`); a link that is
// lost soon after makes it unsettled again. It is shown (`isShown`) and stays that, whatever becomes of it.
//
// What the server of a lost link had in its socket may be processed after the first history over the next one was made. So a
// row must be missing from two histories, asked for at least `CatchUp.patience` apart, before its message goes again; and
// it goes again once.
//
// A lost process: what was queued on disk is queued, what was written there is unsettled. So where the server makes the
// ids it must be on disk that a message may be on the wire before it is: that is what `intending` waits for. Accepting and
// intending are states of a bridge whose rooms outlast it; without a store what is said is queued at once, and written.
//
// Order: authors take turns (`OutboxTurns`), each author's entries are written in the order in which they were said, and
// after a lost link again in the order of the first writing, before all others, so a sender never sees two messages swapped;
// nor an author who speaks while it is open whether an earlier message arrived: what they say waits with it, and others go
// on. A failed entry's id is remembered: a confirmation that comes later is reported.
//
// Every verb but those that look for a text costs the same however long the outbox is.

/// A message on its way up.
struct OutboxEntry {
    enum State: Equatable {
        case accepting(StoreTicket)
        case queued
        case intending(StoreTicket)
        case written(at: MonotonicInstant)
        case doubtful
        case unsettled
    }

    /// A piece of a message that is longer than the wire's frames.
    struct Part: Equatable {
        /// The same for all pieces of one message.
        var group: UInt64
        /// The place among them.
        var index = 0
        /// The id of the message that was cut.
        var whole: ChatID?
    }

    /// What the IRC side shows once the message is confirmed.
    struct Origin {
        /// Through which connection it came, and who spoke; nil: an earlier process had those.
        var client: ClientID?
        var person: PersonID?
        /// The author's own id upstream, whoever speaks for them.
        var puppet: ChatID
        /// `nick!user@host` and account when it was said.
        var source: String
        var nick: String
        var account: String?
        /// The text as the IRC user sent it, CTCP ACTION included.
        var text: String
        /// Where the client cut lines of it; see ``SpokenText/cuts``.
        var cuts: [Int] = []
        /// Client-only tags that travel with it.
        var clientTags: [(name: String, value: String?)]
        /// The labeled-response label, to be answered by the echo.
        var label: String?
        /// The msgid that it answers.
        var replyTo: String? { clientTags.first { $0.name == "+reply" || $0.name == "+draft/reply" }?.value }
        /// The name of the author's client; nil: it has none.
        var clientName: String?

        /// The author is nobody who could come back.
        mutating func disown(as nobody: ChatID) {
            puppet = nobody
            (client, person, clientName, label) = (nil, nil, nil, nil)
        }
    }

    var message: ChatMessage
    var origin: Origin
    var state: State = .queued
    var acceptedAt: MonotonicInstant
    /// The author was told that it waits.
    var isWaitAnnounced = false
    var part: Part?
    /// Pieces, from the first on, that an earlier process saw confirmed.
    var confirmedPieces = 0
    /// What is written once the intention to write it is on disk.
    var frames: [EncodedFrame] = []
    /// An earlier process accepted it.
    var isRestored = false
    /// It was on the wire of an earlier connection, or may have been, and waits to be written again.
    var mayHaveArrived = false
    /// The newest place in the order of the room when it was said; nil: unknown.
    var saidAfter: Int?
    /// Where it takes turns; nil: by its author.
    var line: OutboxTurns.Line?
    /// Its place among all that were chosen to be written; 0: it was not, by this process.
    var place: UInt64 = 0

    /// When it was written, and how many frames its session had sent with it.
    var writtenAt: MonotonicInstant?
    var frameCount: UInt64 = 0
    /// IRC has seen it as said: a pong confirmed it once.
    var isShown = false
    /// It does not go again: it did once, since the history lacked it, or the backend may have refused it.
    var isRepeated = false
    /// What the backend complained of, which may have been this message.
    var complaint: String?
    /// When it became unsettled: no history that was asked for before tells of it.
    var unsettledAt: MonotonicInstant?
    /// When a history first lacked it.
    var missedAt: MonotonicInstant?

    /// Whether the backend has it is not known.
    var isArrivalOpen: Bool {
        switch state {
        case .written, .doubtful, .unsettled: true
        case .accepting, .queued, .intending: mayHaveArrived
        }
    }

    /// Not on disk, as far as is known.
    var isAccepting: Bool { if case .accepting = state { true } else { false } }

    var turn: OutboxTurns.Line { line ?? .author(origin.puppet) }

    /// Under which the store knows it.
    var storedID: ChatID? { part?.whole ?? message.id }

    mutating func markShown() { isShown = true }

    /// The author is nobody who could come back.
    mutating func disown(as nobody: ChatID) { origin.disown(as: nobody) }
}

struct Outbox {
    /// Not confirmed after this long on a wire that confirms: the link is checked.
    static let confirmationWait: Duration = .seconds(10)
    /// A message that waits longer than this is worth a word to its author.
    static let announceAfter: Duration = .seconds(3)
    /// Failed messages remembered, for confirmations that come too late.
    static let failedMemory = FailedMessages.toldCapacity
    /// Where no history will tell whether a message arrived, its author hears that after this at the latest, however long
    /// messages may wait for a link.
    static let unsettledAge: Duration = .seconds(15 * 60)
    /// The store had no room for an intention: the next is formed after this.
    static let intentionPause: Duration = .seconds(1)

    /// What is known of the pieces of a message.
    private struct Pieces {
        var slots: Set<Int> = []
        var arrived: Set<Int> = []
        /// So many, from the first on, have arrived.
        var leading: Int
    }

    private(set) var lists = OutboxLists()
    /// Of all entries, so that a message of somebody else costs one look.
    private(set) var slots: [ChatID: Int] = [:]
    private var pieces: [UInt64: Pieces] = [:]
    /// Entries whose authors may have to hear that they wait, in the order of acceptance; some are gone.
    private var unannounced: [(slot: Int, serial: UInt64)] = []
    private var firstUnannounced = 0
    /// Authors of unsettled entries, and how many each has.
    private var unsettledAuthors: [ChatID: Int] = [:]
    /// Whose queued entry is next.
    private var turns = OutboxTurns()
    private var lastPlace: UInt64 = 0
    private var lastGroup: UInt64 = 0
    /// How many of the entries on the wire have a text, by its hash.
    private(set) var texts: [Int: Int] = [:]
    /// Entries are looked for by their texts, also for what others say.
    var matchesTexts = false
    /// A history can tell whether unsettled entries arrived, sooner or later.
    var historyTells = false
    var failures = FailedMessages()
    /// What only a pong confirmed, while a history may yet be asked for it.
    var delivered = DeliveredMessages()
    /// Entries of an earlier process that may be too long for one frame.
    private var uncut: [ChatID] = []
    /// Something may yet tell whether unsettled entries arrived, so their authors' later ones wait for that.
    var waitsForUnsettled = false { didSet { turns.release() } }
    /// No intention is formed before this.
    private(set) var intentionsPausedUntil: MonotonicInstant?

    init() {}

    init(_ traits: DialectTraits) {
        matchesTexts = traits.messageIDOrigin == .server
        historyTells = traits.history != .none
        waitsForUnsettled = traits.history != .none
    }

    var count: Int { lists.count }
    var isEmpty: Bool { lists.count == 0 }
    /// All of them, those of each author in the order in which they were or will be written. For tests and for the end: it copies.
    var entries: [OutboxEntry] { OutboxLists.Name.allCases.flatMap { lists.entries($0) } }
    /// So many of ``entries`` are on the wire, perhaps.
    var nextToWrite: Int { lists.count(.open) + lists.count(.written) }
    var hasUnsettled: Bool { !unsettledAuthors.isEmpty }
    var oldestUnsettled: OutboxEntry? { hasUnsettled ? lists.first(.open).flatMap { lists[$0] } : nil }
    /// The oldest unsettled entry, where no history will tell.
    private var oldestUntellable: OutboxEntry? { historyTells ? nil : oldestUnsettled }
    var hasDoubtful: Bool { lists.last(.open).flatMap { lists[$0] }?.state == .doubtful }
    /// Something can be written.
    var hasQueued: Bool { mutating get { nextSlot() != nil } }
    /// Something waits for the store.
    var waitsForStore: Bool { lists.first(.accepting) != nil || lists.first(.intending) != nil }

    private mutating func nextSlot() -> Int? {
        turns.next(passingOver: waitsForUnsettled ? unsettledAuthors : [:])
    }

    mutating func append(_ entry: OutboxEntry) {
        if case .accepting = entry.state {
            enter(lists.append(entry, to: .accepting), entry)
        } else {
            enter(queue(entry), entry)
        }
    }

    private mutating func queue(_ entry: OutboxEntry) -> Int {
        let slot = lists.append(entry, to: .queued)
        takeTurn(slot)
        return slot
    }

    private mutating func takeTurn(_ slot: Int) {
        guard let entry = lists[slot] else { return }
        let line = turns.append(slot, entry)
        lists.modify(slot) { $0.line = line }
    }

    private mutating func enter(_ slot: Int, _ entry: OutboxEntry) {
        if let id = entry.message.id { slots[id] = slot }
        if !entry.isWaitAnnounced { unannounced.append((slot, lists.serial(of: slot))) }
        if let part = entry.part {
            pieces[part.group, default: Pieces(leading: entry.confirmedPieces)].slots.insert(slot)
        }
    }

    /// Puts what an earlier process left in front of everything, oldest first: what was written is unsettled.
    mutating func restore(_ left: [OutboxEntry]) {
        uncut += left.compactMap(\.message.id)
        let (firstOpen, firstQueued, oldest) = (lists.first(.open), lists.first(.queued), lists.oldest)
        var queued: [(slot: Int, entry: OutboxEntry)] = []
        for entry in left {
            let isUnsettled = entry.state == .unsettled
            let slot = lists.insert(
                entry, into: isUnsettled ? .open : .queued, before: isUnsettled ? firstOpen : firstQueued,
                olderThan: oldest)
            enter(slot, entry)
            if isUnsettled { countUnsettled(entry) } else { queued.append((slot, entry)) }
        }
        for (item, line) in zip(queued, turns.restore(queued)) { lists.modify(item.slot) { $0.line = line } }
    }

    private mutating func countUnsettled(_ entry: OutboxEntry) {
        unsettledAuthors[entry.origin.puppet, default: 0] += 1
        countText(entry)
    }

    private mutating func countText(_ entry: OutboxEntry) {
        if matchesTexts { texts[entry.message.text.hashValue, default: 0] += 1 }
    }

    private mutating func discountText(_ entry: OutboxEntry) {
        guard matchesTexts else { return }
        let hash = entry.message.text.hashValue
        if let count = texts[hash] { texts[hash] = count > 1 ? count - 1 : nil }
    }

    /// The entry was unsettled and is no longer.
    private mutating func discountUnsettled(_ entry: OutboxEntry) {
        guard let count = unsettledAuthors[entry.origin.puppet] else { return }
        unsettledAuthors[entry.origin.puppet] = count > 1 ? count - 1 : nil
        if count == 1 { turns.release() }
    }

    mutating func remove(_ slot: Int) -> OutboxEntry? {
        let list = lists.list(of: slot)
        guard let entry = lists.remove(slot) else { return nil }
        if list == .queued { turns.remove(slot) }
        if entry.state == .unsettled { discountUnsettled(entry) }
        if list == .open || list == .written { discountText(entry) }
        if let id = entry.message.id, slots[id] == slot { slots[id] = nil }
        if let part = entry.part {
            pieces[part.group]?.slots.remove(slot)
            if pieces[part.group]?.slots.isEmpty == true { pieces[part.group] = nil }
        }
        if isEmpty {
            unannounced.removeAll(keepingCapacity: unannounced.count <= 1024)
            firstUnannounced = 0
        }
        return entry
    }

    /// Takes out what has arrived.
    mutating func confirm(_ slot: Int) -> OutboxEntry? {
        if let part = lists[slot]?.part {
            pieces[part.group]?.arrived.insert(part.index)
            while let known = pieces[part.group], known.arrived.contains(known.leading) {
                pieces[part.group]?.leading += 1
            }
        }
        return remove(slot)
    }

    private mutating func change(_ slot: Int, to state: OutboxEntry.State) {
        lists.modify(slot) {
            $0.state = state
            $0.frames = []
        }
    }

    /// Who was `author` is somebody else now: what they said goes, and nobody is told of it. Returns which failures are
    /// forgotten for it. Walks all entries.
    mutating func disown(_ author: ChatID, as nobody: ChatID) -> [FailedMessages.Item] {
        for slot in slots.values where lists[slot]?.origin.puppet == author {
            lists.modify(slot) { $0.origin.disown(as: nobody) }
            if let entry = lists[slot] { turns.reattribute(slot, entry) }
        }
        turns.release()
        if let count = unsettledAuthors.removeValue(forKey: author) { unsettledAuthors[nobody, default: 0] += count }
        return failures.disown(author, as: nobody)
    }

    // MARK: - The store

    /// Acceptances up to a ticket are decided, and those that are refused, wherever they lie: in front of them changes may
    /// wait that the store cannot keep yet. Returns the refused ones.
    mutating func settle(through ticket: StoreTicket, refused: Set<StoreTicket>) -> [OutboxEntry] {
        var gone: [OutboxEntry] = []
        while let slot = lists.first(.accepting), case .accepting(let own) = lists[slot]?.state, own <= ticket {
            if refused.contains(own) {
                if let entry = remove(slot) { gone.append(entry) }
                continue
            }
            change(slot, to: .queued)
            lists.move(slot, to: .queued)
            takeTurn(slot)
        }
        guard let last = refused.max(), last > ticket else { return gone }
        var slot = lists.first(.accepting)
        while let at = slot, case .accepting(let own) = lists[at]?.state, own <= last {
            slot = lists.next(after: at)
            if refused.contains(own), let entry = remove(at) { gone.append(entry) }
        }
        return gone
    }

    /// There was no room for an order. Returns the acceptances in it; what was to be written waits again.
    mutating func overflowed(_ ticket: StoreTicket, now: MonotonicInstant) -> [OutboxEntry] {
        var gone: [OutboxEntry] = []
        var slot = lists.last(.accepting)
        while let at = slot, case .accepting(let own) = lists[at]?.state, own >= ticket {
            slot = lists.previous(before: at)
            if own == ticket, let entry = remove(at) { gone.append(entry) }
        }
        var isPaused = false
        while let at = lists.last(.intending), case .intending(let own) = lists[at]?.state, own >= ticket {
            withdraw(at)
            isPaused = true
        }
        if isPaused { intentionsPausedUntil = now + Self.intentionPause }
        return gone.reversed()
    }

    /// Puts an entry in front of all that is queued.
    private mutating func withdraw(_ slot: Int) {
        change(slot, to: .queued)
        lists.move(slot, to: .queued, before: lists.first(.queued))
        if let entry = lists[slot] { turns.putBack(slot, entry) }
    }

    /// Ends a pause that is over.
    mutating func mayIntend(_ now: MonotonicInstant) -> Bool {
        if let until = intentionsPausedUntil, until <= now { intentionsPausedUntil = nil }
        return intentionsPausedUntil == nil
    }

    /// The next entry goes on the wire when the store has kept that it may be there.
    mutating func markNextIntending(_ ticket: StoreTicket, _ frames: [EncodedFrame]) {
        guard let slot = nextSlot() else { return }
        leaveQueue(slot, to: .intending, .intending(ticket))
        lists.modify(slot) { $0.frames = frames }
    }

    private mutating func leaveQueue(_ slot: Int, to list: OutboxLists.Name, _ state: OutboxEntry.State) {
        spendTurn(slot)
        change(slot, to: state)
        if lists[slot]?.place == 0 {
            lastPlace += 1
            lists.modify(slot) { $0.place = lastPlace }
        }
        lists.move(slot, to: list)
    }

    private mutating func spendTurn(_ slot: Int) {
        if let entry = lists[slot] { turns.take(slot, of: entry.turn) }
    }

    /// The next entry whose intention is on disk; nil: none.
    func nextIntended(through ticket: StoreTicket) -> OutboxEntry? {
        guard let entry = lists.first(.intending).flatMap({ lists[$0] }), case .intending(let own) = entry.state,
            own <= ticket
        else { return nil }
        return entry
    }

    /// - Parameter frameCount: of the session, with this message.
    mutating func markIntendedWritten(at now: MonotonicInstant, frameCount: UInt64) {
        guard let slot = lists.first(.intending) else { return }
        lists.move(slot, to: .written)
        wrote(slot, at: now, frameCount)
    }

    private mutating func wrote(_ slot: Int, at now: MonotonicInstant, _ frameCount: UInt64) {
        change(slot, to: .written(at: now))
        lists.modify(slot) { ($0.writtenAt, $0.frameCount) = (now, frameCount) }
        if let entry = lists[slot] { countText(entry) }
    }

    // MARK: - The link

    /// The next entry to write, or nil.
    var next: OutboxEntry? { mutating get { nextSlot().flatMap { lists[$0] } } }

    /// - Parameter frameCount: of the session, with this message.
    mutating func markNextWritten(at now: MonotonicInstant, frameCount: UInt64) {
        guard let slot = nextSlot() else { return }
        leaveQueue(slot, to: .written, .written(at: now))
        wrote(slot, at: now, frameCount)
    }

    /// Takes out the entry at the write position (it cannot be sent at all).
    mutating func removeNext() -> OutboxEntry? {
        guard let slot = nextSlot() else { return nil }
        spendTurn(slot)
        return remove(slot)
    }

    /// The link is gone. Everything unconfirmed goes again, oldest first, unless that could make a second message of it.
    /// What only pongs confirmed is unsettled, whoever makes the ids: IRC has it, so a history is asked first.
    ///
    /// - Returns: what was to be written and certainly was not: it waits again.
    @discardableResult
    mutating func linkLost(mayRepeat: Bool = true, now: MonotonicInstant) -> [OutboxEntry] {
        intentionsPausedUntil = nil
        let intended = lists.entries(.intending)
        while let slot = lists.last(.intending) { withdraw(slot) }
        if mayRepeat {
            for list in [OutboxLists.Name.written, .open] {
                var slot = lists.last(list)
                while let at = slot {
                    slot = lists.previous(before: at)
                    guard lists[at]?.state != .unsettled else { continue }
                    lists.modify(at) { $0.mayHaveArrived = true }
                    requeue(at)
                }
            }
        } else {
            var slot = lists.first(.open)
            while let at = slot {
                slot = lists.next(after: at)
                unsettle(at, now)
            }
            while let slot = lists.first(.written) {
                unsettle(slot, now)
                lists.move(slot, to: .open)
            }
        }
        reopen(delivered.takeAll(), now)
        return intended
    }

    /// What a pong confirmed lately may have been refused: a history is to tell. Returns whether there was anything.
    mutating func suspectDelivered(since: MonotonicInstant, now: MonotonicInstant, _ complaint: String) -> Bool {
        var suspects = delivered.take(since: since)
        for index in suspects.indices { (suspects[index].isRepeated, suspects[index].complaint) = (true, complaint) }
        reopen(suspects, now)
        return !suspects.isEmpty
    }

    /// Puts what only pongs confirmed in front of all else that is unsettled over this link. Its age begins anew: it went in
    /// time, and IRC has seen it.
    private mutating func reopen(_ entries: [OutboxEntry], _ now: MonotonicInstant) {
        let first = lists.first(.open, where: { $0.unsettledAt == now || $0.state != .unsettled })
        for var entry in entries {
            entry.state = .unsettled
            (entry.acceptedAt, entry.unsettledAt, entry.missedAt) = (now, now, nil)
            let slot = lists.insert(entry, into: .open, before: first, olderThan: nil)
            enter(slot, entry)
            countUnsettled(entry)
        }
    }

    /// A history is to tell what became of what was not answered in time. Returns whether there was anything.
    mutating func unsettleDoubtful(now: MonotonicInstant) -> Bool {
        guard hasDoubtful else { return false }
        var slot = lists.last(.open)
        while let at = slot, lists[at]?.state == .doubtful {
            slot = lists.previous(before: at)
            unsettle(at, now)
        }
        return true
    }

    private mutating func unsettle(_ slot: Int, _ now: MonotonicInstant) {
        guard let entry = lists[slot], entry.state != .unsettled else { return }
        change(slot, to: .unsettled)
        lists.modify(slot) { ($0.unsettledAt, $0.missedAt) = (now, nil) }
        unsettledAuthors[entry.origin.puppet, default: 0] += 1
    }

    /// What was on the wire goes again, before all that is queued.
    private mutating func requeue(_ slot: Int) {
        guard let entry = lists[slot] else { return }
        if entry.state == .unsettled { discountUnsettled(entry) }
        discountText(entry)
        withdraw(slot)
    }

    /// Unsettled entries, oldest first.
    var unsettled: [OutboxEntry] { hasUnsettled ? lists.entries(.open).filter { $0.state == .unsettled } : [] }
    /// Written over this link or an earlier one, and not confirmed; oldest first.
    var unconfirmed: [OutboxEntry] { lists.entries(.open) + lists.entries(.written) }

    /// A history that was asked for at `asked` reaches back to unsettled entries and has none of them. Those that it lacks
    /// for the first time are noted; those that another one lacked long enough ago go again, once.
    ///
    /// - Parameters:
    ///   - isOnce: an entry goes again once at most; elsewhere the backend answers, so that each time is as safe as the first.
    ///   - reaches: whether the history would have an entry.
    /// - Returns: those about which nothing more can be done; they are taken out.
    mutating func settleMissing(
        asked: MonotonicInstant, patience: Duration, isOnce: Bool, reaches: (OutboxEntry) -> Bool
    ) -> [OutboxEntry] {
        var given: [OutboxEntry] = []
        var again: [Int] = []
        var slot = hasUnsettled ? lists.first(.open) : nil
        while let at = slot, let entry = lists[at] {
            slot = lists.next(after: at)
            guard entry.state == .unsettled, entry.unsettledAt.map({ $0 <= asked }) ?? true else { continue }
            guard reaches(entry) else {
                if remove(at) != nil { given.append(give(up: entry)) }
                continue
            }
            guard let missedAt = entry.missedAt else {
                lists.modify(at) { $0.missedAt = asked }
                continue
            }
            guard asked - missedAt >= patience else { continue }
            if entry.isRepeated, isOnce {
                if remove(at) != nil { given.append(give(up: entry)) }
            } else {
                again.append(at)
            }
        }
        for at in again.reversed() {
            lists.modify(at) { ($0.isRepeated, $0.mayHaveArrived) = (true, true) }
            requeue(at)
        }
        return given
    }

    /// When a history is to be asked for again what one lacked; nil: none lacked anything.
    func nextLook(patience: Duration) -> MonotonicInstant? {
        hasUnsettled ? unsettled.compactMap(\.missedAt).min().map { $0 + patience } : nil
    }

    /// Nothing will tell any more whether the unsettled entries arrived: takes them out.
    mutating func giveUpUnsettled() -> [OutboxEntry] {
        var given: [OutboxEntry] = []
        while hasUnsettled, let slot = lists.first(.open), let entry = remove(slot) { given.append(give(up: entry)) }
        return given
    }

    /// Puts pieces where the next entry is, which is too long for one frame.
    /// A number for the pieces of one message.
    mutating func newGroup() -> UInt64 {
        lastGroup += 1
        return lastGroup
    }

    mutating func splitNext(_ pieces: [OutboxEntry]) {
        guard let slot = nextSlot() else { return }
        split(slot, pieces)
    }

    /// The same for an entry of an earlier process, once it is known how long a frame can be.
    mutating func split(id: ChatID, _ pieces: [OutboxEntry]) {
        if let slot = slots[id] { split(slot, pieces) }
    }

    private mutating func split(_ slot: Int, _ pieces: [OutboxEntry]) {
        let list = lists.list(of: slot)
        var isFirst = true
        for var piece in pieces {
            // Said once, so it is announced once.
            if !isFirst { piece.isWaitAnnounced = true }
            isFirst = false
            let at = lists.insert(piece, into: list, before: slot, olderThan: slot)
            if list == .queued { turns.insert(at, piece, before: slot) }
            enter(at, piece)
            if piece.state == .unsettled { countUnsettled(piece) }
        }
        _ = remove(slot)
    }

    /// What an earlier process left, once.
    mutating func takeUncut() -> [OutboxEntry] {
        defer { uncut = [] }
        return uncut.compactMap { slots[$0] }.compactMap { lists[$0] }
    }

    /// Whether other pieces of the same message are unconfirmed.
    func hasPieces(of entry: OutboxEntry) -> Bool {
        entry.part.map { pieces[$0.group] != nil } ?? false
    }

    /// So many pieces of the message, from the first on, have arrived.
    func arrivedPieces(of entry: OutboxEntry) -> Int {
        entry.part.flatMap { pieces[$0.group]?.leading } ?? entry.confirmedPieces
    }

    /// Takes out the other pieces of a message of which one failed.
    mutating func dropPieces(of entry: OutboxEntry) {
        guard let part = entry.part, let others = pieces[part.group]?.slots else { return }
        for slot in others { _ = remove(slot) }
    }

    // MARK: - Put off

    /// What was to be written next and certainly was not waits again.
    mutating func withdrawIntended() -> [OutboxEntry] {
        let intended = lists.entries(.intending)
        while let slot = lists.last(.intending) { withdraw(slot) }
        return intended
    }

    /// The backend did not take the message with `id` for now: it goes again, in its place. False: that is not on the wire.
    mutating func putOff(id: ChatID) -> Bool {
        guard let slot = slots[id], lists.list(of: slot) == .written || lists[slot]?.state == .doubtful else {
            return false
        }
        putOff(slot)
        return true
    }

    /// The same where the backend does not say which: a pause blames nobody, so a guess is no harm. Where a second sending is
    /// the same message, all that is in flight goes again; elsewhere what was written last does.
    mutating func putOffUnnamed(mayRepeat: Bool) -> Bool {
        guard let newest = lists.last(.written) ?? (hasDoubtful ? lists.last(.open) : nil) else { return false }
        guard mayRepeat else {
            putOff(newest)
            return true
        }
        while hasInFlight, let slot = lists.last(.written) ?? lists.last(.open) { putOff(slot) }
        return true
    }

    private mutating func putOff(_ slot: Int) {
        if let entry = lists[slot] { discountText(entry) }
        withdraw(slot)
    }

    // MARK: - Time

    /// Removes what is older than `maxAge`.
    mutating func expire(maxAge: Duration, now: MonotonicInstant) -> [OutboxEntry] {
        var expired: [OutboxEntry] = []
        while let entry = oldestUntellable, now - entry.acceptedAt >= Self.unsettledAge, let slot = lists.first(.open) {
            _ = remove(slot)
            expired.append(give(up: entry))
        }
        while let slot = lists.oldest, let entry = lists[slot], now - entry.acceptedAt >= maxAge {
            _ = remove(slot)
            expired.append(give(up: entry))
        }
        return expired
    }

    /// What a connection said is another client's than was thought.
    mutating func renameClient(_ client: ClientID, to name: String) {
        for list in OutboxLists.Name.allCases {
            var slot = lists.first(list)
            while let at = slot {
                lists.modify(at) { if $0.origin.client == client { $0.origin.clientName = name } }
                slot = lists.next(after: at)
            }
        }
    }

    /// Empties the outbox.
    mutating func takeAll() -> [OutboxEntry] {
        let all = entries
        let (failures, matchesTexts, waitsForUnsettled) = (failures, matchesTexts, waitsForUnsettled)
        let (historyTells, delivered) = (historyTells, delivered)
        self = Outbox()
        (self.historyTells, self.delivered) = (historyTells, delivered)
        (self.failures, self.matchesTexts, self.waitsForUnsettled) = (failures, matchesTexts, waitsForUnsettled)
        return all
    }

    /// Entries whose author should hear that they wait; each is named once.
    mutating func takeWaitAnnouncements(now: MonotonicInstant) -> [OutboxEntry] {
        var waiting: [OutboxEntry] = []
        while let slot = nextUnannounced(), let entry = lists[slot], now - entry.acceptedAt >= Self.announceAfter {
            lists.modify(slot) { $0.isWaitAnnounced = true }
            firstUnannounced += 1
            waiting.append(entry)
        }
        return waiting
    }

    /// The oldest entry whose author may have to hear that it waits.
    private mutating func nextUnannounced() -> Int? {
        while firstUnannounced < unannounced.count {
            let (slot, serial) = unannounced[firstUnannounced]
            if lists.holds(slot, serial: serial) { return slot }
            firstUnannounced += 1
            if firstUnannounced >= 1024, firstUnannounced * 2 > unannounced.count {
                unannounced.removeFirst(firstUnannounced)
                firstUnannounced = 0
            }
        }
        return nil
    }

    /// Moves written entries that were not confirmed in time to doubtful. True when there were any.
    mutating func takeDoubtful(now: MonotonicInstant) -> Bool {
        var found = false
        while let at = oldestWritten, now - at >= Self.confirmationWait, let slot = lists.first(.written) {
            change(slot, to: .doubtful)
            lists.move(slot, to: .open)
            found = true
        }
        return found
    }

    /// When something in here comes due next, apart from the write budget.
    mutating func nextDeadline(maxAge: Duration) -> MonotonicInstant? {
        var due: MonotonicInstant?
        func add(_ time: MonotonicInstant) { due = due.map { min($0, time) } ?? time }
        if let oldest = lists.oldest.flatMap({ lists[$0] }) { add(oldest.acceptedAt + maxAge) }
        if let slot = nextUnannounced(), let entry = lists[slot] { add(entry.acceptedAt + Self.announceAfter) }
        if let entry = oldestUntellable { add(entry.acceptedAt + Self.unsettledAge) }
        if let oldestWritten { add(oldestWritten + Self.confirmationWait) }
        if let due = delivered.due { add(due) }
        if let intentionsPausedUntil, lists.first(.queued) != nil { add(intentionsPausedUntil) }
        return due
    }
}
