import Dialects
import Digests
import HTTPProtocol
import IRCProtocol
import Transport

/// Everything that an operator can set, checked and complete: defaults are filled in, rooms have what `[room_defaults]`
/// says, and files and variables have been read.
///
/// A field's initial value is its default. ``ConfigurationSchema`` has the row that reads it.
struct Configuration: Equatable, Sendable {
    var server = ServerConfiguration()
    /// At least one after loading.
    var listeners = [ListenerConfiguration()]
    /// Backends that are described instead of built in.
    var dialects: [DialectConfiguration] = []
    /// What rooms without a word of their own have. Its name, channel and URL are empty.
    var roomDefaults = RoomConfiguration()
    /// In the order of the file; names and channels are unique.
    var rooms: [RoomConfiguration] = []
    /// In the order of the file; names are unique.
    var backends: [BackendConfiguration] = []
    var identity = IdentityConfiguration()
    /// Names are unique, whatever their case.
    var accounts: [AccountConfiguration] = []
    var storage = StorageConfiguration()
    var limits = LimitsConfiguration()
    /// None by default: a port that nobody asked for may belong to somebody else.
    var http: [HTTPConfiguration] = []
    var media = MediaConfiguration()
    var log = LogConfiguration()
}

struct ServerConfiguration: Equatable, Sendable {
    /// Empty: make one and keep it in the state directory.
    var instanceID = ""
    /// The server's name on IRC. Loading replaces it by the host's name.
    var name = "chatbridge.local"
    /// ISUPPORT NETWORK.
    var network = "chatbridge"
    /// What stands for the server in LINKS and WHOIS; empty: the network's name, and nothing.
    var description = ""
    /// URL of an image that stands for the network; empty for none.
    var icon = ""
    /// Message of the day, lines apart by newlines; empty for none.
    var motd = ""
    /// Empty until loading fills it in.
    var stateDirectory = ""
    /// SIGTERM: longest wait for queues to empty.
    var drain: Duration = .seconds(10)
}

struct ListenerConfiguration: Equatable, Sendable {
    var bind = ListenerAddress(scheme: .irc, endpoint: HostPort(host: "127.0.0.1", port: ListenerAddress.defaultPort))
    /// Permission bits of a socket file; nil: ``defaultMode``.
    var mode: UInt32?
    /// Who shares a socket file, by name or number; nil: the process's own group.
    var group: String?
    /// Paths of PEM files; only for `ircs://`, which needs both.
    var certificate = ""
    var key = ""
    var minimumTLS = TLSVersion.v12
    /// A PEM file with the authorities of client certificates; empty: nobody is asked for one.
    var clientAuthorities = ""
    /// Which pages may open a WebSocket.
    var origins: [OriginPattern] = [.ownHost]
    /// Names by which clients reach the listener, in lower case.
    var hosts: [String] = []
    var proxyProtocol = ProxyProtocolUse.off
    /// Who may say for whom it opens a connection.
    var trustedProxies: [TrustedPeer] = []
    /// Only for `ircs://`.
    var sts = STSChoice.off
    /// The port that plain listeners lead to; nil: the one that is bound.
    var stsPort: Int?

    /// The owner and the group may connect.
    static let defaultMode: UInt32 = 0o660
}

/// How a room's `wss://` is secured.
struct UpstreamTLSConfiguration: Equatable, Sendable {
    /// A PEM file; empty: the system's authorities.
    var authorities = ""
    /// Paths of PEM files; both or none.
    var clientCertificate = ""
    var clientKey = ""
    /// Empty: the URL's host.
    var serverName = ""
    /// SHA-256 digests of public keys, 32 bytes each.
    var pins: [[UInt8]] = []
    var minimumVersion = TLSVersion.v12
    /// Nothing is checked.
    var isInsecure = false
}

struct RoomConfiguration: Equatable, Sendable {
    /// Who speaks upstream.
    enum Identity: String, CaseIterable, Sendable {
        /// As the dialect's table says.
        case auto
        case puppet
        case single
    }

