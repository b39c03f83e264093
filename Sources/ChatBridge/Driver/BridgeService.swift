import BridgeTypes
import Configuration
import Glibc
import Transport

/// A bridge with its loop and listeners, from start to stop.
struct BridgeService {
    /// Where clients can connect, as bound.
    let addresses: [SocketAddress]
    /// Where HTTP is served, as bound.
    let httpAddresses: [SocketAddress]
    private let store: StoreDriver?
    let loop: NetworkLoop
    private let ended: AsyncStream<Void>

    /// Opens the store, the listeners and the rooms' links.
    ///
    /// - Parameters:
    ///   - stopsOnSignals: the process is this service's alone.
    ///   - note: called on the loop for everything that the operator, or the demo, should know.
    ///   - reread: reads the configuration again, for a reload; nil: there is nothing to read.
    static func start(
        _ configuration: Configuration, instanceID: String, environment: ConfigurationEnvironment, log: Logger,
        stopsOnSignals: Bool = false, reread: ConfigurationReload.Reading? = nil,
        note: @escaping @Sendable (BridgeNote) -> Void
    ) async throws(StartError) -> BridgeService {
        ProcessSignals.ignoreBrokenPipes()
        ProcessSignals.ignoreFileSizeLimit()
        ProcessLimits.raiseOpenFiles()
        let journal = UploadJournal(stateDirectory: configuration.server.stateDirectory)
        let plan = try BridgePlan(
            configuration, instanceID: instanceID, environment: environment, journal: journal, log: log)
        plan.warn(log)
        let (ended, end) = AsyncStream<Void>.makeStream()
        do {
            // Before clients can send messages that must be stored.
            let stored = try openStore(configuration, log)
            let loop = try NetworkLoop.start(name: "network")
            let (addresses, httpAddresses) = try await loop.run { transport throws(TransportError) in
                let reload = ConfigurationReload(
                    configuration, instanceID: instanceID, environment: environment, journal: journal, log: log,
                    reread: reread, now: Now(transport).wall)
                let (router, board) = plan.router(
                    stored: stored?.state, store: stored?.driver, reload: reload, journal: journal, loop: loop,
                    transport, note: note, stopped: { end.finish() })
                transport.attach(router)
                // Admitted clients are notified of the end.
                if stopsOnSignals { try stopOnSignals(log, reload, transport) }
                let (listeners, addresses) = try plan.listen(transport)
                let httpAddresses = try plan.serveHTTP(
                    router, board, store: stored?.driver, reload: reload, transport)
                plan.serveAdmin(router.admin, environment, log, transport)
                stored?.driver.start(on: loop)
                router.bridge.start(transport, listeners: listeners)
                return (addresses, httpAddresses)
            }
            return BridgeService(
                addresses: addresses, httpAddresses: httpAddresses, store: stored?.driver, loop: loop, ended: ended)
        } catch let error as TransportError {
            var remedy = ""
            if case .addressInUse = error {
                remedy = ". Stop that program, or listen elsewhere: bind in [[listeners]] and [[http]], or --listen."
            }
            throw StartError(description: "\(error)\(remedy)")
        } catch {
            throw StartError(description: "\(error)")
        }
    }

    private static func openStore(
        _ configuration: Configuration, _ log: Logger
    ) throws(StartError) -> StoreDriver.Opened? {
        let stored = try StoreDriver.open(configuration.storage, stateDirectory: configuration.server.stateDirectory)
        guard let stored else { return nil }
        if let aside = stored.movedAside {
            log.error(
                "store-damaged",
                "the database was damaged: it is set aside, and nothing is known of what was said before",
                ["path": LogValue(stored.driver.path), "moved-to": LogValue(aside)])
        }
        if let reason = stored.driver.exclusiveReason {
            log.warn(
                "store-alone",
                "the database is open for this process alone, no other can look into it until the next start: \(reason)",
                ["path": LogValue(stored.driver.path)])
        }
        return stored
    }

    /// SIGTERM and SIGINT stop in order; a second one ends the process at once. SIGHUP reads the configuration and the
    /// certificates again.
    private static func stopOnSignals(
        _ log: Logger, _ reload: ConfigurationReload, _ transport: Transport
    ) throws(TransportError) {
        var signals = 0
        try transport.watchSignals([SIGTERM, SIGINT, SIGHUP]) { signal, transport in
            if signal == SIGHUP { return _ = reload.run(transport) }
            signals += 1
            guard signals == 1 else { _exit(ExitCode.signalBase + signal) }
            log.info("stopping", "stopping on a signal", ["signal": LogValue(Int64(signal))])
            transport.bridgeDriver?.shutdown(transport)
        }
    }

    /// Stops in order, as on SIGTERM.
    func shutdown() {
        loop.enqueue { $0.bridgeDriver?.shutdown($0) }
    }

    /// Returns when a shutdown is complete, the loop has ended and the store is closed.
    ///
    /// - Returns: a sentence for the operator when some messages may not be stored.
    @discardableResult
    func waitUntilStopped() async -> String? {
        for await _ in ended {}
        // Until now supervisors could read the readiness.
        loop.enqueue {
            ($0.delegate as? ConnectionRouter)?.httpServer.close($0)
            $0.adminServer?.close($0)
        }
        // The last lines are queued; the loop sends as much as it can when it stops.
        loop.stop()
        loop.waitUntilStopped()
        return store?.close()
    }
}
