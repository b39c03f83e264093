import BridgeCore
import BridgeTypes
import ChatModel
import Configuration
import Transport

/// Reads the configuration again while the bridge runs. A bad one changes nothing; a good one is applied by difference.
///
/// Confined to the loop.
final class ConfigurationReload {
    /// Reads the configuration from where it came from at the start.
    typealias Reading = @Sendable () -> Result<Configuration, ConfigurationError>

    enum Outcome: Equatable {
        case applied(ConfigurationChange)
        /// Every problem as a line; the configuration before stays in force.
        case refused([String])
        /// The bridge has no configuration file, or is stopping.
        case impossible
    }

    /// What became of the last readings.
    struct Standing: Equatable {
        /// When the configuration in force was read; at first, the start.
        var succeededAt: ChatTimestamp
        /// The reading after it; nil: there was none, or it succeeded too.
        var refusal: Refusal?
    }

    struct Refusal: Equatable {
        var at: ChatTimestamp
        /// Each with its place in the file.
        var problems: [String]

        /// The first one, and how many there are.
        var sentence: String {
            (problems.first ?? "") + (problems.count > 1 ? ", and \(problems.count - 1) more" : "")
        }
    }

    private(set) var current: Configuration
    private(set) var standing: Standing
    private let instanceID: String
    private let environment: ConfigurationEnvironment
    private let journal: UploadJournal
    private let log: Logger
    private let reread: Reading?

    init(
        _ current: Configuration, instanceID: String, environment: ConfigurationEnvironment, journal: UploadJournal,
        log: Logger, reread: Reading?, now: ChatTimestamp
    ) {
        self.current = current
        standing = Standing(succeededAt: now)
        self.instanceID = instanceID
        self.environment = environment
        self.journal = journal
        self.log = log
        self.reread = reread
    }

    /// Reads and applies, and says in the log and to the service manager what became of it. Certificates are read again
    /// in any case.
    @discardableResult
    func run(_ transport: Transport) -> Outcome {
        guard let manager = (transport.delegate as? ConnectionRouter)?.serviceManager else { return read(transport) }
        return manager.reload { read(transport) }
    }

    private func read(_ transport: Transport) -> Outcome {
        let now = Now(transport).wall
        transport.bridgeDriver?.reloadCertificates(transport)
        guard let reread, let driver = transport.bridgeDriver, driver.bridge.isRunning else { return .impossible }
        switch reread() {
        case .failure(let error): return refuse(error.problems.map(\.description), now)
        case .success(let read):
            let change = ConfigurationChange(from: current, to: read)
            do {
                let plan = try BridgePlan(
                    change.result, instanceID: instanceID, environment: environment, journal: journal, log: log)
                driver.reload(
                    plan, reconnecting: Set(change.reconnectedRooms), backends: change.changedBackends(from: current),
                    transport)
            } catch {
                return refuse([error.description], now)
            }
            current = change.result
            standing = Standing(succeededAt: now)
            report(change)
            return .applied(change)
        }
    }

    private func refuse(_ problems: [String], _ now: ChatTimestamp) -> Outcome {
        standing.refusal = Refusal(at: now, problems: problems)
        for problem in problems {
            log.error("reload-refused", "the configuration is as it was: \(problem)")
        }
        return .refused(problems)
    }

    private func report(_ change: ConfigurationChange) {
        for key in change.deferredKeys {
            log.warn("reload-deferred", "this key is as it was until a restart", ["key": LogValue(key)])
        }
        let changes = change.lists.filter { !$0.names.isEmpty }.map { ([$0.title] + $0.names).joined(separator: " ") }
        log.info(
            "reloaded", change.isEmpty ? "the configuration is the same" : "another configuration is in force",
            ["changes": LogValue(changes.joined(separator: "; "))])
    }
}
