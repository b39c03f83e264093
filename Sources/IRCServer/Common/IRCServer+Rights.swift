import Accounts
import BridgeTypes
import ChatModel
import HTTPProtocol
import IRCProtocol
import Identities
import Rooms
import Upstream

// Permissions of a client in a room: to see and enter it, read its history, speak, moderate.

extension IRCServer {
    /// Whether the client may see and enter the room.
    func mayEnter(_ room: Room, _ session: IRCSession) -> Bool {
        guard let allowed = session.account?.rooms else { return true }
        return allowed.contains(room.settings.name)
    }

    /// The refusal of a room that the account permits, by the room's modes and bans; nil: the user may enter.
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

    /// Refuses a JOIN to a room that the backend says it does not have, and closes the link of an empty one soon.
    ///
    /// - Returns: the refusal; nil: the backend has not said so.
    func refuseUnknown(_ room: Room, _ session: IRCSession) -> IRCMessage? {
        guard let words = room.access.words(.unknown, now: context.now.monotonic) else { return nil }
        room.entryRefused(context)
        return session.numeric(
            .errNoSuchChannel, room.channel, "\(room.settings.url.host) has no such room: \(words)")
    }

    /// The refusal of messages to a room that the backend says is read-only; nil: it has not said so.
    func readOnly(_ room: Room, _ session: IRCSession) -> IRCMessage? {
        room.access.words(.readOnly, now: context.now.monotonic).map { words in
            session.numeric(
                .errCannotSendToChan, room.channel, "\(room.settings.url.host) lets nothing be written here: \(words)")
        }
    }

    /// The refusal of a message from an IRC user in the room; nil: the user may speak.
    func silence(in room: Room, _ session: IRCSession) -> IRCMessage? {
        if let refusal = readOnly(room, session) { return refusal }
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

    /// Whether the client moderates the room: as its operator, or as an administrator in it.
    func mayModerate(_ room: Room, _ session: IRCSession) -> Bool {
        guard let person = session.person else { return false }
        return room.moderation.isOperator(person) || operators.contains(person)
    }

    /// Whether the session may read the room's history: it is in the room; or it could enter, and the room is named in
    /// its account, or this client of the account was in it and did not leave: clients request history before they
    /// rejoin.
    ///
    /// An account with access to every room must have been in one to read it, since people in a room expect to see its
    /// readers.
    ///
    /// Source: IRCv3 chathistory, "Security Considerations".
    func mayReadHistory(of room: Room, _ session: IRCSession) -> Bool {
        if session.rooms.contains(room.id) { return true }
        guard let account = session.account, mayEnter(room, session), barrier(to: room, session) == nil else {
            return false
        }
        return account.rooms != nil || isMember(of: room, session)
    }

    /// Whether the client was in the room and did not leave it: it only disconnected.
    func isMember(of room: Room, _ session: IRCSession) -> Bool {
        guard let account = session.account, let name = session.clientName else { return false }
        return cursors.place(of: ClientKey(account: account.name, client: name), in: room.storedKey) != nil
    }

    /// The room of a channel name, if the client may enter it; any other does not exist for the client.
    func room(channel: String, for session: IRCSession) -> Room? {
        room(channel: channel).flatMap { mayEnter($0, session) ? $0 : nil }
    }
}
