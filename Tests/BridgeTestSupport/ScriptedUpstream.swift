import HTTPProtocol
import WSProtocol
import WireBytes

/// The backend's end of one room's connection: the server side of the handshake and of the frames, without a socket.
public final class ScriptedUpstream {
    /// What it saw the bridge do.
    public enum Event: Equatable, Sendable {
        case connected
        case frame([UInt8], isBinary: Bool)
        case ping
        case close(code: UInt16)
        /// The bridge ended the transport.
        case disconnected
        /// The bridge broke the WebSocket protocol.
        case protocolBroken(String)
    }

    public enum State: Equatable, Sendable {
        case idle
        /// The bridge asked for a connection; nobody answered yet.
        case connecting
        case handshaking
        case open
    }

    public private(set) var state = State.idle
    /// Leaves pings unanswered, like a peer behind a dead network.
    public var isSilent = false
    /// Times that the bridge asked for a connection.
    public private(set) var connectCount = 0
    /// The head of the last request, for tests of what is sent with it.
    public private(set) var requestTarget: String?
    private var handshake = WebSocketServerHandshake()
    private var connection: WebSocketConnection?
    private var pendingRefusal: (status: Int, headers: [(name: String, value: String)])?
    private var writer = ByteWriter()
    private var random = SeededGenerator(seed: 7)

    public init() {}

    // MARK: - What the bridge does

    func connectRequested() -> Event {
        state = .connecting
        connectCount += 1
        return .connected
    }

    func transportOpened(refusing refusal: (status: Int, headers: [(name: String, value: String)])?) {
        state = .handshaking
        handshake = WebSocketServerHandshake()
        connection = nil
        pendingRefusal = refusal
    }

    /// Feeds what the bridge sent. Returns what that meant and the bytes to answer with.
    func received(_ slice: ByteSlice) -> (events: [Event], answer: [UInt8]) {
        slice.withUnsafeBytes { bytes in
            switch state {
            case .idle, .connecting: return ([.protocolBroken("bytes without a connection")], [])
            case .handshaking: return handshakeBytesReceived(bytes)
            case .open: return frameBytesReceived(bytes)
            }
        }
    }

    private func handshakeBytesReceived(_ bytes: UnsafeRawBufferPointer) -> ([Event], [UInt8]) {
        switch handshake.bytesReceived(bytes) {
        case .needMoreData: return ([], [])
        case .accept(let request, _, let consumed):
            requestTarget = request.target
            if let refusal = pendingRefusal {
                _ = WebSocketServerHandshake.refuse(
                    status: refusal.status, reason: "Refused", headers: refusal.headers, into: &writer)
                return ([], takeBytes())
            }
            _ = handshake.accept(into: &writer)
            state = .open
            connection = WebSocketConnection(role: .server)
            // Takes the response along with what the first frames are answered.
            return frameBytesReceived(UnsafeRawBufferPointer(rebasing: bytes[consumed...]))
        case .plainHTTP: return ([.protocolBroken("a request without Upgrade")], [])
        case .refused(_, let why): return ([.protocolBroken(why)], [])
        }
    }

    private func frameBytesReceived(_ bytes: UnsafeRawBufferPointer) -> ([Event], [UInt8]) {
        var events: [Event] = []
        var answer = ByteWriter()
        connection?.bytesReceived(bytes, output: &answer, using: &random) { event in
            switch event {
            case .text(let payload): events.append(.frame(Array(payload), isBinary: false))
            case .binary(let payload): events.append(.frame(Array(payload), isBinary: true))
            case .ping: events.append(.ping)
            case .pong: break
            case .closeReceived(let code, _): events.append(.close(code: code?.rawValue ?? 1005))
            case .failed(let failure): events.append(.protocolBroken(failure.sentence))
            }
        }
        let bytes = answer.take()
        if !isSilent { writer.append(bytes) }
        return (events, takeBytes())
    }

    func disconnected() -> Event? {
        guard state != .idle else { return nil }
        state = .idle
        connection = nil
        return .disconnected
    }

    // MARK: - What the backend does

    func transportEnded() {
        state = .idle
        connection = nil
    }

    /// A message as one unmasked frame.
    public func frame(_ payload: [UInt8], isBinary: Bool) -> [UInt8] {
        // Written by hand, so that a backend can also say what it should not say any more.
        var bytes: [UInt8] = [isBinary ? 0x82 : 0x81]
        switch payload.count {
        case ..<126: bytes.append(UInt8(payload.count))
        case ..<65536: bytes += [126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default: bytes += [127] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: payload.count >> ($0 * 8)) }
        }
        return bytes + payload
    }

    func closeFrame(code: UInt16, reason: String) -> [UInt8] {
        connection?.close(
            code: WebSocketCloseCode(rawValue: code), reason: reason, now: MonotonicInstant(nanoseconds: 0),
            output: &writer, using: &random)
        return takeBytes()
    }

    private func takeBytes() -> [UInt8] { writer.take().withUnsafeBytes { Array($0) } }
}
