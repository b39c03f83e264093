import HTTPProtocol
import Testing
import Transport

@testable import ChatBridge

@Suite("HTTP server: who has its connections")
struct HTTPServerPlacesTests {
    private static var routes: [HTTPRoute] {
        HTTPStage.standardRoutes + [
            HTTPRoute(method: "GET", path: "/alive", isVital: true) { $0.respond(200, "alive", transport: $1) },
            HTTPRoute(method: "GET", path: "/held") { exchange, transport in
                (transport.delegate as? HTTPTestHouse)?.kept.append(exchange)
            },
            HTTPRoute(method: "GET", path: "/go") { exchange, transport in
                guard let house = transport.delegate as? HTTPTestHouse else { return }
                for held in house.kept { held.respond(200, "gone", transport: transport) }
                house.kept = []
                exchange.respond(200, "go", transport: transport)
            },
        ]
    }

    private func hold(_ count: Int, _ text: String, _ stage: HTTPStage) async throws {
        try await stage.onLoop { [port = stage.port] house, transport in
            for _ in 0..<count { house.stare(text, port: port, transport) }
        }
    }

    private func status(_ answer: String) -> String { HTTPServerTests.parts(answer).status }

    @Test("whoever takes every connection keeps nobody from learning that we live")
    func spares() async throws {
        let stage = try await HTTPStage(routes: { Self.routes })
        // Halves of requests: they have until the head is late.
        try await hold(140, "GET /hello HTTP/1.1\r\n", stage)
        let bound = HTTPServerBounds.maxConnections * 3 / 4
        for _ in 0..<3 {
            let answer = await stage.ask("GET", "/alive")
            #expect(status(answer) == "200" && answer.contains("\r\nConnection: close\r\n"))
        }
        #expect(status(await stage.ask("GET", "/hello")) == "503")
        #expect(status(await stage.ask("GET", "/nowhere")) == "404")
        let count = try await stage.onLoop { house, _ in house.server.connectionCount }
        #expect(count >= bound && count <= bound + HTTPServerBounds.sparePerVisitor)
    }

    @Test("where nothing is vital, nobody has more than their share")
    func noSpares() async throws {
        let stage = try await HTTPStage()
        try await hold(140, "GET /hello HTTP/1.1\r\n", stage)
        #expect(await stage.ask("GET", "/hello") == "")
        let count = try await stage.onLoop { house, _ in house.server.connectionCount }
        #expect(count == HTTPServerBounds.maxConnections * 3 / 4)
    }

    @Test("a web server asks for many, and one of them is no more than one")
    func visits() async throws {
        let stage = try await HTTPStage(proxies: ["127.0.0.1"], routes: { Self.routes })
        func request(_ visitor: String) -> String {
            "GET /held HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: \(visitor)\r\n\r\n"
        }
        let bound = HTTPServerBounds.connectionsPerVisitor
        try await hold(bound, request("198.51.100.1"), stage)
        while try await stage.onLoop({ house, _ in house.kept.count }) < bound {}
        let mine = "X-Forwarded-For: 198.51.100.1\r\n"
        let refused = await stage.ask("GET", "/hello", fields: mine)
        #expect(status(refused) == "429" && refused.contains("\r\nRetry-After: 5\r\n"))
        #expect(status(await stage.ask("GET", "/hello", fields: "X-Forwarded-For: 198.51.100.2\r\n")) == "200")
        #expect(status(await stage.ask("GET", "/hello")) == "200")
        // With the answers the places are free, though the connections stand.
        #expect(status(await stage.ask("GET", "/go")) == "200")
        #expect(status(await stage.ask("GET", "/hello", fields: mine)) == "200")
        #expect(try await stage.onLoop { house, _ in house.server.connectionCount } >= bound)
    }
}
