import BridgeCore
import BridgeTestSupport
import BridgeTypes
import Dialects
import IRCServer
import Testing
import Upstream

@testable import ChatBridge
@testable import Configuration

/// A bridge as a configuration makes it, with a backend and clients that a test plays.
final class EffectStage {
    let harness: BridgeHarness
    private var messageCount = 0

    /// - Parameters:
    ///   - room: keys of the room `lobby`.
    ///   - sections: tables behind it.
    init(room: String, _ sections: String) throws {
        // A row may give its own; a room of a backend has the URL from there.
        let given = room.split(separator: "\n").map { $0.prefix { $0 != " " } }
        var keys = room
        if !given.contains("name") { keys = "name = \"lobby\"\n" + keys }
        if !given.contains("url"), !given.contains("backend") {
            keys = "url = \"ws://chat.example/lobby\"\n" + keys
        }
        let configuration = try load(
            "[[rooms]]\n\(keys)\n\(sections)\n", variables: ["CREDENTIALS_DIRECTORY": "/run/c"],
            files: [
                "/motd": "be kind\n", "/hash": examplePasswordHash + "\n", "/run/c/gate": "sesame",
                "/run/c/alice": examplePasswordHash,
                "words.json": "{\"headers\":{\"X-Room\":\"is {room}\"},\"decode\":[]}",
            ])
        harness = BridgeHarness(
            settings: try BridgeSettings(configuration, instanceID: "effects"), store: StoreStage())
    }

    var backend: ScriptedUpstream { harness.upstream(0) }
    var state: RoomState? { harness.bridge.roomStates.first }

    /// A client registers, and the answers to that.
    @discardableResult
    func register(_ nick: String = "ann", _ client: UInt64 = 1, caps: String = "", pass: String? = nil) -> [String] {
        harness.connect(client)
        if !caps.isEmpty { harness.send(client, "CAP REQ :\(caps)") }
        if let pass { harness.send(client, "PASS \(pass)") }
        harness.send(client, "NICK \(nick)")
        harness.send(client, "USER u 0 * :r")
        if !caps.isEmpty { harness.send(client, "CAP END") }
        return harness.takeLines(client)
    }

    /// The bridge runs, and a client is in the room.
    func enter(caps: String = "") {
        harness.start()
        register(caps: caps)
        send("JOIN #lobby")
    }

    /// A line of a client, and what comes of it.
    @discardableResult
    func send(_ line: String, _ client: UInt64 = 1) -> [String] {
        _ = harness.takeLines(client)
        harness.send(client, line)
        return harness.takeLines(client)
    }

    /// A user of the backend says something; the lines to the client.
    @discardableResult
    func says(_ name: String, _ text: String = "hi", id: Int? = nil, to client: UInt64 = 1) -> [String] {
        _ = harness.takeLines(client)
        messageCount += 1
        func uuid(_ number: Int) -> String {
            let digits = String(number, radix: 16, uppercase: true)
            return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
        }
        let sender = id ?? name.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFF_FFFF }
        harness.sendFrame(
            0,
            "{\"event\":\"message\",\"message_id\":\"\(uuid(0x100_0000 + messageCount))\",\"sender_id\":\"\(uuid(sender))\","
                + "\"sender_name\":\"\(name)\",\"body\":\"\(text)\",\"sent_at\":1795262400}")
        return harness.takeLines(client)
    }

    /// The nick under which that is said.
    func speaker(_ lines: [String]) -> String {
        let line = lines.first { $0.contains(" PRIVMSG ") } ?? ""
        return String(line.drop { $0 != ":" }.dropFirst().prefix { $0 != "!" })
    }

    /// Texts said to the room.
    func texts(_ lines: [String]) -> [String] {
        lines.compactMap { line in line.firstRange(of: " PRIVMSG #lobby :").map { String(line[$0.upperBound...]) } }
    }

    /// The value of a token in 005, or in the capabilities.
    func value(_ token: String, in lines: [String]) -> String {
        for line in lines {
            for word in line.split(separator: " ") where word.hasPrefix(token) || word.hasPrefix(":" + token) {
                return String(word.drop { $0 != "=" }.dropFirst())
            }
        }
        return "none"
    }

    func isUp() -> String { state?.isUp == true ? "up" : "down" }
    func isConnected(_ client: UInt64 = 1) -> String { harness.isConnected(client) ? "connected" : "gone" }

    /// The word behind the code of a refusal.
    func refusal(_ lines: [String]) -> String {
        lines.first { $0.contains(" FAIL ") }.map { String($0.split(separator: " ")[3]) } ?? "none"
    }

    /// The client reads a message; the read receipts for it.
    func receipts() -> String {
        send("JOIN #lobby")
        says("Ada")
        _ = sentCount()
        harness.send(1, "MARKREAD #lobby timestamp=2026-11-21T13:00:00.000Z")
        harness.advance(by: .seconds(5))
        return String(sentCount())
    }

    /// The messages that the backend has got since the last look.
    func sentCount() -> Int { frames().count }

    func frames() -> [String] {
        harness.takeOutputs().compactMap { output in
            if case .upstream(_, .frame(let payload, _)) = output {
                String(decoding: payload, as: UTF8.self)
            } else {
                nil
            }
        }
    }

    /// A message of the client, as the backend gets it.
    func message() -> String {
        enter()
        _ = frames()
        harness.send(1, "PRIVMSG #lobby :hello")
        return frames().last ?? ""
    }
}

