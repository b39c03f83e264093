import CSystem
import Threads

/// The thread of a ``NetworkLoop`` as Swift's concurrency sees it, and the inbox through which other threads reach it.
///
/// It is a `TaskExecutor` too: a task that prefers it resumes on the loop's thread without a detour over the global pool.
public final class LoopExecutor: SerialExecutor, TaskExecutor {
    /// Work from other threads, in the order in which they queued it.
    enum Work {
        case job(UnownedJob)
        case post(@Sendable (Transport) -> Void)
    }

    private struct Inbox {
        var work: [Work] = []
        var stopAsked = false
        /// The thread has left; jobs that still come run on a short-lived thread each burst.
        var ended = false
        var draining = false
    }

    private let inbox = Locked(Inbox())
    /// Both are closed when the last reference goes, so no late caller can write into a reused descriptor.
    let epoll: Int32
    private let wakeUp: Int32

    static let wakeUpTag = ConnectionID.specialTag(0)

    init() throws(TransportError) {
        let epoll = cb_epoll_create()
        guard epoll >= 0 else { throw .systemCallFailed(call: "epoll_create1", errno: -epoll) }
        let wakeUp = cb_eventfd()
        guard wakeUp >= 0 else {
            cb_close(epoll)
            throw .systemCallFailed(call: "eventfd", errno: -wakeUp)
        }
        // Edge-triggered: every write is an edge, and the counter is never read because it cannot overflow.
        let added = cb_epoll_add(epoll, wakeUp, CB_EPOLLIN | CB_EPOLLET, Self.wakeUpTag)
        guard added >= 0 else {
            cb_close(wakeUp)
            cb_close(epoll)
            throw .systemCallFailed(call: "epoll_ctl", errno: -added)
        }
        self.epoll = epoll
        self.wakeUp = wakeUp
    }

    deinit {
        cb_close(wakeUp)
        cb_close(epoll)
    }

    // MARK: - From any thread

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        put(.job(job))
    }

    /// Queues `body` for the loop. Dropped when the loop has ended.
    func post(_ body: @escaping @Sendable (Transport) -> Void) { put(.post(body)) }

    private enum Reaction { case nothing, wake, drain }

    private func put(_ work: sending Work) {
        let reaction = inbox.withLock { inbox -> Reaction in
            if inbox.ended {
                guard case .job = work else { return .nothing }
                inbox.work.append(work)
                defer { inbox.draining = true }
                return inbox.draining ? .nothing : .drain
            }
            inbox.work.append(work)
            return inbox.work.count == 1 ? .wake : .nothing
        }
        switch reaction {
        case .nothing: break
        case .wake: if !isCurrent { cb_eventfd_signal(wakeUp) }
        case .drain: drainAfterEnd()
        }
    }

    func askToStop() {
        inbox.withLock { $0.stopAsked = true }
        cb_eventfd_signal(wakeUp)
    }

    // MARK: - Isolation

    /// Whether the calling thread is the loop's.
    var isCurrent: Bool { cb_thread_mark() == UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) }

    public func checkIsolated() {
        precondition(isCurrent, "this must run on the network loop's thread")
    }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    public func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    // MARK: - On the loop's thread

    func markCurrentThread() { cb_set_thread_mark(Unmanaged.passUnretained(self).toOpaque()) }

    /// Whether something waits, so that the loop must not sleep.
    var hasWork: Bool { inbox.withLock { !$0.work.isEmpty || $0.stopAsked } }

    /// Takes everything queued so far, and whether the loop is to stop.
    func take() -> (work: [Work], stop: Bool) {
        let taken = inbox.withLock { inbox -> (work: [Work], stop: Bool) in
            var work: [Work] = []
            swap(&work, &inbox.work)
            return (work, inbox.stopAsked)
        }
        return taken
    }

    func run(_ job: UnownedJob) {
        job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    }

    /// Runs the jobs left over and closes the inbox to posts. Called once, last, by the loop's thread.
    func end() {
        while true {
            let left = inbox.withLock { inbox -> [Work] in
                var work: [Work] = []
                swap(&work, &inbox.work)
                if work.isEmpty { inbox.ended = true }
                return work
            }
            if left.isEmpty { return }
            for case .job(let job) in left { run(job) }
        }
    }

    // MARK: - After the end

    /// Runs jobs on a thread of its own: an `await` on a stopped loop must still come back.
    private func drainAfterEnd() {
        let started = startDetachedThread(name: "loop-after-end") {
            self.markCurrentThread()
            while true {
                let left = self.inbox.withLock { inbox -> [Work] in
                    var work: [Work] = []
                    swap(&work, &inbox.work)
                    if work.isEmpty { inbox.draining = false }
                    return work
                }
                if left.isEmpty { return }
                for case .job(let job) in left { self.run(job) }
            }
        }
        if case .failure = started {
            // Without a thread the jobs wait for the next one that comes along.
            inbox.withLock { $0.draining = false }
        }
    }
}
