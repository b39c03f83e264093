import BridgeTestSupport
import ChatModel
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// `history_on_join`: clients that neither ask for what was said nor have a cursor.
@Suite("Last lines of a room")
struct LastLinesTests {
    /// Where the messages are read from.
    enum Place: CaseIterable {
        case disk, memory

        var store: StoreStage? { self == .disk ? StoreStage() : nil }
    }

    private func said(_ range: Range<Int>) -> [String] { range.map { "ann: m\($0)" } }

    private func stage(_ place: Place, _ count: Int = 5, said: Int = 8) throws -> BacklogStage {
        let stage = try BacklogStage(store: place.store, historyOnJoin: count)
        stage.say(numbers(0..<said))
        return stage
    }

    @Test("a guest that enters is shown the newest, and then what is said", arguments: Place.allCases)
    func guest(_ place: Place) throws {
        let stage = try stage(place)
        stage.enter(1, "guest", caps: BacklogStage.caps)
        stage.say("m8")
        #expect(stage.heard(1) == said(3..<9))
    }

    @Test("whoever asks for it, and where none are wanted, is shown nothing", arguments: Place.allCases)
    func nothing(_ place: Place) throws {
        let asking = try stage(place)
        asking.enter(1, "guest", caps: BacklogStage.caps + " draft/chathistory")
        #expect(asking.heard(1) == [])
        let none = try stage(place, 0)
        none.enter(1, "guest", caps: BacklogStage.caps)
        #expect(none.heard(1) == [])
    }

    @Test("with a batch it is one, behind the names; without there is none", arguments: Place.allCases)
    func batch(_ place: Place) throws {
        let stage = try stage(place, 2)
        stage.connect(1, "guest", caps: BacklogStage.caps)
        _ = stage.raw(1)
        stage.harness.send(1, "JOIN #lobby")
        let lines = stage.raw(1)
        let end = try #require(lines.firstIndex { $0.contains(" 366 ") })
        let rest = Array(lines[(end + 1)...])
        #expect(rest.count == 4)
        #expect(rest.first?.contains(" chathistory #lobby") == true && rest.last?.contains("BATCH -") == true)
        #expect(rest.dropFirst().dropLast().allSatisfy { $0.contains("batch=") && $0.contains("time=") })
        stage.enter(2, "other")
        let plain = stage.raw(2)
        #expect(plain.count == 2 && plain.allSatisfy { $0.contains(#/ PRIVMSG #lobby :\[[0-9]{2}:[0-9]{2}\] m[67]$/#) })
    }

    @Test("what the same connection was shown it is shown no second time", arguments: Place.allCases)
    func again(_ place: Place) throws {
        let stage = try stage(place)
        stage.enter(1, "guest", caps: BacklogStage.caps)
        #expect(stage.heard(1) == said(3..<8))
        for text in ["m8", "m9"] {
            stage.harness.send(1, "PART #lobby")
            _ = stage.raw(1)
            stage.say(text)
            stage.harness.send(1, "JOIN #lobby")
            #expect(stage.heard(1) == ["ann: " + text])
        }
        stage.harness.send(1, "PART #lobby")
        stage.harness.send(1, "JOIN #lobby")
        #expect(stage.heard(1) == [])
        // Another connection was shown none of it.
        stage.leave(1)
        stage.enter(2, "guest", caps: BacklogStage.caps)
        #expect(stage.heard(2) == said(5..<10))
    }

    @Test("more was said meanwhile than is shown: the newest of that", arguments: Place.allCases)
    func muchMeanwhile(_ place: Place) throws {
        let stage = try stage(place)
        stage.enter(1, "guest", caps: BacklogStage.caps)
        stage.harness.send(1, "PART #lobby")
        _ = stage.raw(1)
        stage.say(numbers(8..<20))
        stage.harness.send(1, "JOIN #lobby")
        #expect(stage.heard(1) == said(15..<20))
    }

    @Test("what is said while the disk looks comes behind it; who leaves in between gets that and no more")
    func slowDisk() throws {
        let stage = try stage(.disk)
        stage.harness.store.answersQuestions = false
        for client: UInt64 in 1...2 { stage.enter(client, "guest\(client)", caps: BacklogStage.caps) }
        stage.say("m8")
        #expect(stage.heard(1) == [] && stage.heard(2) == [])
        stage.harness.send(2, "PART #lobby")
        #expect(stage.heard(2) == ["ann: m8"])
        stage.harness.store.answersQuestions = true
        stage.say("m9")
        #expect(stage.heard(1) == said(3..<10))
        stage.harness.send(2, "JOIN #lobby")
        #expect(stage.heard(2) == ["ann: m9"])
    }

