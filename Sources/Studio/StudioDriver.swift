import ChatModel
import Transport
import WireBytes

/// A running studio: the rooms, and their visitors if wanted, on a loop and thread of its own.
///
///     let studio = try await StudioDriver.start(port: 0, settings: settings)
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
    ///     is a decision.
    ///   - port: 0 for any free one.
    ///   - database: a SQLite file for rooms and files; nil keeps them in memory.
    /// - Throws: ``TransportError`` when there is no thread, or the address is not available; ``StudioDatabaseError``.
    public static func start(
        host: String = "127.0.0.1", port: Int, settings: StudioSettings = StudioSettings(), database: String? = nil
    ) async throws -> StudioDriver {
        let loop = try NetworkLoop.start(name: "studio")
        do {
            let address = try await loop.run { transport in
                transport.attach(
                    try StudioRouter(settings, database: database, at: transport.wallClockMilliseconds))
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

    /// Tells the page where IRC over WebSocket is. From any thread; does not wait.
    public func announce(relay: String) {
        loop.enqueue { ($0.delegate as? StudioRouter)?.announce(relay: relay) }
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

/// Runs the rooms and the visitors on a transport. Everything here happens on the loop.
private final class StudioRouter: TransportDelegate {
    private var server: StudioServer
    private var visitors: [String: StudioVisitor] = [:]
    private var randomness = BufferedSystemRandom()
    private let database: StudioDatabase?

    init(_ settings: StudioSettings, database path: String?, at milliseconds: Int64) throws(StudioDatabaseError) {
        if let path { database = try StudioDatabase(path: path) } else { database = nil }
        var randomness = BufferedSystemRandom()
        let key = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &randomness) }
        server = StudioServer(settings, key: key, at: ChatTimestamp(milliseconds: milliseconds))
        if let database {
            try database.forEachChange { server.replay($0) }
            try database.forEachFile { server.restoreFile(name: $0, mime: $1, bytes: $2) }
            server.startRecording()
        }
        for room in settings.visitedRooms { visitors[room] = StudioVisitor(room: room) }
    }

    // MARK: Requests

    func newcomer(_ name: String, room: String, transport: Transport) {
        visitors[room]?.newcomer(name, now: transport.now, using: &randomness)
    }

    func announce(relay: String) { server.announce(relay: relay) }

    func shutDown(_ transport: Transport) {
        run(server.shutDown(now: transport.now), transport)
    }

    // MARK: Events

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        transport.setSendLimit(id, bytes: StudioLimits.sendQueueBytes)
        run(server.peerConnected(StudioPeerID(rawValue: id.rawValue), now: transport.now), transport)
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        run(
            server.bytesReceived(
                StudioPeerID(rawValue: id.rawValue), bytes, now: transport.now, at: wall(transport)), transport)
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        run(server.peerClosed(StudioPeerID(rawValue: id.rawValue), at: wall(transport)), transport)
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
            case .joined(let room, let name): visitors[room]?.joined(name, now: transport.now, using: &randomness)
            // A practice backend goes on without its disk: what is not written is gone after a restart.
            case .store(let changes): try? database?.append(changes)
            case .storeFile(let name, let mime, let bytes):
                try? database?.addFile(name: name, mime: mime, content: bytes)
            }
        }
    }

    private func say(_ frames: [[UInt8]], in room: String, _ transport: Transport) {
        for frame in frames { run(server.broadcast(frame, to: room, at: wall(transport)), transport) }
    }

    private func wall(_ transport: Transport) -> ChatTimestamp {
        ChatTimestamp(milliseconds: transport.wallClockMilliseconds)
    }
}
