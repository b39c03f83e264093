public import ChatModel
import HTTPProtocol
import WSProtocol
public import WireBytes

// The studio without sockets: bytes in, actions out.
//
// A room is one, whatever wires its clients speak; the path that a client connects to says which wire and room:
// - `envelope` behaves as that dialect's server does: a client's frames go to all its clients in the room, the sender
//   included. Binary becomes text; anything else is forwarded as it came, JSON or not. What can be read goes to the
//   other wires as well.
// - On the other wires a frame is a command to the room, and the event that follows is told to all clients in their own
//   wire's form. See ``StudioWire``.
// - It sends no pings and answers those it gets.
// - A request for no WebSocket gets the page, or is a call of `jwt-rooms`.
//
// A peer is in one of three states: handshaking or sending a request's body, both against a deadline, or in a room. A
// peer is removed as soon as it is to end; its further bytes, and the report of its end, are ignored.

/// The rooms of the studio and their clients. See the top of the file for its rules.
///
/// Source: RFC 6455 §4.2; docs/backends.
public struct StudioServer: ~Copyable {
    /// By reference, because a connection cannot be copied out of a dictionary and back.
    final class Peer {
        enum Place {
            case handshaking
            case sendingBody(HTTPRequestHead, HTTPBodyDecoder, [UInt8])
            case inRoom(String, StudioWire)
        }

        var place = Place.handshaking
        /// Not in the enum: taking it out for each read would copy its buffer, a byte at a time if the peer likes.
        var handshake = WebSocketServerHandshake()
        var connection = WebSocketConnection(role: .server)

        func enter(_ room: String, _ wire: StudioWire) {
            place = .inRoom(room, wire)
            handshake = WebSocketServerHandshake()
            connection = WebSocketConnection(
                role: .server,
                limits: WebSocketLimits(maxFrameBytes: wire.maxFrameBytes, maxMessageBytes: wire.maxFrameBytes))
        }
    }

    /// A server never masks, so the machine draws nothing. Not an empty type: in a build for the thread sanitizer, the
    /// compiler checks the address of an `inout` value, and an empty one has none.
    struct NoRandomness: RandomNumberGenerator {
        private var value: UInt64 = 0

        mutating func next() -> UInt64 { value }
    }

    private(set) var settings: StudioSettings
    var rooms = StudioRooms()
    var accounts = StudioAccounts()
    var files = StudioFiles()
    var secrets: StudioSecrets
    private var peers: [StudioPeerID: Peer] = [:]
    /// Clients of each room that has any, in the order in which they came, so that a run can be repeated.
    private(set) var present: [String: [(id: StudioPeerID, wire: StudioWire.Kind)]] = [:]
    var deadlines = DeadlineHeap<StudioPeerID>()
    /// Writes frames for whole rooms: without a mask, one frame serves all members.
    private var broadcaster = WebSocketConnection(role: .server)
    private var writer = ByteWriter()
    private var isShutDown = false

    /// - Parameters:
    ///   - key: random bytes from which tokens and ids are made.
    ///   - at: the time of day, at which the rooms are made.
    public init(_ settings: StudioSettings = StudioSettings(), key: [UInt8], at: ChatTimestamp) {
        self.settings = settings
        secrets = StudioSecrets(key: key)
        for room in settings.rooms { _ = rooms.room(room.name, at: at, topic: room.topic) }
        for room in settings.visitedRooms {
            _ = rooms.room(room, at: at)
            _ = rooms.enter(ChatPerson(id: StudioVisitor.id, name: StudioVisitor.name), room, by: .visitor)
        }
    }

    // MARK: - The store

    /// Repeats changes that ``StudioAction/store(_:)`` reported in an earlier run, before there are any peers; unknown
    /// ones are skipped.
    public mutating func replay(_ record: String) {
        if let record = StudioRecord(text: record) { rooms.replay(record) }
    }

    public mutating func restoreFile(name: String, mime: String, bytes: [UInt8]) {
        files.add(StudioFile(name: name, mime: mime, bytes: bytes))
    }

    /// From now on changes are reported.
    public mutating func startRecording() { rooms.startRecording() }

    func appendRecords(_ records: [StudioRecord], _ actions: inout [StudioAction]) {
        if !records.isEmpty { actions.append(.store(records.map(\.text))) }
    }

    // MARK: - State

    /// Peers that have not ended and are not to end.
    public var peerCount: Int { peers.count }

    /// Peers in a room; 0 for an empty one.
    public func memberCount(in room: String) -> Int { present[room]?.count ?? 0 }

    /// When ``deadlineReached(now:)`` is wanted, or nil.
    public mutating func nextDeadline() -> MonotonicInstant? { deadlines.next() }

    // MARK: - Events

    public mutating func peerConnected(_ id: StudioPeerID, now: MonotonicInstant) -> [StudioAction] {
        guard peers.count < StudioLimits.maxPeers, !isShutDown else {
            let sentence = isShutDown ? "The studio is closing.\n" : "The studio is full.\n"
            let answer = StudioAnswer.text(sentence, status: 503, reason: "Service Unavailable")
            return [.send(id, answer.bytes()), .close(id)]
        }
        peers[id] = Peer()
        deadlines.set(id, at: now + StudioLimits.handshakeTimeout)
        return []
    }

