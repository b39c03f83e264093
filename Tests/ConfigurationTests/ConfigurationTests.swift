import BridgeTestSupport
import BridgeTypes
import Foundation
import Testing

@testable import Configuration

@Suite("Configuration")
struct ConfigurationTests {
    // MARK: - Defaults and the example

    @Test("a room alone gives every default")
    func defaults() throws {
        let loaded = try load(withRoom(""))
        var expected = Configuration()
        expected.server.name = "edge.example.org"
        expected.server.stateDirectory = "./state"
        var room = RoomConfiguration()
        room.name = "lobby"
        room.channel = "#lobby"
        room.upstreamRoom = "lobby"
        room.url = try UpstreamURL(parsing: "ws://127.0.0.1:8080/chat")
        expected.rooms = [room]
        #expect(loaded == expected)
    }

    @Test("the example file is the defaults and one room: it opens nothing else, and lets nobody in")
    func exampleEqualsDefaults() throws {
        var loaded = try load(try RepositoryFile.example("chatbridge.toml"))
        #expect(loaded.rooms.map(\.name) == ["lobby"])
        loaded.rooms = []
        var expected = Configuration()
        expected.server.name = "edge.example.org"
        expected.server.stateDirectory = "./state"
        #expect(loaded == expected)
        #expect(loaded.listeners.count == 1 && loaded.http.isEmpty && loaded.accounts.isEmpty)
    }

