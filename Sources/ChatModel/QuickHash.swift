/// Hashes for tables in memory, at a fraction of the cost of the standard library's. Keyed anew in each process, so that a
/// peer cannot choose keys that collide.
///
/// Source: the folded multiplication of wyhash, github.com/wangyi-fudan/wyhash.
public struct QuickHash: Sendable {
    private let first: UInt64
    private let second: UInt64

    public init() {
        first = UInt64.random(in: .min ... .max)
        second = UInt64.random(in: .min ... .max)
    }

    /// Equal for equal ids.
    public func hash(_ id: ChatID) -> UInt64 {
        guard var text = id.longText else { return hash(id.bits.high, id.bits.low) }
        return text.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
    }

    /// Of the bytes in UTF-8.
    public func hash(_ text: String) -> UInt64 {
        var text = text
        return text.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
    }

    public func hash(_ a: UInt64, _ b: UInt64) -> UInt64 { finish(mix(a, b)) }

    public func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        // Mixed, so that a byte of the text cannot make up for the length.
        var state = mix(UInt64(bytes.count), 0)
        var offset = 0
        while bytes.count - offset > 16 {
            state = mix(state ^ word(bytes, offset), word(bytes, offset + 8))
            offset += 16
        }
        // The rest, which may read again what was read: at most 16 bytes.
        let rest = bytes.count - offset
        if rest > 8 { return hash(state ^ word(bytes, offset), word(bytes, bytes.count - 8)) }
        var last: UInt64 = 0
        for place in offset..<bytes.count { last = last << 8 | UInt64(bytes[place]) }
        return hash(state, last)
    }

    @inline(__always)
    private func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
        bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }

    /// Of two short ids one factor of ``mix(_:_:)`` may be the same, and with one key in ten the product spreads them badly.
    @inline(__always)
    private func finish(_ mixed: UInt64) -> UInt64 { mix(mixed, 0x9E37_79B9_7F4A_7C15) }

    @inline(__always)
    private func mix(_ a: UInt64, _ b: UInt64) -> UInt64 {
        let product = (a ^ first).multipliedFullWidth(by: b ^ second)
        return product.high ^ product.low
    }
}
