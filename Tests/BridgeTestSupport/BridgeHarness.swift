import Accounts
public import BridgeCore
import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
public import IRCServer
import Media
import Rooms
import Upstream
public import WireBytes

/// A bridge with everything around it played by the test: clients, backends, clocks and chance.
///
/// Clients and rooms go by number: client 1 is `ClientID(rawValue: 1)`, room 0 is the first of the settings.
public final class BridgeHarness {
    /// Mirrored rooms whose orders have grown.
    public var logged: Set<RoomID> = []
    /// The actions of the bridge, in order.
    public enum Output: Equatable {
        /// A complete line to a client, without its CR LF.
        case line(client: UInt64, [UInt8])
        case clientClosed(UInt64)
        case readingPaused(UInt64)
        case readingResumed(UInt64)
        case upstream(room: Int, ScriptedUpstream.Event)
        /// Only with ``showsNotes``.
        case note(BridgeNote)
        case listenersClosed
        case stopped
    }

    private struct ClientTap {
        var unfinished: [UInt8] = []
        var isClosed = false
        var wantsDrain = false
        /// Takes no bytes, so its queue never empties.
        var isSlow = false
    }

    public let bridge: Bridge
    public var clock: ManualClock
    /// The disk.
    public var store: StoreStage
    public private(set) var upstreams: [ScriptedUpstream]
    private var ownUpstreams: [ScriptedUpstream] = []
    public private(set) var notes: [BridgeNote] = []
    /// Notes for the log stand among the outputs too, where they were made.
    public var showsNotes = false
    /// Things no driver could do: bytes for a client that was closed, frames without a connection.
    public private(set) var violations: [String] = []
    /// Lines that ended without CR.
    public private(set) var bareNewlineCount = 0
    /// Connections are answered at once, without the test saying so.
    public var acceptsConnections = true
    /// The backend sends every frame back to its sender too, as relays do.
    public var echoes = false
    /// Passwords are checked at once; otherwise the test answers, with ``answerPasswordCheck(_:_:)``.
    public var checksPasswords = true
    public private(set) var passwordChecks: [PasswordCheck] = []
    public private(set) var passwordHashings: [PasswordHashing] = []
    /// Clients answer PING by themselves, and neither shows.
    public var answersPings = true
    /// Credentials by the room's number; without an entry none are required.
    public var credentials: [Int: Result<UpstreamCredentials, UpstreamCredentialsFailure>] = [:]
    /// How often credentials were asked for, and each time whether after a refusal.
    public private(set) var credentialReads: [Bool] = []
    /// Files to be stored, in order.
    public private(set) var keptFiles: [StoredFile] = []
    /// Whether local storage of uploads succeeds.
    public var keepsUploads = true
    /// Uploads that the bridge wants remembered, in order.
    public private(set) var keptUploads: [UploadRecord] = []
    /// Verdicts on upload tokens, in order.
    public private(set) var uploadTokenVerdicts: [(attempt: UInt64, verdict: UploadTokenVerdict)] = []
    /// Outcomes of uploads, in order.
    public private(set) var uploads: [(id: UploadID, outcome: Result<String, UploadFailure>)] = []
    public let settings: BridgeSettings
    /// Requests of backend accounts, for the test to answer.
    public var accounts = AccountStage()
    /// Histories that were asked for and not answered yet, in order.
    var openHistoryCalls: [AccountStage.Call] = []
    /// Requests since the last call.
    var historyQueries: [HistoryQuery] = []
    /// Called whenever time stood still for a deadline, after its consequences were recorded.
    public var deadlinePassed: (() -> Void)?
    private var taps: [UInt64: ClientTap] = [:]
    private var outputs: [Output] = []
    /// Clients that owe a PONG.
    private var pongs: [(client: UInt64, token: String)] = []

    /// - Parameters:
    ///   - store: the state of an earlier bridge; nil: no store.
    ///   - startingAt: when; of a bridge after another, a later moment.
    public init(
        settings: BridgeSettings, seed: UInt64 = 1, store: StoreStage? = nil,
        startingAt clock: ManualClock = ManualClock()
    ) {
        self.settings = settings
        self.clock = clock
        self.store = store ?? StoreStage()
        upstreams = settings.rooms.map { ScriptedUpstream(usualTarget: $0.url.pathAndQuery) }
        bridge = Bridge(
            settings: settings, stored: store?.disk, now: clock.now,
            random: AnyRandomNumberGenerator(SeededGenerator(seed: seed)))
    }

    /// The backend's end of a room's link, or of an account's own: these have numbers below zero.
    public func upstream(_ room: Int) -> ScriptedUpstream {
        guard room < 0 else {
            // A room of the template without a link yet.
            while room >= upstreams.count { upstreams.append(ScriptedUpstream(usualTarget: "")) }
            return upstreams[room]
        }
        while -1 - room >= ownUpstreams.count { ownUpstreams.append(ScriptedUpstream()) }
        return ownUpstreams[-1 - room]
    }

