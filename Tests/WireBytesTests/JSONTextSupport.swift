import BridgeTestSupport
import JSONText

/// Makes trees in the normal form of ``JSONValue``, so that writing and reading gives the same tree again.
struct JSONTreeGenerator {
    var random: SeededGenerator

    static let scalars: [Unicode.Scalar] = [
        "a", "Z", "0", " ", "\"", "\\", "/", "\u{0}", "\u{1F}", "\n", "\r", "\t", "\u{7F}", "\u{80}", "é", "\u{2028}",
        "\u{FEFF}", "\u{FFFF}", "漢", "🦀", "\u{10FFFF}",
    ]

    mutating func string() -> String {
        var text = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 0...12, using: &random) {
            text.append(Self.scalars.randomElement(using: &random) ?? "a")
        }
        return String(text)
    }

    mutating func tree(depth: Int) -> JSONValue {
        switch Int.random(in: 0...(depth > 0 ? 9 : 6), using: &random) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &random))
        case 2: return .integer(Int64(truncatingIfNeeded: random.next()))
        case 3: return .integer(Int64.random(in: -100...100, using: &random))
        case 4:
            let value = Double(bitPattern: random.next())
            return value.isFinite ? JSONValue.number(value) : .double(0.5)
        case 5: return .double(Double(Int.random(in: -1_000_000...1_000_000, using: &random)) + 0.125)
        case 6: return .string(string())
        case 7:
            return .array((0..<Int.random(in: 0...4, using: &random)).map { _ in tree(depth: depth - 1) })
        default:
            // The number makes names distinct, also under canonical equivalence.
            return .object(
                (0..<Int.random(in: 0...4, using: &random)).map { .init("\($0)" + string(), tree(depth: depth - 1)) })
        }
    }
}

/// The outcome of reading a document: its tree, or the error.
func outcome(_ document: [UInt8], limits: JSONLimits = JSONLimits()) -> Result<JSONValue, JSONError> {
    Result { () throws(JSONError) in try JSONValue(parsing: document, limits: limits) }
}

/// The same through the member reader, which reads only requested members.
func walkOutcome(_ document: [UInt8], limits: JSONLimits = JSONLimits()) -> Result<JSONValue, JSONError> {
    document.withUnsafeBytes { bytes in
        Result { () throws(JSONError) in
            var reader = try JSONReader(bytes, limits: limits)
            let root: JSONValue
            if try reader.enterObject() {
                var fields: [(JSONField, JSONField)] = []
                while let key = try reader.nextKey() { fields.append((key, try reader.readValue())) }
                try reader.finish()
                return .object(fields.map { .init($0.0.string ?? "", JSONValue($0.1)) })
            } else if try reader.enterArray() {
                var fields: [JSONField] = []
                while let element = try reader.nextElement() { fields.append(element) }
                root = .array(fields.map { JSONValue($0) })
            } else {
                root = JSONValue(try reader.readValue())
            }
            try reader.finish()
            return root
        }
    }
}
