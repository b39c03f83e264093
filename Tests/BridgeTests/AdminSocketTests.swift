import BridgeTestSupport
import ChatModel
import Dispatch
import Foundation
import Glibc
import JSONText
import Store
import Studio
import Testing
import Threads
import Transport
import Upstream

@testable import BridgeCore
@testable import ChatBridge
@testable import Configuration
@testable import Rooms

/// A bridge in front of the studio, with its admin socket in a folder of its own.
private final class AdminStage: @unchecked Sendable {
    let folder: StoreDriverTests.Folder
    let studio: StudioDriver
    let service: BridgeService
    let log = CollectedLog()
    var path: String { folder.path + "/admin.sock" }

    /// - Parameter accounts: more of the configuration.
    init(
        storage: String = "memory:", folder: StoreDriverTests.Folder? = nil, mode: String = "0600",
        accounts: String = "", reread: ConfigurationReload.Reading? = nil
    ) async throws {
        let own = try folder ?? StoreDriverTests.Folder()
        self.folder = own
        studio = try await StudioDriver.start(port: 0)
        let configuration = try load(
            """
            [server]
            state_dir = "\(own.path)"
            [[rooms]]
            name = "lobby"
            url = "ws://127.0.0.1:\(studio.port)/lobby"
            [storage]
            url = "\(storage)"
            [[listeners]]
            bind = "irc://127.0.0.1:0"
            [admin]
            mode = "\(mode)"
            \(accounts)
            """)
        let notes = NoteLog(sink: log, configuration: configuration.log)
        service = try await BridgeService.start(
            configuration, instanceID: "test", environment: testEnvironment([:]),
            log: Logger(subsystem: .main, configuration: LogConfiguration(), sink: log), reread: reread
        ) { notes($0) }
    }

    func stop() async {
        service.shutdown()
        await service.waitUntilStopped()
        studio.stop()
        studio.waitUntilStopped()
    }

    /// Runs a blocking client beside the test's own threads.
    func talk<R: Sendable>(_ body: @escaping @Sendable (AdminClient) throws -> R) async throws -> R {
        let path = path
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try body(try AdminClient.connect([path])) })
            }
        }
    }

    func ask(_ request: AdminRequest, _ arguments: JSONValue.Member...) async throws -> (
        done: JSONValue, items: [JSONValue]
    ) {
        try await talk { client in
            var items: [JSONValue] = []
            let done = try client.ask(try AdminCall(request, arguments)) { items.append($0) }
            return (done, items)
        }
    }

    /// Asks until the answer is as wished; each question is a round trip.
    func ask(_ request: AdminRequest, _ arguments: JSONValue.Member..., until isThere: (JSONValue) -> Bool) async throws
    {
        var last: JSONValue?
        for _ in 0..<200_000 {
            let answer = try await talk { try $0.ask(try AdminCall(request, arguments)) }
            if isThere(answer) { return }
            last = answer
        }
        Issue.record("\(request) never answered as wished: \(String(describing: last))")
    }

    func beReady() async throws { try await ask(.ready) { $0["ready"]?.bool == true } }

    /// Whether the bridge makes lines for a watcher.
    func isWatched() async -> Bool {
        await service.loop.run { $0.adminServer?.service.bridge.context.tap != nil }
    }

    /// What a command writes, and its exit status.
    ///
    /// - Parameter answer: to a question; nil: there is no terminal.
    func run(_ command: LiveCommand, answer: Bool? = nil) async throws -> (text: String, status: Int32) {
        try await talk { client in
            var text = ""
            let screen = TextScreen()
            let commands = LiveCommands(
                screen: screen, output: { text += $0 }, errors: { text += $0 },
                confirms: answer.map { answer in
                    { question in
                        text += question + "\n"
                        return answer
                    }
                })
            let status = try commands.run(command, client)
            return (text, status)
        }
    }
}

private func member(_ key: String, _ text: String) -> JSONValue.Member { .init(key, .string(text)) }

