import BridgeTestSupport
import HTTPProtocol
import Testing
import WireBytes

@testable import WSProtocol

@Suite("permessage-deflate: receiving")
struct CompressionReceivingTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var name: String
        var frames: [Frame]
        var events: [RecordedEvent]
        var limits = WebSocketLimits()

        var testDescription: String { name }

        init(
            _ name: String, _ frames: [Frame], _ events: [RecordedEvent], limits: WebSocketLimits = WebSocketLimits()
        ) {
            (self.name, self.frames, self.events, self.limits) = (name, frames, events, limits)
        }
    }

    static let hello: [UInt8] = [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]
    /// A fixed block that is empty and calls itself the last.
    static let emptyEnd: [UInt8] = [0x03, 0x00]

    /// A block without compression and the byte that starts the empty one behind it.
    static func stored(_ bytes: [UInt8]) -> [UInt8] {
        let count = UInt16(bytes.count)
        return [0x00, UInt8(count & 0xFF), UInt8(count >> 8), ~UInt8(count & 0xFF), ~UInt8(count >> 8)] + bytes + [0x00]
    }

    static let rows: [Row] = [
        // RFC 7692 §7.2.3
        Row("one block, §7.2.3.1", [Frame(0xC1, hello)], [.text("Hello")]),
        Row(
            "one block in two fragments, §7.2.3.1", [Frame(0x41, Array(hello[..<3])), Frame(0x80, Array(hello[3...]))],
            [.text("Hello")]),
        Row(
            "sharing the window, §7.2.3.2", [Frame(0xC1, hello), Frame(0xC1, [0xF2, 0x00, 0x11, 0x00, 0x00])],
            [.text("Hello"), .text("Hello")]),
        Row(
            "without compression, §7.2.3.3",
            [Frame(0xC1, [0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00])], [.text("Hello")]),
        Row(
            "a block that ends the stream, §7.2.3.4",
            [Frame(0xC1, [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00])], [.text("Hello")]),
        Row(
            "two blocks, §7.2.3.5",
            [Frame(0xC1, [0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00])],
            [.text("Hello")]),
        Row("empty message, §7.2.3.6", [Frame(0xC1, [0x00])], [.text("")]),
        // Other encoders' output
        Row(
            "the window outlives the end of a stream",
            [
                Frame(0xC1, [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00]),
                Frame(0xC1, [0xF2, 0x00, 0x11, 0x00, 0x00]),
            ], [.text("Hello"), .text("Hello")]),
        Row(
            "a stream that ends without the byte behind it",
            [Frame(0xC1, [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]), Frame(0xC1, hello)],
            [.text("Hello"), .text("Hello")]),
        Row(
            "an empty message of no bytes", [Frame(0xC1), Frame(0xC2, hello)],
            [.text(""), .binary(Array("Hello".utf8))]),
        Row(
            "fragments of which some are empty",
            [Frame(0x41), Frame(0x00, Array(hello[..<1])), Frame(0x00), Frame(0x00, Array(hello[1...])), Frame(0x80)],
            [.text("Hello")]),
        Row(
            "messages with and without compression", [Frame(0x81, "a"), Frame(0xC1, hello), Frame(0x82, "b")],
            [.text("a"), .text("Hello"), .binary([0x62])]),
        Row(
            "control frames between fragments",
            [Frame(0x41, Array(hello[..<4])), Frame(0x89, "p"), Frame(0x80, Array(hello[4...]))],
            [.ping([0x70]), .text("Hello")]),
        Row(
            "a message of a thousand ends", [Frame(0xC2, (0..<1000).flatMap { _ in emptyEnd } + [0x00])], [.binary([])]),
        // RSV1, §6
        Row(
            "RSV1 on a continuation", [Frame(0x41, hello), Frame(0xC0, "a")], [.failed(.compressionBitMisplaced)]),
        Row(
            "RSV1 on a continuation of a plain message", [Frame(0x01, "a"), Frame(0xC0, hello)],
            [.failed(.compressionBitMisplaced)]),
        Row("RSV1 on a ping", [Frame(0xC9)], [.failed(.compressionBitMisplaced)]),
        Row("RSV1 on a close", [Frame(0xC8)], [.failed(.compressionBitMisplaced)]),
        Row("RSV2 beside RSV1", [Frame(0xE1, hello)], [.failed(.reservedBitsSet)]),
        Row("RSV3 alone", [Frame(0x91, "a")], [.failed(.reservedBitsSet)]),
        Row("RSV1 on a reserved opcode", [Frame(0xC3)], [.failed(.reservedOpcode(3))]),
        Row(
            "a new message within a compressed one", [Frame(0x41, hello), Frame(0xC1, hello)],
            [.failed(.messageInterrupted)]),
        // Corruption
        Row("a block type that does not exist", [Frame(0xC1, [0x07, 0x00])], [.failed(.invalidCompressedData)]),
        Row(
            "a stored block whose lengths disagree", [Frame(0xC1, [0x00, 0x05, 0x00, 0xFA, 0x00])],
            [.failed(.invalidCompressedData)]),
        Row(
            "a reference beyond the start", [Frame(0xC1, [0xF2, 0x00, 0x11, 0x00, 0x00])],
            [.failed(.invalidCompressedData)]),
        Row("cut within a block", [Frame(0xC1, Array(hello[..<4]))], [.failed(.invalidCompressedData)]),
        Row(
            "cut within a stored block", [Frame(0xC2, [0x00, 0x09, 0x00, 0xF6, 0xFF, 0x48])],
            [.failed(.invalidCompressedData)]),
        Row(
            "good, then corrupted", [Frame(0xC1, hello), Frame(0xC1, [0x07])],
            [.text("Hello"), .failed(.invalidCompressedData)]),
        // Text, RFC 6455 §8.1
        Row("ill-formed text", [Frame(0xC1, stored([0x41, 0xFF]))], [.failed(.invalidUTF8)]),
        Row(
            "ill-formed text before the end of the message", [Frame(0x41, stored([0x41, 0xED, 0xA0]))],
            [.failed(.invalidUTF8)]),
        Row("text that ends within a character", [Frame(0xC1, stored([0xE2, 0x82]))], [.failed(.invalidUTF8)]),
        Row(
            "character cut between fragments", [Frame(0x41, stored([0xE2])), Frame(0x80, stored([0x82, 0xAC]))],
            [.failed(.invalidCompressedData)]),
        Row("binary may be anything", [Frame(0xC2, stored([0xFF]))], [.binary([0xFF])]),
        // Limits
        Row(
            "as large as allowed", [Frame(0xC1, hello)], [.text("Hello")],
            limits: WebSocketLimits(maxFrameBytes: 7, maxMessageBytes: 5)),
        Row(
            "one byte too large when decompressed", [Frame(0xC1, hello)], [.failed(.messageTooLarge(limit: 4))],
            limits: WebSocketLimits(maxFrameBytes: 7, maxMessageBytes: 4)),
        Row(
            "too large when compressed", [Frame(0xC1, hello)], [.failed(.frameTooLarge(byteCount: 7, limit: 6))],
            limits: WebSocketLimits(maxFrameBytes: 6, maxMessageBytes: 5)),
        Row(
            "ill-formed before too large", [Frame(0xC1, stored([0x41, 0xFF, 0x41]))], [.failed(.invalidUTF8)],
            limits: WebSocketLimits(maxMessageBytes: 2)),
        Row(
            "too large before ill-formed", [Frame(0xC1, stored([0x41, 0x41, 0xFF]))],
            [.failed(.messageTooLarge(limit: 2))], limits: WebSocketLimits(maxMessageBytes: 2)),
        Row(
            "too large before corrupted", [Frame(0xC2, stored([1, 2, 3]) + [0x07])],
            [.failed(.messageTooLarge(limit: 2))], limits: WebSocketLimits(maxMessageBytes: 2)),
    ]

    @Test("compressed frames give their events, however they are cut", arguments: rows)
    func receives(_ row: Row) {
        for role in WebSocketRole.allCases {
            let bytes = row.frames.flatMap { $0.bytes(to: role) }
            let disagreements = SplitFeedVerifier.disagreements(bytes, expected: row.events) {
                feed($0, role: role, limits: row.limits, compression: WebSocketCompression()).events
            }
            #expect(disagreements == [])
        }
    }

    @Test("without an agreement, RSV1 is a reserved bit")
    func notAgreed() {
        #expect(feed([Frame(0xC1, Self.hello).bytes(to: .client)], role: .client).events == [.failed(.reservedBitsSet)])
    }

    @Test("without context takeover, nothing is remembered of earlier messages", arguments: WebSocketRole.allCases)
    func noContext(_ role: WebSocketRole) {
        let compression = WebSocketCompression(serverNoContextTakeover: true, clientNoContextTakeover: true)
        let bytes = [Frame(0xC1, Self.hello), Frame(0xC1, [0xF2, 0x00, 0x11, 0x00, 0x00])].flatMap {
            $0.bytes(to: role)
        }
        #expect(
            feed([bytes], role: role, compression: compression).events == [
                .text("Hello"), .failed(.invalidCompressedData),
            ])
    }

    @Test("ill-formed text fails when it shows, not when the message ends")
    func failsFast() {
        let start = Frame(0x41, Self.stored([0x41, 0xFF])).bytes(to: .client)
        #expect(feed([start], role: .client, compression: WebSocketCompression()).events == [.failed(.invalidUTF8)])
        let unfinished = Array(Frame(0xC1, Self.stored([0x41, 0xFF, 0x41])).bytes(to: .client).dropLast(2))
        #expect(
            feed([unfinished], role: .client, compression: WebSocketCompression()).events == [.failed(.invalidUTF8)])
    }

    @Test(
        "a small frame that stands for a huge message holds no more than the limit", arguments: WebSocketRole.allCases)
    func bomb(_ role: WebSocketRole) {
        guard var deflater = Deflater(windowBits: 15) else {
            Issue.record("no memory")
            return
        }
        var out = ByteWriter()
        let zeros = [UInt8](repeating: 0, count: 8 << 20)
        let isDone = zeros.withUnsafeBytes { deflater.deflate($0, into: &out) }
        let bomb = out.take().withUnsafeBytes { Array($0) }
        #expect(isDone && bomb.count < 10_000)
        let limits = WebSocketLimits(maxFrameBytes: 1 << 20, maxMessageBytes: 100_000)
        let bytes = Frame(0xC2, bomb).bytes(to: role)
        var connection = WebSocketConnection(role: role, limits: limits, compression: WebSocketCompression())
        var events: [RecordedEvent] = []
        var answers: [UInt8] = []
        for piece in bytes.prefix(200).map({ [$0] }) + [Array(bytes.dropFirst(200))] {
            let trace = feed([piece], to: &connection)
            #expect(trace.bufferedByteCount <= limits.maxMessageBytes)
            events += trace.events
            answers += trace.output
        }
        #expect(events == [.failed(.messageTooLarge(limit: 100_000))])
        let holdsMemory = connection.holdsCompressionMemory
        #expect(connection.bufferedByteCount == 0 && !holdsMemory)
        #expect(readByPeer(of: role, answers).first == .close(1009, "message of more than 100000 bytes"))
        // The same with the limit of the message itself, which is then no bomb.
        let roomy = WebSocketLimits(maxFrameBytes: 1 << 20, maxMessageBytes: zeros.count)
        #expect(
            feed([bytes], role: role, limits: roomy, compression: WebSocketCompression()).events == [.binary(zeros)])
    }

    @Test("fragments of nothing add up to nothing")
    func endlessNothing() {
        var connection = WebSocketConnection(role: .client, compression: WebSocketCompression())
        let nothing = Frame(0x00, [0x00, 0x00, 0x00, 0xFF, 0xFF]).bytes(to: .client)
        _ = feed([Frame(0x42, [0x00, 0x00, 0x00, 0xFF, 0xFF]).bytes(to: .client)], to: &connection)
        let trace = feed([[UInt8]](repeating: nothing, count: 5_000), to: &connection)
        #expect(trace.events == [] && trace.bufferedByteCount == 0)
    }
}

