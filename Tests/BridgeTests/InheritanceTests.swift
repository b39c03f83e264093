import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import Identities
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Bob had an account; the configuration has it no longer, and a stranger makes one of that name.
@Suite("What a stranger gets of an account that had the name before")
struct InheritanceTests {
    private static let lobby = StoredRoomKey(backend: "b", room: "lobby")
    /// A room of a backend that is not configured any more, and may be again.
    private static let attic = StoredRoomKey(backend: "old", room: "attic")

    private static func settings(_ dialect: any Dialect = StubDialect { $0.confirmation = .echoByID }) throws
        -> BridgeSettings
    {
        var room = RoomSettings(
            name: "lobby", backend: "b", dialect: dialect,
            url: try HTTPURL(parsing: "ws://chat.example/lobby"))
        room.ping = .zero
        room.queueMaxAge = .seconds(60)
        let verifier = SCRAMVerifier(quickly: "pw")
        return BridgeSettings(
            serverName: "bridge", instanceID: "t", accounts: [AccountSettings(name: "zoe", password: verifier)],
            registration: .everybody, passwordIterations: 4096,
            limits: LimitSettings {
                $0.acceptsPerSecondPerAddress = nil
                $0.messagesPerSecond = nil
                $0.upstreamMessagesPerSecond = nil
            },
            rooms: [room])
    }

    /// Whether the backend confirms, and the bridge under which all this happens.
    private static func puppet(_ backend: String, of account: String = "bob") -> ChatID {
        let map = IdentityMap(IdentitySettings(BridgeSettings(serverName: "bridge", instanceID: "t", rooms: [])))
        return map.puppetID(account: account, backend: backend)
    }

    private static func left(_ text: String, in room: StoredRoomKey, _ state: StoredOutboxEntry.State)
        -> StoredOutboxEntry
    {
        let author = puppet(room.backend)
        return StoredOutboxEntry(
            id: ChatID("id-of-\(text)-in-\(room.room)"), room: room, sender: ChatPerson(id: author, name: "bob"),
            sentAs: text, acceptedAt: ManualClock().now.wall, author: author, nick: "bob", source: "bob!u@h",
            account: "bob", client: "phone", text: text, state: state,
            reason: state == .failed ? "it waited too long" : nil)
    }

    /// What a process left in which bob had an account.
    private static func disk() -> StoreStage {
        var store = StoreStage()
        let at = ChatTimestamp(milliseconds: 1_700_000_000_000)
        for room in [lobby, attic] {
            store.prepare([
                .message(
                    room,
                    StoredMessage(
                        sequence: 0, msgid: "m", sender: ChatPerson(id: ChatID("r"), name: "Remy"), at: at,
                        nick: "Remy",
                        source: "Remy!r@b", text: "said while bob was bob")),
                .marker(room, StoredMarker(reader: puppet(room.backend), at: at, sequence: 0)),
                .receipt(
                    room,
                    StoredReceipt(
                        author: puppet(room.backend), reader: ChatPerson(id: ChatID("r")), deliveredSequence: 0,
                        readSequence: 0)),
                .cursor(StoredCursor(account: "bob", client: "phone", room: room, sequence: 0)),
                .accept(left("queued", in: room, .queued)), .accept(left("secret", in: room, .failed)),
            ])
        }
        store.prepare([
            .marker(PrivateMarkers.storedKey, PrivateMarkers.stored(puppet(""), with: "zoe", at)),
            .marker(PrivateMarkers.storedKey, PrivateMarkers.stored(puppet("", of: "zoe"), with: "bob", at)),
            .cursor(StoredCursor(account: "zoe", client: "phone", room: lobby, sequence: 0)),
        ])
        return store
    }

    private static func enter(_ client: UInt64, _ nick: String, _ harness: BridgeHarness, _ lines: [String]) -> [String]
    {
        harness.connect(client)
        let caps =
            "draft/account-registration draft/read-marker draft/chathistory batch standard-replies echo-message message-tags "
            + "draft/message-redaction"
        for line in ["CAP REQ :" + caps, "NICK " + nick, "USER u 0 * :r", "CAP END"] + lines {
            harness.send(client, line)
        }
        return harness.takeLines(client)
    }

