import Dialects

/// Every key that exists: its name, its field, its form and a line about it.
///
/// Reading, type checks, messages, suggestions, variables' names and printing all come from these rows. To add a key, add
/// a row here and a field with its default in ``Configuration``.
enum ConfigurationSchema {
    static let root = ConfigurationForm<Configuration>.section(keys)

    static let keys: [ConfigurationKey<Configuration>] = [
        ConfigurationKey("server", \.server, .section(server), "the IRC server itself"),
        ConfigurationKey(
            tables: "listeners", \.listeners, listener, initial: { _ in ListenerConfiguration() },
            "where IRC clients connect"),
        ConfigurationKey("dialects", \.dialects, .dialects, "backends that are described here, by name"),
        ConfigurationKey("room_defaults", \.roomDefaults, .section(roomSettings), "whatever [[rooms]] does not say"),
        ConfigurationKey(
            named: "backends", \.backends, backend, label: \.name, check: ConfigurationChecks.backendName,
            initial: { BackendConfiguration(room: $0.roomDefaults) },
            "what several rooms have in common: one login, one host"),
        ConfigurationKey(
            tables: "rooms", \.rooms, roomNames + roomSettings, identity: "name", initial: { $0.roomDefaults },
            below: RoomConfiguration.below,
            "one upstream WebSocket session each"),
        ConfigurationKey("identity", \.identity, .section(identity), "who may connect, and who people are"),
        ConfigurationKey(
            tables: "accounts", \.accounts, account, identity: "name", initial: { _ in AccountConfiguration() },
            "who may log in"),
        ConfigurationKey("storage", \.storage, .section(StorageConfiguration.rows), "persistent storage"),
        ConfigurationKey("limits", \.limits, .section(limits), "what one client or backend may cost"),
        ConfigurationKey(
            tables: "http", \.http, http, initial: { _ in HTTPConfiguration() },
            "where supervisors ask whether all is well, and files are served"),
        ConfigurationKey("media", \.media, .section(MediaConfiguration.rows), "files under links of our own"),
        ConfigurationKey("log", \.log, .section(log), "what is written where"),
    ]

    // MARK: - Server and listeners

    /// Longest wait for queues at shutdown; service managers kill long before an hour.
    static let maxDrain: Duration = .seconds(3600)

    static let server: [ConfigurationKey<ServerConfiguration>] = [
        ConfigurationKey(
            "instance_id", \.instanceID, .string(ConfigurationChecks.instanceID),
            "seeds the stable upstream ids of IRC users; default: random, stored in state_dir"),
        ConfigurationKey(
            "name", \.name, .string(ConfigurationChecks.serverName), "server name on IRC; default: host name"),
        ConfigurationKey("network", \.network, .string(ConfigurationChecks.network), "ISUPPORT NETWORK"),
        ConfigurationKey(
            "description", \.description, .string(ConfigurationChecks.oneLine), "what LINKS and WHOIS say of the server"
        ),
        ConfigurationKey(
            "icon", \.icon, .string(ConfigurationChecks.icon),
            "https:// address of an image that stands for the network"),
        ConfigurationKey("motd", \.motd, .string(), group: "motd", "message of the day; or motd_file = \"/path\""),
        ConfigurationKey("motd_file", \.motd, .fileContents, group: "motd", "a file with the message of the day"),
        ConfigurationKey(
            "state_dir", \.stateDirectory, .string(),
            "default: $STATE_DIRECTORY, else $XDG_STATE_HOME/chatbridge, else ./state"),
        ConfigurationKey("drain", \.drain, .duration(), "SIGTERM: longest wait for queues to empty"),
    ]

    static let listener: [ConfigurationKey<ListenerConfiguration>] =
        listenerAddress + ListenerConfiguration.webKeys + ListenerConfiguration.proxyKeys
        + ListenerConfiguration.stsKeys

