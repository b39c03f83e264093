import BridgeTypes
import ChatModel
import Identities
import WireBytes

// What IRC users did to messages, as long as the backend may have something to say of it.
//
// | the wire              | shown                            | a complaint comes                                 |
// |-----------------------|----------------------------------|---------------------------------------------------|
// | answers (directus)    | when the answer came             | the author is told, nobody else ever saw it       |
// | complains at most     | when the socket took it          | the author is told, and for the others it is undone |
//
// A complaint that names something means the newest action on that; one without a name means the only thing in flight, an
// action or a message, and nothing where there are several.

/// Deeds of IRC users that the backend may still refuse, oldest first.
final class OpenActions {
    /// So long a complaint that names its message is taken for one about it, and an answer is waited for.
    static let wait: Duration = .seconds(10)
    /// More than the room's pace lets through in that time; the oldest are forgotten.
    static let capacity = 100

    enum Deed {
        /// The message as it was, what the memory had of it, and the words of whoever took it back.
        case takeBack(RecentMessages.Entry, before: [StoredMessage], reason: String?)
        case reaction(ChatReaction, to: RecentMessages.Entry)
    }

    struct Action {
        /// The room's number, or that of the account's own link, whichever it went over.
        var link: RoomID
        /// The message, as the backend calls it.
        var target: ChatID
        var deed: Deed
        var client: ClientID
        /// Who did it, as they were then.
        var person: Person
        var personID: PersonID
        var puppet: ChatID
        /// Of the command, where the answer to it waits for the backend's.
        var label: String?
        var writtenAt: MonotonicInstant
        /// The room has seen it.
        var isShown: Bool
    }

    private var actions: [Action] = []

    /// When the oldest is over.
    var due: MonotonicInstant? { actions.first.map { $0.writtenAt + Self.wait } }

    func append(_ action: Action) {
        if actions.count >= Self.capacity { actions.removeFirst() }
        actions.append(action)
    }

    /// The newest action on what a complaint names.
    func take(target: ChatID, over link: RoomID) -> Action? {
        actions.lastIndex { $0.link == link && $0.target == target }.map { actions.remove(at: $0) }
    }

    /// Those over a link that a complaint without a name can mean: unanswered, or written within `window`.
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

    /// Whether the backend is about to take a message back.
    func isAwaited(msgid: String) -> Bool {
        actions.contains { action in
            guard case .takeBack(let entry, _, _) = action.deed else { return false }
            return !action.isShown && entry.msgid == msgid
        }
    }

    /// The one that asked for what the backend has done now, over whichever link.
    func takeAwaited(target: ChatID) -> Action? {
        actions.firstIndex { !$0.isShown && $0.target == target }.map { actions.remove(at: $0) }
    }

    /// What the backend says nothing more about.
    func takeOver(now: MonotonicInstant) -> [Action] {
        var over: [Action] = []
        while let first = actions.first, now - first.writtenAt >= Self.wait { over.append(actions.remove(at: 0)) }
        return over
    }

    /// The link is gone, and with it whatever it would have said.
    func linkLost(_ link: RoomID) -> [Action] {
        let lost = actions.filter { $0.link == link }
        actions.removeAll { $0.link == link }
        return lost
    }
}
