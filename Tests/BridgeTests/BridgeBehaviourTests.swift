import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// What needs more clients, bytes or people than a transcript can show.
@Suite("Bridge")
struct BridgeBehaviourTests {
    private static func harness(
        limits: LimitSettings = LimitSettings { $0.messagesPerSecond = nil }, seed: UInt64 = 1
    ) throws -> BridgeHarness {
        var room = RoomSettings(
            name: "lobby", dialect: EnvelopeDialect(), url: try HTTPURL(parsing: "ws://chat.example/"))
        room.ping = .zero
        let harness = BridgeHarness(
            settings: BridgeSettings(serverName: "bridge", instanceID: "t", limits: limits, rooms: [room]), seed: seed)
        harness.start()
        return harness
    }

    private static func enter(_ harness: BridgeHarness, _ client: UInt64, nick: String? = nil, caps: String = "") {
        harness.connect(client)
        if !caps.isEmpty { harness.send(client, "CAP REQ :" + caps) }
        harness.send(client, "NICK " + (nick ?? "n\(client)"))
        harness.send(client, "USER u 0 * :r")
        if !caps.isEmpty { harness.send(client, "CAP END") }
        harness.send(client, "JOIN #lobby")
    }

    private static func message(_ number: Int, sender: Int = 0, body: String? = nil) -> String {
        """
        {"event":"message","message_id":"m\(number)","sender_id":"s\(sender)","sender_name":"S\(sender)",\
        "body":"\(body ?? "b\(number)")","sent_at":1795262400}
        """
    }

    // MARK: - Long answers

