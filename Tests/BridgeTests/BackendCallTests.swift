import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Calls beside the socket")
struct BackendCallTests {
    private func harness(
        server: TokenServer, limits: BackendLimits = BackendLimits(), answers: Bool = true, rooms count: Int = 1
    ) throws -> BridgeHarness {
        let dialect = AccountDialect()
        let rooms = try (0..<count).map { number in
            var room = RoomSettings(
                name: "r\(number)", backend: "main", dialect: dialect,
                url: try HTTPURL(parsing: "ws://chat.example/r\(number)"))
            room.ping = .zero
            return room
        }
        let backend = BackendSettings(
            name: "main", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"), user: "bridge",
            login: LoginSettings(), limits: limits)
        var settings = BridgeSettings(serverName: "bridge", instanceID: "t", rooms: rooms, backends: [backend])
        settings.template = RoomTemplate(backend: "main") { _ in nil }
        let harness = BridgeHarness(settings: settings)
        harness.accounts.secrets[0] = .success(.login(user: "bridge", password: "hunter2-secret"))
        harness.accounts.server = { server.answer($0) }
        harness.start()
        _ = server.takeLog()
        _ = harness.accounts.takeCalls()
        if !answers { harness.accounts.server = nil }
        return harness
    }

    private func askHistory(_ harness: BridgeHarness, room: Int = 0, limit: Int = 50) {
        harness.perform { bridge, now in
            bridge.context.now = now
            bridge.context.requestHistory(RoomID(index: room), HistoryQuery(room: "r\(room)", limit: limit))
        }
    }

    private func askRooms(_ harness: BridgeHarness) {
        harness.perform { bridge, now in
            bridge.context.now = now
            bridge.irc.askForTemplateRooms()
        }
    }

    private func failures(_ harness: BridgeHarness) -> [String] {
        harness.notes.filter { $0.event == "backend-call-failed" }.map { "\($0.metadata["call"] ?? ""): \($0.text)" }
    }

    @Test("history, read marks and rooms are asked for with the account's token")
    func asks() throws {
        let server = TokenServer()
        let harness = try harness(server: server)
        // The list was asked for at the start.
        harness.advance(by: .seconds(61))
        askHistory(harness)
        harness.perform { bridge, _ in bridge.context.requestMarkRead(RoomID(index: 0)) }
        askRooms(harness)
        askRooms(harness)
        #expect(server.takeLog() == ["/history/r0", "/read/r0", "/rooms"])
        #expect(harness.bridge.irc.directory.listing?.entries.map(\.room.name) == ["General", "Random"])
        #expect(harness.accounts.calls.allSatisfy { $0.token == "acc-secret-1" })
        harness.advance(by: .seconds(61))
        askRooms(harness)
        #expect(server.takeLog() == ["/rooms"])
        #expect(failures(harness) == [])
    }

    @Test("calls of a backend that gets other settings fail at once, those under way and those that wait")
    func otherSettings() throws {
        let server = TokenServer()
        let harness = try harness(
            server: server, limits: BackendLimits(callsAtOnce: 1), answers: false, rooms: 3)
        for room in [1, 2] { askHistory(harness, room: room) }
        let old = harness.accounts.takeCalls()
        #expect(old.map(\.path) == ["/history/r1"])
        harness.accounts.server = { server.answer($0) }
        harness.perform { $0.reload(harness.settings, reconnecting: ["r0"], backends: ["main"], now: $1) }
        #expect(failures(harness) == Array(repeating: "history: chat.example has other settings now", count: 2))
        // What the old one still brings is nobody's.
        for call in old {
            harness.perform { $0.backendAnswered(call.id, call.order.backend, TokenServer.answer(200), now: $1) }
        }
        harness.advance(by: .seconds(1))
        _ = server.takeLog()
        askHistory(harness, room: 1)
        #expect(server.takeLog() == ["/history/r1"])
        #expect(failures(harness).count == 2)
    }

