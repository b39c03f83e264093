import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import JSONText
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Rooms that are opened while the bridge runs, over a disk.
@Suite("Rooms of a template over a restart")
struct StoredTemplateRoomTests {
    @Test("a room that is opened again goes on where it ended, after its beginning was read", arguments: [true, false])
    func again(isRestart: Bool) throws {
        let stage = try StoredStage(StoredWire.withHistory[0], template: true)
        stage.start()
        stage.enter("bob")
        stage.serve()
        stage.say("one")
        #expect(stage.said() == ["one"])
        if isRestart {
            stage.crash(down: .seconds(400), saying: ["two"])
            stage.start()
            stage.enter("bob")
            stage.serve()
            #expect(stage.kept.map(\.text) == ["one", "two"])
            #expect(stage.kept.map(\.sequence) == [0, 1])
        } else {
            stage.harness.send(1, "PART #lobby")
            stage.harness.advance(by: .seconds(400))
            #expect(stage.harness.bridge.rooms.isEmpty)
            stage.harness.send(1, "JOIN #lobby")
            #expect(stage.room.recent.newest?.sequence == 0)
        }
        #expect(stage.harness.violations == [])
    }

    @Test("the link waits for the disk, people enter and speak meanwhile, and what they say goes up after")
    func meanwhile() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0], template: true)
        stage.start()
        stage.enter("bob")
        stage.say("one")
        stage.harness.send(1, "PART #lobby")
        stage.harness.store.commits = false
        stage.harness.advance(by: .seconds(301))
        #expect(stage.harness.bridge.rooms.isEmpty)
        stage.harness.send(1, "JOIN #lobby")
        #expect(stage.raw().contains { $0.contains(" JOIN #lobby") })
        #expect(stage.room.link.state == .stopped)
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        #expect(stage.sent("message").isEmpty)
        stage.harness.store.commits = true
        stage.harness.perform { _, _ in }
        stage.harness.advance(by: .seconds(1))
        #expect(stage.sent("message").map { $0["text"]?.string } == ["hello"])
        #expect(stage.kept.map(\.sequence) == Array(0..<Int64(stage.kept.count)))
        #expect(stage.kept.first?.text == "one")
    }

    @Test("a room whose beginning cannot be read goes on as a new one behind all places, and that is noted")
    func unreadable() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0], template: true)
        stage.harness.store.readFailure = StoreFailure("the disk is broken")
        stage.start()
        stage.enter("bob")
        stage.say("one")
        #expect(stage.said() == ["one"])
        #expect(stage.kept.map(\.sequence) == [ManualClock.epochMilliseconds])
        #expect(stage.harness.notes.filter { $0.event == "room-not-loaded" }.count == 1)
    }

    @Test("an author who is in the room before its beginning was read is told what failed, once")
    func failedBefore() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0], template: true)
        stage.start()
        stage.enter("bob")
        let (key, author) = (stage.room.storedKey, try #require(stage.room.locals.values.first { _ in true }?.puppet))
        stage.harness.send(1, "PART #lobby")
        stage.harness.advance(by: .seconds(400))
        #expect(stage.harness.bridge.rooms.isEmpty)
        stage.harness.perform { bridge, now in
            bridge.context.keep(
                .accept(
                    StoredOutboxEntry(
                        id: ChatID("00000000-0000-4000-8000-0000000000AB"), room: key, sender: ChatPerson(name: "bob"),
                        sentAs: "ab", acceptedAt: now.wall, author: author, nick: "bob", source: "bob!u@h", text: "ab",
                        state: .failed, reason: "it waited too long")))
        }
        stage.harness.send(1, "JOIN #lobby")
        #expect(stage.raw().filter { $0.contains("Not delivered, it waited too long: ab") }.count == 1)
        #expect(stage.harness.store.disk.rooms[key]?.outbox.map(\.state) == [.told])
    }

    @Test("of a disk that takes nothing a room is read, and what waits for it is in it", arguments: [true, false])
    func failing(isWaiting: Bool) throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0], template: true)
        stage.start()
        stage.enter("bob")
        stage.say("one")
        stage.harness.send(1, "PART #lobby")
        if isWaiting { stage.harness.store.commits = false }
        stage.harness.advance(by: .seconds(301))
        stage.harness.store.failure = "the disk is full"
        stage.harness.send(1, "JOIN #lobby")
        #expect(stage.upstream.state == .open)
        #expect(!stage.harness.notes.contains { $0.event == "room-not-loaded" })
        #expect(stage.room.recent.newest.map { $0.sequence < 10 } == true)
    }

    @Test("a disk that stalls holds a room up for ten seconds")
    func stalled() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0], template: true)
        stage.start()
        stage.enter("bob")
        stage.say("one")
        stage.harness.send(1, "PART #lobby")
        stage.harness.store.commits = false
        stage.harness.advance(by: .seconds(301))
        stage.harness.send(1, "JOIN #lobby")
        stage.harness.advance(by: .milliseconds(9_900))
        #expect(stage.room.link.state == .stopped)
        stage.harness.advance(by: .milliseconds(200))
        stage.say("two")
        #expect(stage.said().last == "two")
        stage.harness.store.commits = true
        stage.harness.perform { _, _ in }
        stage.harness.advance(by: .seconds(1))
        #expect(stage.kept.filter { $0.kind == .message }.map(\.text) == ["one", "two"])
        #expect(stage.kept.map(\.kind) == [.message, .gap, .message], "nobody listened for those ten seconds")
        #expect(stage.kept.first?.sequence == 0)
        #expect(stage.kept.last?.sequence ?? 0 > 1)
    }
}
