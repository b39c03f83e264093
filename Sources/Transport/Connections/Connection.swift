import CSystem
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
        /// The owner wants to hear when nothing is queued.
        static let notifyWhenDrained = Flags(rawValue: 256)
        /// A drained report waits its turn.
        static let drainReported = Flags(rawValue: 512)
        /// The end of the connection waits to be reported, or was.
        static let endReported = Flags(rawValue: 1024)
        /// The owner does not want to hear of the end.
        static let silent = Flags(rawValue: 2048)
        /// The owner has heard that the peer sends no more, and goes on sending.
        static let kept = Flags(rawValue: 4096)
    }

    /// What the owner wants sent. On a secured connection this is plain until there is room in the kernel for it.
    private(set) var queue = OutboundQueue()
    /// What stands between the queue and the socket, on secured connections.
    private(set) var secure: SecureLayer?
    private(set) var descriptor: Int32 = -1
    private(set) var generation: UInt32 = 0
    private(set) var sendLimit = UInt32(clamping: TransportLimits.sendLimitBytes)
    private(set) var flags: Flags = []
    private(set) var phase = Phase.free

    /// Whether nothing may be read. A handshake goes on: none of its bytes are the owner's.
    var isPaused: Bool { flags.contains(.paused) && phase != .securing }

    /// Whether something waits to be handed to the kernel.
    var hasUnsent: Bool { !queue.isEmpty || secure?.engine.outbound.isEmpty == false }
    var unsentByteCount: Int { queue.byteCount &+ (secure?.engine.outbound.byteCount ?? 0) }

    /// Whether the owner may still say what is to be read.
    var isBeforeClosing: Bool {
        switch phase {
        case .resolving, .connecting, .announcing, .securing, .open: true
        case .free, .flushing, .lingering, .retired, .ended: false
        }
    }

    /// Whether what the owner sends is queued.
    var takesBytes: Bool {
        switch phase {
        case .resolving, .connecting, .securing, .open: !flags.contains(.writeBroken)
        case .free, .announcing, .flushing, .lingering, .retired, .ended: false
        }
    }

    // MARK: - The slot

    /// Begins the slot's next generation.
    mutating func claim(_ phase: Phase) {
        generation &+= 1
        if generation == 0 { generation = 1 }
        self.phase = phase
    }

    /// Forgets everything but the generation. The descriptor must be closed.
    mutating func release() {
        let last = generation
        self = Connection()
        generation = last
    }

    // MARK: - The socket

    mutating func attach(_ descriptor: Int32) { self.descriptor = descriptor }

    /// The descriptor, which is the caller's to close; nil when there is none.
    mutating func detach() -> Int32? {
        guard descriptor >= 0 else { return nil }
        defer { descriptor = -1 }
        return descriptor
    }

    mutating func secure(by layer: SecureLayer) { secure = layer }

    // MARK: - Phases

    mutating func connecting() { phase = .connecting }
    mutating func securing() { phase = .securing }
    mutating func stands() { phase = .open }

    mutating func beginFlushing() {
        phase = .flushing
        flags.remove(.paused)
    }

    mutating func beginLingering() { phase = .lingering }
    mutating func retire() { phase = .retired }

    mutating func ended() {
        queue.removeAll()
        phase = .ended
    }

    // MARK: - What the kernel says

    /// The kernel's events, and what they mean for the lists.
    mutating func arrived(_ events: UInt32) -> (isReadable: Bool, isWritable: Bool) {
        let readToEnd = CB_EPOLLRDHUP | CB_EPOLLHUP | CB_EPOLLERR | CB_EPOLLPRI
        if events & readToEnd != 0 { flags.insert(.readToEnd) }
        let isReadable = events & (CB_EPOLLIN | readToEnd) != 0
        if isReadable { flags.insert(.readable) }
        let isWritable = events & (CB_EPOLLOUT | CB_EPOLLHUP | CB_EPOLLERR) != 0 && flags.contains(.writeBlocked)
        if isWritable { flags.remove(.writeBlocked) }
        return (isReadable, isWritable)
    }

    /// There may be something to read: in the kernel, or held back in the layer.
    mutating func mayRead() { flags.insert(.readable) }

    /// All there was is read, as a short read proves.
    mutating func readShort() { flags.remove(.readable) }

    /// All there was is read, as the kernel says.
    mutating func readEmpty() { flags.subtract([.readable, .readToEnd]) }

    /// The peer sends no more; false when that was known.
    mutating func peerEnds() -> Bool {
        flags.remove(.readable)
        return flags.insert(.peerEnded).inserted
    }

    /// The kernel takes no more for now.
    mutating func block() { flags.insert(.writeBlocked) }

    /// Nothing can be sent any more, while the peer's last words may still lie in the receive buffer.
    mutating func breakWriting() {
        queue.removeAll()
        secure?.engine.forgetOutbound()
        flags.formUnion([.writeBroken, .readable, .readToEnd])
    }

    // MARK: - The turn's lists

    /// Whether it is to be put into the list of those to read from.
    mutating func enlistForReading() -> Bool {
        guard !flags.contains(.inReady), !isPaused else { return false }
        flags.insert(.inReady)
        return true
    }

    mutating func leaveReady() { flags.remove(.inReady) }

    /// Whether it is to be put into the list of those to flush. A blocked one is when the kernel takes bytes again.
    mutating func enlistForFlush() -> Bool {
        guard flags.isDisjoint(with: [.dirty, .writeBlocked]) else { return false }
        flags.insert(.dirty)
        return true
    }

    mutating func leaveDirty() { flags.remove(.dirty) }

    // MARK: - Sending

    mutating func append(_ slice: ByteSlice) { queue.append(slice) }
    mutating func consume(_ count: Int) { queue.consume(count) }
    mutating func forgetQueue() { queue.removeAll() }
    mutating func setSendLimit(bytes: Int) { sendLimit = UInt32(clamping: bytes) }

    mutating func notifyWhenDrained() { flags.insert(.notifyWhenDrained) }

    /// Whether the owner is to be told that nothing is queued: it asked, and no report waits its turn.
    mutating func takeDrained() -> Bool {
        guard flags.contains(.notifyWhenDrained), unsentByteCount == 0 else { return false }
        flags.remove(.notifyWhenDrained)
        return flags.insert(.drainReported).inserted
    }

    mutating func drainTold() { flags.remove(.drainReported) }

    // MARK: - What the owner wants

    mutating func pause() { flags.insert(.paused) }
    mutating func resume() { flags.remove(.paused) }
    mutating func keep() { flags.insert(.kept) }
    mutating func silence() { flags.insert(.silent) }

    // MARK: - The end

    /// The end is to be reported; false when it was before.
    @discardableResult
    mutating func endReported() -> Bool { flags.insert(.endReported).inserted }

    /// The peer's end was told, and the owner goes on sending: the end that follows is another one.
    mutating func goOnSending() { flags.subtract([.kept, .endReported]) }
}
