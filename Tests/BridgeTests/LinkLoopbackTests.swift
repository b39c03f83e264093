import BridgeCore
import BridgeTestSupport
import Glibc
import IRCServer
import Rooms
import Synchronization
import Testing
import Transport
import WireBytes

@testable import ChatBridge
@testable import Configuration

/// A backend and a proxy in one: takes connections, tells what it was sent, and answers what the test wants.
private final class ScriptedPeer: TransportDelegate {
    /// What a connection has sent, from its beginning.
    private(set) var received: [ConnectionID: [UInt8]] = [:]
    /// The answer to what a connection has sent so far; empty: none yet.
    private let answer: (String) -> String
    private var told: Set<ConnectionID> = []
    private let heard: (String) -> Void

    init(answer: @escaping (String) -> String, heard: @escaping (String) -> Void) {
        self.answer = answer
        self.heard = heard
    }

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {
        received[id] = []
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        received[id, default: []] += bytes
        let text = String(decoding: received[id] ?? [], as: UTF8.self)
        guard text.hasSuffix("\r\n\r\n") else { return }
        heard(text)
        let said = answer(text)
        if !said.isEmpty { transport.send(id, ByteSlice(said)) }
        if said.contains(" 40") { transport.closeAfterFlush(id, linger: .seconds(1)) }
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {}
}

/// A peer on a loop of its own, and everything it heard.
private struct PeerStage: Sendable {
    let loop: NetworkLoop
    let address: SocketAddress
    let heard: AsyncStream<String>

    static func start(
        _ options: ListenOptions = ListenOptions(host: "127.0.0.1", port: 0),
        answer: @escaping @Sendable (String) -> String
    ) async throws -> PeerStage {
        let loop = try NetworkLoop.start(name: "peer")
        let (heard, tell) = AsyncStream<String>.makeStream()
        let address = try await loop.run { transport throws(TransportError) in
            transport.attach(ScriptedPeer(answer: answer, heard: { tell.yield($0) }))
            return try transport.listen(options).1
        }
        return PeerStage(loop: loop, address: address, heard: heard)
    }

    func stop() {
        loop.stop()
        loop.waitUntilStopped()
    }
}

/// Everything that was logged.
final class CollectedLog: LogSink, Sendable {
    private let lines = Mutex<[String]>([])

    func write(
        _ level: LogLevel, _ subsystem: LogSubsystem, _ event: String, _ text: String,
        _ metadata: [(key: String, value: LogValue)]
    ) {
        lines.withLock { $0.append("\(level) \(subsystem) \(event) \(text) \(metadata)") }
    }

    var text: String { lines.withLock { $0.joined(separator: "\n") } }
}

@Suite("Links over loopback", .timeLimit(.minutes(1)))
struct LinkLoopbackTests {
    /// Runs a bridge with `toml` until `body` is done. Everything it notes, at every level, goes to the log.
    private func withBridge(
        _ toml: String, files: [String: String] = [:], variables: [String: String] = [:],
        _ body: (BridgeService, CollectedLog) async throws -> Void
    ) async throws {
        let log = CollectedLog()
        var machine = files
        machine["chatbridge.toml"] =
            "[server]\ninstance_id = \"test\"\ndrain = \"0s\"\n[storage]\nurl = \"memory:\"\n[admin]\nsocket = \"\"\n"
            + toml
        let environment = testEnvironment(machine, variables: variables)
        let loaded = try ConfigurationLoader.load(ConfigurationRequest(), from: environment).configuration
        var everything = loaded.log
        everything.level = .trace
        everything.messages = true
        let notes = NoteLog(sink: log, configuration: everything)
        let service = try await BridgeService.start(
            loaded, instanceID: "test", environment: environment,
            log: Logger(subsystem: .main, configuration: everything, sink: log), note: { notes($0) })
        do {
            try await body(service, log)
        } catch {
            Issue.record("\(error)")
        }
        service.shutdown()
        await service.waitUntilStopped()
        #expect(!log.text.contains("hunter2"), "\(log.text)")
        #expect(!log.text.contains("aHVudGVyMg"), "a secret in base64")
        #expect(!ConfigurationPrinter.text(loaded).contains("hunter2"))
    }