    private static let listenerAddress: [ConfigurationKey<ListenerConfiguration>] = [
        ConfigurationKey(
            "bind", \.bind, .listenerAddress,
            "irc:// on loopback, ircs:// with TLS, irc+insecure:// where others can listen in, irc+unix:///PATH; "
                + "IRC over WebSocket: ws://, wss://, ws+insecure://, ws+unix://"),
        ConfigurationKey("mode", \.mode, .permissions, "of a socket file, in octal; default: \"0660\""),
        ConfigurationKey(
            "group", \.group, ConfigurationForm<String>.string(ConfigurationChecks.oneLine).optional(from: ""),
            "of a socket file, by name or number"),
        ConfigurationKey(
            "cert", \.certificate, .string(), "ircs: a PEM file, own certificate first; read again on change"),
        ConfigurationKey("key", \.key, .string(), "ircs: a PEM file with the certificate's private key"),
        ConfigurationKey("min_tls", \.minimumTLS, .choice, "ircs: 1.2 | 1.3"),
        ConfigurationKey(
            "client_ca", \.clientAuthorities, .string(), "ircs: ask for client certificates signed by these"),
    ]

    // MARK: - Rooms

    static let roomNames: [ConfigurationKey<RoomConfiguration>] = [
        ConfigurationKey(
            "name", \.name, .string(ConfigurationChecks.roomName), "a-z 0-9 _ -; used in logs; \"*\": any channel"),
        ConfigurationKey("channel", \.channel, .string(ConfigurationChecks.channel), "default: \"#\" and the name"),
        ConfigurationKey("topic", \.topic, .string(ConfigurationChecks.oneLine), "the channel's topic"),
        ConfigurationKey(
            "backend", \.backend, .string(), "a [backends.NAME]: what the room does not say is said there"),
        ConfigurationKey(
            "url", \.url, .upstreamURL,
            "ws:// or wss://HOST[:PORT]/PATH, or ws+unix:///SOCKET:/PATH; {room} is upstream_room"),
        ConfigurationKey(
            "upstream_room", \.upstreamRoom, .string(ConfigurationChecks.upstreamRoom),
            "id or name on the backend; default: the name"),
        ConfigurationKey("options", \.options, .dialectOptions, "the dialect's own settings"),
    ]

    static let backend: [ConfigurationKey<BackendConfiguration>] =
        [
            ConfigurationKey(
                "url", \.room.url, .upstreamURL,
                "ws:// or wss://HOST[:PORT]/PATH, or ws+unix:///SOCKET:/PATH; {room} is each room's upstream_room"),
            ConfigurationKey(
                "http_base", \.room.httpBase, .httpBase, "for calls and media; default: the origin of url"),
            ConfigurationKey("user", \.user, .string(ConfigurationChecks.oneLine), "whose account the rooms use"),
            ConfigurationKey("password", \.password, .secretText, group: "password", "of that account"),
            ConfigurationKey("password_file", \.password, .secretFile, group: "password", "a file with it"),
            ConfigurationKey(
                "password_credential", \.password, .secretCredential, group: "password", "a systemd credential with it"),
            ConfigurationKey("options", \.room.options, .dialectOptions, "the dialect's own settings"),
        ] + roomSettings.map { $0.lifted(to: \.room) }

