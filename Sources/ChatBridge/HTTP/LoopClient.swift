import Transport
import WireBytes

/// Owns some of a loop's connections, beside others.
protocol LoopClient: TransportDelegate {
    func owns(_ connection: ConnectionID) -> Bool
    func owns(_ listener: ListenerID) -> Bool

    /// When ``TransportDelegate/deadlineReached(now:transport:)`` is wanted, or nil. Asked once a turn.
    func nextDeadline() -> MonotonicInstant?
}

/// Lives on a loop for its time alone.
protocol ConnectionlessLoopClient: LoopClient {}

extension ConnectionlessLoopClient {
    func owns(_ connection: ConnectionID) -> Bool { false }
    func owns(_ listener: ListenerID) -> Bool { false }
    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {}
    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {}
    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {}
}
