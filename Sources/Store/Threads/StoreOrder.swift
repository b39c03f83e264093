import ChatModel

/// One order, from when it is handed over until it is settled.
struct StoreOrder: Sendable {
    private(set) var ticket: StoreTicket
    private(set) var operations: [StoreOperation]
    private(set) var byteCount: Int
    /// Orders that were handed over up to this one.
    private(set) var number: UInt64

    /// What an order takes up beside its changes, about.
    static let fixedByteCount = 128

    var hasAcceptance: Bool { operations.contains { $0.isAcceptance } }

    init(_ ticket: StoreTicket, _ operations: [StoreOperation], byteCount: Int, number: UInt64) {
        self.ticket = ticket
        self.operations = operations
        self.byteCount = byteCount
        self.number = number
    }

    static func byteCount(_ operations: [StoreOperation]) -> Int {
        operations.reduce(fixedByteCount) { $0 + $1.waitingByteCount }
    }

    /// It is carried out, or nothing of it will be: the changes go at once, since they may be large.
    mutating func forgetChanges() { operations = [] }

    /// Leaves out acceptances; false when there are none.
    mutating func refuseAcceptances() -> Bool {
        guard hasAcceptance else { return false }
        operations.removeAll { $0.isAcceptance }
        return true
    }

    /// Counts what is left; answers how many bytes are free.
    mutating func shrink() -> Int {
        let freed = byteCount - (operations.isEmpty ? 0 : Self.byteCount(operations))
        byteCount -= freed
        return freed
    }

    /// Is settled with `later`, of which nothing is left, since nothing is settled out of order.
    mutating func absorb(_ later: StoreOrder) {
        ticket = later.ticket
        number = later.number
    }
}