    /// Any bytes, cut anywhere; never a trap.
    ///
    /// - Parameter at: the time of day.
    public mutating func bytesReceived(
        _ id: StudioPeerID, _ bytes: UnsafeRawBufferPointer, now: MonotonicInstant, at: ChatTimestamp
    ) -> [StudioAction] {
        guard let peer = peers[id] else { return [] }
        var actions: [StudioAction] = []
        switch peer.place {
        case .inRoom(let room, let wire):
            framesReceived(id, peer, room, wire, bytes, now: now, at: at, &actions)
        case .sendingBody(let head, let decoder, let body):
            // So that the body is not copied when it grows.
            peer.place = .handshaking
            bodyReceived(id, peer, head, decoder, body, bytes, at: at, &actions)
        case .handshaking:
            handshakeProgressed(id, peer, peer.handshake.bytesReceived(bytes), bytes, now: now, at: at, &actions)
        }
        appendRecords(rooms.takeRecords(), &actions)
        return actions
    }

    /// The transport of a peer has ended, for any reason.
    public mutating func peerClosed(_ id: StudioPeerID, at: ChatTimestamp) -> [StudioAction] {
        var actions: [StudioAction] = []
        forget(id, at: at, &actions)
        return actions
    }

    /// Ends peers with an overdue request.
    public mutating func deadlineReached(now: MonotonicInstant) -> [StudioAction] {
        var actions: [StudioAction] = []
        while let id = deadlines.popDue(now) {
            guard peers.removeValue(forKey: id) != nil else { continue }
            let answer = StudioAnswer.text("No request came.\n", status: 408, reason: "Request Timeout")
            actions += [.send(id, answer.bytes()), .close(id)]
        }
        return actions
    }

    // MARK: - Requests

    /// The address of IRC over WebSocket, known once the relay listens.
    public mutating func announce(relay: String) { settings.announce(relay: relay) }

    /// Says `text`, well-formed UTF-8 and a frame of `envelope`, in `room` as the visitor. Not reported as
    /// ``StudioAction/relayed(room:frame:)``.
    public mutating func broadcast(_ text: [UInt8], to room: String, at: ChatTimestamp) -> [StudioAction] {
        guard present[room] != nil else { return [] }
        var actions: [StudioAction] = []
        send([text], in: room, to: .envelope, &actions)
        if let command = text.withUnsafeBytes({ EnvelopeWire.command($0) }) {
            obey(command, from: .visitor, .envelope, in: room, at: at, &actions)
        }
        appendRecords(rooms.takeRecords(), &actions)
        return actions
    }

