public import ChatModel
public import Dialects
public import Digests
public import HTTPProtocol
public import IRCProtocol
public import WSProtocol

/// What the bridge is told to be. Made by the executable from the configuration; the core reads no files.
public struct BridgeSettings: Sendable {
    public var serverName: String
    public var network: String
    public var version: String
    /// The URL of an image that stands for the network; nil: there is none.
    public var icon: String?
    /// What stands for the server in LINKS and WHOIS; empty: nothing is said of it.
    public var description = ""
    /// Lines of the message of the day; empty: there is none.
    public var motd: [String]
    /// Part of our people's ids upstream, so that two bridges never share a person.
    public var instanceID: String
    /// What a client without an account must give with PASS; nil when there is no such password.
    public var password: ServerPassword?
    /// Who may log in; names are unique without regard to ASCII case.
    public var accounts: [AccountSettings]
    public var requireLogin: LoginRequirement
    /// Who may make an account of their own. Needs a store.
    public var registration: RegistrationPolicy
    /// Whether an account may be made before the client is let in.
    public var registersBeforeConnect = true
    /// Iterations of passwords that are hashed here.
    public var passwordIterations: Int
    /// Ways to log in; in the order in which they are shown.
    public var saslMechanisms: [SASLMechanism]
    public var casemapping: IRCCasemapping
    public var nicks: NickSettings
    public var limits: LimitSettings
    public var rooms: [RoomSettings]
    /// Those with an account or calls; names are unique.
    public var backends: [BackendSettings]
    /// Where channels lead that no room has; nil: nowhere.
    public var template: RoomTemplate?
    /// The backend that is asked whose a token is, for SASL OAUTHBEARER; nil: none.
    public var bearerBackend: String?
    /// Who may say for whom it connects, with WEBIRC.
    public var gateways: [GatewaySettings] = []
    /// Whether who logs in is in the rooms of its account again, where the person has not chosen otherwise.
    ///
    /// True, as people expect whose client keeps no list of rooms, and as other clients of the account find it while one is
    /// here. Clients that join by themselves notice nothing: a JOIN of a room that one is in is not answered. What can surprise
    /// is a program that joined once, was told of other rooms since, and never sent a PART; it says `rejoin off`.
    public var rejoins = true
    /// Files that the bridge serves; nil: none.
    public var media: MediaSettings?
    /// Longest wait at shutdown for queues to empty.
    public var drain: Duration
    /// Whether chat text may be noted, at trace.
    public var notesChatText: Bool

    public init(
        serverName: String, network: String = "chatbridge", version: String = "0", motd: [String] = [],
        instanceID: String, password: ServerPassword? = nil, accounts: [AccountSettings] = [],
        requireLogin: LoginRequirement = .never, registration: RegistrationPolicy = .nobody,
        passwordIterations: Int = SCRAMVerifier.defaultIterations,
        saslMechanisms: [SASLMechanism] = SASLMechanism.allCases, casemapping: IRCCasemapping = .ascii,
        nicks: NickSettings = NickSettings(), limits: LimitSettings = LimitSettings(), rooms: [RoomSettings],
        backends: [BackendSettings] = [], drain: Duration = .seconds(10), notesChatText: Bool = false,
        template: RoomTemplate? = nil, icon: String? = nil
    ) {
        self.icon = icon
        self.serverName = serverName
        self.network = network
        self.version = version
        self.motd = motd
        self.instanceID = instanceID
        self.password = password
        self.accounts = accounts
        self.requireLogin = requireLogin
        self.registration = registration
        self.passwordIterations = passwordIterations
        self.saslMechanisms = saslMechanisms
        self.casemapping = casemapping
        self.nicks = nicks
        self.limits = limits
        self.rooms = rooms
        self.backends = backends
        self.drain = drain
        self.notesChatText = notesChatText
        self.template = template
    }
}

/// How nicks are made from display names.
public struct NickSettings: Equatable, Sendable {
    public enum Collision: String, Sendable, CaseIterable {
        case number, underscore
    }

    /// Appended to the nicks of people upstream.
    public var suffix: String
    /// Bytes of UTF-8.
    public var maxBytes: Int
    /// Stands for characters that IRC cannot have.
    public var invalid: String
    public var collision: Collision
    /// false: ASCII only.
    public var utf8: Bool

