import BridgeTypes
import ChatModel
import HTTPProtocol
import JSONText
import Learning
import Transport
import WSProtocol
import WireBytes

/// What a source of a recording has so far, and marks of the person's steps in it. Confined to the loop.
class RecordingSource {
    private(set) var recording = Recording()
    /// Nothing more will come.
    fileprivate(set) var isOver = false
    /// Tells that a connection came or went, or a frame.
    let noted: (String) -> Void

    init(noted: @escaping (String) -> Void) { self.noted = noted }

    func mark(_ step: LearnStep) { recording.mark(step) }

    func opened(_ url: String, headers: [(name: String, value: String)] = []) {
        recording.open(url, headers: headers)
    }

    func called(_ call: RecordedCall) { recording.add(call) }

    func record(_ messages: [FrameTap.Message], isSent: Bool, _ transport: Transport) {
        for message in messages {
            recording.add(
                RecordedFrame(
                    at: Now(transport).wall.milliseconds, isSent: isSent,
                    text: String(decoding: message.bytes, as: UTF8.self), isBinary: message.isBinary))
        }
    }
}

/// Between a backend and its own app: passes everything on, and records the frames and the JSON of calls.
///
/// A connection of the app gets one to the backend once its request is there. Requests lose what would compress the
/// answer, and name the backend as their host.
final class LearnProxy: RecordingSource, TransportDelegate {
    private final class Passage {
        let app: ConnectionID
        var backend: ConnectionID?
        var request: TappedRequest?
        var head: [UInt8] = []
        /// From the backend, until its head is complete, or of a call whole.
        var answer: [UInt8] = []
        var isOpen = false
        var fromApp = FrameTap()
        var fromBackend = FrameTap()

        init(app: ConnectionID) { self.app = app }
    }

    private static let connectTimeout = Duration.seconds(10)
    private static let linger = Duration.seconds(5)
    /// Longer answers are passed on and not recorded.
    private static let maxAnswerBytes = 4 * 1024 * 1024

    private let backend: HTTPURL
    private var passages: [ConnectionID: Passage] = [:]

    init(to backend: HTTPURL, noted: @escaping (String) -> Void) {
        self.backend = backend
        super.init(noted: noted)
    }

    private var tls: TLSClientSettings? { backend.isSecure ? TLSClientSettings() : nil }

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        passages[id] = Passage(app: id)
        transport.setSendLimit(id, bytes: Int(UInt32.max))
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        guard let passage = passages[id] else { return }
        if id != passage.app { return backendSaid(bytes, passage, transport) }
        guard let backend = passage.backend else { return appAsked(bytes, passage, transport) }
        transport.send(backend, ByteSlice(copying: bytes))
        if passage.isOpen { record(passage.fromApp.feed(bytes), isSent: true, transport) }
    }

    private func appAsked(_ bytes: UnsafeRawBufferPointer, _ passage: Passage, _ transport: Transport) {
        passage.head.append(contentsOf: bytes)
        guard let end = TappedRequest.end(of: passage.head) else {
            if passage.head.count > TappedRequest.maxHeadBytes { transport.abort(passage.app) }
            return
        }
        let origin = "\(backend.isSecure ? "https" : "http")://\(backend.hostHeader)"
        guard let request = TappedRequest(head: Array(passage.head[..<end]), host: backend.hostHeader, origin: origin)
        else { return transport.abort(passage.app) }
        let id = transport.connect(host: backend.host, port: Int(backend.port), timeout: Self.connectTimeout, tls: tls)
        transport.setSendLimit(id, bytes: Int(UInt32.max))
        passage.request = request
        passage.backend = id
        passages[id] = passage
        let whole = request.head + passage.head[end...]
        transport.send(id, whole.withUnsafeBytes { ByteSlice(copying: $0) })
    }

    private func backendSaid(_ bytes: UnsafeRawBufferPointer, _ passage: Passage, _ transport: Transport) {
        transport.send(passage.app, ByteSlice(copying: bytes))
        guard let request = passage.request else { return }
        if passage.isOpen { return record(passage.fromBackend.feed(bytes), isSent: false, transport) }
        guard passage.answer.count + bytes.count <= Self.maxAnswerBytes else { return }
        passage.answer.append(contentsOf: bytes)
        guard request.isUpgrade, let end = TappedRequest.end(of: passage.answer) else { return }
        guard passage.answer.starts(with: Array("HTTP/1.1 101".utf8)) else {
            return noted(
                "the backend refused the app: \(String(decoding: passage.answer.prefix { $0 != 0x0D }, as: UTF8.self))")
        }
        passage.isOpen = true
        opened("\(backend.isSecure ? "wss" : "ws")://\(backend.hostHeader)\(request.target)", headers: request.fields)
        noted("the app is connected")
        record(passage.fromBackend.feed(passage.answer[end...]), isSent: false, transport)
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        guard let passage = passages.removeValue(forKey: id) else { return }
        let other = id == passage.app ? passage.backend : passage.app
        if let other {
            passages[other] = nil
            transport.closeAfterFlush(other, linger: Self.linger)
        }
        guard let request = passage.request else { return }
        if passage.isOpen { return noted("the app is no longer connected") }
        if passage.answer.isEmpty, id != passage.app { return noted("\(backend.host) cannot be reached: \(end)") }
        // The app may hang up first, once it has the whole answer.
        guard !request.isUpgrade, let (status, body) = TappedRequest.answer(passage.answer),
            let json = try? JSONValue(parsing: body), json.object != nil || json.array != nil
        else { return }
        let url = "\(backend.isSecure ? "https" : "http")://\(backend.hostHeader)\(request.target)"
        called(RecordedCall(method: request.method, url: url, status: status, answer: json))
    }
}

