// The neutral vocabulary that every dialect is translated into and out of.
//
// A codec is a pure function: a frame becomes events, an event becomes frames. Ids, times, throttling, echo matching
// and splitting belong to the session around it. Optional fields may be absent from a backend's frames; a missing time
// stands for the time of receipt.

/// A person as a frame names them. Either part may be missing; a backend without ids knows people by name.
public struct ChatPerson: Hashable, Sendable {
    public var id: ChatID?
    public var name: String?

    // Otherwise a call, with a copied result.
    @inlinable @inline(__always)
    public init(id: ChatID? = nil, name: String? = nil) {
        self.id = id
        if let name, name.utf8.count > Self.maxNameBytes {
            self.name = Self.shortened(name)
        } else {
            self.name = name
        }
    }

    /// Longer names, which only attackers have, are cut: people are remembered by them where there are no ids.
    public static let maxNameBytes = 1024

    @usableFromInline
    static func shortened(_ name: String) -> String {
        String(String.UnicodeScalarView(name.unicodeScalars.prefix(maxNameBytes / 4)))
    }
}

/// A file that belongs to a message. Sizes in bytes, lengths in pixels, duration in seconds.
public struct ChatAttachment: Hashable, Sendable {
    public enum Kind: String, Sendable, CaseIterable {
        case image, video, audio, document, file
    }

    public var kind: Kind
    public var url: String?
    public var name: String?
    public var size: Int64?
    public var mime: String?
    public var thumbnail: String?
    public var width: Int64?
    public var height: Int64?
    public var duration: Double?
    /// The base64 of the file itself, where the wire carries it within the frame. Never printed.
    public var inline: String?
    public var fileID: String?

    @inlinable
    public init(
        kind: Kind, url: String? = nil, name: String? = nil, size: Int64? = nil, mime: String? = nil,
        thumbnail: String? = nil, width: Int64? = nil, height: Int64? = nil, duration: Double? = nil,
        inline: String? = nil, fileID: String? = nil
    ) {
        self.kind = kind
        self.url = url
        self.name = name
        self.size = size
        self.mime = mime
        self.thumbnail = thumbnail
        self.width = width
        self.height = height
        self.duration = duration
        self.inline = inline
        self.fileID = fileID
    }
}

/// A message. May consist of attachments and an empty text.
public struct ChatMessage: Hashable, Sendable {
    public var id: ChatID?
    public var sender: ChatPerson
    /// Passed through untouched: CR, LF, NUL and bidi controls included.
    public var text: String
    public var at: ChatTimestamp?
    /// The sender is one of us: by id where there are ids, else by exact name.
    public var isSelf: Bool
    /// The sender's name is certainly that of the account, where the wire has a name field that may hold another.
    public var isUnderOwnName = false
    public var isEncrypted: Bool
    /// Attributes that few messages have, boxed so that an ordinary message is cheap to copy and to drop; nil while all of
    /// them are absent.
    @usableFromInline var rest: Rest?

    /// To add an attribute: a property here, a line in `changeTexts` where it is text, and an accessor below.
    @usableFromInline
    struct RareAttributes: Hashable, Sendable {
        @usableFromInline var room: String?
        @usableFromInline var attachments: [ChatAttachment] = []
        @usableFromInline var replyTo: ChatID?
        @usableFromInline var ref: String?
        @usableFromInline var annotations: [StoredTag] = []

        @usableFromInline
        init() {}

        mutating func changeTexts(_ change: (String) -> String) {
            annotations = annotations.map { StoredTag(name: $0.name, value: $0.value.map(change)) }
        }
    }

    /// Whether `changeTexts` can change more than the text.
    public var hasRareAttributes: Bool { rest != nil }

    /// Changes each text that clients can see, except of attachments.
    public mutating func changeTexts(_ change: (String) -> String) {
        text = change(text)
        guard rest != nil else { return }
        rare.changeTexts(change)
    }

    /// The box. Never changed once it is shared.
    @usableFromInline
    final class Rest: Hashable, Sendable {
        let rare: RareAttributes

        /// Nil when all attributes are absent.
        @usableFromInline
        static func make(_ rare: RareAttributes) -> Rest? { rare == RareAttributes() ? nil : Rest(rare) }

        private init(_ rare: RareAttributes) { self.rare = rare }

        @usableFromInline
        static func == (a: Rest, b: Rest) -> Bool { a === b || a.rare == b.rare }

        @usableFromInline
        func hash(into hasher: inout Hasher) { hasher.combine(rare) }
    }

