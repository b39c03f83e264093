import Threads

/// The reader's thread: answers questions one after the other, each when what was handed over before it is settled. Those
/// that take long are answered in steps, and come behind all others after each.
///
/// While nothing can be kept the writer answers them, which has what waits; see ``StoreWriter``.
struct StoreReader: Sendable {
    let core: StoreCore

    func run() {
        while true {
            let (questions, isClosing) = core.inbox.withLock { $0.takeQuestions() }
            let rest = questions.compactMap { $0.ask(isClosing ? .failure(.closed) : .success(core.queries)) }
            if !rest.isEmpty { core.inbox.withLock { $0.putBack(rest) } }
            if isClosing { break }
            if questions.isEmpty { core.readerBell.wait(nanoseconds: nil) }
        }
        core.queries.connection.close()
        core.readerEnded()
    }
}
