import IRCProtocol
import Rooms

/// Long answers, pulled as the clients' queues drain.
final class LongAnswers {
    /// Bytes of long answers queued before the bridge waits for the client to take them.
    static let window = 16 * 1024

    private let outbound: Outbound
    let walk = WalkBudget()

    init(_ outbound: Outbound) { self.outbound = outbound }

    /// Writes of a client's long answers what its queue may hold, and goes on when that has drained.
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
        // The next part of a backlog waits for the queue to empty, as if it had come with this one.
        if session.following?.backlogs.isEmpty ?? true { session.undrainedBytes = 0 }
        endBatch(session)
    }

    func endBatch(_ session: IRCSession) {
        guard let reference = session.longAnswerBatch else { return }
        session.longAnswerBatch = nil
        outbound.endBatch(reference, session)
    }

    /// Nobody reads the answers. But the client enters the rooms that it waits for: what it said may be for them.
    private func drop(_ session: IRCSession) {
        while let first = session.longAnswers.first {
            session.removeLongAnswer(first)
            first.unread()
        }
        session.longAnswerBatch = nil
    }
}

/// How much the long answers of one client look at in a turn.
final class WalkBudget {
    /// People and rooms, found or not: a fraction of a millisecond. A client that asks for people whom nobody fits must not hold
    /// up the others for as long as looking at ten thousand of them takes.
    static let limit = 256

    private(set) var count = 0

    var isSpent: Bool { count >= Self.limit }

    /// Another client's answers.
    func begin() { count = 0 }

    func spend(_ steps: Int = 1) { count += steps }

    /// The others come first.
    func spendAll() { count = Self.limit }
}
