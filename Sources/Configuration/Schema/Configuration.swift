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
    package var limits = LimitsConfiguration()
    /// None by default: an unrequested port may belong to another program.
    package var http: [HTTPConfiguration] = []
    package var media = MediaConfiguration()
    package var admin = AdminConfiguration()
    package var log = LogConfiguration()

    package init() {}
}

/// Every key that exists. Reading, type checks, messages, suggestions, variables' names and printing all come from these rows.
///
/// To add a key, add a field with its default to its section's type, and a row to that type's `rows`.
enum ConfigurationSchema {
    static let root = ConfigurationForm<Configuration>.section([
        ConfigurationKey("server", \.server, .section(ServerConfiguration.rows)),
        ConfigurationKey(
            tables: "listeners", \.listeners, ListenerConfiguration.rows, initial: { _ in ListenerConfiguration() }),
        ConfigurationKey("dialects", \.dialects, .dialects),
        ConfigurationKey("room_defaults", \.roomDefaults, .section(RoomConfiguration.rows)),
        ConfigurationKey(
            named: "backends", \.backends, BackendConfiguration.rows, label: \.name,
            check: ConfigurationChecks.backendName, initial: { BackendConfiguration(room: $0.roomDefaults) }),
        ConfigurationKey(
            tables: "rooms", \.rooms, RoomConfiguration.ownRows + RoomConfiguration.rows, identity: "name",
            initial: { $0.roomDefaults }, below: RoomConfiguration.below),
        ConfigurationKey("identity", \.identity, .section(IdentityConfiguration.rows)),
        ConfigurationKey(
            tables: "accounts", \.accounts, AccountConfiguration.rows, identity: "name",
            initial: { _ in AccountConfiguration() }),
        ConfigurationKey("storage", \.storage, .section(StorageConfiguration.rows)),
        ConfigurationKey("limits", \.limits, .section(LimitsConfiguration.rows)),
        ConfigurationKey(tables: "http", \.http, HTTPConfiguration.rows, initial: { _ in HTTPConfiguration() }),
        ConfigurationKey("media", \.media, .section(MediaConfiguration.rows)),
        ConfigurationKey("admin", \.admin, .section(AdminConfiguration.rows)),
        ConfigurationKey("log", \.log, .section(LogConfiguration.rows)),
    ])
}
