import ChatModel
import DescribedDialects
import Dialects
import Foundation
import JSONText
import Learning
import Testing

/// Recordings of `Tests/Backends/shapes.py` and its apps, and what is proposed for them. `UPDATE_TRANSCRIPTS=1` writes the
/// proposals anew.
@Suite("Learning a backend")
struct LearnerTests {
    private static func file(_ name: String) throws -> [UInt8] {
        let folder = try #require(Bundle.module.url(forResource: "Fixtures", withExtension: nil))
        return Array(try Data(contentsOf: folder.appendingPathComponent("learn/\(name)")))
    }

    private static func recording(_ name: String) throws -> Recording {
        Recording(parsing: try file("\(name).jsonl"), limits: JSONLimits())
    }

    private static func dialect(_ name: String) throws -> (CustomDialect, Proposal, Recording) {
        let recording = try recording(name)
        let proposal = try #require(Learner.propose(recording))
        return (CustomDialect(try CustomDefinition(proposal.description), name: name), proposal, recording)
    }

    static let shapes = ["home", "echo", "plain", "socketio", "numbered", "rows", "phoenix", "counted"]

    @Test("a proposal is what it was", arguments: shapes)
    func proposals(_ name: String) throws {
        let (_, proposal, _) = try Self.dialect(name)
        if ProcessInfo.processInfo.environment["UPDATE_TRANSCRIPTS"] != nil {
            let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            try Data(proposal.text.utf8).write(to: source.appendingPathComponent("Fixtures/learn/\(name).json"))
        }
        #expect(try Self.file("\(name).json") == Array(proposal.text.utf8))
    }

