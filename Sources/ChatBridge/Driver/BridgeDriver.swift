import Accounts
import BridgeCore
import BridgeTypes
import ChatModel
import Configuration
import IRCServer
import Rooms
import Transport
import Upstream
import WireBytes

/// Runs a ``Bridge`` on an event loop: events of sockets and clocks go in, actions come out, and the one switch below
/// carries them out. Knows no protocol.
final class BridgeDriver: TransportDelegate, BridgeHost {
    /// How long a closed client may take to read its last lines.
    static let clientLinger: Duration = .seconds(2)
    /// How long a backend may take to read the last bytes before the connection is closed.
    static let upstreamLinger: Duration = .seconds(2)

    /// Passwords checked at a time. Each takes a core for a good part of a second; the loop and the rest need theirs.
    static let passwordThreads = 2
    /// Passwords that wait for a thread; with more, the last would wait longer than clients do.
    static let maxWaitingPasswords = 64

    let bridge: Bridge
    private let sendQueueBytes: Int
    /// A room's credentials, read anew at each call.
    private var credentials: (RoomID) -> Result<UpstreamCredentials, UpstreamCredentialsFailure>
    /// Nil where nothing is known of the room.
    private var upstreamTLS: (RoomID) -> TLSClientSettings?
    /// Rooms whose connection begins TLS behind a proxy.
    private var securing: Set<RoomID> = []
    private var handshakeNotes = NoteRateLimiter()
    private var strangerNotes = NoteRateLimiter()
    private let note: (BridgeNote) -> Void
    private var isStopped: () -> Void
    private var roomsByConnection: [ConnectionID: RoomID] = [:]
    private var connectionsByRoom: [RoomID: ConnectionID] = [:]
    private(set) var listeners: [ListenerID: ClientListener] = [:]
    var webSockets = WebSocketClients()
    /// A message of a WebSocket on its way to the bridge.
    var lineFromWebSocket: [UInt8] = []
    /// People with a terminal, and connections that may be one.
    var plain = PlainClients()
    /// An action was answered at once, which may have led to more of them.
    var hasAnswered = false
    private let loop: NetworkLoop
    private let passwordWorkers = WorkPool(
        name: "passwords", maxThreads: BridgeDriver.passwordThreads, maxWaiting: BridgeDriver.maxWaitingPasswords)
    private var housekeeping = Housekeeping()
    /// Bytes and failures below the bridge, for the operator.
    private(set) var traffic = DriverTraffic()
    private let backends: BackendDriver
    private let store: StoreDriver?
    /// Files over HTTP, where they are served.
    private(set) var media: MediaRoutes?
    /// Rooms in tools elsewhere.
    private(set) var mirrors: MirrorService?

    /// - Parameters:
    ///   - loop: where the driver lives; answers of other threads come back through it.
    ///   - sendQueueBytes: more than this waiting for a client ends its connection.
    ///   - upstreamTLS: how each room's connection is secured where its URL says so.
    ///   - backends: asks backends beside the sockets; its client must live on the same loop. Nil: none can be asked.
    ///   - store: the persistent storage; nil: there is none, and the bridge must know of it too.
    ///   - credentials: reads a room's credentials; called once for each attempt of a room that has any.
    ///   - note: receives messages for the operator.
    ///   - stopped: called once, when a shutdown is complete.
    init(
        bridge: Bridge, loop: NetworkLoop, sendQueueBytes: Int,
        upstreamTLS: @escaping (RoomID) -> TLSClientSettings? = { _ in nil },
        backends: BackendDriver? = nil, store: StoreDriver? = nil,
        credentials: @escaping (RoomID) -> Result<UpstreamCredentials, UpstreamCredentialsFailure> = { _ in
            .success(UpstreamCredentials())
        }, note: @escaping (BridgeNote) -> Void, stopped: @escaping () -> Void
    ) {
        self.bridge = bridge
        self.loop = loop
        self.upstreamTLS = upstreamTLS
        self.sendQueueBytes = sendQueueBytes
        self.backends =
            backends
            ?? BackendDriver(loop: loop, names: [], places: [:], store: TokenStore(stateDirectory: "")) { _ in
                .failure(UpstreamCredentialsFailure("there are no secrets"))
            }
        self.store = store
        self.credentials = credentials
        self.note = note
        self.isStopped = stopped
    }

