import BridgeTestSupport
import Testing
import Transport
import WireBytes

@testable import Configuration

@Suite("TLS in the configuration")
struct ConfigurationTLSTests {
    /// A pair that belongs together, and the key of another.
    static let files: [String: String] = {
        let maker = CertificateGenerator(names: ["chat.test"], notBefore: 0, notAfter: 4_000_000_000)
        guard let made = try? maker.make(), let other = try? maker.make() else { return [:] }
        return [
            "/cert": String(decoding: made.certificatePEM, as: UTF8.self),
            "/key": String(decoding: made.keyPEM, as: UTF8.self),
            "/other": String(decoding: other.keyPEM, as: UTF8.self), "/text": "no PEM here",
        ]
    }()

    static let listener = "[identity]\npassword = \"p\"\n[[listeners]]\nbind = \"ircs://[::]\"\n"

    @Test("ircs has its own port, files and version")
    func goodListener() throws {
        let text = Self.listener + "cert = \"/cert\"\nkey = \"/key\"\nmin_tls = \"1.3\"\nclient_ca = \"/cert\""
        let loaded = try load(withRoom(text), files: Self.files).listeners[0]
        #expect(loaded.bind.description == "ircs://[::]:6697")
        let settings = try #require(loaded.tlsSettings())
        #expect(settings.identity == TLSIdentity(certificate: .file("/cert"), key: .file("/key")))
        #expect(settings.minimumVersion == .v13)
        #expect(settings.clientCertificates == .requested(.file("/cert")))
        #expect(settings.plainTextAnswer.hasPrefix("ERROR :This port speaks TLS"))
        #expect(settings.plainTextAnswer.hasSuffix("\r\n"))
    }

    @Test("a room's TLS is laid over the defaults and reaches the connection")
    func goodRoom() throws {
        let pin = Base64.encode([UInt8](repeating: 7, count: 32))
        let text = """
            [room_defaults.tls]
            ca = "/cert"
            pin_sha256 = ["sha256//\(pin)"]
            [[rooms]]
            name = "a"
            url = "wss://h/x"
              [rooms.tls]
              client_cert = "/cert"
              client_key = "/key"
              server_name = "other.test"
              min_version = "1.3"
            [[rooms]]
            name = "b"
            url = "wss://h:8443/x"
            tls = { insecure = true }
            """
        let rooms = try load(text, files: Self.files).rooms
        #expect(rooms.map { $0.url?.text } == ["wss://h/x", "wss://h:8443/x"])
        #expect(rooms.map { $0.url?.endpoint.port } == [443, 8443])
        let settings = rooms.map { $0.tls.settings() }
        #expect(settings[0].authorities == .file("/cert"))
        #expect(settings[0].pins == [[UInt8](repeating: 7, count: 32)])
        #expect(settings[0].identity == TLSIdentity(certificate: .file("/cert"), key: .file("/key")))
        #expect(settings[0].serverName == "other.test")
        #expect(settings[0].minimumVersion == .v13)
        #expect(settings[0].verifiesPeer)
        #expect(settings[0].protocols == ["http/1.1"])
        #expect(settings[1].verifiesPeer == false)
        #expect(settings[1].authorities == .file("/cert"))
    }

    @Test("what is printed loads again")
    func printing() throws {
        let pin = Base64.encode([UInt8](repeating: 9, count: 32))
        let text =
            "[[rooms]]\nname = \"a\"\nurl = \"wss://h/x\"\ntls = { ca = \"/cert\", pin_sha256 = [\"\(pin)\"] }\n"
            + Self.listener + "cert = \"/cert\"\nkey = \"/key\""
        let loaded = try load(text, files: Self.files)
        // The password is blanked, which is a password too.
        let printed = ConfigurationPrinter.text(loaded)
        let again = try load(printed, files: Self.files)
        #expect(again.rooms == loaded.rooms)
        #expect(again.listeners == loaded.listeners)
    }

