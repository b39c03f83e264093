/// Connections by slot. Slots lie in blocks that never move, so a pointer stays valid while the owner's callbacks open
/// and close others; whether it still means the same connection, ``find(_:)`` tells by the generation.
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
