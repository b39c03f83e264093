import BridgeTypes
import Glibc
import Transport
import Upstream
import WireBytes

// The service manager's side of a process's life: systemd's notification protocol, without libsystemd.
// Source: sd_notify(3), sd_watchdog_enabled(3), systemd.service(5) on NotifyAccess=.

/// The service manager's variables in the environment.
struct ServiceManagerSettings: Equatable, Sendable {
    /// `$NOTIFY_SOCKET`: the path of a datagram socket, or a name in the abstract namespace behind `@`. Nil: no manager
    /// listens, or at an address of another family.
    var socket: String?
    /// `$WATCHDOG_USEC`: a process that is silent for longer is killed. Nil: no watchdog.
    var watchdog: Duration?

    /// Variables that concern this process alone. Children must not inherit them, or they would speak in its name.
    static let variables = [
        "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES",
    ]

    /// - Parameter processID: the watchdog is another process's where `$WATCHDOG_PID` names one.
    init(variables: [String: String], processID: Int32) {
        guard let path = variables["NOTIFY_SOCKET"], path.first == "/" || path.first == "@",
            (2...SocketAddress.maxUnixPathBytes).contains(path.utf8.count)
        else { return }
        socket = path
        if let owner = variables["WATCHDOG_PID"], owner != String(processID) { return }
        guard let limit = variables["WATCHDOG_USEC"].flatMap({ Int64($0) }), limit > 0 else { return }
        watchdog = .microseconds(limit)
    }
}

/// Messages to the service manager: which are due, and when.
///
/// | state    | meaning                                          | leaves by                                       |
/// |----------|--------------------------------------------------|-------------------------------------------------|
/// | starting | the listeners are not open; nothing is sent      | first turn with open listeners: READY → ready   |
/// | ready    | STATUS where it changed, WATCHDOG at half time   | reload: RELOADING, READY; shutdown: STOPPING → stopping |
/// | stopping | the same, and EXTEND_TIMEOUT_USEC every 5 s      | end of the process                              |
struct ServiceNotices: Sendable {
    enum State: Equatable, Sendable { case starting, ready, stopping }

    /// Shortest time between two looks at the status.
    static let statusInterval: Duration = .seconds(5)
    /// How often more time to stop is asked for.
    static let extensionInterval: Duration = .seconds(5)
    /// The time asked for: three intervals, so that a loop that hangs is noticed soon.
    static let extensionTime: Duration = .seconds(15)
    /// Time until a message is sent again that the manager's queue had no room for.
    static let retryInterval: Duration = .milliseconds(100)

    private(set) var state = State.starting
    private let watchdog: Duration?
    private var watchdogAt: MonotonicInstant?
    private var extensionAt: MonotonicInstant?
    private var retryAt: MonotonicInstant?
    private var status = ""
    /// The earliest moment for the next look at the status.
    private var statusAt: MonotonicInstant?
    /// Something happened since the last look, which may have changed the status.
    private var mayHaveChanged = false
    /// Assignments that the manager has not got yet, in order.
    private var unsent: [String] = []

    /// - Parameter watchdog: the time after which silence counts as a failure; nil: no watchdog.
    init(watchdog: Duration?) { self.watchdog = watchdog }

    /// Reports a turn of the loop with open listeners.
    ///
    /// - Parameters:
    ///   - isStopping: a shutdown was requested.
    ///   - status: one line for people; called when it may be sent.
    mutating func turned(isStopping: Bool, now: MonotonicInstant, status current: () -> String) {
        if state == .starting {
            state = .ready
            unsent.append("READY=1")
            watchdogAt = watchdog.map { now + $0 / 2 }
        }
        if isStopping, state == .ready {
            state = .stopping
            unsent.append("STOPPING=1")
            extensionAt = now
            // Of interest at once.
            statusAt = nil
        }
        if let due = extensionAt, now >= due {
            unsent.append("EXTEND_TIMEOUT_USEC=\(Self.extensionTime.microseconds)")
            extensionAt = now + Self.extensionInterval
        }
        look(now, current)
        if let due = watchdogAt, now >= due {
            unsent.append("WATCHDOG=1")
            watchdogAt = watchdog.map { now + $0 / 2 }
        }
    }

    private mutating func look(_ now: MonotonicInstant, _ current: () -> String) {
        if let due = statusAt, now < due {
            mayHaveChanged = true
            return
        }
        statusAt = now + Self.statusInterval
        mayHaveChanged = false
        let text = current()
        guard text != status else { return }
        status = text
        unsent.append("STATUS=" + text)
    }

    /// The configuration is about to be read again. ``reloaded()`` follows.
    ///
    /// - Parameter now: not before the request for it, or a manager of the type notify-reload would wait for another.
    mutating func reloading(now: MonotonicInstant) {
        unsent.append("RELOADING=1\nMONOTONIC_USEC=\(now.nanoseconds / 1000)")
    }

