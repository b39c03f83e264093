import CSystem
import WireBytes

/// The transport's state of one connection, in 64 bytes. Addresses, names and protocol state are the owner's.
struct Connection: ~Copyable {
    /// The state of a connection.
    enum Phase: UInt8 {
        /// The slot is unused.
        case free
        /// Waiting for addresses. Can transition to: connecting, securing or open (Unix sockets), ended.
        case resolving
        /// Waiting for the peer's answer. Can transition to: connecting (next address), securing, open, ended.
        case connecting
        /// Accepted from a proxy; its header is incomplete. Can transition to: securing, open, ended.
        case awaitingProxyHeader
        /// The TLS handshake is under way. Can transition to: open, flushing, ended.
        case securing
        /// Can transition to: flushing, retired, ended. Also half-closed: the peer's end was reported and the owner
        /// goes on sending.
        case open
        /// Closing once everything queued is sent; input is discarded. Can transition to: lingering, ended.
        case flushing
        /// Everything is sent and the local side closed; waits for the peer to close its own. Can transition to:
        /// ended.
        case lingering
        /// The peer's end was reported, and queued bytes are still sent. Can transition to: free.
        case retired
        /// The descriptor is closed and the report waits its turn. Can transition to: free.
        case ended
    }

    struct Flags: OptionSet {
        var rawValue: UInt16
        /// Readable by the kernel's last event, and not yet read until EAGAIN.
        static let readable = Flags(rawValue: 1)
        /// In the list of connections to read from.
        static let inReady = Flags(rawValue: 2)
        /// Reading is paused by the owner.
        static let paused = Flags(rawValue: 4)
        /// A short read does not prove that nothing is left: the end of the stream or an urgent mark is pending.
        static let readToEnd = Flags(rawValue: 8)
        /// The peer has closed its sending side.
        static let peerEnded = Flags(rawValue: 16)
        /// In the list of connections to flush.
        static let dirty = Flags(rawValue: 32)
        /// The kernel takes no more for now.
        static let writeBlocked = Flags(rawValue: 64)
        /// A send failed; bytes that the peer had sent before are still to be read.
        static let writeBroken = Flags(rawValue: 128)
        /// The owner asked for a report when the queue is empty.
        static let notifyWhenDrained = Flags(rawValue: 256)
        /// A drained report waits its turn.
        static let drainReported = Flags(rawValue: 512)
        /// The end of the connection waits to be reported, or was.
        static let endReported = Flags(rawValue: 1024)
        /// The owner wants no report of the end.
        static let silent = Flags(rawValue: 2048)
        /// Half-closed: the end of the peer's stream was reported, and the owner goes on sending.
        static let halfClosed = Flags(rawValue: 4096)
    }

    /// Bytes to send. On a secured connection they are plain until there is room in the kernel for them.
    private(set) var queue = OutboundQueue()
    /// The TLS between the queue and the socket; nil on plain connections.
    private(set) var secure: SecureLayer?
    private(set) var descriptor: Int32 = -1
    private(set) var generation: UInt32 = 0
    private(set) var sendLimit = UInt32(clamping: TransportLimits.sendLimitBytes)
    private(set) var flags: Flags = []
    private(set) var phase = Phase.free

    /// Whether nothing may be read. A handshake goes on: none of its bytes are the owner's.
    var isPaused: Bool { flags.contains(.paused) && phase != .securing }

    /// Whether bytes wait to be handed to the kernel.
    var hasUnsent: Bool { !queue.isEmpty || secure?.engine.outbound.isEmpty == false }
    var unsentByteCount: Int { queue.byteCount &+ (secure?.engine.outbound.byteCount ?? 0) }

    /// Whether it can be read now and its bytes delivered with those of others: nothing but bytes is expected of it.
    var mayReadAhead: Bool {
        phase == .open && secure == nil && flags.contains(.readable)
            && flags.isDisjoint(with: [.paused, .readToEnd, .endReported])
    }

    /// Whether the owner may still pause and resume reading.
    var isBeforeClosing: Bool {
        switch phase {
        case .resolving, .connecting, .awaitingProxyHeader, .securing, .open: true
        case .free, .flushing, .lingering, .retired, .ended: false
        }
    }

    /// Whether bytes that the owner sends are queued.
    var takesBytes: Bool {
        switch phase {
        case .resolving, .connecting, .securing, .open: !flags.contains(.writeBroken)
        case .free, .awaitingProxyHeader, .flushing, .lingering, .retired, .ended: false
        }
    }

    // MARK: - The slot

    /// Begins the slot's next generation.
    mutating func claim(_ phase: Phase) {
        generation &+= 1
        if generation == 0 { generation = 1 }
        self.phase = phase
    }

    /// Resets everything but the generation. The descriptor must be closed.
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

    // MARK: - Events of the kernel

    /// The kernel's events, and their meaning for the lists.
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

    /// Everything available was read, as a short read proves.
    mutating func readShort() { flags.remove(.readable) }

    /// Everything available was read, as EAGAIN proves.
    mutating func readEmpty() { flags.subtract([.readable, .readToEnd]) }

    /// The peer has ended its stream; false when that was known.
    mutating func peerEnds() -> Bool {
        flags.remove(.readable)
        return flags.insert(.peerEnded).inserted
    }

    /// The kernel takes no more for now.
    mutating func block() { flags.insert(.writeBlocked) }

    /// Nothing can be sent any more, while the last bytes of the peer may still lie in the receive buffer.
    mutating func breakWriting() {
        queue.removeAll()
        secure?.engine.dropOutbound()
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
    mutating func dropQueue() { queue.removeAll() }
    mutating func setSendLimit(bytes: Int) { sendLimit = UInt32(clamping: bytes) }

    mutating func notifyWhenDrained() { flags.insert(.notifyWhenDrained) }

    /// Whether to report that the queue is empty: the owner asked, and no report waits its turn.
    mutating func takeDrained() -> Bool {
        guard flags.contains(.notifyWhenDrained), unsentByteCount == 0 else { return false }
        flags.remove(.notifyWhenDrained)
        return flags.insert(.drainReported).inserted
    }

    mutating func drainDelivered() { flags.remove(.drainReported) }

    // MARK: - The owner's requests

    mutating func pause() { flags.insert(.paused) }
    mutating func resume() { flags.remove(.paused) }
    mutating func silence() { flags.insert(.silent) }

    // MARK: - The end

    /// The end is to be reported; false when it was before.
    @discardableResult
    mutating func endReported() -> Bool { flags.insert(.endReported).inserted }

    /// The peer's end was reported, and the owner goes on sending: the end that follows is another one.
    mutating func halfClose() {
        flags.insert(.halfClosed)
        flags.remove(.endReported)
    }

    /// Whether the owner has said so, while the end was reported.
    mutating func takeHalfClosed() -> Bool { flags.remove(.halfClosed) != nil }
}
