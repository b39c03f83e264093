// What the bridge tells the store. The bridge never waits for an answer but one: whether what an IRC user said is kept.

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

/// One change of what is kept. Those of one order are kept together or not at all; those about something that is not kept
/// (any more) change nothing.
public enum StoreOperation: Equatable, Sendable {
    /// Keeps a message of an IRC user. The only change that can be refused: whoever asked must hear when it is not kept.
    case accept(StoredOutboxEntry)
    /// What is known of an accepted message has changed.
    case outboxState(ChatID, StoredOutboxEntry.State, confirmedPieces: Int, reason: String?)
    /// An accepted message has arrived, or need not be remembered.
    case leaveOutbox(ChatID)
    /// Something new in a room's order. A message whose msgid the room has already moves to the new place.
    case message(StoredRoomKey, StoredMessage)
    /// The backend's id of a message became known.
    case learn(StoredRoomKey, msgid: String, upstreamID: ChatID)
    case edit(StoredRoomKey, msgid: String, text: String)
    /// The words go, their place stays.
    case takeBack(StoredRoomKey, msgid: String)
    /// The words of one of the messages that were taken back last, and of what was done to it, come back. Too late: nothing.
    case restore(StoredRoomKey, msgid: String)
    case marker(StoredRoomKey, StoredMarker)
    case receipt(StoredRoomKey, StoredReceipt)
    /// Everything said in the room before `until` was handed over before this; `counted` is that moment in nanoseconds of the
    /// machine's monotonic clock, where it is known.
    case live(StoredRoomKey, until: ChatTimestamp, counted: Int64? = nil)
    /// Enters somebody, or changes their nick, name and the time they were last seen.
    case identity(StoredIdentity)
    case forgetIdentity(backend: String, ChatPerson)
    case cursor(StoredCursor)
    case dropCursor(account: String, client: String, StoredRoomKey)
    /// Enters an account, in the place of one of that very name.
    case account(StoredAccount)
    case forgetAccount(name: String)
    /// What an IRC user who was `author` left is nobody's: read markers of rooms and conversations go, and what was told of
    /// readers. Accepted messages are `nobody`'s, who has no client, and failed ones count as told.
    case forgetAuthor(ChatID, as: ChatID)
    /// All messages of a private conversation go; what is said in it later begins a new one.
    case forgetConversation(StoredRoomKey)
    /// Enters whose a nick is, in the place of what was known of it.
    case nick(StoredNick)
    /// - Parameter folded: the nick, in the form in which nicks are compared.
    case forgetNick(folded: String)
    /// Enters what an account chose, in the place of all that it chose before.
    case choices(StoredChoices)
    /// Enters that an account is in a room, in the place of what was known of that.
    case membership(StoredMembership)
    case endMembership(account: String, StoredRoomKey)

    /// Whether somebody waits to hear that it is kept.
    public var isAcceptance: Bool { if case .accept = self { true } else { false } }
}

/// How the store is.
public enum StoreCondition: Equatable, Sendable {
    case sound
    /// Nothing can be kept at the moment, for this reason (a part of a sentence, such as "the disk is full"). What was
    /// handed over waits, as far as there is room for it; acceptances are refused.
    case failing(String)
}

/// Why the store could not answer, as a part of a sentence.
public struct StoreFailure: Error, Equatable, Sendable {
    public var sentence: String

    public init(_ sentence: String) { self.sentence = sentence }
}
