import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("What was said before one is back in a room")
struct RejoinHistoryTests {
    private static let caps = BacklogStage.caps

    /// Where the first line stands that holds `part`.
    private func place(_ part: String, _ lines: [String]) -> Int { lines.firstIndex { $0.contains(part) } ?? -1 }

    @Test(
        "comes behind JOIN and names, once and in order, and a JOIN by hand brings nothing again",
        arguments: [false, true])
    func once(joinsByHand: Bool) throws {
        let stage = try BacklogStage(rooms: 2)
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.harness.send(1, "JOIN #room1")
        stage.say(["a0", "a1"])
        stage.harness.advance(by: .seconds(5))
        stage.leave(1)
        stage.say(["a2", "a3"])
        stage.say("b0", room: 1)
        stage.crash()
        stage.say("a4")
        stage.connect(2, "alice@phone", caps: Self.caps)
        if joinsByHand { stage.harness.send(2, "JOIN #lobby,#room1") }
        let lines = stage.raw(2)
        for (channel, first) in [("#lobby", "a2"), ("#room1", "b0")] {
            let places = [
                place("JOIN \(channel)", lines), place("366 alice \(channel)", lines),
                place("BATCH +", lines.map { $0.contains(channel) ? $0 : "" }), place(":\(first)", lines),
            ]
            #expect(!places.contains(-1) && places == places.sorted(), "\(channel): \(places)")
        }
        #expect(joined(lines) == ["#lobby", "#room1"])
        func said(_ channel: String) -> [String] {
            lines.compactMap { $0.firstMatch(of: #/PRIVMSG (#\S+) :(.*)/#) }.filter { $0.1 == channel }.map {
                String($0.2)
            }
        }
        #expect(said("#lobby") == ["a2", "a3", "a4"] && said("#room1") == ["b0"])
        // And from then on each as it is said.
        stage.say("a5")
        #expect(stage.heard(2) == ["ann: a5"])
        stage.harness.advance(by: .seconds(5))
        stage.leave(2)
        stage.connect(3, "alice@phone", caps: Self.caps)
        #expect(stage.heard(3) == [])
    }

    @Test("a client that asks for it is sent nothing, and gets all that it missed when it asks")
    func asked() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone", caps: Self.caps + " draft/chathistory")
        stage.say("a0")
        stage.harness.advance(by: .seconds(5))
        stage.leave(1)
        stage.say(["a1", "a2"])
        stage.crash()
        stage.connect(2, "alice@phone", caps: Self.caps + " draft/chathistory")
        #expect(withoutGaps(stage.heard(2)) == [])
        stage.harness.send(2, "CHATHISTORY LATEST #lobby * 10")
        #expect(withoutGaps(stage.heard(2)) == ["ann: a0", "ann: a1", "ann: a2"])
    }

    @Test("each client of an account gets what it missed itself")
    func each() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.enter(2, "alice@desk", caps: Self.caps)
        stage.harness.advance(by: .seconds(5))
        stage.leave(1)
        stage.say("a0")
        stage.harness.advance(by: .seconds(5))
        stage.leave(2)
        stage.say("a1")
        stage.crash()
        stage.connect(3, "alice@desk", caps: Self.caps)
        stage.connect(4, "alice@phone", caps: Self.caps)
        #expect(withoutGaps(stage.heard(3)) == ["ann: a1"])
        #expect(withoutGaps(stage.heard(4)) == ["ann: a0", "ann: a1"])
    }

    @Test("what fails of one's own is told behind the JOIN")
    func untold() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.harness.acceptsConnections = false
        stage.harness.endTransport(0, reason: "gone")
        stage.harness.send(1, "PRIVMSG #lobby :lost")
        stage.leave(1)
        stage.harness.advance(by: .seconds(1000))
        stage.connect(2, "alice@phone", caps: Self.caps)
        let lines = stage.raw(2)
        let (join, told) = (
            place("JOIN #lobby", lines),
            lines.firstIndex { $0.contains("lost") && $0.contains("NOTICE") || $0.contains("FAIL") } ?? -1
        )
        #expect(join >= 0 && told > join, "\(lines)")
    }
}

@Suite("Rooms of a template that come back")
struct RejoinTemplateTests {
    private static func settings(lists: Bool, _ settings: inout BridgeSettings) throws {
        let dialect: any Dialect = lists ? AccountDialect() : StubDialect { _ in }
        settings.backends = [
            BackendSettings(
                name: "b", dialect: dialect, httpBase: lists ? try HTTPURL(parsing: "http://chat.example") : nil)
        ]
        settings.template = RoomTemplate(backend: "b") { try? .stub($0) }
    }

    private static func list(_ stage: RejoinStage, _ rooms: [BackendRoom]) {
        stage.harness.perform { bridge, now in
            bridge.context.now = now
            bridge.irc.roomsListed(rooms)
        }
    }

