import BridgeTestSupport
import HTTPProtocol
import Testing
import WireBytes

@Suite("HTTP heads")
struct HTTPHeadTests {
    enum Outcome: Equatable, Sendable {
        case incomplete
        case request(HTTPRequestHead, rest: Int)
        case response(HTTPResponseHead, rest: Int)
        case failed(HTTPProtocolError)
    }

    /// Feeds the pieces until the head is whole and counts the bytes after it.
    static func decode(_ kind: HTTPHeadDecoder.Kind, _ pieces: [[UInt8]]) -> Outcome {
        var decoder = HTTPHeadDecoder(kind)
        var later = pieces.map(\.count).reduce(0, +)
        for piece in pieces {
            later -= piece.count
            do throws(HTTPProtocolError) {
                let step = try piece.withUnsafeBytes { bytes in
                    Result { () throws(HTTPProtocolError) in try decoder.bytesReceived(bytes) }
                }.get()
                switch step {
                case .needMoreData: continue
                case .request(let head, let consumed): return .request(head, rest: piece.count - consumed + later)
                case .response(let head, let consumed): return .response(head, rest: piece.count - consumed + later)
                }
            } catch {
                return .failed(error)
            }
        }
        return .incomplete
    }

    static func check(_ kind: HTTPHeadDecoder.Kind, _ text: String, _ expected: Outcome) {
        let found = SplitFeedVerifier.disagreements(Array(text.utf8), expected: expected) { decode(kind, $0) }
        #expect(found == [], "\(text.prefix(200))")
    }

    @Test("a request is read, and what follows it is left")
    func request() {
        let head = HTTPRequestHead(
            method: "GET", target: "/a?b=c", headers: HTTPHeaders([("Host", "h"), ("X-Empty", ""), ("x-two", "a  b")]))
        Self.check(
            .request, "GET /a?b=c HTTP/1.1\r\nHost: h\r\nX-Empty:\r\nx-two: \t a  b \t\r\n\r\nGET",
            .request(head, rest: 3))
        Self.check(
            .request, "\r\nGET /a?b=c HTTP/1.1\r\nHost: h\r\nX-Empty:\r\nx-two:a  b\r\n\r\n", .request(head, rest: 0))
    }

    @Test("a response is read, with and without a reason")
    func response() {
        let none = HTTPHeaders()
        Self.check(
            .response, "HTTP/1.1 101 Switching Protocols\r\nA: b\r\n\r\n\u{1}\u{2}",
            .response(
                HTTPResponseHead(status: 101, reason: "Switching Protocols", headers: HTTPHeaders([("A", "b")])),
                rest: 2))
        Self.check(
            .response, "HTTP/1.1 204 \r\n\r\n",
            .response(HTTPResponseHead(status: 204, reason: "", headers: none), rest: 0))
        Self.check(
            .response, "HTTP/1.0 999\r\n\r\n",
            .response(
                HTTPResponseHead(version: HTTPVersion(major: 1, minor: 0), status: 999, reason: "", headers: none),
                rest: 0))
    }

