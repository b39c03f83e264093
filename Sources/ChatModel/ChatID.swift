/// An identifier that a chat backend or one of its clients made: of a message, a person or a room.
///
/// The received spelling is preserved. UUID-shaped ids (8-4-4-4-12 hexadecimal digits) compare without regard to case,
/// all others byte by byte, because peers print the same UUID in either case.
///
/// A UUID is stored as its 128 bits, and a text of up to fifteen bytes inline: most ids are one or the other, and so
/// they cost no allocation and no reference counting, compare as two words and hash as two words.
public struct ChatID: Sendable {
    /// The meaning of the two words.
    @usableFromInline
    enum Form: Sendable {
        /// A UUID of digits and capital letters.
        case upper
        /// A UUID of digits and small letters, of which there is one at least.
        case lower
        /// The bytes of a text, its length in the last one.
        case short
        /// The beginning of a text, or the bits of a UUID with letters of both cases.
        case boxed(Spelling)
    }

    @usableFromInline let bits: UUIDBits
    @usableFromInline let form: Form

    /// Longest text that needs no allocation, in bytes: one less than two words.
    private static let maxShortBytes = 15

    /// Longer ids, which only attackers make, are stored as their beginning and a hash: each room remembers thousands
    /// of ids.
    public static let maxBytes = 512

    /// FNV-1a over both halves of the bits. A sender with two colliding ids loses one of its own messages.
    private static func shortened(_ text: String) -> String {
        var (a, b): (UInt64, UInt64) = (0xCBF2_9CE4_8422_2325, 0x9AE1_6A3B_2F90_404F)
        for byte in text.utf8 {
            a = (a ^ UInt64(byte)) &* 0x100_0000_01B3
            b = (b ^ UInt64(byte &+ 0x5B)) &* 0x100_0000_01B3
        }
        let front = String(String.UnicodeScalarView(text.unicodeScalars.prefix(maxBytes / 8)))
        return front + "#" + String(a, radix: 16) + String(b, radix: 16)
    }

    @inline(__always)
    private init(_ bits: UUIDBits, _ form: Form) {
        self.bits = bits
        self.form = form
    }

    @usableFromInline
    static var empty: ChatID { read(UnsafeRawBufferPointer(start: nil, count: 0), "") }

    public init(_ rawValue: String) {
        var text = rawValue
        self = text.withUTF8 { Self.read(UnsafeRawBufferPointer($0), rawValue) }
    }

    /// An id of 15 digits out of any bits: every peer reads it exactly, in JSON too (RFC 8259 §6), and it is stored inline.
    public init(number bits: UInt64) { self.init(String(bits % 900_000_000_000_000 + 100_000_000_000_000)) }

    /// A new UUID of 122 random bits, in upper case.
    ///
    /// Source: RFC 9562 §5.4.
    public static func random(using generator: inout some RandomNumberGenerator) -> ChatID {
        ChatID(UUIDBits(version4: generator.next(), generator.next()), .upper)
    }

    /// The id that `bytes` spell, which must be well-formed UTF-8.
    @inline(__always)
    public init(utf8 bytes: UnsafeRawBufferPointer) { self = Self.read(bytes, nil) }

    /// - Parameter text: the bytes as a string, where there is one already.
    private static func read(_ bytes: UnsafeRawBufferPointer, _ text: String?) -> ChatID {
        if bytes.count <= maxShortBytes { return ChatID(UUIDBits(beginningOf: bytes, length: bytes.count), .short) }
        if bytes.count == UUIDBits.byteCount, let (bits, letterCase) = UUIDBits.parse(bytes) {
            switch letterCase {
            case .upper: return ChatID(bits, .upper)
            case .lower: return ChatID(bits, .lower)
            case .mixed:
                let text = text ?? String(decoding: bytes, as: UTF8.self)
                return ChatID(bits, .boxed(Spelling(text, isUUID: true)))
            }
        }
        var text = text ?? String(decoding: bytes, as: UTF8.self)
        if bytes.count > maxBytes { text = shortened(text) }
        let beginning = UUIDBits(beginningOf: bytes, length: maxShortBytes)
        return ChatID(beginning, .boxed(Spelling(text, isUUID: false)))
    }

    /// The id as it was received.
    public var rawValue: String {
        switch form {
        case .upper: bits.text(isLower: false)
        case .lower: bits.text(isLower: true)
        case .short: bits.shortText
        case .boxed(let spelling): spelling.text
        }
    }

    /// Upper case where case is irrelevant; for keys in stores that compare bytes.
    public var canonical: String { isUUIDShaped ? bits.text(isLower: false) : rawValue }

