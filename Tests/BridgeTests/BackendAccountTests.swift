import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms
@testable import Upstream

/// The account of a backend with two rooms, on a manual clock.
@Suite("Backend accounts")
struct BackendAccountTests {
    struct World {
        let harness: BridgeHarness
        let server: TokenServer

        var account: BackendAccount { harness.bridge.backends.all[0] }

        /// The heads of the last WebSocket requests show these tokens.
        func shown(_ room: Int) -> String? {
            harness.upstreams[room].requests.last?.split(separator: "\r\n").first { $0.hasPrefix("Authorization: ") }
                .map { String($0.dropFirst("Authorization: Bearer ".count)) }
        }

        func isUp(_ room: Int) -> Bool { harness.bridge.roomStates[room].isUp }
    }

    private func world(
        lifetime: Int64? = 600_000, stored: StoredTokens? = nil, password: String = "hunter2-secret",
        server: TokenServer = TokenServer(), sendAs: LoginSettings.Placement = .bearer, starts: Bool = true,
        isLogin: Bool = true
    ) throws -> World {
        let dialect = AccountDialect()
        var rooms: [RoomSettings] = []
        for name in ["one", "two"] {
            var room = RoomSettings(
                name: name, backend: "main", dialect: dialect, url: try HTTPURL(parsing: "ws://chat.example/\(name)"))
            room.ping = .zero
            rooms.append(room)
        }
        let backend = BackendSettings(
            name: "main", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"), user: "bridge",
            login: isLogin ? LoginSettings(sendAs: sendAs) : nil, authenticates: true)
        let harness = BridgeHarness(
            settings: BridgeSettings(serverName: "bridge", instanceID: "t", rooms: rooms, backends: [backend]))
        server.lifetime = lifetime
        harness.accounts.secrets[0] = .success(.login(user: "bridge", password: password))
        harness.accounts.disk[0] = stored
        harness.accounts.server = { server.answer($0) }
        if starts { harness.start() }
        return World(harness: harness, server: server)
    }

    static let owner = "bridge http://chat.example/"

    private func stored(_ access: String, _ refresh: String?, endsIn seconds: Int64?) -> StoredTokens {
        StoredTokens(
            access: access, refresh: refresh,
            expiresAt: seconds.map { ChatTimestamp(milliseconds: ManualClock.epochMilliseconds + $0 * 1000) },
            owner: Self.owner)
    }

    // MARK: - The first tokens

    @Test("one login serves all rooms, and who the account is is asked once")
    func login() throws {
        let world = try world()
        #expect(world.server.takeLog() == ["/login", "/me"])
        #expect(world.isUp(0) && world.isUp(1))
        #expect(world.shown(0) == "acc-secret-1" && world.shown(1) == "acc-secret-1")
        #expect(world.harness.accounts.saved.map(\.refresh) == ["ref-secret-1"])
        #expect(world.harness.violations == [])
    }

    struct PlacementRow: CustomTestStringConvertible {
        var testDescription: String
        var sendAs: LoginSettings.Placement
        var head: String
    }

    @Test(
        "the token goes where the backend wants it",
        arguments: [
            PlacementRow(testDescription: "bearer", sendAs: .bearer, head: "Authorization: Bearer acc-secret-1\r\n"),
            PlacementRow(
                testDescription: "a header of its own", sendAs: .header(name: "X-Key", format: "k={token}"),
                head: "X-Key: k=acc-secret-"),
            PlacementRow(
                testDescription: "the query", sendAs: .query(name: "token"),
                head: "GET /one?token=acc-secret-1 HTTP/1.1"),
        ])
    func placement(row: PlacementRow) throws {
        let world = try world(sendAs: row.sendAs)
        #expect(world.harness.upstreams[0].requests.last?.contains(row.head) == true)
    }

    @Test("a token for the socket itself is no header")
    func placementOnSocket() throws {
        let world = try world(sendAs: .message)
        #expect(world.account.credentials == UpstreamCredentials(socket: .accessToken("acc-secret-1")))
        #expect(world.harness.upstreams[0].requests.last?.contains("acc-secret") == false)
        #expect(world.account.authorization.headers.first?.value == "Bearer acc-secret-1")
    }

    // MARK: - Kept tokens

