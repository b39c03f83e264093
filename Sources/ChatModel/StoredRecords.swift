// Persistent records, shared by bridge and store. Tables and files are the store's business; the meaning is the
// bridge's.

/// A room's key in the store: the backend's name for it, independent of the configuration's.
public struct StoredRoomKey: Hashable, Sendable {
    public var backend: String
    /// The room's id or name on the backend.
    public var room: String

    public init(backend: String, room: String) {
        self.backend = backend
        self.room = room
    }
}

/// A client-only tag that came with a message.
public struct StoredTag: Hashable, Sendable {
    public var name: String
    public var value: String?

    public init(name: String, value: String?) {
        self.name = name
        self.value = value
    }
}

/// One thing in a room's order, as IRC users saw it.
///
/// Its attributes are behind a reference, as those of a ``ChatMessage``: the log, the table of recent lines and the store's
/// queue hold the same ones.
@dynamicMemberLookup
public struct StoredMessage: Equatable, Sendable {
    public enum Kind: Int, Sendable, CaseIterable {
        case message = 0
        /// A notice about a gap in the order: messages between ``gapFrom`` and ``backendAt`` are unknown and cannot be
        /// fetched; without ``gapFrom``, the following ones are late.
        case gap = 1
        /// An event such as a reaction: a line without a text of its own. The text is its command, and its parameters
        /// behind the channel, each on a line.
        case event = 2
        /// A NOTICE between IRC users. Rooms have none: no backend supports them.
        case notice = 3
        /// A change of a message by another person than its author, who is the sender where that is known. The tags
        /// name the message, which retains its own text.
        case change = 4
    }

    public struct Attributes: Hashable, Sendable {
        public var kind: Kind
        /// The place in the room's order; unique in the room, and never given twice. Not without holes.
        public var sequence: Int64
        /// The bridge's id; unique in the room.
        public var msgid: String
        /// The backend's id. Nil: it has none, or it is still unknown.
        public var upstreamID: ChatID?
        /// The author as the wire named them.
        public var sender: ChatPerson
        /// The time that IRC clients were shown.
        public var at: ChatTimestamp
        /// The backend's time, unchanged. Of a gap: its end; nil: ``at``.
        public var backendAt: ChatTimestamp?
        /// Of a gap: the time up to which the log is complete.
        public var gapFrom: ChatTimestamp?
        /// The author on IRC, then: nick, `nick!user@host` and account.
        public var nick: String
        public var source: String
        public var account: String?
        /// Of an IRC user's message: as they sent it, CTCP ACTION included. Of others: as it was shown. Of a gap or a change: the
        /// whole line, its `*** ` included.
        public var text: String
        /// The backend's version where it differs: the sent form of an IRC user's message. Of a change: the new text.
        public var sentAs: String?
        public var attachments: [ChatAttachment]
        public var isEncrypted: Bool
        /// The msgid that it answers.
        public var replyTo: String?
        public var clientTags: [StoredTag]
        /// The upstream id of the IRC user as author; nil: the author is upstream.
        public var author: ChatID?
        /// The name of the client through which they wrote it; nil: it has none.
        public var client: String?
        /// The message was redacted; the text is empty.
        public var isTakenBack: Bool
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

    @inlinable
    public static func == (a: Self, b: Self) -> Bool { a.box === b.box || a.box.attributes == b.box.attributes }

    public init(
        kind: Kind = .message, sequence: Int64, msgid: String, upstreamID: ChatID? = nil,
        sender: ChatPerson = ChatPerson(), at: ChatTimestamp, backendAt: ChatTimestamp? = nil,
        gapFrom: ChatTimestamp? = nil, nick: String, source: String, account: String? = nil, text: String,
        sentAs: String? = nil, attachments: [ChatAttachment] = [], isEncrypted: Bool = false, replyTo: String? = nil,
        clientTags: [StoredTag] = [], author: ChatID? = nil, client: String? = nil, isTakenBack: Bool = false
    ) {
        box = Box(
            Attributes(
                kind: kind, sequence: sequence, msgid: msgid, upstreamID: upstreamID, sender: sender, at: at,
                backendAt: backendAt, gapFrom: gapFrom, nick: nick, source: source, account: account, text: text,
                sentAs: sentAs, attachments: attachments, isEncrypted: isEncrypted, replyTo: replyTo,
                clientTags: clientTags, author: author, client: client, isTakenBack: isTakenBack))
    }
}

extension StoredMessage.Kind {
    /// It may be done to a message, and goes with that.
    public static let ofDeeds: [Self] = [.event, .change]
    /// It holds words that may be looked for.
    public static let ofWords: [Self] = [.message, .notice, .change]
}

extension StoredMessage {
    /// The tag by which an event names its message.
    public static let replyTag = "+reply"

