import BridgeTestSupport
import ChatModel
import Dialects
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Reactions")
struct ReactionTests {
    private func stage(
        _ dialect: ActionsStubDialect = ActionsStubDialect(), echoes: Bool = false
    ) throws -> (stage: ActionsStage, msgid: String) {
        let stage = try ActionsStage(dialect, echoes: echoes)
        stage.enter(1, "alice")
        stage.enter(2, "bob")
        stage.enter(3, "carol", caps: "")
        stage.backend("message|id=m1|from=s1|name=Remy|text=soup")
        _ = stage.happened()
        return (stage, stage.newestMsgid())
    }

    @Test("a reaction goes up with the backend's id, and the other IRC users see it once", arguments: [false, true])
    func up(comesBack: Bool) throws {
        let (stage, msgid) = try stage(echoes: comesBack)
        stage.harness.send(1, "@+draft/reply=\(msgid);+draft/react=👍 TAGMSG #lobby")
        var lines = stage.happened()
        #expect(lines.first == "U0> react|target=m1|emoji=👍|op=add|from=[alice]|name=alice")
        let tags = "+reply=\(msgid);+draft/reply=\(msgid)"
        var own = try #require(lines.dropFirst().first?.firstMatch(of: /@msgid=([^;]+);/)?.1)
        #expect(
            lines.dropFirst() == [
                "C2< @msgid=\(own);\(tags);+draft/react=👍 :alice!~u@bridge TAGMSG #lobby",
                "C1< @msgid=\(own);\(tags);+draft/react=👍 :alice!~u@bridge TAGMSG #lobby",
                "C3< :bridge NOTICE #lobby :*** alice reacted with 👍 to Remy's: soup",
            ])
        stage.harness.send(1, "@label=7;+reply=\(msgid);+draft/unreact=👍 TAGMSG #lobby")
        lines = stage.happened()
        own = try #require(lines.dropFirst().first?.firstMatch(of: /msgid=([^;]+);/)?.1)
        #expect(
            lines == [
                "U0> react|target=m1|emoji=👍|op=remove|from=[alice]|name=alice",
                "C2< @msgid=\(own);\(tags);+draft/unreact=👍 :alice!~u@bridge TAGMSG #lobby",
                "C3< :bridge NOTICE #lobby :*** alice took 👍 back from Remy's: soup",
                "C1< @msgid=\(own);\(tags);+draft/unreact=👍;label=7 :alice!~u@bridge TAGMSG #lobby",
            ])
    }

    /// Lines without the ids that reactions have of their own.
    private func lines(_ stage: ActionsStage) -> [String] {
        stage.happened().map { $0.replacing(/msgid=[^; ]+;/, with: "") }
    }

    private func said(_ by: String, _ msgid: String, _ tag: String) -> String {
        "@+reply=\(msgid);+draft/reply=\(msgid);\(tag) :\(by)!~u@bridge TAGMSG #lobby"
    }

    @Test("an emoji that the backend does not know is seen by IRC users alone, and its author hears so once")
    func otherEmoji() throws {
        let (stage, msgid) = try stage(
            ActionsStubDialect { $0.reactionChoices = ["👍", "❤️"] })
        stage.harness.send(1, "@+reply=\(msgid);+draft/react=🐀 TAGMSG #lobby")
        stage.harness.send(1, "@+reply=\(msgid);+draft/unreact=🐀 TAGMSG #lobby")
        stage.harness.send(2, "@+reply=\(msgid);+draft/react=🐀 TAGMSG #lobby")
        let note =
            ":bridge NOTE TAGMSG REACTION_NOT_RELAYED #lobby :chat.example knows only 👍 ❤️, so people there do not see "
            + "yours; IRC users do"
        #expect(
            lines(stage) == [
                "C2< " + said("alice", msgid, "+draft/react=🐀"), "C1< " + said("alice", msgid, "+draft/react=🐀"),
                "C3< :bridge NOTICE #lobby :*** alice reacted with 🐀 to Remy's: soup", "C1< " + note,
                "C2< " + said("alice", msgid, "+draft/unreact=🐀"), "C1< " + said("alice", msgid, "+draft/unreact=🐀"),
                "C3< :bridge NOTICE #lobby :*** alice took 🐀 back from Remy's: soup",
                "C1< " + said("bob", msgid, "+draft/react=🐀"), "C2< " + said("bob", msgid, "+draft/react=🐀"),
                "C3< :bridge NOTICE #lobby :*** bob reacted with 🐀 to Remy's: soup", "C2< " + note,
            ])
    }

    @Test("a reaction to what nobody knows is refused; one that names nothing is a tag like any other")
    func refusals() throws {
        let (stage, msgid) = try stage(
            ActionsStubDialect { $0.reactionChoices = ["👍", "❤️"] })
        stage.harness.send(1, "@+reply=nosuch;+draft/react=👍 TAGMSG #lobby")
        stage.harness.send(1, "@+draft/react=👍 TAGMSG #lobby")
        #expect(
            lines(stage) == [
                "C1< :bridge FAIL TAGMSG UNKNOWN_MSGID #lobby nosuch :No such message, or it is too old",
                "C2< @+draft/react=👍 :alice!~u@bridge TAGMSG #lobby",
                "C1< @+draft/react=👍 :alice!~u@bridge TAGMSG #lobby",
            ])
        // As a keyboard writes it that leaves the variation selector out.
        stage.harness.send(1, "@+reply=\(msgid);+draft/react=\u{2764} TAGMSG #lobby")
        #expect(stage.happened().first == "U0> react|target=m1|emoji=❤️|op=add|from=[alice]|name=alice")
    }

    @Test("a wire that cannot say it leaves it among the IRC users; a novel is refused")
    func unsupported() throws {
        let (stage, msgid) = try stage(ActionsStubDialect(says: ["message"]))
        stage.harness.send(1, "@label=9;+reply=\(msgid);+draft/react=👍 TAGMSG #lobby")
        let first = lines(stage)
        #expect(
            first.filter { !$0.hasPrefix("C1") } == [
                "C2< " + said("alice", msgid, "+draft/react=👍"),
                "C3< :bridge NOTICE #lobby :*** alice reacted with 👍 to Remy's: soup",
            ])
        // Its author hears so once: not with the next one below.
        let told = first.filter { $0.contains(" NOTE TAGMSG REACTION_NOT_RELAYED ") }
        #expect(told.map { $0.hasPrefix("C1< ") && $0.contains(":chat.example knows no reactions, so ") } == [true])
        // When the backend cannot be reached it is no less.
        stage.harness.closeUpstream(0, code: 1001, reason: "")
        _ = stage.happened()
        stage.harness.send(1, "@+reply=\(msgid);+draft/react=👀 TAGMSG #lobby")
        #expect(
            lines(stage).filter { $0.contains("TAGMSG") } == [
                "C2< " + said("alice", msgid, "+draft/react=👀"), "C1< " + said("alice", msgid, "+draft/react=👀"),
            ])
        let (willing, other) = try self.stage()
        willing.harness.send(1, "@+reply=\(other);+draft/react TAGMSG #lobby")
        willing.harness.send(1, "@+reply=\(other);+draft/react=\(String(repeating: "x", count: 65)) TAGMSG #lobby")
        #expect(
            willing.happened() == [
                "C1< :bridge FAIL TAGMSG REACTION_NOT_ALLOWED #lobby \(other) :That is no emoji",
                "C1< :bridge FAIL TAGMSG REACTION_NOT_ALLOWED #lobby \(other) :That is no emoji",
            ])
    }

    @Test("more at once than the room's pace allows is refused, not kept")
    func pace() throws {
        let (stage, msgid) = try stage(ActionsStubDialect(says: ["message", "react"]))
        for _ in 1...11 { stage.harness.send(1, "@+reply=\(msgid);+draft/react=👍 TAGMSG #lobby") }
        let lines = stage.happened()
        #expect(lines.filter { $0.hasPrefix("U0") }.count == 10)
        #expect(
            lines.last
                == "C1< :bridge FAIL TAGMSG CANNOT_DELIVER #lobby \(msgid) :Not sent, too much is going on; try again")
    }

    @Test("people upstream react: one TAGMSG, a word for plain clients, nothing for what is not known")
    func down() throws {
        let (stage, msgid) = try stage()
        stage.backend("react|target=m1|emoji=👍|op=add|from=s1|name=Remy")
        stage.backend("react|target=m1|emoji=👍|op=remove|from=s1|name=Remy")
        stage.backend("react|target=nosuch|emoji=👍|from=s1|name=Remy")
        stage.backend("react|target=m1|emoji=\(String(repeating: "x", count: 1000))|from=s1|name=Remy")
        let lines = stage.happened()
        // Each is a line of the room's past as well, and has an id of its own.
        let own = lines.compactMap { $0.firstMatch(of: /@msgid=([^;]+);/).map { String($0.1) } }
        try #require(own.count == 4)
        #expect(own[0] == own[1] && own[2] == own[3] && own[0] != own[2])
        let tags = "+reply=\(msgid);+draft/reply=\(msgid);"
        #expect(
            lines.map { $0.replacing(/msgid=[^;]+;/, with: "") } == [
                "C1< @\(tags)+draft/react=👍 :Remy!chat@chat.example TAGMSG #lobby",
                "C2< @\(tags)+draft/react=👍 :Remy!chat@chat.example TAGMSG #lobby",
                "C3< :bridge NOTICE #lobby :*** Remy reacted with 👍 to their own: soup",
                "C1< @\(tags)+draft/unreact=👍 :Remy!chat@chat.example TAGMSG #lobby",
                "C2< @\(tags)+draft/unreact=👍 :Remy!chat@chat.example TAGMSG #lobby",
                "C3< :bridge NOTICE #lobby :*** Remy took 👍 back from their own: soup",
            ])
    }

    @Test("one account for all: the echo is none, another device's reaction is the account's")
    func single() throws {
        let (stage, msgid) = try stage(ActionsStubDialect(identity: .single, idsFrom: .server))
        stage.harness.send(1, "@+reply=\(msgid);+draft/react=👍 TAGMSG #lobby")
        #expect(stage.happened().first == "U0> react|target=m1|emoji=👍|op=add|from=[chatbridge]|name=chatbridge")
        stage.backend("react|target=m1|emoji=👍|op=add|from=[chatbridge]|name=chatbridge")
        #expect(stage.happened() == [])
        stage.harness.send(2, "@+reply=\(msgid);+draft/unreact=👍 TAGMSG #lobby")
        #expect(
            stage.happened() == [
                "C2< :bridge FAIL TAGMSG REACTION_NOT_ALLOWED #lobby \(msgid) :That reaction is somebody else's"
            ])
        // A backend with one reaction for each account and message takes alice's away.
        stage.backend("react|target=m1|emoji=👍|op=remove|from=[chatbridge]|name=chatbridge")
        stage.backend("react|target=m1|emoji=🍲|op=add|from=[chatbridge]|name=chatbridge")
        let tags = "+reply=\(msgid);+draft/reply=\(msgid);"
        #expect(
            stage.happened().filter { $0.hasPrefix("C2") }.map { $0.replacing(/msgid=[^;]+;/, with: "") } == [
                "C2< @\(tags)+draft/unreact=👍 :alice!~u@bridge TAGMSG #lobby",
                "C2< :chatbridge!chat@chat.example JOIN #lobby",
                "C2< @\(tags)+draft/react=🍲 :chatbridge!chat@chat.example TAGMSG #lobby",
            ])
    }

    @Test("edits: the whole new text with its target, and not when nothing changed")
    func edits() throws {
        let (stage, msgid) = try stage()
        stage.backend("edit|id=m1|from=s1|name=Remy|text=soup!")
        stage.backend("edit|id=m1|from=s1|name=Remy|text=soup!")
        stage.backend("edit|id=nosuch|from=s1|name=Remy|text=x")
        stage.backend("edit|id=m1|from=s1|text=broth")
        let tags = "@+reply=\(msgid);+draft/reply=\(msgid)"
        #expect(
            stage.happened().filter { !$0.hasPrefix("C2") } == [
                "C1< \(tags) :Remy!chat@chat.example PRIVMSG #lobby :* soup!",
                "C3< :Remy!chat@chat.example PRIVMSG #lobby :* soup!",
                "C1< \(tags) :Remy!chat@chat.example PRIVMSG #lobby :* broth",
                "C3< :Remy!chat@chat.example PRIVMSG #lobby :* broth",
            ])
        stage.harness.send(1, "@+reply=\(msgid) PRIVMSG #lobby :better")
        #expect(
            stage.happened().first?.hasSuffix("|text=<Remy> broth\nbetter") == true, "a reply quotes what holds now")
    }

    @Test("a reply says what it answers where the wire has a place for that", arguments: [false, true])
    func replies(carried: Bool) throws {
        var dialect = ActionsStubDialect()
        dialect.writesReplies = carried
        let (stage, msgid) = try stage(dialect)
        stage.harness.send(1, "@+reply=\(msgid) PRIVMSG #lobby :more")
        stage.harness.send(1, "@+reply=nosuch PRIVMSG #lobby :again")
        #expect(stage.happened().filter { $0.hasPrefix("U0") }.map { $0.contains("|reply=m1") } == [carried, false])
        let texts = stage.harness.bridge.rooms[0].lane.outbox.entries.map(\.message)
        #expect(texts.map(\.replyTo) == [carried ? ChatID("m1") : nil, nil])
        #expect(texts.map(\.text) == [carried ? "more" : "<Remy> soup\nmore", "again"])
    }
}
