import BridgeTypes
import ChatModel

/// The channels of accounts, joined again at log-in: added by JOIN, removed by PART and KICK only.
package final class AccountChannels {
    /// Limit of rooms of one account; beyond it rooms without the account make way.
    package static let maxRooms = 200
    /// Limit of rooms of all accounts, about 250 bytes each.
    package static let maxRoomsInAll = 50_000

    package enum Outcome: Equatable {
        case added
        /// Already there, under the same channel name.
        case known
        /// A limit is reached.
        case full
    }

    private var rooms: [String: [StoredMembership]] = [:]
    package private(set) var count = 0
    private var isFullReported = false
    /// Changes that the store dropped.
    private var lost: Set<Lost> = []

    private struct Lost: Hashable {
        var account: String
        var room: StoredRoomKey
    }

    package init() {}

    /// Whether the limit of all accounts is reached.
    package var isFull: Bool { count >= Self.maxRoomsInAll }

    /// True once, when the limit of all accounts is reached.
    private func takeFullReport() -> Bool {
        guard isFull, !isFullReported else { return false }
        isFullReported = true
        return true
    }

    /// The account's rooms in the order of their first JOIN.
    ///
    /// - Parameter account: as written, not folded.
    package func rooms(of account: String) -> [StoredMembership] { rooms[account] ?? [] }

    /// The account's first room at or after a position.
    package func first(of account: String, from position: Int64) -> StoredMembership? {
        rooms[account]?.first { $0.position >= position }
    }

    package func membership(of account: String, in room: StoredRoomKey) -> StoredMembership? {
        rooms[account]?.first { $0.room == room }
    }

    /// - Parameter channel: the room's present channel name.
    package func add(_ room: StoredRoomKey, channel: String, to account: String) -> Outcome {
        let known = rooms(of: account)
        if let index = known.firstIndex(where: { $0.room == room }) {
            guard known[index].channel != channel else { return .known }
            rooms[account]?[index] = StoredMembership(
                account: account, room: room, channel: channel, position: known[index].position)
            return .added
        }
        guard known.count < Self.maxRooms, !isFull else { return .full }
        rooms[account, default: []].append(
            StoredMembership(account: account, room: room, channel: channel, position: (known.last?.position ?? 0) + 1))
        count += 1
        return .added
    }

    /// False: the room was not there.
    package func remove(_ room: StoredRoomKey, from account: String) -> Bool {
        guard let index = rooms[account]?.firstIndex(where: { $0.room == room }) else { return false }
        rooms[account]?.remove(at: index)
        if rooms[account]?.isEmpty == true { rooms[account] = nil }
        count -= 1
        return true
    }

    /// Restores a membership. Those of one account must come in the order of positions.
    package func restore(_ stored: StoredMembership, of account: String) {
        let known = rooms(of: account)
        guard known.count < Self.maxRooms, !isFull,
            // The store may contain any number; half the range leaves space for counting on.
            stored.position > known.last?.position ?? 0, stored.position < Int64.max / 2,
            !known.contains(where: { $0.room == stored.room })
        else { return }
        var stored = stored
        stored.account = account
        rooms[account, default: []].append(stored)
        count += 1
    }

    // MARK: - Changes for the store

    /// Adds a room to an account.
    ///
    /// - Parameter present: the rooms in which the account is at present; they do not make way.
    /// - Returns: the changes, and whether the limit of all accounts was reached for the first time.
    package func enter(
        _ room: StoredRoomKey, channel: String, _ account: String, present: @autoclosure () -> Set<StoredRoomKey>
    ) -> (changes: [StoreOperation], isFull: Bool) {
        switch add(room, channel: channel, to: account) {
        case .known: return ([], false)
        case .added: return ([change(of: account, in: room)], false)
        case .full:
            let isFull = takeFullReport()
            let present = present()
            // The account's oldest room in which it is not present makes way.
            guard let oldest = rooms(of: account).first(where: { !present.contains($0.room) }) else {
                return ([], isFull)
            }
            var changes = leave(oldest.room, account)
            if add(room, channel: channel, to: account) == .added { changes.append(change(of: account, in: room)) }
            return (changes, isFull)
        }
    }

    /// Removes a room from an account.
    package func leave(_ room: StoredRoomKey, _ account: String) -> [StoreOperation] {
        remove(room, from: account) ? [change(of: account, in: room)] : []
    }

    package func leaveAll(_ account: String) -> [StoreOperation] {
        rooms(of: account).flatMap { leave($0.room, account) }
    }

    /// Purges the rooms of an earlier account of this name, at its reuse.
    package func reset(account name: String) -> [StoreOperation] {
        let folded = AccountName.fold(name)
        return rooms.keys.filter { AccountName.fold($0) == folded }.sorted().flatMap { leaveAll($0) }
    }

    /// The present state as a change.
    private func change(of account: String, in room: StoredRoomKey) -> StoreOperation {
        membership(of: account, in: room).map { .membership($0) } ?? .endMembership(account: account, room)
    }

    /// Records changes that the store dropped.
    package func recordLost(_ changes: [StoreOperation]) {
        for change in changes {
            switch change {
            case .membership(let stored): lost.insert(Lost(account: stored.account, room: stored.room))
            case .endMembership(let account, let room): lost.insert(Lost(account: account, room: room))
            default: break
            }
        }
    }

    /// Takes the present state of the dropped changes.
    package func takeLost() -> [StoreOperation] {
        guard !lost.isEmpty else { return [] }
        defer { lost = [] }
        return lost.sorted {
            ($0.account, $0.room.backend, $0.room.room) < ($1.account, $1.room.backend, $1.room.room)
        }.map { change(of: $0.account, in: $0.room) }
    }
}
