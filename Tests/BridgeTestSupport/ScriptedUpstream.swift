import HTTPProtocol
import WSProtocol
import WireBytes

/// The backend's end of one room's connection: the server side of the handshake and of the frames, without a socket.
public final class ScriptedUpstream {
    /// Events from the bridge.
    public enum Event: Equatable, Sendable {
        case connected
        /// Unusual properties of a connection: its route, or its request.
        case detail(String)
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
        /// The bridge requested a connection; unanswered.
        case connecting
        case handshaking
        case open
    }

    public private(set) var state = State.idle
    /// Leaves pings unanswered, like a peer behind a dead network.
    public var isSilent = false
    /// Otherwise requests are read and left without an answer, as by a peer that is stuck.
    public var answersHandshakes = true
    /// Extensions accepted at the next handshake. If negotiated, its messages are compressed.
    public var compression: WebSocketCompression?
    /// Times that the bridge asked for a connection.
    public private(set) var connectCount = 0
    /// The head of the last request.
    public private(set) var requestTarget: String?
    private var handshake = WebSocketServerHandshake()
    private var connection: WebSocketConnection?
    private var pendingRefusal: (status: Int, headers: [(name: String, value: String)])?
    /// The proxy's answer to CONNECT.
    public var proxyAnswer = "HTTP/1.1 200 Connection established\r\n\r\n"
    /// The heads of all requests, as they came.
    public private(set) var requests: [String] = []
    private var writer = ByteWriter()
    private var random = SeededGenerator(seed: 7)

    private let usualTarget: String?

    /// - Parameter usualTarget: the request target that is not worth mentioning; nil: none is.
    public init(usualTarget: String? = nil) { self.usualTarget = usualTarget }

    // MARK: - The bridge's side

    func connectRequested() -> Event {
        state = .connecting
        connectCount += 1
        return .connected
    }

    func transportOpened(refusing refusal: (status: Int, headers: [(name: String, value: String)])?) {
        state = .handshaking
        handshake = WebSocketServerHandshake(compression: compression)
        connection = nil
        pendingRefusal = refusal
    }

    /// Decodes bytes from the bridge. Returns the events and the bytes of the answer.
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
        let text = String(decoding: bytes, as: UTF8.self)
        requests.append(text)
        guard answersHandshakes else { return ([], []) }
        if text.hasPrefix("CONNECT ") {
            let target = text.dropFirst("CONNECT ".count).prefix { $0 != " " }
            return ([.detail("CONNECT \(target)")], Array(proxyAnswer.utf8))
        }
        switch handshake.bytesReceived(bytes) {
        case .needMoreData: return ([], [])
        case .accept(let request, _, let consumed):
            requestTarget = request.target
            let isUsual = (usualTarget ?? request.target) == request.target
            let details: [Event] = isUsual ? [] : [.detail("GET \(request.target)")]
            if let refusal = pendingRefusal {
                _ = WebSocketServerHandshake.refuse(
                    status: refusal.status, reason: "Refused", headers: refusal.headers, into: &writer)
                return (details, takeBytes())
            }
            _ = handshake.accept(into: &writer)
            state = .open
            connection = WebSocketConnection(role: .server, compression: handshake.compression)
            // Returns the response along with the answers to the first frames.
            let (events, answer) = frameBytesReceived(UnsafeRawBufferPointer(rebasing: bytes[consumed...]))
            return (details + events, answer)
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

    // MARK: - The backend's side

    func transportEnded() {
        state = .idle
        connection = nil
    }

    /// A message as one unmasked frame.
    public func frame(_ payload: [UInt8], isBinary: Bool) -> [UInt8] {
        if connection?.compression != nil {
            _ = payload.withUnsafeBytes { connection?.send(text: $0, output: &writer, using: &random) }
            return takeBytes()
        }
        // Written by hand, so that a backend can also send invalid frames.
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
