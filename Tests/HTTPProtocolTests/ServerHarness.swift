import BridgeTestSupport
import HTTPProtocol
import Testing
import WireBytes

/// Feeds pieces to a server connection that answers each whole request, and writes down what it is told.
///
/// `POST /a` for a head, `body abc` for all content between two other lines, `end` for a request's end,
/// `failed` with the error.
struct ServerHarness {
    var connection: HTTPServerConnection
    var now = MonotonicInstant(nanoseconds: 0)
    var told: [String] = []
    var sent: [UInt8] = []
    /// Content and status with which each request is answered; nil lets them wait.
    var answer: String? = "ok"

    init(limits: HTTPServerLimits = HTTPServerLimits()) {
        connection = HTTPServerConnection(limits: limits, now: now)
    }

    mutating func feed(_ pieces: [[UInt8]]) {
        for piece in pieces {
            let events = piece.withUnsafeBytes { connection.bytesReceived($0, now: now) }
            take(events)
        }
    }

    mutating func feed(_ text: String) { feed([Array(text.utf8)]) }

    mutating func take(_ events: [HTTPServerConnection.Event]) {
        for event in events {
            switch event {
            case .request(let head, let target):
                told.append("\(head.method) \(target.path)\(target.query.map { "?" + $0 } ?? "")")
            case .bodyPart(let slice):
                if let last = told.last, last.hasPrefix("body ") {
                    told[told.count - 1] = last + slice.text
                } else {
                    told.append("body " + slice.text)
                }
            case .requestComplete:
                told.append("end")
                if answer != nil { respond() }
            case .failed(let error): told.append("failed \(error)")
            case .idleTimedOut: told.append("idle")
            }
        }
    }

    /// Answers with ``answer``, and goes on with pipelined bytes.
    mutating func respond(status: Int = 200) {
        let body = ByteSlice(answer ?? "")
        var writer = ByteWriter()
        do throws(HTTPProtocolError) {
            try connection.startResponse(
                HTTPResponseHead(status: status, reason: "", headers: HTTPHeaders()), body: .length(body.count),
                into: &writer)
            try connection.sendBody(body, into: &writer)
            try connection.finishResponse(into: &writer)
        } catch {
            told.append("misuse \(error)")
        }
        keep(writer.take())
        if !connection.mustClose { take(connection.resume(now: now)) }
    }

    /// Runs `body` with the connection and a writer, and records the written bytes.
    mutating func write(_ body: (inout HTTPServerConnection, inout ByteWriter) throws -> Void) rethrows {
        var writer = ByteWriter()
        try body(&connection, &writer)
        keep(writer.take())
    }

    private mutating func keep(_ slice: ByteSlice) { sent += slice.withUnsafeBytes { Array($0) } }

    var sentText: String { String(decoding: sent, as: UTF8.self) }

    mutating func takeSent() -> String {
        defer { sent = [] }
        return sentText
    }

    mutating func pass(_ duration: Duration) {
        now = now + duration
        take(connection.timerFired(now: now))
    }

    /// The events of `text`, however it is cut.
    static func check(
        _ text: String, limits: HTTPServerLimits = HTTPServerLimits(), _ expected: [String],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let found = SplitFeedVerifier.disagreements(Array(text.utf8), expected: expected) { pieces in
            var harness = ServerHarness(limits: limits)
            harness.feed(pieces)
            return harness.told
        }
        #expect(found == [], "\(text.prefix(300).debugDescription)", sourceLocation: sourceLocation)
    }
}
