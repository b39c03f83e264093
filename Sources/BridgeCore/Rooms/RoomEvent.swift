import ChatModel
import WireBytes

// What a room tells its front ends: values that say nothing of IRC. Each front end shows them in its own way, and none of them
// where it has no way.

/// Who is named with what happened, as they were then.
struct RoomSpeaker {
    var nick: String
    /// How IRC names them in full: `nick!user@host`.
    var source: String
    var account: String?
    var isBot = false
}

extension RoomSpeaker {
    init(_ person: Person) {
        self.init(nick: person.nick, source: person.source, account: person.account, isBot: person.isBot)
    }
}

/// Somebody who came, and is away or not.
struct RoomArrival {
    /// Nil: an IRC user, whose own client is answered by who let it in.
    var upstream: PersonID?
    var who: RoomSpeaker
    var realname: String
    var away: String?

    init(_ person: Person, upstream: PersonID? = nil) {
        self.upstream = upstream
        who = RoomSpeaker(person)
        realname = person.realname
        away = person.away
    }
}

/// Something that was said, or that stands in the room's order like what is said.
struct RoomMessage {
    enum Words {
        /// Of an IRC user, as their client gave them.
        case typed(SpokenText)
        /// Of somebody upstream.
        case upstream(String, attachments: [ChatAttachment] = [], isEncrypted: Bool = false, files: FileLinks? = nil)
    }

    /// Nil: it changes what was said, and has no place of its own.
    var msgid: String?
    var at: ChatTimestamp
    /// Nil: the relay itself.
    var speaker: RoomSpeaker?
    /// It wants no answer.
    var isNotice = false
    var words: Words
    /// The msgid under which the whole can be read, where not all of it is shown.
    var whole: String?
    /// The msgid of what it answers or changes.
    var replyTo: String?
    /// Whom it answers, in words for who is not told by a tag.
    var address: String?
    /// What clients gave with it for other clients.
    var annotations: [StoredTag] = []
    /// Something is missing, said between these.
    var gap: (from: ChatTimestamp, to: ChatTimestamp)?
}

/// An emoji that was put on a message or taken off.
struct RoomReaction {
    var msgid: String
    var at: ChatTimestamp
    var emoji: String
    var operation: ChatReaction.Operation
    var original: RecentMessages.Entry
    /// It is on what they said themselves.
    var isOnOwn: Bool
    /// The same for clients: as one gave it, or as the relay writes it.
    var annotations: [StoredTag]
}

/// What became of what somebody did, told to them alone.
enum RoomAnswer {
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
struct RoomReading {
    var reader: RoomSpeaker
    /// By their msgids; nil: that is no news.
    var delivered: String?
    var read: String?
    /// The newest of these.
    var newest: RecentMessages.Entry?
}

enum RefusedAction {
    case takeBack
    case reaction
}

enum RoomEvent {
    case said(RoomMessage)
    /// A word of the relay's about the room as it is now.
    case notice(String)
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
enum PersonChange {
    case nick(from: String, to: String)
    case realname(RoomSpeaker, String)
    case away(RoomSpeaker, String?)
}

/// Who in the room is told.
struct RoomAudience {
    /// The client that did it: it is told by an echo, if at all.
    var author: ClientID?
    /// What the author's client waits for.
    var label: String?
    /// Other connections of the author's client.
    var twins: [ClientID] = []
    /// Whoever does not want to hear of them is not told.
    var by: Person?

    static var everybody: RoomAudience { RoomAudience() }
}

/// What shows a room to people, and what they are told of it in.
protocol RoomFrontEnd: AnyObject {
    func show(_ event: RoomEvent, in room: Room, to readers: RoomAudience)
    func tell(_ answer: RoomAnswer, in room: Room, to client: ClientID, label: String?)
    func tell(_ reading: RoomReading, in room: Room, to client: ClientID)
    /// Something about somebody upstream, for everybody who sees them in any room, each once.
    func changed(_ person: PersonID, _ change: PersonChange)
    /// A client entered, left, or is given what was said before it came.
    func enter(_ member: Room.LocalMember, isHeld: Bool, in room: Room)
    func leave(_ member: Room.LocalMember, in room: Room)
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
    var isEmpty: Bool {
        attachments.isEmpty && !(isEncrypted && text.isEmpty)
            && MessageRendering.cleanBody(text).allSatisfy(\.isNewline)
    }
}
