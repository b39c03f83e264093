import IRCProtocol
import WireBytes

// Input of a client until it is processed.

extension IRCSession {
    enum Input {
        case message(IRCMessage)
        case rejected(IRCLineError, label: String?)
        case tooLong
    }

    /// Bytes were received.
    ///
    /// - Returns: their protocol if it is not IRC.
    func receive(_ bytes: UnsafeRawBufferPointer, now: MonotonicInstant) -> ForeignProtocol? {
        heard(at: now)
        let held = decoder.bufferedByteCount
        decoder.append(bytes)
        guard state == .registering, user == nil, nick == nil, held < ForeignProtocol.longestMark else { return nil }
        return decoder.withHeldBytes(ForeignProtocol.recognise)
    }

    /// Unprocessed input is pending.
    var hasInput: Bool { decoder.bufferedByteCount > 0 || heldMessage != nil }

    /// The next line, or its error; nil: none is complete.
    func nextInput() -> Input? {
        if let held = heldMessage {
            heldMessage = nil
            return .message(held)
        }
        return decoder.withNextLine { line -> Input in
            switch line {
            case .tooLong: return .tooLong
            case .line(let bytes):
                do throws(IRCLineError) {
                    return .message(try IRCParse.parse(bytes))
                } catch {
                    return .rejected(error, label: error == .invalidUTF8 ? Self.label(of: bytes) : nil)
                }
            }
        }
    }

    /// Holds the message until the client is registered.
    func putBack(_ message: IRCMessage) { heldMessage = message }

    /// The label of a line that is rejected for its text: the tags in front may be valid all the same.
    private static func label(of line: UnsafeRawBufferPointer) -> String? {
        guard line.first == UInt8(ascii: "@"), let end = line.firstIndex(of: 0x20) else { return nil }
        let tags = Array(line[..<end]) + Array(" X".utf8)
        return tags.withUnsafeBytes { (try? IRCParse.parse($0))?.tag("label")?.value }
    }

    enum ReadingChange {
        case pause
        case resume
    }

    /// Whether to pause or resume reading from the socket, by the amount of pending input; nil: no change.
    func readingChange(limit: Int) -> ReadingChange? {
        let held = decoder.bufferedByteCount
        if held > limit, !isReadingPaused {
            isReadingPaused = true
            return .pause
        }
        guard isReadingPaused, held <= limit / 2 else { return nil }
        isReadingPaused = false
        return .resume
    }
}
