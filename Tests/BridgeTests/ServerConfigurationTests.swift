import BridgeCore
import Testing

@testable import ChatBridge

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

    @Test("an icon is an address on the web", arguments: ["icon.png", "file:///icon.png", "https://a b", "https://é/"])
    func icons(_ icon: String) {
        #expect(ConfigurationChecks.icon(icon) != nil)
    }
}
