import ChatModel
import WireBytes

// The outcome of written messages: refused or confirmed. The states are at the head of Outbox.swift.

extension Outbox {
    // MARK: - Refusals

    /// Removes the message with `id`, which the backend refused.
    mutating func refuse(id: ChatID) -> OutboxEntry? {
        (slots[id].flatMap { remove($0) } ?? delivered.take(id: id)).map { give(up: $0) }
    }

    /// Handles a refusal without a reference, where only one message is in flight.
    ///
    /// - Parameter since: messages written before this are not concerned.
    mutating func refuseOnly(since: MonotonicInstant) -> OutboxEntry? {
        guard inFlight == 1, let slot = lists.first(.written) ?? lists.last(.open),
            lists[slot]?.writtenAt.map({ $0 >= since }) ?? true
        else { return nil }
        return remove(slot).map { give(up: $0) }
    }

    /// Messages written over this link without an answer; the pieces of one count once.
    var inFlight: Int {
        var ids: Set<ChatID?> = []
        for list in [OutboxLists.Name.open, .written] {
            var slot = lists.last(list)
            // Unknown ones stand in front of all that was written over this link.
            while let at = slot, let entry = lists[at], entry.state != .unknownAfterDisconnect {
                ids.insert(entry.storedID)
                slot = lists.previous(before: at)
            }
        }
        return ids.count
    }

    /// A message written over this link is unconfirmed.
    var hasInFlight: Bool { hasDoubtful || lists.first(.written) != nil }

    /// Retains an entry whose author is notified of its failure.
    mutating func give(up entry: OutboxEntry) -> OutboxEntry {
        _ = failures.remember(entry, isTold: true)
        return entry
    }

    /// Retains a failed message until its author is notified. Returns the items dropped for it.
    mutating func fail(_ entry: OutboxEntry, reason: FailureReason) -> [FailedMessages.Item] {
        failures.remember(entry, reason: reason, isTold: false)
    }

    /// Marks these as notified. Returns them, and the items dropped for it.
    mutating func told(_ numbers: Set<UInt64>) -> (told: [FailedMessages.Item], forgotten: [FailedMessages.Item]) {
        failures.told(numbers)
    }

    /// Takes over the unreported failures of another outbox.
    mutating func inheritFailures(of other: Outbox) {
        for item in other.failures.untold { _ = fail(item.entry, reason: item.reason) }
    }

    // MARK: - Confirmed by a pong

    mutating func keepDelivered(_ entry: OutboxEntry, until: MonotonicInstant) {
        delivered.append(entry, until: until)
    }

    /// IRC has seen it. Returns whether a history may still confirm it.
    mutating func markDeliveredShown(storedID: ChatID) -> Bool {
        delivered.markShown(storedID: storedID)
        return delivered.contains(storedID: storedID)
    }

    mutating func takeDelivered(id: ChatID) -> OutboxEntry? { delivered.take(id: id) }

    /// Removes those that no history confirmed in time.
    mutating func takeDelivered(due now: MonotonicInstant) -> [OutboxEntry] { delivered.takeDue(now: now) }

    // MARK: - Confirmations

    /// Removes the message with `id` from `sender`, which the backend has. Nil when there is none.
    ///
    /// Entries that wait for retransmission count too: the answer to the first transmission may come over the next
    /// link.
    mutating func confirm(id: ChatID, sender: ChatID?) -> OutboxEntry? {
        guard let slot = slots[id], sender == nil || lists[slot]?.message.senderID == sender else { return nil }
        return confirm(slot)
    }

    /// Removes the oldest written entry with this sender and text: for wires with server-made ids.
    mutating func confirm(sender: ChatID?, text: String) -> OutboxEntry? {
        confirm(text: text) { sender == nil || $0.sender.id == sender }
    }

    /// The same on wires that name senders, without ids for them.
    mutating func confirm(senderName: String, text: String) -> OutboxEntry? {
        confirm(text: text) { TextBytes.areSame($0.sender.name, senderName) }
    }

    private mutating func confirm(text: String, where fits: (ChatMessage) -> Bool) -> OutboxEntry? {
        if matchesTexts, texts[text.hashValue] == nil { return nil }
        func isMeant(_ entry: OutboxEntry) -> Bool { entry.message.text == text && fits(entry.message) }
        return (lists.first(.open, where: isMeant) ?? lists.first(.written, where: isMeant)).flatMap { confirm($0) }
    }

    /// Removes the failed message with this id and sender (nil: any).
    mutating func takeLate(id: ChatID, sender: ChatID?) -> OutboxEntry? { failures.take(id: id, sender: sender) }

    /// Removes the failed message with this id, from any sender.
    mutating func takeLate(ref: ChatID) -> OutboxEntry? { failures.take(id: ref, sender: nil) }

    /// Removes the oldest failed message with this sender and text: for wires with server-made ids.
    mutating func takeLate(sender: ChatID?, text: String) -> OutboxEntry? { failures.take(sender: sender, text: text) }

    func contains(id: ChatID) -> Bool { slots[id] != nil }

    /// The time at which the oldest unconfirmed entry was written; nil: none is, or only doubtful ones.
    var oldestWritten: MonotonicInstant? {
        guard let slot = lists.first(.written), case .written(let at)? = lists[slot]?.state else { return nil }
        return at
    }

    /// Whether an unconfirmed message was sent with a prefix that this text begins with.
    func hasWritten(inFrontOf text: String) -> Bool {
        lists.first(.written) { entry in
            let (whole, words) = (entry.message.text, entry.origin.text)
            return whole.utf8.count > words.utf8.count && whole.hasSuffix(words)
                && text.hasPrefix(String(whole.dropLast(words.count)))
        } != nil
    }

    /// Removes the oldest unconfirmed entry among the first `frameCount` frames of this session.
    mutating func takeWritten(upTo frameCount: UInt64) -> OutboxEntry? {
        // An unknown entry was written over an earlier link with a frame count of its own.
        let doubtful = hasDoubtful ? lists.first(.open, where: { $0.state == .doubtful }) : nil
        guard let slot = doubtful ?? lists.first(.written), let entry = lists[slot], entry.frameCount <= frameCount
        else {
            return nil
        }
        return confirm(slot)
    }
}
