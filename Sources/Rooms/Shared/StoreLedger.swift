import ChatModel

/// In-flight writes to the store, by ticket.
package final class StoreLedger {
    /// The changes of the present verb; persisted together, under ``next``.
    package private(set) var changes: [StoreOperation] = []
    /// The ticket of the next order.
    package private(set) var next = StoreTicket(rawValue: 1)
    /// Orders up to here are on disk, or were refused.
    package private(set) var settled = StoreTicket(rawValue: 0)
    /// Acceptances up to here were persisted or refused, whether or not the rest of their orders is.
    private var decided = StoreTicket(rawValue: 0)
    /// Orders after ``settled`` that were lost because the store was full, oldest first.
    private var lost: [ClosedRange<StoreTicket>] = []
    package private(set) var condition = StoreCondition.sound
    /// Lost outcomes of messages, by message: to be persisted again.
    private var owed: [ChatID: StoreOperation] = [:]
    private var lastRead: UInt64 = 0

    /// Edits tracked; more are hardly ever in flight.
    static let maxEdits = 10_000

    private struct EditedMessage: Hashable {
        var room: StoredRoomKey
        var msgid: String
    }

    /// The order with the newest text of a message, while one with an older text may be lost.
    private var edits: [EditedMessage: StoreTicket] = [:]

    package func report(_ condition: StoreCondition) { self.condition = condition }

    package func add(_ change: StoreOperation) {
        changes.append(change)
        guard case .edit(let room, let msgid, _) = change else { return }
        let message = EditedMessage(room: room, msgid: msgid)
        if edits[message] != nil || edits.count < Self.maxEdits { edits[message] = next }
    }

    /// Whether there is a newer text than in the order with `ticket`.
    package func isEdited(_ room: StoredRoomKey, _ msgid: String, after ticket: StoreTicket) -> Bool {
        edits[EditedMessage(room: room, msgid: msgid)].map { $0 > ticket } ?? false
    }

    /// Drops the tracked edits: without lost orders, the disk has them.
    package func forgetEdits() {
        guard !edits.isEmpty else { return }
        edits = edits.filter { $0.value > settled }
    }

    /// Takes the order to hand over now.
    package func take() -> (ticket: StoreTicket, changes: [StoreOperation])? {
        guard !changes.isEmpty else { return nil }
        defer {
            changes = []
            next = StoreTicket(rawValue: next.rawValue + 1)
        }
        return (next, changes)
    }

    /// The ticket after which all changes until now are on disk.
    package var newest: StoreTicket { changes.isEmpty ? StoreTicket(rawValue: next.rawValue - 1) : next }

    package func isSettled(_ ticket: StoreTicket) -> Bool {
        var ticket = ticket
        for range in lost.reversed() where range.contains(ticket) {
            ticket = StoreTicket(rawValue: range.lowerBound.rawValue - 1)
        }
        return ticket <= settled
    }

    /// Whether the acceptances up to `ticket` were persisted or refused.
    package func isDecided(_ ticket: StoreTicket) -> Bool { ticket <= decided || isSettled(ticket) }

    package func settle(through ticket: StoreTicket, refused: [StoreTicket] = []) {
        settled = max(settled, ticket)
        if let last = refused.max() { decided = max(decided, last) }
        skipLost()
    }

    /// Records an order that was lost because the store was full: it never settles, and must not be waited for.
    package func lose(_ ticket: StoreTicket) {
        if let last = lost.last, last.upperBound.rawValue + 1 == ticket.rawValue {
            lost[lost.count - 1] = last.lowerBound...ticket
        } else {
            lost.append(ticket...ticket)
        }
        skipLost()
    }

    private func skipLost() {
        while let first = lost.first, first.lowerBound.rawValue <= settled.rawValue + 1 {
            settled = max(settled, first.upperBound)
            lost.removeFirst()
        }
    }

    // MARK: - Outcomes of messages

    /// Adds a change of an accepted message, which replaces a lost one.
    package func add(_ change: StoreOperation, about message: ChatID) {
        if !owed.isEmpty { owed[message] = nil }
        changes.append(change)
    }

    /// Records the outcomes in a lost order, which must be persisted.
    package func owe(_ changes: [StoreOperation]) {
        for change in changes {
            switch change {
            case .leaveOutbox(let id), .outboxState(let id, .failed, _, _), .outboxState(let id, .told, _, _):
                owed[id] = change
            default: break
            }
        }
    }

    /// Adds the lost outcomes to the next order.
    package func repay() {
        guard !owed.isEmpty else { return }
        changes += owed.sorted { $0.key.canonical < $1.key.canonical }.map(\.value)
        owed = [:]
    }

    package func nextRead() -> StoreReadID {
        lastRead += 1
        return StoreReadID(rawValue: lastRead)
    }
}
