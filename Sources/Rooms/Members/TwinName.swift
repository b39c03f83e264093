/// The name of a client among all that go by the same: `ann`, `ann 2`, `ann 2 1f`. What people name their clients has no blanks.
package struct TwinName: Hashable {
    /// Numbers of one account's names are few; one that was written by a broken hand must not overflow.
    private static let maxNumber = 1_000_000_000

    /// What the client says.
    package let base: String
    /// 1: the one that has nothing but the name.
    package let number: Int
    /// The capabilities that the program asks for, by which those of a family are told apart after all of them were away; nil:
    /// nobody looked.
    package var mark: UInt64?

    package init(base: String, number: Int, mark: UInt64?) {
        self.base = base
        self.number = min(max(number, 1), Self.maxNumber)
        self.mark = mark
    }

    package init(_ text: String) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        self.init(
            base: parts.first.map(String.init) ?? "", number: parts.count > 1 ? Int(parts[1]) ?? 1 : 1,
            mark: parts.count > 2 ? UInt64(parts[2], radix: 16) : nil)
    }

    package var text: String {
        guard let mark else { return shown }
        return "\(base) \(number) \(String(mark, radix: 16))"
    }

    /// As people are shown it.
    package var shown: String { number == 1 ? base : "\(base) \(number)" }

    /// Whether two names are one client's, whatever was known of its program.
    package func isSame(_ other: TwinName) -> Bool { number == other.number && base == other.base }

    package static func isSame(_ one: String?, _ other: String?) -> Bool {
        if one == other { return true }
        guard let one, let other, one.utf8.contains(0x20) || other.utf8.contains(0x20) else { return false }
        return TwinName(one).isSame(TwinName(other))
    }
}
