import BridgeCore
import BridgeTypes
import ChatModel
import Configuration
import Digests
import Glibc
import HTTPProtocol
import IRCServer
import Rooms
import Transport
import WireBytes

// The bridge and what stands beside it, built on the loop.

extension BridgePlan {
    /// The bridge and the other clients of its loop.
    func router(
        stored: StoredState?, store: StoreDriver?, reload: ConfigurationReload? = nil, journal: UploadJournal,
        loop: NetworkLoop, _ transport: Transport, note: @escaping (BridgeNote) -> Void,
        stopped: @escaping () -> Void
    ) -> (router: ConnectionRouter, board: StatusBoard?) {
        let bridge = Bridge(
            settings: settings, stored: stored, now: Now(transport),
            random: AnyRandomNumberGenerator(BufferedSystemRandom()))
        let accountSecrets = accountSecrets
        let board = board(store, reload)
        let noted = { [unowned transport] (entry: BridgeNote) -> Void in
            note(entry)
            board?.noted(entry, at: ChatTimestamp(milliseconds: transport.wallClockMilliseconds))
        }
        let backendDriver = BackendDriver(
            loop: loop, names: bridge.backendNames, places: backendPlaces,
            store: TokenStore(stateDirectory: configuration.server.stateDirectory),
            secrets: { accountSecrets.read($0) })
        let (credentials, upstreamTLS) = access(to: bridge)
        let driver = BridgeDriver(
            bridge: bridge, loop: loop, sendQueueBytes: configuration.limits.sendQueueBytes,
            upstreamTLS: upstreamTLS, backends: backendDriver, store: store, credentials: credentials, note: noted,
            stopped: stopped)
        let media = settings.media.map { media in
            MediaRoutes(
                media, origins: configuration.listeners.flatMap(\.origins),
                store: MediaStore(
                    stateDirectory: configuration.server.stateDirectory, maxBytes: configuration.media.maxBytes,
                    retention: configuration.media.retention),
                journal: journal, backends: backendDriver, host: driver, loop: loop, note: noted)
        }
        if let media { driver.serve(media) }
        board?.attach(driver, now: transport.now)
        let mirrorService = MirrorService(
            driver, store: store, stored: stored, loop: loop, installation: settings.instanceID,
            note: noted)
        mirrorService.take(mirrors, now: transport.now)
        driver.serve(mirrorService)
        let troubles = TroubleLog(note: noted)
        troubles.attach(driver, now: transport.now)
        let others: [any LoopClient] =
            [
                backendDriver.client, backendDriver.files, mirrorService.client, mirrorService.networks, mirrorService,
                troubles,
            ]
            + (board.map { [$0] } ?? [])
        let service = AdminService(
            driver, store: store, reload: reload, loop: loop, instanceID: settings.instanceID)
        let router = ConnectionRouter(
            bridge: driver, httpServer: HTTPServer(limits: Self.httpLimits(configuration)),
            serviceManager: manager(of: bridge, note), admin: AdminServer(service, note: noted),
            others: others + (media.map { [$0] } ?? []))
        return (router, board)
    }

    /// Nil: no listener serves the status.
    private func board(_ store: StoreDriver?, _ reload: ConfigurationReload?) -> StatusBoard? {
        guard configuration.http.contains(where: { $0.serve.contains(.status) }) else { return nil }
        let warnings = WarningCollector()
        warn(Logger(subsystem: .main, configuration: .standard, sink: warnings))
        return StatusBoard(warnings: warnings.texts, store: store, reload: reload)
    }

    /// Nil where no service manager wants to know.
    private func manager(of bridge: Bridge, _ note: @escaping (BridgeNote) -> Void) -> ServiceManagerClient? {
        ServiceManagerClient(
            serviceManager, isStopping: { !bridge.isRunning },
            status: { ServiceStatus(rooms: bridge.roomStates, clients: bridge.clientCount).text },
            failed: { errno in
                note(
                    BridgeNote(
                        .warn, "manager-unreachable", "the service manager cannot be told of the bridge's state",
                        ["errno": String(errno)]))
            })
    }

