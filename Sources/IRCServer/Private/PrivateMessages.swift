import BridgeTypes
import ChatModel
import Rooms
import WireBytes

/// Private messages of IRC users: the stored conversations of accounts, recent messages, and read markers.
package final class PrivateMessages {
    private(set) var conversations = PrivateConversations()
    private(set) var recent = RecentPrivateMessages()
    private(set) var markers: PrivateMarkers
    private let fold: (String) -> String

    /// - Parameter fold: the form in which nicks are compared.
    init(fold: @escaping (String) -> String) {
        self.fold = fold
        markers = PrivateMarkers(fold: fold)
    }

    // MARK: - Conversations

    func open(_ pair: PrivateConversations.Pair, names: [String], inMemory: Bool) {
        conversations.open(pair, names: names, inMemory: inMemory)
    }

    /// The position of the next message of a conversation.
    func takePlace(in pair: PrivateConversations.Pair, by author: String, at: ChatTimestamp?) -> Int64 {
        conversations.takePlace(in: pair, by: author, at: at)
    }

    /// Retains a message in memory.
    func append(_ message: StoredMessage, to pair: PrivateConversations.Pair) {
        conversations.append(message, to: pair)
    }

    /// Notes the present or last nick of a party.
    func note(_ nick: String, folded: String, of party: String) { conversations.note(nick, folded: folded, of: party) }

    /// Changes to persist.
    func takeChanges() -> [StoreOperation] { conversations.takeChanges() }

    func takeBack(_ msgid: String, in pair: PrivateConversations.Pair) { conversations.takeBack(msgid, in: pair) }

    /// Purges the conversations of an earlier account of this name.
    func forget(account: String) { conversations.forget(account: account) }

    package func restore(_ stored: [StoredConversation], _ nicks: [StoredNick], spell: (String) -> String) {
        conversations.restore(stored, nicks, spell: spell, fold: fold)
    }

    // MARK: - Recent messages

    func remember(_ message: PrivateMessage) { recent.append(message) }

    func takeBack(_ message: PrivateMessage) { recent.takeBack(message) }

    /// Whether a client may get a redaction notice.
    func takeWord(for client: ClientID, now: MonotonicInstant) -> Bool { recent.takeWord(for: client, now: now) }

    /// Removes a disconnected client.
    func forget(_ client: ClientID) { recent.forget(client) }

    // MARK: - Markers

    func moveMarker(_ owner: ChatID, with nick: String, to at: ChatTimestamp) -> PrivateMarkers.Outcome {
        markers.move(owner, with: nick, to: at)
    }

    func forgetMarkers(of owner: ChatID) { markers.forget(owner) }

    package func restore(_ stored: [StoredMarker]) { markers.restore(stored) }
}

/// A conversation as seen by one of its parties.
struct PrivateView: Equatable {
    var pair: PrivateConversations.Pair
    /// The account of that party, folded.
    var own: String
    /// The other's nick.
    var partner: String
}
