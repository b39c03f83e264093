import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import JSONText
import Testing

@testable import BridgeCore
@testable import ChatBridge
@testable import IRCServer
@testable import Rooms
@testable import Upstream

@Suite("Accounts with a link of their own, where one account speaks for the others")
struct OwnLinkTests {
    private func stage(_ change: (inout DialectTraits) -> Void = { _ in }) throws -> OwnLinkStage {
        let stage = try OwnLinkStage(OwnLinkStage.silent(change))
        stage.enterBoth()
        return stage
    }

    // MARK: - Speaking

    @Test("the account speaks as itself over its own link, the others with a prefix over the room's")
    func speaks() throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        stage.harness.send(2, "PRIVMSG #lobby :hi")
        stage.harness.send(1, "PRIVMSG #lobby :\u{1}ACTION nods\u{1}")
        #expect(
            stage.sent() == [
                "-1 message Alice B: hello", "0 message chatbridge: <bob> hi", "-1 message Alice B: * alice nods",
            ])
        #expect(stage.said(2) == ["alice: hello", "bob: hi", "alice: \u{1}ACTION nods\u{1}"])
        #expect(stage.harness.violations.isEmpty)
    }

    @Test("what the room's link relays of it is not shown again, and gives the backend's id")
    func relayed() throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG #lobby :same")
        stage.harness.send(1, "PRIVMSG #lobby :same")
        stage.relay("57", "same", by: "Alice B")
        stage.relay("58", " same\\n", by: "Alice B")
        #expect(stage.said(2) == ["alice: same", "alice: same"])
        #expect(stage.room.recent.entry(upstreamID: ChatID("57"))?.sequence == 0)
        #expect(stage.room.recent.entry(upstreamID: ChatID("58"))?.sequence == 1)
        stage.relay("58", "same", by: "Alice B")
        #expect(stage.said(2).isEmpty)
        #expect(stage.own?.sent.isEmpty == true)
    }

    @Test("an echo over the own link, before or after the room's, changes nothing", arguments: [[-1, 0], [0, -1]])
    func echoed(_ order: [Int]) throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        for link in order { stage.relay("57", "hello", by: "Alice B", over: link) }
        #expect(stage.said(2) == ["alice: hello"])
        #expect(stage.said(1) == ["alice: hello"])
    }

    // MARK: - References that the author alone gets back

    /// A message of the account, with the reference over its own link.
    private func copy(_ id: String, _ text: String, over link: Int, of stage: OwnLinkStage, ref: String) {
        let named = link == OwnLinkStage.own ? #""ref":"\#(ref)","# : ""
        let at = stage.harness.clock.now.wall.milliseconds
        stage.backend(
            #"{"kind":"message","id":"\#(id)",\#(named)"sender":{"name":"Alice B"},"text":"\#(text)","at":\#(at)}"#,
            over: link)
    }

    @Test(
        "a message whose reference the author alone gets back is shown once, whichever copy comes first",
        arguments: [[-1, 0], [0, -1]], ["hello", "HELLO"])
    func authorsReference(_ order: [Int], _ shownAs: String) throws {
        let stage = try stage { $0.confirmation = .echoByID }
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        let ref = stage.newestSentID()
        copy("57", shownAs, over: order[0], of: stage, ref: ref)
        stage.relay("58", "between", by: "Remy")
        copy("57", shownAs, over: order[1], of: stage, ref: ref)
        #expect(stage.said(2) == ["alice: hello", "Remy: between"])
        #expect(stage.said(1) == ["alice: hello", "Remy: between"])
        #expect(stage.own?.outbox.isEmpty == true)
        stage.loseOwn()
        stage.harness.advance(by: .seconds(120))
        #expect(stage.sent().filter { $0.contains("message") } == ["-1 message Alice B: hello"])
    }

    @Test(
        "where the answer comes too late, the copy has been shown, and the message is not shown again",
        arguments: ["hello", "HELLO"])
    func authorsReferenceIsLate(_ shownAs: String) throws {
        let stage = try stage { $0.confirmation = .echoByID }
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        let ref = stage.newestSentID()
        copy("57", shownAs, over: 0, of: stage, ref: ref)
        #expect(stage.said(2) == [])
        stage.harness.advance(by: .seconds(3))
        #expect(stage.said(2) == ["alice: \(shownAs)"])
        copy("57", shownAs, over: OwnLinkStage.own, of: stage, ref: ref)
        #expect(stage.said(2) == [])
        #expect(stage.own?.outbox.isEmpty == true)
    }

    @Test("the same words said elsewhere are another message, also while the reference is awaited")
    func sameWordsElsewhere() throws {
        let stage = try stage { $0.confirmation = .echoByID }
        stage.harness.send(1, "PRIVMSG #lobby :ok")
        let ref = stage.newestSentID()
        copy("57", "ok", over: 0, of: stage, ref: ref)
        copy("58", "ok", over: OwnLinkStage.own, of: stage, ref: ref)
        copy("58", "ok", over: 0, of: stage, ref: ref)
        #expect(stage.said(2) == ["alice: ok", "alice: ok"])
        let ids = ["57", "58"].map { stage.room.recent.entry(upstreamID: ChatID($0))?.sequence }
        #expect(ids == [0, 1])
        #expect(stage.own?.outbox.isEmpty == true)
    }

    @Test("where the room's link has references too, the same words without one are somebody's elsewhere")
    func referencesForAll() throws {
        let stage = try stage { $0.confirmation = .echoByID }
        for (id, text) in [("57", "one"), ("58", "ok")] {
            stage.harness.send(1, "PRIVMSG #lobby :\(text)")
            let ref = stage.newestSentID()
            if text == "ok" { stage.relay("60", "ok", by: "Alice B") }
            stage.backend(
                #"{"kind":"message","id":"\#(id)","ref":"\#(ref)","sender":{"name":"Alice B"},"text":"\#(text)"}"#)
        }
        #expect(stage.said(2) == ["alice: one", "alice: ok", "alice: ok"])
        #expect(stage.room.recent.entry(upstreamID: ChatID("60"))?.sequence == 1)
        #expect(stage.own?.outbox.isEmpty == true)
    }

    @Test("a copy that came before the own link was lost confirms the message by its text, and it is not sent again")
    func authorsReferenceIsLost() throws {
        let stage = try stage {
            $0.confirmation = .echoByID
            $0.history = .call
        }
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        copy("57", "hello", over: 0, of: stage, ref: "")
        stage.loseOwn()
        #expect(stage.said(2) == ["alice: hello"])
        #expect(stage.own?.outbox.isEmpty == true)
        stage.harness.advance(by: .seconds(60))
        #expect(stage.sent().filter { $0.contains("message") } == ["-1 message Alice B: hello"])
        #expect(stage.said(2) == [])
    }

    @Test("what a first history brought quietly is shown when it comes live")
    func comesAfterTheHistory() throws {
        let stage = try OwnLinkStage(OwnLinkStage.silent { $0.history = .call }) { $0.historyLimit = 50 }
        stage.enterBoth()
        #expect(stage.harness.takeHistoryQueries().count == 1)
        let row = ChatMessage(
            id: ChatID("57"), sender: ChatPerson(name: "Alice B"), text: "from my phone",
            at: stage.harness.clock.now.wall)
        stage.harness.answerHistory(.success([row]), isComplete: true)
        copy("57", "from my phone", over: 0, of: stage, ref: "")
        copy("57", "from my phone", over: 0, of: stage, ref: "")
        #expect(stage.said(2) == ["alice: from my phone"])
    }

    // MARK: - The same person elsewhere

    @Test("what the same person says elsewhere is the IRC user's, also to themselves")
    func elsewhere() throws {
        let stage = try stage()
        stage.relay("60", "from my phone", by: "Alice B")
        #expect(stage.heard(2) == [":alice PRIVMSG #lobby :from my phone"])
        #expect(stage.said(1) == ["alice: from my phone"])
        #expect(stage.room.recent.entry(upstreamID: ChatID("60"))?.puppet == stage.own?.puppet)
    }

    @Test("what the own link brings of others is the room's link's to show")
    func ignored() throws {
        let stage = try stage()
        stage.relay("60", "hello", by: "Remy", over: OwnLinkStage.own)
        stage.backend(#"{"kind":"join","user":{"name":"Remy"}}"#, over: OwnLinkStage.own)
        stage.backend(#"{"kind":"typing","state":"start","sender":{"name":"Remy"}}"#, over: OwnLinkStage.own)
        stage.backend(#"{"kind":"system","text":"news"}"#, over: OwnLinkStage.own)
        #expect(stage.heard(1).isEmpty)
        #expect(stage.heard(2).isEmpty)
        stage.relay("60", "hello", by: "Remy")
        #expect(stage.said(2) == ["Remy: hello"])
    }

    @Test("nobody else appears when the own link joins, types or leaves")
    func nobodyAppears() throws {
        let stage = try stage()
        for frame in [
            #"{"kind":"join","user":{"name":"Alice B"}}"#,
            #"{"kind":"typing","state":"start","sender":{"name":"Alice B"}}"#,
            #"{"kind":"presence","state":"away","user":{"name":"Alice B"}}"#,
            #"{"kind":"leave","user":{"name":"Alice B"}}"#,
        ] {
            stage.backend(frame)
            #expect(stage.heard(2).isEmpty, "\(frame)")
        }
        #expect(stage.room.memberCount == 2)
    }

    @Test("whoever was shown as that person leaves when the IRC user comes, and is shown again when they are gone")
    func stranger() throws {
        let stage = try OwnLinkStage(OwnLinkStage.silent())
        stage.enter("bob", 2)
        stage.relay("1", "before", by: "Alice B")
        #expect(stage.said(2) == ["Alice-B: before"])
        stage.enter("alice", 1, account: "alice")
        #expect(stage.heard(2).contains(":Alice-B PART #lobby"))
        stage.harness.send(1, "PRIVMSG #lobby :last words")
        stage.harness.send(1, "PART #lobby")
        _ = stage.heard(2)
        stage.relay("2", "last words", by: "Alice B")
        #expect(stage.said(2).isEmpty)
        stage.relay("3", "after", by: "Alice B")
        #expect(stage.said(2) == ["Alice-B: after"])
    }

    // MARK: - Other things than words

    @Test("typing goes over the link of whoever types, and neither stops the other's")
    func typing() throws {
        let stage = try stage()
        stage.harness.send(1, "@+typing=active TAGMSG #lobby")
        stage.harness.send(2, "@+typing=active TAGMSG #lobby")
        #expect(stage.sent() == ["-1 typing Alice B: start", "0 typing chatbridge: start"])
        stage.harness.send(1, "@+typing=done TAGMSG #lobby")
        #expect(stage.sent() == ["-1 typing Alice B: stop"])
        stage.harness.send(2, "@+typing=done TAGMSG #lobby")
        #expect(stage.sent() == ["0 typing chatbridge: stop"])
    }

    @Test("reactions go over the own link; the echo is not shown, one made elsewhere is the IRC user's")
    func reactions() throws {
        let stage = try stage()
        stage.relay("60", "soup", by: "Remy")
        let msgid = try #require(stage.room.recent.newest?.msgid)
        stage.harness.send(1, "@+draft/react=👍;+reply=\(msgid) TAGMSG #lobby")
        #expect(stage.sent() == ["-1 reaction 👍"])
        _ = stage.heard(2)
        let echo = #"{"kind":"reaction","target":"60","emoji":"👍","op":"add","sender":{"name":"Alice B"}}"#
        stage.backend(echo)
        #expect(stage.heard(2).isEmpty)
        stage.backend(echo.replacing("👍", with: "😂"))
        #expect(stage.heard(2) == [":alice TAGMSG #lobby"])
        // Each has reactions of their own.
        stage.harness.send(2, "@+draft/react=👍;+reply=\(msgid) TAGMSG #lobby")
        stage.harness.send(1, "@+draft/unreact=👍;+reply=\(msgid) TAGMSG #lobby")
        stage.harness.send(2, "@+draft/unreact=👍;+reply=\(msgid) TAGMSG #lobby")
        #expect(stage.sent().map { $0.prefix(11) } == ["0 reaction ", "-1 reaction", "0 reaction "])
    }

    @Test("taking back goes over the own link")
    func redaction() throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG #lobby :oops")
        stage.relay("57", "oops", by: "Alice B")
        _ = stage.sent()
        let msgid = try #require(stage.room.recent.newest?.msgid)
        stage.harness.send(1, "REDACT #lobby \(msgid)")
        #expect(stage.sent() == ["-1 delete 57"])
        stage.backend(#"{"kind":"delete","ids":["57"],"sender":{"name":"Alice B"}}"#)
        #expect(stage.heard(2).filter { $0.contains("REDACT") }.count == 1)
    }

    @Test("reading is told by the account's own call")
    func reading() throws {
        let stage = try stage()
        stage.relay("60", "soup", by: "Remy")
        _ = stage.harness.accounts.takeCalls()
        stage.harness.advance(by: .seconds(1))
        let at = try #require(stage.room.recent.newest?.at)
        stage.harness.perform { bridge, _ in
            _ = bridge.rooms[0].moveMarker(of: ClientID(rawValue: 1), to: at, bridge.context)
        }
        let calls = stage.harness.accounts.takeCalls()
        #expect(calls.map(\.path) == ["/read/lobby"])
        #expect(calls.map(\.order.backend.index) == [1])
    }

    // MARK: - Trouble

    @Test("without its link the account's words wait, go nowhere else, and go once it is back")
    func waits() throws {
        let stage = try stage()
        stage.harness.acceptsConnections = false
        stage.loseOwn()
        #expect(stage.heard(2).isEmpty)
        #expect(stage.heard(1).contains { $0.contains("NOTICE #lobby :*** Your own link to chat.example was lost") })
        stage.harness.send(1, "PRIVMSG #lobby :later")
        stage.harness.send(2, "PRIVMSG #lobby :now")
        stage.harness.advance(by: .seconds(60))
        #expect(stage.sent() == ["0 message chatbridge: <bob> now"])
        #expect(stage.said(2) == ["bob: now"])
        #expect(stage.heard(1).contains { $0.contains("NOTE PRIVMSG QUEUED #lobby") })
        stage.harness.acceptsConnections = true
        stage.harness.accept(OwnLinkStage.own)
        #expect(stage.sent() == ["-1 message Alice B: later"])
        #expect(stage.said(2) == ["alice: later"])
        #expect(stage.heard(1).contains { $0.hasSuffix("Your own link to chat.example is back.") })
    }

    @Test("a room that the operator disables leaves the account's own link alone")
    func disabled() throws {
        let stage = try stage()
        stage.harness.perform { bridge, now in #expect(bridge.disable("lobby", now: now) == true) }
        #expect(!stage.room.link.isUp && stage.own?.link.isUp == true)
        stage.harness.send(2, "PRIVMSG #lobby :later")
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        #expect(stage.sent() == ["-1 message Alice B: hello"])
        #expect(stage.said(2) == ["alice: hello"])
    }

    @Test("who watches the room is told whose link it is, where it is not the room's")
    func watched() throws {
        let stage = try stage()
        var passages: [String] = []
        stage.harness.perform { bridge, _ in
            bridge.watch(
                passages: { passage in
                    let line = JSONValue.object(passage.json ?? [])
                    passages.append(["flow", "account", "text"].map { line[$0]?.string ?? "-" }.joined(separator: " "))
                }, frames: nil)
        }
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        stage.harness.send(2, "PRIVMSG #lobby :hi")
        stage.relay("57", "hello", by: "Alice B", over: OwnLinkStage.own)
        #expect(
            passages == [
                "irc-in - hello", "backend-out alice hello", "irc-out - hello", "irc-in - hi", "backend-out - <bob> hi",
                "irc-out - hi", "backend-in alice hello",
            ])
    }

    @Test("a message that waited too long fails and is never sent")
    func expires() throws {
        let stage = try stage()
        stage.harness.acceptsConnections = false
        stage.loseOwn()
        stage.harness.send(1, "PRIVMSG #lobby :too late")
        stage.harness.advance(by: .seconds(15 * 60 + 1))
        #expect(stage.heard(1).contains { $0.contains("FAIL PRIVMSG CANNOT_DELIVER #lobby") })
        stage.harness.acceptsConnections = true
        stage.harness.accept(OwnLinkStage.own)
        #expect(stage.sent().isEmpty)
    }

    @Test("refused credentials are the account's trouble alone; new ones are noticed")
    func refused() throws {
        let stage = try stage()
        stage.harness.acceptsConnections = false
        stage.harness.credentials[OwnLinkStage.own] = .success(
            UpstreamCredentials(headers: [.init(name: "A", value: "old")]))
        stage.loseOwn()
        stage.harness.advance(by: .seconds(2))
        stage.harness.refuse(OwnLinkStage.own, status: 401)
        stage.harness.refuse(OwnLinkStage.own, status: 401)
        let told = stage.heard(1)
        #expect(
            told.contains {
                $0.contains("chat.example refuses your own login") && $0.contains("Have the operator renew it")
            })
        #expect(stage.heard(2).isEmpty)
        stage.harness.send(1, "PRIVMSG #lobby :mine")
        stage.harness.send(2, "PRIVMSG #lobby :fine")
        #expect(stage.sent() == ["0 message chatbridge: <bob> fine"])
        stage.harness.acceptsConnections = true
        stage.harness.credentials[OwnLinkStage.own] = .success(
            UpstreamCredentials(headers: [.init(name: "A", value: "new")]))
        stage.harness.advance(by: .seconds(11))
        #expect(stage.sent() == ["-1 message Alice B: mine"])
    }

    @Test("a complaint over the own link is about what went over it")
    func complaint() throws {
        let stage = try stage()
        for link in [0, OwnLinkStage.own] { stage.harness.upstream(link).isSilent = true }
        stage.harness.send(2, "PRIVMSG #lobby :bob's")
        stage.harness.send(1, "PRIVMSG #lobby :alice's")
        stage.backend(#"{"kind":"error","code":"x","text":"too rude"}"#, over: OwnLinkStage.own)
        #expect(stage.heard(1).contains { $0.hasPrefix(":bridge FAIL PRIVMSG CANNOT_DELIVER #lobby") })
        #expect(!stage.heard(2).contains { $0.contains("FAIL") })
    }

    @Test("nothing goes out before it is known as whom the backend sees the account")
    func unnamed() throws {
        let stage = try OwnLinkStage(OwnLinkStage.silent())
        stage.me = nil
        stage.enterBoth()
        stage.harness.send(1, "PRIVMSG #lobby :who am I")
        #expect(stage.sent().isEmpty)
        stage.me = #"{"id":"7","name":"Alice B"}"#
        stage.harness.advance(by: .seconds(61))
        #expect(stage.sent() == ["-1 message Alice B: who am I"])
        stage.relay("1", "who am I", by: "Alice B")
        #expect(stage.said(2) == ["alice: who am I"])
    }

    @Test("an own login that is the room's own account is not used")
    func shared() throws {
        let stage = try OwnLinkStage(OwnLinkStage.silent()) { $0.account = ChatPerson(name: "Alice B") }
        stage.enterBoth()
        stage.harness.send(1, "PRIVMSG #lobby :mine")
        #expect(stage.sent().isEmpty)
        #expect(stage.own?.isBarred == true)
        stage.harness.send(2, "PRIVMSG #lobby :fine")
        stage.relay("1", "<bob> fine", by: "Alice B")
        #expect(stage.sent() == ["0 message Alice B: <bob> fine"])
        #expect(stage.said(2) == ["bob: fine"])
    }

    // MARK: - Outages of the room's link

    @Test("while the room's link is down the account goes on, and the history shows nothing twice")
    func roomDown() throws {
        let stage = try stage { $0.history = .call }
        stage.relay("1", "before", by: "Remy")
        stage.harness.acceptsConnections = false
        stage.harness.endTransport(0, reason: "the connection was reset")
        _ = stage.said(2)
        stage.harness.send(1, "PRIVMSG #lobby :meanwhile")
        #expect(stage.sent() == ["-1 message Alice B: meanwhile"])
        #expect(stage.said(2) == ["alice: meanwhile"])
        stage.harness.advance(by: .seconds(2))
        stage.harness.acceptsConnections = true
        stage.harness.accept(0)
        #expect(stage.harness.takeHistoryQueries().count == 1)
        let at = stage.harness.clock.now.wall
        stage.harness.answerHistory(
            .success([
                ChatMessage(id: ChatID("1"), sender: ChatPerson(name: "Remy"), text: "before", at: at),
                ChatMessage(id: ChatID("2"), sender: ChatPerson(name: "Alice B"), text: "meanwhile", at: at),
                ChatMessage(id: ChatID("3"), sender: ChatPerson(name: "Alice B"), text: "from my phone", at: at),
            ]), isComplete: true)
        #expect(stage.said(2) == ["alice: from my phone"])
    }

    @Test(
        "what was written over a lost own link is looked up in the history, and sent again only if it is not there",
        arguments: [true, false])
    func settles(_ hasArrived: Bool) throws {
        let stage = try stage {
            $0.history = .call
            $0.confirmation = .receipt
        }
        stage.harness.send(1, "PRIVMSG #lobby :perhaps")
        #expect(stage.sent() == ["-1 message Alice B: perhaps"])
        stage.loseOwn()
        stage.harness.advance(by: .seconds(2))
        #expect(stage.own?.link.isUp == true)
        #expect(stage.sent().isEmpty)
        #expect(stage.harness.takeHistoryQueries().count == 1)
        let found = ChatMessage(
            id: ChatID("8"), sender: ChatPerson(name: "Alice B"), text: "perhaps", at: stage.harness.clock.now.wall)
        stage.harness.answerHistory(.success(hasArrived ? [found] : []), isComplete: true)
        #expect(stage.sent() == [])
        stage.harness.advance(by: CatchUp.patience)
        #expect(stage.harness.takeHistoryQueries().count == (hasArrived ? 0 : 1))
        if !hasArrived { stage.harness.answerHistory(.success([]), isComplete: true) }
        #expect(stage.sent() == (hasArrived ? [] : ["-1 message Alice B: perhaps"]))
        if !hasArrived {
            #expect(stage.said(2).isEmpty)
            stage.relay("8", "perhaps", by: "Alice B")
        }
        #expect(stage.said(2) == ["alice: perhaps"])
        #expect(stage.own?.outbox.isEmpty == true)
    }

    // MARK: - Coming and going

    @Test("the link goes five minutes after the last client, once everything is said")
    func lingers() throws {
        let stage = try stage()
        stage.enter("alice", 3, account: "alice")
        _ = stage.linkEvents()
        stage.harness.disconnect(1)
        stage.harness.advance(by: .seconds(400))
        #expect(stage.linkEvents().isEmpty)
        stage.harness.disconnect(3)
        stage.harness.advance(by: .seconds(299))
        #expect(stage.linkEvents().isEmpty)
        stage.harness.advance(by: .seconds(2))
        #expect(stage.linkEvents() == ["-1 closed"])
        #expect(stage.own == nil)
        #expect(stage.harness.bridge.context.ownLinks.isEmpty)
        stage.enter("alice", 4, account: "alice")
        #expect(stage.linkEvents() == ["-1 connected"])
        stage.harness.send(4, "PRIVMSG #lobby :back")
        #expect(stage.sent() == ["-1 message Alice B: back"])
    }

    @Test("what waits keeps the link of somebody who left, until it is said")
    func lingersForOutbox() throws {
        let stage = try OwnLinkStage(OwnLinkStage.silent()) { $0.queueMaxAge = .seconds(3600) }
        stage.enterBoth()
        stage.harness.acceptsConnections = false
        stage.loseOwn()
        stage.harness.send(1, "PRIVMSG #lobby :parting words")
        stage.harness.disconnect(1)
        stage.harness.advance(by: .seconds(600))
        #expect(stage.own != nil)
        stage.harness.acceptsConnections = true
        stage.harness.accept(OwnLinkStage.own)
        #expect(stage.sent() == ["-1 message Alice B: parting words"])
        #expect(stage.said(2) == ["alice: parting words"])
        #expect(stage.own == nil)
    }

    @Test("where the configuration has the room no longer, the link goes at once")
    func retires() throws {
        let stage = try stage()
        stage.harness.perform { bridge, now in
            var settings = stage.harness.settings
            settings.rooms = []
            settings.accounts[0].ownLogins = [:]
            bridge.reload(settings, reconnecting: [], backends: [], now: now)
        }
        #expect(stage.harness.bridge.rooms.isEmpty)
        #expect(stage.harness.bridge.context.ownLinks.isEmpty)
    }

    @Test("somebody who comes back in time finds the link")
    func comesBack() throws {
        let stage = try stage()
        _ = stage.linkEvents()
        stage.harness.send(1, "PART #lobby")
        stage.harness.advance(by: .seconds(200))
        stage.harness.send(1, "JOIN #lobby")
        stage.harness.advance(by: .seconds(1000))
        #expect(stage.linkEvents().isEmpty)
        stage.relay("9", "from my phone", by: "Alice B")
        #expect(stage.said(2) == ["alice: from my phone"])
    }

    @Test("a stop waits for what the account said, and ends both links")
    func stops() throws {
        let stage = try stage()
        stage.harness.acceptsConnections = false
        stage.loseOwn()
        stage.harness.send(1, "PRIVMSG #lobby :wait for me")
        stage.harness.advance(by: .seconds(2))
        stage.harness.shutdown()
        #expect(stage.linkEvents().contains("0 closed") == false)
        stage.harness.accept(OwnLinkStage.own)
        #expect(stage.sent() == ["-1 message Alice B: wait for me"])
        stage.harness.advance(by: .seconds(30))
        #expect(stage.linkEvents().filter { $0.hasSuffix("closed") } == ["0 closed", "-1 closed"])
        #expect(stage.hasStopped)
        #expect(stage.harness.violations.isEmpty)
    }

    @Test("links that open in turn do not wait for one that is gone")
    func turns() throws {
        let stage = try OwnLinkStage(OwnLinkStage.silent { $0.connectsInTurn = true })
        stage.enterBoth()
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        #expect(stage.sent() == ["-1 message Alice B: hello"])
        let context = stage.harness.bridge.context
        context.upstream.connects.request(RoomID(index: -99), inTurnOf: "b", &context.turn)
        stage.harness.advance(by: .seconds(1))
        stage.harness.endTransport(0, reason: "reset")
        stage.harness.advance(by: .seconds(3))
        #expect(stage.room.link.isUp)
    }
}

@Suite("Accounts with a link of their own, where senders are named")
struct OwnPuppetTests {
    private func stage() throws -> OwnLinkStage {
        let stage = try OwnLinkStage(OwnLinkStage.echoing(), asks: false)
        stage.enterBoth()
        return stage
    }

    @Test(
        "an echo confirms once, whichever link brings it first, and whoever the backend says it was",
        arguments: [[-1, 0], [0, -1], [0], [-1]], [false, true])
    func echoes(_ order: [Int], _ isRenamed: Bool) throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        let id = stage.newestSentID()
        let sender = isRenamed ? "user-7" : stage.newestSenderID()
        #expect(stage.sent() == ["-1 message alice: hello"])
        #expect(stage.said(2).isEmpty)
        for link in order { stage.echo(id, "hello", by: sender, over: link) }
        #expect(stage.heard(2) == [":alice PRIVMSG #lobby :hello"])
        #expect(stage.said(1) == ["alice: hello"])
        // From now on that person is the IRC user.
        stage.backend(#"{"kind":"typing","state":"start","sender":{"id":"\#(sender)","name":"Alice B"}}"#)
        #expect(stage.heard(2).isEmpty)
    }

    @Test("somebody who uses the id of a message again is somebody else")
    func reused() throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        let id = stage.newestSentID()
        stage.echo(id, "hello", by: "user-7", over: OwnLinkStage.own)
        #expect(stage.said(2) == ["alice: hello"])
        stage.backend(#"{"kind":"message","id":"\#(id)","sender":{"id":"m","name":"Mallory"},"text":"mine"}"#)
        #expect(stage.said(2) == ["Mallory: mine"])
        stage.harness.send(1, "PRIVMSG #lobby :again")
        let second = stage.newestSentID()
        stage.echo(second, "again", by: "user-7", over: 0)
        #expect(stage.said(2) == ["alice: again"])
    }

    @Test("a lost link sends again under the same id, over the own link")
    func again() throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        let id = stage.newestSentID()
        _ = stage.sent()
        stage.loseOwn()
        stage.harness.advance(by: .seconds(3))
        #expect(stage.newestSentID() == id)
        #expect(stage.sent() == ["-1 message alice: hello"])
        stage.echo(id, "hello", by: stage.own?.puppet.rawValue ?? "", over: 0)
        stage.echo(id, "hello", by: stage.own?.puppet.rawValue ?? "", over: OwnLinkStage.own)
        #expect(stage.said(2) == ["alice: hello"])
        #expect(stage.own?.outbox.isEmpty == true)
    }

    @Test("a person that is configured wrongly is corrected by the first echo")
    func misconfigured() throws {
        let stage = try OwnLinkStage(OwnLinkStage.echoing(), person: "nobody", asks: false)
        stage.enterBoth()
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        let id = stage.newestSentID()
        for link in [0, OwnLinkStage.own] { stage.echo(id, "hello", by: "user-7", over: link) }
        #expect(stage.heard(2) == [":alice PRIVMSG #lobby :hello"])
    }

    @Test("the configured person is the sender, and is the IRC user from the start")
    func configured() throws {
        let stage = try OwnLinkStage(OwnLinkStage.echoing(), person: "user-7", asks: false)
        stage.enterBoth()
        stage.echo("x", "from my phone", by: "user-7", over: 0)
        #expect(stage.heard(2) == [":alice PRIVMSG #lobby :from my phone"])
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        #expect(stage.newestSenderID() == "user-7")
    }

    @Test("reading, typing and reactions go over the own link; the backend is not told twice who is here")
    func others() throws {
        var dialect = OwnLinkStage.echoing()
        dialect.unsupported = []
        let stage = try OwnLinkStage(dialect, asks: false)
        stage.enter("bob", 2)
        stage.enter("alice", 1, account: "alice")
        #expect(stage.sent().allSatisfy { !$0.contains("join") || $0.hasPrefix("0 ") })
        #expect(stage.room.presenceReport.knownCount == 1)
        stage.harness.advance(by: .seconds(1))
        stage.echo("m1", "soup", by: "u-remy", over: 0)
        let entry = try #require(stage.room.recent.newest)
        stage.harness.perform { bridge, _ in
            _ = bridge.rooms[0].moveMarker(of: ClientID(rawValue: 1), to: entry.at, bridge.context)
        }
        stage.harness.send(1, "@+typing=active TAGMSG #lobby")
        stage.harness.send(1, "@+draft/react=👍;+reply=\(entry.msgid) TAGMSG #lobby")
        #expect(stage.sent().map { String($0.prefix(11)) }.sorted() == ["-1 reaction", "-1 receipt ", "-1 typing a"])
    }
}

@Suite("Accounts with a link of their own, whatever happens")
struct OwnLinkLawTests {
    /// A relay that sends everything to everybody, as far as it is connected, and stamps senders with who they are.
    private final class Relay {
        let stage: OwnLinkStage
        /// What was sent and not looked at yet, by link.
        private(set) var received: [(link: Int, id: String, text: String)] = []
        private var waiting: [Int: [String]] = [0: [], OwnLinkStage.own: []]

        init(_ stage: OwnLinkStage) { self.stage = stage }

        /// Takes what went up, and has it wait for both links.
        func take() {
            for frame in stage.takeMessages() {
                received.append((frame.link, frame.id, frame.text))
                let sender = frame.link == 0 ? frame.sender : "user-7"
                let json =
                    #"{"kind":"message","id":"\#(frame.id)","sender":{"id":"\#(sender)"},"text":"\#(frame.text)"}"#
                for link in waiting.keys { waiting[link, default: []].append(json) }
            }
        }

        /// Hands a link what waits for it, or a part.
        func deliver(_ link: Int, _ count: Int) {
            guard stage.harness.upstream(link).state == .open else { return }
            for _ in 0..<count where waiting[link]?.isEmpty == false {
                stage.backend(waiting[link]?.removeFirst() ?? "", over: link)
            }
        }

        func lost(_ link: Int) { waiting[link] = [] }
        var isIdle: Bool { waiting.values.allSatisfy(\.isEmpty) }
    }

    @Test(
        "each word is shown once, under its author's nick, and went over the author's link",
        arguments: LawSeeds.seeds(20))
    func law(seed: UInt64) throws {
        let stage = try OwnLinkStage(OwnLinkStage.echoing(), asks: false) { $0.queueMaxAge = .seconds(100_000) }
        stage.enterBoth()
        let relay = Relay(stage)
        var random = SeededGenerator(seed: seed)
        var said: [String: String] = [:]
        var shown: [String: Int] = [:]
        func look() {
            for line in stage.said(2) { shown[line, default: 0] += 1 }
        }
        for step in 0..<120 {
            switch UInt64.random(in: 0..<12, using: &random) {
            case 0...3:
                let client: UInt64 = Bool.random(using: &random) ? 1 : 2
                said["word \(step)"] = client == 1 ? "alice" : "bob"
                stage.harness.send(client, "PRIVMSG #lobby :word \(step)")
            case 4, 5: relay.take()
            case 6, 7: relay.deliver(0, Int.random(in: 1...3, using: &random))
            case 8, 9: relay.deliver(OwnLinkStage.own, Int.random(in: 1...3, using: &random))
            case 10:
                let link = Bool.random(using: &random) ? 0 : OwnLinkStage.own
                // What the backend took is delivered to the other one all the same.
                relay.take()
                relay.lost(link)
                stage.harness.endTransport(link, reason: "reset")
            default: stage.harness.advance(by: .seconds(Int.random(in: 0...40, using: &random)))
            }
            look()
        }
        for _ in 0..<50 {
            stage.harness.advance(by: .seconds(40))
            relay.take()
            for link in [0, OwnLinkStage.own] { relay.deliver(link, 1000) }
            look()
        }
        #expect(shown == Dictionary(uniqueKeysWithValues: said.map { ("\($0.value): \($0.key)", 1) }))
        for frame in relay.received {
            #expect(said[frame.text] == (frame.link == 0 ? "bob" : "alice"), "\(frame)")
        }
        #expect(stage.harness.violations.isEmpty)
    }

    /// A backend with ids of its own, a history, and references that it gives back to the author's link alone.
    private final class Log {
        let stage: OwnLinkStage
        private(set) var rows: [ChatMessage] = []
        private var waiting: [Int: [String]] = [0: [], OwnLinkStage.own: []]

        init(_ stage: OwnLinkStage) { self.stage = stage }

        func take() {
            for frame in stage.takeMessages() {
                add(frame.text, by: frame.link == 0 ? "chatbridge" : "Alice B", over: frame.link, ref: frame.id)
            }
        }

        func add(_ text: String, by name: String, over author: Int? = nil, ref: String = "") {
            let row = ChatMessage(
                id: ChatID("\(rows.count + 1)"), sender: ChatPerson(name: name), text: text,
                at: stage.harness.clock.now.wall)
            rows.append(row)
            for link in waiting.keys {
                let named = link == author ? #""ref":"\#(ref)","# : ""
                waiting[link, default: []].append(
                    #"{"kind":"message","id":"\#(rows.count)",\#(named)"sender":{"name":"\#(name)"},"text":"\#(text)","#
                        + #""at":\#(stage.harness.clock.now.wall.milliseconds)}"#)
            }
        }

        func deliver(_ link: Int, _ count: Int) {
            guard stage.harness.upstream(link).state == .open else { return }
            for _ in 0..<count where waiting[link]?.isEmpty == false {
                stage.backend(waiting[link]?.removeFirst() ?? "", over: link)
            }
        }

        func lose(_ link: Int) {
            waiting[link] = []
            stage.harness.endTransport(link, reason: "reset")
        }

        func answerHistories() {
            for _ in stage.harness.takeHistoryQueries() {
                stage.harness.answerHistory(.success(rows.suffix(100)), isComplete: rows.count <= 100)
            }
        }
    }

    @Test(
        "each word is shown once and goes up once where references come back over the author's link alone",
        arguments: LawSeeds.seeds(20))
    func authorsReferences(seed: UInt64) throws {
        let dialect = OwnLinkStage.silent {
            ($0.confirmation, $0.history, $0.echoesOwnMessages) = (.echoByID, .call, true)
        }
        let stage = try OwnLinkStage(dialect) { ($0.queueMaxAge, $0.historyLimit) = (.seconds(100_000), 50) }
        stage.enterBoth()
        let log = Log(stage)
        log.answerHistories()
        var random = SeededGenerator(seed: seed)
        var said: [String] = []
        var shown: [String] = []
        func chance(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
        for step in 0..<100 {
            switch chance(0...12) {
            case 0, 1:
                said.append("alice: word \(step)")
                stage.harness.send(1, "PRIVMSG #lobby :word \(step)")
            case 2:
                said.append("bob: word \(step)")
                stage.harness.send(2, "PRIVMSG #lobby :word \(step)")
            case 3:
                said.append("alice: word \(step)")
                log.add("word \(step)", by: "Alice B")
            case 4, 5: log.take()
            case 6, 7: log.deliver(0, chance(1...3))
            case 8: log.deliver(OwnLinkStage.own, chance(1...3))
            case 9:
                log.take()
                log.lose(chance(0...2) == 0 ? 0 : OwnLinkStage.own)
            case 10: log.answerHistories()
            default: stage.harness.advance(by: .milliseconds(chance(0...4000)))
            }
            shown += stage.said(2)
        }
        for _ in 0..<40 {
            stage.harness.advance(by: .seconds(5))
            log.take()
            log.answerHistories()
            for link in [0, OwnLinkStage.own] { log.deliver(link, 1000) }
            shown += stage.said(2)
        }
        let words = log.rows.map { $0.text.replacing("<bob> ", with: "") }
        #expect(words.sorted() == said.map { $0.replacing(#/^\w+: /#, with: "") }.sorted())
        #expect(shown.sorted() == said.sorted())
        #expect(stage.own?.outbox.isEmpty == true && stage.room.waitingCount == 0)
        #expect(stage.harness.violations.isEmpty)
    }
}
