import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms

// Queries about the server itself: its features, help, and commands of traditional networks, which are answered as by a
// server without peers.

extension IRCServer {
    // MARK: - ISUPPORT

    /// The lines of 005, in a batch for clients with that capability.
    ///
    /// Source: IRCv3 extended-isupport.
    func sendISupport(_ session: IRCSession) {
        // The capability includes the batch: without it the same lines come alone.
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

    // MARK: - Which server

    /// Whether a command's server is this one: none was given, its name or a pattern for it, or the nick of an IRC
    /// user. Otherwise the client gets an error.
    func isThisServer(_ named: String?, _ session: IRCSession) -> Bool {
        guard let named, !named.isEmpty else { return true }
        if IRCMask(named).matches(settings.serverName) { return true }
        if let (_, person) = context.identities.person(nick: named), person.isLocal { return true }
        noSuchServer(named, session)
        return false
    }

    // MARK: - HELP and the commands of old networks

    // Source: modern.ircdocs.horse; RFC 2812 §3.4, §3.5, §4.

    func admin(of server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        reply(.errNoAdminInfo, settings.serverName, "No administrative info available", to: session)
    }

    /// LINKS with the pattern last, behind the server that is asked.
    func links(_ params: [String], _ session: IRCSession) {
        guard params.count < 2 || isThisServer(params[0], session) else { return }
        let mask = params.last ?? "*"
        if IRCMask(mask).matches(settings.serverName) {
            reply(
                .rplLinks, settings.serverName, settings.serverName,
                "0 \(settings.description.isEmpty ? settings.network : settings.description)", to: session)
        }
        let shown = PrintableText.of(mask, maxBytes: 64)
        reply(.rplEndOfLinks, shown.isEmpty ? "*" : shown, "End of /LINKS list", to: session)
    }

    func trace(_ server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        reply(.rplTraceEnd, settings.serverName, "chatbridge-\(settings.version)", "End of TRACE", to: session)
    }

    func users(of server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        reply(.errUsersDisabled, "USERS has been disabled", to: session)
    }

    func summon(_ session: IRCSession) {
        reply(.errSummonDisabled, "SUMMON has been disabled", to: session)
    }

    func servlist(_ session: IRCSession) {
        reply(.rplServList, ServiceName.nick, settings.serverName, "*", "0", "0", ServiceName.realname, to: session)
        reply(.rplServListEnd, "*", "*", "End of service listing", to: session)
    }

    func refuseMachineCommand(_ verb: String, _ session: IRCSession) {
        reply(.errNoPrivileges, "\(verb) is not for IRC: it is done on the machine, by whoever runs it", to: session)
    }

    func helpReceived(_ topic: String?, _ session: IRCSession) {
        guard let topic, !topic.isEmpty else {
            return help("*", "Help for \(settings.serverName)", dispatch.commands.helpIndex, session)
        }
        guard let command = dispatch.commands.command(named: topic) else {
            let word = topic.prefix { $0 != " " }
            let shown = PrintableText.of(String(word), maxBytes: 64)
            return reply(
                .errHelpNotFound, shown.isEmpty || shown.hasPrefix(":") ? "*" : shown,
                "There is no help on this; HELP lists the commands", to: session)
        }
        help(command.verb, "How to use \(command.verb)", command.help, session)
    }

    private func help(_ subject: String, _ title: String, _ lines: [String], _ session: IRCSession) {
        session.appendLine(.rplHelpStart, subject, title)
        for line in lines { session.appendLine(.rplHelpTxt, subject, line) }
        session.appendLine(.rplEndOfHelp, subject, "End of /HELP")
    }

    func stats(_ query: String?, of server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        let letter = query.map { String($0.prefix(1)) } ?? "*"
        if letter == "u" {
            let seconds = max(0, (context.now.wall.milliseconds - startedAt.milliseconds) / 1000)
            func two(_ number: Int64) -> String { (number < 10 ? "0" : "") + String(number) }
            reply(
                .rplStatsUptime,
                "Server Up \(seconds / 86400) days \(seconds / 3600 % 24):\(two(seconds / 60 % 60)):\(two(seconds % 60))",
                to: session)
        }
        let shown = PrintableText.of(letter)
        reply(
            .rplEndOfStats, shown.isEmpty || shown == ":" || shown == " " ? "*" : shown, "End of /STATS report",
            to: session)
    }
}
