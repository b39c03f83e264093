import BridgeTestSupport
import ChatModel
import DescribedDialects
import Dialects
import Foundation
import JSONText
import Testing

@testable import Configuration

@Suite("Described dialects in the configuration")
struct ConfigurationDialectsTests {
    private static let room = "[[rooms]]\nname = \"ops\"\nurl = \"ws://h/\"\ndialect = \"mine\"\n"

    @Test("a file is found beside the configuration and used by rooms")
    func file() throws {
        let toml = "[dialects.mine]\nfile = \"x/mine.json\"\n" + Self.room
        let loaded = try load(
            toml, files: ["x/mine.json": #"{"decode":[],"reconnect":{"first":7}}"#])
        let dialect = try #require(try loaded.dialect(named: "mine"))
        #expect(dialect.traits.name == "mine")
        #expect(dialect.traits.backoff.first == .seconds(7))
        #expect(try loaded.dialect(of: loaded.rooms[0])?.traits == dialect.traits)

        let request = ConfigurationRequest(path: "/etc/chatbridge/a.toml")
        let elsewhere = try ConfigurationLoader.load(
            request,
            from: testEnvironment(["/etc/chatbridge/a.toml": toml, "/etc/chatbridge/x/mine.json": #"{"decode":[]}"#]))
        #expect(elsewhere.configuration.dialects.map(\.name) == ["mine"])
    }

    @Test("built-in dialects are found by the same way, with options that nobody knows refused")
    func builtIn() throws {
        let loaded = try load("[dialects.mine]\ndecode = []\n" + Self.room)
        #expect(try loaded.dialect(named: "pixar")?.traits.name == "envelope")
        #expect(try loaded.dialect(named: "nothing") == nil)
        for name in ["mine", "envelope"] {
            #expect(throws: DialectOptionError.self) {
                try loaded.dialect(named: name, options: DialectOptions(.object([.init("x", .integer(1))])))
            }
        }
    }

    @Test("a description can stand in the configuration, with interpolation")
    func inline() throws {
        let toml = """
            [dialects.mine]
            echo = "none"
            headers = { X-Team = "${TEAM}" }
            decode = [{ when = { "/op" = "msg", "/n" = 1.5 }, event = "message", fields = { text = "/t" } }]
            encode = { message = { op = "send", t = "{{text}}", n = 1, on = true } }

            """ + Self.room
        let loaded = try load(toml, variables: ["TEAM": "red"])
        let dialect = try #require(try loaded.dialect(named: "mine") as? CustomDialect)
        #expect(dialect.definition.headers.map(\.value) == ["red"])
        #expect(loaded.rooms[0].headers.map(\.value.revealed) == ["red"])
        #expect(dialect.traits.confirmation == .none)
    }

    @Test("what the description says of the socket counts where the room is silent")
    func socket() throws {
        let json = #"""
            {"url":"wss://h/{room}?v=1&t={token}","headers":{"A":"x-{room}","B":"theirs"},"subprotocols":["v1"],"decode":[]}
            """#
        let toml = """
            [dialects.mine]
            file = "m.json"
            [[rooms]]
            name = "ops"
            dialect = "mine"
            headers = { b = "ours" }
            auth = { type = "query", token = "secret" }
            [[rooms]]
            name = "desk"
            dialect = "mine"
            url = "ws://other/"
            subprotocol = ["v2"]
            """
        let loaded = try load(toml, files: ["m.json": json])
        #expect(loaded.rooms[0].url?.text == "wss://h/ops?v=1")
        #expect(loaded.rooms[0].auth.param == "t")
        #expect(loaded.rooms[0].subprotocols == ["v1"])
        #expect(loaded.rooms[0].headers.map { "\($0.name)=\($0.value.revealed)" } == ["b=ours", "A=x-ops"])
        #expect(loaded.rooms[1].url?.text == "ws://other/")
        #expect(loaded.rooms[1].subprotocols == ["v2"])
        // A place for the token in a field is that of the room's token.
        let keyed = try load(
            """
            [dialects.mine]
            file = "m.json"
            [[rooms]]
            name = "ops"
            dialect = "mine"
            auth = { type = "header", token = "secret" }
            """, files: ["m.json": #"{"url":"ws://h/","headers":{"X-Key":"k={token}","B":"theirs"},"decode":[]}"#])
        #expect(keyed.rooms[0].auth.headerName == "X-Key" && keyed.rooms[0].auth.format == "k={token}")
        #expect(keyed.rooms[0].headers.map(\.name) == ["B"])
        #expect(
            problems("[[rooms]]\nname = \"a\"\ndialect = \"mine\"\n[dialects.mine]\ndecode = []")
                == ["chatbridge.toml:1:1: room \"a\" has no url"])
    }

    @Test("strings of a file have the environment's variables too")
    func fileVariables() throws {
        let toml = "[dialects.mine]\nfile = \"m.json\"\n" + Self.room
        let json = #"{"headers":{"X-Team":"${TEAM}","X-Price":"5 $"},"decode":[]}"#
        let loaded = try load(toml, variables: ["TEAM": "red"], files: ["m.json": json])
        #expect(loaded.dialects[0].definition.headers.map(\.value) == ["red", "5 $"])
        let missing = problems(toml, files: ["m.json": json])
        #expect(missing.count == 1)
        #expect(missing.first?.hasPrefix("m.json: /headers/X-Team: ") == true, "\(missing)")
    }

    @Test("addresses of files in frames are completed by the room's HTTP base")
    func base() throws {
        let json = #"""
            {"decode":[{"event":"message","fields":{"attachments":{"each":"/f","fields":{"url":"/u"}}}}]}
            """#
        let loaded = try load(
            "[dialects.mine]\nfile = \"m.json\"\n[backends.b]\ndialect = \"mine\"\nurl = \"wss://h/ws\"\n"
                + "http_base = \"https://files.h/api\"\n[[rooms]]\nname = \"ops\"\nbackend = \"b\"\n",
            files: ["m.json": json])
        let dialect = try #require(try loaded.dialect(of: loaded.rooms[0]))
        let decoded = Array(#"{"f":{"u":"/a.png"}}"#.utf8).withUnsafeBytes {
            dialect.decode($0, isBinary: false, context: DialectContext(room: "ops"))
        }
        guard case .message(let message)? = decoded.events?.first else {
            Issue.record("no message")
            return
        }
        #expect(message.attachments.map(\.url) == ["https://files.h/api/a.png"])
    }

    // MARK: - Problems

    @Test(
        "a token that no frame shows, and a frame for it that is never sent",
        arguments: [
            ("message", false, "the dialect mine has no frame for a token"),
            (
                "bearer", true,
                "shows the token by a frame, encode.auth, which is only sent with auth of type \"message\""
            ),
            ("message", true, ""), ("bearer", false, ""),
        ])
    func tokenFrames(_ type: String, _ hasFrame: Bool, _ complaint: String) {
        let json =
            hasFrame
            ? #"""
            {"decode":[{"event":"auth","fields":{"state":{"const":"ok"}}}],"encode":{"auth":{"t":"{{access_token}}"}}}
            """# : #"{"decode":[]}"#
        let found = problems(
            "[dialects.mine]\nfile = \"m.json\"\n" + Self.room + "auth = { type = \"\(type)\", token = \"t\" }\n",
            files: ["m.json": json])
        #expect(found.count == (complaint.isEmpty ? 0 : 1), "\(found)")
        #expect(complaint.isEmpty || found.first?.contains(complaint) == true, "\(found)")
    }

    @Test("mistakes of a file are told by their path, all of them")
    func fileProblems() {
        let toml = "[dialects.mine]\nfile = \"m.json\"\n" + Self.room
        let json = #"{"decode":[{"event":"mesage"},{"event":"typing","when":{"op":1}}],"ecno":"none"}"#
        #expect(
            problems(toml, files: ["m.json": json]) == [
                #"m.json: unknown key "ecno" (did you mean "echo"?)"#,
                #"m.json: /decode/0/event: unknown event "mesage" (did you mean "message"?)"#,
                #"m.json: /decode/1/when/op: "op" is no pointer: it begins with "/", and "~" is written "~0", "/" "~1""#,
                #"m.json: /decode/1/fields: typing needs "state""#,
            ])
        #expect(
            problems(toml, files: ["m.json": "{\n  \"decode\": [,]\n}"]) == ["m.json:2:14: no JSON: unexpected-byte"])
        #expect(problems(toml) == [#"chatbridge.toml:2:8: there is no file "m.json""#])
        #expect(
            problems(
                "[dialects.mine]\nfile = \"m.json\"\necho = \"none\"\n" + Self.room,
                files: ["m.json": #"{"decode":[]}"#])
                == [#"chatbridge.toml:3:1: "echo" has no place beside "file""#])
    }

    @Test("mistakes of a description in the configuration are told where they stand")
    func inlineProblems() {
        let toml = """
            [dialects.mine]
            ecno = "none"
            decode = [
              { event = "mesage" },
              { event = "message", fields = { text = 7 } },
            ]

            """ + Self.room
        #expect(
            problems(toml) == [
                #"chatbridge.toml:2:1: unknown key "ecno" (did you mean "echo"?)"#,
                #"chatbridge.toml:4:13: /decode/0/event: unknown event "mesage" (did you mean "message"?)"#,
                "chatbridge.toml:5:42: /decode/1/fields/text: must be a pointer, a list of pointers or a table, "
                    + "found a number",
            ])
        #expect(
            problems("[dialects.mine]\necho = \"none\"\n" + Self.room) == [
                #"chatbridge.toml:1:1: dialect "mine" has no "decode""#
            ])
    }

    @Test("names are lower case, not those of built-in dialects, and near ones are suggested")
    func names() {
        #expect(
            problems(withRoom("[dialects.envelope]\ndecode = []"))
                == [#"chatbridge.toml:2:11: "envelope" is the name of a built-in dialect"#])
        #expect(
            problems(withRoom("[dialects.\"My own\"]\ndecode = []"))
                == ["chatbridge.toml:2:11: a dialect's name is 1 to 63 of a-z 0-9 _ -"])
        let near = problems(
            "[[rooms]]\nname = \"a\"\nurl = \"ws://h/\"\ndialect = \"nine\"\n[dialects.mine]\ndecode = []")
        #expect(near.count == 1)
        #expect(near.first?.contains(#"unknown dialect "nine" (did you mean "mine"?)"#) == true)
        let custom = problems("[[rooms]]\nname = \"a\"\nurl = \"ws://h/\"\ndialect = \"custom\"")
        #expect(
            custom == ["chatbridge.toml:4:11: a custom dialect is described in [dialects.NAME] and used by that name"])
        #expect(
            problems(withRoom("[dialects]\nmine = 5")) == ["chatbridge.toml:3:8: expected a table, found an integer"])
    }

    @Test("what is printed loads again and keeps secrets to itself")
    func printing() throws {
        let toml = """
            [dialects.mine]
            headers = { X-Key = "hunter2", Authorization = "Bearer {token}" }
            login = { post = "/l", body = { u = "{{account.name}}", key = "hunter2" }, token = "/t" }
            decode = [{ event = "system", fields = { text = { ptr = "/t", default = "a $ b" } } }]
            encode = { "typing.start" = { "$$x" = 1.5, on = true } }

            """ + Self.room
        let printed = ConfigurationPrinter.text(try load(toml))
        #expect(!printed.contains("hunter2"))
        #expect(printed.contains("Bearer {token}"))
        let again = try load(printed)
        #expect(again.dialects.map(\.name) == ["mine"])
        #expect(again.dialects.first?.json["decode"] == (try load(toml)).dialects.first?.json["decode"])
        #expect(ConfigurationPrinter.text(again) == printed)
    }

    @Test(
        "a description is printed without what came from elsewhere, and without what is called a secret",
        arguments: [
            (#"{ op = "auth", token = "hunter2" }"#, #"{ op = "auth", token = "***" }"#),
            (#"{ op = "auth", Access-Token = ["hunter2"] }"#, #"{ op = "auth", Access-Token = ["***"] }"#),
            (#"{ op = "auth", key = "${X}" }"#, #"{ op = "auth", key = "***" }"#),
            (#"{ op = "auth", password = "" }"#, #"{ op = "auth", password = "" }"#),
            (#"{ op = "sub", token = "{{room}}" }"#, #"{ op = "sub", token = "{{room}}" }"#),
            (#"{ op = "sub", session = "{x" }"#, #"{ op = "sub", session = "***" }"#),
            (#"'{"op":"auth","token":"hunter2","n":1}'"#, #""{\"op\":\"auth\",\"token\":\"***\",\"n\":1}""#),
            (#""/in?v=1&token=hunter2#x""#, #""/in?v=1&token=***#x""#),
            (#"{ op = "sub", tokens = 5, inside = "words" }"#, #"{ op = "sub", tokens = 5, inside = "words" }"#),
        ])
    func printedFrames(_ written: String, _ printed: String) throws {
        let toml = """
            [dialects.mine]
            on_open = [\(written)]
            decode = [{ event = "system", fields = { text = "/t" } }]

            """ + Self.room
        let text = ConfigurationPrinter.text(try load(toml, variables: ["X": "hunter2"]))
        #expect(!text.contains("hunter2"))
        let line = text.split(separator: "\n").first { $0.hasPrefix("on_open") }
        #expect(line == "on_open = [\(printed)]")
    }
}
