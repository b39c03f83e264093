import BridgeTypes
import ChatModel
import IRCProtocol
import WireBytes

// Lines of the server, and what people say in its channels.

extension IRCNetwork {
    /// Sorts one line.
    func lineReceived(_ message: IRCMessage, now: Now) {
        if message.command == "BATCH" { return batchReceived(message, now: now) }
        if connection.batches.take(message) { return }
        settle(by: message)
        let params = message.params
        switch message.command {
        case "PING": write(IRCMessage(command: "PONG", params: params.suffix(1)))
        case "PONG": pongReceived()
        case "ERROR": errorReceived(params.last ?? "")
        case "CAP": capReceived(params)
        case "AUTHENTICATE": authenticateReceived(params.first ?? "")
        case "JOIN": joinReceived(message, now: now)
        case "PART": partReceived(message, now: now)
        case "KICK": kickReceived(message, now: now)
        case "INVITE": inviteReceived(message, now: now)
        case "NICK": nickChanged(message)
        case "FAIL": historyRefused(message, now: now)
        case "PRIVMSG", "NOTICE", "TAGMSG", "REDACT", "TOPIC": spokenReceived(message, now: now)
        default: numericReceived(message, now: now)
        }
    }

    private func numericReceived(_ message: IRCMessage, now: Now) {
        let params = message.params
        switch message.command {
        case "001": welcomed(message, now: now)
        case "005": connection.support.received(params.dropFirst().dropLast())
        case "376", "422": setUp(now: now)
        case "396": if params.count > 1 { learn(host: params[1]) }
        case "432", "433", "436": nickRefused(isErroneous: message.command == "432")
        case "437" where params.count > 1 && channelIndex(params[1]) == nil: nickRefused(isErroneous: false)
        case "442": notOnChannel(message, now: now)
        case "464" where state != .usable: end("the network refuses the server password", wait: Self.bannedWait)
        case "465": end("the network has banned this client", wait: Self.bannedWait)
        case "731": wentOffline(params.last ?? "", now: now)
        case "903", "907": loginSucceeded()
        case "902", "904", "905", "906":
            if state == .authenticating { loginRefused(PrintableText.of(params.last ?? "")) }
        default: joinRefused(message, now: now)
        }
    }

    /// The server ends the connection, for a reason that says when to come back.
    private func errorReceived(_ text: String) {
        let lowered = text.lowercased()
        func says(_ words: String...) -> Bool { words.contains { lowered.contains($0) } }
        let wait: Duration =
            if says("ban", "k-line", "g-line", "z-line", "klined", "glined", "dnsbl") {
                Self.bannedWait
            } else if says("throttl", "too many", "too fast", "limit") { Self.throttledWait } else { .zero }
        end("the network ended the connection: \(PrintableText.of(text))", wait: wait)
    }

    // MARK: - Batches

    private func batchReceived(_ message: IRCMessage, now: Now) {
        guard let batch = connection.batches.received(message) else { return }
        switch batch.kind {
        case .multiline:
            // It may be a message of a history, whose line then has the tag of that batch.
            if let whole = batch.message { lineReceived(whole, now: now) }
        case .history: historyReceived(batch, now: now)
        // None that is collected here.
        case .search, .joins, .leaves: break
        case .labeledResponse:
            let label = batch.head.tag("label")?.value
            let answers = batch.lines.isEmpty ? [IRCMessage(command: "ACK")] : batch.lines
            for var answer in answers {
                answer.removeTag("batch")
                if let label { answer.setTag("label", label) }
                lineReceived(answer, now: now)
            }
        }
    }

    // MARK: - Speech

    private func spokenReceived(_ message: IRCMessage, now: Now) {
        guard let source = message.source, let target = message.params.first else { return }
        if let index = channelIndex(target) {
            guard channels[index].phase == .joined else { return }
            if isEcho(message) {
                if isOurs(source) { learn(source: source) }
                echoReceived(message, in: index)
            }
            if !channels[index].holds(message) { heard(message, in: index, isHistory: false, now: now) }
        } else if isOurs(target), !isOurs(source) {
            privateReceived(message, from: source, now: now)
        }
    }

    /// Whether the message is ours: said by us, or under another nick by RELAYMSG.
    private func isEcho(_ message: IRCMessage) -> Bool {
        isOurs(message.source) || message.tag("draft/relaymsg")?.value.map { isOurs($0) } == true
    }

    /// A message of a channel, in its order.
    ///
    /// - Parameter isHistory: it was said before we came, and some of it may be known.
    func heard(_ message: IRCMessage, in index: Int, isHistory: Bool, now: Now) {
        let id = message.msgid
        if let id, !heardIDs.insert(id) { return }
        if let arrival = arrival(of: message, id: id) {
            if !isEcho(message), id.map({ !ownIDs.contains($0) }) ?? true {
                emit(.arrived(arrival, channel: channels[index].settings.name))
            }
        } else {
            typingReceived(message, in: index)
        }
        guard connection.capabilities.enabled.contains(.chatHistory),
            message.command == "PRIVMSG" || message.command == "NOTICE"
        else { return }
        // A notice of the server itself, as of a link that is down, is in no history, and its time is no place in one: what the
        // network learns late may bear an earlier time.
        if id == nil, channels[index].lastSeen?.msgid != nil || !(message.source.map(Self.isPerson) ?? false) { return }
        saw(IRCNetworkPosition(msgid: id, time: Self.time(of: message) ?? now.wall), in: index)
    }

