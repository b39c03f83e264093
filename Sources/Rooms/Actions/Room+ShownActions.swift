import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// Showing the room an action on a message.

extension Room {
    /// - Returns: the removed entries of the memory log, where there is no store.
    @discardableResult
    func showTakenBack(
        _ entry: RecentLog.Entry, by person: Person, reason: String?, from client: ClientID, label: String?,
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
    func takeBack(_ entry: RecentLog.Entry, _ context: RoomsContext) -> [StoredMessage] {
        recent.takeBack(msgid: entry.msgid)
        context.keep(.takeBack(storedKey, msgid: entry.msgid))
        let before = archive.takeBack(msgid: entry.msgid)
        amend(.takenBack(msgid: entry.msgid), by: nil, at: context.now.wall, context)
        return before
    }

    /// Shows that an emoji was added to a message or removed, and stores that.
    ///
    /// - Parameters:
    ///   - annotations: tags of the acting client; nil: none.
    ///   - client: the acting client, with `author` its user's upstream id; else `sender` acted, upstream.
    package func show(
        _ emoji: String, _ operation: ChatReaction.Operation, on original: RecentLog.Entry, by person: Person,
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
            to: RoomAudience(author: client, label: label, by: .former(person)))
    }

    func replyTags(_ original: RecentLog.Entry) -> [StoredTag] {
        [
            StoredTag(name: StoredMessage.replyTag, value: original.msgid),
            StoredTag(name: "+draft/reply", value: original.msgid),
        ]
    }
}
