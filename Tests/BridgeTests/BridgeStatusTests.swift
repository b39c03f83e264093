import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import JSONText
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("The status of a bridge")
struct BridgeStatusTests {
    private static func harness() throws -> BridgeHarness {
        var room = RoomSettings(
            name: "lobby", dialect: EnvelopeDialect(), url: try HTTPURL(parsing: "ws://chat.example/"))
        room.ping = .seconds(20)
        let settings = BridgeSettings(serverName: "bridge", instanceID: "t", rooms: [room])
        let harness = BridgeHarness(settings: settings)
        harness.echoes = true
        harness.start()
        harness.connect(1, address: "192.0.2.7", isLocal: false)
        for line in ["NICK ada", "USER u 0 * :r", "JOIN #lobby"] { harness.send(1, line) }
        return harness
    }

    private static func frame(_ number: Int) -> String {
        """
        {"event":"message","message_id":"m\(number)","sender_id":"s","sender_name":"Remy","body":"b",\
        "sent_at":1795262400}
        """
    }

    private static func status(_ harness: BridgeHarness) -> BridgeStatus {
        harness.bridge.status(now: harness.clock.now)
    }

    @Test("a room counts what it relays, each message once, and knows who is there")
    func counts() throws {
        let harness = try Self.harness()
        harness.advance(by: .seconds(5))
        harness.sendFrame(0, Self.frame(1))
        harness.sendFrame(0, Self.frame(1))
        harness.sendFrame(0, Self.frame(2))
        harness.send(1, "PRIVMSG #lobby :hello")
        harness.sendFrame(0, "{}")
        harness.sendFrame(0, #"{"event":"other"}"#)
        let room = try #require(Self.status(harness).rooms.first)
        #expect(room.messagesIn == 2 && room.messagesOut == 1)
        #expect(room.upstreamUsers == 1 && room.clients == 1 && room.queued == 0)
        #expect(room.undecodable == 2 && room.misread == 1)
        #expect(room.state.isUp && room.host == "chat.example" && room.channel == "#lobby")
        #expect(room.since == ChatTimestamp(milliseconds: ManualClock.epochMilliseconds))
        #expect(room.lastMessageAt == harness.clock.now.wall)
        #expect(room.attempts.succeeded == 1 && room.attempts.failed == 0)
    }

    @Test("during an outage it tells the reason, the next try, and how old the queue is")
    func outage() throws {
        let harness = try Self.harness()
        harness.acceptsConnections = false
        harness.advance(by: .seconds(60))
        harness.endTransport(0, reason: "the connection was reset")
        harness.send(1, "PRIVMSG #lobby :first")
        harness.advance(by: .milliseconds(300))
        harness.send(1, "PRIVMSG #lobby :second")
        let room = try #require(Self.status(harness).rooms.first)
        #expect(room.state.link == .waiting && room.state.reason == "the connection was reset")
        #expect(room.since?.milliseconds == ManualClock.epochMilliseconds + 60_000)
        #expect(room.queued == 2 && room.oldestQueuedFor == .milliseconds(300))
        #expect(room.retryIn.map { $0 > .zero && $0 < .seconds(2) } == true)
        #expect(room.roundTrip == nil)
    }

    @Test("it tells at once how many messages were sent and not confirmed, and since when")
    func unconfirmed() throws {
        let harness = try Self.harness()
        harness.echoes = false
        for text in ["first", "second"] {
            harness.send(1, "PRIVMSG #lobby :\(text)")
            harness.advance(by: .seconds(2))
        }
        let sent = try #require(Self.status(harness).rooms.first)
        #expect(sent.queued == 2 && sent.unconfirmed == 2 && sent.oldestUnconfirmedFor == .seconds(4))
        // With ids of the client's they are sent again, and may have arrived no more than others.
        harness.acceptsConnections = false
        harness.endTransport(0, reason: "the connection was reset")
        let lost = try #require(Self.status(harness).rooms.first)
        #expect(lost.queued == 2 && lost.unconfirmed == 0 && lost.oldestUnconfirmedFor == nil)
    }

    @Test("a refusal counts as one, and other failures apart")
    func refusals() throws {
        let harness = try Self.harness()
        harness.acceptsConnections = false
        harness.endTransport(0, reason: "reset")
        harness.advance(by: .seconds(3))
        harness.refuse(0, status: 401)
        harness.advance(by: .milliseconds(1))
        harness.refuse(0, status: 503, headers: [("Retry-After", "120")])
        let room = try #require(Self.status(harness).rooms.first)
        #expect(room.attempts.succeeded == 1 && room.attempts.refused == 1 && room.attempts.failed == 1)
        #expect(room.state.reason?.contains("503") == true)
        #expect(room.retryIn == .seconds(120))
    }

    @Test("clients are listed with where they come from and where they are")
    func clients() throws {
        let harness = try Self.harness()
        harness.advance(by: .seconds(10))
        harness.connect(2, security: .encrypted)
        let clients = Self.status(harness).clients
        #expect(clients.map(\.nick) == ["ada", nil])
        #expect(clients.map(\.rooms) == [["lobby"], []])
        #expect(clients.map(\.transport) == [.tcp, .tls])
        #expect(clients.map(\.isRegistered) == [true, false])
        #expect(clients.first?.address == "192.0.2.7")
        #expect(harness.bridge.status(now: harness.clock.now, hasClients: false).clients.isEmpty)
    }

    @Test("how a client goes is counted")
    func ends() throws {
        let harness = try Self.harness()
        for client in UInt64(2)...5 {
            harness.connect(client)
            harness.send(client, "NICK n\(client)")
            harness.send(client, "USER u 0 * :r")
        }
        harness.send(2, "QUIT")
        harness.disconnect(3)
        harness.disconnect(4, reason: "SendQ exceeded")
        harness.disconnect(5, reason: "Connection lost: reset")
        harness.connect(6)
        harness.send(6, "GET / HTTP/1.1")
        let traffic = harness.bridge.clientTraffic
        let ends = Dictionary(zip(ClientTraffic.End.allCases, traffic.ends), uniquingKeysWith: { a, _ in a })
        #expect(
            ends == [
                .quit: 1, .closed: 1, .sendq: 1, .error: 1, .foreign: 1, .ping: 0, .login: 0, .drain: 0,
            ])
        #expect(traffic.open.values.reduce(0, +) == 1 && traffic.opened.values.reduce(0, +) == 6)
        harness.shutdown()
        #expect(traffic.open.values.reduce(0, +) == 0)
    }

