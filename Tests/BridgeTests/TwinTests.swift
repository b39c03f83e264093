import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import IRCProtocol
import JSONText
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Clients of alice's that say the name `ann`, and answer a PING when the test says so.
@Suite("Clients of one name")
struct TwinTests {
    private static let caps = BacklogStage.caps

    private func stage(confirmsLater: Bool = false) throws -> BacklogStage {
        let stage = try BacklogStage { if confirmsLater { $0.confirmation = .echoByID } }
        stage.harness.answersPings = false
        return stage
    }

    /// 1 and 2 are there, and 1 has shown that it is.
    private func twins(_ one: String = caps, _ other: String = caps) throws -> BacklogStage {
        let stage = try stage()
        stage.enter(1, "alice@ann", caps: one)
        stage.enter(2, "alice@ann", caps: other)
        while stage.answer(1) {}
        _ = stage.heard(1)
        _ = stage.heard(2)
        return stage
    }

    private func name(_ client: UInt64, _ stage: BacklogStage) -> String? {
        stage.session(client)?.clientName.map { NumberedClientName($0).shown }
    }

    /// Where the cursor of the client with this name is, in memory and on disk.
    private func place(_ shown: String, _ stage: BacklogStage) -> Int64? {
        guard
            let name = stage.harness.bridge.irc.cursors.clients(of: "alice").first(where: {
                NumberedClientName($0).shown == shown
            })
        else { return nil }
        let place = stage.cursor("alice", name)
        #expect(stage.kept("alice", name) == place, "\(shown) on disk")
        return place
    }

    private func answerAll(_ clients: UInt64..., on stage: BacklogStage) {
        while clients.contains(where: { stage.answer($0) }) {}
    }

    /// What people said; after a crash the room is told of a gap, too.
    private func words(_ client: UInt64, _ stage: BacklogStage) -> [String] {
        stage.heard(client).filter { !$0.hasPrefix("bridge: ") }
    }

    private func isIn(_ client: UInt64, _ stage: BacklogStage) -> Bool { stage.session(client)?.person != nil }

    // MARK: - Names

    @Test(
        "a name says which of several, and what its program asks for",
        arguments: [
            ("ann", "ann", 1, nil, "ann"), ("ann 2", "ann", 2, nil, "ann 2"), ("ann 2 1f", "ann", 2, 0x1F, "ann 2"),
            ("ann 1 0", "ann", 1, 0, "ann"), ("ann x y", "ann", 1, nil, "ann"), ("", "", 1, nil, ""),
            ("ann -3", "ann", 1, nil, "ann"), ("ann 99999999999", "ann", 1_000_000_000, nil, "ann 1000000000"),
        ] as [(String, String, Int, UInt64?, String)])
    func forms(_ text: String, _ base: String, _ number: Int, _ mark: UInt64?, _ shown: String) {
        let name = NumberedClientName(text)
        #expect(name == NumberedClientName(base: base, number: number, mark: mark))
        #expect(name.shown == shown)
        #expect(NumberedClientName(name.text) == name)
    }

    @Test(
        "two names are one client's whatever its program asks for",
        arguments: [
            ("ann", "ann", true), ("ann", "ann 1 1f", true), ("ann 2 1", "ann 2 2", true), ("ann", "ann 2", false),
            ("ann 2", "bob 2", false), (nil, nil, true), (nil, "ann", false),
        ] as [(String?, String?, Bool)])
    func same(_ one: String?, _ other: String?, _ isSame: Bool) {
        #expect(NumberedClientName.isSame(one, other) == isSame)
        #expect(NumberedClientName.isSame(other, one) == isSame)
    }

    // MARK: - Proof

