/// The tables of docs/CLI.md, made from ``CommandTable`` as the help and the manual page are.
enum CommandReference {
    /// A heading for each command: usage, purpose, flags.
    static var commands: String {
        CommandTable.visibleRows.map { row in
            var lines = ["### `chatbridge \(row.name.rawValue)`", "", "```", CommandHelp.usage(row), "```", ""]
            lines.append(sentence(row.summary) + row.details.map { " " + escaped($0) }.joined())
            if !row.flags.isEmpty { lines += ["", table(row.flags)] }
            return lines.joined(separator: "\n")
        }.joined(separator: "\n\n") + "\n\n### Flags of every command\n\n" + table(CommandTable.globalFlags)
    }

    /// The variables that it reads, beside those of the configuration's keys.
    static var variables: String {
        let rows = ManualPage.variables.map { "| `\($0.name)` | \(escaped($0.meaning)) |" }
        return (["| variable | meaning |", "|---|---|"] + rows).joined(separator: "\n")
    }

    private static func table(_ flags: [CommandFlag]) -> String {
        let rows = flags.map { flag in
            let short = flag.short.map { "`-\($0)`, " } ?? ""
            let value = flag.valueName.map { " \($0)" } ?? ""
            return "| \(short)`--\(flag.name)\(value)` | \(escaped(flag.summary)) |"
        }
        return (["| flag | meaning |", "|---|---|"] + rows).joined(separator: "\n")
    }

    private static func sentence(_ text: String) -> String {
        let escaped = escaped(text)
        return escaped.prefix(1).uppercased() + escaped.dropFirst() + "."
    }

    /// Plain text as Markdown.
    private static func escaped(_ text: String) -> String {
        ["<", "*", "_", "[", "|"].reduce(text) { $0.replacing($1, with: "\\" + $1) }
    }
}
