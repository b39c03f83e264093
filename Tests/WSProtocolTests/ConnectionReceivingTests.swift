import BridgeTestSupport
import Testing
import WSProtocol
import WireBytes

@Suite("WebSocket connection: receiving")
struct ConnectionReceivingTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var name: String
        var frames: [Frame]
        var events: [RecordedEvent]
        /// The peer's events for the answers; nil where it is the Close of the last event's failure.
        var answers: [RecordedEvent]?
        var limits = WebSocketLimits()

        var testDescription: String { name }

        init(
            _ name: String, _ frames: [Frame], _ events: [RecordedEvent], answers: [RecordedEvent]? = nil,
            limits: WebSocketLimits = WebSocketLimits()
        ) {
            (self.name, self.frames, self.events, self.answers, self.limits) = (name, frames, events, answers, limits)
        }
    }

    static let euro: [UInt8] = [0xE2, 0x82, 0xAC]
    static let full125 = [UInt8](repeating: 0x78, count: 125)

    static let rows: [Row] = [
        // §5.7 and §5.6
        Row("text in one frame, §5.7", [Frame(0x81, "Hello")], [.text("Hello")]),
        Row("text in two fragments, §5.7", [Frame(0x01, "Hel"), Frame(0x80, "lo")], [.text("Hello")]),
        Row("binary of 256 bytes, §5.7", [Frame(0x82, Array(0...255))], [.binary(Array(0...255))]),
        Row("binary of 65536 bytes, §5.7", [Frame(0x82, long)], [.binary(long)]),
        Row("empty text", [Frame(0x81)], [.text("")]),
        Row("empty binary", [Frame(0x82)], [.binary([])]),
        Row(
            "125 and 126 bytes", [Frame(0x82, full125), Frame(0x82, full125 + [1])],
            [.binary(full125), .binary(full125 + [1])]),
        Row("three empty fragments", [Frame(0x01), Frame(0x00), Frame(0x80)], [.text("")]),
        Row(
            "two messages, the first in three fragments",
            [Frame(0x02, [1]), Frame(0x00), Frame(0x80, [2]), Frame(0x81, "b")],
            [.binary([1, 2]), .text("b")]),
        // §5.5
        Row(
            "ping is answered with its payload, §5.5.2", [Frame(0x89, "Hello")], [.ping(Array("Hello".utf8))],
            answers: [.pong(Array("Hello".utf8))]),
        Row("empty ping", [Frame(0x89)], [.ping([])], answers: [.pong([])]),
        Row("ping of 125 bytes", [Frame(0x89, full125)], [.ping(full125)], answers: [.pong(full125)]),
        Row(
            "every ping is answered, in order", [Frame(0x89, "1"), Frame(0x89, "2")], [.ping([0x31]), .ping([0x32])],
            answers: [.pong([0x31]), .pong([0x32])]),
        Row("pong nobody asked for, §5.5.3", [Frame(0x8A, "x")], [.pong([0x78])]),
        Row(
            "control frames between fragments, §5.4",
            [Frame(0x01, "a"), Frame(0x89, "p"), Frame(0x00, "b"), Frame(0x8A), Frame(0x80, "c")],
            [.ping([0x70]), .pong([]), .text("abc")], answers: [.pong([0x70])]),
        // §5.5.1
        Row("close without a body", [Frame(0x88)], [.close(nil, "")], answers: [.close(nil, "")]),
        Row("close with code", [.close(1000)], [.close(1000, "")], answers: [.close(1000, "")]),
        Row(
            "close with code and reason", [.close(4999, Array("bye €".utf8))], [.close(4999, "bye €")],
            answers: [.close(4999, "")]),
        Row(
            "close with the longest reason", [.close(1001, Array(full125.dropLast(2)))],
            [.close(1001, String(repeating: "x", count: 123))], answers: [.close(1001, "")]),
        Row(
            "nothing counts after close", [.close(1000), Frame(0x81, "late"), Frame(0x89), Frame(0xFF)],
            [.close(1000, "")], answers: [.close(1000, "")]),
        Row(
            "close within a fragmented message", [Frame(0x01, "a"), .close(1001), Frame(0x80, "b")], [.close(1001, "")],
            answers: [.close(1001, "")]),
        Row("close with half a code", [Frame(0x88, [3])], [.failed(.closePayloadTooShort)]),
        Row("close with an ill-formed reason", [.close(1000, [0xFF])], [.failed(.invalidCloseReason)]),
        Row("close with half a character", [.close(1000, [0xE2, 0x82])], [.failed(.invalidCloseReason)]),
        Row("close with a forbidden code", [.close(1005)], [.failed(.invalidCloseCode(1005))]),
        // §5.2
        Row("RSV1", [Frame(0xC1, "a")], [.failed(.reservedBitsSet)]),
        Row("RSV2", [Frame(0xA1, "a")], [.failed(.reservedBitsSet)]),
        Row("RSV3 on a ping", [Frame(0x99)], [.failed(.reservedBitsSet)]),
        Row("opcode 3", [Frame(0x83)], [.failed(.reservedOpcode(3))]),
        Row(
            "opcode 7 after a good message", [Frame(0x81, "a"), Frame(0x87, "x")],
            [.text("a"), .failed(.reservedOpcode(7))]),
        Row("opcode 11", [Frame(0x8B)], [.failed(.reservedOpcode(11))]),
        Row("opcode 15", [Frame(0x8F)], [.failed(.reservedOpcode(15))]),
        Row("length 125 in 16 bits", [Frame(0x82, full125, lengthBytes: 2)], [.failed(.lengthNotMinimal)]),
        Row("length 5 in 64 bits", [Frame(0x81, Array("Hello".utf8), lengthBytes: 8)], [.failed(.lengthNotMinimal)]),
        // §5.4, §5.5
        Row("fragmented ping", [Frame(0x09, "a")], [.failed(.fragmentedControlFrame)]),
        Row("ping of 126 bytes", [Frame(0x89, full125 + [0])], [.failed(.controlFrameTooLong)]),
        Row("close of 126 bytes", [Frame(0x88, full125 + [0])], [.failed(.controlFrameTooLong)]),
        Row("continuation without a message", [Frame(0x80, "a")], [.failed(.continuationWithoutMessage)]),
        Row(
            "continuation after a whole message", [Frame(0x81, "a"), Frame(0x00, "b")],
            [.text("a"), .failed(.continuationWithoutMessage)]),
        Row("new text within a text", [Frame(0x01, "a"), Frame(0x81, "b")], [.failed(.messageInterrupted)]),
        Row("new binary within a text", [Frame(0x01, "a"), Frame(0x02, "b")], [.failed(.messageInterrupted)]),
        // §8.1
        Row(
            "character cut between fragments", [Frame(0x01, [0x41, 0xE2]), Frame(0x00, [0x82]), Frame(0x80, [0xAC])],
            [.text("A€")]),
        Row(
            "character cut around a ping", [Frame(0x01, [0xE2, 0x82]), Frame(0x89), Frame(0x80, [0xAC])],
            [.ping([]), .text("€")], answers: [.pong([])]),
        Row("ill-formed text", [Frame(0x81, [0x41, 0xFF, 0x41])], [.failed(.invalidUTF8)]),
        Row("surrogate", [Frame(0x81, [0xED, 0xA0, 0x80])], [.failed(.invalidUTF8)]),
        Row("text that ends within a character", [Frame(0x81, [0x41, 0xE2, 0x82])], [.failed(.invalidUTF8)]),
        Row(
            "fragments that end within a character", [Frame(0x01, [0xE2]), Frame(0x80, [0x82])], [.failed(.invalidUTF8)]
        ),
        Row("binary need not be UTF-8", [Frame(0x82, [0xFF, 0xC0])], [.binary([0xFF, 0xC0])]),
        Row(
            "the ill-formed first fragment fails before the ping", [Frame(0x01, [0xF5]), Frame(0x89)],
            [.failed(.invalidUTF8)]),
        // §10.4
        Row(
            "frame at the limit", [Frame(0x82, full125)], [.binary(full125)],
            limits: WebSocketLimits(maxFrameBytes: 125, maxMessageBytes: 125)),
        Row(
            "frame over the limit", [Frame(0x82, full125)], [.failed(.frameTooLarge(byteCount: 125, limit: 124))],
            limits: WebSocketLimits(maxFrameBytes: 124, maxMessageBytes: 1000)),
        Row(
            "fragments over the limit", [Frame(0x02, full125), Frame(0x00, full125), Frame(0x80, [1])],
            [.failed(.messageTooLarge(limit: 250))], limits: WebSocketLimits(maxFrameBytes: 250, maxMessageBytes: 250)),
        Row(
            "control frames do not count as message", [Frame(0x02, full125), Frame(0x89, full125), Frame(0x80)],
            [.ping(full125), .binary(full125)], answers: [.pong(full125)],
            limits: WebSocketLimits(maxFrameBytes: 125, maxMessageBytes: 125)),
    ]

    static let long = (0..<65536).map { UInt8(truncatingIfNeeded: $0 &* 7) }

    @Test("bytes become these events and answers, wherever they are cut", arguments: rows, WebSocketRole.allCases)
    func receives(_ row: Row, role: WebSocketRole) {
        let bytes = row.frames.flatMap { $0.bytes(to: role) }
        let whole = feed([bytes], role: role, limits: row.limits)
        #expect(whole.events == row.events)
        #expect(
            SplitFeedVerifier.disagreements(bytes, expected: whole) { feed($0, role: role, limits: row.limits) } == [])

        var answers = row.answers ?? []
        if case .failed(let failure) = row.events.last {
            answers = [.close(failure.closeCode.rawValue, failure.sentence)]
        }
        #expect(readByPeer(of: role, whole.output) == answers)
        #expect(whole.bufferedByteCount == 0)
        let isOver = row.events.contains {
            switch $0 {
            case .failed, .close: true
            default: false
            }
        }
        #expect(whole.state == (isOver ? .closed : .open))
        #expect(whole.shouldCloseTransport == isOver)
    }

    @Test("a whole message with the highest bit of its length set is refused at the length")
    func highBit() {
        let bytes: [UInt8] = [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 1]
        #expect(feed([bytes], role: .client).events == [.failed(.lengthHighBitSet)])
        #expect(SplitFeedVerifier.disagreements(bytes) { feed($0, role: .client) } == [])
    }

    @Test("a length of 63 bits is refused without a byte of payload")
    func hugeLength() {
        let trace = feed([[0x82, 127, 0x7F, 255, 255, 255, 255, 255, 255, 255]], role: .client)
        #expect(trace.events == [.failed(.frameTooLarge(byteCount: .max >> 1, limit: 4 * 1024 * 1024))])
        #expect(
            readByPeer(of: .client, trace.output).first
                == .close(1009, "frame of 9223372036854775807 bytes, the limit is 4194304"))
    }

    @Test("masks are required from clients and refused from servers, §5.1")
    func masks() {
        let frame = Frame(0x81, "a")
        #expect(feed([frame.bytes(to: .client)], role: .server).events == [.failed(.maskMissing)])
        #expect(feed([frame.bytes(to: .server)], role: .client).events == [.failed(.maskUnexpected)])
    }

    @Test("an ill-formed byte ends the connection before the frame is whole", arguments: WebSocketRole.allCases)
    func failsFast(role: WebSocketRole) {
        let bytes = Frame(0x81, [0x41, 0xE2, 0x82, 0x41] + Self.full125).bytes(to: role)
        let headerCount = bytes.count - 129
        #expect(feed([Array(bytes[..<(headerCount + 3)])], role: role).events == [])
        #expect(feed([Array(bytes[..<(headerCount + 4)])], role: role).events == [.failed(.invalidUTF8)])
    }

    @Test("the vectors of §5.7 in wire form")
    func rfcVectors() {
        #expect(feed([[0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F]], role: .client).events == [.text("Hello")])
        let masked: [UInt8] = [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
        #expect(feed([masked], role: .server).events == [.text("Hello")])
        let pong: [UInt8] = [0x8A, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
        #expect(feed([pong], role: .server).events == [.pong(Array("Hello".utf8))])
    }

    @Test("each close code is taken or refused as §7.4 says")
    func closeCodes() {
        let allowed = Set<UInt16>([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014]).union(
            3000...4999)
        for code in UInt16.min...6000 {
            #expect(WebSocketCloseCode(rawValue: code).isAllowedOnWire == allowed.contains(code), "\(code)")
        }
        for code in [0, 999, 1000, 1004, 1005, 1006, 1011, 1015, 1016, 1100, 2000, 2999, 3000, 4999, 5000, 65535]
            as [UInt16]
        {
            let trace = feed([Frame.close(code).bytes(to: .client)], role: .client)
            if allowed.contains(code) {
                #expect(trace.events == [.close(code, "")])
                #expect(readByPeer(of: .client, trace.output) == [.close(code, "")])
            } else {
                #expect(trace.events == [.failed(.invalidCloseCode(code))])
                #expect(
                    readByPeer(of: .client, trace.output).first
                        == .close(1002, "close code \(code) is not allowed in a frame"))
            }
        }
    }

    @Test("a flood of empty and tiny fragments is one message and little memory")
    func fragmentFlood() {
        var bytes = Frame(0x01).bytes(to: .client)
        for _ in 0..<20_000 { bytes += [0x00, 0x00, 0x00, 0x01, 0x61] }
        let unfinished = feed([bytes], role: .client)
        #expect(unfinished.events == [])
        #expect(unfinished.bufferedByteCount == 20_000)
        #expect(feed([bytes, [0x80, 0x00]], role: .client).events == [.text(String(repeating: "a", count: 20_000))])
    }

    @Test("a whole unmasked frame is delivered from the bytes fed, without a copy")
    func noCopy() {
        var connection = WebSocketConnection(role: .client)
        var output = ByteWriter()
        var rng = SeededGenerator(seed: 1)
        var distance: Int?
        [UInt8]([0x81, 0x02, 0x68, 0x69]).withUnsafeBytes { bytes in
            connection.bytesReceived(bytes, output: &output, using: &rng) { event in
                if case .text(let text) = event, let start = text.baseAddress, let base = bytes.baseAddress {
                    distance = start - base
                }
            }
        }
        #expect(distance == 2)
    }

    @Test(
        "the owner may answer behind each event, before what comes later is answered", arguments: WebSocketRole.allCases
    )
    func answersInOrder(_ role: WebSocketRole) {
        let frames = [Frame(0x81, "a"), Frame(0x89, "p"), Frame(0x01, "b"), Frame(0x80, "c"), Frame(0x83)]
        let expected: [RecordedEvent] = [
            .text("a"), .pong([0x70]), .text("bc"), .close(1002, WebSocketFailure.reservedOpcode(3).sentence),
        ]
        func answers(_ pieces: [[UInt8]]) -> [RecordedEvent] {
            var connection = WebSocketConnection(role: role)
            var output = ByteWriter()
            var rng = SeededGenerator(seed: 1)
            for piece in pieces {
                piece.withUnsafeBytes { bytes in
                    var rest = bytes
                    var text: [UInt8]?
                    while connection.takeEvent(
                        from: &rest, output: &output, using: &rng,
                        { if case .text(let bytes) = $0 { text = Array(bytes) } })
                    {
                        _ = text?.withUnsafeBytes { connection.send(text: $0, output: &output, using: &rng) }
                        text = nil
                    }
                }
            }
            return readByPeer(of: role, output.take().withUnsafeBytes { Array($0) })
        }
        let bytes = frames.flatMap { $0.bytes(to: role) }
        #expect(SplitFeedVerifier.disagreements(bytes, expected: expected, decode: answers) == [])
    }

    @Test("every failure has a code and a reason that fit a Close")
    func sentences() {
        let failures: [WebSocketFailure] = [
            .reservedBitsSet, .reservedOpcode(15), .fragmentedControlFrame, .controlFrameTooLong, .maskMissing,
            .maskUnexpected, .lengthNotMinimal, .lengthHighBitSet, .frameTooLarge(byteCount: .max, limit: .max),
            .messageTooLarge(limit: .max), .continuationWithoutMessage, .messageInterrupted, .invalidUTF8,
            .closePayloadTooShort, .invalidCloseCode(.max), .invalidCloseReason, .compressionBitMisplaced,
            .invalidCompressedData, .decompressorUnavailable,
        ]
        for failure in failures {
            #expect(failure.closeCode.isAllowedOnWire)
            #expect((1...WebSocketLimits.maxCloseReasonBytes).contains(failure.sentence.utf8.count))
        }
    }
}
