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

/// Settings of a bridge before its loop runs; its methods in `BridgePlan+Parts` build the parts, on the loop.
struct BridgePlan: Sendable {
    let configuration: Configuration
    let settings: BridgeSettings
    private let backends: [BackendPlan]
    private let secrets: UpstreamSecrets
    let accountSecrets: AccountSecrets
    /// In the order of the configuration's listeners.
    let places: [ListenOptions]
    /// In the same order.
    let folders: [WebFolder?]
    let serviceManager: ServiceManagerSettings
    /// Names of handed over sockets that no listener names.
    private let unusedSockets: [String]
    /// The tokens of HTTP listeners, in the order of the configuration.
    let httpTokens: [SecretBytes?]
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
        secrets = UpstreamSecrets(configuration, environment: environment)
        let used = configuration.listeners.map(\.bind.sockets) + configuration.http.map(\.bind.sockets)
        let names = Set(used.compactMap { $0?.name })
        unusedSockets = Set((environment.sockets ?? []).map(\.name)).subtracting(names).sorted()
        serviceManager = ServiceManagerSettings(variables: environment.variables, processID: getpid())
        accountSecrets = AccountSecrets(
            sources: Dictionary(
                backends.lazy.filter(\.settings.authenticates).map { ($0.settings.name, $0.source) },
                uniquingKeysWith: { $1 }),
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

    // MARK: - On the loop

    /// Of the backends that something may be asked of beside the sockets.
    var backendPlaces: [String: BackendPlace] {
        Dictionary(
            backends.lazy.filter(\.isAsked).map { ($0.settings.name, $0.place) }, uniquingKeysWith: { $1 })
    }

    /// How the links of a bridge's rooms show who they are, and how they are secured.
    func access(
        to bridge: Bridge
    ) -> (
        credentials: (RoomID) -> Result<UpstreamCredentials, UpstreamCredentialsFailure>,
        tls: (RoomID) -> TLSClientSettings?
    ) {
        let secrets = secrets
        return (
            { id in
                let own = bridge.ownLogin(of: id)
                guard let room = bridge.settings(of: own?.room ?? id)?.name else {
                    return .failure(UpstreamCredentialsFailure("the room is closed"))
                }
                return own.map { secrets.read(account: $0.account, in: room) } ?? secrets.read(room)
            },
            { id in
                let room = bridge.settings(of: bridge.ownLogin(of: id)?.room ?? id)
                return room.flatMap { secrets.rooms[$0.name] }?.tls.settings()
            }
        )
    }

    /// Tells the driver of backends where they are.
    func equip(_ driver: BackendDriver, names: [String]) {
        let accountSecrets = accountSecrets
        driver.take(names: names, places: backendPlaces, secrets: { accountSecrets.read($0) })
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