    @Test("kept tokens are used after a restart, without a login")
    func restart() throws {
        let server = TokenServer()
        let first = try world(server: server)
        let kept = first.harness.accounts.disk[0]
        _ = server.takeLog()
        let second = try world(stored: kept, server: server)
        #expect(server.takeLog() == ["/me"])
        #expect(second.shown(0) == "acc-secret-1")
    }

    @Test("kept tokens that have ended are renewed first")
    func restartExpired() throws {
        let server = TokenServer()
        let first = try world(server: server)
        var kept = try #require(first.harness.accounts.disk[0])
        kept.expiresAt = ChatTimestamp(milliseconds: ManualClock.epochMilliseconds - 1)
        _ = server.takeLog()
        let second = try world(stored: kept, server: server)
        #expect(server.takeLog() == ["/refresh", "/me"])
        #expect(second.shown(0) == "acc-secret-2")
    }

    @Test("a refresh token that was used and not kept before a crash leads to a login")
    func crashBetween() throws {
        let server = TokenServer()
        let first = try world(server: server)
        let kept = first.harness.accounts.disk[0]
        first.harness.accounts.saves = false
        first.harness.advance(by: .seconds(545))
        #expect(first.account.state == .saving)
        _ = server.takeLog()
        var old = try #require(kept)
        old.expiresAt = ChatTimestamp(milliseconds: ManualClock.epochMilliseconds + 1000)
        let second = try world(stored: old, server: server)
        #expect(server.takeLog() == ["/refresh", "/login", "/me"])
        #expect(second.isUp(0) && second.isUp(1))
    }

    @Test("tokens of another account are not used")
    func otherOwner() throws {
        let server = TokenServer()
        var kept = stored("acc", "ref", endsIn: 1000)
        kept.owner = "somebody http://chat.example/"
        let world = try world(stored: kept, server: server)
        #expect(server.takeLog() == ["/login", "/me"])
        #expect(world.shown(0) == "acc-secret-1")
    }

    @Test("no token is shown before it is kept")
    func savedBeforeUse() throws {
        let world = try world(starts: false)
        world.harness.accounts.saves = false
        world.harness.start()
        #expect(world.account.state == .saving)
        #expect(world.server.takeLog() == ["/login"])
        #expect(world.harness.upstreams.allSatisfy { $0.connectCount == 0 })
        world.harness.perform { $0.tokensSaved(BackendID(index: 0), .success(()), now: $1) }
        #expect(world.server.takeLog() == ["/me"])
        #expect(world.isUp(0) && world.isUp(1))
    }

    @Test("tokens that cannot be kept are used all the same, and that is told once")
    func saveFails() throws {
        let world = try world(starts: false)
        world.harness.accounts.saveFailure = UpstreamCredentialsFailure("the disk is full")
        world.harness.start()
        #expect(world.isUp(0))
        world.harness.advance(by: .seconds(1200))
        #expect(world.harness.notes.count { $0.event == "backend-tokens-not-kept" } == 1)
    }

    // MARK: - Renewal

    struct RenewalRow: CustomTestStringConvertible {
        var testDescription: String
        var lifetime: Int64?
        /// Seconds after which the renewal comes; nil: never.
        var after: Int?
    }

    @Test(
        "tokens are renewed ahead of their end",
        arguments: [
            RenewalRow(testDescription: "ten minutes", lifetime: 600_000, after: 540),
            RenewalRow(testDescription: "shorter than the time ahead", lifetime: 30_000, after: 15),
            RenewalRow(testDescription: "next to nothing", lifetime: 1, after: 1),
            RenewalRow(testDescription: "not known", lifetime: nil, after: nil),
            RenewalRow(testDescription: "nonsense", lifetime: -5, after: nil),
            RenewalRow(testDescription: "for ever", lifetime: .max, after: nil),
        ])
    func renewal(row: RenewalRow) throws {
        let world = try world(lifetime: row.lifetime)
        _ = world.server.takeLog()
        if let after = row.after {
            world.harness.advance(by: .seconds(after) - .milliseconds(1))
            #expect(world.server.takeLog() == [])
            world.harness.advance(by: .milliseconds(1))
            #expect(world.server.takeLog() == ["/refresh"])
            #expect(world.harness.accounts.disk[0]?.access == "acc-secret-2")
        } else {
            world.harness.advance(by: .seconds(7 * 86_400))
            #expect(world.server.takeLog() == [])
        }
        #expect(world.isUp(0), "the socket stays as it is")
    }

