import CSystem

/// Received bytes that are not parsed yet.
///
/// Stores how far it was searched, so that a peer who sends a long line byte by byte costs linear time. Holds no memory
/// while empty, unless asked to.
public struct ReceiveBuffer: ~Copyable {
    private var storage: UnsafeMutableRawPointer?
    // Every connection has a buffer, so its marks are half words: 4 GiB is more than any limit allows.
    private var marks: (capacity: UInt32, head: UInt32, tail: UInt32, searched: UInt32) = (0, 0, 0, 0)

    private var capacity: Int {
        get { Int(marks.capacity) }
        set { marks.capacity = UInt32(newValue) }
    }

    private var head: Int {
        get { Int(marks.head) }
        set { marks.head = UInt32(newValue) }
    }

    private var tail: Int {
        get { Int(marks.tail) }
        set { marks.tail = UInt32(newValue) }
    }

    /// Offset from `head` up to which ``indexOfByte(_:)`` found nothing.
    private var searched: Int {
        get { Int(marks.searched) }
        set { marks.searched = UInt32(newValue) }
    }

    public init() {}

    deinit { storage?.deallocate() }

    /// Bytes held.
    public var count: Int { tail &- head }
    public var isEmpty: Bool { tail == head }

    public mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        if capacity &- tail < bytes.count { makeRoom(for: bytes.count) }
        guard let storage else { return }
        cb_memmove(storage + tail, source, bytes.count)
        tail &+= bytes.count
    }

    /// Appends the bytes that `fill` writes at the front of the room it is given, `byteCount` bytes; it returns their
    /// number.
    public mutating func append(upTo byteCount: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Int) {
        guard byteCount > 0 else { return }
        if capacity &- tail < byteCount { makeRoom(for: byteCount) }
        guard let storage else { return }
        let written = fill(UnsafeMutableRawBufferPointer(start: storage + tail, count: byteCount))
        precondition((0...byteCount).contains(written), "wrote beyond the room")
        tail &+= written
    }

    private mutating func makeRoom(for extra: Int) {
        let held = count
        if let storage, head > 0, capacity >= held + extra, head >= held {
            cb_memmove(storage, storage + head, held)
        } else {
            var wanted = max(256, capacity)
            while wanted < held + extra { wanted *= 2 }
            let fresh = UnsafeMutableRawPointer.allocate(byteCount: wanted, alignment: 16)
            if let storage {
                cb_memmove(fresh, storage + head, held)
                storage.deallocate()
            }
            storage = fresh
            capacity = wanted
        }
        head = 0
        tail = held
    }

    /// Offset of the first `byte` from the front, or nil. Continues where the last search for it ended; searching for
    /// two different bytes in turn needs a buffer each.
    public mutating func indexOfByte(_ byte: UInt8) -> Int? {
        guard let storage, count > searched else { return nil }
        let from = storage + head + searched
        guard let found = cb_memchr(from, Int32(byte), count - searched) else {
            searched = count
            return nil
        }
        return searched + (UnsafeRawPointer(found) - UnsafeRawPointer(from))
    }

    /// Calls `body` with all bytes held; the pointer is valid only during the call.
    public func withUnsafeBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        guard let storage else { return try body(UnsafeRawBufferPointer(start: nil, count: 0)) }
        return try body(UnsafeRawBufferPointer(start: UnsafeRawPointer(storage + head), count: count))
    }

    /// Like ``withUnsafeBytes(_:)``, writable: for unmasking in place.
    public mutating func withUnsafeMutableBytes<R>(_ body: (UnsafeMutableRawBufferPointer) -> R) -> R {
        guard let storage else { return body(UnsafeMutableRawBufferPointer(start: nil, count: 0)) }
        return body(UnsafeMutableRawBufferPointer(start: storage + head, count: count))
    }

    /// Drops the first `dropped` bytes; at most ``count``.
    public mutating func removeFirst(_ dropped: Int) {
        precondition(dropped <= count, "removed more than was held")
        head &+= dropped
        searched = max(0, searched &- dropped)
        if head == tail { removeAll() }
    }

    /// Like ``removeAll()``, but reuses the memory for further bytes when it is at most `byteCount` bytes.
    public mutating func removeAll(keepingUpTo byteCount: Int) {
        guard capacity <= byteCount else { return removeAll() }
        head = 0
        tail = 0
        searched = 0
    }

    public mutating func removeAll() {
        storage?.deallocate()
        storage = nil
        capacity = 0
        head = 0
        tail = 0
        searched = 0
    }
}