@Suite("permessage-deflate: sending")
struct CompressionSendingTests {
    static func sent(
        _ message: [UInt8], role: WebSocketRole, _ compression: WebSocketCompression
    ) -> (frame: [UInt8], holdsMemory: Bool) {
        var connection = WebSocketConnection(role: role, compression: compression)
        var out = ByteWriter()
        var rng = SeededGenerator(seed: 5)
        _ = message.withUnsafeBytes { connection.send(text: $0, output: &out, using: &rng) }
        return (out.take().withUnsafeBytes { Array($0) }, connection.holdsCompressionMemory)
    }

    @Test("\"Hello\" is what §7.2.3.1 says")
    func hello() {
        let hello = Array("Hello".utf8)
        let frame = Self.sent(hello, role: .server, WebSocketCompression(leastCompressedBytes: 1)).frame
        #expect(frame == [0xC1, 0x07] + CompressionReceivingTests.hello)
        // Without a context nothing is won by it, so it goes as it is.
        let plain = WebSocketCompression(serverNoContextTakeover: true, leastCompressedBytes: 1)
        #expect(Self.sent(hello, role: .server, plain).frame == [0x81, 0x05] + hello)
    }

    @Test("short messages are sent as they are, and empty ones whatever is asked")
    func threshold() {
        let compression = WebSocketCompression(leastCompressedBytes: 100)
        let message = [UInt8](repeating: 0x61, count: 100)
        #expect(Self.sent(message, role: .server, compression).frame.first == 0xC1)
        #expect(Self.sent(Array(message.dropLast()), role: .server, compression).frame.first == 0x81)
        let eager = WebSocketCompression(leastCompressedBytes: .min)
        #expect(Self.sent([], role: .server, eager).frame == [0x81, 0x00])
    }