    @Test("a refresh token that is not replaced serves again")
    func refreshKept() throws {
        let world = try world()
        world.server.trouble["/refresh"] = [TokenServer.answer(200, "{\"access\":\"next-secret\",\"ms\":600000}")]
        _ = world.harness.accounts.takeCalls()
        world.harness.advance(by: .seconds(1200))
        let bodies = world.harness.accounts.takeCalls().filter { $0.path == "/refresh" }.map(\.body)
        #expect(bodies == Array(repeating: "{\"refresh\":\"ref-secret-1\"}", count: 2))
        #expect(world.harness.accounts.saved.map(\.refresh) == ["ref-secret-1", "ref-secret-1", "ref-secret-2"])
    }

    @Test("each refresh token is used once")
    func singleUse() throws {
        let world = try world()
        _ = world.harness.accounts.takeCalls()
        world.harness.advance(by: .seconds(3600 * 5))
        let bodies = world.harness.accounts.takeCalls().filter { $0.path == "/refresh" }.map(\.body)
        #expect(bodies.count == 33)
        #expect(Set(bodies).count == bodies.count)
        #expect(!world.server.takeLog().dropFirst().contains("/login"))
    }

    @Test("a JWT says itself when it ends")
    func jwt() throws {
        // {"alg":"none"} . {"sub":"1","exp":1795262700} (five minutes after the test's beginning)
        let token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIiwiZXhwIjoxNzk1MjYyNzAwfQ.c2ln"
        let tokens = BackendTokens(access: token)
        #expect(tokens.lifetime(wallMilliseconds: ManualClock.epochMilliseconds) == 300_000)
        #expect(BackendTokens(access: token, lifetimeMilliseconds: 5).lifetime(wallMilliseconds: 0) == 5)
        for bad in ["", "a.b", "a.b.c", "eyJ9.e30.x", "..", "a.eyJleHAiOiJ4In0.c", "a.eyJleHAiOjFlOTl9.c"] {
            #expect(BackendTokens(access: bad).lifetime(wallMilliseconds: 0) == nil, "\(bad)")
        }
        // {"iat":1000,"exp":1060}: our clock does not matter.
        #expect(
            BackendTokens(access: "a.eyJpYXQiOjEwMDAsImV4cCI6MTA2MH0.c").lifetime(wallMilliseconds: 99) == 60_000)
    }

    @Test("two rooms that are refused at once lead to one renewal")
    func race() throws {
        let world = try world()
        _ = world.server.takeLog()
        world.server.expireAccess()
        world.harness.acceptsConnections = false
        for room in 0..<2 { world.harness.closeUpstream(room, code: 1008) }
        world.harness.advance(by: .seconds(1))
        for room in 0..<2 { world.harness.accept(room) }
        #expect(world.server.takeLog() == ["/refresh"])
        #expect(world.shown(0) == "acc-secret-2" && world.shown(1) == "acc-secret-2")
        #expect(world.isUp(0) && world.isUp(1))
    }

    @Test("a room whose handshake was under way while the token was renewed causes no second renewal")
    func refusedAfterRenewal() throws {
        let world = try world()
        _ = world.server.takeLog()
        world.server.expireAccess()
        world.harness.acceptsConnections = false
        for room in 0..<2 { world.harness.endTransport(room, reason: "gone") }
        world.harness.advance(by: .seconds(3))
        for room in 0..<2 { world.harness.refuse(room, status: 403) }
        world.harness.advance(by: .seconds(1))
        #expect(world.server.takeLog() == ["/refresh"])
        for room in 0..<2 { world.harness.accept(room) }
        #expect(world.shown(0) == "acc-secret-2" && world.shown(1) == "acc-secret-2")
        #expect(world.isUp(0) && world.isUp(1))
    }

    @Test("a refused refresh leads to a login with the password")
    func refreshRefused() throws {
        let world = try world()
        _ = world.server.takeLog()
        world.server.expireAccess()
        world.server.expireRefresh()
        world.harness.closeUpstream(0, code: 4001)
        world.harness.advance(by: .seconds(1))
        #expect(world.server.takeLog() == ["/refresh", "/login"])
        #expect(world.isUp(0))
        #expect(world.shown(0) == "acc-secret-2")
    }

    @Test("tokens that are fresh and refused all the same are not renewed again and again")
    func refusedForOtherReasons() throws {
        let world = try world(lifetime: nil, starts: false)
        world.harness.acceptsConnections = false
        world.server.trouble["/me"] = Array(repeating: TokenServer.answer(500), count: 10)
        world.harness.start()
        var asked = 0
        for _ in 0..<200 {
            for room in 0..<2 where world.harness.upstreams[room].state == .connecting {
                world.harness.refuse(room, status: 403)
                asked += 1
            }
            world.harness.advance(by: .seconds(10))
        }
        let log = world.server.takeLog().filter { $0 != "/me" }
        // 2000 s: a login, a renewal at the first refusal and one every 15 min.
        #expect(log.count <= 5, "\(log)")
        #expect(asked <= 14)
        let told = world.harness.notes.contains { $0.event == "upstream-failed" && $0.text.contains("403") }
        #expect(told)
    }

    // MARK: - Trouble

    @Test("a refused login is told and tried every 15 minutes, not more often")
    func loginRefused() throws {
        let world = try world(password: "wrong-secret")
        #expect(world.server.takeLog() == ["/login"])
        #expect(world.harness.notes.contains { $0.event == "backend-login-refused" && $0.level == .error })
        world.harness.advance(by: .seconds(899))
        #expect(world.server.takeLog() == [])
        world.harness.advance(by: .seconds(12))
        #expect(world.server.takeLog() == ["/login"])
        world.harness.advance(by: .seconds(3 * 900 + 40))
        #expect(world.server.takeLog() == ["/login", "/login", "/login"])
        #expect(world.harness.upstreams.allSatisfy { $0.connectCount == 0 })

        world.harness.connect(1)
        for line in ["NICK n", "USER n 0 * :n", "JOIN #one"] { world.harness.send(1, line) }
        let lines = world.harness.takeLines(1)
        #expect(lines.contains { $0.contains("the login at chat.example was answered 401") }, "\(lines)")
        #expect(!lines.contains { $0.contains("wrong-secret") })
    }

    @Test("a reload looks for another password at once")
    func reloadLooksForSecrets() throws {
        let world = try world(password: "wrong-secret")
        _ = world.server.takeLog()
        world.harness.advance(by: .seconds(63))
        let settings = world.harness.bridge.settings
        func reload() {
            world.harness.perform { $0.reload(settings, reconnecting: [], backends: [], now: $1) }
        }
        reload()
        #expect(world.server.takeLog() == [], "the same is not tried")
        world.harness.accounts.secrets[0] = .success(.login(user: "bridge", password: "hunter2-secret"))
        reload()
        world.harness.advance(by: .milliseconds(1))
        #expect(world.server.takeLog() == ["/login", "/me"])
        #expect(world.isUp(0) && world.isUp(1))
    }

    @Test("a changed password is tried at once, and the rooms come up")
    func passwordChanged() throws {
        let world = try world(password: "wrong-secret")
        _ = world.server.takeLog()
        world.harness.advance(by: .seconds(60))
        world.harness.accounts.secrets[0] = .success(.login(user: "bridge", password: "hunter2-secret"))
        world.harness.advance(by: .seconds(11))
        #expect(world.server.takeLog() == ["/login", "/me"])
        #expect(world.isUp(0) && world.isUp(1))
    }

    @Test("an operator's word tries at once")
    func retry() throws {
        let world = try world(password: "wrong-secret")
        _ = world.server.takeLog()
        world.server.password = "wrong-secret"
        world.harness.perform { $0.retryLogin("main", now: $1) }
        #expect(world.server.takeLog() == ["/login", "/me"])
        world.harness.advance(by: .seconds(1))
        #expect(world.isUp(0) && world.isUp(1))
    }

    @Test("a password file that cannot be read is told, and looked for")
    func noSecrets() throws {
        let world = try world(starts: false)
        world.harness.accounts.secrets[0] = .failure(UpstreamCredentialsFailure("there is no file \"/run/password\""))
        world.harness.start()
        #expect(world.server.takeLog() == [])
        #expect(world.harness.notes.contains { $0.text.contains("there is no file \"/run/password\"") })
        world.harness.accounts.secrets[0] = .success(.login(user: "bridge", password: "hunter2-secret"))
        world.harness.advance(by: .seconds(11))
        #expect(world.isUp(0))
    }

    struct TroubleRow: CustomTestStringConvertible {
        var testDescription: String
        var answers: [Result<BackendCallResponse, BackendCallFailure>]
        /// Seconds after the start at which logins come.
        var tries: [Int]
    }

    @Test(
        "a backend in trouble is left alone for longer each time, and as long as it wants",
        arguments: [
            TroubleRow(
                testDescription: "500", answers: Array(repeating: TokenServer.answer(500), count: 3),
                tries: [0, 1, 3, 7]),
            TroubleRow(
                testDescription: "429 with a wish", answers: [TokenServer.answer(429, retryAfter: .seconds(90))],
                tries: [0, 90]),
            TroubleRow(
                testDescription: "503 with a wish", answers: [TokenServer.answer(503, retryAfter: .seconds(7))],
                tries: [0, 7]),
            TroubleRow(
                testDescription: "no answer", answers: [.failure(BackendCallFailure(sentence: "no answer in time"))],
                tries: [0, 1]),
            TroubleRow(testDescription: "no token in it", answers: [TokenServer.answer(200, "{}")], tries: [0, 1]),
            TroubleRow(testDescription: "no JSON", answers: [TokenServer.answer(200, "<html>")], tries: [0, 1]),
        ])
    func trouble(row: TroubleRow) throws {
        let world = try world(starts: false)
        world.server.trouble["/login"] = row.answers
        world.harness.start()
        var tries: [Int] = []
        for second in 0...120 {
            if world.server.takeLog().contains("/login") { tries.append(second) }
            world.harness.advance(by: .seconds(1))
        }
        #expect(tries == row.tries)
        #expect(world.isUp(0) && world.isUp(1))
    }

    @Test("an old token serves while the backend cannot renew it")
    func renewalInTrouble() throws {
        let world = try world()
        world.server.trouble["/refresh"] = Array(repeating: TokenServer.answer(500), count: 2)
        world.harness.advance(by: .seconds(540))
        world.harness.endTransport(0, reason: "gone")
        world.harness.advance(by: .milliseconds(1500))
        #expect(world.isUp(0))
        #expect(world.shown(0) == "acc-secret-1")
        world.harness.advance(by: .seconds(10))
        #expect(world.harness.accounts.disk[0]?.access == "acc-secret-2")
    }

    @Test("renewals that keep failing end in a login")
    func renewalNeverWorks() throws {
        let world = try world()
        _ = world.server.takeLog()
        world.server.trouble["/refresh"] = Array(repeating: TokenServer.answer(500), count: 100)
        world.harness.advance(by: .seconds(560))
        #expect(world.server.takeLog() == ["/refresh", "/refresh", "/refresh", "/login"])
    }

    // MARK: - Others

    @Test("a backend where nobody logs in shows in its calls what its rooms show")
    func fixed() throws {
        let world = try world(starts: false, isLogin: false)
        world.harness.accounts.secrets[0] = .success(
            .fixed(UpstreamCredentials(headers: [.init(name: "Authorization", value: "Bearer fixed-secret")])))
        world.harness.accounts.server = { $0.token == "fixed-secret" ? TokenServer.answer(200, "{}") : nil }
        world.harness.start()
        #expect(world.harness.accounts.calls.map(\.path) == ["/me"])
        world.harness.accounts.secrets[0] = .success(.fixed(UpstreamCredentials(socket: .accessToken("other-secret"))))
    }

    @Test("the end of the program meets every state")
    func shutdown() throws {
        for state in 0..<3 {
            let world = try world(starts: false)
            if state == 0 { world.harness.accounts.server = nil }
            if state == 1 { world.harness.accounts.saves = false }
            world.harness.start()
            world.harness.shutdown()
            world.harness.advance(by: .seconds(30))
            #expect(world.harness.takeOutputs().contains(.stopped))
        }
    }
}
