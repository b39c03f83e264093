import BridgeTypes
import IRCProtocol

/// What the service lists, on its way to a client.
enum ServiceListing {
    /// The rooms from this one on, and how many were listed.
    case rooms(next: Int, count: Int)
    /// The rooms that the template's backend has and nobody has opened.
    case unopenedRooms(next: Int, count: Int)
    /// How the rooms from this one on are; of the first one, from this line on.
    case status(next: Int, line: Int)
    /// The people of a room on one side, from a place in its slots on, and what of their line is made already.
    case people(RoomID, cursor: Int, isUpstream: Bool, begun: String)
    /// How many they are.
    case line(IRCMessage)
}
