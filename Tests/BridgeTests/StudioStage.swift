import BridgeTestSupport
import ChatModel
import HTTPProtocol
import Studio
import WSProtocol
import WireBytes

/// A client's half of a connection to the studio, as a machine.
final class StudioTestSocket {
    enum Heard: Equatable {
        case text(String)
        case binary
        case pong(String)
        case close(UInt16?)
    }

    private var handshake: WebSocketClientHandshake
    private var connection = WebSocketConnection(role: .client)
    private var random: SeededGenerator
    private(set) var isOpen = false
    private(set) var refusal: WebSocketRefusal?
    /// What came and was not taken yet, oldest first.
    private(set) var heard: [Heard] = []

    init(path: String, seed: UInt64 = 1) throws {
        var random = SeededGenerator(seed: seed)
        let nonce = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        handshake = try WebSocketClientHandshake(url: HTTPURL(parsing: "ws://127.0.0.1:8080\(path)"), nonce: nonce)
        self.random = random
    }

    func request() -> ByteSlice {
        var out = ByteWriter()
        handshake.request(into: &out)
        return out.take()
    }

    func text(_ text: String) -> ByteSlice {
        var out = ByteWriter()
        ByteSlice(text).withUnsafeBytes { _ = connection.send(text: $0, output: &out, using: &random) }
        return out.take()
    }

    func binary(_ bytes: [UInt8]) -> ByteSlice {
        var out = ByteWriter()
        bytes.withUnsafeBytes { _ = connection.send(binary: $0, output: &out, using: &random) }
        return out.take()
    }

    func ping(_ text: String) -> ByteSlice {
        var out = ByteWriter()
        ByteSlice(text).withUnsafeBytes { _ = connection.sendPing($0, output: &out, using: &random) }
        return out.take()
    }

    func close(code: WebSocketCloseCode) -> ByteSlice {
        var out = ByteWriter()
        connection.close(
            code: code, reason: "", now: MonotonicInstant(nanoseconds: 0), output: &out, using: &random)
        return out.take()
    }

    /// Takes what the server sent; what must be answered (a Close) is returned.
    func bytesReceived(_ bytes: UnsafeRawBufferPointer) -> ByteSlice {
        var rest = bytes
        if !isOpen {
            switch handshake.bytesReceived(bytes) {
            case .needMoreData: return ByteSlice("")
            case .refused(let refusal):
                self.refusal = refusal
                return ByteSlice("")
            case .accepted(_, let consumed):
                isOpen = true
                rest = UnsafeRawBufferPointer(rebasing: bytes[consumed...])
            }
        }
        var answers = ByteWriter()
        var events: [Heard] = []
        connection.bytesReceived(rest, output: &answers, using: &random) { event in
            switch event {
            case .text(let text): events.append(.text(String(decoding: text, as: UTF8.self)))
            case .binary: events.append(.binary)
            case .pong(let payload): events.append(.pong(String(decoding: payload, as: UTF8.self)))
            case .closeReceived(let code, _): events.append(.close(code?.rawValue))
            case .ping, .failed: break
            }
        }
        heard += events
        return answers.take()
    }

    /// Everything heard since the last call.
    func take() -> [Heard] {
        defer { heard = [] }
        return heard
    }
}

/// A ``StudioServer`` and its clients without sockets: what one says is delivered at once.
final class StudioStage {
    private var server: StudioServer
    private var sockets: [UInt64: StudioTestSocket] = [:]
    private var raw: [UInt64: [UInt8]] = [:]
    private(set) var closed: Set<UInt64> = []
    private(set) var relayed: [String] = []
    private(set) var joined: [String] = []
    /// Changes for a store, once it records.
    private(set) var stored: [String] = []
    var now = MonotonicInstant(nanoseconds: 0)

    /// The time of day, of everything unless a test moves it.
    static let wall = ChatTimestamp(milliseconds: 1_763_695_136_500)
    var wall = StudioStage.wall

    init(_ settings: StudioSettings = StudioSettings()) {
        server = StudioServer(settings, key: [UInt8](repeating: 7, count: 32), at: Self.wall)
    }

    convenience init(visitedRooms: [String]) { self.init(StudioSettings(visitedRooms: visitedRooms)) }

    var peerCount: Int { server.peerCount }
    var nextDeadline: MonotonicInstant? { server.nextDeadline() }

    func memberCount(in room: String) -> Int { server.memberCount(in: room) }

    func connect(_ id: UInt64) { run(server.peerConnected(StudioPeerID(rawValue: id), now: now)) }

    /// Connects and asks for `path`.
    func join(_ id: UInt64, _ path: String) throws -> StudioTestSocket {
        let socket = try StudioTestSocket(path: path, seed: id)
        sockets[id] = socket
        connect(id)
        feed(id, socket.request())
        return socket
    }

    func feed(_ id: UInt64, _ slice: ByteSlice) {
        run(slice.withUnsafeBytes { server.bytesReceived(StudioPeerID(rawValue: id), $0, now: now, at: wall) })
    }

    func feed(_ id: UInt64, _ bytes: [UInt8]) {
        run(bytes.withUnsafeBytes { server.bytesReceived(StudioPeerID(rawValue: id), $0, now: now, at: wall) })
    }

    func feed(_ id: UInt64, _ text: String) { feed(id, ByteSlice(text)) }

    func leave(_ id: UInt64) { run(server.peerClosed(StudioPeerID(rawValue: id), at: wall)) }

    func advance(by time: Duration) {
        now = now + time
        run(server.deadlineReached(now: now))
    }

    func broadcast(_ text: String, to room: String) { run(server.broadcast(Array(text.utf8), to: room, at: wall)) }

    func startRecording() { server.startRecording() }
    func replay(_ change: String) { server.replay(change) }

    func shutDown() { run(server.shutDown(now: now)) }

    /// All bytes that a peer was sent.
    func bytes(of id: UInt64) -> [UInt8] { raw[id] ?? [] }

    func answer(of id: UInt64) -> String { String(decoding: bytes(of: id), as: UTF8.self) }

    private func run(_ actions: [StudioAction]) {
        for action in actions {
            switch action {
            case .send(let id, let slice):
                slice.withUnsafeBytes {
                    raw[id.rawValue, default: []] += $0
                    _ = sockets[id.rawValue]?.bytesReceived($0)
                }
            case .close(let id):
                closed.insert(id.rawValue)
            case .relayed(let room, let frame):
                relayed.append("\(room): \(String(decoding: frame, as: UTF8.self))")
            case .joined(let room, let name): joined.append("\(room): \(name)")
            case .store(let records): stored += records
            case .storeFile(let name, _, _): stored.append(name)
            }
        }
    }
}
