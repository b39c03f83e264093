import BridgeTestSupport
import ChatModel
import DescribedDialects
import Dialects
import JSONText
import Testing

@testable import Configuration

/// Two values of an option, written in TOML, that make different dialects.
struct OptionSample {
    var values: [String]
    /// Other options that it needs.
    var beside = ""

    init(_ first: String, _ second: String, beside: String = "") {
        values = [first, second]
        self.beside = beside
    }
}

@Suite("What the pages of the dialects say of their options")
struct DocumentedOptionsTests {
    /// By option, those of a table within behind the table's name and a dot.
    static let samples: [String: [String: OptionSample]] = [
        "envelope": [:],
        "swiftchat": [:],
        "jwt-rooms": [
            "room_id": OptionSample("7", "\"eight\""),
            "base": base,
            "naive_offset": OptionSample("3600", "-64800"),
            "typing": OptionSample("\"typing\"", "\"both\""),
        ],
        "typed": [
            "types": OptionSample("{ \"chat.message\" = \"msg\" }", "{ \"chat.typing\" = \"msg\" }"),
            "fallback_text": flag,
            "fallback_sender": OptionSample("\"a\"", "\"b\"", beside: "fallback_text = true"),
        ],
        "plainjson": [
            "timestamp": OptionSample("\"iso8601\"", "\"reference\""),
            "ack_on": OptionSample("\"read\"", "\"never\""),
            "history_url": OptionSample("\"/a/{room}\"", "\"/b/{room}?since={since}&limit={limit}\""),
            "send_last_online": flag,
            "base": base,
        ],
        "directus": [
            "base": base,
            "collection": OptionSample("\"posts\"", "\"notes\""),
            "fields": OptionSample("{ text = \"body\" }", "{ text = \"words\" }"),
            "filter": OptionSample("{ status = { _eq = \"published\" } }", "{ status = { _eq = \"draft\" } }"),
            "send_sender_name": flag,
            "send_client_id": flag,
            "public_files": flag,
            "typing": OptionSample("\"off\"", "\"extension\""),
        ].merging(
            [
                "id": "id", "text": "text", "room": "room", "user": "user_created", "date": "date_created",
                "updated": "date_updated", "sender_name": "sender_name", "client_id": "client_id", "file": "file",
                "reply_to": "reply_to",
            ].map { ("fields.\($0.key)", OptionSample("\"\($0.value)\"", "\"another\"")) }, uniquingKeysWith: { $1 }),
    ]

    /// Frames with what the fixtures of a dialect lack.
    static let frames: [String: [String]] = [
        "directus": ["create", "update"].map {
            #"{"type":"subscription","event":"\#($0)","data":[{"id":1,"text":"t","room":"attic","user_created":{"id":"u"},"#
                + #""date_created":"2025-11-21T03:18:56Z","date_updated":"2025-11-21T03:19:56Z","sender_name":"Ann","#
                + #""client_id":"c","file":{"id":"f"},"reply_to":7}]}"#
        }
    ]

    private static let base = OptionSample("\"https://a.test\"", "\"https://b.test\"")
    private static let flag = OptionSample("false", "true")

    /// The options that a page's tables name: `option` heads those of the dialect, ``in `NAME` `` those of a table among them.
    static func documented(_ dialect: String) throws -> [String] {
        try DocumentedTable.all(in: "docs/backends/\(dialect).md").flatMap { table in
            if table.head[0] == "option" { return table.names }
            guard table.head[0].hasPrefix("in `") else { return [] }
            return table.names.map { "\(DocumentedTable.names(in: table.head[0])[0]).\($0)" }
        }
    }

    /// What a dialect stores, what it makes of frames, and what it asks for: an option that is taken and does nothing shows.
    private struct Made: Equatable {
        var dialect: String
        var read: [DecodedFrame]
        var asked: [[UInt8]]
    }

    /// The dialect of a room with these options, as an operator writes them.
    private func dialect(_ name: String, _ options: String) throws -> Made {
        let loaded = try load(
            "rooms = [{ name = \"r\", url = \"ws://127.0.0.1/r\", dialect = \"\(name)\", options = { \(options) } }]")
        let dialect = try #require(try loaded.dialect(of: loaded.rooms[0]))
        let context = DialectContext(room: "attic")
        let fixtures = try RepositoryFile.text("Tests/DialectTests/Fixtures/\(name)/in.jsonl")
        let known = try fixtures.split(separator: "\n").compactMap {
            try JSONValue(parsing: String($0))["frame"]?.bytes
        }
        let frames = known + (Self.frames[name] ?? []).map { Array($0.utf8) }
        return Made(
            dialect: String(reflecting: dialect),
            read: frames.map { bytes in
                bytes.withUnsafeBytes { dialect.decode($0, isBinary: false, context: context) }
            },
            asked: dialect.encode(.subscribe(room: "attic", limit: 1), context: context).frames?.map(\.bytes) ?? [])
    }

