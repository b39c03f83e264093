import BridgeTypes
import ChatModel
import Identities
import Media
import WireBytes

// What a room tells its front ends: values that say nothing of IRC. Each front end shows them in its own way, and none of them
// where it has no way.

/// Who is named with what happened, as they were then.
package struct RoomSpeaker {
    package var nick: String
    /// How IRC names them in full: `nick!user@host`.
    package var source: String
    package var account: String?
    package var isBot = false
}

extension RoomSpeaker {
    package init(_ person: Person) {
        self.init(nick: person.nick, source: person.source, account: person.account, isBot: person.isBot)
    }
}

/// Somebody who came, and is away or not.
package struct RoomArrival {
    /// Nil: an IRC user, whose own client is answered by who let it in.
    package var upstream: PersonID?
    package var who: RoomSpeaker
    package var realname: String
    package var away: String?

    init(_ person: Person, upstream: PersonID? = nil) {
        self.upstream = upstream
        who = RoomSpeaker(person)
        realname = person.realname
        away = person.away
    }
}

/// Something that was said, or that stands in the room's order like what is said.
package struct RoomMessage {
    package enum Words {
        /// Of an IRC user, as their client gave them.
        case typed(SpokenText)
        /// Of somebody upstream.
        case upstream(String, attachments: [ChatAttachment] = [], isEncrypted: Bool = false, files: FileLinks? = nil)
    }

    /// Nil: it changes what was said, and has no place of its own.
    package var msgid: String?
    package var at: ChatTimestamp
    /// Nil: the relay itself.
    package var speaker: RoomSpeaker?
    /// It wants no answer.
    package var isNotice = false
    package var words: Words
    /// The msgid under which the whole can be read, where not all of it is shown.
    package var whole: String?
    /// The msgid of what it answers or changes.
    package var replyTo: String?
    /// Whom it answers, in words for who is not told by a tag.
    package var address: String?
    /// What clients gave with it for other clients.
    package var annotations: [StoredTag] = []
    /// Something is missing, said between these.
    package var gap: (from: ChatTimestamp, to: ChatTimestamp)?
}

/// An emoji that was put on a message or taken off.
package struct RoomReaction {
    package var msgid: String
    package var at: ChatTimestamp
    package var emoji: String
    package var operation: ChatReaction.Operation
    package var original: RecentMessages.Entry
    /// It is on what they said themselves.
    package var isOnOwn: Bool
    /// The same for clients: as one gave it, or as the relay writes it.
    package var annotations: [StoredTag]
}

/// What became of what somebody did, told to them alone.
package enum RoomAnswer {
    case queued(String, isUp: Bool)
    /// The process ends: so many go after the restart, the first of them this.
    case kept(String, count: Int)
    case deliveredLate(String)
    case notDelivered(String, why: String)
    case notStored(String, why: String)
    case actionRefused(ActionRefusal, RefusedAction, msgid: String)
    case reactionStays(why: String)
    case notice(String)
}

/// Up to which of somebody's messages another person got and read them.
package struct RoomReading {
    package var reader: RoomSpeaker
    /// By their msgids; nil: that is no news.
    package var delivered: String?
    package var read: String?
    /// The newest of these.
    package var newest: RecentMessages.Entry?
}

package enum RefusedAction {
    case takeBack
    case reaction
}

package enum RoomEvent {
    case said(RoomMessage)
    /// A word of the relay's about the room as it is now.
    case notice(String)
    /// A word of the backend's to everybody, of whatever length.
    case announced(String)
    case entered(RoomArrival)
    case left(RoomSpeaker, reason: String?)
    /// Many at once, with the link.
    case returned([RoomArrival])
    /// Many at once are seen no more, in this room or anywhere.
    case separated([(who: RoomSpeaker, isSeenElsewhere: Bool)])
    case typing(RoomSpeaker, isTyping: Bool)
    /// What a client gave for other clients alone.
    case passed([StoredTag], by: RoomSpeaker, msgid: String)
    /// - Parameter by: nil is the backend.
    case takenBack([RecentMessages.Entry], by: RoomSpeaker?, msgid: String?, reason: String?)
    case reacted(RoomReaction, by: RoomSpeaker)
}

/// Somebody upstream is not as they were.
package enum PersonChange {
    case nick(from: String, to: String)
    case realname(RoomSpeaker, String)
    case away(RoomSpeaker, String?)
}

/// Who in the room is told.
package struct RoomAudience {
    /// The client that did it: it is told by an echo, if at all.
    package var author: ClientID?
    /// What the author's client waits for.
    package var label: String?
    /// Other connections of the author's client.
    package var twins: [ClientID] = []
    /// Whoever does not want to hear of them is not told.
    package var by: Person?

    package static var everybody: RoomAudience { RoomAudience() }
}

/// What shows a room to people, and what they are told of it in.
package protocol RoomFrontEnd: AnyObject {
    func show(_ event: RoomEvent, in room: Room, to readers: RoomAudience)
    func tell(_ answer: RoomAnswer, in room: Room, to client: ClientID, label: String?)
    func tell(_ reading: RoomReading, in room: Room, to client: ClientID)
    /// Something about somebody upstream, for everybody who sees them in any room, each once.
    func changed(_ person: PersonID, _ change: PersonChange)
    /// A client entered, left, or is given what was said before it came.
    func enter(_ member: LocalMember, isHeld: Bool, in room: Room)
    func leave(_ member: LocalMember, in room: Room)
    /// Calls back when the client has certainly got everything that was written to it before this.
    func whenReceived(by client: ClientID, _ received: @escaping () -> Void)
    /// Tells these clients, after what they are being told already, what failed of their messages in a room.
    func tellUntold(in room: Room, to clients: [ClientID])
    /// Whether the client is connected, in whatever rooms.
    func isHere(_ client: ClientID) -> Bool
    /// The room's link is gone because nobody is there any more.
    func roomFellSilent(_ room: RoomID)
    /// Whoever waits for the room's link may enter.
    func roomOpened(_ room: RoomID)
}

extension ChatMessage {
    /// There is nothing to see.
    package var isEmpty: Bool {
        attachments.isEmpty && !(isEncrypted && text.isEmpty)
            && MessageText.cleanBody(text).allSatisfy(\.isNewline)
    }
}
