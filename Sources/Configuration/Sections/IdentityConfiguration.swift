import Digests
import IRCProtocol

package struct IdentityConfiguration: Equatable, Sendable {
    package enum RequireLogin: String, CaseIterable, Sendable {
        case never
        /// On listeners beyond loopback.
        case remote
        case always
    }

    /// The clients that may register accounts.
    package enum Registration: String, CaseIterable, Sendable {
        case off
        /// Clients of listeners on loopback and socket files.
        case local
        /// All clients.
        case on
    }

    package var requireLogin = RequireLogin.remote
    package var registration = Registration.off
    /// Whether an account may be made before the client is let in.
    package var registrationBeforeConnect = true
    /// Whether a login restores the account's rooms; for the default see ``BridgeSettings/rejoins``.
    package var rejoin = true
    /// Names of ``SASLMechanism``, in the order in which they are offered.
    package var sasl = SASLMechanism.allCases
    /// The backend that identifies token owners; empty: none.
    package var bearer = ""
    /// A shared PASS, or nil.
    package var password: PasswordVerifier?
    /// Gateways that may speak for others.
    package var webirc: [WebIRCConfiguration] = []
    package var nicks = NicksConfiguration()

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey("require_login", \.requireLogin, .choice),
        ConfigurationKey("registration", \.registration, .choice),
        ConfigurationKey("registration_before_connect", \.registrationBeforeConnect, .boolean),
        ConfigurationKey("rejoin", \.rejoin, .boolean),
        ConfigurationKey("sasl", \.sasl, .choices(of: "mechanisms", unknown: "is no way to log in here")),
        ConfigurationKey("bearer", \.bearer, .string(ConfigurationChecks.oneLine)),
        ConfigurationKey("password", \.password, .password, group: "password"),
        ConfigurationKey("password_file", \.password, .passwordFile, group: "password"),
        ConfigurationKey("password_credential", \.password, .passwordCredential, group: "password"),
        ConfigurationKey(tables: "webirc", \.webirc, WebIRCConfiguration.rows, initial: { _ in WebIRCConfiguration() }),
        ConfigurationKey("nicks", \.nicks, .section(NicksConfiguration.rows)),
    ]
}

/// A gateway that names its clients' addresses with WEBIRC.
package struct WebIRCConfiguration: Equatable, Sendable {
    /// Nil only until loading has complained.
    package var password: PasswordVerifier?
    package var from: [TrustedPeer] = []

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey("password", \.password, .password, group: "password"),
        ConfigurationKey("password_file", \.password, .passwordFile, group: "password"),
        ConfigurationKey("password_credential", \.password, .passwordCredential, group: "password"),
        ConfigurationKey("from", \.from, .list(of: "addresses")),
    ]
}

/// How nicks are made from the backend's display names.
package struct NicksConfiguration: Equatable, Sendable {
    package enum Collision: String, CaseIterable, Sendable {
        /// `bob2`
        case number
        /// `bob_`
        case underscore
    }

    /// Appended to every upstream nick.
    package var suffix = ""
    /// Bytes, the suffix included.
    package var maxLengthBytes = 30
    /// Stands for characters that IRC cannot have.
    package var invalid = "-"
    package var collision = Collision.number
    /// False: ASCII only.
    package var utf8 = true

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey("suffix", \.suffix, .string(ConfigurationChecks.nickSuffix)),
        // 16 leaves room for "user-" and 8 digits; with 63, nick!user@host and a message fit in one line.
        ConfigurationKey("max_length", \.maxLengthBytes, .integer(16...63)),
        ConfigurationKey("invalid", \.invalid, .string(ConfigurationChecks.nickReplacement)),
        ConfigurationKey("collision", \.collision, .choice),
        ConfigurationKey("utf8", \.utf8, .boolean),
    ]
}

/// An account that can log in.
package struct AccountConfiguration: Equatable, Sendable {
    /// When the account's read markers are reported to the backend.
    package enum Receipts: String, CaseIterable, Sendable {
        /// As the room has it.
        case room = ""
        case marker
        case speaking
        case off
    }

    /// In ``rooms``: every room.
    package static let allRooms = "*"

    package var name = ""
    /// Nil: it logs in by a certificate or a token alone.
    package var password: SCRAMVerifier?
    /// SHA-256 of client certificates, 64 hexadecimal digits in lower case each.
    package var certificates: [String] = []
    /// The account's ids at the backend, or names where it has no ids.
    package var bearer: [String] = []
    /// Names of rooms.
    package var rooms = [AccountConfiguration.allRooms]
    package var isAdmin = false
    /// May say things under others' names.
    package var mayRelay = false
    package var receipts = Receipts.room
    /// Logins of its own, each in another room.
    package var upstream: [OwnLoginConfiguration] = []

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey("name", \.name, .string(ConfigurationChecks.accountName)),
        ConfigurationKey("password", \.password, .passwordHash, group: "password"),
        ConfigurationKey("password_file", \.password, .passwordHashFile, group: "password"),
        ConfigurationKey("password_credential", \.password, .passwordHashCredential, group: "password"),
        ConfigurationKey("certfp", \.certificates, .certificateFingerprints),
        ConfigurationKey("bearer", \.bearer, .tokenOwners),
        ConfigurationKey("rooms", \.rooms, .accountRooms),
        ConfigurationKey("admin", \.isAdmin, .boolean),
        ConfigurationKey("relaymsg", \.mayRelay, .boolean),
        ConfigurationKey("receipts", \.receipts, .choice),
        ConfigurationKey(
            named: "upstream", \.upstream, OwnLoginConfiguration.rows, label: \.room,
            expected: "a table of rooms, such as { lobby = { type = \"bearer\", token_file = \"/path\" } }",
            inline: true,
            initial: { _ in OwnLoginConfiguration() }),
    ]
}
