import BridgeTypes
import ChatModel
import Dialects
import Upstream
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

extension SendLane {
    /// By what it is known that a message arrived.
    enum ArrivalProof {
        /// The backend said so, or shows it.
        case backend
        /// Its connection has read it, as a pong says.
        case connection
    }

    // MARK: - To the store

    /// It must be on disk that a message may be on the wire before it is.
    final func keepsIntentions(_ context: RoomsContext) -> Bool { context.isDurable && !mayRepeatMessages }

    final func keepAcceptance(_ entry: OutboxEntry, _ context: RoomsContext) {
        guard let id = entry.message.id else { return }
        context.keep(.accept(stored(entry, id)), about: id)
        context.awaitStore(self.id)
    }

    private func stored(_ entry: OutboxEntry, _ id: ChatID) -> StoredOutboxEntry {
        StoredOutboxEntry(
            id: id, room: settings.storedKey, link: account, sender: entry.message.sender, sentAs: entry.message.text,
            attachments: entry.message.attachments, replyTo: entry.message.replyTo,
            acceptedAt: entry.message.at ?? ChatTimestamp(milliseconds: 0),
            saidAfter: entry.saidAfter.map { Int64($0) }, author: entry.origin.puppet,
            nick: entry.origin.nick, source: entry.origin.source, account: entry.origin.account,
            client: entry.origin.clientName, text: entry.origin.text,
            clientTags: entry.origin.clientTags.map { StoredTag(name: $0.name, value: $0.value) })
    }

    /// It may be on the wire from now on.
    final func keepIntention(_ entry: OutboxEntry, _ context: RoomsContext) {
        keep(entry, entry.isShown ? .delivered : .written, context)
    }

    /// It certainly never went on the wire.
    final func keepWithdrawals(_ entries: [OutboxEntry], _ context: RoomsContext) {
        // Other pieces of one message may be there.
        for entry in entries where entry.part == nil && !entry.isShown {
            guard let id = entry.storedID else { continue }
            context.keep(
                .outboxState(id, .queued, confirmedPieces: entry.confirmedPieces, reason: nil), about: id)
        }
    }

    /// The backend has it, or its connection has read it: then it is kept for the time in which a history may have to tell.
    /// False while other pieces of the message are not confirmed.
    final func keepArrival(_ entry: OutboxEntry, by proof: ArrivalProof, _ context: RoomsContext) -> Bool {
        let hasPieces = outbox.hasPieces(of: entry)
        let isKept = proof == .connection && traits.history != .none
        if isKept {
            let until = context.now.monotonic + DeliveredMessages.processingTime + settings.ping + settings.pongTimeout
            outbox.keepDelivered(entry, until: until)
        }
        guard !entry.isShown else {
            if !isKept { forget([entry], context) }
            return true
        }
        guard let id = entry.storedID else { return !hasPieces }
        if hasPieces {
            // All pieces are looked for where one of them is.
            if context.isDurable, !isKept { keep(entry, mayRepeatMessages ? .queued : .written, context) }
            return false
        }
        let isLookedFor = outbox.markDeliveredShown(storedID: id)
        if context.isDurable {
            context.keep(
                isLookedFor ? .outboxState(id, .delivered, confirmedPieces: 0, reason: nil) : .leaveOutbox(id),
                about: id)
        }
        return true
    }

    /// Nothing more is to be learned about messages that IRC has seen.
    final func forget(_ entries: [OutboxEntry], _ context: RoomsContext) {
        for entry in entries {
            guard context.isDurable, let id = entry.storedID else { continue }
            guard !outbox.hasPieces(of: entry), !outbox.delivered.contains(storedID: id) else { continue }
            context.keep(.leaveOutbox(id), about: id)
        }
    }

    private func keep(_ entry: OutboxEntry, _ state: StoredOutboxEntry.State, _ context: RoomsContext) {
        guard let id = entry.storedID else { return }
        context.keep(
            .outboxState(id, state, confirmedPieces: outbox.arrivedPieces(of: entry), reason: nil), about: id)
    }

    /// Acceptances are decided, intentions are on disk. Returns what was not taken.
    final func storeSettled(refused: Set<StoreTicket>, _ context: RoomsContext) -> [OutboxEntry] {
        outbox.settle(through: context.ledger.settled, refused: refused)
    }

    /// An order found no room. Returns what was not taken.
    final func storeOverflowed(_ ticket: StoreTicket, _ context: RoomsContext) -> [OutboxEntry] {
        outbox.overflowed(ticket, now: context.now.monotonic)
    }

    final func awaitStore(_ context: RoomsContext) { if outbox.waitsForStore { context.awaitStore(id) } }

    // MARK: - From the store

    /// Whether a message that an earlier process left is here already: it was said while that was being read.
    package final func has(_ left: StoredOutboxEntry) -> Bool {
        outbox.contains(id: left.id) || outbox.failures.contains(id: left.id)
    }

    package final func restore(_ left: [StoredOutboxEntry], _ now: Now) { outbox.restore(left, settings, now) }

    /// Takes over what waited for a link that is not set up any more: its failures are told here, and nothing of it goes.
    final func inherit(_ box: Outbox, why: String, _ context: RoomsContext) {
        var box = box
        outbox.inheritFailures(of: box)
        for entry in box.takeAll() { _ = giveUp(entry, why: why, context) }
    }
}

extension RoomSettings {
    package var storedKey: StoredRoomKey { StoredRoomKey(backend: link.backend, room: link.upstreamRoom) }
}
