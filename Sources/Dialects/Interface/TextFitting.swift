public import ChatModel

extension Dialect {
    /// Where to cut the text of `message` so that the front makes a frame within the traits' limit.
    ///
    /// Cuts after a line break if one lies in the latter half of what fits, else after a blank there, else between two
    /// code points. Send the front, then ask again with the rest. Leave attachments to the last part.
    ///
    /// The codec itself is the judge, so this holds whatever the wire does to a text; a text that fits costs one encode, a
    /// longer one some twenty.
    ///
    /// - Returns: the text's end when all of it fits; nil when nothing does, or the message cannot be said for another
    ///   reason than its length.
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
}
