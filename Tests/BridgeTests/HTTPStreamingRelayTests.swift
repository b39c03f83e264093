import BridgeTypes
import Dialects
import HTTPProtocol
import Media
import Testing
import Transport
import Upstream
import WireBytes

@testable import BridgeCore
@testable import ChatBridge
@testable import IRCServer
@testable import Media
@testable import Rooms

/// A backend of the test's making, and somebody who opens a link to a file of it.
@Suite("HTTP: files of backends on their way")
struct HTTPStreamingRelayTests {
    struct Case: CustomTestStringConvertible {
        var testDescription: String
        var method = "GET"
        /// Of the request, one a line.
        var asks = ""
        /// Of the backend: its answer's head, one field a line, and its body.
        var head: String
        var body = ""
        /// Of the backend, when it is asked again.
        var then: String?
        /// What has to be in the request to the backend, and what must not.
        var forwards: [String] = []
        var withholds: [String] = []
        var status: Int
        /// What has to be in the answer's head, and what must not.
        var tells: [String] = []
        var hides: [String] = []
        var brings: String?
    }

    private static let cases: [Case] = [
        Case(
            testDescription: "the whole", head: "200 OK\nContent-Length: 5\nETag: \"a\"\nContent-Type: image/png",
            body: "hello", forwards: ["Accept-Encoding: identity"], withholds: ["Range:"], status: 200,
            tells: ["Content-Length: 5", "ETag: \"a\"", "Content-Type: image/png"], brings: "hello"),
        Case(
            testDescription: "a part", asks: "Range: bytes=1-3",
            head: "206 Partial Content\nContent-Length: 3\nContent-Range: bytes 1-3/5", body: "ell",
            forwards: ["Range: bytes=1-3"], status: 206, tells: ["Content-Range: bytes 1-3/5", "Content-Length: 3"],
            brings: "ell"),
        Case(
            testDescription: "the end", asks: "Range: bytes=-2",
            head: "206 Partial Content\nContent-Length: 2\nContent-Range: bytes 3-4/5", body: "lo",
            forwards: ["Range: bytes=-2"], status: 206, tells: ["Content-Range: bytes 3-4/5"], brings: "lo"),
        Case(
            testDescription: "a part of the same file only", asks: "Range: bytes=1-3\nIf-Range: \"a\"",
            head: "200 OK\nContent-Length: 5", body: "HELLO", forwards: ["Range: bytes=1-3", "If-Range: \"a\""],
            status: 200, hides: ["Content-Range"], brings: "HELLO"),
        Case(
            testDescription: "a part of the same file, as its tag says", asks: "Range: bytes=1-3\nIf-Range: \"a\"",
            head: "206 Partial Content\nContent-Length: 3\nContent-Range: bytes 1-3/5\nETag: \"a\"", body: "ell",
            status: 206, tells: ["Content-Range: bytes 1-3/5"], brings: "ell"),
        Case(
            testDescription: "a part of the same file, as its date says",
            asks: "Range: bytes=1-3\nIf-Range: Sun, 22 Nov 2026 12:00:00 GMT",
            head: "206 Partial Content\nContent-Length: 3\nContent-Range: bytes 1-3/5\n"
                + "Last-Modified: Sun, 22 Nov 2026 12:00:00 GMT", body: "ell", status: 206, brings: "ell"),
        Case(
            testDescription: "a part of another file, from a backend that knows no conditions",
            asks: "Range: bytes=1-3\nIf-Range: \"a\"",
            head: "206 Partial Content\nContent-Length: 3\nContent-Range: bytes 1-3/5\nETag: \"b\"", body: "ELL",
            then: HTTPClientTests.ok("HELLO"), status: 200, hides: ["Content-Range"], brings: "HELLO"),
        Case(
            testDescription: "a part of a file that does not say which it is",
            asks: "Range: bytes=1-3\nIf-Range: \"a\"",
            head: "206 Partial Content\nContent-Length: 3\nContent-Range: bytes 1-3/5", body: "ELL",
            then: HTTPClientTests.ok("HELLO"), status: 200, brings: "HELLO"),
        Case(
            testDescription: "a condition without a part", asks: "If-Range: \"a\"", head: "200 OK\nContent-Length: 5",
            body: "hello", withholds: ["If-Range", "Range:"], status: 200, brings: "hello"),
        Case(
            testDescription: "several parts are the whole", asks: "Range: bytes=0-0,4-4",
            head: "200 OK\nContent-Length: 5", body: "hello", withholds: ["Range:"], status: 200, brings: "hello"),
        Case(
            testDescription: "several parts that nobody asked for", asks: "Range: bytes=0-1",
            head: "206 Partial Content\nContent-Length: 5\nContent-Range: bytes 0-4/5\n"
                + "Content-Type: multipart/byteranges; boundary=b", body: "--b--", status: 502),
        Case(
            testDescription: "a part that nobody asked for",
            head: "206 Partial Content\nContent-Length: 2\nContent-Range: bytes 0-1/5",
            body: "he", status: 502),
        Case(
            testDescription: "a part that does not say which", asks: "Range: bytes=0-1",
            head: "206 Partial Content\nContent-Length: 2", body: "he", status: 502),
        Case(
            testDescription: "a part of another length than it says", asks: "Range: bytes=0-1",
            head: "206 Partial Content\nContent-Length: 3\nContent-Range: bytes 0-1/5", body: "hel", status: 502),
        Case(
            testDescription: "a part of no known length has the one that it says", asks: "Range: bytes=0-1",
            head: "206 Partial Content\nTransfer-Encoding: chunked\nContent-Range: bytes 0-1/*",
            body: "2\r\nhe\r\n0\r\n\r\n", status: 206, tells: ["Content-Length: 2", "Content-Range: bytes 0-1/*"],
            brings: "he"),
        Case(
            testDescription: "no such part", asks: "Range: bytes=9-",
            head: "416 Range Not Satisfiable\nContent-Length: 0\nContent-Range: bytes */5", status: 416,
            tells: ["Content-Range: bytes */5"]),
        Case(
            testDescription: "no such part, without a length that can be read", asks: "Range: bytes=9-",
            head: "416 Range Not Satisfiable\nContent-Length: 0\nContent-Range: bytes five", status: 416,
            hides: ["Content-Range"]),
        Case(
            testDescription: "no such part of another file, from a backend that knows no conditions",
            asks: "Range: bytes=9-\nIf-Range: \"a\"",
            head: "416 Range Not Satisfiable\nContent-Length: 0\nContent-Range: bytes */5\nETag: \"b\"",
            then: HTTPClientTests.ok("HELLO"), status: 200, hides: ["Content-Range"], brings: "HELLO"),
        Case(
            testDescription: "no such part of a file that does not say which it is",
            asks: "Range: bytes=9-\nIf-Range: \"a\"",
            head: "416 Range Not Satisfiable\nContent-Length: 0\nContent-Range: bytes */5",
            then: HTTPClientTests.ok("HELLO"), status: 200, brings: "HELLO"),
        Case(
            testDescription: "no such part of the same file", asks: "Range: bytes=9-\nIf-Range: \"a\"",
            head: "416 Range Not Satisfiable\nContent-Length: 0\nContent-Range: bytes */5\nETag: \"a\"",
            status: 416, tells: ["Content-Range: bytes */5"]),
        Case(
            testDescription: "no such part, where none was asked for",
            head: "416 Range Not Satisfiable\nContent-Length: 0", status: 502),
        Case(
            testDescription: "a head has no parts", method: "HEAD", asks: "Range: bytes=1-3",
            head: "200 OK\nContent-Length: 5", body: "hello", withholds: ["Range:"], status: 200,
            tells: ["Content-Length: 5"], brings: ""),
        Case(
            testDescription: "nothing new", asks: "If-None-Match: \"a\"", head: "304 Not Modified\nETag: \"a\"",
            forwards: ["If-None-Match: \"a\""], status: 304, tells: ["ETag: \"a\""], brings: ""),
        Case(
            testDescription: "fields of the backend's own stay behind",
            head: "200 OK\nContent-Length: 5\nSet-Cookie: a=b\nServer: x\nContent-Type: text/html\n"
                + "Content-Disposition: inline; filename=\"x.html\"", body: "hello", status: 200,
            tells: ["Content-Type: application/octet-stream", "attachment; filename=\"cat.png\"", "sandbox"],
            hides: ["Set-Cookie", "Server:", "x.html"], brings: "hello"),
        Case(
            testDescription: "to another server nobody is led",
            head: "302 Found\nLocation: http://127.0.0.2:1/secret\nContent-Length: 0", status: 502,
            hides: ["Location"]),
        Case(testDescription: "an answer that is none", head: "500 Oops\nContent-Length: 4", body: "oops", status: 502),
    ]

