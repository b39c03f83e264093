import HTTPProtocol
import Testing
import Transport
import WireBytes

@testable import ChatBridge

/// A server, a client and raw connections on one loop of their own, stopped when the test is over.
final class HTTPStage: Sendable {
    let loop: NetworkLoop
    let port: Int

    /// - Parameter routes: made on the loop.
    init(
        limits: HTTPServerLimits = HTTPServerLimits(), pace: HTTPPace.Limits = HTTPPace.Limits(), hosts: [String] = [],
        isLoopback: Bool = true, proxies: [String] = [],
        routes: @Sendable () -> [HTTPRoute] = { HTTPStage.standardRoutes }
    ) async throws {
        loop = try NetworkLoop.start(name: "http-test")
        port = try await loop.run { transport in
            let server = HTTPServer(limits: limits, pace: pace)
            let house = HTTPTestHouse(server: server)
            transport.attach(house)
            let addresses = try server.listen(
                ListenOptions(host: "127.0.0.1", port: 0),
                site: HTTPSite(
                    hosts: HTTPHostRule(hosts: hosts, isLoopback: isLoopback), routes: routes(),
                    proxies: HTTPProxies(named: proxies.compactMap { NetworkRange($0) })),
                transport: transport)
            return addresses.first?.port ?? 0
        }
    }

    deinit { loop.stop() }

    static var standardRoutes: [HTTPRoute] {
        [
            HTTPRoute(method: "GET", path: "/hello") { $0.respond(200, "hello", transport: $1) },
            HTTPRoute(method: "POST", path: "/echo", maxBodyBytes: 100) { exchange, transport in
                exchange.respond(200, body: exchange.body, transport: transport)
            },
            HTTPRoute(method: "GET", path: "/stream") { exchange, transport in
                exchange.begin(200, transport: transport)
                exchange.write(ByteSlice("ab"), transport: transport)
                exchange.write(ByteSlice("cd"), transport: transport)
                exchange.finish(transport: transport)
            },
            HTTPRoute(method: "GET", path: "/files/*") { $0.respond(200, $0.target.path, transport: $1) },
            HTTPRoute(method: "GET", path: "/broken") { exchange, transport in
                exchange.respond(200, headers: HTTPHeaders([("Bad", "a\r\nb")]), transport: transport)
            },
        ]
    }

    /// Sends `text` over a connection of its own and returns everything until the server closes it.
    func talk(_ text: String) async -> String {
        await withCheckedContinuation { continuation in
            let port = port
            loop.enqueue { transport in
                guard let house = transport.delegate as? HTTPTestHouse else {
                    return continuation.resume(returning: "")
                }
                house.talk(text, port: port, transport) { continuation.resume(returning: $0) }
            }
        }
    }

    /// One request with `Connection: close`; the answer without its Date.
    func ask(
        _ method: String = "GET", _ path: String, host: String = "localhost", fields: String = "", body: String = ""
    )
        async -> String
    {
        await talk("\(method) \(path) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\(fields)\r\n\(body)")
    }

    func request(_ path: String, port: Int? = nil) throws -> HTTPClientRequest {
        HTTPClientRequest(try HTTPURL(parsing: "http://127.0.0.1:\(port ?? self.port)\(path)"))
    }

    func send(_ request: HTTPClientRequest) async -> Result<HTTPClientResponse, HTTPClientError> {
        await withCheckedContinuation { continuation in
            loop.enqueue { transport in
                guard let client = (transport.delegate as? HTTPTestHouse)?.client else {
                    return continuation.resume(returning: .failure(.cancelled))
                }
                client.send(request, transport: transport) { result, _ in continuation.resume(returning: result) }
            }
        }
    }

    func onLoop<R: Sendable>(_ body: @Sendable (HTTPTestHouse, Transport) throws -> R) async throws -> R {
        try await loop.run { transport in
            try body(try #require(transport.delegate as? HTTPTestHouse), transport)
        }
    }
}

/// Tells each of its own connections, as ``ConnectionRouter`` does for the bridge.
final class HTTPTestHouse: TransportDelegate {
    let server: HTTPServer
    let client = HTTPClient()
    private var talks: [ConnectionID: (received: [UInt8], done: (String) -> Void)] = [:]
    /// A server of the test's own making: what it says to each connection when something comes in; then it closes or not.
    var scripts: [(text: String, closes: Bool)] = []
    var scriptListener: ListenerID?
    private var scripted: Set<ConnectionID> = []
    private(set) var scriptedAccepts = 0
    private(set) var scriptedReceived = ""
    /// For routes that pass files on.
    var backends: BackendDriver?
    /// Answers that a test holds back.
    var kept: [HTTPExchange] = []

    init(server: HTTPServer) { self.server = server }

    func talk(_ text: String, port: Int, _ transport: Transport, _ done: @escaping (String) -> Void) {
        let id = transport.connect(host: "127.0.0.1", port: port, timeout: .seconds(20))
        talks[id] = ([], done)
        transport.send(id, ByteSlice(text))
    }

    /// Sends `text` and reads nothing of what is answered.
    func stare(_ text: String, port: Int, _ transport: Transport) {
        let id = transport.connect(host: "127.0.0.1", port: port, timeout: .seconds(20))
        transport.pauseReading(id)
        transport.send(id, ByteSlice(text))
    }

    private func tenant(_ id: ConnectionID) -> (any TransportDelegate)? {
        if let files = backends?.files, files.owns(id) { return files }
        return server.owns(id) ? server : client.owns(id) ? client : nil
    }

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        if listener == scriptListener {
            scripted.insert(id)
            scriptedAccepts += 1
        } else {
            server.connectionAccepted(id, listener: listener, peer: peer, transport: transport)
        }
    }

    func connectionOpened(_ id: ConnectionID, peer: SocketAddress, transport: Transport) {
        tenant(id)?.connectionOpened(id, peer: peer, transport: transport)
    }

    func connectionSecured(_ id: ConnectionID, transport: Transport) {
        tenant(id)?.connectionSecured(id, transport: transport)
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        if talks[id] != nil {
            talks[id]?.received.append(contentsOf: bytes)
        } else if scripted.contains(id) {
            scriptedReceived += String(decoding: bytes, as: UTF8.self)
            guard !scripts.isEmpty else { return }
            let script = scripts.removeFirst()
            transport.send(id, ByteSlice(script.text))
            if script.closes { transport.closeAfterFlush(id, linger: .seconds(2)) }
        } else {
            tenant(id)?.connectionReceived(id, bytes, transport: transport)
        }
    }

    func connectionDrained(_ id: ConnectionID, transport: Transport) {
        tenant(id)?.connectionDrained(id, transport: transport)
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        if let talk = talks.removeValue(forKey: id) {
            talk.done(String(decoding: talk.received, as: UTF8.self))
        } else {
            tenant(id)?.connectionClosed(id, end, transport: transport)
        }
    }

    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        server.deadlineReached(now: now, transport: transport)
        client.deadlineReached(now: now, transport: transport)
        backends?.files.deadlineReached(now: now, transport: transport)
    }

    func turnWillFlush(now: MonotonicInstant, transport: Transport) {
        client.turnWillFlush(now: now, transport: transport)
        backends?.files.turnWillFlush(now: now, transport: transport)
        transport.setDeadline(
            [server.nextDeadline(), client.nextDeadline(), backends?.files.nextDeadline()].compactMap(\.self).min())
    }
}
