import Accounts
import BridgeTestSupport
import BridgeTypes
import Digests
import IRCProtocol
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Gateways, limits by address, and what listeners say")
struct GatewayTests {
    private static func range(_ text: String) -> [NetworkRange] { [NetworkRange(text)].compactMap(\.self) }

    private func harness(
        _ gateways: [WebIRCSettings] = [], requireLogin: LoginRequirement = .never, clients: Int = 50
    ) -> BridgeHarness {
        var settings = BridgeSettings(
            serverName: "bridge", instanceID: "tests", requireLogin: requireLogin,
            limits: LimitSettings {
                $0.maxClientsPerAddress = clients
                $0.acceptsPerSecondPerAddress = nil
            }, rooms: [])
        settings.gateways = gateways
        return BridgeHarness(settings: settings)
    }

    private func plain(_ password: String, _ from: String = "10.0.0.0/8") -> WebIRCSettings {
        WebIRCSettings(password: .plain(SecretBytes(password.utf8)), from: Self.range(from))
    }

    private func hashed(_ password: String) -> WebIRCSettings {
        let verifier = SCRAMVerifier(password: SecretBytes(password.utf8), salt: [1, 2, 3, 4], iterations: 4096)
        return WebIRCSettings(password: .hashed(verifier), from: Self.range("10.0.0.0/8"))
    }

    private func come(_ bridge: BridgeHarness, _ client: UInt64, from address: String = "10.0.0.1", _ lines: String...)
    {
        bridge.connect(client, address: address, isLocal: false)
        for line in lines { bridge.send(client, line) }
    }

    private func address(_ bridge: BridgeHarness, _ client: UInt64) -> String? {
        bridge.bridge.irc.sessions[ClientID(rawValue: client)]?.origin.address
    }

    @Test(
        "the forms that gateways send",
        arguments: [
            ("WEBIRC hunter2 Kiwi h.example 203.0.113.7", "203.0.113.7"),
            ("WEBIRC hunter2 Kiwi 203.0.113.7 203.0.113.7 secure", "203.0.113.7"),
            ("WEBIRC hunter2 Kiwi h 203.0.113.7 :secure=x local-port=6697 remote-port=21726", "203.0.113.7"),
            ("WEBIRC hunter2 cgiirc h 0::7", "::7"), ("WEBIRC hunter2 qwebirc h 2001:DB8:0:0::7", "2001:db8::7"),
            ("WEBIRC hunter2 TheLounge h :2001:db8::7", "2001:db8::7"),
            ("WEBIRC hunter2 x h 0::ffff:203.0.113.7", "203.0.113.7"),
        ])
    func forms(line: String, wanted: String) {
        let bridge = harness([plain("hunter2")])
        come(bridge, 1, line, "CAP LS 302", "NICK ann", "USER a 0 * :Ann", "CAP END")
        #expect(bridge.takeLines(1).contains { $0.hasPrefix(":bridge 001 ann ") })
        #expect(address(bridge, 1) == wanted)
        #expect(bridge.notes.contains { $0.event == "client-gateway" && $0.metadata["address"] == wanted })
    }

    @Test(
        "what is refused, and how",
        arguments: [
            (["WEBIRC wrong Kiwi h 203.0.113.7"], "Password incorrect"),
            (["WEBIRC hunter2 Kiwi h nowhere"], "WEBIRC with an address that is none"),
            (["WEBIRC hunter2 Kiwi h 203.0.113.7%lo"], "WEBIRC with an address that is none"),
            (["NICK ann", "WEBIRC hunter2 Kiwi h 203.0.113.7"], "WEBIRC must come before everything else"),
            (["USER a 0 * :a", "WEBIRC hunter2 Kiwi h 203.0.113.7"], "WEBIRC must come before everything else"),
            (["PASS x", "WEBIRC hunter2 Kiwi h 203.0.113.7"], "WEBIRC must come before everything else"),
            (["CAP LS 302", "WEBIRC hunter2 Kiwi h 203.0.113.7"], "WEBIRC must come before everything else"),
        ])
    func refused(lines: [String], why: String) {
        let bridge = harness([plain("hunter2")])
        bridge.connect(1, address: "10.0.0.1", isLocal: false)
        for line in lines { bridge.send(1, line) }
        bridge.advance(by: .seconds(40))
        #expect(bridge.takeLines(1).last == "ERROR :Closing Link: 10.0.0.1 (\(why))")
        #expect(!bridge.isConnected(1))
    }