    /// Ends all peers and refuses new ones.
    public mutating func shutDown(now: MonotonicInstant) -> [StudioAction] {
        isShutDown = true
        var actions: [StudioAction] = []
        var randomness = NoRandomness()
        for (id, peer) in peers.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            if case .inRoom = peer.place {
                peer.connection.close(
                    code: .goingAway, reason: "the studio closes", now: now, output: &writer, using: &randomness)
                actions.append(.send(id, writer.take()))
            }
            actions.append(.close(id))
        }
        peers = [:]
        present = [:]
        deadlines = DeadlineHeap()
        return actions
    }

    // MARK: - The handshake

    private mutating func handshakeProgressed(
        _ id: StudioPeerID, _ peer: Peer, _ outcome: WebSocketServerHandshake.Outcome,
        _ bytes: UnsafeRawBufferPointer, now: MonotonicInstant, at: ChatTimestamp, _ actions: inout [StudioAction]
    ) {
        switch outcome {
        case .needMoreData: return
        case .accept(let request, _, let consumed):
            let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(consumed))
            accepted(id, peer, request, rest, now: now, at: at, &actions)
        case .plainHTTP(let request, let consumed):
            if let refusal = StudioGate.refusal(of: request, hosts: settings.hosts) {
                return end(id, refusal.bytes(), at: at, &actions)
            }
            let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(consumed))
            bodyStarts(id, peer, request, rest, now: now, at: at, &actions)
        case .refused(let response, _):
            end(id, response.withUnsafeBytes { ByteSlice(copying: $0) }, at: at, &actions)
        }
    }

    private mutating func accepted(
        _ id: StudioPeerID, _ peer: Peer, _ request: HTTPRequestHead, _ rest: UnsafeRawBufferPointer,
        now: MonotonicInstant, at: ChatTimestamp, _ actions: inout [StudioAction]
    ) {
        var refusal = StudioGate.refusal(of: request, hosts: settings.hosts)
        let entry = refusal == nil ? entry(request.target, at: at) : .refused(.text(""))
        if case .refused(let answer) = entry, refusal == nil { refusal = answer }
        guard refusal == nil, peer.handshake.accept(into: &writer) else {
            return end(id, refusal?.bytes() ?? ByteSlice(""), at: at, &actions)
        }
        actions.append(.send(id, writer.take()))
        deadlines.cancel(id)
        guard case .room(let room, let wire) = entry else {
            // A room's number that there is not: told in a frame, as the published backend does.
            _ = appendFrame(JWTRoomsWire.error("Room not found"))
            var randomness = NoRandomness()
            peer.connection.close(
                code: .normalClosure, reason: "", now: now, output: &writer, using: &randomness)
            return end(id, writer.take(), at: at, &actions)
        }
        peer.enter(room, wire)
        present[room, default: []].append((id, wire.kind))
        welcome(id, wire, room, at: at, &actions)
        if !rest.isEmpty { framesReceived(id, peer, room, wire, rest, now: now, at: at, &actions) }
    }

    /// Where a path leads.
    private enum Entry {
        case room(String, StudioWire)
        case noSuchRoom
        case refused(StudioAnswer)
    }

    private mutating func entry(_ target: String, at: ChatTimestamp) -> Entry {
        let request = Request(HTTPRequestHead(method: "GET", target: target, headers: HTTPHeaders()), body: [], at: at)
        let forbidden = Entry.refused(.text("", status: 403, reason: "Forbidden"))
        if request.path.count == 3, request.path[0] == "ws", request.path[1] == "chat" {
            guard let token = Self.field("token", in: request.query),
                let user = accounts.user(of: token, at: at, secrets: secrets)
            else { return forbidden }
            if let number = Int64(request.path[2]) {
                return rooms.name(number: number).map { .room($0, .jwtRooms(user: user)) } ?? .noSuchRoom
            }
            return rooms.name(caseInsensitive: request.path[2]).map { .room($0, .jwtRooms(user: user)) } ?? forbidden
        }
        guard let name = StudioRoomName.parse(target: target) else {
            return .refused(.text("The path names no room.\n", status: 400, reason: "Bad Request"))
        }
        _ = rooms.room(name, at: at)
        switch request.path.count == 2 ? request.path[0] : "" {
        case "typed": return .room(name, .typed)
        case "swiftchat": return .room(name, .swiftChat)
        default: return .room(name, .envelope)
        }
    }

    // MARK: - Frames

    private mutating func framesReceived(
        _ id: StudioPeerID, _ peer: Peer, _ room: String, _ wire: StudioWire, _ bytes: UnsafeRawBufferPointer,
        now: MonotonicInstant, at: ChatTimestamp, _ actions: inout [StudioAction]
    ) {
        var said: [[UInt8]] = []
        var answers = ByteWriter()
        var randomness = NoRandomness()
        peer.connection.bytesReceived(bytes, now: now, output: &answers, using: &randomness) { event in
            switch event {
            case .text(let text): said.append(Array(text))
            // The server of `swiftchat` listens to text alone.
            case .binary(let binary): if wire != .swiftChat { Self.text(of: binary).map { said.append($0) } }
            case .ping, .pong, .closeReceived, .failed: break
            }
        }
        hear(said, from: id, wire, in: room, at: at, &actions)
        // After the relayed frames, because a Close among the answers must be the last frame to the peer.
        if answers.count > 0 { actions.append(.send(id, answers.take())) }
        if peer.connection.shouldCloseTransport {
            actions.append(.close(id))
            forget(id, at: at, &actions)
        }
    }

    /// All frames go to each client of the wire as one slice.
    mutating func send(
        _ frames: [[UInt8]], in room: String, to kind: StudioWire.Kind, except origin: StudioPeerID? = nil,
        _ actions: inout [StudioAction]
    ) {
        guard !frames.isEmpty, let clients = present[room] else { return }
        let receivers = clients.filter { $0.wire == kind && $0.id != origin }
        guard !receivers.isEmpty else { return }
        for frame in frames { _ = appendFrame(frame) }
        let bytes = writer.take()
        for receiver in receivers { actions.append(.send(receiver.id, bytes)) }
    }

    mutating func send(_ frames: [[UInt8]], to id: StudioPeerID, _ actions: inout [StudioAction]) {
        for frame in frames { _ = appendFrame(frame) }
        if writer.count > 0 { actions.append(.send(id, writer.take())) }
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

    mutating func end(
        _ id: StudioPeerID, _ last: ByteSlice, at: ChatTimestamp, _ actions: inout [StudioAction]
    ) {
        actions += [.send(id, last), .close(id)]
        forget(id, at: at, &actions)
    }

    private mutating func forget(_ id: StudioPeerID, at: ChatTimestamp, _ actions: inout [StudioAction]) {
        guard let peer = peers.removeValue(forKey: id) else { return }
        deadlines.cancel(id)
        guard case .inRoom(let room, _) = peer.place, var clients = present.removeValue(forKey: room) else { return }
        clients.removeAll { $0.id == id }
        if !clients.isEmpty { present[room] = clients }
        for person in rooms.leaveAll(room, by: id) { tell(.leave(person), in: room, from: id, at: at, &actions) }
    }
}
