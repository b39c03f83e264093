import Dialects
import Digests
import HTTPProtocol
import IRCProtocol
import Transport

/// Everything that an operator can set, checked and complete: defaults are filled in, rooms have what `[room_defaults]`
/// says, and files and variables have been read.
///
/// A field's initial value is its default. ``ConfigurationSchema`` has the row that reads it.
package struct Configuration: Equatable, Sendable {
    package var server = ServerConfiguration()
    /// At least one after loading.
    package var listeners = [ListenerConfiguration()]
    /// Backends that are described instead of built in.
    package var dialects: [DialectConfiguration] = []
    /// What rooms without a word of their own have. Its name, channel and URL are empty.
    package var roomDefaults = RoomConfiguration()
    /// In the order of the file; names and channels are unique.
    package var rooms: [RoomConfiguration] = []
    /// In the order of the file; names are unique.
    package var backends: [BackendConfiguration] = []
    package var identity = IdentityConfiguration()
    /// Names are unique, whatever their case.
    package var accounts: [AccountConfiguration] = []
    package var storage = StorageConfiguration()
    package var limits = LimitsConfiguration()
    /// None by default: a port that nobody asked for may belong to somebody else.
    package var http: [HTTPConfiguration] = []
    package var media = MediaConfiguration()
    package var log = LogConfiguration()

    package init() {}
}

package struct ServerConfiguration: Equatable, Sendable {
    /// Empty: make one and keep it in the state directory.
    package var instanceID = ""
    /// The server's name on IRC. Loading replaces it by the host's name.
    package var name = "chatbridge.local"
    /// ISUPPORT NETWORK.
    package var network = "chatbridge"
    /// What stands for the server in LINKS and WHOIS; empty: the network's name, and nothing.
    package var description = ""
    /// URL of an image that stands for the network; empty for none.
    package var icon = ""
    /// Message of the day, lines apart by newlines; empty for none.
    package var motd = ""
    /// Empty until loading fills it in.
    package var stateDirectory = ""
    /// SIGTERM: longest wait for queues to empty.
    package var drain: Duration = .seconds(10)
}

package struct ListenerConfiguration: Equatable, Sendable {
    package var bind = ListenerAddress(
        scheme: .irc, endpoint: HostPort(host: "127.0.0.1", port: ListenerAddress.defaultPort))
    /// Permission bits of a socket file; nil: ``defaultMode``.
    package var mode: UInt32?
    /// Who shares a socket file, by name or number; nil: the process's own group.
    package var group: String?
    /// Paths of PEM files; only for `ircs://`, which needs both.
    package var certificate = ""
    package var key = ""
    package var minimumTLS = TLSVersion.v12
    /// A PEM file with the authorities of client certificates; empty: nobody is asked for one.
    package var clientAuthorities = ""
    /// Which pages may open a WebSocket.
    package var origins: [OriginPattern] = [.ownHost]
    /// Names by which clients reach the listener, in lower case.
    package var hosts: [String] = []
    package var proxyProtocol = ProxyProtocolUse.off
    /// Who may say for whom it opens a connection.
    package var trustedProxies: [TrustedPeer] = []
    /// Only for `ircs://`.
    package var sts = STSChoice.off
    /// The port that plain listeners lead to; nil: the one that is bound.
    package var stsPort: Int?

    /// The owner and the group may connect.
    package static let defaultMode: UInt32 = 0o660
}

/// How a room's `wss://` is secured.
package struct UpstreamTLSConfiguration: Equatable, Sendable {
    /// A PEM file; empty: the system's authorities.
    package var authorities = ""
    /// Paths of PEM files; both or none.
    package var clientCertificate = ""
    package var clientKey = ""
    /// Empty: the URL's host.
    package var serverName = ""
    /// SHA-256 digests of public keys, 32 bytes each.
    package var pins: [[UInt8]] = []
    package var minimumVersion = TLSVersion.v12
    /// Nothing is checked.
    package var isInsecure = false

    package init() {}
}