    @Test("from elsewhere nobody is a gateway, nor where there is none, nor once registered")
    func uninvited() {
        let bridge = harness([plain("hunter2")])
        come(bridge, 1, from: "11.0.0.1", "WEBIRC hunter2 Kiwi h 203.0.113.7")
        #expect(bridge.takeLines(1) == ["ERROR :Closing Link: 11.0.0.1 (You may not use WEBIRC)"])
        come(bridge, 2, "NICK ann", "USER a 0 * :a")
        _ = bridge.takeLines(2)
        bridge.send(2, "WEBIRC hunter2 Kiwi h 203.0.113.7")
        #expect(bridge.takeLines(2) == [":bridge 462 ann :You may not reregister"])
        bridge.send(2, "WEBIRC")
        #expect(bridge.takeLines(2) == [":bridge 461 ann WEBIRC :Not enough parameters"])
        #expect(!bridge.notes.contains { "\($0)".contains("hunter2") })
    }

    @Test("what is sent ahead waits for the verdict, and a password that was right once is known")
    func sentAhead() {
        let bridge = harness([hashed("other"), hashed("hunter2")])
        bridge.checksPasswords = false
        come(bridge, 1, "WEBIRC hunter2 Kiwi h 203.0.113.7", "NICK ann", "USER a 0 * :a")
        #expect(bridge.takeLines(1) == [])
        bridge.answerPasswordCheck(1, .wrong)
        #expect(bridge.takeLines(1) == [])
        bridge.answerPasswordCheck(1, .correct)
        #expect(bridge.takeLines(1).contains { $0.hasPrefix(":bridge 001 ann ") })
        #expect(bridge.passwordChecks.isEmpty)
        come(bridge, 2, "WEBIRC hunter2 Kiwi h 203.0.113.8", "NICK bob", "USER b 0 * :b")
        #expect(bridge.takeLines(2).contains { $0.hasPrefix(":bridge 001 bob ") })
        #expect(bridge.passwordChecks.isEmpty)
        // What is right is known, and nothing else.
        come(bridge, 3, "WEBIRC hunter3 Kiwi h 203.0.113.8", "NICK eve", "USER e 0 * :e")
        #expect(bridge.passwordChecks.count == 1)
        bridge.answerPasswordCheck(3, .unavailable)
        #expect(!bridge.isConnected(3))
    }

    @Test("who leaves while the password is checked leaves nothing behind")
    func left() {
        let bridge = harness([hashed("hunter2")], clients: 1)
        bridge.checksPasswords = false
        come(bridge, 1, "WEBIRC hunter2 Kiwi h 203.0.113.7", "NICK ann")
        bridge.disconnect(1)
        bridge.answerPasswordCheck(1, .correct)
        come(bridge, 2, from: "203.0.113.7")
        #expect(bridge.isConnected(2))
    }

    @Test("a gateway's user counts for the user's own address, and the gateway for none")
    func limits() {
        let bridge = harness([plain("hunter2")], clients: 2)
        for client in 1...5 { come(bridge, UInt64(client), "WEBIRC hunter2 Kiwi h 203.0.113.\(client)") }
        for client in 1...5 { #expect(bridge.isConnected(UInt64(client))) }
        come(bridge, 6, "WEBIRC hunter2 Kiwi h 203.0.113.1")
        #expect(bridge.isConnected(6))
        come(bridge, 7, "WEBIRC hunter2 Kiwi h 203.0.113.1")
        #expect(bridge.takeLines(7) == ["ERROR :Closing Link: 10.0.0.1 (too many connections from your address)"])
        come(bridge, 8, from: "203.0.113.1")
        #expect(!bridge.isConnected(8))
        // Places are given back.
        bridge.disconnect(1)
        come(bridge, 9, from: "203.0.113.1")
        #expect(bridge.isConnected(9))
        come(bridge, 10, from: "203.0.113.1")
        #expect(!bridge.isConnected(10))
    }

    @Test("through a gateway nobody is of this machine")
    func notLocal() {
        let bridge = harness([plain("hunter2", "127.0.0.1")], requireLogin: .remote)
        bridge.connect(1)
        for line in ["WEBIRC hunter2 Kiwi h 203.0.113.7", "NICK ann", "USER a 0 * :a"] { bridge.send(1, line) }
        #expect(bridge.takeLines(1).first?.hasPrefix(":bridge 464 ann ") == true)
    }

    // MARK: - Addresses

    @Test("a /64 of IPv6 is one customer, an address of IPv4 another")
    func networks() {
        let bridge = harness(clients: 2)
        come(bridge, 1, from: "2001:db8:1:2::1")
        come(bridge, 2, from: "2001:db8:1:2:ffff::9")
        come(bridge, 3, from: "2001:db8:1:2:1:2:3:4")
        #expect(bridge.isConnected(2) && !bridge.isConnected(3))
        come(bridge, 4, from: "2001:db8:1:3::1")
        #expect(bridge.isConnected(4))
        bridge.disconnect(1)
        come(bridge, 5, from: "2001:db8:1:2::5")
        #expect(bridge.isConnected(5))
    }

    // MARK: - What is no IRC

    static let foreign: [(String, [UInt8], String)] = [
        ("HTTP", Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8), "HTTP/1.1 400 Bad Request"),
        ("HTTP", Array("OPTIONS * HTTP/1.1\r\n".utf8), "HTTP/1.1 400 Bad Request"),
        ("TLS", [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00], "\u{15}\u{3}\u{1}"),
        ("SMTP", Array("EHLO mail.example\r\n".utf8), "ERROR :This is an IRC port"),
        ("PROXY", Array("PROXY TCP4 203.0.113.7 192.0.2.1 1 2\r\n".utf8), ""),
    ]

