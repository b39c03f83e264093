import BridgeTypes
import Rooms
import WireBytes

/// A client that is about to get its name.
struct Newcomer {
    /// How long it waits for others of its name: what a slow network needs, and less than people wait for a client to start.
    static let patience: Duration = .seconds(3)

    /// Who was asked whether they are there.
    fileprivate(set) var asked: Set<ClientID> = []
    fileprivate(set) var answered: Set<ClientID> = []
    /// Until when its registration waits; nil: it does not.
    fileprivate(set) var deadline: MonotonicInstant?
}

/// Clients that wait for their names, or whose names others may still contest; ``NumberedClientName`` has the rules.
final class Newcomers {
    private var newcomers: [ClientID: Newcomer] = [:]
    private let context: RoomsContext

    init(_ context: RoomsContext) { self.context = context }

    var isEmpty: Bool { newcomers.isEmpty }

    subscript(client: ClientID) -> Newcomer? { newcomers[client] }

    /// An older client is to be asked whether it is there. False: it was.
    func ask(_ older: ClientID, for client: ClientID) -> Bool {
        newcomers[client, default: Newcomer()].asked.insert(older).inserted
    }

    /// - Returns: whether the newer one waits for it.
    func answered(_ older: ClientID, to client: ClientID) -> Bool {
        newcomers[client]?.answered.insert(older)
        return newcomers[client]?.deadline != nil
    }

    func wait(_ client: ClientID, until deadline: MonotonicInstant) {
        newcomers[client]?.deadline = deadline
        context.timers.set(.clientNaming(client), at: deadline)
    }

    /// It has its name; who did not answer until now may still do so.
    func remove(_ client: ClientID) {
        if newcomers.removeValue(forKey: client) != nil { context.timers.cancel(.clientNaming(client)) }
    }

    /// A client is gone: it waits no longer, and no other waits for it.
    func forget(_ client: ClientID) {
        guard !isEmpty else { return }
        remove(client)
        let waiting = newcomers.filter { $0.value.deadline != nil && $0.value.asked.contains(client) }
        // Not at once: somebody may be telling others of it.
        for newer in waiting.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            context.timers.set(.clientNaming(newer), at: context.now.monotonic)
        }
    }
}

/// How many people are here, as LUSERS tells it.
final class UserCounts {
    /// Registered IRC clients.
    private(set) var clients = 0
    private(set) var mostClients = 0
    /// Most people on both sides, as far as a client asked.
    private(set) var mostPeople = 0

    func registered() {
        clients += 1
        mostClients = max(mostClients, clients)
    }

    func left() { clients -= 1 }

    /// - Returns: the people on both sides.
    func count(upstream: Int) -> Int {
        mostPeople = max(mostPeople, clients + upstream)
        return clients + upstream
    }
}