    @Test(
        "until the older one answers what one says is the other's own, and from then on another client's",
        arguments: ["", caps, caps + " echo-message", caps + " znc.in/self-message"])
    func proof(_ caps: String) throws {
        let stage = try stage()
        stage.enter(3, "bob@desk")
        stage.enter(1, "alice@ann", caps: caps)
        stage.enter(2, "alice@ann", caps: caps)
        let echoes = caps.contains("echo-message")
        stage.speak(1, "early")
        stage.speak(2, "early too")
        #expect(stage.heard(1) == (echoes ? ["alice: early", "alice: early too"] : []))
        #expect(stage.heard(2) == (echoes ? ["alice: early", "alice: early too"] : []))
        #expect(name(1, stage) == "ann" && name(2, stage) == "ann")

        #expect(stage.answer(1))
        #expect(name(1, stage) == "ann" && name(2, stage) == "ann 2")
        stage.speak(1, "from one")
        stage.speak(2, "from the other")
        #expect(stage.heard(1) == (echoes ? ["alice: from one"] : []) + ["alice: from the other"])
        #expect(stage.heard(2) == ["alice: from one"] + (echoes ? ["alice: from the other"] : []))
        #expect(stage.heard(3).count == 4)
    }

    @Test("an answer to what was asked before the other came proves nothing, nor does what is said unasked")
    func noProof() throws {
        let stage = try stage()
        stage.enter(1, "alice@ann", caps: Self.caps)
        stage.say("m0")
        stage.harness.advance(by: .seconds(3))
        stage.enter(2, "alice@ann", caps: Self.caps)
        stage.harness.send(1, "PRIVMSG #lobby :was on its way")
        #expect(stage.answer(1))
        #expect(name(2, stage) == "ann")
        #expect(stage.heard(2) == ["ann: m0"])
        #expect(stage.answer(1), "asked only now")
        #expect(name(2, stage) == "ann 2")
    }

    @Test(
        "what was said and not yet shown when it turned out that there are two, is shown to the other",
        arguments: [1, 2])
    func pending(_ speaker: UInt64) throws {
        let stage = try stage(confirmsLater: true)
        stage.enter(1, "alice@ann", caps: Self.caps)
        stage.enter(2, "alice@ann", caps: Self.caps)
        stage.harness.send(speaker, "PRIVMSG #lobby :mine")
        let frame = try #require(stage.sentMessages().last)
        #expect(stage.answer(1))
        stage.harness.sendFrame(0, frame)
        #expect(stage.heard(speaker) == [])
        #expect(stage.heard(3 - speaker) == ["alice: mine"])
    }

    @Test("who said it may be gone by then", arguments: [1, 2])
    func pendingOfOneWhoLeft(_ speaker: UInt64) throws {
        let stage = try stage(confirmsLater: true)
        stage.enter(1, "alice@ann", caps: Self.caps)
        stage.enter(2, "alice@ann", caps: Self.caps)
        stage.harness.send(speaker, "PRIVMSG #lobby :mine")
        let frame = try #require(stage.sentMessages().last)
        #expect(stage.answer(1))
        stage.leave(speaker)
        stage.harness.sendFrame(0, frame)
        #expect(stage.heard(3 - speaker) == ["alice: mine"])
    }

    @Test("an old one that hangs and dies was the same client all the time")
    func hangsAndDies() throws {
        let stage = try stage(confirmsLater: true)
        stage.enter(1, "alice@ann", caps: Self.caps)
        stage.harness.send(1, "PRIVMSG #lobby :mine")
        let frame = try #require(stage.sentMessages().last)
        stage.enter(2, "alice@ann", caps: Self.caps)
        stage.harness.sendFrame(0, frame)
        #expect(stage.heard(2) == [])
        stage.say("m0")
        stage.harness.advance(by: .seconds(3))
        #expect(stage.answer(2))
        stage.leave(1)
        stage.leave(2)
        stage.say("m1")
        stage.enter(3, "alice@ann", caps: Self.caps)
        #expect(stage.heard(3) == ["ann: m1"])
        #expect(stage.harness.bridge.irc.cursors.clients(of: "alice") == ["ann"])
    }

