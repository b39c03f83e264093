import HTTPProtocol
import Transport
import WSProtocol
import WireBytes

// IRC over WebSocket. The bridge handles lines only; between it and the socket each line is a message. Lines for many
// clients are framed once for each kind of client, as they are rendered once for each set of capabilities.
//
// Source: IRCv3 websocket.

/// How messages to a client are made.
enum WebSocketKind: UInt8, CaseIterable {
    /// The client speaks IRC as it is.
    case none
    case text
    case binary
    case textCompressed
    case binaryCompressed

    var isText: Bool { self == .text || self == .textCompressed }
    var isCompressed: Bool { self == .textCompressed || self == .binaryCompressed }
}

/// Bounds of clients that come over WebSocket, besides those of all clients.
enum WebSocketClientLimits {
    /// How long a client may take to ask for its WebSocket; browsers ask with their first segment.
    static let openingTimeout: Duration = .seconds(10)
    /// Requests under way, over all listeners. Each may hold a head of some kilobytes.
    static let openingsAtOnce = 256
    /// Of them from one address, or one /64 of IPv6, beyond this machine and its proxies.
    static let openingsPerAddress = 16
    /// Payload of a message, in bytes: a line of the greatest length and as much again, so that a longer one is
    /// answered by IRC's own numeric and not by closing the connection. Source: IRCv3 websocket, "Security
    /// considerations".
    static let maxMessageBytes = 16 * 1024
    /// Without context takeover on either side: contexts would cost as much as three hundred idle clients.
    static let compression = WebSocketCompression(serverNoContextTakeover: true, clientNoContextTakeover: true)
}

/// The subprotocols. Source: IRCv3 websocket, "WebSocket features and encoding".
enum WebSocketSubprotocol: String, CaseIterable {
    case text = "text.ircv3.net"
    case binary = "binary.ircv3.net"
}

/// A client with an open WebSocket. By reference, because a connection cannot be taken out of a table and back.
final class WebSocketPeer {
    fileprivate var connection: WebSocketConnection
    /// Nil: no subprotocol was negotiated, and the client's first message decides the kind.
    let subprotocol: WebSocketSubprotocol?
    private let compresses: Bool
    private var isText: Bool
    /// The bridge wants no more for now.
    private(set) var isPaused = false
    /// Bytes behind the message at which the bridge paused. At most one read.
    private var held = ReceiveBuffer()

    init(subprotocol: WebSocketSubprotocol?, compression: WebSocketCompression?) {
        self.subprotocol = subprotocol
        isText = subprotocol == .text
        // Shared frames are compressed for the largest window.
        compresses = compression?.serverMaxWindowBits == WebSocketCompression.windowBits.upperBound
        let limit = WebSocketClientLimits.maxMessageBytes
        connection = WebSocketConnection(
            role: .server, limits: WebSocketLimits(maxFrameBytes: limit, maxMessageBytes: limit),
            compression: compression)
    }

    var hasHeld: Bool { !held.isEmpty }

    func pause() { isPaused = true }
    func resume() { isPaused = false }
    func hold(_ bytes: UnsafeRawBufferPointer) { held.append(bytes) }

    func takeHeld() -> ReceiveBuffer {
        var taken = ReceiveBuffer()
        swap(&taken, &held)
        return taken
    }

    /// The client sent a message; whether it is answered in another kind from now on.
    func said(isText: Bool) -> Bool {
        guard subprotocol == nil, self.isText != isText else { return false }
        self.isText = isText
        return true
    }

    var kind: WebSocketKind {
        if isText { return compresses ? .textCompressed : .text }
        return compresses ? .binaryCompressed : .binary
    }
}

/// A connection that has not asked for its WebSocket yet, or not to the end.
struct WebSocketOpening {
    var handshake = WebSocketServerHandshake(compression: WebSocketClientLimits.compression)
    var listener: ListenerID
    var peer: SocketAddress
    /// Whether ``WebSocketClientLimits/openingsPerAddress`` counts it.
    var isCounted: Bool
    var hasReceived = false

    /// Verbs with which IRC clients begin.
    private static let firstVerbs = ["CAP ", "NICK ", "USER ", "PASS ", "WEBIRC "]

    /// An answer for clients that do not speak HTTP, detected by the first bytes; nil: it may be HTTP.
    static func answerToOthers(_ bytes: UnsafeRawBufferPointer) -> (answer: String, why: String)? {
        // A fatal alert, protocol_version: RFC 8446 §6.
        if bytes.first == 0x16 {
            return ("\u{15}\u{3}\u{1}\u{0}\u{2}\u{2}\u{46}", "TLS was spoken on a port without it")
        }
        guard firstVerbs.contains(where: { bytes.prefix($0.utf8.count).elementsEqual($0.utf8) }) else { return nil }
        return ("ERROR :This port is for IRC over WebSocket\r\n", "IRC was spoken on a port for WebSockets")
    }
}