    /// Whether it was done to that message.
    public func wasDone(to msgid: String) -> Bool {
        Kind.ofDeeds.contains(self.kind) && self.clientTags.contains { $0.name == Self.replyTag && $0.value == msgid }
    }

    /// The backend's id became known.
    public mutating func learn(_ upstreamID: ChatID) { self.upstreamID = upstreamID }

    /// Replaces the text. Redacted messages stay empty.
    public mutating func edit(_ text: String) {
        guard !self.isTakenBack else { return }
        change { ($0.text, $0.sentAs) = (text, nil) }
    }

    /// The words go, their place stays.
    public mutating func takeBack() {
        change {
            ($0.text, $0.sentAs, $0.attachments, $0.clientTags) = ("", nil, [], [])
            $0.isTakenBack = true
        }
    }

    /// Only ids, time and place stay.
    public mutating func erase() {
        takeBack()
        change {
            ($0.nick, $0.source, $0.account, $0.client, $0.replyTo) = ("", "", nil, nil, nil)
            $0.sender = ChatPerson()
            if $0.author != nil { $0.author = .erased }
        }
    }

    public var isErased: Bool { self.isTakenBack && self.nick.isEmpty && self.source.isEmpty }

    /// The msgid of the message to which it was done.
    public var target: String? {
        guard Kind.ofDeeds.contains(self.kind) else { return nil }
        return self.clientTags.first { $0.name == Self.replyTag }?.value
    }
}

/// A message of an IRC user that was accepted and is not known to have arrived.
public struct StoredOutboxEntry: Equatable, Sendable {
    public enum State: Int, Sendable, CaseIterable {
        /// Certainly not on the wire, or of a wire on which sending it again makes no second message.
        case queued = 0
        /// May be on the wire, and sending it again may make a second message of it.
        case written = 1
        /// Given up; the author is still to be notified.
        case failed = 2
        /// Given up, and the author was notified. Retained a while for a late confirmation.
        case told = 3
        /// The backend's connection has read it and IRC has seen it; a history may still decide whether it arrived.
        case delivered = 4
    }

    /// The relay's id, and the message's id upstream where the wire lets senders name ids. Unique.
    public var id: ChatID
    public var room: StoredRoomKey
    /// The account with the own link; empty: the room's link.
    public var link: String
    /// As it goes up.
    public var sender: ChatPerson
    public var sentAs: String
    public var attachments: [ChatAttachment]
    /// The backend's id of the message that it answers.
    public var replyTo: ChatID?
    /// When it was accepted, by the wall clock; also the time that it bears upstream.
    public var acceptedAt: ChatTimestamp
    /// The newest place in the room's order then; nil: unknown.
    public var saidAfter: Int64?
    /// The author: upstream id, then nick, `nick!user@host` and account at that time.
    public var author: ChatID
    public var nick: String
    public var source: String
    public var account: String?
    /// The name of the author's client; nil: it has none.
    public var client: String?
    /// As the IRC user sent it.
    public var text: String
    public var clientTags: [StoredTag]
    public var state: State
    /// Of a message cut into pieces: so many of them, from the first on, are confirmed.
    public var confirmedPieces: Int
    /// Why it was given up, as a part of a sentence.
    public var reason: String?

    public init(
        id: ChatID, room: StoredRoomKey, link: String = "", sender: ChatPerson, sentAs: String,
        attachments: [ChatAttachment] = [], replyTo: ChatID? = nil, acceptedAt: ChatTimestamp,
        saidAfter: Int64? = nil, author: ChatID,
        nick: String, source: String, account: String? = nil, client: String? = nil, text: String,
        clientTags: [StoredTag] = [], state: State = .queued, confirmedPieces: Int = 0, reason: String? = nil
    ) {
        self.id = id
        self.room = room
        self.link = link
        self.sender = sender
        self.sentAs = sentAs
        self.attachments = attachments
        self.replyTo = replyTo
        self.acceptedAt = acceptedAt
        self.saidAfter = saidAfter
        self.author = author
        self.nick = nick
        self.source = source
        self.account = account
        self.client = client
        self.text = text
        self.clientTags = clientTags
        self.state = state
        self.confirmedPieces = confirmedPieces
        self.reason = reason
    }
}

/// Up to where an IRC user has read in a room.
public struct StoredMarker: Equatable, Sendable {
    /// The upstream id under which they are in the room.
    public var reader: ChatID
    public var at: ChatTimestamp
    public var sequence: Int64

    public init(reader: ChatID, at: ChatTimestamp, sequence: Int64) {
        self.reader = reader
        self.at = at
        self.sequence = sequence
    }
}

/// A person's delivery and read positions in an IRC user's messages, as reported to the author. -1: none.
public struct StoredReceipt: Equatable, Sendable {
    /// The upstream id of the IRC user.
    public var author: ChatID
    public var reader: ChatPerson
    public var deliveredSequence: Int64
    public var readSequence: Int64

