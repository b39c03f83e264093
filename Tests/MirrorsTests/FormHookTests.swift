import BridgeTypes
import ChatModel
import Digests
import HTTPProtocol
import Mirrors
import Testing
import WireBytes

/// What the tools send to a hook, and what it becomes.
@Suite struct FormHookTests {
    static let now: Int64 = 1_700_000_000

    struct Case: CustomTestStringConvertible, Sendable {
        var tool: MirrorTool
        var body: String
        var arrivals: [MirrorArrival]
        var isForm = false

        init(_ tool: MirrorTool, _ body: String, _ arrivals: MirrorArrival..., isForm: Bool = false) {
            (self.tool, self.body, self.arrivals, self.isForm) = (tool, body, arrivals, isForm)
        }

        var testDescription: String { "\(tool.rawValue) \(body.prefix(100))" }
    }

    /// A request with the tool's proof, made here by the tool's rule.
    static func hook(_ tool: MirrorTool, _ body: [UInt8], isForm: Bool = false, seconds: Int64 = now) -> HookRequest {
        var headers = HTTPHeaders()
        headers.append(
            name: "Content-Type",
            value: isForm ? "application/x-www-form-urlencoded" : "application/json; charset=utf-8")
        func hex(_ version: String) -> String {
            let code = HMACSHA256.authenticate(Array("\(version):\(seconds):".utf8) + body, key: key(tool).bytes)
            let digits = code.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
            return "\(version)=\(digits)"
        }
        switch tool {
        case .slack:
            headers.append(name: "X-Slack-Request-Timestamp", value: String(seconds))
            headers.append(name: "X-Slack-Signature", value: hex("v0"))
        case .teams:
            let code = HMACSHA256.authenticate(body, key: Array("key".utf8))
            headers.append(name: "Authorization", value: "HMAC " + Base64.encode(code))
        case .json:
            headers.append(name: "Chatbridge-Timestamp", value: String(seconds))
            headers.append(name: "Chatbridge-Signature", value: hex("v1"))
        case .discord: headers.append(name: "Authorization", value: "Bearer token")
        case .mattermost, .rocketchat: break
        }
        return HookRequest(headers: headers, body: body, at: ChatTimestamp(milliseconds: now * 1000))
    }

    static func key(_ tool: MirrorTool) -> MirrorSecret {
        MirrorSecret(Array((tool == .teams ? Base64.encode(Array("key".utf8)) : "token").utf8))
    }

