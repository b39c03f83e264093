/// Picks members out of one document without keeping the rest.
///
/// ```swift
/// var reader = try JSONReader(frame)
/// if try reader.enterObject() {
///     while let key = try reader.nextKey() {
///         let value = try reader.readValue()
///         ...
///     }
/// } else {
///     root = try reader.readValue()
/// }
/// try reader.finish()
/// ```
///
/// Every byte is checked on the way. Until ``finish()`` returns, the document may still prove malformed: collect the
/// fields, which costs nothing, and make strings of them afterwards.
///
/// A leading byte order mark is skipped.
///
/// Source: RFC 8259.
public struct JSONReader {
    @usableFromInline var scanner: JSONScanner
    @usableFromInline let maxDepth: Int
    /// How many of the objects and arrays entered are open.
    @usableFromInline var depth = 0
    @usableFromInline var isFirstMember = false

    /// - Parameter bytes: the whole document; must stay valid for as long as the reader and its fields are used.
    /// - Throws: ``JSONError/Reason/tooLong`` and ``JSONError/Reason/unexpectedEnd``.
    @inlinable @inline(__always)  // else made elsewhere, and copied to where it is used
    public init(_ bytes: UnsafeRawBufferPointer, limits: JSONLimits = JSONLimits()) throws(JSONError) {
        guard bytes.count <= limits.maxBytes else { throw JSONError(.tooLong, at: limits.maxBytes) }
        guard let base = bytes.baseAddress, bytes.count > 0 else { throw JSONError(.unexpectedEnd, at: 0) }
        let start = base.assumingMemoryBound(to: UInt8.self)
        var at = start
        if bytes.count >= 3, start[0] == 0xEF, start[1] == 0xBB, start[2] == 0xBF { at += 3 }
        scanner = JSONScanner(start: start, end: start + bytes.count, at: at)
        maxDepth = limits.maxDepth
    }

    /// A reader of a container that a reader has passed already.
    init(passed field: JSONField) {
        scanner = JSONScanner(start: field.base, end: field.base + field.count, at: field.base)
        maxDepth = JSONLimits.deepestNesting
    }

    /// Steps into the object that comes next, which is left by reading on to its end. False, and nothing is taken, when
    /// something else comes.
    public mutating func enterObject() throws(JSONError) -> Bool { try enter(UInt8(ascii: "{")) }

    /// Steps into the array that comes next. False, and nothing is taken, when something else comes.
    public mutating func enterArray() throws(JSONError) -> Bool { try enter(UInt8(ascii: "[")) }

    @inline(__always)
    mutating func enter(_ bracket: UInt8) throws(JSONError) -> Bool {
        guard scanner.peekToken() == bracket else { return false }
        guard depth < maxDepth else { throw scanner.error(.tooDeep) }
        scanner.passToken()
        depth += 1
        isFirstMember = true
        return true
    }

    /// The name of the next member, whose value must be read before the next call; nil at the object's end.
    public mutating func nextKey() throws(JSONError) -> JSONField? {
        guard let key = scanner.takePlainKey(afterComma: !isFirstMember) else { return try nextKeyAsWritten() }
        isFirstMember = false
        return key
    }

    /// The same, however it is written.
    @inline(never)
    private mutating func nextKeyAsWritten() throws(JSONError) -> JSONField? {
        guard try advance(to: UInt8(ascii: "}")) else { return nil }
        return try scanner.scanKey()
    }

    /// The next member of the object entered; nil at its end. One call for each, where ``nextKey()`` and
    /// ``readValue()`` are two: the usual loop over a frame.
    public mutating func nextMember() throws(JSONError) -> (key: JSONField, value: JSONField)? {
        // Nearly all members are written without white space and have a plain name.
        guard let key = scanner.takePlainKey(afterComma: !isFirstMember) else { return try nextMemberAsWritten() }
        isFirstMember = false
        return (key, try readValue())
    }

    /// The same, however it is written.
    @inline(never)
    private mutating func nextMemberAsWritten() throws(JSONError) -> (key: JSONField, value: JSONField)? {
        guard let key = try nextKeyAsWritten() else { return nil }
        return (key, try readValue())
    }

    /// The next element of the array entered; nil at its end.
    public mutating func nextElement() throws(JSONError) -> JSONField? {
        guard try advance(to: UInt8(ascii: "]")) else { return nil }
        return try readValue()
    }

    /// Whether the array entered goes on. Its next element must be read, or entered and left, before the next call.
    public mutating func hasNextElement() throws(JSONError) -> Bool { try advance(to: UInt8(ascii: "]")) }

    /// False when the container ended here.
    @inline(__always)
    mutating func advance(to bracket: UInt8) throws(JSONError) -> Bool {
        guard let byte = scanner.peekToken() else { throw scanner.error(.unexpectedEnd) }
        if byte == bracket {
            scanner.passToken()
            depth -= 1
            isFirstMember = false  // of the container around this one, which may have been empty
            return false
        }
        if isFirstMember {
            isFirstMember = false
        } else {
            try scanner.expectToken(UInt8(ascii: ","))
        }
        return true
    }

    /// The next value, of any kind. A container is passed over as a whole; ``JSONField/members`` and
    /// ``JSONField/elements`` read it.
    @inline(__always)
    public mutating func readValue() throws(JSONError) -> JSONField {
        if scanner.takeQuote() { return try scanner.scanString() }
        guard let byte = scanner.peekToken() else { throw scanner.error(.unexpectedEnd) }
        // Brackets are the only bytes of these two columns that begin a value.
        if byte | 0x20 == UInt8(ascii: "{") { return try readContainer(byte) }
        return try scanner.scanScalar(byte)
    }

    mutating func readContainer(_ byte: UInt8) throws(JSONError) -> JSONField {
        let kind: JSONField.Kind = byte == UInt8(ascii: "{") ? .object : .array
        let first = scanner.at
        var skipper = JSONSkipper()
        try scanner.walk(into: &skipper, outerDepth: depth, maxDepth: maxDepth)
        return JSONField(base: first, count: scanner.at - first, kind: kind)
    }

    /// Checks that nothing but white space is left.
    public mutating func finish() throws(JSONError) {
        if scanner.peekToken() != nil { throw scanner.error(.trailingBytes) }
    }

    /// Reports the next value, piece by piece.
    mutating func walk(into visitor: inout some JSONVisitor) throws(JSONError) {
        try scanner.walk(into: &visitor, outerDepth: depth, maxDepth: maxDepth)
    }
}

// MARK: - Looking into containers

/// The members of an object, in document order; a name may occur more than once.
public struct JSONMembers: Sequence, IteratorProtocol {
    private var reader: JSONReader?

    init(_ field: JSONField) {
        guard field.kind == .object else { return }
        var reader = JSONReader(passed: field)
        if (try? reader.enterObject()) == true { self.reader = reader }
    }

    public mutating func next() -> (key: JSONField, value: JSONField)? {
        guard let member = try? reader?.nextMember() else {
            reader = nil
            return nil
        }
        return member
    }
}

/// The elements of an array.
public struct JSONElements: Sequence, IteratorProtocol {
    private var reader: JSONReader?

    init(_ field: JSONField) {
        guard field.kind == .array else { return }
        var reader = JSONReader(passed: field)
        if (try? reader.enterArray()) == true { self.reader = reader }
    }

    public mutating func next() -> JSONField? {
        guard let element = try? reader?.nextElement() else {
            reader = nil
            return nil
        }
        return element
    }
}
