import ChatModel

/// How far back a history reaches, as far as messages of ours are concerned.
struct OwnReach {
    /// The backend says that there is nothing older.
    var isAll = false
    /// It has nothing at all.
    var isEmpty = false
    /// The first place in the room's order from which on it has everything.
    var known: Int?

    /// - Parameter hasOlder: something is known here that was said before the message, and that the backend can name. What
    ///   lacks all of that is cut off, whatever it says.
    func includes(_ entry: OutboxEntry, hasOlder: Bool) -> Bool {
        if isEmpty || isAll && !hasOlder { return true }
        // By places and not by times: no two clocks agree, and some count whole seconds.
        guard let known, let place = entry.saidAfter else { return false }
        return known <= place
    }
}

/// Rows of the history that is being taken in which are messages of ours, and how far back it reaches.
final class OwnRows {
    typealias Row = (id: ChatID, lane: SendLane)

    private var rows: [ChatID: Row] = [:]
    private(set) var reach = OwnReach()

    var isEmpty: Bool { rows.isEmpty }

    /// Our ids of the messages.
    var messages: Set<ChatID> { Set(rows.values.map(\.id)) }

    func reaches(_ reach: OwnReach) { self.reach = reach }

    func clear() { rows = [:] }

    func insert(_ row: ChatID, _ message: ChatID, _ lane: SendLane) { rows[row] = (message, lane) }

    func take(_ row: ChatID) -> Row? { rows.isEmpty ? nil : rows.removeValue(forKey: row) }
}
