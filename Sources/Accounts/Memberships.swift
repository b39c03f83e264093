import BridgeTypes
import ChatModel

/// The rooms in which accounts are, also while none of their clients is here: entered by a JOIN, left by a PART or a KICK, and
/// by nothing else.
package final class Memberships {
    /// Rooms of one account: four lines of JOIN, and more than people have open. Those beyond are entered by hand each time.
    package static let maxRooms = 200
    /// All of them together: accounts keep theirs while nobody is logged in. About 250 bytes each.
    package static let maxRoomsInAll = 50_000

    package enum Outcome: Equatable {
        case added
        /// It was there, under the same name.
        case known
        /// Nothing can be added to the account, or to any.
        case full
    }

    private var rooms: [String: [StoredMembership]] = [:]
    package private(set) var count = 0
    private var isFullTold = false
    /// Changes that found no room in the store.
    private var lost: Set<Lost> = []

    private struct Lost: Hashable {
        var account: String
        var room: StoredRoomKey
    }

    package init() {}

    /// Whether the limit of all rooms together is reached, the first time that somebody asks then.
    package func isFullForTheFirstTime() -> Bool {
        guard count >= Self.maxRoomsInAll, !isFullTold else { return false }
        isFullTold = true
        return true
    }

    /// In the order in which the rooms were entered first.
    ///
    /// - Parameter account: its name, as written.
    package func rooms(of account: String) -> [StoredMembership] { rooms[account] ?? [] }

    /// The account's first room at or behind a position.
    package func first(of account: String, from position: Int64) -> StoredMembership? {
        rooms[account]?.first { $0.position >= position }
    }

    package func membership(of account: String, in room: StoredRoomKey) -> StoredMembership? {
        rooms[account]?.first { $0.room == room }
    }

    /// - Parameter channel: as which the room is known today.
    package func add(_ room: StoredRoomKey, channel: String, to account: String) -> Outcome {
        let known = rooms(of: account)
        if let index = known.firstIndex(where: { $0.room == room }) {
            guard known[index].channel != channel else { return .known }
            rooms[account]?[index] = StoredMembership(
                account: account, room: room, channel: channel, position: known[index].position)
            return .added
        }
        guard known.count < Self.maxRooms, count < Self.maxRoomsInAll else { return .full }
        rooms[account, default: []].append(
            StoredMembership(account: account, room: room, channel: channel, position: (known.last?.position ?? 0) + 1))
        count += 1
        return .added
    }

    /// False where it was not there.
    package func remove(_ room: StoredRoomKey, from account: String) -> Bool {
        guard let index = rooms[account]?.firstIndex(where: { $0.room == room }) else { return false }
        rooms[account]?.remove(at: index)
        if rooms[account]?.isEmpty == true { rooms[account] = nil }
        count -= 1
        return true
    }

    /// Takes up what an earlier process kept of an account. Each account's in the order of positions.
    package func restore(_ kept: StoredMembership, of account: String) {
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
    private func accounts(where isMeant: (String) -> Bool) -> [String] { rooms.keys.filter(isMeant).sorted() }

    // MARK: - With what the store is to keep of it

    /// An account is in a room.
    ///
    /// - Parameter present: the rooms in which it is, which no other makes way for.
    /// - Returns: what is to be kept, and whether the limit of all rooms together was reached for the first time.
    package func enter(
        _ room: StoredRoomKey, channel: String, _ account: String, present: @autoclosure () -> Set<StoredRoomKey>
    ) -> (changes: [StoreOperation], isFull: Bool) {
        switch add(room, channel: channel, to: account) {
        case .known: return ([], false)
        case .added: return ([change(of: account, in: room)], false)
        case .full:
            let isFull = isFullForTheFirstTime()
            let present = present()
            // The account's oldest room in which it is not gives way.
            guard let oldest = rooms(of: account).first(where: { !present.contains($0.room) }) else {
                return ([], isFull)
            }
            var changes = leave(oldest.room, account)
            if add(room, channel: channel, to: account) == .added { changes.append(change(of: account, in: room)) }
            return (changes, isFull)
        }
    }

    /// An account is not in a room any more.
    package func leave(_ room: StoredRoomKey, _ account: String) -> [StoreOperation] {
        remove(room, from: account) ? [change(of: account, in: room)] : []
    }

    package func leaveAll(_ account: String) -> [StoreOperation] {
        rooms(of: account).flatMap { leave($0.room, account) }
    }

    /// Somebody made an account of this name: the rooms of one that had it before are not theirs.
    package func forget(ofEarlier name: String) -> [StoreOperation] {
        let folded = AccountName.fold(name)
        return accounts { AccountName.fold($0) == folded }.flatMap { leaveAll($0) }
    }

    /// How it stands.
    private func change(of account: String, in room: StoredRoomKey) -> StoreOperation {
        membership(of: account, in: room).map { .membership($0) } ?? .endMembership(account: account, room)
    }

    /// These found no room in the store.
    package func lose(_ changes: [StoreOperation]) {
        for change in changes {
            switch change {
            case .membership(let kept): lost.insert(Lost(account: kept.account, room: kept.room))
            case .endMembership(let account, let room): lost.insert(Lost(account: account, room: room))
            default: break
            }
        }
    }

    /// There is room again: what was lost, as it stands now.
    package func takeLost() -> [StoreOperation] {
        guard !lost.isEmpty else { return [] }
        defer { lost = [] }
        return lost.sorted {
            ($0.account, $0.room.backend, $0.room.room) < ($1.account, $1.room.backend, $1.room.room)
        }.map { change(of: $0.account, in: $0.room) }
    }
}
