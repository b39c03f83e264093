import BridgeTestSupport
import ChatModel
import Dialects
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Somebody is in a room before its first history is there: all that is said since is for them, and nothing from before.
@Suite("People who are here before the first history")
struct FirstHistoryTests {
    /// Bob is here, the backend cannot be reached yet, and something was said before he came.
    private func early(
        _ wire: StoredWire, template: Bool = false, room: (inout RoomSettings) -> Void = { _ in }
    ) throws -> StoredStage {
        let stage = try StoredStage(wire, template: template, room: room)
        stage.harness.acceptsConnections = false
        // A room that is not open has no place where somebody could speak.
        if !template { stage.say("long ago") }
        stage.harness.advance(by: .seconds(90))
        stage.harness.start()
        stage.enter("bob")
        return stage
    }

    private func say(_ stage: StoredStage, _ texts: [String]) {
        for text in texts {
            stage.harness.advance(by: .seconds(1))
            stage.say(text)
        }
    }

    @Test(
        "what is said before the very first link is shown when it is up, and nothing older",
        arguments: StoredWire.withHistory)
    func beforeTheLink(wire: StoredWire) throws {
        let stage = try early(wire)
        say(stage, ["one", "two"])
        stage.regainLink()
        stage.say("live")
        #expect(stage.said() == ["one", "two", "live"])
        #expect(stage.kept.map(\.text) == ["long ago", "one", "two", "live"], "the rest is remembered")
        stage.loseLink(saying: ["three"])
        stage.regainLink()
        #expect(stage.said() == ["three"])
        #expect(stage.gaps() == [])
        #expect(stage.harness.violations == [])
    }

    @Test("the same holds when the process dies before it", arguments: StoredWire.withHistory)
    func outlastsTheProcess(wire: StoredWire) throws {
        let stage = try early(wire)
        say(stage, ["one", "two"])
        stage.crash(saying: ["three"])
        stage.enter("bob")
        stage.start()
        stage.say("live")
        #expect(stage.said() == ["one", "two", "three", "live"])
        #expect(stage.harness.violations == [])
    }

    @Test(
        "what is said between the first two links is shown, where no history came over the first",
        arguments: StoredWire.withHistory)
    func betweenLinks(wire: StoredWire) throws {
        let stage = try StoredStage(wire)
        stage.say("long ago")
        stage.harness.advance(by: .seconds(90))
        stage.keepsSilent = true
        stage.start()
        stage.enter("bob")
        say(stage, ["one"])
        stage.loseLink(saying: ["two", "three"])
        stage.keepsSilent = false
        stage.regainLink()
        say(stage, ["four"])
        #expect(stage.said() == ["one", "two", "three", "four"])
        #expect(stage.harness.violations == [])
    }

    @Test("whoever enters between two such links gets what was said since", arguments: StoredWire.withHistory)
    func entersBetween(wire: StoredWire) throws {
        let stage = try StoredStage(wire)
        stage.keepsSilent = true
        stage.start()
        stage.harness.advance(by: .seconds(2))
        stage.loseLink(saying: ["nobody is here"], for: .seconds(4))
        stage.enter("bob")
        say(stage, ["one"])
        stage.keepsSilent = false
        stage.regainLink()
        #expect(stage.said() == ["one"])
    }

    @Test(
        "a room of the template with a slow backend", arguments: [StoredWire.withHistory[0], StoredWire.withHistory[3]])
    func template(wire: StoredWire) throws {
        let stage = try early(wire, template: true)
        say(stage, ["one"])
        stage.regainLink()
        stage.say("live")
        #expect(stage.said() == ["one", "live"])
    }

    @Test(
        "what is said before the first history is shown though the process dies before it comes",
        arguments: StoredWire.withHistory, [true, false])
    func diesFetching(wire: StoredWire, template: Bool) throws {
        let stage = try StoredStage(wire, template: template, room: { $0.connect = .whileJoined })
        if !template { stage.say("long ago") }
        stage.harness.advance(by: .seconds(90))
        stage.keepsSilent = true
        stage.start()
        stage.enter("bob")
        say(stage, ["one"])
        stage.harness.advance(by: .seconds(1))
        #expect(stage.said() == [], "held until the history is there")
        stage.crash(down: .seconds(4), saying: ["two"])
        stage.keepsSilent = false
        stage.enter("bob")
        stage.start()
        stage.say("live")
        #expect(stage.said() == ["one", "two", "live"])
    }

