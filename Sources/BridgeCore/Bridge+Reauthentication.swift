import ChatModel
import IRCProtocol
import WireBytes

// A client that is logged in logs in as somebody else. The two accounts are two people, on IRC and upstream: the client
// leaves the one and becomes the other, in the same rooms as far as the other may enter them.

extension Bridge {
    func becomeAnother(_ session: IRCSession, _ account: AccountSettings, clientName: String?) {
        guard let oldID = session.person, let old = context.identities[oldID] else { return }
        let shared = person(of: account)
        if let shared, sessions(of: shared).count >= Self.maxClientsPerAccount { return closeSurplus(session) }
        let rooms = session.rooms
        if old.clients == [session.id] {
            tellPeers(
                of: session, IRCMessage(source: old.source, command: "QUIT", params: ["Logged in as somebody else"]))
            for id in rooms { if let room = room(id) { leave(room, session) } }
            whowas.remember(old, at: context.now.wall)
            context.identities.remove(oldID)
            if let name = old.account, accountPeople[name] == oldID { accountPeople[name] = nil }
        } else {
            for id in rooms { if let room = room(id) { leave(room, session) } }
            context.identities.modify(oldID) { $0.clients.removeAll { $0 == session.id } }
            settleAway(of: oldID)
        }
        session.rooms = []
        session.account = account
        session.setClientName(clientName)
        if let shared {
            join(session, old, rooms, shared)
            return showStaying(oldID, rooms, session)
        }
        let nick = freeNick(for: account, wishing: old.nick)
        let id = context.identities.addLocal(
            client: session.id, nick: nick, ident: old.ident, host: old.host, realname: old.realname,
            account: account.name)
        accountPeople[account.name] = id
        context.identities.modify(id) { $0.away = session.away?.text }
        session.state = .registered(id)
        if nick != old.nick { reply(IRCMessage(source: old.source, command: "NICK", params: [nick]), session) }
        session.nick = nick
        tellAccount(session)
        guard let person = context.identities[id] else { return }
        for id in rooms {
            guard let room = room(id) else { continue }
            if mayEnter(room, session) {
                enter(room, session, isSilent: true)
            } else {
                reply(
                    IRCMessage(
                        source: person.source, command: "PART", params: [room.channel, "This account may not be here"]),
                    session)
            }
        }
        showStaying(oldID, rooms, session)
    }

    /// For the client its own nick has changed. Where whom it was stays, with other clients, it has to hear that there is
    /// somebody of the old nick.
    private func showStaying(_ oldID: PersonID, _ rooms: ShortList<RoomID>, _ session: IRCSession) {
        guard let old = context.identities[oldID] else { return }
        for id in rooms where session.rooms.contains(id) {
            if let room = room(id) { reply(room.joinMessage(old, context), session) }
        }
    }

    /// Tells a client as whom it is logged in now.
    func tellAccount(_ session: IRCSession) {
        guard let person = session.person.flatMap({ context.identities[$0] }) else { return }
        reply(IRCMessage(source: person.source, command: "ACCOUNT", params: [person.account ?? "*"]), session)
    }

    /// The nick that a client has, its account's name, or that with a number: the first that it may have.
    private func freeNick(for account: AccountSettings, wishing nick: String) -> String {
        func isFree(_ nick: String) -> Bool {
            context.identities.refusal(nick: nick, holder: nil, account: account.name) == nil
        }
        if isFree(nick) { return nick }
        if isFree(account.name) { return account.name }
        return context.identities.numbered(account.name) { isFree($0) }
    }
}
