import CSystem

/// A block of memory that many queues share.
///
/// Bytes are appended by one ``ByteWriter`` and never change once a ``ByteSlice`` of them exists, so a line built once
/// can stand in a thousand queues. Confined to one event loop, like everything that holds it; hence not `Sendable`.
public final class ByteChunk {
    @usableFromInline let base: UnsafeMutableRawPointer
    @usableFromInline let capacity: Int

    @usableFromInline
    init(capacity: Int) {
        self.base = .allocate(byteCount: capacity, alignment: 16)
        self.capacity = capacity
    }

    deinit { base.deallocate() }
}

/// Immutable bytes within a shared chunk: the unit in which finished lines and frames travel.
public struct ByteSlice {
    @usableFromInline let chunk: ByteChunk
    @usableFromInline let start: Int
    /// Length in bytes.
    public let count: Int

    @usableFromInline
    init(chunk: ByteChunk, start: Int, count: Int) {
        self.chunk = chunk
        self.start = start
        self.count = count
    }

    /// A slice of a chunk of its own that holds a copy of `bytes`.
    public init(copying bytes: UnsafeRawBufferPointer) {
        let chunk = ByteChunk(capacity: max(bytes.count, 1))
        if let source = bytes.baseAddress { cb_memmove(chunk.base, source, bytes.count) }
        self.init(chunk: chunk, start: 0, count: bytes.count)
    }

    /// A slice of a chunk of its own that holds the UTF-8 of `text`.
    public init(_ text: String) {
        var text = text
        self = text.withUTF8 { ByteSlice(copying: UnsafeRawBufferPointer($0)) }
    }

    @inlinable
    public var isEmpty: Bool { count == 0 }

    /// This slice and `next` as one, when they lie side by side.
    @inlinable
    public func extended(by next: ByteSlice) -> ByteSlice? {
        guard chunk === next.chunk, start &+ count == next.start else { return nil }
        return ByteSlice(chunk: chunk, start: start, count: count &+ next.count)
    }

    /// Calls `body` with the bytes; the pointer is valid only during the call.
    @inlinable
    public func withUnsafeBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try body(UnsafeRawBufferPointer(start: UnsafeRawPointer(chunk.base + start), count: count))
    }

    /// The bytes as text; ill-formed UTF-8 becomes U+FFFD. For tests and logs.
    public var text: String { withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}

extension ByteSlice: Equatable {
    /// Slices are equal when their bytes are.
    public static func == (a: ByteSlice, b: ByteSlice) -> Bool {
        a.count == b.count
            && a.withUnsafeBytes { x in
                b.withUnsafeBytes { y in
                    guard let xs = x.baseAddress, let ys = y.baseAddress else { return true }
                    return cb_memcmp(xs, ys, x.count) == 0
                }
            }
    }
}

extension ByteSlice: CustomStringConvertible {
    public var description: String { text }
}
