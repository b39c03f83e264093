import BridgeTypes
import ChatModel
import Dialects
import Upstream
import WireBytes

// Persistence of IRC users' messages: write-ahead records, and their recovery.
//
// Recovery by the point at which a process ended:
//
// | the process ended                  | client-made ids           | server-made ids                                     |
// |------------------------------------|---------------------------|-----------------------------------------------------|
// | before the acceptance was on disk  | not accepted              | the same                                            |
// | before it was written              | sent                      | sent                                                |
// | attempt on disk, not written       | (no such records)         | unknown: resolved by history or echo, else its      |
// | written, not confirmed             | sent again, the same id   | author is notified of that; the same                |
// | confirmed by a pong alone          | a history is asked for it | the same                                            |
// | confirmed, that not on disk        | sent again, the same id   | unknown                                             |

extension SendLane {
    /// The kind of proof that a message arrived.
    enum ArrivalProof {
        /// The backend confirmed or showed it.
        case backend
        /// Its connection has read it, proved by a pong.
        case connection
    }

    // MARK: - Persisting

    /// Write-ahead: the attempt is persisted before the frame is written.
    final func recordsAttempts(_ context: RoomsContext) -> Bool { context.isDurable && !mayRepeatMessages }

    final func persistAcceptance(_ entry: OutboxEntry, _ context: RoomsContext) {
        guard let id = entry.message.id else { return }
        context.keep(.accept(stored(entry, id)), about: id)
        context.awaitStore(self.id)
    }

    private func stored(_ entry: OutboxEntry, _ id: ChatID) -> StoredOutboxEntry {
        StoredOutboxEntry(
            id: id, room: link.settings.storedKey, link: account, sender: entry.message.sender,
            sentAs: entry.message.text,
            attachments: entry.message.attachments, replyTo: entry.message.replyTo,
            acceptedAt: entry.message.at ?? ChatTimestamp(milliseconds: 0),
            saidAfter: entry.saidAfter.map { Int64($0) }, author: entry.origin.puppet,
            nick: entry.origin.who.nick, source: entry.origin.who.source, account: entry.origin.who.account,
            client: entry.origin.clientName, text: entry.origin.text,
            clientTags: entry.origin.clientTags.map { StoredTag(name: $0.name, value: $0.value) })
    }

    /// Persists that it may be on the wire from now on.
    final func recordAttempt(_ entry: OutboxEntry, _ context: RoomsContext) {
        keep(entry, entry.isShown ? .delivered : .written, context)
    }

    /// Persists that it was certainly not written.
    final func persistWithdrawals(_ entries: [OutboxEntry], _ context: RoomsContext) {
        // Other pieces of the message may be.
        for entry in entries where entry.part == nil && !entry.isShown {
            guard let id = entry.storedID else { continue }
            context.keep(
                .outboxState(id, .queued, confirmedPieces: entry.confirmedPieces, reason: nil), about: id)
        }
    }

    /// The backend has it, or its connection has read it: then it is retained while a history may be needed. False
    /// while other pieces of the message are unconfirmed.
    final func persistArrival(_ entry: OutboxEntry, by proof: ArrivalProof, _ context: RoomsContext) -> Bool {
        let hasPieces = outbox.hasPieces(of: entry)
        let isKept = proof == .connection && traits.history != .none
        if isKept {
            let until =
                context.now.monotonic + DeliveredMessages.processingTime + link.settings.ping
                + link.settings.pongTimeout
            outbox.keepDelivered(entry, until: until)
        }
        guard !entry.isShown else {
            if !isKept { forget([entry], context) }
            return true
        }
        guard let id = entry.storedID else { return !hasPieces }
        if hasPieces {
            // With one piece, all pieces are looked for.
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

    /// Removes resolved messages from the store.
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

    /// Acceptances are decided, attempts are persisted. Returns refused messages.
    final func storeSettled(refused: Set<StoreTicket>, _ context: RoomsContext) -> [OutboxEntry] {
        outbox.settle(through: context.ledger.settled, refused: refused)
    }

    /// The store had no room for an order. Returns refused messages.
    final func storeOverflowed(_ ticket: StoreTicket, _ context: RoomsContext) -> [OutboxEntry] {
        outbox.overflowed(ticket, now: context.now.monotonic)
    }

    final func awaitStore(_ context: RoomsContext) { if outbox.waitsForStore { context.awaitStore(id) } }

    // MARK: - Restoring

    /// Whether a restored message is in the lane already: it was accepted during the read.
    package final func has(_ left: StoredOutboxEntry) -> Bool {
        outbox.contains(id: left.id) || outbox.failures.contains(id: left.id)
    }

    package final func restore(_ left: [StoredOutboxEntry], _ settings: RoomSettings, _ now: Now) {
        outbox.restore(left, settings, now)
    }

    /// Takes over the outbox of a link that is no longer configured: its failures are reported here, and none of it is
    /// sent.
    final func inherit(_ box: Outbox, why: String, _ context: RoomsContext) {
        var box = box
        outbox.inheritFailures(of: box)
        for entry in box.takeAll() {
            _ = giveUp(entry, why: FailureReason(why, isArrivalOpen: entry.isArrivalOpen), context)
        }
    }
}

extension LinkSettings {
    var storedKey: StoredRoomKey { StoredRoomKey(backend: backend, room: upstreamRoom) }
}

extension RoomSettings {
    package var storedKey: StoredRoomKey { link.storedKey }
}
