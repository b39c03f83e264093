import ChatModel

/// A question to the store.
struct StoreQuestion: Sendable {
    /// It is answered when this many orders are settled: it sees what was handed over before it.
    var after: UInt64
    /// Given why it cannot be asked, tells that. Answers with what is left to ask: others come first.
    var ask: @Sendable (Result<StoreQueries, StoreFailure>) -> StoreQuestion?

    /// So many may wait; a client that joins asks two.
    static let maxWaiting = 20_000
}

/// What waits for the threads of a store, and how far these are.
struct StoreInbox: Sendable {
    enum Stage {
        case opened, running, closing, closed
    }

    /// What the writer takes at a time.
    struct Taken {
        var orders: [StoreOrder]
        var errands: [@Sendable (StoreWriter) -> Void]
        var questions: [StoreQuestion]
        var isClosing: Bool
    }

    /// What the writer would do if nothing came.
    struct Wish {
        /// It has something to do by itself.
        var isDue: Bool
        /// It may wait for so many orders, to make one transaction of them; nil: not any more.
        var gathers: Int?
    }

    private(set) var stage = Stage.opened
    private var orders: [StoreOrder] = []
    /// Of all orders that are not settled, also of those that the writer has taken.
    private var byteCount = 0
    private var handedOver: UInt64 = 0
    private var settled: UInt64 = 0
    /// Orders that must wait for the writer to be woken; it is at work while this is `max`.
    private var wakeAt = Int.max
    /// Nothing can be kept: the writer answers questions.
    private var isFailing = false
    private var errands: [@Sendable (StoreWriter) -> Void] = []
    private var questions: [StoreQuestion] = []
    /// Monotonic, in nanoseconds.
    private(set) var closeBy = Int64.max
    private(set) var writerEnded = false
    private(set) var readerEnded = false

    private var isOpen: Bool { stage == .opened || stage == .running }
    private var isClosing: Bool { stage == .closing || stage == .closed }

    // MARK: - From any thread

    /// Takes an order where there is room for it.
    mutating func submit(
        _ ticket: StoreTicket, _ operations: [StoreOperation], byteCount: Int, limit: Int
    ) -> (isTaken: Bool, wakesWriter: Bool) {
        guard isOpen, self.byteCount + byteCount <= limit else { return (false, false) }
        self.byteCount += byteCount
        handedOver += 1
        orders.append(StoreOrder(ticket, operations, byteCount: byteCount, number: handedOver))
        guard orders.count >= wakeAt else { return (true, false) }
        wakeAt = .max
        return (true, true)
    }

    /// Takes a question, which sees what was handed over before it.
    mutating func ask(_ question: StoreQuestion) -> (refusal: StoreFailure?, isWritersTurn: Bool) {
        guard isOpen else { return (.closed, false) }
        guard questions.count < StoreQuestion.maxWaiting else {
            return (StoreFailure("too many questions wait"), false)
        }
        questions.append(StoreQuestion(after: handedOver, ask: question.ask))
        return (nil, isFailing)
    }

    mutating func add(_ errand: @escaping @Sendable (StoreWriter) -> Void) { errands.append(errand) }

    /// False when the threads run already, or the store is closed.
    mutating func start() -> Bool {
        guard stage == .opened else { return false }
        stage = .running
        return true
    }

    /// Begins the end; answers how far the store was.
    mutating func beginClosing(by instant: Int64) -> Stage {
        defer {
            switch stage {
            case .opened:
                stage = .closed
                orders = []
            case .running:
                stage = .closing
                closeBy = instant
            case .closing, .closed: break
            }
        }
        return stage
    }

    // MARK: - The writer's

    /// What there is to do; nil: nothing yet, and with `begins` orders are being gathered from now on.
    mutating func take(_ wish: Wish) -> (taken: Taken?, begins: Bool) {
        let gathers = wish.gathers.map { !orders.isEmpty && orders.count < $0 } ?? false
        let asked = isFailing && !isClosing ? questions : []
        guard
            isClosing || !errands.isEmpty || !asked.isEmpty || (!orders.isEmpty && !gathers)
                || (wish.isDue && !gathers)
        else {
            wakeAt = gathers ? wish.gathers ?? 1 : 1
            return (nil, gathers)
        }
        defer {
            orders = []
            errands = []
            questions.removeFirst(asked.count)
            wakeAt = .max
        }
        return (Taken(orders: orders, errands: errands, questions: asked, isClosing: isClosing), false)
    }

    /// Orders up to `number` are settled, and so many bytes free; answers whether somebody waits for an answer.
    mutating func settle(through number: UInt64?, byteCount: Int) -> Bool {
        self.byteCount -= byteCount
        if let number { settled = max(settled, number) }
        return !questions.isEmpty
    }

    /// Who answers questions changes; answers whether there are some.
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

    /// What is left of questions that take long comes behind all others.
    mutating func putBack(_ rest: [StoreQuestion]) { questions += rest }

    mutating func endReader() { readerEnded = true }

    /// Those that no thread will answer any more.
    mutating func takeAllQuestions() -> [StoreQuestion] {
        defer { questions = [] }
        return questions
    }
}

extension StoreFailure {
    static let closed = StoreFailure("the store is closed")
}
