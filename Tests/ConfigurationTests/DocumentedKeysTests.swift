import BridgeTestSupport
import Testing
import Transport
import WireBytes

@testable import Configuration

/// Two values of a key, in TOML, with which a configuration loads and is not the same.
struct KeySample {
    var values: [String]
    /// What the key needs beside it, as `key = value`; these stand in the same table.
    var beside: [(key: String, value: String)] = []
    /// What it needs elsewhere.
    var elsewhere = ""

    init(
        _ first: String, _ second: String, _ beside: KeyValuePairs<String, String> = [:],
        _ more: KeyValuePairs<String, String> = [:], elsewhere: String = ""
    ) {
        values = [first, second]
        self.beside = beside.map { ($0.key, $0.value) } + more.map { ($0.key, $0.value) }
        self.elsewhere = elsewhere
    }
}

@Suite("Keys of the configuration, every one")
struct DocumentedKeysTests {
    // MARK: - The schema

    /// Every key of the schema, as its samples write it: `server.name`, `backends.NAME.url`, `rooms.auth.type`.
    static let schema: [String] = {
        func paths(_ shape: ConfigurationShape, _ path: String) -> [String] {
            func below(_ keys: [ConfigurationOutline], _ path: String) -> [String] {
                keys.flatMap { paths($0.shape, path.isEmpty ? $0.key : "\(path).\($0.key)") }
            }
            switch shape {
            // A description has keys of its own, which its page names, or lies in a file.
            case .leaf where path == "dialects": return ["dialects.NAME.file"]
            case .leaf, .list, .map: return [path]
            case .table(let keys), .tables(let keys, _): return below(keys, path)
            case .named(let keys): return below(keys, "\(path).NAME")
            }
        }
        return paths(ConfigurationSchema.root.shape, "")
    }()

    // MARK: - Setting

    /// Files of a machine; certificates and their keys belong together.
    static let files: [String: String] = {
        var files = [
            "/a": "secret-a\n", "/b": "secret-b\n", "/hash-a": examplePasswordHash + "\n",
            "/hash-b": examplePasswordHash.replacing("4096", with: "8192") + "\n",
            "/run/credentials/team-hook": "https://a.test", "/run/secrets/team-hook": "https://a.test",
            "/url-a": "https://a.test\n", "/url-b": "https://b.test\n",
            "/credentials/url-a": "https://a.test", "/credentials/url-b": "https://b.test",
            "/credentials/a": "credential-a\n", "/credentials/b": "credential-b\n",
            "/credentials/hash-a": examplePasswordHash,
            "/credentials/hash-b": examplePasswordHash.replacing("4096", with: "8192"),
            "/a.json": #"{"decode":[]}"#, "/b.json": #"{"decode":[{"event":"ping"}]}"#,
        ]
        let maker = CertificateGenerator(names: ["chat.test"], notBefore: 0, notAfter: 4_000_000_000)
        guard let made = try? maker.make() else { return files }
        for name in ["a", "b"] {
            files["/cert-\(name)"] = String(decoding: made.certificatePEM, as: UTF8.self)
            files["/key-\(name)"] = String(decoding: made.keyPEM, as: UTF8.self)
        }
        return files
    }()

    private static let flag = KeySample("true", "false")
    private static let login: KeyValuePairs = [
        "auth.type": "\"login\"", "auth.login_url": "\"/login\"", "auth.login_body": "{ a = \"{user}\" }",
    ]
    private static let secure: KeyValuePairs = ["url": "\"wss://chat.test/ws\""]
    private static let ircs: KeyValuePairs = [
        "bind": "\"ircs://127.0.0.1:6697\"", "cert": "\"/cert-a\"", "key": "\"/key-a\"",
    ]
    private static let https: KeyValuePairs = [
        "bind": "\"https://127.0.0.1:9667\"", "cert": "\"/cert-a\"", "key": "\"/key-a\"",
    ]
    private static let anybody = "[identity]\nrequire_login = \"never\""

