import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms

// Answers about people, rooms and the server.

extension IRCServer {
    func whoisReceived(_ nicks: String?, _ session: IRCSession) {
        guard let nicks, !nicks.isEmpty else {
            return reply(session.numeric(.errNoNicknameGiven, "No nickname given"), session)
        }
        for nick in IRCSession.list(nicks).prefix(IRCSession.maxTargets) { whois(nick, session) }
    }

    private func whois(_ nick: String, _ session: IRCSession) {
        let shown = PrintableText.of(nick, maxBytes: 64)
        guard let (id, person) = context.identities.person(nick: nick), person.isPresent else {
            reply(session.numeric(.errNoSuchNick, shown, "No such nick"), session)
            return reply(session.numeric(.rplEndOfWhois, shown, "End of /WHOIS list"), session)
        }
        reply(
            session.numeric(.rplWhoisUser, person.nick, person.ident, person.host, "*", person.realname), session)
        let channels = visibleRooms(of: id, person, session).map { $0.moderation.prefixes(of: id) + $0.channel }
        if !channels.isEmpty {
            // Whole names only; the rest of a very long list is left out.
            let line = channels.reduce(into: "") { line, name in
                if line.utf8.count + name.utf8.count < 380 { line += (line.isEmpty ? "" : " ") + name }
            }
            reply(session.numeric(.rplWhoisChannels, person.nick, line), session)
        }
        if case .remote = person.kind {
            reply(session.numeric(.rplWhoisServer, person.nick, person.host, "On the chat backend"), session)
        } else {
            let description = settings.description.isEmpty ? "On IRC" : settings.description
            reply(session.numeric(.rplWhoisServer, person.nick, settings.serverName, description), session)
        }
        if let away = person.away { reply(session.numeric(.rplAway, person.nick, away), session) }
        if operators.contains(id) {
            reply(session.numeric(.rplWhoisOperator, person.nick, "is an administrator of this bridge"), session)
        }
        if person.isBot { reply(session.numeric(.rplWhoisBot, person.nick, "is a bot"), session) }
        if let account = person.account {
            reply(session.numeric(.rplWhoisAccount, person.nick, account, "is logged in as"), session)
        }
        whoisSecurity(person, session)
        if let other = person.clients.first.flatMap({ sessions[$0] }) {
            reply(
                session.numeric(
                    .rplWhoisIdle, person.nick, String(idleSeconds(person)),
                    String(other.connectedAt.milliseconds / 1000), "seconds idle, signon time"), session)
        }
        // Where somebody comes from is for themselves and for operators.
        if session.person == id || isOperators(session) {
            whoisPrivately(id, person, session)
        }
        if !person.isLocal, !person.realname.isEmpty {
            reply(
                session.numeric(
                    .rplWhoisKeyValue, person.nick, MetadataSubscriptions.displayName, "*", person.realname), session)
        }
        reply(session.numeric(.rplEndOfWhois, person.nick, "End of /WHOIS list"), session)
    }

    /// What protects the way to a person's clients, and what they show of themselves.
    private func whoisSecurity(_ person: Person, _ session: IRCSession) {
        let clients = person.clients.compactMap { sessions[$0] }
        guard !clients.isEmpty else { return }
        // One that can be listened to is enough for it not to be true.
        if clients.allSatisfy({ $0.origin.security != .plain }) {
            reply(session.numeric(.rplWhoisSecure, person.nick, "is using a secure connection"), session)
        }
        // A certificate tells who somebody is elsewhere too: for themselves, and for administrators.
        guard clients.contains(where: { $0 === session }) || isOperators(session) else { return }
        for certificate in Set(clients.compactMap(\.origin.security.certificate)).sorted() {
            reply(
                session.numeric(
                    .rplWhoisCertificate, person.nick, "has client certificate fingerprint \(certificate)"), session)
        }
    }

    private func whoisPrivately(_ id: PersonID, _ person: Person, _ session: IRCSession) {
        guard person.isLocal else { return }
        for client in sessions(of: id) {
            // A path on this machine has no place in a line, nor has an empty address.
            let address = client.origin.address
            let shown = address.isEmpty || address.hasPrefix("/") || address.hasPrefix(":") ? "localhost" : address
            reply(
                session.numeric(
                    .rplWhoisActually, person.nick, "\(person.ident)@\(shown)", shown, "Actual user@host, Actual IP"),
                session)
        }
        reply(session.numeric(.rplWhoisModes, person.nick, "is using modes \(ownModes(id))"), session)
    }

    /// Entries of one WHOWAS; of a nick that many had, the last few say enough.
    static let maxWhowasEntries = 10

