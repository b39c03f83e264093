import ChatModel
import WireBytes

// Messages that may be ours and may be the account's at another device: the answer to what we sent tells, by its id.
//
// | seen first        | then              | shown                                                              |
// |-------------------|-------------------|--------------------------------------------------------------------|
// | answer            | its row           | at the answer; the row is known by its id                          |
// | its row           | answer            | at the answer, in the place of the row                             |
// | somebody's row    | answers for others | when nothing that was sent is unanswered any more                  |
// | somebody's row    | nothing           | after 2 s                                                          |
//
// What comes behind such a row waits with it, answers too, so that the room's order stays the backend's.

/// The rows, and what came behind the first of them, oldest first.
final class UndecidedRows {
    /// A server answers within milliseconds; longer than this nobody waits for others' words.
    static let wait: Duration = .seconds(2)
    /// More than comes in that time; then the oldest row is shown as it is.
    static let capacity = 500

    enum Item {
        case event(ChatEvent, arrivedAt: MonotonicInstant)
        /// A message of ours that the backend has.
        case arrival(OutboxEntry, upstreamID: ChatID?, at: ChatTimestamp?, SendLane)
    }

    private(set) var items: [Item] = []
    /// The first is being shown: it is decided.
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

    /// A message of ours was answered: it takes the place of its row, or comes last.
    func arrived(_ entry: OutboxEntry, upstreamID: ChatID?, at: ChatTimestamp?, _ lane: SendLane) {
        let arrival = Item.arrival(entry, upstreamID: upstreamID, at: at, lane)
        let place = items.firstIndex { item in
            guard let upstreamID, case .event(.message(let message), _) = item else { return false }
            return message.id == upstreamID
        }
        if let place { items[place] = arrival } else { items.append(arrival) }
    }

    func removeFirst() -> Item? { items.isEmpty ? nil : items.removeFirst() }
}
