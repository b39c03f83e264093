/// An identifier that a chat backend or one of its clients made: of a message, a person or a room.
///
/// The spelling received is kept. UUID-shaped ids (8-4-4-4-12 hexadecimal digits) compare without regard to case, all
/// others byte by byte, because peers print the same UUID in either case.
///
/// A UUID is kept as its 128 bits: most ids are UUIDs, and so they cost no allocation, compare as two words and hash as
/// two words. Kept beside a text instead of an enum of both, since every copy of that would ask which of them it is.
public struct ChatID: Sendable {
    @usableFromInline
    enum Form: UInt8, Sendable {
        /// A UUID; digits and letters in one case only. One without letters is upper case.
        case upper, lower
        /// A UUID whose letters are of both cases.
        case mixed
        case text
    }

    /// The spelling, unless the bits say all: empty for a UUID in one case.
    @usableFromInline let text: String
    /// Nothing but zeros for a text.
    @usableFromInline let bits: UUIDBits
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

    private init(_ text: String, _ bits: UUIDBits, _ form: Form) {
        self.text = text
        self.bits = bits
        self.form = form
    }

    public init(_ rawValue: String) {
        let parsed: (UUIDBits, Form)? =
            if rawValue.utf8.count == UUIDBits.byteCount {
                rawValue.utf8.withContiguousStorageIfAvailable { UUIDBits.parse(UnsafeRawBufferPointer($0)) }
                    ?? UUIDBits.parse(Array(rawValue.utf8))
            } else {
                nil
            }
        switch parsed {
        case (let bits, .mixed)?: self.init(rawValue, bits, .mixed)
        case (let bits, let form)?: self.init("", bits, form)
        case nil:
            self.init(
                rawValue.utf8.count > Self.maxBytes ? Self.shortened(rawValue) : rawValue, UUIDBits(high: 0, low: 0),
                .text)
        }
    }

    /// The id that `bytes` spell, which must be well-formed UTF-8.
    public init(utf8 bytes: UnsafeRawBufferPointer) {
        if bytes.count == UUIDBits.byteCount, let (bits, form) = UUIDBits.parse(bytes), form != .mixed {
            self.init("", bits, form)
        } else {
            self.init(String(decoding: bytes, as: UTF8.self))
        }
    }

    /// The id as it was received.
    public var rawValue: String {
        switch form {
        case .upper, .lower: bits.text(isLower: form == .lower)
        case .mixed, .text: text
        }
    }

    /// Upper case where case means nothing; for keys in stores that compare bytes.
    public var canonical: String { isUUIDShaped ? bits.text(isLower: false) : text }

    /// Bytes of ``rawValue`` in UTF-8.
    public var utf8Count: Int { isUUIDShaped ? UUIDBits.byteCount : text.utf8.count }

    /// Writes ``rawValue`` without making a string, when it is one case of a UUID; false, and nothing is written, for other
    /// ids.
    ///
    /// - Parameter out: room for 36 bytes.
    public func writeUUID(to out: UnsafeMutablePointer<UInt8>) -> Bool {
        guard form == .upper || form == .lower else { return false }
        bits.write(to: out, isLower: form == .lower)
        return true
    }

    /// One bit of 64, the same for equal ids. Ids whose bits are not among those of a set are not in the set, which is
    /// found out for less than a hash; the others may be.
    public var filterBit: UInt64 { isUUIDShaped ? bits.filterBit : 1 << UInt64(text.utf8.count & 63) }

    /// Whether the id is UUID-shaped.
    public var isUUIDShaped: Bool { form != .text }
}

extension ChatID: Hashable {
    public static func == (a: ChatID, b: ChatID) -> Bool {
        a.bits == b.bits && a.isUUIDShaped == b.isUUIDShaped && (a.isUUIDShaped || sameBytes(a.text, b.text))
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
        if isUUIDShaped { return bits.hash(into: &hasher) }
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension ChatID: CustomStringConvertible {
    public var description: String { rawValue }
}

/// The 128 bits of a UUID, in an order of our own that costs the least to read and write: the first eight digits are the
/// low halves of a word's bytes, the next eight the high halves.
@usableFromInline
struct UUIDBits: Hashable, Sendable {
    /// 32 digits and four dashes.
    static let byteCount = 36

    /// Digits 0–7 and 8–15.
    var high: UInt64
    /// Digits 16–23 and 24–31.
    var low: UInt64

    /// Some of the bits of all digits: ids may be alike but for a few.
    @inline(__always)
    var filterBit: UInt64 { 1 << ((high ^ low &* 0x9E37_79B9_7F4A_7C15) >> 58) }

    // MARK: - Reading

    /// The UUID that 36 bytes spell; nil when they spell none. One without letters is upper case.
    static func parse(_ bytes: UnsafeRawBufferPointer) -> (UUIDBits, ChatID.Form)? {
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
        var digits = Digits()
        let a = digits.read(word(0))
        let b = digits.read(half(9) | half(14) << 32)
        let c = digits.read(half(19) | half(24) << 32)
        let d = digits.read(word(28))
        guard digits.flaws == 0 else { return nil }
        let form: ChatID.Form = digits.lowerLetters == 0 ? .upper : digits.upperLetters == 0 ? .lower : .mixed
        return (UUIDBits(high: a | b << 4, low: c | d << 4), form)
    }

    static func parse(_ bytes: [UInt8]) -> (UUIDBits, ChatID.Form)? {
        bytes.withUnsafeBytes { parse($0) }
    }

    /// What is found out on the way over digits, for one look at the end: a bit for whatever is none, and for each letter
    /// of either case.
    private struct Digits {
        var flaws: UInt64 = 0
        var lowerLetters: UInt64 = 0
        var upperLetters: UInt64 = 0

        /// The nibbles that eight digits stand for, one to a byte.
        ///
        /// Each byte is taken for a digit, spelled again in upper case and compared: that is the check that it was one.
        @inline(__always)
        mutating func read(_ word: UInt64) -> UInt64 {
            let isLetter = (word >> 6) & UUIDBits.ones
            let nibbles = ((word & (UUIDBits.ones &* 0x0F)) &+ isLetter &* 9) & (UUIDBits.ones &* 0x0F)
            let caseBits = isLetter << 5
            flaws |= UUIDBits.spelled(nibbles, letterOffset: 7) ^ (word & ~caseBits)
            lowerLetters |= word & caseBits
            upperLetters |= ~word & caseBits
            return nibbles
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
        let nibbles = Self.ones &* 0x0F
        let b = Self.spelled(high >> 4 & nibbles, letterOffset: offset)
        let c = Self.spelled(low & nibbles, letterOffset: offset)
        put(Self.spelled(high & nibbles, letterOffset: offset), at: 0)
        putHalf(b, at: 9)
        putHalf(b >> 32, at: 14)
        putHalf(c, at: 19)
        putHalf(c >> 32, at: 24)
        put(Self.spelled(low >> 4 & nibbles, letterOffset: offset), at: 28)
        let dash = UInt8(ascii: "-")
        (out[8], out[13], out[18], out[23]) = (dash, dash, dash, dash)
    }

    func text(isLower: Bool) -> String {
        String(unsafeUninitializedCapacity: Self.byteCount) { out in
            guard let base = out.baseAddress, out.count >= Self.byteCount else { return 0 }
            write(to: base, isLower: isLower)
            return Self.byteCount
        }
    }
}
