import BridgeTypes

/// Rooms whose stored data is to be read, one after another: a start of a thousand rooms leaves room for the questions of
/// clients, and the disk has its time for each.
///
/// | state     | meaning                  | verb → next                                          |
/// |-----------|--------------------------|------------------------------------------------------|
/// | waiting   | behind other rooms, or behind an older one that sends what is stored | its turn → under way; a user came → waiting, in front |
/// | under way | the store was asked      | answered, too late, or closed → gone                 |
struct RoomLoads {
    /// The last is next.
    private var waiting: [RoomID] = []
    private var underWay: RoomID?

    mutating func append(_ room: RoomID) { waiting.insert(room, at: 0) }

    /// A user wants to enter.
    mutating func prefer(_ room: RoomID) {
        guard let index = waiting.lastIndex(of: room) else { return }
        waiting.append(waiting.remove(at: index))
    }

    /// The room to ask the store for; nil: none now.
    ///
    /// - Parameter isFree: no other room has still to send what is stored.
    mutating func next(where isFree: (RoomID) -> Bool) -> RoomID? {
        guard underWay == nil, let index = waiting.lastIndex(where: isFree) else { return nil }
        underWay = waiting.remove(at: index)
        return underWay
    }

    mutating func end(_ room: RoomID) {
        if underWay == room { underWay = nil }
        waiting.removeAll { $0 == room }
    }
}
