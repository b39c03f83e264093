// Personal records: private conversations and preferences.

// MARK: - Private conversations

extension StoredRoomKey {
    /// Stands between the two names. No account has it in its name.
    private static let divider: Character = "\n"

    /// A private conversation of two accounts: a room without a backend. The same for both.
    ///
    /// - Parameters: the accounts' names, case-folded; equal for a conversation with oneself.
    public static func conversation(_ one: String, _ other: String) -> StoredRoomKey {
        StoredRoomKey(backend: "", room: "\(min(one, other))\(divider)\(max(one, other))")
    }

    /// The two accounts; nil: it is not a conversation.
    public var parties: (one: String, other: String)? {
        guard backend.isEmpty, let divider = room.firstIndex(of: Self.divider) else { return nil }
        return (String(room[..<divider]), String(room[room.index(after: divider)...]))
    }
}

/// A private conversation with stored messages, now or earlier.
public struct StoredConversation: Equatable, Sendable {
    /// Stored messages of one, the newest; about 5 MB of ordinary talk. The store removes more as they come, a few at a
    /// time.
    public static let maxMessages: Int64 = 5000
    /// Bytes of these messages, about: 8 MiB are 5000 of 1.4 KB each. A message of several lines may have 16 KB.
    public static let maxBytes: Int64 = 8 << 20
    /// Bytes of all messages of an account, about: 32 MiB are six conversations as full of ordinary talk as can be, or two
    /// hundred with 160 KB each.
    public static let maxBytesOfAccount: Int64 = 32 << 20
    /// Size of a message besides its text and tags, about, in bytes.
    public static let fixedByteCount: Int64 = 256

    /// Size of a message for ``maxBytes``, about.
    public static func byteCount(of message: StoredMessage) -> Int64 {
        // As the tags are written, each as a list in a list.
        let tags = message.clientTags.reduce(0) { $0 + 8 + $1.name.utf8.count + ($1.value?.utf8.count ?? 0) }
        return fixedByteCount + Int64(message.text.utf8.count + tags)
    }

    /// Whether a party has no account: a blank stands in front of the nick, which account names cannot have.
    public static func isVisitor(_ party: String) -> Bool { party.first == visitorMark }

    public static let visitorMark: Character = " "

    public var key: StoredRoomKey
    /// The time of the newest message; nil: all messages have expired.
    public var newestAt: ChatTimestamp?
    /// Greater than every place that was ever given in it.
    public var nextSequence: Int64
    /// Recently active accounts, as they were spelled then.
    public var speakers: Set<String>

    /// So many of the newest messages are looked at for ``speakers``.
    public static let speakingCount = 20

    public init(key: StoredRoomKey, newestAt: ChatTimestamp?, nextSequence: Int64, speakers: Set<String> = []) {
        self.key = key
        self.newestAt = newestAt
        self.nextSequence = nextSequence
        self.speakers = speakers
    }
}

/// A nick that an account has, or had last.
public struct StoredNick: Equatable, Sendable {
    /// In the form in which nicks are compared; unique.
    public var folded: String
    /// As it was written.
    public var nick: String
    public var account: String

    public init(folded: String, nick: String, account: String) {
        self.folded = folded
        self.nick = nick
        self.account = account
    }
}

// MARK: - Choices

/// A person that an account has muted.
public struct StoredMute: Hashable, Sendable {
    public enum Target: Hashable, Sendable {
        /// A person upstream, by the id, or by the name where the wire has no ids.
        case remote(backend: String, ChatPerson)
        /// In the form in which accounts are compared.
        case account(String)
        /// An IRC user without an account, by the nick in the form in which nicks are compared.
        case nick(String)
    }

    public var target: Target
    /// How they were called then.
    public var nick: String

    public init(target: Target, nick: String) {
        self.target = target
        self.nick = nick
    }
}

/// An account's preferences.
public struct StoredChoices: Equatable, Sendable {
    /// In the form in which accounts are compared; unique.
    public var account: String
    /// The policy for read receipts, in the bridge's word for it; nil: unset.
    public var receipts: String?
    /// Whether it receives delivery and read notices at once.
    public var wantsNotices: Bool
    /// Whether a login restores its rooms; nil: unset.
    public var rejoins: Bool?
    /// In the order in which they were chosen.
    public var mutes: [StoredMute]

    public init(
        account: String, receipts: String? = nil, wantsNotices: Bool = false, rejoins: Bool? = nil,
        mutes: [StoredMute] = []
    ) {
        self.account = account
        self.receipts = receipts
        self.wantsNotices = wantsNotices
        self.rejoins = rejoins
        self.mutes = mutes
    }

    /// No preference is set: nothing need be stored.
    public var isEmpty: Bool { receipts == nil && !wantsNotices && rejoins == nil && mutes.isEmpty }
}

// MARK: - Rooms

/// An account's membership of a room, also while no client is logged in to it.
public struct StoredMembership: Hashable, Sendable {
    /// As written.
    public var account: String
    public var room: StoredRoomKey
    /// As which IRC users knew it then, with its `#`.
    public var channel: String
    /// Greater than that of the rooms that the account entered before.
    public var position: Int64

    public init(account: String, room: StoredRoomKey, channel: String, position: Int64) {
        self.account = account
        self.room = room
        self.channel = channel
        self.position = position
    }
}
