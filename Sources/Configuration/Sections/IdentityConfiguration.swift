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
        ConfigurationKey(
            "require_login", \.requireLogin, .choice,
            about: """
                log-in is required: `remote`: on listeners beyond loopback; `always`: everywhere; `never`: nowhere
                """),
        ConfigurationKey(
            "registration", \.registration, .choice,
            about: """
                registration of accounts with `REGISTER`: `local`: on loopback and socket files; `on`: everywhere; \
                needs [storage]
                """),
        ConfigurationKey(
            "registration_before_connect", \.registrationBeforeConnect, .boolean,
            about: """
                allows `REGISTER` before registration of the connection ends; never with a server password
                """),
        ConfigurationKey(
            "rejoin", \.rejoin, .boolean,
            about: """
                automatic JOIN of an account's rooms at log-in, until `PART` or a kick; each account can override it \
                at `*bridge`
                """),
        ConfigurationKey(
            "sasl", \.sasl, .choices(of: "mechanisms", unknown: "is no way to log in here"),
            about: "SASL mechanisms"),
        ConfigurationKey(
            "bearer", \.bearer, .string(ConfigurationChecks.oneLine),
            about: """
                for `OAUTHBEARER`: the backend that identifies the owner of a client's token; the account is \
                `<id>@<backend>`, or the configured one that lists the owner
                """),
        ConfigurationKey(
            "password", \.password, .password, group: "password",
            about: """
                the server password (PASS), plain or as printed by `chatbridge hash-password`; one of the three
                """, example: #""${SERVER_PASSWORD}""#),
        ConfigurationKey(
            "password_file", \.password, .passwordFile, group: "password",
            about: "a file with the server password", example: #""/run/secrets/server-password""#),
        ConfigurationKey(
            "password_credential", \.password, .passwordCredential, group: "password",
            about: "the name of a systemd credential with the server password", example: #""server-password""#),
        ConfigurationKey(
            tables: "webirc", \.webirc, WebIRCConfiguration.rows, initial: { _ in WebIRCConfiguration() },
            about: """
                gateways of web clients, trusted for client addresses in `WEBIRC`: limits and log then use the \
                client's
                """, example: #"[{ password_file = "/run/secrets/gateway", from = ["10.0.0.1", "unix"] }]"#),
        ConfigurationKey(
            "nicks", \.nicks, .section(NicksConfiguration.rows),
            about: "how nicks are made of the names of upstream users"),
    ]
}

/// A gateway that names its clients' addresses with WEBIRC.
package struct WebIRCConfiguration: Equatable, Sendable {
    /// Nil only until loading has complained.
    package var password: PasswordVerifier?
    package var from: [TrustedPeer] = []

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "password", \.password, .password, group: "password",
            about: """
                the gateway's password, plain or as printed by `chatbridge hash-password`; one of the three
                """,
            usual: "required", example: #""${GATEWAY_PASSWORD}""#),
        ConfigurationKey(
            "password_file", \.password, .passwordFile, group: "password",
            about: "a file with the gateway's password", example: #""/run/secrets/gateway""#),
        ConfigurationKey(
            "password_credential", \.password, .passwordCredential, group: "password",
            about: "the name of a systemd credential with the gateway's password", example: #""gateway""#),
        ConfigurationKey(
            "from", \.from, .list(of: "addresses"),
            about: "the gateway's addresses",
            usual: "required"),
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
        ConfigurationKey(
            "suffix", \.suffix, .string(ConfigurationChecks.nickSuffix),
            about: "appended to nicks of upstream users, as `_up`"),
        // 16 leaves room for "user-" and 8 digits; with 63, nick!user@host and a message fit in one line.
        ConfigurationKey(
            "max_length", \.maxLengthBytes, .integer(16...63),
            about: "bytes, the suffix included"),
        ConfigurationKey(
            "invalid", \.invalid, .string(ConfigurationChecks.nickReplacement),
            about: "replaces characters that are illegal in nicks"),
        ConfigurationKey(
            "collision", \.collision, .choice,
            about: "a nick that is taken: `number`: `bob2`; `underscore`: `bob_`"),
        ConfigurationKey(
            "utf8", \.utf8, .boolean,
            about: "`false`: ASCII only"),
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
        ConfigurationKey(
            "name", \.name, .string(ConfigurationChecks.accountName),
            about: "a nick reserved for it: no `@`, no spaces",
            usual: "required"),
        ConfigurationKey(
            "password", \.password, .passwordHash, group: "password",
            about: "output of `chatbridge hash-password`; required without `certfp` and `bearer`",
            example: #""$scram-sha-256$…""#),
        ConfigurationKey(
            "password_file", \.password, .passwordHashFile, group: "password",
            about: "a file with the output of `chatbridge hash-password`", example: #""/etc/chatbridge/alice.hash""#),
        ConfigurationKey(
            "password_credential", \.password, .passwordHashCredential, group: "password",
            about: "the name of a systemd credential with the output of `chatbridge hash-password`",
            example: #""alice""#),
        ConfigurationKey(
            "certfp", \.certificates, .certificateFingerprints,
            about: """
                SHA-256 of client certificates, output of `chatbridge cert fingerprint`: for SASL EXTERNAL on \
                `ircs://`
                """,
            usual: "none"),
        ConfigurationKey(
            "bearer", \.bearer, .tokenOwners,
            about: """
                the account's ids at the backend of `bearer` in [identity], or names where it has no ids
                """),
        ConfigurationKey(
            "rooms", \.rooms, .accountRooms,
            about: """
                names of the rooms that it may enter; **no protection where clients may connect without an account, \
                or register one**: `chatbridge check` warns of that. For rooms that `*` opens, the names as in \
                `JOIN`
                """),
        ConfigurationKey(
            "admin", \.isAdmin, .boolean,
            about: """
                `true`: an administrator: marked in `WHOIS`, moderates rooms; `OPER` takes its name and password
                """),
        ConfigurationKey(
            "relaymsg", \.mayRelay, .boolean,
            about: "`true`: permits `RELAYMSG`, for bots that mirror a room"),
        ConfigurationKey(
            "receipts", \.receipts, .choice,
            about: "read receipts of this account: `marker`, `speaking`, `off`",
            usual: "the room's"),
        ConfigurationKey(
            named: "upstream", \.upstream, OwnLoginConfiguration.rows, label: \.room,
            expected: "a table of rooms, such as { lobby = { type = \"bearer\", token_file = \"/path\" } }",
            inline: true,
            initial: { _ in OwnLoginConfiguration() },
            reload: .restart,
            about: """
                the account's own log-ins, by room, with the keys of `auth`: its messages are then sent as itself, \
                without a prefix. Beside them `as`: its id or name at the backend, where that cannot be queried
                """, example: #"{ lobby = { type = "bearer", token_file = "/run/secrets/alice-lobby" } }"#),
    ]
}
