import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// What a backend tells of the past, held against what is known: which order it is in, and what of it was missed.
@Suite("The order of a history")
struct HistoryOrderTests {
    static let wires = ClockLawTests.wires

    @Test(
        "a room's only message from a clock that is ahead hides nothing that is said while the bridge is down",
        arguments: wires, [3600, 240])
    func onlyMessageAhead(wire: StoredWire, lead: Int64) throws {
        for down: Duration in [.seconds(20), .seconds(900)] {
            let stage = try StoredStage(wire)
            stage.start()
            stage.enter("bob")
            stage.harness.advance(by: .seconds(60))
            stage.senderLead = lead * 1000
            stage.say("ahead")
            stage.senderLead = 0
            stage.harness.advance(by: .seconds(5))
            stage.crash(down: down, saying: ["missed"])
            stage.enter("bob")
            stage.start()
            #expect(stage.said() == ["missed"], "down for \(down)")
            stage.say("now")
            #expect(stage.said() == ["now"])
            #expect(stage.kept.map(\.text) == ["ahead", "missed", "now"])
        }
    }

    @Test("the same over a link that is lost", arguments: wires)
    func onlyMessageAheadOfLink(wire: StoredWire) throws {
        let stage = try StoredStage(wire)
        stage.start()
        stage.enter("bob")
        stage.senderLead = 3_600_000
        stage.say("ahead")
        stage.senderLead = 0
        _ = stage.heard()
        stage.loseLink(saying: ["missed"])
        stage.regainLink()
        stage.say("now")
        #expect(stage.said() == ["missed", "now"])
    }

    @Test(
        "an old message from a clock that is ahead does not pass for the newest after a restart", arguments: wires)
    func oldMessageAhead(wire: StoredWire) throws {
        let stage = try StoredStage(wire)
        for (text, lead) in [("a", 0), ("b", 90_000), ("c", 0), ("d", 0)] as [(String, Int64)] {
            stage.senderLead = lead * 1000
            stage.say(text)
            stage.harness.clock.move(to: stage.harness.clock.now.monotonic + .seconds(2))
        }
        stage.start()
        stage.enter("bob")
        stage.harness.advance(by: .seconds(1))
        let kept = stage.kept
        #expect(kept.map(\.text) == ["a", "b", "c", "d"])
        let until = try #require(stage.harness.store.disk.rooms[stage.key]?.liveUntil)
        #expect(!kept.dropLast().contains { $0.at == until })
        // It is said by a clock that is behind.
        stage.senderLead = -7_200_000
        stage.crash(saying: ["e", "f"])
        stage.enter("bob")
        stage.start()
        #expect(stage.said() == ["e", "f"])
    }

