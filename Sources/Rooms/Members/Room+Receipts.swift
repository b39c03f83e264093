import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// Receipts and read markers.
//
// Down: the author of a message hears who received and read it, at most once a reader and two seconds, the newest message
// standing for the older ones. Up: a read marker that moves becomes read receipts for the messages it passed.

/// What each author was told of each reader.
package final class ReceiptNotices {
    /// Coalescing: at most one line a reader and author in this time.
    package static let interval: Duration = .seconds(2)
    /// Author and reader pairs remembered; past it the table starts anew (a receipt may then be told twice).
    package static let capacity = 20_000

    package struct Key: Hashable {
        package var author: ClientID
        package var reader: PersonID
    }

    struct Mark {
        var msgid: String
        var sequence: Int
    }

    package struct State {
        package var read = -1
        package var delivered = -1
        var toldAt: MonotonicInstant?
        var pendingRead: Mark?
        var pendingDelivered: Mark?
    }

    /// What is known of a pair from before this table did.
    package struct Told: Equatable {
        package var delivered = -1
        package var read = -1
    }

    private var states: [Key: State] = [:]
    /// The pairs of each side, so that ten thousand people who leave at once cost ten thousand steps.
    private var readersOf: [ClientID: Set<PersonID>] = [:]
    private var authorsOf: [PersonID: Set<ClientID>] = [:]
    /// Keys of `states` with something to tell.
    private var pending: Set<Key> = []

    /// Enters a receipt. True when something is to be told.
    ///
    /// - Parameter before: what the author was told of the reader earlier; asked when the pair is new.
    func record(
        _ key: Key, state: ChatReceipt.State, mark: Mark, before: @autoclosure () -> Told? = nil
    ) -> Bool {
        if states.count >= Self.capacity, states[key] == nil {
            states = [:]
            readersOf = [:]
            authorsOf = [:]
            pending = []
        }
        var entry = states[key] ?? before().map { State(read: $0.read, delivered: $0.delivered) } ?? State()
        switch state {
        case .read:
            guard mark.sequence > entry.read, mark.sequence > entry.pendingRead?.sequence ?? -1 else { return false }
            entry.pendingRead = mark
            // Read implies delivered.
            if let delivered = entry.pendingDelivered, delivered.sequence <= mark.sequence {
                entry.pendingDelivered = nil
            }
        case .delivered:
            let known = max(entry.delivered, entry.read, entry.pendingRead?.sequence ?? -1)
            guard mark.sequence > known, mark.sequence > entry.pendingDelivered?.sequence ?? -1 else { return false }
            entry.pendingDelivered = mark
        case .sent: return false
        }
        states[key] = entry
        readersOf[key.author, default: []].insert(key.reader)
        authorsOf[key.reader, default: []].insert(key.author)
        pending.insert(key)
        return true
    }

    /// What may be told to `key` now; nil while the pause after the last line lasts.
    func takeDue(_ key: Key, now: MonotonicInstant) -> (delivered: Mark?, read: Mark?)? {
        guard var entry = states[key], entry.pendingRead != nil || entry.pendingDelivered != nil else { return nil }
        if let told = entry.toldAt, now - told < Self.interval { return nil }
        let due = (entry.pendingDelivered, entry.pendingRead)
        entry.delivered = max(entry.delivered, due.0?.sequence ?? -1, due.1?.sequence ?? -1)
        entry.read = max(entry.read, due.1?.sequence ?? -1)
        entry.pendingDelivered = nil
        entry.pendingRead = nil
        entry.toldAt = now
        states[key] = entry
        pending.remove(key)
        return due
    }

    /// Who got and read what the author said.
    package func readers(of author: ClientID) -> [(reader: PersonID, told: Told)] {
        (readersOf[author] ?? []).compactMap { reader in
            states[Key(author: author, reader: reader)].map { state in
                let read = max(state.read, state.pendingRead?.sequence ?? -1)
                return (
                    reader,
                    Told(delivered: max(state.delivered, state.pendingDelivered?.sequence ?? -1), read: read)
                )
            }
        }
    }

    /// What the author was told of the reader.
    package func told(_ key: Key) -> Told? { states[key].map { Told(delivered: $0.delivered, read: $0.read) } }

    /// Pairs that wait for their pause to end, in a fixed order.
    package var waiting: [Key] {
        pending.sorted { ($0.author.rawValue, $0.reader.rawValue) < ($1.author.rawValue, $1.reader.rawValue) }
    }

    package var isWaiting: Bool { !pending.isEmpty }

    /// Pairs remembered.
    package var count: Int { states.count }

    package func forget(author: ClientID) {
        for reader in readersOf[author] ?? [] { remove(Key(author: author, reader: reader)) }
    }

    package func forget(reader: PersonID) {
        for author in authorsOf[reader] ?? [] { remove(Key(author: author, reader: reader)) }
    }

    private func remove(_ key: Key) {
        states[key] = nil
        pending.remove(key)
        readersOf[key.author]?.remove(key.reader)
        if readersOf[key.author]?.isEmpty == true { readersOf[key.author] = nil }
        authorsOf[key.reader]?.remove(key.author)
        if authorsOf[key.reader]?.isEmpty == true { authorsOf[key.reader] = nil }
    }
}

