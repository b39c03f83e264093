import Accounts
import BridgeTypes
import IRCProtocol
import Identities
import Rooms

// Who the service is, and how it says something; what it knows is in IRCServer+Service.

extension IRCServer {
    func isService(_ nick: String) -> Bool {
        settings.casemapping.fold(nick) == settings.casemapping.fold(ServiceName.nick)
    }

    /// One line of the service. What does not fit the line is left out.
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

    /// Says something now, in as many lines as it takes.
    func say(_ text: String, to session: IRCSession) {
        for piece in IRCTextSplitter.split(text, budget: serviceBudget(for: session)) {
            if let line = serviceLine(piece, to: session) { reply(line, session) }
        }
    }

    /// Says something behind what is on its way to the client already.
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

    /// Somebody's word, fit to be said back.
    static func quoted(_ word: some StringProtocol) -> String {
        PrintableText.of(String(word), maxBytes: 64)
    }

    static func counted(_ count: Int, _ one: String, _ many: String) -> String { "\(count) \(count == 1 ? one : many)" }

    /// A room that the client may enter; nil after telling that there is none.
    func serviceRoom(_ name: String, _ session: IRCSession) -> Room? {
        let channel = name.hasPrefix("#") ? name : "#" + name
        if let room = room(channel: channel, for: session) { return room }
        say("I know no room \(Self.quoted(channel)); say rooms to hear which there are.", to: session)
        return nil
    }
}
