import Configuration

enum CompletionShell: String, CaseIterable, Sendable {
    case bash, zsh, fish
}

/// `chatbridge completion SHELL`: commands, flags and their values, made from ``CommandTable``.
struct CompletionScript {
    /// What stands behind a flag, or as an operand.
    private enum Value {
        case files, directories, words([String])
        /// Anything, of which nothing can be offered.
        case free

        init(_ name: String) {
            switch name {
            case "FILE": self = .files
            case "DIR": self = .directories
            case "LEVEL": self = .words(LogLevel.allCases.map(\.rawValue))
            case "WHEN": self = .words(ColorChoice.allCases.map(\.rawValue))
            case "COMMAND": self = .words(CommandTable.visibleRows.map(\.name.rawValue))
            default: self = .free
            }
        }
    }

    private let rows = CommandTable.visibleRows
    private let globals = CommandTable.globalFlags

    static func text(_ shell: CompletionShell) -> String {
        let script = Self()
        switch shell {
        case .bash: return script.bash
        case .zsh: return script.zsh
        case .fish: return script.fish
        }
    }

    /// The operands of a command: words in small letters are to be typed, others are values.
    private func operand(_ row: CommandRow) -> (words: [String], takesFiles: Bool) {
        var words: [String] = []
        var takesFiles = false
        for part in (row.operandName ?? "").split(whereSeparator: { "| []".contains($0) }).map(String.init) {
            if part.allSatisfy({ $0.isLowercase || $0 == "-" }) {
                words.append(part)
            } else if case .files = Value(part) {
                takesFiles = true
            } else if case .words(let known) = Value(part) {
                words += known
            }
        }
        return (words, takesFiles)
    }

    /// Every flag once; a name means the same wherever it stands.
    private var allFlags: [CommandFlag] {
        var names: Set<String> = []
        return (globals + rows.flatMap(\.flags)).filter { names.insert($0.name).inserted }
    }

    private func spelled(_ flags: [CommandFlag]) -> String {
        flags.flatMap { flag in (flag.short.map { ["-\($0)"] } ?? []) + ["--\(flag.name)"] }.joined(separator: " ")
    }

    // MARK: - bash

    private var bash: String {
        let valued = allFlags.filter { $0.valueName != nil }
        func names(_ matches: (Value) -> Bool) -> String {
            valued.filter { matches(Value($0.valueName ?? "")) }.map { "--\($0.name)" }.joined(separator: "|")
        }
        var lines = [
            "# bash completion of chatbridge; made by \"chatbridge completion bash\"", "_chatbridge() {",
            "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= word skips= i",
            "    COMPREPLY=()", "    for ((i = 1; i < COMP_CWORD; i++)); do", "        word=${COMP_WORDS[i]}",
            "        if [[ $skips ]]; then skips=; continue; fi", "        case $word in",
            "            \(valued.map { "--\($0.name)" }.joined(separator: "|"))) skips=1 ;;", "            -*) ;;",
            "            *) [[ $command ]] || command=$word ;;", "        esac", "    done", "    case $previous in",
            "        \(names { if case .files = $0 { true } else { false } }))",
            "            compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); return ;;",
            "        \(names { if case .directories = $0 { true } else { false } }))",
            "            compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$current\"); return ;;",
        ]
        for flag in valued {
            guard case .words(let words) = Value(flag.valueName ?? "") else { continue }
            lines.append("        --\(flag.name)) \(bashWords(words)); return ;;")
        }
        lines += ["        \(names { if case .free = $0 { true } else { false } })) return ;;", "    esac"]
        lines += ["    if [[ $current == -* ]]; then", "        case $command in"]
        for row in rows where !row.flags.isEmpty {
            lines.append("            \(row.name.rawValue)) \(bashWords([spelled(row.flags + globals)])) ;;")
        }
        lines += ["            *) \(bashWords([spelled(globals)])) ;;", "        esac", "        return", "    fi"]
        lines.append("    case $command in")
        lines.append("        '') \(bashWords(rows.map(\.name.rawValue))) ;;")
        for row in rows {
            let (words, takesFiles) = operand(row)
            var parts = words.isEmpty ? [] : [bashWords(words)]
            if takesFiles {
                parts.append(
                    "compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$current\")")
            }
            if !parts.isEmpty { lines.append("        \(row.name.rawValue)) \(parts.joined(separator: "; ")) ;;") }
        }
        lines += ["    esac", "}", "complete -F _chatbridge chatbridge"]
        return lines.joined(separator: "\n") + "\n"
    }

