import Dialects
import JSONText
import Testing

/// Frames as a hostile or broken peer could send them, the same ones for the same seed.
struct SpoiltFrames {
    /// Good frames, parts of which are replaced.
    let frames: [[UInt8]]
    /// Pieces that are put together at random.
    let words: [[UInt8]]

    static let punctuation = [
        ":", ",", "{", "}", "[", "]", "null", "true", "1e9", "-1", "1e400", #""x""#, #""""#, #""\ud800""#, "\u{FEFF}",
    ]

    init(lines: [FixtureLine], words: [String]) {
        frames = lines.compactMap(\.frameBytes).filter { $0.count < 1000 }
        self.words = (words.map { "\"\($0)\"" } + Self.punctuation).map { Array($0.utf8) }
    }

    /// Calls `body` with each of `count` frames.
    func forEach(seed: UInt64, count: Int = 3000, _ body: ([UInt8]) -> Void) {
        var random = SplitMix(seed: seed)
        for round in 0..<count {
            var frame: [UInt8] = []
            switch round % 4 {
            case 0:
                frame = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
            case 1:
                for _ in 0..<Int.random(in: 1...20, using: &random) {
                    frame += words.randomElement(using: &random) ?? []
                }
            case 2:
                // Well-formed, with members of any kind.
                let members = (0..<Int.random(in: 0...6, using: &random)).map { _ in
                    let key = words[Int.random(in: 0..<(words.count - Self.punctuation.count), using: &random)]
                    return String(decoding: key, as: UTF8.self) + ":" + Self.value(3, words, &random)
                }
                frame = Array("{\(members.joined(separator: ","))}".utf8)
            default:
                frame = frames.randomElement(using: &random) ?? []
                for _ in 0..<Int.random(in: 1...3, using: &random) where !frame.isEmpty {
                    frame[Int.random(in: 0..<frame.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
            }
            body(frame)
        }
    }

    private static func value(_ depth: Int, _ words: [[UInt8]], _ random: inout SplitMix) -> String {
        func word() -> String {
            String(
                decoding: words[Int.random(in: 0..<(words.count - punctuation.count), using: &random)], as: UTF8.self)
        }
        switch Int.random(in: 0...9, using: &random) {
        case 0: return "null"
        case 1: return "true"
        case 2: return String(Int64(bitPattern: random.next()))
        case 3: return "99999999999999999999999"
        case 4: return "-1.5e300"
        case 5 where depth > 0:
            return "[" + value(depth - 1, words, &random) + "," + value(depth - 1, words, &random) + "]"
        case 6 where depth > 0:
            return "{" + word() + ":" + value(depth - 1, words, &random) + "}"
        case 7: return #""2025-11-21T03:18:56""#
        default: return word()
        }
    }
}

/// Checks that any frame ends in events or a drop; the figures show that both were reached.
func expectEventsOrDrops(
    _ spoilt: SpoiltFrames, seed: UInt64, _ dialect: any Dialect, _ context: DialectContext
) {
    var drops = 0
    var events = 0
    spoilt.forEach(seed: seed) { frame in
        switch frame.withUnsafeBytes({ dialect.decode($0, isBinary: false, context: context) }) {
        case .event, .several: events += 1
        case .dropped: drops += 1
        }
    }
    #expect(drops > 0 && events > 0)
}

/// What becomes of a dialect's options.
struct OptionRow: Sendable, CustomTestStringConvertible {
    /// The options as JSON.
    let json: String
    /// What is wrong with them; nil: nothing.
    var failure: DialectOptionError?

    init(_ json: String, fails path: [String]? = nil, _ sentence: String = "", known: [String] = []) {
        self.json = json
        failure = path.map { DialectOptionError(path: $0, sentence: sentence, known: known) }
    }

    /// What `make` finds wrong with the options.
    func failure(
        of make: (consuming DialectOptions) throws(DialectOptionError) -> Void
    ) throws -> DialectOptionError? {
        let options = DialectOptions(try JSONValue(parsing: json))
        do throws(DialectOptionError) { try make(options) } catch { return error }
        return nil
    }

    var testDescription: String { json }
}