    /// Opens the links.
    public func start() {
        bridge.start(now: clock.now)
        settle()
    }

    /// Events since the last call.
    public func takeOutputs() -> [Output] {
        defer { outputs = [] }
        return outputs
    }

    /// The lines to `client` since the last call; discards all other events.
    public func takeLines(_ client: UInt64) -> [String] {
        takeOutputs().compactMap { output in
            if case .line(client, let bytes) = output { String(decoding: bytes, as: UTF8.self) } else { nil }
        }
    }

    // MARK: - Clients

    public func connect(
        _ client: UInt64, address: String = "127.0.0.1", isLocal: Bool = true, allowsLogin: Bool = true,
        security: ClientOrigin.Security = .plain, isWebSocket: Bool = false, sts: STSAnnouncement? = nil
    ) {
        taps[client] = ClientTap()
        var origin = ClientOrigin(
            address: address, isLocal: isLocal, allowsLogin: allowsLogin, security: security, sts: sts)
        origin.isWebSocket = isWebSocket
        bridge.clientOpened(ClientID(rawValue: client), origin: origin, now: clock.now)
        settle()
    }

    public func isConnected(_ client: UInt64) -> Bool { taps[client].map { !$0.isClosed } ?? false }

    /// The client's bytes arrive in one read.
    public func receive(_ client: UInt64, _ bytes: [UInt8]) {
        bytes.withUnsafeBytes { bridge.clientReceived(ClientID(rawValue: client), $0, now: clock.now) }
        settle()
    }

    /// The client sends a line.
    public func send(_ client: UInt64, _ line: String) { receive(client, Array((line + "\r\n").utf8)) }

    public func disconnect(_ client: UInt64, reason: String = "Connection closed") {
        taps[client]?.isClosed = true
        bridge.clientClosed(ClientID(rawValue: client), reason: reason, now: clock.now)
        settle()
    }

    /// The client ends its sending side and reads on. True: lines may still come for it.
    public func endSending(_ client: UInt64) -> Bool {
        let isKept = bridge.clientEnded(ClientID(rawValue: client), now: clock.now)
        settle()
        if !isKept { taps[client]?.isClosed = true }
        return isKept
    }

    /// The client stops or resumes reading.
    public func setSlow(_ client: UInt64, _ isSlow: Bool) {
        taps[client]?.isSlow = isSlow
        settle()
    }

    // MARK: - Backends

    /// Calls verbs of the bridge and runs the resulting actions.
    public func perform(_ verb: (Bridge, Now) -> Void) {
        verb(bridge, clock.now)
        settle()
    }

    /// The backend takes the connection that was asked for and opens the WebSocket.
    public func accept(_ room: Int) { answer(room, refusal: nil) }

    public func refuse(_ room: Int, status: Int, headers: [(name: String, value: String)] = []) {
        answer(room, refusal: (status, headers))
    }

    private func answer(_ room: Int, refusal: (status: Int, headers: [(name: String, value: String)])?) {
        guard upstream(room).state == .connecting else {
            violations.append("the test answers a connection that was not asked for")
            return
        }
        upstream(room).transportOpened(refusing: refusal)
        bridge.upstreamConnected(RoomID(index: room), now: clock.now)
        settle()
    }

    /// The transport ends, or never comes about.
    public func endTransport(_ room: Int, reason: String) {
        guard upstream(room).state != .idle else { return }
        upstream(room).transportEnded()
        bridge.upstreamClosed(RoomID(index: room), reason: reason, now: clock.now)
        settle()
    }

    public func closeUpstream(_ room: Int, code: UInt16, reason: String = "") {
        deliver(room, upstream(room).closeFrame(code: code, reason: reason))
    }

    public func sendFrame(_ room: Int, _ payload: [UInt8], isBinary: Bool = false) {
        deliver(room, upstream(room).frame(payload, isBinary: isBinary))
    }

    public func sendFrame(_ room: Int, _ payload: String) { sendFrame(room, Array(payload.utf8)) }

    /// Raw bytes, framed or not.
    public func deliver(_ room: Int, _ bytes: [UInt8]) {
        bytes.withUnsafeBytes { bridge.upstreamReceived(RoomID(index: room), $0, now: clock.now) }
        settle()
    }

    // MARK: - Time

    /// Lets time pass; every deadline on the way fires at its own moment.
    public func advance(by duration: Duration) {
        advance(to: clock.now.monotonic + duration)
    }

