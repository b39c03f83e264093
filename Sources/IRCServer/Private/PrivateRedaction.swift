import ChatModel
import Rooms

/// A REDACT of a private message that is looked up in the store.
///
/// | phase   | meaning                              | leaves by                                                    |
/// |---------|--------------------------------------|--------------------------------------------------------------|
/// | begun   | queued behind other answers          | its turn → placing                                           |
/// | placing | the message's position is being read | position → reading; none → found; failure, time-out → failed |
/// | reading | the message is being read            | answer → found; failure, time-out → failed                   |
/// | found   | it is redacted, or refused           | over                                                         |
/// | failed  | a refusal goes out                   | over                                                         |
///
/// While it waits the client's later lines wait too.
package final class PrivateRedaction {
    enum Phase {
        case begun
        case placing(StoreReadID)
        case reading(StoreReadID)
        case found(StoredMessage?)
        case failed
    }

    /// The client's name for the other party.
    let nick: String
    let msgid: String
    let reason: String?
    let pair: PrivateConversations.Pair
    /// The requesting account, folded.
    let own: String
    let label: String?
    private(set) var phase = Phase.begun

    init(
        _ nick: String, _ msgid: String, reason: String?, _ pair: PrivateConversations.Pair, own: String, label: String?
    ) {
        self.nick = nick
        self.msgid = msgid
        self.reason = reason
        self.pair = pair
        self.own = own
        self.label = label
    }

    /// The position was requested from the store, or the message.
    func ask(_ read: StoreReadID) {
        if case .begun = phase { phase = .placing(read) } else { phase = .reading(read) }
    }

    /// - Parameter message: nil: there is no such message.
    func found(_ message: StoredMessage?) { phase = .found(message) }

    func fail() { phase = .failed }

    func isAsking(_ id: StoreReadID) -> Bool {
        switch phase {
        case .placing(let read), .reading(let read): read == id
        case .begun, .found, .failed: false
        }
    }
}
