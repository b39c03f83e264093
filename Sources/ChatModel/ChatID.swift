/// An identifier that a chat backend or one of its clients made: of a message, a person or a room.
///
/// The spelling received is kept. UUID-shaped ids (8-4-4-4-12 hexadecimal digits) compare without regard to case, all
/// others byte by byte, because peers print the same UUID in either case.
///
/// A UUID is kept as its 128 bits: most ids are UUIDs, and so they cost no allocation, compare as two words and hash as
/// two words.
public struct ChatID: Sendable {
    @usableFromInline
    enum Form: Sendable {
        /// Digits and letters in one case only. `isLower`: its letters are `a` to `f`.
        case uuid(UUIDBits, isLower: Bool)
        /// A UUID whose letters are of both cases.
        case mixed(MixedUUID)
        case text(String)
    }

    @usableFromInline let form: Form

    /// Longer ids, which only attackers make, are kept as their beginning and a hash: thousands of ids are remembered for
    /// each room.
    public static let maxBytes = 512

    /// FNV-1a over both halves of the bits. Whoever makes two of their own ids collide loses one of their own messages.
    private static func shortened(_ text: String) -> String {
        var (a, b): (UInt64, UInt64) = (0xCBF2_9CE4_8422_2325, 0x9AE1_6A3B_2F90_404F)
        for byte in text.utf8 {
            a = (a ^ UInt64(byte)) &* 0x100_0000_01B3
            b = (b ^ UInt64(byte &+ 0x5B)) &* 0x100_0000_01B3
        }
        let front = String(String.UnicodeScalarView(text.unicodeScalars.prefix(maxBytes / 8)))
        return front + "#" + String(a, radix: 16) + String(b, radix: 16)
    }

    private init(_ form: Form) { self.form = form }

    public init(_ rawValue: String) {
        let bits: (UUIDBits, UUIDBits.LetterCase)? =
            if rawValue.utf8.count == UUIDBits.byteCount {
                rawValue.utf8.withContiguousStorageIfAvailable { UUIDBits.parse(UnsafeRawBufferPointer($0)) }
                    ?? UUIDBits.parse(Array(rawValue.utf8))
            } else {
                nil
            }
        switch bits {
        case (let bits, .upper)?: form = .uuid(bits, isLower: false)
        case (let bits, .lower)?: form = .uuid(bits, isLower: true)
        case (let bits, .mixed)?: form = .mixed(MixedUUID(bits, rawValue))
        case nil: form = .text(rawValue.utf8.count > Self.maxBytes ? Self.shortened(rawValue) : rawValue)
        }
    }

    /// The id that `bytes` spell, which must be well-formed UTF-8.
    public init(utf8 bytes: UnsafeRawBufferPointer) {
        if bytes.count == UUIDBits.byteCount, let (bits, letterCase) = UUIDBits.parse(bytes), letterCase != .mixed {
            self.init(.uuid(bits, isLower: letterCase == .lower))
        } else {
            self.init(String(decoding: bytes, as: UTF8.self))
        }
    }

    /// The id as it was received.
    public var rawValue: String {
        switch form {
        case .uuid(let bits, let isLower): bits.text(isLower: isLower)
        case .mixed(let mixed): mixed.text
        case .text(let text): text
        }
    }

    /// Upper case where case means nothing; for keys in stores that compare bytes.
    public var canonical: String {
        switch form {
        case .uuid(let bits, _): bits.text(isLower: false)
        case .mixed(let mixed): mixed.bits.text(isLower: false)
        case .text(let text): text
        }
    }

    /// Bytes of ``rawValue`` in UTF-8.
    public var utf8Count: Int {
        if case .text(let text) = form { text.utf8.count } else { UUIDBits.byteCount }
    }

    /// Writes ``rawValue`` without making a string, when it is one case of a UUID; false, and nothing is written, for other
    /// ids.
    ///
    /// - Parameter out: room for 36 bytes.
    public func writeUUID(to out: UnsafeMutablePointer<UInt8>) -> Bool {
        guard case .uuid(let bits, let isLower) = form else { return false }
        bits.write(to: out, isLower: isLower)
        return true
    }

