import BridgeCore
import BridgeTestSupport
import ChatModel
import HTTPProtocol
import IRCServer
import Rooms
import Studio
import Testing
import Transport
import Upstream
import WireBytes

@testable import ChatBridge
@testable import Configuration

@Suite("Health over HTTP")
struct HealthTests {
    static func room(
        _ link: RoomState.Link, hasBeenUp: Bool = false, failures: Int = 0, isRequired: Bool = true,
        hasFailed: Bool = false
    ) -> RoomState {
        RoomState(
            name: "lobby", link: link, hasBeenUp: hasBeenUp, failures: failures, reason: "at 10.0.0.7: secret",
            isRequired: isRequired, hasFailed: hasFailed)
    }

    @Test(
        "readiness counts a required room until it was up once and when it has failed, and strictly always",
        arguments: [
            ([], true, false, "{\"ready\":true,\"reasons\":[]}"),
            ([room(.up, hasBeenUp: true)], true, true, "{\"ready\":true,\"reasons\":[]}"),
            ([room(.connecting)], true, false, "{\"ready\":false,\"reasons\":[\"room lobby: connecting\"]}"),
            (
                [room(.waiting, failures: 1)], true, false,
                "{\"ready\":false,\"reasons\":[\"room lobby: waiting (1 try)\"]}"
            ),
            (
                [room(.connecting, failures: 3)], true, true,
                "{\"ready\":false,\"reasons\":[\"room lobby: connecting (3 tries)\"]}"
            ),
            ([room(.waiting, hasBeenUp: true, failures: 9)], true, false, "{\"ready\":true,\"reasons\":[]}"),
            (
                [room(.waiting, hasBeenUp: true, failures: 2)], true, true,
                "{\"ready\":false,\"reasons\":[\"room lobby: waiting (2 tries)\"]}"
            ),
            (
                [room(.waiting, hasBeenUp: true, failures: 40, hasFailed: true)], true, false,
                "{\"ready\":false,\"reasons\":[\"room lobby: failed, waiting (40 tries)\"]}"
            ),
            ([room(.waiting, failures: 2, isRequired: false)], true, false, "{\"ready\":true,\"reasons\":[]}"),
            ([room(.waiting, failures: 2, isRequired: false)], true, true, "{\"ready\":true,\"reasons\":[]}"),
            ([room(.up, hasBeenUp: true)], false, false, "{\"ready\":false,\"reasons\":[\"stopping\"]}"),
        ] as [([RoomState], Bool, Bool, String)])
    func readiness(rooms: [RoomState], isRunning: Bool, isStrict: Bool, json: String) {
        let readiness = Readiness(rooms: rooms, isRunning: isRunning, isStrict: isStrict)
        #expect(String(decoding: readiness.json, as: UTF8.self) == json + "\n")
        #expect(readiness.isReady == json.contains("true"))
    }

    @Test("a bridge that can keep nothing is not ready, and says why")
    func storage() {
        let readiness = Readiness(
            rooms: [Self.room(.up, hasBeenUp: true)], isRunning: true, storage: .failing("the disk is full"),
            isStrict: false)
        #expect(readiness.reasons == ["storage: the disk is full"])
    }

    /// A service with one room whose backend is at `port`.
    static func start(backend port: Int, _ keys: String = "") async throws -> BridgeService {
        let configuration = try load(
            """
            [[rooms]]
            name = "lobby"
            url = "ws://127.0.0.1:\(port)/lobby"
            \(keys)
            [storage]
            url = "memory:"
            [[listeners]]
            bind = "irc://127.0.0.1:0"
            [[http]]
            bind = "http://127.0.0.1:0"
            [admin]
            socket = ""
            """)
        return try await start(configuration)
    }

    static func start(_ configuration: Configuration) async throws -> BridgeService {
        let log = Logger(subsystem: .main, configuration: LogConfiguration(), sink: SilentSink())
        return try await BridgeService.start(
            configuration, instanceID: "test", environment: testEnvironment([:]), log: log
        ) { _ in }
    }

    private struct SilentSink: LogSink {
        func write(
            _ level: LogLevel, _ subsystem: LogSubsystem, _ event: String, _ message: String,
            _ metadata: [(key: String, value: LogValue)]
        ) {}
    }

    static func ask(_ stage: HTTPStage, _ service: BridgeService, _ path: String) async throws -> String {
        let port = try #require(service.httpAddresses.first?.port)
        return HTTPClientTests.text(await stage.send(try stage.request(path, port: port)))
    }

