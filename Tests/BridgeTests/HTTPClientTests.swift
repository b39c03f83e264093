import HTTPProtocol
import Testing
import Transport
import WireBytes

@testable import ChatBridge

@Suite("HTTP client over loopback")
struct HTTPClientTests {
    /// A listener that answers what comes in with `scripts`, one each.
    static func scripted(_ stage: HTTPStage, _ scripts: [(text: String, closes: Bool)]) async throws -> Int {
        try await stage.onLoop { house, transport in
            let (id, address) = try transport.listen(ListenOptions(host: "127.0.0.1", port: 0))
            house.scriptListener = id
            house.scripts = scripts
            return address.port ?? 0
        }
    }

    static func ok(_ body: String) -> String { "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)" }

    static func text(_ result: Result<HTTPClientResponse, HTTPClientError>) -> String {
        switch result {
        case .success(let response): "\(response.head.status) \(String(decoding: response.body, as: UTF8.self))"
        case .failure(let error): "failed \(error)"
        }
    }

    @Test("a request is answered, and its connection kept for the next")
    func reuse() async throws {
        let stage = try await HTTPStage()
        for _ in 0..<3 {
            let answer = await stage.send(try stage.request("/hello"))
            #expect(Self.text(answer) == "200 hello")
        }
        var post = try stage.request("/echo")
        post.method = "POST"
        post.body = Array("abc".utf8)
        #expect(Self.text(await stage.send(post)) == "200 abc")
        #expect(Self.text(await stage.send(try stage.request("/stream"))) == "200 abcd")
        #expect(try await stage.onLoop { house, _ in house.client.connectionCount } == 1)
        #expect(try await stage.onLoop { house, _ in house.server.connectionCount } == 1)
    }

