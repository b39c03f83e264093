import BridgeTypes
import Configuration
import Digests

/// When output is coloured.
enum ColorChoice: String, CaseIterable, Sendable {
    case auto, always, never

    /// Whether to colour output that goes to a terminal or not. Source: no-color.org; term(7) for `dumb`.
    func isColored(isTerminal: Bool, variables: [String: String]) -> Bool {
        switch self {
        case .always: true
        case .never: false
        case .auto: isTerminal && (variables["NO_COLOR"] ?? "").isEmpty && variables["TERM"] != "dumb"
        }
    }
}

/// Flags that every command takes.
struct GlobalOptions: Equatable, Sendable {
    var configPath: String?
    /// As typed, in order; checked when the configuration is loaded.
    var listen: [String] = []
    var stateDirectory: String?
    var logLevel: LogLevel?
    var color = ColorChoice.auto

    /// The settings in these flags.
    func request(
        needsRooms: Bool = true, storage: StoragePlace = StorageConfiguration().place
    ) -> ConfigurationRequest {
        ConfigurationRequest(
            path: configPath, listen: listen, stateDirectory: stateDirectory, logLevel: logLevel?.rawValue,
            needsRooms: needsRooms, storage: storage)
    }
}

enum CertOptions: Equatable, Sendable {
    /// How long a certificate may be valid, in days: a hundred years.
    static let maxDays = 36_500

    /// No names: this machine's.
    case selfSigned(names: [String], directory: String, days: Int)
    case fingerprint(file: String)
}

struct CheckOptions: Equatable, Sendable {
    var print = false
    var json = false
    /// Connect to the backends.
    var connect = false
    /// A file with frames to decode; `-` for standard input.
    var frame: String?
    /// A file with events to encode; `-` for standard input.
    var event: String?
    /// A name in `[[rooms]]`: for its dialect, or the only one to connect.
    var room: String?
}

/// The command of a command line.
enum Invocation: Equatable, Sendable {
    case run(GlobalOptions)
    case demo(GlobalOptions)
    /// `port` nil: the studio's own choice; `database` nil: in memory.
    case studio(GlobalOptions, port: UInt16?, database: String?)
    case check(GlobalOptions, CheckOptions)
    case learn(LearnOptions)
    case config(GlobalOptions, ConfigOptions)
    case completion(CompletionShell)
    case man
    case cert(CertOptions)
    case hashPassword(iterations: Int)
    /// `socket` nil: the configuration's.
    case live(GlobalOptions, LiveCommand, socket: String?)
    /// `-` is standard input.
    case inspectToken(GlobalOptions, file: String)
    /// A mirror's name.
    case testMirror(GlobalOptions, String)
    case version
    case help(CommandName?)
    /// `only`: one case, from 1; nil: all of them and the report.
    case autobahnClient(url: String, agent: String, only: Int?)
    case autobahnServer(port: UInt16)
    case docTables
}

/// A command line that makes no sense: a sentence for standard error; exit with ``ExitCode/usage``.
struct UsageError: Error, Equatable, CustomStringConvertible {
    var message: String

    var description: String { "chatbridge: \(message)\nTry \"chatbridge help\".\n" }
}

