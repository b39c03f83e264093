import BridgeTestSupport
import Testing
import WSProtocol
import WireBytes

@Suite("WebSocket connection: sending and closing")
struct ConnectionSendingTests {
    static let lengths = [0, 1, 3, 4, 5, 63, 64, 65, 125, 126, 127, 1000, 65_535, 65_536, 70_000]
    static let start = MonotonicInstant(nanoseconds: 1_000)

    @Test("a message of any length arrives as it was sent, in one frame", arguments: lengths, WebSocketRole.allCases)
    func roundTrip(length: Int, role: WebSocketRole) {
        var connection = WebSocketConnection(role: role)
        var rng = SeededGenerator(seed: UInt64(length))
        let binary = rng.bytes(length)
        let text = String(repeating: "x", count: length)
        var output = ByteWriter()
        #expect(binary.withUnsafeBytes { connection.send(binary: $0, output: &output, using: &rng) })
        let frameCount = output.count
        #expect(Array(text.utf8).withUnsafeBytes { connection.send(text: $0, output: &output, using: &rng) })
        let bytes = output.take().withUnsafeBytes { Array($0) }
        #expect(readByPeer(of: role, bytes) == [.binary(binary), .text(text)])
        let header = (length < 126 ? 2 : length < 65536 ? 4 : 10) + (role == .client ? 4 : 0)
        #expect(frameCount == header + length)
        #expect(bytes[0] == 0x82 && bytes[1] & 0x80 == (role == .client ? 0x80 : 0))
    }

    @Test("a client's frame is masked with the key that it carries, and the next one with another")
    func masked() {
        var connection = WebSocketConnection(role: .client)
        var rng = SeededGenerator(seed: 3)
        var output = ByteWriter()
        for _ in 0..<2 {
            _ = [0, 0, 0, 0, 0].withUnsafeBytes { connection.send(binary: $0, output: &output, using: &rng) }
        }
        let bytes = output.take().withUnsafeBytes { Array($0) }
        #expect(bytes.count == 2 * 46)
        let first = Array(bytes[2..<6])
        #expect(Array(bytes[6..<11]) == first + [first[0]])
        #expect(Array(bytes[48..<52]) != first)
    }

    @Test("a ping above 125 bytes is not sent")
    func longPing() {
        var connection = WebSocketConnection(role: .client)
        var rng = SeededGenerator(seed: 3)
        var output = ByteWriter()
        let long = [UInt8](repeating: 1, count: 126)
        #expect(!long.withUnsafeBytes { connection.sendPing($0, output: &output, using: &rng) })
        #expect(output.count == 0)
        #expect(long.dropLast().withUnsafeBytes { connection.sendPing($0, output: &output, using: &rng) })
        #expect(readByPeer(of: .client, output.take().withUnsafeBytes { Array($0) }) == [.ping(Array(long.dropLast()))])
    }

    @Test(
        "a reason is cut to 123 bytes between characters",
        arguments: [
            (String(repeating: "a", count: 123), 123), (String(repeating: "a", count: 124), 123),
            (String(repeating: "€", count: 42), 123), (String(repeating: "a", count: 122) + "é", 122),
            (String(repeating: "😀", count: 31), 120), ("", 0),
        ])
    func reason(_ reason: String, byteCount: Int) {
        var connection = WebSocketConnection(role: .server)
        var rng = SeededGenerator(seed: 3)
        var output = ByteWriter()
        connection.close(code: .goingAway, reason: reason, now: Self.start, output: &output, using: &rng)
        let expected = String(decoding: Array(reason.utf8.prefix(byteCount)), as: UTF8.self)
        #expect(readByPeer(of: .server, output.take().withUnsafeBytes { Array($0) }) == [.close(1001, expected)])
    }

