import BridgeCore
import BridgeTypes
import ChatModel
import Configuration
import Digests
import Glibc
import HTTPProtocol
import IRCServer
import Media
import Rooms
import Transport
import Upstream

/// Settings of a bridge before its loop runs; its methods build the parts, on the loop.
struct BridgePlan: Sendable {
    private let configuration: Configuration
    let settings: BridgeSettings
    private let backends: [BackendPlan]
    private let upstreamTLS: PerRoom<TLSClientSettings>
    private let secrets: UpstreamSecrets
    private let accountSecrets: AccountSecrets
    /// In the order of the configuration's listeners.
    private let places: [ListenOptions]
    /// In the same order.
    private let folders: [WebFolder?]
    private let serviceManager: ServiceManagerSettings
    /// Names of handed over sockets that no listener names.
    private let unusedSockets: [String]
    /// The tokens of HTTP listeners, in the order of the configuration.
    private let httpTokens: [SecretBytes?]
    let mirrors: [MirrorPlan]

    init(
        _ configuration: Configuration, instanceID: String, environment: ConfigurationEnvironment,
        journal: UploadJournal, log: Logger
    ) throws(StartError) {
        self.configuration = configuration
        let proxies = HTTPProxyRules(environment: environment.variables)
        backends = BackendPlan.plans(configuration, environmentProxies: proxies)
        do throws(HTTPURLError) {
            var made = try BridgeSettings(configuration, instanceID: instanceID, environmentProxies: proxies)
            made.media = Self.mediaSettings(configuration, journal, log)
            settings = made
        } catch {
            throw StartError(description: "a room's URL cannot be used: \(error.sentence)")
        }
        upstreamTLS = PerRoom(configuration) { $0.tls.settings() }
        secrets = UpstreamSecrets(configuration, environment: environment)
        let used = configuration.listeners.map(\.bind.sockets) + configuration.http.map(\.bind.sockets)
        let names = Set(used.compactMap { $0?.name })
        unusedSockets = Set((environment.sockets ?? []).map(\.name)).subtracting(names).sorted()
        serviceManager = ServiceManagerSettings(variables: environment.variables, processID: getpid())
        accountSecrets = AccountSecrets(
            sources: Dictionary(backends.map { ($0.settings.name, $0.source) }, uniquingKeysWith: { $1 }),
            environment: environment)
        let asksForCertificates = configuration.accounts.contains { !$0.certificates.isEmpty }
        places = try configuration.listeners.map { listener throws(StartError) in
            try Self.listenOptions(listener, asksForCertificates: asksForCertificates)
        }
        folders = try configuration.listeners.map { listener throws(StartError) in
            listener.webRoot.isEmpty ? nil : try WebFolder(listener.webRoot)
        }
        mirrors = try configuration.mirrors.map { mirror throws(StartError) in
            try MirrorPlan(mirror, installation: instanceID, environment: environment)
        }
        httpTokens = try configuration.http.map { http throws(StartError) in
            guard let source = http.token else { return nil }
            do throws(InterpolationError) {
                return SecretBytes(try source.read(environment).revealed.utf8)
            } catch {
                throw StartError(description: "the token of \(http.bind) cannot be read: \(error.message)")
            }
        }
    }

    /// Descriptors beside clients and rooms: listeners, the store, logs, calls to backends, files in transfer.
    private static let otherDescriptors = 32

    /// Logs warnings that do not prevent a start.
    func warn(_ log: Logger) {
        let roomCount = settings.rooms.count + (settings.template == nil ? 0 : settings.limits.templateRooms)
        let needed = settings.limits.maxClients + roomCount + Self.otherDescriptors
        if let open = ProcessLimits.openFiles, open < needed {
            log.warn(
                "few-descriptors",
                "the process may not open as many files as limits.max_clients and the rooms need: allow more "
                    + "(LimitNOFILE= of the unit, ulimit -Hn), or lower limits.max_clients",
                ["open-files": LogValue(open), "needed": LogValue(needed)])
        }
        if !unusedSockets.isEmpty {
            log.warn(
                "socket-unused",
                "the service manager handed over a socket that no listener names: its clients wait in vain",
                ["names": LogValue(unusedSockets.joined(separator: " "))])
        }
        if configuration.identity.registration != .off, configuration.storage.place == .memory {
            log.warn(
                "registration-without-store",
                "registration is off: storage is in memory only (url = \"memory:\")")
        }
        for room in configuration.rooms where room.tls.isInsecure && room.url?.isSecure == true {
            log.warn(
                "upstream-insecure",
                "nothing of the server's certificate is checked: anybody in between can read along",
                ["room": LogValue(room.name)])
        }
        for mirror in mirrors where mirror.network?.tls?.verifiesPeer == false {
            log.warn(
                "upstream-insecure",
                "nothing of the server's certificate is checked: anybody in between can read along",
                ["mirror": LogValue(mirror.name)])
        }
    }

