import ChatModel
import Dialects
import HTTPProtocol
import WireBytes

// Messages of IRC users that outlast the process: what the store is told of them, and what it gives back.
//
// Where a process may end, and what the next one does with the message:
//
// | the process ended                  | the wire's ids are ours   | the ids are the server's                            |
// |------------------------------------|---------------------------|-----------------------------------------------------|
// | before the acceptance was on disk  | it was not accepted       | the same                                            |
// | before it was written              | goes                      | goes                                                |
// | intention on disk, not written     | (there are none)          | unsettled: history or echo tell, else the author is |
// | written, not confirmed             | goes again, the same id   | told that nobody knows; the same                    |
// | confirmed by a pong alone          | a history is asked for it | the same                                            |
// | confirmed, that not on disk        | goes again, the same id   | unsettled                                           |

extension Room {
    /// It must be on disk that a message may be on the wire before it is.
    func keepsIntentions(_ context: BridgeContext) -> Bool { context.isDurable && !mayRepeatMessages }

    // MARK: - To the store

    func accept(_ entry: OutboxEntry, over lane: SendLane, _ context: BridgeContext) {
        guard let id = entry.message.id else { return }
        context.keep(.accept(stored(entry, id, link: lane.account)), about: id)
        context.awaitStore(lane.id)
    }

    private func stored(_ entry: OutboxEntry, _ id: ChatID, link: String) -> StoredOutboxEntry {
        StoredOutboxEntry(
            id: id, room: storedKey, link: link, sender: entry.message.sender, sentAs: entry.message.text,
            attachments: entry.message.attachments, replyTo: entry.message.replyTo,
            acceptedAt: entry.message.at ?? ChatTimestamp(milliseconds: 0),
            saidAfter: entry.saidAfter.map { Int64($0) }, author: entry.origin.puppet,
            nick: entry.origin.nick, source: entry.origin.source, account: entry.origin.account,
            client: entry.origin.clientName, text: entry.origin.text,
            clientTags: entry.origin.clientTags.map { StoredTag(name: $0.name, value: $0.value) })
    }

    /// It may be on the wire from now on.
    func keepIntention(_ entry: OutboxEntry, _ box: Outbox, _ context: BridgeContext) {
        keep(entry, entry.isShown ? .delivered : .written, box, reason: nil, context)
    }

    /// It certainly never went on the wire.
    func keepWithdrawals(_ entries: [OutboxEntry], _ context: BridgeContext) {
        // Other pieces of one message may be there.
        for entry in entries where entry.part == nil && !entry.isShown {
            guard let id = entry.storedID else { continue }
            context.keep(
                .outboxState(id, .queued, confirmedPieces: entry.confirmedPieces, reason: nil), about: id)
        }
    }

    /// The backend has it, or its connection has read it: then it is kept for the time in which a history may have to tell.
    /// False while other pieces of the message are not confirmed.
    func keepArrival(
        _ entry: OutboxEntry, by proof: ArrivalProof, _ lane: SendLane, _ context: BridgeContext
    ) -> Bool {
        let hasPieces = lane.outbox.hasPieces(of: entry)
        let isKept = proof == .connection && traits.history != .none
        if isKept {
            let until = context.now.monotonic + DeliveredMessages.processingTime + settings.ping + settings.pongTimeout
            lane.outbox.delivered.append(entry, until: until)
        }
        guard !entry.isShown else {
            if !isKept { leaveOutbox([entry], lane, context) }
            return true
        }
        guard let id = entry.storedID else { return !hasPieces }
        if hasPieces {
            // All pieces are looked for where one of them is.
            if context.isDurable, !isKept {
                keep(entry, mayRepeatMessages ? .queued : .written, lane.outbox, reason: nil, context)
            }
            return false
        }
        lane.outbox.delivered.markShown(storedID: id)
        let isLookedFor = lane.outbox.delivered.contains(storedID: id)
        if context.isDurable {
            context.keep(
                isLookedFor ? .outboxState(id, .delivered, confirmedPieces: 0, reason: nil) : .leaveOutbox(id),
                about: id)
        }
        return true
    }

