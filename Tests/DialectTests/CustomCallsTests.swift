import ChatModel
import DescribedDialects
import Dialects
import JSONText
import Testing

@Suite("Custom dialect's calls")
struct CustomCallsTests {
    private static let definition = #"""
        {"decode":[{"when":{"/op":"msg"},"event":"message","fields":{"id":"/id","text":"/t"}}],
         "login":{"post":"https://chat.example/login","body":{"u":"{{account.name}}","p":"{{account.password}}"},
                  "token":"/jwt","refresh":"/refresh","expires":"/in"},
         "refresh":{"post":"/refresh","body":{"r":"{{account.refresh}}"},"token":"/jwt"},
         "history":{"get":"/rooms/{room}/log?limit={limit}&since={since}","items":"/items","order":"newest-first"}}
        """#

    private let context = DialectContext(selfIDs: [ChatID("us")], room: "ops")

    private func calls(_ definition: String = definition) throws -> any DialectCalls {
        try #require(CustomDialectTests.dialect(definition).calls)
    }

    @Test("calls become requests")
    func requests() throws {
        let calls = try calls()
        #expect(
            calls.request(for: .logIn(user: "a\"b", password: "{{account.name}}"), context: context)
                == BackendRequest(
                    .post, "https://chat.example/login",
                    body: .json(Array(#"{"u":"a\"b","p":"{{account.name}}"}"#.utf8)), isAuthorized: false))
        #expect(
            calls.request(for: .refresh(token: "r"), context: context)
                == BackendRequest(.post, "/refresh", body: .json(Array(#"{"r":"r"}"#.utf8)), isAuthorized: false))
        #expect(
            calls.request(
                for: .history(
                    HistoryQuery(room: "a/b c", since: ChatTimestamp(milliseconds: 1_763_695_136_007), limit: 50)),
                context: context)
                == BackendRequest(.get, "/rooms/a%2Fb%20c/log?limit=50&since=2025-11-21T03%3A18%3A56.007Z"))
        #expect(
            calls.request(for: .history(HistoryQuery(room: "ops")), context: context)
                == BackendRequest(.get, "/rooms/ops/log?limit=1000&since="))
        #expect(!calls.takesBefore && calls.takesAfter)
        for (place, value) in [
            ("before", "2025-11-21T03%3A18%3A56.007Z"), ("before_ms", "1763695136007"), ("before_id", "m%2F7"),
        ] {
            let older = try self.calls(#"{"decode":[],"history":{"get":"/log?to={\#(place)}&n={limit}"}}"#)
            let query = HistoryQuery(
                room: "ops", before: ChatTimestamp(milliseconds: 1_763_695_136_007), beforeID: ChatID("m/7"), limit: 9)
            #expect(older.takesBefore && !older.takesAfter)
            #expect(
                older.request(for: .history(query), context: context)
                    == BackendRequest(.get, "/log?to=\(value)&n=9"))
            #expect(
                older.request(for: .history(HistoryQuery(room: "ops", limit: 9)), context: context)
                    == BackendRequest(.get, "/log?to=&n=9"))
        }
        for room in ["..", ".", "a\nb", "\u{7F}"] {
            #expect(calls.request(for: .history(HistoryQuery(room: room)), context: context) == nil)
        }
        for call in [BackendCall.whoAmI, .rooms, .markRead(room: "ops")] {
            #expect(calls.request(for: call, context: context) == nil)
            #expect(calls.reply(to: call, answer: answer("{}"), context: context) == .unusable(.unsupported))
        }
    }

    @Test("an answer begins behind the known message where the description says so of a call that names it")
    func exclusive() throws {
        let calls = try calls(#"{"decode":[],"history":{"get":"/log{?after}","exclusive":true}}"#)
        #expect(calls.takesAfter && calls.beginsBehind)
        #expect(try !self.calls(#"{"decode":[],"history":{"get":"/log{?after}"}}"#).beginsBehind)
    }

    static let optionalRows: [(get: String, unknown: String, known: String)] = [
        ("/log?n={limit}&to={?before_id}", "/log?n=9", "/log?n=9&to=m%2F7"),
        ("/log?to={?before_id}&n={limit}", "/log?n=9", "/log?to=m%2F7&n=9"),
        ("/log?to={?before_id}", "/log", "/log?to=m%2F7"),
        ("/log{?before_id}", "/log", "/log?before_id=m%2F7"),
        ("/log?n={limit}{?before_id}", "/log?n=9", "/log?n=9&before_id=m%2F7"),
        ("/log{?before_id}&n={limit}", "/log?n=9", "/log?before_id=m%2F7&n=9"),
        ("/log?to={?before_id}&at={?before_ms}&n={limit}", "/log?n=9", "/log?to=m%2F7&at=1763695136007&n=9"),
        ("/log?a=b&to={?before_id}&from={since}", "/log?a=b&from=", "/log?a=b&to=m%2F7&from="),
        (
            "https://chat.example/log?n={limit}&to={?before_id}", "https://chat.example/log?n=9",
            "https://chat.example/log?n=9&to=m%2F7"
        ),
    ]

    @Test("a parameter is left out where its value is not known", arguments: optionalRows)
    func optionalParameter(_ row: (get: String, unknown: String, known: String)) throws {
        let calls = try self.calls(#"{"decode":[],"history":{"get":"\#(row.get)"}}"#)
        let known = HistoryQuery(
            room: "ops", before: ChatTimestamp(milliseconds: 1_763_695_136_007), beforeID: ChatID("m/7"), limit: 9)
        #expect(calls.takesBefore)
        #expect(
            calls.request(for: .history(HistoryQuery(room: "ops", limit: 9)), context: context)?.target == row.unknown)
        #expect(calls.request(for: .history(known), context: context)?.target == row.known)
    }

    @Test("no more is asked for than the server gives, and a page that is not full is the last")
    func pageSize() throws {
        let calls = try self.calls(
            #"{"decode":[],"history":{"get":"/h?n={limit}&b={?before_id}","page":2,"fields":{"id":"/i","text":"/x"}}}"#)
        let query = HistoryQuery(room: "ops", limit: 200)
        #expect(calls.request(for: .history(query), context: context)?.target == "/h?n=2")
        for (body, isComplete) in [(#"[{"i":1,"x":"a"},{"i":2,"x":"b"}]"#, false), (#"[{"i":1,"x":"a"}]"#, true)] {
            guard
                case .messages(_, let complete) = calls.reply(
                    to: .history(query), answer: answer(body), context: context)
            else {
                Issue.record("no messages")
                continue
            }
            #expect(complete == isComplete)
        }
        // Where the size of a page is not known, only an empty one is the last.
        let unknown = try self.calls(
            #"{"decode":[],"history":{"get":"/h?b={before_id}","fields":{"id":"/i","text":"/x"}}}"#)
        for (body, isComplete) in [(#"[{"i":1,"x":"a"}]"#, false), ("[]", true)] {
            guard
                case .messages(_, let complete) = unknown.reply(
                    to: .history(query), answer: answer(body), context: context)
            else {
                Issue.record("no messages")
                continue
            }
            #expect(complete == isComplete)
        }
    }

    @Test("a definition without calls has none")
    func none() throws {
        #expect(try CustomDialectTests.dialect(#"{"decode":[]}"#).calls == nil)
    }

    private func answer(_ body: String, status: Int = 200) -> BackendAnswer {
        BackendAnswer(status: status, body: Array(body.utf8))
    }

    static let tokens: [(body: String, reply: BackendReply)] = [
        (
            #"{"jwt":"a","refresh":"r","in":900}"#,
            .tokens(BackendTokens(access: "a", refresh: "r", lifetimeMilliseconds: 900_000))
        ),
        (#"{"jwt":"a","refresh":"","in":"x"}"#, .tokens(BackendTokens(access: "a"))),
        (#"{"jwt":"a","in":1e300}"#, .tokens(BackendTokens(access: "a"))),
        (#"{"jwt":""}"#, .unusable(.wrongType)), (#"{"jwt":5}"#, .unusable(.wrongType)),
        ("{}", .unusable(.missingField)), ("[]", .unusable(.missingField)), ("<html>", .unusable(.malformed)),
        ("", .unusable(.malformed)),
    ]

    @Test("an answer to a login is read", arguments: tokens)
    func logins(_ row: (body: String, reply: BackendReply)) throws {
        let reply = try calls().reply(
            to: .logIn(user: "a", password: "b"), answer: answer(row.body), context: context)
        #expect(reply == row.reply)
    }

    static let history: [(body: String, reply: BackendReply)] = [
        (
            #"{"items":[{"op":"msg","id":2,"t":"b"},{"op":"other"},{"op":"msg","id":1,"t":"a"}]}"#,
            .messages(
                [ChatMessage(id: ChatID("1"), text: "a"), ChatMessage(id: ChatID("2"), text: "b")], isComplete: false)
        ),
        (#"{"items":[]}"#, .messages([], isComplete: true)),
        (#"{"items":[{"op":"other"},{"op":"other"},{"op":"other"}]}"#, .messages([], isComplete: false)),
        (#"{"items":[1,null,"x",[]]}"#, .messages([], isComplete: false)),
        (#"{"items":[{"op":"msg"},{"op":"msg"}]}"#, .messages([], isComplete: true)),
        (#"{"items":[{"op":"msg"},{"op":"msg"},{"op":"msg"}]}"#, .unusable(.missingField)),
        (#"{"items":null}"#, .unusable(.missingField)), (#"{"items":{}}"#, .unusable(.wrongType)),
        ("7", .unusable(.missingField)), (#"{"items":[}"#, .unusable(.malformed)),
    ]

    @Test("an answer with history is read, oldest first", arguments: history)
    func histories(_ row: (body: String, reply: BackendReply)) throws {
        let reply = try calls().reply(
            to: .history(HistoryQuery(room: "ops", limit: 3)), answer: answer(row.body), context: context)
        #expect(reply == row.reply)
    }

    @Test("items can have fields of their own, and the answer can be the array itself")
    func fields() throws {
        let calls = try calls(
            #"{"decode":[],"history":{"get":"/h","fields":{"id":"/i","text":"/x","sender.id":"/u"}}}"#)
        let reply = calls.reply(
            to: .history(HistoryQuery(room: "ops")), answer: answer(#"[{"i":1,"x":"a","u":"us"},{"i":2}]"#),
            context: context)
        #expect(
            reply
                == .messages(
                    [ChatMessage(id: ChatID("1"), sender: ChatPerson(id: ChatID("us")), text: "a", isSelf: true)],
                    isComplete: true))
    }

    @Test("a history of which nothing can be read says nothing of the room", arguments: [1, 2, 3, 50])
    func unreadable(count: Int) throws {
        let calls = try calls(#"{"decode":[],"history":{"get":"/h","fields":{"id":"/i","text":"/body"}}}"#)
        let items = "[" + (1...count).map { #"{"i":\#($0),"txt":"a"}"# }.joined(separator: ",") + "]"
        let reply = calls.reply(to: .history(HistoryQuery(room: "ops")), answer: answer(items), context: context)
        #expect(reply == (count < 3 ? .messages([], isComplete: true) : .unusable(.missingField)))
    }

    @Test("a history of several rooms gives ours, and what names none", arguments: [false, true])
    func otherRooms(_ isByRules: Bool) throws {
        let fields = #""id":"/i","room":"/r","text":"/x""#
        let calls = try calls(
            isByRules
                ? #"{"decode":[{"event":"message","fields":{\#(fields)}}],"history":{"get":"/h"}}"#
                : #"{"decode":[],"history":{"get":"/h","fields":{\#(fields)}}}"#)
        let items = #"[{"i":1,"x":"a","r":"attic"},{"i":2,"x":"b","r":"ops"},{"i":3,"x":"c"},{"i":4,"x":"d","r":7}]"#
        let reply = calls.reply(
            to: .history(HistoryQuery(room: "ops", limit: 4)), answer: answer(items),
            context: DialectContext(room: "ops", announcedRoom: "7"))
        guard case .messages(let messages, let isComplete) = reply else {
            Issue.record("no history")
            return
        }
        #expect(messages.map(\.text) == ["b", "c", "d"])
        #expect(!isComplete, "the page was full")
    }

    @Test("a refusal's words are found in the usual places, in one line")
    func complaints() throws {
        let calls = try calls()
        #expect(calls.complaint(answer(#"{"message":"no\nway"}"#, status: 401)) == "no way")
        #expect(calls.complaint(answer(#"{"error":{"message":"x"}}"#, status: 401)) == "x")
        #expect(calls.complaint(answer(#"{"error":"y"}"#, status: 401)) == "y")
        #expect(calls.complaint(answer("<html>", status: 502)) == nil)
        #expect(
            calls.complaint(answer(#"{"detail":"\#(String(repeating: "é", count: 999))"}"#))?.unicodeScalars.count
                == 200)
    }

    @Test("any bytes are an answer or unusable", arguments: 0..<4)
    func noise(_ seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let calls = try calls()
        let good = Array(Self.history[0].body.utf8)
        var unusable = 0
        for _ in 0..<500 {
            var body = good
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                body[Int.random(in: 0..<body.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let answer = BackendAnswer(status: 200, body: body)
            let reply = calls.reply(to: .history(HistoryQuery(room: "ops")), answer: answer, context: context)
            if case .unusable = reply { unusable += 1 }
            _ = calls.reply(to: .refresh(token: "x"), answer: answer, context: context)
            _ = calls.complaint(answer)
        }
        #expect(unusable > 0)
    }
}
