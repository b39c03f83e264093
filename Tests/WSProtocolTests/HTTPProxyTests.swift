import BridgeTestSupport
import HTTPProtocol
import Testing
import WireBytes

@Suite struct HTTPProxyTests {
    // MARK: - Naming a proxy

    struct ProxyRow: CustomTestStringConvertible {
        var testDescription: String
        var text: String
        /// The host and its Proxy-Authorization; or the fault.
        var host = ""
        var authorization: String?
        var error: HTTPProxyError?

        init(_ name: String, _ text: String, _ host: String, _ authorization: String? = nil) {
            testDescription = name
            self.text = text
            self.host = host
            self.authorization = authorization
        }

        init(_ name: String, _ text: String, error: HTTPProxyError) {
            testDescription = name
            self.text = text
            self.error = error
        }
    }

    static let proxies: [ProxyRow] = [
        ProxyRow("a host and a port", "http://proxy.example:3128", "proxy.example:3128"),
        ProxyRow("a slash at the end", "http://proxy.example:3128/", "proxy.example:3128"),
        ProxyRow("no port", "HTTP://Proxy.Example", "proxy.example:80"),
        ProxyRow("no scheme, as some environments have it", "proxy.example:3128", "proxy.example:3128"),
        ProxyRow("an IPv6 address", "http://[2001:db8::1]:8080", "[2001:db8::1]:8080"),
        // Source: RFC 7617 §2, its example.
        ProxyRow(
            "credentials", "http://Aladdin:open%20sesame@p:1", "p:1", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ProxyRow("an empty password", "http://u@p:1", "p:1", "Basic dTo="),
        ProxyRow("colons in the password", "http://u:a:b@p:1", "p:1", "Basic dTphOmI="),
        ProxyRow("an unencoded @ in the password", "http://u:a@b@p:1", "p:1", "Basic dTphQGI="),
        ProxyRow("another kind", "socks5://p:1", error: .unsupportedScheme("socks5")),
        ProxyRow("TLS to the proxy", "https://p:1", error: .unsupportedScheme("https")),
        ProxyRow("nothing", "", error: .malformed("it has no host")),
        ProxyRow("only credentials", "http://u:p@", error: .malformed("it has no host")),
        ProxyRow("a path", "http://p:1/x", error: .malformed("it has no path")),
        ProxyRow("a bad port", "http://p:0", error: .malformed("\"0\" is not a port between 1 and 65535")),
        ProxyRow(
            "half an escape", "http://u:%4@p:1",
            error: .malformed("user or password has a % that is not followed by two hexadecimal digits")),
        ProxyRow(
            "a line break in the password", "http://u:a%0D%0Ab@p:1",
            error: .malformed("user or password has a control character")),
        ProxyRow("a colon in the user", "http://a%3Ab:c@p:1", error: .malformed("a user name cannot hold a colon")),
        ProxyRow("too long", "http://" + String(repeating: "a", count: 5000), error: .tooLong),
    ]

    @Test("a proxy is read from its URL", arguments: proxies)
    func proxy(row: ProxyRow) throws {
        guard let error = row.error else {
            let proxy = try HTTPProxy(parsing: row.text)
            #expect(proxy.description == row.host)
            #expect(proxy.hasCredentials == (row.authorization != nil))
            let request = try self.request(HTTPProxyTunnel(to: HTTPURL(parsing: "ws://b/"), through: proxy))
            let expected = row.authorization.map { "Proxy-Authorization: \($0)\r\n" } ?? ""
            #expect(request == "CONNECT b:80 HTTP/1.1\r\nHost: b:80\r\n" + expected + "\r\n")
            return
        }
        #expect(throws: error) { try HTTPProxy(parsing: row.text) }
        #expect(!error.sentence.contains("u:"))
    }

    @Test("no description, dump or reflection shows a proxy's credentials")
    func secrets() throws {
        let proxy = try HTTPProxy(parsing: "http://user-secret:hunter2@p:1")
        let tunnel = try HTTPProxyTunnel(to: HTTPURL(parsing: "ws://b/"), through: proxy)
        var dumped = ""
        dump(proxy, to: &dumped)
        let refused = tunnel.sentence(.status(407, reason: "no", retryAfter: nil))
        for text in ["\(proxy)", String(reflecting: proxy), dumped, refused, "\(HTTPProxyRules(always: proxy))"] {
            #expect(!text.contains("hunter2") && !text.contains("user-secret") && !text.contains("Basic"))
        }
    }

    private func request(_ tunnel: HTTPProxyTunnel) throws -> String {
        var writer = ByteWriter()
        try tunnel.request(into: &writer)
        return writer.take().text
    }

    // MARK: - The environment

    struct RouteRow: CustomTestStringConvertible {
        var testDescription: String
        var variables: [String: String]
        var url: String
        /// `direct`, the proxy's place, or the sentence that says why it is unusable.
        var route: String

        init(_ name: String, _ variables: [String: String], _ url: String, _ route: String) {
            testDescription = name
            self.variables = variables
            self.url = url
            self.route = route
        }

        /// One proxy for everything, and exceptions.
        init(noProxy: String, _ url: String, isDirect: Bool) {
            testDescription = "NO_PROXY=\(noProxy) and \(url)"
            variables = ["ALL_PROXY": "http://p:1", "NO_PROXY": noProxy]
            self.url = url
            route = isDirect ? "direct" : "p:1"
        }
    }

    static let routes: [RouteRow] = [
        RouteRow("nothing set", [:], "wss://chat.example/", "direct"),
        RouteRow("HTTP_PROXY is for plain", ["HTTP_PROXY": "http://p:1"], "ws://chat.example/", "p:1"),
        RouteRow("and not for encrypted", ["HTTP_PROXY": "http://p:1"], "wss://chat.example/", "direct"),
        RouteRow("HTTPS_PROXY is for encrypted", ["HTTPS_PROXY": "http://p:1"], "wss://chat.example/", "p:1"),
        RouteRow("and not for plain", ["HTTPS_PROXY": "http://p:1"], "ws://chat.example/", "direct"),
        RouteRow(
            "ALL_PROXY is for what is left", ["ALL_PROXY": "http://a:1", "HTTPS_PROXY": "http://s:1"],
            "ws://chat.example/", "a:1"),
        RouteRow(
            "the lower case counts first", ["http_proxy": "http://low:1", "HTTP_PROXY": "http://up:1"],
            "ws://chat.example/", "low:1"),
        RouteRow("empty is unset", ["http_proxy": "", "HTTP_PROXY": "http://up:1"], "ws://chat.example/", "up:1"),
        RouteRow("localhost is near", ["ALL_PROXY": "http://p:1"], "ws://localhost:8080/", "direct"),
        RouteRow("loopback is near", ["ALL_PROXY": "http://p:1"], "ws://127.8.8.8/", "direct"),
        RouteRow("so is its IPv6 form", ["ALL_PROXY": "http://p:1"], "ws://[::1]/", "direct"),
        RouteRow("and the mapped one", ["ALL_PROXY": "http://p:1"], "ws://[::ffff:127.0.0.1]/", "direct"),
        RouteRow("a socket file is near", ["ALL_PROXY": "http://p:1"], "ws+unix:///run/x.sock", "direct"),
        RouteRow(
            "a kind that is not supported", ["all_proxy": "socks5h://p:1"], "ws://chat.example/",
            "all_proxy: a proxy of the kind socks5h:// is not supported; only http://USER:PASSWORD@HOST:PORT is"),
        RouteRow(
            "it matters only where it would be used", ["HTTPS_PROXY": "socks5h://p:1"], "ws://chat.example/", "direct"),
        RouteRow(noProxy: "*", "ws://chat.example/", isDirect: true),
        RouteRow(noProxy: "chat.example", "ws://chat.example/", isDirect: true),
        RouteRow(noProxy: "CHAT.Example", "ws://chat.example/", isDirect: true),
        RouteRow(noProxy: "example", "ws://chat.example/", isDirect: true),
        RouteRow(noProxy: ".example", "ws://chat.example/", isDirect: true),
        RouteRow(noProxy: ".chat.example", "ws://chat.example/", isDirect: false),
        RouteRow(noProxy: "*.example", "ws://chat.example/", isDirect: true),
        RouteRow(noProxy: "*.chat.example", "ws://chat.example/", isDirect: false),
        RouteRow(noProxy: "at.example", "ws://chat.example/", isDirect: false),
        RouteRow(noProxy: "chat.example", "ws://chat.example./", isDirect: true),
        RouteRow(noProxy: "other, chat.example", "ws://chat.example/", isDirect: true),
        RouteRow(noProxy: "other chat.example", "ws://chat.example/", isDirect: true),
        RouteRow(noProxy: "chat.example:80", "ws://chat.example/", isDirect: true),
        RouteRow(noProxy: "chat.example:81", "ws://chat.example/", isDirect: false),
        RouteRow(noProxy: ".example:443", "wss://chat.example/", isDirect: true),
        RouteRow(noProxy: "192.0.2.1", "ws://192.0.2.1/", isDirect: true),
        RouteRow(noProxy: "192.0.2.1", "ws://192.0.2.11/", isDirect: false),
        RouteRow(noProxy: "192.0.2.1:80", "ws://192.0.2.1/", isDirect: true),
        RouteRow(noProxy: "192.0.2.1:81", "ws://192.0.2.1/", isDirect: false),
        RouteRow(noProxy: "10.0.0.0/8", "ws://10.250.0.1/", isDirect: true),
        RouteRow(noProxy: "10.0.0.0/8", "ws://11.0.0.1/", isDirect: false),
        RouteRow(noProxy: "192.0.2.128/25", "ws://192.0.2.127/", isDirect: false),
        RouteRow(noProxy: "192.0.2.128/25", "ws://192.0.2.129/", isDirect: true),
        RouteRow(noProxy: "0.0.0.0/0", "ws://8.8.8.8/", isDirect: true),
        RouteRow(noProxy: "10.0.0.0/33", "ws://10.0.0.1/", isDirect: false),
        RouteRow(noProxy: "2001:db8::/32", "ws://[2001:db8:5::1]/", isDirect: true),
        RouteRow(noProxy: "2001:db8::/32", "ws://[2001:db9::1]/", isDirect: false),
        RouteRow(noProxy: "[2001:db8::1]:80", "ws://[2001:db8::1]/", isDirect: true),
        RouteRow(noProxy: "2001:db8::1", "ws://[2001:DB8:0:0:0:0:0:1]/", isDirect: true),
        RouteRow(noProxy: "10.0.0.0/8", "ws://chat.example/", isDirect: false),
        RouteRow(noProxy: ",, .,:80,/8,[", "ws://chat.example/", isDirect: false),
    ]

    @Test("the environment names the way", arguments: routes)
    func route(row: RouteRow) throws {
        let route = HTTPProxyRules(environment: row.variables).route(to: try HTTPURL(parsing: row.url))
        switch route {
        case .direct: #expect(row.route == "direct")
        case .proxy(let proxy): #expect(proxy.description == row.route)
        case .unusable(let sentence): #expect(sentence == row.route)
        }
    }

    @Test("a proxy that a room names is taken for loopback too, and never for a socket file")
    func always() throws {
        let proxy = try HTTPProxy(parsing: "http://p:1")
        let rules = HTTPProxyRules(always: proxy)
        #expect(rules.route(to: try HTTPURL(parsing: "ws://127.0.0.1:8080/")) == .proxy(proxy))
        #expect(rules.route(to: try HTTPURL(parsing: "ws+unix:///run/x.sock")) == .direct)
    }

    // MARK: - The tunnel

    struct AnswerRow: CustomTestStringConvertible {
        var testDescription: String
        var answer: String
        /// The rest of the answer, for the tunnel, or the sentence.
        var rest: String?
        var sentence: String?

        init(_ name: String, _ answer: String, rest: String) {
            testDescription = name
            self.answer = answer
            self.rest = rest
        }

        init(_ name: String, _ answer: String, sentence: String) {
            testDescription = name
            self.answer = answer
            self.sentence = sentence
        }
    }

    static let answers: [AnswerRow] = [
        AnswerRow("200", "HTTP/1.1 200 OK\r\n\r\n", rest: ""),
        AnswerRow("HTTP/1.0, as tinyproxy", "HTTP/1.0 200 Connection established\r\nProxy-agent: t\r\n\r\n", rest: ""),
        AnswerRow("any 2xx", "HTTP/1.1 204 \r\n\r\n", rest: ""),
        AnswerRow(
            "RFC 9110 §9.3.6: a length means nothing", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            rest: "hello"),
        AnswerRow(
            "what follows is the tunnel's", "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 x\r\n\r\n", rest: "HTTP/1.1 x\r\n\r\n"),
        AnswerRow("an interim answer before", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx", rest: "x"),
        AnswerRow(
            "407", "HTTP/1.1 407 Auth\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\nbody",
            sentence: "the proxy p:3128 wants a user name and a password (407 Auth)"),
        AnswerRow(
            "403", "HTTP/1.1 403 Filtered\r\n\r\n",
            sentence: "the proxy p:3128 does not allow connections to chat.example:443 (403 Filtered)"),
        AnswerRow(
            "502", "HTTP/1.1 502 Bad Gateway\r\n\r\n",
            sentence: "the proxy p:3128 cannot reach chat.example:443 (502 Bad Gateway)"),
        AnswerRow(
            "503 with a time", "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\n\r\n",
            sentence:
                "the proxy p:3128 answered 503 Busy instead of connecting to chat.example:443, try again after 7 s"),
        AnswerRow(
            "a redirect", "HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n",
            sentence: "the proxy p:3128 answered 302 Found instead of connecting to chat.example:443"),
        AnswerRow(
            "no HTTP", "SSH-2.0-OpenSSH\r\n\r\n",
            sentence: "the answer of the proxy p:3128 is not HTTP: the first line is not HTTP"),
        AnswerRow(
            "endless interim answers", String(repeating: "HTTP/1.1 100 C\r\n\r\n", count: 5),
            sentence: "the proxy p:3128 answered 100 C instead of connecting to chat.example:443"),
        AnswerRow(
            "too many fields",
            "HTTP/1.1 200 OK\r\n" + String(repeating: "a: b\r\n", count: 101) + "\r\n",
            sentence: "the answer of the proxy p:3128 is not HTTP: the HTTP head has more than 100 fields"),
    ]

    @Test("a proxy's answer opens the tunnel or says why not, however it is cut", arguments: answers)
    func answer(row: AnswerRow) throws {
        let tunnel = try HTTPProxyTunnel(
            to: HTTPURL(parsing: "wss://chat.example/x"), through: HTTPProxy(parsing: "http://p:3128"))
        let expected = row.rest.map { "open: " + $0 } ?? row.sentence ?? ""
        #expect(
            SplitFeedVerifier.disagreements(Array(row.answer.utf8), expected: expected) { pieces in
                var tunnel = tunnel
                var told: String?
                for piece in pieces {
                    if let said = told, said.hasPrefix("open: ") {
                        told = said + String(decoding: piece, as: UTF8.self)
                        continue
                    }
                    switch piece.withUnsafeBytes({ tunnel.bytesReceived($0) }) {
                    case .needMoreData: break
                    case .established(let consumed):
                        told = "open: " + String(decoding: piece[consumed...], as: UTF8.self)
                    case .refused(let refusal): told = tunnel.sentence(refusal)
                    }
                }
                return told ?? "unfinished"
            } == [])
    }

    @Test("the request names the far end, and IPv6 in brackets")
    func requests() throws {
        let proxy = try HTTPProxy(parsing: "http://p:1")
        let plain = try HTTPProxyTunnel(to: HTTPURL(parsing: "ws://chat.example/x"), through: proxy, userAgent: "me/1")
        #expect(
            try request(plain)
                == "CONNECT chat.example:80 HTTP/1.1\r\nHost: chat.example:80\r\nUser-Agent: me/1\r\n\r\n")
        let six = try HTTPProxyTunnel(to: HTTPURL(parsing: "wss://[::2]:8443/x"), through: proxy)
        #expect(try request(six) == "CONNECT [::2]:8443 HTTP/1.1\r\nHost: [::2]:8443\r\n\r\n")
        #expect(throws: HTTPProtocolError.self) {
            try HTTPProxyTunnel(to: HTTPURL(parsing: "ws://h/"), through: proxy, userAgent: "a\r\nb")
        }
    }

    @Test("credentials that were refused are told apart from credentials that are missing")
    func refusedCredentials() throws {
        let tunnel = try HTTPProxyTunnel(
            to: HTTPURL(parsing: "ws://chat.example/"), through: HTTPProxy(parsing: "http://u:p@p:1"))
        for status in [401, 407] {
            let refusal = HTTPTunnelRefusal.status(status, reason: "Auth", retryAfter: nil)
            #expect(refusal.isAboutCredentials)
            #expect(tunnel.sentence(refusal) == "the proxy p:1 refused our user name and password (\(status) Auth)")
        }
        #expect(!HTTPTunnelRefusal.status(403, reason: "", retryAfter: nil).isAboutCredentials)
        #expect(!HTTPTunnelRefusal.malformed("").isAboutCredentials)
    }
}