    func saw(_ position: IRCNetworkPosition, in index: Int) {
        channels[index].saw(position)
        emit(.seen(channel: channels[index].settings.name, position))
    }

    static func time(of message: IRCMessage) -> ChatTimestamp? {
        message.tag("time")?.value.flatMap(IRCServerTime.parse).map(ChatTimestamp.init(milliseconds:))
    }

    /// Nil for what is nothing to be mirrored.
    private func arrival(of message: IRCMessage, id: String?) -> MirrorArrival? {
        guard let source = message.source, Self.isPerson(source) else { return nil }
        let replyTo = (message.tag("+draft/reply") ?? message.tag("+reply"))?.value
        let content: MirrorArrival.Content
        var origin = message.tag(OriginChain.tag)?.value.flatMap { OriginChain($0) } ?? OriginChain()
        switch message.command {
        case "PRIVMSG", "NOTICE":
            guard message.params.count > 1 else { return nil }
            let split = OriginChain.split(message.params[1])
            split.chain.places.forEach { origin = origin.passing($0) }
            if let ctcp = CTCP(split.text) {
                guard ctcp.verb == "ACTION" else { return nil }
                content = .action(NetworkText.marked(ctcp.text))
            } else {
                content = .message(NetworkText.marked(split.text))
            }
        case "TAGMSG":
            guard let replyTo else { return nil }
            if let emoji = message.tag("+draft/react")?.value {
                content = .reaction(emoji, .add, on: replyTo)
            } else if let emoji = message.tag("+draft/unreact")?.value {
                content = .reaction(emoji, .remove, on: replyTo)
            } else {
                return nil
            }
        case "REDACT":
            guard message.params.count > 1 else { return nil }
            content = .takenBack(message.params[1])
        default: return nil
        }
        return MirrorArrival(
            content, id: id, speaker: Self.nick(of: source), replyTo: replyTo, origin: origin,
            first: message.tag(OriginChain.firstTag)?.value.flatMap { $0.isEmpty ? nil : $0 },
            isBot: message.tag("bot") != nil)
    }

    private func typingReceived(_ message: IRCMessage, in index: Int) {
        guard message.command == "TAGMSG", !isEcho(message), message.tag(OriginChain.tag) == nil,
            let source = message.source, Self.isPerson(source),
            let state = (message.tag("+typing") ?? message.tag("+draft/typing"))?.value
        else { return }
        emit(.typing(Self.nick(of: source), state == "active", channel: channels[index].settings.name))
    }

    /// Neither a server nor one of a network's services, which speak to all alike.
    private static func isPerson(_ source: String) -> Bool {
        guard source.contains("!") else { return false }
        let nick = nick(of: source).lowercased()
        return !services.contains(nick)
    }

    private static let services: Set<String> = [
        "chanserv", "nickserv", "memoserv", "botserv", "hostserv", "operserv", "saslserv", "alis", "global", "q", "x3",
    ]

    // MARK: - Private messages

    private static let ctcpInterval: Duration = .seconds(2)
    private static let toldInterval: Duration = .seconds(60)
    private static let maxTold = 100

    /// Nothing private is mirrored. A NOTICE is never answered. Source: RFC 1459 §4.4.2.
    private func privateReceived(_ message: IRCMessage, from source: String, now: Now) {
        guard message.command == "PRIVMSG", message.params.count > 1, Self.isPerson(source), state == .usable else {
            return
        }
        let nick = Self.nick(of: source)
        guard let ctcp = CTCP(message.params[1]) else { return tell(nick, now: now) }
        if let answeredAt = connection.ctcpAnsweredAt, now.monotonic - answeredAt < Self.ctcpInterval { return }
        let answer: String
        switch ctcp.verb {
        case "VERSION": answer = "VERSION " + settings.version
        case "PING": answer = "PING " + PrintableText.of(ctcp.text)
        default: return
        }
        connection.ctcpAnsweredAt = now.monotonic
        request("NOTICE", nick, "\u{1}\(answer)\u{1}")
    }

    private func tell(_ nick: String, now: Now) {
        toldAt = toldAt.filter { now.monotonic - $0.value < Self.toldInterval }
        let folded = connection.support.casemapping.fold(nick)
        guard toldAt[folded] == nil, toldAt.count < Self.maxTold else { return }
        toldAt[folded] = now.monotonic
        let names = channels.filter { $0.phase == .joined }.map(\.settings.name).prefix(3).joined(separator: ", ")
        let place = names.isEmpty ? "my channels" : names
        request(
            "NOTICE", nick, "I am a bridge between \(place) and another chat. Nobody reads what is sent to me here.")
    }
}

/// A message for a client rather than its user.
///
/// Source: modern.ircdocs.horse/ctcp.
private struct CTCP {
    let verb: String
    let text: String

    /// Nil: it is an ordinary text. The mark at the end may be missing.
    init?(_ message: String) {
        guard message.utf8.first == 1 else { return nil }
        let inner = message.dropFirst().prefix { $0 != "\u{1}" }
        let words = inner.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        verb = words.first.map { $0.uppercased() } ?? ""
        text = words.count > 1 ? String(words[1]) : ""
    }
}
