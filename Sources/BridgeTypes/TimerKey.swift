/// The deadlines of the bridge. One heap holds all of them, so the driver needs one timer. Of two ids in a key the longer
/// one comes first: then a key fits 16 bytes, of which the heap holds three a client.
package enum TimerKey: Hashable {
    /// A client's connection: registration time-out, ping, ping time-out.
    case clientLiveness(ClientID)
    /// A client's flood budget allows another line.
    case clientBudget(ClientID)
    /// Time-out of a client that waits for same-named clients.
    case clientNaming(ClientID)
    /// End of the time in which a client may request history before its automatic JOINs.
    case autoJoin(ClientID)
    /// End of the delay before the answer to a login.
    case loginAnswer(ClientID)
    /// Time-out of an account registration.
    case registration(ClientID)
    /// A room's link: retry, time-outs and pings (`UpstreamSession`).
    case link(RoomID)
    /// A room's link was not up for as long as the room may be without it.
    case givingUp(RoomID)
    /// A room's link may be opened: the backend's history is complete again.
    case settling(RoomID)
    /// A slot for another upstream connection.
    case connectGate
    /// Time-out of the catch-up, or of the session until it is usable (`CatchUp`).
    case catchUp(RoomID)
    /// The room's outbox: rate budget, confirmation and age.
    case outbox(RoomID)
    /// Expiry of an upstream user's typing state.
    case typingIn(PersonID, RoomID)
    /// Repetition or end of an IRC user's typing state upstream.
    case typingOut(ClientID, RoomID)
    /// End of the two seconds in which read receipts for an author are collected.
    case receipts(RoomID)
    /// Persists the moment up to which a room's order is complete.
    case complete(RoomID)
    /// Time-out of loading an opened room from the store.
    case roomLoad(RoomID)
    /// Persists that the present users were seen.
    case identities
    /// Time-out of the oldest pending action on a message.
    case openActions(RoomID)
    /// Time-out of messages that may be echoes.
    case ambiguousMessages(RoomID)
    /// End of the pause between calls that mark a room as read.
    case markRead(RoomID)
    /// Idle time of upstream users until PART.
    case idleUsers(RoomID)
    /// The next batch of JOINs and PARTs, where many are due at once.
    case joinBatches(RoomID)
    /// A room's link is down for so long that its upstream users count as absent.
    case netsplit(RoomID)
    /// A backend's tokens or calls: renewal, retry, time-outs.
    case backend(BackendID)
    /// An on-demand room has been empty for its linger time.
    case linger(RoomID)
    /// Time-out of the pending JOINs of a room whose link is not up.
    case opening(RoomID)
    /// The next batch of pending JOINs of an open room.
    case pendingJoins
    /// Time-out of JOINs that wait for a backend's list of rooms.
    case roomsList
    /// Retry of a failed request for a backend's list of rooms.
    case roomsRetry
    /// Time-out of a LIST that waits for a backend's list of rooms.
    case listing
    /// Time-out of the request for the identity of an own link.
    case ownIdentity(RoomID)
    /// A room's clients are due for a delivery check.
    case cursors(RoomID)
    /// The next step of a client's delivery cursor: delivery check, store time-out.
    case deliveryCursor(ClientID)
    /// Time-out of a client's history request.
    case history(ClientID)
    /// The next step of a request for messages older than the room's order.
    case olderHistory(RoomID)
    /// The next step of a shutdown.
    case shutdown
}
