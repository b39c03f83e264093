/// One value where it stands in a document: its kind and its bytes, checked but not converted.
///
/// Valid for as long as the bytes of the document are; make values of it before they go away.
public struct JSONField {
    public enum Kind: UInt8, Sendable {
        case string
        /// A number without fraction and exponent.
        case integer
        /// A number with a fraction, an exponent or both.
        case decimal
        case object, array, `true`, `false`, null
    }

    /// Longest number that is converted, in bytes. A double is determined by its first 768 significant digits; longer
    /// numbers come from attackers alone and stay text.
    public static let maxNumberBytes = 1024

    @usableFromInline let base: UnsafePointer<UInt8>
    /// Count of bytes, the scanner's marks about them, and the kind, from high bits to low. One word, so that a field
    /// travels in two registers and a key's length and kind are compared at once.
    @usableFromInline let shape: Int

    /// Marks in ``shape``: the kind's raw value, three bits; then whether a string has escapes, and whether it has
    /// anything beyond ASCII.
    @usableFromInline static var kindMask: Int { 7 }
    @usableFromInline static var escapes: Int { 8 }
    @usableFromInline static var beyondASCII: Int { 16 }
    @usableFromInline static var countShift: Int { 8 }

    @inlinable @inline(__always)
    init(base: UnsafePointer<UInt8>, count: Int, kind: Kind, marks: Int = 0) {
        self.base = base
        shape = count &<< Self.countShift | marks | Int(kind.rawValue)
    }

    @inlinable var count: Int { shape &>> Self.countShift }
    @inlinable var hasEscapes: Bool { shape & Self.escapes != 0 }

    @inlinable @inline(__always)
    public var kind: Kind {
        switch shape & Self.kindMask {
        case 0: .string
        case 1: .integer
        case 2: .decimal
        case 3: .object
        case 4: .array
        case 5: .true
        case 6: .false
        default: .null
        }
    }

    @inlinable @inline(__always)
    public var isNull: Bool { shape & Self.kindMask == Int(Kind.null.rawValue) }

    /// The value as it is written, a string without its quotes and with its escapes.
    public var rawText: String { String(decoding: UnsafeBufferPointer(start: base, count: count), as: UTF8.self) }