    @Test("a long answer stops at a client that does not read, goes on when it does, and is complete")
    func longAnswer() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        for number in 0..<3000 { harness.sendFrame(0, Self.message(number, sender: number)) }
        _ = harness.takeOutputs()
        harness.setSlow(1, true)
        harness.send(1, "NAMES #lobby")
        harness.send(1, "PING after")
        harness.sendFrame(0, Self.message(9999))
        let first = harness.takeLines(1)
        let held = first.reduce(0) { $0 + $1.utf8.count + 2 }
        #expect(held < ReplyGenerators.window + 1024)
        #expect(first.last?.hasSuffix(":b9999") == true, "live lines do not wait")
        #expect(!first.contains { $0.contains(" 366 ") || $0.contains("PONG") })
        harness.setSlow(1, false)
        let rest = harness.takeLines(1)
        #expect(rest.last == ":bridge PONG bridge after", "its next line waited for the answer")
        #expect(rest.dropLast().last == ":bridge 366 n1 #lobby :End of /NAMES list")
        let names = (first + rest).filter { $0.contains(" 353 ") }
            .flatMap { $0[($0.firstRange(of: " :")?.upperBound ?? $0.endIndex)...].split(separator: " ") }
        #expect(names.count == 3001 && Set(names).count == 3001)
        #expect(harness.violations == [])
    }

    @Test("a client that goes in the middle of a long answer leaves nothing behind")
    func longAnswerThenGone() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1)
        for number in 0..<2000 { harness.sendFrame(0, Self.message(number, sender: number)) }
        harness.setSlow(1, true)
        harness.send(1, "WHO #lobby")
        harness.disconnect(1)
        harness.setSlow(1, false)
        harness.bridge.clientDrained(ClientID(rawValue: 1), now: harness.clock.now)
        #expect(harness.bridge.irc.sessions.isEmpty)
        #expect(harness.violations == [])
    }

    @Test("a labeled long answer is one batch, with the label on its beginning")
    func labeledLongAnswer() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1, caps: "batch labeled-response message-tags")
        for number in 0..<2000 { harness.sendFrame(0, Self.message(number, sender: number)) }
        _ = harness.takeOutputs()
        harness.setSlow(1, true)
        harness.send(1, "@label=w WHO #lobby")
        harness.setSlow(1, false)
        let lines = harness.takeLines(1)
        #expect(lines.first?.hasPrefix("@label=w :bridge BATCH +") == true)
        #expect(lines.last?.hasPrefix(":bridge BATCH -") == true)
        #expect(lines.dropFirst().dropLast().allSatisfy { $0.hasPrefix("@batch=") })
        #expect(lines.count == 2001 + 1 + 2)
    }

    // MARK: - Split feeds

    private static let conversation =
        "CAP LS 302\r\nNICK alice\r\nUSER a 0 * :A\r\nCAP REQ :message-tags\r\nCAP END\r\n\r\nJOIN #lobby\n"
        + "PRIVMSG #lobby :héllo 👩🏽‍🍳\r\nPRIVMSG #lobby :\u{0}\r\n" + String(repeating: "x", count: 600) + "\r\nPING 1\r\n"

    @Test("how a client's bytes are cut makes no difference")
    func clientSplitFeed() {
        let found = SplitFeedVerifier.disagreements(Array(Self.conversation.utf8)) { pieces -> [String] in
            guard let harness = try? Self.harness() else { return [] }
            harness.connect(1)
            _ = harness.takeOutputs()
            for piece in pieces { harness.receive(1, piece) }
            return harness.takeOutputs().map { "\($0)" }
        }
        #expect(found == [])
    }

    @Test("how a backend's bytes are cut makes no difference")
    func upstreamSplitFeed() throws {
        let writer = ScriptedUpstream()
        let texts = [Self.message(1), Self.message(2, body: "héllo\\n👩🏽‍🍳"), "not json", Self.message(3)]
        var frames: [UInt8] = []
        for text in texts { frames += writer.frame(Array(text.utf8), isBinary: false) }
        // A ping between, and a Close at the end.
        frames += [0x89, 0x02, 0x68, 0x69, 0x88, 0x02, 0x03, 0xE9]
        let found = SplitFeedVerifier.disagreements(frames) { pieces -> [String] in
            guard let harness = try? Self.harness() else { return [] }
            harness.acceptsConnections = false
            Self.enter(harness, 1)
            _ = harness.takeOutputs()
            for piece in pieces { harness.deliver(0, piece) }
            // Both sides keep their order; how they interleave depends on the cuts.
            let outputs = harness.takeOutputs().map { "\($0)" }
            return outputs.filter { $0.hasPrefix("line") } + outputs.filter { !$0.hasPrefix("line") }
        }
        #expect(found == [])
    }

    @Test(
        "requests of other protocols are known however they are cut",
        arguments: ["GET / HTTP/1.1\r\n\r\n", "EHLO x\r\n"])
    func foreignSplit(request: String) throws {
        for cut in 0...request.utf8.count {
            let harness = try Self.harness()
            harness.connect(1)
            let bytes = Array(request.utf8)
            harness.receive(1, Array(bytes[..<cut]))
            harness.receive(1, Array(bytes[cut...]))
            #expect(!harness.isConnected(1), "cut at \(cut)")
            #expect(harness.bridge.irc.sessions.isEmpty)
        }
    }

    @Test("the answer to HTTP is as long as it says")
    func httpAnswer() throws {
        let harness = try Self.harness()
        harness.connect(1)
        harness.receive(1, Array("POST / HTTP/1.1\r\n\r\n".utf8))
        let lines = harness.takeLines(1)
        let end = try #require(lines.firstIndex(of: ""))
        let body = lines[(end + 1)...].joined(separator: "\n") + "\n"
        #expect(lines[..<end].contains("Content-Length: \(body.utf8.count)"))
    }

    // MARK: - Limits

    @Test("an address has its share of connections and no more, loopback has no such limit")
    func addresses() throws {
        let limits = LimitSettings {
            $0.maxClients = 40
            $0.maxClientsPerAddress = 3
            $0.acceptsPerSecondPerAddress = 100
        }
        let harness = try Self.harness(limits: limits)
        for client in UInt64(1)...5 { harness.connect(client, address: "192.0.2.1", isLocal: false) }
        #expect((1...5).map { harness.isConnected($0) } == [true, true, true, false, false])
        harness.disconnect(2)
        harness.connect(6, address: "192.0.2.1", isLocal: false)
        #expect(harness.isConnected(6))
        for client in UInt64(10)...60 { harness.connect(client) }
        #expect((10...60).filter { harness.isConnected($0) }.count == 37)
    }

    @Test("connecting again and again is slowed down")
    func connectRate() throws {
        let limits = LimitSettings {
            $0.maxClientsPerAddress = 100
            $0.acceptsPerSecondPerAddress = 5
        }
        let harness = try Self.harness(limits: limits)
        for client in UInt64(1)...20 {
            harness.connect(client, address: "192.0.2.1", isLocal: false)
            harness.disconnect(client)
        }
        harness.connect(21, address: "192.0.2.1", isLocal: false)
        #expect(!harness.isConnected(21))
        harness.advance(by: .seconds(1))
        harness.connect(22, address: "192.0.2.1", isLocal: false)
        #expect(harness.isConnected(22))
    }

    @Test("a reader behind moves at most fifty receipts, at the pace of the room")
    func manyReceipts() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1, caps: "draft/read-marker")
        harness.advance(by: .seconds(1))
        for number in 0..<200 {
            harness.sendFrame(
                0,
                #"{"event":"message","message_id":"m\#(number)","sender_id":"s","sender_name":"S","body":"b","sent_at":\#(1_795_262_401 + number)}"#
            )
        }
        harness.advance(by: .seconds(300))
        _ = harness.takeOutputs()
        harness.send(1, "MARKREAD #lobby timestamp=2026-11-21T13:00:00.000Z")
        func receipts() -> [String] {
            harness.takeOutputs().compactMap { output in
                guard case .upstream(_, .frame(let bytes, _)) = output else { return nil }
                return String(decoding: bytes, as: UTF8.self)
            }
        }
        let atOnce = receipts()
        #expect(atOnce.count == 10)
        #expect(atOnce.first?.contains("\"m150\"") == true, "the oldest of the last fifty first")
        harness.advance(by: .seconds(60))
        let later = receipts()
        #expect(later.count == 40)
        #expect(later.last?.contains("\"m199\"") == true)
    }

    @Test("whole seconds on the wire do not put what was just said behind a read marker")
    func wholeSecondsAndMarkers() throws {
        let harness = try Self.harness()
        harness.advance(by: .milliseconds(300))
        Self.enter(harness, 1, caps: "draft/read-marker server-time")
        var shown = ""
        func receipts(after milliseconds: Int, _ ids: [String]) -> [String] {
            harness.advance(by: .milliseconds(milliseconds))
            for id in ids {
                harness.sendFrame(
                    0,
                    #"{"event":"message","message_id":"\#(id)","sender_id":"s","sender_name":"S","body":"b","sent_at":1795262400}"#
                )
            }
            // As clients do: up to the time of the last line that they were shown.
            shown = harness.takeLines(1).compactMap { HistoryStage.tag("time", $0) }.last ?? shown
            harness.send(1, "MARKREAD #lobby timestamp=\(shown)")
            return harness.takeOutputs().compactMap { output in
                guard case .upstream(_, .frame(let bytes, _)) = output else { return nil }
                return String(decoding: bytes, as: UTF8.self)
            }
        }
        let first = receipts(after: 200, ["m1", "m2"])
        #expect(first.count == 2 && first.last?.contains("\"m2\"") == true, "said after they came: \(first)")
        let second = receipts(after: 200, ["m3"])
        #expect(second.count == 1 && second.last?.contains("\"m3\"") == true, "said after they read: \(second)")
        #expect(receipts(after: 200, []).isEmpty, "nothing twice")
    }

    @Test("a message of an IRC user goes before the receipts that wait")
    func messagesBeforeReceipts() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1, caps: "draft/read-marker")
        harness.advance(by: .seconds(1))
        for number in 0..<40 { harness.sendFrame(0, Self.message(number)) }
        for number in 40..<80 {
            harness.sendFrame(
                0,
                #"{"event":"message","message_id":"m\#(number)","sender_id":"s","sender_name":"S","body":"b","sent_at":1795262401}"#
            )
        }
        harness.advance(by: .seconds(10))
        harness.send(1, "MARKREAD #lobby timestamp=2026-11-21T13:00:00.000Z")
        harness.send(1, "PRIVMSG #lobby :urgent")
        _ = harness.takeOutputs()
        harness.advance(by: .milliseconds(250))
        let next = harness.takeOutputs().compactMap { output -> String? in
            guard case .upstream(_, .frame(let bytes, _)) = output else { return nil }
            return String(decoding: bytes, as: UTF8.self)
        }
        #expect(next.first?.contains("urgent") == true, "\(next)")
    }

    @Test("lines without a penalty are bounded too, and a normal client never notices")
    func freeLines() throws {
        let harness = try Self.harness(limits: LimitSettings())
        Self.enter(harness, 1)
        _ = harness.takeOutputs()
        harness.advance(by: .seconds(60))
        harness.receive(1, Array(String(repeating: "CAP LIST\r\n", count: 3000).utf8))
        #expect(harness.takeLines(1).count < 110)
        harness.advance(by: .seconds(10))
        #expect((150...250).contains(harness.takeLines(1).count))
    }

    // MARK: - Numbers

    @Test("two thousand clients in one room: a message is one action a way of showing it")
    func fanOut() throws {
        let harness = try Self.harness(
            limits: LimitSettings {
                $0.maxClients = 5000
                $0.messagesPerSecond = nil
            })
        let bridge = harness.bridge
        for client in UInt64(1)...2000 {
            let id = ClientID(rawValue: client)
            bridge.clientOpened(id, origin: ClientOrigin(address: "l", isLocal: true), now: harness.clock.now)
            let caps = client % 2 == 0 ? "CAP REQ message-tags\r\n" : ""
            let lines =
                "\(caps)NICK n\(client)\r\nUSER u 0 * :r\r\nCAP END\r\nCAP REQ no-implicit-names\r\nJOIN #lobby\r\n"
            Array(lines.utf8).withUnsafeBytes { bridge.clientReceived(id, $0, now: harness.clock.now) }
            _ = bridge.takeActions()
        }
        #expect(bridge.irc.channel(of: bridge.rooms[0]).audience.count == 2000)
        let frame = ScriptedUpstream().frame(Array(Self.message(1).utf8), isBinary: false)
        frame.withUnsafeBytes { bridge.upstreamReceived(RoomID(index: 0), $0, now: harness.clock.now) }
        let fanOuts = bridge.takeActions().compactMap { action -> Int? in
            if case .fanOut(_, let clients, _) = action { clients.count } else { nil }
        }
        #expect(fanOuts == [1000, 1000, 1000, 1000], "a JOIN and a PRIVMSG, each for two ways of showing them")
    }

    @Test("messages of one read are one action for the clients that are shown them alike")
    func fanOutOfManyMessages() throws {
        let harness = try Self.harness()
        for client in UInt64(1)...2 { Self.enter(harness, client, caps: "") }
        let upstream = ScriptedUpstream()
        let frames = (1...5).flatMap { upstream.frame(Array(Self.message($0).utf8), isBinary: false) }
        frames.withUnsafeBytes { harness.bridge.upstreamReceived(RoomID(index: 0), $0, now: harness.clock.now) }
        let lines = harness.bridge.takeActions().compactMap { action -> [Substring]? in
            if case .fanOut(let bytes, _, _) = action { bytes.text.split(separator: "\r\n") } else { nil }
        }
        #expect(lines.count == 1)
        #expect(lines.joined().filter { $0.contains(" PRIVMSG ") }.count == 5)
    }

    @Test("ten thousand people leave in one sweep after half an hour")
    func massLeave() throws {
        let harness = try Self.harness()
        Self.enter(harness, 1, caps: "message-tags")
        harness.send(1, "PRIVMSG #lobby :read me")
        var own: [UInt8] = []
        for case .upstream(_, .frame(let bytes, _)) in harness.takeOutputs() { own = bytes }
        harness.sendFrame(0, own)
        let text = String(decoding: own, as: UTF8.self)
        let id = try #require(text.firstMatch(of: /"message_id":"([^"]+)"/)).1
        for number in 0..<10_500 {
            harness.sendFrame(
                0,
                #"{"event":"readReceipt","message_id":"\#(id)","sender_id":"s\#(number)","sender_name":"S","body":"","sent_at":1}"#
            )
        }
        #expect(harness.bridge.rooms[0].remotes.count == 10_000)
        #expect(harness.bridge.rooms[0].receiptNotices.count == 10_000)
        harness.advance(by: .seconds(32 * 60))
        #expect(harness.bridge.rooms[0].remotes.isEmpty)
        #expect(harness.bridge.rooms[0].receiptNotices.count == 0)
        #expect(harness.bridge.rooms[0].memberCount == 1)
    }

    @Test("a random link keeps its retry within the bounds of its back-off", arguments: UInt64(1)...20)
    func backoffBounds(seed: UInt64) throws {
        let harness = try Self.harness(seed: seed)
        harness.acceptsConnections = false
        harness.endTransport(0, reason: "gone")
        for wanted in [1.0, 2, 4, 8, 16, 30, 30, 30] {
            let before = harness.clock.now.monotonic
            let count = harness.upstreams[0].connectCount
            harness.advance(by: .milliseconds(Int64(wanted * 750) - 1))
            #expect(harness.upstreams[0].connectCount == count, "too early for \(wanted) s")
            harness.advance(to: before + .milliseconds(Int64(wanted * 1250) + 1))
            #expect(harness.upstreams[0].connectCount == count + 1, "too late for \(wanted) s")
            harness.endTransport(0, reason: "gone")
        }
    }
}
