import BridgeTestSupport
import Dialects
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// CHATHISTORY beyond a room's beginning here, where only the backend knows what was said.
@Suite("The backend's own history")
struct BackendHistoryTests {
    private func olderStage(_ place: HistoryPlace) throws -> HistoryStage {
        // The last of them was said in the very moment in which the first one is said here.
        let older = (0..<30).map { (text: "m\($0)", age: Int64(29 - $0) * 1000) }
        let stage = try HistoryStage(place, older: older)
        stage.enter()
        stage.say(numbers(30..<40))
        _ = stage.raw()
        return stage
    }

    @Test(
        "what goes beyond the room's beginning comes from the backend, each message once",
        arguments: HistoryPlace.withBackend)
    func beyond(_ place: HistoryPlace) throws {
        let stage = try olderStage(place)
        #expect(stage.page("CHATHISTORY LATEST #lobby * 5") == numbers(35..<40))
        #expect(stage.questionCount == 0)
        #expect(stage.page("CHATHISTORY LATEST #lobby * 20") == numbers(20..<40))
        #expect(stage.page("CHATHISTORY LATEST #lobby * 100") == numbers(0..<40))
        #expect(stage.page("CHATHISTORY BEFORE #lobby msgid=\(stage.msgid("m30")) 5") == numbers(25..<30))
        #expect(stage.page("CHATHISTORY BEFORE #lobby msgid=\(stage.msgid("m12")) 5") == numbers(7..<12))
        #expect(stage.page("CHATHISTORY AFTER #lobby msgid=\(stage.msgid("m28")) 4") == numbers(29..<33))
        #expect(stage.page("CHATHISTORY AFTER #lobby \(stage.time("m3")) 4") == numbers(4..<8))
        #expect(stage.page("CHATHISTORY AROUND #lobby msgid=\(stage.msgid("m30")) 5") == numbers(28..<33))
        #expect(
            stage.page("CHATHISTORY BETWEEN #lobby \(stage.time("m20")) \(stage.time("m35")) 100") == numbers(21..<35))
        #expect(
            stage.page("CHATHISTORY BETWEEN #lobby \(stage.time("m35")) \(stage.time("m20")) 3") == numbers(32..<35))
        #expect(stage.questionCount <= 3)
        // Nobody else was shown anything, and nothing of it has a place in the room.
        stage.enter(2, "alfredo", caps: "")
        #expect(stage.raw(2) == [])
        #expect(stage.room.recent.lastSequence == 9)
        #expect(stage.harness.violations == [])
    }

    @Test("of a room one question at a time goes to the backend, a second after the other")
    func pausesBetweenQuestions() throws {
        // Each page of the backend has 200.
        let older = (0..<500).map { (text: "m\($0)", age: Int64(500 - $0) * 1000) }
        let stage = try HistoryStage(HistoryPlace(isDurable: true, older: .socket), older: older)
        stage.enter()
        stage.say(["now"])
        _ = stage.raw()
        stage.harness.send(1, "CHATHISTORY LATEST #lobby * 500")
        stage.answerQuestions()
        #expect(stage.questionCount == 1)
        stage.harness.advance(by: .milliseconds(999))
        stage.answerQuestions()
        #expect(stage.questionCount == 1)
        stage.harness.advance(by: .milliseconds(1))
        stage.answerQuestions()
        #expect(stage.questionCount == 2)
    }

    @Test(
        "from the room's first message back to an old time is what the backend has", arguments: HistoryPlace.withBackend
    )
    func betweenFirstAndOldTime(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place, older: [("old0", 60_000), ("old1", 30_000)])
        stage.enter()
        stage.say(["a", "b"])
        _ = stage.raw()
        let old = "timestamp=1990-01-01T00:00:00.000Z"
        #expect(stage.page("CHATHISTORY BETWEEN #lobby msgid=\(stage.msgid("a")) \(old) 5") == ["old0", "old1"])
        #expect(stage.page("CHATHISTORY BETWEEN #lobby \(old) msgid=\(stage.msgid("a")) 5") == ["old0", "old1"])
    }

    @Test("what the backend tells newest first is in order all the same", arguments: HistoryPlace.withBackend)
    func newestFirst(_ place: HistoryPlace) throws {
        // Several of each second.
        let stage = try HistoryStage(place, older: (0..<300).map { ("old\($0)", 600_000 - Int64($0 / 3) * 1000) })
        stage.tellsNewestFirst = true
        stage.enter()
        stage.say(["a", "b"])
        _ = stage.raw()
        #expect(stage.page("CHATHISTORY LATEST #lobby * 500") == (0..<300).map { "old\($0)" } + ["a", "b"])
    }

    @Test("an old time at first sight leads to the backend", arguments: HistoryPlace.withBackend)
    func oldTime(_ place: HistoryPlace) throws {
        let stage = try olderStage(place)
        #expect(stage.page("CHATHISTORY AFTER #lobby \(stage.time("m3")) 4") == numbers(4..<8))
        let other = try olderStage(place)
        #expect(other.page("CHATHISTORY BEFORE #lobby \(other.time("m8")) 3") == numbers(5..<8))
    }

    @Test(
        "a backend that is silent, or refuses, holds up one answer for a while, and then there is what there is",
        arguments: HistoryPlace.withBackend)
    func silentBackend(_ place: HistoryPlace) throws {
        let stage = try olderStage(place)
        stage.keepsSilent = true
        stage.enter(2, "alfredo")
        _ = stage.raw()
        #expect(stage.ask("CHATHISTORY LATEST #lobby * 20") == [])
        #expect(stage.page("CHATHISTORY LATEST #lobby * 3", 2) == numbers(37..<40))
        stage.harness.advance(by: HistoryAnswer.backendPatience)
        #expect(stage.raw().compactMap(HistoryStage.words) == numbers(30..<40))
        // Where there is nothing at all, that is not the end of the history.
        stage.harness.advance(by: .seconds(60))
        stage.keepsSilent = false
        stage.refuses = true
        let refused = stage.ask("CHATHISTORY BEFORE #lobby msgid=\(stage.msgid("m30")) 5")
        #expect(refused.first?.contains("FAIL CHATHISTORY MESSAGE_ERROR BEFORE #lobby") == true, "\(refused)")
        stage.harness.advance(by: .seconds(60))
        stage.refuses = false
        #expect(stage.page("CHATHISTORY BEFORE #lobby msgid=\(stage.msgid("m30")) 5") == numbers(25..<30))
    }

    @Test("without a link there is what there is, and where that is nothing it is told")
    func noLink() throws {
        let stage = try olderStage(HistoryPlace(isDurable: true, older: .socket))
        stage.harness.acceptsConnections = false
        stage.harness.endTransport(0, reason: "gone")
        _ = stage.raw()
        #expect(stage.page("CHATHISTORY LATEST #lobby * 20") == numbers(30..<40))
        let empty = stage.ask("CHATHISTORY BEFORE #lobby msgid=\(stage.msgid("m30")) 20")
        #expect(empty.first?.contains("FAIL CHATHISTORY MESSAGE_ERROR BEFORE #lobby :") == true, "\(empty)")
    }

    @Test("a link that is lost meanwhile ends the waiting")
    func lostLink() throws {
        let stage = try olderStage(HistoryPlace(isDurable: true, older: .socket))
        stage.keepsSilent = true
        #expect(stage.ask("CHATHISTORY LATEST #lobby * 20") == [])
        stage.harness.acceptsConnections = false
        stage.harness.endTransport(0, reason: "gone")
        #expect(stage.raw().compactMap(HistoryStage.words).filter { !$0.hasPrefix("***") } == numbers(30..<40))
    }

    @Test(
        "a room that begins elsewhere, since old messages were removed, is one order again",
        arguments: [DialectTraits.OlderSource.socket, .call])
    func retention(_ older: DialectTraits.OlderSource) throws {
        let stage = try olderStage(HistoryPlace(isDurable: true, older: older))
        #expect(stage.page("CHATHISTORY LATEST #lobby * 100") == numbers(0..<40))
        stage.harness.store.removeOldest(5, of: stage.room.storedKey)
        #expect(stage.page("CHATHISTORY LATEST #lobby * 100") == numbers(0..<40))
        #expect(stage.page("CHATHISTORY BEFORE #lobby msgid=\(stage.msgid("m33")) 5") == numbers(28..<33))
        #expect(stage.page("CHATHISTORY AFTER #lobby msgid=\(stage.msgid("m20")) 20") == numbers(21..<40))
    }

    @Test("several who ask at once cost one question", arguments: HistoryPlace.withBackend)
    func oneQuestion(_ place: HistoryPlace) throws {
        let stage = try olderStage(place)
        for client in 2...5 as ClosedRange<UInt64> { stage.enter(client, "cook\(client)") }
        for client in 2...5 as ClosedRange<UInt64> { stage.harness.send(client, "CHATHISTORY LATEST #lobby * 20") }
        stage.serve()
        for client in 2...5 as ClosedRange<UInt64> {
            #expect(stage.raw(client).compactMap(HistoryStage.words) == numbers(20..<40))
        }
        #expect(stage.questionCount <= 2)
    }

    @Test("what was fetched is forgotten after a while", arguments: HistoryPlace.withBackend)
    func forgotten(_ place: HistoryPlace) throws {
        let stage = try olderStage(place)
        _ = stage.page("CHATHISTORY LATEST #lobby * 20")
        #expect(stage.room.older.current != nil)
        stage.harness.advance(by: OlderHistory.idleTime + .seconds(1))
        #expect(stage.room.older.current == nil)
        #expect(stage.page("CHATHISTORY LATEST #lobby * 20") == numbers(20..<40))
    }

    @Test("what the backend takes back is nowhere, also in what is held of before the room's beginning")
    func takenBackOlder() throws {
        let stage = try olderStage(HistoryPlace(isDurable: true, older: .socket))
        _ = stage.page("CHATHISTORY LATEST #lobby * 20")
        stage.harness.sendFrame(0, #"{"kind":"delete","ids":["m25"]}"#)
        _ = stage.raw()
        #expect(stage.page("CHATHISTORY BEFORE #lobby msgid=\(stage.msgid("m27")) 3") == ["m23", "m24", "m26"])
    }
}
