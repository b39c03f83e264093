import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream

// What an administrator does with a room.
//
// A disabled room has no link until it is enabled, or until the end of the process. Messages of IRC users are queued as in
// an outage. Own links of accounts are not affected.

extension Room {
    /// Opens a new link in place of the present one, or ends the wait for the next try.
    ///
    /// - Parameter restartsTry: a try under way begins again: its settings are of before.
    package func reconnect(
        _ reason: String, restartsTry: Bool = false, _ context: RoomsContext
    ) -> UpstreamSession.Reopening {
        if isLeaving { return isDisabled ? .disabled : .onDemand }
        let (outcome, events) = link.reopen(reason, restartsTry: restartsTry, context)
        handle(events, context)
        return outcome
    }

    package var isDisabled: Bool { link.isDisabled }

    /// Closes the link until ``enable(_:)``. False: it is disabled already.
    package func disable(_ context: RoomsContext) -> Bool {
        guard !isDisabled else { return false }
        link.setDisabled(true)
        let reason = "an administrator disabled it"
        if link.state == .open, !isLeaving {
            handle(context.drive(link) { link.drop(reason, &$0) }, context)
        } else if !locals.isEmpty {
            notice("The link to \(settings.url.host) stays closed: \(reason).")
        }
        // From here on there is nothing to wait for.
        handle(link.stop(context), context)
        return true
    }

    /// Opens the link of a disabled room, where it has a purpose. False: it is not disabled.
    package func enable(_ context: RoomsContext) -> Bool {
        guard isDisabled else { return false }
        link.setDisabled(false)
        if link.state == .stopped, isWanted { link.start(context) }
        return true
    }

    /// Submits a message of the relay itself: upstream it is the room's account that speaks.
    ///
    /// - Parameter speaker: the sender on IRC.
    package func say(_ text: String, as speaker: RoomSpeaker, _ context: RoomsContext) -> RoomReply {
        guard !lane.isFull else { return .queueFull }
        let sender = accountPerson
        let puppet = sender.id ?? context.identities.puppetID(nick: speaker.nick, backend: settings.backend)
        if settings.identity == .puppet { remember(author: puppet) }
        let message = ChatMessage(
            id: context.freshMessageID(traits), room: settings.upstreamRoom, sender: sender,
            text: withNames(MessageText.withoutFormatting(text), context), at: context.now.wall)
        let entry = OutboxEntry(
            message: message,
            origin: OutboxEntry.Origin(
                puppet: puppet, who: RoomSpeaker(nick: speaker.nick, source: speaker.source), text: text,
                clientTags: []),
            acceptedAt: context.now.monotonic, saidAfter: recent.lastSequence, line: .relay(speaker.nick))
        lane.submit(entry, context)
        if !isLoading { startForWaiting(context) }
        pump(lane, context)
        return .done
    }
}
