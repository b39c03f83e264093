import CSQLite
import ChatModel
import Threads
import WireBytes

/// The writer's thread: takes the pending writes, commits them in one transaction, reports the outcome, and begins
/// again.
///
/// | state | meaning | leaves by |
/// |---|---|---|
/// | sound | writes are committed as they come | a failure → failing, broken |
/// | failing | acceptances are refused, the rest is pending; an attempt each ``StoreSettings/retryPause`` | a commit → sound |
/// | broken | the file is damaged: acceptances are refused, all else is dropped | – |
///
/// Writes are settled in order: one that a refusal left empty is settled with the one before it.
///
/// While it is failing, the writer answers the reader's questions too: it applies the pending writes in a transaction
/// that is not committed, so that a question sees every write submitted before it. That preview lasts from the first
/// question to the next attempt, and is made anew after it.
final class StoreWriter {
    private enum Health: Equatable {
        case sound
        case failing(until: Int64)
        case broken
    }

    let core: StoreCore
    let changes: StoreChanges
    private let reportSettled: @Sendable (StoreSettlement) -> Void
    private let reportCondition: @Sendable (StoreCondition) -> Void

    private var pending: [StoreWrite] = []
    /// Writes before this one in ``pending`` are settled.
    private var head = 0
    private var through = StoreTicket(rawValue: 0)
    private var health = Health.sound
    private var condition = StoreCondition.sound
    /// Writes before this one in ``pending`` are applied in the preview; nil: there is none.
    private var previewEnd: Int?
    private var retention: StoreRetention
    /// The first one is under way.
    private var erasures: [(eraser: StoreEraser, done: @Sendable (Result<StoredErasure, StoreFailure>) -> Void)] = []

    init(
        _ core: StoreCore, settled: @escaping @Sendable (StoreSettlement) -> Void,
        condition: @escaping @Sendable (StoreCondition) -> Void
    ) {
        self.core = core
        changes = core.changes
        reportSettled = settled
        reportCondition = condition
        retention = StoreRetention(core.settings, now: core.now())
    }

    var connection: SQLiteConnection { changes.connection }

    func run() {
        // A disk that is full from the beginning is reported at once, and not with the first write.
        if core.opening.exclusiveReason != nil { probe() }
        while true {
            let isClosing = gather()
            switch health {
            case .sound: attempt()
            case .failing(let until): if isClosing || core.now() >= until { attempt() }
            case .broken: break
            }
            if health == .sound { applyRetention() }
            if health == .sound { applyErasure() }
            if isClosing, head == pending.count || health != .sound || core.now() >= closeBy { break }
        }
        end()
    }

    private var closeBy: Int64 { core.inbox.withLock { $0.closeBy } }

    // MARK: - Gathering

    /// Sleeps until there is something to do, and takes it; returns whether the store is to close.
    private func gather() -> Bool {
        var gatherUntil: Int64?
        while true {
            let now = core.now()
            let wakeBy = head < pending.count && health == .sound ? now : nextDuty(now)
            let mayGather =
                core.settings.batchMaxWait > .zero && health == .sound && head == pending.count
                && (gatherUntil.map { now < $0 } ?? true)
            let schedule = StoreInbox.Schedule(
                isDue: wakeBy.map { $0 <= now } ?? false,
                gathers: mayGather ? max(1, core.settings.batchMaxMessages) : nil)
            let (taken, gathers) = core.inbox.withLock { $0.take(schedule) }
            if let taken {
                admit(taken.writes)
                if !taken.jobs.isEmpty { endPreview() }
                for job in taken.jobs { job(self) }
                answer(taken.questions)
                return taken.isClosing
            }
            if gathers, gatherUntil == nil {
                gatherUntil = (MonotonicInstant(nanoseconds: now) + core.settings.batchMaxWait).nanoseconds
            }
            let until = [wakeBy, gatherUntil].compactMap { $0 }.min()
            core.writerWakeUp.wait(nanoseconds: until.map { $0 &- now })
        }
    }

