import BridgeTypes

/// The complete, checked configuration: with defaults, with `[room_defaults]` applied to rooms, and with files and
/// variables read.
///
/// A field's initial value is its default. ``ConfigurationSchema`` has the row that reads it.
package struct Configuration: Equatable, Sendable {
    package var server = ServerConfiguration()
    /// At least one after loading.
    package var listeners = [ListenerConfiguration()]
    /// Backends that are described instead of built in.
    package var dialects: [DialectConfiguration] = []
    /// Defaults of rooms. Its name, channel and URL are empty.
    package var roomDefaults = RoomConfiguration()
    /// In the order of the file; names and channels are unique.
    package var rooms: [RoomConfiguration] = []
    /// In the order of the file; names are unique.
    package var backends: [BackendConfiguration] = []
    package var identity = IdentityConfiguration()
    /// Names are unique, compared case-insensitively.
    package var accounts: [AccountConfiguration] = []
    package var storage = StorageConfiguration()
    package var limits = LimitSettings()
    /// None by default: an unrequested port may belong to another program.
    package var http: [HTTPConfiguration] = []
    /// In the order of the file; names are unique.
    package var mirrors: [MirrorConfiguration] = []
    package var media = MediaConfiguration()
    package var admin = AdminConfiguration()
    package var log = LogConfiguration()

    package init() {}

    mutating func take(mirrors new: [MirrorConfiguration]) { mirrors = new }

    /// With nothing but the links of the configured rooms, all of which are wanted at once. An account's own log-in is a
    /// room beside the one that it is for: its link opens by the same steps.
    package func linksAlone(stateDirectory: String) -> Configuration {
        var reduced = self
        reduced.listeners = []
        reduced.http = []
        reduced.mirrors = []
        reduced.media.publicURL = nil
        reduced.accounts = []
        reduced.identity.bearer = ""
        reduced.storage.place = .memory
        reduced.server.stateDirectory = stateDirectory
        let logins = accounts.flatMap { account in ownLogins(of: account).map { (account.name, $0.login, $0.room) } }
        reduced.rooms = rooms.filter { !$0.isTemplate }.flatMap { room in
            [room]
                + logins.filter { $0.1.room == room.name }.map { account, login, own in
                    var own = own
                    own.name = login.linkName(account: account)
                    own.channel += "/" + account
                    own.backend = login.backendName(account: account)
                    return own
                }
        }
        for index in reduced.rooms.indices { reduced.rooms[index].connect = .always }
        return reduced
    }
}

/// Every key that exists. Reading, type checks, messages, suggestions, variables' names and printing all come from these rows.
///
/// To add a key, add a field with its default to its section's type, and a row to that type's `rows`.
enum ConfigurationSchema {
    static let root = ConfigurationForm<Configuration>.section([
        ConfigurationKey(
            "server", \.server, .section(ServerConfiguration.rows),
            about: "the IRC server"),
        ConfigurationKey(
            tables: "listeners", \.listeners, ListenerConfiguration.rows, initial: { _ in ListenerConfiguration() },
            about: """
                plain text beyond loopback must be explicit, and needs a password in [identity] (or `require_login = \
                "never"`, written out)
                """),
        ConfigurationKey(
            "dialects", \.dialects, .dialects,
            about: """
                `[dialects.NAME]`, a described dialect, selected by `dialect = "NAME"`: `file` is a description in \
                JSON, relative to this file; or the same keys here, see docs/backends/custom.md
                """),
        ConfigurationKey(
            "room_defaults", \.roomDefaults, .section(RoomConfiguration.rows), reload: .reconnect,
            about: """
                defaults of [[rooms]]; each of these keys may also stand in [backends.NAME] and [[rooms]]
                """),
        ConfigurationKey(
            named: "backends", \.backends, BackendConfiguration.rows, label: \.name,
            check: ConfigurationChecks.backendName, initial: { BackendConfiguration(room: $0.roomDefaults) },
            reload: .reconnect, about: "settings shared by several rooms: one log-in, one host"),
        ConfigurationKey(
            tables: "rooms", \.rooms, RoomConfiguration.allRows, identity: "name",
            initial: { $0.roomDefaults }, below: RoomConfiguration.below,
            reload: .reconnect, about: "one channel and one WebSocket each"),
        ConfigurationKey(
            "identity", \.identity, .section(IdentityConfiguration.rows),
            about: "how clients log in, and the server password"),
        ConfigurationKey(
            tables: "accounts", \.accounts, AccountConfiguration.rows, identity: "name",
            initial: { _ in AccountConfiguration() },
            reload: .live,
            about: """
                one user each, with any number of clients; they log in with SASL, or with PASS name:password
                """),
        ConfigurationKey(
            "storage", \.storage, .section(StorageConfiguration.rows),
            about: """
                persistent storage: messages, also private ones, outboxes, nicks, markers, preferences
                """),
        ConfigurationKey(
            "limits", \.limits, .section(LimitSettings.rows),
            about: "rates may be `off`"),
        ConfigurationKey(
            tables: "http", \.http, HTTPConfiguration.rows, initial: { _ in HTTPConfiguration() },
            about: "health checks for supervisors; without a table there is no HTTP"),
        ConfigurationKey(
            tables: "mirrors", \.mirrors, MirrorConfiguration.rows, identity: "name",
            initial: { _ in MirrorConfiguration() }, reload: .live,
            about: "rooms in the tools that a team has already, see docs/MIRRORS.md"),
        ConfigurationKey(
            "media", \.media, .section(MediaConfiguration.rows),
            about: """
                files: uploads (FILEHOST), and signed links of the bridge's own, see docs/BACKENDS.md#files
                """),
        ConfigurationKey(
            "admin", \.admin, .section(AdminConfiguration.rows),
            about: "the socket of `chatbridge status`, `tail` and others, see docs/ADMIN.md"),
        ConfigurationKey(
            "log", \.log, .section(LogConfiguration.rows),
            about: "the log"),
    ])

    /// The rows' outlines, in order.
    static var outlines: [ConfigurationOutline] { root.shape.keys }

    /// The defaults, with one of each table that there may be several of: what the documentation shows.
    static let sample: Configuration = {
        var sample = Configuration()
        var room = RoomConfiguration()
        room.name = "lobby"
        room.url = try? UpstreamURL(parsing: "ws://127.0.0.1:8080/chat")
        sample.rooms = [room]
        var backend = BackendConfiguration(name: "main")
        backend.room.url = try? UpstreamURL(parsing: "wss://chat.example.com/ws/{room}")
        sample.backends = [backend]
        var account = AccountConfiguration()
        account.name = "alice"
        account.certificates = [String(repeating: "0123456789abcdef", count: 4)]
        sample.accounts = [account]
        sample.http = [HTTPConfiguration()]
        var mirror = MirrorConfiguration()
        mirror.name = "team"
        mirror.kind = .slack
        mirror.rooms = ["lobby"]
        mirror.url = .file("/run/secrets/team-hook")
        sample.mirrors = [mirror]
        return sample
    }()
}
