import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import IRCProtocol
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("What *bridge understands")
struct ServiceCommandTests {
    @Test("every command has one row, with words for it and a price")
    func complete() {
        let table = ServiceCommandTable.standard
        #expect(table.rows.allSatisfy { table.row(named: $0.name)?.usage == $0.usage })
        for row in ServiceCommandTable.standard.rows {
            #expect(!row.summary.isEmpty && !row.summary.hasSuffix("."), "\(row.name)")
            #expect((1...4).contains(row.penalty), "\(row.name)")
            #expect(row.details.allSatisfy { $0.hasSuffix(".") }, "\(row.name)")
            #expect(row.minParams == 0 || row.parameters.hasPrefix("<") || row.name == "search", "\(row.name)")
        }
    }

    @Test(
        "a slip of the fingers, or the beginning of a name, is understood as a suggestion and nothing else",
        arguments: [
            ("hlep", "help"), ("helpp", "help"), ("hel", "help"), ("his", "history"), ("HISTROY", "history"),
            ("sean", "seen"), ("unmut", "unmute"), ("wh", "who"), ("who", nil), ("whoam", "whoami"), ("re", nil),
            ("rej", "rejoin"), ("rec", "receipts"), ("recon", nil), ("x", nil), ("", nil), ("hello there", nil),
            ("größe", nil),
            (String(repeating: "help", count: 1000), nil),
        ] as [(String, String?)])
    func suggestions(_ word: String, _ command: String?) {
        let suggestion = ServiceCommandTable.standard.suggestion(for: word, isAdmin: false)
        // A command as it is needs no suggestion.
        if ServiceCommandTable.standard.row(named: word) == nil { #expect(suggestion == command) }
    }

    @Test("an administrator's commands are suggested to administrators")
    func administrators() {
        #expect(ServiceCommandTable.standard.suggestion(for: "reconect", isAdmin: true) == "reconnect")
        #expect(ServiceCommandTable.standard.suggestion(for: "reconect", isAdmin: false) == nil)
    }

    @Test(
        "the password of a login is not said back, however it is written",
        arguments: [
            ("login ann secret", "login ann ***"), ("LOGIN ann a b c", "LOGIN ann ***"),
            ("  login   ann   secret ", "login ann ***"), ("\u{2}login\u{F} ann secret", "login ann ***"),
            ("login ann", "login ann"), ("login", "login"), ("help login now", "help login now"),
        ])
    func passwords(_ text: String, _ shown: String) {
        #expect(ServiceCommandTable.standard.withoutPassword(text) == shown)
    }
}

@Suite("A message in parts")
struct ServicePageTests {
    private static let texts = [
        "", "one", "a\nb\r\nc\rd", String(repeating: "\n", count: 40_000), String(repeating: "x\n", count: 9000),
        String(repeating: "ratatouille ", count: 6000), String(repeating: "👩🏽‍🍳", count: 3000),
        "a" + String(repeating: "é", count: 20_000), String(repeating: "word\n\n", count: 3000),
    ]

