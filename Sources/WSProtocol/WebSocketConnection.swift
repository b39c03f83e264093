import WireBytes

/// An established WebSocket, either side: bytes in, events and answers out.
///
/// Rules:
/// - A frame that lies whole and unmasked in the bytes fed is delivered from there; anything else is gathered in a
///   buffer whose size is bounded by ``WebSocketLimits``.
/// - Text is checked as it arrives; an ill-formed byte ends the connection at once, not at the end of the message.
/// - A control frame between fragments is handled when it comes and leaves the message in progress alone.
/// - Outgoing messages are one frame each. Some peers decode each text fragment on its own.
/// - A compressed message is decompressed as it arrives; checks and bounds apply to the decompressed bytes.
/// - Nothing is sent after the local Close, nothing is delivered after the peer's Close or a failure.
///
/// The end of a connection:
///
///     open ── close() ──▶ closing ── peer's Close ──▶ closed
///     open ── peer's Close (answered) ──────────────▶ closed
///     open, closing ── peer breaks the protocol ────▶ closed
///
/// Source: RFC 6455 §5 to §8; RFC 7692 §6, §7.2.
public struct WebSocketConnection: ~Copyable {
    /// Pointers are valid only during the callback.
    public enum Event {
        case text(UnsafeRawBufferPointer)
        case binary(UnsafeRawBufferPointer)
        /// The pong is already written, unless the local Close was before it.
        case ping(UnsafeRawBufferPointer)
        case pong(UnsafeRawBufferPointer)
        /// The peer's Close; its answer is already written. `code` is nil when the peer gave none.
        case closeReceived(code: WebSocketCloseCode?, reason: String)
        /// The peer broke the protocol; a Close with the right code is already written.
        case failed(WebSocketFailure)
    }

    public enum State: Equatable, Sendable {
        /// Can transition to: closing, closed.
        case open
        /// Close was sent and the peer's is awaited; messages still arrive. Can transition to: closed.
        case closing
        /// Both Closes were sent, or the peer broke the protocol. Bytes fed are ignored.
        case closed
    }

    private enum Phase {
        case open
        case closing(deadline: MonotonicInstant)
        /// With a deadline, the peer is left to end the transport until then.
        case closed(transportDeadline: MonotonicInstant?)
    }

    private enum Reading {
        case header
        case control(WebSocketFrameHeader)
        /// A data frame of which `received` bytes of payload have come.
        case data(WebSocketFrameHeader, received: Int)
    }

    /// A message of which not all has come.
    private struct Message {
        /// Nil for a binary message.
        var validator: UTF8Validator?
        /// Bytes of compressed payload that have come; nil when the message is not compressed.
        var compressedByteCount: Int?
    }

    /// Memory reused for the next message, in bytes, where a larger decompressor is reused anyway.
    private static let reusedPayloadBytes = 16 * 1024
    /// Bytes of masked payload that are unmasked and decompressed at a time; they lie on the stack.
    private static let unmaskingBytes = 4 * 1024
    /// Bounds of the room that is made for decompressing at a time, in bytes.
    private static let inflatingBytes = 512...64 * 1024

    public let role: WebSocketRole
    public let limits: WebSocketLimits
    /// The agreed compression; nil without.
    public let compression: WebSocketCompression?
    private var phase = Phase.open
    private var reading = Reading.header
    /// The start of a header that was cut.
    private var partialHeader: (UInt64, UInt64) = (0, 0)
    private var partialHeaderCount = 0
    private var message: Message?
    /// Payload of the message in progress, unmasked and decompressed.
    private var payload = ReceiveBuffer()
    /// Payload of a control frame that was cut or is masked.
    private var controlPayload = ReceiveBuffer()
    /// Made when first needed; reused for the next message only where its context is.
    private var inflater: Inflater?
    private var deflater: Deflater?

    public init(
        role: WebSocketRole, limits: WebSocketLimits = WebSocketLimits(), compression: WebSocketCompression? = nil
    ) {
        self.role = role
        self.limits = limits
        self.compression = compression
    }

    // MARK: - State

    public var state: State {
        switch phase {
        case .open: .open
        case .closing: .closing
        case .closed: .closed
        }
    }

    /// Whether the owner should send the written bytes and then end the transport.
    ///
    /// A server ends it as soon as both Closes were sent; a client leaves that to the server until ``closeDeadline``.
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

    /// Whether memory is held for compressing or decompressing.
    var holdsCompressionMemory: Bool { inflater != nil || deflater != nil }

