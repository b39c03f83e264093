import BridgeTypes
import Rooms

/// The open rooms, in the order in which they were opened; at the start that is the configuration's.
package final class RoomTable {
    package private(set) var all: [Room] = []
    private let context: RoomsContext
    private let fold: (String) -> String
    private var byChannel: [String: RoomID] = [:]
    private var templateRooms: [RoomID: Room] = [:]
    /// Rooms that the configuration no longer has: they have no channel, and close once their messages are sent.
    private var retired: Set<RoomID> = []
    /// For rooms of the template: the person that opened the room, or was the first to enter it while it was empty.
    private var openers: [RoomID: PersonID] = [:]
    private var lastIndex = -1

    /// - Parameter fold: names with equal results are one channel.
    package init(_ context: RoomsContext, fold: @escaping (String) -> String) {
        self.context = context
        self.fold = fold
    }

    package subscript(id: RoomID) -> Room? {
        if all.indices.contains(id.index), all[id.index].id == id { return all[id.index] }
        let place = place(from: id.index)
        return place < all.count && all[place].id == id ? all[place] : nil
    }

    /// Of the first room at or after a number.
    private func place(from index: Int) -> Int {
        var (low, high) = (0, all.count)
        while low < high {
            let middle = (low + high) / 2
            if all[middle].id.index < index { low = middle + 1 } else { high = middle }
        }
        return low
    }

    package subscript(channel channel: String) -> Room? { byChannel[fold(channel)].flatMap { self[$0] } }

    /// An account's own link and its room.
    package func ownLink(_ id: RoomID) -> (room: Room, own: OwnLink)? {
        guard let own = context.ownLinks[id], let room = self[own.room] else { return nil }
        return (room, own)
    }

    /// A room's own lane, or that of an account's own link.
    package func lane(_ id: RoomID) -> (room: Room, lane: SendLane)? {
        self[id].map { ($0, $0.lane) } ?? ownLink(id).map { ($0.room, $0.own) }
    }

    // MARK: - Opening and closing

    /// The number of the next room. Never reused, so late events cannot reach another room.
    package func takeID() -> RoomID {
        lastIndex += 1
        return RoomID(index: lastIndex)
    }

    /// Adds a configured room.
    package func add(_ room: Room) {
        all.append(room)
        byChannel[fold(room.channel)] = room.id
    }

    package func add(ofTemplate room: Room, openedBy person: PersonID?) {
        add(room)
        templateRooms[room.id] = room
        openers[room.id] = person
    }

    /// Whether the room is removed when its link is closed.
    package func isPassing(_ room: Room) -> Bool { isOfTemplate(room) || retired.contains(room.id) }

    /// Whether the room is closed to users: the configuration no longer has it, and its outbox is being sent.
    package func isRetired(_ room: Room) -> Bool { retired.contains(room.id) }

    /// Takes the channel of a room away; it is removed when its link is closed.
    package func retire(_ room: Room) {
        retired.insert(room.id)
        byChannel[fold(room.channel)] = nil
        templateRooms[room.id] = nil
        openers[room.id] = nil
    }

    /// Whether what the store has of the room is still an older one's, which has no channel any more.
    package func isHeld(_ room: Room) -> Bool {
        !retired.isEmpty
            && all.contains {
                $0.id.index < room.id.index && retired.contains($0.id) && $0.storedKey == room.storedKey
            }
    }

    /// The configuration has the room again.
    package func revive(_ room: Room) {
        retired.remove(room.id)
        byChannel[fold(room.channel)] = room.id
    }

    /// Removes a room that is passing.
    package func remove(_ room: Room) {
        guard isPassing(room) else { return }
        templateRooms[room.id] = nil
        openers[room.id] = nil
        if retired.remove(room.id) == nil { byChannel[fold(room.channel)] = nil }
        all.removeAll { $0.id == room.id }
    }

    // MARK: - Rooms of the template

    package func isOfTemplate(_ room: Room) -> Bool { templateRooms[room.id] != nil }

    package var ofTemplate: some Collection<Room> { templateRooms.values }

    /// The rooms of the template that count as opened by a person.
    package func opened(by person: PersonID) -> [Room] {
        openers.compactMap { $0.value == person ? templateRooms[$0.key] : nil }
    }

    /// A person has entered. If it is alone in a room of the template, it counts as the one that opened the room.
    package func entered(_ room: Room, by person: PersonID) {
        if isOfTemplate(room), room.locals.count == 1 { openers[room.id] = person }
    }

    /// The first configured room with that property.
    package func configured(where isIt: (Room) -> Bool) -> Room? { all.first { !isOfTemplate($0) && isIt($0) } }

    /// The first room with a channel at or after a number, for answers that iterate over all rooms in steps.
    package func first(from index: Int) -> Room? { all[place(from: index)...].first { !retired.contains($0.id) } }
}
