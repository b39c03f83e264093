import BridgeTypes
import ChatModel
import Dialects
import WireBytes

// The stages of an open session before it is usable, the renewal of its login, and its liveness. The tables are at the
// head of UpstreamSession.swift.

extension UpstreamSession {
    /// Longest wait for fresh credentials on an open socket: Directus closes 30 s after the old ones expired.
    static let renewalWait: Duration = .seconds(30)
    /// Silence before a ping inside the JSON: Directus expects a frame every 30 s.
    static let jsonPingSilence: Duration = .seconds(25)

    // MARK: - Opening

    func beginOpening(_ dialectContext: DialectContext, _ turn: inout Turn) {
        complaint = nil
        readyMisses = []
        isReadyEarly = false
        guard traits.opening.contains(.authenticates), let login = credentials.socket else {
            return subscribe(dialectContext, &turn)
        }
        stage = .authenticating(until: turn.now.monotonic + settings.handshakeTimeout)
        armOpen(&turn)
        guard sendCommand(.auth(login, ref: nil), dialectContext, &turn) else {
            return fail("the backend's format cannot carry this login", &turn)
        }
    }

    private func subscribe(_ dialectContext: DialectContext, _ turn: inout Turn) {
        let limit = settings.historyLimit > 0 ? min(settings.historyLimit, mostSubscribedTo) : 1
        if traits.opening.contains(.subscribes) { proof = LinkProof(since: turn.now, after: proof) }
        if traits.opening.contains(.subscribes),
            !sendCommand(.subscribe(room: settings.upstreamRoom, limit: limit), dialectContext, &turn)
        {
            return fail("the backend's format cannot ask for this room", &turn)
        }
        guard traits.waitsForReady, !isReadyEarly else { return becomeUp(&turn) }
        stage = .awaitingReady(until: turn.now.monotonic + settings.handshakeTimeout)
        armOpen(&turn)
    }

    /// Sends a command of the session itself; false when the wire has none.
    private func sendCommand(_ command: ChatCommand, _ dialectContext: DialectContext, _ turn: inout Turn) -> Bool {
        guard state == .open, let frames = settings.dialect.encode(command, context: dialectContext).frames
        else { return false }
        write(frames, &turn)
        return true
    }

    // MARK: - Events of the backend

    func chatReceived(
        _ event: ChatEvent, byteCount: Int, _ dialectContext: DialectContext, canAnswer: Bool,
        _ turn: inout Turn
    ) {
        switch event {
        case .ping(let ref):
            if canAnswer { _ = sendCommand(.pong(ref: ref), dialectContext, &turn) }
        case .pong(let ref): pongReceived(ref)
        case .auth(let auth):
            events.append(.chat(event, byteCount: byteCount))
            authReceived(auth, dialectContext, &turn)
        case .error(let error) where error.roomState == .unknown:
            events.append(.chat(event, byteCount: byteCount))
            let words = printable(error.text.isEmpty ? error.code : error.text)
            fail("the backend says that there is no such room: \(words)", &turn)
        case .error(let error) where stage != .usable:
            events.append(.chat(event, byteCount: byteCount))
            complaint = printable(error.text)
            if error.isFatal { fail("the backend refused the session: \(printable(error.text))", &turn) }
        case .ready:
            // Before `up`, so that all outgoing messages have the room's announced id.
            events.append(.chat(event, byteCount: byteCount))
            readyReceived(&turn)
        case .history:
            readyReceived(&turn)
            events.append(.chat(event, byteCount: byteCount))
        case .message(let message):
            // Elsewhere the time is that of the sender's clock.
            if traits.messageIDOrigin == .server, let at = message.at { proof.stamped(at, now: turn.now) }
            events.append(.chat(event, byteCount: byteCount))
        default: events.append(.chat(event, byteCount: byteCount))
        }
    }

    /// The session is not usable yet.
    var isOpening: Bool { if case .usable = stage { false } else { true } }