    // MARK: - Receiving

    /// Feeds bytes; writes answers (pong, close) into `output`.
    ///
    /// All events of the bytes are delivered before the owner can send. An owner whose answers must stand before those
    /// to later bytes, such as the Close after a failure, uses ``takeEvent(from:now:output:using:_:)``.
    ///
    /// - Parameter now: with it, a client whose server closed first leaves the end of the transport to that server
    ///   until ``closeDeadline``; without it, ``shouldCloseTransport`` becomes true at once.
    public mutating func bytesReceived(
        _ bytes: UnsafeRawBufferPointer, now: MonotonicInstant? = nil, output: inout ByteWriter,
        using rng: inout some RandomNumberGenerator, _ deliver: (Event) -> Void
    ) {
        var rest = bytes
        while takeEvent(from: &rest, now: now, output: &output, using: &rng, deliver) {}
    }

    /// Like ``bytesReceived(_:now:output:using:_:)``, but stops behind each event, so that the owner may send, or close,
    /// before it goes on with the rest.
    ///
    ///     while connection.takeEvent(from: &rest, output: &output, using: &rng, { … }) { … }
    ///
    /// - Parameter rest: bytes fed; those that were taken are removed from its front.
    /// - Returns: whether there was an event. Without one, all bytes are taken, or the connection is closed.
    public mutating func takeEvent(
        from rest: inout UnsafeRawBufferPointer, now: MonotonicInstant? = nil, output: inout ByteWriter,
        using rng: inout some RandomNumberGenerator, _ deliver: (Event) -> Void
    ) -> Bool {
        do throws(WebSocketFailure) {
            while true {
                switch try step(&rest, now: now, output: &output, using: &rng, deliver) {
                case .moved: continue
                case .delivered: return true
                case .needMoreData: return false
                }
            }
        } catch {
            if case .open = phase {
                writeClose(code: error.closeCode, reason: error.sentence, output: &output, using: &rng)
            }
            end(transportDeadline: nil)
            deliver(.failed(error))
            return true
        }
    }

