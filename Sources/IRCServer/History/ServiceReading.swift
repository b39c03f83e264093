import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms

/// An answer of the service about the history: its kind, counts and layout.
struct ServiceReading {
    enum Kind {
        case history(limit: Int)
        case search
        /// A message from this byte on.
        case show(msgid: String, from: Int)
    }

    /// Messages in an answer, where no number is given.
    static let usualCount = 10
    /// Messages in a search result: about as many as a user reads.
    static let maxFound = 20
    /// Lines of one message in a list of several.
    static let maxLinesInList = 3
    /// Lines and bytes of a message in one answer.
    static let maxLines = 100
    static let maxBytes = 16 * 1024

    let kind: Kind
    /// Rooms still to be searched for a message, the next one last.
    private var roomsLeft: [RoomID]
    /// Messages shown so far.
    private(set) var shownCount = 0
    /// Messages left out, of muted users.
    private(set) var mutedCount = 0
    /// The oldest message shown.
    private(set) var firstMsgid: String?

    init(kind: Kind, roomsLeft: [RoomID] = []) {
        self.kind = kind
        self.roomsLeft = roomsLeft
    }

    mutating func told(_ msgid: String, isInList: Bool) {
        shownCount += 1
        if isInList, firstMsgid == nil { firstMsgid = msgid }
    }

    mutating func leftOut() { mutedCount += 1 }

    mutating func nextRoom() -> RoomID? { roomsLeft.popLast() }

    /// `HH:MM`, UTC, with the date in front when that is more than a day ago.
    static func time(_ at: ChatTimestamp, now: ChatTimestamp) -> String {
        let text = Array(IRCServerTime.format(milliseconds: at.milliseconds).utf8)
        guard text.count >= 16 else { return "" }
        let (age, over) = now.milliseconds.subtractingReportingOverflow(at.milliseconds)
        let isOld = over || age > 24 * 3600 * 1000
        let date = isOld ? String(decoding: text[0..<10], as: UTF8.self) + " " : ""
        return date + String(decoding: text[11..<16], as: UTF8.self)
    }

    /// The line of `text` with the words searched for, or `budget` bytes of it; nil: not found near the beginning.
    static func passage(of text: String, holding words: String, budget: Int) -> String? {
        func isLineEnd(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") }
        let clean = MessageText.cleanBody(String(decoding: text.utf8.prefix(4 * maxBytes), as: UTF8.self))
        let bytes = Array(clean.utf8)
        guard let place = bytes.withUnsafeBytes(TextPattern(words).firstIndex) else { return nil }
        var start = (bytes[..<place].lastIndex(where: isLineEnd) ?? -1) + 1
        var mark = ""
        if place - start + words.utf8.count > budget {
            mark = "…"
            start = max(start, place - budget / 4)
            while start < place, bytes[start] & 0xC0 == 0x80 { start += 1 }
        }
        let end = bytes[place...].firstIndex(where: isLineEnd) ?? bytes.count
        return PrintableText.prefix(of: mark + String(decoding: bytes[start..<end], as: UTF8.self), maxBytes: budget)
    }

    /// Lines of `text` from a byte on, up to the limits of one answer, and the start of the next ones, if any.
    ///
    /// - Parameter budget: bytes of a line.
    static func page(of text: String, from start: Int, budget: Int) -> (lines: [String], next: Int?) {
        let all = text.utf8
        guard start < all.count else { return ([], nil) }
        // More than one answer has: the cut is behind its end.
        var window = Array(all.dropFirst(start).prefix(maxBytes + 2 * budget))
        // An offset given by a user may lie within a character.
        let skipped = window.prefix(3).prefix { $0 & 0xC0 == 0x80 }.count
        window.removeFirst(skipped)
        let begin = start + skipped
        let isCut = begin + window.count < all.count
        if isCut {
            while let last = window.last, last & 0xC0 == 0x80 { window.removeLast() }
            if let last = window.last, last >= 0xC0 { window.removeLast() }
        }
        for index in window.indices where window[index] == UInt8(ascii: "\r") { window[index] = UInt8(ascii: "\n") }
        var lines: [String] = []
        var position = 0
        for line in window.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            guard lines.count < maxLines, position < maxBytes else { return (lines, begin + position) }
            if !line.isEmpty {
                for piece in IRCTextSplitter.split(String(decoding: line, as: UTF8.self), budget: budget) {
                    guard lines.count < maxLines, position < maxBytes else { return (lines, begin + position) }
                    lines.append(piece)
                    position += piece.utf8.count
                }
            }
            position += 1
        }
        return (lines, isCut ? begin + min(position, window.count) : nil)
    }
}
