import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Foundation
import HTTPProtocol
import JSONText
import Testing
import Threads
import Upstream
import WireBytes

@testable import BridgeCore
@testable import ChatBridge
@testable import Configuration
@testable import IRCServer
@testable import Rooms
@testable import Transport

/// What accounts at backends ask of the machine: requests, files, and the whole with a real loop.
@Suite("Accounts on a real machine")
struct BackendDriverTests {
    // MARK: - Requests

    private func order(
        _ request: BackendRequest, _ authorization: UpstreamCredentials = UpstreamCredentials()
    ) -> BackendCallRequest {
        BackendCallRequest(
            backend: BackendID(index: 0), request: request, authorization: authorization, timeout: .seconds(9),
            maxAnswerBytes: 77)
    }

    private func place(_ base: String?) throws -> BackendPlace {
        BackendPlace(
            base: try base.map { try HTTPURL(parsing: $0) },
            loginURLs: [try HTTPURL(parsing: "https://login.example/l")], headers: [("X-Team", "blue")], userAgent: "me"
        )
    }

    @Test("what a call shows about itself stands alone: of two, servers take either")
    func oneField() throws {
        let authorization = UpstreamCredentials(headers: [.init(name: "x-team", value: "red")])
        var random = SystemRandomNumberGenerator()
        let request = try place("https://h").request(
            order(BackendRequest(.get, "/a"), authorization), using: &random)
        #expect(request.headers.all("X-Team") == ["red"])
    }

