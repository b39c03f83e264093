import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import JSONText
import Testing
import Upstream

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("What became of a message")
struct SessionConfirmationTests {
    private typealias S = SessionStage

    /// bob and eve are in the room, on a wire as `change` says.
    private static func stage(
        _ confirmation: DialectTraits.Confirmation, _ origin: DialectTraits.MessageIDOrigin,
        identity: DialectTraits.Identity = .puppet, history: DialectTraits.HistorySource = .none,
        past: [String] = [S.message("1", "one", at: -60)], _ change: (inout DialectTraits) -> Void = { _ in }
    ) throws -> SessionStage {
        let stage = try SessionStage(
            StubDialect {
                $0.confirmation = confirmation
                $0.messageIDOrigin = origin
                $0.identity = identity
                $0.history = history
                change(&$0)
            })
        stage.harness.start()
        if history != .none { stage.backend(S.history(past)) }
        stage.enter("bob", 1, caps: "echo-message standard-replies")
        stage.enter("eve", 2)
        _ = (stage.heard(1), stage.sent(), stage.seen())
        return stage
    }

    private static func say(_ text: String, _ stage: SessionStage) -> JSONValue {
        stage.harness.send(1, "PRIVMSG #lobby :" + text)
        return stage.sent().last ?? .null
    }

    private static func id(_ frame: JSONValue) -> String { frame["id"]?.string ?? "" }

    /// The message as the backend sends it round: the same sender, with the server's id.
    private static func echo(_ frame: JSONValue, id: String? = nil, ref: String? = nil) -> String {
        var members = frame.object ?? []
        members.removeAll { $0.key == "id" || $0.key == "at" }
        members.append(.init("id", .string(id ?? Self.id(frame))))
        if let ref { members.append(.init("ref", .string(ref))) }
        return JSONValue.object(members).text
    }

    private static func own(_ text: String, id: String, ref: String? = nil) -> String {
        let ref = ref.map { "\"ref\":\"\($0)\"," } ?? ""
        return "{\"kind\":\"message\",\"self\":true,\"id\":\"\(id)\",\(ref)\"sender\":{\"name\":\"acct\"},"
            + "\"text\":\"\(text)\"}"
    }

    // MARK: - Acknowledged by people

    @Test("where people acknowledge, a ping that the server answers after the message confirms it too")
    func pongConfirms() throws {
        let stage = try Self.stage(.receipt, .client) { $0.acknowledgedByPeople = true }
        let first = Self.say("one", stage)
        #expect(stage.said(2) == ["bob: one"])
        _ = Self.say("two", stage)
        #expect(stage.seen() == ["0 message", "0 [ping]", "0 message", "0 [ping]"])
        #expect(stage.said(1) == ["bob: one", "bob: two"] && stage.said(2) == ["bob: two"])
        // The acknowledgement that comes after all is nothing new.
        stage.backend("{\"kind\":\"receipt\",\"state\":\"read\",\"ids\":[\"\(Self.id(first))\"]}")
        stage.harness.advance(by: .seconds(60))
        #expect(stage.said(1) == [] && stage.seen() == [])
        #expect(stage.harness.violations == [])
    }

    @Test("an answer to a ping that was sent before the message confirms nothing")
    func earlierPong() throws {
        let stage = try Self.stage(.receipt, .client) { $0.acknowledgedByPeople = true }
        stage.harness.upstreams[0].isSilent = true
        _ = Self.say("one", stage)
        stage.harness.advance(by: .seconds(5))
        #expect(stage.said(2) == [])
        stage.loseLink()
        stage.harness.upstreams[0].isSilent = false
        stage.harness.advance(by: .seconds(5))
        #expect(stage.said(2) == ["bob: one"], "sent again over the next link, and settled there")
    }

    // MARK: - Other rooms, and deliveries

    @Test("what the backend says of another room is not shown, and the operator hears of it once")
    func otherRooms() throws {
        let stage = try Self.stage(.receipt, .client)
        stage.backend(S.message("1", "here", more: "\"room\":\"lobby\","))
        for id in ["2", "3"] { stage.backend(S.message(id, "elsewhere", more: "\"room\":\"kitchen\",")) }
        stage.backend(S.message("4", "nowhere in particular"))
        #expect(stage.said(1) == ["ann: here", "ann: nowhere in particular"])
        #expect(stage.notes("other-room").count == 1)
    }

