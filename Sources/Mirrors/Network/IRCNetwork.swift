import BridgeTypes
import Digests
import IRCProtocol
import WireBytes

// The relay as a client of an IRC network: one connection after another, as values.
//
// | state          | meaning                                 | verb → next                                                        |
// |----------------|-----------------------------------------|---------------------------------------------------------------------|
// | closed         | no connection; `reconnect` says when    | opened → negotiating                                                |
// | negotiating    | NICK, USER are sent; CAP is asked       | CAP answered → authenticating, welcoming; 001 → usable              |
// | authenticating | SASL                                    | success → welcoming; refused, unproven → closing                    |
// | welcoming      | CAP END is sent                         | 001 → usable                                                        |
// | usable         | registered; channels have their phases  | ERROR, no answer to a PING → closing                                |
// | closing        | `close` was asked for, or QUIT is sent  | closed → closed                                                     |
//
// From every state with a connection: `stop` → closing, closed → closed, and before usable 60 s → closing.
//
// Nothing counts as delivered that the network may not have read. How it is known, by what the server offers:
//
// - `labeled-response`: each line has a label, and its answer too;
// - `echo-message`: echoes and refusals come in the order of the lines, channel by channel;
// - neither: one post after the other, with a PING behind it, since the PONG comes behind every refusal.
//
// Where a label or an echo stays away, a PING behind the line settles it as well.