    static let samples: [String: KeySample] = {
        var samples = own
        for section in ["room_defaults", "backends.NAME", "rooms"] {
            for (key, sample) in room { samples["\(section).\(key)"] = sample }
            for (key, sample) in auth { samples["\(section).auth.\(key)"] = sample }
        }
        for (key, sample) in auth {
            guard key != "type" else { continue }
            var sample = sample
            sample.beside = sample.beside.map { ("upstream.NAME." + $0.key.dropFirst("auth.".count), $0.value) }
            samples["accounts.upstream.NAME.\(key)"] = sample
        }
        return samples
    }()

    /// Of `auth`, wherever that stands.
    private static let auth: [String: KeySample] = [
        "type": KeySample("\"bearer\"", "\"query\"", ["auth.token": "\"t\""]),
        "token": KeySample("\"a\"", "\"b\"", ["auth.type": "\"bearer\""]),
        "token_file": KeySample("\"/a\"", "\"/b\"", ["auth.type": "\"bearer\""]),
        "token_credential": KeySample("\"a\"", "\"b\"", ["auth.type": "\"bearer\""]),
        "user": KeySample("\"a\"", "\"b\"", ["auth.type": "\"basic\"", "auth.password": "\"p\""]),
        "password": KeySample("\"a\"", "\"b\"", ["auth.type": "\"basic\"", "auth.user": "\"u\""]),
        "password_file": KeySample("\"/a\"", "\"/b\"", ["auth.type": "\"basic\"", "auth.user": "\"u\""]),
        "password_credential": KeySample("\"a\"", "\"b\"", ["auth.type": "\"basic\"", "auth.user": "\"u\""]),
        "param": KeySample("\"a\"", "\"b\"", ["auth.type": "\"query\"", "auth.token": "\"t\""]),
        "name": KeySample("\"X-A\"", "\"X-B\"", ["auth.type": "\"header\"", "auth.token": "\"t\""]),
        "format": KeySample("\"{token}\"", "\"Bearer {token}\"", ["auth.type": "\"header\"", "auth.token": "\"t\""]),
        "login_url": KeySample("\"/a\"", "\"/b\"", login),
        "login_body": KeySample("{ a = \"{user}\" }", "{ b = \"{password}\" }", login),
        "refresh_url": KeySample("\"/a\"", "\"/b\"", refresh),
        "refresh_body": KeySample("{ a = \"{refresh_token}\" }", "{ b = \"{refresh_token}\" }", refresh),
        "access_token_at": KeySample("\"/a\"", "\"/b\"", login),
        "refresh_token_at": KeySample("\"/a\"", "\"/b\"", login),
        "expires_in_at": KeySample("\"/a\"", "\"/b\"", login),
        "expires_in_unit": KeySample("\"s\"", "\"ms\"", login),
        "refresh_before": KeySample("\"1s\"", "\"2s\"", login),
        "reauth_on": KeySample("[401]", "[403, 4001]", login),
        "send_as.in": KeySample("\"header\"", "\"query\"", login),
        "send_as.name": KeySample("\"X-A\"", "\"X-B\"", login),
        "send_as.format": KeySample("\"{token}\"", "\"Token {token}\"", login),
    ]
    private static let refresh: KeyValuePairs = [
        "auth.type": "\"login\"", "auth.login_url": "\"/login\"", "auth.login_body": "{ a = \"{user}\" }",
        "auth.refresh_url": "\"/refresh\"", "auth.refresh_body": "{ a = \"{refresh_token}\" }",
    ]