/// What authors were told of readers, by who they are and not by their connections, so that nothing is told twice after a
/// restart.
package final class ToldReceipts {
    package typealias Told = ReceiptNotices.Told

    private var authors: [ChatID: [Person.RemoteKey: Told]] = [:]
    private var count = 0

    package func told(author: ChatID, reader: Person.RemoteKey) -> Told? { authors[author]?[reader] }

    package func readers(of author: ChatID) -> [Person.RemoteKey: Told] { authors[author] ?? [:] }

    package func forget(author: ChatID) { count -= authors.removeValue(forKey: author)?.count ?? 0 }

    /// - Returns: what is known now; nil when that is no more than before.
    @discardableResult
    package func enter(author: ChatID, reader: Person.RemoteKey, _ told: Told) -> Told? {
        let known = authors[author]?[reader]
        let risen = Told(
            delivered: max(told.delivered, known?.delivered ?? -1), read: max(told.read, known?.read ?? -1))
        guard risen != known else { return nil }
        if known == nil {
            if count >= ReceiptNotices.capacity { (authors, count) = ([:], 0) }
            count += 1
        }
        authors[author, default: [:]][reader] = risen
        return risen
    }
}

extension Room {
    /// One read receipt a message where the wire wants that; more than this many unread ones are not worth telling.
    static let maxReceiptsPerMarker = 50

    // MARK: - Down

    /// Tells the author of each message; of several by one author the newest stands for all.
    func tellAuthors(
        of entries: [RecentMessages.Entry], reader: PersonID, state: ChatReceipt.State, _ context: RoomsContext
    ) {
        var newest: [ChatID: RecentMessages.Entry] = [:]
        for entry in entries {
            guard let puppet = entry.puppet, entry.sequence > newest[puppet]?.sequence ?? -1 else { continue }
            newest[puppet] = entry
        }
        for entry in newest.values.sorted(by: { $0.sequence < $1.sequence }) {
            tellAuthor(of: entry, reader: reader, state: state, context)
        }
    }

    private func tellAuthor(
        of entry: RecentMessages.Entry, reader: PersonID, state: ChatReceipt.State, _ context: RoomsContext
    ) {
        guard let puppet = entry.puppet, let author = locals[puppet: puppet]?.person, author != reader else { return }
        let mark = ReceiptNotices.Mark(msgid: entry.msgid, sequence: entry.sequence)
        // As it was before this: what the first of the author's clients is told is news to the others too.
        let before =
            context.isDurable
            ? readerKey(reader, context).flatMap { toldReceipts.told(author: puppet, reader: $0) } : nil
        for client in clients(of: author, context) {
            let key = ReceiptNotices.Key(author: client, reader: reader)
            guard receiptNotices.record(key, state: state, mark: mark, before: before) else { continue }
            tellDue(key, context)
            armReceipts(context)
        }
    }

    private func tellDue(_ key: ReceiptNotices.Key, _ context: RoomsContext) {
        guard let due = receiptNotices.takeDue(key, now: context.now.monotonic),
            let person = context.identities[key.reader]
        else { return }
        let newest = due.read ?? due.delivered
        frontEnd.tell(
            RoomReading(
                reader: RoomSpeaker(person), delivered: due.delivered?.msgid, read: due.read?.msgid,
                newest: newest.flatMap { recent.entry(msgid: $0.msgid) }), in: self, to: key.author)
        if context.isDurable { keepTold(key, context) }
    }

    /// What outlasts the process of a reader: under which id or name the backend knows them.
    private func readerKey(_ reader: PersonID, _ context: RoomsContext) -> Person.RemoteKey? {
        guard let person = context.identities[reader] else { return nil }
        if case .remote(let key) = person.kind { return key }
        let puppet = context.identities.puppetID(of: person, backend: settings.backend)
        return Person.RemoteKey(backend: settings.backend, id: puppet, name: nil)
    }

    private func keepTold(_ key: ReceiptNotices.Key, _ context: RoomsContext) {
        guard let author = locals[key.author]?.puppet, let reader = readerKey(key.reader, context),
            let told = receiptNotices.told(key), let risen = toldReceipts.enter(author: author, reader: reader, told)
        else { return }
        context.keep(
            .receipt(
                storedKey,
                StoredReceipt(
                    author: author, reader: ChatPerson(id: reader.id, name: reader.name),
                    deliveredSequence: Int64(risen.delivered), readSequence: Int64(risen.read))))
    }

