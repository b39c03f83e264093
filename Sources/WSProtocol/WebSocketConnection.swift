import WireBytes

/// An established WebSocket, either side: bytes in, events and answers out.
///
/// The rules it keeps:
/// - A frame that lies whole and unmasked in the bytes fed is delivered from there; anything else is gathered in a buffer
///   whose size is bounded by ``WebSocketLimits``.
/// - Text is checked as it arrives; an ill-formed byte ends the connection at once, not at the end of the message.
/// - A control frame between fragments is handled when it comes and leaves the message in progress alone.
/// - Messages that we send are one frame each. Some peers decode each text fragment on its own.
/// - Nothing is sent after our Close, nothing is delivered after the peer's Close or a failure.
///
/// How an end goes:
///
///     open ── close() ──▶ closing ── peer's Close ──▶ closed
///     open ── peer's Close (answered) ──────────────▶ closed
///     open, closing ── peer breaks the protocol ────▶ closed
///
/// Source: RFC 6455 §5 to §8.
public struct WebSocketConnection: ~Copyable {
    /// Pointers are valid only during the callback.
    public enum Event {
        case text(UnsafeRawBufferPointer)
        case binary(UnsafeRawBufferPointer)
        /// The pong is already written, unless our Close was before it.
        case ping(UnsafeRawBufferPointer)
        case pong(UnsafeRawBufferPointer)
        /// The peer's Close; our answer is already written. `code` is nil when the peer gave none.
        case closeReceived(code: WebSocketCloseCode?, reason: String)
        /// The peer broke the protocol; our Close with the right code is already written.
        case failed(WebSocketFailure)
    }

    public enum State: Equatable, Sendable {
        /// Can transition to: closing, closed.
        case open
        /// We sent Close and wait for theirs; messages still arrive. Can transition to: closed.
        case closing
        /// Both Closes went, or the peer broke the protocol. Bytes fed are ignored.
        case closed
    }

    private enum Phase {
        case open
        case closing(deadline: MonotonicInstant)
        /// With a deadline, we leave the end of the transport to the peer until then.
        case closed(transportDeadline: MonotonicInstant?)
    }

    private enum Reading {
        case header
        case control(WebSocketFrameHeader)
        /// A data frame of which `received` bytes of payload have come.
        case data(WebSocketFrameHeader, received: Int)
    }

    private enum Message {
        case none
        case text(UTF8Validator)
        case binary
    }

    public let role: WebSocketRole
    public let limits: WebSocketLimits
    private var phase = Phase.open
    private var reading = Reading.header
    /// The start of a header that was cut.
    private var partialHeader: (UInt64, UInt64) = (0, 0)
    private var partialHeaderCount = 0
    private var message = Message.none
    /// Payload of the message in progress, unmasked.
    private var payload = ReceiveBuffer()
    /// Payload of a control frame that was cut or is masked.
    private var controlPayload = ReceiveBuffer()

    public init(role: WebSocketRole, limits: WebSocketLimits = WebSocketLimits()) {
        self.role = role
        self.limits = limits
    }

    // MARK: - State

    public var state: State {
        switch phase {
        case .open: .open
        case .closing: .closing
        case .closed: .closed
        }
    }

    /// Whether the owner should send what is written and then end the transport.
    ///
    /// A server ends it as soon as both Closes went; a client leaves that to the server until ``closeDeadline``.
    ///
    /// Source: RFC 6455 §7.1.1.
    public var shouldCloseTransport: Bool {
        if case .closed(transportDeadline: nil) = phase { return true }
        return false
    }

    /// When the owner should end the transport without waiting longer, or nil when nothing is being waited for.
    public var closeDeadline: MonotonicInstant? {
        switch phase {
        case .open: nil
        case .closing(let deadline): deadline
        case .closed(let deadline): deadline
        }
    }

    /// Bytes of payload held for a message or control frame in progress.
    public var bufferedByteCount: Int { payload.count + controlPayload.count }

    // MARK: - Receiving

