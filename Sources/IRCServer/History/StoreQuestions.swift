import BridgeTypes
import ChatModel

/// Whose question to the store each one is.
package final class StoreQuestions {
    package enum Asker {
        case history(HistoryAnswer)
        case backlog(ClientID, RoomID)
        case redaction(ClientID, PrivateRedaction)
    }

    private var askers: [StoreReadID: Asker] = [:]

    var isEmpty: Bool { askers.isEmpty }

    func begin(_ id: StoreReadID, by asker: Asker) { askers[id] = asker }

    /// The store answered. Nil: that question is not one of these.
    package func end(_ id: StoreReadID) -> Asker? { askers.removeValue(forKey: id) }
}
