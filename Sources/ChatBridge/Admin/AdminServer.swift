import BridgeTypes
import Glibc
import Transport
import WireBytes

/// The admin socket on the bridge's loop: connections, and requests one after the other.
final class AdminServer: LoopClient {
    /// How long the last line for a client may take to leave.
    private static let closeLinger: Duration = .seconds(2)

    private final class Peer {
        let user: UInt32
        var input = AdminInput()
        /// Requests behind the one that is being answered.
        var waiting: [[UInt8]] = []
        var running: AdminExchange?
        /// Half-closed: it sends no more, and is closed after the last answer.
        var hasEnded = false

        init(user: UInt32) { self.user = user }
    }

    let service: AdminService
    private let note: (BridgeNote) -> Void
    private var listener: ListenerID?
    private var peers: [ConnectionID: Peer] = [:]
    /// Closing: their last bytes leave, nothing else happens to them.
    private var leaving: Set<ConnectionID> = []

    init(_ service: AdminService, note: @escaping (BridgeNote) -> Void) {
        self.service = service
        self.note = note
    }

    /// Opens the socket file. One that a dead process left behind is replaced.
    func listen(path: String, mode: UInt32, _ transport: Transport) throws(TransportError) {
        listener = try transport.listen(ListenOptions(.unix(path: path, mode: mode))).0
    }

    /// Closes the socket file and all connections.
    func close(_ transport: Transport) {
        if let listener { transport.closeListener(listener) }
        listener = nil
        for (id, peer) in peers {
            peer.running?.close()
            leave(id, transport)
        }
        peers = [:]
    }

    // MARK: - Events of the transport

    func owns(_ connection: ConnectionID) -> Bool {
        (!peers.isEmpty && peers[connection] != nil) || (!leaving.isEmpty && leaving.contains(connection))
    }

    func owns(_ listener: ListenerID) -> Bool { self.listener == listener }

    func nextDeadline() -> MonotonicInstant? { nil }

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        transport.setSendLimit(id, bytes: AdminLimits.sendQueueBytes)
        // The file's mode may let other users connect; they get a reason.
        guard let user = transport.peerUser(id), user == geteuid() || user == 0 else {
            note(BridgeNote(.warn, "admin-refused", "another user's process asked at the admin socket"))
            return refuse(id, "the admin socket is for the user that runs the bridge, and for root", transport)
        }
        guard peers.count < AdminLimits.maxConnections else {
            return refuse(id, "too many connections to the admin socket", transport)
        }
        peers[id] = Peer(user: user)
    }

    private func refuse(_ id: ConnectionID, _ message: String, _ transport: Transport) {
        let line = AdminLine.error(AdminFailure(.refused, message)).bytes
        transport.send(id, line.withUnsafeBytes { ByteSlice(copying: $0) })
        leave(id, transport)
    }

    private func leave(_ id: ConnectionID, _ transport: Transport) {
        peers[id] = nil
        leaving.insert(id)
        transport.closeAfterFlush(id, linger: Self.closeLinger)
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        guard let peer = peers[id] else { return }
        guard let lines = peer.input.received(bytes) else {
            peer.running?.close()
            return refuse(id, "a request has at most \(AdminLimits.maxRequestBytes) bytes", transport)
        }
        peer.waiting += lines
        guard peer.waiting.count <= AdminLimits.maxWaiting else {
            peer.running?.close()
            return refuse(id, "at most \(AdminLimits.maxWaiting) requests may wait", transport)
        }
        goOn(id, peer, transport)
    }

    func connectionDrained(_ id: ConnectionID, transport: Transport) { peers[id]?.running?.drained() }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        leaving.remove(id)
        guard let peer = peers[id] else { return }
        if case .endOfStream = end, peer.running?.isStream != true {
            if let rest = peer.input.rest() { peer.waiting.append(rest) }
            if peer.running != nil || !peer.waiting.isEmpty {
                peer.hasEnded = true
                transport.continueHalfClosed(id)
                return goOn(id, peer, transport)
            }
        }
        peers[id] = nil
        peer.running?.close()
    }

    // MARK: - Requests

    /// The answer is complete.
    func completed(_ id: ConnectionID, _ transport: Transport) {
        guard let peer = peers[id] else { return }
        peer.running = nil
        goOn(id, peer, transport)
    }

    private func goOn(_ id: ConnectionID, _ peer: Peer, _ transport: Transport) {
        while peer.running == nil, !peer.waiting.isEmpty, peers[id] === peer {
            answer(peer.waiting.removeFirst(), id, peer, transport)
        }
        if peer.hasEnded, peer.running == nil, peers[id] === peer { leave(id, transport) }
    }

    private func answer(_ line: [UInt8], _ id: ConnectionID, _ peer: Peer, _ transport: Transport) {
        do throws(AdminFailure) {
            let call = try AdminCall(line: line)
            let row = AdminTable.row(call.request)
            let exchange = AdminExchange(self, id, isStream: row.streams, transport)
            peer.running = exchange
            if row.isLogged {
                note(
                    BridgeNote(
                        .info, "admin-request", "an administrator asked at the admin socket: \(row.summary)",
                        [
                            "request": call.request.rawValue, "user": String(peer.user),
                            "room": call.text("room") ?? "", "client": call.number("id").map { String($0) } ?? "",
                        ]))
            }
            row.handle(service, call, exchange)
        } catch {
            let exchange = AdminExchange(self, id, transport)
            peer.running = exchange
            exchange.fail(error.code, error.message)
        }
    }
}

extension Transport {
    /// The admin socket of the bridge on this loop.
    var adminServer: AdminServer? { (delegate as? ConnectionRouter)?.admin }
}
