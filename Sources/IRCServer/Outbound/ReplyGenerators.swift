import IRCProtocol
import Rooms

/// Long answers, written as the clients' queues drain.
final class ReplyGenerators {
    /// Bytes of long answers queued before the bridge waits for the client to read them.
    static let window = 16 * 1024

    private let outbound: Outbound
    let walk = ReplyBudget()

    init(_ outbound: Outbound) { self.outbound = outbound }

    /// Writes a client's long answers as far as its queue has room, and continues once that has drained.
    func pull(_ session: IRCSession) {
        guard session.hasLongAnswers else { return }
        if session.hasNoReader { return drop(session) }
        walk.begin()
        while let answer = session.longAnswers.first {
            guard session.undrainedBytes < Self.window, !walk.isSpent else {
                outbound.emit(.notifyWhenDrained(session.id))
                return
            }
            let line: IRCMessage?
            switch answer.next() {
            case .waits: return
            case .more(let next): line = next
            case .last(let last):
                session.removeLongAnswer(answer)
                line = last
            }
            if let line {
                session.undrainedBytes += outbound.write(line, to: session, batch: session.longAnswerBatch)
            }
        }
        // The next part of a backlog waits for the queue to drain, as if it had come with this one.
        if session.following?.backlogs.isEmpty ?? true { session.undrainedBytes = 0 }
        endBatch(session)
    }

    func endBatch(_ session: IRCSession) {
        guard let reference = session.longAnswerBatch else { return }
        session.longAnswerBatch = nil
        outbound.endBatch(reference, session)
    }

    /// Drops answers that are not read. Joins in progress are completed: messages received before may be for those
    /// rooms.
    private func drop(_ session: IRCSession) {
        while let first = session.longAnswers.first {
            session.removeLongAnswer(first)
            first.unread()
        }
        session.longAnswerBatch = nil
    }
}

/// The work of one client's long answers in a turn.
final class ReplyBudget {
    /// Users and rooms, matching or not: a fraction of a millisecond. A query without matches must not delay other
    /// clients by a search of ten thousand users.
    static let limit = 256

    private(set) var count = 0

    var isSpent: Bool { count >= Self.limit }

    /// Starts with another client's answers.
    func begin() { count = 0 }

    func spend(_ steps: Int = 1) { count += steps }

    /// Ends the turn: other clients come first.
    func spendAll() { count = Self.limit }
}
