import BridgeTestSupport
import BridgeTypes
import ChatModel
import JSONText
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// The disk hangs until there is no room for an order; newer ones find room again before it is handed over once more.
@Suite("What the store had no room for, and what is newer")
struct LossTests {
    private static let caps = PrivateStage.caps + " draft/read-marker"

    private func stage() throws -> PrivateStage {
        let stage = try PrivateStage(true)
        stage.enter(1, "ann", as: "ann", caps: Self.caps)
        stage.enter(2, "bob", as: "bob", caps: Self.caps)
        stage.enter(3, "cleo", as: "cleo", caps: Self.caps)
        return stage
    }

    /// Has the order of `lost` find no room, those of `newer` find some, and the disk take everything in the end.
    private func lose(_ stage: PrivateStage, _ lost: () -> Void, then newer: () -> Void) {
        stage.harness.store.commits = false
        stage.send(3, "PRIVMSG cleo :this waits")
        stage.harness.store.room = stage.harness.store.waiting.count
        lost()
        stage.harness.store.room = .max
        newer()
        stage.harness.store.commits = true
        stage.send(3, "PING x")
        stage.send(3, "PING y")
    }

    private func notes(_ stage: PrivateStage, _ event: String) -> Int {
        stage.harness.notes.count { $0.event == event }
    }

    @Test("what was chosen last is what is chosen")
    func choices() throws {
        let stage = try stage()
        lose(stage) {
            stage.send(1, "PRIVMSG *bridge :mute bob")
        } then: {
            stage.send(1, "PRIVMSG *bridge :mute cleo")
            stage.send(1, "PRIVMSG *bridge :unmute bob")
        }
        #expect(notes(stage, "store-gap") == 1)
        #expect(stage.harness.store.disk.choices.map { $0.mutes.map(\.nick) } == [["cleo"]])
    }

    @Test("what nobody changed since is handed over again")
    func again() throws {
        let stage = try stage()
        lose(stage) {
            stage.send(1, "PRIVMSG *bridge :mute bob")
            stage.send(1, "MARKREAD bob timestamp=2001-01-01T00:00:00.000Z")
        } then: {
        }
        #expect(stage.harness.store.disk.choices.map { $0.mutes.map(\.nick) } == [["bob"]])
        #expect(stage.harness.store.disk.rooms[PrivateMarkers.storedKey]?.markers.count == 1)
    }

