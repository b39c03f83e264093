import ChatModel
import JSONText

// Members whose names are known when this is compiled. A literal given to `JSONWriter.key` itself counts as a `String`,
// which is escaped anew with every frame.

extension JSONWriter {
    /// A member with a text.
    mutating func member(_ name: StaticString, _ text: String) {
        key(name)
        string(text)
    }

    /// A member with one of the wire's own words, which must need no escapes.
    mutating func member(_ name: StaticString, word: StaticString) {
        key(name)
        string(word)
    }

    /// The name of the member that comes next.
    mutating func name(_ name: StaticString) { key(name) }
}

/// A frame of which nothing needs escaping, as nearly always: written piece by piece to where it stays.
///
/// A text that does need escaping makes all of it nil; ``JSONWriter`` then does the work.
struct PlainFrame {
    private var at: UnsafeMutableRawPointer
    private let end: UnsafeMutableRawPointer
    /// Whether all pieces so far were plain and had room.
    private var isGood = true

    /// - Parameters:
    ///   - byteCount: room for the frame.
    ///   - fill: puts the pieces, which together take no more than that.
    @inline(__always)
    static func make(byteCount: Int, _ fill: (inout PlainFrame) -> Void) -> [UInt8]? {
        var isGood = false
        let bytes = [UInt8](unsafeUninitializedCapacity: byteCount) { out, written in
            guard let base = UnsafeMutableRawPointer(out.baseAddress) else { return }
            var frame = PlainFrame(at: base, end: base + out.count)
            fill(&frame)
            isGood = frame.isGood
            written = isGood ? frame.at - base : 0
        }
        return isGood ? bytes : nil
    }

    private init(at: UnsafeMutableRawPointer, end: UnsafeMutableRawPointer) {
        self.at = at
        self.end = end
    }

    /// JSON as it is.
    @inline(__always)
    mutating func put(json: [UInt8]) { json.withUnsafeBytes { copy($0) } }

    /// The same.
    @inline(__always)
    mutating func put(json: StaticString) {
        copy(UnsafeRawBufferPointer(start: json.utf8Start, count: json.utf8CodeUnitCount))
    }

    /// Part of a string.
    @inline(__always)
    mutating func put(text: String) {
        let done: Void? = text.utf8.withContiguousStorageIfAvailable { copyPlain(UnsafeRawBufferPointer($0)) }
        if done == nil { isGood = false }
    }

    /// The same for an id.
    @inline(__always)
    mutating func put(_ id: ChatID) {
        if end - at >= 36, id.writeUUID(to: at.assumingMemoryBound(to: UInt8.self)) {
            at += 36
        } else {
            put(text: id.rawValue)
        }
    }

    @inline(__always)
    private mutating func copy(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        guard end - at >= bytes.count else { return isGood = false }
        at.copyMemory(from: source, byteCount: bytes.count)
        at += bytes.count
    }

    private mutating func copyPlain(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        let count = bytes.count
        guard end - at >= count else { return isGood = false }
        var marks: UInt64 = 0
        if count >= 8 {
            // Whole words, the last of which overlaps the one before.
            var offset = 0
            while offset < count &- 8 {
                marks |= word(source, offset)
                offset &+= 8
            }
            marks |= word(source, count &- 8)
        } else {
            for offset in 0..<count {
                let byte = source.load(fromByteOffset: offset, as: UInt8.self)
                at.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
                if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { marks = ~0 }
            }
        }
        at += count
        if marks & 0x8080_8080_8080_8080 != 0 { isGood = false }
    }

    /// Copies eight bytes, and sets the top bit of the lowest one that needs escaping: a quote, a backslash or a control.
    /// Top bits above it may be set, too; others mean nothing.
    @inline(__always)
    private func word(_ source: UnsafeRawPointer, _ offset: Int) -> UInt64 {
        let word = source.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        at.storeBytes(of: word, toByteOffset: offset, as: UInt64.self)
        let bytes = UInt64(littleEndian: word)
        let ones: UInt64 = 0x0101_0101_0101_0101
        let quotes = (bytes ^ (ones &* 0x22)) &- ones
        let backslashes = (bytes ^ (ones &* 0x5C)) &- ones
        let controls = bytes &- (ones &* 0x20)
        return (quotes | backslashes | controls) & ~bytes
    }
}