    /// A room's connection to its backend, while there is one.
    func connection(of room: RoomID) -> ConnectionID? { connectionsByRoom[room] }

    /// Has files served over HTTP.
    func serve(_ media: MediaRoutes) { self.media = media }

    /// Has rooms mirrored.
    func serve(_ mirrors: MirrorService) { self.mirrors = mirrors }

    func start(_ transport: Transport, listeners: [ListenerID: ClientListener]) {
        self.listeners = listeners
        bridge.start(now: Now(transport))
        run(transport)
    }

    /// Stops in order.
    func shutdown(_ transport: Transport) {
        bridge.shutdown(now: Now(transport))
        run(transport)
    }

    /// Stops accepting clients. The ports are free at once for a successor.
    private func closeListeners(_ transport: Transport) {
        for listener in listeners.keys { transport.closeListener(listener) }
        listeners = [:]
        for id in webSockets.openings.keys {
            webSockets.endOpening(id)
            transport.abort(id, silently: true)
        }
    }

    /// Puts another configuration in force.
    ///
    /// - Parameters:
    ///   - reconnecting: names of rooms whose links are opened anew.
    ///   - changed: names of the backends that are new, or have other settings.
    func reload(_ plan: BridgePlan, reconnecting: Set<String>, backends changed: Set<String>, _ transport: Transport) {
        (credentials, upstreamTLS) = plan.access(to: bridge)
        bridge.reload(plan.settings, reconnecting: reconnecting, backends: changed, now: Now(transport))
        plan.equip(backends, names: bridge.backendNames)
        run(transport)
        mirrors?.take(plan.mirrors, now: transport.now, transport)
    }

    /// False: the backend's account has no stored tokens.
    func removeTokens(_ backend: String) -> Bool { backends.removeTokens(backend) }

    /// Reads the certificates of all listeners of the loop again, changed or not.
    func reloadCertificates(_ transport: Transport) {
        for listener in transport.securedListeners {
            do throws(TLSSetupError) {
                if try transport.reloadCertificates(listener) { noteCertificates(.listener(listener), nil) }
            } catch {
                noteCertificates(.listener(listener), error)
            }
        }
    }

    /// Counts what waits for each client now.
    func observeSendQueues(_ transport: Transport) {
        for client in bridge.clientIDs { traffic.observe(sendQueue: transport.queuedByteCount(client.connection)) }
    }

