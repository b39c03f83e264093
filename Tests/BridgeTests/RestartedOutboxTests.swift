import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Identities
import JSONText
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// What an earlier process left: who is told what, and how old it is.
@Suite("Outbox after a restart")
struct RestartedOutboxTests {
    private static let echoing = DurableKind.all[0]
    private static let historic = DurableKind.all[1]
    private static let textual = DurableKind.all[2]
    private static let unknown = "It is not known whether this was delivered, since"

    /// A message that waited for a backend when the process died.
    private func left(
        _ text: String, _ stage: DurableStage, _ state: StoredOutboxEntry.State = .queued, age: Duration = .zero,
        nick: String = "bob", reason: String? = nil
    ) -> StoredOutboxEntry {
        let puppet = ChatID(
            stage.harness.bridge.context.identities.puppetID(nick: nick, backend: "b").rawValue)
        return StoredOutboxEntry(
            id: ChatID("00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - text.count) + text),
            room: stage.room.storedKey, sender: ChatPerson(id: puppet, name: nick), sentAs: text,
            acceptedAt: ChatTimestamp(
                milliseconds: stage.harness.clock.now.wall.milliseconds - age.wholeNanoseconds / 1_000_000),
            author: puppet, nick: nick, source: nick + "!u@h", text: text, state: state, reason: reason)
    }

    private func disk(_ stage: DurableStage, _ entries: [StoredOutboxEntry]) -> StoredState {
        StoredState(rooms: [stage.room.storedKey: StoredRoom(outbox: entries)])
    }

    @Test("what was said while our clock was ahead is found in the history, and not sent again")
    func clockWasAhead() throws {
        let stage = try DurableStage(DurableKind.all[3], maxAge: .seconds(3 * 86_400))
        stage.harness.clock.lead = .seconds(86_400)
        let bob = stage.enter("bob")
        stage.say("hello", bob)
        stage.commit()
        stage.harness.clock.lead = .zero
        stage.restart(arrives: true, down: .seconds(30))
        stage.run()
        #expect(stage.texts == ["hello"])
        #expect(stage.kept.filter { $0.state != .told }.isEmpty)
    }

    @Test(
        "ages go by the wall clock, and one that jumped neither loses a message nor keeps it for ever",
        arguments: [(0, 60), (30, 30), (59, 1), (61, 0), (1_000_000_000, 0), (-5, 60), (-1_000_000_000, 60)])
    func ages(age: Int, rest: Int) throws {
        let stage = try DurableStage(Self.echoing)
        stage.restart(on: disk(stage, [left("ab", stage, age: .seconds(age))]))
        let outbox = stage.room.lane.outbox
        guard let entry = outbox.entries.first else {
            #expect(rest == 0, "given up at the first look")
            return
        }
        let ends = entry.acceptedAt + .seconds(60)
        let wait = ends - stage.harness.clock.now.monotonic
        #expect(max(wait, .zero) == .seconds(rest))
    }

    @Test("what IRC has seen is looked up after a restart, however old it seems", arguments: [0, 30, 3600])
    func seen(age: Int) throws {
        let stage = try DurableStage(Self.echoing)
        stage.restart(on: disk(stage, [left("ab", stage, .delivered, age: .seconds(age))]))
        let entry = try #require(stage.room.lane.outbox.entries.first)
        #expect(entry.state == .unknownAfterDisconnect)
        #expect(entry.acceptedAt == stage.harness.clock.now.monotonic, "its sixty seconds begin anew")
    }

    @Test("later messages do not grow older than earlier ones, whatever the clock did between them")
    func order() throws {
        let stage = try DurableStage(Self.textual)
        stage.restart(
            on: disk(
                stage,
                [
                    left("a1", stage, .written, age: .seconds(10)), left("a2", stage, .written, age: .seconds(50)),
                    left("a3", stage, .written, age: .seconds(-9)),
                ]))
        let times = stage.room.lane.outbox.entries.map(\.acceptedAt)
        #expect(times == times.sorted())
        #expect(stage.room.lane.outbox.entries.map(\.message.text) == ["a1", "a2", "a3"])
        #expect(stage.room.lane.outbox.entries.allSatisfy { $0.state == .unknownAfterDisconnect })
    }

    @Test("a message too old after the restart is never sent, and its author hears it when they come, for certain once")
    func expired() throws {
        let stage = try DurableStage(Self.echoing)
        stage.restart(on: disk(stage, [left("ab", stage, age: .seconds(100))]))
        stage.advance(.seconds(1))
        stage.run()
        #expect(stage.texts.isEmpty)
        #expect(stage.kept.map(\.state) == [.failed])
        let reason = "the link was lost before the backend answered, and whether it arrived is not known"
        #expect(stage.kept.first?.reason == reason, "the process before may have written it")
        _ = stage.enter("eve")
        #expect(!stage.isTold("ab"))
        let bob = stage.enter("bob")
        stage.run()
        let told = stage.heard[bob] ?? []
        let failure = told.firstIndex {
            $0.contains("\(Self.unknown) the link was lost before the backend answered: ab")
        }
        let names = told.firstIndex { $0.contains(" 366 ") }
        #expect(failure != nil && names != nil && (names ?? 0) < (failure ?? 0))
        #expect(stage.kept.map(\.state) == [.told])
        stage.restart()
        let again = stage.enter("bob")
        stage.run()
        #expect(stage.lines(again, with: "CANNOT_DELIVER").isEmpty)
    }

    @Test("told without a PONG is not told")
    func untold() throws {
        let stage = try DurableStage(Self.echoing)
        stage.restart(on: disk(stage, [left("ab", stage, .failed, reason: "the backend refused it (no)")]))
        stage.harness.answersPings = false
        let bob = stage.enter("bob")
        #expect(stage.lines(bob, with: "Not delivered, the backend refused it (no): ab").count == 1)
        #expect(stage.kept.map(\.state) == [.failed])
        stage.harness.disconnect(bob)
        stage.harness.answersPings = true
        let again = stage.enter("bob")
        stage.run()
        #expect(stage.lines(again, with: "Not delivered").count == 1)
        #expect(stage.kept.map(\.state) == [.told])
        let third = stage.enter("bob2")
        #expect(stage.lines(third, with: "Not delivered").isEmpty)
    }

    @Test("a refusal while the author is here is told at once and counts as told with the PONG")
    func refused() throws {
        let stage = try DurableStage(DurableKind.all[3])
        let bob = stage.enter("bob", caps: "echo-message labeled-response")
        stage.harness.send(bob, "@label=L PRIVMSG #lobby :one")
        stage.look()
        stage.refuse("no")
        stage.look()
        #expect(stage.lines(bob, with: "@label=L").count == 1)
        #expect(stage.isTold("one"))
        #expect(stage.kept.map(\.state) == [.told])
        stage.run()
        #expect(stage.lines(bob, with: "It arrived after all: one").count == 1, "the backend did not mean this one")
        #expect(stage.kept.isEmpty)
    }

    @Test("many failures at once are all told for certain")
    func manyFailures() throws {
        let stage = try DurableStage(Self.echoing)
        stage.restart(
            on: disk(stage, (10..<160).map { left("\($0)", stage, .failed, reason: "it waited too long") }))
        let bob = stage.enter("bob")
        stage.run()
        #expect(stage.lines(bob, with: "Not delivered, it waited too long: ").count == 150)
        #expect(stage.kept.allSatisfy { $0.state == .told })
    }

    @Test("a client that takes its nick later is told then")
    func renamed() throws {
        let stage = try DurableStage(Self.echoing)
        stage.restart(on: disk(stage, [left("ab", stage, .failed, reason: "it waited too long")]))
        let eve = stage.enter("eve")
        stage.harness.send(eve, "NICK bob")
        stage.run()
        #expect(stage.lines(eve, with: "Not delivered, it waited too long: ab").count == 1)
        #expect(stage.kept.map(\.state) == [.told])
    }

    @Test("a confirmation after the author was told is reported, and the message forgotten")
    func late() throws {
        let stage = try DurableStage(Self.historic)
        let entry = left("ab", stage, .told, reason: "it waited too long")
        stage.restart(on: disk(stage, [entry]))
        let bob = stage.enter("bob")
        stage.harness.sendFrame(
            0, "{\"kind\":\"receipt\",\"state\":\"sent\",\"ref\":\"\(entry.id.rawValue)\",\"ids\":[]}")
        #expect(stage.lines(bob, with: "It arrived after all: ab").count == 1)
        #expect(stage.kept.isEmpty)
    }

    @Test("the author's client is known again: it gets the echo if it wants one, and never its own words as somebody's")
    func echo() throws {
        for caps in ["echo-message", "message-tags"] {
            let stage = try DurableStage(Self.echoing)
            stage.harness.acceptsConnections = false
            let dead = stage.enter("bob")
            stage.loseLink()
            stage.say("one", dead)
            stage.harness.store.commits = true
            stage.restart(commits: true)
            let (bob, eve) = (stage.enter("bob", caps: caps), stage.enter("eve"))
            stage.run()
            #expect(stage.lines(bob, with: "PRIVMSG #lobby :one").count == (caps == "echo-message" ? 1 : 0))
            #expect(stage.lines(eve, with: ":bob!~u@bridge PRIVMSG #lobby :one").count == 1)
        }
    }

    @Test("a history that has the message settles it, one that has it not sends it again", arguments: [true, false])
    func history(arrived: Bool) throws {
        let stage = try DurableStage(DurableKind.all[3])
        let bob = stage.enter("bob")
        stage.say("one", bob)
        #expect(!stage.wire.isEmpty)
        stage.restart(arrives: arrived)
        stage.run()
        #expect(stage.texts == (arrived ? ["one"] : []), "a history is asked twice")
        stage.advance(CatchUp.patience)
        stage.run()
        #expect(stage.texts == ["one"])
        #expect(stage.kept.isEmpty && stage.room.lane.outbox.isEmpty)
    }

    @Test("what a pong confirmed, and was not kept, bears the same msgid when the next process shows it")
    func sameMsgid() throws {
        let stage = try DurableStage(DurableKind.all[4])
        let bob = stage.enter("bob", caps: "echo-message message-tags")
        stage.harness.store.commits = false
        stage.say("one", bob)
        // That it is accepted, and that it may be on the wire; not that it was shown.
        for _ in 0..<2 { stage.commit() }
        let shown = try #require(stage.lines(bob, with: "PRIVMSG #lobby :one").first)
        stage.restart()
        stage.run()
        #expect(stage.texts == ["one"])
        let msgids = stage.harness.store.disk.rooms[stage.room.storedKey]?.messages.map(\.msgid) ?? []
        #expect(msgids.count == 1 && shown.contains("msgid=" + (msgids.first ?? "?")))
    }

    @Test("what one process wrote, and the next one wrote again, does not go once more when it has come back")
    func writtenAgain() throws {
        let stage = try DurableStage(DurableKind.all[4])
        stage.say("one", stage.enter("bob", caps: "echo-message"))
        stage.drop()
        stage.restart()
        stage.advance(CatchUp.patience)
        stage.run()
        #expect(stage.texts == ["one"] && stage.kept.map(\.state) == [.delivered])
        stage.harness.sendFrame(0, try #require(stage.log.last).json)
        stage.run()
        #expect(stage.kept.isEmpty)
        stage.restart()
        stage.advance(CatchUp.patience)
        stage.run()
        #expect(stage.texts == ["one"])
    }

    @Test("without a history nobody knows, and the author is told that")
    func unknown() throws {
        let stage = try DurableStage(Self.textual)
        let bob = stage.enter("bob")
        stage.say("one", bob)
        stage.restart(arrives: false)
        let again = stage.enter("bob")
        stage.advance(.seconds(61))
        stage.run()
        #expect(stage.lines(again, with: Self.unknown).count { $0.hasSuffix(": one") } == 1)
        #expect(stage.texts.isEmpty)
        #expect(stage.kept.map(\.state) == [.told])
    }

    @Test("a history that cannot tell whether a message arrived does not keep its author from speaking")
    func historyThatCannotTell() throws {
        let stage = try DurableStage(DurableKind.all[3])
        let bob = stage.enter("bob")
        stage.say("zero", bob)
        stage.run()
        stage.say("one", bob)
        stage.loseLink(arrives: false)
        stage.advance(.seconds(2))
        // Pages of what others said, none of which reaches back to anything known.
        for _ in 0..<10 {
            for fetch in stage.takeQuestions() {
                let limit = Int(fetch["limit"]?.integer ?? 50)
                let page = (0..<limit).map { number in
                    "{\"kind\":\"message\",\"id\":\"z\(number)\",\"sender\":{\"id\":\"eve\",\"name\":\"eve\"},"
                        + "\"at\":\(stage.harness.clock.now.wall.milliseconds),\"text\":\"words \(number)\"}"
                }
                stage.harness.sendFrame(
                    0,
                    "{\"kind\":\"history\",\"ref\":\"\(fetch["ref"]?.string ?? "")\","
                        + "\"messages\":[\(page.joined(separator: ","))]}")
            }
        }
        stage.say("two", bob)
        stage.advance(.seconds(1))
        stage.run()
        #expect(stage.texts == ["zero", "two"])
        stage.advance(.seconds(61))
        #expect(stage.isTold("one"))
    }

    @Test("a refusal without a name means what was written over this link, whatever is open of an earlier one")
    func refusedBehindUnsettled() throws {
        let stage = try DurableStage(DurableKind("server ids, receipts", .receipt, .server, .single, .none))
        let bob = stage.enter("bob")
        stage.say("one", bob)
        stage.loseLink(arrives: false)
        stage.advance(.seconds(2))
        stage.say("two", bob)
        #expect(stage.wire.count == 1)
        stage.refuse("no")
        #expect(stage.lines(bob, with: "the backend refused it (no): two").count == 1)
        #expect(!stage.isTold("one"))
    }

    @Test("what may have arrived is told as such also where messages wait for ever")
    func unknownWithoutAge() throws {
        let stage = try DurableStage(Self.textual, maxAge: .seconds(100 * 365 * 86_400))
        let bob = stage.enter("bob")
        stage.say("one", bob)
        stage.restart(arrives: false)
        let again = stage.enter("bob")
        stage.advance(.seconds(16 * 60))
        stage.run()
        #expect(stage.lines(again, with: Self.unknown).count { $0.hasSuffix(": one") } == 1)
    }

    @Test("messages that wait for a room that is not configured are kept, and the log tells of them")
    func strangeRoom() throws {
        let stage = try DurableStage(Self.echoing)
        var left = left("ab", stage)
        left.room = StoredRoomKey(backend: "gone", room: "attic")
        let disk = StoredState(rooms: [left.room: StoredRoom(outbox: [left])])
        stage.restart(on: disk)
        stage.run()
        let notes = stage.harness.notes.filter { $0.event == "messages-without-room" }
        #expect(notes.map(\.metadata) == [["backend": "gone", "room": "attic", "messages": "1"]])
        #expect(stage.harness.store.disk.rooms[left.room]?.outbox == [left])
    }

    // MARK: - Pieces

    @Test("a long message goes on where it was, with the same ids", arguments: DurableKind.all.prefix(4))
    func pieces(kind: DurableKind) throws {
        let words = (0..<40).map { "word\($0)" }.joined(separator: " ")
        for confirmed in 0...2 {
            let stage = try DurableStage(kind, maxFrameBytes: 230)
            let bob = stage.enter("bob")
            stage.say(words, bob)
            for _ in 0..<confirmed {
                #expect(stage.takeFrame())
                #expect(stage.answerOne())
            }
            #expect(stage.kept.map(\.confirmedPieces) == [confirmed])
            stage.restart(arrives: true)
            let before = stage.texts.count
            #expect(before > 2)
            let again = stage.enter("bob")
            stage.run()
            stage.advance(.seconds(61))
            stage.run()
            #expect(stage.texts.joined(separator: " ") == words, "\(confirmed) confirmed")
            #expect(stage.isTold(MessageText.excerpt(words)) || stage.kept.isEmpty)
            #expect(stage.lines(again, with: "PRIVMSG #lobby :word0").count <= 1)
        }
    }

    @Test("the ids of pieces come from the message's")
    func pieceIDs() throws {
        let words = (0..<40).map { "word\($0)" }.joined(separator: " ")
        var seen: [[String]] = []
        for seed in 0..<2 {
            let stage = try DurableStage(Self.echoing, maxFrameBytes: 230)
            var entry = left("ab", stage)
            entry.sentAs = words
            entry.text = words
            if seed == 1 { stage.advance(.seconds(1)) }
            stage.restart(on: disk(stage, [entry]))
            stage.run()
            seen.append(stage.log.map(\.id))
        }
        #expect(seen[0].count > 2 && seen[0] == seen[1])
        #expect(Set(seen[0]).count == seen[0].count)
    }
}

/// Messages that waited for an account's own link when the process ended.
@Suite("Outbox of an own link after a restart")
struct RestartedOwnOutboxTests {
    private func said(_ stage: OwnLinkStage) -> [StoredOutboxEntry] {
        stage.harness.store.disk.rooms[stage.room.storedKey]?.outbox ?? []
    }

    @Test("what an account said goes over its own link when it is open again")
    func goes() throws {
        let first = try OwnLinkStage(OwnLinkStage.echoing(), store: StoreStage())
        first.enterBoth()
        first.harness.acceptsConnections = false
        first.harness.endTransport(OwnLinkStage.own, reason: "the connection was reset")
        first.harness.send(1, "PRIVMSG #lobby :one")
        #expect(said(first).map(\.link) == ["alice"])
        let stage = try OwnLinkStage(
            OwnLinkStage.echoing(), store: first.harness.store.afterCrash, startingAt: first.harness.clock)
        #expect(stage.room.lane.outbox.isEmpty && stage.own?.outbox.count == 1)
        stage.enter("bob", 2)
        stage.enter("alice", 1, account: "alice")
        stage.harness.advance(by: .seconds(1))
        let sent = stage.takeMessages()
        #expect(sent.map(\.text) == ["one"], "once")
        stage.echo(sent.first?.id ?? "", "one", by: sent.first?.sender ?? "", over: OwnLinkStage.own)
        #expect(stage.heard(2).contains { $0.hasSuffix(": one") || $0.hasSuffix(" :one") })
        #expect(said(stage).isEmpty)
        #expect(stage.own?.outbox.isEmpty == true)
    }

    @Test("what was on the wire of a log-in that is gone may have arrived")
    func loginIsGone() throws {
        let first = try OwnLinkStage(OwnLinkStage.echoing(), store: StoreStage())
        first.enterBoth()
        first.harness.send(1, "PRIVMSG #lobby :one")
        #expect(first.takeMessages().map(\.text) == ["one"])
        let stage = try OwnLinkStage(
            OwnLinkStage.echoing(), hasOwnLogin: false, store: first.harness.store.afterCrash,
            startingAt: first.harness.clock)
        let heard = stage.enter("alice", 1, account: "alice")
        let told = heard.filter { $0.contains("is not set up any more") }
        #expect(
            told.count == 1 && told.allSatisfy { $0.contains("It is not known whether this was delivered") }, "\(heard)"
        )
        #expect(stage.takeMessages().isEmpty && stage.harness.violations == [])
    }

    @Test("it goes without any of the account's clients, and the link is closed when it has gone")
    func goesAlone() throws {
        let first = try OwnLinkStage(OwnLinkStage.echoing(), store: StoreStage())
        first.enterBoth()
        first.harness.acceptsConnections = false
        first.harness.endTransport(OwnLinkStage.own, reason: "the connection was reset")
        first.harness.send(1, "PRIVMSG #lobby :one")
        let stage = try OwnLinkStage(
            OwnLinkStage.echoing(), store: first.harness.store.afterCrash, startingAt: first.harness.clock)
        stage.enter("bob", 2)
        stage.harness.advance(by: .seconds(3))
        let sent = stage.takeMessages()
        #expect(sent.map(\.text) == ["one"] && sent.first?.link == OwnLinkStage.own)
        stage.echo(sent.first?.id ?? "", "one", by: sent.first?.sender ?? "", over: 0)
        #expect(stage.said(2) == ["alice: one"])
        #expect(said(stage).isEmpty)
        stage.harness.advance(by: Room.waitingLinger)
        #expect(stage.own == nil)
        stage.enter("alice", 1, account: "alice")
        stage.harness.send(1, "PRIVMSG #lobby :two")
        #expect(stage.takeMessages().map(\.text) == ["two"])
        #expect(stage.harness.violations == [])
    }

    @Test("what was said in a room that is open only while somebody is there goes though nobody came back")
    func goesWhileNobodyIsThere() throws {
        func adjust(_ room: inout RoomSettings) { room.connect = .whileJoined }
        let first = try OwnLinkStage(OwnLinkStage.echoing(), store: StoreStage(), rooms: adjust)
        first.enter("bob", 2)
        first.harness.acceptsConnections = false
        first.harness.endTransport(0, reason: "the connection was reset")
        first.harness.send(2, "PRIVMSG #lobby :one")
        let stage = try OwnLinkStage(
            OwnLinkStage.echoing(), store: first.harness.store.afterCrash, startingAt: first.harness.clock,
            rooms: adjust)
        stage.harness.advance(by: .seconds(3))
        let sent = stage.takeMessages()
        #expect(sent.map(\.text) == ["one"] && sent.first?.link == 0)
        stage.echo(sent.first?.id ?? "", "one", by: sent.first?.sender ?? "", over: 0)
        #expect(said(stage).isEmpty)
        stage.harness.advance(by: Room.waitingLinger)
        #expect(stage.room.link.state == .stopped)
        #expect(stage.harness.violations == [])
    }

    @Test("what an account's link brings back by its text is what an earlier process wrote", arguments: [true, false])
    func comesBack(overOwnLink: Bool) throws {
        func dialect() -> StubDialect { OwnLinkStage.silent { $0.confirmation = .echoByText } }
        let first = try OwnLinkStage(dialect(), store: StoreStage())
        first.enterBoth()
        first.harness.send(1, "PRIVMSG #lobby :one")
        #expect(said(first).map(\.state) == [.written])
        let stage = try OwnLinkStage(
            dialect(), store: first.harness.store.afterCrash, startingAt: first.harness.clock)
        stage.enterBoth()
        stage.relay("m1", "one", by: "Alice B", over: overOwnLink ? OwnLinkStage.own : 0)
        #expect(stage.said(2) == ["alice: one"])
        #expect(said(stage).isEmpty)
        #expect(stage.own?.outbox.isEmpty == true)
    }

    @Test("what cannot be known is told to the account when it comes")
    func unknown() throws {
        let first = try OwnLinkStage(OwnLinkStage.silent { $0.confirmation = .receipt }, store: StoreStage())
        first.enterBoth()
        first.harness.send(1, "PRIVMSG #lobby :one")
        #expect(said(first).map(\.state) == [.written])
        var clock = first.harness.clock
        clock.move(to: clock.now.monotonic + .seconds(3600))
        let stage = try OwnLinkStage(
            OwnLinkStage.silent { $0.confirmation = .receipt }, store: first.harness.store.afterCrash,
            startingAt: clock)
        stage.enter("alice", 1, account: "alice")
        stage.harness.advance(by: .seconds(1))
        #expect(said(stage).map(\.state) == [.told])
    }
}
