import BridgeTypes
import HTTPProtocol

/// Web links in text for clients.
package enum WebLink {
    /// Limit in bytes. Longer links fill several lines, and no client opens those.
    package static let maxBytes = 2048

    /// `url` as shown in a line; nil: no web link, or one that contains a credential.
    ///
    /// Blanks and invisible characters are percent-encoded; a link with a control character is no link.
    package static func shown(_ url: String) -> String? {
        guard url.utf8.count <= maxBytes, let start = afterScheme(url) else { return nil }
        let rest = url.utf8[start...]
        let end =
            rest.firstIndex {
                $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#")
            } ?? rest.endIndex
        let authority = rest[..<end]
        // User information, or characters that some clients treat as a slash.
        guard !authority.isEmpty,
            !authority.contains(where: { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "\\") || $0 <= 0x20 })
        else { return nil }
        guard !holdsSecret(rest[end...]) else { return nil }
        var shown = String.UnicodeScalarView()
        for scalar in url.unicodeScalars {
            if PrintableText.isControl(scalar) { return nil }
            if scalar.properties.isWhitespace || scalar.properties.generalCategory == .format {
                for byte in String(scalar).utf8 {
                    let hex = String(byte, radix: 16, uppercase: true)
                    shown.append(contentsOf: ("%" + (hex.utf8.count < 2 ? "0" : "") + hex).unicodeScalars)
                }
            } else {
                shown.append(scalar)
            }
        }
        return String(shown)
    }

    private static func afterScheme(_ url: String) -> String.Index? {
        for scheme in ["https://", "http://"] where lowercased(url.utf8.prefix(scheme.utf8.count)) == scheme {
            return url.utf8.index(url.startIndex, offsetBy: scheme.utf8.count)
        }
        return nil
    }

    private static func lowercased(_ bytes: Substring.UTF8View) -> String {
        String(decoding: bytes.map { $0 &- UInt8(ascii: "A") < 26 ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// Whether the query or the fragment, in which some log-ins return tokens, contains a credential.
    private static func holdsSecret(_ resource: Substring.UTF8View) -> Bool {
        guard
            let query = resource.firstIndex(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") })
        else { return false }
        let separators = Array("?#&;".utf8)
        for parameter in resource[query...].split(whereSeparator: { separators.contains($0) }) {
            let name = Substring(parameter.prefix { $0 != UInt8(ascii: "=") })
            guard name.utf8.count + 1 < parameter.count else { continue }
            if SecretNames.contains(HTTPURL.percentDecoded(String(name)) ?? String(name)) { return true }
            // A JWT: three parts, of which the first is base64url of `{"`.
            let value = parameter.dropFirst(name.utf8.count + 1)
            if value.starts(with: "eyJ".utf8), value.count(where: { $0 == UInt8(ascii: ".") }) == 2 { return true }
        }
        return false
    }
}