    /// Appends ``canonical`` in UTF-8.
    public func appendCanonical(to bytes: inout [UInt8]) {
        guard isUUIDShaped else { return bytes.append(contentsOf: rawValue.utf8) }
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: UUIDBits.byteCount) { text in
            guard let start = text.baseAddress else { return }
            bits.write(to: start, letterOffset: 7)
            bytes.append(contentsOf: text)
        }
    }

    /// Bytes of ``rawValue`` in UTF-8.
    public var utf8Count: Int {
        switch form {
        case .upper, .lower: UUIDBits.byteCount
        case .short: bits.shortCount
        case .boxed(let spelling): spelling.text.utf8.count
        }
    }

    /// Writes ``rawValue`` without making a string, when it is one case of a UUID; false, and nothing is written, for other
    /// ids.
    ///
    /// - Parameter out: room for 36 bytes.
    public func writeUUID(to out: UnsafeMutablePointer<UInt8>) -> Bool {
        switch form {
        case .upper: bits.write(to: out, letterOffset: 7)
        case .lower: bits.write(to: out, letterOffset: 39)
        case .short, .boxed: return false
        }
        return true
    }

    /// One bit of 64, the same for equal ids: a Bloom filter that costs less than a hash.
    public var filterBit: UInt64 { bits.filterBit }

    /// Whether the id is UUID-shaped.
    public var isUUIDShaped: Bool {
        switch form {
        case .upper, .lower: true
        case .short: false
        case .boxed(let spelling): spelling.isUUID
        }
    }

    /// The spelling, where it is more than the two words say.
    var longText: String? {
        if case .boxed(let spelling) = form, !spelling.isUUID { spelling.text } else { nil }
    }
}

extension ChatID: Hashable {
    public static func == (a: ChatID, b: ChatID) -> Bool {
        guard a.bits == b.bits else { return false }
        switch (a.form, b.form) {
        case (.upper, .upper), (.upper, .lower), (.lower, .upper), (.lower, .lower), (.short, .short): return true
        case (.short, _), (_, .short): return false
        default: break
        }
        guard let x = a.longText, let y = b.longText else { return a.isUUIDShaped && b.isUUIDShaped }
        return TextBytes.areSame(x, y)
    }

