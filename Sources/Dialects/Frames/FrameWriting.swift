import ChatModel
import JSONText

extension JSONWriter {
    /// A member with a text.
    mutating func member(_ name: StaticString, _ text: String) {
        key(name)
        string(text)
    }

    mutating func member(_ name: StaticString, id: ChatID) {
        key(name)
        self.id(id)
    }

    mutating func member(_ name: StaticString, number: Int64) {
        key(name)
        integer(number)
    }

    mutating func member(_ name: StaticString, flag: Bool) {
        key(name)
        bool(flag)
    }

    /// A member with one of the wire's own words, which must need no escapes.
    mutating func member(_ name: StaticString, word: StaticString) {
        key(name)
        string(word)
    }
}

/// A frame of which nothing needs escaping, as nearly always: written piece by piece.
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
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: stackBytes) { room in
            let isLong = byteCount > stackBytes
            let out = isLong ? .allocate(capacity: byteCount) : room
            defer { if isLong { out.deallocate() } }
            guard let base = UnsafeMutableRawPointer(out.baseAddress) else { return nil }
            var frame = PlainFrame(at: base, end: base + byteCount)
            fill(&frame)
            return frame.isGood ? Array(UnsafeRawBufferPointer(start: base, count: frame.at - base)) : nil
        }
    }

    /// Room on the stack, as the compiler gives it unasked. An array that is written in place costs more than the copy: the
    /// runtime would look for its type each time.
    private static var stackBytes: Int { 1024 }

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

    @inline(__always)
    private mutating func copyPlain(_ bytes: UnsafeRawBufferPointer) {
        guard end - at >= bytes.count else { return isGood = false }
        if !JSONWriter.copyPlain(bytes, to: at.assumingMemoryBound(to: UInt8.self)) { isGood = false }
        at += bytes.count
    }
}