    static let roomSettings: [ConfigurationKey<RoomConfiguration>] = [
        ConfigurationKey(
            "dialect", \.dialect, .dialect,
            "the backend's JSON: \(DialectTable.names.joined(separator: " | ")), or a name of [dialects]"),
        ConfigurationKey("identity", \.identity, .choice, "who speaks upstream: auto | puppet | single"),
        ConfigurationKey("receipts", \.receipts, .choice, "read receipts to the backend: marker | speaking | off"),
        ConfigurationKey(
            "member_idle", \.memberIdle, .durationOrOff, "a person leaves after this, where the wire has no leave"),
        ConfigurationKey(
            "subprotocol", \.subprotocols, .subprotocols, "offered in Sec-WebSocket-Protocol, in order"),
        ConfigurationKey(
            "require_subprotocol", \.requiresSubprotocol, .boolean, "a backend that chooses none is refused"),
        ConfigurationKey("headers", \.headers, .headers, "more fields for the handshake; values are never shown"),
        ConfigurationKey("auth", \.auth, .section(AuthConfiguration.rows, inline: true), "how we prove who we are"),
        ConfigurationKey(
            "proxy", \.proxy, .proxy,
            "http://USER:PASSWORD@HOST:PORT, \"off\", or \"\": what HTTPS_PROXY and the like say"),
        ConfigurationKey("tls", \.tls, .section(upstreamTLS, inline: true), "how wss:// is secured"),
        ConfigurationKey("user_agent", \.userAgent, .string(ConfigurationChecks.headerValue), "sent in the handshake"),
        ConfigurationKey(
            "connect_timeout", \.connectTimeout, .duration(atLeast: .milliseconds(1)), "for the TCP connection"),
        ConfigurationKey(
            "handshake_timeout", \.handshakeTimeout, .duration(atLeast: .milliseconds(1)), "for the HTTP upgrade"),
        ConfigurationKey("ping", \.ping, .durationOrOff, "how often a quiet link is tested"),
        ConfigurationKey(
            "pong_timeout", \.pongTimeout, .duration(atLeast: .milliseconds(1)), "then the link counts as lost"),
        ConfigurationKey("max_frame", \.maxFrameBytes, .size(1024...maxFrameLimit), "largest frame we take"),
        ConfigurationKey("max_message", \.maxMessageBytes, .size(1024...maxFrameLimit), "largest message we take"),
        ConfigurationKey("compression", \.compression, .choice, "permessage-deflate: off | offer"),
        ConfigurationKey(
            "backoff", \.backoff, .section(backoff, inline: true), "what is not written is the dialect's own"),
        ConfigurationKey("queue", \.queue, .section(queue, inline: true), "what is said while the upstream is away"),
        ConfigurationKey("connect", \.connect, .choice, "always | while-joined: while somebody is in the room"),
        // 500 fill every client's window many times over.
        ConfigurationKey(
            "history_on_join", \.historyOnJoin, .integer(0...500),
            "newest messages for a client that enters and cannot ask for them; 0: none"),
    ]

    static let upstreamTLS: [ConfigurationKey<UpstreamTLSConfiguration>] = [
        ConfigurationKey("ca", \.authorities, .string(), "a PEM file; default: the system's authorities"),
        ConfigurationKey("client_cert", \.clientCertificate, .string(), "a PEM file, shown when the server asks"),
        ConfigurationKey("client_key", \.clientKey, .string(), "a PEM file with its private key"),
        ConfigurationKey(
            "server_name", \.serverName, .string(ConfigurationChecks.tlsName), "SNI and checked name; default: the host"
        ),
        ConfigurationKey("pin_sha256", \.pins, .pins, "the server's key must be one of these"),
        ConfigurationKey("min_version", \.minimumVersion, .choice, "1.2 | 1.3"),
        ConfigurationKey("insecure", \.isInsecure, .boolean, "true: nothing is checked, anybody can listen in"),
    ]

    /// Largest frame or message, in bytes; each room may hold one such buffer.
    static let maxFrameLimit = 256 * 1024 * 1024

    static let backoff: [ConfigurationKey<BackoffConfiguration>] = [
        ConfigurationKey(
            "min", \.min, ConfigurationForm<Duration>.duration(atLeast: .milliseconds(100)).optional(from: .zero),
            "wait before the first try"),
        ConfigurationKey(
            "max", \.max, ConfigurationForm<Duration>.duration(atLeast: .milliseconds(100)).optional(from: .zero),
            "longest wait"),
        ConfigurationKey(
            "factor", \.factor, ConfigurationForm<Double>.number(1...100).optional(from: 1), "growth from try to try"),
        ConfigurationKey(
            "jitter", \.jitter, ConfigurationForm<Double>.number(0...1).optional(from: 0),
            "share of the wait that varies"),
        ConfigurationKey("reset_after", \.resetAfter, .duration(), "usable for this long: start again from min"),
    ]

    static let queue: [ConfigurationKey<QueueConfiguration>] = [
        ConfigurationKey("max_messages", \.maxMessages, .integer(0...1_000_000), "beyond it messages are refused"),
        ConfigurationKey("max_age", \.maxAge, .durationOrOff, "then the author is told"),
    ]

    // MARK: - People