/// A key with a value that is not its default, and what shows it.
struct KeyEffect: CustomTestStringConvertible, Sendable {
    var key: String
    /// Keys of the room.
    var room = ""
    var sections = ""
    /// What is written in both cases.
    var given = ""
    var givenRoom = ""
    var byDefault: String
    var changed: String
    var see: @Sendable (EffectStage) throws -> String

    var testDescription: String { key }

    /// A key of the room.
    static func room(
        _ key: String, _ value: String, _ byDefault: String, _ changed: String, given: String = "",
        _ sections: String = "", see: @escaping @Sendable (EffectStage) throws -> String
    ) -> KeyEffect {
        KeyEffect(
            key: "rooms.\(key)", room: "\(key) = \(value)", given: sections, givenRoom: given, byDefault: byDefault,
            changed: changed, see: see)
    }

    /// A key of a section.
    static func of(
        _ section: String, _ key: String, _ value: String, _ byDefault: String, _ changed: String, given: String = "",
        room: String = "", see: @escaping @Sendable (EffectStage) throws -> String
    ) -> KeyEffect {
        KeyEffect(
            key: "\(section).\(key)", sections: "[\(section)]\n\(key) = \(value)", given: given, givenRoom: room,
            byDefault: byDefault, changed: changed, see: see)
    }
}

@Suite("Keys of the configuration, by their effect")
struct KeyEffectTests {
    @Test("a key that is set changes what clients and backends see", arguments: rows)
    func effect(_ row: KeyEffect) throws {
        // Sections in a row: what is given may continue the key's own.
        #expect(try row.see(EffectStage(room: row.givenRoom, row.given)) == row.byDefault, "by default")
        let both = row.sections.isEmpty ? row.given : Self.merged(row.sections, row.given)
        #expect(try row.see(EffectStage(room: row.givenRoom + "\n" + row.room, both)) == row.changed, "as set")
    }

    /// One table cannot be written twice.
    private static func merged(_ sections: String, _ given: String) -> String {
        // Further keys of the table that is given.
        guard sections.hasPrefix("[") else { return given + sections }
        let head = sections.prefix { $0 != "\n" }
        guard given.hasPrefix(head) else { return sections + "\n" + given }
        return given + "\n" + sections.dropFirst(head.count + 1)
    }

