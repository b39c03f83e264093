import ChatModel

/// The ids of a room's last messages: deduplicates an echo, a history page and a live frame of the same message.
final class SeenMessageIDs {
    /// Enough for a reconnect in the busiest room; from the session rules of the upstream dialects.
    static let capacity = 2000

    /// On some wires senders make the ids, so the same id of another sender is another message.
    struct Key: Hashable {
        var id: ChatID
        var sender: ChatID?
    }

    private var ring: [Key] = []
    private var hashes: [UInt32] = []
    private var next = 0
    private var slots = SlotTable()
    /// The number of ids inserted since the start, dropped ones included.
    private(set) var total = 0
    /// There are ids whose senders were erased: they are known from any sender.
    private var hasErased = false

    func contains(_ key: Key) -> Bool { contains(key, SlotTable.hash(key.id, of: key.sender)) }

    private func contains(_ key: Key, _ hash: UInt32) -> Bool {
        slots.slot(hash) { ring[$0] == key } != nil
            || hasErased && key.sender != nil && contains(Key(id: key.id, sender: nil))
    }

    func insertErased(_ id: ChatID) {
        hasErased = true
        _ = insert(Key(id: id, sender: nil))
    }

    /// The position at which each became known: numbers below ``total`` that grow. Copies; for histories.
    func places() -> [Key: Int] {
        var places: [Key: Int] = [:]
        places.reserveCapacity(ring.count)
        for offset in ring.indices {
            let index = ring.count < Self.capacity ? offset : (next + offset) % Self.capacity
            places[ring[index]] = total - ring.count + offset
        }
        return places
    }

    /// Inserts `key`, dropping the oldest. Returns false when it was known.
    func insert(_ key: Key) -> Bool {
        let hash = SlotTable.hash(key.id, of: key.sender)
        guard !contains(key, hash) else { return false }
        total &+= 1
        if ring.count < Self.capacity {
            slots.insert(ring.count, hash)
            ring.append(key)
            hashes.append(hash)
        } else {
            slots.remove(next, hashes[next])
            slots.insert(next, hash)
            ring[next] = key
            hashes[next] = hash
            next = (next + 1) % Self.capacity
        }
        return true
    }
}
