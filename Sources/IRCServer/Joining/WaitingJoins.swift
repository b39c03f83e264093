import BridgeTypes

/// Joins that wait for the backend to say which rooms it has, oldest first.
struct WaitingJoins {
    /// At a time; after a start every client joins its rooms again.
    static let maxCount = 10_000
    /// Of one client at a time, so that none takes the place of the others. More than people have open as a rule.
    static let maxCountOfClient = 20

    enum Outcome {
        case added
        /// The client waits for this channel already.
        case known
        case full
    }

    private var joins: [(client: ClientID, channel: String)] = []
    /// Clients that come back to rooms of their accounts as soon as the list is there; at most all that are connected.
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

    /// In the order in which they connected.
    mutating func takeReturning() -> [ClientID] {
        defer { returning = [] }
        return returning.sorted { $0.rawValue < $1.rawValue }
    }

    /// The client is gone.
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
