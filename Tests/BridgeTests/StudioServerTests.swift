import BridgeTestSupport
import Studio
import Testing
import WSProtocol
import WireBytes

@Suite struct StudioServerTests {
    // MARK: - Rooms

    @Test("everybody in a room hears a frame, the sender included, and nobody elsewhere does")
    func relaysToTheRoom() throws {
        let stage = StudioStage()
        let ada = try stage.join(1, "/lobby")
        let ben = try stage.join(2, "/chat/lobby?token=x")
        let eve = try stage.join(3, "/garden")
        #expect(ada.isOpen && ben.isOpen && eve.isOpen)
        stage.feed(1, ada.text("not even JSON"))
        #expect(ada.take() == [.text("not even JSON")])
        #expect(ben.take() == [.text("not even JSON")])
        #expect(eve.take() == [])
        #expect(stage.relayed == ["lobby: not even JSON"])
    }

    @Test("what one read brought reaches everybody in the order in which it was said")
    func keepsOrder() throws {
        let stage = StudioStage()
        let ada = try stage.join(1, "/lobby")
        let ben = try stage.join(2, "/lobby")
        var burst: [UInt8] = []
        for number in 1...3 { ada.text("\(number)").withUnsafeBytes { burst += $0 } }
        stage.feed(1, burst)
        #expect(ada.take() == [.text("1"), .text("2"), .text("3")])
        #expect(ben.take() == [.text("1"), .text("2"), .text("3")])
    }

