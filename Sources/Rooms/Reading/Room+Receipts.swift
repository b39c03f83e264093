import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// Receipts and read markers.
//
// Down: the author of a message is notified of delivery and reading, at most once a reader and two seconds, the newest
// message standing for the older ones. Up: a read marker that moves becomes read receipts for the messages it passed.

extension Room {
    /// Receipts per moved marker, where the wire has one for each message; older unread ones are omitted.
    static let maxReceiptsPerMarker = 50

    // MARK: - Down

    /// Notifies the author of each message; of several by one author the newest stands for all.
    func tellAuthors(
        of entries: [RecentLog.Entry], reader: PersonID, state: ChatReceipt.State, _ context: RoomsContext
    ) {
        var newest: [ChatID: RecentLog.Entry] = [:]
        for entry in entries {
            guard let puppet = entry.puppet, entry.sequence > newest[puppet]?.sequence ?? -1 else { continue }
            newest[puppet] = entry
        }
        for entry in newest.values.sorted(by: { $0.sequence < $1.sequence }) {
            tellAuthor(of: entry, reader: reader, state: state, context)
        }
    }

    private func tellAuthor(
        of entry: RecentLog.Entry, reader: PersonID, state: ChatReceipt.State, _ context: RoomsContext
    ) {
        guard let puppet = entry.puppet, let author = locals[puppet: puppet]?.person, author != reader else { return }
        let mark = ReceiptNotices.Mark(msgid: entry.msgid, sequence: entry.sequence)
        // As it was before this: each of the author's clients gets the same report.
        let before =
            context.isDurable
            ? readerKey(reader, context).flatMap { reportedReceipts.told(author: puppet, reader: $0) } : nil
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
        if context.isDurable { persistReported(key, context) }
    }

    /// The persistent identity of a reader: their id or name on the backend.
    private func readerKey(_ reader: PersonID, _ context: RoomsContext) -> Person.RemoteKey? {
        guard let person = context.identities[reader] else { return nil }
        if case .remote(let key) = person.kind { return key }
        let puppet = context.identities.puppetID(of: person, backend: settings.backend)
        return Person.RemoteKey(backend: settings.backend, id: puppet, name: nil)
    }

    private func persistReported(_ key: ReceiptNotices.Key, _ context: RoomsContext) {
        guard let author = locals[key.author]?.puppet, let reader = readerKey(key.reader, context),
            let told = receiptNotices.told(key),
            let risen = reportedReceipts.enter(author: author, reader: reader, told)
        else { return }
        context.keep(
            .receipt(
                storedKey,
                StoredReceipt(
                    author: author, reader: ChatPerson(id: reader.id, name: reader.name),
                    deliveredSequence: Int64(risen.delivered), readSequence: Int64(risen.read))))
    }

    private func armReceipts(_ context: RoomsContext) {
        guard receiptNotices.isWaiting, context.due(.receipts(id)) == nil else { return }
        context.set(.receipts(id), at: context.now.monotonic + ReceiptNotices.interval / 4)
    }

    package func receiptTimerFired(_ context: RoomsContext) {
        for key in receiptNotices.waiting { tellDue(key, context) }
        armReceipts(context)
    }

    /// The readers of a user's messages, as far as known, by name.
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
        for (reader, told) in reportedReceipts.readers(of: member.puppet) {
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

    /// By the reader's own id upstream, present or not.
    package func marker(ofAuthor reader: ChatID) -> ReadMarker? { markers[reader] }

    /// Sets the account's new choice of receipts.
    package func setReceipts(_ policy: ReceiptPolicy?, of client: ClientID) {
        locals[client]?.chose(policy ?? settings.receipts)
    }

    /// Moves the client's marker to `at`. Markers only move forward and never into the future; but where a line bears
    /// that time, it counts as read with all lines in front of it, though its time may precede the marker's. True when
    /// the marker moved.
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

    /// A message from a client without read markers: it implies reading the earlier ones, where the room is set so.
    package func spoke(_ client: ClientID, _ context: RoomsContext) {
        guard let member = locals[client], member.receipts == .speaking, !member.hasReadMarker,
            let newest = recent.newest
        else { return }
        moveMarker(of: client, to: newest.at, context)
    }

    private func tellReading(
        _ passed: [RecentLog.Entry], by member: LocalMember, _ context: RoomsContext
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
