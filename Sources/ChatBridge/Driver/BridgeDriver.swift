import BridgeCore
import ChatModel
import Transport
import WireBytes

/// Runs a ``Bridge`` on an event loop: what sockets and clocks say goes in, actions come out, and the one switch below
/// carries them out. Knows no protocol.
final class BridgeDriver: TransportDelegate {
    /// How long a closed client may take to read its last lines.
    static let clientLinger: Duration = .seconds(2)
    /// How long a backend may take to read what was written before the connection is closed.
    static let upstreamLinger: Duration = .seconds(2)

    private let bridge: Bridge
    private let sendQueueBytes: Int
    /// What a room shows to its backend, read anew at each call.
    private let credentials: (RoomID) -> Result<UpstreamCredentials, UpstreamCredentialsFailure>
    private let note: (BridgeNote) -> Void
    private var isStopped: () -> Void
    private var roomsByConnection: [ConnectionID: RoomID] = [:]
    private var connectionsByRoom: [RoomID: ConnectionID] = [:]
    private var isDeadlineStale = true
    /// An action was answered at once, which may have led to more of them.
    private var hasAnswered = false
    private var listeners: [ListenerID] = []
    private var housekeeping = Housekeeping()

    /// - Parameters:
    ///   - sendQueueBytes: more than this waiting for a client ends its connection.
    ///   - credentials: reads what a room shows to its backend; called once for each attempt of a room that has any.
    ///   - note: takes what the operator should know.
    ///   - stopped: called once, when a shutdown is complete.
    init(
        bridge: Bridge, sendQueueBytes: Int,
        credentials: @escaping (RoomID) -> Result<UpstreamCredentials, UpstreamCredentialsFailure> = { _ in
            .success(UpstreamCredentials())
        }, note: @escaping (BridgeNote) -> Void, stopped: @escaping () -> Void
    ) {
        self.bridge = bridge
        self.sendQueueBytes = sendQueueBytes
        self.credentials = credentials
        self.note = note
        self.isStopped = stopped
    }

    static func now(_ transport: Transport) -> Now {
        Now(monotonic: transport.now, wall: ChatTimestamp(milliseconds: transport.wallClockMilliseconds))
    }

    func start(_ transport: Transport, listeners: [ListenerID]) {
        self.listeners = listeners
        bridge.start(now: Self.now(transport))
        run(transport)
    }

    /// Lets nobody in any more, then stops in order. The ports are free at once, for whoever comes next.
    func shutdown(_ transport: Transport) {
        for listener in listeners { transport.closeListener(listener) }
        listeners = []
        bridge.shutdown(now: Self.now(transport))
        run(transport)
    }