    @Test("a key of a room counts as well where it stands in its backend or in room_defaults", arguments: sharedRows)
    func inherited(_ row: KeyEffect) throws {
        let backend = "backend = \"main\""
        let main = "[backends.main]\nurl = \"ws://chat.example/lobby\"\n" + row.givenRoom + "\n"
        let all = "[room_defaults]\n" + row.givenRoom + "\n" + row.room + "\n"
        #expect(try row.see(EffectStage(room: backend, main + row.given)) == row.byDefault, "by default")
        #expect(
            try row.see(EffectStage(room: backend, main + row.room + "\n" + row.given)) == row.changed, "in the backend"
        )
        #expect(try row.see(EffectStage(room: "", all + row.given)) == row.changed, "in room_defaults")
    }

    /// The rows of rooms whose keys backends and `room_defaults` have too.
    private static let sharedRows = rows.filter { row in
        let parts = row.key.split(separator: ".", maxSplits: 1)
        return parts[0] == "rooms" && ConfigurationTopic.all.contains { $0.path == "room_defaults.\(parts[1])" }
    }

    @Test("what a room says itself counts before its backend, and this before room_defaults")
    func precedence() throws {
        func agent(_ room: String, _ backend: String) throws -> String {
            Self.request(
                try EffectStage(
                    room: "backend = \"main\"\n" + room,
                    "[room_defaults]\nuser_agent = \"of all\"\n[backends.main]\n"
                        + "url = \"ws://chat.example/lobby\"\n" + backend), "User-Agent")
        }
        #expect(try agent("user_agent = \"its own\"", "user_agent = \"of the backend\"") == "User-Agent: its own")
        #expect(try agent("", "user_agent = \"of the backend\"") == "User-Agent: of the backend")
        #expect(try agent("", "") == "User-Agent: of all")
    }

    @Test("a gateway of another address is not believed")
    func otherGateway() throws {
        let stage = try EffectStage(
            room: "",
            "[identity]\nrequire_login = \"never\"\nwebirc = [{ password = \"sesame\", from = [\"198.51.100.1\"] }]")
        #expect(Self.gatewayClient(stage) == "127.0.0.1")
    }

    static let rows = server + nicks + identity + accounts + rooms + backends + links + limits

    private static let server = [
        KeyEffect.of("server", "network", "\"example\"", "chatbridge", "example") {
            $0.value("NETWORK=", in: $0.register())
        },
        KeyEffect.of("server", "casemapping", "\"rfc1459\"", "ascii, in", "rfc1459, 433") { stage in
            let token = stage.value("CASEMAPPING=", in: stage.register("a[b"))
            return token + (stage.register("A{B", 2).contains { $0.contains(" 433 ") } ? ", 433" : ", in")
        },
        KeyEffect.of("server", "name", "\"irc.example\"", ":edge.example.org", ":irc.example") {
            String($0.register().first?.prefix { $0 != " " } ?? "")
        },
        KeyEffect.of("server", "icon", "\"https://e.example/i.png\"", "none", "https://e.example/i.png") {
            $0.value("draft/ICON=", in: $0.register())
        },
        KeyEffect.of("server", "description", "\"a relay\"", ":0 chatbridge", ":0 a relay") { stage in
            stage.register()
            let line = stage.send("LINKS").first { $0.contains(" 364 ") } ?? ""
            return String(line[(line.firstRange(of: ":0 ")?.lowerBound ?? line.endIndex)...])
        },
        KeyEffect.of("server", "motd", "\"be kind\"", "0", "1", see: kindness),
        KeyEffect.of("server", "motd_file", "\"/motd\"", "0", "1", see: kindness),
    ]

    @Sendable private static func kindness(_ stage: EffectStage) -> String {
        String(stage.register().count { $0.hasSuffix("be kind") })
    }

    private static let nicks = [
        KeyEffect.of("identity.nicks", "max_length", "16", "30", "16") { stage in
            stage.enter()
            return String(stage.speaker(stage.says(String(repeating: "a", count: 40))).utf8.count)
        },
        KeyEffect.of("identity.nicks", "invalid", "\"_\"", "Ada-Lovelace", "Ada_Lovelace") { stage in
            stage.enter()
            return stage.speaker(stage.says("Ada Lovelace"))
        },
        KeyEffect.of("identity.nicks", "collision", "\"underscore\"", "Ada2", "Ada_") { stage in
            stage.enter()
            stage.says("Ada", id: 1)
            return stage.speaker(stage.says("Ada", id: 2))
        },
        KeyEffect.of("identity.nicks", "suffix", "\"/up\"", "Ada", "Ada/up") { stage in
            stage.enter()
            return stage.speaker(stage.says("Ada"))
        },
        KeyEffect.of("identity.nicks", "utf8", "false", "Zoë", "Zoe") { stage in
            stage.enter()
            return stage.speaker(stage.says("Zoë"))
        },
    ]

    private static let alice = "[[accounts]]\nname = \"alice\"\npassword = \"\(examplePasswordHash)\"\n"

    private static func gateway(_ password: String) -> KeyEffect {
        KeyEffect.of(
            "identity", "webirc", "[{ \(password), from = [\"127.0.0.1\"] }]", "127.0.0.1", "192.0.2.7",
            given: "[identity]\nrequire_login = \"never\"", see: gatewayClient)
    }

    /// A gateway names its client's address, which WHOIS shows.
    @Sendable private static func gatewayClient(_ stage: EffectStage) -> String {
        stage.harness.connect(1)
        for line in ["WEBIRC sesame gate host 192.0.2.7", "NICK ann", "USER u 0 * :r"] { stage.harness.send(1, line) }
        return stage.send("WHOIS ann").contains { $0.contains("192.0.2.7") } ? "192.0.2.7" : "127.0.0.1"
    }

    private static let identity = [
        gateway("password_credential = \"gate\""), gateway("password = \"sesame\""),
        gateway("password_file = \"/run/c/gate\""),
        KeyEffect.of(
            "identity", "registration_before_connect", "false", "before-connect,custom-account-name other",
            "custom-account-name COMPLETE_CONNECTION_REQUIRED", given: "[identity]\nregistration = \"on\""
        ) { stage in
            stage.harness.connect(1)
            let offer = stage.value("draft/account-registration=", in: stage.send("CAP LS 302"))
            let refusal = stage.refusal(stage.send("REGISTER bob * pa"))
            return "\(offer) \(refusal == "COMPLETE_CONNECTION_REQUIRED" ? refusal : "other")"
        },
        KeyEffect.of("identity", "registration", "\"on\"", "none", "before-connect,custom-account-name") { stage in
            stage.harness.connect(1)
            return stage.value("draft/account-registration=", in: stage.send("CAP LS 302"))
        },
        KeyEffect.of(
            "identity", "sasl", "[\"PLAIN\"]", "PLAIN,SCRAM-SHA-256 goes on", "PLAIN 908", given: alice
        ) { stage in
            stage.harness.connect(1)
            let offer = stage.value("sasl=", in: stage.send("CAP LS 302"))
            for line in ["CAP REQ sasl", "NICK ann", "USER u 0 * :r"] { stage.harness.send(1, line) }
            let isRefused = stage.send("AUTHENTICATE SCRAM-SHA-256").contains { $0.contains(" 908 ") }
            return offer + (isRefused ? " 908" : " goes on")
        },
        KeyEffect.of("identity", "password", "\"sesame\"", "in", "464", see: entry),
        KeyEffect.of("identity", "password_file", "\"/run/c/gate\"", "in", "464", see: entry),
        KeyEffect.of("identity", "password_credential", "\"gate\"", "in", "464", see: entry),
        KeyEffect.of("identity", "password", "\"open sesame now\"", "in", "in with blanks") { stage in
            let lines = stage.register() + stage.register("bob", 2, pass: "open sesame now")
            let welcomes = lines.filter { $0.contains(" 001 ") }.count
            return welcomes == 2 ? "in" : welcomes == 1 ? "in with blanks" : "\(lines)"
        },
        KeyEffect.of("identity", "require_login", "\"always\"", "in", "out", given: alice) { stage in
            stage.register().contains { $0.contains(" 001 ") } ? "in" : "out"
        },
    ]

    /// Without a password, and with the right one.
    @Sendable private static func entry(_ stage: EffectStage) -> String {
        let lines = stage.register()
        let others = stage.register("bob", 2, pass: "sesame")
        guard others.contains(where: { $0.contains(" 001 ") }) else { return "\(others)" }
        return lines.contains { $0.contains(" 001 ") }
            ? "in" : lines.contains { $0.contains(" 464 ") } ? "464" : "\(lines)"
    }

    /// Of an account, from elsewhere.
    private static func password(_ line: String) -> KeyEffect {
        KeyEffect(
            key: "accounts." + line.prefix { $0 != " " }, sections: "[[accounts]]\nname = \"alice\"\n" + line,
            byDefault: "guest", changed: "900"
        ) { stage in
            stage.harness.start()
            let lines = stage.register("alice", pass: "alice:pencil") + stage.send("WHOIS alice")
            return lines.contains { $0.contains(" 330 ") } ? "900" : "guest"
        }
    }

    /// Without the account the client is a guest.
    private static func account(
        _ key: String, _ line: String, _ byDefault: String, _ changed: String,
        see: @escaping @Sendable (EffectStage) throws -> String
    ) -> KeyEffect {
        KeyEffect(
            key: "accounts.\(key)", sections: alice + line, byDefault: byDefault, changed: changed, see: see)
    }

    private static let accounts = [
        account("name", "", "in", "433") { stage in
            stage.register("alice").contains { $0.contains(" 433 ") } ? "433" : "in"
        },
        account("password", "", "guest", "900") { stage in
            stage.harness.start()
            let lines = stage.register("alice", pass: "alice:pencil") + stage.send("WHOIS alice")
            return lines.contains { $0.contains(" 330 ") } ? "900" : "guest"
        },
        password("password_file = \"/hash\""), password("password_credential = \"alice\""),
        KeyEffect(
            key: "accounts.receipts", sections: "receipts = \"off\"", given: alice, byDefault: "1", changed: "0"
        ) { stage in
            stage.harness.start()
            stage.register("alice", caps: "draft/read-marker", pass: "alice:pencil")
            return stage.receipts()
        },
        // The sender in the frames of the account's own link.
        KeyEffect(
            key: "accounts.upstream.NAME.as", sections: "upstream.lobby.as = \"user-7\"",
            given: alice + "upstream.lobby.type = \"bearer\"\nupstream.lobby.token = \"t0ken\"\n",
            givenRoom: "dialect = \"plainjson\"", byDefault: "another", changed: "user-7"
        ) { stage in
            stage.harness.start()
            stage.register("alice", pass: "alice:pencil")
            stage.send("JOIN #lobby")
            _ = stage.frames()
            stage.harness.send(1, "PRIVMSG #lobby :hello")
            let frame = stage.frames().last ?? ""
            guard frame.contains("hello") else { return "nothing was sent" }
            return frame.contains("\"user-7\"") ? "user-7" : "another"
        },
        account("rooms", "rooms = []", "JOIN", "403") { stage in
            stage.harness.start()
            stage.register("alice", pass: "alice:pencil")
            let lines = stage.send("JOIN #lobby")
            return lines.contains { $0.contains(" 403 ") } ? "403" : "JOIN"
        },
        account("admin", "admin = true", "no", "yes") { stage in
            stage.register("alice", pass: "alice:pencil")
            return stage.send("WHOIS alice").contains { $0.contains(" 313 ") } ? "yes" : "no"
        },
        account("relaymsg", "relaymsg = true", "no", "yes") { stage in
            stage.harness.connect(1)
            return stage.send("CAP LS 302").contains { $0.contains("draft/relaymsg") } ? "yes" : "no"
        },
    ]

    private static let rooms = [
        KeyEffect.room("topic", "\"weather\"", "none", "weather") { stage in
            stage.harness.start()
            stage.register()
            let line = stage.send("JOIN #lobby").first { $0.contains(" 332 ") } ?? ":none"
            return String(line.split(separator: ":").last ?? "")
        },
        KeyEffect.room("channel", "\"#hall\"", "403", "JOIN") { stage in
            stage.harness.start()
            stage.register()
            return stage.send("JOIN #hall").contains { $0.contains(" JOIN ") } ? "JOIN" : "403"
        },
        KeyEffect.room("name", "\"hall\"", "lobby, 403", "hall, JOIN") { stage in
            stage.harness.start()
            stage.register()
            let isThere = stage.send("JOIN #hall").contains { $0.contains(" JOIN ") }
            return (stage.state?.name ?? "") + (isThere ? ", JOIN" : ", 403")
        },
        KeyEffect.room(
            "upstream_room", "\"Room 7\"", "/r/lobby", "/r/Room%207", given: "url = \"ws://c.example/r/{room}\""
        ) {
            $0.harness.start()
            return $0.backend.requestTarget ?? ""
        },
        KeyEffect.room("url", "\"ws://chat.example/elsewhere\"", "/lobby", "/elsewhere") {
            $0.harness.start()
            return $0.backend.requestTarget ?? ""
        },
        KeyEffect.room("mode", "\"relay\"", "Ada hi", "relay <Ada> hi") { stage in
            stage.enter()
            let lines = stage.says("Ada")
            return "\(stage.speaker(lines)) \(stage.texts(lines).joined())"
        },
        KeyEffect.room("relay_nick", "\"gateway\"", "relay", "gateway", given: "mode = \"relay\"") { stage in
            stage.enter()
            return stage.speaker(stage.says("Ada"))
        },
        KeyEffect.room("member_idle", "\"2m\"", "here", "gone") { stage in
            stage.enter()
            stage.says("Ada")
            stage.harness.advance(by: .seconds(180))
            return stage.harness.takeLines(1).contains { $0.hasPrefix(":Ada!") && $0.contains(" PART ") }
                ? "gone" : "here"
        },
        KeyEffect.room("connect", "\"while-joined\"", "open", "idle") { stage in
            stage.harness.start()
            return "\(stage.backend.state)"
        },
        KeyEffect.room("history_on_join", "1", "2", "1") { stage in
            stage.harness.start()
            stage.register("bob", 2)
            stage.send("JOIN #lobby", 2)
            stage.says("Ada")
            stage.says("Ada")
            stage.register()
            return String(stage.texts(stage.send("JOIN #lobby")).count)
        },
        KeyEffect.room("queue.max_messages", "1", "none", "QUEUE_FULL") { stage in
            stage.harness.acceptsConnections = false
            stage.enter(caps: "standard-replies")
            stage.harness.advance(by: .seconds(1))
            stage.send("PRIVMSG #lobby :one")
            return stage.refusal(stage.send("PRIVMSG #lobby :two"))
        },
        KeyEffect.room("queue.max_age", "\"1m\"", "none", "CANNOT_DELIVER") { stage in
            stage.harness.acceptsConnections = false
            stage.enter(caps: "standard-replies")
            stage.harness.advance(by: .seconds(1))
            stage.send("PRIVMSG #lobby :one")
            stage.harness.advance(by: .seconds(120))
            return stage.refusal(stage.harness.takeLines(1))
        },
        KeyEffect.room(
            "queue.when_full", "\"drop-oldest\"", "QUEUE_FULL", "CANNOT_DELIVER", given: "queue.max_messages = 1"
        ) { stage in
            stage.harness.acceptsConnections = false
            stage.enter(caps: "standard-replies")
            stage.harness.advance(by: .seconds(1))
            stage.send("PRIVMSG #lobby :one")
            return stage.refusal(stage.send("PRIVMSG #lobby :two"))
        },
        KeyEffect.room("give_up_after", "\"1m\"", "waits", "failed") { stage in
            stage.harness.acceptsConnections = false
            stage.harness.start()
            stage.harness.advance(by: .seconds(90))
            return stage.state?.hasFailed == true ? "failed" : "waits"
        },
        KeyEffect.room("receipts", "\"off\"", "1", "0") { stage in
            stage.harness.start()
            stage.register(caps: "draft/read-marker")
            return stage.receipts()
        },
        KeyEffect.room("required", "false", "503", "200") { stage in
            stage.harness.acceptsConnections = false
            stage.harness.start()
            let readiness = Readiness(rooms: stage.harness.bridge.roomStates, isRunning: true, isStrict: false)
            return readiness.isReady ? "200" : "503"
        },
    ]

    private static let shared = "[backends.main]\nurl = \"ws://chat.example/shared\"\n"

    private static let backends = [
        KeyEffect.room("backend", "\"main\"", "/lobby", "/shared", shared) {
            $0.harness.start()
            return $0.backend.requestTarget ?? ""
        },
        KeyEffect(
            key: "backends.NAME.url", room: "backend = \"main\"",
            sections: "[backends.main]\nurl = \"ws://c.example/of/{room}\"",
            byDefault: "/lobby", changed: "/of/lobby"
        ) {
            $0.harness.start()
            return $0.backend.requestTarget ?? ""
        },
        KeyEffect.room("dialect", "\"plainjson\"", "sender_name", "senderName") { stage in
            let frame = stage.message()
            return ["sender_name", "senderName"].first { frame.contains("\"\($0)\"") } ?? frame
        },
        KeyEffect.room("identity", "\"single\"", "hello", "<ann> hello") { stage in
            let frame = stage.message()
            return ["<ann> hello", "hello"].first { frame.contains("\"\($0)\"") } ?? frame
        },
        KeyEffect.room(
            "options", "{ timestamp = \"reference\" }", "text", "number", given: "dialect = \"plainjson\"", see: time),
        KeyEffect(
            key: "backends.NAME.options", sections: "[backends.main]\noptions = { timestamp = \"reference\" }",
            given: shared + "dialect = \"plainjson\"\n", givenRoom: "backend = \"main\"", byDefault: "text",
            changed: "number",
            see: time),
        KeyEffect(
            key: "dialects.NAME.file", room: "dialect = \"words\"", sections: "[dialects.words]\nfile = \"words.json\"",
            byDefault: "none", changed: "X-Room: is lobby"
        ) { request($0, "X-Room") },
    ]

    /// The form of a message's time.
    @Sendable private static func time(_ stage: EffectStage) -> String {
        let frame = stage.message()
        guard let start = frame.firstRange(of: "\"timestamp\":")?.upperBound else { return frame }
        return frame[start...].hasPrefix("\"") ? "text" : "number"
    }

    private static func request(_ stage: EffectStage, _ field: String) -> String {
        stage.harness.start()
        let line = (stage.backend.requests.last ?? "").split(separator: "\r\n").first { $0.hasPrefix(field) }
        return line.map(String.init) ?? "none"
    }

    private static let links = [
        // A code of the backend's own; without it the token is taken for good.
        KeyEffect(
            key: "rooms.auth.reauth_on", room: "auth.reauth_on = [4990]",
            givenRoom: """
                auth.type = "login"
                auth.user = "bridge"
                auth.password = "pa"
                auth.login_url = "/login"
                auth.login_body = { name = "{user}" }
                """, byDefault: "1 log-in", changed: "2 log-ins"
        ) { stage in
            stage.harness.accounts.secrets[0] = .success(.login(user: "bridge", password: "pa"))
            stage.harness.accounts.server = { _ in
                let answer = BackendAnswer(status: 200, body: Array("{\"access_token\":\"t0ken\"}".utf8))
                return .success(BackendCallResponse(answer))
            }
            stage.harness.start()
            stage.harness.closeUpstream(0, code: 4990)
            stage.harness.advance(by: .seconds(60))
            let count = stage.harness.accounts.calls.count { $0.path.hasSuffix("/login") }
            return count == 1 ? "1 log-in" : "\(count) log-ins"
        },
        KeyEffect.room("headers", "{ X-Team = \"blue\" }", "none", "X-Team: blue") { request($0, "X-Team") },
        KeyEffect.room(
            "user_agent", "\"relay/1\"", "User-Agent: chatbridge/\(BuildInformation.version)", "User-Agent: relay/1"
        ) {
            request($0, "User-Agent")
        },
        KeyEffect.room("subprotocol", "[\"chat\"]", "none", "Sec-WebSocket-Protocol: chat") {
            request($0, "Sec-WebSocket-Protocol")
        },
        KeyEffect.room("require_subprotocol", "true", "up", "down", given: "subprotocol = [\"chat\"]") { stage in
            stage.harness.start()
            return stage.isUp()
        },
        KeyEffect.room(
            "compression", "\"offer\"", "none",
            "Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover; client_max_window_bits"
        ) {
            request($0, "Sec-WebSocket-Extensions")
        },
        KeyEffect.room("ping", "\"5s\"", "0", "1") { stage in
            stage.harness.start()
            _ = stage.harness.takeOutputs()
            stage.harness.advance(by: .seconds(7))
            return String(
                stage.harness.takeOutputs().count { if case .upstream(_, .ping) = $0 { true } else { false } })
        },
        KeyEffect.room("pong_timeout", "\"1s\"", "up", "down") { stage in
            stage.harness.start()
            stage.backend.isSilent = true
            stage.harness.acceptsConnections = false
            stage.harness.advance(by: .seconds(25))
            return stage.isUp()
        },
        KeyEffect.room("handshake_timeout", "\"2s\"", "waits", "failed") { stage in
            stage.backend.answersHandshakes = false
            stage.harness.start()
            stage.harness.advance(by: .seconds(3))
            return stage.harness.logged("upstream-failed").isEmpty ? "waits" : "failed"
        },
        KeyEffect.room("max_message", "\"1KiB\"", "up", "down") { stage in
            stage.enter()
            stage.says("Ada", String(repeating: "a", count: 2000))
            return stage.isUp()
        },
        KeyEffect.room("max_frame", "\"1KiB\"", "up", "down") { stage in
            stage.enter()
            stage.says("Ada", String(repeating: "a", count: 2000))
            return stage.isUp()
        },
        KeyEffect.room(
            "backoff.reset_after", "\"1h\"", "1000ms", "2000ms", given: "backoff.jitter = 0"
        ) { stage in
            stage.harness.start()
            stage.harness.endTransport(0, reason: "reset")
            stage.harness.advance(by: .seconds(60))
            stage.harness.endTransport(0, reason: "reset")
            return Self.wait(stage.harness.logged("upstream-lost").last)
        },
        KeyEffect.room("backoff.min", "\"20s\"", "up", "down", given: "backoff.jitter = 0", see: retried),
        KeyEffect.room("backoff.jitter", "0", "spread", "exact") { stage in
            stage.harness.start()
            stage.harness.endTransport(0, reason: "reset")
            stage.harness.acceptsConnections = false
            let waits = stage.harness.logged("upstream-lost").joined()
            return waits.contains("retry-in=1000ms") ? "exact" : "spread"
        },
        KeyEffect.room("backoff.factor", "1", "2000ms", "1000ms", given: "backoff.jitter = 0", see: secondWait),
        KeyEffect.room("backoff.max", "\"1s\"", "2000ms", "1000ms", given: "backoff.jitter = 0", see: secondWait),
    ]

    @Sendable private static func retried(_ stage: EffectStage) -> String {
        stage.harness.start()
        stage.harness.endTransport(0, reason: "reset")
        stage.harness.advance(by: .seconds(10))
        return stage.isUp()
    }

    /// The wait after the second failure in a row.
    @Sendable private static func secondWait(_ stage: EffectStage) -> String {
        stage.harness.start()
        stage.harness.endTransport(0, reason: "reset")
        stage.harness.acceptsConnections = false
        stage.harness.advance(by: .milliseconds(1500))
        stage.harness.endTransport(0, reason: "reset")
        return wait(stage.harness.logged("upstream-failed").last)
    }

    /// Until the next attempt, as the log says.
    private static func wait(_ entry: String?) -> String {
        guard let entry, let start = entry.firstRange(of: "retry-in=")?.upperBound else { return "none" }
        return String(entry[start...].prefix { $0 != " " })
    }

    private static let unhurried = "[limits]\nmessages_per_second = \"off\""

    private static let limits = [
        KeyEffect.of("limits", "members_per_room", "1", "Bob", "others") { stage in
            stage.enter()
            stage.says("Ada")
            return stage.speaker(stage.says("Bob"))
        },
        KeyEffect.of(
            "limits", "template_rooms", "1", "JOIN", "405", room: "name = \"*\"\nurl = \"ws://c.example/{room}\""
        ) {
            stage in
            stage.harness.start()
            stage.register()
            stage.send("JOIN #a")
            let lines = stage.send("JOIN #b")
            return lines.contains { $0.contains(" JOIN ") }
                ? "JOIN" : lines.contains { $0.contains(" 405 ") } ? "405" : "\(lines)"
        },
        KeyEffect.of("limits", "max_clients", "1", "connected", "gone") { stage in
            stage.harness.connect(1)
            stage.harness.connect(2)
            return stage.isConnected(2)
        },
        KeyEffect.of("limits", "max_clients_per_ip", "1", "connected", "gone") { stage in
            for client in 1...2 as ClosedRange<UInt64> {
                stage.harness.connect(client, address: "203.0.113.1", isLocal: false)
            }
            return stage.isConnected(2)
        },
        KeyEffect.of("limits", "accepts_per_second_per_ip", "1", "connected", "gone") { stage in
            for client in 1...3 as ClosedRange<UInt64> {
                stage.harness.connect(client, address: "203.0.113.1", isLocal: false)
            }
            return stage.isConnected(3)
        },
        KeyEffect.of("limits", "registration_timeout", "\"5s\"", "connected", "gone") { stage in
            stage.harness.connect(1)
            stage.harness.advance(by: .seconds(10))
            return stage.isConnected()
        },
        KeyEffect.of("limits", "ping_interval", "\"5s\"", "0", "1") { stage in
            stage.harness.answersPings = false
            stage.register()
            stage.harness.advance(by: .seconds(10))
            return String(stage.harness.takeLines(1).count { $0.hasPrefix("PING") })
        },
        KeyEffect.of(
            "limits", "ping_timeout", "\"1s\"", "connected", "gone", given: "[limits]\nping_interval = \"5s\""
        ) { stage in
            stage.harness.answersPings = false
            stage.register()
            stage.harness.advance(by: .seconds(20))
            return stage.isConnected()
        },
        KeyEffect.of("limits", "messages_burst", "1", "3", "1") { stage in
            stage.register()
            stage.harness.advance(by: .seconds(60))
            return String(stage.send("TIME\r\nTIME\r\nTIME").count { $0.contains(" 391 ") })
        },
        KeyEffect.of(
            "limits", "messages_per_second", "0.1", "3", "1", given: "[limits]\nmessages_burst = 1"
        ) { stage in
            stage.register()
            stage.harness.advance(by: .seconds(60))
            _ = stage.harness.takeLines(1)
            stage.harness.send(1, "TIME\r\nTIME\r\nTIME")
            stage.harness.advance(by: .seconds(2))
            return String(stage.harness.takeLines(1).count { $0.contains(" 391 ") })
        },
        KeyEffect.of("limits", "recvq", "\"9KiB\"", "reads", "paused") { stage in
            stage.register()
            stage.harness.receive(1, Array(String(repeating: "TIME of the server that I am on\r\n", count: 400).utf8))
            let isPaused = stage.harness.takeOutputs().contains { if case .readingPaused = $0 { true } else { false } }
            return isPaused ? "paused" : "reads"
        },
        KeyEffect.of("limits", "history_limit", "2", "500, 3", "2, 2") { stage in
            stage.harness.start()
            let token = stage.value(
                "CHATHISTORY=", in: stage.register(caps: "draft/chathistory batch message-tags server-time"))
            stage.send("JOIN #lobby")
            for _ in 0..<3 { stage.says("Ada") }
            return "\(token), \(stage.texts(stage.send("CHATHISTORY LATEST #lobby * 500")).count)"
        },
        KeyEffect.of("limits", "backlog", "2", "three four five", "four five", given: alice) { stage in
            stage.harness.start()
            stage.register("alice", pass: "alice@phone:pencil")
            stage.send("JOIN #lobby")
            stage.says("Ada", "one")
            // The client says that it has this.
            stage.harness.advance(by: .seconds(5))
            stage.harness.disconnect(1)
            for text in ["three", "four", "five"] { stage.says("Ada", text) }
            var lines = stage.register("alice", 2, pass: "alice@phone:pencil") + stage.send("JOIN #lobby", 2)
            stage.harness.advance(by: .seconds(5))
            lines += stage.harness.takeLines(2)
            // Behind the time, for a client without `server-time`.
            return stage.texts(lines).compactMap { $0.split(separator: " ").last }.joined(separator: " ")
        },
        KeyEffect.of(
            "limits", "upstream_connects_per_second", "0.1", "open open", "open idle",
            given: "[[rooms]]\nname = \"attic\"\nurl = \"ws://attic.example/\""
        ) { stage in
            stage.harness.start()
            return "\(stage.backend.state) \(stage.harness.upstream(1).state)"
        },
        KeyEffect.of("limits", "multiline.max_lines", "1", "3", "1") { stage in
            stage.enter()
            return String(stage.texts(stage.says("Ada", "a\\nb\\nc")).filter { $0.count == 1 }.count)
        },
        KeyEffect.of("limits", "multiline.max_bytes", "512", "20", "under 20") { stage in
            stage.enter()
            let text = (0..<20).map { _ in String(repeating: "a", count: 100) }.joined(separator: "\\n")
            let count = stage.texts(stage.says("Ada", text)).filter { $0.count == 100 }.count
            return count == 20 ? "20" : count < 20 && count > 0 ? "under 20" : "\(count)"
        },
        KeyEffect.of("limits", "upstream_messages_per_second", "0.1", "14", "10", given: unhurried) { stage in
            stage.enter()
            _ = stage.sentCount()
            for number in 0..<14 { stage.harness.send(1, "PRIVMSG #lobby :m\(number)") }
            stage.harness.advance(by: .seconds(2))
            return String(stage.sentCount())
        },
    ]
}
