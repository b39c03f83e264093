import Transport
import WireBytes

/// Owns some of a loop's connections, beside others.
protocol LoopTenant: TransportDelegate {
    func owns(_ connection: ConnectionID) -> Bool
    func owns(_ listener: ListenerID) -> Bool

    /// When ``TransportDelegate/deadlineReached(now:transport:)`` is wanted, or nil. Asked once a turn.
    func nextDeadline() -> MonotonicInstant?
}

/// One loop for the bridge and everything that lives beside it: tells each owner of its own connections.
///
/// The bridge has what nobody else claims. A loop has one deadline; the house keeps the earliest of all.
final class LoopHouse: TransportDelegate {
    let bridge: BridgeDriver
    let httpServer: HTTPServer
    private let guests: [any LoopTenant]

    /// - Parameter others: more tenants, such as an ``HTTPClient``.
    init(bridge: BridgeDriver, httpServer: HTTPServer, others: [any LoopTenant] = []) {
        self.bridge = bridge
        self.httpServer = httpServer
        guests = [httpServer] + others
    }

    private func owner(_ id: ConnectionID) -> any TransportDelegate {
        for guest in guests where guest.owns(id) { return guest }
        return bridge
    }

    private func owner(_ listener: ListenerID) -> any TransportDelegate {
        for guest in guests where guest.owns(listener) { return guest }
        return bridge
    }

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        owner(listener).connectionAccepted(id, listener: listener, peer: peer, transport: transport)
    }

    func connectionOpened(_ id: ConnectionID, peer: SocketAddress, transport: Transport) {
        owner(id).connectionOpened(id, peer: peer, transport: transport)
    }

    func connectionSecured(_ id: ConnectionID, transport: Transport) {
        owner(id).connectionSecured(id, transport: transport)
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        owner(id).connectionReceived(id, bytes, transport: transport)
    }

    func connectionDrained(_ id: ConnectionID, transport: Transport) {
        owner(id).connectionDrained(id, transport: transport)
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        owner(id).connectionClosed(id, end, transport: transport)
    }

    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        bridge.deadlineReached(now: now, transport: transport)
        for guest in guests { guest.deadlineReached(now: now, transport: transport) }
    }

    func turnWillFlush(now: MonotonicInstant, transport: Transport) {
        bridge.turnWillFlush(now: now, transport: transport)
        for guest in guests { guest.turnWillFlush(now: now, transport: transport) }
        // Last, because what a guest brings may lead the bridge to another one.
        var next = bridge.nextDeadline(now: now)
        for guest in guests {
            guard let deadline = guest.nextDeadline() else { continue }
            next = next.map { min($0, deadline) } ?? deadline
        }
        transport.setDeadline(next)
    }

    func handshakeFailed(_ end: StreamEnd, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        owner(listener).handshakeFailed(end, listener: listener, peer: peer, transport: transport)
    }

    func announcementFailed(
        _ failure: AnnouncementFailure, listener: ListenerID, peer: SocketAddress, transport: Transport
    ) {
        owner(listener).announcementFailed(failure, listener: listener, peer: peer, transport: transport)
    }

    func certificatesChanged(_ user: CertificateUser, error: TLSSetupError?, transport: Transport) {
        bridge.certificatesChanged(user, error: error, transport: transport)
    }

    func acceptSuspended(_ listener: ListenerID, errno: Int32, transport: Transport) {
        owner(listener).acceptSuspended(listener, errno: errno, transport: transport)
    }
}