/// The clients that come over WebSocket, and those that are about to.
struct WebSocketClients: ~Copyable {
    private(set) var openings: [ConnectionID: WebSocketOpening] = [:]
    private var openingsByAddress: [SocketAddress: Int] = [:]
    private var deadlines = DeadlineHeap<ConnectionID>()
    private(set) var peers: [ConnectionID: WebSocketPeer] = [:]
    /// The kind of each client by its slot, so that a line to a room costs the others a look into an array.
    private var kinds: [WebSocketKind] = []
    private var frames = WebSocketFrames()
    /// Clients with held bytes that may be read now.
    private var resumed: [ConnectionID] = []
    private var isContinuing = false

    var isEmpty: Bool { peers.isEmpty && openings.isEmpty }

    // MARK: - Before the WebSocket stands

    /// Takes a connection; false when too many are under way.
    mutating func open(_ id: ConnectionID, _ opening: WebSocketOpening, now: MonotonicInstant) -> Bool {
        guard openings.count < WebSocketClientLimits.openingsAtOnce else { return false }
        if opening.isCounted {
            let count = openingsByAddress[opening.peer.limitKey, default: 0]
            guard count < WebSocketClientLimits.openingsPerAddress else { return false }
            openingsByAddress[opening.peer.limitKey] = count + 1
        }
        openings[id] = opening
        deadlines.set(id, at: now + WebSocketClientLimits.openingTimeout)
        return true
    }

    /// Where a connection came from that has no WebSocket yet. Not the whole of it: a copy of its head would have to be
    /// copied when more comes.
    func place(ofOpening id: ConnectionID) -> (listener: ListenerID, peer: SocketAddress)? {
        guard let listener = openings[id]?.listener, let peer = openings[id]?.peer else { return nil }
        return (listener, peer)
    }

    mutating func handshake(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer) -> WebSocketServerHandshake.Outcome? {
        openings[id]?.hasReceived = true
        return openings[id]?.handshake.bytesReceived(bytes)
    }

    @discardableResult
    mutating func endOpening(_ id: ConnectionID) -> WebSocketOpening? {
        guard let opening = openings.removeValue(forKey: id) else { return nil }
        deadlines.cancel(id)
        if opening.isCounted {
            let count = openingsByAddress[opening.peer.limitKey, default: 0] - 1
            openingsByAddress[opening.peer.limitKey] = count > 0 ? count : nil
        }
        return opening
    }

    /// When a request has taken too long; nil: none is under way.
    mutating func nextDeadline() -> MonotonicInstant? { deadlines.next() }

    /// A connection with an overdue request. Its opening is still to be ended.
    mutating func popLate(_ now: MonotonicInstant) -> ConnectionID? { deadlines.popDue(now) }

    /// The answer to a request that is accepted; nil when there is none.
    mutating func acceptance(_ opening: WebSocketOpening, _ subprotocol: WebSocketSubprotocol?) -> ByteSlice? {
        let isWritten = opening.handshake.accept(subprotocol: subprotocol?.rawValue, into: &frames.writer)
        let response = frames.writer.take()
        return isWritten ? response : nil
    }

    /// The answer to a request that is refused; nil when it cannot be written.
    mutating func refusal(
        _ status: Int, _ reason: String, _ headers: [(name: String, value: String)], body: String
    ) -> ByteSlice? {
        let isWritten = WebSocketServerHandshake.refuse(
            status: status, reason: reason, headers: headers, body: body, into: &frames.writer)
        let response = frames.writer.take()
        return isWritten ? response : nil
    }

    // MARK: - While it stands

    mutating func add(_ id: ConnectionID, _ peer: WebSocketPeer) {
        peers[id] = peer
        note(id, peer.kind)
    }

    mutating func remove(_ id: ConnectionID) {
        guard peers.removeValue(forKey: id) != nil else { return }
        note(id, .none)
        if peers.isEmpty { kinds = [] }
    }

    mutating func note(_ id: ConnectionID, _ kind: WebSocketKind) {
        while kinds.count <= id.slot { kinds.append(.none) }
        kinds[id.slot] = kind
    }

    /// Reads a client's bytes up to the next event; false when there is none.
    ///
    /// - Returns: also the WebSocket's own answer.
    mutating func takeEvent(
        of peer: WebSocketPeer, from rest: inout UnsafeRawBufferPointer, _ deliver: (WebSocketConnection.Event) -> Void
    ) -> (hasEvent: Bool, answer: ByteSlice?) {
        var random = SystemRandomNumberGenerator()
        let hasEvent = peer.connection.takeEvent(from: &rest, output: &frames.writer, using: &random, deliver)
        return (hasEvent, frames.writer.count > 0 ? frames.writer.take() : nil)
    }

