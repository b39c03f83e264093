import BridgeTestSupport
import Testing
import WireBytes

@Suite("UTF-8 validation")
struct UTF8ValidatorTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var name: String
        var bytes: [UInt8]
        /// Index of the byte at which no text can go on so; nil when all can be a start.
        var failsAt: Int?
        var isComplete: Bool

        var testDescription: String { name }

        init(_ name: String, _ bytes: [UInt8], failsAt: Int? = nil, isComplete: Bool = false) {
            (self.name, self.bytes, self.failsAt, self.isComplete) = (name, bytes, failsAt, isComplete)
        }
    }

    // Unicode 15, table 3-7; RFC 3629 §4.
    static let rows: [Row] = [
        Row("nothing", [], isComplete: true),
        Row("ASCII with both ends", [0x00, 0x41, 0x7F], isComplete: true),
        Row("least of two bytes", [0xC2, 0x80], isComplete: true),
        Row("greatest of two bytes", [0xDF, 0xBF], isComplete: true),
        Row("least of three bytes", [0xE0, 0xA0, 0x80], isComplete: true),
        Row("last before the surrogates", [0xED, 0x9F, 0xBF], isComplete: true),
        Row("first after the surrogates", [0xEE, 0x80, 0x80], isComplete: true),
        Row("U+FFFF, a non-character but well-formed", [0xEF, 0xBF, 0xBF], isComplete: true),
        Row("least of four bytes", [0xF0, 0x90, 0x80, 0x80], isComplete: true),
        Row("U+10FFFF", [0xF4, 0x8F, 0xBF, 0xBF], isComplete: true),
        Row("half of two bytes", [0x41, 0xC3]),
        Row("two thirds of three bytes", [0xE2, 0x82]),
        Row("three quarters of four bytes", [0xF0, 0x9F, 0x98]),
        Row("lone continuation", [0x41, 0x80], failsAt: 1),
        Row("C0, overlong", [0xC0, 0x80], failsAt: 0),
        Row("C1, overlong", [0xC1, 0xBF], failsAt: 0),
        Row("E0 9F, overlong", [0xE0, 0x9F, 0xBF], failsAt: 1),
        Row("F0 8F, overlong", [0xF0, 0x8F, 0xBF, 0xBF], failsAt: 1),
        Row("first surrogate", [0xED, 0xA0, 0x80], failsAt: 1),
        Row("last surrogate", [0xED, 0xBF, 0xBF], failsAt: 1),
        Row("U+110000", [0xF4, 0x90, 0x80, 0x80], failsAt: 1),
        Row("F5", [0xF5, 0x80, 0x80, 0x80], failsAt: 0),
        Row("FF", [0xFF], failsAt: 0),
        Row("two bytes cut by ASCII", [0xC3, 0x41], failsAt: 1),
        Row("three bytes cut by ASCII", [0xE2, 0x82, 0x41], failsAt: 2),
        Row("four bytes cut by a new character", [0xF0, 0x9F, 0x98, 0xC3], failsAt: 3),
    ]

    @Test("a byte that no text could have there fails at once, and nothing else does", arguments: rows)
    func earliestByte(_ row: Row) {
        var validator = UTF8Validator()
        for (index, byte) in row.bytes.enumerated() {
            let isGood = withUnsafeBytes(of: byte) { validator.feed($0) }
            #expect(isGood == (index < row.failsAt ?? .max), "at byte \(index)")
        }
        #expect(validator.isComplete == row.isComplete)
    }

    @Test("where the bytes are cut and what ASCII surrounds them makes no difference", arguments: rows)
    func anySurroundings(_ row: Row) {
        for padding in [0, 1, 7, 8, 31, 33, 70] {
            let bytes = Array(repeating: 0x61, count: padding) + row.bytes
            let found = SplitFeedVerifier.disagreements(bytes, expected: [row.failsAt == nil, row.isComplete]) {
                pieces in
                var validator = UTF8Validator()
                let isGood = pieces.allSatisfy { $0.withUnsafeBytes { validator.feed($0) } }
                return [isGood, validator.isComplete]
            }
            #expect(found == [])
            let followed = bytes + Array(repeating: 0x61, count: padding)
            #expect(
                followed.withUnsafeBytes(UTF8Validator.isValid) == (String(validating: followed, as: UTF8.self) != nil))
        }
    }

    @Test("agrees with the standard library on random bytes", arguments: [UInt64(1), 2, 3, 4])
    func agreesWithString(seed: UInt64) {
        var rng = SeededGenerator(seed: seed)
        let alphabet: [UInt8] = [
            0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0,
            0xF1, 0xF3, 0xF4, 0xF5,
        ]
        var validCount = 0
        for _ in 0..<4000 {
            let bytes = (0..<Int.random(in: 0...9, using: &rng)).compactMap { _ in alphabet.randomElement(using: &rng) }
            let isValid = String(validating: bytes, as: UTF8.self) != nil
            if isValid { validCount += 1 }
            #expect(bytes.withUnsafeBytes(UTF8Validator.isValid) == isValid, "\(rng) \(bytes)")
        }
        #expect(validCount > 100)
    }

    @Test("well-formed text of every length class is accepted at every alignment")
    func longText() {
        let text = Array(String(repeating: "aé€😀 plain words, then more of them; ", count: 20).utf8)
        for start in 0..<40 {
            let scalarStart = (start..<text.count).first { text[$0] & 0xC0 != 0x80 } ?? 0
            #expect(text[scalarStart...].withUnsafeBytes(UTF8Validator.isValid))
        }
    }
}