@Suite("Admin socket")
struct AdminSocketTests {
    @Test("the socket is the owner's alone; status and readiness tell of the bridge, and the file goes with it")
    func status() async throws {
        let stage = try await AdminStage()
        let attributes = try FileManager.default.attributesOfItem(atPath: stage.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        try await stage.beReady()
        let status = try await stage.ask(.status).done
        #expect(status["instance"]?.string == "test")
        #expect(status["rooms"]?.array?.first?["state"]?.string == "up")
        let documented = try RepositoryFile.text("docs/ADMIN.md").split(separator: "\n").first {
            $0.hasPrefix("| `status` |")
        }
        for member in status.object ?? [] {
            #expect(documented?.contains("`\(member.key)`") == true, "\(member.key)")
        }
        let health = try await stage.run(.status(.ready))
        #expect(health.text.isEmpty && health.status == 0)
        let screen = try await stage.run(.status(.screen)).text
        #expect(screen.contains("1 of 1 rooms up  0 clients  ready\n") && screen.contains("\nlobby  up "))
        #expect(try await stage.run(.clients(json: false)).text == "There is no client.\n")
        #expect(try await stage.run(.clients(json: true)).text == "")
        let room = try JSONValue(parsing: Array(try await stage.run(.rooms(json: true)).text.utf8))
        #expect(room["name"]?.string == "lobby")
        await stage.stop()
        #expect(!FileManager.default.fileExists(atPath: stage.path))
    }

    @Test("what is said at the socket goes to the backend and into the history, and to those who watch both sides")
    func sayAndTail() async throws {
        let stage = try await AdminStage()
        try await stage.beReady()
        let flows = try await stage.talk { watcher in
            // Behind its answer the next request of the connection has begun.
            try watcher.send(try AdminCall(.ready))
            try watcher.send(try AdminCall(.tail, [member("room", "#lobby"), .init("raw", .bool(true))]))
            guard case .done = try watcher.next() else { return [String]() }
            let speaker = try AdminClient.connect([stage.path])
            _ = try speaker.ask(try AdminCall(.say, [member("room", "lobby"), member("text", "it works")]))
            var flows: [String] = []
            while flows.last != "irc-out *bridge it works" {
                guard case .item(let item) = try watcher.next() else { return flows }
                if item["flow"]?.string?.hasPrefix("frame") == true {
                    flows.append((item["flow"]?.string ?? "") + " " + (item["kind"]?.string ?? ""))
                } else {
                    flows.append(
                        ["flow", "who", "text"].compactMap { item[$0]?.string }.joined(separator: " "))
                }
            }
            return flows
        }
        #expect(
            flows == [
                "frame-out text", "backend-out chatbridge it works", "frame-in text", "backend-in chatbridge it works",
                "irc-out *bridge it works",
            ])
        let history = try await stage.ask(.history, member("room", "lobby"))
        #expect(history.items.map { $0["text"]?.string } == ["it works"])
        #expect(history.done["count"]?.integer == 1)
        let text = try await stage.run(.history(room: "lobby", since: .ago(.seconds(60)), limit: nil, json: false)).text
        #expect(text.hasSuffix("  *bridge  it works\n"))
        let later = LiveCommand.history(
            room: "lobby", since: .at(milliseconds: 4_000_000_000_000), limit: nil, json: false)
        #expect(try await stage.run(later).text == "")
        await stage.stop()
    }

    enum Limit: String, CaseIterable, Sendable {
        case connections, bytes, waitingAtOnce, waitingBehindStream

        var refusal: String {
            switch self {
            case .connections: "too many connections to the admin socket"
            case .bytes: "a request has at most 65536 bytes"
            case .waitingAtOnce, .waitingBehindStream: "at most 16 requests may wait"
            }
        }
    }