    static let identity: [ConfigurationKey<IdentityConfiguration>] = [
        ConfigurationKey(
            "require_login", \.requireLogin, .choice, "never | remote (on listeners beyond loopback) | always"),
        ConfigurationKey(
            "registration", \.registration, .choice, "who may make an account: off | local (on loopback) | on"),
        ConfigurationKey(
            "registration_before_connect", \.registrationBeforeConnect, .boolean,
            "whether a client may make it before it is let in"),
        ConfigurationKey(
            "rejoin", \.rejoin, .boolean, "accounts are in their rooms again when they log in, until they leave them"),
        ConfigurationKey("sasl", \.sasl, .mechanisms, "ways to log in; [] for none but PASS"),
        ConfigurationKey(
            "bearer", \.bearer, .string(ConfigurationChecks.oneLine),
            "for OAUTHBEARER: the backend that is asked whose a token is"),
        ConfigurationKey(
            "password", \.password, .password, group: "password",
            "one PASS for everybody, plain or as hash-password prints it"),
        ConfigurationKey("password_file", \.password, .passwordFile, group: "password", "a file with the password"),
        ConfigurationKey(
            "password_credential", \.password, .passwordCredential, group: "password",
            "a systemd credential with the password"),
        ConfigurationKey(
            tables: "webirc", \.webirc, WebIRCConfiguration.keys, initial: { _ in WebIRCConfiguration() },
            "gateways that may say for whom they connect, with WEBIRC"),
        ConfigurationKey("nicks", \.nicks, .section(nicks), "how names become nicks"),
    ]

    static let account: [ConfigurationKey<AccountConfiguration>] = [
        ConfigurationKey("name", \.name, .string(ConfigurationChecks.accountName), "1 to 30 bytes, as a nick"),
        ConfigurationKey(
            "password", \.password, .passwordHash, group: "password", "as chatbridge hash-password prints it"),
        ConfigurationKey(
            "password_file", \.password, .passwordHashFile, group: "password", "a file with that"),
        ConfigurationKey(
            "certfp", \.certificates, .certificateFingerprints,
            "SHA-256 of client certificates, as chatbridge cert fingerprint prints them"),
        ConfigurationKey(
            "bearer", \.bearer, .tokenOwners,
            "as whom the backend of identity.bearer knows it: ids, or names where it has no ids"),
        ConfigurationKey("rooms", \.rooms, .accountRooms, "names of the rooms that it may enter; [\"*\"] for all"),
        ConfigurationKey("admin", \.isAdmin, .boolean, "an operator: moderates rooms, and OPER takes its password"),
        ConfigurationKey("relaymsg", \.mayRelay, .boolean, "may speak under others' names with RELAYMSG, for mirrors"),
        ConfigurationKey(
            "receipts", \.receipts, .choice, "the person's own choice over the room's: marker | speaking | off"),
        ConfigurationKey(
            "upstream", \.upstream, .ownLogins,
            "logins of its own, by room, with the keys of auth: there it speaks as itself"),
    ]

    static let nicks: [ConfigurationKey<NicksConfiguration>] = [
        ConfigurationKey("suffix", \.suffix, .string(ConfigurationChecks.nickSuffix), "appended to upstream nicks"),
        // 16 leaves room for "user-" and 8 digits; 63 keeps nick!user@host and a message in one line.
        ConfigurationKey("max_length", \.maxLengthBytes, .integer(16...63), "bytes"),
        ConfigurationKey(
            "invalid", \.invalid, .string(ConfigurationChecks.nickReplacement),
            "stands for characters that IRC cannot have"),
        ConfigurationKey("collision", \.collision, .choice, "number (bob2) | underscore (bob_)"),
        ConfigurationKey("utf8", \.utf8, .boolean, "false: ASCII only"),
    ]

    // MARK: - Limits

    /// Smallest receive queue, in bytes: one line with all its tags. Source: IRCv3 message-tags, "Size limit".
    static let minRecvqBytes = 8191 + 512
    /// Smallest send queue, in bytes: a welcome and a long answer's first part.
    static let minSendqBytes = 16 * 1024
    /// Largest queue of one client, in bytes; times max_clients it must fit the memory.
    static let maxQueueBytes = 1024 * 1024 * 1024

