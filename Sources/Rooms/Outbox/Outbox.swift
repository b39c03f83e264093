import BridgeTypes
import ChatModel
import Dialects
import WireBytes

// Messages of IRC users that the backend has not confirmed yet.
//
// | state                  | meaning                                    | leaves by                                                  |
// |------------------------|--------------------------------------------|------------------------------------------------------------|
// | accepting              | being persisted                            | queued (on disk); failed (refused by the store; age)       |
// | queued                 | not on the wire of this connection         | written (link usable, budget left); recordingAttempt (the  |
// |                        |                                            | same, with write-ahead); failed (age)                      |
// | recordingAttempt       | write-ahead: the attempt is being persisted | written (on disk); queued (link lost, store full); failed |
// | written                | the socket took the frame                  | confirmed (echo, ack, pong); doubtful (10 s); refused; link |
// |                        |                                            | lost                                                       |
// | doubtful               | written and unanswered over a live link    | confirmed; refused; failed (age); link lost;               |
// |                        |                                            | unknownAfterDisconnect (server-made ids and a history)     |
// | unknownAfterDisconnect | written over a link that was lost, or      | confirmed (history, echo); queued (two histories lack it); |
// |                        | unanswered for long                        | failed (age; no history; sent twice already)               |
//
// Lost link: with client-made ids a retransmission is idempotent, so written messages are queued again; with
// server-made ids it would be a second message, so they are unknown until a history resolves them.
//
// A pong proves that the backend's connection has read a message, not that the backend has processed it. A message
// confirmed by a pong alone is shown to IRC and, where there is a history, retained (`DeliveredMessages`); a link that
// is lost soon after makes it unknown again. It stays shown (`isShown`) with any outcome.
//
// Frames in the receive buffer of a lost link may be processed after the next link's first history was made. So a row
// must be missing from two histories, requested at least `CatchUp.patience` apart, before its message is sent again, once.
//
// Restart: a message persisted as queued is queued, one persisted as written is unknown. So with server-made ids the
// attempt is persisted before the frame is written (write-ahead, `recordingAttempt`). Without a store, accepting and
// recordingAttempt are skipped.
//
// Order: authors take turns (`OutboxTurns`). Each author's entries are written in order, and after a lost link again in
// the order of the first writing, ahead of all others; behind an unknown entry its author's later messages wait. So
// messages of one sender are never reordered. The id of a failed entry is retained, to report a late confirmation.
//
// All verbs cost the same at any length of the outbox, except searches by text.

/// A message on its way to the backend.
struct OutboxEntry {
    enum State: Equatable {
        case accepting(StoreTicket)
        case queued
        case recordingAttempt(StoreTicket)
        case written(at: MonotonicInstant)
        case doubtful
        case unknownAfterDisconnect
    }

    /// A piece of a message that is longer than the wire's frames.
    struct Part: Equatable {
        /// Common to all pieces of one message.
        var group: UInt64
        /// The index among them.
        var index = 0
        /// The id of the whole message.
        var whole: ChatID?
    }

    /// The data for showing the message on IRC once it is confirmed. A class, as entries are copied often.
    final class Origin: Sendable {
        /// The client and the person that sent it; nil: restored from an earlier process.
        let client: ClientID?
        let person: PersonID?
        /// The author's own upstream id, also where another account sends it.
        let puppet: ChatID
        /// The author as of then.
        let who: RoomSpeaker
        /// The text as the IRC user sent it, CTCP ACTION included.
        let text: String
        /// Offsets at which the client split lines; see ``SpokenText/cuts``.
        let cuts: [Int]
        /// Client-only tags of the message.
        let clientTags: [(name: String, value: String?)]
        /// The labeled-response label, to be answered by the echo.
        let label: String?
        /// The msgid of the message that it answers.
        var replyTo: String? { clientTags.first { $0.name == "+reply" || $0.name == "+draft/reply" }?.value }
        /// The name of the author's client; nil: it has none.
        let clientName: String?

        init(
            client: ClientID? = nil, person: PersonID? = nil, puppet: ChatID, who: RoomSpeaker, text: String,
            cuts: [Int] = [], clientTags: [(name: String, value: String?)], label: String? = nil,
            clientName: String? = nil
        ) {
            self.client = client
            self.person = person
            self.puppet = puppet
            self.who = who
            self.text = text
            self.cuts = cuts
            self.clientTags = clientTags
            self.label = label
            self.clientName = clientName
        }

