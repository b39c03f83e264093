import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import JSONText
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// bob does something to a message, and the backend would not have it.
@Suite("Refused actions")
struct RefusedActionTests {
    private typealias S = SessionStage

    /// bob and eve are in the room, where ann has said `soup` under the id 1 and bob what `says`.
    private static func stage(
        _ confirmation: DialectTraits.Confirmation, _ origin: DialectTraits.MessageIDOrigin,
        identity: DialectTraits.Identity = .single, history: DialectTraits.HistorySource = .none,
        _ change: (inout DialectTraits) -> Void = { _ in }
    ) throws -> SessionStage {
        let stage = try SessionStage(
            StubDialect {
                $0.confirmation = confirmation
                $0.messageIDOrigin = origin
                $0.identity = identity
                $0.history = history
                change(&$0)
            })
        stage.harness.start()
        if history != .none { stage.backend(S.history([S.message("0", "zero", at: -60)])) }
        let caps = "echo-message standard-replies message-tags labeled-response batch draft/message-redaction"
        stage.enter("bob", 1, caps: caps)
        stage.enter("eve", 2, caps: caps)
        stage.backend(S.message("1", "soup", at: 1))
        _ = (stage.heard(1), stage.heard(2), stage.sent(), stage.seen())
        return stage
    }

    private static func say(_ text: String, _ stage: SessionStage) -> JSONValue {
        stage.harness.send(1, "PRIVMSG #lobby :" + text)
        return stage.sent().last ?? .null
    }

    private static func id(_ frame: JSONValue) -> String { frame["id"]?.string ?? "" }

    private static func receipt(ref: String, id: String) -> String {
        "{\"kind\":\"receipt\",\"state\":\"sent\",\"ref\":\"\(ref)\",\"ids\":[\"\(id)\"]}"
    }

