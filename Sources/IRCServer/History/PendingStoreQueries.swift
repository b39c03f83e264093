import BridgeTypes
import ChatModel

/// The reads of the store in flight, and their requesters.
package final class PendingStoreQueries {
    package enum Asker {
        case history(HistoryAnswer)
        case backlog(ClientID, RoomID)
        case redaction(ClientID, PrivateRedaction)
    }

    private var askers: [StoreReadID: Asker] = [:]

    var isEmpty: Bool { askers.isEmpty }

    func begin(_ id: StoreReadID, by asker: Asker) { askers[id] = asker }

    /// Ends a read that the store answered. Nil: it is not one of these.
    package func end(_ id: StoreReadID) -> Asker? { askers.removeValue(forKey: id) }
}
