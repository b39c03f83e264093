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

/// A bridge that dies, and what the next one knows of its rooms.
@Suite("Rooms over a restart")
struct RestartTests {
    // MARK: - Order

    @Test(
        "what was shown is not shown again, what was missed is, in order and under the ids that it would have had",
        arguments: StoredWire.withHistory)
    func history(wire: StoredWire) throws {
        let stage = try StoredStage(wire)
        stage.start()
        stage.enter("bob")
        for text in ["one", "two"] { stage.say(text) }
        let before = stage.heard()
        #expect(before.map(\.text) == ["one", "two"])
        stage.crash(saying: ["three", "four"])
        stage.enter("bob")
        stage.start()
        stage.say("five")
        let after = stage.heard()
        #expect(after.map(\.text) == ["three", "four", "five"])
        #expect(stage.kept.map(\.text) == ["one", "two", "three", "four", "five"])
        #expect(stage.kept.map(\.msgid) == (before + after).map(\.msgid))
        #expect(stage.harness.violations == [])
    }

    @Test(
        "what was shown and not kept is shown again, in its place, once, and under the same id where there are ids",
        arguments: StoredWire.withHistory, [0, 1, 2, 3])
    func uncommitted(wire: StoredWire, committed: Int) throws {
        let stage = try StoredStage(wire)
        stage.start()
        stage.say("zero")
        stage.harness.store.commits = false
        stage.enter("bob")
        for text in ["one", "two", "three"] {
            stage.harness.advance(by: .milliseconds(100))
            stage.say(text)
        }
        let before = stage.heard()
        stage.harness.perform { _, _ in stage.harness.store.commit(committed) }
        stage.crash(saying: ["four"])
        stage.harness.store.commits = true
        stage.enter("bob")
        stage.start()
        let lost = Array(["one", "two", "three"].dropFirst(committed))
        let after = stage.heard()
        #expect(after.map(\.text) == lost + ["four"])
        if wire.hasIDs {
            #expect(after.dropLast().map(\.msgid) == before.dropFirst(committed).map(\.msgid))
        }
        #expect(stage.kept.map(\.text) == ["zero", "one", "two", "three", "four"])
    }

    @Test("the first history is kept as what was said before, and is no news after a restart")
    func firstHistory() throws {
        let stage = try StoredStage(StoredWire.withHistory[1])
        stage.harness.advance(by: .seconds(60))
        for text in ["a", "b"] { stage.say(text) }
        stage.harness.advance(by: .seconds(60))
        stage.start()
        #expect(stage.kept.map(\.text) == ["a", "b"])
        #expect(stage.kept.map(\.source) == ["ann!chat@b", "ann!chat@b"])
        stage.restart(saying: ["c"])
        #expect(stage.kept.map(\.text) == ["a", "b", "c"])
        #expect(stage.kept.map(\.sequence) == [0, 1, 2])
    }

    @Test("a history that reaches back further than what is kept shows no old things", arguments: [0, 1, 2, 3, 4])
    func older(wire: Int) throws {
        let stage = try StoredStage(StoredWire.withHistory[wire], limit: 2)
        for text in ["a", "b", "c", "d"] {
            stage.harness.advance(by: .seconds(1))
            stage.say(text)
        }
        stage.harness.advance(by: .seconds(10))
        stage.start()
        #expect(stage.kept.map(\.text) == ["c", "d"])
        stage.crash(saying: ["e"])
        stage.enter("bob")
        stage.start()
        stage.serve()
        #expect(stage.said() == ["e"])
    }

    @Test("an empty room that was listened to has its first messages shown after a restart")
    func emptyRoom() throws {
        let stage = try StoredStage(StoredWire.withHistory[1])
        stage.start()
        stage.crash(saying: ["first"])
        stage.enter("bob")
        stage.start()
        #expect(stage.said() == ["first"])
    }

    @Test("after a restart an empty room whose link is lost has its first messages shown, and no gap")
    func emptyRoomAndOutage() throws {
        let stage = try StoredStage(StoredWire.withHistory[1])
        stage.start()
        stage.crash()
        stage.enter("bob")
        stage.start()
        stage.loseLink(saying: ["first", "second"])
        stage.regainLink()
        #expect(stage.said() == ["first", "second"])
        #expect(stage.kept.map(\.kind) == [.message, .message])
    }