    /// What a client heard, without the ids of lines.
    private static func lines(_ stage: SessionStage, _ client: UInt64) -> [String] {
        stage.heard(client).map { $0.replacing(#/msgid=[^; ]+;?/#, with: "").replacing(#/!\S+/#, with: "") }
    }

    private static func msgid(_ text: String, _ stage: SessionStage) throws -> String {
        let rows = stage.room.archive.search(StoredSearch(text: text, limit: 1)).found
        return try #require(rows.first).msgid
    }

    // MARK: - Complaints without a name

    @Test("a complaint after a reaction is about the reaction, and the message before it stays delivered")
    func newestIsReaction() throws {
        let stage = try Self.stage(.none, .server)
        let soup = try Self.msgid("soup", stage)
        _ = Self.say("well said", stage)
        stage.harness.advance(by: .milliseconds(2001))
        stage.harness.send(1, "@+reply=\(soup);+draft/react=👍 TAGMSG #lobby")
        _ = (Self.lines(stage, 1), Self.lines(stage, 2))
        stage.backend(#"{"kind":"error","text":"You cannot react to this message"}"#)
        let undone = "@+reply=\(soup);+draft/reply=\(soup);+draft/unreact=👍 :bob TAGMSG #lobby"
        #expect(
            Self.lines(stage, 1) == [
                ":bridge FAIL TAGMSG REACTION_NOT_ALLOWED #lobby \(soup) "
                    + ":Not sent, chat.example refused it (You cannot react to this message)",
                undone,
            ])
        #expect(Self.lines(stage, 2) == [undone])
        // The next one is about nothing.
        stage.backend(#"{"kind":"error","text":"too long"}"#)
        #expect(Self.lines(stage, 1).isEmpty)
        #expect(stage.harness.violations == [])
    }

    @Test("a complaint about a reaction or a message, nobody knows which, is about neither")
    func either() throws {
        let stage = try Self.stage(.none, .server)
        let soup = try Self.msgid("soup", stage)
        stage.harness.upstreams[0].isSilent = true
        stage.harness.send(1, "@+reply=\(soup);+draft/react=👍 TAGMSG #lobby")
        _ = Self.say("well said", stage)
        _ = Self.lines(stage, 1)
        stage.backend(#"{"kind":"error","text":"too long"}"#)
        #expect(Self.lines(stage, 1).isEmpty)
    }

    @Test("a complaint long after a reaction is about neither it nor the message")
    func lateComplaint() throws {
        let stage = try Self.stage(.none, .server)
        let soup = try Self.msgid("soup", stage)
        stage.harness.send(1, "@+reply=\(soup);+draft/react=👍 TAGMSG #lobby")
        stage.harness.advance(by: .milliseconds(2001))
        _ = Self.lines(stage, 1)
        stage.backend(#"{"kind":"error","text":"something else"}"#)
        #expect(Self.lines(stage, 1) == [])
    }

    @Test(
        "a complaint after a pong is about nothing in flight: a history tells what was refused",
        arguments: [true, false])
    func suspected(isThere: Bool) throws {
        let stage = try Self.stage(.none, .server, history: .socket)
        let frame = Self.say("well said", stage)
        #expect(stage.said(2) == ["bob: well said"])
        stage.backend(#"{"kind":"error","text":"no"}"#)
        #expect(!Self.lines(stage, 1).contains { $0.contains("FAIL PRIVMSG") })
        let text = frame["text"]?.string ?? ""
        let mine =
            "{\"kind\":\"message\",\"self\":true,\"id\":\"2\",\"at\":\(S.base + 2000),"
            + "\"sender\":{\"name\":\"acct\"},\"text\":\"\(text)\"}"
        for _ in 0..<2 {
            stage.backend(
                S.history(
                    [S.message("0", "zero", at: -60), S.message("1", "soup", at: 1)] + (isThere ? [mine] : [])))
            stage.harness.advance(by: CatchUp.patience)
        }
        #expect(stage.said(2) == [], "it is not shown again")
        #expect(stage.sent().allSatisfy { $0["kind"]?.string == "fetch" }, "nor sent again")
        let failures = Self.lines(stage, 1).filter { $0.contains("FAIL PRIVMSG") }
        #expect(
            failures.count == (isThere ? 0 : 1)
                && failures.allSatisfy { $0.contains("complained of something (no), and its history does not have it") }
        )
    }

    // MARK: - Taking back

    @Test(
        "where the wire only complains, what was taken back comes back, and everybody is told", arguments: ["", "d:"])
    func takenBackAndRefused(prefix: String) throws {
        let stage = try Self.stage(.receipt, .client, identity: .puppet)
        let frame = Self.say("mine", stage)
        stage.backend("{\"kind\":\"receipt\",\"state\":\"sent\",\"ids\":[\"\(Self.id(frame))\"]}")
        let mine = try Self.msgid("mine", stage)
        _ = (Self.lines(stage, 1), Self.lines(stage, 2))
        stage.harness.send(1, "REDACT #lobby \(mine)")
        #expect(Self.lines(stage, 2) == ["@ :bob REDACT #lobby \(mine)"])
        #expect(stage.room.archive.message(mine)?.isTakenBack == true)
        _ = Self.lines(stage, 1)
        // It is shown a millisecond behind another of its moment.
        stage.harness.advance(by: .milliseconds(9001))
        stage.backend("{\"kind\":\"error\",\"ref\":\"\(prefix)\(Self.id(frame))\",\"text\":\"you may not\"}")
        let notice =
            "bridge: *** chat.example refused it (you may not), so a message of bob's from 9 s ago is not taken back: mine"
        #expect(
            Self.lines(stage, 1) == [
                ":bridge FAIL REDACT REDACT_FORBIDDEN #lobby \(mine) :Not taken back, chat.example refused it (you may not)",
                notice,
            ])
        #expect(Self.lines(stage, 2) == [notice])
        #expect(stage.room.archive.message(mine)?.text == "mine")
        #expect(stage.room.recent.entry(msgid: mine)?.excerpt == "mine")
        stage.harness.send(1, "REDACT #lobby \(mine)")
        #expect(Self.lines(stage, 2) == ["@ :bob REDACT #lobby \(mine)"], "it can be tried again")
        stage.harness.advance(by: .seconds(10))
        stage.backend("{\"kind\":\"error\",\"ref\":\"\(Self.id(frame))\",\"text\":\"too late\"}")
        #expect(Self.lines(stage, 2) == [])
    }

    /// bob's message 5, on a wire that answers deletions.
    private static func answering() throws -> (stage: SessionStage, msgid: String) {
        let stage = try Self.stage(.receipt, .server) { $0.answersDeletes = true }
        stage.backend(Self.receipt(ref: Self.id(Self.say("mine", stage)), id: "5"))
        _ = (Self.lines(stage, 1), Self.lines(stage, 2))
        return (stage, try Self.msgid("mine", stage))
    }

    enum Answer: CaseIterable { case answer, event }

    @Test("where the wire answers, a message is taken back when it has, with the label", arguments: Answer.allCases)
    func answered(how: Answer) throws {
        let (stage, mine) = try Self.answering()
        stage.harness.send(1, "@label=7 REDACT #lobby \(mine) :oops")
        #expect(stage.sent().map { $0["kind"]?.string } == ["delete"])
        #expect(Self.lines(stage, 1) == [] && Self.lines(stage, 2) == [])
        stage.harness.send(1, "REDACT #lobby \(mine)")
        #expect(Self.lines(stage, 1).map { $0.contains("CANNOT_DELIVER") } == [true])
        #expect(stage.sent() == [], "asked once")
        let (answer, event) = (Self.receipt(ref: "d:5", id: "5"), #"{"kind":"delete","ids":["5"]}"#)
        for frame in how == .answer ? [answer, event] : [event, answer] { stage.backend(frame) }
        #expect(Self.lines(stage, 1) == ["@label=7 :bob REDACT #lobby \(mine) oops"])
        #expect(Self.lines(stage, 2) == ["@ :bob REDACT #lobby \(mine) oops"])
        #expect(stage.room.archive.message(mine)?.isTakenBack == true)
        stage.harness.advance(by: .seconds(20))
        #expect(Self.lines(stage, 1) == [] && stage.harness.violations == [])
    }

    @Test("where the wire answers no, nobody but the author ever hears of it", arguments: [true, false])
    func answeredNo(isNamed: Bool) throws {
        let (stage, mine) = try Self.answering()
        stage.harness.send(1, "@label=7 REDACT #lobby \(mine)")
        stage.backend("{\"kind\":\"error\",\(isNamed ? "\"ref\":\"d:5\"," : "")\"text\":\"FORBIDDEN\"}")
        #expect(
            Self.lines(stage, 1) == [
                "@label=7 :bridge FAIL REDACT REDACT_FORBIDDEN #lobby \(mine) "
                    + ":Not taken back, chat.example refused it (FORBIDDEN)"
            ])
        #expect(Self.lines(stage, 2) == [])
        #expect(stage.room.archive.message(mine)?.text == "mine")
    }

    @Test(
        "where no answer comes, or the link goes first, the author is told that nobody knows", arguments: [true, false])
    func unanswered(linkGoes: Bool) throws {
        let (stage, mine) = try Self.answering()
        stage.harness.send(1, "@label=7 REDACT #lobby \(mine)")
        if linkGoes { stage.loseLink() } else { stage.harness.advance(by: .seconds(10)) }
        let heard = Self.lines(stage, 1).filter { $0.contains(" FAIL ") }
        #expect(heard.count == 1)
        #expect(
            heard.first?.hasPrefix("@label=7 :bridge FAIL REDACT CANNOT_DELIVER #lobby \(mine) :Not known, ") == true)
        #expect(stage.room.archive.message(mine)?.text == "mine")
    }

    @Test("of a message and a deletion without answers, a complaint without a name means neither")
    func unnamed() throws {
        let (stage, mine) = try Self.answering()
        _ = Self.say("first", stage)
        stage.harness.advance(by: .milliseconds(10))
        stage.harness.send(1, "REDACT #lobby \(mine)")
        _ = Self.lines(stage, 1)
        stage.backend(#"{"kind":"error","text":"no"}"#)
        #expect(Self.lines(stage, 1).isEmpty)
    }

    @Test("where no action is open, none is over or lost")
    func none() {
        let actions = PendingActions()
        #expect(actions.due == nil)
        #expect(actions.takeOver(now: MonotonicInstant(nanoseconds: 0)).isEmpty)
        #expect(actions.linkLost(RoomID(index: 0)).isEmpty)
    }
}
