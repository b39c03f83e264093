import BridgeCore
import BridgeTestSupport
import Foundation
import HTTPProtocol
import IRCServer
import JSONText
import Rooms
import Testing
import WireBytes

@testable import ChatBridge
@testable import Configuration
@testable import Upstream

private func words(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }

@Suite("Commands at a running bridge")
struct LiveCommandTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var arguments: String
        var command: LiveCommand
        var testDescription: String { arguments }

        init(_ arguments: String, _ command: LiveCommand) { (self.arguments, self.command) = (arguments, command) }
    }

    static let cases = [
        Case("status", .status(.screen)), Case("status --watch", .status(.watch)),
        Case("status --json", .status(.json)),
        Case("--ready status", .status(.ready)), Case("rooms", .rooms(json: false)),
        Case("rooms --json", .rooms(json: true)),
        Case("rooms reconnect lobby", .changeRoom(.reconnect, room: "lobby")),
        Case("rooms disable lobby", .changeRoom(.disable, room: "lobby")),
        Case("rooms enable #lobby", .changeRoom(.enable, room: "#lobby")), Case("clients", .clients(json: false)),
        Case("clients --json", .clients(json: true)),
        Case("clients kick 7", .kick(7)), Case("tail", .tail(room: nil, json: false, raw: false)),
        Case("tail lobby --json --raw", .tail(room: "lobby", json: true, raw: true)),
        Case("say lobby hello there", .say(room: "lobby", text: "hello there")),
        Case("say lobby -- -1", .say(room: "lobby", text: "-1")),
        Case("history lobby", .history(room: "lobby", since: nil, limit: nil, json: false)),
        Case(
            "history lobby --since 2h --limit 7 --json",
            .history(room: "lobby", since: .ago(.seconds(7200)), limit: 7, json: true)),
        Case("export lobby", .export(room: "lobby")), Case("backup a.db", .backup(file: "a.db")), Case("drain", .drain),
        Case("reload", .reload), Case("forget ada", .forget(user: "ada", isAccount: false, isConfirmed: false)),
        Case("forget ada --account --yes", .forget(user: "ada", isAccount: true, isConfirmed: true)),
    ]

    @Test("a command line gives its command", arguments: cases)
    func parse(_ row: Case) throws {
        #expect(
            try CommandLineParser.parse(words(row.arguments)) == .live(GlobalOptions(), row.command, socket: nil))
        #expect(
            try CommandLineParser.parse(["--socket", "/s"] + words(row.arguments))
                == .live(GlobalOptions(), row.command, socket: "/s"))
    }

    static let usageCases = [
        UsageCase("stauts", "unknown command \"stauts\" (did you mean \"status\"?)"),
        UsageCase("status --json --ready", "--json and --ready exclude each other"),
        UsageCase(
            "rooms disbale a",
            "\"rooms\" has no \"disbale\" (did you mean \"disable\"?); there are reconnect, disable and enable NAME"),
        UsageCase("rooms disable", "\"rooms disable\" needs a room: rooms disable NAME"),
        UsageCase("rooms disable a b", "\"b\" is too much: \"rooms\" takes no such argument"),
        UsageCase("rooms disable a --json", "--json goes with the list only, not with \"rooms disable\""),
        UsageCase("clients kick 7 --json", "--json goes with the list only, not with \"clients kick\""),
        UsageCase("clients kik 7", "\"clients\" has no \"kik\" (did you mean \"kick\"?); there is kick ID"),
        UsageCase("clients kick bob", "\"clients kick\" needs the number of a client, as \"clients\" shows it"),
        UsageCase("say lobby", "\"say\" needs a room and a text: say ROOM TEXT"),
        UsageCase("history", "\"history\" needs a room: history ROOM"),
        UsageCase(
            "history a --since yesterday",
            "--since \"yesterday\" is no time: 10m, 2h, 7d, 2026-11-21 or 2026-11-21T12:03:10Z"),
        UsageCase("history a --limit 0", "--limit \"0\" is not a number from 1 to 10000"),
        UsageCase("export", "\"export\" needs a room: export ROOM"),
        UsageCase("backup", "\"backup\" needs a file: backup FILE"),
        UsageCase("forget --yes", "\"forget\" needs a person: forget USER"),
        UsageCase("run --socket /s", "\"run\" has no --socket"),
        UsageCase("token", "\"token\" needs a word: inspect FILE"),
        UsageCase("token inspct", "\"token\" has no \"inspct\" (did you mean \"inspect\"?); there is inspect FILE"),
    ]

    @Test("a command line that makes no sense says why", arguments: usageCases)
    func usage(_ row: UsageCase) {
        #expect(throws: UsageError(message: row.message)) { try CommandLineParser.parse(words(row.arguments)) }
    }

    @Test("tokens come from a file or from standard input")
    func token() throws {
        #expect(try CommandLineParser.parse(["token", "inspect"]) == .inspectToken(GlobalOptions(), file: "-"))
        #expect(try CommandLineParser.parse(["token", "inspect", "a"]) == .inspectToken(GlobalOptions(), file: "a"))
    }

    @Test(
        "a history begins at a time or so long ago",
        arguments: [
            ("10m", 1_799_999_400_000), ("7d", 1_799_395_200_000), ("2026-11-21", 1_795_219_200_000),
            ("2026-11-21T12:03:10Z", 1_795_262_590_000), ("2026-11-21T12:03:10.123Z", 1_795_262_590_000),
            ("2026-11-21 12:03", 1_795_262_580_000), ("0", nil), ("2026-13-01", nil), ("noon", nil), ("12:03", nil),
        ] as [(String, Int64?)])
    func starts(_ text: String, _ expected: Int64?) {
        #expect(HistoryStart(text)?.milliseconds(now: 1_800_000_000_000) == expected)
    }

    // MARK: - Where the bridge answers

    struct PathCase: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var admin = ""
        var variables: [String: String] = [:]
        var stateDirectory: String?
        var path: String?
    }

    static let pathCases = [
        PathCase(testDescription: "the state directory", path: "/var/lib/ours/admin.sock"),
        PathCase(testDescription: "--state-dir", stateDirectory: "/srv/ours", path: "/srv/ours/admin.sock"),
        PathCase(
            testDescription: "the state directory of the environment",
            variables: ["CHATBRIDGE__SERVER__STATE_DIR": "/srv/theirs"], path: "/srv/theirs/admin.sock"),
        PathCase(
            testDescription: "the runtime directory comes first", variables: ["RUNTIME_DIRECTORY": "/run/ours"],
            path: "/run/ours/admin.sock"),
        PathCase(
            testDescription: "of several the first",
            variables: ["RUNTIME_DIRECTORY": "/run/ours:/run/theirs"], stateDirectory: "/srv/ours",
            path: "/run/ours/admin.sock"),
        PathCase(
            testDescription: "another name", admin: "socket = \"door\"", variables: ["RUNTIME_DIRECTORY": "/run/ours"],
            path: "/run/ours/door"),
        PathCase(
            testDescription: "a whole path", admin: "socket = \"/tmp/door\"",
            variables: ["RUNTIME_DIRECTORY": "/run/ours"], path: "/tmp/door"),
        PathCase(
            testDescription: "no socket", admin: "socket = \"\"", variables: ["RUNTIME_DIRECTORY": "/run/ours"],
            path: nil),
    ]

    @Test("the commands look where the configuration puts the socket", arguments: pathCases)
    func paths(_ row: PathCase) {
        var options = GlobalOptions()
        options.stateDirectory = row.stateDirectory
        // Errors elsewhere are no obstacle.
        let file = "nmae = 1\n[server]\nstate_dir = \"/var/lib/ours\"\n[admin]\n\(row.admin)"
        let (paths, problems) = LiveCommands.paths(
            options, testEnvironment(["chatbridge.toml": file], variables: row.variables))
        #expect(paths.first == row.path)
        #expect(problems.map(\.description).contains { $0.contains("unknown key \"nmae\"") })
    }

    @Test("behind their own place they look where a packaged service has its socket, if there is one")
    func packagedPaths() throws {
        #expect(LiveCommands.packagedFolders == ["/run/chatbridge", "/var/lib/chatbridge"])
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let places = [folder.path, folder.path + "/none"]
        func paths() -> [String] {
            LiveCommands.paths(
                GlobalOptions(), testEnvironment(["chatbridge.toml": "[server]\nstate_dir = \"/srv/ours\""]),
                packaged: places
            ).paths
        }
        #expect(paths() == ["/srv/ours/admin.sock"])
        try Data().write(to: folder.appendingPathComponent("admin.sock"))
        #expect(paths() == ["/srv/ours/admin.sock", folder.path + "/admin.sock"])
    }

    // MARK: - Screens

    private static let status = """
        {"version":"0.3.0","at":"2026-11-21T12:00:00.000Z","started_at":"2026-11-18T08:00:00.000Z","running":true,
        "storage":"sound","instance":"edge-1","ready":false,"reasons":["room support: waiting (4 tries)"],
        "troubles":[{"kind":"link","level":"error","subject":"room support",
        "text":"down for 12 min: 401 \\u001b[31munauthorized","remedy":"look"},
        {"kind":"token","level":"error","subject":"room support","text":"its token ended 2 min ago","remedy":"log in"}],
        "rooms":[
        {"name":"lobby","channel":"#lobby","host":"chat.example.com","state":"up","since":"2026-11-18T08:00:00.000Z",
        "reason":null,"failures":0,"retry_in":null,"on_demand":false,"disabled":false,"round_trip":0.0412,
        "upstream_users":25,"clients":9,"messages_in":380,"messages_out":120,"undecodable":0,"queued":0,
        "last_message_at":"2026-11-21T11:59:58.000Z","token_ends_at":null},
        {"name":"support","channel":"#support","host":"help.example.com","state":"waiting",
        "since":"2026-11-21T11:48:00.000Z","reason":"401 \\u001b[31munauthorized","failures":4,"retry_in":7.2,
        "on_demand":false,"disabled":false,"round_trip":null,"upstream_users":0,"clients":1,"messages_in":0,
        "messages_out":0,"undecodable":2,"queued":1,"oldest_queued_for":61.0,"last_message_at":null,
        "token_ends_at":"2026-11-21T11:58:00.000Z"},
        {"name":"ops","channel":"#ops","host":"chat.example.com","state":"stopped","since":null,"reason":null,
        "failures":0,"retry_in":null,"on_demand":false,"disabled":true,"round_trip":null,"upstream_users":0,"clients":0,
        "messages_in":0,"messages_out":0,"undecodable":0,"queued":0,"last_message_at":null,"token_ends_at":null}],
        "clients":[{"id":4294967297,"nick":"ada","account":null,"address":"127.0.0.1","transport":"tcp",
        "listener":"irc://127.0.0.1:6667","registered":true,"connected_at":"2026-11-21T11:00:00.000Z",
        "idle_since":"2026-11-21T11:59:30.000Z","rooms":["lobby","ops"],"paused":false}]}
        """

    @Test("the first screen has a line about the bridge, the rooms, and what is wrong")
    func screen() throws {
        let screen = StatusScreen(status: try JSONValue(parsing: Self.status))
        #expect(
            screen.lines(TextScreen()) == [
                "chatbridge 0.3.0  up 3d 4h  instance edge-1  1 of 3 rooms up  1 client  not ready",
                "ROOM     STATE            UPSTREAM            RTT   IN  OUT  USERS  CLIENTS  LAST",
                "lobby    up 3d 4h         chat.example.com  41 ms  380  120     25        9  2s ago",
                "support  retry in 8s (4)  help.example.com      -    0    0      0        1  -",
                "ops      disabled         chat.example.com      -    0    0      0        0  -",
                "! room support: down for 12 min: 401 \\u{1b}[31munauthorized", "  look",
                "! room support: its token ended 2 min ago", "  log in",
                "not ready: room support: waiting (4 tries)", "support: 1 message waits, the oldest for 1m",
                "support: 2 frames not understood",
            ])
        #expect(
            screen.clientLines(TextScreen()) == [
                "        ID  NICK  ACCOUNT  ADDRESS    OVER  SINCE  IDLE  ROOMS",
                "4294967297  ada   -        127.0.0.1  tcp   1h     30s   lobby ops",
            ])
    }

    @Test("messages that wait for a confirmation are told apart from those that wait to be sent")
    func unconfirmed() throws {
        func notes(_ counts: String) throws -> [String] {
            let text = Self.status.replacing("\"queued\":1,\"oldest_queued_for\":61.0", with: counts)
            return StatusScreen(status: try JSONValue(parsing: text)).lines(TextScreen()).filter { $0.contains("wait") }
                .dropFirst().map { $0 }
        }
        #expect(
            try notes(#""queued":3,"oldest_queued_for":61.0,"unconfirmed":2,"oldest_unconfirmed_for":59.0"#) == [
                "support: 3 messages wait, the oldest for 1m",
                "support: 2 sent messages wait for the backend's confirmation, the oldest for 59s",
            ])
        #expect(
            try notes(#""queued":1,"oldest_queued_for":5.0,"unconfirmed":1,"oldest_unconfirmed_for":5.0"#) == [
                "support: 1 sent message waits for the backend's confirmation, the oldest for 5s"
            ])
    }

    @Test("numbers of another program at the socket do no harm")
    func strangeNumbers() throws {
        let text = Self.status.replacing("\"retry_in\":7.2", with: "\"retry_in\":1e300")
            .replacing("\"round_trip\":0.0412", with: "\"round_trip\":-1e300")
            .replacing("\"oldest_queued_for\":61.0", with: "\"oldest_queued_for\":1e19")
        let lines = StatusScreen(status: try JSONValue(parsing: text)).lines(TextScreen())
        #expect(lines.contains { $0.hasPrefix("support  retry in 0s (4)") })
    }

    @Test("rates are those between two answers")
    func rates() throws {
        let status = try JSONValue(parsing: Self.status)
        let earlier = try JSONValue(
            parsing: Self.status.replacing("12:00:00.000Z\",\"started", with: "11:59:30.000Z\",\"started").replacing(
                "\"messages_in\":380", with: "\"messages_in\":361"))
        let lines = StatusScreen(status: status, earlier: earlier).roomLines(TextScreen())
        #expect(lines[0].contains("IN/min  OUT/min"))
        #expect(lines[1].contains("    38        0     25"))
    }

    @Test("no line is wider than the terminal, and colours change no widths", arguments: [40, 60, 72, 80, 100, 200])
    func widths(_ width: Int) throws {
        let screen = StatusScreen(status: try JSONValue(parsing: Self.status))
        let plain = TextScreen(width: width)
        let table = screen.roomLines(plain) + screen.clientLines(plain)
        if width >= 60 { #expect(table.filter { $0.count > width } == []) }
        let coloured = screen.roomLines(TextScreen(width: width, isColored: true))
        #expect(coloured != screen.roomLines(plain))
        #expect(
            coloured.map { $0.replacing(#/\u{1B}\[[0-9]*m/#, with: "") } == screen.roomLines(plain))
    }

    @Test(
        "spans of time",
        arguments: [
            (-5, "0s"), (0, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h"), (3660, "1h 1m"),
            (86_400, "1d"), (273_600, "3d 4h"),
        ] as [(Int64, String)])
    func spans(_ seconds: Int64, _ expected: String) { #expect(ShortSpan.text(seconds: seconds) == expected) }

    @Test("a line of tail has time, room, border, direction and words; a message that returns has its latency")
    func tail() throws {
        var text = TailText(screen: TextScreen())
        func line(_ json: String) throws -> String { text.line(try JSONValue(parsing: json)) }
        #expect(
            try line(#"{"at":1795262590120,"room":"lobby","flow":"irc-in","kind":"message","who":"ada","text":"hi"}"#)
                == "12:03:10.120  lobby       irc →      message  ada: hi")
        #expect(
            try line(
                #"{"at":1795262590121,"room":"lobby","flow":"frame-out","kind":"text","bytes":9,"text":"{\"a\":1}"}"#)
                == "12:03:10.121  lobby       frame →    {\"a\":1}")
        #expect(
            try line(#"{"at":1795262590122,"room":"lobby","flow":"frame-in","kind":"binary","bytes":9}"#)
                == "12:03:10.122  lobby       frame ←    (9 bytes, not shown)")
        #expect(
            try line(#"{"at":1795262590124,"room":"lobby","flow":"irc-out","kind":"message","who":"ada","text":"hi"}"#)
                == "12:03:10.124  lobby       → irc      message  ada: hi  +4 ms")
        #expect(
            try line(
                #"{"at":1795262590124,"room":"lobby","flow":"backend-in","kind":"typing","who":"Remy\u001b","text":"start"}"#
            )
                == "12:03:10.124  lobby       backend →  typing   Remy\\u{1b} start")
        #expect(try line(#"{"missed":7}"#) == "… 7 lines left out: this terminal reads too slowly")
    }

    @Test("frames show no value under the name of a secret, at any depth")
    func blanks() {
        #expect(
            TappedFrame.blanked(#"{"type":"auth","access_token":"abc","a":[{"Password":7}],"session":{"id":1}}"#)
                == #"{"type":"auth","access_token":"***","a":[{"Password":"***"}],"session":{"id":1}}"#)
        #expect(TappedFrame.blanked(#"{ "text" : "token" }"#) == #"{ "text" : "token" }"#)
        #expect(TappedFrame.blanked("ping") == "ping")
        // A document within a document, as it stands and in base64.
        #expect(
            TappedFrame.blanked(#"{"what":"{\"key\":{\"token\":\"abc\"}}"}"#)
                == #"{"what":"{\"key\":{\"token\":\"***\"}}"}"#)
        func payload(_ text: String) -> String { #"{"payload":"\#(Base64.encode(Array(text.utf8)))"}"# }
        #expect(TappedFrame.blanked(payload(#"{"token":"abc"}"#)) == #"{"payload":"***"}"#)
        #expect(TappedFrame.blanked(payload(#"{"text":"abc"}"#)) == payload(#"{"text":"abc"}"#))
    }

    @Test("a frame of more than 64 KiB is shown by its length alone", arguments: [(65_536, true), (65_537, false)])
    func longFrames(_ length: Int, _ isShown: Bool) throws {
        let room = RoomSettings(name: "lobby", dialect: StubDialect { _ in }, url: try HTTPURL(parsing: "ws://a/"))
        let harness = BridgeHarness(settings: BridgeSettings(serverName: "b", instanceID: "t", rooms: [room]))
        harness.start()
        var frames: [JSONValue] = []
        harness.perform { bridge, _ in
            bridge.watch(passages: nil, frames: { frames.append(.object($0.json(room: "lobby"))) })
        }
        harness.sendFrame(0, String(repeating: "x", count: length))
        #expect(frames.map { $0["bytes"]?.integer } == [Int64(length)])
        #expect(frames.map { $0["text"]?.string?.utf8.count } == [isShown ? length : nil])
    }

    @Test("a line of history is one for each line of its text")
    func history() throws {
        func lines(_ json: String) throws -> [String] { HistoryText.lines(try JSONValue(parsing: json), TextScreen()) }
        let head = #"{"at":"2026-11-21T12:03:10.000Z","kind":"message","nick":"ada","#
        #expect(
            try lines(head + #""text":"one\ntwo"}"#) == ["2026-11-21 12:03:10  ada  one", "                     two"])
        #expect(try lines(head + #""text":"\u0001ACTION waves\u0001"}"#) == ["2026-11-21 12:03:10  * ada waves"])
        #expect(try lines(head + #""text":"","deleted":true}"#) == ["2026-11-21 12:03:10  ada  (deleted)"])
        #expect(
            try lines(head + #""text":"","attachments":[{"type":"image","name":"cat.png"}]}"#)
                == ["2026-11-21 12:03:10  ada  [image] cat.png"])
    }

    @Test(
        "a progress bar fills",
        arguments: [
            (0, 10, "[..............................]   0 %"),
            (5, 10, "[###############...............]  50 %"), (10, 10, "[##############################] 100 %"),
            (0, 0, "[..............................]   0 %"),
        ])
    func bar(_ done: Int, _ total: Int, _ expected: String) { #expect(ProgressLine.bar(done, of: total) == expected) }

    // MARK: - Tokens

    private static func token(_ header: String, _ claims: String, signature: String = "c2ln") -> String {
        [header, claims].map { text in
            Base64.encode(Array(text.utf8)).replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }.joined(separator: ".") + "." + signature
    }

    @Test("a token's claims are shown, times in words, and its signature is not")
    func tokenLines() throws {
        let text = Self.token(
            #"{"alg":"HS256"}"#, #"{"sub":"ada","exp":1795262590,"iat":1795258990,"roles":["a"]}"#)
        let token = try TokenText("Bearer \(text)\n")
        #expect(
            token.lines(now: 1_795_259_770_000, TextScreen()) == [
                "header", "  alg  HS256", "claims", "  sub    ada", "  exp    2026-11-21 12:03:10 UTC, in 47m",
                "  iat    2026-11-21 11:03:10 UTC, 13m ago", "  roles  [\"a\"]",
                "signature  there, neither shown nor checked",
            ])
        #expect(token.lines(now: 1_795_262_590_000, TextScreen()).last == "The token has expired.")
    }

    @Test(
        "what is no token is refused with a reason",
        arguments: [
            ("", "the input is not one token"), ("a b c", "the input is not one token"),
            ("abc", "a JSON Web Token has three parts, separated by dots; this has 1"),
            ("!.e30.", "the token's header is no JSON object in base64url"),
            ("e30.W10.", "the token's claims is no JSON object in base64url"),
        ])
    func noToken(_ text: String, _ message: String) {
        #expect(throws: TokenText.Malformed(sentence: message)) { try TokenText(text) }
    }
}
