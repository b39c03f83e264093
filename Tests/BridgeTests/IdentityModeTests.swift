import BridgeTestSupport
import ChatModel
import Dialects
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Who speaks upstream")
struct IdentityModeTests {
    private func stage(
        _ dialect: ActionsStubDialect, rooms: [String] = ["lobby"], _ change: (inout RoomSettings) -> Void = { _ in }
    ) throws -> ActionsStage {
        let stage = try ActionsStage(dialect, rooms: rooms, change)
        stage.enter(1, "alice")
        stage.enter(2, "bob")
        return stage
    }

    private static let silent = ActionsStubDialect(identity: .single, idsFrom: .server, confirmation: .none)

    private func texts(_ stage: ActionsStage) -> [String] {
        stage.happened().compactMap { line in
            line.hasPrefix("U0> message") ? line.firstRange(of: "|from=").map { String(line[$0.upperBound...]) } : nil
        }
    }

    // MARK: - Up

    @Test("the one account speaks with a prefix; an action names its author once")
    func prefix() throws {
        let stage = try stage(Self.silent)
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        stage.harness.send(2, "PRIVMSG #lobby :\u{1}ACTION nods\u{1}")
        #expect(
            texts(stage) == [
                "[chatbridge]|name=chatbridge|text=<alice> hello", "[chatbridge]|name=chatbridge|text=* bob nods",
            ])
        stage.backend("message|id=m1|from=s1|name=Remy|text=soup")
        stage.harness.send(2, "@+reply=\(stage.newestMsgid()) PRIVMSG #lobby :\u{1}ACTION nods\u{1}")
        #expect(texts(stage) == ["[chatbridge]|name=chatbridge|text=<bob> <Remy> soup\n* bob nods"])
    }

    @Test("the prefix is a setting, and the account is called what it is called")
    func otherPrefix() throws {
        let stage = try stage(Self.silent) {
            $0.singlePrefix = "{nick}: "
            $0.account = ChatPerson(id: ChatID("7"), name: "relay")
        }
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        #expect(texts(stage) == ["7|name=relay|text=alice: hello"])
        stage.harness.bridge.rooms[0].accountIdentified(
            ChatPerson(id: ChatID("8"), name: "Relay"), stage.harness.bridge.context)
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        #expect(texts(stage) == ["8|name=Relay|text=alice: hello"])
    }

    @Test("where the wire has a place for the name there is no prefix")
    func column() throws {
        var dialect = Self.silent
        dialect.traits.sendsSenderName = true
        let stage = try stage(dialect) { $0.account = ChatPerson(id: ChatID("7"), name: "relay") }
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        #expect(texts(stage) == ["7|name=alice|text=hello"])
    }

    @Test("in a puppet room nothing of this applies")
    func puppet() throws {
        let stage = try stage(ActionsStubDialect(confirmation: .none)) {
            $0.account = ChatPerson(id: ChatID("7"), name: "relay")
        }
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        #expect(texts(stage) == ["[alice]|name=alice|text=hello"])
        stage.backend("message|id=m1|from=7|name=relay|text=I am somebody")
        #expect(stage.happened().contains { $0.hasSuffix(":relay!chat@chat.example PRIVMSG #lobby :I am somebody") })
    }

    // MARK: - Down

    @Test("that the backend repeats what went up is no edit")
    func noEdit() throws {
        let stage = try stage(ActionsStubDialect(identity: .single, confirmation: .none))
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        let id = stage.newestUpstreamID()
        _ = stage.happened()
        stage.backend("edit|id=\(id)|from=[chatbridge]|name=chatbridge|text=<alice> hello")
        #expect(stage.happened() == [])
        stage.backend("edit|id=\(id)|from=[chatbridge]|name=chatbridge|text=<alice> hi")
        #expect(
            stage.happened().last?.hasSuffix(
                ":bridge NOTICE #lobby :*** A message of alice's from 1 s ago was changed by the backend: <alice> hi")
                == true)
    }

    @Test("what the account says at another device is its own, also by name alone")
    func otherDevice() throws {
        let stage = try stage(Self.silent) { $0.account = ChatPerson(name: "relay") }
        stage.backend("message|id=1|name=relay|text=from my phone")
        #expect(
            stage.happened().filter { $0.hasPrefix("C1") }.map { $0.split(separator: ":", maxSplits: 1)[1] } == [
                "relay!chat@chat.example JOIN #lobby",
                "relay!chat@chat.example PRIVMSG #lobby :from my phone",
            ])
        stage.backend("edit|id=1|name=relay|text=from my tablet")
        #expect(stage.happened().last?.hasSuffix(":relay!chat@chat.example PRIVMSG #lobby :* from my tablet") == true)
    }

    @Test("a reply to what an IRC user said before a restart quotes them, and not the account")
    func quotedNick() throws {
        let stage = try stage(Self.silent)
        stage.backend("message|id=1|from=[chatbridge]|name=chatbridge|text=<carol> see you")
        stage.backend("message|id=2|from=[chatbridge]|name=chatbridge|text=<no one> here")
        let recent = stage.harness.bridge.rooms[0].recent
        #expect(recent.entry(upstreamID: ChatID("1"))?.nick == "carol")
        #expect(recent.entry(upstreamID: ChatID("1"))?.excerpt == "see you")
        #expect(recent.entry(upstreamID: ChatID("2"))?.nick == "chatbridge")
    }

    @Test("another name in the account's column is somebody, and the account keeps its own")
    func aliases() throws {
        var dialect = Self.silent
        dialect.traits.sendsSenderName = true
        let stage = try stage(dialect) { $0.account = ChatPerson(id: ChatID("7"), name: "relay") }
        for (number, name) in ["relay", "Linguini", "relay"].enumerated() {
            stage.backend("message|id=\(number)|from=7|name=\(name)|text=hi")
        }
        let sources = stage.happened().filter { $0.hasPrefix("C1") && $0.hasSuffix(":hi") }
            .compactMap { $0.firstMatch(of: /:([^!]+)!/)?.1 }
        #expect(sources == ["relay", "Linguini", "relay"])
        stage.backend("edit|id=1|from=7|name=Linguini|text=ho")
        #expect(stage.happened().last?.hasSuffix(":Linguini!chat@chat.example PRIVMSG #lobby :* ho") == true)
    }

    @Test("the account's own name becomes known by what it says under no other")
    func ownName() throws {
        var dialect = Self.silent
        dialect.traits.sendsSenderName = true
        let stage = try stage(dialect) { $0.account = ChatPerson(id: ChatID("7")) }
        for (number, frame) in ["name=Linguini", "name=relay|own", "name=relay|own", "name=Linguini"].enumerated() {
            stage.backend("message|id=\(number)|from=7|\(frame)|text=hi")
        }
        #expect(stage.harness.bridge.rooms[0].accountPerson == ChatPerson(id: ChatID("7"), name: "relay"))
        let sources = stage.happened().filter { $0.hasPrefix("C1") && $0.hasSuffix(":hi") }
            .compactMap { $0.firstMatch(of: /:([^!]+)!([^ ]+)/)?.output }.map { "\($0.1) \($0.2)" }
        #expect(sources.map { $0.prefix { $0 != " " } } == ["Linguini", "relay", "relay", "Linguini"], "\(sources)")
    }

    // MARK: - Typing and reading

    @Test("the account types from the first typist to the last")
    func typing() throws {
        let stage = try stage(Self.silent)
        func frames() -> [String] { stage.happened().filter { $0.hasPrefix("U0") } }
        let start = "U0> typing|state=start|from=[chatbridge]|name=chatbridge"
        let stop = "U0> typing|state=stop|from=[chatbridge]|name=chatbridge"
        stage.harness.send(1, "@+typing=active TAGMSG #lobby")
        #expect(frames() == [start])
        stage.harness.advance(by: .seconds(1))
        stage.harness.send(2, "@+typing=active TAGMSG #lobby")
        #expect(frames() == [])
        stage.harness.advance(by: .milliseconds(1500))
        #expect(frames() == [start], "again after 2.5 s, and once for both")
        stage.harness.send(1, "@+typing=done TAGMSG #lobby")
        #expect(frames() == [])
        stage.harness.advance(by: .milliseconds(2500))
        #expect(frames() == [start], "for who is left")
        stage.harness.send(2, "@+typing=done TAGMSG #lobby")
        #expect(frames() == [stop])
    }

    @Test("typing is repeated as often as the wire wants")
    func typingRefresh() throws {
        var dialect = ActionsStubDialect()
        dialect.traits.typingRefresh = .seconds(4)
        let stage = try stage(dialect)
        stage.harness.send(1, "@+typing=active TAGMSG #lobby")
        _ = stage.happened()
        stage.harness.advance(by: .milliseconds(3999))
        #expect(stage.happened() == [])
        stage.harness.advance(by: .milliseconds(1))
        #expect(stage.happened() == ["U0> typing|state=start|from=[alice]|name=alice"])
    }

    /// Two messages of others and one of alice's; then alice reads, then bob.
    private func reading(_ report: DialectTraits.ReadReport) throws -> (
        stage: ActionsStage, alice: [String], bob: [String]
    ) {
        var dialect = Self.silent
        dialect.traits.readReport = report
        let stage = try stage(dialect)
        stage.harness.advance(by: .seconds(1))
        stage.backend("message|id=1|from=s|name=S|text=one")
        stage.harness.send(1, "PRIVMSG #lobby :mine")
        stage.backend("message|id=2|from=s|name=S|text=two")
        stage.harness.advance(by: .seconds(1))
        _ = stage.happened()
        stage.harness.send(1, "MARKREAD #lobby timestamp=2026-11-21T13:00:00.000Z")
        let alice = stage.happened().filter { $0.hasPrefix("U0") }
        stage.harness.send(2, "MARKREAD #lobby timestamp=2026-11-21T13:00:00.000Z")
        return (stage, alice, stage.happened().filter { $0.hasPrefix("U0") })
    }

    @Test("the account has read what any of its users has, and told once")
    func readOnce() throws {
        let each = try reading(.eachMessage)
        #expect(
            each.alice == [
                "U0> receipt|state=read|ids=1|from=[chatbridge]|name=chatbridge",
                "U0> receipt|state=read|ids=2|from=[chatbridge]|name=chatbridge",
            ])
        #expect(each.bob == [])
        let upTo = try reading(.upTo)
        #expect(upTo.alice == ["U0> receipt|state=read|ids=2|from=[chatbridge]|name=chatbridge"])
        #expect(upTo.bob == [])
        #expect(try reading(.none).alice == [])
    }

    @Test("a call marks the room as read, at most every two seconds, and only for what is unread")
    func readCall() throws {
        let (stage, frames, _) = try reading(.call)
        #expect(frames == [])
        func calls() -> Int { stage.harness.accounts.calls.count { $0.path == "/read/lobby" } }
        #expect(calls() == 1, "bob had nothing to add")
        for number in 3...9 {
            stage.harness.advance(by: .milliseconds(1))
            stage.backend("message|id=\(number)|from=s|name=S|text=more")
            stage.harness.advance(by: .milliseconds(1))
            stage.harness.send(1, "MARKREAD #lobby timestamp=2026-11-21T13:00:00.000Z")
        }
        #expect(calls() == 1)
        stage.harness.advance(by: .seconds(10))
        #expect(calls() == 2)
    }

    @Test("where people are puppets, `up to here` is one frame with the newest for each reader")
    func upTo() throws {
        var dialect = ActionsStubDialect()
        dialect.traits.readReport = .upTo
        let stage = try stage(dialect)
        stage.harness.advance(by: .seconds(1))
        for number in 1...5 { stage.backend("message|id=m\(number)|from=s|name=S|text=t") }
        stage.harness.advance(by: .seconds(1))
        _ = stage.happened()
        stage.harness.send(1, "MARKREAD #lobby timestamp=2026-11-21T13:00:00.000Z")
        stage.harness.send(2, "MARKREAD #lobby timestamp=2026-11-21T13:00:00.000Z")
        #expect(
            stage.happened().filter { $0.hasPrefix("U0") } == [
                "U0> receipt|state=read|ids=m5|from=[alice]|name=alice",
                "U0> receipt|state=read|ids=m5|from=[bob]|name=bob",
            ])
    }
}
