import Accounts
import BridgeTypes
import IRCProtocol
import Identities
import Rooms
import WireBytes

// Login of a registered client, to a first or another account, and logout.
//
// One account is one person, with any number of clients: they share nick, rooms and read markers. A client that changes
// its account leaves one person and joins the other, on IRC and upstream, in the same rooms as far as permitted.

extension IRCServer {
    /// Clients of one account at a time: an action of one reaches all of them, so their number multiplies its cost.
    static let maxClientsPerAccount = 25

    // MARK: - Changing the account

    /// Moves a client to another person.
    ///
    /// - Parameter account: nil: none.
    func becomeAnother(_ session: IRCSession, _ account: AccountSettings?, clientName: String?) {
        guard let oldID = session.person, let old = context.identities[oldID] else { return }
        let shared = account.flatMap { person(of: $0) }
        if let shared, sessions(of: shared).count >= Self.maxClientsPerAccount { return closeSurplus(session) }
        let rooms = session.rooms
        let prefixes = prefixes(of: oldID, in: rooms)
        if old.clients == [session.id] {
            tellPeers(
                of: session,
                IRCMessage(
                    source: old.source, command: "QUIT",
                    params: [account == nil ? "Logged out" : "Logged in as somebody else"]))
            for id in rooms { if let room = room(id) { leave(room, session) } }
            whowas.record(old, at: context.now.wall)
            context.identities.remove(oldID)
            operators.forget(oldID)
        } else {
            for id in rooms { if let room = room(id) { leave(room, session) } }
            context.identities.remove(session.id, from: oldID)
            settleAway(of: oldID)
        }
        session.leftEverything()
        // Deliveries so far count for the old account, later ones for the new account.
        let lastStay = session.following?.lastStay
        outbound.stopFollowing(session)
        session.account = account
        session.setClientName(clientName)
        nameLateComer(session)
        // Acknowledgements in flight do not count for later deliveries.
        if let lastStay { following(session)?.continueStays(after: lastStay) }
        if let shared {
            join(session, old, rooms, prefixes, shared)
            return showStaying(oldID, rooms, session)
        }
        let nick = freeNick(for: account, wishing: old.nick)
        let id = context.identities.addLocal(
            client: session.id, nick: nick, ident: old.ident, host: old.host, realname: old.realname,
            account: account?.name)
        if account?.isAdmin == true { operators.add(id) }
        context.identities.setAway(id, session.away?.text)
        session.registered(as: id)
        if nick != old.nick { reply(IRCMessage(source: old.source, command: "NICK", params: [nick]), session) }
        session.take(nick: nick)
        tellAccount(session)
        guard let person = context.identities[id] else { return }
        for id in rooms {
            guard let room = room(id) else { continue }
            if mayEnter(room, session) {
                enter(room, session, isSilent: true)
            } else {
                tellShutOut(of: room, person, session)
            }
        }
        tellPrefixes(since: prefixes, session)
        showStaying(oldID, rooms, session)
        bringBack(session)
    }

    /// A person's membership prefixes in each of these rooms.
    private func prefixes(of person: PersonID, in rooms: ShortList<RoomID>) -> [RoomID: String] {
        var prefixes: [RoomID: String] = [:]
        for id in rooms { prefixes[id] = room(id)?.moderation.prefixes(of: person) }
        return prefixes
    }

    /// Sends the changed channel modes to a client that became another person in rooms it has open.
    private func tellPrefixes(since before: [RoomID: String], _ session: IRCSession) {
        guard let person = session.person else { return }
        for id in session.rooms {
            guard let old = before[id], let room = room(id) else { continue }
            let new = room.moderation.prefixes(of: person)
            for (prefix, mode) in [("@", "o"), ("+", "v")] as [(Character, String)]
            where old.contains(prefix) != new.contains(prefix) {
                reply(
                    serverLine("MODE", [room.channel, (new.contains(prefix) ? "+" : "-") + mode, session.displayNick]),
                    session)
            }
        }
    }

    /// Shows the client a JOIN of its former person, if that stays with other clients: for the client, its own nick has
    /// changed, so the former nick appears as a user of its own.
    private func showStaying(_ oldID: PersonID, _ rooms: ShortList<RoomID>, _ session: IRCSession) {
        guard let old = context.identities[oldID] else { return }
        for id in rooms where session.rooms.contains(id) {
            if let room = room(id) { reply(Channel.join(RoomSpeaker(old), old.realname, in: room, context), session) }
        }
    }

