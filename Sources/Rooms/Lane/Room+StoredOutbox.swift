import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Upstream
import WireBytes

// Restored messages, and results from the store.

extension Room {
    // MARK: - Persisting

    /// Acceptances are decided, attempts are persisted.
    package func storeSettled(
        _ lane: SendLane, refused: Set<StoreTicket>, reason: String, _ context: RoomsContext
    ) {
        tellNotTaken(lane.storeSettled(refused: refused, context), reason, context)
        pump(lane, context)
        lane.awaitStore(context)
    }

    /// The store had no room for an order.
    package func storeOverflowed(_ lane: SendLane, _ ticket: StoreTicket, reason: String, _ context: RoomsContext) {
        tellNotTaken(lane.storeOverflowed(ticket, context), reason, context)
        arm(lane, context)
        lane.awaitStore(context)
    }

    private func tellNotTaken(_ entries: [OutboxEntry], _ reason: String, _ context: RoomsContext) {
        // Mirrors bring theirs again.
        let entries = entries.filter { !tellMirror($0.origin, context) }
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

    // MARK: - Restoring

    /// Restores accepted messages without a confirmation.
    func restoreOutbox(_ stored: StoredRoom, _ context: RoomsContext) {
        var left: [String: [StoredOutboxEntry]] = [:]
        for entry in stored.outbox.map(disowned) {
            // A message accepted while this was being read is in the lane already.
            guard !lane.has(entry) else { continue }
            left[entry.link, default: []].append(entry)
            if settings.identity == .puppet { remember(author: entry.sender.id ?? entry.author) }
        }
        if let ours = left.removeValue(forKey: "") { lane.restore(ours, settings, context.now) }
        for (account, entries) in left {
            own.restore(entries, of: account, settings, context.now)
        }
        arm(lane, context)
    }

    /// Reconciles the outbox with messages that are logged without being shown: an earlier process, or this one over an
    /// earlier link, may have written them.
    func settleOutbox(with messages: some Sequence<ChatMessage>, _ context: RoomsContext) {
        guard !lane.outbox.isEmpty || !lane.outbox.failures.isEmpty || own.hasResting || !relayedRows.isEmpty
        else {
            return
        }
        for message in messages.lazy.map(self.markedAsOurs) {
            guard let id = message.id else { continue }
            let isServerID = traits.messageIDOrigin == .server
            guard !isServerID || !seenIDs.contains(duplicateKey(id, message.senderID)) else { continue }
            if takeRelayedRow(message, context) { continue }
            if let entry = takeConfirmed(message, isHistory: true) {
                learnAccount(from: message, context)
                _ = seenIDs.insert(duplicateKey(id, message.senderID))
                confirmed(entry, upstreamID: id, at: message.at, lane, context)
            } else if let entry = takeLate(message, id) {
                _ = seenIDs.insert(duplicateKey(id, message.senderID))
                tellLateArrival(entry, context)
                confirmed(entry, upstreamID: id, at: message.at, lane, context)
            }
        }
    }

    /// Fails the messages of an account whose own link is no longer configured.
    func giveUpResting(of account: String, _ context: RoomsContext) {
        guard let box = own.takeResting(of: account) else { return }
        lane.inherit(box, why: "your own login at \(settings.url.host) is not set up any more", context)
    }
}
