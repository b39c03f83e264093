import Configuration

/// `chatbridge man`: the manual page, made from ``CommandTable``.
///
/// Source: mdoc(7).
enum ManualPage {
    /// The date of its last change in substance.
    private static let revised = "November 24, 2026"

    /// The variables that it reads, beside those of the configuration's keys.
    static let variables: [(name: String, meaning: String)] = [
        ("CHATBRIDGE_UPSTREAM_URL", "The backend of a single room; enough to run without a file."),
        ("CHATBRIDGE_ROOM", "Its name; default lobby."), ("CHATBRIDGE_DIALECT", "Its dialect; default envelope."),
        ("CHATBRIDGE_TOKEN", "A bearer token for the handshake."),
        ("CHATBRIDGE_TOKEN_FILE", "A file with the token."),
        ("CHATBRIDGE_LISTEN", "Addresses to listen on, separated by commas."),
        ("CHATBRIDGE_PASSWORD_FILE", "A file with the server password."),
        ("CHATBRIDGE__SECTION__KEY", "Any key of the configuration."),
        ("NO_COLOR", "Not empty: no colour."),
    ]

    static var text: String {
        var lines = [
            ".\\\" Made by \"chatbridge man\".", ".Dd \(revised)", ".Dt CHATBRIDGE 1", ".Os", ".Sh NAME",
            ".Nm chatbridge",
            ".Nd relay between WebSocket chat backends and IRC", ".Sh SYNOPSIS", ".Nm", ".Op Ar command",
            ".Op Ar flags", ".Sh DESCRIPTION",
        ]
        lines += sentences(
            "Each room of a chat backend that speaks JSON over WebSocket becomes a channel for IRC clients. "
                + "Without a command, run is meant.")
        lines += [".Sh COMMANDS", ".Bl -tag -width Ds"]
        for row in CommandTable.visibleRows {
            lines.append(".It Cm \(row.name.rawValue)" + (row.operandName.map { " Ar \(macroText($0))" } ?? ""))
            lines += sentences(row.summary.prefix(1).uppercased() + row.summary.dropFirst() + ".")
            if !row.details.isEmpty { lines += sentences(row.details.joined(separator: " ")) }
            if !row.flags.isEmpty { lines += [".Bl -tag -width Ds"] + row.flags.flatMap(flag) + [".El"] }
        }
        lines += [".El", ".Sh FLAGS", "Of every command:", ".Bl -tag -width Ds"]
        lines += CommandTable.globalFlags.flatMap(flag)
        lines += [".El", ".Sh ENVIRONMENT", ".Bl -tag -width Ds"]
        for variable in variables { lines += [".It Ev \(variable.name)"] + sentences(variable.meaning) }
        lines += [".El", ".Sh FILES"]
        lines += [
            "Without", ".Fl \\-config", "the first of these is read:", ".Bl -bullet -compact", ".It",
            ".Pa ./chatbridge.toml", ".It", ".Pa $CONFIGURATION_DIRECTORY/chatbridge.toml", ".It",
            ".Pa /etc/chatbridge/chatbridge.toml", ".El", ".Pp", ".Ic chatbridge config default",
            "prints an example with every key.", ".Sh EXIT STATUS", ".Bl -tag -width Ds",
        ]
        for row in ExitCode.rows { lines += [".It \(row.code)"] + sentences(row.meaning.replacing("`", with: "")) }
        lines += [
            ".El", ".Sh EXAMPLES", "Try it out, without any configuration:", ".Pp", ".Dl $ chatbridge demo", ".Pp",
            "Check a configuration, and whether its backends can be reached:", ".Pp",
            ".Dl $ chatbridge check \\-\\-connect \\-\\-config chatbridge.toml",
        ]
        return lines.joined(separator: "\n") + "\n"
    }

    private static func flag(_ flag: CommandFlag) -> [String] {
        let short = flag.short.map { "\($0) , Fl " } ?? ""
        let value = flag.valueName.map { " Ar \(macroText($0))" } ?? ""
        return [".It Fl \(short)\\-\(flag.name)\(value)"]
            + sentences(flag.summary.prefix(1).uppercased() + flag.summary.dropFirst() + ".")
    }

    /// Longest line of the source.
    private static let width = 78

    /// Lines of text; each sentence begins one.
    private static func sentences(_ text: String) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, line.count + 1 + word.count > width {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
            if let last = word.last, ".?!".contains(last) {
                lines.append(line)
                line = ""
            }
        }
        if !line.isEmpty { lines.append(line) }
        return lines.map(escaped)
    }

    private static func escaped(_ text: String) -> String {
        let text = text.replacing("\\", with: "\\e").replacing("--", with: "\\-\\-")
        return text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" + text : text
    }

    /// Text of a macro's line, where some words have a meaning.
    private static func macroText(_ text: String) -> String {
        text.split(separator: " ").map { "\\&\($0.replacing("-", with: "\\-"))" }.joined(separator: " ")
    }
}
