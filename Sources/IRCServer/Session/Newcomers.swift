import BridgeTypes
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

/// Clients that wait for their names, or whose names others may still contest; ``TwinName`` has the rules.
final class Newcomers {
    private var newcomers: [ClientID: Newcomer] = [:]

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

    func wait(_ client: ClientID, until deadline: MonotonicInstant) { newcomers[client]?.deadline = deadline }

    /// It has its name. False: it did not wait for one.
    @discardableResult
    func remove(_ client: ClientID) -> Bool { newcomers.removeValue(forKey: client) != nil }

    /// Those that wait for an older client, which is gone.
    func waiting(for older: ClientID) -> [ClientID] {
        newcomers.filter { $0.value.deadline != nil && $0.value.asked.contains(older) }.keys
            .sorted { $0.rawValue < $1.rawValue }
    }
}
