/// Why a line is not a message. A fault of the peer in one line: drop the line, the connection goes on.
public enum IRCLineError: Error, Hashable, Sendable, CaseIterable {
    /// Not UTF-8: answer `FAIL * INVALID_UTF8`.
    case invalidUTF8
    /// A NUL, or a CR or LF within the line: no answer.
    case containsNUL
    /// Nothing but spaces: no answer.
    case empty
    /// Tags or a source, and nothing after them: no answer.
    case noCommand
    /// A tag section that the line does not go on after.
    case malformedTags
}

/// Reads one line.
///
/// Lenient where the field is lenient: runs of spaces count as one, leading and trailing spaces are ignored, tag names
/// and verbs may be any bytes without spaces. Linear in the line's length, whatever it contains.
public enum IRCParse {
    /// Makes a message of `line`, which excludes its terminator.
    ///
    /// The verb comes out in upper case; tag values come out unescaped; of a repeated tag the last one stands. From the
    /// fifteenth parameter on everything is one parameter.
    ///
    /// - Throws: ``IRCLineError``; nothing of the line should then be acted upon.
    ///
    /// Source: modern.ircdocs.horse, "Message Format"; IRCv3 message-tags, "Format" and "Escaping values".
    public static func parse(_ line: UnsafeRawBufferPointer) throws(IRCLineError) -> IRCMessage {
        var end = line.count
        // Some clients end their lines with CR CR LF.
        while end > 0, line[end &- 1] == Byte.cr { end &-= 1 }
        let line = UnsafeRawBufferPointer(rebasing: line[..<end])
        try checkBytes(line)

        var at = skipSpaces(line, from: 0)
        guard at < end else { throw .empty }

        var message = IRCMessage(command: "")
        if line[at] == Byte.at {
            let tagsEnd = endOfWord(line, from: at)
            guard tagsEnd < end else { throw .malformedTags }
            message.tags = tags(UnsafeRawBufferPointer(rebasing: line[(at &+ 1)..<tagsEnd]))
            at = skipSpaces(line, from: tagsEnd)
        }
        if at < end, line[at] == Byte.colon {
            let sourceEnd = endOfWord(line, from: at)
            if sourceEnd > at &+ 1 { message.source = text(line, at &+ 1, sourceEnd) }
            at = skipSpaces(line, from: sourceEnd)
        }
        guard at < end else { throw .noCommand }
        let commandEnd = endOfWord(line, from: at)
        message.command = verb(line, at, commandEnd)
        message.params = params(line, from: commandEnd)
        return message
    }

    private static func params(_ line: UnsafeRawBufferPointer, from start: Int) -> [String] {
        var params: [String] = []
        var at = skipSpaces(line, from: start)
        while at < line.count {
            if line[at] == Byte.colon {
                params.append(text(line, at &+ 1, line.count))
                break
            }
            if params.count == IRCLimits.maxParams - 1 {
                params.append(text(line, at, line.count))
                break
            }
            if params.isEmpty { params.reserveCapacity(4) }
            let wordEnd = endOfWord(line, from: at)
            params.append(text(line, at, wordEnd))
            at = skipSpaces(line, from: wordEnd)
        }
        return params
    }

    // MARK: - Bytes

    private static func skipSpaces(_ line: UnsafeRawBufferPointer, from start: Int) -> Int {
        var at = start
        while at < line.count, line[at] == Byte.space { at &+= 1 }
        return at
    }

    private static func endOfWord(_ line: UnsafeRawBufferPointer, from start: Int) -> Int {
        var at = start
        while at < line.count, line[at] != Byte.space { at &+= 1 }
        return at
    }

