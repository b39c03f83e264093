import IRCProtocol
import Identities
import Rooms

// `*bridge`, the service: commands in plain words, all of them usable without any capability. It is a person for WHOIS,
// WHO, ISON and MONITOR; its answers are PRIVMSGs, as with ZNC and soju, because these stay together in one window.

extension IRCServer {

    /// The flood tokens of a message to the service; nil: another target.
    func servicePenalty(of message: IRCMessage) -> Int? {
        guard message.command == MessageVerb.privmsg.rawValue || message.command == "SQUERY",
            message.params.count > 1, message.params[0].utf8.contains(UInt8(ascii: "*"))
        else { return nil }
        let count = message.params[0].split(separator: ",").prefix(IRCSession.maxTargets + 1)
            .count { isService(String($0)) }
        return count > 0 ? count * servicePenalty(of: message.params[1]) : nil
    }

    /// The flood tokens of the command in a text.
    func servicePenalty(of text: String) -> Int {
        Self.command(in: text).flatMap { dispatch.serviceCommands.row(named: $0.word) }?.penalty ?? 1
    }

    /// The command in a text to the service, and its arguments; nil: none.
    private static func command(in text: String) -> (word: Substring, rest: Substring)? {
        guard MessageText.action(text) == nil else { return nil }
        let parts = MessageText.withoutFormatting(text).split(separator: " ", maxSplits: 1)
        return parts.first.map { ($0, parts.count > 1 ? parts[1] : "") }
    }

    // MARK: - Input

    func toService(
        _ verb: MessageVerb, _ words: SpokenText?, _ clientTags: [IRCTag], from person: Person, _ session: IRCSession
    ) {
        guard verb != .tagmsg, let words, let service = context.identities[service] else { return }
        let head = IRCMessage(
            tags: stamp(person) + clientTags, source: person.source, command: verb.rawValue, params: [service.nick])
        outbound.echo(
            MessageRendering.utterance(head, SpokenText(text: dispatch.serviceCommands.withoutPassword(words.text))),
            to: session.id,
            label: nil)
        // A NOTICE is never answered: RFC 2812 §3.3.2.
        guard verb == .privmsg else { return }
        if MessageRendering.isForeignCTCP(words.text) {
            guard
                let answer = answer(toCTCP: words.text, version: "chatbridge \(settings.version), the bridge itself")
            else { return }
            return reply(
                line("NOTICE", by: service, [session.displayNick, "\u{1}\(answer)\u{1}"]),
                session)
        }
        serve(words.text, session)
    }

    /// Carries out a user's command.
    func serve(_ text: String, _ session: IRCSession) {
        guard !text.utf8.contains(UInt8(ascii: "\n")) else {
            return say("One command in a message, please.", to: session)
        }
        guard let (word, rest) = Self.command(in: text) else {
            return say("Say help to hear what I know.", to: session)
        }
        let isAdmin = isOperators(session)
        guard let row = dispatch.serviceCommands.row(named: word) else {
            return say(
                "I do not know \"\(Self.quoted(word))\". "
                    + (dispatch.serviceCommands.suggestion(for: word, isAdmin: isAdmin).map { "Did you mean \($0)?" }
                        ?? "Say help to hear what I know."),
                to: session)
        }
        guard isAdmin || !row.isForAdmins else {
            return say("\(row.name) is for administrators.", to: session)
        }
        let words = rest.split(separator: " ")
        guard words.count >= row.minParams else { return say("Usage: \(row.usage)", to: session) }
        row.handle(self, ServiceRequest(words: words.map(String.init), rest: String(rest), usage: row.usage), session)
    }

    // MARK: - Help

    func help(_ topic: String?, _ session: IRCSession) {
        let isAdmin = isOperators(session)
        guard let topic else {
            say("I am the bridge: everybody in a room here is in the room of a chat backend too.", to: session)
            let rows = dispatch.serviceCommands.rows.filter { isAdmin || !$0.isForAdmins }
            for row in rows { sayLater("\(row.usage) - \(row.summary)", to: session) }
            return sayLater("help <command> tells more about each.", to: session)
        }
        guard let row = dispatch.serviceCommands.row(named: topic), isAdmin || !row.isForAdmins else {
            let meant = dispatch.serviceCommands.suggestion(for: topic, isAdmin: isAdmin)
            return say(
                "There is no help on \"\(Self.quoted(topic))\"; "
                    + (meant.map { "did you mean \($0)?" } ?? "help alone lists the commands."), to: session)
        }
        say("\(row.usage) - \(row.summary)", to: session)
        for line in row.details { say(line, to: session) }
    }
}