    private static func crossing(_ lines: String) -> String {
        lines.split(separator: "\n").map { $0 + "\r\n" }.joined()
    }

    @Test("what is asked for is what comes, or nothing", arguments: cases)
    func crosses(_ row: Case) async throws {
        let stage = try await HTTPStage(routes: {
            [
                HTTPRoute(method: "GET", path: "/relay") { exchange, transport in
                    guard let backends = (transport.delegate as? HTTPTestHouse)?.backends else { return }
                    let file = LinkedFile(room: "lobby", location: .backend("/file"), name: "cat.png")
                    let relay = MediaRelay(exchange, file: file)
                    let order = BackendCallRequest(
                        backend: BackendID(index: 0), request: BackendRequest(.get, "/file"),
                        authorization: UpstreamCredentials(), timeout: .seconds(20), maxAnswerBytes: 1000)
                    relay.begin(order, backends, transport) { [weak relay] transport in
                        if case .refused? = relay?.answer { exchange.respond(502, "refused", transport: transport) }
                    }
                }
            ]
        })
        let script = "HTTP/1.1 " + Self.crossing(row.head) + "\r\n" + row.body
        let port = try await HTTPClientTests.scripted(stage, [(script, false)] + (row.then.map { [($0, false)] } ?? []))
        let base = try HTTPURL(parsing: "http://127.0.0.1:\(port)")
        try await stage.onLoop { [loop = stage.loop] house, _ in
            house.backends = BackendDriver(
                loop: loop, names: ["main"], places: ["main": BackendPlace(base: base)],
                store: TokenStore(stateDirectory: "/nonexistent"),
                secrets: { _ in .failure(UpstreamCredentialsFailure("none")) })
        }
        let answer = await stage.ask(row.method, "/relay", fields: Self.crossing(row.asks))
        let (status, body) = HTTPServerTests.parts(answer)
        let head = answer.firstRange(of: "\r\n\r\n").map { String(answer[..<$0.lowerBound]) } ?? ""
        let asked = try await stage.onLoop { house, _ in house.scriptedReceived }
        #expect(status == String(row.status))
        for text in row.tells { #expect(head.contains(text)) }
        for text in row.hides { #expect(!head.contains(text)) }
        for text in row.forwards { #expect(asked.contains("\r\n" + text + "\r\n")) }
        for text in row.withholds { #expect(!asked.contains(text)) }
        if let brings = row.brings { #expect(body == brings) }
    }
}