    @Test("a disk that fails or does not answer holds nobody up")
    func failingDisk() throws {
        let stage = try stage(.disk)
        stage.harness.store.readFailure = StoreFailure("the disk is gone")
        stage.enter(1, "guest", caps: BacklogStage.caps)
        stage.say("m8")
        #expect(
            stage.heard(1) == ["bridge: *** What was said before you came cannot be read now.", "ann: m8"])
        stage.harness.store.readFailure = nil
        stage.harness.store.answersQuestions = false
        stage.enter(2, "other", caps: BacklogStage.caps)
        stage.say("m9")
        #expect(stage.heard(2) == [])
        stage.harness.advance(by: .seconds(31))
        #expect(stage.heard(2).last == "ann: m9")
        #expect(stage.session(2)?.following == nil)
    }

    @Test("a client of an account that was never here is shown them, and from then on what it missed")
    func account() throws {
        let stage = try stage(.disk)
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(1) == said(3..<8))
        stage.harness.advance(by: .seconds(3))
        #expect(stage.cursor("alice", "phone") == 7)
        stage.leave(1)
        stage.say(numbers(8..<20))
        stage.enter(2, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(2) == said(8..<20))
        stage.harness.advance(by: .seconds(3))
        stage.leave(2)
        stage.enter(3, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(3) == [])
    }

    @Test("its own words of another connection are among them, though it has no echo")
    func ownWords() throws {
        let stage = try stage(.disk, said: 0)
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        stage.speak(1, "mine")
        stage.harness.send(1, "PART #lobby")
        stage.leave(1)
        stage.enter(2, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(2) == ["alice: mine"])
    }

    @Test("people whom the guest muted are left out")
    func muted() throws {
        let stage = try stage(.memory, said: 0)
        stage.say("one", from: "ann")
        stage.say("two", from: "remy")
        stage.enter(1, "guest", caps: BacklogStage.caps)
        #expect(stage.heard(1) == ["ann: one", "remy: two"])
        stage.harness.send(1, "PRIVMSG *bridge :mute remy")
        stage.harness.send(1, "PART #lobby")
        _ = stage.raw(1)
        stage.say("three", from: "ann")
        stage.say("four", from: "remy")
        stage.harness.send(1, "JOIN #lobby")
        #expect(stage.heard(1) == ["ann: three"])
    }

    @Test("a guest that logs in in the middle of it loses nothing")
    func logsIn() throws {
        let stage = try stage(.disk)
        stage.harness.store.answersQuestions = false
        stage.enter(1, "guest", caps: BacklogStage.caps)
        stage.harness.send(1, "PRIVMSG *bridge :login alice@phone pw")
        stage.say("m8")
        stage.harness.store.answersQuestions = true
        stage.say("m9")
        #expect(stage.heard(1).filter { $0.hasPrefix("ann: ") } == said(3..<10))
        stage.harness.advance(by: .seconds(3))
        #expect(stage.cursor("alice", "phone") == 9)
    }

    @Test("it waits for the client's socket, and remembers only so many rooms")
    func bounds() throws {
        var shown = ShownRooms()
        for index in 0..<(2 * ShownRooms.capacity) {
            shown.note(Int64(index), in: StoredRoomKey(backend: "b", room: "\(index)"))
        }
        #expect(shown[StoredRoomKey(backend: "b", room: "0")] == nil)
        #expect(shown[StoredRoomKey(backend: "b", room: "399")] == 399)
        shown.note(5, in: StoredRoomKey(backend: "b", room: "399"))
        #expect(shown[StoredRoomKey(backend: "b", room: "399")] == 5)
    }

    /// Guests come, go, leave rooms and come again, the disk lags: a connection is shown each message once at most, in order,
    /// and everything that is said from its JOIN to its PART.
    @Test("no connection is shown anything twice or out of order", arguments: 0..<40 as Range<UInt64>)
    func law(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let place: Place = seed.isMultiple(of: 2) ? .disk : .memory
        let stage = try stage(place, Int(random.next() % 6), said: Int(random.next() % 8))
        var said = stage.said[0, default: []].count
        var inside: Set<UInt64> = []
        var open: Set<UInt64> = []
        var heard: [UInt64: [Int]] = [:]
        var owed: [UInt64: Set<Int>] = [:]
        func listen() {
            for client in open {
                heard[client, default: []] += stage.heard(client).compactMap { line in
                    line.firstMatch(of: #/^ann: (?:\[[0-9:]+\] )?m([0-9]+)$/#).flatMap { Int($0.1) }
                }
            }
        }
        for client: UInt64 in 1...4 {
            stage.connect(client, "guest\(client)", caps: client.isMultiple(of: 2) ? "" : BacklogStage.caps)
            open.insert(client)
        }
        for _ in 0..<60 {
            let client = random.next() % 4 + 1
            switch random.next() % 8 {
            case 0, 1:
                stage.harness.send(client, "JOIN #lobby")
                inside.insert(client)
            case 2:
                stage.harness.send(client, "PART #lobby")
                inside.remove(client)
            case 3: if place == .disk { stage.harness.store.answersQuestions = random.next() % 3 > 0 }
            default:
                stage.say("m\(said)")
                for client in inside { owed[client, default: []].insert(said) }
                said += 1
            }
        }
        if place == .disk { stage.harness.store.answersQuestions = true }
        stage.say("m\(said)")
        listen()
        for (client, shown) in heard {
            #expect(shown == shown.sorted() && Set(shown).count == shown.count, "\(client): \(shown)")
            #expect(owed[client, default: []].isSubset(of: shown), "\(client): \(shown) lacks some")
        }
    }
}
