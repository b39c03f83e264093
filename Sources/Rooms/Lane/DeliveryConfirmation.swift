import Dialects
import WireBytes

// The kind of confirmation of a link's messages.
//
// Written is not delivered: a socket takes frames for a dead peer. Where the wire has no acknowledgement, a WebSocket
// ping follows the message, at once when none is in flight; its pong confirms all that was written before it, since the
// backend's connection reads in order.
//
// | state    | meaning                                       | event → next                                              |
// |----------|-----------------------------------------------|-----------------------------------------------------------|
// | promised | the backend answers each message              | –                                                         |
// | presumed | an answer is expected: by the wire's traits,  | an answer → promised, where the traits expect it;         |
// |          | or since an earlier echo                      | 10 s without one, and a pong after that → absent          |
// | absent   | no answers, pongs confirm                     | an echo, a receipt → presumed                             |
//
// An explicit refusal counts as an answer. The state holds for the life of the process.

struct DeliveryConfirmation {
    enum Answers: Equatable {
        case promised
        case presumed
        case absent
    }

    // Of the dialect's traits those that count here: they are asked for with each message.
    private let promised: DialectTraits.Confirmation
    private let messageIDOrigin: DialectTraits.MessageIDOrigin
    private let acknowledgedByPeople: Bool
    private(set) var answers: Answers
    /// The session's frame count when an answer was missed; a pong that covers it decides.
    private(set) var doubtedAt: UInt64?

    init(_ traits: DialectTraits) {
        promised = traits.confirmation
        messageIDOrigin = traits.messageIDOrigin
        acknowledgedByPeople = traits.acknowledgedByPeople
        answers = traits.confirmation == .none ? .absent : traits.confirmationIsGuess ? .presumed : .promised
    }

    /// The confirmation that the next message waits for.
    var confirmation: DialectTraits.Confirmation {
        guard answers != .absent else { return .none }
        guard promised == .none else { return promised }
        return messageIDOrigin == .client ? .echoByID : .echoByText
    }

    /// Whether a pong confirms what was written before its ping.
    var acceptsPongs: Bool { answers == .absent || acknowledgedByPeople }

    /// The backend answered a message. Returns whether that was unexpected.
    mutating func answered() -> Bool {
        doubtedAt = nil
        switch answers {
        case .promised: return false
        case .presumed:
            if promised != .none { answers = .promised }
            return false
        case .absent:
            answers = .presumed
            return true
        }
    }

    /// A message was not answered in time.
    mutating func missed(frameCount: UInt64) { if answers != .promised { doubtedAt = doubtedAt ?? frameCount } }

    /// The backend has read this many frames. Returns whether it turned out just now not to answer.
    mutating func hasRead(frameCount: UInt64) -> Bool {
        guard let doubted = doubtedAt, frameCount >= doubted else { return false }
        doubtedAt = nil
        guard answers == .presumed else { return false }
        answers = .absent
        return true
    }

    mutating func linkLost() { doubtedAt = nil }
}
