extension CommandTable {
    private static let socket = CommandFlag("socket", value: "PATH", "the admin socket, instead of the configuration's")

    private static func live(
        _ name: CommandName, _ summary: String, operands: String? = nil, maxOperands: Int = 1,
        needsOperand: Bool = false, flags: [CommandFlag] = [], _ details: [String] = []
    ) -> CommandRow {
        CommandRow(
            name: name, summary: summary, operandName: operands, maxOperands: maxOperands, flags: flags + [socket],
            details: details, needsOperand: needsOperand, place: .live)
    }

    /// The commands at a running bridge, and what helps with its secrets.
    static let liveRows = [
        live(
            .status, "show a running bridge: its rooms, and what is wrong",
            flags: [
                CommandFlag("watch", "again every second, with rates of the last minute"),
                CommandFlag("json", "print the state as JSON"),
                CommandFlag("ready", "print nothing; exit 0 when ready, else 1 and a reason"),
            ],
            ["Exits 69 when no bridge answers; with --ready 1, for health checks."]),
        live(
            .reload, "read the configuration again, as SIGHUP does",
            [
                "Prints what changed, and which keys need a restart. Exits 78 when the",
                "configuration has errors; then nothing is changed.",
            ]),
        live(
            .rooms, "list the rooms, or change the link of one", operands: "reconnect|disable|enable NAME",
            maxOperands: 2,
            flags: [CommandFlag("json", "print one JSON object a line, as in status --json")],
            [
                "reconnect opens a new link. disable closes it until enable or the next start;",
                "messages are queued meanwhile. Exits 65 when there is no such room.",
            ]),
        live(
            .clients, "list the clients, or disconnect one", operands: "kick ID", maxOperands: 2,
            flags: [CommandFlag("json", "print one JSON object a line, as in status --json")],
            ["Exits 65 when there is no such client."]),
        live(
            .mirrors, "list the mirrors, or show what one would post", operands: "test NAME", maxOperands: 2,
            [
                "test prints what the configuration makes of a message; it needs no bridge and",
                "posts nothing. Exits 65 when there is no such mirror.",
            ]),
        live(
            .tail, "show what goes in and out of the rooms, as it happens", operands: "ROOM",
            flags: [
                CommandFlag("json", "print one JSON object a line"),
                CommandFlag("raw", "with the WebSocket frames, secrets blanked"),
            ],
            ["irc is the side of the IRC clients. +N ms: from the client to all clients.", "Ctrl-C ends it."]),
        live(
            .say, "say something in a room, as the bridge itself", operands: "ROOM TEXT", maxOperands: 1000,
            needsOperand: true,
            [
                "It goes to the backend, and is shown to IRC clients as *bridge. Behind -- the",
                "text may begin with -.",
            ]),
        live(
            .history, "print messages of a room", operands: "ROOM", needsOperand: true,
            flags: [
                CommandFlag("since", value: "TIME", "only later ones: 10m, 7d, 2026-11-21T12:03:10Z (UTC)"),
                CommandFlag("limit", value: "N", "the newest N; default 50, with --since 10000"),
                CommandFlag("json", "print one JSON object a line, as export does"),
            ]),
        live(
            .export, "print all messages of a room as JSON, one a line", operands: "ROOM", needsOperand: true,
            ["Progress goes to standard error, if that is a terminal."]),
        live(
            .backup, "copy the database while the bridge runs", operands: "FILE", needsOperand: true,
            [
                "The copy is the database at one moment. FILE must not exist; the copy is for its",
                "owner alone. Exits 73 when it cannot be written, 74 when the database cannot be",
                "read.",
            ]),
        live(
            .forget, "erase a person and what they said", operands: "USER", needsOperand: true,
            flags: [
                CommandFlag("yes", "do not ask"),
                CommandFlag("account", "USER is an account's name, perhaps of one that is gone"),
            ],
            [
                "USER is an account's name, id@backend of an upstream user, or a present nick.",
                "Messages stay as deleted ones, without words and author. What waits for the",
                "backend is sent first. Not reached: the backend, logs of IRC clients, copies",
                "made by backup and export. Exits 65 when there is no such person, 69 when it is",
                "not complete and has to be repeated.",
            ]),
        live(.drain, "stop the bridge in order, as SIGTERM does"),
        CommandRow(
            name: .token, summary: "show what a JSON Web Token says", operandName: "inspect FILE", maxOperands: 2,
            flags: [],
            details: [
                "Prints the header, the claims and their times in words; never the signature,",
                "which is not checked. - or no file is standard input. Exits 65 when it is none.",
            ], place: .tool),
    ]
}
