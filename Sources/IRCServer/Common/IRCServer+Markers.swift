import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms
import Upstream

// Read markers: of rooms, stored with the room, and of private conversations, stored here by correspondent.

extension IRCServer {
    /// The owner of a client's private markers: its account, else this person while connected.
    private func markerOwner(_ id: PersonID, _ person: Person) -> ChatID {
        person.account == nil ? visitor(id) : context.identities.puppetID(of: person, backend: "")
    }

    private func visitor(_ id: PersonID) -> ChatID { ChatID("visitor-\(id.rawValue)") }

    /// Source: IRCv3 read-marker.
    func markReadReceived(_ target: String?, _ value: String?, _ session: IRCSession) {
        func refuse(_ code: String, _ context: [String], _ text: String) {
            fail("MARKREAD", code, context, text, session)
        }
        guard let target, !target.isEmpty else { return refuse("NEED_MORE_PARAMS", [], "Missing the target") }
        guard let value else { return readMarker(target, session) }
        guard value.hasPrefix("timestamp="),
            let milliseconds = IRCServerTime.parse(String(value.dropFirst("timestamp=".count)))
        else { return refuse("INVALID_PARAMS", [target], "Not a timestamp") }
        moveMarker(target, to: ChatTimestamp(milliseconds: milliseconds), session)
    }

    private func readMarker(_ target: String, _ session: IRCSession) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        if target.hasPrefix("#"), let room = room(channel: target, for: session) {
            guard !session.rooms.contains(room.id) else {
                return reply(markerMessage(room.channel, room.marker(of: session.id)), session)
            }
            let puppet = context.identities.puppetID(of: person, backend: room.settings.backend)
            return reply(markerMessage(room.channel, room.marker(ofAuthor: puppet)?.at), session)
        }
        reply(
            markerMessage(
                PrintableText.word(target),
                privateMessages.markers.marker(of: markerOwner(personID, person), with: target)),
            session)
    }

    private func moveMarker(_ target: String, to at: ChatTimestamp, _ session: IRCSession) {
        if target.hasPrefix("#") {
            guard let room = room(channel: target), session.rooms.contains(room.id) else {
                // Clients mark a room as read after their own PART: gamja.
                if let left = session.lastLeft, left == self.room(channel: target)?.id { return }
                return refuseMarker(target, "INVALID_PARAMS", "You are not in that room", session)
            }
            let moved = room.handle(.markRead(at), from: session.id, context) == .done
            tellMarker(markerMessage(room.channel, room.marker(of: session.id)), moved: moved, session)
        } else {
            movePrivateMarker(target, to: at, session)
        }
    }

    private func movePrivateMarker(_ nick: String, to at: ChatTimestamp, _ session: IRCSession) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        guard IRCNames.isValidNickname(nick, maxBytes: 63) || isService(nick) else {
            return refuseMarker(nick, "INVALID_PARAMS", "Nobody has such a name", session)
        }
        let owner = markerOwner(personID, person)
        let target = min(at, context.now.wall)
        let outcome = privateMessages.moveMarker(owner, with: nick, to: target)
        guard outcome != .full else {
            return refuseMarker(nick, "INTERNAL_ERROR", "You have too many read markers", session)
        }
        // Markers without an account have no later owner.
        if outcome == .moved, person.account != nil {
            context.keep(.marker(PrivateMarkers.storedKey, PrivateMarkers.stored(owner, with: nick, target)))
        }
        let line = markerMessage(nick, privateMessages.markers.marker(of: owner, with: nick))
        tellMarker(line, moved: outcome == .moved, session)
    }

    /// Replies to the client that moved a marker, and notifies the person's other clients.
    private func tellMarker(_ line: IRCMessage, moved: Bool, _ session: IRCSession) {
        reply(line, session)
        guard moved else { return }
        for other in sessions(of: session.person) where other !== session { reply(line, other) }
    }

    func markerMessage(_ target: String, _ at: ChatTimestamp?) -> IRCMessage {
        let value = at.map { "timestamp=" + IRCServerTime.format(milliseconds: $0.milliseconds) } ?? "*"
        return serverLine("MARKREAD", [target, value])
    }

    private func refuseMarker(_ target: String, _ code: String, _ why: String, _ session: IRCSession) {
        fail("MARKREAD", code, [PrintableText.word(target)], why, session)
    }

    /// Drops the markers of a disconnected person without an account.
    func forgetPrivateMarkers(of id: PersonID) { privateMessages.forgetMarkers(of: visitor(id)) }
}
