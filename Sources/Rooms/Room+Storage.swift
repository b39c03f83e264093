import BridgeTypes
import ChatModel
import Identities
import Upstream

// Persistent state of a room.

extension Room {
    private func restore(_ stored: StoredRoom, _ context: RoomsContext) {
        var stored = stored
        for person in life.erased {
            for index in stored.messages.indices where person.wrote(stored.messages[index], in: storedKey) {
                stored.messages[index].erase()
            }
        }
        catchUp.historyComesUnasked(stored.isHistoryUnasked)
        restoreOrder(stored, context)
        restoreOutbox(stored, context)
        restoreReading(stored, context)
    }

    /// The stored room is being read; the link waits for it.
    package func beginLoading() { life.loads() }

    /// The stored room has been read (nil: unreadable); users may have joined and spoken meanwhile.
    package func loaded(_ stored: StoredRoom?, _ context: RoomsContext) {
        if let stored { restore(stored, context) } else { continueWithoutStoredRoom(context) }
        life.loaded()
        persistAwaiting(context)
        for member in locals.values { member.joined(after: recent.newest?.sequence ?? -1) }
        if !locals.isEmpty { occupied(context) }
        startForWaiting(context)
        arm(lane, context)
    }

    // MARK: - Account reset

    /// Reassigns the messages of `author`, a purged account, to the placeholder `nobody`.
    package func forget(author: ChatID, as nobody: ChatID, _ context: RoomsContext) {
        markers.forget(author)
        recent.disown(author, as: nobody)
        reportedReceipts.forget(author: author)
        // The disk may have been read before the store applies this.
        life.disowns(author, as: nobody)
        for item in lane.disown(author, as: nobody) + own.disown(author, as: nobody) {
            guard let id = item.entry.storedID else { continue }
            context.keep(.leaveOutbox(id), about: id)
        }
    }

    // MARK: - Erasure

    /// Erases what is in memory of a person; the store does the same in the file. Messages in the outbox are sent, and
    /// erased then (``confirmed(_:by:upstreamID:at:_:_:)``).
    package func erase(_ person: StoredPerson, _ context: RoomsContext) -> StoredErasure {
        let redacted = recent.erase(person, on: settings.backend)
        if !redacted.isEmpty { show(.erased(msgids: redacted)) }
        life.erases(person)
        // Pages of the backend's history.
        older.drop()
        if case .account(_, let ids) = person {
            for author in ids.sorted(by: { $0.canonical < $1.canonical }) {
                forget(author: author, as: .erased, context)
            }
            for item in lane.eraseFailed() + own.eraseFailed() {
                guard let id = item.entry.storedID else { continue }
                context.keep(.leaveOutbox(id), about: id)
            }
        }
        if case .upstream(backend: settings.backend, let reader) = person { reportedReceipts.forget(reader: reader) }
        return archive.erase(person, in: storedKey)
    }

    /// A restored message, reassigned if its author's account was purged.
    func disowned(_ left: StoredOutboxEntry) -> StoredOutboxEntry {
        guard let nobody = life.replacement(of: left.author) else { return left }
        var left = left
        left.author = nobody
        left.client = nil
        if left.state == .failed { left.state = .told }
        return left
    }
}
