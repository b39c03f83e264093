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
    func setReceipts(_ policy: ReceiptPolicy?, of client: ClientID) {
        locals[client]?.chose(policy ?? settings.receipts)
    }

    /// The client read up to `at`. Markers only move forward and never into the future; but where a line bears that time,
    /// it was read, and what stands in front of it, though it may not be later than what was read before. True when the
    /// marker moved.
    @discardableResult
    func moveMarker(of client: ClientID, to at: ChatTimestamp, _ context: RoomsContext) -> Bool {
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
