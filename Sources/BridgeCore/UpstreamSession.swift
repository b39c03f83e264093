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
// | gated       | waits for a connection slot          | slotGranted → connecting                                                  |
// | connecting  | TCP is being opened                  | transportOpened → handshaking; transportClosed → waiting                  |
// | handshaking | request sent                         | accepted → open; refused, time-out, transportClosed → waiting             |
// | open        | WebSocket usable (ready or not yet)  | close received, failure, silence after a ping, transportClosed → waiting  |
// | waiting     | back-off                             | retry timer, retryNow → gated                                             |
// | closing     | our Close is sent, theirs awaited    | answered, transportClosed, time-out → stopped                             |
//
// A link never gives up. Trouble is told once an outage, with its first reason; the counter of failures goes back to zero
// after the session was usable for `backoffResetAfter`, not on TCP connect. A peer that refuses us (401, 403, 1008, 4001,
// 4003) is tried once more at once and then every 15 minutes.

/// What happened to a link, for the room that owns it.
enum LinkEvent: Equatable {
    /// Usable: queued messages may go.
    case up
    /// No longer usable, or never was. `reason` is a sentence without a full stop; `wasUp` tells a loss from a failed try.
    case down(reason: String, wasUp: Bool, retryIn: Duration)
    case chat(ChatEvent)
    case dropped(DropReason, byteCount: Int, typeKey: String?)
    /// Our Close was answered, or nobody waits for it any more.
    case stopped
}

final class UpstreamSession {
    enum State: Equatable {
        case stopped
        case gated
        case connecting
        case handshaking
        case open
        case waiting
        case closing
    }

    /// Longest wait for the answer to our Close when we shut down.
    static let shutdownCloseWait: Duration = .seconds(2)

    let room: RoomID
    private let settings: RoomSettings
    private let policy: ReconnectPolicy
    private(set) var state: State = .stopped
    private var handshake: WebSocketClientHandshake?
    private var connection: WebSocketConnection?
    /// The session is usable for chat (after `ready` where the wire has one).
    private(set) var isUp = false
    /// The session was usable at least once since the program started.
    private(set) var hasBeenUp = false
    private var upSince: MonotonicInstant?
    /// Failures in a row since the last usable session.
    private(set) var failures = 0
    private var refusals = 0
    private(set) var lastReason: String?
    /// When the ping was sent that has seen no byte since.
    private var pingSentAt: MonotonicInstant?
    private var nextPingAt: MonotonicInstant?
    private var events: [LinkEvent] = []

    init(room: RoomID, settings: RoomSettings) {
        self.room = room
        self.settings = settings
        self.policy = ReconnectPolicy(traits: settings.backoff)
    }

    private func takeEvents() -> [LinkEvent] {
        defer { events = [] }
        return events
    }

    // MARK: - Opening

    /// Starts or restarts trying, without waiting for a back-off in progress.
    func start(_ context: BridgeContext) {
        guard state == .stopped || state == .waiting else { return }
        context.timers.cancel(.link(room))
        state = .gated
        context.requestConnectSlot(room)
    }

    /// The bridge allows one more connection now.
    func slotGranted(_ context: BridgeContext) {
        guard state == .gated else { return }
        state = .connecting
        context.emit(
            .connectUpstream(
                room, host: settings.url.host, port: Int(settings.url.port), timeout: settings.connectTimeout))
    }

    func transportOpened(_ context: BridgeContext) -> [LinkEvent] {
        guard state == .connecting else { return [] }
        do {
            let request = try WebSocketClientHandshake(
                url: settings.url, headers: settings.headers, subprotocols: settings.subprotocols,
                userAgent: settings.userAgent, nonce: context.randomBytes(16))
            request.request(into: &context.writer)
            handshake = request
            state = .handshaking
            context.emit(.sendUpstream(room, context.writer.take()))
            context.timers.set(.link(room), at: context.now.monotonic + settings.handshakeTimeout)
        } catch {
            fail("the handshake request cannot be made: \(error.sentence)", context)
        }
        return takeEvents()
    }

    /// The connection ended, or never came about. `reason` is a sentence without a full stop.
    func transportClosed(reason: String, _ context: BridgeContext) -> [LinkEvent] {
        switch state {
        case .stopped, .gated, .waiting: return []
        case .closing: becomeStopped(context)
        case .connecting, .handshaking: fail(reason, transportGone: true, context)
        case .open: fail(reason, transportGone: true, context)
        }
        return takeEvents()
    }

