import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

/// The presence of IRC users as reported to the backend, and the queue of changes.
final class PresenceReport {
    /// The presence changes that a wire can express.
    struct Words {
        var join = false
        var leave = false
        var presence = false

        var isEmpty: Bool { !join && !leave && !presence }

        init(_ dialect: any Dialect, context: DialectContext) {
            let user = ChatPerson(id: ChatID("1"), name: "n")
            let at = ChatTimestamp(milliseconds: 1)
            func canSay(_ command: ChatCommand) -> Bool {
                if case .unsupported = dialect.encode(command, context: context) { return false }
                return true
            }
            join = canSay(.join(ChatMembership(user: user, room: context.room, at: at)))
            leave = canSay(.leave(ChatMembership(user: user, room: context.room, at: at)))
            presence = canSay(.presence(ChatPresence(user: user, state: .away, room: context.room)))
        }
    }

    struct Told {
        var person: ChatPerson
        var isAway: Bool
    }

    /// All users present when the link came up were entered.
    private(set) var hasBegun = false
    private var told: [ChatID: Told] = [:]
    private var queue: [ChatID] = []
    private var head = 0
    private var queued: Set<ChatID> = []

    var isPending: Bool { head < queue.count }

    /// Without a link the backend knows no users.
    func reset() {
        hasBegun = false
        told = [:]
        queue = []
        head = 0
        queued = []
    }

    /// The link is new: the backend knows no users.
    func begin(_ puppets: [ChatID]) {
        hasBegun = true
        for puppet in puppets { note(puppet) }
    }

    /// The number of IRC users reported to the backend.
    var knownCount: Int { told.count }

    subscript(puppet: ChatID) -> Told? { told[puppet] }

    /// - Parameter told: nil: reported as gone.
    func tells(_ puppet: ChatID, _ told: Told?) { self.told[puppet] = told }

    func note(_ puppet: ChatID) {
        if queued.insert(puppet).inserted { queue.append(puppet) }
    }

    func next() -> ChatID? {
        guard isPending else { return nil }
        let puppet = queue[head]
        head += 1
        if head == queue.count {
            queue = []
            head = 0
        }
        queued.remove(puppet)
        return puppet
    }
}