    @Test("no read marker goes backwards, of rooms or of conversations", arguments: ["bob", "#lobby"])
    func markers(_ target: String) throws {
        let stage = try stage()
        stage.send(1, "JOIN #lobby")
        lose(stage) {
            stage.send(1, "MARKREAD \(target) timestamp=2001-01-01T00:00:00.000Z")
        } then: {
            stage.send(1, "MARKREAD \(target) timestamp=2002-02-02T00:00:00.000Z")
        }
        stage.restart()
        stage.enter(1, "ann", as: "ann", caps: Self.caps)
        #expect(
            stage.answer(1, "MARKREAD \(target)") == [":bridge MARKREAD \(target) timestamp=2002-02-02T00:00:00.000Z"])
    }

    @Test("a nick is whose it was last")
    func nicks() throws {
        let stage = try stage()
        stage.send(1, "PRIVMSG bob :hello")
        lose(stage) {
            for nick in ["x", "ann"] { stage.send(1, "NICK " + nick) }
        } then: {
            for nick in ["x", "bob"] { stage.send(2, "NICK " + nick) }
        }
        let holders = stage.harness.store.disk.nicks.filter { $0.folded == "x" }
        #expect(holders.map(\.account) == ["bob"])
    }

    @Test("a conversation that began anew keeps what was said in it since")
    func conversations() throws {
        let stage = try stage()
        stage.enter(4, "v0")
        for index in 0..<PrivateConversations.maxCountOfAccount {
            stage.send(4, "NICK v\(index)")
            stage.send(4, "PRIVMSG ann :from v\(index)")
        }
        #expect(stage.harness.store.disk.rooms[.conversation(" v0", "ann")] != nil)
        lose(stage) {
            stage.send(4, "NICK more")
            stage.send(4, "PRIVMSG ann :one too many")
        } then: {
            stage.send(4, "NICK v0")
            stage.send(4, "PRIVMSG ann :again")
        }
        let places = stage.harness.store.disk.rooms[.conversation(" v0", "ann")]?.messages.map(\.sequence) ?? []
        #expect(Set(places).count == places.count, "no place is given twice")
        #expect(stage.latest(1, "v0").last == "v0>ann: again")
        stage.restart()
        stage.enter(1, "ann", as: "ann")
        #expect(stage.latest(1, "v0").last == "v0>ann: again")
    }

    @Test("a message has the words of its last edit")
    func edits() throws {
        let stage = try stage()
        func edit(_ text: String) {
            stage.harness.sendFrame(0, #"{"kind":"edit","id":"1","text":"\#(text)","sender":{"id":"r","name":"remy"}}"#)
        }
        stage.send(1, "JOIN #lobby")
        stage.harness.sendFrame(
            0, #"{"kind":"message","id":"1","at":1,"sender":{"id":"r","name":"remy"},"text":"first"}"#)
        lose(stage) {
            edit("second")
        } then: {
            edit("third")
        }
        let texts = stage.harness.store.disk.rooms.flatMap { $0.value.messages }.filter { $0.nick == "remy" }.map(
            \.text)
        #expect(texts == ["third"])
    }

    @Test("what was taken back, and what the backend then refused to take back, is as it is now", arguments: [1, 2])
    func takenBack(lost count: Int) throws {
        let stage = try stage()
        stage.send(1, "JOIN #lobby")
        stage.harness.advance(by: .seconds(1))
        stage.harness.send(1, "PRIVMSG #lobby :mine")
        let id = stage.harness.takeOutputs().compactMap { output -> String? in
            guard case .upstream(_, .frame(let bytes, _)) = output else { return nil }
            return (try? JSONValue(parsing: bytes))?["id"]?.string
        }
        func row() -> StoredMessage? {
            stage.harness.store.disk.rooms.flatMap { $0.value.messages }.first { $0.nick == "ann" }
        }
        let (ref, msgid) = (try #require(id.last), try #require(row()?.msgid))
        let redact = { _ = stage.send(1, "REDACT #lobby \(msgid)") }
        let refuse = { stage.harness.sendFrame(0, #"{"kind":"error","ref":"\#(ref)","text":"no"}"#) }
        if count == 1 {
            lose(stage, redact, then: refuse)
            #expect(row()?.text == "mine" && row()?.isTakenBack == false)
        } else {
            lose(stage) {
                redact()
                refuse()
            } then: {
                redact()
            }
            #expect(row()?.isTakenBack != false)
        }
    }

    @Test("somebody upstream is called as they are now")
    func identities() throws {
        let stage = try stage()
        func say(_ id: String, _ name: String) {
            stage.harness.sendFrame(
                0, #"{"kind":"message","id":"\#(id)","at":1,"sender":{"id":"r","name":"\#(name)"},"text":"hi"}"#)
        }
        stage.send(1, "JOIN #lobby")
        lose(stage) {
            say("1", "Remy")
        } then: {
            say("2", "Linguini")
        }
        #expect(stage.harness.store.disk.identities.map(\.nick) == ["Linguini"])
    }

    // MARK: - Private messages

    @Test("an author hears that a private message was delivered and not kept, before the PONG, and both find a gap")
    func privateMessages() throws {
        let stage = try stage()
        stage.send(1, "PRIVMSG bob :before")
        stage.harness.store.commits = false
        stage.send(3, "PRIVMSG cleo :this waits")
        stage.harness.store.room = stage.harness.store.waiting.count
        let told = stage.answer(1, "PRIVMSG bob :important")
        #expect(stage.heard(2).contains { $0.hasSuffix("PRIVMSG bob :important") })
        #expect(
            told.last
                == ":bridge WARN PRIVMSG CANNOT_STORE bob :Delivered, but not stored, the write queue is full: important",
            "\(told)")
        stage.harness.store.room = .max
        stage.harness.store.commits = true
        #expect(stage.answer(1, "PING x").last == ":bridge PONG bridge x")
        stage.send(2, "PRIVMSG ann :after")
        for (client, partner) in [(1, "bob"), (2, "ann")] as [(UInt64, String)] {
            let words = stage.latest(client, partner)
            #expect(words.count == 3 && words.first?.hasSuffix(": before") == true, "\(words)")
            #expect(words.dropFirst().first?.contains("could not be stored") == true, "\(words)")
            #expect(words.last?.hasSuffix(": after") == true, "\(words)")
        }
        #expect(stage.harness.violations == [])
    }

    @Test("who shows no such warnings is told by a notice")
    func notice() throws {
        let stage = try stage()
        stage.enter(4, "visitor", caps: "")
        stage.harness.store.room = 0
        let told = stage.send(4, "PRIVMSG ann :important")
        #expect(told.contains { $0.contains(" NOTICE visitor :") && $0.contains("not stored") }, "\(told)")
    }
}
