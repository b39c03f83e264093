import ChatModel
import WireBytes

/// The display names of upstream users, with the number of users of each.
struct RealnameCounts {
    private static let hashes = QuickHash()

    /// Names in ASCII by their hash: texts are looked up as they are. Of two names with one hash, which are not met by
    /// chance, a text may be taken for the other.
    private var ascii: [UInt64: Int] = [:]
    /// The others, of which several forms are equal.
    private var others: [String: Int] = [:]

    /// Adds users of a name, or takes them away.
    mutating func count(_ name: String, _ change: Int) {
        var name = name
        let hash = name.withUTF8 { Self.hash(ofASCII: UnsafeRawBufferPointer($0)) }
        let sum = (hash.map { ascii[$0, default: 0] } ?? others[name, default: 0]) + change
        if let hash { ascii[hash] = sum > 0 ? sum : nil } else { others[name] = sum > 0 ? sum : nil }
    }

    func contain(_ name: UnsafeRawBufferPointer) -> Bool {
        if let hash = Self.hash(ofASCII: name) { return ascii[hash] != nil }
        return others[String(decoding: name, as: UTF8.self)] != nil
    }

    /// Nil: not ASCII alone.
    private static func hash(ofASCII name: UnsafeRawBufferPointer) -> UInt64? {
        ByteScan.isPrintableASCII(name) ? hashes.hash(name) : nil
    }
}
