import Configuration
import HTTPProtocol
import Transport
import WSProtocol
import WireBytes

/// A WebSocket that echoes its messages.
private final class AutobahnEcho {
    var connection: WebSocketConnection
    /// The last text, for questions that are answered with one.
    private(set) var lastText = ""
    private let echoes: Bool

    init(role: WebSocketRole, compression: WebSocketCompression?, echoes: Bool = true) {
        connection = WebSocketConnection(role: role, limits: AutobahnCommands.limits, compression: compression)
        self.echoes = echoes
    }

    func bytesReceived(
        _ bytes: UnsafeRawBufferPointer, _ id: ConnectionID, _ transport: Transport, _ writer: inout ByteWriter,
        _ randomness: inout BufferedSystemRandom
    ) {
        var rest = bytes
        var message: (bytes: [UInt8], isText: Bool)?
        while connection.takeEvent(
            from: &rest, now: transport.now, output: &writer, using: &randomness,
            { event in
                switch event {
                case .text(let bytes): message = (Array(bytes), true)
                case .binary(let bytes): message = (Array(bytes), false)
                case .ping, .pong, .closeReceived, .failed: break
                }
            })
        {
            if let (bytes, isText) = message {
                if !echoes {
                    lastText = String(decoding: bytes, as: UTF8.self)
                } else if isText {
                    _ = bytes.withUnsafeBytes { connection.send(text: $0, output: &writer, using: &randomness) }
                } else {
                    _ = bytes.withUnsafeBytes { connection.send(binary: $0, output: &writer, using: &randomness) }
                }
                message = nil
            }
            transport.send(id, writer.take())
        }
        if connection.shouldCloseTransport {
            transport.closeAfterFlush(id, linger: WebSocketLimits.closeTimeout)
        }
    }
}

// MARK: - Server

/// Takes every WebSocket and echoes to it.
final class AutobahnHost: TransportDelegate {
    private enum Peer {
        case handshaking(WebSocketServerHandshake)
        case open(AutobahnEcho)
    }

    private var peers: [ConnectionID: Peer] = [:]
    private var writer = ByteWriter()
    private var randomness = BufferedSystemRandom()

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        peers[id] = .handshaking(WebSocketServerHandshake(compression: AutobahnCommands.compression))
        transport.setSendLimit(id, bytes: Int(UInt32.max))
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        switch peers[id] {
        case .open(let echo):
            echo.bytesReceived(bytes, id, transport, &writer, &randomness)
        case .handshaking(var handshake):
            switch handshake.bytesReceived(bytes) {
            case .needMoreData:
                peers[id] = .handshaking(handshake)
            case .accept(_, _, let consumed):
                _ = handshake.accept(into: &writer)
                transport.send(id, writer.take())
                let echo = AutobahnEcho(role: .server, compression: handshake.compression)
                peers[id] = .open(echo)
                let rest = UnsafeRawBufferPointer(rebasing: bytes[consumed...])
                echo.bytesReceived(rest, id, transport, &writer, &randomness)
            case .plainHTTP:
                _ = WebSocketServerHandshake.refuse(status: 426, reason: "Upgrade Required", into: &writer)
                transport.send(id, writer.take())
                transport.closeAfterFlush(id, linger: WebSocketLimits.closeTimeout)
            case .refused(let response, _):
                transport.send(id, response.withUnsafeBytes { ByteSlice(copying: $0) })
                transport.closeAfterFlush(id, linger: WebSocketLimits.closeTimeout)
            }
        case nil: break
        }
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) { peers[id] = nil }
}

// MARK: - Client

/// Asks how many cases there are, runs each on a connection of its own, and asks for the report.
final class AutobahnWalk: TransportDelegate {
    private enum Stage: Equatable {
        case count
        /// Cases have numbers from 1 to `last`.
        case run(Int, last: Int)
        case report
        case done
    }

    /// How long the fuzzing server may take to accept; it runs on this machine.
    private static let connectTimeout = Duration.seconds(10)

    private let base: String
    private let agent: String
    private let reports: Bool
    private let ended: (String?) -> Void
    private var stage: Stage
    private var current = ConnectionID(rawValue: 0)
    private var handshake: WebSocketClientHandshake?
    private var echo: AutobahnEcho?
    private var writer = ByteWriter()
    private var randomness = BufferedSystemRandom()

    /// - Parameters:
    ///   - only: one case, without a report; nil: all of them.
    ///   - ended: called once, with the reason for an early end.
    init(base: String, agent: String, only: Int?, ended: @escaping (String?) -> Void) {
        self.base = base
        self.agent = agent
        self.ended = ended
        reports = only == nil
        stage = only.map { .run($0, last: $0) } ?? .count
    }

    func begin(_ transport: Transport) {
        let path: String
        switch stage {
        case .count: path = "/getCaseCount"
        case .run(let number, _): path = "/runCase?case=\(number)&agent=\(agent)"
        case .report: path = "/updateReports?agent=\(agent)"
        case .done: return
        }
        do {
            let url = try HTTPURL(parsing: base + path)
            let isCase = if case .run = stage { true } else { false }
            handshake = try WebSocketClientHandshake(
                url: url, userAgent: "chatbridge/\(BuildInformation.version)",
                compression: isCase ? AutobahnCommands.compression : nil,
                nonce: (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &randomness) })
            current = transport.connect(host: url.host, port: Int(url.port), timeout: Self.connectTimeout)
            transport.setSendLimit(current, bytes: Int(UInt32.max))
        } catch {
            finish("no handshake for \(base + path): \(error)")
        }
    }

    private func finish(_ trouble: String?) {
        guard stage != .done else { return }
        stage = .done
        ended(trouble)
    }

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {}

    func connectionOpened(_ id: ConnectionID, peer: SocketAddress, transport: Transport) {
        handshake?.request(into: &writer)
        transport.send(id, writer.take())
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        if let echo { return echo.bytesReceived(bytes, id, transport, &writer, &randomness) }
        switch handshake?.bytesReceived(bytes) {
        case .accepted(_, let consumed):
            let isCase = if case .run = stage { true } else { false }
            let echo = AutobahnEcho(role: .client, compression: handshake?.compression, echoes: isCase)
            self.echo = echo
            let rest = UnsafeRawBufferPointer(rebasing: bytes[consumed...])
            echo.bytesReceived(rest, id, transport, &writer, &randomness)
        case .refused(let refusal):
            finish(refusal.sentence)
            transport.abort(id)
        case .needMoreData, nil: break
        }
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        guard id == current, stage != .done else { return }
        guard let echo else { return finish("\(base): \(end)") }
        self.echo = nil
        switch stage {
        case .count:
            guard let last = Int(echo.lastText), last > 0 else {
                return finish("\(base) does not say how many cases it has")
            }
            stage = .run(1, last: last)
        case .run(let number, let last):
            stage = number < last ? .run(number + 1, last: last) : reports ? .report : .done
            if stage == .done { return ended(nil) }
        case .report: return finish(nil)
        case .done: return
        }
        begin(transport)
    }

    func turnWillFlush(now: MonotonicInstant, transport: Transport) {
        transport.setDeadline(echo?.connection.closeDeadline)
    }

    /// A server that leaves the end of the transport to us for too long.
    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        transport.closeAfterFlush(current, linger: .zero)
    }
}
