import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import WSProtocol
import WireBytes

// The life of one room's link to its backend.
//
// | state       | meaning                              | verb → next                                                              |
// |-------------|--------------------------------------|---------------------------------------------------------------------------|
// | stopped     | not wanted                           | start → gated                                                             |
// | gated       | waits for a connection slot          | slotGranted → authorizing, connecting                                     |
// | authorizing | credentials are being read           | credentialsRead → connecting, waiting                                     |
// | connecting  | TCP is being opened                  | transportOpened → tunnelling, handshaking; transportClosed → waiting      |
// | tunnelling  | CONNECT sent to a proxy              | established → securing, handshaking; refused, time-out, closed → waiting  |
// | securing    | TLS begins behind a proxy            | transportSecured → handshaking; transportClosed, time-out → waiting       |
// | handshaking | request sent                         | accepted → open; redirected → gated; refused, time-out, closed → waiting  |
// | open        | WebSocket usable (see the stages)    | close received, failure, silence after a ping, transportClosed → waiting  |
// |             |                                      | reopen → gated                                                            |
// | waiting     | back-off                             | retry timer, retryNow → gated                                             |
// | closing     | Close is sent, the peer's awaited    | answered, transportClosed, time-out → stopped                             |
//
// An open session has stages; the dialect's traits decide which of them exist:
//
// | stage          | meaning                         | event → next                                                          |
// |----------------|---------------------------------|------------------------------------------------------------------------|
// | authenticating | `auth` sent on the socket       | auth ok → (subscribe) awaitingReady or usable; any other → waiting      |
// | awaitingReady  | subscribed, where the wire does | ready, history → usable                                                |
// | usable         | messages go both ways           | auth expired → renewal; auth failed, timeout → waiting                  |
//
// Until usable, a fatal error of the backend, or `handshakeTimeout` without the awaited event, is a failed attempt; so is
// at any stage an error that says that the room is unknown.
// Events of the backend are handed up all the same; the room buffers them (`CatchUp`).
//
// | renewal   | meaning                                  | event → next                                                    |
// |-----------|------------------------------------------|------------------------------------------------------------------|
// | none      | the login holds, as far as is known      | auth expired → reading; credentialsRenewed → answering            |
// | reading   | fresh credentials were asked for         | others read → answering; the same read, 30 s → waiting            |
// | answering | `auth` sent again on the open socket     | auth ok → none; any other, time-out → waiting                    |
//
// Messages wait for `none`: one that is refused since the login ended must not be overtaken by one that the new login
// carries.
//
// A renewed login that expires within 5 s of being taken ends the link.
//
// A link never gives up. Trouble is reported once an outage, with its first reason; the counter of failures goes back
// to zero after the session was usable for `backoffResetAfter`, not on TCP connect. For a failure of the login (401,
// 403, 1008, 4001, 4003, or by its text), or of a proxy's (407), the next attempt depends on whether a session was
// opened:
//
// | credentials                    | next attempt                                                                      |
// |--------------------------------|-----------------------------------------------------------------------------------|
// | opened no session              | refused: once more at once, then every 15 minutes, until a session is usable       |
// | the same, of a login that did  | refused: once more at once, then after 1 s, 2 s, 4 s, … 15 minutes                |
// | opened one of 5 s or longer    | ended: a new link at once                                                         |
// | opened one that was shorter    | ended: a new link after 1 s, 2 s, 4 s, … 15 minutes, the more of these in a row   |
//
// Each time other credentials are asked for, and waits end as soon as there are some.

/// Requests of a link to its driver.
package enum LinkAction: Equatable {
    /// Answered by ``UpstreamSession/credentialsRead(_:dialectContext:_:)``. `afterRefusal`: the backend has refused
    /// the last credentials.
    case readCredentials(afterRefusal: Bool)
    /// Answered by ``UpstreamSession/transportOpened(_:)`` or ``UpstreamSession/transportClosed(reason:_:)``.
    case connect(to: UpstreamEndpoint, isSecure: Bool, timeout: Duration)
    /// Answered by ``UpstreamSession/transportSecured(_:)`` or ``UpstreamSession/transportClosed(reason:_:)``.
    case startTLS(host: String)
    case send(ByteSlice)
    /// After flushing, or at once.
    case close(flush: Bool)
    case note(BridgeNote)
}

/// Events of a link for its owner.
package enum LinkEvent: Equatable {
    /// Usable: queued messages may go.
    case up
    /// No longer usable, or never was. `reason` is a sentence without a full stop; `wasUp` distinguishes a loss from a
    /// failed try.
    case down(reason: String, wasUp: Bool, retryIn: Duration)
    /// Closed on purpose, and being opened anew: no failure.
    case replaced(reason: String, wasUp: Bool)
    /// `byteCount`: of the frame; of several events in one, the share.
    case chat(ChatEvent, byteCount: Int)
    /// The login was renewed on the open socket. `isLate`: it had expired, and messages in between must be fetched.
    case loginRenewed(isLate: Bool)
    /// The peer has answered a ping that was sent then, so it has read the first `frameCount` frames of this session.
    case pong(sentAt: MonotonicInstant, frameCount: UInt64)
    case dropped(DropReason, byteCount: Int, typeKey: String?, place: DropPlace?)
    /// The Close was answered, or is no longer waited for.
    case stopped
}

