// The erasure of a person: what they said loses its words and its author, and stands as a redacted message.

/// A person whose messages are erased.
public enum StoredPerson: Hashable, Sendable {
    /// An account, by its name, ASCII-folded, and the upstream ids that the relay gives it in rooms.
    case account(String, ids: Set<ChatID>)
    /// A person upstream, by the id, or by the name where the wire has no ids.
    case upstream(backend: String, ChatPerson)

    /// Whether that person is the author of a row of a room.
    public func wrote(_ row: StoredMessage, in room: StoredRoomKey) -> Bool {
        if case .account(let name, _) = self, row.author != nil, let account = row.account, Self.fold(account) == name {
            return true
        }
        return wrote(author: row.author, sender: row.sender, on: room.backend)
    }

    /// - Parameter author: the upstream id of an IRC user; nil: `sender` is the author, upstream.
    public func wrote(author: ChatID?, sender: ChatPerson, on backend: String) -> Bool {
        switch self {
        // A message of an account may come back as a stranger's, after a crash that lost it.
        case .account(_, let ids): (author ?? sender.id).map(ids.contains) ?? false
        case .upstream(backend: backend, let person): author == nil && Self.areSame(sender, person)
        case .upstream: false
        }
    }

    public static func areSame(_ sender: ChatPerson, _ person: ChatPerson) -> Bool {
        if let id = sender.id { return id == person.id }
        return sender.name != nil && TextBytes.areSame(sender.name, person.name)
    }

    private static func fold(_ name: String) -> String {
        String(decoding: name.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }
}

/// How much was erased.
public struct StoredErasure: Equatable, Sendable {
    public var messages = 0
    /// Reactions and changes: by the person, or of their messages.
    public var actions = 0
    /// Whole private conversations.
    public var conversations = 0
    /// Positions, memberships, preferences, names.
    public var records = 0

    public init() {}

    public static func += (sum: inout Self, more: Self) {
        sum.messages += more.messages
        sum.actions += more.actions
        sum.conversations += more.conversations
        sum.records += more.records
    }

    public mutating func count(records: Int) { self.records += records }

    public mutating func countConversation() { conversations += 1 }

    public mutating func count(_ kind: StoredMessage.Kind) {
        if StoredMessage.Kind.ofDeeds.contains(kind) { actions += 1 } else { messages += 1 }
    }
}

extension ChatID {
    /// The author of what erased IRC users said. A message in an outbox that has it is erased once it has arrived.
    public static let erased = ChatID("00000000-0000-0000-0000-000000000000")
}