    /// Opens the IRC listeners.
    func listen(
        _ transport: Transport
    ) throws(TransportError) -> (listeners: [ListenerID: ClientListener], addresses: [SocketAddress]) {
        var addresses: [SocketAddress] = []
        var listeners: [(id: ListenerID, listener: ClientListener)] = []
        var ports: [ListenerID: Int] = [:]
        for (index, listener) in configuration.listeners.enumerated() {
            let (id, address) = try transport.listen(places[index])
            var client = ClientListener(listener, serverName: configuration.server.name)
            client.folder = folders[index]
            listeners.append((id, client))
            ports[id] = address.port
            addresses += transport.addresses(of: id)
        }
        ClientListener.leadToTLS(&listeners, configuration.listeners, ports: ports)
        return (Dictionary(listeners.map { ($0, $1) }, uniquingKeysWith: { first, _ in first }), addresses)
    }

    /// Opens the admin socket, where one is configured. The relay works without it, so a failure is a warning.
    func serveAdmin(
        _ server: AdminServer?, _ environment: ConfigurationEnvironment, _ log: Logger, _ transport: Transport
    ) {
        let place = configuration.admin.path(
            stateDirectory: configuration.server.stateDirectory, environment: environment)
        guard let server, let path = place else { return }
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        do throws(TransportError) {
            guard folder.isEmpty || StateFile.makeDirectory(folder) else {
                throw .systemCallFailed(call: "mkdir", errno: errno)
            }
            try server.listen(path: path, mode: configuration.admin.mode ?? 0o600, transport)
        } catch .addressInUse {
            log.warn(
                "admin-in-use", "another process answers at the admin socket; this one has none",
                ["path": LogValue(path)])
        } catch {
            log.warn(
                "admin-closed", "the admin socket cannot be opened: \(error)", ["path": LogValue(path)])
        }
    }

    /// Opens the HTTP listeners.
    func serveHTTP(
        _ router: ConnectionRouter, _ board: StatusBoard?, store: StoreDriver?, reload: ConfigurationReload,
        _ transport: Transport
    ) throws(TransportError) -> [SocketAddress] {
        var addresses: [SocketAddress] = []
        for (http, token) in zip(configuration.http, httpTokens) {
            let endpoint = http.bind.endpoint
            var hosts = http.hosts
            // A proxy in front passes on the name by which people ask.
            if http.serve.contains(.media), let url = configuration.media.publicURL,
                http.bind.isLoopback || !hosts.isEmpty
            {
                hosts.append(url.host)
            }
            let site = HTTPSite(
                label: http.bind.description, hosts: HTTPHostRule(hosts: hosts, isLoopback: http.bind.isLoopback),
                routes: http.serve.flatMap { service in
                    switch service {
                    case .health: HealthRoutes.routes(bridge: router.bridge.bridge) { store?.condition ?? .sound }
                    case .media: router.bridge.media?.routes ?? []
                    case .hooks: router.bridge.mirrors.map { [$0.hookRoute] } ?? []
                    case .metrics:
                        StatusRoutes.metrics(
                            router.bridge, store: store, reload: reload, token: token,
                            hasRoomLabels: http.hasRoomLabels)
                    case .status: board.map { StatusRoutes.status($0, token: token) } ?? []
                    }
                }, proxies: http.proxies)
            var options =
                http.bind.sockets.map { ListenOptions(.descriptors($0.found.map(\.descriptor))) }
                ?? ListenOptions(host: endpoint.host, port: endpoint.port)
            options.tls = http.tlsSettings()
            addresses += try router.httpServer.listen(options, site: site, transport: transport)
        }
        return addresses
    }

    private static func httpLimits(_ configuration: Configuration) -> HTTPServerLimits {
        var limits = HTTPServerLimits()
        if configuration.media.publicURL != nil {
            // Each route has its own limit and its own answer to longer bodies.
            limits.maxBodyBytes = .max / 2
        }
        return limits
    }
}
