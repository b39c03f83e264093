import BridgeTypes
import ChatModel
import Rooms
import WireBytes

/// What IRC users say to each other in private: what is kept of it for accounts, what was said lately, and how far people have
/// read it.
package final class PrivateMessages {
    private(set) var conversations = PrivateConversations()
    private(set) var recent = RecentPrivateMessages()
    private(set) var markers = PrivateMarkers()

    // MARK: - Conversations

    func open(_ pair: PrivateConversations.Pair, names: [String], inMemory: Bool) {
        conversations.open(pair, names: names, inMemory: inMemory)
    }

    /// The place of what is said next in a conversation.
    func takePlace(in pair: PrivateConversations.Pair, by author: String, at: ChatTimestamp?) -> Int64 {
        conversations.takePlace(in: pair, by: author, at: at)
    }

    /// It is kept in memory.
    func append(_ message: StoredMessage, to pair: PrivateConversations.Pair) {
        conversations.append(message, to: pair)
    }

    /// A party has this nick, or had it last.
    func note(_ nick: String, folded: String, of party: String) { conversations.note(nick, folded: folded, of: party) }

    /// What the store is to be told.
    func takeChanges() -> [StoreOperation] { conversations.takeChanges() }

    func takeBack(_ msgid: String, in pair: PrivateConversations.Pair) { conversations.takeBack(msgid, in: pair) }

    /// What is kept of an account of this name is not of the one that has it now.
    func forget(account: String) { conversations.forget(account: account) }

    package func restore(_ stored: [StoredConversation], _ nicks: [StoredNick], spell: (String) -> String) {
        conversations.restore(stored, nicks, spell: spell)
    }

    // MARK: - Lately

    func remember(_ message: PrivateMessage) { recent.append(message) }

    func takeBack(_ message: PrivateMessage) { recent.takeBack(message) }

    /// Whether a client may be told in words that something was taken back.
    func takeWord(for client: ClientID, now: MonotonicInstant) -> Bool { recent.takeWord(for: client, now: now) }

    /// The client is gone.
    func forget(_ client: ClientID) { recent.forget(client) }

    // MARK: - Markers

    func moveMarker(_ owner: ChatID, with nick: String, to at: ChatTimestamp) -> PrivateMarkers.Outcome {
        markers.move(owner, with: nick, to: at)
    }

    func forgetMarkers(of owner: ChatID) { markers.forget(owner) }

    package func restore(_ stored: [StoredMarker]) { markers.restore(stored) }
}

/// A conversation, as one of its parties sees it.
struct PrivateView: Equatable {
    var pair: PrivateConversations.Pair
    /// The account that looks, folded.
    var own: String
    /// The other's nick.
    var partner: String
}