        /// Reassigned to a placeholder author.
        func disowned(as placeholder: ChatID) -> Origin {
            Origin(puppet: placeholder, who: who, text: text, cuts: cuts, clientTags: clientTags)
        }

        func with(label: String?, clientName: String?) -> Origin {
            Origin(
                client: client, person: person, puppet: puppet, who: who, text: text, cuts: cuts,
                clientTags: clientTags, label: label, clientName: clientName)
        }
    }

    /// What writing a message needs of its author.
    struct Author {
        let client: ClientID?
        let person: PersonID?
        let nick: String
        let acceptedAt: MonotonicInstant
    }

    var message: ChatMessage
    var origin: Origin
    var state: State = .queued
    var acceptedAt: MonotonicInstant
    /// The author was notified of the delay.
    var isWaitAnnounced = false
    var part: Part?
    /// Number of leading pieces confirmed before the restart.
    var confirmedPieces = 0
    /// Frames to write once the attempt is persisted.
    var frames: [EncodedFrame] = []
    /// Accepted by an earlier process.
    var isRestored = false
    /// Possibly on the wire of an earlier connection; waits for retransmission.
    var mayHaveArrived = false
    /// The newest sequence number in the room when it was accepted; nil: unknown.
    var saidAfter: Int?
    /// Its line in the round robin; nil: the author's.
    var line: OutboxTurns.Line?
    /// Its number among all entries chosen for writing; 0: not chosen by this process.
    var place: UInt64 = 0

    /// The time of writing, and the session's frame count with it.
    var writtenAt: MonotonicInstant?
    var frameCount: UInt64 = 0
    /// IRC has seen it: a pong confirmed it once.
    var isShown = false
    /// Not to be sent again: it was retransmitted once, or the backend may have refused it.
    var isRepeated = false
    /// A complaint of the backend that may concern this message.
    var complaint: String?
    /// Since when the outcome is unknown: only a history requested later can resolve it.
    var unknownSince: MonotonicInstant?
    /// The time at which a history first lacked it.
    var missedAt: MonotonicInstant?

    /// The backend may or may not have it.
    var isArrivalOpen: Bool {
        switch state {
        case .written, .doubtful, .unknownAfterDisconnect: true
        case .accepting, .queued, .recordingAttempt: mayHaveArrived
        }
    }

    /// Not persisted yet.
    var isAccepting: Bool { if case .accepting = state { true } else { false } }

    var turn: OutboxTurns.Line { line ?? .author(origin.puppet) }

    var link: OutboxTurns.Link {
        OutboxTurns.Link(author: origin.puppet, client: origin.client, group: part?.group, place: place)
    }

    /// The id in the store.
    var storedID: ChatID? { part?.whole ?? message.id }

    var author: Author {
        Author(client: origin.client, person: origin.person, nick: origin.who.nick, acceptedAt: acceptedAt)
    }

    mutating func markShown() { isShown = true }

    /// It is accepted once the store has it.
    mutating func accept(with ticket: StoreTicket) { state = .accepting(ticket) }

    mutating func change(_ body: (inout Self) -> Void) { body(&self) }

    /// Reassigns it to a placeholder author.
    mutating func disown(as placeholder: ChatID) { origin = origin.disowned(as: placeholder) }
}

struct Outbox {
    /// Without a confirmation after this, on a wire that confirms, the link is checked.
    static let confirmationWait: Duration = .seconds(10)
    /// The author is notified of a longer delay.
    static let announceAfter: Duration = .seconds(3)
    /// Failed messages retained for late confirmations.
    static let failedMemory = FailedMessages.toldCapacity
    /// Where no history can resolve an unknown outcome, the author is notified after this at the latest.
    static let unknownAge: Duration = .seconds(15 * 60)
    /// Pause after the store had no room for an attempt.
    static let attemptPause: Duration = .seconds(1)

    /// Progress of the pieces of a message.
    private struct Pieces {
        var slots: Set<Int> = []
        var arrived: Set<Int> = []
        /// Number of leading pieces confirmed.
        var leading: Int
    }

