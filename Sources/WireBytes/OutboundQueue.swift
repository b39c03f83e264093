/// What one connection still has to send: references to shared bytes, first in, first out.
///
/// Appending a slice that continues the last one in the same chunk only moves an end mark, so a burst of lines to a room
/// costs a member two comparisons and an addition each.
public struct OutboundQueue: ~Copyable {
    @usableFromInline var slices: [ByteSlice] = []
    @usableFromInline var head = 0
    /// Bytes of the first slice that are already sent.
    @usableFromInline var headOffset = 0
    /// Bytes not yet sent.
    public private(set) var byteCount = 0

    public init() {}

    @inlinable
    public var isEmpty: Bool { byteCount == 0 }

    public mutating func append(_ slice: ByteSlice) {
        guard slice.count > 0 else { return }
        byteCount &+= slice.count
        if let last = slices.last, last.chunk === slice.chunk, last.start &+ last.count == slice.start {
            slices[slices.count &- 1] = ByteSlice(
                chunk: last.chunk, start: last.start, count: last.count &+ slice.count)
        } else {
            slices.append(slice)
        }
    }

    /// How many slices wait.
    @inlinable
    public var sliceCount: Int { slices.count &- head }

    /// Calls `body` once for each of the first `limit` slices, in order, with the bytes not yet sent.
    @inlinable
    public func forEachPending(limit: Int, _ body: (UnsafeRawBufferPointer) -> Void) {
        var index = head
        let stop = min(slices.count, head &+ limit)
        var skip = headOffset
        while index < stop {
            slices[index].withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[skip...])) }
            skip = 0
            index &+= 1
        }
    }

    /// Removes the first `sent` bytes. `sent` must not exceed ``byteCount``.
    public mutating func consume(_ sent: Int) {
        precondition(sent <= byteCount, "consumed more than was queued")
        byteCount &-= sent
        var left = sent &+ headOffset
        while head < slices.count, left >= slices[head].count {
            left &-= slices[head].count
            head &+= 1
        }
        headOffset = left
        if head == slices.count {
            // An idle connection keeps no storage; a busy one keeps its small array.
            if slices.capacity > 16 { slices = [] } else { slices.removeAll(keepingCapacity: true) }
            head = 0
            headOffset = 0
        } else if head > 64, head > slices.count / 2 {
            slices.removeFirst(head)
            head = 0
        }
    }

    /// Forgets everything.
    public mutating func removeAll() {
        slices = []
        head = 0
        headOffset = 0
        byteCount = 0
    }
}
