import ChatModel

/// A question to the store.
struct StoreQuestion: Sendable {
    /// The number of writes that must be settled first: the question sees every write submitted before it.
    var after: UInt64
    /// Answers the question, or fails it with the given reason. Returns the rest of a long one, which goes behind the
    /// others.
    var ask: @Sendable (Result<StoreQueries, StoreFailure>) -> StoreQuestion?

    /// The limit on pending questions; a client that joins asks two.
    static let maxWaiting = 20_000
}

/// The pending work of a store's threads, and their progress.
struct StoreInbox: Sendable {
    enum Stage {
        case opened, running, closing, closed
    }

    /// The work that the writer takes at a time.
    struct Taken {
        var writes: [StoreWrite]
        var jobs: [@Sendable (StoreWriter) -> Void]
        var questions: [StoreQuestion]
        var isClosing: Bool
    }

    /// The writer's own schedule.
    struct Schedule {
        /// Work of its own is due.
        var isDue: Bool
        /// It may wait until so many writes are pending, to make one transaction of them; nil: no longer.
        var gathers: Int?
    }

    private(set) var stage = Stage.opened
    private var writes: [StoreWrite] = []
    /// Of all writes that are not settled, also of those that the writer has taken.
    private var byteCount = 0
    private var handedOver: UInt64 = 0
    private var settled: UInt64 = 0
    /// The number of pending writes at which the writer is woken; it is at work while this is `max`.
    private var wakeAt = Int.max
    /// Writing fails: the writer answers questions.
    private var isFailing = false
    private var jobs: [@Sendable (StoreWriter) -> Void] = []
    private var questions: [StoreQuestion] = []
    /// Monotonic, in nanoseconds.
    private(set) var closeBy = Int64.max
    private(set) var writerEnded = false
    private(set) var readerEnded = false

    private var isOpen: Bool { stage == .opened || stage == .running }
    private var isClosing: Bool { stage == .closing || stage == .closed }

    // MARK: - From any thread

    /// Takes a write where there is room for it.
    mutating func submit(
        _ ticket: StoreTicket, _ operations: [StoreOperation], byteCount: Int, limit: Int
    ) -> (isTaken: Bool, wakesWriter: Bool) {
        guard isOpen, self.byteCount + byteCount <= limit else { return (false, false) }
        self.byteCount += byteCount
        handedOver += 1
        writes.append(StoreWrite(ticket, operations, byteCount: byteCount, number: handedOver))
        guard writes.count >= wakeAt else { return (true, false) }
        wakeAt = .max
        return (true, true)
    }

    /// Takes a question, which sees every write submitted before it.
    mutating func ask(_ question: StoreQuestion) -> (refusal: StoreFailure?, isWritersTurn: Bool) {
        guard isOpen else { return (.closed, false) }
        guard questions.count < StoreQuestion.maxWaiting else {
            return (StoreFailure("too many questions wait"), false)
        }
        questions.append(StoreQuestion(after: handedOver, ask: question.ask))
        return (nil, isFailing)
    }

    mutating func add(_ job: @escaping @Sendable (StoreWriter) -> Void) { jobs.append(job) }

    /// False when the threads run already, or the store is closed.
    mutating func start() -> Bool {
        guard stage == .opened else { return false }
        stage = .running
        return true
    }

    /// Begins closing; returns the stage before.
    mutating func beginClosing(by instant: Int64) -> Stage {
        defer {
            switch stage {
            case .opened:
                stage = .closed
                writes = []
            case .running:
                stage = .closing
                closeBy = instant
            case .closing, .closed: break
            }
        }
        return stage
    }

    // MARK: - The writer's

    /// The work to do; nil: none yet, and with `begins` writes are being gathered from now on.
    mutating func take(_ schedule: Schedule) -> (taken: Taken?, begins: Bool) {
        let gathers = schedule.gathers.map { !writes.isEmpty && writes.count < $0 } ?? false
        let asked = isFailing && !isClosing ? questions : []
        guard
            isClosing || !jobs.isEmpty || !asked.isEmpty || (!writes.isEmpty && !gathers)
                || (schedule.isDue && !gathers)
        else {
            wakeAt = gathers ? schedule.gathers ?? 1 : 1
            return (nil, gathers)
        }
        defer {
            writes = []
            jobs = []
            questions.removeFirst(asked.count)
            wakeAt = .max
        }
        return (Taken(writes: writes, jobs: jobs, questions: asked, isClosing: isClosing), false)
    }

    /// Writes up to `number` are settled, and so many bytes free; returns whether questions are pending.
    mutating func settle(through number: UInt64?, byteCount: Int) -> Bool {
        self.byteCount -= byteCount
        if let number { settled = max(settled, number) }
        return !questions.isEmpty
    }

    /// Has the writer or the reader answer questions; returns whether there are some.
    mutating func setFailing(_ isFailing: Bool) -> Bool {
        self.isFailing = isFailing
        return !questions.isEmpty
    }

    mutating func endWriter() {
        writerEnded = true
        stage = .closed
    }

    // MARK: - The reader's

    /// Questions whose turn it is; all of them when the store closes.
    mutating func takeQuestions() -> (questions: [StoreQuestion], isClosing: Bool) {
        if isFailing, !isClosing { return ([], false) }
        let settled = settled
        let end = isClosing ? nil : questions.firstIndex { $0.after > settled }
        let ready = Array(questions[..<(end ?? questions.count)])
        questions.removeFirst(ready.count)
        return (ready, isClosing)
    }

    /// Puts the rest of long questions behind all others.
    mutating func putBack(_ rest: [StoreQuestion]) { questions += rest }

    mutating func endReader() { readerEnded = true }

    /// The questions that no thread will answer any more.
    mutating func takeAllQuestions() -> [StoreQuestion] {
        defer { questions = [] }
        return questions
    }
}

extension StoreFailure {
    static let closed = StoreFailure("the store is closed")
}
