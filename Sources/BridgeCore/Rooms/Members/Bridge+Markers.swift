import ChatModel
import IRCProtocol

// Read markers: of rooms, which know who is in them, and of private conversations, which are kept here by who they are with.

/// How far people have read what others told them in private.
struct PrivateMarkers {
    /// Of one person. More than anybody has conversations with; beyond it a new one is refused.
    static let maxCountOfPerson = 200

    /// By whose they are, then by the folded nick of the other.
    private var markers: [ChatID: [String: ChatTimestamp]] = [:]

    enum Outcome: Equatable {
        case moved
        /// The marker stands there already, or further.
        case stays
        case full
    }

    func marker(of owner: ChatID, with nick: String) -> ChatTimestamp? { markers[owner]?[nick] }

    /// Markers only move forward.
    mutating func move(_ owner: ChatID, with nick: String, to at: ChatTimestamp) -> Outcome {
        let own = markers[owner] ?? [:]
        if let old = own[nick], at <= old { return .stays }
        guard own[nick] != nil || own.count < Self.maxCountOfPerson else { return .full }
        markers[owner, default: [:]][nick] = at
        return .moved
    }

    mutating func forget(_ owner: ChatID) { markers[owner] = nil }

    // MARK: - Kept

    /// Where they are kept: in a room that no backend has.
    static let storedKey = StoredRoomKey(backend: "", room: "")

    /// A reader of that room: the person, and with whom.
    static func stored(_ owner: ChatID, with nick: String, _ at: ChatTimestamp) -> StoredMarker {
        StoredMarker(reader: ChatID(owner.canonical + " " + nick), at: at, sequence: 0)
    }

    /// Whose a reader of that room is, and with whom.
    private static func parts(_ reader: ChatID) -> (owner: ChatID, nick: String)? {
        let parts = reader.rawValue.split(separator: " ", maxSplits: 1).map(String.init)
        return parts.count == 2 ? (ChatID(parts[0]), parts[1]) : nil
    }

    /// As it is to be kept now; nil: there is none.
    func stored(_ reader: ChatID) -> StoredMarker? {
        guard let (owner, nick) = Self.parts(reader), let at = marker(of: owner, with: nick) else { return nil }
        return Self.stored(owner, with: nick, at)
    }

    mutating func restore(_ kept: [StoredMarker]) {
        for marker in kept.sorted(by: { $0.at > $1.at }) {
            guard let (owner, nick) = Self.parts(marker.reader) else { continue }
            _ = move(owner, with: nick, to: marker.at)
        }
    }
}

extension Bridge {
    /// Whose markers a client moves: the account's, else those of this one person while they are here.
    private func markerOwner(_ id: PersonID, _ person: Person) -> ChatID {
        person.account == nil ? visitor(id) : context.identities.puppetID(of: person, backend: "")
    }

    private func visitor(_ id: PersonID) -> ChatID { ChatID("visitor-\(id.rawValue)") }

    /// Source: IRCv3 read-marker.
    func readMarker(_ target: String, _ session: IRCSession) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        if target.hasPrefix("#"), let room = room(channel: target, for: session) {
            guard !session.rooms.contains(room.id) else {
                return reply(markerMessage(room.channel, room.marker(of: session.id)), session)
            }
            let puppet = context.identities.puppetID(of: person, backend: room.settings.backend)
            return reply(markerMessage(room.channel, room.markers[puppet]?.at), session)
        }
        let folded = settings.casemapping.fold(target)
        reply(
            markerMessage(shown(target), privateMarkers.marker(of: markerOwner(personID, person), with: folded)),
            session)
    }

    func moveMarker(_ target: String, to at: ChatTimestamp, _ session: IRCSession) {
        if target.hasPrefix("#") {
            guard let room = room(channel: target), session.rooms.contains(room.id) else {
                // Clients mark their own PART as read: gamja.
                if let left = session.lastLeft, left == self.room(channel: target)?.id { return }
                return refuseMarker(target, "INVALID_PARAMS", "You are not in that room", session)
            }
            let moved = room.moveMarker(of: session.id, to: at, context)
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
        let folded = settings.casemapping.fold(nick)
        let target = min(at, context.now.wall)
        let outcome = privateMarkers.move(owner, with: folded, to: target)
        guard outcome != .full else {
            return refuseMarker(nick, "INTERNAL_ERROR", "You have too many read markers", session)
        }
        // Without an account nobody could claim it later.
        if outcome == .moved, person.account != nil {
            context.keep(.marker(PrivateMarkers.storedKey, PrivateMarkers.stored(owner, with: folded, target)))
        }
        let line = markerMessage(nick, privateMarkers.marker(of: owner, with: folded))
        tellMarker(line, moved: outcome == .moved, session)
    }

    /// Answers who moved a marker, and tells the other clients of the same person.
    private func tellMarker(_ line: IRCMessage, moved: Bool, _ session: IRCSession) {
        reply(line, session)
        guard moved else { return }
        for other in sessions(of: session.person) where other !== session { reply(line, other) }
    }

    func markerMessage(_ target: String, _ at: ChatTimestamp?) -> IRCMessage {
        let value = at.map { "timestamp=" + IRCServerTime.format(milliseconds: $0.milliseconds) } ?? "*"
        return IRCMessage(source: settings.serverName, command: "MARKREAD", params: [target, value])
    }

    private func refuseMarker(_ target: String, _ code: String, _ why: String, _ session: IRCSession) {
        reply(.fail("MARKREAD", code, shown(target), text: why, source: settings.serverName), session)
    }

    private func shown(_ target: String) -> String { ActionRefusal.word(target) }

    /// The person is gone; what is no account's ends with them.
    func forgetPrivateMarkers(of id: PersonID) { privateMarkers.forget(visitor(id)) }
}
