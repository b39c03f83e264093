import BridgeTestSupport
import BridgeTypes
import Dialects
import HTTPProtocol
import JSONText
import Testing
import Upstream
import WSProtocol

@testable import BridgeCore
@testable import ChatBridge
@testable import Configuration
@testable import IRCServer
@testable import Rooms

@Suite("Backends in the configuration")
struct BackendConfigurationTests {
    static let main = """
        [backends.main]
        url = "wss://chat.example.com:8443/ws/{room}?v=1"
        auth = { type = "bearer", token = "hunter2" }
        ping = "7s"

        """

    static func rooms(_ toml: String) throws -> [RoomConfiguration] { try load(main + toml).rooms }

    // MARK: - What rooms have from their backend

    @Test("a room has everything from its backend, and what it says itself wins")
    func inheritance() throws {
        let rooms = try Self.rooms(
            """
            [room_defaults]
            ping = "9s"
            pong_timeout = "3s"
            [[rooms]]
            name = "a"
            backend = "main"
            [[rooms]]
            name = "b"
            backend = "main"
            upstream_room = "The Attic/é"
            ping = "8s"
            [[rooms]]
            name = "c"
            url = "ws://other.example/{room}"
            """)
        #expect(rooms[0].url?.text == "wss://chat.example.com:8443/ws/a?v=1")
        #expect(rooms[1].url?.text == "wss://chat.example.com:8443/ws/The%20Attic%2F%C3%A9?v=1")
        #expect(rooms.map(\.ping) == [.seconds(7), .seconds(8), .seconds(9)])
        #expect(rooms.map(\.pongTimeout) == [.seconds(3), .seconds(3), .seconds(3)])
        #expect(rooms.map(\.auth.type) == [.bearer, .bearer, .none])
        #expect(rooms.map(\.backendName) == ["main", "main", "c"])
    }