    private static func event(_ event: String) -> String { #"{"type":"event_callback","event":{"# + event + "}}" }

    private static func gateway(_ name: String, _ event: String) -> String {
        #"{"op":0,"t":"\#(name)","d":{\#(event)}}"#
    }

    private static func said(
        _ text: String, id: String? = nil, speaker: String, replyTo: String? = nil, channel: String? = nil,
        files: [MirrorFile] = [], isBot: Bool = false
    ) -> MirrorArrival {
        MirrorArrival(
            .message(MarkedText(plain: text)), id: id, speaker: speaker, replyTo: replyTo, channel: channel,
            files: files,
            isBot: isBot)
    }

    @Test(arguments: [
        Case(
            .slack, event(#""type":"message","channel":"C1","user":"U1","text":"a &amp; b","ts":"1.2""#),
            said("a & b", id: "1.2", speaker: "U1", channel: "C1")),
        Case(
            .slack,
            event(
                #""type":"message","user":"U1","user_profile":{"display_name":"","real_name":"Ann"},"text":"x","ts":"1.2","thread_ts":"1.0""#
            ), said("x", id: "1.2", speaker: "Ann", replyTo: "1.0")),
        Case(
            .slack, event(#""type":"message","user":"U1","text":"x","ts":"1.2","thread_ts":"1.2""#),
            said("x", id: "1.2", speaker: "U1")),
        Case(
            .slack,
            event(#""type":"message","subtype":"bot_message","bot_id":"B1","username":"CI","text":"x","ts":"1.2""#),
            said("x", id: "1.2", speaker: "CI", isBot: true)),
        Case(
            .slack, event(#""type":"message","bot_id":"B1","user":"U1","text":"x","ts":"1.2""#),
            said("x", id: "1.2", speaker: "U1", isBot: true)),
        Case(
            .slack, event(#""type":"message","subtype":"me_message","user":"U1","text":"waves","ts":"1.2""#),
            MirrorArrival(.action(MarkedText(plain: "waves")), id: "1.2", speaker: "U1")),
        Case(
            .slack,
            event(
                #""type":"message","subtype":"file_share","user":"U1","text":"","ts":"1.2","files":[{"name":"a.png","mimetype":"image/png","size":5,"url_private":"https://x.org/p","permalink":"https://x.org/a"},{"name":"none"}]"#
            ),
            said(
                "", id: "1.2", speaker: "U1",
                files: [MirrorFile(url: "https://x.org/a", name: "a.png", type: "image/png", size: 5)])),
        Case(
            .slack,
            event(
                #""type":"message","subtype":"message_changed","channel":"C1","message":{"user":"U1","text":"new","ts":"1.2","edited":{"user":"U1","ts":"2.0"}},"previous_message":{"text":"old","ts":"1.2"}"#
            ), MirrorArrival(.edit(MarkedText(plain: "new"), of: "1.2"), speaker: "U1", channel: "C1")),
        // The preview of a link, before and behind an edit.
        Case(
            .slack,
            event(
                #""type":"message","subtype":"message_changed","message":{"user":"U1","text":"x","ts":"1.2","attachments":[{}]},"previous_message":{"text":"x","ts":"1.2"}"#
            )),
        Case(
            .slack,
            event(
                #""type":"message","subtype":"message_changed","message":{"user":"U1","text":"x","ts":"1.2","edited":{}},"previous_message":{"text":"x","ts":"1.2","edited":{}}"#
            )),
        Case(
            .slack,
            event(
                #""type":"message","subtype":"message_changed","message":{"subtype":"tombstone","user":"USLACKBOT","text":"This message was deleted.","ts":"1.2"},"previous_message":{"user":"U1","text":"x"}"#
            ), MirrorArrival(.takenBack("1.2"), speaker: "U1")),
        Case(
            .slack,
            event(
                #""type":"message","subtype":"message_deleted","channel":"C1","deleted_ts":"1.2","previous_message":{"user":"U1"}"#
            ), MirrorArrival(.takenBack("1.2"), speaker: "U1", channel: "C1")),
        Case(.slack, event(#""type":"message","subtype":"channel_join","user":"U1","text":"joined","ts":"1""#)),
        Case(
            .slack,
            event(
                #""type":"reaction_added","user":"U1","reaction":"thumbsup","item":{"type":"message","channel":"C1","ts":"1.2"}"#
            ), MirrorArrival(.reaction(":thumbsup:", .add, on: "1.2"), speaker: "U1", channel: "C1")),
        Case(.slack, event(#""type":"reaction_removed","user":"U1","reaction":"x","item":{"type":"file"}"#)),
        Case(.slack, event(#""type":"team_join""#)),
        Case(.slack, #"{"type":"app_rate_limited"}"#),

        Case(
            .mattermost,
            #"{"token":"token","user_name":"ann","text":"**hi**","post_id":"p1","channel_name":"town","trigger_word":"**hi**","timestamp":1}"#,
            MirrorArrival(.message(MarkedText([.text("hi", .bold)])), id: "p1", speaker: "ann", channel: "town")),
        Case(
            .mattermost, "token=token&user_name=ann&text=a+%2B+b%0A%F0%9F%8E%89&post_id=p1&file_ids=",
            said("a + b\n🎉", id: "p1", speaker: "ann"), isForm: true),
        Case(
            .mattermost, "token=token&user_name=ann&text=&file_ids=a,b",
            MirrorArrival(.message(MarkedText([.text("(2 files)", .italic)])), speaker: "ann"), isForm: true),
        Case(.mattermost, "token=token&user_name=ann&text=", isForm: true),

        Case(
            .rocketchat,
            #"{"token":"token","bot":false,"user_name":"ann","text":"hi","message_id":"m","channel_name":"general","tmid":"t"}"#,
            said("hi", id: "m", speaker: "ann", replyTo: "t", channel: "general")),
        Case(
            .rocketchat,
            #"{"token":"token","bot":{"i":"x"},"alias":"bob","user_name":"cat","text":"hi","message_id":"m"}"#,
            said("hi", id: "m", speaker: "bob", isBot: true)),
        Case(
            .rocketchat, #"{"token":"token","user_name":"ann","text":"hi","message_id":"m","isEdited":true}"#,
            MirrorArrival(.edit(MarkedText(plain: "hi"), of: "m"), speaker: "ann")),
        Case(.rocketchat, #"{"token":"token","user_name":"ann"}"#),

        Case(
            .discord,
            gateway(
                "MESSAGE_CREATE",
                #""id":"1","type":0,"channel_id":"9","content":"hi <@2>","author":{"id":"3","username":"ann","global_name":"Ann"},"mentions":[{"id":"2","username":"bob"}]"#
            ), said("hi @bob", id: "1", speaker: "Ann", channel: "9")),
        Case(
            .discord,
            gateway(
                "MESSAGE_CREATE",
                #""id":"1","type":19,"content":"x","author":{"username":"ann","bot":true},"member":{"nick":"Annie"},"message_reference":{"message_id":"0"}"#
            ), said("x", id: "1", speaker: "Annie", replyTo: "0", isBot: true)),
        Case(
            .discord,
            gateway("MESSAGE_CREATE", #""id":"1","content":"x","author":{"username":"hook"},"webhook_id":"5""#),
            said("x", id: "1", speaker: "hook", isBot: true)),
        Case(
            .discord,
            gateway(
                "MESSAGE_CREATE",
                #""id":"1","content":"","author":{"username":"ann"},"attachments":[{"url":"https://x.org/a","filename":"a","content_type":"text/plain","size":3}]"#
            ),
            said(
                "", id: "1", speaker: "ann",
                files: [MirrorFile(url: "https://x.org/a", name: "a", type: "text/plain", size: 3)])),
        Case(.discord, gateway("MESSAGE_CREATE", #""id":"1","type":7,"content":"","author":{"username":"ann"}"#)),
        Case(
            .discord,
            gateway("MESSAGE_UPDATE", #""id":"1","content":"y","edited_timestamp":"2023","author":{"username":"ann"}"#),
            MirrorArrival(.edit(MarkedText(plain: "y"), of: "1"), speaker: "ann")),
        Case(
            .discord,
            gateway(
                "MESSAGE_UPDATE",
                #""id":"1","content":"y","edited_timestamp":null,"author":{"username":"ann"},"embeds":[{}]"#)),
        Case(.discord, gateway("MESSAGE_UPDATE", #""id":"1","embeds":[{}]"#)),
        Case(
            .discord, gateway("MESSAGE_DELETE", #""id":"1","channel_id":"9""#),
            MirrorArrival(.takenBack("1"), speaker: "unknown", channel: "9")),
        Case(
            .discord, gateway("MESSAGE_DELETE_BULK", #""ids":["1","2"]"#),
            MirrorArrival(.takenBack("1"), speaker: "unknown"), MirrorArrival(.takenBack("2"), speaker: "unknown")),
        Case(
            .discord,
            gateway(
                "MESSAGE_REACTION_ADD",
                #""user_id":"3","message_id":"1","emoji":{"id":null,"name":"👍"},"member":{"user":{"username":"ann"}}"#),
            MirrorArrival(.reaction("👍", .add, on: "1"), speaker: "ann")),
        Case(
            .discord,
            gateway("MESSAGE_REACTION_REMOVE", #""user_id":"3","message_id":"1","emoji":{"id":"8","name":"ok"}"#),
            MirrorArrival(.reaction(":ok:", .remove, on: "1"), speaker: "3")),
        Case(.discord, gateway("TYPING_START", "")),

        Case(
            .teams,
            #"{"type":"message","id":"7","from":{"name":"Ann"},"text":"<at>Bridge</at>&nbsp;hello &amp; <b>bye</b>\n","conversation":{"id":"19:x@thread.tacv2;messageid=5"},"channelData":{"channel":{"id":"c"}}}"#,
            MirrorArrival(
                .message(MarkedText([.text("hello & "), .text("bye", .bold)])), id: "7", speaker: "Ann", replyTo: "5")),
        Case(
            .teams,
            #"{"type":"message","id":"7","from":{"name":"Ann","role":"bot"},"text":"x","conversation":{"id":"19:x;messageid=7"}}"#,
            said("x", id: "7", speaker: "Ann", isBot: true)),
        Case(.teams, #"{"type":"message","id":"7","from":{"name":"Ann"},"text":"<at>Bridge</at>"}"#),
        Case(.teams, #"{"type":"conversationUpdate"}"#),

        Case(
            .json, #"{"nick":"ann","text":"see `x`","id":"1","room":"lobby","reply_to":"0","bot":true}"#,
            MirrorArrival(
                .message(MarkedText([.text("see "), .text("x", .code)])), id: "1", speaker: "ann", replyTo: "0",
                channel: "lobby", isBot: true)),
        Case(
            .json,
            #"{"messages":[{"nick":"a","kind":"edit","target":"1","text":"x"},{"nick":"a","kind":"delete","target":"1"}]}"#,
            MirrorArrival(.edit(MarkedText(plain: "x"), of: "1"), speaker: "a"),
            MirrorArrival(.takenBack("1"), speaker: "a")),
        Case(
            .json,
            #"[{"nick":"a","kind":"reaction","target":"1","emoji":"👍"},{"nick":"a","kind":"reaction","target":"1","emoji":"👍","operation":"remove"},{"nick":"a","kind":"action","text":"waves"}]"#,
            MirrorArrival(.reaction("👍", .add, on: "1"), speaker: "a"),
            MirrorArrival(.reaction("👍", .remove, on: "1"), speaker: "a"),
            MirrorArrival(.action(MarkedText(plain: "waves")), speaker: "a")),
        Case(
            .json, #"{"nick":"a","files":[{"url":"https://x.org"},{"url":"file:///etc/passwd"}]}"#,
            said("", speaker: "a", files: [MirrorFile(url: "https://x.org")])),
        Case(.json, #"{"messages":[]}"#),
    ])
    func reads(_ row: Case) {
        let reading = row.tool.form.read(
            Self.hook(row.tool, Array(row.body.utf8), isForm: row.isForm), secret: Self.key(row.tool))
        let answer = row.tool == .teams ? #"{"type":"message","text":""}"# : nil
        // Where nothing else is said, a message was said there first.
        let arrivals = row.arrivals.map { arrival in
            var arrival = arrival
            if row.tool == .json { arrival.first = arrival.id }
            return arrival
        }
        #expect(reading == .arrivals(arrivals, answer: answer))
    }

    @Test func slackTestsTheHook() {
        let body =
            #"{"type":"url_verification","token":"t","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}"#
        let reading = SlackForm().read(Self.hook(.slack, Array(body.utf8)), secret: Self.key(.slack))
        #expect(reading == .answer("3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P", type: "text/plain"))
    }

    @Test func slashCommandsAreShown() {
        let body = "command=%2Firc&text=hi+%2Aall%2A&user_name=ann&channel_name=general&trigger_id=1.2"
        let reading = SlackForm().read(Self.hook(.slack, Array(body.utf8), isForm: true), secret: Self.key(.slack))
        let text = MarkedText([.text("hi "), .text("all", .bold)])
        let arrival = MirrorArrival(.message(text), id: "1.2", speaker: "ann", channel: "general")
        #expect(reading == .arrivals([arrival], answer: #"{"response_type":"in_channel"}"#))
    }

    @Test(arguments: MirrorTool.allCases)
    func ownMessagesAreKnownByTheirMark(_ tool: MirrorTool) {
        let origin = OriginChain().passing(OriginChain.Place(room: "lobby", of: "one"))
        let text = "hi" + origin.mark
        let body =
            switch tool {
            case .slack: Self.event(#""type":"message","user":"U","ts":"1","text":"\#(text)""#)
            case .discord: Self.gateway("MESSAGE_CREATE", #""id":"1","author":{"username":"a"},"content":"\#(text)""#)
            case .teams: #"{"type":"message","from":{"name":"a"},"text":"\#(text)"}"#
            case .json: #"{"nick":"a","text":"hi","origin":["\#(origin.text)"]}"#
            case .mattermost, .rocketchat: #"{"token":"token","user_name":"a","text":"\#(text)"}"#
            }
        guard
            case .arrivals(let arrivals, _) = tool.form.read(Self.hook(tool, Array(body.utf8)), secret: Self.key(tool))
        else {
            Issue.record("not read")
            return
        }
        #expect(arrivals.map(\.origin) == [origin])
        #expect(arrivals.map(\.content) == [.message(MarkedText(plain: "hi"))])
    }

    // MARK: - Proofs

    /// Source: https://docs.slack.dev/authentication/verifying-requests-from-slack
    @Test func slackDocumentedExample() {
        let body =
            "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
            + "&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
            + "&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
            + "&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
        let secret = MirrorSecret(Array("8f742231b10e8888abcd99yyyzzz85a5".utf8))
        func reading(at seconds: Int64, _ signature: String) -> HookReading {
            let headers = HTTPHeaders([
                ("Content-Type", "application/x-www-form-urlencoded"), ("X-Slack-Request-Timestamp", "1531420618"),
                ("X-Slack-Signature", signature),
            ])
            return SlackForm().read(
                HookRequest(headers: headers, body: Array(body.utf8), at: ChatTimestamp(milliseconds: seconds * 1000)),
                secret: secret)
        }
        let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
        // It has no text.
        #expect(reading(at: 1_531_420_618, signature) == .arrivals([]))
        #expect(reading(at: 1_531_420_918, signature) == .arrivals([]))
        #expect(reading(at: 1_531_420_919, signature).isUnproven)
        #expect(reading(at: 1_531_420_317, signature).isUnproven)
        #expect(reading(at: 1_531_420_618, signature + "0").isUnproven)
        #expect(reading(at: 1_531_420_618, "v0=").isUnproven)
    }

    /// A key of Microsoft's sample, and the code that Python's `hmac` computes with it.
    @Test func teamsSignature() {
        let body = #"{"type":"message","id":"1","from":{"name":"Ann"},"text":"<at>Bridge</at> hello"}"#
        let secret = MirrorSecret(Array("vqF0En+Z0ucuRTM/01o2GuhMH3hKKk/N2bOmlM31zaA=".utf8))
        func reading(_ authorization: String) -> HookReading {
            TeamsForm().read(
                HookRequest(
                    headers: HTTPHeaders([("Authorization", authorization)]), body: Array(body.utf8),
                    at: ChatTimestamp(milliseconds: 0)), secret: secret)
        }
        #expect(!reading("HMAC MA+RPDtWoCtY9Pr6hZLXlyqus5A1fdnJh8Q6V2pIqfc=").isUnproven)
        #expect(reading("HMAC AAAA").isUnproven)
        #expect(reading("MA+RPDtWoCtY9Pr6hZLXlyqus5A1fdnJh8Q6V2pIqfc=").isUnproven)
    }

    /// The code that Python's `hmac` computes.
    @Test func jsonSignature() {
        let headers = HTTPHeaders([
            ("Chatbridge-Timestamp", "1700000000"),
            ("Chatbridge-Signature", "v1=fabc48a75dd622bdf17dcda1f6a71d6afb3aefed42fc28c9071230a697951b5f"),
        ])
        let hook = HookRequest(
            headers: headers, body: Array(#"{"nick":"ann","text":"hi"}"#.utf8),
            at: ChatTimestamp(milliseconds: Self.now * 1000))
        #expect(!JSONForm().read(hook, secret: MirrorSecret(Array("secret".utf8))).isUnproven)
    }

    @Test func jsonTakesABearerTokenWithoutASignature() {
        func reading(_ headers: (String, String)...) -> HookReading {
            JSONForm().read(
                HookRequest(
                    headers: HTTPHeaders(headers.map { (name: $0.0, value: $0.1) }),
                    body: Array(#"{"nick":"ann","text":"hi"}"#.utf8), at: ChatTimestamp(milliseconds: 0)),
                secret: MirrorSecret(Array("token".utf8)))
        }
        #expect(!reading(("Authorization", "bearer token")).isUnproven)
        #expect(reading(("Authorization", "Bearer other")).isUnproven)
        #expect(reading(("Authorization", "token")).isUnproven)
        #expect(reading(("Authorization", "Bearer token"), ("Chatbridge-Signature", "v1=00")).isUnproven)
    }

    @Test(arguments: MirrorTool.allCases)
    func anotherOrNoSecretProvesNothing(_ tool: MirrorTool) {
        let body = Array(
            #"{"token":"token","type":"message","t":"X","d":{},"nick":"a","text":"x","user_name":"a"}"#.utf8)
        let hook = Self.hook(tool, body)
        #expect(!tool.form.read(hook, secret: Self.key(tool)).isUnproven)
        for secret in ["", "tokeN", "token2", "b3RoZXI="] {
            #expect(tool.form.read(hook, secret: MirrorSecret(Array(secret.utf8))).isUnproven)
        }
        let bare = HookRequest(body: Array(#"{"nick":"a"}"#.utf8), at: hook.at)
        #expect(tool.form.read(bare, secret: Self.key(tool)).isUnproven)
    }

    @Test(arguments: [MirrorTool.slack, .json])
    func oldRequestsAreCopies(_ tool: MirrorTool) {
        for seconds in [Self.now - 301, Self.now + 301, 0, 999_999_999_999] {
            let hook = Self.hook(tool, Array("{}".utf8), seconds: seconds)
            #expect(tool.form.read(hook, secret: Self.key(tool)).isUnproven)
        }
    }

    // MARK: - Hostile bodies

    private static let hostile: [[UInt8]] =
        [
            "", "null", "1", "\"x\"", "[1]", "{", "{\"type\":", "{}", #"{"type":1}"#, #"{"type":"event_callback"}"#,
            #"{"type":"event_callback","event":[]}"#, #"{"type":"event_callback","event":{"type":"message","text":5}}"#,
            #"{"type":"event_callback","event":{"type":"message","text":"x"}}"#, #"{"t":"MESSAGE_CREATE","d":[]}"#,
            #"{"t":"MESSAGE_CREATE","d":{"content":"x","author":{}}}"#, #"{"type":"message","from":"x"}"#,
            #"{"nick":5}"#, #"{"nick":"a","text":"x","origin":["zz"]}"#, #"{"nick":"a","kind":"topic","text":"x"}"#,
            #"{"messages":5}"#, #"{"nick":"a","text":"x","files":{}}"#, "{\"nick\":\"a\",\"text\":\"\\ud800\"}",
        ].map { Array($0.utf8) } + [
            [0xFF, 0xFE], Array(#"{"nick":""#.utf8) + [0xC0, 0xAF] + Array("\"}".utf8),
            Array(String(repeating: "[", count: 1 << 20).utf8),
            Array(String(repeating: "{\"a\":", count: 1 << 17).utf8),
            Array(repeating: UInt8(ascii: " "), count: 1 << 21),
            Array("[\((0...100).map { _ in "{}" }.joined(separator: ","))]".utf8),
        ]

    @Test(arguments: MirrorTool.allCases)
    func hostileBodiesAreMalformed(_ tool: MirrorTool) {
        for body in Self.hostile {
            let reading = tool.form.read(Self.hook(tool, body), secret: Self.key(tool))
            switch reading {
            case .malformed, .unproven: break
            // Something else than a message, which is nothing.
            case .arrivals([], _): #expect(tool != .json)
            case .arrivals, .answer: Issue.record("\(String(decoding: body.prefix(80), as: UTF8.self)): \(reading)")
            }
        }
    }

    @Test(arguments: ["a=%", "a=%zz", "text=%FF&token=token", "%=", "token=token&text=\u{0}%00"])
    func hostileForms(_ body: String) {
        let reading = MattermostForm().read(
            Self.hook(.mattermost, Array(body.utf8), isForm: true), secret: Self.key(.mattermost))
        switch reading {
        case .malformed, .unproven, .arrivals([], _): break
        default: Issue.record("\(reading)")
        }
    }

    @Test(arguments: MirrorTool.allCases)
    func aMebibyteOfTextIsRead(_ tool: MirrorTool) {
        let text = String(repeating: "*_<a ", count: 100_000)
        let body = Array(
            #"{"token":"token","user_name":"a","nick":"a","type":"message","from":{"name":"a"},"text":"\#(text)"}"#.utf8
        )
        switch tool.form.read(Self.hook(tool, body), secret: Self.key(tool)) {
        case .arrivals(let arrivals, _): #expect(arrivals.count == (tool == .slack ? 0 : 1))
        case .malformed: #expect(tool == .discord)
        case let reading: Issue.record("\(reading)")
        }
    }
}

extension HookReading {
    fileprivate var isUnproven: Bool { if case .unproven = self { true } else { false } }
}