    @Test("a room that the backend calls by another name counts from its announcement on")
    func announcedRooms() throws {
        let stage = try Self.stage(.receipt, .client) { $0.waitsForReady = true }
        stage.backend("{\"kind\":\"ready\",\"room\":\"7\"}")
        for room in ["7", "lobby", "8"] { stage.backend(S.message(room, room, more: "\"room\":\"\(room)\",")) }
        #expect(stage.said(1) == ["ann: 7", "ann: lobby"])
    }

    @Test("each message that was shown is reported where the backend wants that")
    func deliveries() throws {
        let stage = try Self.stage(.receipt, .client) { $0.reportsDelivery = true }
        stage.backend(S.message("1", "here"))
        let receipts = stage.sent()
        #expect(receipts.map { $0["state"]?.string } == ["delivered"])
        #expect(receipts.first?["ids"]?.array?.map(\.string) == ["1"])
    }

    // MARK: - Confirmed

    @Test("the own message comes back under our id")
    func echoByID() throws {
        let stage = try Self.stage(.echoByID, .client)
        let frame = Self.say("hello", stage)
        #expect(stage.said(2) == [])
        stage.backend(Self.echo(frame))
        #expect(stage.said(1) == ["bob: hello"])
        #expect(stage.said(2) == ["bob: hello"])
        stage.backend(Self.echo(frame))
        #expect(stage.said(2) == [])
    }

    @Test("the own message comes back under the server's id: the oldest of that sender and text is meant")
    func echoByText() throws {
        let stage = try Self.stage(.echoByText, .server)
        let frame = Self.say("ok", stage)
        _ = Self.say("ok", stage)
        stage.backend(S.message("70", "ok"))
        #expect(stage.said(2) == ["ann: ok"], "somebody else's is not ours")
        stage.backend(Self.echo(frame, id: "71"))
        #expect(stage.said(2) == ["bob: ok"])
        stage.backend(Self.echo(frame, id: "71"))
        #expect(stage.said(2) == [], "one id is one message")
        stage.backend(Self.echo(frame, id: "72"))
        #expect(stage.said(2) == ["bob: ok"])
        #expect(stage.room.lane.outbox.isEmpty)
        #expect(stage.room.recent.entry(upstreamID: ChatID("72")) != nil)
    }

    @Test("where a backend's ids begin anew, what is newer is another message, and our id names ours")
    func idsBeginAnew() throws {
        let stage = try Self.stage(.echoByID, .server) { $0.returnsClientIDs = true }
        stage.backend(S.message("1", "before", at: -61))
        stage.backend(S.message("2", "too", at: -60))
        #expect(stage.said(2) == ["ann: before", "ann: too"])
        let before = stage.room.recent.entry(upstreamID: ChatID("1"))?.msgid
        let frame = Self.say("hello", stage)
        stage.backend(Self.echo(frame, id: "1", ref: Self.id(frame)))
        #expect(stage.said(2) == ["bob: hello"] && stage.room.lane.outbox.isEmpty)
        stage.backend(S.message("2", "after", at: -5))
        #expect(stage.said(2) == ["ann: after"])
        let mine = Self.say("mine", stage)
        stage.backend(Self.echo(mine, id: "3", ref: Self.id(mine)))
        #expect(stage.said(2) == ["bob: mine"])
        stage.harness.advance(by: .seconds(5))
        stage.backend(Self.echo(mine, id: "3").replacing("mine", with: "mine, changed"))
        #expect(stage.said(2) == [], "ours comes as the backend has it")
        stage.backend(S.message("3", "not yours", at: 4))
        #expect(stage.said(2) == ["ann: not yours"])
        #expect(stage.room.recent.entry(upstreamID: ChatID("1"))?.msgid == before, "an id stays with its first message")
        #expect(stage.notes("id-reused").count == 1)
    }

