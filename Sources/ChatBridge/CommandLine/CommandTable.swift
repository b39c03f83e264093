/// A flag: its spellings and a line about it.
struct CommandFlag: Sendable {
    /// Without the dashes.
    let name: String
    let short: Character?
    /// The value's name in the help, or nil for a flag without one.
    let valueName: String?
    let summary: String

    init(_ name: String, short: Character? = nil, value: String? = nil, _ summary: String) {
        self.name = name
        self.short = short
        self.valueName = value
        self.summary = summary
    }
}

enum CommandName: String, CaseIterable, Sendable {
    case run, demo, studio, check, learn, config, completion, man, cert
    case hashPassword = "hash-password"
    case version, help
    case autobahnClient = "autobahn-client"
    case autobahnServer = "autobahn-server"
    case docTables = "doc-tables"
    case status, reload, rooms, clients, mirrors, tail, say, history, export, backup, forget, drain, token
}

/// A command: its name, arguments and help.
struct CommandRow: Sendable {
    let name: CommandName
    /// One line for the overview.
    let summary: String
    /// The operand's name, or nil for none.
    let operandName: String?
    var maxOperands = 1
    let flags: [CommandFlag]
    /// Lines below the summary in the command's own help.
    let details: [String]
    /// For the project's own tests: not in the overview and never suggested.
    var isHidden = false
    var needsOperand = false
    var place = OverviewPlace.main

    /// Where the overview has it: with its summary, or in a line of names.
    enum OverviewPlace: Sendable {
        case main, live, tool
    }
}

/// Every command and every flag. Parsing, help and suggestions come from these rows.
enum CommandTable {
    static let globalFlags = [
        CommandFlag("config", value: "FILE", "configuration file; default: ./chatbridge.toml"),
        CommandFlag("listen", value: "URI", "listen here instead (repeatable), irc://127.0.0.1:6667"),
        CommandFlag("state-dir", value: "DIR", "directory of persistent state"),
        CommandFlag("log-level", value: "LEVEL", "error, warn, info, debug or trace"),
        CommandFlag("color", value: "WHEN", "auto, always or never; NO_COLOR is honoured"),
        CommandFlag("help", short: "h", "show help, also behind a command"),
        CommandFlag("version", "show the version"),
    ]

    static let rows = ownRows + liveRows

