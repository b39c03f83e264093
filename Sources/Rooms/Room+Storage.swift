import BridgeTypes
import ChatModel
import Identities
import Upstream

// What of a room outlasts the process.

extension Room {
    /// Takes up where an earlier process ended. Before the link is opened and before anybody is in the room.
    package func restore(_ stored: StoredRoom, _ context: RoomsContext) {
        restoreOrder(stored, context)
        restoreOutbox(stored, context)
        restoreReading(stored, context)
    }

    /// What is kept of the room is being read; the link waits for it.
    package func beginLoading() { life.loads() }

    /// What is kept of a room that was opened later is there (nil: it cannot be read); people may have come and spoken
    /// meanwhile.
    package func loaded(_ stored: StoredRoom?, _ context: RoomsContext) {
        if let stored { restore(stored, context) } else { goOnWithoutThePast(context) }
        life.loaded()
        keepAwaiting(context)
        for member in locals.values { member.joined(after: recent.newest?.sequence ?? -1) }
        if locals.isEmpty { startForWaiting(context) } else { occupied(context) }
        arm(lane, context)
    }

    // MARK: - An account is made anew

    /// Who was `author` is somebody else now: what they said is nobody's.
    package func forget(author: ChatID, as nobody: ChatID, _ context: RoomsContext) {
        markers.forget(author)
        recent.disown(author, as: nobody)
        toldReceipts.forget(author: author)
        // The disk may have been read before the store hears of this.
        life.disowns(author, as: nobody)
        for item in lane.disown(author, as: nobody) + own.disown(author, as: nobody) {
            guard let id = item.entry.storedID else { continue }
            context.keep(.leaveOutbox(id), about: id)
        }
    }

    /// A message that an earlier process accepted, whoever's it is now.
    func disowned(_ left: StoredOutboxEntry) -> StoredOutboxEntry {
        guard let nobody = life.replacement(of: left.author) else { return left }
        var left = left
        left.author = nobody
        left.client = nil
        if left.state == .failed { left.state = .told }
        return left
    }
}
