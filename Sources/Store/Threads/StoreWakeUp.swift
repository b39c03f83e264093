import CSystem
import Glibc

/// A wake-up for one waiting thread; one sent before the thread waits is not lost.
///
/// Waiting is by `poll`, whose time-out is a duration: it is independent of jumps of the wall clock.
final class StoreWakeUp: Sendable {
    private let descriptor: Int32

    /// Nil: the process has no descriptors left.
    init?() {
        descriptor = cb_eventfd()
        if descriptor < 0 { return nil }
    }

    deinit { cb_close(descriptor) }

    func send() { cb_eventfd_signal(descriptor) }

    /// Returns on a wake-up, after `nanoseconds`, or spuriously. Nil: no time-out.
    func wait(nanoseconds: Int64?) {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        // Rounded up: rounded down, the last millisecond would be a busy loop.
        let milliseconds = nanoseconds.map { min(max(0, $0 / 1_000_000 + ($0 % 1_000_000 > 0 ? 1 : 0)), 60_000) }
        guard poll(&entry, 1, milliseconds.map { Int32($0) } ?? -1) > 0 else { return }
        var count: UInt64 = 0
        _ = read(descriptor, &count, MemoryLayout<UInt64>.size)
    }
}

func systemErrorText(_ error: Int32) -> String { String(cString: cb_error_text(error)) }