    @Test("every option that a page names can be set, and changes the dialect", arguments: DialectTable.names)
    func set(_ name: String) throws {
        let samples = try #require(Self.samples[name])
        let documented = try Self.documented(name)
        #expect(documented.sorted() == samples.keys.sorted())
        for option in documented {
            guard let sample = samples[option] else { continue }
            var made: [Made] = []
            for value in sample.values {
                let options = "\(option) = \(value)" + (sample.beside.isEmpty ? "" : ", " + sample.beside)
                do {
                    made.append(try dialect(name, options))
                } catch let error as ConfigurationError {
                    Issue.record("\(options): \(error.problems.map(\.description))")
                }
            }
            #expect(made.count != 2 || made[0] != made[1], "\(option) changes nothing")
        }
    }

    @Test("every option that a dialect takes is in its page's table", arguments: DialectTable.names)
    func named(_ name: String) throws {
        let documented = try Self.documented(name)
        let tables = Set(
            documented.compactMap { $0.split(separator: ".").count == 2 ? $0.split(separator: ".")[0] : nil })
        for table in [""] + tables.map(String.init) {
            var options = JSONValue.object([.init("?", .integer(1))])
            if !table.isEmpty { options = .object([.init(table, options)]) }
            let prefix = table.isEmpty ? "" : table + "."
            do {
                _ = try DialectTable.dialect(named: name, options: DialectOptions(options))
                Issue.record("an unknown option was taken in \"\(table)\"")
            } catch {
                let own = documented.filter { $0.hasPrefix(prefix) }.map { $0.dropFirst(prefix.count) }
                #expect(error.known.sorted() == own.filter { !$0.contains(".") }.map(String.init).sorted())
            }
        }
    }

    @Test("the index says how a token is shown and who speaks, each word of the configuration and no other")
    func words() throws {
        let tables = try DocumentedTable.all(in: "docs/BACKENDS.md")
        let types = try #require(tables.first { $0.head == ["`type`", "sends"] })
        // The token of a log-in is sent as well; see the next paragraph of the page.
        #expect(
            Set(types.names.filter { name in types.rows.contains { $0[0] == "`\(name)`" } })
                == Set(AuthConfiguration.Kind.allCases.map(\.rawValue)).subtracting(["none", "login"]))
        let identities = try #require(tables.first { $0.head.first == "`identity`" })
        #expect(Set(identities.names) == Set(RoomConfiguration.Identity.allCases.map(\.rawValue)))
    }
}

@Suite("What the page of described backends says of their keys")
struct DocumentedDescriptionTests {
    static let tables = (try? DocumentedTable.all(in: "docs/backends/custom.md")) ?? []

    /// A rule that reads messages.
    static let rule = #"{"event":"message","fields":{"text":"/t","id":"/i"}}"#

    /// One that says that the log-in went well.
    static let login = #"{"event":"auth","fields":{"state":{"const":"ok"}}}"#