    @Test(
        "where messages have no ids, ours comes without our id over the next link, and its text is all the evidence",
        arguments: [true, false])
    func withoutIDs(isLive: Bool) throws {
        var past = [S.message(nil, "one", at: -60)]
        let stage = try Self.stage(.echoByID, .server, identity: .single, history: .socket, past: past) {
            $0.returnsClientIDs = true
        }
        past.append(S.message(nil, "before", at: -30))
        stage.backend(past[1])
        for text in ["yes", "yes"] { _ = Self.say(text, stage) }
        _ = stage.said(2)
        stage.loseLink()
        stage.harness.advance(by: .seconds(3))
        let ours = (1...2).map { second in
            "{\"kind\":\"message\",\"self\":true,\"at\":\(S.base + Int64(second) * 1000),"
                + "\"sender\":{\"name\":\"acct\"},\"text\":\"<bob> yes\"}"
        }
        // What comes live while a history is awaited is in it as well.
        if isLive { ours.forEach { stage.backend($0) } }
        stage.backend(S.history(past + ours))
        #expect(stage.said(2) == ["bob: yes", "bob: yes"])
        #expect(stage.room.lane.outbox.isEmpty)
        #expect(stage.notes("unknown-own-message").isEmpty)
    }

    @Test(
        "what is no newer, or has the same text, came before",
        arguments: [("other", nil), ("other", -60), ("other", -61), ("other", -59), ("one", -5)])
    func idsOnceMore(text: String, at: Int64?) throws {
        let stage = try Self.stage(.echoByID, .server)
        stage.backend(S.message("1", "one", at: -60))
        #expect(stage.said(2) == ["ann: one"])
        stage.backend(S.message("1", text, at: at))
        #expect(stage.said(2) == [] && stage.notes("id-reused").isEmpty)
    }

    @Test("a receipt names our id; in any state, since who read it has it", arguments: ["sent", "delivered", "read"])
    func receipt(state: String) throws {
        let stage = try Self.stage(.receipt, .client)
        let frame = Self.say("hello", stage)
        stage.backend("{\"kind\":\"receipt\",\"state\":\"\(state)\",\"ids\":[\"\(Self.id(frame))\"]}")
        #expect(stage.said(2) == ["bob: hello"])
        stage.backend(Self.echo(frame))
        #expect(stage.said(2) == [], "an echo nobody promised")
    }

    @Test("an answer to our reference and the message's own event come in either order", arguments: [true, false])
    func answerAndEvent(answerFirst: Bool) throws {
        let stage = try Self.stage(.receipt, .server, identity: .single)
        let frame = Self.say("hello", stage)
        let answer = "{\"kind\":\"receipt\",\"state\":\"sent\",\"ref\":\"\(Self.id(frame))\",\"ids\":[\"14\"]}"
        let event = Self.own("<bob> hello", id: "14")
        stage.backend(answerFirst ? answer : event)
        #expect(stage.said(2) == ["bob: hello"])
        stage.backend(answerFirst ? event : answer)
        #expect(stage.said(2) == [])
        #expect(stage.room.recent.entry(upstreamID: ChatID("14"))?.puppet != nil)
    }

    @Test("a message of the same account from elsewhere is shown, when ours that is on its way can no longer be meant")
    func otherDevice() throws {
        let stage = try Self.stage(.receipt, .server, identity: .single)
        _ = Self.say("hello", stage)
        stage.backend(Self.own("from my phone", id: "15"))
        #expect(stage.said(2) == [])
        stage.harness.advance(by: AmbiguousMessages.wait)
        #expect(stage.said(2) == ["acct: from my phone"])
        #expect(stage.room.recent.entry(upstreamID: ChatID("15")) != nil)
        #expect(stage.notes("unknown-own-message").count == 1)
    }

    @Test("where nothing confirms, written is the end, and the id stays unknown until a history tells")
    func written() throws {
        let stage = try Self.stage(.none, .server, identity: .single, history: .socket)
        _ = Self.say("hello", stage)
        #expect(stage.said(2) == ["bob: hello"])
        let msgid = try #require(stage.room.recent.newest?.msgid)
        #expect(stage.room.recent.newest?.upstreamID == nil)
        var found: [ChatID?] = []
        stage.harness.perform { _, _ in
            stage.room.findUpstreamID(of: msgid, stage.harness.bridge.context) { found.append($0) }
        }
        #expect(stage.sent().map { $0["kind"]?.string } == ["fetch"])
        stage.backend(S.history([S.message("1", "one", at: -60), Self.own("<bob> hello", id: "8")]))
        #expect(found == [ChatID("8")])
        #expect(stage.said(2) == [])
        stage.room.findUpstreamID(of: msgid, stage.harness.bridge.context) { found.append($0) }
        stage.room.findUpstreamID(of: "nonsense", stage.harness.bridge.context) { found.append($0) }
        #expect(found == [ChatID("8"), ChatID("8"), nil])
    }