    @Test(
        "a malformed request is refused",
        arguments: [
            ("GET / HTTP/1.1\n\r\n", .lineEndingNotCRLF), ("GET / HTTP/1.1\r\nHost: h\n\r\n", .lineEndingNotCRLF),
            ("GET / HTTP/1.1\r\nHost: h\r\n\n", .lineEndingNotCRLF), ("GET / HTTP/1.1\rX", .lineEndingNotCRLF),
            ("GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n", .obsoleteLineFolding),
            ("GET / HTTP/1.1\r\n\tHost: h\r\n\r\n", .obsoleteLineFolding),
            ("GET / HTTP/1.1\r\nHost : h\r\n\r\n", .malformedHeader),
            ("GET / HTTP/1.1\r\n: h\r\n\r\n", .malformedHeader),
            ("GET / HTTP/1.1\r\nHost h\r\n\r\n", .malformedHeader),
            ("GET / HTTP/1.1\r\nHost: a\u{0}b\r\n\r\n", .malformedHeader),
            ("GET / HTTP/1.1\r\nHost: a\u{7F}\r\n\r\n", .malformedHeader),
            ("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", .duplicateHost), ("GET / HTTP/1.1\r\n\r\n", .missingHost),
            ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", .unsupportedVersion),
            ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", .malformedStartLine),
            ("GET / HTTP/1.1 \r\nHost: h\r\n\r\n", .malformedStartLine),
            ("GET /\r\n\r\n", .malformedStartLine), ("G(T / HTTP/1.1\r\n\r\n", .malformedStartLine),
            ("GET / http/1.1\r\n\r\n", .malformedStartLine), ("GET / HTTP/1.10\r\n\r\n", .malformedStartLine),
            ("GET /é HTTP/1.1\r\n\r\n", .malformedStartLine), ("\r\n\r\nGET / HTTP/1.1\r\n\r\n", .malformedStartLine),
            ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", .ambiguousBodyLength),
            ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", .ambiguousBodyLength),
            (
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                .ambiguousBodyLength
            ),
        ] as [(String, HTTPProtocolError)])
    func malformedRequest(text: String, error: HTTPProtocolError) {
        Self.check(.request, text, .failed(error))
        #expect((400...599).contains(error.statusHint) && !error.sentence.isEmpty)
    }

    @Test(
        "a malformed response is refused",
        arguments: [
            "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n",
            "HTTP/1.1 +20 X\r\n\r\n", "HTTP/1.1  200 OK\r\n\r\n", "\r\nHTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 O\u{1}\r\n\r\n",
        ])
    func malformedResponse(_ text: String) { Self.check(.response, text, .failed(.malformedStartLine)) }

    @Test("each bound is met at its byte")
    func bounds() {
        let start = "GET / HTTP/1.1\r\nHost: h\r\n"
        let fields = String(repeating: "a: b\r\n", count: HTTPHeadLimits.maxHeaderCount - 1)
        guard case .request(let head, rest: 0) = Self.decode(.request, [Array((start + fields + "\r\n").utf8)]) else {
            Issue.record("a head with as many fields as allowed was refused")
            return
        }
        #expect(head.headers.count == HTTPHeadLimits.maxHeaderCount)
        Self.check(
            .request, start + fields + "a: b\r\n", .failed(.tooManyHeaders(limit: HTTPHeadLimits.maxHeaderCount)))

        let longLine = "GET /" + String(repeating: "a", count: HTTPHeadLimits.maxStartLineBytes)
        Self.check(.request, longLine, .failed(.startLineTooLong(limit: HTTPHeadLimits.maxStartLineBytes)))

        let filler = HTTPHeadLimits.maxHeadBytes - start.utf8.count - "a: \r\n\r\n".utf8.count
        let whole = start + "a: " + String(repeating: "b", count: filler)
        guard case .request = Self.decode(.request, [Array((whole + "\r\n\r\n").utf8)]) else {
            Issue.record("a head of the greatest length was refused")
            return
        }
        Self.check(.request, whole + "b\r\n\r\n", .failed(.headTooLarge(limit: HTTPHeadLimits.maxHeadBytes)))
    }

    @Test("a head that was written reads back")
    func roundTrip() throws {
        var out = ByteWriter()
        let request = HTTPRequestHead(method: "GET", target: "/", headers: HTTPHeaders([("Host", "h"), ("A", "é\tb")]))
        try request.serialize(into: &out)
        let requestBytes = out.take().withUnsafeBytes { Array($0) }
        #expect(Self.decode(.request, [requestBytes]) == .request(request, rest: 0))
        let response = HTTPResponseHead(status: 404, reason: "Not Found", headers: HTTPHeaders([("A", "")]))
        try response.serialize(into: &out)
        let responseBytes = out.take().withUnsafeBytes { Array($0) }
        #expect(Self.decode(.response, [responseBytes]) == .response(response, rest: 0))
    }