    /// Two values of each key that make different definitions; a key of a table within behind the table's name and a dot.
    static let samples: [String: [String]] = [
        "dialect": [#""custom""#, #""custom""#],
        "comment": [#""a""#, #"["b"]"#],
        "url": [#""ws://a.test/{room}""#, #""ws://b.test/{room}""#],
        "headers": [#"{"X":"a"}"#, #"{"X":"b"}"#],
        "subprotocols": [#"["a"]"#, #"["b"]"#],
        "frames": [#""prefixed""#, #""binary""#],
        "reconnect": [#"{"first":2,"factor":3,"cap":9,"jitter":0.5}"#, "{}"],
        "identity": [#""puppet""#, #""single""#],
        "echo": [#""by-id""#, #""by-text""#],
        "ids": [#""text""#, #""number""#],
        "edits": [#""anybody""#, #""author""#],
        "files": [#""public""#, #""token""#],
        "on_open": [#"[{"a":"{{room}}"}]"#, #"[{"b":"{{limit}}"}]"#],
        "ready_when": [#"{"/a":1}"#, #"{"/b":1}"#],
        "ping": [#"{"every":5,"frame":{"p":1}}"#, #"{"every":6,"frame":{"p":1}}"#],
        "reply": [#"[{"when":{"/p":1},"send":{"q":1}}]"#, "[]"],
        "typing": [#"{"refresh":4,"ttl":8}"#, "{}"],
        "unwrap": [#"[{"ptr":"/a","as":"jsonstring"}]"#, #"[{"ptr":"/a","as":"base64json"}]"#],
        "decode": ["[]", "[\(rule)]"],
        "encode": [#"{"message":{"t":"{{text}}"}}"#, "{}"],
        "login": [
            #"{"post":"/a","body":{"n":"{{account.name}}"},"token":"/t","refresh":"/r","expires":"/e"}"#,
            #"{"post":"/b","body":{"p":"{{account.password}}"},"token":"/t"}"#,
        ],
        "refresh": [
            #"{"post":"/a","body":{"n":"{{account.refresh}}"},"token":"/t"}"#,
            #"{"post":"/b","body":{"n":"{{account.refresh}}"},"token":"/t"}"#,
        ],
        "history": [#"{"get":"/a","items":"/x","order":"newest-first"}"#, #"{"get":"/b","items":"/x"}"#],
    ]
    /// Keys that say nothing.
    static let idle: Set<String> = ["dialect", "comment"]

    private func problems(_ json: String) throws -> [DialectOptionError] {
        let parsed = try JSONValue(parsing: json)
        do throws(CustomDefinitionError) {
            _ = try CustomDefinition(parsed)
            return []
        } catch {
            return error.problems
        }
    }

    private func definition(_ key: String, _ value: String) -> String {
        // A renewal is of a login.
        let login = #","login":{"post":"/l","body":{},"token":"/t"}"#
        return #"{"\#(key)":\#(value)"# + (key == "decode" ? "" : #","decode":[\#(Self.rule)]"#)
            + (key == "refresh" ? login : "") + "}"
    }

    @Test("every key that the page names can be set, and changes the description; there are no others")
    func keys() throws {
        let documented = Self.tables.filter { $0.head.first == "key" }.flatMap(\.rows)
            .flatMap { DocumentedTable.names(in: $0[0]) }
        let unknown = try problems(#"{"?":1,"decode":[],"encode":{"?":1}}"#)
        let known = try #require(unknown.first { $0.path == ["?"] }).known
        let kinds = Set(
            try #require(unknown.first { $0.path == ["encode", "?"] }).known.map { $0.prefix { $0 != "." } })
        #expect(known.sorted() == Self.samples.keys.sorted())
        // Some are named twice, in a list and in a table of their own; `ping` and `typing` are also keys of `encode`.
        #expect(Set(documented) == Set(known).union(kinds.map(String.init)))
        for key in known {
            let texts = try Self.samples[key, default: []].map { definition(key, $0) }.map { json in
                let found = try problems(json)
                #expect(found == [], "\(key)")
                return found == [] ? String(reflecting: try CustomDefinition(JSONValue(parsing: json))) : json
            }
            #expect(Set(texts).count == (Self.idle.contains(key) ? 1 : 2), "\(key)")
        }
    }

    /// The words of a cell that name fields; `sender.\*` stands for all that begin so.
    private func fields(_ cell: String, _ known: [String]) -> [String] {
        cell.split { ",; ".contains($0) }.flatMap { word -> [String] in
            if word.hasSuffix(".\\*") {
                let stem = word.dropLast(3)
                return known.filter { $0 == stem || $0.hasPrefix("\(stem).") }
            }
            var name = word.filter { $0 != "*" }
            while let last = name.last, ".:".contains(last) { name.removeLast() }
            return known.contains(name) ? [name] : []
        }
    }

    @Test("an event has the fields that the page names, and no others")
    func events() throws {
        let table = try #require(Self.tables.first { $0.head.first == "event" })
        let known = try #require(try problems(#"{"decode":[{"event":"?"}]}"#).first).known
        #expect(Set(table.names) == Set(known).subtracting(["ignore"]))
        for row in table.rows {
            for event in DocumentedTable.names(in: row[0]) {
                let json = #"{"decode":[{"event":"\#(event)","fields":{"?":"/x"}}]}"#
                let taken = try #require(try problems(json).first { $0.path.last == "?" }).known
                #expect(Set(fields(row[1], taken)) == Set(taken), "\(event)")
                let all = taken.map { #""\#($0)":\#(value(of: $0))"# }.joined(separator: ",")
                #expect(try problems(#"{"decode":[{"event":"\#(event)","fields":{\#(all)}}]}"#) == [], "\(event)")
            }
        }
    }

    private func value(of field: String) -> String {
        switch field {
        case "attachments", "counts", "messages": #"{"each":"/l","fields":{}}"#
        case "ids": #"{"each":"/l","ptr":"/id"}"#
        case "annotations": #"{"+example.com/a":"/v"}"#
        default: #""/v""#
        }
    }

    @Test("a template can use the values that the page names, and no others")
    func values() throws {
        let table = try #require(
            Self.tables.first { $0.head.count == 2 && $0.head[1].hasPrefix("values that a template") })
        let everywhere = DocumentedTable.names(in: table.head[1])
        for row in table.rows {
            for kind in DocumentedTable.names(in: row[0]) {
                let stray = try problems(#"{"decode":[\#(Self.login)],"encode":{"\#(kind)":{"x":"{{?}}"}}}"#)
                let known = try #require(stray.first { $0.sentence == "unknown value" }).known
                #expect(Set(fields(row[1], known) + everywhere) == Set(known), "\(kind)")
                for value in known {
                    #expect(
                        try problems(
                            #"{"decode":[\#(Self.login)],"encode":{"\#(kind)":{"x":"{{\#(value)}}"}}}"#) == [],
                        "\(kind): \(value)")
                }
            }
        }
    }
}