    @Test("memory is kept between messages only for a context", arguments: [true, false])
    func memory(noContext: Bool) {
        let compression = WebSocketCompression(serverNoContextTakeover: noContext, leastCompressedBytes: 1)
        let message = [UInt8](repeating: 0x61, count: 400)
        let (frame, holdsMemory) = Self.sent(message, role: .server, compression)
        #expect(frame.first == 0xC1 && holdsMemory == !noContext)
        var reader = WebSocketConnection(role: .client, compression: compression)
        #expect(feed([frame], to: &reader).events == [.text(String(decoding: message, as: UTF8.self))])
        #expect(reader.holdsCompressionMemory == !noContext)
    }

    @Test("headers of every length stand before what was compressed", arguments: [1, 126, 500, 70_000, 1 << 20])
    func headers(byteCount: Int) {
        var rng = SeededGenerator(seed: 3)
        let message = rng.bytes(byteCount)
        for role in WebSocketRole.allCases {
            var connection = WebSocketConnection(role: role, compression: WebSocketCompression(leastCompressedBytes: 1))
            var out = ByteWriter()
            // Something pending before and behind.
            for _ in 0..<2 { _ = message.withUnsafeBytes { connection.send(binary: $0, output: &out, using: &rng) } }
            let frames = out.take().withUnsafeBytes { Array($0) }
            let read = feed([frames], role: role.peer, compression: WebSocketCompression())
            #expect(read.events == [.binary(message), .binary(message)])
        }
    }