/// From arguments to an ``Invocation``, by ``CommandTable``.
///
/// Flags may stand before and behind the command, as `--flag value` or `--flag=value`; `--` ends them. The last of a
/// repeated flag counts, except `--listen`, which adds up.
enum CommandLineParser {
    /// - Parameter arguments: without the program's own name.
    static func parse(_ arguments: [String]) throws(UsageError) -> Invocation {
        let split = try words(arguments)
        let command: CommandRow
        if let word = split.command {
            let name = try commandName(word)
            guard let row = CommandTable.row(name) else { throw unknownCommand(word) }
            command = row
        } else if let row = CommandTable.row(.run) {
            command = row
        } else {
            throw UsageError(message: "there is no default command")
        }

        if split.flags.contains(where: { $0.name == "help" }) {
            return .help(split.command == nil ? nil : command.name)
        }
        if split.flags.contains(where: { $0.name == "version" }) { return .version }

        for flag in split.flags
        where !(CommandTable.globalFlags + command.flags).contains(where: { $0.name == flag.name }) {
            throw UsageError(message: "\"\(command.name.rawValue)\" has no --\(flag.name)")
        }
        if command.operandName == nil || split.operands.count > command.maxOperands, let extra = split.operands.last {
            throw UsageError(message: "\"\(extra)\" is too much: \"\(command.name.rawValue)\" takes no such argument")
        }

        let options = try globalOptions(split.flags)
        if let live = try liveCommand(command.name, split) {
            return .live(options, live, socket: split.value(of: "socket"))
        }
        switch command.name {
        case .run: return .run(options)
        case .demo: return .demo(options)
        case .studio:
            return .studio(options, port: try port(split), database: split.value(of: "database"))
        case .check:
            return .check(options, try checkOptions(split))
        case .learn: return .learn(try learnOptions(split))
        case .completion: return .completion(try shell(split.operands.first))
        case .man: return .man
        case .config: return .config(options, try configOptions(split.operands))
        case .cert: return .cert(try certOptions(split))
        case .hashPassword:
            let range = SCRAMVerifier.iterationRange
            let number = try number(split, "iterations", in: range) { text in
                "--iterations \"\(text)\" is not a number from \(range.lowerBound) to \(range.upperBound)"
            }
            return .hashPassword(iterations: number ?? SCRAMVerifier.defaultIterations)
        case .mirrors: return .testMirror(options, try mirror(split.operands))
        case .status, .reload, .rooms, .clients, .tail, .say, .history, .export, .backup, .forget, .drain:
            throw UsageError(message: "\"\(command.name.rawValue)\" is about a running bridge")
        case .token: return .inspectToken(options, file: try tokenFile(split))
        case .version: return .version
        case .help:
            return .help(try split.operands.first.map { word throws(UsageError) in try commandName(word) })
        case .autobahnClient:
            guard let url = split.operands.first else {
                throw UsageError(message: "\"autobahn-client\" needs the URL of a fuzzing server")
            }
            let only = try number(split, "case", in: 1...Int.max) {
                "--case \"\($0)\" is not the number of a case, from 1"
            }
            return .autobahnClient(url: url, agent: split.value(of: "agent") ?? "chatbridge", only: only)
        case .docTables: return .docTables
        case .autobahnServer: return .autobahnServer(port: try port(split) ?? 0)
        }
    }

    private static func shell(_ word: String?) throws(UsageError) -> CompletionShell {
        if let shell = word.flatMap(CompletionShell.init(rawValue:)) { return shell }
        let hint = word.map { NearestName.hint(for: $0, among: CompletionShell.allCases.map(\.rawValue)) } ?? ""
        throw UsageError(message: "\"completion\" needs a shell: bash, zsh or fish\(hint)")
    }

    /// The name in `mirrors test NAME`.
    private static func mirror(_ operands: [String]) throws(UsageError) -> String {
        guard operands.first == "test" else {
            let hint = NearestName.hint(for: operands.first ?? "", among: ["test"])
            throw UsageError(message: "\"mirrors\" has no \"\(operands.first ?? "")\"\(hint); there is test NAME")
        }
        guard operands.count == 2 else {
            throw UsageError(message: "\"mirrors test\" needs a mirror: mirrors test NAME")
        }
        return operands[1]
    }

    private static func commandName(_ word: String) throws(UsageError) -> CommandName {
        guard let name = CommandName(rawValue: word) else { throw unknownCommand(word) }
        return name
    }

    private static func unknownCommand(_ word: String) -> UsageError {
        let hint = NearestName.hint(for: word, among: CommandTable.visibleRows.map(\.name.rawValue))
        return UsageError(message: "unknown command \"\(word)\"\(hint)")
    }

    /// The value of a flag as a number; nil without the flag.
    static func number(
        _ words: Words, _ flag: String, in range: ClosedRange<Int>, otherwise message: (String) -> String
    ) throws(UsageError) -> Int? {
        guard let text = words.value(of: flag) else { return nil }
        guard let number = Int(text), range.contains(number) else { throw UsageError(message: message(text)) }
        return number
    }

