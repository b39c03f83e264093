/// Looks at texts eight bytes at a time: most need no more than to be seen as ordinary.
public enum ByteScan {
    @usableFromInline
    typealias Word = UInt64

    /// Whether all bytes are printable ASCII, the blank included.
    @inlinable
    public static func isPrintableASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
        allSatisfy(bytes, words: { (below(0x20, $0) | (($0 &+ ones) | $0) & tops) == 0 }) { $0 &- 0x20 < 0x5F }
    }

    /// Whether no byte is less than `least`, which is at most 0x80.
    @inlinable
    public static func has(noByteBelow least: UInt8, _ bytes: UnsafeRawBufferPointer) -> Bool {
        allSatisfy(bytes, words: { below(least, $0) == 0 }) { $0 >= least }
    }

    /// The offset of the first of three bytes from `start` on; nil: there is none.
    @inlinable
    public static func firstOffset(
        of a: UInt8, _ b: UInt8, _ c: UInt8, in bytes: UnsafeRawBufferPointer, from start: Int = 0
    ) -> Int? {
        guard let base = bytes.baseAddress else { return nil }
        var offset = start
        while bytes.count &- offset >= 8 {
            let word = Word(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: Word.self))
            let found =
                zeros(word ^ (ones &* Word(a))) | zeros(word ^ (ones &* Word(b))) | zeros(word ^ (ones &* Word(c)))
            // The lowest mark is exact; those above it may be of a carry.
            if found != 0 { return offset &+ found.trailingZeroBitCount / 8 }
            offset &+= 8
        }
        while offset < bytes.count {
            let byte = bytes[offset]
            if byte == a || byte == b || byte == c { return offset }
            offset &+= 1
        }
        return nil
    }

    @inlinable @inline(__always)
    static func allSatisfy(
        _ bytes: UnsafeRawBufferPointer, words: (Word) -> Bool, _ isGood: (UInt8) -> Bool
    ) -> Bool {
        guard let base = bytes.baseAddress else { return true }
        var offset = 0
        while bytes.count &- offset >= 8 {
            if !words(base.loadUnaligned(fromByteOffset: offset, as: Word.self)) { return false }
            offset &+= 8
        }
        while offset < bytes.count {
            if !isGood(base.load(fromByteOffset: offset, as: UInt8.self)) { return false }
            offset &+= 1
        }
        return true
    }

    @inlinable @inline(__always)
    static var ones: Word { 0x0101_0101_0101_0101 }
    @inlinable @inline(__always)
    static var tops: Word { 0x8080_8080_8080_8080 }

    /// Not zero where a byte is less than `least`.
    @inlinable @inline(__always)
    static func below(_ least: UInt8, _ word: Word) -> Word { (word &- ones &* Word(least)) & ~word & tops }

    /// Marks the lowest byte that is zero.
    @inlinable @inline(__always)
    static func zeros(_ word: Word) -> Word { (word &- ones) & ~word & tops }
}