    @Test("all that came in is understood or ignored on purpose", arguments: shapes)
    func understands(_ name: String) throws {
        let (dialect, proposal, recording) = try Self.dialect(name)
        let context = DialectContext(room: try #require(proposal.room))
        for frame in recording.frames where !frame.isSent {
            let decoded = Array(frame.text.utf8).withUnsafeBytes {
                dialect.decode($0, isBinary: false, context: context)
            }
            #expect(decoded.events != nil, "\(frame.text)")
        }
    }

    @Test("a message of ours is the frame that the app sent", arguments: shapes)
    func sends(_ name: String) throws {
        let (dialect, proposal, recording) = try Self.dialect(name)
        let sent = try #require(recording.frames.first { $0.isSent && $0.text.contains(LearnMark.own) })
        let ids = [
            "home": "n-7fa1", "echo": "c-1-4e1b", "plain": "", "socketio": "t-1-93ab", "numbered": "1", "rows": "2",
            "phoenix": "3", "counted": "u1:1795884000003",
        ]
        let message = ChatMessage(id: ChatID(ids[name] ?? ""), text: LearnMark.own)
        let encoded = dialect.encode(.message(message), context: DialectContext(room: try #require(proposal.room)))
        let frame = try #require(encoded.frames?.first)
        // What stands before the JSON, and the JSON.
        func parts(_ text: String) throws -> (Substring, JSONValue) {
            let prefix = text.prefix { !"[{".contains($0) }
            return (prefix, try JSONValue(parsing: String(text.dropFirst(prefix.count))))
        }
        #expect(try parts(String(decoding: frame.bytes, as: UTF8.self)) == parts(sent.text))
    }

    @Test(
        "what confirms a message is found",
        arguments: [
            ("home", DialectTraits.Confirmation.receipt, DialectTraits.MessageIDOrigin.server),
            ("echo", .echoByID, .server), ("plain", .echoByText, .server), ("socketio", .echoByID, .server),
            ("numbered", .receipt, .server), ("rows", .receipt, .server), ("phoenix", .receipt, .server),
            ("counted", .echoByID, .server),
        ])
    func confirms(
        _ name: String, _ confirmation: DialectTraits.Confirmation, _ origin: DialectTraits.MessageIDOrigin
    ) throws {
        let traits = try Self.dialect(name).0.traits
        #expect(traits.confirmation == confirmation)
        #expect(traits.messageIDOrigin == origin)
    }

    @Test("one frame of the home-grown backend is the log-in, the account, the topic and the members")
    func welcome() throws {
        let (dialect, proposal, recording) = try Self.dialect("home")
        #expect(proposal.token == .frame)
        #expect(dialect.traits.readReport == .upTo)
        let frame = try #require(recording.frames.first { $0.text.contains("welcome") })
        let decoded = Array(frame.text.utf8).withUnsafeBytes {
            dialect.decode($0, isBinary: false, context: DialectContext(room: "lobby"))
        }
        let own = ChatPerson(id: ChatID("u-11"), name: "dot")
        #expect(
            decoded
                == .events([
                    .auth(ChatAuth(state: .ok)), .account(own), .topic(ChatTopic(text: "all things")),
                    .join(ChatMembership(user: own, isSelf: true)),
                ]))
    }

    @Test("a counter of frames is no id, and a string that comes back is the app's own")
    func counters() throws {
        let description = try Self.dialect("counted").1.description
        let rules = description["decode"]?.array ?? []
        let fields = rules.first { $0["event"]?.string == "message" }?["fields"]
        #expect(fields?["id"]?.string == "/data/post/id")
        #expect(fields?["ref"]?.string == "/data/pending_id")
        let template = description["encode"]?["message"]
        #expect(template?["data"]?["pending_id"]?.string == "{{id}}")
        #expect(template?["seq"]?.integer == 3)
        #expect(description["ready_when"] == nil)
        #expect(description["ids"] == nil)
        let reasons = try Self.dialect("counted").1.reasons
        #expect(reasons.contains { $0.hasPrefix("encode.message: /seq was 5") })
    }

    @Test("the answer to a log-in is told from the answers to other requests by its number")
    func answeredLogin() throws {
        let recording = Recording(
            parsing: Array(
                #"""
                {"dir":"out","frame":{"action":"login","seq":1,"data":{"token":"{token}"}}}
                {"dir":"in","frame":{"status":"OK","seq_reply":1}}
                {"dir":"in","frame":{"event":"hello","data":{"user":{"id":"u1","username":"ann"},"channel":"lobby"},"seq":0}}
                {"step":"say"}
                {"dir":"out","frame":{"action":"post","seq":2,"data":{"channel":"lobby","message":"learn-1","pending":"p-7f3a"}}}
                {"dir":"in","frame":{"status":"OK","seq_reply":2}}
                {"dir":"in","frame":{"event":"posted","data":{"post":{"id":"m1","user_id":"u1","username":"ann","channel":"lobby","message":"learn-1","create_at":1764400000000,"pending":"p-7f3a"}},"seq":1}}
                {"step":"hear"}
                {"dir":"in","frame":{"event":"posted","data":{"post":{"id":"m2","user_id":"u2","username":"bob","channel":"lobby","message":"learn-2","create_at":1764400001000,"pending":"p-1"}},"seq":2}}
                """#.utf8), limits: JSONLimits())
        let proposal = try #require(Learner.propose(recording))
        let dialect = CustomDialect(try CustomDefinition(proposal.description), name: "mine")
        func states(_ frame: String) -> [ChatAuth.State] {
            let decoded = Array(frame.utf8).withUnsafeBytes {
                dialect.decode($0, isBinary: false, context: DialectContext(room: "lobby"))
            }
            return decoded.events?.compactMap { if case .auth(let auth) = $0 { auth.state } else { nil } } ?? []
        }
        #expect(states(#"{"status":"OK","seq_reply":1}"#) == [.ok])
        #expect(states(#"{"status":"FAIL","error":{"message":"invalid token"},"seq_reply":1}"#) == [.failed])
        for other in [
            #"{"status":"OK","seq_reply":2}"#, #"{"status":"FAIL","error":{"message":"no"},"seq_reply":2}"#,
            #"{"event":"channel_viewed"}"#,
        ] {
            #expect(states(other).isEmpty, "\(other)")
        }
    }

    /// An app that numbers its commands, and a backend that answers each and brings the message to its sender as well.
    private static let commands = #"""
        {"dir":"in","frame":{"kind":"hello","seq":1,"you":{"id":"u1","name":"ann"}}}
        {"dir":"out","frame":{"kind":"cmd","ref":"r-1","cid":"c_9f2a","body":{"op":"enter"}}}
        {"dir":"in","frame":{"kind":"ack","seq":2,"ref":"r-1","ok":true,"body":{}}}
        {"step":"say"}
        {"dir":"out","frame":{"kind":"cmd","ref":"r-2","cid":"c_9f2a","body":{"op":"post","text":"learn-1","fmt":"plain"}}}
        {"dir":"in","frame":{"kind":"post","seq":3,"cid":"c_9f2a","body":{"post_id":"p1","author":{"id":"u1","name":"ann"},"text":"learn-1","fmt":"plain","created_ms":1763695136500}}}
        {"dir":"in","frame":{"kind":"ack","seq":4,"ref":"r-2","ok":true,"body":{"post_id":"p1","created_ms":1763695136500}}}
        {"step":"hear"}
        {"dir":"in","frame":{"kind":"post","seq":5,"cid":"c_9f2a","body":{"post_id":"p2","author":{"id":"u2","name":"bob"},"text":"learn-2","fmt":"plain","created_ms":1763695137500}}}
        {"dir":"in","frame":{"kind":"post","seq":6,"cid":"c_77b0","body":{"post_id":"p3","author":{"id":"u2","name":"bob"},"text":"soup is ready","fmt":"rich","created_ms":1763695138500}}}
        {"step":"type"}
        {"dir":"in","frame":{"kind":"typing","seq":7,"cid":"c_9f2a","body":{"author":{"id":"u2","name":"bob"},"on":true}}}
        {"step":"reply"}
        {"dir":"out","frame":{"kind":"cmd","ref":"r-3","cid":"c_9f2a","body":{"op":"post","text":"learn-3","fmt":"plain","reply_to":"p2"}}}
        {"dir":"in","frame":{"kind":"post","seq":8,"cid":"c_9f2a","body":{"post_id":"p4","author":{"id":"u1","name":"ann"},"text":"learn-3","fmt":"plain","created_ms":1763695139500}}}
        {"dir":"in","frame":{"kind":"ack","seq":9,"ref":"r-3","ok":true,"body":{"post_id":"p4","created_ms":1763695139500}}}
        """#

    private static func proposal(_ lines: String) throws -> Proposal {
        let proposal = try #require(Learner.propose(Recording(parsing: Array(lines.utf8), limits: JSONLimits())))
        _ = try CustomDefinition(proposal.description)
        return proposal
    }

    private static func fields(_ event: String, _ proposal: Proposal) -> JSONValue? {
        proposal.description["decode"]?.array?.first { $0["event"]?.string == event }?["fields"]
    }

    @Test(
        "the id in an answer is the one of the message that came back, by its value and not by its name",
        arguments: [
            commands, commands.replacing(/"seq":\d+,/, with: ""),
            // Others count for themselves.
            commands.replacing(#""post","seq":"#, with: #""post","seq":1"#),
            // The message does not come back.
            commands.split(separator: "\n").filter { !$0.contains(#""post","seq"#) || !$0.contains("u1") }
                .joined(separator: "\n"),
        ])
    func answers(_ lines: String) throws {
        let proposal = try Self.proposal(lines)
        #expect(proposal.description["echo"]?.string == "ack")
        #expect(Self.fields("message", proposal)?["id"]?.string == "/body/post_id")
        let receipt = Self.fields("receipt", proposal)
        #expect(receipt?["ids"]?.string == "/body/post_id", "\(proposal.text)")
        #expect(receipt?["ref"]?.string == "/ref")
    }

    @Test(
        "a constant of what the app says is the room, where messages have it and other frames another",
        arguments: [
            ("cid", #""c_9f2a""#), ("chan_id", #""c_9f2a""#), ("desk", #""north""#), ("cid", "42"),
        ])
    func roomByValue(_ key: String, _ value: String) throws {
        let lines = Self.commands.replacing("\"cid\"", with: "\"\(key)\"").replacing(#""c_9f2a""#, with: value)
        let proposal = try Self.proposal(lines)
        let room = try JSONValue(parsing: value).string ?? value
        #expect(proposal.room == room)
        #expect(proposal.reasons.contains { $0.hasPrefix("room: \"\(room)\" is /\(key) in all that the app said") })
        for event in ["message", "typing"] {
            #expect(Self.fields(event, proposal)?["room"]?.string == "/\(key)", "\(proposal.text)")
        }
        let dialect = CustomDialect(try CustomDefinition(proposal.description))
        let context = DialectContext(room: room)
        let message = ChatMessage(id: ChatID("r-2"), text: LearnMark.own)
        let bytes = try #require(dialect.encode(.message(message), context: context).frames?.first?.bytes)
        let sent = try JSONValue(parsing: bytes)
        let expected = try JSONValue(parsing: value)
        #expect(sent[key] == expected)
        for (text, other) in [("soup is ready", "c_77b0"), (LearnMark.other, nil)] {
            let line = try #require(lines.split(separator: "\n").first { $0.contains(text) })
            let frame = try #require(try JSONValue(parsing: String(line))["frame"]?.text)
            #expect(Array(frame.utf8).withUnsafeBytes { dialect.explain($0, context: context).otherRoom } == other)
        }
    }

    @Test("without another room the proposal says that none was found, and the constant that may be one")
    func noRoom() throws {
        let lines = Self.commands.split(separator: "\n").filter { !$0.contains("c_77b0") }.joined(separator: "\n")
        let proposal = try Self.proposal(lines)
        #expect(proposal.room == nil)
        #expect(Self.fields("message", proposal)?["room"] == nil)
        let reason = try #require(proposal.reasons.first { $0.hasPrefix("room: none was found") })
        #expect(reason.contains(#"/cid ("c_9f2a")"#))
    }

    private static let hellos = [
        // By what the app's own message has.
        (#"{"type":"hello","data":{"user_id":"u1","login":"ann","version":3}}"#, ["/data/user_id", "/data/login"]),
        (#"{"type":"session","session":"u1"}"#, ["/session", nil]),
        // By the names of the places, or since it greets.
        (#"{"type":"init","me":{"id":"x9","name":"Ann B."}}"#, ["/me/id", "/me/name"]),
        (#"{"type":"welcome","user_id":"x9"}"#, ["/user_id", nil]),
        (#"{"type":"version","number":"u2"}"#, [nil, nil]),
    ]

    @Test("what messages of others have too is no id of the app's, also where it sent one message alone")
    func constant() throws {
        let lines = """
            {"dir":"out","frame":{"type":"msg","body":"learn-1","tmp":"a1"}}
            {"dir":"in","frame":{"type":"msg","mid":"m1","user":{"uid":"u1","nick":"linda"},"body":"learn-1","when":1763695136500}}
            {"dir":"in","frame":{"type":"msg","mid":"m2","user":{"uid":"u2","nick":"carl"},"body":"learn-2","when":1763695137500}}
            {"dir":"in","frame":{"type":"typing","user":{"uid":"u2","nick":"carl"},"on":true}}
            """
        let proposal = try #require(Learner.propose(Recording(parsing: Array(lines.utf8), limits: JSONLimits())))
        let definition = proposal.description
        #expect(definition["encode"]?["message"]?["type"]?.string == "msg")
        #expect(definition["encode"]?["message"]?["body"]?.string == "{{text}}")
        #expect(definition["echo"]?.string == "by-text")
        let rule = try #require(definition["decode"]?.array?.first { $0["event"]?.string == "message" })
        #expect(rule["fields"]?["ref"] == nil && rule["fields"]?["id"]?.string == "/mid")
    }

    @Test("a frame that says who the app is, also before the app has sent anything, gives a rule", arguments: hellos)
    func hello(_ hello: String, _ places: [String?]) throws {
        let text = """
            {"dir":"in","frame":\(hello)}
            {"dir":"out","frame":{"type":"join","room":"ops"}}
            {"dir":"in","frame":{"type":"joined","room":"ops"}}
            {"dir":"out","frame":{"type":"say","room":"ops","text":"learn-1"}}
            {"dir":"in","frame":{"type":"said","room":"ops","id":"m71","text":"learn-1","from":{"id":"u1","name":"ann"}}}
            {"dir":"in","frame":{"type":"said","room":"ops","id":"m75","text":"learn-2","from":{"id":"u2","name":"bob"}}}
            """
        let proposal = try #require(Learner.propose(Recording(parsing: Array(text.utf8), limits: JSONLimits())))
        let rule = proposal.description["decode"]?.array?.first { $0["event"]?.string == "self" }
        #expect(["user.id", "user.name"].map { rule?["fields"]?[$0]?.string } == places)
        _ = try CustomDefinition(proposal.description)
    }

    @Test("what senders have as their name is no id", arguments: [#"{"you":"ann"}"#, #"{"you":{"id":"ann"}}"#])
    func nameAsIdentity(_ welcome: String) throws {
        let proposal = try Self.proposal(
            """
            {"dir":"in","frame":{"type":"welcome","payload":\(welcome)}}
            {"dir":"out","frame":{"type":"say","text":"learn-1"}}
            {"dir":"in","frame":{"type":"said","id":"m71","text":"learn-1","from":"ann"}}
            {"dir":"in","frame":{"type":"said","id":"m75","text":"learn-2","from":"bob"}}
            """)
        let fields = Self.fields("self", proposal)
        #expect(fields?["user.id"] == nil)
        #expect(fields?["user.name"]?.string?.hasPrefix("/payload/you") == true)
    }

    @Test(
        "an id by which a call names a message is that of a history's rows; without one it is not asked from a message on"
    )
    func historyIDs() throws {
        let frames = """
            {"dir":"out","frame":{"type":"say","text":"learn-1"}}
            {"dir":"in","frame":{"type":"said","text":"learn-1","from":"ann"}}
            {"dir":"in","frame":{"type":"said","text":"learn-2","from":"bob"}}
            """
        func call(_ query: String, _ first: Int) -> String {
            let rows = (first..<first + 3).map { #"{"pid":"p\#($0)","text":"old \#($0)","from":"bob"}"# }
            return "\n"
                + #"{"http":{"method":"GET","url":"/posts?n=3\#(query)","status":200,"answer":[\#(rows.joined(separator: ","))]}}"#
        }
        let paged = try Self.proposal(frames + call("", 1) + call("&after=p3", 4)).description["history"]
        #expect(paged?["fields"]?["id"]?.string == "/pid")
        #expect(paged?["get"]?.string == "/posts?n={limit}&after={?after}")
        let other = try Self.proposal(frames + call("&after=x9", 4))
        #expect(other.description["history"]?["get"]?.string == "/posts?n={limit}")
        #expect(other.reasons.contains { $0.contains("no id") })
    }

    @Test(
        "a call for all since the beginning goes on from what rows have as numbers",
        arguments: [
            (#""id":N,"ts":1796028138000"#, "since=0", "&since={?since_ms}"),
            (#""id":N,"ts":1796028138000"#, "after=0&max=50", "&after={?after}&max={limit}"),
            (#""id":N,"ts":1796028138"#, "since=0", "&since={?after}"),
            (#""id":"pN","ts":1796028138000"#, "min=0", "&min={?since_ms}"),
            (#""id":"pN","ts":1796028138"#, "since=0", ""), (#""id":"pN","ts":"2026-11-30T10:00:00Z""#, "since=0", ""),
            (#""id":N,"ts":1796028138"#, "before=0&max=70001", "&before={?before_id}&max={?before_id}"),
        ])
    func sinceBeginning(_ row: String, _ call: String, _ query: String) throws {
        func id(_ number: Int) -> String { row.contains(#""pN""#) ? "\"p\(number)\"" : "\(number)" }
        let rows = (1...3).map { #"{\#(row.replacing("N", with: "\($0)")),"text":"old \#($0)","from":"bob"}"# }
        let proposal = try Self.proposal(
            """
            {"dir":"out","frame":{"type":"say","text":"learn-1"}}
            {"dir":"in","frame":{"type":"said","id":\(id(8)),"text":"learn-1","from":"ann"}}
            {"dir":"in","frame":{"type":"said","id":\(id(9)),"text":"learn-2","from":"bob"}}
            {"http":{"method":"GET","url":"/posts?n=3&\(call)","status":200,"answer":[\(rows.joined(separator: ","))]}}
            """)
        #expect(proposal.description["history"]?["get"]?.string == "/posts?n={limit}" + query)
    }

    @Test("whether a message came in is told, since a description without one shows nothing", arguments: [true, false])
    func hasMessages(_ came: Bool) throws {
        let said = came ? #"{"dir":"in","frame":{"type":"said","id":"m1","text":"learn-2","from":"bob"}}"# : ""
        let proposal = try Self.proposal(#"{"dir":"in","frame":{"type":"welcome","you":"u1"}}"# + "\n" + said)
        #expect(proposal.hasMessages == came)
    }

    @Test("a heartbeat without JSON is told of, where other frames have nothing but JSON")
    func heartbeat() throws {
        let said = """
            {"op":"msg","ch":"ops","txt":"learn-1"}
            {"op":"msg","ch":"ops","txt":"learn-2"}
            """
        let words = #""hb" is no JSON and is dropped"#
        #expect(try Self.proposal(said + "\nhb").reasons.contains { $0.hasPrefix(words) })
        #expect(try Self.proposal(said).reasons.allSatisfy { !$0.contains("no JSON") })
    }

    @Test("rows of a history have their ids where messages have them, also where they are others")
    func rowIDs() throws {
        let frames = """
            {"dir":"out","frame":{"cmd":"post","body":"learn-1","tag":"a1"}}
            {"dir":"in","frame":{"evt":"post","post":{"pid":316,"usr":{"uid":"u1"},"body":"learn-1","ts":1796028138}}}
            {"dir":"in","frame":{"evt":"post.ok","tag":"a1","pid":316}}
            {"dir":"in","frame":{"evt":"beat","ts":1796028139}}
            {"dir":"in","frame":{"evt":"post","post":{"pid":318,"usr":{"uid":"u2"},"body":"learn-2","ts":1796028140}}}
            {"http":{"method":"GET","url":"/posts?limit=2","status":200,"answer":{"posts":[\
            {"pid":1,"usr":{"uid":"u2"},"body":"hello","ts":1796020138},\
            {"pid":2,"usr":{"uid":"u2"},"body":"ho","ts":1796020139}]}}}
            """
        let history = try #require(try Self.proposal(frames).description["history"])
        #expect(history["fields"]?["id"]?.string == "/pid")
    }

    @Test("an empty history is no description of one, and the reason is told")
    func emptyHistory() throws {
        let frames = """
            {"dir":"out","frame":{"type":"say","text":"learn-1"}}
            {"dir":"in","frame":{"type":"said","id":"m71","text":"learn-1","from":"ann"}}
            {"dir":"in","frame":{"type":"said","id":"m75","text":"learn-2","from":"bob"}}
            """
        let empty = #"{"http":{"method":"GET","url":"/messages?room=ops","status":200,"answer":[]}}"#
        let words = "was an empty list"
        let proposal = try Self.proposal(frames + "\n" + empty)
        #expect(proposal.description["history"] == nil)
        #expect(proposal.reasons.contains { $0.contains("/messages?room=ops") && $0.contains(words) })
        let full = empty.replacing("[]", with: #"[{"id":"m75","text":"learn-2","from":"bob"}]"#)
        for lines in [frames, frames + "\n" + full, frames + "\n" + empty + "\n" + full] {
            #expect(try Self.proposal(lines).reasons.allSatisfy { !$0.contains(words) })
        }
    }

    private static let errors = [
        (#"{"status":"FAIL","error":{"code":"E5","message":"no such room"},"seq":4}"#, "/status", "/error/message"),
        (#"{"type":"error","message":"no such room"}"#, "/type", "/message"),
        (#"{"type":"reply","ok":false,"why":"no such room"}"#, "/ok", nil),
        (#"{"error":"no such room"}"#, "/error", "/error"),
        (#"{"status":"OK","error":"","seq":4}"#, nil, nil),
    ]

    @Test("a frame that says that something failed, in any of the usual ways, gives a rule", arguments: errors)
    func complaint(_ error: String, _ condition: String?, _ place: String?) throws {
        let text = """
            {"dir":"out","frame":{"type":"join","room":"ops"}}
            {"dir":"in","frame":{"type":"joined","room":"ops"}}
            {"dir":"out","frame":{"type":"say","room":"ops","text":"learn-1"}}
            {"dir":"in","frame":{"type":"said","room":"ops","id":"m71","text":"learn-1","from":{"id":"u1","name":"ann"}}}
            {"dir":"in","frame":{"type":"reply","ok":true,"n":4}}
            {"dir":"in","frame":\(error)}
            """
        let proposal = try #require(Learner.propose(Recording(parsing: Array(text.utf8), limits: JSONLimits())))
        let rules = proposal.description["decode"]?.array ?? []
        let rule = rules.first { $0["event"]?.string == "error" }
        #expect((rule == nil) == (condition == nil), "\(proposal.text)")
        if let condition { #expect(rule?["when"]?[condition] != nil, "\(proposal.text)") }
        #expect(rule?["fields"]?["text"]?.string == place)
        let dialect = CustomDialect(try CustomDefinition(proposal.description), name: "x")
        let decoded = Array(error.utf8).withUnsafeBytes {
            dialect.decode($0, isBinary: false, context: DialectContext(room: "ops"))
        }
        guard condition != nil else { return }
        guard case .error? = decoded.events?.first else { return #expect(Bool(false), "\(decoded)") }
    }

    @Test("ids that count from the first message on are doubted")
    func doubtedIDs() throws {
        func proposal(_ more: String) throws -> Proposal {
            let lines = (1...3).map {
                #"{"dir":"in","frame":{"type":"said","id":\#($0),"text":"learn-2","from":"ann"\#(more.replacing("N", with: "9182736\($0)"))}}"#
            }
            let text = lines.joined(separator: "\n")
            return try #require(Learner.propose(Recording(parsing: Array(text.utf8), limits: JSONLimits())))
        }
        func id(_ proposal: Proposal) -> String? {
            proposal.description["decode"]?.array?.first { $0["event"]?.string == "message" }?["fields"]?["id"]?.string
        }
        let alone = try proposal("")
        #expect(id(alone) == "/id")
        #expect(alone.reasons.contains { $0.hasPrefix("id: /id counts by one") })
        let other = try proposal(#","uuid":"N""#)
        #expect(id(other) == "/uuid")
        #expect(!other.reasons.contains { $0.hasPrefix("id: ") })
    }

    @Test("a row in a list is the message, whatever happened to it, and a refused log-in is none that is good")
    func rows() throws {
        let (dialect, proposal, _) = try Self.dialect("rows")
        #expect(proposal.room == "messages")
        func decode(_ text: String) -> DecodedFrame {
            Array(text.utf8).withUnsafeBytes {
                dialect.decode($0, isBinary: false, context: DialectContext(room: "messages"))
            }
        }
        let row = #"{"id":7,"text":"hi","user_created":{"id":"u-1","first_name":"Remy"}}"#
        let remy = ChatPerson(id: ChatID("u-1"), name: "Remy")
        let message = ChatMessage(id: ChatID("7"), sender: remy, text: "hi")
        let rows: [(String, DecodedFrame)] = [
            (#"{"type":"subscription","event":"create","data":[\#(row)],"uid":"1"}"#, .events([.message(message)])),
            (
                #"{"type":"subscription","event":"create","data":[\#(row),\#(row)],"uid":"1"}"#,
                .events([.message(message), .message(message)])
            ),
            (
                #"{"type":"subscription","event":"update","data":[\#(row)],"uid":"1"}"#,
                .events([.edit(ChatEdit(id: ChatID("7"), text: "hi", sender: remy))])
            ),
            (
                #"{"type":"subscription","event":"delete","data":[7,"8"],"uid":"1"}"#,
                .events([.delete(ChatDelete(ids: [ChatID("7"), ChatID("8")]))])
            ),
            (
                #"{"type":"subscription","event":"init","data":[\#(row)],"uid":"1"}"#,
                .events([.ready(ChatReady()), .history(ChatHistory(messages: [message]))])
            ),
            (#"{"type":"auth","status":"ok"}"#, .events([.auth(ChatAuth(state: .ok))])),
            (#"{"type":"auth","status":"error"}"#, .events([.auth(ChatAuth(state: .failed))])),
        ]
        for (text, expected) in rows { #expect(decode(text) == expected, "\(text)") }
    }

    @Test(
        "rows are found in the recording of a lone person, in a collection that was empty, and where answers name nothing"
    )
    func fewerRows() throws {
        var lone = try Self.recording("rows")
        lone.frames.removeAll { $0.text.contains(LearnMark.other) }
        var empty = try Self.recording("rows")
        let first = try #require(empty.frames.firstIndex { $0.text.contains(#""init""#) })
        empty.frames[first].text = #"{"type":"subscription","event":"init","data":[],"uid":"1"}"#
        var unnamed = try Self.recording("rows")
        for index in unnamed.frames.indices {
            let text = unnamed.frames[index].text
            for uid in 2...5 where text.contains(#""items""#) {
                unnamed.frames[index].text.replace(#","uid":"\#(uid)""#, with: "")
            }
        }
        let whole = try #require(Learner.propose(try Self.recording("rows"))).description["decode"]?.array
        for (name, recording, confirmation) in [
            ("lone", lone, DialectTraits.Confirmation.receipt), ("empty", empty, .receipt),
            ("unnamed", unnamed, .echoByText),
        ] {
            let description = try #require(Learner.propose(recording)).description
            let rules = description["decode"]?.array ?? []
            for event in ["message", "edit", "delete", "history"] {
                func places(_ rules: [JSONValue]?) -> [JSONValue?] {
                    (rules ?? []).filter { $0["event"]?.string == event }.flatMap {
                        [$0["when"], $0["each"], $0["fields"]]
                    }
                }
                #expect(places(rules) == places(whole), "\(name): \(event)")
            }
            #expect(CustomDialect(try CustomDefinition(description)).traits.confirmation == confirmation, "\(name)")
        }
    }

    // MARK: - Sources

    @Test("lines and what is read of them are the same", arguments: shapes)
    func lines(_ name: String) throws {
        let recording = try Self.recording(name)
        #expect(Recording(parsing: Array(recording.lines.utf8), limits: JSONLimits()) == recording)
        #expect(recording.moments.first == Recording.Moment(.say, frame: recording.moments[0].frame))
    }

    @Test("a browser's HAR has the connection with the most frames, and the calls that were answered with JSON")
    func har() {
        let har = #"""
            {"log":{"entries":[
              {"request":{"method":"GET","url":"wss://h/other"},"_webSocketMessages":[]},
              {"request":{"method":"GET","url":"wss://h/ws?token=secret-1"},"_webSocketMessages":[
                {"type":"send","time":1763695136.5,"opcode":1,"data":"{\"op\":\"say\",\"t\":\"learn-1\"}"},
                {"type":"receive","time":1763695136.75,"opcode":2,"data":"eyJvcCI6InNhaWQifQ=="}]},
              {"request":{"method":"GET","url":"https://h/log"},"response":{"status":200,"content":{"text":"[]"}}},
              {"request":{"method":"GET","url":"https://h/page"},"response":{"status":200,"content":{"text":"<p>"}}}]}}
            """#
        let recording = Recording(parsing: Array(har.utf8), limits: JSONLimits())
        #expect(recording.url == "wss://h/ws?token=secret-1")
        #expect(
            recording.frames == [
                RecordedFrame(at: 1_763_695_136_500, isSent: true, text: #"{"op":"say","t":"learn-1"}"#),
                RecordedFrame(at: 1_763_695_136_750, isSent: false, text: #"{"op":"said"}"#, isBinary: true),
            ])
        #expect(recording.calls.map(\.url) == ["https://h/log"])
        #expect(Learner.propose(recording)?.url == "wss://h/ws")
        #expect(Learner.propose(recording)?.token == .query("token"))
    }

    @Test(
        "a room's title is that of the object with its id, and no person's name",
        arguments: [
            (#"{"type":"rooms","list":[{"id":"r-1","name":"Den"},{"id":"r-7","title":"Night shift"}]}"#, "Night shift"),
            (#"{"type":"joined","room":{"id":"r-7","name":"Ops"}}"#, "Ops"),
            (#"{"type":"joined","room":"r-7","name":"ann"}"#, nil),
            (#"{"type":"joined","room":{"id":"r-7","name":"r-7"}}"#, nil),
        ] as [(String, String?)])
    func roomTitle(_ frame: String, _ title: String?) throws {
        var recording = Recording()
        recording.add(RecordedFrame(isSent: false, text: frame))
        recording.mark(.say)
        recording.add(RecordedFrame(isSent: true, text: #"{"type":"say","room":"r-7","text":"learn-1"}"#))
        let said = #"{"type":"said","room":"r-7","id":"m1","text":"learn-1","from":{"id":"u1","name":"dot"}}"#
        recording.add(RecordedFrame(isSent: false, text: said))
        let proposal = try #require(Learner.propose(recording))
        #expect(proposal.room == "r-7")
        #expect(proposal.roomTitle == title)
    }

    struct TokenCase: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var url = "wss://h/ws"
        var headers: [(name: String, value: String)] = []
        var frame = #"{"op":"hi","who":"dot"}"#
        var token: Proposal.Token
        var proposed = "wss://h/ws"
    }

    static let tokens: [TokenCase] = [
        TokenCase(testDescription: "nothing", headers: [("User-Agent", "x"), ("Accept-Language", "de")], token: .none),
        TokenCase(
            testDescription: "a bearer token", headers: [("Cookie", "a=b"), ("authorization", "Bearer s3cret-1")],
            token: .header(RecordedHeader(name: "authorization", format: "Bearer {token}"))),
        TokenCase(
            testDescription: "another field", headers: [("X-Api-Key", "s3cret-1")],
            token: .header(RecordedHeader(name: "X-Api-Key", format: "{token}"))),
        TokenCase(
            testDescription: "a cookie alone", headers: [("Cookie", "sid=s3cret-1; theme=dark")],
            token: .header(RecordedHeader(name: "Cookie", format: "{token}"))),
        TokenCase(
            testDescription: "a JWT by another name", url: "wss://h/ws?v=2&t=eyJh.eyJi.c3", token: .query("t"),
            proposed: "wss://h/ws?v=2"),
        TokenCase(
            testDescription: "a field that ends in token", url: "wss://h/ws?session_token=s3cret-1&v=2",
            headers: [("Cookie", "a=b")], token: .query("session_token"), proposed: "wss://h/ws?v=2"),
        TokenCase(
            testDescription: "the first frame, with a key that looks like one",
            frame: #"{"op":"login","key":"4f6c1d2a9b8e7f60"}"#, token: .frame),
        TokenCase(
            testDescription: "the first frame, by the member's name",
            frame: #"{"op":"login","sessionToken":"s3cret-1"}"#,
            token: .frame),
        TokenCase(
            testDescription: "a field without a token's name whose secret was not recorded",
            headers: [("X-Org", "7"), ("X-Who", "Key {token}")],
            token: .header(RecordedHeader(name: "X-Who", format: "Key {token}"))),
        TokenCase(
            testDescription: "a parameter likewise", url: "wss://h/ws?who={token}&v=2", token: .query("who"),
            proposed: "wss://h/ws?v=2"),
        TokenCase(
            testDescription: "a frame likewise", frame: #"{"op":"login","who":"Key {token}"}"#, token: .frame),
    ]

    @Test("what the app showed as a token is found, and the recording keeps no secret of a header", arguments: tokens)
    func showsToken(_ row: TokenCase) throws {
        var recording = Recording()
        recording.open(row.url, headers: row.headers)
        recording.add(RecordedFrame(isSent: true, text: row.frame))
        recording.add(RecordedFrame(isSent: false, text: #"{"op":"welcome"}"#))
        recording.mark(.say)
        recording.add(RecordedFrame(isSent: true, text: #"{"op":"say","t":"learn-1"}"#))
        recording.add(RecordedFrame(isSent: false, text: #"{"op":"said","t":"learn-1"}"#))
        let proposal = try #require(Learner.propose(recording))
        #expect(proposal.token == row.token)
        #expect(proposal.url == row.proposed)
        if !row.headers.isEmpty, row.url == "wss://h/ws" { #expect(!recording.lines.contains("s3cret")) }
        #expect(!proposal.text.contains("s3cret") && !proposal.text.contains("4f6c1d2a9b8e7f60"))
        #expect(Recording(parsing: Array(recording.lines.utf8), limits: JSONLimits()) == recording)
    }

    @Test("the headers of a browser's HAR are those of the handshake")
    func headersOfHAR() {
        let har = #"""
            {"log":{"entries":[{"request":{"url":"wss://h/ws","headers":[{"name":"Host","value":"h"},
              {"name":"Authorization","value":"Bearer s3cret-1"}]},"_webSocketMessages":[
                {"type":"receive","time":1,"opcode":1,"data":"{\"op\":\"hi\"}"}]}]}}
            """#
        let recording = Recording(parsing: Array(har.utf8), limits: JSONLimits())
        #expect(
            Learner.propose(recording)?.token
                == .header(RecordedHeader(name: "Authorization", format: "Bearer {token}")))
    }

    @Test(
        "whatever a recording has, a proposal compiles or there is none",
        arguments: [
            "", "x", "{}", "[]", #"{"dir":"in","frame":{}}"#, #"{"dir":"in","frame":[]}"#, #"{"dir":"in","frame":"2"}"#,
            #"{"dir":"in","frame":{"type":"a"}}"#, #"{"dir":"in","frame":{"text":"learn-1"}}"#,
            #"{"dir":"in","frame":[["learn-2"]]}"#, #"{"dir":"in","frame":{"$a":{"{{b":"learn-1"}}}"#,
            #"{"dir":"out","frame":{"text":"learn-1"}}"#,
        ])
    func oddities(_ line: String) throws {
        guard let proposal = Learner.propose(Recording(parsing: Array(line.utf8), limits: JSONLimits())) else { return }
        _ = try CustomDefinition(proposal.description)
    }

    @Test("frames of built-in dialects give their message", arguments: ["envelope", "plainjson", "swiftchat", "typed"])
    func families(_ name: String) throws {
        let folder = try #require(Bundle.module.url(forResource: "Fixtures", withExtension: nil))
        var recording = Recording()
        for file in ["in", "out"] {
            let text = try String(contentsOf: folder.appendingPathComponent("\(name)/\(file).jsonl"), encoding: .utf8)
            for line in text.split(separator: "\n") {
                guard let json = try? JSONValue(parsing: String(line)), json["drop"] == nil,
                    let frame = RecordedFrame(line: json)
                else { continue }
                recording.frames.append(frame)
            }
        }
        let proposal = try #require(Learner.propose(recording))
        _ = try CustomDefinition(proposal.description)
        let rule = try #require(proposal.description["decode"]?.array?.first { $0["event"]?.string == "message" })
        let fields: [String: [String]] = [
            "envelope": ["/body", "/message_id", "/sender_name"], "plainjson": ["/text", "/id", "/senderName"],
            "swiftchat": ["/message", "/id", "/user"],
            "typed": ["/payload/text", "/payload/id", "/payload/senderName"],
        ]
        #expect(["text", "id", "sender.name"].map { rule["fields"]?[$0]?.string ?? "" } == fields[name])
        #expect(proposal.description["encode"]?["message"] != nil)
    }
}
