import BridgeTestSupport
import BridgeTypes
import Dialects
import Testing

@testable import Configuration

enum DialectNames {
    static var text: String { DialectTable.names.joined(separator: ", ") }
}

@Suite("Configuration layers")
struct ConfigurationLayersTests {
    @Test("a flag beats a variable, a variable beats the file, the file beats the default")
    func precedence() throws {
        let toml = withRoom("[server]\nstate_dir = \"/file\"\n[log]\nlevel = \"debug\"")
        let variables = ["CHATBRIDGE__SERVER__STATE_DIR": "/variable"]
        #expect(try load(toml).server.stateDirectory == "/file")
        #expect(try load(toml, variables: variables).server.stateDirectory == "/variable")
        let request = ConfigurationRequest(stateDirectory: "/flag", logLevel: "trace")
        let loaded = try load(toml, variables: variables, request: request)
        #expect(loaded.server.stateDirectory == "/flag")
        #expect(loaded.log.level == .trace)
        #expect(loaded.log.format == .auto)
    }

    @Test("rooms take what the defaults say, wherever these stand, and overrule it key by key")
    func roomDefaults() throws {
        let toml = """
            [[rooms]]
            name = "a"
            url = "ws://h/"
            queue = { max_age = "1h" }
            headers = { x-team = "b", X-More = "c" }
            [room_defaults]
            queue = { max_messages = 7 }
            headers = { X-Team = "a" }
            ping = "off"
            """
        let room = try #require(try load(toml).rooms.first)
        #expect(room.queue == QueueConfiguration(maxMessages: 7, maxAge: .seconds(3600)))
        #expect(room.ping == nil)
        #expect(room.headers == [UpstreamHeader("x-team", Secret("b")), UpstreamHeader("X-More", Secret("c"))])
    }

    @Test("a variable reaches every kind of key")
    func variableKinds() throws {
        let loaded = try load(
            withRoom("[[listeners]]\nbind = \"irc://127.0.0.1:1\""),
            variables: [
                "CHATBRIDGE__LIMITS__MULTILINE__MAX_LINES": "7",
                "CHATBRIDGE__LIMITS__MESSAGES_PER_SECOND": "2.5",
                "CHATBRIDGE__LIMITS__SENDQ": "1MiB",
                "CHATBRIDGE__IDENTITY__NICKS__UTF8": "false",
                "CHATBRIDGE__ROOMS__LOBBY__SUBPROTOCOL": "a, b",
                "CHATBRIDGE__ROOMS__LOBBY__HEADERS__X_TEAM": "blue",
                "CHATBRIDGE__ROOMS__OPS__URL": "ws://ops/",
                "CHATBRIDGE__ROOMS__OPS__BACKOFF": "{ min = \"3s\" }",
                "CHATBRIDGE__ROOM_DEFAULTS__SUBPROTOCOL": "[\"c,d\"]".replacing(",", with: "."),
                "CHATBRIDGE__LISTENERS__1__BIND": "irc://127.0.0.1:2",
                "CHATBRIDGE__LOG__LEVELS__UPSTREAM": "debug",
                "CHATBRIDGE__SERVER__MOTD": "costs ${5} $$",
            ])
        #expect(loaded.limits.multilineMaxLines == 7)
        #expect(loaded.limits.messagesPerSecond == 2.5)
        #expect(loaded.limits.sendQueueBytes == 1_048_576)
        #expect(!loaded.identity.nicks.utf8)
        #expect(loaded.rooms.map(\.name) == ["lobby", "ops"])
        #expect(loaded.rooms.map(\.subprotocols) == [["a", "b"], ["c.d"]])
        #expect(loaded.rooms.first?.headers == [UpstreamHeader("x-team", Secret("blue"))])
        #expect(loaded.rooms.last?.backoff.min == .seconds(3))
        #expect(loaded.listeners.map(\.bind.endpoint.port) == [1, 2])
        #expect(loaded.log.level(of: .upstream) == .debug)
        #expect(loaded.server.motd == "costs ${5} $$", "variables are taken as they are")
    }

