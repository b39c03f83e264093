import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// How the room is shown what was done to a message.

extension Room {
    /// - Returns: what the memory had of it, where nothing else keeps that.
    @discardableResult
    func showTakenBack(
        _ entry: RecentMessages.Entry, by person: Person, reason: String?, from client: ClientID, label: String?,
        _ context: RoomsContext
    ) -> [StoredMessage] {
        let own = context.messageID(backend: settings.backend, room: settings.upstreamRoom, sender: nil, id: nil)
        let before = takeBack(entry, context)
        show(
            .takenBack([entry], by: RoomSpeaker(person), msgid: own, reason: reason),
            to: RoomAudience(author: client, label: label))
        return before
    }

    @discardableResult
    func takeBack(_ entry: RecentMessages.Entry, _ context: RoomsContext) -> [StoredMessage] {
        recent.takeBack(msgid: entry.msgid)
        context.keep(.takeBack(storedKey, msgid: entry.msgid))
        return archive.takeBack(msgid: entry.msgid)
    }

    /// Shows that somebody put an emoji on a message or took it off, and keeps that.
    ///
    /// - Parameters:
    ///   - annotations: the same as a client gave it for other clients; nil: none did.
    ///   - client: whose client did it, and `author` the upstream id of its user; else `sender` did, upstream.
    package func show(
        _ emoji: String, _ operation: ChatReaction.Operation, on original: RecentMessages.Entry, by person: Person,
        _ annotations: [StoredTag]? = nil, from client: ClientID? = nil, label: String? = nil,
        sender: ChatPerson = ChatPerson(), author: ChatID? = nil, at: ChatTimestamp, _ context: RoomsContext
    ) {
        let annotations =
            annotations ?? replyTags(original)
            + [StoredTag(name: operation == .add ? "+draft/react" : "+draft/unreact", value: emoji)]
        let who = RoomSpeaker(person)
        let msgid = context.messageID(backend: settings.backend, room: settings.upstreamRoom, sender: nil, id: nil)
        enterEvent(["TAGMSG"], msgid: msgid, by: who, annotations, sender: sender, author: author, at: at, context)
        show(
            .reacted(
                RoomReaction(
                    msgid: msgid, at: at, emoji: emoji, operation: operation, original: original,
                    isOnOwn: isAuthor(person, of: original, context), annotations: annotations), by: who),
            to: RoomAudience(author: client, label: label, by: person))
    }

    func replyTags(_ original: RecentMessages.Entry) -> [StoredTag] {
        [
            StoredTag(name: StoredMessage.replyTag, value: original.msgid),
            StoredTag(name: "+draft/reply", value: original.msgid),
        ]
    }
}
