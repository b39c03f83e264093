import ChatModel

/// The ids of the last messages of a room, so that an echo, a history page and a live frame of the same message show it
/// once.
struct DuplicateRing {
    /// Enough for a reconnect in the busiest room; from the session rules of the upstream dialects.
    static let capacity = 2000

    /// Message ids are made by senders on some wires, so the same id of another sender is another message there.
    struct Key: Hashable {
        var id: ChatID
        var sender: ChatID?
    }

    private var ring: [Key] = []
    private var next = 0
    private var present: Set<Key> = []
    /// How many were remembered since the start, forgotten ones counted.
    private(set) var total = 0

    func contains(_ key: Key) -> Bool { present.contains(key) }

    /// When each became known: numbers below ``total`` that grow. It copies, and is for histories.
    func places() -> [Key: Int] {
        var places: [Key: Int] = [:]
        places.reserveCapacity(ring.count)
        for offset in ring.indices {
            let index = ring.count < Self.capacity ? offset : (next + offset) % Self.capacity
            places[ring[index]] = total - ring.count + offset
        }
        return places
    }

    /// Remembers `key`, forgetting the oldest. Returns false when it was known.
    mutating func insert(_ key: Key) -> Bool {
        guard present.insert(key).inserted else { return false }
        total &+= 1
        if ring.count < Self.capacity {
            ring.append(key)
        } else {
            present.remove(ring[next])
            ring[next] = key
            next = (next + 1) % Self.capacity
        }
        return true
    }
}
