import ChatModel
import WireBytes

// What IRC users did to messages, as long as the backend may have something to say of it.
//
// | the wire              | shown                            | a complaint comes                                 |
// |-----------------------|----------------------------------|---------------------------------------------------|
// | answers (directus)    | when the answer came             | the author is told, nobody else ever saw it       |
// | complains at most     | when the socket took it          | the author is told, and for the others it is undone |
//
// A complaint that names something means the newest action on that; one without a name means whatever was written last,
// an action or a message.

/// Deeds of IRC users that the backend may still refuse, oldest first.
struct OpenActions {
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
        /// So many messages had gone over the link before.
        var messagesBefore = 0
    }

    private var actions: [Action] = []
    /// Messages that went over each link that has open actions; counted from anywhere.
    private var messages: [RoomID: Int] = [:]

    /// When the oldest is over.
    var due: MonotonicInstant? { actions.first.map { $0.writtenAt + Self.wait } }

    mutating func append(_ action: Action) {
        if actions.count >= Self.capacity { actions.removeFirst() }
        var action = action
        action.messagesBefore = messages[action.link, default: 0]
        messages[action.link] = action.messagesBefore
        actions.append(action)
    }

    /// A message went over a link.
    mutating func messageWritten(over link: RoomID) {
        // Nobody asks while nothing is open.
        if let count = messages[link] { messages[link] = count &+ 1 }
    }

    private mutating func remove(at index: Int) -> Action {
        let action = actions.remove(at: index)
        if !actions.contains(where: { $0.link == action.link }) { messages[action.link] = nil }
        return action
    }

    /// The newest action on what a complaint names.
    mutating func take(target: ChatID, over link: RoomID) -> Action? {
        actions.lastIndex { $0.link == link && $0.target == target }.map { remove(at: $0) }
    }

    /// The action that was the last thing to go over the link, within `window`.
    mutating func takeLastWritten(over link: RoomID, within window: Duration, now: MonotonicInstant) -> Action? {
        guard let index = actions.lastIndex(where: { $0.link == link }),
            actions[index].messagesBefore == messages[link], now - actions[index].writtenAt <= window
        else { return nil }
        return remove(at: index)
    }

    /// When the oldest was written whose answer is awaited.
    func oldestAwaited(over link: RoomID) -> MonotonicInstant? {
        actions.first { $0.link == link && !$0.isShown }?.writtenAt
    }

    mutating func takeOldestAwaited(over link: RoomID) -> Action? {
        actions.firstIndex { $0.link == link && !$0.isShown }.map { remove(at: $0) }
    }

    /// Whether the backend is about to take a message back.
    func isAwaited(msgid: String) -> Bool {
        actions.contains { action in
            guard case .takeBack(let entry, _, _) = action.deed else { return false }
            return !action.isShown && entry.msgid == msgid
        }
    }

    /// The one that asked for what the backend has done now, over whichever link.
    mutating func takeAwaited(target: ChatID) -> Action? {
        actions.firstIndex { !$0.isShown && $0.target == target }.map { remove(at: $0) }
    }

    /// What the backend says nothing more about.
    mutating func takeOver(now: MonotonicInstant) -> [Action] {
        var over: [Action] = []
        while let first = actions.first, now - first.writtenAt >= Self.wait { over.append(remove(at: 0)) }
        return over
    }

    /// The link is gone, and with it whatever it would have said.
    mutating func linkLost(_ link: RoomID) -> [Action] {
        let lost = actions.filter { $0.link == link }
        actions.removeAll { $0.link == link }
        messages[link] = nil
        return lost
    }
}
