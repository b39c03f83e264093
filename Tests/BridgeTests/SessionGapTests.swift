import BridgeTestSupport
import ChatModel
import Dialects
import JSONText
import Testing
import Upstream

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// What goes wrong while a room catches up: wrong clocks, short pages, answers that never come.
@Suite("Catching up against odds")
struct SessionGapTests {
    private typealias S = SessionStage

    /// Past its first history, with message 1 in it; bob and eve are there.
    private static func settled(
        limit: Int = 50, _ change: (inout DialectTraits) -> Void = { _ in }
    ) throws -> SessionStage {
        let stage = try SessionStage(
            StubDialect {
                $0.history = .socket
                $0.messageIDOrigin = .server
                change(&$0)
            }
        ) { $0.historyLimit = limit }
        stage.harness.start()
        stage.enter("bob", 1, caps: "echo-message standard-replies")
        stage.enter("eve", 2)
        stage.backend(S.history([S.message("1", "one", at: -60)]))
        _ = (stage.heard(1), stage.heard(2), stage.sent(), stage.seen())
        return stage
    }

    private static func outage(_ stage: SessionStage) {
        stage.loseLink()
        stage.harness.advance(by: .seconds(2))
        _ = stage.heard()
    }

    private static func own(_ text: String, id: String) -> String {
        "{\"kind\":\"message\",\"self\":true,\"id\":\"\(id)\",\"sender\":{\"name\":\"acct\"},\"text\":\"\(text)\"}"
    }

    private static let one = S.message("1", "one", at: -60)

    // MARK: - Clocks

    @Test("a message dated in the future hides nothing that comes after it", arguments: [60, 86_400, 250_000_000_000])
    func futureClock(seconds: Int64) throws {
        let stage = try Self.settled()
        let future = S.message("2", "two", at: seconds)
        stage.backend(future)
        #expect(stage.said() == ["ann: two"])
        Self.outage(stage)
        #expect((stage.sent().last?["since"]?.integer ?? 0) < S.base + 2000)
        stage.backend(S.history([Self.one, S.message("3", "three", at: 1), future]))
        #expect(stage.said() == ["ann: three"])
    }

    @Test("messages from the future in the first history do not make everything behind them news", arguments: [1, 50])
    func futureInFirstHistory(limit: Int) throws {
        let stage = try SessionStage(
            StubDialect {
                $0.history = .pushed
                $0.waitsForReady = true
                $0.opening = .subscribes
            }
        ) { $0.historyLimit = limit }
        stage.harness.start()
        stage.enter("bob")
        // Where senders tell the time, two of the oldest were said a day ahead of it.
        let log = (1...200).map { S.message("\($0)", "m\($0)", at: $0 == 40 || $0 == 41 ? 86_400 : Int64($0) - 300) }
        stage.backend(S.history(log))
        #expect(stage.said() == [])
        Self.outage(stage)
        stage.backend(S.history(log))
        #expect(stage.said() == [])
        Self.outage(stage)
        stage.backend(S.history(log + [S.message("201", "slow", at: -7200), S.message("202", "new", at: 9)]))
        #expect(stage.said() == ["ann: slow", "ann: new"])
    }

    @Test("what somebody with a slow clock said during the outage is shown", arguments: [-30, -3600])
    func slowClock(seconds: Int64) throws {
        let stage = try Self.settled()
        let known = S.message("2", "two", at: 1)
        stage.backend(known)
        _ = stage.said()
        Self.outage(stage)
        stage.backend(S.history([Self.one, known, S.message("3", "three", at: seconds)]))
        #expect(stage.said() == ["ann: three"])
    }

    @Test("what is older than the first history is not shown by a longer one")
    func olderThanFirst() throws {
        let stage = try Self.settled()
        Self.outage(stage)
        stage.backend(S.history([S.message("0", "zero", at: -90), Self.one, S.message("2", "two", at: 1)]))
        #expect(stage.said() == ["ann: two"])
    }

    @Test("what the ring of known ids has forgotten is not shown again")
    func forgottenIDs() throws {
        let stage = try Self.settled()
        var all: [String] = []
        for number in 2...(2 * SeenMessageIDs.capacity) {
            stage.harness.advance(by: .milliseconds(100))
            all.append(
                "{\"kind\":\"message\",\"id\":\"\(number)\",\"at\":\(stage.wall),\"text\":\"m\","
                    + "\"sender\":{\"id\":\"u-ann\",\"name\":\"ann\"}}")
            stage.backend(all[all.count - 1])
        }
        _ = stage.said()
        Self.outage(stage)
        stage.backend(S.history([Self.one] + all + [S.message("new", "new", at: 1000)]))
        #expect(stage.said() == ["ann: new"])
    }

    // MARK: - Short pages

