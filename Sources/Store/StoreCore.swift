import CSystem
import ChatModel
import WireBytes

/// One order, from when it is handed over until it is settled.
struct StoreOrder: Sendable {
    var ticket: StoreTicket
    var operations: [StoreOperation]
    var byteCount: Int
    /// Orders that were handed over up to this one.
    var number: UInt64

    /// What an order takes up beside its changes, about.
    static let fixedByteCount = 128

    var hasAcceptance: Bool { operations.contains { $0.isAcceptance } }
}

/// A question to the store.
struct StoreQuestion: Sendable {
    /// It is answered when this many orders are settled: it sees what was handed over before it.
    var after: UInt64
    /// Given why it cannot be asked, tells that. Answers with what is left to ask: others come first.
    var ask: @Sendable (Result<StoreQueries, StoreFailure>) -> StoreQuestion?

    /// So many may wait; a client that joins asks two.
    static let maxWaiting = 20_000
}

/// What the threads of a store share.
final class StoreCore: Sendable {
    enum Stage {
        case opened, running, closing, closed
    }

    struct Inbox: Sendable {
        var stage = Stage.opened
        var orders: [StoreOrder] = []
        /// Of all orders that are not settled, also of those that the writer has taken.
        var byteCount = 0
        var handedOver: UInt64 = 0
        var settled: UInt64 = 0
        /// Orders that must wait for the writer to be woken; it is at work while this is `max`.
        var wakeAt = Int.max
        /// Nothing can be kept: the writer answers questions.
        var isFailing = false
        var errands: [@Sendable (StoreWriter) -> Void] = []
        var questions: [StoreQuestion] = []
        /// Monotonic, in nanoseconds.
        var closeBy = Int64.max
        var writerEnded = false
        var readerEnded = false
    }

    let settings: StoreSettings
    let changes: StoreChanges
    let queries: StoreQueries
    /// On the writer's connection, for its thread.
    let writerQueries: StoreQueries
    let opening: StoreOpening
    let inbox = StoreLock(Inbox())
    let writerBell: StoreBell
    let readerBell: StoreBell
    let endBell: StoreBell
    private let lock: StoreFileLock
    private let openedAt: (wall: Int64, monotonic: Int64)

    /// Nil: the process has no descriptors left.
    init?(_ settings: StoreSettings, _ parts: StoreFile.Parts, wallClockMilliseconds: Int64) {
        guard let writerBell = StoreBell(), let readerBell = StoreBell(), let endBell = StoreBell() else { return nil }
        self.settings = settings
        self.writerBell = writerBell
        self.readerBell = readerBell
        self.endBell = endBell
        changes = parts.changes
        queries = parts.queries
        writerQueries = parts.writerQueries
        opening = parts.opening
        lock = parts.lock
        openedAt = (wallClockMilliseconds, cb_monotonic_nanoseconds())
    }

    func now() -> Int64 { cb_monotonic_nanoseconds() }

    /// The wall clock of the opening, gone on evenly: a clock that leaps must not remove messages.
    var evenWallClockMilliseconds: Int64 {
        let passed = (now() &- openedAt.monotonic) / 1_000_000
        let (sum, overflow) = openedAt.wall.addingReportingOverflow(passed)
        return overflow ? .max : sum
    }

    // MARK: - From any thread

    func submit(_ ticket: StoreTicket, _ operations: [StoreOperation]) -> Bool {
        let byteCount = operations.reduce(StoreOrder.fixedByteCount) { $0 + $1.waitingByteCount }
        let (isTaken, wakes) = inbox.withLock { inbox -> (Bool, Bool) in
            guard inbox.stage == .opened || inbox.stage == .running,
                inbox.byteCount + byteCount <= settings.inboxBytes
            else { return (false, false) }
            inbox.byteCount += byteCount
            inbox.handedOver += 1
            inbox.orders.append(
                StoreOrder(ticket: ticket, operations: operations, byteCount: byteCount, number: inbox.handedOver))
            guard inbox.orders.count >= inbox.wakeAt else { return (true, false) }
            inbox.wakeAt = .max
            return (true, true)
        }
        if wakes { writerBell.ring() }
        return isTaken
    }

    func ask<Answer: Sendable>(
        _ done: @escaping @Sendable (Result<Answer, StoreFailure>) -> Void,
        _ query: @escaping @Sendable (StoreQueries) throws(SQLiteError) -> Answer
    ) {
        ask(done, inSteps: ()) { (queries, _) throws(SQLiteError) in try query(queries) }
    }

