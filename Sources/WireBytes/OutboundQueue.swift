/// The bytes that one connection has yet to send: references to shared bytes, first in, first out.
///
/// Appending a slice that continues the last one in the same chunk only moves an end mark, so a burst of lines to a
/// room costs a member two comparisons and an addition each. The first slice stands within the queue itself: a turn
/// usually brings one slice, and then nothing is allocated, and an idle queue holds no memory.
public struct OutboundQueue: ~Copyable {
    @usableFromInline var first: ByteSlice?
    /// The slices after the first; those before `restHead` are gone.
    @usableFromInline var rest: [ByteSlice] = []
    @usableFromInline var restHead = 0
    /// Bytes not yet sent.
    public private(set) var byteCount = 0

    public init() {}

    @inlinable
    public var isEmpty: Bool { byteCount == 0 }

    public mutating func append(_ slice: ByteSlice) {
        guard slice.count > 0 else { return }
        byteCount &+= slice.count
        guard let first else {
            first = slice
            return
        }
        if rest.isEmpty {
            if let longer = first.extended(by: slice) { self.first = longer } else { rest.append(slice) }
        } else if let longer = rest[rest.count &- 1].extended(by: slice) {
            rest[rest.count &- 1] = longer
        } else {
            rest.append(slice)
        }
    }

    /// How many slices wait.
    @inlinable
    public var sliceCount: Int { first == nil ? 0 : 1 &+ rest.count &- restHead }

    /// Calls `body` once for each of the first `limit` slices, in order, with the bytes not yet sent.
    @inlinable
    public func forEachPending(limit: Int, _ body: (UnsafeRawBufferPointer) -> Void) {
        guard let first, limit > 0 else { return }
        first.withUnsafeBytes { body($0) }
        var index = restHead
        let stop = min(rest.count, restHead &+ limit &- 1)
        while index < stop {
            rest[index].withUnsafeBytes { body($0) }
            index &+= 1
        }
    }

    /// Removes the first `sent` bytes. `sent` must not exceed ``byteCount``.
    public mutating func consume(_ sent: Int) {
        precondition(sent <= byteCount, "consumed more than was queued")
        byteCount &-= sent
        var left = sent
        while let slice = first, left > 0 {
            if left < slice.count {
                first = slice.dropping(left)
                return
            }
            left &-= slice.count
            takeNext()
        }
    }

    private mutating func takeNext() {
        guard restHead < rest.count else {
            first = nil
            return
        }
        first = rest[restHead]
        restHead &+= 1
        if restHead == rest.count {
            rest = []
            restHead = 0
        } else if restHead > 64, restHead > rest.count / 2 {
            rest.removeFirst(restHead)
            restHead = 0
        }
    }

    /// Removes everything.
    public mutating func removeAll() {
        first = nil
        rest = []
        restHead = 0
        byteCount = 0
    }
}
