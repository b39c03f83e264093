public import ChatModel
public import IRCServer
import Rooms
public import Upstream

/// What an operator wants to know of a running bridge, at one moment. A value: it can leave the loop.
public struct BridgeStatus: Equatable, Sendable {
    public var serverName: String
    public var network: String
    public var version: String
    public var at: ChatTimestamp
    public var startedAt: ChatTimestamp
    /// Whether clients are accepted: false from the start of a shutdown.
    public var isRunning: Bool
    public var storage: StoreCondition
    /// The configured ones first, in their order, then open rooms of the template.
    public var rooms: [RoomStatus]
    /// By age of the connection.
    public private(set) var clients: [ClientStatus]

    /// Keeps the clients that connected first.
    public mutating func limitClients(to most: Int) { clients = Array(clients.prefix(most)) }
}

public struct RoomStatus: Equatable, Sendable {
    /// The name, and the state of the link.
    public var state: RoomState
    public var channel: String
    /// The backend's host.
    public var host: String
    /// When the link became usable; where it is not, when the outage began. Nil: it was not tried yet.
    public var since: ChatTimestamp?
    /// Until the next try; nil where none is planned.
    public var retryIn: Duration?
    /// It comes sooner where there are other credentials than the refused ones.
    public var awaitsCredentials: Bool
    /// Between a ping and its answer, the last one of this session.
    public var roundTrip: Duration?
    /// Users of the backend in the room, as far as the bridge knows them.
    public var upstreamUsers: Int
    /// Clients in the room.
    public var clients: Int
    /// Messages of IRC users that the backend has not confirmed yet.
    public var queued: Int
    /// With more, messages are refused.
    public var queueLimit: Int
    /// Since the oldest of them was accepted; nil: there are none.
    public var oldestQueuedFor: Duration?
    /// Of these, how many were sent: the backend may have them.
    public var unconfirmed: Int
    /// Since the oldest of those was accepted; nil: there are none.
    public var oldestUnconfirmedFor: Duration?
    /// Messages wait for the rate at which they may be sent.
    package var isPaced: Bool
    package var down: RoomTraffic.Counts
    package var up: RoomTraffic.Counts
    public var lastMessageAt: ChatTimestamp?
    /// Frames of the backend that were not understood.
    public var undecodable: Int
    /// Of these, as the dialect is now, those that should have been.
    public var misread: Int
    /// None was.
    public var understandsNothing: Bool
    /// Why a history is missing: a part of a sentence; nil: none is.
    public var historyFailure: String?
    /// When the token of the room's log-in ends; nil: not known, or never.
    public var tokenEndsAt: ChatTimestamp?
    package var attempts: UpstreamSession.Attempts

    /// Messages of upstream users that were shown.
    public var messagesIn: Int { down[.message] }
    /// Messages of IRC users that the backend confirmed.
    public var messagesOut: Int { up[.message] }
}

public struct ClientStatus: Equatable, Sendable {
    /// The number of its connection.
    public var id: UInt64
    /// Nil: it has none yet.
    public var nick: String?
    /// Nil: it has not logged in.
    public var account: String?
    public var address: String
    public var transport: ClientOrigin.Transport
    /// The address of the listener, as configured.
    public var listener: String
    public var isRegistered: Bool
    public var connectedAt: ChatTimestamp
    /// The last message, or the connection.
    public var idleSince: ChatTimestamp
    /// Names of rooms.
    public var rooms: [String]
    /// It sends faster than it may, so that the bridge does not read from it for a while.
    public var isPaused: Bool
}