    /// What a room, a backend and the defaults of rooms all have.
    private static let room: [String: KeySample] = [
        "dialect": KeySample("\"typed\"", "\"swiftchat\""),
        "mode": KeySample("\"puppet\"", "\"relay\""),
        "relay_nick": KeySample("\"a\"", "\"b\"", ["mode": "\"relay\""]),
        "identity": KeySample("\"puppet\"", "\"single\""),
        "receipts": KeySample("\"speaking\"", "\"off\""),
        "member_idle": KeySample("\"1m\"", "\"off\""),
        "subprotocol": KeySample("[\"a\"]", "[\"b\"]"),
        "require_subprotocol": KeySample("true", "false", ["subprotocol": "[\"a\"]"]),
        "headers": KeySample("{ X-A = \"a\" }", "{ X-B = \"a\" }"),
        "proxy": KeySample("\"off\"", "\"http://127.0.0.1:3128\""),
        "user_agent": KeySample("\"a\"", "\"b\""),
        "connect_timeout": KeySample("\"1s\"", "\"2s\""),
        "handshake_timeout": KeySample("\"1s\"", "\"2s\""),
        "ping": KeySample("\"1s\"", "\"off\""),
        "pong_timeout": KeySample("\"1s\"", "\"2s\""),
        "max_frame": KeySample("\"1KiB\"", "\"256MiB\""),
        "max_message": KeySample("\"1KiB\"", "\"256MiB\""),
        "compression": KeySample("\"off\"", "\"offer\""),
        "backoff.min": KeySample("\"1s\"", "\"2s\""),
        "backoff.max": KeySample("\"40s\"", "\"50s\""),
        "backoff.factor": KeySample("1.5", "3"),
        "backoff.jitter": KeySample("0", "1"),
        "backoff.reset_after": KeySample("\"1s\"", "\"2s\""),
        "queue.max_messages": KeySample("0", "5"),
        "queue.max_age": KeySample("\"1h\"", "\"off\""),
        "queue.when_full": KeySample("\"reject\"", "\"drop-oldest\""),
        "connect": KeySample("\"always\"", "\"while-joined\""),
        "history_on_join": KeySample("0", "500"),
        "required": flag,
        "give_up_after": KeySample("\"5m\"", "\"off\""),
        "tls.ca": KeySample("\"/cert-a\"", "\"/cert-b\"", secure),
        "tls.client_cert": KeySample(
            "\"/cert-a\"", "\"/cert-b\"", ["url": "\"wss://chat.test/ws\"", "tls.client_key": "\"/key-a\""]),
        "tls.client_key": KeySample(
            "\"/key-a\"", "\"/key-b\"", ["url": "\"wss://chat.test/ws\"", "tls.client_cert": "\"/cert-a\""]),
        "tls.server_name": KeySample("\"a.test\"", "\"b.test\"", secure),
        "tls.pin_sha256": KeySample(
            "[\"\(Base64.encode([UInt8](repeating: 1, count: 32)))\"]",
            "[\"\(Base64.encode([UInt8](repeating: 2, count: 32)))\"]", secure),
        "tls.min_version": KeySample("\"1.2\"", "\"1.3\"", secure),
        "tls.insecure": KeySample("true", "false", secure),
    ]

