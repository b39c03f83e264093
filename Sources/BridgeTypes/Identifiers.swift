/// A connected IRC client. The driver chooses the number and never reuses it while the bridge may still name it.
public struct ClientID: Hashable, Sendable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// A room. Configured ones: the position in the settings. Those of the template have the numbers after these, and
/// no number twice, so that nothing late reaches another room. The links of accounts' own have negative numbers: whatever is
/// asked for a room is asked for them too, and the hub tells whose they are.
public struct RoomID: Hashable, Sendable {
    // Every client remembers its rooms, and every timer may name one: half a word is enough for all rooms that a process
    // opens in its life.
    private var number: Int32

    public var index: Int { Int(number) }

    public init(index: Int) { number = Int32(clamping: index) }
}

/// Somebody with a nick, on either side of the bridge. Valid while the person is known to the map of identities.
package struct PersonID: Hashable {
    package var rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The id that no person has: the numbers begin with 1.
    package static let nobody = PersonID(rawValue: 0)
}

/// A backend: its position in the settings.
public struct BackendID: Hashable, Sendable {
    public var index: Int

    public init(index: Int) { self.index = index }
}

/// A call under way. Numbers are not reused.
public struct BackendCallID: Hashable, Sendable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// An upload of somebody, in the driver's numbers.
public struct UploadID: Hashable, Sendable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }
}