    @Test("what the example file has commented out loads, and holds no password that anybody could know")
    func commentedExamples() throws {
        let text = try RepositoryFile.example("chatbridge.toml")
        let uncommented = text.replacing(#/^#(?=[a-z\[])/#.anchorsMatchLineEndings(), with: "")
        #expect(!text.contains(#/scram-sha-256\$[0-9]/#))
        let files = [
            "/etc/chatbridge/alice.hash": examplePasswordHash, "dialects/mine.json": #"{"decode":[]}"#,
            "/run/secrets/team-hook": "https://hooks.example.com/team",
        ]
        let loaded = try load(uncommented, files: files)
        #expect(loaded.rooms.map(\.name) == ["kitchen", "*", "lobby", "support", "ops", "board", "desk", "shop"])
        #expect(loaded.backends.map(\.name) == ["main"])
        #expect(loaded.rooms[0].url?.text == "wss://chat.example.com/ws/kitchen")
        #expect(loaded.rooms[1].url?.text == "wss://chat.example.com/ws/{room}")
        #expect(loaded.rooms[3].url?.text == "ws://127.0.0.1:8080/rooms/support")
        #expect(loaded.listeners.count == 3 && loaded.http == [HTTPConfiguration()])
        #expect(loaded.accounts.map(\.name) == ["alice"])
    }

    @Test("the example file is what the program prints, and shows every key")
    func exampleIsPrinted() throws {
        #expect(try RepositoryFile.example("chatbridge.toml") == ExampleConfiguration.text, "scripts/generate-docs")
        let text = ExampleConfiguration.text
        // Those of rooms stand in [room_defaults]; those of tables within a line, in its value.
        let inner = [
            "identity.webirc.", "accounts.upstream.", "auth.send_as.", "queue.", "multiline.", "batch.", "ignore.",
            "retry.",
        ]
        let keys = ConfigurationTopic.all.filter { topic in
            topic.outline.shape.keys.isEmpty && !inner.contains { topic.path.contains($0) } && topic.path != "dialects"
        }
        #expect(keys.count > 200)
        for topic in keys {
            let line = try Regex(
                "(?m)^#? ?\(topic.outline.key) = .*# [^ ]|^#? ?\(topic.outline.key) = .*\\n {35}# [^ ]")
            #expect(text.contains(line), "\(topic.path)")
        }
    }

    @Test("the sidecar's environment loads without a file")
    func sidecarExample() throws {
        var variables: [String: String] = [:]
        for line in try RepositoryFile.example("sidecar.env").split(separator: "\n") where !line.hasPrefix("#") {
            let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
            variables[parts[0]] = parts[1]
        }
        let loaded = try load(nil, variables: variables)
        #expect(loaded.rooms.first?.url?.text == "ws://127.0.0.1:8080/chat")
        #expect(loaded.server.stateDirectory == "/state")
        #expect(loaded.limits.maxClients == 100)
    }

    // MARK: - Problems

    static let cases = [
        ProblemCase(
            "an unknown key with a near one", "[limits]\nmax_client = 3",
            "chatbridge.toml:3:1: unknown key \"max_client\" (did you mean \"max_clients\"?)"),
        ProblemCase("an unknown key far from all", "[zebra]", "chatbridge.toml:2:2: unknown key \"zebra\""),
        ProblemCase(
            "a wrong type", "[limits]\nmax_clients = \"many\"",
            "chatbridge.toml:3:15: expected a whole number from 1 to 1000000, found \"many\""),
        ProblemCase(
            "a number out of range", "[limits]\nmax_clients = 0",
            "chatbridge.toml:3:15: expected a whole number from 1 to 1000000, found 0"),
        ProblemCase(
            "a number beyond 64 bits of duration", "[server]\ndrain = \"9223372036854775807d\"",
            "chatbridge.toml:3:9: expected a duration, such as \"500ms\", \"30s\", \"5m\", \"12h\" or \"7d\", "
                + "found \"9223372036854775807d\""),
        ProblemCase(
            "a duration without a unit", "[server]\ndrain = 10",
            "chatbridge.toml:3:9: expected a duration, such as \"500ms\", \"30s\", \"5m\", \"12h\" or \"7d\", "
                + "found an integer"),
        ProblemCase(
            "a size below the least", "[limits]\nrecvq = \"1KiB\"",
            "chatbridge.toml:3:9: expected a size from 8703 to 1GiB, such as \"64KiB\", found \"1KiB\""),
        ProblemCase(
            "a wrong word", "[log]\nlevel = \"wran\"",
            "chatbridge.toml:3:9: expected \"error\" or \"warn\" or \"info\" or \"debug\" or \"trace\", found \"wran\" "
                + "(did you mean \"warn\"?)"),
        ProblemCase(
            "an unknown dialect", "[room_defaults]\ndialect = \"envelop\"",
            "chatbridge.toml:3:11: unknown dialect \"envelop\" (did you mean \"envelope\"?); this version has: "
                + DialectNames.text),
        ProblemCase(
            "nobody could log in", "[identity]\nrequire_login = \"always\"",
            "chatbridge.toml:3:17: require_login = \"always\" needs [[accounts]] or a password in [identity]: "
                + "nobody could log in"),
        ProblemCase(
            "a login requirement of another kind", "[identity]\nrequire_login = \"locals\"",
            "chatbridge.toml:3:17: expected \"never\" or \"remote\" or \"always\", found \"locals\""),
        ProblemCase(
            "an account without a name", "[[accounts]]\npassword = \"\(examplePasswordHash)\"",
            "chatbridge.toml:2:1: this account has no name"),
        ProblemCase(
            "an account that cannot log in", "[[accounts]]\nname = \"alice\"",
            "chatbridge.toml:2:1: account \"alice\" cannot log in: it needs a password, which \"chatbridge "
                + "hash-password\" makes, certfp or bearer"),
        ProblemCase(
            "an account with a plain password", "[[accounts]]\nname = \"alice\"\npassword = \"secret\"",
            "chatbridge.toml:4:12: a password's hash begins with $scram-sha-256$; "
                + "\"chatbridge hash-password\" makes one"),
        ProblemCase(
            "an account with an address for a name",
            "[[accounts]]\nname = \"alice@home\"\npassword = \"\(examplePasswordHash)\"",
            "chatbridge.toml:3:8: an account's name is 1 to 30 bytes that a nick may have: no spaces, no @ ! * , : . #"),
        ProblemCase(
            "an account with a space in its name",
            "[[accounts]]\nname = \"al ice\"\npassword = \"\(examplePasswordHash)\"",
            "chatbridge.toml:3:8: an account's name is 1 to 30 bytes that a nick may have: no spaces, no @ ! * , : . #"),
        ProblemCase(
            "two accounts of one name",
            "[[accounts]]\nname = \"alice\"\npassword = \"\(examplePasswordHash)\"\n"
                + "[[accounts]]\nname = \"Alice\"\npassword = \"\(examplePasswordHash)\"",
            "chatbridge.toml:6:8: account \"Alice\" is defined twice (first at chatbridge.toml:3:8)"),
        ProblemCase(
            "two accounts of one name by another casemapping",
            "[server]\ncasemapping = \"rfc1459\"\n[[accounts]]\nname = \"a[\"\npassword = \"\(examplePasswordHash)\"\n"
                + "[[accounts]]\nname = \"A{\"\npassword = \"\(examplePasswordHash)\"",
            "chatbridge.toml:8:8: account \"A{\" is defined twice (first at chatbridge.toml:5:8)"),
        ProblemCase(
            "an account for a room that is none",
            "[[accounts]]\nname = \"alice\"\npassword = \"\(examplePasswordHash)\"\nrooms = [\"loby\"]",
            "chatbridge.toml:5:9: account \"alice\" has a room \"loby\" that is not in [[rooms]] "
                + "(did you mean \"lobby\"?)"),
        ProblemCase(
            "a misspelt key of an account",
            "[[accounts]]\nname = \"alice\"\npassword = \"\(examplePasswordHash)\"\ncerfp = []",
            "chatbridge.toml:5:1: unknown key \"cerfp\" (did you mean \"certfp\"?)"),
        ProblemCase(
            "a table where a value stands", "[server.drain]\nx = 1",
            "chatbridge.toml:2:1: expected a duration, such as \"500ms\", \"30s\", \"5m\", \"12h\" or \"7d\", "
                + "found a table"),
        ProblemCase(
            "a missing variable", "[server]\nmotd = \"${NOPE}\"",
            "chatbridge.toml:3:8: the environment has no NOPE (a default is written \"${NOPE:-default}\")"),
        ProblemCase(
            "a missing file", "[identity]\npassword_file = \"/nope\"",
            "chatbridge.toml:3:17: there is no file \"/nope\""),
        ProblemCase(
            "an unclosed interpolation", "[server]\nmotd = \"${NOPE\"",
            "chatbridge.toml:3:8: \"${\" without \"}\" (a dollar sign is written \"$$\")"),
        ProblemCase(
            "two of a group", "[identity]\npassword = \"a\"\npassword_file = \"/p\"",
            "chatbridge.toml:4:1: \"password_file\" and \"password\" exclude each other; keep one of them"),
        ProblemCase(
            "a hash that costs nothing to guess", "[identity]\npassword = \"$scram-sha-256$1$a$b$c\"",
            "chatbridge.toml:3:12: the iterations of a password's hash are a number from 4096 to 20000000"),
        ProblemCase(
            "half a hash", "[identity]\npassword = \"$scram-sha-256$4096$W22ZaJ0SNY7soEsUEjb6gQ==\"",
            "chatbridge.toml:3:12: a password's hash is $scram-sha-256$ITERATIONS$SALT$STOREDKEY$SERVERKEY, "
                + "this has 2 parts after the first instead of 4"),
        ProblemCase(
            "a hash with a cut key",
            "[identity]\npassword = \"$scram-sha-256$4096$W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3Otc$wfPLwcE6\"",
            "chatbridge.toml:3:12: the keys of a password's hash are 32 bytes each, in base64"),
        ProblemCase(
            "a hash with a salt of one byte",
            "[identity]\npassword = \"$scram-sha-256$4096$QQ==$WG5d8oPm3Otc$wfPLwcE6\"",
            "chatbridge.toml:3:12: the salt of a password's hash is 8 to 64 bytes in base64"),
        ProblemCase(
            "a handshake header", "[room_defaults]\nheaders = { Upgrade = \"x\" }",
            "chatbridge.toml:3:13: \"Upgrade\" belongs to the WebSocket handshake and cannot be set"),
        ProblemCase(
            "a header with a line break", "[room_defaults]\nheaders = { X-A = \"a\\r\\nb\" }",
            "chatbridge.toml:3:19: a header's value contains a line break or another control character"),
        ProblemCase(
            "an unknown listener scheme", "[[listeners]]\nbind = \"ftp://0.0.0.0:6697\"",
            "chatbridge.toml:3:8: unknown scheme \"ftp://\"; known schemes: irc://, ircs://, irc+insecure://, irc+unix://, "
                + "ws://, wss://, ws+insecure://, ws+unix://"
        ),
        ProblemCase("no bind", "[[listeners]]", "chatbridge.toml:2:1: this listener has no bind"),
        ProblemCase(
            "a bad port", "[[listeners]]\nbind = \"irc://127.0.0.1:70000\"",
            "chatbridge.toml:3:8: \"70000\" is not a port (0 to 65535)"),
        ProblemCase(
            "plain text beyond loopback", "[[listeners]]\nbind = \"irc://0.0.0.0:6667\"",
            "chatbridge.toml:3:8: plain text beyond loopback must say so: write \"irc+insecure://0.0.0.0:6667\" "
                + "(or bind 127.0.0.1)"),
        ProblemCase(
            "an open door", "[[listeners]]\nbind = \"irc+insecure://[::]:6667\"",
            "chatbridge.toml:3:8: [::]:6667 can be reached from other machines and nobody needs a password: set "
                + "password or password_file in [identity], or write require_login = \"never\""),
        ProblemCase(
            "an open door with the default written",
            "[identity]\nrequire_login = \"remote\"\n[[listeners]]\n"
                + "bind = \"irc+insecure://[::]:6667\"",
            "chatbridge.toml:5:8: [::]:6667 can be reached from other machines and nobody needs a password: set "
                + "password or password_file in [identity], or write require_login = \"never\""),
        ProblemCase(
            "one address twice", "[[listeners]]\nbind = \"irc://[::1]:1\"\n[[listeners]]\nbind = \"irc://[::1]:1\"",
            "chatbridge.toml:5:8: [::1]:1 is bound twice (first at chatbridge.toml:3:8)"),
        ProblemCase(
            "a drain of days", "[server]\ndrain = \"2d\"", "chatbridge.toml:3:9: waits longer than 1h at shutdown"),
        ProblemCase(
            "a prestop delay of days", "[server]\nprestop_delay = \"2d\"",
            "chatbridge.toml:3:17: waits longer than 1h at shutdown"),
        ProblemCase(
            "a backoff upside down", "[room_defaults]\nbackoff = { min = \"5s\", max = \"1s\" }",
            "chatbridge.toml:3:11: backoff.min (5s) is longer than max (1s)"),
        ProblemCase(
            "an unknown subsystem", "[log]\nlevels = { upstrem = \"debug\" }",
            "chatbridge.toml:3:12: unknown subsystem \"upstrem\" (did you mean \"upstream\"?); there are: "
                + "main, downstream, upstream, room, transport"),
        ProblemCase(
            "a key of a later version", "[storage]\npool = 4",
            "chatbridge.toml:3:1: \"pool\": is for PostgreSQL, which is not built yet; leave it out"),
    ]

    @Test("a problem is told with its place and, where there is one, its cure", arguments: cases)
    func problem(_ row: ProblemCase) {
        #expect(problems(withRoom(row.toml)) == [row.expected])
    }

    static let roomCases = [
        ProblemCase("no name", "url = \"ws://h/\"", "chatbridge.toml:1:1: this room has no name"),
        ProblemCase("no url", "name = \"a\"", "chatbridge.toml:1:1: room \"a\" has no url"),
        ProblemCase(
            "a bad name", "name = \"A b\"\nurl = \"ws://h/\"",
            "chatbridge.toml:2:8: a room's name is 1 to 63 of a-z 0-9 _ -"),
        ProblemCase(
            "a bad channel", "name = \"a\"\nchannel = \"lobby\"\nurl = \"ws://h/\"",
            "chatbridge.toml:3:11: a channel begins with \"#\""),
        ProblemCase(
            "a channel with a comma", "name = \"a\"\nchannel = \"#a,b\"\nurl = \"ws://h/\"",
            "chatbridge.toml:3:11: a channel is \"#\" and 1 to 63 bytes without spaces, commas and controls"),
        ProblemCase(
            "a page's URL", "name = \"a\"\nurl = \"https://h/\"",
            "chatbridge.toml:3:7: the URL must be that of the WebSocket and begin with ws:// or wss://"),
        ProblemCase(
            "a URL that is none", "name = \"a\"\nurl = \"example.com\"",
            "chatbridge.toml:3:7: a URL is written as wss://HOST[:PORT]/PATH"),
        ProblemCase(
            "credentials in the URL", "name = \"a\"\nurl = \"ws://u:p@h/\"",
            "chatbridge.toml:3:7: the URL carries credentials; send them as a header: "
                + "headers = { Authorization = \"…\" }"),
        ProblemCase(
            "a fragment", "name = \"a\"\nurl = \"ws://h/#x\"",
            "chatbridge.toml:3:7: a WebSocket URL has no fragment (\"#\"); write %23"),
        ProblemCase(
            "an unknown placeholder", "name = \"a\"\nurl = \"ws://h/{tokn}\"",
            "chatbridge.toml:3:7: unknown placeholder {tokn}; this version knows {room}"),
        ProblemCase(
            "a line break in the URL", "name = \"a\"\nurl = \"ws://h/a\\r\\nb\"",
            "chatbridge.toml:3:7: the URL contains a space, a control or a non-ASCII character; percent-encode it"),
        ProblemCase(
            "a name twice",
            "name = \"a\"\nurl = \"ws://h/\"\n[[rooms]]\nname = \"a\"\nchannel = \"#b\"\nurl = \"ws://h/\"",
            "chatbridge.toml:5:8: room \"a\" is defined twice (first at chatbridge.toml:2:8)"),
        ProblemCase(
            "a channel twice, in another case",
            "name = \"a\"\nurl = \"ws://h/\"\n[[rooms]]\nname = \"b\"\nchannel = \"#A\"\nurl = \"ws://h/\"",
            "chatbridge.toml:6:11: channel \"#A\" of room \"b\" belongs to room \"a\" already"),
        ProblemCase(
            "a channel twice by another casemapping",
            "name = \"a\"\nchannel = \"#x[\"\nurl = \"ws://h/\"\n[[rooms]]\nname = \"b\"\nchannel = \"#X{\"\nurl = \"ws://h/\"\n"
                + "[server]\ncasemapping = \"rfc1459\"",
            "chatbridge.toml:7:11: channel \"#X{\" of room \"b\" belongs to room \"a\" already"),
    ]

    @Test("a room's problem is told with its place", arguments: roomCases)
    func roomProblem(_ row: ProblemCase) {
        #expect(problems("[[rooms]]\n" + row.toml) == [row.expected])
    }

    @Test("a syntax error is told with its place and stops there")
    func syntaxError() throws {
        let all = problems("[server]\nname = \"a\nnext = 1")
        #expect(all.count == 1)
        #expect(all.first?.hasPrefix("chatbridge.toml:2:") == true)
    }

    @Test(
        "hostile text ends in one problem, never in a crash",
        arguments: [
            ("a long dotted key", String(repeating: "a.", count: 100_000) + "a = 1"),
            ("a long table name", "[" + String(repeating: "a.", count: 100_000) + "a]"),
            ("deep arrays", "a = " + String(repeating: "[", count: 100_000)),
            ("deep arrays that end", "a = " + String(repeating: "[", count: 100) + String(repeating: "]", count: 100)),
            ("a brace where a value stands", "a = [}"), ("a NUL", "a = \"\0\""), ("binary", "\u{1}\u{2}\u{3}"),
            ("a lone quote", "\""),
            ("a key twice", "a = 1\na = 2"), ("too much text", String(repeating: "#\n", count: 600_000)),
        ])
    func hostile(_ name: String, _ toml: String) {
        #expect(problems(toml).count == 1)
    }

    /// SplitMix64, so that a failing seed can be run again.
    private struct Seeded: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }

    @Test("a missing file is told by the whole path that was tried")
    func wholePaths() {
        let toml = withRoom("").replacing(" }]", with: ", auth = { type = \"bearer\", token_file = \"token\" } }]")
        var machine = testEnvironment(["chatbridge.toml": toml])
        machine.directory = "/home/me"
        do throws(ConfigurationError) {
            _ = try ConfigurationLoader.load(ConfigurationRequest(), from: machine)
            Issue.record("it loads")
        } catch {
            #expect(error.problems.map(\.message) == ["there is no file \"/home/me/token\""])
        }
    }

    @Test("a mangled file loads or has problems with places inside it", arguments: 0..<100 as Range<UInt64>)
    func mangled(_ seed: UInt64) throws {
        var generator = Seeded(state: seed)
        var bytes = Array(try RepositoryFile.example("chatbridge.toml").utf8)
        for _ in 0..<Int.random(in: 1...8, using: &generator) {
            let at = Int.random(in: 0..<bytes.count, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: bytes.remove(at: at)
            case 1: bytes[at] = UInt8.random(in: 0...255, using: &generator)
            case 2: bytes.insert(contentsOf: Array("[]{}\"'=.$#,\n".utf8).shuffled(using: &generator).prefix(2), at: at)
            default: bytes.removeSubrange(at..<min(at + 40, bytes.count))
            }
        }
        let text = bytes
        let machine = ConfigurationEnvironment(variables: [:], hostName: "") { _ in .success(text) }
        let lineCount = bytes.count { $0 == UInt8(ascii: "\n") } + 1
        do throws(ConfigurationError) {
            _ = try ConfigurationLoader.load(ConfigurationRequest(path: "x"), from: machine)
        } catch {
            #expect(!error.problems.isEmpty)
            for problem in error.problems {
                if case .file(_, let line, let column) = problem.origin {
                    #expect(line >= 1 && line <= lineCount + 1 && column >= 1, "\(problem)")
                }
            }
        }
    }