    /// All others.
    private static let own: [String: KeySample] = [
        "server.instance_id": KeySample("\"a\"", "\"b\""),
        "server.name": KeySample("\"a.test\"", "\"b.test\""),
        "server.network": KeySample("\"a\"", "\"b\""),
        "server.casemapping": KeySample("\"ascii\"", "\"rfc1459\""),
        "server.description": KeySample("\"a\"", "\"b\""),
        "server.icon": KeySample("\"https://a.test/i.png\"", "\"https://b.test/i.png\""),
        "server.motd": KeySample("\"a\"", "\"b\""),
        "server.motd_file": KeySample("\"/a\"", "\"/b\""),
        "server.state_dir": KeySample("\"/a\"", "\"/b\""),
        "server.drain": KeySample("\"0\"", "\"1h\""),
        "server.prestop_delay": KeySample("\"0\"", "\"30s\""),

        "listeners.bind": KeySample("\"irc://127.0.0.1:1\"", "\"ws://127.0.0.1:2/irc\""),
        "listeners.mode": KeySample("\"0600\"", "\"0666\"", ["bind": "\"irc+unix:///s\""]),
        "listeners.group": KeySample("\"a\"", "\"b\"", ["bind": "\"irc+unix:///s\""]),
        "listeners.cert": KeySample("\"/cert-a\"", "\"/cert-b\"", ircs),
        "listeners.key": KeySample("\"/key-a\"", "\"/key-b\"", ircs),
        "listeners.min_tls": KeySample("\"1.2\"", "\"1.3\"", ircs),
        "listeners.client_ca": KeySample("\"/cert-a\"", "\"/cert-b\"", ircs),
        "listeners.origins": KeySample("[\"*\"]", "[\"https://a.test\"]", ["bind": "\"ws://127.0.0.1:2/irc\""]),
        "listeners.hosts": KeySample("[\"a.test\"]", "[\"b.test\"]", ["bind": "\"ws://127.0.0.1:2/irc\""]),
        "listeners.web_root": KeySample("\"/a\"", "\"/b\"", ["bind": "\"ws://127.0.0.1:2/irc\""]),
        "listeners.plain": KeySample("\"on\"", "\"off\""),
        "listeners.proxy_protocol": KeySample(
            "\"v1v2\"", "\"off\"", ["bind": "\"ws://127.0.0.1:2/irc\"", "trusted_proxies": "[\"10.0.0.1\"]"],
            elsewhere: anybody),
        "listeners.trusted_proxies": KeySample(
            "[\"10.0.0.1\"]", "[\"10.0.0.0/8\"]", ["proxy_protocol": "\"v1v2\""], elsewhere: anybody),
        "listeners.sts": KeySample("\"30d\"", "\"off\"", ircs),
        "listeners.sts_port": KeySample(
            "1", "2",
            [
                "bind": "\"ircs://127.0.0.1:6697\"", "cert": "\"/cert-a\"", "key": "\"/key-a\"", "sts": "\"30d\"",
            ]),

        "dialects.NAME.file": KeySample("\"/a.json\"", "\"/b.json\""),

        "backends.NAME.url": KeySample("\"ws://a.test/\"", "\"ws://b.test/\""),
        "backends.NAME.http_base": KeySample("\"http://a.test\"", "\"http://b.test\""),
        "backends.NAME.user": KeySample("\"a\"", "\"b\"", ["password": "\"p\""]),
        "backends.NAME.password": KeySample("\"a\"", "\"b\"", ["user": "\"u\""]),
        "backends.NAME.password_file": KeySample("\"/a\"", "\"/b\"", ["user": "\"u\""]),
        "backends.NAME.password_credential": KeySample("\"a\"", "\"b\"", ["user": "\"u\""]),
        "backends.NAME.options": KeySample(
            "{ fallback_text = true }", "{ fallback_text = false }", ["dialect": "\"typed\""]),

        "rooms.name": KeySample("\"a\"", "\"b\""),
        "rooms.channel": KeySample("\"#a\"", "\"#b\""),
        "rooms.topic": KeySample("\"a\"", "\"b\""),
        "rooms.backend": KeySample("\"other\"", "\"\"", elsewhere: "[backends.other]\nurl = \"ws://other.test/\""),
        "rooms.upstream_room": KeySample("\"a\"", "\"b\""),
        "rooms.url": KeySample("\"ws://a.test/\"", "\"ws://b.test/\""),
        "rooms.options": KeySample("{ fallback_text = true }", "{ fallback_text = false }", ["dialect": "\"typed\""]),

        "identity.require_login": KeySample("\"never\"", "\"remote\""),
        "identity.registration": KeySample("\"local\"", "\"on\""),
        "identity.registration_before_connect": flag,
        "identity.rejoin": flag,
        "identity.sasl": KeySample("[]", "[\"PLAIN\"]"),
        "identity.bearer": KeySample(
            "\"\"", "\"shop\"",
            elsewhere: "[backends.shop]\nurl = \"ws://shop.test/\"\ndialect = \"jwt-rooms\"\n"
                + "[[rooms]]\nname = \"till\"\nbackend = \"shop\""),
        "identity.password": KeySample("\"a\"", "\"b\""),
        "identity.password_file": KeySample("\"/a\"", "\"/b\""),
        "identity.password_credential": KeySample("\"a\"", "\"b\""),
        "identity.webirc.password": KeySample("\"a\"", "\"b\"", gateway),
        "identity.webirc.password_file": KeySample("\"/a\"", "\"/b\"", gateway),
        "identity.webirc.password_credential": KeySample("\"a\"", "\"b\"", gateway),
        "identity.webirc.from": KeySample(
            "[\"10.0.0.1\"]", "[\"10.0.0.2\"]", ["webirc.password": "\"p\"", "require_login": "\"never\""]),
        "identity.nicks.suffix": KeySample("\"_a\"", "\"_b\""),
        "identity.nicks.max_length": KeySample("16", "63"),
        "identity.nicks.invalid": KeySample("\"_\"", "\"-\""),
        "identity.nicks.collision": KeySample("\"number\"", "\"underscore\""),
        "identity.nicks.utf8": flag,

        "accounts.name": KeySample("\"a\"", "\"b\""),
        "accounts.password": KeySample(
            "\"\(examplePasswordHash)\"", "\"\(examplePasswordHash.replacing("4096", with: "8192"))\""),
        "accounts.password_file": KeySample("\"/hash-a\"", "\"/hash-b\""),
        "accounts.password_credential": KeySample("\"hash-a\"", "\"hash-b\""),
        "accounts.certfp": KeySample(
            "[\"\(String(repeating: "a", count: 64))\"]", "[\"\(String(repeating: "b", count: 64))\"]"),
        "accounts.bearer": KeySample(
            "[\"a\"]", "[\"b\"]",
            elsewhere: "[identity]\nbearer = \"shop\"\n[backends.shop]\nurl = \"ws://shop.test/\"\n"
                + "dialect = \"jwt-rooms\"\n[[rooms]]\nname = \"till\"\nbackend = \"shop\""),
        "accounts.rooms": KeySample("[\"lobby\"]", "[]"),
        "accounts.admin": flag,
        "accounts.relaymsg": flag,
        "accounts.receipts": KeySample("\"off\"", "\"speaking\""),
        "accounts.upstream.NAME.type": KeySample("\"bearer\"", "\"query\"", ["upstream.NAME.token": "\"t\""]),
        "accounts.upstream.NAME.as": KeySample(
            "\"a\"", "\"b\"", ["upstream.NAME.type": "\"bearer\"", "upstream.NAME.token": "\"t\""]),

        "storage.url": KeySample("\"memory:\"", "\"sqlite:a.db\""),
        "storage.retention": KeySample("\"1d\"", "\"off\""),
        "storage.max_messages_per_room": KeySample("1000", "\"off\""),
        "storage.sync": KeySample("\"full\"", "\"off\""),
        "storage.batch.max_messages": KeySample("1", "2"),
        "storage.batch.max_wait": KeySample("\"1s\"", "\"2s\""),

        "limits.max_clients": KeySample("1", "2"),
        "limits.max_clients_per_ip": KeySample("1", "2"),
        "limits.accepts_per_second_per_ip": KeySample("0.5", "\"off\""),
        "limits.registration_timeout": KeySample("\"1s\"", "\"2s\""),
        "limits.ping_interval": KeySample("\"1s\"", "\"off\""),
        "limits.ping_timeout": KeySample("\"1s\"", "\"2s\""),
        "limits.messages_per_second": KeySample("0.5", "\"off\""),
        "limits.messages_burst": KeySample("1", "2"),
        "limits.sendq": KeySample("\"16KiB\"", "\"1GiB\""),
        "limits.recvq": KeySample("\"16KiB\"", "\"1GiB\""),
        "limits.multiline.max_bytes": KeySample("\"1KiB\"", "\"2KiB\""),
        "limits.multiline.max_lines": KeySample("1", "2"),
        "limits.upstream_messages_per_second": KeySample("0.5", "\"off\""),
        "limits.upstream_connects_per_second": KeySample("0.5", "\"off\""),
        "limits.members_per_room": KeySample("1", "2"),
        "limits.template_rooms": KeySample("0", "2"),
        "limits.backlog": KeySample("0", "2"),
        "limits.history_limit": KeySample("1", "2"),

        "mirrors.name": KeySample("\"a\"", "\"b\"", tool),
        "mirrors.type": KeySample("\"slack\"", "\"json\"", ["url": "\"https://a.test\""]),
        "mirrors.rooms": KeySample(
            "[\"lobby\"]", "[\"den\"]", tool, elsewhere: "[[rooms]]\nname = \"den\"\nurl = \"ws://a.test/den\""),
        "mirrors.to": KeySample("\"den\"", "\"attic\"", ["type": "\"room\""], elsewhere: otherRooms),
        "mirrors.direction": KeySample(
            "\"in\"", "\"out\"", ["type": "\"room\"", "to": "\"den\""], elsewhere: otherRooms),
        "mirrors.url": KeySample("\"https://a.test\"", "\"https://b.test\""),
        "mirrors.url_file": KeySample("\"/url-a\"", "\"/url-b\""),
        "mirrors.url_credential": KeySample("\"url-a\"", "\"url-b\""),
        "mirrors.path": KeySample("\"/a\"", "\"/b\"", ["secret": "\"0123456789abcdef\""], elsewhere: hooks),
        "mirrors.secret": KeySample("\"0123456789abcdef\"", "\"fedcba9876543210\"", tool),
        "mirrors.secret_file": KeySample("\"/a\"", "\"/b\"", tool),
        "mirrors.secret_credential": KeySample("\"a\"", "\"b\"", tool),
        "mirrors.events": KeySample("[\"message\"]", "[\"message\", \"topic\"]", tool),
        "mirrors.username": KeySample("\"{nick} a\"", "\"{nick} b\"", tool),
        "mirrors.avatar_url": KeySample("\"https://a.test\"", "\"https://b.test\"", tool),
        "mirrors.nick": KeySample("\"{user}/a\"", "\"{user}/b\"", tool),
        "mirrors.mentions": KeySample("\"escape\"", "\"allow\"", tool),
        "mirrors.ignore.nicks": KeySample("[\"a*\"]", "[\"b*\"]", tool),
        "mirrors.ignore.matching": KeySample("[\"a*\"]", "[\"b*\"]", tool),
        "mirrors.retry.max_age": KeySample("\"1m\"", "\"2m\"", tool),
        "mirrors.batch.max_messages": KeySample("2", "3", tool),
        "mirrors.batch.max_wait": KeySample("\"1s\"", "\"2s\"", tool),
        "mirrors.map": KeySample("{ lobby = \"#a\" }", "{ lobby = \"#b\" }", network),
        "mirrors.channel_keys": KeySample("{ lobby = \"a\" }", "{ lobby = \"b\" }", network),
        "mirrors.sasl.mechanism": KeySample(
            "\"scram-sha-256\"", "\"plain\"", network, ["sasl.user": "\"a\"", "sasl.password": "\"p\""]),
        "mirrors.sasl.user": KeySample("\"a\"", "\"b\"", network, ["sasl.password": "\"p\""]),
        "mirrors.sasl.password": KeySample("\"a\"", "\"b\"", network, ["sasl.user": "\"u\""]),
        "mirrors.sasl.password_file": KeySample("\"/a\"", "\"/b\"", network, ["sasl.user": "\"u\""]),
        "mirrors.sasl.password_credential": KeySample("\"a\"", "\"b\"", network, ["sasl.user": "\"u\""]),
        "mirrors.server_password": KeySample("\"a\"", "\"b\"", network),
        "mirrors.server_password_file": KeySample("\"/a\"", "\"/b\"", network),
        "mirrors.server_password_credential": KeySample("\"a\"", "\"b\"", network),
        "mirrors.tls.ca": KeySample("\"/cert-a\"", "\"/cert-b\"", network),
        "mirrors.tls.client_cert": KeySample("\"/cert-a\"", "\"/cert-b\"", network, ["tls.client_key": "\"/key-a\""]),
        "mirrors.tls.client_key": KeySample("\"/key-a\"", "\"/key-b\"", network, ["tls.client_cert": "\"/cert-a\""]),
        "mirrors.tls.server_name": KeySample("\"a.test\"", "\"b.test\"", network),
        "mirrors.tls.pin_sha256": KeySample(
            "[\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"]",
            "[\"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"]", network),
        "mirrors.tls.min_version": KeySample("\"1.2\"", "\"1.3\"", network),
        "mirrors.tls.insecure": KeySample("true", "false", network),
        "mirrors.format": KeySample("\"{nick}: {text}\"", "\"{text}\"", network),
        "mirrors.relaymsg": KeySample("true", "false", network),
        "mirrors.messages_per_second": KeySample("0.5", "\"off\"", network),
        "http.bind": KeySample("\"http://127.0.0.1:1\"", "\"http+insecure://0.0.0.0:2\""),
        "http.cert": KeySample("\"/cert-a\"", "\"/cert-b\"", https),
        "http.key": KeySample("\"/key-a\"", "\"/key-b\"", https),
        "http.min_tls": KeySample("\"1.2\"", "\"1.3\"", https),
        "http.serve": KeySample("[\"health\"]", "[\"health\", \"media\"]", elsewhere: media),
        "http.hosts": KeySample("[\"a.test\"]", "[\"b.test\"]"),
        "http.trusted_proxies": KeySample("[\"10.0.0.1\"]", "[\"10.0.0.2\"]"),
        "http.token": KeySample(
            "\"0123456789abcdef\"", "\"fedcba9876543210\"", ["serve": "[\"metrics\"]"]),
        "http.token_file": KeySample("\"/a\"", "\"/b\"", ["serve": "[\"metrics\"]"]),
        "http.token_credential": KeySample("\"a\"", "\"b\"", ["serve": "[\"status\"]"]),
        "http.room_labels": flag,

