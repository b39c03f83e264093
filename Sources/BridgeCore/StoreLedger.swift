import ChatModel

/// What the bridge has told the store and has not heard of yet.
struct StoreLedger {
    /// What this verb changed so far; goes to the store together, under ``next``.
    private(set) var changes: [StoreOperation] = []
    /// The ticket that the next order bears.
    private(set) var next = StoreTicket(rawValue: 1)
    /// Everything up to here is on disk, or was refused.
    private(set) var settled = StoreTicket(rawValue: 0)
    var condition = StoreCondition.sound
    private var lastRead: UInt64 = 0

    mutating func add(_ change: StoreOperation) { changes.append(change) }

    /// What is to be handed over now.
    mutating func take() -> (ticket: StoreTicket, changes: [StoreOperation])? {
        guard !changes.isEmpty else { return nil }
        defer {
            changes = []
            next = StoreTicket(rawValue: next.rawValue + 1)
        }
        return (next, changes)
    }

    /// Everything that was changed until now is on disk when this is settled.
    var newest: StoreTicket { changes.isEmpty ? StoreTicket(rawValue: next.rawValue - 1) : next }

    mutating func settle(through ticket: StoreTicket) { settled = max(settled, ticket) }

    func isSettled(_ ticket: StoreTicket) -> Bool { ticket <= settled }

    mutating func nextRead() -> StoreReadID {
        lastRead += 1
        return StoreReadID(rawValue: lastRead)
    }
}
