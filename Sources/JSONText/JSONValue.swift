/// A JSON document as a tree, for tests and for paths that are not taken with every frame.
///
/// Read from text, numbers are in a normal form: `1`, `1.0` and `1e0` are all `.integer(1)`; a `.double` is finite and
/// has a fraction or is beyond 2^53; a number that neither holds stays text.
public enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case double(Double)
    /// A number as it is written, where `Int64` is too small or no finite double comes near: `18446744073709551616`,
    /// `1e999`.
    case literal(String)
    case string(String)
    case array([JSONValue])
    /// In document order; a name that occurs again counts the last time.
    case object([Member])

    public struct Member: Hashable, Sendable {
        public var key: String
        public var value: JSONValue

        public init(_ key: String, _ value: JSONValue) {
            self.key = key
            self.value = value
        }
    }

    // MARK: - Reading

    /// Reads a whole document.
    ///
    /// - Throws: ``JSONError`` for anything but one value of RFC 8259 within the limits.
    public init(parsing bytes: UnsafeRawBufferPointer, limits: JSONLimits = JSONLimits()) throws(JSONError) {
        var reader = try JSONReader(bytes, limits: limits)
        var builder = TreeBuilder()
        try reader.walk(into: &builder)
        try reader.finish()
        self = builder.values.last ?? .null
    }

    public init(parsing bytes: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONError) {
        self = try bytes.withUnsafeBytes { raw in
            Result { () throws(JSONError) in try JSONValue(parsing: raw, limits: limits) }
        }.get()
    }

    public init(parsing text: String, limits: JSONLimits = JSONLimits()) throws(JSONError) {
        self = try JSONValue(parsing: Array(text.utf8), limits: limits)
    }

    /// The tree under a field that a reader has passed.
    public init(_ field: JSONField) {
        switch field.kind {
        case .object, .array:
            var reader = JSONReader(passed: field)
            var builder = TreeBuilder()
            do throws(JSONError) { try reader.walk(into: &builder) } catch { builder.values = [] }
            self = builder.values.last ?? .null
        default:
            self = Self(scalar: field)
        }
    }

    fileprivate init(scalar field: JSONField) {
        switch field.kind {
        case .string: self = .string(field.string ?? "")
        case .true: self = .bool(true)
        case .false: self = .bool(false)
        case .integer:
            if let value = field.int64 { self = .integer(value) } else { self = .literal(field.rawText) }
        case .decimal:
            guard let value = field.double else {
                self = .literal(field.rawText)
                return
            }
            self = Self.number(value)
        case .null, .object, .array: self = .null
        }
    }

    /// `value` in the normal form described above.
    public static func number(_ value: Double) -> JSONValue {
        guard value.isFinite else { return .null }
        if let whole = JSONField.wholeNumber(value), value.magnitude <= 0x1p53 { return .integer(whole) }
        return .double(value)
    }

    // MARK: - Writing

    /// The document without white space. Only trees built by hand can be too deep for this.
    public var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.value(self)
        return writer.finish()
    }

    /// The document without white space, as text.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    // MARK: - Access

    /// The value of the member called `key`, the last one if there are several; nil for other kinds.
    public subscript(key: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.last { $0.key.utf8.elementsEqual(key.utf8) }?.value
    }

    public var string: String? { if case .string(let text) = self { text } else { nil } }
    public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    public var array: [JSONValue]? { if case .array(let values) = self { values } else { nil } }
    public var object: [Member]? { if case .object(let members) = self { members } else { nil } }
    public var isNull: Bool { self == .null }

    /// The nearest double of a number; nil when that is infinite and for other kinds.
    public var double: Double? {
        switch self {
        case .integer(let value): return Double(value)
        case .double(let value): return value
        case .literal(let text):
            guard text.utf8.count <= JSONField.maxNumberBytes, let value = Double(text), value.isFinite else {
                return nil
            }
            return value
        default: return nil
        }
    }
}

extension JSONWriter {
    /// A tree.
    public mutating func value(_ value: JSONValue) {
        switch value {
        case .null: null()
        case .bool(let value): bool(value)
        case .integer(let value): integer(value)
        case .double(let value): double(value)
        case .literal(let text): raw(text)
        case .string(let text): string(text)
        case .array(let values):
            beginArray()
            for value in values { self.value(value) }
            endArray()
        case .object(let members):
            beginObject()
            for member in members {
                key(text: member.key)
                self.value(member.value)
            }
            endObject()
        }
    }
}

/// Builds a tree from a walk. Finished values and keys wait on flat stacks until their container ends, so each is moved
/// once, and nothing recurses.
private struct TreeBuilder: JSONVisitor {
    var values: [JSONValue] = []
    private var keys: [String] = []
    /// How many values and keys there were when each open container began.
    private var marks: [(values: Int, keys: Int)] = []

    mutating func scalar(_ field: JSONField) { values.append(JSONValue(scalar: field)) }
    mutating func key(_ field: JSONField) { keys.append(field.string ?? "") }
    mutating func beginContainer() { marks.append((values.count, keys.count)) }

    mutating func endObject() {
        guard let mark = marks.popLast() else { return }
        let members = zip(keys[mark.keys...], values[mark.values...]).map { JSONValue.Member($0, $1) }
        keys.removeSubrange(mark.keys...)
        values.removeSubrange(mark.values...)
        values.append(.object(members))
    }

    mutating func endArray() {
        guard let mark = marks.popLast() else { return }
        let elements = Array(values[mark.values...])
        values.removeSubrange(mark.values...)
        values.append(.array(elements))
    }
}