    /// - Parameter count: how many at most. Zero and less mean all: RFC 2812 §3.6.3.
    func whowas(_ nick: String?, count: String?, _ session: IRCSession) {
        guard let nick, !nick.isEmpty else {
            return reply(session.numeric(.errNoNicknameGiven, "No nickname given"), session)
        }
        let count = count.flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil }
        let shown = PrintableText.of(nick, maxBytes: 64)
        let folded = settings.casemapping.fold(nick)
        let found = whowas.find { settings.casemapping.fold($0.nick) == folded }
            .prefix(min(count ?? Self.maxWhowasEntries, Self.maxWhowasEntries))
        if found.isEmpty { reply(session.numeric(.errWasNoSuchNick, shown, "There was no such nickname"), session) }
        for entry in found {
            reply(
                session.numeric(
                    .rplWhowasUser, entry.person.nick, entry.person.ident, entry.person.host, "*",
                    entry.person.realname), session)
            reply(
                session.numeric(
                    .rplWhoisServer, entry.person.nick, settings.serverName,
                    IRCServerTime.format(milliseconds: entry.leftAt.milliseconds)), session)
        }
        reply(session.numeric(.rplEndOfWhowas, shown, "End of WHOWAS"), session)
    }

    func isOn(_ params: [String], _ session: IRCSession) {
        var line = ""
        for nick in params.lazy.flatMap({ $0.split(separator: " ") }) {
            guard let (_, person) = context.identities.person(nick: String(nick)), person.isPresent else { continue }
            guard line.utf8.count + person.nick.utf8.count < 400 else { break }
            line += (line.isEmpty ? "" : " ") + person.nick
        }
        reply(session.numeric(.rplIsOn, line), session)
    }

    func userhost(_ nicks: [String], _ session: IRCSession) {
        let answers = nicks.prefix(5).compactMap { nick -> String? in
            guard let (id, person) = context.identities.person(nick: nick), person.isPresent else { return nil }
            return
                "\(person.nick)\(operators.contains(id) ? "*" : "")=\(person.away == nil ? "+" : "-")\(person.ident)@\(person.host)"
        }
        reply(session.numeric(.rplUserHost, answers.joined(separator: " ")), session)
    }

    // MARK: - The server

    func version(of server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        reply(
            session.numeric(
                .rplVersion, "chatbridge-\(settings.version)", settings.serverName,
                "a bridge between WebSocket chat backends and IRC"), session)
        sendISupport(session)
    }

    func time(of server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        reply(
            session.numeric(
                .rplTime, settings.serverName, String(context.now.wall.milliseconds / 1000), "0",
                IRCServerTime.format(milliseconds: context.now.wall.milliseconds)), session)
    }

    func info(of server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        for line in [
            "chatbridge \(settings.version)",
            "Everybody in a room here is in the room of a chat backend too, and the other way round.",
            "PRIVMSG \(ServiceName.nick) help: it answers in plain words.",
            "Running since \(IRCServerTime.format(milliseconds: startedAt.milliseconds)).",
        ] {
            reply(session.numeric(.rplInfo, line), session)
        }
        reply(session.numeric(.rplEndOfInfo, "End of INFO list"), session)
    }

    func motd(of server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        guard !settings.motd.isEmpty else {
            return reply(session.numeric(.errNoMotd, "There is no message of the day"), session)
        }
        reply(session.numeric(.rplMotdStart, "- \(settings.serverName) Message of the day -"), session)
        for line in settings.motd { reply(session.numeric(.rplMotd, "- " + line), session) }
        reply(session.numeric(.rplEndOfMotd, "End of /MOTD command"), session)
    }

    func lusers(of server: String?, _ session: IRCSession) {
        guard isThisServer(server, session) else { return }
        let upstream = rooms.reduce(0) { $0 + $1.upstreamCount }
        let unknown = sessions.count - counts.clients
        let people = counts.count(upstream: upstream)
        // The form is what clients and statistics read; IRC users count as invisible, since all have +i.
        reply(
            session.numeric(
                .rplLUserClient, "There are \(upstream) users and \(counts.clients) invisible on 1 servers"), session)
        reply(session.numeric(.rplLUserOp, String(operators.count), "operator(s) online"), session)
        reply(session.numeric(.rplLUserUnknown, String(max(0, unknown)), "unknown connection(s)"), session)
        reply(
            session.numeric(.rplLUserChannels, String(rooms.count { mayEnter($0, session) }), "channels formed"),
            session)
        reply(session.numeric(.rplLUserMe, "I have \(counts.clients) clients and 0 servers"), session)
        reply(
            session.numeric(
                .rplLocalUsers, String(counts.clients), String(counts.mostClients),
                "Current local users \(counts.clients), max \(counts.mostClients)"), session)
        reply(
            session.numeric(
                .rplGlobalUsers, String(people), String(counts.mostPeople),
                "Current global users \(people), max \(counts.mostPeople)"), session)
    }
}