    public init(author: ChatID, reader: ChatPerson, deliveredSequence: Int64, readSequence: Int64) {
        self.author = author
        self.reader = reader
        self.deliveredSequence = deliveredSequence
        self.readSequence = readSequence
    }
}

/// A person upstream and their nick.
public struct StoredIdentity: Equatable, Sendable {
    public var backend: String
    /// By their id where the wire has ids, else by the name.
    public var person: ChatPerson
    public var nick: String
    /// The display name, without controls.
    public var realname: String
    public var lastSeen: ChatTimestamp

    public init(backend: String, person: ChatPerson, nick: String, realname: String, lastSeen: ChatTimestamp) {
        self.backend = backend
        self.person = person
        self.nick = nick
        self.realname = realname
        self.lastSeen = lastSeen
    }
}

/// A client's delivery cursor in a room.
public struct StoredCursor: Hashable, Sendable {
    public var account: String
    /// The client's name: the part behind `@` in its login name, else its ident.
    public var client: String
    public var room: StoredRoomKey
    public var sequence: Int64

    public init(account: String, client: String, room: StoredRoomKey, sequence: Int64) {
        self.account = account
        self.client = client
        self.room = room
        self.sequence = sequence
    }
}

/// A registered account.
public struct StoredAccount: Hashable, Sendable {
    /// As written; unique.
    public var name: String
    /// The password's verifier, as `chatbridge hash-password` prints it.
    public var password: String
    public var madeAt: ChatTimestamp

    public init(name: String, password: String, madeAt: ChatTimestamp) {
        self.name = name
        self.password = password
        self.madeAt = madeAt
    }
}

/// The stored state of one room, for a starting bridge.
public struct StoredRoom: Equatable, Sendable {
    /// The newest ones, oldest first; as many as the bridge asked for.
    public var messages: [StoredMessage]
    /// In the order of acceptance, given-up ones included.
    public var outbox: [StoredOutboxEntry]
    public var markers: [StoredMarker]
    public var receipts: [StoredReceipt]
    /// All messages before this, while the link was up, are stored; nil: unknown.
    public var liveUntil: ChatTimestamp?
    /// The same moment in nanoseconds of the machine's monotonic clock; nil: unknown, or the machine was restarted
    /// since.
    public var liveCounted: Int64?
    /// The backend pushed the history when the last link was opened, although its format has none.
    public var isHistoryUnasked: Bool
    /// Greater than every place that was ever given in the room.
    public var nextSequence: Int64

    public init(
        messages: [StoredMessage] = [], outbox: [StoredOutboxEntry] = [], markers: [StoredMarker] = [],
        receipts: [StoredReceipt] = [], liveUntil: ChatTimestamp? = nil, liveCounted: Int64? = nil,
        isHistoryUnasked: Bool = false, nextSequence: Int64 = 0
    ) {
        self.messages = messages
        self.outbox = outbox
        self.markers = markers
        self.receipts = receipts
        self.liveUntil = liveUntil
        self.liveCounted = liveCounted
        self.isHistoryUnasked = isHistoryUnasked
        self.nextSequence = nextSequence
    }
}

/// The stored state at start.
public struct StoredState: Equatable, Sendable {
    /// The newest of a room's messages that a bridge wants when it starts: as many as it recognises again.
    public static let messagesPerRoom = 2000

    /// A bridge answers clients while it reads their messages, one room after another.
    public var rooms: [StoredRoomKey: StoredRoom]
    public var identities: [StoredIdentity]
    public var cursors: [StoredCursor]
    /// In the order in which they were made.
    public var accounts: [StoredAccount]
    /// Private conversations, the one with the newest message first.
    public var conversations: [StoredConversation]
    /// Those that were entered last come last.
    public var nicks: [StoredNick]
    public var choices: [StoredChoices]
    /// Those of one account stand together, in the order of their positions.
    public var memberships: [StoredMembership]
    /// Oldest first.
    public var mirrored: [StoredMirrored]
    public var bookmarks: [StoredBookmark]

    public init(
        rooms: [StoredRoomKey: StoredRoom] = [:], identities: [StoredIdentity] = [], cursors: [StoredCursor] = [],
        accounts: [StoredAccount] = [], conversations: [StoredConversation] = [], nicks: [StoredNick] = [],
        choices: [StoredChoices] = [], memberships: [StoredMembership] = [],
        mirrored: [StoredMirrored] = [], bookmarks: [StoredBookmark] = []
    ) {
        self.rooms = rooms
        self.identities = identities
        self.cursors = cursors
        self.accounts = accounts
        self.conversations = conversations
        self.nicks = nicks
        self.choices = choices
        self.memberships = memberships
        self.mirrored = mirrored
        self.bookmarks = bookmarks
    }
}
