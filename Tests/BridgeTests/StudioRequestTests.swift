import BridgeTestSupport
import ChatModel
import JSONText
import Testing
import WireBytes

@testable import Studio

/// The studio over HTTP: its page, and the calls of `jwt-rooms`.
@Suite struct StudioRequestTests {
    private static let settings = StudioSettings(
        rooms: [
            StudioRoomSettings(name: "lobby", topic: "hello", channel: "#lobby"), StudioRoomSettings(name: "Kitchen"),
        ], relay: "ws://127.0.0.1:7777/")

    /// A studio with one client after the other, each with one request.
    private final class Desk {
        let stage = StudioStage(StudioRequestTests.settings)
        private var next: UInt64 = 100

        struct Answer {
            var status: Int
            var head: String
            var body: String
            var json: JSONValue { (try? JSONValue(parsing: body)) ?? .null }
        }

        func ask(
            _ method: String, _ target: String, token: String? = nil, headers: [String] = [], body: String = ""
        ) -> Answer {
            next += 1
            stage.connect(next)
            var lines = ["\(method) \(target) HTTP/1.1", "Host: 127.0.0.1:8080"] + headers
            if let token { lines.append("Authorization: Bearer \(token)") }
            if !body.isEmpty { lines.append("Content-Length: \(body.utf8.count)") }
            stage.feed(next, lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
            let text = stage.answer(of: next)
            #expect(stage.closed.contains(next))
            guard let blank = text.firstRange(of: "\r\n\r\n") else { return Answer(status: 0, head: text, body: "") }
            return Answer(
                status: Int(text.dropFirst(9).prefix(3)) ?? 0, head: String(text[..<blank.lowerBound]),
                body: String(text[blank.upperBound...]))
        }

        func logIn(_ name: String) -> String {
            ask("POST", "/api/auth/login", body: #"{"username":"\#(name)","password":"x"}"#)
                .json["access_token"]?.string ?? ""
        }
    }

    // MARK: - The page

    @Test("a browser gets the page, with a policy that lets it reach the studio and the relay alone")
    func servesThePage() {
        let answer = Desk().ask("GET", "/", headers: ["Accept: text/html,*/*"])
        #expect(answer.status == 200)
        #expect(answer.body.hasPrefix("<!doctype html>"))
        #expect(answer.head.contains("connect-src 'self' ws://127.0.0.1:8080 ws://127.0.0.1:7777/;"))
        #expect(answer.head.contains("default-src 'none'"))
        #expect(!answer.head.contains("unsafe"))
        #expect(!answer.head.contains("sha256-none"))
    }

    @Test("the page makes no markup of text, and asks no other server for anything")
    func pageIsPlain() {
        let page = Desk().ask("GET", "/", headers: ["Accept: text/html"]).body
        for word in [
            "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "style=\"",
            "onclick=\"", "javascript:", "@import", "url(", "src=\"", "://fonts", "cdn",
        ] {
            #expect(!page.contains(word), "\(word)")
        }
    }

    @Test("the page is told the rooms and the relay")
    func tellsTheSetup() {
        let answer = Desk().ask("GET", "/studio.json")
        #expect(answer.json["rooms"]?.array?.first?["name"] == .string("lobby"))
        #expect(answer.json["rooms"]?.array?.first?["channel"] == .string("#lobby"))
        #expect(answer.json["irc"] == .string("ws://127.0.0.1:7777/"))
    }

    struct GateRow: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var host: String
        var origin: String?
        var status: Int
    }

    @Test(
        "pages of other sites, and foreign names of this machine, are refused",
        arguments: [
            GateRow(testDescription: "an address", host: "127.0.0.1:8080", status: 200),
            GateRow(testDescription: "IPv6", host: "[::1]:8080", status: 200),
            GateRow(testDescription: "localhost", host: "localhost:8080", status: 200),
            GateRow(testDescription: "a name that was made to resolve here", host: "evil.example:8080", status: 421),
            GateRow(
                testDescription: "own origin", host: "127.0.0.1:8080", origin: "http://127.0.0.1:8080", status: 200),
            GateRow(testDescription: "another port", host: "127.0.0.1:8080", origin: "http://127.0.0.1:9", status: 403),
            GateRow(
                testDescription: "another site", host: "127.0.0.1:8080", origin: "https://evil.example", status: 403),
            GateRow(testDescription: "a file", host: "127.0.0.1:8080", origin: "null", status: 403),
        ])
    func gate(row: GateRow) {
        for extra in [
            "",
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        ] {
            let stage = StudioStage(Self.settings)
            stage.connect(1)
            let origin = row.origin.map { "Origin: \($0)\r\n" } ?? ""
            stage.feed(1, "GET /typed/lobby HTTP/1.1\r\nHost: \(row.host)\r\n\(origin)\(extra)\r\n")
            let expected = row.status == 200 && !extra.isEmpty ? 101 : row.status
            #expect(stage.answer(of: 1).hasPrefix("HTTP/1.1 \(expected) "))
        }
    }