    private func armReceipts(_ context: RoomsContext) {
        guard receiptNotices.isWaiting, context.timers[.receipts(id)] == nil else { return }
        context.timers.set(.receipts(id), at: context.now.monotonic + ReceiptNotices.interval / 4)
    }

    package func receiptTimerFired(_ context: RoomsContext) {
        for key in receiptNotices.waiting { tellDue(key, context) }
        armReceipts(context)
    }

    /// Who got and read what somebody said, as far as that is known, by name.
    package func readers(of member: LocalMember, _ context: RoomsContext) -> [(name: String, told: ReceiptNotices.Told)]
    {
        var known: [String: ReceiptNotices.Told] = [:]
        func enter(_ name: String, _ told: ReceiptNotices.Told) {
            let before = known[name] ?? ReceiptNotices.Told()
            known[name] = ReceiptNotices.Told(
                delivered: max(before.delivered, told.delivered), read: max(before.read, told.read))
        }
        for client in clients(of: member.person, context) {
            for (reader, told) in receiptNotices.readers(of: client) {
                if let person = context.identities[reader] { enter(person.nick, told) }
            }
        }
        for (reader, told) in toldReceipts.readers(of: member.puppet) {
            let person =
                context.identities.known(reader) ?? reader.id.flatMap { locals[puppet: $0]?.person }
            if let nick = person.flatMap({ context.identities[$0]?.nick }) ?? reader.name { enter(nick, told) }
        }
        return known.map { (name: $0.key, told: $0.value) }.sorted { $0.name < $1.name }
    }

    // MARK: - Read markers

    package func marker(of client: ClientID) -> ChatTimestamp? {
        locals[client].flatMap { marker(ofAuthor: $0.puppet)?.at }
    }

    /// By the reader's own id upstream, whether or not they are here.
    package func marker(ofAuthor reader: ChatID) -> ReadMarker? { markers[reader] }

    /// The account chose anew what of its reading is told.
    package func setReceipts(_ policy: ReceiptPolicy?, of client: ClientID) {
        locals[client]?.chose(policy ?? settings.receipts)
    }

    /// The client read up to `at`. Markers only move forward and never into the future; but where a line bears that time,
    /// it was read, and what stands in front of it, though it may not be later than what was read before. True when the
    /// marker moved.
    @discardableResult
    package func moveMarker(of client: ClientID, to at: ChatTimestamp, _ context: RoomsContext) -> Bool {
        guard let member = locals[client] else { return false }
        let end = recent.end(wall: context.now.wall)
        let upTo = min(at, end)
        let old = markers[member.puppet]
        let line = at >= end ? recent.lastSequence : recent.lastSequence(at: at)
        if let old, upTo < old.at, line.map({ $0 <= old.sequence }) ?? true { return false }
        let target = old.map { max($0.at, upTo) } ?? upTo
        let passed = recent.passed(from: old, joinedAfter: member.joinedAfter, upTo: upTo, through: line)
        let newest = passed.reduce(old?.sequence ?? member.joinedAfter) { max($0, $1.sequence) }
        markers.set(ReadMarker(at: target, sequence: newest), of: member.puppet) { locals[puppet: $0] != nil }
        if old.map({ target != $0.at || newest != $0.sequence }) ?? true {
            context.keep(
                .marker(storedKey, StoredMarker(reader: member.puppet, at: target, sequence: Int64(newest))))
        }
        tellReading(passed, by: member, context)
        return old.map { target > $0.at } ?? true
    }

    /// Somebody whose client has no read markers spoke: they read what came before, where the room says so.
    package func spoke(_ client: ClientID, _ context: RoomsContext) {
        guard let member = locals[client], member.receipts == .speaking, !member.hasReadMarker,
            let newest = recent.newest
        else { return }
        moveMarker(of: client, to: newest.at, context)
    }

    private func tellReading(
        _ passed: [RecentMessages.Entry], by member: LocalMember, _ context: RoomsContext
    ) {
        guard member.receipts != .off else { return }
        let unread = passed.filter { $0.puppet != member.puppet && !$0.isNotice }.suffix(Self.maxReceiptsPerMarker)
        guard let person = context.identities[member.person] else { return }
        let reader = upstreamPerson(person, member.puppet)
        tellAuthors(of: Array(unread), reader: member.person, state: .read, context)
        let lane = lane(of: person)
        reportReading(Array(unread), reader: reader, over: lane, context)
        pump(lane, context)
    }
}
