import CSystem
import Glibc

/// A value that several threads share under one mutex. Nothing blocks while it is held.
///
/// `Synchronization.Mutex` would do, but its library is not instrumented, so the thread sanitizer reports false races.
final class StoreLock<Value: Sendable>: @unchecked Sendable {
    // Sendable because `value` is reached only between lock and unlock, and neither the mutex nor the value ever moves:
    // both live in memory that this object allocated and frees.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let value: UnsafeMutablePointer<Value>

    init(_ initial: Value) {
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

    func withLock<R>(_ body: (inout Value) -> R) -> R {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body(&value.pointee)
    }
}

/// Wakes one thread that waits for it; a call before the thread waits is not lost.
///
/// Waiting goes by `poll`, whose time-out is a duration: it keeps its length when the wall clock jumps.
final class StoreBell: Sendable {
    private let descriptor: Int32

    /// Nil: the process has no descriptors left.
    init?() {
        descriptor = cb_eventfd()
        if descriptor < 0 { return nil }
    }

    deinit { cb_close(descriptor) }

    func ring() { cb_eventfd_signal(descriptor) }

    /// Returns when the bell was rung, after `nanoseconds`, and now and then without a reason. Nil: no time-out.
    func wait(nanoseconds: Int64?) {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        // Rounded up: rounded down, the last millisecond would be waited away in circles.
        let milliseconds = nanoseconds.map { min(max(0, $0 / 1_000_000 + ($0 % 1_000_000 > 0 ? 1 : 0)), 60_000) }
        guard poll(&entry, 1, milliseconds.map { Int32($0) } ?? -1) > 0 else { return }
        var count: UInt64 = 0
        _ = read(descriptor, &count, MemoryLayout<UInt64>.size)
    }
}

/// Starts a thread that runs `body` and is nobody's to join; false when none can be made.
func startStoreThread(name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
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
        return false
    }
    cb_thread_detach(thread)
    return true
}

func systemErrorText(_ error: Int32) -> String { String(cString: cb_error_text(error)) }