    @Test("what is made for a window of 8 bits can be read with one", arguments: UInt64(1)...10)
    func smallestWindow(seed: UInt64) {
        var rng = SeededGenerator(seed: seed)
        // Repeats at every distance around 256, so that a compressor that may look further will.
        var message: [UInt8] = []
        for distance in 240...300 {
            let piece = rng.bytes(distance)
            message += piece + piece
        }
        guard var deflater = Deflater(windowBits: 8), var inflater = Inflater(windowBits: 8) else {
            Issue.record("no memory")
            return
        }
        for _ in 0..<2 {
            var out = ByteWriter()
            let isDone = message.withUnsafeBytes { deflater.deflate($0, into: &out) }
            #expect(isDone)
            let compressed = out.take().withUnsafeBytes { Array($0) } + [0x00, 0x00, 0xFF, 0xFF]
            var read = ReceiveBuffer()
            for byte in compressed {
                // One byte at a time, so that nothing is at hand but the window.
                withUnsafeBytes(of: byte) { bytes in
                    var input = bytes
                    while true {
                        let step = inflater.inflate(&input, into: &read, upTo: 1)
                        #expect(step != .broken)
                        if step != .roomFilled { break }
                    }
                }
            }
            #expect(read.withUnsafeBytes { Array($0) } == message)
        }
    }
}

