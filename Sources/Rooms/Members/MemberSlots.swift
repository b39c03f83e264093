import BridgeTypes

/// The people of a room in an order that a long answer can walk while people come and go: a place stays valid, so a
/// person present throughout is listed exactly once, and one that left is not listed after their PART.
package final class MemberSlots {
    private var slots: [PersonID] = []
    private var places: [PersonID: Int32] = [:]
    private var free: [Int] = []

    package var count: Int { places.count }

    package func contains(_ person: PersonID) -> Bool { places[person] != nil }

    package func insert(_ person: PersonID) {
        guard places[person] == nil else { return }
        if let slot = free.popLast() {
            slots[slot] = person
            places[person] = Int32(clamping: slot)
        } else {
            places[person] = Int32(clamping: slots.count)
            slots.append(person)
        }
    }

    package func remove(_ person: PersonID) {
        guard let slot = places.removeValue(forKey: person).map({ Int($0) }) else { return }
        slots[slot] = .invalid
        free.append(slot)
        if places.isEmpty {
            slots = []
            free = []
        }
    }

    /// Moves `cursor` past the next person and returns them; nil at the end.
    package func next(_ cursor: inout Int) -> PersonID? {
        while cursor < slots.count {
            defer { cursor += 1 }
            if slots[cursor] != .invalid { return slots[cursor] }
        }
        return nil
    }
}
