/// Help made from ``CommandTable``; every page fits a terminal of 80 by 24.
enum CommandHelp {
    /// The overview, or the help of one command. Ends in a newline.
    static func text(_ command: CommandName?) -> String {
        guard let command, let row = CommandTable.row(command) else { return overview }
        return page(row)
    }

    private static var overview: String {
        var lines = [
            "chatbridge relays between WebSocket chat backends and IRC.",
            "Usage: chatbridge [COMMAND] [FLAGS]", "", "Commands:",
        ]
        let rows = CommandTable.visibleRows
        lines += rows.filter { $0.place == .main }.map { "  \(padded($0.name.rawValue, to: 9))\($0.summary)" }
        lines += wrapped("At a running bridge:", rows.filter { $0.place == .live })
        lines += wrapped("Tools:", rows.filter { $0.place == .tool })
        lines += ["", "Flags:"]
        lines += CommandTable.globalFlags.map(line)
        lines += ["", "\"chatbridge help COMMAND\" says more. Try \"chatbridge demo\" first."]
        return lines.joined(separator: "\n") + "\n"
    }

    private static func page(_ row: CommandRow) -> String {
        var lines = ["Usage: " + usage(row), "", capitalized(row.summary) + "."]
        lines += row.details
        if !row.flags.isEmpty { lines += ["", "Flags:"] + row.flags.map(line) }
        lines += ["", "Flags of every command:"] + CommandTable.globalFlags.map(line)
        return lines.joined(separator: "\n") + "\n"
    }

    /// A command with its operand, as it is typed.
    static func usage(_ row: CommandRow) -> String {
        let operand = row.operandName.map { row.isHidden || row.needsOperand ? " \($0)" : " [\($0)]" } ?? ""
        return "chatbridge \(row.name.rawValue)\(operand) [FLAGS]"
    }

    /// The names of commands, in lines of at most 80 columns.
    private static func wrapped(_ title: String, _ rows: [CommandRow]) -> [String] {
        var lines = [title]
        for (index, row) in rows.enumerated() {
            let word = row.name.rawValue + (index == rows.count - 1 ? "" : ",")
            if let last = lines.last, last.count + 1 + word.count <= 80 {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append("  \(word)")
            }
        }
        return lines
    }

    private static func line(_ flag: CommandFlag) -> String {
        let short = flag.short.map { "-\($0), " } ?? "    "
        let value = flag.valueName.map { " \($0)" } ?? ""
        return "  \(short)\(padded("--\(flag.name)\(value)", to: 19))\(flag.summary)"
    }

    private static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(width - text.count, 1))
    }

    private static func capitalized(_ text: String) -> String { text.prefix(1).uppercased() + text.dropFirst() }
}
