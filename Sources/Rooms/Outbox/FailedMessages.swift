import ChatModel

/// Messages that were given up, until their authors are notified, and for confirmations that come late.
struct FailedMessages {
    /// Retained for late confirmations, of those whose authors are notified.
    static let toldCapacity = 200
    /// Retained for absent authors. As many as wait for a backend by default; an author that never returns must not
    /// fill the memory.
    static let untoldCapacity = 1000

    struct Item {
        /// Grows in the order of giving up.
        var number: UInt64
        var entry: OutboxEntry
        var reason: FailureReason
        /// The author was certainly notified, or the failure is not persisted.
        var isTold: Bool
    }

    private var items: [Item] = []
    private var ids: Set<ChatID> = []
    private var untoldCount = 0
    private var lastNumber: UInt64 = 0

    var isEmpty: Bool { items.isEmpty }

    /// The last number in use.
    var newest: UInt64 { lastNumber }

    func contains(id: ChatID) -> Bool { ids.contains(id) }

    /// Failures whose authors may not have been notified.
    var untold: [Item] { items.filter { !$0.isTold } }

    /// - Returns: the items that are dropped for it.
    mutating func remember(_ entry: OutboxEntry, reason: FailureReason = FailureReason(""), isTold: Bool) -> [Item] {
        guard let id = entry.message.id else { return [] }
        if ids.contains(id), let index = items.firstIndex(where: { $0.entry.message.id == id }) { forget(at: index) }
        var entry = entry
        // The refusal was the reply to the label.
        entry.origin = entry.origin.with(label: nil, clientName: entry.origin.clientName)
        lastNumber += 1
        items.append(Item(number: lastNumber, entry: entry, reason: reason, isTold: isTold))
        ids.insert(id)
        if !isTold { untoldCount += 1 }
        return trim(isTold: isTold)
    }

    /// Drops the oldest of a kind beyond its capacity.
    private mutating func trim(isTold: Bool) -> [Item] {
        let toldCount = items.count - untoldCount
        guard isTold ? toldCount > Self.toldCapacity : untoldCount > Self.untoldCapacity,
            let index = items.firstIndex(where: { $0.isTold == isTold })
        else { return [] }
        return [forget(at: index)]
    }

    @discardableResult
    private mutating func forget(at index: Int) -> Item {
        let item = items.remove(at: index)
        if let id = item.entry.message.id { ids.remove(id) }
        if !item.isTold { untoldCount -= 1 }
        return item
    }

    // MARK: - Notification

    /// The first failure of an author after `number` without a notification.
    func untold(of author: ChatID, after number: UInt64) -> Item? {
        guard untoldCount > 0 else { return nil }
        return items.first { $0.number > number && !$0.isTold && $0.entry.origin.puppet == author }
    }

    /// Marks these as notified. Returns them, and the items dropped for it.
    mutating func told(_ numbers: Set<UInt64>) -> (told: [Item], forgotten: [Item]) {
        var told: [Item] = []
        for index in items.indices where !items[index].isTold && numbers.contains(items[index].number) {
            items[index].isTold = true
            untoldCount -= 1
            told.append(items[index])
        }
        var forgotten: [Item] = []
        for _ in told { forgotten += trim(isTold: true) }
        return (told, forgotten)
    }

    /// Reassigns these to the placeholder author, so that no user is notified. Returns the items dropped for it.
    mutating func disown(_ author: ChatID, as nobody: ChatID) -> [Item] {
        var forgotten: [Item] = []
        for index in items.indices where items[index].entry.origin.puppet == author {
            items[index].entry.disown(as: nobody)
            guard !items[index].isTold else { continue }
            items[index].isTold = true
            untoldCount -= 1
        }
        while items.count - untoldCount > Self.toldCapacity {
            let more = trim(isTold: true)
            guard !more.isEmpty else { break }
            forgotten += more
        }
        return forgotten
    }

    /// Removes what erased users sent in vain.
    mutating func eraseAll() -> [Item] {
        items.indices.reversed().filter { items[$0].entry.origin.puppet == .erased }.map { forget(at: $0) }
    }

    // MARK: - Late confirmations

    mutating func take(id: ChatID, sender: ChatID?) -> OutboxEntry? {
        guard ids.contains(id) else { return nil }
        return take { $0.message.id == id && (sender == nil || $0.message.senderID == sender) }
    }

    mutating func take(sender: ChatID?, text: String) -> OutboxEntry? {
        take { $0.message.text == text && (sender == nil || $0.message.senderID == sender) }
    }

    private mutating func take(where fits: (OutboxEntry) -> Bool) -> OutboxEntry? {
        guard let entry = items.firstIndex(where: { fits($0.entry) }).map({ forget(at: $0).entry }) else { return nil }
        // The whole is shown, once.
        while entry.part != nil, let other = items.firstIndex(where: { $0.entry.storedID == entry.storedID }) {
            forget(at: other)
        }
        return entry
    }
}
