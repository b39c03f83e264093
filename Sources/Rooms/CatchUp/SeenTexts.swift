import ChatModel

/// Deduplicates messages without ids: live and in a history, or over two links.
///
/// Two live frames of one link are never the same message: a second "ok" is a second message. Times must agree where
/// both have one. Each entry matches one other of each history and of each link.
final class SeenTexts {
    /// As many as ``SeenMessageIDs``.
    static let capacity = SeenMessageIDs.capacity

    private struct Entry {
        var at: ChatTimestamp?
        /// The link over which it came live; nil: it came in a history.
        var connection: Int?
        /// The last history and the last link with a match.
        var history: Int?
        var matchedConnection: Int?
        var number: Int
    }

    private var entries: [Int: [Entry]] = [:]
    /// Keys in the order of arrival.
    private var order: [(key: Int, number: Int)] = []
    private var head = 0
    private var nextNumber = 0
    private var history = 0

    /// A history is about to be processed.
    func historyBegan() { history += 1 }

    private static func key(_ message: ChatMessage) -> Int {
        var hasher = Hasher()
        hasher.combine(message.senderID)
        if message.senderID == nil { TextBytes.hash(message.sender.name, into: &hasher) }
        hasher.combine(message.text)
        for attachment in message.attachments { hasher.combine(attachment.url) }
        return hasher.finalize()
    }

    /// Whether a message with this sender, text and time was seen.
    func contains(_ message: ChatMessage) -> Bool {
        entries[Self.key(message)]?.contains { Self.agree($0.at, message.at) } ?? false
    }

    /// Returns whether a message of a history is known, and records it.
    func isKnownFromHistory(_ message: ChatMessage) -> Bool {
        let key = Self.key(message)
        let found = entries[key]?.firstIndex { $0.history != history && Self.agree($0.at, message.at) }
        if let found {
            entries[key]?[found].history = history
            return true
        }
        remember(key, Entry(at: message.at, history: history, number: nextNumber))
        return false
    }

    /// Returns whether a live message is known, and records it.
    ///
    /// - Parameter isSettling: the link came up so recently that the backend may repeat messages.
    func isKnownLive(_ message: ChatMessage, connection: Int, isSettling: Bool) -> Bool {
        let key = Self.key(message)
        let found = entries[key]?.firstIndex { entry in
            guard entry.connection != connection, entry.matchedConnection != connection else { return false }
            if let a = entry.at, let b = message.at { return a == b }
            return isSettling
        }
        if let found {
            entries[key]?[found].matchedConnection = connection
            return true
        }
        remember(key, Entry(at: message.at, connection: connection, number: nextNumber))
        return false
    }

    /// Records a message of an earlier process as live, over a link before all others.
    func restore(_ message: ChatMessage) {
        remember(Self.key(message), Entry(at: message.at, connection: 0, number: nextNumber))
    }

    /// Whether one message may be the other.
    static func areAlike(_ a: ChatMessage, _ b: ChatMessage) -> Bool { key(a) == key(b) && agree(a.at, b.at) }

    /// Messages to look many others up among.
    struct Group {
        private let times: [Int: [ChatTimestamp?]]

        init(_ messages: some Sequence<ChatMessage>) {
            times = Dictionary(grouping: messages, by: SeenTexts.key).mapValues { $0.map(\.at) }
        }

        /// Whether one of them may be this one.
        func contains(_ message: ChatMessage) -> Bool {
            times[SeenTexts.key(message)]?.contains { SeenTexts.agree($0, message.at) } ?? false
        }
    }

    private static func agree(_ a: ChatTimestamp?, _ b: ChatTimestamp?) -> Bool {
        guard let a, let b else { return true }
        return a == b
    }

    private func remember(_ key: Int, _ entry: Entry) {
        entries[key, default: []].append(entry)
        order.append((key, nextNumber))
        nextNumber += 1
        guard order.count - head > Self.capacity else { return }
        let oldest = order[head]
        head += 1
        entries[oldest.key]?.removeAll { $0.number == oldest.number }
        if entries[oldest.key]?.isEmpty == true { entries[oldest.key] = nil }
        if head > Self.capacity {
            order.removeFirst(head)
            head = 0
        }
    }
}
