import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import JSONText
import Testing
import Upstream

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Catching up")
struct SessionHistoryTests {
    private typealias S = SessionStage

    private static func stage(
        _ source: DialectTraits.HistorySource = .socket, limit: Int = 50,
        _ change: (inout DialectTraits) -> Void = { _ in }
    ) throws -> SessionStage {
        let stage = try SessionStage(
            StubDialect {
                $0.history = source
                $0.messageIDOrigin = .server
                change(&$0)
            }
        ) { $0.historyLimit = limit }
        stage.harness.start()
        stage.enter("bob")
        return stage
    }

    /// Past its first history, with message 1 in it.
    private static func settled(
        _ source: DialectTraits.HistorySource = .socket, limit: Int = 50,
        _ change: (inout DialectTraits) -> Void = { _ in }
    ) throws -> SessionStage {
        let stage = try stage(source, limit: limit, change)
        stage.backend(S.history([S.message("1", "one", at: -60)]))
        _ = (stage.heard(), stage.sent(), stage.seen())
        return stage
    }

    private static func outage(_ stage: SessionStage) {
        stage.loseLink()
        stage.harness.advance(by: .seconds(2))
        _ = stage.heard()
    }

    @Test("the first history is shown to nobody, and remembered for replies and against doubling")
    func firstHistory() throws {
        let stage = try Self.stage()
        #expect(stage.sent().map { $0["limit"]?.integer } == [50])
        stage.backend(S.message("2", "live", at: 1))
        #expect(stage.said() == [], "what is live waits for what was before")
        stage.backend(S.history([S.message("1", "old", at: -5), S.message("2", "live", at: 1)]))
        #expect(stage.said() == ["ann: live"])
        #expect(stage.room.recent.entry(upstreamID: ChatID("1"))?.excerpt == "old")
        stage.backend(S.message("1", "old", at: -5))
        #expect(stage.said() == [])
        #expect(stage.harness.violations == [])
    }

    @Test("a message that the first history has and whose own frame comes after it is shown, once")
    func frameBehindHistory() throws {
        let stage = try Self.stage()
        stage.harness.advance(by: .seconds(1))
        stage.backend(S.history([S.message("1", "old", at: -5), S.message("2", "slow", at: 1)]))
        #expect(stage.said() == [], "the history itself is no news")
        stage.backend(S.message("2", "slow", at: 1))
        #expect(stage.said() == ["ann: slow"])
        for (id, text, at) in [("1", "old", -5), ("2", "slow", 1)] {
            stage.backend(S.message(id, text, at: Int64(at)))
        }
        #expect(stage.said() == [])
        #expect(stage.harness.violations == [])
    }

