import WireBytes

/// Header fields in the order of the wire; names compare without case.
///
/// Values are without white space at their ends. Bytes that are not UTF-8 appear as U+FFFD.
///
/// Source: RFC 9110 §5.
public struct HTTPHeaders: Equatable, Sendable {
    public struct Field: Equatable, Sendable {
        public var name: String
        public var value: String

        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    public private(set) var fields: [Field] = []

    public init() {}

    public init(_ pairs: [(name: String, value: String)]) {
        fields = pairs.map { Field(name: $0.name, value: $0.value) }
    }

    public var count: Int { fields.count }

    public mutating func append(name: String, value: String) { fields.append(Field(name: name, value: value)) }

    public mutating func append(_ field: Field) { fields.append(field) }

    /// Removes every field called `name`.
    public mutating func removeAll(_ name: String) {
        fields.removeAll { ASCII.equalsIgnoringCase($0.name, name) }
    }

    /// The value of the first field called `name`.
    public func first(_ name: String) -> String? {
        fields.first { ASCII.equalsIgnoringCase($0.name, name) }?.value
    }

    /// The values of every field called `name`, in order.
    public func all(_ name: String) -> [String] {
        fields.filter { ASCII.equalsIgnoringCase($0.name, name) }.map(\.value)
    }

    /// Whether one of the comma-separated lists called `name` has `token`, without case.
    ///
    /// Source: RFC 9110 §5.6.1.
    public func contains(token: String, in name: String) -> Bool {
        listItems(name).contains { ASCII.equalsIgnoringCase($0, token) }
    }

    /// The items of all comma-separated lists called `name`, trimmed, without empty ones. Quoted commas are not
    /// recognised: none of the fields read so has quoted strings that matter here.
    public func listItems(_ name: String) -> [String] {
        all(name).flatMap { value in
            Array(value.utf8).split(separator: UInt8(ascii: ","))
                .map { String(decoding: ASCII.trimmingOWS($0), as: UTF8.self) }
                .filter { !$0.isEmpty }
        }
    }

    /// Whether `value` may stand in a field: no CR, LF, NUL or other control except the tab.
    ///
    /// Source: RFC 9110 §5.5.
    public static func isValidValue(_ value: String) -> Bool {
        value.utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }
    }
}

/// Bounds of a message head, checked at the byte that crosses them.
public enum HTTPHeadLimits {
    /// Start line, fields and the empty line together, in bytes. Tokens in a query fit with room to spare; most servers
    /// stop at 8 to 16 KiB.
    public static let maxHeadBytes = 16 * 1024
    /// Request line or status line, in bytes without CRLF. Source: RFC 9112 §3 recommends at least 8000.
    public static let maxStartLineBytes = 8 * 1024
    /// Fields in a head. Browsers send about 20, proxies add a handful.
    public static let maxHeaderCount = 100
}