    /// The goodbye to a client, which is none of these any more.
    mutating func close(_ id: ConnectionID, _ code: WebSocketCloseCode, now: MonotonicInstant) -> ByteSlice? {
        guard let peer = peers[id] else { return nil }
        var random = SystemRandomNumberGenerator()
        peer.connection.close(code: code, reason: "", now: now, output: &frames.writer, using: &random)
        remove(id)
        return frames.writer.take()
    }

    /// A line as this client takes it.
    @inline(__always)
    mutating func form(_ slice: ByteSlice, for id: ConnectionID) -> ByteSlice {
        let kind = kind(id)
        return kind == .none ? slice : frames.messages(slice, kind)
    }

    /// The same for a line that goes to many.
    @inline(__always)
    mutating func form(_ framed: inout FramedSlice, for id: ConnectionID) -> ByteSlice {
        framed.form(kind(id), &frames)
    }

    // MARK: - Held bytes

    /// Queues the client for ``nextResumed()``.
    mutating func resumed(_ id: ConnectionID) { resumed.append(id) }

    /// Whether there are held bytes to read and no reading is in progress; ends with ``endContinuing()``.
    mutating func beginContinuing() -> Bool {
        guard !resumed.isEmpty, !isContinuing else { return false }
        isContinuing = true
        return true
    }

    mutating func nextResumed() -> ConnectionID? { resumed.popLast() }
    mutating func endContinuing() { isContinuing = false }

    @inline(__always)
    func kind(_ id: ConnectionID) -> WebSocketKind {
        id.slot < kinds.count ? kinds[id.slot] : .none
    }
}

/// Makes messages of lines.
struct WebSocketFrames: ~Copyable {
    // Between them, all kinds: a message that is not compressed is the same with and without the extension.
    private var plain = WebSocketConnection(role: .server)
    private var compressing = WebSocketConnection(role: .server, compression: WebSocketClientLimits.compression)
    fileprivate var writer = ByteWriter()
    private var random = SystemRandomNumberGenerator()

    /// The messages for the lines in `slice`.
    private static let cr: UInt8 = 0x0D
    private static let lf: UInt8 = 0x0A

    mutating func messages(_ slice: ByteSlice, _ kind: WebSocketKind) -> ByteSlice {
        slice.withUnsafeBytes { bytes in
            var rest = bytes
            while !rest.isEmpty {
                let end = rest.firstIndex(of: Self.lf) ?? rest.endIndex
                var line = UnsafeRawBufferPointer(rebasing: rest[..<end])
                if line.last == Self.cr { line = UnsafeRawBufferPointer(rebasing: line.dropLast()) }
                if !line.isEmpty { append(line, kind) }
                rest = UnsafeRawBufferPointer(rebasing: rest[min(end + 1, rest.count)...])
            }
        }
        return writer.take()
    }

    private mutating func append(_ line: UnsafeRawBufferPointer, _ kind: WebSocketKind) {
        guard kind.isText else { return appendMessage(line, kind) }
        // A browser ends the connection at the first byte that is no UTF-8.
        guard !UTF8Validator.isValid(line) else { return appendMessage(line, kind) }
        var repaired = String(decoding: line, as: UTF8.self)
        repaired.withUTF8 { appendMessage(UnsafeRawBufferPointer($0), kind) }
    }

    private mutating func appendMessage(_ line: UnsafeRawBufferPointer, _ kind: WebSocketKind) {
        // Nothing closes these two, so that neither ever refuses.
        switch (kind.isText, kind.isCompressed) {
        case (true, false): _ = plain.send(text: line, output: &writer, using: &random)
        case (false, false): _ = plain.send(binary: line, output: &writer, using: &random)
        case (true, true): _ = compressing.send(text: line, output: &writer, using: &random)
        case (false, true): _ = compressing.send(binary: line, output: &writer, using: &random)
        }
    }
}

/// One line in every form that its receivers want, each made when the first of them comes.
struct FramedSlice: ~Copyable {
    let slice: ByteSlice
    private var forms: [ByteSlice?] = []

    init(_ slice: ByteSlice) { self.slice = slice }

    mutating func form(_ kind: WebSocketKind, _ frames: inout WebSocketFrames) -> ByteSlice {
        if kind == .none { return slice }
        if forms.isEmpty { forms = [ByteSlice?](repeating: nil, count: WebSocketKind.allCases.count) }
        if let made = forms[Int(kind.rawValue)] { return made }
        let made = frames.messages(slice, kind)
        forms[Int(kind.rawValue)] = made
        return made
    }
}
