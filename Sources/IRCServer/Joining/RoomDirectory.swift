import BridgeTypes
import Dialects
import Upstream
import WireBytes

/// The room list of the template's backend: when to request it, and the clients waiting for it.
///
/// | state   | meaning                       | verb → next                                          |
/// |---------|-------------------------------|------------------------------------------------------|
/// | unknown | no list and no call under way | beginCall → calling                                  |
/// | calling | requested from the backend    | listed → known; failed → unknown, or known as before |
/// | known   | there is a list               | beginCall → calling, after ``interval``              |
final class RoomDirectory {
    /// Shortest time between two requests, however many clients list the rooms.
    static let interval: Duration = .seconds(60)
    /// Longest wait of a JOIN for the list; clients show nothing meanwhile.
    static let joinPatience: Duration = .seconds(10)
    /// Longest wait of a LIST for it; the client's later lines wait as well.
    static let listPatience: Duration = .seconds(3)
    /// Pauses between requests until there is a list: clients returning to their rooms wait for it.
    private static let retryPauses: [Duration] = [.seconds(2), .seconds(4), .seconds(10), .seconds(30), .seconds(60)]

    /// The template's backend, if it can list its rooms; nil: any name may be a room.
    let backend: String?
    private(set) var listing: BackendListing?
    private(set) var isCalling = false
    private var calledAt: MonotonicInstant?
    private var failures = 0
    /// Clients whose first long answer is the rest of a LIST.
    private var lists: Set<ClientID> = []
    private var joins = WaitingJoins()

    init(_ settings: BridgeSettings) {
        let template = settings.backends.first { $0.name == settings.template?.backend }
        let canBeAsked = template?.dialect.calls?.request(for: .rooms, context: DialectContext(room: "")) != nil
        backend = canBeAsked ? template?.name : nil
    }

    // MARK: - Requests

    /// Whether to request the list now; if so, the request counts as made.
    ///
    /// - Parameter isRetry: the last call failed.
    func beginCall(isRetry: Bool, now: MonotonicInstant) -> Bool {
        guard backend != nil, !isCalling, !isRetry || listing == nil else { return false }
        if !isRetry, let calledAt, now - calledAt < Self.interval { return false }
        calledAt = now
        isCalling = true
        return true
    }

    func listed(_ rooms: BackendListing) {
        isCalling = false
        failures = 0
        listing = rooms
    }

    /// - Returns: the pause before the next request; nil: there is an older list.
    func failed() -> Duration? {
        isCalling = false
        guard listing == nil else { return nil }
        defer { failures += 1 }
        return Self.retryPauses[min(failures, Self.retryPauses.count - 1)]
    }

    // MARK: - Waiting clients

    /// Registers the rest of a client's LIST as waiting for the answer.
    ///
    /// - Returns: whether it is the first; nil: no request is under way.
    func awaitListing(_ client: ClientID) -> Bool? {
        guard listing == nil, isCalling else { return nil }
        defer { lists.insert(client) }
        return lists.isEmpty
    }

    /// In the order of connecting.
    func takeLists() -> [ClientID] {
        defer { lists = [] }
        return lists.sorted { $0.rawValue < $1.rawValue }
    }

    func awaitListing(join channel: String, folded: String, of client: ClientID) -> WaitingJoins.Outcome {
        joins.append(channel, folded: folded, of: client)
    }

    /// Registers a client that waits to return to the rooms of its account.
    func awaitListing(returning client: ClientID) { joins.append(returning: client) }

    var hasJoins: Bool { !joins.isEmpty }
    var hasReturning: Bool { joins.hasReturning }

    func takeJoins() -> [(client: ClientID, channel: String)] { joins.takeAll() }

    func takeReturning() -> [ClientID] { joins.takeReturning() }

    func forget(_ client: ClientID) { joins.forget(client) }
}

/// Joins that wait for the backend's room list, oldest first.
struct WaitingJoins {
    /// Limit of all pending joins; after a start every client joins its rooms again.
    static let maxCount = 10_000
    /// Limit of one client's pending joins, so that none displaces those of others. More than the rooms people usually
    /// have open.
    static let maxCountOfClient = 20

    enum Outcome {
        case added
        /// The client waits for this channel already.
        case known
        case full
    }

    private var joins: [(client: ClientID, channel: String)] = []
    /// Clients that return to rooms of their accounts once the list is there; at most all that are connected.
    private var returning: Set<ClientID> = []
    /// Folded names.
    private var channels: [ClientID: Set<String>] = [:]

    var isEmpty: Bool { joins.isEmpty }

    mutating func append(_ channel: String, folded: String, of client: ClientID) -> Outcome {
        let waiting = channels[client, default: []]
        if waiting.contains(folded) { return .known }
        guard waiting.count < Self.maxCountOfClient, joins.count < Self.maxCount else { return .full }
        channels[client, default: []].insert(folded)
        joins.append((client, channel))
        return .added
    }

    mutating func append(returning client: ClientID) { returning.insert(client) }

    var hasReturning: Bool { !returning.isEmpty }

    /// In the order of connecting.
    mutating func takeReturning() -> [ClientID] {
        defer { returning = [] }
        return returning.sorted { $0.rawValue < $1.rawValue }
    }

    /// The client has disconnected.
    mutating func forget(_ client: ClientID) {
        returning.remove(client)
        if channels.removeValue(forKey: client) != nil { joins.removeAll { $0.client == client } }
    }

    mutating func takeAll() -> [(client: ClientID, channel: String)] {
        defer {
            joins = []
            channels = [:]
        }
        return joins
    }
}
