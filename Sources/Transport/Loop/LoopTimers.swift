import WireBytes

/// What a loop is to do at a time, each at most once.
final class LoopTimers {
    enum Key: Hashable {
        case connect(ConnectionID)
        case handshake(ConnectionID)
        case announcement(ConnectionID)
        case linger(ConnectionID)
        case acceptRest(UInt32)
        case certificates
    }

    private var heap = DeadlineHeap<Key>()

    func set(_ key: Key, at: MonotonicInstant) { heap.set(key, at: at) }
    func cancel(_ key: Key) { heap.cancel(key) }
    subscript(key: Key) -> MonotonicInstant? { heap[key] }
    func next() -> MonotonicInstant? { heap.next() }
    func popDue(_ now: MonotonicInstant) -> Key? { heap.popDue(now) }
    func forgetAll() { heap = DeadlineHeap() }
}