    /// Calls `body` with the bytes as written, a string's without its quotes and with its escapes.
    @inlinable @inline(__always)
    public func withRawBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
        body(UnsafeRawBufferPointer(start: base, count: count))
    }

    public var bool: Bool? {
        switch kind {
        case .true: true
        case .false: false
        default: nil
        }
    }

    /// The members of an object; none for other kinds. The bytes are walked once more.
    public var members: JSONMembers { JSONMembers(self) }

    /// The elements of an array; none for other kinds. The bytes are walked once more.
    public var elements: JSONElements { JSONElements(self) }

    // MARK: - Strings

    /// The text of a string; nil for other kinds.
    public var string: String? {
        if isPlainString { return plainText }
        return kind == .string ? unescaped() : nil
    }

    /// The bytes as a string. The scanner has checked that they are UTF-8, so this is not done again.
    private var plainText: String {
        let bytes = UnsafeBufferPointer(start: base, count: count)
        return String(
            copying: UTF8Span(
                unchecked: Span(_unsafeElements: bytes), isKnownASCII: shape & Self.beyondASCII == 0))
    }

    /// Whether this is a string whose bytes are its text: nothing in it is escaped.
    @inlinable @inline(__always)
    public var isPlainString: Bool { shape & (Self.kindMask | Self.escapes) == 0 }

    /// Bytes as written, a string's without its quotes and with its escapes.
    @inlinable public var byteCount: Int { count }

    /// The first byte as written, a string's after the quote; nil for a string without text.
    @inlinable @inline(__always)
    public var firstRawByte: UInt8? { count > 0 ? base.pointee : nil }

    /// Whether this is a string without text.
    @inlinable @inline(__always)
    public var isEmptyString: Bool { shape == 0 }

    /// Whether this is a string equal to `text`, however it is escaped.
    @inlinable @inline(__always)
    public func equals(_ text: StaticString) -> Bool {
        // Names mostly differ in length.
        if shape & ~Self.beyondASCII == text.utf8CodeUnitCount &<< Self.countShift {
            return Self.areSame(base, text.utf8Start, count: text.utf8CodeUnitCount)
        }
        return hasEscapes
            && unescapedEquals(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// The same for a text that is not known before the program runs.
    @inlinable
    public func equals(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        if hasEscapes { return unescapedEquals(text) }
        guard count == text.count, kind == .string, let others = text.baseAddress else {
            return isEmptyString && text.isEmpty
        }
        return Self.areSame(base, others, count: count)
    }

    /// Whether two runs of `count` bytes are the same. Words of one size cover a run when the last overlaps those before.
    @inlinable @inline(__always)
    static func areSame(_ a: UnsafePointer<UInt8>, _ b: UnsafePointer<UInt8>, count: Int) -> Bool {
        let (a, b) = (UnsafeRawPointer(a), UnsafeRawPointer(b))
        func differs<Word: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, _: Word.Type) -> Word {
            a.loadUnaligned(fromByteOffset: offset, as: Word.self)
                ^ b.loadUnaligned(fromByteOffset: offset, as: Word.self)
        }
        switch count {
        case 8...:
            var index = 0
            while index < count &- 8 {
                if differs(index, UInt64.self) != 0 { return false }
                index &+= 8
            }
            return differs(count &- 8, UInt64.self) == 0
        case 4...: return differs(0, UInt32.self) | differs(count &- 4, UInt32.self) == 0
        case 2...: return differs(0, UInt16.self) | differs(count &- 2, UInt16.self) == 0
        case 1: return differs(0, UInt8.self) == 0
        default: return true
        }
    }

    @usableFromInline
    func unescapedEquals(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        kind == .string && unescaped().utf8.elementsEqual(text)
    }

    @inlinable @inline(__always)
    public static func ~= (text: StaticString, field: JSONField) -> Bool { field.equals(text) }

    /// Calls `body` with the text of a string in UTF-8, without making a `String` of it; nil for other kinds. The bytes are
    /// valid only during the call.
    @inlinable
    public func withUTF8<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R? {
        guard kind == .string else { return nil }
        guard hasEscapes else { return body(UnsafeRawBufferPointer(start: base, count: count)) }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: count) { out in
            let written = unescape(into: out)
            return body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(out)[..<written]))
        }
    }

    private func unescaped() -> String {
        String(unsafeUninitializedCapacity: count) { unescape(into: $0) }
    }

    /// Writes the text of a string to the front of `out`, which has room for ``count`` bytes: no escape is longer written
    /// than spelled; six bytes make at most three, twelve make four.
    @usableFromInline
    func unescape(into out: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var read = 0
        var written = 0
        func put(_ byte: UInt8) {
            out[written] = byte
            written += 1
        }
        while read < count {
            let byte = base[read]
            guard byte == UInt8(ascii: "\\") else {
                put(byte)
                read += 1
                continue
            }
            let escape = base[read + 1]
            read += 2
            switch escape {
            case UInt8(ascii: "b"): put(0x08)
            case UInt8(ascii: "f"): put(0x0C)
            case UInt8(ascii: "n"): put(0x0A)
            case UInt8(ascii: "r"): put(0x0D)
            case UInt8(ascii: "t"): put(0x09)
            case UInt8(ascii: "u"):
                var scalar = JSONScanner.hexUnit(base + read) ?? 0xFFFD
                read += 4
                if 0xD800..<0xDC00 ~= scalar {
                    let low = JSONScanner.hexUnit(base + read + 2) ?? 0xDC00
                    read += 6
                    scalar = 0x10000 + (scalar - 0xD800) << 10 + (low - 0xDC00)
                }
                switch scalar {
                case 0..<0x80:
                    put(UInt8(truncatingIfNeeded: scalar))
                case 0x80..<0x800:
                    put(0xC0 | UInt8(truncatingIfNeeded: scalar >> 6))
                    put(0x80 | UInt8(truncatingIfNeeded: scalar & 0x3F))
                case 0x800..<0x10000:
                    put(0xE0 | UInt8(truncatingIfNeeded: scalar >> 12))
                    put(0x80 | UInt8(truncatingIfNeeded: (scalar >> 6) & 0x3F))
                    put(0x80 | UInt8(truncatingIfNeeded: scalar & 0x3F))
                default:
                    put(0xF0 | UInt8(truncatingIfNeeded: scalar >> 18))
                    put(0x80 | UInt8(truncatingIfNeeded: (scalar >> 12) & 0x3F))
                    put(0x80 | UInt8(truncatingIfNeeded: (scalar >> 6) & 0x3F))
                    put(0x80 | UInt8(truncatingIfNeeded: scalar & 0x3F))
                }
            default: put(escape)
            }
        }
        return written
    }

    // MARK: - Numbers

    /// Whether this is `-0`, the one whole number that may be written in two ways.
    public var isMinusZero: Bool {
        kind == .integer && count == 2 && base[0] == UInt8(ascii: "-") && base[1] == UInt8(ascii: "0")
    }

    /// The value of a number without fraction and exponent, exactly; nil when it does not fit and for other kinds.
    public var int64: Int64? {
        guard kind == .integer, count <= 20 else { return nil }
        let isNegative = base[0] == UInt8(ascii: "-")
        var value: Int64 = 0
        for index in (isNegative ? 1 : 0)..<count {
            let digit = Int64(base[index] &- UInt8(ascii: "0"))
            let (scaled, over) = value.multipliedReportingOverflow(by: 10)
            let (sum, past) =
                isNegative ? scaled.subtractingReportingOverflow(digit) : scaled.addingReportingOverflow(digit)
            if over || past { return nil }
            value = sum
        }
        return value
    }

    /// The nearest double of a number; nil when that is infinite, when its text is longer than ``maxNumberBytes`` and for
    /// other kinds.
    public var double: Double? {
        guard kind == .integer || kind == .decimal, count <= Self.maxNumberBytes else { return nil }
        if let quick = quickDouble() { return quick }
        guard let value = Double(rawText), value.isFinite else { return nil }
        return value
    }

    /// `value` as an integer when it has no fraction and fits. In place of `Int64(exactly:)`, which calls the C library's
    /// rounding functions and so would need a platform import.
    public static func wholeNumber(_ value: Double) -> Int64? {
        guard value.magnitude < 0x1p63 else { return nil }
        let whole = Int64(value)
        return Double(whole) == value ? whole : nil
    }

    /// Powers of ten that a double holds exactly.
    private static let tens: InlineArray<23, Double> = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22,
    ]

    /// One correctly rounded division, possible while digits and power of ten are both exact. Nil for an exponent, and
    /// for more digits than a double holds.
    private func quickDouble() -> Double? {
        guard count <= 19 else { return nil }  // nineteen digits fit into 64 bits, twenty do not
        var at = base
        let end = base + count
        let isNegative = at.pointee == UInt8(ascii: "-")
        if isNegative { at += 1 }
        var mantissa: UInt64 = 0
        Self.takeDigits(&at, end, into: &mantissa)
        var fraction = 0
        if at < end, at.pointee == UInt8(ascii: ".") {
            at += 1
            let first = at
            Self.takeDigits(&at, end, into: &mantissa)
            fraction = at - first
        }
        guard at == end, mantissa <= 1 << 53 else { return nil }
        let value = Double(mantissa) / Self.tens[fraction]
        return isNegative ? -value : value
    }

    @inline(__always)
    private static func takeDigits(
        _ at: inout UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>, into value: inout UInt64
    ) {
        if end - at >= 8, let eight = eightDigits(at) {
            value = value &* 100_000_000 &+ eight
            at += 8
        }
        while at < end {
            let digit = at.pointee &- UInt8(ascii: "0")
            guard digit < 10 else { break }
            value = value &* 10 &+ UInt64(digit)
            at += 1
        }
    }

    /// The number that eight digits are, which are added up in pairs, fours and eights; nil when one is none.
    @inline(__always)
    private static func eightDigits(_ at: UnsafePointer<UInt8>) -> UInt64? {
        let word = UInt64(littleEndian: UnsafeRawPointer(at).loadUnaligned(as: UInt64.self))
        // The high half of a digit is 3, and stays 3 when 6 is added.
        let highs: UInt64 = 0xF0F0_F0F0_F0F0_F0F0
        let threes: UInt64 = 0x3030_3030_3030_3030
        guard word & highs == threes, (word &+ 0x0606_0606_0606_0606) & highs == threes else { return nil }
        let digits = word & 0x0F0F_0F0F_0F0F_0F0F
        let pairs = (digits &* 10 &+ digits >> 8) & 0x00FF_00FF_00FF_00FF
        let fours = (pairs &* 100 &+ pairs >> 16) & 0x0000_FFFF_0000_FFFF
        return (fours &* 10_000 &+ fours >> 32) & 0xFFFF_FFFF
    }
}
