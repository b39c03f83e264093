/// The name of a client, numbered among clients of the same name: `ann`, `ann 2`, `ann 2 1f`. A name given by a user
/// has no blanks.
package struct NumberedClientName: Hashable {
    /// Numbers are small in practice; a corrupt one must not overflow.
    private static let maxNumber = 1_000_000_000

    /// The name given by the client.
    package let base: String
    /// 1: the name alone.
    package let number: Int
    /// Fingerprint of the capabilities that the program requests, which distinguishes clients of one name after all
    /// were offline; nil: not recorded.
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

    /// The form for display.
    package var shown: String { number == 1 ? base : "\(base) \(number)" }

    /// Whether two names are one client's, whatever is known of its program.
    package func isSame(_ other: NumberedClientName) -> Bool { number == other.number && base == other.base }

    package static func isSame(_ one: String?, _ other: String?) -> Bool {
        if one == other { return true }
        guard let one, let other, one.utf8.contains(0x20) || other.utf8.contains(0x20) else { return false }
        return NumberedClientName(one).isSame(NumberedClientName(other))
    }
}
