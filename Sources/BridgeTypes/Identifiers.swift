/// The id of a client connection. Chosen by the driver; not reused while the bridge may still refer to it.
public struct ClientID: Hashable, Sendable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// The id of a room or of an own link. Configured rooms: the position in the settings. Rooms of a template follow; their
/// numbers are not reused, so that no late event reaches another room. Own links have negative numbers: they take the same
/// requests as rooms, and the hub resolves them.
public struct RoomID: Hashable, Sendable {
    // Half a word is enough for all rooms that one process opens; each client stores several of these, each timer one.
    private var number: Int32

    public var index: Int { Int(number) }

    public init(index: Int) { number = Int32(clamping: index) }
}

/// The id of a user with a nick, on either side of the bridge. Valid while `IdentityMap` has the user.
package struct PersonID: Hashable {
    package var rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    /// An id that is never assigned: numbers begin with 1.
    package static let invalid = PersonID(rawValue: 0)
}

/// The id of a backend: its position in the settings.
public struct BackendID: Hashable, Sendable {
    public var index: Int

    public init(index: Int) { self.index = index }
}

/// The id of a pending call. Numbers are not reused.
public struct BackendCallID: Hashable, Sendable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// The id of an upload, assigned by the driver.
public struct UploadID: Hashable, Sendable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }
}
