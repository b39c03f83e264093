import ChatModel
import DescribedDialects
import Dialects
import JSONText
import Testing

@Suite("Custom definition")
struct CustomDefinitionTests {
    struct Mistake: Sendable, CustomTestStringConvertible {
        let json: String
        let pointer: String
        let sentence: String

        init(_ json: String, _ pointer: String, _ sentence: String) {
            self.json = json
            self.pointer = pointer
            self.sentence = sentence
        }

        var testDescription: String { json }
    }

    private static func rule(_ text: String) -> String { #"{"decode":[{\#(text)}]}"# }
    private static let acks = acknowledges("sent")

    /// A receipt with the backend's id and, as `ref`, ours.
    private static func acknowledges(_ state: String, ref: String = #","ref":"/cid""#) -> String {
        #""decode":[{"event":"receipt","fields":{"state":{"const":"\#(state)"},"ids":"/id"\#(ref)}}]"#
    }

    private static func sends(_ text: String) -> String { #"{"decode":[],"encode":{"message":\#(text)}}"# }

    private static let manyTags = (0...6).map { #""+a.b/c\#($0)":"/c""# }.joined(separator: ",")

    static let mistakes = [
        Mistake("7", "", "must be a table"), Mistake("{}", "", "has no \"decode\""),
        Mistake(#"{"decode":[],"decdoe":[]}"#, "/decdoe", "unknown key"),
        Mistake(#"{"decode":[],"decode":[]}"#, "/decode", "twice"),
        Mistake(#"{"decode":{}}"#, "/decode", "must be a list, found a table"),
        Mistake(#"{"decode":[],"dialect":"envelope"}"#, "/dialect", "must be \"custom\""),
        Mistake(#"{"decode":[],"url":"http://x/"}"#, "/url", "does not begin with"),
        Mistake(#"{"decode":[],"url":"wss://{room}.example/"}"#, "/url", "behind the host"),
        Mistake(#"{"decode":[],"url":"wss:///x"}"#, "/url", "names no host"),
        Mistake(#"{"decode":[],"url":"wss://h/{rome}"}"#, "/url/rome", "unknown place"),
        Mistake(#"{"decode":[],"headers":{"A":"a\r\nB: c"}}"#, "/headers/A", "line break"),
        Mistake(#"{"decode":[],"headers":{"A b":"c"}}"#, "/headers/A b", "field's name"),
        Mistake(#"{"decode":[],"headers":{"A":5}}"#, "/headers/A", "must be a string"),
        Mistake(#"{"decode":[],"subprotocols":["a b"]}"#, "/subprotocols/0", "subprotocol"),
        Mistake(#"{"decode":[],"frames":"bin"}"#, "/frames", "is none of \"text\", \"binary\""),
        Mistake(#"{"decode":[],"identity":"both"}"#, "/identity", "is none of"),
        Mistake(#"{"decode":[],"echo":true}"#, "/echo", "must be a string"),
        Mistake(#"{"decode":[],"edits":"nobody"}"#, "/edits", "anybody"),
        Mistake(
            #"{"echo":"ack",\#(acks),"encode":{"message":["{{text}}"]}}"#, "/echo",
            "needs \"{{id}}\" in \"encode.message\""),
        Mistake(
            #"{"echo":"ack",\#(acknowledges("sent", ref: "")),"encode":{"message":["{{id}}"]}}"#, "/echo",
            "needs \"ref\" in the \"receipt\" rule that says \"sent\""),
        Mistake(
            #"{"echo":"ack",\#(acknowledges("read")),"encode":{"message":["{{id}}"]}}"#, "/echo",
            "needs a \"receipt\" rule that can say \"sent\""),
        Mistake(#"{"echo":"ack","decode":[]}"#, "/echo", "needs a \"receipt\" rule that can say \"sent\""),
        Mistake(#"{"decode":[],"on_open":{}}"#, "/on_open", "must be a list"),
        Mistake(#"{"decode":[],"on_open":["{{text}}"]}"#, "/on_open/0/text", "unknown value"),
        Mistake(#"{"decode":[],"ready_when":{"op":1}}"#, "/ready_when/op", "is no pointer"),
        Mistake(#"{"decode":[],"ping":{"every":25}}"#, "/ping", "has no \"frame\""),
        Mistake(#"{"decode":[],"ping":{"every":0,"frame":{}}}"#, "/ping/every", "from 1 to 86400"),
        Mistake(#"{"decode":[],"reply":[{"when":{},"send":{}}]}"#, "/reply/0/when", "every frame"),
        Mistake(#"{"decode":[],"reply":[{"send":{}}]}"#, "/reply/0", "needs \"when\""),
        Mistake(#"{"decode":[],"typing":{"ttl":"3"}}"#, "/typing/ttl", "must be a number"),
        Mistake(#"{"decode":[],"reconnect":{"first":40}}"#, "/reconnect/cap", "shorter"),
        Mistake(#"{"decode":[],"reconnect":{"jitter":2}}"#, "/reconnect/jitter", "from 0 to 1"),
        Mistake(#"{"decode":[],"unwrap":[{"ptr":"/a","as":"xml"}]}"#, "/unwrap/0/as", "is none of"),
        Mistake(#"{"decode":[],"unwrap":[{"ptr":"/a"}]}"#, "/unwrap/0", "needs"),
        Mistake(rule(#""when":{}"#), "/decode/0", "has no \"event\""),
        Mistake(rule(#""event":"mesage""#), "/decode/0/event/mesage", "unknown event"),
        Mistake(rule(#""event":"ignore","wehn":{}"#), "/decode/0/wehn", "unknown key"),
        Mistake(rule(#""event":"ignore","when":{"/a":{}}"#), "/decode/0/when/~1a", "says nothing"),
        Mistake(rule(#""event":"ignore","when":{"/a":[]}"#), "/decode/0/when/~1a", "matches nothing"),
        Mistake(rule(#""event":"ignore","when":{"/a":{"has":1}}"#), "/decode/0/when/~1a/has", "unknown key"),
        Mistake(rule(#""event":"ignore","when":{"/a":{"type":"text"}}"#), "/decode/0/when/~1a/type", "is none of"),
        Mistake(rule(#""event":"ignore","when":{"/a~2":1}"#), "/decode/0/when/~1a~02", "is no pointer"),
        Mistake(rule(#""event":"message""#), "/decode/0/fields", "needs \"text\" or \"attachments\""),
        Mistake(rule(#""event":"message","fields":{"text":"/t","nick":"/n"}"#), "/decode/0/fields/nick", "unknown key"),
        Mistake(rule(#""event":"message","fields":{"text":7}"#), "/decode/0/fields/text", "must be a pointer"),
        Mistake(rule(#""event":"message","fields":{"text":[]}"#), "/decode/0/fields/text", "names no pointer"),
        Mistake(
            rule(#""event":"message","fields":{"text":"/t","annotations":{"+typing":"/p"}}"#),
            "/decode/0/fields/annotations/+typing", "a client-only tag of your own"),
        Mistake(
            rule(#""event":"message","fields":{"text":"/t","annotations":{"+a.b/c":7}}"#),
            "/decode/0/fields/annotations/+a.b~1c", "must be a pointer"),
        Mistake(
            rule(#""event":"message","fields":{"text":"/t","annotations":{\#(manyTags)}}"#),
            "/decode/0/fields/annotations", "more than 6"),
        Mistake(
            rule(#""event":"message","fields":{"text":{"ptr":"/t","as":"date"}}"#), "/decode/0/fields/text/as",
            "is none of"),
        Mistake(
            rule(#""event":"message","fields":{"text":{"const":null}}"#), "/decode/0/fields/text/const", "null"),
        Mistake(rule(#""event":"message","fields":{"text":{"as":"id"}}"#), "/decode/0/fields/text", "has no \"ptr\""),
        Mistake(
            rule(#""event":"message","fields":{"text":{"each":"/t"}}"#), "/decode/0/fields/text", "is one value"),
        Mistake(
            rule(#""event":"message","fields":{"attachments":"/f"}"#), "/decode/0/fields/attachments", "needs a table"),
        Mistake(
            rule(#""event":"message","fields":{"attachments":{"each":"/f"}}"#), "/decode/0/fields/attachments",
            "has no \"fields\""),
        Mistake(
            rule(#""event":"message","fields":{"attachments":{"each":"/f","fields":{"href":"/h"}}}"#),
            "/decode/0/fields/attachments/fields/href", "unknown key"),
        Mistake(
            rule(#""event":"typing","fields":{"state":{"const":"on"}}"#), "/decode/0/fields/state/const",
            "is none of \"start\", \"stop\""),
        Mistake(
            rule(#""event":"typing","fields":{"state":{"ptr":"/s","map":{"1":"on"}}}"#),
            "/decode/0/fields/state/map/1", "is none of"),
        Mistake(rule(#""event":"join","each":"/a","as":"history","fields":{"user.id":""}"#), "/decode/0/as", "history"),
        Mistake(#"{"decode":[],"encode":{"mesage":{}}}"#, "/encode/mesage", "unknown key"),
        Mistake(#"{"decode":[],"encode":{"typing.on":{}}}"#, "/encode/typing.on", "unknown key"),
        Mistake(sends("7"), "/encode/message", "must be a frame"),
        Mistake(sends(#"{"a":"{{txt}}"}"#), "/encode/message/a/txt", "unknown value"),
        Mistake(sends(#"{"a":"{{text"}"#), "/encode/message/a", "without"),
        Mistake(sends(#"{"a":"{{text|shout}}"}"#), "/encode/message/a/shout", "unknown filter"),
        Mistake(sends(#"{"a":"{{text|unix}}"}"#), "/encode/message/a", "is for times"),
        Mistake(sends(#"{"a":"{{text|default}}"}"#), "/encode/message/a", "needs JSON"),
        Mistake(sends(#"{"a":"{{text|default:x}}"}"#), "/encode/message/a", "is no JSON"),
        Mistake(sends(#"{"a":"{{text|upper:1}}"}"#), "/encode/message/a", "takes nothing"),
        Mistake(sends(#"{"a":"{{text|map:[1]}}"}"#), "/encode/message/a", "JSON object"),
        Mistake(sends(#"{"a":"{{item}}"}"#), "/encode/message/a/item", "unknown value"),
        Mistake(sends(#"{"a":{"$each":"ids","as":1}}"#), "/encode/message/a/$each", "is no list"),
        Mistake(sends(#"{"a":{"$each":"attachments"}}"#), "/encode/message/a", "has no \"as\""),
        Mistake(sends(#"{"a":{"$eahc":"ids"}}"#), "/encode/message/a/$eahc", "dollar sign"),
        Mistake(
            #"{"decode":[],"on_open":[{"t":"{{token}}"}]}"#, "/on_open/0/t",
            "a frame that shows the token is \"encode.auth\""),
        Mistake(#"{"decode":[],"encode":{"auth":{"t":"{{access_token}}"}}}"#, "/encode/auth", "needs an \"auth\" rule"),
        Mistake(
            #"{"decode":[{"event":"auth","fields":{"state":{"const":"failed"}}}],"encode":{"auth":{}}}"#,
            "/encode/auth",
            "that can say \"ok\""),
        Mistake(rule(#""event":"ignore","then":"stop""#), "/decode/0/then", "is not \"continue\""),
        Mistake(rule(#""event":"topic""#), "/decode/0/fields", "needs \"text\""),
        Mistake(rule(#""event":"self""#), "/decode/0/fields", "needs \"user.id\" or \"user.name\""),
        Mistake(#"{"decode":[],"files":"secret"}"#, "/files", "is none of \"public\", \"token\""),
        Mistake(
            rule(#""event":"error","fields":{"code":"/c","room_state":{"ptr":"/c","map":{"x":"readonly"}}}"#),
            "/decode/0/fields/room_state/map/x", "is none of \"unknown\", \"read-only\""),
        Mistake(sends(#"{"$newest":"ids","as":1}"#), "/encode/message/$newest", "is no list"),
        Mistake(sends(#"{"$prefix":"42","as":[]}"#), "/frames", "must be \"prefixed\""),
        Mistake(#"{"decode":[],"ids":"int"}"#, "/ids", "is none of \"text\", \"number\""),
        Mistake(
            #"{"decode":[],"frames":"prefixed","encode":{"message":{"$prefix":"4{{idd}}"}}}"#,
            "/encode/message/$prefix/idd", "unknown value"),
        Mistake(
            rule(#""event":"pong","fields":{"ref":{"ptr":"/a","after":5}}"#), "/decode/0/fields/ref/after", "string"),
        Mistake(sends(#"{"a":{"$prefix":"42"}}"#), "/encode/message/a/$prefix", "has no meaning here"),
        Mistake(
            #"{"decode":[],"frames":"prefixed","encode":{"message":{"$prefix":"4["}}}"#, "/encode/message/$prefix",
            "without quotes"),
        Mistake(sends(#"{"$frames":[]}"#), "/encode/message/$frames", "has no frame"),
        Mistake(
            #"{"decode":[],"on_open":[{}],"encode":{"subscribe":{}}}"#, "/encode/subscribe", "says the same"),
        Mistake(#"{"decode":[],"login":{"post":"/l","body":{}}}"#, "/login", "has no \"token\""),
        Mistake(#"{"decode":[],"login":{"post":"ftp://x","body":{},"token":"/t"}}"#, "/login/post", "does not begin"),
        Mistake(
            #"{"decode":[],"login":{"post":"/l","body":"{{room}}","token":"/t"}}"#, "/login/body/room",
            "unknown value"),
        Mistake(#"{"decode":[],"history":{"get":"/h?{n}"}}"#, "/history/get/n", "unknown place"),
        Mistake(#"{"decode":[],"history":{"get":"https://{room}/h"}}"#, "/history/get", "behind the host"),
        Mistake(
            #"{"decode":[],"history":{"get":"/h","exclusive":true}}"#, "/history/exclusive", "\"get\" does not have"),
        Mistake(
            #"{"decode":[],"history":{"get":"/h?a={after}","exclusive":1}}"#, "/history/exclusive", "true or false"),
        Mistake(
            #"{"decode":[],"history":{"get":"/h?a={after}","fields":{"text":"/t"}}}"#, "/history/fields", "needs \"id\""
        ),
        Mistake(#"{"decode":[],"history":{"get":"/h","order":"up"}}"#, "/history/order", "is none of"),
    ]

    @Test("a mistake is told with the path of the culprit", arguments: mistakes)
    func mistake(_ row: Mistake) throws {
        let json = try JSONValue(parsing: row.json)
        let error = #expect(throws: CustomDefinitionError.self) { try CustomDefinition(json) }
        let problem = error?.problems.first { $0.pointer == row.pointer }
        #expect(problem?.sentence.contains(row.sentence) == true, "\(String(describing: error?.problems))")
        if row.sentence.hasPrefix("unknown") { #expect(problem?.known.isEmpty == false) }
    }

    @Test("all mistakes are told, not only the first")
    func all() throws {
        let json = try JSONValue(
            parsing: #"{"urll":1,"decode":[{"event":"x"},{"event":"message"}],"encode":{"message":{"a":"{{b}}"}}}"#)
        let error = #expect(throws: CustomDefinitionError.self) { try CustomDefinition(json) }
        #expect(
            Set(error?.problems.map(\.pointer) ?? []) == [
                "/urll", "/decode/0/event/x", "/decode/1/fields", "/encode/message/a/b",
            ])
    }

    @Test("a pointer has at most 64 steps")
    func deepPointer() throws {
        func definition(steps: Int) throws -> CustomDefinition {
            let pointer = String(repeating: "/a", count: steps)
            return try CustomDefinition(
                try JSONValue(parsing: #"{"decode":[{"when":{"\#(pointer)":1},"event":"ignore"}]}"#))
        }
        #expect(throws: Never.self) { try definition(steps: 64) }
        for steps in [65, 1000] {
            let error = #expect(throws: CustomDefinitionError.self) { try definition(steps: steps) }
            #expect(error?.problems.first?.sentence.contains("steps") == true)
        }
    }

    @Test("the socket's properties are there for the configuration")
    func socket() throws {
        let definition = try CustomDefinition(
            try JSONValue(
                parsing: #"""
                    {"url":"wss://h/{room}?t={token}","headers":{"X-A":"b"},"subprotocols":["x.v1"],"frames":"binary",
                     "decode":[]}
                    """#))
        #expect(definition.url == "wss://h/{room}?t={token}")
        #expect(definition.headers.map { [$0.name, $0.value] } == [["X-A", "b"]])
        #expect(definition.subprotocols == ["x.v1"])
        #expect(definition.frames == .binary)
    }

    // MARK: - Traits

    struct Trait: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let json: String
        let holds: @Sendable (DialectTraits) -> Bool

        init(_ json: String, _ description: String, _ holds: @escaping @Sendable (DialectTraits) -> Bool) {
            testDescription = description
            self.json = json
            self.holds = holds
        }
    }

    private static let reads = #""decode":[{"event":"message","fields":{"text":"/t","id":"/id"}}]"#
    private static let refs = #""decode":[{"event":"message","fields":{"text":"/t","id":"/id","ref":"/c"}}]"#
    private static let sent =
        #""decode":[{"event":"receipt","fields":{"state":{"ptr":"/s","map":{"ok":"sent"}},"ids":"/id"}}]"#

    static let traits = [
        Trait(#"{"decode":[]}"#, "nothing said: single, unconfirmed, no typing, usable at once") {
            $0.identity == .single && $0.confirmation == .none && $0.typingOut == .none && $0.opening == []
                && !$0.waitsForReady && $0.history == .none && $0.liveness == .protocolPing && $0.readReport == .none
                && $0.backoff == BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0.25)
        },
        Trait(#"{"decode":[],"encode":{"message":["{{sender.name}}"]}}"#, "naming the sender: puppet") {
            $0.identity == .puppet
        },
        Trait(#"{"decode":[],"identity":"single","encode":{"message":["{{sender.name}}"]}}"#, "written: single") {
            $0.identity == .single
        },
        Trait(#"{\#(reads),"encode":{"message":["{{id}}"]}}"#, "ids both ways: echo by id") {
            $0.confirmation == .echoByID && $0.echoesOwnMessages && $0.messageIDOrigin == .client
        },
        Trait(#"{\#(reads),"echo":"auto","encode":{"message":["{{id}}"]}}"#, "what auto finds is a guess") {
            $0.confirmation == .echoByID && $0.confirmationIsGuess
        },
        Trait(#"{\#(sent),"encode":{"message":["{{id}}"]}}"#, "what is left out is a guess, too") {
            $0.confirmation == .receipt && $0.confirmationIsGuess
        },
        Trait(#"{\#(reads),"echo":"by-id","encode":{"message":["{{id}}"]}}"#, "what is written is none") {
            $0.confirmation == .echoByID && !$0.confirmationIsGuess
        },
        Trait(#"{\#(reads),"echo":"none","encode":{"message":["{{id}}"]}}"#, "echo none") {
            $0.confirmation == .none && !$0.echoesOwnMessages
        },
        Trait(#"{\#(reads),"echo":"by-text","encode":{"message":["{{text}}"]}}"#, "echo by text") {
            $0.confirmation == .echoByText && $0.echoesOwnMessages && $0.messageIDOrigin == .server
        },
        Trait(#"{\#(sent),"encode":{"message":["{{id}}"]}}"#, "a receipt that says sent and has our id") {
            $0.confirmation == .receipt && $0.messageIDOrigin == .client
        },
        Trait(#"{\#(sent),"encode":{"message":["{{text}}"]}}"#, "a receipt cannot name what was given no id") {
            $0.confirmation == .none && $0.messageIDOrigin == .server
        },
        Trait(#"{\#(acks),"encode":{"message":["{{id}}"]}}"#, "ids and ref: an ack, found by itself") {
            $0.confirmation == .receipt && $0.messageIDOrigin == .server && !$0.echoesOwnMessages
                && $0.confirmationIsGuess
        },
        Trait(#"{"echo":"ack",\#(acks),"encode":{"message":["{{id}}"]}}"#, "ids and ref: an ack, written") {
            $0.confirmation == .receipt && $0.messageIDOrigin == .server && !$0.echoesOwnMessages
                && !$0.confirmationIsGuess
        },
        Trait(#"{"echo":"none",\#(acks),"encode":{"message":["{{id}}"]}}"#, "an ack where nothing comes back") {
            $0.confirmation == .receipt && $0.messageIDOrigin == .server
        },
        Trait(#"{\#(acks),"encode":{"message":["{{text}}"]}}"#, "nor can an ack") { $0.confirmation == .none },
        Trait(#"{\#(refs),"encode":{"message":["{{id}}"]}}"#, "ref of a message: whose it is, by our id") {
            $0.returnsClientIDs && $0.confirmation == .echoByID && $0.messageIDOrigin == .server
        },
        Trait(#"{\#(refs),"encode":{"message":["{{text}}"]}}"#, "the same where we give none") {
            !$0.returnsClientIDs
        },
        Trait(
            #"{\#(acks),"history":{"get":"/h","fields":{"text":"/t","ref":"/c"}},"encode":{"message":["{{id}}"]}}"#,
            "the history alone has our ids"
        ) { $0.returnsClientIDs },
        Trait(#"{\#(sent),"echo":"by-id"}"#, "a receipt, but echo by id is written") { $0.confirmation == .echoByID },
        Trait(#"{"decode":[{"event":"receipt","fields":{"state":{"const":"read"},"ids":"/i"}}]}"#, "read is not sent") {
            $0.confirmation == .none
        },
        Trait(#"{"decode":[],"encode":{"typing":["{{state}}"]}}"#, "typing of both states") {
            $0.typingOut == .startStop
        },
        Trait(#"{"decode":[],"encode":{"typing.start":[]}}"#, "typing that only starts") { $0.typingOut == .startOnly },
        Trait(
            #"""
            {"decode":[{"event":"auth","fields":{"state":"/s"}}],"on_open":[[]],"encode":{"auth":["{{access_token}}"]}}
            """#, "opening"
        ) {
            $0.opening == [.authenticates, .subscribes]
        },
        Trait(#"{"decode":[],"ready_when":{"/a":1}}"#, "ready_when") { $0.waitsForReady },
        Trait(#"{"decode":[]}"#, "anybody may edit") { !$0.authorsAloneEdit },
        Trait(#"{"decode":[],"edits":"author"}"#, "edits of authors alone") { $0.authorsAloneEdit },
        Trait(#"{"decode":[{"event":"ready"}]}"#, "a rule for ready") { $0.waitsForReady },
        Trait(#"{"decode":[],"encode":{"fetch":["{{since|unix_ms}}"]}}"#, "history by the socket") {
            $0.history == .socket && $0.older == .none
        },
        Trait(
            #"{"decode":[],"encode":{"fetch":[["x",{"to":{"at":"t {{before|unix_ms}}"}}]]}}"#,
            "older messages by the socket"
        ) { $0.older == .socket },
        Trait(#"{"decode":[],"history":{"get":"/h"},"encode":{"fetch":[]}}"#, "history by a call") {
            $0.history == .call && $0.older == .call
        },
        Trait(
            #"{"decode":[],"history":{"get":"/h"},"encode":{"fetch":["{{before|unix_ms}}"]}}"#,
            "a frame with a place for it goes before the call"
        ) { $0.history == .call && $0.older == .socket },
        Trait(#"{"decode":[],"ping":{"every":7.5,"frame":{}}}"#, "pings") {
            $0.liveness == .jsonPing && $0.pingInterval == .milliseconds(7500) && !$0.answersPings
        },
        Trait(#"{"decode":[{"event":"pong"}],"ping":{"every":7,"frame":{}}}"#, "pings that are answered") {
            $0.liveness == .jsonPing && $0.answersPings
        },
        Trait(#"{"decode":[],"typing":{"refresh":4}}"#, "typing refresh") { $0.typingRefresh == .seconds(4) },
        Trait(#"{"decode":[],"reconnect":{"first":2,"factor":3,"cap":20,"jitter":0}}"#, "reconnect") {
            $0.backoff == BackoffTraits(first: .seconds(2), factor: 3, cap: .seconds(20), jitter: 0)
        },
        Trait(#"{"decode":[],"encode":{"receipt.read":["{{ids.0}}"]}}"#, "read receipts") {
            $0.readReport == .eachMessage
        },
        Trait(#"{"decode":[{"event":"leave","fields":{"user.id":"/u"}}]}"#, "leaves") { $0.tellsOfLeaves },
    ]

    @Test("a definition gives traits", arguments: traits)
    func trait(_ row: Trait) throws {
        let traits = try CustomDialectTests.dialect(row.json).traits
        #expect(traits.name == "mine")
        #expect(row.holds(traits), "\(traits)")
    }

    // MARK: - Templates

    static let at = ChatTimestamp(milliseconds: 1_763_695_136_007)
    static let templates: [(template: String, frame: String)] = [
        (
            #"{"a":"{{at}}","b":"{{at|unix}}","c":"{{at|reference}}"}"#,
            #"{"a":1763695136007,"b":1763695136.007,"c":785387936.007}"#
        ),
        (#"["{{at|iso8601}}","{{at|iso8601_ms}}"]"#, #"["2025-11-21T03:18:56Z","2025-11-21T03:18:56.007Z"]"#),
        (
            #"["{{text|upper}}","{{text|json}}","x {{text}} y"]"#,
            #"["SAY \"HI\"","\"say \\\"hi\\\"\"","x say \"hi\" y"]"#
        ),
        (#"["{{at|string}}","{{sender.name|lower}}"]"#, #"["1763695136007","ada"]"#),
        (#"["{{replyTo}}","<{{replyTo}}>","{{replyTo|default:[1]}}"]"#, #"[null,"<>",[1]]"#),
        (
            #"{"a?":"{{replyTo}}","b?":"{{sender.name}}","c?":{"d?":"{{ref}}"},"e?":[],"f?":"{{text}}"}"#,
            #"{"b":"Ada","f":"say \"hi\""}"#
        ),
        (
            #"["{{id|int}}","{{id}}","{{sender}}","{{room}}","{{self.id}}"]"#,
            #"[7,"7",{"id":"A","name":"Ada"},"ops","A"]"#
        ),
        (#"["{{text|map:{\"say \\\"hi\\\"\":\"}}|{{\"}}}"]"#, #"["}}|{{"]"#),
        (#"{"$$date":"{{at}}","k":{"x":[1,true,null]}}"#, #"{"$date":1763695136007,"k":{"x":[1,true,null]}}"#),
        (
            #"{"f":{"$each":"attachments","as":["{{item.url}}","{{item.size|default:0}}"]},"n":"{{attachments.0.name}}"}"#,
            #"{"f":[["u",0]],"n":"f"}"#
        ),
        (#"{"t":"{{text}}"}"#, #"{"t":"say \"hi\"\nu"}"#),
    ]

    @Test("a template is filled in", arguments: templates)
    func template(_ row: (template: String, frame: String)) throws {
        let dialect = try CustomDialectTests.dialect(#"{"decode":[],"encode":{"message":\#(row.template)}}"#)
        let mentionsFiles = row.template.contains("attachments")
        let message = ChatMessage(
            id: ChatID("7"), sender: ChatPerson(id: ChatID("A"), name: "Ada"), text: "say \"hi\"", at: Self.at,
            attachments: mentionsFiles || row.frame.contains(#"\nu"#)
                ? [ChatAttachment(kind: .file, url: "u", name: "f")] : [])
        let context = DialectContext(selfIDs: [ChatID("B"), ChatID("A")], room: "ops")
        #expect(Self.texts(dialect.encode(.message(message), context: context)) == [row.frame])
    }

    static func texts(_ encoded: EncodedCommand) -> [String] {
        guard let frames = encoded.frames else { return ["\(encoded)"] }
        return frames.map { String(decoding: $0.bytes, as: UTF8.self) }
    }

    @Test("the state's own template goes before the kind's, and a missing one is unsupported")
    func choice() throws {
        let dialect = try CustomDialectTests.dialect(
            #"{"decode":[],"frames":"binary","encode":{"receipt":["{{state}}"],"receipt.read":{"$per":"ids","as":["{{item}}"]}}}"#
        )
        let context = DialectContext(room: "ops")
        let ids = [ChatID("1"), ChatID("2")]
        #expect(
            Self.texts(dialect.encode(.receipt(ChatReceipt(state: .read, ids: ids)), context: context))
                == [#"["1"]"#, #"["2"]"#])
        #expect(
            Self.texts(dialect.encode(.receipt(ChatReceipt(state: .sent, ids: ids)), context: context))
                == [#"["sent"]"#])
        #expect(
            dialect.encode(.receipt(ChatReceipt(state: .read, ids: [])), context: context)
                == .unsupported(.missingField))
        #expect(dialect.encode(.ping(ref: nil), context: context) == .unsupported(.unsupported))
        #expect(
            dialect.encode(.receipt(ChatReceipt(state: .sent, ids: ids)), context: context)
                == .frames([EncodedFrame(bytes: Array(#"["sent"]"#.utf8), isBinary: true)]))
    }

    @Test("an id that is no number is refused where the wire wants one, and a frame over a mebibyte")
    func refusals() throws {
        let dialect = try CustomDialectTests.dialect(
            #"{"decode":[],"encode":{"message":["{{id|int}}","{{text}}"]}}"#)
        let context = DialectContext(room: "ops")
        #expect(
            dialect.encode(.message(ChatMessage(id: ChatID("x"), text: "")), context: context)
                == .unsupported(.wrongType))
        let fitting = String(repeating: "x", count: 1024 * 1024 - 6)
        func encode(_ text: String) -> EncodedCommand {
            dialect.encode(.message(ChatMessage(id: ChatID("1"), text: text)), context: context)
        }
        #expect(Self.texts(encode(fitting)).map(\.utf8.count) == [1024 * 1024])
        #expect(encode(fitting + "x") == .unsupported(.tooLong))
    }

    @Test("the announced room goes into frames in place of the configured one")
    func announcedRoom() throws {
        let dialect = try CustomDialectTests.dialect(#"{"decode":[],"on_open":["{{room}}","{{limit}}"]}"#)
        let context = DialectContext(room: "ops", announcedRoom: "17")
        #expect(
            Self.texts(dialect.encode(.subscribe(room: nil, limit: 50), context: context)) == [#""17""#, "50"])
        #expect(
            Self.texts(dialect.encode(.subscribe(room: "ops", limit: nil), context: context)) == [#""17""#, "null"])
        #expect(
            Self.texts(dialect.encode(.subscribe(room: "desk", limit: nil), context: context)) == [#""desk""#, "null"])
    }

    @Test("what is inserted is never read as a template", arguments: 0..<8)
    func insertion(_ seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let dialect = try CustomDialectTests.dialect(
            #"""
            {"decode":[{"event":"message","fields":{"id":"/id","text":"/t","sender.name":"/n","at":"/at"}}],
             "encode":{"message":{"id":"{{id}}","t":"{{text}}","n":"{{sender.name}}","at":"{{at|iso8601_ms}}"}}}
            """#)
        let pieces = ["{{", "}}", "{{text}}", "|", "\\", "\"", "\u{0}", "é", "🦀", "{", "}", "x", "\n", "{{id|int}}"]
        for _ in 0..<200 {
            let text = (0..<Int.random(in: 0...12, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }.joined()
            let message = ChatMessage(
                id: ChatID("i\(random.next())"), sender: ChatPerson(name: "a" + text), text: text,
                at: ChatTimestamp(milliseconds: Int64.random(in: 1...253_402_300_799_999, using: &random)))
            let context = DialectContext(room: "ops")
            guard let frames = dialect.encode(.message(message), context: context).frames,
                let frame = frames.first
            else {
                Issue.record("no frame for \(message)")
                return
            }
            let back = frame.bytes.withUnsafeBytes { dialect.decode($0, isBinary: false, context: context) }
            #expect(back == .events([.message(message)]))
        }
    }
}
