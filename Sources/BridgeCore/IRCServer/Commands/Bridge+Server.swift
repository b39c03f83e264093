import ChatModel
import IRCProtocol

// What a client asks of the server itself: what it supports, how commands are used, and the commands of old networks,
// which get the answer of a server that stands alone.

extension Bridge {
    // MARK: - ISUPPORT

    /// The lines of 005, in a batch for clients that know such.
    ///
    /// Source: IRCv3 extended-isupport.
    func sendISupport(_ session: IRCSession) {
        // The batch is part of what the capability asks for: without it the same lines come alone.
        guard session.caps.contains(.extendedISupport), session.caps.contains(.batch) else {
            for row in isupport { reply(supportLine(row, session), session) }
            return
        }
        replyBatch("draft/isupport", [], isupport.map { supportLine($0, session) }, session)
    }

    private func supportLine(_ row: [String], _ session: IRCSession) -> IRCMessage {
        IRCMessage(
            source: settings.serverName, numeric: .rplISupport,
            params: [session.displayNick] + row + [IRCISupport.trailingText])
    }

    /// Answers with a batch. Of a labeled answer it is a part.
    func replyBatch(_ type: String, _ params: [String], _ lines: [IRCMessage], _ session: IRCSession) {
        let reference = nextBatchReference()
        reply(
            IRCMessage(source: settings.serverName, command: "BATCH", params: ["+" + reference, type] + params), session
        )
        for var line in lines {
            line.setTag("batch", reference)
            reply(line, session)
        }
        reply(IRCMessage(source: settings.serverName, command: "BATCH", params: ["-" + reference]), session)
    }

    // MARK: - Which server

    /// Whether a command's server is this one: nobody named one, or this one's name or a pattern for it, or somebody here.
    /// Else the client is told that there is no such.
    func isThisServer(_ named: String?, _ session: IRCSession) -> Bool {
        guard let named, !named.isEmpty else { return true }
        if IRCMask(named).matches(settings.serverName) { return true }
        if let (_, person) = context.identities.person(nick: named), isLocal(person) { return true }
        let shown = NickMaker.prefix(of: UpstreamSession.printable(named), maxBytes: 64)
        reply(session.numeric(.errNoSuchServer, shown, "No such server; this one stands alone"), session)
        return false
    }

    // MARK: - HELP and the commands of old networks

    /// Source: modern.ircdocs.horse; RFC 2812 §3.4, §3.5, §4.
    func serverCommand(_ command: IRCCommand, _ params: [String], _ session: IRCSession) {
        switch command {
        case .help, .helpop: help(params.first, session)
        case .admin:
            guard isThisServer(params.first, session) else { return }
            reply(
                session.numeric(.errNoAdminInfo, settings.serverName, "No administrative info available"), session)
        case .stats: stats(params, session)
        case .links:
            guard params.count < 2 || isThisServer(params[0], session) else { return }
            let mask = params.last ?? "*"
            if IRCMask(mask).matches(settings.serverName) {
                reply(
                    session.numeric(
                        .rplLinks, settings.serverName, settings.serverName,
                        "0 \(settings.description.isEmpty ? settings.network : settings.description)"), session)
            }
            let shown = NickMaker.prefix(of: UpstreamSession.printable(mask), maxBytes: 64)
            reply(session.numeric(.rplEndOfLinks, shown.isEmpty ? "*" : shown, "End of /LINKS list"), session)
        case .trace:
            guard isThisServer(params.first, session) else { return }
            reply(
                session.numeric(
                    .rplTraceEnd, settings.serverName, "chatbridge-\(settings.version)", "End of TRACE"), session)
        case .users:
            guard isThisServer(params.first, session) else { return }
            reply(session.numeric(.errUsersDisabled, "USERS has been disabled"), session)
        case .summon: reply(session.numeric(.errSummonDisabled, "SUMMON has been disabled"), session)
        case .servlist:
            reply(
                session.numeric(
                    .rplServList, Self.serviceNick, settings.serverName, "*", "0", "0", Self.serviceRealname), session)
            reply(session.numeric(.rplServListEnd, "*", "*", "End of service listing"), session)
        case .squery where params.count > 1 && isService(params[0]) && !params[1].isEmpty:
            message(.privmsg, targets: [params[0]], words: SpokenText(text: params[1]), tags: [], session)
        case .squery:
            let name = params.first.map { NickMaker.prefix(of: UpstreamSession.printable($0), maxBytes: 64) } ?? "*"
            reply(session.numeric(.errNoSuchService, name.isEmpty ? "*" : name, "No such service"), session)
        case .rehash, .restart, .die, .connect, .squit: machineCommand(command, params, session)
        default: break
        }
    }

    /// What is done on the machine and not over IRC, even by operators.
    private func machineCommand(_ command: IRCCommand, _ params: [String], _ session: IRCSession) {
        guard let person = session.person, operators.contains(person) else {
            return reply(session.numeric(.errNoPrivileges, "Permission Denied- You're not an IRC operator"), session)
        }
        if command == .connect || command == .squit {
            let name = params.first.map { NickMaker.prefix(of: UpstreamSession.printable($0), maxBytes: 64) } ?? "*"
            return reply(
                session.numeric(.errNoSuchServer, name.isEmpty ? "*" : name, "No such server; this one stands alone"),
                session)
        }
        reply(
            session.numeric(
                .errNoPrivileges, "\(command.rawValue) is not for IRC: it is done on the machine, by whoever runs it"),
            session)
    }

    private func help(_ topic: String?, _ session: IRCSession) {
        guard let topic, !topic.isEmpty else {
            return help("*", "Help for \(settings.serverName)", IRCHelp.index, session)
        }
        guard let (verb, lines) = IRCHelp.lines(about: topic) else {
            let word = topic.prefix { $0 != " " }
            let shown = NickMaker.prefix(of: UpstreamSession.printable(String(word)), maxBytes: 64)
            return reply(
                session.numeric(
                    .errHelpNotFound, shown.isEmpty || shown.hasPrefix(":") ? "*" : shown,
                    "There is no help on this; HELP lists the commands"),
                session)
        }
        help(verb, "How to use \(verb)", lines, session)
    }

    private func help(_ subject: String, _ title: String, _ lines: [String], _ session: IRCSession) {
        session.appendLongAnswer(.line(session.numeric(.rplHelpStart, subject, title)))
        for line in lines { session.appendLongAnswer(.line(session.numeric(.rplHelpTxt, subject, line))) }
        session.appendLongAnswer(.line(session.numeric(.rplEndOfHelp, subject, "End of /HELP")))
    }

    private func stats(_ params: [String], _ session: IRCSession) {
        guard isThisServer(params.count > 1 ? params[1] : nil, session) else { return }
        let letter = params.first.map { String($0.prefix(1)) } ?? "*"
        if letter == "u" {
            let seconds = max(0, (context.now.wall.milliseconds - startedAt.milliseconds) / 1000)
            func two(_ number: Int64) -> String { (number < 10 ? "0" : "") + String(number) }
            reply(
                session.numeric(
                    .rplStatsUptime,
                    "Server Up \(seconds / 86400) days \(seconds / 3600 % 24):\(two(seconds / 60 % 60)):\(two(seconds % 60))"
                ), session)
        }
        let shown = UpstreamSession.printable(letter)
        reply(
            session.numeric(
                .rplEndOfStats, shown.isEmpty || shown == ":" || shown == " " ? "*" : shown, "End of /STATS report"),
            session)
    }
}
