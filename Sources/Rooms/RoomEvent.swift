import BridgeTypes
import ChatModel
import Identities
import Media
import WireBytes

// Events from a room to its front ends, independent of IRC. A front end omits an event that it cannot show.

/// A person that joined, away or not.
package struct RoomArrival {
    /// Nil: an IRC user, whose own client gets its reply from the handler of its JOIN.
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

/// A message, or an entry that stands in the room's order like one.
package struct RoomMessage {
    package enum Words {
        /// Of an IRC user, as typed in their client.
        case typed(SpokenText)
        /// Of an upstream person, as it is shown: nicks for mentions, no secrets.
        case upstream(ChatMessage)
    }

    /// Nil: it changes an earlier message, and has no sequence number.
    package var msgid: String?
    package var at: ChatTimestamp
    /// Nil: the relay itself.
    package var speaker: RoomSpeaker?
    /// It expects no reply.
    package var isNotice = false
    package var words: Words
    /// How to reach the files of an upstream message.
    package var files: RoomFileLinks?
    /// The msgid of the full text, where only a part is shown.
    package var whole: String?
    /// The msgid of the message that it answers or changes.
    package var replyTo: String?
    /// The addressee in words, for clients without tags.
    package var address: String?
    /// Client-only tags for other clients.
    package var annotations: [StoredTag] = []
    /// A gap: messages between these times may be missing.
    package var gap: (from: ChatTimestamp, to: ChatTimestamp)?
}

/// An emoji that was added to a message or removed.
package struct RoomReaction {
    package var msgid: String
    package var at: ChatTimestamp
    package var emoji: String
    package var operation: ChatReaction.Operation
    package var original: RecentLog.Entry
    /// It is on the actor's own message.
    package var isOnOwn: Bool
    /// Tags for clients: as given by one, or as written by the relay.
    package var annotations: [StoredTag]
}

/// The outcome of a user's message or action, for that user alone.
package enum RoomAnswer {
    case queued(String, isUp: Bool)
    /// The process ends: `count` messages remain queued for the restart, this one first.
    case kept(String, count: Int)
    case deliveredLate(String)
    case notDelivered(String, why: FailureReason)
    case notStored(String, why: String)
    case actionRefused(ActionRefusal, RefusedAction, msgid: String)
    case reactionStays(why: String)
    case notice(String)
}

/// A person's delivery and read position among a user's messages.
package struct RoomReading {
    package var reader: RoomSpeaker
    /// As msgids; nil: unchanged.
    package var delivered: String?
    package var read: String?
    /// The newest of these.
    package var newest: RecentLog.Entry?
}

package enum RefusedAction {
    case takeBack
    case reaction
}

package enum RoomEvent {
    case said(RoomMessage)
    /// A notice of the relay about the room's present state.
    case notice(String)
    /// An announcement of the backend, of any length.
    case announced(String)
    /// The backend's topic is another.
    case topic(String)
    case entered(RoomArrival)
    case left(RoomSpeaker, reason: String?)
    /// A batch of joins after the link came up.
    case returned([RoomArrival])
    /// A batch of people no longer visible, in this room or anywhere.
    case separated([(who: RoomSpeaker, isSeenElsewhere: Bool)])
    case typing(RoomSpeaker, isTyping: Bool)
    /// Client-only tags without a message.
    case passed([StoredTag], by: RoomSpeaker, msgid: String)
    /// - Parameter by: nil is the backend.
    case takenBack([RecentLog.Entry], by: RoomSpeaker?, msgid: String?, reason: String?)
    /// Messages of an erased person, in the order of the room.
    case erased(msgids: [String])
    case reacted(RoomReaction, by: RoomSpeaker)
}

/// A change of an upstream person.
package enum PersonChange {
    case nick(from: String, to: String)
    case realname(RoomSpeaker, String)
    case away(RoomSpeaker, String?)
}

/// The recipients of an event.
package struct RoomAudience {
    /// The client that caused it, which gets an echo at most.
    package var author: ClientID?
    /// The label of the author's pending command.
    package var label: String?
    /// Other connections of the author's client.
    package var twins: [ClientID] = []
    /// The person whose events some members have muted.
    package var by: Cause?

    package enum Cause {
        case present(PersonID)
        /// As of then; they may have left.
        indirect case former(Person)
    }

    package static var everybody: RoomAudience { RoomAudience() }
}

extension ChatMessage {
    /// There is nothing to show.
    package var isEmpty: Bool {
        // Nearly every text begins with a character that is seen.
        if let first = self.text.utf8.first, first > 0x20, first < 0x7F { return false }
        return self.attachments.isEmpty && !(self.isEncrypted && self.text.isEmpty)
            && MessageText.cleanBody(self.text).allSatisfy(\.isNewline)
    }
}
