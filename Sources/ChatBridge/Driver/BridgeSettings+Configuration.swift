import Accounts
import BridgeTypes
import Configuration
import Dialects
import Digests
import HTTPProtocol
import IRCServer
import Identities
import Rooms
import Transport
import Upstream
import WSProtocol

// Maps the configuration to the core's settings.

extension BridgeSettings {
    /// Stands for "never" where a duration may be switched off.
    static let never: Duration = .seconds(100 * 365 * 24 * 60 * 60)

    /// - Parameter environmentProxies: for rooms that name no proxy of their own.
    /// - Throws: a complaint about a URL that passed the configuration's own check.
    init(
        _ configuration: Configuration, instanceID: String, environmentProxies: HTTPProxyRules = .direct
    ) throws(HTTPURLError) {
        var rooms: [RoomSettings] = []
        let mirrored = configuration.mirroredRooms
        for room in configuration.rooms where !room.isTemplate {
            guard var settings = try RoomSettings(room, in: configuration, environmentProxies: environmentProxies)
            else { continue }
            if mirrored.contains(room.name) {
                settings.isMirrored = true
                // What is said there must come in also while no IRC user is there.
                settings.connect = .always
            }
            rooms.append(settings)
        }
        var settings = BridgeSettings(serverName: configuration.server.name, instanceID: instanceID, rooms: rooms)
        settings.casemapping = configuration.server.casemapping
        settings.network = configuration.server.network
        settings.version = BuildInformation.version
        settings.motd =
            configuration.server.motd.isEmpty
            ? []
            : configuration.server.motd.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        settings.password = ServerPassword(configuration.identity.password)
        settings.accounts = configuration.accounts.map { AccountSettings($0, in: configuration) }
        settings.requireLogin = LoginRequirement(configuration.identity.requireLogin)
        settings.registration = RegistrationPolicy(configuration.identity.registration)
        settings.saslMechanisms = configuration.identity.sasl
        settings.nicks = NickSettings(configuration.identity.nicks)
        settings.limits = configuration.limits
        settings.backends = BackendPlan.plans(configuration, environmentProxies: environmentProxies).map(\.settings)
        settings.drain = configuration.server.drain
        settings.prestopDelay = configuration.server.prestopDelay
        settings.notesChatText = configuration.log.messages
        settings.template = configuration.rooms.first(where: \.isTemplate).map {
            RoomTemplate($0, in: configuration, environmentProxies: environmentProxies)
        }
        settings.icon = configuration.server.icon.isEmpty ? nil : configuration.server.icon
        settings.description = configuration.server.description
        settings.registersBeforeConnect = configuration.identity.registrationBeforeConnect
        settings.bearerBackend = configuration.identity.bearer.isEmpty ? nil : configuration.identity.bearer
        settings.rejoins = configuration.identity.rejoin
        settings.gateways = configuration.identity.webirc.compactMap { WebIRCSettings($0) }
        self = settings
    }
}

extension ServerPassword {
    init?(_ password: PasswordVerifier?) {
        switch password {
        case .plain(let secret): self = .plain(SecretBytes(secret.revealed.utf8))
        case .hashed(let verifier): self = .hashed(verifier)
        case nil: return nil
        }
    }
}

extension WebIRCSettings {
    /// Nil for a gateway without a password, which loading refuses.
    init?(_ gateway: WebIRCConfiguration) {
        guard let password = ServerPassword(gateway.password) else { return nil }
        let peers = TrustedPeers(gateway.from)
        self.init(password: password, from: peers.ranges, fromUnix: peers.unix)
    }
}

extension RoomTemplate {
    init(_ room: RoomConfiguration, in configuration: Configuration, environmentProxies: HTTPProxyRules) {
        self.init(backend: room.backendName) { upstreamRoom in
            guard ConfigurationChecks.upstreamRoom(upstreamRoom) == nil else { return nil }
            var one = room
            one.upstreamRoom = upstreamRoom
            return (try? RoomSettings(one, in: configuration, environmentProxies: environmentProxies)) ?? nil
        }
    }
}

extension AccountSettings {
    init(_ account: AccountConfiguration, in configuration: Configuration = Configuration()) {
        self.init(
            name: account.name, password: account.password, certificates: account.certificates,
            rooms: account.rooms.contains(AccountConfiguration.allRooms) ? nil : Set(account.rooms),
            isAdmin: account.isAdmin, receipts: ReceiptPolicy(rawValue: account.receipts.rawValue),
            ownLogins: Dictionary(
                configuration.ownLogins(of: account).compactMap { login, room in
                    guard let dialect = try? configuration.dialect(of: room) else { return nil }
                    let backend =
                        BackendPlan.hasCalls(login, dialect) ? login.backendName(account: account.name) : nil
                    return (
                        login.room,
                        OwnLoginSettings(backend: backend, person: login.person.isEmpty ? nil : login.person)
                    )
                }, uniquingKeysWith: { first, _ in first }),
            mayRelay: account.mayRelay, tokenOwners: account.bearer)
    }
}