package struct RoomConfiguration: Equatable, Sendable {
    /// Who speaks upstream.
    package enum Identity: String, CaseIterable, Sendable {
        /// As the dialect's table says.
        case auto
        case puppet
        case single
    }

    package enum Receipts: String, CaseIterable, Sendable {
        /// A moved read marker is told upstream.
        case marker
        /// Who speaks has read what came before.
        case speaking
        case off
    }

    /// Whether frames may be compressed.
    package enum Compression: String, CaseIterable, Sendable {
        case off
        /// The server decides.
        case offer
    }

    package enum Connect: String, CaseIterable, Sendable {
        case always
        /// From the first IRC user who enters until some minutes after the last one left.
        case whileJoined = "while-joined"
    }

    /// The name of a room that stands for any channel.
    package static let templateName = "*"

    /// `[a-z0-9_-]+`; names the room in logs and on the command line. ``templateName``: any joined channel is one.
    package var name = ""
    /// With its `#`.
    package var channel = ""
    package var topic = ""
    /// Nil only in ``Configuration/roomDefaults``.
    package var url: UpstreamURL?
    /// The room's id or name on the backend.
    package var upstreamRoom = ""
    /// A name of ``Configuration/backends``; empty: the room is a backend of its own, with its own name.
    package var backend = ""
    /// Where the backend's HTTP calls go, as its table says; nil: the origin of ``url``.
    package var httpBase: HTTPURL?
    /// The dialect's own settings.
    package var options = DialectOptionTree()

    /// A name of ``DialectTable``, never an alias, or of ``Configuration/dialects``.
    package var dialect = "envelope"
    package var identity = Identity.auto
    package var receipts = Receipts.marker
    /// A person leaves after this long without a frame, where the wire has no leave. Nil: never.
    package var memberIdle: Duration? = .seconds(30 * 60)
    /// Offered in Sec-WebSocket-Protocol, in order.
    package var subprotocols: [String] = []
    package var requiresSubprotocol = false
    package var headers: [UpstreamHeader] = []
    package var auth = AuthConfiguration()
    package var proxy = UpstreamProxy.environment
    package var tls = UpstreamTLSConfiguration()
    package var userAgent = "chatbridge/\(BuildInformation.version)"
    package var connectTimeout: Duration = .seconds(10)
    package var handshakeTimeout: Duration = .seconds(10)
    /// Nil: no pings.
    package var ping: Duration? = .seconds(20)
    package var pongTimeout: Duration = .seconds(10)
    /// Bytes of payload.
    package var maxFrameBytes = 4 * 1024 * 1024
    /// Bytes of payload over all fragments.
    package var maxMessageBytes = 4 * 1024 * 1024
    package var compression = Compression.off
    package var backoff = BackoffConfiguration()
    package var queue = QueueConfiguration()
    package var connect = Connect.always
    /// So many of the newest messages for a client that enters; a screen of them.
    package var historyOnJoin = 20

    package init() {}

    package var isTemplate: Bool { name == Self.templateName }
}