    // MARK: - Pages

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Each message: its id, its time in seconds, when it became known; `~` in front: it is ours.
        var told: [(id: String, at: Int64?, place: Int?)]
        var shown: [String]
        var sendersTellTime = true
        var isByArrival = true
        var wasNewestFirst = false
        /// What the page says of how the backend tells.
        var isNewestFirst: Bool?
    }

    static let rows = [
        Row(
            testDescription: "our own ids, learned late, do not put others in the order of their times",
            told: [
                ("m1", 1, 58), ("~a", 75, 71), ("m2", 30, 59), ("m3", 30, 60), ("~b", 75, 61), ("m4", 30, 62),
                ("~c", 75, 72), ("m5", 31, 64), ("m6", 31, 65), ("m7", 33, 69), ("~d", 86_000, 73), ("m8", 33, 70),
                ("m9", 34, 74), ("m10", 65, 75), ("m11", 90_000, nil), ("m12", 90_001, nil), ("m13", 117, nil),
                ("m14", 70, nil), ("m15", 70, nil), ("m16", 71, nil),
            ],
            shown: [
                "m1", "~a", "m2", "m3", "~b", "m4", "~c", "m5", "m6", "m7", "~d", "m8", "m9", "m10", "m11", "m12",
                "m13",
                "m14", "m15", "m16",
            ]),
        Row(
            testDescription:
                "where nobody else is known, our own ids tell nothing, and clocks that differ do not either",
            told: [("~a", 75, 5), ("~b", 10, 4), ("m1", 5, nil), ("m2", 60, nil), ("~c", 70, 3), ("m3", 7, nil)],
            shown: ["~a", "~b", "m1", "m2", "~c", "m3"]),
        Row(
            testDescription: "a wrong clock or two do not turn round a history of which nothing tells the order",
            told: [("m1", 3600, 0), ("m2", 5, nil)], shown: ["m1", "m2"]),
        Row(
            testDescription: "where all of it goes down, it is told newest first",
            told: [("m4", 9, nil), ("m3", 8, nil), ("m2", 7, nil), ("m1", 6, nil)], shown: ["m1", "m2", "m3", "m4"],
            isByArrival: false),
        Row(
            testDescription: "one clock of the server's is believed also of two",
            told: [("m2", 8, nil), ("m1", 7, 0)], shown: ["m1", "m2"], sendersTellTime: false, isByArrival: false),
        Row(
            testDescription: "what is told newest first is so within each second too",
            told: [("d", 9, nil), ("c", 9, nil), ("b", 8, nil), ("a", 8, nil), ("k", 7, 3)],
            shown: ["k", "a", "b", "c", "d"], sendersTellTime: false, isByArrival: false),
        Row(
            testDescription: "the same where senders tell the time, and little of it",
            told: [("c", 9, nil), ("b", 9, nil), ("a", 8, nil), ("k", 7, 3)], shown: ["k", "a", "b", "c"],
            isByArrival: false),
        Row(
            testDescription: "many seconds newest first are how the backend tells",
            told: [("e", 9, nil), ("d", 9, nil), ("c", 8, nil), ("b", 7, nil), ("a", 6, nil)],
            shown: ["a", "b", "c", "d", "e"], isByArrival: false, isNewestFirst: true),
        Row(
            testDescription: "many seconds oldest first are too",
            told: [("a", 6, nil), ("b", 7, nil), ("c", 8, nil), ("d", 9, nil), ("e", 9, nil)],
            shown: ["a", "b", "c", "d", "e"], isByArrival: false, wasNewestFirst: true, isNewestFirst: false),
        Row(
            testDescription: "of one second nothing is told but the order",
            told: [("a", 9, nil), ("b", 9, nil), ("c", 9, nil)], shown: ["a", "b", "c"], isByArrival: false),
        Row(
            testDescription: "it is the one of the page before",
            told: [("c", 9, nil), ("b", 9, nil), ("a", 9, nil)], shown: ["a", "b", "c"], isByArrival: false,
            wasNewestFirst: true),
        Row(
            testDescription: "unless what is known stands in front",
            told: [("k", 9, 3), ("a", 9, nil), ("b", 9, nil)], shown: ["k", "a", "b"], isByArrival: false,
            wasNewestFirst: true),
        Row(
            testDescription: "or at the end", told: [("b", 9, nil), ("a", 9, nil), ("k", 9, 3)],
            shown: ["k", "a", "b"], isByArrival: false),
        Row(
            testDescription: "a message without a time stays where it was said, whichever end is told first",
            told: [("d", 9, nil), ("c", 8, nil), ("x", nil, nil), ("b", 7, nil), ("a", 6, nil)],
            shown: ["a", "b", "x", "c", "d"], isByArrival: false, isNewestFirst: true),
    ]

    @Test("what is known and what clocks say tell the order of a page", arguments: rows)
    func order(_ row: Row) {
        let told = row.told.map { id, at, _ in
            ChatMessage(
                id: ChatID(id), sender: ChatPerson(id: ChatID(id.hasPrefix("~") ? "us" : "ann"), name: nil), text: id,
                at: at.map { ChatTimestamp(milliseconds: $0 * 1000) }, isSelf: id.hasPrefix("~"))
        }
        let places = Dictionary(uniqueKeysWithValues: row.told.map { (ChatID($0.id), $0.place) })
        let page = HistoryPage(
            told, sendersTellTime: row.sendersTellTime, mark: nil, wall: ChatTimestamp(milliseconds: 100_000_000),
            end: 100, wasNewestFirst: row.wasNewestFirst
        ) { $0.id.flatMap { places[$0] ?? nil } }
        #expect(page.messages.map(\.text) == row.shown)
        #expect(page.isByArrival == row.isByArrival)
        if let isNewestFirst = row.isNewestFirst { #expect(page.isNewestFirst == isNewestFirst) }
    }
}

