import HTTPProtocol
import Testing
import Transport
import WireBytes

@testable import ChatBridge

@Suite("HTTP server over loopback")
struct HTTPServerTests {
    /// The status line's number, and the body.
    static func parts(_ answer: String) -> (status: String, body: String) {
        let status = answer.split(separator: " ").dropFirst().first.map(String.init) ?? ""
        let body = answer.firstRange(of: "\r\n\r\n").map { String(answer[$0.upperBound...]) } ?? ""
        return (status, body)
    }

    @Test(
        "routes answer by method and path",
        arguments: [
            ("GET", "/hello", "", "", "200", "hello"), ("GET", "/hello?x=1", "", "", "200", "hello"),
            ("HEAD", "/hello", "", "", "200", ""), ("GET", "/stream", "", "", "200", "2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"),
            ("GET", "/files/a/b", "", "", "200", "/files/a/b"), ("GET", "/files", "", "", "404", "404 Not Found\n"),
            ("GET", "/nowhere", "", "", "404", "404 Not Found\n"), ("GET", "/hello/", "", "", "404", "404 Not Found\n"),
            ("POST", "/echo", "Content-Length: 3\r\n", "abc", "200", "abc"),
            (
                "POST", "/echo", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n", "200",
                "abc"
            ),
            ("POST", "/hello", "", "", "405", "405 Method Not Allowed\n"),
            ("POST", "/echo", "Content-Length: 101\r\n", "", "413", "413 Content Too Large\n"),
            (
                "POST", "/echo", "Transfer-Encoding: chunked\r\n", "65\r\n" + String(repeating: "a", count: 101), "413",
                "413 Content Too Large\n"
            ),
            (
                "GET", "/hello", "A: " + String(repeating: "a", count: HTTPHeadLimits.maxHeadBytes), "", "431",
                "431 Request Header Fields Too Large\n"
            ),
            (
                "GET", "/" + String(repeating: "a", count: HTTPHeadLimits.maxStartLineBytes), "", "", "414",
                "414 URI Too Long\n"
            ),
            (
                "POST", "/echo", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "", "400",
                "400 Bad Request\n"
            ),
        ] as [(String, String, String, String, String, String)])
    func routes(method: String, path: String, fields: String, body: String, status: String, answer: String) async throws
    {
        let stage = try await HTTPStage()
        let said = await stage.ask(method, path, fields: fields, body: body)
        let found = Self.parts(said)
        #expect(found.status == status)
        #expect(found.body == answer)
        if status == "405" { #expect(said.contains("\r\nAllow: GET, HEAD\r\n")) }
        #expect(said.contains("\r\nDate: ") && said.contains("\r\nX-Content-Type-Options: nosniff\r\n"))
    }

    @Test(
        "a loopback listener takes only names of this machine, and those configured",
        arguments: [
            ("localhost", true), ("LOCALHOST:80", true), ("localhost.", true), ("127.0.0.1", true),
            ("127.9.9.9:1", true), ("[::1]:7", true), ("chat.example.org", true), ("evil.example.org", false),
            ("localhost.evil.org", false), ("192.0.2.1", false), ("[::2]", false), ("", false),
            ("127.0.0.1.evil.org", false),
        ])
    func hosts(name: String, isTaken: Bool) async throws {
        let stage = try await HTTPStage(hosts: ["chat.example.org"])
        let answer = await stage.ask("GET", "/hello", host: name)
        #expect(Self.parts(answer).status == (isTaken ? "200" : "421"))
    }

    @Test("beyond loopback every name is taken, unless names are configured")
    func remoteHosts() async throws {
        let any = try await HTTPStage(isLoopback: false)
        #expect(Self.parts(await any.ask("GET", "/hello", host: "10.0.0.7:9667")).status == "200")
        let named = try await HTTPStage(hosts: ["a.example"], isLoopback: false)
        #expect(Self.parts(await named.ask("GET", "/hello", host: "a.example:80")).status == "200")
        #expect(Self.parts(await named.ask("GET", "/hello", host: "localhost")).status == "421")
        #expect(Self.parts(await named.talk("GET /hello HTTP/1.0\r\n\r\n")).status == "421")
    }

    @Test("requests sent ahead are answered in order over one connection")
    func pipelining() async throws {
        let stage = try await HTTPStage()
        let one = "GET /files/1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        let two = "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n2"
        let last = "GET /files/3 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        let many = String(repeating: one + two, count: 200)
        let said = await stage.talk(many + last)
        #expect(said.split(separator: "HTTP/1.1 200 OK").count == 401)
        #expect(said.hasSuffix("/files/3"))
        #expect(said.count(of: "Connection: close") == 1)
    }

    @Test("a client that waits for 100 Continue gets it, or the refusal instead")
    func expectContinue() async throws {
        var limits = HTTPServerLimits()
        limits.bodyIdleTimeout = .milliseconds(20)
        let stage = try await HTTPStage(limits: limits)
        let head = "Expect: 100-continue\r\n"
        let taken = await stage.ask("POST", "/echo", fields: "Content-Length: 1\r\n" + head)
        #expect(taken.hasPrefix("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 408 "))
        let refused = await stage.ask("POST", "/echo", fields: "Content-Length: 101\r\n" + head)
        #expect(Self.parts(refused).status == "413" && !refused.contains("100 Continue"))
        let unknown = await stage.ask("POST", "/echo", fields: "Content-Length: 1\r\nExpect: tea\r\n")
        #expect(Self.parts(unknown).status == "417")
    }

    @Test("a head that does not come in time is refused, and silence is closed")
    func timeouts() async throws {
        var limits = HTTPServerLimits()
        limits.headTimeout = .milliseconds(20)
        limits.bodyTimeout = .milliseconds(20)
        let stage = try await HTTPStage(limits: limits)
        #expect(Self.parts(await stage.talk("GET / HTTP/1.1\r\n")).status == "408")
        #expect(
            Self.parts(await stage.ask("POST", "/echo", fields: "Content-Length: 2\r\n", body: "a")).status == "408")
        #expect(await stage.talk("") == "")
    }

