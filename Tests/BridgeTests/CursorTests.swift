import BridgeTestSupport
import BridgeTypes
import ChatModel
import IRCProtocol
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Cursors")
struct CursorTests {
    private func said(_ range: Range<Int>) -> [String] { range.map { "ann: m\($0)" } }
    private static let caps = BacklogStage.caps

    private func msgids(_ lines: [String]) -> [String] {
        lines.compactMap { $0.firstMatch(of: #/[@;]msgid=([^; ]+)/#).map { String($0.1) } }
    }

    // MARK: - How they move

    @Test("a new cursor begins at the newest message, and is kept at once")
    func begins() throws {
        let stage = try BacklogStage()
        stage.say(numbers(0..<3))
        _ = stage.takeOrders()
        stage.enter(1, "alice@phone", caps: Self.caps)
        #expect(stage.heard(1) == [])
        let key = stage.room.storedKey
        #expect(
            stage.takeOrders() == [
                .membership(StoredMembership(account: "alice", room: key, channel: "#lobby", position: 1)),
                .cursor(StoredCursor(account: "alice", client: "phone", room: key, sequence: 2)),
            ])
        #expect(stage.session(1)?.lastKept != nil)
    }

    @Test("nobody without an account has one")
    func anonymous() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.enter(1, "carol")
        stage.say(numbers(0..<3))
        stage.harness.advance(by: .seconds(5))
        #expect(!stage.answer(1))
        #expect(stage.harness.store.disk.cursors == [])
    }

