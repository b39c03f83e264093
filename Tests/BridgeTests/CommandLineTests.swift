import BridgeTestSupport
import Testing

@testable import ChatBridge
@testable import Configuration

struct CommandLineCase: CustomTestStringConvertible, Sendable {
    var arguments: String
    var expected: Invocation
    var testDescription: String { arguments.isEmpty ? "(nothing)" : arguments }

    init(_ arguments: String, _ expected: Invocation) {
        self.arguments = arguments
        self.expected = expected
    }
}

struct UsageCase: CustomTestStringConvertible, Sendable {
    var arguments: String
    var message: String
    var testDescription: String { arguments }

    init(_ arguments: String, _ message: String) {
        self.arguments = arguments
        self.message = message
    }
}

private func words(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }

@Suite("Command line")
struct CommandLineTests {
    static let cases = [
        CommandLineCase("", .run(GlobalOptions())),
        CommandLineCase("run", .run(GlobalOptions())),
        CommandLineCase("--config a.toml", .run(GlobalOptions(configPath: "a.toml"))),
        CommandLineCase("run --config=a=b.toml", .run(GlobalOptions(configPath: "a=b.toml"))),
        CommandLineCase("--config a run --config b", .run(GlobalOptions(configPath: "b"))),
        CommandLineCase(
            "--listen irc://[::1]:1 demo --listen=irc://127.0.0.1:2",
            .demo(GlobalOptions(listen: ["irc://[::1]:1", "irc://127.0.0.1:2"]))),
        CommandLineCase(
            "run --state-dir /s --log-level debug --color never",
            .run(GlobalOptions(stateDirectory: "/s", logLevel: .debug, color: .never))),
        CommandLineCase("studio", .studio(GlobalOptions(), port: nil, database: nil)),
        CommandLineCase("studio --port 0", .studio(GlobalOptions(), port: 0, database: nil)),
        CommandLineCase(
            "studio --database chat.db", .studio(GlobalOptions(), port: nil, database: "chat.db")),
        CommandLineCase("--port=65535 studio", .studio(GlobalOptions(), port: 65535, database: nil)),
        CommandLineCase("check", .check(GlobalOptions(), CheckOptions())),
        CommandLineCase("check --frame - --room a", .check(GlobalOptions(), CheckOptions(frame: "-", room: "a"))),
        CommandLineCase("check --connect --room a", .check(GlobalOptions(), CheckOptions(connect: true, room: "a"))),
        CommandLineCase("check --json --print", .check(GlobalOptions(), CheckOptions(print: true, json: true))),
        CommandLineCase("version", .version), CommandLineCase("--version", .version),
        CommandLineCase("help", .help(nil)), CommandLineCase("-h", .help(nil)), CommandLineCase("--help", .help(nil)),
        CommandLineCase("help check", .help(.check)), CommandLineCase("check -h", .help(.check)),
        CommandLineCase("-h run", .help(.run)), CommandLineCase("help help", .help(.help)),
        CommandLineCase("-- run", .run(GlobalOptions())),
        CommandLineCase(
            "autobahn-client ws://h:1", .autobahnClient(url: "ws://h:1", agent: "chatbridge", only: nil)),
        CommandLineCase(
            "autobahn-client ws://h:1 --agent a --case 7", .autobahnClient(url: "ws://h:1", agent: "a", only: 7)),
        CommandLineCase("doc-tables", .docTables),
        CommandLineCase("completion zsh", .completion(.zsh)), CommandLineCase("man", .man),
        CommandLineCase("config default", .config(GlobalOptions(), .standard)),
        CommandLineCase("config show --config a", .config(GlobalOptions(configPath: "a"), .show)),
        CommandLineCase("config explain rooms.a.url", .config(GlobalOptions(), .explain(key: "rooms.a.url"))),
        CommandLineCase(
            "learn wss://h/ws --token-file t --header X-Org:7 --header=A:b:c --send {}",
            .learn(
                LearnOptions(
                    url: "wss://h/ws",
                    headers: [LearnHeader(name: "X-Org", value: "7"), LearnHeader(name: "A", value: "b:c")],
                    tokenFile: "t", sends: ["{}"]))),
        CommandLineCase("autobahn-server --port 7", .autobahnServer(port: 7)),
    ]

