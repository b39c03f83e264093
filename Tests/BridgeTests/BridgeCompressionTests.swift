import BridgeCore
import BridgeTestSupport
import Dialects
import HTTPProtocol
import IRCServer
import Rooms
import Testing
import Upstream
import WSProtocol

@testable import ChatBridge
@testable import Configuration

@Suite("Bridge: compressed links")
struct BridgeCompressionTests {
    private static func harness(_ compression: WebSocketCompression?, backend: WebSocketCompression?) throws
        -> BridgeHarness
    {
        var room = RoomSettings(
            name: "lobby", dialect: EnvelopeDialect(), url: try HTTPURL(parsing: "ws://chat.example/"))
        room.ping = .zero
        room.compression = compression
        let harness = BridgeHarness(settings: BridgeSettings(serverName: "bridge", instanceID: "t", rooms: [room]))
        harness.upstreams.first?.compression = backend
        harness.start()
        harness.connect(1)
        for line in ["NICK ada", "USER u 0 * :r", "JOIN #lobby"] { harness.send(1, line) }
        _ = harness.takeOutputs()
        return harness
    }

    @Test(
        "a backend is understood with and without compression, whoever wants it",
        arguments: [(true, true), (true, false), (false, true), (false, false)])
    func bothWays(bridge: Bool, backend: Bool) throws {
        let wish = WebSocketCompression(clientNoContextTakeover: true)
        let harness = try Self.harness(bridge ? wish : nil, backend: backend ? WebSocketCompression() : nil)
        let long = String(repeating: "long words ", count: 30)
        for round in 0..<3 {
            harness.send(1, "PRIVMSG #lobby :\(round) \(long)")
            let said = harness.takeOutputs().compactMap { output in
                if case .upstream(room: 0, .frame(let bytes, isBinary: false)) = output {
                    String(decoding: bytes, as: UTF8.self)
                } else {
                    nil
                }
            }
            #expect(said.contains { $0.contains("\"\(round) long words") })
            harness.sendFrame(
                0,
                """
                {"event":"message","message_id":"m\(round)","sender_id":"s","sender_name":"Sam","body":"\(round) \(long)",\
                "sent_at":1795262400}
                """)
            #expect(harness.takeLines(1).contains { $0.hasPrefix(":Sam!") && $0.contains(":\(round) long words") })
        }
        #expect(harness.violations == [])
    }

    @Test("a room offers compression where its configuration says so, without a context of its own")
    func configured() throws {
        var room = RoomConfiguration()
        room.name = "lobby"
        room.url = try UpstreamURL(parsing: "ws://h/")
        #expect(try #require(try RoomSettings(room)).compression == nil)
        room.compression = .offer
        #expect(try #require(try RoomSettings(room)).compression == WebSocketCompression(clientNoContextTakeover: true))
    }
}
