import ChatModel
import WireBytes

/// Messages that the backend's connection has read, as a pong said, and that a history has not shown yet.
///
/// Read is not processed: they are kept until a history has them, or until the link has lived on for so long that they must
/// have been. When the link is lost before that, they go back to the outbox as unsettled. Oldest first.
struct DeliveredMessages {
    /// A backend that lives processes what it has read within this.
    static let processingTime: Duration = .seconds(60)

    private struct Item {
        var entry: OutboxEntry
        var until: MonotonicInstant
    }

    private var items: [Item] = []

    var isEmpty: Bool { items.isEmpty }
    /// When the oldest need not be kept any longer.
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

    /// Those that were written since then.
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
