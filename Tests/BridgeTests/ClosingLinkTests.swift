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

/// What is said while a link is being closed for want of people.
@Suite("Speaking while a link closes")
struct ClosingLinkTests {
    /// One room, open while somebody is there: a configured one, or one of the template.
    private func harness(isTemplate: Bool, isDurable: Bool) throws -> BridgeHarness {
        let dialect = StubDialect { $0.confirmation = .echoByID }
        let url = try HTTPURL(parsing: "ws://chat.example/0")
        @Sendable func room(_ name: String) -> RoomSettings {
            var room = RoomSettings(name: name, backend: "b", dialect: dialect, url: url, upstreamRoom: name)
            room.ping = .zero
            room.connect = .whileJoined
            return room
        }
        let harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t",
                limits: LimitSettings {
                    $0.messagesPerSecond = nil
                    $0.upstreamMessagesPerSecond = nil
                },
                rooms: isTemplate ? [] : [room("lobby")], backends: [BackendSettings(name: "b", dialect: dialect)],
                template: isTemplate ? RoomTemplate(backend: "b") { room($0) } : nil),
            store: isDurable ? StoreStage() : nil)
        harness.start()
        harness.connect(1)
        for line in ["NICK bob", "USER u 0 * :r", "JOIN #lobby"] { harness.send(1, line) }
        harness.advance(by: .seconds(1))
        return harness
    }

    private func messages(_ harness: BridgeHarness) -> [String] {
        harness.takeOutputs().compactMap { output in
            guard case .upstream(_, .frame(let bytes, _)) = output, let json = try? JSONValue(parsing: bytes),
                json["kind"]?.string == "message"
            else { return nil }
            return json["text"]?.string
        }
    }

    @Test(
        "somebody who enters, speaks and leaves between our Close and its answer has said it",
        arguments: [true, false],
        [true, false])
    func goes(isTemplate: Bool, isDurable: Bool) throws {
        let harness = try harness(isTemplate: isTemplate, isDurable: isDurable)
        let room = try #require(harness.bridge.rooms.first)
        let link = room.id.index
        harness.upstream(link).isSilent = true
        harness.send(1, "PART #lobby")
        harness.advance(by: Room.linger + .seconds(1))
        #expect(room.link.state == .closing)
        harness.echoes = true
        for line in ["JOIN #lobby", "PRIVMSG #lobby :meanwhile", "PART #lobby"] { harness.send(1, line) }
        #expect(messages(harness) == [])
        harness.upstream(link).isSilent = false
        harness.endTransport(link, reason: "the connection ended")
        harness.advance(by: .seconds(10))
        #expect(messages(harness) == ["meanwhile"])
        #expect(room.lane.outbox.isEmpty)
        harness.advance(by: Room.linger + .seconds(60))
        #expect(room.link.state == .stopped)
        #expect(harness.bridge.rooms.isEmpty == isTemplate)
        #expect(harness.violations == [])
    }

    /// A room whose messages a pong alone confirms, with a history; the configuration has it no longer.
    private func pongStage() throws -> SessionStage {
        let stage = try SessionStage(
            StubDialect {
                ($0.confirmation, $0.messageIDOrigin, $0.identity, $0.history) = (.none, .server, .single, .socket)
            })
        stage.harness.start()
        stage.backend(SessionStage.history([]))
        stage.enter("bob")
        stage.harness.send(1, "PRIVMSG #lobby :read")
        #expect(stage.said() == ["bob: read"])
        stage.harness.perform { bridge, now in
            var settings = stage.harness.settings
            settings.rooms = []
            bridge.reload(settings, reconnecting: [], backends: [], now: now)
        }
        #expect(stage.heard().last?.contains("PART #lobby") == true)
        return stage
    }

    @Test("a room that is gone keeps its link until what a pong alone confirmed must have been processed")
    func keepsWhatWasRead() throws {
        let stage = try pongStage()
        stage.harness.advance(by: .seconds(69))
        #expect(stage.harness.bridge.rooms.first?.link.isUp == true)
        stage.harness.advance(by: .seconds(2))
        #expect(stage.harness.bridge.rooms.isEmpty && stage.harness.violations == [])
    }

    @Test("and where the link is lost before, what the history lacks goes once more")
    func sendsWhatWasRead() throws {
        let stage = try pongStage()
        stage.harness.advance(by: .seconds(30))
        _ = stage.sent()
        stage.loseLink()
        var texts: [String] = []
        for _ in 0..<30 {
            stage.harness.advance(by: .seconds(1))
            for frame in stage.sent() {
                if let text = frame["text"]?.string { texts.append(text) }
                if frame["kind"]?.string == "fetch" { stage.backend(SessionStage.history([])) }
            }
        }
        #expect(texts == ["<bob> read"])
        stage.harness.advance(by: .seconds(120))
        #expect(stage.harness.bridge.rooms.isEmpty && stage.harness.violations == [])
    }

    @Test("the same over an account's own link, and in order with what is said later")
    func ownLink() throws {
        let stage = try OwnLinkStage(OwnLinkStage.echoing(), asks: false)
        stage.enterBoth()
        stage.harness.upstream(OwnLinkStage.own).isSilent = true
        stage.harness.send(1, "PART #lobby")
        stage.harness.advance(by: Room.linger + .seconds(1))
        #expect(stage.own?.isClosing == true)
        stage.harness.echoes = true
        for line in ["JOIN #lobby", "PRIVMSG #lobby :meanwhile", "PART #lobby"] { stage.harness.send(1, line) }
        stage.harness.upstream(OwnLinkStage.own).isSilent = false
        stage.loseOwn()
        stage.harness.advance(by: .seconds(10))
        #expect(stage.takeMessages().map(\.text) == ["meanwhile"])
        stage.harness.send(1, "JOIN #lobby")
        stage.harness.send(1, "PRIVMSG #lobby :later")
        #expect(stage.takeMessages().map(\.text) == ["later"])
        #expect(stage.own?.outbox.isEmpty == true)
        #expect(stage.harness.violations == [])
    }
}
