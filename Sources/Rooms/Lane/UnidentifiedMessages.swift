import ChatModel
import WireBytes

/// Delivered messages whose upstream ids are unknown.
///
/// Their ids are learned from an echo or a history, by sender and text. Leading and trailing blanks are ignored: some
/// backends trim them.
final class UnidentifiedMessages {
    /// Capacity; older ones stay without an id. As many as a history is compared with: a dropped one would be shown
    /// again by the next.
    static let capacity = SeenMessageIDs.capacity
    /// The newest retain the whole message; older ones only its hash.
    static let maxWhole = 200
    /// An own message that comes back within this is an echo: as long as a dead link can go unnoticed, since it may
    /// come over another one.
    static let echoWindow: Duration = .seconds(60)
    /// A complaint without a reference concerns a message written within this.
    static let complaintWindow: Duration = .seconds(2)

    struct Entry {
        var msgid: String
        /// Nil: too old to be needed.
        var entry: OutboxEntry?
        var writtenAt: MonotonicInstant
        /// The relay's id; nil: sent by an earlier process.
        var messageID: ChatID?
        let key: Int

        init(msgid: String, entry: OutboxEntry, writtenAt: MonotonicInstant) {
            self.msgid = msgid
            self.entry = entry
            self.writtenAt = writtenAt
            messageID = entry.message.id
            key = UnidentifiedMessages.key(entry.message.text)
        }

        /// A message sent by an earlier process.
        ///
        /// - Parameter text: as transmitted.
        init(msgid: String, text: String, writtenAt: MonotonicInstant) {
            self.msgid = msgid
            self.writtenAt = writtenAt
            key = UnidentifiedMessages.key(text)
        }
    }

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }
    var newestMsgid: String? { entries.last?.msgid }

    func contains(msgid: String) -> Bool { entries.contains { $0.msgid == msgid } }

    func append(_ entry: Entry) {
        entries.append(entry)
        if entries.count > Self.maxWhole { entries[entries.count - 1 - Self.maxWhole].entry = nil }
        if entries.count > Self.capacity { entries.removeFirst() }
    }

    /// Removes the oldest recent match of an echo.
    func takeEchoed(text: String, now: MonotonicInstant) -> Entry? {
        let key = Self.key(text)
        return entries.firstIndex { $0.key == key && now - $0.writtenAt <= Self.echoWindow }
            .map { entries.remove(at: $0) }
    }

    /// Removes the newest match, for a history searched from its end.
    func takeNewest(text: String) -> Entry? {
        let key = Self.key(text)
        return entries.lastIndex { $0.key == key }.map { entries.remove(at: $0) }
    }

    // MARK: - Histories

    /// The hash by which a text is recognised.
    static func key(_ text: String) -> Int {
        func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.isWhitespace }
        let scalars = text.unicodeScalars
        guard let first = scalars.first, let last = scalars.last, isSpace(first) || isSpace(last) else {
            return text.hashValue
        }
        guard let start = scalars.firstIndex(where: { !isSpace($0) }),
            let end = scalars.lastIndex(where: { !isSpace($0) })
        else { return "".hashValue }
        return String(scalars[start...end]).hashValue
    }

    /// All entries, oldest first.
    var all: [Entry] { entries }

    func take(msgid: String) -> Entry? {
        entries.lastIndex { $0.msgid == msgid }.map { entries.remove(at: $0) }
    }
}
