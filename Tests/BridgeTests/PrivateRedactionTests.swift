import BridgeTestSupport
import ChatModel
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Taking back what was said in private")
struct PrivateRedactionTests {
    private static let caps = PrivateStage.caps + " draft/message-redaction"
    private static let unknown = "No such message, or it is too old"

    private func stage(_ isDurable: Bool) throws -> PrivateStage {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann", caps: Self.caps)
        stage.enter(2, "bob", as: "bob", caps: Self.caps)
        return stage
    }

    /// Says something and gives the id that the other was told it with.
    private func say(_ stage: PrivateStage, _ client: UInt64, _ line: String) throws -> String {
        try #require(stage.send(client, line).compactMap { HistoryStage.tag("msgid", $0) }.first)
    }

    /// Without what tags and the times of a test say.
    /// So much else was said that nothing from before is remembered.
    private func pushOutRecent(_ stage: PrivateStage) {
        let nobody = PrivateMessage.Party(person: nil, account: nil)
        for number in 0..<RecentPrivateMessages.capacity {
            stage.harness.bridge.irc.privateMessages.remember(
                PrivateMessage(
                    msgid: "other\(number)", author: nobody, reader: nobody, readerNick: "nobody",
                    at: ChatTimestamp(milliseconds: 0), pair: nil))
        }
    }

    private func plain(_ lines: [String]) -> [String] {
        lines.map { $0.hasPrefix("@") ? String($0.drop { $0 != " " }.dropFirst()) : $0 }
    }

    private func refusal(_ code: String, _ nick: String, _ msgid: String, _ text: String) -> [String] {
        [":bridge FAIL REDACT \(code) \(nick) \(msgid) :\(text)"]
    }

    // MARK: - Both sides