    /// One bit of 64, the same for equal ids. Ids whose bits are not among those of a set are not in the set, which is
    /// found out for less than a hash; the others may be.
    public var filterBit: UInt64 {
        switch form {
        case .uuid(let bits, _): bits.filterBit
        case .mixed(let mixed): mixed.bits.filterBit
        case .text(let text): 1 << UInt64(text.utf8.count & 63)
        }
    }

    /// Whether the id is UUID-shaped.
    public var isUUIDShaped: Bool { uuidBits != nil }

    @usableFromInline var uuidBits: UUIDBits? {
        switch form {
        case .uuid(let bits, _): bits
        case .mixed(let mixed): mixed.bits
        case .text: nil
        }
    }
}

extension ChatID: Hashable {
    public static func == (a: ChatID, b: ChatID) -> Bool {
        switch (a.form, b.form) {
        case (.text(let x), .text(let y)): sameBytes(x, y)
        case (.uuid(let x, _), .uuid(let y, _)): x == y
        default: a.uuidBits != nil && a.uuidBits == b.uuidBits
        }
    }

    /// Swift compares strings by canonical equivalence; ids are bytes.
    private static func sameBytes(_ a: String, _ b: String) -> Bool {
        var a = a
        var b = b
        guard a.utf8.count == b.utf8.count else { return false }
        return a.withUTF8 { x in
            b.withUTF8 { y in
                var differs: UInt8 = 0
                for index in 0..<x.count { differs |= x[index] ^ y[index] }
                return differs == 0
            }
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch form {
        case .uuid(let bits, _): bits.hash(into: &hasher)
        case .mixed(let mixed): mixed.bits.hash(into: &hasher)
        case .text(let text):
            var text = text
            text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        }
    }
}

extension ChatID: CustomStringConvertible {
    public var description: String { rawValue }
}

/// A UUID whose spelling is in both cases; rare, so it may cost an allocation.
@usableFromInline
final class MixedUUID: Sendable {
    let bits: UUIDBits
    let text: String

    init(_ bits: UUIDBits, _ text: String) {
        self.bits = bits
        self.text = text
    }
}

/// The 128 bits of a UUID, in an order of our own.
@usableFromInline
struct UUIDBits: Hashable, Sendable {
    /// 32 digits and four dashes.
    static let byteCount = 36

    enum LetterCase {
        case upper, lower, mixed
    }

    /// Digits 0–7 and 8–15.
    var high: UInt64
    /// Digits 16–23 and 24–31.
    var low: UInt64

    /// Some of the bits of all digits: ids may be alike but for a few.
    @inline(__always)
    var filterBit: UInt64 { 1 << ((high ^ low &* 0x9E37_79B9_7F4A_7C15) >> 58) }

    // MARK: - Reading

