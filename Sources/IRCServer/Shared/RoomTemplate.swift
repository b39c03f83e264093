public import Rooms

/// Opens a room of a backend for any channel that somebody joins.
public struct RoomTemplate: Sendable {
    /// The backend whose rooms these are.
    public var backend: String
    /// The settings of one of its rooms, by the room's id or name there. Nil when no connection can be made for that name.
    /// Name, channel and topic are the bridge's to fill in.
    public var settings: @Sendable (_ upstreamRoom: String) -> RoomSettings?

    public init(backend: String, settings: @escaping @Sendable (_ upstreamRoom: String) -> RoomSettings?) {
        self.backend = backend
        self.settings = settings
    }
}
