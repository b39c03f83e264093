// Orders to the store. The bridge waits for one answer only: whether an IRC user's message is stored.

/// Names one order to the store. Orders are carried out in the order of their tickets.
public struct StoreTicket: Hashable, Comparable, Sendable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// Names one question to the store.
public struct StoreReadID: Hashable, Sendable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// One change of the store. Those of one order are one transaction; changes to missing records do nothing.
public enum StoreOperation: Equatable, Sendable {
    /// Stores a message of an IRC user. The only change that can be refused: its author must learn when it is not
    /// stored.
    case accept(StoredOutboxEntry)
    /// Changes the state of an accepted message.
    case outboxState(ChatID, StoredOutboxEntry.State, confirmedPieces: Int, reason: String?)
    /// An accepted message has arrived, or need not be remembered.
    case leaveOutbox(ChatID)
    /// A new entry in a room's order. A message with a known msgid moves to the new place.
    case message(StoredRoomKey, StoredMessage)
    /// The backend's id of a message became known.
    case learn(StoredRoomKey, msgid: String, upstreamID: ChatID)
    case edit(StoredRoomKey, msgid: String, text: String)
    /// The words go, their place stays.
    case takeBack(StoredRoomKey, msgid: String)
    /// Restores the text of a recently redacted message and of the events about it. Too late: nothing.
    case restore(StoredRoomKey, msgid: String)
    case marker(StoredRoomKey, StoredMarker)
    case receipt(StoredRoomKey, StoredReceipt)
    /// Everything before `until` in the room was handed over before this; `counted` is that moment in nanoseconds of
    /// the machine's monotonic clock, where it is known.
    case live(StoredRoomKey, until: ChatTimestamp, counted: Int64? = nil)
    /// Whether the backend pushes the room's history, although its format has none.
    case historyUnasked(StoredRoomKey, Bool)
    /// Enters a person, or changes their nick, name and last activity.
    case identity(StoredIdentity)
    case removeIdentity(backend: String, ChatPerson)
    case cursor(StoredCursor)
    case dropCursor(account: String, client: String, StoredRoomKey)
    /// Enters an account, in the place of one of that very name.
    case account(StoredAccount)
    case removeAccount(name: String)
    /// Detaches the records of the IRC user `author`: read markers of rooms and conversations go, and receipts.
    /// Accepted messages become `nobody`'s, which has no client, and failed ones count as reported.
    case removeAuthor(ChatID, as: ChatID)
    /// Removes all messages of a private conversation; later ones begin a new one.
    case removeConversation(StoredRoomKey)
    /// Enters the owner of a nick, or replaces it.
    case nick(StoredNick)
    /// - Parameter folded: the nick, in the form in which nicks are compared.
    case removeNick(folded: String)
    /// Enters an account's preferences, or replaces them.
    case choices(StoredChoices)
    /// Enters an account's membership of a room, or replaces it.
    case membership(StoredMembership)
    case endMembership(account: String, StoredRoomKey)
    /// A mirror's tool has a message under this id. The oldest ones go; see ``StoredMirrored/perMirror``.
    case mirrored(StoredMirrored)
    /// Enters a bookmark of a mirror, or replaces it.
    case bookmark(StoredBookmark)

    /// Whether an author waits for the result.
    public var isAcceptance: Bool { if case .accept = self { true } else { false } }
}

/// How the store is.
public enum StoreCondition: Equatable, Sendable {
    case sound
    /// The store cannot write, for this reason (a part of a sentence, such as "the disk is full"). Pending orders wait,
    /// as far as there is room for them; acceptances are refused.
    case failing(String)
}

/// Why the store could not answer, as a part of a sentence.
public struct StoreFailure: Error, Equatable, Sendable {
    public var sentence: String

    public init(_ sentence: String) { self.sentence = sentence }
}