    /// Text of a part that begins and ends beside ASCII, of a line that is known to be UTF-8.
    private static func text(_ line: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> String {
        let bytes = UnsafeRawBufferPointer(rebasing: line[start..<end]).assumingMemoryBound(to: UInt8.self)
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func verb(_ line: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> String {
        let word = UnsafeRawBufferPointer(rebasing: line[start..<end])
        guard word.contains(where: Byte.isLower) else { return text(line, start, end) }
        return String(unsafeUninitializedCapacity: word.count) { out in
            for index in 0..<word.count { out.initializeElement(at: index, to: Byte.upper(word[index])) }
            return word.count
        }
    }

    /// Refuses NUL, CR, LF and ill-formed UTF-8. Checks eight bytes at a time while they are plain.
    private static func checkBytes(_ line: UnsafeRawBufferPointer) throws(IRCLineError) {
        var at = 0
        var isASCII = true
        while at &+ 8 <= line.count {
            let word = line.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            if Byte.hasZero(word) || Byte.hasZero(word ^ Byte.repeated(Byte.cr))
                || Byte.hasZero(word ^ Byte.repeated(Byte.lf))
            {
                throw .containsNUL
            }
            if word & 0x8080_8080_8080_8080 != 0 { isASCII = false }
            at &+= 8
        }
        while at < line.count {
            let byte = line[at]
            if byte == 0 || byte == Byte.cr || byte == Byte.lf { throw .containsNUL }
            if byte >= 0x80 { isASCII = false }
            at &+= 1
        }
        if isASCII { return }
        let span = line.assumingMemoryBound(to: UInt8.self).span
        if (try? UTF8Span(validating: span)) == nil { throw .invalidUTF8 }
    }

    // MARK: - Tags

    /// Above this many tags, repeated names are found by hashing: comparing each with each would let one line of 4094
    /// bytes cost a million comparisons.
    private static let pairwiseTagCount = 12

    private static func tags(_ section: UnsafeRawBufferPointer) -> [IRCTag] {
        var tags: [IRCTag] = []
        var at = 0
        while at < section.count {
            var nameEnd = at
            while nameEnd < section.count, section[nameEnd] != Byte.equals, section[nameEnd] != Byte.semicolon {
                nameEnd &+= 1
            }
            var tagEnd = nameEnd
            var isEscaped = false
            while tagEnd < section.count, section[tagEnd] != Byte.semicolon {
                if section[tagEnd] == Byte.backslash { isEscaped = true }
                tagEnd &+= 1
            }
            if nameEnd > at {
                var value: String?
                if tagEnd > nameEnd &+ 1 {
                    value =
                        isEscaped
                        ? unescaped(section, nameEnd &+ 1, tagEnd) : text(section, nameEnd &+ 1, tagEnd)
                }
                if tags.isEmpty { tags.reserveCapacity(4) }
                tags.append(IRCTag(text(section, at, nameEnd), value))
            }
            at = tagEnd &+ 1
        }
        return withoutRepeats(tags)
    }

    private static func withoutRepeats(_ tags: [IRCTag]) -> [IRCTag] {
        if tags.count <= pairwiseTagCount, !hasRepeats(tags) { return tags }
        var seen: Set<String> = []
        return tags.reversed().filter { seen.insert($0.name).inserted }.reversed()
    }

    private static func hasRepeats(_ tags: [IRCTag]) -> Bool {
        for later in tags.indices.dropFirst() {
            for earlier in 0..<later where tags[earlier].name == tags[later].name { return true }
        }
        return false
    }

    private static func unescaped(_ section: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> String {
        // Unescaping never makes bytes more, and replaces ASCII by ASCII, so the result is UTF-8 as the line was.
        String(unsafeUninitializedCapacity: end &- start) { out in
            var count = 0
            var at = start
            while at < end {
                var byte = section[at]
                at &+= 1
                if byte == Byte.backslash {
                    // A lone backslash at the end is dropped.
                    guard at < end else { break }
                    switch section[at] {
                    case UInt8(ascii: ":"): byte = Byte.semicolon
                    case UInt8(ascii: "s"): byte = Byte.space
                    case UInt8(ascii: "r"): byte = Byte.cr
                    case UInt8(ascii: "n"): byte = Byte.lf
                    default: byte = section[at]
                    }
                    at &+= 1
                }
                out.initializeElement(at: count, to: byte)
                count &+= 1
            }
            return count
        }
    }
}
