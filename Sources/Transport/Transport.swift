import CSystem
import WireBytes

/// The sockets of one loop: listens, connects, moves bytes, and calls its delegate.
///
/// It knows no protocol. A turn of the loop is: reports that earlier calls left, events of the kernel, received
/// bytes, timers, ``TransportDelegate/turnWillFlush(now:transport:)``, then one write for each connection that has
/// something to send. Reached only on the loop's thread, through ``NetworkLoop/run(_:)``, hence not `Sendable`.
///
/// Descriptors are registered once, edge-triggered, for everything; the flags of ``Connection`` hold the kernel's
/// last word. TLS sits where bytes cross between socket and owner, in a ``SecureLayer`` of those connections that
/// have it: behind a read, and before a write.
public final class Transport {
    /// Held strongly until the loop stops.
    public private(set) var delegate: (any TransportDelegate)?

    /// The clock as it stood when this turn began.
    public private(set) var now: MonotonicInstant
    /// Milliseconds since 1970 as they stood when this turn began. May jump; for people, not for timers.
    public private(set) var wallClockMilliseconds: Int64
    public internal(set) var counters = TransportCounters()

    let executor: LoopExecutor
    let connections = ConnectionTable()
    let resolver = ResolverPool()

    // MARK: State of the turn

    /// A call of the delegate that is due in the next turn.
    enum Report {
        case opened(SocketAddress)
        case drained
        case closed(StreamEnd)
    }

    private var reports: [(id: ConnectionID, report: Report)] = []
    private var reportsNow: [(id: ConnectionID, report: Report)] = []
    /// Connections with something to read, and those with something to send.
    var ready: [ConnectionID] = []
    var readyNow: [ConnectionID] = []
    var dirty: [ConnectionID] = []
    var dirtyNow: [ConnectionID] = []
    let timers = LoopTimers()
    private var deadline: MonotonicInstant?
    private let events: UnsafeMutablePointer<cb_epoll_event>
    private var eventCount = 0
    let receiveBuffer: UnsafeMutableRawBufferPointer
    /// What of the buffer is whose, in the order of the reads.
    var received: [(id: ConnectionID, place: Range<Int>)] = []
    var receivedNow: [(id: ConnectionID, place: Range<Int>)] = []
    private(set) var isShutDown = false

    // MARK: Listeners, outgoing attempts, signals

    var listeners: [ListenerID: Listener] = [:]
    /// Listening sockets by the number in their epoll tag.
    var listenerSockets: [UInt32: ListenerSocket] = [:]
    var lastListenerID = 0
    /// The tag given out last, to a listener or a racer.
    var lastTag: UInt32 = Transport.firstListenerTag
    var attempts: [ConnectionID: ConnectAttempt] = [:]
    /// Sockets of outgoing attempts by the number in their epoll tag.
    var racers: [UInt32: ConnectRacer] = [:]
    /// Accepted connections whose PROXY header is awaited.
    let pendingProxyHeaders = PendingProxyHeaders()
    private let signals = SignalWatch()
    private var signalHandler: ((Int32, Transport) -> Void)?

    // MARK: TLS

    let tls = TLSState()

    private static let signalTag: UInt32 = 1
    static let firstListenerTag: UInt32 = 16

    init(executor: LoopExecutor) {
        self.executor = executor
        now = SystemClock.monotonic()
        wallClockMilliseconds = SystemClock.wallMilliseconds()
        events = .allocate(capacity: TransportLimits.eventsPerWait)
        events.initialize(repeating: cb_epoll_event(), count: TransportLimits.eventsPerWait)
        receiveBuffer = .allocate(byteCount: TransportLimits.receiveBufferBytes, alignment: 64)
    }

    deinit {
        shutDown()
        events.deallocate()
        receiveBuffer.deallocate()
    }

    // MARK: - The owner's settings

    /// Has `delegate` own the connections from here on.
    public func attach(_ delegate: any TransportDelegate) { self.delegate = delegate }

    /// Calls `handler` on the loop for each of `signals` that arrives, in place of the signal's default action.
    ///
    /// One loop of a process may watch; a second call replaces the handler and adds signals.
    public func watchSignals(
        _ signals: [Int32], handler: @escaping (Int32, Transport) -> Void
    ) throws(TransportError) {
        guard !isShutDown else { return }
        try self.signals.watch(signals, epoll: executor.epoll, tag: ConnectionID.specialTag(Self.signalTag))
        signalHandler = handler
    }

    /// Sets the owner's one wake-up, or takes it away. An instant that has passed comes in this turn or the next.
    public func setDeadline(_ at: MonotonicInstant?) { deadline = at }

    /// Connections that have an id, from the call or accept that made it until the end is reported.
    public var connectionCount: Int { connections.count }

    // MARK: - The turn

    func runTurn() {
        counters.turned()
        deliverReports()
        handleEvents()
        readFromReady()
        fireTimers()
        if let deadline, deadline <= now {
            self.deadline = nil
            delegate?.deadlineReached(now: now, transport: self)
        }
        delegate?.turnWillFlush(now: now, transport: self)
        flushDirty()
    }

    /// Sleeps until something happens, then reads the clocks for the next turn.
    func wait() {
        let arrived = cb_epoll_wait(executor.epoll, events, Int32(TransportLimits.eventsPerWait), waitMilliseconds())
        // EINTR, and anything else, is an empty turn.
        eventCount = max(0, Int(arrived))
        now = SystemClock.monotonic()
        wallClockMilliseconds = SystemClock.wallMilliseconds()
    }