    @Test("both are told, its words are gone for both, and its place stays", arguments: [false, true])
    func bothSides(isDurable: Bool) throws {
        let stage = try stage(isDurable)
        let first = try say(stage, 1, "PRIVMSG bob :one")
        let msgid = try say(stage, 1, "PRIVMSG bob :a mistake")
        stage.send(2, "PRIVMSG ann :three")
        stage.harness.advance(by: .seconds(4))
        let own = stage.send(1, "REDACT bob \(msgid) :wrong window")
        let other = stage.heard(2)
        #expect(plain(own) == [":ann!~u@bridge REDACT bob \(msgid) :wrong window"])
        #expect(plain(other) == plain(own))
        // It has an id, a time and an account of its own, the same for both.
        #expect(own == other)
        let tags = try #require(own.first?.split(separator: " ").first)
        #expect(tags.wholeMatch(of: #/@time=2026[^;]+;msgid=[^;]+;account=ann/#) != nil, "\(tags)")
        #expect(HistoryStage.tag("msgid", own.first ?? "") != msgid)
        for client in [1, 2] as [UInt64] {
            let partner = client == 1 ? "bob" : "ann"
            let page = stage.page(client, "CHATHISTORY LATEST \(partner) * 9")
            #expect(
                plain(page) == [
                    ":ann!~u@bridge PRIVMSG bob :one", ":ann!~u@bridge REDACT bob \(msgid)",
                    ":bob!~u@bridge PRIVMSG ann :three",
                ])
            // Places are found by it all the same.
            #expect(plain(stage.page(client, "CHATHISTORY BEFORE \(partner) msgid=\(msgid) 9")).count == 1)
            #expect(plain(stage.page(client, "CHATHISTORY AFTER \(partner) msgid=\(msgid) 9")).count == 1)
            #expect(stage.words(client, "SEARCH text=mistake") == [])
            #expect(stage.words(client, "SEARCH text=one").count == 1)
        }
        // Once: the second time it is no message any more, whoever asks.
        #expect(plain(stage.send(1, "REDACT bob \(msgid)")) == refusal("UNKNOWN_MSGID", "bob", msgid, Self.unknown))
        #expect(stage.heard(2) == [])
        #expect(plain(stage.send(1, "REDACT bob \(first)")) == [":ann!~u@bridge REDACT bob \(first)"])
        #expect(stage.harness.violations == [])
    }

    @Test("who plays no events is shown a page without it, which is full all the same", arguments: [false, true])
    func withoutEvents(isDurable: Bool) throws {
        let stage = try stage(isDurable)
        stage.enter(3, "bob", as: "bob", caps: HistoryStage.caps)
        for text in ["one", "two"] { stage.send(1, "PRIVMSG bob :" + text) }
        let msgid = try say(stage, 1, "PRIVMSG bob :a mistake")
        stage.send(1, "REDACT bob \(msgid)")
        #expect(stage.words(3, "CHATHISTORY LATEST ann * 2") == ["ann>bob: one", "ann>bob: two"])
        #expect(stage.targets(3) == ["ann"])
    }

    @Test("what was told of it comes from who it came from, and to the nick of now", arguments: [false, true])
    func replayedNames(isDurable: Bool) throws {
        let stage = try stage(isDurable)
        let msgid = try say(stage, 1, "PRIVMSG bob :a mistake")
        stage.send(1, "REDACT bob \(msgid)")
        stage.send(1, "NICK anna")
        stage.send(2, "NICK robert")
        #expect(
            plain(stage.page(1, "CHATHISTORY LATEST robert * 9")) == [":anna!~u@bridge REDACT robert \(msgid)"])
        #expect(plain(stage.page(2, "CHATHISTORY LATEST anna * 9")) == [":ann!~u@bridge REDACT robert \(msgid)"])
    }

    // MARK: - Refusals

    struct Refusal: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// 1 is ann, who said it to bob; 2 is bob, 3 cleo, and 4 has no account.
        var client: UInt64
        var line: String
        var answer: String
    }

    static let refusals: [Refusal] = [
        Refusal(
            testDescription: "who was told it", client: 2, line: "REDACT ann {m}",
            answer: "REDACT_FORBIDDEN ann {m} :Only your own messages can be taken back"),
        Refusal(
            testDescription: "who was told it, by their own nick", client: 2, line: "REDACT bob {m}",
            answer: "REDACT_FORBIDDEN bob {m} :Only your own messages can be taken back"),
        Refusal(
            testDescription: "a stranger learns nothing", client: 3, line: "REDACT bob {m}",
            answer: "UNKNOWN_MSGID bob {m} :No such message, or it is too old"),
        Refusal(
            testDescription: "a stranger without an account", client: 4, line: "REDACT ann {m}",
            answer: "UNKNOWN_MSGID ann {m} :No such message, or it is too old"),
        Refusal(
            testDescription: "in another conversation", client: 1, line: "REDACT cleo {m}",
            answer: "UNKNOWN_MSGID cleo {m} :No such message, or it is too old"),
        Refusal(
            testDescription: "no such message", client: 1, line: "REDACT bob nosuch",
            answer: "UNKNOWN_MSGID bob nosuch :No such message, or it is too old"),
        Refusal(
            testDescription: "no id at all", client: 1, line: "REDACT bob :a b",
            answer: "UNKNOWN_MSGID bob * :No such message, or it is too old"),
        Refusal(
            testDescription: "no conversation", client: 3, line: "REDACT bob nosuch",
            answer: "UNKNOWN_MSGID bob nosuch :No such message, or it is too old"),
        Refusal(
            testDescription: "nobody of that name", client: 1, line: "REDACT nobody nosuch",
            answer: "INVALID_TARGET nobody :There is nobody of that name whom you told anything"),
        Refusal(
            testDescription: "nobody of that name, and a message to somebody else", client: 1,
            line: "REDACT nobody {m}",
            answer: "INVALID_TARGET nobody :There is nobody of that name whom you told anything"),
        Refusal(
            testDescription: "the service, and a message to somebody else", client: 1, line: "REDACT *bridge {m}",
            answer: "REDACT_FORBIDDEN *bridge {m} :What *bridge was told is done already"),
        Refusal(
            testDescription: "the service", client: 1, line: "REDACT *bridge nosuch",
            answer: "REDACT_FORBIDDEN *bridge nosuch :What *bridge was told is done already"),
        Refusal(
            testDescription: "somebody upstream", client: 1, line: "REDACT Remy nosuch",
            answer: "REDACT_FORBIDDEN Remy nosuch "
                + ":This is a user of the chat backend (b), which takes no private messages from here"),
        Refusal(
            testDescription: "a room that one is not in", client: 1, line: "REDACT #attic {m}",
            answer: "INVALID_TARGET #attic :Messages can be taken back only in a room that you are in"),
        Refusal(
            testDescription: "a room, with the id of what was said in private", client: 1, line: "REDACT #lobby {m}",
            answer: "UNKNOWN_MSGID #lobby {m} :No such message, or it is too old"),
        Refusal(
            testDescription: "a reaction", client: 1, line: "REDACT bob {r}",
            answer: "UNKNOWN_MSGID bob {r} :No such message, or it is too old"),
    ]

    @Test("a refusal says why, to who asks and nobody else", arguments: refusals, [false, true])
    func refused(_ row: Refusal, isDurable: Bool) throws {
        let stage = try stage(isDurable)
        stage.enter(3, "cleo", as: "cleo", caps: Self.caps)
        stage.enter(4, "guest", caps: Self.caps)
        stage.send(1, "JOIN #lobby")
        stage.harness.sendFrame(
            0, #"{"kind":"message","id":"x","at":1,"sender":{"id":"r","name":"Remy"},"text":"the soup is ready"}"#)
        let msgid = try say(stage, 1, "PRIVMSG bob :one")
        let reaction = try say(stage, 1, "@+draft/react=x;+reply=\(msgid) TAGMSG bob")
        stage.send(1, "PRIVMSG cleo :other")
        func fill(_ text: String) -> String { text.replacing("{m}", with: msgid).replacing("{r}", with: reaction) }
        let answer = plain(stage.send(row.client, fill(row.line)))
        #expect(answer == [":bridge FAIL REDACT " + fill(row.answer)])
        for other in [1, 2, 3, 4] as [UInt64] where other != row.client { #expect(stage.heard(other) == []) }
        #expect(stage.latest(2, "ann").first == "ann>bob: one")
    }

    // MARK: - Who is told, and how

    struct Form: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var caps: String
        var line: String
        var answer: [String]
    }

    enum Place: CaseIterable {
        case remembered
        case onDisk
        case rememberedInMemory
        case inMemory
    }

    static let forms: [Form] = [
        Form(
            testDescription: "with all of it, the echo is the answer", caps: caps,
            line: "@label=7 REDACT bob {m} :why so",
            answer: ["label=7 :ann!~u@bridge REDACT bob {m} :why so"]),
        Form(
            testDescription: "without a label", caps: caps, line: "REDACT bob {m}",
            answer: [":ann!~u@bridge REDACT bob {m}"]),
        Form(
            testDescription: "without echo-message it is acknowledged",
            caps: caps.replacing(" echo-message", with: ""), line: "@label=7 REDACT bob {m}",
            answer: ["label=7 :bridge ACK"]),
        Form(
            testDescription: "without the capability too", caps: PrivateStage.caps, line: "@label=7 REDACT bob {m}",
            answer: ["label=7 :bridge ACK"]),
        Form(testDescription: "without anything nothing comes back", caps: "", line: "REDACT bob {m}", answer: []),
    ]

    /// The lines with no tag but a label.
    private func labeled(_ lines: [String]) -> [String] {
        lines.map { line in
            let label = HistoryStage.tag("label", line).map { "label=\($0) " } ?? ""
            return label + plain([line])[0]
        }
    }

    @Test(
        "the answer takes the form that the client knows, of what is remembered and of what is looked up",
        arguments: forms, Place.allCases)
    func answers(_ form: Form, _ place: Place) throws {
        let stage = try PrivateStage(place == .remembered || place == .onDisk)
        stage.enter(1, "ann", as: "ann", caps: form.caps)
        stage.enter(2, "bob", as: "bob", caps: Self.caps)
        stage.send(1, "PRIVMSG bob :one")
        let msgid = try #require(
            stage.page(2, "CHATHISTORY LATEST ann * 1").first.flatMap { HistoryStage.tag("msgid", $0) })
        if place != .remembered && place != .rememberedInMemory {
            pushOutRecent(stage)
        }
        let answer = stage.send(1, form.line.replacing("{m}", with: msgid))
        #expect(labeled(answer) == form.answer.map { $0.replacing("{m}", with: msgid) })
        let told = plain(stage.heard(2))
        #expect(told.count == 1 && told.first?.hasPrefix(":ann!~u@bridge REDACT bob \(msgid)") == true)
        #expect(stage.latest(2, "ann").filter { $0.contains("one") } == [])
        // The client's next line is answered as ever.
        #expect(stage.send(1, "PING x").count == 1)
        #expect(stage.harness.violations == [])
    }

    @Test("every client of both hears it, in words where it knows no other way", arguments: [false, true])
    func manyClients(isDurable: Bool) throws {
        let stage = try stage(isDurable)
        stage.enter(3, "ann", as: "ann", caps: Self.caps)
        stage.enter(4, "ann", as: "ann", caps: "echo-message")
        stage.enter(5, "ann", as: "ann", caps: "")
        stage.enter(6, "bob", as: "bob", caps: "")
        stage.enter(7, "cleo", as: "cleo", caps: Self.caps)
        let msgid = try say(stage, 1, "PRIVMSG bob :one")
        stage.harness.advance(by: .seconds(179))
        let own = plain(stage.send(1, "REDACT bob \(msgid) :not this"))
        #expect(own == [":ann!~u@bridge REDACT bob \(msgid) :not this"])
        for client in [2, 3] as [UInt64] { #expect(plain(stage.heard(client)) == own) }
        #expect(
            stage.heard(4) == [":bridge NOTICE ann :*** ann took back a message to bob from 3 min ago: not this"])
        // It was shown nothing of what another client said.
        #expect(stage.heard(5) == [])
        #expect(stage.heard(6) == [":bridge NOTICE bob :*** ann took back a message from 3 min ago: not this"])
        #expect(stage.heard(7) == [])
        // Any client of the account may.
        let second = try say(stage, 1, "PRIVMSG bob :two")
        #expect(plain(stage.send(3, "REDACT bob \(second)")) == [":ann!~u@bridge REDACT bob \(second)"])
        for client in [1, 2] as [UInt64] {
            #expect(plain(stage.heard(client)) == [":ann!~u@bridge REDACT bob \(second)"])
        }
        #expect(stage.heard(6) == [":bridge NOTICE bob :*** ann took back a message from 1 s ago."])
    }

    @Test("clearing out a conversation is a few words, not a flood, and then a few again", arguments: [false, true])
    func mass(isDurable: Bool) throws {
        let stage = try stage(isDurable)
        stage.enter(3, "bob", as: "bob", caps: "")
        let ids = try (0..<20).map { try say(stage, 1, "PRIVMSG bob :m\($0)") }
        _ = (stage.heard(2), stage.heard(3))
        for msgid in ids.dropLast() { stage.harness.send(1, "REDACT bob \(msgid)") }
        #expect(stage.heard(2).count == 19)
        let words = stage.heard(3)
        #expect(
            words.count == 5 && words.allSatisfy { $0.hasPrefix(":bridge NOTICE bob :*** ann took back ") }, "\(words)")
        stage.harness.advance(by: .seconds(5))
        stage.send(1, "REDACT bob \(ids[19])")
        #expect(stage.heard(3).count == 1)
    }

    @Test("a PONG says that what was taken back is gone from the disk too")
    func acknowledged() throws {
        let stage = try stage(true)
        let msgid = try say(stage, 1, "PRIVMSG bob :one")
        stage.harness.store.commits = false
        #expect(stage.send(1, "REDACT bob \(msgid)").count == 1)
        #expect(stage.send(1, "PING x") == [])
        stage.harness.store.commits = true
        #expect(stage.send(2, "PING y").count == 1)
        #expect(plain(stage.heard(1)) == [":bridge PONG bridge x"])
        #expect(stage.harness.store.disk.rooms[.conversation("ann", "bob")]?.messages.map(\.text) == [""])
    }

    @Test("what one said to oneself is taken back once for each client", arguments: [false, true])
    func oneself(isDurable: Bool) throws {
        let stage = try stage(isDurable)
        stage.enter(3, "ann", as: "ann", caps: Self.caps)
        stage.enter(4, "ann", as: "ann", caps: "message-tags labeled-response batch draft/message-redaction")
        let msgid = try say(stage, 1, "PRIVMSG ann :to do")
        let wanted = ":ann!~u@bridge REDACT ann \(msgid)"
        #expect(labeled(stage.send(1, "@label=1 REDACT ann \(msgid)")) == ["label=1 " + wanted])
        #expect(plain(stage.heard(3)) == [wanted] && plain(stage.heard(4)) == [wanted])
        #expect(stage.words(1, "CHATHISTORY LATEST ann * 9").count == 1 && stage.words(1, "SEARCH text=do") == [])
        // Without echo-message it is told as who it was said to.
        let second = try say(stage, 1, "PRIVMSG ann :to do too")
        #expect(
            labeled(stage.send(4, "@label=2 REDACT ann \(second)")) == [
                ":ann!~u@bridge REDACT ann \(second)", "label=2 :bridge ACK",
            ])
    }

    @Test(
        "who has muted the author hears no words of it, and what they have on their screen goes",
        arguments: [false, true])
    func muted(isDurable: Bool) throws {
        let stage = try stage(isDurable)
        stage.enter(3, "bob", as: "bob", caps: "")
        let msgid = try say(stage, 1, "PRIVMSG bob :one")
        stage.send(2, "PRIVMSG *bridge :mute ann")
        stage.send(1, "REDACT bob \(msgid) :words all the same")
        #expect(plain(stage.heard(2)) == [":ann!~u@bridge REDACT bob \(msgid)"])
        #expect(stage.heard(3) == [])
        // Whom one has muted oneself one may take back from.
        let own = try say(stage, 2, "PRIVMSG ann :two")
        #expect(plain(stage.send(2, "REDACT ann \(own)")) == [":bob!~u@bridge REDACT ann \(own)"])
    }

    // MARK: - Visitors

    @Test(
        "who has no account takes back theirs while they are here, and nobody of the same nick does",
        arguments: [false, true])
    func visitors(isDurable: Bool) throws {
        let stage = try stage(isDurable)
        stage.enter(3, "guest", caps: Self.caps)
        stage.enter(4, "other", caps: Self.caps)
        for (client, nick) in [(1, "ann"), (4, "other")] as [(UInt64, String)] {
            let msgid = try say(stage, 3, "PRIVMSG \(nick) :a mistake")
            #expect(
                plain(stage.send(client, "REDACT guest \(msgid)"))
                    == refusal("REDACT_FORBIDDEN", "guest", msgid, "Only your own messages can be taken back"))
            #expect(plain(stage.send(3, "REDACT \(nick) \(msgid)")) == [":guest!~u@bridge REDACT \(nick) \(msgid)"])
            #expect(plain(stage.heard(client)) == [":guest!~u@bridge REDACT \(nick) \(msgid)"])
        }
        #expect(stage.words(1, "SEARCH text=mistake") == [])
        let toVisitor = try say(stage, 1, "PRIVMSG guest :for the first guest")
        let byVisitor = try say(stage, 3, "PRIVMSG ann :by the first guest")
        stage.harness.disconnect(3)
        stage.enter(3, "guest", caps: Self.caps)
        #expect(
            plain(stage.send(3, "REDACT ann \(byVisitor)")) == refusal("UNKNOWN_MSGID", "ann", byVisitor, Self.unknown))
        #expect(stage.latest(1, "guest").count == 3)
        // And hears nothing of what the first one was told.
        #expect(plain(stage.send(1, "REDACT guest \(toVisitor)")) == [":ann!~u@bridge REDACT guest \(toVisitor)"])
        #expect(stage.heard(3) == [])
    }

    @Test("what was said before a login is still one's own, and after a logout nothing is", arguments: [false, true])
    func logins(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann", caps: Self.caps)
        stage.enter(2, "robert", caps: Self.caps)
        let first = try say(stage, 2, "PRIVMSG ann :as a guest")
        let told = try say(stage, 1, "PRIVMSG robert :to a guest")
        stage.send(2, "PRIVMSG *bridge :login bob pw")
        #expect(plain(stage.send(2, "REDACT ann \(first)")) == [":robert!~u@bridge REDACT ann \(first)"])
        stage.send(1, "REDACT robert \(told)")
        #expect(plain(stage.heard(2)) == [":ann!~u@bridge REDACT robert \(told)"])
        let asBob = try say(stage, 2, "PRIVMSG ann :as bob")
        stage.send(2, "PRIVMSG *bridge :logout")
        #expect(plain(stage.send(2, "REDACT ann \(asBob)")) == refusal("UNKNOWN_MSGID", "ann", asBob, Self.unknown))
        #expect(stage.words(1, "SEARCH text=as") == ["robert>ann: as bob"])
        // Another client of the account, which was not there, may.
        stage.enter(3, "bob", as: "bob", caps: Self.caps)
        #expect(plain(stage.send(3, "REDACT ann \(asBob)")).count == 1)
        #expect(stage.words(1, "SEARCH text=as") == [])
    }

    // MARK: - Nicks

    @Test("the nick of then and that of now lead to it", arguments: [false, true], ["bob", "robert", "BOB", "Robert"])
    func newNick(isDurable: Bool, nick: String) throws {
        let stage = try stage(isDurable)
        let msgid = try say(stage, 1, "PRIVMSG bob :one")
        stage.send(2, "NICK robert")
        // To the client the other is called as it calls them; the other has one nick.
        let shown = nick.lowercased() == "robert" ? "robert" : nick
        #expect(plain(stage.send(1, "REDACT \(nick) \(msgid)")) == [":ann!~u@bridge REDACT \(shown) \(msgid)"])
        #expect(plain(stage.heard(2)) == [":ann!~u@bridge REDACT robert \(msgid)"])
    }

    @Test("who took the other's nick since is told nothing", arguments: [false, true])
    func takenNick(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann", caps: Self.caps)
        stage.enter(2, "guest", caps: Self.caps)
        let msgid = try say(stage, 1, "PRIVMSG guest :one")
        stage.send(2, "NICK visitor")
        stage.enter(3, "guest", caps: Self.caps)
        #expect(plain(stage.send(1, "REDACT guest \(msgid)")) == [":ann!~u@bridge REDACT guest \(msgid)"])
        #expect(plain(stage.heard(2)) == [":ann!~u@bridge REDACT visitor \(msgid)"])
        #expect(stage.heard(3) == [])
        #expect(stage.words(1, "SEARCH text=one") == [])
    }

    @Test(
        "what was said to somebody who is gone is taken back, and they never read it again", arguments: [false, true])
    func gone(isDurable: Bool) throws {
        let stage = try stage(isDurable)
        stage.enter(3, "guest", caps: Self.caps)
        let msgid = try say(stage, 1, "PRIVMSG bob :one")
        let toGuest = try say(stage, 1, "PRIVMSG guest :two")
        stage.harness.disconnect(2)
        stage.harness.disconnect(3)
        #expect(plain(stage.send(1, "REDACT bob \(msgid)")) == [":ann!~u@bridge REDACT bob \(msgid)"])
        #expect(plain(stage.send(1, "REDACT guest \(toGuest)")) == [":ann!~u@bridge REDACT guest \(toGuest)"])
        stage.enter(2, "bob", as: "bob", caps: Self.caps)
        #expect(plain(stage.page(2, "CHATHISTORY LATEST ann * 9")) == [":ann!~u@bridge REDACT bob \(msgid)"])
        // And who came again before it was taken back is told.
        let second = try say(stage, 1, "PRIVMSG bob :three")
        stage.harness.disconnect(2)
        stage.enter(4, "rob", as: "bob", caps: Self.caps)
        stage.send(1, "REDACT bob \(second)")
        #expect(plain(stage.heard(4)) == [":ann!~u@bridge REDACT rob \(second)"])
    }

    // MARK: - Forms

    struct Said: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var lines: [String]
    }

    static let said: [Said] = [
        Said(testDescription: "a notice", lines: ["NOTICE bob :mistake"]),
        Said(testDescription: "an action", lines: ["PRIVMSG bob :\u{1}ACTION mistake\u{1}"]),
        Said(testDescription: "a long one", lines: ["PRIVMSG bob :mistake " + String(repeating: "x", count: 460)]),
        Said(
            testDescription: "several lines",
            lines: [
                "BATCH +1 draft/multiline bob", "@batch=1 PRIVMSG bob :mistake", "@batch=1 PRIVMSG bob :two",
                "BATCH -1",
            ]),
    ]

    @Test("each form of message goes as a whole", arguments: said, [false, true])
    func eachForm(_ form: Said, isDurable: Bool) throws {
        let stage = try stage(isDurable)
        stage.enter(3, "bob", as: "bob", caps: "")
        var told: [String] = []
        for line in form.lines { told += stage.send(1, line) }
        let ids = Set(told.compactMap { HistoryStage.tag("msgid", $0) })
        let msgid = try #require(ids.first)
        #expect(ids.count == 1)
        #expect(plain(stage.send(1, "REDACT bob \(msgid)")) == [":ann!~u@bridge REDACT bob \(msgid)"])
        #expect(plain(stage.heard(2)).count == 1 && stage.heard(3).count == 1)
        #expect(plain(stage.page(2, "CHATHISTORY LATEST ann * 9")) == [":ann!~u@bridge REDACT bob \(msgid)"])
        #expect(stage.words(2, "SEARCH text=mistake") == [])
    }

    @Test("of a line to two people each has their own, and one can be taken back", arguments: [false, true])
    func twoTargets(isDurable: Bool) throws {
        let stage = try stage(isDurable)
        stage.enter(3, "cleo", as: "cleo", caps: Self.caps)
        let ids = stage.send(1, "PRIVMSG bob,cleo :one").compactMap { HistoryStage.tag("msgid", $0) }
        #expect(Set(ids).count == 2)
        stage.send(1, "REDACT cleo \(ids[1])")
        #expect(stage.heard(2) == [])
        #expect(stage.latest(2, "ann") == ["ann>bob: one"])
        #expect(stage.words(3, "SEARCH text=one") == [])
    }

    // MARK: - Reactions

    @Test("with a message goes what was done to it, and nothing can be done to it later", arguments: [false, true])
    func reactions(isDurable: Bool) throws {
        let stage = try stage(isDurable)
        let msgid = try say(stage, 1, "PRIVMSG bob :one")
        let other = try say(stage, 1, "PRIVMSG bob :two")
        stage.send(2, "@+draft/react=x;+reply=\(msgid) TAGMSG ann")
        stage.send(2, "@+draft/react=y;+reply=\(other) TAGMSG ann")
        stage.send(1, "REDACT bob \(msgid)")
        func lines() -> [String] { plain(stage.page(1, "CHATHISTORY LATEST bob * 9")) }
        let left = [
            ":ann!~u@bridge REDACT bob \(msgid)", ":ann!~u@bridge PRIVMSG bob :two", ":bob!~u@bridge TAGMSG ann",
        ]
        #expect(lines() == left)
        for tag in ["react", "unreact"] {
            let answer = labeled(stage.send(2, "@label=1;+draft/\(tag)=x;+reply=\(msgid) TAGMSG ann"))
            #expect(answer == ["label=1 :bridge FAIL TAGMSG UNKNOWN_MSGID ann \(msgid) :\(Self.unknown)"])
            #expect(stage.heard(1) == [])
        }
        #expect(lines() == left)
        // Typing and answers are about no message that is to be shown again.
        #expect(stage.send(2, "@+typing=active;+reply=\(msgid) TAGMSG ann").count == 1)
        #expect(stage.send(2, "@+reply=\(msgid) PRIVMSG ann :never mind").count == 1)
    }

    // MARK: - Looked up

    @Test("the next process takes back what the last one kept, for both sides, and places go on")
    func restarted() throws {
        let stage = try stage(true)
        let first = try say(stage, 1, "PRIVMSG bob :one")
        let second = try say(stage, 2, "PRIVMSG ann :two")
        stage.enter(3, "guest", caps: Self.caps)
        let byGuest = try say(stage, 3, "PRIVMSG ann :by a guest")
        let toGuest = try say(stage, 1, "PRIVMSG guest :to a guest")
        let reaction = try say(stage, 1, "@+draft/react=x;+reply=\(second) TAGMSG bob")
        stage.send(1, "REDACT bob \(first)")
        stage.restart()
        stage.enter(1, "ann", as: "ann", caps: Self.caps)
        stage.enter(2, "bobby", as: "bob", caps: Self.caps)
        stage.enter(3, "guest", caps: Self.caps)
        #expect(
            plain(stage.page(1, "CHATHISTORY LATEST bobby * 9")) == [
                ":ann!~u@bridge REDACT bobby \(first)", ":bob!~u@bridge PRIVMSG ann :two",
                ":ann!~u@bridge TAGMSG bobby",
            ])
        for (client, line, code, text) in [
            (1, "bobby \(first)", "UNKNOWN_MSGID", Self.unknown),
            (1, "bobby \(reaction)", "UNKNOWN_MSGID", Self.unknown),
            (1, "bobby \(second)", "REDACT_FORBIDDEN", "Only your own messages can be taken back"),
            (1, "guest \(byGuest)", "REDACT_FORBIDDEN", "Only your own messages can be taken back"),
            (1, "guest \(second)", "UNKNOWN_MSGID", Self.unknown), (3, "ann \(byGuest)", "UNKNOWN_MSGID", Self.unknown),
            (2, "ann nosuch", "UNKNOWN_MSGID", Self.unknown),
        ] as [(UInt64, String, String, String)] {
            #expect(plain(stage.send(client, "REDACT " + line)) == [":bridge FAIL REDACT \(code) \(line) :\(text)"])
        }
        // The account's own name leads there too, though it is no nick of anybody now.
        #expect(
            plain(stage.send(2, "REDACT ann \(second) :too late")) == [
                ":bobby!~u@bridge REDACT ann \(second) :too late"
            ])
        #expect(plain(stage.heard(1)) == [":bobby!~u@bridge REDACT ann \(second) :too late"])
        // Whether the visitor of that nick was told it nobody knows.
        #expect(plain(stage.send(1, "REDACT guest \(toGuest)")) == [":ann!~u@bridge REDACT guest \(toGuest)"])
        #expect(stage.heard(3) == [])
        stage.send(1, "PRIVMSG bob :no such nick now")
        stage.send(1, "PRIVMSG bobby :three")
        let rows = stage.harness.store.disk.rooms[.conversation("ann", "bob")]?.messages ?? []
        #expect(rows.map(\.text) == ["", "", "", "three"] && rows.map(\.sequence) == [0, 1, 2, 3])
        #expect(
            plain(stage.page(1, "CHATHISTORY LATEST guest * 9")) == [
                ":guest!~u@bridge PRIVMSG ann :by a guest", ":ann!~u@bridge REDACT guest \(toGuest)",
            ])
        #expect(stage.harness.violations == [])
    }

    @Test("a name of the other that nobody has as a nick leads to it too", arguments: [false, true])
    func byAccountName(isDurable: Bool) throws {
        let stage = try PrivateStage(isDurable)
        stage.enter(1, "ann", as: "ann", caps: Self.caps)
        stage.enter(2, "bobby", as: "bob", caps: Self.caps)
        for isOld in [false, true] {
            let msgid = try say(stage, 1, "PRIVMSG bobby :one")
            if isOld { pushOutRecent(stage) }
            #expect(plain(stage.send(1, "REDACT bob \(msgid)")) == [":ann!~u@bridge REDACT bob \(msgid)"])
            #expect(plain(stage.heard(2)) == [":ann!~u@bridge REDACT bobby \(msgid)"])
        }
    }

    @Test("while it is looked up the client's later lines wait, nobody else's do, and it happens once")
    func waiting() throws {
        let stage = try stage(true)
        stage.enter(3, "ann", as: "ann", caps: Self.caps)
        let msgid = try say(stage, 1, "PRIVMSG bob :one")
        pushOutRecent(stage)
        stage.harness.store.answersQuestions = false
        #expect(stage.send(1, "@label=1 REDACT bob \(msgid)") == [])
        #expect(stage.send(1, "@label=2 PING x") == [])
        #expect(stage.send(3, "REDACT bob \(msgid)") == [])
        #expect(stage.send(2, "PING y").count == 1)
        stage.harness.store.answersQuestions = true
        let answers = labeled(stage.send(2, "PING z") + stage.heard(1))
        #expect(
            answers == [
                ":bridge PONG bridge z", ":ann!~u@bridge REDACT bob \(msgid)",
                "label=1 :ann!~u@bridge REDACT bob \(msgid)", "label=2 :bridge PONG bridge x",
            ])
        #expect(
            labeled(stage.heard(3)) == [":ann!~u@bridge REDACT bob \(msgid)"]
                + refusal("UNKNOWN_MSGID", "bob", msgid, Self.unknown))
        #expect(stage.harness.violations == [])
    }

    @Test("a disk that fails, or does not answer, refuses, and the message stays", arguments: [false, true])
    func failing(isSilent: Bool) throws {
        let stage = try stage(true)
        let msgid = try say(stage, 1, "PRIVMSG bob :one")
        pushOutRecent(stage)
        if isSilent {
            stage.harness.store.answersQuestions = false
        } else {
            stage.harness.store.readFailure = StoreFailure("the disk is gone")
        }
        var answer = stage.send(1, "@label=1 REDACT bob \(msgid)")
        if isSilent {
            #expect(answer == [])
            stage.harness.advance(by: .seconds(11))
            answer = stage.heard(1)
        }
        #expect(
            labeled(answer) == [
                "label=1 :bridge FAIL REDACT CANNOT_DELIVER bob \(msgid) "
                    + ":Not taken back, what was said cannot be read at the moment; try again"
            ])
        stage.harness.store.readFailure = nil
        stage.harness.store.answersQuestions = true
        #expect(stage.heard(2) == [])
        #expect(stage.latest(2, "ann") == ["ann>bob: one"])
        #expect(plain(stage.send(1, "REDACT bob \(msgid)")) == [":ann!~u@bridge REDACT bob \(msgid)"])
        #expect(stage.harness.violations == [])
    }

    @Test("who leaves while it is looked up leaves no trace of it")
    func leaving() throws {
        let stage = try stage(true)
        let msgid = try say(stage, 1, "PRIVMSG bob :one")
        pushOutRecent(stage)
        stage.harness.store.answersQuestions = false
        stage.send(1, "REDACT bob \(msgid)")
        stage.harness.disconnect(1)
        stage.harness.store.answersQuestions = true
        #expect(stage.send(2, "PING x").count == 1)
        #expect(stage.harness.bridge.irc.storeQuestions.isEmpty)
        #expect(stage.latest(2, "ann") == ["ann>bob: one"])
    }

    // MARK: - What is remembered

    @Test("so many of the last are remembered, and what is taken back stays known as that")
    func bounded() {
        func message(_ number: Int) -> PrivateMessage {
            PrivateMessage(
                msgid: "m\(number)", author: PrivateMessage.Party(), reader: PrivateMessage.Party(), readerNick: "bob",
                at: ChatTimestamp(milliseconds: 0))
        }
        var recent = RecentPrivateMessages()
        let count = RecentPrivateMessages.capacity
        for number in 0..<(count + 10) { recent.append(message(number)) }
        #expect(recent["m9"] == nil && recent["m10"]?.isTakenBack == false)
        recent.takeBack(message(10))
        recent.takeBack(message(5))
        #expect(recent["m5"]?.isTakenBack == true && recent["m10"] == nil && recent["m11"]?.isTakenBack == false)
        for number in 0..<count { recent.append(message(-1 - number)) }
        #expect(recent["m5"] == nil && recent["m-1"] != nil && recent["m-\(count)"] != nil)
    }
}