/// A connection of its own, which hears what the backend says to it.
final class LearnClient: RecordingSource, TransportDelegate {
    private static let connectTimeout = Duration.seconds(10)

    private let url: HTTPURL
    private let access: LearnAccess
    private var handshake: WebSocketClientHandshake
    private var connection: WebSocketConnection?
    private var id = ConnectionID(rawValue: 0)
    private var writer = ByteWriter()
    private var randomness = BufferedSystemRandom()

    init(
        _ url: HTTPURL, _ access: LearnAccess, userAgent: String, noted: @escaping (String) -> Void
    ) throws(StartError) {
        self.url = url
        self.access = access
        var random = SystemRandomNumberGenerator()
        do {
            handshake = try WebSocketClientHandshake(
                url: url, headers: access.headers.map { ($0.name, $0.value.sent) }, userAgent: userAgent,
                nonce: (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) })
        } catch {
            throw StartError(description: error.sentence)
        }
        super.init { noted(access.withoutToken($0)) }
    }

    func begin(_ transport: Transport) {
        id = transport.connect(
            host: url.host, port: Int(url.port), timeout: Self.connectTimeout,
            tls: url.isSecure ? TLSClientSettings() : nil)
        handshake.request(into: &writer)
        transport.send(id, writer.take())
    }

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {}

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        if connection != nil { return received(bytes, transport) }
        switch handshake.bytesReceived(bytes) {
        case .needMoreData: break
        case .refused(let refusal):
            noted("the backend refused the connection: \(refusal.sentence)")
            transport.abort(id)
        case .accepted(_, let consumed):
            connection = WebSocketConnection(role: .client, limits: WebSocketLimits(), compression: nil)
            opened(access.url.recorded, headers: access.headers.map { ($0.name, $0.value.recorded) })
            noted("connected")
            for text in access.sends {
                let sent = Array(text.sent.utf8)
                _ = sent.withUnsafeBytes { connection?.send(text: $0, output: &writer, using: &randomness) }
                transport.send(id, writer.take())
                record([FrameTap.Message(isBinary: false, bytes: Array(text.recorded.utf8))], isSent: true, transport)
            }
            received(UnsafeRawBufferPointer(rebasing: bytes[consumed...]), transport)
        }
    }

    private func received(_ bytes: UnsafeRawBufferPointer, _ transport: Transport) {
        var rest = bytes
        var message: FrameTap.Message?
        while connection?.takeEvent(
            from: &rest, now: transport.now, output: &writer, using: &randomness,
            { event in
                switch event {
                case .text(let bytes): message = FrameTap.Message(isBinary: false, bytes: Array(bytes))
                case .binary(let bytes): message = FrameTap.Message(isBinary: true, bytes: Array(bytes))
                case .ping, .pong, .closeReceived, .failed: break
                }
            }) == true
        {
            if var whole = message {
                // The backend may repeat the token, and the recording is for others.
                whole.bytes = Array(access.withoutToken(String(decoding: whole.bytes, as: UTF8.self)).utf8)
                record([whole], isSent: false, transport)
            }
            message = nil
            transport.send(id, writer.take())
        }
        if connection?.shouldCloseTransport == true {
            transport.closeAfterFlush(id, linger: WebSocketLimits.closeTimeout)
        }
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        isOver = true
        noted("the connection is closed: \(end)")
    }
}
