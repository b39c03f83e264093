import BridgeTypes
import IRCProtocol

/// A WHO with a pattern on its way through the rooms of the client.
struct WhoSearch {
    /// The client's rooms when it asked.
    var rooms: [RoomID]
    /// Which of them is next.
    var place = 0
    /// In that room's slots.
    var cursor = 0
    var mask: IRCMask
    /// As it was asked for.
    var shown: String
    var whox: IRCWhoxRequest?
    var operatorsOnly: Bool
    /// The client itself, where it is in no room.
    var includesItself: Bool
}