    public func advance(to target: MonotonicInstant) {
        var fired = 0
        while let deadline = bridge.nextDeadline(), deadline <= target {
            clock.move(to: deadline)
            bridge.timerFired(now: clock.now)
            settle()
            deadlinePassed?()
            fired += 1
            if fired > 2_000_000 {
                violations.append("time does not pass: a deadline is set again and again")
                return
            }
        }
        clock.move(to: target)
    }

    /// Level and metadata of each log entry of an event, `warn failures=2 room=lobby`.
    public func logged(_ event: String) -> [String] {
        notes.filter { $0.event == event }.map { Self.describe($0.level, $0.metadata) }
    }

    /// A level and metadata as in the log: sorted by key, without empty values.
    static func describe(_ level: BridgeNote.Level, _ metadata: NoteMetadata) -> String {
        "\(level)"
            + metadata.sorted.map { key, value in
                " \(key)=" + (value.contains(" ") ? "\"\(value)\"" : value)
            }.joined()
    }

    public func shutdown() {
        bridge.shutdown(now: clock.now)
        settle()
    }

    // MARK: - Running actions

    /// Runs the bridge's actions until there are no more.
    private func settle() {
        var rounds = 0
        while rounds < 100_000 {
            rounds += 1
            let actions = bridge.takeActions()
            for action in actions { run(action) }
            if !actions.isEmpty || accounts.answerOne(bridge, clock.now) || store.answerOne(bridge, clock.now) {
                continue
            }
            if drainOne() || answerPing() { continue }
            guard let deadline = bridge.nextDeadline(), deadline <= clock.now.monotonic else { return atRest() }
            bridge.timerFired(now: clock.now)
        }
        violations.append("the bridge does not come to rest")
    }

    /// A link that nobody needs has a timer that closes it, or is being closed.
    private func atRest() {
        for room in bridge.rooms
        where room.emptySince != nil && !room.isWanted && room.own.isEmpty && !room.isLeaving && !room.isLoading
            && bridge.context.due(.linger(room.id)) == nil
        {
            violations.append("room \(room.id.index) stays open for nothing")
        }
    }

    private func answerPing() -> Bool {
        guard !pongs.isEmpty else { return false }
        let (client, token) = pongs.removeFirst()
        guard isConnected(client) else { return true }
        Array("PONG bridge \(token)\r\n".utf8).withUnsafeBytes {
            bridge.clientReceived(ClientID(rawValue: client), $0, now: clock.now)
        }
        return true
    }

    private func drainOne() -> Bool {
        let ready = taps.filter { $0.value.wantsDrain && !$0.value.isSlow && !$0.value.isClosed }.keys.min()
        guard let ready else { return false }
        taps[ready]?.wantsDrain = false
        bridge.clientDrained(ClientID(rawValue: ready), now: clock.now)
        return true
    }

    private func run(_ action: BridgeAction) {
        switch action {
        case .send(let client, let slice): queue(client.rawValue, slice)
        case .fanOut(let slice, let clients, let except):
            for client in clients where client != except { queue(client.rawValue, slice) }
        case .notifyWhenDrained(let client): taps[client.rawValue]?.wantsDrain = true
        case .pauseReading(let client): outputs.append(.readingPaused(client.rawValue))
        case .resumeReading(let client): outputs.append(.readingResumed(client.rawValue))
        case .closeClient(let client):
            taps[client.rawValue]?.isClosed = true
            outputs.append(.clientClosed(client.rawValue))
            bridge.clientClosed(client, reason: "Connection closed", now: clock.now)
        case .readTokens, .saveTokens, .readSecrets, .callBackend: accounts.ordered(action)
        case .readCredentials(let room, let afterRefusal):
            credentialReads.append(afterRefusal)
            bridge.credentialsRead(
                room, credentials[room.index] ?? .success(UpstreamCredentials()), now: clock.now)
        case .connectUpstream(let room, let endpoint, let isSecure, _):
            connectRequested(room.index, endpoint, isSecure: isSecure)
        case .startTLS(let room, let host):
            record(room.index, .detail("TLS with \(host)"))
            bridge.upstreamSecured(room, now: clock.now)
        case .sendUpstream(let room, let slice): upstreamReceived(room.index, slice)
        case .logged(let room): logged.insert(room)
        case .mirrored, .mirrorRefused, .typing: break
        case .closeUpstream(let room, _):
            if let event = upstream(room.index).disconnected() { record(room.index, event) }
        case .checkPassword(let check):
            guard checksPasswords else {
                passwordChecks.append(check)
                break
            }
            if let verdict = verdict(on: check) {
                bridge.passwordChecked(check.client, attempt: check.attempt, verdict, now: clock.now)
            }
        case .hashPassword(let hashing):
            guard checksPasswords else {
                passwordHashings.append(hashing)
                break
            }
            bridge.passwordHashed(hashing.client, attempt: hashing.attempt, hashing.verifier(), now: clock.now)
        case .store(let ticket, let changes):
            store.ordered(ticket, changes)
        case .loadRoom, .readMessages, .findPlaces, .searchMessages: store.asked(action)
        case .keepFile(let file): keptFiles.append(file)
        case .storeUpload(let id, let file):
            if keepsUploads { keptFiles.append(file) }
            bridge.uploadStored(id, isStored: keepsUploads, now: clock.now)
        case .keepUpload(let record): keptUploads.append(record)
        case .uploadTokenChecked(let attempt, let verdict): uploadTokenVerdicts.append((attempt, verdict))
        case .uploaded(let id, let outcome): uploads.append((id, outcome))
        case .note(let note):
            notes.append(note)
            if showsNotes { outputs.append(.note(note)) }
        case .closeListeners: outputs.append(.listenersClosed)
        case .stopped: outputs.append(.stopped)
        }
    }

