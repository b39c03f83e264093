import ChatModel
import Transport
import WireBytes

/// A running studio: the relay, and its visitors if wanted, on a loop and thread of its own.
///
///     let studio = try await StudioDriver.start(port: 0, rooms: ["lobby"], visitor: true)
///     connect("ws://127.0.0.1:\(studio.port)/lobby")
///     studio.greet(room: "lobby", name: "ada")
///     studio.stop()
///
/// The loop runs until ``stop()``, with or without references to the driver.
public final class StudioDriver: Sendable {
    /// The port it is bound to: the kernel's choice when 0 was asked for.
    public let port: Int
    private let loop: NetworkLoop

    private init(port: Int, loop: NetworkLoop) {
        self.port = port
        self.loop = loop
    }

    /// - Parameters:
    ///   - host: the address or name to listen on. The studio accepts all clients, so anything but the machine itself
    ///     is a
    ///     decision.
    ///   - port: 0 for any free one.
    ///   - rooms: rooms that the page names and a visitor waits in. Every other path is a room as well.
    ///   - visitor: whether there are visitors.
    /// - Throws: ``TransportError`` when there is no thread, or the address is not available.
    public static func start(
        host: String = "127.0.0.1", port: Int, rooms: [String], visitor: Bool
    ) async throws -> StudioDriver {
        let loop = try NetworkLoop.start(name: "studio")
        do {
            let address = try await loop.run { transport in
                transport.attach(StudioRouter(visitedRooms: visitor ? rooms : []))
                return try transport.listen(ListenOptions(.host(host, port: port))).1
            }
            return StudioDriver(port: address.port ?? port, loop: loop)
        } catch {
            loop.stop()
            throw error
        }
    }

    /// Notifies the visitor of `room`, if there is one, that `name` has joined. From any thread; does not wait.
    public func greet(room: String, name: String) {
        loop.enqueue { ($0.delegate as? StudioRouter)?.newcomer(name, room: room, transport: $0) }
    }

    /// Says goodbye and ends the loop. From any thread; does not wait, see ``waitUntilStopped()``. Again is harmless.
    public func stop() {
        loop.enqueue { ($0.delegate as? StudioRouter)?.shutDown($0) }
        loop.stop()
    }

    /// Waits until the thread has ended and the port is free.
    public func waitUntilStopped() { loop.waitUntilStopped() }
}

// MARK: -

/// Runs the relay and the visitors on a transport. Everything here happens on the loop.
private final class StudioRouter: TransportDelegate {
    private var server: StudioServer
    private var visitors: [String: StudioVisitor] = [:]
    private var randomness = BufferedSystemRandom()

    init(visitedRooms: [String]) {
        server = StudioServer(visitedRooms: visitedRooms)
        for room in visitedRooms { visitors[room] = StudioVisitor(room: room) }
    }

    // MARK: Requests

    func newcomer(_ name: String, room: String, transport: Transport) {
        visitors[room]?.newcomer(name, now: transport.now, using: &randomness)
    }

    func shutDown(_ transport: Transport) {
        run(server.shutDown(now: transport.now), transport)
    }

    // MARK: Events

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        transport.setSendLimit(id, bytes: StudioLimits.sendQueueBytes)
        run(server.peerConnected(StudioPeerID(rawValue: id.rawValue), now: transport.now), transport)
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        run(server.bytesReceived(StudioPeerID(rawValue: id.rawValue), bytes, now: transport.now), transport)
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        server.peerClosed(StudioPeerID(rawValue: id.rawValue))
    }

    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        run(server.deadlineReached(now: now), transport)
        for room in visitors.keys.sorted() {
            let frames = visitors[room]?.timerFired(
                now: now, wall: wall(transport), hasCompany: server.memberCount(in: room) > 0, using: &randomness)
            say(frames ?? [], in: room, transport)
        }
    }

    func turnWillFlush(now: MonotonicInstant, transport: Transport) {
        let deadlines = visitors.values.compactMap(\.nextDeadline) + [server.nextDeadline()].compactMap(\.self)
        transport.setDeadline(deadlines.min())
    }

    // MARK: Actions

    private func run(_ actions: [StudioAction], _ transport: Transport) {
        for action in actions {
            switch action {
            case .send(let id, let bytes):
                transport.send(ConnectionID(rawValue: id.rawValue), bytes)
            case .close(let id):
                transport.closeAfterFlush(ConnectionID(rawValue: id.rawValue), linger: StudioLimits.closeLinger)
            case .relayed(let room, let frame):
                let frames = frame.withUnsafeBytes {
                    visitors[room]?.frameReceived($0, now: transport.now, wall: wall(transport), using: &randomness)
                }
                say(frames ?? [], in: room, transport)
            }
        }
    }

    private func say(_ frames: [[UInt8]], in room: String, _ transport: Transport) {
        for frame in frames { run(server.broadcast(frame, to: room), transport) }
    }

    private func wall(_ transport: Transport) -> ChatTimestamp {
        ChatTimestamp(milliseconds: transport.wallClockMilliseconds)
    }
}
