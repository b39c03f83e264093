import Accounts
import BridgeTypes
import IRCProtocol
import Identities
import Rooms

/// The IRC front end of a room: events of the room go to the channel, those beyond one room to the server.
final class IRCFrontEnd: RoomFrontEnd {
    private let channel: Channel
    private unowned let server: IRCServer

    init(_ channel: Channel, _ server: IRCServer) {
        self.channel = channel
        self.server = server
    }

    func show(_ event: RoomEvent, in room: Room, to readers: RoomAudience) {
        if let tap = server.context.tap { tap(RoomPassage(.toIRC(event), in: room)) }
        var deaf: Set<ClientID> = []
        if server.choices.hasMutes, let cause = readers.by {
            switch cause {
            case .present(let id): deaf = server.context.identities[id].map(server.clientsMuting) ?? []
            case .former(let person): deaf = server.clientsMuting(person)
            }
        }
        channel.show(event, in: room, to: readers, besides: deaf)
    }

    func tell(_ answer: RoomAnswer, in room: Room, to client: ClientID, label: String?) {
        channel.tell(answer, in: room, to: client, label: label)
    }

    func tell(_ reading: RoomReading, in room: Room, to client: ClientID) {
        channel.tell(reading, in: room, to: client)
        // A text notice for clients that show no receipts; seldom enabled.
        guard server.choices.hasNotices else { return }
        let words = reading.newest.map { " \"\($0.excerpt)\"" } ?? " what you said"
        let deed = reading.read == nil ? "got" : "read"
        server.tellReader("\(reading.reader.nick) \(deed)\(words) in \(room.channel).", to: client)
    }

    func enter(_ member: LocalMember, isHeld: Bool, in room: Room) {
        channel.enter(member, isHeld: isHeld, in: room)
    }

    func leave(_ member: LocalMember, in room: Room) { channel.leave(member, in: room) }

    func changed(_ person: PersonID, _ change: PersonChange) {
        switch change {
        case .nick(let source, let nick):
            server.tellWatchers(of: person, IRCMessage(source: source, command: "NICK", params: [nick]))
        case .realname(let who, let name):
            server.tellWatchers(of: person, IRCMessage(source: who.source, command: "SETNAME", params: [name]))
            server.displayNameChanged(of: person)
        case .away(let who, let away):
            server.tellWatchers(
                of: person,
                IRCMessage(
                    tags: who.tags(at: server.context.now.wall), source: who.source, command: "AWAY",
                    params: away.map { [$0] } ?? []))
        }
    }

    func whenReceived(by client: ClientID, _ received: @escaping () -> Void) {
        server.whenReceived(by: client, received)
    }

    func tellUntold(in room: Room, to clients: [ClientID]) { server.tellUntold(in: room, to: clients) }
    func isHere(_ client: ClientID) -> Bool { server.isHere(client) }
    func roomFellSilent(_ room: RoomID) { server.roomFellSilent(room) }
    func roomOpened(_ room: RoomID) { server.roomOpened(room) }
}