    private func waitMilliseconds() -> Int32 {
        if !reports.isEmpty || tls.hasReports || !ready.isEmpty || !dirty.isEmpty || executor.hasWork { return 0 }
        guard let next = MonotonicInstant.earlier(deadline, timers.next()) else { return -1 }
        let clock = SystemClock.monotonic()
        if next <= clock { return 0 }
        // Rounded up: waking early would only mean another turn.
        let (left, overflow) = next.nanoseconds.subtractingReportingOverflow(clock.nanoseconds)
        let milliseconds = overflow ? Int64.max : left / 1_000_000 + (left % 1_000_000 == 0 ? 0 : 1)
        return Int32(clamping: milliseconds)
    }

    private func handleEvents() {
        var index = 0
        while index < eventCount {
            let event = events[index]
            index &+= 1
            if event.tag >> 32 != 0 {
                handleConnectionEvent(ConnectionID(rawValue: event.tag), event.events)
            } else {
                switch UInt32(truncatingIfNeeded: event.tag) {
                case Self.signalTag: for signal in signals.arrived() { signalHandler?(signal, self) }
                case let tag where racers[tag] != nil: racerProgressed(tag, event.events)
                case let tag where tag >= Self.firstListenerTag: acceptConnections(tag)
                default: break
                }
            }
        }
        eventCount = 0
    }

    private func handleConnectionEvent(_ id: ConnectionID, _ events: UInt32) {
        guard let connection = connections.find(id) else { return }
        let (isReadable, isWritable) = connection.pointee.arrived(events)
        if isReadable { enlistForReading(id, connection) }
        if isWritable, connection.pointee.hasUnsent { enlistForFlush(id, connection) }
    }

    private func fireTimers() {
        while let key = timers.popDue(now) {
            switch key {
            case .connect(let id): connectTimerFired(id)
            case .handshake(let id): handshakeTimerFired(id)
            case .proxyHeader(let id): proxyHeaderTimerFired(id)
            case .linger(let id): lingerTimerFired(id)
            case .acceptRest(let tag): resumeAccepting(tag)
            case .certificates: checkCertificateFiles()
            }
        }
    }

    // MARK: - Reports

    func report(_ id: ConnectionID, _ report: Report) { reports.append((id, report)) }

    private func deliverReports() {
        for (user, error) in tls.takeReports() { delegate?.certificatesChanged(user, error: error, transport: self) }
        guard !reports.isEmpty else { return }
        swap(&reports, &reportsNow)
        for (id, report) in reportsNow {
            guard let connection = connections.find(id) else { continue }
            switch report {
            case .opened(let peer):
                if connection.pointee.phase == .open { delegate?.connectionOpened(id, peer: peer, transport: self) }
            case .drained:
                connection.pointee.drainDelivered()
                if connection.pointee.phase == .open, !connection.pointee.flags.contains(.endReported) {
                    delegate?.connectionDrained(id, transport: self)
                }
            case .closed(let end):
                if connection.pointee.flags.contains(.silent) {
                } else if reportProxyHeaderFailure(id, end) {
                } else if case .accepted(let listener, let peer)? = connection.pointee.secure?.handshakeReport {
                    delegate?.handshakeFailed(end, listener: listener, peer: peer, transport: self)
                } else {
                    delegate?.connectionClosed(id, end, transport: self)
                }
                leave(id, connection)
            }
        }
        reportsNow.removeAll(keepingCapacity: true)
    }

    /// Frees the slot after the report of the end, or leaves it to the transport alone while its last bytes are sent.
    private func leave(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        if connection.pointee.takeHalfClosed() { return }
        let isDone = !connection.pointee.hasUnsent && connection.pointee.secure?.owesCloseNotify != true
        if connection.pointee.phase == .ended || isDone {
            closeDescriptor(connection, reset: false)
            connections.release(id)
        } else {
            connection.pointee.retire()
            timers.set(.linger(id), at: now + TransportLimits.endOfStreamLinger)
            enlistForFlush(id, connection)
        }
    }

    // MARK: - The end

    /// Sends what can be sent without waiting, as the turn before did, and closes everything.
    func shutDown() {
        guard !isShutDown else { return }
        isShutDown = true
        delegate = nil
        for id in connections.ids {
            guard let connection = connections.find(id) else { continue }
            abandonAttempt(id)
            closeDescriptor(connection, reset: false)
            connections.release(id)
        }
        for id in Array(listeners.keys) { closeListener(id) }
        signals.end(epoll: executor.epoll)
        signalHandler = nil
        pendingProxyHeaders.removeAll()
        reports = []
        ready = []
        dirty = []
        timers.removeAll()
        deadline = nil
    }
}

/// A loop's work since its start: for metrics, and for tests that count system calls instead of nanoseconds.
public struct TransportCounters: Equatable, Sendable {
    public private(set) var turns = 0
    public private(set) var accepted = 0
    public private(set) var bytesReceived = 0
    public private(set) var bytesSent = 0
    /// Calls of recv and of send or sendmsg.
    public private(set) var receiveCalls = 0
    public private(set) var sendCalls = 0

    mutating func turned() { turns &+= 1 }
    mutating func accept() { accepted &+= 1 }
    mutating func callReceive() { receiveCalls &+= 1 }
    mutating func received(_ count: Int) { bytesReceived &+= count }
    mutating func callSend() { sendCalls &+= 1 }
    mutating func sent(_ count: Int) { bytesSent &+= count }
}
