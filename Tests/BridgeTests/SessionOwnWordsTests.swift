import BridgeTestSupport
import ChatModel
import Dialects
import JSONText
import Testing
import Upstream

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Own words that come back")
struct SessionOwnWordsTests {
    private typealias S = SessionStage

    private static func outage(_ stage: SessionStage) {
        stage.loseLink()
        stage.harness.advance(by: .seconds(2))
        _ = stage.heard()
    }

    private static func own(_ text: String, id: String) -> String {
        "{\"kind\":\"message\",\"self\":true,\"id\":\"\(id)\",\"sender\":{\"name\":\"acct\"},\"text\":\"\(text)\"}"
    }

    @Test("hundreds of messages of ours, whose ids nobody told us, are not shown again by a history")
    func manyUnknownIDs() throws {
        let stage = try SessionStage(
            StubDialect {
                $0.history = .socket
                $0.messageIDOrigin = .server
                $0.identity = .single
            }
        ) { $0.historyLimit = 5000 }
        stage.harness.start()
        stage.enter("bob")
        stage.enter("eve", 2)
        let one = S.message("1", "one", at: -60)
        stage.backend(S.history([one]))
        for number in 1...500 { stage.harness.send(1, "PRIVMSG #lobby :text \(number)") }
        #expect(stage.said(2).count == 500)
        Self.outage(stage)
        stage.backend(S.history([one] + (1...500).map { Self.own("<bob> text \($0)", id: "\($0 + 1)") }))
        #expect(stage.said(2) == [])
    }

    /// A wire that was found to send our messages back, with one message that was lost with its link.
    private static func learned() throws -> SessionStage {
        let stage = try SessionStage(
            StubDialect {
                $0.messageIDOrigin = .server
                $0.identity = .single
            })
        stage.harness.start()
        stage.enter("bob", 1, caps: "echo-message standard-replies")
        stage.enter("eve", 2)
        stage.harness.send(1, "PRIVMSG #lobby :one")
        stage.backend(own("<bob> one", id: "8"))
        stage.harness.send(1, "PRIVMSG #lobby :two")
        outage(stage)
        _ = stage.heard(2)
        return stage
    }

    @Test("when echoes stay away, what was written over this link counts, and not what was lost with another")
    func forgottenEcho() throws {
        let stage = try Self.learned()
        stage.harness.send(1, "PRIVMSG #lobby :three")
        stage.harness.advance(by: .milliseconds(10_100))
        #expect(stage.said(2) == ["bob: three"])
        #expect(stage.room.lane.outbox.entries.map(\.state) == [.unknownAfterDisconnect])
    }

    @Test("when echoes stay away because the link is dead, nothing is taken for delivered")
    func deadLink() throws {
        let stage = try Self.learned()
        stage.harness.upstreams[0].isSilent = true
        stage.harness.send(1, "PRIVMSG #lobby :three")
        stage.harness.advance(by: .milliseconds(10_100))
        #expect(stage.said(2) == [])
        stage.harness.advance(by: .seconds(60))
        #expect(stage.said(2) == [])
    }

    @Test("while it is open whether a message arrived, its author's later ones wait with it, and others' do not")
    func order() throws {
        let stage = try SessionStage(
            StubDialect {
                $0.history = .socket
                $0.messageIDOrigin = .server
                $0.identity = .single
                $0.confirmation = .receipt
            })
        stage.harness.start()
        stage.enter("bob")
        stage.enter("eve", 2)
        let one = S.message("1", "one", at: -60)
        stage.backend(S.history([one]))
        stage.harness.send(1, "PRIVMSG #lobby :first")
        stage.loseLink()
        // The history fails.
        stage.harness.advance(by: .seconds(15))
        _ = stage.sent()
        stage.harness.send(1, "PRIVMSG #lobby :second")
        stage.harness.send(2, "PRIVMSG #lobby :mine")
        #expect(stage.sent().compactMap { $0["text"]?.string } == ["<eve> mine"])
        stage.backend(S.history([one]))
        #expect(stage.sent().compactMap { $0["text"]?.string } == [])
        stage.harness.advance(by: CatchUp.patience)
        stage.backend(S.history([one]))
        #expect(stage.sent().compactMap { $0["text"]?.string } == ["<bob> first", "<bob> second"])
    }

