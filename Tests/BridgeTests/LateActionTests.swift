import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A backend that makes the ids and tells the author nothing: what is done to a message of one's own waits for its id.
@Suite("Actions that wait for an id")
struct LateActionTests {
    /// alice has said `soup`, of which nothing came back.
    private func stage() throws -> ActionsStage {
        let stage = try ActionsStage(
            ActionsStubDialect(identity: .single, idsFrom: .server, confirmation: .none) { $0.history = .call })
        answer(stage, [])
        stage.enter(1, "alice")
        stage.enter(2, "bob")
        stage.harness.send(1, "PRIVMSG #lobby :soup")
        #expect(stage.newestUpstreamID() == "none")
        _ = stage.happened()
        _ = stage.harness.takeHistoryQueries()
        return stage
    }

    private func answer(_ stage: ActionsStage, _ messages: [ChatMessage]) {
        stage.harness.answerHistory(.success(messages), isComplete: true)
    }

    private func soup(_ stage: ActionsStage) -> ChatMessage {
        ChatMessage(
            id: ChatID("7"), sender: ChatPerson(id: ChatID(stage.puppet("chatbridge")), name: "chatbridge"),
            text: "<alice> soup", at: stage.harness.clock.now.wall, isSelf: true)
    }

    @Test("a reaction goes when the history has told the id, with its label")
    func reaction() throws {
        let stage = try stage()
        let msgid = stage.newestMsgid()
        stage.harness.send(2, "@label=9;+reply=\(msgid);+draft/react=👍 TAGMSG #lobby")
        #expect(stage.happened() == [])
        #expect(stage.harness.takeHistoryQueries().count == 1)
        answer(stage, [soup(stage)])
        let lines = stage.happened()
        #expect(lines.first == "U0> react|target=7|emoji=👍|op=add|from=[chatbridge]|name=chatbridge")
        let own = try #require(lines.last?.firstMatch(of: /msgid=([^;]+);/)?.1)
        let tags = "@msgid=\(own);+reply=\(msgid);+draft/reply=\(msgid);+draft/react=👍"
        #expect(
            lines.dropFirst() == [
                "C1< \(tags) :bob!~u@bridge TAGMSG #lobby", "C2< \(tags);label=9 :bob!~u@bridge TAGMSG #lobby",
            ])
    }

    @Test("a reaction to a message whose id nobody told us is shown when the history has told it")
    func reactionFromUpstream() throws {
        let stage = try stage()
        let msgid = stage.newestMsgid()
        stage.backend("react|target=7|emoji=👍|op=add|from=s|name=Sam")
        #expect(stage.happened() == [])
        #expect(stage.harness.takeHistoryQueries().count == 1)
        answer(stage, [soup(stage)])
        #expect(stage.happened().contains { $0.contains("+reply=\(msgid);") && $0.contains("+draft/react=👍 :Sam!") })
    }

    @Test("reactions to messages that nobody knows make a call every two seconds at most, and show nothing")
    func strangersReactions() throws {
        let stage = try stage()
        for number in 0..<50 {
            stage.backend("react|target=x\(number)|emoji=👍|op=add|from=s|name=Sam")
            if number == 20 { answer(stage, []) }
            stage.harness.advance(by: .milliseconds(10))
        }
        #expect(stage.harness.takeHistoryQueries().count == 1)
        stage.harness.advance(by: .seconds(2))
        stage.backend("react|target=y|emoji=👍|op=add|from=s|name=Sam")
        #expect(stage.harness.takeHistoryQueries().count == 1)
        answer(stage, [])
        #expect(!stage.happened().contains { $0.contains("react") })
    }

    @Test("where the history does not have it, the answer says so, with the label")
    func notFound() throws {
        let stage = try stage()
        let msgid = stage.newestMsgid()
        stage.harness.send(1, "@label=9 REDACT #lobby \(msgid)")
        #expect(stage.happened() == [])
        answer(stage, [])
        #expect(
            stage.happened() == [
                "C1< @label=9 :bridge FAIL REDACT CANNOT_DELIVER #lobby \(msgid) "
                    + ":chat.example has not said under which id it keeps this message"
            ])
    }

    @Test("two who take it back at once do so once; who is gone by then does nothing")
    func twice() throws {
        let stage = try stage()
        let msgid = stage.newestMsgid()
        stage.harness.send(1, "@label=1 REDACT #lobby \(msgid)")
        stage.harness.send(1, "@label=2 REDACT #lobby \(msgid)")
        stage.harness.send(2, "@+reply=\(msgid);+draft/react=👍 TAGMSG #lobby")
        stage.harness.send(2, "QUIT")
        _ = stage.happened()
        answer(stage, [soup(stage)])
        let lines = stage.happened()
        #expect(lines.filter { $0.hasPrefix("U0") } == ["U0> delete|ids=7|from=[chatbridge]|name=chatbridge"])
        #expect(
            lines.last
                == "C1< @label=2 :bridge FAIL REDACT UNKNOWN_MSGID #lobby \(msgid) :No such message, or it is too old")
        #expect(stage.harness.violations == [])
    }
}
