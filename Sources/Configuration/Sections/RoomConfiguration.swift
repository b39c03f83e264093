import Dialects
import HTTPProtocol

package struct RoomConfiguration: Equatable, Sendable {
    /// The senders that IRC users have upstream.
    package enum Identity: String, CaseIterable, Sendable {
        /// As the dialect's table says.
        case auto
        case puppet
        case single
    }

    /// How IRC users see upstream people.
    package enum Mode: String, CaseIterable, Sendable {
        /// As IRC users.
        case puppet
        /// As `<name> text` of one nick.
        case relay
    }

    package enum Receipts: String, CaseIterable, Sendable {
        /// A moved read marker is sent upstream.
        case marker
        /// A message counts as reading the messages before it.
        case speaking
        case off
    }

    /// Whether frames may be compressed.
    package enum Compression: String, CaseIterable, Sendable {
        case off
        /// The server decides.
        case offer
    }

    package enum Connect: String, CaseIterable, Sendable {
        case always
        /// From the first join until some minutes after the last part.
        case whileJoined = "while-joined"
    }

    /// The name of a room that stands for any channel.
    package static let templateName = "*"

    /// `[a-z0-9_-]+`; names the room in logs and on the command line. ``templateName``: any joined channel is one.
    package var name = ""
    /// With its `#`.
    package var channel = ""
    package var topic = ""
    /// Nil only in ``Configuration/roomDefaults``.
    package var url: UpstreamURL?
    /// The room's id or name on the backend.
    package var upstreamRoom = ""
    /// A name of ``Configuration/backends``; empty: the room is a backend of its own, with its own name.
    package var backend = ""
    /// Where the backend's HTTP calls go, as its table says; nil: the origin of ``url``.
    package var httpBase: HTTPURL?
    /// The dialect's own settings.
    package var options = DialectOptionTree()

    /// A name of ``DialectTable``, never an alias, or of ``Configuration/dialects``.
    package var dialect = "envelope"
    package var mode = Mode.puppet
    /// Of ``Mode/relay``.
    package var relayNick = "relay"
    package var identity = Identity.auto
    package var receipts = Receipts.marker
    /// A person leaves after this long without a frame, where the wire has no leave. Nil: never.
    package var memberIdle: Duration? = .seconds(30 * 60)
    /// Offered in Sec-WebSocket-Protocol, in order.
    package var subprotocols: [String] = []
    package var requiresSubprotocol = false
    package var headers: [UpstreamHeader] = []
    @Shared package var auth = AuthConfiguration()
    package var proxy = UpstreamProxy.environment
    package var tls = UpstreamTLSConfiguration()
    package var userAgent = "chatbridge/\(BuildInformation.version)"
    package var connectTimeout: Duration = .seconds(10)
    package var handshakeTimeout: Duration = .seconds(10)
    /// Nil: no pings.
    package var ping: Duration? = .seconds(20)
    package var pongTimeout: Duration = .seconds(10)
    /// Bytes of payload.
    package var maxFrameBytes = 4 * 1024 * 1024
    /// Bytes of payload over all fragments.
    package var maxMessageBytes = 4 * 1024 * 1024
    package var compression = Compression.off
    package var backoff = BackoffConfiguration()
    package var queue = QueueConfiguration()
    package var connect = Connect.always
    /// So many of the newest messages for a client that enters; a screen of them.
    package var historyOnJoin = 20
    /// Counts for readiness.
    package var isRequired = true
    /// A room without a link for longer counts as failed. Nil: never.
    package var giveUpAfter: Duration?

    package init() {}

    package var isTemplate: Bool { name == Self.templateName }

    /// Fills in defaults that follow from other keys of the room.
    ///
    /// - Parameter takesName: the channel can be called as the room is.
    mutating func complete(takesName: Bool) {
        guard !isTemplate else {
            // Empty rooms that a channel opened cost nothing.
            connect = .whileJoined
            return
        }
        if channel.isEmpty, takesName { channel = "#\(name)" }
        if upstreamRoom.isEmpty { upstreamRoom = name }
    }

    /// Largest frame or message, in bytes; each room may hold one such buffer.
    static let maxFrameLimit = 256 * 1024 * 1024

    /// The keys of `[[rooms]]` alone.
    static let ownRows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "name", \.name, .string(ConfigurationChecks.roomName),
            about: """
                `a-z 0-9 _ -`, for the log and the environment; `*`: any other channel opens the backend's room of \
                that name, see `template_rooms` in [limits]
                """,
            usual: "required"),
        ConfigurationKey(
            "channel", \.channel, .string(ConfigurationChecks.channel), reload: .restart,
            about: "the channel on IRC",
            usual: "`#` and the name"),
        ConfigurationKey(
            "topic", \.topic, .string(ConfigurationChecks.oneLine), reload: .live,
            about: "the channel's topic, where the backend has none"),
        ConfigurationKey(
            "backend", \.backend, .string(), reload: .restart,
            about: """
                a [backends.NAME] with defaults for the room; without, the room is a backend of its own
                """),
        ConfigurationKey(
            "url", \.url, .upstreamURL,
            about: """
                `ws://` or `wss://HOST[:PORT]/PATH`, or `ws+unix:///SOCKET:/PATH`; `{room}` is `upstream_room`
                """,
            usual: "the backend's, or required"),
        ConfigurationKey(
            "upstream_room", \.upstreamRoom, .string(ConfigurationChecks.upstreamRoom), reload: .restart,
            about: "id or name on the backend",
            usual: "the name"),
        ConfigurationKey(
            "options", \.options, .dialectOptions, reload: .restart,
            about: "the dialect's own settings, see its page in docs/BACKENDS.md",
            usual: "the backend's"),
    ]

    /// All keys of `[[rooms]]`.
    static let allRows = ownRows + rows

    /// The keys that rooms, backends and `[room_defaults]` share.
    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "dialect", \.dialect, .dialect, reload: .restart,
            about: """
                the backend's JSON: `envelope`, `jwt-rooms`, `typed`, `plainjson`, `directus`, `swiftchat`, or a \
                [dialects.NAME]; see docs/BACKENDS.md
                """),
        ConfigurationKey(
            "mode", \.mode, .choice, reload: .restart,
            about: """
                upstream users are IRC users; `relay`: one nick says `<name> text` for all of them, without their joins, \
                leaves, names, typing, receipts and reactions
                """),
        ConfigurationKey(
            "relay_nick", \.relayNick, .string(ConfigurationChecks.relayNick), reload: .restart,
            about: """
                that nick, in `relay` mode
                """),
        ConfigurationKey(
            "identity", \.identity, .choice, reload: .restart,
            about: """
                senders upstream. `puppet`: each IRC user is a user; `single`: one account sends `<nick> text`; \
                `auto`: the dialect's default
                """),
        ConfigurationKey(
            "receipts", \.receipts, .choice, reload: .live,
            about: """
                read receipts to the backend. `marker`: when the read marker moves; `speaking`: also when a user \
                without markers sends a message; `off`
                """),
        ConfigurationKey(
            "member_idle", \.memberIdle, .durationOrOff, reload: .live,
            about: """
                idle time of upstream users until PART, where the dialect has no leaves; `off`: never
                """),
        ConfigurationKey(
            "subprotocol", \.subprotocols, .subprotocols,
            about: "offered in `Sec-WebSocket-Protocol`, in order"),
        ConfigurationKey(
            "require_subprotocol", \.requiresSubprotocol, .boolean,
            about: "`true`: a backend that selects none is refused"),
        ConfigurationKey(
            "headers", \.headers, .headers,
            about: #"additional header fields of the handshake, as `{ X-Team = "${TEAM}" }`"#),
        ConfigurationKey(
            "auth", \.auth, .section(AuthConfiguration.rows, inline: true),
            about: "the room's credentials, see docs/BACKENDS.md#logging-in"),
        ConfigurationKey(
            "proxy", \.proxy, .proxy,
            about: "`http://user:password@host:port`, or `off`",
            usual: "`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`"),
        ConfigurationKey(
            "tls", \.tls, .section(UpstreamTLSConfiguration.rows, inline: true),
            about: "TLS of `wss://`"),
        ConfigurationKey(
            "user_agent", \.userAgent, .string(ConfigurationChecks.headerValue),
            about: "User-Agent of the handshake",
            usual: "`chatbridge/VERSION`", example: #""chatbridge""#),
        ConfigurationKey(
            "connect_timeout", \.connectTimeout, .duration(atLeast: .milliseconds(1)),
            about: "time for name lookup, TCP and TLS"),
        ConfigurationKey(
            "handshake_timeout", \.handshakeTimeout, .duration(atLeast: .milliseconds(1)),
            about: "time for the WebSocket handshake"),
        ConfigurationKey(
            "ping", \.ping, .durationOrOff,
            about: "ping interval of an idle link; `off`: no pings"),
        ConfigurationKey(
            "pong_timeout", \.pongTimeout, .duration(atLeast: .milliseconds(1)),
            about: "time for the answer to a ping, then the link is lost"),
        ConfigurationKey(
            "max_frame", \.maxFrameBytes, .size(1024...maxFrameLimit),
            about: "largest frame from the backend, payload; a larger one ends the link with code 1009"),
        ConfigurationKey(
            "max_message", \.maxMessageBytes, .size(1024...maxFrameLimit),
            about: "largest message from the backend, over all its frames"),
        ConfigurationKey(
            "compression", \.compression, .choice, reload: .restart,
            about: """
                `offer`: permessage-deflate, with `client_no_context_takeover`; costs 40 KiB a room where the \
                backend accepts it
                """),
        ConfigurationKey(
            "backoff", \.backoff, .section(BackoffConfiguration.rows, inline: true),
            about: "delays between connection attempts"),
        ConfigurationKey(
            "queue", \.queue, .section(QueueConfiguration.rows, inline: true), reload: .live,
            about: "limits of the outbox: `max_age` is the longest wait of a message for the backend"),
        ConfigurationKey(
            "connect", \.connect, .choice, reload: .live,
            about: "`while-joined`: from the first JOIN until 5 minutes after the last member left"),
        // 500 fill every client's window many times over.
        ConfigurationKey(
            "history_on_join", \.historyOnJoin, .integer(0...500), reload: .live,
            about: """
                number of recent messages at JOIN for clients without `CHATHISTORY` and without a cursor; none is \
                repeated on a connection
                """),
        ConfigurationKey(
            "required", \.isRequired, .boolean, reload: .live,
            about: """
                `false`: the room does not count for `/readyz`
                """),
        ConfigurationKey(
            "give_up_after", \.giveUpAfter, .durationOrOff, reload: .live,
            about: """
                a duration: a room without a link for longer counts as failed, for `/readyz` and with an error in the \
                log; it goes on trying
                """),
    ]
}

