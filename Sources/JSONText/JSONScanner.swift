import CSystem

// The grammar of RFC 8259, and the only place that knows it.
//
// A scanner walks bytes once, from left to right, and checks everything it passes: the structure, numbers, escapes,
// surrogate pairs and UTF-8, in read and in skipped parts alike. It allocates nothing and does not recurse; nesting is
// a stack of bits. Readers sit on top of it: ``JSONReader`` picks members out of one object, ``JSONValue`` builds the
// whole document.

/// Receives the events of a walk over a value, in document order.
protocol JSONVisitor {
    mutating func scalar(_ field: JSONField)
    mutating func key(_ field: JSONField)
    mutating func beginContainer()
    mutating func endObject()
    mutating func endArray()
}

/// Passes over a value without storing it.
struct JSONSkipper: JSONVisitor {
    @inline(__always) mutating func scalar(_ field: JSONField) {}
    @inline(__always) mutating func key(_ field: JSONField) {}
    @inline(__always) mutating func beginContainer() {}
    @inline(__always) mutating func endObject() {}
    @inline(__always) mutating func endArray() {}
}

/// Which containers are open: one bit each, set for an object.
private struct ContainerStack {
    private var words = InlineArray<16, UInt64>(repeating: 0)  // 16 * 64 = JSONLimits.deepestNesting
    private(set) var count = 0

    /// The caller has checked `count` against the limit; beyond the room the push is refused as well.
    mutating func push(isObject: Bool) -> Bool {
        guard count < JSONLimits.deepestNesting else { return false }
        let bit: UInt64 = 1 << UInt64(count & 63)
        if isObject { words[count >> 6] |= bit } else { words[count >> 6] &= ~bit }
        count += 1
        return true
    }

    mutating func pop() { count -= 1 }

    var topIsObject: Bool {
        let index = count - 1
        return words[index >> 6] & (1 << UInt64(index & 63)) != 0
    }
}

@usableFromInline
struct JSONScanner {
    @usableFromInline let start: UnsafePointer<UInt8>
    @usableFromInline let end: UnsafePointer<UInt8>
    @usableFromInline var at: UnsafePointer<UInt8>
    /// Bits of the bytes in front of ``windowEnd``, the lowest that of the first: set where a string may end or needs a look.
    @usableFromInline var marks: UInt64
    /// The end of the bytes that ``marks`` covers.
    @usableFromInline var windowEnd: UnsafePointer<UInt8>

    /// Goes behind the token that was looked at.
    @inline(__always)
    mutating func passToken() { at += 1 }

    @inlinable @inline(__always)
    init(start: UnsafePointer<UInt8>, end: UnsafePointer<UInt8>, at: UnsafePointer<UInt8>) {
        self.start = start
        self.end = end
        self.at = at
        marks = 0
        windowEnd = start
    }

    @inline(never)
    func error(_ reason: JSONError.Reason) -> JSONError { JSONError(reason, at: at - start) }

    // MARK: - Bytes

    /// Skips white space and returns the byte after it without taking it; nil at the end.
    @inline(__always)
    mutating func peekToken() -> UInt8? {
        while at < end {
            switch at.pointee {
            case 0x20, 0x0A, 0x0D, 0x09: at += 1
            case let byte: return byte
            }
        }
        return nil
    }

    /// Skips white space and takes the byte after it.
    @inline(__always)
    mutating func takeToken() throws(JSONError) -> UInt8 {
        guard let byte = peekToken() else { throw error(.unexpectedEnd) }
        at += 1
        return byte
    }

    @inline(__always)
    mutating func expectToken(_ wanted: UInt8) throws(JSONError) {
        guard let byte = peekToken() else { throw error(.unexpectedEnd) }
        guard byte == wanted else { throw error(.unexpectedByte) }
        at += 1
    }

    // MARK: - Values