    /// Sends a client its new account.
    private func tellAccount(_ session: IRCSession) {
        guard let person = session.person.flatMap({ context.identities[$0] }) else { return }
        reply(IRCMessage(source: person.source, command: "ACCOUNT", params: [person.account ?? "*"]), session)
    }

    /// The first available nick: the client's own, the account's name, or that with a number.
    private func freeNick(for account: AccountSettings?, wishing nick: String) -> String {
        func isFree(_ nick: String) -> Bool {
            context.identities.refusal(nick: nick, holder: nil, account: account?.name) == nil
        }
        if isFree(nick) { return nick }
        guard let account else { return context.identities.numbered(nick) { isFree($0) } }
        // An account vouched for by the backend may have a name that is no nick.
        let name = account.name.utf8.contains(UInt8(ascii: "@")) ? nick : account.name
        if isFree(name) { return name }
        return context.identities.numbered(name) { isFree($0) }
    }

    // MARK: - Login after registration

    /// Logs in a registered client.
    func becomeAccount(_ session: IRCSession, _ account: AccountSettings) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        session.setAway(person.away)
        for id in session.rooms {
            guard let room = room(id), !mayEnter(room, session) else { continue }
            part(room, reason: "This account may not be here", session)
        }
        if let shared = self.person(of: account) { return merge(session, person, into: shared) }
        if account.isAdmin { operators.add(personID) }
        context.identities.setAccount(personID, account.name)
        let receipts = receiptsChoice(of: session)
        for id in session.rooms {
            guard let room = room(id) else { continue }
            rememberMembership(room, session)
            room.handle(.identify(clientName: session.clientName, receipts: receipts), from: session.id, context)
            if !room.isLoading { follow(room, session, from: Int64(room.lastSequence), nil) }
        }
        let line = IRCMessage(source: person.source, command: "ACCOUNT", params: [account.name])
        reply(line, session)
        tellPeers(of: session, line)
        if account.isAdmin { promote(personID, session) }
        bringBack(session)
    }

    /// Moves the client from its person to that of the account's other clients.
    private func merge(_ session: IRCSession, _ old: Person, into shared: PersonID) {
        guard let oldID = session.person else { return }
        let rooms = session.rooms
        let prefixes = prefixes(of: oldID, in: rooms)
        guard sessions(of: shared).count < Self.maxClientsPerAccount else { return closeSurplus(session) }
        tellPeers(of: session, IRCMessage(source: old.source, command: "QUIT", params: ["Logged in"]))
        for id in rooms { if let room = room(id) { leave(room, session) } }
        whowas.record(old, at: context.now.wall)
        context.identities.remove(oldID)
        operators.forget(oldID)
        session.leftEverything()
        join(session, old, rooms, prefixes, shared)
    }

    /// Attaches a client without a person to a present one, and enters all clients of that person into the rooms of
    /// both.
    ///
    /// - Parameters:
    ///   - old: the client's former person.
    ///   - rooms: rooms that the client has open.
    ///   - prefixes: its former membership prefixes there.
    private func join(
        _ session: IRCSession, _ old: Person, _ rooms: ShortList<RoomID>, _ prefixes: [RoomID: String],
        _ shared: PersonID
    ) {
        guard let person = context.identities[shared] else { return }
        let others = sessions(of: shared)
        context.identities.add(session.id, to: shared)
        session.registered(as: shared)
        if person.nick != old.nick {
            reply(IRCMessage(source: old.source, command: "NICK", params: [person.nick]), session)
        }
        session.take(nick: person.nick)
        tellAccount(session)
        for id in others.first(where: { !$0.isArriving })?.rooms ?? [] {
            if let room = room(id) { enter(room, session, isSilent: rooms.contains(id)) }
        }
        for id in rooms {
            guard let room = room(id), !session.rooms.contains(id) else { continue }
            guard mayEnter(room, session) else {
                tellShutOut(of: room, person, session)
                continue
            }
            enter(room, session, isSilent: true)
            for other in others where !other.isArriving {
                enter(room, other)
                pullLongAnswers(other)
            }
        }
        tellPrefixes(since: prefixes, session)
        settleAway(of: shared, by: session)
        bringBack(session)
    }

    func closeSurplus(_ session: IRCSession) { close(session, reason: "Too many clients of your account") }

    private func tellShutOut(of room: Room, _ person: Person, _ session: IRCSession) {
        let params = [room.channel, "This account may not be here"]
        reply(IRCMessage(source: person.source, command: "PART", params: params), session)
    }
}
