/// An incremental check that bytes are well-formed UTF-8.
///
/// It fails at the earliest byte that no well-formed text could have there: overlong forms, surrogates and values above
/// U+10FFFF are refused at their second byte, not at the end of the character. Where the bytes are cut makes no
/// difference. After a failure it stays failed.
///
/// Source: RFC 3629 §4; Unicode 15, table 3-7; RFC 6455 §8.1.
public struct UTF8Validator: Sendable {
    /// Continuation bytes that the character in progress still needs.
    private var needed: UInt8 = 0
    /// Inclusive bounds of the next continuation byte; narrower than 80...BF only after E0, ED, F0 and F4.
    private var lower: UInt8 = 0x80
    private var upper: UInt8 = 0xBF
    private var failed = false

    public init() {}

    /// Whether the bytes fed so far end with a whole character (or none was fed) and were well-formed.
    public var isComplete: Bool { needed == 0 && !failed }

    /// Feeds bytes; false as soon as everything fed so far cannot be the start of well-formed UTF-8.
    public mutating func feed(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !failed else { return false }
        guard let base = bytes.baseAddress else { return true }
        let count = bytes.count
        var index = 0
        while index < count {
            if needed == 0 {
                index = Self.endOfASCII(base, from: index, count: count)
                guard index < count else { return true }
                if let next = Self.endOfWholeCharacters(base, from: index, count: count) {
                    if next > index {
                        index = next
                        continue
                    }
                } else {
                    failed = true
                    return false
                }
                guard begin(base.load(fromByteOffset: index, as: UInt8.self)) else {
                    failed = true
                    return false
                }
            } else {
                let byte = base.load(fromByteOffset: index, as: UInt8.self)
                guard byte >= lower, byte <= upper else {
                    failed = true
                    return false
                }
                lower = 0x80
                upper = 0xBF
                needed &-= 1
            }
            index &+= 1
        }
        return true
    }

    /// Whether `bytes` are well-formed UTF-8 as a whole.
    public static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var validator = UTF8Validator()
        return validator.feed(bytes) && validator.isComplete
    }

    /// Takes the first byte of a character; false when none starts so.
    private mutating func begin(_ byte: UInt8) -> Bool {
        lower = 0x80
        upper = 0xBF
        switch byte {
        case 0x00...0x7F: needed = 0
        case 0xC2...0xDF: needed = 1
        case 0xE0: (needed, lower) = (2, 0xA0)
        case 0xED: (needed, upper) = (2, 0x9F)
        case 0xE1...0xEF: needed = 2
        case 0xF0: (needed, lower) = (3, 0x90)
        case 0xF4: (needed, upper) = (3, 0x8F)
        case 0xF1...0xF3: needed = 3
        default: return false
        }
        return true
    }

    /// Offset of the first byte at or after `from` that is not ASCII.
    @inline(__always)
    private static func endOfASCII(_ base: UnsafeRawPointer, from: Int, count: Int) -> Int {
        let high: UInt64 = 0x8080_8080_8080_8080
        var index = from
        while count &- index >= 32 {
            let a = base.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let b = base.loadUnaligned(fromByteOffset: index &+ 8, as: UInt64.self)
            let c = base.loadUnaligned(fromByteOffset: index &+ 16, as: UInt64.self)
            let d = base.loadUnaligned(fromByteOffset: index &+ 24, as: UInt64.self)
            if (a | b | c | d) & high != 0 { break }
            index &+= 32
        }
        while count &- index >= 8, base.loadUnaligned(fromByteOffset: index, as: UInt64.self) & high == 0 {
            index &+= 8
        }
        while index < count, base.load(fromByteOffset: index, as: UInt8.self) < 0x80 { index &+= 1 }
        return index
    }

    /// Skips characters of two to four bytes that lie whole within the bytes; stops at ASCII or less than four bytes
    /// before the end. Nil when one is ill-formed.
    @inline(__always)
    private static func endOfWholeCharacters(_ base: UnsafeRawPointer, from: Int, count: Int) -> Int? {
        var index = from
        while count &- index >= 4 {
            let lead = base.load(fromByteOffset: index, as: UInt8.self)
            if lead < 0x80 { return index }
            let second = base.load(fromByteOffset: index &+ 1, as: UInt8.self)
            guard second & 0xC0 == 0x80, lead >= 0xC2 else { return nil }
            if lead < 0xE0 {
                index &+= 2
                continue
            }
            guard base.load(fromByteOffset: index &+ 2, as: UInt8.self) & 0xC0 == 0x80 else { return nil }
            if lead < 0xF0 {
                if lead == 0xE0, second < 0xA0 { return nil }
                if lead == 0xED, second > 0x9F { return nil }
                index &+= 3
                continue
            }
            guard base.load(fromByteOffset: index &+ 3, as: UInt8.self) & 0xC0 == 0x80 else { return nil }
            if lead > 0xF4 || (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F) { return nil }
            index &+= 4
        }
        return index
    }
}
