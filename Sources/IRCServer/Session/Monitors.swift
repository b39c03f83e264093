import BridgeTypes

/// MONITOR lists of clients. Clients without one cost nothing.
///
/// Source: IRCv3 monitor.
final class Monitors {
    /// Nicks per client: more than a contact list has, and few enough that a thousand full lists take ten megabytes.
    static let maxTargets = 100

    struct Target: Equatable {
        /// As the client wrote it.
        var nick: String
        var folded: String
    }

    enum Outcome {
        case added
        /// It is in the list already.
        case known
        case full
    }

    private var watchers: [String: [ClientID]] = [:]
    private var lists: [ClientID: [Target]] = [:]

    /// All lists are empty.
    var isEmpty: Bool { watchers.isEmpty }

    func list(of client: ClientID) -> [Target] { lists[client] ?? [] }

    func watchers(of folded: String) -> [ClientID] { watchers[folded] ?? [] }

    func add(_ target: Target, for client: ClientID) -> Outcome {
        let list = lists[client, default: []]
        if list.contains(where: { $0.folded == target.folded }) { return .known }
        guard list.count < Self.maxTargets else { return .full }
        lists[client, default: []].append(target)
        watchers[target.folded, default: []].append(client)
        return .added
    }

    func remove(_ folded: String, for client: ClientID) {
        guard lists[client]?.contains(where: { $0.folded == folded }) == true else { return }
        lists[client]?.removeAll { $0.folded == folded }
        if lists[client]?.isEmpty == true { lists[client] = nil }
        unwatch(folded, client)
    }

    /// The client clears its list, or has disconnected.
    func forget(_ client: ClientID) {
        guard let list = lists.removeValue(forKey: client) else { return }
        for target in list { unwatch(target.folded, client) }
    }

    private func unwatch(_ folded: String, _ client: ClientID) {
        watchers[folded]?.removeAll { $0 == client }
        if watchers[folded]?.isEmpty == true { watchers[folded] = nil }
    }
}
