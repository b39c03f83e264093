import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import IRCProtocol
import Identities
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Backlog")
struct BacklogTests {
    private func said(_ range: Range<Int>) -> [String] { range.map { "ann: m\($0)" } }

    /// A client that was here, has everything, and is gone.
    private func left(_ stage: BacklogStage, _ login: String = "alice@phone", caps: String = BacklogStage.caps) {
        stage.enter(90, login, caps: caps)
        stage.harness.advance(by: .seconds(3))
        stage.leave(90)
    }

    /// Whether a line says that messages are left out, and how to see them.
    static func isNotice(_ line: String?, _ what: String, most: Int) -> Bool {
        let words = "bridge: *** \(what) left out: /msg *bridge history #lobby \(most) before "
        return line.map { $0.hasPrefix(words) && !$0.dropFirst(words.count).contains(" ") } ?? false
    }

    // MARK: - What comes

    @Test("who returns gets what was said meanwhile, once")
    func returns() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        stage.say(numbers(0..<2))
        #expect(stage.heard(1) == said(0..<2))
        stage.harness.advance(by: .seconds(3))
        stage.leave(1)
        stage.say(numbers(2..<5))
        stage.enter(2, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(2) == said(2..<5))
        stage.harness.advance(by: .seconds(3))
        stage.leave(2)
        stage.enter(3, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(3) == [])
    }

    @Test("it comes after 366, in a batch, as it was shown when it was said")
    func transcript() throws {
        let stage = try BacklogStage()
        left(stage)
        stage.enter(1, "bob@desk", caps: BacklogStage.caps)
        stage.say("hello")
        let live = try #require(stage.raw(1).last)
        stage.harness.advance(by: .seconds(90))
        stage.connect(2, "alice@phone", caps: BacklogStage.caps)
        stage.harness.send(2, "JOIN #lobby")
        let lines = stage.raw(2)
        let end = try #require(lines.firstIndex { $0.contains(" 366 ") })
        let rest = lines[(end + 1)...].map { $0.replacing(#/^@time=\S+? :bridge/#, with: ":bridge") }
        #expect(rest.count == 3)
        let batch = try #require(rest.first?.firstMatch(of: #/BATCH \+(\S+) chathistory #lobby$/#)).1
        #expect(
            rest[1] == live.replacing("@time=", with: "@batch=\(batch);time=") || rest[1].contains("batch=\(batch)"))
        #expect(tags(rest[1]).filter { $0.key != "batch" } == tags(live))
        #expect(rest[2] == ":bridge BATCH -\(batch)")
    }

    private func tags(_ line: String) -> [String: String] {
        guard line.hasPrefix("@") else { return [:] }
        return Dictionary(
            line.dropFirst().prefix { $0 != " " }.split(separator: ";").map { tag in
                let parts = tag.split(separator: "=", maxSplits: 1)
                return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
            }, uniquingKeysWith: { first, _ in first })
    }

    @Test("without server-time the time stands in front, with the date when that is more than a day ago")
    func stamps() throws {
        let stage = try BacklogStage()
        left(stage, caps: "")
        stage.say("old")
        stage.harness.advance(by: .seconds(25 * 3600))
        stage.say("new")
        stage.harness.advance(by: .seconds(60))
        stage.enter(1, "alice@phone")
        #expect(
            stage.raw(1)
                == [
                    ":ann!ann@b PRIVMSG #lobby :[11-21 12:00] old", ":ann!ann@b PRIVMSG #lobby :[13:00] new",
                ].map { $0.replacing("ann!ann@b", with: source(of: "ann", stage)) })
    }

    private func source(of nick: String, _ stage: BacklogStage) -> String {
        stage.harness.bridge.context.identities.person(nick: nick)?.person.source ?? nick
    }

    @Test("long lines are cut so that the time in front fits too", arguments: ["", BacklogStage.caps])
    func long(_ caps: String) throws {
        let stage = try BacklogStage()
        left(stage, caps: caps)
        let text = String(repeating: "word ", count: 300) + "end"
        stage.say(text)
        stage.speak(90, "nobody is there")
        stage.enter(1, "alice@phone", caps: caps)
        let lines = stage.raw(1).filter { $0.contains("PRIVMSG") }
        #expect(lines.count > 2)
        #expect(lines.allSatisfy { LineLaw.problem(Array($0.utf8)) == nil })
        let bodies = lines.map { line in
            line.replacing(#/^.*PRIVMSG #lobby :(?:\[\d\d:\d\d\] )?/#, with: "")
        }
        #expect(bodies.joined() == text)
        #expect(lines.filter { $0.contains("msgid=") }.count == (caps.isEmpty ? 0 : 1))
    }

    @Test("an IRC user's words, ACTIONs, replies, attachments and gaps come as they were shown")
    func kinds() throws {
        let stage = try BacklogStage()
        left(stage)
        stage.enter(1, "bob@desk")
        stage.speak(1, "\u{1}ACTION waves\u{1}")
        stage.say(
            "see this", more: #""attachments":[{"type":"image","url":"https://x.example/a.png","name":"a.png"}],"#
        ) {
            $0.attachments = [ChatAttachment(kind: .image, url: "https://x.example/a.png", name: "a.png")]
        }
        let live = stage.heard(1)
        stage.say("gone") { $0.isTakenBack = true }
        stage.say("answer") { $0.replyTo = "first" }
        stage.say("*** What was said between 12:00:00 and 12:00:05 UTC (5 s) is missing.") {
            $0.kind = .gap
            $0.gapFrom = ChatTimestamp(milliseconds: $0.at.milliseconds - 5000)
        }
        stage.enter(2, "alice@phone", caps: BacklogStage.caps)
        let lines = stage.raw(2)
        let bodies = lines.compactMap { $0.firstMatch(of: #/(?:PRIVMSG|NOTICE) #lobby :(.*)$/#).map { String($0.1) } }
        #expect(bodies.first == "\u{1}ACTION waves\u{1}")
        #expect(Array(bodies.dropFirst().prefix(live.count)) == live.map { String($0.dropFirst("ann: ".count)) })
        #expect(!bodies.contains("gone"))
        let answer = try #require(lines.first { $0.hasSuffix(":answer") })
        #expect(tags(answer)["+reply"] == "first" && tags(answer)["+draft/reply"] == "first")
        let gap = try #require(lines.first { $0.contains("NOTICE") })
        // The test's rows bear the time of the line that they stand for: the fourth of that second.
        #expect(tags(gap)["chatbridge/gap"] == "2026-11-21T11:59:58.004Z,2026-11-21T12:00:03.004Z")
        #expect(gap.contains(":bridge NOTICE #lobby :*** What was said"))
    }

    @Test("a client's own messages come only to one that asked for its echoes", arguments: [true, false])
    func own(_ echoes: Bool) throws {
        let stage = try BacklogStage()
        stage.harness.answersPings = false
        let caps = BacklogStage.caps + (echoes ? " echo-message" : "")
        stage.enter(1, "alice@phone", caps: caps)
        stage.speak(1, "mine")
        stage.say("theirs")
        stage.leave(1)
        stage.enter(2, "alice@phone", caps: caps)
        #expect(stage.heard(2) == (echoes ? ["alice: mine"] : []) + ["ann: theirs"])
        stage.enter(3, "alice@tablet", caps: caps)
        stage.leave(3)
        #expect(stage.heard(2) == [])
    }

    @Test(
        "said over an old connection that hangs and confirmed after a new one came, a message is its own to both",
        arguments: [true, false], [true, false])
    func ownMessageConfirmedLate(oldIsOpen: Bool, echoes: Bool) throws {
        let stage = try BacklogStage { $0.confirmation = .echoByID }
        stage.harness.answersPings = false
        let caps = echoes ? "echo-message" : ""
        stage.enter(1, "alice@two", caps: caps)
        stage.enter(2, "alice@one")
        stage.enter(3, "bob@desk")
        stage.harness.send(1, "PRIVMSG #lobby :mine")
        let frame = try #require(stage.sentMessages().last)
        if !oldIsOpen { stage.leave(1) }
        stage.enter(4, "alice@two", caps: caps)
        stage.harness.sendFrame(0, frame)
        let own = echoes ? ["alice: mine"] : []
        #expect(stage.heard(4) == own)
        #expect(!oldIsOpen || stage.heard(1) == own)
        #expect(stage.heard(2) == ["alice: mine"], "another client of the account has not seen it")
        #expect(stage.heard(3) == ["alice: mine"])
    }

    @Test("another client of the same account gets them")
    func othersOwn() throws {
        let stage = try BacklogStage()
        left(stage)
        stage.enter(1, "alice@desk")
        stage.speak(1, "from the desk")
        stage.leave(1)
        stage.enter(2, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(2) == ["alice: from the desk"])
    }

    // MARK: - How much

    @Test("pages join without a seam", arguments: [0, 1, 99, 100, 101, 200, 500, 501, 650])
    func pages(_ count: Int) throws {
        let stage = try BacklogStage()
        left(stage)
        stage.say(numbers(0..<count))
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        let leftOut = max(0, count - 500)
        var heard = stage.heard(1)
        if leftOut > 0 {
            let notice = heard.removeFirst()
            let what = leftOut == 1 ? "1 older message was" : "\(leftOut) older messages were"
            #expect(Self.isNotice(notice, what, most: min(leftOut, 500)))
            if let command = notice.split(separator: "/msg *bridge ").last, leftOut <= 500 {
                stage.harness.send(1, "PRIVMSG *bridge :" + command)
                let answer = stage.raw(1).filter { $0.contains("<ann> m") }
                let shown = answer.compactMap { $0.split(separator: " ").last }
                #expect(shown == (0..<leftOut).map { "m\($0)" })
            }
        }
        #expect(heard == said(leftOut..<count))
        stage.harness.advance(by: .seconds(3))
        #expect(stage.cursor("alice", "phone") == Int64(count - 1))
        #expect(stage.kept("alice", "phone") == Int64(count - 1))
    }

    @Test("places that were never given cost nothing, however many")
    func hole() throws {
        let stage = try BacklogStage()
        left(stage)
        stage.say(numbers(0..<3))
        stage.room.recent.goOn(from: 1_000_000)
        stage.say(numbers(3..<5))
        let before = stage.harness.bridge.context.ledger.nextRead().rawValue
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(1) == said(0..<5))
        #expect(stage.harness.bridge.context.ledger.nextRead().rawValue - before < 5)
        stage.harness.advance(by: .seconds(3))
        #expect(stage.cursor("alice", "phone") == 1_000_001)
    }

    @Test("what the bridge does not remember is left out without a number, and only when there is something")
    func unknownLeftOut() throws {
        let stage = try BacklogStage(
            limits: LimitSettings {
                $0.messagesPerSecond = nil
                $0.upstreamMessagesPerSecond = nil
                $0.backlog = 2500
            })
        left(stage)
        stage.say(numbers(0..<2600))
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        let heard = stage.heard(1)
        #expect(Self.isNotice(heard.first, "Older messages were", most: 500))
        #expect(Array(heard.dropFirst()) == said(100..<2600))
    }

    @Test("what is kept no more is told to who returns too late, with the time of it", arguments: [0, 1, 2, 3, 6])
    func removed(_ count: Int) throws {
        for isRestarted in [false, true] {
            let stage = try BacklogStage()
            stage.enter(1, "alice@phone", caps: BacklogStage.caps)
            stage.say(numbers(0..<2))
            stage.harness.advance(by: .seconds(3))
            stage.leave(1)
            for number in 2..<6 {
                stage.harness.advance(by: .seconds(60))
                stage.say("m\(number)")
            }
            // The oldest ones went; up to the second the client has them.
            stage.harness.store.removeOldest(count, of: stage.room.storedKey)
            if isRestarted { stage.crash() }
            stage.enter(2, "alice@phone", caps: BacklogStage.caps)
            // The hole that the restart leaves is told apart.
            var heard = stage.heard(2).filter { !$0.contains("is missing: the backend keeps no history") }
            if count > 2 {
                let told = heard.removeFirst()
                #expect(told.hasPrefix("bridge: *** What was said "))
                #expect(told.hasSuffix(" is no longer stored."))
                #expect(told.contains(isRestarted ? "before 2026-11-21 12:" : "between 12:00:00 and 12:"))
            }
            #expect(heard == said(max(2, count)..<6), "restarted: \(isRestarted)")
        }
    }

    @Test("a backlog of none lets the cursor go on")
    func none() throws {
        let stage = try BacklogStage(
            limits: LimitSettings {
                $0.messagesPerSecond = nil
                $0.upstreamMessagesPerSecond = nil
                $0.backlog = 0
            })
        left(stage)
        stage.say(numbers(0..<3))
        stage.enter(1, "alice@phone")
        stage.harness.advance(by: .seconds(3))
        #expect(stage.heard(1) == [])
        #expect(stage.cursor("alice", "phone") == 2)
    }

    struct Window: CustomTestStringConvertible, Sendable {
        var count: Int
        var limit: Int
        var after: Int
        var start: Int
        var leftOut: Int?
        var isMore: Bool?
        var testDescription: String { "\(limit) of \(count) after \(after)" }
    }

    @Test(
        "where a backlog begins",
        arguments: [
            Window(count: 0, limit: 5, after: -1, start: -1, leftOut: 0, isMore: false),
            Window(count: 3, limit: 5, after: -1, start: -1, leftOut: 0, isMore: false),
            Window(count: 5, limit: 5, after: -1, start: -1, leftOut: 0, isMore: false),
            Window(count: 6, limit: 5, after: -1, start: 0, leftOut: 1, isMore: true),
            Window(count: 6, limit: 5, after: 0, start: 0, leftOut: 0, isMore: false),
            Window(count: 6, limit: 5, after: 5, start: 5, leftOut: 0, isMore: false),
            Window(count: 2001, limit: 500, after: -1, start: 1500, leftOut: nil, isMore: true),
            Window(count: 2001, limit: 500, after: 0, start: 1500, leftOut: 1500, isMore: true),
            Window(count: 2101, limit: 2050, after: 10, start: 50, leftOut: nil, isMore: nil),
            Window(count: 2101, limit: 2050, after: 50, start: 50, leftOut: nil, isMore: false),
            Window(count: 2101, limit: 3000, after: 10, start: 10, leftOut: nil, isMore: false),
        ])
    func window(_ row: Window) {
        let recent = RecentLog()
        for number in 0..<row.count {
            let row = StoredMessage(
                sequence: Int64(number), msgid: "i\(number)", at: ChatTimestamp(milliseconds: 0), nick: "n",
                source: "n", text: "")
            recent.append(row, by: nil, nick: "n", text: "")
        }
        let found = recent.newest(row.limit, after: row.after)
        #expect(found.start == row.start && found.leftOut == row.leftOut && found.isMore == row.isMore)
    }

    // MARK: - Order

    @Test("live messages wait for what was said before, in order")
    func liveMeanwhile() throws {
        let stage = try BacklogStage()
        left(stage)
        stage.harness.store.commits = false
        stage.say(numbers(0..<3))
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        stage.enter(2, "bob@desk")
        stage.say(numbers(3..<5))
        #expect(stage.heard(1) == [])
        #expect(stage.heard(2) == said(3..<5))
        stage.harness.store.commits = true
        stage.say("m5")
        #expect(stage.heard(1) == said(0..<6))
        stage.harness.advance(by: .seconds(5))
        #expect(stage.cursor("alice", "phone") == 5)
    }

    @Test("while it waits the client is heard and other rooms are live")
    func doesNotBlock() throws {
        // The order in which the rooms are entered is the test's.
        let stage = try BacklogStage(rooms: 3, rejoins: false)
        stage.enter(90, "alice@phone")
        stage.harness.send(90, "JOIN #room1,#room2")
        stage.leave(90)
        stage.say("other", room: 1)
        stage.harness.store.commits = false
        stage.say("late")
        stage.connect(1, "alice@phone", caps: BacklogStage.caps)
        stage.harness.send(1, "JOIN #room1")
        #expect(stage.heard(1) == [])
        stage.harness.send(1, "JOIN #lobby,#room2")
        stage.harness.send(1, "PING x")
        stage.say("live", room: 2)
        let lines = stage.raw(1)
        #expect(lines.contains { $0.hasSuffix("PONG bridge :x") || $0.hasSuffix("PONG bridge x") })
        #expect(lines.last?.hasSuffix(":live") == true)
        #expect(!lines.contains { $0.hasSuffix(":late") })
        stage.harness.store.commits = true
        stage.say("now")
        #expect(stage.heard(1) == ["ann: other", "ann: late", "ann: now"])
    }

    @Test("a slow client gets all, in order, and never more at once than its queue should hold")
    func slow() throws {
        let stage = try BacklogStage(rejoins: false)
        left(stage)
        let words = String(repeating: "x", count: 300)
        stage.say((0..<300).map { "m\($0) " + words })
        stage.connect(1, "alice@phone", caps: BacklogStage.caps)
        _ = stage.raw(1)
        stage.harness.setSlow(1, true)
        stage.harness.send(1, "JOIN #lobby")
        var heard = stage.heard(1)
        #expect(!heard.isEmpty && heard.count < 100)
        stage.say("live")
        #expect(stage.heard(1) == [])
        stage.harness.setSlow(1, false)
        heard += stage.heard(1)
        #expect(heard == (0..<300).map { "ann: m\($0) " + words } + ["ann: live"])
    }

    @Test("who lets too much wait is let go, and gets it all when they return")
    func overfull() throws {
        let stage = try BacklogStage()
        left(stage)
        stage.harness.store.commits = false
        stage.say("first")
        stage.connect(1, "alice@phone", caps: BacklogStage.caps)
        stage.harness.send(1, "JOIN #lobby")
        stage.enter(2, "bob@desk")
        let words = String(repeating: "word ", count: 400)
        var count = 1
        while !stage.isClosed(1), count < 2000 {
            stage.say("m\(count) " + words)
            count += 1
        }
        #expect(count > 300 && count < 500)
        #expect(stage.raw(1).last?.hasPrefix("ERROR :Closing Link") == true)
        #expect(!stage.isClosed(2))
        stage.harness.store.commits = true
        stage.say("last")
        #expect(stage.cursor("alice", "phone") == -1)
        stage.enter(3, "alice@phone", caps: BacklogStage.caps)
        let heard = stage.heard(3)
        #expect(heard.last == "ann: last")
        #expect(stage.harness.violations == [])
    }

    @Test("an echo waits for what was said before it")
    func echo() throws {
        let stage = try BacklogStage()
        let caps = BacklogStage.caps + " echo-message labeled-response"
        left(stage, caps: caps)
        stage.harness.store.commits = false
        stage.say("before")
        stage.enter(1, "alice@phone", caps: caps)
        stage.harness.send(1, "@label=l1 PRIVMSG #lobby :mine")
        #expect(stage.heard(1) == [])
        stage.harness.store.commits = true
        stage.say("after")
        let lines = stage.raw(1)
        #expect(
            lines.filter { $0.contains("PRIVMSG") }.map { $0.split(separator: ":").last } == [
                // Nothing goes up before it is on disk.
                "before", "after", "mine",
            ])
        #expect(lines.contains { $0.contains("label=l1") && $0.hasSuffix(":mine") })
    }

    @Test("a message that waited comes back to the next connection without the label of the one before")
    func echoToAnother() throws {
        let stage = try BacklogStage()
        let caps = BacklogStage.caps + " echo-message labeled-response"
        left(stage, caps: caps)
        stage.harness.store.commits = false
        stage.enter(1, "alice@phone", caps: caps)
        stage.harness.send(1, "@label=l1 PRIVMSG #lobby :mine")
        stage.harness.disconnect(1)
        stage.enter(2, "alice@phone", caps: caps)
        stage.harness.store.commits = true
        stage.say("after")
        let lines = stage.raw(2)
        #expect(lines.contains { $0.hasSuffix("PRIVMSG #lobby :mine") })
        #expect(!lines.contains { $0.contains("label=l1") })
    }

    @Test("who comes and goes in several rooms meanwhile is gone at the end")
    func comingAndGoing() throws {
        let stage = try BacklogStage(rooms: 2)
        left(stage)
        stage.harness.store.commits = false
        stage.say("before")
        stage.connect(1, "alice@phone", caps: BacklogStage.caps)
        stage.harness.send(1, "JOIN #lobby")
        _ = stage.raw(1)
        stage.connect(2, "bob@desk")
        stage.harness.send(2, "JOIN #lobby,#room1")
        stage.harness.send(2, "NICK robert")
        stage.leave(2)
        #expect(stage.raw(1) == [])
        stage.harness.store.commits = true
        stage.say("after")
        let verbs = stage.raw(1).compactMap { $0.firstMatch(of: #/:bob\S* (JOIN)|:bob\S* (NICK)|:robert\S* (QUIT)/#) }
        #expect(verbs.count == 3)
    }

    // MARK: - The disk

    @Test("what is not on disk yet when the client enters comes all the same")
    func lateCommit() throws {
        let stage = try BacklogStage()
        left(stage)
        stage.say("m0")
        stage.harness.store.commits = false
        stage.say("m1")
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(1) == [])
        stage.harness.store.commit(1)
        stage.harness.perform { _, _ in }
        #expect(stage.heard(1) == said(0..<2))
    }

    @Test("an order that found no room is not waited for")
    func overflow() throws {
        let stage = try BacklogStage()
        left(stage)
        stage.harness.store.room = 0
        stage.say("m0")
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        stage.say("m1")
        #expect(stage.heard(1) == ["ann: m1"])
    }

    @Test("a cursor that found no room is kept when there is some again")
    func lostCursor() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone")
        stage.say("m0")
        stage.harness.store.room = 0
        stage.harness.advance(by: .seconds(3))
        #expect(stage.cursor("alice", "phone") == 0 && stage.kept("alice", "phone") == -1)
        stage.harness.store.room = .max
        stage.say("m1")
        #expect(stage.kept("alice", "phone") == 0)
    }

    @Test("who cannot be given what was said before is told, and gets it the next time")
    func readFailure() throws {
        let stage = try BacklogStage()
        left(stage)
        stage.say(numbers(0..<2))
        stage.harness.store.readFailure = StoreFailure("the disk is gone")
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        stage.say("m2")
        let heard = stage.heard(1)
        #expect(heard.count == 2 && heard[0].contains("cannot be read now") && heard[1] == "ann: m2")
        stage.harness.advance(by: .seconds(10))
        #expect(stage.cursor("alice", "phone") == -1)
        stage.leave(1)
        stage.harness.store.readFailure = nil
        stage.enter(2, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(2) == said(0..<3))
    }

    @Test("a disk that does not answer is not waited for without end")
    func patience() throws {
        let stage = try BacklogStage()
        left(stage)
        stage.harness.store.commits = false
        stage.say("m0")
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        stage.harness.advance(by: .seconds(29))
        stage.say("m1")
        #expect(stage.heard(1) == [])
        stage.harness.advance(by: .seconds(2))
        #expect(stage.heard(1).last == "ann: m1")
        stage.say("m2")
        #expect(stage.heard(1) == ["ann: m2"])
        stage.harness.store.commits = true
        stage.harness.advance(by: .seconds(10))
        #expect(stage.cursor("alice", "phone") == -1)
        stage.leave(1)
        stage.enter(2, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(2) == said(0..<3))
    }

    @Test("where nothing is kept nobody is asked and nothing waits")
    func memoryOnly() throws {
        let stage = try BacklogStage(store: nil)
        stage.harness.answersPings = false
        stage.enter(1, "alice@phone")
        stage.say(numbers(0..<300))
        stage.harness.advance(by: .seconds(10))
        #expect(!stage.answer(1))
        #expect(stage.session(1)?.following == nil)
    }
}