    private var rare: RareAttributes {
        get { rest?.rare ?? RareAttributes() }
        set { rest = Rest.make(newValue) }
    }

    public var room: String? {
        get { rest?.rare.room }
        set { rare.room = newValue }
    }

    public var attachments: [ChatAttachment] {
        get { rest?.rare.attachments ?? [] }
        set { rare.attachments = newValue }
    }

    public var replyTo: ChatID? {
        get { rest?.rare.replyTo }
        set { rare.replyTo = newValue }
    }

    /// The reference that the relay gave with the message, as the backend repeats it.
    public var ref: String? {
        get { rest?.rare.ref }
        set { rare.ref = newValue }
    }

    /// What the backend says beside the text and rooms do not act on, for clients and the log as it is. Names are those
    /// of client-only tags of a vendor: `+example.com/priority`.
    public var annotations: [StoredTag] {
        get { rest?.rare.annotations ?? [] }
        set { rare.annotations = newValue }
    }
}

// In an extension, so that the compiler makes the initializer of all properties, without a copy of its result.
extension ChatMessage {
    @inlinable
    public init(
        id: ChatID? = nil, room: String? = nil, sender: ChatPerson = ChatPerson(), text: String,
        at: ChatTimestamp? = nil, attachments: [ChatAttachment] = [], replyTo: ChatID? = nil, ref: String? = nil,
        isSelf: Bool = false, isEncrypted: Bool = false, annotations: [StoredTag] = []
    ) {
        self.id = id
        self.sender = sender
        self.text = text
        self.at = at
        self.isSelf = isSelf
        self.isEncrypted = isEncrypted
        var rare = RareAttributes()
        rare.room = room
        rare.attachments = attachments
        rare.replyTo = replyTo
        rare.ref = ref
        rare.annotations = annotations
        rest = Rest.make(rare)
    }

    /// The message of every day.
    @inlinable
    public init(id: ChatID?, sender: ChatPerson, text: String, at: ChatTimestamp?, isSelf: Bool) {
        self.id = id
        self.sender = sender
        self.text = text
        self.at = at
        self.isSelf = isSelf
        isEncrypted = false
        rest = nil
    }

    /// The same, and the quickest way to one.
    public static func plain(
        id: consuming ChatID?, sender: consuming ChatPerson, text: consuming String, at: ChatTimestamp?, isSelf: Bool
    ) -> ChatMessage {
        ChatMessage(id: id, sender: sender, text: text, at: at, isSelf: isSelf, isEncrypted: false, rest: nil)
    }

    /// The same with rare attributes.
    public static func plain(
        id: consuming ChatID?, room: String?, sender: consuming ChatPerson, text: consuming String, at: ChatTimestamp?,
        attachments: [ChatAttachment], replyTo: ChatID?, isSelf: Bool
    ) -> ChatMessage {
        var rare = RareAttributes()
        rare.room = room
        rare.attachments = attachments
        rare.replyTo = replyTo
        return ChatMessage(
            id: id, sender: sender, text: text, at: at, isSelf: isSelf, isEncrypted: false, rest: Rest.make(rare))
    }
}

/// New text for an old message.
public struct ChatEdit: Hashable, Sendable {
    // In this order it ends with a whole word, see `ChatReaction`.
    public var id: ChatID
    public var text: String
    public var room: String?
    public var sender: ChatPerson
    public var at: ChatTimestamp?
    public var isSelf: Bool
    public var attachments: [ChatAttachment]

    @inlinable
    public init(
        id: ChatID, text: String, room: String? = nil, sender: ChatPerson = ChatPerson(), at: ChatTimestamp? = nil,
        attachments: [ChatAttachment] = [], isSelf: Bool = false
    ) {
        self.id = id
        self.text = text
        self.room = room
        self.sender = sender
        self.at = at
        self.attachments = attachments
        self.isSelf = isSelf
    }
}

/// Messages taken back.
public struct ChatDelete: Hashable, Sendable {
    public var ids: [ChatID]
    public var room: String?
    public var sender: ChatPerson

    @inlinable
    public init(ids: [ChatID], room: String? = nil, sender: ChatPerson = ChatPerson()) {
        self.ids = ids
        self.room = room
        self.sender = sender
    }
}

/// A start or stop of typing.
public struct ChatTyping: Hashable, Sendable {
    public enum State: String, Sendable, CaseIterable { case start, stop }

