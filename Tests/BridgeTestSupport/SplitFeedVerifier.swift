/// Checks the split-feed property: a decoder's output does not depend on the boundaries between its inputs.
///
///     #expect(SplitFeedVerifier.disagreements(bytes, expected: row.events) { pieces in
///         var decoder = Decoder()
///         return pieces.flatMap { decoder.bytesReceived($0) }
///     } == [])
public enum SplitFeedVerifier {
    /// Inputs up to this many bytes are cut at every place; longer ones near both ends and at even steps between.
    public static let exhaustiveByteCount = 600

    /// Decodes `bytes` whole, byte by byte, at each single cut, with an empty piece in the middle, and in random pieces.
    ///
    /// - Parameters:
    ///   - expected: the output in all cases; nil: that of the whole.
    ///   - decode: feeds the pieces in order to a fresh decoder and returns its output.
    /// - Returns: one sentence for each deviation; empty: the property holds.
    public static func disagreements<Output: Equatable>(
        _ bytes: [UInt8], expected: Output? = nil, decode: ([[UInt8]]) -> Output
    ) -> [String] {
        let whole = decode([bytes])
        let wanted = expected ?? whole
        var found: [String] = []
        func compare(_ way: String, _ output: Output) {
            if output != wanted { found.append("\(way): expected \(wanted), got \(output)") }
        }
        compare("whole", whole)
        compare("byte by byte", decode(bytes.map { [$0] }))
        for cut in cuts(bytes.count) {
            compare("cut at \(cut)", decode([Array(bytes[..<cut]), Array(bytes[cut...])]))
        }
        let middle = bytes.count / 2
        compare("empty piece at \(middle)", decode([Array(bytes[..<middle]), [], Array(bytes[middle...])]))
        for seed in UInt64(1)...4 { compare("random pieces, seed \(seed)", decode(randomPieces(bytes, seed: seed))) }
        return found
    }

    private static func cuts(_ count: Int) -> [Int] {
        guard count > 1 else { return [] }
        guard count > exhaustiveByteCount else { return Array(1..<count) }
        let edge = 40
        let step = max(1, count / 16)
        return Array(1..<edge) + Array(stride(from: edge, to: count - edge, by: step)) + Array((count - edge)..<count)
    }

    private static func randomPieces(_ bytes: [UInt8], seed: UInt64) -> [[UInt8]] {
        var rng = SeededGenerator(seed: seed)
        var pieces: [[UInt8]] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let length = Int.random(in: 1...max(1, bytes.count / 3), using: &rng)
            pieces.append(Array(rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
        return pieces
    }
}
