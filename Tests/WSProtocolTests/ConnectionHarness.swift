import BridgeTestSupport
import WSProtocol
import WireBytes

/// An event that outlives its callback.
enum RecordedEvent: Equatable, Sendable {
    case text(String)
    case binary([UInt8])
    case ping([UInt8])
    case pong([UInt8])
    case close(UInt16?, String)
    case failed(WebSocketFailure)

    init(_ event: WebSocketConnection.Event) {
        switch event {
        case .text(let bytes): self = .text(String(decoding: bytes, as: UTF8.self))
        case .binary(let bytes): self = .binary(Array(bytes))
        case .ping(let bytes): self = .ping(Array(bytes))
        case .pong(let bytes): self = .pong(Array(bytes))
        case .closeReceived(let code, let reason): self = .close(code?.rawValue, reason)
        case .failed(let failure): self = .failed(failure)
        }
    }
}

/// Everything that feeding some bytes to a connection brought about.
struct Trace: Equatable, Sendable {
    var events: [RecordedEvent] = []
    /// Bytes written, in wire form.
    var output: [UInt8] = []
    var state = WebSocketConnection.State.open
    var shouldCloseTransport = false
    var bufferedByteCount = 0
}

/// Feeds `pieces` to a fresh connection.
func feed(
    _ pieces: [[UInt8]], role: WebSocketRole, limits: WebSocketLimits = WebSocketLimits(),
    compression: WebSocketCompression? = nil, now: MonotonicInstant? = nil
) -> Trace {
    var connection = WebSocketConnection(role: role, limits: limits, compression: compression)
    return feed(pieces, to: &connection, now: now)
}

func feed(_ pieces: [[UInt8]], to connection: inout WebSocketConnection, now: MonotonicInstant? = nil) -> Trace {
    var output = ByteWriter()
    var rng = SeededGenerator(seed: 99)
    var trace = Trace()
    for piece in pieces {
        piece.withUnsafeBytes { bytes in
            connection.bytesReceived(bytes, now: now, output: &output, using: &rng) {
                trace.events.append(RecordedEvent($0))
            }
        }
    }
    trace.output = output.take().withUnsafeBytes { Array($0) }
    trace.state = connection.state
    trace.shouldCloseTransport = connection.shouldCloseTransport
    trace.bufferedByteCount = connection.bufferedByteCount
    return trace
}

/// A frame in wire form, made without the code under test. The mask of clients' frames is 37 FA 21 3D, as in RFC 6455
/// §5.7.
struct Frame {
    var first: UInt8
    var payload: [UInt8]
    /// How many bytes carry the length: 0 (in the second byte), 2 or 8; nil for the shortest.
    var lengthBytes: Int?

    init(_ first: UInt8, _ payload: [UInt8] = [], lengthBytes: Int? = nil) {
        (self.first, self.payload, self.lengthBytes) = (first, payload, lengthBytes)
    }

    init(_ first: UInt8, _ text: String) { self.init(first, Array(text.utf8)) }

    static func close(_ code: UInt16, _ reason: [UInt8] = []) -> Frame {
        Frame(0x88, [UInt8(code >> 8), UInt8(code & 0xFF)] + reason)
    }

    /// As a peer of a connection of `role` sends it.
    func bytes(to role: WebSocketRole) -> [UInt8] {
        let count = payload.count
        var bytes = [first]
        let maskBit: UInt8 = role == .server ? 0x80 : 0
        switch lengthBytes ?? (count < 126 ? 0 : count < 65536 ? 2 : 8) {
        case 0: bytes.append(maskBit | UInt8(count))
        case 2: bytes += [maskBit | 126, UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
        default:
            bytes += [maskBit | 127] + (0..<8).map { UInt8(truncatingIfNeeded: UInt64(count) >> UInt64(56 - 8 * $0)) }
        }
        guard role == .server else { return bytes + payload }
        let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
        return bytes + key + payload.enumerated().map { $1 ^ key[$0 % 4] }
    }
}

/// The events of a peer of `role` for `bytes`.
func readByPeer(of role: WebSocketRole, _ bytes: [UInt8]) -> [RecordedEvent] {
    feed([bytes], role: role == .client ? .server : .client).events
}
