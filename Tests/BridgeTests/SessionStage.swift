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

/// One room, a stub's wire or a described one, and a few IRC users, told in short words.
final class SessionStage {
    let harness: BridgeHarness
    private var lines: [UInt64: [String]] = [:]
    private var frames: [JSONValue] = []
    private var marks: [String] = []
    private var isStopped = false

    /// - Parameter change: what the room is beside its dialect.
    init(
        _ dialect: any Dialect, socket: ChatCredentials? = nil, rooms: Int = 1,
        _ change: (inout RoomSettings) -> Void = { _ in }
    ) throws {
        var dialect = dialect
        if var stub = dialect as? StubDialect, stub.traits.history == .call {
            stub.calls = stub.calls ?? StubCalls()
            dialect = stub
        }
        let settings = try (0..<rooms).map { index in
            var room = RoomSettings(
                name: index == 0 ? "lobby" : "room\(index)", backend: "b", dialect: dialect,
                url: try HTTPURL(parsing: "ws://chat.example/\(index)"))
            room.ping = .zero
            room.authenticates = socket != nil
            change(&room)
            return room
        }
        harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t",
                limits: LimitSettings {
                    $0.messagesPerSecond = nil
                    $0.upstreamMessagesPerSecond = nil
                }, rooms: settings,
                backends: [
                    BackendSettings(name: "b", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"))
                ]))
        if let socket {
            for index in 0..<rooms { harness.credentials[index] = .success(UpstreamCredentials(socket: socket)) }
        }
    }

    var room: Room { harness.bridge.rooms[0] }
    var wall: Int64 { harness.clock.now.wall.milliseconds }

    /// An IRC user enters, and what they are greeted with is forgotten.
    func enter(_ nick: String, _ client: UInt64 = 1, caps: String = "echo-message") {
        harness.connect(client)
        harness.send(client, "CAP REQ :" + caps)
        harness.send(client, "NICK " + nick)
        harness.send(client, "USER u 0 * :r")
        harness.send(client, "CAP END")
        harness.send(client, "JOIN #lobby")
        _ = heard(client)
    }

    private func look() {
        for output in harness.takeOutputs() {
            switch output {
            case .line(let client, let bytes): lines[client, default: []].append(String(decoding: bytes, as: UTF8.self))
            case .upstream(let room, .frame(let bytes, _)):
                frames.append((try? JSONValue(parsing: bytes)) ?? .null)
                marks.append("\(room) \(frames.last?["kind"]?.string ?? "?")")
            case .upstream(let room, .connected): marks.append("\(room) connect")
            case .upstream(let room, .disconnected): marks.append("\(room) disconnect")
            case .upstream(let room, .ping): marks.append("\(room) [ping]")
            case .stopped: isStopped = true
            default: break
            }
        }
    }

    /// The bridge's shutdown is complete.
    var hasStopped: Bool {
        look()
        return isStopped
    }

    /// What was sent to the backend since the last look.
    func sent() -> [JSONValue] {
        look()
        defer { frames = [] }
        return frames
    }

    /// Connections, ends and the kinds of frames since the last look, each after its room's number.
    func seen() -> [String] {
        look()
        defer { marks = [] }
        return marks
    }

    /// What `client` heard since the last look: `nick: text` for what is said, else the line itself.
    func heard(_ client: UInt64 = 1) -> [String] {
        look()
        defer { lines[client] = [] }
        return (lines[client] ?? []).map { line in
            guard let match = line.wholeMatch(of: #/(?:@\S+ )?:([^! ]+)(?:!\S+)? (PRIVMSG|NOTICE) \S+ :(.*)/#) else {
                return line
            }
            return "\(match.1): \(match.3)"
        }
    }

    /// What was said in the room, without joins, notices and numerics.
    func said(_ client: UInt64 = 1) -> [String] {
        heard(client).filter { $0.prefixMatch(of: #/[^ :]+: /#) != nil && !$0.hasPrefix("bridge: ") }
    }

    func backend(_ json: String, room: Int = 0) { harness.sendFrame(room, json) }

    func notes(_ event: String) -> [BridgeNote] { harness.notes.filter { $0.event == event } }

    /// A message frame; the time in seconds after the start of the tests' clock.
    static func message(
        _ id: String?, _ text: String, from sender: String = "ann", at seconds: Int64? = nil, more: String = ""
    ) -> String {
        let id = id.map { "\"id\":\"\($0)\"," } ?? ""
        let at = seconds.map { "\"at\":\(base + $0 * 1000)," } ?? ""
        return "{\"kind\":\"message\",\(id)\(at)\"sender\":{\"id\":\"u-\(sender)\",\"name\":\"\(sender)\"},"
            + "\(more)\"text\":\"\(text)\"}"
    }

    static let base: Int64 = 1_795_262_400_000

    static func history(_ messages: [String], ref: String? = nil) -> String {
        let ref = ref.map { "\"ref\":\"\($0)\"," } ?? ""
        return "{\"kind\":\"history\",\(ref)\"messages\":[\(messages.joined(separator: ","))]}"
    }

    func loseLink() { harness.endTransport(0, reason: "the connection was reset") }
}
