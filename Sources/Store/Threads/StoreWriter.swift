import CSQLite
import ChatModel
import Threads
import WireBytes

/// The writer's thread: takes what waits, makes one transaction of it, tells what became of it, and begins again.
///
/// | state | meaning | leaves by |
/// |---|---|---|
/// | sound | orders are carried out as they come | a failure → failing, broken |
/// | failing | acceptances are refused, the rest waits; an attempt each ``StoreSettings/retryPause`` | a commit → sound |
/// | broken | the file is damaged: acceptances are refused, all else is dropped | – |
///
/// Nothing is settled out of order: an order that a refusal left empty is settled with the one before it.
///
/// While it is failing, the writer answers the reader's questions too: it carries out what waits in a transaction that is not
/// committed, so that who asks sees all that was handed over. That transaction lives from the first question to the next
/// attempt, and is made anew after it.
final class StoreWriter {
    private enum Health: Equatable {
        case sound
        case failing(until: Int64)
        case broken
    }

    let core: StoreCore
    private let changes: StoreChanges
    private let tellSettled: @Sendable (StoreSettlement) -> Void
    private let tellCondition: @Sendable (StoreCondition) -> Void

    private var waiting: [StoreOrder] = []
    /// Orders before this one in ``waiting`` are settled.
    private var head = 0
    private var through = StoreTicket(rawValue: 0)
    private var health = Health.sound
    private var condition = StoreCondition.sound
    /// Orders before this one in ``waiting`` are carried out in a transaction that is not committed; nil: there is none.
    private var shownEnd: Int?
    private var retention: StoreRetention

    init(
        _ core: StoreCore, settled: @escaping @Sendable (StoreSettlement) -> Void,
        condition: @escaping @Sendable (StoreCondition) -> Void
    ) {
        self.core = core
        changes = core.changes
        tellSettled = settled
        tellCondition = condition
        retention = StoreRetention(core.settings, now: core.now())
    }

    var connection: SQLiteConnection { changes.connection }

    func run() {
        // A disk that is full from the beginning is told of at once, and not when somebody wants something kept.
        if core.opening.aloneBecause != nil { probe() }
        while true {
            let isClosing = gather()
            switch health {
            case .sound: attempt()
            case .failing(let until): if isClosing || core.now() >= until { attempt() }
            case .broken: break
            }
            if health == .sound { tidy() }
            if isClosing, head == waiting.count || health != .sound || core.now() >= closeBy { break }
        }
        end()
    }

    private var closeBy: Int64 { core.inbox.withLock { $0.closeBy } }

    // MARK: - Gathering

    /// Sleeps until there is something to do, and takes it; answers whether the store is to close.
    private func gather() -> Bool {
        var gatherUntil: Int64?
        while true {
            let now = core.now()
            let wakeBy = head < waiting.count && health == .sound ? now : nextDuty(now)
            let mayGather =
                core.settings.batchMaxWait > .zero && health == .sound && head == waiting.count
                && (gatherUntil.map { now < $0 } ?? true)
            let wish = StoreInbox.Wish(
                isDue: wakeBy.map { $0 <= now } ?? false,
                gathers: mayGather ? max(1, core.settings.batchMaxMessages) : nil)
            let (taken, gathers) = core.inbox.withLock { $0.take(wish) }
            if let taken {
                admit(taken.orders)
                if !taken.errands.isEmpty { endShowing() }
                for errand in taken.errands { errand(self) }
                answer(taken.questions)
                return taken.isClosing
            }
            if gathers, gatherUntil == nil {
                gatherUntil = (MonotonicInstant(nanoseconds: now) + core.settings.batchMaxWait).nanoseconds
            }
            let until = [wakeBy, gatherUntil].compactMap { $0 }.min()
            core.writerBell.wait(nanoseconds: until.map { $0 &- now })
        }
    }

    /// When the writer has something to do by itself; nil: never.
    private func nextDuty(_ now: Int64) -> Int64? {
        switch health {
        case .sound: retention.due(now)
        case .failing(let until): until
        case .broken: nil
        }
    }

    private func admit(_ orders: [StoreOrder]) {
        if head > 0, head * 2 >= waiting.count {
            waiting.removeFirst(head)
            head = 0
        }
        switch health {
        case .sound: waiting.append(contentsOf: orders)
        case .failing, .broken: refuseAcceptances(among: orders)
        }
    }

    // MARK: - Writing

    private func probe() {
        do throws(SQLiteError) {
            try changes.probe()
        } catch {
            fail(error)
        }
    }

    private func attempt() {
        endShowing()
        do throws(SQLiteError) {
            if health != .sound { changes.connection.checkpoint() }
            if head == waiting.count {
                guard health != .sound else { return }
                try changes.probe()
                recover()
            } else {
                try writeBatch()
            }
        } catch {
            fail(error)
        }
    }

