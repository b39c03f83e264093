import Threads

/// The reader's thread: answers questions in order, each when the writes before it are settled. Long ones are answered
/// in steps, and go behind all others after each.
///
/// While writing fails the writer answers them, which has the pending writes; see ``StoreWriter``.
struct StoreReader: Sendable {
    let core: StoreCore

    func run() {
        while true {
            let (questions, isClosing) = core.inbox.withLock { $0.takeQuestions() }
            let rest = questions.compactMap { $0.ask(isClosing ? .failure(.closed) : .success(core.queries)) }
            if !rest.isEmpty { core.inbox.withLock { $0.putBack(rest) } }
            if isClosing { break }
            if questions.isEmpty { core.readerWakeUp.wait(nanoseconds: nil) }
        }
        core.queries.connection.close()
        core.readerEnded()
    }
}