/// Who may see the past, and what of it.
@Suite("What pages leave out")
struct HistoryRightsTests {
    private func targets(_ stage: HistoryStage, _ client: UInt64) -> [String] {
        stage.ask(
            "CHATHISTORY TARGETS timestamp=1990-01-01T00:00:00.000Z timestamp=2090-01-01T00:00:00.000Z 10", client
        ).compactMap { $0.firstMatch(of: #/CHATHISTORY TARGETS (#\S+)/#).map { String($0.1) } }
    }

    @Test(
        "a client that lost its connection asks for what it missed before it enters again; who left, was put out or is banned does not"
    )
    func members() throws {
        let stage = try HistoryStage(.store, rooms: 2, rejoins: false)
        // Who enters first is an operator.
        stage.enter(9, "skinner")
        stage.enter(1, "ann@phone")
        stage.say("before", room: 1)
        stage.say("one")
        stage.harness.advance(by: .seconds(3))
        stage.harness.disconnect(1)
        stage.say("two")
        stage.enter(2, "ann@phone", join: nil)
        #expect(targets(stage, 2) == ["#lobby"])
        #expect(stage.page("CHATHISTORY AFTER #lobby \(stage.time("one")) 10", 2) == ["two"])
        #expect(stage.page("SEARCH text=two", 2) == ["two"])
        #expect(stage.ask("CHATHISTORY LATEST #room1 * 5", 2).first?.contains("INVALID_TARGET") == true)
        stage.harness.disconnect(2)
        // Another client of the account was never there.
        stage.enter(3, "ann@tablet", join: nil)
        #expect(targets(stage, 3) == [])
        stage.harness.disconnect(3)

        func isRefused(_ client: UInt64) -> Bool {
            let isRefused = stage.ask("CHATHISTORY LATEST #lobby * 5", client).first?.contains("INVALID_TARGET") == true
            #expect(targets(stage, client) == (isRefused ? [] : ["#lobby"]))
            return isRefused
        }
        stage.harness.send(9, "MODE #lobby +b ann!*@*")
        stage.enter(4, "ann@phone", join: nil)
        #expect(isRefused(4))
        stage.harness.send(9, "MODE #lobby -b ann!*@*")
        #expect(!isRefused(4))
        stage.harness.send(9, "MODE #lobby +i")
        #expect(isRefused(4))
        stage.harness.send(9, "MODE #lobby -i")
        #expect(!isRefused(4))
        stage.harness.send(4, "JOIN #lobby")
        stage.harness.send(4, "PART #lobby")
        _ = stage.raw(4)
        #expect(isRefused(4))
        // Put out while another of the account's clients is away.
        stage.harness.send(4, "JOIN #lobby")
        stage.harness.advance(by: .seconds(3))
        stage.harness.disconnect(4)
        stage.enter(5, "ann@desk")
        stage.harness.send(9, "KICK #lobby ann :out")
        stage.harness.disconnect(5)
        stage.enter(6, "ann@phone", join: nil)
        #expect(isRefused(6))
        #expect(stage.harness.violations == [])
    }

    @Test("the past has nothing of people whom one muted, and pages are full all the same", arguments: HistoryPlace.all)
    func mutes(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place, older: (0..<30).map { ("old\($0)", 60_000 - $0 * 1000) })
        let caps = HistoryStage.caps + " draft/event-playback"
        stage.enter(1, "colette", caps: caps)
        stage.enter(2, "remy")
        stage.enter(3, "ann@phone")
        var said: [String] = []
        for index in 0..<12 {
            stage.say("l\(index)")
            let client: UInt64 = index % 2 == 0 ? 2 : 3
            stage.harness.send(client, "PRIVMSG #lobby :\(client == 2 ? "r" : "a")\(index)")
            said += ["l\(index)", "\(client == 2 ? "r" : "a")\(index)"]
            stage.harness.advance(by: .seconds(1))
        }
        stage.harness.sendFrame(
            0,
            #"{"kind":"reaction","target":"\#(stage.log.last?.id ?? "")","emoji":"👍","op":"add","sender":{"id":"u-lin","name":"linguini"}}"#
        )
        for client: UInt64 in 1...3 { _ = stage.raw(client) }
        func reactions() -> Int { stage.ask("CHATHISTORY LATEST #lobby * 1").count { $0.contains("+draft/react") } }
        #expect(reactions() == 1)
        #expect(stage.page("CHATHISTORY LATEST #lobby * 5") == Array(said.suffix(4)))

        func tell(_ words: String) { _ = stage.ask("PRIVMSG *bridge :" + words) }
        tell("mute linguini")
        #expect(reactions() == 0)
        let others = said.filter { !$0.hasPrefix("l") }
        #expect(stage.page("CHATHISTORY LATEST #lobby * 5") == Array(others.suffix(5)))
        #expect(stage.page("CHATHISTORY LATEST #lobby * 100") == others)
        #expect(stage.page("SEARCH text=l") == [])
        #expect(stage.page("SEARCH text=1;limit=2") == Array(others.filter { $0.contains("1") }.suffix(2)))
        // Their messages are places all the same, and others see them.
        let first = stage.msgid("l3")
        #expect(stage.page("CHATHISTORY AFTER #lobby msgid=\(first) 3") == ["a3", "r4", "a5"])
        #expect(stage.page("CHATHISTORY LATEST #lobby * 24", 3) == said)
        tell("mute remy")
        tell("mute ann")
        #expect(stage.page("CHATHISTORY LATEST #lobby * 5") == [])
        tell("unmute linguini")
        #expect(stage.page("CHATHISTORY LATEST #lobby * 3") == ["l10", "l11"])
        #expect(reactions() == 1)
        #expect(stage.harness.violations == [])
    }

    @Test("with a message that is taken back goes what was done to it", arguments: HistoryPlace.own)
    func reactions(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place)
        let caps = HistoryStage.caps + " draft/event-playback draft/message-redaction"
        stage.enter(caps: caps)
        for text in ["a", "b"] {
            stage.say(text)
            let id = stage.log.last?.id ?? ""
            stage.harness.sendFrame(
                0,
                #"{"kind":"reaction","target":"\#(id)","emoji":"👍","op":"add","sender":{"id":"u-lin","name":"linguini"}}"#
            )
            stage.harness.send(1, "@+reply=\(stage.msgid(text));+draft/react=🍲 TAGMSG #lobby")
            stage.harness.advance(by: .seconds(1))
        }
        _ = stage.raw()
        func page() -> [String] {
            stage.ask("CHATHISTORY LATEST #lobby * 10").compactMap { line in
                guard let verb = line.firstMatch(of: #/ (PRIVMSG|TAGMSG|REDACT) /#)?.1 else { return nil }
                return verb + (HistoryStage.tag("+draft/react", line).map { " " + $0 } ?? "")
            }
        }
        #expect(page() == ["PRIVMSG", "TAGMSG 👍", "TAGMSG 🍲", "PRIVMSG", "TAGMSG 👍", "TAGMSG 🍲"])
        let reaction = try #require(
            stage.ask("CHATHISTORY LATEST #lobby * 10").first { $0.contains("TAGMSG") }
                .flatMap { HistoryStage.tag("msgid", $0) })
        stage.harness.sendFrame(0, #"{"kind":"delete","ids":["m0"]}"#)
        _ = stage.raw()
        #expect(page() == ["REDACT", "PRIVMSG", "TAGMSG 👍", "TAGMSG 🍲"])
        // Its place is still one.
        #expect(stage.page("CHATHISTORY AFTER #lobby msgid=\(reaction) 1") == ["b"])
        guard place.isDurable else { return }
        stage.restart()
        stage.enter(caps: caps)
        #expect(page() == ["REDACT", "PRIVMSG", "TAGMSG 👍", "TAGMSG 🍲"])
    }
}
