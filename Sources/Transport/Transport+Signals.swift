import CSystem
import Glibc

extension Transport {
    /// Calls `handler` on the loop for each of `signals` that arrives, instead of what the signal would do.
    ///
    /// Signals go through a pipe, not a signalfd: a signalfd needs them blocked in every thread, and the threads of Swift's
    /// own pool are not ours. One loop of a process may watch; a second call replaces the handler and adds signals.
    public func watchSignals(
        _ signals: [Int32], handler: @escaping (Int32, Transport) -> Void
    ) throws(TransportError) {
        guard !isShutDown else { return }
        let descriptor = cb_signal_watch(signals, Int32(clamping: signals.count))
        guard descriptor >= 0 else { throw .systemCallFailed(call: "sigaction", errno: -descriptor) }
        if signalDescriptor < 0 {
            let tag = ConnectionID.specialTag(Self.signalTag)
            let added = cb_epoll_add(executor.epoll, descriptor, CB_EPOLLIN, tag)
            guard added >= 0 else { throw .systemCallFailed(call: "epoll_ctl", errno: -added) }
            signalDescriptor = descriptor
        }
        signalHandler = handler
        watchedSignals += signals
    }

    func readSignals() {
        var numbers = [UInt8](repeating: 0, count: 64)
        let count = Glibc.read(signalDescriptor, &numbers, numbers.count)
        guard count > 0 else { return }
        for number in numbers.prefix(count) { signalHandler?(Int32(number), self) }
    }

    func unwatchSignals() {
        guard signalDescriptor >= 0 else { return }
        // From now on they do what they do by default, so that a program that hangs at its end can still be terminated.
        cb_signal_unwatch(watchedSignals, Int32(clamping: watchedSignals.count))
        watchedSignals = []
        // The pipe stays open for the process: a signal handler may be about to write to it.
        _ = cb_epoll_delete(executor.epoll, signalDescriptor)
        signalDescriptor = -1
        signalHandler = nil
    }
}