    @Test("of two messages with one text the later id belongs to the later")
    func newestFirst() throws {
        let stage = try Self.stage(.none, .server, identity: .single, history: .socket)
        _ = (Self.say("ok", stage), Self.say("ok", stage))
        let newest = try #require(stage.room.recent.newest?.msgid)
        stage.loseLink()
        stage.harness.advance(by: .seconds(2))
        stage.backend(
            S.history([S.message("1", "one", at: -60), Self.own("<bob> ok", id: "8"), Self.own("<bob> ok", id: "9")]))
        #expect(stage.said(2).filter { $0 == "bob: ok" }.count == 2, "as they were written, and not again")
        #expect(stage.room.recent.entry(upstreamID: ChatID("9"))?.msgid == newest)
        #expect(stage.room.recent.entry(upstreamID: ChatID("8"))?.msgid != newest)
    }

    // MARK: - Learning

    @Test("an echo where none was promised is waited for from then on, until it stays away")
    func learnedEcho() throws {
        let stage = try Self.stage(.none, .server, identity: .single)
        _ = Self.say("one", stage)
        stage.backend(Self.own("<bob> one", id: "8"))
        #expect(stage.said(2) == ["bob: one"])
        #expect(stage.room.lane.delivery.confirmation == .echoByText)
        _ = Self.say("two", stage)
        #expect(stage.said(2) == [])
        stage.backend(Self.own("<bob> two", id: "9"))
        #expect(stage.said(2) == ["bob: two"])
        _ = Self.say("three", stage)
        stage.harness.advance(by: .seconds(10))
        #expect(stage.said(2) == ["bob: three"])
        #expect(stage.room.lane.delivery.confirmation == .none)
        #expect(stage.seen().contains("0 [ping]"), "a dead link would have carried nothing")
    }

    @Test("what comes back after a minute is no echo")
    func lateEcho() throws {
        let stage = try Self.stage(.none, .server, identity: .single)
        _ = Self.say("one", stage)
        stage.harness.advance(by: .seconds(61))
        _ = stage.said(2)
        stage.backend(Self.own("<bob> one", id: "8"))
        #expect(stage.room.lane.delivery.confirmation == .none)
        #expect(stage.room.recent.entry(upstreamID: ChatID("8"))?.puppet == nil)
    }

    @Test("where our ids hold, an echo nobody promised is a duplicate")
    func unpromisedEcho() throws {
        let stage = try Self.stage(.none, .client)
        let frame = Self.say("one", stage)
        #expect(stage.said(2) == ["bob: one"])
        stage.backend(Self.echo(frame))
        #expect(stage.said(2) == [])
    }

    // MARK: - Lost links

    @Test("our ids: what was not confirmed is sent again, unless the history has it", arguments: [true, false])
    func resend(isInHistory: Bool) throws {
        let stage = try Self.stage(.receipt, .client, history: .socket)
        let frame = Self.say("hello", stage)
        stage.loseLink()
        stage.harness.advance(by: .seconds(2))
        #expect(stage.sent().map { $0["kind"]?.string } == ["fetch"])
        let one = S.message("1", "one", at: -60)
        stage.backend(S.history(isInHistory ? [one, Self.echo(frame)] : [one]))
        #expect(stage.said(2) == (isInHistory ? ["bob: hello"] : []))
        #expect(stage.sent().map { Self.id($0) } == (isInHistory ? [] : [Self.id(frame)]))
    }

