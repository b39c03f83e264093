import Configuration
import DescribedDialects
import IRCServer

/// The commands that need no network: they write text and return an exit code.
///
/// `output` is standard output, `errors` standard error; each gets whole lines, newline included.
enum OfflineCommands {
    typealias Output = (String) -> Void

    static func version(output: Output) -> Int32 {
        output("\(BuildInformation.name) \(BuildInformation.version)\n")
        return ExitCode.ok
    }

    static func help(_ command: CommandName?, output: Output) -> Int32 {
        output(CommandHelp.text(command))
        return ExitCode.ok
    }

    /// The generated parts of pages, each under the name of its place.
    static var documentation: [(name: String, text: String)] {
        IRCSurface.sections.map { ($0.name, $0.text) } + [
            ("configuration-keys", ConfigurationTable.text), ("help", "```\n\(CommandHelp.text(nil))```"),
            ("cli-commands", CommandReference.commands), ("cli-variables", CommandReference.variables),
            ("events", LogEventTable.text), ("metrics", MetricsTable.page),
            ("described-keys", CustomReference.keys), ("described-words", CustomReference.words),
            ("described-events", CustomReference.events), ("described-templates", CustomReference.templates),
        ]
    }

    /// `chatbridge doc-tables`: each table under a line `## NAME`.
    static func docTables(output: Output) -> Int32 {
        for section in documentation { output("## \(section.name)\n\(section.text)\n") }
        return ExitCode.ok
    }

    /// `chatbridge check`: every problem; or, for each room with a described dialect, its confirmation, then
    /// questionable settings after `warning:`, and `ok`.
    ///
    /// - Returns: 0, or ``ExitCode/configuration`` when something is wrong.
    static func check(
        _ global: GlobalOptions, _ options: CheckOptions, environment: ConfigurationEnvironment, output: Output,
        errors: Output
    ) -> Int32 {
        do {
            let isOfFrames = options.frame != nil || options.event != nil
            var request = global.request()
            request.needsSecrets = !isOfFrames
            let loaded = try ConfigurationLoader.load(request, from: environment)
            if isOfFrames {
                return FrameCheck.run(
                    loaded.configuration, options, environment: environment, output: output, errors: errors)
            }
            let text = options.print ? ConfigurationPrinter.text(loaded.configuration) : nil
            let reports = ConfirmationReport.reports(loaded.configuration)
            let warnings =
                UnknownVariable.all(in: environment, path: loaded.path).map(\.sentence)
                + [AccountRoomsReport(loaded.configuration)?.warning].compactMap(\.self)
            if options.json {
                output(
                    json(problems: [], path: loaded.path, reports: reports, warnings: warnings, configuration: text)
                        + "\n")
            } else {
                let lines = reports.map(\.line) + warnings.map { "warning: " + $0 }
                output(text ?? lines.map { $0 + "\n" }.joined() + "ok\n")
            }
            return ExitCode.ok
        } catch {
            if options.json {
                output(json(problems: error.problems, path: global.configPath) + "\n")
            } else {
                errors(error.description + "\n")
                warnOfVariables(environment, global.configPath, errors)
            }
            return ExitCode.configuration
        }
    }

    /// Behind a refusal, which they may be the reason of.
    static func warnOfVariables(_ environment: ConfigurationEnvironment, _ path: String?, _ errors: Output) {
        for variable in UnknownVariable.all(in: environment, path: path) {
            errors("warning: \(variable.sentence)\n")
        }
    }

    /// One object: `ok`, `file`, `problems` (each `at`, `file`, `line`, `column`, `variable` or `flag` as known, and
    /// `message`), `confirmations` (each `room`, `confirmed_by`, `after_a_lost_link`) where there are described dialects,
    /// `warnings` where there are any, and `configuration` as TOML where it was asked for.
    private static func json(
        problems: [ConfigurationProblem], path: String?, reports: [ConfirmationReport] = [],
        warnings: [String] = [], configuration: String? = nil
    ) -> String {
        var members = ["\"ok\":\(problems.isEmpty)"]
        if let path { members.append("\"file\":\(LogText.quoted(path))") }
        members.append("\"problems\":[" + problems.map(object).joined(separator: ",") + "]")
        if !reports.isEmpty { members.append("\"confirmations\":[" + reports.map(object).joined(separator: ",") + "]") }
        if !warnings.isEmpty {
            members.append("\"warnings\":[" + warnings.map(LogText.quoted).joined(separator: ",") + "]")
        }
        if let configuration { members.append("\"configuration\":\(LogText.quoted(configuration))") }
        return "{" + members.joined(separator: ",") + "}"
    }

    private static func object(_ report: ConfirmationReport) -> String {
        "{\"room\":\(LogText.quoted(report.room)),\"confirmed_by\":\(LogText.quoted(report.confirmedBy)),"
            + "\"after_a_lost_link\":\(LogText.quoted(report.afterALostLink))}"
    }

    private static func object(_ problem: ConfigurationProblem) -> String {
        var members = ["\"at\":\(LogText.quoted(problem.origin.description))"]
        switch problem.origin {
        case .file(let path, let line, let column):
            members += ["\"file\":\(LogText.quoted(path))", "\"line\":\(line)", "\"column\":\(column)"]
        case .path(let path): members.append("\"file\":\(LogText.quoted(path))")
        case .environment(let name): members.append("\"variable\":\(LogText.quoted(name))")
        case .flag(let name): members.append("\"flag\":\(LogText.quoted(name))")
        case .builtIn: break
        }
        members.append("\"message\":\(LogText.quoted(problem.message))")
        return "{" + members.joined(separator: ",") + "}"
    }
}