    @Test("they are opened again, also after a restart", arguments: [false, true])
    func opened(isRestart: Bool) throws {
        let stage = try RejoinStage { try? Self.settings(lists: false, &$0) }
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #cellar,#lobby,#roof")
        stage.harness.disconnect(1)
        stage.harness.advance(by: .seconds(400))
        #expect(stage.harness.bridge.rooms.count == 3)
        if isRestart { stage.restart() }
        #expect(joined(stage.logIn(2, "remy@phone")) == ["#cellar", "#lobby", "#roof"])
    }

    @Test("what was missed in one comes once, behind its names, after what is kept of it was read")
    func missed() throws {
        let stage = try RejoinStage { try? Self.settings(lists: false, &$0) }
        func say(_ id: String, _ text: String) {
            let link = stage.harness.bridge.rooms.last?.id.index ?? 0
            stage.harness.sendFrame(
                link, #"{"kind":"message","id":"\#(id)","sender":{"id":"s","name":"skinner"},"text":"\#(text)"}"#)
        }
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #cellar")
        say("1", "heard")
        stage.harness.advance(by: .seconds(5))
        stage.harness.disconnect(1)
        say("2", "missed")
        stage.restart()
        let told = withoutGaps(stage.logIn(2, "remy@phone")).map { $0.replacing(#/\[\d\d:\d\d\] /#, with: "") }
        #expect(
            told == [
                ":remy!~u@bridge JOIN #cellar", ":bridge 353 remy = #cellar :@remy",
                ":bridge 366 remy #cellar :End of /NAMES list", ":skinner!chat@b PRIVMSG #cellar :missed",
            ])
        say("3", "live")
        #expect(stage.heard(2).filter { $0.contains("PRIVMSG") } == [":skinner!chat@b PRIVMSG #cellar :live"])
    }

    @Test("what the backend lists is waited for in silence, as long as it takes, and found by its id")
    func listed() throws {
        let stage = try RejoinStage { try? Self.settings(lists: true, &$0) }
        let (cellar, roof) = (BackendRoom(id: "17", name: "Cellar"), BackendRoom(id: "18", name: "Roof"))
        Self.list(stage, [cellar, roof])
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #cellar,#roof,#lobby")
        #expect(stage.kept("remy") == ["#cellar", "#roof", "#lobby"])
        stage.restart()
        #expect(joined(stage.logIn(1, "remy@phone")) == ["#lobby"])
        // Longer than a JOIN by hand waits.
        stage.harness.advance(by: .seconds(300))
        #expect(stage.heard(1) == [])
        #expect(stage.rooms(of: 1) == ["#lobby"])
        Self.list(stage, [BackendRoom(id: "17", name: "Wine Cellar"), BackendRoom(id: "19", name: "Yard")])
        let told = stage.heard(1)
        #expect(joined(told) == ["#wine-cellar"])
        #expect(!told.contains { $0.contains(" 403 ") })
        // What is not listed is not forgotten: it may be again.
        #expect(stage.kept("remy") == ["#wine-cellar", "#roof", "#lobby"])
        #expect(!stage.harness.bridge.irc.directory.hasReturning)
        #expect(stage.harness.violations == [])
    }

    @Test("who goes meanwhile is not waited for, and a JOIN by hand is answered as ever")
    func goesMeanwhile() throws {
        let stage = try RejoinStage { try? Self.settings(lists: true, &$0) }
        Self.list(stage, [BackendRoom(id: "17", name: "cellar")])
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #cellar")
        stage.restart()
        stage.logIn(1, "remy@phone")
        stage.logIn(2, "lin@phone")
        #expect(stage.harness.bridge.irc.directory.hasReturning)
        #expect(stage.send(1, "JOIN #cellar") == [])
        stage.harness.disconnect(1)
        #expect(!stage.harness.bridge.irc.directory.hasReturning)
        stage.logIn(3, "remy@phone")
        _ = stage.send(3, "JOIN #cellar")
        Self.list(stage, [BackendRoom(id: "17", name: "cellar")])
        #expect(joined(stage.heard(3)) == ["#cellar"])
        #expect(stage.heard(2) == [])
    }

    @Test("a template that is gone takes its rooms along; one that allows no more rooms passes them over")
    func templateGone() throws {
        let stage = try RejoinStage { try? Self.settings(lists: false, &$0) }
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #cellar,#lobby,#roof")
        stage.restart { $0.limits.templateRooms = 1 }
        #expect(joined(stage.logIn(1, "remy@phone")) == ["#cellar", "#lobby"])
        #expect(stage.kept("remy") == ["#cellar", "#lobby", "#roof"])
        stage.restart { $0.template = nil }
        #expect(joined(stage.logIn(1, "remy@phone")) == ["#lobby"])
        #expect(stage.kept("remy") == ["#lobby"])
    }
}
