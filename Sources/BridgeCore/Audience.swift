import IRCProtocol

/// The IRC clients in a room, grouped by what changes the rendering of a line, so that a line is built once a group.
struct Audience {
    struct Group {
        let profile: IRCCapabilitySet
        var clients: [ClientID] = []
        /// Those who still get what was said before they came: lines wait for them elsewhere.
        var held: [ClientID] = []

        var isEmpty: Bool { clients.isEmpty && held.isEmpty }
    }

    private(set) var groups: [Group] = []
    private var places: [ClientID: Place] = [:]

    private struct Place {
        var group: Int
        /// In the group's ``Group/clients``, or ``Group/held``.
        var position: Int
        var isHeld: Bool
    }

    var count: Int { places.count }
    var clients: some Sequence<ClientID> { places.keys }

    func contains(_ client: ClientID) -> Bool { places[client] != nil }

    func isHeld(_ client: ClientID) -> Bool { places[client]?.isHeld ?? false }

    /// The client's lines wait, or no longer.
    mutating func setHeld(_ client: ClientID, _ isHeld: Bool) {
        guard let place = places[client], place.isHeld != isHeld else { return }
        add(client, profile: groups[place.group].profile, isHeld: isHeld)
    }

    mutating func add(_ client: ClientID, profile: IRCCapabilitySet, isHeld: Bool = false) {
        remove(client)
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
        let position = isHeld ? groups[group].held.count : groups[group].clients.count
        places[client] = Place(group: group, position: position, isHeld: isHeld)
        if isHeld { groups[group].held.append(client) } else { groups[group].clients.append(client) }
    }

    mutating func remove(_ client: ClientID) {
        guard let place = places.removeValue(forKey: client) else { return }
        let last = place.isHeld ? groups[place.group].held.removeLast() : groups[place.group].clients.removeLast()
        guard last != client else { return }
        if place.isHeld {
            groups[place.group].held[place.position] = last
        } else {
            groups[place.group].clients[place.position] = last
        }
        places[last] = place
    }
}

/// The people of a room in an order that a long answer can walk while people come and go: a place once given stays, so
/// whoever is there from beginning to end is listed exactly once, and who left is not listed after their PART.
struct MemberSlots {
    private var slots: [PersonID?] = []
    private var places: [PersonID: Int] = [:]
    private var free: [Int] = []

    var count: Int { places.count }

    func contains(_ person: PersonID) -> Bool { places[person] != nil }

    mutating func insert(_ person: PersonID) {
        guard places[person] == nil else { return }
        if let slot = free.popLast() {
            slots[slot] = person
            places[person] = slot
        } else {
            places[person] = slots.count
            slots.append(person)
        }
    }

    mutating func remove(_ person: PersonID) {
        guard let slot = places.removeValue(forKey: person) else { return }
        slots[slot] = nil
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
            if let person = slots[cursor] { return person }
        }
        return nil
    }
}