    // MARK: - What the transport says

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        transport.setSendLimit(id, bytes: sendQueueBytes)
        bridge.clientOpened(
            ClientID(rawValue: id.rawValue), origin: Self.origin(of: peer), now: Self.now(transport))
        run(transport)
    }

    private static func origin(of peer: SocketAddress) -> ClientOrigin {
        // The other end of a socket file has no address of its own, and is on this machine.
        if case .unix = peer { return ClientOrigin(address: "localhost", isLocal: true) }
        return ClientOrigin(address: peer.host, isLocal: peer.isLoopback)
    }

    func connectionOpened(_ id: ConnectionID, peer: SocketAddress, transport: Transport) {
        guard let room = roomsByConnection[id] else { return }
        bridge.upstreamConnected(room, now: Self.now(transport))
        run(transport)
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        if let room = roomsByConnection[id] {
            bridge.upstreamReceived(room, bytes, now: Self.now(transport))
        } else {
            bridge.clientReceived(ClientID(rawValue: id.rawValue), bytes, now: Self.now(transport))
        }
        run(transport)
    }

    func connectionDrained(_ id: ConnectionID, transport: Transport) {
        bridge.clientDrained(ClientID(rawValue: id.rawValue), now: Self.now(transport))
        run(transport)
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        if let room = roomsByConnection.removeValue(forKey: id) {
            connectionsByRoom[room] = nil
            bridge.upstreamClosed(room, reason: end.description, now: Self.now(transport))
        } else {
            bridge.clientClosed(
                ClientID(rawValue: id.rawValue), reason: Self.quitReason(end), now: Self.now(transport))
        }
        run(transport)
    }

    private static func quitReason(_ end: StreamEnd) -> String {
        switch end {
        case .endOfStream: "Connection closed"
        case .sendQueueExceeded: "SendQ exceeded"
        default: "Connection lost: \(end)"
        }
    }

    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        if housekeeping.isDue(now) { ProcessMemory.releaseFreed() }
        bridge.timerFired(now: Self.now(transport))
        run(transport)
    }

    func turnWillFlush(now: MonotonicInstant, transport: Transport) {
        guard isDeadlineStale else { return }
        isDeadlineStale = false
        let deadlines = [bridge.nextDeadline(), housekeeping.nextDeadline(now)]
        transport.setDeadline(deadlines.compactMap { $0 }.min())
    }

    func acceptSuspended(_ listener: ListenerID, errno: Int32, transport: Transport) {
        note(
            BridgeNote(
                .error, "accept-suspended", "no more connections can be taken: too many files are open",
                ["errno": String(errno)]))
    }

    // MARK: - What the bridge wants

    private func run(_ transport: Transport) {
        isDeadlineStale = true
        repeat {
            hasAnswered = false
            let actions = bridge.takeActions()
            housekeeping.worked(actions.count)
            for action in actions { run(action, transport) }
        } while hasAnswered
    }

    private func tlsIsMissing(_ room: RoomID, _ transport: Transport) {
        hasAnswered = true
        bridge.upstreamClosed(room, reason: "this version has no TLS", now: Self.now(transport))
    }

    private func run(_ action: BridgeAction, _ transport: Transport) {
        switch action {
        case .send(let client, let slice):
            transport.send(ConnectionID(rawValue: client.rawValue), slice)
        case .fanOut(let slice, let clients, let except):
            for client in clients where client != except {
                transport.send(ConnectionID(rawValue: client.rawValue), slice)
            }
        case .notifyWhenDrained(let client):
            transport.notifyWhenDrained(ConnectionID(rawValue: client.rawValue))
        case .pauseReading(let client): transport.pauseReading(ConnectionID(rawValue: client.rawValue))
        case .resumeReading(let client): transport.resumeReading(ConnectionID(rawValue: client.rawValue))
        case .closeClient(let client):
            transport.closeAfterFlush(ConnectionID(rawValue: client.rawValue), linger: Self.clientLinger)
        case .readCredentials(let room):
            hasAnswered = true
            bridge.credentialsRead(room, credentials(room), now: Self.now(transport))
        case .connectUpstream(let room, let endpoint, let isSecure, let timeout):
            guard !isSecure else { return tlsIsMissing(room, transport) }
            let id =
                switch endpoint {
                case .host(let host, let port): transport.connect(host: host, port: port, timeout: timeout)
                case .unix(let path): transport.connect(to: .unix(path: path), timeout: timeout)
                }
            roomsByConnection[id] = room
            connectionsByRoom[room] = id
        case .startTLS(let room, _):
            if let id = connectionsByRoom.removeValue(forKey: room) {
                roomsByConnection[id] = nil
                transport.abort(id, silently: true)
            }
            tlsIsMissing(room, transport)
        case .sendUpstream(let room, let slice):
            if let id = connectionsByRoom[room] { transport.send(id, slice) }
        case .closeUpstream(let room, let flush):
            // From here on the connection is nobody's: its end is no news to the bridge.
            guard let id = connectionsByRoom.removeValue(forKey: room) else { break }
            roomsByConnection[id] = nil
            if flush {
                transport.closeAfterFlush(id, linger: Self.upstreamLinger)
            } else {
                transport.abort(id, silently: true)
            }
        case .note(let note): self.note(note)
        case .stopped:
            isStopped()
            isStopped = {}
        }
    }
}

/// When to give freed memory back: a storm of joins or a large NAMES leaves the heap full of holes, and an idle client
/// would go on costing what it cost at the worst moment.
struct Housekeeping {
    /// Actions after which there may be something to give back.
    static let enoughWork = 2000
    /// How often to look whether the moment is quiet. The heap is walked then, which takes milliseconds.
    static let interval: Duration = .seconds(5)
    /// Fewer actions than this in an interval: quiet.
    static let quiet = 200

    private var work = 0
    private var workAtLook = 0
    private var lookAt: MonotonicInstant?

    mutating func worked(_ actions: Int) { work += actions }

    mutating func nextDeadline(_ now: MonotonicInstant) -> MonotonicInstant? {
        if lookAt == nil, work >= Self.enoughWork {
            workAtLook = work
            lookAt = now + Self.interval
        }
        return lookAt
    }

    /// Whether to give back now.
    mutating func isDue(_ now: MonotonicInstant) -> Bool {
        guard let due = lookAt, now >= due else { return false }
        guard work - workAtLook < Self.quiet else {
            workAtLook = work
            lookAt = now + Self.interval
            return false
        }
        lookAt = nil
        work = 0
        return true
    }
}