    // MARK: - Events of the transport

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        guard let known = listeners[listener] else { return transport.abort(id, silently: true) }
        transport.setSendLimit(id, bytes: sendQueueBytes)
        if known.site != nil { return beginWebSocket(id, listener, known, peer: peer, transport) }
        let name = known.sts == nil ? nil : transport.requestedServerName(id)
        var origin = known.origin(of: peer, requestedName: name)
        origin.security = Self.security(of: id, transport)
        bridge.clientOpened(id.client, origin: origin, now: Now(transport))
        if known.isForPeople { plain.open(id, now: transport.now) }
        run(transport)
    }

    static func security(of id: ConnectionID, _ transport: Transport) -> ClientOrigin.Security {
        guard transport.securityDescription(id) != nil else { return .plain }
        return transport.peerCertificateFingerprint(id).map { .certified($0) } ?? .encrypted
    }

    func connectionOpened(_ id: ConnectionID, peer: SocketAddress, transport: Transport) {
        guard let room = roomsByConnection[id] else { return }
        bridge.upstreamConnected(room, now: Now(transport))
        run(transport)
    }

    func connectionSecured(_ id: ConnectionID, transport: Transport) {
        guard let room = roomsByConnection[id], securing.remove(room) != nil else { return }
        bridge.upstreamSecured(room, now: Now(transport))
        run(transport)
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        if let room = roomsByConnection[id] {
            traffic.upstreamReceived(bytes.count)
            bridge.upstreamReceived(room, bytes, now: Now(transport))
        } else if !webSockets.isEmpty, let peer = webSockets.peers[id] {
            traffic.clientReceived(bytes.count)
            return webSocketReceived(id, peer, bytes, transport)
        } else if !webSockets.isEmpty, let place = webSockets.place(ofOpening: id) {
            return openingReceived(id, place.listener, place.peer, bytes, transport)
        } else {
            traffic.clientReceived(bytes.count)
            if !plain.isEmpty, plainReceived(id, bytes, transport) { return run(transport) }
            bridge.clientReceived(id.client, bytes, now: Now(transport))
        }
        run(transport)
    }

    func connectionDrained(_ id: ConnectionID, transport: Transport) {
        bridge.clientDrained(id.client, now: Now(transport))
        run(transport)
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        if let room = roomsByConnection.removeValue(forKey: id) {
            connectionsByRoom[room] = nil
            securing.remove(room)
            bridge.upstreamClosed(room, reason: end.description, now: Now(transport))
        } else if webSockets.endOpening(id) != nil {
            return
        } else {
            let isWebSocket = webSockets.peers[id] != nil
            webSockets.remove(id)
            if plainClosed(id, end, transport) { return run(transport) }
            clientClosed(id.client, end, isWebSocket: isWebSocket, transport)
        }
        run(transport)
    }

    /// Half-closed connections: scripts end their sending side at once and may still read. A WebSocket has a Close of
    /// its own, behind which nothing may be sent.
    private func clientClosed(_ client: ClientID, _ end: StreamEnd, isWebSocket: Bool, _ transport: Transport) {
        switch end {
        case .endOfStream where !isWebSocket, .tlsTruncated where !isWebSocket:
            if bridge.clientEnded(client, now: Now(transport)) {
                transport.continueHalfClosed(ConnectionID(rawValue: client.rawValue))
            }
        default: bridge.clientClosed(client, reason: Self.quitReason(end), now: Now(transport))
        }
    }

    private static func quitReason(_ end: StreamEnd) -> String {
        switch end {
        // Many IRC clients leave without TLS's goodbye; to the others in the room that is no different.
        case .endOfStream, .tlsTruncated: "Connection closed"
        case .sendQueueExceeded: "SendQ exceeded"
        default: "Connection lost: \(end)"
        }
    }

    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        if housekeeping.isDue(now) { ProcessMemory.releaseFreed() }
        endLateOpenings(transport)
        if !plain.isEmpty { plainTimersFired(transport) }
        bridge.timerFired(now: Now(transport))
        run(transport)
    }

    /// When ``deadlineReached(now:transport:)`` is wanted. The loop has one deadline, which ``ConnectionRouter``
    /// maintains.
    func nextDeadline(now: MonotonicInstant) -> MonotonicInstant? {
        MonotonicInstant.earlier(
            MonotonicInstant.earlier(bridge.nextDeadline(), housekeeping.nextDeadline(now)),
            MonotonicInstant.earlier(webSockets.nextDeadline(), plain.nextDeadline()))
    }

    func acceptSuspended(_ listener: ListenerID, errno: Int32, transport: Transport) {
        note(
            BridgeNote(
                .error, "accept-suspended", "no more connections can be taken: too many files are open",
                ["errno": String(errno)]))
    }

    func handshakeFailed(_ end: StreamEnd, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        traffic.handshakeFailed(listeners[listener]?.label ?? "")
        guard let left = handshakeNotes.take(transport.now) else { return }
        note(
            BridgeNote(
                .info, "client-handshake-failed", "a client's TLS handshake failed: \(end)",
                ["peer": peer.host, "more": left > 0 ? "" : "not logged for a while"]))
    }

    func proxyHeaderFailed(
        _ failure: ProxyHeaderFailure, listener: ListenerID, peer: SocketAddress, transport: Transport
    ) {
        noteSparingly(
            .warn, "client-proxy-refused", "a connection to a listener behind a proxy was dropped: \(failure.sentence)",
            peer, transport)
    }

    /// Logs events that strangers can cause at will, with a rate limit.
    func noteSparingly(
        _ level: BridgeNote.Level, _ event: String, _ text: String, _ peer: SocketAddress, _ transport: Transport
    ) {
        guard let left = strangerNotes.take(transport.now) else { return }
        note(BridgeNote(level, event, text, ["peer": peer.host, "more": left > 0 ? "" : "not logged for a while"]))
    }

    func certificatesChanged(_ user: CertificateUser, error: TLSSetupError?, transport: Transport) {
        noteCertificates(user, error)
    }

    private func noteCertificates(_ user: CertificateUser, _ error: TLSSetupError?) {
        let whose =
            switch user {
            case .listener: "listener"
            case .client(let files): files.joined(separator: ", ")
            }
        if let error {
            note(
                BridgeNote(
                    .error, "accept-certificate-kept",
                    "cannot load the changed certificate, the old one stays in use: \(error)",
                    ["for": whose]))
        } else {
            note(
                BridgeNote(
                    .info, "accept-certificate-renewed", "a changed certificate is in force for new connections",
                    ["for": whose]))
        }
    }

    // MARK: - Actions of the bridge

    func run(_ transport: Transport) {
        repeat {
            hasAnswered = false
            let actions = bridge.takeActions()
            housekeeping.worked(actions.count)
            for action in actions { run(action, transport) }
        } while hasAnswered
        if bridge.latency.isTurnOpen { bridge.turnEnded(at: SystemClock.monotonic()) }
        continueResumed(transport)
    }

    /// How a room's connection is secured. Where settings are missing the strict ones count: never none.
    private func tlsSettings(_ room: RoomID) -> TLSClientSettings {
        upstreamTLS(room) ?? UpstreamTLSConfiguration().settings()
    }

    private func run(_ action: BridgeAction, _ transport: Transport) {
        switch action {
        case .send(let client, let slice):
            traffic.clientSent(slice.count)
            if !plain.isEmpty, let peer = plain.peers[client.connection] {
                return showPlain(peer, client.connection, slice, transport)
            }
            transport.send(client.connection, webSockets.form(slice, for: client.connection))
        case .fanOut(let slice, let clients, let except):
            traffic.clientSent(slice.count * clients.count)
            guard webSockets.peers.isEmpty, plain.peers.isEmpty else {
                return fanOut(slice, clients, except, transport)
            }
            for client in clients where client != except {
                transport.send(client.connection, slice)
            }
        case .notifyWhenDrained(let client):
            transport.notifyWhenDrained(client.connection)
        case .pauseReading(let client): pauseReading(client.connection, transport)
        case .resumeReading(let client): resumeReading(client.connection, transport)
        case .closeClient(let client):
            closeWebSocket(client.connection, transport)
            transport.closeAfterFlush(client.connection, linger: Self.clientLinger)
        case .readCredentials(let room, _):
            hasAnswered = true
            bridge.credentialsRead(room, credentials(room), now: Now(transport))
        case .readTokens(let id):
            backends.readTokens(id) { tokens, transport in
                transport.tellBridge { $0.tokensRead(id, tokens, now: $1) }
            }
        case .saveTokens(let id, let tokens):
            backends.saveTokens(id, tokens) { outcome, transport in
                transport.tellBridge { $0.tokensSaved(id, outcome, now: $1) }
            }
        case .readSecrets(let id):
            backends.readSecrets(id) { outcome, transport in
                transport.tellBridge { $0.secretsRead(id, outcome, now: $1) }
            }
        case .callBackend(let call, let order):
            backends.call(order, transport) { outcome, transport in
                transport.tellBridge { $0.backendAnswered(call, order.backend, outcome, now: $1) }
            }
        case .connectUpstream(let room, let endpoint, let isSecure, let timeout):
            connect(room, to: endpoint, isSecure: isSecure, timeout: timeout, transport)
        case .startTLS(let room, let host):
            guard let id = connectionsByRoom[room] else { break }
            securing.insert(room)
            transport.startTLS(id, tlsSettings(room), host: host)
        case .sendUpstream(let room, let slice):
            traffic.upstreamSent(slice.count)
            if let id = connectionsByRoom[room] { transport.send(id, slice) }
        case .closeUpstream(let room, let flush): closeUpstream(room, flush: flush, transport)
        case .checkPassword(let check): run(check, transport)
        case .hashPassword(let hashing): run(hashing, transport)
        case .store(let ticket, let changes): store?.keep(ticket, changes, on: loop)
        case .loadRoom(let room, let key): store?.loadRoom(room, key, on: loop)
        case .readMessages(let id, let key, let after, let through, let limit):
            store?.readMessages(id, key, after: after, through: through, limit: limit, on: loop)
        case .findPlaces(let id, let key, let query): store?.findPlaces(id, key, query, on: loop)
        case .searchMessages(let id, let key, let search): store?.searchMessages(id, key, search, on: loop)
        case .keepFile(let file): media?.files.keep(file)
        case .logged(let room): mirrors?.logged(room)
        case .mirrored(let known): mirrors?.arrived(known)
        case .mirrorRefused(let room, let tags): mirrors?.refused(tags, in: room, transport)
        case .typing(let room, let nick, let isTyping): mirrors?.typed(nick, isTyping, in: room, transport)
        case .storeUpload(let id, let file): media?.files.store(id, file)
        case .keepUpload(let record): media?.keepUpload(record)
        case .uploadTokenChecked(let attempt, let verdict): media?.uploadTokenChecked(attempt, verdict, transport)
        case .uploaded(let id, let outcome): media?.uploaded(id, outcome, transport)
        case .note(let note): self.note(note)
        case .closeListeners: closeListeners(transport)
        case .stopped:
            mirrors?.stop(transport)
            isStopped()
            isStopped = {}
        }
    }

    private func connect(
        _ room: RoomID, to endpoint: UpstreamEndpoint, isSecure: Bool, timeout: Duration, _ transport: Transport
    ) {
        let tls = isSecure ? tlsSettings(room) : nil
        let id =
            switch endpoint {
            case .host(let host, let port): transport.connect(host: host, port: port, timeout: timeout, tls: tls)
            case .unix(let path): transport.connect(to: .unix(path: path), timeout: timeout, tls: tls)
            }
        roomsByConnection[id] = room
        connectionsByRoom[room] = id
    }

    /// Detaches the connection: its end is not reported to the bridge.
    private func closeUpstream(_ room: RoomID, flush: Bool, _ transport: Transport) {
        guard let id = connectionsByRoom.removeValue(forKey: room) else { return }
        roomsByConnection[id] = nil
        securing.remove(room)
        if flush {
            transport.closeAfterFlush(id, linger: Self.upstreamLinger)
        } else {
            transport.abort(id, silently: true)
        }
    }

    /// Sends a line to clients with and without WebSocket.
    private func fanOut(_ slice: ByteSlice, _ clients: [ClientID], _ except: ClientID?, _ transport: Transport) {
        var framed = FramedSlice(slice)
        for client in clients where client != except {
            if let peer = plain.peers[client.connection] {
                showPlain(peer, client.connection, slice, transport)
                continue
            }
            transport.send(client.connection, webSockets.form(&framed, for: client.connection))
        }
    }

    /// Checks a password on another thread; false when too many wait.
    private func submit(
        _ check: PasswordCheck, then: @escaping @Sendable (BridgeDriver, PasswordVerdict, Transport) -> Void
    ) -> Bool {
        passwordWorkers.submit { [loop] in
            let verdict: PasswordVerdict = check.isCorrect() ? .correct : .wrong
            loop.enqueue { transport in
                if let driver = transport.bridgeDriver { then(driver, verdict, transport) }
            }
        }
    }

    private func run(_ check: PasswordCheck, _ transport: Transport) {
        guard !submit(check, then: { $0.passwordChecked(check, $1, $2) }) else { return }
        note(BridgeNote(.warn, "client-login-overload", "too many passwords wait to be checked; one was not"))
        passwordChecked(check, .unavailable, transport)
    }

    func checkUpload(_ check: PasswordCheck, _ transport: Transport) {
        if !submit(check, then: { $0.media?.uploadChecked(check.attempt, $1, $2) }) {
            media?.uploadChecked(check.attempt, .unavailable, transport)
        }
    }

    private func run(_ hashing: PasswordHashing, _ transport: Transport) {
        let isTaken = passwordWorkers.submit { [loop] in
            let verifier = hashing.verifier()
            loop.enqueue { transport in
                transport.tellBridge { $0.passwordHashed(hashing.client, attempt: hashing.attempt, verifier, now: $1) }
            }
        }
        guard !isTaken else { return }
        note(BridgeNote(.warn, "client-login-overload", "too many passwords wait to be hashed; one was not"))
        bridge.passwordHashed(hashing.client, attempt: hashing.attempt, nil, now: Now(transport))
        run(transport)
    }

    private func passwordChecked(_ check: PasswordCheck, _ verdict: PasswordVerdict, _ transport: Transport) {
        bridge.passwordChecked(check.client, attempt: check.attempt, verdict, now: Now(transport))
        run(transport)
    }
}

extension ConnectionID {
    /// The bridge's name of a client's connection.
    var client: ClientID { ClientID(rawValue: rawValue) }
}

extension ClientID {
    /// The transport's name of a client.
    var connection: ConnectionID { ConnectionID(rawValue: rawValue) }
}
