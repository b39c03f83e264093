/// A text that is looked for in others; ASCII letters count alike in both cases.
///
/// Time grows with the sum of both lengths and not with their product: users choose both.
///
/// Source: Knuth, Morris, Pratt, "Fast Pattern Matching in Strings".
public struct TextPattern: Sendable {
    private let bytes: [UInt8]
    /// How much of the beginning is found again at the end of each beginning.
    private let again: [Int]

    public init(_ text: String) {
        let bytes = text.utf8.map(Self.folded)
        var again = [Int](repeating: 0, count: bytes.count)
        var matched = 0
        for index in bytes.indices.dropFirst() {
            while matched > 0, bytes[index] != bytes[matched] { matched = again[matched - 1] }
            if bytes[index] == bytes[matched] { matched += 1 }
            again[index] = matched
        }
        (self.bytes, self.again) = (bytes, again)
    }

    /// Where the pattern begins in `text` for the first time. An empty one is everywhere.
    public func firstIndex(in text: UnsafeRawBufferPointer) -> Int? {
        guard bytes.count <= text.count else { return nil }
        guard !bytes.isEmpty else { return 0 }
        return bytes.withUnsafeBufferPointer { bytes in
            again.withUnsafeBufferPointer { again in
                var matched = 0
                for index in 0..<text.count {
                    let byte = Self.folded(text[index])
                    while matched > 0, byte != bytes[matched] { matched = again[matched - 1] }
                    if byte == bytes[matched] { matched += 1 }
                    if matched == bytes.count { return index + 1 - matched }
                }
                return nil
            }
        }
    }

    @inline(__always)
    private static func folded(_ byte: UInt8) -> UInt8 { byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte }
}
