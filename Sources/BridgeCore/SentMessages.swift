import ChatModel
import WireBytes

/// Messages of ours that the backend has, under ids that nobody told us.
///
/// Their ids are learned from an echo or from a history, by sender and text.
struct SentMessages {
    /// Remembered at most; older ones keep no id for good. As many as a history is compared with: what is forgotten here
    /// would be shown again by the next one.
    static let capacity = DuplicateRing.capacity
    /// Of so many the whole message is kept; of older ones only what recognises them.
    static let maxWhole = 200
    /// An own message that comes back within this is an echo.
    static let echoWindow: Duration = .seconds(10)
    /// A complaint that names no message means the newest one, if it was written within this.
    static let complaintWindow: Duration = .seconds(2)

    struct Entry {
        var msgid: String
        /// Nil: too long ago to be needed.
        var entry: OutboxEntry?
        var writtenAt: MonotonicInstant
        fileprivate let textHash: Int
        /// The author was told that the backend refused it. It stays, since a history may have it all the same.
        fileprivate(set) var isComplained = false

        init(msgid: String, entry: OutboxEntry, writtenAt: MonotonicInstant) {
            self.msgid = msgid
            self.entry = entry
            self.writtenAt = writtenAt
            textHash = entry.message.text.hashValue
        }

        /// One that an earlier process sent.
        ///
        /// - Parameter text: as it went up.
        init(msgid: String, text: String, writtenAt: MonotonicInstant) {
            self.msgid = msgid
            self.writtenAt = writtenAt
            textHash = text.hashValue
        }
    }

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }
    var newestMsgid: String? { entries.last?.msgid }

    func contains(msgid: String) -> Bool { entries.contains { $0.msgid == msgid } }

    mutating func append(_ entry: Entry) {
        entries.append(entry)
        if entries.count > Self.maxWhole { entries[entries.count - 1 - Self.maxWhole].entry = nil }
        if entries.count > Self.capacity { entries.removeFirst() }
    }

    /// For an echo: the oldest one written lately.
    mutating func takeEchoed(text: String, now: MonotonicInstant) -> Entry? {
        let hash = text.hashValue
        return entries.firstIndex { $0.textHash == hash && now - $0.writtenAt <= Self.echoWindow }
            .map { entries.remove(at: $0) }
    }

    /// For a history that is looked through from its end: the newest one.
    mutating func takeNewest(text: String) -> Entry? {
        let hash = text.hashValue
        return entries.lastIndex { $0.textHash == hash }.map { entries.remove(at: $0) }
    }

    /// For a complaint without a name: the newest one that is whole and was not meant by an earlier complaint. What the
    /// backend took all the same is known by it when it comes back.
    mutating func markComplained(now: MonotonicInstant) -> OutboxEntry? {
        guard let index = entries.lastIndex(where: { !$0.isComplained }),
            now - entries[index].writtenAt <= Self.complaintWindow, let entry = entries[index].entry
        else { return nil }
        entries[index].isComplained = true
        return entry
    }
}