    private static func port(_ words: Words) throws(UsageError) -> UInt16? {
        try number(words, "port", in: 0...65_535) { "--port \"\($0)\" is not a port (0 to 65535)" }.map { UInt16($0) }
    }

    private static func checkOptions(_ split: Words) throws(UsageError) -> CheckOptions {
        let options = CheckOptions(
            print: split.value(of: "print") != nil, json: split.value(of: "json") != nil,
            connect: split.value(of: "connect") != nil,
            frame: split.value(of: "frame"), event: split.value(of: "event"), room: split.value(of: "room"))
        if options.frame != nil, options.event != nil {
            throw UsageError(message: "--frame and --event exclude each other")
        }
        if options.connect, options.frame != nil || options.event != nil || options.print {
            throw UsageError(message: "--connect goes with --room and --json only")
        }
        if options.room != nil, options.frame == nil, options.event == nil, !options.connect {
            throw UsageError(message: "--room goes with --connect, --frame or --event")
        }
        return options
    }

    private static func learnOptions(_ split: Words) throws(UsageError) -> LearnOptions {
        var options = LearnOptions(
            url: split.operands.first, frames: split.value(of: "frames"), proxy: split.value(of: "proxy"),
            sends: split.flags.filter { $0.name == "send" }.map(\.value))
        options.tokenFile = split.value(of: "token-file")
        for flag in split.flags where flag.name == "header" {
            guard let header = LearnHeader(flag.value) else {
                throw UsageError(message: "--header \"\(flag.value)\" has not the form NAME: VALUE")
            }
            options.headers.append(header)
        }
        let isOwnConnection = options.tokenFile != nil || !options.headers.isEmpty || !options.sends.isEmpty
        options.name = split.value(of: "name") ?? options.name
        options.directory = split.value(of: "out") ?? options.directory
        guard options.url == nil || options.frames == nil else {
            throw UsageError(message: "\"learn\" takes a URL or --frames, not both")
        }
        guard options.url != nil || options.frames != nil else {
            throw UsageError(
                message: "\"learn\" needs the URL of a socket, as wss://chat.example.com/ws, or --frames FILE")
        }
        if options.url == nil, options.proxy != nil || isOwnConnection {
            throw UsageError(message: "--proxy, --send, --header and --token-file go with a URL")
        }
        if options.proxy != nil, isOwnConnection {
            throw UsageError(message: "--send, --header and --token-file go without --proxy: there the app logs in")
        }
        guard options.name.utf8.allSatisfy({ Self.nameBytes.contains($0) }), (1...40).contains(options.name.utf8.count)
        else { throw UsageError(message: "--name \"\(options.name)\" has other characters than a-z 0-9 _ -") }
        return options
    }

    private static let nameBytes = Set("abcdefghijklmnopqrstuvwxyz0123456789_-".utf8)

    private static func configOptions(_ operands: [String]) throws(UsageError) -> ConfigOptions {
        let known = "there are default, show and explain KEY"
        guard let word = operands.first else { throw UsageError(message: "\"config\" needs a word: \(known)") }
        if operands.count > 1, word != "explain" { throw UsageError(message: "\"\(operands[1])\" is too much") }
        switch word {
        case "default": return .standard
        case "show": return .show
        case "explain":
            guard operands.count == 2 else {
                throw UsageError(message: "\"config explain\" needs a key, as limits.sendq")
            }
            return .explain(key: operands[1])
        default:
            let hint = NearestName.hint(for: word, among: ConfigOptions.words)
            throw UsageError(message: "\"config\" has no \"\(word)\"\(hint); \(known)")
        }
    }

