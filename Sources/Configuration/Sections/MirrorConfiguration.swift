import BridgeTypes
import HTTPProtocol

/// One mirror: rooms in a tool elsewhere.
package struct MirrorConfiguration: Equatable, Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case slack, mattermost, rocketchat, discord, teams, json
        /// Channels of an IRC network.
        case irc
        /// Another room of this bridge.
        case room
    }

    package enum Direction: String, CaseIterable, Sendable {
        case both, out, `in`
    }

    package enum Event: String, CaseIterable, Sendable {
        case message, edit, delete, reaction, topic
    }

    package enum Mentions: String, CaseIterable, Sendable {
        case escape, allow
    }

    /// `[a-z0-9_-]+`; unique.
    package var name = ""
    package var kind: Kind?
    /// Names of rooms.
    package var rooms: [String] = []
    /// Of ``Kind/irc``, instead of ``rooms``.
    package var channels: [MirroredChannel] = []
    package var channelKeys: [MirroredChannelKey] = []
    /// The other room, of ``Kind/room``.
    package var to = ""
    /// ``Kind/room`` and ``Kind/irc``; a tool's are given by ``url`` and ``path``.
    package var direction = Direction.both
    /// Where posts go: an incoming webhook of the tool, by which any program can post there; or the IRC network.
    package var url: SecretSource?
    /// Where the tool posts; empty: nothing comes in.
    package var path = ""
    /// Proves requests of the tool; `json`: signs ours too.
    package var secret: SecretSource?
    package var events: [Event] = [.message, .edit, .delete, .reaction]
    package var username = "{nick}"
    package var avatarURL = ""
    /// The nicks of people there; empty: `{user}/NAME`. ``Kind/irc``: the mirror's own; empty: ``networkNick``.
    package var nick = ""
    package var mentions = Mentions.escape
    package var ignore = IgnoreConfiguration()
    package var retry = MirrorRetryConfiguration()
    package var batch = MirrorBatchConfiguration()
    // Of ``Kind/irc``:
    package var sasl = NetworkLoginConfiguration()
    package var serverPassword: SecretSource?
    package var tls = UpstreamTLSConfiguration()
    package var format = "<{nick}> {text}"
    package var usesRelaymsg = true
    /// Nil: no limit.
    package var messagesPerSecond: Double? = 1

    package init() {}

    /// `{user}/NAME` where nothing else is written.
    package var nickTemplate: String { nick.isEmpty || kind == .irc ? "{user}/\(name)" : nick }

    /// The mirror's own nick on an IRC network.
    package var networkNick: String { nick.isEmpty ? "chatbridge" : nick }

    /// Messages in one request. Those of `json` stay apart there, and a whole request can be told from its repetition.
    package var maxBatchMessages: Int { batch.maxMessages ?? (kind == .json ? 100 : 1) }

    /// The rooms that are mirrored.
    package var roomNames: [String] { rooms + channels.map(\.room) }

    /// Its ways are given by ``direction``.
    private var hasDirection: Bool { kind == .room || kind == .irc }
    package var goesOut: Bool { hasDirection ? direction != .in : url != nil }
    package var comesIn: Bool { hasDirection ? direction != .out : !path.isEmpty }

    /// A webhook's address; `http+insecure://` is plain text beyond loopback, and says so. Nil: it is none.
    package static func url(_ text: String) -> HTTPURL? {
        let plain = text.hasPrefix("http+insecure://") ? "http" + text.dropFirst("http+insecure".count) : text
        return try? HTTPURL(parsing: plain)
    }

    static let urlKeys = ["url", "url_file", "url_credential"]
    static let secretKeys = ["secret", "secret_file", "secret_credential"]

    /// A key that has a meaning for some types alone.
    struct Use: Sendable {
        /// Without `_file` and `_credential`.
        let key: String
        let kinds: Set<Kind>
        /// Whether it differs from its default.
        let isSet: @Sendable (MirrorConfiguration) -> Bool
        /// A part of a sentence, for the other types.
        let instead: String

        init<Value: Equatable & Sendable>(
            _ key: String, _ path: any KeyPath<MirrorConfiguration, Value> & Sendable, _ kinds: Set<Kind>,
            else instead: String
        ) {
            (self.key, self.kinds, self.instead) = (key, kinds, instead)
            isSet = { $0[keyPath: path] != MirrorConfiguration()[keyPath: path] }
        }
    }

    private static let tools = Set(Kind.allCases).subtracting([.irc, .room])
    static let uses = [
        Use("rooms", \.rooms, tools.union([.room]), else: "it has a map"),
        Use("map", \.channels, [.irc], else: "it has rooms"),
        Use("channel_keys", \.channelKeys, [.irc], else: "it is for \"irc\""),
        Use("to", \.to, [.room], else: "it is for \"room\""),
        Use("direction", \.direction, [.room, .irc], else: "what it does is given by url and path"),
        Use("url", \.url, tools.union([.irc]), else: "it has to"),
        Use("path", \.path, tools, else: "it takes no requests"),
        Use("secret", \.secret, tools, else: "it takes no requests"),
        Use("username", \.username, tools, else: "it is for tools"),
        Use("avatar_url", \.avatarURL, tools, else: "it is for tools"),
        Use("mentions", \.mentions, tools, else: "it is for tools"),
        Use("batch", \.batch, tools, else: "it is for tools"),
        Use("sasl", \.sasl, [.irc], else: "it is for \"irc\""),
        Use("server_password", \.serverPassword, [.irc], else: "it is for \"irc\""),
        Use("tls", \.tls, [.irc], else: "it is for \"irc\""),
        Use("format", \.format, [.irc], else: "it is for \"irc\""),
        Use("relaymsg", \.usesRelaymsg, [.irc], else: "it is for \"irc\""),
        Use("messages_per_second", \.messagesPerSecond, [.irc], else: "it is for \"irc\""),
    ]

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "name", \.name, .string(ConfigurationChecks.roomName),
            about: "`a-z 0-9 _ -`, for the log, status and metrics", usual: "required"),
        ConfigurationKey(
            "type", \.kind, ConfigurationForm<Kind>.choice.optional(from: .json),
            about: """
                the tool's form of webhooks: `slack`, `mattermost`, `rocketchat`, `discord`, `teams`, or `json`, \
                signed; `irc`: channels of an IRC network; `room`: another room of this bridge, see docs/MIRRORS.md
                """,
            usual: "required"),
        ConfigurationKey(
            "rooms", \.rooms, .texts(of: "rooms", check: ConfigurationChecks.roomName),
            about: "names of [[rooms]]; these are always connected", usual: "required"),
        ConfigurationKey(
            "map", \.channels,
            .map(of: "rooms and channels", key: \.room, parse: MirroredChannel.parse, print: \.channel),
            about: "`irc`, instead of `rooms`: rooms, and the channel of each on the network"),
        ConfigurationKey(
            "channel_keys", \.channelKeys,
            .map(of: "rooms and keys", key: \.room, parse: MirroredChannelKey.parse, print: { _ in Secret.blank }),
            about: "`irc`: keys of channels, mode `+k`, by the names of their rooms",
            example: #"{ lobby = "${LOBBY_KEY}" }"#),
        ConfigurationKey(
            "to", \.to, .string { $0.isEmpty ? nil : ConfigurationChecks.roomName($0) },
            about: "`room`: the name of the other room"),
        ConfigurationKey(
            "direction", \.direction, .choice,
            about: "`room` and `irc`: `both`, `out` to the other room or the network, or `in` from it"),
        ConfigurationKey(
            "url", \.url, .secretText, group: "url",
            about: """
                the tool's incoming webhook; without, nothing goes out; `irc`: `ircs://HOST` (port 6697), `irc://HOST` \
                (port 6667) on loopback, `irc+insecure://HOST` elsewhere
                """,
            example: #""${TEAM_HOOK}""#),
        ConfigurationKey(
            "url_file", \.url, .secretFile, group: "url", about: "a file with the URL"),
        ConfigurationKey(
            "url_credential", \.url, .secretCredential, group: "url",
            about: "the name of a systemd credential with the URL", example: #""team-hook""#),
        ConfigurationKey(
            "path", \.path, .string(hookPath),
            about: """
                where the tool's outgoing webhook posts, on each [[http]] listener that serves `hooks`; without, nothing \
                comes in
                """,
            example: #""/hooks/team""#),
        ConfigurationKey(
            "secret", \.secret, .secretText, group: "secret",
            about: """
                by which the tool proves its requests: a signing secret, a token, or a key of HMAC; `json`: also signs \
                what goes out
                """,
            example: #""${TEAM_SECRET}""#),
        ConfigurationKey(
            "secret_file", \.secret, .secretFile, group: "secret", about: "a file with the secret",
            example: #""/run/secrets/team-in""#),
        ConfigurationKey(
            "secret_credential", \.secret, .secretCredential, group: "secret",
            about: "the name of a systemd credential with the secret", example: #""team-in""#),
        ConfigurationKey(
            "events", \.events, .choices(of: "events", unknown: "is no event of mirrors"),
            about: "what goes out: `message`, `edit`, `delete`, `reaction`, `topic`; each as far as the tool can"),
        ConfigurationKey(
            "username", \.username, .string(wording),
            about: "who speaks in the tool, where it takes a name; with `{nick}`, `{room}` and `{channel}`"),
        ConfigurationKey(
            "avatar_url", \.avatarURL, .string(wording),
            about: "a picture of who speaks, where the tool takes one; with the same",
            example: #""https://example.com/faces/{nick}.png""#),
        ConfigurationKey(
            "nick", \.nick, .string(ConfigurationChecks.oneLine),
            about: """
                the nicks of people there, with `{user}`, and a slash so that they are no user's nick here; `irc`: the \
                mirror's own nick on the network, `chatbridge`
                """,
            usual: "`{user}/` and the name", example: #""{user}/team""#),
        ConfigurationKey(
            "mentions", \.mentions, .choice,
            about: "mentions of all members, such as `@here`: `escape`: they notify none of them; `allow`"),
        ConfigurationKey(
            "ignore", \.ignore, .section(IgnoreConfiguration.rows, inline: true),
            about: "what crosses in neither direction"),
        ConfigurationKey(
            "retry", \.retry, .section(MirrorRetryConfiguration.rows, inline: true),
            about: "while the tool takes nothing"),
        ConfigurationKey(
            "batch", \.batch, .section(MirrorBatchConfiguration.rows, inline: true),
            about: """
                several messages in one request, or one text, of `json`, `slack` and `teams`; `max_messages` is 100 for \
                `json`, else 1
                """),
        ConfigurationKey(
            "sasl", \.sasl, .section(NetworkLoginConfiguration.rows, inline: true),
            about: "`irc`: how the mirror logs in; while the network refuses it, nothing crosses"),
        ConfigurationKey(
            "server_password", \.serverPassword, .secretText, group: "server_password",
            about: "`irc`: sent as `PASS`", example: #""${SERVER_PASSWORD}""#),
        ConfigurationKey(
            "server_password_file", \.serverPassword, .secretFile, group: "server_password",
            about: "a file with that password", example: #""/run/secrets/server""#),
        ConfigurationKey(
            "server_password_credential", \.serverPassword, .secretCredential, group: "server_password",
            about: "the name of a systemd credential with that password", example: #""server""#),
        ConfigurationKey(
            "tls", \.tls, .section(UpstreamTLSConfiguration.rows, inline: true),
            about: "`irc`: TLS settings of `ircs://`"),
        ConfigurationKey(
            "format", \.format, .string(formatCheck),
            about: "`irc`: how messages appear, where the network has no RELAYMSG; with `{nick}` and `{text}`"),
        ConfigurationKey(
            "relaymsg", \.usesRelaymsg, .boolean,
            about: "`irc`: speakers appear under nicks of their own, `alice/chat`, where the network offers RELAYMSG"),
        ConfigurationKey(
            "messages_per_second", \.messagesPerSecond, .rate,
            about: "`irc`: lines to the network, after the first five; more wait"),
    ]

    @Sendable private static func hookPath(_ text: String) -> String? {
        if text.isEmpty { return nil }
        let isPath =
            text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && !text.contains { "?#%*\"<>\\^`{|}".contains($0) }
        guard text.hasPrefix("/"), text.utf8.count > 1, isPath else {
            return "\"\(text)\" is not a path such as \"/hooks/team\""
        }
        let own = ["/healthz", "/readyz", "/metrics", "/status", "/media"]
        return own.contains { text == $0 || text.hasPrefix($0 + "/") || text.hasPrefix($0 + ".") }
            ? "\"\(text)\" is a path of the bridge itself" : nil
    }

    @Sendable private static func wording(_ text: String) -> String? {
        let known = ["nick", "room", "channel"]
        for match in text.matches(of: #/\{([a-z_]*)\}/#) where !known.contains(String(match.1)) {
            let hint = NearestName.hint(for: String(match.1), among: known)
            return "there is no {\(match.1)}\(hint); there are {nick}, {room} and {channel}"
        }
        return ConfigurationChecks.oneLine(text)
    }

    @Sendable private static func formatCheck(_ text: String) -> String? {
        guard text.contains("{text}") else { return "a format has {text}, and {nick} where the speaker's name stands" }
        return ConfigurationChecks.oneLine(text)
    }
}

/// What crosses a mirror in neither direction.
package struct IgnoreConfiguration: Equatable, Sendable {
    package var nicks: [String] = []
    package var matching: [String] = []

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "nicks", \.nicks, .texts(of: "patterns", check: ConfigurationChecks.oneLine),
            about: "messages of these people; `*` and `?` are wildcards", example: #"["*bot"]"#),
        ConfigurationKey(
            "matching", \.matching, .texts(of: "patterns", check: ConfigurationChecks.oneLine),
            about: "messages with such a text; `*` and `?` are wildcards", example: #"["!*"]"#),
    ]
}

package struct MirrorRetryConfiguration: Equatable, Sendable {
    package var maxAge: Duration = .seconds(60 * 60)

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "max_age", \.maxAge, .duration(atLeast: .seconds(1)),
            about: "messages that the tool could not take for longer are given up, and a line there says how many")
    ]
}

package struct MirrorBatchConfiguration: Equatable, Sendable {
    /// Nil: as the type has it.
    package var maxMessages: Int?
    package var maxWait: Duration = .zero

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "max_messages", \.maxMessages, ConfigurationForm<Int>.integer(1...100).optional(from: 1),
            about: "messages in one request", usual: "`json`: 100, else 1", example: "100"),
        ConfigurationKey(
            "max_wait", \.maxWait, .duration(), about: "how long a first message waits for others"),
    ]
}
