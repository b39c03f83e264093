import IRCProtocol

/// An answer that may be longer than a client's queue should be: pulled as the queue drains, in order with live lines.
enum LongAnswer {
    case line(IRCMessage)
    /// What is said to somebody who entered a room, unless they have left it meanwhile.
    case entryNotice(RoomID, IRCMessage)
    /// 353 … 366. The cursor walks the room's slots.
    case names(RoomID, cursor: Int)
    /// 352 or 354 … 315.
    case who(RoomID, cursor: Int, mask: String, whox: IRCWhoxRequest?, operatorsOnly: Bool)
    /// 352 or 354 … 315 for a pattern, from a place in the client's rooms on.
    case whoMask(WhoSearch)
    /// 322 … 323, from this room on.
    case list(nextRoom: Int, ListFilter)
    /// The rooms of the template's backend that are not open.
    case backendList(next: Int, ListFilter)
    /// METADATA of a room's people, to the end of its batch.
    case metadata(RoomID, cursor: Int, batch: String)
    /// What was said in a room while the client was away.
    case backlog(RoomID)
    /// What the client asked to see of what was said before.
    case history(HistoryAnswer)
    /// A private message is taken back that has to be looked up.
    case redaction(PrivateRedaction)
    /// What `*bridge` lists.
    case service(ServiceListing)
    /// What failed of the client's own messages in a room, or over an account's own link there, while it was away.
    case untold(RoomID, after: UInt64)
    /// The client enters a room when its link is there; silently where nobody asked.
    case entrance(Entrance)
    /// The client enters the rooms of its account, from a position on.
    case rejoin(account: String, from: Int64)
}