@Suite("permessage-deflate: laws")
struct CompressionLawTests {
    /// Text-like bytes with repeats, or noise.
    static func message(_ maxByteCount: Int, _ rng: inout SeededGenerator) -> [UInt8] {
        let count = Int.random(in: 0...maxByteCount, using: &rng)
        if Int.random(in: 0..<4, using: &rng) == 0 { return rng.bytes(count) }
        let words = ["{\"type\":", "\"message\"", ",\"text\":\"", "hello ", "world ", "€", "\"}", "alice"]
        var bytes: [UInt8] = []
        while bytes.count < count { bytes += Array((words.randomElement(using: &rng) ?? "").utf8) }
        return bytes
    }

    struct Wishes: CustomTestStringConvertible, Sendable {
        var client: WebSocketCompression
        var server: WebSocketCompression

        var testDescription: String { "\(client.offer) / \(server.offer)" }
    }

    static let everyWish: [Wishes] = {
        var rows: [Wishes] = []
        let windows = [8, 9, 12, 15]
        for flags in 0..<16 {
            for (index, serverBits) in windows.enumerated() {
                for (other, clientBits) in windows.enumerated() {
                    // The windows the other side wishes are shifted, so that every pair meets.
                    rows.append(
                        Wishes(
                            client: WebSocketCompression(
                                serverNoContextTakeover: flags & 1 != 0, clientNoContextTakeover: flags & 2 != 0,
                                serverMaxWindowBits: serverBits, clientMaxWindowBits: clientBits,
                                leastCompressedBytes: 1),
                            server: WebSocketCompression(
                                serverNoContextTakeover: flags & 4 != 0, clientNoContextTakeover: flags & 8 != 0,
                                serverMaxWindowBits: windows[(index + flags) % 4],
                                clientMaxWindowBits: windows[(other + flags / 4) % 4], leastCompressedBytes: 20)))
                }
            }
        }
        return rows
    }()

    @Test("both sides agree on the same, and every message arrives as it was sent", arguments: everyWish)
    func everyCombination(_ wishes: Wishes) throws {
        let url = try HTTPURL(parsing: "ws://h/")
        var clientHandshake = try WebSocketClientHandshake(
            url: url, compression: wishes.client, nonce: Array("the sample nonce".utf8))
        var serverHandshake = WebSocketServerHandshake(compression: wishes.server)
        var out = ByteWriter()
        clientHandshake.request(into: &out)
        _ = out.take().withUnsafeBytes { serverHandshake.bytesReceived($0) }
        let isAccepted = serverHandshake.accept(into: &out)
        #expect(isAccepted)
        let outcome = out.take().withUnsafeBytes { clientHandshake.bytesReceived($0) }
        guard case .accepted = outcome else {
            Issue.record("\(outcome)")
            return
        }
        let agreed = try #require(clientHandshake.compression)
        #expect(
            CompressionNegotiationTests.short(agreed) == CompressionNegotiationTests.short(serverHandshake.compression))
        #expect(agreed.serverMaxWindowBits <= min(wishes.client.serverMaxWindowBits, wishes.server.serverMaxWindowBits))
        #expect(agreed.clientMaxWindowBits <= min(wishes.client.clientMaxWindowBits, wishes.server.clientMaxWindowBits))

