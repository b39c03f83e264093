import Glibc
import Testing
import Transport
import WireBytes

/// A delegate that records events, runs a test's closures, and wakes the test when a condition holds.
final class Probe: TransportDelegate {
    struct Peer: Equatable {
        var received: [UInt8] = []
        var deliveries = 0
        var ends: [StreamEnd] = []
        var drains = 0
        var address: SocketAddress?
    }

    var peers: [ConnectionID: Peer] = [:]
    var accepted: [ConnectionID] = []
    var opened: [ConnectionID] = []
    var acceptedBy: [ConnectionID: ListenerID] = [:]
    var suspensions: [Int32] = []
    var handshakeFailures: [StreamEnd] = []
    var proxyHeaderFailures: [ProxyHeaderFailure] = []
    var certificateChanges: [(user: CertificateUser, error: TLSSetupError?)] = []
    /// How often an end, an opening or a drain was reported while a call into the transport was under way.
    var reentries = 0
    var isCalling = false
    /// A number for a test's closure.
    var note = 0

    var onAccepted: ((ConnectionID, Transport) -> Void)?
    var onOpened: ((ConnectionID, Transport) -> Void)?
    var onReceived: ((ConnectionID, UnsafeRawBufferPointer, Transport) -> Void)?
    var onDrained: ((ConnectionID, Transport) -> Void)?
    var onClosed: ((ConnectionID, StreamEnd, Transport) -> Void)?
    var onDeadline: ((Transport) -> Void)?

    private struct Waiter {
        var condition: (Probe, Transport) -> Bool
        var until: MonotonicInstant
        var continuation: CheckedContinuation<Bool, Never>
    }
    private var waiters: [Waiter] = []

    /// Longest wait for a condition: far beyond the needs of a loaded machine, short enough to see a failure.
    static let patience = Duration.seconds(120)

    func wait(
        _ transport: Transport, _ continuation: CheckedContinuation<Bool, Never>,
        _ condition: @escaping (Probe, Transport) -> Bool
    ) {
        waiters.append(
            Waiter(condition: condition, until: transport.now + Self.patience, continuation: continuation))
        if onDeadline == nil { transport.setDeadline(transport.now + Self.patience) }
    }

    func forgetClosures() {
        onAccepted = nil
        onOpened = nil
        onReceived = nil
        onDrained = nil
        onClosed = nil
        onDeadline = nil
    }

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        accepted.append(id)
        acceptedBy[id] = listener
        peers[id] = Peer(address: peer)
        onAccepted?(id, transport)
    }

    func connectionOpened(_ id: ConnectionID, peer: SocketAddress, transport: Transport) {
        if isCalling { reentries += 1 }
        opened.append(id)
        peers[id, default: Peer()].address = peer
        onOpened?(id, transport)
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        peers[id, default: Peer()].received.append(contentsOf: bytes)
        peers[id, default: Peer()].deliveries += 1
        onReceived?(id, bytes, transport)
    }

    func connectionDrained(_ id: ConnectionID, transport: Transport) {
        if isCalling { reentries += 1 }
        peers[id, default: Peer()].drains += 1
        onDrained?(id, transport)
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        if isCalling { reentries += 1 }
        peers[id, default: Peer()].ends.append(end)
        onClosed?(id, end, transport)
    }

    func deadlineReached(now: MonotonicInstant, transport: Transport) { onDeadline?(transport) }

    func acceptSuspended(_ listener: ListenerID, errno: Int32, transport: Transport) { suspensions.append(errno) }

    func handshakeFailed(_ end: StreamEnd, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        if isCalling { reentries += 1 }
        handshakeFailures.append(end)
    }

    func proxyHeaderFailed(
        _ failure: ProxyHeaderFailure, listener: ListenerID, peer: SocketAddress, transport: Transport
    ) {
        if isCalling { reentries += 1 }
        proxyHeaderFailures.append(failure)
    }

    func certificatesChanged(_ user: CertificateUser, error: TLSSetupError?, transport: Transport) {
        if isCalling { reentries += 1 }
        certificateChanges.append((user, error))
    }

    func turnWillFlush(now: MonotonicInstant, transport: Transport) {
        var left: [Waiter] = []
        for waiter in waiters {
            if waiter.condition(self, transport) {
                waiter.continuation.resume(returning: true)
            } else if waiter.until <= now {
                waiter.continuation.resume(returning: false)
            } else {
                left.append(waiter)
            }
        }
        waiters = left
    }
}

