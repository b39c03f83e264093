import ChatModel
import IRCProtocol
import WireBytes

// `*bridge`, the service to whom people talk in plain words. Whatever it can do a client without any capability can do with
// it. It is a person among the others for WHOIS, WHO, ISON and MONITOR; its answers are PRIVMSGs, as ZNC's and soju's are,
// because those stay together in one window.

extension Bridge {
    /// No person's nick begins so.
    static let serviceNick = "*bridge"
    static let serviceIdent = "bridge"
    static let serviceRealname = "the bridge itself; say help to it"

    func isService(_ nick: String) -> Bool {
        settings.casemapping.fold(nick) == settings.casemapping.fold(Self.serviceNick)
    }

    /// What a message to the service costs in flood tokens; nil: it is not to the service.
    func servicePenalty(of message: IRCMessage) -> Int? {
        guard message.command == MessageVerb.privmsg.rawValue || message.command == "SQUERY",
            message.params.count > 1, message.params[0].utf8.contains(UInt8(ascii: "*"))
        else { return nil }
        let count = message.params[0].split(separator: ",").prefix(IRCSession.maxTargets + 1)
            .count { isService(String($0)) }
        return count > 0 ? count * servicePenalty(of: message.params[1]) : nil
    }

    /// What carrying out the words costs in flood tokens.
    func servicePenalty(of text: String) -> Int {
        Self.command(in: text).flatMap { ServiceCommandTable.row(named: $0.word) }?.penalty ?? 1
    }

    /// The command that somebody says to the service, and what stands behind it; nil: it is none.
    private static func command(in text: String) -> (word: Substring, rest: Substring)? {
        guard MessageRendering.action(text) == nil else { return nil }
        let parts = MessageRendering.withoutFormatting(text).split(separator: " ", maxSplits: 1)
        return parts.first.map { ($0, parts.count > 1 ? parts[1] : "") }
    }

    // MARK: - What it is told

    func toService(
        _ verb: MessageVerb, _ words: SpokenText?, _ clientTags: [IRCTag], from person: Person, _ session: IRCSession
    ) {
        guard verb != .tagmsg, let words, let service = context.identities[service] else { return }
        let head = IRCMessage(
            tags: stamp(person) + clientTags, source: person.source, command: verb.rawValue, params: [service.nick])
        echo(
            MessageRendering.utterance(head, SpokenText(text: Self.withoutPassword(words.text))), to: session.id,
            label: nil)
        // A NOTICE is never answered: RFC 2812 §3.3.2.
        guard verb == .privmsg else { return }
        if MessageRendering.isForeignCTCP(words.text) {
            guard
                let answer = answer(
                    toCTCP: words.text, version: "chatbridge \(settings.version), the bridge itself")
            else { return }
            return reply(
                IRCMessage(
                    tags: stamp(service), source: service.source, command: "NOTICE",
                    params: [session.displayNick, "\u{1}\(answer)\u{1}"]),
                session)
        }
        serve(words.text, session)
    }

    /// The words without the password of a login: what comes back to a client is on its screen and in its logs.
    static func withoutPassword(_ text: String) -> String {
        let words = MessageRendering.withoutFormatting(text).split(separator: " ", maxSplits: 2)
        guard words.count > 2, ServiceCommandTable.row(named: words[0])?.command == .login else { return text }
        return "\(words[0]) \(words[1]) ***"
    }

    /// Carries out what somebody asked for.
    func serve(_ text: String, _ session: IRCSession) {
        guard !text.utf8.contains(UInt8(ascii: "\n")) else {
            return say("One command in a message, please.", to: session)
        }
        guard let (word, rest) = Self.command(in: text) else {
            return say("Say help to hear what I know.", to: session)
        }
        let isAdmin = isOperators(session)
        guard let row = ServiceCommandTable.row(named: word) else {
            return say(
                "I do not know \"\(Self.quoted(word))\". "
                    + (ServiceCommandTable.suggestion(for: word, isAdmin: isAdmin).map { "Did you mean \($0)?" }
                        ?? "Say help to hear what I know."),
                to: session)
        }
        guard isAdmin || !row.isForAdmins else {
            return say("\(row.command.rawValue) is for administrators.", to: session)
        }
        let words = rest.split(separator: " ")
        guard words.count >= row.minParams else { return say("Usage: \(row.usage)", to: session) }
        perform(row, words.map(String.init), rest: String(rest), session)
    }

    private func perform(_ row: ServiceCommandTable.Row, _ words: [String], rest: String, _ session: IRCSession) {
        switch row.command {
        case .help: help(words.first, session)
        case .rooms: listRooms(session)
        case .status: status(words.first, session)
        case .who: listPeople(words.first, session)
        case .seen: seen(words[0], session)
        case .history: readHistory(words, row, session)
        case .search: readFound(rest, row, session)
        case .show: readMessage(words, row, session)
        case .notices: chooseNotices(words.first, row, session)
        case .receipts: chooseReceipts(words.first, row, session)
        case .rejoin: chooseRejoining(words.first, row, session)
        case .mute: mute(words.first, session)
        case .unmute: unmute(words[0], session)
        case .whoami: whoAmI(session)
        case .login: logIn(rest, row, session)
        case .logout: logOut(session)
        case .reconnect: reconnect(words[0], session)
        }
    }

    /// Somebody's word, fit to be said back.
    static func quoted(_ word: some StringProtocol) -> String {
        NickMaker.prefix(of: UpstreamSession.printable(String(word)), maxBytes: 64)
    }

    // MARK: - What it says

    /// One line of the service. What does not fit the line is left out.
    func serviceLine(_ text: String, to session: IRCSession) -> IRCMessage? {
        guard let service = context.identities[service] else { return nil }
        return IRCMessage(
            tags: [IRCTag("bot")], source: service.source, command: "PRIVMSG",
            params: [
                session.displayNick, NickMaker.prefix(of: text, maxBytes: serviceBudget(for: session)),
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

    // MARK: - Help

    private func help(_ topic: String?, _ session: IRCSession) {
        let isAdmin = isOperators(session)
        guard let topic else {
            say("I am the bridge: everybody in a room here is in the room of a chat backend too.", to: session)
            let rows = ServiceCommandTable.rows.filter { isAdmin || !$0.isForAdmins }
            for row in rows { sayLater("\(row.usage) - \(row.summary)", to: session) }
            return sayLater("help <command> tells more about each.", to: session)
        }
        guard let row = ServiceCommandTable.row(named: topic), isAdmin || !row.isForAdmins else {
            let meant = ServiceCommandTable.suggestion(for: topic, isAdmin: isAdmin)
            return say(
                "There is no help on \"\(Self.quoted(topic))\"; "
                    + (meant.map { "did you mean \($0)?" } ?? "help alone lists the commands."), to: session)
        }
        say("\(row.usage) - \(row.summary)", to: session)
        for line in row.details { say(line, to: session) }
    }
}
