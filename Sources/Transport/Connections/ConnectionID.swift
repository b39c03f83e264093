/// Names a connection for its whole life and no other one after it: a slot number below, a generation above.
///
/// The number 0 is never a connection. Ids of ended connections are harmless: calls with them do nothing.
public struct ConnectionID: Hashable, Sendable {
    /// Slot in the low 32 bits, generation (1 or more) in the high ones.
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    init(slot: UInt32, generation: UInt32) { rawValue = UInt64(generation) << 32 | UInt64(slot) }

    /// Small dense number, reused by later connections: an index for arrays beside the transport's own.
    public var slot: Int { Int(truncatingIfNeeded: rawValue & 0xFFFF_FFFF) }
    var generation: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 32) }

    /// What epoll returns for descriptors that are no connection: generation 0.
    static func specialTag(_ number: UInt32) -> UInt64 { UInt64(number) }
}

extension ConnectionID: CustomStringConvertible {
    public var description: String { "\(slot)/\(generation)" }
}

/// Names a listener; numbers are not reused.
public struct ListenerID: Hashable, Sendable {
    public var rawValue: Int

    public init(rawValue: Int) { self.rawValue = rawValue }
}
