import BridgeTypes
import ChatModel
import Upstream
import WireBytes

// Failed messages, until their authors are notified.
//
// With a store a notification is acknowledged: the notice, then a PING, and its PONG marks the message as notified.
// Absent authors are notified when they return, also by a later process. Without a store there is one notice, to the
// author's present clients.

/// Notices sent and not acknowledged yet.
final class FailureNotices {
    /// By client, the numbers of ``FailedMessages``.
    fileprivate var shown: [ClientID: Set<UInt64>] = [:]
    fileprivate var asked: [ClientID: Set<UInt64>] = [:]

    func forget(_ client: ClientID) {
        shown[client] = nil
        asked[client] = nil
    }

    /// Whether a notice to the client is unacknowledged.
    func isTelling(_ client: ClientID) -> Bool { shown[client] != nil || asked[client] != nil }

    fileprivate func isShown(_ number: UInt64, to client: ClientID) -> Bool {
        shown[client]?.contains(number) == true || asked[client]?.contains(number) == true
    }
}

extension SendLane {
    /// A failed message whose author is to be notified.
    struct Failure {
        var entry: OutboxEntry
        var why: FailureReason
        /// Its number in ``FailedMessages``; nil: not persisted.
        var number: UInt64?
    }

    // MARK: - Giving up

    final func giveUp(_ entry: OutboxEntry, why: FailureReason, _ context: RoomsContext) -> Failure {
        context.note(.warn, "message-failed", why.logSentence, ["room": roomName])
        let arrived = outbox.arrivedPieces(of: entry)
        outbox.dropPieces(of: entry)
        guard context.isDurable, let id = entry.storedID else { return Failure(entry: entry, why: why) }
        context.keep(.outboxState(id, .failed, confirmedPieces: arrived, reason: why.stored), about: id)
        forget(outbox.fail(entry, reason: why), context)
        return Failure(entry: entry, why: why, number: outbox.failures.newest)
    }

    /// Fails messages that exceeded their maximum age.
    final func giveUp(_ entries: [OutboxEntry], _ context: RoomsContext) -> [Failure] {
        Self.onceEach(entries).map { giveUp($0, why: Self.reasonOfExpiry($0), context) }
    }

    private static func reasonOfExpiry(_ entry: OutboxEntry) -> FailureReason {
        guard entry.isArrivalOpen else { return FailureReason("it waited too long for the backend") }
        let why =
            switch entry.state {
            case .written, .doubtful: "the backend has not answered"
            case .accepting, .queued, .recordingAttempt, .unknownAfterDisconnect:
                "the link was lost before the backend answered"
            }
        return FailureReason(why, isArrivalOpen: true)
    }

    private func forget(_ items: [FailedMessages.Item], _ context: RoomsContext) {
        for item in items {
            guard let id = item.entry.storedID else { continue }
            context.keep(.leaveOutbox(id), about: id)
            if !item.isTold {
                context.note(
                    .error, "failure-untold",
                    "an author who does not come back was not told that a message failed; it is forgotten",
                    ["room": roomName, "nick": item.entry.origin.who.nick])
            }
        }
    }

    // MARK: - Acknowledged notices

    /// A client of the author was sent the notice.
    final func told(
        _ failure: Failure, to client: ClientID, by frontEnd: any RoomFrontEnd, _ context: RoomsContext
    ) {
        guard let number = failure.number else { return }
        failureNotices.shown[client, default: []].insert(number)
        askWhetherTold(client, by: frontEnd, context)
    }

    /// Asks a client to acknowledge the notices, unless a PING for that is in flight.
    private func askWhetherTold(_ client: ClientID, by frontEnd: any RoomFrontEnd, _ context: RoomsContext) {
        let notices = failureNotices
        guard notices.asked[client] == nil, let numbers = notices.shown.removeValue(forKey: client) else { return }
        notices.asked[client] = numbers
        // Retained until then: the acknowledgement counts even if the link is closed.
        frontEnd.whenReceived(by: client) { [self] in
            guard notices.asked.removeValue(forKey: client) != nil else { return }
            markTold(numbers, context)
            askWhetherTold(client, by: frontEnd, context)
        }
    }

    private func markTold(_ numbers: Set<UInt64>, _ context: RoomsContext) {
        let (told, forgotten) = outbox.told(numbers)
        for item in told {
            guard let id = item.entry.storedID else { continue }
            context.keep(
                .outboxState(id, .told, confirmedPieces: item.entry.confirmedPieces, reason: item.reason.stored),
                about: id)
        }
        forget(forgotten, context)
    }

    // MARK: - Absent authors

    final func hasUntold(of author: ChatID) -> Bool { outbox.failures.untold(of: author, after: 0) != nil }

    /// The next failure after `number` for the author's client; nil when there is none left: then the client is asked
    /// to acknowledge the earlier ones.
    final func nextUntold(
        of author: ChatID, _ client: ClientID, after number: UInt64, by frontEnd: any RoomFrontEnd,
        _ context: RoomsContext
    ) -> FailedMessages.Item? {
        var last = number
        while let item = outbox.failures.untold(of: author, after: last) {
            last = item.number
            guard !failureNotices.isShown(item.number, to: client) else { continue }
            failureNotices.shown[client, default: []].insert(item.number)
            return item
        }
        askWhetherTold(client, by: frontEnd, context)
        return nil
    }
}