    @Test("a room with a dash is found by its variable")
    func dashedRoom() throws {
        let loaded = try load(
            "[[rooms]]\nname = \"my-room\"\nurl = \"ws://a/\"",
            variables: ["CHATBRIDGE__ROOMS__MY_ROOM__URL": "ws://b/"])
        #expect(loaded.rooms.map { $0.url?.text } == ["ws://b/"])
    }

    static let variableCases = [
        ProblemCase("a part too many", "CHATBRIDGE__LOG__LEVEL__X", "there is nothing below this key"),
        ProblemCase("an empty part", "CHATBRIDGE__LOG____LEVEL", "is not of the form CHATBRIDGE__SECTION__KEY"),
        ProblemCase(
            "an index out of reach", "CHATBRIDGE__LISTENERS__5__BIND", "\"5\" is not an index from 0 to 0"),
        ProblemCase("a table in one value", "CHATBRIDGE__LOG", "expected a TOML table, such as {a = 1}"),
        ProblemCase(
            "a room's unknown key", "CHATBRIDGE__ROOMS__LOBBY__URLL", "unknown key \"urll\" (did you mean \"url\"?)"),
        ProblemCase(
            "a short form misspelt", "CHATBRIDGE_UPSTREAM_ULR",
            "is not known (did you mean \"CHATBRIDGE_UPSTREAM_URL\"?)"),
        ProblemCase("a short form alone", "CHATBRIDGE_TOKEN", "needs CHATBRIDGE_UPSTREAM_URL beside it"),
    ]

    @Test("a variable's problem names the variable", arguments: variableCases)
    func variableProblem(_ row: ProblemCase) {
        #expect(problems(withRoom(""), variables: [row.toml: "x"]) == ["\(row.toml): \(row.expected)"])
    }

    private static func environment(_ variables: [String: String], file: String = "") -> ConfigurationEnvironment {
        ConfigurationEnvironment(variables: variables, hostName: "h.test") { _ in .success(Array(file.utf8)) }
    }

    @Test("what Kubernetes puts into the environment is left alone")
    func kubernetes() {
        let variables = [
            "CHATBRIDGE_SERVICE_HOST": "10.0.0.1", "CHATBRIDGE_PORT": "tcp://10.0.0.1:6667",
            "CHATBRIDGE_PORT_6667_TCP_ADDR": "10.0.0.1", "CHATBRIDGE_SERVICE_PORT_IRC": "6667",
            "CHATBRIDGE_WEB_SERVICE_HOST": "10.0.0.2", "CHATBRIDGE_WEB_PORT_80_TCP": "tcp://10.0.0.2:80",
        ]
        #expect(problems(withRoom(""), variables: variables) == [])
        #expect(UnknownVariable.all(in: Self.environment(variables), path: nil) == [])
    }

    @Test(
        "an unknown variable is named with the nearest one",
        arguments: [
            ("CHATBRIDGE_PASSWORD", "CHATBRIDGE__IDENTITY__PASSWORD"),
            ("CHATBRIDGE_SERVER_NAME", "CHATBRIDGE__SERVER__NAME"), ("CHATBRIDGE_URL", "CHATBRIDGE_UPSTREAM_URL"),
            ("CHATBRIDGE_STATE_DIR", "CHATBRIDGE__SERVER__STATE_DIR"),
            ("CHATBRIDGE_LOG_FORMAT", "CHATBRIDGE__LOG__FORMAT"), ("CHATBRIDGE_LOG_LEVLE", "CHATBRIDGE__LOG__LEVEL"),
            ("CHATBRIDGE_LISTENERS", "CHATBRIDGE__LISTENERS"), ("CHATBRIDGE_PORT", nil), ("CHATBRIDGE_", nil),
            ("CHATBRIDGE_BUILD_REVISION", nil),
        ])
    func unknown(name: String, nearest: String?) {
        let variables = [
            name: "hunter2", "CHATBRIDGE_UPSTREAM_URL": "ws://a/", "CHATBRIDGE__LOG__LEVEL": "info", "HOME": "/",
            "CHATBRIDGE_OWN": "o", "CHATBRIDGE_TWO": "t",
        ]
        let environment = Self.environment(
            variables, file: "[server]\nmotd = \"${CHATBRIDGE_OWN}${CHATBRIDGE_TWO:-x}\"")
        let found = UnknownVariable.all(in: environment, path: "chatbridge.toml")
        #expect(found == [UnknownVariable(name: name, nearest: nearest)])
        #expect(found.allSatisfy { $0.sentence.hasPrefix("\(name) is not known") && !$0.sentence.contains("hunter2") })
        #expect(problems(withRoom(""), variables: [name: "x"]) == [])
    }

