import ChatModel

/// How far back a history reaches, with respect to relayed messages.
struct HistoryReach {
    /// There is nothing older: the backend declares that, or has no page before these.
    var isAll = false
    /// It is empty.
    var isEmpty = false
    /// The sequence number from which on it is complete.
    var known: Int?

    /// - Parameter hasOlder: an older message is known that the backend can name. A history without any such message is
    ///   cut off, even if declared complete.
    func includes(_ entry: OutboxEntry, hasOlder: Bool) -> Bool {
        if isEmpty || isAll && !hasOlder { return true }
        // By sequence numbers and not by times: no two clocks agree, and some count whole seconds.
        guard let known, let place = entry.saidAfter else { return false }
        return known <= place
    }
}

/// Relayed messages among the rows of the history being processed, and its reach.
final class RelayedRows {
    typealias Row = (id: ChatID, lane: SendLane)

    private var rows: [ChatID: Row] = [:]
    private(set) var reach = HistoryReach()

    var isEmpty: Bool { rows.isEmpty }

    /// The relay's ids of the messages.
    var messages: Set<ChatID> { Set(rows.values.map(\.id)) }

    func reaches(_ reach: HistoryReach) { self.reach = reach }

    func clear() { rows = [:] }

    func insert(_ row: ChatID, _ message: ChatID, _ lane: SendLane) { rows[row] = (message, lane) }

    func take(_ row: ChatID) -> Row? { rows.isEmpty ? nil : rows.removeValue(forKey: row) }
}
