import WireBytes

/// The bytes before a frame's payload: 2 to 14.
///
/// Source: RFC 6455 §5.2.
public struct WebSocketFrameHeader: Equatable, Sendable {
    /// Bytes of the longest header: two, a 64-bit length, a mask.
    public static let maxByteCount = 14

    /// Whether the frame ends its message.
    public var isFinal: Bool
    /// RSV1: the frame starts a compressed message. Source: RFC 7692 §6.
    public var isCompressed: Bool
    public var opcode: WebSocketOpcode
    public var mask: WebSocketMask?
    /// Bytes of payload.
    public var payloadByteCount: Int

    public init(
        isFinal: Bool, isCompressed: Bool = false, opcode: WebSocketOpcode, mask: WebSocketMask?, payloadByteCount: Int
    ) {
        self.isFinal = isFinal
        self.isCompressed = isCompressed
        self.opcode = opcode
        self.mask = mask
        self.payloadByteCount = payloadByteCount
    }

    /// Reads a header from the front of `bytes`, as a peer of `role` receives it.
    ///
    /// - Parameter allowsCompression: whether permessage-deflate was agreed on.
    /// - Returns: the header and its length, or nil when more bytes are needed. A fault is thrown at the byte that
    ///   shows it, in the order of the bytes, so the result does not depend on where the bytes are cut.
    static func decode(
        _ bytes: UnsafeRawBufferPointer, role: WebSocketRole, limits: WebSocketLimits, allowsCompression: Bool = false
    ) throws(WebSocketFailure) -> (header: WebSocketFrameHeader, byteCount: Int)? {
        guard bytes.count >= 1 else { return nil }
        let first = bytes[0]
        let isCompressed = first & 0x40 != 0
        guard first & 0x30 == 0, allowsCompression || !isCompressed else { throw .reservedBitsSet }
        let opcode = WebSocketOpcode(rawValue: first)
        guard opcode.isKnown else { throw .reservedOpcode(opcode.rawValue) }
        guard !isCompressed || opcode == .text || opcode == .binary else { throw .compressionBitMisplaced }
        let isFinal = first & 0x80 != 0
        guard isFinal || !opcode.isControl else { throw .fragmentedControlFrame }

        guard bytes.count >= 2 else { return nil }
        let isMasked = bytes[1] & 0x80 != 0
        switch role {
        case .server: guard isMasked else { throw .maskMissing }
        case .client: guard !isMasked else { throw .maskUnexpected }
        }
        let short = bytes[1] & 0x7F
        guard short <= 125 || !opcode.isControl else { throw .controlFrameTooLong }

        var index = 2
        var byteCount = UInt64(short)
        if short == 126 {
            guard bytes.count >= 4 else { return nil }
            byteCount = UInt64(bytes[2]) << 8 | UInt64(bytes[3])
            guard byteCount > 125 else { throw .lengthNotMinimal }
            index = 4
        } else if short == 127 {
            guard bytes.count >= 10 else { return nil }
            byteCount = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt64.self))
            guard byteCount & 1 << 63 == 0 else { throw .lengthHighBitSet }
            guard byteCount > 0xFFFF else { throw .lengthNotMinimal }
            index = 10
        }
        guard let payloadByteCount = Int(exactly: byteCount),
            opcode.isControl || payloadByteCount <= limits.maxFrameBytes
        else { throw .frameTooLarge(byteCount: byteCount, limit: limits.maxFrameBytes) }

        var mask: WebSocketMask?
        if isMasked {
            guard bytes.count >= index + 4 else { return nil }
            mask = WebSocketMask(bytes[index], bytes[index + 1], bytes[index + 2], bytes[index + 3])
            index += 4
        }
        return (
            WebSocketFrameHeader(
                isFinal: isFinal, isCompressed: isCompressed, opcode: opcode, mask: mask,
                payloadByteCount: payloadByteCount),
            index
        )
    }

    /// Writes the header with the length in its shortest form.
    func encode(into out: inout ByteWriter) {
        out.append((isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue)
        let maskBit: UInt8 = mask == nil ? 0 : 0x80
        if payloadByteCount <= 125 {
            out.append(maskBit | UInt8(truncatingIfNeeded: payloadByteCount))
        } else if payloadByteCount <= 0xFFFF {
            out.append(maskBit | 126)
            withUnsafeBytes(of: UInt16(truncatingIfNeeded: payloadByteCount).bigEndian) { out.append($0) }
        } else {
            out.append(maskBit | 127)
            withUnsafeBytes(of: UInt64(payloadByteCount).bigEndian) { out.append($0) }
        }
        if let mask {
            withUnsafeBytes(of: mask.bytes) { out.append($0) }
        }
    }
}
