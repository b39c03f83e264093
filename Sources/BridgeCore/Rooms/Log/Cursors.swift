import ChatModel
import IRCProtocol

// Up to where each client of each account has certainly received what was said.

/// A client of an account, whichever connection it has: the account's name, folded, and the client's own.
struct ClientKey: Hashable {
    var account: String
    var client: String

    init(account: String, client: String) {
        self.account = IRCCasemapping.ascii.fold(account)
        self.client = client
    }
}

/// The name by which an account tells its clients apart: `phone` in `alice@phone`.
enum ClientName {
    /// Bytes; as many as the name in USER may have.
    static let maxBytes = 32

    /// `text` fit for a name: without blanks and controls, in lower case, cut at ``maxBytes``. Nil: nothing is left.
    static func clean(_ text: String) -> String? {
        let printable = text.unicodeScalars.prefix(maxBytes * 4).filter {
            !IdentityMap.isControl($0) && !$0.properties.isWhitespace
        }
        let name = NickMaker.prefix(of: String(String.UnicodeScalarView(printable)), maxBytes: maxBytes)
        return name.isEmpty ? nil : IRCCasemapping.ascii.fold(name)
    }

    /// The two sides of `alice@phone`. No account's name has an `@`.
    static func split(_ login: String) -> (account: String, client: String?) {
        guard let at = login.firstIndex(of: "@") else { return (login, nil) }
        return (String(login[..<at]), clean(String(login[login.index(after: at)...])))
    }
}

/// The cursors of all clients, as the store has them or will.
struct Cursors {
    /// Clients of one account; whoever makes up names costs no more than this.
    static let maxClientsPerAccount = 100
    /// Rooms of one client.
    static let maxRoomsPerClient = 1000

    private struct Place {
        var sequence: Int64
        /// Grows with each use of any cursor.
        var usedAt: UInt64
    }

    private var places: [ClientKey: [StoredRoomKey: Place]] = [:]
    private var clients: [String: Set<String>] = [:]
    private var uses: UInt64 = 0

    /// - Parameter rooms: where the rooms' orders end; a cursor beyond that, of messages that were lost, would skip new ones.
    init(_ stored: [StoredCursor], rooms: [StoredRoomKey: StoredRoom]) {
        for cursor in stored {
            let newest = rooms[cursor.room].map { $0.nextSequence - 1 } ?? .max
            set(
                ClientKey(account: cursor.account, client: cursor.client), cursor.room,
                Place(sequence: min(cursor.sequence, newest), usedAt: 0))
        }
    }

    private mutating func set(_ client: ClientKey, _ room: StoredRoomKey, _ place: Place) {
        places[client, default: [:]][room] = place
        clients[client.account, default: []].insert(client.client)
    }

    private mutating func nextUse() -> UInt64 {
        uses += 1
        return uses
    }

    /// How many clients of an account have cursors.
    func clientCount(of account: String) -> Int { clients[IRCCasemapping.ascii.fold(account)]?.count ?? 0 }

    /// The names of an account's clients that have cursors.
    func clients(of account: String) -> Set<String> { clients[IRCCasemapping.ascii.fold(account)] ?? [] }

    /// All cursors of a client, in the order of the rooms' names.
    func places(of client: ClientKey) -> [(room: StoredRoomKey, place: Int64)] {
        (places[client] ?? [:]).map { ($0.key, $0.value.sequence) }
            .sorted { ($0.room.backend, $0.room.room) < ($1.room.backend, $1.room.room) }
    }

    /// The place in the room's order up to which the client has everything; nil: it has no cursor there.
    func place(of client: ClientKey, in room: StoredRoomKey) -> Int64? { places[client]?[room]?.sequence }

    /// Makes a cursor. Returns those that had to go for it: of the clients that have not been here for longest.
    ///
    /// - Parameter present: names of the account's clients that are here, which stay.
    mutating func enter(
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

    /// The client has everything up to `sequence`. False when that is no news, or it has no cursor there any more.
    mutating func move(_ client: ClientKey, in room: StoredRoomKey, to sequence: Int64) -> Bool {
        guard let place = places[client]?[room], sequence > place.sequence else { return false }
        let use = nextUse()
        places[client]?[room] = Place(sequence: sequence, usedAt: use)
        return true
    }

    /// Sets a cursor that there is, also back.
    mutating func put(_ client: ClientKey, in room: StoredRoomKey, at sequence: Int64) {
        guard places[client]?[room] != nil else { return }
        let use = nextUse()
        places[client]?[room] = Place(sequence: sequence, usedAt: use)
    }

    /// The client was here.
    mutating func use(_ client: ClientKey, in room: StoredRoomKey) {
        guard places[client]?[room] != nil else { return }
        let use = nextUse()
        places[client]?[room]?.usedAt = use
    }

    /// False when there was none.
    @discardableResult
    mutating func drop(_ client: ClientKey, in room: StoredRoomKey) -> Bool {
        guard places[client]?.removeValue(forKey: room) != nil else { return false }
        if places[client]?.isEmpty == true {
            places[client] = nil
            clients[client.account]?.remove(client.client)
            if clients[client.account]?.isEmpty == true { clients[client.account] = nil }
        }
        return true
    }

    /// Drops those of all clients of an account in all rooms. Returns which there were.
    mutating func drop(account: String) -> [(client: ClientKey, room: StoredRoomKey)] {
        var gone: [(client: ClientKey, room: StoredRoomKey)] = []
        for name in (clients[IRCCasemapping.ascii.fold(account)] ?? []).sorted() {
            let key = ClientKey(account: account, client: name)
            gone += (places[key] ?? [:]).keys.sorted { ($0.backend, $0.room) < ($1.backend, $1.room) }.map { (key, $0) }
        }
        for (client, room) in gone { drop(client, in: room) }
        return gone
    }

    /// Drops those of all clients of an account. Returns whose there were.
    mutating func drop(account: String, in room: StoredRoomKey) -> [ClientKey] {
        let names = clients[IRCCasemapping.ascii.fold(account)] ?? []
        return names.sorted().map { ClientKey(account: account, client: $0) }.filter { drop($0, in: room) }
    }
}
