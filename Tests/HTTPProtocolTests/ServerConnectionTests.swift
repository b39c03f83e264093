import BridgeTestSupport
import HTTPProtocol
import Testing
import WireBytes

@Suite("HTTP server connection")
struct ServerConnectionTests {
    static let get = "GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n"

    // MARK: - Requests

    @Test(
        "a request is told with its body, however it is cut",
        arguments: [
            ("no body", get, ["GET /a?b", "end"]),
            (
                "a length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
                ["POST /", "body abc", "end"]
            ),
            ("a length of zero", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", ["POST /", "end"]),
            (
                "chunks",
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n",
                ["POST /", "body abc0123456789", "end"]
            ),
            (
                "chunks with extensions and trailers",
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: CHUNKED\r\n\r\n003;a=\"b;c\" ; d\r\nabc\r\n00;x\r\nT: u\r\nV:w \r\n\r\n",
                ["POST /", "body abc", "end"]
            ),
            ("an absolute target", "GET http://H:80/x?y HTTP/1.1\r\nHost: h:80\r\n\r\n", ["GET /x?y", "end"]),
            ("an absolute target without a path", "GET http://h?y HTTP/1.1\r\nHost: h\r\n\r\n", ["GET /?y", "end"]),
            ("the server as a whole", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", ["OPTIONS *", "end"]),
            ("HTTP/1.0 without a Host", "GET / HTTP/1.0\r\n\r\n", ["GET /", "end"]),
            (
                "several ahead of their answers",
                get + "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx" + get,
                ["GET /a?b", "end", "POST /", "body x", "end", "GET /a?b", "end"]
            ),
            (
                "nothing after Connection: close", "GET / HTTP/1.1\r\nHost: h\r\nConnection: x, Close\r\n\r\n" + get,
                ["GET /", "end"]
            ),
            ("nothing after HTTP/1.0", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get, ["GET /", "end"]),
        ] as [(String, String, [String])])
    func requests(name: String, text: String, told: [String]) { ServerHarness.check(text, told) }

    @Test("a target gives its host without port and case")
    func targets() {
        var seen: [String] = []
        for host in ["H.example:80", "[::1]:80", "h.", "127.0.0.1"] {
            var connection = HTTPServerConnection(now: MonotonicInstant(nanoseconds: 0))
            let bytes = Array("GET /?strict&a=1 HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8)
            for case .request(_, let target) in bytes.withUnsafeBytes({
                connection.bytesReceived($0, now: MonotonicInstant(nanoseconds: 0))
            }) {
                seen.append(target.host)
                #expect(target.hasQueryField("strict") && target.hasQueryField("a") && !target.hasQueryField("stric"))
            }
        }
        #expect(seen == ["h.example", "::1", "h", "127.0.0.1"])
    }

    @Test("pipelined requests wait for the answers before them")
    func pipelining() {
        var harness = ServerHarness()
        harness.answer = nil
        harness.feed(Self.get + Self.get)
        #expect(harness.told == ["GET /a?b", "end"])
        #expect(!harness.connection.wantsBytes)
        harness.answer = "1"
        harness.respond()
        #expect(harness.told == ["GET /a?b", "end", "GET /a?b", "end"])
        let sent = harness.sentText
        #expect(sent == String(repeating: "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\n1", count: 2))
        #expect(harness.connection.wantsBytes)
    }

    @Test("what is sent ahead without end is cut off, and the request before it is answered")
    func pipelineBound() {
        var limits = HTTPServerLimits()
        limits.maxPipelinedBytes = 100
        var harness = ServerHarness(limits: limits)
        harness.answer = nil
        harness.feed(Self.get + String(repeating: "x", count: 100))
        #expect(harness.connection.canRespond)
        harness.feed("x")
        harness.answer = ""
        harness.respond()
        #expect(harness.connection.mustClose)
        #expect(harness.sentText.contains("Connection: close"))
        #expect(harness.told == ["GET /a?b", "end"])
    }

    // MARK: - Bounds

    @Test("each bound of a body is met at its byte")
    func bounds() {
        var limits = HTTPServerLimits()
        limits.maxBodyBytes = 10
        let head = "POST / HTTP/1.1\r\nHost: h\r\n"
        let chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
        ServerHarness.check(
            head + "Content-Length: 11\r\n\r\n", limits: limits, ["failed \(HTTPProtocolError.bodyTooLarge(limit: 10))"]
        )
        ServerHarness.check(
            head + "Content-Length: 10\r\n\r\n0123456789", limits: limits, ["POST /", "body 0123456789", "end"])
        ServerHarness.check(
            chunked + "5\r\n01234\r\n6\r\n", limits: limits,
            ["POST /", "body 01234", "failed \(HTTPProtocolError.bodyTooLarge(limit: 10))"])
        ServerHarness.check(
            chunked + "7FFFFFFFFFFFFFF\r\n", limits: limits,
            ["POST /", "failed \(HTTPProtocolError.bodyTooLarge(limit: 10))"])

        let line = HTTPBodyLimits.maxChunkLineBytes
        let filler = String(repeating: "e", count: line - 2)
        ServerHarness.check(chunked + "0;" + filler + "\r\n\r\n", ["POST /", "end"])
        ServerHarness.check(
            chunked + "0;" + filler + "e", ["POST /", "failed \(HTTPProtocolError.chunkLineTooLong(limit: line))"])

        let all = HTTPBodyLimits.maxChunkExtensionBytes
        let small = "1;" + String(repeating: "e", count: 128) + "\r\na\r\n"
        let fits = String(repeating: small, count: all / 128)
        let content = String(repeating: "a", count: all / 128)
        ServerHarness.check(chunked + fits + "0\r\n\r\n", ["POST /", "body " + content, "end"])
        ServerHarness.check(
            chunked + fits + "0;e",
            ["POST /", "body " + content, "failed \(HTTPProtocolError.chunkExtensionsTooLong(limit: all))"])

        let trailers = HTTPBodyLimits.maxTrailerBytes
        let room = String(repeating: "b", count: trailers - "a: \r\n\r\n".utf8.count)
        ServerHarness.check(chunked + "0\r\na: \(room)\r\n\r\n", ["POST /", "end"])
        ServerHarness.check(
            chunked + "0\r\na: \(room)b\r\n\r\n",
            ["POST /", "failed \(HTTPProtocolError.trailersTooLarge(limit: trailers))"])
    }

    @Test("the requests of one connection are counted")
    func requestBound() {
        var limits = HTTPServerLimits()
        limits.maxRequests = 2
        var harness = ServerHarness(limits: limits)
        harness.feed(Self.get + Self.get + Self.get)
        #expect(harness.told == ["GET /a?b", "end", "GET /a?b", "end"])
        #expect(harness.connection.mustClose)
    }

    // MARK: - Time

    @Test("a head that trickles is refused in time")
    func headTimeout() {
        var harness = ServerHarness()
        harness.feed("GET / HT")
        harness.pass(.seconds(9))
        harness.feed("T")
        #expect(harness.told == [])
        harness.pass(.seconds(1))
        #expect(harness.told == ["failed \(HTTPProtocolError.timedOut(.head))"])
        #expect(harness.connection.canRespond)
        #expect(harness.connection.nextDeadline == nil)
    }

    @Test("a connection that says nothing is closed without a word, sooner at its start than between requests")
    func idleTimeout() {
        var first = ServerHarness()
        first.pass(.seconds(10))
        #expect(first.told == ["idle"])
        #expect(first.connection.mustClose)

        var kept = ServerHarness()
        kept.feed(Self.get)
        kept.pass(.seconds(74))
        #expect(kept.told == ["GET /a?b", "end"])
        kept.feed("G")
        kept.pass(.seconds(9))
        #expect(kept.told.count == 2)
        kept.pass(.seconds(1))
        #expect(kept.told.last == "failed \(HTTPProtocolError.timedOut(.head))")
    }

    @Test("a body may be neither silent for long nor endless")
    func bodyTimeout() {
        let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n"
        var silent = ServerHarness()
        silent.feed(head)
        silent.pass(.seconds(19))
        silent.feed("a")
        silent.pass(.seconds(19))
        #expect(silent.told == ["POST /", "body a"])
        silent.pass(.seconds(1))
        #expect(silent.told.last == "failed \(HTTPProtocolError.timedOut(.body))")

        var endless = ServerHarness()
        endless.feed(head)
        for _ in 0..<20 {
            endless.pass(.seconds(15))
            endless.feed("a")
        }
        #expect(endless.told.last == "failed \(HTTPProtocolError.timedOut(.body))")
    }

    @Test("a body that was not awaited until now has its whole time")
    func bodyAwaited() {
        var harness = ServerHarness()
        harness.answer = nil
        harness.connection.bodyAwaited(now: harness.now)
        harness.feed("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n")
        harness.pass(.seconds(19))
        harness.connection.bodyAwaited(now: harness.now)
        harness.pass(.seconds(19))
        #expect(harness.told == ["POST /"])
        harness.pass(.seconds(1))
        #expect(harness.told.last == "failed \(HTTPProtocolError.timedOut(.body))")
        harness.connection.bodyAwaited(now: harness.now)
        #expect(harness.connection.nextDeadline == nil, "there is no body any more")
    }

    @Test("while an answer is owed there is no deadline")
    func noDeadline() {
        var harness = ServerHarness()
        harness.answer = nil
        harness.feed(Self.get)
        #expect(harness.connection.nextDeadline == nil)
        harness.pass(.seconds(10_000))
        #expect(harness.told == ["GET /a?b", "end"])
    }

    // MARK: - Answers

    /// Answers one request and returns the written bytes.
    static func answered(
        _ request: String, status: Int = 200, headers: HTTPHeaders = HTTPHeaders(), _ body: HTTPOutgoingBody,
        _ parts: [String] = []
    ) throws -> String {
        var harness = ServerHarness()
        harness.answer = nil
        harness.feed(request)
        try harness.write { connection, out in
            try connection.startResponse(
                HTTPResponseHead(status: status, reason: "R", headers: headers), body: body, into: &out)
            for part in parts {
                try connection.sendBody(ByteSlice(part), into: &out)
            }
            try connection.finishResponse(into: &out)
        }
        return harness.sentText + (harness.connection.mustClose ? "|closed" : "|kept")
    }

    @Test("the framing of an answer fits the request")
    func framing() throws {
        let head = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"
        let old = "GET / HTTP/1.0\r\n\r\n"
        let line = "HTTP/1.1 200 R\r\n"
        #expect(try Self.answered(Self.get, .length(2), ["o", "k"]) == line + "Content-Length: 2\r\n\r\nok|kept")
        #expect(try Self.answered(Self.get, .none) == line + "Content-Length: 0\r\n\r\n|kept")
        #expect(
            try Self.answered(Self.get, .stream, ["ok", "", "0123456789abcdefg"])
                == line
                + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n11\r\n0123456789abcdefg\r\n0\r\n\r\n|kept")
        #expect(try Self.answered(head, .length(2), ["ok"]) == line + "Content-Length: 2\r\n\r\n|kept")
        #expect(try Self.answered(head, .stream, ["ok"]) == line + "Transfer-Encoding: chunked\r\n\r\n|kept")
        #expect(
            try Self.answered(old, .length(2), ["ok"])
                == line + "Content-Length: 2\r\nConnection: close\r\n\r\nok|closed")
        #expect(try Self.answered(old, .stream, ["ok"]) == line + "Connection: close\r\n\r\nok|closed")
        #expect(try Self.answered(Self.get, status: 204, .none) == "HTTP/1.1 204 R\r\n\r\n|kept")
        #expect(
            try Self.answered(Self.get, status: 304, .length(9)) == "HTTP/1.1 304 R\r\nContent-Length: 9\r\n\r\n|kept")
    }

    @Test(
        "an answer that would break its framing is refused",
        arguments: [
            ("too much", 200, [], .length(1), ["ab"]), ("too little", 200, [], .length(3), ["ab"]),
            ("a length for 204", 204, [], .length(1), ["a"]), ("a stream for 204", 204, [], .stream, []),
            ("a negative length", 200, [], .length(-1), []), ("an interim status", 100, [], .none, []),
            ("a length of its own", 200, ["Content-Length"], .none, []),
            ("a coding of its own", 200, ["transfer-encoding"], .none, []),
            ("a connection of its own", 200, ["Connection"], .none, []),
        ] as [(String, Int, [String], HTTPOutgoingBody, [String])])
    func misuse(name: String, status: Int, fields: [String], body: HTTPOutgoingBody, parts: [String]) {
        let headers = HTTPHeaders(fields.map { ($0, "1") })
        let thrown = #expect(throws: HTTPProtocolError.self) {
            try Self.answered(Self.get, status: status, headers: headers, body, parts)
        }
        #expect(thrown?.statusHint == 500)
    }

