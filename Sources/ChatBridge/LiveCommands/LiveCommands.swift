import Configuration
import Glibc
import JSONText
import Transport
import Upstream
import WireBytes

/// The commands at a running bridge: they ask at its admin socket, and write what it answers.
struct LiveCommands {
    typealias Output = (String) -> Void

    let screen: TextScreen
    let output: Output
    let errors: Output
    /// Standard error is a terminal, so progress can be shown there.
    var showsProgress = false
    /// Asks a question; nil: there is no terminal that could answer.
    var confirms: ((String) -> Bool)?

    /// - Parameter socket: the path of the socket; nil: the configuration's.
    static func run(
        _ command: LiveCommand, _ options: GlobalOptions, socket: String?, environment: ConfigurationEnvironment,
        output: @escaping Output, errors: @escaping Output
    ) -> Int32 {
        let (paths, problems) = socket.map { ([$0], []) } ?? Self.paths(options, environment)
        let commands = LiveCommands(
            screen: .ofStandardOutput(options.color, variables: environment.variables), output: output, errors: errors,
            showsProgress: Machine.isTerminal(STDERR_FILENO),
            confirms: !Machine.isTerminal(STDIN_FILENO)
                ? nil
                : { question in
                    errors(question)
                    return ["y", "yes"].contains(readLine()?.lowercased())
                })
        do throws(AdminClientError) {
            return try commands.run(command, AdminClient.connect(paths))
        } catch {
            errors("chatbridge: \(error)\n")
            // They may be why it was looked for elsewhere.
            if case .noBridge = error, !problems.isEmpty { errors(ConfigurationError(problems).description + "\n") }
            return command == .status(.ready) ? ExitCode.notReady : error.exitCode
        }
    }

    /// The folders of a packaged service.
    static let packagedFolders = ["/run/chatbridge", "/var/lib/chatbridge"]

    /// Where a bridge of that configuration answers: its own place, then those of a packaged service, which an
    /// administrator's shell knows nothing of. A configuration with errors is no obstacle: the bridge runs with another.
    static func paths(
        _ options: GlobalOptions, _ environment: ConfigurationEnvironment, packaged: [String] = packagedFolders
    ) -> (paths: [String], problems: [ConfigurationProblem]) {
        let (configuration, problems) = ConfigurationLoader.readablePart(
            options.request(needsRooms: false), from: environment)
        let admin = configuration.admin
        guard
            let own = admin.path(stateDirectory: configuration.server.stateDirectory, environment: environment)
        else { return ([], problems) }
        guard !admin.socket.hasPrefix("/"), options.stateDirectory == nil else { return ([own], problems) }
        let packaged = packaged.map { "\($0)/\(admin.socket)" }
        return ([own] + packaged.filter { $0 != own && access($0, F_OK) == 0 }, problems)
    }

    func run(_ command: LiveCommand, _ client: AdminClient) throws(AdminClientError) -> Int32 {
        switch command {
        case .status(let form): return try status(form, client)
        case .reload: try reload(client)
        case .rooms(let isJSON):
            let status = try ask(client, .status)
            write(isJSON ? Self.jsonLines(status["rooms"]) : StatusScreen(status: status).roomLines(screen))
        case .clients(let isJSON):
            let status = try ask(client, .status)
            write(isJSON ? Self.jsonLines(status["clients"]) : StatusScreen(status: status).clientLines(screen))
        case .changeRoom(let request, let room): try changeRoom(request, room, client)
        case .kick(let id):
            _ = try ask(client, .kick, [.init("id", .integer(id))])
            write(["client \(id) is disconnected"])
        case .mirrors: write(StatusScreen(status: try ask(client, .status)).mirrorLines(screen))
        case .tail(let room, let isJSON, let isRaw): try tail(room, isJSON: isJSON, isRaw: isRaw, client)
        case .say(let room, let text):
            let done = try ask(client, .say, [.init("room", .string(room)), .init("text", .string(text))])
            let name = TextScreen.clean(done["room"]?.string ?? room)
            write([done["queued"]?.bool == true ? "queued: \(name) has no link now" : "said in \(name)"])
        case .history(let room, let since, let limit, let isJSON):
            try history(room, since, limit, isJSON: isJSON, client)
        case .export(let room): try export(room, client)
        case .backup(let file): return try backup(file, client)
        case .forget(let user, let isAccount, let isConfirmed):
            return try forget(user, isAccount: isAccount, isConfirmed: isConfirmed, client)
        case .drain:
            _ = try ask(client, .drain)
            write(["the bridge stops: it sends what waits, then closes"])
        }
        return ExitCode.ok
    }

    // MARK: - Asking and writing

    func ask(
        _ client: AdminClient, _ request: AdminRequest, _ arguments: [JSONValue.Member] = [],
        item: (JSONValue) -> Void = { _ in }
    ) throws(AdminClientError) -> JSONValue {
        let call: AdminCall
        do throws(AdminFailure) {
            call = try AdminCall(request, arguments)
        } catch {
            throw .failed(error)
        }
        return try client.ask(call, item: item)
    }

    /// Each element of a list as a line.
    private static func jsonLines(_ list: JSONValue?) -> [String] { (list?.array ?? []).map(\.text) }

    func write(_ lines: [String]) { output(lines.map { $0 + "\n" }.joined()) }

    // MARK: - State

    private static let watchInterval: UInt32 = 1
    /// Answers that are remembered for rates: those of a minute.
    private static let watchMemory = 60

