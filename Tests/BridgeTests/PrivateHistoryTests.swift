import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import IRCProtocol
import Identities
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// People with and without accounts who talk to each other, and ask for what they said.
final class PrivateStage {
    static let caps = HistoryStage.caps + " echo-message draft/event-playback draft/multiline sasl"
    static let accounts = ["ann", "bob", "cleo"]

    let isDurable: Bool
    let settings: BridgeSettings
    private(set) var harness: BridgeHarness
    private var restarts: UInt64 = 0
    private var lines: [UInt64: [String]] = [:]

    init(_ isDurable: Bool, limit: Int = 500) throws {
        self.isDurable = isDurable
        let accounts = Self.accounts.map { name in
            AccountSettings(name: name, password: SCRAMVerifier(quickly: "pw"))
        }
        settings = BridgeSettings(
            serverName: "bridge", instanceID: "t", accounts: accounts, registration: .everybody,
            passwordIterations: 4096,
            limits: LimitSettings {
                $0.acceptsPerSecondPerAddress = nil
                $0.messagesPerSecond = nil
                $0.historyLimit = limit
            },
            rooms: [
                RoomSettings(
                    name: "lobby", backend: "b", dialect: StubDialect { _ in },
                    url: try HTTPURL(parsing: "ws://chat.example/lobby"))
            ])
        harness = BridgeHarness(settings: settings, store: isDurable ? StoreStage() : nil)
        harness.start()
    }

    /// The process dies, and another goes on over the same disk.
    ///
    /// - Parameter disk: nil: the same.
    func restart(on disk: StoreStage? = nil) {
        restarts += 1
        harness = BridgeHarness(
            settings: settings, seed: 1 + restarts, store: isDurable ? disk ?? harness.store.afterCrash : nil,
            startingAt: harness.clock)
        lines = [:]
        harness.start()
    }

    /// - Parameter account: nil: without one.
    func enter(_ client: UInt64, _ nick: String, as account: String? = nil, caps: String = PrivateStage.caps) {
        harness.connect(client)
        if !caps.isEmpty { harness.send(client, "CAP REQ :" + caps) }
        if let account { harness.send(client, "PASS \(account):pw") }
        for line in ["NICK " + nick, "USER u 0 * :r", "CAP END"] { harness.send(client, line) }
        look()
        lines = [:]
    }

    private func look() {
        for case .line(let client, let bytes) in harness.takeOutputs() {
            lines[client, default: []].append(String(decoding: bytes, as: UTF8.self))
        }
    }

    /// What the client was told since somebody sent something last.
    func heard(_ client: UInt64) -> [String] {
        look()
        return lines.removeValue(forKey: client) ?? []
    }

    /// Sends a line a second after the last, and gives what the client is told.
    @discardableResult
    func send(_ client: UInt64, _ line: String) -> [String] {
        harness.advance(by: .seconds(1))
        look()
        lines = [:]
        harness.send(client, line)
        return heard(client)
    }

    /// The same without tags.
    func answer(_ client: UInt64, _ line: String) -> [String] {
        send(client, line).map { line in
            line.hasPrefix("@") ? String(line.drop { $0 != " " }.dropFirst()) : line
        }
    }

