import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import JSONText
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// What users of other bridges complain about most. One test each, by the complaint's name.
@Suite("Complaints")
struct ComplaintTests {
    private typealias S = SessionStage

    private func stage(_ dialect: ActionsStubDialect = ActionsStubDialect(), echoes: Bool = true) throws -> ActionsStage
    {
        let stage = try ActionsStage(dialect, echoes: echoes)
        stage.enter(1, "alice")
        stage.enter(2, "bob")
        stage.enter(3, "carol", caps: "")
        return stage
    }

    /// What a line says, without what stands in front.
    private func words(_ line: String) -> String {
        line.firstRange(of: " PRIVMSG #lobby :").map { String(line[$0.upperBound...]) } ?? ""
    }

    /// A wire with a history, past its first one.
    private func historyStage() throws -> SessionStage {
        let stage = try SessionStage(
            StubDialect {
                $0.history = .socket
                $0.messageIDOrigin = .server
            })
        stage.harness.start()
        stage.enter("bob")
        stage.backend(S.history([S.message("1", "one", at: -60)]))
        _ = (stage.heard(), stage.sent())
        return stage
    }

    @Test("replays in a loop: what was missed comes once, however often the client returns")
    func replayLoop() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        stage.leave(1)
        stage.say(["one", "two"])
        stage.enter(2, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(2) == ["ann: one", "ann: two"])
        stage.harness.advance(by: .seconds(5))
        stage.leave(2)
        for client in 3...6 as ClosedRange<UInt64> {
            stage.enter(client, "alice@phone", caps: BacklogStage.caps)
            #expect(stage.heard(client) == [])
            stage.leave(client)
        }
    }

    @Test("duplicates after a reconnect: what the backend says again is shown once, and so is what we say again")
    func duplicates() throws {
        let stage = try stage(echoes: false)
        stage.backend("message|id=m1|from=s1|name=Remy|text=soup")
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        let sent = stage.happened().filter { $0.hasPrefix("U0> message") }
        #expect(sent.count == 1)
        stage.harness.endTransport(0, reason: "reset")
        stage.harness.advance(by: .seconds(2))
        let again = stage.happened().filter { $0.hasPrefix("U0> message") }
        #expect(again == sent, "not confirmed: sent again under its id")
        for _ in 0..<3 {
            stage.backend("message|id=m1|from=s1|name=Remy|text=soup")
            stage.backend(String(sent[0].dropFirst(4)))
        }
        let shown = stage.happened().filter { $0.hasPrefix("C2") && $0.contains("PRIVMSG") }
        #expect(shown.count == 1 && shown[0].hasSuffix(":hello"))
    }

    @Test("messages lost around a reconnect: both sides get what was said meanwhile")
    func lost() throws {
        let stage = try historyStage()
        stage.loseLink()
        stage.harness.send(1, "PRIVMSG #lobby :from here")
        stage.harness.advance(by: .seconds(2))
        _ = (stage.heard(), stage.sent())
        stage.backend(S.history([S.message("1", "one", at: -60), S.message("2", "from there", at: 1)]))
        #expect(stage.said().contains("ann: from there"))
        #expect(stage.sent().compactMap { $0["text"]?.string } == ["from here"])
    }

    @Test("history before JOIN: nothing of a room comes before the client is in it", arguments: [true, false])
    func historyFirst(rejoins: Bool) throws {
        let stage = try BacklogStage(rejoins: rejoins)
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        stage.leave(1)
        stage.say("missed")
        stage.connect(2, "alice@phone", caps: BacklogStage.caps)
        let welcome = stage.raw(2)
        let end = try #require(welcome.firstIndex { $0.contains(" 422 ") })
        stage.harness.send(2, "JOIN #lobby")
        // Who is back in the room has all of it behind the welcome, and nothing of the JOIN.
        let lines = welcome[(end + 1)...] + stage.raw(2)
        #expect(lines.count { $0.contains(" JOIN ") } == 1)
        #expect(lines.count { $0.hasSuffix(":missed") } == 1)
        #expect((welcome.count > end + 1) == rejoins)
        let join = try #require(lines.firstIndex { $0.contains(" JOIN ") })
        let names = try #require(lines.firstIndex { $0.contains(" 366 ") })
        let missed = try #require(lines.firstIndex { $0.hasSuffix(":missed") })
        #expect(join == lines.startIndex && join < names && names < missed)
    }

    @Test("auto-read that silences phones: nobody has read what was only delivered")
    func autoRead() throws {
        let stage = try stage()
        stage.harness.send(1, "CAP REQ draft/read-marker")
        for number in 1...20 { stage.backend("message|id=m\(number)|from=s1|name=Remy|text=soup \(number)") }
        stage.harness.send(1, "PING x")
        stage.harness.send(1, "PRIVMSG #lobby :I am here, and have not said that I read")
        stage.harness.advance(by: .seconds(600))
        #expect(!stage.happened().contains { $0.hasPrefix("U0> receipt") })
    }

    @Test("long lines cut, split mid-emoji or lost: the pieces are whole characters and give the text")
    func longLines() throws {
        let stage = try stage()
        let text = String(repeating: "👩🏽‍🍳 stirs the ratatouille 🇫🇷 ", count: 60)
        stage.backend("message|id=m1|from=s1|name=Remy|text=" + text)
        let lines = stage.happened().filter { $0.hasPrefix("C3") && $0.contains("PRIVMSG") }
        #expect(lines.allSatisfy { $0.utf8.count - 4 <= 510 })
        let pieces = lines.map(words)
        #expect(pieces.joined() == text)
        #expect(pieces.reduce(0) { $0 + $1.count } == text.count, "no character is cut")
    }

    @Test(
        "illegal nicks that break the line: whatever a name holds, the line has its parts",
        arguments: [
            "Chef Gusteau", ":colon", "a!b@c", "#room", "@op", "12", "-", "é\u{301}", "\u{202E}evil", "x\u{0}y", "🍲",
            "a\r\nQUIT", "bridge", " ", "alice", "*", "$x", "~&%",
        ])
    func illegalNicks(name: String) throws {
        let stage = try stage()
        stage.backend("message|id=m1|from=s1|name=\(name)|text=soup")
        let lines = stage.happened().filter { $0.hasPrefix("C3") }
        #expect(lines.count == 2, "\(lines)")
        let line = try #require(lines.last)
        let match = try #require(line.wholeMatch(of: #/C3< :([^ !@]+)!([^ !@]+)@([^ !@]+) PRIVMSG #lobby :soup/#))
        #expect(!"#:@+~&%$*0123456789-".contains(match.1.first ?? "#"))
        #expect(!["alice", "bridge"].contains(match.1.lowercased()))
    }

    @Test("echo loops: what crossed once does not cross back")
    func echoLoops() throws {
        let stage = try stage()
        for text in ["hello", "hello", "<Remy> hello", "* alice waves"] {
            stage.harness.send(1, "PRIVMSG #lobby :" + text)
            let lines = stage.happened()
            #expect(lines.filter { $0.hasPrefix("U0> message") }.count == 1)
            #expect(lines.filter { $0.hasPrefix("C2") && $0.hasSuffix("PRIVMSG #lobby :" + text) }.count == 1)
            stage.backend("message|id=\(text.count)x|from=s1|name=Remy|text=" + text)
            #expect(!stage.happened().contains { $0.hasPrefix("U0>") })
        }
    }

    @Test("Excess Flood on join: a client that joins everything at once is delayed, not closed")
    func excessFlood() throws {
        let rooms = (1...60).map { "room\($0)" }
        let stage = try ActionsStage(
            ActionsStubDialect(), rooms: rooms,
            limits: LimitSettings {
                $0.messagesPerSecond = 2
                $0.messagesBurst = 10
            })
        stage.harness.connect(1)
        for line in ["NICK alice", "USER u 0 * :r"] { stage.harness.send(1, line) }
        for room in rooms { stage.harness.send(1, "JOIN #\(room)\r\nMODE #\(room)\r\nWHO #\(room)") }
        stage.harness.advance(by: .seconds(300))
        #expect(stage.harness.isConnected(1))
        let lines = stage.happened()
        #expect(lines.filter { $0.contains(" JOIN ") }.count == 60)
        #expect(lines.filter { $0.contains(" 315 ") }.count == 60)
        #expect(!lines.contains { $0.contains("ERROR") })
    }

    @Test("join storms: a reconnect brings nobody in or out who stayed")
    func joinStorms() throws {
        let stage = try stage()
        for number in 1...50 { stage.backend("message|id=a\(number)|from=s\(number)|name=p\(number)|text=x") }
        _ = stage.happened()
        for round in 1...3 {
            stage.harness.endTransport(0, reason: "reset")
            stage.harness.advance(by: .seconds(60))
            for number in 1...50 {
                stage.backend("message|id=b\(round)-\(number)|from=s\(number)|name=p\(number)|text=y")
            }
        }
        let lines = stage.happened().filter { $0.hasPrefix("C3") }
        #expect(lines.filter { $0.hasSuffix(" PRIVMSG #lobby :y") }.count == 150)
        #expect(!lines.contains { $0.contains(" JOIN ") || $0.contains(" PART ") || $0.contains(" QUIT ") })
    }

    @Test("messages out of order: everybody sees the backend's order, through an outage too")
    func order() throws {
        let stage = try stage()
        stage.harness.acceptsConnections = false
        stage.harness.endTransport(0, reason: "reset")
        for number in 1...9 { stage.harness.send(UInt64(1 + number % 2), "PRIVMSG #lobby :\(number)") }
        stage.harness.acceptsConnections = true
        stage.harness.advance(by: .seconds(1))
        stage.harness.accept(0)
        stage.harness.advance(by: .seconds(60))
        let lines = stage.happened()
        let wanted = (1...9).map { String($0) }
        #expect(
            lines.filter { $0.hasPrefix("U0> message") }.compactMap { $0.split(separator: "=").last.map(String.init) }
                == wanted)
        for client in 1...3 {
            let seen = lines.filter { $0.hasPrefix("C\(client)") && $0.contains(" PRIVMSG ") }
            #expect(seen.compactMap { $0.split(separator: ":").last.map(String.init) } == wanted, "client \(client)")
        }
    }

    @Test("pasted text split: a paste is one message, and nothing stands between its lines")
    func paste() throws {
        let stage = try stage()
        stage.harness.send(1, "CAP REQ draft/multiline")
        stage.harness.send(2, "CAP REQ draft/multiline")
        _ = stage.happened()
        stage.harness.send(1, "BATCH +p draft/multiline #lobby")
        for number in 1...30 {
            stage.harness.send(1, "@batch=p PRIVMSG #lobby :line \(number)")
            stage.backend("message|id=m\(number)|from=s1|name=Remy|text=between \(number)")
        }
        _ = stage.happened()
        stage.harness.send(1, "BATCH -p")
        let lines = stage.happened()
        #expect(lines.filter { $0.hasPrefix("U0>") }.count == 1)
        let others = lines.filter { $0.hasPrefix("C3") }
        #expect(others.count == 30 && others.allSatisfy { $0.contains(":line ") })
        #expect(lines.filter { $0.hasPrefix("C2") && $0.contains("BATCH") }.count == 2)
    }

    @Test("attachments invisible: a file is a line with a link, with or without words")
    func attachments() throws {
        let stage = try stage()
        stage.backend("message|id=m1|from=s1|name=Remy|text=|url=https://x.example/soup.png|file=soup.png")
        stage.backend("message|id=m2|from=s1|name=Remy|text=look|url=https://x.example/stew.png")
        stage.backend("message|id=m3|from=s1|name=Remy|text=|file=secret.png")
        let lines = stage.happened().filter { $0.hasPrefix("C3") && $0.contains("PRIVMSG") }
        #expect(
            lines.map(words) == [
                "[image] soup.png https://x.example/soup.png", "look", "[image] https://x.example/stew.png",
                "[image] secret.png, not available through a link",
            ])
    }

    @Test("an expired login that nobody sees: the room is told that the backend refuses the bridge, and why")
    func expiredLogin() throws {
        let stage = try stage()
        stage.harness.acceptsConnections = false
        stage.harness.closeUpstream(0, code: 4001, reason: "token expired")
        stage.harness.advance(by: .seconds(2))
        while stage.harness.upstreams[0].state == .connecting {
            stage.harness.refuse(0, status: 401)
            stage.harness.advance(by: .seconds(2))
        }
        func notices(_ client: Int) -> [String] {
            stage.happened().filter { $0.hasPrefix("C\(client)< :bridge NOTICE #lobby :*** ") }
                .map { String($0.dropFirst("C\(client)< :bridge NOTICE #lobby :*** ".count)) }
        }
        #expect(
            notices(3) == [
                "The link to chat.example was lost: the backend closed the session with code 4001 (token expired). "
                    + "What you write is queued and sent when it is back.",
                "chat.example refuses the bridge: the server answered 401 Refused. The next try is in 15 min.",
            ])
        // Somebody who comes now is told too.
        stage.harness.connect(9)
        for line in ["NICK dora", "USER u 0 * :r", "JOIN #lobby"] { stage.harness.send(9, line) }
        #expect(
            notices(9) == [
                "This room has no link to chat.example at the moment: the server answered 401 Refused. "
                    + "What you write is queued and sent when it is there."
            ])
    }

    @Test("reconnects that never recover: after a hundred failures the next try still brings everything back")
    func neverRecovers() throws {
        let stage = try stage()
        stage.harness.acceptsConnections = false
        stage.harness.endTransport(0, reason: "reset")
        var tries = 0
        while tries < 100 {
            stage.harness.advance(by: .seconds(40))
            guard stage.harness.upstreams[0].state == .connecting else { continue }
            tries += 1
            stage.harness.endTransport(0, reason: "connection refused")
        }
        stage.harness.send(1, "PRIVMSG #lobby :still here")
        _ = stage.happened()
        stage.harness.acceptsConnections = true
        stage.harness.advance(by: .seconds(40))
        let lines = stage.happened()
        #expect(lines.contains { $0.hasPrefix("U0> message") && $0.hasSuffix("|text=still here") })
        #expect(lines.contains { $0.hasPrefix("C3") && $0.contains("is back after") })
    }

    @Test("echo without having asked: an author without echo-message does not see their own words again")
    func unaskedEcho() throws {
        let stage = try stage()
        stage.harness.send(3, "PRIVMSG #lobby :mine")
        stage.harness.send(3, "NOTICE #lobby :mine")
        stage.harness.send(3, "PRIVMSG bob :mine")
        let lines = stage.happened()
        #expect(!lines.contains { $0.hasPrefix("C3") })
        #expect(lines.filter { $0.hasPrefix("C2") }.count == 3)
    }
}