    mutating func reloaded() { unsent.append(state == .stopping ? "STOPPING=1" : "READY=1") }

    /// When the loop has to turn for a message, however quiet it is; nil: for none.
    func nextDeadline() -> MonotonicInstant? {
        if let retryAt { return retryAt }
        return [watchdogAt, extensionAt, mayHaveChanged ? statusAt : nil].compactMap(\.self).min()
    }

    /// All that is due, as one datagram; nil: nothing. ``sent()`` or ``delayed(now:)`` follows.
    func message() -> String? { unsent.isEmpty ? nil : unsent.joined(separator: "\n") }

    mutating func sent() {
        unsent = []
        retryAt = nil
    }

    /// The manager's queue is full.
    mutating func delayed(now: MonotonicInstant) { retryAt = now + Self.retryInterval }
}

extension Duration {
    fileprivate var microseconds: Int64 {
        components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
    }
}

/// The bridge in one line.
struct ServiceStatus: Equatable {
    var roomsUp: Int
    var roomCount: Int
    var clients: Int

    /// Rooms that connect on demand count while they have a link.
    init(rooms: [RoomState], clients: Int) {
        let counted = rooms.filter { !$0.isOnDemand || $0.link != .stopped }
        roomsUp = counted.count { $0.link == .up }
        roomCount = counted.count
        self.clients = clients
    }

    /// `3/3 rooms up, 12 clients`.
    var text: String { "\(roomsUp)/\(roomCount) rooms up, \(clients) client\(clients == 1 ? "" : "s")" }
}

/// Tells the service manager of the bridge's life, from the network loop itself: a loop that hangs falls silent, and the
/// watchdog notices.
final class ServiceManagerClient: ConnectionlessLoopClient {
    private var notices: ServiceNotices
    private let socket: NotifySocket
    private let isStopping: () -> Bool
    private let status: () -> String
    /// Called once, when a message could not be sent.
    private var failed: ((Int32) -> Void)?

    /// Nil where there is no manager.
    init?(
        _ settings: ServiceManagerSettings, isStopping: @escaping () -> Bool, status: @escaping () -> String,
        failed: @escaping (Int32) -> Void
    ) {
        guard let path = settings.socket else { return nil }
        notices = ServiceNotices(watchdog: settings.watchdog)
        socket = NotifySocket(path)
        self.isStopping = isStopping
        self.status = status
        self.failed = failed
    }

    /// Announces that settings are read again, and when that is done.
    func reload<Outcome>(_ body: () -> Outcome) -> Outcome {
        notices.reloading(now: SystemClock.monotonic())
        send(SystemClock.monotonic())
        defer { notices.reloaded() }
        return body()
    }

    private func send(_ now: MonotonicInstant) {
        guard let message = notices.message() else { return }
        switch socket.send(message) {
        case 0: notices.sent()
        case EAGAIN: notices.delayed(now: now)
        case let errno:
            notices.sent()
            failed?(errno)
            failed = nil
        }
    }

    // MARK: - On the loop

    func nextDeadline() -> MonotonicInstant? { notices.nextDeadline() }

    func turnWillFlush(now: MonotonicInstant, transport: Transport) {
        notices.turned(isStopping: isStopping(), now: now, status: status)
        send(now)
    }
}

/// A datagram socket of one destination. Opened once: a process without a free descriptor must still feed its watchdog.
final class NotifySocket {
    private let descriptor: Int32
    private var address = sockaddr_un()
    private let length: socklen_t

    /// - Parameter path: at most ``SocketAddress/maxUnixPathBytes``; behind `@` a name in the abstract namespace.
    ///   Source: unix(7), "Address format".
    init(_ path: String) {
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        address.sun_family = sa_family_t(AF_UNIX)
        let name = path.utf8.prefix(SocketAddress.maxUnixPathBytes)
        withUnsafeMutableBytes(of: &address.sun_path) { room in
            for (index, byte) in name.enumerated() { room[index] = index == 0 && path.first == "@" ? 0 : byte }
        }
        length = socklen_t(MemoryLayout<sa_family_t>.size + name.count + (path.first == "@" ? 0 : 1))
    }

    deinit { if descriptor >= 0 { _ = close(descriptor) } }

    /// Sends `text` as one datagram, without waiting.
    ///
    /// - Returns: 0, or the errno.
    func send(_ text: String) -> Int32 {
        guard descriptor >= 0 else { return EBADF }
        let bytes = Array(text.utf8)
        let sent = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, bytes, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL), $0, length)
            }
        }
        return sent < 0 ? errno : 0
    }
}
