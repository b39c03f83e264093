import BridgeTypes
import ChatModel
import Rooms
import WireBytes

/// A message between two IRC users, as far as REDACT needs it.
struct PrivateMessage {
    /// The author or the reader.
    struct Party {
        /// The person at that time; nil: no longer known.
        var person: PersonID?
        /// The account at that time, folded; nil: none.
        var account: String?
    }

    var msgid: String
    var author: Party
    var reader: Party
    /// The reader's nick at that time, or the author's present name for the reader.
    var readerNick: String
    /// The time in its tag.
    var at: ChatTimestamp
    /// The conversation in which it is stored; nil: it is not stored.
    var pair: PrivateConversations.Pair?
    var isTakenBack = false
}

/// Recent private messages, stored or not: the permission for REDACT, and its recipients.
///
/// Older messages of accounts are found in their conversations. Messages of visitors are only here, so that they belong
/// to the same person alone, and never to a later user of the nick.
struct RecentPrivateMessages {
    /// Limit for all users together: as many as of one room, about 300 bytes each.
    static let capacity = RecentLog.capacity

    private var ring: [PrivateMessage] = []
    /// The index of the next one when the ring is full.
    private var oldest = 0
    private var places: [String: Int] = [:]
    /// Limits of the redaction notices to clients.
    private var budgets: [ClientID: TokenBucket] = [:]

    subscript(msgid: String) -> PrivateMessage? { places[msgid].map { ring[$0] } }

    mutating func append(_ message: PrivateMessage) {
        guard ring.count >= Self.capacity else {
            places[message.msgid] = ring.count
            return ring.append(message)
        }
        places[ring[oldest].msgid] = nil
        places[message.msgid] = oldest
        ring[oldest] = message
        oldest = (oldest + 1) % Self.capacity
    }

    /// Marks a message as redacted; one found elsewhere is added, only so that its next redaction changes nothing.
    mutating func takeBack(_ message: PrivateMessage) {
        if let place = places[message.msgid] {
            ring[place].isTakenBack = true
        } else {
            var message = message
            message.isTakenBack = true
            append(message)
        }
    }
    // MARK: - Redaction notices

    /// Whether a client may get a redaction notice: as many as in a room, so that purging a conversation does not push
    /// it off the other user's screen.
    mutating func takeWord(for client: ClientID, now: MonotonicInstant) -> Bool {
        budgets[client, default: TokenBucket.takenBackWords].take(now: now)
    }

    /// Removes a disconnected client.
    mutating func forget(_ client: ClientID) { budgets[client] = nil }
}
