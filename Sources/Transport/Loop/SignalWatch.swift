import CSystem
import Glibc

/// Delivery of the process's signals to a loop.
///
/// They go through a pipe, not a signalfd: a signalfd needs them blocked in every thread, the threads of Swift's own
/// pool included.
final class SignalWatch {
    private var descriptor: Int32 = -1
    private var signals: [Int32] = []

    /// - Parameters:
    ///   - epoll: reports, under `tag`, that ``arrived()`` has signals.
    func watch(_ signals: [Int32], epoll: Int32, tag: UInt64) throws(TransportError) {
        let descriptor = cb_signal_watch(signals, Int32(clamping: signals.count))
        guard descriptor >= 0 else { throw .systemCallFailed(call: "sigaction", errno: -descriptor) }
        if self.descriptor < 0 {
            let added = cb_epoll_add(epoll, descriptor, CB_EPOLLIN, tag)
            guard added >= 0 else { throw .systemCallFailed(call: "epoll_ctl", errno: -added) }
            self.descriptor = descriptor
        }
        self.signals += signals
    }

    /// The signals that have arrived since the last call.
    func arrived() -> [Int32] {
        var numbers = [UInt8](repeating: 0, count: 64)
        let count = Glibc.read(descriptor, &numbers, numbers.count)
        return count > 0 ? numbers.prefix(count).map { Int32($0) } : []
    }

    /// Restores the signals' default actions, so that a program that hangs at its end can still be terminated.
    func end(epoll: Int32) {
        guard descriptor >= 0 else { return }
        cb_signal_unwatch(signals, Int32(clamping: signals.count))
        signals = []
        // The pipe stays open for the process: a signal handler may be about to write to it.
        _ = cb_epoll_delete(epoll, descriptor)
        descriptor = -1
    }
}