    @Test("what was not acknowledged comes again under the same id, what was never does")
    func acknowledged() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.say(numbers(0..<3))
        stage.harness.advance(by: .seconds(3))
        #expect(stage.answer(1))
        stage.say(numbers(3..<5))
        let first = msgids(stage.raw(1))
        stage.harness.advance(by: .seconds(3))
        stage.leave(1)
        stage.enter(2, "alice@phone", caps: Self.caps)
        let again = stage.raw(2)
        #expect(msgids(again) == Array(first.suffix(2)))
        #expect(again.filter { $0.contains("PRIVMSG") }.count == 2)
    }

    @Test("what a client has of a room that a reload closes and opens again does not come again", arguments: [1, 2])
    func reopened(connection: UInt64) throws {
        let stage = try BacklogStage(rooms: 2)
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone", room: "#room1")
        stage.say("m0", room: 1)
        #expect(stage.heard(1) == ["ann: m0"])
        stage.reload(rooms: [0])
        stage.harness.advance(by: .seconds(10))
        #expect(stage.harness.bridge.rooms.map(\.channel) == ["#lobby"])
        if connection == 1 {
            stage.reload(rooms: [0, 1])
            stage.harness.send(1, "JOIN #room1")
        } else {
            #expect(stage.answer(1))
            stage.leave(1)
            stage.reload(rooms: [0, 1])
            stage.enter(2, "alice@phone", room: "#room1")
        }
        stage.harness.advance(by: .seconds(3))
        #expect(stage.session(connection)?.rooms.count == 1)
        #expect(stage.heard(connection).filter { $0.contains("m0") } == [])
        for _ in 0..<2 {
            while stage.answer(connection) {}
            stage.harness.advance(by: .seconds(3))
        }
        #expect(stage.kept("alice", "phone", room: 1) == Int64(stage.harness.bridge.rooms[1].lastSequence))
    }

    @Test("one line waits two seconds for others, many are asked about at once, and one question is open at a time")
    func asks() throws {
        let stage = try BacklogStage(rooms: 2)
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone")
        stage.harness.send(1, "JOIN #room1")
        stage.say("m0")
        stage.harness.advance(by: .milliseconds(1990))
        #expect(!stage.answer(1))
        stage.say("n0", room: 1)
        stage.harness.advance(by: .milliseconds(20))
        #expect(stage.answer(1))
        #expect(stage.cursor("alice", "phone") == 0 && stage.cursor("alice", "phone", room: 1) == 0)
        stage.harness.advance(by: .seconds(10))
        #expect(!stage.answer(1))

        stage.say(numbers(1..<202))
        #expect(stage.cursor("alice", "phone") == 0)
        stage.say(numbers(202..<600))
        stage.harness.advance(by: .seconds(3))
        #expect(stage.answer(1))
        #expect((200...202).contains(stage.cursor("alice", "phone") ?? 0))
        #expect(stage.answer(1))
        #expect(stage.cursor("alice", "phone") == 599)
        #expect(!stage.answer(1))
    }

    @Test("the answer to any question acknowledges the lines before it")
    func anyQuestion() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone")
        stage.say("m0")
        stage.harness.perform { bridge, _ in bridge.irc.whenReceived(by: ClientID(rawValue: 1)) {} }
        stage.say("m1")
        stage.harness.perform { bridge, _ in bridge.irc.whenReceived(by: ClientID(rawValue: 1)) {} }
        #expect(stage.answer(1))
        #expect(stage.cursor("alice", "phone") == 0)
        #expect(stage.answer(1))
        #expect(stage.cursor("alice", "phone") == 1)
        #expect(!stage.answer(1))
    }

    @Test("a client that is asked for what it has got is not asked by another name whether it lives")
    func oneQuestion() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone")
        _ = stage.raw(1)
        stage.say("m0")
        stage.harness.advance(by: .seconds(3))
        stage.say("m1")
        stage.harness.advance(by: .seconds(90))
        #expect(!stage.raw(1).contains { $0.hasPrefix("PING ") }, "one question is open already")
        #expect(!stage.isClosed(1))
        #expect(stage.answer(1))
        stage.harness.advance(by: .seconds(3))
        #expect(stage.answer(1))
        #expect(stage.cursor("alice", "phone") == 1)
        // Now nothing is open: whether it lives is all there is to ask.
        stage.harness.advance(by: .seconds(90))
        #expect(stage.raw(1) == ["PING bridge"])
        stage.harness.send(1, "PONG bridge")
        // Lines that wait for their question get it at once when the client is asked anyway.
        stage.harness.advance(by: .seconds(89))
        stage.say("m2")
        stage.harness.advance(by: .seconds(1))
        #expect(stage.heard(1) == said(2..<3))
        #expect(stage.answer(1))
        #expect(stage.cursor("alice", "phone") == 2)
    }

    @Test("a client that never answers what it has got is gone when one that lives would have")
    func deaf() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone")
        stage.say("m0")
        stage.harness.advance(by: .seconds(149))
        #expect(!stage.isClosed(1))
        stage.harness.advance(by: .seconds(2))
        #expect(stage.isClosed(1))
        #expect(stage.raw(1).last == "ERROR :Closing Link: 127.0.0.1 (Ping timeout)")
    }

    // MARK: - When the bridge stops

    /// Stops, and gives what the client gets from the next process.
    private func missed(_ stage: BacklogStage) -> [String] {
        stage.crash()
        stage.enter(1, "alice@phone", caps: Self.caps)
        return stage.heard(1).filter { !$0.contains("is missing") }
    }

    @Test("a bridge that stops asks who was given something, and gives it to nobody again")
    func stopping() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.say("m0")
        stage.harness.shutdown()
        #expect(!stage.isClosed(1))
        // Said meanwhile: the next process shows it.
        stage.say("m1")
        #expect(stage.heard(1) == ["ann: m0"])
        #expect(stage.answer(1))
        stage.harness.advance(by: .milliseconds(1))
        #expect(stage.isClosed(1))
        #expect(missed(stage) == ["ann: m1"])
    }

    @Test("an earlier question that is still open is not the last one")
    func stoppingAmidQuestion() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.say("m0")
        stage.harness.advance(by: .seconds(3))
        stage.say("m1")
        stage.harness.shutdown()
        #expect(stage.answer(1))
        stage.harness.advance(by: .milliseconds(1))
        #expect(!stage.isClosed(1))
        #expect(stage.answer(1))
        stage.harness.advance(by: .milliseconds(1))
        #expect(stage.isClosed(1))
        #expect(missed(stage) == [])
    }

    @Test("a client that was given nothing, or is gone, is not waited for, and one that hangs for two seconds")
    func stoppingWithoutAnswer() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.enter(2, "bob@phone", caps: Self.caps)
        stage.harness.shutdown()
        #expect(stage.isClosed(1))

        for leaves in [true, false] {
            let stage = try BacklogStage()
            stage.harness.answersPings = false
            stage.enter(1, "alice@phone", caps: Self.caps)
            stage.enter(2, "bob@phone", caps: Self.caps)
            stage.say("m0")
            stage.harness.shutdown()
            stage.harness.advance(by: .milliseconds(1900))
            #expect(stage.answer(1))
            stage.harness.advance(by: .milliseconds(1))
            #expect(!stage.isClosed(1))
            if leaves { stage.leave(2) } else { stage.harness.advance(by: .milliseconds(100)) }
            stage.harness.advance(by: .milliseconds(1))
            #expect(stage.isClosed(1))
            #expect(missed(stage) == [])
            stage.enter(2, "bob@phone", caps: Self.caps)
            #expect(stage.heard(2).first == "ann: m0", "bob did not say that he has it")
        }
    }

    @Test("a client that still gets what was said before gets all of it, when the bridge stops")
    func stoppingAmidBacklog() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.leave(1)
        stage.say(numbers(0..<5))
        stage.harness.store.answersQuestions = false
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.harness.answersPings = false
        stage.harness.shutdown()
        stage.harness.store.answersQuestions = true
        stage.say("m5")
        #expect(stage.heard(1) == said(0..<6))
        #expect(stage.answer(1))
        stage.harness.advance(by: .milliseconds(1))
        #expect(stage.isClosed(1))
        #expect(missed(stage) == [])
    }

    // MARK: - Questions

    @Test("a question amid what was said before asks about all of it that was written")
    func amidBacklog() throws {
        let stage = try BacklogStage(rejoins: false)
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.leave(1)
        let words = String(repeating: "x", count: 300)
        stage.say((0..<300).map { "m\($0) " + words })
        stage.connect(1, "alice@phone", caps: Self.caps)
        stage.harness.setSlow(1, true)
        stage.harness.send(1, "JOIN #lobby")
        let count = stage.heard(1).count
        #expect(count > 1 && count < 100)
        stage.harness.perform { bridge, _ in bridge.irc.whenReceived(by: ClientID(rawValue: 1)) {} }
        #expect(stage.answer(1))
        // The rest is not asked about yet.
        stage.harness.setSlow(1, false)
        #expect(stage.heard(1).count == 300 - count)
        #expect(stage.cursor("alice", "phone") == Int64(count - 1))
    }

    @Test("a question that an answer gives rise to asks about everything that was written before it, too")
    func askedInAnAnswer() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone")
        let client = ClientID(rawValue: 1)
        stage.say("m0")
        stage.harness.perform { bridge, _ in
            bridge.irc.whenReceived(by: client) { [weak bridge] in bridge?.irc.whenReceived(by: client) {} }
        }
        stage.say("m1")
        #expect(stage.answer(1))
        #expect(stage.cursor("alice", "phone") == 0)
        #expect(stage.answer(1))
        #expect(stage.cursor("alice", "phone") == 1)
    }

    @Test("a question that had to wait for another asks about everything that was written before it goes")
    func waitedForAnother() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone")
        stage.harness.perform { bridge, _ in bridge.irc.whenReceived(by: ClientID(rawValue: 1)) {} }
        stage.say("m0")
        // The cursors' own time comes while the first question is open.
        stage.harness.advance(by: .seconds(3))
        stage.say("m1")
        #expect(stage.answer(1))
        #expect(stage.answer(1))
        #expect(stage.cursor("alice", "phone") == 1)
        #expect(!stage.answer(1))
    }

    @Test("many busy rooms together are asked about as seldom as one")
    func manyBusyRooms() throws {
        let stage = try BacklogStage(rooms: 40)
        stage.harness.answersPings = false
        // Until all rooms have their links.
        stage.harness.advance(by: .seconds(10))
        stage.enter(1, "alice@phone")
        for room in 1..<40 { stage.harness.send(1, "JOIN #room\(room)") }
        var asked = 0
        for _ in 0..<5 {
            for room in 0..<40 {
                stage.say("m", room: room)
                stage.harness.advance(by: .milliseconds(50))
                while stage.answer(1) { asked += 1 }
            }
        }
        #expect((3...6).contains(asked))
        stage.harness.advance(by: .seconds(5))
        while stage.answer(1) {}
        for room in 0..<40 { #expect(stage.cursor("alice", "phone", room: room) == 4) }
    }

    @Test("a crash keeps what was committed, and no more")
    func crash() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.say(numbers(0..<3))
        stage.harness.advance(by: .seconds(3))
        stage.say(numbers(3..<5))
        stage.harness.store.commits = false
        stage.harness.advance(by: .seconds(3))
        #expect(stage.cursor("alice", "phone") == 4)
        stage.crash()
        #expect(stage.cursor("alice", "phone") == 2)
        stage.enter(2, "alice@phone", caps: Self.caps)
        #expect(stage.heard(2).filter { !$0.hasPrefix("bridge: ") } == said(3..<5))
        stage.say("m5")
        #expect(stage.heard(2) == said(5..<6))
    }

    @Test("a cursor beyond the end of the room, whose last messages were lost, skips no new ones")
    func beyondTheEnd() throws {
        let key = StoredRoomKey(backend: "b", room: "lobby")
        let cursors = DeliveryCursors(
            [StoredCursor(account: "Alice", client: "phone", room: key, sequence: 9)],
            rooms: [key: StoredRoom(nextSequence: 5)])
        #expect(cursors.place(of: ClientKey(account: "alice", client: "phone"), in: key) == 4)
    }

    @Test("a client that goes before it answers is where it was")
    func leavesUnanswered() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone")
        stage.say("m0")
        stage.harness.advance(by: .seconds(3))
        stage.leave(1)
        stage.harness.advance(by: .seconds(60))
        #expect(stage.cursor("alice", "phone") == -1)
    }

    @Test("who enters a room that is still being read gets the rest when it is")
    func loading() throws {
        let stage = try BacklogStage()
        stage.enter(90, "alice@phone")
        stage.harness.advance(by: .seconds(3))
        stage.leave(90)
        stage.say(numbers(0..<3))
        stage.room.beginLoading()
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.enter(2, "alice@desk", caps: Self.caps)
        #expect(stage.cursor("alice", "desk") == nil)
        stage.harness.perform { $0.roomLoaded(RoomID(index: 0), .success(StoredRoom()), now: $1) }
        stage.say("m3")
        #expect(stage.heard(1) == said(0..<4))
        #expect(stage.heard(2) == said(3..<4))
        #expect(stage.cursor("alice", "desk") == 2)
    }

    // MARK: - Several clients

    @Test("each client of an account has its own")
    func two() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.enter(2, "alice@desk", caps: Self.caps)
        stage.say("m0")
        stage.harness.advance(by: .seconds(3))
        stage.leave(1)
        stage.say("m1")
        stage.harness.advance(by: .seconds(3))
        stage.leave(2)
        stage.say("m2")
        stage.enter(3, "alice@phone", caps: Self.caps)
        stage.enter(4, "alice@desk", caps: Self.caps)
        #expect(stage.heard(3) == said(1..<3))
        #expect(stage.heard(4) == said(2..<3))
        stage.enter(5, "alice@tablet", caps: Self.caps)
        #expect(stage.heard(5) == [])
    }

    @Test(
        "a new connection takes over from one that hangs, and the old one's answers change nothing that it did not get")
    func ghost() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.say(numbers(0..<2))
        stage.harness.advance(by: .seconds(3))
        stage.say(numbers(2..<4))
        stage.enter(2, "alice@phone", caps: Self.caps)
        #expect(stage.heard(2) == said(0..<4))
        stage.say("m4")
        stage.harness.advance(by: .seconds(3))
        #expect(stage.answer(2))
        #expect(stage.cursor("alice", "phone") == 4)
        #expect(stage.answer(1))
        #expect(stage.cursor("alice", "phone") == 4)
        stage.harness.advance(by: .seconds(3))
        stage.answer(2)
        #expect(stage.cursor("alice", "phone") == 4)
    }

    @Test("the answer of a connection that hangs counts for what it was asked about alone")
    func ghostForward() throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.say(numbers(0..<2))
        stage.harness.advance(by: .seconds(3))
        stage.say(numbers(2..<4))
        stage.enter(2, "alice@phone", caps: Self.caps)
        stage.say("m4")
        #expect(stage.answer(1))
        #expect(stage.cursor("alice", "phone") == 1)
        stage.leave(1)
        stage.leave(2)
        stage.enter(3, "alice@phone", caps: Self.caps)
        #expect(stage.heard(3) == said(2..<5))
    }

    @Test("an account's clients are a hundred; the one that was away for longest is forgotten")
    func manyClients() throws {
        let stage = try BacklogStage()
        for number in 0..<101 {
            stage.enter(UInt64(number + 1), "alice@c\(number)")
            stage.leave(UInt64(number + 1))
            #expect(stage.harness.bridge.irc.cursors.clientCount(of: "alice") <= 100)
        }
        #expect(stage.cursor("alice", "c0") == nil && stage.cursor("alice", "c1") == -1)
        #expect(stage.cursor("alice", "c100") == -1)
        #expect(stage.harness.store.disk.cursors.count == 100)
        #expect(stage.harness.notes.filter { $0.event == "client-forgotten" }.count == 1)
    }

    @Test("a client has a bounded number of rooms")
    func manyRooms() {
        let cursors = DeliveryCursors([], rooms: [:])
        let client = ClientKey(account: "alice", client: "phone")
        func key(_ number: Int) -> StoredRoomKey { StoredRoomKey(backend: "b", room: "r\(number)") }
        var gone: [StoredRoomKey] = []
        for number in 0..<(DeliveryCursors.maxRoomsPerClient + 2) {
            gone += cursors.enter(client, in: key(number), at: 0, present: []).map(\.room)
        }
        #expect(gone == [key(0), key(1)])
        #expect(cursors.place(of: client, in: key(0)) == nil)
    }

    // MARK: - Leaving

    @Test("PART forgets the cursor of the clients that it takes out", arguments: ["PART #lobby", "JOIN 0"])
    func part(_ line: String) throws {
        let stage = try BacklogStage()
        stage.enter(9, "alice@away")
        stage.leave(9)
        stage.enter(1, "alice@phone")
        stage.enter(2, "alice@desk")
        stage.harness.send(1, line)
        #expect(stage.cursor("alice", "phone") == nil && stage.cursor("alice", "desk") == nil)
        #expect(stage.cursor("alice", "away") == -1)
        #expect(stage.harness.store.disk.cursors.map(\.client) == ["away"])
        #expect(stage.session(1)?.lastKept != nil)
        stage.say(numbers(0..<2))
        stage.harness.send(1, "JOIN #lobby")
        #expect(!stage.heard(1).contains("ann: m0"))
        #expect(stage.cursor("alice", "phone") == 1)
    }

    @Test("PART in the middle ends the batch and lets go what waited")
    func partInTheMiddle() throws {
        let stage = try BacklogStage()
        stage.enter(90, "alice@phone")
        stage.leave(90)
        stage.enter(91, "alice@desk")
        stage.leave(91)
        stage.harness.store.commits = false
        stage.say("m0")
        stage.enter(1, "alice@phone", caps: Self.caps)
        stage.enter(2, "alice@desk", caps: Self.caps)
        stage.say("m1")
        stage.harness.send(1, "PART #lobby")
        #expect(stage.raw(2).last?.contains(" PART ") == true)
        stage.harness.store.commits = true
        stage.say("m2")
        #expect(stage.heard(1) == said(1..<2))
        #expect(stage.harness.bridge.irc.storeQuestions.isEmpty)
        stage.harness.send(1, "JOIN #lobby")
        stage.say("m3")
        #expect(stage.heard(1) == said(3..<4))
        #expect(stage.heard(2) == said(3..<4))
    }

    @Test("who is held counts as in the room, under any capabilities")
    func audience() {
        var audience = CapabilityGroups()
        let ids = (1...4).map { ClientID(rawValue: $0) }
        let seats = ids.map { MemberSlot(client: $0) }
        func seat(_ client: ClientID) -> MemberSlot? { seats.first { $0.client == client } }
        for one in seats {
            audience.add(one, profile: [], isHeld: one.client.rawValue % 2 == 0, slotOf: seat)
        }
        #expect(audience.groups[0].clients == [ids[0], ids[2]] && audience.groups[0].held == [ids[1], ids[3]])
        audience.setHeld(seats[1], false, slotOf: seat)
        audience.setHeld(seats[0], true, slotOf: seat)
        audience.remove(seats[3], slotOf: seat)
        #expect(Set(audience.groups[0].clients) == [ids[1], ids[2]] && audience.groups[0].held == [ids[0]])
        audience.add(seats[0], profile: [.batch], isHeld: seats[0].isHeld, slotOf: seat)
        #expect(seats[0].isHeld && audience.groups[0].held.isEmpty && audience.count == 3)
        for one in seats { audience.remove(one, slotOf: seat) }
        #expect(!audience.groups.contains { !$0.isEmpty })
    }
}
