import ChatModel
import WireBytes

// What IRC users said and the backend has not confirmed yet.
//
// | state    | meaning                                    | leaves by                                                  |
// |----------|--------------------------------------------|------------------------------------------------------------|
// | queued   | not on the wire of this connection         | written (link usable, budget left); failed (age)           |
// | written  | the socket took the frame                  | confirmed (echo, ack); doubtful (10 s); refused; link lost  |
// | doubtful | written, no answer, but the link is alive  | confirmed; refused; failed (age); link lost                |
// | unsettled| written over a link that was lost          | confirmed (history, echo); queued (not in the history);    |
// |          |                                            | failed (age)                                               |
//
// A lost link: where the ids are ours, the same message may be sent again, so what was written is queued; where the server
// makes the ids, a second sending is a second message, so what was written is unsettled until a history tells.
//
// Order: entries are written front to back, and after a lost link again from the front, so a room and sender never see two
// messages swapped; nor an author who speaks while it is open whether an earlier message arrived: what they say waits with
// it, and others go on. A failed entry's id is remembered: a confirmation that comes later is reported.

/// A message on its way up.
struct OutboxEntry {
    enum State: Equatable {
        case queued
        case written(at: MonotonicInstant)
        case doubtful
        case unsettled
    }

    /// A piece of a message that is longer than the wire's frames.
    struct Part: Equatable {
        /// The same for all pieces of one message.
        var group: UInt64
    }

    /// What the IRC side shows once the message is confirmed.
    struct Origin {
        var client: ClientID
        var person: PersonID
        /// The author's own id upstream, whoever speaks for them.
        var puppet: ChatID
        /// `nick!user@host` and account when it was said.
        var source: String
        var nick: String
        var account: String?
        /// The text as the IRC user sent it, CTCP ACTION included.
        var text: String
        /// Client-only tags that travel with it.
        var clientTags: [(name: String, value: String?)]
        /// The labeled-response label, to be answered by the echo.
        var label: String?
        /// The name of the author's client; nil: it has none.
        var clientName: String?
    }

    var message: ChatMessage
    var origin: Origin
    var state: State = .queued
    var acceptedAt: MonotonicInstant
    /// The author was told that it waits.
    var isWaitAnnounced = false
    var part: Part?
}

struct Outbox {
    /// Not confirmed after this long on a wire that confirms: the link is checked.
    static let confirmationWait: Duration = .seconds(10)
    /// A message that waits longer than this is worth a word to its author.
    static let announceAfter: Duration = .seconds(3)
    /// Failed messages remembered, for confirmations that come too late.
    static let failedMemory = 200