/// How a lost link is tried again. Nil fields are the dialect's business.
package struct BackoffConfiguration: Equatable, Sendable {
    /// Wait before the first try.
    package var min: Duration?
    package var max: Duration?
    /// Growth from try to try.
    package var factor: Double?
    /// Share of the wait by which it varies either way, 0 to 1.
    package var jitter: Double?
    /// The count of failures starts again after the link was usable for this long.
    package var resetAfter: Duration = .seconds(10)

    /// The dialect's own numbers with the written ones in their place.
    package func applied(to traits: BackoffTraits) -> BackoffTraits {
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
package struct QueueConfiguration: Equatable, Sendable {
    /// Zero: nothing is kept, messages are refused at once.
    package var maxMessages = 1000
    /// Nil: kept until the link is back.
    package var maxAge: Duration? = .seconds(15 * 60)
}

package struct IdentityConfiguration: Equatable, Sendable {
    package enum RequireLogin: String, CaseIterable, Sendable {
        case never
        /// On listeners beyond loopback.
        case remote
        case always
    }

    /// Who may make an account.
    package enum Registration: String, CaseIterable, Sendable {
        case off
        /// Clients of listeners on loopback and socket files.
        case local
        /// Everybody.
        case on
    }

    package var requireLogin = RequireLogin.remote
    package var registration = Registration.off
    /// Whether an account may be made before the client is let in.
    package var registrationBeforeConnect = true
    /// Whether who logs in is in the rooms of its account again; why by default: ``BridgeSettings/rejoins``.
    package var rejoin = true
    /// Names of ``SASLMechanism``, in the order in which they are offered.
    package var sasl = SASLMechanism.allCases
    /// The backend that says whose a token is; empty: none.
    package var bearer = ""
    /// One PASS for everybody, or nil.
    package var password: PasswordVerifier?
    /// Gateways that may speak for others.
    package var webirc: [WebIRCConfiguration] = []
    package var nicks = NicksConfiguration()
}

/// Somebody who may log in.
package struct AccountConfiguration: Equatable, Sendable {
    /// Whether and when the person's reading is told to the backend.
    package enum Receipts: String, CaseIterable, Sendable {
        /// As the room has it.
        case room = ""
        case marker
        case speaking
        case off
    }

    /// In ``rooms``: every room.
    package static let allRooms = "*"

    package var name = ""
    /// Nil: it logs in by a certificate or a token alone.
    package var password: SCRAMVerifier?
    /// SHA-256 of client certificates, 64 hexadecimal digits in lower case each.
    package var certificates: [String] = []
    /// As whom the backend knows the account: ids, or names where it has no ids.
    package var bearer: [String] = []
    /// Names of rooms.
    package var rooms = [AccountConfiguration.allRooms]
    package var isAdmin = false
    /// May say things under others' names.
    package var mayRelay = false
    package var receipts = Receipts.room
    /// Logins of its own, each in another room.
    package var upstream: [OwnLoginConfiguration] = []
}

/// How nicks are made from the backend's display names.
package struct NicksConfiguration: Equatable, Sendable {
    package enum Collision: String, CaseIterable, Sendable {
        /// `bob2`
        case number
        /// `bob_`
        case underscore
    }

    /// Appended to every upstream nick.
    package var suffix = ""
    /// Bytes, the suffix included.
    package var maxLengthBytes = 30
    /// Stands for characters that IRC cannot have.
    package var invalid = "-"
    package var collision = Collision.number
    /// False: ASCII only.
    package var utf8 = true
}

package struct LimitsConfiguration: Equatable, Sendable {
    package var maxClients = 1000
    /// This and the next: not for loopback.
    package var maxClientsPerIP = 50
    /// Nil: no limit, as for every rate here.
    package var acceptsPerSecondPerIP: Double? = 5
    package var registrationTimeout: Duration = .seconds(60)
    /// Nil: no pings.
    package var pingInterval: Duration? = .seconds(90)
    package var pingTimeout: Duration = .seconds(60)
    /// For each client, by token bucket.
    package var messagesPerSecond: Double? = 2
    package var messagesBurst = 10
    package var sendqBytes = 256 * 1024
    package var recvqBytes = 32 * 1024
    package var multiline = MultilineLimits()
    /// For each room.
    package var upstreamMessagesPerSecond: Double? = 5
    /// All rooms together.
    package var upstreamConnectsPerSecond: Double? = 20
    package var membersPerRoom = 10_000
    /// Open at a time through the room "*".
    package var templateRooms = 100
    /// Messages that a client which returns gets of what it missed in a room; zero: none.
    package var backlog = 500
    /// Messages in one answer to CHATHISTORY.
    package var historyLimit = 500
}

package struct MultilineLimits: Equatable, Sendable {
    package var maxBytes = 16 * 1024
    package var maxLines = 100
}

package struct LogConfiguration: Equatable, Sendable {
    package var format = LogFormat.auto
    package var level = LogLevel.info
    /// Levels of single subsystems, where they differ.
    package var levels: [LogSubsystemLevel] = []
    package var to = LogDestination.standardError
    /// Whether chat text may appear, at trace.
    package var messages = false

    /// The level that counts for a subsystem.
    package func level(of subsystem: LogSubsystem) -> LogLevel {
        levels.first { $0.subsystem == subsystem }?.level ?? level
    }
}
