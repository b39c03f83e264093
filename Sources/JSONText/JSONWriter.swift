import CSystem

/// Builds one JSON document.
///
/// ```swift
/// var writer = JSONWriter()
/// writer.beginObject()
/// writer.key("event")
/// writer.string("message")
/// writer.endObject()
/// frame.bytes = writer.finish()
/// ```
///
/// Commas and colons are the writer's business, the pairing of begin and end the caller's. Written without white space;
/// escaped is only what must be: quote, backslash and the controls below U+0020.
///
/// Source: RFC 8259 §7.
public struct JSONWriter: ~Copyable {
    @usableFromInline var base: UnsafeMutablePointer<UInt8>
    @usableFromInline var capacity: Int
    @usableFromInline var written = 0
    @usableFromInline var needsComma = false
    /// Whether the room is the writer's own.
    @usableFromInline var isOwner = true

    /// Bytes written so far.
    public var count: Int { written }

    /// - Parameter capacity: bytes to make room for at first; a guess that saves growing.
    @inlinable
    public init(capacity: Int = 256) {
        self.capacity = max(capacity, 16)
        base = .allocate(capacity: self.capacity)
    }

    /// A writer into a caller's buffer, which it leaves when that is full.
    @inlinable @inline(__always)
    init(borrowing room: UnsafeMutableBufferPointer<UInt8>, at base: UnsafeMutablePointer<UInt8>) {
        capacity = room.count
        self.base = base
        isOwner = false
    }

    @inlinable
    deinit { if isOwner { base.deallocate() } }