    private static func folder() throws -> String {
        var template = Array("/tmp/chatbridge-test-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    @Test(
        "a room behind a proxy asks the proxy for a tunnel, and the backend behind it for a WebSocket",
        arguments: ["rooms", "backends", "room_defaults"])
    func throughProxy(place: String) async throws {
        let peer = try await PeerStage.start { text in
            text.hasPrefix("CONNECT ") && !text.contains("GET ") ? "HTTP/1.1 200 OK\r\n\r\n" : ""
        }
        defer { peer.stop() }
        let toml = Self.room(
            url: "ws://chat.example:8080/lobby", "proxy = \"http://user:hunter2@\(peer.address)\"", in: place)
        try await withBridge(toml) { _, _ in
            var heard = peer.heard.makeAsyncIterator()
            let connect = try #require(await heard.next())
            #expect(connect.hasPrefix("CONNECT chat.example:8080 HTTP/1.1\r\nHost: chat.example:8080\r\n"))
            #expect(connect.contains("\r\nProxy-Authorization: Basic dXNlcjpodW50ZXIy\r\n"))
            let both = try #require(await heard.next())
            let request = both.dropFirst(connect.count)
            #expect(request.hasPrefix("GET /lobby HTTP/1.1\r\nHost: chat.example:8080\r\n"))
            #expect(!request.contains("Proxy-Authorization"))
        }
    }

    /// A room with `keys` in its own table, in that of its backend, or in that of all rooms.
    private static func room(url: String, _ keys: String, in place: String) -> String {
        let room = "[[listeners]]\nbind = \"irc://127.0.0.1:0\"\n[[rooms]]\nname = \"lobby\"\n"
        let url = "url = \"\(url)\"\n"
        return switch place {
        case "rooms": room + url + keys
        case "backends": room + "backend = \"main\"\n[backends.main]\n" + url + keys
        default: room + url + "[room_defaults]\n" + keys
        }
    }

    /// What of `auth` reaches the backend: keys, and a line of the request.
    private static let shownCredentials: [(keys: String, line: String)] = [
        ("type = \"bearer\", token = \"hunter2\"", "Authorization: Bearer hunter2"),
        ("type = \"bearer\", token_file = \"/run/token\"", "Authorization: Bearer hunter2"),
        ("type = \"bearer\", token_credential = \"token\"", "Authorization: Bearer hunter2"),
        ("type = \"query\", token = \"hunter2\", param = \"key\"", "GET /lobby?key=hunter2 HTTP/1.1"),
        (
            "type = \"header\", token = \"hunter2\", name = \"X-Key\", format = \"k={token};\"", "X-Key: k=hunter2;"
        ),
        // Source: RFC 7617 §2: base64 of `user:hunter2`.
        ("type = \"basic\", user = \"user\", password = \"hunter2\"", "Authorization: Basic dXNlcjpodW50ZXIy"),
        (
            "type = \"basic\", user = \"user\", password_file = \"/run/token\"",
            "Authorization: Basic dXNlcjpodW50ZXIy"
        ),
        (
            "type = \"basic\", user = \"user\", password_credential = \"token\"",
            "Authorization: Basic dXNlcjpodW50ZXIy"
        ),
    ]

    @Test(
        "each key of auth reaches the backend, wherever it stands", arguments: shownCredentials.indices,
        ["rooms", "backends", "room_defaults"])
    func credentials(index: Int, place: String) async throws {
        let peer = try await PeerStage.start { _ in "" }
        defer { peer.stop() }
        let (keys, line) = Self.shownCredentials[index]
        try await withBridge(
            Self.room(url: "ws://\(peer.address)/lobby", "auth = { \(keys) }\n", in: place),
            files: ["/run/token": "hunter2\n", "/run/c/token": "hunter2"],
            variables: ["CREDENTIALS_DIRECTORY": "/run/c"]
        ) { _, _ in
            var heard = peer.heard.makeAsyncIterator()
            let request = try #require(await heard.next())
            #expect(request.split(separator: "\r\n").contains { $0 == line }, "\(request)")
        }
    }

    @Test(
        "a token goes to the backend, again after a refusal, and to no log", arguments: ["bearer", "query", "header"])
    func refusedToken(type: String) async throws {
        let peer = try await PeerStage.start { _ in
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n"
        }
        defer { peer.stop() }
        let toml = """
            [[listeners]]
            bind = "irc://127.0.0.1:0"
            [[rooms]]
            name = "lobby"
            url = "ws://\(peer.address)/lobby?v=1"
            auth = { type = "\(type)", token_file = "/run/token" }
            """
        try await withBridge(toml, files: ["/run/token": "hunter2\n"]) { _, _ in
            var heard = peer.heard.makeAsyncIterator()
            for _ in 0..<2 {
                let request = try #require(await heard.next())
                switch type {
                case "bearer": #expect(request.contains("\r\nAuthorization: Bearer hunter2\r\n"))
                case "header": #expect(request.contains("\r\nAuthorization: hunter2\r\n"))
                default: #expect(request.hasPrefix("GET /lobby?v=1&access_token=hunter2 HTTP/1.1\r\n"))
                }
            }
        }
    }

    @Test("a redirect is followed to the same host with the token, and its query is in no log")
    func redirected() async throws {
        let peer = try await PeerStage.start { text in
            text.hasPrefix("GET /new") ? "" : "HTTP/1.1 307 Moved\r\nLocation: /new?t=hunter2\r\n\r\n"
        }
        defer { peer.stop() }
        let toml = """
            [[listeners]]
            bind = "irc://127.0.0.1:0"
            [[rooms]]
            name = "lobby"
            url = "ws://\(peer.address)/lobby"
            auth = { type = "bearer", token = "hunter2" }
            """
        try await withBridge(toml) { _, _ in
            var heard = peer.heard.makeAsyncIterator()
            _ = await heard.next()
            let second = try #require(await heard.next())
            #expect(second.hasPrefix("GET /new?t=hunter2 HTTP/1.1\r\n"))
            #expect(second.contains("\r\nAuthorization: Bearer hunter2\r\n"))
        }
    }

    @Test("a backend and a listener may be socket files; the listener's has its mode")
    func socketFiles() async throws {
        let folder = try Self.folder()
        defer { rmdir(folder) }
        let peer = try await PeerStage.start(ListenOptions(.unix(path: folder + "/up.sock"))) { _ in "" }
        defer { peer.stop() }
        let toml = """
            [[listeners]]
            bind = "irc+unix://\(folder)/irc.sock"
            mode = "0606"
            [limits]
            max_clients_per_ip = 1
            [[rooms]]
            name = "lobby"
            url = "ws+unix://\(folder)/up.sock:/rooms/{room}"
            """
        try await withBridge(toml) { service, _ in
            #expect(service.addresses == [.unix(path: folder + "/irc.sock")])
            var status = stat()
            #expect(lstat(folder + "/irc.sock", &status) == 0)
            #expect(status.st_mode & 0o777 == 0o606)
            var heard = peer.heard.makeAsyncIterator()
            let request = try #require(await heard.next())
            #expect(request.hasPrefix("GET /rooms/lobby HTTP/1.1\r\nHost: localhost\r\n"))
            // Two at once: the limit for one address is not for this machine.
            for nick in ["ann", "bob"] {
                let client = try UnixClient(path: folder + "/irc.sock")
                client.send("NICK \(nick)\r\nUSER \(nick) 0 * :\(nick)\r\nPING barrier\r\n")
                let welcome = client.read(until: "PONG")
                #expect(welcome.contains(" 001 \(nick) "))
                clients.withLock { $0.append(client) }
            }
        }
        #expect(access(folder + "/irc.sock", F_OK) != 0)
    }

    /// Keeps the clients of a test connected until its end.
    private let clients = ClientShelf()

    private final class ClientShelf: Sendable {
        private let kept = Mutex<[UnixClient]>([])
        func withLock(_ body: (inout [UnixClient]) -> Void) { kept.withLock { body(&$0) } }
    }
}

/// A blocking client of a socket file.
private final class UnixClient: Sendable {
    private let descriptor: Int32

    init(path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { room in
            for (index, byte) in path.utf8.prefix(room.count - 1).enumerated() { room[index] = byte }
        }
        let descriptor = descriptor
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(result == 0)
    }

    deinit { close(descriptor) }

    func send(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }

    /// What the other side says until it says `mark` or closes.
    func read(until mark: String) -> String {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            all += buffer.prefix(count)
            if String(decoding: all, as: UTF8.self).contains(mark) { break }
        }
        return String(decoding: all, as: UTF8.self)
    }
}
