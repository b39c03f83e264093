import BridgeTestSupport
import ChatModel
import Dialects
import JSONText
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// What a client hears of whether the bridge has what it said.
@Suite("Acceptance")
struct AcceptanceTests {
    private static let echoing = DurableKind.all[0]
    private static let textual = DurableKind.all[2]

    private func stage(_ kind: DurableKind = Self.echoing, maxMessages: Int = 1000) throws -> DurableStage {
        let stage = try DurableStage(kind, maxMessages: maxMessages)
        stage.harness.store.commits = false
        return stage
    }

    @Test("a PONG waits until what was said before is on disk, and no longer")
    func barrier() throws {
        let stage = try stage()
        let bob = stage.enter("bob")
        stage.ping("first", bob)
        #expect(stage.hasPong("first", bob))
        stage.say("one", bob)
        stage.ping("second", bob)
        stage.say("two", bob)
        stage.ping("third", bob)
        #expect(!stage.hasPong("second", bob) && stage.wire.isEmpty)
        stage.commit(1)
        #expect(stage.hasPong("second", bob) && !stage.hasPong("third", bob))
        #expect(stage.wire.count == 1)
        stage.commit(1)
        #expect(stage.hasPong("third", bob))
        #expect(stage.wire.count == 2)
        stage.ping("fourth", bob)
        #expect(stage.hasPong("fourth", bob))
    }

    @Test("somebody who said nothing waits for nobody's disk")
    func others() throws {
        let stage = try stage()
        let (bob, eve) = (stage.enter("bob"), stage.enter("eve"))
        stage.say("one", bob)
        stage.ping("x", eve)
        #expect(stage.hasPong("x", eve))
    }

    @Test("a labelled PING gets its label with the PONG, once")
    func label() throws {
        let stage = try stage()
        let bob = stage.enter("bob", caps: "echo-message labeled-response batch")
        stage.say("one", bob)
        stage.harness.send(bob, "@label=L1 PING x")
        #expect(stage.lines(bob, with: "L1").isEmpty)
        stage.commit()
        #expect(stage.lines(bob, with: "L1").count == 1)
        #expect(stage.lines(bob, with: "@label=L1 :bridge PONG").count == 1)
    }

    @Test("of a thousand PINGs to a stalled disk a hundred are answered when it goes on")
    func manyPings() throws {
        let stage = try stage()
        let bob = stage.enter("bob")
        stage.say("one", bob)
        for number in 0..<1000 { stage.ping("x\(number)", bob) }
        #expect(stage.lines(bob, with: "PONG").isEmpty)
        stage.commit()
        #expect(stage.lines(bob, with: "PONG").count == IRCSession.maxHeldPongs)
        stage.ping("again", bob)
        #expect(stage.hasPong("again", bob))
    }

