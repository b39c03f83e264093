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
