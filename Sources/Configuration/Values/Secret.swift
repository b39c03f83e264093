import Digests
import HTTPProtocol

/// Text that must not be shown: no description, dump, log line or printed configuration contains it.
///
/// Reading it takes ``revealed``, which is easy to search for.
package struct Secret: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The placeholder for a secret.
    package static let blank = "***"

    package let revealed: String

    package init(_ text: String) { revealed = text }

    package var description: String { Self.blank }
    package var debugDescription: String { Self.blank }
    package var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

extension Secret {
    /// A dialect's text for printing. Blanked are texts from variables and files, values under a secret's name, and in
    /// frames and addresses the values of such names within.
    ///
    /// - Parameters:
    ///   - key: its name.
    ///   - fromElsewhere: texts that came from variables and files.
    static func printed(_ text: String, key: String, fromElsewhere: Set<String>) -> String {
        if text.isEmpty { return text }
        if fromElsewhere.contains(text) { return blank }
        if SecretNames.contains(key) { return hasPlace(text) ? text : blank }
        return text.replacing(#/(?<name>[A-Za-z0-9_\-]+)(?<between>=|"\s*:\s*")(?<value>[^&#;\s"]+)/#) { match in
            guard SecretNames.contains(match.name), !hasPlace(match.value) else { return String(match.0) }
            return "\(match.name)\(match.between)\(blank)"
        }
    }

    /// `{token}` or `{{account.password}}`: the secret itself stands elsewhere.
    private static func hasPlace(_ text: some StringProtocol) -> Bool {
        String(text).contains(#/\{[A-Za-z0-9_.|]+\}/#)
    }
}

/// The verifier of a client's PASS.
package enum PasswordVerifier: Hashable, Sendable {
    /// The password itself. Compare in constant time.
    case plain(Secret)
    /// As `chatbridge hash-password` prints it.
    case hashed(SCRAMVerifier)
}

/// One more field of the WebSocket handshake. Values are secrets, because tokens live there.
package struct UpstreamHeader: Hashable, Sendable {
    /// As written; unique in a room, compared case-insensitively.
    package var name: String
    package var value: Secret

    package init(_ name: String, _ value: Secret) {
        self.name = name
        self.value = value
    }
}
