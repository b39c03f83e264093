import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms

// Answers about users, rooms and the server.

extension IRCServer {
    func whoisReceived(_ nicks: String?, _ session: IRCSession) {
        guard let nicks, !nicks.isEmpty else {
            return reply(.errNoNicknameGiven, "No nickname given", to: session)
        }
        for nick in IRCSession.list(nicks) { whois(nick, session) }
    }

    private func whois(_ nick: String, _ session: IRCSession) {
        let shown = PrintableText.of(nick, maxBytes: 64)
        guard let (id, person) = context.identities.person(nick: nick), person.isPresent else {
            reply(.errNoSuchNick, shown, "No such nick", to: session)
            return reply(.rplEndOfWhois, shown, "End of /WHOIS list", to: session)
        }
        reply(.rplWhoisUser, person.nick, person.ident, person.host, "*", person.realname, to: session)
        let channels = visibleRooms(of: id, person, session).map { $0.moderation.prefixes(of: id) + $0.channel }
        for line in lines(of: channels, after: person.nick.utf8.count + 1, to: session) {
            reply(.rplWhoisChannels, person.nick, line, to: session)
        }
        if case .remote = person.kind {
            reply(.rplWhoisServer, person.nick, person.host, "On the chat backend", to: session)
        } else {
            let description = settings.description.isEmpty ? "On IRC" : settings.description
            reply(.rplWhoisServer, person.nick, settings.serverName, description, to: session)
        }
        if let away = person.away { reply(.rplAway, person.nick, away, to: session) }
        if operators.contains(id) {
            reply(.rplWhoisOperator, person.nick, "is an administrator of this bridge", to: session)
        }
        if person.isBot { reply(.rplWhoisBot, person.nick, "is a bot", to: session) }
        if let account = person.account {
            reply(.rplWhoisAccount, person.nick, account, "is logged in as", to: session)
        }
        whoisSecurity(person, session)
        if let other = person.clients.first.flatMap({ sessions[$0] }) {
            reply(
                .rplWhoisIdle, person.nick, String(idleSeconds(person)), String(other.connectedAt.milliseconds / 1000),
                "seconds idle, signon time", to: session)
        }
        // Addresses are shown to the user's own clients and to operators.
        if session.person == id || isOperators(session) {
            whoisPrivately(id, person, session)
        }
        if !person.isLocal, !person.realname.isEmpty {
            reply(.rplWhoisKeyValue, person.nick, MetadataSubscriptions.displayName, "*", person.realname, to: session)
        }
        reply(.rplEndOfWhois, person.nick, "End of /WHOIS list", to: session)
    }

    /// The security of the connections to a person's clients, and their certificates.
    private func whoisSecurity(_ person: Person, _ session: IRCSession) {
        let clients = person.clients.compactMap { sessions[$0] }
        guard !clients.isEmpty else { return }
        // One plain connection is enough to make it untrue.
        if clients.allSatisfy({ $0.origin.security != .plain }) {
            reply(.rplWhoisSecure, person.nick, "is using a secure connection", to: session)
        }
        // A certificate identifies its user elsewhere, too: only for the user's own clients and for administrators.
        guard clients.contains(where: { $0 === session }) || isOperators(session) else { return }
        for certificate in Set(clients.compactMap(\.origin.security.certificate)).sorted() {
            reply(.rplWhoisCertificate, person.nick, "has client certificate fingerprint \(certificate)", to: session)
        }
    }

    private func whoisPrivately(_ id: PersonID, _ person: Person, _ session: IRCSession) {
        guard person.isLocal else { return }
        for client in sessions(of: id) {
            // A parameter amid others may not be empty, or begin with a colon, as `::1` does.
            let address = client.origin.address
            let shown = address.isEmpty || address.hasPrefix(":") ? ClientOrigin.localName : address
            reply(
                .rplWhoisActually, person.nick, "\(person.ident)@\(shown)", shown, "Actual user@host, Actual IP",
                to: session)
        }
        reply(.rplWhoisModes, person.nick, "is using modes \(ownModes(id))", to: session)
    }

    /// Entries in one WHOWAS; the last few suffice for a nick with many users.
    static let maxWhowasEntries = 10

