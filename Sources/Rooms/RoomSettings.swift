import BridgeTypes
public import ChatModel
public import Dialects
public import Upstream

/// One room: a channel on IRC and a WebSocket session upstream.
///
/// What is set of its link can be said of the room, too.
@dynamicMemberLookup
public struct RoomSettings: Sendable {
    public var link: LinkSettings
    /// The channel, with its `#`.
    public var channel: String
    public var topic: String
    public var identity: DialectTraits.Identity
    /// Where one account speaks for all and the wire has no place for the name: stands in front of each text. `{nick}` is
    /// the nick.
    public var singlePrefix: String
    /// Who the account is, where the configuration says it; else learned after logging in.
    public var account: ChatPerson?
    public var receipts: ReceiptPolicy
    public var memberIdle: Duration
    public var queueMaxMessages: Int
    public var queueMaxAge: Duration
    public var connect: ConnectPolicy
    /// So many of the newest messages are shown to a client that enters and neither asks for them itself nor has been in the
    /// room before; 0: none.
    public var historyOnJoin: Int

    public init(
        _ link: LinkSettings, channel: String? = nil, topic: String = "", identity: DialectTraits.Identity? = nil,
        singlePrefix: String = "<{nick}> ", account: ChatPerson? = nil, receipts: ReceiptPolicy = .marker,
        memberIdle: Duration = .seconds(30 * 60), queueMaxMessages: Int = 1000,
        queueMaxAge: Duration = .seconds(15 * 60), connect: ConnectPolicy = .always, historyOnJoin: Int = 0
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
    }

    public subscript<Value>(dynamicMember member: WritableKeyPath<LinkSettings, Value>) -> Value {
        get { link[keyPath: member] }
        set { link[keyPath: member] = newValue }
    }
}

/// When a room has a connection to its backend.
public enum ConnectPolicy: String, Sendable, CaseIterable {
    case always
    /// From the first IRC user who enters until some minutes after the last one left.
    case whileJoined = "while-joined"
}
