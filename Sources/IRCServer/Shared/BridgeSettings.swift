import Accounts
import Digests
public import IRCProtocol
public import Identities
import Media
public import Rooms
public import Upstream

/// What the bridge is told to be. Made by the executable from the configuration; the core reads no files.
public struct BridgeSettings: Sendable {
    public var serverName: String
    public var network = "chatbridge"
    public var version = "0"
    /// The URL of an image that stands for the network; nil: there is none.
    public var icon: String?
    /// What stands for the server in LINKS and WHOIS; empty: nothing is said of it.
    public var description = ""
    /// Lines of the message of the day; empty: there is none.
    public var motd: [String] = []
    /// Part of our people's ids upstream, so that two bridges never share a person.
    public var instanceID: String
    /// What a client without an account must give with PASS; nil when there is no such password.
    public var password: ServerPassword?
    /// Who may log in; names are unique without regard to ASCII case.
    public var accounts: [AccountSettings] = []
    public var requireLogin: LoginRequirement = .never
    /// Who may make an account of their own. Needs a store.
    public var registration: RegistrationPolicy = .nobody
    /// Whether an account may be made before the client is let in.
    public var registersBeforeConnect = true
    /// Iterations of passwords that are hashed here.
    public var passwordIterations = SCRAMVerifier.defaultIterations
    /// Ways to log in; in the order in which they are shown.
    public var saslMechanisms: [SASLMechanism] = SASLMechanism.allCases
    public var casemapping: IRCCasemapping = .ascii
    public var nicks = NickSettings()
    public var limits = LimitSettings()
    public var rooms: [RoomSettings]
    /// Those with an account or calls; names are unique.
    public var backends: [BackendSettings] = []
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
    public var drain: Duration = .seconds(10)
    /// Whether chat text may be noted, at trace.
    public var notesChatText = false

    /// Everything else is as the configuration has it without a word.
    public init(serverName: String, instanceID: String, rooms: [RoomSettings]) {
        self.serverName = serverName
        self.instanceID = instanceID
        self.rooms = rooms
    }
}

/// Bounds on what peers may cost. Every one has a reason in the configuration's example.
public struct LimitSettings: Equatable, Sendable {
    public var maxClients = 1000
    /// Not for loopback and unix sockets.
    public var maxClientsPerAddress = 50
    /// nil: no limit.
    public var acceptsPerSecondPerAddress: Double? = 5
    public var registrationTimeout: Duration = .seconds(60)
    public var pingInterval: Duration = .seconds(90)
    public var pingTimeout: Duration = .seconds(60)
    /// Lines a client may send in the long run; nil: no limit.
    public var messagesPerSecond: Double? = 2
    public var messagesBurst: Double = 10
    /// Bytes of unprocessed input held for a client before its socket is no longer read.
    public var receiveQueueBytes = 32 * 1024
    /// One upstream message gives each client at most this.
    public var multilineMaxBytes = 16 * 1024
    public var multilineMaxLines = 100
    /// Frames to a room in the long run, with a burst of 10; nil: no limit.
    public var upstreamMessagesPerSecond: Double? = 5
    public var upstreamMessagesBurst: Double = 10
    /// New connections over all rooms together; nil: no limit.
    public var upstreamConnectsPerSecond: Double? = 20
    public var membersPerRoom = 10_000
    /// Rooms that the template may have open at a time.
    public var templateRooms = 100
    /// Messages of a room that a client that returns gets of what it missed, the newest ones; 0: none.
    public var backlog = 500
    /// Messages in one answer to a client that asks for what was said before.
    public var historyLimit = 500

    public init(_ change: (inout LimitSettings) -> Void = { _ in }) { change(&self) }
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
