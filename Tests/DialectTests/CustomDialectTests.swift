import ChatModel
import DescribedDialects
import Dialects
import JSONText
import Testing

@Suite("Custom dialect")
struct CustomDialectTests {
    static let fixtures = Result { try FixtureSet("custom") }
    static var inLines: [FixtureLine] { (try? fixtures.get().inLines) ?? [] }
    static var outLines: [FixtureLine] { (try? fixtures.get().outLines) ?? [] }

    static func dialect() throws -> CustomDialect {
        CustomDialect(try CustomDefinition(try #require(fixtures.get().options["custom"])))
    }

    @Test("the fixtures are there")
    func fixturesAreThere() throws {
        #expect(try Self.fixtures.get().inLines.count == 39)
        #expect(try Self.fixtures.get().outLines.count == 8)
    }

    @Test("a frame decodes as its fixture says", arguments: inLines)
    func decodes(_ line: FixtureLine) throws {
        let difference = try Self.fixtures.get().verifyIn(line, Self.dialect())
        #expect(difference == nil)
    }

    @Test("a command encodes as its fixture says", arguments: outLines)
    func encodes(_ line: FixtureLine) throws {
        let difference = try Self.fixtures.get().verifyOut(line, Self.dialect())
        #expect(difference == nil)
    }

    @Test("a frame cut anywhere is malformed")
    func cuts() throws {
        let bytes = try #require(Self.inLines.first?.frameBytes)
        for length in 0..<bytes.count {
            let decoded = try decode(Self.dialect(), Array(bytes.prefix(length)))
            #expect(decoded == .dropped(.malformed, typeKey: nil), "\(length) bytes")
        }
    }

    // MARK: - Reading

    struct Reading: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let definition: String
        let frame: String
        let event: String

        init(_ description: String, _ definition: String, _ frame: String, _ event: String) {
            testDescription = description
            self.definition = definition
            self.frame = frame
            self.event = event
        }
    }

    private static let text = #""event":"message","fields":{"text":"/t""#

    static let readings = [
        Reading("numbers are equal by value", #"{"when":{"/a":1},\#(text)}}"#, #"{"a":1.0,"t":"x"}"#, "x"),
        Reading("a number is no text", #"{"when":{"/a":1},\#(text)}}"#, #"{"a":"1","t":"x"}"#, "unknown-type"),
        Reading(
            "an object is equal in any order", #"{"when":{"/a":{"not":{"x":1,"y":2}}},\#(text)}}"#,
            #"{"a":{"y":2,"x":1},"t":"x"}"#, "unknown-type"),
        Reading("not is true of what is missing", #"{"when":{"/a":{"not":1}},\#(text)}}"#, #"{"t":"x"}"#, "x"),
        Reading("not of a list", #"{"when":{"/a":{"not":[1,2]}},\#(text)}}"#, #"{"a":2,"t":"x"}"#, "unknown-type"),
        Reading("null is a value", #"{"when":{"/a":null},\#(text)}}"#, #"{"a":null,"t":"x"}"#, "x"),
        Reading("missing is not null", #"{"when":{"/a":null},\#(text)}}"#, #"{"t":"x"}"#, "unknown-type"),
        Reading("type", #"{"when":{"/a":{"type":"array"}},\#(text)}}"#, #"{"a":[],"t":"x"}"#, "x"),
        Reading(
            "type null is no missing value", #"{"when":{"/a":{"type":"null"}},\#(text)}}"#, #"{"t":"x"}"#,
            "unknown-type"),
        Reading(
            "several demands at one place", #"{"when":{"/a":{"prefix":"x","not":"xy"}},\#(text)}}"#,
            #"{"a":"xz","t":"x"}"#, "x"),
        Reading("exists is false", #"{"when":{"/a":{"exists":false}},\#(text)}}"#, #"{"t":"x"}"#, "x"),
        Reading("an escaped name is the name", #"{"when":{"/a":1},\#(text)}}"#, #"{"\u0061":1,"t":"x"}"#, "x"),
        Reading("an escaped value is the value", #"{"when":{"/a":"b"},\#(text)}}"#, #"{"a":"\u0062","t":"x"}"#, "x"),
        Reading(
            "the last of members with one name counts", #"{"when":{"/a/b":1},\#(text)}}"#,
            #"{"a":{"b":1},"a":{},"t":"x"}"#, "unknown-type"),
        Reading(
            "places in arrays", #"{"when":{"/1/0":"m"},"event":"message","fields":{"text":"/2"}}"#,
            #"[0,["m"],"x"]"#, "x"),
        Reading("a name that looks like a place", #"{"when":{"/0":"m"},\#(text)}}"#, #"{"0":"m","t":"x"}"#, "x"),
        Reading(
            "slash and tilde in names", #"{"event":"message","fields":{"text":"/a~1b/~0"}}"#,
            #"{"a/b":{"~":"x"}}"#, "x"),
        Reading("the empty pointer is the frame", #"{"when":{"":{"type":"object"}},\#(text)}}"#, #"{"t":"x"}"#, "x"),
        Reading("objects give their JSON", #"{\#(text)}}"#, #"{"t":{"a": [1]}}"#, #"{"a": [1]}"#),
        Reading(
            "a default for a missing value",
            #"{"event":"message","fields":{"text":{"ptr":"/t","default":"none"}}}"#, "{}", "none"),
        Reading(
            "a map by JSON text", #"{"event":"message","fields":{"text":{"ptr":"/t","map":{"true":"yes"}}}}"#,
            #"{"t":true}"#, "yes"),
        Reading(
            "a value that is not in the map is missing",
            #"{"event":"message","fields":{"text":[{"ptr":"/t","map":{"a":"b"}},"/u"]}}"#, #"{"t":"c","u":"x"}"#, "x"),
        Reading(
            "as int of a fraction", #"{"event":"message","fields":{"text":{"ptr":"/t","as":"int"}}}"#,
            #"{"t":3.9}"#, "3"),
        Reading(
            "as int of digits in a string", #"{"event":"message","fields":{"text":{"ptr":"/t","as":"int"}}}"#,
            #"{"t":"39"}"#, "39"),
        Reading(
            "as int of a string with more than digits",
            #"{"event":"message","fields":{"text":{"ptr":"/t","as":"int"}}}"#, #"{"t":"3x"}"#, "missing-field"),
        Reading(
            "as bool of a text", #"{"event":"message","fields":{"text":{"ptr":"/t","as":"bool"}}}"#,
            #"{"t":"true"}"#, "missing-field"),
        Reading(
            "a state that is none", #"{"event":"typing","fields":{"state":"/s"}}"#, #"{"s":"maybe"}"#, "wrong-type"),
        Reading("a scalar", #"{\#(text)}}"#, #""x""#, "not-object"),
    ]

    @Test("a rule reads", arguments: readings)
    func reads(_ row: Reading) throws {
        let dialect = try Self.dialect(#"{"decode":[\#(row.definition)]}"#)
        let decoded = decode(dialect, Array(row.frame.utf8))
        if case .dropped(let reason, _) = decoded {
            #expect(reason.rawValue == row.event)
            return
        }
        #expect(decoded == .events([.message(ChatMessage(text: row.event))]))
    }

    @Test(
        "a dropped frame says which rule it did not fit, and at what",
        arguments: [
            (#"{"k":"msg"}"#, 0, "text or attachments"), (#"{"k":"edit","t":"hi"}"#, 1, "id"),
            (#"{"k":"edit","i":1}"#, 1, "text"), (#"{"k":"list","l":7}"#, 2, "each"),
            (#"{"k":"type","s":"maybe"}"#, 3, "state"), (#"{"k":"type"}"#, 3, "state"),
            (#"{"k":"sent"}"#, 4, "ids"), (#"{"k":"other","t":"hi"}"#, nil, nil), ("7", nil, nil),
            (#"{"k":"msg","t":"hi"}"#, 0, nil), (#"{"k":"act","s":"start","n":""}"#, 5, "sender.id or sender.name"),
            (#"{"k":"act","s":"start","n":"Vega"}"#, 5, nil), (#"{"k":"type","s":"start"}"#, 3, nil),
        ] as [(String, Int?, String?)])
    func dropPlaces(_ frame: String, _ rule: Int?, _ field: String?) throws {
        let dialect = try Self.dialect(
            #"""
            {"decode":[
             {"when":{"/k":"msg"},"event":"message","fields":{"text":"/t"}},
             {"when":{"/k":"edit"},"event":"edit","fields":{"id":"/i","text":"/t"}},
             {"when":{"/k":"list"},"event":"join","each":"/l","fields":{"user.id":"/id"}},
             {"when":{"/k":"type"},"event":"typing","fields":{"state":"/s"}},
             {"when":{"/k":"sent"},"event":"receipt","fields":{"state":{"const":"sent"},"ids":"/i"}},
             {"when":{"/k":"act"},"event":"typing","fields":{"state":"/s","sender.name":"/n"}}]}
            """#)
        let explanation = Array(frame.utf8).withUnsafeBytes {
            dialect.explain($0, context: DialectContext(room: "room"))
        }
        #expect(explanation.rule == rule)
        #expect(explanation.field == field)
    }

    @Test("a frame that several rules read is dropped by the first of them")
    func firstDropPlace() throws {
        let dialect = try Self.dialect(
            #"""
            {"decode":[{"event":"self","fields":{"user.id":"/me"},"then":"continue"},
                       {"event":"topic","fields":{"text":"/t"},"when":{"/t":{"exists":true}}}]}
            """#)
        let explanation = Array("{}".utf8).withUnsafeBytes {
            dialect.explain($0, context: DialectContext(room: "room"))
        }
        #expect(explanation.rule == 0 && explanation.field == "user.id or user.name")
    }

    @Test("annotations are read as texts; what is not there, or empty, is left out, and what is long is cut")
    func annotations() throws {
        let dialect = try Self.dialect(
            #"""
            {"decode":[{"event":"message","fields":{"text":"/t","annotations":{
             "+a.b/prio":{"ptr":"/p","map":{"1":"high"}},"+a.b/shop":"/s","+a.b/off":"/o","+a.b/long":"/l"}}}]}
            """#)
        let long = String(repeating: "é", count: 100)
        let decoded = decode(dialect, Array(#"{"t":"x","p":1,"s":"","l":"\#(long)"}"#.utf8))
        let expected = [
            StoredTag(name: "+a.b/prio", value: "high"), StoredTag(name: "+a.b/long", value: String(long.prefix(64))),
        ]
        #expect(decoded == .events([.message(ChatMessage(text: "x", annotations: expected))]))
    }

    @Test(
        "the last of members with one name counts, with all that is below it",
        arguments: [
            (#"{"d":{"a":{"t":"1"}},"d":{"a":{"t":"2"}}}"#, "2"), (#"{"d":{"a":{"t":"1"},"a":{"t":"2"}}}"#, "2"),
            (#"{"d":{"a":{"t":"1"}},"d":{}}"#, "none"), (#"{"d":{"a":{"t":"1"}},"d":5}"#, "none"),
            (#"{"d":{"a":{"t":"1"},"a":null}}"#, "none"), (#"{"d":[{"t":"1"}]}"#, "none"),
            (#"{"d":5,"d":{"\u0061":{"t":"1"}}}"#, "1"), (#"{"x":{"d":{"a":{"t":"1"}}}}"#, "none"),
        ])
    func membersAgain(_ frame: String, _ text: String) throws {
        let dialect = try Self.dialect(
            #"{"decode":[{"event":"message","fields":{"text":{"ptr":"/d/a/t","default":"none"}}}]}"#)
        #expect(decode(dialect, Array(frame.utf8)) == .events([.message(ChatMessage(text: text))]))
        for length in 0..<frame.utf8.count {
            #expect(
                decode(dialect, Array(frame.utf8.prefix(length))) == .dropped(.malformed, typeKey: nil), "\(length)")
        }
    }

    @Test("unwrapping goes on inside what was unwrapped, and leaves alone what is no JSON")
    func unwraps() throws {
        let dialect = try Self.dialect(
            #"""
            {"unwrap":[{"ptr":"/a","as":"base64json"},{"ptr":"/a/b","as":"jsonstring"}],
             "decode":[{"when":{"/a/b/c":{"exists":true}},"event":"message","fields":{"text":"/a/b/c"}},
                       {"event":"system","fields":{"text":"/a"}}]}
            """#)
        // {"b":"{\"c\":\"deep\"}"}
        let frame = #"{"a":"eyJiIjoie1wiY1wiOlwiZGVlcFwifSJ9"}"#
        #expect(decode(dialect, Array(frame.utf8)) == .events([.message(ChatMessage(text: "deep"))]))
        #expect(
            decode(dialect, Array(#"{"a":"%%%"}"#.utf8)) == .events([.system(ChatSystemNotice(text: "%%%"))]))
    }

    @Test("a history of several rooms gives ours, and what names none; one of other rooms gives nothing")
    func historyOfRooms() throws {
        let dialect = try Self.dialect(
            #"{"decode":[{"each":"/a","as":"history","event":"message","fields":{"text":"/t","room":"/r"}}]}"#)
        func texts(_ frame: String) -> [[String]] {
            (decode(dialect, Array(frame.utf8)).events ?? []).map { event in
                guard case .history(let history) = event else { return ["?"] }
                return history.messages.map(\.text)
            }
        }
        #expect(texts(#"{"a":[{"t":"1","r":"attic"},{"t":"2","r":"ops"},{"t":"3"}]}"#) == [["2", "3"]])
        #expect(texts(#"{"a":[{"t":"1","r":"ops"},{"t":"2","r":"attic"}]}"#) == [["1"]])
        #expect(texts(#"{"a":[{"t":"1","r":"attic"}]}"#) == [])
        #expect(texts(#"{"a":[]}"#) == [[]])
    }

    @Test("what the canonical form can say, a rule can make")
    func everyKind() throws {
        let dialect = try Self.dialect(
            #"""
            {"typing":{"ttl":6}, "ready_when":{"/k":"hello"},
             "decode":[
             {"when":{"/k":"edit"},"event":"edit","fields":{"id":"/id","text":"/t","sender.name":"/n"}},
             {"when":{"/k":"typing"},"event":"typing","fields":{"state":{"const":"start"},"sender.name":"/n"}},
             {"when":{"/k":"leave"},"event":"leave","fields":{"user.name":"/n"}},
             {"when":{"/k":"presence"},"event":"presence","fields":{"user.id":"/id","state":"/s"}},
             {"when":{"/k":"reaction"},"event":"reaction","fields":{"target":"/id","emoji":"/t","sender.id":"/n",
                "counts":{"each":"/c","fields":{"emoji":"/e","count":"/n","users":{"each":"/u","ptr":"/id"}}}}},
             {"when":{"/k":"history"},"event":"history","fields":{"ref":"/id",
                "messages":{"each":"/m","fields":{"text":"/t","room":"^/r"}}}},
             {"when":{"/k":"auth"},"event":"auth","fields":{"state":"/s","text":"/t"}},
             {"when":{"/k":"error"},"event":"error","fields":{"code":"/id","fatal":"/f"}},
             {"when":{"/k":"ping"},"event":"ping","fields":{"ref":"/id"}}]}
            """#)
        let rows: [(String, [ChatEvent])] = [
            (
                #"{"k":"edit","id":5,"t":"x","n":"us"}"#,
                [.edit(ChatEdit(id: ChatID("5"), text: "x", sender: ChatPerson(name: "us"), isSelf: true))]
            ),
            (
                #"{"k":"typing","n":"a"}"#,
                [.typing(ChatTyping(state: .start, sender: ChatPerson(name: "a"), ttlMilliseconds: 6000))]
            ),
            (#"{"k":"leave","n":"a"}"#, [.leave(ChatMembership(user: ChatPerson(name: "a")))]),
            (
                #"{"k":"presence","id":"u","s":"away"}"#,
                [.presence(ChatPresence(user: ChatPerson(id: ChatID("u")), state: .away))]
            ),
            (
                #"{"k":"reaction","id":"m","t":"+","n":"u","c":[{"e":"+","n":2,"u":[{"id":1},{"id":"b"}]}]}"#,
                [
                    .reaction(
                        ChatReaction(
                            target: ChatID("m"), emoji: "+", operation: .add, sender: ChatPerson(id: ChatID("u")),
                            counts: [.init(emoji: "+", count: 2, users: ["1", "b"])]))
                ]
            ),
            (
                #"{"k":"history","id":"q","r":"ops","m":[{"t":"a"},{},{"t":"b"}]}"#,
                [
                    .history(
                        ChatHistory(
                            messages: [ChatMessage(room: "ops", text: "a"), ChatMessage(room: "ops", text: "b")],
                            ref: "q"))
                ]
            ),
            (#"{"k":"auth","s":"expired","t":"x"}"#, [.auth(ChatAuth(state: .expired, text: "x"))]),
            (#"{"k":"error","id":7,"f":true}"#, [.error(ChatError(code: "7", text: "", isFatal: true))]),
            (#"{"k":"ping","id":9}"#, [.ping(ref: "9")]),
            (#"{"k":"hello"}"#, [.ready(ChatReady())]),
        ]
        for (frame, events) in rows { #expect(decode(dialect, Array(frame.utf8)) == .events(events), "\(frame)") }
    }

    @Test("several rules speak of one frame, and who we are holds for the rest of it")
    func continued() throws {
        let dialect = try Self.dialect(
            #"""
            {"decode":[
             {"when":{"/k":"hi"},"event":"auth","fields":{"state":{"const":"ok"}},"then":"continue"},
             {"when":{"/k":"hi"},"event":"self","fields":{"user.id":"/you"},"then":"continue"},
             {"when":{"/k":"hi"},"event":"topic","fields":{"text":"/topic"},"then":"continue"},
             {"when":{"/k":"hi"},"each":"/all","event":"join","fields":{"user.id":""}},
             {"when":{"/k":"hi"},"event":"system","fields":{"text":{"const":"never"}}},
             {"when":{"/k":"bye"},"event":"self","fields":{"user.id":"/you"},"then":"continue"}]}
            """#)
        let us = ChatPerson(id: ChatID("me"))
        let rows: [(String, DecodedFrame)] = [
            (
                #"{"k":"hi","you":"me","topic":"soup","all":["me","a"]}"#,
                .events([
                    .auth(ChatAuth(state: .ok)), .account(us), .topic(ChatTopic(text: "soup")),
                    .join(ChatMembership(user: us, isSelf: true)),
                    .join(ChatMembership(user: ChatPerson(id: ChatID("a")))),
                ])
            ),
            // What else there may be is missing.
            (
                #"{"k":"hi","topic":null}"#,
                .events([.auth(ChatAuth(state: .ok)), .topic(ChatTopic(text: ""))])
            ),
            (#"{"k":"bye","you":"me"}"#, .events([.account(us)])),
            (#"{"k":"bye"}"#, .dropped(.missingField, typeKey: "bye")),
        ]
        for (frame, expected) in rows { #expect(decode(dialect, Array(frame.utf8)) == expected, "\(frame)") }
    }

    @Test("a refusal says how long to wait, in seconds or milliseconds, and nonsense says nothing")
    func retries() throws {
        let dialect = try Self.dialect(
            #"{"decode":[{"event":"error","fields":{"code":"/c","retry":"/s","retry_ms":"/ms"}}]}"#)
        let rows: [(String, Int64?)] = [
            (#""s":1.5"#, 1500), (#""s":"2""#, 2000), (#""ms":250"#, 250), (#""s":-1"#, nil), (#""s":1e9"#, nil),
            (#""s":"soon""#, nil), (#""x":1"#, nil),
        ]
        for (member, wait) in rows {
            let decoded = decode(dialect, Array(#"{"c":"slow",\#(member)}"#.utf8))
            #expect(
                decoded
                    == .events([.error(ChatError(code: "slow", text: "", isFatal: false, retryAfterMilliseconds: wait))]
                    ),
                "\(member)")
        }
    }

    @Test("a refusal says what it means for the room, by the codes that the description names")
    func roomStates() throws {
        let dialect = try Self.dialect(
            #"{"decode":[{"event":"error","fields":{"code":"/c","room_state":{"ptr":"/c","map":{"none":"unknown","old":"read-only"}}}}]}"#
        )
        let rows: [(String, ChatError.RoomState?)] = [("none", .unknown), ("old", .readOnly), ("slow", nil)]
        for (code, state) in rows {
            let decoded = decode(dialect, Array(#"{"c":"\#(code)"}"#.utf8))
            #expect(decoded == .events([.error(ChatError(code: code, text: "", isFatal: false, roomState: state))]))
        }
    }

    @Test("an address of a file that is a path is below the HTTP base; others stay as they are")
    func addresses() throws {
        let definition = try CustomDefinition(
            try JSONValue(
                parsing: #"""
                    {"files":"token","decode":[{"event":"message","fields":{"text":"/t",
                     "attachments":{"each":"/f","fields":{"url":"/u"}}}}],
                     "history":{"get":"/log","fields":{"text":"/t","attachments":{"each":"/f","fields":{"url":"/u"}}}}}
                    """#))
        let dialect = CustomDialect(definition, base: "https://h/api")
        #expect(dialect.traits.guardsFiles)
        let rows = [
            ("/files/1", "https://h/api/files/1"), ("a.png?x=a:b", "https://h/api/a.png?x=a:b"),
            ("https://cdn/a", "https://cdn/a"), ("//cdn/a", "//cdn/a"), ("data:x", "data:x"),
        ]
        for (address, expected) in rows {
            let message = ChatMessage(text: "", attachments: [ChatAttachment(kind: .file, url: expected)])
            #expect(
                decode(dialect, Array(#"{"t":"","f":[{"u":"\#(address)"}]}"#.utf8)) == .events([.message(message)]))
            let answer = BackendAnswer(status: 200, body: Array(#"[{"t":"","f":{"u":"\#(address)"}}]"#.utf8))
            let context = DialectContext(room: "ops")
            guard
                case .messages(let rows, _)? = dialect.calls?.reply(
                    to: .history(HistoryQuery(room: "ops")), answer: answer, context: context)
            else {
                Issue.record("no history")
                return
            }
            #expect(rows == [message])
        }
    }

    @Test("an attachment's type is that of its mime where none is read, and one without url, name and fileId is none")
    func mimes() throws {
        let dialect = try Self.dialect(
            #"""
            {"decode":[{"event":"message","fields":{"text":"/t",
             "attachments":{"each":"/f","fields":{"mime":"/m","url":"/u"}}}}]}
            """#)
        let frame = #"{"t":"","f":[{"m":"image/png","u":"x"},{"m":"image/png"}]}"#
        let image = ChatAttachment(kind: .image, url: "x", mime: "image/png")
        #expect(decode(dialect, Array(frame.utf8)) == .events([.message(ChatMessage(text: "", attachments: [image]))]))
    }

    @Test("characters before the JSON are read as a prefix, and written")
    func prefixes() throws {
        let dialect = try Self.dialect(
            #"""
            {"frames":"prefixed","reply":[{"when":{"/prefix":"2"},"send":{"$prefix":"3"}}],
             "on_open":[{"$prefix":"40"},{"$prefix":"42","as":["join",{"room":"{{room}}"}]}],
             "decode":[{"when":{"/prefix":"42","/body/0":"msg"},"event":"message","fields":{"text":"/body/1/t"}},
                       {"when":{"/prefix":"2","/body":{"exists":false}},"event":"ignore"}],
             "encode":{"message":{"$prefix":"42","as":["msg",{"t":"{{text}}"}]}}}
            """#)
        let context = DialectContext(room: "ops")
        let rows: [(String, DecodedFrame)] = [
            (#"42["msg",{"t":"hi"}]"#, .events([.message(ChatMessage(text: "hi"))])), ("2", .events([])),
            (#"["msg",{"t":"hi"}]"#, .dropped(.unknownType, typeKey: "")),
            (#"42["msg""#, .dropped(.malformed, typeKey: nil)), ("42{", .dropped(.malformed, typeKey: nil)),
            ("3probe", .dropped(.unknownType, typeKey: "3probe")),
        ]
        for (frame, expected) in rows { #expect(decode(dialect, Array(frame.utf8)) == expected, "\(frame)") }
        func texts(_ frames: [EncodedFrame]?) -> [String] {
            (frames ?? []).map { String(decoding: $0.bytes, as: UTF8.self) }
        }
        #expect(
            texts(dialect.encode(.message(ChatMessage(text: "hi")), context: context).frames) == [
                #"42["msg",{"t":"hi"}]"#
            ])
        #expect(
            texts(dialect.encode(.subscribe(room: "ops", limit: nil), context: context).frames)
                == ["40", #"42["join",{"room":"ops"}]"#])
        #expect(Array("2".utf8).withUnsafeBytes { texts(dialect.automaticReplies(to: $0, context: context)) } == ["3"])
    }

    @Test("a number behind the prefix is written and read back")
    func numbers() throws {
        let dialect = try Self.dialect(
            #"""
            {"frames":"prefixed","ids":"number","encode":{"message":{"$prefix":"42{{id|int}}","as":["msg","{{text}}"]}},
             "decode":[{"when":{"/prefix":{"prefix":"43"}},"event":"receipt","fields":{
                "state":{"const":"sent"},"ids":"/body/0/id","ref":{"ptr":"/prefix","after":"43"}}}]}
            """#)
        #expect(dialect.traits.idsAreNumbers)
        #expect(dialect.traits.confirmation == .receipt)
        #expect(dialect.traits.messageIDOrigin == .server)
        func encode(_ id: String) -> EncodedCommand {
            dialect.encode(.message(ChatMessage(id: ChatID(id), text: "hi")), context: DialectContext(room: "ops"))
        }
        let frame = try #require(encode("123456789012345").frames?.first)
        #expect(String(decoding: frame.bytes, as: UTF8.self) == #"42123456789012345["msg","hi"]"#)
        #expect(encode("1234-x") == .unsupported(.wrongType))
        let rows: [(String, DecodedFrame)] = [
            (
                #"43123456789012345[{"id":7}]"#,
                .events([
                    .receipt(ChatReceipt(state: .sent, ids: [ChatID("7")], by: ChatPerson(), ref: "123456789012345"))
                ])
            ),
            (#"42[{"id":7}]"#, .dropped(.unknownType, typeKey: "42")),
        ]
        for (text, expected) in rows { #expect(decode(dialect, Array(text.utf8)) == expected, "\(text)") }
        let fresh = ChatID(number: .max).rawValue
        #expect(fresh.count == 15 && Int64(fresh) != nil)
        #expect(ChatID(number: 0).rawValue == "100000000000000")
    }

    @Test("what a template puts into a prefix stays in it")
    func hostilePrefixes() throws {
        let dialect = try Self.dialect(
            #"{"frames":"prefixed","decode":[],"encode":{"message":{"$prefix":"42{{text}}","as":["{{text}}"]}}}"#)
        for text in ["[1]", "{", "\"", String(repeating: "9", count: 300)] {
            let encoded = dialect.encode(.message(ChatMessage(text: text)), context: DialectContext(room: "ops"))
            #expect(encoded == .unsupported(.wrongType), "\(text)")
        }
    }

    @Test("one frame for the newest that was read, and JSON inside strings")
    func newestAndWrapped() throws {
        let dialect = try Self.dialect(
            #"""
            {"decode":[],"encode":{"receipt.read":{"$newest":"ids","as":{"upto":"{{item}}"}},
             "message":{"a":{"$jsonstring":{"t":"{{text}}"}},"b":{"$base64json":{"t":"{{text}}"}}}}}
            """#)
        #expect(dialect.traits.readReport == .upTo)
        func text(_ command: ChatCommand) -> String {
            let frames = dialect.encode(command, context: DialectContext(room: "ops")).frames ?? []
            return frames.map { String(decoding: $0.bytes, as: UTF8.self) }.joined(separator: " ")
        }
        #expect(text(.receipt(ChatReceipt(state: .read, ids: [ChatID("5"), ChatID("6")]))) == #"{"upto":"6"}"#)
        #expect(text(.message(ChatMessage(text: "q\""))) == #"{"a":"{\"t\":\"q\\\"\"}","b":"eyJ0IjoicVwiIn0="}"#)
    }

    @Test("events of other rooms are left out, and said to be")
    func otherRooms() throws {
        let dialect = try Self.dialect(#"{"decode":[{"event":"message","fields":{"text":"/t","room":"/r"}}]}"#)
        func events(_ room: String, announced: String?) -> Int {
            let context = DialectContext(room: "ops", announcedRoom: announced)
            let decoded = Array(#"{"t":"x","r":\#(room)}"#.utf8).withUnsafeBytes {
                dialect.decode($0, isBinary: true, context: context)
            }
            guard let events = decoded.events else { return -1 }
            return events.count
        }
        #expect(events(#""ops""#, announced: nil) == 1)
        #expect(events(#""ops""#, announced: "17") == 1)
        #expect(events("17", announced: "17") == 1)
        #expect(events("17", announced: nil) == 0)
        #expect(events("null", announced: nil) == 1)
        let explained = Array(#"{"t":"x","r":"desk"}"#.utf8).withUnsafeBytes {
            dialect.explain($0, context: DialectContext(room: "ops"))
        }
        #expect(explained.decoded == .events([]))
        #expect(explained.rule == 0)
        #expect(explained.otherRoom == "desk")
    }

    @Test("replies are made by rule, whatever else the frame says")
    func replies() throws {
        let dialect = try Self.dialect(
            #"{"decode":[],"reply":[{"when":{"/op":"ping"},"send":{"op":"pong","in":"{{room}}"}}]}"#)
        #expect(dialect.traits.repliesByRule)
        func replies(_ frame: String) -> [String] {
            Array(frame.utf8).withUnsafeBytes { dialect.automaticReplies(to: $0, context: DialectContext(room: "ops")) }
                .map { String(decoding: $0.bytes, as: UTF8.self) }
        }
        #expect(replies(#"{"op":"ping"}"#) == [#"{"op":"pong","in":"ops"}"#])
        #expect(replies(#"{"op":"pong"}"#) == [])
        #expect(replies(#"{"op":"ping""#) == [])
        #expect(replies("7") == [])
    }

    // MARK: - Noise

    @Test("random and spoilt bytes end in events or a drop", arguments: 0..<8)
    func noise(_ seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let dialect = try Self.dialect()
        let frames = Self.inLines.compactMap(\.frameBytes).filter { $0.count < 1000 }
        let words = [
            #""op""#, #""msg""#, #""d""#, #""kind""#, #""text""#, #""{\"kind\":\"text\"}""#, ":", ",", "{", "}", "[",
            "]", "null", "1e999", "-1", #""\ud800""#, "\u{FEFF}",
        ].map { Array($0.utf8) }
        var drops = 0
        var events = 0
        for round in 0..<2000 {
            var frame: [UInt8] = []
            switch round % 3 {
            case 0:
                frame = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
            case 1:
                for _ in 0..<Int.random(in: 1...20, using: &random) {
                    frame += words.randomElement(using: &random) ?? []
                }
            default:
                frame = frames.randomElement(using: &random) ?? []
                for _ in 0..<Int.random(in: 1...3, using: &random) where !frame.isEmpty {
                    frame[Int.random(in: 0..<frame.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
            }
            if decode(dialect, frame).events == nil { drops += 1 } else { events += 1 }
        }
        #expect(drops > events)
        #expect(events > 0)
    }

    @Test("elements that all repeat a long value of the frame do not multiply it beyond bounds")
    func repeatedValues() throws {
        let dialect = try Self.dialect(
            #"{"decode":[{"each":"/a","as":"history","event":"message","fields":{"text":"^/t"}}]}"#)
        let long = String(repeating: "x", count: 1024 * 1024)
        let frame = #"{"t":"\#(long)","a":[\#(String(repeating: "0,", count: 100_000))0]}"#
        guard let events = decode(dialect, Array(frame.utf8)).events, case .history(let history)? = events.first
        else {
            Issue.record("no history")
            return
        }
        #expect(history.messages.count == 64)
    }

    @Test("a definition that was spoilt is compiled or refused, and decodes anything", arguments: 0..<8)
    func spoiltDefinitions(_ seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let good = try #require(Self.fixtures.get().options["custom"])
        let frames = Self.inLines.compactMap(\.frameBytes).filter { $0.count < 1000 }
        var refused = 0
        var compiled = 0
        for _ in 0..<100 {
            let spoilt = Self.spoilt(good, &random)
            do throws(CustomDefinitionError) {
                let dialect = CustomDialect(try CustomDefinition(spoilt))
                compiled += 1
                for _ in 0..<5 { _ = decode(dialect, frames.randomElement(using: &random) ?? []) }
                _ = dialect.encode(
                    .message(ChatMessage(id: ChatID("1"), text: "x")), context: DialectContext(room: "ops"))
            } catch {
                #expect(!error.problems.isEmpty)
                refused += 1
            }
        }
        #expect(refused > 0 && compiled > 0)
    }

    /// Some values changed for others.
    private static func spoilt(_ value: JSONValue, _ random: inout SplitMix) -> JSONValue {
        if Int.random(in: 0..<80, using: &random) == 0 {
            let others: [JSONValue] = [
                .null, .bool(true), .integer(-1), .string("/x"), .string("{{id"), .string("{{room|json}}"), .array([]),
                .object([]), .object([.init("each", .string("/a"))]), .object([.init("$each", .string("ids"))]),
            ]
            return others.randomElement(using: &random) ?? .null
        }
        switch value {
        case .array(let elements): return .array(elements.map { spoilt($0, &random) })
        case .object(let members):
            return .object(members.map { JSONValue.Member($0.key, spoilt($0.value, &random)) })
        default: return value
        }
    }

    // MARK: - Support

    static func dialect(_ json: String) throws -> CustomDialect {
        CustomDialect(try CustomDefinition(try JSONValue(parsing: json)), name: "mine")
    }

    private func decode(_ dialect: CustomDialect, _ bytes: [UInt8]) -> DecodedFrame {
        let context = DialectContext(selfIDs: [ChatID("u0")], selfNames: ["us"], room: "ops")
        return bytes.withUnsafeBytes { dialect.decode($0, isBinary: false, context: context) }
    }
}
