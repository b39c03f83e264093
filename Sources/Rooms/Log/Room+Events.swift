import BridgeTypes
import ChatModel
import WireBytes

// What is done in a room and not said, in the room's order: for those who ask for the past with all that belongs to it.

extension Room {
    /// Enters something that was done, as everybody was shown it; nobody waits for it to be kept.
    ///
    /// - Parameters:
    ///   - words: what was done, and with what: the command by which IRC is told of it, and its parameters behind the channel.
    ///   - sender: who upstream did it, and `author` the upstream id of the IRC user who did; neither where also those are
    ///     shown it who do not want to hear them.
    package func enterEvent(
        _ words: [String], msgid: String, by who: RoomSpeaker, _ annotations: [StoredTag] = [],
        sender: ChatPerson = ChatPerson(), author: ChatID? = nil, at: ChatTimestamp, _ context: RoomsContext
    ) {
        let event = StoredMessage(
            kind: .event, sequence: Int64(recent.takePlace()), msgid: msgid, sender: sender, at: at, nick: who.nick,
            source: who.source, account: who.account, text: words.joined(separator: "\n"), clientTags: annotations,
            author: author)
        keep(event, context)
    }

    /// Keeps a line that is nobody's message, where what was said is kept.
    package func keep(_ row: StoredMessage, _ context: RoomsContext) {
        if context.isDurable { context.keep(.message(storedKey, row)) } else { archive.append(row) }
    }

    // MARK: - Delivery cursors

    /// Lines were sent to the room; some of them may be in its order.
    package func linesWritten(_ context: RoomsContext) {
        guard let pause = cursorRound.linesWritten(upTo: Int64(recent.lastSequence)) else { return }
        context.timers.set(.cursors(id), at: context.now.monotonic + pause)
    }

    /// Clients are asked now how far they came.
    package func beginCursorRound() { cursorRound.begin(upTo: Int64(recent.lastSequence)) }
}