    /// The lines of a page, without its batch, and each without that tag.
    func page(_ client: UInt64, _ line: String) -> [String] {
        let lines = send(client, line)
        let inner = lines.filter { !$0.contains(" BATCH ") || $0.contains("draft/multiline") }
        return inner.map { $0.replacing(#/;?batch=[0-9a-z]+/#, with: "") }
    }

    /// `nick: words`, or what the line is.
    func words(_ client: UInt64, _ line: String) -> [String] {
        page(client, line).map { line in
            guard let match = line.firstMatch(of: #/:([^! ]+)!\S+ (PRIVMSG|NOTICE) (\S+) :(.*)$/#) else { return line }
            return "\(match.1)>\(match.3): \(match.4)"
        }
    }

    func latest(_ client: UInt64, _ nick: String) -> [String] { words(client, "CHATHISTORY LATEST \(nick) * 100") }

    static let always = "timestamp=1970-01-01T00:00:00.000Z timestamp=2262-01-01T00:00:00.000Z"

    /// The names of all targets, the one that spoke last last.
    func targets(_ client: UInt64) -> [String] {
        send(client, "CHATHISTORY TARGETS \(Self.always) 100").compactMap { line in
            line.firstMatch(of: #/CHATHISTORY TARGETS (\S+) /#).map { String($0.1) }
        }
    }
}

@Suite("What was said in private")
struct PrivateHistoryTests {
    // MARK: - Who sees what

    @Test("both see what both said, with the ids and times of then, and nobody else does", arguments: [false, true])
    func bothSides(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        stage.enter(3, "cleo", as: "cleo")
        var told: [UInt64: [String]] = [1: [], 2: []]
        for (client, line) in [
            (1, "PRIVMSG bob :hello"), (2, "PRIVMSG ann :hello yourself"), (1, "NOTICE bob :this is noted"),
            (2, "PRIVMSG ann :\u{1}ACTION waves\u{1}"), (1, "@+reply=x PRIVMSG bob :with a tag"),
        ] as [(UInt64, String)] {
            told[client]?.append(contentsOf: stage.send(client, line))
            told[3 - client]?.append(contentsOf: stage.heard(3 - client))
        }
        for client in [1, 2] as [UInt64] {
            let partner = client == 1 ? "bob" : "ann"
            #expect(told[client]?.count == 5)
            #expect(stage.page(client, "CHATHISTORY LATEST \(partner) * 10") == told[client])
            // The case of the nick does not count, and the batch is called as was asked.
            let shouted = stage.send(client, "CHATHISTORY LATEST \(partner.uppercased()) * 10")
            #expect(shouted.first?.hasSuffix(" chathistory \(partner.uppercased())") == true && shouted.count == 7)
        }
        for nick in ["ann", "bob", "cleo"] { #expect(stage.latest(3, nick) == []) }
        #expect(stage.targets(1) == ["bob"] && stage.targets(2) == ["ann"] && stage.targets(3) == [])
        #expect(stage.harness.violations == [])
    }

    @Test("who has no account has no past, and leaves none but with those who have one", arguments: [false, true])
    func strangers(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "Guest")
        stage.enter(3, "other")
        for (client, nick) in [(1, "guest"), (2, "ann"), (2, "other"), (3, "guest")] as [(UInt64, String)] {
            stage.send(client, "PRIVMSG \(nick) :psst from \(client)")
        }
        for (client, nick) in [(2, "ann"), (2, "other"), (3, "guest"), (1, "nobody")] as [(UInt64, String)] {
            #expect(stage.send(client, "@label=x CHATHISTORY LATEST \(nick) * 10").count == 2)
        }
        let said = ["ann>Guest: psst from 1", "Guest>ann: psst from 2"]
        #expect(stage.latest(1, "guest") == said)
        #expect(stage.targets(1) == ["Guest"] && stage.targets(2) == [] && stage.targets(3) == [])
        // The next one of that nick reads nothing of it, with an account neither.
        stage.harness.disconnect(2)
        #expect(stage.latest(1, "GUEST") == ["ann>GUEST: psst from 1", "Guest>ann: psst from 2"])
        stage.enter(4, "guest")
        #expect(stage.latest(4, "ann") == [])
        stage.harness.disconnect(4)
        stage.enter(5, "guest", as: "bob")
        #expect(stage.latest(5, "ann") == [] && stage.targets(5) == [] && stage.words(5, "SEARCH text=psst") == [])
        // And who has an account is not taken for whoever had none.
        #expect(stage.latest(1, "guest") == [])
        stage.send(5, "PRIVMSG ann :with an account")
        #expect(stage.latest(1, "guest") == ["guest>ann: with an account"])
        #expect(stage.targets(1) == ["guest"])
    }

    @Test("what an account says to visitors outlasts the process, under their nick as it was written")
    func visitorsKept() throws {
        let stage = try PrivateStage(true)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "Guest")
        stage.send(2, "PRIVMSG ann :psst")
        stage.restart()
        stage.enter(1, "ann", as: "ann")
        #expect(stage.targets(1) == ["Guest"])
        #expect(stage.latest(1, "Guest") == ["Guest>ann: psst"])
        #expect(stage.words(1, "SEARCH text=psst") == ["Guest>ann: psst"])
        stage.send(1, "PRIVMSG *bridge :mute Guest")
        stage.enter(2, "Guest")
        #expect(stage.latest(1, "Guest") == ["Guest>ann: psst"])
        stage.send(1, "PRIVMSG *bridge :mute Guest")
        #expect(stage.latest(1, "Guest") == [] && stage.targets(1) == [])
    }

    @Test(
        "what is said before a login is the other's alone, and what follows both accounts'", arguments: [false, true])
    func loginAmid(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "robert")
        stage.send(2, "PRIVMSG ann :as a guest")
        stage.send(2, "PRIVMSG *bridge :login bob pw")
        stage.send(2, "PRIVMSG ann :as bob")
        stage.send(1, "PRIVMSG robert :hello bob")
        for (client, nick) in [(1, "robert"), (2, "ann")] as [(UInt64, String)] {
            #expect(stage.latest(client, nick) == ["robert>ann: as bob", "ann>robert: hello bob"])
        }
        // And after a logout it is nobody again.
        stage.send(2, "PRIVMSG *bridge :logout")
        let nick = try #require(stage.harness.bridge.irc.sessions[ClientID(rawValue: 2)]?.nick)
        stage.send(2, "PRIVMSG ann :as a guest again")
        #expect(stage.latest(2, "ann") == [])
        let seen = stage.latest(1, nick)
        #expect(seen.last == "\(nick)>ann: as a guest again" && !seen.contains("robert>ann: as bob"))
    }

    @Test("a stranger with the nick of somebody who is gone reads nothing, and nobody is shown them for the other")
    func takenNick() throws {
        let stage = try PrivateStage(true)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bobby", as: "bob")
        stage.send(2, "PRIVMSG ann :a secret")
        stage.harness.disconnect(2)
        #expect(stage.latest(1, "bobby") == ["bobby>ann: a secret"])
        stage.enter(3, "bobby")
        #expect(stage.latest(3, "ann") == [] && stage.targets(3) == [])
        #expect(stage.latest(1, "bobby") == [])
        // There is another name for whom she talked to.
        #expect(stage.targets(1) == ["bob"])
        #expect(stage.latest(1, "bob") == ["bobby>ann: a secret"])
        stage.harness.disconnect(3)
        #expect(stage.targets(1) == ["bobby"])
        // Somebody else with an account had the nick last: it is theirs, gone or not, and in the next process too.
        stage.enter(4, "bobby", as: "cleo")
        #expect(stage.latest(4, "ann") == [] && stage.latest(1, "bobby") == [])
        stage.harness.disconnect(4)
        for _ in 0..<2 {
            #expect(stage.latest(1, "bobby") == [])
            #expect(stage.targets(1) == ["bob"])
            stage.restart()
            stage.enter(1, "ann", as: "ann")
        }
    }

    @Test(
        "a conversation goes on through new nicks, and every nick that was had last leads to it",
        arguments: [false, true])
    func newNicks(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        stage.send(2, "PRIVMSG ann :one")
        stage.send(1, "PRIVMSG bob :two")
        stage.send(2, "NICK robert")
        stage.send(1, "NICK anna")
        stage.send(2, "PRIVMSG anna :three")
        // What was heard comes from who it came from; what one said oneself comes from oneself, so that clients know it.
        for nick in ["robert", "bob"] {
            #expect(stage.latest(1, nick) == ["bob>anna: one", "anna>\(nick): two", "robert>anna: three"])
        }
        for nick in ["anna", "ann"] {
            #expect(stage.latest(2, nick) == ["robert>\(nick): one", "ann>robert: two", "robert>\(nick): three"])
        }
        #expect(stage.targets(1) == ["robert"] && stage.targets(2) == ["anna"])
        stage.harness.disconnect(2)
        #expect(stage.targets(1) == ["robert"])
    }

    @Test("what one says to oneself is there once", arguments: [false, true])
    func oneself(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        #expect(stage.send(1, "PRIVMSG ann :to do").count == 2)
        #expect(stage.latest(1, "ann") == ["ann>ann: to do"])
        #expect(stage.targets(1) == ["ann"])
        stage.send(1, "NICK anna")
        #expect(stage.latest(1, "anna") == ["anna>anna: to do"])
        #expect(stage.targets(1) == ["anna"])
    }

    @Test("two clients of an account see the same, whoever of them spoke", arguments: [false, true])
    func twoClients(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "ann", as: "ann", caps: HistoryStage.caps)
        stage.enter(3, "bob", as: "bob")
        stage.send(1, "PRIVMSG bob :from the desk")
        stage.send(2, "PRIVMSG bob :from the phone")
        let wanted = ["ann>bob: from the desk", "ann>bob: from the phone"]
        for client in [1, 2] as [UInt64] { #expect(stage.latest(client, "bob") == wanted) }
        // To who is gone nothing is said, and no client shows it.
        stage.harness.disconnect(3)
        #expect(stage.send(1, "PRIVMSG bob :are you there?").first?.contains(" 401 ann bob ") == true)
        #expect(stage.heard(2) == [])
        for client in [1, 2] as [UInt64] { #expect(stage.latest(client, "bob") == wanted) }
    }

    @Test("who is muted is not shown, and all is there when they are heard again", arguments: [false, true])
    func muted(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        stage.send(2, "PRIVMSG ann :one")
        stage.send(1, "PRIVMSG *bridge :mute bob")
        stage.send(2, "PRIVMSG ann :two")
        #expect(stage.latest(1, "bob") == [] && stage.targets(1) == [] && stage.words(1, "SEARCH text=o") == [])
        #expect(stage.latest(2, "ann") == ["bob>ann: one", "bob>ann: two"])
        stage.send(1, "PRIVMSG *bridge :unmute bob")
        #expect(stage.latest(1, "bob") == ["bob>ann: one", "bob>ann: two"])
    }

    @Test("who makes an account of a name finds nothing of whoever had it before")
    func madeAnew() throws {
        let stage = try PrivateStage(true)
        // As a process left it whose configuration had an account dora.
        let key = StoredRoomKey.conversation("ann", "dora")
        var old = StoreStage()
        let message = StoredMessage(
            sequence: 0, msgid: "m", at: ChatTimestamp(milliseconds: 1_700_000_000_000), nick: "dora",
            source: "dora!d@bridge", account: "dora", text: "of old", author: ChatID("a"))
        old.prepare([
            .message(key, message), .nick(StoredNick(folded: "dora", nick: "dora", account: "dora")),
            .choices(StoredChoices(account: "dora", mutes: [StoredMute(target: .account("ann"), nick: "ann")])),
        ])
        let harness = BridgeHarness(settings: stage.settings, store: old)
        harness.start()
        for client in [1, 2] as [UInt64] { harness.connect(client) }
        for line in ["CAP REQ :draft/chathistory batch", "PASS ann:pw", "NICK ann", "USER u 0 * :r", "CAP END"] {
            harness.send(1, line)
        }
        _ = harness.takeOutputs()
        harness.send(1, "CHATHISTORY LATEST dora * 9")
        #expect(harness.takeLines(1).contains { $0.hasSuffix("of old") })
        for line in ["NICK dora", "USER u 0 * :r", "REGISTER * * longenough"] { harness.send(2, line) }
        #expect(harness.takeLines(2).contains { $0.contains("REGISTER SUCCESS dora") })
        for client in [1, 2] as [UInt64] {
            harness.send(client, "CHATHISTORY LATEST \(client == 1 ? "dora" : "ann") * 9")
            #expect(!harness.takeLines(client).contains { $0.contains("of old") })
        }
        harness.send(1, "PRIVMSG dora :hello")
        #expect(harness.takeLines(2) == [":ann!~u@bridge PRIVMSG dora :hello"])
        #expect(harness.store.disk.choices == [])
        #expect(harness.store.disk.rooms[key]?.messages.map(\.text) == ["hello"])
    }

    @Test(
        "who logs in with a token can be asked about when a visitor had their nick meanwhile", arguments: [false, true])
    func tokens(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        // As it is when somebody with the account of a token leaves: it is in no book.
        func talk() {
            stage.enter(2, "col")
            let person = stage.harness.bridge.context.identities.person(nick: "col")
            if let person { stage.harness.bridge.context.identities.setAccount(person.id, "colette@b") }
        }
        talk()
        stage.send(1, "PRIVMSG col :meet me at nine")
        let line = ["ann>col: meet me at nine"]
        #expect(stage.latest(1, "col") == line && stage.targets(1) == ["col"])
        stage.harness.disconnect(2)
        #expect(stage.latest(1, "col") == line && stage.targets(1) == ["col"])
        stage.enter(3, "col")
        stage.send(3, "PRIVMSG ann :hi")
        let asAccount = ["ann>colette@b: meet me at nine"]
        #expect(stage.latest(1, "col") == ["col>ann: hi"])
        #expect(stage.latest(1, "Colette@b") == asAccount.map { $0.replacing("colette", with: "Colette") })
        #expect(stage.targets(1) == ["colette@b", "col"])
        #expect(stage.words(1, "SEARCH text=nine") == asAccount)
        stage.harness.disconnect(3)
        #expect(stage.targets(1) == ["colette@b", "col"] && stage.latest(1, "colette@b") == asAccount)
    }

    // MARK: - Pages

    static let rows: [HistoryTests.Row] = HistoryTests.rows.map { row in
        HistoryTests.Row(
            row.testDescription, row.line.replacing("#lobby", with: "bob").replacing("#LOBBY", with: "BOB"), row.page)
    }

    @Test("a page has exactly what was asked for", arguments: rows, [false, true])
    func subcommands(_ row: HistoryTests.Row, isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        var references: [(msgid: String, time: String)] = []
        for index in 0..<10 {
            let client: UInt64 = index % 3 == 0 ? 2 : 1
            let line = stage.send(client, "PRIVMSG \(client == 1 ? "bob" : "ann") :m\(index)").first ?? ""
            references.append(
                (HistoryStage.tag("msgid", line) ?? "", HistoryStage.tag("time", line) ?? ""))
        }
        for isByTime in [false, true] {
            let line = row.line.replacing(#/\{m(\d+)\}/#) { match in
                let (msgid, time) = references[Int(match.1) ?? 0]
                return isByTime ? "timestamp=" + time : "msgid=" + msgid
            }
            let lines = stage.page(1, "CHATHISTORY " + line)
            #expect(
                lines.map { $0.split(separator: ":").last.map(String.init) ?? "" } == row.page.map { "m\($0)" },
                "\(line)")
        }
        #expect(stage.harness.violations == [])
    }

    @Test("a message that the conversation does not have is none", arguments: [false, true])
    func unknownMessage(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        stage.enter(3, "cleo", as: "cleo")
        stage.send(1, "PRIVMSG bob :one")
        let line = stage.send(1, "PRIVMSG cleo :two").first ?? ""
        let msgid = HistoryStage.tag("msgid", line) ?? ""
        #expect(
            stage.answer(1, "CHATHISTORY BEFORE bob msgid=\(msgid) 5") == [
                ":bridge FAIL CHATHISTORY MESSAGE_ERROR BEFORE bob \(msgid) :No such message is known here"
            ])
    }

    @Test("a limit is a limit, and pages follow each other without a gap", arguments: [false, true])
    func paging(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable, limit: 7)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        for index in 0..<250 { stage.send(1, "PRIVMSG bob :m\(index)") }
        var found = stage.page(2, "CHATHISTORY LATEST ann * 100")
        var count = found.count
        while count == 7 {
            let msgid = found.first.flatMap { HistoryStage.tag("msgid", $0) } ?? ""
            let page = stage.page(2, "CHATHISTORY BEFORE ann msgid=\(msgid) 7")
            found = page + found
            count = page.count
        }
        #expect(found.map { String($0.split(separator: ":").last ?? "") } == (0..<250).map { "m\($0)" })
    }