    /// Carries out as many orders as make a batch, and tells. When it throws, nothing of it is kept.
    private func writeBatch() throws(SQLiteError) {
        var refused: [StoreTicket] = []
        var reason: String?
        var (byteCount, end) = (0, head)
        try changes.begin()
        while end < waiting.count {
            let order = waiting[end]
            guard end == head || end - head < core.settings.batchMaxMessages else { break }
            var isRefused = false
            for operation in order.operations {
                do {
                    try changes.apply(operation)
                } catch {
                    // Of the change alone: the others of the batch must not wait behind it for ever.
                    guard error.reach == .change, changes.connection.isInTransaction else { throw error }
                    reason = error.sentence
                    isRefused = isRefused || operation.isAcceptance
                }
            }
            if isRefused { refused.append(order.ticket) }
            byteCount += order.byteCount
            end += 1
        }
        try changes.commit()
        recover()
        guard end > head else { return }
        let last = waiting[end - 1]
        // Their bytes are given back to the inbox, so they must not stay.
        for index in head..<end { waiting[index].forgetChanges() }
        head = end
        if head == waiting.count {
            waiting.removeAll(keepingCapacity: waiting.count < 4096)
            head = 0
        }
        through = last.ticket
        settle(
            number: last.number, byteCount: byteCount,
            StoreSettlement(through: through, refused: refused, reason: reason))
    }

    private func settle(number: UInt64?, byteCount: Int, _ settlement: StoreSettlement) {
        let wakesReader = core.inbox.withLock { $0.settle(through: number, byteCount: byteCount) }
        if wakesReader { core.readerBell.ring() }
        tellSettled(settlement)
    }

    // MARK: - Questions while nothing can be kept

    /// Nanoseconds for which nothing is attempted after showing took one: what waits may be much.
    private static let pauseAfterShowing: Int64 = 10

    private func answer(_ questions: [StoreQuestion]) {
        guard !questions.isEmpty else { return }
        var asked = Result<StoreQueries, StoreFailure>.success(core.writerQueries)
        do throws(SQLiteError) {
            try showWaiting()
        } catch {
            endShowing()
            asked = .failure(StoreFailure(error.sentence))
        }
        let rest = questions.compactMap { $0.ask(asked) }
        if !rest.isEmpty { core.inbox.withLock { $0.putBack(rest) } }
    }

    private func showWaiting() throws(SQLiteError) {
        // What was handed over to a damaged file is dropped: who asked would miss it without a word.
        if health == .broken { throw SQLiteError(SQLITE_CORRUPT, on: nil) }
        let began = core.now()
        guard head < waiting.count else { return }
        let isBegun = shownEnd != nil
        let next = shownEnd ?? head
        shownEnd = next
        if !isBegun { try changes.beginShowing() }
        try changes.show(waiting[next...])
        shownEnd = waiting.count
        guard case .failing(let until) = health else { return }
        let now = core.now()
        health = .failing(until: max(until, now &+ (now &- began) &* Self.pauseAfterShowing))
    }

    private func endShowing() {
        guard shownEnd != nil else { return }
        shownEnd = nil
        changes.endShowing()
    }

    // MARK: - Failing

    private func fail(_ error: SQLiteError) {
        changes.rollBack()
        if error.reach == .file {
            health = .broken
            StoreFile.suspect(core.settings.path)
            tell(.failing(error.sentence + "; the next start begins with a new one"))
        } else {
            health = .failing(
                until: (MonotonicInstant(nanoseconds: core.now()) + core.settings.retryPause).nanoseconds)
            tell(.failing(error.sentence))
        }
        let orders = Array(waiting[head...])
        waiting = []
        head = 0
        refuseAcceptances(among: orders)
    }

    private func recover() {
        guard health != .sound else { return }
        health = .sound
        tell(.sound)
    }

    private func tell(_ new: StoreCondition) {
        guard new != condition else { return }
        condition = new
        let wakesReader = core.inbox.withLock { $0.setFailing(new != .sound) }
        if wakesReader { core.readerBell.ring() }
        tellCondition(new)
    }

    /// Lets those of `orders`, which are new or taken from ``waiting``, wait without their acceptances; when the file is
    /// damaged, drops them.
    private func refuseAcceptances(among orders: [StoreOrder]) {
        var refused: [StoreTicket] = []
        var byteCount = 0
        var settled: StoreOrder?
        for var order in orders {
            if order.refuseAcceptances() { refused.append(order.ticket) }
            if health == .broken { order.forgetChanges() }
            byteCount += order.shrink()
            if !order.operations.isEmpty {
                waiting.append(order)
            } else if head < waiting.count {
                waiting[waiting.count - 1].absorb(order)
            } else {
                settled = order
            }
        }
        if let settled { through = settled.ticket }
        guard byteCount > 0 || settled != nil || !refused.isEmpty else { return }
        var reason: String?
        if case .failing(let sentence) = condition { reason = sentence }
        settle(
            number: settled?.number, byteCount: byteCount,
            StoreSettlement(through: through, refused: refused, reason: reason))
    }

    // MARK: - Tidying

    private func tidy() {
        guard retention.isDue(core.now()) else { return }
        do throws(SQLiteError) {
            try retention.slice(changes, now: core.now(), wallClockMilliseconds: core.evenWallClockMilliseconds)
        } catch {
            fail(error)
        }
    }

    /// Looks now for what is to be removed, and calls `done` when it is gone.
    func removeNow(_ done: @escaping @Sendable () -> Void) { retention.hurry(done) }

    // MARK: - The end

    private func end() {
        endShowing()
        if head < waiting.count {
            health = .broken
            let orders = Array(waiting[head...])
            waiting = []
            head = 0
            refuseAcceptances(among: orders)
        }
        // The last connection moves the log into the database; one that only reads could not.
        let deadline = closeBy
        while !core.inbox.withLock({ $0.readerEnded }) {
            let left = deadline &- core.now()
            if left <= 0 { break }
            core.writerBell.wait(nanoseconds: left)
        }
        changes.connection.close()
        core.writerEnded()
    }
}