    /// The document that `body` writes. As long as that takes no more than ``roomBytes``, there is no allocation but the
    /// result's.
    @inlinable @inline(__always)
    public static func document(_ body: (inout JSONWriter) -> Void) -> [UInt8] {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: roomBytes) { room in
            guard let base = room.baseAddress else { return [] }
            var writer = JSONWriter(borrowing: room, at: base)
            body(&writer)
            return writer.finish()
        }
    }

    /// Calls `body` with a writer whose first ``roomBytes`` are on the stack.
    @inlinable @inline(__always)
    public static func onStack<R>(_ body: (inout JSONWriter) -> R) -> R {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: roomBytes) { room in
            guard let base = room.baseAddress else {
                var writer = JSONWriter()
                return body(&writer)
            }
            var writer = JSONWriter(borrowing: room, at: base)
            return body(&writer)
        }
    }

    /// The bytes that fit ``onStack(_:)``'s buffer: a frame with a line of chat. The compiler puts no more than 1024 on
    /// the stack unasked.
    @inlinable static var roomBytes: Int { 1024 }

    /// The document.
    @inlinable
    public consuming func finish() -> [UInt8] { withBytes { Array($0) } }

    /// Calls `body` with the bytes written so far.
    @inlinable
    public borrowing func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
        body(UnsafeRawBufferPointer(start: base, count: written))
    }

    // MARK: - Structure

    @inlinable
    public mutating func beginObject() { open(UInt8(ascii: "{")) }
    @inlinable
    public mutating func endObject() { close(UInt8(ascii: "}")) }
    @inlinable
    public mutating func beginArray() { open(UInt8(ascii: "[")) }
    @inlinable
    public mutating func endArray() { close(UInt8(ascii: "]")) }

    /// The name of the member whose value comes next. `name` must need no escapes.
    @inlinable @inline(__always)
    public mutating func key(_ name: StaticString) {
        let length = name.utf8CodeUnitCount
        reserve(length + 4)
        separate()
        base[written] = UInt8(ascii: "\"")
        UnsafeMutableRawPointer(base + written + 1).copyMemory(from: name.utf8Start, byteCount: length)
        base[written + length + 1] = UInt8(ascii: "\"")
        base[written + length + 2] = UInt8(ascii: ":")
        written += length + 3
        needsComma = false
    }

    /// A part of the document as it stands, the same in every document of a kind: with the comma it may need in front
    /// of it. No comma is written after it.
    @inlinable @inline(__always)
    public mutating func verbatim(_ json: StaticString) {
        let length = json.utf8CodeUnitCount
        reserve(length)
        UnsafeMutableRawPointer(base + written).copyMemory(from: json.utf8Start, byteCount: length)
        written += length
        needsComma = false
    }

    /// The same for bytes that are not known before the program runs.
    public mutating func verbatim(_ json: [UInt8]) {
        reserve(json.count)
        json.withUnsafeBufferPointer { copy($0) }
        needsComma = false
    }

    /// The name of the member whose value comes next. Labelled, since a literal would rather be a `String` than the
    /// `StaticString` that costs a third.
    public mutating func key(text name: String) {
        string(name)
        put(UInt8(ascii: ":"))
        needsComma = false
    }

    @inlinable
    mutating func open(_ bracket: UInt8) {
        reserve(2)
        separate()
        base[written] = bracket
        written += 1
        needsComma = false
    }

    @inlinable
    mutating func close(_ bracket: UInt8) {
        put(bracket)
        needsComma = true
    }

    // MARK: - Values

    public mutating func null() { literal("null") }
    public mutating func bool(_ value: Bool) { literal(value ? "true" : "false") }

    public mutating func integer(_ value: Int64) {
        reserve(24)
        separate()
        if value < 0 {
            base[written] = UInt8(ascii: "-")
            written += 1
        }
        digits(value.magnitude)
        needsComma = true
    }

    /// Room for 20 bytes is reserved.
    @inline(__always)
    private mutating func digits(_ value: UInt64) {
        // 1233/4096 is nearly the decimal logarithm of two: never too long, and too short by one at most.
        var length = ((UInt64.bitWidth - (value | 1).leadingZeroBitCount) &* 1233) >> 12
        if length < Self.tens.count, value >= Self.tens[length] { length += 1 }
        length = max(length, 1)
        var rest = value
        var index = written + length
        written = index
        if length >= 8 {
            let quotient = rest / 100_000_000
            index -= 8
            UnsafeMutableRawPointer(base + index).storeBytes(
                of: Self.eightDigits(rest &- quotient &* 100_000_000).littleEndian, as: UInt64.self)
            rest = quotient
        }
        while rest >= 10 {
            // Two at a time: one division of the whole number for both.
            let quotient = rest / 100
            let pair = rest &- quotient &* 100
            let ten = pair / 10
            base[index - 1] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: pair &- ten &* 10)
            base[index - 2] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: ten)
            index -= 2
            rest = quotient
        }
        if index > written - length { base[index - 1] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest) }
    }

    /// The digits of a number below 100,000,000, the first in the lowest byte: halves, then pairs, then digits, each step
    /// at once for all. The factors are reciprocals, exact for numbers as small as these.
    @inline(__always)
    private static func eightDigits(_ value: UInt64) -> UInt64 {
        let high = value / 10_000
        let halves = high | (value &- high &* 10_000) << 32
        let hundreds = ((halves &* 10_486) >> 20) & 0x0000_007F_0000_007F
        let pairs = hundreds | (halves &- hundreds &* 100) << 16
        let tens = ((pairs &* 103) >> 10) & 0x000F_000F_000F_000F
        return (tens | (pairs &- tens &* 10) << 8) &+ 0x3030_3030_3030_3030
    }

    /// Powers of ten within 64 bits.
    private static let tens: InlineArray<20, UInt64> = [
        1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000,
        100_000_000_000, 1_000_000_000_000, 10_000_000_000_000, 100_000_000_000_000, 1_000_000_000_000_000,
        10_000_000_000_000_000, 100_000_000_000_000_000, 1_000_000_000_000_000_000, 10_000_000_000_000_000_000,
    ]

    /// The shortest digits that read back as `value`, integral values without a fraction; `null` for infinities and NaN,
    /// which JSON does not have.
    public mutating func double(_ value: Double) {
        guard value.isFinite else { return null() }
        var text = value.description
        if text.utf8.suffix(2).elementsEqual([UInt8(ascii: "."), UInt8(ascii: "0")]) { text.removeLast(2) }
        raw(text)
    }

    /// `milliseconds` as seconds with at most three decimals.
    public mutating func seconds(milliseconds: Int64) {
        reserve(28)
        separate()
        if milliseconds < 0 {
            base[written] = UInt8(ascii: "-")
            written += 1
        }
        let magnitude = milliseconds.magnitude
        let whole = magnitude / 1000
        digits(whole)
        needsComma = true
        let thousandths = magnitude &- whole &* 1000
        guard thousandths > 0 else { return }
        // The point and three digits, of which only zeros at the end do not count.
        let tens = thousandths / 10
        let hundreds = thousandths / 100
        let (second, third) = (tens &- hundreds &* 10, thousandths &- tens &* 10)
        let zero = UInt64(UInt8(ascii: "0"))
        let text = UInt64(UInt8(ascii: ".")) | (zero &+ hundreds) << 8 | (zero &+ second) << 16 | (zero &+ third) << 24
        UnsafeMutableRawPointer(base + written).storeBytes(
            of: UInt32(truncatingIfNeeded: text).littleEndian, as: UInt32.self)
        written += third > 0 ? 4 : second > 0 ? 3 : 2
    }

    /// A value that is JSON already.
    public mutating func raw(_ json: String) {
        var json = json
        json.withUTF8 { bytes in
            reserve(bytes.count + 1)
            separate()
            copy(bytes)
        }
        needsComma = true
    }

    @inlinable
    public mutating func string(_ text: String) {
        beginString()
        appendToString(text)
        endString()
    }

    /// A string that needs no escapes.
    @inlinable @inline(__always)
    public mutating func string(_ text: StaticString) {
        let length = text.utf8CodeUnitCount
        reserve(length + 3)
        separate()
        base[written] = UInt8(ascii: "\"")
        UnsafeMutableRawPointer(base + written + 1).copyMemory(from: text.utf8Start, byteCount: length)
        base[written + length + 1] = UInt8(ascii: "\"")
        written += length + 2
        needsComma = true
    }

    /// A string of exactly `byteCount` bytes that need no escapes, if `fill` writes it; when it returns false, nothing is
    /// written.
    @inlinable
    public mutating func string(byteCount: Int, _ fill: (UnsafeMutablePointer<UInt8>) -> Bool) -> Bool {
        reserve(byteCount + 3)
        let comma = needsComma ? 1 : 0
        guard fill(base + (written + comma + 1)) else { return false }
        separate()
        base[written] = UInt8(ascii: "\"")
        base[written + byteCount + 1] = UInt8(ascii: "\"")
        written += byteCount + 2
        needsComma = true
        return true
    }

    /// Appends exactly `byteCount` bytes that need no escapes to the string that is open, if `fill` writes them; when it
    /// returns false, nothing is appended.
    @inlinable @inline(__always)
    public mutating func appendToString(byteCount: Int, _ fill: (UnsafeMutablePointer<UInt8>) -> Bool) -> Bool {
        reserve(byteCount)
        guard fill(base + written) else { return false }
        written += byteCount
        return true
    }

    /// Opens a string that is written in pieces.
    @inlinable
    public mutating func beginString() {
        reserve(2)
        separate()
        base[written] = UInt8(ascii: "\"")
        written += 1
    }

    public mutating func appendToString(_ text: String) {
        let done: Void? = text.utf8.withContiguousStorageIfAvailable { escape($0) }
        if done == nil {
            var native = text
            native.withUTF8 { escape($0) }
        }
    }

    @inlinable
    public mutating func endString() {
        put(UInt8(ascii: "\""))
        needsComma = true
    }

    private mutating func literal(_ word: StaticString) {
        reserve(word.utf8CodeUnitCount + 1)
        separate()
        copy(UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
        needsComma = true
    }

    // MARK: - Bytes

    /// Room for `byteCount` more bytes.
    @inlinable @inline(__always)
    mutating func reserve(_ byteCount: Int) {
        if capacity &- written < byteCount { grow(byteCount) }
    }

    @usableFromInline @inline(never)
    mutating func grow(_ byteCount: Int) {
        capacity = max(capacity * 2, written + byteCount)
        let fresh = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        UnsafeMutableRawPointer(fresh).copyMemory(from: base, byteCount: written)
        if isOwner { base.deallocate() }
        isOwner = true
        base = fresh
    }

    /// The comma before a value or key; room for it is reserved.
    @inlinable @inline(__always)
    mutating func separate() {
        if needsComma {
            base[written] = UInt8(ascii: ",")
            written += 1
        }
    }

    @inlinable @inline(__always)
    mutating func put(_ byte: UInt8) {
        reserve(1)
        base[written] = byte
        written += 1
    }

    /// Copies bytes for which room is reserved.
    @inline(__always)
    private mutating func copy(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let source = bytes.baseAddress else { return }
        UnsafeMutableRawPointer(base + written).copyMemory(from: source, byteCount: bytes.count)
        written += bytes.count
    }

    private mutating func escape(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let source = bytes.baseAddress else { return }
        reserve(bytes.count)
        if Self.copyPlain(UnsafeRawBufferPointer(bytes), to: base + written) {
            written += bytes.count
        } else {
            escape(from: source, to: source + bytes.count)
        }
    }

    /// Copies bytes of text that may stand in a string as they are. False when one of them has to be escaped: the
    /// copied bytes are then invalid.
    ///
    /// - Parameter out: room for as many bytes.
    @inlinable @inline(__always)
    public static func copyPlain(_ bytes: UnsafeRawBufferPointer, to out: UnsafeMutablePointer<UInt8>) -> Bool {
        guard let source = bytes.baseAddress else { return true }
        return cb_json_copy_plain(out, source.assumingMemoryBound(to: UInt8.self), bytes.count)
    }

    /// Room for the bytes as they are is reserved.
    @inline(never)
    private mutating func escape(from first: UnsafePointer<UInt8>, to end: UnsafePointer<UInt8>) {
        var read = first
        var write = base + written
        while read < end {
            // There is always room for the rest, so words may be stored before they are checked.
            while end - read >= 16 {
                let plain = cb_json_plain16(read)
                UnsafeMutableRawPointer(write).copyMemory(from: read, byteCount: 16)
                read += plain
                write += plain
                if plain < 16 { break }
            }
            while end - read >= 8 {
                let word = UnsafeRawPointer(read).loadUnaligned(as: UInt64.self)
                UnsafeMutableRawPointer(write).storeBytes(of: word, as: UInt64.self)
                let marks = Self.specials(in: UInt64(littleEndian: word)) & ~UInt64(littleEndian: word)
                let first = (marks & 0x8080_8080_8080_8080).trailingZeroBitCount >> 3
                read += first
                write += first
                if first < 8 { break }
            }
            guard read < end else { break }
            let byte = read.pointee
            read += 1
            if Self.needsEscape(byte) {
                written = write - base
                reserve(end - read + 6)
                appendEscape(byte)
                write = base + written
            } else {
                write.pointee = byte
                write += 1
            }
        }
        written = write - base
    }

    /// Sets the top bit of the lowest byte that is a quote, a backslash or a control; bits above it may be set by
    /// borrow and are to be ignored, as are the top bits of bytes beyond ASCII.
    @inline(__always)
    private static func specials(in word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let quotes = (word ^ (ones &* 0x22)) &- ones
        let backslashes = (word ^ (ones &* 0x5C)) &- ones
        let controls = word &- (ones &* 0x20)
        return quotes | backslashes | controls
    }

    /// Room for six bytes is reserved.
    private mutating func appendEscape(_ byte: UInt8) {
        base[written] = UInt8(ascii: "\\")
        if let short = Self.shortEscape(byte) {
            base[written + 1] = short
            written += 2
            return
        }
        base[written + 1] = UInt8(ascii: "u")
        base[written + 2] = UInt8(ascii: "0")
        base[written + 3] = UInt8(ascii: "0")
        base[written + 4] = Self.hexDigit(byte >> 4)
        base[written + 5] = Self.hexDigit(byte & 15)
        written += 6
    }

    @inline(__always)
    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private static func shortEscape(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): byte
        case 0x08: UInt8(ascii: "b")
        case 0x09: UInt8(ascii: "t")
        case 0x0A: UInt8(ascii: "n")
        case 0x0C: UInt8(ascii: "f")
        case 0x0D: UInt8(ascii: "r")
        default: nil
        }
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") &+ value : UInt8(ascii: "a") &+ value &- 10
    }

    /// How many bytes ``string(_:)`` writes for one byte of text.
    static func encodedLength(of byte: UInt8) -> Int {
        if !needsEscape(byte) { return 1 }
        return shortEscape(byte) == nil ? 6 : 2
    }
}

// MARK: - Measuring

extension JSONWriter {
    /// Where to cut `text` so that the front takes at most `maxBytes` inside the quotes of a JSON string; never within a
    /// code point. The text's end when all of it fits.
    public static func end(of text: String, fitting maxBytes: Int) -> String.Index {
        var used = 0
        let bytes = text.utf8
        var cut = bytes.startIndex
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            if byte & 0xC0 != 0x80 { cut = index }
            used += encodedLength(of: byte)
            if used > maxBytes { return cut }
            index = bytes.index(after: index)
        }
        return bytes.endIndex
    }
}
