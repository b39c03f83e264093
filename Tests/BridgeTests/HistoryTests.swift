import BridgeTestSupport
import BridgeTypes
import ChatModel
import IRCProtocol
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

enum IRCTime {
    static func text(_ at: Int64) -> String { IRCServerTime.format(milliseconds: at) }
}

@Suite("CHATHISTORY and SEARCH")
struct HistoryTests {
    /// Ten messages, a second apart.
    private func ten(_ place: HistoryPlace) throws -> HistoryStage {
        let stage = try HistoryStage(place)
        stage.enter()
        stage.say(numbers(0..<10))
        _ = stage.raw()
        return stage
    }

    // MARK: - Subcommands

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// `mN` in braces stands for a reference to that message.
        var line: String
        var page: Range<Int>

        init(_ name: String, _ line: String, _ page: Range<Int>) {
            (testDescription, self.line, self.page) = (name, line, page)
        }
    }

    static let rows = [
        Row("the latest", "LATEST #lobby * 3", 7..<10),
        Row("the latest, all of them", "LATEST #lobby * 100", 0..<10),
        Row("the channel's case does not count", "latest #LOBBY * 1", 9..<10),
        Row("none wanted", "LATEST #lobby * 0", 0..<0),
        Row("more than an Int of them", "LATEST #lobby * 99999999999999999999999", 0..<10),
        Row("the latest behind a message", "LATEST #lobby {m4} 100", 5..<10),
        Row("the latest of those", "LATEST #lobby {m4} 2", 8..<10),
        Row("the latest behind the last one", "LATEST #lobby {m9} 5", 0..<0),
        Row("before a message", "BEFORE #lobby {m6} 100", 0..<6),
        Row("before a message, two", "BEFORE #lobby {m6} 2", 4..<6),
        Row("before the first one", "BEFORE #lobby {m0} 5", 0..<0),
        Row("after a message", "AFTER #lobby {m3} 100", 4..<10),
        Row("after a message, three", "AFTER #lobby {m3} 3", 4..<7),
        Row("after the last one", "AFTER #lobby {m9} 5", 0..<0),
        Row("around a message", "AROUND #lobby {m7} 3", 6..<9),
        Row("around a message, itself alone", "AROUND #lobby {m7} 1", 7..<8),
        Row("around the first one", "AROUND #lobby {m0} 4", 0..<4),
        Row("around the last one", "AROUND #lobby {m9} 4", 6..<10),
        Row("between, forwards", "BETWEEN #lobby {m0} {m9} 100", 1..<9),
        Row("between, backwards", "BETWEEN #lobby {m9} {m0} 100", 1..<9),
        Row("between, counted from the first one", "BETWEEN #lobby {m0} {m9} 3", 1..<4),
        Row("between, counted from the last one", "BETWEEN #lobby {m9} {m0} 3", 6..<9),
        Row("between neighbours", "BETWEEN #lobby {m3} {m4} 3", 0..<0),
        Row("between a message and itself", "BETWEEN #lobby {m3} {m3} 3", 0..<0),
    ]

    @Test("a page has exactly what was asked for", arguments: rows, HistoryPlace.own)
    func subcommands(_ row: Row, _ place: HistoryPlace) throws {
        let stage = try ten(place)
        for isByTime in [false, true] {
            let line = row.line.replacing(#/\{(m\d+)\}/#) { match in
                isByTime ? stage.time(String(match.1)) : "msgid=" + stage.msgid(String(match.1))
            }
            let answer = stage.ask("CHATHISTORY " + line)
            #expect(answer.compactMap(HistoryStage.words) == numbers(row.page), "\(line)")
            let batch = try #require(answer.first?.firstMatch(of: #/BATCH \+(\S+) chathistory #lobby$/#)).1
            #expect(answer.last?.hasSuffix(":bridge BATCH -\(batch)") == true)
            #expect(answer.count == row.page.count + 2)
            for line in answer.dropFirst().dropLast() { #expect(HistoryStage.tag("batch", line) == String(batch)) }
        }
        #expect(stage.harness.violations == [])
    }

    @Test("between a message and a time", arguments: HistoryPlace.own)
    func mixed(_ place: HistoryPlace) throws {
        let stage = try ten(place)
        let (three, seven) = ("msgid=" + stage.msgid("m3"), stage.time("m7"))
        #expect(stage.page("CHATHISTORY BETWEEN #lobby \(three) \(seven) 2") == numbers(4..<6))
        #expect(stage.page("CHATHISTORY BETWEEN #lobby \(seven) \(three) 2") == numbers(5..<7))
    }

    @Test("times at which nothing was said stand between messages", arguments: HistoryPlace.own)
    func timesBetween(_ place: HistoryPlace) throws {
        let stage = try ten(place)
        let between = stage.time(stage.log[4].at + 500)
        #expect(stage.page("CHATHISTORY BEFORE #lobby \(between) 2") == numbers(3..<5))
        #expect(stage.page("CHATHISTORY AFTER #lobby \(between) 2") == numbers(5..<7))
        #expect(stage.page("CHATHISTORY AROUND #lobby \(between) 2") == numbers(4..<6))
        #expect(stage.page("CHATHISTORY AFTER #lobby timestamp=2262-01-01T00:00:00.000Z 2") == [])
        #expect(stage.page("CHATHISTORY BEFORE #lobby timestamp=1970-01-01T00:00:00.000Z 2") == [])
    }

    @Test("pages are in the room's order whatever clocks say, and a time is a place in it", arguments: HistoryPlace.own)
    func wrongClocks(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place)
        stage.enter()
        // Linguini's clock is four minutes ahead once, and an hour behind once.
        for (text, clock) in [("a", 0), ("b", 240_000), ("c", 0), ("d", -3_600_000), ("e", 0)] as [(String, Int64)] {
            stage.say(text, clock: clock)
            stage.harness.advance(by: .seconds(1))
        }
        _ = stage.raw()
        #expect(stage.page("CHATHISTORY LATEST #lobby * 10") == ["a", "b", "c", "d", "e"])
        var times: [String: String] = [:]
        for line in stage.ask("CHATHISTORY LATEST #lobby * 10") {
            if let text = HistoryStage.words(line), let time = HistoryStage.tag("time", line) {
                times[text] = "timestamp=" + time
            }
        }
        // A time that a message bears is that message: what is before it and what is after it are all there is.
        for (index, text) in ["a", "b", "c", "d", "e"].enumerated() {
            guard let shown = times[text] else { return #expect(Bool(false), "\(text) has no time") }
            let before = ["a", "b", "c", "d", "e"].prefix(index)
            let after = ["a", "b", "c", "d", "e"].dropFirst(index + 1)
            #expect(stage.page("CHATHISTORY BEFORE #lobby \(shown) 10") == Array(before))
            #expect(stage.page("CHATHISTORY AFTER #lobby \(shown) 10") == Array(after))
            #expect(stage.page("CHATHISTORY LATEST #lobby \(shown) 10") == Array(after))
            #expect(stage.page("CHATHISTORY AROUND #lobby \(shown) 1") == [text])
        }
        // One that none bears stands in front of the first with a later one, wherever that is; what is ahead of us was said now.
        for (said, front) in [(0, 1), (2, 4)] {
            let time = stage.time(stage.log[said].at + 1)
            let all = ["a", "b", "c", "d", "e"]
            #expect(stage.page("CHATHISTORY BEFORE #lobby \(time) 10") == Array(all.prefix(front)))
            #expect(stage.page("CHATHISTORY AFTER #lobby \(time) 10") == Array(all.dropFirst(front)))
        }
    }

    @Test(
        "messages of one moment are shown apart, so that a time names one of them", arguments: HistoryPlace.own,
        [0, 5])
    func shownApart(_ place: HistoryPlace, milliseconds: Int64) throws {
        let stage = try HistoryStage(place)
        stage.enter()
        stage.harness.advance(by: .milliseconds(milliseconds))
        stage.say(["a", "b", "c", "d"], each: .zero)
        stage.harness.advance(by: .seconds(1))
        stage.say("e")
        let live = stage.raw().filter { $0.contains("PRIVMSG") }.compactMap { HistoryStage.tag("time", $0) }.dropLast()
        #expect(Array(live) == (0..<4).map { "2026-11-21T12:00:00.00\(milliseconds + Int64($0))Z" })
        let lines = stage.ask("CHATHISTORY LATEST #lobby * 10").filter { $0.contains("PRIVMSG") }
        #expect(Array(lines.compactMap { HistoryStage.tag("time", $0) }.prefix(4)) == Array(live))
        for (index, time) in live.enumerated() {
            #expect(
                stage.page("CHATHISTORY AFTER #lobby timestamp=\(time) 10")
                    == Array(["a", "b", "c", "d", "e"].dropFirst(index + 1)))
            #expect(
                stage.page("CHATHISTORY BEFORE #lobby timestamp=\(time) 10")
                    == Array(["a", "b", "c", "d"].prefix(index)))
        }
    }

    @Test("where a backend counts whole seconds, so are those of one second, and none else")
    func wholeSeconds() throws {
        let stage = try HistoryStage(.store)
        stage.enter()
        stage.say("a")
        // Its clock stands at the second while ours goes on.
        stage.harness.advance(by: .milliseconds(400))
        stage.say("b", clock: -400)
        stage.harness.advance(by: .milliseconds(400))
        stage.say("c", clock: -800)
        stage.harness.advance(by: .milliseconds(400))
        stage.say("d", clock: -200)
        // A clock that is behind the newest line by more than a minute stays behind that one.
        stage.say("e", clock: -60_200)
        let times = stage.raw().filter { $0.contains("PRIVMSG") }.compactMap { HistoryStage.tag("time", $0) }.map {
            String($0.suffix(10))
        }
        #expect(times == ["00:00.000Z", "00:00.001Z", "00:00.002Z", "00:01.000Z", "00:00.003Z"])
    }

    @Test(
        "of messages that bear one time nothing is left out for who names them by it, and each comes once for who goes on from a page"
    )
    func sameMoment() throws {
        let moment = ManualClock().now.wall.milliseconds
        var store = StoreStage()
        let rows: [(text: String, at: Int64)] = [("a", 0), ("b", 1000), ("c", 1000), ("d", 1000), ("e", 2000)]
        store.prepare(
            rows.enumerated().map { place, row in
                .message(
                    StoredRoomKey(backend: "b", room: "lobby"),
                    StoredMessage(
                        sequence: Int64(place), msgid: "id-" + row.text, upstreamID: ChatID("up-" + row.text),
                        sender: ChatPerson(id: ChatID("u"), name: "Linguini"),
                        at: ChatTimestamp(milliseconds: moment + row.at), nick: "Linguini", source: "Linguini!l@b",
                        text: row.text))
            })
        let stage = try HistoryStage(.store, store: store)
        stage.enter()
        // Of what came behind them nothing is known.
        let gap = try #require(stage.page("CHATHISTORY LATEST #lobby * 1").first)
        func time(_ text: String) -> String { stage.time(moment + (rows.first { $0.text == text }?.at ?? 0)) }
        #expect(stage.page("CHATHISTORY BEFORE #lobby \(time("c")) 10") == ["a", "b", "c"])
        // What was told last ends with one of them.
        #expect(stage.page("CHATHISTORY AFTER #lobby \(time("c")) 10") == ["d", "e", gap])
        #expect(stage.page("CHATHISTORY AFTER #lobby \(time("c")) 10") == ["c", "d", "e", gap])
        #expect(stage.page("CHATHISTORY BEFORE #lobby \(time("c")) 10") == ["a", "b"])
        #expect(stage.page("CHATHISTORY AROUND #lobby \(time("c")) 3") == ["a", "b", "c"])
        #expect(stage.page("CHATHISTORY LATEST #lobby \(time("c")) 10") == ["c", "d", "e", gap])
        // No page gets no further than the one before it.
        #expect(stage.page("CHATHISTORY LATEST #lobby * 3") == ["d", "e", gap])
        #expect(stage.page("CHATHISTORY BEFORE #lobby \(time("d")) 2") == ["b", "c"])
        #expect(stage.page("CHATHISTORY BEFORE #lobby \(time("b")) 2") == ["a"])
        #expect(stage.page("CHATHISTORY BEFORE #lobby \(time("a")) 2") == [])
        #expect(stage.page("CHATHISTORY BEFORE #lobby msgid=id-c 10") == ["a", "b"])
        #expect(stage.page("CHATHISTORY AFTER #lobby msgid=id-c 10") == ["d", "e", gap])
    }

    // MARK: - Targets

    @Test("TARGETS lists the rooms whose newest message lies between the times")
    func targets() throws {
        let stage = try HistoryStage(.store, rooms: 4)
        stage.enter(join: "#lobby,#room1,#room2")
        var times: [Int64] = []
        for room in [0, 1, 0, 2, 3] {
            times.append(stage.harness.clock.now.wall.milliseconds)
            stage.say("hello", room: room)
            stage.harness.advance(by: .seconds(1))
        }
        _ = stage.raw()
        func targets(_ from: Int64, _ to: Int64, _ limit: Int) -> [String] {
            let answer = stage.ask("CHATHISTORY TARGETS \(stage.time(from)) \(stage.time(to)) \(limit)")
            #expect(answer.first?.contains(#/BATCH \+\S+ draft/chathistory-targets$/#) == true)
            return answer.compactMap { $0.firstMatch(of: #/CHATHISTORY TARGETS (.*)$/#).map { String($0.1) } }
        }
        let all = [(1, times[1]), (0, times[2]), (2, times[3])].map { room, at in
            "\(room == 0 ? "#lobby" : "#room\(room)") \(IRCTime.text(at))"
        }
        // Nobody is in #room3.
        #expect(targets(0, times[4] + 1, 10) == all)
        #expect(targets(times[4] + 1, 0, 10) == all)
        #expect(targets(0, times[4] + 1, 2) == Array(all[..<2]))
        #expect(targets(times[4] + 1, 0, 2) == Array(all[1...]))
        // The limits do not belong to it, and a room is where its newest message is.
        #expect(targets(times[1], times[3], 10) == [all[1]])
        #expect(targets(0, times[1], 10) == [])
    }

    @Test("a line that comes late, or from a clock that is slow, hides no room that has news")
    func targetsOfSlowClocks() throws {
        let stage = try HistoryStage(.store)
        stage.enter()
        let from = stage.harness.clock.now.wall.milliseconds
        stage.harness.advance(by: .seconds(1))
        stage.say("right")
        stage.say("slow", clock: -600_000)
        stage.harness.advance(by: .seconds(1))
        // Nor does one from a clock that is ahead.
        for text in ["", "ahead"] {
            if !text.isEmpty { stage.say(text, clock: 200_000) }
            stage.harness.advance(by: .seconds(1))
            let to = stage.time(stage.harness.clock.now.wall.milliseconds)
            _ = stage.raw()
            #expect(stage.ask("CHATHISTORY TARGETS \(stage.time(from)) \(to) 5").count { $0.contains("#lobby") } == 1)
        }
        stage.restart()
        stage.enter()
        let to = stage.time(stage.harness.clock.now.wall.milliseconds + 1)
        #expect(stage.ask("CHATHISTORY TARGETS \(stage.time(from)) \(to) 5").count { $0.contains("#lobby") } == 1)
    }

    // MARK: - Refusals

    static let refusals = [
        ("SOMETHING #lobby * 5", "INVALID_PARAMS SOMETHING :Unknown command"),
        ("LATEST", "INVALID_PARAMS LATEST :Insufficient parameters"),
        ("LATEST #lobby *", "INVALID_PARAMS LATEST :Insufficient parameters"),
        ("BETWEEN #lobby timestamp=2026-11-21T12:00:00.000Z 5", "INVALID_PARAMS BETWEEN :Insufficient parameters"),
        ("LATEST #lobby * 5 6", "INVALID_PARAMS LATEST :Too many parameters"),
        ("LATEST #lobby * many", "INVALID_PARAMS LATEST many :Invalid limit"),
        ("LATEST #lobby * -5", "INVALID_PARAMS LATEST -5 :Invalid limit"),
        ("BEFORE #lobby * 5", "INVALID_PARAMS BEFORE * :Not a message reference"),
        ("BEFORE #lobby msgid= 5", "INVALID_PARAMS BEFORE msgid= :Not a message reference"),
        ("BEFORE #lobby timestamp=yesterday 5", "INVALID_PARAMS BEFORE timestamp=yesterday :Invalid timestamp"),
        ("AFTER #lobby place=5 5", "INVALID_MSGREFTYPE AFTER #lobby place=5 :References are by msgid or by timestamp"),
        ("TARGETS msgid=x timestamp=2026-11-21T12:00:00.000Z 5", "INVALID_PARAMS TARGETS msgid=x :Invalid timestamp"),
        ("LATEST #nowhere * 5", "INVALID_TARGET LATEST #nowhere :Messages could not be retrieved"),
        ("LATEST #room1 * 5", "INVALID_TARGET LATEST #room1 :Messages could not be retrieved"),
        ("BEFORE #lobby msgid=none 5", "MESSAGE_ERROR BEFORE #lobby none :No such message is known here"),
    ]

    @Test("what cannot be answered is refused in the words of the specification", arguments: refusals, HistoryPlace.own)
    func refusal(_ row: (line: String, answer: String), _ place: HistoryPlace) throws {
        let stage = try HistoryStage(place, rooms: 2)
        stage.enter()
        let answer = stage.ask("@label=7 CHATHISTORY " + row.line)
        #expect(answer.map { $0.replacing(#/^@\S+ /#, with: "") } == [":bridge FAIL CHATHISTORY " + row.answer])
        #expect(HistoryStage.tag("label", answer.first ?? "") == "7")
    }

    @Test("a private conversation has nothing that was kept")
    func privateConversation() throws {
        let stage = try HistoryStage(.memory)
        stage.enter()
        #expect(
            stage.ask("CHATHISTORY LATEST linguini * 5").map { $0.replacing(#/^@\S+ /#, with: "") } == [
                ":bridge BATCH +b1 chathistory linguini", ":bridge BATCH -b1",
            ])
    }

    @Test("without any parameter it is 461")
    func needsParameters() throws {
        let stage = try HistoryStage(.memory)
        stage.enter()
        #expect(stage.ask("CHATHISTORY").first?.hasSuffix(" 461 remy CHATHISTORY :Not enough parameters") == true)
    }

    @Test("a disk that cannot be read, or does not answer, is told, and the client's next line is answered")
    func brokenDisk() throws {
        let stage = try ten(.store)
        stage.harness.store.readFailure = StoreFailure("the disk is gone")
        #expect(
            stage.ask("CHATHISTORY LATEST #lobby * 5").first?.contains("FAIL CHATHISTORY MESSAGE_ERROR LATEST #lobby")
                == true)
        stage.harness.store.readFailure = nil
        stage.harness.store.answersQuestions = false
        stage.enter(2, "alfredo")
        _ = stage.raw()
        stage.harness.send(1, "CHATHISTORY LATEST #lobby * 5")
        stage.harness.send(1, "PING after")
        // Nobody else waits.
        #expect(stage.ask("PING me", 2).contains { $0.contains("PONG") })
        #expect(stage.raw() == [])
        stage.harness.advance(by: HistoryAnswer.patience)
        let answer = stage.raw()
        #expect(answer.count == 2)
        #expect(answer.first?.contains("FAIL CHATHISTORY MESSAGE_ERROR") == true)
        #expect(answer.last?.contains("PONG bridge after") == true)
        // The answer that comes after all is nobody's any more.
        stage.harness.store.answersQuestions = true
        #expect(stage.ask("PING x").count == 1)
    }

    @Test("a client that leaves while it waits is gone")
    func leaves() throws {
        let stage = try ten(.store)
        stage.harness.store.answersQuestions = false
        stage.harness.send(1, "CHATHISTORY LATEST #lobby * 5")
        stage.harness.disconnect(1)
        stage.harness.store.answersQuestions = true
        stage.harness.advance(by: .seconds(60))
        #expect(stage.harness.violations == [])
    }

    // MARK: - Who may see it

    @Test("a room is read by who is in it, and by accounts that were given it by name")
    func mayRead() throws {
        let stage = try HistoryStage(.store, rooms: 2)
        stage.say("hello")
        stage.enter(1, "remy", join: nil)
        stage.enter(2, "ann@phone", join: nil)
        stage.enter(3, "bob@phone", join: nil)
        for client in [1, 2] as [UInt64] {
            #expect(stage.ask("CHATHISTORY LATEST #lobby * 5", client).first?.contains("INVALID_TARGET") == true)
        }
        #expect(stage.page("CHATHISTORY LATEST #lobby * 5", 3) == ["hello"])
        #expect(stage.ask("CHATHISTORY LATEST #room1 * 5", 3).first?.contains("INVALID_TARGET") == true)
        #expect(stage.page("SEARCH text=hello", 1) == [])
        #expect(stage.page("SEARCH text=hello", 3) == ["hello"])
        stage.harness.send(2, "JOIN #lobby")
        #expect(stage.page("CHATHISTORY LATEST #lobby * 5", 2) == ["hello"])
    }

    @Test("who asks for history gets none unasked, and its cursor goes on all the same")
    func noBacklog() throws {
        let stage = try HistoryStage(.store)
        stage.enter(1, "ann@phone")
        stage.harness.advance(by: .seconds(3))
        stage.harness.disconnect(1)
        stage.say(numbers(0..<3))
        stage.harness.connect(2)
        stage.harness.send(2, "CAP REQ :" + HistoryStage.caps)
        for line in ["PASS ann@phone:pw", "NICK ann", "USER u 0 * :r", "CAP END", "JOIN #lobby"] {
            stage.harness.send(2, line)
        }
        #expect(stage.raw(2).compactMap(HistoryStage.words) == [])
        #expect(stage.page("CHATHISTORY LATEST #lobby * 5", 2) == numbers(0..<3))
        stage.harness.advance(by: .seconds(3))
        stage.harness.disconnect(2)
        stage.enter(3, "ann@phone", caps: "message-tags")
        #expect(stage.raw(3).compactMap(HistoryStage.words) == [])
    }

    // MARK: - What a page shows

    @Test(
        "messages are as they were: msgid, time, account, replies, ACTIONs, several lines", arguments: HistoryPlace.own)
    func asTheyWere(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place)
        stage.enter()
        stage.enter(2, "ann@phone", caps: "")
        stage.say("first")
        stage.harness.advance(by: .seconds(1))
        stage.say(#"two\nlines"#, more: #""replyTo":"m0","#)
        stage.harness.send(2, "PRIVMSG #lobby :\u{1}ACTION waves\u{1}")
        let live = stage.raw()
        let page = stage.ask("CHATHISTORY LATEST #lobby * 10").dropFirst().dropLast()
        func plain(_ line: String) -> Set<Substring> {
            Set(
                line.split(separator: " ", maxSplits: 1)[0].dropFirst().split(separator: ";").filter {
                    !$0.hasPrefix("batch=")
                })
        }
        let shown = live.filter { $0.contains("PRIVMSG") }
        #expect(page.compactMap(HistoryStage.words) == ["first", "two", "lines", "\u{1}ACTION waves\u{1}"])
        #expect(page.map(plain) == shown.map(plain))
        #expect(page.filter { HistoryStage.tag("msgid", $0) != nil }.count == 3)
        #expect(page.last.flatMap { HistoryStage.tag("account", $0) } == "ann")
        #expect(page.dropFirst().first.flatMap { HistoryStage.tag("+reply", $0) } == stage.msgid("first"))
    }

    @Test(
        "edits are the newest words, and what was taken back is nowhere; for who knows REDACT it is one",
        arguments: HistoryPlace.own)
    func changed(_ place: HistoryPlace) throws {
        let stage = try ten(place)
        stage.harness.sendFrame(
            0, #"{"kind":"edit","id":"m4","sender":{"id":"u-lin","name":"linguini"},"text":"new words"}"#)
        for id in ["m5", "m7"] { stage.harness.sendFrame(0, #"{"kind":"delete","ids":["\#(id)"]}"#) }
        _ = stage.raw()
        // A page is as long as was asked for: what is not in it does not count.
        #expect(stage.page("CHATHISTORY LATEST #lobby * 5") == ["m3", "new words", "m6", "m8", "m9"])
        stage.enter(2, "alfredo", caps: HistoryStage.caps + " draft/event-playback draft/message-redaction")
        let page = stage.ask("CHATHISTORY LATEST #lobby * 5", 2).dropFirst().dropLast()
        #expect(
            page.compactMap { $0.firstMatch(of: #/ REDACT #lobby (\S+)$/#).map { String($0.1) } } == [
                stage.msgid("m5"), stage.msgid("m7"),
            ])
        #expect(page.count == 5)
        // Its place is still one.
        #expect(stage.page("CHATHISTORY AFTER #lobby msgid=\(stage.msgid("m5")) 1") == ["m6"])
        // Without playback no client gets anything but words, whatever it knows.
        stage.enter(3, "skinner", caps: HistoryStage.caps + " draft/message-redaction")
        #expect(
            stage.ask("CHATHISTORY LATEST #lobby * 5", 3).allSatisfy { $0.contains("BATCH") || $0.contains("PRIVMSG") })
    }

    @Test(
        "what somebody else made of a message is in the past as it was told, and the message as its author said it",
        arguments: HistoryPlace.own)
    func changedByOthers(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place)
        stage.enter()
        stage.say(["yes", "no"])
        _ = stage.raw()
        func edit(_ id: String, _ text: String, by sender: String) {
            stage.harness.sendFrame(0, #"{"kind":"edit","id":"\#(id)","text":"\#(text)"\#(sender)}"#)
            stage.harness.advance(by: .seconds(1))
        }
        let mallory = #","sender":{"id":"u-mal","name":"Mallory"}"#
        edit("m0", "I resign", by: mallory)
        edit("m1", #"I pay\nevery\u0001thing"#, by: "")
        // Mallory has come.
        let live = stage.raw().filter { $0.contains(" NOTICE ") }
        let told = [
            "*** A message of linguini's from 2 s ago was changed by Mallory: I resign",
            "*** A message of linguini's from 2 s ago was changed by the backend: I pay",
        ]
        #expect(live.compactMap(HistoryStage.words) == told + ["everything"])
        func unbatched(_ lines: [String]) -> [String] {
            lines.filter { !$0.contains(" BATCH ") }.map {
                $0.replacing(#/batch=[^; ]+;|;batch=[^; ]+|@batch=\S+ /#, with: "")
            }
        }
        func check(_ client: UInt64 = 1) {
            let page = stage.ask("CHATHISTORY LATEST #lobby * 9", client)
            let words = page.compactMap(HistoryStage.words)
            #expect(words.prefix(2) == ["yes", "no"], "each message has the words of its author: \(page)")
            #expect(unbatched(page.filter { $0.contains(" NOTICE ") && !$0.contains("chatbridge/gap") }) == live)
            #expect(!page.contains { $0.contains(":linguini!") && $0.contains("resign") })
            let found = stage.ask("SEARCH in=#lobby;text=resign", client)
            #expect(unbatched(found) == Array(live.prefix(1)))
            for line in ["SEARCH from=linguini;text=resign", "SEARCH from=linguini;text=pay"] {
                #expect(stage.page(line, client) == [])
            }
            #expect(stage.page("SEARCH from=linguini;text=yes", client) == ["yes"])
            // From there on, by the id that it bears.
            let msgid = HistoryStage.tag("msgid", live[0]) ?? "none"
            #expect(stage.page("CHATHISTORY BEFORE #lobby msgid=\(msgid) 9", client) == ["yes", "no"])
            #expect(
                stage.page("CHATHISTORY AFTER #lobby msgid=\(msgid) 2", client).prefix(2) == [told[1], "everything"])
        }
        check()
        stage.enter(2, "alfredo", caps: HistoryStage.caps + " draft/event-playback draft/message-redaction")
        check(2)
        // What comes to clients that do not ask.
        stage.enter(3, "skinner", caps: "message-tags server-time batch")
        stage.harness.send(3, "PRIVMSG *bridge :history #lobby")
        let service = stage.raw(3).compactMap {
            $0.firstMatch(of: #/:\*bridge!\S+ PRIVMSG skinner :\[[^\]]*\] (.*)$/#).map { String($0.1) }
        }
        #expect(service.prefix(4) == ["<linguini> yes", "<linguini> no", told[0], told[1]])
        // Muted people are in no page.
        stage.enter(4, "gusteau")
        stage.harness.send(4, "PRIVMSG *bridge :mute Mallory")
        _ = stage.raw(4)
        #expect(stage.page("CHATHISTORY LATEST #lobby * 9", 4) == ["yes", "no", told[1], "everything"])
        if place.isDurable {
            stage.restart()
            stage.enter()
            check()
            // The backend may say it once more.
            edit("m0", "I resign", by: mallory)
            #expect(stage.raw().filter { $0.contains("resign") } == [])
        }
        // With the message goes what was made of it.
        stage.harness.sendFrame(0, #"{"kind":"delete","ids":["m0"]}"#)
        _ = stage.raw()
        #expect(
            stage.page("CHATHISTORY LATEST #lobby * 9").filter { !$0.contains("missing") }
                == ["no", told[1], "everything"])
        #expect(stage.page("SEARCH in=#lobby;text=resign") == [])
        stage.enter(5, "colette", caps: HistoryStage.caps + " draft/event-playback draft/message-redaction")
        let page = stage.ask("CHATHISTORY LATEST #lobby * 9", 5)
        #expect(
            page.filter { $0.contains(" REDACT ") }.map { $0.replacing(#/^@\S+ /#, with: "") } == [
                ":bridge REDACT #lobby " + stage.msgid("yes")
            ])
        #expect(!page.contains { $0.contains("resign") || $0.contains("yes") })
        #expect(stage.harness.violations == [])
    }

    @Test(
        "a deletion in the author's name that somebody else made leaves no words, and is nobody's act but the backend's",
        arguments: HistoryPlace.own)
    func takenBackByOthers(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place)
        stage.harness.echoes = true
        stage.enter()
        stage.harness.send(1, "PRIVMSG #lobby :I stay")
        let entry = try #require(stage.room.recent.newest)
        let (id, puppet) = (try #require(entry.upstreamID).rawValue, try #require(entry.puppet).rawValue)
        stage.harness.sendFrame(
            0, #"{"kind":"delete","ids":["\#(id)"],"sender":{"id":"\#(puppet)","name":"remy"}}"#)
        _ = stage.raw()
        for isRestarted in place.isDurable ? [false, true] : [false] {
            if isRestarted { stage.restart() }
            stage.enter(2, "alfredo", caps: HistoryStage.caps + " draft/event-playback draft/message-redaction")
            let page = stage.ask("CHATHISTORY LATEST #lobby * 9", 2)
            #expect(
                page.filter { $0.contains(" REDACT ") }.map { $0.replacing(#/^@\S+ /#, with: "") } == [
                    ":bridge REDACT #lobby " + entry.msgid
                ])
            #expect(!page.contains { $0.contains("remy!") || $0.contains("account=") || $0.contains("stay") })
            stage.enter(3, "skinner")
            let words = stage.page("CHATHISTORY LATEST #lobby * 9", 3) + stage.page("SEARCH in=#lobby;text=stay", 3)
            #expect(words.filter { !$0.contains("missing") } == [])
        }
    }

    @Test(
        "reactions are lines of the past for who asks for it, over a restart too, and for nobody else",
        arguments: HistoryPlace.own)
    func events(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place)
        let caps = HistoryStage.caps + " draft/event-playback"
        stage.enter(caps: caps)
        stage.say(["a", "b"])
        stage.harness.sendFrame(
            0, #"{"kind":"reaction","target":"m0","emoji":"👍","op":"add","sender":{"id":"u-lin","name":"linguini"}}"#)
        stage.harness.advance(by: .seconds(1))
        stage.harness.send(1, "@+reply=\(stage.msgid("b"));+draft/react=🍲 TAGMSG #lobby")
        stage.harness.advance(by: .seconds(1))
        stage.say("c")
        let live = try #require(stage.raw().first { $0.contains("+draft/react=👍") })
        func check() throws {
            let page = Array(stage.ask("CHATHISTORY LATEST #lobby * 3").dropFirst().dropLast())
            try #require(page.count == 3)
            #expect(page[0].replacing(#/batch=[^; ]+;|;batch=[^; ]+/#, with: "") == live)
            #expect(page[1].contains("+draft/react=🍲") && page[1].hasSuffix("TAGMSG #lobby"))
            #expect(HistoryStage.words(page[2]) == "c")
            let id = try #require(HistoryStage.tag("msgid", page[0]))
            #expect(stage.page("CHATHISTORY BEFORE #lobby msgid=\(id) 5") == ["a", "b"])
            stage.enter(2, "alfredo")
            #expect(stage.page("CHATHISTORY LATEST #lobby * 3", 2) == ["a", "b", "c"])
            stage.harness.disconnect(2)
        }
        try check()
        guard place.isDurable else { return }
        let place = stage.room.recent.lastSequence
        stage.restart()
        #expect(stage.room.recent.lastSequence >= place)
        stage.enter(caps: caps)
        #expect(
            stage.ask("CHATHISTORY BETWEEN #lobby msgid=\(stage.msgid("b")) msgid=\(stage.msgid("c")) 9").count == 4)
    }

    @Test("gaps have their places", arguments: HistoryPlace.own)
    func gaps(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place)
        stage.enter()
        stage.say("before")
        stage.harness.acceptsConnections = false
        stage.harness.endTransport(0, reason: "gone")
        stage.harness.advance(by: .seconds(10))
        stage.harness.acceptsConnections = true
        stage.harness.advance(by: .seconds(60))
        if stage.harness.upstreams[0].state == .connecting { stage.harness.accept(0) }
        stage.say("after")
        let gap = try #require(stage.raw().first { $0.contains("chatbridge/gap") })
        let page = stage.ask("CHATHISTORY LATEST #lobby * 5").dropFirst().dropLast()
        #expect(page.compactMap(HistoryStage.words) == ["before", HistoryStage.words(gap) ?? "", "after"])
        let id = try #require(HistoryStage.tag("msgid", gap))
        #expect(stage.page("CHATHISTORY AFTER #lobby msgid=\(id) 5") == ["after"])
    }

    @Test(
        "without batch, tags and times a page is lines with the time in front; a label is answered by ACK where there are none"
    )
    func plainClients() throws {
        let stage = try ten(.store)
        stage.enter(2, "alfredo", caps: "labeled-response")
        #expect(
            stage.ask("CHATHISTORY LATEST #lobby * 2", 2).map { $0.replacing(#/^:\S+/#, with: ":x") }
                == [":x PRIVMSG #lobby :[12:00] m8", ":x PRIVMSG #lobby :[12:00] m9"])
        #expect(stage.ask("@label=9 CHATHISTORY LATEST #lobby * 0", 2) == ["@label=9 :bridge ACK"])
    }

    @Test("the batch is the answer to a label")
    func label() throws {
        let stage = try ten(.store)
        let answer = stage.ask("@label=abc CHATHISTORY LATEST #lobby * 2")
        #expect(HistoryStage.tag("label", answer[0]) == "abc")
        #expect(answer[0].contains("BATCH +") && answer.count == 4)
        #expect(answer.dropFirst().allSatisfy { HistoryStage.tag("label", $0) == nil })
        let empty = stage.ask("@label=x CHATHISTORY AFTER #lobby msgid=\(stage.msgid("m9")) 2")
        #expect(empty.count == 2 && HistoryStage.tag("label", empty[0]) == "x")
    }

    @Test("no page is longer than the limit that the server tells", arguments: HistoryPlace.own)
    func limit(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place, limit: 150)
        stage.harness.connect(9)
        for line in ["NICK tester", "USER u 0 * :r"] { stage.harness.send(9, line) }
        let welcome = stage.raw(9)
        #expect(welcome.contains { $0.contains(" CHATHISTORY=150 ") })
        #expect(welcome.contains { $0.contains(" MSGREFTYPES=msgid,timestamp ") })
        stage.enter()
        stage.say(numbers(0..<400), each: .milliseconds(10))
        _ = stage.raw()
        #expect(stage.page("CHATHISTORY LATEST #lobby * 1000") == numbers(250..<400))
        #expect(stage.page("CHATHISTORY BEFORE #lobby msgid=\(stage.msgid("m250")) 1000") == numbers(100..<250))
    }

    @Test("a page is written as the client takes it, and live lines come meanwhile")
    func slowClient() throws {
        let stage = try HistoryStage(.store)
        stage.enter()
        stage.say((0..<200).map { "m\($0) " + String(repeating: "x", count: 300) }, each: .milliseconds(10))
        _ = stage.raw()
        stage.harness.setSlow(1, true)
        stage.harness.send(1, "CHATHISTORY LATEST #lobby * 200")
        let first = stage.raw()
        #expect(first.count > 10 && first.count < 100)
        stage.say("live")
        #expect(stage.raw().compactMap(HistoryStage.words) == ["live"])
        stage.harness.setSlow(1, false)
        #expect((first + stage.raw()).compactMap(HistoryStage.words).count == 200)
    }

    // MARK: - Search

    @Test("messages are found by words, people, times and rooms", arguments: HistoryPlace.own)
    func search(_ place: HistoryPlace) throws {
        let stage = try HistoryStage(place, rooms: 2)
        stage.enter(join: "#lobby,#room1")
        stage.say(["Soup of the day", "100% garlic", "more soup", "no_soup;today"])
        stage.say("soup next door", room: 1)
        stage.harness.advance(by: .seconds(1))
        stage.harness.send(1, "PRIVMSG #lobby :my soup")
        _ = stage.raw()
        let answer = stage.ask("@label=s SEARCH text=soup;in=#lobby;limit=2")
        #expect(answer[0].contains(#/BATCH \+\S+ soju.im/search$/#) && HistoryStage.tag("label", answer[0]) == "s")
        #expect(answer.compactMap(HistoryStage.words) == ["no_soup;today", "my soup"])
        #expect(
            stage.page("SEARCH text=soup") == [
                "Soup of the day", "more soup", "no_soup;today", "soup next door", "my soup",
            ])
        #expect(stage.page("SEARCH from=LINGUINI;in=#lobby;limit=1") == ["no_soup;today"])
        #expect(stage.page("SEARCH from=remy") == ["my soup"])
        #expect(stage.page("SEARCH text=0%") == ["100% garlic"])
        #expect(stage.page("SEARCH text=o_s") == ["no_soup;today"])
        #expect(stage.page(#"SEARCH text=soup\:today"#) == ["no_soup;today"])
        #expect(stage.page(#"SEARCH text=of\sthe"#) == ["Soup of the day"])
        let second = IRCTime.text(stage.log[1].at)
        #expect(stage.page("SEARCH in=#lobby;after=\(second);limit=2") == ["100% garlic", "more soup"])
        #expect(stage.page("SEARCH in=#lobby;before=\(second)") == ["Soup of the day", "100% garlic"])
        #expect(stage.page("SEARCH text=pizza") == [])
        #expect(stage.ask("SEARCH text=pizza").count == 2)
    }

    @Test(
        "a search that makes no sense is refused",
        arguments: [
            ("in=#nowhere", "in :You are not in that room"), ("colour=red", "colour :Unknown attribute"),
            ("after=yesterday", "after :Invalid timestamp"), ("limit=0", "limit :Invalid limit"),
            ("limit=x", "limit :Invalid limit"), ("text=a b", "* :The attributes are one parameter"),
        ])
    func searchRefusals(_ row: (line: String, answer: String)) throws {
        let stage = try HistoryStage(.memory)
        stage.enter()
        let answer = stage.ask("SEARCH " + row.line).map { $0.replacing(#/^@\S+ /#, with: "") }
        #expect(answer == [":bridge FAIL SEARCH INVALID_PARAMS " + row.answer])
    }

    @Test("words that repeat themselves are looked for in time that grows with the text alone", .timeLimit(.minutes(1)))
    func repeatingWords() {
        let text = [UInt8](repeating: UInt8(ascii: "a"), count: 1 << 20)
        let words = TextPattern(String(repeating: "a", count: 1 << 19) + "b")
        #expect(text.withUnsafeBytes(words.firstIndex) == nil)
        #expect((text + [UInt8(ascii: "B")]).withUnsafeBytes(words.firstIndex) == 1 << 19)
    }

    /// A stage with 5000 messages in the store, of which the first is "needle".
    private func stored() throws -> HistoryStage {
        var store = StoreStage()
        let key = StoredRoomKey(backend: "b", room: "lobby")
        store.prepare(
            (0..<5000 as Range<Int64>).map { place in
                .message(
                    key,
                    StoredMessage(
                        sequence: place, msgid: "s\(place)", sender: ChatPerson(id: ChatID("u-lin")),
                        at: ChatTimestamp(milliseconds: 1_000 + place), nick: "linguini", source: "linguini!u@h",
                        text: place == 0 ? "needle" : "hay"))
            })
        let stage = try HistoryStage(.store, store: store)
        stage.enter()
        return stage
    }

    @Test("a search of the disk is done in steps")
    func searchSteps() throws {
        let stage = try stored()
        #expect(stage.page("SEARCH text=needle") == ["needle"])
        #expect(stage.harness.store.searchStepCount == 3)
        #expect(stage.page("SEARCH text=hay;limit=3") == ["hay", "hay", "hay"])
        #expect(stage.harness.store.searchStepCount == 4)
    }

    @Test("a search ends at 256 MiB of text, and says that it is not all", arguments: [true, false])
    func searchOfMuch(isMore: Bool) throws {
        let stage = try stored()
        // Of three steps.
        stage.harness.store.searchedBesides = isMore ? 128 << 20 : 127 << 20
        stage.harness.send(1, "SEARCH text=needle")
        let answer = stage.raw()
        #expect(answer.contains { $0.contains("NOTE SEARCH INCOMPLETE * :") } == isMore)
        #expect(answer.contains { $0.hasSuffix(":needle") } != isMore)
        #expect(stage.harness.store.searchStepCount == (isMore ? 2 : 3))
    }

    @Test("a search ends with the connection that asked for it")
    func searchEnds() throws {
        let stage = try stored()
        stage.enter(2, "remy2")
        stage.harness.store.answersQuestions = false
        stage.harness.send(1, "SEARCH text=needle")
        stage.harness.disconnect(1)
        stage.harness.store.answersQuestions = true
        #expect(stage.page("SEARCH text=needle", 2) == ["needle"])
        #expect(stage.harness.store.searchStepCount == 1 + 3)
    }

    @Test("a search that takes too long shows what it found, and says that it is not all")
    func searchTakesLong() throws {
        let stage = try stored()
        stage.enter(2, "remy2")
        _ = stage.raw()
        stage.harness.store.questionsToAnswer = 0
        stage.harness.send(1, "SEARCH text=needle")
        // Each step takes less time than one may.
        for _ in 0..<2 {
            stage.harness.advance(by: .seconds(6))
            #expect(stage.raw().isEmpty)
            stage.harness.store.questionsToAnswer = 1
            stage.harness.send(2, "PING x")
        }
        let answer = stage.raw()
        #expect(answer.contains { $0.contains("NOTE SEARCH INCOMPLETE * :") })
        #expect(answer.last?.contains("BATCH -") == true)
    }

    @Test("a search of memory lets the loop answer others between its steps")
    func searchOfMemory() throws {
        let stage = try HistoryStage(.memory)
        stage.enter()
        stage.say("needle")
        stage.say((0..<12).map { "\($0) " + String(repeating: "hay", count: 100_000) }, each: .milliseconds(10))
        _ = stage.raw()
        stage.harness.setSlow(1, true)
        stage.harness.send(1, "SEARCH text=needle")
        #expect(stage.raw().isEmpty)
        stage.harness.setSlow(1, false)
        #expect(stage.raw().compactMap(HistoryStage.words) == ["needle"])
    }

    @Test("a search on a disk that cannot be read is refused")
    func searchFails() throws {
        let stage = try ten(.store)
        stage.harness.store.readFailure = StoreFailure("the disk is gone")
        #expect(stage.ask("SEARCH text=m").first?.contains("FAIL SEARCH INTERNAL_ERROR * :") == true)
    }
}