    public var state: State
    public var sender: ChatPerson
    public var room: String?
    /// How long a start holds without another, in milliseconds.
    public var ttlMilliseconds: Int64?
    public var isSelf: Bool
    /// Outgoing only: the fresh id that some wires want in a typing frame.
    public var id: ChatID?
    public var at: ChatTimestamp?

    @inlinable
    public init(
        state: State, sender: ChatPerson = ChatPerson(), room: String? = nil, ttlMilliseconds: Int64? = nil,
        isSelf: Bool = false, id: ChatID? = nil, at: ChatTimestamp? = nil
    ) {
        self.state = state
        self.sender = sender
        self.room = room
        self.ttlMilliseconds = ttlMilliseconds
        self.isSelf = isSelf
        self.id = id
        self.at = at
    }
}

/// The state of messages. `sent`: the server has it; `delivered`: some client has it; `read`: a person saw it.
public struct ChatReceipt: Hashable, Sendable {
    public enum State: String, Sendable, CaseIterable { case sent, delivered, read }

    public var state: State
    public var ids: [ChatID]
    /// The reader or recipient; absent where the wire has none.
    public var by: ChatPerson
    public var ref: String?
    public var at: ChatTimestamp?
    public var room: String?
    public var isSelf: Bool

    @inlinable
    public init(
        state: State, ids: [ChatID], by: ChatPerson = ChatPerson(), ref: String? = nil, at: ChatTimestamp? = nil,
        room: String? = nil, isSelf: Bool = false
    ) {
        self.state = state
        self.ids = ids
        self.by = by
        self.ref = ref
        self.at = at
        self.room = room
        self.isSelf = isSelf
    }
}

/// A join or a leave.
public struct ChatMembership: Hashable, Sendable {
    public var user: ChatPerson
    public var room: String?
    public var at: ChatTimestamp?
    public var isSelf: Bool

    @inlinable
    public init(user: ChatPerson, room: String? = nil, at: ChatTimestamp? = nil, isSelf: Bool = false) {
        self.user = user
        self.room = room
        self.at = at
        self.isSelf = isSelf
    }
}

/// A person's availability.
public struct ChatPresence: Hashable, Sendable {
    public enum State: String, Sendable, CaseIterable { case online, away, offline }

    public var user: ChatPerson
    public var state: State
    public var room: String?

    @inlinable
    public init(user: ChatPerson, state: State, room: String? = nil) {
        self.user = user
        self.state = state
        self.room = room
    }
}

/// An emoji put on a message, or taken off.
public struct ChatReaction: Hashable, Sendable {
    public enum Operation: String, Sendable, CaseIterable { case add, remove }

    /// The whole count of one emoji on the message, as some wires repeat it with each change.
    public struct Count: Hashable, Sendable {
        public var emoji: String
        public var count: Int64
        public var users: [String]

        public init(emoji: String, count: Int64, users: [String] = []) {
            self.emoji = emoji
            self.count = count
            self.users = users
        }
    }

    // The largest of all that an event can be: in this order it is small enough to be moved without a call, and ends with
    // a whole word. An event that ended within one would be moved in pieces that overlap, each of which has to wait for
    // those written before.
    public var target: ChatID
    public var emoji: String
    public var sender: ChatPerson
    public var room: String?
    public var at: ChatTimestamp?
    public var operation: Operation
    public var isSelf: Bool
    public var counts: [Count]

    @inlinable
    public init(
        target: ChatID, emoji: String, operation: Operation, sender: ChatPerson = ChatPerson(), room: String? = nil,
        at: ChatTimestamp? = nil, counts: [Count] = [], isSelf: Bool = false
    ) {
        self.target = target
        self.emoji = emoji
        self.operation = operation
        self.sender = sender
        self.room = room
        self.at = at
        self.counts = counts
        self.isSelf = isSelf
    }
}

/// The topic of a room; empty: it has none.
public struct ChatTopic: Hashable, Sendable {
    public var text: String
    public var room: String?

    public init(text: String, room: String? = nil) {
        self.text = text
        self.room = room
    }
}

/// Words of the backend itself.
public struct ChatSystemNotice: Hashable, Sendable {
    public var text: String
    public var id: ChatID?
    public var room: String?
    public var at: ChatTimestamp?

    @inlinable
    public init(text: String, id: ChatID? = nil, room: String? = nil, at: ChatTimestamp? = nil) {
        self.text = text
        self.id = id
        self.room = room
        self.at = at
    }
}