    @Test("one more than a limit is refused with a reason, and closed", arguments: Limit.allCases, [false, true])
    func limits(_ limit: Limit, isExceeded: Bool) async throws {
        let stage = try await AdminStage()
        let more = isExceeded ? 1 : 0
        var others: [AdminClient] = []
        if limit == .connections { others = try (0..<15 + more).map { _ in try AdminClient.connect([stage.path]) } }
        let visitor = try Visitor(.unix(path: stage.path))
        let request = "{\"request\":\"ready\"}\n"
        switch limit {
        case .connections: visitor.send(request)
        case .bytes: visitor.send(String(repeating: "x", count: 65_536 + more))
        case .waitingAtOnce: visitor.send(String(repeating: request, count: 16 + more))
        case .waitingBehindStream:
            // With the answer to the one before, it has begun.
            visitor.send(request + "{\"request\":\"tail\"}\n")
            #expect(visitor.line()?.hasPrefix("{\"done\":") == true)
            visitor.send(String(repeating: request, count: 16 + more))
        }
        visitor.endSending()
        let answer = visitor.everything()
        let refusal = "{\"error\":{\"code\":\"refused\",\"message\":\"\(limit.refusal)\"}}\n"
        #expect(answer.hasSuffix(refusal) == isExceeded, "\(answer.suffix(300))")
        #expect(answer.contains("\"refused\"") == isExceeded)
        withExtendedLifetime(others) {}
        await stage.stop()
    }

    @Test("a watcher that does not read misses lines and is told how many; without a watcher there are none")
    func slowWatcher() async throws {
        let stage = try await AdminStage()
        try await stage.beReady()
        #expect(await !stage.isWatched())
        let text = String(repeating: "x", count: 30_000)
        let (shown, missed) = try await stage.talk { watcher in
            try watcher.send(try AdminCall(.ready))
            try watcher.send(try AdminCall(.tail, [member("room", "lobby")]))
            _ = try watcher.next()
            let speaker = try AdminClient.connect([stage.path])
            func say(_ text: String) throws {
                _ = try speaker.ask(try AdminCall(.say, [member("room", "lobby"), member("text", text)]))
            }
            // Each makes three lines; the queues of the kernel and of the bridge are full with half of them.
            for _ in 0..<16 { try say(text) }
            let history = try AdminCall(.history, [member("room", "lobby"), .init("limit", .integer(100))])
            var stored: Int64?
            for _ in 0..<200_000 where stored != 16 { stored = try speaker.ask(history)["count"]?.integer }
            var shown = 0
            while true {
                // So that there is a line behind what was missed.
                try say("x")
                guard case .item(let item) = try watcher.next() else { return (shown, Int64(0)) }
                if let missed = item["missed"]?.integer { return (shown, missed) }
                if item["text"]?.string == text { shown += 1 }
            }
        }
        #expect(missed > 0 && shown > 0 && shown < 3 * 16, "\(shown) shown, \(missed) missed")
        var isWatched = true
        for _ in 0..<200_000 where isWatched { isWatched = await stage.isWatched() }
        #expect(!isWatched)
        await stage.stop()
    }

