import Accounts
import BridgeTestSupport
import BridgeTypes
import Digests
import Testing

@testable import BridgeCore
@testable import IRCServer

@Suite("005 announces what is so")
struct ISupportTests {
    private static func tokens(_ change: (inout BridgeSettings) -> Void = { _ in }) -> [String] {
        var settings = BridgeSettings(serverName: "bridge.example", instanceID: "", rooms: [])
        change(&settings)
        return BridgeHarness(settings: settings).bridge.irc.isupport.flatMap { $0 }
    }

    @Test("each token once, in order, with values escaped")
    func order() {
        let tokens = Self.tokens {
            $0.network = "A network with a name"
            $0.icon = "https://chat.example/icon.png"
        }
        #expect(tokens.contains(#"NETWORK=A\x20network\x20with\x20a\x20name"#))
        #expect(tokens.contains("draft/ICON=https://chat.example/icon.png"))
        #expect(tokens.contains("PREFIX=(ov)@+") && tokens.contains("UTF8ONLY") && tokens.contains("WHOX"))
        #expect(tokens == tokens.sorted())
        #expect(Set(tokens.map { $0.prefix { $0 != "=" } }).count == tokens.count)
    }

    @Test("what is not so is left out")
    func absent() {
        let usual = Self.tokens()
        for name in ["CLIENTTAGDENY", "STATUSMSG", "CHANLIMIT", "SAFERATE", "draft/ACCOUNTREQUIRED", "draft/ICON"] {
            #expect(!usual.contains { $0.hasPrefix(name) }, "\(name)")
        }
        #expect(Self.tokens { $0.limits.messagesPerSecond = nil }.contains("SAFERATE"))
        #expect(Self.tokens { $0.requireLogin = .always }.contains("draft/ACCOUNTREQUIRED"))
        #expect(
            !Self.tokens {
                $0.requireLogin = .always
                $0.password = .plain(SecretBytes(Array("secret".utf8)))
            }.contains("draft/ACCOUNTREQUIRED"))
    }
}
