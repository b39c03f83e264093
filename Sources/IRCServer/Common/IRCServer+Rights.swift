import Accounts
import IRCProtocol
import Identities
import Rooms
import Upstream

// What a client may do in a room: see and enter it, read its past, speak there, moderate it.

extension IRCServer {
    /// Whether the client may see and enter the room.
    func mayEnter(_ room: Room, _ session: IRCSession) -> Bool {
        guard let allowed = session.account?.rooms else { return true }
        return allowed.contains(room.settings.name)
    }

    /// Why an IRC user may not enter a room that their account would let them into; nil: they may.
    func barrier(to room: Room, _ session: IRCSession) -> IRCMessage? {
        guard let personID = session.person, !operators.contains(personID),
            let person = context.identities[personID]
        else { return nil }
        let isInvited = room.moderation.isInvited(personID)
        if room.moderation.isBanned(person), !isInvited {
            return session.numeric(.errBannedFromChan, room.channel, "You are banned from this room")
        }
        if room.moderation.has(.inviteOnly), !isInvited {
            return session.numeric(.errInviteOnlyChan, room.channel, "You must be invited (+i)")
        }
        return nil
    }

    /// Why an IRC user in the room may not speak there; nil: they may.
    func silence(in room: Room, _ session: IRCSession) -> IRCMessage? {
        guard room.moderation.has(.moderated) || !room.moderation.bans.isEmpty, let personID = session.person,
            !operators.contains(personID), room.moderation.prefixes(of: personID).isEmpty
        else { return nil }
        if room.moderation.has(.moderated) {
            return session.numeric(
                .errCannotSendToChan, room.channel, "Only operators and the voiced speak here at the moment (+m)")
        }
        guard let person = context.identities[personID], room.moderation.isBanned(person) else { return nil }
        return session.numeric(.errCannotSendToChan, room.channel, "You are banned from this room (+b)")
    }

    /// Whether the client moderates the room: as an operator there, or an administrator who is in it.
    func mayModerate(_ room: Room, _ session: IRCSession) -> Bool {
        guard let person = session.person else { return false }
        return room.moderation.isOperator(person) || operators.contains(person)
    }

    /// Whether the session may see what was said in the room: it is there; or it could enter, and its account was given the
    /// room by name, or this client of the account was there and did not leave: clients ask for what they missed before they
    /// enter their rooms again.
    ///
    /// An account that may enter every room must have been in one to read it, as people in a room expect to see who is there.
    ///
    /// Source: IRCv3 chathistory, "Security Considerations".
    func mayReadHistory(of room: Room, _ session: IRCSession) -> Bool {
        if session.rooms.contains(room.id) { return true }
        guard let account = session.account, mayEnter(room, session), barrier(to: room, session) == nil else {
            return false
        }
        return account.rooms != nil || isMember(of: room, session)
    }

    /// Whether the client was in the room, and did not leave it since: it only lost its connection.
    func isMember(of room: Room, _ session: IRCSession) -> Bool {
        guard let account = session.account, let name = session.clientName else { return false }
        return cursors.place(of: ClientKey(account: account.name, client: name), in: room.storedKey) != nil
    }

    /// The room that a client means, where it may enter that; any other does not exist for it.
    func room(channel: String, for session: IRCSession) -> Room? {
        room(channel: channel).flatMap { mayEnter($0, session) ? $0 : nil }
    }
}
