import Dialects
import HTTPProtocol
import WireBytes

// [[accounts]] upstream = { ROOM = { type = ..., ... } }: what an account shows of its own to the backend of a room.

/// An account's own login in one room.
package struct OwnLoginConfiguration: Equatable, Sendable {
    /// A name of ``Configuration/rooms``, never the template's.
    package var room = ""
    package var auth = AuthConfiguration()
    /// The id by which the backend knows the account, or its name where the wire has no ids; empty: it is asked or learned.
    package var person = ""

    static let keys: [ConfigurationKey<OwnLoginConfiguration>] =
        AuthConfiguration.rows.map { $0.lifted(to: \.auth) } + [
            ConfigurationKey(
                "as", \.person, personText,
                "as whom the backend shows it: the id, or the name where it has no ids; default: the backend is asked")
        ]

    /// Not printed where it is not written.
    private static var personText: ConfigurationForm<String> {
        let text = ConfigurationForm<String>.string(ConfigurationChecks.oneLine)
        return ConfigurationForm(
            expected: text.expected, shape: text.shape, read: text.read, write: { $0.isEmpty ? nil : text.write($0) })
    }

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

extension ConfigurationForm where Value == [OwnLoginConfiguration] {
    static var ownLogins: Self {
        let keys = OwnLoginConfiguration.keys
        let row = ConfigurationForm<OwnLoginConfiguration>.section(keys, inline: true)
        let expected = "a table of rooms, such as { lobby = { type = \"bearer\", token_file = \"/path\" } }"
        return Self(expected: expected, shape: .named(keys.map { (key: $0.name, shape: $0.shape) })) {
            node, value, reader in
            guard case .table(let entries) = node.content else {
                return reader.report(node.origin, "expected \(expected), found \(node.content.kindName)")
            }
            value = []
            for entry in entries {
                var item = OwnLoginConfiguration(room: entry.key)
                reader.descend(entry.key, origin: entry.node.origin) { row.read(entry.node, &item, &$0) }
                value.append(item)
            }
        } write: { logins in
            if logins.isEmpty { return nil }
            var node = ConfigurationNode(
                .table(
                    logins.compactMap { login in
                        row.write(login).map {
                            ConfigurationNode.Entry(key: login.room, keyOrigin: .builtIn, node: $0)
                        }
                    }))
            node.isInline = true
            return node
        }
    }
}