/// Messages from before; oldest first.
public struct ChatHistory: Hashable, Sendable {
    public var messages: [ChatMessage]
    public var room: String?
    public var ref: String?

    @inlinable
    public init(messages: [ChatMessage], room: String? = nil, ref: String? = nil) {
        self.messages = messages
        self.room = room
        self.ref = ref
    }
}

/// The session is usable.
public struct ChatReady: Hashable, Sendable {
    public var room: String?
    public var name: String?
    public var ref: String?

    @inlinable
    public init(room: String? = nil, name: String? = nil, ref: String? = nil) {
        self.room = room
        self.name = name
        self.ref = ref
    }
}

/// How a login inside the socket went.
public struct ChatAuth: Hashable, Sendable {
    public enum State: String, Sendable, CaseIterable { case ok, expired, failed, timeout }

    public var state: State
    public var text: String?
    public var refresh: String?
    public var ref: String?

    @inlinable
    public init(state: State, text: String? = nil, refresh: String? = nil, ref: String? = nil) {
        self.state = state
        self.text = text
        self.refresh = refresh
        self.ref = ref
    }
}

/// Credentials for a login inside the socket.
public enum ChatCredentials: Hashable, Sendable {
    case accessToken(String)
    case refreshToken(String)
    case password(email: String, password: String)
}

extension ChatCredentials: Redacted {
    public var description: String { "***" }
}

/// A complaint of the backend.
public struct ChatError: Hashable, Sendable {
    /// What a complaint says of the room.
    public enum RoomState: String, CaseIterable, Sendable {
        /// There is none of that name, or the account may not know of it.
        case unknown
        /// The account may not write in it.
        case readOnly = "read-only"
    }

    public var code: String
    public var text: String
    public var isFatal: Bool
    public var ref: String?
    /// It is about how much is sent, and the backend takes the same again after so long, in milliseconds; nil: it is not.
    public var retryAfterMilliseconds: Int64?
    /// Nil: it is not about the room.
    public var roomState: RoomState?

    @inlinable
    public init(
        code: String, text: String, isFatal: Bool, ref: String? = nil, retryAfterMilliseconds: Int64? = nil,
        roomState: RoomState? = nil
    ) {
        self.code = code
        self.text = text
        self.isFatal = isFatal
        self.ref = ref
        self.retryAfterMilliseconds = retryAfterMilliseconds
        self.roomState = roomState
    }
}

/// An event in a frame. Boxed, so that it costs one reference on each of its ways.
public indirect enum ChatEvent: Hashable, Sendable {
    case message(ChatMessage)
    case edit(ChatEdit)
    case delete(ChatDelete)
    case typing(ChatTyping)
    case receipt(ChatReceipt)
    case join(ChatMembership)
    case leave(ChatMembership)
    case presence(ChatPresence)
    case reaction(ChatReaction)
    case system(ChatSystemNotice)
    case topic(ChatTopic)
    /// The account that the connection is logged in with.
    case account(ChatPerson)
    case history(ChatHistory)
    case ready(ChatReady)
    case auth(ChatAuth)
    case error(ChatError)
    /// A ping inside the JSON, not the protocol's own.
    case ping(ref: String?)
    case pong(ref: String?)
}

extension ChatEvent {
    /// The room that the event names, as the backend calls it; nil where it names none, or has to do with none.
    package var room: String? {
        switch self {
        case .message(let message): message.room
        case .edit(let edit): edit.room
        case .delete(let delete): delete.room
        case .typing(let typing): typing.room
        case .receipt(let receipt): receipt.room
        case .join(let membership), .leave(let membership): membership.room
        case .presence(let presence): presence.room
        case .reaction(let reaction): reaction.room
        case .system(let system): system.room
        case .topic(let topic): topic.room
        case .account, .history, .ready, .auth, .error, .ping, .pong: nil
        }
    }
}

/// A request to a backend.
public enum ChatCommand: Hashable, Sendable {
    case message(ChatMessage)
    case edit(ChatEdit)
    case delete(ChatDelete)
    case typing(ChatTyping)
    case receipt(ChatReceipt)
    case join(ChatMembership)
    case leave(ChatMembership)
    case presence(ChatPresence)
    case reaction(ChatReaction)
    case auth(ChatCredentials, ref: String?)
    case subscribe(room: String?, limit: Int?)
    case fetch(room: String?, ref: String?, limit: Int?, before: ChatTimestamp?, since: ChatTimestamp?)
    case ping(ref: String?)
    case pong(ref: String?)
}
