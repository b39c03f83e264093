import ChatModel

/// Up to where one connection was shown the rooms that it left, by places in their orders. What it was shown there it is not
/// shown again when it enters once more.
struct ShownRooms {
    /// Rooms that are remembered, those that were left last; about 60 bytes each.
    static let capacity = 200

    private var places: [(room: StoredRoomKey, place: Int64)] = []

    subscript(room: StoredRoomKey) -> Int64? { places.first { $0.room == room }?.place }

    mutating func note(_ place: Int64, in room: StoredRoomKey) {
        places.removeAll { $0.room == room }
        if places.count >= Self.capacity { places.removeFirst() }
        places.append((room, place))
    }
}