    private(set) var lists = OutboxLists()
    /// Slots of all entries by id, so that an unrelated message costs one lookup.
    private(set) var slots: [ChatID: Int] = [:]
    private var pieces: [UInt64: Pieces] = [:]
    /// Entries whose authors may have to be notified of a delay, in the order of acceptance; may contain removed ones.
    private var unannounced: [(slot: Int, serial: UInt64)] = []
    private var firstUnannounced = 0
    /// The number of unknown entries by author.
    private var unknownAuthors: [ChatID: Int] = [:]
    /// The order of queued entries.
    private var turns = OutboxTurns()
    private var lastPlace: UInt64 = 0
    private var lastGroup: UInt64 = 0
    /// The number of entries on the wire by the hash of the text.
    private(set) var texts: [Int: Int] = [:]
    /// Entries are matched by text, also with unrelated messages.
    var matchesTexts = false
    /// A history can resolve unknown entries.
    var historyResolves = false
    var failures = FailedMessages()
    /// Messages confirmed by a pong alone, while a history may still be asked for them.
    var delivered = DeliveredMessages()
    /// Restored entries that may be too long for one frame.
    private var uncut: [ChatID] = []
    /// Unknown entries may still be resolved, so their authors' later messages wait.
    var waitsForUnknown = false { didSet { turns.release() } }
    /// No attempt is persisted before this.
    private(set) var attemptsPausedUntil: MonotonicInstant?

    init() {}

    init(_ traits: DialectTraits) {
        matchesTexts = traits.messageIDOrigin == .server
        historyResolves = traits.history != .none
        waitsForUnknown = traits.history != .none
    }

    var count: Int { lists.count }
    var isEmpty: Bool { lists.count == 0 }
    /// Nothing is queued or unconfirmed, and no history may still be asked for what a pong alone confirmed.
    var isSettled: Bool { isEmpty && delivered.isEmpty }
    var oldestAcceptedAt: MonotonicInstant? { lists.oldest.flatMap { lists[$0]?.acceptedAt } }
    /// All entries; those of each author in the order of writing. For tests and for shutdown: it copies.
    var entries: [OutboxEntry] { OutboxLists.Name.allCases.flatMap { lists.entries($0) } }
    /// The number of ``entries`` that may be on the wire.
    var nextToWrite: Int { lists.count(.open) + lists.count(.written) }
    /// When the oldest of these was accepted, of each of the two.
    var oldestSentAcceptedAt: MonotonicInstant? {
        [lists.first(.open), lists.first(.written)].compactMap { slot in slot.flatMap { lists[$0]?.acceptedAt } }.min()
    }
    var hasUnknown: Bool { !unknownAuthors.isEmpty }
    var unknownCount: Int { unknownAuthors.values.reduce(0, +) }
    var oldestUnknown: OutboxEntry? { hasUnknown ? lists.first(.open).flatMap { lists[$0] } : nil }
    /// The oldest unknown entry, where no history can resolve it.
    private var oldestUnresolvable: OutboxEntry? { historyResolves ? nil : oldestUnknown }
    var hasDoubtful: Bool { lists.last(.open).map { lists[$0]?.state == .doubtful } ?? false }
    /// An entry can be written.
    var hasQueued: Bool { mutating get { nextSlot() != nil } }
    /// An entry waits for the store.
    var waitsForStore: Bool { lists.first(.accepting) != nil || lists.first(.recordingAttempt) != nil }

    private mutating func nextSlot() -> Int? {
        turns.next(passingOver: waitsForUnknown ? unknownAuthors : [:])
    }

    mutating func append(_ entry: consuming OutboxEntry) {
        let isAccepting = entry.isAccepting
        let (link, turn) = (entry.link, entry.turn)
        let slot = lists.append(consume entry, to: isAccepting ? .accepting : .queued)
        if !isAccepting { takeTurn(slot, link, turn) }
        enter(slot)
    }

    private mutating func takeTurn(_ slot: Int) {
        if let link = lists[slot]?.link, let turn = lists[slot]?.turn { takeTurn(slot, link, turn) }
    }

    private mutating func takeTurn(_ slot: Int, _ link: OutboxTurns.Link, _ turn: OutboxTurns.Line) {
        let line = turns.append(slot, link, turn: turn)
        lists.modify(slot) { $0.line = line }
    }

    private mutating func enter(_ slot: Int) {
        if let id = lists[slot]?.message.id { slots[id] = slot }
        if lists[slot]?.isWaitAnnounced == false { unannounced.append((slot, lists.serial(of: slot))) }
        if let part = lists[slot]?.part {
            pieces[part.group, default: Pieces(leading: lists[slot]?.confirmedPieces ?? 0)].slots.insert(slot)
        }
    }