    @Test("a history that is cut off behind what is known tells nothing of ours, at the first look and at the second")
    func cutOff() throws {
        let stage = try SessionStage(
            StubDialect {
                $0.history = .call
                $0.messageIDOrigin = .server
                $0.identity = .single
                $0.confirmation = .receipt
            })
        stage.harness.start()
        stage.enter("bob", 1, caps: "echo-message standard-replies")
        func row(_ number: Int, at age: Int64) -> ChatMessage {
            ChatMessage(
                id: ChatID("\(number)"), sender: ChatPerson(name: "ann"), text: "row \(number)",
                at: ChatTimestamp(milliseconds: stage.wall - age))
        }
        stage.harness.answerHistory(.success([row(1, at: 60_000)]), isComplete: true)
        stage.harness.advance(by: .seconds(1))
        stage.harness.send(1, "PRIVMSG #lobby :mine")
        #expect(stage.sent().compactMap { $0["text"]?.string } == ["<bob> mine"])
        stage.loseLink()
        stage.harness.advance(by: .seconds(2))
        // The backend counts whole seconds: what was said after ours bears an earlier time.
        let cut = (2...6).map { row($0, at: 4000) }
        for _ in 0..<40 {
            stage.harness.answerHistory(.success(cut), isComplete: true)
            stage.harness.advance(by: .seconds(1))
        }
        #expect(stage.sent().compactMap { $0["text"]?.string } == [])
        let heard = stage.heard()
        let told = heard.filter { $0.contains("FAIL") && $0.contains("mine") }
        #expect(told.count == 1 && told.allSatisfy { $0.contains("not known") }, "\(heard)")
    }

    @Test("a full page whose oldest second is not all there tells nothing of that second: it is asked on")
    func cutWithinTheSecond() throws {
        let stage = try SessionStage(
            StubDialect {
                $0.history = .call
                $0.messageIDOrigin = .server
                $0.identity = .single
                $0.confirmation = .none
            }
        ) { $0.historyLimit = 5 }
        stage.harness.start()
        stage.enter("bob", 1, caps: "echo-message standard-replies")
        func row(_ number: Int, at age: Int64, _ text: String? = nil) -> ChatMessage {
            ChatMessage(
                id: ChatID("\(number)"), sender: ChatPerson(name: text == nil ? "ann" : "bridge"),
                text: text ?? "row \(number)", at: ChatTimestamp(milliseconds: S.base + age), isSelf: text != nil)
        }
        stage.harness.answerHistory(.success([row(1, at: -60_000)]), isComplete: true)
        stage.backend(S.message("2", "row 2"))
        stage.backend(S.message("3", "row 3"))
        stage.harness.send(1, "PRIVMSG #lobby :mine")
        #expect(stage.sent().compactMap { $0["text"]?.string } == ["<bob> mine"])
        stage.loseLink()
        stage.harness.advance(by: .seconds(2))
        let mine = row(4, at: 0, "<bob> mine")
        // The backend counts whole seconds, and gives the first of the oldest one.
        let cut = [row(2, at: 0), row(3, at: 0), row(6, at: 1000), row(7, at: 1000), row(8, at: 1000)]
        let all = [row(1, at: -60_000), row(2, at: 0), row(3, at: 0), mine] + cut.dropFirst(2)
        for _ in 0..<40 {
            for query in stage.harness.takeHistoryQueries() {
                stage.harness.answerHistory(.success(query.limit == 5 ? cut : all), isComplete: query.limit != 5)
            }
            stage.harness.advance(by: .seconds(1))
        }
        #expect(stage.sent().compactMap { $0["text"]?.string } == [])
        let heard = stage.heard()
        #expect(!heard.contains { $0.contains("FAIL") }, "\(heard)")
    }

    /// A backend whose history is called for from a message on.
    private static func askedForward(
        confirmation: DialectTraits.Confirmation, limit: Int = 50
    ) throws -> SessionStage {
        var dialect = StubDialect {
            $0.history = .call
            $0.messageIDOrigin = .server
            $0.identity = .single
            $0.confirmation = confirmation
        }
        dialect.calls = StubCalls(takesAfter: true)
        let stage = try SessionStage(dialect) { $0.historyLimit = limit }
        stage.harness.start()
        stage.enter("bob", 1, caps: "echo-message standard-replies")
        return stage
    }

