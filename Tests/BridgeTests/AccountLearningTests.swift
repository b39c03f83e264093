import BridgeTestSupport
import BridgeTypes
import ChatModel
import DescribedDialects
import Dialects
import HTTPProtocol
import JSONText
import Testing
import Upstream

@testable import BridgeCore
@testable import ChatBridge
@testable import Configuration
@testable import IRCServer
@testable import Rooms

/// Backends that do not say who their account is: it is learned from what comes back.
@Suite("Learning the account from its own messages")
struct AccountLearningTests {
    /// One room on a described wire, bob (1) and eve (2) in it, and everything that the session wants at first said.
    private static func stage(_ name: String, _ definition: String, opening: [String]) throws -> BridgeHarness {
        let dialect = CustomDialect(try CustomDefinition(try JSONValue(parsing: Array(definition.utf8))), name: name)
        var room = RoomSettings(
            name: "lobby", backend: "b", dialect: dialect, url: try HTTPURL(parsing: "ws://chat.example/"),
            upstreamRoom: "ops")
        room.ping = .zero
        room.authenticates = dialect.traits.opening.contains(.authenticates)
        let harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t",
                limits: LimitSettings {
                    $0.messagesPerSecond = nil
                    $0.upstreamMessagesPerSecond = nil
                }, rooms: [room],
                backends: [
                    BackendSettings(name: "b", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"))
                ]))
        harness.credentials[0] = .success(UpstreamCredentials(socket: .accessToken("token")))
        harness.accounts.server = { _ in
            .success(BackendCallResponse(BackendAnswer(status: 200, body: Array(#"{"messages":[],"posts":[]}"#.utf8))))
        }
        harness.start()
        for frame in opening { harness.sendFrame(0, frame) }
        for (client, nick) in [(UInt64(1), "bob"), (2, "eve")] {
            harness.connect(client)
            harness.send(client, "CAP REQ :echo-message standard-replies")
            harness.send(client, "NICK \(nick)")
            harness.send(client, "USER u 0 * :r")
            harness.send(client, "CAP END")
            harness.send(client, "JOIN #lobby")
        }
        _ = harness.takeOutputs()
        return harness
    }

    /// What `client` heard, and the frames that went up.
    private static func seen(_ harness: BridgeHarness, _ client: UInt64 = 2) -> (lines: [String], frames: [JSONValue]) {
        var lines: [String] = []
        var frames: [JSONValue] = []
        for output in harness.takeOutputs() {
            switch output {
            case .line(client, let bytes): lines.append(String(decoding: bytes, as: UTF8.self))
            case .upstream(_, .frame(let bytes, _)): frames.append((try? JSONValue(parsing: bytes)) ?? .null)
            default: break
            }
        }
        return (lines, frames)
    }

    struct Example: CustomTestStringConvertible, Sendable {
        var name: String
        var opening: [String]
        /// The frame that carries a message.
        var isMessage: @Sendable (JSONValue) -> Bool
        /// How the backend sends a message round, and by whom where it is the account.
        var echo: @Sendable (JSONValue, _ number: Int) -> String

        var testDescription: String { name }
    }

    private static let examples = [
        Example(
            name: "ddp",
            opening: [
                #"{"msg":"result","id":"login","result":{"id":"u9","token":"t"}}"#,
                #"{"msg":"ready","subs":["messages"]}"#,
            ],
            isMessage: { $0["method"]?.string == "sendMessage" },
            echo: { frame, _ in
                let message = (frame["params"]?.array?.first ?? .null).text.dropLast()
                return #"{"msg":"changed","collection":"stream-room-messages","id":"id","fields":{"args":["#
                    + message + #","ts":{"$date":1795262400000},"u":{"_id":"u9","username":"relay"}}]}}"#
            }),
        Example(
            name: "event-data", opening: [#"{"status":"OK","seq_reply":1}"#, #"{"event":"hello","data":{}}"#],
            isMessage: { $0["action"]?.string == "post" },
            echo: { frame, number in
                let text = (frame["data"]?["message"] ?? .null).text
                let post = #"{"id":"p\#(number)","user_id":"u9","channel_id":"ops","message":\#(text)}"#
                return #"{"event":"posted","data":{"sender_name":"@relay","post":\#(JSONValue.string(post).text)},"#
                    + #""broadcast":{"channel_id":"ops"}}"#
            }),
        Example(
            name: "phoenix", opening: [#"["1","1","room:ops","phx_reply",{"status":"ok","response":{}}]"#],
            isMessage: { $0.array?[3].string == "new_msg" },
            echo: { frame, _ in
                let (topic, body) = (frame.array?[2] ?? .null, frame.array?[4] ?? .null)
                return "[null,null,\(topic.text),\"new_msg\",\(body.text)]"
            }),
    ]

    @Test("every worked example confirms what its backend sends back", arguments: examples)
    func workedExamples(_ example: Example) throws {
        let harness = try Self.stage(
            example.name, try RepositoryFile.example("dialects/\(example.name).json"), opening: example.opening)
        // The first two come back in one read, so that the second was read before the first taught us anything.
        for text in ["one", "two"] { harness.send(1, "PRIVMSG #lobby :" + text) }
        var frames = Self.seen(harness).frames.filter(example.isMessage)
        #expect(frames.count == 2)
        let read = frames.enumerated().flatMap { number, frame in
            harness.upstreams[0].frame(Array(example.echo(frame, number).utf8), isBinary: false)
        }
        harness.deliver(0, read)
        let said = Self.seen(harness).lines
        #expect(said.count == 2)
        #expect(said.first?.contains(":bob!") == true && said.first?.hasSuffix("PRIVMSG #lobby :one") == true)
        #expect(said.last?.contains(":bob!") == true && said.last?.hasSuffix("PRIVMSG #lobby :two") == true)

        harness.send(1, "PRIVMSG #lobby :three")
        frames = Self.seen(harness).frames.filter(example.isMessage)
        for frame in frames { harness.sendFrame(0, example.echo(frame, 3)) }
        #expect(
            Self.seen(harness).lines.map { $0.split(separator: " ", maxSplits: 1).last } == ["PRIVMSG #lobby :three"])

        // Neither the wait nor the next link brings anything up again.
        harness.advance(by: .seconds(600))
        harness.endTransport(0, reason: "reset")
        harness.advance(by: .seconds(30))
        for frame in example.opening { harness.sendFrame(0, frame) }
        #expect(Self.seen(harness, 1).frames.filter(example.isMessage).isEmpty)
        #expect(harness.bridge.rooms[0].lane.outbox.isEmpty)
        #expect(harness.violations == [])
    }

    // MARK: - Other wires

    private static func message(_ id: String?, _ text: String, _ sender: String, _ more: String = "") -> String {
        let id = id.map { "\"id\":\"\($0)\"," } ?? ""
        return "{\"kind\":\"message\",\(id)\(more)\"sender\":{\(sender)},\"text\":\"\(text)\"}"
    }

    private static func stub(
        _ confirmation: DialectTraits.Confirmation, _ origin: DialectTraits.MessageIDOrigin,
        _ identity: DialectTraits.Identity = .single
    ) throws -> SessionStage {
        let stage = try SessionStage(
            StubDialect {
                $0.confirmation = confirmation
                $0.messageIDOrigin = origin
                $0.identity = identity
            })
        stage.harness.start()
        stage.enter("bob", 1)
        stage.enter("eve", 2)
        _ = (stage.heard(1), stage.sent())
        return stage
    }

    @Test("where puppets have names and no ids, the text and the name confirm")
    func puppetsByName() throws {
        let stage = try Self.stub(.echoByText, .server, .puppet)
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        stage.backend(Self.message("1", "hello", #""name":"ann""#))
        #expect(stage.said(2) == ["ann: hello"], "somebody who says the same")
        stage.backend(Self.message("2", "hello", #""name":"bob""#))
        #expect(stage.said(2) == ["bob: hello"])
        #expect(stage.room.lane.outbox.isEmpty)
    }

    @Test("once the account is known, what others repeat confirms nothing")
    func strangers() throws {
        let stage = try Self.stub(.echoByText, .server)
        stage.harness.send(1, "PRIVMSG #lobby :one")
        stage.backend(Self.message("1", "<bob> one", #""id":"u9","name":"relay""#))
        #expect(stage.said(2) == ["bob: one"])
        #expect(stage.notes("account-learned").count == 1)
        #expect(stage.room.accountPerson == ChatPerson(id: ChatID("u9"), name: "relay"))
        stage.harness.send(1, "PRIVMSG #lobby :two")
        stage.backend(Self.message("2", "<bob> two", #""id":"u7","name":"ann""#))
        #expect(stage.said(2) == ["ann: <bob> two"])
        #expect(!stage.room.lane.outbox.isEmpty)
        stage.backend(Self.message("3", "<bob> two", #""id":"u9","name":"relay""#))
        #expect(stage.said(2) == ["bob: two"])
    }

    @Test("whoever was taken for the account by a text alone is so no longer when our messages do not come back")
    func wrongGuess() throws {
        let stage = try Self.stub(.echoByText, .server)
        stage.harness.send(1, "PRIVMSG #lobby :one")
        stage.backend(Self.message("1", "<bob> one", #""id":"u7","name":"ann""#))
        #expect(stage.room.accountPerson.id == ChatID("u7"))
        stage.harness.send(1, "PRIVMSG #lobby :two")
        stage.backend(Self.message("2", "<bob> two", #""id":"u9","name":"relay""#))
        stage.harness.advance(by: .seconds(11))
        #expect(stage.notes("account-doubted").count == 1)
        #expect(!stage.room.lane.dialectContext.isSelf(ChatPerson(id: ChatID("u7"))))
        stage.harness.send(1, "PRIVMSG #lobby :three")
        stage.backend(Self.message("3", "<bob> three", #""id":"u9","name":"relay""#))
        #expect(stage.said(2).last == "bob: three")
        #expect(stage.room.accountPerson == ChatPerson(id: ChatID("u9"), name: "relay"))
    }

    @Test("what comes back without a promise is known by the prefix, and tells the account")
    func withoutPromise() throws {
        let stage = try Self.stub(.none, .server)
        stage.harness.send(1, "PRIVMSG #lobby :one")
        #expect(stage.said(2) == ["bob: one"])
        stage.backend(Self.message("1", "<bob> one", #""id":"u9""#))
        #expect(stage.said(2) == [] && stage.room.accountPerson.id == ChatID("u9"))
    }

    @Test("a message that a receipt confirmed is not shown again under the account's name")
    func afterReceipt() throws {
        let stage = try Self.stub(.receipt, .client)
        stage.harness.send(1, "PRIVMSG #lobby :one")
        let id = stage.sent().last?["id"]?.string ?? ""
        stage.backend("{\"kind\":\"receipt\",\"state\":\"sent\",\"ids\":[\"\(id)\"]}")
        #expect(stage.said(2) == ["bob: one"])
        stage.backend(Self.message(id, "<bob> one", #""id":"u9""#))
        #expect(stage.said(2) == [] && stage.room.accountPerson.id == ChatID("u9"))
    }

    @Test("one that was given up and comes after all is the account's too", arguments: [true, false])
    func late(_ isByID: Bool) throws {
        let stage = try Self.stub(isByID ? .echoByID : .echoByText, isByID ? .client : .server)
        stage.harness.send(1, "PRIVMSG #lobby :one")
        let id = stage.sent().last?["id"]?.string ?? ""
        stage.harness.advance(by: stage.room.settings.queueMaxAge)
        #expect(stage.room.lane.outbox.isEmpty)
        stage.backend(Self.message(isByID ? id : "1", "<bob> one", #""id":"u9""#))
        #expect(stage.said(2) == ["bob: one"])
        #expect(stage.room.accountPerson.id == ChatID("u9"))
    }
}