    @Test("the server's ids: the history decides whether it goes again", arguments: [true, false])
    func settled(isInHistory: Bool) throws {
        let stage = try Self.stage(.receipt, .server, identity: .single, history: .socket)
        _ = Self.say("hello", stage)
        stage.loseLink()
        stage.harness.advance(by: .seconds(2))
        #expect(stage.sent().map { $0["kind"]?.string } == ["fetch"], "not before the history")
        let one = S.message("1", "one", at: -60)
        stage.backend(S.history(isInHistory ? [one, Self.own("<bob> hello", id: "2")] : [one]))
        #expect(stage.said(2) == (isInHistory ? ["bob: hello"] : []))
        #expect(stage.sent().isEmpty, "the lost link's server may not have read it yet")
        stage.harness.advance(by: CatchUp.patience)
        #expect(stage.sent().map { $0["kind"]?.string } == (isInHistory ? [] : ["fetch"]))
        guard !isInHistory else { return }
        stage.backend(S.history([one]))
        #expect(stage.sent().map { $0["text"]?.string } == ["<bob> hello"])
    }

    @Test("where the history comes unasked, the second look at it is another link")
    func settledByUnaskedHistories() throws {
        let stage = try Self.stage(.receipt, .server, identity: .single)
        let history = S.history([S.message("1", "one", at: -60)])
        stage.backend(history)
        _ = Self.say("hello", stage)
        stage.loseLink()
        stage.harness.advance(by: .seconds(2))
        stage.backend(history)
        #expect(stage.sent().isEmpty, "the lost link's server may not have read it yet")
        _ = stage.seen()
        stage.harness.advance(by: CatchUp.patience)
        #expect(stage.seen() == ["0 disconnect", "0 connect"])
        #expect(stage.sent().isEmpty)
        stage.backend(history)
        #expect(stage.sent().map { $0["text"]?.string } == ["<bob> hello"])
    }

    @Test(
        "the first message of a room goes again too, where pages prove that there is nothing older",
        arguments: [DialectTraits.HistorySource.pushed, .socket])
    func firstOfTheRoom(history: DialectTraits.HistorySource) throws {
        let stage = try Self.stage(.receipt, .server, identity: .single, history: history, past: []) {
            $0.older = .socket
        }
        _ = Self.say("hello", stage)
        let one = S.message("1", "one", at: 0)
        stage.backend(one)
        /// Answers what the relay asks for, each time with all that there is and then with nothing older.
        func answer() {
            while let fetch = stage.sent().last {
                guard fetch["kind"]?.string == "fetch" else { return again.append(fetch["text"]?.string ?? "") }
                stage.backend(S.history(fetch["before"] == nil ? [one] : []))
            }
        }
        var again: [String] = []
        stage.loseLink()
        stage.harness.advance(by: .seconds(2))
        if history == .pushed { stage.backend(S.history([one])) }
        answer()
        #expect(again == [], "the lost link's server may not have read it yet")
        stage.harness.advance(by: CatchUp.patience)
        answer()
        #expect(again == ["<bob> hello"])
        #expect(stage.heard(1).allSatisfy { !$0.contains("CANNOT_DELIVER") })
    }

