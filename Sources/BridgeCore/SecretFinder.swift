import HTTPProtocol

/// Finds secrets in what people and backends say. Made once for as long as the secrets are the same, so that a text without
/// any costs one look at each of its bytes.
struct SecretFinder {
    /// Whoever hides a secret behind more layers of percent signs than this wants it to be seen; nobody opens such a link.
    private static let maxLayers = 2

    /// Longest first: one secret may be a part of another.
    private let secrets: [[UInt8]]
    /// By byte: whether one of them begins with it.
    private let begins: [Bool]

    /// Secrets shorter than ``SecretScrubber/minSecretBytes`` are left out: they would be found by chance.
    init(_ secrets: some Sequence<String>) {
        var known = Set(secrets.filter { $0.utf8.count >= SecretScrubber.minSecretBytes })
        for secret in known { known.insert(HTTPURL.percentEncoded(secret)) }
        self.secrets = known.map { Array($0.utf8) }.sorted { $0.count > $1.count }
        var begins = [Bool](repeating: false, count: 256)
        for secret in self.secrets { begins[Int(secret[0])] = true }
        self.begins = begins
    }

    var isEmpty: Bool { secrets.isEmpty }

    /// Whether `text` has one of the secrets in it, as it is.
    func isIn(_ text: String) -> Bool {
        guard !secrets.isEmpty, text.utf8.count >= SecretScrubber.minSecretBytes else { return false }
        var text = text
        return text.withUTF8 { isIn($0) }
    }

    /// Whether a link has one of the secrets in it, anywhere, also percent-encoded once or twice.
    func isIn(link: String) -> Bool {
        guard !secrets.isEmpty else { return false }
        var bytes = Array(link.utf8)
        for _ in 0..<Self.maxLayers {
            if bytes.withUnsafeBufferPointer({ isIn($0) }) { return true }
            guard bytes.contains(UInt8(ascii: "%")) else { return false }
            bytes = Self.unwrapped(bytes)
        }
        return bytes.withUnsafeBufferPointer { isIn($0) }
    }

    private func isIn(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        for index in bytes.indices where begins[Int(bytes[index])] {
            let rest = bytes[index...]
            if secrets.contains(where: { rest.starts(with: $0) }) { return true }
        }
        return false
    }

    /// `text` with `***` in the place of each secret.
    func scrubbed(_ text: String) -> String {
        isIn(text) ? SecretScrubber.scrubbed(text, ofBytes: secrets) : text
    }

    /// `link` without the parameters in which a secret is, and without its fragment; nil where it is elsewhere.
    func withoutParameters(_ link: String) -> String? {
        let base = String(link.prefix { $0 != "?" && $0 != "#" })
        guard !isIn(link: base) else { return nil }
        let query = link.dropFirst(base.count).prefix { $0 != "#" }.dropFirst()
        let kept = query.split(separator: "&", omittingEmptySubsequences: false).filter { !isIn(link: String($0)) }
        let left = kept.isEmpty ? base : base + "?" + kept.joined(separator: "&")
        // Two halves make a whole.
        return isIn(link: left) ? nil : left
    }

    /// With each `%XX` replaced by its byte; anything else stays, as lenient servers have it.
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
}
