import BridgeTypes

/// A client's JOIN that waits for the room's link.
final class PendingJoin {
    let room: RoomID
    let channel: String
    /// False: it comes back to its account's rooms, and is told nothing where that cannot be.
    let isAsked: Bool
    /// When it asked.
    let at: Now
    /// Of a client that can be given no more than one line with it.
    let label: String?

    init(room: RoomID, channel: String, isAsked: Bool, at: Now, label: String?) {
        self.room = room
        self.channel = channel
        self.isAsked = isAsked
        self.at = at
        self.label = label
    }
}

/// The clients whose first long answer is a ``PendingJoin``, by room.
final class PendingJoins {
    /// So many are let in at a time, so that many that come back at once hold nobody up.
    static let atOnce = 64

    private var waiting: [RoomID: Set<ClientID>] = [:]
    /// Those whose room is open now.
    private var admitted: ArraySlice<ClientID> = []
    /// The bridge is to stop: no JOIN waits any more.
    private(set) var isAdmittingAll = false

    func wait(_ client: ClientID, for room: RoomID) { waiting[room, default: []].insert(client) }

    /// The room is open: the clients that waited for it, in the order in which they connected. They are admitted once more
    /// by ``next()``, for what they sent meanwhile.
    func opened(_ room: RoomID) -> [ClientID]? {
        guard let clients = waiting.removeValue(forKey: room) else { return nil }
        let ordered = clients.sorted { $0.rawValue < $1.rawValue }
        admitted += ordered
        return ordered
    }

    /// No client waits, and none is still to be let in.
    var isEmpty: Bool { waiting.isEmpty && admitted.isEmpty }

    var hasAdmitted: Bool { !admitted.isEmpty }

    /// The next to be let in.
    func next() -> ClientID? {
        let client = admitted.popFirst()
        // A slice keeps what was in front of it.
        if admitted.isEmpty { admitted = [] }
        return client
    }

    func admitAll() { isAdmittingAll = true }
}

extension IRCSession {
    var isAwaitingJoin: Bool { longAnswers.contains { $0.subject is PendingJoin } }

    func isAwaitingJoin(to room: RoomID) -> Bool {
        longAnswers.contains { ($0.subject as? PendingJoin)?.room == room }
    }
}
