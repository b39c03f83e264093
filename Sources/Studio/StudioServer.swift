import HTTPProtocol
import WSProtocol
public import WireBytes

// The relay of the studio, without sockets: bytes in, actions out.
//
// It behaves as the server of the `envelope` dialect does, except that each path is a room:
// - A client's frames go to all members of its room, the sender included. Binary becomes text; anything else is
//   forwarded as it came, JSON or not, without storing or checking it.
// - It sends no pings and answers those it gets.
// - A request for no WebSocket gets a page with an explanation.
//
// A peer is in one of two states: handshaking, against a deadline, or in a room. A peer is removed as soon as it is to
// end; its further bytes, and the report of its end, are ignored.

/// Names a connection of the studio; the owner's choice, never used again.
public struct StudioPeerID: Hashable, Sendable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// Actions for the owner of a ``StudioServer``, in order.
public enum StudioAction: Equatable {
    case send(StudioPeerID, ByteSlice)
    /// Flush, then end the transport.
    case close(StudioPeerID)
    /// Nothing to do: a peer of `room` sent `frame`, and it was relayed to all members. For observers.
    case relayed(room: String, frame: [UInt8])
}

/// Bounds of the studio.
public enum StudioLimits {
    /// Peers at once, in connections. Enough for a load test on one machine, few enough for an ordinary file limit.
    public static let maxPeers = 1000
    /// Payload of a frame or message, in bytes: the clients of this dialect take no more.
    /// Source: observed, Apple's URLSessionWebSocketTask, default maximumMessageSize.
    public static let maxFrameBytes = 1024 * 1024
    /// How long a peer may take to ask for something. A browser asks at once.
    public static let handshakeTimeout = Duration.seconds(10)
    /// Bytes that may wait for a peer: four of the largest frames. One that reads slower than that is dropped.
    public static let sendQueueBytes = 4 * maxFrameBytes
    /// How long the last bytes for a peer, such as a page or a Close, may take to leave.
    public static let closeLinger = Duration.seconds(2)
}

/// A WebSocket relay with a room for each path. See the top of the file for its rules.
///
/// Source: RFC 6455 §4.2; the `envelope` dialect.
public struct StudioServer: ~Copyable {
    /// By reference, because a connection cannot be copied out of a dictionary and back.
    private final class Peer {
        /// Nil while the peer is handshaking.
        var room: String?
        /// Not in an enum with the room: taking it out for each read would copy its buffer, a byte at a time if the
        /// peer likes.
        var handshake = WebSocketServerHandshake()
        var connection = WebSocketConnection(
            role: .server,
            limits: WebSocketLimits(
                maxFrameBytes: StudioLimits.maxFrameBytes, maxMessageBytes: StudioLimits.maxFrameBytes))
    }

    /// A server never masks, so the machine draws nothing. Not an empty type: in a build for the thread sanitizer, the
    /// compiler checks the address of an `inout` value, and an empty one has none.
    private struct NoRandomness: RandomNumberGenerator {
        private var value: UInt64 = 0

        mutating func next() -> UInt64 { value }
    }

    private let visitedRooms: [String]
    private var peers: [StudioPeerID: Peer] = [:]
    /// Members of each room that has any, in the order in which they came, so that a run can be repeated.
    private var rooms: [String: [StudioPeerID]] = [:]
    private var handshakes = DeadlineHeap<StudioPeerID>()
    /// Writes frames for whole rooms: without a mask, one frame serves all members.
    private var broadcaster = WebSocketConnection(role: .server)
    private var writer = ByteWriter()
    private var isShutDown = false

    /// - Parameter visitedRooms: rooms that the page recommends.
    public init(visitedRooms: [String] = []) { self.visitedRooms = visitedRooms }

    // MARK: - State

    /// Peers that have not ended and are not to end.
    public var peerCount: Int { peers.count }

    /// Peers in a room; 0 for an empty one.
    public func memberCount(in room: String) -> Int { rooms[room]?.count ?? 0 }

    /// When ``deadlineReached(now:)`` is wanted, or nil.
    public mutating func nextDeadline() -> MonotonicInstant? { handshakes.next() }

    // MARK: - Events

    public mutating func peerConnected(_ id: StudioPeerID, now: MonotonicInstant) -> [StudioAction] {
        guard peers.count < StudioLimits.maxPeers, !isShutDown else {
            let sentence = isShutDown ? "The studio is closing." : "The studio is full."
            return [.send(id, StudioPage.refusal(503, "Service Unavailable", sentence)), .close(id)]
        }
        peers[id] = Peer()
        handshakes.set(id, at: now + StudioLimits.handshakeTimeout)
        return []
    }

    /// Any bytes, cut anywhere; never a trap.
    public mutating func bytesReceived(
        _ id: StudioPeerID, _ bytes: UnsafeRawBufferPointer, now: MonotonicInstant
    ) -> [StudioAction] {
        guard let peer = peers[id] else { return [] }
        var actions: [StudioAction] = []
        if let room = peer.room {
            framesReceived(id, peer, room: room, bytes, now: now, &actions)
        } else {
            handshakeProgressed(id, peer, peer.handshake.bytesReceived(bytes), bytes, now: now, &actions)
        }
        return actions
    }

    /// The transport of a peer has ended, for any reason.
    public mutating func peerClosed(_ id: StudioPeerID) { forget(id) }