    private func bashWords(_ words: [String]) -> String {
        "mapfile -t COMPREPLY < <(compgen -W '\(words.joined(separator: " "))' -- \"$current\")"
    }

    // MARK: - zsh

    private var zsh: String {
        var lines = [
            "#compdef chatbridge", "# zsh completion of chatbridge; made by \"chatbridge completion zsh\"",
            "_chatbridge() {",
            "    local context state state_descr line", "    typeset -A opt_args", "    local -a commands globals",
            "    globals=(",
        ]
        lines += globals.flatMap(zshFlag).map { "        \($0)" }
        lines += ["    )", "    commands=("]
        lines += rows.map { "        \(quoted("\($0.name.rawValue):\($0.summary)"))" }
        lines += [
            "    )", "    _arguments -C \"${globals[@]}\" '1:command:->command' '*::argument:->argument'",
            "    case $state in", "        command) _describe command commands ;;", "        argument)",
            "            case $words[1] in",
        ]
        for row in rows {
            var parts = row.flags.flatMap(zshFlag)
            let (words, takesFiles) = operand(row)
            if !words.isEmpty {
                parts.append(quoted("1:word:(\(words.joined(separator: " ")))"))
                if takesFiles { parts.append("'2:file:_files'") }
            } else if takesFiles {
                parts.append("'*:file:_files'")
            }
            lines.append(
                "                \(row.name.rawValue)) _arguments \"${globals[@]}\""
                    + parts.map { " \\\n                    \($0)" }.joined() + " ;;")
        }
        lines += ["            esac ;;", "    esac", "}", "_chatbridge \"$@\""]
        return lines.joined(separator: "\n") + "\n"
    }

    private func zshFlag(_ flag: CommandFlag) -> [String] {
        var about = ""
        for character in flag.summary {
            if "[]:\\".contains(character) { about += "\\" }
            about.append(character)
        }
        guard let name = flag.valueName else {
            return ["--\(flag.name)"].map { quoted("\($0)[\(about)]") }
                + (flag.short.map { [quoted("-\($0)[\(about)]")] } ?? [])
        }
        let action =
            switch Value(name) {
            case .files: "_files"
            case .directories: "_files -/"
            case .words(let words): "(\(words.joined(separator: " ")))"
            case .free: ""
            }
        let isRepeatable = flag.summary.contains("(repeatable)")
        return [quoted("\(isRepeatable ? "*" : "")--\(flag.name)=[\(about)]:\(name):\(action)")]
    }

    // MARK: - fish

    private var fish: String {
        var lines = [
            "# fish completion of chatbridge; made by \"chatbridge completion fish\"", "complete -c chatbridge -f",
        ]
        let names = rows.map(\.name.rawValue).joined(separator: " ")
        for row in rows {
            lines.append(
                "complete -c chatbridge -n \(quoted("not __fish_seen_subcommand_from \(names)")) "
                    + "-a \(row.name.rawValue) -d \(quoted(row.summary))")
        }
        for flag in globals { lines.append(fishFlag(flag, nil)) }
        for row in rows {
            lines += row.flags.map { fishFlag($0, row) }
            let (words, takesFiles) = operand(row)
            let condition = quoted("__fish_seen_subcommand_from \(row.name.rawValue)")
            if !words.isEmpty {
                lines.append("complete -c chatbridge -n \(condition) -a \(quoted(words.joined(separator: " ")))")
            }
            if takesFiles { lines.append("complete -c chatbridge -n \(condition) -F") }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private func fishFlag(_ flag: CommandFlag, _ row: CommandRow?) -> String {
        var text = "complete -c chatbridge"
        if let row { text += " -n \(quoted("__fish_seen_subcommand_from \(row.name.rawValue)"))" }
        if let short = flag.short { text += " -s \(short)" }
        text += " -l \(flag.name)"
        if let name = flag.valueName {
            switch Value(name) {
            case .files: text += " -r -F"
            case .directories: text += " -x -a '(__fish_complete_directories)'"
            case .words(let words): text += " -x -a \(quoted(words.joined(separator: " ")))"
            case .free: text += " -x"
            }
        }
        return text + " -d \(quoted(flag.summary))"
    }

    /// In single quotes, for all three shells.
    private func quoted(_ text: String) -> String { "'\(text.replacing("'", with: "'\\''"))'" }
}
