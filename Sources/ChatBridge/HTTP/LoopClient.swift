import Transport
import WireBytes

/// Owns some of a loop's connections, beside others.
protocol LoopClient: TransportDelegate {
    func owns(_ connection: ConnectionID) -> Bool
    func owns(_ listener: ListenerID) -> Bool

    /// When ``TransportDelegate/deadlineReached(now:transport:)`` is wanted, or nil. Asked once a turn.
    func nextDeadline() -> MonotonicInstant?
}
