/// A flag: its spellings and a line about it.
struct CommandFlag: Sendable {
    /// Without the dashes.
    let name: String
    let short: Character?
    /// What its value is called in the help, or nil for a flag without one.
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
    case run, demo, studio, check, version, help
}

/// A command: what it is called, what it takes and what it says of itself.
struct CommandRow: Sendable {
    let name: CommandName
    /// One line for the overview.
    let summary: String
    /// What may stand behind the name without dashes, or nil for nothing.
    let operandName: String?
    let flags: [CommandFlag]
    /// Lines below the summary in the command's own help.
    let details: [String]
}

/// Every command and every flag. Parsing, help and suggestions come from these rows.
enum CommandTable {
    static let globalFlags = [
        CommandFlag("config", value: "FILE", "configuration file; default: ./chatbridge.toml"),
        CommandFlag("listen", value: "URI", "listen here instead (repeatable), irc://127.0.0.1:6667"),
        CommandFlag("state-dir", value: "DIR", "where state is kept"),
        CommandFlag("log-level", value: "LEVEL", "error, warn, info, debug or trace"),
        CommandFlag("color", value: "WHEN", "auto, always or never; NO_COLOR is honoured"),
        CommandFlag("help", short: "h", "show help, also behind a command"),
        CommandFlag("version", "show the version"),
    ]

    static let rows = [
        CommandRow(
            name: .run, summary: "relay between the configured rooms and IRC (default)", operandName: nil, flags: [],
            details: [
                "Runs in the foreground until SIGTERM or SIGINT. Without a file the environment",
                "is enough: CHATBRIDGE_UPSTREAM_URL, and CHATBRIDGE_ROOM, CHATBRIDGE_DIALECT,",
                "CHATBRIDGE_TOKEN[_FILE], CHATBRIDGE_LISTEN, CHATBRIDGE_PASSWORD_FILE; any key",
                "as in CHATBRIDGE__LIMITS__MAX_CLIENTS=50.",
            ]),
        CommandRow(
            name: .demo, summary: "run with a built-in chat backend to try it out", operandName: nil, flags: [],
            details: ["Needs no configuration: connect an IRC client to 127.0.0.1:6667 and join #lobby."]),
        CommandRow(
            name: .studio, summary: "only the built-in chat backend, to connect to", operandName: nil,
            flags: [CommandFlag("port", value: "N", "port on 127.0.0.1; 0 takes any free one")],
            details: ["A chat server to test a configuration against."]),
        CommandRow(
            name: .check, summary: "check the configuration and say what is wrong", operandName: nil,
            flags: [
                CommandFlag("print", "print the configuration that counts, secrets blanked"),
                CommandFlag("json", "print the result as JSON"),
            ],
            details: ["Prints every problem as FILE:LINE:COLUMN: MESSAGE and exits 78, or \"ok\" and 0."]),
        CommandRow(name: .version, summary: "show the version", operandName: nil, flags: [], details: []),
        CommandRow(
            name: .help, summary: "show help, of a command if one is named", operandName: "COMMAND", flags: [],
            details: []),
    ]

    static func row(_ name: CommandName) -> CommandRow? { rows.first { $0.name == name } }
}