    @Test("calls out of turn are refused")
    func outOfTurn() {
        var harness = ServerHarness()
        harness.answer = nil
        harness.write { connection, out in
            #expect(throws: HTTPProtocolError.self) {
                try connection.startResponse(
                    HTTPResponseHead(status: 200, reason: "", headers: HTTPHeaders()), body: .none, into: &out)
            }
            #expect(throws: HTTPProtocolError.self) { try connection.finishResponse(into: &out) }
            #expect(throws: HTTPProtocolError.self) {
                try connection.sendBody(ByteSlice("a"), into: &out)
            }
            connection.continueRequest(into: &out)
        }
        #expect(harness.sent == [])
    }

    @Test("an answer before the end of the body closes the connection")
    func earlyAnswer() {
        var harness = ServerHarness()
        harness.answer = nil
        harness.feed("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
        harness.answer = "no"
        harness.respond(status: 413)
        #expect(harness.sentText == "HTTP/1.1 413 \r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
        #expect(harness.connection.mustClose)
        harness.feed("defghij" + Self.get)
        #expect(harness.told == ["POST /", "body abc"])
    }

    @Test("a refusal can be sent for a head that was never whole")
    func refusal() {
        var harness = ServerHarness()
        harness.feed("nonsense\r\n\r\n")
        #expect(harness.connection.canRespond && !harness.connection.mustClose)
        harness.answer = ""
        harness.respond(status: 400)
        #expect(harness.sentText == "HTTP/1.1 400 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        #expect(harness.connection.mustClose)
    }

    // MARK: - Expect, drain, end

    @Test("a client that expects 100 gets it once, and not when its body comes anyway")
    func expectContinue() {
        let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n"
        var harness = ServerHarness()
        harness.feed(head)
        harness.write { $0.continueRequest(into: &$1) }
        harness.write { $0.continueRequest(into: &$1) }
        #expect(harness.takeSent() == "HTTP/1.1 100 Continue\r\n\r\n")
        harness.feed("ab")
        #expect(harness.told == ["POST /", "body ab", "end"])
        #expect(!harness.connection.mustClose)

        var eager = ServerHarness()
        eager.feed(head + "a")
        eager.write { $0.continueRequest(into: &$1) }
        #expect(eager.sent == [])

        var old = ServerHarness()
        old.feed("POST / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        old.write { $0.continueRequest(into: &$1) }
        #expect(old.sent == [])
        #expect(old.told == ["POST /"])
    }

    @Test("draining ends an idle connection at once and a busy one after its answer")
    func draining() {
        var idle = ServerHarness()
        idle.connection.drain()
        #expect(idle.connection.mustClose)

        var busy = ServerHarness()
        busy.answer = nil
        busy.feed(Self.get + Self.get)
        busy.connection.drain()
        #expect(!busy.connection.mustClose)
        busy.answer = ""
        busy.respond()
        #expect(busy.connection.mustClose)
        #expect(busy.sentText.contains("Connection: close"))
        #expect(busy.told == ["GET /a?b", "end"])
    }

    @Test("an end within a message is told, an end between two is none of its business")
    func peerClosed() {
        for (text, told) in [
            ("", []), (Self.get, ["GET /a?b", "end"]), ("GE", ["failed \(HTTPProtocolError.endedEarly)"]),
            (
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na",
                ["POST /", "body a", "failed \(HTTPProtocolError.endedEarly)"]
            ),
        ] {
            var harness = ServerHarness()
            harness.feed(text)
            harness.take(harness.connection.peerClosed())
            #expect(harness.told == told)
        }
    }

    @Test("an answer can still be given after the client closed its side")
    func halfClosed() {
        var harness = ServerHarness()
        harness.answer = nil
        harness.feed(Self.get)
        harness.take(harness.connection.peerClosed())
        harness.answer = "late"
        harness.respond()
        #expect(harness.sentText.hasSuffix("\r\n\r\nlate"))
        #expect(harness.connection.mustClose)
    }

    @Test("random bytes end in events, never in a trap", arguments: 0..<200 as Range<UInt64>)
    func noise(seed: UInt64) {
        var rng = SeededGenerator(seed: seed)
        let words = [
            "GET / HTTP/1.1\r\n", "Host: h\r\n", "\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\n",
            "5\r\n",
            "hello", "0\r\n", "\u{0}", ":", " ", "\n", "POST http://h/ HTTP/1.1\r\n", "FFFFFFFFFFFFFFF\r\n", ";",
            "Expect: 100-continue\r\n",
        ]
        let text = (0..<Int.random(in: 1...40, using: &rng)).map { _ in words.randomElement(using: &rng) ?? "" }
            .joined()
        let found = SplitFeedVerifier.disagreements(Array(text.utf8)) { pieces in
            var harness = ServerHarness()
            harness.feed(pieces)
            return harness.told
        }
        #expect(found == [], "seed \(seed)")
    }
}
