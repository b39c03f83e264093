import BridgeTestSupport
import Testing
import Transport
import WireBytes

@testable import Configuration

@Suite("Listeners in the configuration")
struct ListenerConfigurationTests {
    static let open = "[identity]\nrequire_login = \"never\"\n"

    private static func listener(_ text: String) -> String { "[[listeners]]\n" + text }

    @Test(
        "addresses are printed as they are read",
        arguments: [
            "ws://127.0.0.1:6680", "ws://localhost:6680/irc", "wss://[::]:443/a/b", "ws+insecure://0.0.0.0:6680",
            "ws+unix:///run/web.sock", "ws+unix:///run/web.sock:/irc", "irc+unix:///run/irc.sock",
        ])
    func addresses(text: String) throws { #expect(try ListenerAddress(parsing: text).description == text) }

    @Test("a WebSocket's path is what stands behind the address, or a slash")
    func paths() throws {
        #expect(try ListenerAddress(parsing: "ws://127.0.0.1:6680").path == "/")
        #expect(try ListenerAddress(parsing: "ws://127.0.0.1:6680/").path == "/")
        #expect(try ListenerAddress(parsing: "wss://127.0.0.1:6680/irc").path == "/irc")
        #expect(try ListenerAddress(parsing: "ws+unix:///run/a.sock:/irc").path == "/irc")
        #expect(try ListenerAddress(parsing: "irc://127.0.0.1:6667").path == "")
    }

    static let cases = [
        ProblemCase(
            "no port", listener("bind = \"ws://127.0.0.1/irc\""), "chatbridge.toml:3:8: has no port"),
        ProblemCase(
            "plain text beyond loopback", open + listener("bind = \"ws://0.0.0.0:1\""),
            "chatbridge.toml:5:8: plain text beyond loopback must say so: write \"ws+insecure://0.0.0.0:1\" "
                + "(or bind 127.0.0.1)"),
        ProblemCase(
            "a path with a query", listener("bind = \"ws://127.0.0.1:1/irc?x\""),
            "chatbridge.toml:3:8: the path \"/irc?x\" is one without query and fragment, percent-encoded"),
        ProblemCase(
            "TLS without a certificate's key", open + listener("bind = \"wss://127.0.0.1:1\"\ncert = \"/cert\""),
            "chatbridge.toml:5:8: wss:// needs a certificate, and key is not set; \"chatbridge cert self-signed\" "
                + "makes one"),
        ProblemCase(
            "a key with a slip", listener("bind = \"ws://127.0.0.1:1\"\norigin = [\"self\"]"),
            "chatbridge.toml:4:1: unknown key \"origin\" (did you mean \"origins\"?)"),
        ProblemCase(
            "an origin without a scheme", listener("bind = \"ws://127.0.0.1:1\"\norigins = [\"chat.example.com\"]"),
            "chatbridge.toml:4:12: \"chat.example.com\" is not an origin: \"self\", \"*\", \"null\" or one such as "
                + "\"https://chat.example.com\""),
        ProblemCase(
            "an origin with a path", listener("bind = \"ws://127.0.0.1:1\"\norigins = [\"self\", \"https://a/\"]"),
            "chatbridge.toml:4:20: the origin \"https://a/\" has a path; origins have none, not even \"/\""),
        ProblemCase(
            "an origin of another scheme", listener("bind = \"ws://127.0.0.1:1\"\norigins = [\"ws://a\"]"),
            "chatbridge.toml:4:12: the origin \"ws://a\" begins with http:// or https://"),
        ProblemCase(
            "origins without a browser", listener("bind = \"irc://127.0.0.1:1\"\norigins = [\"*\"]"),
            "chatbridge.toml:4:11: origins are for browsers: bind = \"ws://…\" or \"wss://…\""),
        ProblemCase(
            "hosts without a use", listener("bind = \"irc://127.0.0.1:1\"\nhosts = [\"a.example\"]"),
            "chatbridge.toml:4:9: hosts mean nothing here: they are for ws:// and wss://, and for ircs:// with sts"),
        ProblemCase(
            "a proxy that nobody is trusted to be",
            listener("bind = \"irc://127.0.0.1:1\"\nproxy_protocol = \"v1v2\""),
            "chatbridge.toml:4:18: proxy_protocol needs trusted_proxies: from others a PROXY header would be a lie"),
        ProblemCase(
            "a version that there is not",
            open + listener("bind = \"irc://127.0.0.1:1\"\nproxy_protocol = \"v2\"\ntrusted_proxies = [\"::1\"]"),
            "chatbridge.toml:6:18: expected \"off\" or \"v1v2\", found \"v2\""),
        ProblemCase(
            "trust without a use", open + listener("bind = \"irc://127.0.0.1:1\"\ntrusted_proxies = [\"::1\"]"),
            "chatbridge.toml:6:19: trusted_proxies mean nothing without proxy_protocol = \"v1v2\""),
        ProblemCase(
            "a range with bits too many",
            open + listener("bind = \"ws://127.0.0.1:1\"\ntrusted_proxies = [\"10.0.0.1/8\"]"),
            "chatbridge.toml:6:20: \"10.0.0.1/8\" is not an address, a range such as \"10.0.0.0/8\", or \"unix\""),
        ProblemCase(
            "a socket file's peer on a port",
            open + listener("bind = \"ws://127.0.0.1:1\"\ntrusted_proxies = [\"unix\"]"),
            "chatbridge.toml:6:19: \"unix\" is for a listener with a socket file"),
        ProblemCase(
            "an address on a socket file",
            open + listener("bind = \"ws+unix:///run/a.sock\"\ntrusted_proxies = [\"::1\"]"),
            "chatbridge.toml:6:19: a socket file has no addresses: trusted_proxies = [\"unix\"]"),
        ProblemCase(
            "a proxy that lets everybody in",
            listener("bind = \"ws://127.0.0.1:1\"\ntrusted_proxies = [\"127.0.0.1\"]"),
            "chatbridge.toml:4:19: ws://127.0.0.1:1 can be reached from other machines through its proxy and nobody "
                + "needs a password: set password or password_file in [identity], or write require_login = \"never\""),
        ProblemCase(
            "sts without TLS", listener("bind = \"irc://127.0.0.1:1\"\nsts = \"30d\""),
            "chatbridge.toml:4:7: sts is said by an ircs:// listener; plain ones then lead to it by themselves"),
        ProblemCase(
            "sts for no time that can be said", listener("bind = \"irc://127.0.0.1:1\"\nsts = \"500ms\""),
            "chatbridge.toml:4:7: expected \"off\" or a duration of whole seconds, such as \"30d\", found \"500ms\""),
        ProblemCase(
            "a port for nothing", listener("bind = \"irc://127.0.0.1:1\"\nsts_port = 6697"),
            "chatbridge.toml:4:12: sts_port means nothing without sts"),
        ProblemCase(
            "a gateway without a password", "[identity]\nwebirc = [{ from = [\"::1\"] }]",
            "chatbridge.toml:3:11: this gateway has no password; \"chatbridge hash-password\" makes the hash of one"),
        ProblemCase(
            "a gateway from nowhere", "[identity]\nwebirc = [{ password = \"p\" }]",
            "chatbridge.toml:3:11: this gateway may connect from nowhere; from = [\"10.0.0.1\"] says where it is"),
        ProblemCase(
            "a gateway's key with a slip",
            "[identity]\nwebirc = [{ pasword = \"p\", password = \"p\", from = [\"::1\"] }]",
            "chatbridge.toml:3:13: unknown key \"pasword\" (did you mean \"password\"?)"),
    ]

    @Test("a gateway lets in people from elsewhere, so somebody must decide who may come")
    func gatewayWithoutLogin() {
        let gateway = "webirc = [{ password = \"p\", from = [\"::1\"] }]"
        #expect(
            problems(withRoom("[identity]\n" + gateway)) == [
                "chatbridge.toml:3:10: through a gateway people come from other machines and nobody needs a password: "
                    + "set password or password_file in [identity], or write require_login = \"never\""
            ])
        #expect(problems(withRoom(Self.open + gateway)) == [])
        #expect(problems(withRoom("[identity]\npassword = \"p\"\n" + gateway)) == [])
    }

