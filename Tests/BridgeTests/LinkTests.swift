import BridgeTestSupport
import Dialects
import HTTPProtocol
import Testing
import Upstream

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("What a link asks of a backend")
struct LinkDemandTests {
    private func harness(_ change: (inout RoomSettings) -> Void) throws -> BridgeHarness {
        var room = RoomSettings(
            name: "lobby", dialect: EnvelopeDialect(), url: try HTTPURL(parsing: "ws://chat.example/lobby"))
        change(&room)
        return BridgeHarness(settings: BridgeSettings(serverName: "bridge", instanceID: "test", rooms: [room]))
    }

    @Test("a backend that chooses no subprotocol is refused where one is required", arguments: [true, false])
    func subprotocol(isRequired: Bool) throws {
        let harness = try harness {
            $0.subprotocols = ["chat.v2"]
            $0.requiresSubprotocol = isRequired
        }
        harness.start()
        #expect(harness.bridge.roomStates.first?.isUp == !isRequired)
        #expect(
            harness.bridge.roomStates.first?.reason
                == (isRequired
                    ? "the server chose none of the subprotocols that were offered, and one is required" : nil))
    }

    @Test("a long reason of a server is told in part")
    func longReason() throws {
        let proxy = try HTTPProxy(parsing: "http://p:1")
        let harness = try harness { $0.proxies = HTTPProxyRules(always: proxy) }
        harness.upstreams[0].proxyAnswer = "HTTP/1.1 500 \(String(repeating: "ä", count: 3000))\r\n\r\n"
        harness.start()
        let reason = try #require(harness.bridge.roomStates.first?.reason)
        #expect(reason.hasPrefix("the proxy p:1 answered 500 ää"))
        #expect(reason.hasSuffix("ä…"))
        #expect(reason.utf8.count <= UpstreamSession.maxReasonBytes + 3)
    }

    @Test("what a proxy says before TLS has begun is not taken for TLS")
    func bytesBeforeTLS() throws {
        let proxy = try HTTPProxy(parsing: "http://p:1")
        let harness = try harness {
            $0.proxies = HTTPProxyRules(always: proxy)
            if let url = try? HTTPURL(parsing: "wss://chat.example/lobby") { $0.url = url }
        }
        harness.upstreams[0].proxyAnswer = "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 101 x\r\n\r\n"
        harness.start()
        #expect(harness.bridge.roomStates.first?.reason == "the proxy sent bytes before TLS had begun")
        #expect(harness.violations == [])
    }

    @Test("credentials go to the backend and stay out of every note", arguments: [401, 302, 500, 101])
    func notes(status: Int) throws {
        let harness = try harness { $0.authenticates = true }
        harness.credentials[0] = .success(
            UpstreamCredentials(
                headers: [.init(name: "Authorization", value: "Bearer hunter2")],
                query: [.init(name: "access_token", value: "hunter2")]))
        harness.acceptsConnections = false
        harness.start()
        if status == 101 {
            harness.accept(0)
        } else {
            harness.refuse(0, status: status, headers: [("Location", "ftp://x/?t=hunter2"), ("Retry-After", "1")])
        }
        let request = try #require(harness.upstreams[0].requests.first)
        #expect(request.hasPrefix("GET /lobby?access_token=hunter2 HTTP/1.1\r\n"))
        #expect(request.contains("\r\nAuthorization: Bearer hunter2\r\n"))
        harness.advance(by: .seconds(60))
        #expect(!harness.notes.isEmpty)
        #expect(!"\(harness.notes)".contains("hunter2"))
    }
}
