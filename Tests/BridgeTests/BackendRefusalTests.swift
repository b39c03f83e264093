import BridgeTestSupport
import BridgeTypes
import ChatModel
import DescribedDialects
import Dialects
import HTTPProtocol
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A backend that takes a token, lets a room in, and then sends it away.
@Suite("Refusals after a link was usable")
struct BackendRefusalTests {
    private struct World {
        let harness: BridgeHarness
        let server: TokenServer

        var account: BackendAccount { harness.bridge.backends.all[0] }
        func isUp(_ room: Int) -> Bool { harness.bridge.roomStates[room].isUp }

        func renewals() -> Int { server.takeLog().count { $0 == "/login" || $0 == "/refresh" } }
    }

    /// Rooms `one`, `two` and so on, of one account.
    ///
    /// - Parameter closed: a room that is for the test to let in.
    private func world(rooms: Int = 2, lifetime: Int64? = nil, closed: Int? = nil) throws -> World {
        let dialect = AccountDialect()
        let settings = try ["one", "two", "three", "four", "five"].prefix(rooms).map { name in
            var room = RoomSettings(
                name: name, backend: "main", dialect: dialect, url: try HTTPURL(parsing: "ws://chat.example/\(name)"))
            room.ping = .zero
            return room
        }
        let backend = BackendSettings(
            name: "main", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"), user: "bridge",
            login: LoginSettings(), authenticates: true)
        let harness = BridgeHarness(
            settings: BridgeSettings(serverName: "bridge", instanceID: "t", rooms: Array(settings), backends: [backend])
        )
        let server = TokenServer()
        server.lifetime = lifetime
        harness.accounts.secrets[0] = .success(.login(user: "bridge", password: "hunter2-secret"))
        harness.accounts.server = { server.answer($0) }
        harness.acceptsConnections = closed == nil
        harness.start()
        for room in 0..<rooms where harness.upstreams[room].state == .connecting && room != closed {
            harness.accept(room)
        }
        harness.advance(by: .seconds(1))
        _ = server.takeLog()
        return World(harness: harness, server: server)
    }

    /// Sends `banned` away with `code` after `use`, each time that it comes, for `time`; how often that was.
    private func banish(
        _ banned: [Int], _ world: World, code: UInt16 = 4003, after use: Duration, for time: Duration
    ) -> Int {
        var closes = 0
        let end = world.harness.clock.now.monotonic + time
        var upSince: [Int: MonotonicInstant] = [:]
        while world.harness.clock.now.monotonic < end {
            for room in banned {
                guard world.isUp(room) else {
                    upSince[room] = nil
                    continue
                }
                let since = upSince[room] ?? world.harness.clock.now.monotonic
                upSince[room] = since
                guard world.harness.clock.now.monotonic - since >= use else { continue }
                world.harness.closeUpstream(room, code: code, reason: "not a member")
                upSince[room] = nil
                closes += 1
            }
            world.harness.advance(by: .milliseconds(50))
        }
        return closes
    }

    @Test(
        "a room that is sent away each time is tried after 1 s, 2 s, 4 s and so on up to 15 minutes",
        arguments: [1008, 4001, 4003] as [UInt16])
    func sentAway(code: UInt16) throws {
        let world = try world()
        let closes = banish([1], world, code: code, after: .milliseconds(50), for: .seconds(60 * 60))
        // At 0:00, 0:01, 0:03, 0:07 and so on to 17:03, then every 15 minutes.
        #expect(closes == 13, "\(closes)")
        // The token is renewed in case, when the tries are a minute apart.
        let renewals = world.renewals()
        #expect((1...9).contains(renewals), "\(renewals)")
        #expect(world.isUp(0))
        #expect(world.harness.upstreams[0].connectCount == 1)
        #expect(world.harness.violations == [])
    }

