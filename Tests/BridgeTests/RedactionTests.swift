import Accounts
import BridgeTestSupport
import ChatModel
import Dialects
import Digests
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Taking messages back")
struct RedactionTests {
    /// alice has said one message, which everybody has.
    private func stage(
        _ dialect: ActionsStubDialect = ActionsStubDialect(), accounts: [AccountSettings] = []
    ) throws -> ActionsStage {
        let stage = try ActionsStage(dialect, accounts: accounts)
        stage.enter(1, "alice")
        stage.enter(2, "bob")
        stage.enter(3, "carol", caps: "")
        stage.harness.send(1, "PRIVMSG #lobby :a mistake")
        for case .upstream(_, .frame(let bytes, _)) in stage.harness.takeOutputs() { stage.harness.sendFrame(0, bytes) }
        _ = stage.happened()
        return stage
    }

    @Test("one's own message: the backend is asked, the others are told, and its coming back is no news")
    func own() throws {
        let stage = try stage()
        let msgid = stage.newestMsgid()
        let id = stage.newestUpstreamID()
        stage.harness.advance(by: .seconds(5))
        stage.harness.send(1, "REDACT #lobby \(msgid) :wrong room")
        let lines = stage.happened()
        #expect(lines.count == 4, "\(lines)")
        #expect(lines.first == "U0> delete|ids=\(id)|from=[alice]|name=alice")
        let own = try #require(lines.dropFirst().first?.firstMatch(of: #/@msgid=([^ ]+) /#)?.1)
        #expect(own != msgid)
        #expect(
            lines.dropFirst() == [
                "C2< @msgid=\(own) :alice!~u@bridge REDACT #lobby \(msgid) :wrong room",
                "C1< @msgid=\(own) :alice!~u@bridge REDACT #lobby \(msgid) :wrong room",
                "C3< :bridge NOTICE #lobby :*** alice took back a message from 5 s ago: wrong room",
            ])
        stage.backend("delete|ids=\(id)|from=[alice]|name=alice")
        #expect(stage.happened() == [])
        stage.harness.send(1, "REDACT #lobby \(msgid)")
        #expect(
            stage.happened() == [
                "C1< :bridge FAIL REDACT UNKNOWN_MSGID #lobby \(msgid) :No such message, or it is too old"
            ])
    }

    @Test("what an erased person said is redacted at clients that can remove it, once")
    func erasure() throws {
        let stage = try stage()
        stage.enter(4, "dora", caps: "message-tags")
        for (id, person) in [("a", "s1|name=Remy"), ("b", "s2|name=Linguini"), ("c", "s1|name=Remy")] {
            stage.backend("message|id=\(id)|from=\(person)|text=\(id)")
        }
        func msgid(_ id: String) throws -> String {
            try #require(stage.harness.bridge.rooms[0].recent.entry(upstreamID: ChatID(id))?.msgid)
        }
        let (first, last) = (try msgid("a"), try msgid("c"))
        _ = stage.happened()
        let remy = ErasablePerson(name: .upstream("s1", backend: "chat.example"), nick: "Remy", isKnown: true)
        for told in [[first, last], []] {
            stage.harness.perform { bridge, now in _ = bridge.erase(remy, now: now) }
            #expect(
                stage.happened().sorted()
                    == ["C1", "C2"].flatMap { client in
                        told.map { "\(client)< :bridge REDACT #lobby \($0) :Erased by an administrator" }.sorted()
                    })
        }
        #expect(stage.harness.bridge.rooms[0].recent.entry(upstreamID: ChatID("b"))?.isTakenBack == false)
    }

    @Test("a refusal says why, answers the label, and tells nobody else")
    func refusals() throws {
        let stage = try stage()
        let msgid = stage.newestMsgid()
        let id = stage.newestUpstreamID()
        stage.harness.send(2, "REDACT #lobby \(msgid)")
        stage.harness.send(2, "@label=x REDACT #lobby nosuch")
        stage.harness.send(2, "REDACT alice \(msgid)")
        stage.harness.send(2, "REDACT #attic \(msgid)")
        stage.harness.send(2, "REDACT #lobby :a b")
        stage.harness.send(2, "REDACT #lobby")
        stage.harness.send(3, "REDACT #lobby \(msgid)")
        #expect(
            stage.happened() == [
                "C2< :bridge FAIL REDACT REDACT_FORBIDDEN #lobby \(msgid) :Only your own messages can be taken back",
                "C2< @label=x :bridge FAIL REDACT UNKNOWN_MSGID #lobby nosuch :No such message, or it is too old",
                "C2< :bridge FAIL REDACT UNKNOWN_MSGID alice \(msgid) :No such message, or it is too old",
                "C2< :bridge FAIL REDACT INVALID_TARGET #attic :Messages can be taken back only in a room that you are in",
                "C2< :bridge FAIL REDACT UNKNOWN_MSGID #lobby * :No such message, or it is too old",
                "C2< :bridge 461 bob REDACT :Not enough parameters",
                "C3< :bridge NOTICE carol :REDACT REDACT_FORBIDDEN #lobby \(msgid): Only your own messages can be taken back",
            ])
        stage.harness.acceptsConnections = false
        stage.harness.endTransport(0, reason: "gone")
        _ = stage.happened()
        stage.harness.send(1, "REDACT #lobby \(msgid)")
        #expect(
            stage.happened() == [
                "C1< :bridge FAIL REDACT CANNOT_DELIVER #lobby \(msgid) "
                    + ":Not taken back, this room has no link to chat.example at the moment"
            ])
        stage.harness.advance(by: .seconds(1))
        stage.harness.accept(0)
        _ = stage.happened()
        stage.harness.send(1, "REDACT #lobby \(msgid)")
        #expect(stage.happened().first == "U0> delete|ids=\(id)|from=[alice]|name=alice", "nothing was forgotten")
    }

    @Test("a wire that cannot say it refuses")
    func unsupported() throws {
        let stage = try stage(ActionsStubDialect(says: ["message"]))
        let msgid = stage.newestMsgid()
        stage.harness.send(1, "REDACT #lobby \(msgid)")
        #expect(
            stage.happened() == [
                "C1< :bridge FAIL REDACT REDACT_FORBIDDEN #lobby \(msgid) :chat.example knows no way to take a message back"
            ])
    }

    @Test("an administrator takes back everybody's")
    func admin() throws {
        var account = AccountSettings(
            name: "alice",
            password: SCRAMVerifier(
                password: SecretBytes("secret".utf8), salt: Array("salt".utf8), iterations: 1))
        account.isAdmin = true
        let stage = try ActionsStage(ActionsStubDialect(), accounts: [account])
        stage.enter(1, "alice", login: "alice")
        stage.backend("message|id=m1|from=s1|name=Remy|text=spam")
        _ = stage.happened()
        let msgid = stage.newestMsgid()
        stage.harness.send(1, "REDACT #lobby \(msgid)")
        let lines = stage.happened()
        #expect(lines.first?.hasPrefix("U0> delete|ids=m1|") == true, "\(lines)")
        #expect(lines.last?.hasSuffix(" :alice!~u@bridge REDACT #lobby \(msgid)") == true)
    }

    @Test("a channel operator takes back what IRC users said, in the author's name, and nothing of people upstream")
    func channelOperator() throws {
        let stage = try stage()
        stage.harness.echoes = true
        stage.harness.send(2, "PRIVMSG #lobby :rude words")
        let rude = stage.newestMsgid()
        let id = stage.newestUpstreamID()
        stage.backend("message|id=m1|from=s1|name=Remy|text=soup")
        let soup = stage.newestMsgid()
        _ = stage.happened()
        // alice came first and moderates.
        stage.harness.send(1, "REDACT #lobby \(rude) :not here")
        let lines = stage.happened().map { $0.replacing(#/@msgid=[^ ]+ /#, with: "") }
        #expect(
            lines == [
                "U0> delete|ids=\(id)|from=[bob]|name=bob", "C2< :alice!~u@bridge REDACT #lobby \(rude) :not here",
                "C1< :alice!~u@bridge REDACT #lobby \(rude) :not here",
                "C3< :bridge NOTICE #lobby :*** alice took back a message from 1 s ago by bob: not here",
            ])
        stage.harness.send(1, "REDACT #lobby \(soup)")
        stage.harness.send(2, "REDACT #lobby \(soup)")
        #expect(
            stage.happened() == [
                "C1< :bridge FAIL REDACT REDACT_FORBIDDEN #lobby \(soup) "
                    + ":Remy is on chat.example, where IRC operators have no say",
                "C2< :bridge FAIL REDACT REDACT_FORBIDDEN #lobby \(soup) :Only your own messages can be taken back",
            ])
        // No longer.
        stage.harness.send(2, "PRIVMSG #lobby :more of it")
        let more = stage.newestMsgid()
        stage.harness.send(1, "MODE #lobby -o alice")
        _ = stage.happened()
        stage.harness.send(1, "REDACT #lobby \(more)")
        #expect(
            stage.happened() == [
                "C1< :bridge FAIL REDACT REDACT_FORBIDDEN #lobby \(more) :Only your own messages can be taken back"
            ])
    }

    @Test("where one account speaks for all, it takes back what it said for another")
    func channelOperatorOfOneAccount() throws {
        let stage = try ActionsStage(ActionsStubDialect(), echoes: true) { $0.identity = .single }
        stage.enter(1, "alice")
        stage.enter(2, "bob")
        stage.harness.send(2, "PRIVMSG #lobby :rude words")
        let (rude, id) = (stage.newestMsgid(), stage.newestUpstreamID())
        _ = stage.happened()
        stage.harness.send(1, "REDACT #lobby \(rude)")
        let lines = stage.happened()
        #expect(lines.first?.hasPrefix("U0> delete|ids=\(id)|") == true, "\(lines)")
        #expect(lines.first?.contains("bob") == false)
        #expect(lines.last?.hasSuffix(" :alice!~u@bridge REDACT #lobby \(rude)") == true)
    }

    @Test("people upstream take back theirs: REDACT to those who know it, a line to the others")
    func down() throws {
        let stage = try stage()
        stage.backend("message|id=m1|from=s1|name=Remy|text=one")
        let msgid = stage.newestMsgid()
        stage.harness.advance(by: .seconds(181))
        _ = stage.happened()
        stage.backend("delete|ids=m1,elsewhere|from=s1|name=Remy")
        #expect(
            stage.happened() == [
                "C1< :Remy!chat@chat.example REDACT #lobby \(msgid)",
                "C2< :Remy!chat@chat.example REDACT #lobby \(msgid)",
                "C3< :bridge NOTICE #lobby :*** Remy took back a message from 3 min ago.",
            ])
        stage.backend("delete|ids=m1|from=s1|name=Remy")
        stage.backend("delete|ids=elsewhere,nowhere")
        #expect(stage.happened() == [], "once, and never for what is not known")
    }

    @Test("where the wire does not say who, it is the server; of several messages one line is said")
    func downWithoutName() throws {
        let stage = try stage()
        for number in 1...3 { stage.backend("message|id=m\(number)|from=s\(number % 2)|name=S\(number % 2)|text=t") }
        let entries = (1...3).compactMap { stage.harness.bridge.rooms[0].recent.entry(upstreamID: ChatID("m\($0)")) }
        _ = stage.happened()
        stage.backend("delete|ids=m1,m2,m3")
        #expect(
            stage.happened().filter { !$0.hasPrefix("C2") } == entries.map { "C1< :bridge REDACT #lobby \($0.msgid)" }
                + ["C3< :bridge NOTICE #lobby :*** chat.example took back 3 messages."])
        #expect(stage.newestMsgid() == entries[2].msgid)
    }

    @Test("clearing out a room is a few lines, not a flood")
    func mass() throws {
        let stage = try stage()
        for number in 1...50 { stage.backend("message|id=m\(number)|from=s|name=S|text=t") }
        _ = stage.happened()
        for number in 1...50 { stage.backend("delete|ids=m\(number)|from=s") }
        let lines = stage.happened()
        #expect(lines.filter { $0.hasPrefix("C1") }.count == 50)
        #expect(lines.filter { $0.hasPrefix("C3") }.count == 5)
    }

    @Test("what was taken back is quoted and edited no more")
    func afterwards() throws {
        let stage = try stage()
        stage.backend("message|id=m1|from=s1|name=Remy|text=secret")
        let msgid = stage.newestMsgid()
        stage.backend("delete|ids=m1|from=s1")
        _ = stage.happened()
        stage.backend("edit|id=m1|from=s1|text=other")
        stage.backend("react|target=m1|emoji=x|from=s1")
        #expect(stage.happened() == [])
        stage.harness.send(1, "@+reply=\(msgid) PRIVMSG #lobby :what?")
        #expect(stage.happened().first?.hasSuffix("|text=what?") == true)
    }
}
