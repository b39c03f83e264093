import BridgeTestSupport
import HTTPProtocol
import Testing
import WireBytes

@Suite("HTTP client connection")
struct ClientConnectionTests {
    static let start = MonotonicInstant(nanoseconds: 0)

    /// A connection that has asked.
    static func asked(
        _ method: String = "GET", body: HTTPOutgoingBody = .none, limits: HTTPClientLimits = HTTPClientLimits(),
        finish: Bool = true
    ) throws -> (HTTPClientConnection, sent: String) {
        var connection = HTTPClientConnection(limits: limits)
        var out = ByteWriter()
        try connection.startRequest(
            HTTPRequestHead(method: method, target: "/", headers: HTTPHeaders([("Host", "h")])), body: body, now: start,
            into: &out)
        if finish { try connection.finishRequest(into: &out) }
        return (connection, out.take().text)
    }

    static func describe(_ events: [HTTPClientConnection.Event], into told: inout [String]) {
        for event in events {
            switch event {
            case .interim(let head): told.append("interim \(head.status)")
            case .response(let head): told.append("response \(head.status)")
            case .bodyPart(let slice):
                if let last = told.last, last.hasPrefix("body ") {
                    told[told.count - 1] = last + slice.text
                } else {
                    told.append("body " + slice.text)
                }
            case .responseComplete:
                told.append("end")
            case .failed(let error): told.append("failed \(error)")
            }
        }
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var method = "GET"
        var text: String
        /// The server closes after it.
        var closes = false
        var told: [String]
        var isReusable: Bool
    }

    static let ok = "HTTP/1.1 200 OK\r\n"

    static let rows = [
        Row(
            testDescription: "a length (§6.3)", text: ok + "Content-Length: 2\r\n\r\nab",
            told: ["response 200", "body ab", "end"], isReusable: true),
        Row(
            testDescription: "chunks (§7.1)",
            text: ok + "Transfer-Encoding: chunked\r\n\r\n2;x\r\nab\r\n0\r\nA: b\r\n\r\n",
            told: ["response 200", "body ab", "end"], isReusable: true),
        Row(
            testDescription: "until the end (§6.3)", text: ok + "\r\nab", closes: true,
            told: ["response 200", "body ab", "end"], isReusable: false),
        Row(
            testDescription: "an empty body until the end", text: ok + "\r\n", closes: true,
            told: ["response 200", "end"], isReusable: false),
        Row(
            testDescription: "HEAD has no body (§6.3)", method: "HEAD", text: ok + "Content-Length: 2\r\n\r\n",
            told: ["response 200", "end"], isReusable: true),
        Row(
            testDescription: "204 has no body", text: "HTTP/1.1 204 N\r\n\r\n", told: ["response 204", "end"],
            isReusable: true),
        Row(
            testDescription: "304 has no body", text: "HTTP/1.1 304 N\r\nContent-Length: 7\r\n\r\n",
            told: ["response 304", "end"], isReusable: true),
        Row(
            testDescription: "interim responses come first (RFC 9110 §15.2)",
            text: "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 E\r\nLink: x\r\n\r\nHTTP/1.1 204 N\r\n\r\n",
            told: ["interim 100", "interim 103", "response 204", "end"], isReusable: true),
        Row(
            testDescription: "too many interim responses",
            text: String(repeating: "HTTP/1.1 100 C\r\n\r\n", count: 5),
            told: Array(repeating: "interim 100", count: 4)
                + ["failed \(HTTPProtocolError.tooManyInterimResponses(limit: 4))"], isReusable: false),
        Row(
            testDescription: "an upgrade that nobody asked for", text: "HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\n",
            told: ["failed \(HTTPProtocolError.unexpectedResponse)"], isReusable: false),
        Row(
            testDescription: "Connection: close (§9.6)", text: ok + "Connection: close\r\nContent-Length: 0\r\n\r\n",
            told: ["response 200", "end"], isReusable: false),
        Row(
            testDescription: "HTTP/1.0 is not kept", text: "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
            told: ["response 200", "body a", "end"], isReusable: false),
        Row(
            testDescription: "a second response (§9.2)", text: ok + "Content-Length: 0\r\n\r\n" + ok,
            told: ["response 200", "end", "failed \(HTTPProtocolError.unexpectedResponse)"], isReusable: false),
        Row(
            testDescription: "a body longer than its length", text: ok + "Content-Length: 1\r\n\r\nab",
            told: ["response 200", "body a", "end", "failed \(HTTPProtocolError.unexpectedResponse)"],
            isReusable: false),
        Row(
            testDescription: "a body cut short", text: ok + "Content-Length: 3\r\n\r\nab", closes: true,
            told: ["response 200", "body ab", "failed \(HTTPProtocolError.endedEarly)"], isReusable: false),
        Row(
            testDescription: "chunks cut short (§8)", text: ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
            closes: true, told: ["response 200", "body ab", "failed \(HTTPProtocolError.endedEarly)"],
            isReusable: false),
        Row(
            testDescription: "no answer at all", text: "", closes: true,
            told: ["failed \(HTTPProtocolError.endedEarly)"], isReusable: false),
        Row(
            testDescription: "two lengths (§6.3)",
            text: ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            told: ["failed \(HTTPProtocolError.ambiguousBodyLength)"], isReusable: false),
        Row(
            testDescription: "a coding that we cannot read (§6.1)",
            text: ok + "Transfer-Encoding: gzip, chunked\r\n\r\n",
            told: ["failed \(HTTPProtocolError.unsupportedTransferCoding)"], isReusable: false),
        Row(
            testDescription: "chunks from HTTP/1.0 (§6.1)",
            text: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            told: ["failed \(HTTPProtocolError.ambiguousBodyLength)"], isReusable: false),
        Row(
            testDescription: "not HTTP", text: "SSH-2.0-x\r\n", told: [], isReusable: false),
        Row(
            testDescription: "not HTTP, and more", text: "SSH-2.0-x\r\n\r\n",
            told: ["failed \(HTTPProtocolError.malformedStartLine)"], isReusable: false),
    ]

