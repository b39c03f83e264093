import Mirrors

/// What an IRC network has said and the rooms of a mirror cannot take yet, in its order.
///
/// Where the network has a history, what does not fit is read there later; else it is lost.
final class HeldArrivals {
    enum Item {
        case arrival(MirrorArrival)
        /// Everything up to here was said before.
        case position(IRCNetworkPosition)
    }

    static let maxItems = 2000

    private(set) var items: [(item: Item, room: String)] = []
    /// Rooms of which more is to be read when they have taken what there is.
    private(set) var unread: Set<String> = []
    /// Of these, rooms that take nothing new until then: something between is missing.
    private(set) var overflowed: Set<String> = []
    /// Of these, rooms that take nothing at all: something before what is held could not be stored, and is read again with it.
    private(set) var refused: Set<String> = []

    var isEmpty: Bool { items.isEmpty && unread.isEmpty }

    func contains(_ room: String) -> Bool { items.contains { $0.room == room } }

    /// False: there is no place.
    func append(_ item: Item, in room: String) -> Bool {
        guard items.count < Self.maxItems else { return false }
        items.append((item, room))
        return true
    }

    func remove(at index: Int) { items.remove(at: index) }

    func readLater(_ room: String) { unread.insert(room) }

    func overflow(_ room: String) {
        unread.insert(room)
        overflowed.insert(room)
    }

    func refuse(_ room: String) {
        overflow(room)
        refused.insert(room)
    }

    /// More of the room is being read.
    func isRead(_ room: String) {
        unread.remove(room)
        overflowed.remove(room)
        if refused.remove(room) != nil { items.removeAll { $0.room == room } }
    }
}