    /// Feeds bytes; writes answers (pong, close) into `output`.
    ///
    /// - Parameter now: with it, a client whose server closed first leaves the end of the transport to that server until
    ///   ``closeDeadline``; without it, ``shouldCloseTransport`` becomes true at once.
    public mutating func bytesReceived(
        _ bytes: UnsafeRawBufferPointer, now: MonotonicInstant? = nil, output: inout ByteWriter,
        using rng: inout some RandomNumberGenerator, _ deliver: (Event) -> Void
    ) {
        do throws(WebSocketFailure) {
            var rest = bytes
            while case .moved = try step(&rest, now: now, output: &output, using: &rng, deliver) {}
        } catch {
            if case .open = phase {
                writeClose(code: error.closeCode, reason: error.sentence, output: &output, using: &rng)
            }
            end(transportDeadline: nil)
            deliver(.failed(error))
        }
    }

    private enum Progress { case moved, needMoreData }

    /// Takes a header, or as much of a payload as there is.
    private mutating func step(
        _ rest: inout UnsafeRawBufferPointer, now: MonotonicInstant?, output: inout ByteWriter,
        using rng: inout some RandomNumberGenerator, _ deliver: (Event) -> Void
    ) throws(WebSocketFailure) -> Progress {
        if case .closed = phase { return .needMoreData }
        switch reading {
        case .header:
            guard let header = try takeHeader(&rest) else { return .needMoreData }
            if header.opcode.isControl {
                reading = .control(header)
            } else {
                try begin(header)
                reading = .data(header, received: 0)
            }
        case .control(let header):
            guard try takeControl(header, &rest, now: now, output: &output, using: &rng, deliver) else {
                return .needMoreData
            }
            reading = .header
        case .data(let header, let received):
            guard let taken = try takeData(header, received: received, &rest, deliver) else {
                reading = .header
                return .moved
            }
            reading = .data(header, received: taken)
            return .needMoreData
        }
        return .moved
    }

    private mutating func takeHeader(
        _ rest: inout UnsafeRawBufferPointer
    ) throws(WebSocketFailure) -> WebSocketFrameHeader? {
        if partialHeaderCount == 0 {
            if let (header, byteCount) = try WebSocketFrameHeader.decode(rest, role: role, limits: limits) {
                rest = UnsafeRawBufferPointer(rebasing: rest[byteCount...])
                return header
            }
        }
        while let byte = rest.first, partialHeaderCount < WebSocketFrameHeader.maxByteCount {
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
            withUnsafeMutableBytes(of: &partialHeader) { $0[partialHeaderCount] = byte }
            partialHeaderCount += 1
            let held = partialHeader
            let decoded = try withUnsafeBytes(of: held) { bytes throws(WebSocketFailure) in
                try WebSocketFrameHeader.decode(
                    UnsafeRawBufferPointer(rebasing: bytes[..<partialHeaderCount]), role: role, limits: limits)
            }
            if let decoded {
                partialHeaderCount = 0
                return decoded.header
            }
        }
        return nil
    }

    // MARK: - Data frames

    /// Checks that a data frame fits the message in progress, or starts one.
    private mutating func begin(_ header: WebSocketFrameHeader) throws(WebSocketFailure) {
        switch (message, header.opcode) {
        case (.none, .continuation): throw .continuationWithoutMessage
        case (.none, .text): message = .text(UTF8Validator())
        case (.none, _): message = .binary
        case (_, .continuation): break
        default: throw .messageInterrupted
        }
        guard header.payloadByteCount <= limits.maxMessageBytes - payload.count else {
            throw .messageTooLarge(limit: limits.maxMessageBytes)
        }
    }