    private func verdict(on check: PasswordCheck) -> PasswordVerdict? {
        checksPasswords ? (check.isCorrect() ? .correct : .wrong) : nil
    }

    /// The answer to the oldest open check of `client`, where the test gives it.
    public func answerPasswordCheck(_ client: UInt64, _ verdict: PasswordVerdict) {
        guard let index = passwordChecks.firstIndex(where: { $0.client.rawValue == client }) else {
            violations.append("the test answers a password check that was not asked for")
            return
        }
        let check = passwordChecks.remove(at: index)
        bridge.passwordChecked(check.client, attempt: check.attempt, verdict, now: clock.now)
        settle()
    }

    /// The answer to the oldest open hashing of `client`, where the test gives it.
    public func answerPasswordHashing(_ client: UInt64, isDone: Bool = true) {
        guard let index = passwordHashings.firstIndex(where: { $0.client.rawValue == client }) else {
            violations.append("the test answers a hashing that was not asked for")
            return
        }
        let hashing = passwordHashings.remove(at: index)
        bridge.passwordHashed(
            hashing.client, attempt: hashing.attempt, isDone ? hashing.verifier() : nil, now: clock.now)
        settle()
    }

    private func queue(_ client: UInt64, _ slice: ByteSlice) {
        guard var tap = taps[client], !tap.isClosed else {
            violations.append("bytes for client \(client), which is closed: \(slice.text)")
            return
        }
        slice.withUnsafeBytes { tap.unfinished.append(contentsOf: $0) }
        while let newline = tap.unfinished.firstIndex(of: 0x0A) {
            var line = Array(tap.unfinished[..<newline])
            if line.last == 0x0D {
                line.removeLast()
            } else {
                bareNewlineCount += 1
            }
            tap.unfinished.removeFirst(newline + 1)
            if answersPings, line.starts(with: "PING ".utf8) {
                pongs.append((client, String(decoding: line.dropFirst("PING ".utf8.count), as: UTF8.self)))
            } else {
                outputs.append(.line(client: client, line))
            }
        }
        taps[client] = tap
    }

    private func connectRequested(_ room: Int, _ endpoint: UpstreamEndpoint, isSecure: Bool) {
        // Which room of the template it is shows in the target of the request.
        let place = bridge.ownLogin(of: RoomID(index: room))?.room ?? RoomID(index: room)
        record(room, upstream(room).connectRequested())
        guard let url = bridge.settings(of: place)?.url else {
            return violations.append("a connection for room \(room), which there is not")
        }
        let usual = url.isUnixSocket ? .unix(path: url.host) : UpstreamEndpoint.host(url.host, port: Int(url.port))
        if endpoint != usual {
            switch endpoint {
            case .host(let host, let port): record(room, .detail("to \(host):\(port)"))
            case .unix(let path): record(room, .detail("to \(path)"))
            }
        }
        if isSecure { record(room, .detail("TLS from the start")) }
        guard acceptsConnections else { return }
        upstream(room).transportOpened(refusing: nil)
        bridge.upstreamConnected(RoomID(index: room), now: clock.now)
    }

    private func upstreamReceived(_ room: Int, _ slice: ByteSlice) {
        let (events, answer) = upstream(room).received(slice)
        for event in events {
            record(room, event)
            if case .protocolBroken(let why) = event { violations.append("room \(room): \(why)") }
        }
        if !answer.isEmpty {
            answer.withUnsafeBytes { bridge.upstreamReceived(RoomID(index: room), $0, now: clock.now) }
        }
        guard echoes else { return }
        for case .frame(let payload, let isBinary) in events {
            let bytes = upstream(room).frame(payload, isBinary: isBinary)
            bytes.withUnsafeBytes { bridge.upstreamReceived(RoomID(index: room), $0, now: clock.now) }
        }
    }

    private func record(_ room: Int, _ event: ScriptedUpstream.Event) {
        outputs.append(.upstream(room: room, event))
    }
}