    @Test("rooms of one backend share one in the settings, a room without is one of its own")
    func settings() throws {
        let toml = """
            [[rooms]]
            name = "a"
            backend = "main"
            [[rooms]]
            name = "b"
            backend = "main"
            [[rooms]]
            name = "c"
            url = "ws://other.example:81/"
            """
        let configuration = try load(
            Self.main.replacing("[backends.main]", with: "[backends.main]\nuser = \"bridge\"") + toml)
        let settings = try BridgeSettings(configuration, instanceID: "i")
        #expect(settings.rooms.map(\.backend) == ["main", "main", "c"])
        #expect(settings.backends.map(\.name) == ["main", "c"])
        #expect(settings.backends.map(\.user) == ["bridge", nil])
        #expect(
            settings.backends.map { $0.httpBase?.description } == [
                "https://chat.example.com:8443/", "http://other.example:81/",
            ])
        #expect(settings.template == nil)
    }

    @Test(
        "the HTTP base is the origin of the url, or what is written",
        arguments: [
            ("wss://h/ws", "", "https://h/"), ("ws://h:80/ws", "", "http://h/"),
            ("ws://[::1]:81/ws", "", "http://[::1]:81/"),
            ("wss://h/ws", "https://api.h:444/base/", "https://api.h:444/base/"),
            ("ws+unix:///run/x:/ws", "", nil),
        ] as [(String, String, String?)])
    func httpBase(_ url: String, _ written: String, _ expected: String?) throws {
        let configuration = try load(
            "[backends.b]\nurl = \"\(url)\"\nhttp_base = \"\(written)\"\n[[rooms]]\nname = \"a\"\nbackend = \"b\"")
        let settings = try BridgeSettings(configuration, instanceID: "i")
        #expect(settings.backends.first?.httpBase?.description == expected)
    }

    @Test("variables set a backend's keys, or make one")
    func environment() throws {
        let configuration = try load(
            Self.main
                + "[[rooms]]\nname = \"a\"\nbackend = \"main\"\n[[rooms]]\nname = \"b\"\nbackend = \"second-one\"",
            variables: [
                "CHATBRIDGE__BACKENDS__MAIN__USER": "bridge", "CHATBRIDGE__BACKENDS__MAIN__PASSWORD": "hunter2",
                "CHATBRIDGE__BACKENDS__MAIN__QUEUE__MAX_MESSAGES": "5",
                "CHATBRIDGE__BACKENDS__SECOND-ONE__URL": "ws://second.example/",
            ])
        #expect(configuration.backends.map(\.name) == ["main", "second-one"])
        #expect(configuration.backends[0].user == "bridge")
        #expect(configuration.backends[0].password == .text(Secret("hunter2")))
        #expect(configuration.rooms[0].queue.maxMessages == 5)
        #expect(configuration.rooms[1].url?.text == "ws://second.example/")
    }

    @Test("a printed configuration with backends loads again and is the same, and shows no secret")
    func printed() throws {
        let configuration = try load(
            """
            [backends.main]
            url = "wss://chat.example.com/ws/{room}"
            http_base = "https://api.example.com/v1"
            user = "bridge"
            password_file = "/run/password"
            [backends.main.tls]
            server_name = "inner.example.com"
            [[rooms]]
            name = "a"
            backend = "main"
            [[rooms]]
            name = "*"
            backend = "main"
            """, files: ["/run/password": "hunter2"])
        let text = ConfigurationPrinter.text(configuration)
        #expect(text.contains("[backends.main]\n"))
        #expect(!text.contains("[backends]"))
        #expect(!text.contains("hunter2"))
        let again = try load(text, files: ["/run/password": "hunter2"])
        #expect(again == configuration)
    }

    @Test(
        "a history on the backend's own server may be written whole, and a login may be on any",
        arguments: [
            ("https://api.example.com/m/{room}", "https://id.example.com/login"),
            ("https://api.example.com:443/m", "/login"), ("/m/{room}?limit={limit}", "https://h.example.com/login"),
        ])
    func elsewhere(history: String, login: String) throws {
        let configuration = try load(
            """
            [dialects.mine]
            decode = []
            history = { get = "\(history)" }
            login = { post = "\(login)", body = { u = "{{account.name}}" }, token = "/t" }
            [backends.b]
            dialect = "mine"
            url = "wss://h.example.com/"
            http_base = "https://api.example.com/v1"
            user = "u"
            password = "p"
            [[rooms]]
            name = "a"
            backend = "b"
            """)
        let plan = try #require(BackendPlan.plans(configuration, environmentProxies: .direct).first)
        var random = SeededGenerator(seed: 1)
        func url(_ call: BackendCall) throws -> String {
            let request = try #require(
                (plan.settings.login?.calls ?? plan.settings.dialect.calls)?.request(
                    for: call, context: DialectContext(room: "a")))
            let order = BackendCallRequest(
                backend: BackendID(index: 0), request: request, authorization: UpstreamCredentials(),
                timeout: .seconds(1), maxAnswerBytes: 1)
            return try plan.place.request(order, using: &random).url.description
        }
        let base = "https://api.example.com/v1"
        #expect(try url(.logIn(user: "u", password: "p")) == (login.hasPrefix("/") ? base + login : login))
        #expect(try url(.history(HistoryQuery(room: "a"))).hasPrefix("https://api.example.com/"))
    }

    // MARK: - Problems

    private static func onePerson(_ who: String, _ dialect: String) -> String {
        who + " cannot have identity = \"puppet\": the dialect " + dialect
            + " speaks as one account, whoever writes; write identity = \"single\", which puts the nick before the text, "
            + "and give accounts that are to speak as themselves a login of their own ([accounts.upstream])"
    }

    static let cases = [
        ProblemCase(
            "each a person of their own where the login says who speaks",
            "[backends.b]\nurl = \"ws://h/{room}\"\ndialect = \"jwt-rooms\"\nidentity = \"puppet\"\n"
                + "[[rooms]]\nname = \"a\"\nbackend = \"b\"",
            "chatbridge.toml:5:12: " + onePerson("backend \"b\"", "jwt-rooms")),
        ProblemCase(
            "the same in a room, whatever its backend says",
            "[backends.b]\nurl = \"ws://h/{room}\"\ndialect = \"directus\"\n"
                + "[[rooms]]\nname = \"a\"\nbackend = \"b\"\nidentity = \"puppet\"",
            "chatbridge.toml:8:12: " + onePerson("room \"a\"", "directus")),
        ProblemCase(
            "the same from the defaults, with a column for the nick",
            "[room_defaults]\nidentity = \"puppet\"\n[[rooms]]\nname = \"a\"\nurl = \"ws://h/\"\n"
                + "dialect = \"directus\"\noptions = { send_sender_name = true }",
            "chatbridge.toml:3:12: " + onePerson("room \"a\"", "directus")),
        ProblemCase(
            "the same on a wire of bare strings",
            "[[rooms]]\nname = \"a\"\nurl = \"ws://h/\"\nidentity = \"puppet\"\ndialect = \"typed\"\n"
                + "options = { fallback_text = true }",
            "chatbridge.toml:5:12: " + onePerson("room \"a\"", "typed")),
        ProblemCase(
            "the same where a description's messages name no sender",
            "[dialects.mine]\ndecode = []\nencode = { message = { t = \"{{text}}\" } }\n"
                + "[[rooms]]\nname = \"a\"\nurl = \"ws://h/\"\nidentity = \"puppet\"\ndialect = \"mine\"",
            "chatbridge.toml:8:12: " + onePerson("room \"a\"", "mine")),
        ProblemCase(
            "no url", "[backends.b]\nping = \"1s\"", "chatbridge.toml:2:1: backend \"b\" has no url"),
        ProblemCase(
            "a name that is none", "[backends.\"chat.example\"]\nurl = \"ws://h/\"",
            "chatbridge.toml:2:11: a backend's name is 1 to 63 of a-z 0-9 _ -"),
        ProblemCase(
            "an unknown key", "[backends.b]\nurl = \"ws://h/\"\nusr = \"x\"",
            "chatbridge.toml:4:1: unknown key \"usr\" (did you mean \"user\"?)"),
        ProblemCase(
            "a room's own key", "[backends.b]\nurl = \"ws://h/\"\nchannel = \"#x\"",
            "chatbridge.toml:4:1: unknown key \"channel\""),
        ProblemCase(
            "a password without a user", "[backends.b]\nurl = \"ws://h/\"\npassword = \"x\"",
            "chatbridge.toml:4:12: password needs a user beside it"),
        ProblemCase(
            "a placeholder in the host", "[backends.b]\nurl = \"ws://{room}.h/\"",
            "chatbridge.toml:3:7: \"{room}.h\" is not a host name"),
        ProblemCase(
            "a placeholder in the port", "[backends.b]\nurl = \"ws://h:{room}/\"",
            "chatbridge.toml:3:7: \"{room}\" is not a port (0 to 65535)"),
        ProblemCase(
            "a placeholder in the HTTP base", "[backends.b]\nurl = \"ws://h/\"\nhttp_base = \"http://h/{room}\"",
            "chatbridge.toml:4:13: http_base is an http:// or https:// URL without query and placeholders: "
                + "the URL has a blank, a control or a non-ASCII character; write it percent-encoded"),
        ProblemCase(
            "a WebSocket as HTTP base", "[backends.b]\nurl = \"ws://h/\"\nhttp_base = \"ws://h/\"",
            "chatbridge.toml:4:13: http_base is an http:// or https:// URL without query and placeholders: "
                + "the scheme ws:// is not supported"),
        ProblemCase(
            "auth without its token, told once",
            "[backends.b]\nurl = \"ws://h/{room}\"\nauth = { type = \"bearer\" }\n[[rooms]]\nname = \"a\"\n"
                + "backend = \"b\"\n[[rooms]]\nname = \"c\"\nbackend = \"b\"",
            "chatbridge.toml:4:8: auth of type \"bearer\" needs token, token_file or token_credential"),
        ProblemCase(
            "TLS for a plain url, told once",
            "[backends.b]\nurl = \"ws://h/{room}\"\ntls = { insecure = true }\n[[rooms]]\nname = \"a\"\nbackend = \"b\"",
            "chatbridge.toml:4:7: backend \"b\" has TLS settings, but its url begins with ws://"),
        ProblemCase(
            "a backend that is none", "[backends.main]\nurl = \"ws://h/\"\n[[rooms]]\nname = \"a\"\nbackend = \"mian\"",
            "chatbridge.toml:6:11: there is no [backends.mian] (did you mean \"main\"?)"),
        ProblemCase(
            "one upstream room twice",
            "[backends.b]\nurl = \"ws://h/{room}\"\n[[rooms]]\nname = \"a\"\nbackend = \"b\"\n[[rooms]]\nname = \"c\"\n"
                + "backend = \"b\"\nupstream_room = \"a\"",
            "chatbridge.toml:10:17: upstream room \"a\" of backend \"b\" is room \"a\" already"),
        ProblemCase(
            "a room with a backend's name",
            "[backends.b]\nurl = \"ws://h/\"\n[[rooms]]\nname = \"b\"\nurl = \"ws://h/\"",
            "chatbridge.toml:5:8: room \"b\" is a backend of its own, and there is a [backends.b]; "
                + "write backend = \"b\", or give one of them another name"),
        ProblemCase(
            "an upstream room that leads elsewhere",
            "[[rooms]]\nname = \"b\"\nurl = \"ws://h/{room}/x\"\nupstream_room = \"..\"",
            "chatbridge.toml:5:17: a room upstream cannot be called \"..\""),
        ProblemCase(
            "an option that the dialect has not, at its place",
            "[backends.b]\nurl = \"ws://h/\"\noptions = { a = { b = 1 } }\n[[rooms]]\nname = \"c\"\nbackend = \"b\"",
            "chatbridge.toml:4:13: options.a: unknown option; dialect \"envelope\" has no options here"),
        ProblemCase(
            "a history on another server",
            "[backends.b]\nurl = \"ws://h/{room}\"\ndialect = \"plainjson\"\n"
                + "options = { history_url = \"http://other/m/{room}\" }\n[[rooms]]\nname = \"a\"\nbackend = \"b\"",
            "chatbridge.toml:5:27: options.history_url is on http://other, and history is only asked for on the "
                + "backend's own server, http://h (http_base)"),
        ProblemCase(
            "a history on another port",
            "[[rooms]]\nname = \"a\"\nurl = \"ws://h:1/\"\ndialect = \"plainjson\"\n"
                + "options = { history_url = \"http://h:2/m/{room}\" }",
            "chatbridge.toml:6:27: options.history_url is on http://h:2, and history is only asked for on the "
                + "backend's own server, http://h:1 (http_base)"),
        ProblemCase(
            "a described history on another server",
            "[dialects.mine]\ndecode = []\nhistory = { get = \"https://other/x\" }\n[[rooms]]\nname = \"a\"\n"
                + "url = \"ws://h/\"\ndialect = \"mine\"",
            "chatbridge.toml:8:11: history.get of the dialect \"mine\" is on https://other, and history is only asked for "
                + "on the backend's own server, http://h (http_base)"),
        ProblemCase(
            "a described login in plain text beside an encrypted room",
            "[dialects.mine]\ndecode = []\nlogin = { post = \"http://id/x\", body = {}, token = \"/t\" }\n"
                + "[backends.b]\nurl = \"wss://h/\"\ndialect = \"mine\"\nuser = \"u\"\npassword = \"p\"",
            "chatbridge.toml:7:11: login.post of the dialect \"mine\" is plain http:// while the room's url is encrypted; "
                + "what it carries could be read"),
        ProblemCase(
            "options that are none", "[[rooms]]\nname = \"b\"\nurl = \"ws://h/\"\noptions = 3",
            "chatbridge.toml:5:11: expected a table of options, such as { name = \"value\" }, found an integer"),
        ProblemCase(
            "a template with a channel", "[[rooms]]\nname = \"*\"\nurl = \"ws://h/{room}\"\nchannel = \"#x\"",
            "chatbridge.toml:5:11: the room \"*\" stands for many and has no channel"),
        ProblemCase(
            "a template that is always connected", "[[rooms]]\nname = \"*\"\nurl = \"ws://h/\"\nconnect = \"always\"",
            "chatbridge.toml:5:11: rooms that \"*\" opens are connected while somebody is in them: "
                + "connect = \"while-joined\""),
    ]

    @Test("a backend's problem is told with its place", arguments: cases)
    func problem(_ row: ProblemCase) {
        #expect(
            problems(
                withRoom(row.toml).replacing(
                    "rooms = [{ name = \"lobby\", url = \"ws://127.0.0.1:8080/chat\" }]", with: "[server]")
            )
            .filter { !$0.contains("there is no [[rooms]]") } == [row.expected])
    }

    // MARK: - Options

    @Test("a room's options are laid over those of its backend, table by table")
    func options() throws {
        var reader = ConfigurationReader(environment: testEnvironment(variables: ["X": "from outside"]))
        var tree = DialectOptionTree()
        func lay(_ toml: String, _ origin: ConfigurationOrigin? = nil) throws {
            let parsed = try TOMLReader.parse(Array(toml.utf8), path: "a.toml")
            tree.lay(origin.map { parsed.relocated(to: $0) } ?? parsed, &reader)
        }
        try lay("a = 1\nlist = [1, 2]\n[fields]\ntext = \"body\"\nroom = \"${X}\"")
        try lay("list = [3]\nfields = { room = \"hall\", user = 1.5 }\nb = true")
        #expect(
            tree.json
                == .object([
                    JSONValue.Member("a", .integer(1)), JSONValue.Member("list", .array([.integer(3)])),
                    JSONValue.Member(
                        "fields",
                        .object([
                            JSONValue.Member("text", .string("body")), JSONValue.Member("room", .string("hall")),
                            JSONValue.Member("user", .double(1.5)),
                        ])), JSONValue.Member("b", .bool(true)),
                ]))
        #expect(tree.origin(of: ["fields", "text"], isUnknown: true) == .file(path: "a.toml", line: 4, column: 1))
        #expect(tree.origin(of: ["fields", "text"], isUnknown: false) == .file(path: "a.toml", line: 4, column: 8))
        #expect(tree.origin(of: ["fields", "room"], isUnknown: false) == .file(path: "a.toml", line: 2, column: 19))
        #expect(tree.origin(of: ["list", "0"], isUnknown: false) == .file(path: "a.toml", line: 1, column: 9))
    }

    @Test(
        "a variable's option is TOML where it is some, else text",
        arguments: [
            ("true", .bool(true)), ("7", .integer(7)), ("-1.5", .double(-1.5)), ("\"7\"", .string("7")),
            ("start_stop", .string("start_stop")), ("{a = 1}", .object([JSONValue.Member("a", .integer(1))])),
            ("[1, \"x\"]", .array([.integer(1), .string("x")])), ("2020-01-01", .string("2020-01-01")),
            ("1\nb = 2", .string("1\nb = 2")), ("", .string("")), ("{", .string("{")),
        ] as [(String, JSONValue)])
    func variable(_ text: String, _ expected: JSONValue) throws {
        var reader = ConfigurationReader(environment: testEnvironment())
        var tree = DialectOptionTree()
        var node = ConfigurationNode(.table([]))
        node.set("o", to: ConfigurationNode(.string(text), origin: .environment("V")))
        tree.lay(node, &reader)
        #expect(tree.json["o"] == expected)
    }

    @Test("a printed option shows neither what came from outside nor what is called a secret")
    func printedOptions() throws {
        var reader = ConfigurationReader(environment: testEnvironment(variables: ["X": "hunter2"]))
        var tree = DialectOptionTree()
        let toml = "a = \"${X}\"\nb = { api_token = \"hunter2\", text = \"body\" }"
        tree.lay(try TOMLReader.parse(Array(toml.utf8), path: "a.toml"), &reader)
        #expect(tree.json["a"] == .string("hunter2"))
        var again = DialectOptionTree()
        again.lay(tree.printed, &reader)
        #expect(again.json["a"] == .string(Secret.blank))
        #expect(again.json["b"]?["api_token"] == .string(Secret.blank))
        #expect(again.json["b"]?["text"] == .string("body"))
    }

    // MARK: - Templates

    @Test("a template makes the settings of one room by its name upstream")
    func template() throws {
        let configuration = try Self.rooms("[[rooms]]\nname = \"*\"\nbackend = \"main\"\nmax_frame = \"2KiB\"")
        #expect(configuration[0].connect == .whileJoined)
        let settings = try BridgeSettings(
            try load(Self.main + "[[rooms]]\nname = \"*\"\nbackend = \"main\"\nmax_frame = \"2KiB\""), instanceID: "i")
        #expect(settings.rooms.isEmpty)
        #expect(settings.backends.map(\.name) == ["main"])
        let template = try #require(settings.template)
        #expect(template.backend == "main")
        let room = try #require(template.settings("a b?/é"))
        #expect(room.url.pathAndQuery == "/ws/a%20b%3F%2F%C3%A9?v=1")
        #expect(room.upstreamRoom == "a b?/é")
        #expect(room.backend == "main")
        #expect(room.authenticates)
        #expect(room.webSocketLimits.maxFrameBytes == 2048)
        for name in [".", "..", "a\u{0}b", "a\nb"] { #expect(template.settings(name) == nil, "\(name)") }
    }

    @Test("rooms of the template are secured and shown to the backend as the template says")
    func perRoom() throws {
        let configuration = try load(
            Self.main + "[[rooms]]\nname = \"c\"\nurl = \"ws://h/\"\n[[rooms]]\nname = \"*\"\nbackend = \"main\"")
        let rooms = RoomsByName(configuration.rooms)
        #expect(rooms["c"]?.auth.type == AuthConfiguration.Kind.none)
        #expect(rooms["any"]?.auth.type == .bearer)
        let secrets = UpstreamSecrets(configuration, environment: testEnvironment())
        #expect(
            try secrets.read("any").get().headers == [
                UpstreamCredentials.Item(name: "Authorization", value: "Bearer hunter2")
            ])
    }
}
