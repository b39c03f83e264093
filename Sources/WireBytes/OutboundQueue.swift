/// The bytes that one connection has yet to send: references to shared bytes, first in, first out.
///
/// Appending a slice that continues the last one in the same chunk only moves an end mark, so a burst of lines to a
/// room costs a member two comparisons and an addition each. The first slice stands within the queue itself: a turn
/// usually brings one slice, and then nothing is allocated, and an idle queue holds no memory.
public struct OutboundQueue: ~Copyable {
    /// The first slice. Its chunk is retained once, by hand: to lengthen, send and shorten it costs no reference, and that is
    /// what a turn does for every client.
    @usableFromInline var firstChunk: Unmanaged<ByteChunk>?
    @usableFromInline var firstStart = 0
    @usableFromInline var firstCount = 0
    /// The slices after the first; those before `restHead` are gone.
    @usableFromInline var rest: [ByteSlice] = []
    @usableFromInline var restHead = 0
    /// Bytes not yet sent.
    public private(set) var byteCount = 0

    public init() {}

    // Swift 6.3 leaves this out where generic code assigns a queue over another; none does.
    deinit { firstChunk?.release() }

    @inlinable
    public var isEmpty: Bool { byteCount == 0 }

    public mutating func append(_ slice: ByteSlice) {
        guard slice.count > 0 else { return }
        byteCount &+= slice.count
        guard let firstChunk else { return begin(with: slice) }
        if !rest.isEmpty {
            if let longer = rest[rest.count &- 1].extended(by: slice) {
                rest[rest.count &- 1] = longer
            } else {
                rest.append(slice)
            }
        } else if firstChunk.toOpaque() == Unmanaged.passUnretained(slice.chunk).toOpaque(),
            firstStart &+ firstCount == slice.start
        {
            firstCount &+= slice.count
        } else {
            rest.append(slice)
        }
    }

    private mutating func begin(with slice: ByteSlice) {
        firstChunk = Unmanaged.passRetained(slice.chunk)
        firstStart = slice.start
        firstCount = slice.count
    }

    /// How many slices wait.
    @inlinable
    public var sliceCount: Int { firstChunk == nil ? 0 : 1 &+ rest.count &- restHead }

    /// Calls `body` once for each of the first `limit` slices, in order, with the bytes not yet sent.
    @inlinable
    public func forEachPending(limit: Int, _ body: (UnsafeRawBufferPointer) -> Void) {
        guard let firstChunk, limit > 0 else { return }
        let base = firstChunk._withUnsafeGuaranteedRef { $0.base }
        body(UnsafeRawBufferPointer(start: base + firstStart, count: firstCount))
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
        while left > 0 {
            if left < firstCount {
                firstStart &+= left
                firstCount &-= left
                return
            }
            left &-= firstCount
            takeNext()
        }
    }

    private mutating func takeNext() {
        firstChunk?.release()
        firstChunk = nil
        firstCount = 0
        guard restHead < rest.count else { return }
        begin(with: rest[restHead])
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
    public mutating func removeAll() { self = OutboundQueue() }
}