    /// Inserts restored entries in front of all others, oldest first; those persisted as written are unknown.
    mutating func restore(_ left: [OutboxEntry]) {
        uncut += left.compactMap(\.message.id)
        let (firstOpen, firstQueued, oldest) = (lists.first(.open), lists.first(.queued), lists.oldest)
        var queued: [(slot: Int, entry: OutboxEntry)] = []
        for entry in left {
            let isUnknown = entry.state == .unknownAfterDisconnect
            let slot = lists.insert(
                entry, into: isUnknown ? .open : .queued, before: isUnknown ? firstOpen : firstQueued,
                olderThan: oldest)
            enter(slot)
            if isUnknown { countUnknown(entry) } else { queued.append((slot, entry)) }
        }
        for (item, line) in zip(queued, turns.restore(queued)) { lists.modify(item.slot) { $0.line = line } }
    }

    private mutating func countUnknown(_ entry: OutboxEntry) {
        unknownAuthors[entry.origin.puppet, default: 0] += 1
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

    /// The entry is no longer unknown.
    private mutating func discountUnknown(_ entry: OutboxEntry) {
        guard let count = unknownAuthors[entry.origin.puppet] else { return }
        unknownAuthors[entry.origin.puppet] = count > 1 ? count - 1 : nil
        if count == 1 { turns.release() }
    }

    mutating func remove(_ slot: Int) -> OutboxEntry? {
        let list = lists.list(of: slot)
        guard let entry = lists.remove(slot) else { return nil }
        if list == .queued { turns.remove(slot) }
        if lists.count == 0 { turns.slotsReleased() }
        if entry.state == .unknownAfterDisconnect { discountUnknown(entry) }
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

    /// Removes the whole message accepted first among those that no connection has carried. One that is still being
    /// persisted counts: its failure is persisted behind it.
    mutating func removeOldestUnwritten() -> OutboxEntry? {
        let queued = lists.first(.queued, where: { !$0.mayHaveArrived && $0.part == nil })
        return (queued ?? lists.first(.accepting)).flatMap { remove($0) }
    }

    /// Removes a confirmed entry.
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

    /// Removes the messages of `author`, a purged account, without notifications. Returns the failures dropped for it.
    /// Walks all entries.
    mutating func disown(_ author: ChatID, as nobody: ChatID) -> [FailedMessages.Item] {
        for slot in slots.values where lists[slot]?.origin.puppet == author {
            lists.modify(slot) { $0.disown(as: nobody) }
            if let link = lists[slot]?.link { turns.reattribute(slot, link) }
        }
        turns.release()
        if let count = unknownAuthors.removeValue(forKey: author) { unknownAuthors[nobody, default: 0] += count }
        return failures.disown(author, as: nobody)
    }

    mutating func eraseFailed() -> [FailedMessages.Item] { failures.eraseAll() }

    // MARK: - The store

    /// Resolves acceptances up to a ticket: they are persisted, or in `refused`. Changes in front of them may still
    /// wait for the store. Returns the refused ones.
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

    /// The store had no room for an order. Returns its acceptances; attempts are queued again.
    mutating func overflowed(_ ticket: StoreTicket, now: MonotonicInstant) -> [OutboxEntry] {
        var gone: [OutboxEntry] = []
        var slot = lists.last(.accepting)
        while let at = slot, case .accepting(let own) = lists[at]?.state, own >= ticket {
            slot = lists.previous(before: at)
            if own == ticket, let entry = remove(at) { gone.append(entry) }
        }
        var isPaused = false
        while let at = lists.last(.recordingAttempt), case .recordingAttempt(let own) = lists[at]?.state, own >= ticket
        {
            withdraw(at)
            isPaused = true
        }
        if isPaused { attemptsPausedUntil = now + Self.attemptPause }
        return gone.reversed()
    }

    /// Moves an entry to the front of the queue.
    private mutating func withdraw(_ slot: Int) {
        change(slot, to: .queued)
        lists.move(slot, to: .queued, before: lists.first(.queued))
        if let link = lists[slot]?.link { turns.putBack(slot, link) }
    }

    /// Ends a pause that is over.
    mutating func mayRecordAttempt(_ now: MonotonicInstant) -> Bool {
        if let until = attemptsPausedUntil, until <= now { attemptsPausedUntil = nil }
        return attemptsPausedUntil == nil
    }

    /// The next entry is written once its attempt is persisted.
    mutating func markNextRecording(_ ticket: StoreTicket, _ frames: [EncodedFrame]) {
        guard let slot = nextSlot() else { return }
        leaveQueue(slot, to: .recordingAttempt, .recordingAttempt(ticket))
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
        if let turn = lists[slot]?.turn { turns.take(slot, of: turn) }
    }

    /// The next entry whose attempt is persisted; nil: none.
    func nextRecorded(through ticket: StoreTicket) -> OutboxEntry? {
        guard let entry = lists.first(.recordingAttempt).flatMap({ lists[$0] }),
            case .recordingAttempt(let own) = entry.state,
            own <= ticket
        else { return nil }
        return entry
    }

    /// - Parameter frameCount: of the session, with this message.
    mutating func markRecordedWritten(at now: MonotonicInstant, frameCount: UInt64) {
        guard let slot = lists.first(.recordingAttempt) else { return }
        lists.move(slot, to: .written)
        wrote(slot, at: now, frameCount)
    }

    private mutating func wrote(_ slot: Int, at now: MonotonicInstant, _ frameCount: UInt64) {
        change(slot, to: .written(at: now))
        lists.modify(slot) { ($0.writtenAt, $0.frameCount) = (now, frameCount) }
        if matchesTexts, let entry = lists[slot] { countText(entry) }
    }

    // MARK: - The link

    /// The next entry to write, or nil.
    var next: OutboxEntry? { mutating get { nextSlot().flatMap { lists[$0] } } }
    /// The same of it alone: entries are large.
    var nextMessage: ChatMessage? { mutating get { nextSlot().flatMap { lists[$0]?.message } } }
    /// The client and the person that sent it, when, and under which nick.
    var nextAuthor: OutboxEntry.Author? { mutating get { nextSlot().flatMap { lists[$0]?.author } } }

    /// - Parameter frameCount: of the session, with this message.
    mutating func markNextWritten(at now: MonotonicInstant, frameCount: UInt64) {
        guard let slot = nextSlot() else { return }
        leaveQueue(slot, to: .written, .written(at: now))
        wrote(slot, at: now, frameCount)
    }

    /// Removes the next entry, which cannot be sent at all.
    mutating func removeNext() -> OutboxEntry? {
        guard let slot = nextSlot() else { return nil }
        spendTurn(slot)
        return remove(slot)
    }

    /// The link is lost. All unconfirmed entries are queued again, oldest first, unless that could duplicate them.
    /// Those confirmed by pongs alone become unknown, with any kind of id: IRC has seen them, so a history is asked
    /// first.
    ///
    /// - Returns: attempts that were not written: they are queued again.
    @discardableResult
    mutating func linkLost(mayRepeat: Bool = true, now: MonotonicInstant) -> [OutboxEntry] {
        attemptsPausedUntil = nil
        let intended = lists.entries(.recordingAttempt)
        while let slot = lists.last(.recordingAttempt) { withdraw(slot) }
        if mayRepeat {
            for list in [OutboxLists.Name.written, .open] {
                var slot = lists.last(list)
                while let at = slot {
                    slot = lists.previous(before: at)
                    guard lists[at]?.state != .unknownAfterDisconnect else { continue }
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

    /// The backend may have refused messages that a pong confirmed lately: a history decides. Returns whether there
    /// were any.
    mutating func suspectDelivered(since: MonotonicInstant, now: MonotonicInstant, _ complaint: String) -> Bool {
        var suspects = delivered.take(since: since)
        for index in suspects.indices { (suspects[index].isRepeated, suspects[index].complaint) = (true, complaint) }
        reopen(suspects, now)
        return !suspects.isEmpty
    }

    /// Puts entries confirmed by pongs alone in front of all others that are unknown. Their age begins anew: they were
    /// sent in time, and IRC has seen them.
    private mutating func reopen(_ entries: [OutboxEntry], _ now: MonotonicInstant) {
        let first = lists.first(.open, where: { $0.unknownSince == now || $0.state != .unknownAfterDisconnect })
        for var entry in entries {
            entry.state = .unknownAfterDisconnect
            (entry.acceptedAt, entry.unknownSince, entry.missedAt) = (now, now, nil)
            let slot = lists.insert(entry, into: .open, before: first, olderThan: nil)
            enter(slot)
            countUnknown(entry)
        }
    }

    /// Unanswered messages become unknown, for a history to resolve. Returns whether there were any.
    mutating func markDoubtfulUnknown(now: MonotonicInstant) -> Bool {
        guard hasDoubtful else { return false }
        var slot = lists.last(.open)
        while let at = slot, lists[at]?.state == .doubtful {
            slot = lists.previous(before: at)
            unsettle(at, now)
        }
        return true
    }

    private mutating func unsettle(_ slot: Int, _ now: MonotonicInstant) {
        guard let entry = lists[slot], entry.state != .unknownAfterDisconnect else { return }
        change(slot, to: .unknownAfterDisconnect)
        lists.modify(slot) { ($0.unknownSince, $0.missedAt) = (now, nil) }
        unknownAuthors[entry.origin.puppet, default: 0] += 1
    }

    /// Queues an entry from the wire again, ahead of all others.
    private mutating func requeue(_ slot: Int) {
        guard let entry = lists[slot] else { return }
        if entry.state == .unknownAfterDisconnect { discountUnknown(entry) }
        discountText(entry)
        withdraw(slot)
    }

    /// Unknown entries, oldest first.
    var unknown: [OutboxEntry] { hasUnknown ? lists.entries(.open).filter { $0.state == .unknownAfterDisconnect } : [] }
    /// Entries written over this link or an earlier one and unconfirmed; oldest first.
    var unconfirmed: [OutboxEntry] { lists.entries(.open) + lists.entries(.written) }

    /// A history requested at `asked` covers unknown entries and lacks them. Entries lacked for the first time are
    /// noted; entries that an earlier one lacked long enough ago are sent again, once.
    ///
    /// - Parameters:
    ///   - isOnce: an entry is retransmitted once at most; elsewhere the backend answers, so that each time is as safe
    ///     as the first.
    ///   - reaches: whether the history covers an entry.
    /// - Returns: unresolvable entries, which are removed.
    mutating func settleMissing(
        asked: MonotonicInstant, patience: Duration, isOnce: Bool, reaches: (OutboxEntry) -> Bool
    ) -> [OutboxEntry] {
        var given: [OutboxEntry] = []
        var again: [Int] = []
        var slot = hasUnknown ? lists.first(.open) : nil
        while let at = slot, let entry = lists[at] {
            slot = lists.next(after: at)
            guard entry.state == .unknownAfterDisconnect, entry.unknownSince.map({ $0 <= asked }) ?? true else {
                continue
            }
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

    /// The time at which a second history is needed for missing entries; nil: none is missing.
    func nextLook(patience: Duration) -> MonotonicInstant? {
        hasUnknown ? unknown.compactMap(\.missedAt).min().map { $0 + patience } : nil
    }

    /// Removes the unknown entries: nothing will resolve them any more.
    mutating func giveUpUnknown() -> [OutboxEntry] {
        var given: [OutboxEntry] = []
        while hasUnknown, let slot = lists.first(.open), let entry = remove(slot) { given.append(give(up: entry)) }
        return given
    }

    /// A new group number for the pieces of one message.
    mutating func newGroup() -> UInt64 {
        lastGroup += 1
        return lastGroup
    }

    /// Replaces the next entry, which is too long for one frame, by pieces.
    mutating func splitNext(_ pieces: [OutboxEntry]) {
        guard let slot = nextSlot() else { return }
        split(slot, pieces)
    }

    /// The same for a restored entry, once the frame size is known.
    mutating func split(id: ChatID, _ pieces: [OutboxEntry]) {
        if let slot = slots[id] { split(slot, pieces) }
    }

    private mutating func split(_ slot: Int, _ pieces: [OutboxEntry]) {
        let list = lists.list(of: slot)
        var isFirst = true
        for var piece in pieces {
            // One message, so one announcement.
            if !isFirst { piece.isWaitAnnounced = true }
            isFirst = false
            let at = lists.insert(piece, into: list, before: slot, olderThan: slot)
            if list == .queued { turns.insert(at, piece.link, before: slot) }
            enter(at)
            if piece.state == .unknownAfterDisconnect { countUnknown(piece) }
        }
        _ = remove(slot)
    }

    /// Removes and returns the restored entries that are not split yet.
    mutating func takeUncut() -> [OutboxEntry] {
        defer { uncut = [] }
        return uncut.compactMap { slots[$0] }.compactMap { lists[$0] }
    }

    /// Whether other pieces of the same message are unconfirmed.
    func hasPieces(of entry: OutboxEntry) -> Bool {
        entry.part.map { pieces[$0.group] != nil } ?? false
    }

    /// The number of leading pieces confirmed.
    func arrivedPieces(of entry: OutboxEntry) -> Int {
        entry.part.flatMap { pieces[$0.group]?.leading } ?? entry.confirmedPieces
    }

    /// Takes out the other pieces of a message of which one failed.
    mutating func dropPieces(of entry: OutboxEntry) {
        guard let part = entry.part, let others = pieces[part.group]?.slots else { return }
        for slot in others { _ = remove(slot) }
    }

    // MARK: - Deferral

    /// Attempts not written yet are queued again.
    mutating func withdrawRecording() -> [OutboxEntry] {
        let intended = lists.entries(.recordingAttempt)
        while let slot = lists.last(.recordingAttempt) { withdraw(slot) }
        return intended
    }

    /// The backend deferred the message with `id`: it is queued again, in its order. False: it is not on the wire.
    mutating func putOff(id: ChatID) -> Bool {
        guard let slot = slots[id], lists.list(of: slot) == .written || lists[slot]?.state == .doubtful else {
            return false
        }
        putOff(slot)
        return true
    }

    /// The same without a reference: a pause needs no exact match. Where retransmission is idempotent, all in flight is
    /// queued again; elsewhere the last one written.
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
        while let entry = oldestUnresolvable, now - entry.acceptedAt >= Self.unknownAge, let slot = lists.first(.open) {
            _ = remove(slot)
            expired.append(give(up: entry))
        }
        while let slot = lists.oldest, let entry = lists[slot], now - entry.acceptedAt >= maxAge {
            _ = remove(slot)
            expired.append(give(up: entry))
        }
        return expired
    }

    /// The messages of a connection belong to another client name.
    mutating func renameClient(_ client: ClientID, to name: String) {
        for list in OutboxLists.Name.allCases {
            var slot = lists.first(list)
            while let at = slot {
                lists.modify(at) {
                    guard $0.origin.client == client else { return }
                    $0.origin = $0.origin.with(label: $0.origin.label, clientName: name)
                }
                slot = lists.next(after: at)
            }
        }
    }

    /// Empties the outbox.
    mutating func takeAll() -> [OutboxEntry] {
        let all = entries
        let (failures, matchesTexts, waitsForUnknown) = (failures, matchesTexts, waitsForUnknown)
        let (historyResolves, delivered) = (historyResolves, delivered)
        self = Outbox()
        (self.historyResolves, self.delivered) = (historyResolves, delivered)
        (self.failures, self.matchesTexts, self.waitsForUnknown) = (failures, matchesTexts, waitsForUnknown)
        return all
    }

    /// Entries whose author should be notified of the delay; each is returned once.
    mutating func takeWaitAnnouncements(now: MonotonicInstant) -> [OutboxEntry] {
        var waiting: [OutboxEntry] = []
        while let slot = nextUnannounced(), let entry = lists[slot], now - entry.acceptedAt >= Self.announceAfter {
            lists.modify(slot) { $0.isWaitAnnounced = true }
            firstUnannounced += 1
            waiting.append(entry)
        }
        return waiting
    }

    /// The oldest entry whose author may have to be notified of a delay.
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

    /// Marks written entries that were not confirmed in time as doubtful. True when there were any.
    mutating func takeDoubtful(now: MonotonicInstant) -> Bool {
        var found = false
        while let at = oldestWritten, now - at >= Self.confirmationWait, let slot = lists.first(.written) {
            change(slot, to: .doubtful)
            lists.move(slot, to: .open)
            found = true
        }
        return found
    }

    /// The next deadline, apart from the write budget.
    mutating func nextDeadline(maxAge: Duration) -> MonotonicInstant? {
        var due: MonotonicInstant?
        func add(_ time: MonotonicInstant) { due = due.map { min($0, time) } ?? time }
        if let oldest = lists.oldest, let at = lists[oldest]?.acceptedAt { add(at + maxAge) }
        if let slot = nextUnannounced(), let at = lists[slot]?.acceptedAt { add(at + Self.announceAfter) }
        if let entry = oldestUnresolvable { add(entry.acceptedAt + Self.unknownAge) }
        if let oldestWritten { add(oldestWritten + Self.confirmationWait) }
        if let due = delivered.due { add(due) }
        if let attemptsPausedUntil, lists.first(.queued) != nil { add(attemptsPausedUntil) }
        return due
    }
}
