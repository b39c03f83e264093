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

// What the driver calls: every verb says what happened, and leaves its consequences in `takeActions()`. Nothing below calls these.

extension Bridge {
    // MARK: - The driver's side

    /// What the driver must do now, in order.
    public func takeActions() -> [BridgeAction] {
        carryOutBackendWishes()
        return actions.take()
    }

    /// When ``timerFired(now:)`` is due next.
    public func nextDeadline() -> MonotonicInstant? { context.timers.next() }

    /// Opens the links of all rooms that have one whoever is there.
    public func start(now: Now) {
        context.now = now
        for account in backends.all where account.settings.authenticates && !account.settings.isOnDemand {
            context.drive(account) { account.start(&$0) }
        }
        for room in rooms {
            if room.settings.connect == .always, room.link.state == .stopped { room.beginOpening(context) }
            room.startForWaiting(context)
        }
        irc.askForTemplateRooms()
    }

    public var clientCount: Int { irc.sessions.count }

    /// How the rooms stand, in the order of the settings.
    public var roomStates: [RoomState] {
        rooms.map { room in
            RoomState(
                name: room.settings.name, link: room.link.condition, hasBeenUp: room.link.hasBeenUp,
                failures: room.link.failures, reason: room.link.isUp ? nil : room.link.lastReason,
                isOnDemand: room.settings.connect == .whileJoined)
        }
    }

    /// Whether clients are let in: false from the moment a shutdown was asked for.
    public var isRunning: Bool { lifecycle.phase == .running }

    // MARK: - Clients

    public func clientOpened(_ id: ClientID, origin: ClientOrigin, now: Now) {
        context.now = now
        irc.clientOpened(id, origin: origin)
    }

    public func clientReceived(_ id: ClientID, _ bytes: UnsafeRawBufferPointer, now: Now) {
        context.now = now
        irc.clientReceived(id, bytes)
    }

    /// The client's queue is empty: long answers go on.
    public func clientDrained(_ id: ClientID, now: Now) {
        context.now = now
        irc.clientDrained(id)
    }

    /// The client sends no more, and may still read.
    ///
    /// - Returns: something of what it sent is yet to be carried out, so lines go on being sent to it; it is closed by
    ///   ``BridgeAction/closeClient(_:)`` in the end. False: it is gone.
    public func clientEnded(_ id: ClientID, now: Now) -> Bool {
        context.now = now
        return irc.clientEnded(id)
    }

    /// The connection is gone. `reason` is shown in the QUIT.
    public func clientClosed(_ id: ClientID, reason: String, now: Now) {
        context.now = now
        irc.clientClosed(id, reason: reason)
    }

    // MARK: - Passwords

    /// The verdict on a `.checkPassword` is there. Verdicts that nobody waits for are ignored.
    public func passwordChecked(_ id: ClientID, attempt: UInt64, _ verdict: PasswordVerdict, now: Now) {
        context.now = now
        irc.passwordChecked(id, attempt: attempt, verdict)
    }

    /// The answer to a `.hashPassword`; nil: it was never made, too many wait already.
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
        // Whoever waited may be gone since.
        if room(id) == nil, context.ownLinks[id] == nil {
            return context.upstream.connects.endTurns(of: id, &context.turn)
        }
        drive(id) { $0.slotGranted(&$2) }
    }

    /// The room's credentials were read, or could not be.
    public func credentialsRead(
        _ room: RoomID, _ outcome: Result<UpstreamCredentials, UpstreamCredentialsFailure>, now: Now
    ) {
        context.now = now
        drive(room) { $0.credentialsRead(outcome, dialectContext: $1, &$2) }
    }

    /// TLS stands on a connection through a proxy.
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
            // The backend is there now, whatever kept it from answering before.
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