    public func hash(into hasher: inout Hasher) {
        guard var text = longText else { return bits.hash(into: &hasher) }
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension ChatID: CustomStringConvertible {
    public var description: String { rawValue }
}

/// An id that two words do not spell; rare, so it may cost an allocation.
@usableFromInline
final class Spelling: Sendable {
    let text: String
    let isUUID: Bool

    init(_ text: String, isUUID: Bool) {
        self.text = text
        self.isUUID = isUUID
    }
}

/// The 128 bits of a UUID, in an internal order: the digits of each word are every other one of its nibbles. Or the
/// bytes of a short text.
@usableFromInline
struct UUIDBits: Hashable, Sendable {
    /// 32 digits and four dashes.
    static let byteCount = 36

    enum LetterCase {
        case upper, lower, mixed
    }

    /// Digits 0–15.
    var high: UInt64
    /// Digits 16–31.
    var low: UInt64

    @inline(__always)
    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Random bits but for the version, digit 12, and the variant, in digit 16.
    init(version4 high: UInt64, _ low: UInt64) {
        self.init(high: high & ~(0xF << 36) | 4 << 36, low: low & ~0xF | 8 | low & 3)
    }

    /// Some of the bits of all digits: ids may be alike but for a few.
    @inline(__always)
    var filterBit: UInt64 { 1 << (((high ^ low) &* 0x9E37_79B9_7F4A_7C15) >> 58) }

    // MARK: - Reading

    /// The UUID that 36 bytes spell; nil when they spell none. One without letters is upper case.
    @inline(__always)
    static func parse(_ bytes: UnsafeRawBufferPointer) -> (UUIDBits, LetterCase)? {
        guard bytes.count == byteCount, let base = bytes.baseAddress else { return nil }
        func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        let (a, b, c, d) = (
            word(0), half(base, 9) | half(base, 14) << 32, half(base, 19) | half(base, 24) << 32, word(28)
        )
        let dashes = UInt64(UInt8(ascii: "-"))
        let (first, second) = (word(8), word(16))
        guard
            (first ^ dashes) & 0xFF | (first >> 40 ^ dashes) & 0xFF | (second >> 16 ^ dashes) & 0xFF
                | (second >> 56 ^ dashes) == 0
        else { return nil }
        var check = Check()
        let bits = UUIDBits(
            high: check.nibbles(a) | check.nibbles(b) << 4, low: check.nibbles(c) | check.nibbles(d) << 4)
        guard check.flaws == 0 else { return nil }
        return (bits, check.small == 0 ? .upper : check.capital == 0 ? .lower : .mixed)
    }

    @inline(__always)
    private static func half(_ base: UnsafeRawPointer, _ offset: Int) -> UInt64 {
        UInt64(UInt32(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    }

    /// Properties of the digits so far: not zero where there is one of the kind.
    private struct Check {
        var flaws: UInt64 = 0
        var small: UInt64 = 0
        var capital: UInt64 = 0

        /// The values of eight digits, one to a byte.
        ///
        /// Each byte is taken for a digit, spelled again and compared, which is also the check that it was one.
        @inline(__always)
        mutating func nibbles(_ word: UInt64) -> UInt64 {
            let isLetter = (word >> 6) & UUIDBits.ones
            let nibbles = ((word & (UUIDBits.ones &* 0x0F)) &+ isLetter &* 9) & (UUIDBits.ones &* 0x0F)
            let differences = UUIDBits.spelled(nibbles, letterOffset: 7) ^ word
            let isSmall = isLetter << 5
            flaws |= differences & ~isSmall
            small |= differences
            capital |= isSmall & ~differences
            return nibbles
        }
    }

    @inline(__always)
    private static var ones: UInt64 { 0x0101_0101_0101_0101 }

    /// The digit of each of eight nibbles, one to a byte. `letterOffset` is the distance from `9` to the letter `A` or
    /// `a`.
    @inline(__always)
    private static func spelled(_ nibbles: UInt64, letterOffset: UInt64) -> UInt64 {
        let isLetter = ((nibbles &+ ones &* 6) >> 4) & ones
        return nibbles &+ ones &* 0x30 &+ isLetter &* letterOffset
    }

    // MARK: - Writing

    /// - Parameters:
    ///   - out: room for 36 bytes.
    ///   - letterOffset: the distance from `9` to the letter `A` or `a`: 7 or 39.
    @inline(__always)
    func write(to out: UnsafeMutablePointer<UInt8>, letterOffset: UInt64) {
        let raw = UnsafeMutableRawPointer(out)
        func put(_ word: UInt64, at position: Int) {
            raw.storeBytes(of: word.littleEndian, toByteOffset: position, as: UInt64.self)
        }
        let nibbles = Self.ones &* 0x0F
        let dash = UInt64(UInt8(ascii: "-"))
        let b = Self.spelled(high >> 4 & nibbles, letterOffset: letterOffset)
        let c = Self.spelled(low & nibbles, letterOffset: letterOffset)
        put(Self.spelled(high & nibbles, letterOffset: letterOffset), at: 0)
        // From the front to the back: each word's end is written again by the next one.
        put(dash | (b & 0xFFFF_FFFF) << 8 | dash << 40 | (b & 0xFFFF_0000_0000) << 16, at: 8)
        put(b >> 48 | dash << 16 | (c & 0xFFFF_FFFF) << 24 | dash << 56, at: 16)
        raw.storeBytes(of: UInt32(truncatingIfNeeded: c >> 32).littleEndian, toByteOffset: 24, as: UInt32.self)
        put(Self.spelled(low >> 4 & nibbles, letterOffset: letterOffset), at: 28)
    }

    func text(isLower: Bool) -> String {
        String(unsafeUninitializedCapacity: Self.byteCount) { out in
            guard let base = out.baseAddress, out.count >= Self.byteCount else { return 0 }
            write(to: base, letterOffset: isLower ? 39 : 7)
            return Self.byteCount
        }
    }

    // MARK: - Short texts

    /// The first fifteen bytes at most, and `length` in the last byte.
    @inline(__always)
    init(beginningOf bytes: UnsafeRawBufferPointer, length: Int) {
        let count = min(bytes.count, 15)
        (high, low) = (0, UInt64(truncatingIfNeeded: length) << 56)
        guard count > 0, let base = bytes.baseAddress else { return }
        func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        // The overlap of two loads is the same in both.
        switch count {
        case 8...:
            high = word(0)
            if count > 8 { low |= word(count &- 8) >> UInt64(truncatingIfNeeded: (16 &- count) &* 8) }
        case 4...:
            high = Self.half(base, 0) | Self.half(base, count &- 4) << UInt64(truncatingIfNeeded: (count &- 4) &* 8)
        default:
            for index in 0..<count {
                high |= UInt64(base.load(fromByteOffset: index, as: UInt8.self)) << UInt64(index &* 8)
            }
        }
    }

    var shortCount: Int { Int(low >> 56) }

    var shortText: String {
        let words = (high.littleEndian, low.littleEndian)
        return withUnsafeBytes(of: words) { bytes in
            String(decoding: bytes.prefix(shortCount), as: UTF8.self)
        }
    }
}

/// A wall-clock time as chat backends mean it: whole milliseconds since 1970-01-01T00:00:00Z.
public struct ChatTimestamp: Comparable, Hashable, Sendable {
    public var milliseconds: Int64

    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    public static func < (a: Self, b: Self) -> Bool { a.milliseconds < b.milliseconds }
}
