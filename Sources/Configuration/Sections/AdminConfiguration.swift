/// The admin socket.
package struct AdminConfiguration: Equatable, Sendable {
    /// A path, or one below the runtime directory, else the state directory; empty: no socket.
    package var socket = Self.fileName
    /// Permissions of the socket file. Beyond them, only the bridge's own user and root are answered.
    package var mode: UInt32? = 0o600

    static let fileName = "admin.sock"

    package init() {}

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "socket", \.socket, .string(ConfigurationChecks.oneLine),
            about: "a socket file, relative to `$RUNTIME_DIRECTORY`, else `state_dir`; empty: no socket"),
        ConfigurationKey(
            "mode", \.mode, .permissions,
            about: "its permissions, in octal; only the bridge's own user and root are answered",
            usual: "`0600`"),
    ]

    /// The socket file's path; nil: there is none.
    package func path(stateDirectory: String, environment: ConfigurationEnvironment) -> String? {
        if socket.isEmpty { return nil }
        if socket.hasPrefix("/") { return socket }
        // systemd separates several directories with colons.
        let runtime = environment.variables["RUNTIME_DIRECTORY"]?.split(separator: ":").first.map { String($0) }
        return "\(runtime ?? stateDirectory)/\(socket)"
    }
}
