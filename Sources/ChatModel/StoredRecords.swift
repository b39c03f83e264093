// What outlasts the process, as the bridge and the store both speak of it. Which tables and files hold it is the store's
// business; what it means is the bridge's.

/// A room as the store knows it: by what its backend calls it, whatever the configuration calls it.
public struct StoredRoomKey: Hashable, Sendable {
    public var backend: String
    /// The room's id or name on the backend.
    public var room: String

    public init(backend: String, room: String) {
        self.backend = backend
        self.room = room
    }
}

/// A client-only tag that came with a message of an IRC user.
public struct StoredTag: Hashable, Sendable {
    public var name: String
    public var value: String?

    public init(name: String, value: String?) {
        self.name = name
        self.value = value
    }
}

/// One thing in a room's order, as IRC users saw it.
public struct StoredMessage: Equatable, Sendable {
    public enum Kind: Int, Sendable, CaseIterable {
        case message = 0
        /// A word of the bridge's about the order, as the room was told it: what was said between ``gapFrom`` and ``backendAt``
        /// is not known and cannot be fetched; without ``gapFrom``, what follows comes late.
        case gap = 1
        /// Something that was done and not said, such as a reaction: a line without words of its own. The text is its command,
        /// and its parameters behind the channel, each on a line.
        case event = 2
        /// What an IRC user said to another as a NOTICE. Rooms have none: no backend knows such.
        case notice = 3
        /// What somebody else than its author made of a message, who is the sender where that is known. The tags name the message,
        /// which has its own words still.
        case change = 4
    }

    public var kind: Kind
    /// The place in the room's order; unique in the room, and never given twice. Not without holes.
    public var sequence: Int64
    /// The bridge's id; unique in the room.
    public var msgid: String
    /// The backend's id. Nil: it has none, or nobody has told it yet.
    public var upstreamID: ChatID?
    /// The author as the wire named them.
    public var sender: ChatPerson
    /// The time that IRC clients were shown.
    public var at: ChatTimestamp
    /// The time that the backend told, as it told it. Of a gap: its end; nil: ``at``.
    public var backendAt: ChatTimestamp?
    /// Of a gap: when the last thing before it was certainly kept.
    public var gapFrom: ChatTimestamp?
    /// The author on IRC, then: nick, `nick!user@host` and account.
    public var nick: String
    public var source: String
    public var account: String?
    /// Of an IRC user's message: as they sent it, CTCP ACTION included. Of others: as it was shown. Of a gap or a change: the
    /// whole line, its `*** ` included.
    public var text: String
    /// As the backend has it, where that is something else: what went up for an IRC user's message. Of a change: the new words.
    public var sentAs: String?
    public var attachments: [ChatAttachment]
    public var isEncrypted: Bool
    /// The msgid that it answers.
    public var replyTo: String?
    public var clientTags: [StoredTag]
    /// The upstream id of the IRC user who wrote it; nil: somebody upstream did.
    public var author: ChatID?
    /// The name of the client through which they wrote it; nil: it has none.
    public var client: String?
    /// Nobody may read it any more; the text is empty.
    public var isTakenBack: Bool

    public init(
        kind: Kind = .message, sequence: Int64, msgid: String, upstreamID: ChatID? = nil,
        sender: ChatPerson = ChatPerson(), at: ChatTimestamp, backendAt: ChatTimestamp? = nil,
        gapFrom: ChatTimestamp? = nil, nick: String, source: String, account: String? = nil, text: String,
        sentAs: String? = nil, attachments: [ChatAttachment] = [], isEncrypted: Bool = false, replyTo: String? = nil,
        clientTags: [StoredTag] = [], author: ChatID? = nil, client: String? = nil, isTakenBack: Bool = false
    ) {
        self.kind = kind
        self.sequence = sequence
        self.msgid = msgid
        self.upstreamID = upstreamID
        self.sender = sender
        self.at = at
        self.backendAt = backendAt
        self.gapFrom = gapFrom
        self.nick = nick
        self.source = source
        self.account = account
        self.text = text
        self.sentAs = sentAs
        self.attachments = attachments
        self.isEncrypted = isEncrypted
        self.replyTo = replyTo
        self.clientTags = clientTags
        self.author = author
        self.client = client
        self.isTakenBack = isTakenBack
    }
}

extension StoredMessage.Kind {
    /// It may be done to a message, and goes with that.
    public static let ofDeeds: [Self] = [.event, .change]
    /// It holds words that may be looked for.
    public static let ofWords: [Self] = [.message, .notice, .change]
}

extension StoredMessage {
    /// The tag by which what was done names the message that it is about.
    public static let replyTag = "+reply"