    private static let ownRows = [
        CommandRow(
            name: .run, summary: "relay between the configured rooms and IRC (default)", operandName: nil, flags: [],
            details: [
                "Runs in the foreground until SIGTERM or SIGINT. Without a file the environment",
                "is enough: CHATBRIDGE_UPSTREAM_URL, and CHATBRIDGE_ROOM, CHATBRIDGE_DIALECT,",
                "CHATBRIDGE_TOKEN[_FILE], CHATBRIDGE_LISTEN, CHATBRIDGE_PASSWORD_FILE; any key",
                "as in CHATBRIDGE__LIMITS__MAX_CLIENTS=50.",
                "Exit codes: " + ExitCode.summary([ExitCode.ok, ExitCode.usage, ExitCode.unavailable]) + ",",
                ExitCode.summary([ExitCode.inputOutput, ExitCode.configuration, ExitCode.signalBase]) + ".",
            ]),
        CommandRow(
            name: .demo, summary: "run with a built-in chat backend to try it out", operandName: nil, flags: [],
            details: [
                "Needs no configuration: connect an IRC client to 127.0.0.1:6667 and join",
                "#lobby, use telnet, or open the page: a chat client of the backend, with an",
                "IRC client and both wires beside it.",
            ]),
        CommandRow(
            name: .studio, summary: "only the built-in chat backend, to connect to", operandName: nil,
            flags: [
                CommandFlag("port", value: "N", "port on 127.0.0.1; 0 takes any free one"),
                CommandFlag("database", value: "FILE", "a SQLite file for rooms and files; default: in memory"),
            ],
            details: [
                "A chat server to test a configuration against: envelope, jwt-rooms,",
                "swiftchat and typed, by the path of the address, and a page for browsers.",
            ]),
        CommandRow(
            name: .check, summary: "check the configuration and say what is wrong", operandName: nil,
            flags: [
                CommandFlag("print", "print the configuration that counts, secrets blanked"),
                CommandFlag("json", "print the result as JSON"),
                CommandFlag("connect", "connect to the backend of each room, step by step"),
                CommandFlag("frame", value: "FILE", "print what frames decode to, one a line; - is stdin"),
                CommandFlag("event", value: "FILE", "print the frames that events become"),
                CommandFlag("room", value: "NAME", "the room; default: all, or the only one there is"),
            ],
            details: [
                "Prints every problem as FILE:LINE:COLUMN: MESSAGE and exits 78, or \"ok\" and 0.",
                "With --frame a line for each frame; exits 65 when one of them says nothing. With",
                "--connect the steps of each link, and why one failed; exits 69 when one did.",
            ]),
        CommandRow(
            name: .learn, summary: "propose the description of a backend from what its app says to it",
            operandName: "URL",
            flags: [
                CommandFlag("frames", value: "FILE", "a recording or a browser's HAR instead; - is stdin"),
                CommandFlag("proxy", value: "ADDRESS", "stand between app and backend, on 127.0.0.1:9000"),
                CommandFlag("token-file", value: "FILE", "the token; else that of CHATBRIDGE_TOKEN[_FILE]"),
                CommandFlag("header", value: "HEADER", "a header of the handshake, NAME: VALUE (repeatable)"),
                CommandFlag("send", value: "FRAME", "a frame to send once connected (repeatable)"),
                CommandFlag("name", value: "NAME", "name of the files and of the dialect; default learned"),
                CommandFlag("out", value: "DIR", "where to write them; default: here"),
            ],
            details: [
                "Asks for ten things to be done in the app, and writes NAME.json, NAME.toml and",
                "NAME.frames.jsonl. The token replaces {token}; without one it is a bearer token.",
            ], place: .tool),
        CommandRow(
            name: .config, summary: "show the configuration, its defaults, or what a key means",
            operandName: "default|show|explain KEY", maxOperands: 2, flags: [],
            details: [
                "default prints an example: every key with its default and a description. show",
                "prints what counts, and where each value is set, secrets blanked. explain tells",
                "of one key, as limits.sendq or rooms.lobby.url, and where it is set now.",
            ], place: .tool),
        CommandRow(
            name: .completion, summary: "print the completion of a shell", operandName: "bash|zsh|fish", flags: [],
            details: [
                "bash: in ~/.local/share/bash-completion/completions/chatbridge; zsh: in",
                "_chatbridge, in a directory of $fpath; fish: in",
                "~/.config/fish/completions/chatbridge.fish.",
            ], place: .tool),
        CommandRow(
            name: .man, summary: "print the manual page", operandName: nil, flags: [],
            details: ["To read it: chatbridge man | man -l -"], place: .tool),
        CommandRow(
            name: .cert, summary: "make a certificate, or show what one is known by",
            operandName: "self-signed|fingerprint FILE", maxOperands: 2,
            flags: [
                CommandFlag("name", value: "HOST", "self-signed: a name or address (repeatable)"),
                CommandFlag("out", value: "DIR", "self-signed: where to put cert.pem and key.pem"),
                CommandFlag("days", value: "N", "self-signed: how long it is valid; default 365"),
            ],
            details: [
                "self-signed writes cert.pem and key.pem for an ircs:// listener, and never over",
                "files that exist. fingerprint prints what accounts and pin_sha256 compare with.",
            ], place: .tool),
        CommandRow(
            name: .hashPassword, summary: "make the hash of a password for [[accounts]]", operandName: nil,
            flags: [CommandFlag("iterations", value: "N", "cost of each check; default 600000")],
            details: [
                "Reads the password from the terminal without showing it, or one line from",
                "standard input, and prints $scram-sha-256$..., which is what password in",
                "[[accounts]] and in [identity] takes.",
            ], place: .tool),
        CommandRow(name: .version, summary: "show the version", operandName: nil, flags: [], details: [], place: .tool),
        CommandRow(
            name: .help, summary: "show help, of a command if one is named", operandName: "COMMAND", flags: [],
            details: []),
        CommandRow(
            name: .autobahnClient, summary: "echo to the Autobahn TestSuite's fuzzing server", operandName: "URL",
            flags: [
                CommandFlag("agent", value: "NAME", "what the report calls us; default: chatbridge"),
                CommandFlag("case", value: "N", "only this case, from 1, and no report"),
            ],
            details: ["Runs every case that ws://HOST:PORT has, then asks for the report."], isHidden: true),
        CommandRow(
            name: .autobahnServer, summary: "echo to the Autobahn TestSuite's fuzzing client", operandName: nil,
            flags: [CommandFlag("port", value: "N", "port on 127.0.0.1; 0 takes any free one")],
            details: ["Echoes to every WebSocket until SIGTERM or SIGINT."], isHidden: true),
        CommandRow(
            name: .docTables, summary: "print the tables of the documentation", operandName: nil, flags: [],
            details: ["Each under a line ## NAME, as scripts/generate-docs puts them into the pages."], isHidden: true),
    ]

    /// The rows of the overview.
    static var visibleRows: [CommandRow] { rows.filter { !$0.isHidden } }

    static func row(_ name: CommandName) -> CommandRow? { rows.first { $0.name == name } }
}