    @Test(
        "nor is it forgotten when a second process has no history either, and shows what comes",
        arguments: StoredWire.withHistory)
    func diesTwice(wire: StoredWire) throws {
        let stage = try StoredStage(wire)
        stage.keepsSilent = true
        stage.harness.advance(by: .seconds(90))
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(1))
        stage.crash(saying: ["lost"])
        stage.enter("bob")
        stage.start()
        stage.harness.advance(by: .seconds(11))
        stage.say("shown")
        #expect(stage.said() == ["shown"])
        stage.crash()
        stage.keepsSilent = false
        stage.enter("bob")
        stage.start()
        #expect(stage.said().contains("lost"))
    }

    @Test("nor when they entered between two links", arguments: StoredWire.withHistory)
    func entersBetweenAndDies(wire: StoredWire) throws {
        let stage = try StoredStage(wire)
        stage.keepsSilent = true
        stage.start()
        stage.harness.advance(by: .seconds(2))
        stage.loseLink(for: .seconds(4))
        stage.enter("bob")
        say(stage, ["one"])
        stage.crash()
        stage.keepsSilent = false
        stage.enter("bob")
        stage.start()
        #expect(stage.said() == ["one"])
    }

    @Test("a history that fails is a gap like any other, and what it brings later is shown")
    func failing() throws {
        let stage = try early(StoredWire.withHistory[1])
        say(stage, ["one"])
        stage.keepsSilent = true
        stage.regainLink()
        stage.harness.advance(by: .seconds(11))
        stage.say("live")
        let heard = stage.heard()
        #expect(heard.filter { $0.from == "ann" }.map(\.text) == ["live"])
        #expect(heard.filter { $0.text.contains("older messages may come late") }.count == 1)
        stage.keepsSilent = false
        stage.harness.advance(by: .seconds(20))
        stage.serve()
        #expect(stage.said() == ["one"])
    }

    @Test("where nothing of the past is wanted, what somebody missed is asked for all the same")
    func withoutPast() throws {
        let stage = try early(StoredWire.withHistory[1], room: { $0.historyLimit = 0 })
        say(stage, ["one"])
        stage.regainLink()
        #expect(stage.said() == ["one"])
    }

    @Test("a link that is there as soon as somebody enters asks for no more than it ever did")
    func atOnce() throws {
        let stage = try StoredStage(StoredWire.withHistory[1], template: true, room: { $0.historyLimit = 0 })
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(1))
        #expect(stage.sent("fetch").isEmpty)
        #expect(stage.gaps() == [])
    }

    // MARK: - Without a history

    @Test(
        "where the backend keeps none, the gap is told, for this process and the next",
        arguments: StoredWire.withoutHistory, [true, false])
    func gap(wire: StoredWire, crashes: Bool) throws {
        let stage = try early(wire, template: !crashes)
        say(stage, ["lost"])
        if crashes {
            stage.crash()
            stage.enter("bob")
            stage.start()
        } else {
            stage.regainLink()
        }
        stage.say("live")
        let heard = stage.heard().filter { $0.gap != nil || $0.from == "ann" }
        #expect(heard.map { $0.gap == nil } == [false, true])
        // The test's clock begins at 12:00:00, and bob came 90 seconds later; backends' clocks may differ by one.
        #expect(heard.first?.gap?.hasPrefix("2026-11-21T12:01:29.000Z,2026-11-21T12:0") == true)
    }

    @Test(
        "whoever opens a room is in it with the link, or is told of all that was said since they asked",
        arguments: StoredWire.withoutHistory, [990, 1010])
    func momentKept(wire: StoredWire, milliseconds: Int) throws {
        let stage = try early(wire, template: true)
        stage.harness.advance(by: .milliseconds(milliseconds))
        #expect(stage.room.slots.count == (milliseconds < 1000 ? 0 : 1))
        stage.regainLink()
        #expect(stage.room.slots.count == 1)
        let gaps = stage.heard().compactMap(\.gap)
        #expect(gaps.count == (milliseconds < 1000 ? 0 : 1))
        // They asked at 12:01:30, and clocks may differ by a second.
        #expect(gaps.allSatisfy { $0.hasPrefix("2026-11-21T12:01:29.000Z,") })
        // Later ones are told however short they are.
        stage.loseLink()
        stage.regainLink()
        #expect(stage.gaps().count == 1)
    }

    @Test(
        "the same where nothing outlasts the process",
        arguments: [900, 1100])
    func moment(milliseconds: Int) throws {
        let stage = try SessionStage(StubDialect())
        stage.harness.acceptsConnections = false
        stage.harness.start()
        stage.enter("bob")
        stage.harness.advance(by: .milliseconds(milliseconds))
        stage.harness.acceptsConnections = true
        stage.harness.accept(0)
        #expect(stage.heard().filter { $0.contains("is missing") }.count == (milliseconds > 1000 ? 1 : 0))
        stage.loseLink()
        stage.harness.advance(by: .seconds(3))
        #expect(stage.heard().filter { $0.contains("is missing") }.count == 1, "an outage is told however short it is")
    }
}
