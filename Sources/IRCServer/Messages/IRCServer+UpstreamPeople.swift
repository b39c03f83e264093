import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms

// Messages of IRC users to a person upstream. The bridge's wires carry none; CTCP queries are answered by the bridge.

extension IRCServer {
    /// Bytes of a CTCP PING that are returned; clients send a time.
    private static let maxPingBytes = 128

    func toUpstreamPerson(_ verb: MessageVerb, _ target: Person, _ text: String?, _ session: IRCSession) {
        // Dropped without a refusal: clients send typing every three seconds, in every window.
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

    /// The answer to a CTCP query to a person whom the bridge represents; nil: not a query that it can answer.
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

    /// Refuses a private message upstream: the bridge's wires carry none, and dropping it silently would hide that.
    func refusePrivate(_ verb: MessageVerb, _ target: Person, _ text: String?, _ session: IRCSession) {
        let why = "This is a user of the chat backend (\(target.host)), which takes no private messages from here"
        if session.caps.contains(.standardReplies) {
            let excerpt = text.map { ": " + MessageText.excerpt($0) } ?? ""
            refuse(
                verb,
                .fail(verb.rawValue, "CANNOT_DELIVER", target.nick, text: why + excerpt, source: settings.serverName),
                session)
        } else {
            // Behind the nick, as clients show it.
            let words = "takes no private messages from here, being a user of the chat backend (\(target.host))"
            refuse(verb, session.numeric(.errCannotSendToUser, target.nick, words), session)
        }
    }
}
