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
    private var base: UnsafeMutablePointer<UInt8>
    private var capacity: Int
    /// Bytes written so far.
    public private(set) var count = 0
    private var needsComma = false

    /// - Parameter capacity: bytes to make room for at first; a guess that saves growing.
    public init(capacity: Int = 256) {
        self.capacity = max(capacity, 16)
        base = .allocate(capacity: self.capacity)
    }

    deinit { base.deallocate() }

    /// The document.
    public consuming func finish() -> [UInt8] { withBytes { Array($0) } }

    /// Calls `body` with what is written so far.
    public borrowing func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
        body(UnsafeRawBufferPointer(start: base, count: count))
    }

    // MARK: - Structure

    public mutating func beginObject() { open(UInt8(ascii: "{")) }
    public mutating func endObject() { close(UInt8(ascii: "}")) }
    public mutating func beginArray() { open(UInt8(ascii: "[")) }
    public mutating func endArray() { close(UInt8(ascii: "]")) }

    /// The name of the member whose value comes next. `name` must need no escapes.
    public mutating func key(_ name: StaticString) {
        let length = name.utf8CodeUnitCount
        reserve(length + 4)
        separate()
        base[count] = UInt8(ascii: "\"")
        UnsafeMutableRawPointer(base + count + 1).copyMemory(from: name.utf8Start, byteCount: length)
        base[count + length + 1] = UInt8(ascii: "\"")
        base[count + length + 2] = UInt8(ascii: ":")
        count += length + 3
        needsComma = false
    }

    /// The name of the member whose value comes next.
    public mutating func key(_ name: String) {
        string(name)
        put(UInt8(ascii: ":"))
        needsComma = false
    }

    private mutating func open(_ bracket: UInt8) {
        reserve(2)
        separate()
        base[count] = bracket
        count += 1
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        put(bracket)
        needsComma = true
    }

    // MARK: - Values

    public mutating func null() { literal("null") }
    public mutating func bool(_ value: Bool) { literal(value ? "true" : "false") }

    public mutating func integer(_ value: Int64) {
        var magnitude = value.magnitude
        reserve(24)
        separate()
        if value < 0 {
            base[count] = UInt8(ascii: "-")
            count += 1
        }
        var length = 1
        var rest = magnitude
        while rest >= 10 {
            rest /= 10
            length += 1
        }
        var index = count + length
        count = index
        repeat {
            index -= 1
            base[index] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: magnitude % 10)
            magnitude /= 10
        } while magnitude > 0
        needsComma = true
    }

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
        let magnitude = milliseconds.magnitude
        if milliseconds < 0 {
            reserve(2)
            separate()
            base[count] = UInt8(ascii: "-")
            count += 1
            needsComma = false
        }
        integer(Int64(magnitude / 1000))
        var rest = UInt8(0)
        var thousandths = magnitude % 1000
        guard thousandths > 0 else { return }
        reserve(4)
        base[count] = UInt8(ascii: ".")
        count += 1
        while thousandths > 0 {
            rest = UInt8(truncatingIfNeeded: thousandths / 100)
            base[count] = UInt8(ascii: "0") &+ rest
            count += 1
            thousandths = (thousandths % 100) * 10
        }
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

    public mutating func string(_ text: String) {
        beginString()
        appendToString(text)
        endString()
    }

    /// A string that needs no escapes.
    public mutating func string(_ text: StaticString) {
        let length = text.utf8CodeUnitCount
        reserve(length + 3)
        separate()
        base[count] = UInt8(ascii: "\"")
        UnsafeMutableRawPointer(base + count + 1).copyMemory(from: text.utf8Start, byteCount: length)
        base[count + length + 1] = UInt8(ascii: "\"")
        count += length + 2
        needsComma = true
    }

    /// Opens a string that is written in pieces.
    public mutating func beginString() {
        reserve(2)
        separate()
        base[count] = UInt8(ascii: "\"")
        count += 1
    }

    public mutating func appendToString(_ text: String) {
        let done: Void? = text.utf8.withContiguousStorageIfAvailable { escape($0) }
        if done == nil {
            var native = text
            native.withUTF8 { escape($0) }
        }
    }

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
    @inline(__always)
    private mutating func reserve(_ byteCount: Int) {
        if capacity &- count < byteCount { grow(byteCount) }
    }

    private mutating func grow(_ byteCount: Int) {
        capacity = max(capacity * 2, count + byteCount)
        let fresh = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        UnsafeMutableRawPointer(fresh).copyMemory(from: base, byteCount: count)
        base.deallocate()
        base = fresh
    }

    /// The comma before a value or key; room for it is reserved.
    @inline(__always)
    private mutating func separate() {
        if needsComma {
            base[count] = UInt8(ascii: ",")
            count += 1
        }
    }

    @inline(__always)
    private mutating func put(_ byte: UInt8) {
        reserve(1)
        base[count] = byte
        count += 1
    }

    /// Copies bytes for which room is reserved.
    @inline(__always)
    private mutating func copy(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let source = bytes.baseAddress else { return }
        UnsafeMutableRawPointer(base + count).copyMemory(from: source, byteCount: bytes.count)
        count += bytes.count
    }

    private mutating func escape(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard var read = bytes.baseAddress else { return }
        let end = read + bytes.count
        reserve(bytes.count)
        var write = base + count
        while read < end {
            // There is always room for what is left, so words may be stored before they are judged.
            while end - read >= 8 {
                let word = UnsafeRawPointer(read).loadUnaligned(as: UInt64.self)
                UnsafeMutableRawPointer(write).storeBytes(of: word, as: UInt64.self)
                let marks = JSONScanner.specials(in: UInt64(littleEndian: word)) & ~UInt64(littleEndian: word)
                let first = (marks & 0x8080_8080_8080_8080).trailingZeroBitCount >> 3
                read += first
                write += first
                if first < 8 { break }
            }
            guard read < end else { break }
            let left = end - read
            if left < 8, bytes.count >= 8 {
                // The last eight bytes at once, some of them again: without escapes among them they stand alike.
                let word = UnsafeRawPointer(end - 8).loadUnaligned(as: UInt64.self)
                if JSONScanner.specials(in: word) & ~word & 0x8080_8080_8080_8080 == 0 {
                    UnsafeMutableRawPointer(write - (8 - left)).storeBytes(of: word, as: UInt64.self)
                    write += left
                    break
                }
            }
            let byte = read.pointee
            read += 1
            if Self.needsEscape(byte) {
                count = write - base
                reserve(end - read + 6)
                appendEscape(byte)
                write = base + count
            } else {
                write.pointee = byte
                write += 1
            }
        }
        count = write - base
    }

    /// Room for six bytes is reserved.
    private mutating func appendEscape(_ byte: UInt8) {
        base[count] = UInt8(ascii: "\\")
        if let short = Self.shortEscape(byte) {
            base[count + 1] = short
            count += 2
            return
        }
        base[count + 1] = UInt8(ascii: "u")
        base[count + 2] = UInt8(ascii: "0")
        base[count + 3] = UInt8(ascii: "0")
        base[count + 4] = Self.hexDigit(byte >> 4)
        base[count + 5] = Self.hexDigit(byte & 15)
        count += 6
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
    /// Bytes that `text` takes inside the quotes of a JSON string.
    public static func encodedByteCount(_ text: String) -> Int {
        text.utf8.reduce(0) { $0 + encodedLength(of: $1) }
    }

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