    // MARK: - Accounts

    @Test("every name can log in; its token says who it is, and its refresh token works once")
    func logsIn() {
        let desk = Desk()
        let pair = desk.ask("POST", "/api/auth/login", body: #"{"username":"ada","password":"x"}"#).json
        #expect(pair["token_type"] == .string("bearer"))
        let token = pair["access_token"]?.string ?? ""
        #expect(desk.ask("GET", "/api/auth/me", token: token).json["username"] == .string("ada"))
        let refresh = #"{"refresh_token":"\#(pair["refresh_token"]?.string ?? "")"}"#
        #expect(desk.ask("POST", "/api/auth/refresh", body: refresh).status == 200)
        #expect(desk.ask("POST", "/api/auth/refresh", body: refresh).status == 401)
    }

    @Test("who logs out cannot renew their token")
    func logsOut() {
        let desk = Desk()
        let pair = desk.ask("POST", "/api/auth/login", body: #"{"username":"ada","password":"x"}"#).json
        #expect(desk.ask("POST", "/api/auth/logout", token: pair["access_token"]?.string).status == 200)
        let refresh = #"{"refresh_token":"\#(pair["refresh_token"]?.string ?? "")"}"#
        #expect(desk.ask("POST", "/api/auth/refresh", body: refresh).status == 401)
    }

    @Test("a thousand rooms are kept, and not one more")
    func boundsRooms() {
        let desk = Desk()
        let token = desk.logIn("ada")
        func make(_ number: Int) -> Int {
            desk.ask("POST", "/api/rooms", token: token, body: #"{"name":"room \#(number)"}"#).status
        }
        // Two are there from the start.
        #expect((3...1000).allSatisfy { make($0) == 200 })
        #expect(make(1001) == 400)
    }

    @Test("a token ends after 30 minutes", arguments: [(29 * 60, 200), (30 * 60, 401)] as [(Int64, Int)])
    func tokensEnd(_ age: Int64, _ status: Int) {
        let desk = Desk()
        let token = desk.logIn("ada")
        desk.stage.wall = ChatTimestamp(milliseconds: StudioStage.wall.milliseconds + age * 1000)
        #expect(desk.ask("GET", "/api/auth/me", token: token).status == status)
    }

    struct RefusalRow: CustomTestStringConvertible, Sendable {
        var testDescription: String { "\(method) \(target)" }
        var method: String
        var target: String
        var token: String?
        var body = ""
        var status: Int
    }

    @Test(
        "calls are refused as the published backend refuses them",
        arguments: [
            RefusalRow(
                method: "POST", target: "/api/auth/login", body: #"{"username":"ada","password":"wrong"}"#, status: 401),
            RefusalRow(method: "POST", target: "/api/auth/login", body: "{}", status: 422),
            RefusalRow(method: "POST", target: "/api/auth/login", body: "no JSON", status: 422),
            RefusalRow(method: "POST", target: "/api/auth/refresh", body: #"{"refresh_token":"x"}"#, status: 401),
            RefusalRow(method: "GET", target: "/api/rooms", status: 403),
            RefusalRow(method: "GET", target: "/api/rooms", token: "a.b.c", status: 401),
            RefusalRow(method: "GET", target: "/api/rooms", token: "", status: 403),
            RefusalRow(method: "GET", target: "/api/files/none.png", status: 404),
        ])
    func refusesCalls(row: RefusalRow) {
        #expect(Desk().ask(row.method, row.target, token: row.token, body: row.body).status == row.status)
    }

    @Test("a name can be signed up once")
    func signsUp() {
        let desk = Desk()
        let body = #"{"username":"ada","password":"x"}"#
        #expect(desk.ask("POST", "/api/auth/signup", body: body).status == 200)
        #expect(desk.ask("POST", "/api/auth/signup", body: body).status == 400)
    }

    // MARK: - Rooms

    @Test("rooms are listed, newest first, and made")
    func listsRooms() {
        let desk = Desk()
        let token = desk.logIn("ada")
        let made = desk.ask("POST", "/api/rooms", token: token, body: #"{"name":"attic"}"#)
        #expect(made.json["id"] == .integer(3))
        let list = desk.ask("GET", "/api/rooms", token: token).json
        #expect(list.array?.map { $0["name"]?.string } == ["attic", "Kitchen", "lobby"])
        #expect(list.array?.last?["last_message"] == .null)
        #expect(desk.ask("GET", "/api/rooms/2", token: token).json["name"] == .string("Kitchen"))
        #expect(desk.ask("GET", "/api/rooms/9", token: token).status == 404)
        #expect(desk.ask("GET", "/api/rooms/x", token: token).status == 422)
        #expect(desk.ask("POST", "/api/rooms", token: token, body: #"{"name":"\u0000"}"#).status == 422)
    }

    @Test("history is complete, in order and with the newest; reading it takes the count of unread ones down")
    func hasHistory() throws {
        let desk = Desk()
        let (ada, ben) = (desk.logIn("ada"), desk.logIn("ben"))
        let socket = try desk.stage.join(1, "/ws/chat/lobby?token=\(ada)")
        for number in 1...3 {
            desk.stage.feed(1, socket.text(#"{"type":"message","content":"\#(number)","message_type":"text"}"#))
        }
        let all = desk.ask("GET", "/api/messages/1", token: ben).json
        #expect(all.array?.map { $0["message"]?.string } == ["1", "2", "3"])
        #expect(all.array?.map { $0["message_id"]?.integer } == [1, 2, 3])
        #expect(all.array?.first?["timestamp"] == .string("2025-11-21T03:18:56"))
        let recent = desk.ask("GET", "/api/messages/1/recent?limit=2", token: ben).json
        #expect(recent.array?.map { $0["message"]?.string } == ["2", "3"])
        let unread = { desk.ask("GET", "/api/rooms", token: ben).json.array?.last?["unread_count"] }
        #expect(unread() == .integer(3))
        #expect(desk.ask("POST", "/api/rooms/1/mark-read", token: ben).json["read_count"] == .integer(3))
        #expect(unread() == .integer(0))
    }

    @Test("a room has 20,000 messages at most, then its oldest go")
    func dropsOldMessages() {
        var room = StudioRoom(number: 1, name: "lobby", createdAt: StudioStage.wall)
        func append(_ numbers: ClosedRange<Int64>) {
            for number in numbers {
                room.append(
                    StudioMessage(
                        number: number, id: ChatID("m\(number)"), sender: ChatPerson(name: "Ada"),
                        at: StudioStage.wall, text: ""))
            }
        }
        append(1...20_000)
        #expect(room.messages.count == 20_000 && room.message(ChatID("m1")) != nil)
        append(20_001...20_001)
        #expect(room.messages.count <= 20_000 && room.message(ChatID("m1")) == nil)
        #expect(room.messages.last?.number == 20_001 && room.message(ChatID("m20000")) != nil)
    }

    @Test("reactions over HTTP change the message; one of each person")
    func reacts() throws {
        let desk = Desk()
        let token = desk.logIn("ada")
        let socket = try desk.stage.join(1, "/ws/chat/1?token=\(token)")
        desk.stage.feed(1, socket.text(#"{"type":"message","content":"x"}"#))
        for emoji in ["👍", "😂"] {
            let body = #"{"message_id":1,"reaction_type":"\#(emoji)"}"#
            #expect(desk.ask("POST", "/api/reactions/add", token: token, body: body).status == 200)
        }
        let message = desk.ask("GET", "/api/messages/1", token: token).json.array?.first
        #expect(message?["user_reaction"] == .string("😂"))
        #expect(message?["reactions"]?.array?.count == 1)
        #expect(desk.ask("DELETE", "/api/reactions/remove/1", token: token).status == 200)
        #expect(desk.ask("DELETE", "/api/reactions/remove/1", token: token).status == 404)
        #expect(desk.ask("POST", "/api/reactions/add", token: token, body: "{}").status == 422)
    }

    // MARK: - Files

    private static func form(_ type: String, name: String, content: String) -> (header: String, body: String) {
        (
            "Content-Type: multipart/form-data; boundary=XX",
            "--XX\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n"
                + "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"\(name)\"\r\n"
                + "Content-Type: \(type)\r\n\r\n\(content)\r\n--XX--\r\n"
        )
    }

    @Test("a file is stored under a name of ours and served as what it is")
    func storesFiles() {
        let desk = Desk()
        let form = Self.form("image/png", name: "cat.PNG", content: "not\r\n--really")
        let answer = desk.ask(
            "POST", "/api/upload-file", token: desk.logIn("ada"), headers: [form.header], body: form.body)
        #expect(answer.status == 200)
        #expect(answer.json["file_size"] == .integer(13))
        let url = answer.json["file_url"]?.string ?? ""
        #expect(url.hasPrefix("/api/files/") && url.hasSuffix(".png") && !url.contains("cat"))
        let file = desk.ask("GET", url)
        #expect(file.body == "not\r\n--really")
        #expect(file.head.contains("Content-Type: image/png") && file.head.contains("Content-Disposition: inline"))
        #expect(file.head.contains("nosniff"))
    }

    @Test("files are 256 MiB in memory at most, then the oldest go")
    func dropsOldFiles() {
        var files = StudioFiles()
        // One memory for all of them.
        let bytes = [UInt8](repeating: 0, count: 16 << 20)
        for number in 1...16 { files.add(StudioFile(name: "\(number)", mime: "text/plain", bytes: bytes)) }
        #expect(files["1"] != nil)
        files.add(StudioFile(name: "17", mime: "text/plain", bytes: [0]))
        #expect(["1", "2", "16", "17"].map { files[$0] != nil } == [false, true, true, true])
    }

    @Test(
        "what a browser could run is a download",
        arguments: ["text/html", "image/svg+xml", "application/xhtml+xml", ""])
    func downloadsPages(type: String) {
        let desk = Desk()
        let form = Self.form(type, name: "x.html", content: "<script>alert(1)</script>")
        let answer = desk.ask(
            "POST", "/api/upload-file", token: desk.logIn("ada"), headers: [form.header], body: form.body)
        let head = desk.ask("GET", answer.json["file_url"]?.string ?? "").head
        #expect(head.contains("Content-Disposition: attachment"))
        #expect(head.contains("Content-Security-Policy: sandbox"))
    }

    @Test(
        "a body that is no form, or without the file, is refused",
        arguments: [
            "", "--XX--", "--XX\r\n", "--XX\r\n\r\n--XX--", "--XX\r\nContent-Disposition: form-data\r\n\r\nx\r\n--XX--",
            "--XX\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nx\r\n--XX--",
        ])
    func refusesForms(body: String) {
        let desk = Desk()
        let answer = desk.ask(
            "POST", "/api/upload-file", token: desk.logIn("ada"),
            headers: ["Content-Type: multipart/form-data; boundary=XX"], body: body)
        #expect(answer.status == 422)
    }

    @Test("a file beyond the limit is refused as soon as its length is known")
    func refusesLargeFiles() {
        let desk = Desk()
        desk.stage.connect(1)
        desk.stage.feed(
            1, "POST /api/upload-file HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999\r\n\r\n")
        #expect(desk.stage.answer(of: 1).hasPrefix("HTTP/1.1 400 "))
        #expect(desk.stage.answer(of: 1).contains("10MB"))
    }

    @Test("an upload gives the same answer however its bytes are cut")
    func splitFeed() {
        let form = Self.form("text/plain", name: "a.txt", content: "hello")
        let token = Desk().logIn("ada")
        let request =
            "POST /api/upload-file HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer \(token)\r\n\(form.header)\r\n"
            + "Content-Length: \(form.body.utf8.count)\r\n\r\n\(form.body)"
        let disagreements = SplitFeedVerifier.disagreements(Array(request.utf8)) { pieces in
            let desk = Desk()
            _ = desk.logIn("ada")
            desk.stage.connect(1)
            for piece in pieces { desk.stage.feed(1, piece) }
            return [desk.stage.bytes(of: 1)]
        }
        #expect(disagreements == [])
    }

    @Test("a body that does not come is given up")
    func endsSlowBodies() {
        let desk = Desk()
        desk.stage.connect(1)
        desk.stage.feed(1, "POST /api/auth/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{")
        desk.stage.advance(by: StudioLimits.bodyTimeout)
        #expect(desk.stage.answer(of: 1).hasPrefix("HTTP/1.1 408 "))
        #expect(desk.stage.peerCount == 0)
    }
}
