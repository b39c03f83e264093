import BridgeCore
import BridgeTypes
import Configuration
import Glibc
import HTTPProtocol
import Transport

/// `chatbridge check --connect`: opens each room's link as `run` does, with the same bridge, and tells how far it comes;
/// and the links of accounts' own log-ins, without waiting for their clients.
///
/// The bridge has no listeners and no store, and a state directory of its own: tokens of a running bridge stay its own.
enum ConnectCheck {
    /// Longest time for all rooms: the slowest link has 10 s each for connecting, handshake, readiness and history.
    static let patience: Duration = .seconds(90)
    /// How long a room of which nothing was understood yet is listened to.
    static let listening: Duration = .seconds(1)

    static func run(
        _ global: GlobalOptions, _ options: CheckOptions, environment: ConfigurationEnvironment,
        output: OfflineCommands.Output, errors: OfflineCommands.Output
    ) async -> Int32 {
        var configuration: Configuration
        do {
            let loaded = try ConfigurationLoader.load(global.request(), from: environment)
            configuration = loaded.configuration
            OfflineCommands.warnOfVariables(environment, loaded.path, errors)
        } catch {
            errors(error.description + "\n")
            OfflineCommands.warnOfVariables(environment, global.configPath, errors)
            return ExitCode.configuration
        }
        if let name = options.room {
            guard configuration.rooms.contains(where: { $0.name == name && !$0.isTemplate }) else {
                let names = configuration.rooms.filter { !$0.isTemplate }.map(\.name)
                let hint = NearestName.hint(for: name, among: names)
                errors("chatbridge: there is no room \"\(name)\" in [[rooms]]\(hint)\n")
                return ExitCode.usage
            }
            configuration.rooms.removeAll { $0.name != name }
        }
        let reports: [ConnectReport]
        do throws(StartError) {
            reports = try await Self.reports(configuration, environment)
        } catch {
            errors("chatbridge: \(error)\n")
            return ExitCode.unavailable
        }
        let isGood = reports.allSatisfy(\.isGood)
        if options.json {
            output("{\"ok\":\(isGood),\"rooms\":[\(reports.map(\.json).joined(separator: ","))]}\n")
        } else {
            output(reports.map(\.text).joined(separator: "\n"))
            if configuration.rooms.contains(where: \.isTemplate) {
                output("\nroom *: opens rooms at JOIN, so there is nothing to connect to now\n")
            }
        }
        return isGood ? ExitCode.ok : ExitCode.unavailable
    }

    /// The reports of all rooms but the template.
    static func reports(
        _ written: Configuration, _ environment: ConfigurationEnvironment
    ) async throws(StartError) -> [ConnectReport] {
        // In a container the state directory may be all that can be written.
        let places = [getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp", written.server.stateDirectory]
        var made: String?
        for place in places where made == nil { made = temporaryDirectory(in: place) }
        guard let directory = made else {
            throw StartError(
                description: "cannot create a directory for the check in \(places.joined(separator: " or ")): "
                    + "\(String(cString: strerror(errno))); TMPDIR says where")
        }
        defer { remove(directory) }
        let configuration = written.linksAlone(stateDirectory: directory)
        let links = links(configuration, written, environment)
        guard !links.isEmpty else { return [] }
        let journal = UploadJournal(stateDirectory: directory)
        let log = Logger(subsystem: .main, configuration: configuration.log, sink: NoLog())
        let plan = try BridgePlan(
            configuration, instanceID: "check", environment: environment, journal: journal, log: log)
        let (outcomes, outcome) = AsyncStream<[ConnectReport]>.makeStream()
        do {
            ProcessSignals.ignoreBrokenPipes()
            let loop = try NetworkLoop.start(name: "network")
            await loop.run { transport in
                let (router, _) = plan.router(
                    stored: nil, store: nil, journal: journal, loop: loop, transport, note: { _ in }, stopped: {})
                let watch = ConnectWatch(
                    links, router.bridge.bridge.linkProgress,
                    listen: { end(after: listening, loop) },
                    finished: { reports in
                        outcome.yield(reports)
                        outcome.finish()
                    })
                router.turnEnded = { [unowned router] in watch.look(router.bridge, $0) }
                router.patienceEnded = { [unowned router] in watch.giveUp(router.bridge, $0) }
                transport.attach(router)
                router.bridge.start(transport, listeners: [:])
            }
            let timer = end(after: patience, loop)
            defer {
                timer.cancel()
                loop.stop()
                loop.waitUntilStopped()
            }
            for await reports in outcomes { return reports }
            return []
        } catch {
            throw StartError(description: "\(error)")
        }
    }

    @discardableResult
    private static func end(after pause: Duration, _ loop: NetworkLoop) -> Task<Void, any Error> {
        Task {
            try await Task.sleep(for: pause)
            loop.enqueue { ($0.delegate as? ConnectionRouter)?.patienceEnded($0) }
        }
    }

    /// By the names of the links.
    private static func links(
        _ configuration: Configuration, _ written: Configuration, _ environment: ConfigurationEnvironment
    ) -> [String: ConnectLink] {
        let proxies = HTTPProxyRules(environment: environment.variables)
        var links: [String: ConnectLink] = [:]
        for room in configuration.rooms {
            guard let url = room.url else { continue }
            var link = ConnectLink(room: room.name, url: url.description(showing: room.upstreamRoom))
            if let target = try? HTTPURL(parsing: url.filled(room: room.upstreamRoom).text),
                case .proxy = room.proxy.rules(environment: proxies).route(to: target)
            {
                link.isProxied = true
            }
            links[room.name] = link
        }
        for account in written.accounts {
            for (login, room) in written.ownLogins(of: account) {
                let isOther = (try? written.dialect(of: room)).map { room.hasOneVoice($0) } ?? false
                let name = login.linkName(account: account.name)
                links[name]?.room = room.name
                links[name]?.login = .init(account: account.name, person: login.person, isOther: isOther)
            }
        }
        return links
    }

    // MARK: - The directory

    private static func temporaryDirectory(in parent: String) -> String? {
        var template = Array("\(parent)/chatbridge-check-XXXXXX".utf8CString)
        return template.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
        }
    }

    /// Tokens are the only files in it.
    private static func remove(_ directory: String) {
        for folder in [TokenStore(stateDirectory: directory).directory, directory] {
            if let entries = opendir(folder) {
                while let entry = readdir(entries) {
                    let name = withUnsafePointer(to: &entry.pointee.d_name) {
                        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                    }
                    unlink("\(folder)/\(name)")
                }
                closedir(entries)
            }
            rmdir(folder)
        }
    }
}

/// Keeps nothing: the report says everything.
private struct NoLog: LogSink {
    func write(
        _ level: LogLevel, _ subsystem: LogSubsystem, _ event: String, _ message: String,
        _ metadata: [(key: String, value: LogValue)]
    ) {}
}
