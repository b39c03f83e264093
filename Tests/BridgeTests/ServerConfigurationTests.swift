import Accounts
import BridgeCore
import BridgeTestSupport
import BridgeTypes
import IRCServer
import Testing

@testable import ChatBridge
@testable import Configuration

@Suite("Who may relay, and what stands for the network")
struct ServerConfigurationTests {
    /// Made by `chatbridge hash-password` of "pencil".
    private static let hash =
        "$scram-sha-256$4096$W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=$wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

    @Test("what is written reaches the bridge")
    func arrives() throws {
        let text = """
            [server]
            icon = "https://chat.example/icon.png"
            [[accounts]]
            name = "mirror"
            password = "\(Self.hash)"
            relaymsg = true
            [[accounts]]
            name = "chef"
            password = "\(Self.hash)"
            admin = true
            """
        let settings = try BridgeSettings(load(withRoom(text)), instanceID: "x")
        #expect(settings.icon == "https://chat.example/icon.png")
        #expect(settings.accounts.map(\.mayRelay) == [true, false])
        #expect(settings.accounts.map(\.isAdmin) == [false, true])
        #expect(try BridgeSettings(load(withRoom("")), instanceID: "x").icon == nil)
    }

    @Test("limits, and the backend that knows its people, reach the bridge")
    func others() throws {
        let limited = try BridgeSettings(load(withRoom("[limits]\nbacklog = 7")), instanceID: "x")
        #expect(limited.limits == LimitSettings { $0.backlog = 7 })
        let backend = """
            [backends.main]
            dialect = "jwt-rooms"
            url = "wss://chat.example.com/ws/chat/{room}"
            [[rooms]]
            name = "lobby"
            backend = "main"

            """
        let account = "[[accounts]]\nname = \"colette\"\npassword = \"\(Self.hash)\"\nbearer = [\"colette\", \"17\"]\n"
        let settings = try BridgeSettings(
            try load(backend + "[identity]\nbearer = \"main\"\n" + account), instanceID: "tests")
        #expect(settings.bearerBackend == "main")
        #expect(settings.accounts.first?.tokenOwners == ["colette", "17"])
        #expect(try BridgeSettings(try load(backend), instanceID: "tests").bearerBackend == nil)
    }

    @Test("the demo keeps nothing unless somebody says so")
    func demo() throws {
        let request = GlobalOptions().request(needsRooms: false, storage: .memory)
        #expect(try load(nil, request: request).storage.place == .memory)
    }

    @Test("an icon is an address on the web", arguments: ["icon.png", "file:///icon.png", "https://a b", "https://é/"])
    func icons(_ icon: String) {
        #expect(ConfigurationChecks.icon(icon) != nil)
    }
}