    @Test("places in the order are never given twice, and grow")
    func sequences() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0])
        stage.start()
        for round in 1...4 {
            stage.say("m\(round)")
            stage.restart()
        }
        let sequences = stage.kept.map(\.sequence)
        #expect(sequences == Array(0..<Int64(sequences.count)))
        #expect(stage.kept.map(\.kind) == [.message, .gap, .message, .gap, .message, .gap, .message, .gap])
    }

    @Test("a message without an id that comes again over the first link after a restart is the same message")
    func repeated() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[2])
        stage.start()
        stage.enter("bob")
        stage.say("ok")
        let msgid = stage.kept[0].msgid
        stage.crash()
        stage.enter("bob")
        stage.start()
        _ = stage.heard()
        stage.harness.sendFrame(0, stage.frame(stage.log[0]))
        #expect(stage.said() == [])
        #expect(stage.kept.first?.msgid == msgid)
        stage.say("ok")
        #expect(stage.said() == ["ok"], "a second one is a second one")
    }

    @Test("a history that failed before a crash is asked for from the same place after it")
    func openGap() throws {
        let stage = try StoredStage(StoredWire.withHistory[2])
        stage.start()
        stage.enter("bob")
        stage.say("one")
        stage.keepsSilent = true
        stage.loseLink(saying: ["two"])
        stage.regainLink()
        stage.harness.advance(by: .seconds(11))
        stage.say("three")
        #expect(stage.said() == ["one", "three"])
        stage.keepsSilent = false
        stage.crash(saying: ["four"])
        stage.enter("bob")
        stage.start()
        #expect(stage.said() == ["two", "four"])
        #expect(stage.kept.map(\.kind) == [.message, .message, .gap, .message, .message])
        #expect(stage.kept[2].text.contains("comes late") && stage.kept[2].gapFrom == nil)
    }

    // MARK: - Messages of ours

    @Test("a message of ours whose id nobody told is not shown again by the history, and its id is kept then")
    func ownWithoutID() throws {
        let stage = try StoredStage(StoredWire.withHistory[2]) { $0.identity = .single }
        stage.start()
        stage.enter("bob")
        stage.say("hello")
        stage.harness.send(1, "PRIVMSG #lobby :\u{1}ACTION waves\u{1}")
        let sent = try #require(stage.sent("message").last)
        #expect(stage.kept.last?.upstreamID == nil)
        #expect(stage.kept.last?.text == "\u{1}ACTION waves\u{1}")
        #expect(stage.kept.last?.author != nil)
        stage.say(try #require(sent["text"]?.string), from: "account")
        let msgid = try #require(stage.kept.last?.msgid)
        #expect(stage.kept.count == 2, "an echo that nobody promised")
        #expect(stage.kept.last?.upstreamID == ChatID("m2"))

        stage.harness.send(1, "PRIVMSG #lobby :again")
        stage.crash()
        let unknown = try #require(stage.kept.last)
        #expect(unknown.upstreamID == nil)
        stage.enter("bob")
        stage.loseNothing(text: unknown.sentAs ?? unknown.text, from: "account")
        stage.start()
        #expect(stage.said() == [])
        #expect(stage.kept.last?.upstreamID == ChatID("m3"))
        #expect(stage.kept.map(\.msgid).contains(msgid))
    }

    @Test("what an account said over a link of its own, under an id that nobody told, is known without that link")
    func ownLink() throws {
        let dialect = OwnLinkStage.silent { $0.history = .socket }
        func history(_ frames: [String]) -> String { SessionStage.history(frames) }
        let first = try OwnLinkStage(dialect, store: StoreStage()) { $0.historyLimit = 50 }
        first.harness.sendFrame(0, history([]))
        first.enterBoth()
        first.harness.send(1, "PRIVMSG #lobby :mine")
        let key = StoredRoomKey(backend: "b", room: "lobby")
        let kept = try #require(first.harness.store.disk.rooms[key]?.messages.last)
        #expect(kept.account == "alice")
        #expect(kept.upstreamID == nil)

        let second = try OwnLinkStage(
            dialect, store: first.harness.store.afterCrash, startingAt: first.harness.clock
        ) { $0.historyLimit = 50 }
        second.enter("bob", 2)
        let mine = #"{"kind":"message","id":"57","at":\#(kept.at.milliseconds),"text":"mine","#
        second.harness.sendFrame(
            0, history([mine + #""sender":{"id":"7","name":"Alice B"}}"#, SessionStage.message("58", "next", at: 9)]))
        let known = second.harness.store.disk.rooms[key]?.messages ?? []
        #expect(known.map(\.text) == ["mine", "next"])
        #expect(known.first?.upstreamID == ChatID("57"))
        #expect(known.first?.msgid == kept.msgid)
    }

    @Test("edits, taking back and replies hold after a restart, for messages from before it")
    func actions() throws {
        let stage = try StoredStage(StoredWire.withHistory[1])
        stage.start()
        for text in ["one", "two", "three"] { stage.say(text) }
        stage.harness.sendFrame(0, #"{"kind":"edit","id":"m1","text":"uno","sender":{"id":"u-ann"}}"#)
        stage.harness.sendFrame(0, #"{"kind":"delete","ids":["m2"],"sender":{"id":"u-ann"}}"#)
        #expect(stage.kept.map(\.text) == ["uno", "", "three"])
        stage.restart()
        stage.enter("bob")
        stage.harness.sendFrame(0, #"{"kind":"edit","id":"m1","text":"uno","sender":{"id":"u-ann"}}"#)
        stage.harness.sendFrame(0, #"{"kind":"delete","ids":["m2"],"sender":{"id":"u-ann"}}"#)
        stage.harness.sendFrame(0, #"{"kind":"edit","id":"m2","text":"dos","sender":{"id":"u-ann"}}"#)
        #expect(stage.said() == [], "known already")
        stage.harness.sendFrame(0, #"{"kind":"edit","id":"m3","text":"tres","sender":{"id":"u-ann"}}"#)
        #expect(stage.said() == ["* tres"])
        #expect(stage.kept.map(\.text) == ["uno", "", "tres"])
        stage.harness.send(1, "@+reply=\(stage.kept[2].msgid) PRIVMSG #lobby :yes")
        #expect(stage.sent("message").last?["replyTo"]?.string == "m3")
    }

    // MARK: - People

    @Test("nicks stay with their people, numbers included, and a stay of 30 days ends")
    func nicks() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[1])
        stage.start()
        var number = 0
        func say(_ id: String, _ name: String) {
            number += 1
            stage.harness.sendFrame(
                0,
                "{\"kind\":\"message\",\"id\":\"\(number)\",\"text\":\"x\","
                    + "\"sender\":{\"id\":\"\(id)\",\"name\":\"\(name)\"}}")
        }
        say("1", "ann")
        say("2", "ann")
        say("3", "Zoë")
        say("3", "Zed")
        let nicks = Dictionary(
            uniqueKeysWithValues: stage.harness.store.disk.identities.map { ($0.person.id?.rawValue ?? "", $0.nick) })
        #expect(nicks == ["1": "ann", "2": "ann2", "3": "Zed"])
        stage.restart()
        stage.enter("bob")
        say("2", "ann")
        say("1", "ann")
        say("3", "Zed")
        #expect(stage.heard().filter { $0.from != "bridge" }.map(\.from) == ["ann2", "ann", "Zed"])
        stage.restart(down: .seconds(31 * 24 * 3600))
        #expect(stage.harness.store.disk.identities == [])
        stage.enter("bob")
        say("2", "ann")
        #expect(stage.heard().filter { $0.from != "bridge" }.map(\.from) == ["ann"])
    }

    @Test("people who are here are kept as seen once a day, and when they leave")
    func seen() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[1], { $0.tellsOfLeaves = true })
        stage.start()
        stage.say("x")
        let first = stage.wall
        stage.harness.advance(by: .seconds(25 * 3600))
        #expect(stage.harness.store.disk.identities.map(\.lastSeen.milliseconds) == [first + 24 * 3600 * 1000])
        stage.harness.sendFrame(0, #"{"kind":"leave","user":{"id":"u-ann","name":"ann"}}"#)
        #expect(stage.harness.store.disk.identities.map(\.lastSeen.milliseconds) == [stage.wall])
    }

    @Test("somebody for whom the backend vouches has their account after a restart too")
    func accounts() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[1], { $0.authenticatesSenders = true })
        stage.start()
        stage.say("one")
        #expect(stage.kept.last?.account == "u-ann@b")
        stage.restart()
        stage.say("two")
        #expect(stage.kept.last?.account == "u-ann@b")
    }

    @Test("whatever a file says, a bridge starts over it and goes on", arguments: StoredWire.withHistory)
    func hostileFile(wire: StoredWire) throws {
        let numbers: [Int64] = [.min, -1, 0, .max]
        var room = StoredRoom(liveUntil: ChatTimestamp(milliseconds: .max), nextSequence: .max)
        var identities: [StoredIdentity] = []
        for (index, number) in numbers.enumerated() {
            let at = ChatTimestamp(milliseconds: number)
            for kind in StoredMessage.Kind.allCases {
                for author in [nil, ChatID("x")] {
                    room.messages.append(
                        StoredMessage(
                            kind: kind, sequence: number, msgid: "\(room.messages.count)",
                            upstreamID: index == 1 ? nil : ChatID("i"), at: at, backendAt: at, gapFrom: at, nick: "",
                            source: "", text: "", author: author))
                }
            }
            room.markers.append(StoredMarker(reader: ChatID("r\(index)"), at: at, sequence: number))
            room.receipts.append(
                StoredReceipt(
                    author: ChatID("a"), reader: ChatPerson(), deliveredSequence: number, readSequence: number))
            for nick in ["", "a b", "bridge", "ok\(index)"] {
                identities.append(
                    StoredIdentity(
                        backend: "b", person: ChatPerson(name: nick), nick: nick, realname: nick, lastSeen: at))
            }
        }
        let disk = StoredState(rooms: [StoredRoomKey(backend: "b", room: "lobby"): room], identities: identities)
        let stage = try StoredStage(wire, disk: disk)
        stage.enter("bob")
        stage.start()
        stage.harness.advance(by: .seconds(400))
        stage.say("one")
        #expect(stage.said().last == "one")
        let newest = try #require(stage.room.recent.newest)
        #expect(newest.sequence > 0)
        #expect(newest.sequence < .max)
    }

    // MARK: - Reading

    @Test("read markers are the same after a restart, and only what came after them is reported as read")
    func markers() throws {
        let stage = try StoredStage(
            StoredWire.withHistory[1], { $0.readReport = .eachMessage }, room: { $0.receipts = .marker })
        stage.start()
        stage.enter("bob", caps: "message-tags draft/read-marker")
        stage.say("one")
        stage.harness.advance(by: .seconds(5))
        stage.harness.send(1, "MARKREAD #lobby timestamp=2026-11-21T12:00:05.000Z")
        #expect(stage.sent("receipt").map { $0["ids"]?.array?.count } == [1])
        stage.say("two")
        stage.crash()
        stage.start()
        stage.harness.connect(1)
        for line in ["CAP REQ :message-tags draft/read-marker", "NICK bob", "USER u 0 * :r", "CAP END", "JOIN #lobby"] {
            stage.harness.send(1, line)
        }
        #expect(stage.raw().contains { $0.hasSuffix("MARKREAD #lobby timestamp=2026-11-21T12:00:05.000Z") })
        stage.harness.send(1, "MARKREAD #lobby timestamp=2026-11-21T12:00:30.000Z")
        #expect(stage.sent("receipt").compactMap { $0["ids"]?.array?.first?.string } == ["m2"])
    }

    @Test("an author is not told again of what a reader had read before the restart")
    func receipts() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0])
        stage.start()
        stage.enter("bob")
        stage.harness.send(1, "PRIVMSG #lobby :one")
        stage.harness.send(1, "PRIVMSG #lobby :two")
        let ids = stage.sent("message").compactMap { $0["id"]?.string }
        func read(_ id: String, _ state: String = "read") {
            stage.harness.sendFrame(
                0,
                "{\"kind\":\"receipt\",\"state\":\"\(state)\",\"ids\":[\"\(id)\"],"
                    + "\"by\":{\"id\":\"u-ann\",\"name\":\"ann\"}}")
        }
        read(ids[0])
        func told() -> Int {
            stage.raw().filter { $0.contains("+draft/read=") || $0.contains("+draft/delivered=") }.count
        }
        #expect(told() == 1)
        stage.restart()
        stage.enter("bob")
        read(ids[0])
        read(ids[0], "delivered")
        #expect(told() == 0)
        read(ids[1])
        #expect(told() == 1)
    }

    // MARK: - Nothing kept

    @Test("without a store nothing is ordered of it")
    func memory() throws {
        let stage = try SessionStage(
            StubDialect {
                $0.history = .socket; $0.messageIDOrigin = .server
            })
        stage.harness.start()
        stage.enter("bob")
        stage.backend(SessionStage.history([SessionStage.message("1", "one", at: -60)]))
        stage.backend(SessionStage.message("2", "two"))
        stage.harness.send(1, "PRIVMSG #lobby :three")
        stage.harness.advance(by: .seconds(60))
        #expect(stage.harness.store.orders == [])
        #expect(stage.room.recent.newest?.sequence == 2)
    }
}

extension StoredStage {
    /// Something is said upstream while no bridge is there.
    func loseNothing(text: String, from sender: String) { say(text, from: sender) }
}
