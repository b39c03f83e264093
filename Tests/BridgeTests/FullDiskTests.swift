import BridgeTestSupport
import ChatModel
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// What is said while nothing can be kept belongs to everything that is asked for.
@Suite("While the disk is full")
struct FullDiskTests {
    private static let caps =
        HistoryStage.caps + " draft/event-playback draft/message-redaction soju.im/search echo-message"
    private static let reason = "the disk is full"

    /// Twenty messages, of which those from the tenth on find a disk that is full, and what was done to them then.
    private static func stage(isFull: Bool) throws -> HistoryStage {
        let stage = try HistoryStage(.store)
        stage.enter(1, "remy", caps: caps)
        stage.say(numbers(0..<10))
        if isFull { stage.harness.store.failure = reason }
        stage.harness.advance(by: .seconds(1))
        stage.say(numbers(10..<15))
        for id in ["m2", "m12"] {
            stage.harness.sendFrame(
                0, #"{"kind":"edit","id":"\#(id)","sender":{"id":"u-lin","name":"linguini"},"text":"\#(id) edited"}"#)
        }
        for id in ["m3", "m13"] {
            stage.harness.sendFrame(
                0, #"{"kind":"delete","ids":["\#(id)"],"sender":{"id":"u-lin","name":"linguini"}}"#)
        }
        for target in ["m4", "m3", "m14"] {
            stage.harness.sendFrame(
                0,
                #"{"kind":"reaction","target":"\#(target)","emoji":"x","sender":{"id":"u-sam","name":"sam"}}"#)
        }
        stage.harness.endTransport(0, reason: "reset")
        stage.harness.advance(by: .seconds(5))
        stage.say(numbers(15..<20))
        _ = stage.raw()
        return stage
    }

    private static func questions(_ stage: HistoryStage) -> [String] {
        func references(_ text: String) -> [String] { ["msgid=" + stage.msgid(text), stage.time(text)] }
        var lines = [
            "LATEST #lobby * 50", "LATEST #lobby * 3", "LATEST #lobby * 12",
            "BETWEEN #lobby msgid=\(stage.msgid("m5")) msgid=\(stage.msgid("m17")) 30",
            "BETWEEN #lobby \(stage.time("m17")) \(stage.time("m5")) 6", "AFTER #lobby msgid=none 5",
        ]
        for text in ["m1", "m9", "m10", "m13", "m19"] {
            for reference in references(text) {
                for question in ["LATEST", "BEFORE", "AFTER", "AROUND"] {
                    lines.append("\(question) #lobby \(reference) 6")
                }
            }
        }
        return lines.map { "CHATHISTORY " + $0 } + ["SEARCH in=#lobby;text=m1", "SEARCH in=#lobby;text=edited"]
    }

    /// Batches are counted.
    private static func bare(_ line: String) -> String {
        line.replacing(#/BATCH ([+-])\S+/#) { "BATCH \($0.1)" }.replacing(#/batch=[^; ]+/#, with: "batch")
    }

    @Test("pages and searches are those of a disk with room, and stay so when there is room")
    func pages() throws {
        let (sound, full) = (try Self.stage(isFull: false), try Self.stage(isFull: true))
        let questions = Self.questions(sound)
        #expect(full.harness.store.disk.rooms[full.room.storedKey]?.messages.count == 10)
        #expect(sound.page("CHATHISTORY LATEST #lobby * 50").count > 16)
        for question in questions {
            #expect(full.ask(question).map(Self.bare) == sound.ask(question).map(Self.bare), "\(question)")
        }
        full.harness.store.failure = nil
        full.harness.advance(by: .seconds(1))
        sound.harness.advance(by: .seconds(1))
        _ = full.raw()
        for question in questions {
            #expect(full.ask(question).map(Self.bare) == sound.ask(question).map(Self.bare), "\(question), with room")
        }
    }

    @Test("who comes back without asking gets everything at once, and nothing of it again")
    func backlog() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        stage.say("m0")
        stage.harness.advance(by: .seconds(10))
        stage.leave(1)
        stage.say("m1")
        stage.harness.store.failure = Self.reason
        stage.say(["m2", "m3"])
        let notice = "bridge: *** " + Room.unkeptSentence(Self.reason)
        stage.enter(2, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(2) == [notice, "ann: m1", "ann: m2", "ann: m3"])
        stage.say("m4")
        #expect(stage.heard(2) == ["ann: m4"])
        stage.harness.advance(by: .seconds(10))
        stage.leave(2)
        stage.say("m5")
        stage.enter(3, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(3) == [notice, "ann: m5"])
        stage.harness.store.failure = nil
        stage.say("m6")
        #expect(stage.heard(3).filter { !$0.contains("***") } == ["ann: m6"])
    }

    @Test("private conversations too")
    func conversations() throws {
        let stage = try PrivateStage(true)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        stage.send(1, "PRIVMSG bob :one")
        stage.harness.store.failure = Self.reason
        stage.send(2, "PRIVMSG ann :two")
        stage.send(1, "PRIVMSG bob :three")
        let wanted = ["ann>bob: one", "bob>ann: two", "ann>bob: three"]
        #expect(stage.latest(1, "bob") == wanted)
        #expect(stage.latest(2, "ann") == wanted)
        stage.harness.store.failure = nil
        #expect(stage.latest(1, "bob") == wanted)
    }

    @Test("what finds no room in memory is lost from a conversation, and what came later is not")
    func lostInConversation() throws {
        let stage = try PrivateStage(true)
        stage.enter(1, "ann", as: "ann")
        stage.enter(2, "bob", as: "bob")
        stage.send(1, "PRIVMSG bob :one")
        stage.harness.store.failure = Self.reason
        stage.send(1, "PRIVMSG bob :two")
        stage.harness.store.room = stage.harness.store.waiting.count
        let shown = stage.send(1, "PRIVMSG bob :lost")
        let msgid = try #require(shown.lazy.compactMap { HistoryStage.tag("msgid", $0) }.first)
        stage.harness.store.room = .max
        stage.send(1, "PRIVMSG bob :three")
        let after = "CHATHISTORY AFTER bob msgid=\(msgid) 50"
        #expect(stage.answer(1, after).contains { $0.contains("NOTE CHATHISTORY INCOMPLETE bob :") })
        #expect(stage.answer(1, after).count { $0.hasSuffix(":three") } == 1)
        stage.harness.store.failure = nil
        stage.send(1, "PING x")
        let later = stage.answer(1, after)
        #expect(later.count { $0.hasSuffix(":three") } == 1)
        #expect(later.contains { $0.contains("could not be stored") } && !later.contains { $0.contains("INCOMPLETE") })
        #expect(stage.latest(2, "ann").prefix(3) == ["ann>bob: one", "ann>bob: two", "ann>bob: three"])
    }

    @Test("more than finds room in memory is said with each page, and what was shown can be gone on from")
    func overflow() throws {
        let stage = try HistoryStage(.store)
        stage.enter(1, "remy", caps: Self.caps)
        stage.say(numbers(0..<3))
        stage.harness.store.failure = Self.reason
        stage.say(numbers(3..<5))
        stage.harness.store.room = stage.harness.store.waiting.count
        stage.say(numbers(5..<8))
        _ = stage.raw()
        let answer = stage.ask("CHATHISTORY LATEST #lobby * 50")
        #expect(answer.compactMap(HistoryStage.words) == numbers(0..<5))
        #expect(answer.last?.contains(":bridge NOTE CHATHISTORY INCOMPLETE #lobby :What was said between ") == true)
        // The last line that the client was shown is one that could not be stored.
        let after = "CHATHISTORY AFTER #lobby msgid=\(stage.msgid("m7")) 50"
        #expect(stage.page(after) == [])
        stage.harness.store.room = .max
        stage.say("m8")
        _ = stage.raw()
        #expect(stage.page(after) == ["m8"])
        stage.harness.store.failure = nil
        stage.say("m9")
        _ = stage.raw()
        let later = stage.ask(after)
        #expect(!later.contains { $0.contains("INCOMPLETE") })
        let words = later.compactMap(HistoryStage.words)
        #expect(words.filter { !$0.hasPrefix("***") } == ["m8", "m9"])
        #expect(words.contains { $0.contains("could not be stored") })
        #expect(stage.page("CHATHISTORY AFTER #lobby \(stage.time("m7")) 50") == words)
    }
}