extension RoomConfiguration {
    /// ``httpBase``, or the origin of the URL.
    package var effectiveHTTPBase: HTTPURL? {
        if let httpBase { return httpBase }
        guard let url, !url.isUnixSocket else { return nil }
        let scheme = url.isSecure ? "https" : "http"
        let port = url.endpoint.port == (url.isSecure ? 443 : 80) ? "" : ":\(url.endpoint.port)"
        let host = url.endpoint.isIPv6Literal ? "[\(url.endpoint.host)]" : url.endpoint.host
        return try? HTTPURL(parsing: "\(scheme)://\(host)\(port)")
    }

    /// The name of the backend, also where the room is one by itself. A template that is one has no name to give, and takes
    /// its dialect's.
    package var backendName: String { !backend.isEmpty ? backend : isTemplate ? dialect : name }
}

/// How a lost link is tried again. Nil fields are the dialect's business.
package struct BackoffConfiguration: Equatable, Sendable {
    /// Wait before the first try.
    package var min: Duration?
    package var max: Duration?
    /// Growth from try to try.
    package var factor: Double?
    /// Share of the wait by which it varies either way, 0 to 1.
    package var jitter: Double?
    /// The count of failures starts again after the link was usable for this long.
    package var resetAfter: Duration = .seconds(10)

    /// The dialect's own numbers with the written ones in their place.
    package func applied(to traits: BackoffTraits) -> BackoffTraits {
        let first = min ?? traits.first
        return BackoffTraits(
            first: first, factor: factor ?? traits.factor,
            // One of the two may be the dialect's: a cap below the first wait would never be reached upwards.
            cap: Swift.max(max ?? traits.cap, first), jitter: jitter ?? traits.jitter,
            degradedAfter: traits.degradedAfter)
    }

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "min", \.min, ConfigurationForm<Duration>.duration(atLeast: .milliseconds(100)).optional(from: .zero),
            about: "the first delay",
            usual: "the dialect's, mostly `1s`", example: #""1s""#),
        ConfigurationKey(
            "max", \.max, ConfigurationForm<Duration>.duration(atLeast: .milliseconds(100)).optional(from: .zero),
            about: "the longest delay",
            usual: "the dialect's, mostly `30s`", example: #""30s""#),
        ConfigurationKey(
            "factor", \.factor, ConfigurationForm<Double>.number(1...100).optional(from: 1),
            about: "growth from attempt to attempt",
            usual: "the dialect's, mostly 2", example: "2"),
        ConfigurationKey(
            "jitter", \.jitter, ConfigurationForm<Double>.number(0...1).optional(from: 0),
            about: "share by which delays vary at random, either way",
            usual: "the dialect's, mostly 0.25", example: "0.25"),
        ConfigurationKey(
            "reset_after", \.resetAfter, .duration(),
            about: "uptime of a link after which delays begin anew"),
    ]
}

/// The queue for messages while the upstream link is down.
package struct QueueConfiguration: Equatable, Sendable {
    package enum WhenFull: String, CaseIterable, Sendable {
        /// A new message is refused.
        case reject
        /// The oldest unsent message fails.
        case dropOldest = "drop-oldest"
    }

    /// Zero: no queue, messages are refused at once.
    package var maxMessages = 1000
    /// Nil: unlimited.
    package var maxAge: Duration? = .seconds(15 * 60)
    package var whenFull = WhenFull.reject

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "max_messages", \.maxMessages, .integer(0...1_000_000),
            about: "messages that wait for the backend; 0: messages are refused during an outage"),
        ConfigurationKey(
            "max_age", \.maxAge, .durationOrOff,
            about: "longest wait of a message for the backend"),
        ConfigurationKey(
            "when_full", \.whenFull, .choice,
            about: """
                a message for a full outbox: `reject`: is refused; `drop-oldest`: takes the place of the oldest that was \
                not written, whose author is told
                """),
    ]
}
