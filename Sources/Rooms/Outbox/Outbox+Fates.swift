import ChatModel
import WireBytes

// What became of messages that were written: refused, or confirmed. The states are at the head of Outbox.swift.

extension Outbox {
    // MARK: - Refusals

    /// The backend refused the message with `id`.
    mutating func refuse(id: ChatID) -> OutboxEntry? {
        (slots[id].flatMap { remove($0) } ?? delivered.take(id: id)).map { give(up: $0) }
    }

    /// The backend refused something and does not say what, and only one message is in flight.
    ///
    /// - Parameter since: written before this, it is not meant.
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
            // What is unsettled is in front of all that was written over this link.
            while let at = slot, let entry = lists[at], entry.state != .unsettled {
                ids.insert(entry.storedID)
                slot = lists.previous(before: at)
            }
        }
        return ids.count
    }

    /// Something was written over this link and is not confirmed.
    var hasInFlight: Bool { hasDoubtful || lists.first(.written) != nil }

    /// Remembers an entry whose author is told that it failed.
    mutating func give(up entry: OutboxEntry) -> OutboxEntry {
        _ = failures.remember(entry, isTold: true)
        return entry
    }

    /// Remembers a message that was given up, until its author knows. Returns what is forgotten for it.
    mutating func fail(_ entry: OutboxEntry, reason: String) -> [FailedMessages.Item] {
        failures.remember(entry, reason: reason, isTold: false)
    }

    /// The authors know of these. Returns them, and which are forgotten now.
    mutating func told(_ numbers: Set<UInt64>) -> (told: [FailedMessages.Item], forgotten: [FailedMessages.Item]) {
        failures.told(numbers)
    }

    /// Takes over what failed elsewhere and was not told.
    mutating func inheritFailures(of other: Outbox) {
        for item in other.failures.untold { _ = fail(item.entry, reason: item.reason) }
    }

    // MARK: - What a pong confirmed

    mutating func keepDelivered(_ entry: OutboxEntry, until: MonotonicInstant) {
        delivered.append(entry, until: until)
    }

    /// IRC has seen it. Returns whether a history may still tell of it.
    mutating func markDeliveredShown(storedID: ChatID) -> Bool {
        delivered.markShown(storedID: storedID)
        return delivered.contains(storedID: storedID)
    }

    mutating func takeDelivered(id: ChatID) -> OutboxEntry? { delivered.take(id: id) }

    /// Of which no history has told in time.
    mutating func takeDelivered(due now: MonotonicInstant) -> [OutboxEntry] { delivered.takeDue(now: now) }

    // MARK: - Confirmations

    /// The backend has the message with `id` from `sender`. Nil when it is none of ours.
    ///
    /// Entries that wait to be written again count too: the answer to the first writing may come over the next link.
    mutating func confirm(id: ChatID, sender: ChatID?) -> OutboxEntry? {
        guard let slot = slots[id], sender == nil || lists[slot]?.message.sender.id == sender else { return nil }
        return confirm(slot)
    }

    /// The oldest written entry with this sender and text: for wires on which the server makes the ids.
    mutating func confirm(sender: ChatID?, text: String) -> OutboxEntry? {
        confirm(text: text) { sender == nil || $0.sender.id == sender }
    }

    /// The same on wires that name senders, and give them no ids.
    mutating func confirm(senderName: String, text: String) -> OutboxEntry? {
        confirm(text: text) { TextBytes.areSame($0.sender.name, senderName) }
    }

    private mutating func confirm(text: String, where fits: (ChatMessage) -> Bool) -> OutboxEntry? {
        if matchesTexts, texts[text.hashValue] == nil { return nil }
        func isMeant(_ entry: OutboxEntry) -> Bool { entry.message.text == text && fits(entry.message) }
        return (lists.first(.open, where: isMeant) ?? lists.first(.written, where: isMeant)).flatMap { confirm($0) }
    }

    /// The message with this id and sender (nil: any) that was given up, or nil; forgets it.
    mutating func takeLate(id: ChatID, sender: ChatID?) -> OutboxEntry? { failures.take(id: id, sender: sender) }

    /// The message with this id of ours that was given up, whoever speaks for its author.
    mutating func takeLate(ref: ChatID) -> OutboxEntry? { failures.take(id: ref, sender: nil) }

    /// The oldest given up with this sender and text: for wires on which the server makes the ids.
    mutating func takeLate(sender: ChatID?, text: String) -> OutboxEntry? { failures.take(sender: sender, text: text) }

    func contains(id: ChatID) -> Bool { slots[id] != nil }

    /// When the oldest entry that waits for its confirmation was written; nil: none does, or only ones in doubt.
    var oldestWritten: MonotonicInstant? {
        guard case .written(let at)? = lists.first(.written).flatMap({ lists[$0] })?.state else { return nil }
        return at
    }

    /// Whether something that waits for its confirmation went up with a prefix of ours that this text begins with.
    func hasWritten(inFrontOf text: String) -> Bool {
        lists.first(.written) { entry in
            let (whole, words) = (entry.message.text, entry.origin.text)
            return whole.utf8.count > words.utf8.count && whole.hasSuffix(words)
                && text.hasPrefix(String(whole.dropLast(words.count)))
        } != nil
    }

    /// Takes out the oldest that is among the first `frameCount` frames of this session and not confirmed.
    mutating func takeWritten(upTo frameCount: UInt64) -> OutboxEntry? {
        // What is unsettled was written over an earlier link, whose frames were counted apart.
        let doubtful = hasDoubtful ? lists.first(.open, where: { $0.state == .doubtful }) : nil
        guard let slot = doubtful ?? lists.first(.written), let entry = lists[slot], entry.frameCount <= frameCount
        else {
            return nil
        }
        return confirm(slot)
    }
}