    @Test("lines are counted by command, those to clients once for each")
    func lines() throws {
        let harness = try Self.harness()
        harness.connect(2)
        for line in ["NICK bob", "USER u 0 * :r", "JOIN #lobby", "FROB"] { harness.send(2, line) }
        let before = harness.bridge.clientTraffic.sent[0]
        harness.sendFrame(0, Self.frame(1))
        let traffic = harness.bridge.clientTraffic
        #expect(traffic.sent[0] - before == 2)
        harness.send(2, "PRIVMSG #lobby :hello")
        #expect(traffic.sent[0] - before == 3, "not to its author")
        harness.send(2, "CAP REQ :echo-message")
        harness.send(2, "PRIVMSG #lobby :hello")
        #expect(traffic.sent[0] - before == 5, "to its author once")
        let received = Dictionary(zip(traffic.receivedCommands, traffic.received), uniquingKeysWith: { a, _ in a })
        #expect(received["JOIN"] == 2 && received["other"] == 1)
    }

    @Test("relayed messages make a turn, which is measured in both directions")
    func latency() throws {
        let harness = try Self.harness()
        harness.sendFrame(0, Self.frame(1))
        harness.send(1, "PRIVMSG #lobby :hello")
        #expect(harness.bridge.latency.isTurnOpen)
        harness.bridge.turnEnded(at: harness.clock.now.monotonic + .milliseconds(2))
        #expect(!harness.bridge.latency.isTurnOpen)
        #expect(harness.bridge.latency.down.count == 1 && harness.bridge.latency.up.count == 1)
        #expect(harness.bridge.latency.down.sum == .milliseconds(2))
        harness.bridge.turnEnded(at: harness.clock.now.monotonic)
        #expect(harness.bridge.latency.down.count == 1)
    }

    @Test("the JSON has times as text, durations in seconds, and null for what is not known")
    func json() throws {
        let harness = try Self.harness()
        let document = try JSONValue(parsing: harness.bridge.status(now: harness.clock.now).json)
        #expect(document["server"]?.string == "bridge")
        #expect(document["started_at"]?.string == "2026-11-21T12:00:00.000Z")
        #expect(document["storage"]?.string == "sound")
        let text = String(decoding: harness.bridge.status(now: harness.clock.now).json, as: UTF8.self)
        #expect(text.contains("\"state\":\"up\",\"since\":\"2026-11-21T12:00:00.000Z\",\"reason\":null,\"failures\":0"))
        #expect(text.contains("\"retry_in\":null") && text.contains("\"token_ends_at\":null"))
        #expect(text.contains("\"nick\":\"ada\",\"account\":null") && text.hasSuffix("}\n"))
    }
}
