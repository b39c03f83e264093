/// The reader's thread: answers questions one after the other, each when what was handed over before it is settled. Those
/// that take long are answered in steps, and come behind all others after each.
///
/// While nothing can be kept the writer answers them, which has what waits; see ``StoreWriter``.
struct StoreReader: Sendable {
    let core: StoreCore

    func run() {
        while true {
            let (questions, isClosing) = core.inbox.withLock { inbox -> ([StoreQuestion], Bool) in
                let isClosing = inbox.stage == .closing || inbox.stage == .closed
                if inbox.isFailing, !isClosing { return ([], false) }
                let settled = inbox.settled
                let end = isClosing ? nil : inbox.questions.firstIndex { $0.after > settled }
                let ready = Array(inbox.questions[..<(end ?? inbox.questions.count)])
                inbox.questions.removeFirst(ready.count)
                return (ready, isClosing)
            }
            let rest = questions.compactMap { $0.ask(isClosing ? .failure(.closed) : .success(core.queries)) }
            if !rest.isEmpty { core.inbox.withLock { $0.questions += rest } }
            if isClosing { break }
            if questions.isEmpty { core.readerBell.wait(nanoseconds: nil) }
        }
        core.queries.connection.close()
        core.readerEnded()
    }
}