    private static func certOptions(_ split: Words) throws(UsageError) -> CertOptions {
        switch split.operands.first {
        case "self-signed":
            if split.operands.count > 1 {
                throw UsageError(message: "\"\(split.operands[1])\" is too much: names are written --name HOST")
            }
            let days = try number(split, "days", in: 1...CertOptions.maxDays) {
                "--days \"\($0)\" is not a number from 1 to \(CertOptions.maxDays)"
            }
            let names = split.flags.filter { $0.name == "name" }.map(\.value)
            return .selfSigned(names: names, directory: split.value(of: "out") ?? ".", days: days ?? 365)
        case "fingerprint":
            guard split.operands.count == 2, let file = split.operands.last else {
                throw UsageError(message: "\"cert fingerprint\" needs a file: cert fingerprint FILE")
            }
            return .fingerprint(file: file)
        case let word?:
            let hint = NearestName.hint(for: word, among: ["self-signed", "fingerprint"])
            throw UsageError(message: "\"cert\" has no \"\(word)\"\(hint); there are self-signed and fingerprint FILE")
        case nil:
            throw UsageError(message: "\"cert\" needs a word: self-signed, or fingerprint FILE")
        }
    }

    private static func tokenFile(_ split: Words) throws(UsageError) -> String {
        guard split.operands.first == "inspect" else {
            let word = split.operands.first ?? ""
            let hint = NearestName.hint(for: word, among: ["inspect"])
            throw UsageError(
                message: word.isEmpty
                    ? "\"token\" needs a word: inspect FILE"
                    : "\"token\" has no \"\(word)\"\(hint); there is inspect FILE")
        }
        return split.operands.count > 1 ? split.operands[1] : "-"
    }

    // MARK: - Words

    struct Words {
        var command: String?
        var operands: [String] = []
        /// In order; the value of a flag without one is empty.
        var flags: [(name: String, value: String)] = []

        func value(of name: String) -> String? { flags.last { $0.name == name }?.value }
    }

    private static func words(_ arguments: [String]) throws(UsageError) -> Words {
        let all = CommandTable.globalFlags + CommandTable.rows.flatMap(\.flags)
        var result = Words()
        var rest = arguments[...]
        var flagsEnded = false
        while let word = rest.popFirst() {
            if flagsEnded || !word.hasPrefix("-") || word == "-" {
                if result.command == nil { result.command = word } else { result.operands.append(word) }
                continue
            }
            if word == "--" {
                flagsEnded = true
                continue
            }
            let isLong = word.hasPrefix("--")
            let equals = isLong ? word.firstIndex(of: "=") : nil
            let typed = word[..<(equals ?? word.endIndex)]
            let name = String(typed.drop { $0 == "-" })
            let known = all.first { isLong ? $0.name == name : name.count == 1 && $0.short == name.first }
            guard let known else {
                let hint = NearestName.hint(for: name, among: all.map(\.name)).replacing(
                    "\"", with: "\"--", maxReplacements: 1)
                throw UsageError(message: "unknown flag \"\(typed)\"\(hint)")
            }
            guard let valueName = known.valueName else {
                if equals != nil { throw UsageError(message: "--\(known.name) takes no value") }
                result.flags.append((known.name, ""))
                continue
            }
            if let equals {
                result.flags.append((known.name, String(word[word.index(after: equals)...])))
            } else if let value = rest.popFirst() {
                result.flags.append((known.name, value))
            } else {
                throw UsageError(message: "--\(known.name) needs a value: --\(known.name) \(valueName)")
            }
        }
        return result
    }

    private static func globalOptions(_ flags: [(name: String, value: String)]) throws(UsageError) -> GlobalOptions {
        var options = GlobalOptions()
        for (name, value) in flags {
            switch name {
            case "config":
                if value.isEmpty { throw UsageError(message: "--config needs the name of a file") }
                options.configPath = value
            case "listen": options.listen.append(value)
            case "state-dir": options.stateDirectory = value
            case "log-level": options.logLevel = try choice(value, flag: name)
            case "color": options.color = try choice(value, flag: name)
            default: break
            }
        }
        return options
    }

    private static func choice<Choice: CaseIterable & RawRepresentable>(
        _ text: String, flag: String
    ) throws(UsageError) -> Choice where Choice.RawValue == String {
        if let choice = Choice(rawValue: text) { return choice }
        let names = Choice.allCases.map(\.rawValue)
        throw UsageError(
            message: "--\(flag) \"\(text)\" is none of \(names.joined(separator: ", "))"
                + NearestName.hint(for: text, among: names))
    }
}
