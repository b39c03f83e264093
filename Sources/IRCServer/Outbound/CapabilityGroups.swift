import BridgeTypes
import IRCProtocol
import Rooms

/// The IRC clients in a room, grouped by the capabilities that affect rendering: a line is built once per group.
struct CapabilityGroups {
    struct Group {
        let profile: IRCCapabilitySet
        var clients: [ClientID] = []
        /// Clients with a backlog in progress: their lines are held elsewhere.
        var held: [ClientID] = []

        var isEmpty: Bool { clients.isEmpty && held.isEmpty }

        mutating func remove(_ others: Set<ClientID>) {
            clients.removeAll { others.contains($0) }
            held.removeAll { others.contains($0) }
        }
    }

    private(set) var groups: [Group] = []
    private(set) var count = 0

    /// Whether a client of any group is shown tags.
    var isShownTags: Bool {
        groups.contains { !$0.isEmpty && !$0.profile.intersection(IRCReductionTable.ofTags).isEmpty }
    }

    /// Holds the client's lines, or no longer.
    mutating func setHeld(_ slot: MemberSlot, _ isHeld: Bool, slotOf: (ClientID) -> MemberSlot?) {
        guard slot.isTaken, slot.isHeld != isHeld else { return }
        add(slot, profile: groups[Int(slot.group)].profile, isHeld: isHeld, slotOf: slotOf)
    }

    /// Moves a client to the group of its profile.
    ///
    /// - Parameter slotOf: finds the slot of another client in the audience.
    mutating func add(
        _ slot: MemberSlot, profile: IRCCapabilitySet, isHeld: Bool = false, slotOf: (ClientID) -> MemberSlot?
    ) {
        remove(slot, slotOf: slotOf)
        let group: Int
        if let known = groups.firstIndex(where: { $0.profile == profile }) {
            group = known
        } else if let vacant = groups.firstIndex(where: \.isEmpty) {
            // A client that cycles through all its capabilities leaves no trail of groups.
            groups[vacant] = Group(profile: profile)
            group = vacant
        } else {
            groups.append(Group(profile: profile))
            group = groups.count - 1
        }
        slot.take(
            group: group, position: isHeld ? groups[group].held.count : groups[group].clients.count, isHeld: isHeld)
        if isHeld { groups[group].held.append(slot.client) } else { groups[group].clients.append(slot.client) }
        count += 1
    }

    mutating func remove(_ slot: MemberSlot, slotOf: (ClientID) -> MemberSlot?) {
        guard slot.isTaken else { return }
        let group = Int(slot.group)
        let last = slot.isHeld ? groups[group].held.removeLast() : groups[group].clients.removeLast()
        if last != slot.client {
            if slot.isHeld {
                groups[group].held[Int(slot.position)] = last
            } else {
                groups[group].clients[Int(slot.position)] = last
            }
            slotOf(last)?.move(to: slot.position)
        }
        slot.vacate()
        count -= 1
    }
}
