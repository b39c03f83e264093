import BridgeTestSupport
import HTTPProtocol
import Testing
import WireBytes

@Suite("Server-sent events")
struct ServerSentEventTests {
    static func read(_ pieces: [[UInt8]], maxEventBytes: Int = 1000) -> [String] {
        var parser = ServerSentEventParser(maxEventBytes: maxEventBytes)
        var told: [String] = []
        for output in pieces.flatMap({ piece in piece.withUnsafeBytes { parser.bytesReceived($0) } }) {
            switch output {
            case .event(let event): told.append("\(event.type)|\(event.data)|\(event.lastID)")
            case .retry(let delay): told.append("retry \(delay)")
            case .failed(let error): told.append("failed \(error)")
            }
        }
        return told
    }

    @Test(
        "a stream is read event by event, however it is cut",
        arguments: [
            ("one line", "data: a\n\n", ["|a|"]), ("CRLF", "data: a\r\nid: 1\r\n\r\n", ["|a|1"]),
            ("CR", "data: a\r\rdata: b\r\r", ["|a|", "|b|"]),
            ("several lines", "data: a\ndata:\ndata:  b\n\n", ["|a\n\n b|"]),
            ("a type for one event only", "event: t\ndata: a\n\ndata: b\n\n", ["t|a|", "|b|"]),
            ("an id that stays", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", ["|a|1", "|b|1", "|c|"]),
            ("an id with NUL", "id: 1\nid: a\u{0}\ndata: b\n\n", ["|b|1"]),
            ("no data, no event", "event: t\n\ndata: a\n\n", ["|a|"]),
            ("a field without a colon", "data\n\n", ["||"]), ("comments", ": x\n:\ndata: a\n\n", ["|a|"]),
            ("unknown fields", "date: x\nData: y\ndata: a\n\n", ["|a|"]),
            ("a BOM", "\u{FEFF}data: a\n\n\u{FEFF}data: b\n\n", ["|a|"]),
            ("a retry", "retry: 1500\n\nretry: 1x\n\nretry: 9999999999\n\n", ["retry \(Duration.milliseconds(1500))"]),
            ("no empty line at the end", "data: a\n", []),
        ] as [(String, String, [String])])
    func streams(name: String, text: String, told: [String]) {
        let found = SplitFeedVerifier.disagreements(Array(text.utf8), expected: told) { Self.read($0) }
        #expect(found == [])
    }

    @Test("an event beyond the bound is refused at its byte")
    func bound() {
        let fits = "data: " + String(repeating: "a", count: 4)
        #expect(Self.read([Array((fits + "\n\n").utf8)], maxEventBytes: 11) == ["|aaaa|"])
        let failed = ["failed eventTooLong(limit: 10)"]
        #expect(Self.read([Array((fits + "a").utf8)], maxEventBytes: 10) == failed)
        #expect(Self.read([Array("data\ndata\ndata".utf8)], maxEventBytes: 10) == failed)
    }

    @Test(
        "what is written reads back",
        arguments: [
            (ServerSentEvent(data: "a"), "data: a\n\n"), (ServerSentEvent(data: ""), "data: \n\n"),
            (
                ServerSentEvent(type: "t", data: "a\n b\n", lastID: "7"),
                "event: t\nid: 7\ndata: a\ndata:  b\ndata: \n\n"
            ),
        ] as [(ServerSentEvent, String)])
    func roundTrip(event: ServerSentEvent, text: String) throws {
        var out = ByteWriter()
        try ServerSentEventWriter.append(event, into: &out)
        let written = out.take()
        #expect(written.text == text)
        #expect(Self.read([Array(text.utf8)]) == ["\(event.type)|\(event.data)|\(event.lastID)"])
    }

    @Test("data with other line ends, comments and retries keep their lines")
    func lines() throws {
        var out = ByteWriter()
        try ServerSentEventWriter.append(ServerSentEvent(data: "a\r\nb\rc\n\nd"), into: &out)
        ServerSentEventWriter.append(comment: "x\r\ndata: evil", into: &out)
        ServerSentEventWriter.append(retry: .seconds(2), into: &out)
        let text = out.take().text
        #expect(text == "data: a\ndata: b\ndata: c\ndata: \ndata: d\n\n: x\n: data: evil\n\nretry: 2000\n\n")
        #expect(Self.read([Array(text.utf8)]) == ["|a\nb\nc\n\nd|", "retry \(Duration.seconds(2))"])
    }

    @Test("a type or an id of several lines is not written", arguments: ["a\nb", "a\rb", "a\u{0}"])
    func injection(_ text: String) {
        var out = ByteWriter()
        for event in [ServerSentEvent(type: text, data: ""), ServerSentEvent(data: "", lastID: text)] {
            #expect(throws: HTTPProtocolError.self) { try ServerSentEventWriter.append(event, into: &out) }
        }
        let written = out.count
        #expect(written == 0)
    }

    @Test(
        "a moment is written as HTTP writes it",
        arguments: [
            (784_111_777_000, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400_000, "Tue, 29 Feb 2000 00:00:00 GMT"), (1_709_251_199_999, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (1_735_689_600_000, "Wed, 01 Jan 2025 00:00:00 GMT"), (Int64.min, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (Int64.max, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] as [(Int64, String)])
    func dates(milliseconds: Int64, text: String) {
        #expect(HTTPDate.text(wallMilliseconds: milliseconds) == text)
    }
}