    @Test("a room that waits for credentials gets those of the account with other settings")
    func otherSettingsWhileWaiting() throws {
        let server = TokenServer()
        let harness = BridgeHarness(settings: try harness(server: server, rooms: 2).settings)
        harness.accounts.secrets[0] = .success(.login(user: "bridge", password: "hunter2-secret"))
        harness.start()
        #expect(harness.accounts.takeCalls().map(\.path) == ["/login"])
        harness.accounts.server = { server.answer($0) }
        harness.perform { $0.reload(harness.settings, reconnecting: ["r0"], backends: ["main"], now: $1) }
        harness.advance(by: .seconds(1))
        #expect(harness.bridge.rooms.allSatisfy { $0.link.isUp })
    }

    @Test("a stale token is renewed once and the call made again")
    func staleToken() throws {
        let server = TokenServer()
        let harness = try harness(server: server, rooms: 3)
        server.expireAccess()
        for room in 0..<3 { askHistory(harness, room: room) }
        let log = server.takeLog()
        #expect(log.count { $0 == "/refresh" } == 1)
        #expect(log.count { $0.hasPrefix("/history") } == 4)
        #expect(failures(harness) == [])
    }

    @Test("calls that were refused at once share one renewal")
    func staleTokenRace() throws {
        let server = TokenServer()
        let harness = try harness(server: server, answers: false, rooms: 3)
        server.expireAccess()
        for room in 0..<3 { askHistory(harness, room: room) }
        let calls = harness.accounts.takeCalls()
        #expect(calls.count == 3)
        for call in calls {
            harness.perform { $0.backendAnswered(call.id, call.order.backend, TokenServer.answer(401), now: $1) }
        }
        #expect(harness.accounts.takeCalls().map(\.path) == ["/refresh"])
    }