extension LoginRequirement {
    init(_ requirement: IdentityConfiguration.RequireLogin) {
        self =
            switch requirement {
            case .never: .never
            case .remote: .remote
            case .always: .always
            }
    }
}

extension RegistrationPolicy {
    init(_ registration: IdentityConfiguration.Registration) {
        self =
            switch registration {
            case .off: .nobody
            case .local: .local
            case .on: .everybody
            }
    }
}

extension NickSettings {
    init(_ nicks: NicksConfiguration) {
        self.init(
            suffix: nicks.suffix, maxBytes: nicks.maxLengthBytes, invalid: nicks.invalid,
            collision: Collision(rawValue: nicks.collision.rawValue) ?? .number, utf8: nicks.utf8)
    }
}

extension RoomSettings {
    /// Nil when the room's dialect is unknown or its options are wrong, which the configuration's own check rules out.
    init?(
        _ room: RoomConfiguration, in configuration: Configuration = Configuration(),
        environmentProxies: HTTPProxyRules = .direct
    ) throws(HTTPURLError) {
        guard let dialect = try? configuration.dialect(of: room), let url = room.url else { return nil }
        var link = LinkSettings(
            name: room.name, backend: room.backendName, dialect: dialect,
            url: try HTTPURL(parsing: url.filled(room: room.upstreamRoom).text), upstreamRoom: room.upstreamRoom,
            subprotocols: room.subprotocols, requiresSubprotocol: room.requiresSubprotocol,
            headers: room.headers.map { ($0.name, $0.value.revealed) },
            authenticates: room.auth.type != .none && room.auth.type != .clientCertificate,
            proxies: room.proxy.rules(environment: environmentProxies), userAgent: room.userAgent,
            connectTimeout: room.connectTimeout, handshakeTimeout: room.handshakeTimeout, ping: room.ping ?? .zero,
            pongTimeout: room.pongTimeout,
            webSocketLimits: WebSocketLimits(maxFrameBytes: room.maxFrameBytes, maxMessageBytes: room.maxMessageBytes),
            // Without a context on the client's side: it would cost 256 KiB a room for few bytes at a time.
            compression: room.compression == .offer ? WebSocketCompression(clientNoContextTakeover: true) : nil,
            backoff: room.backoff.applied(to: dialect.traits.backoff), backoffResetAfter: room.backoff.resetAfter)
        if let codes = room.auth.login.staleCodes, room.auth.type == .login { link.refusalCodes = Set(codes) }
        self.init(
            link, channel: room.channel, topic: room.topic,
            identity: DialectTraits.Identity(rawValue: room.identity.rawValue),
            receipts: ReceiptPolicy(rawValue: room.receipts.rawValue) ?? .marker, memberIdle: room.memberIdle ?? .zero,
            queueMaxMessages: room.queue.maxMessages, queueMaxAge: room.queue.maxAge ?? BridgeSettings.never,
            queueWhenFull: FullQueuePolicy(rawValue: room.queue.whenFull.rawValue) ?? .reject,
            connect: room.connect == .always ? .always : .whileJoined, historyOnJoin: room.historyOnJoin,
            relayNick: room.mode == .relay ? room.relayNick : nil, isRequired: room.isRequired,
            giveUpAfter: room.giveUpAfter)
    }
}

extension LoginSettings {
    /// The login of a backend with this `auth`; nil when it has none.
    ///
    /// - Parameter user: the backend's own `user`, which is as good as one in `auth`.
    init?(_ auth: AuthConfiguration, user: String?, dialect: any Dialect) {
        guard auth.logsIn(user: user, dialect: dialect) else { return nil }
        let login = auth.login
        self.init(
            calls: login.template,
            sendAs: (login.sendAs ?? TokenPlacementConfiguration()).placement(for: dialect.traits),
            refreshBefore: login.refreshBefore ?? LoginConfiguration.defaultRefreshBefore,
            staleStatuses: Set(login.staleCodes ?? LoginConfiguration.defaultStaleCodes))
    }
}

extension TokenPlacementConfiguration {
    fileprivate func placement(for traits: DialectTraits) -> LoginSettings.Placement {
        switch place {
        case nil: return .usual(for: traits)
        case .query: return .query(name: name ?? AuthConfiguration.defaultParam)
        case .message: return .message
        case .header:
            let name = name ?? AuthConfiguration.defaultHeaderName
            let usual = name.lowercased() == "authorization" ? "Bearer {token}" : AuthConfiguration.tokenPlaceholder
            return .header(name: name, format: format ?? usual)
        }
    }
}