    static let listenerCases = [
        ProblemCase(
            "no certificate", listener + "key = \"/key\"",
            "chatbridge.toml:5:8: ircs:// needs a certificate, and cert is not set; "
                + "\"chatbridge cert self-signed\" makes one"),
        ProblemCase(
            "no file", listener + "cert = \"/cert\"\nkey = \"/nope\"",
            "chatbridge.toml:7:7: there is no file \"/nope\""),
        ProblemCase(
            "no PEM", listener + "cert = \"/text\"\nkey = \"/key\"",
            "chatbridge.toml:6:8: /text holds no PEM certificate (-----BEGIN CERTIFICATE-----)"),
        ProblemCase(
            "the certificate for the key", listener + "cert = \"/cert\"\nkey = \"/cert\"",
            "chatbridge.toml:6:8: /cert holds no PEM private key (-----BEGIN PRIVATE KEY-----)"),
        ProblemCase(
            "another's key", listener + "cert = \"/cert\"\nkey = \"/other\"",
            "chatbridge.toml:7:7: the key in /other does not belong to /cert"),
        ProblemCase(
            "authorities that are none", listener + "cert = \"/cert\"\nkey = \"/key\"\nclient_ca = \"/text\"",
            "chatbridge.toml:8:13: /text holds no PEM certificate (-----BEGIN CERTIFICATE-----)"),
        ProblemCase(
            "an old version", listener + "cert = \"/cert\"\nkey = \"/key\"\nmin_tls = \"1.1\"",
            "chatbridge.toml:8:11: expected \"1.2\" or \"1.3\", found \"1.1\" (did you mean \"1.2\"?)"),
        ProblemCase(
            "a certificate for plain text", "[[listeners]]\nbind = \"irc://127.0.0.1:1\"\ncert = \"/cert\"",
            "chatbridge.toml:4:8: irc:// has no TLS, so no cert; write bind = \"ircs://127.0.0.1:1\""),
        ProblemCase(
            "an open door", "[[listeners]]\nbind = \"ircs://[::]\"\ncert = \"/cert\"\nkey = \"/key\"",
            "chatbridge.toml:3:8: [::]:6697 can be reached from other machines and nobody needs a password: set "
                + "password or password_file in [identity], or write require_login = \"never\""),
    ]

    @Test("a listener's problem is told with its place", arguments: listenerCases)
    func listenerProblem(_ row: ProblemCase) {
        #expect(problems(withRoom(row.toml), files: Self.files) == [row.expected])
    }

    static let roomCases = [
        ProblemCase(
            "half of a client certificate", "url = \"wss://h/\"\ntls = { client_cert = \"/cert\" }",
            "chatbridge.toml:4:23: client_cert is set and client_key is not"),
        ProblemCase(
            "no authorities", "url = \"wss://h/\"\ntls = { ca = \"/nope\" }",
            "chatbridge.toml:4:14: there is no file \"/nope\""),
        ProblemCase(
            "a pin that is none", "url = \"wss://h/\"\ntls = { pin_sha256 = [\"abc\"] }",
            "chatbridge.toml:4:23: \"abc\" is not the base64 of a SHA-256 digest, "
                + "as \"chatbridge cert fingerprint\" prints"),
        ProblemCase(
            "a bad name", "url = \"wss://h/\"\ntls = { server_name = \"a b\" }",
            "chatbridge.toml:4:23: \"a b\" is not a host name or an address"),
        ProblemCase(
            "TLS settings for plain text", "url = \"ws://h/\"\ntls = { insecure = true }",
            "chatbridge.toml:4:7: room \"a\" has TLS settings, but its url begins with ws://"),
    ]

    @Test("a room's problem is told with its place", arguments: roomCases)
    func roomProblem(_ row: ProblemCase) {
        #expect(problems("[[rooms]]\nname = \"a\"\n" + row.toml, files: Self.files) == [row.expected])
    }

    @Test("what is wrong in the defaults is told once, not for every room")
    func defaultsOnce() {
        let rooms = ["a", "b"].map { "[[rooms]]\nname = \"\($0)\"\nurl = \"wss://h/\"\n" }.joined()
        #expect(
            problems("[room_defaults.tls]\nca = \"/nope\"\n" + rooms, files: Self.files)
                == ["chatbridge.toml:2:6: there is no file \"/nope\""])
    }
}