    @Test("the server's ids and no history: it is not sent again, and its author is told that nobody knows")
    func unknowable() throws {
        let stage = try Self.stage(.echoByText, .server)
        let frame = Self.say("hello", stage)
        stage.loseLink()
        stage.harness.advance(by: .seconds(2))
        _ = Self.say("later", stage)
        #expect(stage.room.lane.outbox.count == 2)
        stage.harness.advance(by: .seconds(897))
        #expect(stage.sent().isEmpty)
        stage.harness.advance(by: .seconds(2))
        #expect(
            stage.heard(1).contains {
                $0.contains(
                    "FAIL PRIVMSG CANNOT_DELIVER #lobby :It is not known whether this was delivered, since the link was lost "
                        + "before the backend answered: hello")
            })
        stage.backend(Self.echo(frame, id: "9"))
        #expect(stage.heard(1).contains { $0.contains("It arrived after all: hello") })
    }

    @Test("a receipt for a message that was given up shows that it arrived after all", arguments: [true, false])
    func lateReceipt(byReference: Bool) throws {
        let stage = try Self.stage(.receipt, .client) { $0.liveness = .jsonPing }
        let frame = Self.say("hello", stage)
        // The backend lives, and is slow.
        for second in 0..<900 {
            stage.harness.advance(by: .seconds(1))
            stage.backend(S.message("m\(second)", "talk", at: 10))
        }
        #expect(
            stage.heard(1).contains {
                $0.contains("It is not known whether this was delivered, since the backend has not answered: hello")
            })
        _ = stage.said(2)
        let named = byReference ? #""ref":"\#(Self.id(frame))","ids":[]"# : #""ids":["\#(Self.id(frame))"]"#
        stage.backend(#"{"kind":"receipt","state":"sent",\#(named)}"#)
        #expect(stage.heard(1).contains { $0.contains("It arrived after all: hello") })
        #expect(stage.said(2) == ["bob: hello"])
        stage.backend(#"{"kind":"receipt","state":"sent",\#(named)}"#)
        #expect(stage.said(2) == [])
    }

    @Test("a silent link is asked after ten seconds, inside the JSON where that is the way")
    func silence() throws {
        let stage = try Self.stage(.receipt, .client) { $0.liveness = .jsonPing }
        _ = Self.say("hello", stage)
        _ = stage.seen()
        stage.harness.advance(by: .seconds(10))
        #expect(stage.seen() == ["0 ping"])
        stage.backend(#"{"kind":"pong"}"#)
        stage.harness.advance(by: .seconds(60))
        #expect(stage.seen() == [], "the link lives: the message waits")
        #expect(stage.room.lane.outbox.entries.first?.state == .doubtful)
    }

    @Test(
        "a link on which the room talks and nothing goes up is lost, and what was written goes again",
        arguments: DialectTraits.Liveness.allCases)
    func deafBackend(liveness: DialectTraits.Liveness) throws {
        let stage = try Self.stage(.receipt, .client) { $0.liveness = liveness }
        let frame = Self.say("hello", stage)
        stage.harness.upstreams[0].isSilent = true
        _ = stage.seen()
        for second in 1...25 where stage.harness.upstreams[0].state == .open {
            stage.backend(S.message("a\(second)", "still talking", at: Int64(second)))
            stage.harness.advance(by: .seconds(1))
        }
        #expect(stage.seen().contains("0 disconnect"))
        #expect(stage.room.link.lastReason == "the backend did not answer a ping in time")
        stage.harness.upstreams[0].isSilent = false
        stage.harness.advance(by: .seconds(5))
        let again = stage.sent().filter { $0["kind"]?.string == "message" }
        #expect(again.map { $0["id"]?.string } == [Self.id(frame)])
        #expect(!stage.heard(1).contains { $0.contains("FAIL") })
    }

    @Test(
        "a link whose ping is answered lives on, whatever is not confirmed",
        arguments: DialectTraits.Liveness.allCases, [true, false])
    func hearingBackend(liveness: DialectTraits.Liveness, namesRef: Bool) throws {
        let stage = try Self.stage(.receipt, .client) { $0.liveness = liveness }
        _ = Self.say("hello", stage)
        _ = stage.sent()
        stage.harness.advance(by: .seconds(10))
        if liveness == .jsonPing {
            let ref = stage.sent().last?["ref"]?.string ?? ""
            stage.backend(#"{"kind":"pong","ref":"of another ping"}"#)
            #expect(stage.room.link.livenessProbe != nil)
            stage.backend(namesRef ? "{\"kind\":\"pong\",\"ref\":\"\(ref)\"}" : #"{"kind":"pong"}"#)
        }
        #expect(stage.room.link.livenessProbe == nil)
        stage.harness.advance(by: .seconds(40))
        #expect(stage.harness.upstreams[0].state == .open)
        #expect(stage.room.lane.outbox.entries.first?.state == .doubtful)
    }

    @Test("a ping that was open before the one that must be answered keeps its own time")
    func earlierPing() throws {
        let stage = try SessionStage(
            StubDialect {
                $0.confirmation = .receipt
                $0.messageIDOrigin = .client
            }
        ) { $0.ping = .seconds(9) }
        stage.harness.start()
        stage.enter("bob")
        stage.harness.upstreams[0].isSilent = true
        _ = Self.say("hello", stage)
        stage.harness.advance(by: .milliseconds(18_999))
        #expect(stage.harness.upstreams[0].state == .open)
        stage.harness.advance(by: .milliseconds(1))
        #expect(stage.harness.upstreams[0].state != .open)
    }

    @Test("where the answer to a ping cannot be told from other frames, any frame is a sign of life")
    func unansweredPings() throws {
        let stage = try Self.stage(.receipt, .client) {
            $0.liveness = .jsonPing
            $0.answersPings = false
        }
        _ = Self.say("hello", stage)
        stage.harness.advance(by: .seconds(10))
        stage.backend(S.message("a", "talk", at: 10))
        stage.harness.advance(by: .seconds(40))
        #expect(stage.harness.upstreams[0].state == .open)
    }

    // MARK: - Refused

    private static func failures(_ stage: SessionStage) -> [String] {
        stage.heard(1).filter { $0.contains(" FAIL ") }.map { line in
            String(line[(line.firstRange(of: " :")?.upperBound ?? line.startIndex)...])
        }
    }

    @Test("a complaint with our reference fails that message, with the backend's words", arguments: ["", "m:"])
    func refusedByRef(prefix: String) throws {
        let stage = try Self.stage(.receipt, .server, identity: .single)
        let first = Self.say("one", stage)
        let second = Self.say("two", stage)
        stage.backend("{\"kind\":\"error\",\"ref\":\"\(prefix)\(Self.id(second))\",\"text\":\"slow down\"}")
        #expect(Self.failures(stage) == ["Not delivered, the backend refused it (slow down): two"])
        stage.backend("{\"kind\":\"error\",\"ref\":\"other\",\"text\":\"x\"}")
        #expect(Self.failures(stage) == [])
        stage.backend("{\"kind\":\"receipt\",\"state\":\"sent\",\"ref\":\"\(Self.id(first))\",\"ids\":[\"1\"]}")
        #expect(stage.said(2) == ["bob: one"])
        stage.backend("{\"kind\":\"receipt\",\"state\":\"sent\",\"ref\":\"\(Self.id(second))\",\"ids\":[\"2\"]}")
        #expect(stage.heard(1).contains { $0.contains("It arrived after all: two") })
    }

    @Test("a complaint without a name means the only message in flight, and none of several")
    func refusedOnly() throws {
        let stage = try Self.stage(.receipt, .server, identity: .single)
        let complaint = #"{"kind":"error","code":"FORBIDDEN","text":"no"}"#
        let first = Self.say("one", stage)
        _ = Self.say("two", stage)
        stage.backend(complaint)
        #expect(Self.failures(stage) == [])
        #expect(stage.harness.notes.contains { $0.event == "complaint-unclear" })
        stage.backend("{\"kind\":\"receipt\",\"state\":\"sent\",\"ref\":\"\(Self.id(first))\",\"ids\":[\"1\"]}")
        stage.harness.advance(by: .seconds(5))
        stage.backend(complaint)
        #expect(Self.failures(stage) == ["Not delivered, the backend refused it (no): two"])
    }

    @Test(
        "elsewhere it means the only one of the last two seconds",
        arguments: [DialectTraits.Confirmation.none, .echoByText])
    func refusedLately(confirmation: DialectTraits.Confirmation) throws {
        let stage = try Self.stage(confirmation, .server)
        let complaint = #"{"kind":"error","text":"too long"}"#
        let first = Self.say("one", stage)
        stage.harness.advance(by: .milliseconds(1500))
        let second = Self.say("two", stage)
        stage.backend(complaint)
        #expect(Self.failures(stage) == [], "either may be meant, or neither")
        if confirmation == .echoByText {
            stage.backend(Self.echo(first, id: "1"))
            stage.backend(Self.echo(second, id: "2"))
        }
        stage.harness.advance(by: .seconds(3))
        _ = Self.say("three", stage)
        stage.backend(complaint)
        #expect(
            Self.failures(stage)
                == (confirmation == .none ? [] : ["Not delivered, the backend refused it (too long): three"]),
            "what a pong confirmed is not in flight")
        _ = Self.say("four", stage)
        stage.harness.advance(by: .milliseconds(2001))
        stage.backend(#"{"kind":"error","text":"about nothing of ours"}"#)
        #expect(Self.failures(stage) == [])
    }

    // MARK: - Longer than a frame

    private static func longStage(_ confirmation: DialectTraits.Confirmation) throws -> SessionStage {
        try stage(confirmation, confirmation == .receipt ? .client : .server) { $0.maxFrameBytes = 240 }
    }

    @Test("what is longer than a frame goes in pieces, cut at blanks, and is one message on IRC")
    func pieces() throws {
        let stage = try Self.longStage(.receipt)
        let text = (1...40).map { "word\($0)" }.joined(separator: " ")
        stage.harness.send(1, "PRIVMSG #lobby :" + text)
        let frames = stage.sent()
        #expect(frames.count > 2)
        #expect(Set(frames.map { Self.id($0) }).count == frames.count)
        #expect(frames.compactMap { $0["text"]?.string }.joined(separator: " ") == text)
        for frame in frames.dropLast() {
            stage.backend("{\"kind\":\"receipt\",\"state\":\"sent\",\"ids\":[\"\(Self.id(frame))\"]}")
            #expect(stage.said(2) == [])
        }
        stage.backend("{\"kind\":\"receipt\",\"state\":\"sent\",\"ids\":[\"\(Self.id(frames[frames.count - 1]))\"]}")
        #expect(stage.said(2) == ["bob: " + text])
        #expect(stage.said(1) == ["bob: " + text])
    }

    @Test("one refused piece fails the whole, once")
    func refusedPiece() throws {
        let stage = try Self.longStage(.receipt)
        stage.harness.send(1, "PRIVMSG #lobby :" + String(repeating: "long ", count: 60))
        let frames = stage.sent()
        stage.backend("{\"kind\":\"error\",\"ref\":\"\(Self.id(frames[1]))\",\"text\":\"no\"}")
        #expect(Self.failures(stage).count == 1)
        #expect(stage.room.lane.outbox.isEmpty)
    }

    @Test("pieces that nobody confirms are told as one when their time is over")
    func expiredPieces() throws {
        let stage = try Self.longStage(.echoByText)
        stage.harness.send(1, "PRIVMSG #lobby :" + String(repeating: "long ", count: 60))
        stage.harness.advance(by: .seconds(901))
        #expect(Self.failures(stage).count == 1)
    }

    @Test("where nothing confirms the pieces are written and the message is shown once")
    func writtenPieces() throws {
        let stage = try Self.longStage(.none)
        stage.harness.send(1, "PRIVMSG #lobby :" + String(repeating: "long ", count: 60))
        #expect(stage.sent().count > 1)
        #expect(stage.said(2).count == 1)
    }

    @Test("what cannot be cut small enough is refused")
    func uncuttable() throws {
        let stage = try Self.stage(.receipt, .client) { $0.maxFrameBytes = 60 }
        _ = Self.say("hello", stage)
        #expect(Self.failures(stage).first?.contains("too-long") == true)
        #expect(stage.room.lane.outbox.isEmpty)
    }

    // MARK: - Typing

    @Test("somebody types until they stop, speak, leave, or fall silent for as long as the wire says")
    func typingIn() throws {
        let stage = try Self.stage(.none, .client)
        stage.enter("zoe", 3, caps: "message-tags")
        func start(ttl: Int? = nil) {
            stage.harness.advance(by: .seconds(4))
            _ = stage.heard(3)
            let ttl = ttl.map { ",\"ttl\":\($0)" } ?? ""
            stage.backend(
                "{\"kind\":\"typing\",\"state\":\"start\",\"sender\":{\"id\":\"u-ann\",\"name\":\"ann\"}\(ttl)}")
        }
        func typing() -> [String] {
            stage.heard(3).compactMap { $0.firstMatch(of: #/\+typing=(\w+)/#).map { String($0.1) } }
        }
        start()
        stage.backend(#"{"kind":"typing","state":"stop","sender":{"id":"u-ann"}}"#)
        #expect(typing() == ["active", "done"])
        start()
        stage.backend(S.message("1", "said"))
        stage.harness.advance(by: .seconds(5))
        #expect(typing() == ["active"], "the message says it")
        start(ttl: 1000)
        stage.harness.advance(by: .milliseconds(1100))
        #expect(typing() == ["active", "done"])
        start()
        stage.backend(#"{"kind":"leave","user":{"id":"u-ann","name":"ann"}}"#)
        stage.harness.advance(by: .seconds(5))
        #expect(typing() == ["active"], "the PART says it")
        start()
        for _ in 0..<100 {
            stage.backend(#"{"kind":"typing","state":"start","sender":{"id":"u-ann","name":"ann"}}"#)
            stage.backend(#"{"kind":"typing","state":"stop","sender":{"id":"u-ann"}}"#)
        }
        #expect(typing().filter { $0 == "active" }.count == 1)
    }
}
