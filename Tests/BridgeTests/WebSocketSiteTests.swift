import BridgeTestSupport
import HTTPProtocol
import Testing
import Transport
import WSProtocol
import WireBytes

@testable import ChatBridge
@testable import Configuration

struct SiteCase: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var target = "/irc"
    var fields: [(String, String)]
    var verdict: WebSocketSite.Verdict

    init(_ name: String, target: String = "/irc", _ fields: [(String, String)], _ verdict: WebSocketSite.Verdict) {
        testDescription = name
        self.target = target
        self.fields = fields
        self.verdict = verdict
    }

    static func refused(_ status: Int, _ why: String) -> WebSocketSite.Verdict { .refused(status: status, why: why) }
    static let admitted = WebSocketSite.Verdict.admitted(client: nil)
}

@Suite("Requests for a WebSocket")
struct WebSocketSiteTests {
    static func site(
        _ origins: [String] = ["self"], hosts: [String] = ["irc.example.com", "localhost"], proxies: [String] = []
    ) throws -> WebSocketSite {
        WebSocketSite(
            path: "/irc", origins: try origins.map { try OriginPattern(parsing: $0) }, hosts: hosts,
            proxies: TrustedPeers(ranges: proxies.compactMap { NetworkRange($0) }))
    }

    static func judge(
        _ site: WebSocketSite, target: String = "/irc", _ fields: [(String, String)], peer: String = "192.0.2.9:1"
    ) throws -> WebSocketSite.Verdict {
        let head = HTTPRequestHead(method: "GET", target: target, headers: HTTPHeaders(fields))
        return site.judge(head, peer: try #require(SocketAddress(peer)))
    }

    static let host = ("Host", "irc.example.com")
    static let cases = [
        SiteCase("a program without an origin", [host], SiteCase.admitted),
        SiteCase("a page of the same host", [host, ("Origin", "https://irc.example.com")], SiteCase.admitted),
        SiteCase("on another port", [host, ("Origin", "https://irc.example.com:8443")], SiteCase.admitted),
        SiteCase(
            "in capitals", [("Host", "IRC.example.com:6680"), ("Origin", "https://irc.example.com")], SiteCase.admitted),
        SiteCase(
            "by address", [("Host", "[2001:db8::1]:6680"), ("Origin", "http://[2001:db8::1]")], SiteCase.admitted),
        SiteCase("with a query", target: "/irc?x=/other", [host], SiteCase.admitted),
        SiteCase("a target with its host", target: "http://irc.example.com/irc", [host], SiteCase.admitted),
        SiteCase(
            "another page", [host, ("Origin", "https://evil.example")],
            SiteCase.refused(403, "the origin \"https://evil.example\" is not among the listener's origins")),
        SiteCase(
            "a page below", [host, ("Origin", "https://a.irc.example.com")],
            SiteCase.refused(403, "the origin \"https://a.irc.example.com\" is not among the listener's origins")),
        SiteCase(
            "no page's", [host, ("Origin", "null")],
            SiteCase.refused(403, "the origin \"null\" is not among the listener's origins")),
        SiteCase(
            "an origin with a path", [host, ("Origin", "https://irc.example.com/")],
            SiteCase.refused(403, "the origin \"https://irc.example.com/\" is not among the listener's origins")),
        SiteCase(
            "two origins", [host, ("Origin", "https://irc.example.com"), ("Origin", "https://irc.example.com")],
            SiteCase.refused(
                403,
                "the origin \"https://irc.example.com, https://irc.example.com\" is not among the listener's origins")),
        SiteCase(
            "a stranger's name that leads here", [("Host", "evil.example"), ("Origin", "http://evil.example")],
            SiteCase.refused(421, "the Host \"evil.example\" is not among the listener's hosts")),
        SiteCase(
            "a name that begins like an address", [("Host", "127.0.0.1.evil.example")],
            SiteCase.refused(421, "the Host \"127.0.0.1.evil.example\" is not among the listener's hosts")),
        SiteCase("another path", target: "/", [host], SiteCase.refused(404, "there is nothing at /")),
        SiteCase("a path below", target: "/irc/x", [host], SiteCase.refused(404, "there is nothing at /irc/x")),
        SiteCase(
            "the same path in other bytes", target: "/%69rc", [host],
            SiteCase.refused(404, "there is nothing at /%69rc")),
        SiteCase(
            "an empty host", [("Host", "")], SiteCase.refused(421, "the Host \"\" is not among the listener's hosts")),
        SiteCase(
            "a host with a user", [("Host", "a@irc.example.com")],
            SiteCase.refused(400, HTTPProtocolError.malformedHost.sentence)),
    ]

    @Test("a page may come from the same host, and the host must be ours", arguments: cases)
    func ownHost(row: SiteCase) throws {
        #expect(try Self.judge(Self.site(), target: row.target, row.fields) == row.verdict)
    }

    @Test(
        "an origin is matched as it is written",
        arguments: [
            ("https://chat.example.com", "https://chat.example.com", true),
            ("https://chat.example.com", "https://chat.example.com:443", true),
            ("https://chat.example.com", "HTTPS://Chat.Example.com", true),
            ("https://chat.example.com", "http://chat.example.com", false),
            ("https://chat.example.com", "https://chat.example.com:8443", false),
            ("https://chat.example.com", "https://chat.example.com.evil.example", false),
            ("https://chat.example.com", "https://chat.example.com@evil.example", false),
            ("https://chat.example.com", "https://*.example.com", false),
            ("https://*.example.com", "https://chat.example.com", true),
            ("https://*.example.com", "https://a.b.example.com", true),
            ("https://*.example.com", "https://example.com", false),
            ("https://*.example.com", "https://evilexample.com", false),
            ("http://example.com:8080", "http://example.com:8080", true),
            ("http://[::1]:8080", "http://[::1]:8080", true), ("null", "null", true), ("null", "https://null", false),
            ("*", "anything at all", true), ("self", "https://irc.example.com", true), ("self", "", false),
        ])
    func origins(pattern: String, origin: String, isMeant: Bool) throws {
        #expect(try OriginPattern(parsing: pattern).matches(origin, host: "irc.example.com") == isMeant)
    }

    @Test("an origin is printed as it is read", arguments: ["*", "self", "null", "https://a.example", "http://*.b:81"])
    func printed(text: String) throws { #expect(try OriginPattern(parsing: text).description == text) }

    @Test("with any origin, any host will do")
    func anyOrigin() throws {
        let fields = [("Host", "any.example"), ("Origin", "https://other.example")]
        #expect(try Self.judge(Self.site(["*"]), fields) == SiteCase.admitted)
        #expect(try Self.judge(Self.site(["https://other.example"]), fields) != SiteCase.admitted)
    }

    @Test(
        "whom a trusted web server speaks for",
        arguments: [
            ("203.0.113.7", "203.0.113.7:0"), ("10.9.9.9, 203.0.113.7", "203.0.113.7:0"),
            ("203.0.113.7, 10.9.9.9", "203.0.113.7:0"), ("1.2.3.4, 203.0.113.7,10.0.0.1 , 10.0.0.2", "203.0.113.7:0"),
            ("203.0.113.7:4711", "203.0.113.7:4711"), ("2001:db8::7", "[2001:db8::7]:0"),
            ("[2001:db8::7]:4711", "[2001:db8::7]:4711"), ("10.0.0.1", nil), ("unknown", nil),
            ("203.0.113.7, unknown", nil), ("203.0.113.7, _hidden", nil), ("unix:/x", nil), ("", nil),
        ] as [(String, String?)])
    func forwarded(header: String, client: String?) throws {
        let site = try Self.site(proxies: ["10.0.0.0/8"])
        let fields = [Self.host, ("X-Forwarded-For", header)]
        let wanted = WebSocketSite.Verdict.admitted(client: client.flatMap { SocketAddress($0) })
        #expect(try Self.judge(site, fields, peer: "10.0.0.1:5") == wanted)
        // From others it is only a header.
        #expect(try Self.judge(site, fields, peer: "11.0.0.1:5") == SiteCase.admitted)
    }
}

@Suite("Lines as messages")
struct WebSocketFramesTests {
    /// Kind, compression and payload of each message.
    static func read(_ slice: ByteSlice, compression: WebSocketCompression? = nil) -> [(isText: Bool, text: [UInt8])] {
        var connection = WebSocketConnection(role: .client, compression: compression)
        var output = ByteWriter()
        var random = SystemRandomNumberGenerator()
        var found: [(isText: Bool, text: [UInt8])] = []
        slice.withUnsafeBytes { bytes in
            connection.bytesReceived(bytes, output: &output, using: &random) { event in
                switch event {
                case .text(let bytes): found.append((true, Array(bytes)))
                case .binary(let bytes): found.append((false, Array(bytes)))
                default: Issue.record("another event than a message")
                }
            }
        }
        return found
    }

    private static func framed(_ bytes: [UInt8], _ kind: WebSocketKind) -> ByteSlice {
        var frames = WebSocketFrames()
        return frames.messages(ByteSlice(copying: bytes), kind)
    }

    @Test(
        "each line is a message without its end",
        arguments: [
            ("PING x\r\n", ["PING x"]), ("a\r\nb\r\nc\r\n", ["a", "b", "c"]), ("a\nb\n", ["a", "b"]), ("a", ["a"]),
            ("a\r\n\r\nb\r\n", ["a", "b"]), ("", []), ("\r\n", []),
        ])
    func lines(text: String, messages: [String]) {
        for kind in WebSocketKind.allCases where kind != .none {
            let found = Self.read(Self.framed(Array(text.utf8), kind), compression: WebSocketClientLimits.compression)
            #expect(found.map { String(decoding: $0.text, as: UTF8.self) } == messages)
            #expect(found.allSatisfy { $0.isText == kind.isText })
        }
    }

    @Test("a text message is UTF-8 whatever the line was, a binary one is the line")
    func repaired() {
        let line: [UInt8] = [0x61, 0xFF, 0xC3, 0x28]
        #expect(Self.read(Self.framed(line, .text)).first?.text == Array("a\u{FFFD}\u{FFFD}(".utf8))
        #expect(Self.read(Self.framed(line, .binary)).first?.text == line)
    }

    @Test("long lines are compressed for those who can read that, and short ones for nobody")
    func compressed() {
        let long = Array(String(repeating: "long ", count: 100).utf8)
        #expect(Self.framed(long, .textCompressed).count < 100)
        #expect(Self.framed(long, .text).count == long.count + 4)
        #expect(Self.framed(Array("short".utf8), .textCompressed) == Self.framed(Array("short".utf8), .text))
        let found = Self.read(Self.framed(long, .binaryCompressed), compression: WebSocketClientLimits.compression)
        #expect(found.first?.text == long)
    }

    @Test("what goes to many is framed once for each kind")
    func shared() {
        var frames = WebSocketFrames()
        var framed = FramedSlice(ByteSlice("hello\r\n"))
        #expect(framed.form(.none, &frames).text == "hello\r\n")
        let first = framed.form(.text, &frames)
        let second = framed.form(.text, &frames)
        #expect(first == second)
        let isShared = first.withUnsafeBytes { a in second.withUnsafeBytes { b in a.baseAddress == b.baseAddress } }
        #expect(isShared)
        #expect(framed.form(.binary, &frames) != first)
    }
}
