import Accounts
import BridgeTypes
import IRCProtocol
import Identities
import Rooms

// The service's identity and output format; its commands are in IRCServer+Service.

extension IRCServer {
    func isService(_ nick: String) -> Bool {
        settings.casemapping.fold(nick) == settings.casemapping.fold(ServiceName.nick)
    }

    /// One line from the service, truncated to the limit.
    func serviceLine(_ text: String, to session: IRCSession) -> IRCMessage? {
        guard let service = context.identities[service] else { return nil }
        return IRCMessage(
            tags: [IRCTag("bot")], source: service.source, command: "PRIVMSG",
            params: [
                session.displayNick, PrintableText.prefix(of: text, maxBytes: serviceBudget(for: session)),
            ])
    }

    /// Bytes of a line's text.
    func serviceBudget(for session: IRCSession) -> Int {
        IRCTextSplitter.budget(
            source: context.identities[service]?.source ?? "", command: "PRIVMSG", target: session.displayNick)
    }

    /// Sends a text now, in as many lines as necessary.
    func say(_ text: String, to session: IRCSession) {
        for piece in IRCTextSplitter.split(text, budget: serviceBudget(for: session)) {
            if let line = serviceLine(piece, to: session) { reply(line, session) }
        }
    }

    /// Sends a text behind the client's pending answers.
    func sayLater(_ text: String, to session: IRCSession) {
        for piece in IRCTextSplitter.split(text, budget: serviceBudget(for: session)) {
            if let line = serviceLine(piece, to: session) { session.appendLongAnswer(.line(line)) }
        }
    }

    func tellReader(_ text: String, to client: ClientID) {
        guard let session = sessions[client], choices.wantsNotices(choicesOwner(session)),
            let service = context.identities[service]
        else { return }
        deliver(
            IRCMessage(
                tags: [IRCTag("bot")], source: service.source, command: "NOTICE",
                params: [session.displayNick, PrintableText.prefix(of: text, maxBytes: serviceBudget(for: session))]),
            to: client)
    }

    /// A user's word, made printable for a reply.
    static func quoted(_ word: some StringProtocol) -> String {
        PrintableText.of(String(word), maxBytes: 64)
    }

    static func counted(_ count: Int, _ one: String, _ many: String) -> String { "\(count) \(count == 1 ? one : many)" }

    /// A room that the client may enter; nil after a refusal.
    func serviceRoom(_ name: String, _ session: IRCSession) -> Room? {
        let channel = name.hasPrefix("#") ? name : "#" + name
        if let room = room(channel: channel, for: session) { return room }
        say("I know no room \(Self.quoted(channel)); say rooms to hear which there are.", to: session)
        return nil
    }
}