    @Test(
        "what would break a head is not written",
        arguments: [
            ("GET", "/", "a\r\nB: c"), ("GET", "/", "a\u{0}"), ("GET", "/", "a\n"), ("GET", "/ x", "a"),
            ("GET", "", "a"), ("G T", "/", "a"), ("GET", "/\r\n", "a"),
        ])
    func injection(method: String, target: String, value: String) {
        var out = ByteWriter()
        var thrown: HTTPProtocolError?
        do throws(HTTPProtocolError) {
            try HTTPRequestHead(method: method, target: target, headers: HTTPHeaders([("A", value)])).serialize(
                into: &out)
        } catch { thrown = error }
        let written = out.count
        #expect(written == 0 && thrown != nil)
    }

    @Test("headers are found without case, and lists item by item")
    func headers() {
        let headers = HTTPHeaders([("Connection", "keep-alive, Upgrade"), ("connection", ",, x ,"), ("A", "upgraded")])
        #expect(headers.first("CONNECTION") == "keep-alive, Upgrade")
        #expect(headers.all("connection").count == 2)
        #expect(headers.contains(token: "upgrade", in: "Connection"))
        #expect(headers.contains(token: "x", in: "Connection"))
        #expect(!headers.contains(token: "upgrade", in: "A"))
        #expect(!headers.contains(token: "keep", in: "Connection"))
        #expect(headers.listItems("connection") == ["keep-alive", "Upgrade", "x"])
    }
}

@Suite("Retry-After")
struct RetryAfterTests {
    /// 1994-11-06T08:49:37Z.
    static let now: Int64 = 784_111_777_000

    @Test(
        "seconds and dates become a delay",
        arguments: [
            ("0", .zero), ("120", .seconds(120)), (" 7 ", .seconds(7)), ("999999", RetryAfter.maxDelay),
            ("99999999999999999999999", RetryAfter.maxDelay), ("Sun, 06 Nov 1994 08:49:37 GMT", .zero),
            ("Sun, 06 Nov 1994 08:50:37 GMT", .seconds(60)), ("Sun, 06 Nov 1994 08:00:00 GMT", .zero),
            ("Mon, 07 Nov 1994 07:49:37 GMT", .seconds(23 * 3600)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", RetryAfter.maxDelay),
            ("", nil), ("soon", nil), ("-1", nil), ("1.5", nil), ("Sun, 06 Nov 1994 08:49:37", nil),
            ("Sun, 06 Nov 1994 24:49:37 GMT", nil), ("Sun, 06 Foo 1994 08:49:37 GMT", nil),
            ("Sunday, 06-Nov-94 08:49:37 GMT", nil), ("Sun, 00 Nov 1994 08:49:37 GMT", nil),
        ] as [(String, Duration?)])
    func delays(value: String, delay: Duration?) {
        #expect(RetryAfter.delay(value, wallMilliseconds: Self.now) == delay)
    }

    @Test("leap days are counted")
    func leapDays() {
        // 2024-02-28T12:00:00Z.
        let now: Int64 = 1_709_121_600_000
        #expect(RetryAfter.delay("Thu, 29 Feb 2024 11:00:00 GMT", wallMilliseconds: now) == .seconds(23 * 3600))
        #expect(RetryAfter.delay("Thu, 01 Jan 1970 00:00:01 GMT", wallMilliseconds: 0) == .seconds(1))
        #expect(RetryAfter.clause("30") == ", try again after 30 s" && RetryAfter.clause(nil).isEmpty)
        #expect(RetryAfter.clause("Thu, 29 Feb 2024 11:00:00 GMT") == ", try again after Thu, 29 Feb 2024 11:00:00 GMT")
        #expect(RetryAfter.delay("Sun, 06 Nov 1994 08:49:37 GMT", wallMilliseconds: .min) == RetryAfter.maxDelay)
        #expect(RetryAfter.delay("Sun, 06 Nov 1994 08:49:37 GMT", wallMilliseconds: .max) == .zero)
    }
}
