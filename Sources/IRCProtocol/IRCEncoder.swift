import WireBytes

/// Encodes messages as bytes.
///
/// Whatever the strings contain, one call appends exactly one line: NUL is dropped, CR and LF become spaces, and a
/// parameter that the grammar forbids in its place is altered rather than allowed to shift the others. The content is
/// cut at 510 bytes, between code points; longer texts must be split first (``IRCTextSplitter``).
///
/// Source: modern.ircdocs.horse, "Message Format"; IRCv3 message-tags, "Size limit".
public enum IRCEncoder {
    /// Bytes of a line's content, without CR LF.
    public static let maxContentBytes = IRCLimits.standardLineBytes - 2

    /// Tags with precedence when not all of them fit, the most important first.
    public static let importantTags = ["time", "msgid", "label", "batch", "account"]

    /// Appends `message` as one line with its CR LF.
    ///
    /// - Parameter caps: the tags that these allow; by default all.
    public static func append(
        _ message: IRCMessage, tagsFor caps: IRCCapabilitySet = .all, to writer: inout ByteWriter
    ) {
        if !message.tags.isEmpty { appendTags(message.tags, caps, to: &writer) }
        let start = writer.count
        let limit = start + maxContentBytes
        if let source = message.source, !source.isEmpty {
            writer.append(Byte.colon)
            appendWord(source, fallback: "*", limit: limit, to: &writer)
            writer.append(Byte.space)
        }
        // At the front of a line an `@` would begin tags.
        appendWord(message.command, alsoNotFirst: Byte.at, fallback: "*", limit: limit, to: &writer)
        appendParams(message, limit: limit, to: &writer)
        if writer.count > limit { cut(&writer, to: limit) }
        writer.append(Byte.cr)
        writer.append(Byte.lf)
    }

    // MARK: - Content

    private static func appendParams(_ message: IRCMessage, limit: Int, to writer: inout ByteWriter) {
        let params = message.params
        guard let last = params.last else { return }
        if params.count > IRCLimits.maxParams {
            var joined = message
            joined.params = Array(params[..<(IRCLimits.maxParams - 1)])
            joined.params.append(params[(IRCLimits.maxParams - 1)...].joined(separator: " "))
            return appendParams(joined, limit: limit, to: &writer)
        }
        for index in 0..<(params.count - 1) {
            if writer.count > limit { return }
            writer.append(Byte.space)
            appendWord(params[index], fallback: "*", limit: limit, to: &writer)
        }
        writer.append(Byte.space)
        if needsColon(last) || endsInText(message) { writer.append(Byte.colon) }
        appendText(last, limit: limit, to: &writer)
    }

    private static func needsColon(_ last: String) -> Bool {
        var needsColon = true
        withBytes(of: last) { bytes in
            guard let first = bytes.first, first != Byte.colon else { return }
            // A CR or LF becomes a space on the wire, and a NUL nothing.
            needsColon = bytes.contains { $0 == Byte.space || $0 == Byte.cr || $0 == Byte.lf || $0 == 0 }
        }
        return needsColon
    }

    /// Whether the last parameter is a text or a list by its nature. Clients that cut lines by hand look for ` :` there,
    /// so it gets its colon even when it is a single word.
    private static func endsInText(_ message: IRCMessage) -> Bool {
        switch message.command {
        case "PRIVMSG", "NOTICE", "TOPIC", "PART", "CAP", "332", "353": message.params.count >= 2
        case "QUIT", "AWAY", "SETNAME", "ERROR": true
        case "JOIN", "KICK", "FAIL", "WARN", "NOTE": message.params.count >= 3
        default: false
        }
    }

    /// Appends a part that may not be empty, hold a space or begin with a colon: spaces and a leading colon, or another
    /// byte forbidden in front, become `_`.
    private static func appendWord(
        _ word: String, alsoNotFirst: UInt8 = Byte.colon, fallback: StaticString, limit: Int,
        to writer: inout ByteWriter
    ) {
        let start = writer.count
        let isWritten = append(
            word,
            where: {
                ByteScan.has(noByteBelow: Byte.space + 1, $0) && $0.first != Byte.colon && $0.first != alsoNotFirst
            }, limit: limit, to: &writer)
        if isWritten, writer.count > start { return }
        withBytes(of: word) { bytes in
            // Dropped bytes make room for later ones, so this counts the written bytes, not the read ones.
            for byte in bytes where byte != 0 {
                if room(in: writer.count, limit: limit) == 0 { return }
                let isForbidden = byte == Byte.space || byte == Byte.cr || byte == Byte.lf
                let leads = (byte == Byte.colon || byte == alsoNotFirst) && writer.count == start
                writer.append(isForbidden || leads ? UInt8(ascii: "_") : byte)
            }
        }
        if writer.count == start { writer.append(fallback) }
    }

    private static func appendText(_ text: String, limit: Int, to writer: inout ByteWriter) {
        let isWritten = append(
            text,
            where: {
                ByteScan.has(noByteBelow: Byte.space, $0) || !$0.contains { $0 == 0 || $0 == Byte.cr || $0 == Byte.lf }
            }, limit: limit, to: &writer)
        if isWritten { return }
        withBytes(of: text) { bytes in
            for byte in bytes where byte != 0 {
                if room(in: writer.count, limit: limit) == 0 { return }
                writer.append(byte == Byte.cr || byte == Byte.lf ? Byte.space : byte)
            }
        }
    }