    @Test("all parts together are the whole, each no more than is shown at a time", arguments: texts, [64, 400])
    func whole(_ text: String, _ budget: Int) {
        var from: Int? = 0
        var lines: [String] = []
        var parts = 0
        while let start = from, parts < 2000 {
            let (page, next) = ServiceReading.page(of: text, from: start, budget: budget)
            #expect(page.count <= ServiceReading.maxLines && page.allSatisfy { $0.utf8.count <= budget })
            if let next { #expect(next > start) }
            lines += page
            from = next
            parts += 1
        }
        #expect(from == nil)
        func letters(_ text: String) -> [Unicode.Scalar] {
            text.unicodeScalars.filter { $0 != "\n" && $0 != "\r" }
        }
        #expect(letters(lines.joined()) == letters(text))
    }

    @Test(
        "what was found is shown with its line, whole or as much of it as fits",
        arguments: [
            ("one\nTwo soups\nthree", "soup", "Two soups"), ("soup", "SOUP", "soup"),
            ("a\r\nsoup\r\nb", "soup", "soup"),
            ("nothing", "soup", nil), ("", "soup", nil),
            (String(repeating: "é", count: 50) + " soup", "soup", "…" + String(repeating: "é", count: 7) + " soup"),
            ("soup " + String(repeating: "x", count: 100), "soup", "soup " + String(repeating: "x", count: 59)),
        ] as [(String, String, String?)])
    func passage(_ text: String, _ words: String, _ passage: String?) {
        #expect(ServiceReading.passage(of: text, holding: words, budget: 64) == passage)
    }

    @Test("what repeats itself is found where it is first")
    func repeating() {
        for (text, words, place) in [
            ("aaab", "aab", 1), ("ababac", "abac", 2), ("aabaaabaaaab", "aaaab", 7), ("aaaa", "ab", nil),
        ]
            as [(String, String, Int?)]
        {
            let found = ServiceReading.passage(of: String(repeating: "\n", count: 3) + text, holding: words, budget: 64)
            #expect((found != nil) == (place != nil))
            #expect(Array(text.utf8).withUnsafeBytes(TextPattern(words).firstIndex) == place)
        }
    }

    @Test("a number that lies within a character, or behind the end, is no trouble", arguments: 0..<30)
    func anywhere(_ start: Int) {
        let (lines, next) = ServiceReading.page(of: "é👩🏽‍🍳\né", from: start, budget: 64)
        #expect(next == nil)
        #expect(!lines.joined().unicodeScalars.contains("\u{FFFD}"))
    }
}

@Suite("*bridge")
struct ServiceTests {
    /// What the service said, without the times.
    private func words(_ lines: [String]) -> [String] {
        lines.compactMap { line in
            line.firstMatch(of: #/:\*bridge!bridge@bridge PRIVMSG \S+ :(?:\[[^\]]*\] )?(.*)$/#).map { String($0.1) }
        }
    }

    private func ask(_ stage: HistoryStage, _ text: String, _ client: UInt64 = 1) -> [String] {
        words(stage.ask("PRIVMSG *bridge :" + text, client))
    }

    // MARK: - The past

    @Test("history is what CHATHISTORY would give, in words", arguments: HistoryPlace.own)
    func history(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place)
        stage.enter(caps: "")
        stage.say(numbers(0..<30))
        _ = stage.raw()
        #expect(ask(stage, "history #lobby").dropLast() == numbers(20..<30).map { "<linguini> " + $0 })
        #expect(ask(stage, "history lobby 3").dropLast() == numbers(27..<30).map { "<linguini> " + $0 }[...])
        let all = ask(stage, "history #lobby 99999999999999999999")
        #expect(all.count == 31 && all.last == "That is all that is known of #lobby.")
        // As the answer itself says.
        let more = try #require(ask(stage, "history #lobby 4").last?.split(separator: ": ").last)
        #expect(more == "history #lobby 4 before \(stage.msgid("m26"))")
        #expect(ask(stage, String(more)).dropLast() == numbers(22..<26).map { "<linguini> " + $0 }[...])
        #expect(stage.harness.violations == [])
    }

    @Test("what the bridge has not kept comes from the backend", arguments: HistoryPlace.withBackend)
    func older(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place, older: (0..<12).map { ("m\($0)", Int64(60 - $0) * 1000) })
        stage.enter(caps: "")
        stage.say("m12")
        _ = stage.raw()
        #expect(ask(stage, "history #lobby 13").dropLast() == numbers(0..<13).map { "<linguini> " + $0 }[...])
        let shown = ask(stage, "show " + stage.msgid("m3"))
        #expect(shown.last == "m3" && shown.count == 2)
    }