    @Test("a page that ends short of the gap is not taken for all there is, and what is missing is told")
    func cappedPage() throws {
        let stage = try Self.settled {
            $0.confirmation = .receipt; $0.identity = .single
        }
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        _ = stage.sent()
        Self.outage(stage)
        let page = S.history((7...9).map { S.message("\($0)", "m\($0)", at: Int64($0)) })
        stage.backend(page)
        #expect(stage.said() == [])
        stage.backend(page)
        stage.backend(page)
        let lines = stage.heard()
        #expect(lines.filter { $0.hasPrefix("ann: ") } == ["ann: m7", "ann: m8", "ann: m9"])
        #expect(lines.contains { $0.contains("Older messages may be missing") })
        #expect(stage.sent().map { $0["kind"]?.string } == ["fetch", "fetch", "fetch"], "hello may have arrived")
        #expect(lines.contains { $0.contains("It is not known whether this was delivered") && $0.hasSuffix(": hello") })
        #expect(stage.room.lane.outbox.isEmpty)
    }

    @Test("an empty answer to the question what followed the newest known message is believed")
    func nothingSince() throws {
        let stage = try Self.settled {
            $0.confirmation = .receipt; $0.identity = .single
        }
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        _ = stage.sent()
        Self.outage(stage)
        stage.backend(S.history([]))
        stage.harness.advance(by: CatchUp.patience)
        stage.backend(S.history([]))
        #expect(stage.sent().map { $0["kind"]?.string } == ["fetch", "fetch", "message"])
    }

    // MARK: - Failures

    @Test(
        "a history that failed is asked for again with growing pauses while the link lives, and the room is told once")
    func retries() throws {
        let stage = try Self.settled()
        Self.outage(stage)
        _ = stage.sent()
        var notices = 0
        // The link has been up for a second.
        stage.harness.advance(by: .seconds(9))
        for pause in [10, 30, 120, 300, 300] {
            // The answer's time is over.
            notices += stage.heard().filter { $0.contains("older messages may come late") }.count
            stage.harness.advance(by: .milliseconds(pause * 1000 - 10))
            #expect(stage.sent().isEmpty)
            stage.harness.advance(by: .milliseconds(20))
            #expect(stage.sent().map { $0["kind"]?.string } == ["fetch"])
            stage.harness.advance(by: .milliseconds(9_990))
        }
        #expect(notices == 1)
        let live = S.message("3", "three", at: 700)
        stage.backend(live)
        #expect(stage.said() == ["ann: three"])
        stage.backend(S.history([Self.one, S.message("2", "two", at: 1), live]))
        #expect(stage.said() == ["ann: two"])
        #expect(stage.room.recent.entry(upstreamID: ChatID("2"))?.at == ChatTimestamp(milliseconds: S.base + 1000))
        stage.harness.advance(by: .seconds(3600))
        #expect(stage.sent().isEmpty)
    }

    @Test("a history that comes after more was said than the ring holds closes the gap, and repeats nothing")
    func outrun() throws {
        let stage = try Self.settled()
        Self.outage(stage)
        stage.harness.advance(by: .seconds(11))
        _ = stage.heard()
        let live = (3...(SeenMessageIDs.capacity + 10)).map { S.message("\($0)", "m", at: Int64($0)) }
        for line in live { stage.backend(line) }
        _ = stage.heard()
        stage.backend(S.history([S.message("0", "zero", at: -90), Self.one, S.message("2", "two", at: 2)] + live))
        let lines = stage.heard()
        #expect(lines.filter { $0.hasPrefix("ann: ") } == [])
        #expect(lines.contains { $0.contains("Older messages came too late to be shown") })
    }

    @Test("an answer that is more than a frame can be is not asked for again", arguments: [true, false])
    func tooLarge(byUs: Bool) throws {
        let stage = try Self.settled()
        Self.outage(stage)
        #expect(stage.sent().map { $0["limit"]?.integer } == [50])
        if byUs {
            stage.harness.sendFrame(0, [UInt8](repeating: 0x20, count: 4 * 1024 * 1024 + 1))
        } else {
            stage.harness.closeUpstream(0, code: 1009)
        }
        stage.harness.advance(by: .seconds(5))
        #expect(stage.sent().map { $0["limit"]?.integer } == [10])
        stage.backend(S.history([S.message("9", "nine", at: 9)]))
        let lines = stage.heard()
        #expect(lines.filter { $0.hasPrefix("ann: ") } == ["ann: nine"])
        #expect(lines.contains { $0.contains("Older messages may be missing") })
        #expect(stage.sent() == [])
        // Later links ask as usual.
        stage.loseLink()
        stage.harness.advance(by: .seconds(9))
        #expect(stage.sent().map { $0["limit"]?.integer } == [50])
    }

    @Test(
        "what came over a link that was lost before its history is shown in the end, with a word about what is missing"
    )
    func heldOverTwoLinks() throws {
        let stage = try SessionStage(StubDialect { $0.history = .socket })
        stage.harness.start()
        stage.enter("bob")
        let one = SessionStage.message("1", "one", at: 0)
        stage.backend(SessionStage.history([one]))
        stage.loseLink()
        while !stage.room.link.isUp { stage.harness.advance(by: .seconds(1)) }
        _ = stage.heard()
        stage.backend(SessionStage.message("3", "three", at: 34))
        stage.loseLink()
        stage.harness.acceptsConnections = false
        stage.harness.advance(by: CatchUp.patience)
        let heard = stage.heard().filter { $0.contains("may come late") || $0.hasPrefix("ann: ") }
        #expect(heard.count == 2)
        #expect(heard.first?.contains("cannot be fetched at the moment, so older messages may come late") == true)
        #expect(heard.last == "ann: three")
    }
}
