import IRCProtocol

/// The IRC server itself.
package struct ServerConfiguration: Equatable, Sendable {
    /// Empty: generated, and stored in the state directory.
    package var instanceID = ""
    /// The server's name on IRC. Loading replaces it by the host's name.
    package var name = "chatbridge.local"
    /// How names of users, channels and accounts are compared: ISUPPORT CASEMAPPING.
    package var casemapping = IRCCasemapping.ascii
    /// ISUPPORT NETWORK.
    package var network = "chatbridge"
    /// The server's description in LINKS and WHOIS; empty: the network's name, and none.
    package var description = ""
    /// URL of an image that stands for the network; empty for none.
    package var icon = ""
    /// Message of the day, lines separated by newlines; empty for none.
    package var motd = ""
    /// Empty until loading fills it in.
    package var stateDirectory = ""
    /// SIGTERM: longest wait for queues to empty. With the acknowledgements of clients and backends behind it, the default ends
    /// within the 10 s after which Docker and Podman kill a container.
    package var drain: Duration = .seconds(5)
    /// SIGTERM: time in which the bridge is not ready and still serves clients, before it drains.
    package var prestopDelay: Duration = .zero

    /// Fills in defaults that depend on the machine.
    mutating func complete(_ environment: ConfigurationEnvironment, isNamed: Bool) {
        if !isNamed {
            let host = environment.hostName
            let usual = host.contains(".") ? host : "\(host).local"
            if ConfigurationChecks.isServerName(usual) { name = usual }
        }
        guard stateDirectory.isEmpty else { return }
        // systemd separates several directories with colons.
        if let directory = environment.variables["STATE_DIRECTORY"]?.split(separator: ":").first {
            stateDirectory = String(directory)
        } else if let directory = environment.variables["XDG_STATE_HOME"], directory.hasPrefix("/") {
            stateDirectory = "\(directory)/chatbridge"
        } else {
            stateDirectory = "./state"
        }
    }

    /// Longest wait for queues, and before it, at shutdown; service managers kill long before an hour.
    static let maxDrain: Duration = .seconds(3600)

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "instance_id", \.instanceID, .string(ConfigurationChecks.instanceID),
            about: "seeds the stable upstream ids of IRC users",
            usual: "random, stored in `state_dir`"),
        ConfigurationKey(
            "name", \.name, .string(ConfigurationChecks.serverName),
            about: "server name on IRC",
            usual: "the host's name", example: #""irc.example.org""#),
        ConfigurationKey(
            "casemapping", \.casemapping, .choice,
            about: """
                comparison of nicks, channels and account names, ISUPPORT `CASEMAPPING`: `ascii` or `rfc1459`, where `[`, \
                `]`, `\\` and `~` are upper case letters too; may be changed, see docs
                """),
        ConfigurationKey(
            "network", \.network, .string(ConfigurationChecks.network),
            about: "the network's name: ISUPPORT `NETWORK`"),
        ConfigurationKey(
            "description", \.description, .string(ConfigurationChecks.oneLine), reload: .live,
            about: "the server's description in `LINKS` and `WHOIS`; `LINKS` defaults to the network"),
        ConfigurationKey(
            "icon", \.icon, .string(ConfigurationChecks.icon),
            about: "`https://` URL of the network's icon: ISUPPORT `draft/ICON`"),
        ConfigurationKey(
            "motd", \.motd, .string(), group: "motd", reload: .live,
            about: "message of the day"),
        ConfigurationKey(
            "motd_file", \.motd, .fileContents, group: "motd", reload: .live,
            about: "a file with the message of the day", example: #""/etc/chatbridge/motd.txt""#),
        ConfigurationKey(
            "state_dir", \.stateDirectory, .string(),
            about: "directory of persistent state",
            usual: "`$STATE_DIRECTORY`, `$XDG_STATE_HOME/chatbridge`, `./state`"),
        ConfigurationKey(
            "drain", \.drain, .duration(), reload: .live,
            about: """
                SIGTERM: time-out for sending the outboxes; more than 100 clients are disconnected over this time; at most \
                an hour
                """),
        ConfigurationKey(
            "prestop_delay", \.prestopDelay, .duration(), reload: .live,
            about: """
                SIGTERM: time from `/readyz` 503 until the listeners close; clients are served meanwhile
                """),
    ]
}
