import CSystem

/// Builds lines and frames into shared chunks.
///
/// Append bytes, then ``take()`` them as one ``ByteSlice``. Consecutive slices lie side by side in the same chunk while it
/// has room, which lets an ``OutboundQueue`` hold a run of them as one entry.
public struct ByteWriter: ~Copyable {
    /// Bytes of an ordinary chunk. Small enough that a slow reader who holds one line of each chunk pins little, large
    /// enough that a busy room allocates seldom.
    public static let chunkBytes = 8 * 1024

    @usableFromInline var chunk: ByteChunk?
    @usableFromInline var start = 0
    @usableFromInline var end = 0

    public init() {}

    /// Bytes appended since the last ``take()``.
    @inlinable
    public var count: Int { end &- start }

    /// Room for `byteCount` more bytes, contiguous with those already pending.
    @inlinable
    mutating func reserve(_ byteCount: Int) -> UnsafeMutableRawPointer {
        if let chunk, chunk.capacity &- end >= byteCount { return chunk.base + end }
        return growToFit(byteCount)
    }

    @usableFromInline
    mutating func growToFit(_ byteCount: Int) -> UnsafeMutableRawPointer {
        let pending = count
        let needed = pending + byteCount
        let fresh = ByteChunk(capacity: needed <= Self.chunkBytes ? Self.chunkBytes : needed + needed / 2)
        if let chunk, pending > 0 { cb_memmove(fresh.base, chunk.base + start, pending) }
        chunk = fresh
        start = 0
        end = pending
        return fresh.base + end
    }

    @inlinable
    public mutating func append(_ byte: UInt8) {
        reserve(1).storeBytes(of: byte, as: UInt8.self)
        end &+= 1
    }

    @inlinable
    public mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        cb_memmove(reserve(bytes.count), source, bytes.count)
        end &+= bytes.count
    }

    @inlinable
    public mutating func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { append($0) }
    }

    @inlinable
    public mutating func append(_ text: StaticString) {
        append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends the UTF-8 of `text`.
    @inlinable
    public mutating func append(_ text: String) {
        let done: Void? = text.utf8.withContiguousStorageIfAvailable { append(UnsafeRawBufferPointer($0)) }
        if done == nil {
            var native = text
            native.withUTF8 { append(UnsafeRawBufferPointer($0)) }
        }
    }

    @inlinable
    public mutating func append(_ slice: ByteSlice) {
        slice.withUnsafeBytes { append($0) }
    }

    /// Appends `number` in decimal digits.
    @inlinable
    public mutating func append(decimal number: Int64) {
        var magnitude = number.magnitude
        if number < 0 { append(UInt8(ascii: "-")) }
        var digits: (UInt64, UInt64, UInt64) = (0, 0, 0)
        withUnsafeMutableBytes(of: &digits) { buffer in
            var index = buffer.count
            repeat {
                index -= 1
                buffer[index] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: magnitude % 10)
                magnitude /= 10
            } while magnitude > 0
            append(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[index...]))
        }
    }

    /// Appends the bytes that `fill` writes at the front of the room it is given, `byteCount` bytes; it returns their
    /// number.
    @inlinable
    public mutating func append(upTo byteCount: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Int) {
        guard byteCount > 0 else { return }
        let written = fill(UnsafeMutableRawBufferPointer(start: reserve(byteCount), count: byteCount))
        precondition((0...byteCount).contains(written), "wrote beyond the room")
        end &+= written
    }

    /// Drops bytes appended after the first `keeping` pending ones.
    @inlinable
    public mutating func truncate(to keeping: Int) {
        if keeping >= 0, keeping < count { end = start &+ keeping }
    }

    /// Calls `body` with the pending bytes, writable: for filling in a length or masking in place.
    @inlinable
    public mutating func withPendingBytes<R>(_ body: (UnsafeMutableRawBufferPointer) -> R) -> R {
        guard let chunk else { return body(UnsafeMutableRawBufferPointer(start: nil, count: 0)) }
        return body(UnsafeMutableRawBufferPointer(start: chunk.base + start, count: count))
    }

    /// Everything appended since the last call, as one slice. Empty when nothing was.
    @inlinable
    public mutating func take() -> ByteSlice {
        let chunk = self.chunk ?? ByteChunk(capacity: Self.chunkBytes)
        self.chunk = chunk
        let slice = ByteSlice(chunk: chunk, start: start, count: count)
        start = end
        return slice
    }
}
