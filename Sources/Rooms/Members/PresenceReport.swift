import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

/// What the backend knows of our people, and whom it must hear about.
final class PresenceReport {
    /// What a wire can say.
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

    /// Everybody who was here when the link came up was entered.
    private(set) var hasBegun = false
    private var told: [ChatID: Told] = [:]
    private var queue: [ChatID] = []
    private var head = 0
    private var queued: Set<ChatID> = []

    var isPending: Bool { head < queue.count }

    /// Without a link the backend knows nobody.
    func reset() {
        hasBegun = false
        told = [:]
        queue = []
        head = 0
        queued = []
    }

    /// The link is new: the backend knows nobody.
    func begin(_ puppets: [ChatID]) {
        hasBegun = true
        for puppet in puppets { note(puppet) }
    }

    /// How many IRC users the backend was told of.
    var knownCount: Int { told.count }

    subscript(puppet: ChatID) -> Told? { told[puppet] }

    /// - Parameter told: nil: the backend heard that they left.
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