    @Test("a call that is refused with a fresh token too fails with the backend's words, without secrets")
    func refusedTwice() throws {
        let server = TokenServer()
        let harness = try harness(server: server)
        let refused = TokenServer.answer(401, "{\"detail\":\"acc-secret-2 and hunter2-secret\\r\\nare bad\"}")
        server.trouble["/history/r0"] = [refused, refused]
        askHistory(harness)
        #expect(server.takeLog() == ["/history/r0", "/refresh", "/history/r0"])
        #expect(
            failures(harness) == ["history: a call at chat.example was answered 401 (*** and ***are bad)"])
    }

    @Test("a kind of call that no token helps costs one renewal in 15 minutes, and the others are renewed as ever")
    func refusedWhateverIsShown() throws {
        let server = TokenServer()
        server.lifetime = nil
        let harness = try harness(server: server, rooms: 2)
        server.trouble["/history/r0"] = Array(repeating: TokenServer.answer(401), count: 100)
        for _ in 0..<14 {
            askHistory(harness)
            harness.advance(by: .seconds(60))
        }
        #expect(server.takeLog().count { $0 == "/refresh" } == 1)
        // A token that ended a moment after it was taken.
        askHistory(harness, room: 1)
        #expect(server.takeLog() == ["/history/r1"])
        for _ in 0..<3 {
            server.expireAccess()
            askHistory(harness, room: 1)
            #expect(server.takeLog() == ["/history/r1", "/refresh", "/history/r1"])
        }
        // Once it is answered, the next refusal is about the token again.
        harness.advance(by: .seconds(120))
        server.trouble["/history/r0"] = nil
        askHistory(harness)
        server.expireAccess()
        _ = server.takeLog()
        askHistory(harness)
        #expect(server.takeLog() == ["/history/r0", "/refresh", "/history/r0"])
    }

    @Test("403 with a token that is good elsewhere is about what was asked")
    func forbidden() throws {
        let server = TokenServer()
        let harness = try harness(server: server)
        server.trouble["/history/r0"] = [TokenServer.answer(403)]
        askHistory(harness)
        #expect(server.takeLog() == ["/history/r0"])
        #expect(failures(harness) == ["history: a call at chat.example was answered 403"])
    }

    struct PauseRow: CustomTestStringConvertible {
        var testDescription: String
        var answers: [Result<BackendCallResponse, BackendCallFailure>]
        /// Seconds at which the history is asked for.
        var tries: [Int]
        var failure: String?
    }

    @Test(
        "a backend in trouble is asked again, as late as it wants, or not at all",
        arguments: [
            PauseRow(
                testDescription: "429 with a wish", answers: [TokenServer.answer(429, retryAfter: .seconds(5))],
                tries: [0, 5]),
            PauseRow(testDescription: "429 without", answers: [TokenServer.answer(429)], tries: [0, 1]),
            PauseRow(
                testDescription: "429 with a wish beyond the time there is",
                answers: [TokenServer.answer(429, retryAfter: .seconds(500))], tries: [0],
                failure: "history: a call at chat.example was answered 429"),
            PauseRow(
                testDescription: "503 again and again", answers: Array(repeating: TokenServer.answer(503), count: 5),
                tries: [0, 1, 3], failure: "history: a call at chat.example was answered 503"),
            PauseRow(
                testDescription: "a lost connection",
                answers: [.failure(BackendCallFailure(sentence: "chat.example: connection lost"))], tries: [0, 1]),
            PauseRow(
                testDescription: "404", answers: [TokenServer.answer(404)], tries: [0],
                failure: "history: a call at chat.example was answered 404"),
            PauseRow(
                testDescription: "no JSON", answers: [TokenServer.answer(200, "<html>")], tries: [0],
                failure: "history: the answer of chat.example cannot be read (malformed)"),
        ])
    func pauses(row: PauseRow) throws {
        let server = TokenServer()
        let harness = try harness(server: server)
        server.trouble["/history/r0"] = row.answers
        askHistory(harness)
        var tries: [Int] = []
        for second in 0...40 {
            if server.takeLog().contains("/history/r0") { tries.append(second) }
            harness.advance(by: .seconds(1))
        }
        #expect(tries == row.tries)
        #expect(failures(harness) == (row.failure.map { [$0] } ?? []))
    }

    @Test("what cannot be done twice is not done twice when nobody knows whether it was done")
    func notRepeated() throws {
        let server = TokenServer()
        let harness = try harness(server: server)
        server.trouble["/read/r0"] = [.failure(BackendCallFailure(sentence: "connection lost"))]
        harness.perform { bridge, _ in bridge.context.requestMarkRead(RoomID(index: 0)) }
        harness.advance(by: .seconds(40))
        #expect(server.takeLog() == ["/read/r0"])
        #expect(failures(harness) == ["mark-read: connection lost"])
    }

    @Test("a kind of call that is broken keeps no other waiting, and is left alone longer each time")
    func brokenKind() throws {
        let server = TokenServer()
        let harness = try harness(server: server)
        server.trouble["/read/r0"] = Array(repeating: TokenServer.answer(500), count: 100)
        var marks: [Int] = []
        for second in 0..<120 {
            harness.perform { bridge, _ in bridge.context.requestMarkRead(RoomID(index: 0)) }
            askHistory(harness)
            let log = server.takeLog()
            if log.contains("/read/r0") { marks.append(second) }
            #expect(log.contains("/history/r0"), "\(second)")
            harness.advance(by: .seconds(1))
            _ = server.takeLog()
        }
        #expect(marks.count <= 8, "\(marks)")
        #expect(failures(harness).allSatisfy { $0.hasPrefix("mark-read: a call at chat.example was answered 500") })
    }

    @Test("of a room's wishes to be marked as read one waits")
    func oneMarkRead() throws {
        let server = TokenServer()
        let harness = try harness(server: server, rooms: 2)
        server.trouble["/read/r0"] = [TokenServer.answer(500)]
        for _ in 0..<5 {
            for room in 0..<2 {
                harness.perform { bridge, _ in bridge.context.requestMarkRead(RoomID(index: room)) }
            }
        }
        _ = server.takeLog()
        harness.advance(by: .seconds(2))
        #expect(server.takeLog() == ["/read/r1", "/read/r0"])
    }

    @Test("a backend that wants to be left alone is, by all calls; who cannot wait for it hears why, at once")
    func leftAlone() throws {
        let server = TokenServer()
        let harness = try harness(server: server)
        server.trouble["/read/r0"] = [TokenServer.answer(503, retryAfter: .seconds(20))]
        harness.perform { bridge, _ in bridge.context.requestMarkRead(RoomID(index: 0)) }
        _ = server.takeLog()
        askHistory(harness)
        harness.advance(by: .seconds(19))
        #expect(server.takeLog() == [])
        harness.advance(by: .seconds(1))
        #expect(server.takeLog().contains("/history/r0"))
        server.trouble["/read/r0"] = [TokenServer.answer(503, retryAfter: .seconds(300))]
        harness.perform { bridge, _ in bridge.context.requestMarkRead(RoomID(index: 0)) }
        _ = server.takeLog()
        let before = failures(harness).count
        askHistory(harness)
        #expect(failures(harness).dropFirst(before) == ["history: a call at chat.example was answered 503"])
        #expect(server.takeLog() == [])
        harness.advance(by: .seconds(300))
        askHistory(harness)
        #expect(server.takeLog().contains("/history/r0"))
    }

    @Test("a call that would end the same way each time is made once")
    func finalFailure() throws {
        let server = TokenServer()
        let harness = try harness(server: server)
        let tooLarge = BackendCallFailure(sentence: "chat.example: too large", isFinal: true)
        server.trouble["/history/r0"] = Array(repeating: .failure(tooLarge), count: 5)
        askHistory(harness)
        askHistory(harness)
        #expect(server.takeLog() == ["/history/r0", "/history/r0"], "and nothing else waits for it")
        harness.advance(by: .seconds(40))
        #expect(server.takeLog() == [])
        #expect(failures(harness) == Array(repeating: "history: chat.example: too large", count: 2))
    }

    @Test("so many calls at a time, so many wait, the rest fail at once")
    func bounds() throws {
        let server = TokenServer()
        let harness = try harness(
            server: server, limits: BackendLimits(callsAtOnce: 4, callsWaiting: 3), answers: false)
        for _ in 0..<10 { askHistory(harness) }
        let first = harness.accounts.takeCalls()
        #expect(first.count == 4)
        #expect(failures(harness).count == 3)
        #expect(first.allSatisfy { $0.order.timeout == .seconds(30) && $0.order.maxAnswerBytes == 8 * 1024 * 1024 })
        harness.advance(by: .seconds(10))
        let one = try #require(first.first)
        harness.perform { $0.backendAnswered(one.id, one.order.backend, TokenServer.answer(200, "[]"), now: $1) }
        #expect(harness.accounts.takeCalls().map(\.order.timeout) == [.seconds(20)])
        harness.advance(by: .seconds(25))
        #expect(failures(harness).count == 5, "those that waited were given up")
        // Late, double and unknown answers are nothing.
        for id in [one.id, BackendCallID(rawValue: 999)] {
            harness.perform { $0.backendAnswered(id, BackendID(index: 0), TokenServer.answer(401), now: $1) }
        }
        harness.perform { $0.backendAnswered(one.id, BackendID(index: 9), TokenServer.answer(401), now: $1) }
        #expect(harness.violations == [])
    }

    @Test("a room whose backend has no calls is told so")
    func noCalls() throws {
        var room = RoomSettings(name: "x", dialect: EnvelopeDialect(), url: try HTTPURL(parsing: "ws://chat.example/"))
        room.ping = .zero
        let backend = BackendSettings(name: "x", dialect: EnvelopeDialect(), httpBase: nil)
        let harness = BridgeHarness(
            settings: BridgeSettings(serverName: "b", instanceID: "t", rooms: [room], backends: [backend]))
        harness.start()
        askHistory(harness)
        #expect(failures(harness) == ["history: the backend has no call for that"])
    }
}
