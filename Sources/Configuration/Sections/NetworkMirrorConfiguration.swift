/// Where an IRC network is.
package struct IRCNetworkAddress: Equatable, Sendable, CustomStringConvertible {
    package var place: HostPort
    package var isSecure: Bool
    /// Plain text beyond loopback was asked for by its name.
    package var isInsecureByName: Bool

    private static let schemes: [(prefix: String, port: Int, isSecure: Bool, isInsecureByName: Bool)] = [
        ("ircs://", 6697, true, false), ("irc://", 6667, false, false), ("irc+insecure://", 6667, false, true),
    ]

    /// `ircs://host[:port]`, `irc://host[:port]`, `irc+insecure://host[:port]`; nil: it is none of these.
    package init?(_ text: String) {
        guard let scheme = Self.schemes.first(where: { text.hasPrefix($0.prefix) }) else { return nil }
        var rest = text.dropFirst(scheme.prefix.count)
        if rest.last == "/" { rest.removeLast() }
        guard let place = try? HostPort(parsing: rest, defaultPort: scheme.port), place.port > 0 else { return nil }
        (self.place, isSecure, isInsecureByName) = (place, scheme.isSecure, scheme.isInsecureByName)
    }

    package var description: String { "\(isSecure ? "ircs" : "irc")://\(place)" }
}

/// A room and its channel on an IRC network.
package struct MirroredChannel: Hashable, Sendable {
    package var room: String
    package var channel: String

    @Sendable static func parse(_ room: String, _ channel: String) throws(MapError) -> MirroredChannel {
        if let complaint = ConfigurationChecks.roomName(room) { throw .key(complaint) }
        let isName =
            channel.utf8.count <= ConfigurationChecks.maxChannelBytes
            && channel.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ",") }
        guard let first = channel.first, "#&+!".contains(first), isName else {
            throw .value("\"\(channel)\" is not the name of a channel, such as \"#example\"")
        }
        return MirroredChannel(room: room, channel: channel)
    }
}

/// The key of a channel, mode `+k`.
package struct MirroredChannelKey: Hashable, Sendable {
    /// Whose channel it is of.
    package var room: String
    package var key: Secret

    @Sendable static func parse(_ room: String, _ key: String) throws(MapError) -> MirroredChannelKey {
        if let complaint = ConfigurationChecks.roomName(room) { throw .key(complaint) }
        let isKey = key.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ",") }
        guard !key.isEmpty, !key.hasPrefix(":"), key.utf8.count <= 100, isKey else {
            throw .value("this is no key of a channel: it has no spaces, no commas, and no colon at its beginning")
        }
        return MirroredChannelKey(room: room, key: Secret(key))
    }
}

/// How the mirror logs in to an IRC network.
package struct NetworkLoginConfiguration: Equatable, Sendable {
    package enum Mechanism: String, CaseIterable, Sendable {
        case plain
        case scramSHA256 = "scram-sha-256"
        /// By `tls.client_cert`.
        case external
    }

    package var mechanism = Mechanism.plain
    package var user = ""
    package var password: SecretSource?

    /// The mirror does not log in.
    package var isEmpty: Bool { self == NetworkLoginConfiguration() }

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "mechanism", \.mechanism, .choice,
            about: "`plain`, `scram-sha-256`, or `external`, by `tls.client_cert`"),
        ConfigurationKey(
            "user", \.user, .string(ConfigurationChecks.oneLine), about: "the account there", example: #""chatbridge""#),
        ConfigurationKey(
            "password", \.password, .secretText, group: "password", about: "its password",
            example: #""${NETWORK_PASSWORD}""#),
        ConfigurationKey(
            "password_file", \.password, .secretFile, group: "password", about: "a file with the password",
            example: #""/run/secrets/network""#),
        ConfigurationKey(
            "password_credential", \.password, .secretCredential, group: "password",
            about: "the name of a systemd credential with the password", example: #""network""#),
    ]
}
