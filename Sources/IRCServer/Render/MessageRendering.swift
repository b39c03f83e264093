import BridgeTypes
import ChatModel
import IRCProtocol
import Media
import Rooms
import WireBytes

// Messages rendered as lines for clients.

/// Renders message bodies for IRC clients.
enum MessageRendering {
    /// The bodies of the PRIVMSG lines that show `text` and `attachments`, each within `budget` bytes.
    static func bodies(
        text: String, attachments: [ChatAttachment], isEncrypted: Bool, budget: Int, limits: LimitSettings
    ) -> [String] {
        lines(text: text, attachments: attachments, isEncrypted: isEncrypted, budget: budget, limits: limits)
            .map(\.text).filter { !$0.isEmpty }
    }

    /// Whether the text is a CTCP request other than ACTION; those never go upstream.
    static func isForeignCTCP(_ text: String) -> Bool { text.hasPrefix("\u{1}") && MessageText.action(text) == nil }

    /// The lines that show `text` and `attachments`, each within `budget` bytes, blank ones among them; empty if there
    /// is nothing to show.
    ///
    /// - Parameters:
    ///   - msgid: the id for requesting the whole; nil: it cannot be requested.
    static func lines(
        text: String, attachments: [ChatAttachment], isEncrypted: Bool, budget: Int, limits: LimitSettings,
        msgid: String? = nil, files: RoomFileLinks? = nil
    ) -> [IRCUtterance.Line] {
        if attachments.isEmpty, isOneLine(text, budget: budget, limits: limits) { return [IRCUtterance.Line(text)] }
        var lines: [IRCUtterance.Line] = []
        var byteCount = 0
        var omitted = 0
        if isEncrypted, text.isEmpty { lines.append(IRCUtterance.Line("[encrypted message]")) }
        let clean = withoutOuterLineEnds(MessageText.cleanBody(text))
        let front = clean.isEmpty ? [] : IRCTextSplitter.lines(clean, maxLines: limits.multilineMaxLines + 1)
        for line in front {
            if lines.count >= limits.multilineMaxLines || byteCount >= limits.multilineMaxBytes {
                omitted += 1
                continue
            }
            // The piece with this cut is over the limit, so it is never shown.
            let looked = limits.multilineMaxBytes - byteCount + 2 * budget
            let head =
                line.utf8.count > looked ? String(decoding: Array(line.utf8.prefix(looked)), as: UTF8.self) : line
            for (index, piece) in IRCTextSplitter.split(head, budget: budget).enumerated() {
                guard lines.count < limits.multilineMaxLines, byteCount + piece.utf8.count <= limits.multilineMaxBytes
                else {
                    omitted += 1
                    byteCount = limits.multilineMaxBytes
                    break
                }
                lines.append(IRCUtterance.Line(piece, isContinuation: index > 0))
                byteCount += piece.utf8.count
            }
        }
        if front.count > limits.multilineMaxLines { omitted += IRCTextSplitter.lineCount(clean) - front.count }
        if omitted > 0 {
            let place = msgid.map { ": /msg \(ServiceName.nick) show \($0)" } ?? ""
            lines.append(IRCUtterance.Line("… \(omitted) more line\(omitted == 1 ? "" : "s")" + place))
        }
        if !attachments.isEmpty {
            lines += self.lines(of: attachments, budget: budget, files: files)
        }
        return lines
    }

    /// Whether a text is certainly one line, and shown as it is: printable ASCII, as most texts are.
    static func isOneLine(_ text: String, budget: Int, limits: LimitSettings) -> Bool {
        guard 1...min(budget, limits.multilineMaxBytes) ~= text.utf8.count else { return false }
        var text = text
        return text.withUTF8 { ByteScan.isPrintableASCII(UnsafeRawBufferPointer($0)) }
    }

    /// Removes the line ends around a text; blank outer lines are never shown.
    private static func withoutOuterLineEnds(_ text: String) -> String {
        func isLineEnd(_ byte: UInt8) -> Bool { byte == 0x0A || byte == 0x0D }
        let bytes = text.utf8
        guard bytes.first.map(isLineEnd) ?? false || bytes.last.map(isLineEnd) ?? false else { return text }
        guard let start = bytes.firstIndex(where: { !isLineEnd($0) }),
            let last = bytes.lastIndex(where: { !isLineEnd($0) })
        else { return "" }
        return String(text[start...last])
    }

    /// A message of an IRC user as other clients receive it: its own lines, split where the source leaves no room.
    ///
    /// - Parameters:
    ///   - head: the message without its text; its only parameter is the target.
    ///   - address: see ``IRCUtterance/address``.
    ///   - margin: bytes that the caller prepends to a line.
    static func utterance(
        _ head: IRCMessage, _ words: SpokenText, address: String? = nil, margin: Int = 0
    ) -> IRCUtterance {
        let budget =
            IRCTextSplitter.budget(source: head.source ?? "", command: head.command, target: head.params.first ?? "")
            - margin - (address?.utf8.count ?? 0)
        guard words.text.utf8.count > budget || words.text.utf8.contains(0x0A) || !words.cuts.isEmpty else {
            let words = MessageText.action(words.text).map { ($0, true) } ?? (words.text, false)
            return IRCUtterance(
                head: head, lines: [IRCUtterance.Line(words.0)], isAction: words.1, address: words.1 ? nil : address)
        }
        if let done = MessageText.action(words.text) {
            // Some clients get each line as an ACTION of its own. Its prefix takes eight bytes.
            return IRCUtterance(
                head: head,
                lines: lines(done, cuts: words.cuts.map { $0 - 8 }, budget: budget - IRCUtterance.actionByteCount),
                isAction: true)
        }
        if isForeignCTCP(words.text) { return IRCUtterance(head: head, lines: [IRCUtterance.Line(words.text)]) }
        return IRCUtterance(head: head, lines: lines(words.text, cuts: words.cuts, budget: budget), address: address)
    }

    /// Splits a text. Joined, with a line end before each line that is no continuation, the lines are `text` again.
    ///
    /// - Parameter cuts: ascending offsets at which a line is split, however short it is.
    static func lines(_ text: String, cuts: [Int], budget: Int) -> [IRCUtterance.Line] {
        var lines: [IRCUtterance.Line] = []
        let bytes = Array(text.utf8)
        var start = 0
        var isContinuation = false
        var nextCut = cuts.makeIterator()
        var cut = nextCut.next()
        func put(upTo end: Int) {
            let line = String(decoding: bytes[start..<end], as: UTF8.self)
            for (index, piece) in IRCTextSplitter.split(line, budget: budget).enumerated() {
                lines.append(IRCUtterance.Line(piece, isContinuation: isContinuation || index > 0))
            }
        }
        for (offset, byte) in bytes.enumerated() {
            while let next = cut, next <= offset {
                if next == offset, offset > start {
                    put(upTo: offset)
                    start = offset
                    isContinuation = true
                }
                cut = nextCut.next()
            }
            guard byte == 0x0A else { continue }
            put(upTo: offset)
            start = offset + 1
            isContinuation = false
        }
        put(upTo: bytes.count)
        return lines
    }
}

/// The names of the service user.
enum ServiceName {
    /// No user's nick begins like this.
    static let nick = "*bridge"
    static let ident = "bridge"
    static let realname = "the bridge itself; say help to it"
}
