import Dialects

// Hostile frames for the law that every codec keeps: whatever comes ends in events or a named drop.

/// Frames that no sane backend sends: random bytes, JSON words in any order, and real frames with bytes spoilt, members
/// lost, or values exchanged.
struct NoiseSource {
    private var random: SplitMix
    private let frames: [[UInt8]]
    private let words: [[UInt8]]

    /// - Parameters:
    ///   - frames: real frames to spoil.
    ///   - words: what the dialect's frames are made of; JSON's own are added.
    init(seed: UInt64, frames: [[UInt8]], words: [String]) {
        random = SplitMix(seed: seed)
        self.frames = frames.filter { $0.count < 1500 }
        let json = [
            ":", ",", "{", "}", "[", "]", "null", "true", "false", "0", "-1", "1e9", "1e999", "99999999999999999999",
            #""""#, #""\ud800""#, #""\u0000""#, "\u{FEFF}", "[[[[", "{\"a\":", #""e30=""#, #""////""#,
        ]
        self.words = (words + json).map { Array($0.utf8) }
    }

    mutating func next() -> [UInt8] {
        switch Int.random(in: 0..<5, using: &random) {
        case 0:
            return (0..<Int.random(in: 0...60, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        case 1: return (0..<Int.random(in: 1...20, using: &random)).flatMap { _ in word() }
        case 2: return object(depth: 0)
        case 3: return exchanged()
        default: return spoilt()
        }
    }

    private mutating func word() -> [UInt8] { words.randomElement(using: &random) ?? [] }

    /// Well-formed, with members and values of any kind.
    private mutating func object(depth: Int) -> [UInt8] {
        let keys = words.filter { $0.first == UInt8(ascii: "\"") }
        var bytes = Array("{".utf8)
        for index in 0..<Int.random(in: 1...6, using: &random) {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes += keys.randomElement(using: &random) ?? []
            bytes.append(UInt8(ascii: ":"))
            bytes += value(depth: depth + 1)
        }
        return bytes + Array("}".utf8)
    }

    private mutating func value(depth: Int) -> [UInt8] {
        switch Int.random(in: 0..<(depth > 4 ? 4 : 6), using: &random) {
        case 0:
            return Array(
                ["null", "true", "false", "-1", "1.5", "7", "1e999"].randomElement(using: &random)?.utf8 ?? "".utf8)
        case 1, 2, 3: return words.filter { $0.first == UInt8(ascii: "\"") }.randomElement(using: &random) ?? []
        case 4: return object(depth: depth)
        default:
            let elements = (0..<Int.random(in: 0...3, using: &random)).map { _ in value(depth: depth + 1) }
            return Array("[".utf8) + elements.joined(separator: [UInt8(ascii: ",")]) + Array("]".utf8)
        }
    }

    /// A real frame with some bytes of another kind.
    private mutating func spoilt() -> [UInt8] {
        var frame = frames.randomElement(using: &random) ?? []
        for _ in 0..<Int.random(in: 1...3, using: &random) where !frame.isEmpty {
            frame[Int.random(in: 0..<frame.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        return frame
    }

    /// A real frame in which one string, number or word is another.
    private mutating func exchanged() -> [UInt8] {
        let frame = frames.randomElement(using: &random) ?? []
        let colons = frame.indices.filter { frame[$0] == UInt8(ascii: ":") }
        guard let colon = colons.randomElement(using: &random) else { return frame }
        let end = frame[(colon + 1)...].firstIndex { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "}") }
        return frame[...colon] + value(depth: 4) + frame[(end ?? frame.endIndex)...]
    }
}
