import ChatModel
import WireBytes

/// Messages read by the backend's connection, as a pong proved, that no history has shown yet. Oldest first.
///
/// Read is not processed: they are retained until a history has them, or until the link has been up for so long that
/// they must have been processed. When the link is lost before that, they return to the outbox as
/// `unknownAfterDisconnect`.
struct DeliveredMessages {
    /// A working backend processes what it has read within this.
    static let processingTime: Duration = .seconds(60)

    private struct Item {
        var entry: OutboxEntry
        var until: MonotonicInstant
    }

    private var items: [Item] = []

    var isEmpty: Bool { items.isEmpty }
    /// The time at which the oldest expires.
    var due: MonotonicInstant? { items.first?.until }
    var entries: [OutboxEntry] { items.map(\.entry) }

    mutating func append(_ entry: OutboxEntry, until: MonotonicInstant) {
        items.append(Item(entry: entry, until: max(until, items.last?.until ?? until)))
    }

    /// Whether a piece of the same message is among them.
    func contains(storedID: ChatID) -> Bool { items.contains { $0.entry.storedID == storedID } }

    /// IRC has seen a message, with all its pieces.
    mutating func markShown(storedID: ChatID) {
        for index in items.indices where items[index].entry.storedID == storedID { items[index].entry.markShown() }
    }

    mutating func take(id: ChatID) -> OutboxEntry? {
        items.firstIndex { $0.entry.message.id == id }.map { items.remove(at: $0).entry }
    }

    /// Removes those written since then.
    mutating func take(since: MonotonicInstant) -> [OutboxEntry] {
        let count = items.reversed().prefix { $0.entry.writtenAt.map { $0 >= since } ?? false }.count
        defer { items.removeLast(count) }
        return items.suffix(count).map(\.entry)
    }

    mutating func takeDue(now: MonotonicInstant) -> [OutboxEntry] {
        let count = items.prefix { $0.until <= now }.count
        defer { items.removeFirst(count) }
        return items.prefix(count).map(\.entry)
    }

    mutating func takeAll() -> [OutboxEntry] {
        defer { items = [] }
        return items.map(\.entry)
    }
}