    @Test("a header without a name is an error, not an end", arguments: ["[=]", "[[,]]", "[#", "[ =", "[[.a]]"])
    func headerWithoutName(_ text: String) {
        #expect(problems(text).count == 1)
    }

    @Test("all problems come at once: the file from top to bottom, then variables, then flags")
    func order() {
        let all = problems(
            withRoom("[log]\nlevel = \"x\"\n[server]\ndrian = \"1s\"\n"),
            variables: ["CHATBRIDGE__LIMITS__MAX_CLIENTS": "-1", "CHATBRIDGE__LIMTS__SENDQ": "1MiB"],
            request: ConfigurationRequest(listen: ["tcp://x"], logLevel: nil))
        #expect(
            all == [
                "chatbridge.toml:3:9: expected \"error\" or \"warn\" or \"info\" or \"debug\" or \"trace\", found \"x\"",
                "chatbridge.toml:5:1: unknown key \"drian\" (did you mean \"drain\"?)",
                "CHATBRIDGE__LIMTS__SENDQ: unknown key \"limts\" (did you mean \"limits\"?)",
                "CHATBRIDGE__LIMITS__MAX_CLIENTS: expected a whole number from 1 to 1000000, found \"-1\"",
                "--listen: unknown scheme \"tcp://\"; known schemes: irc://, ircs://, irc+insecure://, irc+unix://, "
                    + "ws://, wss://, ws+insecure://, ws+unix://",
            ])
    }

    @Test("nothing at all says where it looked and what would do")
    func nothing() {
        #expect(
            problems(nil) == [
                "configuration: no file found (looked for chatbridge.toml, /etc/chatbridge/chatbridge.toml) and "
                    + "CHATBRIDGE_UPSTREAM_URL is not set; name a file with --config, or try \"chatbridge demo\""
            ])
        #expect(
            problems("[server]\nname = \"irc.example.org\"")
                == ["chatbridge.toml: there is no [[rooms]], so nothing to connect to"])
        #expect(problems(nil, request: ConfigurationRequest(needsRooms: false)) == [])
        #expect(
            problems(nil, request: ConfigurationRequest(path: "/x.toml")) == ["--config: there is no file \"/x.toml\""])
    }

    // MARK: - Secrets

    @Test("no problem, print or description shows a secret")
    func secrets() throws {
        let toml = """
            [identity]
            password = "hunter2"
            [room_defaults]
            headers = { Authorization = "Bearer hunter2" }
            [[rooms]]
            name = "a"
            url = "ws://h/x?access_token=hunter2&v=1"
            """
        let loaded = try load(toml)
        #expect(loaded.rooms.first?.headers.first?.value.revealed == "Bearer hunter2")
        #expect(loaded.rooms.first?.url?.text == "ws://h/x?access_token=hunter2&v=1")
        var dumped = ""
        dump(loaded, to: &dumped)
        let shown = [ConfigurationPrinter.text(loaded), "\(loaded)", String(reflecting: loaded), dumped]
        #expect(shown.filter { $0.contains("hunter2") } == [])

        let said = problems(
            toml + "\nreceipts = \"${S}\"\nupstream_room = \"${file:/s}\"\n[server]\ndrain = \"${S}\"",
            variables: ["S": "hunter2"], files: ["/s": "\u{7}hunter2"])
        #expect(said.count == 3)
        #expect(said.filter { $0.contains("hunter2") } == [])
    }

    @Test("a printed configuration loads again and is the same, secrets apart")
    func printedLoads() throws {
        let toml = """
            [server]
            name = "irc.example.org"
            motd = "one\\ntwo \\"$${x}\\" \\u001b"
            [room_defaults]
            backoff = { min = "2s", jitter = 0.5 }
            subprotocol = ["a", "b"]
            ping = "off"
            [[rooms]]
            name = "a"
            url = "ws://h:81/x/{room}"
            queue = { max_age = "off" }
            [limits]
            messages_per_second = 0.5
            accepts_per_second_per_ip = "off"
            [log]
            levels = { upstream = "trace" }
            to = "/var/log/x"
            """
        let loaded = try load(toml)
        #expect(try load(ConfigurationPrinter.text(loaded)) == loaded)
        #expect(loaded.server.motd == "one\ntwo \"${x}\" \u{1B}")
    }
}