    @Test("a bridge answers that it lives, and is ready when its room was up")
    func service() async throws {
        let studio = try await StudioDriver.start(port: 0)
        let service = try await Self.start(backend: studio.port)
        let stage = try await HTTPStage()
        #expect(try await Self.ask(stage, service, "/healthz") == "200 ok\n")
        // Each question is a round trip; the link needs a few.
        var answer = ""
        for _ in 0..<10_000 where !answer.hasPrefix("200") {
            answer = try await Self.ask(stage, service, "/readyz?strict")
        }
        #expect(answer == "200 {\"ready\":true,\"reasons\":[]}\n")
        #expect(try await Self.ask(stage, service, "/readyz") == answer)
        #expect(try await Self.ask(stage, service, "/metrics").hasPrefix("404"))

        // The backend goes away: strictly that counts, else it does not.
        studio.stop()
        studio.waitUntilStopped()
        for _ in 0..<10_000 where answer.hasPrefix("200") {
            answer = try await Self.ask(stage, service, "/readyz?strict")
        }
        #expect(answer.hasPrefix("503 {\"ready\":false,\"reasons\":[\"room lobby: "))
        #expect(try await Self.ask(stage, service, "/readyz").hasPrefix("200"))
        service.shutdown()
        await service.waitUntilStopped()
    }

    @Test("a room that is not required is no reason, a failed one is")
    func requiredAndFailed() async throws {
        let stage = try await HTTPStage()
        let studio = try await StudioDriver.start(port: 0)
        let optional = try await Self.start(backend: stage.port, "required = false")
        #expect(try await Self.ask(stage, optional, "/readyz?strict") == "200 {\"ready\":true,\"reasons\":[]}\n")
        optional.shutdown()
        await optional.waitUntilStopped()

        let service = try await Self.start(backend: studio.port, "give_up_after = \"1ms\"")
        var answer = ""
        for _ in 0..<10_000 where !answer.hasPrefix("200") {
            answer = try await Self.ask(stage, service, "/readyz?strict")
        }
        #expect(answer.hasPrefix("200"))
        studio.stop()
        studio.waitUntilStopped()
        for _ in 0..<10_000 where !answer.contains("failed") {
            answer = try await Self.ask(stage, service, "/readyz")
        }
        #expect(answer.hasPrefix("503 {\"ready\":false,\"reasons\":[\"room lobby: failed, "))
        service.shutdown()
        await service.waitUntilStopped()
    }

    @Test("a bridge that never reached its backend lives and is not ready")
    func neverUp() async throws {
        let stage = try await HTTPStage()
        // Somebody listens there, who speaks HTTP and no WebSocket.
        let service = try await Self.start(backend: stage.port)
        #expect(
            try await Self.ask(stage, service, "/readyz").hasPrefix("503 {\"ready\":false,\"reasons\":[\"room lobby: "))
        #expect(try await Self.ask(stage, service, "/healthz") == "200 ok\n")
        service.shutdown()
        await service.waitUntilStopped()
    }
}

