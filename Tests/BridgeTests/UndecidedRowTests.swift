import BridgeTestSupport
import ChatModel
import Dialects
import JSONText
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A backend that makes the ids, answers what is sent and sends it round as well, in either order and perhaps changed.
@Suite("Rows that may be ours")
struct UndecidedRowTests {
    private typealias S = SessionStage

    private static func stage(history: DialectTraits.HistorySource = .none) throws -> SessionStage {
        let stage = try SessionStage(
            StubDialect {
                $0.confirmation = .receipt
                $0.messageIDOrigin = .server
                $0.identity = .single
                $0.history = history
            })
        stage.harness.start()
        stage.enter("bob", 1, caps: "echo-message standard-replies")
        stage.enter("eve", 2)
        _ = (stage.heard(1), stage.heard(2), stage.sent())
        return stage
    }

    private static func say(_ text: String, _ stage: SessionStage) -> String {
        stage.harness.send(1, "PRIVMSG #lobby :" + text)
        return stage.sent().last?["id"]?.string ?? ""
    }

    private static func answer(_ ref: String, _ id: String) -> String {
        "{\"kind\":\"receipt\",\"state\":\"sent\",\"ref\":\"\(ref)\",\"ids\":[\"\(id)\"]}"
    }

    enum Sender: String, CaseIterable {
        case account = #""self":true,"sender":{"id":"a","name":"acct"}"#
        case nobody = #""sender":{}"#
    }

    private static func row(_ id: String, _ text: String, _ sender: Sender = .account) -> String {
        "{\"kind\":\"message\",\"id\":\"\(id)\",\(sender.rawValue),\"text\":\"\(text)\"}"
    }

    @Test(
        "a row with other words that comes before its answer is shown as its author's, in its place",
        arguments: Sender.allCases)
    func changedRowFirst(sender: Sender) throws {
        let stage = try Self.stage()
        let ref = Self.say("one", stage)
        stage.backend(Self.row("5", "ONE!", sender))
        stage.backend(S.message("6", "after it"))
        #expect(stage.said(2) == [])
        stage.backend(Self.answer(ref, "5"))
        #expect(stage.said(2) == ["bob: one", "ann: after it"])
        #expect(stage.said(1) == ["bob: one", "ann: after it"])
        stage.backend(Self.row("5", "ONE!", sender))
        stage.harness.advance(by: .seconds(20))
        #expect(stage.said(2) == [] && stage.harness.violations == [])
        #expect(stage.room.recent.entry(upstreamID: ChatID("5"))?.nick == "bob")
    }

    @Test("several in flight: each answer finds its row, and an answer whose row is not there comes behind what waits")
    func several() throws {
        let stage = try Self.stage()
        let (one, two, three) = (Self.say("one", stage), Self.say("two", stage), Self.say("three", stage))
        stage.backend(Self.row("5", "ONE"))
        stage.backend(Self.row("6", "TWO"))
        stage.backend(Self.answer(two, "6"))
        stage.backend(Self.answer(three, "7"))
        #expect(stage.said(2) == [])
        stage.backend(Self.answer(one, "5"))
        #expect(stage.said(2) == ["bob: one", "bob: two", "bob: three"])
    }

    @Test("the account's words at another device wait for our answer, and no longer")
    func otherDevice() throws {
        let stage = try Self.stage()
        let ref = Self.say("one", stage)
        stage.backend(Self.row("5", "from the phone"))
        stage.backend(Self.answer(ref, "6"))
        #expect(stage.said(2) == ["acct: from the phone", "bob: one"])
        stage.backend(Self.row("7", "more"))
        #expect(stage.said(2) == ["acct: more"], "nothing is open")
    }

    @Test("an answer that takes longer than two seconds: the row is shown, and the message is not shown once more")
    func noAnswer() throws {
        let stage = try Self.stage()
        let ref = Self.say("one", stage)
        stage.backend(Self.row("5", "ONE"))
        stage.backend(S.message("6", "after it"))
        stage.harness.advance(by: .milliseconds(1999))
        #expect(stage.said(2) == [])
        stage.harness.advance(by: .milliseconds(1))
        #expect(stage.said(2) == ["acct: ONE", "ann: after it"])
        stage.backend(Self.answer(ref, "5"))
        #expect(stage.said(2) == [])
        #expect(stage.room.lane.outbox.isEmpty)
    }

    @Test(
        "a history that is fetched while a row waits does not make it known: it is shown, and what waits behind it",
        arguments: [true, false], [true, false])
    func historyMeanwhile(hasLast: Bool, isOurs: Bool) throws {
        let stage = try Self.stage(history: .call)
        stage.harness.answerHistory(.success([]), isComplete: true)
        let began = stage.wall
        stage.backend(S.message("4", "before", more: "\"at\":\(began),"))
        #expect(stage.said(2) == ["ann: before"])
        _ = Self.say("one", stage)
        stage.harness.advance(by: .milliseconds(9500))
        let two = Self.say("two", stage)
        _ = stage.harness.takeHistoryQueries()
        let said = stage.wall
        stage.backend(
            "{\"kind\":\"message\",\"id\":\"5\",\(Sender.account.rawValue),\"at\":\(said),\"text\":\"from the phone\"}")
        stage.backend(S.message("6", "after it", more: "\"at\":\(said + 100),"))
        // The first one has had no answer for ten seconds, so it is looked for.
        stage.harness.advance(by: .milliseconds(500))
        #expect(stage.harness.takeHistoryQueries().count == 1)
        func row(_ id: String, _ sender: ChatPerson, _ text: String, at: Int64, isSelf: Bool = false) -> ChatMessage {
            ChatMessage(
                id: ChatID(id), sender: sender, text: text, at: ChatTimestamp(milliseconds: at), isSelf: isSelf)
        }
        let ann = ChatPerson(id: ChatID("u-ann"), name: "ann")
        let account = ChatPerson(id: ChatID("a"), name: "acct")
        let rows = [
            row("4", ann, "before", at: began), row("5", account, "from the phone", at: said, isSelf: true),
            row("6", ann, "after it", at: said + 100),
        ]
        stage.harness.answerHistory(.success(hasLast ? rows : rows.dropLast()), isComplete: true)
        if isOurs { stage.backend(Self.answer(two, "5")) }
        stage.harness.advance(by: .seconds(3))
        #expect(stage.said(2) == [isOurs ? "bob: two" : "acct: from the phone", "ann: after it"])
        #expect(stage.harness.violations == [])
    }

