import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream

// What mirrors bring into a room.

extension Room {
    /// Submits a message that a mirror brought.
    ///
    /// - Parameter mirror: its name.
    package func relay(_ message: RelayedMessage, by mirror: String, _ context: RoomsContext) -> RoomReply {
        relay(message, over: lane, by: (mirror, "mirror", context.settings.serverName), context) {
            relayedSender(message.name, $0)
        }
    }

    /// Redacts a message that a mirror brought, with its author's name.
    package func takeBackRelayed(_ msgid: String, _ context: RoomsContext) -> RoomReply {
        guard let entry = recent.entry(msgid: msgid), !entry.isTakenBack, let puppet = entry.puppet,
            let id = entry.upstreamID
        else { return .refused(.unknownMessage) }
        let sender = settings.identity == .single ? accountPerson : ChatPerson(id: puppet, name: entry.nick)
        let delete = ChatDelete(ids: [id], room: settings.upstreamRoom, sender: sender)
        if let why = act(.delete(delete), by: nil, context) {
            return .refused(ActionRefusal(code: "CANNOT_DELIVER", text: "Not taken back, \(why)"))
        }
        takeBack(entry, context)
        show(.takenBack([entry], by: nil, msgid: nil, reason: nil))
        return .done
    }

    /// Shows IRC users that a user elsewhere begins to write, or ceases to.
    package func typedRelayed(_ name: String, _ isTyping: Bool, _ context: RoomsContext) {
        let who = RoomSpeaker(nick: name, source: "\(name)!mirror@\(context.settings.serverName)")
        show(.typing(who, isTyping: isTyping))
    }

    /// Shows IRC users a reaction that a mirror brought: no backend takes one of another user.
    ///
    /// - Parameter name: the reactor's.
    package func reactRelayed(
        _ emoji: String, _ operation: ChatReaction.Operation, on msgid: String, as name: String, tags: [StoredTag],
        _ context: RoomsContext
    ) {
        guard let original = recent.entry(msgid: msgid), !original.isTakenBack, !emoji.isEmpty,
            emoji.utf8.count <= Self.maxReactionBytes
        else { return }
        let who = RoomSpeaker(nick: name, source: "\(name)!mirror@\(context.settings.serverName)")
        let annotations =
            replyTags(original)
            + [StoredTag(name: operation == .add ? "+draft/react" : "+draft/unreact", value: emoji)]
            + tags
        let id = context.messageID(backend: settings.backend, room: settings.upstreamRoom, sender: nil, id: nil)
        enterEvent(["TAGMSG"], msgid: id, by: who, annotations, at: context.now.wall, context)
        show(
            .reacted(
                RoomReaction(
                    msgid: id, at: context.now.wall, emoji: emoji, operation: operation, original: original,
                    isOnOwn: false, annotations: annotations), by: who))
    }
}