    @Test(
        "what follows a message, all of it, tells what became of ours: it goes again where that lacks it",
        arguments: [
            ([], ["<bob> mine"]), (["3 ann row"], ["<bob> mine"]), (["3 bridge <bob> mine"], []),
            (["3 ann row", "4 bridge <bob> mine"], []),
        ])
    func whatFollows(_ said: [String], _ again: [String]) throws {
        let stage = try Self.askedForward(confirmation: .none)
        func row(_ words: String, at age: Int64) -> ChatMessage {
            let words = words.split(separator: " ", maxSplits: 2).map(String.init)
            return ChatMessage(
                id: ChatID(words[0]), sender: ChatPerson(name: words[1]), text: words[2],
                at: ChatTimestamp(milliseconds: S.base + age), isSelf: words[1] == "bridge")
        }
        stage.harness.answerHistory(.success([row("1 ann row", at: -60_000)]), isComplete: true)
        for _ in 0..<3 { stage.harness.answerHistory(.success([]), isComplete: false) }
        stage.backend(S.message("2", "row 2"))
        stage.harness.send(1, "PRIVMSG #lobby :mine")
        #expect(stage.sent().compactMap { $0["text"]?.string } == ["<bob> mine"])
        _ = stage.harness.takeHistoryQueries()
        stage.loseLink()
        stage.harness.advance(by: .seconds(2))
        let rows = said.map { row($0, at: 1000) }
        for _ in 0..<40 {
            for query in stage.harness.takeHistoryQueries() {
                #expect(query.after != nil)
                let isNew = query.after == ChatID("2")
                stage.harness.answerHistory(.success(isNew ? rows : []), isComplete: false)
            }
            stage.harness.advance(by: .seconds(1))
        }
        #expect(stage.sent().compactMap { $0["text"]?.string } == again)
        let heard = stage.heard()
        #expect(!heard.contains { $0.contains("FAIL") }, "\(heard)")
    }

    /// A backend's rows, of which it gives some from a message on.
    private final class ForwardLog {
        let stage: SessionStage
        private let most: Int
        private var rows: [ChatMessage] = []

        init(_ stage: SessionStage, most: Int = .max) { (self.stage, self.most) = (stage, most) }

        func add(_ text: String, isOurs: Bool = false) {
            rows.append(
                ChatMessage(
                    id: ChatID("\(rows.count + 1)"), sender: ChatPerson(name: isOurs ? "bridge" : "ann"), text: text,
                    at: ChatTimestamp(milliseconds: stage.wall), isSelf: isOurs))
        }

        func answer() {
            for query in stage.harness.takeHistoryQueries() {
                let behind = rows.firstIndex { $0.id == query.after } ?? -1
                let page = rows[(behind + 1)...].prefix(min(query.limit ?? .max, most))
                stage.harness.answerHistory(.success(Array(page)), isComplete: false)
            }
        }

        func pass(seconds: Int) {
            for _ in 0..<seconds {
                answer()
                stage.harness.advance(by: .seconds(1))
            }
        }

        /// Messages of bob, each acknowledged.
        func addOwn(_ count: Int) throws {
            for number in 1...count {
                stage.harness.send(1, "PRIVMSG #lobby :mine \(number)")
                let ref = try #require(stage.sent().last { $0["text"] != nil }?["id"]?.string)
                add("<bob> mine \(number)", isOurs: true)
                stage.backend(
                    "{\"kind\":\"receipt\",\"state\":\"sent\",\"ref\":\"\(ref)\",\"ids\":[\"\(rows.count)\"]}")
                stage.harness.advance(by: .seconds(1))
            }
        }
    }

    @Test("a page of own messages, acknowledged before, is not the end of what is asked for forward")
    func pageOfOwnMessages() throws {
        let stage = try Self.askedForward(confirmation: .receipt)
        let log = ForwardLog(stage, most: 10)
        log.add("first")
        log.pass(seconds: 3)
        try log.addOwn(38)
        stage.loseLink()
        log.add("missed")
        log.pass(seconds: 30)
        #expect(stage.heard().count { $0 == "ann: missed" } == 1)
    }

    @Test("the second look reads as far as the first: what came into the history meanwhile is not sent again")
    func secondLookReadsOn() throws {
        let stage = try Self.askedForward(confirmation: .receipt, limit: 10)
        let log = ForwardLog(stage)
        log.add("first")
        log.pass(seconds: 3)
        try log.addOwn(38)
        stage.harness.send(1, "PRIVMSG #lobby :late")
        #expect(stage.sent().compactMap { $0["text"]?.string } == ["<bob> late"])
        stage.loseLink()
        log.pass(seconds: 4)
        log.add("<bob> late", isOurs: true)
        log.pass(seconds: 60)
        #expect(stage.sent().compactMap { $0["text"]?.string } == [])
        #expect(stage.heard().count { $0 == "bob: late" } == 1)
    }
}
