import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import IRCServer
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import Rooms

/// The start over a store: rooms are read one after another while clients are answered.
@Suite("Reading stored rooms at the start")
struct RoomLoadTests {
    private static func settings() throws -> BridgeSettings {
        let dialect = StubDialect { $0.confirmation = .echoByID }
        let rooms = try (0..<4).map { index in
            var room = RoomSettings(
                name: "room\(index)", backend: "b", dialect: dialect,
                url: try HTTPURL(parsing: "ws://chat.example/\(index)"))
            room.ping = .zero
            return room
        }
        return BridgeSettings(
            serverName: "bridge", instanceID: "t", rooms: rooms,
            backends: [BackendSettings(name: "b", dialect: dialect)])
    }

    /// A bridge that starts over a disk that has all rooms, and answers no question yet.
    private func harness() throws -> BridgeHarness {
        let settings = try Self.settings()
        let before = BridgeHarness(settings: settings, store: StoreStage())
        before.start()
        for room in 0..<4 {
            before.sendFrame(
                room,
                #"{"kind":"message","id":"m\#(room)","sender":{"id":"u-ada","name":"ada"},"text":"hello \#(room)"}"#)
        }
        let harness = BridgeHarness(
            settings: settings, seed: 2, store: before.store.afterCrash, startingAt: before.clock)
        harness.store.answersQuestions = false
        harness.start()
        return harness
    }

    private func answerOne(_ harness: BridgeHarness) {
        harness.store.answersQuestions = true
        harness.store.questionsToAnswer = 1
        harness.perform { _, _ in }
        harness.store.answersQuestions = false
    }

    private func loading(_ harness: BridgeHarness) -> [Int] {
        harness.bridge.rooms.filter(\.isLoading).map(\.id.index)
    }

    private func linked(_ harness: BridgeHarness) -> [Int] {
        (0..<4).filter { harness.upstream($0).state != .idle }
    }

    /// Whether the room recognises the message that it had before the restart.
    private func knows(_ room: Int, _ harness: BridgeHarness) -> Bool {
        harness.bridge.rooms[room].recent.entry(upstreamID: ChatID("m\(room)"))?.excerpt == "hello \(room)"
    }

    @Test("one after another, and no link opens before its room is read")
    func inTurn() throws {
        let harness = try harness()
        #expect(loading(harness) == [0, 1, 2, 3])
        #expect(linked(harness) == [])
        for count in 1...4 {
            answerOne(harness)
            #expect(loading(harness) == Array(count..<4))
            #expect(linked(harness) == Array(0..<count))
        }
        #expect((0..<4).allSatisfy { knows($0, harness) })
        #expect(harness.violations == [])
    }

    @Test("a room that a user wants to enter is next")
    func preferred() throws {
        let harness = try harness()
        harness.connect(1)
        for line in ["NICK bob", "USER u 0 * :r", "JOIN #room3"] { harness.send(1, line) }
        answerOne(harness)
        #expect(loading(harness) == [1, 2, 3])
        answerOne(harness)
        #expect(loading(harness) == [1, 2])
        #expect(harness.takeLines(1).contains { $0.contains(" JOIN #room3") })
    }

    @Test("a disk that does not answer for one room holds up no other")
    func stalled() throws {
        let harness = try harness()
        harness.advance(by: .seconds(11))
        #expect(loading(harness) == [1, 2, 3])
        // The late answer is of the room that was given up; the others have theirs.
        for _ in 0..<4 { answerOne(harness) }
        #expect(loading(harness) == [])
        #expect((0..<4).map { knows($0, harness) } == [false, true, true, true])
    }
}
