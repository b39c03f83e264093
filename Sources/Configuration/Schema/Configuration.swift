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

    /// Fills in what depends on the machine.
    mutating func completeServer(_ environment: ConfigurationEnvironment, isNamed: Bool) {
        server.complete(environment, isNamed: isNamed)
    }

    /// Puts what was read of a room, and completed, in its place.
    mutating func settle(_ room: RoomConfiguration, at index: Int) { rooms[index] = room }

    mutating func settle(backend index: Int, _ room: RoomConfiguration) { backends[index].settle(room) }
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

    /// What depends on the machine.
    mutating func complete(_ environment: ConfigurationEnvironment, isNamed: Bool) {
        if !isNamed {
            let host = environment.hostName
            let usual = host.contains(".") ? host : "\(host).local"
            if ConfigurationChecks.isServerName(usual) { name = usual }
        }
        guard stateDirectory.isEmpty else { return }
        // systemd separates several directories with colons.
        if let directory = environment.variables["STATE_DIRECTORY"]?.split(separator: ":").first {
            stateDirectory = String(directory)
        } else if let directory = environment.variables["XDG_STATE_HOME"], directory.hasPrefix("/") {
            stateDirectory = "\(directory)/chatbridge"
        } else {
            stateDirectory = "./state"
        }
    }
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