    static let limits: [ConfigurationKey<LimitsConfiguration>] = [
        ConfigurationKey("max_clients", \.maxClients, .integer(1...1_000_000), "IRC clients at a time"),
        ConfigurationKey("max_clients_per_ip", \.maxClientsPerIP, .integer(1...1_000_000), "not for loopback"),
        ConfigurationKey("accepts_per_second_per_ip", \.acceptsPerSecondPerIP, .rate, "not for loopback; or \"off\""),
        ConfigurationKey(
            "registration_timeout", \.registrationTimeout, .duration(atLeast: .seconds(1)), "to say NICK and USER"),
        ConfigurationKey("ping_interval", \.pingInterval, .durationOrOff, "how often a quiet client is tested"),
        ConfigurationKey("ping_timeout", \.pingTimeout, .duration(atLeast: .seconds(1)), "then it counts as gone"),
        ConfigurationKey(
            "messages_per_second", \.messagesPerSecond, .rate, "for each client, by token bucket; or \"off\""),
        ConfigurationKey("messages_burst", \.messagesBurst, .integer(1...100_000), "at once, before the rate counts"),
        ConfigurationKey(
            "sendq", \.sendqBytes, .size(minSendqBytes...maxQueueBytes),
            "past it the client is disconnected: SendQ exceeded"),
        ConfigurationKey("recvq", \.recvqBytes, .size(minRecvqBytes...maxQueueBytes), "read ahead from one client"),
        ConfigurationKey("multiline", \.multiline, .section(multiline, inline: true), "one message of several lines"),
        ConfigurationKey(
            "upstream_messages_per_second", \.upstreamMessagesPerSecond, .rate, "for each room; or \"off\""),
        ConfigurationKey(
            "upstream_connects_per_second", \.upstreamConnectsPerSecond, .rate, "all rooms together; or \"off\""),
        ConfigurationKey("members_per_room", \.membersPerRoom, .integer(1...1_000_000), "the longest absent go first"),
        ConfigurationKey(
            "template_rooms", \.templateRooms, .integer(0...10_000), "open at a time through the room \"*\""),
        ConfigurationKey(
            "backlog", \.backlog, .integer(0...100_000), "messages of a room for a client that returns; 0: none"),
        ConfigurationKey(
            "history_limit", \.historyLimit, .integer(1...10_000), "messages in one answer to CHATHISTORY"),
    ]

    static let multiline: [ConfigurationKey<MultilineLimits>] = [
        ConfigurationKey("max_bytes", \.maxBytes, .size(512...1024 * 1024), "of text"),
        ConfigurationKey("max_lines", \.maxLines, .integer(1...10_000), "lines"),
    ]

    // MARK: - HTTP

    static let http: [ConfigurationKey<HTTPConfiguration>] = [
        ConfigurationKey(
            "bind", \.bind, .httpListenerAddress, "http:// on loopback, http+insecure:// where others can listen in"),
        ConfigurationKey("serve", \.serve, .httpServices, "health: /healthz and /readyz; media: files, see [media]"),
        ConfigurationKey(
            "hosts", \.hosts, .hostNames, "accepted Host names; loopback listeners also take names of this machine"),
        ConfigurationKey(
            "trusted_proxies", \.trustedProxies, .trustedPeers,
            "web servers whose X-Forwarded-For counts; of others it is not looked at"),
    ]

    // MARK: - Log

    static let log: [ConfigurationKey<LogConfiguration>] = [
        ConfigurationKey(
            "format", \.format, .choice, "auto: text on a terminal, journal under systemd, else json | text | json"),
        ConfigurationKey("level", \.level, .choice, "error | warn | info | debug | trace"),
        ConfigurationKey("levels", \.levels, .subsystemLevels, "levels of subsystems, as { upstream = \"debug\" }"),
        ConfigurationKey("to", \.to, .logDestination, "stderr, or a file's path"),
        ConfigurationKey("messages", \.messages, .boolean, "true: chat text may appear, at trace"),
    ]
}
