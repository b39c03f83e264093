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