@Suite("HTTP in the configuration")
struct HTTPConfigurationTests {
    static let cases = [
        ProblemCase("no bind", "[[http]]\nserve = [\"health\"]", "chatbridge.toml:2:1: this HTTP listener has no bind"),
        ProblemCase(
            "an unknown scheme", "[[http]]\nbind = \"ws://127.0.0.1:1\"",
            "chatbridge.toml:3:8: unknown scheme \"ws://\"; known schemes: http://, https://, http+insecure://"),
        ProblemCase(
            "no scheme", "[[http]]\nbind = \"127.0.0.1:1\"",
            "chatbridge.toml:3:8: an HTTP listener is written as SCHEME://HOST:PORT; known schemes: http://, "
                + "https://, http+insecure://"),
        ProblemCase(
            "plain text beyond loopback", "[[http]]\nbind = \"http://0.0.0.0:1\"",
            "chatbridge.toml:3:8: plain text beyond loopback must say so: write \"http+insecure://0.0.0.0:1\" "
                + "(or bind 127.0.0.1)"),
        ProblemCase(
            "an unknown service", "[[http]]\nbind = \"http://127.0.0.1\"\nserve = [\"healh\"]",
            "chatbridge.toml:4:10: \"healh\" is not served (did you mean \"health\"?); this version has: health, media, "
                + "metrics, status, hooks"),
        ProblemCase(
            "metrics for anybody", "[[http]]\nbind = \"http+insecure://0.0.0.0\"\nserve = [\"health\", \"metrics\"]",
            "chatbridge.toml:4:9: metrics beyond loopback needs a token: write token_file (or bind 127.0.0.1)"),
        ProblemCase(
            "a token for nothing", "[[http]]\nbind = \"http://127.0.0.1\"\ntoken = \"0123456789abcdef\"",
            "chatbridge.toml:4:9: a token is for metrics and status, which are not served here"),
        ProblemCase(
            "a token to guess", "[[http]]\nbind = \"http://127.0.0.1\"\nserve = [\"status\"]\ntoken = \"secret\"",
            "chatbridge.toml:5:9: a token of fewer than 16 characters can be guessed"),
        ProblemCase(
            "nothing served", "[[http]]\nbind = \"http://127.0.0.1\"\nserve = []",
            "chatbridge.toml:4:9: nothing is served here; leave the table out instead"),
        ProblemCase(
            "a host with a port", "[[http]]\nbind = \"http://127.0.0.1\"\nhosts = [\"a:80\"]",
            "chatbridge.toml:4:10: \"a:80\" is not a host name or an address (without port)"),
        ProblemCase(
            "an address that IRC has",
            "[[http]]\nbind = \"http://127.0.0.1:1\"\n[[listeners]]\nbind = \"irc://127.0.0.1:1\"",
            "chatbridge.toml:3:8: 127.0.0.1:1 is bound twice (first at chatbridge.toml:5:8)"),
        ProblemCase(
            "trust in a socket file",
            "[[http]]\nbind = \"http://127.0.0.1\"\ntrusted_proxies = [\"10.0.0.5\", \"unix\"]",
            "chatbridge.toml:4:19: HTTP is not served on socket files: \"unix\" is nobody here"),
        ProblemCase(
            "media without an address", "[[http]]\nbind = \"http://127.0.0.1\"\nserve = [\"media\"]",
            "chatbridge.toml:4:9: media are served under media.public_url, which is empty"),
        ProblemCase(
            "media that nobody serves",
            "[media]\npublic_url = \"https://a.example\"\n[[http]]\nbind = \"http://127.0.0.1\"",
            "chatbridge.toml:3:14: no [[http]] listener serves media: give one serve = [\"media\"]"),
        ProblemCase(
            "media by another way", "[media]\npublic_url = \"ws://a.example\"",
            "chatbridge.toml:3:14: links begin with https:// or http://"),
        ProblemCase(
            "media with a query", "[media]\npublic_url = \"https://a.example/?a\"",
            "chatbridge.toml:3:14: links have a path of their own behind this, so it has no query"),
        ProblemCase(
            "a misspelt key", "[media]\npublic_ulr = \"\"",
            "chatbridge.toml:3:1: unknown key \"public_ulr\" (did you mean \"public_url\"?)"),
        ProblemCase(
            "links for a moment", "[media]\nlink_lifetime = \"5s\"",
            "chatbridge.toml:3:17: expected a duration of at least 1m, such as \"500ms\", \"30s\", \"5m\", "
                + "\"12h\" or \"7d\", found \"5s\""),
        ProblemCase(
            "an address twice", "[[http]]\nbind = \"http://[::1]:1\"\n[[http]]\nbind = \"http://[::1]:1\"",
            "chatbridge.toml:5:8: [::1]:1 is bound twice (first at chatbridge.toml:3:8)"),
    ]

    @Test("a problem is told with its place", arguments: cases)
    func problem(_ row: ProblemCase) { #expect(problems(withRoom(row.toml)) == [row.expected]) }

    @Test("media are taken, printed and read again")
    func media() throws {
        let loaded = try load(
            withRoom(
                "[[http]]\nbind = \"http://127.0.0.1\"\nserve = [\"media\", \"health\"]\n[media]\n"
                    + "public_url = \"https://chat.example:8443/files/\"\nmax_upload = \"1MiB\"\nretention = \"off\""))
        #expect(loaded.media.publicURL?.description == "https://chat.example:8443/files/")
        #expect(loaded.media.maxUploadBytes == 1024 * 1024 && loaded.media.retention == nil)
        #expect(loaded.http.map(\.serve) == [[.media, .health]])
        #expect(try load(ConfigurationPrinter.text(loaded)) == loaded)
    }

    @Test("a list with a brace in it is a problem, never a crash")
    func braceInList() {
        #expect(problems(withRoom("[[http]]\nbind = \"http://127.0.0.1\"\nserve = [}")).count == 1)
    }

    @Test("what is written is taken, printed and read again")
    func taken() throws {
        let loaded = try load(
            withRoom(
                "[[http]]\nbind = \"http+insecure://0.0.0.0\"\nhosts = [\"Chat.example.org\", \"::1\"]\n"
                    + "trusted_proxies = [\"10.0.0.5\", \"fd00::/64\"]\n"
                    + "[[http]]\nbind = \"http://localhost:0\"\nserve = [\"health\"]"))
        #expect(loaded.http.map(\.bind.description) == ["http+insecure://0.0.0.0:9667", "http://localhost:0"])
        #expect(loaded.http.first?.hosts == ["chat.example.org", "::1"])
        #expect(loaded.http.map(\.serve) == [[.health], [.health]])
        #expect(loaded.http.map { $0.proxies.named.map(\.description) } == [["10.0.0.5", "fd00::/64"], []])
        #expect(try load(ConfigurationPrinter.text(loaded)) == loaded)
    }

    @Test("the environment alone opens a listener")
    func environment() throws {
        let loaded = try load(
            withRoom(""), variables: ["CHATBRIDGE__HTTP__0__BIND": "http+insecure://0.0.0.0:9667"])
        #expect(loaded.http.map(\.bind.description) == ["http+insecure://0.0.0.0:9667"])
    }
}