    private enum Progress { case moved, delivered, needMoreData }

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
            return .moved
        case .control(let header):
            guard try takeControl(header, &rest, now: now, output: &output, using: &rng, deliver) else {
                return .needMoreData
            }
            reading = .header
            return .delivered
        case .data(let header, let received):
            guard let taken = try takeData(header, received: received, &rest, deliver) else {
                reading = .header
                return header.isFinal ? .delivered : .moved
            }
            reading = .data(header, received: taken)
            return .needMoreData
        }
    }

    private mutating func takeHeader(
        _ rest: inout UnsafeRawBufferPointer
    ) throws(WebSocketFailure) -> WebSocketFrameHeader? {
        if partialHeaderCount == 0 {
            if let (header, byteCount) = try WebSocketFrameHeader.decode(
                rest, role: role, limits: limits, allowsCompression: compression != nil)
            {
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
                    UnsafeRawBufferPointer(rebasing: bytes[..<partialHeaderCount]), role: role, limits: limits,
                    allowsCompression: compression != nil)
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
        case (nil, .continuation): throw .continuationWithoutMessage
        case (nil, let opcode):
            message = Message(
                validator: opcode == .text ? UTF8Validator() : nil,
                compressedByteCount: header.isCompressed ? 0 : nil)
        case (_?, .continuation): break
        case (_?, _): throw .messageInterrupted
        }
        // The size of a compressed frame shows only when it is decompressed.
        guard message?.compressedByteCount != nil || header.payloadByteCount <= limits.maxMessageBytes - payload.count
        else { throw .messageTooLarge(limit: limits.maxMessageBytes) }
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
        if message?.compressedByteCount != nil {
            try takeCompressed(bytes, mask: header.mask, offset: received)
            if isLast { try finishInflating() }
        } else {
            if isLast, header.mask == nil, payload.isEmpty {
                try check(bytes)
                try finishMessage(bytes, deliver)
                return nil
            }
            let start = payload.count
            payload.append(bytes)
            if let mask = header.mask {
                payload.withUnsafeMutableBytes {
                    mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[start...]), offset: received)
                }
            }
            try checkBuffered(from: start)
        }
        guard bytes.count == wanted else { return received + bytes.count }
        if isLast {
            let keepsMemory = inflater != nil
            var whole = ReceiveBuffer()
            swap(&whole, &payload)
            try whole.withUnsafeBytes { bytes throws(WebSocketFailure) in try finishMessage(bytes, deliver) }
            if keepsMemory {
                whole.removeAll(keepingUpTo: Self.reusedPayloadBytes)
                swap(&whole, &payload)
            }
        }
        return nil
    }

    /// Checks the new bytes of a text message.
    private mutating func check(_ bytes: UnsafeRawBufferPointer) throws(WebSocketFailure) {
        guard let isGood = message?.validator?.feed(bytes) else { return }
        guard isGood else { throw .invalidUTF8 }
    }

    private mutating func checkBuffered(from start: Int) throws(WebSocketFailure) {
        guard var validator = message?.validator else { return }
        let end = min(payload.count, limits.maxMessageBytes)
        let isGood = payload.withUnsafeBytes { validator.feed(UnsafeRawBufferPointer(rebasing: $0[start..<end])) }
        guard isGood else { throw .invalidUTF8 }
        message?.validator = validator
    }

    private mutating func finishMessage(
        _ bytes: UnsafeRawBufferPointer, _ deliver: (Event) -> Void
    ) throws(WebSocketFailure) {
        let validator = message?.validator
        message = nil
        if let validator {
            guard validator.isComplete else { throw .invalidUTF8 }
            deliver(.text(bytes))
        } else {
            deliver(.binary(bytes))
        }
    }

    // MARK: - Compressed messages

    /// Decompresses payload of a frame, `offset` bytes of which came before, to the end of ``payload``.
    private mutating func takeCompressed(
        _ bytes: UnsafeRawBufferPointer, mask: WebSocketMask?, offset: Int
    ) throws(WebSocketFailure) {
        guard !bytes.isEmpty else { return }
        message?.compressedByteCount? &+= bytes.count
        guard let mask else { return try inflate(bytes) }
        // The allocation rethrows without the error's type, hence the detour.
        let failure = withUnsafeTemporaryAllocation(
            byteCount: min(bytes.count, Self.unmaskingBytes), alignment: 16
        ) { scratch -> WebSocketFailure? in
            var done = 0
            while done < bytes.count {
                let count = min(scratch.count, bytes.count - done)
                let piece = UnsafeMutableRawBufferPointer(rebasing: scratch[..<count])
                piece.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[done..<done + count]))
                mask.apply(to: piece, offset: offset &+ done)
                do throws(WebSocketFailure) {
                    try inflate(UnsafeRawBufferPointer(piece))
                } catch {
                    return error
                }
                done += count
            }
            return nil
        }
        if let failure { throw failure }
    }

    /// Text is checked before the limit, and both before the compressed data itself, so that the reported failure does
    /// not depend on where the bytes are cut.
    private mutating func inflate(_ bytes: UnsafeRawBufferPointer) throws(WebSocketFailure) {
        if inflater == nil, let compression {
            inflater = Inflater(windowBits: compression.sending(role.peer).windowBits)
        }
        var rest = bytes
        while true {
            let start = payload.count
            // One byte more than allowed shows that there is more.
            let allowed = min(limits.maxMessageBytes - start, Self.inflatingBytes.upperBound) + 1
            let likely = min(max(rest.count, Self.inflatingBytes.lowerBound / 4) * 4, Self.inflatingBytes.upperBound)
            guard let step = inflater?.inflate(&rest, into: &payload, upTo: min(allowed, likely)) else {
                throw .decompressorUnavailable
            }
            try checkBuffered(from: start)
            guard payload.count <= limits.maxMessageBytes else {
                throw .messageTooLarge(limit: limits.maxMessageBytes)
            }
            switch step {
            case .inputTaken: return
            case .roomFilled: continue
            case .broken: throw .invalidCompressedData
            }
        }
    }

    /// Flushes the rest of the message from the decompressor.
    ///
    /// Some peers send no byte for an empty message, or end their stream without the byte that RFC 7692 §7.2.3.4 wants
    /// behind it; neither lacks the tail.
    private mutating func finishInflating() throws(WebSocketFailure) {
        guard let compression, message?.compressedByteCount != 0 else { return }
        if inflater?.hasEnded == false {
            try withUnsafeBytes(of: DeflateTail.word) { tail throws(WebSocketFailure) in try inflate(tail) }
            guard inflater?.isBetweenBlocks == true else { throw .invalidCompressedData }
        }
        if !compression.sending(role.peer).keepsContext { inflater = nil }
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

    /// Drops all received bytes; nothing more is delivered.
    private mutating func end(transportDeadline: MonotonicInstant?) {
        phase = .closed(transportDeadline: transportDeadline)
        reading = .header
        message = nil
        partialHeaderCount = 0
        payload.removeAll()
        controlPayload.removeAll()
        inflater = nil
        deflater = nil
    }

    // MARK: - Sending

    /// Sends a text message of well-formed UTF-8; false after a Close of either side.
    public mutating func send(
        text: UnsafeRawBufferPointer, output: inout ByteWriter, using rng: inout some RandomNumberGenerator
    ) -> Bool {
        sendDataIfOpen(.text, text, output: &output, using: &rng)
    }

    /// Sends a binary message; false after a Close of either side.
    public mutating func send(
        binary: UnsafeRawBufferPointer, output: inout ByteWriter, using rng: inout some RandomNumberGenerator
    ) -> Bool {
        sendDataIfOpen(.binary, binary, output: &output, using: &rng)
    }

    /// Sends a ping with at most ``WebSocketLimits/maxControlPayloadBytes`` bytes; false when it is longer, or after a
    /// Close of either side.
    public mutating func sendPing(
        _ payload: UnsafeRawBufferPointer, output: inout ByteWriter, using rng: inout some RandomNumberGenerator
    ) -> Bool {
        guard payload.count <= WebSocketLimits.maxControlPayloadBytes else { return false }
        guard case .open = phase else { return false }
        write(.ping, payload, output: &output, using: &rng)
        return true
    }

    /// Starts the closing handshake. Does nothing after a Close of either side.
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

    private mutating func sendDataIfOpen(
        _ opcode: WebSocketOpcode, _ bytes: UnsafeRawBufferPointer, output: inout ByteWriter,
        using rng: inout some RandomNumberGenerator
    ) -> Bool {
        guard case .open = phase else { return false }
        if let compression, bytes.count >= max(compression.leastCompressedBytes, 1),
            writeCompressed(opcode, bytes, compression, output: &output, using: &rng)
        {
            return true
        }
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

    /// Writes one frame, header and payload side by side, masked in place for a client.
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

    /// Writes a message as one compressed frame. False, with nothing written, when it is better sent as it is.
    private mutating func writeCompressed(
        _ opcode: WebSocketOpcode, _ bytes: UnsafeRawBufferPointer, _ compression: WebSocketCompression,
        output: inout ByteWriter, using rng: inout some RandomNumberGenerator
    ) -> Bool {
        let start = output.count
        // Room for the longest header: its length is known only behind the payload.
        for _ in 0..<WebSocketFrameHeader.maxByteCount { output.append(0) }
        let payloadStart = output.count
        let isWritten: Bool
        let sending = compression.sending(role)
        if sending.keepsContext {
            if deflater == nil { deflater = Deflater(windowBits: sending.windowBits) }
            isWritten = deflater?.deflate(bytes, into: &output) ?? false
            // The next one starts without a context, which is invisible to the peer.
            if !isWritten { deflater = nil }
        } else {
            let windowBits = Deflater.windowBits(forMessageOf: bytes.count, atMost: sending.windowBits)
            var once = Deflater(windowBits: windowBits)
            let isDeflated = once?.deflate(bytes, into: &output) ?? false
            isWritten = isDeflated && output.count - payloadStart < bytes.count
        }
        guard isWritten else {
            output.truncate(to: start)
            return false
        }
        let payloadByteCount = output.count - payloadStart
        let mask = role == .client ? WebSocketMask(using: &rng) : nil
        let header = WebSocketFrameHeader(
            isFinal: true, isCompressed: true, opcode: opcode, mask: mask, payloadByteCount: payloadByteCount)
        header.encode(into: &output)
        let headerByteCount = output.count - payloadStart - payloadByteCount
        output.withPendingBytes { pending in
            let headerBytes = pending[(payloadStart + payloadByteCount)...]
            let frame = UnsafeMutableRawBufferPointer(rebasing: pending[start...])
            frame.copyMemory(from: UnsafeRawBufferPointer(rebasing: headerBytes))
            let payload = UnsafeMutableRawBufferPointer(rebasing: frame[headerByteCount...].prefix(payloadByteCount))
            payload.copyMemory(
                from: UnsafeRawBufferPointer(rebasing: pending[payloadStart...].prefix(payloadByteCount)))
            mask?.apply(to: payload)
        }
        output.truncate(to: start + headerByteCount + payloadByteCount)
        return true
    }
}
