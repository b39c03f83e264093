import ChatModel

/// What the bridge has told the store and has not heard of yet.
package final class StoreLedger {
    /// What this verb changed so far; goes to the store together, under ``next``.
    package private(set) var changes: [StoreOperation] = []
    /// The ticket that the next order bears.
    package private(set) var next = StoreTicket(rawValue: 1)
    /// Everything up to here is on disk, or was refused.
    package private(set) var settled = StoreTicket(rawValue: 0)
    /// Every acceptance up to here was kept or refused, whatever else of these orders waits.
    private var decided = StoreTicket(rawValue: 0)
    /// Orders after ``settled`` that found no room, oldest first.
    private var lost: [ClosedRange<StoreTicket>] = []
    package private(set) var condition = StoreCondition.sound
    /// What was lost of how messages ended, by the message: it is said again.
    private var owed: [ChatID: StoreOperation] = [:]
    private var lastRead: UInt64 = 0

    /// Edits remembered; so many are hardly ever under way.
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

    /// Whether the store was told of a newer text than the order with `ticket` has.
    package func isEdited(_ room: StoredRoomKey, _ msgid: String, after ticket: StoreTicket) -> Bool {
        edits[EditedMessage(room: room, msgid: msgid)].map { $0 > ticket } ?? false
    }

    /// Nothing is lost: what is on disk needs no remembering.
    package func forgetEdits() {
        guard !edits.isEmpty else { return }
        edits = edits.filter { $0.value > settled }
    }

    /// What is to be handed over now.
    package func take() -> (ticket: StoreTicket, changes: [StoreOperation])? {
        guard !changes.isEmpty else { return nil }
        defer {
            changes = []
            next = StoreTicket(rawValue: next.rawValue + 1)
        }
        return (next, changes)
    }

    /// Everything that was changed until now is on disk when this is settled.
    package var newest: StoreTicket { changes.isEmpty ? StoreTicket(rawValue: next.rawValue - 1) : next }

    package func isSettled(_ ticket: StoreTicket) -> Bool {
        var ticket = ticket
        for range in lost.reversed() where range.contains(ticket) {
            ticket = StoreTicket(rawValue: range.lowerBound.rawValue - 1)
        }
        return ticket <= settled
    }

    /// Whether the acceptances up to `ticket` were kept or refused.
    package func isDecided(_ ticket: StoreTicket) -> Bool { ticket <= decided || isSettled(ticket) }

    package func settle(through ticket: StoreTicket, refused: [StoreTicket] = []) {
        settled = max(settled, ticket)
        if let last = refused.max() { decided = max(decided, last) }
        skipLost()
    }

    /// An order found no room: it never settles by itself, and nobody shall wait for it.
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

    // MARK: - How messages ended

    /// Adds what is new of an accepted message; what was owed of it is out of date.
    package func add(_ change: StoreOperation, about message: ChatID) {
        if !owed.isEmpty { owed[message] = nil }
        changes.append(change)
    }

    /// An order with these changes is lost. What must not be forgotten is owed.
    package func owe(_ changes: [StoreOperation]) {
        for change in changes {
            switch change {
            case .leaveOutbox(let id), .outboxState(let id, .failed, _, _), .outboxState(let id, .told, _, _):
                owed[id] = change
            default: break
            }
        }
    }

    /// Says again what is owed.
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