    @Test("a response is told, however it is cut", arguments: rows)
    func responses(_ row: Row) {
        struct Outcome: Equatable {
            var told: [String] = []
            var isReusable = false
        }
        let expected = Outcome(told: row.told, isReusable: row.isReusable)
        let found = SplitFeedVerifier.disagreements(Array(row.text.utf8), expected: expected) { pieces in
            var outcome = Outcome()
            guard var (connection, _) = try? Self.asked(row.method) else { return outcome }
            for piece in pieces {
                let events = piece.withUnsafeBytes { connection.bytesReceived($0, now: Self.start) }
                Self.describe(events, into: &outcome.told)
            }
            if row.closes { Self.describe(connection.peerClosed(), into: &outcome.told) }
            outcome.isReusable = connection.isReusable
            return outcome
        }
        #expect(found == [])
    }

    @Test("a response beyond the bound is refused, as soon as it is announced")
    func bounds() throws {
        var limits = HTTPClientLimits()
        limits.maxBodyBytes = 3
        for (text, last) in [
            (Self.ok + "Content-Length: 4\r\n\r\n", HTTPProtocolError.bodyTooLarge(limit: 3)),
            (Self.ok + "Transfer-Encoding: chunked\r\n\r\n4\r\n", .bodyTooLarge(limit: 3)),
            (Self.ok + "\r\nabcd", .bodyTooLarge(limit: 3)),
        ] {
            var (connection, _) = try Self.asked(limits: limits)
            let events = Array(text.utf8).withUnsafeBytes { connection.bytesReceived($0, now: Self.start) }
            #expect(events.last == .failed(last))
        }
    }

    @Test("a request says how long its body is")
    func requests() throws {
        #expect(try Self.asked().sent == "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try Self.asked("POST").sent == "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
        var (connection, sent) = try Self.asked("POST", body: .stream, finish: false)
        #expect(sent == "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        var out = ByteWriter()
        try connection.sendBody(ByteSlice("abc"), into: &out)
        try connection.finishRequest(into: &out)
        let rest = out.take().text
        #expect(rest == "3\r\nabc\r\n0\r\n\r\n")
    }

    @Test("a body that is not what was announced, and a second request at once, are refused")
    func misuse() throws {
        var (connection, _) = try Self.asked("POST", body: .length(2), finish: false)
        var out = ByteWriter()
        #expect(throws: HTTPProtocolError.self) {
            try connection.sendBody(ByteSlice("abc"), into: &out)
        }
        #expect(throws: HTTPProtocolError.self) { try connection.finishRequest(into: &out) }
        #expect(throws: HTTPProtocolError.self) {
            try connection.startRequest(
                HTTPRequestHead(method: "GET", target: "/", headers: HTTPHeaders([("Host", "h")])), body: .none,
                now: Self.start, into: &out)
        }
        for fields in [[("Host", "h"), ("Connection", "x")], [], [("Host", "h"), ("Expect", "100-continue")]] {
            var fresh = HTTPClientConnection()
            #expect(throws: HTTPProtocolError.self) {
                try fresh.startRequest(
                    HTTPRequestHead(
                        method: "GET", target: "/", headers: HTTPHeaders(fields.map { (name: $0.0, value: $0.1) })),
                    body: .none, now: Self.start, into: &out)
            }
        }
        let written = out.count
        #expect(written == 0)
    }

    @Test("an answer before the end of the request's body spends the connection")
    func earlyAnswer() throws {
        var (connection, _) = try Self.asked("POST", body: .length(5), finish: false)
        let events = Array("HTTP/1.1 413 T\r\nContent-Length: 0\r\n\r\n".utf8).withUnsafeBytes {
            connection.bytesReceived($0, now: Self.start)
        }
        #expect(events.count == 2)
        #expect(!connection.isReusable)
    }

    @Test("a server that is silent, before or within its answer, is given up in time")
    func timeouts() throws {
        var (silent, _) = try Self.asked()
        #expect(silent.isUnanswered)
        #expect(silent.timerFired(now: Self.start + .seconds(29)) == [])
        #expect(silent.timerFired(now: Self.start + .seconds(30)) == [.failed(.timedOut(.head))])

        var (slow, _) = try Self.asked()
        let later = Self.start + .seconds(29)
        _ = Array((Self.ok + "Content-Length: 2\r\n\r\na").utf8).withUnsafeBytes { slow.bytesReceived($0, now: later) }
        #expect(!slow.isUnanswered)
        #expect(slow.timerFired(now: later + .seconds(29)) == [])
        #expect(slow.timerFired(now: later + .seconds(30)) == [.failed(.timedOut(.body))])
        #expect(slow.nextDeadline == nil)
    }
}
