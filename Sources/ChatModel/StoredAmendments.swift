// What happened to a message later, for those who follow a room's order.

extension StoredMessage {
    /// A change of an earlier message by its author, or its redaction. The message's own row has it already, so histories
    /// leave these rows out: they are events that count as redacted.
    public enum Amendment: Equatable, Sendable {
        case edit(msgid: String, text: String)
        case takenBack(msgid: String)
    }

    private static let (editWord, redactWord) = ("EDIT", "REDACT")

    /// - Parameter by: who changed it, as far as that is known.
    public static func amending(
        _ amendment: Amendment, sequence: Int64, msgid: String, at: ChatTimestamp, nick: String, source: String,
        account: String? = nil, sender: ChatPerson = ChatPerson(), author: ChatID? = nil
    ) -> StoredMessage {
        let (word, target, text): (String, String, String?) =
            switch amendment {
            case .edit(let target, let text): (editWord, target, text)
            case .takenBack(let target): (redactWord, target, nil)
            }
        return StoredMessage(
            kind: .event, sequence: sequence, msgid: msgid, sender: sender, at: at, nick: nick, source: source,
            account: account, text: word, sentAs: text, clientTags: [StoredTag(name: replyTag, value: target)],
            author: author, isTakenBack: true)
    }

    /// Nil for other rows, and where the message was redacted since.
    public var amendment: Amendment? {
        guard self.kind == .event, self.isTakenBack, let target else { return nil }
        switch self.text {
        case Self.editWord: return self.sentAs.map { .edit(msgid: target, text: $0) }
        case Self.redactWord: return .takenBack(msgid: target)
        default: return nil
        }
    }
}

/// A message that a mirror's tool knows under an id of its own.
public struct StoredMirrored: Hashable, Sendable {
    /// The mirror's name.
    public var mirror: String
    public var room: StoredRoomKey
    public var msgid: String
    public var toolID: String
    /// The tool brought it; else it was posted there.
    public var isTheirs: Bool

    /// The client-only tag with the tool's id, of a message that a mirror brings.
    public static let tag = "+chatbridge/id"

    /// As many of the newest are kept for each mirror.
    public static let perMirror = 5000

    public init(mirror: String, room: StoredRoomKey, msgid: String, toolID: String, isTheirs: Bool) {
        self.mirror = mirror
        self.room = room
        self.msgid = msgid
        self.toolID = toolID
        self.isTheirs = isTheirs
    }
}

/// How far a mirror has come, where no delivery cursor says it: the end of a batch under way, or the place in a channel of
/// an IRC network.
public struct StoredBookmark: Hashable, Sendable {
    /// The mirror's name.
    public var mirror: String
    /// What it is about, and where it is: in the mirror's own words.
    public var subject: String
    public var place: String

    public init(mirror: String, subject: String, place: String) {
        self.mirror = mirror
        self.subject = subject
        self.place = place
    }
}