    enum Receipts: String, CaseIterable, Sendable {
        /// A moved read marker is told upstream.
        case marker
        /// Who speaks has read what came before.
        case speaking
        case off
    }

    /// Whether frames may be compressed.
    enum Compression: String, CaseIterable, Sendable {
        case off
        /// The server decides.
        case offer
    }

    enum Connect: String, CaseIterable, Sendable {
        case always
        /// From the first IRC user who enters until some minutes after the last one left.
        case whileJoined = "while-joined"
    }

    /// The name of a room that stands for any channel.
    static let templateName = "*"

    /// `[a-z0-9_-]+`; names the room in logs and on the command line. ``templateName``: any joined channel is one.
    var name = ""
    /// With its `#`.
    var channel = ""
    var topic = ""
    /// Nil only in ``Configuration/roomDefaults``.
    var url: UpstreamURL?
    /// The room's id or name on the backend.
    var upstreamRoom = ""
    /// A name of ``Configuration/backends``; empty: the room is a backend of its own, with its own name.
    var backend = ""
    /// Where the backend's HTTP calls go, as its table says; nil: the origin of ``url``.
    var httpBase: HTTPURL?
    /// The dialect's own settings.
    var options = DialectOptionTree()

    /// A name of ``DialectTable``, never an alias, or of ``Configuration/dialects``.
    var dialect = "envelope"
    var identity = Identity.auto
    var receipts = Receipts.marker
    /// A person leaves after this long without a frame, where the wire has no leave. Nil: never.
    var memberIdle: Duration? = .seconds(30 * 60)
    /// Offered in Sec-WebSocket-Protocol, in order.
    var subprotocols: [String] = []
    var requiresSubprotocol = false
    var headers: [UpstreamHeader] = []
    var auth = AuthConfiguration()
    var proxy = UpstreamProxy.environment
    var tls = UpstreamTLSConfiguration()
    var userAgent = "chatbridge/\(BuildInformation.version)"
    var connectTimeout: Duration = .seconds(10)
    var handshakeTimeout: Duration = .seconds(10)
    /// Nil: no pings.
    var ping: Duration? = .seconds(20)
    var pongTimeout: Duration = .seconds(10)
    /// Bytes of payload.
    var maxFrameBytes = 4 * 1024 * 1024
    /// Bytes of payload over all fragments.
    var maxMessageBytes = 4 * 1024 * 1024
    var compression = Compression.off
    var backoff = BackoffConfiguration()
    var queue = QueueConfiguration()
    var connect = Connect.always
    /// So many of the newest messages for a client that enters; a screen of them.
    var historyOnJoin = 20

    var isTemplate: Bool { name == Self.templateName }
}

/// How a lost link is tried again. Nil fields are the dialect's business.
struct BackoffConfiguration: Equatable, Sendable {
    /// Wait before the first try.
    var min: Duration?
    var max: Duration?
    /// Growth from try to try.
    var factor: Double?
    /// Share of the wait by which it varies either way, 0 to 1.
    var jitter: Double?
    /// The count of failures starts again after the link was usable for this long.
    var resetAfter: Duration = .seconds(10)

    /// The dialect's own numbers with the written ones in their place.
    func applied(to traits: BackoffTraits) -> BackoffTraits {
        var result = traits
        if let min { result.first = min }
        if let max { result.cap = max }
        if let factor { result.factor = factor }
        if let jitter { result.jitter = jitter }
        // One of the two may be the dialect's: a cap below the first wait would never be reached upwards.
        result.cap = Swift.max(result.cap, result.first)
        return result
    }
}

/// What is said while the upstream link is down.
struct QueueConfiguration: Equatable, Sendable {
    /// Zero: nothing is kept, messages are refused at once.
    var maxMessages = 1000
    /// Nil: kept until the link is back.
    var maxAge: Duration? = .seconds(15 * 60)
}

struct IdentityConfiguration: Equatable, Sendable {
    enum RequireLogin: String, CaseIterable, Sendable {
        case never
        /// On listeners beyond loopback.
        case remote
        case always
    }