    /// Reads one whole value, containers with all their contents.
    ///
    /// - Parameter outerDepth: how many containers are open around it.
    mutating func walk(
        into visitor: inout some JSONVisitor, outerDepth: Int, maxDepth: Int
    ) throws(JSONError) {
        var open = ContainerStack()
        values: while true {
            guard let byte = peekToken() else { throw error(.unexpectedEnd) }
            switch byte {
            case UInt8(ascii: "{"):
                guard outerDepth + open.count < maxDepth, open.push(isObject: true) else { throw error(.tooDeep) }
                at += 1
                visitor.beginContainer()
                if peekToken() != UInt8(ascii: "}") {
                    visitor.key(try scanKey())
                    continue values
                }
            case UInt8(ascii: "["):
                guard outerDepth + open.count < maxDepth, open.push(isObject: false) else { throw error(.tooDeep) }
                at += 1
                visitor.beginContainer()
                if peekToken() != UInt8(ascii: "]") { continue values }
            default:
                visitor.scalar(try scanScalar(byte))
            }
            while open.count > 0 {
                guard let next = peekToken() else { throw error(.unexpectedEnd) }
                switch (next, open.topIsObject) {
                case (UInt8(ascii: ","), true):
                    at += 1
                    visitor.key(try scanKey())
                    continue values
                case (UInt8(ascii: ","), false):
                    at += 1
                    continue values
                case (UInt8(ascii: "}"), true):
                    at += 1
                    open.pop()
                    visitor.endObject()
                case (UInt8(ascii: "]"), false):
                    at += 1
                    open.pop()
                    visitor.endArray()
                default:
                    throw error(.unexpectedByte)
                }
            }
            return
        }
    }

    /// A member's name and the colon after it.
    @inline(__always)
    mutating func scanKey() throws(JSONError) -> JSONField {
        try expectToken(UInt8(ascii: "\""))
        let key = try scanString()
        try expectToken(UInt8(ascii: ":"))
        return key
    }

    /// A value that is no container; `byte` is its first byte, not yet taken.
    @inline(__always)
    mutating func scanScalar(_ byte: UInt8) throws(JSONError) -> JSONField {
        switch byte {
        case UInt8(ascii: "\""):
            at += 1
            return try scanString()
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
            return try scanNumber()
        case UInt8(ascii: "t"): return try scanLiteral("true", .true)
        case UInt8(ascii: "f"): return try scanLiteral("false", .false)
        case UInt8(ascii: "n"): return try scanLiteral("null", .null)
        default: throw error(.unexpectedByte)
        }
    }

    @inline(__always)
    mutating func scanLiteral(_ word: StaticString, _ kind: JSONField.Kind) throws(JSONError) -> JSONField {
        let (first, count) = (at, word.utf8CodeUnitCount)
        guard end - first >= count, JSONField.areSame(first, word.utf8Start, count: count) else {
            throw literalError(word)
        }
        at = first + count
        return JSONField(base: first, count: count, kind: kind)
    }

    /// The error at the place where `word` was expected.
    @inline(never)
    mutating func literalError(_ word: StaticString) -> JSONError {
        for offset in 0..<word.utf8CodeUnitCount {
            guard at < end else { break }
            guard at.pointee == word.utf8Start[offset] else { return error(.badLiteral) }
            at += 1
        }
        return error(.unexpectedEnd)
    }

    // MARK: - Numbers

    /// Source: RFC 8259 §6.
    mutating func scanNumber() throws(JSONError) -> JSONField {
        let first = at
        var kind = JSONField.Kind.integer
        // A copy, as in a string.
        var next = at
        if next.pointee == UInt8(ascii: "-") { next += 1 }
        if next < end, next.pointee == UInt8(ascii: "0") {
            next += 1
        } else {
            try scanDigits(&next)
        }
        if next < end, next.pointee == UInt8(ascii: ".") {
            kind = .decimal
            next += 1
            try scanDigits(&next)
        }
        if next < end, next.pointee | 0x20 == UInt8(ascii: "e") {
            kind = .decimal
            next += 1
            if next < end, next.pointee == UInt8(ascii: "+") || next.pointee == UInt8(ascii: "-") { next += 1 }
            try scanDigits(&next)
        }
        at = next
        // `012` and `1x` would otherwise be reported at the byte after, as if a comma were missing.
        if next < end, next.pointee &- UInt8(ascii: "0") < 10 { throw error(.badNumber) }
        return JSONField(base: first, count: next - first, kind: kind)
    }

