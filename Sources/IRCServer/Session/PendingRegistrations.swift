import BridgeTypes
import Rooms
import WireBytes

/// A client that is being given its name.
struct Newcomer {
    /// Wait for answers of clients with the same name: enough for a slow network, and less than users wait for a client
    /// to start.
    static let patience: Duration = .seconds(3)

    /// Clients that were asked whether they are alive.
    fileprivate(set) var asked: Set<ClientID> = []
    fileprivate(set) var answered: Set<ClientID> = []
    /// Deadline of its registration's wait; nil: it does not wait.
    fileprivate(set) var deadline: MonotonicInstant?
}

/// Clients that wait for their names, or whose names are still contested; ``NumberedClientName`` has the rules.
final class PendingRegistrations {
    private var newcomers: [ClientID: Newcomer] = [:]
    private let context: RoomsContext

    init(_ context: RoomsContext) { self.context = context }

    var isEmpty: Bool { newcomers.isEmpty }

    subscript(client: ClientID) -> Newcomer? { newcomers[client] }

    /// An older client is to be asked whether it is alive. False: it was.
    func ask(_ older: ClientID, for client: ClientID) -> Bool {
        newcomers[client, default: Newcomer()].asked.insert(older).inserted
    }

    /// - Returns: whether the newer client waits for it.
    func answered(_ older: ClientID, to client: ClientID) -> Bool {
        newcomers[client]?.answered.insert(older)
        return newcomers[client]?.deadline != nil
    }

    func wait(_ client: ClientID, until deadline: MonotonicInstant) {
        newcomers[client]?.deadline = deadline
        context.set(.clientNaming(client), at: deadline)
    }

    /// It has its name; missing answers may still arrive.
    func remove(_ client: ClientID) {
        if newcomers.removeValue(forKey: client) != nil { context.cancel(.clientNaming(client)) }
    }

    /// A client has disconnected: it waits no longer, and no other waits for it.
    func forget(_ client: ClientID) {
        guard !isEmpty else { return }
        remove(client)
        let waiting = newcomers.filter { $0.value.deadline != nil && $0.value.asked.contains(client) }
        // By timer, not at once: the caller may be announcing the disconnect.
        for newer in waiting.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            context.set(.clientNaming(newer), at: context.now.monotonic)
        }
    }
}

/// User counts for LUSERS.
final class UserCounts {
    /// Registered IRC clients.
    private(set) var clients = 0
    private(set) var mostClients = 0
    /// Maximum of users on both sides, as of clients' requests.
    private(set) var mostPeople = 0

    func registered() {
        clients += 1
        mostClients = max(mostClients, clients)
    }

    func left() { clients -= 1 }

    /// - Returns: the users on both sides.
    func count(upstream: Int) -> Int {
        mostPeople = max(mostPeople, clients + upstream)
        return clients + upstream
    }
}