    private func status(_ form: LiveCommand.StatusForm, _ client: AdminClient) throws(AdminClientError) -> Int32 {
        switch form {
        case .ready:
            let readiness = try ask(client, .ready)
            if readiness["ready"]?.bool == true { return ExitCode.ok }
            for reason in readiness["reasons"]?.array ?? [] {
                errors("not ready: \(TextScreen.clean(reason.string ?? ""))\n")
            }
            return ExitCode.notReady
        case .json: output(try ask(client, .status).text + "\n")
        case .screen: write(StatusScreen(status: try ask(client, .status)).lines(screen))
        case .watch:
            var before: [JSONValue] = []
            while true {
                let status = try ask(client, .status)
                // Cursor home, clear to the end: the screen does not flicker.
                if screen.isTerminal { output("\u{1B}[H\u{1B}[J") }
                write(StatusScreen(status: status, earlier: before.first).lines(screen))
                before = before.suffix(Self.watchMemory - 1) + [status]
                sleep(Self.watchInterval)
            }
        }
        return ExitCode.ok
    }

    private func reload(_ client: AdminClient) throws(AdminClientError) {
        let done = try ask(client, .reload) { errors(TextScreen.clean($0["problem"]?.string ?? "") + "\n") }
        write(ReloadText.lines(done))
    }

    private func changeRoom(_ request: AdminRequest, _ room: String, _ client: AdminClient) throws(AdminClientError) {
        let done = try ask(client, request, [.init("room", .string(room))])
        let name = TextScreen.clean(done["room"]?.string ?? room)
        let isChanged = done["changed"]?.bool == true
        let sentence =
            switch (request, done["outcome"]?.string) {
            case (.disable, _): isChanged ? "\(name) is disabled" : "\(name) is disabled already"
            case (.enable, _): isChanged ? "\(name) is enabled" : "\(name) is not disabled"
            case (_, let outcome):
                UpstreamSession.Reopening(rawValue: outcome ?? "")?.sentence(name)
                    ?? "\(name): \(TextScreen.clean(outcome ?? "done"))"
            }
        write([sentence])
    }

    private func forget(
        _ user: String, isAccount: Bool, isConfirmed: Bool, _ client: AdminClient
    ) throws(AdminClientError) -> Int32 {
        let arguments: [JSONValue.Member] = [.init("user", .string(user)), .init("account", .bool(isAccount))]
        if !isConfirmed {
            guard let confirms else {
                throw .failed(AdminFailure(.badRequest, "there is no terminal to confirm it at; --yes does"))
            }
            let person = try ask(client, .forget, arguments)
            guard confirms(ForgetText.question(person)) else {
                write(["nothing was erased"])
                return ExitCode.ok
            }
        }
        write(ForgetText.lines(try ask(client, .forget, arguments + [.init("confirmed", .bool(true))])))
        return ExitCode.ok
    }

    // MARK: - Messages

    private func tail(_ room: String?, isJSON: Bool, isRaw: Bool, _ client: AdminClient) throws(AdminClientError) {
        var arguments: [JSONValue.Member] = []
        if let room { arguments.append(.init("room", .string(room))) }
        if isRaw { arguments.append(.init("raw", .bool(true))) }
        var text = TailText(screen: screen)
        _ = try ask(client, .tail, arguments) { item in
            output((isJSON ? item.text : text.line(item)) + "\n")
        }
    }

    private func history(
        _ room: String, _ since: HistoryStart?, _ limit: Int?, isJSON: Bool, _ client: AdminClient
    ) throws(AdminClientError) {
        var arguments: [JSONValue.Member] = [.init("room", .string(room))]
        if let since {
            arguments.append(.init("since", .integer(since.milliseconds(now: SystemClock.wallMilliseconds()))))
        }
        if let limit { arguments.append(.init("limit", .integer(Int64(limit)))) }
        _ = try ask(client, .history, arguments) { item in
            if isJSON { output(item.text + "\n") } else { write(HistoryText.lines(item, screen)) }
        }
    }

    private func export(_ room: String, _ client: AdminClient) throws(AdminClientError) {
        var progress = ProgressLine(isShown: showsProgress, errors)
        var count = 0
        _ = try ask(client, .export, [.init("room", .string(room))]) { item in
            output(item.text + "\n")
            count += 1
            progress.show(nanoseconds: SystemClock.monotonic().nanoseconds, "\(count) messages")
        }
        progress.end("\(count) message\(count == 1 ? "" : "s") of \(TextScreen.clean(room))")
    }
}

/// One line on a terminal that is written over itself, a few times a second.
struct ProgressLine {
    private let isShown: Bool
    private let write: (String) -> Void
    private var next: Int64 = 0
    private static let interval: Int64 = 100_000_000

    init(isShown: Bool, _ write: @escaping (String) -> Void) {
        self.isShown = isShown
        self.write = write
    }

    mutating func show(nanoseconds: Int64, _ text: @autoclosure () -> String) {
        guard isShown, nanoseconds >= next else { return }
        next = nanoseconds + Self.interval
        write("\r\u{1B}[K\(text())")
    }

    /// The line that stays.
    func end(_ text: String) { if isShown { write("\r\u{1B}[K\(text)\n") } }

    /// `[######......]  52 %`
    static func bar(_ done: Int, of total: Int) -> String {
        let (done, total) = (max(0, min(done, total)), max(1, total))
        let filled = done * 30 / total
        let percent = String(done * 100 / total)
        return "[" + String(repeating: "#", count: filled) + String(repeating: ".", count: 30 - filled) + "] "
            + String(repeating: " ", count: 3 - percent.utf8.count) + percent + " %"
    }
}