    /// The same for what takes long: nil is no answer yet, and the next step is taken when all others had their turn.
    func ask<Answer: Sendable, Progress: Sendable>(
        _ done: @escaping @Sendable (Result<Answer, StoreFailure>) -> Void, inSteps progress: Progress,
        _ step: @escaping @Sendable (StoreQueries, inout Progress) throws(SQLiteError) -> Answer?
    ) {
        let question = question(after: 0, done, progress, step)
        let (refusal, isWritersTurn) = inbox.withLock { inbox -> (StoreFailure?, Bool) in
            guard inbox.stage == .opened || inbox.stage == .running else { return (.closed, false) }
            guard inbox.questions.count < StoreQuestion.maxWaiting else {
                return (StoreFailure("too many questions wait"), false)
            }
            inbox.questions.append(StoreQuestion(after: inbox.handedOver, ask: question.ask))
            return (nil, inbox.isFailing)
        }
        if let refusal { return done(.failure(refusal)) }
        if isWritersTurn { writerBell.ring() } else { readerBell.ring() }
    }

    private func question<Answer: Sendable, Progress: Sendable>(
        after: UInt64, _ done: @escaping @Sendable (Result<Answer, StoreFailure>) -> Void, _ progress: Progress,
        _ step: @escaping @Sendable (StoreQueries, inout Progress) throws(SQLiteError) -> Answer?
    ) -> StoreQuestion {
        let path = settings.path
        return StoreQuestion(after: after) { [weak self] asked in
            let queries: StoreQueries
            switch asked {
            case .success(let open): queries = open
            case .failure(let failure):
                done(.failure(failure))
                return nil
            }
            guard let self else {
                done(.failure(.closed))
                return nil
            }
            var progress = progress
            do throws(SQLiteError) {
                guard let answer = try step(queries, &progress) else {
                    return self.question(after: after, done, progress, step)
                }
                done(.success(answer))
            } catch {
                if error.reach == .file { StoreFile.suspect(path) }
                done(.failure(StoreFailure(error.sentence)))
            }
            return nil
        }
    }

    /// Has the writer do something between two batches.
    func onWriter(_ errand: @escaping @Sendable (StoreWriter) -> Void) {
        inbox.withLock { $0.errands.append(errand) }
        writerBell.ring()
    }

    // MARK: - The end

    /// Begins the end; answers whether there are threads to wait for.
    func beginClosing(within limit: Duration) -> Bool {
        let closeBy = (MonotonicInstant(nanoseconds: now()) + limit).nanoseconds
        let stage = inbox.withLock { inbox -> Stage in
            let stage = inbox.stage
            switch stage {
            case .opened:
                inbox.stage = .closed
                inbox.orders = []
            case .running:
                inbox.stage = .closing
                inbox.closeBy = closeBy
            case .closing, .closed: break
            }
            return stage
        }
        switch stage {
        case .opened:
            queries.connection.close()
            changes.connection.close()
            lock.release()
            refuseQuestions()
            return false
        case .running:
            readerBell.ring()
            writerBell.ring()
            return true
        case .closing: return true
        case .closed: return false
        }
    }

    func waitForEnd(within limit: Duration) {
        let deadline = (MonotonicInstant(nanoseconds: now()) + limit).nanoseconds
        while true {
            let isOver = inbox.withLock { $0.writerEnded && $0.readerEnded }
            // For others who wait.
            if isOver { return endBell.ring() }
            let left = deadline &- now()
            if left <= 0 { return }
            endBell.wait(nanoseconds: left)
        }
    }

    func readerEnded() {
        inbox.withLock { $0.readerEnded = true }
        writerBell.ring()
        endBell.ring()
    }

    func writerEnded() {
        lock.release()
        inbox.withLock { inbox in
            inbox.writerEnded = true
            inbox.stage = .closed
        }
        refuseQuestions()
        endBell.ring()
    }

    /// Those that no thread will answer any more.
    private func refuseQuestions() {
        let left = inbox.withLock { inbox -> [StoreQuestion] in
            defer { inbox.questions = [] }
            return inbox.questions
        }
        for question in left { _ = question.ask(.failure(.closed)) }
    }
}

extension StoreFailure {
    static let closed = StoreFailure("the store is closed")
}