package final class UpstreamSession {
    package enum State: Equatable {
        case stopped
        case gated
        case authorizing
        case connecting
        case tunnelling
        case securing
        case handshaking
        case open
        case waiting
        case closing
    }

    /// The event that an open session is still waiting for.
    enum Stage: Equatable {
        case authenticating(until: MonotonicInstant)
        case awaitingReady(until: MonotonicInstant)
        case usable
    }

    /// A login that ends while the socket is open.
    enum Renewal: Equatable {
        case none
        case reading(until: MonotonicInstant)
        /// `isLate`: the old login had ended already. `isDoubted`: since then the backend has reported once more that
        /// the login has expired. That may have been about frames before it, or the answer.
        case answering(until: MonotonicInstant, isLate: Bool, isDoubted: Bool = false)
    }

    /// Longest wait for the answer to the Close at shutdown.
    static let shutdownCloseWait: Duration = .seconds(2)
    /// Interval between readings of refused credentials: a replaced token file is noticed within this, and reading one
    /// costs microseconds.
    static let credentialCheckInterval: Duration = .seconds(10)
    /// A refusal longer ago than this has no bearing on the next. Longer than the wait between tries that are refused.
    static let refusalWindow: Duration = ReconnectPolicy.refusedDelay * 2
    /// A login that ends sooner is followed by the next with a growing pause: a backend that accepts logins and ends
    /// them at once would be sent one after the other.
    package static let shortestLogin: Duration = .seconds(5)
    /// Bytes of a reason that are reported; a server can make its reason phrase as long as a head may be.
    package static let maxReasonBytes = 300

    package let room: RoomID
    /// Others count from the next attempt on.
    package private(set) var settings: LinkSettings
    /// The credentials come from the backend's account, and not from the driver.
    package private(set) var usesAccount: Bool
    let shared: UpstreamShared
    /// The dialect's, made once.
    package let traits: DialectTraits
    private var policy: ReconnectPolicy
    package private(set) var state: State = .stopped
    /// An administrator wants no connection; ``start(_:)`` does nothing.
    package private(set) var isDisabled = false
    var stage: Stage = .usable
    var renewal: Renewal = .none
    /// When the backend last took a renewed login on this socket.
    var loginRenewedAt: MonotonicInstant?
    /// `ready` came before the login was answered.
    var isReadyEarly = false
    /// The last error of the backend while the session was not usable yet.
    var complaint: String?
    /// What frames had in place of what makes the session usable.
    var readyMisses: [String] = []
    /// They are for a sentence.
    private static let maxReadyMisses = 5
    /// The redirects of this attempt; nil before its first connection.
    private var redirects: RedirectChain?
    /// The credentials of the last attempt.
    private(set) var credentials = UpstreamCredentials()
    /// The credentials before these; the backend may still repeat them.
    private(set) var formerCredentials = UpstreamCredentials()
    private var tunnel: HTTPProxyTunnel?
    private var handshake: WebSocketClientHandshake?
    private var connection: WebSocketConnection?
    /// The session is usable for chat (after `ready` where the wire has one).
    package private(set) var isUp = false
    /// The session was usable at least once since the program started.
    package private(set) var hasBeenUp = false
    package private(set) var upSince: MonotonicInstant?
    /// Between the last answered ping of this session and its answer; nil: none was answered.
    package private(set) var roundTrip: Duration?
    /// Logins that the backend accepted: sessions that became usable, and renewals on these.
    package private(set) var loginsTaken: UInt64 = 0
    /// How long the last session was usable, where the backend closed it with a code that may be about the login; it may
    /// also be about the room.
    package private(set) var evictedAfter: Duration?
    /// Attempts since the program started, by outcome.
    package struct Attempts: Equatable, Sendable {
        /// Sessions that became usable.
        package fileprivate(set) var succeeded = 0
        /// Refused for their credentials.
        package fileprivate(set) var refused = 0
        /// Failed for any other reason.
        package fileprivate(set) var failed = 0
    }

    package private(set) var attempts = Attempts()
    /// Failures in a row since the last usable session.
    package private(set) var failures = 0
    /// Refusals since a session was usable, of any credentials.
    private var refusals = 0
    private var refusedAt: MonotonicInstant?
    /// Sessions in a row that the backend ended for the login sooner than ``shortestLogin``.
    private var shortLogins = 0
    /// The backend refused the last credentials, or ended their session, and no others were asked for since.
    private(set) var isRefusalOpen = false
    /// Neither the last credentials nor their replacement opened a session.
    package var isRefused: Bool { isRefusalOpen && refusals > 1 }
    /// When a wait ends.
    package private(set) var retryAt: MonotonicInstant?
    /// The wait is that for refused credentials, and ends early when there are others.
    private var isWaitingForCredentials = false
    /// The next attempt comes before ``retryAt`` where there are other credentials.
    package var awaitsCredentials: Bool { state == .waiting && isWaitingForCredentials }
    package private(set) var lastReason: String?
    /// The status with which the last handshake was refused; nil: it was not, or not by a status.
    package private(set) var lastStatus: Int?
    /// The last connection ended over a message beyond one side's limit.
    package private(set) var wasTooBig = false
    /// Upper bound of the messages asked for with a subscription.
    private(set) var mostSubscribedTo = Int.max
    /// When the ping was sent that has seen no byte since.
    package private(set) var pingSentAt: MonotonicInstant?
    /// A ping that must be answered itself: receiving from a peer does not prove that the peer receives.
    package struct LivenessProbe: Equatable {
        package var sentAt: MonotonicInstant
        /// The payload of the ping and of its answer.
        package var ref: ChatID
    }

    /// The one that is open. Silence before its end, or an answer to another ping, does not settle it.
    package private(set) var livenessProbe: LivenessProbe?
    /// Messages and commands written over this session. The proof of a ping's answer is counted in these, since two
    /// frames of one moment have the same time.
    package private(set) var frameCount: UInt64 = 0
    /// Some frame of the backend was of the dialect.
    package private(set) var hasUnderstood = false
    /// A protocol ping that was not answered yet.
    private struct Ping {
        /// Its payload, and that of its answer.
        var number: UInt64
        var sentAt: MonotonicInstant
        var frameCount: UInt64
    }

    /// Oldest first. A peer may answer only the newest of several.
    ///
    /// Source: RFC 6455 §5.5.3.
    private var unansweredPings: [Ping] = []
    private var lastPing: UInt64 = 0
    /// The peer has answered a protocol ping since the program started.
    package private(set) var hasAnsweredPing = false
    /// A peer that answers none of so many answers none; the oldest are dropped.
    private static let maxUnansweredPings = 16
    private(set) var nextPingAt: MonotonicInstant?
    private(set) var lastByteAt = MonotonicInstant(nanoseconds: 0)
    /// The instant up to which everything that the peer sent has arrived.
    package internal(set) var proof = LinkProof(
        since: Now(monotonic: MonotonicInstant(nanoseconds: 0), wall: ChatTimestamp(milliseconds: 0)))
    var events: [LinkEvent] = []
    private var actions: [LinkAction] = []

    /// - Parameter usesAccount: the credentials come from the backend's account.
    package init(room: RoomID, settings: LinkSettings, usesAccount: Bool = false, shared: UpstreamShared) {
        self.room = room
        self.settings = settings
        self.usesAccount = usesAccount
        self.shared = shared
        self.traits = settings.dialect.traits
        self.policy = ReconnectPolicy(traits: settings.backoff)
    }

    func takeEvents() -> [LinkEvent] {
        defer { events = [] }
        return events
    }

    /// Hands over the requests to the driver since the last call, in order. `body` makes no further ones.
    package func handActions(to body: (LinkAction) -> Void) {
        guard !actions.isEmpty else { return }
        actions.forEach(body)
        actions.removeAll(keepingCapacity: true)
    }

    func emit(_ action: LinkAction) { actions.append(action) }

    func note(_ level: BridgeNote.Level, _ event: String, _ text: String, _ metadata: NoteMetadata) {
        emit(.note(BridgeNote(level, event, text, metadata)))
    }

    /// The history that comes with a subscription is to be no larger; nil: as large as the settings say.
    package func limitSubscription(to most: Int?) { mostSubscribedTo = most ?? .max }

    // MARK: - Opening

    /// Starts or restarts trying, without waiting for a back-off in progress.
    package func start(_ turn: inout Turn) {
        guard state == .stopped || state == .waiting, !isDisabled else { return }
        turn.cancel(.link(room))
        state = .gated
        shared.connects.request(room, inTurnOf: backendInTurn, &turn)
    }

    /// The backend whose rooms open one after the other; nil where they need not.
    private var backendInTurn: String? { traits.connectsInTurn ? settings.backend : nil }

    /// The bridge allows one more connection now.
    package func slotGranted(_ turn: inout Turn) -> [LinkEvent] {
        guard state == .gated else {
            shared.connects.endTurn(of: backendInTurn, room, &turn)
            return []
        }
        if settings.authenticates {
            state = .authorizing
            emit(.readCredentials(afterRefusal: isRefusalOpen))
        } else {
            connect(&turn)
        }
        return takeEvents()
    }

    package func credentialsRead(
        _ outcome: Result<UpstreamCredentials, UpstreamCredentialsFailure>, dialectContext: DialectContext,
        _ turn: inout Turn
    ) -> [LinkEvent] {
        // These were not refused yet.
        if state == .waiting, case .success(let fresh) = outcome, fresh != credentials { isRefusalOpen = false }
        switch (state, outcome) {
        case (.authorizing, .success(let fresh)):
            accept(fresh, &turn)
            connect(&turn)
        case (.authorizing, .failure(let failure)):
            fail(failure.sentence, transportGone: true, isRefusal: failure.isRefusal, &turn)
        case (.waiting, .success(let fresh)) where isWaitingForCredentials && fresh != credentials:
            note(
                .info, "upstream-credentials-changed", "the refused credentials were replaced; trying again",
                ["room": settings.name])
            start(&turn)
        case (.open, _): renewalRead(outcome, dialectContext, &turn)
        default: break
        }
        return takeEvents()
    }

    func accept(_ fresh: UpstreamCredentials, _ turn: inout Turn) {
        // New ones are no better: a login that hands out a token for each refusal would be asked for ever.
        if fresh != credentials {
            formerCredentials = credentials
            shared.secretsChanged()
        }
        isRefusalOpen = false
        credentials = fresh
    }

    private func connect(_ turn: inout Turn) {
        let redirects = self.redirects ?? RedirectChain(start: settings.url)
        self.redirects = redirects
        let url = redirects.current ?? settings.url
        let endpoint: UpstreamEndpoint
        switch settings.proxies.route(to: url) {
        case .unusable(let sentence):
            return fail(sentence, transportGone: true, &turn)
        case .direct:
            tunnel = nil
            endpoint = url.isUnixSocket ? .unix(path: url.host) : .host(url.host, port: Int(url.port))
        case .proxy(let proxy):
            do throws(HTTPProtocolError) {
                tunnel = try HTTPProxyTunnel(to: url, through: proxy, userAgent: settings.userAgent)
            } catch {
                return fail("the proxy cannot be asked: \(error.sentence)", transportGone: true, &turn)
            }
            endpoint = .host(proxy.host, port: Int(proxy.port))
        }
        state = .connecting
        lastStatus = nil
        emit(
            .connect(
                to: endpoint, isSecure: tunnel == nil && url.isSecure, timeout: settings.connectTimeout))
    }

    package func transportOpened(_ turn: inout Turn) -> [LinkEvent] {
        guard state == .connecting else { return [] }
        guard let tunnel else {
            beginHandshake(&turn)
            return takeEvents()
        }
        do throws(HTTPProtocolError) {
            try turn.write { (writer) throws(HTTPProtocolError) in try tunnel.request(into: &writer) }
            state = .tunnelling
            emit(.send(turn.takeWritten()))
            turn.set(.link(room), at: turn.now.monotonic + settings.handshakeTimeout)
        } catch {
            fail("the proxy cannot be asked: \(error.sentence)", &turn)
        }
        return takeEvents()
    }

    /// TLS is established behind the proxy.
    package func transportSecured(_ turn: inout Turn) -> [LinkEvent] {
        guard state == .securing else { return [] }
        beginHandshake(&turn)
        return takeEvents()
    }

    private func beginHandshake(_ turn: inout Turn) {
        let url = (redirects?.current ?? settings.url).addingToQuery(credentials.query.map { ($0.name, $0.value) })
        do throws(WebSocketHandshakeError) {
            let request = try WebSocketClientHandshake(
                url: url, headers: settings.headers + credentials.headers.map { ($0.name, $0.value) },
                subprotocols: settings.subprotocols, userAgent: settings.userAgent,
                compression: settings.compression, nonce: turn.randomBytes(16))
            turn.write { request.request(into: &$0) }
            handshake = request
            proof = LinkProof(since: turn.now, after: proof)
            state = .handshaking
            emit(.send(turn.takeWritten()))
            turn.set(.link(room), at: turn.now.monotonic + settings.handshakeTimeout)
        } catch {
            fail("the handshake request cannot be made: \(error.sentence)", &turn)
        }
    }

    /// The connection ended, or never came about. `reason` is a sentence without a full stop.
    package func transportClosed(reason: String, _ turn: inout Turn) -> [LinkEvent] {
        switch state {
        case .stopped, .gated, .waiting: return []
        case .closing: becomeStopped(&turn)
        case .connecting, .tunnelling:
            fail(tunnel.map { "the proxy \($0.proxy): \(reason)" } ?? reason, transportGone: true, &turn)
        case .authorizing, .securing, .handshaking, .open: fail(reason, transportGone: true, &turn)
        }
        return takeEvents()
    }

    // MARK: - Bytes

    /// - Parameters:
    ///   - dialect: decodes each message as it comes complete.
    package func bytesReceived(
        _ bytes: UnsafeRawBufferPointer, dialectContext: DialectContext, _ turn: inout Turn
    ) -> [LinkEvent] {
        lastByteAt = turn.now.monotonic
        // Any byte after a ping proves life, not only its pong.
        pingSentAt = nil
        switch state {
        case .tunnelling: tunnelBytesReceived(bytes, dialectContext, &turn)
        case .handshaking: handshakeBytesReceived(bytes, dialectContext, &turn)
        case .open, .closing: frameBytesReceived(bytes, dialectContext, &turn)
        case .stopped, .gated, .authorizing, .connecting, .securing, .waiting: break
        }
        return takeEvents()
    }

    private func tunnelBytesReceived(
        _ bytes: UnsafeRawBufferPointer, _ dialectContext: DialectContext, _ turn: inout Turn
    ) {
        guard let outcome = tunnel?.bytesReceived(bytes) else { return }
        switch outcome {
        case .needMoreData: return
        case .refused(let refusal):
            var retryAfter: Duration?
            if case .status(_, _, let value) = refusal {
                retryAfter = value.flatMap { RetryAfter.delay($0, wallMilliseconds: turn.now.wall.milliseconds) }
            }
            fail(
                tunnel?.sentence(refusal) ?? "the proxy refused", retryAfter: retryAfter,
                isRefusal: refusal.isAboutCredentials, &turn)
        case .established(let consumed):
            let rest = UnsafeRawBufferPointer(rebasing: bytes[consumed...])
            if let url = redirects?.current, url.isSecure {
                guard rest.isEmpty else {
                    return fail("the proxy sent bytes before TLS had begun", &turn)
                }
                state = .securing
                turn.set(.link(room), at: turn.now.monotonic + settings.handshakeTimeout)
                emit(.startTLS(host: url.host))
            } else {
                beginHandshake(&turn)
                if !rest.isEmpty { handshakeBytesReceived(rest, dialectContext, &turn) }
            }
        }
    }

    private func handshakeBytesReceived(
        _ bytes: UnsafeRawBufferPointer, _ dialectContext: DialectContext, _ turn: inout Turn
    ) {
        guard let outcome = handshake?.bytesReceived(bytes) else { return }
        switch outcome {
        case .needMoreData: return
        case .refused(.redirect(let status, let location)):
            redirected(status, to: location, &turn)
        case .refused(let refusal):
            handshake = nil
            var retryAfter: Duration?
            if case .status(let status, _, let value, _) = refusal {
                lastStatus = status
                retryAfter = value.flatMap { RetryAfter.delay($0, wallMilliseconds: turn.now.wall.milliseconds) }
            }
            fail(
                refusal.sentence, retryAfter: retryAfter, isRefusal: isAuthRefusal(refusal),
                isOverload: Self.isOverload(refusal), &turn)
        case .accepted(nil, _) where settings.requiresSubprotocol:
            fail("the server chose none of the subprotocols that were offered, and one is required", &turn)
        case .accepted(_, let consumed):
            connection = WebSocketConnection(
                role: .client, limits: settings.webSocketLimits, compression: handshake?.compression)
            handshake = nil
            wasTooBig = false
            state = .open
            if pingInterval > .zero { nextPingAt = turn.now.monotonic + pingInterval }
            note(.debug, "upstream-open", "WebSocket open", ["room": settings.name])
            armOpen(&turn)
            beginOpening(dialectContext, &turn)
            guard state == .open else { return }
            if consumed < bytes.count {
                frameBytesReceived(UnsafeRawBufferPointer(rebasing: bytes[consumed...]), dialectContext, &turn)
            }
        }
    }

    /// Asks again at the answer's target, if it may; with a slot of its own, so that redirects do not get around the
    /// pace of connecting.
    private func redirected(_ status: Int, to location: String, _ turn: inout Turn) {
        guard let from = redirects?.current else { return fail("the server redirects (\(status))", &turn) }
        do throws(RedirectChain.Refusal) {
            guard let target = try redirects?.follow(status: status, location: location) else { return }
            note(
                .info, "upstream-redirected", "the backend points to another address; it is asked this time",
                [
                    "room": settings.name, "from": from.description, "to": scrubbed(target.description),
                    "status": String(status),
                ])
            dropConnection()
            emit(.close(flush: true))
            turn.cancel(.link(room))
            state = .gated
            shared.connects.request(room, inTurnOf: backendInTurn, &turn)
        } catch {
            fail(error.sentence, &turn)
        }
    }

    private func frameBytesReceived(
        _ bytes: UnsafeRawBufferPointer, _ dialectContext: DialectContext, _ turn: inout Turn
    ) {
        var reading = FrameReading(
            dialect: settings.dialect, repliesByRule: traits.repliesByRule, waitsForReady: isOpening,
            context: dialectContext)
        var closed: (code: WebSocketCloseCode?, reason: String)?
        var failure: WebSocketFailure?
        var pongs: [UInt64?] = []
        turn.write { writer, random in
            connection?.bytesReceived(bytes, output: &writer, using: &random) { event in
                switch event {
                case .text(let payload):
                    if shared.frameTap != nil { tap(payload, isBinary: false, isIncoming: true) }
                    reading.received(payload, isBinary: false)
                case .binary(let payload):
                    if shared.frameTap != nil { tap(payload, isBinary: true, isIncoming: true) }
                    reading.received(payload, isBinary: true)
                case .ping: break
                case .pong(let payload):
                    let payload = String(decoding: payload, as: UTF8.self)
                    pongs.append(UInt64(payload))
                    pingAnswered(payload)
                case .closeReceived(let code, let reason): closed = (code, reason)
                case .failed(let what): failure = what
                }
            }
        }
        flush(&turn)
        if state == .closing {
            // The link is closing; nothing more is delivered.
            if closed != nil || failure != nil { becomeStopped(&turn) }
            return
        }
        if reading.hasUnderstood { hasUnderstood = true }
        for pong in pongs { pongReceived(pong) }
        for values in reading.readyValues where !readyMisses.contains(values) { readyMisses.append(values) }
        readyMisses.removeLast(max(0, readyMisses.count - Self.maxReadyMisses))
        // After a Close nothing may be sent.
        let canAnswer = closed == nil && failure == nil
        if canAnswer, !reading.replies.isEmpty { write(reading.replies, &turn) }
        for event in reading.events where state == .open {
            if case .chat(let chat, let byteCount) = event {
                chatReceived(chat, byteCount: byteCount, reading.context, canAnswer: canAnswer, &turn)
            } else {
                events.append(event)
            }
        }
        guard state == .open else { return }
        wasTooBig = closed?.code == .messageTooBig || failure?.closeCode == .messageTooBig
        if let closed {
            let why = closed.reason.isEmpty ? "" : " (\(printable(closed.reason)))"
            fail(
                "the backend closed the session with code \(closed.code?.rawValue ?? 1005)" + why,
                isRefusal: isAuthClose(closed.code), isEviction: isAuthClose(closed.code), &turn)
        } else if let failure {
            fail("the backend broke the WebSocket protocol: \(failure.sentence)", &turn)
        }
    }

    // MARK: - Sending

    /// Writes frames; false when the link is not usable.
    package func send(_ frames: [EncodedFrame], _ turn: inout Turn) -> Bool {
        guard isUp, state == .open else { return false }
        write(frames, &turn)
        return true
    }

    /// The same for one frame, as nearly always.
    package func send(_ frame: EncodedFrame, _ turn: inout Turn) -> Bool {
        guard isUp, state == .open else { return false }
        write(frame, &turn)
        flush(&turn)
        return true
    }

    func write(_ frames: [EncodedFrame], _ turn: inout Turn) {
        for frame in frames { write(frame, &turn) }
        flush(&turn)
    }

    private func write(_ frame: EncodedFrame, _ turn: inout Turn) {
        frameCount += 1
        frame.bytes.withUnsafeBytes { payload in
            if shared.frameTap != nil { tap(payload, isBinary: frame.isBinary, isIncoming: false) }
            _ = turn.write { writer, random in
                frame.isBinary
                    ? connection?.send(binary: payload, output: &writer, using: &random)
                    : connection?.send(text: payload, output: &writer, using: &random)
            }
        }
    }

    /// Asks the peer for a sign of life now, unless that question is already open.
    ///
    /// - Parameter requiresAnswer: only the answer to this very ping counts, where the wire has one.
    package func checkLiveness(requiresAnswer: Bool = false, _ dialectContext: DialectContext, _ turn: inout Turn) {
        let requiresAnswer = requiresAnswer && traits.answersPings
        guard state == .open, requiresAnswer ? livenessProbe == nil : pingSentAt == nil else { return }
        var ref = traits.liveness == .jsonPing ? turn.freshChatID() : nil
        if let asked = ref, sendJSONPing(asked, dialectContext, &turn) {
            proof.asked(asked.rawValue, isInJSON: true, at: turn.now)
            // Its answer is indistinguishable from other frames, and so proves nothing.
            if !traits.answersPings { _ = sendPing(&turn) }
        } else {
            ref = sendPing(&turn)
        }
        if requiresAnswer, let ref { livenessProbe = LivenessProbe(sentAt: turn.now.monotonic, ref: ref) }
        pingSentAt = pingSentAt ?? turn.now.monotonic
        if pingInterval > .zero { nextPingAt = turn.now.monotonic + pingInterval }
        armOpen(&turn)
    }

    /// Asks the peer whether it has read the written frames, unless a ping is in flight: the answer is a
    /// ``LinkEvent/pong``.
    ///
    /// Always the protocol's own ping, since nothing else is answered in order by every peer. A missing answer does not
    /// end the link; that is the purpose of ``checkLiveness(requiresAnswer:_:_:)``.
    package func probeDelivery(_ turn: inout Turn) {
        guard state == .open, unansweredPings.isEmpty else { return }
        _ = sendPing(&turn)
    }

    /// Sends a protocol ping; returns its payload.
    private func sendPing(_ turn: inout Turn) -> ChatID {
        lastPing &+= 1
        let ref = ChatID(String(lastPing))
        Array(ref.rawValue.utf8).withUnsafeBytes { payload in
            _ = turn.write { connection?.sendPing(payload, output: &$0, using: &$1) }
        }
        flush(&turn)
        proof.asked(ref.rawValue, at: turn.now)
        if unansweredPings.count == Self.maxUnansweredPings { unansweredPings.removeFirst() }
        unansweredPings.append(Ping(number: lastPing, sentAt: turn.now.monotonic, frameCount: frameCount))
        return ref
    }

    /// A pong settles its ping and those before it. One with another payload answers nothing.
    ///
    /// Source: RFC 6455 §5.5.3.
    private func pongReceived(_ number: UInt64?) {
        guard let index = unansweredPings.firstIndex(where: { $0.number == number }) else { return }
        hasAnsweredPing = true
        let ping = unansweredPings[index]
        unansweredPings.removeFirst(index + 1)
        if let expected = livenessProbe?.ref.rawValue, let asked = UInt64(expected), asked <= ping.number {
            livenessProbe = nil
        }
        events.append(.pong(sentAt: ping.sentAt, frameCount: ping.frameCount))
    }

    /// An answer inside the JSON; one without a reference is to the last question.
    func pongReceived(_ ref: String?) {
        pingAnswered(ref)
        if let livenessProbe, ref.map({ $0 == livenessProbe.ref.rawValue }) ?? true { self.livenessProbe = nil }
    }

    private func pingAnswered(_ ref: String?) {
        if let sentAt = proof.answered(ref) { roundTrip = lastByteAt - sentAt }
    }

    private func flush(_ turn: inout Turn) {
        let slice = turn.takeWritten()
        if !slice.isEmpty { emit(.send(slice)) }
    }

    // MARK: - Time

    package func timerFired(dialectContext: DialectContext, _ turn: inout Turn) -> [LinkEvent] {
        let now = turn.now.monotonic
        switch state {
        case .stopped, .gated, .authorizing, .connecting: break
        case .waiting:
            if let retryAt, now < retryAt {
                emit(.readCredentials(afterRefusal: false))
                armRetry(&turn)
            } else {
                start(&turn)
            }
        case .tunnelling:
            fail("the proxy \(tunnel.map { "\($0.proxy) " } ?? "")did not answer in time", &turn)
        case .securing: fail("TLS with the backend was not settled in time", &turn)
        case .handshaking: fail("the backend did not answer the handshake in time", isOverload: true, &turn)
        case .open: openTimerFired(dialectContext, &turn)
        case .closing:
            becomeStopped(&turn)
        }
        return takeEvents()
    }

    // MARK: - Ends

    func becomeUp(_ turn: inout Turn) {
        stage = .usable
        armOpen(&turn)
        shared.connects.endTurn(of: backendInTurn, room, &turn)
        isUp = true
        hasBeenUp = true
        attempts.succeeded += 1
        upSince = turn.now.monotonic
        loginTaken()
        events.append(.up)
    }

    func loginTaken() {
        loginsTaken += 1
        refusals = 0
    }

    /// - Parameters:
    ///   - isRefusal: the reason is the login, whether that opened a session or not.
    ///   - isEviction: the reason may also be the room; the close code is ambiguous.
    func fail(
        _ reason: String, transportGone: Bool = false, retryAfter: Duration? = nil, isRefusal: Bool = false,
        isEviction: Bool = false, isOverload: Bool = false, _ turn: inout Turn
    ) {
        let wasUp = isUp
        let now = turn.now.monotonic
        // Only where connections are known to be scarce: elsewhere a stall or a 500 may be anything.
        let isOverload = isOverload && traits.connectsInTurn
        let reason = Self.bounded(scrubbed(reason)) + (isOverload ? ", as an overloaded backend does" : "")
        let usable = endSession(transportGone: transportGone, now)
        evictedAfter = isEviction ? usable : nil
        failures += 1
        if !wasUp { if isRefusal { attempts.refused += 1 } else { attempts.failed += 1 } }
        lastReason = reason
        state = .waiting
        var delay = turn.draw { policy.delay(failures: failures, retryAfter: retryAfter, random: &$0) }
        if isOverload { delay = max(delay, ReconnectPolicy.overloadDelay) }
        shared.connects.endTurn(
            of: backendInTurn, room, pause: isOverload ? ReconnectPolicy.overloadDelay : .zero, &turn)
        isWaitingForCredentials = false
        if isRefusal {
            isRefusalOpen = true
            if let usable {
                // It worked, and has ended.
                if usable < Self.shortestLogin {
                    shortLogins += 1
                    delay = loginDelay(ends: shortLogins, &turn)
                } else {
                    failures = 1
                    delay = .zero
                }
            } else {
                // Other trouble in between makes the credentials no better: only a usable session starts the count
                // anew, or an outage in which they may have ended.
                if let refusedAt, now - refusedAt > Self.refusalWindow { refusals = 0 }
                refusedAt = now
                refusals += 1
                if refusals == 1 {
                    delay = .zero
                } else if hasBeenUp, usesAccount {
                    // The login has worked. Its next token may have ended on its way, as the one before did.
                    delay = loginDelay(ends: refusals - 1, &turn)
                } else {
                    delay = ReconnectPolicy.refusedDelay
                }
            }
            isWaitingForCredentials = delay > .zero && settings.authenticates
        }
        retryAt = now + delay
        armRetry(&turn)
        events.append(.down(reason: reason, wasUp: wasUp, retryIn: delay))
    }

    /// Returns how long the session was usable.
    private func endSession(transportGone: Bool, _ now: MonotonicInstant) -> Duration? {
        let usable = upSince.map { now - $0 }
        redirects = nil
        if let usable, usable >= settings.backoffResetAfter { failures = 0 }
        if let usable, usable >= Self.shortestLogin { shortLogins = 0 }
        evictedAfter = nil
        dropConnection()
        if !transportGone { emit(.close(flush: true)) }
        return usable
    }

    // MARK: - Other settings

    /// The dialect must be of the same kind.
    package func take(_ settings: LinkSettings, usesAccount: Bool) {
        self.settings = settings
        self.usesAccount = usesAccount
        policy = ReconnectPolicy(traits: settings.backoff)
    }

    /// Ends a session that works, as if it had failed.
    package func drop(_ reason: String, _ turn: inout Turn) -> [LinkEvent] {
        fail(reason, &turn)
        return takeEvents()
    }

    package enum Reopening: String, Sendable {
        /// The link was closed and is opened anew.
        case reopening
        /// The wait for the next try is over.
        case trying
        /// It is being opened already.
        case underWay = "under-way"
        /// It has no link now; it is opened when a user enters.
        case onDemand = "on-demand"
        case disabled

        /// Without a full stop.
        package func sentence(_ room: String) -> String {
            switch self {
            case .reopening: "The link of \(room) was closed and is opened anew"
            case .trying: "The link of \(room) is tried now"
            case .underWay: "The link of \(room) is being opened already"
            case .onDemand: "\(room) has no link now: it is opened when a user enters"
            case .disabled: "The link of \(room) was disabled at the admin socket: enable it there first"
            }
        }
    }

    /// Opens a link that is wanted anew, at once. That is no failure, and the counter of failures is as it was.
    ///
    /// - Parameter restartsTry: a try under way begins again: its settings are of before.
    package func reopen(
        _ reason: String, restartsTry: Bool, _ turn: inout Turn
    ) -> (outcome: Reopening, events: [LinkEvent]) {
        var outcome = Reopening.reopening
        switch state {
        case .stopped where isDisabled, .closing where isDisabled: return (.disabled, [])
        case .stopped, .closing: return (.onDemand, [])
        case .waiting: outcome = .trying
        case .open: replace(reason, &turn)
        case .gated, .authorizing, .connecting, .tunnelling, .securing, .handshaking:
            guard restartsTry else { return (.underWay, []) }
            replace(reason, &turn)
        }
        start(&turn)
        return (outcome, takeEvents())
    }

    /// Others than the refused credentials may be there: they are looked for now.
    package func lookForCredentials(_ turn: inout Turn) {
        if awaitsCredentials { turn.set(.link(room), at: turn.now.monotonic) }
    }

    private func replace(_ reason: String, _ turn: inout Turn) {
        let wasUp = isUp
        _ = endSession(transportGone: false, turn.now.monotonic)
        shared.connects.endTurn(of: backendInTurn, room, &turn)
        lastReason = reason
        state = .waiting
        events.append(.replaced(reason: reason, wasUp: wasUp))
    }

    private func loginDelay(ends: Int, _ turn: inout Turn) -> Duration {
        turn.draw { ReconnectPolicy.loginDelay(ends: ends, jitter: settings.backoff.jitter, random: &$0) }
    }

    /// Wakes the link when its wait is over, and before that to see whether refused credentials were replaced.
    private func armRetry(_ turn: inout Turn) {
        guard let retryAt else { return }
        let look = turn.now.monotonic + Self.credentialCheckInterval
        turn.set(.link(room), at: isWaitingForCredentials ? min(look, retryAt) : retryAt)
    }

    private func dropConnection() {
        tunnel = nil
        handshake = nil
        connection = nil
        isUp = false
        upSince = nil
        roundTrip = nil
        pingSentAt = nil
        livenessProbe = nil
        unansweredPings = []
        frameCount = 0
        nextPingAt = nil
        stage = .usable
        renewal = .none
        loginRenewedAt = nil
    }

    /// Allows or forbids new connections; the present one is not affected.
    package func setDisabled(_ isDisabled: Bool) { self.isDisabled = isDisabled }

    /// Ends the session for good: Close 1001 where there is one to close.
    package func stop(_ turn: inout Turn) -> [LinkEvent] {
        switch state {
        case .stopped: events.append(.stopped)
        case .gated, .authorizing, .waiting:
            becomeStopped(&turn)
        case .connecting, .tunnelling, .securing, .handshaking:
            emit(.close(flush: false))
            becomeStopped(&turn)
        case .open:
            let now = turn.now.monotonic
            turn.write { connection?.close(code: .goingAway, reason: "", now: now, output: &$0, using: &$1) }
            flush(&turn)
            isUp = false
            state = .closing
            turn.set(.link(room), at: turn.now.monotonic + Self.shutdownCloseWait)
        case .closing: break
        }
        return takeEvents()
    }

    private func becomeStopped(_ turn: inout Turn) {
        if state == .closing { emit(.close(flush: true)) }
        dropConnection()
        redirects = nil
        shared.connects.endTurn(of: backendInTurn, room, &turn)
        turn.cancel(.link(room))
        state = .stopped
        events.append(.stopped)
    }
}