    public init(
        suffix: String = "", maxBytes: Int = 30, invalid: String = "-", collision: Collision = .number,
        utf8: Bool = true
    ) {
        self.suffix = suffix
        self.maxBytes = maxBytes
        self.invalid = invalid
        self.collision = collision
        self.utf8 = utf8
    }
}

/// Bounds on what peers may cost. Every one has a reason in the configuration's example.
public struct LimitSettings: Equatable, Sendable {
    public var maxClients: Int
    /// Not for loopback and unix sockets.
    public var maxClientsPerAddress: Int
    /// nil: no limit.
    public var acceptsPerSecondPerAddress: Double?
    public var registrationTimeout: Duration
    public var pingInterval: Duration
    public var pingTimeout: Duration
    /// Lines a client may send in the long run; nil: no limit.
    public var messagesPerSecond: Double?
    public var messagesBurst: Double
    /// Bytes of unprocessed input held for a client before its socket is no longer read.
    public var receiveQueueBytes: Int
    /// One upstream message gives each client at most this.
    public var multilineMaxBytes: Int
    public var multilineMaxLines: Int
    /// Frames to a room in the long run, with a burst of 10; nil: no limit.
    public var upstreamMessagesPerSecond: Double?
    public var upstreamMessagesBurst: Double
    /// New connections over all rooms together; nil: no limit.
    public var upstreamConnectsPerSecond: Double?
    public var membersPerRoom: Int
    /// Rooms that the template may have open at a time.
    public var templateRooms: Int
    /// Messages of a room that a client that returns gets of what it missed, the newest ones; 0: none.
    public var backlog: Int
    /// Messages in one answer to a client that asks for what was said before.
    public var historyLimit: Int

    public init(
        maxClients: Int = 1000, maxClientsPerAddress: Int = 50, acceptsPerSecondPerAddress: Double? = 5,
        registrationTimeout: Duration = .seconds(60), pingInterval: Duration = .seconds(90),
        pingTimeout: Duration = .seconds(60), messagesPerSecond: Double? = 2, messagesBurst: Double = 10,
        receiveQueueBytes: Int = 32 * 1024, multilineMaxBytes: Int = 16 * 1024, multilineMaxLines: Int = 100,
        upstreamMessagesPerSecond: Double? = 5, upstreamMessagesBurst: Double = 10,
        upstreamConnectsPerSecond: Double? = 20, membersPerRoom: Int = 10_000, templateRooms: Int = 100,
        backlog: Int = 500, historyLimit: Int = 500
    ) {
        self.maxClients = maxClients
        self.maxClientsPerAddress = maxClientsPerAddress
        self.acceptsPerSecondPerAddress = acceptsPerSecondPerAddress
        self.registrationTimeout = registrationTimeout
        self.pingInterval = pingInterval
        self.pingTimeout = pingTimeout
        self.messagesPerSecond = messagesPerSecond
        self.messagesBurst = messagesBurst
        self.receiveQueueBytes = receiveQueueBytes
        self.multilineMaxBytes = multilineMaxBytes
        self.multilineMaxLines = multilineMaxLines
        self.upstreamMessagesPerSecond = upstreamMessagesPerSecond
        self.upstreamMessagesBurst = upstreamMessagesBurst
        self.upstreamConnectsPerSecond = upstreamConnectsPerSecond
        self.membersPerRoom = membersPerRoom
        self.templateRooms = templateRooms
        self.backlog = backlog
        self.historyLimit = historyLimit
    }
}

/// When an IRC user's reading is told to the backend.
public enum ReceiptPolicy: String, Sendable, CaseIterable {
    /// When the read marker moves.
    case marker
    /// Also when somebody without read markers speaks: they read what came before.
    case speaking
    case off
}

