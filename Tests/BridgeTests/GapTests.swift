import BridgeTestSupport
import ChatModel
import Dialects
import IRCProtocol
import JSONText
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Holes: told once, in their place, with the right times.
@Suite("Gaps")
struct GapTests {
    private static func time(_ seconds: Double) -> String {
        let milliseconds = Int64(seconds * 1000)
        let text = String(milliseconds % 60_000 + 100_000)
        let minute = String(milliseconds / 60_000 + 100).dropFirst()
        return "2026-11-21T12:\(minute):\(text.dropFirst().prefix(2)).\(text.suffix(3))Z"
    }

    // MARK: - The sentence

    @Test(
        "the sentence names the times, and the dates when it is more than a day",
        arguments: [
            (0, 45_000, "between 12:00:00 and 12:00:45 UTC (45 s)"),
            (59_999, 60_001, "between 12:00:59.9 and 12:01:00.1 UTC (1 s)"),
            (1_250, 2_300, "between 12:00:01.2 and 12:00:02.3 UTC (1 s)"),
            (1_000, 10_950, "between 12:00:01.0 and 12:00:11.0 UTC (9 s)"),
            (1_900, 12_100, "between 12:00:01 and 12:00:13 UTC (10 s)"),
            (0, 7_200_000, "between 12:00:00 and 14:00:00 UTC (2 h 0 min)"),
            (43_190_000, 43_210_000, "between 23:59:50 and 00:00:10 UTC (20 s)"),
            (0, 86_399_000, "between 12:00:00 and 11:59:59 UTC (23 h 59 min)"),
            (0, 86_400_000, "between 2026-11-21 12:00:00 and 2026-11-22 12:00:00 UTC (24 h 0 min)"),
        ] as [(Int64, Int64, String)])
    func span(from: Int64, to: Int64, text: String) {
        func at(_ offset: Int64) -> ChatTimestamp {
            ChatTimestamp(milliseconds: ManualClock.epochMilliseconds + offset)
        }
        #expect(Room.span(at(from), at(to)) == text)
    }

