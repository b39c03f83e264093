import BridgeTypes
import ChatModel
import Identities
import WireBytes

/// What a client does in a room, through whatever front end: a value that could be written to a wire.
package enum RoomCommand: Equatable {
    /// - Parameter isHeld: the client is given the backlog first; live events wait for that.
    case enter(
        PersonID, clientName: String?, hasReadMarker: Bool = false, receipts: ReceiptPolicy? = nil, isHeld: Bool = false
    )
    case leave
    /// The nick changed: upstream this is another person from now on, unless an account says who it is.
    case rename
    /// The client logged in: upstream it is the account from now on.
    case identify(clientName: String?, receipts: ReceiptPolicy?)
    case chooseReceipts(ReceiptPolicy?)
    case submit(Submission)
    /// Speaks under a name that is no user's nick.
    case relay(as: String, text: String, annotations: [StoredTag], label: String?)
    /// For the members on this side alone, since the backend cannot carry it. Without words only the annotations are shown.
    ///
    /// - Parameter isEvent: it has a place in the room's order.
    case pass(SpokenText?, annotations: [StoredTag], isNotice: Bool = false, isEvent: Bool = false)
    /// - Parameter isRelayed: in a room elsewhere, as a mirror's client says.
    case type(Bool, isRelayed: Bool = false)
    case markRead(ChatTimestamp)
    /// - Parameter label: for a reply that comes later; nil when there is nothing to answer.
    case takeBack(String, reason: String?, right: RedactionRight, label: String?)
    case react(
        String, ChatReaction.Operation, on: String, annotations: [StoredTag], label: String?)
}

/// What became of a command.
package enum RoomReply: Equatable {
    case done
    /// It changed nothing.
    case unchanged
    /// The backend must be asked first; the answer comes as a ``RoomAnswer``, with the label that was given.
    case later
    case notInRoom
    /// Too many messages wait for the backend.
    case queueFull
    case refused(ActionRefusal)
}