    /// The time of the writer's own next work; nil: never.
    private func nextDuty(_ now: Int64) -> Int64? {
        switch health {
        case .sound: erasures.isEmpty ? retention.due(now) : now
        case .failing(let until): until
        case .broken: nil
        }
    }

    private func admit(_ writes: [StoreWrite]) {
        if head > 0, head * 2 >= pending.count {
            pending.removeFirst(head)
            head = 0
        }
        switch health {
        case .sound: pending.append(contentsOf: writes)
        case .failing, .broken: refuseAcceptances(among: writes)
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
        endPreview()
        do throws(SQLiteError) {
            if health != .sound { changes.connection.checkpoint() }
            if head == pending.count {
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

    /// Commits one batch of writes, and reports it. When it throws, nothing of it is committed.
    private func writeBatch() throws(SQLiteError) {
        var refused: [StoreTicket] = []
        var reason: String?
        var (byteCount, end) = (0, head)
        try changes.begin()
        while end < pending.count {
            let write = pending[end]
            guard end == head || end - head < core.settings.batchMaxMessages else { break }
            var isRefused = false
            for operation in write.operations {
                do {
                    try changes.apply(operation)
                } catch {
                    // Of this operation alone: the others of the batch must not wait behind it for ever.
                    guard error.scope == .operation, changes.connection.isInTransaction else { throw error }
                    reason = error.sentence
                    isRefused = isRefused || operation.isAcceptance
                }
            }
            if isRefused { refused.append(write.ticket) }
            byteCount += write.byteCount
            end += 1
        }
        try changes.commit()
        recover()
        guard end > head else { return }
        let last = pending[end - 1]
        // Their bytes are given back to the inbox, so they must not stay.
        for index in head..<end { pending[index].dropOperations() }
        head = end
        if head == pending.count {
            pending.removeAll(keepingCapacity: pending.count < 4096)
            head = 0
        }
        through = last.ticket
        settle(
            number: last.number, byteCount: byteCount,
            StoreSettlement(through: through, refused: refused, reason: reason))
    }

    private func settle(number: UInt64?, byteCount: Int, _ settlement: StoreSettlement) {
        let wakesReader = core.inbox.withLock { $0.settle(through: number, byteCount: byteCount) }
        if wakesReader { core.readerWakeUp.send() }
        reportSettled(settlement)
    }

    // MARK: - Questions while writing fails

    /// Pause between attempts, as a multiple of the time that the preview took: the pending writes may be many.
    private static let previewPauseFactor: Int64 = 10

    private func answer(_ questions: [StoreQuestion]) {
        guard !questions.isEmpty else { return }
        var asked = Result<StoreQueries, StoreFailure>.success(core.writerQueries)
        do throws(SQLiteError) {
            try previewPending()
        } catch {
            endPreview()
            asked = .failure(StoreFailure(error.sentence))
        }
        let rest = questions.compactMap { $0.ask(asked) }
        if !rest.isEmpty { core.inbox.withLock { $0.putBack(rest) } }
    }

    private func previewPending() throws(SQLiteError) {
        // Writes to a damaged file are dropped: an answer would silently be incomplete.
        if health == .broken { throw SQLiteError(SQLITE_CORRUPT, on: nil) }
        let began = core.now()
        guard head < pending.count else { return }
        let isBegun = previewEnd != nil
        let next = previewEnd ?? head
        previewEnd = next
        if !isBegun { try changes.beginPreview() }
        try changes.preview(pending[next...])
        previewEnd = pending.count
        guard case .failing(let until) = health else { return }
        let now = core.now()
        health = .failing(until: max(until, now &+ (now &- began) &* Self.previewPauseFactor))
    }

    private func endPreview() {
        guard previewEnd != nil else { return }
        previewEnd = nil
        changes.endPreview()
    }

    // MARK: - Failing

    private func fail(_ error: SQLiteError) {
        changes.rollBack()
        failErasures(StoreFailure(error.sentence))
        if error.scope == .file {
            health = .broken
            StoreFile.markSuspect(core.settings.path)
            setCondition(.failing(error.sentence + "; the next start begins with a new one"))
        } else {
            health = .failing(
                until: (MonotonicInstant(nanoseconds: core.now()) + core.settings.retryPause).nanoseconds)
            setCondition(.failing(error.sentence))
        }
        let writes = Array(pending[head...])
        pending = []
        head = 0
        refuseAcceptances(among: writes)
    }

    private func recover() {
        guard health != .sound else { return }
        health = .sound
        setCondition(.sound)
    }

    private func setCondition(_ new: StoreCondition) {
        guard new != condition else { return }
        condition = new
        let wakesReader = core.inbox.withLock { $0.setFailing(new != .sound) }
        if wakesReader { core.readerWakeUp.send() }
        reportCondition(new)
    }

    /// Makes those of `writes`, which are new or taken from ``pending``, pending without their acceptances; when the
    /// file is damaged, drops them.
    private func refuseAcceptances(among writes: [StoreWrite]) {
        var refused: [StoreTicket] = []
        var byteCount = 0
        var settled: StoreWrite?
        for var write in writes {
            if write.refuseAcceptances() { refused.append(write.ticket) }
            if health == .broken { write.dropOperations() }
            byteCount += write.shrink()
            if !write.operations.isEmpty {
                pending.append(write)
            } else if head < pending.count {
                pending[pending.count - 1].absorb(write)
            } else {
                settled = write
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

    // MARK: - Retention

    private func applyRetention() {
        guard retention.isDue(core.now()) else { return }
        do throws(SQLiteError) {
            try retention.slice(changes, now: core.now(), wallClockMilliseconds: core.evenWallClockMilliseconds)
        } catch {
            fail(error)
        }
    }

    /// Removes messages now, and calls `done` at the end.
    func removeNow(_ done: @escaping @Sendable () -> Void) { retention.force(done) }

    // MARK: - Erasure

    func erase(_ person: StoredPerson, _ done: @escaping @Sendable (Result<StoredErasure, StoreFailure>) -> Void) {
        guard health == .sound else { return done(.failure(StoreFailure("the store cannot write"))) }
        do throws(SQLiteError) {
            let after = head < pending.count ? pending[pending.count - 1].ticket : through
            erasures.append((try StoreEraser(person, after: after, connection), done))
        } catch {
            done(.failure(StoreFailure(error.sentence)))
        }
    }

    /// Does one step of the first one.
    private func applyErasure() {
        guard let first = erasures.first, first.eraser.after <= through else { return }
        if first.eraser.isScrubbing {
            erasures.removeFirst()
            do throws(SQLiteError) {
                try StoreEraser.scrub(core.settings, isExclusive: core.opening.exclusiveReason != nil)
                first.done(.success(first.eraser.erased))
            } catch {
                first.done(
                    .failure(StoreFailure("the file's free pages may still hold some of it: \(error.sentence)")))
            }
            return
        }
        do throws(SQLiteError) {
            try erasures[0].eraser.step(changes)
        } catch {
            fail(error)
        }
    }

    private func failErasures(_ failure: StoreFailure) {
        let failed = erasures
        erasures = []
        for erasure in failed { erasure.done(.failure(failure)) }
    }

    // MARK: - The end

    private func end() {
        endPreview()
        failErasures(.closed)
        if head < pending.count {
            health = .broken
            let writes = Array(pending[head...])
            pending = []
            head = 0
            refuseAcceptances(among: writes)
        }
        // The last connection moves the log into the database; one that only reads could not.
        let deadline = closeBy
        while !core.inbox.withLock({ $0.readerEnded }) {
            let left = deadline &- core.now()
            if left <= 0 { break }
            core.writerWakeUp.wait(nanoseconds: left)
        }
        changes.connection.close()
        core.writerEnded()
    }
}
