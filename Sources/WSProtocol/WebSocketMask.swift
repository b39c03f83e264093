/// Masking of payloads: XOR with four bytes, over and over. Applying it twice gives the bytes back.
///
/// Source: RFC 6455 §5.3.
public struct WebSocketMask: Equatable, Sendable {
    /// The first byte of the key in the lowest bits.
    private let key: UInt32

    /// A key from its four bytes in wire order.
    public init(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) {
        key = UInt32(a) | UInt32(b) << 8 | UInt32(c) << 16 | UInt32(d) << 24
    }

    /// A key drawn from `rng`, which must be unpredictable to the peer's scripts.
    public init(using rng: inout some RandomNumberGenerator) { key = UInt32(truncatingIfNeeded: rng.next() as UInt64) }

    /// The key's bytes in wire order.
    public var bytes: (UInt8, UInt8, UInt8, UInt8) {
        (
            UInt8(truncatingIfNeeded: key), UInt8(truncatingIfNeeded: key >> 8), UInt8(truncatingIfNeeded: key >> 16),
            UInt8(truncatingIfNeeded: key >> 24)
        )
    }

    /// Masks or unmasks `bytes` in place.
    ///
    /// - Parameter offset: how many bytes of the payload came before these.
    public func apply(to bytes: UnsafeMutableRawBufferPointer, offset: Int = 0) {
        guard let base = bytes.baseAddress else { return }
        let shift = UInt32(offset & 3) &* 8
        let rotated = key &>> shift | key &<< (32 &- shift) & (shift == 0 ? 0 : .max)
        let word = rotated.littleEndian
        let words = SIMD16<UInt32>(repeating: word)
        let count = bytes.count
        var index = 0
        while count &- index >= 64 {
            let masked = base.loadUnaligned(fromByteOffset: index, as: SIMD16<UInt32>.self) ^ words
            base.storeBytes(of: masked, toByteOffset: index, as: SIMD16<UInt32>.self)
            index &+= 64
        }
        while count &- index >= 4 {
            let masked = base.loadUnaligned(fromByteOffset: index, as: UInt32.self) ^ word
            base.storeBytes(of: masked, toByteOffset: index, as: UInt32.self)
            index &+= 4
        }
        var rest = rotated
        while index < count {
            let byte = base.load(fromByteOffset: index, as: UInt8.self) ^ UInt8(truncatingIfNeeded: rest)
            base.storeBytes(of: byte, toByteOffset: index, as: UInt8.self)
            rest >>= 8
            index &+= 1
        }
    }
}
