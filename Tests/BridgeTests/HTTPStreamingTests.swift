import HTTPProtocol
import Testing
import Transport
import WireBytes

@testable import ChatBridge

@Suite("HTTP: gates, slow readers, answers as they come")
struct HTTPStreamingTests {
    /// Gates that a test holds shut; on the loop.
    private final class Gates {
        var shut: [HTTPGate] = []
        var passes = 0
        /// Answers without end that ended all the same.
        var ends = 0
    }

    private final class Pass {
        private let gates: Gates

        init(_ gates: Gates) {
            self.gates = gates
            gates.passes += 1
        }

        deinit { gates.passes -= 1 }
    }

    private static func routes() -> [HTTPRoute] {
        let gates = Gates()
        return [
            HTTPRoute(
                method: "POST", path: "/gated", maxBodyBytes: 1_000_000,
                gate: { gate, transport in
                    switch gate.head.headers.first("X-Gate") {
                    case "open": gate.open(Pass(gates), transport: transport)
                    case "refuse": gate.refuse(403, headers: [("X-Why", "so")], "no\n", transport: transport)
                    default: gates.shut.append(gate)
                    }
                },
                answer: { exchange, transport in
                    exchange.respond(200, "\(exchange.body.count) \(exchange.pass is Pass)", transport: transport)
                }),
            HTTPRoute(method: "GET", path: "/open") { exchange, transport in
                let shut = gates.shut
                gates.shut = []
                for gate in shut { gate.open(Pass(gates), transport: transport) }
                exchange.respond(200, "\(shut.count)", transport: transport)
            },
            HTTPRoute(method: "GET", path: "/refuse") { exchange, transport in
                let shut = gates.shut
                gates.shut = []
                for gate in shut { gate.refuse(401, "no\n", transport: transport) }
                exchange.respond(200, "\(shut.count)", transport: transport)
            },
            HTTPRoute(method: "GET", path: "/endless") { exchange, transport in
                let piece = ByteSlice(String(repeating: "a", count: 256 * 1024))
                exchange.begin(200, transport: transport)
                pour(piece, exchange, gates, transport)
            },
            HTTPRoute(method: "GET", path: "/ends") { $0.respond(200, "\(gates.ends)", transport: $1) },
            HTTPRoute(method: "GET", path: "/passes") { $0.respond(200, "\(gates.passes)", transport: $1) },
            HTTPRoute(method: "GET", path: "/large") { exchange, transport in
                let piece = ByteSlice(String(repeating: "a", count: 256 * 1024))
                exchange.begin(200, length: 20 * piece.count, transport: transport)
                write(20, piece, exchange, transport)
            },
            HTTPRoute(method: "GET", path: "/short") { exchange, transport in
                exchange.begin(200, length: 10, transport: transport)
                exchange.write(ByteSlice("abc"), transport: transport)
                exchange.whenDrained(transport) { exchange.breakOff($0) }
            },
        ]
    }

    /// Far more than may be queued, a piece at a time.
    private static func write(_ left: Int, _ piece: ByteSlice, _ exchange: HTTPExchange, _ transport: Transport) {
        guard left > 0, exchange.isOpen else { return exchange.finish(transport: transport) }
        exchange.write(piece, transport: transport)
        exchange.whenDrained(transport) { write(left - 1, piece, exchange, $0) }
    }

    private static func pour(
        _ piece: ByteSlice, _ exchange: HTTPExchange, _ gates: Gates, _ transport: Transport
    ) {
        guard exchange.isOpen else {
            gates.ends += 1
            return
        }
        exchange.write(piece, transport: transport)
        exchange.whenDrained(transport) { pour(piece, exchange, gates, $0) }
    }

    private static let post = "Content-Length: 3\r\n"

    @Test("a gate lets in what it likes, before anything of the body is asked for")
    func gate() async throws {
        let stage = try await HTTPStage(routes: { Self.routes() })
        let wish = "Expect: 100-continue\r\n"
        let open = await stage.ask("POST", "/gated", fields: Self.post + "X-Gate: open\r\n", body: "abc")
        #expect(HTTPServerTests.parts(open).body == "3 true")
        let refused = await stage.ask("POST", "/gated", fields: Self.post + wish + "X-Gate: refuse\r\n")
        #expect(HTTPServerTests.parts(refused).status == "403" && refused.contains("\r\nX-Why: so\r\n"))
        #expect(!refused.contains("100 Continue"))
        let ahead = await stage.ask("POST", "/gated", fields: Self.post + "X-Gate: refuse\r\n", body: "abc")
        #expect(HTTPServerTests.parts(ahead).status == "403")
        #expect(HTTPServerTests.parts(await stage.ask("GET", "/passes")).body == "0", "a pass goes with its request")
    }

    @Test("a request waits before a shut gate, whatever has come of it", arguments: [3, 300_000])
    func shut(count: Int) async throws {
        let stage = try await HTTPStage(routes: { Self.routes() })
        let body = String(repeating: "a", count: count)
        async let answer = stage.ask("POST", "/gated", fields: "Content-Length: \(count)\r\n", body: body)
        while HTTPServerTests.parts(await stage.ask("GET", "/open")).body != "1" {}
        #expect(HTTPServerTests.parts(await answer).body == "\(count) true")
    }

