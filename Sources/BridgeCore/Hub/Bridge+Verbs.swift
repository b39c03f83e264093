import Accounts
public import BridgeTypes
import ChatModel
import Dialects
import Digests
import IRCServer
import Identities
import Rooms
public import Upstream
public import WireBytes

// The driver's interface: every verb reports an event, and leaves its effects in `takeActions()`.

extension Bridge {
    // MARK: - The driver's side

    /// The actions for the driver, in order.
    public func takeActions() -> [BridgeAction] {
        submitBackendRequests()
        return actions.take()
    }

    /// The time of the next ``timerFired(now:)``.
    public func nextDeadline() -> MonotonicInstant? { context.nextDue() }

    /// Opens the links of all rooms that are not on demand.
    public func start(now: Now) {
        context.now = now
        for account in backends.all where account.settings.authenticates && !account.settings.isOnDemand {
            context.drive(account) { account.start(&$0) }
        }
        for room in rooms {
            if room.settings.connect == .always, room.link.state == .stopped { room.beginOpening(context) }
            if room.isLoading { irc.load(room) } else { room.startForWaiting(context) }
        }
        irc.askForTemplateRooms()
    }

    public var clientCount: Int { irc.sessions.count }

    /// The states of the rooms in the order of the settings.
    public var roomStates: [RoomState] { rooms.map(state(of:)) }

    /// False from the start of a shutdown: no work should be sent here.
    public var isRunning: Bool { lifecycle.phase == .running }

    /// Whether clients and messages are accepted: some time longer, see ``BridgeSettings/prestopDelay``.
    public var isServing: Bool { lifecycle.isServing }

    // MARK: - Clients

    public func clientOpened(_ id: ClientID, origin: ClientOrigin, now: Now) {
        context.now = now
        irc.clientOpened(id, origin: origin)
    }

    public func clientReceived(_ id: ClientID, _ bytes: UnsafeRawBufferPointer, now: Now) {
        context.now = now
        irc.clientReceived(id, bytes)
    }

    /// The client's send queue is empty; long replies continue.
    public func clientDrained(_ id: ClientID, now: Now) {
        context.now = now
        irc.clientDrained(id)
    }

    /// The connection is half-closed: the client sends no more and may still read.
    ///
    /// - Returns: whether input of the client is still to be processed. The connection then stays open until
    ///   ``BridgeAction/closeClient(_:)``; otherwise it is closed.
    public func clientEnded(_ id: ClientID, now: Now) -> Bool {
        context.now = now
        return irc.clientEnded(id)
    }

    /// The connection is closed. `reason` is shown in the QUIT.
    public func clientClosed(_ id: ClientID, reason: String, now: Now) {
        context.now = now
        irc.clientClosed(id, reason: reason)
    }

    public var networkName: String { settings.network }

    /// The client is registered with a password only.
    public func needsLogin(_ client: ClientID) -> Bool { irc.needsLogin(client) }

    /// One password is for all clients.
    public var hasServerPassword: Bool { settings.password != nil }

    // MARK: - Passwords

    /// The verdict on a `.checkPassword`. Late verdicts are ignored.
    public func passwordChecked(_ id: ClientID, attempt: UInt64, _ verdict: PasswordVerdict, now: Now) {
        context.now = now
        irc.passwordChecked(id, attempt: attempt, verdict)
    }

    /// The result of a `.hashPassword`; nil: not run, too many are pending.
    public func passwordHashed(_ id: ClientID, attempt: UInt64, _ verifier: SCRAMVerifier?, now: Now) {
        context.now = now
        irc.passwordHashed(id, attempt: attempt, verifier)
    }

    // MARK: - Links

    public func upstreamConnected(_ room: RoomID, now: Now) {
        context.now = now
        drive(room) { $0.transportOpened(&$2) }
    }

    func connectSlotGranted(_ id: RoomID) {
        // The room may be closed meanwhile.
        if room(id) == nil, context.ownLinks[id] == nil {
            return context.withTurn { context.upstream.connects.endTurns(of: id, &$0) }
        }
        drive(id) { $0.slotGranted(&$2) }
    }

    /// The room's credentials were read, or reading failed.
    public func credentialsRead(
        _ room: RoomID, _ outcome: Result<UpstreamCredentials, UpstreamCredentialsFailure>, now: Now
    ) {
        context.now = now
        drive(room) { $0.credentialsRead(outcome, dialectContext: $1, &$2) }
    }

    /// TLS is established on a connection through a proxy.
    public func upstreamSecured(_ room: RoomID, now: Now) {
        context.now = now
        drive(room) { $0.transportSecured(&$2) }
    }

    public func upstreamReceived(_ room: RoomID, _ bytes: UnsafeRawBufferPointer, now: Now) {
        context.now = now
        if let known = self.room(room) {
            let (wasUp, taken) = (known.link.isUp, known.link.loginsTaken)
            drive(room) { $0.bytesReceived(bytes, dialectContext: $1, &$2) }
            noteLink(known.link, of: room, backend: known.settings.backend, wasUp: wasUp, taken: taken)
            // The backend is reachable now; an earlier request for the identity may have failed.
            if !wasUp, known.link.isUp, let account = backends[known.settings.backend] {
                settle(account) { $0.identify(&$1) }
            }
        } else if let own = context.ownLinks[room] {
            let (wasUp, taken) = (own.link.isUp, own.link.loginsTaken)
            drive(room) { $0.bytesReceived(bytes, dialectContext: $1, &$2) }
            if let backend = own.login.backend {
                noteLink(own.link, of: room, backend: backend, wasUp: wasUp, taken: taken)
            }
        }
        finishIfIdle()
    }

    /// The connection ended or could not be made; `reason` is a sentence without a full stop.
    public func upstreamClosed(_ room: RoomID, reason: String, now: Now) {
        context.now = now
        drive(room) { $0.transportClosed(reason: reason, &$2) }
        finishIfIdle()
    }
}
