import BridgeTypes
import ChatModel
import Dialects
import Identities
import Media
import Upstream
import WireBytes

// Submitting messages of IRC users.

extension Room {
    func submit(_ submission: Submission, from client: ClientID, _ context: RoomsContext) -> RoomReply {
        guard let member = locals[client], let person = context.identities[member.person] else { return .notInRoom }
        let lane = lane(of: person)
        if lane.isFull {
            guard settings.queueWhenFull == .dropOldest, let oldest = lane.outbox.removeOldestUnwritten() else {
                return .queueFull
            }
            failed(oldest, why: "the queue was full, and newer messages took its place", lane, context)
        }
        spoke(client, context)
        context.noteChat("up", room: settings.name, nick: person.nick, submission.text)
        let answered = submission.replyTo.flatMap { recent.entry(msgid: $0) }.flatMap { $0.isTakenBack ? nil : $0 }
        let replyTo = carriesReplies ? answered?.upstreamID : nil
        let said = context.uploads.find(in: submission.text, backend: settings.backend)
        let message = ChatMessage(
            id: context.freshMessageID(traits), room: settings.upstreamRoom,
            sender: upstreamPerson(person, member.puppet),
            text: upstreamText(said.text, quoting: replyTo == nil ? answered : nil, person, context),
            at: context.now.wall,
            attachments: said.attachments.isEmpty
                ? ImageLink.attachment(in: submission.text).map { [$0] } ?? [] : said.attachments,
            replyTo: replyTo)
        lane.submit(
            OutboxEntry(
                message: message,
                origin: OutboxEntry.Origin(
                    client: client, person: member.person, puppet: member.puppet,
                    who: member.speaker(person, context.identities.revision), text: submission.text,
                    cuts: submission.words.cuts, clientTags: submission.annotations.map { ($0.name, $0.value) },
                    label: submission.label,
                    clientName: member.clientName),
                acceptedAt: context.now.monotonic, saidAfter: recent.lastSequence,
                line: submission.network.map { .network($0) }), context)
        pump(lane, context)
        return .done
    }

    /// Shows a message that the backend cannot carry to the room's IRC users only.
    ///
    /// - Parameters:
    ///   - words: nil: only client-only tags.
    ///   - isEvent: it has a place in the room's order.
    package func showLocally(
        _ words: SpokenText?, isNotice: Bool = false, annotations: [StoredTag],
        from client: ClientID, isEvent: Bool = false, _ context: RoomsContext
    ) -> RoomReply {
        guard let member = locals[client], let person = context.identities[member.person] else { return .notInRoom }
        let msgid = context.messageID(backend: settings.backend, room: settings.upstreamRoom, sender: nil, id: nil)
        let readers = RoomAudience(author: client, by: .present(member.person))
        guard let words else {
            let who = RoomSpeaker(person)
            if isEvent {
                enterEvent(
                    ["TAGMSG"], msgid: msgid, by: who, annotations, author: member.puppet, at: context.now.wall, context
                )
            }
            show(.passed(annotations, by: who, msgid: msgid), to: readers)
            return .done
        }
        show(
            .said(
                RoomMessage(
                    msgid: msgid, at: context.now.wall, speaker: RoomSpeaker(person), isNotice: isNotice,
                    words: .typed(words), annotations: annotations)), to: readers)
        return .done
    }
}
