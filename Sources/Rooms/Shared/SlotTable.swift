import ChatModel

/// A hash index over the slots of a ring, in two words for each.
///
/// The keys are stored in the ring alone. Removal, when the ring overwrites one, costs the same as insertion: hashes
/// are stored here, so no neighbour is hashed again, as in a dictionary.
struct SlotTable {
    /// The hash above, the slot and one below; 0: vacant. A power of two of them, or none.
    private var places: [UInt64] = []
    private var count = 0

    private static let hashes = QuickHash()

    static func hash(_ text: String) -> UInt32 { UInt32(truncatingIfNeeded: hashes.hash(text)) }

    static func hash(_ id: ChatID) -> UInt32 { UInt32(truncatingIfNeeded: hashes.hash(id)) }

    static func hash(_ id: ChatID, of sender: ChatID?) -> UInt32 {
        guard let sender else { return hash(id) }
        return UInt32(truncatingIfNeeded: hashes.hash(hashes.hash(id), hashes.hash(sender)))
    }

    /// The matching slot with this hash; nil: there is none.
    func slot(_ hash: UInt32, where isMeant: (Int) -> Bool) -> Int? {
        guard count > 0 else { return nil }
        var place = home(of: hash)
        while places[place] != 0 {
            if Self.hash(at: places[place]) == hash, isMeant(Self.slot(at: places[place])) {
                return Self.slot(at: places[place])
            }
            place = after(place)
        }
        return nil
    }

    mutating func insert(_ slot: Int, _ hash: UInt32) {
        if (count + 1) * 2 > places.count { resize(to: max(16, places.count * 2)) }
        put(Self.packed(slot, hash))
        count += 1
    }

    /// Removes a slot; no effect where it is absent.
    mutating func remove(_ slot: Int, _ hash: UInt32) {
        guard count > 0 else { return }
        let gone = Self.packed(slot, hash)
        var gap = home(of: hash)
        while places[gap] != gone {
            guard places[gap] != 0 else { return }
            gap = after(gap)
        }
        count -= 1
        // Entries displaced by the vacated slot move up, so that no search ends at it.
        var next = after(gap)
        while places[next] != 0 {
            let home = home(of: Self.hash(at: places[next]))
            if (next - home) & (places.count - 1) >= (next - gap) & (places.count - 1) {
                places[gap] = places[next]
                gap = next
            }
            next = after(next)
        }
        places[gap] = 0
    }

    private mutating func resize(to size: Int) {
        let known = places
        places = Array(repeating: 0, count: size)
        for place in known where place != 0 { put(place) }
    }

    private mutating func put(_ entry: UInt64) {
        var place = home(of: Self.hash(at: entry))
        while places[place] != 0 { place = after(place) }
        places[place] = entry
    }

    private func home(of hash: UInt32) -> Int { Int(hash) & (places.count - 1) }

    private func after(_ place: Int) -> Int { (place + 1) & (places.count - 1) }

    private static func packed(_ slot: Int, _ hash: UInt32) -> UInt64 {
        UInt64(hash) << 32 | UInt64(UInt32(truncatingIfNeeded: slot + 1))
    }

    private static func hash(at entry: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: entry >> 32) }

    private static func slot(at entry: UInt64) -> Int { Int(UInt32(truncatingIfNeeded: entry)) - 1 }
}