    /// Takes payload of a data frame; nil when the frame is whole, else how much of it has come.
    private mutating func takeData(
        _ header: WebSocketFrameHeader, received: Int, _ rest: inout UnsafeRawBufferPointer,
        _ deliver: (Event) -> Void
    ) throws(WebSocketFailure) -> Int? {
        let wanted = header.payloadByteCount - received
        let bytes = UnsafeRawBufferPointer(rebasing: rest.prefix(wanted))
        rest = UnsafeRawBufferPointer(rebasing: rest[bytes.count...])
        let isLast = bytes.count == wanted && header.isFinal
        if isLast, header.mask == nil, payload.isEmpty {
            try check(bytes)
            try finishMessage(bytes, deliver)
            return nil
        }
        payload.append(bytes)
        if let mask = header.mask {
            let start = payload.count - bytes.count
            payload.withUnsafeMutableBytes {
                mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[start...]), offset: received)
            }
        }
        let start = payload.count - bytes.count
        try checkBuffered(from: start)
        guard bytes.count == wanted else { return received + bytes.count }
        if isLast {
            var whole = ReceiveBuffer()
            swap(&whole, &payload)
            try whole.withUnsafeBytes { bytes throws(WebSocketFailure) in try finishMessage(bytes, deliver) }
        }
        return nil
    }

    /// Checks what newly came of a text message. An extension that transforms payloads (RFC 7692) belongs between the
    /// unmasked bytes and this check: what it yields is what is checked, bounded and delivered.
    private mutating func check(_ bytes: UnsafeRawBufferPointer) throws(WebSocketFailure) {
        guard case .text(var validator) = message else { return }
        guard validator.feed(bytes) else { throw .invalidUTF8 }
        message = .text(validator)
    }

    private mutating func checkBuffered(from start: Int) throws(WebSocketFailure) {
        guard case .text(var validator) = message else { return }
        let isGood = payload.withUnsafeBytes { validator.feed(UnsafeRawBufferPointer(rebasing: $0[start...])) }
        guard isGood else { throw .invalidUTF8 }
        message = .text(validator)
    }

    private mutating func finishMessage(
        _ bytes: UnsafeRawBufferPointer, _ deliver: (Event) -> Void
    ) throws(WebSocketFailure) {
        switch message {
        case .text(let validator):
            guard validator.isComplete else { throw .invalidUTF8 }
            message = .none
            deliver(.text(bytes))
        case .binary, .none:
            message = .none
            deliver(.binary(bytes))
        }
    }

    // MARK: - Control frames

    /// Takes payload of a control frame and acts when it is whole; false when more bytes are needed.
    private mutating func takeControl(
        _ header: WebSocketFrameHeader, _ rest: inout UnsafeRawBufferPointer, now: MonotonicInstant?,
        output: inout ByteWriter, using rng: inout some RandomNumberGenerator, _ deliver: (Event) -> Void
    ) throws(WebSocketFailure) -> Bool {
        let wanted = header.payloadByteCount - controlPayload.count
        let bytes = UnsafeRawBufferPointer(rebasing: rest.prefix(wanted))
        rest = UnsafeRawBufferPointer(rebasing: rest[bytes.count...])
        if bytes.count == wanted, header.mask == nil, controlPayload.isEmpty {
            try act(on: header.opcode, bytes, now: now, output: &output, using: &rng, deliver)
            return true
        }
        controlPayload.append(bytes)
        guard bytes.count == wanted else { return false }
        var whole = ReceiveBuffer()
        swap(&whole, &controlPayload)
        if let mask = header.mask { whole.withUnsafeMutableBytes { mask.apply(to: $0) } }
        try whole.withUnsafeBytes { bytes throws(WebSocketFailure) in
            try act(on: header.opcode, bytes, now: now, output: &output, using: &rng, deliver)
        }
        return true
    }

    private mutating func act(
        on opcode: WebSocketOpcode, _ bytes: UnsafeRawBufferPointer, now: MonotonicInstant?, output: inout ByteWriter,
        using rng: inout some RandomNumberGenerator, _ deliver: (Event) -> Void
    ) throws(WebSocketFailure) {
        switch opcode {
        case .ping:
            if case .open = phase { write(.pong, bytes, output: &output, using: &rng) }
            deliver(.ping(bytes))
        case .pong:
            deliver(.pong(bytes))
        default:
            let (code, reason) = try Self.parseClose(bytes)
            var transportDeadline = role == .client ? now.map { $0 + WebSocketLimits.closeTimeout } : nil
            switch phase {
            case .open: writeClose(code: code, reason: "", output: &output, using: &rng)
            case .closing(let deadline): if role == .client { transportDeadline = deadline }
            case .closed: return
            }
            end(transportDeadline: transportDeadline)
            deliver(.closeReceived(code: code, reason: reason))
        }
    }

    /// Source: RFC 6455 §5.5.1, §7.4.
    private static func parseClose(
        _ bytes: UnsafeRawBufferPointer
    ) throws(WebSocketFailure) -> (WebSocketCloseCode?, String) {
        guard !bytes.isEmpty else { return (nil, "") }
        guard bytes.count >= 2 else { throw .closePayloadTooShort }
        let code = WebSocketCloseCode(rawValue: UInt16(bytes[0]) << 8 | UInt16(bytes[1]))
        guard code.isAllowedOnWire else { throw .invalidCloseCode(code.rawValue) }
        let reason = UnsafeRawBufferPointer(rebasing: bytes[2...])
        guard UTF8Validator.isValid(reason) else { throw .invalidCloseReason }
        return (code, String(decoding: reason, as: UTF8.self))
    }

    /// Forgets everything received; nothing more is delivered.
    private mutating func end(transportDeadline: MonotonicInstant?) {
        phase = .closed(transportDeadline: transportDeadline)
        reading = .header
        message = .none
        partialHeaderCount = 0
        payload.removeAll()
        controlPayload.removeAll()
    }

    // MARK: - Sending

    /// Sends a text message of well-formed UTF-8; false when a Close has gone or come.
    public mutating func send(
        text: UnsafeRawBufferPointer, output: inout ByteWriter, using rng: inout some RandomNumberGenerator
    ) -> Bool {
        sendIfOpen(.text, text, output: &output, using: &rng)
    }

    /// Sends a binary message; false when a Close has gone or come.
    public mutating func send(
        binary: UnsafeRawBufferPointer, output: inout ByteWriter, using rng: inout some RandomNumberGenerator
    ) -> Bool {
        sendIfOpen(.binary, binary, output: &output, using: &rng)
    }

    /// Sends a ping with at most ``WebSocketLimits/maxControlPayloadBytes`` bytes; false when it is longer, or when a
    /// Close has gone or come.
    public mutating func sendPing(
        _ payload: UnsafeRawBufferPointer, output: inout ByteWriter, using rng: inout some RandomNumberGenerator
    ) -> Bool {
        guard payload.count <= WebSocketLimits.maxControlPayloadBytes else { return false }
        return sendIfOpen(.ping, payload, output: &output, using: &rng)
    }

    /// Starts the closing handshake. Does nothing when a Close has gone or come.
    ///
    /// - Parameters:
    ///   - code: one that is not ``WebSocketCloseCode/isAllowedOnWire`` sends a Close without code and reason.
    ///   - reason: cut to ``WebSocketLimits/maxCloseReasonBytes`` bytes between characters.
    public mutating func close(
        code: WebSocketCloseCode, reason: String, now: MonotonicInstant, output: inout ByteWriter,
        using rng: inout some RandomNumberGenerator
    ) {
        guard case .open = phase else { return }
        writeClose(code: code, reason: reason, output: &output, using: &rng)
        phase = .closing(deadline: now + WebSocketLimits.closeTimeout)
    }

    private mutating func sendIfOpen(
        _ opcode: WebSocketOpcode, _ bytes: UnsafeRawBufferPointer, output: inout ByteWriter,
        using rng: inout some RandomNumberGenerator
    ) -> Bool {
        guard case .open = phase else { return false }
        write(opcode, bytes, output: &output, using: &rng)
        return true
    }

    private func writeClose(
        code: WebSocketCloseCode?, reason: String, output: inout ByteWriter, using rng: inout some RandomNumberGenerator
    ) {
        var body: [UInt8] = []
        if let code, code.isAllowedOnWire {
            body = [UInt8(truncatingIfNeeded: code.rawValue >> 8), UInt8(truncatingIfNeeded: code.rawValue)]
            body += Self.cutReason(reason)
        }
        body.withUnsafeBytes { write(.close, $0, output: &output, using: &rng) }
    }

    /// The longest prefix of whole code points that fits a Close.
    private static func cutReason(_ reason: String) -> ArraySlice<UInt8> {
        let bytes = Array(reason.utf8.prefix(WebSocketLimits.maxCloseReasonBytes + 1))
        guard bytes.count > WebSocketLimits.maxCloseReasonBytes else { return bytes[...] }
        var end = WebSocketLimits.maxCloseReasonBytes
        while end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
        return bytes[..<end]
    }

    /// Writes one frame, header and payload side by side, masked in place for a client. An extension that transforms
    /// payloads (RFC 7692) belongs before the header of a data frame is made.
    private func write(
        _ opcode: WebSocketOpcode, _ bytes: UnsafeRawBufferPointer, output: inout ByteWriter,
        using rng: inout some RandomNumberGenerator
    ) {
        let mask = role == .client ? WebSocketMask(using: &rng) : nil
        let header = WebSocketFrameHeader(isFinal: true, opcode: opcode, mask: mask, payloadByteCount: bytes.count)
        header.encode(into: &output)
        let start = output.count
        output.append(bytes)
        guard let mask else { return }
        output.withPendingBytes { mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[start...])) }
    }
}
