import BridgeTypes
import ChatModel
import HTTPProtocol

/// Removes secrets from texts of a backend: backends repeat the token that they refuse.
package enum SecretScrubber {
    /// A shorter secret would be found by chance in ordinary words. In bytes.
    package static let minSecretBytes = 8
    /// Bytes of a text that are scanned; 120 code points are shown.
    static let maxWordsBytes = 4096

    private static let mark = Array("***".utf8)

    /// `text` with `***` in the place of each of the secrets.
    static func scrubbed(_ text: String, of secrets: [String], shortest: Int = minSecretBytes) -> String {
        let secrets = ordered(secrets, shortest)
        guard !secrets.isEmpty, !text.isEmpty else { return text }
        return String(decoding: replaced(Array(text.utf8), secrets), as: UTF8.self)
    }

    /// The same where they are bytes already, longest first.
    package static func scrubbed(_ text: String, ofBytes secrets: [[UInt8]]) -> String {
        String(decoding: replaced(Array(text.utf8), secrets), as: UTF8.self)
    }

    /// The beginning of `text` in a form that can be shown: no control characters, no secrets, at most 120 code points.
    static func printable(_ text: String, of secrets: [String], shortest: Int = minSecretBytes) -> String {
        let secrets = ordered(secrets, shortest)
        let front = PrintableText.prefix(of: text, maxBytes: maxWordsBytes)
        // Before the search, so that no control character hides a secret from it.
        let plain = String(String.UnicodeScalarView(front.unicodeScalars.filter { !PrintableText.isControl($0) }))
        guard !secrets.isEmpty else { return PrintableText.of(plain) }
        var bytes = replaced(Array(plain.utf8), secrets)
        // The text may have been cut before; there a few bytes that fit are chance.
        let isCut = front.utf8.count < text.utf8.count
        coverBeginning(of: secrets, atEndOf: &bytes, from: isCut ? 1 : shortest)
        return PrintableText.of(String(decoding: bytes, as: UTF8.self))
    }

    /// Longest first: one secret may be a part of another.
    private static func ordered(_ secrets: [String], _ shortest: Int) -> [[UInt8]] {
        secrets.map { Array($0.utf8) }.filter { $0.count >= shortest }.sorted { $0.count > $1.count }
    }

    private static func replaced(_ bytes: [UInt8], _ secrets: [[UInt8]]) -> [UInt8] {
        var kept: [UInt8] = []
        kept.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            if let found = secrets.first(where: { bytes[index...].starts(with: $0) }) {
                kept += mark
                index += found.count
            } else {
                kept.append(bytes[index])
                index += 1
            }
        }
        return kept
    }

    /// Covers the beginning of a secret that a cut text may end with.
    private static func coverBeginning(of secrets: [[UInt8]], atEndOf bytes: inout [UInt8], from shortest: Int) {
        var most = 0
        for secret in secrets {
            for count in stride(from: min(secret.count - 1, bytes.count), to: max(most, shortest - 1), by: -1)
            where bytes[(bytes.count - count)...].elementsEqual(secret.prefix(count)) {
                most = count
                break
            }
        }
        guard most > 0 else { return }
        bytes.removeLast(most)
        bytes += mark
    }
}

extension UpstreamCredentials {
    /// Secrets that must not be repeated, in the forms in which a backend may repeat them.
    var secrets: [String] {
        var found = tokens
        for header in headers where header.holdsPassword { found += header.secrets }
        if case .password(_, let password)? = socket { found.append(password) }
        return found
    }

    /// The same without passwords, which users choose and which may be common words.
    var tokens: [String] {
        var found: [String] = []
        for header in headers where !header.holdsPassword { found += header.secrets }
        for item in query { found += [item.value, HTTPURL.percentEncoded(item.value)] }
        switch socket {
        case .accessToken(let token)?, .refreshToken(let token)?: found.append(token)
        case .password?, nil: break
        }
        return found
    }
}

extension UpstreamCredentials.Item {
    /// A header with a name and a password. Source: RFC 7617.
    fileprivate var holdsPassword: Bool { value.lowercased().hasPrefix("basic ") }

    /// Of a header: its value and each part of it.
    fileprivate var secrets: [String] {
        var found = [value]
        let words = value.split { $0 == " " || $0 == ";" || $0 == "," }
        // `Bearer`, `Basic` and the like are common words.
        for word in words.count > 1 && !words[0].contains("=") ? words[1...] : words[...] {
            found.append(String(word))
            if let equals = word.firstIndex(of: "=") { found.append(String(word[word.index(after: equals)...])) }
        }
        return found
    }
}