        "media.public_url": KeySample("\"https://a.test\"", "\"https://b.test\"", elsewhere: serving),
        "media.max_upload": KeySample("\"1KiB\"", "\"100MiB\"", elsewhere: serving),
        "media.link_lifetime": KeySample("\"1h\"", "\"1d\"", elsewhere: serving),
        "media.retention": KeySample("\"1h\"", "\"off\"", elsewhere: serving),
        "media.max_bytes": KeySample("\"1MiB\"", "\"1024GiB\"", elsewhere: serving),

        "admin.socket": KeySample("\"\"", "\"/a\""),
        "admin.mode": KeySample("\"0660\"", "\"0666\""),

        "log.format": KeySample("\"text\"", "\"json\""),
        "log.level": KeySample("\"warn\"", "\"trace\""),
        "log.levels": KeySample("{ upstream = \"debug\" }", "{ room = \"debug\" }"),
        "log.to": KeySample("\"stderr\"", "\"/a\""),
        "log.messages": flag,
    ]
    private static let gateway: KeyValuePairs = ["webirc.from": "[\"10.0.0.1\"]", "require_login": "\"never\""]
    private static let serving = "[[http]]\nbind = \"http://127.0.0.1:1\"\nserve = [\"media\"]"
    private static let media = serving.replacing(":1\"", with: ":9\"") + "\n[media]\npublic_url = \"https://a.test\""

    private static let tool: KeyValuePairs = ["url": "\"https://hook.test\""]
    private static let hooks = "[[http]]\nbind = \"http://127.0.0.1:9\"\nserve = [\"hooks\"]"
    private static let network: KeyValuePairs = [
        "type": "\"irc\"", "rooms": "[]", "url": "\"ircs://irc.test\"", "map": "{ lobby = \"#a\" }",
    ]
    private static let otherRooms =
        ["den", "attic"].map { "[[rooms]]\nname = \"\($0)\"\nurl = \"ws://a.test/\($0)\"" }.joined(separator: "\n")

    /// What a section cannot be without.
    private static func needed(_ section: String) -> [(key: String, value: String)] {
        switch section {
        case "rooms": [("name", "\"lobby\""), ("url", "\"ws://lobby.test/\"")]
        case "backends.NAME": [("url", "\"ws://main.test/{room}\"")]
        case "listeners": [("bind", "\"irc://127.0.0.1:6667\"")]
        case "http": [("bind", "\"http://127.0.0.1:9667\"")]
        case "accounts": [("name", "\"alice\""), ("password", "\"\(examplePasswordHash)\"")]
        case "mirrors": [("name", "\"team\""), ("type", "\"slack\""), ("rooms", "[\"lobby\"]")]
        case "media": [("public_url", "\"https://c.test\"")]
        default: []
        }
    }

    /// Where a key stands: its table's head, and itself from there.
    private static func place(_ path: String) -> (section: String, key: String) {
        var steps = path.split(separator: ".").map(String.init)
        let depth = ["backends", "dialects"].contains(steps[0]) ? 2 : 1
        let section = steps.prefix(depth).joined(separator: ".")
        steps.removeFirst(depth)
        return (section, steps.joined(separator: "."))
    }

    /// A configuration with `path` set to `value`.
    static func text(_ path: String, _ value: String, _ sample: KeySample) -> String {
        let (section, key) = place(path)
        var lines = needed(section)
        for (key, value) in sample.beside + [(key, value)] {
            lines.removeAll {
                $0.key == key || $0.key == "password" && key.hasPrefix("password_") && section == "accounts"
            }
            lines.append((key, value))
        }
        // The defaults have no address; a room that is not encrypted makes nothing of them.
        if section == "room_defaults" { lines.removeAll { $0.key == "url" } }
        // Tables in a row within a table are written at once.
        let inner = lines.filter { $0.key.hasPrefix("webirc.") }
        if !inner.isEmpty {
            lines.removeAll { $0.key.hasPrefix("webirc.") }
            let members = inner.map { "\($0.key.dropFirst("webirc.".count)) = \($0.value)" }.joined(separator: ", ")
            lines.append(("webirc", "[{ \(members) }]"))
        }
        let isRow = ["rooms", "listeners", "http", "mirrors", "accounts"].contains(section)
        let room = section == "rooms" ? "" : "[[rooms]]\nname = \"lobby\"\nurl = \"ws://127.0.0.1/\"\n"
        let head = isRow ? "[[\(section)]]" : "[\(section)]"
        let body = lines.map { "\($0.key) = \($0.value)\n" }.joined()
        return (room + "\(head)\n\(body)\(sample.elsewhere)\n").replacing("NAME", with: "lobby")
            .replacing("backends.lobby", with: "backends.main").replacing("dialects.lobby", with: "dialects.mine")
    }

    /// Keys with an example that are tables, without samples of their own.
    private static let tables = ["identity.webirc": anybody, "accounts.upstream": ""]

    @Test(
        "the example of a key can be set",
        arguments: ConfigurationTopic.all.filter { $0.outline.example != nil }.map(\.path))
    func examples(_ path: String) throws {
        let topic = try #require(ConfigurationTopic.all.first { $0.path == path })
        let example = try #require(topic.outline.example)
        // No password that anybody could know.
        if path == "accounts.password" { return }
        var sample = Self.samples[path] ?? Self.samples[path + ".in"] ?? KeySample("", "")
        if let elsewhere = Self.tables[path] { sample.elsewhere = elsewhere }
        let text =
            path == "identity.webirc"
            ? withRoom("[identity]\nrequire_login = \"never\"\nwebirc = \(example)")
            : Self.text(path, example, sample)
        let secrets =
            ["TOKEN", "PASSWORD", "CHAT_PASSWORD", "SERVER_PASSWORD", "GATEWAY_PASSWORD", "TEAM_SECRET"]
            + ["NETWORK_PASSWORD", "LOBBY_KEY"]
        var variables = Dictionary(uniqueKeysWithValues: secrets.map { ($0, "secret-of-many-letters") })
        variables["CREDENTIALS_DIRECTORY"] = "/run/credentials"
        variables["TEAM_HOOK"] = "https://hooks.example.com/team"
        let machine = ConfigurationEnvironment(variables: variables, hostName: "h.test") { file in
            if file == "chatbridge.toml" { return .success(Array(text.utf8)) }
            let known =
                Self.files[file]
                ?? (file.hasSuffix(".hash") || file.hasSuffix("/alice") ? examplePasswordHash : "secret\n")
            return .success(Array(known.utf8))
        }
        do {
            _ = try ConfigurationLoader.load(ConfigurationRequest(), from: machine)
        } catch {
            Issue.record("\(error.problems.map(\.description)) in\n\(text)")
        }
    }

    @Test("every key that there is can be set, and changes the configuration", arguments: schema)
    func set(_ path: String) throws {
        let sample = try #require(Self.samples[path], "no values for it here")
        var made: [Configuration] = []
        for value in sample.values {
            let text = Self.text(path, value, sample)
            do {
                made.append(
                    try load(text, variables: ["CREDENTIALS_DIRECTORY": "/credentials"], files: Self.files))
            } catch {
                Issue.record("\(error.problems.map(\.description)) in\n\(text)")
            }
        }
        #expect(made.count != 2 || made[0] != made[1], "changes nothing")
    }
}