        var rng = SeededGenerator(seed: 11)
        var client = WebSocketConnection(role: .client, compression: agreed)
        var server = WebSocketConnection(role: .server, compression: serverHandshake.compression)
        for _ in 0..<12 {
            let message = Self.message(900, &rng)
            Self.check(message, from: &client, to: &server, &rng)
            Self.check(message, from: &server, to: &client, &rng)
        }
    }

    @Test("large messages arrive as they were sent", arguments: UInt64(1)...8)
    func large(seed: UInt64) {
        var rng = SeededGenerator(seed: seed)
        let compression = WebSocketCompression(
            serverNoContextTakeover: seed % 2 == 0, clientMaxWindowBits: 8 + Int(seed % 8))
        var client = WebSocketConnection(role: .client, compression: compression)
        var server = WebSocketConnection(role: .server, compression: compression)
        for _ in 0..<4 {
            let message = Self.message(200_000, &rng)
            Self.check(message, from: &client, to: &server, &rng)
            Self.check(message, from: &server, to: &client, &rng)
        }
    }

    @Test("corrupted messages end in events or one failure, and may be cut anywhere", arguments: LawSeeds.seeds(40))
    func corrupted(seed: UInt64) {
        var rng = SeededGenerator(seed: seed)
        let role: WebSocketRole = seed % 2 == 0 ? .client : .server
        var sender = WebSocketConnection(role: role.peer, compression: WebSocketCompression(leastCompressedBytes: 1))
        var out = ByteWriter()
        for _ in 0..<3 {
            let message = Self.message(120, &rng)
            _ = message.withUnsafeBytes { sender.send(binary: $0, output: &out, using: &rng) }
        }
        var bytes = out.take().withUnsafeBytes { Array($0) }
        for _ in 0..<Int.random(in: 1...3, using: &rng) {
            let at = Int.random(in: 0..<bytes.count, using: &rng)
            bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &rng)
        }
        let limits = WebSocketLimits(maxFrameBytes: 2_000, maxMessageBytes: 1_000)
        let disagreements = SplitFeedVerifier.disagreements(bytes) {
            feed($0, role: role, limits: limits, compression: WebSocketCompression())
        }
        #expect(disagreements == [], "\(rng)")
        let trace = feed([bytes], role: role, limits: limits, compression: WebSocketCompression())
        #expect(trace.events.filter { if case .failed = $0 { true } else { false } }.count <= 1, "\(rng)")
        #expect(trace.bufferedByteCount <= limits.maxMessageBytes + 125, "\(rng)")
    }

    /// Sends `message` and feeds its frame in random pieces.
    private static func check(
        _ message: [UInt8], from sender: inout WebSocketConnection, to receiver: inout WebSocketConnection,
        _ rng: inout SeededGenerator
    ) {
        var out = ByteWriter()
        let isSent = message.withUnsafeBytes { sender.send(binary: $0, output: &out, using: &rng) }
        #expect(isSent)
        var rest = out.take().withUnsafeBytes { Array($0) }[...]
        var pieces: [[UInt8]] = []
        while !rest.isEmpty {
            pieces.append(Array(rest.prefix(Int.random(in: 1...max(1, rest.count), using: &rng))))
            rest = rest.dropFirst(pieces.last?.count ?? 0)
        }
        let trace = feed(pieces, to: &receiver)
        #expect(trace.events == [.binary(message)], "\(rng)")
        #expect(trace.bufferedByteCount == 0, "\(rng)")
    }
}