    struct BinaryRow: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var bytes: [UInt8]
        var text: String
    }

    @Test(
        "binary frames become text",
        arguments: [
            BinaryRow(testDescription: "UTF-8", bytes: Array("né".utf8), text: "né"),
            BinaryRow(testDescription: "ill-formed", bytes: [0x61, 0xFF, 0x62], text: "a\u{FFFD}b"),
            BinaryRow(testDescription: "empty", bytes: [], text: ""),
        ])
    func turnsBinaryIntoText(row: BinaryRow) throws {
        let stage = StudioStage()
        let ada = try stage.join(1, "/lobby")
        stage.feed(1, ada.binary(row.bytes))
        #expect(ada.take() == [.text(row.text)])
    }

    @Test("binary that repairing would make longer than a frame may be is dropped")
    func dropsWhatRepairInflates() throws {
        let stage = StudioStage()
        let ada = try stage.join(1, "/lobby")
        stage.feed(1, ada.binary([UInt8](repeating: 0xFF, count: StudioLimits.maxFrameBytes / 3 + 1)))
        stage.feed(1, ada.text("still here"))
        #expect(ada.take() == [.text("still here")])
    }

    struct PathRow: CustomTestStringConvertible, Sendable {
        var testDescription: String { path }
        var path: String
        /// Nil for a refusal.
        var room: String?
    }

    @Test(
        "the last component of the path is the room",
        arguments: [
            PathRow(path: "/", room: "lobby"), PathRow(path: "/lobby", room: "lobby"),
            PathRow(path: "//a///", room: "a"), PathRow(path: "/a/b?c/d", room: "b"),
            PathRow(path: "/%23caf%C3%A9", room: "#café"), PathRow(path: "/a%2Fb", room: "a/b"),
            PathRow(path: "/%2", room: nil), PathRow(path: "/%zz", room: nil), PathRow(path: "/%00", room: nil),
            PathRow(path: "/%0d%0a", room: nil), PathRow(path: "/%ff", room: nil),
            PathRow(path: "/" + String(repeating: "x", count: 200), room: String(repeating: "x", count: 200)),
            PathRow(path: "/" + String(repeating: "x", count: 201), room: nil),
        ])
    func namesRooms(row: PathRow) throws {
        let stage = StudioStage()
        let ada = try stage.join(1, row.path)
        if let room = row.room {
            #expect(ada.isOpen)
            #expect(stage.memberCount(in: room) == 1)
        } else {
            #expect(ada.refusal == .status(400, reason: "Bad Request", retryAfter: nil, location: nil))
            #expect(stage.closed == [1])
            #expect(stage.peerCount == 0)
        }
    }

    @Test("a member who left hears nothing and is not counted")
    func forgetsThoseWhoLeft() throws {
        let stage = StudioStage()
        let ada = try stage.join(1, "/lobby")
        let ben = try stage.join(2, "/lobby")
        stage.leave(2)
        stage.feed(1, ada.text("gone?"))
        stage.feed(2, ben.text("I am a ghost"))
        #expect(ada.take() == [.text("gone?")])
        #expect(ben.take() == [])
        #expect(stage.memberCount(in: "lobby") == 1)
        stage.leave(1)
        #expect(stage.peerCount == 0 && stage.memberCount(in: "lobby") == 0)
    }

    @Test("the house speaks to one room, and does not hear itself")
    func broadcasts() throws {
        let stage = StudioStage()
        let ada = try stage.join(1, "/lobby")
        let ben = try stage.join(2, "/garden")
        stage.broadcast("news", to: "lobby")
        stage.broadcast("nobody is there", to: "cellar")
        #expect(ada.take() == [.text("news")])
        #expect(ben.take() == [])
        #expect(stage.relayed == [])
    }

    // MARK: - The protocol

    @Test("a ping is answered to the one who sent it")
    func answersPings() throws {
        let stage = StudioStage()
        let ada = try stage.join(1, "/lobby")
        let ben = try stage.join(2, "/lobby")
        stage.feed(1, ada.ping("x"))
        #expect(ada.take() == [.pong("x")])
        #expect(ben.take() == [])
    }

    @Test("a Close is answered after what was said before it, and the peer is forgotten")
    func answersClose() throws {
        let stage = StudioStage()
        let ada = try stage.join(1, "/lobby")
        var goodbye: [UInt8] = []
        ada.text("bye").withUnsafeBytes { goodbye += $0 }
        ada.close(code: .goingAway).withUnsafeBytes { goodbye += $0 }
        stage.feed(1, goodbye)
        #expect(ada.take() == [.text("bye"), .close(1001)])
        #expect(stage.closed == [1])
        #expect(stage.peerCount == 0 && stage.memberCount(in: "lobby") == 0)
    }

    struct ViolationRow: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var bytes: [UInt8]
        var code: UInt16
    }

    @Test(
        "a peer that breaks the protocol is told why and harms nobody",
        arguments: [
            ViolationRow(testDescription: "no mask, RFC 6455 §5.1", bytes: [0x81, 0x02, 0x68, 0x69], code: 1002),
            ViolationRow(testDescription: "reserved bit, §5.2", bytes: [0xC1, 0x80, 0, 0, 0, 0], code: 1002),
            ViolationRow(testDescription: "unknown opcode, §5.2", bytes: [0x83, 0x80, 0, 0, 0, 0], code: 1002),
            ViolationRow(
                testDescription: "text that is not UTF-8, §8.1", bytes: [0x81, 0x81, 0, 0, 0, 0, 0xFF], code: 1007),
            ViolationRow(
                testDescription: "one byte more than a frame may have",
                bytes: [0x82, 0xFF, 0, 0, 0, 0, 0, 0x10, 0, 0x01, 0, 0, 0, 0], code: 1009),
            ViolationRow(
                testDescription: "the longest length there is",
                bytes: [0x82, 0xFF, 0x7F] + [UInt8](repeating: 0xFF, count: 7) + [0, 0, 0, 0], code: 1009),
        ])
    func refusesViolations(row: ViolationRow) throws {
        let stage = StudioStage()
        let ada = try stage.join(1, "/lobby")
        let ben = try stage.join(2, "/lobby")
        stage.feed(1, row.bytes)
        stage.feed(1, ada.text("too late"))
        #expect(ada.take() == [.close(row.code)])
        #expect(stage.closed == [1])
        #expect(ben.take() == [])
        stage.feed(2, ben.text("unharmed"))
        #expect(ben.take() == [.text("unharmed")])
    }

    // MARK: - HTTP

    @Test("a browser is told what this is and how to connect")
    func servesThePage() {
        let stage = StudioStage(visitedRooms: ["lobby", "garden"])
        stage.connect(1)
        stage.feed(1, "GET / HTTP/1.1\r\nHost: 127.0.0.1:4711\r\n\r\n")
        let answer = stage.answer(of: 1)
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(answer.contains("ws://127.0.0.1:4711/lobby"))
        #expect(answer.contains("lobby, garden"))
        #expect(stage.closed == [1])
        #expect(stage.peerCount == 0)
    }

    @Test("HEAD gets the page's head alone")
    func answersHead() throws {
        let stage = StudioStage()
        stage.connect(1)
        stage.feed(1, "HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        let answer = stage.answer(of: 1)
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && answer.hasSuffix("\r\n\r\n"))
        #expect(!answer.contains("Content-Length: 0"))
    }

    struct RequestRow: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var request: String
        var status: Int
    }

    static let socketHeaders = "Host: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"

    @Test(
        "a request that cannot be served is refused and ended",
        arguments: [
            RequestRow(testDescription: "POST", request: "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", status: 405),
            RequestRow(testDescription: "not HTTP", request: "NICK ada\r\nUSER ada 0 * :ada\r\n\r\n", status: 400),
            RequestRow(
                testDescription: "no key, RFC 6455 §4.2.1",
                request: "GET /a HTTP/1.1\r\n\(socketHeaders)Sec-WebSocket-Version: 13\r\n\r\n", status: 400),
            RequestRow(
                testDescription: "another version, §4.2.2",
                request: "GET /a HTTP/1.1\r\n\(socketHeaders)Sec-WebSocket-Version: 8\r\n"
                    + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", status: 426),
            RequestRow(
                testDescription: "an endless head",
                request: "GET / HTTP/1.1\r\n" + String(repeating: "a: b\r\n", count: 10_000), status: 431),
        ])
    func refusesBadRequests(row: RequestRow) {
        let stage = StudioStage()
        stage.connect(1)
        stage.feed(1, row.request)
        #expect(stage.answer(of: 1).hasPrefix("HTTP/1.1 \(row.status) "))
        #expect(stage.closed == [1])
        #expect(stage.peerCount == 0)
    }

    // MARK: - Limits

    @Test("who asks for nothing is ended after the timeout, and only then")
    func endsSilentPeers() throws {
        let stage = StudioStage()
        stage.connect(1)
        let ada = try stage.join(2, "/lobby")
        #expect(stage.nextDeadline == stage.now + StudioLimits.handshakeTimeout)
        stage.advance(by: StudioLimits.handshakeTimeout - .nanoseconds(1))
        #expect(stage.closed == [])
        stage.advance(by: .nanoseconds(1))
        #expect(stage.closed == [1])
        #expect(stage.answer(of: 1).hasPrefix("HTTP/1.1 408 "))
        #expect(stage.nextDeadline == nil)
        stage.feed(2, ada.text("in time"))
        #expect(ada.take() == [.text("in time")])
    }

    @Test("one peer more than the limit is turned away, until somebody leaves")
    func boundsPeers() {
        let stage = StudioStage()
        for id in 1...UInt64(StudioLimits.maxPeers) { stage.connect(id) }
        let next = UInt64(StudioLimits.maxPeers) + 1
        stage.connect(next)
        #expect(stage.closed == [next])
        #expect(stage.answer(of: next).hasPrefix("HTTP/1.1 503 "))
        stage.leave(1)
        stage.connect(next + 1)
        #expect(stage.closed == [next])
        #expect(stage.peerCount == StudioLimits.maxPeers)
    }

    @Test("at the end everybody is told, and nobody gets in any more")
    func shutsDown() throws {
        let stage = StudioStage()
        let ada = try stage.join(1, "/lobby")
        stage.connect(2)
        stage.shutDown()
        stage.connect(3)
        #expect(ada.take() == [.close(1001)])
        #expect(stage.closed == [1, 2, 3])
        #expect(stage.peerCount == 0 && stage.nextDeadline == nil)
    }

    // MARK: - Any bytes

    /// A whole visit: request, two frames, ping, Close.
    private static func visit() throws -> [UInt8] {
        let socket = try StudioTestSocket(path: "/lobby", seed: 7)
        var bytes: [UInt8] = []
        for part in [
            socket.request(), socket.text("one"), socket.ping("p"), socket.binary(Array("två".utf8)),
            socket.close(code: .normalClosure),
        ] {
            part.withUnsafeBytes { bytes += $0 }
        }
        return bytes
    }

    @Test("a visit gives the same answers however its bytes are cut")
    func splitFeed() throws {
        let disagreements = SplitFeedVerifier.disagreements(try Self.visit()) { pieces in
            let stage = StudioStage()
            let listener = try? stage.join(2, "/lobby")
            stage.connect(1)
            for piece in pieces { stage.feed(1, piece) }
            #expect(listener?.take() == [.text("one"), .text("två")])
            #expect(stage.closed == [1])
            return [Self.withoutPongPlace(stage.bytes(of: 1)), stage.bytes(of: 2)]
        }
        #expect(disagreements == [])
    }

    /// A pong may come before or after frames of the same read, so it is moved to the end.
    private static func withoutPongPlace(_ bytes: [UInt8]) -> [UInt8] {
        let pong: [UInt8] = [0x8A, 0x01, UInt8(ascii: "p")]
        guard let index = bytes.indices.first(where: { bytes[$0...].starts(with: pong) }) else { return bytes }
        return Array(bytes[..<index] + bytes[(index + pong.count)...]) + pong
    }

    @Test("no bytes trap the studio", arguments: [1, 2, 3, 4] as [UInt64])
    func survivesNoise(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let visit = try Self.visit()
        let stage = StudioStage()
        for id in 1...UInt64(200) {
            var bytes = visit
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let place = Int.random(in: bytes.indices, using: &random)
                bytes[place] = UInt8.random(in: .min ... .max, using: &random)
            }
            stage.connect(id)
            stage.feed(id, bytes)
            stage.leave(id)
        }
        #expect(stage.peerCount == 0 && stage.memberCount(in: "lobby") == 0)
        let ada = try stage.join(1000, "/lobby")
        stage.feed(1000, ada.text("standing"))
        #expect(ada.take() == [.text("standing")])
    }
}