    /// Who may make an account.
    enum Registration: String, CaseIterable, Sendable {
        case off
        /// Clients of listeners on loopback and socket files.
        case local
        /// Everybody.
        case on
    }

    var requireLogin = RequireLogin.remote
    var registration = Registration.off
    /// Whether an account may be made before the client is let in.
    var registrationBeforeConnect = true
    /// Whether who logs in is in the rooms of its account again; why by default: ``BridgeSettings/rejoins``.
    var rejoin = true
    /// Names of ``SASLMechanism``, in the order in which they are offered.
    var sasl = SASLMechanism.allCases
    /// The backend that says whose a token is; empty: none.
    var bearer = ""
    /// One PASS for everybody, or nil.
    var password: PasswordVerifier?
    /// Gateways that may speak for others.
    var webirc: [WebIRCConfiguration] = []
    var nicks = NicksConfiguration()
}

/// Somebody who may log in.
struct AccountConfiguration: Equatable, Sendable {
    /// Whether and when the person's reading is told to the backend.
    enum Receipts: String, CaseIterable, Sendable {
        /// As the room has it.
        case room = ""
        case marker
        case speaking
        case off
    }

    /// In ``rooms``: every room.
    static let allRooms = "*"

    var name = ""
    /// Nil: it logs in by a certificate or a token alone.
    var password: SCRAMVerifier?
    /// SHA-256 of client certificates, 64 hexadecimal digits in lower case each.
    var certificates: [String] = []
    /// As whom the backend knows the account: ids, or names where it has no ids.
    var bearer: [String] = []
    /// Names of rooms.
    var rooms = [AccountConfiguration.allRooms]
    var isAdmin = false
    /// May say things under others' names.
    var mayRelay = false
    var receipts = Receipts.room
    /// Logins of its own, each in another room.
    var upstream: [OwnLoginConfiguration] = []
}

/// How nicks are made from the backend's display names.
struct NicksConfiguration: Equatable, Sendable {
    enum Collision: String, CaseIterable, Sendable {
        /// `bob2`
        case number
        /// `bob_`
        case underscore
    }

    /// Appended to every upstream nick.
    var suffix = ""
    /// Bytes, the suffix included.
    var maxLengthBytes = 30
    /// Stands for characters that IRC cannot have.
    var invalid = "-"
    var collision = Collision.number
    /// False: ASCII only.
    var utf8 = true
}

struct LimitsConfiguration: Equatable, Sendable {
    var maxClients = 1000
    /// This and the next: not for loopback.
    var maxClientsPerIP = 50
    /// Nil: no limit, as for every rate here.
    var acceptsPerSecondPerIP: Double? = 5
    var registrationTimeout: Duration = .seconds(60)
    /// Nil: no pings.
    var pingInterval: Duration? = .seconds(90)
    var pingTimeout: Duration = .seconds(60)
    /// For each client, by token bucket.
    var messagesPerSecond: Double? = 2
    var messagesBurst = 10
    var sendqBytes = 256 * 1024
    var recvqBytes = 32 * 1024
    var multiline = MultilineLimits()
    /// For each room.
    var upstreamMessagesPerSecond: Double? = 5
    /// All rooms together.
    var upstreamConnectsPerSecond: Double? = 20
    var membersPerRoom = 10_000
    /// Open at a time through the room "*".
    var templateRooms = 100
    /// Messages that a client which returns gets of what it missed in a room; zero: none.
    var backlog = 500
    /// Messages in one answer to CHATHISTORY.
    var historyLimit = 500
}

struct MultilineLimits: Equatable, Sendable {
    var maxBytes = 16 * 1024
    var maxLines = 100
}

struct LogConfiguration: Equatable, Sendable {
    var format = LogFormat.auto
    var level = LogLevel.info
    /// Levels of single subsystems, where they differ.
    var levels: [LogSubsystemLevel] = []
    var to = LogDestination.standardError
    /// Whether chat text may appear, at trace.
    var messages = false

    /// The level that counts for a subsystem.
    func level(of subsystem: LogSubsystem) -> LogLevel {
        levels.first { $0.subsystem == subsystem }?.level ?? level
    }
}