    /// Answers WHOWAS.
    ///
    /// - Parameter count: the limit. Zero and less mean all: RFC 2812 §3.6.3.
    func whowas(_ nick: String?, count: String?, _ session: IRCSession) {
        guard let nick, !nick.isEmpty else {
            return reply(.errNoNicknameGiven, "No nickname given", to: session)
        }
        let count = count.flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil }
        let shown = PrintableText.of(nick, maxBytes: 64)
        let folded = settings.casemapping.fold(nick)
        let found = whowas.find { settings.casemapping.fold($0.nick) == folded }
            .prefix(min(count ?? Self.maxWhowasEntries, Self.maxWhowasEntries))
        if found.isEmpty { reply(.errWasNoSuchNick, shown, "There was no such nickname", to: session) }
        for entry in found {
            reply(
                .rplWhowasUser, entry.person.nick, entry.person.ident, entry.person.host, "*", entry.person.realname,
                to: session)
            reply(
                .rplWhoisServer, entry.person.nick, settings.serverName,
                IRCServerTime.format(milliseconds: entry.leftAt.milliseconds), to: session)
        }
        reply(.rplEndOfWhowas, shown, "End of WHOWAS", to: session)
    }

    func isOn(_ params: [String], _ session: IRCSession) {
        var line = ""
        for nick in params.lazy.flatMap({ $0.split(separator: " ") }) {
            guard let (_, person) = context.identities.person(nick: String(nick)), person.isPresent else { continue }
            guard line.utf8.count + person.nick.utf8.count < 400 else { break }
            line += (line.isEmpty ? "" : " ") + person.nick
        }
        reply(.rplIsOn, line, to: session)
    }

    func userhost(_ nicks: [String], _ session: IRCSession) {
        let answers = nicks.prefix(5).compactMap { nick -> String? in
            guard let (id, person) = context.identities.person(nick: nick), person.isPresent else { return nil }
            return
                "\(person.nick)\(operators.contains(id) ? "*" : "")=\(person.away == nil ? "+" : "-")\(person.ident)@\(person.host)"
        }
        let lines = lines(of: answers, to: session)
        for line in lines.isEmpty ? [""] : lines { reply(.rplUserHost, line, to: session) }
    }

    // MARK: - The server

    func version(of server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        reply(
            .rplVersion, "chatbridge-\(settings.version)", settings.serverName,
            "a bridge between WebSocket chat backends and IRC", to: session)
        sendISupport(session)
    }

    func time(of server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        reply(
            .rplTime, settings.serverName, String(context.now.wall.milliseconds / 1000), "0",
            IRCServerTime.format(milliseconds: context.now.wall.milliseconds), to: session)
    }

    func info(of server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        for line in [
            "chatbridge \(settings.version)",
            "Everybody in a room here is in the room of a chat backend too, and the other way round.",
            "PRIVMSG \(ServiceName.nick) help: it answers in plain words.",
            "Running since \(IRCServerTime.format(milliseconds: startedAt.milliseconds)).",
        ] {
            reply(.rplInfo, line, to: session)
        }
        reply(.rplEndOfInfo, "End of INFO list", to: session)
    }

    func motd(of server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        guard !settings.motd.isEmpty else {
            return reply(.errNoMotd, "There is no message of the day", to: session)
        }
        reply(.rplMotdStart, "- \(settings.serverName) Message of the day -", to: session)
        for line in settings.motd { reply(.rplMotd, "- " + line, to: session) }
        reply(.rplEndOfMotd, "End of /MOTD command", to: session)
    }

    func lusers(of server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        let upstream = rooms.reduce(0) { $0 + $1.upstreamCount }
        let unknown = sessions.count - counts.clients
        let people = counts.count(upstream: upstream)
        // The format is parsed by clients and statistics; IRC users count as invisible, since all have +i.
        reply(.rplLUserClient, "There are \(upstream) users and \(counts.clients) invisible on 1 servers", to: session)
        reply(.rplLUserOp, String(operators.count), "operator(s) online", to: session)
        reply(.rplLUserUnknown, String(max(0, unknown)), "unknown connection(s)", to: session)
        reply(.rplLUserChannels, String(rooms.count { mayEnter($0, session) }), "channels formed", to: session)
        reply(.rplLUserMe, "I have \(counts.clients) clients and 0 servers", to: session)
        reply(
            .rplLocalUsers, String(counts.clients), String(counts.mostClients),
            "Current local users \(counts.clients), max \(counts.mostClients)", to: session)
        reply(
            .rplGlobalUsers, String(people), String(counts.mostPeople),
            "Current global users \(people), max \(counts.mostPeople)", to: session)
    }
}
