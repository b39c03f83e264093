public import WireBytes

/// Names a connection of the studio; the owner's choice, never used again.
public struct StudioPeerID: Hashable, Sendable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The visitor, who has no connection.
    static let visitor = StudioPeerID(rawValue: .max)
}

/// Actions for the owner of a ``StudioServer``, in order.
public enum StudioAction: Equatable {
    case send(StudioPeerID, ByteSlice)
    /// Flush, then end the transport.
    case close(StudioPeerID)
    /// Nothing to do: `frame` of the `envelope` dialect was said in `room`, and all clients have it. For observers.
    case relayed(room: String, frame: [UInt8])
    /// Nothing to do: a person has joined `room` by a wire that tells of it. For observers.
    case joined(room: String, name: String)
    /// With a store only: a change of the rooms, see ``StudioServer/replay(_:)``.
    case store([String])
    case storeFile(name: String, mime: String, bytes: [UInt8])
}
