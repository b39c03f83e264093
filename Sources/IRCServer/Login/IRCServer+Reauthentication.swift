import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms
import WireBytes

// A client that is logged in logs in as somebody else, or logs out. The two are two people, on IRC and upstream: the client
// leaves the one and becomes the other, in the same rooms as far as the other may enter them.

extension IRCServer {
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
            whowas.remember(old, at: context.now.wall)
            context.identities.remove(oldID)
            operators.forget(oldID)
        } else {
            for id in rooms { if let room = room(id) { leave(room, session) } }
            context.identities.take(session.id, from: oldID)
            settleAway(of: oldID)
        }
        session.leftEverything()
        // What it was given counts for the one, what it is given for the other.
        let lastStay = session.following?.lastStay
        stopFollowing(session)
        session.account = account
        session.setClientName(clientName)
        nameLateComer(session)
        // Answers that are on their way are about none of what follows.
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
                reply(
                    IRCMessage(
                        source: person.source, command: "PART", params: [room.channel, "This account may not be here"]),
                    session)
            }
        }
        tellPrefixes(since: prefixes, session)
        showStaying(oldID, rooms, session)
        bringBack(session)
    }

    /// What stands in front of a person's nick in each of these rooms.
    func prefixes(of person: PersonID, in rooms: ShortList<RoomID>) -> [RoomID: String] {
        var prefixes: [RoomID: String] = [:]
        for id in rooms { prefixes[id] = room(id)?.moderation.prefixes(of: person) }
        return prefixes
    }

    /// A client that has rooms open already, and became somebody else in them, hears what this one may do there.
    func tellPrefixes(since before: [RoomID: String], _ session: IRCSession) {
        guard let person = session.person else { return }
        for id in session.rooms {
            guard let old = before[id], let room = room(id) else { continue }
            let new = room.moderation.prefixes(of: person)
            for (prefix, mode) in [("@", "o"), ("+", "v")] as [(Character, String)]
            where old.contains(prefix) != new.contains(prefix) {
                reply(
                    IRCMessage(
                        source: settings.serverName, command: "MODE",
                        params: [room.channel, (new.contains(prefix) ? "+" : "-") + mode, session.displayNick]),
                    session)
            }
        }
    }

    /// For the client its own nick has changed. Where whom it was stays, with other clients, it has to hear that there is
    /// somebody of the old nick.
    private func showStaying(_ oldID: PersonID, _ rooms: ShortList<RoomID>, _ session: IRCSession) {
        guard let old = context.identities[oldID] else { return }
        for id in rooms where session.rooms.contains(id) {
            if let room = room(id) { reply(Channel.join(RoomSpeaker(old), old.realname, in: room, context), session) }
        }
    }

    /// Tells a client as whom it is logged in now.
    func tellAccount(_ session: IRCSession) {
        guard let person = session.person.flatMap({ context.identities[$0] }) else { return }
        reply(IRCMessage(source: person.source, command: "ACCOUNT", params: [person.account ?? "*"]), session)
    }

    /// The nick that a client has, its account's name, or that with a number: the first that it may have.
    private func freeNick(for account: AccountSettings?, wishing nick: String) -> String {
        func isFree(_ nick: String) -> Bool {
            context.identities.refusal(nick: nick, holder: nil, account: account?.name) == nil
        }
        if isFree(nick) { return nick }
        guard let account else { return context.identities.numbered(nick) { isFree($0) } }
        // Whom the backend vouches for has an account whose name is no nick.
        let name = account.name.utf8.contains(UInt8(ascii: "@")) ? nick : account.name
        if isFree(name) { return name }
        return context.identities.numbered(name) { isFree($0) }
    }
}