/// One room: a channel on IRC and a WebSocket session upstream.
public struct RoomSettings: Sendable {
    /// `[a-z0-9_-]+`, for logs and metrics.
    public var name: String
    /// The channel, with its `#`.
    public var channel: String
    public var topic: String
    /// Name of the backend; the host in its people's sources and part of every id.
    public var backend: String
    public var dialect: any Dialect
    public var url: HTTPURL
    /// The room's id or name on the backend.
    public var upstreamRoom: String
    public var identity: DialectTraits.Identity
    /// Where one account speaks for all and the wire has no place for the name: stands in front of each text. `{nick}` is
    /// the nick.
    public var singlePrefix: String
    /// Who the account is, where the configuration says it; else learned after logging in.
    public var account: ChatPerson?
    public var receipts: ReceiptPolicy
    public var memberIdle: Duration
    public var subprotocols: [String]
    /// A backend that chooses none of the subprotocols is refused.
    public var requiresSubprotocol: Bool
    public var headers: [(name: String, value: String)]
    /// Each attempt begins with reading credentials.
    public var authenticates: Bool
    /// HTTP statuses and close codes that mean that what we showed is not taken.
    public var refusalCodes: Set<Int> = [401, 403, 1008, 4001, 4003]
    /// Which way the connection takes.
    public var proxies: HTTPProxyRules
    public var userAgent: String
    public var connectTimeout: Duration
    public var handshakeTimeout: Duration
    public var ping: Duration
    /// Where nobody chose another.
    public static let usualPing: Duration = .seconds(20)
    public var pongTimeout: Duration
    public var webSocketLimits: WebSocketLimits
    /// What is offered to the backend; nil: nothing.
    public var compression: WebSocketCompression?
    public var backoff: BackoffTraits
    /// A session that was usable this long starts the next outage with the first delay again.
    public var backoffResetAfter: Duration
    public var queueMaxMessages: Int
    public var queueMaxAge: Duration
    public var connect: ConnectPolicy
    /// So many messages from before are fetched when the room opens for the first time, and at first after each outage; 0:
    /// none when it opens.
    public var historyLimit: Int
    /// So many of the newest messages are shown to a client that enters and neither asks for them itself nor has been in the
    /// room before; 0: none.
    public var historyOnJoin = 0

    public init(
        name: String, channel: String? = nil, topic: String = "", backend: String? = nil, dialect: any Dialect,
        url: HTTPURL, upstreamRoom: String? = nil, identity: DialectTraits.Identity? = nil,
        singlePrefix: String = "<{nick}> ", account: ChatPerson? = nil,
        receipts: ReceiptPolicy = .marker, memberIdle: Duration = .seconds(30 * 60), subprotocols: [String] = [],
        requiresSubprotocol: Bool = false, headers: [(name: String, value: String)] = [], authenticates: Bool = false,
        proxies: HTTPProxyRules = .direct, userAgent: String = "chatbridge",
        connectTimeout: Duration = .seconds(10), handshakeTimeout: Duration = .seconds(10),
        ping: Duration = RoomSettings.usualPing, pongTimeout: Duration = .seconds(10),
        webSocketLimits: WebSocketLimits = WebSocketLimits(), compression: WebSocketCompression? = nil,
        backoff: BackoffTraits? = nil,
        backoffResetAfter: Duration = .seconds(10), queueMaxMessages: Int = 1000,
        queueMaxAge: Duration = .seconds(15 * 60), connect: ConnectPolicy = .always, historyLimit: Int = 50
    ) {
        self.name = name
        self.channel = channel ?? "#" + name
        self.topic = topic
        self.backend = backend ?? name
        self.dialect = dialect
        self.url = url
        self.upstreamRoom = upstreamRoom ?? name
        self.identity = identity ?? dialect.traits.identity
        self.singlePrefix = singlePrefix
        self.account = account
        self.receipts = receipts
        self.memberIdle = memberIdle
        self.subprotocols = subprotocols
        self.requiresSubprotocol = requiresSubprotocol
        self.headers = headers
        self.authenticates = authenticates
        self.proxies = proxies
        self.userAgent = userAgent
        self.connectTimeout = connectTimeout
        self.handshakeTimeout = handshakeTimeout
        self.ping = ping
        self.pongTimeout = pongTimeout
        self.webSocketLimits = webSocketLimits
        self.compression = compression
        self.backoff = backoff ?? dialect.traits.backoff
        self.backoffResetAfter = backoffResetAfter
        self.queueMaxMessages = queueMaxMessages
        self.queueMaxAge = queueMaxAge
        self.connect = connect
        self.historyLimit = historyLimit
    }
}
