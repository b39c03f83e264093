import Dialects
import WireBytes

// What confirms the messages that go over one link.
//
// Written is not delivered: a socket takes frames for a peer that is gone. Where nothing on the wire says that a message
// arrived, a WebSocket ping is sent behind it, at once when none is under way; its pong confirms everything written before it,
// since the backend's connection read it all in order.
//
// | state    | meaning                                       | event → next                                              |
// |----------|-----------------------------------------------|-----------------------------------------------------------|
// | promised | the backend answers each message              | –                                                         |
// | presumed | it should: by the habit of its wire, or since | an answer → promised, where the wire's traits expect it;  |
// |          | it once sent a message of ours back           | 10 s without one, and a pong after that → absent          |
// | absent   | nothing answers, pongs confirm                | a message of ours comes back, a receipt → presumed        |
//
// A message that was refused in so many words was not met with silence. The state holds for the life of the process.

struct DeliveryConfirmation {
    enum Answers: Equatable {
        case promised
        case presumed
        case absent
    }

    private let traits: DialectTraits
    private(set) var answers: Answers
    /// Frames of the session when an answer was missed; a pong that covers them decides.
    private(set) var doubtedAt: UInt64?

    init(_ traits: DialectTraits) {
        self.traits = traits
        answers = traits.confirmation == .none ? .absent : traits.confirmationIsGuess ? .presumed : .promised
    }

    /// What the next message waits for.
    var confirmation: DialectTraits.Confirmation {
        guard answers != .absent else { return .none }
        guard traits.confirmation == .none else { return traits.confirmation }
        return traits.messageIDOrigin == .client ? .echoByID : .echoByText
    }

    /// Whether a pong confirms what was written before its ping.
    var acceptsPongs: Bool { answers == .absent || traits.acknowledgedByPeople }

    /// The backend answered a message of ours. Returns whether that was news: it was not expected.
    mutating func answered() -> Bool {
        doubtedAt = nil
        switch answers {
        case .promised: return false
        case .presumed:
            if traits.confirmation != .none { answers = .promised }
            return false
        case .absent:
            answers = .presumed
            return true
        }
    }

    /// A message was not answered in time.
    mutating func missed(frameCount: UInt64) { if answers != .promised { doubtedAt = doubtedAt ?? frameCount } }

    /// The backend has read so many frames. Returns whether it is known only now that it does not answer.
    mutating func hasRead(frameCount: UInt64) -> Bool {
        guard let doubted = doubtedAt, frameCount >= doubted else { return false }
        doubtedAt = nil
        guard answers == .presumed else { return false }
        answers = .absent
        return true
    }

    mutating func linkLost() { doubtedAt = nil }
}
