import IRCProtocol

/// The IRC clients in a room, grouped by what changes the rendering of a line, so that a line is built once a group.
struct Audience {
    /// A client's place in the audience of a room, kept by the client's own record there.
    class Seat {
        let client: ClientID
        // In half words: there are fewer clients than these count.
        fileprivate var group: Int32 = -1
        fileprivate var position: Int32 = -1
        /// In the group's ``Group/held``.
        fileprivate(set) var isHeld = false

        init(client: ClientID) { self.client = client }

        fileprivate var isTaken: Bool { group >= 0 }
    }

    struct Group {
        let profile: IRCCapabilitySet
        var clients: [ClientID] = []
        /// Those who still get what was said before they came: lines wait for them elsewhere.
        var held: [ClientID] = []

        var isEmpty: Bool { clients.isEmpty && held.isEmpty }

        mutating func remove(_ others: Set<ClientID>) {
            clients.removeAll { others.contains($0) }
            held.removeAll { others.contains($0) }
        }
    }

    private(set) var groups: [Group] = []
    private(set) var count = 0

    /// The client's lines wait, or no longer.
    mutating func setHeld(_ seat: Seat, _ isHeld: Bool, seatOf: (ClientID) -> Seat?) {
        guard seat.isTaken, seat.isHeld != isHeld else { return }
        add(seat, profile: groups[Int(seat.group)].profile, isHeld: isHeld, seatOf: seatOf)
    }

    /// Puts a client into the group of its profile, out of the one where it is.
    ///
    /// - Parameter seatOf: finds the seat of another client in the audience.
    mutating func add(
        _ seat: Seat, profile: IRCCapabilitySet, isHeld: Bool = false, seatOf: (ClientID) -> Seat?
    ) {
        remove(seat, seatOf: seatOf)
        let group: Int
        if let known = groups.firstIndex(where: { $0.profile == profile }) {
            group = known
        } else if let vacant = groups.firstIndex(where: \.isEmpty) {
            // A client that goes through all its capabilities leaves no trail of groups.
            groups[vacant] = Group(profile: profile)
            group = vacant
        } else {
            groups.append(Group(profile: profile))
            group = groups.count - 1
        }
        seat.group = Int32(clamping: group)
        seat.isHeld = isHeld
        seat.position = Int32(clamping: isHeld ? groups[group].held.count : groups[group].clients.count)
        if isHeld { groups[group].held.append(seat.client) } else { groups[group].clients.append(seat.client) }
        count += 1
    }

    mutating func remove(_ seat: Seat, seatOf: (ClientID) -> Seat?) {
        guard seat.isTaken else { return }
        let group = Int(seat.group)
        let last = seat.isHeld ? groups[group].held.removeLast() : groups[group].clients.removeLast()
        if last != seat.client {
            if seat.isHeld {
                groups[group].held[Int(seat.position)] = last
            } else {
                groups[group].clients[Int(seat.position)] = last
            }
            seatOf(last)?.position = seat.position
        }
        seat.group = -1
        seat.isHeld = false
        count -= 1
    }
}

/// The people of a room in an order that a long answer can walk while people come and go: a place once given stays, so
/// whoever is there from beginning to end is listed exactly once, and who left is not listed after their PART.
struct MemberSlots {
    private var slots: [PersonID] = []
    private var places: [PersonID: Int32] = [:]
    private var free: [Int] = []

    var count: Int { places.count }

    func contains(_ person: PersonID) -> Bool { places[person] != nil }

    mutating func insert(_ person: PersonID) {
        guard places[person] == nil else { return }
        if let slot = free.popLast() {
            slots[slot] = person
            places[person] = Int32(clamping: slot)
        } else {
            places[person] = Int32(clamping: slots.count)
            slots.append(person)
        }
    }

    mutating func remove(_ person: PersonID) {
        guard let slot = places.removeValue(forKey: person).map({ Int($0) }) else { return }
        slots[slot] = .nobody
        free.append(slot)
        if places.isEmpty {
            slots = []
            free = []
        }
    }

    /// Moves `cursor` past the next person and returns them; nil at the end.
    func next(_ cursor: inout Int) -> PersonID? {
        while cursor < slots.count {
            defer { cursor += 1 }
            if slots[cursor] != .nobody { return slots[cursor] }
        }
        return nil
    }
}
