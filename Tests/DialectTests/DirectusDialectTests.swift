import ChatModel
import Dialects
import JSONText
import Testing

@Suite("Directus dialect")
struct DirectusDialectTests {
    static let fixtures = Result { try FixtureSet("directus") }
    static var inLines: [FixtureLine] { (try? fixtures.get().inLines) ?? [] }
    static var outLines: [FixtureLine] { (try? fixtures.get().outLines) ?? [] }

    private static func dialect(_ options: String) throws -> DirectusDialect {
        try DirectusDialect(DialectOptions(try JSONValue(parsing: options)))
    }

    @Test("the fixtures are there")
    func fixturesAreThere() throws {
        #expect(try Self.fixtures.get().inLines.count == 58)
        #expect(try Self.fixtures.get().outLines.count == 14)
    }

    @Test("a frame decodes as its fixture says", arguments: inLines)
    func decodes(_ line: FixtureLine) throws {
        let fixtures = try Self.fixtures.get()
        #expect(fixtures.verifyIn(line, try DirectusDialect(DialectOptions(fixtures.options))) == nil)
    }

    @Test("a command encodes as its fixture says", arguments: outLines)
    func encodes(_ line: FixtureLine) throws {
        let fixtures = try Self.fixtures.get()
        let difference = try fixtures.verifyOut(line, try DirectusDialect(DialectOptions(fixtures.options)))
        #expect(difference == nil)
    }

    @Test("a frame cut anywhere is malformed", arguments: inLines.prefix(10))
    func cuts(_ line: FixtureLine) throws {
        let bytes = try #require(line.frameBytes)
        for length in 0..<bytes.count {
            #expect(try decode(Array(bytes.prefix(length))) == .dropped(.malformed, typeKey: nil), "\(length) bytes")
        }
    }

    // MARK: - Reading

