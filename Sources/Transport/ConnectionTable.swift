import WireBytes

/// What the transport knows of one connection, in 64 bytes. Addresses, names and protocol state are the owner's.
struct Connection: ~Copyable {
    /// Where a connection stands.
    enum Phase: UInt8 {
        /// The slot is unused.
        case free
        /// Waiting for addresses. Can transition to: connecting, securing or open (Unix sockets), ended.
        case resolving
        /// Waiting for the peer's answer. Can transition to: connecting (next address), securing, open, ended.
        case connecting
        /// Accepted from a proxy whose header is awaited. Can transition to: securing, open, ended.
        case announcing
        /// The TLS handshake is under way. Can transition to: open, flushing, ended.
        case securing
        /// Can transition to: flushing, retired, ended. Also after the peer's end was reported, where the owner keeps it.
        case open
        /// We close when everything queued is sent; input is discarded. Can transition to: lingering, ended.
        case flushing
        /// Everything is sent and our side closed; waits for the peer to close its own. Can transition to: ended.
        case lingering
        /// The peer's end was reported, and what is queued still leaves. Can transition to: free.
        case retired
        /// The descriptor is closed and the report waits its turn. Can transition to: free.
        case ended
    }

    struct Flags: OptionSet {
        var rawValue: UInt16
        /// The kernel said there is something to read and has not said yet that there is nothing more.
        static let readable = Flags(rawValue: 1)
        /// In the list of connections to read from.
        static let inReady = Flags(rawValue: 2)
        /// The owner wants no bytes for now.
        static let paused = Flags(rawValue: 4)
        /// A short read does not prove that nothing is left: the end of the stream or an urgent mark is pending.
        static let readToEnd = Flags(rawValue: 8)
        /// The peer has closed its sending side.
        static let peerEnded = Flags(rawValue: 16)
        /// In the list of connections to flush.
        static let dirty = Flags(rawValue: 32)
        /// The kernel takes no more for now.
        static let writeBlocked = Flags(rawValue: 64)
        /// A send failed; what the peer had sent before is still to be read.
        static let writeBroken = Flags(rawValue: 128)
        /// The queue was above its low-water mark.
        static let aboveLowWater = Flags(rawValue: 256)
        static let notifyWhenDrained = Flags(rawValue: 512)
        /// A drained report waits its turn.
        static let drainReported = Flags(rawValue: 1024)
        /// The end of the connection waits to be reported, or was.
        static let endReported = Flags(rawValue: 2048)
        /// The owner does not want to hear of the end.
        static let silent = Flags(rawValue: 4096)
        /// The owner has heard that the peer sends no more, and goes on sending.
        static let kept = Flags(rawValue: 8192)
    }

    /// What the owner wants sent. On a secured connection this is plain until there is room in the kernel for it.
    var queue = OutboundQueue()
    /// What stands between the queue and the socket, on secured connections.
    var secure: SecureLayer?
    var descriptor: Int32 = -1
    var generation: UInt32 = 0
    /// In bytes; `.max` means that nobody asked.
    var lowWater: UInt32 = .max
    var sendLimit = UInt32(clamping: TransportLimits.sendLimitBytes)
    var flags: Flags = []
    var phase = Phase.free

    /// Whether nothing may be read. A handshake goes on: none of its bytes are the owner's.
    var isPaused: Bool { flags.contains(.paused) && phase != .securing }

    /// Whether something waits to be handed to the kernel.
    var hasUnsent: Bool { !queue.isEmpty || secure?.engine.outbound.isEmpty == false }
    var unsentByteCount: Int { queue.byteCount &+ (secure?.engine.outbound.byteCount ?? 0) }
}

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
        connection.pointee.generation &+= 1
        if connection.pointee.generation == 0 { connection.pointee.generation = 1 }
        connection.pointee.phase = phase
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
        let generation = connection.pointee.generation
        connection.pointee = Connection()
        connection.pointee.generation = generation
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