    // MARK: - What is kept

    struct Form: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var line: String
        /// Nil: nothing is kept.
        var shown: String?
    }

    static let forms: [Form] = [
        Form(testDescription: "words", line: "PRIVMSG bob :hello", shown: ":ann!~u@bridge PRIVMSG bob :hello"),
        Form(testDescription: "a notice", line: "NOTICE bob :take note", shown: ":ann!~u@bridge NOTICE bob :take note"),
        Form(
            testDescription: "an action", line: "PRIVMSG bob :\u{1}ACTION waves\u{1}",
            shown: ":ann!~u@bridge PRIVMSG bob :\u{1}ACTION waves\u{1}"),
        Form(
            testDescription: "a reply", line: "@+reply=abc PRIVMSG bob :yes indeed",
            shown: "+reply=abc;+draft/reply=abc :ann!~u@bridge PRIVMSG bob :yes indeed"),
        Form(
            testDescription: "a reaction", line: "@+draft/react=x;+reply=abc TAGMSG bob",
            shown: "+draft/react=x;+reply=abc;+draft/reply=abc :ann!~u@bridge TAGMSG bob"),
        Form(
            testDescription: "a reaction taken back", line: "@+draft/unreact=x;+reply=abc TAGMSG bob",
            shown: "+draft/unreact=x;+reply=abc;+draft/reply=abc :ann!~u@bridge TAGMSG bob"),
        Form(testDescription: "a reaction to nothing", line: "@+draft/react=x TAGMSG bob", shown: nil),
        Form(testDescription: "typing", line: "@+typing=active TAGMSG bob", shown: nil),
        Form(testDescription: "a question of a program", line: "PRIVMSG bob :\u{1}VERSION\u{1}", shown: nil),
        Form(testDescription: "its answer", line: "NOTICE bob :\u{1}VERSION x\u{1}", shown: nil),
    ]

    @Test("each form of message comes back as it was", arguments: forms, [false, true])
    func eachForm(_ form: Form, isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        let live = stage.send(1, form.line)
        #expect(live.count == 1)
        let heard = stage.heard(2)
        #expect(heard == live)
        let pages = [stage.page(1, "CHATHISTORY LATEST bob * 5"), stage.page(2, "CHATHISTORY LATEST ann * 5")]
        guard let shown = form.shown else { return #expect(pages == [[], []]) }
        #expect(pages == [live, live])
        #expect(live.first?.hasSuffix(shown) == true)
    }

    @Test("reactions only come to those who ask for events", arguments: [false, true])
    func events(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob", caps: HistoryStage.caps)
        stage.send(1, "PRIVMSG bob :one")
        let before = stage.harness.clock.now.wall.milliseconds
        stage.send(2, "@+draft/react=x;+reply=abc TAGMSG ann")
        #expect(stage.page(1, "CHATHISTORY LATEST bob * 5").count == 2)
        #expect(stage.latest(2, "ann") == ["ann>bob: one"])
        // A page without them is full all the same, and nothing was said since.
        #expect(stage.words(2, "CHATHISTORY LATEST ann * 1") == ["ann>bob: one"])
        let targets = stage.send(1, "CHATHISTORY TARGETS \(PrivateStage.always) 9")
        #expect(targets.contains { $0.hasSuffix("TARGETS bob " + IRCTime.text(before)) })
    }

    @Test(
        "a message of several lines is one, for clients that know such, and its lines for others",
        arguments: [false, true])
    func severalLines(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        stage.enter(3, "bob", as: "bob", caps: "")
        for line in [
            "BATCH +1 draft/multiline bob", "@batch=1 PRIVMSG bob :one", "@batch=1 PRIVMSG bob :two", "BATCH -1",
        ] { stage.send(1, line) }
        let page = stage.send(2, "CHATHISTORY LATEST ann * 5")
        #expect(page.count == 6)
        #expect(page.contains { $0.contains(" BATCH +") && $0.hasSuffix(" draft/multiline bob") })
        let plain = stage.send(3, "CHATHISTORY LATEST ann * 5")
        #expect(plain.count == 2 && plain.allSatisfy { $0.hasPrefix(":ann!~u@bridge PRIVMSG bob :[12:00] ") })
        #expect(stage.page(1, "CHATHISTORY LATEST bob * 1").isEmpty == false)
    }

    // MARK: - Search

    @Test("SEARCH looks into conversations too, and into one where it is asked to", arguments: [false, true])
    func searching(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        stage.enter(3, "cleo", as: "cleo")
        stage.send(1, "PRIVMSG bob :soup for bob")
        stage.send(3, "PRIVMSG ann :soup for ann")
        stage.send(2, "NOTICE ann :soup is ready")
        stage.send(2, "PRIVMSG cleo :soup for cleo")
        let own = ["ann>bob: soup for bob", "cleo>ann: soup for ann", "bob>ann: soup is ready"]
        #expect(stage.words(1, "SEARCH text=soup") == own)
        #expect(stage.words(1, "SEARCH text=soup;in=bob") == [own[0], own[2]])
        #expect(stage.words(1, "SEARCH text=soup;from=cleo") == [own[1]])
        #expect(stage.words(1, "SEARCH text=soup;in=nobody") == [])
        #expect(stage.words(1, "SEARCH text=bread") == [])
        stage.enter(4, "guest")
        #expect(stage.words(4, "SEARCH text=soup") == [] && stage.words(4, "SEARCH text=soup;in=ann") == [])
    }

    // MARK: - Targets

    @Test("TARGETS lists rooms and people in one order")
    func targetsInOrder() throws {
        let stage = try PrivateStage(true)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        stage.enter(3, "cleo", as: "cleo")
        stage.send(1, "JOIN #lobby")
        stage.send(1, "PRIVMSG bob :one")
        stage.harness.advance(by: .milliseconds(500))
        stage.harness.sendFrame(
            0,
            #"{"kind":"message","id":"x","at":\#(stage.harness.clock.now.wall.milliseconds),"sender":{"id":"l","name":"linguini"},"text":"two"}"#
        )
        stage.harness.advance(by: .milliseconds(500))
        stage.send(3, "PRIVMSG ann :three")
        #expect(stage.targets(1) == ["bob", "#lobby", "cleo"])
        let lines = stage.send(
            1, "CHATHISTORY TARGETS timestamp=2262-01-01T00:00:00.000Z timestamp=1970-01-01T00:00:00.000Z 1")
        #expect(lines.contains { $0.contains("TARGETS cleo ") } && lines.count == 3)
    }

    // MARK: - Over a restart

    @Test("the next process goes on: the same lines, the same names, and places that follow")
    func restarted() throws {
        let stage = try PrivateStage(true)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bobby", as: "bob")
        stage.send(1, "PRIVMSG bobby :one")
        stage.send(2, "@+draft/react=x;+reply=abc TAGMSG ann")
        stage.send(2, "PRIVMSG ann :two")
        let before = stage.page(1, "CHATHISTORY LATEST bobby * 9")
        #expect(before.count == 3)
        stage.restart()
        stage.enter(1, "ann", as: "ann")
        #expect(stage.targets(1) == ["bobby"])
        #expect(stage.page(1, "CHATHISTORY LATEST bobby * 9") == before)
        stage.enter(2, "bob", as: "bob")
        stage.send(2, "PRIVMSG ann :three")
        #expect(stage.page(1, "CHATHISTORY LATEST bobby * 9").prefix(3) == before[...])
        #expect(stage.latest(1, "bob").last == "bob>ann: three" && stage.latest(1, "bob").count == 4)
        let rows = stage.harness.store.disk.rooms[.conversation("ann", "bob")]?.messages ?? []
        #expect(rows.map(\.sequence) == [0, 1, 2, 3])
        #expect(Set(rows.map(\.msgid)).count == 4)
    }

    @Test("where all that was said is too old the next process begins anew")
    func aged() throws {
        let stage = try PrivateStage(true)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        stage.send(1, "PRIVMSG bob :old")
        stage.send(1, "@+draft/react=x;+reply=abc TAGMSG bob")
        stage.harness.store.removeOldest(1, of: .conversation("ann", "bob"))
        stage.restart()
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        #expect(stage.targets(1) == [] && stage.latest(1, "bob") == [])
        stage.send(1, "PRIVMSG bob :new")
        #expect(stage.latest(2, "ann") == ["ann>bob: new"] && stage.targets(2) == ["ann"])
        #expect(stage.harness.store.disk.rooms[.conversation("ann", "bob")]?.messages.count == 1)
    }

    @Test("in memory it is gone with the process")
    func forgotten() throws {
        let stage = try PrivateStage(false)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        stage.send(1, "PRIVMSG bob :one")
        stage.restart()
        stage.enter(1, "ann", as: "ann")
        #expect(stage.latest(1, "bob") == [] && stage.targets(1) == [])
    }

    @Test("a disk that cannot be read refuses the page, and says so")
    func unreadable() throws {
        let stage = try PrivateStage(true)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        stage.send(1, "PRIVMSG bob :one")
        stage.harness.store.readFailure = StoreFailure("the disk is gone")
        #expect(
            stage.answer(1, "CHATHISTORY LATEST bob * 9") == [
                ":bridge FAIL CHATHISTORY MESSAGE_ERROR LATEST bob :Messages could not be retrieved"
            ])
    }
}
