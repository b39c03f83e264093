import WireBytes

// [[accounts]] upstream = { ROOM = { type = ..., ... } }: an account's own credentials for the backend of a room.

/// An account's own login in one room.
package struct OwnLoginConfiguration: Equatable, Sendable {
    /// A name of ``Configuration/rooms``, never the template's.
    package var room = ""
    package var auth = AuthConfiguration()
    /// The id by which the backend knows the account, or its name where the wire has no ids; empty: it is asked or learned.
    package var person = ""

    static let rows: [ConfigurationKey<OwnLoginConfiguration>] =
        AuthConfiguration.rows.map { $0.lifted(to: \.auth) } + [
            ConfigurationKey(
                "as", \.person, personText,
                about: "the account's id or name at the backend",
                usual: "queried from the backend", example: #""alice""#)
        ]

    /// Not printed where it is not written.
    private static var personText: ConfigurationForm<String> {
        let text = ConfigurationForm<String>.string(ConfigurationChecks.oneLine)
        return ConfigurationForm(
            expected: text.expected, shape: text.shape, read: text.read, write: { $0.isEmpty ? nil : text.write($0) })
    }

    /// The name of the account's own link, as the log has it.
    package func linkName(account: String) -> String { room + "/" + account }

    /// Names the account's tokens and calls; no backend of the configuration can be called so.
    package func backendName(account: String) -> String {
        let hex = Array("0123456789abcdef")
        var name = ""
        // Accounts are compared without regard to ASCII case.
        for byte in ASCII.lowercased(account).utf8 {
            if ASCII.isDigit(byte) || (0x61...0x7A).contains(byte) {
                name.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                name += "_" + [hex[Int(byte >> 4)], hex[Int(byte & 15)]]
            }
        }
        return "OWN-\(name)-\(room)"
    }
}