    @inline(__always)
    private mutating func scanDigits(_ next: inout UnsafePointer<UInt8>) throws(JSONError) {
        let first = next
        words: do {
            while end - next >= 8 {
                let word = UInt64(littleEndian: UnsafeRawPointer(next).loadUnaligned(as: UInt64.self))
                let count = Self.digitCount(inEight: word)
                next += count
                if count < 8 { break words }
            }
            let left = end - next
            if left > 0, end - start >= 8 {
                // The last eight bytes; those already taken are shifted out, and zeros, which are no digits, come after.
                let word = UInt64(littleEndian: UnsafeRawPointer(end - 8).loadUnaligned(as: UInt64.self))
                next += Self.digitCount(inEight: word >> UInt64(truncatingIfNeeded: (8 &- left) &* 8))
                break words
            }
            while next < end, next.pointee &- UInt8(ascii: "0") < 10 { next += 1 }
        }
        guard next > first else {
            at = next
            throw error(next < end ? .badNumber : .unexpectedEnd)
        }
    }

    /// How many of eight bytes, the first in the lowest byte, come before the first that is no digit.
    @inline(__always)
    static func digitCount(inEight word: UInt64) -> Int {
        // Digits become 0 to 9; other bytes get or have their top bit set.
        let values = word ^ 0x3030_3030_3030_3030
        let others = (values & 0x7F7F_7F7F_7F7F_7F7F &+ 0x7676_7676_7676_7676) | values
        return (others & 0x8080_8080_8080_8080).trailingZeroBitCount >> 3
    }

    // MARK: - Strings

    /// The end of the bytes from `first` on that a string may hold as they are: the first quote, backslash, control or
    /// byte beyond ASCII, or the end of the document.
    ///
    /// Found for 64 bytes at once, ahead of need: the end of one string decides the start of the next, so checking byte
    /// by byte would make each check wait for the one before.
    @inline(__always)
    private mutating func plainEnd(from first: UnsafePointer<UInt8>) -> UnsafePointer<UInt8> {
        let passed = Self.windowBytes &- (windowEnd - first)
        if 0..<Self.windowBytes ~= passed {
            let rest = marks &>> UInt64(truncatingIfNeeded: passed)
            if rest != 0 { return first + rest.trailingZeroBitCount }
        }
        return plainEndBeyondWindow(from: first)
    }

    /// The same, when there is nothing from `first` to the end of the window.
    @inline(never)
    private mutating func plainEndBeyondWindow(from first: UnsafePointer<UInt8>) -> UnsafePointer<UInt8> {
        guard first < end else { return end }
        // Mostly the next window, which need not wait for `first`. The bytes before a window are scanned again when a
        // name turned out to have escapes.
        var base = -Self.windowBytes..<Self.windowBytes ~= first - windowEnd ? windowEnd : first
        while base < end {
            if end - base >= Self.windowBytes {
                marks = cb_json_marks64(base)
                windowEnd = base + Self.windowBytes
            } else {
                base = takeLastWindow()
            }
            let passed = max(first - base, 0)
            let rest = marks &>> UInt64(truncatingIfNeeded: passed)
            if rest != 0 { return base + (passed &+ rest.trailingZeroBitCount) }
            base = windowEnd
        }
        return end
    }

    /// Scans the end of the document, or all of one that is shorter than a window. Returns the window's beginning.
    @inline(never)
    private mutating func takeLastWindow() -> UnsafePointer<UInt8> {
        let isWhole = end - start >= Self.windowBytes
        let base = isWhole ? end - Self.windowBytes : start
        marks = isWhole ? cb_json_marks64(base) : cb_json_marks(base, end - base)
        windowEnd = base + Self.windowBytes
        return base
    }

    /// As many as a word has bits.
    @inline(__always)
    private static var windowBytes: Int { 64 }

    /// Takes a member's name and the colon after it, all without white space, if the name is plain. Nothing is taken else.
    @inline(__always)
    mutating func takePlainKey(afterComma: Bool) -> JSONField? {
        var next = at
        // A comma and a quote.
        guard end - next >= 2 else { return nil }
        if afterComma {
            guard next.pointee == UInt8(ascii: ",") else { return nil }
            next += 1
        }
        guard next.pointee == UInt8(ascii: "\"") else { return nil }
        let first = next + 1
        let close = plainEnd(from: first)
        guard end - close >= 2, close[0] == UInt8(ascii: "\""), close[1] == UInt8(ascii: ":") else { return nil }
        at = close + 2
        return JSONField(base: first, count: close - first, kind: .string)
    }