    @Test("an answer that would break its framing breaks the connection off")
    func brokenAnswer() async throws {
        let stage = try await HTTPStage()
        #expect(await stage.ask("GET", "/broken") == "")
        #expect(Self.parts(await stage.ask("GET", "/hello")).body == "hello")
    }

    @Test("an answer may come later, and one for a connection that is gone goes nowhere")
    func laterAnswers() async throws {
        let stage = try await HTTPStage {
            [
                HTTPRoute(method: "GET", path: "/later") { exchange, transport in
                    (transport.delegate as? HTTPTestHouse)?.kept.append(exchange)
                },
                HTTPRoute(method: "GET", path: "/now") { exchange, transport in
                    let kept = (transport.delegate as? HTTPTestHouse)?.kept ?? []
                    for earlier in kept {
                        earlier.respond(200, "late", transport: transport)
                        earlier.respond(200, "twice", transport: transport)
                    }
                    exchange.respond(200, "now \(kept.filter(\.isOpen).count)", transport: transport)
                },
            ]
        }
        async let late = stage.ask("GET", "/later")
        var answer = ""
        // The first question may still be on its way.
        while try await stage.onLoop({ house, _ in house.kept.isEmpty }) { answer = await stage.ask("GET", "/nowhere") }
        answer = await stage.ask("GET", "/now")
        #expect(Self.parts(answer).body == "now 0")
        #expect(Self.parts(await late).body == "late")
    }

    @Test("closing lets the answer in progress out and refuses connections")
    func closing() async throws {
        let stage = try await HTTPStage {
            [
                HTTPRoute(method: "GET", path: "/close") { exchange, transport in
                    (transport.delegate as? HTTPTestHouse)?.server.close(transport)
                    exchange.respond(200, "bye", transport: transport)
                }
            ]
        }
        let said = await stage.talk("GET /close HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(Self.parts(said).body == "bye")
        #expect(said.contains("Connection: close"))
        #expect(await stage.talk("GET /close HTTP/1.1\r\n") == "")
    }
}

extension String {
    fileprivate func count(of part: String) -> Int { ranges(of: part).count }
}
