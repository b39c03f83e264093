import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import Testing
import Upstream

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A room that an account may not enter is, in every answer, a room that does not exist.
@Suite("Rooms that an account may not enter")
struct RoomAccessTests {
    /// `#lobby`, which alice may enter, and `#secret`, which she may not; bob, who has no account, is in both and moderates.
    private static func harness(template: Bool) throws -> BridgeHarness {
        @Sendable func room(_ name: String) -> RoomSettings? {
            guard let url = try? HTTPURL(parsing: "ws://chat.example/\(HTTPURL.percentEncoded(name))") else {
                return nil
            }
            var room = RoomSettings(
                name: name, backend: "main", dialect: EnvelopeDialect(), url: url, upstreamRoom: name)
            room.ping = .zero
            return room
        }
        let alice = AccountSettings(
            name: "alice",
            password: SCRAMVerifier(password: SecretBytes("secret".utf8), salt: Array("salt".utf8), iterations: 1),
            rooms: ["lobby"], mayRelay: true)
        let harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t", accounts: [alice],
                limits: LimitSettings { $0.messagesPerSecond = nil },
                rooms: [try #require(room("lobby")), try #require(room("secret"))],
                backends: [BackendSettings(name: "main", dialect: EnvelopeDialect(), httpBase: nil)],
                template: template ? RoomTemplate(backend: "main") { room($0) } : nil))
        harness.start()
        if template {
            harness.bridge.irc.roomsListed(["lobby", "secret", "vault"].map { BackendRoom(id: $0, name: $0) })
        }
        enter(harness, 2, "bob", join: template ? "#lobby,#secret,#vault" : "#lobby,#secret")
        harness.send(2, "TOPIC #secret :the plan")
        enter(harness, 1, "alice", login: true, join: "#lobby")
        return harness
    }

    private static func enter(
        _ harness: BridgeHarness, _ client: UInt64, _ nick: String, login: Bool = false, join: String
    ) {
        harness.connect(client)
        harness.send(
            client,
            "CAP REQ :message-tags batch standard-replies draft/message-redaction draft/read-marker draft/chathistory "
                + "draft/metadata-2 soju.im/search draft/relaymsg")
        if login { harness.send(client, "PASS alice:secret") }
        harness.send(client, "NICK \(nick)")
        harness.send(client, "USER u 0 * :r")
        harness.send(client, "CAP END")
        harness.send(client, "JOIN \(join)")
        _ = harness.takeOutputs()
    }

    static let commands = [
        "JOIN {}", "PART {}", "PART {} :bye", "TOPIC {}", "TOPIC {} :mine", "MODE {}", "MODE {} b", "MODE {} +b x!*@*",
        "MODE {} +m", "MODE {} +o alice", "NAMES {}", "WHO {}", "WHO {} %tcn", "LIST {}", "LIST", "KICK {} bob",
        "INVITE bob {}", "PRIVMSG {} :hi", "@+typing=active TAGMSG {}", "REDACT {} m1", "MARKREAD {}",
        "MARKREAD {} timestamp=2026-01-01T00:00:00.000Z", "CHATHISTORY LATEST {} * 10", "METADATA {} GET display-name",
        "METADATA {} LIST", "METADATA {} SYNC", "RELAYMSG {} a/b :hi", "SEARCH in={};text=plan",
        "PRIVMSG *bridge :status {}", "PRIVMSG *bridge :who {}", "PRIVMSG *bridge :people {}",
        "PRIVMSG *bridge :search {} plan", "PRIVMSG *bridge :rooms", "WHOIS bob",
    ]

    private static func answers(_ harness: BridgeHarness, _ command: String, _ name: String) -> [String] {
        harness.send(1, command.replacing("{}", with: "#" + name))
        let lines = harness.takeLines(1).map {
            $0.replacing(/BATCH [+-]\S+/, with: "BATCH").replacing(/batch=[^; ]+/, with: "")
        }
        return lines.map { $0.replacing("#" + name, with: "#room") }
    }

    @Test(
        "every command is answered to the letter as of a room that does not exist", arguments: commands, [false, true])
    func answered(_ command: String, _ template: Bool) throws {
        let harness = try Self.harness(template: template)
        let nowhere = Self.answers(harness, command, "nowhere")
        #expect(Self.answers(harness, command, "secret") == nowhere)
        #expect(Self.answers(harness, command, "SECRET") == nowhere)
        if template { #expect(Self.answers(harness, command, "vault") == nowhere) }
        #expect(!nowhere.isEmpty || command.contains("TAGMSG"))
        #expect(nowhere.allSatisfy { !$0.contains("secret") && !$0.contains("vault") && !$0.contains("plan") })
    }

    @Test("LUSERS counts the rooms that the client may enter")
    func counted() throws {
        let harness = try Self.harness(template: false)
        harness.send(1, "LUSERS")
        #expect(harness.takeLines(1).contains(":bridge 254 alice 1 :channels formed"))
        harness.send(2, "LUSERS")
        #expect(harness.takeLines(2).contains(":bridge 254 bob 2 :channels formed"))
    }
}
