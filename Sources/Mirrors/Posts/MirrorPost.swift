import BridgeTypes
import ChatModel

/// Something in a room's order, for a tool elsewhere: in the words of no tool.
package struct MirrorPost: Equatable, Sendable {
    package enum Content: Equatable, Sendable {
        case message(MarkedText)
        /// "/me": the speaker does something.
        case action(MarkedText)
        /// New words for a message; `of` is its msgid.
        case edit(MarkedText, of: String)
        case takenBack(String)
        case reaction(String, ChatReaction.Operation, on: String)
        case topic(String)
        /// The relay's own words, such as those about a gap.
        case notice(String)
    }

    package struct Speaker: Hashable, Sendable {
        package var nick: String
        package var account: String?
        package var isBot: Bool

        package init(nick: String, account: String? = nil, isBot: Bool = false) {
            self.nick = nick
            self.account = account
            self.isBot = isBot
        }
    }

    /// The message that this one answers, changes or is about, as far as it is known.
    package struct Target: Equatable, Sendable {
        /// The tool's own id; nil: the tool does not have it, or did not say.
        package var toolID: String?
        package var nick: String
        /// The beginning of its words, on one line.
        package var excerpt: String

        package init(toolID: String? = nil, nick: String, excerpt: String) {
            self.toolID = toolID
            self.nick = nick
            self.excerpt = excerpt
        }
    }

    package var content: Content
    /// The room's configured name, and its channel on IRC.
    package var room: String
    package var channel: String
    /// Of this entry in the order; unique in the room.
    package var msgid: String
    /// The id under which the message was said first, in whatever room of whatever bridge.
    package var first: String
    package var at: ChatTimestamp
    package var speaker: Speaker
    /// The msgid of the message that this one answers.
    package var replyTo: String?
    /// Of an answer, an edit, a redaction or a reaction.
    package var target: Target?
    package var files: [MirrorFile]
    /// With this room at its end.
    package var origin: OriginChain

    package init(
        _ content: Content, room: String, channel: String, msgid: String, first: String? = nil, at: ChatTimestamp,
        speaker: Speaker,
        replyTo: String? = nil, target: Target? = nil, files: [MirrorFile] = [], origin: OriginChain = OriginChain()
    ) {
        self.content = content
        self.room = room
        self.channel = channel
        self.msgid = msgid
        self.first = first ?? msgid
        self.at = at
        self.speaker = speaker
        self.replyTo = replyTo
        self.target = target
        self.files = files
        self.origin = origin
    }

    package var isNotice: Bool { if case .notice = content { true } else { false } }
}

/// A file of a message, by its address.
package struct MirrorFile: Equatable, Sendable {
    package var url: String
    package var name: String?
    package var type: String?
    package var size: Int64?

    package init(url: String, name: String? = nil, type: String? = nil, size: Int64? = nil) {
        self.url = url
        self.name = name
        self.type = type
        self.size = size
    }

    package var isImage: Bool { type?.hasPrefix("image/") ?? false }
}

/// Something that was said in a tool, for a room.
package struct MirrorArrival: Equatable, Sendable {
    package enum Content: Equatable, Sendable {
        case message(MarkedText)
        case action(MarkedText)
        /// `of` is the tool's id of the message.
        case edit(MarkedText, of: String)
        case takenBack(String)
        case reaction(String, ChatReaction.Operation, on: String)
    }

    package var content: Content
    /// The tool's id of it; nil: it has none. The same id again is the same message.
    package var id: String?
    /// As the tool shows the name; anything.
    package var speaker: String
    /// The tool's id of the message that this one answers.
    package var replyTo: String?
    /// The tool's name of the channel, without a `#`; nil: not said.
    package var channel: String?
    package var files: [MirrorFile]
    package var origin: OriginChain
    /// The id under which it was said first; nil: not known. What was brought by another way is not brought again.
    package var first: String?
    /// The tool says that a program wrote it.
    package var isBot: Bool

    package init(
        _ content: Content, id: String? = nil, speaker: String, replyTo: String? = nil, channel: String? = nil,
        files: [MirrorFile] = [], origin: OriginChain = OriginChain(), first: String? = nil, isBot: Bool = false
    ) {
        self.content = content
        self.id = id
        self.speaker = speaker
        self.replyTo = replyTo
        self.channel = channel
        self.files = files
        self.origin = origin
        self.first = first
        self.isBot = isBot
    }
}