    @Test("what is not IRC is known by its first bytes, however they are cut", arguments: foreign)
    func foreignProtocols(name: String, bytes: [UInt8], answer: String) {
        for cut in 0..<bytes.count {
            let bridge = harness()
            bridge.connect(1, address: "192.0.2.1", isLocal: false)
            for piece in [bytes[..<cut], bytes[cut...]] where !piece.isEmpty { bridge.receive(1, Array(piece)) }
            #expect(!bridge.isConnected(1), "cut at \(cut)")
            #expect(
                bridge.notes.contains { $0.event == "foreign-protocol" && $0.text.contains(name) }, "cut at \(cut)")
        }
    }

    @Test("the binary form of a PROXY header is known when it comes in one piece, as it does")
    func binaryProxyHeader() {
        let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
        let bridge = harness()
        bridge.connect(1, address: "192.0.2.1", isLocal: false)
        bridge.receive(1, signature + [0x21, 0x11, 0, 12])
        #expect(!bridge.isConnected(1))
        #expect(bridge.takeLines(1) == [])
        #expect(bridge.notes.contains { $0.event == "foreign-protocol" && $0.text.contains("PROXY") })
    }

    @Test("verbs of IRC are never taken for anything else", arguments: CommandTableTests.verbs)
    func ownProtocol(verb: String) {
        let line = Array("\(verb) x\r\n".utf8)
        #expect(line.withUnsafeBytes { ForeignProtocol.recognise($0) } == nil)
        #expect(ForeignProtocol(verb: verb) == nil)
        #expect(ForeignProtocol(IRCMessage(command: verb, params: ["x"])) == nil)
    }

    @Test("requests whose method is a verb of IRC too are known by their version", arguments: ["CONNECT", "TRACE"])
    func sharedMethods(method: String) {
        let bridge = harness()
        bridge.connect(1, address: "192.0.2.1", isLocal: false)
        bridge.send(1, "\(method) chat.example:443 HTTP/1.1")
        #expect(!bridge.isConnected(1))
        #expect(bridge.takeLines(1).first == "HTTP/1.1 400 Bad Request")
    }

    // MARK: - STS

    private func listed(_ sts: STSAnnouncement?, _ line: String) -> [String] {
        let bridge = harness()
        bridge.perform { core, now in
            core.clientOpened(
                ClientID(rawValue: 9), origin: ClientOrigin(address: "192.0.2.1", isLocal: false, sts: sts), now: now)
        }
        bridge.bridge.irc.sessions[ClientID(rawValue: 9)].map { session in
            #expect(session.negotiation.available.contains(.sts) == (sts != nil))
        }
        guard let session = bridge.bridge.irc.sessions[ClientID(rawValue: 9)] else { return [] }
        let params = line.split(separator: " ").dropFirst().map(String.init)
        return bridge.bridge.irc.outbound.gathering(session) { bridge.bridge.irc.negotiate(params, session) }
            .flatMap { $0.params.dropFirst() }
    }

    @Test("sts is said to those who understand values, and given to nobody")
    func sts() {
        func words(_ found: [String]) -> [String] {
            found.flatMap { $0.split(separator: " ").map(String.init) }.filter { $0.hasPrefix("sts") }
        }
        #expect(words(listed(.port(6697), "CAP LS 302")) == ["sts=port=6697"])
        #expect(words(listed(.duration(seconds: 2_592_000), "CAP LS 302")) == ["sts=duration=2592000"])
        #expect(words(listed(.duration(seconds: 0), "CAP LS 302")) == ["sts=duration=0"])
        #expect(words(listed(nil, "CAP LS 302")) == [])
        #expect(words(listed(.port(6697), "CAP LS")) == [])
        #expect(listed(.port(6697), "CAP REQ sts") == ["NAK", "sts"])
        #expect(listed(.port(6697), "CAP REQ -sts") == ["NAK", "-sts"])
    }
}