    @Test("closing twice sends one Close, and nothing is sent after it")
    func closeOnce() {
        var connection = WebSocketConnection(role: .client)
        var rng = SeededGenerator(seed: 3)
        var output = ByteWriter()
        connection.close(code: .normalClosure, reason: "bye", now: Self.start, output: &output, using: &rng)
        connection.close(code: .goingAway, reason: "again", now: Self.start + .seconds(9), output: &output, using: &rng)
        #expect(!["x".utf8.first ?? 0].withUnsafeBytes { connection.send(text: $0, output: &output, using: &rng) })
        #expect(![].withUnsafeBytes { connection.sendPing($0, output: &output, using: &rng) })
        #expect(connection.state == .closing)
        #expect(connection.closeDeadline == Self.start + WebSocketLimits.closeTimeout)
        #expect(connection.shouldCloseTransport == false)
        #expect(readByPeer(of: .client, output.take().withUnsafeBytes { Array($0) }) == [.close(1000, "bye")])
    }

    @Test("while it waits for the peer's Close, messages arrive and pings go unanswered")
    func closing() {
        var connection = WebSocketConnection(role: .client)
        var rng = SeededGenerator(seed: 3)
        var output = ByteWriter()
        connection.close(code: .normalClosure, reason: "", now: Self.start, output: &output, using: &rng)
        let bytes = [Frame(0x81, "a"), Frame(0x89, "p"), .close(1000)].flatMap { $0.bytes(to: .client) }
        let trace = feed([bytes], to: &connection)
        #expect(trace.events == [.text("a"), .ping([0x70]), .close(1000, "")])
        #expect(trace.output == [])
        #expect(connection.state == .closed)
    }

    @Test("a failure while closing sends no second Close")
    func failureWhileClosing() {
        var connection = WebSocketConnection(role: .server)
        var rng = SeededGenerator(seed: 3)
        var output = ByteWriter()
        connection.close(code: .normalClosure, reason: "", now: Self.start, output: &output, using: &rng)
        let trace = feed([[0xFF]], to: &connection)
        #expect(trace.events == [.failed(.reservedBitsSet)])
        #expect(trace.output == [])
        #expect(trace.shouldCloseTransport)
    }

    @Test("the server ends the transport first, a client waits for that until the deadline, §7.1.1")
    func transportEnd() {
        let close = { (role: WebSocketRole) in [Frame.close(1000).bytes(to: role)] }
        #expect(feed(close(.server), role: .server, now: Self.start).shouldCloseTransport)
        #expect(feed(close(.client), role: .client).shouldCloseTransport)

        var answering = WebSocketConnection(role: .client)
        #expect(!feed(close(.client), to: &answering, now: Self.start).shouldCloseTransport)
        #expect(answering.closeDeadline == Self.start + WebSocketLimits.closeTimeout)

        var asking = WebSocketConnection(role: .client)
        var rng = SeededGenerator(seed: 3)
        var output = ByteWriter()
        asking.close(code: .normalClosure, reason: "", now: Self.start, output: &output, using: &rng)
        #expect(!feed(close(.client), to: &asking, now: Self.start + .seconds(2)).shouldCloseTransport)
        #expect(asking.closeDeadline == Self.start + WebSocketLimits.closeTimeout)
    }

    @Test("a code that must not be on the wire becomes a Close without one")
    func localCode() {
        var connection = WebSocketConnection(role: .server)
        var rng = SeededGenerator(seed: 3)
        var output = ByteWriter()
        connection.close(
            code: WebSocketCloseCode(rawValue: 1006), reason: "x", now: Self.start, output: &output, using: &rng)
        #expect(readByPeer(of: .server, output.take().withUnsafeBytes { Array($0) }) == [.close(nil, "")])
    }
}

@Suite("WebSocket masking")
struct MaskTests {
    @Test("masking twice gives the bytes back, at every offset and alignment", arguments: [UInt64(11), 12])
    func twice(seed: UInt64) {
        var rng = SeededGenerator(seed: seed)
        for length in [0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 130, 257] {
            for offset in 0..<9 {
                let original = rng.bytes(length)
                let mask = WebSocketMask(using: &rng)
                let key = [mask.bytes.0, mask.bytes.1, mask.bytes.2, mask.bytes.3]
                var bytes = original
                bytes.withUnsafeMutableBytes { mask.apply(to: $0, offset: offset) }
                #expect(
                    bytes == original.enumerated().map { $1 ^ key[($0 + offset) % 4] }, "\(rng) \(length) \(offset)")
                bytes.withUnsafeMutableBytes { mask.apply(to: $0, offset: offset) }
                #expect(bytes == original, "\(rng) \(length) \(offset)")
            }
        }
    }
}