    @Test("an answer that comes late gives each the places up to which it got by itself")
    func late() throws {
        let stage = try stage()
        stage.enter(1, "alice@ann", caps: Self.caps)
        stage.enter(2, "alice@ann", caps: Self.caps)
        for text in ["m0", "m1", "m2"] { stage.say(text) }
        stage.harness.advance(by: .seconds(3))
        #expect(stage.answer(2))
        #expect(place("ann", stage) == 2)
        stage.say("m3")
        #expect(stage.answer(1))
        #expect(place("ann", stage) == -1 && place("ann 2", stage) == 2)
        stage.leave(1)
        stage.leave(2)
        stage.enter(3, "alice@ann", caps: Self.caps + " away-notify")
        #expect(stage.heard(3) == ["ann: m0", "ann: m1", "ann: m2", "ann: m3"])
    }

    @Test(
        "three are three, in whichever order they answer",
        arguments: [[1, 2, 1], [2, 1, 1], [1, 1, 2]] as [[UInt64]])
    func three(_ order: [UInt64]) throws {
        let stage = try stage()
        for client in 1...3 as ClosedRange<UInt64> { stage.enter(client, "alice@ann", caps: Self.caps) }
        for client in order { stage.answer(client) }
        answerAll(1, 2, 3, on: stage)
        #expect(Set((1...3).map { name($0, stage) }) == ["ann", "ann 2", "ann 3"])
        for client in 1...3 as ClosedRange<UInt64> { stage.speak(client, "from \(client)") }
        for client in 1...3 as ClosedRange<UInt64> {
            #expect(stage.heard(client) == (1...3).filter { $0 != client }.map { "alice: from \($0)" })
        }
    }

    @Test("private messages go to both, to whom asked for lines from oneself")
    func inPrivate() throws {
        let stage = try twins(Self.caps, Self.caps + " znc.in/self-message")
        stage.enter(3, "bob@desk")
        _ = stage.raw(1)
        _ = stage.raw(2)
        stage.harness.send(1, "PRIVMSG bob :psst")
        #expect(stage.raw(2).map { $0.replacing(#/^@\S+ /#, with: "") } == [":alice!~u@bridge PRIVMSG bob :psst"])
        stage.harness.send(2, "PRIVMSG bob :psst")
        #expect(stage.raw(1) == [])
        stage.harness.send(3, "PRIVMSG alice :yes?")
        #expect(stage.raw(1).count == 1 && stage.raw(2).count == 1)
    }

    @Test("who logs in when they are here already is one of them")
    func lateLogin() throws {
        let stage = try stage()
        stage.enter(1, "alice@ann", caps: Self.caps)
        stage.harness.connect(2)
        for line in ["CAP REQ :sasl", "NICK al", "USER ann 0 * :r", "CAP END", "JOIN #lobby", "AUTHENTICATE PLAIN"] {
            stage.harness.send(2, line)
        }
        stage.harness.send(2, "AUTHENTICATE " + IRCSASLExchange.chunks(of: Array("\0alice\0pw".utf8))[0])
        #expect(name(2, stage) == "ann")
        answerAll(1, on: stage)
        #expect(name(1, stage) == "ann" && name(2, stage) == "ann 2")
        _ = stage.heard(2)
        stage.speak(1, "hello")
        #expect(stage.heard(2) == ["alice: hello"])
    }

    @Test("the service tells which of them one is")
    func whoAmI() throws {
        let stage = try twins()
        stage.harness.send(2, "PRIVMSG *bridge :whoami")
        #expect(stage.raw(2).contains { $0.contains("Your account is alice, this client is ann 2.") })
    }

    // MARK: - Coming again

    @Test("who comes again while the other is there goes on where it was, once the other has answered")
    func again() throws {
        let stage = try twins()
        stage.say("m0")
        stage.harness.advance(by: .seconds(3))
        answerAll(1, 2, on: stage)
        stage.say("m1")
        #expect(stage.heard(1) == ["ann: m0", "ann: m1"])
        stage.leave(2)
        stage.say("m2")
        stage.harness.advance(by: .seconds(3))
        answerAll(1, on: stage)
        stage.connect(3, "alice@ann", caps: Self.caps)
        #expect(!isIn(3, stage))
        stage.say("m3")
        answerAll(1, on: stage)
        #expect(isIn(3, stage) && name(3, stage) == "ann 2")
        #expect(stage.heard(3) == ["ann: m1", "ann: m2", "ann: m3"])
        stage.leave(1)
        stage.say("m4")
        stage.connect(4, "alice@ann", caps: Self.caps)
        answerAll(3, on: stage)
        #expect(name(4, stage) == "ann")
        #expect(stage.heard(4) == ["ann: m3", "ann: m4"])
    }

