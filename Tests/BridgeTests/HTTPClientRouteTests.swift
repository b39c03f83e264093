import HTTPProtocol
import Testing
import Transport
import WireBytes

@testable import ChatBridge

/// How the client gets to a server: encrypted, and through a proxy.
@Suite("HTTP client, ways to a server")
struct HTTPClientRouteTests {
    private static func certificate(_ name: String) throws -> GeneratedCertificate {
        try CertificateGenerator(names: [name], notBefore: 1_700_000_000, notAfter: 4_000_000_000).make()
    }

    /// A server with a certificate for `name`, beside the stage's plain one.
    private func secure(_ stage: HTTPStage, _ certificate: GeneratedCertificate) async throws -> Int {
        try await stage.onLoop { house, transport in
            var options = ListenOptions(host: "127.0.0.1", port: 0)
            options.tls = TLSServerSettings(identity: certificate.identity)
            let addresses = try house.server.listen(
                options,
                site: HTTPSite(hosts: HTTPHostRule(hosts: [], isLoopback: true), routes: HTTPStage.standardRoutes),
                transport: transport)
            return addresses.first?.port ?? 0
        }
    }

    private static func trusting(_ certificate: GeneratedCertificate) -> TLSClientSettings {
        var settings = TLSClientSettings()
        settings.authorities = .pem(certificate.certificatePEM)
        return settings
    }

    @Test("a secure server is asked over TLS, and its connection kept for requests with equal settings")
    func https() async throws {
        let stage = try await HTTPStage()
        let certificate = try Self.certificate("127.0.0.1")
        let port = try await secure(stage, certificate)
        var request = HTTPClientRequest(try HTTPURL(parsing: "https://127.0.0.1:\(port)/hello"))
        request.tls = Self.trusting(certificate)
        for _ in 0..<2 { #expect(HTTPClientTests.text(await stage.send(request)) == "200 hello") }
        #expect(try await stage.onLoop { house, _ in house.client.connectionCount } == 1)
        request.tls?.minimumVersion = .v13
        #expect(HTTPClientTests.text(await stage.send(request)) == "200 hello")
        #expect(try await stage.onLoop { house, _ in house.client.connectionCount } == 2)
    }

    @Test("a certificate of an unknown authority, or for another name, is refused before anything is said")
    func untrusted() async throws {
        let stage = try await HTTPStage()
        let certificate = try Self.certificate("elsewhere.example")
        let port = try await secure(stage, certificate)
        var request = HTTPClientRequest(try HTTPURL(parsing: "https://127.0.0.1:\(port)/hello"))
        for tls in [nil, Self.trusting(certificate)] {
            request.tls = tls
            guard case .failure(.notConnected) = await stage.send(request) else {
                Issue.record("a server that proved nothing was asked")
                return
            }
        }
        request.tls?.pins = [Array(repeating: 7, count: 32)]
        guard case .failure(.notConnected) = await stage.send(request) else {
            Issue.record("a server with another key than the pinned one was asked")
            return
        }
    }

    @Test("a request through a proxy asks for a tunnel first")
    func proxy() async throws {
        let stage = try await HTTPStage()
        let port = try await HTTPClientTests.scripted(
            stage, [("HTTP/1.1 200 Connection established\r\n\r\n", false), (HTTPClientTests.ok("far"), false)])
        var request = HTTPClientRequest(try HTTPURL(parsing: "http://far.example/x"))
        request.proxies = HTTPProxyRules(always: try HTTPProxy(parsing: "http://u:p@127.0.0.1:\(port)"))
        #expect(HTTPClientTests.text(await stage.send(request)) == "200 far")
        let heard = try await stage.onLoop { house, _ in house.scriptedReceived }
        #expect(heard.hasPrefix("CONNECT far.example:80 HTTP/1.1\r\n"))
        #expect(heard.contains("Proxy-Authorization: Basic dTpw\r\n"))
        let inside = heard.split(separator: "\r\n\r\n").last ?? ""
        #expect(inside.hasPrefix("GET /x HTTP/1.1\r\nHost: far.example") && !inside.contains("Proxy-Authorization"))
    }

    @Test(
        "a proxy that opens no tunnel is an error that names it, without its password",
        arguments: [
            "HTTP/1.1 407 No\r\n\r\n", "HTTP/1.1 403 No\r\n\r\n", "nonsense\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        ])
    func proxyRefuses(answer: String) async throws {
        let stage = try await HTTPStage()
        let port = try await HTTPClientTests.scripted(stage, [(answer, false)])
        var request = HTTPClientRequest(try HTTPURL(parsing: "https://far.example/x"))
        request.proxies = HTTPProxyRules(always: try HTTPProxy(parsing: "http://u:hunter2@127.0.0.1:\(port)"))
        guard case .failure(.notConnected(let sentence)) = await stage.send(request) else {
            Issue.record("the proxy refused, and the request went on")
            return
        }
        #expect(sentence.contains("proxy") && !sentence.contains("hunter2"))
        #expect(try await stage.onLoop { house, _ in house.client.connectionCount } == 0)
    }
}