    /// Nothing more is to be learned about messages that IRC has seen.
    func leaveOutbox(_ entries: [OutboxEntry], _ lane: SendLane, _ context: BridgeContext) {
        for entry in entries {
            guard context.isDurable, let id = entry.storedID else { continue }
            guard !lane.outbox.hasPieces(of: entry), !lane.outbox.delivered.contains(storedID: id) else { continue }
            context.keep(.leaveOutbox(id), about: id)
        }
    }

    private func keep(
        _ entry: OutboxEntry, _ state: StoredOutboxEntry.State, _ box: Outbox, reason: String?,
        _ context: BridgeContext
    ) {
        guard let id = entry.storedID else { return }
        context.keep(
            .outboxState(id, state, confirmedPieces: box.arrivedPieces(of: entry), reason: reason), about: id)
    }

    // MARK: - From the store

    /// Acceptances are decided, intentions are on disk.
    func storeSettled(
        _ lane: SendLane, refused: Set<StoreTicket>, reason: String, _ context: BridgeContext
    ) {
        tellNotTaken(lane.outbox.settle(through: context.ledger.settled, refused: refused), reason, context)
        pump(lane, context)
        if lane.outbox.waitsForStore { context.awaitStore(lane.id) }
    }

    /// An order found no room.
    func storeOverflowed(_ lane: SendLane, _ ticket: StoreTicket, reason: String, _ context: BridgeContext) {
        tellNotTaken(lane.outbox.overflowed(ticket, now: context.now.monotonic), reason, context)
        arm(lane, context)
        if lane.outbox.waitsForStore { context.awaitStore(lane.id) }
    }

    private func tellNotTaken(_ entries: [OutboxEntry], _ reason: String, _ context: BridgeContext) {
        guard !entries.isEmpty else { return }
        context.note(
            .warn, "message-refused", "messages from IRC were not taken: \(reason)",
            ["room": settings.name, "messages": String(entries.count)])
        for entry in entries {
            guard let client = authorClient(entry.origin, context) else { continue }
            frontEnd.tell(
                .notStored(entry.origin.text, why: "Not taken, \(reason)"), in: self, to: client,
                label: entry.origin.label)
        }
    }

    // MARK: - After a restart

    /// What was accepted and is not known to have arrived.
    func restoreOutbox(_ stored: StoredRoom, _ context: BridgeContext) {
        var left: [String: [StoredOutboxEntry]] = [:]
        for entry in stored.outbox.map(disowned) {
            // What was said while this was being read is here already.
            guard !lane.outbox.contains(id: entry.id), !lane.outbox.failures.contains(id: entry.id) else { continue }
            left[entry.link, default: []].append(entry)
            if settings.identity == .puppet { remember(author: entry.sender.id ?? entry.author) }
        }
        if let ours = left.removeValue(forKey: "") { restore(ours, into: &lane.outbox, context) }
        for (account, entries) in left {
            var box = restingOutboxes[account] ?? Outbox(traits)
            restore(entries, into: &box, context)
            restingOutboxes[account] = box
        }
        arm(lane, context)
    }

    private func restore(_ stored: [StoredOutboxEntry], into box: inout Outbox, _ context: BridgeContext) {
        var newest: MonotonicInstant?
        var entries: [OutboxEntry] = []
        for left in stored {
            let acceptedAt = max(acceptance(of: left, context), newest ?? MonotonicInstant(nanoseconds: .min))
            newest = acceptedAt
            let entry = restored(left, acceptedAt)
            switch left.state {
            case .queued, .written, .delivered: entries.append(entry)
            case .failed: _ = box.failures.remember(entry, reason: left.reason ?? "", isTold: false)
            case .told: _ = box.failures.remember(entry, reason: left.reason ?? "", isTold: true)
            }
        }
        box.restore(entries)
    }

    /// When it was accepted, by a clock that began anew. Whatever the wall clock did meanwhile, the message is not from the
    /// future, and not older than it may get.
    private func acceptance(of left: StoredOutboxEntry, _ context: BridgeContext) -> MonotonicInstant {
        let (age, isAbsurd) = context.now.wall.milliseconds.subtractingReportingOverflow(left.acceptedAt.milliseconds)
        let most = settings.queueMaxAge.wholeNanoseconds / 1_000_000
        return context.now.monotonic + .milliseconds(-min(max(isAbsurd ? most : age, 0), most + 1))
    }