    @Test("a disabled room has no link, counts as ready, and queues; enabled it is linked again")
    func rooms() async throws {
        let stage = try await AdminStage()
        try await stage.beReady()
        #expect(try await stage.run(.changeRoom(.disable, room: "#lobby")).text == "lobby is disabled\n")
        #expect(try await stage.run(.changeRoom(.disable, room: "lobby")).text == "lobby is disabled already\n")
        #expect(
            try await stage.run(.changeRoom(.reconnect, room: "lobby")).text
                == "The link of lobby was disabled at the admin socket: enable it there first\n")
        #expect(try await stage.ask(.ready).done["ready"]?.bool == true)
        let room = try await stage.ask(.status).done["rooms"]?.array?.first
        #expect(room?["disabled"]?.bool == true && room?["state"]?.string == "stopped")
        #expect(try await stage.run(.say(room: "lobby", text: "later")).text == "queued: lobby has no link now\n")
        #expect(try await stage.run(.changeRoom(.enable, room: "lobby")).text == "lobby is enabled\n")
        // Remy may have said something meanwhile.
        var said = 0
        for _ in 0..<200_000 where said == 0 {
            let rows = try await stage.ask(.history, member("room", "lobby")).items
            said = rows.count { $0["text"]?.string == "later" }
        }
        #expect(said == 1)
        #expect(
            try await stage.run(.changeRoom(.reconnect, room: "lobby")).text
                == "The link of lobby was closed and is opened anew\n")
        await #expect(
            throws: AdminClientError.failed(AdminFailure(.notFound, "there is no room \"lobyb\"; there are: lobby"))
        ) {
            try await stage.run(.changeRoom(.enable, room: "lobyb"))
        }
        await stage.stop()
    }

    @Test("a client is disconnected by its number, and only once; it is told the reason")
    func kick() async throws {
        let stage = try await AdminStage()
        let port = try #require(stage.service.addresses.first?.port)
        let address = try #require(SocketAddress(host: "127.0.0.1", port: port))
        let stranger = try Visitor(address)
        try await stage.ask(.status) { ($0["clients"]?.array ?? []).count == 1 }
        let id = try #require(try await stage.ask(.status).done["clients"]?.array?.first?["id"]?.integer)
        let listed = try JSONValue(parsing: Array(try await stage.run(.clients(json: true)).text.utf8))
        #expect(listed["id"]?.integer == id)
        #expect(try await stage.run(.kick(id)).text == "client \(id) is disconnected\n")
        #expect(stranger.everything().contains("Disconnected by an administrator"))
        await #expect(throws: AdminClientError.failed(AdminFailure(.notFound, "there is no client \(id)"))) {
            try await stage.run(.kick(id))
        }
        let other = try Visitor(address)
        try await stage.ask(.status) { $0["clients"]?.array?.first?["id"]?.integer.map { $0 != id } ?? false }
        let next = try #require(try await stage.ask(.status).done["clients"]?.array?.first?["id"])
        _ = try await stage.ask(.kick, .init("id", next), member("reason", "enough of this"))
        #expect(other.everything().contains("(enough of this)"))
        #expect(stage.log.text.contains("info main admin-request an administrator asked at the admin socket: closes a"))
        #expect(stage.log.text.contains("kick"))
        await stage.stop()
    }

    @Test("with a store all messages are exported, and a copy of the database is one")
    func store() async throws {
        let stage = try await AdminStage(storage: "sqlite:chat.db")
        try await stage.beReady()
        for text in ["one", "two"] { _ = try await stage.ask(.say, member("room", "lobby"), member("text", text)) }
        try await stage.ask(.history, member("room", "lobby")) { $0["count"]?.integer == 2 }
        let export = try await stage.run(.export(room: "lobby")).text
        let rows = export.split(separator: "\n").map { try? JSONValue(parsing: String($0)) }
        #expect(rows.map { $0?["text"]?.string } == ["one", "two"])
        #expect(try await stage.run(.history(room: "lobby", since: nil, limit: 1, json: true)).text.contains("\"two\""))

        let copy = stage.folder.path + "/copy.db"
        let (text, status) = try await stage.run(.backup(file: copy))
        #expect(status == 0 && text.hasPrefix("\(copy): "))
        #expect(try await stage.run(.backup(file: copy)).status == ExitCode.cannotCreate)
        let attributes = try FileManager.default.attributesOfItem(atPath: copy)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        await stage.stop()
        let (store, opening) = try Store.open(StoreSettings(path: copy), wallClockMilliseconds: 0)
        #expect(opening.movedAside == nil)
        let state = try store.load(messagesPerRoom: 10)
        #expect(state.rooms.values.flatMap(\.messages).map(\.text) == ["one", "two"])
        store.close(within: .zero)
    }

    @Test("a database that cannot be read is not copied")
    func unreadable() async throws {
        let stage = try await AdminStage(storage: "sqlite:chat.db")
        let database = stage.folder.path + "/chat.db"
        try FileManager.default.moveItem(atPath: database, toPath: database + ".away")
        let (text, status) = try await stage.run(.backup(file: stage.folder.path + "/copy.db"))
        #expect(status == 74 && text.hasPrefix("chatbridge: \(database): "), "\(text)")
        try FileManager.default.moveItem(atPath: database + ".away", toPath: database)
        await stage.stop()
    }

    @Test("what is larger than the queue of its reader comes whole and in order")
    func largeHistory() async throws {
        let stage = try await AdminStage()
        try await stage.beReady()
        let texts = (0..<16).map { "\($0) " + String(repeating: "x", count: 30_000) }
        for text in texts { _ = try await stage.ask(.say, member("room", "lobby"), member("text", text)) }
        try await stage.ask(.history, member("room", "lobby"), .init("limit", .integer(100))) {
            $0["count"]?.integer == 16
        }
        #expect(try await stage.ask(.export, member("room", "lobby")).items.map { $0["text"]?.string } == texts)
        await stage.stop()
    }

    @Test("a bridge that hangs is not waited for without end")
    func hanging() throws {
        let folder = try StoreDriverTests.Folder()
        let path = folder.path + "/admin.sock"
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        let address = SocketAddress.unix(path: path)
        #expect(address.withSocketAddress { bind(listener, $0.assumingMemoryBound(to: sockaddr.self), $1) } == 0)
        // Two find room in its queue.
        #expect(listen(listener, 1) == 0)
        let waiting = try (0..<2).map { _ in try AdminClient.connect([path], patience: 1) }
        #expect(
            throws: AdminClientError.noBridge(
                paths: [path], reason: "the bridge accepted no connection within 1 s")
        ) { try AdminClient.connect([path], patience: 1) }
        withExtendedLifetime(waiting) {}
    }

    @Test("without a store there is nothing to copy")
    func noStore() async throws {
        let stage = try await AdminStage()
        let failure = AdminFailure(
            .unavailable, "nothing is stored: storage is in memory (url = \"memory:\" in [storage])")
        await #expect(throws: AdminClientError.failed(failure)) { try await stage.run(.backup(file: "/nowhere")) }
        await stage.stop()
    }

    // MARK: - Reload

    @Test("a reload shows what changed, or every problem with its place; a refused one stays in the status")
    func reload() async throws {
        let files = Locked<[Result<Configuration, ConfigurationError>]>([])
        let stage = try await AdminStage(reread: { files.withLock { $0.removeFirst() } })
        let url = "ws://127.0.0.1:\(stage.studio.port)/lobby"
        func file(_ text: String) -> Result<Configuration, ConfigurationError> {
            do throws(ConfigurationError) {
                return .success(try load("[server]\nstate_dir = \"\(stage.folder.path)\"\n" + text))
            } catch {
                return .failure(error)
            }
        }
        let room = "[[rooms]]\nname = \"lobby\"\nurl = \"\(url)\"\n"
        let wrong = file(room + "topik = 1\nurll = 2")
        files.withLock { $0 = [wrong] }
        let failure = AdminFailure(.configuration, "nothing was changed: the configuration has errors")
        let (problems, told) = try await stage.talk { client in
            var problems: [String] = []
            try client.send(try AdminCall(.reload))
            while true {
                switch try client.next() {
                case .item(let item): problems.append(item["problem"]?.string ?? "")
                case .error(let failure): return (problems, failure)
                case .done: return (problems, AdminFailure(.badRequest, "it was taken"))
                }
            }
        }
        #expect(told == failure)
        #expect(AdminClientError.failed(failure).exitCode == ExitCode.configuration)
        #expect(problems.count == 2 && problems.allSatisfy { $0.contains("unknown key") })
        func refusal() async throws -> String? {
            try await stage.ask(.status).done["troubles"]?.array?.first { $0["kind"]?.string == "reload" }?["text"]?
                .string
        }
        let refused = try await refusal() ?? ""
        #expect(refused.contains("topik") && refused.hasSuffix(", and 1 more"))
        #expect(try await stage.run(.status(.screen)).text.contains("! reload: refused "))

        let other = file(
            room + "topic = \"soup\"\n[[rooms]]\nname = \"attic\"\nurl = \"\(url)\"\n[limits]\nmax_clients = 9\n"
                + "[[listeners]]\nbind = \"irc://127.0.0.1:0\"\n[storage]\nurl = \"memory:\"\n[admin]\nmode = \"0660\"\n"
        )
        files.withLock { $0 = [other] }
        let text = try await stage.run(.reload).text
        #expect(
            text.split(separator: "\n") == [
                "rooms opened: attic", "rooms changed: lobby", "keys changed: limits.max_clients",
                "in force after a restart: admin.mode",
            ])
        #expect(try await refusal() == nil)
        await stage.stop()
        let fixed = try await AdminStage()
        let none = AdminFailure(.unavailable, "the bridge has no configuration that it could read again")
        await #expect(throws: AdminClientError.failed(none)) { try await fixed.run(.reload) }
        await fixed.stop()
    }

    // MARK: - Erasure

    private static let people = """
        [[accounts]]
        name = "Ada"
        password = "\(examplePasswordHash)"
        """

    @Test("a person is erased after a question, in memory or with a database", arguments: ["memory:", "sqlite:a.db"])
    func forget(storage: String) async throws {
        let stage = try await AdminStage(storage: storage, accounts: Self.people)
        try await stage.beReady()
        let own = try await stage.ask(.say, member("room", "lobby"), member("text", "unspeakable")).done
        #expect(own["room"]?.string == "lobby")
        try await stage.ask(.history, member("room", "lobby")) { $0["count"]?.integer == 1 }
        let erasing = LiveCommand.forget(user: "ada", isAccount: false, isConfirmed: false)
        #expect(
            try await stage.run(erasing, answer: false).text
                == "Erase the account Ada and all that they said? It cannot be undone. [y/N] \nnothing was erased\n")
        let none = AdminFailure(.badRequest, "there is no terminal to confirm it at; --yes does")
        await #expect(throws: AdminClientError.failed(none)) { try await stage.run(erasing) }
        let text = try await stage.run(.forget(user: "ada", isAccount: false, isConfirmed: true)).text
        #expect(text.hasPrefix("erased the account Ada: nothing was there\nnot reached: "))
        for name in ["eve", "x@nowhere"] {
            let failure = AdminFailure(
                .notFound,
                "there is no account, nick or backend of \"\(name)\"; with \"account\" the name of an account counts that "
                    + "is no longer known")
            await #expect(throws: AdminClientError.failed(failure)) {
                try await stage.run(.forget(user: name, isAccount: false, isConfirmed: true))
            }
        }
        let gone = try await stage.run(.forget(user: "eve", isAccount: true, isConfirmed: true)).text
        #expect(gone.hasPrefix("erased the account eve (not known at present): nothing was there\n"))
        let rows = try await stage.ask(.history, member("room", "lobby")).items
        #expect(rows.map { $0["text"]?.string } == ["unspeakable"])
        await stage.stop()
    }

    @Test("a word that may mean two people erases neither, and both are named")
    func ambiguous() async throws {
        let files = Locked<[Result<Configuration, ConfigurationError>]>([])
        let stage = try await AdminStage(accounts: Self.people, reread: { files.withLock { $0.removeFirst() } })
        let port = try #require(stage.service.addresses.first?.port)
        let client = try Visitor(try #require(SocketAddress(host: "127.0.0.1", port: port)))
        client.send("PASS Ada:pencil\r\nNICK zoe\r\nUSER u 0 * :r\r\n")
        func isThere(_ status: JSONValue) -> Bool { status["clients"]?.array?.first?["nick"]?.string == "zoe" }
        try await stage.ask(.status, until: isThere)
        // An account of that name is new.
        let room = "[[rooms]]\nname = \"lobby\"\nurl = \"ws://127.0.0.1:\(stage.studio.port)/lobby\""
        let read = try load([room, Self.people, Self.people.replacing("Ada", with: "Zoe")].joined(separator: "\n"))
        files.withLock { $0 = [.success(read)] }
        _ = try await stage.ask(.reload)
        let failure = AdminFailure(.badRequest, "\"zoe\" may be the account Zoe or the account Ada, now zoe")
        await #expect(throws: AdminClientError.failed(failure)) {
            try await stage.run(.forget(user: "zoe", isAccount: false, isConfirmed: true))
        }
        let text = try await stage.run(.forget(user: "zoe", isAccount: true, isConfirmed: true)).text
        #expect(text.hasPrefix("erased the account Zoe: nothing was there\n"))
        #expect(isThere(try await stage.ask(.status).done))
        await stage.stop()
    }

    @Test("stored tokens of an erased account's own log-ins are removed")
    func tokens() async throws {
        let login = """
            [accounts.upstream.lobby]
            type = "login"
            user = "ada"
            password = "x"
            login_url = "http://127.0.0.1:1/login"
            login_body = { name = "{user}", word = "{password}" }
            """
        let stage = try await AdminStage(accounts: Self.people + "\n" + login)
        let store = TokenStore(stateDirectory: stage.folder.path)
        try store.save(StoredTokens(access: "a", owner: "o"), backend: "OWN-ada-lobby")
        let erasing = LiveCommand.forget(user: "ada", isAccount: false, isConfirmed: true)
        #expect(try await stage.run(erasing).text.hasPrefix("erased the account Ada: 1 token file\n"))
        #expect(store.read(backend: "OWN-ada-lobby") == nil)
        #expect(try await stage.run(erasing).text.hasPrefix("erased the account Ada: nothing was there\n"))
        await stage.stop()
    }

    @Test("drain stops the bridge in order")
    func drain() async throws {
        let stage = try await AdminStage()
        #expect(try await stage.run(.drain).status == 0)
        await stage.service.waitUntilStopped()
        stage.studio.stop()
        #expect(throws: AdminClientError.self) { try AdminClient.connect([stage.path]) }
    }

    @Test("a live socket is left alone, that of a dead process is replaced")
    func twoBridges() async throws {
        let first = try await AdminStage()
        let second = try await AdminStage(folder: first.folder)
        #expect(second.log.text.contains("warn main admin-in-use another process answers at the admin socket"))
        #expect(!first.log.text.contains("admin-in-use"))
        try await first.beReady()
        await second.stop()
        try await first.beReady()
        await first.stop()
        // A socket file without a process behind it.
        let loop = try NetworkLoop.start(name: "dead")
        let path = first.path
        try await loop.run { transport throws(TransportError) in
            _ = try transport.listen(ListenOptions(.unix(path: path + ".old")))
        }
        try FileManager.default.moveItem(atPath: path + ".old", toPath: path)
        loop.stop()
        loop.waitUntilStopped()
        let third = try await AdminStage(folder: first.folder)
        #expect(!third.log.text.contains(" admin-"))
        try await third.beReady()
        await third.stop()
    }

    @Test("a socket that cannot be made is a warning, and the bridge runs")
    func noSocket() async throws {
        let folder = try StoreDriverTests.Folder()
        try Data().write(to: URL(fileURLWithPath: folder.path + "/admin.sock"))
        let stage = try await AdminStage(folder: folder)
        #expect(stage.log.text.contains("warn main admin-closed the admin socket cannot be opened: "))
        await stage.stop()
    }

    @Test("another user's process is refused, whatever the file's mode", .enabled(if: geteuid() == 0))
    func otherUser() async throws {
        let stage = try await AdminStage(mode: "0666")
        chmod(stage.folder.path, 0o755)
        let stranger = Process()
        let output = Pipe()
        stranger.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
        stranger.arguments = [
            "--reuid=65534", "--clear-groups", "perl", "-MIO::Socket::UNIX", "-e",
            "my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die; print $s \"{\\\"request\\\":\\\"drain\\\"}\\n\"; print <$s>;",
            stage.path,
        ]
        stranger.standardOutput = output
        try stranger.run()
        let answer = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        stranger.waitUntilExit()
        #expect(
            answer
                == "{\"error\":{\"code\":\"refused\",\"message\":\"the admin socket is for the user that runs the bridge, "
                + "and for root\"}}\n")
        #expect(stage.log.text.contains("warn main admin-refused another user's process asked at the admin socket"))
        #expect(try await stage.ask(.status).done["running"]?.bool == true)
        await stage.stop()
    }
}

/// A blocking client of a socket.
private final class Visitor {
    private let descriptor: Int32
    private var received: [UInt8] = []

    init(_ address: SocketAddress) throws {
        let family = if case .unix = address { AF_UNIX } else { AF_INET }
        descriptor = socket(family, Int32(SOCK_STREAM.rawValue), 0)
        let descriptor = descriptor
        let result = address.withSocketAddress { connect(descriptor, $0.assumingMemoryBound(to: sockaddr.self), $1) }
        try #require(result == 0)
    }

    deinit { close(descriptor) }

    /// Sends all of it, unless the other side closes before.
    func send(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    private func receive() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count > 0 { received += buffer.prefix(count) }
        return count > 0
    }

    /// The next line; nil: the other side closed.
    func line() -> String? {
        while true {
            if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
                defer { received.removeFirst(end + 1) }
                return String(decoding: received[..<end], as: UTF8.self)
            }
            guard receive() else { return nil }
        }
    }

    /// What the other side says until it closes.
    func everything() -> String {
        while receive() {}
        return String(decoding: received, as: UTF8.self)
    }
}
