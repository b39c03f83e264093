import BridgeTypes
import Configuration
import Glibc

/// The commands that run until they are stopped: `run`, `demo` and `studio`.
enum ServiceCommands {
    typealias Output = (String) -> Void

    // MARK: - run

    static func run(_ options: GlobalOptions, environment: ConfigurationEnvironment, errors: Output) async -> Int32 {
        let loaded: LoadedConfiguration
        let request = options.request()
        do {
            loaded = try ConfigurationLoader.load(request, from: environment)
        } catch {
            let log = ConfigurationLoader.readablePart(request, from: environment).configuration.log
            let sink = try? DescriptorLogSink.open(log, color: options.color, variables: environment.variables)
            let warnings = UnknownVariable.all(in: environment, path: request.path).map(\.sentence)
            tell(
                error.problems.map(\.description) + warnings,
                ([error.description] + warnings.map { "warning: \($0)" }).joined(separator: "\n"), sink, errors)
            return ExitCode.configuration
        }
        let reread: ConfigurationReload.Reading = {
            do throws(ConfigurationError) {
                return .success(try ConfigurationLoader.load(request, from: environment).configuration)
            } catch {
                return .failure(error)
            }
        }
        let unknown = UnknownVariable.all(in: environment, path: loaded.path)
        return await serve(
            loaded.configuration, options, environment, unknown: unknown, errors: errors, reread: reread
        ) { _ in }
    }

    /// Runs a bridge until it is stopped.
    static func serve(
        _ configuration: Configuration, _ options: GlobalOptions, _ environment: ConfigurationEnvironment,
        unknown: [UnknownVariable] = [], errors: Output, reread: ConfigurationReload.Reading? = nil,
        observe: @escaping @Sendable (BridgeNote) -> Void = { _ in },
        started: (BridgeService) -> Void
    ) async -> Int32 {
        let identity = InstanceIdentity.of(configuration.server)
        let sink: DescriptorLogSink
        do {
            sink = try DescriptorLogSink.open(
                configuration.log, color: options.color, variables: environment.variables,
                instance: InstanceIdentity.shown(configuration.server, identity.value))
        } catch {
            errors("chatbridge: \(error)\n")
            return ExitCode.configuration
        }
        let log = Logger(subsystem: .main, configuration: configuration.log, sink: sink)
        let notes = NoteLog(sink: sink, configuration: configuration.log)
        warn(identity, log)
        for variable in unknown {
            log.warn("variable-unknown", variable.sentence, ["variable": LogValue(variable.name)])
        }
        // An erasure writes the database anew by way of a temporary file, for which a container has no other place.
        setenv("SQLITE_TMPDIR", configuration.server.stateDirectory, 0)
        do {
            let service = try await BridgeService.start(
                configuration, instanceID: identity.value, environment: environment, log: log,
                stopsOnSignals: true, reread: reread,
                note: { note in
                    notes(note)
                    observe(note)
                })
            for address in service.addresses {
                log.info("listening", "IRC clients can connect", ["address": LogValue(address)])
            }
            for address in service.httpAddresses {
                log.info("listening-http", "HTTP is served", ["address": LogValue(address)])
            }
            started(service)
            if let failure = await service.waitUntilStopped() {
                log.error("store-incomplete", failure)
                return ExitCode.inputOutput
            }
            log.info("stopped", "everything is closed")
            return ExitCode.ok
        } catch {
            tell(["\(error)"], "chatbridge: \(error)", sink, errors)
            return ExitCode.unavailable
        }
    }

    /// Tells why there is no start: a person as `text`, and a log in its own form, each reason in a line.
    private static func tell(_ reasons: [String], _ text: String, _ sink: DescriptorLogSink?, _ errors: Output) {
        if let sink, !sink.isForPeople {
            let log = Logger(subsystem: .main, configuration: .standard, sink: sink)
            for reason in reasons { log.error("start-failed", reason) }
            if sink.isStandardError { return }
        }
        errors(text + "\n")
    }

    private static func warn(_ identity: PersistentValue<String>, _ log: Logger) {
        if case .unsaved(_, let why) = identity {
            log.warn(
                "instance-id-not-kept",
                "cannot store the instance id; after a restart IRC users have new ids upstream",
                ["reason": LogValue(why)])
        }
    }
}
