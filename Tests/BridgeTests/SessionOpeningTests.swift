import BridgeTestSupport
import BridgeTypes
import ChatModel
import DescribedDialects
import Dialects
import JSONText
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms
@testable import Upstream

@Suite("Opening a session")
struct SessionOpeningTests {
    static let login: ChatCredentials = .accessToken("hunter2")

    private static func full(_ change: (inout DialectTraits) -> Void = { _ in }) -> StubDialect {
        StubDialect {
            $0.opening = [.authenticates, .subscribes]
            $0.waitsForReady = true
            change(&$0)
        }
    }

    @Test("login, subscription and readiness come one after the other, and only then messages go up")
    func wholeOpening() throws {
        let stage = try SessionStage(Self.full(), socket: Self.login)
        stage.harness.start()
        stage.enter("bob")
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        #expect(stage.sent().map(\.text) == [#"{"kind":"auth","access_token":"hunter2"}"#])
        stage.backend(#"{"kind":"auth","state":"ok"}"#)
        #expect(stage.sent().map(\.text) == [#"{"kind":"subscribe","room":"lobby","limit":50}"#])
        #expect(stage.harness.bridge.roomStates[0].link == .connecting)
        stage.backend(#"{"kind":"ready","room":"17"}"#)
        #expect(stage.harness.bridge.roomStates[0].isUp)
        #expect(stage.room.lane.dialectContext.announcedRoom == "17")
        #expect(stage.sent().map { $0["text"]?.string } == ["hello"])
    }

    struct OpeningRow: CustomTestStringConvertible {
        var testDescription: String
        var opening: DialectTraits.Opening
        var waits = false
        var hasToken = true
        /// Kinds that are sent, with what the backend says between them.
        var conversation: [String]
        var isUp = true
    }

    static let openingRows: [OpeningRow] = [
        OpeningRow(testDescription: "nothing at all", opening: [], conversation: []),
        OpeningRow(
            testDescription: "login alone", opening: .authenticates,
            conversation: ["auth", #"<{"kind":"auth","state":"ok"}"#]),
        OpeningRow(
            testDescription: "login without a token", opening: .authenticates, hasToken: false, conversation: []),
        OpeningRow(testDescription: "subscription alone", opening: .subscribes, conversation: ["subscribe"]),
        OpeningRow(
            testDescription: "readiness alone", opening: [], waits: true, conversation: [#"<{"kind":"ready"}"#]),
        OpeningRow(
            testDescription: "a history is readiness too", opening: .subscribes, waits: true,
            conversation: ["subscribe", #"<{"kind":"history","messages":[]}"#]),
        OpeningRow(
            testDescription: "readiness before the login is answered", opening: [.authenticates, .subscribes],
            waits: true,
            conversation: ["auth", #"<{"kind":"ready"}"#, #"<{"kind":"auth","state":"ok"}"#, "subscribe"]),
        OpeningRow(
            testDescription: "login without an answer", opening: .authenticates, conversation: ["auth"], isUp: false),
        OpeningRow(testDescription: "never ready", opening: [], waits: true, conversation: [], isUp: false),
    ]

    @Test("each way of opening says what it must and no more", arguments: openingRows)
    func openings(row: OpeningRow) throws {
        let dialect = StubDialect {
            $0.opening = row.opening
            $0.waitsForReady = row.waits
        }
        let stage = try SessionStage(dialect, socket: row.hasToken ? Self.login : nil)
        stage.harness.start()
        var told = ["0 connect"]
        for line in row.conversation {
            if line.hasPrefix("<") { stage.backend(String(line.dropFirst())) } else { told.append("0 " + line) }
        }
        #expect(stage.seen() == told)
        #expect(stage.harness.bridge.roomStates[0].isUp == row.isUp)
        #expect(stage.harness.violations == [])
    }

    struct FailureRow: CustomTestStringConvertible {
        var testDescription: String
        var said: [String]
        var wait: Duration = .zero
        var reason: String
        var isRefusal = false
    }

    static let failureRows: [FailureRow] = [
        FailureRow(
            testDescription: "login refused", said: [#"{"kind":"auth","state":"failed","text":"wrong token"}"#],
            reason: "the backend refused the login: wrong token", isRefusal: true),
        FailureRow(
            testDescription: "login expired", said: [#"{"kind":"auth","state":"expired"}"#],
            reason: "the backend says that the login has expired", isRefusal: true),
        FailureRow(
            testDescription: "login too late", said: [#"{"kind":"auth","state":"timeout"}"#],
            reason: "the backend waited too long for the login", isRefusal: true),
        FailureRow(
            testDescription: "login without an answer", said: [], wait: .seconds(10),
            reason: "the backend did not answer the login in time"),
        FailureRow(
            testDescription: "a fatal error", said: [#"{"kind":"error","text":"Room not found","fatal":true}"#],
            reason: "the backend refused the session: Room not found"),
        FailureRow(
            testDescription: "never ready, after a complaint",
            said: [#"{"kind":"auth","state":"ok"}"#, #"{"kind":"error","text":"FORBIDDEN"}"#], wait: .seconds(10),
            reason: "the backend did not say in time that the room is ready; it said: FORBIDDEN"),
    ]

    @Test("what goes wrong while opening is a failed attempt with its sentence", arguments: failureRows)
    func failures(row: FailureRow) throws {
        let stage = try SessionStage(Self.full(), socket: Self.login)
        stage.harness.start()
        for frame in row.said { stage.backend(frame) }
        stage.harness.advance(by: row.wait)
        #expect(stage.room.link.lastReason == row.reason)
        #expect(stage.room.link.hasBeenUp == false)
        // Once more at once, with credentials that are asked for as refused.
        #expect(stage.harness.credentialReads == (row.isRefusal ? [false, true] : [false]))
        stage.harness.advance(by: .seconds(2))
        #expect(stage.harness.credentialReads.count == 2)
    }

    @Test(
        "a description's condition that no frame meets is named, with what came instead and no texts",
        arguments: [
            (#""ready_when":{"/k":"in","/ok":true}"#, [], "; ready_when waits for a frame, and none came"),
            (
                #""ready_when":{"/k":"in","/ok":true}"#,
                [#"{"k":"hi","t":"s3cret"}"#, #"{"k":"hi"}"#, #"{"k":"in","ok":false}"#, #"{"k":"well, hello"}"#],
                #"; no frame met ready_when, what came has /k "hi" /ok absent, /k "in" /ok false, /k a text /ok absent"#
            ),
            ("", [#"{"k":7}"#, "nonsense"], "; no frame met rule 0, what came has /k 7, no JSON"),
        ] as [(String, [String], String)])
    func neverReady(_ condition: String, _ frames: [String], _ words: String) throws {
        let rule = condition.isEmpty ? #"{"when":{"/k":"in"},"event":"ready"}"# : ""
        let json = #"{\#(condition)\#(condition.isEmpty ? "" : ",")"decode":[\#(rule)]}"#
        let stage = try SessionStage(CustomDialect(CustomDefinition(JSONValue(parsing: json))))
        stage.harness.start()
        for frame in frames { stage.backend(frame) }
        stage.harness.advance(by: .seconds(10))
        #expect(stage.room.link.lastReason == "the backend did not say in time that the room is ready" + words)
    }

    @Test("after the second refusal there is one try in 15 minutes, and one at once with other credentials")
    func refusedTwice() throws {
        let stage = try SessionStage(Self.full(), socket: Self.login)
        stage.harness.start()
        stage.enter("bob")
        for _ in 0..<2 { stage.backend(#"{"kind":"auth","state":"failed"}"#) }
        #expect(stage.heard().last?.contains("refuses the bridge: the backend refused the login") == true)
        _ = stage.seen()
        stage.harness.advance(by: .seconds(800))
        #expect(stage.seen() == [])
        #expect(stage.harness.credentialReads.dropFirst(2).allSatisfy { !$0 }, "looking is not asking for a new login")
        stage.harness.credentials[0] = .success(UpstreamCredentials(socket: .accessToken("other")))
        stage.harness.advance(by: .seconds(10))
        #expect(stage.seen() == ["0 connect", "0 auth"])
        stage.backend(#"{"kind":"auth","state":"ok"}"#)
        stage.backend(#"{"kind":"ready"}"#)
        #expect(stage.harness.bridge.roomStates[0].isUp)
    }

    @Test("what is said before the room is ready is shown when it is, typing excepted")
    func earlyMessages() throws {
        let stage = try SessionStage(StubDialect { $0.waitsForReady = true })
        stage.harness.start()
        stage.enter("bob")
        stage.backend(SessionStage.message("1", "early"))
        stage.backend(#"{"kind":"typing","state":"start","sender":{"id":"u-ann","name":"ann"}}"#)
        #expect(stage.said() == [])
        stage.backend(#"{"kind":"ready"}"#)
        stage.backend(SessionStage.message("2", "late"))
        #expect(stage.said() == ["ann: early", "ann: late"])
    }

    @Test("a room that never gets ready does not keep what is said there for ever")
    func neverReady() throws {
        let stage = try SessionStage(StubDialect { $0.waitsForReady = true })
        stage.harness.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(5))
        stage.backend(SessionStage.message("1", "early"))
        stage.harness.advance(by: .seconds(9))
        #expect(stage.said() == [])
        stage.harness.advance(by: .seconds(1))
        #expect(stage.said() == ["ann: early"])
    }

    // MARK: - Signs of life

    @Test("a ping inside the JSON is answered at once, even while the login is open")
    func pong() throws {
        let stage = try SessionStage(Self.full(), socket: Self.login)
        stage.harness.start()
        _ = stage.sent()
        stage.backend(#"{"kind":"ping","ref":"k"}"#)
        #expect(stage.sent().map(\.text) == [#"{"kind":"pong","ref":"k"}"#])
    }

    @Test("replies that the wire's rules want are sent, and such a frame is no puzzle")
    func automaticReplies() throws {
        let stage = try SessionStage(StubDialect { $0.repliesByRule = true })
        stage.harness.start()
        stage.backend(#"{"kind":"riddle","want":7}"#)
        #expect(stage.sent().map(\.text) == [#"{"kind":"reply","to":7}"#])
        #expect(stage.notes("frame-dropped").isEmpty)
        stage.backend(#"{"kind":"riddle"}"#)
        #expect(stage.notes("frame-dropped").count == 1)
    }

    @Test("of the frames that were dropped for a reason the first ten are logged, and then every thousandth")
    func droppedFrames() throws {
        let stage = try SessionStage(StubDialect())
        stage.harness.start()
        for _ in 0..<2000 { stage.backend(#"{"kind":"riddle"}"#) }
        let counts = stage.notes("frame-dropped").map { $0.metadata["count"] }
        #expect(counts == (Array(1...10) + [1000, 2000]).map { String($0) })
        stage.backend("no JSON")
        #expect(stage.notes("frame-dropped").count == counts.count + 1)
    }

    @Test("silence leads to a ping inside the JSON, and more of it to a new link", arguments: [nil, 40] as [Int?])
    func jsonPing(interval: Int?) throws {
        let dialect = StubDialect {
            $0.liveness = .jsonPing
            $0.pingInterval = interval.map { .seconds($0) }
        }
        let stage = try SessionStage(dialect) { $0.ping = .seconds(20) }
        let silence = Duration.seconds(interval ?? 25)
        stage.harness.start()
        stage.harness.advance(by: .seconds(15))
        stage.backend(#"{"kind":"pong"}"#)
        _ = stage.seen()
        stage.harness.advance(by: silence - .milliseconds(1))
        #expect(stage.seen() == [])
        stage.harness.advance(by: .milliseconds(1))
        #expect(stage.seen() == ["0 ping"])
        stage.backend(#"{"kind":"pong"}"#)
        stage.harness.advance(by: silence)
        #expect(stage.seen() == ["0 ping"])
        stage.harness.advance(by: .seconds(10))
        #expect(stage.seen() == ["0 disconnect"])
        #expect(stage.room.link.lastReason == "the backend did not answer a ping in time")
    }

    @Test("a pause that somebody chose holds for pings inside the JSON too")
    func chosenJSONPing() throws {
        let stage = try SessionStage(StubDialect { $0.liveness = .jsonPing }) { $0.ping = .seconds(3) }
        stage.harness.start()
        _ = stage.seen()
        stage.harness.advance(by: .seconds(3))
        #expect(stage.seen() == ["0 ping"])
    }

    // MARK: - Renewing the login

    private static func live(_ change: (inout DialectTraits) -> Void = { _ in }) throws -> SessionStage {
        let stage = try SessionStage(
            StubDialect {
                $0.opening = .authenticates
                change(&$0)
            }, socket: login)
        stage.harness.start()
        stage.backend(#"{"kind":"auth","state":"ok"}"#)
        stage.enter("bob")
        _ = stage.seen()
        _ = stage.sent()
        return stage
    }

    @Test("a login that expires is renewed on the open socket, and what was missed is fetched")
    func expiry() throws {
        let stage = try Self.live { $0.history = .socket }
        // The first history.
        stage.backend(SessionStage.history([SessionStage.message("1", "one", at: -9)]))
        stage.harness.credentials[0] = .success(UpstreamCredentials(socket: .accessToken("second")))
        stage.backend(#"{"kind":"auth","state":"expired"}"#)
        stage.backend(#"{"kind":"auth","state":"expired"}"#)
        #expect(stage.harness.credentialReads == [false, true])
        #expect(stage.sent().map(\.text) == [#"{"kind":"auth","access_token":"second"}"#])
        stage.backend(#"{"kind":"auth","state":"ok"}"#)
        #expect(stage.seen() == ["0 auth", "0 fetch"])
        stage.backend(
            SessionStage.history([
                SessionStage.message("1", "one", at: -9), SessionStage.message("2", "missed", at: 1),
            ]))
        #expect(stage.said() == ["ann: missed"])
        #expect(stage.harness.bridge.roomStates[0].isUp)
    }

    @Test(
        "what the backend refuses since the login has ended goes again with the next login, and nothing goes before it",
        arguments: [DialectTraits.HistorySource.none, .socket])
    func saidAsTheLoginEnds(history: DialectTraits.HistorySource) throws {
        let stage = try Self.live {
            $0.history = history
            $0.confirmation = .receipt
        }
        func sendHistory() { if history == .socket { stage.backend(SessionStage.history([])) } }
        sendHistory()
        stage.harness.credentials[0] = .success(UpstreamCredentials(socket: .accessToken("second")))
        stage.harness.send(1, "PRIVMSG #lobby :one")
        let frame = try #require(stage.sent().first { $0["kind"]?.string == "message" })
        let id = try #require(frame["id"]?.string)
        stage.backend(#"{"kind":"auth","state":"expired"}"#)
        stage.backend("{\"kind\":\"error\",\"ref\":\"\(id)\",\"text\":\"no permission\"}")
        stage.harness.send(1, "PRIVMSG #lobby :two")
        #expect(stage.sent().map { $0["kind"]?.string } == ["auth"])
        stage.backend(#"{"kind":"auth","state":"ok"}"#)
        sendHistory()
        #expect(stage.sent().compactMap { $0["text"]?.string } == ["one", "two"])
        #expect(!stage.heard().contains { $0.contains("CANNOT_DELIVER") })
    }

    @Test("a token that is renewed ahead of its end is shown on the open socket, and nothing is fetched")
    func renewedAhead() throws {
        let stage = try Self.live()
        stage.harness.perform { _, _ in
            stage.room.tokenRenewed(
                UpstreamCredentials(socket: .accessToken("second")), stage.harness.bridge.context)
        }
        stage.backend(#"{"kind":"auth","state":"ok"}"#)
        #expect(stage.sent().map(\.text) == [#"{"kind":"auth","access_token":"second"}"#])
        stage.harness.advance(by: .seconds(60))
        #expect(stage.harness.bridge.roomStates[0].isUp)
    }

    @Test("while a renewed login is not answered nothing is said: it might overtake what the old one is refused for")
    func saidWhileRenewing() throws {
        let stage = try Self.live { $0.confirmation = .receipt }
        stage.harness.send(1, "PRIVMSG #lobby :one")
        let id = try #require(stage.sent().first { $0["kind"]?.string == "message" }?["id"]?.string)
        stage.harness.perform { _, _ in
            stage.room.tokenRenewed(
                UpstreamCredentials(socket: .accessToken("second")), stage.harness.bridge.context)
        }
        stage.harness.send(1, "PRIVMSG #lobby :two")
        #expect(stage.sent().map { $0["kind"]?.string } == ["auth"])
        // The old one was revoked before it would have ended.
        stage.backend("{\"kind\":\"error\",\"ref\":\"\(id)\",\"text\":\"no permission\"}")
        stage.backend(#"{"kind":"auth","state":"ok"}"#)
        #expect(stage.sent().compactMap { $0["text"]?.string } == ["one", "two"])
        #expect(!stage.heard().contains { $0.contains("CANNOT_DELIVER") })
    }

    @Test("a renewed login that nobody answers, or that is refused, ends the link", arguments: [true, false])
    func renewalFails(isRefused: Bool) throws {
        let stage = try Self.live()
        stage.harness.credentials[0] = .success(UpstreamCredentials(socket: .accessToken("second")))
        stage.backend(#"{"kind":"auth","state":"expired"}"#)
        if isRefused {
            stage.backend(#"{"kind":"auth","state":"failed"}"#)
            #expect(stage.room.link.lastReason == "the backend refused the login")
        } else {
            stage.harness.advance(by: .seconds(10))
            #expect(stage.room.link.lastReason == "the backend did not answer the renewed login in time")
        }
        #expect(stage.seen().prefix(2) == ["0 auth", "0 disconnect"])
    }

    @Test("a login that has expired is not shown again on the same socket")
    func expiryWithoutAnother() throws {
        let stage = try Self.live()
        stage.harness.advance(by: .seconds(3600))
        _ = stage.seen()
        stage.backend(#"{"kind":"auth","state":"expired"}"#)
        #expect(stage.room.link.lastReason == "the login has expired, and there is no other")
        #expect(stage.seen() == ["0 disconnect", "0 connect", "0 auth"], "a new link, at once")
        stage.backend(#"{"kind":"auth","state":"expired"}"#)
        #expect(stage.seen() == ["0 disconnect", "0 connect", "0 auth"], "which opens no session: refused, once more")
        stage.backend(#"{"kind":"auth","state":"expired"}"#)
        stage.harness.advance(by: .seconds(880))
        #expect(stage.seen() == ["0 disconnect"], "and then in 15 minutes")
    }

    @Test("logins that expire as soon as they are taken are shown after ever longer pauses, whatever is shown")
    func expiryAtOnce() throws {
        let stage = try Self.live()
        var shown = 0
        for count in 0..<(3600 * 4) {
            if stage.room.link.state == .open {
                stage.harness.credentials[0] = .success(UpstreamCredentials(socket: .accessToken("token \(count)")))
                if stage.room.link.isUp { stage.backend(#"{"kind":"auth","state":"expired"}"#) }
                if stage.room.link.state == .open { stage.backend(#"{"kind":"auth","state":"ok"}"#) }
                // Others would end the wait.
                stage.harness.credentials[0] = .success(stage.room.link.credentials)
            }
            shown += stage.seen().count { $0 == "0 auth" }
            stage.harness.advance(by: .milliseconds(250))
        }
        // One on the open socket and one on the next link, 13 times in an hour.
        #expect((10...30).contains(shown), "\(shown)")
        #expect(stage.room.link.lastReason == "the backend says that the login has expired")
    }

    @Test("an answer to a renewed login that says no more than expired ends the link as a refusal")
    func expiredAgain() throws {
        let stage = try Self.live()
        stage.harness.advance(by: .seconds(3600))
        stage.harness.credentials[0] = .success(UpstreamCredentials(socket: .accessToken("second")))
        stage.backend(#"{"kind":"auth","state":"expired"}"#)
        stage.backend(#"{"kind":"auth","state":"expired"}"#)
        let reads = stage.harness.credentialReads.count
        stage.harness.advance(by: .seconds(10))
        #expect(stage.room.link.lastReason == "the backend says that the renewed login has expired")
        #expect(Array(stage.harness.credentialReads.dropFirst(reads)) == [true])
    }

    @Test("a login that was not on the socket and expires is renewed by a new link")
    func expiryElsewhere() throws {
        let stage = try SessionStage(StubDialect())
        stage.harness.start()
        stage.harness.advance(by: .seconds(5))
        stage.backend(#"{"kind":"auth","state":"expired"}"#)
        #expect(stage.seen() == ["0 connect", "0 disconnect", "0 connect"])
    }

    // MARK: - Taking turns

    @Test("rooms of a backend that has few connections open one after the other")
    func turns() throws {
        let dialect = StubDialect {
            $0.connectsInTurn = true
            $0.waitsForReady = true
        }
        let stage = try SessionStage(dialect, rooms: 3)
        stage.harness.start()
        stage.harness.advance(by: .seconds(1))
        #expect(stage.seen() == ["0 connect"])
        stage.backend(#"{"kind":"ready"}"#, room: 0)
        stage.harness.advance(by: .seconds(1))
        #expect(stage.seen() == ["1 connect"])
        stage.harness.endTransport(1, reason: "reset")
        stage.harness.advance(by: .milliseconds(500))
        #expect(stage.seen() == ["2 connect"])
        stage.harness.advance(by: .seconds(5))
        #expect(stage.seen() == [], "room 1 waits for room 2")
        stage.backend(#"{"kind":"ready"}"#, room: 2)
        stage.harness.advance(by: .milliseconds(100))
        #expect(stage.seen() == ["1 connect"])
    }

    @Test(
        "a 500 and a stalled opening are overload: the backend is left alone for half a minute", arguments: [500, nil])
    func overload(status: Int?) throws {
        let dialect = StubDialect {
            $0.connectsInTurn = true
            $0.waitsForReady = true
        }
        let stage = try SessionStage(dialect, rooms: 2)
        if status != nil { stage.harness.acceptsConnections = false }
        stage.harness.start()
        stage.harness.advance(by: .milliseconds(100))
        if let status {
            stage.harness.refuse(0, status: status)
        } else {
            stage.harness.advance(by: .seconds(10))
        }
        #expect(stage.room.link.lastReason?.hasSuffix(", as an overloaded backend does") == true)
        _ = stage.seen()
        stage.harness.advance(by: .seconds(29))
        #expect(stage.seen() == [])
        stage.harness.advance(by: .seconds(2))
        #expect(stage.seen().filter { $0.hasSuffix("connect") }.count == 1)
    }

    @Test("a backend that is left alone holds up the links of no other")
    func otherBackends() throws {
        let stage = try SessionStage(StubDialect())
        stage.harness.start()
        stage.harness.advance(by: .seconds(1))
        let (context, overloaded) = (stage.harness.bridge.context, RoomID(index: -99))
        stage.harness.perform { _, _ in
            let connects = context.upstream.connects
            connects.request(overloaded, inTurnOf: "another", &context.turn)
            _ = connects.grant(&context.turn)
            connects.endTurn(of: "another", overloaded, pause: .seconds(30), &context.turn)
            connects.request(overloaded, inTurnOf: "another", &context.turn)
            _ = connects.grant(&context.turn)
        }
        stage.harness.endTransport(0, reason: "reset")
        stage.harness.advance(by: .seconds(3))
        #expect(stage.room.link.isUp)
    }

    @Test("where frames name rooms, those of other rooms are left alone")
    func otherRooms() throws {
        let stage = try SessionStage(StubDialect())
        stage.harness.start()
        stage.enter("bob")
        stage.backend(SessionStage.message("1", "here", more: #""room":"lobby","#))
        stage.backend(SessionStage.message("2", "elsewhere", more: #""room":"attic","#))
        stage.backend(SessionStage.message("3", "anywhere"))
        #expect(stage.said() == ["ann: here", "ann: anywhere"])
    }

    @Test("where the wire wants it, a message that reached somebody is acknowledged, one's own is not")
    func delivered() throws {
        let stage = try SessionStage(
            StubDialect {
                $0.reportsDelivery = true
                $0.confirmation = .echoByID
            })
        stage.harness.start()
        stage.backend(SessionStage.message("1", "to nobody"))
        stage.enter("bob")
        _ = stage.sent()
        stage.backend(SessionStage.message("2", "to bob"))
        let receipts = stage.sent().filter { $0["kind"]?.string == "receipt" }
        #expect(receipts.map { $0["state"]?.string } == ["delivered"])
        #expect(receipts.first?["ids"]?.array?.compactMap(\.string) == ["2"])
    }

    @Test("a backend's own words that end in a full stop do not end in two")
    func fullStops() throws {
        let stage = try SessionStage(StubDialect())
        stage.harness.start()
        stage.enter("bob")
        stage.harness.endTransport(0, reason: "it is late.")
        #expect(stage.heard().contains { $0.contains("it is late. What") })
    }

    @Test("rooms of other backends do not wait")
    func noTurns() throws {
        let stage = try SessionStage(StubDialect { $0.waitsForReady = true }, rooms: 3)
        stage.harness.start()
        #expect(stage.seen() == ["0 connect", "1 connect", "2 connect"])
    }
}