    // MARK: - Bytes

    /// - Parameters:
    ///   - dialect: who decodes each message as it comes complete.
    func bytesReceived(
        _ bytes: UnsafeRawBufferPointer, dialectContext: DialectContext, _ context: BridgeContext
    ) -> [LinkEvent] {
        // Any byte after a ping proves life, not only its pong.
        pingSentAt = nil
        switch state {
        case .handshaking: handshakeBytesReceived(bytes, dialectContext, context)
        case .open, .closing: frameBytesReceived(bytes, dialectContext, context)
        case .stopped, .gated, .connecting, .waiting: break
        }
        return takeEvents()
    }

    private func handshakeBytesReceived(
        _ bytes: UnsafeRawBufferPointer, _ dialectContext: DialectContext, _ context: BridgeContext
    ) {
        guard let outcome = handshake?.bytesReceived(bytes) else { return }
        switch outcome {
        case .needMoreData: return
        case .refused(let refusal):
            handshake = nil
            var retryAfter: Duration?
            if case .status(_, _, let value, _) = refusal, let value {
                retryAfter = RetryAfter.delay(value, wallMilliseconds: context.now.wall.milliseconds)
            }
            fail(refusal.sentence, retryAfter: retryAfter, isRefusal: Self.isAuthRefusal(refusal), context)
        case .accepted(_, let consumed):
            handshake = nil
            connection = WebSocketConnection(role: .client, limits: settings.webSocketLimits)
            state = .open
            context.timers.cancel(.link(room))
            if settings.ping > .zero {
                let due = context.now.monotonic + settings.ping
                nextPingAt = due
                context.timers.set(.link(room), at: due)
            }
            context.note(.debug, "upstream-open", "WebSocket open", ["room": settings.name])
            if !settings.dialect.traits.waitsForReady { becomeUp(context) }
            if consumed < bytes.count {
                frameBytesReceived(UnsafeRawBufferPointer(rebasing: bytes[consumed...]), dialectContext, context)
            }
        }
    }

    private static func isAuthRefusal(_ refusal: WebSocketRefusal) -> Bool {
        if case .status(let status, _, _, _) = refusal { return status == 401 || status == 403 }
        return false
    }

    private static func isAuthClose(_ code: WebSocketCloseCode?) -> Bool {
        guard let code else { return false }
        return [1008, 4001, 4003].contains(code.rawValue)
    }

    private func frameBytesReceived(
        _ bytes: UnsafeRawBufferPointer, _ dialectContext: DialectContext, _ context: BridgeContext
    ) {
        let dialect = settings.dialect
        var decoded: [LinkEvent] = []
        var closed: (code: WebSocketCloseCode?, reason: String)?
        var failure: WebSocketFailure?
        connection?.bytesReceived(bytes, output: &context.writer, using: &context.random) { event in
            switch event {
            case .text(let payload): Self.decode(payload, false, dialect, dialectContext, &decoded)
            case .binary(let payload): Self.decode(payload, true, dialect, dialectContext, &decoded)
            case .ping, .pong: break
            case .closeReceived(let code, let reason): closed = (code, reason)
            case .failed(let what): failure = what
            }
        }
        flush(context)
        if state == .closing {
            // Everybody was told goodbye; what the backend still says has no one to hear it.
            if closed != nil || failure != nil { becomeStopped(context) }
            return
        }
        for event in decoded {
            if case .chat(.ready) = event, !isUp, settings.dialect.traits.waitsForReady { becomeUp(context) }
            events.append(event)
        }
        if let closed {
            let why = closed.reason.isEmpty ? "" : " (\(Self.printable(closed.reason)))"
            fail(
                "the backend closed the session with code \(closed.code?.rawValue ?? 1005)" + why,
                isRefusal: Self.isAuthClose(closed.code), context)
        } else if let failure {
            fail("the backend broke the WebSocket protocol: \(failure.sentence)", context)
        }
    }

    private static func decode(
        _ payload: UnsafeRawBufferPointer, _ isBinary: Bool, _ dialect: any Dialect, _ dialectContext: DialectContext,
        _ decoded: inout [LinkEvent]
    ) {
        switch dialect.decode(payload, isBinary: isBinary, context: dialectContext) {
        case .events(let chat): for event in chat { decoded.append(.chat(event)) }
        case .dropped(let reason, let typeKey):
            decoded.append(.dropped(reason, byteCount: payload.count, typeKey: typeKey))
        }
    }

