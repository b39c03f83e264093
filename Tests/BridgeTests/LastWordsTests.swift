import BridgeTestSupport
import BridgeTypes
import Dialects
import HTTPProtocol
import JSONText
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Clients that end their sending side behind what they say: `printf … | nc -N host port`.
@Suite("Last words")
struct LastWordsTests {
    private final class Stage {
        let harness: BridgeHarness
        private var sent: [String] = []
        private var lines: [UInt64: [String]] = [:]

        init(rooms: [String] = ["lobby"]) throws {
            let rooms = try rooms.map { name in
                var room = RoomSettings(
                    name: name, backend: "b", dialect: StubDialect { $0.confirmation = .echoByID },
                    url: try HTTPURL(parsing: "ws://chat.example/0"))
                room.ping = .zero
                room.connect = name == "lobby" ? .always : .whileJoined
                return room
            }
            harness = BridgeHarness(
                settings: BridgeSettings(
                    serverName: "bridge", instanceID: "t",
                    limits: LimitSettings {
                        $0.messagesPerSecond = 2
                        $0.messagesBurst = 10
                        $0.upstreamMessagesPerSecond = nil
                    },
                    rooms: rooms))
            harness.echoes = true
            harness.start()
        }

        /// Everything that the client says, in one piece.
        func say(_ client: UInt64, _ lines: [String]) {
            harness.receive(client, lines.flatMap { Array(($0 + "\r\n").utf8) })
        }

        func enter(_ client: UInt64, _ nick: String) {
            harness.connect(client)
            say(client, ["NICK " + nick, "USER u 0 * :r", "JOIN #lobby"])
            harness.advance(by: .seconds(20))
            look()
            lines[client] = []
        }

        func look() {
            for output in harness.takeOutputs() {
                switch output {
                case .line(let client, let bytes):
                    lines[client, default: []].append(String(decoding: bytes, as: UTF8.self))
                case .upstream(_, .frame(let bytes, _)):
                    if let json = try? JSONValue(parsing: bytes), json["kind"]?.string == "message" {
                        sent.append(json["text"]?.string ?? "")
                    }
                default: break
                }
            }
        }

        func messages() -> [String] {
            look()
            return sent
        }

        func heard(_ client: UInt64) -> [String] {
            look()
            return lines[client] ?? []
        }
    }

    private static let thirty = (0..<30).map { "line \($0)" }
    private static func spoken(_ texts: [String]) -> [String] { texts.map { "PRIVMSG #lobby :" + $0 } }

    @Test("all that was said before QUIT is carried out at the client's rate, and it is told goodbye")
    func quits() throws {
        let stage = try Stage()
        stage.enter(1, "remy")
        stage.enter(2, "bob")
        stage.say(1, Self.spoken(Self.thirty) + ["QUIT :that is all"])
        #expect(stage.harness.endSending(1))
        #expect(stage.messages().count < 15)
        stage.harness.advance(by: .seconds(30))
        #expect(stage.messages() == Self.thirty)
        #expect(stage.heard(1).last?.hasPrefix("ERROR :Closing Link") == true)
        #expect(!stage.harness.isConnected(1))
        let last = stage.heard(2).suffix(2)
        #expect(last.first?.hasSuffix(":line 29") == true)
        #expect(last.last?.contains("QUIT :Quit: that is all") == true)
        #expect(stage.harness.violations == [])
    }

    @Test("a script that says it all at once, from its nick to QUIT, is heard")
    func script() throws {
        let stage = try Stage()
        stage.enter(2, "bob")
        stage.harness.connect(1)
        stage.say(1, ["NICK remy", "USER u 0 * :r", "JOIN #lobby"] + Self.spoken(Self.thirty) + ["QUIT"])
        _ = stage.harness.endSending(1)
        stage.harness.advance(by: .seconds(40))
        #expect(stage.messages() == Self.thirty)
        #expect(!stage.harness.isConnected(1))
        #expect(stage.harness.bridge.clientCount == 1)
        #expect(stage.harness.violations == [])
    }

    @Test("without QUIT it is gone behind its last line")
    func withoutQuit() throws {
        let stage = try Stage()
        stage.enter(1, "remy")
        stage.enter(2, "bob")
        stage.say(1, Self.spoken(Self.thirty))
        #expect(stage.harness.endSending(1))
        stage.harness.advance(by: .seconds(30))
        #expect(stage.messages() == Self.thirty)
        #expect(stage.heard(2).contains { $0.contains("QUIT :Connection closed") })
        #expect(stage.harness.bridge.clientCount == 1)
    }

    @Test("whoever has nothing left to say is gone at once", arguments: [[], ["PRIVMSG #lobby :no end of the li"]])
    func atOnce(unfinished: [String]) throws {
        let stage = try Stage()
        stage.enter(1, "remy")
        stage.harness.receive(1, unfinished.flatMap { Array($0.utf8) })
        #expect(!stage.harness.endSending(1))
        #expect(stage.harness.bridge.clientCount == 0)
        #expect(stage.messages() == [])
    }

    @Test("it may take a minute, and no longer")
    func bounded() throws {
        let stage = try Stage()
        stage.enter(1, "remy")
        stage.say(1, Self.spoken((0..<500).map { "line \($0)" }))
        #expect(stage.harness.endSending(1))
        stage.harness.advance(by: IRCServer.lastWordsWait - .seconds(1))
        #expect(stage.harness.bridge.clientCount == 1)
        stage.harness.advance(by: .seconds(2))
        #expect(stage.harness.bridge.clientCount == 0)
        #expect(stage.messages().count < 150)
        #expect(stage.harness.violations == [])
    }

    @Test("a client that does not read either has said it all the same")
    func doesNotRead() throws {
        let stage = try Stage()
        stage.enter(1, "remy")
        stage.say(1, Self.spoken(Self.thirty) + ["QUIT"])
        #expect(stage.harness.endSending(1))
        stage.harness.perform { $0.clientClosed(ClientID(rawValue: 1), reason: "reset", now: $1) }
        stage.harness.advance(by: .seconds(30))
        #expect(stage.messages() == Self.thirty)
        #expect(stage.harness.bridge.clientCount == 0)
    }

    @Test("what it asks for when it does not read any more holds up nothing")
    func longAnswers() throws {
        let stage = try Stage(rooms: ["lobby"] + (0..<600).map { "r\($0)" })
        stage.enter(1, "remy")
        stage.harness.setSlow(1, true)
        stage.say(1, ["LIST", "LIST", "PRIVMSG #lobby :one", "JOIN #r1", "LIST", "PRIVMSG #lobby :two"])
        #expect(stage.harness.endSending(1))
        stage.harness.disconnect(1)
        stage.harness.advance(by: .seconds(20))
        #expect(stage.messages() == ["one", "two"])
        #expect(stage.harness.bridge.clientCount == 0)
    }

    @Test("a client that breaks off in the middle is gone")
    func breaksOff() throws {
        let stage = try Stage()
        stage.enter(1, "remy")
        stage.say(1, Self.spoken(Self.thirty))
        stage.harness.disconnect(1)
        stage.harness.advance(by: .seconds(30))
        #expect(stage.messages().count < 15)
        #expect(stage.harness.bridge.clientCount == 0)
    }
}