    /// What a description waits for, and what came instead.
    private var readyWords: String {
        guard let condition = settings.dialect.readyCondition else { return "" }
        guard !readyMisses.isEmpty else { return "; \(condition) waits for a frame, and none came" }
        return "; no frame met \(condition), what came has " + printable(readyMisses.joined(separator: ", "))
    }

    private func readyReceived(_ turn: inout Turn) {
        guard traits.waitsForReady else { return }
        switch stage {
        case .authenticating: isReadyEarly = true
        case .awaitingReady: becomeUp(&turn)
        case .usable: break
        }
    }

    private func authReceived(_ auth: ChatAuth, _ dialectContext: DialectContext, _ turn: inout Turn) {
        let words = auth.text.map { ": " + printable($0) } ?? ""
        switch (auth.state, stage) {
        case (.ok, .authenticating): subscribe(dialectContext, &turn)
        case (.ok, _):
            guard case .answering(_, let isLate, _) = renewal else { return }
            loginRenewedAt = turn.now.monotonic
            loginTaken()
            renewal = .none
            armOpen(&turn)
            events.append(.loginRenewed(isLate: isLate))
        case (.expired, .usable) where canRenew:
            switch renewal {
            case .none: break
            case .reading: return
            case .answering(let until, _, _):
                // Too late by a moment; the answer on its way settles it.
                renewal = .answering(until: until, isLate: true, isDoubted: true)
                return
            }
            if let loginRenewedAt, turn.now.monotonic - loginRenewedAt < Self.shortestLogin {
                return fail("the backend says that the login has expired" + words, isRefusal: true, &turn)
            }
            renewal = .reading(until: turn.now.monotonic + Self.renewalWait)
            armOpen(&turn)
            emit(.readCredentials(afterRefusal: true))
        case (.expired, _): fail("the backend says that the login has expired" + words, isRefusal: true, &turn)
        case (.failed, _): fail("the backend refused the login" + words, isRefusal: true, &turn)
        case (.timeout, _): fail("the backend waited too long for the login" + words, isRefusal: true, &turn)
        }
    }

    // MARK: - Renewing the login

    private var canRenew: Bool {
        settings.authenticates && credentials.socket != nil
            && traits.opening.contains(.authenticates)
    }

    /// Whether the login has expired and no other was accepted yet: the backend refuses everything sent now.
    package var isLoginEnded: Bool {
        switch renewal {
        case .none: false
        case .reading: true
        case .answering(_, let isLate, _): isLate
        }
    }

    /// Whether a new login is awaited or not answered yet. Nothing is sent meanwhile: a message refused since the old
    /// login ended would be overtaken by one sent under the new login.
    package var isRenewing: Bool { renewal != .none }

    /// The answer to the request for credentials when the login expired.
    func renewalRead(
        _ outcome: Result<UpstreamCredentials, UpstreamCredentialsFailure>, _ dialectContext: DialectContext,
        _ turn: inout Turn
    ) {
        guard case .reading = renewal else { return }
        switch outcome {
        case .failure(let failure): fail(failure.sentence, isRefusal: failure.isRefusal, &turn)
        case .success(let fresh):
            // Expired credentials are not sent again on the socket on which they expired.
            guard fresh != credentials else {
                return fail("the login has expired, and there is no other", isRefusal: true, &turn)
            }
            accept(fresh, &turn)
            renew(isLate: true, dialectContext, &turn)
        }
    }

    /// Whether this link sends renewed credentials next; a handshake in progress has sent the old ones already.
    package var takesRenewedCredentials: Bool {
        switch state {
        // Otherwise an open socket has sent the old ones, and a refusal is about these.
        case .open: canRenew
        case .waiting: true
        case .stopped, .gated, .authorizing, .connecting, .tunnelling, .securing, .handshaking, .closing: false
        }
    }