    @Test(
        "what the disk refuses is told with its words, not sent, and the rest goes on", arguments: [echoing, textual])
    func refused(kind: DurableKind) throws {
        let stage = try stage(kind)
        let bob = stage.enter("bob", caps: "echo-message labeled-response standard-replies")
        stage.harness.store.refusal = "the disk is full"
        stage.harness.send(bob, "@label=L PRIVMSG #lobby :one")
        stage.ping("x", bob)
        stage.commit()
        #expect(
            stage.lines(bob, with: "FAIL") == [
                "@label=L :bridge FAIL PRIVMSG CANNOT_STORE #lobby :Not taken, the disk is full: one"
            ])
        #expect(stage.hasPong("x", bob))
        stage.harness.store.refusal = nil
        stage.say("two", bob)
        stage.run()
        #expect(stage.texts == ["two"])
        #expect(stage.kept.isEmpty && stage.room.lane.outbox.isEmpty)
    }

    @Test("of several in one order all are refused")
    func refusedTogether() throws {
        let stage = try stage()
        let bob = stage.enter("bob")
        stage.harness.store.refusal = "the disk is full"
        stage.harness.receive(bob, Array("PRIVMSG #lobby :one\r\nPRIVMSG #lobby :two\r\n".utf8))
        stage.commit()
        #expect(stage.isTold("one") && stage.isTold("two"))
        #expect(stage.room.lane.outbox.isEmpty)
    }

    @Test(
        "while the disk is full, refusals are told though earlier changes wait, and nobody's PONG waits for the disk",
        arguments: [echoing, textual])
    func refusedBehindWaiting(kind: DurableKind) throws {
        let stage = try stage(kind)
        stage.harness.store.commits = true
        let bob = stage.enter("bob", caps: "echo-message standard-replies")
        stage.say("zero", bob)
        stage.harness.store.failure = "the disk is full"
        // That this arrived cannot be kept, so it waits in front of what is said now.
        while stage.takeFrame() {}
        while stage.answerOne() {}
        #expect(!stage.harness.store.waiting.isEmpty)
        stage.say("one", bob)
        stage.say("two", bob)
        stage.ping("x", bob)
        #expect(stage.isTold("one") && stage.isTold("two"))
        #expect(stage.room.lane.outbox.isEmpty)
        #expect(stage.hasPong("x", bob))
        stage.harness.store.failure = nil
        stage.say("three", bob)
        stage.run()
        #expect(stage.texts == ["zero", "three"])
        #expect(stage.kept.isEmpty)
    }

    @Test("an order without room is refused at once, and nobody waits for its ticket")
    func overflow() throws {
        let stage = try stage()
        let bob = stage.enter("bob")
        stage.harness.store.room = 1
        stage.say("one", bob)
        stage.say("two", bob)
        stage.ping("x", bob)
        #expect(stage.isTold("two") && !stage.isTold("one"))
        #expect(!stage.hasPong("x", bob))
        stage.commit()
        #expect(stage.hasPong("x", bob))
        stage.harness.store.room = 100
        stage.run()
        #expect(stage.texts == ["one"])
        #expect(stage.kept.isEmpty)
    }

    @Test("an intention without room is formed again, in order, and never goes up before it is kept")
    func intentionOverflows() throws {
        let stage = try stage(Self.textual)
        let bob = stage.enter("bob")
        stage.say("one", bob)
        stage.say("two", bob)
        stage.harness.store.room = 0
        stage.commit()
        #expect(stage.wire.isEmpty)
        #expect(stage.room.lane.outbox.count == 2)
        stage.advance(.seconds(2))
        #expect(stage.wire.isEmpty)
        stage.harness.store.room = 100
        stage.advance(.seconds(2))
        stage.run()
        #expect(stage.texts == ["one", "two"])
        #expect(stage.kept.isEmpty)
    }

    @Test("that a message arrived is said again when the store had no room for it")
    func arrivalOverflows() throws {
        let stage = try stage()
        let bob = stage.enter("bob")
        stage.say("one", bob)
        stage.commit()
        #expect(stage.takeFrame())
        stage.harness.store.room = 0
        #expect(stage.answerOne())
        #expect(stage.kept.count == 1)
        stage.harness.store.room = 100
        stage.say("two", bob)
        stage.run()
        #expect(stage.kept.isEmpty)
    }

    @Test("who says something and goes is heard all the same")
    func gone() throws {
        let stage = try stage()
        let bob = stage.enter("bob")
        stage.say("one", bob)
        stage.harness.disconnect(bob)
        stage.run()
        #expect(stage.texts == ["one"])
        #expect(stage.kept.isEmpty)
    }

    @Test("intentions are pipelined, and a link that is lost before they are kept leaves them queued")
    func intentions() throws {
        let stage = try stage(Self.textual)
        let bob = stage.enter("bob")
        for text in ["one", "two", "three"] { stage.say(text, bob) }
        stage.commit(3)
        #expect(stage.wire.isEmpty)
        #expect(stage.kept.map(\.state) == [.queued, .queued, .queued])
        stage.commit(1)
        #expect(stage.wire.count == 3, "one order holds the intentions of all that were accepted together")
        stage.say("four", bob)
        stage.commit(1)
        stage.loseLink()
        stage.commit()
        #expect(stage.kept.map(\.state) == [.written, .written, .written, .queued])
        stage.advance(.seconds(2))
        stage.run()
        #expect(stage.texts == ["one", "two", "three", "four"])
    }

    @Test("a stopping bridge keeps what waits, says so, and the next one delivers it")
    func shutdown() throws {
        let stage = try DurableStage(Self.echoing)
        let bob = stage.enter("bob", caps: "echo-message standard-replies")
        stage.harness.acceptsConnections = false
        stage.loseLink()
        for text in ["one", "two"] { stage.say(text, bob) }
        stage.harness.shutdown()
        stage.advance(.seconds(10))
        #expect(stage.lines(bob, with: "FAIL").isEmpty)
        #expect(
            stage.lines(bob, with: "after the restart").map { String($0.drop { $0 != "N" }) } == [
                "NOTE PRIVMSG QUEUED #lobby :2 messages of yours are queued and go after the restart, the first: one"
            ])
        stage.restart()
        stage.run()
        #expect(stage.texts == ["one", "two"])
        #expect(stage.kept.isEmpty)
    }

    @Test("a stopping bridge does not call kept what the disk has not taken")
    func shutdownOnStalledDisk() throws {
        let stage = try stage()
        let bob = stage.enter("bob", caps: "echo-message standard-replies")
        stage.say("one", bob)
        stage.harness.shutdown()
        stage.advance(.seconds(10))
        #expect(stage.lines(bob, with: "is kept").isEmpty)
        #expect(stage.lines(bob, with: "the disk has not taken it yet, so it may be lost: one").count == 1)
    }

    @Test("a waiting message is announced after three seconds, also while the disk is slow")
    func announced() throws {
        let stage = try stage()
        let bob = stage.enter("bob", caps: "standard-replies")
        stage.say("one", bob)
        stage.advance(.seconds(4))
        #expect(stage.lines(bob, with: "NOTE PRIVMSG QUEUED").count == 1)
    }

    @Test("without a store nothing waits and nothing is ordered")
    func memory() throws {
        let stage = try SessionStage(Self.echoing.dialect(maxFrameBytes: 1024 * 1024))
        stage.harness.start()
        stage.enter("bob")
        stage.harness.send(1, "PRIVMSG #lobby :one")
        #expect(stage.sent().compactMap { $0["text"]?.string } == ["one"])
        stage.harness.send(1, "PING x")
        #expect(stage.heard().contains { $0.hasSuffix("PONG bridge x") })
        #expect(stage.harness.store.orders.isEmpty)
    }
}
