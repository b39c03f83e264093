/// Cuts texts into pieces that fit IRC lines.
public enum IRCTextSplitter {
    /// Pieces of `text`, in order, each of at most `budget` bytes; joined they are `text` again, byte for byte.
    ///
    /// A piece ends after white space where there is some in its last third, else between grapheme clusters; only a
    /// cluster that exceeds the budget by itself is cut, between code points. An address (a word with `://` in it) that
    /// fits a piece is never cut: half a link is none. Linear in the text, also for a text that is one huge cluster.
    ///
    /// - Parameters:
    ///   - text: one line; ``lines(_:maxLines:)`` makes such.
    ///   - budget: bytes; less than 4 counts as 4, since a code point takes up to that.
    /// - Returns: at least one piece; an empty text is one empty piece.
    public static func split(_ text: String, budget: Int) -> [String] {
        let budget = max(budget, 4)
        if text.utf8.count <= budget { return [text] }
        var text = text
        text.makeContiguousUTF8()
        var cutter = Cutter(budget: budget, addresses: addresses(in: text, budget: budget))
        let isASCII = text.utf8.allSatisfy { $0 < 0x80 && $0 != Byte.cr }
        if isASCII {
            // Without CR LF every byte is a cluster.
            for (offset, byte) in text.utf8.enumerated() { cutter.cluster(offset, offset &+ 1, Byte.isBlank(byte)) }
        } else {
            var index = text.startIndex
            var start = 0
            while index < text.endIndex {
                let next = text.index(after: index)
                let end = start &+ text.utf8.distance(from: index, to: next)
                cutter.cluster(start, end, end &- start == 1 && Byte.isBlank(text.utf8[index]))
                if end &- start > budget {
                    let bytes = text.utf8
                    var scalarStart = start
                    var scalar = index
                    while scalar < next {
                        let following = text.unicodeScalars.index(after: scalar)
                        let scalarEnd = scalarStart &+ bytes.distance(from: scalar, to: following)
                        cutter.scalar(scalarStart, scalarEnd)
                        scalar = following
                        scalarStart = scalarEnd
                    }
                }
                index = next
                start = end
            }
        }
        let cuts = cutter.cuts
        return text.utf8.withContiguousStorageIfAvailable { bytes in
            var pieces: [String] = []
            pieces.reserveCapacity(cuts.count + 1)
            var from = 0
            for cut in cuts + [bytes.count] where cut > from {
                pieces.append(String(decoding: UnsafeBufferPointer(rebasing: bytes[from..<cut]), as: UTF8.self))
                from = cut
            }
            return pieces
        } ?? [text]
    }

    /// Where words begin that are addresses and fit a piece.
    private static func addresses(in text: String, budget: Int) -> Set<Int> {
        text.utf8.withContiguousStorageIfAvailable { bytes in
            var starts: Set<Int> = []
            var wordStart = 0
            var isAddress = false
            for (offset, byte) in bytes.enumerated() {
                if Byte.isBlank(byte) {
                    if isAddress, offset &- wordStart <= budget { starts.insert(wordStart) }
                    wordStart = offset &+ 1
                    isAddress = false
                } else if byte == UInt8(ascii: ":"), offset &+ 2 < bytes.count, bytes[offset &+ 1] == UInt8(ascii: "/"),
                    bytes[offset &+ 2] == UInt8(ascii: "/")
                {
                    isAddress = true
                }
            }
            if isAddress, bytes.count &- wordStart <= budget { starts.insert(wordStart) }
            return starts
        } ?? []
    }

    /// Chooses the cuts while the clusters go by once.
    private struct Cutter {
        let budget: Int
        /// Offsets of words that are not cut.
        let addresses: Set<Int>
        /// Offsets at which a new piece begins, ascending.
        var cuts: [Int] = []
        private var pieceStart = 0
        /// The offset after the last white space of the current piece.
        private var afterBlank = 0

        init(budget: Int, addresses: Set<Int>) {
            self.budget = budget
            self.addresses = addresses
        }

        mutating func cluster(_ start: Int, _ end: Int, _ isBlank: Bool) {
            if end &- pieceStart > budget,
                afterBlank &- pieceStart > budget &- budget / 3
                    || afterBlank > pieceStart && addresses.contains(afterBlank)
            {
                cut(at: afterBlank)
            }
            if end &- pieceStart > budget, start > pieceStart { cut(at: start) }
            if isBlank { afterBlank = end }
        }

        /// A code point of a cluster that is too long for any piece.
        mutating func scalar(_ start: Int, _ end: Int) {
            if end &- pieceStart > budget, start > pieceStart { cut(at: start) }
        }

        private mutating func cut(at offset: Int) {
            cuts.append(offset)
            pieceStart = offset
        }
    }

    /// Bytes that the text of `:source COMMAND target :text` may have so that the line fits 512 with its CR LF.
    ///
    /// Count with the source that the receiver will see. Never below 4.
    public static func budget(source: String, command: String, target: String) -> Int {
        let around = source.utf8.count + command.utf8.count + target.utf8.count + ":   :".utf8.count
        return max(4, IRCEncoder.maxContentBytes - around)
    }

    /// The lines of a text from outside, made safe.
    ///
    /// `\n`, `\r\n` and `\r` each end a line; an end at the very end of the text does not begin another. Tabs become spaces;
    /// other C0 controls and DEL are dropped, except mIRC's formatting codes. Inner lines may be empty.
    ///
    /// U+0001 is among the dropped controls: outside text must not become a CTCP.
    ///
    /// - Parameter maxLines: lines to make at the most; a text of a million newlines need not become a million strings.
    ///
    /// Source: modern.ircdocs.horse/formatting.
    public static func lines(_ text: String, maxLines: Int = .max) -> [String] {
        var lines: [String] = []
        forEachLine(text) { bytes in
            guard lines.count < maxLines else { return false }
            lines.append(clean(bytes))
            return true
        }
        return lines
    }

    /// How many lines ``lines(_:maxLines:)`` makes of `text` when none is left out.
    public static func lineCount(_ text: String) -> Int {
        var count = 0
        forEachLine(text) { _ in
            count += 1
            return true
        }
        return count
    }

    private static func forEachLine(_ text: String, _ body: (UnsafeBufferPointer<UInt8>) -> Bool) {
        var text = text
        text.withUTF8 { bytes in
            var start = 0
            var at = 0
            while at < bytes.count {
                let byte = bytes[at]
                guard byte == Byte.lf || byte == Byte.cr else {
                    at &+= 1
                    continue
                }
                guard body(UnsafeBufferPointer(rebasing: bytes[start..<at])) else { return }
                at &+= 1
                if byte == Byte.cr, at < bytes.count, bytes[at] == Byte.lf { at &+= 1 }
                start = at
            }
            if start < bytes.count || bytes.isEmpty {
                _ = body(UnsafeBufferPointer(rebasing: bytes[start...]))
            }
        }
    }

    private static func clean(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        if !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return String(decoding: bytes, as: UTF8.self) }
        return String(unsafeUninitializedCapacity: bytes.count) { out in
            var count = 0
            for byte in bytes {
                let kept: UInt8
                switch byte {
                case Byte.tab: kept = Byte.space
                // Bold, colour, hex colour, reset, monospace, reverse, italics, strike-through, underline.
                case 0x02, 0x03, 0x04, 0x0F, 0x11, 0x16, 0x1D, 0x1E, 0x1F: kept = byte
                case ..<0x20, 0x7F: continue
                default: kept = byte
                }
                out.initializeElement(at: count, to: kept)
                count &+= 1
            }
            return count
        }
    }
}

extension Byte {
    fileprivate static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == tab }
}