    @Test("a call that judges a client's token carries that alone")
    func clientToken() throws {
        var place = try place("https://h")
        place.tls = TLSClientSettings()
        place.tls?.identity = TLSIdentity(certificate: .file("/c"), key: .file("/k"))
        place.tls?.pins = [[1]]
        place.headers.append(("Cookie", "session=ours"))
        var asked = order(
            BackendRequest(.get, "/me"),
            UpstreamCredentials(headers: [.init(name: "Authorization", value: "Bearer theirs")]))
        var random = SystemRandomNumberGenerator()
        let ours = try place.request(asked, using: &random)
        #expect(ours.tls?.identity != nil && ours.headers.first("Cookie") == "session=ours")
        asked.carriesClientTokenOnly = true
        let theirs = try place.request(asked, using: &random)
        #expect(
            theirs.headers.fields.map { "\($0.name): \($0.value)" } == [
                "Accept: application/json", "User-Agent: me", "Authorization: Bearer theirs",
            ])
        #expect(theirs.tls?.identity == nil && theirs.tls?.pins == [[1]])
    }

    struct TargetRow: CustomTestStringConvertible {
        var testDescription: String
        var base: String?
        var target: String
        var isAuthorized = true
        /// The URL, or what is wrong.
        var expected: String
    }

    @Test(
        "a call goes to the backend's own origin or nowhere",
        arguments: [
            TargetRow(testDescription: "a path", base: "http://h:81", target: "/a?b=c", expected: "http://h:81/a?b=c"),
            TargetRow(
                testDescription: "below a path", base: "https://h/api/", target: "/a", expected: "https://h/api/a"),
            TargetRow(
                testDescription: "a whole URL", base: "https://h", target: "https://h:443/x", expected: "https://h/x"),
            TargetRow(
                testDescription: "another host", base: "https://h", target: "https://i/x",
                expected: "https://i is not the backend's own server"),
            TargetRow(
                testDescription: "another port", base: "https://h", target: "https://h:1/x",
                expected: "https://h:1 is not the backend's own server"),
            TargetRow(
                testDescription: "without encryption", base: "https://h", target: "http://h/x",
                expected: "http://h is not the backend's own server"),
            TargetRow(
                testDescription: "the login's server, without a token", base: "https://h",
                target: "https://login.example/x", isAuthorized: false, expected: "https://login.example/x"),
            TargetRow(
                testDescription: "the login's server, with a token", base: "https://h",
                target: "https://login.example/x", expected: "https://login.example is not the backend's own server"),
            TargetRow(
                testDescription: "a second host in the path", base: "https://h", target: "//i/x",
                expected: "https://h//i/x"),
            TargetRow(
                testDescription: "upwards", base: "https://h/api", target: "/rooms/../admin",
                expected: "the path of a call leaves its place"),
            TargetRow(
                testDescription: "upwards, encoded", base: "https://h/api", target: "/rooms/%2E%2e",
                expected: "the path of a call leaves its place"),
            TargetRow(
                testDescription: "a line break", base: "https://h", target: "/a\r\nX: y",
                expected: "a call has no usable URL: "
                    + "the URL has a blank, a control or a non-ASCII character; write it percent-encoded"),
            TargetRow(
                testDescription: "no base", base: nil, target: "/a", expected: "the backend has no http_base"),
        ])
    func targets(row: TargetRow) throws {
        var random = SeededGenerator(seed: 1)
        let request = BackendRequest(.get, row.target, isAuthorized: row.isAuthorized)
        let place = try place(row.base)
        do throws(BackendCallFailure) {
            let made = try place.request(order(request), using: &random)
            #expect("\(made.url.scheme)://\(made.url.hostHeader)\(made.url.pathAndQuery)" == row.expected)
            #expect(made.timeout == .seconds(9) && made.maxBodyBytes == 77)
        } catch {
            #expect(error.sentence == row.expected)
        }
    }

    @Test("a request has what it needs, and nothing that breaks a head")
    func heads() throws {
        var random = SeededGenerator(seed: 1)
        let place = try place("https://h")
        let token = UpstreamCredentials(
            headers: [.init(name: "Authorization", value: "Bearer t")], query: [.init(name: "k", value: "a b")])
        let made = try place.request(
            order(BackendRequest(.post, "/x", body: .json([123, 125])), token), using: &random)
        #expect(made.url.pathAndQuery == "/x?k=a%20b")
        #expect(
            made.headers.fields.map { "\($0.name): \($0.value)" } == [
                "Accept: application/json", "User-Agent: me", "X-Team: blue", "Authorization: Bearer t",
                "Content-Type: application/json",
            ])
        #expect(made.body == [123, 125] && !made.followsRedirects)
        let elsewhere = try place.request(
            order(BackendRequest(.post, "https://login.example/l", isAuthorized: false)), using: &random)
        #expect(elsewhere.headers.first("X-Team") == nil, "the operator's fields are for the backend")
        let broken = UpstreamCredentials(headers: [.init(name: "Authorization", value: "a\r\nX: secret")])
        #expect(
            throws: BackendCallFailure(sentence: "Authorization has a character that must not stand in an HTTP head")
        ) {
            try place.request(order(BackendRequest(.get, "/x"), broken), using: &random)
        }
        let file = UploadedFile(name: "a\".png", mime: "image/png", bytes: [1, 2, 3])
        let form = try place.request(
            order(
                BackendRequest(.post, "/f", body: .multipart(fields: [("a", "b")], fileField: "file", file: file))),
            using: &random)
        let text = String(decoding: form.body ?? [], as: UTF8.self)
        #expect(form.headers.first("Content-Type")?.hasPrefix("multipart/form-data; boundary=") == true)
        #expect(text.contains("name=\"a\"\r\n\r\nb\r\n"))
        #expect(
            text.contains("name=\"file\"; filename=\"a%22.png\"\r\nContent-Type: image/png\r\n\r\n\u{1}\u{2}\u{3}\r\n"))
    }

    // MARK: - Files

    private static func scratch() -> String {
        FileManager.default.temporaryDirectory.path + "/chatbridge-accounts-\(UInt64.random(in: 0 ... .max))"
    }

    private static func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0
    }

    @Test("tokens are kept in a file for the owner alone, and read as they were")
    func store() throws {
        let directory = Self.scratch()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let store = TokenStore(stateDirectory: directory)
        #expect(store.read(backend: "main") == nil)
        for number in 0..<2 {
            let tokens = StoredTokens(
                access: "a\(number)\"\\\u{0}", refresh: number == 0 ? nil : "r",
                expiresAt: number == 0 ? nil : ChatTimestamp(milliseconds: 5), owner: "u h")
            try store.save(tokens, backend: "main")
            #expect(store.read(backend: "main") == tokens)
        }
        let files = try FileManager.default.contentsOfDirectory(atPath: directory + "/backends")
        #expect(files == ["main.tokens.json"])
        #expect(try Self.mode(directory + "/backends/main.tokens.json") == 0o600)
        #expect(try Self.mode(directory + "/backends") == 0o700)
    }

    @Test(
        "what cannot be used is not used",
        arguments: ["", "{", "[]", "{\"version\":2,\"owner\":\"o\",\"access_token\":\"a\"}"])
    func damaged(text: String) throws {
        let directory = Self.scratch()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let store = TokenStore(stateDirectory: directory)
        try store.save(StoredTokens(access: "a", owner: "o"), backend: "main")
        try Data(text.utf8).write(to: URL(fileURLWithPath: directory + "/backends/main.tokens.json"))
        #expect(store.read(backend: "main") == nil)
        for name in ["", "../x", "a/b", "a.b"] {
            #expect(store.path(name) == nil)
            #expect(throws: UpstreamCredentialsFailure.self) {
                try store.save(StoredTokens(access: "secret", owner: "o"), backend: name)
            }
        }
    }

    @Test("a directory that cannot be written is a sentence without contents")
    func unwritable() throws {
        let file = Self.scratch()
        try Data().write(to: URL(fileURLWithPath: file))
        defer { try? FileManager.default.removeItem(atPath: file) }
        do throws(UpstreamCredentialsFailure) {
            try TokenStore(stateDirectory: file).save(StoredTokens(access: "secret", owner: "o"), backend: "main")
            Issue.record("a file served as a directory")
        } catch {
            #expect(error.sentence.hasPrefix(file + "/backends: ") && !error.sentence.contains("secret"))
        }
    }

    // MARK: - The whole

    @Test("a service logs in, keeps tokens, renews them, and shows no secret to anybody", .timeLimit(.minutes(1)))
    func service() async throws {
        let directory = Self.scratch()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let server = LoginServer()
        let stage = try await HTTPStage(routes: { server.routes })
        let told = Told()
        let toml = """
            [server]
            state_dir = "\(directory)"
            [log]
            level = "trace"
            messages = true
            [storage]
            url = "memory:"
            [[listeners]]
            bind = "irc://127.0.0.1:0"
            [[rooms]]
            name = "shop"
            url = "ws://127.0.0.1:\(stage.port)/socket"
            [rooms.auth]
            type = "login"
            user = "bridge"
            password = "planted-password"
            login_url = "http://127.0.0.1:\(stage.port)/login"
            login_body = { name = "{user}", word = "{password}" }
            refresh_url = "/refresh"
            refresh_body = { r = "{refresh_token}" }
            access_token_at = "/t/access"
            refresh_token_at = "/t/refresh"
            expires_in_at = "/t/ms"
            expires_in_unit = "ms"
            """
        let configuration = try load(toml + "\n[admin]\nsocket = \"\"")
        let log = Logger(subsystem: .main, configuration: configuration.log, sink: told)
        let notes = NoteLog(sink: told, configuration: configuration.log)
        let service = try await BridgeService.start(
            configuration, instanceID: "t", environment: testEnvironment(), log: log, note: { notes($0) })
        // The handshakes that the server refuses, each with the token that it shows.
        var shown: [String] = []
        for await token in server.tokens {
            shown.append(token)
            // The next try is in 15 minutes, whatever there is to show.
            if shown.count == 2 { break }
        }
        #expect(shown.first == "Bearer planted-access-1")
        #expect(shown.contains("Bearer planted-access-2"), "\(shown)")
        let path = directory + "/backends/shop.tokens.json"
        #expect(try Self.mode(path) == 0o600)
        #expect(try String(contentsOfFile: path, encoding: .utf8).contains("planted-refresh-"))

        let port = try #require(service.addresses.first?.port)
        let lines = await stage.chat(port: port, "NICK n\r\nUSER u 0 * :r\r\nJOIN #shop\r\nQUIT\r\n")
        #expect(lines.contains("JOIN #shop") || lines.contains(" 353 "), "\(lines)")
        service.shutdown()
        await service.waitUntilStopped()

        let everything = told.text + lines + ConfigurationPrinter.text(configuration) + "\(configuration)"
        var dumped = ""
        dump(configuration, to: &dumped)
        dump(try BridgeSettings(configuration, instanceID: "t").backends, to: &dumped)
        #expect(!(everything + dumped).contains("planted-"), "\(told.text)")
        #expect(told.text.contains("backend-tokens-renewed"))
        #expect(!CommandLine.arguments.contains { $0.contains("planted-") })
    }
}

