public import ChatModel

extension Dialect {
    /// Where to cut the text of `message` so that the front makes a frame within the traits' limit.
    ///
    /// Cuts after a line break in the latter half of the fitting part, else after a blank there, else between two code
    /// points. Send the front, then ask again with the rest. Leave attachments to the last part.
    ///
    /// Decided by encoding, so this holds for any codec; a text that fits costs one encode, a longer one some twenty.
    ///
    /// - Returns: the text's end when all of it fits; nil when no part does, or the message cannot be encoded for
    ///   another reason than its length.
    public func cut(of message: ChatMessage, context: DialectContext) -> String.Index? {
        let text = message.text
        var part = message
        func fits(_ end: String.Index) -> Bool? {
            part.text = String(text.unicodeScalars[..<end])
            switch encode(.message(part), context: context) {
            case .frame, .several: return true
            case .unsupported(.tooLong): return false
            case .unsupported: return nil
            }
        }
        guard let whole = fits(text.endIndex) else { return nil }
        if whole { return text.endIndex }

        // Among offsets in UTF-8, each rounded down to a code point. `low` fits, `high` does not.
        let bytes = text.utf8
        func boundary(_ offset: Int) -> String.Index {
            var index = bytes.index(bytes.startIndex, offsetBy: offset)
            while index > bytes.startIndex, index < bytes.endIndex, bytes[index] & 0xC0 == 0x80 {
                index = bytes.index(before: index)
            }
            return index
        }
        var low = 0
        var high = bytes.count
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if fits(boundary(middle)) == true { low = middle } else { high = middle }
        }
        let end = boundary(low)
        guard end > text.startIndex else { return nil }

        let half = boundary(low / 2)
        for separator in [UInt8(ascii: "\n"), UInt8(ascii: " ")] {
            if let found = bytes[half..<end].lastIndex(of: separator) { return bytes.index(after: found) }
        }
        return end
    }

    /// Whether a message's frame says which message it answers; else the words that are answered must be quoted.
    ///
    /// Decided by encoding, so this holds for any options: a reply is carried when it makes another frame than the same
    /// message without one. Costs two encodes.
    public func carriesReplies(context: DialectContext) -> Bool {
        // All parts that some wire requires; the ids are numbers, as at most backends.
        var probe = ChatMessage(
            id: ChatID("1"), room: context.room, sender: ChatPerson(id: ChatID("2"), name: "n"), text: "t",
            at: ChatTimestamp(milliseconds: 1))
        let plain = encode(.message(probe), context: context)
        probe.replyTo = ChatID("3")
        let reply = encode(.message(probe), context: context)
        if case .unsupported = reply { return false }
        return reply != plain
    }
}
