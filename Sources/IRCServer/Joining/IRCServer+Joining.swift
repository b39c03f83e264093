import BridgeTypes
import IRCProtocol
import Rooms

// JOIN and PART.

extension IRCServer {
    func joinReceived(_ channels: String, _ session: IRCSession) {
        // `JOIN 0` parts from all rooms: RFC 2812 §3.2.1.
        if channels == "0" {
            for id in session.rooms { if let room = room(id) { part(room, reason: nil, isAsked: true, session) } }
        } else {
            for channel in IRCSession.list(channels) { join(channel, session) }
        }
    }

    func join(_ channel: String, _ session: IRCSession) {
        guard session.isAwaitingJoin else { return tryToJoin(channel, session) }
        // Answers are sent in the order of the requested channels.
        for line in outbound.gathering(session, { tryToJoin(channel, session) }) {
            session.appendLongAnswer(.line(line))
        }
    }

    private func tryToJoin(_ channel: String, _ session: IRCSession) {
        guard let room = room(channel: channel, for: session) ?? templateRoom(channel, session),
            session.person != nil, !session.rooms.contains(room.id)
        else { return }
        if let refusal = entryRefusal(room, as: channel, isRequest: true, session) { return reply(refusal, session) }
        if joinWaits(room, session) { return awaitJoin(to: room, isAsked: true, session) }
        for other in enterWithOthers(room, session) { pullLongAnswers(other) }
    }

    /// The refusal of a room that the client may see; nil: the client may enter.
    ///
    /// Asked by JOIN, again after its wait, by the return to an account's rooms, and by the template before it opens a room.
    /// Not asked for a person's other clients, which follow the one that entered, and for one that logs in to another
    /// account in its rooms.
    ///
    /// - Parameters:
    ///   - room: nil: one that the template would open.
    ///   - isRequest: false: the account is a member, or the room was opened for this request. What holds for every entry
    ///     does not look at it.
    func entryRefusal(_ room: Room?, as channel: String, isRequest: Bool, _ session: IRCSession) -> IRCMessage? {
        if let room, let refusal = spellingRefusal(room, as: channel, session) { return refusal }
        if isRequest, let refusal = templateShareRefusal(room, as: channel, session) { return refusal }
        if isRequest, let room, let refusal = refuseUnknown(room, session) { return refusal }
        return room.flatMap { barrier(to: $0, session) }
    }

    func part(_ channels: [String], reason: String?, _ session: IRCSession) {
        for channel in channels { part(channel, reason: reason, session) }
    }

    private func part(_ channel: String, reason: String?, _ session: IRCSession) {
        guard let room = room(channel: channel, for: session) else {
            forgetMembership(channel: channel, session)
            return noSuchChannel(channel, session)
        }
        guard session.rooms.contains(room.id) else {
            forgetMembership(channel: channel, session)
            return notInRoom(room, session)
        }
        part(room, reason: reason, isAsked: true, session)
    }
}
