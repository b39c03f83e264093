import BridgeTypes
import ChatModel
import Dialects
import WireBytes

// Whose a message is, while the backend has not said what became of ours. The table is at the head of UndecidedRows.swift.

extension Room {

    /// Whether an event waits behind a row that is undecided.
    func waitsForDecision(_ event: ChatEvent, _ context: RoomsContext) -> Bool {
        guard !undecided.isEmpty, !undecided.isReleasing else { return false }
        switch event {
        case .message, .edit, .delete, .reaction, .join, .leave, .presence, .system: break
        case .receipt(let receipt): if receipt.state == .sent || receipt.ref != nil { return false }
        case .typing, .ready, .auth, .error, .ping, .pong: return false
        case .history:
            decideAll(context)
            return false
        }
        hold(event, context)
        return true
    }

    package func hold(_ event: ChatEvent, _ context: RoomsContext) {
        undecided.append(event, now: context.now.monotonic)
        if undecided.items.count > UndecidedRows.capacity { releaseFirst(context) }
        releaseDecided(context)
    }

    /// Shows a message of ours that was answered: now, or in its place.
    func arrived(
        _ entry: OutboxEntry, upstreamID: ChatID?, at: ChatTimestamp?, _ lane: SendLane, _ context: RoomsContext
    ) {
        guard undecided.isEmpty else {
            undecided.arrived(entry, upstreamID: upstreamID, at: at, lane)
            return releaseDecided(context)
        }
        show(entry, upstreamID: upstreamID, at: at, lane, context)
    }

    private func show(
        _ entry: OutboxEntry, upstreamID: ChatID?, at: ChatTimestamp?, _ lane: SendLane, _ context: RoomsContext
    ) {
        let key = upstreamID.map { duplicateKey($0, lane.sender(of: entry).id) }
        // Shown already as somebody's, when its own event came long before and did not look like ours.
        if let key, !duplicates.insert(key) {
            _ = lane.keepArrival(entry, by: .backend, context)
            return arm(lane, context)
        }
        confirmed(entry, upstreamID: upstreamID, at: at, lane, context)
    }

    /// Something was answered or refused, or time has passed: shows what is decided.
    package func releaseDecided(_ context: RoomsContext) {
        guard !undecided.isReleasing else { return }
        let now = context.now.monotonic
        while let first = undecided.items.first {
            if case .event(.message(let message), let arrivedAt) = first, isUndecided(message),
                now < arrivedAt + UndecidedRows.wait
            {
                return context.timers.set(.undecided(id), at: arrivedAt + UndecidedRows.wait)
            }
            releaseFirst(context)
        }
        context.timers.cancel(.undecided(id))
    }

    private func releaseFirst(_ context: RoomsContext) {
        guard !undecided.isReleasing, let first = undecided.removeFirst() else { return }
        undecided.releasing {
            switch first {
            case .event(let event, _): chatReceived(event, context)
            case .arrival(let entry, let upstreamID, let at, let lane):
                show(entry, upstreamID: upstreamID, at: at, lane, context)
            }
        }
    }

    /// The link is gone, or the past comes: nothing waits any more.
    func decideAll(_ context: RoomsContext) {
        while !undecided.isEmpty, !undecided.isReleasing { releaseFirst(context) }
        context.timers.cancel(.undecided(id))
    }
}
