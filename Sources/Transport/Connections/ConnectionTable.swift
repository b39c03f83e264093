/// Connections by slot. Slots lie in blocks that never move, so a pointer stays valid while the owner's callbacks
/// open and close others; ``find(_:)`` checks by the generation that the slot is still the same connection's.
final class ConnectionTable {
    private static let slotsPerBlock = 256

    private var blocks: [UnsafeMutablePointer<Connection>] = []
    private var free: [UInt32] = []
    /// Slots in use.
    private(set) var count = 0

    deinit {
        for block in blocks {
            block.deinitialize(count: Self.slotsPerBlock)
            block.deallocate()
        }
    }

    /// Takes an unused slot and begins its next generation.
    func claim(_ phase: Connection.Phase) -> (ConnectionID, UnsafeMutablePointer<Connection>) {
        if free.isEmpty { grow() }
        let slot = free.removeLast()
        let connection = pointer(Int(slot))
        count += 1
        connection.pointee.claim(phase)
        return (ConnectionID(slot: slot, generation: connection.pointee.generation), connection)
    }

    /// The connection while it has a slot, whatever its phase.
    @inline(__always)
    func find(_ id: ConnectionID) -> UnsafeMutablePointer<Connection>? {
        let slot = id.slot
        guard slot < blocks.count &* Self.slotsPerBlock else { return nil }
        let connection = pointer(slot)
        guard connection.pointee.generation == id.generation, connection.pointee.phase != .free else { return nil }
        return connection
    }

    /// Gives the slot back. The descriptor must be closed.
    func release(_ id: ConnectionID) {
        guard let connection = find(id) else { return }
        connection.pointee.release()
        free.append(UInt32(truncatingIfNeeded: id.slot))
        count -= 1
    }

    /// Ids of all slots in use.
    var ids: [ConnectionID] {
        (0..<blocks.count * Self.slotsPerBlock).compactMap { slot in
            let connection = pointer(slot)
            guard connection.pointee.phase != .free else { return nil }
            return ConnectionID(
                slot: UInt32(truncatingIfNeeded: slot), generation: connection.pointee.generation)
        }
    }

    @inline(__always)
    private func pointer(_ slot: Int) -> UnsafeMutablePointer<Connection> {
        blocks[slot / Self.slotsPerBlock] + slot % Self.slotsPerBlock
    }

    private func grow() {
        let block = UnsafeMutablePointer<Connection>.allocate(capacity: Self.slotsPerBlock)
        for offset in 0..<Self.slotsPerBlock { (block + offset).initialize(to: Connection()) }
        let first = blocks.count * Self.slotsPerBlock
        blocks.append(block)
        // Low numbers are taken first, so that arrays indexed by slot stay short.
        for offset in (0..<Self.slotsPerBlock).reversed() { free.append(UInt32(truncatingIfNeeded: first + offset)) }
    }
}

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

    /// The epoll tag of a descriptor that is no connection: generation 0.
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
