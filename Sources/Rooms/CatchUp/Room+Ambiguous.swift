import BridgeTypes
import ChatModel
import Dialects
import WireBytes

// Waiting for the answer that resolves an ambiguous message. The table is at the head of AmbiguousMessages.swift.

extension Room {

    /// Whether an event waits behind an ambiguous row.
    func waitsForDecision(_ event: ChatEvent, _ context: RoomsContext) -> Bool {
        guard !ambiguous.isEmpty, !ambiguous.isReleasing else { return false }
        switch event {
        case .message, .edit, .delete, .reaction, .join, .leave, .presence, .system: break
        case .receipt(let receipt): if receipt.state == .sent || receipt.ref != nil { return false }
        case .typing, .topic, .account, .ready, .auth, .error, .ping, .pong: return false
        case .history:
            decideAll(context)
            return false
        }
        hold(event, context)
        return true
    }

    package func hold(_ event: ChatEvent, _ context: RoomsContext) {
        ambiguous.append(event, now: context.now.monotonic)
        if ambiguous.items.count > AmbiguousMessages.capacity { releaseFirst(context) }
        releaseDecided(context)
    }

    /// Shows an answered message: now, or in its place.
    func arrived(
        _ entry: OutboxEntry, upstreamID: ChatID?, at: ChatTimestamp?, _ lane: SendLane, _ context: RoomsContext
    ) {
        // Shown already as another's, when its own event came long before and was not recognised.
        if let upstreamID, !seenIDs.insert(duplicateKey(upstreamID, lane.sender(of: entry).id)) {
            _ = lane.persistArrival(entry, by: .backend, context)
            return arm(lane, context)
        }
        // Of a message in pieces the last one has the place.
        guard ambiguous.isEmpty || lane.outbox.hasPieces(of: entry) else {
            ambiguous.arrived(entry, upstreamID: upstreamID, at: at, lane)
            return releaseDecided(context)
        }
        confirmed(entry, upstreamID: upstreamID, at: at, lane, context)
    }

    /// Shows resolved rows, after an answer, a refusal or the time-out.
    package func releaseDecided(_ context: RoomsContext) {
        guard !ambiguous.isReleasing else { return }
        let now = context.now.monotonic
        while let first = ambiguous.items.first {
            if case .event(.message(let message), let arrivedAt) = first, isAmbiguous(message),
                now < arrivedAt + AmbiguousMessages.wait
            {
                return context.set(.ambiguousMessages(id), at: arrivedAt + AmbiguousMessages.wait)
            }
            releaseFirst(context)
        }
        context.cancel(.ambiguousMessages(id))
    }

    private func releaseFirst(_ context: RoomsContext) {
        guard !ambiguous.isReleasing, let first = ambiguous.removeFirst() else { return }
        ambiguous.releasing {
            switch first {
            case .event(let event, _): chatReceived(event, context)
            case .arrival(let entry, let upstreamID, let at, let lane):
                confirmed(entry, upstreamID: upstreamID, at: at, lane, context)
            }
        }
    }

    /// Releases everything: the link is lost, or a history arrives.
    func decideAll(_ context: RoomsContext) {
        while !ambiguous.isEmpty, !ambiguous.isReleasing { releaseFirst(context) }
        context.cancel(.ambiguousMessages(id))
    }
}