    /// Nil: no listener serves the status.
    private func board(_ store: StoreDriver?, _ reload: ConfigurationReload?) -> StatusBoard? {
        guard configuration.http.contains(where: { $0.serve.contains(.status) }) else { return nil }
        let warnings = WarningCollector()
        warn(Logger(subsystem: .main, configuration: .standard, sink: warnings))
        return StatusBoard(warnings: warnings.texts, store: store, reload: reload)
    }

    // MARK: - On the loop

    /// The bridge and the other clients of its loop.
    func router(
        stored: StoredState?, store: StoreDriver?, reload: ConfigurationReload? = nil, journal: UploadJournal,
        loop: NetworkLoop, _ transport: Transport, note: @escaping (BridgeNote) -> Void,
        stopped: @escaping () -> Void
    ) -> (router: ConnectionRouter, media: MediaRoutes?) {
        let bridge = Bridge(
            settings: settings, stored: stored, now: BridgeDriver.now(transport),
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
                journal: journal, backends: backendDriver, bridge: driver, loop: loop, note: noted)
        }
        if let media { driver.serve(media) }
        if let board { driver.serve(board, now: transport.now) }
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
        return (router, media)
    }

    private var backendPlaces: [String: BackendPlace] {
        Dictionary(backends.map { ($0.settings.name, $0.place) }, uniquingKeysWith: { $1 })
    }

    /// How the links of a bridge's rooms show who they are, and how they are secured.
    func access(
        to bridge: Bridge
    ) -> (
        credentials: (RoomID) -> Result<UpstreamCredentials, UpstreamCredentialsFailure>,
        tls: (RoomID) -> TLSClientSettings?
    ) {
        let (upstreamTLS, secrets) = (upstreamTLS, secrets)
        return (
            { id in
                let own = bridge.ownLogin(of: id)
                guard let room = bridge.settings(of: own?.room ?? id)?.name else {
                    return .failure(UpstreamCredentialsFailure("the room is closed"))
                }
                return own.map { secrets.read(account: $0.account, in: room) } ?? secrets.read(room)
            },
            { id in bridge.settings(of: bridge.ownLogin(of: id)?.room ?? id).flatMap { upstreamTLS[$0.name] } }
        )
    }

    /// Tells the driver of backends where they are.
    func equip(_ driver: BackendDriver, names: [String]) {
        let accountSecrets = accountSecrets
        driver.take(names: names, places: backendPlaces, secrets: { accountSecrets.read($0) })
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
        _ router: ConnectionRouter, _ media: MediaRoutes?, store: StoreDriver?, reload: ConfigurationReload,
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
                    case .media: media?.routes ?? []
                    case .hooks: router.bridge.mirrors.map { [$0.hookRoute] } ?? []
                    case .metrics:
                        StatusRoutes.metrics(
                            router.bridge, store: store, reload: reload, token: token,
                            hasRoomLabels: http.hasRoomLabels)
                    case .status:
                        router.bridge.board.map { StatusRoutes.status($0, router.bridge, token: token) } ?? []
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

    // MARK: - From the configuration

    /// Nil where no files are served.
    private static func mediaSettings(
        _ configuration: Configuration, _ journal: UploadJournal, _ log: Logger
    ) -> MediaSettings? {
        guard let url = configuration.media.publicURL else { return nil }
        let key = MediaKey.load(directory: configuration.server.stateDirectory)
        if case .unsaved(_, let why) = key {
            log.warn(
                "media-key-forgotten", "cannot store the key that signs links; a restart invalidates them",
                ["reason": LogValue(why)])
        }
        let links = SignedFileLinks(
            base: url.description, key: key.value, lifetime: configuration.media.linkLifetime)
        return MediaSettings(
            links: links, maxUploadBytes: configuration.media.maxUploadBytes, uploads: journal.load())
    }

    private static func httpLimits(_ configuration: Configuration) -> HTTPServerLimits {
        var limits = HTTPServerLimits()
        if configuration.media.publicURL != nil {
            // Each route has its own limit and its own answer to longer bodies.
            limits.maxBodyBytes = .max / 2
        }
        return limits
    }

    private static func listenOptions(
        _ listener: ListenerConfiguration, asksForCertificates: Bool
    ) throws(StartError) -> ListenOptions {
        let bind = listener.bind
        guard bind.isUnixSocket else {
            var options =
                bind.sockets.map { ListenOptions(.descriptors($0.found.map(\.descriptor))) }
                ?? ListenOptions(host: bind.endpoint.host, port: bind.endpoint.port)
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
}