/// Everything that a service writes to its log.
private final class Told: LogSink {
    private let lines = Locked([String]())

    var text: String { lines.withLock { $0.joined(separator: "\n") } }

    func write(
        _ level: LogLevel, _ subsystem: LogSubsystem, _ event: String, _ message: String,
        _ metadata: [(key: String, value: LogValue)]
    ) {
        lines.withLock { $0.append("\(level) \(subsystem) \(event) \(message) \(metadata)") }
    }
}

/// Hands out tokens, and refuses every handshake with words that repeat what it was shown.
private final class LoginServer: Sendable {
    private struct State {
        var count = 0
    }

    private let state = Locked(State())
    let tokens: AsyncStream<String>
    private let told: AsyncStream<String>.Continuation

    init() { (tokens, told) = AsyncStream.makeStream() }

    private func issue(_ exchange: HTTPExchange, _ transport: Transport) {
        let number = state.withLock { state in
            state.count += 1
            return state.count
        }
        exchange.respond(
            200,
            "{\"t\":{\"access\":\"planted-access-\(number)\",\"refresh\":\"planted-refresh-\(number)\",\"ms\":600000}}",
            transport: transport)
    }

    var routes: [HTTPRoute] {
        [
            HTTPRoute(method: "POST", path: "/login", maxBodyBytes: 1000) { exchange, transport in
                let body = String(decoding: exchange.body, as: UTF8.self)
                guard body == "{\"name\":\"bridge\",\"word\":\"planted-password\"}" else {
                    return exchange.respond(401, body, transport: transport)
                }
                self.issue(exchange, transport)
            },
            HTTPRoute(method: "POST", path: "/refresh", maxBodyBytes: 1000) { exchange, transport in
                self.issue(exchange, transport)
            },
            HTTPRoute(method: "GET", path: "/socket") { exchange, transport in
                let token = exchange.head.headers.first("Authorization") ?? ""
                self.told.yield(token)
                exchange.respond(403, "no \(token)", transport: transport)
            },
        ]
    }
}

extension HTTPStage {
    /// Sends `text` to another server on this machine and returns everything until it closes.
    fileprivate func chat(port: Int, _ text: String) async -> String {
        await withCheckedContinuation { continuation in
            loop.enqueue { transport in
                guard let house = transport.delegate as? HTTPTestHouse else {
                    return continuation.resume(returning: "")
                }
                house.talk(text, port: port, transport) { continuation.resume(returning: $0) }
            }
        }
    }
}