/// One network.
package final class IRCNetwork {
    package enum State: Equatable {
        case closed
        case negotiating
        case authenticating
        case welcoming
        case usable
        case closing
    }

    /// What was accepted of a post.
    package enum Acceptance: Equatable, Sendable {
        /// `delivered` or `failed` follows.
        case accepted
        /// It has no form there: as good as delivered.
        case omitted
        /// The channel is not joined, or enough waits already.
        case notNow
    }

    /// What is known of one connection.
    struct Connection {
        var capabilities = NetworkCapabilities()
        var support = NetworkSupport()
        var login: NetworkLogin?
        var isLoggedIn = false
        /// Ours, as the server knows us.
        var source: NetworkSource
        /// Nicks tried in vain.
        var nickTries = 0
        /// The server has refused a nick for its form, such as its length.
        var takesPlainNicks = false
        /// When channels are joined at the latest: the end of the MOTD, and with it of 005, has not come.
        var setUpAt: MonotonicInstant?
        /// When the wished nick is tried again, where the server does not tell.
        var nickRetryAt: MonotonicInstant?
        var nickTriedAt: MonotonicInstant?
        var batches = IRCBatches([.multiline, .history, .labeledResponse])
        var outbox: NetworkOutbox
        /// The network has refused no batch of several lines.
        var takesMultiline = true
        var openedAt: MonotonicInstant
        var usableAt: MonotonicInstant?
        var receivedAt: MonotonicInstant
        /// The PING that is not answered: the number of the line, and when it was sent.
        var ping: (line: UInt64, sentAt: MonotonicInstant)?
        var ctcpAnsweredAt: MonotonicInstant?
        /// Why it ends, where that is known before it has ended; and the least wait before the next.
        var end: (reason: String, wait: Duration)?
    }

    static let maxHeardIDs = 2000
    static let registrationTimeout: Duration = .seconds(60)
    static let quitTimeout: Duration = .seconds(2)
    /// A connection of this length was a good one.
    static let goodConnection: Duration = .seconds(5 * 60)
    static let motdTimeout: Duration = .seconds(10)
    static let nickRetryInterval: Duration = .seconds(60)
    static let watchedNickInterval: Duration = .seconds(10 * 60)
    /// A network that complains of too many connections.
    static let throttledWait: Duration = .seconds(2 * 60)
    /// A password tried quickly locks accounts.
    static let refusedWait: Duration = .seconds(5 * 60)
    static let bannedWait: Duration = .seconds(15 * 60)

    let settings: IRCNetworkSettings
    package private(set) var state = State.closed
    var connection: Connection
    var channels: [NetworkChannel]
    /// Messages that were taken, and ours.
    var heardIDs = RecentIDs(capacity: maxHeardIDs)
    var ownIDs = RecentIDs(capacity: 2000)
    /// When people were last told that private messages are not read, by nick.
    var toldAt: [String: MonotonicInstant] = [:]
    /// Attempts since the last usable connection.
    private var failures = 0
    /// Usable connections since the last one that lasted, with that one.
    private var shortConnections = 0
    /// The last usable connection had a history.
    private(set) var keptHistory = false
    private var isStopping = false
    private var closingAt: MonotonicInstant?
    private var decoder = IRCLineDecoder(limits: IRCNetwork.limits)
    private var writer = ByteWriter()
    private var output: [UInt8] = []
    private var actions: [IRCNetworkAction] = []

    /// Of a line from a server: tags of both kinds, and 512 bytes.
    private static let limits = IRCLimits(maxReceivedTagBytes: IRCLimits.maxTagBytes)

    package init(_ settings: IRCNetworkSettings) {
        self.settings = settings
        channels = settings.channels.map { NetworkChannel($0) }
        connection = Self.connection(settings, login: nil, at: MonotonicInstant(nanoseconds: 0))
    }

    private static func connection(
        _ settings: IRCNetworkSettings, login: NetworkLogin?, at now: MonotonicInstant
    ) -> Connection {
        Connection(
            login: login, source: NetworkSource(nick: settings.nick),
            outbox: NetworkOutbox(rate: settings.linesPerSecond, burst: settings.linesBurst), openedAt: now,
            receivedAt: now)
    }

    // MARK: - Actions

    /// What the verbs since the last call ask for, with what is to be sent at the front.
    package func takeActions() -> [IRCNetworkAction] {
        defer { (actions, output) = ([], []) }
        return output.isEmpty ? actions : [.send(output)] + actions
    }

    func emit(_ action: IRCNetworkAction) { actions.append(action) }

    func note(_ level: BridgeNote.Level, _ event: String, _ text: String, _ metadata: NoteMetadata = [:]) {
        emit(.note(BridgeNote(level, event, text, metadata)))
    }

    /// Writes a line now, past the others.
    func write(_ message: IRCMessage) {
        IRCEncoder.append(message, to: &writer)
        writer.take().withUnsafeBytes { output.append(contentsOf: $0) }
        connection.outbox.wroteLine()
    }

    func write(_ command: String, _ params: String...) { write(IRCMessage(command: command, params: params)) }

    // MARK: - Verbs

    /// The connection is open, with TLS where it has that.
    ///
    /// - Parameter random: fresh and secret, for a nonce.
    package func opened(now: Now, random: inout some RandomNumberGenerator) {
        guard state == .closed else { return }
        let nonce = (0..<SCRAMClientExchange.nonceByteCount).map { _ in UInt8.random(in: .min ... .max, using: &random)
        }
        connection = Self.connection(
            settings, login: NetworkLogin(settings.login, randomness: nonce), at: now.monotonic)
        decoder = IRCLineDecoder(limits: Self.limits)
        state = .negotiating
        write("CAP", "LS", "302")
        if let password = settings.serverPassword { write("PASS", String(decoding: password.bytes, as: UTF8.self)) }
        write("NICK", settings.nick)
        write("USER", settings.user, "0", "*", settings.realname)
    }

    /// The connection ended, or did not come about.
    ///
    /// - Parameters:
    ///   - reason: a part of a sentence.
    ///   - random: for the jitter of the back-off.
    package func closed(reason: String, now: Now, random: inout some RandomNumberGenerator) {
        let end = connection.end ?? (reason, .zero)
        let usableFor = connection.usableAt.map { now.monotonic - $0 }
        if usableFor != nil { keptHistory = connection.capabilities.enabled.contains(.chatHistory) }
        failAll("the connection was lost before the network confirmed the message")
        for index in channels.indices { channels[index].connectionEnded() }
        connection = Self.connection(settings, login: nil, at: now.monotonic)
        state = .closed
        closingAt = nil
        if isStopping { return emit(.stopped) }
        if let usableFor {
            failures = 0
            shortConnections = usableFor < Self.goodConnection ? shortConnections + 1 : 1
        } else {
            failures += 1
        }
        let delay = NetworkDelays.reconnect(
            failures: failures, shortConnections: shortConnections, random: &random)
        emit(.reconnect(after: max(delay, end.wait), reason: end.reason))
    }

    /// Ends the connection for good, or `stopped` at once where there is none.
    package func stop(now: Now) {
        isStopping = true
        switch state {
        case .closed: emit(.stopped)
        case .closing: break
        case .negotiating, .authenticating, .welcoming, .usable:
            write("QUIT", "the relay is stopped")
            state = .closing
            closingAt = now.monotonic + Self.quitTimeout
        }
    }

    /// Takes bytes in any pieces.
    package func received(_ bytes: UnsafeRawBufferPointer, now: Now) {
        guard state != .closed, state != .closing else { return }
        connection.receivedAt = now.monotonic
        decoder.append(bytes)
        while state != .closing, let line = decoder.withNextLine({ Self.message($0) }) {
            if let message = line { lineReceived(message, now: now) }
            pump(now: now)
        }
    }

    /// Nil: the line is none, and is left out.
    private static func message(_ line: IRCLineDecoder.Line) -> IRCMessage? {
        guard case .line(let bytes) = line else { return nil }
        do throws(IRCLineError) {
            return try IRCParse.parse(bytes)
        } catch {
            guard error == .invalidUTF8 else { return nil }
            // Old clients write Latin-1, and their words are the people's all the same.
            var latin = String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
            return latin.withUTF8 { try? IRCParse.parse(UnsafeRawBufferPointer($0)) }
        }
    }

    package func timerFired(now: Now) {
        switch state {
        case .closed: return
        case .closing:
            if let closingAt, now.monotonic >= closingAt {
                self.closingAt = nil
                emit(.close)
            }
            return
        case .negotiating, .authenticating, .welcoming:
            if now.monotonic >= connection.openedAt + Self.registrationTimeout {
                end("the network did not register the client within 60 s")
            }
        case .usable:
            checkLiveness(now: now)
            if let due = connection.setUpAt, now.monotonic >= due { setUp(now: now) }
            channelsTimerFired(now: now)
            retryNick(now: now)
        }
        pump(now: now)
    }

    /// When ``timerFired(now:)`` is wanted; nil: never.
    package var nextDeadline: MonotonicInstant? {
        switch state {
        case .closed: return nil
        case .closing: return closingAt
        case .negotiating, .authenticating, .welcoming: return connection.openedAt + Self.registrationTimeout
        case .usable:
            var deadlines = [livenessDeadline]
            deadlines += [
                connection.setUpAt, connection.nickRetryAt, connection.outbox.nextGrant, proofDeadline,
            ].compactMap { $0 }
            deadlines += channels.compactMap(\.deadline)
            return deadlines.min()
        }
    }

    // MARK: - States

    func become(_ next: State) { state = next }

    /// Asks for the end of the connection.
    ///
    /// - Parameter wait: the least time before the next.
    func end(_ reason: String, wait: Duration = .zero) {
        guard state != .closed, state != .closing else { return }
        connection.end = (reason, wait)
        state = .closing
        emit(.close)
    }

    /// Whether the source of a line is ours.
    func isOurs(_ source: String?) -> Bool {
        guard let nick = source.map(Self.nick(of:)) else { return false }
        return connection.support.areSame(nick, connection.source.nick)
    }

    static func nick(of source: String) -> String { String(source.prefix { $0 != "!" && $0 != "@" }) }

    func channelIndex(_ name: String) -> Int? {
        let folded = connection.support.casemapping.fold(name)
        return channels.firstIndex { connection.support.casemapping.fold($0.settings.name) == folded }
    }
}

extension NetworkChannel {
    /// When something is due.
    var deadline: MonotonicInstant? {
        switch phase {
        case .joining(let until), .waiting(let until): until
        case .joined: catchUp?.until
        case .apart, .refused: nil
        }
    }
}
