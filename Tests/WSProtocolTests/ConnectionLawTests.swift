import BridgeTestSupport
import Testing
import WSProtocol
import WireBytes

@Suite("WebSocket connection: laws")
struct ConnectionLawTests {
    /// One end of a wire: a connection and the bytes on their way to the other end.
    private struct End: ~Copyable {
        var connection: WebSocketConnection
        var inFlight: [UInt8] = []
        var received: [RecordedEvent] = []

        init(role: WebSocketRole) { connection = WebSocketConnection(role: role) }

        mutating func act(_ choice: Int, _ rng: inout SeededGenerator) {
            var output = ByteWriter()
            let bytes = Array("text €".utf8) + Array(repeating: 0x61, count: Int.random(in: 0...200, using: &rng))
            switch choice {
            case 0: _ = bytes.withUnsafeBytes { connection.send(text: $0, output: &output, using: &rng) }
            case 1: _ = bytes.withUnsafeBytes { connection.send(binary: $0, output: &output, using: &rng) }
            case 2: _ = bytes.prefix(20).withUnsafeBytes { connection.sendPing($0, output: &output, using: &rng) }
            default:
                connection.close(
                    code: .goingAway, reason: "enough", now: MonotonicInstant(nanoseconds: 0), output: &output,
                    using: &rng)
            }
            inFlight += output.take().withUnsafeBytes { Array($0) }
        }

        /// Takes some of the bytes that are on their way here.
        mutating func take(from wire: inout [UInt8], _ rng: inout SeededGenerator) {
            let count = Int.random(in: 0...wire.count, using: &rng)
            var output = ByteWriter()
            var events: [RecordedEvent] = []
            wire.prefix(count).withUnsafeBytes { bytes in
                connection.bytesReceived(bytes, output: &output, using: &rng) { events.append(RecordedEvent($0)) }
            }
            wire.removeFirst(count)
            received += events
            inFlight += output.take().withUnsafeBytes { Array($0) }
        }
    }

    @Test("two connections wired together always reach closed without a failure", arguments: LawSeeds.seeds(40))
    func alwaysCloses(seed: UInt64) {
        var rng = SeededGenerator(seed: seed)
        var client = End(role: .client)
        var server = End(role: .server)
        for turn in 0..<60 {
            let mayClose = turn > 20 ? 4 : 3
            client.act(Int.random(in: 0..<mayClose, using: &rng), &rng)
            server.act(Int.random(in: 0..<mayClose, using: &rng), &rng)
            client.take(from: &server.inFlight, &rng)
            server.take(from: &client.inFlight, &rng)
        }
        client.act(3, &rng)
        for _ in 0..<100 where !(client.inFlight.isEmpty && server.inFlight.isEmpty) {
            client.take(from: &server.inFlight, &rng)
            server.take(from: &client.inFlight, &rng)
        }
        #expect(client.connection.state == .closed, "\(rng)")
        #expect(server.connection.state == .closed, "\(rng)")
        for event in client.received + server.received {
            if case .failed(let failure) = event { Issue.record("\(rng): \(failure.sentence)") }
        }
        #expect(client.received.last == .close(1001, "enough") || client.received.last == .close(1001, ""), "\(rng)")
    }

    @Test(
        "any bytes end in events or one failure, hold bounded memory, and may be cut anywhere",
        arguments: LawSeeds.seeds(60))
    func anyBytes(seed: UInt64) {
        var rng = SeededGenerator(seed: seed)
        let limits = WebSocketLimits(maxFrameBytes: 300, maxMessageBytes: 500)
        let role: WebSocketRole = seed % 2 == 0 ? .client : .server
        var bytes: [UInt8] = []
        for _ in 0..<12 {
            let first =
                ([0x81, 0x82, 0x01, 0x02, 0x00, 0x80, 0x89, 0x8A] as [UInt8]).randomElement(using: &rng) ?? 0x81
            let length = Int.random(in: 0...140, using: &rng)
            let payload = Bool.random(using: &rng) ? Array(repeating: 0x61, count: length) : rng.bytes(length)
            bytes += Frame(first, first & 0x08 != 0 ? Array(payload.prefix(125)) : payload).bytes(to: role)
            if Int.random(in: 0..<8, using: &rng) == 0 { bytes += rng.bytes(5) }
        }
        let whole = feed([bytes], role: role, limits: limits)
        let failures = whole.events.filter { if case .failed = $0 { true } else { false } }
        #expect(failures.count <= 1, "\(rng)")
        #expect(whole.bufferedByteCount <= 500 + 125, "\(rng)")
        #expect(SplitFeedVerifier.disagreements(bytes) { feed($0, role: role, limits: limits) } == [], "\(rng)")
        let answers = readByPeer(of: role, whole.output)
        #expect(!answers.contains { if case .failed = $0 { true } else { false } }, "\(rng)")
    }
}
