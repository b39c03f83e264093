import BridgeCore
import Glibc
import HTTPProtocol
import Transport

/// A bridge with its loop and listeners, from start to stop.
struct BridgeService {
    struct StartError: Error, CustomStringConvertible {
        var description: String
    }

    /// Where clients can connect, as bound.
    let addresses: [SocketAddress]
    private let loop: NetworkLoop
    private let ended: AsyncStream<Void>

    /// Opens the listeners and the rooms' links.
    ///
    /// - Parameter note: called on the loop for everything that the operator, or the demo, should know.
    static func start(
        _ configuration: Configuration, instanceID: String, log: Logger, note: @escaping @Sendable (BridgeNote) -> Void
    ) async throws(StartError) -> BridgeService {
        ProcessSignals.ignoreBrokenPipes()
        ProcessLimits.raiseOpenFiles()
        let settings: BridgeSettings
        do throws(HTTPURLError) {
            settings = try BridgeSettings(configuration, instanceID: instanceID)
        } catch {
            throw StartError(description: "a room's URL cannot be used: \(error.sentence)")
        }
        if let open = ProcessLimits.openFiles, open < settings.limits.maxClients + settings.rooms.count + 32 {
            log.warn(
                "few-descriptors", "the process may not open as many files as limits.max_clients needs",
                ["open-files": LogValue(open), "max-clients": LogValue(settings.limits.maxClients)])
        }
        for room in configuration.rooms where room.tls.isInsecure && room.url?.isSecure == true {
            log.warn(
                "upstream-insecure",
                "nothing of the server's certificate is checked: anybody in between can read along",
                ["room": LogValue(room.name)])
        }
        let byName = Dictionary(
            configuration.rooms.map { ($0.name, $0.tls.settings()) }, uniquingKeysWith: { first, _ in first })
        let upstreamTLS = settings.rooms.map { byName[$0.name] ?? UpstreamTLSConfiguration().settings() }
        let (ended, end) = AsyncStream<Void>.makeStream()
        do {
            let loop = try NetworkLoop.start(name: "network")
            let addresses = try await loop.run { transport throws(TransportError) in
                let bridge = Bridge(
                    settings: settings, now: BridgeDriver.now(transport),
                    random: AnyRandomNumberGenerator(BufferedSystemRandom()))
                let driver = BridgeDriver(
                    bridge: bridge, sendQueueBytes: configuration.limits.sendqBytes, upstreamTLS: upstreamTLS,
                    note: note,
                    stopped: { end.finish() })
                transport.delegate = driver
                var addresses: [SocketAddress] = []
                var listeners: [ListenerID] = []
                for listener in configuration.listeners {
                    let endpoint = listener.bind.endpoint
                    var options = ListenOptions(host: endpoint.host, port: endpoint.port)
                    options.tls = listener.tlsSettings()
                    let (id, _) = try transport.listen(options)
                    listeners.append(id)
                    addresses += transport.addresses(of: id)
                }
                driver.start(transport, listeners: listeners)
                return addresses
            }
            return BridgeService(addresses: addresses, loop: loop, ended: ended)
        } catch {
            throw StartError(description: "\(error)")
        }
    }

    /// SIGTERM and SIGINT stop in order; a second one ends the process at once. SIGHUP reads the certificates again.
    func stopOnSignals(_ log: Logger) async throws(StartError) {
        do {
            try await loop.run { transport throws(TransportError) in
                var signals = 0
                try transport.watchSignals([SIGTERM, SIGINT, SIGHUP]) { signal, transport in
                    if signal == SIGHUP {
                        log.info("certificates-reread", "reading the listeners' certificates again")
                        (transport.delegate as? BridgeDriver)?.reloadCertificates(transport)
                        return
                    }
                    signals += 1
                    guard signals == 1 else { _exit(1) }
                    log.info("stopping", "stopping on a signal", ["signal": LogValue(Int64(signal))])
                    (transport.delegate as? BridgeDriver)?.shutdown(transport)
                }
            }
        } catch {
            throw StartError(description: "\(error)")
        }
    }

    /// Stops in order, as on SIGTERM.
    func shutdown() {
        loop.enqueue { ($0.delegate as? BridgeDriver)?.shutdown($0) }
    }

    /// Returns when a shutdown is complete and the loop has ended.
    func waitUntilStopped() async {
        for await _ in ended {}
        // The last lines are queued; the loop sends what it can at once when it stops.
        loop.stop()
        loop.waitUntilStopped()
    }
}