/// A loop with a probe on it, stopped when the test is over.
final class TestLoop: Sendable {
    let loop: NetworkLoop

    init() async throws {
        loop = try NetworkLoop.start(name: "test")
        await loop.run { $0.attach(Probe()) }
    }

    deinit {
        // The closures of a test hold the probe that holds them.
        loop.enqueue { ($0.delegate as? Probe)?.forgetClosures() }
        loop.stop()
    }

    /// Calls `body` on the loop.
    func run<R: Sendable>(_ body: @Sendable (Transport, Probe) throws -> R) async throws -> R {
        try await loop.run { transport in
            let probe = try #require(transport.delegate as? Probe)
            probe.isCalling = true
            defer { probe.isCalling = false }
            return try body(transport, probe)
        }
    }

    /// Waits, without sleeping, until `condition` holds at the end of a turn; false when it never does.
    func until(_ condition: @escaping @Sendable (Probe, Transport) -> Bool) async -> Bool {
        await withCheckedContinuation { continuation in
            loop.enqueue { transport in
                guard let probe = transport.delegate as? Probe else { return continuation.resume(returning: false) }
                probe.wait(transport, continuation, condition)
            }
        }
    }

    func listen(_ options: ListenOptions = ListenOptions(host: "127.0.0.1", port: 0)) async throws -> SocketAddress {
        try await run { transport, _ in try transport.listen(options).1 }
    }

    /// A listener and a connection to it from the same loop: the connecting end and the accepted one.
    func pair(
        _ options: ListenOptions = ListenOptions(host: "127.0.0.1", port: 0), tls: TLSClientSettings? = nil
    ) async throws -> (client: ConnectionID, server: ConnectionID) {
        let address = try await listen(options)
        let earlier = try await run { _, probe in probe.accepted.count }
        let client = try await run { transport, _ in
            transport.connect(to: address, timeout: .seconds(120), tls: tls)
        }
        try #require(await until { probe, _ in probe.opened.contains(client) && probe.accepted.count > earlier })
        let server = try await run { _, probe in try #require(probe.accepted.last) }
        return (client, server)
    }
}

extension Transport {
    func send(_ id: ConnectionID, _ text: String) { send(id, ByteSlice(text)) }
}

extension Probe {
    func text(_ id: ConnectionID) -> String { String(decoding: peers[id]?.received ?? [], as: UTF8.self) }
    func ends(_ id: ConnectionID) -> [StreamEnd] { peers[id]?.ends ?? [] }
}

/// A blocking socket of the platform, for calls that the transport itself would not make.
final class RawSocket: Sendable {
    let descriptor: Int32

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Connects to a port of 127.0.0.1. Without `waits` the call returns while the connection may be in the making.
    init(port: Int, waits: Bool = true) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try #require(descriptor >= 0)
        if !waits { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(truncatingIfNeeded: port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if waits { try #require(result == 0) }
    }

    deinit { Glibc.close(descriptor) }

    func send(_ text: String, flags: Int32 = 0) {
        let bytes = Array(text.utf8)
        #expect(Glibc.send(descriptor, bytes, bytes.count, flags | Int32(MSG_NOSIGNAL)) == bytes.count)
    }

    func send(bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        #expect(Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }

    /// The next bytes from the other side; empty at its end.
    func read() -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 65536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return Array(buffer.prefix(max(0, count)))
    }

    func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Everything the other side sends until it closes.
    func readToEnd() -> String {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return String(decoding: all, as: UTF8.self) }
            all.append(contentsOf: buffer.prefix(count))
        }
    }
}
