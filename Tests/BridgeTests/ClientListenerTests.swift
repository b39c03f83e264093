import BridgeCore
import IRCServer
import Testing
import Transport

@testable import ChatBridge
@testable import Configuration

@Suite("What a listener says of its clients")
struct ClientListenerTests {
    private func listener(
        _ bind: String, sts: STSChoice = .off, port: Int? = nil, hosts: [String] = [], proxies: [String] = []
    ) throws -> ListenerConfiguration {
        var listener = ListenerConfiguration()
        listener.bind = try ListenerAddress(parsing: bind)
        listener.sts = sts
        listener.stsPort = port
        listener.hosts = hosts
        listener.trustedProxies = try proxies.map { try TrustedPeer(parsing: $0) }
        return listener
    }

    private func origin(
        _ listener: ListenerConfiguration, _ peer: String, name: String? = nil
    ) throws -> ClientOrigin {
        ClientListener(listener, serverName: "irc.example.com").origin(
            of: try #require(SocketAddress(peer)), requestedName: name)
    }

    /// Without what the listener is called and made of.
    private func unnamed(_ origin: ClientOrigin) -> ClientOrigin {
        var origin = origin
        origin.listener = ""
        origin.isUnixSocket = false
        return origin
    }

    @Test("a client is where its address is; behind a proxy nobody is of this machine")
    func local() throws {
        let loopback = try listener("irc://127.0.0.1:6667")
        #expect(
            unnamed(try origin(loopback, "127.0.0.1:1"))
                == ClientOrigin(address: "127.0.0.1", isLocal: true, isListenerLocal: true, allowsLogin: true))
        let proxied = try listener("irc://127.0.0.1:6667", proxies: ["127.0.0.1", "10.0.0.1"])
        #expect(
            unnamed(try origin(proxied, "203.0.113.7:1"))
                == ClientOrigin(address: "203.0.113.7", isLocal: false, isListenerLocal: false, allowsLogin: true))
        // The proxy itself, that is somebody whom it does not name.
        #expect(
            unnamed(try origin(proxied, "10.0.0.1:1"))
                == ClientOrigin(address: "10.0.0.1", isLocal: true, isListenerLocal: false, allowsLogin: true))
        let unix = try listener("irc+unix:///run/irc.sock")
        #expect(
            unnamed(ClientListener(unix, serverName: "x.y").origin(of: .unix(path: ""), requestedName: nil))
                == ClientOrigin(address: "localhost", isLocal: true, isListenerLocal: true, allowsLogin: true))
        #expect(try origin(listener("ws://0.0.0.0:1"), "203.0.113.7:1").allowsLogin == false)
    }

    @Test("sts is for those who asked for a name that it is for")
    func names() throws {
        let any = try listener("ircs://0.0.0.0:6697", sts: .lasting(.seconds(60)))
        #expect(try origin(any, "203.0.113.7:1", name: "irc.example.com").sts == .duration(seconds: 60))
        #expect(try origin(any, "203.0.113.7:1").sts == nil)
        let one = try listener("ircs://0.0.0.0:6697", sts: .lasting(.zero), hosts: ["irc.example.com"])
        #expect(try origin(one, "203.0.113.7:1", name: "irc.example.com").sts == .duration(seconds: 0))
        #expect(try origin(one, "203.0.113.7:1", name: "other.example.com").sts == nil)
    }

    @Test("plain listeners lead to the one with TLS, those of this machine and WebSockets do not")
    func leading() throws {
        func led(_ configured: [ListenerConfiguration]) -> [STSAnnouncement?] {
            var listeners = configured.enumerated().map {
                (id: ListenerID(rawValue: $0), listener: ClientListener($1, serverName: "x.y"))
            }
            let ports = Dictionary(
                uniqueKeysWithValues: configured.indices.map { (ListenerID(rawValue: $0), 7000 + $0) })
            ClientListener.leadToTLS(&listeners, configured, ports: ports)
            return listeners.map(\.listener.sts)
        }
        let others = try ["irc+insecure://0.0.0.0:6667", "irc://127.0.0.1:6667", "ws+insecure://0.0.0.0:1"].map {
            try listener($0)
        }
        let lasting = STSChoice.lasting(.seconds(60))
        #expect(
            led(try others + [listener("ircs://0.0.0.0:6697", sts: lasting)])
                == [.port(7003), nil, nil, .duration(seconds: 60)])
        #expect(
            led(try others + [listener("ircs://0.0.0.0:6697", sts: lasting, port: 6697)])
                == [.port(6697), nil, nil, .duration(seconds: 60)])
        #expect(led(try others + [listener("ircs://0.0.0.0:6697")]) == [nil, nil, nil, nil])
        // Whoever is told that TLS need not be any more is led nowhere.
        #expect(
            led(try others + [listener("ircs://0.0.0.0:6697", sts: .lasting(.zero))])
                == [nil, nil, nil, .duration(seconds: 0)])
    }
}
