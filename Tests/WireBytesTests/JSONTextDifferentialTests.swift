import BridgeTestSupport
import Foundation
import JSONText
import Testing

// The reader against Foundation's, on generated documents. Both must agree on whether a text is JSON and on its value,
// except where the rows below name a difference.

@Suite("JSON reader against Foundation")
struct JSONTextDifferentialTests {
    /// Foundation's answer as a tree; nil when it refuses.
    private func foundation(_ document: [UInt8]) -> Any? {
        try? JSONSerialization.jsonObject(with: Data(document), options: [.fragmentsAllowed])
    }

    /// Foundation's reader loses byte order marks within strings.
    private func withoutMarks(_ text: String) -> [UInt32] {
        text.unicodeScalars.map(\.value).filter { $0 != 0xFEFF }
    }

    /// Foundation's reader takes decimals through its `Decimal`, which is off by a few units in the last place.
    private func isClose(_ a: Double, _ b: Double) -> Bool { abs(a - b) <= max(abs(a), abs(b)) * 1e-14 }

    private func same(_ ours: JSONValue, _ theirs: Any) -> Bool {
        switch ours {
        case .null: return theirs is NSNull
        case .string(let text): return (theirs as? String).map { withoutMarks($0) == withoutMarks(text) } ?? false
        case .bool(let flag): return (theirs as? NSNumber)?.boolValue == flag
        case .integer(let value):
            guard let number = theirs as? NSNumber else { return false }
            return number.int64Value == value || number.doubleValue == Double(value)
        case .double(let value): return (theirs as? NSNumber).map { isClose($0.doubleValue, value) } ?? false
        case .literal(let text): return (theirs as? NSNumber).map { $0.doubleValue == Double(text) } ?? false
        case .array(let values):
            guard let others = theirs as? [Any], others.count == values.count else { return false }
            return zip(values, others).allSatisfy { same($0, $1) }
        case .object(let members):
            guard let others = theirs as? [String: Any] else { return false }
            let values = Dictionary(members.map { (withoutMarks($0.key), $0.value) }, uniquingKeysWith: { $1 })
            return others.count == values.count
                && others.allSatisfy { key, other in values[withoutMarks(key)].map { same($0, other) } ?? false }
        }
    }

    /// Whether Foundation is known to accept a document that the reader refuses.
    private func isKnownLeniency(_ document: [UInt8], _ error: JSONError) -> Bool {
        // It guesses UTF-16 and UTF-32 from NULs and byte order marks.
        if document.prefix(4).contains(0) || document.prefix(4).contains(where: { $0 >= 0xEF }) { return true }
        // It lets one trailing comma pass.
        guard error.reason == .unexpectedByte, document.indices.contains(error.offset),
            document[error.offset] == UInt8(ascii: "}") || document[error.offset] == UInt8(ascii: "]")
        else { return false }
        return document[..<error.offset].last { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: ",")
    }

    /// Whether the reader is known to accept a document that Foundation refuses: numbers that no double holds.
    private func hasLiteral(_ value: JSONValue) -> Bool {
        switch value {
        case .literal: true
        case .array(let values): values.contains(where: hasLiteral)
        case .object(let members): members.contains { hasLiteral($0.value) }
        default: false
        }
    }

    private func compare(_ document: [UInt8]) {
        let text = String(decoding: document, as: UTF8.self)
        switch (outcome(document), foundation(document)) {
        case (.success(let ours), .some(let theirs)): #expect(same(ours, theirs), "\(text)")
        case (.success(let ours), nil): #expect(hasLiteral(ours), "only we read \(text)")
        case (.failure(let error), .some): #expect(isKnownLeniency(document, error), "\(error) in \(text)")
        case (.failure, nil): break
        }
        let walked = walkOutcome(document)
        #expect(walked == outcome(document), "\(text)")
    }

    @Test("random documents say the same", arguments: 0..<8)
    func documents(_ seed: UInt64) {
        var generator = JSONTreeGenerator(random: SeededGenerator(seed: 1000 + seed))
        for _ in 0..<300 { compare(generator.tree(depth: 5).bytes) }
    }

    @Test("documents spoilt at random are taken or refused alike", arguments: 0..<8)
    func mutations(_ seed: UInt64) {
        var generator = JSONTreeGenerator(random: SeededGenerator(seed: 2000 + seed))
        let pool: [[UInt8]] =
            [
                "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud83d", "\\ude80", "0", "-", ".", "e", "9", "+",
                "t",
                "null", " ", "\n", "\u{0}", "/", "é",
            ].map { Array($0.utf8) } + [[0x80], [0xC3], [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xFF], [0xF0, 0x9F]]
        for _ in 0..<1500 {
            var document = generator.tree(depth: 3).bytes
            for _ in 0..<Int.random(in: 1...2, using: &generator.random) {
                let at = Int.random(in: 0...document.count, using: &generator.random)
                let piece = pool.randomElement(using: &generator.random) ?? []
                switch Int.random(in: 0...2, using: &generator.random) {
                case 0: document.insert(contentsOf: piece, at: at)
                case 1: if at < document.count { document.remove(at: at) }
                default: document.replaceSubrange(at..<min(at + 1, document.count), with: piece)
                }
            }
            compare(document)
        }
    }

    @Test("bytes at random never trap and never pass unless they are JSON", arguments: 0..<4)
    func noise(_ seed: UInt64) {
        var random = SeededGenerator(seed: 3000 + seed)
        let likely = Array(#"{}[],:"\u019ae.-+tfn "#.utf8)
        for _ in 0..<4000 {
            let document = (0..<Int.random(in: 0...24, using: &random)).map { _ in
                Bool.random(using: &random)
                    ? likely.randomElement(using: &random) ?? 0 : UInt8.random(in: 0...255, using: &random)
            }
            compare(document)
        }
    }
}
