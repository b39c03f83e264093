import BridgeTestSupport
import HTTPProtocol
import Testing
import WSProtocol
import WireBytes

/// The key and its answer in RFC 6455 §1.3.
private let rfcNonce = Array("the sample nonce".utf8)
private let rfcKey = "dGhlIHNhbXBsZSBub25jZQ=="
private let rfcAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

/// The bytes of a call that reports whether it wrote; nil when it reports false, which must leave nothing behind.
private func bytesIfWritten(_ write: (inout ByteWriter) -> Bool) -> [UInt8]? {
    var out = ByteWriter()
    let done = write(&out)
    let bytes = out.take().withUnsafeBytes { Array($0) }
    if !done { #expect(bytes == []) }
    return done ? bytes : nil
}

private func bytesWritten(_ write: (inout ByteWriter) -> Void) -> [UInt8] {
    var out = ByteWriter()
    write(&out)
    return out.take().withUnsafeBytes { Array($0) }
}

@Suite("WebSocket handshake: client")
struct ClientHandshakeTests {
    static func handshake(
        _ headers: [(name: String, value: String)] = [], subprotocols: [String] = []
    ) throws(WebSocketHandshakeError) -> WebSocketClientHandshake {
        guard let url = try? HTTPURL(parsing: "wss://server.example.com:8443/chat?a=b") else { throw .invalidNonce }
        return try WebSocketClientHandshake(
            url: url, headers: headers, subprotocols: subprotocols, userAgent: "bridge/1", nonce: rfcNonce)
    }

    @Test("the request is the one of §1.3, with what the owner adds")
    func request() throws {
        let handshake = try Self.handshake(
            [("Origin", "https://o"), ("Authorization", "Bearer x")], subprotocols: ["a", "b"])
        let expected = [
            "GET /chat?a=b HTTP/1.1", "Host: server.example.com:8443", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: \(rfcKey)", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: a, b",
            "Origin: https://o",
            "Authorization: Bearer x", "User-Agent: bridge/1", "", "",
        ].joined(separator: "\r\n")
        #expect(bytesWritten { handshake.request(into: &$0) } == Array(expected.utf8))
    }

    @Test("the owner's User-Agent replaces ours")
    func userAgent() throws {
        let handshake = try Self.handshake([("user-agent", "other")])
        let text = String(decoding: bytesWritten { handshake.request(into: &$0) }, as: UTF8.self)
        #expect(text.contains("user-agent: other\r\n") && !text.contains("bridge/1"))
    }

    @Test(
        "a request that cannot be made is refused when it is asked for",
        arguments: [
            ("Host", "x", .reservedHeader("Host")), ("sec-websocket-key", "x", .reservedHeader("sec-websocket-key")),
            ("Content-Length", "1", .reservedHeader("Content-Length")), ("A", "b\r\nC: d", .invalidHeader("A")),
            ("A b", "c", .invalidHeader("A b")), ("", "c", .invalidHeader("")), ("A", "\u{0}", .invalidHeader("A")),
        ] as [(String, String, WebSocketHandshakeError)])
    func invalidHeaders(name: String, value: String, error: WebSocketHandshakeError) {
        #expect(throws: error) { try Self.handshake([(name, value)]) }
        #expect(!error.sentence.isEmpty)
    }

    @Test("subprotocols are tokens, each once; the nonce has 16 bytes")
    func invalidParameters() throws {
        #expect(throws: WebSocketHandshakeError.invalidSubprotocol("a b")) { try Self.handshake(subprotocols: ["a b"]) }
        #expect(throws: WebSocketHandshakeError.invalidSubprotocol("a")) {
            try Self.handshake(subprotocols: ["a", "a"])
        }
        let url = try HTTPURL(parsing: "ws://h")
        #expect(throws: WebSocketHandshakeError.invalidNonce) { try WebSocketClientHandshake(url: url, nonce: [1, 2]) }
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var name: String
        var response: String
        /// Nil for acceptance.
        var refusal: WebSocketRefusal?
        var subprotocol: String?

        var testDescription: String { name }

        /// The lines of a response; nil as status line stands for a 101.
        init(_ name: String, _ lines: [String], _ refusal: WebSocketRefusal? = nil, subprotocol: String? = nil) {
            (self.name, self.refusal, self.subprotocol) = (name, refusal, subprotocol)
            response = lines.joined(separator: "\r\n") + "\r\n\r\n"
        }

        /// The good response with one header replaced, added or, with nil, left out.
        init(
            _ name: String, with header: String, _ value: String?, _ refusal: WebSocketRefusal? = nil,
            subprotocol: String? = nil
        ) {
            var headers = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", rfcAccept)]
            headers.removeAll { $0.0 == header }
            if let value { headers.append((header, value)) }
            self.init(
                name, ["HTTP/1.1 101 Switching Protocols"] + headers.map { "\($0.0): \($0.1)" }, refusal,
                subprotocol: subprotocol)
        }
    }

    static let noUpgrade = WebSocketRefusal.notWebSocket("the Upgrade header is not websocket")
    static let noConnection = WebSocketRefusal.notWebSocket("the Connection header has no upgrade")
    static let wrongAccept = WebSocketRefusal.notWebSocket("Sec-WebSocket-Accept does not fit our key")

    static let rows: [Row] = [
        Row("good", with: "X-Other", "y"),
        Row("case and lists are tolerated", with: "Connection", "keep-alive, UPGRADE"),
        Row("Upgrade in another case", with: "Upgrade", "WebSocket"),
        Row("first subprotocol", with: "Sec-WebSocket-Protocol", "one", subprotocol: "one"),
        Row("second subprotocol", with: "Sec-WebSocket-Protocol", "two", subprotocol: "two"),
        Row("empty extensions", with: "Sec-WebSocket-Extensions", ""),
        Row(
            "an interim 103 before the 101",
            [
                "HTTP/1.1 103 Early Hints", "Link: </x>", "", "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket",
                "Connection: Upgrade", "Sec-WebSocket-Accept: \(rfcAccept)",
            ]),
        Row("no Upgrade", with: "Upgrade", nil, noUpgrade),
        Row("other Upgrade", with: "Upgrade", "h2c", noUpgrade),
        Row("no Connection", with: "Connection", nil, noConnection),
        Row("Connection without upgrade", with: "Connection", "close", noConnection),
        Row("no accept", with: "Sec-WebSocket-Accept", nil, wrongAccept),
        Row("accept of another key", with: "Sec-WebSocket-Accept", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=", wrongAccept),
        Row("accept in lower case", with: "Sec-WebSocket-Accept", rfcAccept.lowercased(), wrongAccept),
        Row("subprotocol not offered", with: "Sec-WebSocket-Protocol", "three", .subprotocolNotOffered("three")),
        Row("subprotocol in another case", with: "Sec-WebSocket-Protocol", "ONE", .subprotocolNotOffered("ONE")),
        Row("two subprotocols", with: "Sec-WebSocket-Protocol", "one, two", .subprotocolNotOffered("one, two")),
        Row(
            "the same subprotocol twice",
            [
                "HTTP/1.1 101 X", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: \(rfcAccept)",
                "Sec-WebSocket-Protocol: one", "Sec-WebSocket-Protocol: one",
            ], .subprotocolNotOffered("one, one")),
        Row(
            "extension not offered", with: "Sec-WebSocket-Extensions", "permessage-deflate",
            .extensionNotOffered("permessage-deflate")),
        Row(
            "101 in HTTP/1.0", ["HTTP/1.0 101 X", "Upgrade: websocket", "Connection: Upgrade"],
            .notWebSocket("it is HTTP/1.0")),
        Row(
            "200", ["HTTP/1.1 200 OK", "Content-Length: 5"], .status(200, reason: "OK", retryAfter: nil, location: nil)),
        Row("401", ["HTTP/1.1 401 Unauthorized"], .status(401, reason: "Unauthorized", retryAfter: nil, location: nil)),
        Row("403 without reason", ["HTTP/1.1 403"], .status(403, reason: "", retryAfter: nil, location: nil)),
        Row(
            "429 with Retry-After", ["HTTP/1.1 429 Too Many Requests", "retry-after: 30"],
            .status(429, reason: "Too Many Requests", retryAfter: "30", location: nil)),
        Row(
            "503", ["HTTP/1.1 503 X", "Retry-After: soon"], .status(503, reason: "X", retryAfter: "soon", location: nil)
        ),
        Row("redirect", ["HTTP/1.1 302 Found", "Location: wss://b/c"], .redirect(302, location: "wss://b/c")),
        Row("permanent redirect", ["HTTP/1.1 308 X", "Location: /c"], .redirect(308, location: "/c")),
        Row("redirect to nowhere", ["HTTP/1.1 301 X"], .status(301, reason: "X", retryAfter: nil, location: nil)),
        Row(
            "300 is no redirect", ["HTTP/1.1 300 X", "Location: /"],
            .status(300, reason: "X", retryAfter: nil, location: "/")),
        Row("another protocol", ["220 mail.example.com ESMTP"], .malformed("the first line is not HTTP")),
        Row(
            "bare LF", ["HTTP/1.1 101 X\nUpgrade: websocket"],
            .malformed("a line of the HTTP head does not end in CRLF")),
    ]

    /// The outcome, with the bytes behind the head counted instead of those consumed.
    struct Judgement: Equatable {
        var refusal: WebSocketRefusal?
        var subprotocol: String?
        var rest: Int?
        var isWaiting = false
    }

    static func judge(_ pieces: [[UInt8]]) -> Judgement {
        guard var handshake = try? handshake(subprotocols: ["one", "two"]) else { return Judgement() }
        var later = pieces.map(\.count).reduce(0, +)
        for piece in pieces {
            later -= piece.count
            switch piece.withUnsafeBytes({ handshake.bytesReceived($0) }) {
            case .needMoreData: continue
            case .accepted(let subprotocol, let consumed):
                return Judgement(subprotocol: subprotocol, rest: piece.count - consumed + later)
            case .refused(let refusal): return Judgement(refusal: refusal)
            }
        }
        return Judgement(isWaiting: true)
    }

    @Test("a response is accepted or refused for its reason", arguments: rows)
    func responses(_ row: Row) {
        let bytes = Array(row.response.utf8) + [0x81, 0x00]
        let expected = Judgement(
            refusal: row.refusal, subprotocol: row.subprotocol, rest: row.refusal == nil ? 2 : nil)
        #expect(SplitFeedVerifier.disagreements(bytes, expected: expected, decode: Self.judge) == [])
        if let refusal = row.refusal { #expect(!refusal.sentence.isEmpty) }
    }

    @Test("half a response needs more data, and interim answers are not skipped for ever")
    func bounds() {
        #expect(Self.judge([Array("HTTP/1.1 101 X\r\nUpgrade: websocket\r\n".utf8)]).isWaiting)
        let interim = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
        let flood = Array(repeating: interim, count: WebSocketClientHandshake.maxInterimResponses + 1)
        #expect(Self.judge(flood).refusal == .status(100, reason: "Continue", retryAfter: nil, location: nil))
        #expect(
            Self.judge([flood.flatMap { $0 }]).refusal
                == .status(100, reason: "Continue", retryAfter: nil, location: nil))
    }

    @Test("an endless head is refused at the limit")
    func endless() {
        let bytes = Array("HTTP/1.1 101 X\r\n".utf8) + Array(repeating: 0x61, count: HTTPHeadLimits.maxHeadBytes)
        guard case .malformed = Self.judge([bytes]).refusal else {
            Issue.record("no refusal")
            return
        }
    }

    @Test("random bytes end in a refusal or in waiting", arguments: [UInt64(1), 2, 3])
    func junk(seed: UInt64) {
        var rng = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let judgement = Self.judge([rng.bytes(300)])
            #expect(judgement.rest == nil, "\(rng)")
        }
    }
}

