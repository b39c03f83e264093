public import ChatModel

// What the store says, brought to whom it concerns.

extension Bridge {
    /// Orders are on disk.
    ///
    /// - Parameters:
    ///   - ticket: this one and all before it are settled.
    ///   - refused: those of them whose acceptances are not kept; what else they changed is kept, or will be.
    ///   - reason: why, as a part of a sentence.
    public func storeSettled(through ticket: StoreTicket, refused: [StoreTicket], reason: String?, now: Now) {
        context.now = now
        context.ledger.settle(through: ticket)
        context.ledger.repay()
        storeDidSettle(refused: Set(refused), reason: reason ?? "the store refused it")
    }

    /// An order found no room in the store: nothing of it is kept. Its ticket never settles by itself.
    public func storeOverflowed(_ ticket: StoreTicket, _ changes: [StoreOperation], now: Now) {
        context.now = now
        context.ledger.lose(ticket)
        context.ledger.owe(changes)
        storeDidOverflow(ticket, reason: "too much waits for the disk")
        storeDidLose(changes)
    }

    /// The store began or ceased to keep what it is given.
    public func storeConditionChanged(_ condition: StoreCondition, now: Now) {
        context.now = now
        guard condition != context.ledger.condition else { return }
        context.ledger.condition = condition
        switch condition {
        case .sound:
            context.ledger.repay()
            context.note(.info, "store-sound", "what is said is kept again")
        case .failing(let reason):
            context.note(.error, "store-failing", "nothing can be kept: \(reason)", ["reason": reason])
        }
    }

    /// Changes are lost for good.
    private func storeDidLose(_ changes: [StoreOperation]) {}

    /// The answer to `.readMessages`.
    public func messagesRead(_ id: StoreReadID, _ outcome: Result<[StoredMessage], StoreFailure>, now: Now) {
        context.now = now
    }

    /// The answer to `.loadRoom`.
    public func roomLoaded(_ id: RoomID, _ outcome: Result<StoredRoom, StoreFailure>, now: Now) {
        context.now = now
    }
}