    @Test(
        "a frame that gives nothing is dropped under its type",
        arguments: [
            (#"{"type":"subscription"}"#, .unknownType, "subscription"),
            (#"{"type":"subscription","event":null}"#, .unknownType, "subscription"),
            (#"{"type":"subscription","event":"create"}"#, .missingField, "subscription"),
            (#"{"type":"subscription","event":"update","data":null}"#, .missingField, "subscription"),
            (#"{"type":"subscription","event":"delete","data":[{},null]}"#, .missingField, "subscription"),
            (#"{"type":"typing","name":"Jo","state":"start"}"#, .unknownType, "typing"),
            (#"{"type":7}"#, .unknownType, "7"), (#"{"type":null}"#, .missingField, nil),
        ] as [(String, DropReason, String?)])
    func drops(_ frame: String, _ reason: DropReason, _ typeKey: String?) throws {
        #expect(try decode(frame) == .dropped(reason, typeKey: typeKey))
    }

    @Test("the order of a frame's members means nothing, and the last of members with one name counts")
    func memberOrder() throws {
        let row = #"{"id":1,"text":"x"}"#
        let wanted = DecodedFrame.events([.message(ChatMessage(id: ChatID("1"), text: "x"))])
        for frame in [
            #"{"type":"subscription","event":"create","data":[\#(row)],"uid":"s:a"}"#,
            #"{"data":[\#(row)],"event":"create","type":"subscription"}"#,
            #"{"type":"subscription","data":[\#(row)],"event":"create"}"#,
            #"{"type":"subscription","event":"create","data":[5,[],{},null,\#(row),{"id":2}]}"#,
            #"{"type":"subscription","event":"create","data":[{"id":9,"text":"no"}],"data":[\#(row)]}"#,
            #"{"type":"subscription","event":"create","data":[\#(row)],"more":[],"uid":5}"#,
            #"{"type":"auth","type":"subscription","event":"init","event":"create","data":[\#(row)]}"#,
        ] { #expect(try decode(frame) == wanted, "\(frame)") }
        #expect(
            try decode(#"{"type":"subscription","event":"create","data":[\#(row)],"event":"delete"}"#)
                == .dropped(.missingField, typeKey: "subscription"))
        #expect(
            try decode(#"{"type":"subscription","event":"create","data":[\#(row)],"type":"pong"}"#)
                == .events([.pong(ref: nil)]))
        #expect(
            try decode(#"{"type":"subscription","event":"create","data":[\#(row)],"status":"error"}"#)
                == .events([.error(ChatError(code: "UNKNOWN", text: "", isFatal: false))]))
        #expect(
            try decode(#"{"type":"subscription","event":"create","data":[\#(row)],"data":null}"#)
                == .dropped(.missingField, typeKey: "subscription"))
        #expect(try decode(#"{"type":"subscription","event":"create","data":[]}"#) == .events([]))
        for frame in [
            #"{"type":"subscription","event":"create","data":[\#(row)"#,
            #"{"type":"subscription","event":"create","data":[\#(row),]}"#,
            #"{"type":"subscription","event":"create","data":[{}{}]}"#,
        ] {
            #expect(try decode(frame) == .dropped(.malformed, typeKey: nil))
        }
    }

    @Test(
        "the last of a row's members with one name counts, an account as an object or as its id",
        arguments: [
            (#""user_created":"u","user_created":{"id":"v","first_name":"Jo"}"#, "v", "Jo"),
            (#""user_created":{"id":"v","first_name":"Jo"},"user_created":"u""#, "u", nil),
            (#""user_created":{"id":"v","first_name":"Jo"},"user_created":{"id":"w"}"#, "w", nil),
            (#""user_created":{"id":"v"},"user_created":null"#, nil, nil),
            (#""user_created":{"id":"v","id":null,"last_name":"Jo"}"#, nil, "Jo"),
            (#""user_created":{"first_name":"a\tb","last_name":"é"}"#, nil, "a\tb é"),
            (#""user_created":{"first_name":"","last_name":"Jo"}"#, nil, "Jo"),
            (#""user_created":{"first_name":"Wes","last_name":"Müller-Lüdenscheidt"}"#, nil, "Wes Müller-Lüdenscheidt"),
            (#""user_created":{},"file":null"#, nil, nil), (#""user_\u0063reated":{"id":"v"}"#, "v", nil),
        ] as [(String, String?, String?)])
    func rowMembers(_ members: String, _ id: String?, _ name: String?) throws {
        var message = ChatMessage(id: ChatID("1"), sender: ChatPerson(id: id.map { ChatID($0) }, name: name), text: "x")
        message.isUnderOwnName = name != nil
        let row = #"{"id":1,"text":"x",\#(members)}"#
        // Rows are read where they stand, or afterwards when the frame says only then what they are.
        for frame in [
            #"{"type":"subscription","event":"create","data":[\#(row)]}"#,
            #"{"data":[\#(row)],"type":"subscription","event":"create"}"#,
        ] { #expect(try decode(frame) == .events([.message(message)]), "\(frame)") }
    }

    @Test("columns are told apart by their names, however long these are and whatever they share")
    func columnNames() throws {
        let names = [
            "a", "bb", "bc", "ccc", "dddd", "eeeeeeeee", "eeeeeeeef", "f2345678901234567", "f2345678901234568",
            "g234567890123456",
        ]
        let options = ["id", "text", "room", "user", "date", "updated", "sender_name", "client_id", "file", "reply_to"]
        let fields = zip(options, names).map { #""\#($0)":"\#($1)""# }.joined(separator: ",")
        let dialect = try Self.dialect(#"{"fields":{\#(fields)}}"#)
        let row =
            #"{"a":1,"bb":"x","bc":"attic","ccc":"u","dddd":1763695136,"eeeeeeeef":"Jo","f2345678901234567":"c","#
            + #""f2345678901234568":{"id":"f"},"g234567890123456":7,"eeeeeeeeg":"no","":"no","f2345678901234569":"no"}"#
        let message = ChatMessage(
            id: ChatID("1"), room: "attic", sender: ChatPerson(id: ChatID("u"), name: "Jo"), text: "x",
            at: ChatTimestamp(milliseconds: 1_763_695_136_000),
            attachments: [ChatAttachment(kind: .file, url: "/assets/f")], replyTo: ChatID("7"), ref: "c")
        let frame = Array(#"{"type":"subscription","event":"create","data":[\#(row)]}"#.utf8)
        #expect(try decode(frame, dialect) == .events([.message(message)]))
    }

    @Test("an error without its object is an error all the same")
    func errors() throws {
        #expect(
            try decode(#"{"type":"items","status":"error","error":"x","uid":5}"#)
                == .events([.error(ChatError(code: "UNKNOWN", text: "", isFatal: false, ref: "5"))]))
        #expect(
            try decode(#"{"status":"error","error":{"code":"X"},"type":{}}"#)
                == .events([.error(ChatError(code: "X", text: "", isFatal: false))]))
    }

    @Test("history is put in order by time, then by number, then as it came")
    func order() throws {
        func row(_ id: String, _ second: Int, _ text: String) -> String {
            #"{"id":\#(id),"text":"\#(text)","date_created":"2025-11-21T03:18:0\#(second)Z"}"#
        }
        let rows = [
            row("10", 2, "e"), row("9", 2, "d"), row(#""x""#, 2, "b"), row(#""y""#, 2, "c"), row("12", 1, "a"),
            #"{"id":99,"text":"timeless"}"#,
        ]
        let decoded = try decode(#"{"type":"items","uid":"h:","data":[\#(rows.joined(separator: ","))]}"#)
        guard let events = decoded.events, case .history(let history) = events.first else {
            Issue.record("\(decoded)")
            return
        }
        #expect(history.ref == nil)
        #expect(history.messages.map(\.text) == ["timeless", "a", "b", "c", "d", "e"])
    }

    @Test("an answer to a create names the row as far as we may see it")
    func answers() throws {
        func receipt(_ data: String) throws -> [ChatID]? {
            let decoded = try decode(#"{"type":"items","uid":"m:c:1","data":\#(data)}"#)
            guard let events = decoded.events, case .receipt(let receipt) = events.first else { return nil }
            #expect(receipt.ref == "c:1")
            #expect(receipt.state == .sent)
            return receipt.ids
        }
        #expect(try receipt(#"{"id":7}"#) == [ChatID("7")])
        #expect(try receipt(#"[{"id":7},{"id":"8"},9,{}]"#) == [ChatID("7"), ChatID("8")])
        #expect(try receipt("null") == [])
        #expect(try receipt("7") == [])
        for uid in ["e:1", "d:", "s:attic", "x", "m", ""] {
            #expect(try decode(#"{"type":"items","uid":"\#(uid)","data":{"id":7}}"#) == .events([]), "\(uid)")
        }
    }

    @Test("an answer to a delete names the row that we asked about, whatever it brings", arguments: ["[7]", "null"])
    func answersToDeletes(data: String) throws {
        let decoded = try decode(#"{"type":"items","uid":"d:7","data":\#(data)}"#)
        #expect(decoded == .events([.receipt(ChatReceipt(state: .sent, ids: [ChatID("7")], ref: "d:7"))]))
    }

    @Test(
        "a server with too much to do says in words how long it wants to be left alone",
        arguments: [
            ("Too many messages, retry after 500ms.", 500), ("Too many requests, retry after 2s.", 2000),
            ("retry after 1m", 60_000), ("retry after 1h", 3_600_000), ("retry after 3d.", 259_200_000),
            ("retry after 0ms", 0), ("Too many", 1000), ("retry after ", 1000), ("retry after soon", 1000),
            ("retry after 5 fortnights", 1000), ("retry after 99999999999999999999ms", 1000), ("", 1000),
        ] as [(String, Int64)])
    func wait(text: String, milliseconds: Int64) throws {
        func error(_ code: String) throws -> ChatError? {
            let frame = #"{"type":"server","status":"error","error":{"code":"\#(code)","message":"\#(text)"}}"#
            guard case .error(let error) = (try decode(frame)).events?.first else { return nil }
            return error
        }
        #expect(try error("REQUESTS_EXCEEDED")?.retryAfterMilliseconds == milliseconds)
        #expect(try error("FORBIDDEN")?.retryAfterMilliseconds == nil)
    }

    @Test(
        "a file is linked where the bridge's account got it, with a row of the room",
        arguments: [
            (#""room":"attic","file":{"id":"f"}"#, true, true), (#""room":"attic","file":"f""#, false, true),
            (#""room":"cellar","file":{"id":"f"}"#, false, true), (#""file":{"id":"f"}"#, false, true),
            (#""room":null,"file":{"id":"f"}"#, false, true),
        ])
    func fileOfRow(_ members: String, _ isLinked: Bool, _ isLinkedInPublic: Bool) throws {
        for (options, isLinked) in [("{}", isLinked), (#"{"public_files":true}"#, isLinkedInPublic)] {
            for event in ["create", "update"] {
                let frame = #"{"type":"subscription","event":"\#(event)","data":[{"id":1,"text":"x",\#(members)}]}"#
                let said = try decode(Array(frame.utf8), try Self.dialect(options)).events?.first
                let attachments: [ChatAttachment] =
                    switch said {
                    case .message(let message): message.attachments
                    case .edit(let edit): edit.attachments
                    default: []
                    }
                #expect(attachments.map(\.url) == [isLinked ? "/assets/f" : nil], "\(options) \(event)")
            }
        }
        // A collection of one room has no column for it.
        let one = #"{"type":"subscription","event":"create","data":{"id":1,"file":{"id":"f"}}}"#
        let message = try decode(Array(one.utf8), try Self.dialect(#"{"fields":{"room":""}}"#)).events?.first
        guard case .message(let message)? = message else {
            Issue.record("no message")
            return
        }
        #expect(message.attachments.map(\.url) == ["/assets/f"])
    }

    @Test("a file never leads off its path")
    func files() throws {
        func url(_ id: String) throws -> String? {
            let frame = #"{"type":"subscription","event":"create","data":{"id":1,"room":"attic","file":\#(id)}}"#
            guard let events = (try decode(frame)).events, case .message(let message) = events.first else {
                return "no message"
            }
            return message.attachments.first?.url
        }
        #expect(try url(#"{"id":"a b/../c?d#e"}"#) == "https://directus.example/assets/a%20b%2F..%2Fc%3Fd%23e")
        #expect(try url(#"{"id":"é"}"#) == "https://directus.example/assets/%C3%A9")
        for id in [#""..""#, #"".""#, #""a\r\nb""#, #""a\u0000""#, #""a\u007f""#] {
            #expect(try url(#"{"id":\#(id)}"#) == nil)
        }
        #expect(try url(#"{"type":"image/png"}"#) == "no message")
        #expect(try url(#""""#) == "no message")
    }

    @Test("without a base a file's address begins at the root, and slashes at its end do not double")
    func bases() throws {
        let frame = Array(
            #"{"type":"subscription","event":"create","data":{"id":1,"room":"attic","file":{"id":"f"}}}"#.utf8)
        for (options, url) in [
            ("{}", "/assets/f"), (#"{"base":"https://x/cms//"}"#, "https://x/cms/assets/f"),
            (#"{"base":"/"}"#, "/assets/f"),
        ] {
            let attachment = ChatAttachment(kind: .file, url: url)
            #expect(
                try decode(frame, try Self.dialect(options))
                    == .events([
                        .message(ChatMessage(id: ChatID("1"), room: "attic", text: "", attachments: [attachment]))
                    ]))
        }
    }

    // MARK: - Options

    @Test("columns go by the names that the options give them, both ways")
    func columns() throws {
        let dialect = try Self.dialect(
            #"{"collection":"lines","fields":{"id":"key","text":"b\"dy","room":"channel","user":"author","date":"at","#
                + #""updated":"changed","sender_name":"alias","client_id":"nonce","file":"picture","reply_to":"parent"},"#
                + #""send_sender_name":true,"send_client_id":true}"#)
        let row =
            #"{"key":1,"b\"dy":"x","channel":5,"author":"u","at":"2025-11-21T03:18:56Z","changed":"2025-11-21T03:18:57Z","#
            + #""alias":"Jo","nonce":"c","picture":"f","parent":0,"text":"no","id":9,"room":"no"}"#
        let message = ChatMessage(
            id: ChatID("1"), room: "5", sender: ChatPerson(id: ChatID("u"), name: "Jo"), text: "x",
            at: ChatTimestamp(milliseconds: 1_763_695_136_000),
            attachments: [ChatAttachment(kind: .file)], replyTo: ChatID("0"), ref: "c")
        let created = try decode(Array(#"{"type":"subscription","event":"create","data":[\#(row)]}"#.utf8), dialect)
        #expect(created == .events([.message(message)]))
        let updated = try decode(Array(#"{"type":"subscription","event":"update","data":\#(row)}"#.utf8), dialect)
        let edit = ChatEdit(
            id: ChatID("1"), text: "x", room: "5", sender: message.sender,
            at: ChatTimestamp(milliseconds: 1_763_695_137_000), attachments: message.attachments)
        #expect(updated == .events([.edit(edit)]))
        let answer = try decode(Array(#"{"type":"items","uid":"m:c","data":{"key":3,"id":4}}"#.utf8), dialect)
        #expect(answer == .events([.receipt(ChatReceipt(state: .sent, ids: [ChatID("3")], ref: "c"))]))

        var outgoing = message
        outgoing.attachments[0].fileID = "f"
        #expect(
            try encoded(.message(outgoing), dialect)
                == #"{"type":"items","action":"create","collection":"lines","uid":"m:1","data":{"b\"dy":"x","channel":5,"#
                + #""alias":"Jo","nonce":"1","parent":0,"picture":"f"}}"#)
        #expect(
            try encoded(.subscribe(room: "den", limit: nil), dialect)
                == #"{"type":"subscribe","collection":"lines","uid":"s:den","query":{"fields":["*","author.id","#
                + #""author.first_name","author.last_name","picture.*"],"filter":{"_and":[{"channel":{"_eq":"den"}}]},"#
                + #""sort":["-at","-key"],"limit":50}}"#)
    }

    @Test("what a collection does not have is neither asked for nor written")
    func fewColumns() throws {
        let dialect = try Self.dialect(
            #"{"fields":{"room":"","user":"","sender_name":"","client_id":"","file":"","reply_to":"","updated":""}}"#)
        #expect(
            try encoded(.subscribe(room: nil, limit: 3), dialect)
                == #"{"type":"subscribe","collection":"messages","uid":"s:attic","query":{"fields":["*"],"#
                + #""sort":["-date_created","-id"],"limit":3}}"#)
        let file = ChatAttachment(kind: .image, url: "https://f/1", fileID: "f")
        let message = ChatMessage(id: ChatID("c"), text: "x", attachments: [file], replyTo: ChatID("1"))
        #expect(
            try encoded(.message(message), dialect)
                == #"{"type":"items","action":"create","collection":"messages","uid":"m:c","data":{"text":"x\nhttps://f/1"}}"#
        )
        let frame = #"{"type":"subscription","event":"create","data":{"id":1,"text":"x","room":"r","":"y","file":"f"}}"#
        #expect(try decode(Array(frame.utf8), dialect) == .events([.message(ChatMessage(id: ChatID("1"), text: "x"))]))
    }

    @Test("with the extension, typing goes both ways")
    func typing() throws {
        let dialect = try Self.dialect(#"{"typing":"extension"}"#)
        #expect(dialect.traits.typingOut == .startStop)
        let jo = ChatPerson(name: "Jo")
        #expect(
            try encoded(.typing(ChatTyping(state: .stop, sender: jo)), dialect)
                == #"{"type":"typing","room":"attic","name":"Jo","state":"stop"}"#)
        let started = #"{"type":"typing","room":"attic","user":"u","name":"Jo","state":"start"}"#
        #expect(
            try decode(Array(started.utf8), dialect)
                == .events([
                    .typing(
                        ChatTyping(
                            state: .start, sender: ChatPerson(id: ChatID("u"), name: "Jo"), room: "attic",
                            ttlMilliseconds: 3000))
                ]))
        for frame in [#"{"type":"typing","name":"Jo"}"#, #"{"type":"typing","state":"stop"}"#] {
            #expect(try decode(Array(frame.utf8), dialect) == .dropped(.missingField, typeKey: "typing"))
        }
        let nameless = ChatTyping(state: .start, sender: ChatPerson(id: ChatID("u")))
        #expect(dialect.encode(.typing(nameless), context: Self.context) == .unsupported(.missingField))
    }

    @Test(
        "wrong options are refused where they stand",
        arguments: [
            RefusedOptions(#"{"colection":"x"}"#, "colection"), RefusedOptions(#"{"collection":""}"#, "collection"),
            RefusedOptions(#"{"collection":".."}"#, "collection"), RefusedOptions(#"{"collection":5}"#, "collection"),
            RefusedOptions(#"{"base":5}"#, "base"), RefusedOptions(#"{"fields":"x"}"#, "fields"),
            RefusedOptions(#"{"fields":{"txet":"x"}}"#, "fields", "txet"),
            RefusedOptions(#"{"fields":{"text":""}}"#, "fields", "text"),
            RefusedOptions(#"{"fields":{"id":""}}"#, "fields", "id"),
            RefusedOptions(#"{"fields":{"date":""}}"#, "fields", "date"),
            RefusedOptions(#"{"fields":{"room":7}}"#, "fields", "room"),
            RefusedOptions(#"{"fields":{"room":"text"}}"#, "fields", "room"),
            RefusedOptions(#"{"filter":"x"}"#, "filter"), RefusedOptions(#"{"filter":[]}"#, "filter"),
            RefusedOptions(#"{"send_sender_name":1}"#, "send_sender_name"),
            RefusedOptions(#"{"send_sender_name":true,"fields":{"sender_name":""}}"#, "send_sender_name"),
            RefusedOptions(#"{"send_client_id":"no"}"#, "send_client_id"),
            RefusedOptions(#"{"send_client_id":true,"fields":{"client_id":""}}"#, "send_client_id"),
            RefusedOptions(#"{"typing":"on"}"#, "typing"), RefusedOptions(#"{"typing":true}"#, "typing"),
        ])
    func refused(_ row: RefusedOptions) throws {
        let path = try row.errorPath { options throws(DialectOptionError) in _ = try DirectusDialect(options) }
        #expect(path == row.path)
    }

    // MARK: - Writing

    private static let context = DialectContext(
        selfIDs: [ChatID("22222222-aaaa-4bbb-8ccc-000000000002")], selfNames: ["Bea"], room: "attic")

    private func encoded(_ command: ChatCommand, _ dialect: DirectusDialect) throws -> String? {
        guard let frames = dialect.encode(command, context: Self.context).frames else { return nil }
        #expect(frames.count == 1 && !frames[0].isBinary)
        return String(decoding: frames[0].bytes, as: UTF8.self)
    }

    @Test(
        "what looks like a number is written as one, and nothing else",
        arguments: [
            ("0", "0"), ("42", "42"), ("999999999999999", "999999999999999"),
            ("1000000000000000", #""1000000000000000""#), ("007", #""007""#), ("-1", #""-1""#), ("1.0", #""1.0""#),
            ("１", #""１""#), ("", #""""#), ("a1", #""a1""#),
        ])
    func keys(_ id: String, _ json: String) throws {
        #expect(
            try encoded(.delete(ChatDelete(ids: [ChatID(id)])), try Self.dialect("{}"))
                == #"{"type":"items","action":"delete","collection":"messages","uid":"d:\#(id)","ids":[\#(json)]}"#)
    }

    @Test(
        "a time is written in milliseconds of UTC",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1, "1970-01-01T00:00:00.001Z"), (-5, "1970-01-01T00:00:00.000Z"),
            (951_827_696_789, "2000-02-29T12:34:56.789Z"), (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"), (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"), (Int64.max, "9999-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func times(_ milliseconds: Int64, _ text: String) throws {
        let fetch = ChatCommand.fetch(
            room: nil, ref: nil, limit: 1, before: nil, since: ChatTimestamp(milliseconds: milliseconds))
        let frame = try JSONValue(parsing: try #require(try encoded(fetch, try Self.dialect("{}"))))
        #expect(
            frame["query"]?["filter"]?["_and"]?.array?.last
                == .object([
                    .init("date_created", .object([.init("_gt", .string(text))]))
                ]))
    }

    @Test("a fetch asks for a page, or for everything since a time")
    func limits() throws {
        func limit(_ limit: Int?, since: Int64?) throws -> Int64? {
            let fetch = ChatCommand.fetch(
                room: "den", ref: "q", limit: limit, before: nil, since: since.map { ChatTimestamp(milliseconds: $0) })
            return try JSONValue(parsing: try #require(try encoded(fetch, try Self.dialect("{}"))))["query"]?["limit"]?
                .integer
        }
        #expect(try limit(nil, since: nil) == 50)
        #expect(try limit(nil, since: 5) == -1)
        #expect(try limit(7, since: 5) == 7)
    }

    @Test("credentials carry their reference, and nothing of them is in a description")
    func credentials() throws {
        let dialect = try Self.dialect("{}")
        #expect(
            try encoded(.auth(.accessToken("T"), ref: "a1"), dialect)
                == #"{"type":"auth","access_token":"T","uid":"a1"}"#)
        #expect(
            try encoded(.auth(.password(email: "e", password: "p\""), ref: nil), dialect)
                == #"{"type":"auth","email":"e","password":"p\""}"#)
    }

    @Test("a command without what the wire insists on, or without a frame, is not written")
    func incomplete() throws {
        let dialect = try Self.dialect("{}")
        func encode(_ command: ChatCommand) -> EncodedCommand { dialect.encode(command, context: Self.context) }
        #expect(encode(.message(ChatMessage(text: "x"))) == .unsupported(.missingField))
        #expect(encode(.delete(ChatDelete(ids: []))) == .unsupported(.missingField))
        let us = ChatPerson(name: "Bea")
        for command: ChatCommand in [
            .typing(ChatTyping(state: .start, sender: us)), .join(ChatMembership(user: us)),
            .leave(ChatMembership(user: us)), .presence(ChatPresence(user: us, state: .away)),
            .receipt(ChatReceipt(state: .read, ids: [ChatID("1")], by: us)),
        ] { #expect(encode(command) == .unsupported(.unsupported)) }
        let long = ChatMessage(id: ChatID("c"), text: String(repeating: "x", count: dialect.traits.maxFrameBytes))
        #expect(encode(.message(long)) == .unsupported(.tooLong))
    }

    @Test("of several files the first goes into the row and the others into the text")
    func severalFiles() throws {
        let files = [
            ChatAttachment(kind: .image, url: "https://f/0"),
            ChatAttachment(kind: .image, url: "https://f/1", fileID: "a"),
            ChatAttachment(kind: .file, url: "https://f/2", fileID: "b"),
        ]
        let message = ChatMessage(id: ChatID("c"), text: "x", attachments: files)
        #expect(
            try encoded(.message(message), try Self.dialect(#"{"fields":{"room":""}}"#))
                == #"{"type":"items","action":"create","collection":"messages","uid":"m:c","#
                + #""data":{"text":"x\nhttps://f/0\nhttps://f/2","file":"a"}}"#)
    }

    // MARK: - Noise

    @Test("random and spoilt frames end in events or a drop", arguments: 0..<8)
    func noise(_ seed: UInt64) throws {
        let words = [
            "type", "event", "data", "uid", "status", "error", "subscription", "items", "auth", "init", "create",
            "update", "delete", "id", "text", "room", "user_created", "file", "date_created", "m:1", "h:1", "typing",
            "state", "start", "name",
        ].map { "\"\($0)\"" }
        var source = NoiseSource(seed: seed, frames: Self.inLines.compactMap(\.frameBytes), words: words)
        let dialect = try Self.dialect(#"{"typing":"extension","base":"https://x"}"#)
        var drops = 0
        var events = 0
        for _ in 0..<3000 {
            switch try decode(source.next(), dialect) {
            case .event, .several: events += 1
            case .dropped: drops += 1
            }
        }
        #expect(drops > events)
        #expect(events > 0)
    }

    private func decode(_ text: String) throws -> DecodedFrame { try decode(Array(text.utf8)) }

    private func decode(_ bytes: [UInt8], _ dialect: DirectusDialect? = nil) throws -> DecodedFrame {
        let dialect = try dialect ?? Self.dialect(#"{"base":"https://directus.example"}"#)
        return bytes.withUnsafeBytes { dialect.decode($0, isBinary: false, context: Self.context) }
    }
}
