// The neutral vocabulary that every dialect is translated into and out of.
//
// A codec is a pure function: a frame becomes events, an event becomes frames. Ids, times, throttling, echo matching
// and splitting belong to the session around it. Optional fields may be absent from a backend's frames; a missing time
// stands for the time of receipt.

/// A person as a frame names them. Either part may be missing; a backend without ids knows people by name.
public struct ChatPerson: Hashable, Sendable {
    // Not as optionals: the compiler copies one of several words by calls through its metadata, and people are copied often.
    @usableFromInline var idOrEmpty: ChatID
    @usableFromInline var nameOrEmpty: String
    @usableFromInline var hasID: Bool
    @usableFromInline var hasName: Bool

    @inlinable
    public var id: ChatID? {
        @inline(__always) get { hasID ? idOrEmpty : nil }
        set { (idOrEmpty, hasID) = (newValue ?? .empty, newValue != nil) }
    }

    @inlinable
    public var name: String? {
        @inline(__always) get { hasName ? nameOrEmpty : nil }
        set { (nameOrEmpty, hasName) = (newValue ?? "", newValue != nil) }
    }

    // Otherwise a call, with a copied result.
    @inlinable @inline(__always)
    public init(id: ChatID? = nil, name: String? = nil) {
        (idOrEmpty, hasID) = (id ?? .empty, id != nil)
        hasName = name != nil
        let name = name ?? ""
        nameOrEmpty = name.utf8.count > Self.maxNameBytes ? Self.shortened(name) : name
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
///
/// Its attributes are behind a reference: messages are passed on often and changed seldom, so a copy costs one reference and
/// a change a new box.
@dynamicMemberLookup
public struct ChatMessage: Hashable, Sendable {
    /// To add an attribute: a property here, and a line in `changeTexts` where it is text.
    public struct Attributes: Hashable, Sendable {
        public var id: ChatID?
        public var sender: ChatPerson
        /// Passed through untouched: CR, LF, NUL and bidi controls included.
        public var text: String
        public var at: ChatTimestamp?
        /// The sender is one of us: by id where there are ids, else by exact name.
        public var isSelf = false
        /// The sender's name is certainly that of the account, where the wire has a name field that may hold another.
        public var isUnderOwnName = false
        public var isEncrypted = false
        public var room: String?
        public var attachments: [ChatAttachment] = []
        public var replyTo: ChatID?
        /// The reference that the relay gave with the message, as the backend repeats it.
        public var ref: String?
        /// What the backend says beside the text and rooms do not act on, for clients and the log as it is. Names are those
        /// of client-only tags of a vendor: `+example.com/priority`.
        public var annotations: [StoredTag] = []
    }

    @usableFromInline
    final class Box: Sendable {
        @usableFromInline let attributes: Attributes

        init(_ attributes: consuming Attributes) { self.attributes = attributes }
    }

    @usableFromInline var box: Box

    @inlinable
    public subscript<Attribute>(dynamicMember path: WritableKeyPath<Attributes, Attribute>) -> Attribute {
        @inline(__always) get { box.attributes[keyPath: path] }
        set { change { $0[keyPath: path] = newValue } }
    }

    /// Changes several attributes at once.
    public mutating func change(_ body: (inout Attributes) -> Void) {
        var attributes = box.attributes
        body(&attributes)
        box = Box(attributes)
    }

    /// The id of the sender, without a copy of the name.
    @inlinable
    public var senderID: ChatID? { box.attributes.sender.id }

    /// Changes each text that clients can see, except of attachments.
    public mutating func changeTexts(_ change: (String) -> String) {
        self.change {
            $0.text = change($0.text)
            $0.annotations = $0.annotations.map { StoredTag(name: $0.name, value: $0.value.map(change)) }
        }
    }

    @inlinable
    public static func == (a: Self, b: Self) -> Bool { a.box === b.box || a.box.attributes == b.box.attributes }

    @inlinable
    public func hash(into hasher: inout Hasher) { hasher.combine(box.attributes) }

    public init(
        id: consuming ChatID? = nil, room: consuming String? = nil, sender: consuming ChatPerson = ChatPerson(),
        text: consuming String, at: ChatTimestamp? = nil, attachments: consuming [ChatAttachment] = [],
        replyTo: consuming ChatID? = nil, ref: consuming String? = nil, isSelf: Bool = false, isEncrypted: Bool = false,
        annotations: consuming [StoredTag] = []
    ) {
        box = Box(
            Attributes(
                id: id, sender: sender, text: text, at: at, isSelf: isSelf, isEncrypted: isEncrypted, room: room,
                attachments: attachments, replyTo: replyTo, ref: ref, annotations: annotations))
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
public enum ChatEvent: Hashable, Sendable {
    case message(ChatMessage)
    indirect case edit(ChatEdit)
    indirect case delete(ChatDelete)
    indirect case typing(ChatTyping)
    indirect case receipt(ChatReceipt)
    indirect case join(ChatMembership)
    indirect case leave(ChatMembership)
    indirect case presence(ChatPresence)
    indirect case reaction(ChatReaction)
    indirect case system(ChatSystemNotice)
    indirect case topic(ChatTopic)
    /// The account that the connection is logged in with.
    indirect case account(ChatPerson)
    indirect case history(ChatHistory)
    indirect case ready(ChatReady)
    indirect case auth(ChatAuth)
    indirect case error(ChatError)
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