    @Test("people hear of it, with the wait where it is long")
    func told() throws {
        let world = try world()
        world.harness.connect(1)
        for line in ["NICK n", "USER n 0 * :n", "JOIN #two"] { world.harness.send(1, line) }
        _ = world.harness.takeLines(1)
        _ = banish([1], world, after: .milliseconds(50), for: .seconds(600))
        let notices = world.harness.takeLines(1).filter { $0.contains(" NOTICE #two ") }
        let lost = notices.filter { $0.contains(" was lost: ") }
        let why =
            "*** The link to chat.example was lost: the backend closed the session with code 4003 (not a member). "
        #expect(lost.count == 10)
        #expect(lost.first?.hasSuffix(why + "What you write is queued and sent when it is back.") == true, "\(notices)")
        #expect(
            lost.last?.hasSuffix(
                why + "The next try is in 8 min, or within 10 s of other credentials. What you write is queued and "
                    + "sent when it is back.") == true,
            "\(notices)")
        // Lost, back, and missing.
        #expect(notices.count <= lost.count * 3, "\(notices)")
    }

    @Test("many rooms that are sent away cost few renewals, and the others none")
    func manySentAway() throws {
        let world = try world(rooms: 5)
        let closes = banish([1, 2, 3, 4], world, after: .milliseconds(50), for: .seconds(14 * 60))
        // Ten times each, and once more whenever another room's try brought a new token.
        #expect(closes <= 4 * 10 + 4 * 10, "\(closes)")
        #expect(world.renewals() <= 10)
        #expect(world.isUp(0) && world.harness.upstreams[0].connectCount == 1)
    }

    @Test("a room that is sent away a little later each time comes back at once, and costs one renewal in a minute")
    func sentAwayLater() throws {
        let world = try world()
        let closes = banish([1], world, after: .seconds(12), for: .seconds(14 * 60))
        #expect(closes >= 68, "\(closes)")
        #expect((1...14).contains(world.renewals()))
    }

    @Test("a token that has really ended is renewed at once, however often", arguments: [5, 60])
    func ended(minutes: Int) throws {
        let world = try world()
        for time in 1...6 {
            world.harness.advance(by: .seconds(minutes * 60))
            world.server.expireAccess()
            for room in 0..<2 { world.harness.closeUpstream(room, code: 4001) }
            world.harness.advance(by: .seconds(1))
            #expect(world.isUp(0) && world.isUp(1), "\(time)")
            #expect(world.server.takeLog().filter { $0 != "/me" } == ["/refresh"], "\(time)")
        }
    }

    @Test("a token that served and ended in a short outage is renewed at once, however soon after the last")
    func servedAndEnded() throws {
        let world = try world(rooms: 1)
        for time in 1...5 {
            world.harness.acceptsConnections = false
            world.harness.endTransport(0, reason: "gone")
            world.server.expireAccess()
            while world.harness.upstreams[0].state != .connecting { world.harness.advance(by: .milliseconds(100)) }
            world.harness.refuse(0, status: 401)
            world.harness.advance(by: .seconds(1))
            world.harness.accept(0)
            #expect(world.isUp(0), "\(time)")
            #expect(world.server.takeLog().filter { $0 != "/me" } == ["/refresh"], "\(time)")
        }
    }

    @Test("a token that ends while another room is being sent away is renewed at once")
    func endedBeside() throws {
        let world = try world()
        world.harness.advance(by: .seconds(3600))
        _ = banish([1], world, after: .milliseconds(50), for: .seconds(20))
        _ = world.renewals()
        world.server.expireAccess()
        world.harness.closeUpstream(0, code: 4001)
        world.harness.advance(by: .seconds(1))
        #expect(world.renewals() == 0, "there is a newer one already")
        #expect(world.isUp(0))
    }

    @Test("a token that ended in an outage is renewed at once, although one was refused before the outage")
    func endedInOutage() throws {
        let world = try world(rooms: 1)
        world.harness.advance(by: .seconds(3600))
        world.harness.closeUpstream(0, code: 4001)
        world.harness.advance(by: .seconds(1))
        #expect(world.isUp(0))
        world.harness.acceptsConnections = false
        world.harness.endTransport(0, reason: "gone")
        for _ in 0..<240 {
            if world.harness.upstreams[0].state == .connecting { world.harness.endTransport(0, reason: "refused") }
            world.harness.advance(by: .seconds(10))
        }
        _ = world.renewals()
        world.server.expireAccess()
        while world.harness.upstreams[0].state != .connecting { world.harness.advance(by: .seconds(1)) }
        world.harness.refuse(0, status: 401)
        world.harness.advance(by: .seconds(1))
        world.harness.accept(0)
        #expect(world.renewals() == 1)
        #expect(world.isUp(0))
    }

    @Test("a login that lies elsewhere is blamed by its own name, with the server's reason and without the password")
    func loginElsewhere() throws {
        let dialect = AccountDialect()
        var room = RoomSettings(
            name: "one", backend: "main", dialect: dialect, url: try HTTPURL(parsing: "ws://chat.example/one"))
        room.ping = .zero
        let login = TemplateLogin(
            loginTarget: "https://id.example:8443/login", loginBody: [.init(name: "p", text: "{password}")])
        let backend = BackendSettings(
            name: "main", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"), user: "bridge",
            login: LoginSettings(calls: login), authenticates: true)
        let harness = BridgeHarness(
            settings: BridgeSettings(serverName: "bridge", instanceID: "t", rooms: [room], backends: [backend]))
        harness.accounts.secrets[0] = .success(.login(user: "bridge", password: "hunter2-secret"))
        harness.accounts.server = {
            $0.path == "https://id.example:8443/login"
                ? TokenServer.answer(401, #"{"error":{"message":"hunter2-secret is locked"}}"#) : nil
        }
        harness.start()
        #expect(
            harness.notes.first { $0.event == "backend-login-refused" }?.text
                == "the login at id.example was answered 401 (*** is locked); the next try is in 15 min, or when the "
                + "secrets change")
    }

    @Test("a token that is renewed ahead of its end tries a room that is refused once more, and is not refused itself")
    func renewedAhead() throws {
        let world = try world(lifetime: 600_000, closed: 1)
        func turnAway(for time: Duration) {
            let end = world.harness.clock.now.monotonic + time
            while world.harness.clock.now.monotonic < end {
                if world.harness.upstreams[1].state == .connecting { world.harness.refuse(1, status: 403) }
                world.harness.advance(by: .milliseconds(50))
            }
        }
        turnAway(for: .seconds(30))
        #expect(world.renewals() == 1)
        let before = world.harness.upstreams[1].connectCount
        turnAway(for: .seconds(560))
        #expect(world.harness.upstreams[1].connectCount == before + 1)
        #expect(world.renewals() == 1)
    }
}
