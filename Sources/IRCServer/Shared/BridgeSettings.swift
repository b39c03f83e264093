import Accounts
public import BridgeTypes
import Digests
public import IRCProtocol
public import Identities
import Media
public import Rooms
public import Upstream

/// Settings of the bridge. Made by the executable from the configuration; the core reads no files.
public struct BridgeSettings: Sendable {
    public var serverName: String
    public var network = "chatbridge"
    public var version = "0"
    /// URL of the network's icon; nil: none.
    public var icon: String?
    /// Description of the server in LINKS and WHOIS; empty: none.
    public var description = ""
    /// Lines of the message of the day; empty: none.
    public var motd: [String] = []
    /// Part of IRC users' upstream ids, so that two bridges never share a user.
    public var instanceID: String
    /// Password that clients without an account send with PASS; nil: none.
    public var password: ServerPassword?
    /// Accounts that can log in; names are unique without regard to ASCII case.
    public var accounts: [AccountSettings] = []
    public var requireLogin: LoginRequirement = .never
    /// Which clients may register an account. Needs a store.
    public var registration: RegistrationPolicy = .nobody
    /// Whether an account may be registered before the connection is.
    public var registersBeforeConnect = true
    /// Iterations of passwords that the bridge hashes.
    public var passwordIterations = SCRAMVerifier.defaultIterations
    /// SASL mechanisms, in the order in which they are shown.
    public var saslMechanisms: [SASLMechanism] = SASLMechanism.allCases
    public var casemapping: IRCCasemapping = .ascii
    public var nicks = NickSettings()
    public var limits = LimitSettings()
    public var rooms: [RoomSettings]
    /// Backends with a backend account or calls; names are unique.
    public var backends: [BackendSettings] = []
    /// Template of channels without a configured room; nil: none.
    public var template: RoomTemplate?
    /// Backend that identifies the user of a token, for SASL OAUTHBEARER; nil: none.
    public var bearerBackend: String?
    /// Gateways that are trusted for client addresses, with WEBIRC.
    public var gateways: [WebIRCSettings] = []
    /// Whether a client that logs in rejoins the account's rooms, unless the user has chosen otherwise.
    ///
    /// True, as users of clients without a channel list expect, and as further clients of an account find it while one
    /// is connected. Clients that join by themselves are not affected: a JOIN of a joined room is not answered.
    /// Unexpected only for a program that joined once, was configured for other rooms since, and never sent a PART; it
    /// can send `rejoin off`.
    public var rejoins = true
    /// Files served by the bridge; nil: none.
    public var media: MediaSettings?
    /// Longest wait for queues to drain at shutdown, and for many clients to be disconnected.
    public var drain: Duration = .seconds(5)
    /// Time from a request to stop until clients are refused. Load balancers take new connections elsewhere meanwhile.
    public var prestopDelay: Duration = .zero
    /// Whether chat text may be logged, at level trace.
    public var notesChatText = false

    /// All other settings have the configuration's defaults.
    public init(serverName: String, instanceID: String, rooms: [RoomSettings]) {
        self.serverName = serverName
        self.instanceID = instanceID
        self.rooms = rooms
    }
}

/// A template that opens a room of a backend for any channel that a client joins.
public struct RoomTemplate: Sendable {
    /// The backend of the rooms.
    public var backend: String
    /// The settings of one of its rooms, by the room's id or name at the backend. Nil: no connection is possible for
    /// that name. The bridge fills in name, channel and topic.
    public var settings: @Sendable (_ upstreamRoom: String) -> RoomSettings?

    public init(backend: String, settings: @escaping @Sendable (_ upstreamRoom: String) -> RoomSettings?) {
        self.backend = backend
        self.settings = settings
    }
}
