import CSystem
import Threads
import WireBytes

/// One event loop on a thread of its own: an actor whose executor is that thread.
///
/// Everything that belongs to the loop hangs on its ``Transport``: the delegate, and through it sessions and rooms, none of
/// them `Sendable`. They are made inside ``run(_:)`` and never leave; the compiler refuses to let them. Below the loop all
/// calls are plain and synchronous.
///
/// A loop runs until ``stop()``; its thread keeps it alive until then.
///
///     let loop = try NetworkLoop.start(name: "network")
///     let address = try await loop.run { transport in
///         transport.attach(Driver())
///         return try transport.listen(ListenOptions(.host("127.0.0.1", port: 0))).1
///     }
public actor NetworkLoop {
    /// The loop's thread as an executor. Tasks that talk to the loop should prefer it:
    /// `Task(executorPreference: loop.executor) { … }`.
    public nonisolated let executor: LoopExecutor
    private let transport: Transport
    private nonisolated let thread = Locked(ThreadState.running(0))

    private enum ThreadState {
        case running(UInt)
        case joined
    }

    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private init() throws(TransportError) {
        let executor = try LoopExecutor()
        self.executor = executor
        self.transport = Transport(executor: executor)
    }

    deinit {
        thread.withLock {
            if case .running(let thread) = $0 { cb_thread_detach(thread) }
        }
    }

    /// Starts a loop on a new thread named after the first 15 bytes of `name`.
    public static func start(name: String) throws(TransportError) -> NetworkLoop {
        let loop = try NetworkLoop()
        // The lock is held until the number is noted, so that no caller joins thread 0.
        let failure = loop.thread.withLock { state -> Int32? in
            switch startThread(name: name, { loop.threadBody() }) {
            case .success(let thread):
                state = .running(thread)
                return nil
            case .failure(let failure):
                state = .joined
                return failure.errno
            }
        }
        if let failure { throw .systemCallFailed(call: "pthread_create", errno: failure) }
        return loop
    }

    // MARK: - From other threads

    /// Calls `body` on the loop, with its transport, and returns its result. Owners make their state there, install
    /// it as the delegate, and query it later: `(transport.delegate as? Driver)?.clientCount`.
    ///
    /// After ``stop()`` the body still runs, with a transport that has no connections, opens none and sends nothing.
    public func run<R: Sendable, E: Error>(_ body: @Sendable (Transport) throws(E) -> R) throws(E) -> R {
        try body(transport)
    }

    /// Calls `body` on the loop soon, in the order of the calls from one thread. Does not wait. Dropped after ``stop()``.
    public nonisolated func enqueue(_ body: @escaping @Sendable (Transport) -> Void) { executor.post(body) }

    /// Ends the loop after its current turn: what can be sent at once is sent, then everything is closed, the delegate is
    /// released, and no callback comes any more. Owners that want to say goodbye do so first.
    public nonisolated func stop() { executor.askToStop() }

    /// Waits until the thread has ended. Any number of callers; returns at once when called on the loop itself.
    public nonisolated func waitUntilStopped() {
        guard !executor.isCurrent else { return }
        thread.withLock {
            guard case .running(let thread) = $0 else { return }
            cb_thread_join(thread)
            $0 = .joined
        }
    }

    // MARK: - The thread

    private nonisolated func threadBody() {
        executor.markCurrentThread()
        var stopping = false
        while !stopping {
            let taken = executor.take()
            stopping = taken.stop
            for work in taken.work {
                switch work {
                case .job(let job): executor.run(job)
                case .post(let body): assumeIsolated { body($0.transport) }
                }
            }
            let last = stopping
            assumeIsolated { loop in
                loop.transport.runTurn()
                if last { loop.transport.shutDown() } else { loop.transport.wait() }
            }
        }
        executor.end()
    }
}

/// The timers of a loop, at most one for each key.
final class LoopTimers {
    enum Key: Hashable {
        case connect(ConnectionID)
        case handshake(ConnectionID)
        case proxyHeader(ConnectionID)
        case linger(ConnectionID)
        case acceptRest(UInt32)
        case certificates
    }

    private var heap = DeadlineHeap<Key>()

    func set(_ key: Key, at: MonotonicInstant) { heap.set(key, at: at) }
    func cancel(_ key: Key) { heap.cancel(key) }
    subscript(key: Key) -> MonotonicInstant? { heap[key] }
    func next() -> MonotonicInstant? { heap.next() }
    func popDue(_ now: MonotonicInstant) -> Key? { heap.popDue(now) }
    func removeAll() { heap = DeadlineHeap() }
}
