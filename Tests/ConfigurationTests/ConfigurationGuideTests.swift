import BridgeTestSupport
import Testing

@testable import Configuration

@Suite("Where settings come from, and what they mean")
struct ConfigurationGuideTests {
    private func loaded(
        _ toml: String, variables: [String: String] = [:], files: [String: String] = [:],
        request: ConfigurationRequest = ConfigurationRequest()
    ) throws -> LoadedConfiguration {
        var files = files
        files["chatbridge.toml"] = toml
        return try ConfigurationLoader.load(request, from: testEnvironment(files, variables: variables))
    }

    private static let toml = """
        [room_defaults]
        ping = "5s"
        tls = { min_version = "1.3" }
        [backends.main]
        url = "wss://chat.test/{room}"
        pong_timeout = "6s"
        [[rooms]]
        name = "a"
        backend = "main"
        tls = { ca = "" }
        [[rooms]]
        name = "b"
        url = "ws://b.test/"
        [identity]
        password_file = "/secret"
        """

    struct Source: CustomTestStringConvertible {
        var path: String
        var text: String
        var testDescription: String { path }
    }

    @Test(
        "a value's source is the flag, the variable, the line, what stands in for the room, or the default",
        arguments: [
            Source(path: "rooms[0].name", text: "chatbridge.toml:8"),
            Source(path: "rooms[0].ping", text: "chatbridge.toml:2"),
            Source(path: "rooms[0].url", text: "chatbridge.toml:5"),
            Source(path: "rooms[0].pong_timeout", text: "chatbridge.toml:6"),
            Source(path: "rooms[1].pong_timeout", text: "default"),
            Source(path: "rooms[1].max_frame", text: "CHATBRIDGE__ROOMS__B__MAX_FRAME"),
            Source(path: "rooms[0].tls", text: "chatbridge.toml:3"),
            Source(path: "backends.main.ping", text: "chatbridge.toml:2"),
            Source(path: "identity.password", text: "chatbridge.toml:15"),
            Source(path: "log.level", text: "--log-level"), Source(path: "log.to", text: "default"),
            Source(path: "limits.multiline", text: "CHATBRIDGE__LIMITS__MULTILINE__MAX_LINES"),
            Source(path: "server.name", text: "default"),
        ])
    func sources(_ source: Source) throws {
        let loaded = try loaded(
            Self.toml,
            variables: ["CHATBRIDGE__LIMITS__MULTILINE__MAX_LINES": "5", "CHATBRIDGE__ROOMS__B__MAX_FRAME": "2MiB"],
            files: ["/secret": "hunter2\n"], request: ConfigurationRequest(logLevel: "debug"))
        #expect(loaded.origins.text(of: source.path, in: loaded.configuration) == source.text)
        let shown = ConfigurationPrinter.text(loaded.configuration) {
            loaded.origins.text(of: $0, in: loaded.configuration)
        }
        #expect(!shown.contains("hunter2"))
        #expect(shown.contains(#/\npassword = "\*\*\*" +# chatbridge\.toml:15\n/#) && shown.contains("# default\n"))
        #expect(try loadAgain(shown) == loaded.configuration.rooms)
    }

    /// Comments do not change a printed configuration.
    private func loadAgain(_ text: String) throws -> [RoomConfiguration] { try load(text).rooms }

    struct Word: CustomTestStringConvertible {
        var text: String
        var paths: [String]
        var testDescription: String { text }
    }

    @Test(
        "a key is found by its path, with names of tables or without, or by its end",
        arguments: [
            Word(text: "limits.sendq", paths: ["limits.sendq"]), Word(text: "sendq", paths: ["limits.sendq"]),
            Word(text: "Limits", paths: ["limits"]), Word(text: "rooms.url", paths: ["rooms.url"]),
            Word(text: "rooms.lobby.url", paths: ["rooms.url"]), Word(text: "rooms.lobby", paths: ["rooms"]),
            Word(text: "rooms[0].auth.token", paths: ["rooms.auth.token"]),
            Word(text: "listeners.0.bind", paths: ["listeners.bind"]),
            Word(text: "backends.main.url", paths: ["backends.NAME.url"]),
            Word(text: "backends.url", paths: ["backends.NAME.url"]),
            Word(text: "rooms.lobby.options.typing", paths: ["rooms.options"]),
            Word(text: "multiline.max_lines", paths: ["limits.multiline.max_lines"]),
            Word(text: "accounts.ann.upstream.lobby.as", paths: ["accounts.upstream.NAME.as"]),
            Word(text: "dialects.mine.file", paths: ["dialects"]),
            Word(text: "bind", paths: ["listeners.bind", "http.bind"]),
            Word(text: "limits.sendq.x", paths: []), Word(text: "nothing", paths: []), Word(text: "", paths: []),
        ])
    func found(_ word: Word) { #expect(ConfigurationTopic.named(word.text).map(\.path) == word.paths) }

    @Test("a misspelt key gets the nearest one")
    func hints() {
        #expect(ConfigurationTopic.hint(for: "limts.sendq") == " (did you mean \"limits.sendq\"?)")
        #expect(ConfigurationTopic.hint(for: "sendqq") == " (did you mean \"sendq\"?)")
        #expect(ConfigurationTopic.hint(for: "zebra") == "")
    }

    @Test("an explanation has the form, the default, what excludes it, the variable, and what is set")
    func lines() throws {
        let loaded = try loaded(Self.toml, files: ["/secret": "hunter2\n"])
        let password = try #require(ConfigurationTopic.named("identity.password").first)
        #expect(
            password.lines == [
                "identity.password",
                "  the server password (PASS), plain or as printed by chatbridge hash-password; one of the three",
                "  form      a string", "  default   none", "  example   password = \"${SERVER_PASSWORD}\"",
                "  excludes  password_file, password_credential", "  variable  CHATBRIDGE__IDENTITY__PASSWORD",
                "  reload    needs a restart",
            ])
        #expect(password.current(loaded) == ["identity.password = \"***\"  (chatbridge.toml:15)"])
        let ping = try #require(ConfigurationTopic.named("rooms.ping").first)
        #expect(ping.lines.contains("  variable  CHATBRIDGE__ROOMS__NAME__PING"))
        #expect(ping.lines.last == "  reload    in force at once; the link is opened anew")
        #expect(
            ping.current(loaded) == [
                "rooms.a.ping = \"5s\"  (chatbridge.toml:2)", "rooms.b.ping = \"5s\"  (chatbridge.toml:2)",
            ])
        let size = try #require(ConfigurationTopic.named("sendq").first)
        #expect(size.lines.contains("  form      a size from 16KiB to 1GiB, such as \"64KiB\""))
        #expect(size.lines.contains("  default   256KiB"))
        let section = try #require(ConfigurationTopic.named("media").first)
        #expect(section.lines.contains { $0.hasPrefix("  max_upload ") } && section.current(loaded) == [])
    }

    @Test("every key has a description of one line, and a default or an example")
    func complete() {
        for topic in ConfigurationTopic.all {
            #expect(!topic.outline.about.isEmpty && !topic.outline.about.contains("\n"), "\(topic.path)")
            #expect(topic.outline.about.count(where: { $0 == "`" }).isMultiple(of: 2), "\(topic.path)")
            let isNested = topic.initial == nil && topic.path.contains(/^(identity\.webirc|accounts\.upstream)\./)
            #expect(
                topic.initial != nil || topic.outline.example != nil || isNested || topic.path == "dialects"
                    || topic.path.contains(".send_as."), "\(topic.path)")
        }
    }
}