    @Test("a problem is told with its place", arguments: cases)
    func problem(_ row: ProblemCase) { #expect(problems(withRoom(row.toml), files: ["/cert": "x"]) == [row.expected]) }

    @Test("what is written is taken, printed and read again")
    func taken() throws {
        let text = """
            [identity]
            password = "p"
            webirc = [{ password = "hunter2", from = ["10.0.0.0/8", "unix"] }, { password_file = "/gateway", from = ["::1"] }]
            [[listeners]]
            bind = "ws+insecure://0.0.0.0:6680/irc"
            origins = ["self", "https://chat.example.com"]
            hosts = ["IRC.example.com"]
            trusted_proxies = ["10.0.0.0/8"]
            [[listeners]]
            bind = "ircs://0.0.0.0:6697"
            cert = "/cert"
            key = "/key"
            sts = "30d"
            sts_port = 7000
            hosts = ["irc.example.com"]
            proxy_protocol = "v1v2"
            trusted_proxies = ["192.0.2.1"]
            """
        var files = ConfigurationTLSTests.files
        files["/gateway"] = "secret\n"
        var loaded = try load(withRoom(text), files: files)
        #expect(loaded.listeners[0].origins.map(\.description) == ["self", "https://chat.example.com"])
        #expect(loaded.listeners[0].hosts == ["irc.example.com"])
        #expect(loaded.listeners[0].announcingProxies == nil)
        #expect(loaded.listeners[1].sts == .lasting(.seconds(30 * 86400)))
        #expect(loaded.listeners[1].announcingProxies?.contains(.ipv4(0xC000_0201, port: 1)) == true)
        #expect(loaded.identity.webirc.map(\.password) == [.plain(Secret("hunter2")), .plain(Secret("secret"))])
        #expect(loaded.identity.webirc[0].from.map(\.description) == ["10.0.0.0/8", "unix"])
        let printed = ConfigurationPrinter.text(loaded)
        #expect(!printed.contains("hunter2") && !printed.contains("secret"))
        var again = try load(printed, files: files)
        // Secrets are blanked.
        for index in loaded.identity.webirc.indices {
            loaded.identity.webirc[index].password = nil
            again.identity.webirc[index].password = nil
        }
        again.identity.password = loaded.identity.password
        #expect(again == loaded)
    }

    @Test("the environment alone makes a listener")
    func environment() throws {
        let loaded = try load(
            withRoom(""),
            variables: [
                "CHATBRIDGE__LISTENERS__0__BIND": "ws://127.0.0.1:6680/irc",
                "CHATBRIDGE__LISTENERS__0__ORIGINS": "self,https://chat.example.com",
                "CHATBRIDGE__IDENTITY__REQUIRE_LOGIN": "never", "CHATBRIDGE__IDENTITY__WEBIRC__0__PASSWORD": "p",
                "CHATBRIDGE__IDENTITY__WEBIRC__0__FROM": "10.0.0.0/8",
            ])
        #expect(loaded.listeners.map(\.bind.path) == ["/irc"])
        #expect(loaded.listeners[0].origins.count == 2)
        #expect(loaded.identity.webirc.map(\.from) == [[try TrustedPeer(parsing: "10.0.0.0/8")]])
    }
}
