import BridgeTypes
public import ChatModel
public import Dialects
public import Upstream

/// One room: a channel on IRC and a WebSocket session upstream.
///
/// The settings of its link are members of this type too.
@dynamicMemberLookup
public struct RoomSettings: Sendable {
    public var link: LinkSettings
    /// The channel, with its `#`.
    public var channel: String
    public var topic: String
    public var identity: DialectTraits.Identity
    /// Prefix of each text, where one account speaks for all users and the wire has no name field; `{nick}`: the nick.
    public var singlePrefix: String
    /// The account, where it is configured; else learned after login.
    public var account: ChatPerson?
    public var receipts: ReceiptPolicy
    public var memberIdle: Duration
    public var queueMaxMessages: Int
    public var queueMaxAge: Duration
    public var queueWhenFull: FullQueuePolicy
    public var connect: ConnectPolicy
    /// Number of newest messages sent to a client on its first JOIN, unless it queries the history itself; 0: none.
    public var historyOnJoin: Int
    /// Relay mode: this nick says `<name> text` for all upstream people; nil: they are IRC users themselves.
    public var relayNick: String?
    /// Counts for the readiness of the bridge.
    public var isRequired: Bool
    /// A room without a link for longer counts as failed; nil: never.
    public var giveUpAfter: Duration?
    /// Mirrors follow the room's order: each new row is reported as ``RoomsAction/logged(_:)``, and changes of messages
    /// have rows too.
    public var isMirrored: Bool

    public init(
        _ link: LinkSettings, channel: String? = nil, topic: String = "", identity: DialectTraits.Identity? = nil,
        singlePrefix: String = "<{nick}> ", account: ChatPerson? = nil, receipts: ReceiptPolicy = .marker,
        memberIdle: Duration = .seconds(30 * 60), queueMaxMessages: Int = 1000,
        queueMaxAge: Duration = .seconds(15 * 60), queueWhenFull: FullQueuePolicy = .reject,
        connect: ConnectPolicy = .always, historyOnJoin: Int = 0, relayNick: String? = nil, isRequired: Bool = true,
        giveUpAfter: Duration? = nil, isMirrored: Bool = false
    ) {
        self.link = link
        self.channel = channel ?? "#" + link.name
        self.topic = topic
        self.identity = identity ?? link.dialect.traits.identity
        self.singlePrefix = singlePrefix
        self.account = account
        self.receipts = receipts
        self.memberIdle = memberIdle
        self.queueMaxMessages = queueMaxMessages
        self.queueMaxAge = queueMaxAge
        self.connect = connect
        self.historyOnJoin = historyOnJoin
        self.queueWhenFull = queueWhenFull
        self.relayNick = relayNick
        self.isRequired = isRequired
        self.giveUpAfter = giveUpAfter
        self.isMirrored = isMirrored
    }

    public subscript<Value>(dynamicMember member: WritableKeyPath<LinkSettings, Value>) -> Value {
        get { link[keyPath: member] }
        set { link[keyPath: member] = newValue }
    }
}

/// The message that a full outbox has no place for.
public enum FullQueuePolicy: String, Sendable, CaseIterable {
    /// The new one is refused.
    case reject
    /// The oldest that was not written yet fails, and its author is notified.
    case dropOldest = "drop-oldest"
}

/// When a room has a connection to its backend.
public enum ConnectPolicy: String, Sendable, CaseIterable {
    case always
    /// From the first IRC user who enters until some minutes after the last one left.
    case whileJoined = "while-joined"
}
