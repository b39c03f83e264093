import HTTPProtocol
import Testing

@Suite("HTTP URLs")
struct HTTPURLTests {
    struct Good: CustomTestStringConvertible, Sendable {
        var text: String
        var scheme: String
        var host: String
        var port: UInt16
        var resource: String
        var hostHeader: String
        var testDescription: String { text }

        init(_ text: String, _ scheme: String, _ host: String, _ port: UInt16, _ resource: String, _ hostHeader: String)
        {
            (self.text, self.scheme, self.host, self.port) = (text, scheme, host, port)
            (self.resource, self.hostHeader) = (resource, hostHeader)
        }
    }

    static let good: [Good] = [
        Good("ws://example.com", "ws", "example.com", 80, "/", "example.com"),
        Good("WSS://Example.COM/Chat?Token=A%20b", "wss", "example.com", 443, "/Chat?Token=A%20b", "example.com"),
        Good("wss://example.com?x=1", "wss", "example.com", 443, "/?x=1", "example.com"),
        Good("ws://example.com:8080/a", "ws", "example.com", 8080, "/a", "example.com:8080"),
        Good("ws://example.com:80/", "ws", "example.com", 80, "/", "example.com"),
        Good("wss://example.com:80/", "wss", "example.com", 80, "/", "example.com:80"),
        Good("ws://example.com:/", "ws", "example.com", 80, "/", "example.com"),
        Good("http://127.0.0.1:65535/x", "http", "127.0.0.1", 65535, "/x", "127.0.0.1:65535"),
        Good("https://[2001:DB8::1]/x", "https", "2001:db8::1", 443, "/x", "[2001:db8::1]"),
        Good("ws://[::1]:9000", "ws", "::1", 9000, "/", "[::1]:9000"),
        Good("ws://a_b-c.local./", "ws", "a_b-c.local.", 80, "/", "a_b-c.local."),
        Good("ws://h/a@b:c", "ws", "h", 80, "/a@b:c", "h"),
        Good("ws+unix:///run/chat.sock:/room?a=b", "ws+unix", "/run/chat.sock", 0, "/room?a=b", "localhost"),
        Good("ws+unix:///run/chat.sock", "ws+unix", "/run/chat.sock", 0, "/", "localhost"),
    ]

    @Test("a URL is taken apart", arguments: good)
    func parses(_ row: Good) throws {
        let url = try HTTPURL(parsing: row.text)
        #expect(url.scheme == row.scheme)
        #expect(url.host == row.host)
        #expect(url.port == row.port)
        #expect(url.pathAndQuery == row.resource)
        #expect(url.hostHeader == row.hostHeader)
        #expect(url.isSecure == ["wss", "https"].contains(row.scheme))
        #expect(url.isIPv6Literal == row.host.contains("::"))
    }

    @Test(
        "a text that is no URL to connect to is refused with its reason",
        arguments: [
            ("", .unknownScheme("")), ("example.com", .unknownScheme("")), ("ws:/x", .unknownScheme("")),
            ("ftp://h/", .unknownScheme("ftp")), ("wss://user@h/", .userInfoNotAllowed),
            ("wss://u:p@h/", .userInfoNotAllowed), ("ws://h/#f", .fragmentNotAllowed), ("ws://", .invalidHost("")),
            ("ws:///path", .invalidHost("")), ("ws://:80/", .invalidHost("")), ("ws://a..b/", .invalidHost("a..b")),
            ("ws://.a/", .invalidHost(".a")), ("ws://a%41/", .invalidHost("a%41")),
            ("ws://[::1/", .invalidHost("[::1")),
            ("ws://[]/", .invalidHost("")), ("ws://[::1]x/", .invalidHost("[::1]x")),
            ("ws://[g::]/", .invalidHost("g::")),
            ("ws://h:0/", .invalidPort("0")), ("ws://h:65536/", .invalidPort("65536")),
            ("ws://h:x/", .invalidPort("x")),
            ("ws://h:1:2/", .invalidPort("1:2")),
            ("ws://h:99999999999999999999/", .invalidPort("99999999999999999999")),
            ("ws://h/a b", .invalidCharacter), ("ws://h/a\r\nX: y", .invalidCharacter), ("ws://hé/", .invalidCharacter),
            ("ws://h/\u{0}", .invalidCharacter), ("ws+unix://h/x", .missingSocketPath),
            ("ws+unix:///", .missingSocketPath),
            ("ws+unix:///s:x", .missingSocketPath),
        ] as [(String, HTTPURLError)])
    func refuses(text: String, error: HTTPURLError) {
        #expect(throws: error) { try HTTPURL(parsing: text) }
        #expect(!error.sentence.isEmpty)
    }

    @Test("a URL in a log has no query, which may carry a token")
    func description() throws {
        #expect(try HTTPURL(parsing: "wss://h:8443/chat?token=secret").description == "wss://h:8443/chat")
        #expect(try HTTPURL(parsing: "ws+unix:///s:/r?t=1").description == "ws+unix:///s:/r")
    }
}