    @Test("of the first history as many as the setting says are remembered, and none are asked for with 0")
    func historyLimit() throws {
        let stage = try Self.stage(limit: 2)
        stage.backend(S.history((1...5).map { S.message("\($0)", "m", at: Int64($0) - 100) }))
        #expect(
            (1...5).map { stage.room.recent.entry(upstreamID: ChatID("\($0)")) != nil } == [
                false, false, false, true, true,
            ])
        let none = try Self.stage(limit: 0)
        #expect(none.seen() == ["0 connect"])
        none.backend(S.message("1", "live"))
        #expect(none.said() == ["ann: live"])
    }

    @Test("after an outage what was missed is shown in order, with its own times, before what came live meanwhile")
    func outage() throws {
        let stage = try Self.settled()
        stage.enter("eve", 2, caps: "server-time message-tags")
        Self.outage(stage)
        stage.backend(S.message("4", "four", at: 3))
        stage.backend(
            S.history([
                S.message("1", "one", at: -60), S.message("3", "three", at: 2), S.message("2", "two", at: 1),
                S.message("4", "four", at: 3),
            ]))
        let lines = stage.heard(1)
        #expect(lines.first?.contains("The link to chat.example is back") == true)
        #expect(lines.filter { $0.hasPrefix("ann: ") } == ["ann: two", "ann: three", "ann: four"])
        let times = stage.harness.bridge.rooms[0].recent.entry(upstreamID: ChatID("2"))?.at
        #expect(times == ChatTimestamp(milliseconds: S.base + 1000))
        stage.backend(S.message("5", "five", at: 4))
        #expect(stage.said() == ["ann: five"])
    }

    @Test("a history that is told newest first, in whole seconds, is shown in the order in which it was said")
    func newestFirst() throws {
        let stage = try Self.stage()
        stage.backend(
            S.history(
                [("k5", -20), ("k4", -30), ("k3", -40), ("k2", -50), ("k1", -60)].map { S.message($0, $0, at: $1) }))
        _ = stage.heard()
        Self.outage(stage)
        stage.backend(
            S.history(
                [("f", 3), ("e", 2), ("d", 2), ("c", 2), ("b", 1), ("a", 1), ("k5", -20)].map {
                    S.message($0, $0, at: $1)
                }))
        #expect(stage.said() == ["a", "b", "c", "d", "e", "f"].map { "ann: " + $0 })
        // Nothing in this one says how it is told, however often it is asked for, but those before it did.
        Self.outage(stage)
        for _ in 0..<3 {
            stage.backend(S.history([("i", 9), ("h", 9), ("g", 9)].map { S.message($0, $0, at: $1) }))
        }
        #expect(stage.said() == ["g", "h", "i"].map { "ann: " + $0 })
    }

    @Test("a history that does not reach back is asked for again, wider, then for as many as are shown")
    func widening() throws {
        let stage = try Self.settled(limit: 2)
        Self.outage(stage)
        func page(_ from: Int) -> String { S.history((from...9).map { S.message("\($0)", "m\($0)", at: Int64($0)) }) }
        stage.backend(page(8))
        #expect(stage.said() == [])
        stage.backend(page(2))
        #expect(stage.said() == [])
        #expect(stage.sent().map { $0["limit"]?.integer } == [2, 8, 1000])
        stage.backend(
            S.history([S.message("1", "one", at: -60)] + (2...9).map { S.message("\($0)", "m\($0)", at: Int64($0)) }))
        #expect(stage.said() == (2...9).map { "ann: m\($0)" })
        #expect(stage.sent().isEmpty)
    }

    @Test("fewer than asked for are all there are, when something known is among them")
    func shortPage() throws {
        let stage = try Self.settled()
        Self.outage(stage)
        stage.backend(S.history([S.message("7", "seven", at: 1)]))
        #expect(stage.said() == [])
        stage.backend(S.history([S.message("0", "zero", at: -70), S.message("7", "seven", at: 1)]))
        #expect(stage.said() == ["ann: seven"])
        #expect(stage.sent().count == 2)
    }

    @Test("in a room that was empty when it opened, everything later is new")
    func emptyRoom() throws {
        let stage = try Self.stage()
        stage.backend(S.history([]))
        Self.outage(stage)
        stage.backend(S.history([S.message("1", "first", at: 1)]))
        #expect(stage.said() == ["ann: first"])
    }

    @Test("a history that does not come delays the room for ten seconds, is noted, and tried again")
    func noAnswer() throws {
        let stage = try Self.settled()
        Self.outage(stage)
        stage.backend(S.message("3", "three", at: 3))
        stage.harness.advance(by: .milliseconds(8_990))
        #expect(stage.said().isEmpty)
        stage.harness.advance(by: .milliseconds(20))
        #expect(stage.said() == ["ann: three"])
        #expect(stage.notes("history-failed").count == 1)
        // The gap stays where it was.
        Self.outage(stage)
        stage.backend(
            S.history([S.message("1", "one", at: -60), S.message("2", "two", at: 2), S.message("3", "three", at: 3)]))
        #expect(stage.said() == ["ann: two"])
    }

    @Test("an answer that comes too late still closes the gap")
    func lateAnswer() throws {
        let stage = try Self.settled()
        Self.outage(stage)
        stage.harness.advance(by: .seconds(11))
        stage.backend(S.message("3", "three", at: 3))
        #expect(stage.said() == ["ann: three"])
        stage.backend(
            S.history([S.message("1", "one", at: -60), S.message("2", "two", at: 2), S.message("3", "three", at: 3)]))
        #expect(stage.said() == ["ann: two"])
    }

    @Test("a refused request for history releases the room at once")
    func refusedFetch() throws {
        let stage = try Self.settled()
        Self.outage(stage)
        let ref = stage.sent().last?["ref"]?.string ?? ""
        stage.backend(S.message("3", "three", at: 3))
        stage.backend("{\"kind\":\"error\",\"ref\":\"h:\(ref)\",\"text\":\"FORBIDDEN\"}")
        #expect(stage.said() == ["ann: three"])
    }

    @Test("a wire that cannot ask the first time is asked after an outage, and nobody is alarmed")
    func cannotAskFirst() throws {
        let stage = try SessionStage(StubDialect(unsupported: ["fetch"]) { $0.history = .socket })
        stage.harness.start()
        stage.enter("bob")
        stage.backend(S.message("1", "live"))
        #expect(stage.said() == ["ann: live"])
        #expect(stage.notes("history-failed").isEmpty)
        Self.outage(stage)
        stage.backend(S.message("2", "on"))
        #expect(stage.said() == ["ann: on"])
        #expect(stage.notes("history-failed").count == 1)
    }

    @Test("a first history that fails is not made up for by showing the past later")
    func firstFails() throws {
        let stage = try Self.stage()
        stage.harness.advance(by: .seconds(11))
        Self.outage(stage)
        stage.backend(S.history([S.message("1", "past", at: -600), S.message("2", "missed", at: 12)]))
        #expect(stage.said() == ["ann: missed"])
    }

    @Test("when too much comes meanwhile, the room goes on without the rest, and says so")
    func flood() throws {
        let stage = try Self.settled()
        Self.outage(stage)
        for number in 2...CatchUp.maxHeldEvents { stage.backend(S.message("\(number)", "m", at: Int64(number))) }
        #expect(stage.said() == [])
        stage.backend(S.message("x", "last", at: 9999))
        let lines = stage.heard()
        #expect(lines.contains { $0.contains("older messages may come late or not at all") })
        #expect(lines.filter { $0.hasPrefix("ann: ") }.count == CatchUp.maxHeldEvents)
        #expect(lines.last == "ann: last")
    }

    @Test("of each link it is said anew that older messages may come late, also where the one before was lost first")
    func lateOnEachLink() throws {
        let stage = try Self.settled()
        Self.outage(stage)
        stage.backend(S.message("2", "two", at: 2))
        stage.harness.advance(by: CatchUp.patience - .milliseconds(2100))
        stage.loseLink()
        stage.harness.advance(by: CatchUp.patience + .seconds(5))
        #expect(stage.heard().count { $0.contains("older messages may come late") } == 2)
    }

    @Test("who enters hears that older messages may come late as long as they may", arguments: [false, true])
    func lateForNewcomers(isLinkLost: Bool) throws {
        let stage = try Self.settled()
        func told(_ client: UInt64) -> Int {
            stage.harness.connect(client)
            for line in ["NICK eve\(client)", "USER u 0 * :r", "JOIN #lobby"] { stage.harness.send(client, line) }
            return stage.heard(client).count { $0.contains("older messages may come late") }
        }
        Self.outage(stage)
        stage.backend(S.message("3", "three", at: 3))
        #expect(told(2) == 0, "as long as nothing was shown behind what is missing")
        stage.harness.advance(by: CatchUp.patience)
        #expect(stage.heard(2).contains { $0.contains("older messages may come late") })
        #expect(told(3) == 1)
        if isLinkLost {
            stage.loseLink()
            #expect(told(4) == 1)
            stage.harness.advance(by: .seconds(3))
        } else {
            stage.harness.advance(by: CatchUp.retryPauses[0])
        }
        #expect(told(5) == 1)
        stage.backend(
            S.history([
                S.message("1", "one", at: -60), S.message("2", "two", at: 2), S.message("3", "three", at: 3),
            ]))
        #expect(stage.said(3) == ["ann: two"])
        #expect(told(6) == 0)
    }

    @Test("what comes late stands behind a word that says so, also for who reads it later", arguments: [true, false])
    func lateInTheOrder(isAnythingMissing: Bool) throws {
        let stage = try Self.settled()
        Self.outage(stage)
        stage.backend(S.message("3", "three", at: 3))
        // Whoever was there is gone before it comes.
        stage.harness.advance(by: CatchUp.patience)
        let missed = isAnythingMissing ? [S.message("2", "two", at: 2)] : []
        stage.harness.advance(by: CatchUp.retryPauses[0])
        stage.backend(S.history([S.message("1", "one", at: -60)] + missed + [S.message("3", "three", at: 3)]))
        let live = stage.heard(1).compactMap { line in
            ["three", "comes late", "two"].first { line.hasSuffix(": " + $0) || line.contains($0 + ":") }
        }
        #expect(live == (isAnythingMissing ? ["three", "comes late", "two"] : ["three"]))
        stage.harness.connect(9)
        stage.harness.send(9, "CAP REQ :draft/chathistory batch server-time message-tags")
        for line in ["NICK nina", "USER u 0 * :r", "CAP END", "JOIN #lobby"] { stage.harness.send(9, line) }
        _ = stage.heard(9)
        stage.harness.send(9, "CHATHISTORY LATEST #lobby * 10")
        let page = stage.heard(9).compactMap { line in
            ["three", "comes late", "two"].first { line.hasSuffix(": " + $0) || line.contains($0 + ":") }
        }
        #expect(page.suffix(3) == (isAnythingMissing ? ["three", "comes late", "two"] : ["three"]))
    }

    @Test("what a page brings that was made before newer messages were shown stands behind that word too")
    func lateFromAnOldPage() throws {
        let stage = try Self.settled()
        Self.outage(stage)
        stage.backend(S.message("3", "three", at: 3))
        stage.harness.advance(by: CatchUp.patience)
        stage.backend(S.history([S.message("1", "one", at: -60), S.message("2", "two", at: 2)]))
        let live = stage.heard(1).compactMap { line in
            ["three", "comes late", "two"].first { line.hasSuffix(": " + $0) || line.contains($0 + ":") }
        }
        #expect(live == ["three", "comes late", "two"])
    }

    @Test("bytes are bounded as events are")
    func floodOfBytes() throws {
        let stage = try Self.settled()
        Self.outage(stage)
        let big = String(repeating: "x", count: 1024 * 1024)
        for number in 2...5 { stage.backend(S.message("\(number)", big, at: Int64(number))) }
        #expect(stage.notes("history-skipped").count == 1)
    }

    @Test("bytes are bounded whatever they are of", arguments: ["receipt", "join", "reaction"])
    func floodOfOtherBytes(kind: String) throws {
        let stage = try Self.settled()
        Self.outage(stage)
        let big = String(repeating: "x", count: 1024 * 1024)
        let person = "{\"id\":\"u\",\"name\":\"\(big)\"}"
        for _ in 2...5 {
            stage.backend(
                "{\"kind\":\"\(kind)\",\"state\":\"read\",\"ids\":[\"1\"],\"by\":\(person),\"user\":\(person),"
                    + "\"target\":\"1\",\"emoji\":\"\(kind == "reaction" ? big : "")\"}")
        }
        #expect(stage.notes("history-skipped").count == 1)
    }

    @Test("edits and deletions that come meanwhile follow the messages that they are about")
    func editsWait() throws {
        let stage = try Self.settled()
        Self.outage(stage)
        stage.backend(#"{"kind":"edit","id":"2","text":"better","sender":{"id":"u-ann","name":"ann"}}"#)
        #expect(stage.said() == [])
        stage.backend(S.history([S.message("1", "one", at: -60), S.message("2", "two", at: 1)]))
        #expect(stage.said() == ["ann: two", "ann: * better"])
    }

    @Test("after a very long outage the newest thousand are shown")
    func longOutage() throws {
        let stage = try Self.settled(limit: 5000)
        Self.outage(stage)
        stage.backend(
            S.history([S.message("1", "one", at: -60)] + (2...1502).map { S.message("\($0)", "m\($0)", at: Int64($0)) })
        )
        let lines = stage.heard()
        #expect(lines.contains { $0.contains("501 older messages were said during the outage") })
        #expect(lines.filter { $0.hasPrefix("ann: ") }.count == CatchUp.maxShown)
        #expect(lines.last == "ann: m1502")
    }

    // MARK: - Pushed

    @Test("a history that the backend sends by itself opens the room and is merged")
    func pushed() throws {
        let stage = try Self.stage(.pushed) {
            $0.opening = .subscribes
            $0.waitsForReady = true
        }
        #expect(stage.seen() == ["0 connect", "0 subscribe"])
        stage.backend(S.history([S.message("1", "one", at: -60)]))
        #expect(stage.harness.bridge.roomStates[0].isUp)
        #expect(stage.said() == [])
        Self.outage(stage)
        stage.backend(S.history([S.message("1", "one", at: -60), S.message("2", "two", at: 1)]))
        #expect(stage.said() == ["ann: two"])
        #expect(stage.seen().suffix(2) == ["0 connect", "0 subscribe"])
    }

    @Test("a pushed history that does not reach back is followed by a request")
    func pushedTooShort() throws {
        let stage = try Self.settled(.pushed, limit: 1)
        Self.outage(stage)
        stage.backend(S.history([S.message("3", "three", at: 3)]))
        #expect(stage.sent().map { $0["limit"]?.integer } == [4])
        stage.backend(
            S.history([S.message("1", "one", at: -60), S.message("2", "two", at: 2), S.message("3", "three", at: 3)]))
        #expect(stage.said() == ["ann: two", "ann: three"])
    }

    // MARK: - Calls

    private static func message(_ id: String, _ text: String, at seconds: Int64) -> ChatMessage {
        ChatMessage(
            id: ChatID(id), sender: ChatPerson(id: ChatID("u-ann"), name: "ann"), text: text,
            at: ChatTimestamp(milliseconds: S.base + seconds * 1000))
    }

    /// What was asked for since the last look.
    private static func asked(_ stage: SessionStage) -> [HistoryQuery] {
        stage.harness.takeHistoryQueries()
    }

    private static func answer(
        _ stage: SessionStage, _ outcome: Result<[ChatMessage], BackendCallFailure>, isComplete: Bool = false
    ) {
        stage.harness.answerHistory(outcome, isComplete: isComplete)
    }

    @Test("a full page within the second of the newest known message is no proof that nothing is missing")
    func cutWithinASecond() throws {
        let stage = try Self.settled(limit: 3)
        Self.outage(stage)
        func page(_ newest: Int) -> String {
            S.history((1...newest).map { S.message("\($0)", "m\($0)", at: -60) })
        }
        stage.backend(page(3))
        #expect(stage.said() == [])
        stage.backend(page(5))
        #expect(stage.sent().map { $0["limit"]?.integer } == [3, 12])
        #expect(stage.said() == (2...5).map { "ann: m\($0)" })
    }

    @Test("a full page of that second without its newest is none either, whatever is known of it")
    func cutBehindWhatIsKnown() throws {
        let stage = try Self.settled(limit: 3)
        for id in 2...4 { stage.backend(S.message("\(id)", "m\(id)", at: -60)) }
        _ = stage.said()
        Self.outage(stage)
        func page(_ newest: Int) -> String {
            S.history((1...newest).map { S.message("\($0)", "m\($0)", at: -60) })
        }
        stage.backend(page(3))
        #expect(stage.said() == [])
        stage.backend(page(6))
        #expect(stage.sent().map { $0["limit"]?.integer } == [3, 12])
        #expect(stage.said() == ["ann: m5", "ann: m6"])
    }

    @Test("beside the socket the same: first silent, then what was missed, wider where it must be")
    func calls() throws {
        let stage = try Self.stage(.call, limit: 2)
        var asked: [HistoryQuery] { Self.asked(stage) }
        #expect(asked == [HistoryQuery(room: "lobby", limit: 2)])
        Self.answer(stage, .success([Self.message("1", "one", at: -60)]))
        #expect(stage.said() == [])
        Self.outage(stage)
        let since = ChatTimestamp(milliseconds: S.base - 61_000)
        #expect(asked == [HistoryQuery(room: "lobby", after: ChatID("1"), since: since, limit: 2)])
        Self.answer(stage, .success([Self.message("3", "three", at: 3), Self.message("4", "four", at: 4)]))
        #expect(asked.map(\.limit) == [8])
        Self.answer(stage, .success((1...4).map { Self.message("\($0)", "m\($0)", at: $0 == 1 ? -60 : Int64($0)) }))
        #expect(stage.said() == ["ann: m2", "ann: m3", "ann: m4"])
    }

    @Test("the answer to a call of an earlier link is not taken for that of this one")
    func staleAnswer() throws {
        let stage = try Self.stage(.call)
        Self.answer(stage, .success([Self.message("1", "one", at: -60)]))
        Self.outage(stage)
        _ = Self.asked(stage)
        Self.outage(stage)
        #expect(Self.asked(stage).isEmpty, "one call at a time")
        Self.answer(stage, .success([Self.message("1", "one", at: -60)]))
        #expect(Self.asked(stage).count == 1)
        Self.answer(stage, .success([Self.message("1", "one", at: -60), Self.message("2", "two", at: 1)]))
        #expect(stage.said() == ["ann: two"])
    }

    @Test("a call that fails releases the room with a note")
    func failedCall() throws {
        let stage = try Self.stage(.call)
        stage.backend(S.message("9", "live"))
        Self.answer(stage, .failure(BackendCallFailure(sentence: "not there", status: 404)))
        #expect(stage.said() == ["ann: live"])
        #expect(stage.notes("history-failed").first?.text.contains("404") == true)
        Self.answer(stage, .success([Self.message("1", "nobody asked", at: 1)]))
        #expect(stage.said() == [])
    }

    @Test(
        "where all of it is too large, the most that came is shown, and what is missing is told; nothing is asked again"
    )
    func tooLarge() throws {
        let stage = try Self.stage(.call, limit: 2)
        Self.answer(stage, .success([Self.message("1", "one", at: -60)]))
        Self.outage(stage)
        Self.answer(stage, .success((8...9).map { Self.message("\($0)", "m\($0)", at: Int64($0)) }))
        Self.answer(stage, .success((2...9).map { Self.message("\($0)", "m\($0)", at: Int64($0)) }))
        #expect(Self.asked(stage).last?.limit == nil)
        Self.answer(stage, .failure(BackendCallFailure(sentence: "the answer is too large", isFinal: true)))
        let heard = stage.heard()
        #expect(heard.filter { $0.hasPrefix("ann: ") } == (2...9).map { "ann: m\($0)" })
        #expect(heard.contains { $0.contains("Older messages may be missing") }, "\(heard)")
        #expect(stage.notes("history-short").count == 1)
        stage.harness.advance(by: .seconds(1000))
        #expect(Self.asked(stage).isEmpty)
        stage.backend(S.message("10", "on", at: 10))
        #expect(stage.said() == ["ann: on"])
    }

    @Test("where nothing came and nothing ever will, the room is told, and nothing is asked again")
    func nothingEver() throws {
        let stage = try Self.stage(.call, limit: 2)
        Self.answer(stage, .success([Self.message("1", "one", at: -60)]))
        Self.outage(stage)
        _ = Self.asked(stage)
        Self.answer(stage, .failure(BackendCallFailure(sentence: "redirected elsewhere", isFinal: true)))
        #expect(stage.heard().contains { $0.contains("is missing: the backend cannot be asked for it") })
        stage.harness.advance(by: .seconds(1000))
        #expect(Self.asked(stage).isEmpty)
    }

    // MARK: - Without ids

    @Test("messages without ids are told apart by sender, text and time, and two live ones never melt into one")
    func withoutIDs() throws {
        let stage = try Self.stage()
        stage.backend(S.history([]))
        stage.backend(S.message(nil, "ok", at: 1))
        stage.backend(S.message(nil, "ok", at: 1))
        #expect(stage.said() == ["ann: ok", "ann: ok"])
        Self.outage(stage)
        stage.backend(
            S.history([S.message(nil, "ok", at: 1), S.message(nil, "ok", at: 1), S.message(nil, "ok", at: 2)]))
        #expect(stage.said() == ["ann: ok"])
        stage.backend(S.message(nil, "ok", at: 2))
        #expect(stage.said() == [], "the backend repeats itself after a history")
        stage.backend(S.message(nil, "ok", at: 3))
        #expect(stage.said() == ["ann: ok"])
    }

    @Test("a message without text is remembered and not shown")
    func withoutText() throws {
        let stage = try Self.settled()
        stage.backend(S.message("2", "", at: 1))
        #expect(stage.said() == [])
        stage.backend(S.message("2", "now with words", at: 1))
        #expect(stage.said() == [])
    }

    @Test("a name that a history gave is used for frames that have only the id")
    func roster() throws {
        let stage = try Self.stage()
        stage.backend(S.history([S.message("1", "one", at: -60)]))
        stage.backend(#"{"kind":"message","id":"2","sender":{"id":"u-ann"},"text":"no name"}"#)
        #expect(stage.said() == ["ann: no name"])
    }
}

@Suite("CatchUp")
struct CatchUpTests {
    private static func message(_ id: String?, _ seconds: Int64?) -> ChatMessage {
        ChatMessage(
            id: id.map { ChatID($0) }, text: id ?? "", at: seconds.map { ChatTimestamp(milliseconds: $0 * 1000) })
    }

    struct OrderRow: CustomTestStringConvertible {
        var testDescription: String
        var given: [(String, Int64?)]
        var expected: [String]
    }

    static let orders: [OrderRow] = [
        OrderRow(testDescription: "by time", given: [("b", 2), ("a", 1), ("c", 3)], expected: ["a", "b", "c"]),
        OrderRow(
            testDescription: "then by number", given: [("10", 1), ("9", 1), ("100", 1)], expected: ["9", "10", "100"]),
        OrderRow(
            testDescription: "else as the backend has it", given: [("x", 1), ("b", 1), ("10", 1)],
            expected: ["x", "b", "10"]),
        OrderRow(
            testDescription: "without a time behind what stood before", given: [("a", 5), ("b", nil), ("c", 1)],
            expected: ["c", "a", "b"]),
    ]

    @Test("messages are ordered by time, then by number", arguments: orders)
    func order(row: OrderRow) {
        let given = row.given.map { Self.message($0.0, $0.1) }
        #expect(CatchUp.order(of: given).compactMap { given[$0].id?.rawValue } == row.expected)
    }

    @Test("numbers of any length and hostile times order without a trap")
    func hostile() {
        let ids = ["", "00", "99999999999999999999999", "9", "-1", "1e3"]
        let messages =
            ids.map { ChatMessage(id: ChatID($0), text: "", at: ChatTimestamp(milliseconds: .min)) }
            + [ChatMessage(text: "", at: ChatTimestamp(milliseconds: .max))]
        #expect(CatchUp.order(of: messages).count == messages.count)
        let catchUp = CatchUp()
        catchUp.saw(id: nil, at: ChatTimestamp(milliseconds: .max), wall: ChatTimestamp(milliseconds: .max))
        catchUp.closeGap()
        #expect(catchUp.firstMissed(in: messages, after: catchUp.mark, horizon: nil, tolerance: .max) <= messages.count)
    }

    @Test("those of one moment the other way round are no order of arrival")
    func momentsReversed() {
        let given: [(String, Int64)] = [("3", 1), ("2", 1), ("1", 1), ("6", 2), ("5", 2), ("4", 2), ("8", 3), ("7", 3)]
        let page = HistoryPage(
            given.map { Self.message($0.0, $0.1) }, sendersTellTime: true, mark: ChatTimestamp(milliseconds: 2000),
            wall: ChatTimestamp(milliseconds: 4000), end: 7
        ) { message in message.id.flatMap { Int($0.rawValue) }.flatMap { $0 < 7 ? $0 : nil } }
        #expect(!page.isByArrival)
        #expect(page.shown.map { page.told[$0].id?.rawValue } == (1...8).map(String.init))
    }

    @Test("ids that were learned late turn no page round")
    func learnedLate() {
        // Our own messages came to be known by the history before this one.
        let places = ["1": 0, "2": 4, "3": 1, "4": 5, "5": 2, "6": 3]
        let given: [(String, Int64)] = [("1", 1), ("2", 1), ("3", 1), ("4", 1), ("5", 2), ("6", 2), ("7", 2), ("8", 2)]
        let page = HistoryPage(
            given.map { Self.message($0.0, $0.1) }, sendersTellTime: false, mark: ChatTimestamp(milliseconds: 2000),
            wall: ChatTimestamp(milliseconds: 4000), end: 6
        ) { message in message.id.flatMap { places[$0.rawValue] } }
        #expect(!page.isByArrival)
        #expect(page.shown.map { page.told[$0].id?.rawValue } == (1...8).map(String.init))
    }

    @Test("what follows the mark was missed, and what was said in the same moment")
    func missed() {
        let catchUp = CatchUp()
        catchUp.saw(
            id: ChatID("2"), at: ChatTimestamp(milliseconds: 20_000), wall: ChatTimestamp(milliseconds: 30_000))
        catchUp.closeGap()
        catchUp.openGap(total: 0)
        let page = [("1", 10), ("9", 20), ("2", 20), ("3", 30)].map { Self.message($0.0, $0.1) }
        func first(_ page: [ChatMessage]) -> Int {
            catchUp.firstMissed(in: page, after: catchUp.mark, horizon: nil, tolerance: 1000)
        }
        #expect(first(page) == 1)
        #expect(first(page.filter { $0.id != ChatID("9") }) == 2)
        #expect(first(Array(page.prefix(1))) == 1)
        let wall = ChatTimestamp(milliseconds: 30_000)
        let told = HistoryPage(page, sendersTellTime: false, mark: catchUp.mark?.at, wall: wall, end: 0) { _ in nil }
        #expect(catchUp.reaches(told, isComplete: false, isCut: false, wall: wall) { _ in false })
    }
}