    /// The UUID that 36 bytes spell; nil when they spell none. One without letters is upper case.
    static func parse(_ bytes: UnsafeRawBufferPointer) -> (UUIDBits, LetterCase)? {
        guard bytes.count == byteCount, let base = bytes.baseAddress else { return nil }
        func byte(_ offset: Int) -> UInt8 { base.load(fromByteOffset: offset, as: UInt8.self) }
        func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        func half(_ offset: Int) -> UInt64 {
            UInt64(UInt32(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
        }
        let dash = UInt8(ascii: "-")
        guard byte(8) == dash, byte(13) == dash, byte(18) == dash, byte(23) == dash else { return nil }
        var cases = Cases()
        guard let a = cases.digits(word(0)), let b = cases.digits(half(9) | half(14) << 32),
            let c = cases.digits(half(19) | half(24) << 32), let d = cases.digits(word(28))
        else { return nil }
        return (UUIDBits(high: a << 32 | b, low: c << 32 | d), cases.verdict)
    }

    static func parse(_ bytes: [UInt8]) -> (UUIDBits, LetterCase)? {
        bytes.withUnsafeBytes { parse($0) }
    }

    /// Which spellings are still possible.
    private struct Cases {
        var isUpper = true
        var isLower = true

        var verdict: LetterCase { isUpper ? .upper : isLower ? .lower : .mixed }

        /// The 32 bits that eight digits stand for; nil when one of them is none.
        ///
        /// Each byte is taken for a digit, spelled again and compared, which is also the check that it was one.
        @inline(__always)
        mutating func digits(_ word: UInt64) -> UInt64? {
            let isLetter = (word >> 6) & UUIDBits.ones
            let nibbles = ((word & (UUIDBits.ones &* 0x0F)) &+ isLetter &* 9) & (UUIDBits.ones &* 0x0F)
            let upper = UUIDBits.spelled(nibbles, letterOffset: 7)
            if upper == word {
                isLower = isLower && isLetter == 0
            } else if UUIDBits.spelled(nibbles, letterOffset: 39) == word {
                isUpper = false
            } else {
                // Of both cases, or no digits at all.
                guard upper == word & ~(isLetter << 5) else { return nil }
                isUpper = false
                isLower = false
            }
            return UUIDBits.packed(nibbles)
        }
    }

    @inline(__always)
    private static var ones: UInt64 { 0x0101_0101_0101_0101 }

    /// The digit of each of eight nibbles, one to a byte. `letterOffset` is what lies between `9` and the letter `A` or `a`.
    @inline(__always)
    private static func spelled(_ nibbles: UInt64, letterOffset: UInt64) -> UInt64 {
        let isLetter = ((nibbles &+ ones &* 6) >> 4) & ones
        return nibbles &+ ones &* 0x30 &+ isLetter &* letterOffset
    }

    /// Eight nibbles, the first in the lowest byte, as 32 bits.
    @inline(__always)
    private static func packed(_ nibbles: UInt64) -> UInt64 {
        var bits = (nibbles | nibbles >> 4) & 0x00FF_00FF_00FF_00FF
        bits = (bits | bits >> 8) & 0x0000_FFFF_0000_FFFF
        return (bits | bits >> 16) & 0x0000_0000_FFFF_FFFF
    }

    @inline(__always)
    private static func unpacked(_ value: UInt64) -> UInt64 {
        var bits = value & 0xFFFF_FFFF
        bits = (bits | bits << 16) & 0x0000_FFFF_0000_FFFF
        bits = (bits | bits << 8) & 0x00FF_00FF_00FF_00FF
        return (bits | bits << 4) & (ones &* 0x0F)
    }

    // MARK: - Writing

    /// - Parameter out: room for 36 bytes.
    func write(to out: UnsafeMutablePointer<UInt8>, isLower: Bool) {
        let offset: UInt64 = isLower ? 39 : 7
        let raw = UnsafeMutableRawPointer(out)
        func put(_ word: UInt64, at position: Int) {
            raw.storeBytes(of: word.littleEndian, toByteOffset: position, as: UInt64.self)
        }
        func putHalf(_ word: UInt64, at position: Int) {
            raw.storeBytes(
                of: UInt32(truncatingIfNeeded: word).littleEndian, toByteOffset: position, as: UInt32.self)
        }
        let b = Self.spelled(Self.unpacked(high), letterOffset: offset)
        let c = Self.spelled(Self.unpacked(low >> 32), letterOffset: offset)
        put(Self.spelled(Self.unpacked(high >> 32), letterOffset: offset), at: 0)
        putHalf(b, at: 9)
        putHalf(b >> 32, at: 14)
        putHalf(c, at: 19)
        putHalf(c >> 32, at: 24)
        put(Self.spelled(Self.unpacked(low), letterOffset: offset), at: 28)
        for dash in [8, 13, 18, 23] { out[dash] = UInt8(ascii: "-") }
    }

    func text(isLower: Bool) -> String {
        String(unsafeUninitializedCapacity: Self.byteCount) { out in
            guard let base = out.baseAddress, out.count >= Self.byteCount else { return 0 }
            write(to: base, isLower: isLower)
            return Self.byteCount
        }
    }
}
