import CSystem
import ChatModel
import Glibc
import Threads
import WireBytes

/// The state that the threads of a store share.
final class StoreCore: Sendable {
    let settings: StoreSettings
    let changes: StoreChanges
    let queries: StoreQueries
    /// On the writer's connection, for its thread.
    let writerQueries: StoreQueries
    let opening: StoreOpening
    let inbox = Locked(StoreInbox())
    let writerWakeUp: StoreWakeUp
    let readerWakeUp: StoreWakeUp
    let endWakeUp: StoreWakeUp
    private let lock: StoreFileLock
    private let openedAt: (wall: Int64, monotonic: Int64)

    /// Nil: the process has no descriptors left.
    init?(_ settings: StoreSettings, _ parts: StoreFile.Parts, wallClockMilliseconds: Int64) {
        guard let writerWakeUp = StoreWakeUp(), let readerWakeUp = StoreWakeUp(), let endWakeUp = StoreWakeUp() else {
            return nil
        }
        self.settings = settings
        self.writerWakeUp = writerWakeUp
        self.readerWakeUp = readerWakeUp
        self.endWakeUp = endWakeUp
        changes = parts.changes
        queries = parts.queries
        writerQueries = parts.writerQueries
        opening = parts.opening
        lock = parts.lock
        openedAt = (wallClockMilliseconds, cb_monotonic_nanoseconds())
    }

    func now() -> Int64 { cb_monotonic_nanoseconds() }

    /// The wall clock at the opening, advanced by the monotonic clock: a jump of the clock must not remove messages.
    var evenWallClockMilliseconds: Int64 {
        let passed = (now() &- openedAt.monotonic) / 1_000_000
        let (sum, overflow) = openedAt.wall.addingReportingOverflow(passed)
        return overflow ? .max : sum
    }

    // MARK: - From any thread

    func submit(_ ticket: StoreTicket, _ operations: [StoreOperation]) -> Bool {
        let byteCount = StoreWrite.byteCount(operations)
        let limit = settings.inboxBytes
        let (isTaken, wakes) = inbox.withLock {
            $0.submit(ticket, operations, byteCount: byteCount, limit: limit)
        }
        if wakes { writerWakeUp.send() }
        return isTaken
    }

    func ask<Answer: Sendable>(
        _ done: @escaping @Sendable (Result<Answer, StoreFailure>) -> Void,
        _ query: @escaping @Sendable (StoreQueries) throws(SQLiteError) -> Answer
    ) {
        ask(done, inSteps: ()) { (queries, _) throws(SQLiteError) in try query(queries) }
    }

    /// The same for long queries: nil is no answer yet, and the next step is taken behind all other questions.
    func ask<Answer: Sendable, Progress: Sendable>(
        _ done: @escaping @Sendable (Result<Answer, StoreFailure>) -> Void, inSteps progress: Progress,
        _ step: @escaping @Sendable (StoreQueries, inout Progress) throws(SQLiteError) -> Answer?
    ) {
        let question = question(after: 0, done, progress, step)
        let (refusal, isWritersTurn) = inbox.withLock { $0.ask(question) }
        if let refusal { return done(.failure(refusal)) }
        if isWritersTurn { writerWakeUp.send() } else { readerWakeUp.send() }
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
                if error.scope == .file { StoreFile.markSuspect(path) }
                done(.failure(StoreFailure(error.sentence)))
            }
            return nil
        }
    }

    /// Runs a closure on the writer's thread, between two batches.
    func onWriter(_ job: @escaping @Sendable (StoreWriter) -> Void) {
        inbox.withLock { $0.add(job) }
        writerWakeUp.send()
    }

    // MARK: - The end

    /// Begins closing; returns whether there are threads to wait for.
    func beginClosing(within limit: Duration) -> Bool {
        let closeBy = (MonotonicInstant(nanoseconds: now()) + limit).nanoseconds
        let stage = inbox.withLock { $0.beginClosing(by: closeBy) }
        switch stage {
        case .opened:
            queries.connection.close()
            changes.connection.close()
            lock.release()
            refuseQuestions()
            return false
        case .running:
            readerWakeUp.send()
            writerWakeUp.send()
            return true
        case .closing: return true
        case .closed: return false
        }
    }

    func waitForEnd(within limit: Duration) {
        let deadline = (MonotonicInstant(nanoseconds: now()) + limit).nanoseconds
        while true {
            let isOver = inbox.withLock { $0.writerEnded && $0.readerEnded }
            // For other callers that wait.
            if isOver { return endWakeUp.send() }
            let left = deadline &- now()
            if left <= 0 { return }
            endWakeUp.wait(nanoseconds: left)
        }
    }

    func readerEnded() {
        inbox.withLock { $0.endReader() }
        writerWakeUp.send()
        endWakeUp.send()
    }

    func writerEnded() {
        lock.release()
        inbox.withLock { $0.endWriter() }
        refuseQuestions()
        endWakeUp.send()
    }

    /// Fails the questions that no thread will answer any more.
    private func refuseQuestions() {
        let left = inbox.withLock { $0.takeAllQuestions() }
        for question in left { _ = question.ask(.failure(.closed)) }
    }
}