    @Test("who waits for others waits three seconds, or until they are gone", arguments: [true, false])
    func patience(_ leaves: Bool) throws {
        let stage = try twins("", Self.caps)
        stage.leave(2)
        stage.say("m0")
        stage.connect(3, "alice@ann", caps: Self.caps)
        stage.harness.advance(by: .milliseconds(2900))
        #expect(!isIn(3, stage))
        if leaves { stage.leave(1) }
        stage.harness.advance(by: .milliseconds(leaves ? 1 : 200))
        #expect(isIn(3, stage) && name(3, stage) == "ann 2")
        // The last one of the account took it out of the room.
        if leaves { stage.harness.send(3, "JOIN #lobby") }
        #expect(stage.heard(3) == ["ann: m0"])
        #expect(stage.harness.violations == [])
    }

    @Test("who goes while it waits is forgotten")
    func goesWaiting() throws {
        let stage = try twins("", Self.caps)
        stage.leave(2)
        stage.connect(3, "alice@ann", caps: Self.caps)
        stage.leave(3)
        answerAll(1, on: stage)
        stage.harness.advance(by: .seconds(5))
        #expect(stage.harness.bridge.irc.newcomers.isEmpty)
        #expect(name(1, stage) == "ann")
    }

    @Test("programs that ask for other capabilities are told apart after all were away", arguments: [true, false])
    func programs(_ crashes: Bool) throws {
        let other = Self.caps + " away-notify"
        let stage = try twins(Self.caps, other)
        stage.speak(1, "from one")
        stage.harness.advance(by: .seconds(3))
        answerAll(1, 2, on: stage)
        stage.leave(2)
        stage.speak(1, "from one alone")
        stage.say("m0")
        stage.harness.advance(by: .seconds(3))
        answerAll(1, on: stage)
        if crashes { stage.crash() } else { stage.leave(1) }
        stage.harness.answersPings = true
        stage.enter(3, "alice@ann", caps: other)
        #expect(name(3, stage) == "ann 2")
        #expect(words(3, stage) == ["alice: from one alone", "ann: m0"])
        stage.enter(4, "alice@ann", caps: Self.caps)
        #expect(name(4, stage) == "ann")
        #expect(words(4, stage) == [])
    }

    @Test(
        "of programs that are alike none misses anything, and who had got more gets it again", arguments: [true, false])
    func alike(_ crashes: Bool) throws {
        let stage = try twins()
        stage.leave(2)
        stage.speak(1, "mine")
        stage.say("m0")
        stage.harness.advance(by: .seconds(3))
        answerAll(1, on: stage)
        if crashes { stage.crash() } else { stage.leave(1) }
        stage.harness.answersPings = true
        for client in [3, 4] as [UInt64] {
            stage.enter(client, "alice@ann", caps: Self.caps)
            #expect(words(client, stage) == ["alice: mine", "ann: m0"], "\(client)")
        }
        #expect(Set([name(3, stage), name(4, stage)]) == ["ann 3", "ann 4"])
        stage.harness.advance(by: .seconds(3))
        stage.speak(3, "again two")
        #expect(stage.heard(4) == ["alice: again two"])
    }