    private func restored(_ left: StoredOutboxEntry, _ acceptedAt: MonotonicInstant) -> OutboxEntry {
        var entry = OutboxEntry(
            message: ChatMessage(
                id: left.id, room: settings.upstreamRoom, sender: left.sender, text: left.sentAs, at: left.acceptedAt,
                attachments: left.attachments, replyTo: left.replyTo),
            origin: OutboxEntry.Origin(
                puppet: left.author, source: left.source, nick: left.nick, account: left.account, text: left.text,
                clientTags: left.clientTags.map { ($0.name, $0.value) }, clientName: left.client),
            state: left.state == .delivered || left.state == .written && !mayRepeatMessages ? .unsettled : .queued,
            acceptedAt: acceptedAt,
            // It has waited for longer than anybody needs to be told.
            isWaitAnnounced: true, confirmedPieces: left.confirmedPieces, isRestored: true,
            // Where the ids are ours, it is not kept what was written.
            mayHaveArrived: mayRepeatMessages, isShown: left.state == .delivered)
        entry.saidAfter = left.saidAfter.map { Int(clamping: $0) }
        entry.line = left.clientTags.first { $0.name == RelayedName.tag }?.value.map { .relay($0) }
        return entry
    }

    /// The link is usable for the first time since the start: now it is known how long a frame can be, and pieces that went
    /// up before are recognised.
    func cutRestored(_ lane: SendLane, _ context: BridgeContext) {
        for entry in lane.outbox.takeUncut() where entry.part == nil {
            guard let id = entry.message.id,
                case .unsupported(.tooLong) = settings.dialect.encode(
                    .message(entry.message), context: lane.dialectContext),
                let pieces = pieces(of: entry)
            else { continue }
            lane.outbox.split(id: id, pieces)
        }
    }

    /// A message that nobody is shown, because it was said before, may be one that an earlier process wrote, or this one
    /// over a link before the last.
    func settleOutbox(with messages: some Sequence<ChatMessage>, _ context: BridgeContext) {
        guard !lane.outbox.isEmpty || !lane.outbox.failures.isEmpty || !restingOutboxes.isEmpty || !ownRows.isEmpty
        else {
            return
        }
        for var message in messages {
            if settings.identity == .single, lane.dialectContext.isSelf(message.sender) { message.isSelf = true }
            guard let id = message.id else { continue }
            let isServerID = traits.messageIDOrigin == .server
            guard !isServerID || !duplicates.contains(duplicateKey(id, message.sender.id)) else { continue }
            if takeOwnRow(message, context) { continue }
            if let entry = takeConfirmed(message, isHistory: true) {
                learnAccount(from: message, context)
                _ = duplicates.insert(duplicateKey(id, message.sender.id))
                confirmed(entry, upstreamID: id, at: message.at, lane, context)
            } else if let entry = takeLate(message, id) {
                _ = duplicates.insert(duplicateKey(id, message.sender.id))
                tellLateArrival(entry, context)
                confirmed(entry, upstreamID: id, at: message.at, lane, context)
            }
        }
    }

    /// The message waits for an own link that is not open, and has arrived already.
    func takeResting(_ message: ChatMessage) -> OutboxEntry? {
        guard !restingOutboxes.isEmpty else { return nil }
        let names = [message.ref.map { ChatID($0) }, traits.messageIDOrigin == .client ? message.id : nil]
        for account in restingOutboxes.keys.sorted() {
            for case let id? in names {
                if let entry = restingOutboxes[account]?.confirm(id: id, sender: nil) { return entry }
            }
        }
        return nil
    }

    /// The outbox that an own link begins with.
    func takeRestingOutbox(of account: String) -> Outbox {
        restingOutboxes.removeValue(forKey: account) ?? Outbox(traits)
    }

    /// The account had a link of its own, by an earlier configuration: what waits for it cannot go.
    func giveUpResting(of account: String, _ context: BridgeContext) {
        guard var box = restingOutboxes.removeValue(forKey: account) else { return }
        for item in box.failures.takeAll() where !item.isTold {
            _ = lane.outbox.failures.remember(item.entry, reason: item.reason, isTold: false)
        }
        for entry in box.takeAll() {
            recordFailure(entry, why: "your own login at \(settings.url.host) is not set up any more", lane, context)
        }
    }
}
