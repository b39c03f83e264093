import BridgeTestSupport
import Testing

@testable import ChatBridge
@testable import Configuration

@Suite("check --frame")
struct FrameCheckTests {
    private func check(
        _ files: [String: String], _ options: CheckOptions
    ) -> (code: Int32, lines: [String], errors: String) {
        var (output, errors) = ("", "")
        let code = OfflineCommands.check(
            GlobalOptions(), options, environment: testEnvironment(files), output: { output += $0 },
            errors: { errors += $0 })
        return (code, output.split(separator: "\n").map(String.init), errors)
    }

    @Test("a frame of a built-in dialect, spread over lines, is one frame")
    func oneFrame() {
        let frame = "{ \"event\": \"message\",\n  \"body\": \"hi\" }\n"
        let checked = check(["chatbridge.toml": withRoom(""), "f": frame], CheckOptions(frame: "f"))
        #expect(checked.code == 0)
        #expect(checked.lines == [#"{"event":{"kind":"message","text":"hi"}}"#])
    }

    @Test("a line is a frame, or an event in its wrapping; a drop makes the exit status 65")
    func lines() {
        let frames = """
            {"event":"typing","sender_id":"A"}

            {"event":"mesage"}
            {"event":
            {"event":{"kind":"ping"}}
            {"event":{"kind":"typing"}}
            """
        let checked = check(["chatbridge.toml": withRoom(""), "f": frames], CheckOptions(frame: "f"))
        #expect(checked.code == 65)
        #expect(
            checked.lines == [
                #"{"event":{"kind":"typing","state":"start","sender":{"id":"A"},"ttl":3000}}"#,
                #"{"drop":"unknown-type","type":"mesage"}"#, #"{"drop":"malformed"}"#, #"{"drop":"unsupported"}"#,
                #"{"drop":"wrong-type","why":"state in {\"kind\":\"typing\"}"}"#,
            ])
    }

    @Test("of a recording the frames that came in count, also those that are no JSON")
    func recordings() {
        let recording = """
            {"url":"wss://h/ws"}
            {"step":"say"}
            {"dir":"out","at":1,"frame":{"event":"message","body":"ours"}}
            {"dir":"in","at":2,"frame":{"event":"message","body":"hi"}}
            {"dir":"in","at":3,"frame":"2"}
            """
        let checked = check(["chatbridge.toml": withRoom(""), "f": recording], CheckOptions(frame: "f"))
        #expect(checked.code == 65)
        #expect(
            checked.lines == [#"{"event":{"kind":"message","text":"hi"}}"#, #"{"drop":"not-object"}"#])
    }

    @Test("an id that counts all frames of the connection is doubted, and one that a message has of its own is not")
    func countedIDs() {
        let toml = """
            [dialects.mine]
            decode = [{ when = { "/op" = "msg" }, event = "message", fields = { id = "/ID", text = "/txt" } }]
            [[rooms]]
            name = "a"
            url = "ws://h/"
            dialect = "mine"
            """
        let frames = """
            {"op":"hi","seq":4}
            {"op":"msg","seq":5,"no":71,"txt":"a"}
            {"op":"act","seq":6}
            {"op":"msg","seq":7,"no":75,"txt":"b"}
            """
        func warned(_ id: String, _ frames: String) -> String {
            check(
                ["chatbridge.toml": toml.replacing("ID", with: id), "f": frames], CheckOptions(frame: "f")
            ).errors
        }
        #expect(
            warned("seq", frames).hasPrefix("warning: rule 0 reads the id of messages there: /seq counts all frames"))
        #expect(warned("no", frames) == "")
        let messages = frames.split(separator: "\n").filter { $0.contains("msg") }.joined(separator: "\n")
        #expect(warned("no", messages) == "")
        let counted = (1...2).map { "{\"op\":\"msg\",\"no\":\($0),\"txt\":\"a\"}" }.joined(separator: "\n")
        #expect(warned("no", counted).contains("/no counts by one from the first message on"))
        // Those of another room are messages too.
        let rooms = ["a", "a", "b", "a"].enumerated().map { number, room in
            "{\"op\":\"msg\",\"ch\":\"\(room)\",\"no\":\(number + 316),\"txt\":\"a\"}"
        }.joined(separator: "\n")
        let roomed = toml.replacing("ID", with: "no").replacing("text =", with: "room = \"/ch\", text =")
        let checked = check(["chatbridge.toml": roomed, "f": rooms], CheckOptions(frame: "f"))
        #expect(checked.errors == "")
        #expect(checked.lines.contains { $0.contains("other_room") })
    }

    @Test("ids of receipts that no message has are doubted where the frames have those of messages elsewhere")
    func receiptIDs() {
        let toml = """
            [dialects.mine]
            ready_when = { "/op" = "ok" }
            decode = [
              { when = { "/op" = "msg" }, event = "message", fields = { id = "/id", text = "/txt" } },
              { when = { "/op" = "ok" }, event = "receipt", fields = { state = { const = "sent" }, ids = "/ID", ref = "/cid" } },
            ]
            [[rooms]]
            name = "a"
            url = "ws://h/"
            dialect = "mine"
            """
        let frames = """
            {"op":"msg","id":"m71","txt":"a"}
            {"op":"ok","n":4,"cid":"c1","mid":"m71"}
            {"op":"msg","id":"m75","txt":"b"}
            {"op":"ok","n":7,"cid":"c2","mid":"m75"}
            """
        func warned(_ id: String, _ frames: String) -> String {
            check(
                ["chatbridge.toml": toml.replacing("ID", with: id), "f": frames], CheckOptions(frame: "f")
            ).errors
        }
        #expect(
            warned("n", frames)
                == "warning: rule 1 reads ids of sent messages that no message among the frames has; /mid has those of messages\n"
        )
        #expect(warned("mid", frames) == "")
        #expect(warned("n", frames.replacing(#""id":"m"#, with: #""id":"x"#)) == "")
    }

    @Test("secrets are not read, which frames have no use for", arguments: ["token_file", "token_credential"])
    func secrets(_ key: String) {
        let toml = withRoom("").replacing(" }]", with: ", auth = { type = \"bearer\", \(key) = \"token\" } }]")
        let files = ["chatbridge.toml": toml, "f": #"{"event":"message","body":"hi"}"#]
        #expect(check(files, CheckOptions(frame: "f")).code == 0)
        #expect(check(files, CheckOptions()).code == 78)
    }

    struct FindingCase: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var rules: String
        var frames = FindingCase.frames
        var errors: [String]

        static let frames = """
            {"op":"msg","d":{"id":5,"body":"a","from":{"nick":"Vega"},"files":[{"href":"u","title":"t"},{"href":"v"}]}}
            {"op":"msg","d":{"id":6,"body":"b","from":{"nick":"Vega"}}}
            """
    }

    static let findingCases: [FindingCase] = [
        FindingCase(
            testDescription: "a required field",
            rules: #"{ when = { "/op" = "msg" }, event = "message", fields = { text = "/d/bdoy" } }"#,
            errors: [
                #"warning: rule 0 reads text at /d/bdoy, which none of its 2 frames has (did you mean "/d/body"?)"#
            ]
        ),
        FindingCase(
            testDescription: "a level is missing",
            rules: #"{ when = { "/op" = "msg" }, event = "message", fields = { text = "/body" } }"#,
            errors: [#"warning: rule 0 reads text at /body, which none of its 2 frames has (did you mean "/d/body"?)"#]),
        FindingCase(
            testDescription: "an optional field is a note, once; one that some frames have is nothing",
            rules: #"""
                { when = { "/op" = "msg" }, event = "message", fields = { text = "/d/body", replyTo = "/d/re", attachments =
                { each = "/d/files", fields = { url = "/href", name = "/title" } } } }
                """#, errors: ["note: rule 0 reads replyTo at /d/re, which none of its 2 frames has"]),
        FindingCase(
            testDescription: "where another pointer or a default stands in, only a slip is worth a word",
            rules: #"""
                { when = { "/op" = "msg" }, event = "message", fields = { text = ["/d/body", "/d/raw"], at = { ptr =
                "/d/when", default = 1 }, "sender.name" = ["/d/from/nikc", "/d/from/uid", "/d/id"] } }
                """#,
            errors: [
                "warning: rule 0 reads sender.name at /d/from/nikc, which none of its 2 frames has "
                    + #"(did you mean "/d/from/nick"?)"#
            ]),
        FindingCase(
            testDescription: "in the elements of a list",
            rules: #"""
                { when = { "/op" = "msg" }, event = "message", fields = { text = "/d/body", attachments =
                { each = "/d/files", fields = { url = "/hrf", name = "/title", size = "/bytes" } } } }
                """#,
            errors: [
                "warning: rule 0 reads attachments.url at /hrf of /d/files, which none of its 2 elements has "
                    + #"(did you mean "/href"?)"#,
                "note: rule 0 reads attachments.size at /bytes of /d/files, which none of its 2 elements has",
            ]),
        FindingCase(
            testDescription: "a list of one event each",
            rules: #"{ event = "message", each = "/d/file", fields = { text = "/title" } }"#,
            errors: [
                #"warning: rule 0 reads each at /d/file, which none of its 2 frames has (did you mean "/d/files"?)"#
            ]
        ),
        FindingCase(
            testDescription: "a condition's pointer, where another rule takes the frames",
            rules: #"{ when = { "/oop" = "msg" }, event = "ping" }, { event = "ignore" }"#,
            errors: [#"warning: rule 0 matched no frame: none of 2 has /oop (did you mean "/op"?)"#]),
        FindingCase(
            testDescription: "a condition on something that no frame has, and one that wants it absent",
            rules: #"""
                { when = { "/error" = { exists = true } }, event = "ping" }, { when = { "/gone" = { exists = false } },
                event = "ignore" }
                """#, errors: ["note: rule 0 matched no frame: none of 2 has /error"]),
        FindingCase(
            testDescription: "no rule matches, and one would but for a slip in a condition's pointer",
            rules: #"{ when = { "/op" = "msg", "/d/fro" = { exists = true } }, event = "ping" }"#,
            errors: [
                "warning: rule 0 comes nearest to 2 frames that no rule matched: /d/fro is not there "
                    + #"(did you mean "/d/from"?)"#
            ]),
        FindingCase(
            testDescription: "no rule matches, and one would but for a slip in a condition's value",
            rules: #"{ when = { "/op" = "leave" }, event = "ping" }, { when = { "/op" = "mgs" }, event = "ping" }"#,
            errors: [
                #"warning: rule 1 comes nearest to 2 frames that no rule matched: /op is "msg", not "mgs""#
            ]),
        FindingCase(
            testDescription: "no rule is near, and a pointer that is near leads to another value",
            rules: #"{ when = { "/op" = "leave" }, event = "ping" }, { when = { "/opp" = "leave" }, event = "ping" }"#,
            errors: [#"warning: rule 1 matched no frame: none of 2 has /opp (did you mean "/op"?)"#]),
        FindingCase(
            testDescription: "one frame, of which one condition of two holds",
            rules: #"{ when = { "/op" = "msg", "/d/id" = [1, 2] }, event = "ping" }"#,
            frames: #"{"op":"msg","d":{"id":7}}"#,
            errors: ["warning: rule 0 comes nearest to a frame that no rule matched: /d/id is 7, not 1 or 2"]),
        FindingCase(
            testDescription: "the JSON in a string counts as the frame's",
            rules: #"{ event = "message", fields = { text = "/d/txet", id = "/d/id" } }"#,
            frames: #"{"d":"{\"id\":1,\"text\":\"a\"}"}"#,
            errors: [
                #"warning: rule 0 reads text at /d/txet, which its only frame does not have (did you mean "/d/text"?)"#
            ]),
    ]

    @Test(
        "pointers that lead nowhere in all frames are told, with the nearest that the frames have",
        arguments: findingCases)
    func findings(_ row: FindingCase) {
        let toml = """
            [dialects.mine]
            unwrap = [{ ptr = "/d", as = "jsonstring" }]
            decode = [\(row.rules.replacing("\n", with: " "))]
            [[rooms]]
            name = "a"
            url = "ws://h/"
            dialect = "mine"
            """
        let checked = check(["chatbridge.toml": toml, "f": row.frames], CheckOptions(frame: "f"))
        #expect(!checked.lines.isEmpty)
        #expect(checked.errors.split(separator: "\n").map(String.init) == row.errors)
    }

    @Test("the conditions of readiness and of replies are looked at, too, and what follows a prefix")
    func otherConditions() {
        let toml = """
            [dialects.mine]
            frames = "prefixed"
            ready_when = { "/body/opp" = "hi" }
            reply = [{ when = { "/prefiks" = "2" }, send = { "$prefix" = "3" } }]
            decode = [{ event = "message", fields = { text = "/body/txet" } }]
            [[rooms]]
            name = "a"
            url = "ws://h/"
            dialect = "mine"
            """
        let checked = check(
            ["chatbridge.toml": toml, "f": #"42{"op":"hi","text":"a"}"#], CheckOptions(frame: "f"))
        #expect(
            checked.errors == """
                warning: ready_when matched no frame: the only one has no /body/opp (did you mean "/body/op"?)
                warning: rule 0 reads text at /body/txet, which its only frame does not have (did you mean "/body/text"?)
                warning: reply 0 matched no frame: the only one has no /prefiks (did you mean "/prefix"?)

                """)
    }

    @Test("--event needs no wrapping")
    func events() {
        let event = #"{"kind":"typing","state":"start","id":"1","at":1000,"sender":{"id":"A","name":"Ada"}}"#
        let checked = check(["chatbridge.toml": withRoom(""), "-": "", "e": event], CheckOptions(event: "e"))
        #expect(checked.code == 0)
        #expect(checked.lines.first?.contains(#""frame":{"event":"typing","message_id":"1""#) == true)
    }

    @Test("whose dialect must be clear, and the file there")
    func whose() {
        let toml = """
            [dialects.mine]
            decode = []
            [[rooms]]
            name = "a"
            url = "ws://h/"
            [[rooms]]
            name = "b"
            url = "ws://h/"
            dialect = "mine"
            """
        let files = ["chatbridge.toml": toml, "f": "{}"]
        #expect(check(files, CheckOptions(frame: "f")).code == 64)
        #expect(check(files, CheckOptions(frame: "f", room: "b")).lines == [#"{"drop":"unknown-type"}"#])
        #expect(check(files, CheckOptions(frame: "f", room: "#a")).lines == [#"{"drop":"missing-field"}"#])
        #expect(check(files, CheckOptions(frame: "f", room: "c")).errors.contains("there are: a, b"))
        #expect(check(files, CheckOptions(frame: "g", room: "a")).code == 66)
        #expect(check(files, CheckOptions(frame: "f", room: "")).code == 64)
        let large = check(
            files.merging(["f": String(repeating: " ", count: 1024 * 1024 + 1)]) { $1 },
            CheckOptions(frame: "f", room: "a"))
        #expect(large.code == 66)
        #expect(large.errors.contains("larger than 1024 KiB"))
    }

    private static let exampleNames = ["company", "event-data", "ddp", "phoenix"]

    @Test("the examples decode their sample frames as said beside them", arguments: exampleNames)
    func examples(_ name: String) throws {
        func example(_ file: String) throws -> String { try RepositoryFile.example("dialects/\(file)") }
        var files = ["chatbridge.toml": try example("example.toml"), "frames": try example("\(name).frames.jsonl")]
        for name in Self.exampleNames { files["\(name).json"] = try example("\(name).json") }
        let checked = check(files, CheckOptions(frame: "frames", room: name))
        #expect(checked.lines == (try example("\(name).checked.jsonl")).split(separator: "\n").map(String.init))
        #expect(checked.errors == "")
        #expect(checked.lines.count > 10)
    }
}