    private(set) var entries: [OutboxEntry] = []
    /// Entries before this index are written or doubtful, those from it on queued.
    private(set) var nextToWrite = 0
    /// Ids of all entries, so that a message of somebody else costs one look.
    private var ids: Set<ChatID> = []
    private var failed: [OutboxEntry] = []
    /// Something may yet tell whether unsettled entries arrived, so their authors' later ones wait for that.
    var waitsForUnsettled = false

    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }
    var hasUnsettled: Bool { entries[..<nextToWrite].contains { $0.state == .unsettled } }
    /// Something can be written.
    var hasQueued: Bool { nextIndex != nil }

    private var nextIndex: Int? {
        guard nextToWrite < entries.count else { return nil }
        // Unsettled entries are in front of all that was written over this link.
        guard waitsForUnsettled, nextToWrite > 0, entries[0].state == .unsettled else { return nextToWrite }
        var waiting: Set<ChatID> = []
        for entry in entries[..<nextToWrite].prefix(while: { $0.state == .unsettled }) {
            waiting.insert(entry.origin.puppet)
        }
        return entries[nextToWrite...].firstIndex { !waiting.contains($0.origin.puppet) }
    }

    mutating func append(_ entry: OutboxEntry) {
        entries.append(entry)
        if let id = entry.message.id { ids.insert(id) }
    }

    private mutating func remove(at index: Int) -> OutboxEntry {
        let entry = entries.remove(at: index)
        if index < nextToWrite { nextToWrite -= 1 }
        if let id = entry.message.id { ids.remove(id) }
        return entry
    }

    /// The next entry to write, or nil.
    var next: OutboxEntry? { nextIndex.map { entries[$0] } }

    mutating func markNextWritten(at now: MonotonicInstant) {
        guard let index = nextIndex else { return }
        entries[index].state = .written(at: now)
        if index != nextToWrite { entries.insert(entries.remove(at: index), at: nextToWrite) }
        nextToWrite += 1
    }

    /// Takes out the entry at the write position (it cannot be sent at all).
    mutating func removeNext() -> OutboxEntry? {
        nextIndex.map { remove(at: $0) }
    }

    /// The link is gone. Everything unconfirmed goes again, oldest first, unless that could make a second message of it.
    mutating func linkLost(mayRepeat: Bool = true) {
        for index in 0..<nextToWrite { entries[index].state = mayRepeat ? .queued : .unsettled }
        if mayRepeat { nextToWrite = 0 }
    }

    /// A history that reaches far enough back has none of the unsettled entries: they never arrived and go again.
    mutating func requeueUnsettled() {
        guard hasUnsettled else { return }
        var lost = entries[..<nextToWrite].filter { $0.state == .unsettled }
        for index in lost.indices { lost[index].state = .queued }
        let written = entries[..<nextToWrite].filter { $0.state != .unsettled }
        entries = written + lost + entries[nextToWrite...]
        nextToWrite = written.count
    }

    /// Puts pieces where the next entry is, which is too long for one frame.
    mutating func splitNext(_ pieces: [OutboxEntry]) {
        guard let index = nextIndex else { return }
        _ = remove(at: index)
        entries.insert(contentsOf: pieces, at: index)
        for case let id? in pieces.map(\.message.id) { ids.insert(id) }
    }

    /// Whether other pieces of the same message are unconfirmed.
    func hasPieces(of entry: OutboxEntry) -> Bool {
        guard let part = entry.part else { return false }
        return entries.contains { $0.part == part }
    }

    /// Takes out the other pieces of a message of which one failed.
    mutating func dropPieces(of entry: OutboxEntry) {
        guard let part = entry.part else { return }
        while let index = entries.lastIndex(where: { $0.part == part }) { _ = remove(at: index) }
    }

    // MARK: - Refusals

    /// The backend refused the message with `id`.
    mutating func refuse(id: ChatID) -> OutboxEntry? { confirm(id: id, sender: nil).map { give(up: $0) } }

    /// The backend refused something and does not say what: the oldest that was written, where it answers in order.
    mutating func refuseOldest() -> OutboxEntry? {
        guard nextToWrite > 0, entries[0].state != .unsettled else { return nil }
        return give(up: remove(at: 0))
    }

    /// The newest that was written within `window`.
    mutating func refuseNewest(within window: Duration, now: MonotonicInstant) -> OutboxEntry? {
        guard
            let index = entries[..<nextToWrite].lastIndex(where: {
                if case .written(let at) = $0.state { now - at <= window } else { false }
            })
        else { return nil }
        return give(up: remove(at: index))
    }

    /// Remembers an entry whose author is told that it failed.
    private mutating func give(up entry: OutboxEntry) -> OutboxEntry {
        guard entry.message.id != nil else { return entry }
        var given = entry
        // The label is answered by the refusal.
        given.origin.label = nil
        failed.append(given)
        if failed.count > Self.failedMemory { failed.removeFirst() }
        return entry
    }

    /// The backend has the message with `id` from `sender`. Nil when it is none of ours.
    ///
    /// Entries that wait to be written again count too: the answer to the first writing may come over the next link.
    mutating func confirm(id: ChatID, sender: ChatID?) -> OutboxEntry? {
        // Confirmations come in the order of writing, so this looks at the first entry nearly always.
        guard ids.contains(id),
            let index = entries.firstIndex(where: {
                $0.message.id == id && (sender == nil || $0.message.sender.id == sender)
            })
        else { return nil }
        return remove(at: index)
    }

    /// The oldest written entry with this sender and text: for wires on which the server makes the ids.
    mutating func confirm(sender: ChatID?, text: String) -> OutboxEntry? {
        guard
            let index = entries[..<nextToWrite].firstIndex(where: {
                $0.message.text == text && (sender == nil || $0.message.sender.id == sender)
            })
        else { return nil }
        return remove(at: index)
    }

    /// The same on wires that name senders, and give them no ids.
    mutating func confirm(senderName: String, text: String) -> OutboxEntry? {
        entries[..<nextToWrite].firstIndex { $0.message.text == text && $0.message.sender.name == senderName }
            .map { remove(at: $0) }
    }

    /// The message with this id and sender (nil: any) that was given up, or nil; forgets it.
    mutating func takeLate(id: ChatID, sender: ChatID?) -> OutboxEntry? {
        failed.firstIndex { $0.message.id == id && (sender == nil || $0.message.sender.id == sender) }
            .map { failed.remove(at: $0) }
    }

    /// The message with this id of ours that was given up, whoever speaks for its author.
    mutating func takeLate(ref: ChatID) -> OutboxEntry? {
        failed.firstIndex { $0.message.id == ref }.map { failed.remove(at: $0) }
    }

    func contains(id: ChatID) -> Bool { ids.contains(id) }

    /// Takes out everything that was written over this link and is not confirmed.
    mutating func takeWritten() -> [OutboxEntry] {
        var taken: [OutboxEntry] = []
        var index = 0
        while index < nextToWrite {
            if entries[index].state == .unsettled { index += 1 } else { taken.append(remove(at: index)) }
        }
        return taken
    }

    /// When the oldest entry that waits for its confirmation was written; nil: none does, or only ones in doubt.
    var oldestWritten: MonotonicInstant? {
        for entry in entries[..<nextToWrite] {
            if case .written(let at) = entry.state { return at }
        }
        return nil
    }

    /// Takes out what was written at `time` or before and is not confirmed, oldest first.
    mutating func takeWritten(upTo time: MonotonicInstant) -> [OutboxEntry] {
        var taken: [OutboxEntry] = []
        while nextToWrite > 0 {
            switch entries[0].state {
            case .written(let at) where at > time: return taken
            case .written, .doubtful: taken.append(remove(at: 0))
            case .queued, .unsettled: return taken
            }
        }
        return taken
    }

    /// The oldest given up with this sender and text: for wires on which the server makes the ids.
    mutating func takeLate(sender: ChatID?, text: String) -> OutboxEntry? {
        failed.firstIndex {
            $0.message.text == text && (sender == nil || $0.message.sender.id == sender)
        }.map { failed.remove(at: $0) }
    }

    /// Removes what is older than `maxAge`.
    mutating func expire(maxAge: Duration, now: MonotonicInstant) -> [OutboxEntry] {
        var expired: [OutboxEntry] = []
        while let first = entries.first, now - first.acceptedAt >= maxAge {
            expired.append(give(up: remove(at: 0)))
        }
        return expired
    }

    /// Empties the outbox.
    mutating func takeAll() -> [OutboxEntry] {
        defer {
            entries = []
            ids = []
            nextToWrite = 0
        }
        return entries
    }

    /// Entries whose author should hear that they wait; each is named once.
    mutating func takeWaitAnnouncements(now: MonotonicInstant) -> [OutboxEntry] {
        var waiting: [OutboxEntry] = []
        for index in entries.indices
        where !entries[index].isWaitAnnounced && now - entries[index].acceptedAt >= Self.announceAfter {
            entries[index].isWaitAnnounced = true
            waiting.append(entries[index])
        }
        return waiting
    }

    /// Moves written entries that were not confirmed in time to doubtful. True when there were any.
    mutating func takeDoubtful(now: MonotonicInstant) -> Bool {
        var found = false
        for index in 0..<nextToWrite {
            guard case .written(let at) = entries[index].state, now - at >= Self.confirmationWait else { continue }
            entries[index].state = .doubtful
            found = true
        }
        return found
    }

    /// When something in here comes due next, apart from the write budget.
    func nextDeadline(maxAge: Duration, confirms: Bool) -> MonotonicInstant? {
        guard let first = entries.first else { return nil }
        var due = first.acceptedAt + maxAge
        if let unannounced = entries.first(where: { !$0.isWaitAnnounced }) {
            due = min(due, unannounced.acceptedAt + Self.announceAfter)
        }
        if confirms {
            for entry in entries[..<nextToWrite] {
                guard case .written(let at) = entry.state else { continue }
                due = min(due, at + Self.confirmationWait)
                break
            }
        }
        return due
    }
}
