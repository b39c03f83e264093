import ChatModel
import WireBytes

/// Messages of ours that the backend has, under ids that nobody told us.
///
/// Their ids are learned from an echo or from a history, by sender and text. Space at the ends does not count: some backends
/// trim it.
final class SentMessages {
    /// Remembered at most; older ones keep no id for good. As many as a history is compared with: what is forgotten here
    /// would be shown again by the next one.
    static let capacity = DuplicateRing.capacity
    /// Of so many the whole message is kept; of older ones only what recognises them.
    static let maxWhole = 200
    /// An own message that comes back within this is an echo: as long as a dead link can go unnoticed, since it may come over
    /// another one.
    static let echoWindow: Duration = .seconds(60)
    /// A complaint that names no message means one that was written within this.
    static let complaintWindow: Duration = .seconds(2)

    struct Entry {
        var msgid: String
        /// Nil: too long ago to be needed.
        var entry: OutboxEntry?
        var writtenAt: MonotonicInstant
        /// Ours; nil: an earlier process sent it.
        var messageID: ChatID?
        let key: Int

        init(msgid: String, entry: OutboxEntry, writtenAt: MonotonicInstant) {
            self.msgid = msgid
            self.entry = entry
            self.writtenAt = writtenAt
            messageID = entry.message.id
            key = SentMessages.key(entry.message.text)
        }

        /// One that an earlier process sent.
        ///
        /// - Parameter text: as it went up.
        init(msgid: String, text: String, writtenAt: MonotonicInstant) {
            self.msgid = msgid
            self.writtenAt = writtenAt
            key = SentMessages.key(text)
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

    /// For an echo: the oldest one written lately.
    func takeEchoed(text: String, now: MonotonicInstant) -> Entry? {
        let key = Self.key(text)
        return entries.firstIndex { $0.key == key && now - $0.writtenAt <= Self.echoWindow }
            .map { entries.remove(at: $0) }
    }

    /// For a history that is looked through from its end: the newest one.
    func takeNewest(text: String) -> Entry? {
        let key = Self.key(text)
        return entries.lastIndex { $0.key == key }.map { entries.remove(at: $0) }
    }

    // MARK: - Histories

    /// By what a text is recognised.
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

    /// All of them, oldest first.
    var all: [Entry] { entries }

    func take(msgid: String) -> Entry? {
        entries.lastIndex { $0.msgid == msgid }.map { entries.remove(at: $0) }
    }
}