    @Test("a command line that makes sense", arguments: cases)
    func parse(_ row: CommandLineCase) throws {
        #expect(try CommandLineParser.parse(words(row.arguments)) == row.expected)
    }

    static let usageCases = [
        UsageCase("rnu", "unknown command \"rnu\" (did you mean \"run\"?)"),
        UsageCase("frobnicate", "unknown command \"frobnicate\""),
        UsageCase("help chekc", "unknown command \"chekc\" (did you mean \"check\"?)"),
        UsageCase("--confg x", "unknown flag \"--confg\" (did you mean \"--config\"?)"),
        UsageCase("--confg=x", "unknown flag \"--confg\" (did you mean \"--config\"?)"),
        UsageCase("-x", "unknown flag \"-x\""),
        UsageCase("-config x", "unknown flag \"-config\" (did you mean \"--config\"?)"),
        UsageCase("--config", "--config needs a value: --config FILE"),
        UsageCase("--config=", "--config needs the name of a file"),
        UsageCase("check --frame a --event b", "--frame and --event exclude each other"),
        UsageCase("check --room a", "--room goes with --connect, --frame or --event"),
        UsageCase("check --connect --frame a", "--connect goes with --room and --json only"),
        UsageCase("config", "\"config\" needs a word: there are default, show and explain KEY"),
        UsageCase(
            "config shwo",
            "\"config\" has no \"shwo\" (did you mean \"show\"?); there are default, show and explain KEY"),
        UsageCase("config explain", "\"config explain\" needs a key, as limits.sendq"),
        UsageCase("config show all", "\"all\" is too much"),
        UsageCase("completion zhs", "\"completion\" needs a shell: bash, zsh or fish (did you mean \"zsh\"?)"),
        UsageCase("check --print=yes", "--print takes no value"),
        UsageCase("run --port 1", "\"run\" has no --port"),
        UsageCase("studio --print", "\"studio\" has no --print"),
        UsageCase("studio --port 65536", "--port \"65536\" is not a port (0 to 65535)"),
        UsageCase("studio --port -1", "--port \"-1\" is not a port (0 to 65535)"),
        UsageCase("autobahn-client", "\"autobahn-client\" needs the URL of a fuzzing server"),
        UsageCase("autobahn-client u --case 0", "--case \"0\" is not the number of a case, from 1"),
        UsageCase("autobahn-clien", "unknown command \"autobahn-clien\""),
        UsageCase("run fast", "\"fast\" is too much: \"run\" takes no such argument"),
        UsageCase("help a b", "\"b\" is too much: \"help\" takes no such argument"),
        UsageCase(
            "--log-level dbug",
            "--log-level \"dbug\" is none of error, warn, info, debug, trace (did you mean \"debug\"?)"),
        UsageCase("learn wss://h/ws --header X-Org", "--header \"X-Org\" has not the form NAME: VALUE"),
        UsageCase("learn wss://h/ws --header :7", "--header \":7\" has not the form NAME: VALUE"),
        UsageCase(
            "learn --frames f --token-file t", "--proxy, --send, --header and --token-file go with a URL"),
        UsageCase(
            "learn wss://h/ws --proxy h:1 --token-file t",
            "--send, --header and --token-file go without --proxy: there the app logs in"),
        UsageCase("--color sometimes", "--color \"sometimes\" is none of auto, always, never"),
    ]

    @Test("a command line that makes no sense says why", arguments: usageCases)
    func usage(_ row: UsageCase) {
        #expect(throws: UsageError(message: row.message)) { try CommandLineParser.parse(words(row.arguments)) }
    }

