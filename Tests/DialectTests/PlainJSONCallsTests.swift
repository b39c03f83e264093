import ChatModel
import Dialects
import JSONText
import Testing

@Suite("plainjson calls")
struct PlainJSONCallsTests {
    private let context = DialectContext(selfIDs: [ChatID("me-1")], room: "abc")

    private func calls(
        _ template: String = "/m/{room}?since={since}&limit={limit}", _ more: String = ""
    ) throws -> any DialectCalls {
        let options = try JSONValue(parsing: #"{"history_url":"\#(template)"\#(more)}"#)
        return try #require(try PlainJSONDialect(DialectOptions(options)).calls)
    }

    private func target(_ query: HistoryQuery, _ calls: any DialectCalls) -> String? {
        calls.request(for: .history(query), context: context)?.target
    }

    @Test("the template's placeholders are filled in, percent-encoded")
    func targets() throws {
        let since = ChatTimestamp(milliseconds: 1_763_695_136_250)
        let query = HistoryQuery(room: "a/b c", since: since, limit: 20)
        let encoded = "a%2Fb%20c"
        #expect(try target(query, calls()) == "/m/\(encoded)?since=2025-11-21T03%3A18%3A55Z&limit=20")
        #expect(
            try target(query, calls("https://chat.example/{room}{room}"))
                == "https://chat.example/\(encoded)\(encoded)")
        #expect(
            try target(query, calls("/m?s={since}", #","timestamp":"reference""#)) == "/m?s=785387935.25")
        #expect(
            try target(HistoryQuery(room: "abc"), calls()) == "/m/abc?since=1970-01-01T00%3A00%3A00Z&limit=10000")
        #expect(try target(HistoryQuery(room: "abc", limit: -5), calls("/{limit}")) == "/1")
        let request = try calls("/all").request(for: .history(query), context: context)
        #expect(request == BackendRequest(.get, "/all"))
    }

    @Test("what is older than a message is asked for by its time or its id, where the template says how")
    func older() throws {
        let query = HistoryQuery(
            room: "abc", before: ChatTimestamp(milliseconds: 1_763_695_136_250), beforeID: ChatID("a/7"), limit: 9)
        let calls = try calls("/m?n={limit}&to={?before}&i={?before_id}")
        #expect(calls.takesBefore)
        #expect(target(query, calls) == "/m?n=9&to=2025-11-21T03%3A18%3A57Z&i=a%2F7", "up to the end of its second")
        #expect(target(HistoryQuery(room: "abc", limit: 9), calls) == "/m?n=9")
        #expect(try target(query, self.calls("/m?i={before_id}")) == "/m?i=a%2F7")
        #expect(try !self.calls().takesBefore)
        // Some servers give less than is asked for.
        #expect(try reply("[]", limit: 9, "/m?to={before}") == .messages([], isComplete: true))
        #expect(
            try reply(#"[{"id":"2","text":"b"}]"#, limit: 9, "/m?to={before}")
                == .messages([ChatMessage(id: ChatID("2"), text: "b")], isComplete: false))
    }

    @Test("a room that would lead elsewhere is not asked for", arguments: ["", ".", "..", "a\nb", "\u{7F}"])
    func badRooms(_ room: String) throws {
        #expect(try target(HistoryQuery(room: room), calls()) == nil)
    }

    @Test("there is no other call")
    func otherCalls() throws {
        let file = UploadedFile(name: "a", mime: "b", bytes: [])
        for call: BackendCall in [
            .logIn(user: "a", password: "b"), .refresh(token: "t"), .whoAmI, .rooms, .markRead(room: "abc"),
            .upload(file),
        ] {
            #expect(try calls().request(for: call, context: context) == nil)
            let reply = try calls().reply(
                to: call, answer: BackendAnswer(status: 200, body: Array("[]".utf8)), context: context)
            #expect(reply == .unusable(.unsupported))
        }
    }

    private func reply(_ body: String, limit: Int?, _ template: String = "/{room}?{limit}") throws -> BackendReply {
        try calls(template).reply(
            to: .history(HistoryQuery(room: "abc", limit: limit)),
            answer: BackendAnswer(status: 200, body: Array(body.utf8)), context: context)
    }

    @Test("an array is the history, and complete when shorter than what was asked for")
    func answers() throws {
        let body = #"[{"id":"1","text":"a","senderId":"me-1"},{"type":"ack","messageId":"1"},{"id":"2","text":"b"}]"#
        let messages = [
            ChatMessage(id: ChatID("1"), sender: ChatPerson(id: ChatID("me-1")), text: "a", isSelf: true),
            ChatMessage(id: ChatID("2"), text: "b"),
        ]
        #expect(try reply(body, limit: 3) == .messages(messages, isComplete: false))
        #expect(try reply(body, limit: 4) == .messages(messages, isComplete: true))
        #expect(try reply(body, limit: nil) == .messages(messages, isComplete: true))
        #expect(try reply(body, limit: 3, "/{room}") == .messages(messages, isComplete: true))
        #expect(try reply("[]", limit: 1) == .messages([], isComplete: true))
    }

    @Test(
        "anything else is of no use",
        arguments: [
            ("{}", DropReason.wrongType), ("null", .wrongType), (#""x""#, .wrongType), ("", .malformed),
            ("<html>", .malformed), ("[{}", .malformed), ("[]]", .malformed), (#"[{"id":1}] x"#, .malformed),
        ])
    func unusable(_ body: String, _ reason: DropReason) throws {
        #expect(try reply(body, limit: 5) == .unusable(reason))
    }

    @Test(
        "a complaint is the server's words",
        arguments: [
            (#"{"error":"unauthorized"}"#, "unauthorized" as String?), (#"{"message":"gone"}"#, "gone"),
            (#"{"error":{},"detail":"no"}"#, "no"), (#"{"error":""}"#, nil), ("[]", nil), ("no", nil),
        ])
    func complaints(_ body: String, _ complaint: String?) throws {
        #expect(try calls().complaint(BackendAnswer(status: 401, body: Array(body.utf8))) == complaint)
    }

    @Test("any answer ends in a reply", arguments: 0..<4)
    func noise(_ seed: UInt64) throws {
        let calls = try calls()
        let spoilt = SpoiltFrames(lines: PlainJSONDialectTests.inLines, words: PlainJSONDialectTests.words)
        var unusable = 0
        var usable = 0
        spoilt.forEach(seed: seed) { frame in
            for body in [frame, Array("[".utf8) + frame + Array("]".utf8)] {
                let answer = BackendAnswer(status: 200, body: body)
                _ = calls.complaint(answer)
                let reply = calls.reply(to: .history(HistoryQuery(room: "abc")), answer: answer, context: context)
                if case .unusable = reply { unusable += 1 } else { usable += 1 }
            }
        }
        #expect(unusable > 0 && usable > 0)
    }
}
