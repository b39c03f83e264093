import ChatModel

/// One write, from its submission until it is settled.
struct StoreWrite: Sendable {
    private(set) var ticket: StoreTicket
    private(set) var operations: [StoreOperation]
    private(set) var byteCount: Int
    /// Writes submitted up to this one.
    private(set) var number: UInt64

    /// The approximate bytes of a write beside its operations.
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

    /// Frees the operations, which may be large: they are committed, or never will be.
    mutating func dropOperations() { operations = [] }

    /// Removes acceptances; false when there are none.
    mutating func refuseAcceptances() -> Bool {
        guard hasAcceptance else { return false }
        operations.removeAll { $0.isAcceptance }
        return true
    }

    /// Recounts the bytes; returns how many are free.
    mutating func shrink() -> Int {
        let freed = byteCount - (operations.isEmpty ? 0 : Self.byteCount(operations))
        byteCount -= freed
        return freed
    }

    /// Is settled with `later`, which is empty, since writes are settled in order.
    mutating func absorb(_ later: StoreWrite) {
        ticket = later.ticket
        number = later.number
    }
}
