import BridgeTestSupport
import Mirrors
import Testing

/// A conversation, as ``NetworkPlayer`` plays it.
struct NetworkConversation: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var settings: IRCNetworkSettings
    var script: String

    init(_ name: String, _ settings: IRCNetworkSettings, _ script: String) {
        (testDescription, self.settings, self.script) = (name, settings, script)
    }

    init(_ name: String, _ script: String) { self.init(name, NetworkPlayer.settings("#chat"), script) }
}

@Suite("An IRC network, seen by its client")
struct NetworkConversationTests {
    @Test("registration", arguments: NetworkScripts.registration)
    func registration(_ row: NetworkConversation) { check(row) }

    @Test("channels", arguments: NetworkScripts.channels)
    func channels(_ row: NetworkConversation) { check(row) }

    @Test("speaking", arguments: NetworkScripts.speaking)
    func speaking(_ row: NetworkConversation) { check(row) }

    @Test("hearing", arguments: NetworkScripts.hearing)
    func hearing(_ row: NetworkConversation) { check(row) }

    @Test("time, ends and history", arguments: NetworkScripts.ends)
    func ends(_ row: NetworkConversation) { check(row) }

    @Test("recorded", arguments: NetworkScripts.recorded)
    func recorded(_ row: NetworkConversation) { check(row) }

    private func check(_ row: NetworkConversation) {
        var player = NetworkPlayer(row.settings)
        #expect(player.play(row.script) == row.script)
    }
}