    static func printable(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(120).filter { !IdentityMap.isControl($0) }))
    }

    // MARK: - Sending

    /// Writes frames; false when the link is not usable.
    func send(_ frames: [EncodedFrame], _ context: BridgeContext) -> Bool {
        guard isUp, state == .open else { return false }
        for frame in frames {
            frame.bytes.withUnsafeBytes { payload in
                if frame.isBinary {
                    _ = connection?.send(binary: payload, output: &context.writer, using: &context.random)
                } else {
                    _ = connection?.send(text: payload, output: &context.writer, using: &context.random)
                }
            }
        }
        flush(context)
        return true
    }

    /// Asks the peer for a sign of life now, unless that question is already open.
    func checkLiveness(_ context: BridgeContext) {
        guard state == .open, pingSentAt == nil else { return }
        _ = connection?.sendPing(
            UnsafeRawBufferPointer(start: nil, count: 0), output: &context.writer, using: &context.random)
        flush(context)
        pingSentAt = context.now.monotonic
        if settings.ping > .zero { nextPingAt = context.now.monotonic + settings.ping }
        context.timers.set(.link(room), at: context.now.monotonic + settings.pongTimeout)
    }

    private func flush(_ context: BridgeContext) {
        let slice = context.writer.take()
        if !slice.isEmpty { context.emit(.sendUpstream(room, slice)) }
    }

    // MARK: - Time

    func timerFired(_ context: BridgeContext) -> [LinkEvent] {
        let now = context.now.monotonic
        switch state {
        case .stopped, .gated, .connecting: break
        case .waiting: start(context)
        case .handshaking: fail("the backend did not answer the handshake in time", context)
        case .open:
            if let sent = pingSentAt {
                if now >= sent + settings.pongTimeout {
                    fail("the backend did not answer a ping in time", context)
                } else {
                    context.timers.set(.link(room), at: sent + settings.pongTimeout)
                }
            } else if let due = nextPingAt {
                if now >= due { checkLiveness(context) } else { context.timers.set(.link(room), at: due) }
            }
        case .closing:
            becomeStopped(context)
        }
        return takeEvents()
    }

    // MARK: - Ends

    private func becomeUp(_ context: BridgeContext) {
        isUp = true
        hasBeenUp = true
        upSince = context.now.monotonic
        events.append(.up)
    }

    private func fail(
        _ reason: String, transportGone: Bool = false, retryAfter: Duration? = nil, isRefusal: Bool = false,
        _ context: BridgeContext
    ) {
        let wasUp = isUp
        if let upSince, context.now.monotonic - upSince >= settings.backoffResetAfter {
            failures = 0
            refusals = 0
        }
        forgetConnection()
        if !transportGone { context.emit(.closeUpstream(room, flush: true)) }
        failures += 1
        lastReason = reason
        state = .waiting
        var delay = policy.delay(failures: failures, retryAfter: retryAfter, random: &context.random)
        if isRefusal {
            // Other trouble in between makes the credentials no better: only a usable session starts the count anew.
            refusals += 1
            delay = refusals == 1 ? .zero : ReconnectPolicy.refusedDelay
        }
        context.timers.set(.link(room), at: context.now.monotonic + delay)
        events.append(.down(reason: reason, wasUp: wasUp, retryIn: delay))
    }

    private func forgetConnection() {
        handshake = nil
        connection = nil
        isUp = false
        upSince = nil
        pingSentAt = nil
        nextPingAt = nil
    }

    /// Ends the session for good: Close 1001 where there is one to close.
    func stop(_ context: BridgeContext) -> [LinkEvent] {
        switch state {
        case .stopped: events.append(.stopped)
        case .gated, .waiting:
            becomeStopped(context)
        case .connecting, .handshaking:
            context.emit(.closeUpstream(room, flush: false))
            becomeStopped(context)
        case .open:
            connection?.close(
                code: .goingAway, reason: "", now: context.now.monotonic, output: &context.writer,
                using: &context.random)
            flush(context)
            isUp = false
            state = .closing
            context.timers.set(.link(room), at: context.now.monotonic + Self.shutdownCloseWait)
        case .closing: break
        }
        return takeEvents()
    }

    private func becomeStopped(_ context: BridgeContext) {
        if state == .closing { context.emit(.closeUpstream(room, flush: true)) }
        forgetConnection()
        context.timers.cancel(.link(room))
        state = .stopped
        events.append(.stopped)
    }
}
