/// A path to a value inside a document: `/messages/0/text`.
///
/// Source: RFC 6901.
public struct JSONPointer: Hashable, Sendable {
    /// The names on the way, unescaped.
    public let tokens: [String]

    public init(tokens: [String]) { self.tokens = tokens }

    /// Reads the string form; nil unless it is empty or begins with `/`, and when `~` stands before anything but 0 and 1.
    public init?(_ text: String) {
        var bytes = Array(text.utf8)[...]
        var tokens: [String] = []
        while let first = bytes.first {
            guard first == UInt8(ascii: "/") else { return nil }
            bytes.removeFirst()
            var token: [UInt8] = []
            while let byte = bytes.first, byte != UInt8(ascii: "/") {
                bytes.removeFirst()
                guard byte == UInt8(ascii: "~") else {
                    token.append(byte)
                    continue
                }
                switch bytes.popFirst() {
                case UInt8(ascii: "0"): token.append(UInt8(ascii: "~"))
                case UInt8(ascii: "1"): token.append(UInt8(ascii: "/"))
                default: return nil
                }
            }
            tokens.append(String(decoding: token, as: UTF8.self))
        }
        self.tokens = tokens
    }

    /// The string form.
    public var text: String {
        tokens.map { "/" + $0.replacing("~", with: "~0").replacing("/", with: "~1") }.joined()
    }

    /// An array index: digits without a leading zero; nil otherwise.
    static func index(_ token: String) -> Int? {
        guard token.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }) else { return nil }
        if token.utf8.count > 1, token.utf8.first == UInt8(ascii: "0") { return nil }
        return Int(token)
    }
}

extension JSONValue {
    /// The value that `pointer` leads to; nil where the path ends before.
    public subscript(pointer: JSONPointer) -> JSONValue? {
        var value = self
        for token in pointer.tokens {
            switch value {
            case .object:
                guard let next = value[token] else { return nil }
                value = next
            case .array(let elements):
                guard let index = JSONPointer.index(token), elements.indices.contains(index) else { return nil }
                value = elements[index]
            default: return nil
            }
        }
        return value
    }
}
