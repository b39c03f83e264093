import HTTPProtocol
import Upstream

/// Finds secrets in messages. Built once for a set of secrets, so that a text without any costs one look at each of its
/// bytes, for any number of secrets.
package final class SecretFinder {
    /// Layers of percent-encoding that are decoded; no client opens a link with more.
    private static let maxLayers = 2
    /// Tokens are longer. A shorter secret may be a password that is an ordinary word: redacting it would alter texts,
    /// and reveal the password. In bytes.
    static let minBytesInText = 16

    private let inLinks: Patterns
    private let inText: Patterns

    /// Secrets shorter than ``SecretScrubber/minSecretBytes`` are ignored: they would be found by chance.
    package init(_ secrets: some Sequence<String>) {
        var known = Set(secrets.filter { $0.utf8.count >= SecretScrubber.minSecretBytes })
        for secret in known { known.insert(HTTPURL.percentEncoded(secret)) }
        inLinks = Patterns(known.map { Array($0.utf8) })
        inText = Patterns(known.map { Array($0.utf8) }.filter { $0.count >= Self.minBytesInText })
    }

    package var isEmpty: Bool { inLinks.all.isEmpty }

    /// Whether `text` contains one of the secrets, verbatim.
    package func isIn(_ text: String) -> Bool {
        guard !inText.all.isEmpty, text.utf8.count >= Self.minBytesInText else { return false }
        var text = text
        return text.withUTF8 { inText.areIn($0) }
    }

    /// Whether a link contains one of the secrets, anywhere, also percent-encoded once or twice.
    package func isIn(link: String) -> Bool {
        guard !isEmpty else { return false }
        var bytes = Array(link.utf8)
        for _ in 0..<Self.maxLayers {
            if bytes.withUnsafeBufferPointer({ inLinks.areIn($0) }) { return true }
            guard bytes.contains(UInt8(ascii: "%")) else { return false }
            bytes = Self.unwrapped(bytes)
        }
        return bytes.withUnsafeBufferPointer { inLinks.areIn($0) }
    }

    /// `text` with `***` in place of each secret.
    func scrubbed(_ text: String) -> String {
        isIn(text) ? SecretScrubber.scrubbed(text, ofBytes: inText.all) : text
    }

    /// `link` without the parameters that contain a secret, and without its fragment; nil where a secret is elsewhere.
    func withoutParameters(_ link: String) -> String? {
        let base = String(link.prefix { $0 != "?" && $0 != "#" })
        guard !isIn(link: base) else { return nil }
        let query = link.dropFirst(base.count).prefix { $0 != "#" }.dropFirst()
        let kept = query.split(separator: "&", omittingEmptySubsequences: false).filter { !isIn(link: String($0)) }
        let left = kept.isEmpty ? base : base + "?" + kept.joined(separator: "&")
        // Two halves make a whole.
        return isIn(link: left) ? nil : left
    }

    /// Percent-decodes `%XX`; any other text is unchanged, as with lenient servers.
    private static func unwrapped(_ bytes: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count, let high = digit(bytes[index + 1]),
                let low = digit(bytes[index + 2])
            {
                out.append(high << 4 | low)
                index += 3
            } else {
                out.append(bytes[index])
                index += 1
            }
        }
        return out
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// Strings of at least 8 bytes, found by their ends: tokens of one issuer all begin alike.
    private struct Patterns {
        private static let tailBytes = 8

        /// Longest first: one may be a part of another.
        let all: [[UInt8]]
        /// By the last two bytes, folded: whether one ends with them. Empty as long as there is none: each room has these.
        private var ends: [UInt64]
        /// Indices into `all` by the last 8 bytes.
        private var byTail: [UInt64: [Int]] = [:]

        init(_ patterns: [[UInt8]]) {
            all = patterns.filter { $0.count >= Self.tailBytes }.sorted { $0.count > $1.count }
            ends = all.isEmpty ? [] : [UInt64](repeating: 0, count: 64)
            for (index, pattern) in all.enumerated() {
                let bit = Self.bit(pattern[pattern.count - 2], pattern[pattern.count - 1])
                ends[bit >> 6] |= 1 << UInt64(bit & 63)
                byTail[Self.tail(pattern[...]), default: []].append(index)
            }
        }

        func areIn(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
            guard !all.isEmpty, bytes.count >= Self.tailBytes else { return false }
            for end in Self.tailBytes...bytes.count {
                let bit = Self.bit(bytes[end - 2], bytes[end - 1])
                guard ends[bit >> 6] >> UInt64(bit & 63) & 1 == 1 else { continue }
                let front = bytes[..<end]
                guard let candidates = byTail[Self.tail(front)] else { continue }
                for index in candidates where front.suffix(all[index].count).elementsEqual(all[index]) { return true }
            }
            return false
        }

        /// Below 4096; letters that are next to each other in the code have different bits.
        private static func bit(_ first: UInt8, _ second: UInt8) -> Int {
            (Int(first) &* 67 &+ Int(second)) & 4095
        }

        private static func tail(_ bytes: some BidirectionalCollection<UInt8>) -> UInt64 {
            bytes.suffix(tailBytes).reduce(0) { $0 << 8 | UInt64($1) }
        }
    }
}

/// A room's secrets, found anew when any bridge-wide have changed.
final class RoomSecrets {
    private var version = 0
    private var finder = SecretFinder([])

    func finder(version: Int, _ known: () -> [String]) -> SecretFinder {
        if version != self.version {
            self.version = version
            finder = SecretFinder(known())
        }
        return finder
    }
}
