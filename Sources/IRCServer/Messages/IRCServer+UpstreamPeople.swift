import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms

// What IRC users say to one person upstream. No wire of this bridge carries it; what the bridge knows it answers itself.

extension IRCServer {
    /// Bytes of a CTCP PING that are sent back; clients send a time.
    private static let maxPingBytes = 128

    func toUpstreamPerson(_ verb: MessageVerb, _ target: Person, _ text: String?, _ session: IRCSession) {
        // Clients tell of typing in every window; of what nobody can be told, nobody need be warned every three seconds.
        guard verb != .tagmsg else { return }
        if verb == .privmsg, let text,
            let answer = answer(toCTCP: text, version: "chatbridge \(settings.version), for somebody on \(target.host)")
        {
            return reply(
                IRCMessage(
                    source: target.source, command: "NOTICE", params: [session.displayNick, "\u{1}\(answer)\u{1}"]),
                session)
        }
        refusePrivate(verb, target, text, session)
    }

    /// What the bridge says for somebody whose client it is, as it were; nil: that is no question that it can answer.
    ///
    /// Source: IRC CTCP, draft-oakley-irc-ctcp-02.
    func answer(toCTCP text: String, version: String) -> String? {
        guard MessageRendering.isForeignCTCP(text) else { return nil }
        let body = text.dropFirst().prefix { $0 != "\u{1}" }
        let words = body.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        let rest = words.count > 1 ? " " + PrintableText.prefix(of: String(words[1]), maxBytes: Self.maxPingBytes) : ""
        switch words.first.map({ $0.uppercased() }) {
        case "CLIENTINFO": return "CLIENTINFO ACTION CLIENTINFO PING TIME VERSION"
        case "PING": return "PING" + rest
        case "TIME": return "TIME " + IRCServerTime.format(milliseconds: context.now.wall.milliseconds)
        case "VERSION": return "VERSION " + version
        default: return nil
        }
    }

    /// No wire of this bridge carries private messages to people upstream; saying so beats silence.
    func refusePrivate(_ verb: MessageVerb, _ target: Person, _ text: String?, _ session: IRCSession) {
        let why = "This person is on \(target.host), which takes no private messages from here"
        if session.caps.contains(.standardReplies) {
            let excerpt = text.map { ": " + MessageText.excerpt($0) } ?? ""
            refuse(
                verb,
                .fail(verb.rawValue, "CANNOT_DELIVER", target.nick, text: why + excerpt, source: settings.serverName),
                session)
        } else {
            refuse(verb, session.numeric(.errNoSuchNick, target.nick, why), session)
        }
    }
}
