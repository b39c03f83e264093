import WireBytes

/// Cuts a byte stream into lines.
///
/// Append received bytes, then pull lines until there is none. `\r\n` and a bare `\n` both end a line; empty lines are
/// skipped. A line over its limit is reported once and the rest of it, up to its newline, is dropped as it arrives:
/// while no newline comes at most ``IRCLimits/maxUnfinishedBytes`` and the last append are held. How the stream was cut
/// into appends makes no difference to the lines.
///
/// Source: RFC 1459 §2.3; IRCv3 message-tags, "Size limit".
public struct IRCLineDecoder: ~Copyable {
    /// The front of the stream.
    public enum Line {
        /// A line without its terminator; at least one byte. The pointer is valid only during the call.
        case line(UnsafeRawBufferPointer)
        /// A line whose tags or content exceed the limit; answer 417, the connection goes on.
        case tooLong
    }

    private let limits: IRCLimits
    private var buffer = ReceiveBuffer()
    /// The start of the current line was already reported as too long.
    private var isDiscarding = false

    public init(limits: IRCLimits) {
        self.limits = limits
    }

    /// Bytes held and not yet pulled.
    public var bufferedByteCount: Int { buffer.count }

    /// Calls `body` with the bytes held; the pointer is valid only during the call.
    public func withHeldBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R { buffer.withUnsafeBytes(body) }

    public mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard isDiscarding else {
            buffer.append(bytes)
            return
        }
        guard let newline = bytes.firstIndex(of: Byte.lf) else { return }
        isDiscarding = false
        buffer.append(UnsafeRawBufferPointer(rebasing: bytes[(newline + 1)...]))
    }

    /// Calls `body` with the next complete line and removes it.
    ///
    /// - Returns: what `body` returned, or nil when no line is complete.
    public mutating func withNextLine<R>(_ body: (Line) -> R) -> R? {
        while let newline = buffer.indexOfByte(Byte.lf) {
            let limits = limits
            let result: R? = buffer.withUnsafeBytes { held in
                var end = newline
                if end > 0, held[end &- 1] == Byte.cr { end &-= 1 }
                if end == 0 { return nil }
                let line = UnsafeRawBufferPointer(rebasing: held[..<end])
                return body(Self.fits(line, limits) ? .line(line) : .tooLong)
            }
            buffer.removeFirst(newline + 1)
            if let result { return result }
        }
        guard isHopeless else { return nil }
        buffer.removeAll()
        isDiscarding = true
        return body(.tooLong)
    }

    private static func fits(_ line: UnsafeRawBufferPointer, _ limits: IRCLimits) -> Bool {
        let maxContent = limits.maxLineBytes - 2
        guard line[0] == Byte.at else { return line.count <= maxContent }
        var at = 1
        while at < line.count, line[at] != Byte.space { at &+= 1 }
        let tagBytes = min(at &+ 1, line.count)
        return tagBytes <= limits.maxReceivedTagBytes && line.count &- tagBytes <= maxContent
    }

    /// Whether the held bytes exceed the limits wherever the newline comes.
    private var isHopeless: Bool {
        if buffer.count < limits.maxLineBytes { return false }
        if buffer.count > limits.maxUnfinishedBytes { return true }
        return buffer.withUnsafeBytes { $0.first != Byte.at }
    }
}
