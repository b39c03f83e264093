import ChatModel
import Dialects

// What the backend's account has for a room.

extension Room {
    /// Messages that the room asked for, oldest first, or why there are none.
    func historyArrived(
        _ outcome: Result<[ChatMessage], BackendCallFailure>, isComplete: Bool, _ context: BridgeContext
    ) {}

    /// Who the room's account is.
    func accountIdentified(_ person: ChatPerson, _ context: BridgeContext) {}

    /// What the room shows to its backend was renewed, ahead of the end of what it showed last.
    func tokenRenewed(_ credentials: UpstreamCredentials, _ context: BridgeContext) {}
}
