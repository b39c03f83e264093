import BridgeCore
import ChatModel
import Configuration
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
    /// Where HTTP is served, as bound.
    let httpAddresses: [SocketAddress]
    private let store: StoreDriver?
    private let loop: NetworkLoop
    private let ended: AsyncStream<Void>

    /// Opens the store, the listeners and the rooms' links.
    ///
    /// - Parameters:
    ///   - stopsOnSignals: the process is this service's alone.
    ///   - note: called on the loop for everything that the operator, or the demo, should know.
    static func start(
        _ configuration: Configuration, instanceID: String, surroundings: ConfigurationSurroundings, log: Logger,
        stopsOnSignals: Bool = false, note: @escaping @Sendable (BridgeNote) -> Void
    ) async throws(StartError) -> BridgeService {
        ProcessSignals.ignoreBrokenPipes()
        ProcessSignals.ignoreFileSizeLimit()
        ProcessLimits.raiseOpenFiles()
        let settings: BridgeSettings
        let proxies = HTTPProxyRules(environment: surroundings.variables)
        let plans = BackendPlan.plans(configuration, environmentProxies: proxies)
        let journal = UploadJournal(stateDirectory: configuration.server.stateDirectory)
        do throws(HTTPURLError) {
            var made = try BridgeSettings(configuration, instanceID: instanceID, environmentProxies: proxies)
            made.media = mediaSettings(configuration, journal, log)
            settings = made
        } catch {
            throw StartError(description: "a room's URL cannot be used: \(error.sentence)")
        }
        let roomCount = settings.rooms.count + (settings.template == nil ? 0 : settings.limits.templateRooms)
        if let open = ProcessLimits.openFiles, open < settings.limits.maxClients + roomCount + 32 {
            log.warn(
                "few-descriptors", "the process may not open as many files as limits.max_clients needs",
                ["open-files": LogValue(open), "max-clients": LogValue(settings.limits.maxClients)])
        }
        if configuration.identity.registration != .off, configuration.storage.place == .memory {
            log.warn(
                "registration-without-store",
                "nobody can make an account: nothing outlasts this process (url = \"memory:\")")
        }
        for room in configuration.rooms where room.tls.isInsecure && room.url?.isSecure == true {
            log.warn(
                "upstream-insecure",
                "nothing of the server's certificate is checked: anybody in between can read along",
                ["room": LogValue(room.name)])
        }
        let upstreamTLS = PerRoom(configuration, rooms: settings.rooms) { $0.tls.settings() }
        let (ended, end) = AsyncStream<Void>.makeStream()
        do {
            let secrets = UpstreamSecrets(configuration, rooms: settings.rooms, surroundings: surroundings)
            let accountSecrets = AccountSecrets(sources: plans.map(\.source), surroundings: surroundings)
            let places = try configuration.listeners.map { listener throws(StartError) in
                try Self.listenOptions(
                    listener, asksForCertificates: configuration.accounts.contains { !$0.certificates.isEmpty })
            }
            // Before anybody can say anything that would have to be kept.
            let stored = try StoreDriver.open(
                configuration.storage, stateDirectory: configuration.server.stateDirectory)
            let store = stored?.driver
            if let store, let aside = stored?.movedAside {
                log.error(
                    "store-damaged",
                    "the database was damaged: it is set aside, and nothing is known of what was said before",
                    ["path": LogValue(store.path), "moved-to": LogValue(aside)])
            }
            if let store, let reason = stored?.aloneBecause {
                log.warn(
                    "store-alone",
                    "the database is open for this process alone, no other can look into it until the next start: \(reason)",
                    ["path": LogValue(store.path)])
            }
            let loop = try NetworkLoop.start(name: "network")
            let (addresses, httpAddresses) = try await loop.run { transport throws(TransportError) in
                let bridge = Bridge(
                    settings: settings, stored: stored?.state, now: BridgeDriver.now(transport),
                    random: AnyRandomNumberGenerator(BufferedSystemRandom()))
                let backends = BackendDriver(
                    loop: loop, names: plans.map(\.settings.name), places: plans.map(\.place),
                    store: TokenStore(stateDirectory: configuration.server.stateDirectory),
                    secrets: { accountSecrets.read($0) })
                let driver = BridgeDriver(
                    bridge: bridge, loop: loop, sendQueueBytes: configuration.limits.sendqBytes,
                    upstreamTLS: { upstreamTLS[bridge.ownLogin(of: $0)?.room ?? $0] }, backends: backends,
                    store: store,
                    credentials: { id in
                        guard let own = bridge.ownLogin(of: id) else { return secrets.read(id) }
                        return secrets.read(account: own.account, in: own.room)
                    }, note: note, stopped: { end.finish() })
                let server = HTTPServer(limits: httpLimits(configuration))
                driver.media = settings.media.map { media in
                    MediaRoutes(
                        media, origins: configuration.listeners.flatMap(\.origins),
                        store: MediaStore(
                            stateDirectory: configuration.server.stateDirectory,
                            maxBytes: configuration.media.maxBytes, retention: configuration.media.retention),
                        journal: journal, backends: backends, bridge: driver, loop: loop, note: note)
                }
                let others: [any LoopTenant] = [backends.client, backends.files]
                transport.delegate = LoopHouse(
                    bridge: driver, httpServer: server, others: others + (driver.media.map { [$0] } ?? []))
                // Whoever is let in is told when it ends.
                if stopsOnSignals { try stopOnSignals(log, transport) }
                var addresses: [SocketAddress] = []
                var listeners: [(id: ListenerID, listener: ClientListener)] = []
                var ports: [ListenerID: Int] = [:]
                for (options, listener) in zip(places, configuration.listeners) {
                    let (id, address) = try transport.listen(options)
                    listeners.append((id, ClientListener(listener, serverName: configuration.server.name)))
                    ports[id] = address.port
                    addresses += transport.addresses(of: id)
                }
                ClientListener.leadToTLS(&listeners, configuration.listeners, ports: ports)
                var httpAddresses: [SocketAddress] = []
                for http in configuration.http {
                    let endpoint = http.bind.endpoint
                    var hosts = http.hosts
                    // A proxy in front passes on the name by which people ask.
                    if http.serve.contains(.media), let url = configuration.media.publicURL,
                        http.bind.isLoopback || !hosts.isEmpty
                    {
                        hosts.append(url.host)
                    }
                    let site = HTTPSite(
                        hosts: HTTPHostRule(hosts: hosts, isLoopback: http.bind.isLoopback),
                        routes: http.serve.flatMap { service in
                            switch service {
                            case .health: HealthRoutes.routes(bridge: bridge) { store?.condition ?? .sound }
                            case .media: driver.media?.routes ?? []
                            }
                        }, proxies: http.proxies)
                    httpAddresses += try server.listen(
                        ListenOptions(host: endpoint.host, port: endpoint.port), site: site, transport: transport)
                }
                store?.start(on: loop)
                driver.start(
                    transport,
                    listeners: Dictionary(listeners.map { ($0, $1) }, uniquingKeysWith: { first, _ in first })
                )
                return (addresses, httpAddresses)
            }
            return BridgeService(
                addresses: addresses, httpAddresses: httpAddresses, store: store, loop: loop, ended: ended)
        } catch {
            throw StartError(description: "\(error)")
        }
    }

    /// Nil where no files are served.
    private static func mediaSettings(
        _ configuration: Configuration, _ journal: UploadJournal, _ log: Logger
    ) -> MediaSettings? {
        guard let url = configuration.media.publicURL else { return nil }
        let key = MediaKey.load(directory: configuration.server.stateDirectory)
        if case .forgotten(_, let why) = key {
            log.warn(
                "media-key-forgotten", "the key of links cannot be kept: those of today open no more after a restart",
                ["reason": LogValue(why)])
        }
        let links = MediaLinks(
            base: url.description, key: key.key, lifetime: configuration.media.linkLifetime)
        return MediaSettings(
            links: links, maxUploadBytes: configuration.media.maxUploadBytes, uploads: journal.load())
    }

    private static func httpLimits(_ configuration: Configuration) -> HTTPServerLimits {
        var limits = HTTPServerLimits()
        if configuration.media.publicURL != nil {
            // Each route has its own, and says in its own way what is too long for it.
            limits.maxBodyBytes = .max / 2
        }
        return limits
    }

    private static func listenOptions(
        _ listener: ListenerConfiguration, asksForCertificates: Bool
    ) throws(StartError) -> ListenOptions {
        let bind = listener.bind
        guard bind.isUnixSocket else {
            var options = ListenOptions(host: bind.endpoint.host, port: bind.endpoint.port)
            options.tls = listener.tlsSettings(asksForCertificates: asksForCertificates)
            options.proxies = listener.announcingProxies
            return options
        }
        var group: UInt32?
        if let name = listener.group, !name.isEmpty {
            guard let number = UInt32(name) ?? SystemGroups.number(of: name) else {
                throw StartError(description: "\(bind): there is no group \"\(name)\"")
            }
            group = number
        }
        var options = ListenOptions(
            .unix(path: bind.endpoint.host, mode: listener.mode ?? ListenerConfiguration.defaultMode, group: group))
        options.proxies = listener.announcingProxies
        return options
    }

    /// SIGTERM and SIGINT stop in order; a second one ends the process at once. SIGHUP reads the certificates again.
    private static func stopOnSignals(_ log: Logger, _ transport: Transport) throws(TransportError) {
        var signals = 0
        try transport.watchSignals([SIGTERM, SIGINT, SIGHUP]) { signal, transport in
            if signal == SIGHUP {
                log.info("certificates-reread", "reading the listeners' certificates again")
                (transport.delegate as? LoopHouse)?.bridge.reloadCertificates(transport)
                return
            }
            signals += 1
            guard signals == 1 else { _exit(1) }
            log.info("stopping", "stopping on a signal", ["signal": LogValue(Int64(signal))])
            (transport.delegate as? LoopHouse)?.bridge.shutdown(transport)
        }
    }

    /// Stops in order, as on SIGTERM.
    func shutdown() {
        loop.enqueue { ($0.delegate as? LoopHouse)?.bridge.shutdown($0) }
    }

    /// Returns when a shutdown is complete, the loop has ended and the store is closed.
    ///
    /// - Returns: what the operator must know when not everything is certainly kept, as a sentence.
    @discardableResult
    func waitUntilStopped() async -> String? {
        for await _ in ended {}
        // Until now supervisors could be told that the end is near.
        loop.enqueue { ($0.delegate as? LoopHouse)?.httpServer.close($0) }
        // The last lines are queued; the loop sends what it can at once when it stops.
        loop.stop()
        loop.waitUntilStopped()
        return store?.close()
    }
}
