import BridgeTypes
import ChatModel
import IRCProtocol

/// What the configuration says of an IRC network that the relay is a client of.
package struct IRCNetworkSettings: Equatable, Sendable {
    /// How the client proves its account.
    package enum Login: Equatable, Sendable {
        case none
        case plain(user: String, password: MirrorSecret)
        case scramSHA256(user: String, password: MirrorSecret)
        /// By the certificate of the connection.
        case external
    }

    /// A channel there.
    package struct Channel: Equatable, Sendable {
        package var name: String
        package var key: MirrorSecret?
        /// The last message that was taken from it, by which history is asked for; nil: none is.
        package var lastSeen: IRCNetworkPosition?

        package init(_ name: String, key: MirrorSecret? = nil, lastSeen: IRCNetworkPosition? = nil) {
            self.name = name
            self.key = key
            self.lastSeen = lastSeen
        }
    }

    package var nick: String
    /// Tried in this order when the nick is taken, and behind them the nick with one `_`, two, and so on.
    package var alternativeNicks: [String] = []
    package var user = "chatbridge"
    package var realname = "chatbridge"
    /// For PASS.
    package var serverPassword: MirrorSecret?
    package var login = Login.none
    package var channels: [Channel]
    /// How a message with its speaker appears: `{nick}` and `{text}` stand for these. The text comes last or nearly so.
    package var format = "<{nick}> {text}"
    /// Speakers appear under their own nicks where the network offers RELAYMSG.
    package var usesRelaymsg = true
    /// Stands behind the nick and a separator in RELAYMSG.
    package var relaySuffix = "chat"
    package var setsTopic = false
    /// Of all lines but PONG and registration; nil: no limit.
    package var linesPerSecond: Double? = 1
    package var linesBurst: Double = 5
    /// Lines of posts that wait for their turn.
    package var maxQueuedLines = 200
    package var pingInterval: Duration = .seconds(60)
    package var pingTimeout: Duration = .seconds(30)
    /// What CTCP VERSION is answered with.
    package var version = "chatbridge"

    package init(nick: String, channels: [Channel]) {
        self.nick = nick
        self.channels = channels
    }
}

/// A message's place in a channel.
package struct IRCNetworkPosition: Equatable, Sendable {
    /// The network's id; nil: it gives none.
    package var msgid: String?
    package var time: ChatTimestamp

    package init(msgid: String?, time: ChatTimestamp) {
        self.msgid = msgid
        self.time = time
    }

    /// As ``text``.
    package init?(_ text: String) {
        let parts = text.split(separator: " ", maxSplits: 1).map(String.init)
        guard let milliseconds = parts.first.flatMap(IRCServerTime.parse) else { return nil }
        self.init(
            msgid: parts.count > 1 ? parts[1] : nil, time: ChatTimestamp(milliseconds: milliseconds))
    }

    /// The time, and behind a space the id where there is one.
    package var text: String {
        IRCServerTime.format(milliseconds: time.milliseconds) + (msgid.map { " " + $0 } ?? "")
    }
}

/// Requests and events of a network for its owner, in order.
package enum IRCNetworkAction: Equatable {
    /// Of a channel, as configured. Reasons are parts of a sentence.
    package enum ChannelState: Equatable, Sendable {
        case joined
        /// Removed from it; joined again later.
        case lost(reason: String, until: Now)
        case waiting(reason: String, until: Now)
        /// Not tried again in this connection, unless invited.
        case refused(reason: String)
    }

    case send([UInt8])
    /// Behind what was sent. Answered by ``IRCNetwork/closed(reason:now:random:)``.
    case close
    /// Registered.
    case ready
    case channel(String, ChannelState)
    case arrived(MirrorArrival, channel: String)
    /// A user begins to write there, or ceases to.
    case typing(String, Bool, channel: String)
    /// To be given as ``IRCNetworkSettings/Channel/lastSeen`` after a restart.
    case seen(channel: String, IRCNetworkPosition)
    /// A page of what was missed is complete. Answered by ``IRCNetwork/readOn(_:from:now:)`` when the owner has taken it.
    case page(channel: String)
    /// The network has it. `id` is the network's; nil: it said none.
    case delivered(UInt64, id: String?)
    /// Unless final, the same post may succeed later.
    case failed(UInt64, reason: String, isFinal: Bool)
    case note(BridgeNote)
    /// There is no connection; the next is wanted after this time.
    case reconnect(after: Duration, reason: String)
    /// There is no connection, and none is wanted.
    case stopped
}