    /// Appends a text as it is, as most can be; false and nothing: it is too long for that, or is not clean.
    @inline(__always)
    private static func append(
        _ text: String, where isClean: (UnsafeRawBufferPointer) -> Bool, limit: Int, to writer: inout ByteWriter
    ) -> Bool {
        let start = writer.count
        guard text.utf8.count <= room(in: start, limit: limit) else { return false }
        writer.append(text)
        let isWritten = writer.withPendingBytes { isClean(UnsafeRawBufferPointer(rebasing: $0[start...])) }
        if !isWritten { writer.truncate(to: start) }
        return isWritten
    }

    /// Bytes worth writing: a code point beyond the limit, so that the cut sees whether one straddles it.
    private static func room(in written: Int, limit: Int) -> Int { max(0, limit &+ 4 &- written) }

    /// Drops the bytes beyond `limit` pending ones, and the start of a code point that would be cut.
    private static func cut(_ writer: inout ByteWriter, to limit: Int) {
        let end = writer.withPendingBytes { bytes in
            var end = limit
            while end > 0, limit &- end < 4, Byte.isContinuation(bytes[end]) { end &-= 1 }
            return end
        }
        writer.truncate(to: end)
    }

    private static func withBytes(of text: String, _ body: (UnsafeRawBufferPointer) -> Void) {
        let done: Void? = text.utf8.withContiguousStorageIfAvailable { body(UnsafeRawBufferPointer($0)) }
        if done == nil {
            var native = text
            native.withUTF8 { body(UnsafeRawBufferPointer($0)) }
        }
    }

    // MARK: - Tags

    /// Appends `@…` and a space, or nothing when no tag can be written.
    ///
    /// Tags from the server and client-only tags have 4094 bytes each; a tag that does not fit is left out whole.
    private static func appendTags(_ tags: [IRCTag], _ caps: IRCCapabilitySet, to writer: inout ByteWriter) {
        let start = writer.count
        var section = TagSection(start: start)
        writer.append(Byte.at)
        for tag in tags where caps.showsTag(tag.name) {
            section.append(tag, to: &writer)
            if section.hasDropped { break }
        }
        if section.hasDropped {
            writer.truncate(to: start + 1)
            section = TagSection(start: start)
            let tags = tags.filter { caps.showsTag($0.name) }
            for name in importantTags {
                for tag in tags where tag.name == name { section.append(tag, to: &writer) }
            }
            for tag in tags where !importantTags.contains(tag.name) { section.append(tag, to: &writer) }
        }
        if writer.count > start + 1 {
            writer.append(Byte.space)
        } else {
            writer.truncate(to: start)
        }
    }

    /// Bytes of tag data, without `@` and space, that a line with these tags alone has.
    static func tagByteCount(_ tags: [IRCTag]) -> Int {
        var count = max(0, tags.count - 1)
        for tag in tags {
            count += tag.name.utf8.count
            guard let value = tag.value else { continue }
            count += 1
            for byte in value.utf8 {
                let isEscaped = [Byte.space, Byte.cr, Byte.lf, Byte.semicolon, Byte.backslash].contains(byte)
                count += isEscaped ? 2 : 1
            }
        }
        return count
    }

    /// A tag section being written, and the use of each kind's allowance.
    private struct TagSection {
        let start: Int
        var serverBytes = 0
        var clientBytes = 0
        /// A tag did not fit.
        var hasDropped = false

        init(start: Int) { self.start = start }

        mutating func append(_ tag: IRCTag, to writer: inout ByteWriter) {
            guard Self.isWritable(tag.name) else { return }
            let before = writer.count
            if before > start + 1 { writer.append(Byte.semicolon) }
            writer.append(tag.name)
            if let value = tag.value, !value.isEmpty {
                writer.append(Byte.equals)
                appendEscaped(value, limit: before + IRCLimits.maxTagBytes, to: &writer)
            }
            var used = writer.count - before
            // The separator between the two kinds counts for neither.
            if before > start + 1, (tag.isClientOnly ? clientBytes : serverBytes) == 0 { used -= 1 }
            if tag.isClientOnly {
                if clientBytes + used <= IRCLimits.maxClientTagBytes { return clientBytes += used }
            } else {
                if serverBytes + used <= IRCLimits.maxServerTagBytes { return serverBytes += used }
            }
            writer.truncate(to: before)
            hasDropped = true
        }

        /// A name with a byte that ends a name would be read back as something else.
        private static func isWritable(_ name: String) -> Bool {
            var isWritable = false
            IRCEncoder.withBytes(of: name) { bytes in
                isWritable =
                    !bytes.isEmpty
                    && !bytes.contains { $0 <= Byte.space || $0 == Byte.semicolon || $0 == Byte.equals }
            }
            return isWritable
        }

        private func appendEscaped(_ value: String, limit: Int, to writer: inout ByteWriter) {
            IRCEncoder.withBytes(of: value) { bytes in
                let isPlain = !bytes.contains { $0 <= Byte.space || $0 == Byte.semicolon || $0 == Byte.backslash }
                if isPlain { return writer.append(bytes) }
                for byte in bytes {
                    if writer.count > limit { return }
                    switch byte {
                    case 0: break
                    case Byte.semicolon: writer.append("\\:")
                    case Byte.space: writer.append("\\s")
                    case Byte.backslash: writer.append("\\\\")
                    case Byte.cr: writer.append("\\r")
                    case Byte.lf: writer.append("\\n")
                    default: writer.append(byte)
                    }
                }
            }
        }
    }
}
