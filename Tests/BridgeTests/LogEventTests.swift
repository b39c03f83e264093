import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import Media
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Media
@testable import Rooms

/// What the log is told of, event by event: level and metadata, by which operators search.
///
/// `Transcripts/89-log-*.txt` show those that clients and a plain link cause, `Tests/EndToEnd/logs.py` causes those of the program
/// around the core; ``LogEventCoverageTests`` wants each in one of the three.
@Suite("Events in the log")
struct LogEventTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var event: String
        /// Each note of the event, in order, as ``BridgeHarness/logged(_:)`` gives it.
        var notes: [String]
        var cause: @Sendable () throws -> BridgeHarness

        var testDescription: String { event }

        init(_ event: String, _ notes: [String], _ cause: @escaping @Sendable () throws -> BridgeHarness) {
            (self.event, self.notes, self.cause) = (event, notes, cause)
        }
    }

    static let rows: [Row] = roomRows + historyRows + ownLinkRows + backendRows + storeRows + accountRows

    @Test("an event has its level and its metadata", arguments: rows)
    func written(row: Row) throws {
        let harness = try row.cause()
        #expect(harness.logged(row.event) == row.notes)
        #expect(harness.violations == [])
    }

    // MARK: - Rooms and their wires

    private typealias S = SessionStage

    /// bob is in a room on that wire.
    private static func session(
        _ change: (inout DialectTraits) -> Void = { _ in }, socket: ChatCredentials? = nil,
        room: (inout RoomSettings) -> Void = { _ in }
    ) throws -> SessionStage {
        let stage = try SessionStage(StubDialect(change), socket: socket, room)
        stage.harness.start()
        stage.enter("bob", caps: "echo-message message-tags standard-replies")
        return stage
    }

    /// One account speaks for all, and nothing confirms.
    private static func unconfirmed(_ traits: inout DialectTraits) {
        (traits.identity, traits.messageIDOrigin, traits.confirmation) = (.single, .server, .none)
    }

    private static let roomRows: [Row] = [
        Row("action-refused", ["warn room=lobby"]) {
            let stage = try session(unconfirmed)
            stage.backend(S.message("1", "soup", at: 1))
            let msgid = try #require(stage.room.recent.newest).msgid
            stage.harness.send(1, "@+reply=\(msgid);+draft/react=👍 TAGMSG #lobby")
            stage.backend(#"{"kind":"error","text":"no"}"#)
            return stage.harness
        },
        Row("backend-auth", ["debug room=lobby", "error room=lobby"]) {
            let stage = try session({ $0.opening = .authenticates }, socket: .accessToken("t"))
            stage.backend(#"{"kind":"auth","state":"ok"}"#)
            stage.backend(#"{"kind":"auth","state":"expired"}"#)
            return stage.harness
        },
        Row("backend-error", ["warn code=busy room=lobby", "error code=gone room=lobby"]) {
            let stage = try session()
            stage.backend(#"{"kind":"error","code":"busy","text":"slowly"}"#)
            stage.backend(#"{"kind":"error","code":"gone","text":"the room is closed","fatal":true}"#)
            return stage.harness
        },
        Row("echo-learned", ["info room=lobby"]) { try echoStage().harness },
        Row("echo-absent", ["info room=lobby"]) {
            let stage = try echoStage()
            stage.harness.send(1, "PRIVMSG #lobby :two")
            stage.harness.advance(by: .seconds(10))
            return stage.harness
        },
        Row("complaint-unclear", ["warn room=lobby"]) {
            let stage = try session { $0.confirmation = .echoByText }
            for text in ["one", "two"] { stage.harness.send(1, "PRIVMSG #lobby :" + text) }
            stage.backend(#"{"kind":"error","text":"no"}"#)
            return stage.harness
        },
        Row("message-failed", ["warn room=lobby"]) {
            let stage = try session(room: { $0.queueMaxAge = .seconds(1) })
            stage.harness.acceptsConnections = false
            stage.loseLink()
            stage.harness.send(1, "PRIVMSG #lobby :too late")
            stage.harness.advance(by: .seconds(2))
            return stage.harness
        },
        Row("message-up", ["trace nick=bob room=lobby"]) { try chatTextHarness() },
        Row("message-down", ["trace nick=ann room=lobby"]) { try chatTextHarness() },
        Row("other-room", ["info other=kitchen room=lobby upstream-room=lobby"]) {
            let stage = try session()
            for id in ["1", "2"] { stage.backend(S.message(id, "elsewhere", more: #""room":"kitchen","#)) }
            return stage.harness
        },
        Row("people-lost", ["info people=2 room=lobby"]) {
            let stage = try session { $0.tellsOfLeaves = true }
            for name in ["ann", "zoe"] {
                stage.backend(#"{"kind":"join","user":{"id":"u-\#(name)","name":"\#(name)"}}"#)
            }
            stage.harness.acceptsConnections = false
            stage.loseLink()
            stage.harness.advance(by: JoinBatches.splitAfter)
            return stage.harness
        },
        Row("room-degraded", ["error failures=2 room=lobby"]) {
            let stage = try session {
                $0.backoff = BackoffTraits(
                    first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0, degradedAfter: 2)
            }
            stage.harness.acceptsConnections = false
            stage.loseLink()
            for _ in 0..<4 {
                stage.harness.advance(by: .seconds(30))
                stage.harness.endTransport(0, reason: "connection refused")
            }
            return stage.harness
        },
        Row("room-opened", ["info room=kitchen"]) { try templateHarness() },
        Row("room-closed", ["info room=kitchen"]) { try templateHarness() },
        Row("unknown-own-message", ["info room=lobby"]) {
            let stage = try session { unconfirmed(&$0) }
            stage.backend(S.message("15", "from my phone", from: "acct", more: #""self":true,"#))
            stage.harness.advance(by: AmbiguousMessages.wait)
            return stage.harness
        },
        Row("id-reused", ["warn id=15 room=lobby"]) {
            let stage = try session { $0.messageIDOrigin = .server }
            stage.backend(S.message("15", "one", at: -60))
            stage.backend(S.message("15", "another", at: -5))
            return stage.harness
        },
        Row("account-learned", ["info room=lobby"]) {
            let stage = try session {
                ($0.identity, $0.messageIDOrigin, $0.confirmation) = (.single, .server, .echoByText)
            }
            stage.harness.send(1, "PRIVMSG #lobby :one")
            stage.backend(S.message("1", "<bob> one", from: "relay"))
            return stage.harness
        },
        Row("account-doubted", ["info room=lobby"]) {
            let stage = try session {
                ($0.identity, $0.messageIDOrigin, $0.confirmation) = (.single, .server, .echoByText)
            }
            for (id, text) in [("1", "one"), ("2", "two")] {
                stage.harness.send(1, "PRIVMSG #lobby :" + text)
                // The second is by somebody else: whoever said the first was not the account either.
                stage.backend(S.message(id, "<bob> " + text, from: "u" + id))
            }
            stage.harness.advance(by: .seconds(11))
            return stage.harness
        },
    ]

    private static func echoStage() throws -> SessionStage {
        let stage = try session(unconfirmed)
        stage.harness.send(1, "PRIVMSG #lobby :one")
        stage.backend(S.message("8", "<bob> one", from: "acct", more: #""self":true,"#))
        return stage
    }

    /// A word each way, where the operator asked for what is said.
    private static func chatTextHarness() throws -> BridgeHarness {
        let harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t", rooms: [try .stub("lobby")], notesChatText: true))
        harness.start()
        harness.connect(1)
        for line in ["NICK bob", "USER u 0 * :r", "JOIN #lobby", "PRIVMSG #lobby :hello"] { harness.send(1, line) }
        harness.sendFrame(0, S.message("1", "hello"))
        return harness
    }

    /// A client enters a room of a template and leaves it for good.
    private static func templateHarness() throws -> BridgeHarness {
        let harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t", rooms: [try .stub("lobby")],
                backends: [BackendSettings(name: "b", dialect: StubDialect())],
                template: RoomTemplate(backend: "b") { try? .stub($0) }))
        harness.start()
        harness.connect(1)
        for line in ["NICK bob", "USER u 0 * :r", "JOIN #kitchen", "PART #kitchen"] { harness.send(1, line) }
        harness.advance(by: .seconds(301))
        return harness
    }

    // MARK: - Histories

    /// Past the first history, with message 1 in it, and one outage.
    private static func caughtUp() throws -> SessionStage {
        let stage = try session { ($0.history, $0.messageIDOrigin) = (.socket, .server) }
        stage.backend(S.history([S.message("1", "one", at: -60)]))
        stage.loseLink()
        stage.harness.advance(by: .seconds(2))
        return stage
    }

    private static let historyRows: [Row] = [
        Row("history-failed", ["warn room=lobby"]) {
            let stage = try caughtUp()
            stage.harness.advance(by: .seconds(10))
            return stage.harness
        },
        Row("history-skipped", ["warn room=lobby"]) {
            let stage = try caughtUp()
            for number in 2...(CatchUp.maxHeldEvents + 1) {
                stage.backend(S.message("\(number)", "m", at: Int64(number)))
            }
            return stage.harness
        },
        Row("history-short", ["warn messages=4 room=lobby"]) {
            let stage = try session {
                ($0.history, $0.messageIDOrigin) = (.call, .server)
            } room: {
                $0.historyLimit = 2
            }
            func answer(_ numbers: ClosedRange<Int>) {
                stage.harness.answerHistory(
                    .success(
                        numbers.map { number in
                            ChatMessage(
                                id: ChatID("\(number)"), sender: ChatPerson(id: ChatID("u-ann"), name: "ann"),
                                text: "m",
                                at: ChatTimestamp(milliseconds: S.base + Int64(number)))
                        }))
            }
            answer(1...1)
            stage.loseLink()
            stage.harness.advance(by: .seconds(2))
            answer(8...9)
            answer(6...9)
            stage.harness.answerHistory(
                .failure(BackendCallFailure(sentence: "the answer is too large", isFinal: true)))
            return stage.harness
        },
        Row("history-unreadable", [#"error address=127.0.0.1 client=1 reason="the disk is broken""#]) {
            let stage = try HistoryStage(.store)
            stage.enter()
            stage.say("one")
            stage.restart()
            stage.enter()
            stage.harness.store.readFailure = StoreFailure("the disk is broken")
            _ = stage.ask("CHATHISTORY LATEST #lobby * 10")
            return stage.harness
        },
        Row("backlog-failed", [#"error address=127.0.0.1 client=2 reason="the disk is broken" room=lobby"#]) {
            let stage = try BacklogStage()
            stage.enter(1, "alice@phone", caps: BacklogStage.caps)
            stage.leave(1)
            stage.say("one")
            stage.harness.store.readFailure = StoreFailure("the disk is broken")
            stage.enter(2, "alice@phone", caps: BacklogStage.caps)
            return stage.harness
        },
    ]

    // MARK: - Links of accounts

    private static func own(_ change: (inout DialectTraits) -> Void = { _ in }) throws -> OwnLinkStage {
        let stage = try OwnLinkStage(OwnLinkStage.silent(change))
        stage.enterBoth()
        return stage
    }

    private static let ownLinkRows: [Row] = [
        Row("own-link-up", ["info account=alice room=lobby"]) { try own().harness },
        Row("own-link-lost", ["warn account=alice failures=1 retry-in=1000ms room=lobby"]) {
            let stage = try own()
            stage.harness.acceptsConnections = false
            stage.loseOwn()
            return stage.harness
        },
        Row("own-link-reopened", ["info account=alice room=lobby"]) {
            let harness = try own().harness
            harness.perform { $0.reload(harness.settings, reconnecting: ["lobby"], backends: [], now: $1) }
            return harness
        },
        Row("own-link-failed", ["info account=alice failures=2 retry-in=2000ms room=lobby"]) {
            let stage = try own()
            stage.harness.acceptsConnections = false
            stage.loseOwn()
            stage.harness.advance(by: .seconds(1))
            stage.harness.endTransport(OwnLinkStage.own, reason: "connection refused")
            return stage.harness
        },
        Row("own-link-auth", ["error account=alice room=lobby"]) {
            let stage = try own { $0.opening = .authenticates }
            stage.backend(#"{"kind":"auth","state":"ok"}"#, over: OwnLinkStage.own)
            stage.backend(#"{"kind":"auth","state":"expired"}"#, over: OwnLinkStage.own)
            return stage.harness
        },
        Row("own-link-error", ["warn account=alice code=rude room=lobby"]) {
            let stage = try own()
            stage.harness.send(1, "PRIVMSG #lobby :mine")
            stage.backend(#"{"kind":"error","code":"rude","text":"too rude"}"#, over: OwnLinkStage.own)
            return stage.harness
        },
        Row("own-login-barred", ["error account=alice room=lobby"]) {
            let stage = try OwnLinkStage(OwnLinkStage.silent()) { $0.account = ChatPerson(name: "Alice B") }
            stage.enterBoth()
            return stage.harness
        },
    ]

    // MARK: - Logins at backends

    /// Two rooms of one backend where the bridge logs in; `prepare` comes before the start.
    private static func backend(
        _ prepare: (BridgeHarness, TokenServer) -> Void = { _, _ in },
        then: (BridgeHarness, TokenServer) -> Void = { _, _ in }
    ) throws -> BridgeHarness {
        let dialect = AccountDialect()
        let harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t",
                rooms: try ["one", "two"].map { name in
                    var room = try RoomSettings.stub(name, dialect: dialect)
                    room.backend = "main"
                    return room
                },
                backends: [
                    BackendSettings(
                        name: "main", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"),
                        user: "bridge", login: LoginSettings(), authenticates: true)
                ]))
        let server = TokenServer()
        harness.accounts.secrets[0] = .success(.login(user: "bridge", password: "hunter2-secret"))
        harness.accounts.server = { server.answer($0) }
        prepare(harness, server)
        harness.start()
        then(harness, server)
        return harness
    }

    private static let backendRows: [Row] = [
        Row("backend-login", ["debug backend=main"]) { try backend() },
        Row("backend-tokens-renewed", ["debug backend=main"]) { try backend() },
        Row("backend-login-failed", ["warn backend=main failures=1 retry-in=1000ms"]) {
            try backend { $1.trouble["/login"] = [TokenServer.answer(500)] }
        },
        Row("backend-login-refused", ["error backend=main"]) { try backend { $1.password = "another" } },
        Row("backend-tokens-not-kept", [#"warn backend=main reason="the disk is full""#]) {
            try backend { harness, _ in
                harness.accounts.saveFailure = UpstreamCredentialsFailure("the disk is full")
            } then: { harness, _ in
                harness.advance(by: .seconds(1200))
            }
        },
        Row("backend-token-refused", ["info backend=main"]) {
            try backend(then: { harness, server in
                server.expireAccess()
                harness.closeUpstream(0, code: 4001)
                harness.advance(by: .seconds(1))
            })
        },
        Row(
            "backend-refresh-refused",
            [#"info backend=main reason="the token's renewal at chat.example was answered 401 (bad token)""#]
        ) {
            try backend(then: { harness, server in
                server.expireAccess()
                server.expireRefresh()
                harness.closeUpstream(0, code: 4001)
                harness.advance(by: .seconds(1))
            })
        },
        Row("backend-call-failed", ["info backend=main call=who-am-i status=404"]) {
            try backend { $1.trouble["/me"] = [TokenServer.answer(404)] }
        },
    ]

    // MARK: - What is kept

    /// The disk hangs until there is no room for an order, and then takes everything.
    private static func overflown() throws -> BridgeHarness {
        let stage = try PrivateStage(true)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        stage.harness.store.commits = false
        stage.send(1, "PRIVMSG ann :this waits")
        stage.harness.store.room = stage.harness.store.waiting.count
        stage.send(1, "PRIVMSG *bridge :mute bob")
        stage.harness.store.room = .max
        stage.harness.store.commits = true
        stage.send(1, "PING x")
        stage.send(1, "PING y")
        return stage.harness
    }

    private static func failing() throws -> BridgeHarness {
        let stage = try PrivateStage(true)
        stage.harness.store.failure = "the disk is full"
        stage.harness.perform { _, _ in }
        stage.harness.store.failure = nil
        stage.harness.perform { _, _ in }
        return stage.harness
    }

    private static let storeRows: [Row] = [
        Row("store-overflow", ["error"]) { try overflown() },
        Row("store-gap", ["warn"]) { try overflown() },
        Row("store-failing", [#"error reason="the disk is full""#]) { try failing() },
        Row("store-sound", ["info"]) { try failing() },
        Row("message-refused", ["warn messages=1 room=lobby"]) {
            let stage = try DurableStage(DurableKind.all[0])
            let bob = stage.enter("bob")
            stage.harness.store.refusal = "the disk is full"
            stage.say("not kept", bob)
            stage.commit()
            return stage.harness
        },
        Row("messages-without-room", ["warn backend=gone messages=1 room=attic"]) {
            let stage = try DurableStage(DurableKind.all[0])
            let entry = StoredOutboxEntry(
                id: ChatID("00000000-0000-4000-8000-0000000000AB"), room: StoredRoomKey(backend: "gone", room: "attic"),
                sender: ChatPerson(name: "bob"), sentAs: "ab", acceptedAt: stage.harness.clock.now.wall,
                author: ChatID("somebody"), nick: "bob", source: "bob!u@h", text: "ab")
            stage.restart(on: StoredState(rooms: [entry.room: StoredRoom(outbox: [entry])]))
            return stage.harness
        },
        Row("room-not-loaded", [#"error reason="the disk is broken" room=lobby"#]) {
            let stage = try StoredStage(StoredWire.withoutHistory[0], template: true)
            stage.harness.store.readFailure = StoreFailure("the disk is broken")
            stage.start()
            stage.enter("bob")
            return stage.harness
        },
        Row("failure-untold", ["error nick=bob room=lobby"]) {
            let stage = try DurableStage(
                DurableKind.all[0], maxAge: .seconds(1), maxMessages: 2 * FailedMessages.untoldCapacity)
            stage.harness.acceptsConnections = false
            stage.harness.endTransport(0, reason: "the connection was reset")
            let bob = stage.enter("bob")
            for number in 0...FailedMessages.untoldCapacity { stage.say("\(number)", bob) }
            stage.harness.disconnect(bob, reason: "Gone")
            stage.advance(.seconds(2))
            return stage.harness
        },
        Row("memberships-full", ["warn"]) {
            let stage = try RejoinStage()
            for index in 0..<AccountChannels.maxRoomsInAll {
                stage.harness.bridge.irc.memberships.restore(
                    StoredMembership(
                        account: "a\(index / AccountChannels.maxRooms)",
                        room: StoredRoomKey(backend: "b", room: "\(index)"),
                        channel: "#c", position: Int64(index)), of: "a\(index / AccountChannels.maxRooms)")
            }
            stage.logIn(1, "remy@phone")
            _ = stage.send(1, "JOIN #lobby,#kitchen")
            return stage.harness
        },
    ]

    // MARK: - Accounts of IRC users

    private static func restored() throws -> BridgeHarness {
        var state = StoredState()
        state.accounts = [
            StoredAccount(
                name: "Remy",
                password: SCRAMVerifier(
                    password: SecretBytes("made".utf8), salt: Array("saltsalt".utf8), iterations: 4096
                )
                .description,
                madeAt: ChatTimestamp(milliseconds: 0)),
            StoredAccount(name: "ann", password: "spoilt", madeAt: ChatTimestamp(milliseconds: 0)),
        ]
        let harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t",
                accounts: [AccountSettings(name: "remy", password: SCRAMVerifier(quickly: "written"))],
                registration: .everybody, rooms: [try .stub("lobby")]), store: StoreStage(state))
        harness.start()
        return harness
    }

    private static let accountRows: [Row] = [
        Row("account-shadowed", ["warn account=Remy"]) { try restored() },
        Row("account-unreadable", ["error account=ann"]) { try restored() },
        Row("client-forgotten", ["info account=alice client-name=c0"]) {
            let stage = try BacklogStage()
            for number in 0..<101 {
                stage.enter(UInt64(number + 1), "alice@c\(number)")
                stage.leave(UInt64(number + 1))
            }
            return stage.harness
        },
        Row("client-uploaded", ["info account=chef backend=main room=lobby"]) {
            let dialect = AccountDialect()
            var lobby = try RoomSettings.stub("lobby", dialect: dialect)
            lobby.backend = "main"
            var settings = BridgeSettings(
                serverName: "bridge", instanceID: "t",
                accounts: [AccountSettings(name: "chef", password: SCRAMVerifier(quickly: "secret"))], rooms: [lobby],
                backends: [
                    BackendSettings(
                        name: "main", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"),
                        user: "bridge", login: LoginSettings())
                ])
            settings.media = MediaSettings(links: KnownLinks.links)
            let harness = BridgeHarness(settings: settings)
            let server = TokenServer()
            harness.accounts.secrets[0] = .success(.login(user: "bridge", password: "hunter2-secret"))
            harness.accounts.server = { server.answer($0) }
            harness.start()
            let file = UploadedFile(name: "cat.png", mime: "image/png", bytes: [1, 2, 3])
            harness.perform { $0.upload(UploadID(rawValue: 1), file, by: $0.uploader("chef"), room: nil, now: $1) }
            return harness
        },
    ]
}