    @Test("every command has a row, and every flag a name of its own in its command")
    func table() {
        #expect(CommandTable.rows.map(\.name) == CommandName.allCases)
        for row in CommandTable.rows {
            let names = (CommandTable.globalFlags + row.flags).map(\.name)
            #expect(Set(names).count == names.count)
        }
    }

    @Test(
        "a page of help fits 80 by 24 and names its flags", arguments: [nil] + CommandName.allCases.map(Optional.some))
    func help(_ command: CommandName?) throws {
        var text = ""
        #expect(OfflineCommands.help(command) { text += $0 } == 0)
        #expect(text.hasSuffix("\n"))
        let lines = text.dropLast().split(separator: "\n", omittingEmptySubsequences: false)
        // The prompt needs the last line.
        #expect(lines.count <= 23)
        #expect(lines.filter { $0.count > 80 } == [])
        let row = command.flatMap(CommandTable.row)
        for flag in CommandTable.globalFlags + (row?.flags ?? []) { #expect(text.contains("--\(flag.name)")) }
        if command == nil {
            let words = Set(text.split { " ,\n".contains($0) }.map(String.init))
            for row in CommandTable.rows { #expect(words.contains(row.name.rawValue) == !row.isHidden) }
        }
    }

    @Test(
        "colour follows the flag, then NO_COLOR, TERM and the terminal",
        arguments: [
            (ColorChoice.auto, true, [:], true), (.auto, false, [:], false), (.auto, true, ["NO_COLOR": "1"], false),
            (.auto, true, ["NO_COLOR": ""], true), (.auto, true, ["TERM": "dumb"], false),
            (.always, false, ["NO_COLOR": "1"], true), (.never, true, [:], false),
        ] as [(ColorChoice, Bool, [String: String], Bool)])
    func color(_ choice: ColorChoice, _ isTerminal: Bool, _ variables: [String: String], _ expected: Bool) {
        #expect(choice.isColored(isTerminal: isTerminal, variables: variables) == expected)
    }
}

@Suite("chatbridge check")
struct CheckCommandTests {
    private func check(
        _ toml: String, _ options: CheckOptions = CheckOptions(), files: [String: String] = [:]
    ) -> (code: Int32, output: String, errors: String) {
        var (output, errors, files) = ("", "", files)
        files["chatbridge.toml"] = toml
        let code = OfflineCommands.check(
            GlobalOptions(), options, environment: testEnvironment(files), output: { output += $0 },
            errors: { errors += $0 })
        return (code, output, errors)
    }

    @Test("a good configuration is ok")
    func good() {
        #expect(check(withRoom("")) == (0, "ok\n", ""))
        #expect(
            check(withRoom(""), CheckOptions(json: true))
                == (0, "{\"ok\":true,\"file\":\"chatbridge.toml\",\"problems\":[]}\n", ""))
    }

    /// A described backend: whether it has a history, and what `check` says of its messages.
    struct Described: Sendable, CustomTestStringConvertible {
        var echo: String
        var receipt = ""
        var message = #""id":"/id""#
        var sends = "{{id}}"
        var confirmedBy: String
        var withHistory: String
        var without: String

        var testDescription: String { "\(echo) \(receipt) \(message) \(sends)" }

        func json(hasHistory: Bool) -> String {
            let echo = echo.isEmpty ? "" : #""echo":"\#(echo)","#
            let receipt =
                receipt.isEmpty
                ? "" : #"{"when":{"/op":"r"},"event":"receipt","fields":{"state":{"const":"sent"},\#(receipt)}},"#
            return #"""
                {\#(echo)\#(hasHistory ? #""history":{"get":"/h"},"# : "")"encode":{"message":["\#(sends)","{{text}}"]},
                 "decode":[\#(receipt){"event":"message","fields":{"text":"/t",\#(message)}}]}
                """#
        }
    }

    private static let ackIDs = #""ids":"/id","ref":"/cid""#
    private static let ack = "ack (receipt with ids and ref)"
    private static let pong = "pong (a ping sent after the message shows that the backend's connection has read it)"
    private static let guess =
        ". Deduced from the rules: a backend that lives and answers nothing within 10 s of its first message is"
        + " confirmed by pong instead"
    private static let decides = "the history decides, else the author is told"
    private static let unknown = "the author is told that it is not known whether it was delivered"
    private static let fills = "what the history has arrived, the rest goes again with the same id"
    private static let repeats = "what was not confirmed goes again with the same id"
    private static let twice =
        "the history decides what arrived; what it lacks twice, at least 10 s apart, goes again, once"

    static let described = [
        Described(
            echo: "by-id", confirmedBy: "echo by id (the message comes back with the id that we gave it)",
            withHistory: fills, without: repeats),
        Described(
            echo: "by-id", message: #""id":"/id","ref":"/cid""#,
            confirmedBy: "echo by id (the message comes back with the id that we gave it)", withHistory: decides,
            without: unknown),
        Described(
            echo: "by-text", confirmedBy: "echo by text (the message comes back with an id of the backend's)",
            withHistory: decides, without: unknown),
        Described(echo: "ack", receipt: ackIDs, confirmedBy: ack, withHistory: decides, without: unknown),
        Described(echo: "none", receipt: ackIDs, confirmedBy: ack, withHistory: decides, without: unknown),
        Described(
            echo: "auto", receipt: ackIDs, confirmedBy: ack, withHistory: decides + guess, without: unknown + guess),
        Described(
            echo: "none", receipt: #""ids":"/cid""#, confirmedBy: "receipt (with the id that we gave the message)",
            withHistory: fills, without: repeats),
        Described(echo: "none", confirmedBy: pong, withHistory: twice + ", with the same id", without: repeats),
        Described(echo: "none", sends: "x", confirmedBy: pong, withHistory: twice, without: unknown),
        Described(echo: "", sends: "x", confirmedBy: pong, withHistory: twice, without: unknown),
    ]

    @Test("of each described backend it says what confirms a message, and what a lost link means", arguments: described)
    func confirmations(_ row: Described) {
        let toml = """
            [dialects.mine]
            file = "mine.json"
            [[rooms]]
            name = "ops"
            url = "ws://127.0.0.1:8080/chat"
            dialect = "mine"
            [[rooms]]
            name = "lobby"
            url = "ws://127.0.0.1:8080/chat"
            """
        for (hasHistory, meaning) in [(true, row.withHistory), (false, row.without)] {
            let files = ["mine.json": row.json(hasHistory: hasHistory)]
            #expect(
                check(toml, files: files) == (
                    0, "room \"ops\": confirmed by: \(row.confirmedBy); after a lost link: \(meaning)\nok\n", ""
                ))
            let said = check(toml, CheckOptions(json: true), files: files).output
            #expect(
                said == #"{"ok":true,"file":"chatbridge.toml","problems":[],"confirmations":[{"room":"ops","#
                    + #""confirmed_by":"\#(row.confirmedBy)","after_a_lost_link":"\#(meaning)"}]}"# + "\n")
        }
    }

    @Test("an ack that the rules cannot read is told with its place and what is missing")
    func ackMistakes() {
        let toml = """
            dialects = { mine = { file = "mine.json" } }
            rooms = [{ name = "ops", url = "ws://h/", dialect = "mine" }]
            """
        let json = Described(
            echo: "ack", receipt: #""ids":"/id""#, sends: "x", confirmedBy: "", withHistory: "", without: ""
        ).json(hasHistory: false)
        #expect(
            check(toml, files: ["mine.json": json]) == (
                78, "",
                """
                mine.json: /echo: "ack" needs "ref" in the "receipt" rule that says "sent": the id that we gave the message
                mine.json: /echo: "ack" needs "{{id}}" in "encode.message": the ack names the message by it

                """
            ))
    }

    /// A configuration with an account that may enter one room, and why that keeps nobody out of the others.
    struct Opening: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var identity: String
        var more = ""
        /// Nil: nothing is wrong with it.
        var because: String?
    }

    static let openings = [
        Opening(
            testDescription: "nobody has to log in", identity: "require_login = \"never\"",
            because: "clients enter without an account (identity.require_login = \"never\")"),
        Opening(
            testDescription: "nobody has to who is on this machine", identity: "",
            because:
                "clients on loopback and socket files enter without an account (identity.require_login = \"remote\")"),
        Opening(
            testDescription: "a password for everybody", identity: "require_login = \"always\"\npassword = \"open\"",
            because: "clients enter without an account by identity.password"),
        Opening(
            testDescription: "everybody may make one", identity: "require_login = \"always\"\nregistration = \"on\"",
            because: "clients make accounts that may enter every room (identity.registration = \"on\")"),
        Opening(testDescription: "closed", identity: "require_login = \"always\"", because: nil),
        Opening(
            testDescription: "closed, on a listener behind a proxy", identity: "",
            more: "[[listeners]]\nbind = \"ws://127.0.0.1:2\"\ntrusted_proxies = [\"127.0.0.1\"]\n", because: nil),
    ]

    @Test("rooms of accounts that protect nothing are warned of", arguments: openings)
    func openRooms(_ row: Opening) {
        let toml = withRoom(
            "[identity]\n\(row.identity)\n\(row.more)[[accounts]]\nname = \"ann\"\npassword = \"\(examplePasswordHash)\"\n"
                + "rooms = [\"lobby\"]\n")
        let warning = row.because.map { "accounts.rooms of \"ann\" keeps nobody out of the other rooms: \($0)" }
        #expect(check(toml) == (0, (warning.map { "warning: \($0)\n" } ?? "") + "ok\n", ""))
        let json = check(toml, CheckOptions(json: true)).output
        let quoted = warning.map { ",\"warnings\":[\"\($0.replacing("\"", with: "\\\""))\"]" } ?? ""
        #expect(json == "{\"ok\":true,\"file\":\"chatbridge.toml\",\"problems\":[]\(quoted)}\n")
        // Without such an account nothing is said.
        #expect(!check(toml.replacing("\"lobby\"]\n", with: "\"*\"]\n")).output.contains("warning"))
    }

    @Test("a bad one lists its problems and exits 78")
    func bad() {
        let toml = withRoom("[log]\nlevle = 1\ntoo = 2")
        #expect(
            check(toml) == (
                78, "",
                """
                chatbridge.toml:3:1: unknown key "levle" (did you mean "level"?)
                chatbridge.toml:4:1: unknown key "too" (did you mean "to"?)

                """
            ))
        #expect(
            check(withRoom("[log]\nlevle = 1"), CheckOptions(json: true)) == (
                78,
                #"{"ok":false,"problems":[{"at":"chatbridge.toml:3:1","file":"chatbridge.toml","line":3,"column":1,"#
                    + #""message":"unknown key \"levle\" (did you mean \"level\"?)"}]}"# + "\n", ""
            ))
    }

    @Test("--print shows what counts, secrets blanked")
    func print() {
        let shown = check(withRoom("[identity]\npassword = \"hunter2\""), CheckOptions(print: true))
        #expect(shown.code == 0)
        #expect(shown.output.contains("password = \"***\""))
        #expect(shown.output.contains("[identity.nicks]\nsuffix = \"\""))
        #expect(shown.output.contains("[[rooms]]\nname = \"lobby\"\nchannel = \"#lobby\""))
        #expect(!shown.output.contains("hunter2"))
    }

    @Test("the version is one line")
    func version() {
        var text = ""
        #expect(OfflineCommands.version { text += $0 } == 0)
        #expect(text == "chatbridge \(BuildInformation.version)\n")
    }
}
