import BridgeTypes

/// A client's JOIN that waits for the room's link.
final class PendingJoin {
    let room: RoomID
    let channel: String
    /// False: a return to the account's rooms, without a reply where that fails.
    let isAsked: Bool
    /// The time of the request.
    let at: Now
    /// The labeled-response label of a client without `batch`, which can receive one labeled line only.
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
    /// Clients admitted at a time, so that a mass return does not block the loop.
    static let atOnce = 64

    private var waiting: [RoomID: Set<ClientID>] = [:]
    /// Clients whose room is open now.
    private var admitted: ArraySlice<ClientID> = []
    /// The bridge is stopping: joins no longer wait.
    private(set) var isAdmittingAll = false

    func wait(_ client: ClientID, for room: RoomID) { waiting[room, default: []].insert(client) }

    /// Removes and returns the clients that waited for the room, in the order of connecting. ``next()`` returns them
    /// once more, for their later lines.
    func opened(_ room: RoomID) -> [ClientID]? {
        guard let clients = waiting.removeValue(forKey: room) else { return nil }
        let ordered = clients.sorted { $0.rawValue < $1.rawValue }
        admitted += ordered
        return ordered
    }

    /// No client waits or is to be admitted.
    var isEmpty: Bool { waiting.isEmpty && admitted.isEmpty }

    var hasAdmitted: Bool { !admitted.isEmpty }

    /// The next client to admit.
    func next() -> ClientID? {
        let client = admitted.popFirst()
        // An empty slice still retains its storage.
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