    @Test(
        "a search finds in all rooms of the asker, and a message is shown whichever room has it",
        arguments: HistoryPlace.own)
    func rooms(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place, rooms: 3)
        stage.enter(caps: HistoryStage.caps, join: "#lobby,#room1")
        stage.say("soup here")
        let said = stage.say("Soup there", room: 1)
        stage.say("soup elsewhere", room: 2)
        _ = stage.raw()
        let found = ask(stage, "search soup")
        #expect(found.count == 3 && found[0].hasPrefix("#lobby ") && found[1].hasPrefix("#room1 "))
        #expect(found.last == "2 messages.")
        #expect(ask(stage, "search #room1 soup").count == 2)
        #expect(ask(stage, "search #room2 soup").first?.hasPrefix("What was said in #room2 is for those") == true)
        let msgid = stage.harness.bridge.context.messageID(
            backend: "b", room: "room1", sender: ChatID("u-lin"), id: ChatID(said))
        #expect(ask(stage, "show " + msgid).last == "Soup there")
        #expect(ask(stage, "show nothing") == ["No such message is known here."])
    }

    @Test("a message that memory has lost is looked for in every room's store")
    func onDisk() throws {
        let stage = try HistoryStage(.store, rooms: 2)
        stage.enter(join: "#lobby,#room1")
        stage.say("first")
        stage.say((0..<RecentLog.capacity).map { "m\($0)" }, each: .zero)
        _ = stage.raw()
        #expect(stage.room.recent.entry(msgid: stage.msgid("first")) == nil)
        #expect(ask(stage, "show " + stage.msgid("first")).last == "first")
    }