    /// Takes a quote if it comes next, without white space.
    @inline(__always)
    mutating func takeQuote() -> Bool {
        guard at < end, at.pointee == UInt8(ascii: "\"") else { return false }
        at += 1
        return true
    }

    /// The rest of a string whose opening quote is taken.
    ///
    /// Source: RFC 8259 §7, §8.1.
    @inline(__always)
    mutating func scanString() throws(JSONError) -> JSONField {
        let first = at
        let close = plainEnd(from: first)
        guard close < end, close.pointee == UInt8(ascii: "\"") else { return try scanString(from: close) }
        at = close + 1
        return JSONField(base: first, count: close - first, kind: .string)
    }

    /// The same, when the bytes from `at` to `next` are known to be plain.
    @inline(never)
    private mutating func scanString(from begin: UnsafePointer<UInt8>) throws(JSONError) -> JSONField {
        let first = at
        var marks = 0
        // A copy, so that the position stays in a register while nothing else needs it.
        var next = begin
        while true {
            at = next
            guard next < end else { throw error(.unexpectedEnd) }
            let byte = next.pointee
            if byte == UInt8(ascii: "\"") {
                at = next + 1
                return JSONField(base: first, count: next - first, kind: .string, marks: marks)
            } else if byte == UInt8(ascii: "\\") {
                marks |= JSONField.escapes
                try scanEscape()
                next = at
            } else if byte < 0x20 {
                throw error(.controlInString)
            } else {
                marks |= JSONField.beyondASCII
                repeat {
                    let length = Self.sequenceLength(at: next, end: end)
                    at = next
                    guard length > 0 else { throw error(.badUTF8) }
                    next += length
                } while next < end && next.pointee >= 0x80
            }
            next = plainEnd(from: next)
        }
    }

    mutating func scanEscape() throws(JSONError) {
        guard end - at >= 2 else { throw error(.unexpectedEnd) }
        switch at[1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            at += 2
        case UInt8(ascii: "u"):
            let unit = try scanHexUnit()
            switch unit {
            case 0xD800..<0xDC00:
                guard end - at >= 2, at[0] == UInt8(ascii: "\\"), at[1] == UInt8(ascii: "u") else {
                    throw error(.loneSurrogate)
                }
                guard 0xDC00..<0xE000 ~= (try scanHexUnit()) else { throw error(.loneSurrogate) }
            case 0xDC00..<0xE000: throw error(.loneSurrogate)
            default: break
            }
        default: throw error(.badEscape)
        }
    }

    /// Takes `\uXXXX`; the first two bytes are known to be there.
    private mutating func scanHexUnit() throws(JSONError) -> UInt32 {
        guard end - at >= 6 else { throw error(.unexpectedEnd) }
        guard let unit = Self.hexUnit(at + 2) else { throw error(.badEscape) }
        at += 6
        return unit
    }

    /// The value of four hexadecimal digits; nil when one of them is none.
    static func hexUnit(_ digits: UnsafePointer<UInt8>) -> UInt32? {
        var unit: UInt32 = 0
        for offset in 0..<4 {
            let byte = digits[offset]
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte &- UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte &- UInt8(ascii: "a") &+ 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte &- UInt8(ascii: "A") &+ 10
            default: return nil
            }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    /// Length in bytes of the well-formed sequence beyond ASCII at `at`; 0 when there is none.
    ///
    /// Source: The Unicode Standard, table 3-7.
    static func sequenceLength(at: UnsafePointer<UInt8>, end: UnsafePointer<UInt8>) -> Int {
        let left = end - at
        let first = at[0]
        switch first {
        case 0xC2...0xDF:
            return left >= 2 && at[1] & 0xC0 == 0x80 ? 2 : 0
        case 0xE0...0xEF:
            guard left >= 3, at[1] & 0xC0 == 0x80, at[2] & 0xC0 == 0x80 else { return 0 }
            if first == 0xE0 && at[1] < 0xA0 { return 0 }
            if first == 0xED && at[1] > 0x9F { return 0 }
            return 3
        case 0xF0...0xF4:
            guard left >= 4, at[1] & 0xC0 == 0x80, at[2] & 0xC0 == 0x80, at[3] & 0xC0 == 0x80 else { return 0 }
            if first == 0xF0 && at[1] < 0x90 { return 0 }
            if first == 0xF4 && at[1] > 0x8F { return 0 }
            return 4
        default: return 0
        }
    }
}