    @Test("a refusal decides too, and a lost link ends the waiting", arguments: [true, false])
    func refused(linkGoes: Bool) throws {
        let stage = try Self.stage()
        let ref = Self.say("one", stage)
        stage.backend(Self.row("5", "from the phone"))
        if linkGoes {
            stage.loseLink()
        } else {
            stage.backend("{\"kind\":\"error\",\"ref\":\"\(ref)\",\"text\":\"no\"}")
        }
        #expect(stage.said(2) == ["acct: from the phone"])
    }

    @Test("what others say does not wait while nothing undecided came, and deletions keep their place behind a row")
    func others() throws {
        let stage = try Self.stage()
        let ref = Self.say("one", stage)
        stage.backend(S.message("4", "at once"))
        #expect(stage.said(2) == ["ann: at once"])
        stage.backend(Self.row("5", "ONE"))
        stage.backend(#"{"kind":"delete","ids":["5"]}"#)
        stage.backend(Self.answer(ref, "5"))
        #expect(stage.said(2) == ["bob: one"])
        #expect(stage.room.recent.entry(upstreamID: ChatID("5"))?.isTakenBack == true)
    }

    @Test("more than can wait: the oldest row is shown as it is")
    func flood() throws {
        let stage = try Self.stage()
        _ = Self.say("one", stage)
        stage.backend(Self.row("r", "ONE"))
        for number in 0..<(AmbiguousMessages.capacity + 10) { stage.backend(S.message("m\(number)", "\(number)")) }
        #expect(stage.said(2).count >= AmbiguousMessages.capacity)
        #expect(stage.harness.violations == [])
    }

    // MARK: - Too much at once

    private static func failures(_ stage: SessionStage) -> [String] { stage.heard(1).filter { $0.contains(" FAIL ") } }

    private static func texts(_ stage: SessionStage) -> [String] { stage.sent().compactMap { $0["text"]?.string } }

    @Test("what the backend did not take for now goes again when it wants, in order, and nothing before that")
    func putOff() throws {
        let stage = try Self.stage()
        let refs = ["one", "two", "three"].map { Self.say($0, stage) }
        let wait = #""code":"REQUESTS_EXCEEDED","text":"slow down","retryAfter":500"#
        stage.backend("{\"kind\":\"error\",\"ref\":\"m:\(refs[1])\",\(wait)}")
        stage.backend("{\"kind\":\"error\",\"ref\":\"m:\(refs[2])\",\(wait)}")
        stage.backend(Self.answer(refs[0], "1"))
        stage.harness.send(1, "PRIVMSG #lobby :four")
        stage.harness.advance(by: .milliseconds(499))
        #expect(Self.texts(stage) == [] && stage.said(2) == ["bob: one"])
        stage.harness.advance(by: .milliseconds(2))
        #expect(Self.texts(stage).map { $0.split(separator: " ").last.map(String.init) } == ["two", "three", "four"])
        #expect(Self.failures(stage) == [])
    }

    @Test("where the backend does not say what it did not take, it was what was written last")
    func putOffUnnamed() throws {
        let stage = try Self.stage()
        let refs = ["one", "two", "three"].map { Self.say($0, stage) }
        stage.backend(#"{"kind":"error","code":"REQUESTS_EXCEEDED","text":"slow down","retryAfter":500}"#)
        stage.harness.advance(by: .milliseconds(501))
        #expect(Self.texts(stage).count == 1)
        for (index, ref) in refs.enumerated() { stage.backend(Self.answer(ref, "\(index)")) }
        #expect(stage.said(2) == ["bob: one", "bob: two", "bob: three"])
        #expect(Self.failures(stage) == [])
        stage.backend(#"{"kind":"error","code":"REQUESTS_EXCEEDED","text":"slow down","retryAfter":500}"#)
        #expect(Self.failures(stage) == [], "nothing is open")
    }

    @Test("a backend that wants ages is left alone for an hour at most, and one that wants nothing for a moment")
    func absurdWaits() {
        var budget = SendBudget(rate: nil, burst: 1)
        let start = MonotonicInstant(nanoseconds: 0)
        budget.hold(for: .zero, now: start)
        let granted = [budget.take(now: start), budget.take(now: start + .milliseconds(100))]
        #expect(granted == [false, true])
        budget.hold(for: .seconds(Int64.max / 1_000_000_000), now: start)
        #expect(budget.nextGrant(now: start) == start + .seconds(3600))
    }
}
