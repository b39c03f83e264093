import BridgeTypes
import Rooms

/// The open rooms: the configured ones first, in their order, then those of the template, oldest first.
package final class RoomTable {
    package private(set) var all: [Room] = []
    private let context: RoomsContext
    private let fold: (String) -> String
    private var byChannel: [String: RoomID] = [:]
    private var templateRooms: [RoomID: Room] = [:]
    /// For rooms of the template: the person that opened the room, or was the first to enter it while it was empty.
    private var openers: [RoomID: PersonID] = [:]
    private var configuredCount = 0
    private var lastIndex = -1

    /// - Parameter fold: names with equal results are one channel.
    package init(_ context: RoomsContext, fold: @escaping (String) -> String) {
        self.context = context
        self.fold = fold
    }

    package subscript(id: RoomID) -> Room? {
        if all.indices.contains(id.index), all[id.index].id == id { return all[id.index] }
        return templateRooms[id]
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

    /// Adds a configured room; all of them come before the first of the template.
    package func add(_ room: Room) {
        configuredCount += 1
        insert(room)
    }

    package func add(ofTemplate room: Room, openedBy person: PersonID?) {
        insert(room)
        templateRooms[room.id] = room
        openers[room.id] = person
    }

    private func insert(_ room: Room) {
        all.append(room)
        byChannel[fold(room.channel)] = room.id
    }

    /// Removes a room of the template.
    package func remove(_ room: Room) {
        guard templateRooms.removeValue(forKey: room.id) != nil else { return }
        openers[room.id] = nil
        all.removeAll { $0.id == room.id }
        byChannel[fold(room.channel)] = nil
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
    package func configured(where isIt: (Room) -> Bool) -> Room? { all[..<configuredCount].first(where: isIt) }

    /// The first room at or after a number, for answers that iterate over all rooms in steps.
    package func first(from index: Int) -> Room? {
        if index < configuredCount { return all[max(index, 0)] }
        return all[configuredCount...].first { $0.id.index >= index }
    }
}
