import BridgeTestSupport
import BridgeTypes
import ChatModel
import Testing
import Upstream

@testable import BridgeCore
@testable import Rooms

/// Links that a reload opens anew.
@Suite("Links opened anew on purpose")
struct ReplacedLinkTests {
    @Test("with a history, users are told nothing, and nothing is lost", arguments: StoredWire.withHistory)
    func quiet(wire: StoredWire) throws {
        let stage = try StoredStage(wire)
        stage.start()
        stage.enter("bob")
        stage.say("one")
        stage.replaceLink(isAccepted: false)
        stage.say("two")
        stage.regainLink()
        stage.say("three")
        #expect(stage.heard().map(\.text) == ["one", "two", "three"])
        #expect(stage.harness.violations == [])
    }

    @Test("the log says why, and counts no failure")
    func log() throws {
        let stage = try StoredStage(StoredWire.withHistory[1])
        stage.start()
        stage.replaceLink()
        #expect(stage.harness.logged("upstream-reopened") == ["info host=chat.example room=lobby"])
        #expect(stage.harness.notes.last { $0.event == "upstream-reopened" }?.text == "the configuration has changed")
        #expect(stage.harness.logged("upstream-lost") == [] && stage.harness.logged("upstream-failed") == [])
        #expect(stage.room.link.failures == 0 && stage.room.link.attempts.failed == 0)
        #expect(stage.room.link.isUp && stage.room.outage == nil)
    }

    @Test("a try under way begins again, and counts as none")
    func tryUnderWay() throws {
        let stage = try StoredStage(StoredWire.withHistory[1])
        stage.harness.acceptsConnections = false
        stage.start()
        stage.replaceLink(isAccepted: false)
        #expect(stage.room.link.failures == 0 && stage.room.link.attempts.failed == 0)
        stage.regainLink()
        #expect(stage.room.link.isUp)
        #expect(stage.harness.logged("upstream-failed") == [])
    }

    @Test("where the first try fails, users are told of the loss and of the return, once each")
    func fails() throws {
        let stage = try StoredStage(StoredWire.withHistory[1])
        stage.start()
        stage.enter("bob")
        stage.replaceLink(isAccepted: false)
        #expect(stage.heard() == [])
        for _ in 0..<2 {
            stage.harness.endTransport(0, reason: "connection refused")
            stage.harness.advance(by: .seconds(5))
        }
        #expect(
            stage.heard().map(\.text) == [
                "*** The link to chat.example was lost: connection refused. What you write is queued and sent when it "
                    + "is back."
            ])
        #expect(stage.harness.logged("upstream-failed").map { $0.hasPrefix("warn failures=1") } == [true, false])
        stage.regainLink()
        #expect(stage.heard().map(\.text).count { $0.hasPrefix("*** The link to chat.example is back after ") } == 1)
    }

    // MARK: - Without a history

    @Test(
        "without a history, what is missed in several is one gap, before what is said next",
        arguments: StoredWire.withoutHistory)
    func gap(wire: StoredWire) throws {
        let stage = try StoredStage(wire)
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(20))
        stage.say("one")
        let begin = stage.wall
        for _ in 0..<3 {
            stage.replaceLink(isAccepted: false)
            stage.harness.advance(by: .milliseconds(100))
            stage.say("lost")
            stage.regainLink()
            stage.harness.advance(by: .seconds(1))
        }
        let end = stage.wall - 1000
        #expect(stage.heard().map(\.text) == ["one"])
        stage.harness.advance(by: .seconds(10))
        stage.say("two")
        let heard = stage.heard()
        #expect(heard.map { $0.gap == nil } == [false, true] && heard.last?.text == "two")
        let row = try #require(stage.kept.first { $0.kind == .gap })
        #expect(stage.kept.map(\.kind) == [.message, .gap, .message])
        #expect(row.gapFrom?.milliseconds ?? .max <= begin - 1000)
        #expect(row.backendAt?.milliseconds == end)
        #expect(stage.room.missingSince == nil)
        #expect(stage.harness.violations == [])
    }

    @Test(
        "a gap that no line follows is told after a minute, and earlier to who reads the history, sends, or is left",
        arguments: ["", "CHATHISTORY LATEST #lobby * 10", "PRIVMSG #lobby :hello", "stop", "lost"])
    func told(by what: String) throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0])
        stage.start()
        stage.enter("bob", caps: "message-tags server-time batch draft/chathistory echo-message")
        stage.replaceLink()
        stage.harness.advance(by: .seconds(59))
        #expect(stage.heard() == [])
        switch what {
        case "": stage.harness.advance(by: .seconds(1))
        case "stop": stage.harness.shutdown()
        case "lost":
            stage.loseLink()
            stage.regainLink()
        default:
            stage.harness.send(1, what)
            stage.take()
        }
        #expect(Set(stage.heard().compactMap(\.gap)).count == 1)
    }

    @Test("a restart in front of it leaves one gap over both")
    func restart() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[1])
        stage.start()
        stage.enter("bob")
        stage.say("one")
        let begin = stage.wall
        stage.harness.advance(by: .seconds(30))
        stage.replaceLink()
        stage.harness.advance(by: .seconds(30))
        stage.crash()
        stage.start()
        stage.enter("bob")
        stage.say("two")
        let gaps = stage.kept.filter { $0.kind == .gap }
        #expect(gaps.count == 1)
        #expect(gaps.first?.gapFrom?.milliseconds ?? .max <= begin - 1000)
    }

    // MARK: - Own links

    @Test("an account's own link comes back without a word, and what waits goes over it")
    func ownLink() throws {
        let stage = try OwnLinkStage(OwnLinkStage.silent())
        stage.enterBoth()
        let settings = stage.harness.settings
        stage.harness.acceptsConnections = false
        stage.harness.perform { $0.reload(settings, reconnecting: ["lobby"], backends: [], now: $1) }
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        #expect(stage.heard(1) == [])
        stage.harness.accept(0)
        stage.harness.accept(OwnLinkStage.own)
        #expect(stage.sent() == ["-1 message Alice B: hello"])
        #expect(!stage.heard(1).contains { $0.contains("own link") })
        #expect(stage.harness.logged("own-link-lost") == [] && stage.own?.link.failures == 0)
    }
}