    @Test("one variable is a whole configuration, its companions complete it")
    func sidecar() throws {
        let alone = try load(nil, variables: ["CHATBRIDGE_UPSTREAM_URL": "ws://app:8080/chat", "CHATBRIDGE_ROOM": ""])
        #expect(alone.rooms.map(\.name) == ["lobby"])
        #expect(alone.rooms.map(\.channel) == ["#lobby"])
        #expect(alone.listeners == [ListenerConfiguration()])

        let full = try load(
            nil,
            variables: [
                "CHATBRIDGE_UPSTREAM_URL": "ws://app/{room}", "CHATBRIDGE_ROOM": "dev",
                "CHATBRIDGE_DIALECT": "envelope", "CHATBRIDGE_TOKEN_FILE": "/t", "CHATBRIDGE_PASSWORD_FILE": "/p",
                "CHATBRIDGE_LISTEN": "irc+insecure://0.0.0.0:6667, irc://[::1]:0",
                "CHATBRIDGE__ROOMS__DEV__TOPIC": "hello",
            ], files: ["/t": "secret\n", "/p": "pass\r\n"])
        let room = try #require(full.rooms.first)
        #expect(full.rooms.count == 1)
        #expect(room.url?.text == "ws://app/dev")
        #expect(room.topic == "hello")
        #expect(room.auth == AuthConfiguration(type: .bearer, token: .file("/t")))
        #expect(full.identity.password == .plain(Secret("pass")))
        #expect(full.listeners.map(\.bind.description) == ["irc+insecure://0.0.0.0:6667", "irc://[::1]:0"])
    }

