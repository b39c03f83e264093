import ChatModel
import Dialects
import JSONText
import Testing

@Suite("jwt-rooms calls")
struct JWTRoomsCallsTests {
    private let context = DialectContext(selfNames: ["bridge"], room: "Tech Talk", announcedRoom: "3")

    private func calls(_ options: String = #"{"base":"https://chat.example"}"#) throws -> any DialectCalls {
        try #require(try JWTRoomsDialect(DialectOptions(try JSONValue(parsing: options))).calls)
    }

    // MARK: - Requests

    struct RequestRow: Sendable, CustomTestStringConvertible {
        let call: BackendCall
        let request: BackendRequest?
        var testDescription: String { request.map { "\($0.method.rawValue) \($0.target)" } ?? "none" }

        init(_ call: BackendCall, _ request: BackendRequest?) {
            self.call = call
            self.request = request
        }
    }

    private static func json(_ text: String) -> BackendRequest.Body { .json(Array(text.utf8)) }
    private static let file = UploadedFile(name: "a.png", mime: "image/png", bytes: [1, 2, 3])

    @Test(
        "a call becomes the request that the backend knows",
        arguments: [
            RequestRow(
                .logIn(user: "ada", password: "p\"w"),
                BackendRequest(
                    .post, "/api/auth/login", body: json(#"{"username":"ada","password":"p\"w"}"#),
                    isAuthorized: false)),
            RequestRow(
                .refresh(token: "r1"),
                BackendRequest(
                    .post, "/api/auth/refresh", body: json(#"{"refresh_token":"r1"}"#), isAuthorized: false)),
            RequestRow(.whoAmI, BackendRequest(.get, "/api/auth/me")),
            RequestRow(.rooms, BackendRequest(.get, "/api/rooms")),
            RequestRow(.history(HistoryQuery(room: "Tech Talk")), BackendRequest(.get, "/api/messages/3")),
            RequestRow(
                .history(HistoryQuery(room: "Tech Talk", limit: 50)),
                BackendRequest(.get, "/api/messages/3/recent?limit=50")),
            RequestRow(
                .history(HistoryQuery(room: "3", limit: 0)), BackendRequest(.get, "/api/messages/3/recent?limit=1")),
            RequestRow(
                .history(HistoryQuery(room: "a/b?c d%é")), BackendRequest(.get, "/api/messages/a%2Fb%3Fc%20d%25%C3%A9")),
            RequestRow(.history(HistoryQuery(room: "..")), nil),
            RequestRow(.history(HistoryQuery(room: ".")), nil),
            RequestRow(.history(HistoryQuery(room: "")), nil),
            RequestRow(.history(HistoryQuery(room: "a\r\nb")), nil),
            RequestRow(.markRead(room: "a\u{85}b"), nil),
            RequestRow(.markRead(room: "Tech Talk"), BackendRequest(.post, "/api/rooms/3/mark-read")),
            RequestRow(.markRead(room: "9"), BackendRequest(.post, "/api/rooms/9/mark-read")),
            RequestRow(
                .upload(file),
                BackendRequest(
                    .post, "/api/upload-file", body: .multipart(fields: [], fileField: "file", file: file))),
        ])
    func requests(_ row: RequestRow) throws {
        #expect(try calls().request(for: row.call, context: context) == row.request)
    }

    @Test("before the backend announced it, a room goes by the option, else by its own name")
    func unannounced() throws {
        let early = DialectContext(room: "General")
        let call = BackendCall.markRead(room: "General")
        #expect(
            try calls(#"{"room_id":4}"#).request(for: call, context: early)?.target == "/api/rooms/4/mark-read")
        #expect(try calls("{}").request(for: call, context: early)?.target == "/api/rooms/General/mark-read")
    }

    @Test("a file of the largest size is sent, one byte more is not")
    func uploadSize() throws {
        var file = UploadedFile(name: "a", mime: "", bytes: Array(repeating: 0, count: 10 * 1024 * 1024))
        #expect(try calls().request(for: .upload(file), context: context) != nil)
        file.bytes.append(0)
        #expect(try calls().request(for: .upload(file), context: context) == nil)
    }

    // MARK: - Answers

    struct AnswerRow: Sendable, CustomTestStringConvertible {
        let call: BackendCall
        let body: String
        let reply: BackendReply
        var testDescription: String { body.isEmpty ? "empty" : String(body.prefix(60)) }

        init(_ call: BackendCall, _ body: String, _ reply: BackendReply) {
            self.call = call
            self.body = body
            self.reply = reply
        }
    }

    private static let logIn = BackendCall.logIn(user: "a", password: "b")
    private static let all = BackendCall.history(HistoryQuery(room: "3"))
    private static func recent(_ limit: Int) -> BackendCall { .history(HistoryQuery(room: "3", limit: limit)) }
    private static func said(_ id: String, _ text: String) -> ChatMessage {
        ChatMessage(id: ChatID(id), room: "3", sender: ChatPerson(name: "admin"), text: text)
    }

    @Test(
        "an answer says what the backend means",
        arguments: [
            AnswerRow(
                logIn, #"{"access_token":"a.b.c","refresh_token":"r","token_type":"bearer"}"#,
                .tokens(BackendTokens(access: "a.b.c", refresh: "r"))),
            AnswerRow(.refresh(token: "r"), #"{"access_token":"a"}"#, .tokens(BackendTokens(access: "a"))),
            AnswerRow(logIn, #"{"refresh_token":"r"}"#, .unusable(.missingField)),
            AnswerRow(logIn, #"{"access_token":null}"#, .unusable(.missingField)),
            AnswerRow(logIn, #"{"access_token":5}"#, .unusable(.wrongType)),
            AnswerRow(logIn, #"{"access_token":"a\r\nX: y"}"#, .unusable(.wrongType)),
            AnswerRow(logIn, #"{"access_token":""}"#, .unusable(.wrongType)),
            AnswerRow(logIn, "[]", .unusable(.notObject)),
            AnswerRow(logIn, "", .unusable(.malformed)),
            AnswerRow(logIn, "<html>", .unusable(.malformed)),
            AnswerRow(
                .whoAmI, #"{"username":"ada","id":5,"created_at":"x"}"#,
                .person(ChatPerson(id: ChatID("5"), name: "ada"))),
            AnswerRow(.whoAmI, #"{"username":"ada"}"#, .person(ChatPerson(name: "ada"))),
            AnswerRow(.whoAmI, #"{"id":5}"#, .unusable(.missingField)),
            AnswerRow(
                .rooms,
                #"""
                [{"name":"Tech Talk","id":3,"last_message":null,"unread_count":2},{"id":"r-1"},{"name":"no id"},5,
                {"name":"","id":18446744073709551616,"unread_count":-1}]
                """#,
                .rooms([
                    BackendRoom(id: "3", name: "Tech Talk", unread: 2), BackendRoom(id: "r-1", name: "r-1"),
                    BackendRoom(id: "18446744073709551616", name: "18446744073709551616"),
                ])),
            AnswerRow(.rooms, "{}", .unusable(.wrongType)),
            AnswerRow(.markRead(room: "3"), #"{"message":"Marked 2 messages as read","read_count":2}"#, .done),
            AnswerRow(.markRead(room: "3"), "", .done),
            AnswerRow(.markRead(room: "3"), "<html>", .unusable(.malformed)),
            AnswerRow(
                .upload(file),
                #"{"file_url":"/api/files/u.png","filename":"u.png","file_size":3,"mime_type":"image/png"}"#,
                .attachment(
                    ChatAttachment(
                        kind: .image, url: "/api/files/u.png", name: "u.png", size: 3, mime: "image/png"))),
            AnswerRow(.upload(file), #"{"file_url":"/u"}"#, .attachment(ChatAttachment(kind: .file, url: "/u"))),
            AnswerRow(.upload(file), #"{"filename":"u.png"}"#, .unusable(.missingField)),
            AnswerRow(all, "[]", .messages([], isComplete: true)),
            AnswerRow(
                all,
                #"""
                [{"message_id":9,"room_id":3,"sender":"admin","message":"one","reactions":[]},{"message_id":10,"message":null},
                5,{"message_id":8,"room_id":3,"sender":"admin","message":"two"}]
                """#,
                .messages([said("9", "one"), said("8", "two")], isComplete: true)),
            AnswerRow(
                recent(3),
                #"""
                [{"message_id":10,"room_id":3,"sender":"admin","message":"c"},
                {"message_id":9,"room_id":3,"sender":"admin","message":"b"},
                {"message_id":8,"room_id":3,"sender":"admin","message":"a"}]
                """#,
                .messages([said("8", "a"), said("9", "b"), said("10", "c")], isComplete: false)),
            AnswerRow(
                recent(4), #"[{"message_id":8,"room_id":3,"sender":"admin","message":"a"}]"#,
                .messages([said("8", "a")], isComplete: true)),
            AnswerRow(
                recent(9),
                #"""
                [{"message_id":"b","room_id":3,"sender":"admin","message":"b"},
                {"message_id":"a","room_id":3,"sender":"admin","message":"a"}]
                """#,
                .messages([said("b", "b"), said("a", "a")], isComplete: true)),
            AnswerRow(all, #"{"detail":"x"}"#, .unusable(.wrongType)),
            AnswerRow(all, #"[{"message":"x"}"#, .unusable(.malformed)),
            AnswerRow(all, "", .unusable(.malformed)),
        ])
    func answers(_ row: AnswerRow) throws {
        let reply = try calls().reply(
            to: row.call, answer: BackendAnswer(status: 200, body: Array(row.body.utf8)), context: context)
        // Tokens print as stars, so a failure would not show them.
        #expect(reply == row.reply)
    }

    @Test("messages of the history are read like live ones, addresses and all")
    func historyAttachment() throws {
        let body = #"""
            [{"message_id":9,"sender":"bridge","message":null,"message_type":"image","file_url":"/api/files/a.png",
            "file_name":"a.png","mime_type":"image/png","timestamp":"2025-11-21T03:18:56"}]
            """#
        let wanted = ChatMessage(
            id: ChatID("9"), sender: ChatPerson(name: "bridge"), text: "",
            at: ChatTimestamp(milliseconds: 1_763_695_136_000),
            attachments: [
                ChatAttachment(
                    kind: .image, url: "https://chat.example/api/files/a.png", name: "a.png", mime: "image/png")
            ], isSelf: true)
        let reply = try calls().reply(
            to: Self.all, answer: BackendAnswer(status: 200, body: Array(body.utf8)), context: context)
        #expect(reply == .messages([wanted], isComplete: true))
    }

    @Test(
        "a complaint is the backend's words, without what was sent",
        arguments: [
            (#"{"detail":"Incorrect username or password"}"#, "Incorrect username or password" as String?),
            (
                #"{"detail":[{"type":"missing","loc":["body","password"],"msg":"Field required","input":"secret"}]}"#,
                "Field required"
            ),
            (#"{"detail":[{"msg":"a"},5,{"msg":"b"},{"msg":"c"}]}"#, "a; b"),
            (#"{"detail":[]}"#, nil), (#"{"detail":5}"#, nil), (#"{"detail":""}"#, nil), ("[]", nil), ("<html>", nil),
            ("", nil),
        ])
    func complaints(_ body: String, _ complaint: String?) throws {
        #expect(try calls().complaint(BackendAnswer(status: 422, body: Array(body.utf8))) == complaint)
    }

    @Test("a long complaint is cut")
    func longComplaint() throws {
        let body = #"{"detail":"\#(String(repeating: "é", count: 5000))"}"#
        let complaint = try calls().complaint(BackendAnswer(status: 400, body: Array(body.utf8)))
        #expect(complaint?.unicodeScalars.count == 300)
    }

    @Test("any answer to any call ends in a reply", arguments: 0..<4)
    func noise(_ seed: UInt64) throws {
        let calls = try calls()
        let spoilt = SpoiltFrames(
            lines: JWTRoomsDialectTests.inLines,
            words: [
                "access_token", "refresh_token", "username", "id", "name", "unread_count", "file_url", "file_size",
                "mime_type", "message", "message_id", "detail", "msg",
            ])
        let all: [BackendCall] = [
            Self.logIn, .refresh(token: "r"), .whoAmI, .rooms, Self.all, Self.recent(5), .markRead(room: "3"),
            .upload(Self.file),
        ]
        var unusable = 0
        var usable = 0
        spoilt.forEach(seed: seed, count: 1000) { frame in
            for body in [frame, Array("[".utf8) + frame + Array("]".utf8)] {
                let answer = BackendAnswer(status: 200, body: body)
                _ = calls.complaint(answer)
                for call in all {
                    if case .unusable = calls.reply(to: call, answer: answer, context: context) {
                        unusable += 1
                    } else {
                        usable += 1
                    }
                }
            }
        }
        #expect(unusable > usable && usable > 0)
    }
}
