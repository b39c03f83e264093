import BridgeTypes
import ChatModel

/// Reads the rows of a room as posts of a mirror.
package struct MirrorSource: Sendable {
    /// The room's configured name, and its channel.
    package var room: String
    package var channel: String
    package var filter: MirrorFilter
    /// Of the room, and of the mirror.
    package var place: OriginChain.Place
    package var mirror: OriginChain.Place

    package init(
        room: String, channel: String, filter: MirrorFilter, place: OriginChain.Place, mirror: OriginChain.Place
    ) {
        self.room = room
        self.channel = channel
        self.filter = filter
        self.place = place
        self.mirror = mirror
    }

    /// Nil: there is nothing to post.
    ///
    /// - Parameters:
    ///   - target: an earlier message of the room, by its msgid.
    ///   - file: a file of the room, by the address that others can open; nil: there is none.
    package func post(
        _ row: StoredMessage, target: (_ msgid: String) -> MirrorPost.Target?,
        file: (ChatAttachment) -> MirrorFile?
    ) -> MirrorPost? {
        let origin = OriginChain(tags: row.clientTags)
        // What came in by this mirror, and what has been in this room before.
        guard !origin.contains(mirror), !origin.contains(place), !origin.isFull,
            let (content, event) = content(of: row), filter.events.contains(event),
            filter.passes(nick: row.nick, text: row.amendment == nil ? row.text : row.sentAs ?? "")
        else { return nil }
        let isBot = row.clientTags.contains { $0.name == "bot" }
        var post = MirrorPost(
            content, room: room, channel: channel, msgid: row.msgid,
            first: row.clientTags.first { $0.name == OriginChain.firstTag }?.value, at: row.at,
            speaker: MirrorPost.Speaker(nick: row.nick, account: row.account, isBot: isBot),
            origin: origin.passing(place))
        switch content {
        case .message, .action:
            post.files = row.attachments.compactMap(file)
            if let original = row.replyTo {
                post.replyTo = original
                post.target = target(original)
            }
        case .edit(_, let original), .takenBack(let original), .reaction(_, _, let original):
            // What the tool does not have cannot change there; a tool without ids shows it as words.
            post.target = target(original)
        case .topic, .notice: break
        }
        return post
    }

    private func content(of row: StoredMessage) -> (MirrorPost.Content, MirrorFilter.Event)? {
        if let amendment = row.amendment {
            switch amendment {
            case .edit(let original, let text): return (.edit(MarkedText(text, as: .irc), of: original), .edit)
            case .takenBack(let original): return (.takenBack(original), .delete)
            }
        }
        guard !row.isTakenBack else { return nil }
        switch row.kind {
        case .message:
            if let words = Self.action(row.text) { return (.action(MarkedText(words, as: .irc)), .message) }
            return (.message(MarkedText(row.text, as: .irc)), .message)
        case .change:
            guard let original = row.target, let text = row.sentAs else { return nil }
            return (.edit(MarkedText(text, as: .irc), of: original), .edit)
        case .event:
            let words = row.text.split(separator: "\n", omittingEmptySubsequences: false)
            switch words.first {
            case "TOPIC": return (.topic(words.dropFirst().joined(separator: " ")), .topic)
            case "TAGMSG":
                guard let original = row.target else { return nil }
                for (name, operation) in [("+draft/react", ChatReaction.Operation.add), ("+draft/unreact", .remove)] {
                    if let emoji = row.clientTags.first(where: { $0.name == name })?.value {
                        return (.reaction(emoji, operation, on: original), .reaction)
                    }
                }
                return nil
            default: return nil
            }
        case .gap, .notice: return nil
        }
    }

    private static func action(_ text: String) -> String? {
        guard text.hasPrefix("\u{1}ACTION ") else { return nil }
        let words = text.dropFirst(8)
        return String(words.last == "\u{1}" ? words.dropLast() : words)
    }
}
