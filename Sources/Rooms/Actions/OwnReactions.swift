import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

/// Reactions sent by IRC users, to deduplicate their echoes.
final class OwnReactions {
    /// A backend that sends reactions to their author too does it at once.
    static let echoWait: Duration = .seconds(30)
    /// More than a room may send in that time.
    static let capacity = 200

    private struct Entry {
        var target: ChatID
        var emoji: String
        var operation: ChatReaction.Operation
        var puppet: ChatID
        var at: MonotonicInstant
        var cameBack = false
    }

    private var entries: [Entry] = []

    func append(_ reaction: ChatReaction, of puppet: ChatID, at now: MonotonicInstant) {
        if entries.count >= Self.capacity { entries.removeFirst() }
        entries.append(
            Entry(
                target: reaction.target, emoji: Self.plain(reaction.emoji), operation: reaction.operation,
                puppet: puppet, at: now))
    }

    /// Whether an incoming reaction is the echo of one of these. Each has one echo.
    func takeEcho(of reaction: ChatReaction, now: MonotonicInstant) -> Bool {
        let emoji = Self.plain(reaction.emoji)
        guard
            let index = entries.firstIndex(where: {
                !$0.cameBack && now - $0.at < Self.echoWait && $0.target == reaction.target && $0.emoji == emoji
                    && $0.operation == reaction.operation
            })
        else { return false }
        entries[index].cameBack = true
        return true
    }

    /// The backend refused it.
    func remove(_ reaction: ChatReaction) {
        let emoji = Self.plain(reaction.emoji)
        let index = entries.lastIndex {
            $0.target == reaction.target && $0.emoji == emoji && $0.operation == reaction.operation
        }
        if let index { entries.remove(at: index) }
    }

    /// The author of this emoji on this message, while it is remembered.
    func owner(of target: ChatID, _ emoji: String) -> ChatID? {
        let emoji = Self.plain(emoji)
        guard let last = entries.last(where: { $0.target == target && $0.emoji == emoji }), last.operation == .add
        else { return nil }
        return last.puppet
    }

    /// Without the variation selector, which some keyboards leave out and some backends insist on.
    static func plain(_ emoji: String) -> String {
        String(String.UnicodeScalarView(emoji.unicodeScalars.filter { $0.value != 0xFE0F }))
    }
}
