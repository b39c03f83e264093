import CSystem
import Glibc

/// Starts a thread that runs `body` and is to be joined; the failure is a positive error number.
package func startThread(name: String, _ body: @escaping @Sendable () -> Void) -> Result<UInt, ThreadFailure> {
    final class Start: Sendable {
        let body: @Sendable () -> Void
        init(body: @escaping @Sendable () -> Void) { self.body = body }
    }
    let start = Unmanaged.passRetained(Start(body: body))
    var thread: UInt = 0
    let error = cb_thread_start(
        name,
        { argument in
            if let argument { Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body() }
            return nil
        }, start.toOpaque(), &thread)
    guard error == 0 else {
        start.release()
        return .failure(ThreadFailure(errno: error))
    }
    return .success(thread)
}

package struct ThreadFailure: Error {
    package let errno: Int32
}

/// Starts a detached thread that runs `body`.
package func startDetachedThread(name: String, _ body: @escaping @Sendable () -> Void) -> Result<Void, ThreadFailure> {
    startThread(name: name, body).map { cb_thread_detach($0) }
}

/// A value that several threads share under one pthread mutex. Nothing blocks while it is held.
///
/// `Synchronization.Mutex` would do, but its library is not instrumented, so the thread sanitizer reports false races.
package final class Locked<Value>: @unchecked Sendable {
    // Sendable because `value` is reached only between lock and unlock, and neither the mutex nor the value ever moves:
    // both live in memory that this object allocated and frees.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let value: UnsafeMutablePointer<Value>

    package init(_ initial: sending Value) {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        value = .allocate(capacity: 1)
        value.initialize(to: initial)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        pthread_mutex_destroy(mutex)
        mutex.deinitialize(count: 1)
        mutex.deallocate()
    }

    /// Calls `body` with the value while no other thread has it. `body` must not take the same lock.
    package func withLock<R>(_ body: (inout sending Value) -> sending R) -> sending R {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body(&value.pointee)
    }
}

// MARK: - Asynchronous code on the calling thread

/// Runs `body`, and all that it awaits without an executor of its own, on the calling thread, which waits for it.
///
/// Without, such code runs on the pool of libdispatch, whose monitor wakes the process every second for its whole life.
package func runOnThisThread<Result: Sendable>(_ body: @escaping @Sendable () async -> Result) -> Result {
    let executor = CallingThreadExecutor()
    let result = Locked<Result?>(nil)
    Task(executorPreference: executor) {
        let value = await body()
        result.withLock { $0 = value }
    }
    while true {
        executor.runNext()
        if let value = result.withLock({ $0 }) { return value }
    }
}

/// Jobs for a thread that waits for them.
private final class CallingThreadExecutor: TaskExecutor, @unchecked Sendable {
    // Sendable because the semaphore is for several threads and never moves: it lives in memory of this object.
    private let count: UnsafeMutablePointer<sem_t>
    private let jobs = Locked<[UnownedJob]>([])

    init() {
        count = .allocate(capacity: 1)
        count.initialize(to: sem_t())
        sem_init(count, 0, 0)
    }

    deinit {
        sem_destroy(count)
        count.deinitialize(count: 1)
        count.deallocate()
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        sem_post(count)
    }

    /// Waits for a job, and runs it.
    func runNext() {
        while sem_wait(count) != 0 {}
        let job = jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        job?.runSynchronously(on: asUnownedTaskExecutor())
    }
}