    @Test("nobody waits for a program that has missed more than it would be given")
    func leftBehind() throws {
        let limits = LimitSettings {
            $0.acceptsPerSecondPerAddress = nil
            $0.messagesPerSecond = nil
            $0.upstreamMessagesPerSecond = nil
            $0.backlog = 3
        }
        let stage = try BacklogStage(limits: limits)
        stage.enter(1, "alice@ann", caps: Self.caps)
        stage.enter(2, "alice@ann", caps: Self.caps)
        stage.leave(2)
        for text in ["m0", "m1", "m2"] { stage.say(text) }
        stage.harness.advance(by: .seconds(3))
        stage.leave(1)
        stage.enter(3, "alice@ann", caps: Self.caps)
        #expect(stage.heard(3) == ["ann: m0", "ann: m1", "ann: m2"])
        stage.say("m3")
        stage.harness.advance(by: .seconds(3))
        stage.leave(3)
        stage.enter(4, "alice@ann", caps: Self.caps)
        #expect(stage.heard(4) == [])
        // The other comes all the same: while this one is there it has what it left.
        stage.enter(5, "alice@ann", caps: Self.caps)
        let heard = stage.heard(5)
        #expect(BacklogTests.isNotice(heard.first, "1 older message was", most: 1))
        #expect(Array(heard.dropFirst()) == ["ann: m1", "ann: m2", "ann: m3"])
    }

    @Test("a program that nobody knows takes nobody's place")
    func unknown() throws {
        let stage = try twins(Self.caps, Self.caps + " away-notify")
        stage.leave(2)
        stage.say("m0")
        answerAll(1, on: stage)
        stage.harness.answersPings = true
        stage.enter(3, "alice@ann", caps: Self.caps + " setname")
        #expect(name(3, stage) == "ann 3")
        stage.enter(4, "alice@ann", caps: Self.caps + " away-notify")
        #expect(name(4, stage) == "ann 2")
        #expect(stage.heard(4) == ["ann: m0"])
    }

    @Test("without a store two are told apart all the same")
    func inMemory() throws {
        let stage = try BacklogStage(store: nil)
        stage.enter(1, "alice@ann", caps: Self.caps)
        stage.enter(2, "alice@ann", caps: Self.caps)
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        #expect(stage.heard(2) == ["alice: hello"])
        stage.leave(2)
        stage.enter(3, "alice@ann", caps: Self.caps)
        stage.harness.send(3, "PRIVMSG #lobby :back")
        #expect(stage.heard(1) == ["alice: back"])
        #expect(name(3, stage) == "ann 2")
    }

    @Test("over the account's own link too")
    func ownLink() throws {
        let stage = try OwnLinkStage(OwnLinkStage.echoing(), asks: false)
        stage.enter("alice", 1, account: "alice")
        stage.harness.connect(2)
        for line in ["PASS alice:pw", "NICK alice", "USER u 0 * :r"] { stage.harness.send(2, line) }
        stage.harness.connect(3)
        for line in ["PASS alice:pw", "NICK alice", "USER u 0 * :r"] { stage.harness.send(3, line) }
        stage.harness.advance(by: .seconds(1))
        for client in 1...3 as ClosedRange<UInt64> { _ = stage.heard(client) }
        _ = stage.sent()
        stage.harness.send(2, "PRIVMSG #lobby :hello")
        stage.echo(stage.newestSentID(), "hello", by: stage.newestSenderID(), over: OwnLinkStage.own)
        #expect(stage.said(3) == ["alice: hello"])
        #expect(stage.said(2) == [])
        #expect(stage.said(1) == ["alice: hello"])
    }

    // MARK: - Failures

    @Test("what failed, and was told to an old connection that hung, is told to the newer one when the old one is gone")
    func failureToldToTheDead() throws {
        let stage = try stage(confirmsLater: true)
        stage.enter(1, "alice@ann", caps: Self.caps)
        answerAll(1, on: stage)
        stage.harness.send(1, "PRIVMSG #lobby :one")
        let frame = try #require(stage.sentMessages().last)
        let id = try #require(try JSONValue(parsing: Array(frame.utf8))["id"]?.string)
        stage.enter(2, "alice@ann", caps: Self.caps)
        answerAll(2, on: stage)
        _ = stage.raw(2)
        stage.harness.sendFrame(0, "{\"kind\":\"error\",\"ref\":\"\(id)\",\"text\":\"no\"}")
        answerAll(2, on: stage)
        #expect(!stage.raw(2).contains { $0.contains("CANNOT_DELIVER") })
        stage.leave(1)
        answerAll(2, on: stage)
        #expect(stage.raw(2).count { $0.contains("Not delivered, the backend refused it (no): one") } == 1)
    }
}
