import BridgeTypes
import ChatModel
import Identities
import WireBytes

// Actions of IRC users on messages, while the backend may still answer or refuse them.
//
// | the wire              | shown                            | a complaint comes                                 |
// |-----------------------|----------------------------------|---------------------------------------------------|
// | answers (directus)    | when the answer came             | the author is notified; no other user ever saw it |
// | complains at most     | when the socket took it          | the author is notified; undone for all others     |
//
// A complaint with a reference concerns the newest action on that message; one without concerns the only thing in
// flight, an action or a message, and is ambiguous where there are several.

/// Actions of IRC users that the backend may still refuse, oldest first.
final class PendingActions {
    /// For this long a complaint about a message is attributed to its action, and an answer is awaited.
    static let wait: Duration = .seconds(10)
    /// More than the room's rate admits in that time; the oldest are dropped.
    static let capacity = 100

    enum Operation {
        /// The message before its redaction, its entries in the memory log, and the stated reason.
        case takeBack(RecentLog.Entry, before: [StoredMessage], reason: String?)
        case reaction(ChatReaction, to: RecentLog.Entry)
    }

    struct Action {
        /// The id of the room, or of the account's own link, over which it went.
        var link: RoomID
        /// The message's id on the backend.
        var target: ChatID
        var operation: Operation
        var client: ClientID
        /// The acting user, as of then.
        var person: Person
        var personID: PersonID
        var puppet: ChatID
        /// Label of the command, where its reply waits for the backend's answer.
        var label: String?
        var writtenAt: MonotonicInstant
        /// The room was shown it.
        var isShown: Bool
    }

    private var actions: [Action] = []

    /// Deadline of the oldest.
    var due: MonotonicInstant? { actions.first.map { $0.writtenAt + Self.wait } }

    func append(_ action: Action) {
        if actions.count >= Self.capacity { actions.removeFirst() }
        actions.append(action)
    }

    /// Removes the newest action on the message that a complaint names.
    func take(target: ChatID, over link: RoomID) -> Action? {
        actions.lastIndex { $0.link == link && $0.target == target }.map { actions.remove(at: $0) }
    }

    /// Actions over a link that an unnamed complaint may concern: unanswered, or written within `window`.
    private func inFlight(over link: RoomID, within window: Duration, now: MonotonicInstant) -> [Int] {
        actions.indices.filter {
            actions[$0].link == link && (!actions[$0].isShown || now - actions[$0].writtenAt <= window)
        }
    }

    func countInFlight(over link: RoomID, within window: Duration, now: MonotonicInstant) -> Int {
        inFlight(over: link, within: window, now: now).count
    }

    func takeOnly(over link: RoomID, within window: Duration, now: MonotonicInstant) -> Action? {
        let places = inFlight(over: link, within: window, now: now)
        return places.count == 1 ? actions.remove(at: places[0]) : nil
    }

    /// Whether a redaction of the message is in flight.
    func isAwaited(msgid: String) -> Bool {
        actions.contains { action in
            guard case .takeBack(let entry, _, _) = action.operation else { return false }
            return !action.isShown && entry.msgid == msgid
        }
    }

    /// Removes the action that requested the change the backend has just made, over any link.
    func takeAwaited(target: ChatID) -> Action? {
        actions.firstIndex { !$0.isShown && $0.target == target }.map { actions.remove(at: $0) }
    }

    /// Removes the actions that the backend will no longer answer.
    func takeOver(now: MonotonicInstant) -> [Action] {
        var over: [Action] = []
        while let first = actions.first, now - first.writtenAt >= Self.wait { over.append(actions.remove(at: 0)) }
        return over
    }

    /// Removes the actions of a lost link; their answers are lost with it.
    func linkLost(_ link: RoomID) -> [Action] {
        let lost = actions.filter { $0.link == link }
        actions.removeAll { $0.link == link }
        return lost
    }
}