    @Test("an answer that is larger than any queue comes whole, and a broken one is not taken for whole")
    func large() async throws {
        let stage = try await HTTPStage(routes: { Self.routes() })
        var request = try stage.request("/large")
        request.maxBodyBytes = 10 * 1024 * 1024
        let answer = try await stage.send(request).get()
        #expect(answer.body.count == 20 * 256 * 1024)
        guard case .failure(.connectionLost) = await stage.send(try stage.request("/short")) else {
            Issue.record("taken for whole")
            return
        }
    }

    @Test("who reads nothing is not waited for without end")
    func stares() async throws {
        let stage = try await HTTPStage(
            pace: HTTPPace.Limits(stall: .milliseconds(200)), routes: { Self.routes() })
        try await stage.onLoop { [port = stage.port] house, transport in
            house.stare("GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n", port: port, transport)
        }
        while HTTPServerTests.parts(await stage.ask("GET", "/ends")).body != "1" {}
        #expect(try await stage.onLoop { house, _ in house.server.connectionCount } <= 1)
    }

    @Test("a body that waits before a shut gate is not late", arguments: ["", "Expect: 100-continue\r\n"])
    func isNotLate(wish: String) async throws {
        var limits = HTTPServerLimits()
        limits.bodyIdleTimeout = .milliseconds(20)
        let stage = try await HTTPStage(limits: limits, routes: { Self.routes() })
        async let answer = stage.ask("POST", "/gated", fields: Self.post + wish)
        let clock = ContinuousClock()
        let start = clock.now
        while clock.now - start < .milliseconds(100) { _ = await stage.ask("GET", "/passes") }
        while HTTPServerTests.parts(await stage.ask("GET", "/refuse")).body != "1" {}
        #expect(HTTPServerTests.parts(await answer).status == "401")
    }

    // MARK: - The client's side

    private final class Receiver: HTTPBodyReceiver, @unchecked Sendable {
        // Sendable because it is used on the loop alone, and read when the request is over.
        var statuses: [Int] = []
        var count = 0
        var pauses = 0
        /// After so many bytes nothing more is wanted.
        let enough: Int
        let takesHead: Bool
        var client: HTTPClient?
        var call: HTTPClient.CallID?
        let loop: NetworkLoop

        init(_ loop: NetworkLoop, enough: Int = .max, takesHead: Bool = true) {
            self.loop = loop
            self.enough = enough
            self.takesHead = takesHead
        }

        func headReceived(_ head: HTTPResponseHead, transport: Transport) -> Bool {
            statuses.append(head.status)
            return takesHead
        }

        func partReceived(_ part: ByteSlice, transport: Transport) -> HTTPBodyDemand {
            count += part.count
            if count >= enough { return .stop }
            pauses += 1
            loop.enqueue { transport in
                if let call = self.call { self.client?.resume(call, transport: transport) }
            }
            return .pause
        }
    }

    private func fetch(
        _ stage: HTTPStage, _ request: HTTPClientRequest, _ receiver: Receiver
    ) async -> Result<HTTPClientResponse, HTTPClientError> {
        await withCheckedContinuation { continuation in
            stage.loop.enqueue { transport in
                guard let client = (transport.delegate as? HTTPTestHouse)?.client else {
                    return continuation.resume(returning: .failure(.cancelled))
                }
                receiver.client = client
                receiver.call = client.send(request, transport: transport, receiver: receiver) { result, _ in
                    continuation.resume(returning: result)
                }
            }
        }
    }

    @Test("an answer comes to its receiver, which may pause")
    func receives() async throws {
        let stage = try await HTTPStage(routes: { Self.routes() })
        var request = try stage.request("/large")
        request.maxBodyBytes = 10 * 1024 * 1024
        let receiver = Receiver(stage.loop)
        let answer = try await fetch(stage, request, receiver).get()
        #expect(answer.body.isEmpty && receiver.statuses == [200])
        #expect(receiver.count == 20 * 256 * 1024 && receiver.pauses > 1)
        // The connection serves the next request, paused or not before.
        #expect(HTTPClientTests.text(await stage.send(try stage.request("/passes"))) == "200 0")
    }

    @Test("a receiver that has enough ends the request", arguments: [true, false])
    func stops(takesHead: Bool) async throws {
        let stage = try await HTTPStage(routes: { Self.routes() })
        var request = try stage.request("/large")
        request.maxBodyBytes = 10 * 1024 * 1024
        let receiver = Receiver(stage.loop, enough: 1000, takesHead: takesHead)
        #expect(HTTPClientTests.text(await fetch(stage, request, receiver)) == "failed cancelled")
        #expect(receiver.count < 20 * 256 * 1024 && (receiver.count > 0) == takesHead)
    }

    @Test("only the answer at the end of redirects is received, within its bounds")
    func redirects() async throws {
        let stage = try await HTTPStage()
        let port = try await HTTPClientTests.scripted(
            stage,
            [
                ("HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 4\r\n\r\nthis", false),
                (HTTPClientTests.ok("that!"), false), (HTTPClientTests.ok("too much"), false),
            ])
        let receiver = Receiver(stage.loop)
        _ = try await fetch(stage, try stage.request("/here", port: port), receiver).get()
        #expect(receiver.statuses == [200] && receiver.count == 5)
        var bounded = try stage.request("/here", port: port)
        bounded.maxBodyBytes = 7
        guard case .failure(.protocolError) = await fetch(stage, bounded, Receiver(stage.loop)) else {
            Issue.record("not bounded")
            return
        }
    }
}