    @Test("nothing: no cursor, no marker, no history without entering, and not a word of what failed")
    func nothing() throws {
        let harness = BridgeHarness(settings: try Self.settings(), store: Self.disk())
        harness.start()
        #expect(Self.enter(1, "bob", harness, ["REGISTER * * long-enough"]).contains { $0.contains("SUCCESS bob") })
        harness.disconnect(1)
        harness.connect(2)
        for line in [
            "CAP REQ :draft/read-marker draft/chathistory batch standard-replies", "PASS bob@phone:long-enough",
            "NICK bob", "USER u 0 * :r", "CAP END",
        ] { harness.send(2, line) }
        #expect(harness.takeLines(2).contains { $0.contains(" 001 ") })
        harness.send(2, "CHATHISTORY LATEST #lobby * 9")
        let history = harness.takeLines(2)
        #expect(history.count == 1 && history.first?.contains("FAIL CHATHISTORY") == true, "\(history)")
        harness.send(2, "MARKREAD zoe")
        harness.send(2, "MARKREAD #lobby")
        #expect(
            harness.takeLines(2) == [":bridge MARKREAD zoe *", ":bridge MARKREAD #lobby *"])
        harness.send(2, "JOIN #lobby")
        // What waited goes up, and nobody hears when it fails.
        harness.advance(by: .seconds(100))
        let entered = harness.takeLines(2)
        #expect(entered.contains { $0.contains(" 366 ") })
        #expect(entered.contains(":bridge MARKREAD #lobby *"))
        #expect(!entered.contains { $0.contains("queued") || $0.contains("secret") }, "\(entered)")
        #expect(harness.violations == [])
    }

    @Test("on disk nothing of it is bob's in any room, and what waits still does; others keep theirs")
    func onDisk() throws {
        let harness = BridgeHarness(settings: try Self.settings(), store: Self.disk())
        harness.start()
        _ = Self.enter(1, "Bob", harness, ["REGISTER bob * long-enough"])
        let disk = harness.store.disk
        #expect(disk.cursors.map(\.account) == ["zoe"])
        #expect(
            disk.rooms[PrivateMarkers.storedKey]?.markers.map(\.reader.rawValue) == [
                Self.puppet("", of: "zoe").canonical + " bob"
            ])
        for key in [Self.lobby, Self.attic] {
            let room = try #require(disk.rooms[key])
            #expect(room.markers.isEmpty && room.receipts.isEmpty)
            #expect(room.messages.contains { $0.text == "said while bob was bob" })
            #expect(room.outbox.map(\.text) == ["queued", "secret"])
            #expect(room.outbox.map(\.state) == [.queued, .told])
            #expect(room.outbox.allSatisfy { $0.author != Self.puppet(key.backend) && $0.client == nil })
            #expect(room.outbox.allSatisfy { $0.sender.id == Self.puppet(key.backend) })
        }
        // Nor does the next process tell.
        let next = BridgeHarness(settings: try Self.settings(), store: harness.store.afterCrash)
        next.start()
        next.connect(1)
        for line in ["PASS bob@phone:long-enough", "NICK bob", "USER u 0 * :r", "JOIN #lobby"] { next.send(1, line) }
        next.advance(by: .seconds(100))
        let heard = next.takeLines(1)
        #expect(heard.contains { $0.contains(" 366 ") } && !heard.contains { $0.contains("CANNOT_DELIVER") })
    }

    @Test("what waited for its backend goes up under the id that it had, once")
    func delivered() throws {
        let harness = BridgeHarness(settings: try Self.settings(), store: Self.disk())
        // The link is not up before the account is made.
        _ = Self.enter(1, "bob", harness, ["REGISTER * * long-enough", "JOIN #lobby"])
        harness.start()
        harness.advance(by: .seconds(5))
        let frames = harness.takeOutputs().compactMap { output -> String? in
            if case .upstream(_, .frame(let bytes, _)) = output { String(decoding: bytes, as: UTF8.self) } else { nil }
        }
        let said = frames.filter { $0.contains("queued") }
        #expect(said.count == 1 && said.first?.contains(Self.puppet("b").rawValue) == true, "\(frames)")
        // It comes back: nobody's words, and the new bob is no author of it.
        harness.sendFrame(
            0,
            "{\"kind\":\"message\",\"id\":\"id-of-queued-in-lobby\",\"at\":1700000001000,"
                + "\"sender\":{\"id\":\"\(Self.puppet("b").rawValue)\",\"name\":\"bob\"},\"text\":\"queued\"}")
        #expect(harness.takeLines(1).contains { $0.hasSuffix("PRIVMSG #lobby :queued") })
        #expect(harness.store.disk.rooms[Self.lobby]?.outbox.map(\.text) == ["secret"])
    }

    /// What bob said before, as the store has it.
    private static func diskWithWords() -> StoreStage {
        var disk = disk()
        disk.prepare([
            .message(
                lobby,
                StoredMessage(
                    sequence: 1, msgid: "old", upstreamID: ChatID("up-old"),
                    at: ChatTimestamp(milliseconds: 1_700_000_000_001), nick: "bob",
                    source: "bob!u@h", account: "bob", text: "mine", author: puppet("b")))
        ])
        return disk
    }

    @Test("what bob said cannot be taken back by the new one, now or after a restart", arguments: [false, true])
    func said(afterRestart: Bool) throws {
        var harness = BridgeHarness(settings: try Self.settings(), store: Self.diskWithWords())
        harness.start()
        _ = Self.enter(1, "bob", harness, ["REGISTER * * long-enough"])
        harness.advance(by: .seconds(1))
        if afterRestart {
            harness = BridgeHarness(
                settings: try Self.settings(), store: harness.store.afterCrash, startingAt: harness.clock)
            harness.start()
            harness.advance(by: .seconds(1))
            harness.connect(1)
            for line in [
                "CAP REQ :draft/message-redaction echo-message standard-replies message-tags",
                "PASS bob@phone:long-enough", "NICK bob", "USER u 0 * :r", "CAP END",
            ] { harness.send(1, line) }
        }
        // The first one in a room is its operator.
        harness.connect(2)
        for line in ["NICK eve", "USER u 0 * :r", "JOIN #lobby"] { harness.send(2, line) }
        harness.send(1, "JOIN #lobby")
        harness.advance(by: .seconds(5))
        _ = harness.takeOutputs()
        harness.send(1, "PRIVMSG #lobby :of now")
        for case .upstream(_, .frame(let bytes, _)) in harness.takeOutputs() {
            harness.sendFrame(
                0, String(decoding: bytes, as: UTF8.self).replacing("{", with: "{\"at\":1,", maxReplacements: 1))
        }
        let now = try #require(harness.store.disk.rooms[Self.lobby]?.messages.first { $0.text == "of now" })
        _ = harness.takeLines(1)
        harness.send(1, "REDACT #lobby old")
        let refusal = harness.takeLines(1)
        #expect(refusal.contains { $0.contains("FAIL REDACT REDACT_FORBIDDEN") }, "\(refusal)")
        harness.send(1, "REDACT #lobby \(now.msgid)")
        #expect(harness.takeLines(1).filter { $0.contains("FAIL") } == [])
        // An operator may.
        _ = harness.takeOutputs()
        harness.send(2, "REDACT #lobby old")
        let frames = harness.takeOutputs().compactMap { output -> String? in
            if case .upstream(_, .frame(let bytes, _)) = output { String(decoding: bytes, as: UTF8.self) } else { nil }
        }
        #expect(frames.contains { $0.contains("up-old") }, "\(frames)")
    }

    @Test("an operator takes back what bob said in the name of whom the backend has it from", arguments: [false, true])
    func operatorTakesBack(afterRestart: Bool) throws {
        let settings = try Self.settings(ActionsStubDialect())
        var harness = BridgeHarness(settings: settings, store: Self.diskWithWords())
        harness.start()
        _ = Self.enter(1, "bob", harness, ["REGISTER * * long-enough"])
        if afterRestart {
            harness = BridgeHarness(settings: settings, store: harness.store.afterCrash, startingAt: harness.clock)
            harness.start()
        }
        harness.advance(by: .seconds(1))
        // The first one in a room is its operator.
        _ = Self.enter(2, "eve", harness, ["JOIN #lobby"])
        harness.advance(by: .seconds(1))
        _ = harness.takeOutputs()
        harness.send(2, "REDACT #lobby old")
        let frames = harness.takeOutputs().compactMap { output -> String? in
            if case .upstream(_, .frame(let bytes, _)) = output { String(decoding: bytes, as: UTF8.self) } else { nil }
        }
        #expect(frames == ["delete|ids=up-old|from=\(Self.puppet("b").rawValue)|name=bob"])
        #expect(harness.store.disk.rooms[Self.lobby]?.messages.first { $0.msgid == "old" }?.isTakenBack == true)
    }
}
