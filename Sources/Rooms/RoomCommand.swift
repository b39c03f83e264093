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
    /// Speaks under a name that is nobody's nick.
    case relay(as: String, text: String, annotations: [StoredTag], label: String?)
    /// For the members on this side alone, since the backend cannot carry it. Without words only the annotations are shown.
    ///
    /// - Parameter isEvent: it has a place in the room's order.
    case pass(SpokenText?, annotations: [StoredTag], isNotice: Bool = false, isEvent: Bool = false)
    case type(Bool)
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

extension Room {
    /// Carries out a command of a client.
    @discardableResult
    package func handle(_ command: RoomCommand, from client: ClientID, _ context: RoomsContext) -> RoomReply {
        if let tap = context.tap, let member = locals[client], let person = context.identities[member.person] {
            tap(RoomPassage(.fromIRC(command, by: person.nick), over: lane))
        }
        switch command {
        case .enter(let person, let name, let hasReadMarker, let receipts, let isHeld):
            join(
                client, person: person, clientName: name, hasReadMarker: hasReadMarker, receipts: receipts,
                isHeld: isHeld, context)
            return .done
        case .leave: leave(client, context)
        case .rename: renamed(client, context)
        case .identify(let name, let receipts):
            identityChanged(client, clientName: name, receipts: receipts, context)
        case .chooseReceipts(let policy): setReceipts(policy, of: client)
        case .submit(let submission): return submit(submission, from: client, context)
        case .relay(let name, let text, let annotations, let label):
            return submitRelayed(name, text, annotations: annotations, label: label, from: client, context)
        case .pass(let words, let annotations, let isNotice, let isEvent):
            return showLocally(
                words, isNotice: isNotice, annotations: annotations, from: client, isEvent: isEvent, context)
        case .type(let isTyping): typed(client, isTyping: isTyping, context)
        case .markRead(let at): return moveMarker(of: client, to: at, context) ? .done : .unchanged
        case .takeBack(let msgid, let reason, let right, let label):
            return redact(msgid, reason: reason, from: client, right: right, label: label, context)
        case .react(let emoji, let operation, let msgid, let annotations, let label):
            return react(emoji, operation, on: msgid, annotations: annotations, from: client, label: label, context)
        }
        return .done
    }
}
