/// How the program ends: one row for each code. Source: sysexits.h of 4.3BSD, for 64 to 78.
struct ExitCodeRow: Sendable {
    let code: Int32
    /// The name in sysexits.h, or of the condition.
    let name: String
    /// The condition in a few words, for the help.
    let brief: String
    /// The condition; docs/OPERATIONS.md has the same words.
    let meaning: String
}

enum ExitCode {
    static let ok: Int32 = 0
    static let notReady: Int32 = 1
    static let usage: Int32 = 64
    static let data: Int32 = 65
    static let noInput: Int32 = 66
    static let unavailable: Int32 = 69
    static let software: Int32 = 70
    static let cannotCreate: Int32 = 73
    static let inputOutput: Int32 = 74
    static let noPermission: Int32 = 77
    static let configuration: Int32 = 78
    /// Ended by a signal at once, as shells say it; the signal's number is added.
    static let signalBase: Int32 = 128

    static let rows = [
        ExitCodeRow(
            code: ok, name: "OK", brief: "done",
            meaning: "done; of a daemon: stopped in order, everything is stored"),
        ExitCodeRow(
            code: notReady, name: "NOTREADY", brief: "not ready",
            meaning: "`status --ready`: the bridge is not ready, or none answers"),
        ExitCodeRow(
            code: usage, name: "USAGE", brief: "usage error", meaning: "unknown command, flag or operand"),
        ExitCodeRow(
            code: data, name: "DATAERR", brief: "wrong input",
            meaning: """
                an input without an event or a frame (`check`), or without what a command names (a room, a client)
                """),
        ExitCodeRow(
            code: noInput, name: "NOINPUT", brief: "no input",
            meaning: "a file that a command names cannot be read"),
        ExitCodeRow(
            code: unavailable, name: "UNAVAILABLE", brief: "cannot start",
            meaning: """
                cannot start: an address in use, a store in use or of a newer version; `check --connect`: a link failed; of other commands: no bridge answers
                """),
        ExitCodeRow(code: software, name: "SOFTWARE", brief: "internal error", meaning: "internal error"),
        ExitCodeRow(
            code: cannotCreate, name: "CANTCREAT", brief: "no output",
            meaning: "`cert`, `learn` or `backup` cannot write its files"),
        ExitCodeRow(
            code: inputOutput, name: "IOERR", brief: "not all stored",
            meaning: "stopped, but the last messages could not be stored; of `backup`: the copy failed"),
        ExitCodeRow(
            code: noPermission, name: "NOPERM", brief: "not permitted",
            meaning: "the admin socket may not be opened, or does not answer this user"),
        ExitCodeRow(
            code: configuration, name: "CONFIG", brief: "configuration errors",
            meaning: "the configuration has errors, all printed"),
        ExitCodeRow(
            code: signalBase, name: "SIGNAL", brief: "+N second signal N",
            meaning: "plus the signal's number (130, 143): ended at once, by a second signal while it stopped"),
    ]

    /// `0 done, 64 usage error`.
    static func summary(_ codes: [Int32]) -> String {
        rows.filter { codes.contains($0.code) }.map { row in
            "\(row.code)\(row.brief.hasPrefix("+") ? "" : " ")\(row.brief)"
        }.joined(separator: ", ")
    }
}
