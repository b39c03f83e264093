/// Everything that can come due. One heap holds all deadlines, so the driver needs one timer. Of two ids in a key the longer
/// one stands first: then a key fits 16 bytes, of which the heap holds three a client.
package enum TimerKey: Hashable {
    /// The next thing about a client's connection: registration time-out, ping, ping time-out.
    case clientLiveness(ClientID)
    /// The client's flood budget allows another line.
    case clientBudget(ClientID)
    /// A client has waited long enough for others of its name.
    case naming(ClientID)
    /// A client has had the time to ask for what it missed before it comes back to its rooms.
    case arriving(ClientID)
    /// A wrong password has waited long enough for its answer.
    case loginAnswer(ClientID)
    /// An account has taken too long to be made.
    case accountAnswer(ClientID)
    /// A room's link: retry, time-outs and pings (`UpstreamSession`).
    case link(RoomID)
    /// A room's link may be opened: a history would tell the truth now.
    case settling(RoomID)
    /// A slot for another upstream connection.
    case connectGate
    /// Longest wait for messages from before, or for the session to be usable (`CatchUp`).
    case catchUp(RoomID)
    /// The room's outbox: rate budget, confirmation and age.
    case outbox(RoomID)
    /// A person upstream stops typing unless told again.
    case typingIn(PersonID, RoomID)
    /// An IRC user's typing is to be repeated or stopped upstream.
    case typingOut(ClientID, RoomID)
    /// Read receipts for an author wait for their two seconds.
    case receipts(RoomID)
    /// It is to be kept until when nothing of the room is missing.
    case live(RoomID)
    /// A room that was opened has waited long enough for what is kept of it.
    case roomLoad(RoomID)
    /// People who are here are kept as seen.
    case identities
    /// The oldest of what IRC users did to messages is not refused any more, or not answered.
    case openActions(RoomID)
    /// A message that may be ours has waited long enough for the backend to say so.
    case undecided(RoomID)
    /// The backend may be called again to mark a room as read.
    case markRead(RoomID)
    /// People who were silent for long leave the room.
    case idlePeople(RoomID)
    /// The next of many people who came or went at once are told of.
    case crowds(RoomID)
    /// A room's link is gone for so long that nobody behind it is taken for present.
    case split(RoomID)
    /// A backend's tokens or calls: renewal, another try, time-outs.
    case backend(BackendID)
    /// A room that connects only while somebody is in it has been empty for long.
    case linger(RoomID)
    /// Those who want into a room have waited long enough for its link.
    case opening(RoomID)
    /// The next of many who wait for a room that is open now enter.
    case pendingJoins
    /// Joins have waited long enough for a backend's list of rooms.
    case roomsList
    /// A backend that failed to say which rooms it has is asked again.
    case roomsRetry
    /// A LIST has waited long enough for that.
    case listing
    /// The backend has not said yet as whom it sees an account's own link.
    case ownIdentity(RoomID)
    /// A room's IRC users are asked whether they have received what was said.
    case cursors(RoomID)
    /// The next thing about what a client with a cursor gets: asking whether it has, a disk that does not answer.
    case following(ClientID)
    /// What a client asked to see of the past has been waited for long enough.
    case history(ClientID)
    /// The next thing about what a room's backend has from before the room's beginning.
    case olderHistory(RoomID)
    /// The drain time at shutdown is over.
    case shutdown
}