@Suite("WebSocket handshake: server")
struct ServerHandshakeTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var name: String
        var request: String
        var answer: Answer

        var testDescription: String { name }

        /// The good request with one header replaced, added or, with nil, left out.
        init(
            _ name: String, with header: String, _ value: String?, line: String = "GET /chat HTTP/1.1", _ answer: Answer
        ) {
            var headers = [
                ("Host", "h"), ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Key", rfcKey),
                ("Sec-WebSocket-Version", "13"),
            ]
            headers.removeAll { $0.0 == header }
            if let value { headers.append((header, value)) }
            self.name = name
            self.answer = answer
            request = ([line] + headers.map { "\($0.0): \($0.1)" }).joined(separator: "\r\n") + "\r\n\r\n"
        }
    }

    enum Answer: Equatable, Sendable {
        case waiting
        case accepted(target: String, subprotocols: [String], rest: Int)
        case plain(target: String, rest: Int)
        case refused(Int)
    }

    static let good = Answer.accepted(target: "/chat", subprotocols: [], rest: 3)

    static let rows: [Row] = [
        Row("good", with: "X", "y", good),
        Row(
            "subprotocols in order", with: "Sec-WebSocket-Protocol", "b, a",
            .accepted(target: "/chat", subprotocols: ["b", "a"], rest: 3)),
        Row("Connection as a list, as Firefox writes it", with: "Connection", "keep-alive, Upgrade", good),
        Row("extensions are ignored", with: "Sec-WebSocket-Extensions", "permessage-deflate", good),
        Row("Upgrade in another case", with: "Upgrade", "WebSocket", good),
        Row("no Upgrade is plain HTTP", with: "Upgrade", nil, .plain(target: "/chat", rest: 3)),
        Row("Upgrade to h2c is plain HTTP", with: "Upgrade", "h2c", .plain(target: "/chat", rest: 3)),
        Row("no Connection", with: "Connection", nil, .refused(400)),
        Row("POST", with: "X", "y", line: "POST /chat HTTP/1.1", .refused(400)),
        Row("HTTP/1.0", with: "X", "y", line: "GET /chat HTTP/1.0", .refused(400)),
        Row("HTTP/2", with: "X", "y", line: "GET /chat HTTP/2.0", .refused(505)),
        Row("no Host", with: "Host", nil, .refused(400)),
        Row("no version", with: "Sec-WebSocket-Version", nil, .refused(426)),
        Row("version 8", with: "Sec-WebSocket-Version", "8", .refused(426)),
        Row("no key", with: "Sec-WebSocket-Key", nil, .refused(400)),
        Row("key of 15 bytes", with: "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAA", .refused(400)),
        Row("key that is not base64", with: "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ", .refused(400)),
        Row("two keys", with: "sec-websocket-key", rfcKey, .refused(400)),
        Row("a body", with: "Content-Length", "1", .refused(400)),
        Row("a chunked body", with: "Transfer-Encoding", "chunked", .refused(400)),
        Row("malformed subprotocol", with: "Sec-WebSocket-Protocol", "a b", .refused(400)),
        Row("endless target", with: "X", "y", line: "GET /" + String(repeating: "a", count: 9000), .refused(414)),
        Row("malformed header", with: "Bad Name", "y", .refused(400)),
    ]

    static func judge(_ pieces: [[UInt8]]) -> Answer {
        var handshake = WebSocketServerHandshake()
        var later = pieces.map(\.count).reduce(0, +)
        for piece in pieces {
            later -= piece.count
            switch piece.withUnsafeBytes({ handshake.bytesReceived($0) }) {
            case .needMoreData: continue
            case .accept(let request, let subprotocols, let consumed):
                return .accepted(
                    target: request.target, subprotocols: subprotocols, rest: piece.count - consumed + later)
            case .plainHTTP(let request, let consumed):
                return .plain(target: request.target, rest: piece.count - consumed + later)
            case .refused(let response, _):
                let line = String(decoding: response.prefix { $0 != 0x0D }, as: UTF8.self)
                return .refused(Int(line.split(separator: " ")[1]) ?? 0)
            }
        }
        return .waiting
    }

    @Test("a request is accepted, passed on or refused with its status", arguments: rows)
    func requests(_ row: Row) {
        let bytes = Array(row.request.utf8) + [1, 2, 3]
        #expect(SplitFeedVerifier.disagreements(bytes, expected: row.answer, decode: Self.judge) == [])
    }

    @Test("the answer is the one of §1.3")
    func answer() {
        var handshake = WebSocketServerHandshake()
        #expect(bytesIfWritten { handshake.accept(into: &$0) } == nil)
        _ = Array(Self.rows[1].request.utf8).withUnsafeBytes { handshake.bytesReceived($0) }
        #expect(bytesIfWritten { handshake.accept(subprotocol: "not offered", into: &$0) } == nil)
        let written = bytesIfWritten { handshake.accept(subprotocol: "a", into: &$0) }
        let expected = [
            "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Accept: \(rfcAccept)", "Sec-WebSocket-Protocol: a", "", "",
        ].joined(separator: "\r\n")
        #expect(written == Array(expected.utf8))
    }

    @Test("a version that is not 13 is told which one is")
    func versionAnswer() {
        var handshake = WebSocketServerHandshake()
        let request = Self.rows.first { $0.name == "version 8" }?.request ?? ""
        guard case .refused(let response, _) = Array(request.utf8).withUnsafeBytes({ handshake.bytesReceived($0) })
        else {
            Issue.record("not refused")
            return
        }
        let text = String(decoding: response, as: UTF8.self)
        #expect(text.contains("\r\nSec-WebSocket-Version: 13\r\n") && text.contains("\r\nConnection: close\r\n"))
    }

    @Test("a refusal of the owner's is a whole answer")
    func refuse() {
        let written = bytesIfWritten {
            WebSocketServerHandshake.refuse(status: 403, reason: "Forbidden", body: "né", into: &$0)
        }
        let text = String(decoding: written ?? [], as: UTF8.self)
        #expect(text.hasPrefix("HTTP/1.1 403 Forbidden\r\n") && text.hasSuffix("Content-Length: 3\r\n\r\nné"))
        #expect(bytesIfWritten { WebSocketServerHandshake.refuse(status: 40, reason: "", into: &$0) } == nil)
    }

    @Test("what a client asks, a server grants, and both agree on the subprotocol")
    func wired() throws {
        var client = try ClientHandshakeTests.handshake(subprotocols: ["one", "two"])
        var server = WebSocketServerHandshake()
        let request = bytesWritten { client.request(into: &$0) }
        _ = request.withUnsafeBytes { server.bytesReceived($0) }
        let response = bytesIfWritten { server.accept(subprotocol: "two", into: &$0) } ?? []
        let outcome = response.withUnsafeBytes { client.bytesReceived($0) }
        #expect(outcome == .accepted(subprotocol: "two", consumed: response.count))
    }
}
