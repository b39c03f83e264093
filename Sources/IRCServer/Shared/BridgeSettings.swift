import Accounts
public import Digests
public import IRCProtocol
public import Identities
import Media
public import Rooms
public import Upstream

/// What the bridge is told to be. Made by the executable from the configuration; the core reads no files.
public struct BridgeSettings: Sendable {
    public var serverName: String
    public var network: String
    public var version: String
    /// The URL of an image that stands for the network; nil: there is none.
    public var icon: String?
    /// What stands for the server in LINKS and WHOIS; empty: nothing is said of it.
    public var description: String
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
    public var registersBeforeConnect: Bool
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
    public var gateways: [GatewaySettings]
    /// Whether who logs in is in the rooms of its account again, where the person has not chosen otherwise.
    ///
    /// True, as people expect whose client keeps no list of rooms, and as other clients of the account find it while one is
    /// here. Clients that join by themselves notice nothing: a JOIN of a room that one is in is not answered. What can surprise
    /// is a program that joined once, was told of other rooms since, and never sent a PART; it says `rejoin off`.
    public var rejoins: Bool
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
        template: RoomTemplate? = nil, icon: String? = nil, description: String = "",
        registersBeforeConnect: Bool = true, bearerBackend: String? = nil, rejoins: Bool = true,
        gateways: [GatewaySettings] = []
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
        self.description = description
        self.registersBeforeConnect = registersBeforeConnect
        self.bearerBackend = bearerBackend
        self.rejoins = rejoins
        self.gateways = gateways
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

/// Opens a room of a backend for any channel that somebody joins.
public struct RoomTemplate: Sendable {
    /// The backend whose rooms these are.
    public var backend: String
    /// The settings of one of its rooms, by the room's id or name there. Nil when no connection can be made for that name.
    /// Name, channel and topic are the bridge's to fill in.
    public var settings: @Sendable (_ upstreamRoom: String) -> RoomSettings?

    public init(backend: String, settings: @escaping @Sendable (_ upstreamRoom: String) -> RoomSettings?) {
        self.backend = backend
        self.settings = settings
    }
}
