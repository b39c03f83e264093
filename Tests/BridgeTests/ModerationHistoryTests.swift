import BridgeTestSupport
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// What IRC users did in a room has its place in what is asked for afterwards.
@Suite("Topics, kicks and modes in the past")
struct ModerationHistoryTests {
    private static let caps = HistoryStage.caps + " draft/event-playback"

    /// What a line says, without tags.
    private func plain(_ line: String) -> String {
        line.hasPrefix("@") ? line.split(separator: " ", maxSplits: 1).last.map(String.init) ?? "" : line
    }

    /// The lines of a page but for gaps, without the tag that holds them together.
    private func page(_ stage: HistoryStage, _ request: String, _ client: UInt64 = 1) -> [String] {
        stage.ask(request, client).filter { HistoryStage.tag("batch", $0) != nil && !$0.contains(" NOTICE ") }
            .map { $0.replacing(#/batch=[^; ]+;|;batch=[^; ]+/#, with: "") }
    }

    private static let events = [
        ":ann!~u@bridge TOPIC #lobby :Soup of the day",
        ":ann!~u@bridge MODE #lobby +mo alfredo",
        ":ann!~u@bridge TOPIC #lobby :",
        ":ann!~u@bridge KICK #lobby alfredo :out of my kitchen",
    ]

    @Test("they are told live and again later, the same each time", arguments: HistoryPlace.own)
    func played(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place)
        stage.enter(1, "ann@desk", caps: Self.caps)
        stage.enter(2, "alfredo")
        stage.say(["a"])
        _ = stage.raw()
        for line in [
            "TOPIC #lobby :Soup of the day", "MODE #lobby +mo alfredo", "TOPIC #lobby :",
            "KICK #lobby alfredo :out of my kitchen",
        ] {
            stage.harness.send(1, line)
            stage.harness.advance(by: .seconds(1))
        }
        let live = stage.raw().filter { Self.events.contains(plain($0)) }
        #expect(live.map(plain) == Self.events)
        #expect(live.allSatisfy { HistoryStage.tag("account", $0) == "ann" && HistoryStage.tag("msgid", $0) != nil })
        stage.say(["b"])
        func check() throws {
            let found = page(stage, "CHATHISTORY LATEST #lobby * 9")
            #expect(found.dropFirst().dropLast() == live[...])
            #expect([found.first, found.last].map { $0.flatMap(HistoryStage.words) } == ["a", "b"])
            // Each is a place that can be named.
            let topic = try #require(live.first.flatMap { HistoryStage.tag("msgid", $0) })
            #expect(stage.page("CHATHISTORY BEFORE #lobby msgid=\(topic) 5") == ["a"])
            #expect(page(stage, "CHATHISTORY AFTER #lobby msgid=\(topic) 1").map(plain) == [Self.events[1]])
            // Whoever wants words alone gets as many of these.
            stage.enter(3, "skinner")
            #expect(page(stage, "CHATHISTORY LATEST #lobby * 9", 3).compactMap(HistoryStage.words) == ["a", "b"])
            stage.harness.disconnect(3)
        }
        try check()
        guard place.isDurable else { return }
        stage.restart()
        stage.enter(1, "ann@desk", caps: Self.caps)
        try check()
    }

    @Test("what was refused has no place")
    func refused() throws {
        let stage = try HistoryStage(.memory)
        stage.enter(1, "ann@desk", caps: Self.caps)
        stage.enter(2, "alfredo")
        let before = stage.room.recent.nextSequence
        for line in ["TOPIC #lobby :mine", "MODE #lobby +m", "KICK #lobby ann", "TOPIC #nowhere :x"] {
            stage.harness.send(2, line)
        }
        // Nor what changes nothing.
        stage.harness.send(1, "MODE #lobby +t")
        #expect(stage.room.recent.nextSequence == before)
    }
}
