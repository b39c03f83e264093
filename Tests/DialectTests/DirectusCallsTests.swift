import ChatModel
import Dialects
import Foundation
import JSONText
import Testing

@Suite("Directus calls")
struct DirectusCallsTests {
    private let context = DialectContext(selfIDs: [ChatID("u-me")], selfNames: ["Bea"], room: "attic")

    private func calls(
        _ options: String = #"{"base":"https://directus.example","filter":{"status":{"_eq":"published"}}}"#
    ) throws -> any DialectCalls {
        try #require(try DirectusDialect(DialectOptions(try JSONValue(parsing: options))).calls)
    }

    // MARK: - Requests

    @Test("logging in and refreshing ask for the tokens in the body")
    func logIn() throws {
        #expect(
            try calls().request(for: .logIn(user: "bea@example.com", password: "p\"w"), context: context)
                == BackendRequest(
                    .post, "/auth/login",
                    body: .json(Array(#"{"email":"bea@example.com","password":"p\"w","mode":"json"}"#.utf8)),
                    isAuthorized: false))
        #expect(
            try calls().request(for: .refresh(token: "R"), context: context)
                == BackendRequest(
                    .post, "/auth/refresh", body: .json(Array(#"{"refresh_token":"R","mode":"json"}"#.utf8)),
                    isAuthorized: false))
    }

    @Test("the other calls go with the token, and rooms and marks have none")
    func others() throws {
        let calls = try calls()
        #expect(
            calls.request(for: .whoAmI, context: context)
                == BackendRequest(.get, "/users/me?fields=id%2Cfirst_name%2Clast_name"))
        let file = UploadedFile(name: "a.png", mime: "image/png", bytes: [1, 2])
        #expect(
            calls.request(for: .upload(file), context: context)
                == BackendRequest(.post, "/files", body: .multipart(fields: [], fileField: "file", file: file)))
        #expect(calls.request(for: .rooms, context: context) == nil)
        #expect(calls.request(for: .markRead(room: "attic"), context: context) == nil)
    }

