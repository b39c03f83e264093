import BridgeTypes
import ChatModel
import Upstream
import WireBytes

// Events other than messages in the room's order, for history queries that include them.

extension Room {
    /// Logs an event as it was shown; persisted asynchronously.
    ///
    /// - Parameters:
    ///   - words: the IRC command of the event, and its parameters behind the channel.
    ///   - sender: the upstream actor, with `author` the upstream id of an acting IRC user; neither where it is shown
    ///     regardless of mutes.
    package func enterEvent(
        _ words: [String], msgid: String, by who: RoomSpeaker, _ annotations: [StoredTag] = [],
        sender: ChatPerson = ChatPerson(), author: ChatID? = nil, at: ChatTimestamp, _ context: RoomsContext
    ) {
        reportHeldGap(context)
        let event = StoredMessage(
            kind: .event, sequence: Int64(recent.takePlace()), msgid: msgid, sender: sender, at: at, nick: who.nick,
            source: who.source, account: who.account, text: words.joined(separator: "\n"), clientTags: annotations,
            author: author)
        keep(event, context)
    }

    /// Logs a line that is not a user's message, where messages are logged.
    package func keep(_ row: StoredMessage, _ context: RoomsContext) {
        if settings.isMirrored { context.emit(.logged(id)) }
        if context.isDurable { context.keep(.message(storedKey, row)) } else { archive.append(row) }
    }

    /// Logs a change of a message for mirrors, where there are any.
    ///
    /// - Parameter by: nil is the backend.
    func amend(_ amendment: StoredMessage.Amendment, by who: RoomSpeaker?, at: ChatTimestamp, _ context: RoomsContext) {
        guard settings.isMirrored else { return }
        reportHeldGap(context)
        let server = context.settings.serverName
        keep(
            .amending(
                amendment, sequence: Int64(recent.takePlace()),
                msgid: context.messageID(backend: settings.backend, room: settings.upstreamRoom, sender: nil, id: nil),
                at: at, nick: who?.nick ?? server, source: who?.source ?? server, account: who?.account), context)
    }

    // MARK: - Delivery cursors

    /// Lines were sent to the room; some of them may be in its order.
    package func linesWritten(_ context: RoomsContext) {
        guard let pause = cursorRound.linesWritten(upTo: Int64(recent.lastSequence)) else { return }
        context.set(.cursors(id), at: context.now.monotonic + pause)
    }

    /// Requests acknowledgements from the clients now.
    package func beginCursorRound() { cursorRound.begin(upTo: Int64(recent.lastSequence)) }
}
