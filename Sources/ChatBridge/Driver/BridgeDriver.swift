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

    let bridge: Bridge
    private let sendQueueBytes: Int
    private let note: (BridgeNote) -> Void
    private var isStopped: () -> Void
    private var roomsByConnection: [ConnectionID: RoomID] = [:]
    private var connectionsByRoom: [RoomID: ConnectionID] = [:]
    private var listeners: [ListenerID] = []
    private var housekeeping = Housekeeping()

    /// - Parameters:
    ///   - sendQueueBytes: more than this waiting for a client ends its connection.
    ///   - note: takes what the operator should know.
    ///   - stopped: called once, when a shutdown is complete.
    init(bridge: Bridge, sendQueueBytes: Int, note: @escaping (BridgeNote) -> Void, stopped: @escaping () -> Void) {
        self.bridge = bridge
        self.sendQueueBytes = sendQueueBytes
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
            ClientID(rawValue: id.rawValue), origin: ClientOrigin(address: peer.host, isLocal: peer.isLoopback),
            now: Self.now(transport))
        run(transport)
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

    /// When ``deadlineReached(now:transport:)`` is wanted. The loop has one deadline, which ``LoopHouse`` keeps.
    func nextDeadline(_ now: MonotonicInstant) -> MonotonicInstant? {
        let next = bridge.nextDeadline()
        guard let look = housekeeping.nextDeadline(now) else { return next }
        return next.map { min($0, look) } ?? look
    }

    func acceptSuspended(_ listener: ListenerID, errno: Int32, transport: Transport) {
        note(
            BridgeNote(
                .error, "accept-suspended", "no more connections can be taken: too many files are open",
                ["errno": String(errno)]))
    }

    // MARK: - What the bridge wants

    private func run(_ transport: Transport) {
        let actions = bridge.takeActions()
        housekeeping.worked(actions.count)
        for action in actions { run(action, transport) }
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
        case .connectUpstream(let room, let host, let port, let timeout):
            let id = transport.connect(host: host, port: port, timeout: timeout)
            roomsByConnection[id] = room
            connectionsByRoom[room] = id
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
