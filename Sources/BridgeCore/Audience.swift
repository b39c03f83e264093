import IRCProtocol

/// The IRC clients in a room, grouped by what changes the rendering of a line, so that a line is built once a group.
struct Audience {
    struct Group {
        let profile: IRCCapabilitySet
        var clients: [ClientID] = []
    }

    private(set) var groups: [Group] = []
    // In half words: there are fewer clients than these count.
    private var places: [ClientID: (group: Int32, position: Int32)] = [:]

    var count: Int { places.count }
    var clients: some Sequence<ClientID> { places.keys }

    func contains(_ client: ClientID) -> Bool { places[client] != nil }

    mutating func add(_ client: ClientID, profile: IRCCapabilitySet) {
        remove(client)
        let group: Int
        if let known = groups.firstIndex(where: { $0.profile == profile }) {
            group = known
        } else if let vacant = groups.firstIndex(where: \.clients.isEmpty) {
            // A client that goes through all its capabilities leaves no trail of groups.
            groups[vacant] = Group(profile: profile)
            group = vacant
        } else {
            groups.append(Group(profile: profile))
            group = groups.count - 1
        }
        places[client] = (Int32(clamping: group), Int32(clamping: groups[group].clients.count))
        groups[group].clients.append(client)
    }

    mutating func remove(_ client: ClientID) {
        guard let place = places.removeValue(forKey: client) else { return }
        let group = Int(place.group)
        let last = groups[group].clients.removeLast()
        if last != client {
            groups[group].clients[Int(place.position)] = last
            places[last] = place
        }
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
