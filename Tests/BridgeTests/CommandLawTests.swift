import Accounts
import BridgeTestSupport
import BridgeTypes
import Dialects
import Digests
import HTTPProtocol
import IRCProtocol
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Any command, whatever it is given")
struct CommandLawTests {
    private static let words = [
        "#lobby", "#nowhere", "ann", "bob", "Remy", "*", "+", "-", "C", "L", "S", "+o", "-b", "+bbbb", "+imt-imtov",
        "b",
        "x!*@*", ":", ": a b", "", "\u{1}", "GET", "SUB", "SYNC", "display-name", "al/net", "%tcuihsnfdlaor,7", "o",
        ">1", "!*", "timestamp=1", String(repeating: "y", count: 300), "é\u{301}", "u", "bridge", ",,,", "0",
    ]

    static func settings() throws -> BridgeSettings {
        // One iteration: what is slow by intent has no place in a test.
        let password = SCRAMVerifier(quickly: "a")
        return BridgeSettings(
            serverName: "bridge", instanceID: "tests",
            accounts: [AccountSettings(name: "ann", password: password, isAdmin: true, mayRelay: true)],
            limits: LimitSettings { $0.messagesPerSecond = nil },
            rooms: [
                RoomSettings(
                    name: "lobby", dialect: EnvelopeDialect(), url: try HTTPURL(parsing: "ws://chat.example/lobby"))
            ])
    }

    /// Answers that no client could have sent for are lines like any other: parsed, and short enough.
    @Test("whatever is asked, the answer is legal lines and the bridge goes on", arguments: LawSeeds.seeds(12))
    func anything(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let harness = BridgeHarness(settings: try Self.settings())
        harness.echoes = true
        harness.start()
        for (client, nick) in [(1, "ann"), (2, "bob")] as [(UInt64, String)] {
            harness.connect(client)
            harness.send(client, "CAP REQ :batch draft/metadata-2 labeled-response")
            if client == 1 { harness.send(client, "PASS ann:a") }
            for line in ["NICK \(nick)", "USER u 0 * :u", "CAP END", "JOIN #lobby"] { harness.send(client, line) }
        }
        harness.sendFrame(
            0, #"{"event":"message","message_id":"A1","sender_id":"R-1","sender_name":"Remy","body":"hi","sent_at":1}"#)
        _ = harness.takeOutputs()
        let commands = CommandTableTests.verbs.filter { !["QUIT", "KILL", "CAP"].contains($0) }
        for _ in 0..<200 {
            let client = UInt64(1 + Int(random.next() % 2))
            guard harness.isConnected(client) else { continue }
            let command = commands[Int(random.next() % UInt64(commands.count))]
            let params = (0..<Int(random.next() % 5)).map { _ in
                Self.words[Int(random.next() % UInt64(Self.words.count))]
            }
            let label = random.next() % 4 == 0 ? "@label=l " : ""
            harness.send(client, ([label + command] + params).joined(separator: " "))
            for case .line(_, let bytes) in harness.takeOutputs() {
                let content = bytes.first == UInt8(ascii: "@") ? bytes.drop { $0 != 0x20 }.dropFirst() : bytes[...]
                let text = String(decoding: bytes, as: UTF8.self)
                #expect(content.count <= 510, "\(command) \(params): \(text)")
                #expect(throws: Never.self) { _ = try bytes.withUnsafeBytes { try IRCParse.parse($0) } }
                #expect(!bytes.contains { $0 == 0x0D || $0 == 0 })
            }
            harness.advance(by: .milliseconds(Int64(random.next() % 500)))
        }
        #expect(harness.violations == [])
        guard harness.isConnected(1) else { return }
        _ = harness.takeOutputs()
        harness.send(1, "PING still-there")
        harness.advance(by: .seconds(5))
        #expect(harness.takeLines(1).contains { $0.hasSuffix("still-there") })
    }
}
