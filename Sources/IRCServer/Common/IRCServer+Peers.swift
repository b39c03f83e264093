import BridgeTypes
import IRCProtocol
import Identities
import Rooms
import WireBytes

// Lines for all clients of a room, and for all peers of a person.

extension IRCServer {
    /// The IRC side of a room.
    func channel(of room: Room) -> Channel {
        channels[room.id] ?? Channel(outbound, metadata, settings.limits, context)
    }

    /// Sets whether the room's lines for the client are held back.
    func setHeld(_ client: ClientID, _ isHeld: Bool, in room: Room) {
        if let member = room.locals[client] { channels[room.id]?.setHeld(member, isHeld, in: room) }
    }

    func broadcast(_ line: IRCMessage, in room: Room, except: ClientID? = nil) {
        channels[room.id]?.broadcast(line, except: except, in: room)
    }

    /// Sends a line to all clients that share a room with the client or belong to the same person, each once; not to
    /// the client itself.
    func tellPeers(of session: IRCSession, _ line: IRCMessage) {
        defer { tellMonitors(of: session.person, line) }
        let own = sessions(of: session.person)
        // Clients that are still to enter the rooms of their person have to know its nick all the same.
        if session.rooms.count == 1, let room = room(session.rooms[0]), own.allSatisfy({ $0.rooms.contains(room.id) }) {
            return broadcast(line, in: room, except: session.id)
        }
        var peers: Set<ClientID> = []
        for id in session.rooms { room(id)?.locals.keys.forEach { peers.insert($0) } }
        for other in own { peers.insert(other.id) }
        peers.remove(session.id)
        for peer in peers.sorted(by: { $0.rawValue < $1.rawValue }) { deliver(line, to: peer, amid: session.rooms) }
    }

    func tellWatchers(of person: PersonID, _ line: IRCMessage) {
        defer { tellMonitors(of: person, line) }
        let places = rooms.filter { $0.isHere(upstream: person) && $0.slots.contains(person) }
        if places.count == 1 { return broadcast(line, in: places[0]) }
        var watchers: Set<ClientID> = []
        for room in places { watchers.formUnion(room.locals.keys) }
        let ids = places.map(\.id)
        for watcher in watchers.sorted(by: { $0.rawValue < $1.rawValue }) { deliver(line, to: watcher, amid: ids) }
    }

    /// Lines about a person for extended-monitor clients without a common room.
    static let extendedCommands: Set<String> = ["AWAY", "ACCOUNT", "SETNAME"]

    /// Sends a line about a person to clients that monitor them.
    ///
    /// Source: IRCv3 extended-monitor.
    func tellMonitors(of personID: PersonID?, _ line: IRCMessage) {
        guard !monitors.isEmpty, Self.extendedCommands.contains(line.command), let personID,
            let person = context.identities[personID]
        else { return }
        for client in monitors.watchers(of: settings.casemapping.fold(person.nick)) {
            // Checked here, since ``Outbound`` sees the line and not the reason for sending it.
            guard let session = sessions[client], session.caps.contains(.extendedMonitor),
                session.person != personID, !sharesRoom(session, with: personID)
            else { continue }
            deliver(line, to: client)
        }
    }

    func sharesRoom(_ session: IRCSession, with person: PersonID) -> Bool {
        session.rooms.contains { room($0)?.slots.contains(person) ?? false }
    }

    /// Sends the line to all clients in the room, this one included.
    func tellRoom(_ room: Room, _ line: IRCMessage, by session: IRCSession) {
        reply(line, session)
        broadcast(line, in: room, except: session.id)
    }

    /// The room's topic; empty: none.
    func topic(of room: Room) -> String {
        room.settings.topic.isEmpty ? room.moderation.topic?.text ?? "" : room.settings.topic
    }
}