    @Test("no times, however far apart or upside down, break it")
    func extremes() {
        let moments = [Int64.min, -1, 0, .max].map { ChatTimestamp(milliseconds: $0) }
        for from in moments { for to in moments { #expect(Room.span(from, to).hasPrefix("between ")) } }
    }

    // MARK: - Without a history

    @Test("an outage is told when the link is back, before what is said next", arguments: StoredWire.withoutHistory)
    func outage(wire: StoredWire) throws {
        let stage = try StoredStage(wire)
        stage.start()
        stage.enter("bob", 1)
        stage.enter("eve", 2, caps: "echo-message")
        stage.harness.advance(by: .seconds(20))
        stage.say("one")
        stage.harness.advance(by: .seconds(20))
        stage.loseLink(saying: ["lost"], for: .seconds(4))
        stage.regainLink()
        stage.say("two")
        let end = Double(stage.wall - ManualClock.epochMilliseconds) / 1000
        let heard = stage.heard().filter { !$0.text.contains("The link") }
        #expect(heard.map(\.text).first == "one")
        #expect(heard.map(\.text).last == "two")
        #expect(heard.count == 3)
        // The server's time of the last message; where senders tell the time, when the link was opened.
        let isStamped = wire.origin == .server
        let begin = isStamped ? Self.time(19) : "2026-11-21T11:59:59.000Z"
        #expect(heard[1].gap == begin + "," + Self.time(end))
        #expect(heard[1].text.hasPrefix("*** What was said between \(isStamped ? "12:00:19" : "11:59:59") and "))
        #expect(heard[1].text.hasSuffix("is missing: the backend keeps no history."))
        #expect(stage.kept.map(\.kind) == [.message, .gap, .message])
        #expect(stage.kept[1].msgid == heard[1].msgid)
        #expect(stage.kept[1].text == heard[1].text)
        #expect(
            stage.kept[1].gapFrom
                == ChatTimestamp(milliseconds: ManualClock.epochMilliseconds + (isStamped ? 19_000 : -1000)))
        #expect(stage.kept[1].at.milliseconds == stage.wall)
        #expect(stage.room.recent.newest?.sequence == 2)
        let plain = stage.raw(2)
        #expect(plain.contains(":bridge NOTICE #lobby :" + heard[1].text), "without tags")
        #expect(stage.harness.violations == [])
    }

    @Test(
        "a gap begins where the link was last known to be whole, however late that is read which came before its end",
        arguments: StoredWire.withoutHistory, [(true, true), (true, false), (false, true), (false, false)])
    func standstill(wire: StoredWire, fault: (isStopped: Bool, isKilled: Bool)) throws {
        let stage = try StoredStage(wire, room: { $0.ping = .seconds(20) })
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(25))
        stage.say("one")
        stage.standStill(saying: ["two"], losing: ["three", "four"], isStopped: fault.isStopped)
        #expect(stage.said() == ["one", "two"])
        if fault.isKilled {
            stage.crash()
            stage.start()
            stage.enter("bob")
        }
        stage.regainLink()
        stage.say("five")
        let row = try #require(stage.kept.first { $0.kind == .gap })
        // A ping was answered that was sent at 20 s; a server's time says more.
        let begin = ManualClock.epochMilliseconds + (wire.origin == .server ? 25_000 : 19_000)
        #expect(row.gapFrom == ChatTimestamp(milliseconds: begin))
        for lost in stage.log[2...3] { #expect(begin <= lost.at && lost.at <= row.at.milliseconds, "\(lost.text)") }
        #expect(stage.kept.map(\.kind) == [.message, .message, .gap, .message])
    }

    @Test(
        "a gap whose begin a restart tells is no shorter for what was read late just before", arguments: [true, false])
    func killedAtOnce(isStopped: Bool) throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0], room: { $0.ping = .seconds(20) })
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(25))
        stage.standStill(saying: ["one"], losing: ["two"], isStopped: isStopped)
        // The process had no time to hear of the link's end.
        let until = try #require(stage.harness.store.disk.rooms[stage.key]?.liveUntil)
        #expect(until.milliseconds == ManualClock.epochMilliseconds + 20_000)
    }

    @Test("a clock of the machine that slept shortens no gap")
    func sleep() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0], room: { $0.ping = .seconds(20) })
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(25))
        // The monotonic clock does not count that.
        stage.harness.clock.lead = .seconds(3600)
        stage.loseLink(for: .seconds(1))
        stage.regainLink()
        let row = try #require(stage.kept.first { $0.kind == .gap })
        #expect(row.gapFrom == ChatTimestamp(milliseconds: ManualClock.epochMilliseconds + 19_000))
        #expect(row.at.milliseconds >= ManualClock.epochMilliseconds + 3_625_000)
    }

    @Test(
        "a room that is never quiet has its link proved all the same, where pings are inside the JSON",
        arguments: [true, false])
    func busy(answersPings: Bool) throws {
        let stage = try StoredStage(
            StoredWire.withoutHistory[0],
            {
                $0.liveness = .jsonPing
                $0.answersPings = answersPings
            }, room: { $0.ping = .seconds(20) })
        stage.start()
        stage.enter("bob")
        for second in 1...120 {
            stage.harness.advance(by: .seconds(1))
            stage.say("m\(second)")
            guard answersPings else { continue }
            for ping in stage.sent("ping") {
                stage.harness.sendFrame(0, "{\"kind\":\"pong\",\"ref\":\"\(ping["ref"]?.string ?? "")\"}")
            }
        }
        stage.loseLink(for: .seconds(1))
        stage.regainLink()
        let row = try #require(stage.kept.first { $0.kind == .gap })
        let age = ManualClock.epochMilliseconds + 120_000 - (row.gapFrom?.milliseconds ?? 0)
        #expect((1000...41_000).contains(age))
    }

    @Test("a restart is told like an outage, once, however the process ended", arguments: [0, 1, 2], [true, false])
    func restart(wire: Int, isOrderly: Bool) throws {
        let stage = try StoredStage(StoredWire.withoutHistory[wire])
        stage.start()
        stage.say("one")
        stage.harness.advance(by: .seconds(60))
        if isOrderly { stage.harness.shutdown() }
        stage.crash(down: .seconds(20), saying: ["lost"])
        stage.enter("bob")
        stage.start()
        stage.say("two")
        let heard = stage.heard()
        #expect(heard.map { $0.gap == nil } == [false, true])
        // Nothing came after the first message, so that is all that is known.
        #expect(heard.first?.gap?.hasPrefix("2026-11-21T11:59:59.000Z,2026-11-21T12:01:") == true)
        #expect(heard.last?.text == "two")
        stage.loseLink(for: .seconds(1))
        stage.regainLink()
        #expect(stage.gaps().count == 1, "the next outage, and not the old one again")
    }

    @Test("a link that lives says until when nothing is missing, every ten seconds")
    func live() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0], room: { $0.ping = .seconds(20) })
        stage.start()
        stage.harness.advance(by: .seconds(65))
        let until = try #require(stage.harness.store.disk.rooms[stage.key]?.liveUntil)
        #expect(stage.wall - until.milliseconds >= 0)
        #expect(stage.wall - until.milliseconds <= 30_000, "a ping every 20 s, and looked at every 10")
        let count = stage.harness.store.orders.count
        #expect(count <= 8)
    }

    @Test("nothing is told of a link that was never up while nobody was here, nor before the first, whatever fails")
    func neverUp() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0])
        stage.harness.acceptsConnections = false
        stage.start()
        stage.harness.endTransport(0, reason: "refused")
        stage.harness.advance(by: .seconds(20))
        stage.regainLink()
        stage.enter("bob")
        #expect(stage.upstream.state == .open)
        #expect(stage.gaps() == [])
        #expect(stage.kept == [])
    }

    @Test("two failed tries make one gap, from the first loss on")
    func oneGap() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0], room: { $0.ping = .seconds(20) })
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(30))
        stage.say("one")
        stage.loseLink(for: .seconds(3))
        for _ in 0..<3 {
            stage.harness.endTransport(0, reason: "refused")
            stage.harness.advance(by: .seconds(9))
        }
        stage.regainLink()
        let gaps = stage.heard().compactMap(\.gap)
        #expect(gaps.count == 1)
        #expect(gaps.first?.hasPrefix(Self.time(19)) == true, "from the last ping that was answered")
    }

    @Test("a clock that was put back while the bridge was down tells a gap all the same")
    func clockPutBack() throws {
        let later = ChatTimestamp(milliseconds: ManualClock.epochMilliseconds + 3_600_000)
        let disk = StoredState(
            rooms: [StoredRoomKey(backend: "b", room: "lobby"): StoredRoom(liveUntil: later)])
        let stage = try StoredStage(StoredWire.withoutHistory[0], disk: disk)
        stage.enter("bob")
        stage.start()
        #expect(stage.gaps().count == 1)
    }

    /// The times of the room's gaps, what was lost, and what the gaps' lines show.
    private static func check(_ stage: StoredStage, lost: Int64) {
        let gaps = stage.kept.filter { $0.kind == .gap }
        #expect(gaps.count == 1)
        for gap in gaps {
            #expect((gap.gapFrom?.milliseconds ?? .max) <= lost)
            #expect((gap.backendAt?.milliseconds ?? .min) >= lost)
        }
    }

    @Test(
        "a gap holds what was lost, also where our clock was set back meanwhile",
        arguments: StoredWire.withoutHistory, [-45, 86_400] as [Int64])
    func clockSetBack(wire: StoredWire, lead: Int64) throws {
        let stage = try StoredStage(wire, room: { $0.ping = .seconds(20) })
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(20))
        stage.harness.clock.lead = .seconds(lead)
        stage.harness.advance(by: .seconds(60))
        stage.say("one")
        stage.loseLink(saying: ["lost"], for: .seconds(4))
        let lost = stage.log[stage.log.count - 1].tookAt
        stage.harness.clock.lead = .zero
        stage.regainLink()
        stage.say("two")
        #expect(stage.said() == ["one", "two"])
        Self.check(stage, lost: lost)
        #expect(stage.harness.violations == [])
    }

    @Test("the same where a new process finds its clock set back", arguments: StoredWire.withoutHistory)
    func clockSetBackOverRestart(wire: StoredWire) throws {
        let stage = try StoredStage(wire)
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(20))
        stage.say("one")
        stage.harness.clock.lead = .seconds(86_400)
        stage.harness.advance(by: .seconds(20))
        stage.crash(down: .seconds(10), saying: ["lost"], lead: .zero)
        let lost = stage.log[stage.log.count - 1].tookAt
        stage.start()
        stage.enter("bob")
        stage.say("two")
        Self.check(stage, lost: lost)
        #expect(stage.harness.violations == [])
    }

    @Test(
        "the same where the clock had been set before, and was set back by less than the time that passed",
        arguments: StoredWire.withoutHistory)
    func clockSetBackALittleOverRestart(wire: StoredWire) throws {
        let stage = try StoredStage(wire, room: { $0.ping = .seconds(20) })
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(5))
        stage.harness.clock.lead = .seconds(20)
        stage.harness.advance(by: .seconds(20))
        stage.say("one")
        // Before the next ping, and for longer than the clock was ahead.
        stage.crash(down: .seconds(25), saying: ["lost"], lead: .zero)
        let lost = stage.log[stage.log.count - 1].tookAt
        stage.start()
        stage.enter("bob")
        stage.say("two")
        Self.check(stage, lost: lost)
        #expect(stage.harness.violations == [])
    }

    @Test("a gap's line shows a later time than those in front of it", arguments: StoredWire.withoutHistory)
    func lineTime(wire: StoredWire) throws {
        let stage = try StoredStage(wire)
        stage.start()
        stage.enter("bob")
        stage.harness.clock.lead = .seconds(45)
        stage.harness.advance(by: .seconds(20))
        stage.say("one", at: stage.wall)
        stage.harness.clock.lead = .zero
        stage.loseLink(for: .seconds(4))
        stage.regainLink()
        stage.say("two")
        let times = stage.kept.map(\.at.milliseconds)
        #expect(stage.kept.map(\.kind) == [.message, .gap, .message])
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
        #expect(stage.kept[1].backendAt?.milliseconds ?? .max < times[0])
        let gap = try #require(stage.heard().compactMap(\.gap).first)
        #expect(gap.hasSuffix(IRCServerTime.format(milliseconds: stage.kept[1].backendAt?.milliseconds ?? 0)))
    }

    // MARK: - With a history

    @Test("a history that is there leaves no gap", arguments: StoredWire.withHistory)
    func filled(wire: StoredWire) throws {
        let stage = try StoredStage(wire)
        stage.start()
        stage.enter("bob")
        stage.say("one")
        stage.loseLink(saying: ["two", "three"])
        stage.regainLink()
        stage.say("four")
        let heard = stage.heard()
        #expect(heard.filter { $0.from != "bridge" }.map(\.text) == ["one", "two", "three", "four"])
        #expect(heard.filter { $0.gap != nil } == [])
        #expect(stage.kept.map(\.text) == ["one", "two", "three", "four"])
    }

    @Test("a history is asked for from where the link was last known to be whole, whatever senders' clocks say")
    func askedEarlyEnough() throws {
        let stage = try StoredStage(StoredWire.withHistory[0], room: { $0.ping = .seconds(20) })
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(25))
        stage.senderLead = 290_000
        stage.standStill(
            saying: (1...20).map { "m\($0)" }, losing: ["three", "four"], isStopped: true, for: .seconds(120))
        stage.senderLead = 0
        stage.regainLink()
        stage.say("five")
        #expect(stage.said() == (1...20).map { "m\($0)" } + ["three", "four", "five"])
    }

    @Test("a history that is too short leaves a gap up to where it begins", arguments: [true, false])
    func short(isRestart: Bool) throws {
        let stage = try StoredStage(StoredWire.withHistory[3])
        stage.start()
        stage.enter("bob")
        stage.say("one")
        let missed = (1...1002).map { "m\($0)" }
        if isRestart {
            stage.crash(down: .seconds(1100), saying: missed)
            stage.enter("bob")
            stage.start()
        } else {
            stage.loseLink(saying: missed, for: .seconds(1))
            stage.regainLink()
        }
        let heard = stage.heard().filter { $0.gap != nil || $0.from == "ann" }
        let said = heard.filter { $0.gap == nil }
        #expect(said.last?.text == "m1002")
        let gap = try #require(heard.first { $0.gap != nil })
        #expect(gap.text.hasPrefix("*** Older messages may be missing, said between 1"))
        #expect(heard.firstIndex(of: gap) == (isRestart ? 0 : 1))
        let row = try #require(stage.kept.first { $0.kind == .gap })
        let shown = try #require(stage.kept.first { $0.sequence > row.sequence })
        #expect(row.at <= shown.at)
        #expect(stage.kept.filter { $0.kind == .gap }.count == 1)
    }

    @Test("more than is shown leaves a gap over what is left out")
    func tooMany() throws {
        let stage = try StoredStage(StoredWire.withHistory[2], limit: 5000)
        stage.start()
        stage.enter("bob")
        stage.say("one")
        stage.loseLink(saying: (1...1100).map { "m\($0)" }, for: .seconds(1))
        stage.regainLink()
        let heard = stage.heard().filter { $0.gap != nil || $0.from == "ann" }
        #expect(heard.count == 1002)
        #expect(heard[1].text.hasPrefix("*** 100 older messages were said during the outage, between 12:00:"))
        #expect(heard[2].text == "m101")
        let row = try #require(stage.kept.first { $0.kind == .gap })
        #expect(row.gapFrom == ChatTimestamp(milliseconds: stage.log[1].at))
        #expect(row.at == ChatTimestamp(milliseconds: stage.log[101].at))
    }

    @Test(
        "what comes too late leaves a gap that ends where messages were shown again, whatever our clock showed then",
        arguments: [0, -45] as [Int64])
    func outrun(lead: Int64) throws {
        let stage = try StoredStage(StoredWire.withHistory[1])
        stage.start()
        stage.enter("bob")
        stage.say("one")
        stage.keepsSilent = true
        stage.loseLink(saying: ["lost"])
        stage.harness.clock.lead = .seconds(lead)
        stage.regainLink()
        stage.harness.advance(by: .seconds(11))
        stage.harness.clock.lead = .zero
        let end = stage.wall
        for number in 1...(SeenMessageIDs.capacity + 10) {
            stage.harness.advance(by: .milliseconds(5))
            stage.say("x\(number)")
        }
        stage.keepsSilent = false
        stage.harness.advance(by: .seconds(60))
        stage.serve()
        let gap = try #require(stage.heard().first { $0.gap != nil })
        #expect(gap.text.hasPrefix("*** Older messages came too late to be shown, said between 11:59:59 and "))
        let row = try #require(stage.kept.last)
        #expect(row.kind == .gap)
        let told = try #require(row.backendAt)
        #expect(told.milliseconds <= end)
        #expect(told.milliseconds >= stage.log[1].at)
    }

    // MARK: - On demand

    @Test("a room that nobody was in tells what it did not hear to whoever opens it, where something is kept")
    func onDemand() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0], room: { $0.connect = .whileJoined })
        stage.enter("bob")
        stage.start()
        stage.say("one")
        stage.harness.send(1, "PART #lobby")
        stage.harness.advance(by: .seconds(600))
        #expect(stage.upstream.state == .idle)
        stage.harness.send(1, "JOIN #lobby")
        stage.say("two")
        #expect(stage.heard().map { $0.gap == nil } == [true, false, true])
        #expect(stage.kept.map(\.kind) == [.message, .gap, .message])
    }

    // MARK: - The disk

    @Test("what the disk had no room for is told as a gap when there is room again, and the rest is made up for")
    func overflow() throws {
        let stage = try StoredStage(StoredWire.withHistory[1])
        stage.start()
        stage.enter("bob")
        stage.say("one")
        stage.harness.advance(by: .seconds(10))
        stage.harness.store.commits = false
        stage.harness.store.room = 1
        for text in ["two", "three", "four"] {
            stage.say(text)
            stage.harness.advance(by: .seconds(1))
        }
        stage.harness.sendFrame(0, #"{"kind":"delete","ids":["m1"],"sender":{"id":"u-ann"}}"#)
        #expect(stage.said() == ["one", "two", "three", "four"], "relaying goes on")
        stage.harness.store.room = .max
        stage.harness.store.commits = true
        stage.say("five")
        let rows = stage.kept
        #expect(rows.map(\.text).filter { !$0.hasPrefix("***") } == ["", "two", "five"])
        let gap = try #require(rows.first { $0.kind == .gap })
        #expect(gap.text.contains("could not be stored"))
        #expect(gap.gapFrom ?? gap.at <= ChatTimestamp(milliseconds: stage.log[2].at))
        #expect(gap.at >= ChatTimestamp(milliseconds: stage.log[3].at))
        #expect(stage.gaps().count == 1)
        #expect(rows.first?.isTakenBack == true)
    }

    @Test("a disk that fails, and works again, is told once each, also to who enters meanwhile")
    func condition() throws {
        let stage = try StoredStage(StoredWire.withHistory[1])
        stage.start()
        stage.enter("bob")
        for _ in 0..<3 {
            stage.harness.perform { $0.storeConditionChanged(.failing("the disk is full"), now: $1) }
        }
        func told(_ client: UInt64) -> Int {
            stage.heard(client).count { $0.text.contains("cannot be stored at the moment (the disk is full)") }
        }
        #expect(told(1) == 1)
        stage.harness.connect(2)
        for line in ["NICK eve", "USER u 0 * :r", "JOIN #lobby"] { stage.harness.send(2, line) }
        #expect(told(2) == 1, "and to who enters meanwhile")
        #expect(told(1) == 0)
        for _ in 0..<3 { stage.harness.perform { $0.storeConditionChanged(.sound, now: $1) } }
        #expect(stage.heard().filter { $0.text.contains("Messages are stored again") }.count == 1)
    }

    @Test("where the backend sends its history unasked, it is waited for before a gap is told")
    func unaskedHistory() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0])
        stage.start()
        stage.enter("bob")
        stage.say("one")
        stage.sendHistory()
        stage.loseLink(saying: ["two"])
        stage.regainLink()
        stage.say("three")
        #expect(stage.heard().compactMap(\.gap).isEmpty)
        stage.sendHistory()
        let heard = stage.heard()
        #expect(heard.filter { $0.from == "ann" }.map(\.text) == ["two", "three"])
        #expect(heard.compactMap(\.gap).isEmpty)

        stage.loseLink(saying: ["four"])
        stage.regainLink()
        stage.say("five")
        stage.harness.advance(by: .seconds(11))
        let late = stage.heard().filter { $0.from == "ann" || $0.gap != nil }
        #expect(late.count == 2 && late.first?.gap != nil && late.last?.text == "five")
    }

    @Test(
        "that it does is known behind a restart too, until it does not", arguments: StoredWire.withoutHistory.prefix(2),
        [true, false])
    func unaskedHistoryAfterRestart(wire: StoredWire, isOrderly: Bool) throws {
        let stage = try StoredStage(wire)
        func restart(saying texts: [String]) {
            if isOrderly { stage.harness.shutdown() }
            stage.crash(saying: texts)
            stage.enter("bob")
            stage.start()
        }
        stage.start()
        stage.enter("bob")
        stage.say("one")
        stage.sendHistory()
        restart(saying: ["two"])
        stage.say("three")
        #expect(stage.heard().filter { $0.from == "ann" || $0.gap != nil } == [])
        stage.sendHistory()
        var heard = stage.heard().filter { $0.from == "ann" || $0.gap != nil }
        #expect(heard.map(\.text) == ["two", "three"] && heard.allSatisfy { $0.gap == nil })
        #expect(stage.kept.map(\.text) == ["one", "two", "three"])

        restart(saying: ["four"])
        stage.say("five")
        stage.harness.advance(by: .seconds(11))
        heard = stage.heard().filter { $0.from == "ann" || $0.gap != nil }
        #expect(heard.count == 2 && heard.first?.gap != nil && heard.last?.text == "five")
        restart(saying: [])
        stage.say("six")
        heard = stage.heard().filter { $0.from == "ann" || $0.gap != nil }
        #expect(heard.map { $0.gap == nil } == [false, true], "nothing is awaited any more")
    }
}
