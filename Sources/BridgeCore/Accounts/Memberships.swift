import ChatModel

/// The rooms in which accounts are, also while none of their clients is here: entered by a JOIN, left by a PART or a KICK, and
/// by nothing else.
struct Memberships {
    /// Rooms of one account: four lines of JOIN, and more than people have open. Those beyond are entered by hand each time.
    static let maxRooms = 200
    /// All of them together: accounts keep theirs while nobody is logged in. About 250 bytes each.
    static let maxRoomsInAll = 50_000

    enum Outcome: Equatable {
        case added
        /// It was there, under the same name.
        case known
        /// Nothing can be added to the account, or to any.
        case full
    }

    private var rooms: [String: [StoredMembership]] = [:]
    private(set) var count = 0
    private var isFullTold = false

    /// Whether the limit of all rooms together is reached, the first time that somebody asks then.
    mutating func isFullForTheFirstTime() -> Bool {
        guard count >= Self.maxRoomsInAll, !isFullTold else { return false }
        isFullTold = true
        return true
    }

    /// In the order in which the rooms were entered first.
    ///
    /// - Parameter account: its name, as written.
    func rooms(of account: String) -> [StoredMembership] { rooms[account] ?? [] }

    /// The account's first room at or behind a position.
    func first(of account: String, from position: Int64) -> StoredMembership? {
        rooms[account]?.first { $0.position >= position }
    }

    func membership(of account: String, in room: StoredRoomKey) -> StoredMembership? {
        rooms[account]?.first { $0.room == room }
    }

    /// - Parameter channel: as which the room is known today.
    mutating func add(_ room: StoredRoomKey, channel: String, to account: String) -> Outcome {
        let known = rooms(of: account)
        if let index = known.firstIndex(where: { $0.room == room }) {
            guard known[index].channel != channel else { return .known }
            rooms[account]?[index].channel = channel
            return .added
        }
        guard known.count < Self.maxRooms, count < Self.maxRoomsInAll else { return .full }
        rooms[account, default: []].append(
            StoredMembership(account: account, room: room, channel: channel, position: (known.last?.position ?? 0) + 1))
        count += 1
        return .added
    }

    /// False where it was not there.
    mutating func remove(_ room: StoredRoomKey, from account: String) -> Bool {
        guard let index = rooms[account]?.firstIndex(where: { $0.room == room }) else { return false }
        rooms[account]?.remove(at: index)
        if rooms[account]?.isEmpty == true { rooms[account] = nil }
        count -= 1
        return true
    }

    /// Takes up what an earlier process kept of an account. Each account's in the order of positions.
    mutating func restore(_ kept: StoredMembership, of account: String) {
        let known = rooms(of: account)
        guard known.count < Self.maxRooms, count < Self.maxRoomsInAll,
            // A file may have any number in it; those that count on from one another never get near the end.
            kept.position > known.last?.position ?? 0, kept.position < Int64.max / 2,
            !known.contains(where: { $0.room == kept.room })
        else { return }
        var kept = kept
        kept.account = account
        rooms[account, default: []].append(kept)
        count += 1
    }

    /// Names under which accounts have rooms, and that a test picks.
    func accounts(where isMeant: (String) -> Bool) -> [String] { rooms.keys.filter(isMeant).sorted() }
}
