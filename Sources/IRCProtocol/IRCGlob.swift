/// A mask: `*` is any run of characters, `?` any one character, everything else itself without regard to case.
///
/// Matching takes at most the product of both lengths in steps and no recursion, whatever somebody writes into a mask.
///
/// Source: modern.ircdocs.horse, "Wildcard Expressions".
public struct IRCGlob: Hashable, Sendable {
    /// Bytes of a mask that count; longer ones fit nothing that IRC can name.
    public static let maxBytes = 255

    private let pattern: [UInt8]
    private let casemapping: IRCCasemapping

    public init(_ mask: String, casemapping: IRCCasemapping = .ascii) {
        pattern = Array(casemapping.fold(mask).utf8.prefix(Self.maxBytes))
        self.casemapping = casemapping
    }

    /// Whether `text` has a wildcard in it.
    public static func isPattern(_ text: String) -> Bool {
        text.utf8.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") }
    }

    /// Whether the mask fits the whole of `text`.
    public func matches(_ text: String) -> Bool {
        if pattern == [UInt8(ascii: "*")] { return true }
        let text = Array(casemapping.fold(text).utf8)
        var place = 0
        var next = 0
        // The last star, and where the text after its run began.
        var star: Int?
        var resume = 0
        while place < text.count {
            if next < pattern.count, pattern[next] == UInt8(ascii: "*") {
                star = next
                resume = place
                next += 1
            } else if next < pattern.count, pattern[next] == UInt8(ascii: "?") {
                place = Self.endOfCharacter(text, place)
                next += 1
            } else if next < pattern.count, pattern[next] == text[place] {
                place += 1
                next += 1
            } else if let star {
                resume += 1
                place = resume
                next = star + 1
            } else {
                return false
            }
        }
        return pattern[next...].allSatisfy { $0 == UInt8(ascii: "*") }
    }

    /// Behind the UTF-8 sequence that begins at `place`.
    private static func endOfCharacter(_ text: [UInt8], _ place: Int) -> Int {
        var end = place + 1
        while end < text.count, text[end] & 0xC0 == 0x80 { end += 1 }
        return end
    }
}
