/// Deadlines by key, earliest first. Setting a key again moves it; a key has at most one deadline.
///
/// A binary heap with lazy deletion: a moved or cancelled entry stays until it surfaces, and a sweep rebuilds the heap
/// when a third of it is stale, so memory stays proportional to the keys in use.
///
/// An entry counts while the table has its very deadline for its key. A key that went back to a deadline of before may have
/// several such entries; the first to surface takes the key out of the table, which makes the others stale, and a sweep
/// keeps one of them.
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
        if live[key] == at { return }
        live[key] = at
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
        dropStale()
        return heap.first?.at
    }

    /// Removes and returns the earliest key whose deadline is at or before `now`.
    public mutating func popDue(_ now: MonotonicInstant) -> Key? {
        dropStale()
        guard let first = heap.first, first.at <= now else { return nil }
        live[first.key] = nil
        removeTop()
        return first.key
    }

    private mutating func dropStale() {
        while let first = heap.first, live[first.key] != first.at { removeTop() }
    }

    private mutating func removeTop() {
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            siftDown(0)
        }
    }

    private mutating func rebuild() {
        // Out of the table while they are gathered, so that none is kept twice.
        heap.removeAll { entry in
            guard live[entry.key] == entry.at else { return true }
            live[entry.key] = nil
            return false
        }
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
