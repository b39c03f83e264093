import BridgeTypes
import ChatModel
import HTTPProtocol
import JSONText
import Mirrors
import Testing

/// The requests of each form, as documents.
@Suite struct FormRequestTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var tool: MirrorTool
        var post: MirrorPost
        var bodies: [String]
        var path = ""
        var method = "POST"

        var testDescription: String { "\(tool.rawValue) \(post.content)" }
    }

    static func post(
        _ content: MirrorPost.Content, replyTo: String? = nil, target: MirrorPost.Target? = nil,
        files: [MirrorFile] = []
    ) -> MirrorPost {
        MirrorPost(
            content, room: "lobby", channel: "#lobby", msgid: "m1", at: ChatTimestamp(milliseconds: 1_700_000_000_123),
            speaker: MirrorPost.Speaker(nick: "ann", account: "anna"), replyTo: replyTo, target: target, files: files)
    }

    private static let hello = post(.message(MarkedText([.text("Hi "), .text("all", .bold), .text(" @here <b>")])))
    private static let action = post(.action(MarkedText(plain: "waves")))
    private static let topic = post(.topic("Tea at https://x.org"))
    private static let notice = post(.notice("3 messages are missing"))
    private static let answer = post(
        .message(MarkedText(plain: "yes")), replyTo: "m0",
        target: MirrorPost.Target(toolID: "77", nick: "bob", excerpt: "shall\nwe?"))
    private static let edit = post(
        .edit(MarkedText(plain: "yes!"), of: "m0"),
        target: MirrorPost.Target(toolID: "7/7", nick: "ann", excerpt: "yes"))
    private static let redaction = post(
        .takenBack("m0"), target: MirrorPost.Target(toolID: "77", nick: "ann", excerpt: "yes"))
    private static let reaction = post(
        .reaction("👍", .add, on: "m0"), target: MirrorPost.Target(toolID: "77", nick: "bob", excerpt: "x"))
    private static let picture = post(
        .message(MarkedText()),
        files: [MirrorFile(url: "https://x.org/a.png", name: "a.png", type: "image/png", size: 9)])

    @Test(arguments: [
        Case(tool: .slack, post: hello, bodies: [#"{"text":"*ann*: Hi *all* @\u200bhere &lt;b&gt;"}"#]),
        Case(tool: .slack, post: action, bodies: [#"{"text":"*ann* _waves_"}"#]),
        Case(tool: .slack, post: topic, bodies: [#"{"text":"*ann* _changed the topic to:_ Tea at <https://x.org>"}"#]),
        Case(tool: .slack, post: notice, bodies: [#"{"text":"_3 messages are missing_"}"#]),
        Case(tool: .slack, post: answer, bodies: [#"{"text":"> *bob*: shall we?\n*ann*: yes"}"#]),
        Case(tool: .slack, post: picture, bodies: [#"{"text":"*ann*: <https://x.org/a.png|a.png>"}"#]),
        Case(tool: .slack, post: edit, bodies: [#"{"text":"*ann*: _(edited)_ yes!"}"#]),
        Case(tool: .slack, post: redaction, bodies: []),
        Case(tool: .slack, post: reaction, bodies: []),

        Case(
            tool: .mattermost, post: hello,
            bodies: [
                #"{"text":"Hi **all** @\u200bhere \\<b>","username":"ann (#lobby)","icon_url":"https://a.org/ann%20.png"}"#
            ]),
        Case(
            tool: .mattermost, post: answer,
            bodies: [
                #"{"text":"> **bob**: shall we?\n\nyes","username":"ann (#lobby)","icon_url":"https://a.org/ann%20.png"}"#
            ]),
        Case(
            tool: .mattermost, post: edit,
            bodies: [#"{"text":"*(edited)* yes!","username":"ann (#lobby)","icon_url":"https://a.org/ann%20.png"}"#]),

        Case(
            tool: .rocketchat, post: hello,
            bodies: [
                #"{"text":"Hi *all* @\u200bhere \u200b<\u200bb>","alias":"ann (#lobby)","avatar":"https://a.org/ann%20.png","separateResponse":true}"#
            ]),
        Case(
            tool: .rocketchat, post: answer,
            bodies: [
                #"{"text":"yes","alias":"ann (#lobby)","avatar":"https://a.org/ann%20.png","tmid":"77","separateResponse":true}"#
            ]),
        Case(tool: .rocketchat, post: reaction, bodies: []),

        Case(
            tool: .discord, post: hello,
            bodies: [
                #"{"content":"Hi **all** @\u200bhere \\<b>","username":"ann (#lobby)","avatar_url":"https://a.org/ann%20.png","allowed_mentions":{"parse":[]}}"#
            ]),
        Case(
            tool: .discord, post: answer,
            bodies: [
                #"{"content":"> **bob**: shall we?\nyes","username":"ann (#lobby)","avatar_url":"https://a.org/ann%20.png","allowed_mentions":{"parse":[]}}"#
            ]),
        Case(
            tool: .discord, post: edit, bodies: [#"{"content":"yes!","allowed_mentions":{"parse":[]}}"#],
            path: "/messages/7%2F7", method: "PATCH"),
        Case(tool: .discord, post: redaction, bodies: [""], path: "/messages/77", method: "DELETE"),
        Case(tool: .discord, post: reaction, bodies: []),

        Case(
            tool: .teams, post: hello,
            bodies: [card(#"{"type":"TextBlock","text":"**ann (#lobby)**: Hi **all** @\u200bhere <b>","wrap":true}"#)]),
        Case(
            tool: .teams, post: picture,
            bodies: [
                card(
                    #"{"type":"TextBlock","text":"**ann (#lobby)**: [a.png](https://x.org/a.png)","wrap":true},"#
                        + #"{"type":"Image","url":"https://x.org/a.png","altText":"a.png"}"#)
            ]),

        Case(
            tool: .json, post: hello,
            bodies: [
                json(#""kind":"message""#, #","text":"Hi all @here <b>","markdown":"Hi **all** @\u200bhere \\<b>""#)
            ]),
        Case(
            tool: .json, post: answer,
            bodies: [
                json(
                    #""kind":"message""#,
                    #","text":"yes","markdown":"yes","reply_to":{"id":"m0","nick":"bob","excerpt":"shall\nwe?"}"#)
            ]),
        Case(
            tool: .json, post: reaction,
            bodies: [
                json(
                    #""kind":"reaction""#,
                    #","target":{"id":"m0","nick":"bob","excerpt":"x"},"emoji":"👍","operation":"add""#)
            ]),
        Case(
            tool: .json, post: picture,
            bodies: [
                json(
                    #""kind":"message""#,
                    #","text":"","markdown":"","files":[{"url":"https://x.org/a.png","name":"a.png","type":"image/png","size":9}]"#
                )
            ]),
        Case(
            tool: .json, post: redaction,
            bodies: [json(#""kind":"delete""#, #","target":{"id":"m0","nick":"ann","excerpt":"yes"}"#)]),
    ])
    func writes(_ row: Case) throws {
        var wording = MirrorWording()
        // Slack's own words begin with the nick alone.
        if row.tool != .slack { wording.username = "{nick} ({channel})" }
        wording.avatarURL = "https://a.org/{nick}%20.png"
        let requests = row.tool.form.requests(for: [row.post], wording)
        #expect(requests.map { String(decoding: $0.body, as: UTF8.self).isEmpty } == row.bodies.map(\.isEmpty))
        for (request, body) in zip(requests, row.bodies) {
            if !body.isEmpty { #expect(try JSONValue(parsing: request.body).sorted == JSONValue(parsing: body).sorted) }
            #expect(request.pathSuffix == row.path)
            #expect(request.method == row.method)
            #expect(request.posts == 0..<1)
            if !body.isEmpty { #expect(request.headers.first?.value == "application/json") }
        }
    }

    private static func card(_ body: String) -> String {
        #"{"type":"message","attachments":[{"contentType":"application/vnd.microsoft.card.adaptive","contentUrl":null,"#
            + #""content":{"$schema":"http://adaptivecards.io/schemas/adaptive-card.json","type":"AdaptiveCard","#
            + #""version":"1.4","msteams":{"width":"Full"},"body":["# + body + "]}}]}"
    }

    private static func json(_ kind: String, _ rest: String) -> String {
        ##"{"messages":[{"id":"m1","first":"m1","room":"lobby","channel":"#lobby","nick":"ann","account":"anna","bot":false,"##
            + #""at":"2023-11-14T22:13:20.123Z","origin":[],"# + kind + rest + "}]}"
    }

    // MARK: - What all have in common

    private static let oneByOne = MirrorTool.allCases.filter { $0 != .json }

    @Test(arguments: oneByOne)
    func longTextsAreSeveralRequestsWithTheMark(_ tool: MirrorTool) throws {
        let form = tool.form
        var post = Self.post(.message(MarkedText(plain: String(repeating: "*_word ", count: 8000))))
        post.origin = OriginChain().passing(OriginChain.Place(room: "lobby", of: "one"))
        let requests = form.requests(for: [post, post], MirrorWording())
        #expect(requests.count > 4)
        #expect(Set(requests.map(\.posts)) == [0..<1, 1..<2])
        for request in requests {
            let text = try #require(Self.text(JSONValue(parsing: request.body)))
            #expect(text.utf16.count <= form.traits.maxTextCharacters)
            #expect(OriginChain.split(text).chain == post.origin)
            if tool == .teams { #expect(request.body.count <= 21_000) }
        }
    }

    private static func text(_ body: JSONValue) -> String? {
        let card = body["attachments"]?.array?.first?["content"]?["body"]?.array?.first
        return (body["text"] ?? body["content"] ?? card?["text"])?.string
    }

    @Test(arguments: MirrorTool.allCases)
    func theNickIsSeenWhateverTheName(_ tool: MirrorTool) throws {
        var wording = MirrorWording()
        wording.username = "IRC"
        let requests = tool.form.requests(for: [Self.post(.message(MarkedText(plain: "hi")))], wording)
        let hasNick = tool == .slack || tool == .teams ? "IRC" : "ann"
        #expect(String(decoding: try #require(requests.first).body, as: UTF8.self).contains(hasNick))
    }

    @Test(arguments: [
        ("clyde", "c\u{200B}lyde"), ("My Discord", "My D\u{200B}iscord"), ("everyone", "e\u{200B}veryone"),
        ("here!", "here!"),
        (String(repeating: "x", count: 100), String(repeating: "x", count: 80)),
    ])
    func discordNames(_ nick: String, _ name: String) throws {
        var post = Self.post(.message(MarkedText(plain: "hi")))
        post.speaker.nick = nick
        let requests = DiscordForm().requests(for: [post], MirrorWording())
        #expect(try JSONValue(parsing: try #require(requests.first).body)["username"]?.string == name)
    }

    @Test func jsonIsSignedAndStable() throws {
        let posts = [Self.hello, Self.action]
        let now = ChatTimestamp(milliseconds: 1_700_000_000_999)
        let form = JSONForm()
        let unsigned = try #require(form.requests(for: posts, MirrorWording()).first)
        let request = form.signed(unsigned, by: MirrorSecret(Array("secret".utf8)), now: now)
        #expect(request.posts == 0..<2)
        let headers = HTTPHeaders(request.headers.map { ($0.name, $0.value) })
        #expect(headers.first("Chatbridge-Timestamp") == "1700000000")
        let key = unsigned.headers.first { $0.name == "Idempotency-Key" }?.value
        #expect(key != nil && key == headers.first("Idempotency-Key"))
        #expect(form.requests(for: posts, MirrorWording()) == [unsigned])
        // What is sent is what a hook takes.
        let hook = HookRequest(headers: headers, body: request.body, at: now)
        guard case .arrivals(let arrivals, answer: nil) = form.read(hook, secret: MirrorSecret(Array("secret".utf8)))
        else {
            Issue.record("not read: \(form.read(hook, secret: MirrorSecret(Array("secret".utf8))))")
            return
        }
        #expect(arrivals.map(\.speaker) == ["ann", "ann"])
        #expect(
            arrivals.first?.content == .message(MarkedText([.text("Hi "), .text("all", .bold), .text(" @here <b>")])))
        guard case .unproven = form.read(hook, secret: MirrorSecret(Array("other".utf8))) else {
            Issue.record("another secret")
            return
        }
    }
}

extension JSONValue {
    /// The same with the members of all objects in one order.
    var sorted: JSONValue {
        switch self {
        case .array(let values): .array(values.map(\.sorted))
        case .object(let members):
            .object(members.map { Member($0.key, $0.value.sorted) }.sorted { $0.key < $1.key })
        default: self
        }
    }
}
