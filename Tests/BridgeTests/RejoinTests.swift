import Accounts
import BridgeTestSupport
import ChatModel
import Dialects
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Rooms of an account that come back")
struct RejoinTests {
    // MARK: - Coming back

    struct Absence: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var isDurable: Bool
        var isRestart: Bool
    }

    static let absences = [
        Absence(testDescription: "the last client was gone", isDurable: true, isRestart: false),
        Absence(testDescription: "the last client was gone, in memory", isDurable: false, isRestart: false),
        Absence(testDescription: "the process died", isDurable: true, isRestart: true),
    ]

    @Test("who logs in is in its rooms again, one after the other, told as by a JOIN", arguments: absences)
    func again(_ row: Absence) throws {
        let stage = try RejoinStage(row.isDurable) { $0.rooms[1].topic = "Soup" }
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #kitchen,#lobby")
        stage.harness.disconnect(1)
        if row.isRestart { stage.restart() }
        let told = withoutGaps(stage.logIn(2, "remy@phone", caps: "draft/read-marker"))
        let time = stage.harness.bridge.rooms[1].createdAt.milliseconds / 1000
        #expect(
            told == [
                ":remy!~u@bridge JOIN #kitchen", ":bridge 332 remy #kitchen :Soup",
                ":bridge 333 remy #kitchen bridge \(time)", ":bridge MARKREAD #kitchen *",
                ":bridge 353 remy = #kitchen :@remy", ":bridge 366 remy #kitchen :End of /NAMES list",
                ":remy!~u@bridge JOIN #lobby", ":bridge MARKREAD #lobby *", ":bridge 353 remy = #lobby :@remy",
                ":bridge 366 remy #lobby :End of /NAMES list",
            ])
        // A client that joins by itself hears nothing of it.
        #expect(stage.send(2, "JOIN #lobby,#kitchen") == [])
        #expect(stage.rooms(of: 2) == ["#kitchen", "#lobby"])
    }

    @Test("without names where the client wants none")
    func withoutNames() throws {
        let stage = try RejoinStage()
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #lobby")
        stage.harness.disconnect(1)
        let told = stage.logIn(2, "remy@phone", caps: "draft/read-marker draft/no-implicit-names")
        #expect(told == [":remy!~u@bridge JOIN #lobby", ":bridge MARKREAD #lobby *"])
    }

    @Test("others see who comes back enter once, with however many clients")
    func othersSee() throws {
        let stage = try RejoinStage()
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #lobby")
        stage.visit(2, "ann")
        _ = stage.send(2, "JOIN #lobby")
        stage.harness.disconnect(1)
        _ = stage.heard(2)
        stage.logIn(3, "remy@desk")
        stage.logIn(4, "remy@phone")
        #expect(joined(stage.heard(2)) == ["#lobby"])
        #expect(stage.rooms(of: 3) == ["#lobby"] && stage.rooms(of: 4) == ["#lobby"])
    }

    @Test("who has no account is in no room")
    func visitors() throws {
        let stage = try RejoinStage()
        stage.visit(1, "ann")
        _ = stage.send(1, "JOIN #lobby")
        stage.harness.disconnect(1)
        #expect(stage.visit(2, "ann") == [])
        #expect(stage.harness.store.disk.memberships == [])
    }

    // MARK: - What puts an account into a room, and what takes it out

    struct Ending: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var isForgotten: Bool
        var end: @Sendable (RejoinStage) -> Void
    }

    static let endings = [
        Ending(testDescription: "PART", isForgotten: true) { _ = $0.send(1, "PART #lobby :bye") },
        Ending(testDescription: "JOIN 0", isForgotten: true) { _ = $0.send(1, "JOIN 0") },
        Ending(testDescription: "KICK", isForgotten: true) { _ = $0.send(9, "KICK #lobby remy :out") },
        Ending(testDescription: "PART by another client of the account", isForgotten: true) { stage in
            stage.logIn(2, "remy@desk")
            _ = stage.send(2, "PART #lobby")
            stage.harness.disconnect(2)
        },
        Ending(testDescription: "QUIT", isForgotten: false) { _ = $0.send(1, "QUIT :bye") },
        Ending(testDescription: "a connection that ends", isForgotten: false) { $0.harness.disconnect(1) },
        Ending(testDescription: "KILL", isForgotten: false) { _ = $0.send(9, "KILL remy :spam") },
        Ending(testDescription: "a new nick", isForgotten: false) { _ = $0.send(1, "NICK remi") },
        Ending(testDescription: "logging out", isForgotten: false) { _ = $0.send(1, "PRIVMSG *bridge :logout") },
        Ending(testDescription: "PART after logging out", isForgotten: false) { stage in
            _ = stage.send(1, "PRIVMSG *bridge :logout")
            _ = stage.send(1, "PART #lobby")
        },
    ]

    @Test("a room is left by PART and KICK, and by nothing else", arguments: endings, [false, true])
    func left(_ row: Ending, isRestart: Bool) throws {
        let stage = try RejoinStage()
        stage.logIn(9, "colette@desk")
        _ = stage.send(9, "JOIN #lobby")
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #attic")
        _ = stage.send(1, "JOIN #lobby")
        row.end(stage)
        stage.harness.disconnect(1)
        #expect(
            stage.kept("remy")
                == (row.isForgotten ? row.testDescription == "JOIN 0" ? [] : ["#attic"] : ["#attic", "#lobby"]))
        if isRestart { stage.restart() }
        let told = stage.logIn(3, "remy@phone")
        #expect(joined(told) == stage.kept("remy"))
        #expect(stage.rooms(of: 3) == stage.kept("remy"))
    }

    @Test("what a PING behind a JOIN or PART is answered for is on disk")
    func acceptance() throws {
        let stage = try RejoinStage()
        stage.logIn(1, "remy@phone")
        stage.harness.store.commits = false
        _ = stage.send(1, "JOIN #lobby")
        #expect(stage.send(1, "PING x") == [])
        stage.harness.perform { _, _ in stage.harness.store.commit() }
        #expect(stage.heard(1) == [":bridge PONG bridge x"])
        #expect(stage.kept("remy") == ["#lobby"])
        _ = stage.send(1, "PART #lobby")
        #expect(stage.send(1, "PING y") == [])
        stage.harness.perform { _, _ in stage.harness.store.commit() }
        #expect(stage.heard(1) == [":bridge PONG bridge y"])
        #expect(stage.kept("remy") == [])
    }

    @Test("changes that found no room on disk are said again as they stand")
    func afterOverflow() throws {
        let stage = try RejoinStage()
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #attic")
        stage.harness.store.commits = false
        stage.harness.store.room = 1
        _ = stage.send(1, "JOIN #lobby")
        for line in ["JOIN #kitchen", "PART #attic", "PART #lobby"] { _ = stage.send(1, line) }
        stage.harness.store.room = .max
        stage.harness.store.commits = true
        _ = stage.send(1, "PING x")
        _ = stage.send(1, "PING y")
        #expect(stage.kept("remy") == ["#kitchen"])
    }

    // MARK: - Rooms that cannot be entered

    @Test("a room that the account may not enter any more is passed over and forgotten")
    func forbidden() throws {
        let stage = try RejoinStage()
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #attic,#lobby")
        stage.restart { $0.accounts[0].rooms = ["lobby"] }
        #expect(joined(stage.logIn(1, "remy@phone")) == ["#lobby"])
        #expect(stage.kept("remy") == ["#lobby"])
    }

    @Test("a room that is not configured any more is passed over and forgotten; one with another name is not")
    func gone() throws {
        let stage = try RejoinStage()
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #attic,#kitchen,#lobby")
        stage.restart {
            $0.rooms[1].channel = "#stove"
            $0.rooms.remove(at: 2)
        }
        let told = withoutGaps(stage.logIn(1, "remy@phone"))
        #expect(joined(told) == ["#stove", "#lobby"])
        #expect(told.allSatisfy { $0.contains(" JOIN ") || $0.contains(" 353 ") || $0.contains(" 366 ") })
        #expect(stage.kept("remy") == ["#stove", "#lobby"])
    }

    @Test("another room under the old name is not the account's")
    func otherRoom() throws {
        let stage = try RejoinStage()
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #attic,#lobby")
        stage.restart { $0.rooms[2].upstreamRoom = "another" }
        #expect(joined(stage.logIn(1, "remy@phone")) == ["#lobby"])
    }

    @Test("a ban takes an account out for good, a closed room (+i) for as long as it is closed")
    func barred() throws {
        let stage = try RejoinStage()
        stage.logIn(9, "colette@desk")
        _ = stage.send(9, "JOIN #lobby,#attic")
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #attic,#lobby,#kitchen")
        stage.harness.disconnect(1)
        _ = stage.send(9, "MODE #lobby +b remy!*@*")
        _ = stage.send(9, "MODE #attic +i")
        let told = stage.logIn(2, "remy@phone")
        #expect(joined(told) == ["#kitchen"])
        #expect(!told.contains { $0.contains(" 473 ") || $0.contains(" 474 ") })
        #expect(stage.kept("remy") == ["#attic", "#kitchen"])
        stage.harness.disconnect(2)
        _ = stage.send(9, "MODE #attic -i")
        _ = stage.send(9, "MODE #lobby -b remy!*@*")
        #expect(joined(stage.logIn(3, "remy@phone")) == ["#attic", "#kitchen"])
    }

    @Test("PART of a room that is closed to the account ends that too")
    func partFromOutside() throws {
        let stage = try RejoinStage()
        stage.logIn(9, "colette@desk")
        _ = stage.send(9, "JOIN #attic")
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #attic")
        stage.harness.disconnect(1)
        _ = stage.send(9, "MODE #attic +i")
        stage.logIn(2, "remy@phone")
        #expect(stage.send(2, "PART #attic") == [":bridge 442 remy #attic :You're not in that room"])
        #expect(stage.kept("remy") == [])
    }

    // MARK: - Logging in later, and as somebody else

    @Test("who logs in after entering rooms is in those of the account too, and the account in theirs")
    func later() throws {
        let stage = try RejoinStage()
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #attic")
        stage.harness.disconnect(1)
        stage.visit(2, "guest")
        _ = stage.send(2, "JOIN #lobby")
        #expect(joined(stage.send(2, "PRIVMSG *bridge :login remy pw")) == ["#attic"])
        #expect(stage.rooms(of: 2) == ["#lobby", "#attic"])
        #expect(stage.kept("remy") == ["#attic", "#lobby"])
        // And as another: what is open stays open, and is theirs now.
        stage.logIn(3, "lin@desk")
        _ = stage.send(3, "JOIN #kitchen")
        stage.harness.disconnect(3)
        #expect(joined(stage.send(2, "PRIVMSG *bridge :login lin pw")) == ["#kitchen"])
        #expect(stage.kept("remy") == ["#attic", "#lobby"])
        #expect(Set(stage.kept("lin")) == ["#kitchen", "#lobby", "#attic"])
    }

    @Test("a labelled login is answered once, and what it brings along comes whole")
    func labelled() throws {
        let stage = try RejoinStage()
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #attic,#kitchen")
        stage.harness.disconnect(1)
        stage.harness.connect(2)
        for line in ["CAP REQ :batch labeled-response message-tags", "NICK guest", "USER u 0 * :r", "CAP END"] {
            stage.harness.send(2, line)
        }
        _ = stage.heard(2)
        let told = stage.send(2, "@label=one PRIVMSG *bridge :login remy pw")
        #expect(told.filter { $0.contains("label=one") }.count == 1)
        #expect(joined(told) == ["#attic", "#kitchen"])
        #expect(told.filter { $0.contains(" 366 ") }.count == 2)
        let (begun, ended) = (told.filter { $0.contains(" BATCH +") }, told.filter { $0.contains(" BATCH -") })
        #expect(begun.count == ended.count)
        #expect(stage.send(2, "@label=two PING x") == ["@label=two :bridge PONG bridge x"])
    }

    @Test("who joins another client of the account is where that one is, and where the account is besides")
    func merged() throws {
        let stage = try RejoinStage()
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #attic")
        stage.visit(2, "guest")
        _ = stage.send(2, "JOIN #lobby")
        _ = stage.send(2, "PRIVMSG *bridge :login remy pw")
        for client in [1, 2] as [UInt64] { #expect(Set(stage.rooms(of: client)) == ["#attic", "#lobby"]) }
        #expect(stage.kept("remy") == ["#attic", "#lobby"])
    }

    @Test("an account that is made has the rooms in which its client is, and none of an account of that name before it")
    func registered() throws {
        let stage = try RejoinStage()
        stage.harness.store.prepare([
            .membership(
                StoredMembership(
                    account: "Ann", room: StoredRoomKey(backend: "b", room: "attic"), channel: "#attic", position: 1))
        ])
        stage.restart()
        stage.visit(1, "ann")
        _ = stage.send(1, "JOIN #lobby")
        #expect(stage.send(1, "REGISTER * * longenough").contains { $0.contains("REGISTER SUCCESS") })
        #expect(stage.rooms(of: 1) == ["#lobby"])
        #expect(stage.kept("ann") == ["#lobby"] && stage.kept("Ann") == [])
    }

    // MARK: - Who does not want it

    @Test("with the setting off nobody comes back and nothing is added, but PART counts; who says on comes back")
    func off() throws {
        let stage = try RejoinStage { $0.rejoins = false }
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #lobby,#attic")
        #expect(stage.kept("remy") == [])
        #expect(
            stage.send(1, "PRIVMSG *bridge :rejoin").last?.hasSuffix("the next one joins by itself.") == true)
        _ = stage.send(1, "PRIVMSG *bridge :rejoin on")
        #expect(stage.kept("remy") == ["#lobby", "#attic"])
        stage.restart()
        #expect(joined(stage.logIn(1, "remy@phone")) == ["#lobby", "#attic"])
        #expect(stage.logIn(2, "lin@phone") == [])
    }

    @Test("what was remembered outlasts the setting, but for what was left meanwhile")
    func offForAWhile() throws {
        let stage = try RejoinStage()
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #lobby,#attic")
        stage.restart { $0.rejoins = false }
        #expect(stage.logIn(1, "remy@phone") == [])
        _ = stage.send(1, "JOIN #lobby")
        _ = stage.send(1, "PART #lobby")
        stage.restart { $0.rejoins = true }
        #expect(joined(stage.logIn(1, "remy@phone")) == ["#attic"])
    }

    @Test("who says off comes back to nothing, over a restart too, and is remembered anew after on")
    func chosenOff() throws {
        let stage = try RejoinStage()
        stage.logIn(1, "remy@phone")
        _ = stage.send(1, "JOIN #lobby")
        #expect(stage.send(1, "PRIVMSG *bridge :rejoin maybe").last?.hasSuffix("Usage: rejoin [on|off]") == true)
        _ = stage.send(1, "PRIVMSG *bridge :rejoin off")
        #expect(stage.kept("remy") == [])
        stage.restart()
        #expect(stage.logIn(1, "remy@phone") == [])
        _ = stage.send(1, "JOIN #attic")
        #expect(stage.kept("remy") == [])
        _ = stage.send(1, "PRIVMSG *bridge :rejoin on")
        #expect(stage.kept("remy") == ["#attic"])
        stage.visit(2, "ann")
        #expect(stage.send(2, "PRIVMSG *bridge :rejoin on").last?.hasSuffix("you are not logged in.") == true)
    }

    // MARK: - Many rooms

    @Test("an account has a bounded number of rooms, and the oldest in which it is not gives way")
    func bounded() throws {
        let count = AccountChannels.maxRooms + 2
        let stage = try RejoinStage(rooms: (0..<count).map { "r\($0)" })
        // Nobody waits for a link any longer.
        stage.harness.advance(by: .seconds(1))
        stage.logIn(1, "remy@phone")
        for room in 0..<count { _ = stage.send(1, "JOIN #r\(room)") }
        #expect(
            stage.kept("remy") == (0..<AccountChannels.maxRooms).map { "#r\($0)" }, "none gives way while it is there")
        stage.harness.disconnect(1)
        stage.logIn(9, "colette@desk")
        _ = stage.send(9, "JOIN #r1")
        _ = stage.send(9, "MODE #r1 +i")
        #expect(joined(stage.logIn(2, "remy@phone")).count == AccountChannels.maxRooms - 1)
        _ = stage.send(2, "JOIN #r\(count - 1)")
        #expect(
            stage.kept("remy")
                == (0..<AccountChannels.maxRooms).filter { $0 != 1 }.map { "#r\($0)" } + ["#r\(count - 1)"])
    }

    @Test("a script that is gone speaks in whichever of its rooms it likes")
    func script() throws {
        let names = (0..<100).map { "r\($0)" }
        let stage = try RejoinStage(rooms: names)
        stage.harness.advance(by: .seconds(1))
        stage.logIn(1, "remy@phone")
        for name in names { _ = stage.send(1, "JOIN #\(name)") }
        stage.harness.disconnect(1)
        stage.harness.connect(2)
        stage.harness.setSlow(2, true)
        let lines = ["PASS remy@script:pw", "NICK remy", "USER u 0 * :r", "PRIVMSG #r99 :deployed"]
        stage.harness.receive(2, Array((lines.joined(separator: "\r\n") + "\r\n").utf8))
        #expect(stage.harness.endSending(2))
        stage.harness.disconnect(2)
        #expect(stage.harness.bridge.clientCount == 0)
        stage.harness.advance(by: .seconds(30))
        let frames = stage.harness.takeOutputs().filter {
            if case .upstream(99, .frame(let bytes, _)) = $0 {
                String(decoding: bytes, as: UTF8.self).contains("deployed")
            } else {
                false
            }
        }
        #expect(frames.count == 1)
    }

    @Test("a client that does not read is told of a few rooms at a time, and of all when it does")
    func slowly() throws {
        let names = (0..<100).map { "r\($0)" }
        let stage = try RejoinStage(rooms: names)
        // Nobody waits for a link any longer.
        stage.harness.advance(by: .seconds(1))
        stage.logIn(1, "remy@phone")
        for name in names { _ = stage.send(1, "JOIN #\(name)") }
        stage.harness.disconnect(1)
        // Two clients of the account at once, so that each enters what the other comes to.
        for client in [2, 3] as [UInt64] {
            stage.harness.connect(client)
            stage.harness.setSlow(client, true)
            for line in ["PASS remy@c\(client):pw", "NICK remy", "USER u 0 * :r"] { stage.harness.send(client, line) }
        }
        let (second, third) = (stage.heard(2), stage.heard(3))
        #expect((1..<40).contains(joined(second).count))
        #expect(joined(third).count < 60)
        for client in [2, 3] as [UInt64] { stage.harness.setSlow(client, false) }
        let all = (joined(second + stage.heard(2)), joined(third + stage.heard(3)))
        #expect(all.0.sorted() == names.map { "#\($0)" }.sorted())
        #expect(all.1.sorted() == names.map { "#\($0)" }.sorted())
        #expect(stage.rooms(of: 2).count == 100 && stage.rooms(of: 3).count == 100)
        #expect(stage.session(2)?.hasLongAnswers == false)
        #expect(stage.harness.violations == [])
    }
}
