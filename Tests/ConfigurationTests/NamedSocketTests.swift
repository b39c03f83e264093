import BridgeTestSupport
import Testing
import Transport

@testable import Configuration

@Suite("Sockets of the service manager in the configuration")
struct NamedSocketTests {
    private static func socket(_ name: String, _ address: String, descriptor: Int32 = 3) -> InheritedSocket {
        InheritedSocket(
            name: name, descriptor: descriptor,
            state: SocketAddress(address).map { .listening($0) } ?? .unusable(address))
    }

    private static func load(_ text: String, _ sockets: [InheritedSocket]?) -> Result<Configuration, ConfigurationError>
    {
        let environment = ConfigurationEnvironment(variables: [:], hostName: "h.test", sockets: sockets) { path in
            path == "chatbridge.toml"
                ? .success(Array((text + "\n[[rooms]]\nname = \"lobby\"\nurl = \"ws://127.0.0.1/x\"\n").utf8))
                : .failure(.notFound)
        }
        do {
            return .success(try ConfigurationLoader.load(ConfigurationRequest(), from: environment).configuration)
        } catch {
            return .failure(error)
        }
    }

    @Test(
        "a bind with a name prints as it was written",
        arguments: [
            "irc+fd://chat", "ircs+fd://chat.tls", "irc+insecure+fd://chat", "ws+fd://web/irc", "wss+fd://web/irc",
            "ws+insecure+fd://web",
        ])
    func text(_ text: String) throws {
        let bind = try ListenerAddress(parsing: text)
        #expect(bind.description == text)
        #expect(bind.isWebSocket == text.hasPrefix("ws"))
        #expect(bind.isSecure == (text.hasPrefix("ircs") || text.hasPrefix("wss")))
        #expect(bind.isLoopback, "until its address is known")
    }

    @Test("so does one of HTTP", arguments: ["http+fd://probes", "http+insecure+fd://probes"])
    func http(_ text: String) throws { #expect(try HTTPListenerAddress(parsing: text).description == text) }

    @Test(
        "names that no socket can have, and schemes without sockets, are refused",
        arguments: [
            "irc+fd://", "irc+fd://a:b", "irc+fd://a b", "irc+fd://a/b", "irc+unix+fd://a", "fd://a", "irc+fd:///x",
        ])
    func refused(_ text: String) {
        #expect(throws: AddressError.self) { try ListenerAddress(parsing: text) }
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var text: String
        var sockets: [InheritedSocket]?
        var problem: String?
    }

    static let rows = [
        Row(testDescription: "a check knows no sockets", text: "[[listeners]]\nbind = \"irc+fd://chat\""),
        Row(
            testDescription: "on loopback", text: "[[listeners]]\nbind = \"irc+fd://chat\"",
            sockets: [socket("chat", "127.0.0.1:6667"), socket("chat", "[::1]:6667", descriptor: 4)]),
        Row(
            testDescription: "a socket file", text: "[[listeners]]\nbind = \"irc+fd://chat\"",
            sockets: [socket("chat", "unix:/run/chat.sock")]),
        Row(
            testDescription: "none", text: "[[listeners]]\nbind = \"irc+fd://chat\"", sockets: [],
            problem: "chatbridge.toml:2:8: the service manager handed over no socket \"chat\", and no other: start the "
                + "bridge by its socket unit"),
        Row(
            testDescription: "others", text: "[[http]]\nbind = \"http+fd://chat\"",
            sockets: [socket("web", "127.0.0.1:1"), socket("irc", "127.0.0.1:2"), socket("web", "[::1]:1")],
            problem: "chatbridge.toml:2:8: the service manager handed over no socket \"chat\", but \"irc\", \"web\""),
        Row(
            testDescription: "one that does not listen", text: "[[listeners]]\nbind = \"irc+fd://chat\"",
            sockets: [socket("chat", "is no stream socket", descriptor: 5)],
            problem: "chatbridge.toml:2:8: the socket \"chat\" (descriptor 5) is no stream socket"),
        Row(
            testDescription: "plain text beyond loopback", text: "[[listeners]]\nbind = \"irc+fd://chat\"",
            sockets: [socket("chat", "127.0.0.1:6667"), socket("chat", "192.0.2.1:6667")],
            problem: "chatbridge.toml:2:8: plain text beyond loopback must say so: write "
                + "\"irc+insecure+fd://chat\" (or bind 127.0.0.1)"),
        Row(
            testDescription: "nobody needs a password", text: "[[listeners]]\nbind = \"irc+insecure+fd://chat\"",
            sockets: [socket("chat", "192.0.2.1:6667")],
            problem: "chatbridge.toml:2:8: 192.0.2.1:6667 can be reached from other machines and nobody needs a "
                + "password: set password or password_file in [identity], or write require_login = \"never\""),
        Row(
            testDescription: "HTTP beyond loopback", text: "[[http]]\nbind = \"http+fd://probes\"",
            sockets: [socket("probes", "0.0.0.0:9667")],
            problem: "chatbridge.toml:2:8: plain text beyond loopback must say so: write "
                + "\"http+insecure+fd://probes\" (or bind 127.0.0.1)"),
        Row(
            testDescription: "twice",
            text: "[[listeners]]\nbind = \"irc+fd://chat\"\n[[http]]\nbind = \"http+fd://chat\"",
            problem: "chatbridge.toml:4:8: chat is bound twice (first at chatbridge.toml:2:8)"),
    ]

    @Test("what a name stands for is judged by the addresses it is bound to", arguments: rows)
    func judged(_ row: Row) {
        switch Self.load(row.text, row.sockets) {
        case .success(let configuration):
            #expect(row.problem == nil)
            let named = configuration.listeners.first?.bind.sockets
            #expect(named?.found == row.sockets ?? [])
            #expect(configuration.listeners.first?.isLocal == true)
        case .failure(let error): #expect(error.problems.map(\.description) == [row.problem ?? "none"])
        }
    }
}