    @Test("a sidecar's problem names its variable")
    func sidecarProblems() {
        #expect(
            problems(
                nil,
                variables: [
                    "CHATBRIDGE_UPSTREAM_URL": "http://x/", "CHATBRIDGE_TOKEN": "a", "CHATBRIDGE_TOKEN_FILE": "/t",
                ]) == [
                    "CHATBRIDGE_TOKEN_FILE: excludes CHATBRIDGE_TOKEN; keep one of them",
                    "CHATBRIDGE_UPSTREAM_URL: the URL must be that of the WebSocket and begin with ws:// or wss://",
                ])
    }

    @Test("a password from a variable overrules the file's, whichever way each is given")
    func groupAcrossLayers() throws {
        let loaded = try load(
            withRoom("[identity]\npassword = \"file\""), variables: ["CHATBRIDGE__IDENTITY__PASSWORD_FILE": "/p"],
            files: ["/p": "variable"])
        #expect(loaded.identity.password == .plain(Secret("variable")))
    }

    @Test("a systemd credential is read from its directory, by a key of its own or within any string")
    func credential() throws {
        let variables = ["CREDENTIALS_DIRECTORY": "/run/c"]
        let toml = withRoom("[identity]\npassword_credential = \"pw\"")
        let loaded = try load(toml, variables: variables, files: ["/run/c/pw": "x"])
        #expect(loaded.identity.password == .plain(Secret("x")))
        #expect(
            problems(toml) == [
                "chatbridge.toml:3:23: there is no $CREDENTIALS_DIRECTORY: no LoadCredential= in the systemd unit?"
            ])
        #expect(
            problems(toml, variables: variables) == ["chatbridge.toml:3:23: there is no file \"/run/c/pw\""])
        #expect(
            problems(withRoom("[identity]\npassword_credential = \"../pw\"")).first?.contains("not a path") == true)
        let account = withRoom("[[accounts]]\nname = \"ann\"\npassword_credential = \"ann\"")
        let hashed = try load(account, variables: variables, files: ["/run/c/ann": examplePasswordHash + "\n"])
        let plain = try load(withRoom("[[accounts]]\nname = \"ann\"\npassword = \"\(examplePasswordHash)\""))
        #expect(hashed.accounts == plain.accounts)
        // Where a table or a list holds the secret there is no key for a name.
        let proxied = try load(
            withRoom("[room_defaults]\nproxy = \"http://u:${credential:pw}@proxy.test:3128\""), variables: variables,
            files: ["/run/c/pw": "x"])
        #expect(
            proxied.rooms.first?.proxy
                == (try load(withRoom("[room_defaults]\nproxy = \"http://u:x@proxy.test:3128\""))).rooms.first?.proxy)
    }

    @Test(
        "a secret is given in one way",
        arguments: [
            ("[identity]", "password", "\"s\""),
            ("[[accounts]]\nname = \"a\"", "password", "\"\(examplePasswordHash)\""),
            ("[backends.main]\nurl = \"ws://b.test/\"\nuser = \"u\"", "password", "\"s\""),
            ("[room_defaults.auth]\ntype = \"bearer\"", "token", "\"s\""),
        ])
    func oneWay(_ table: String, _ key: String, _ value: String) {
        let ways = ["\(key) = \(value)", "\(key)_file = \"/f\"", "\(key)_credential = \"c\""]
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            let found = problems(
                withRoom("\(table)\n\(ways[one])\n\(ways[other])"),
                variables: ["CREDENTIALS_DIRECTORY": "/c"],
                files: ["/f": examplePasswordHash, "/c/c": examplePasswordHash])
            #expect(found.count == 1)
            #expect(found.first?.contains("exclude each other") == true, "\(found)")
        }
    }

    @Test("a door beyond loopback opens with a password, or with the word never")
    func openDoors() {
        let door = "[[listeners]]\nbind = \"irc+insecure://0.0.0.0:6667\"\n[identity]\n"
        #expect(problems(withRoom(door)).count == 1)
        #expect(problems(withRoom(door + "password = \"x\"")) == [])
        #expect(problems(withRoom(door + "require_login = \"never\"")) == [])
        #expect(problems(withRoom(door), variables: ["CHATBRIDGE__IDENTITY__REQUIRE_LOGIN": "never"]) == [])
    }

    @Test("the state directory follows systemd, then XDG, then the working directory")
    func stateDirectory() throws {
        #expect(try load(withRoom(""), variables: ["STATE_DIRECTORY": "/a:/b"]).server.stateDirectory == "/a")
        #expect(
            try load(withRoom(""), variables: ["XDG_STATE_HOME": "/x"]).server.stateDirectory == "/x/chatbridge")
        #expect(try load(withRoom("")).server.stateDirectory == "./state")
    }

    // MARK: - Texts

    struct DurationCase: CustomTestStringConvertible, Sendable {
        var text: String
        var expected: Duration?
        var testDescription: String { text }
    }

    @Test(
        "a duration is a whole number and a unit",
        arguments: [
            DurationCase(text: "500ms", expected: .milliseconds(500)),
            DurationCase(text: "30s", expected: .seconds(30)),
            DurationCase(text: "5m", expected: .seconds(300)), DurationCase(text: "12h", expected: .seconds(43_200)),
            DurationCase(text: "7d", expected: .seconds(604_800)), DurationCase(text: "0", expected: .zero),
            DurationCase(text: "off", expected: .zero), DurationCase(text: "10"), DurationCase(text: "1.5s"),
            DurationCase(text: "-1s"), DurationCase(text: "s"), DurationCase(text: ""), DurationCase(text: "1h30m"),
            DurationCase(text: "١s"), DurationCase(text: "99999999999999999999s"), DurationCase(text: "3651d"),
        ])
    func durations(_ row: DurationCase) {
        #expect(DurationText.parse(row.text) == row.expected)
        if let expected = row.expected { #expect(DurationText.parse(DurationText.format(expected)) == expected) }
    }

    @Test(
        "a size is bytes or a whole number of binary units",
        arguments: [
            ("512", 512), ("64KiB", 65_536), ("1MiB", 1_048_576), ("2GiB", 2_147_483_648), ("off", 0), ("0", 0),
            ("1KB", nil), ("1.5MiB", nil), ("-1", nil), ("", nil), ("9223372036854775807KiB", nil),
        ] as [(String, Int?)])
    func sizes(_ text: String, _ expected: Int?) {
        #expect(SizeText.parse(text) == expected)
        if let expected { #expect(SizeText.parse(SizeText.format(expected)) == expected) }
    }

    @Test(
        "dollars and braces are read as documented",
        arguments: [
            ("plain", "plain"), ("$$", "$"), ("$$$$", "$$"), ("$x", "$x"), ("a$", "a$"), ("${A}", "1"),
            ("${A}${A}", "11"), ("${B:-d}", "d"), ("${E:-d}", "d"), ("${E}", ""), ("${B:-a:-b}", "a:-b"),
            ("$${A}", "${A}"), ("${file:/f}", "text"), ("$scram-sha-256$6", "$scram-sha-256$6"), ("${B}", nil),
            ("${file:/none}", nil), ("${credential:c}", "text"), ("${credential:none}", nil), ("${credential:}", nil),
            ("${credential:../f}", nil), ("${A", nil), ("${}", nil), ("${1A}", nil), ("${a b}", nil),
        ] as [(String, String?)])
    func interpolation(_ text: String, _ expected: String?) {
        let machine = testEnvironment(
            ["/f": "text\n", "/d/c": "text\n"], variables: ["A": "1", "E": "", "CREDENTIALS_DIRECTORY": "/d"])
        #expect((try? Interpolation.expand(text, environment: machine)) == expected)
    }

    @Test(
        "the nearest name is offered only when it is near",
        arguments: [
            ("tokn", "token"), ("tkoen", "token"), ("URL", "url"), ("nam", "name"), ("zebra", nil), ("", nil),
            (String(repeating: "x", count: 100), nil),
        ] as [(String, String?)])
    func nearestName(_ word: String, _ expected: String?) {
        #expect(NearestName.suggestion(for: word, among: ["token", "url", "name"]) == expected)
    }

    @Test("the room's id is percent-encoded into the URL")
    func placeholder() throws {
        let url = try UpstreamURL(parsing: "ws://h/{room}/x?room={room}").filled(room: "a b/ü{room}")
        #expect(url.text == "ws://h/a%20b%2F%C3%BC%7Broom%7D/x?room=a%20b%2F%C3%BC%7Broom%7D")
        #expect(url.description == "ws://h/a%20b%2F%C3%BC%7Broom%7D/x?room=***")
    }

    @Test(
        "of a query the room's name is shown and nothing else",
        arguments: [
            ("?channel={room}&token=s3cret", "?channel=ops&token=***"), ("?channel=ops", "?channel=ops"),
            ("?s3cret", "?***"), ("?key=ops2", "?key=***"),
        ])
    func shownQuery(_ query: String, _ shown: String) throws {
        let url = try UpstreamURL(parsing: "ws://h/" + query)
        #expect(url.filled(room: "ops").description(showing: "ops") == "ws://h/" + shown)
        #expect(url.filled(room: "ops").description == "ws://h/" + shown.replacing("=ops", with: "=***"))
    }

    @Test("written backoff numbers replace the dialect's, and the cap is never below the first wait")
    func backoff() {
        let traits = BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0.25, degradedAfter: 3)
        #expect(BackoffConfiguration().applied(to: traits) == traits)
        let applied = BackoffConfiguration(min: .seconds(60), jitter: 0).applied(to: traits)
        #expect(applied.first == .seconds(60))
        #expect(applied.cap == .seconds(60))
        #expect(applied.jitter == 0)
        #expect(applied.degradedAfter == 3)
    }

    @Test("the token of an HTTP listener is read from a file, or from a credential")
    func httpTokens() throws {
        let token = "0123456789abcdef"
        let machine = testEnvironment(
            ["/t": token + "\n", "/run/c/http": token], variables: ["CREDENTIALS_DIRECTORY": "/run/c"])
        for line in ["token_file = \"/t\"", "token_credential = \"http\""] {
            let text = withRoom("[[http]]\nbind = \"http://127.0.0.1:0\"\nserve = [\"status\"]\n" + line)
            let loaded = try load(
                text, variables: ["CREDENTIALS_DIRECTORY": "/run/c"],
                files: ["/t": token + "\n", "/run/c/http": token])
            #expect(try loaded.http.first?.token?.read(machine).revealed == token, "\(line)")
        }
    }
}
