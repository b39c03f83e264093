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
        ConfigurationSchema.auth.map { $0.lifted(to: \.auth) } + [
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

extension Configuration {
    /// A room as an account sees it: the same place, another login.
    package func room(_ room: RoomConfiguration, with login: OwnLoginConfiguration) -> RoomConfiguration {
        var own = room
        own.auth = login.auth
        // What a described dialect says of the token's way.
        return described(own) { _ in true }
    }

    /// The own logins of an account, each with its room.
    package func ownLogins(of account: AccountConfiguration) -> [(
        login: OwnLoginConfiguration, room: RoomConfiguration
    )] {
        account.upstream.compactMap { login in
            rooms.first { $0.name == login.room && !$0.isTemplate }.map { (login, room($0, with: login)) }
        }
    }
}

// MARK: - What goes together

extension ConfigurationCompletion {
    mutating func checkOwnLogins() {
        /// Who is shown as whom, by room and person.
        var shown: [[String]: String] = [:]
        for (index, account) in configuration.accounts.enumerated() {
            for login in account.upstream {
                let at = "accounts[\(index)].upstream.\(login.room)"
                let place = origin(at) ?? origin("accounts[\(index)]") ?? .builtIn
                if login.room == RoomConfiguration.templateName {
                    reader.report(place, "the room \"*\" stands for many; a login of an account's own is for one room")
                    continue
                }
                guard let position = configuration.rooms.firstIndex(where: { $0.name == login.room }) else {
                    let names = configuration.rooms.filter { !$0.isTemplate }.map(\.name)
                    let hint = NearestName.hint(for: login.room, among: names)
                    reader.report(
                        place,
                        "account \"\(account.name)\" has an upstream room \"\(login.room)\" that is not in "
                            + "[[rooms]]\(hint)")
                    continue
                }
                if !account.rooms.contains(AccountConfiguration.allRooms), !account.rooms.contains(login.room) {
                    reader.report(place, "account \"\(account.name)\" may not enter the room \"\(login.room)\"")
                }
                checkOwnLogin(login, configuration.rooms[position], position, at: at, place: place)
                guard !login.person.isEmpty else { continue }
                if let other = shown.updateValue(account.name, forKey: [login.room, login.person]) {
                    reader.report(
                        origin("\(at).as") ?? place,
                        "the accounts \"\(other)\" and \"\(account.name)\" cannot both be \"\(login.person)\"")
                }
            }
        }
    }

    private mutating func checkOwnLogin(
        _ login: OwnLoginConfiguration, _ room: RoomConfiguration, _ position: Int, at path: String,
        place: ConfigurationOrigin
    ) {
        if isRefused(path) || isRefused("\(path).type") { return }
        switch login.auth.type {
        case .none:
            return reader.report(
                place, "an account's own login needs a type: bearer, basic, query, header, message or login")
        case .clientCertificate:
            return reader.report(
                origin("\(path).type") ?? place,
                "a certificate belongs to the room's connections and cannot be an account's own login")
        case .bearer, .basic, .query, .header, .message, .login: break
        }
        if room.auth.type == .clientCertificate {
            return reader.report(
                place, "room \"\(room.name)\" is proven by its certificate, so an account cannot be somebody else there"
            )
        }
        var own = configuration.room(room, with: login)
        // Name and password of the backend's table are not the account's.
        own.backend = ""
        checkAuth(own, at: "rooms[\(position)]", auth: path, whole: place)
        guard login.person.isEmpty, !isRefused("\(path).as"), let dialect = try? configuration.dialect(of: room),
            dialect.traits.messageIDOrigin == .server
        else { return }
        let isSingle = room.identity == .single || room.identity == .auto && dialect.traits.identity == .single
        let knowsWho = dialect.calls?.request(for: .whoAmI, context: DialectContext(room: "")) != nil
        if isSingle, !knowsWho || room.effectiveHTTPBase == nil {
            reader.report(
                place,
                "nobody can be asked as whom \"\(room.name)\" shows this account; write it: as = \"the id, or the name\""
            )
        }
    }
}