    /// Sends newer credentials at once on an open session, before they are needed.
    package func credentialsRenewed(
        _ fresh: UpstreamCredentials, dialectContext: DialectContext, _ turn: inout Turn
    ) -> [LinkEvent] {
        switch (state, renewal) {
        case (.open, .none):
            accept(fresh, &turn)
            if stage == .usable, traits.opening.contains(.authenticates) {
                renew(isLate: false, dialectContext, &turn)
            }
        case (.open, .answering): accept(fresh, &turn)
        case (.open, .reading), (.waiting, _):
            return credentialsRead(.success(fresh), dialectContext: dialectContext, &turn)
        default: break
        }
        return takeEvents()
    }

    private func renew(isLate: Bool, _ dialectContext: DialectContext, _ turn: inout Turn) {
        guard let login = credentials.socket else {
            if isLate { fail("there is nothing to log in with again on the open socket", isRefusal: true, &turn) }
            return
        }
        renewal = .answering(until: turn.now.monotonic + settings.handshakeTimeout, isLate: isLate)
        armOpen(&turn)
        guard sendCommand(.auth(login, ref: nil), dialectContext, &turn) else {
            return fail("the backend's format cannot carry this login", &turn)
        }
    }

    // MARK: - Liveness, and time

    /// A configured interval holds for every wire; the default gives way to the wire's own.
    var pingInterval: Duration {
        guard settings.ping > .zero, settings.ping == LinkSettings.usualPing, traits.liveness == .jsonPing else {
            return settings.ping
        }
        return traits.pingInterval ?? Self.jsonPingSilence
    }

    /// Pings inside the JSON; false where the format cannot.
    func sendJSONPing(_ ref: ChatID, _ dialectContext: DialectContext, _ turn: inout Turn) -> Bool {
        sendCommand(.ping(ref: ref.rawValue), dialectContext, &turn)
    }

    /// When the next ping is due; one inside the JSON after silence, and where there is none, all the same an interval
    /// later: only its answer proves that the link is alive.
    private var pingDue: MonotonicInstant? {
        guard traits.liveness == .jsonPing else { return nextPingAt }
        return nextPingAt.map { max($0, min(lastByteAt, $0) + pingInterval) }
    }

    func openTimerFired(_ dialectContext: DialectContext, _ turn: inout Turn) {
        let now = turn.now.monotonic
        let words = complaint.map { "; it said: " + $0 } ?? ""
        switch stage {
        case .authenticating(let until) where now >= until:
            return fail("the backend did not answer the login in time" + words, isOverload: true, &turn)
        case .awaitingReady(let until) where now >= until:
            return fail(
                "the backend did not say in time that the room is ready" + readyWords + words, isOverload: true, &turn)
        default: break
        }
        switch renewal {
        case .reading(let until) where now >= until:
            return fail("the login has expired, and no fresh one came in time", isRefusal: true, &turn)
        case .answering(let until, _, isDoubted: true) where now >= until:
            return fail("the backend says that the renewed login has expired", isRefusal: true, &turn)
        case .answering(let until, _, _) where now >= until:
            return fail("the backend did not answer the renewed login in time", &turn)
        default: break
        }
        if [livenessProbe?.sentAt, pingSentAt].contains(where: { $0.map { now >= $0 + settings.pongTimeout } ?? false })
        {
            return fail("the backend did not answer a ping in time", &turn)
        }
        if pingSentAt == nil, let due = pingDue, now >= due { return checkLiveness(dialectContext, &turn) }
        armOpen(&turn)
    }

    /// Wakes the link when an open session has something to do, or has waited long enough.
    func armOpen(_ turn: inout Turn) {
        guard state == .open else { return }
        var due = pingSentAt.map { $0 + settings.pongTimeout } ?? pingDue
        func also(_ other: MonotonicInstant) { due = due.map { min($0, other) } ?? other }
        switch stage {
        case .authenticating(let until), .awaitingReady(let until): also(until)
        case .usable: break
        }
        if let livenessProbe { also(livenessProbe.sentAt + settings.pongTimeout) }
        switch renewal {
        case .reading(let until), .answering(let until, _, _): also(until)
        case .none: break
        }
        if let due { turn.set(.link(room), at: due) } else { turn.cancel(.link(room)) }
    }
}