    @Test("many requests at once share a few connections")
    func bounded() async throws {
        let stage = try await HTTPStage()
        let answers = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<50 {
                let request = try stage.request("/files/\(number)")
                group.addTask { Self.text(await stage.send(request)) }
            }
            var answers: Set<String> = []
            for try await answer in group { answers.insert(answer) }
            return answers
        }
        #expect(answers == Set((0..<50).map { "200 /files/\($0)" }))
        let count = try await stage.onLoop { house, _ in house.client.connectionCount }
        #expect((1...HTTPClientBounds.connectionsPerOrigin).contains(count))
    }

    @Test(
        "a redirect to the same host is followed",
        arguments: ["/b", "b", "http://127.0.0.1:PORT/b", "//127.0.0.1:PORT/b#x"])
    func redirect(location: String) async throws {
        let stage = try await HTTPStage()
        let port = try await Self.scripted(stage, [])
        let place = location.replacing("PORT", with: String(port))
        try await stage.onLoop { house, _ in
            house.scripts = [
                ("HTTP/1.1 302 F\r\nLocation: \(place)\r\nContent-Length: 0\r\n\r\n", false), (Self.ok("there"), false),
            ]
        }
        let answer = await stage.send(try stage.request("/a?q", port: port))
        #expect(Self.text(answer) == "200 there")
        #expect(try await stage.onLoop { house, _ in house.scriptedReceived.contains("GET /b HTTP/1.1\r\n") })
    }

    @Test("redirects have an end, and do not lead elsewhere")
    func redirectBounds() async throws {
        let stage = try await HTTPStage()
        let again = ("HTTP/1.1 307 T\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n", false)
        let port = try await Self.scripted(stage, Array(repeating: again, count: 5))
        #expect(
            await stage.send(try stage.request("/", port: port)) == .failure(.tooManyRedirects(limit: 3)))
        for place in ["http://localhost:\(port)/", "http://127.0.0.1:1/", "https://127.0.0.1:\(port)/"] {
            try await stage.onLoop { house, _ in
                house.scripts = [("HTTP/1.1 301 M\r\nLocation: \(place)?t=1\r\nContent-Length: 0\r\n\r\n", false)]
            }
            #expect(await stage.send(try stage.request("/", port: port)) == .failure(.redirectRefused(to: place)))
        }
        try await stage.onLoop { house, _ in house.scripts = [("HTTP/1.1 302 F\r\nContent-Length: 0\r\n\r\n", false)] }
        #expect(Self.text(await stage.send(try stage.request("/", port: port))) == "302 ")
    }

    @Test("a secure origin is never left for a plain one, and a POST becomes a GET where everybody makes it one")
    func redirectRules() throws {
        var request = HTTPClientRequest(try HTTPURL(parsing: "https://h/a/b?c"), method: "POST")
        request.body = [1]
        request.headers = HTTPHeaders([("Content-Type", "x"), ("A", "b")])
        #expect(throws: HTTPClientError.redirectRefused(to: "http://h/")) {
            try HTTPRedirect.next(request, status: 307, location: "http://h/")
        }
        let kept = try HTTPRedirect.next(request, status: 307, location: "d")
        #expect(kept.method == "POST" && kept.body == [1] && kept.url.description == "https://h/a/d")
        for status in [301, 302, 303] {
            let get = try HTTPRedirect.next(request, status: status, location: "?e")
            #expect(get.method == "GET" && get.body == nil && get.headers.fields.map(\.name) == ["A"])
            #expect(get.url.pathAndQuery == "/a/b?e")
        }
        let plain = HTTPClientRequest(try HTTPURL(parsing: "http://h/"))
        #expect(try HTTPRedirect.next(plain, status: 308, location: "https://h/x").url.isSecure)
        #expect(throws: HTTPClientError.self) { try HTTPRedirect.next(plain, status: 308, location: "file:///etc/x") }
        #expect(throws: HTTPClientError.self) { try HTTPRedirect.next(plain, status: 308, location: "/a b") }
    }

    @Test("a kept connection that the server closed is no failure for a GET, and one for a POST that was sent")
    func staleConnection() async throws {
        let stage = try await HTTPStage()
        // The second request of each connection finds it closed.
        let port = try await Self.scripted(
            stage, [(Self.ok("1"), false), ("", true), (Self.ok("2"), false), ("", true)])
        #expect(Self.text(await stage.send(try stage.request("/", port: port))) == "200 1")
        #expect(Self.text(await stage.send(try stage.request("/", port: port))) == "200 2")
        var post = try stage.request("/", port: port)
        post.method = "POST"
        post.body = [1]
        let answer = await stage.send(post)
        guard case .failure(.connectionLost) = answer else {
            Issue.record("\(answer)")
            return
        }
    }

    @Test("what is no proper answer is an error")
    func failures() async throws {
        let stage = try await HTTPStage()
        let port = try await Self.scripted(stage, [])
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n", HTTPProtocolError.bodyTooLarge(limit: 1024 * 1024)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", .endedEarly),
            ("nonsense\r\n\r\n", .malformedStartLine),
        ] {
            try await stage.onLoop { house, _ in house.scripts = [(text, true)] }
            #expect(await stage.send(try stage.request("/", port: port)) == .failure(.protocolError(expected)))
        }
        try await stage.onLoop { house, _ in house.scripts = [("HTTP/1.1 200 OK\r\n\r\nto the end", true)] }
        #expect(Self.text(await stage.send(try stage.request("/", port: port))) == "200 to the end")
        #expect(try await stage.onLoop { house, _ in house.client.connectionCount } == 0)
    }

    @Test("bytes that follow an answer are never the next one's")
    func smuggledAnswer() async throws {
        let stage = try await HTTPStage()
        let port = try await Self.scripted(stage, [(Self.ok("1") + Self.ok("evil"), false), (Self.ok("2"), false)])
        #expect(Self.text(await stage.send(try stage.request("/", port: port))) == "200 1")
        #expect(Self.text(await stage.send(try stage.request("/", port: port))) == "200 2")
        #expect(try await stage.onLoop { house, _ in house.scriptedAccepts } == 2)
    }

    @Test("nobody there, no time, no scheme, no interest")
    func noAnswer() async throws {
        let stage = try await HTTPStage()
        let port = try await Self.scripted(stage, [])
        var request = try stage.request("/", port: port)
        request.timeout = .milliseconds(20)
        #expect(await stage.send(request) == .failure(.timedOut))
        request.timeout = .seconds(60)
        request.stallTimeout = .milliseconds(20)
        #expect(await stage.send(request) == .failure(.timedOut))

        let closed = try await stage.onLoop { house, transport in
            let (id, address) = try transport.listen(ListenOptions(host: "127.0.0.1", port: 0))
            transport.closeListener(id)
            return address.port ?? 0
        }
        guard case .failure(.notConnected(let sentence)) = await stage.send(try stage.request("/", port: closed)) else {
            Issue.record("a closed port answered")
            return
        }
        #expect(sentence.contains("refused"))

        let secure = await stage.send(HTTPClientRequest(try HTTPURL(parsing: "ws://127.0.0.1/")))
        guard case .failure(.unsupportedURL) = secure else {
            Issue.record("\(secure)")
            return
        }

        let silent = try stage.request("/", port: port)
        let cancelled = await withCheckedContinuation { continuation in
            stage.loop.enqueue { transport in
                guard let client = (transport.delegate as? HTTPTestHouse)?.client else { return }
                let id = client.send(silent, transport: transport) { result, _ in continuation.resume(returning: result)
                }
                client.cancel(id, transport: transport)
                client.cancel(id, transport: transport)
            }
        }
        #expect(cancelled == .failure(.cancelled))
        #expect(try await stage.onLoop { house, _ in house.client.connectionCount } == 0)
    }
}
