import BridgeTypes
import IRCProtocol
import WireBytes

// From CAP LS to 001, the nick, and what the server says of itself.

extension IRCNetwork {
    // MARK: - Capabilities

    /// `CAP <nick> <subcommand> [*] :<list>`.
    func capReceived(_ params: [String]) {
        guard params.count > 1 else { return }
        let list = params.count > 2 ? params[params.count - 1] : ""
        let hasMore = params.count > 3 && params[2] == "*"
        switch params[1].uppercased() {
        case "LS":
            connection.capabilities.offer(list)
            if !hasMore, state == .negotiating { requestCapabilities() }
        case "NEW":
            connection.capabilities.offer(list)
            if state == .usable { requestCapabilities() }
        case "DEL": connection.capabilities.withdraw(list)
        case "ACK": connection.capabilities.acknowledge(list)
        case "NAK": connection.capabilities.refuse(list).forEach { write("CAP", "REQ", $0) }
        default: return
        }
        if state == .negotiating, !hasMore, connection.capabilities.isSettled { negotiated() }
    }

    private func requestCapabilities() {
        let wantsLogin = state == .negotiating && connection.login != nil
        let names = connection.capabilities.request(wantsLogin: wantsLogin)
        if !names.isEmpty { write("CAP", "REQ", names.joined(separator: " ")) }
    }

    private func negotiated() {
        guard let login = connection.login else { return welcome() }
        let capabilities = connection.capabilities
        guard capabilities.enabled.contains(.sasl), login.isOffered(in: capabilities.value(of: .sasl)) else {
            return loginRefused("the network does not offer SASL \(login.mechanism.rawValue)")
        }
        become(.authenticating)
        write("AUTHENTICATE", login.mechanism.rawValue)
    }

    private func welcome() {
        become(.welcoming)
        write("CAP", "END")
    }

    // MARK: - Login

    func authenticateReceived(_ param: String) {
        guard state == .authenticating, let step = connection.login?.received(param) else { return }
        switch step {
        case .send(let params): params.forEach { write("AUTHENTICATE", $0) }
        case .needMoreData: break
        case .failed(let reason): loginRefused(reason)
        }
    }

    func loginSucceeded() {
        guard state == .authenticating, let login = connection.login else { return }
        guard login.isProven else { return loginRefused("the network did not prove that it knows the password") }
        connection.isLoggedIn = true
        welcome()
    }

    /// Without its account the client would be another: it does not go on.
    func loginRefused(_ reason: String) {
        note(
            .warn, "mirror-login-refused", "the network refuses the login; tried again in 5 min", ["reason": reason])
        end("the login failed: \(reason)", wait: Self.refusedWait)
    }

    // MARK: - Welcome

    /// 001 RPL_WELCOME.
    func welcomed(_ message: IRCMessage, now: Now) {
        guard state != .usable else { return }
        if connection.login != nil, !connection.isLoggedIn {
            return loginRefused("the network registers clients without SASL")
        }
        become(.usable)
        if let nick = message.params.first, !nick.isEmpty, nick != "*" { take(nick: nick) }
        connection.usableAt = now.monotonic
        connection.setUpAt = now.monotonic + Self.motdTimeout
        emit(.ready)
    }

    /// All of 005 is there: the first requests of a registered client.
    func setUp(now: Now) {
        guard state == .usable, connection.setUpAt != nil else { return }
        connection.setUpAt = nil
        connection.nickRetryAt = now.monotonic + Self.nickRetryInterval
        if let mode = connection.support.botMode { request("MODE", connection.source.nick, "+" + mode) }
        if !hasWishedNick { watchNick() }
        joinAll(now: now)
    }

    // MARK: - Nick

    /// 432, 433, 436 or 437 for a nick.
    func nickRefused(isErroneous: Bool) {
        guard state != .usable else { return }
        connection.nickTries += 1
        let tries = connection.nickTries
        guard tries <= Self.maxNickTries + settings.alternativeNicks.count else {
            return end("the network takes none of the nicks", wait: Self.throttledWait)
        }
        let alternatives = settings.alternativeNicks
        if isErroneous { connection.takesPlainNicks = true }
        let isPlain = connection.takesPlainNicks
        let length = connection.support.nickLength ?? (isPlain ? Self.plainNickBytes : IRCNames.standardNickBytes)
        let nick: String
        if tries <= alternatives.count {
            nick = alternatives[tries - 1]
        } else {
            let marks = String(repeating: "_", count: tries - alternatives.count)
            let base = isPlain ? Self.plainNick(settings.nick) : settings.nick
            nick = PrintableText.prefix(of: base, maxBytes: max(length - marks.utf8.count, 1)) + marks
        }
        connection.source.take(nick: nick)
        write("NICK", nick)
    }

    private static let maxNickTries = 8

    /// What the oldest servers take. Source: RFC 1459 §1.2.
    private static let plainNickBytes = 9

    private static func plainNick(_ nick: String) -> String {
        let plain = nick.filter { IRCNames.isValidNickname("a\($0)", utf8: false) }.drop { $0.isNumber || $0 == "-" }
        return plain.isEmpty ? "bridge" : String(plain)
    }

    /// As long as the server takes it.
    var wishedNick: String {
        PrintableText.prefix(of: settings.nick, maxBytes: connection.support.nickLength ?? .max)
    }

    private var hasWishedNick: Bool { connection.support.areSame(connection.source.nick, wishedNick) }

    func retryNick(now: Now) {
        guard let due = connection.nickRetryAt, now.monotonic >= due else { return }
        reclaimNick(now: now)
    }

    /// Watched nicks are tried when they become free, and seldom for the case that the server withholds them.
    private func reclaimNick(now: Now) {
        let isWatched = connection.support.monitor != nil
        connection.nickRetryAt = now.monotonic + (isWatched ? Self.watchedNickInterval : Self.nickRetryInterval)
        guard !hasWishedNick else { return }
        connection.nickTriedAt = now.monotonic
        request("NICK", wishedNick)
    }

    /// 731 RPL_MONOFFLINE: `nick[,nick]`. A nick that is taken away at once is not tried again and again.
    func wentOffline(_ nicks: String, now: Now) {
        guard nicks.split(separator: ",").contains(where: { isWished(String($0)) }),
            connection.nickTriedAt.map({ now.monotonic - $0 >= Self.nickRetryInterval }) ?? true
        else { return }
        reclaimNick(now: now)
    }

    private func isWished(_ source: String) -> Bool { connection.support.areSame(Self.nick(of: source), wishedNick) }

    /// A client changed its nick.
    func nickChanged(_ message: IRCMessage) {
        guard isOurs(message.source), let nick = message.params.first, !nick.isEmpty else { return }
        take(nick: nick)
        watchNick()
    }

    func watchNick() {
        if connection.support.monitor != nil { request("MONITOR", hasWishedNick ? "-" : "+", wishedNick) }
    }

    private func take(nick: String) {
        connection.source.take(nick: nick)
        if !connection.source.isPlausible { end("the network gives the client a nick of \(nick.utf8.count) bytes") }
    }

    /// How others see us: from lines of ours that come back, and 396 RPL_VISIBLEHOST.
    func learn(source: String) {
        guard let seen = NetworkSource(parsing: source), seen.isPlausible else { return }
        connection.source = seen
    }

    func learn(host: String) {
        var source = connection.source
        let parts = host.split(separator: "@", maxSplits: 1).map(String.init)
        if parts.count == 2 { source.user = parts[0] }
        guard let last = parts.last else { return }
        source.host = last
        if source.isPlausible { connection.source = source }
    }
}
