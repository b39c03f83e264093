import BridgeTypes
import ChatModel
import Rooms
import WireBytes

/// A message between two IRC users, as far as taking it back needs it.
struct PrivateMessage {
    /// Who said it, or was told it.
    struct Party {
        /// Who it was then; nil: that is not known any more.
        var person: PersonID?
        /// The account that they had then, folded; nil: none.
        var account: String?
    }

    var msgid: String
    var author: Party
    var reader: Party
    /// What the reader was called then, or what the author calls them now.
    var readerNick: String
    /// The time that it bears.
    var at: ChatTimestamp
    /// The conversation in which it is kept; nil: it is kept nowhere.
    var pair: PrivateConversations.Pair?
    var isTakenBack = false
}

/// What IRC users said to each other in private lately, kept or not: who may take it back, and who is told then.
///
/// Of what accounts said more is found in their conversations. What visitors said is found here alone, so that it is theirs as
/// long as they are the same person, and nobody's who takes their nick later.
struct RecentPrivateMessages {
    /// Messages of all people together: as many as of one room, of each about 300 bytes.
    static let capacity = RecentLog.capacity

    private var ring: [PrivateMessage] = []
    /// Where the next one goes when the ring is full.
    private var oldest = 0
    private var places: [String: Int] = [:]
    /// Of clients that are told in words of what is taken back.
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

    /// The message is known only so that taking it back again is no news.
    mutating func takeBack(_ message: PrivateMessage) {
        if let place = places[message.msgid] {
            ring[place].isTakenBack = true
        } else {
            var message = message
            message.isTakenBack = true
            append(message)
        }
    }
    // MARK: - Words

    /// Whether a client may be told in words that something was taken back: as many as in a room, so that somebody who clears
    /// out a conversation does not push it off the other's screen.
    mutating func takeWord(for client: ClientID, now: MonotonicInstant) -> Bool {
        budgets[client, default: TokenBucket.takenBackWords].take(now: now)
    }

    /// The client is gone.
    mutating func forget(_ client: ClientID) { budgets[client] = nil }
}
