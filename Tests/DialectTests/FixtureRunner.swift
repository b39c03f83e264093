import ChatModel
import Dialects
import Foundation
import JSONText
import Testing

// Runs the fixture files of any dialect; the rules are in Fixtures/README.md.

/// One line of a fixture file.
struct FixtureLine: Sendable, CustomTestStringConvertible {
    let number: Int
    let json: JSONValue

    var testDescription: String { "line \(number): \(json["note"]?.string ?? "")" }

    /// The frame's bytes: as the line spells them out, or the frame's JSON written by our writer.
    var frameBytes: [UInt8]? {
        if let text = json["frame_text"]?.string { return Array(text.utf8) }
        if let base64 = json["frame_b64"]?.string { return Data(base64Encoded: base64).map { Array($0) } }
        return json["frame"]?.bytes
    }

    var isBinary: Bool { json["op"]?.string == "binary" }
}

/// The fixtures of one dialect.
struct FixtureSet: Sendable {
    let inLines: [FixtureLine]
    let outLines: [FixtureLine]
    let context: DialectContext
    let options: JSONValue

    /// A line wraps a frame that is itself at the limit of nesting.
    private static let limits = JSONLimits(maxDepth: JSONLimits.deepestNesting)

    init(_ dialect: String) throws {
        let folder = try #require(Bundle.module.url(forResource: "Fixtures", withExtension: nil))
            .appendingPathComponent(dialect)
        func lines(_ file: String) throws -> [FixtureLine] {
            let text = try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
            return try text.split(separator: "\n").enumerated().map { index, line in
                FixtureLine(number: index + 1, json: try JSONValue(parsing: String(line), limits: Self.limits))
            }
        }
        inLines = try lines("in.jsonl")
        outLines = try lines("out.jsonl")
        let about = try JSONValue(
            parsing: try String(contentsOf: folder.appendingPathComponent("context.json"), encoding: .utf8))
        context = DialectContext(
            selfIDs: Set(about["self"]?["ids"]?.array?.compactMap(\.string).map { ChatID($0) } ?? []),
            selfNames: Set(about["self"]?["names"]?.array?.compactMap(\.string) ?? []),
            room: about["room"]?.string ?? "")
        options = about["options"] ?? .object([])
    }

    /// Decodes the line's frame and compares. Returns what differs; nil when nothing does.
    func verifyIn(_ line: FixtureLine, _ dialect: any Dialect) -> String? {
        guard let bytes = line.frameBytes else { return "the line has no frame" }
        let decoded = bytes.withUnsafeBytes { dialect.decode($0, isBinary: line.isBinary, context: context) }
        if let wanted = line.json["drop"]?.string {
            if case .dropped(let reason, _) = decoded, reason.rawValue == wanted { return nil }
            return "wanted drop \(wanted), got \(decoded)"
        }
        guard let events = decoded.events else { return "wanted events, got \(decoded)" }
        let wanted: [JSONValue]
        switch line.json["event"] {
        case .array(let values): wanted = values
        case nil, .null: wanted = []
        case .some(let value): wanted = [value]
        }
        let got = events.map(\.canonicalJSON)
        guard got.count == wanted.count, zip(got, wanted).allSatisfy({ FixtureCompare.sameEvent($0, $1) }) else {
            return "wanted \(wanted.map(\.text)), got \(got.map(\.text))"
        }
        return nil
    }

    /// Encodes the line's event and compares. Returns what differs; nil when nothing does.
    ///
    /// - Parameter unwrap: turns a frame into the form in which the fixtures show it.
    func verifyOut(
        _ line: FixtureLine, _ dialect: any Dialect, isBinary: Bool = false,
        unwrap: (JSONValue) throws -> JSONValue = { $0 }
    ) throws -> String? {
        guard let event = line.json["event"] else { return "the line has no event" }
        let encoded = dialect.encode(try ChatCommand(canonical: event), context: context)
        if let wanted = line.json["drop"]?.string {
            if case .unsupported(let reason) = encoded, reason.rawValue == wanted { return nil }
            return "wanted drop \(wanted), got \(encoded)"
        }
        guard let frames = encoded.frames else { return "wanted frames, got \(encoded)" }
        guard frames.allSatisfy({ $0.isBinary == isBinary }) else { return "frames of the wrong type" }
        let wanted = line.json["frames"]?.array ?? [line.json["frame"] ?? .null]
        let got = try frames.map { try unwrap(JSONValue(parsing: $0.bytes)) }
        guard got.count == wanted.count, zip(got, wanted).allSatisfy({ FixtureCompare.same($0, $1) }) else {
            return "wanted \(wanted.map(\.text)), got \(got.map(\.text))"
        }
        return nil
    }
}

/// Structural comparison.
enum FixtureCompare {
    /// Numbers closer than this are the same.
    static let tolerance = 0.0005

    /// Key order is irrelevant, numbers compare within ``tolerance``.
    static func same(_ a: JSONValue, _ b: JSONValue) -> Bool {
        switch (a, b) {
        case (.array(let xs), .array(let ys)):
            return xs.count == ys.count && zip(xs, ys).allSatisfy { same($0, $1) }
        case (.object(let xs), .object(let ys)):
            return xs.count == ys.count && xs.allSatisfy { x in b[x.key].map { same(x.value, $0) } ?? false }
        case (.integer(let x), .integer(let y)):
            return x == y
        default:
            if let x = a.double, let y = b.double { return abs(x - y) <= tolerance }
            // Swift compares strings by canonical equivalence; here every code point counts.
            if let x = a.string, let y = b.string { return x.utf8.elementsEqual(y.utf8) }
            return a == b
        }
    }

    /// The same for events, where absent, `null`, `[]`, `{}` and a `self` or `fatal` of false are all one.
    static func sameEvent(_ a: JSONValue, _ b: JSONValue) -> Bool { same(pruned(a), pruned(b)) }

    private static func pruned(_ value: JSONValue) -> JSONValue {
        switch value {
        case .array(let values): return .array(values.map(pruned))
        case .object(let members):
            let flags = ["self", "fatal"]
            return .object(
                members.filter { !(flags.contains($0.key) && $0.value == .bool(false)) }
                    .map { JSONValue.Member($0.key, pruned($0.value)) }
                    .filter { ![.null, .array([]), .object([])].contains($0.value) })
        default: return value
        }
    }
}