    @Test("history asks for the rows of the room that pass the filter, newest first")
    func history() throws {
        let query = HistoryQuery(
            room: "a&b=c", after: ChatID("12"), since: ChatTimestamp(milliseconds: 1_763_695_136_123), limit: 20)
        let request = try #require(try calls().request(for: .history(query), context: context))
        #expect(request.method == .get && request.isAuthorized && request.body == .none)
        let url = try #require(URLComponents(string: "https://directus.example" + request.target))
        #expect(url.path == "/items/messages")
        let items = (url.queryItems ?? []).map { "\($0.name)=\($0.value ?? "")" }
        #expect(
            items == [
                "fields=*,user_created.id,user_created.first_name,user_created.last_name,file.*",
                #"filter={"_and":[{"room":{"_eq":"a&b=c"}},{"status":{"_eq":"published"}},"#
                    + #"{"date_created":{"_gte":"2025-11-21T03:18:56.123Z"}}]}"#,
                "sort=-date_created,-id", "limit=20",
            ])
    }

    @Test(
        "history without limits asks for everything",
        arguments: [(nil, "-1"), (0, "1"), (-7, "1"), (500, "500")] as [(Int?, String)])
    func historyLimits(_ limit: Int?, _ written: String) throws {
        let calls = try calls(#"{"collection":"a/b","fields":{"room":"","user":"","file":""}}"#)
        let request = calls.request(for: .history(HistoryQuery(room: "x", limit: limit)), context: context)
        #expect(request?.target == "/items/a%2Fb?fields=%2A&sort=-date_created%2C-id&limit=\(written)")
    }

    // MARK: - Answers

    private func reply(_ call: BackendCall, _ body: String) throws -> BackendReply {
        try calls().reply(to: call, answer: BackendAnswer(status: 200, body: Array(body.utf8)), context: context)
    }

    private static let logIn = BackendCall.logIn(user: "bea@example.com", password: "pw")

    @Test("tokens are read with their lifetime in milliseconds")
    func tokens() throws {
        let body = #"{"data":{"access_token":"A","expires":900000,"refresh_token":"R"}}"#
        let wanted = BackendReply.tokens(BackendTokens(access: "A", refresh: "R", lifetimeMilliseconds: 900_000))
        #expect(try reply(Self.logIn, body) == wanted)
        #expect(try reply(.refresh(token: "x"), body) == wanted)
        #expect(
            try reply(Self.logIn, #"{"data":{"access_token":"A","expires":-1,"refresh_token":null}}"#)
                == .tokens(BackendTokens(access: "A")))
    }

    @Test("an account is known by its id and, where we may see it, its name")
    func whoAmI() throws {
        #expect(
            try reply(.whoAmI, #"{"data":{"id":"u-me","first_name":"Bea","last_name":null}}"#)
                == .person(ChatPerson(id: ChatID("u-me"), name: "Bea")))
        #expect(try reply(.whoAmI, #"{"data":{"id":"u-me"}}"#) == .person(ChatPerson(id: ChatID("u-me"))))
    }

    @Test("history comes oldest first and is whole when there was room for more")
    func messages() throws {
        let body =
            #"{"data":[{"id":13,"text":"b","user_created":"u-me"},{"id":12,"text":"a"},{"id":11,"text":null},5]}"#
        let wanted = [
            ChatMessage(id: ChatID("12"), text: "a"),
            ChatMessage(id: ChatID("13"), sender: ChatPerson(id: ChatID("u-me")), text: "b", isSelf: true),
        ]
        for (limit, since, isComplete) in [
            (nil, nil, true), (5, nil, true), (4, nil, false), (nil, 1, false), (5, 1, false),
        ] as [(Int?, Int64?, Bool)] {
            let query = HistoryQuery(
                room: "attic", since: since.map { ChatTimestamp(milliseconds: $0) }, limit: limit)
            #expect(try reply(.history(query), body) == .messages(wanted, isComplete: isComplete))
        }
        #expect(
            try reply(.history(HistoryQuery(room: "attic", limit: 5)), #"{"data":[]}"#)
                == .messages([], isComplete: true))
    }

    @Test("an uploaded file is known by its id")
    func upload() throws {
        let call = BackendCall.upload(UploadedFile(name: "a.png", mime: "image/png", bytes: []))
        #expect(
            try reply(
                call, #"{"data":{"id":"f-3","filename_download":"a.png","type":"image/png","filesize":"12","width":3}}"#
            )
                == .attachment(
                    ChatAttachment(
                        kind: .image, url: "https://directus.example/assets/f-3", name: "a.png", size: 12,
                        mime: "image/png", width: 3, fileID: "f-3")))
        #expect(try reply(call, #"{"data":{"filename_download":"a.png"}}"#) == .unusable(.missingField))
        #expect(try reply(call, #"{"data":[{"id":"f"}]}"#) == .unusable(.wrongType))
    }

    private static let everyCall: [BackendCall] = [
        logIn, .refresh(token: "x"), .whoAmI, .rooms, .history(HistoryQuery(room: "attic")), .markRead(room: "attic"),
        .upload(UploadedFile(name: "a", mime: "b", bytes: [])),
    ]

    @Test(
        "an answer of another shape is unusable",
        arguments: [
            ("", .malformed), ("x", .malformed), ("[]", .malformed), (#"{"data":{}"#, .malformed),
            ("{}", .missingField),
            (#"{"data":null}"#, .missingField),
        ] as [(String, DropReason)])
    func unusable(_ body: String, _ reason: DropReason) throws {
        for call in Self.everyCall { #expect(try reply(call, body) == .unusable(reason), "\(call)") }
    }

    @Test("data of another kind is unusable")
    func otherData() throws {
        for data in ["5", #""x""#, "true", "[]", "{}", #"{"access_token":5,"id":{}}"#] {
            for call in Self.everyCall {
                if case .history = call, data == "[]" { continue }
                guard case .unusable = try reply(call, #"{"data":\#(data)}"#) else {
                    Issue.record("\(call) took \(data)")
                    continue
                }
            }
        }
    }

    @Test("an answer longer than a frame may be is read as well")
    func longAnswer() throws {
        let text = String(repeating: "x", count: 5_000_000)
        guard
            case .messages(let messages, _) = try reply(
                .history(HistoryQuery(room: "attic")), #"{"data":[{"id":1,"text":"\#(text)"}]}"#)
        else {
            Issue.record("unusable")
            return
        }
        #expect(messages.first?.text.utf8.count == 5_000_000)
    }

    @Test("random and spoilt answers end in a reply", arguments: 0..<4)
    func noise(_ seed: UInt64) throws {
        let bodies = [
            #"{"data":{"access_token":"A","expires":900000,"refresh_token":"R"}}"#,
            #"{"data":[{"id":13,"text":"b","user_created":{"id":"u"}}]}"#, #"{"data":{"id":"u"}}"#,
            #"{"errors":[{"message":"x","extensions":{"code":"FORBIDDEN"}}]}"#,
        ]
        let words = ["data", "id", "access_token", "expires", "text", "errors", "extensions", "code", "FORBIDDEN"]
        var source = NoiseSource(seed: seed, frames: bodies.map { Array($0.utf8) }, words: words.map { "\"\($0)\"" })
        let calls = try calls()
        var unusable = 0
        var usable = 0
        var complaints = 0
        for round in 0..<3000 {
            let answer = BackendAnswer(status: 200, body: source.next())
            let call = Self.everyCall[round % Self.everyCall.count]
            if case .unusable = calls.reply(to: call, answer: answer, context: context) {
                unusable += 1
            } else {
                usable += 1
            }
            if calls.complaint(answer) != nil { complaints += 1 }
        }
        #expect(unusable > usable)
        #expect(usable > 0)
        #expect(complaints > 0)
    }

    // MARK: - Refusals

    @Test(
        "a refusal is told by its code, never in the server's words",
        arguments: [
            (
                #"{"errors":[{"message":"hunter2","extensions":{"code":"INVALID_CREDENTIALS"}}]}"#,
                "the e-mail address, the password or the token is wrong (INVALID_CREDENTIALS)"
            ),
            (
                #"{"errors":[5,{},{"extensions":{"code":"HUNTER2"}},{"extensions":{"code":"FORBIDDEN"}}]}"#,
                "the account may not do this, or it does not exist (FORBIDDEN)"
            ), (#"{"errors":[{"message":"hunter2","extensions":{"code":"HUNTER2"}}]}"#, nil),
            (#"{"errors":"FORBIDDEN"}"#, nil), (#"{"errors":[{"extensions":"FORBIDDEN"}]}"#, nil),
            ("<html>hunter2</html>", nil), ("", nil), ("[]", nil),
        ] as [(String, String?)])
    func complaints(_ body: String, _ words: String?) throws {
        #expect(try calls().complaint(BackendAnswer(status: 403, body: Array(body.utf8))) == words)
    }
}