    /// Whether it was done to that message.
    public func wasDone(to msgid: String) -> Bool {
        Kind.ofDeeds.contains(kind) && clientTags.contains { $0.name == Self.replyTag && $0.value == msgid }
    }

    /// The backend said how it calls the message.
    public mutating func learn(_ upstreamID: ChatID) { self.upstreamID = upstreamID }

    /// The author said it anew. What was taken back stays so.
    public mutating func edit(_ text: String) {
        guard !isTakenBack else { return }
        self.text = text
        sentAs = nil
    }

    /// The words go, their place stays.
    public mutating func takeBack() {
        text = ""
        sentAs = nil
        attachments = []
        clientTags = []
        isTakenBack = true
    }
}

/// A message of an IRC user that was accepted and is not known to have arrived.
public struct StoredOutboxEntry: Equatable, Sendable {
    public enum State: Int, Sendable, CaseIterable {
        /// Certainly not on the wire, or of a wire on which sending it again makes no second message.
        case queued = 0
        /// May be on the wire, and sending it again may make a second message of it.
        case written = 1
        /// Given up; the author is to be told why.
        case failed = 2
        /// Given up, and the author was told. Kept a while for a confirmation that comes late.
        case told = 3
        /// The backend's connection has read it and IRC has seen it, and a history may yet have to tell whether it is there.
        case delivered = 4
    }

    /// Ours, and the message's id upstream where the wire lets senders name ids. Unique.
    public var id: ChatID
    public var room: StoredRoomKey
    /// The account over whose own link it goes; empty: the room's link.
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
    /// The author: upstream id, then nick, `nick!user@host` and account when it was said.
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

/// Up to where somebody upstream received and read what an IRC user wrote, as the author was told. -1: nothing.
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

/// Somebody upstream and the nick they were given.
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

/// Up to where a client of an account has certainly received what was said in a room.
public struct StoredCursor: Hashable, Sendable {
    public var account: String
    /// The client's name: what follows `@` in the name it logs in with, else its ident.
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

/// Somebody who may log in because they made an account.
public struct StoredAccount: Hashable, Sendable {
    /// As written; unique.
    public var name: String
    /// What is kept of the password, as `chatbridge hash-password` prints it.
    public var password: String
    public var madeAt: ChatTimestamp

    public init(name: String, password: String, madeAt: ChatTimestamp) {
        self.name = name
        self.password = password
        self.madeAt = madeAt
    }
}

/// What is kept of one room, as a bridge that starts needs it.
public struct StoredRoom: Equatable, Sendable {
    /// The newest ones, oldest first; as many as the bridge asked for.
    public var messages: [StoredMessage]
    /// In the order of acceptance, given-up ones included.
    public var outbox: [StoredOutboxEntry]
    public var markers: [StoredMarker]
    public var receipts: [StoredReceipt]
    /// Everything that was said before this, while the link was up, is among what is kept; nil: unknown.
    public var liveUntil: ChatTimestamp?
    /// The same moment in nanoseconds of the machine's monotonic clock, which nobody sets; nil: it is not known, or the
    /// machine was started anew since.
    public var liveCounted: Int64?
    /// Greater than every place that was ever given in the room.
    public var nextSequence: Int64

    public init(
        messages: [StoredMessage] = [], outbox: [StoredOutboxEntry] = [], markers: [StoredMarker] = [],
        receipts: [StoredReceipt] = [], liveUntil: ChatTimestamp? = nil, liveCounted: Int64? = nil,
        nextSequence: Int64 = 0
    ) {
        self.messages = messages
        self.outbox = outbox
        self.markers = markers
        self.receipts = receipts
        self.liveUntil = liveUntil
        self.liveCounted = liveCounted
        self.nextSequence = nextSequence
    }
}

/// What a bridge begins with.
public struct StoredState: Equatable, Sendable {
    /// The newest of a room's messages that a bridge wants when it starts: as many as it recognises again.
    public static let messagesPerRoom = 2000

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

    public init(
        rooms: [StoredRoomKey: StoredRoom] = [:], identities: [StoredIdentity] = [], cursors: [StoredCursor] = [],
        accounts: [StoredAccount] = [], conversations: [StoredConversation] = [], nicks: [StoredNick] = [],
        choices: [StoredChoices] = [], memberships: [StoredMembership] = []
    ) {
        self.rooms = rooms
        self.identities = identities
        self.cursors = cursors
        self.accounts = accounts
        self.conversations = conversations
        self.nicks = nicks
        self.choices = choices
        self.memberships = memberships
    }
}