    @Test("a message too long for the room is shown whole, in parts", arguments: HistoryPlace.own)
    func long(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place)
        stage.enter(caps: "message-tags")
        let lines = (0..<250).map { "line \($0)" }
        stage.say(lines.joined(separator: #"\n"#))
        let hint = try #require(stage.raw().compactMap(HistoryStage.words).last)
        let msgid = stage.harness.bridge.rooms[0].recent.newest?.msgid ?? ""
        #expect(hint == "… 150 more lines: /msg *bridge show \(msgid)")
        var shown: [String] = []
        var command: String? = "show " + msgid
        var parts = 0
        while let text = command, parts < 10 {
            let answer = ask(stage, text)
            #expect(answer.first?.hasPrefix("linguini in #lobby, ") == true)
            shown += answer.filter { $0.hasPrefix("line ") }
            command = answer.last?.firstMatch(of: #/more bytes: (show .*)$/#).map { String($0.1) }
            parts += 1
        }
        #expect(shown == lines && parts == 3)
        // In a list of several it takes a few lines.
        #expect(ask(stage, "history #lobby").count == ServiceReading.maxLinesInList + 2)
    }

    @Test("a disk that fails, or does not answer, is told in words, and the client's next line is answered")
    func brokenDisk() throws {
        let stage = try HistoryStage(.store)
        stage.enter()
        stage.say("hello")
        _ = stage.raw()
        stage.harness.store.readFailure = StoreFailure("the disk is gone")
        #expect(ask(stage, "history #lobby") == ["Messages could not be retrieved."])
        #expect(ask(stage, "search hello") == ["The search could not be run."])
        stage.harness.store.readFailure = nil
        stage.harness.store.answersQuestions = false
        stage.harness.send(1, "@label=1 PRIVMSG *bridge :history #lobby")
        stage.harness.send(1, "PING after")
        #expect(words(stage.raw()) == [])
        stage.harness.advance(by: HistoryAnswer.patience)
        let answer = stage.raw()
        #expect(words(answer) == ["Messages could not be retrieved."])
        #expect(answer.last?.contains("PONG bridge after") == true)
        #expect(answer.count { $0.contains("BATCH -") } == 1)
    }

    @Test("a long answer comes as the client takes it, and what is said meanwhile too")
    func slowClient() throws {
        let stage = try HistoryStage(.store)
        stage.enter(caps: "")
        stage.say((0..<200).map { "m\($0) " + String(repeating: "x", count: 300) }, each: .milliseconds(10))
        _ = stage.raw()
        stage.harness.setSlow(1, true)
        stage.harness.send(1, "PRIVMSG *bridge :history #lobby 200")
        let first = stage.raw()
        #expect(first.count > 10 && first.count < 100)
        stage.say("live")
        #expect(stage.raw().compactMap(HistoryStage.words) == ["live"])
        stage.harness.setSlow(1, false)
        #expect(words(first + stage.raw()).count == 201)
    }

    // MARK: - Rooms

    private func bridge(_ change: (inout BridgeSettings) -> Void = { _ in }) throws -> BridgeHarness {
        var settings = BridgeSettings(
            serverName: "bridge", instanceID: "t", limits: LimitSettings { $0.messagesPerSecond = nil },
            rooms: [
                RoomSettings(name: "lobby", dialect: StubDialect(), url: try HTTPURL(parsing: "ws://chat.example/"))
            ])
        change(&settings)
        let harness = BridgeHarness(settings: settings)
        harness.start()
        return harness
    }

    private func enter(_ harness: BridgeHarness, _ client: UInt64, _ nick: String, pass: String? = nil) {
        harness.connect(client)
        if let pass { harness.send(client, "PASS " + pass) }
        for line in ["NICK " + nick, "USER u 0 * :u", "JOIN #lobby"] { harness.send(client, line) }
        _ = harness.takeOutputs()
    }

    @Test("thousands of people are listed as the client takes them, each once")
    func crowd() throws {
        let harness = try bridge()
        enter(harness, 1, "ann")
        for index in 0..<3000 {
            harness.sendFrame(
                0,
                #"{"kind":"join","sender":{"id":"u\#(index)","name":"person-\#(index)"},"user":{"id":"u\#(index)","name":"person-\#(index)"}}"#
            )
        }
        harness.advance(by: .seconds(10))
        _ = harness.takeOutputs()
        let count = harness.bridge.rooms[0].memberCount
        #expect(count == 3001)
        harness.setSlow(1, true)
        harness.send(1, "PRIVMSG *bridge :who")
        let first = harness.takeLines(1)
        #expect(first.map(\.utf8.count).reduce(0, +) <= ReplyGenerators.window + 1024)
        harness.setSlow(1, false)
        let all = words(first + harness.takeLines(1))
        #expect(all.last == "3001 people in #lobby.")
        let named = all.flatMap { $0.matches(of: #/person-\d+/#).map { String($0.0) } }
        #expect(named.count == 3000 && Set(named).count == 3000)
    }

    // MARK: - Flood

    @Test(
        "a heavy request costs what IRC's own would",
        arguments: [
            ("PRIVMSG #lobby :search soup", nil), ("PRIVMSG *bridge :search soup", 4), ("PRIVMSG *BRIDGE :SEARCH x", 4),
            ("PRIVMSG *bridge,ann,*bridge :search x", 8), ("PRIVMSG *bridge :hello", 1), ("PRIVMSG *bridge :", 1),
            ("PRIVMSG ann*bridge :search", nil), ("NOTICE *bridge :search x", nil), ("SQUERY *bridge :show x", 3),
            // Formatting changes nothing of what is carried out.
            ("PRIVMSG *bridge :\u{2}search x", 4), ("PRIVMSG *bridge :\u{3}4,5sea\u{F}rch\u{2} x", 4),
            ("PRIVMSG *bridge : \u{1D} search x", 4), ("PRIVMSG *bridge :\u{1}ACTION search\u{1}", 1),
            ("PRIVMSG *bridge", nil),
        ] as [(String, Int?)])
    func penalty(_ line: String, _ cost: Int?) throws {
        let harness = try bridge()
        let message = try Array(line.utf8).withUnsafeBytes { try IRCParse.parse($0) }
        #expect(harness.bridge.irc.servicePenalty(of: message) == cost)
    }

    @Test("somebody who searches again and again waits for the answers")
    func flood() throws {
        let harness = try bridge {
            $0.limits = LimitSettings {
                $0.messagesPerSecond = 2
                $0.messagesBurst = 10
            }
        }
        enter(harness, 1, "ann")
        harness.advance(by: .seconds(20))
        for _ in 0..<10 { harness.send(1, "PRIVMSG *bridge :search #lobby soup") }
        #expect(words(harness.takeLines(1)).count < 5)
        harness.advance(by: .seconds(30))
        #expect(words(harness.takeLines(1)).count >= 5)
        #expect(harness.isConnected(1))
    }

    @Test("a request in a message of several lines costs what it does in one")
    func floodOfBatches() throws {
        let harness = try bridge {
            $0.limits = LimitSettings {
                $0.messagesPerSecond = 2
                $0.messagesBurst = 10
            }
        }
        enter(harness, 1, "ann")
        harness.send(1, "CAP REQ :batch draft/multiline")
        harness.advance(by: .seconds(20))
        _ = harness.takeLines(1)
        for number in 0..<10 {
            harness.send(1, "BATCH +\(number) draft/multiline *bridge")
            harness.send(1, "@batch=\(number) PRIVMSG *bridge :search #lobby soup")
            harness.send(1, "BATCH -\(number)")
        }
        #expect(words(harness.takeLines(1)).count < 4)
        harness.advance(by: .seconds(40))
        #expect(words(harness.takeLines(1)).count >= 6)
    }

    // MARK: - Whatever is said

    private static let hostile = [
        "", " ", ":", "help", "\u{1}", "\u{1}\u{1}", "\u{1}PING\u{1}", "\u{1}ACTION", "\u{2}\u{3}4,5\u{F}", "#lobby",
        "#", "*bridge", "%n%s", "history #lobby -1", "history #lobby 9999999999999999999999", "history #lobby 1 before",
        "show", "show * -5", "show a 99999999999999999999", "search #lobby", "search %",
        "search '; DROP TABLE messages",
        "mute", "mute *", "mute :", "unmute #lobby", "login", "login a", "login : b", "login @ x", "login a@b@c d",
        "logout", "receipts", "receipts 1", "seen #lobby", "seen :", "who :", "status é\u{301}", "reconnect #lobby",
        "help \u{202E}reversed", String(repeating: "y", count: 400), String(repeating: "y ", count: 200), "rooms rooms",
    ]

    @Test("whatever is said to it, it answers in legal lines and goes on", arguments: LawSeeds.seeds(8))
    func anything(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let password = SCRAMVerifier(quickly: "a")
        let harness = try bridge {
            $0.accounts = [AccountSettings(name: "ann", password: password, isAdmin: true)]
        }
        enter(harness, 1, "ann", pass: "ann:a")
        enter(harness, 2, "bob")
        harness.sendFrame(0, #"{"kind":"message","id":"m","at":1,"sender":{"id":"r","name":"Remy"},"text":"hi"}"#)
        _ = harness.takeOutputs()
        for _ in 0..<150 {
            let client = 1 + random.next() % 2
            guard harness.isConnected(client) else { continue }
            let head = ServiceCommandTable.standard.rows[
                Int(random.next() % UInt64(ServiceCommandTable.standard.rows.count))
            ].name
            let tail = Self.hostile[Int(random.next() % UInt64(Self.hostile.count))]
            let text = random.next() % 3 == 0 ? tail : head + " " + tail
            harness.send(client, "PRIVMSG *bridge :" + text)
            for case .line(_, let bytes) in harness.takeOutputs() {
                #expect(bytes.count <= 510, "\(text): \(String(decoding: bytes, as: UTF8.self))")
                #expect(throws: Never.self) { _ = try bytes.withUnsafeBytes { try IRCParse.parse($0) } }
                #expect(!bytes.contains { $0 == 0x0D || $0 == 0 })
            }
            harness.advance(by: .milliseconds(Int64(random.next() % 800)))
        }
        #expect(harness.violations == [])
        harness.advance(by: .seconds(60))
        enter(harness, 3, "colette")
        harness.send(3, "PRIVMSG *bridge :help help")
        #expect(words(harness.takeLines(3)).first == "help [<command>] - explains a command, or lists them")
    }

    // MARK: - Mutes and what was missed

    @Test("what somebody said who was muted is not in what a client missed either")
    func backlog() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone")
        stage.say("before")
        stage.harness.advance(by: .seconds(5))
        let nick = try #require(
            stage.raw(1).last { $0.contains("PRIVMSG #lobby") }?.firstMatch(of: #/:(\S+?)!/#).map { String($0.1) })
        stage.harness.send(1, "PRIVMSG *bridge :mute " + nick)
        #expect(words(stage.raw(1)).first?.hasPrefix("You do not hear \(nick)") == true)
        stage.leave(1)
        stage.say("while away")
        stage.enter(2, "alice@phone")
        #expect(!stage.raw(2).contains { $0.contains("while away") })
    }

    @Test("what a client was given as one account does not count for the other as whom it logs in")
    func cursors() throws {
        let stage = try BacklogStage()
        stage.enter(1, "bob@desk")
        stage.harness.advance(by: .seconds(5))
        stage.leave(1)
        stage.enter(2, "alice@phone")
        stage.say("for alice")
        stage.harness.advance(by: .seconds(5))
        let place = try #require(stage.cursor("alice", "phone"))
        #expect(stage.cursor("bob", "desk") == place - 1)
        stage.say("on its way to alice")
        stage.harness.send(2, "PRIVMSG *bridge :login bob@desk pw")
        stage.harness.advance(by: .seconds(5))
        stage.harness.send(2, "PRIVMSG *bridge :logout")
        stage.say("to nobody in particular")
        stage.harness.advance(by: .seconds(5))
        #expect(stage.cursor("alice", "phone") == place)
        #expect(stage.cursor("bob", "desk") == place - 1)
        stage.leave(2)
        stage.enter(3, "bob@desk")
        #expect(stage.heard(3).count == 3)
    }

    // MARK: - A way out

    @Test("too many wrong passwords end the connection, as with any other login")
    func wrongPasswords() throws {
        let password = SCRAMVerifier(quickly: "a")
        let harness = try bridge { $0.accounts = [AccountSettings(name: "ann", password: password)] }
        enter(harness, 1, "bob")
        for _ in 0..<IRCServer.maxLoginTries {
            #expect(harness.isConnected(1))
            harness.send(1, "PRIVMSG *bridge :login ann wrong")
            harness.advance(by: .seconds(60))
        }
        #expect(!harness.isConnected(1))
    }

    @Test("a password does not cross a connection on which it could be read")
    func insecure() throws {
        let password = SCRAMVerifier(quickly: "a")
        let harness = try bridge { $0.accounts = [AccountSettings(name: "ann", password: password)] }
        harness.connect(1, address: "192.0.2.1", isLocal: false, allowsLogin: false)
        for line in ["NICK bob", "USER u 0 * :u"] { harness.send(1, line) }
        _ = harness.takeOutputs()
        harness.send(1, "PRIVMSG *bridge :login ann a")
        #expect(words(harness.takeLines(1)) == ["A password does not cross this connection; connect with TLS."])
        #expect(harness.passwordChecks.isEmpty)
    }

    @Test("a certificate logs in without a password")
    func certificate() throws {
        let fingerprint = String(repeating: "ab", count: 32)
        let harness = try bridge {
            $0.accounts = [
                AccountSettings(name: "ann", password: .unmatchable(iterations: 1), certificates: [fingerprint])
            ]
        }
        harness.connect(1, security: .certified(fingerprint))
        for line in ["NICK bob", "USER u 0 * :u"] { harness.send(1, line) }
        _ = harness.takeOutputs()
        harness.send(1, "PRIVMSG *bridge :login")
        #expect(words(harness.takeLines(1)) == ["You are logged in as ann."])
    }
}
