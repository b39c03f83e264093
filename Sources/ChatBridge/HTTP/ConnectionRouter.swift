import Transport
import WireBytes

/// Shares one loop between the bridge and other clients: routes events to the owners of connections.
///
/// The bridge owns all unclaimed connections. A loop has one deadline; the router sets the earliest of all.
final class ConnectionRouter: BridgeLoop {
    let bridge: BridgeDriver
    var host: any BridgeHost { bridge }
    let httpServer: HTTPServer
    let serviceManager: ServiceManagerClient?
    /// The admin socket, where there is one.
    let admin: AdminServer?
    private let clients: [any LoopClient]
    /// Called at the end of each turn of the loop.
    var turnEnded: (Transport) -> Void = { _ in }
    /// Called when the program that runs the loop waits no longer.
    var patienceEnded: (Transport) -> Void = { _ in }

    /// - Parameter others: more clients of the loop, such as an ``HTTPClient``.
    init(
        bridge: BridgeDriver, httpServer: HTTPServer, serviceManager: ServiceManagerClient? = nil,
        admin: AdminServer? = nil, others: [any LoopClient] = []
    ) {
        self.bridge = bridge
        self.httpServer = httpServer
        self.serviceManager = serviceManager
        self.admin = admin
        // Last, so that it hears of what the others did in a turn.
        clients = [httpServer] + (admin.map { [$0] } ?? []) + others + (serviceManager.map { [$0] } ?? [])
    }

    private func owner(_ id: ConnectionID) -> any TransportDelegate {
        for client in clients where client.owns(id) { return client }
        return bridge
    }

    private func owner(_ listener: ListenerID) -> any TransportDelegate {
        for client in clients where client.owns(listener) { return client }
        return bridge
    }

    /// The address of an IRC or HTTP listener as it is configured.
    func label(of listener: ListenerID) -> String? {
        bridge.listeners[listener]?.label ?? httpServer.label(of: listener)
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
        for client in clients { client.deadlineReached(now: now, transport: transport) }
    }

    func turnWillFlush(now: MonotonicInstant, transport: Transport) {
        bridge.turnWillFlush(now: now, transport: transport)
        for client in clients { client.turnWillFlush(now: now, transport: transport) }
        // Last, because one client's event may concern another.
        var next = bridge.nextDeadline(now: now)
        for client in clients {
            guard let deadline = client.nextDeadline() else { continue }
            next = next.map { min($0, deadline) } ?? deadline
        }
        transport.setDeadline(next)
        turnEnded(transport)
    }

    func handshakeFailed(_ end: StreamEnd, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        bridge.handshakeFailed(end, listener: listener, peer: peer, transport: transport)
    }

    func proxyHeaderFailed(
        _ failure: ProxyHeaderFailure, listener: ListenerID, peer: SocketAddress, transport: Transport
    ) {
        owner(listener).proxyHeaderFailed(failure, listener: listener, peer: peer, transport: transport)
    }

    func certificatesChanged(_ user: CertificateUser, error: TLSSetupError?, transport: Transport) {
        bridge.certificatesChanged(user, error: error, transport: transport)
    }

    func acceptSuspended(_ listener: ListenerID, errno: Int32, transport: Transport) {
        owner(listener).acceptSuspended(listener, errno: errno, transport: transport)
    }
}

extension Transport {
    /// The driver of the bridge on this loop, while it exists.
    var bridgeDriver: BridgeDriver? { (delegate as? ConnectionRouter)?.bridge }
}