    /// Ends peers with an overdue request.
    public mutating func deadlineReached(now: MonotonicInstant) -> [StudioAction] {
        var actions: [StudioAction] = []
        while let id = handshakes.popDue(now) {
            guard peers[id] != nil else { continue }
            actions.append(.send(id, StudioPage.refusal(408, "Request Timeout", "No request came.")))
            end(id, &actions)
        }
        return actions
    }

    // MARK: - Requests

    /// Sends `text`, well-formed UTF-8, to all members of `room`, as an internal member. Not reported as
    /// ``StudioAction/relayed(room:frame:)``.
    public mutating func broadcast(_ text: [UInt8], to room: String) -> [StudioAction] {
        guard let members = rooms[room], appendFrame(text) else { return [] }
        let frame = writer.take()
        return members.map { .send($0, frame) }
    }

    /// Ends all peers and refuses new ones.
    public mutating func shutDown(now: MonotonicInstant) -> [StudioAction] {
        isShutDown = true
        var actions: [StudioAction] = []
        var randomness = NoRandomness()
        for (id, peer) in peers.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            if peer.room != nil {
                peer.connection.close(
                    code: .goingAway, reason: "the studio closes", now: now, output: &writer, using: &randomness)
                actions.append(.send(id, writer.take()))
            }
            actions.append(.close(id))
        }
        peers = [:]
        rooms = [:]
        handshakes = DeadlineHeap()
        return actions
    }

    // MARK: - The handshake

    private mutating func handshakeProgressed(
        _ id: StudioPeerID, _ peer: Peer, _ outcome: WebSocketServerHandshake.Outcome,
        _ bytes: UnsafeRawBufferPointer, now: MonotonicInstant, _ actions: inout [StudioAction]
    ) {
        let answer: ByteSlice
        switch outcome {
        case .needMoreData:
            return
        case .accept(let request, _, let consumed):
            if let room = StudioRoomName.parse(target: request.target) {
                guard peer.handshake.accept(into: &writer) else { return end(id, &actions) }
                actions.append(.send(id, writer.take()))
                handshakes.cancel(id)
                peer.room = room
                peer.handshake = WebSocketServerHandshake()
                rooms[room, default: []].append(id)
                let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(consumed))
                if !rest.isEmpty { framesReceived(id, peer, room: room, rest, now: now, &actions) }
                return
            }
            answer = StudioPage.refusal(400, "Bad Request", "The path names no room.")
        case .plainHTTP(let request, _):
            answer = StudioPage.answer(to: request, rooms: visitedRooms)
        case .refused(let response, _):
            answer = response.withUnsafeBytes { ByteSlice(copying: $0) }
        }
        actions.append(.send(id, answer))
        end(id, &actions)
    }

    // MARK: - Frames

    private mutating func framesReceived(
        _ id: StudioPeerID, _ peer: Peer, room: String, _ bytes: UnsafeRawBufferPointer, now: MonotonicInstant,
        _ actions: inout [StudioAction]
    ) {
        var said: [[UInt8]] = []
        var answers = ByteWriter()
        var randomness = NoRandomness()
        peer.connection.bytesReceived(bytes, now: now, output: &answers, using: &randomness) { event in
            switch event {
            case .text(let text): said.append(Array(text))
            case .binary(let binary): Self.text(of: binary).map { said.append($0) }
            case .ping, .pong, .closeReceived, .failed: break
            }
        }
        relay(said, in: room, &actions)
        // After the relayed frames, because a Close among the answers must be the last frame to the peer.
        if answers.count > 0 { actions.append(.send(id, answers.take())) }
        if peer.connection.shouldCloseTransport { end(id, &actions) }
    }

    /// All that one read brought goes to each member as one slice.
    private mutating func relay(_ said: [[UInt8]], in room: String, _ actions: inout [StudioAction]) {
        guard !said.isEmpty, let members = rooms[room] else { return }
        for frame in said { _ = appendFrame(frame) }
        let frames = writer.take()
        for member in members { actions.append(.send(member, frames)) }
        for frame in said { actions.append(.relayed(room: room, frame: frame)) }
    }

    private mutating func appendFrame(_ text: [UInt8]) -> Bool {
        var randomness = NoRandomness()
        return text.withUnsafeBytes { broadcaster.send(text: $0, output: &writer, using: &randomness) }
    }

    /// A binary message as text: ill-formed UTF-8 is repaired, as Swift's own `String` does. Nil when that made it too
    /// long.
    private static func text(of binary: UnsafeRawBufferPointer) -> [UInt8]? {
        if UTF8Validator.isValid(binary) { return Array(binary) }
        let repaired = Array(String(decoding: binary, as: UTF8.self).utf8)
        return repaired.count <= StudioLimits.maxFrameBytes ? repaired : nil
    }

    // MARK: - The end of a peer

    private mutating func end(_ id: StudioPeerID, _ actions: inout [StudioAction]) {
        actions.append(.close(id))
        forget(id)
    }

    private mutating func forget(_ id: StudioPeerID) {
        guard let peer = peers.removeValue(forKey: id) else { return }
        handshakes.cancel(id)
        guard let room = peer.room, var members = rooms.removeValue(forKey: room) else { return }
        members.removeAll { $0 == id }
        if !members.isEmpty { rooms[room] = members }
    }
}
