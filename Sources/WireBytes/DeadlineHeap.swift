/// Deadlines by key, earliest first. Setting a key again moves it; a key has at most one deadline.
///
/// A binary heap with lazy changes. For each key with a deadline there is an entry at that deadline or before it: a
/// deadline that moves on, as most do, is only noted, and its entry follows when it surfaces. Stale entries stay until
/// they surface, and a sweep rebuilds the heap when a third of it is stale, so memory stays proportional to the keys in
/// use.
public struct DeadlineHeap<Key: Hashable> {
    private var heap: [(at: MonotonicInstant, key: Key)] = []
    private var live: [Key: MonotonicInstant] = [:]

    public init() {}

    /// Entries held, stale ones included.
    package var entryCount: Int { heap.count }

    /// Keys with a deadline.
    public var count: Int { live.count }

    public subscript(key: Key) -> MonotonicInstant? { live[key] }

    /// Sets or moves the deadline of `key`.
    public mutating func set(_ key: Key, at: MonotonicInstant) {
        let old = live.updateValue(at, forKey: key)
        if let old, at >= old { return }
        heap.append((at, key))
        siftUp(heap.count - 1)
        if heap.count > 64, heap.count > live.count + live.count / 2 { rebuild() }
    }

    public mutating func cancel(_ key: Key) {
        live[key] = nil
        if live.isEmpty { heap.removeAll(keepingCapacity: heap.capacity <= 64) }
    }

    /// The earliest deadline, or nil when there is none.
    public mutating func next() -> MonotonicInstant? {
        settleTop()
        return heap.first?.at
    }

    /// Removes and returns the earliest key whose deadline is at or before `now`.
    public mutating func popDue(_ now: MonotonicInstant) -> Key? {
        settleTop()
        guard let first = heap.first, first.at <= now else { return nil }
        live[first.key] = nil
        removeTop()
        return first.key
    }

    /// Makes the first entry the next deadline.
    private mutating func settleTop() {
        while let first = heap.first {
            let deadline = live[first.key]
            if deadline == first.at { return }
            if let deadline, deadline > first.at {
                heap[0].at = deadline
                siftDown(0)
            } else {
                removeTop()
            }
        }
    }

    private mutating func removeTop() {
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            siftDown(0)
        }
    }

    /// One entry for each key, at its deadline.
    private mutating func rebuild() {
        // Out of the table while they are gathered, so that each is taken once.
        var kept = 0
        for index in heap.indices {
            guard let deadline = live.removeValue(forKey: heap[index].key) else { continue }
            heap[kept] = (deadline, heap[index].key)
            kept += 1
        }
        heap.removeLast(heap.count - kept)
        for entry in heap { live[entry.key] = entry.at }
        for index in stride(from: heap.count / 2 - 1, through: 0, by: -1) { siftDown(index) }
    }

    private mutating func siftUp(_ start: Int) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 2
            guard heap[index].at < heap[parent].at else { return }
            heap.swapAt(index, parent)
            index = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count && heap[child].at < heap[least].at {
                least = child
            }
            guard least != index else { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}

extension DeadlineHeap: Sendable where Key: Sendable {}
