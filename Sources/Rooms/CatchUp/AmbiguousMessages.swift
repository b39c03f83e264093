import ChatModel
import WireBytes

// Messages that were either relayed or written by the account on another device: the answer to a relayed one resolves
// that, by its id.
//
// | seen first        | then              | shown                                                              |
// |-------------------|-------------------|--------------------------------------------------------------------|
// | answer            | its row           | at the answer; the row is deduplicated by id                       |
// | its row           | answer            | at the answer, in the place of the row                             |
// | another's row     | answers for others | once no sent message is unanswered                                |
// | another's row     | no answer         | after 2 s                                                          |
//
// Later events wait behind such a row, answers too, so that the room's order stays the backend's. A history that is fetched
// meanwhile neither shows them nor makes them known.

/// The ambiguous rows, and later events behind the first of them, oldest first.
final class AmbiguousMessages {
    /// Longest wait for an answer; a server answers within milliseconds.
    static let wait: Duration = .seconds(2)
    /// More than comes in that time; then the oldest row is shown as it is.
    static let capacity = 500

    enum Item {
        case event(ChatEvent, arrivedAt: MonotonicInstant)
        /// A relayed message that the backend has.
        case arrival(OutboxEntry, upstreamID: ChatID?, at: ChatTimestamp?, SendLane)
    }

    private(set) var items: [Item] = []
    /// The first is being shown: it is resolved.
    private(set) var isReleasing = false

    func releasing(_ show: () -> Void) {
        isReleasing = true
        show()
        isReleasing = false
    }

    var isEmpty: Bool { items.isEmpty }

    func append(_ event: ChatEvent, now: MonotonicInstant) {
        items.append(.event(event, arrivedAt: now))
    }

    /// A relayed message was answered: it takes the place of its row, or comes last.
    func arrived(_ entry: OutboxEntry, upstreamID: ChatID?, at: ChatTimestamp?, _ lane: SendLane) {
        let arrival = Item.arrival(entry, upstreamID: upstreamID, at: at, lane)
        let place = items.firstIndex { item in
            guard let upstreamID, case .event(.message(let message), _) = item else { return false }
            return message.id == upstreamID
        }
        if let place { items[place] = arrival } else { items.append(arrival) }
    }

    /// The ids of the messages among them.
    var ids: Set<ChatID> {
        var ids: Set<ChatID> = []
        for case .event(.message(let message), _) in items { if let id = message.id { ids.insert(id) } }
        return ids
    }

    func removeFirst() -> Item? { items.isEmpty ? nil : items.removeFirst() }
}
