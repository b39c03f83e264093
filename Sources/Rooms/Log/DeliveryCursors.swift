import BridgeTypes
import ChatModel

// Delivery cursors: the position up to which each client of each account has certainly received a room.

/// A client of an account, over any connection: the account's name, folded, and the client's own.
package struct ClientKey: Hashable {
    package var account: String
    package var client: String

    package init(account: String, client: String) {
        self.account = AccountName.fold(account)
        self.client = client
    }
}

/// A cursor whose change was lost because the store was full.
package struct LostCursor: Hashable {
    package var client: ClientKey
    package var room: StoredRoomKey
}

/// The delivery cursors of all clients, persisted or in flight.
package final class DeliveryCursors {
    /// Clients of one account; bounds the cost of made-up names.
    package static let maxClientsPerAccount = 100
    /// Rooms of one client.
    package static let maxRoomsPerClient = 1000

    private struct Place {
        var sequence: Int64
        /// Grows with each use of any cursor.
        var usedAt: UInt64
    }

    private var places: [ClientKey: [StoredRoomKey: Place]] = [:]
    private var clients: [String: Set<String>] = [:]
    private var uses: UInt64 = 0
    private var lost: Set<LostCursor> = []

    /// - Parameter rooms: the ends of the rooms' orders; a cursor beyond that, of lost messages, would skip new ones.
    package init(_ stored: [StoredCursor], rooms: [StoredRoomKey: StoredRoom]) {
        for cursor in stored {
            let newest = rooms[cursor.room].map { $0.nextSequence - 1 } ?? .max
            set(
                ClientKey(account: cursor.account, client: cursor.client), cursor.room,
                Place(sequence: min(cursor.sequence, newest), usedAt: 0))
        }
    }

    private func set(_ client: ClientKey, _ room: StoredRoomKey, _ place: Place) {
        places[client, default: [:]][room] = place
        clients[client.account, default: []].insert(client.client)
    }

    private func nextUse() -> UInt64 {
        uses += 1
        return uses
    }

    /// The number of an account's clients with cursors.
    package func clientCount(of account: String) -> Int { clients[AccountName.fold(account)]?.count ?? 0 }

    /// The names of an account's clients that have cursors.
    package func clients(of account: String) -> Set<String> { clients[AccountName.fold(account)] ?? [] }

    /// All cursors of a client, in the order of the rooms' names.
    package func places(of client: ClientKey) -> [(room: StoredRoomKey, place: Int64)] {
        (places[client] ?? [:]).map { ($0.key, $0.value.sequence) }
            .sorted { ($0.room.backend, $0.room.room) < ($1.room.backend, $1.room.room) }
    }

    /// The sequence number up to which the client has received the room; nil: it has no cursor there.
    package func place(of client: ClientKey, in room: StoredRoomKey) -> Int64? { places[client]?[room]?.sequence }

    /// Creates a cursor. Returns those evicted for it: of the clients absent for longest.
    ///
    /// - Parameter present: names of the account's present clients, which are not evicted.
    package func enter(
        _ client: ClientKey, in room: StoredRoomKey, at sequence: Int64, present: Set<String>
    ) -> [(client: ClientKey, room: StoredRoomKey)] {
        var gone: [(client: ClientKey, room: StoredRoomKey)] = []
        set(client, room, Place(sequence: sequence, usedAt: nextUse()))
        if let own = places[client], own.count > Self.maxRoomsPerClient,
            let unused = own.min(by: { ($0.value.usedAt, $0.key.room) < ($1.value.usedAt, $1.key.room) })
        {
            gone.append((client, unused.key))
        }
        if let names = clients[client.account], names.count > Self.maxClientsPerAccount {
            let absent = names.subtracting(present).subtracting([client.client])
            let unused = absent.min { (lastUse($0, of: client.account), $0) < (lastUse($1, of: client.account), $1) }
            if let unused {
                let key = ClientKey(account: client.account, client: unused)
                gone += (places[key] ?? [:]).keys.sorted { ($0.backend, $0.room) < ($1.backend, $1.room) }
                    .map { (key, $0) }
            }
        }
        for (client, room) in gone { drop(client, in: room) }
        return gone
    }

    private func lastUse(_ client: String, of account: String) -> UInt64 {
        places[ClientKey(account: account, client: client)]?.values.map(\.usedAt).max() ?? 0
    }

    /// Advances a cursor to `sequence`. False when that is not ahead, or there is no cursor any more.
    package func move(_ client: ClientKey, in room: StoredRoomKey, to sequence: Int64) -> Bool {
        guard let place = places[client]?[room], sequence > place.sequence else { return false }
        let use = nextUse()
        places[client]?[room] = Place(sequence: sequence, usedAt: use)
        return true
    }

    /// Sets an existing cursor, also back.
    package func put(_ client: ClientKey, in room: StoredRoomKey, at sequence: Int64) {
        guard places[client]?[room] != nil else { return }
        let use = nextUse()
        places[client]?[room] = Place(sequence: sequence, usedAt: use)
    }

    /// Marks the cursor as recently used.
    package func use(_ client: ClientKey, in room: StoredRoomKey) {
        guard places[client]?[room] != nil else { return }
        let use = nextUse()
        places[client]?[room]?.usedAt = use
    }

    /// False when there was none.
    @discardableResult
    package func drop(_ client: ClientKey, in room: StoredRoomKey) -> Bool {
        guard places[client]?.removeValue(forKey: room) != nil else { return false }
        if places[client]?.isEmpty == true {
            places[client] = nil
            clients[client.account]?.remove(client.client)
            if clients[client.account]?.isEmpty == true { clients[client.account] = nil }
        }
        return true
    }

    /// Drops the cursors of all clients of an account in all rooms, and returns them.
    package func drop(account: String) -> [(client: ClientKey, room: StoredRoomKey)] {
        var gone: [(client: ClientKey, room: StoredRoomKey)] = []
        for name in (clients[AccountName.fold(account)] ?? []).sorted() {
            let key = ClientKey(account: account, client: name)
            gone += (places[key] ?? [:]).keys.sorted { ($0.backend, $0.room) < ($1.backend, $1.room) }.map { (key, $0) }
        }
        for (client, room) in gone { drop(client, in: room) }
        return gone
    }

    /// Drops the cursors of all clients of an account in a room. Returns their keys.
    package func drop(account: String, in room: StoredRoomKey) -> [ClientKey] {
        let names = clients[AccountName.fold(account)] ?? []
        return names.sorted().map { ClientKey(account: account, client: $0) }.filter { drop($0, in: room) }
    }

    // MARK: - Store overflow

    /// Records changes that were lost because the store was full.
    package func lose(_ changes: [StoreOperation]) {
        for change in changes {
            switch change {
            case .cursor(let cursor):
                lost.insert(
                    LostCursor(client: ClientKey(account: cursor.account, client: cursor.client), room: cursor.room))
            case .dropCursor(let account, let client, let room):
                lost.insert(LostCursor(client: ClientKey(account: account, client: client), room: room))
            default: break
            }
        }
    }

    /// Returns the lost changes with their present values, to be persisted again.
    package func takeLost() -> [StoreOperation] {
        defer { lost = [] }
        let ordered = lost.sorted {
            ($0.client.account, $0.client.client, $0.room.backend, $0.room.room)
                < ($1.client.account, $1.client.client, $1.room.backend, $1.room.room)
        }
        return ordered.map { cursor in
            let (account, client) = (cursor.client.account, cursor.client.client)
            guard let place = place(of: cursor.client, in: cursor.room) else {
                return .dropCursor(account: account, client: client, cursor.room)
            }
            return .cursor(StoredCursor(account: account, client: client, room: cursor.room, sequence: place))
        }
    }
}
