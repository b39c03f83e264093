import BridgeTypes
import ChatModel
import Identities
import WireBytes

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
        case .type(let isTyping, let isRelayed): typed(client, isTyping: isTyping, isRelayed: isRelayed, context)
        case .markRead(let at): return moveMarker(of: client, to: at, context) ? .done : .unchanged
        case .takeBack(let msgid, let reason, let right, let label):
            return redact(msgid, reason: reason, from: client, right: right, label: label, context)
        case .react(let emoji, let operation, let msgid, let annotations, let label):
            return react(emoji, operation, on: msgid, annotations: annotations, from: client, label: label, context)
        }
        return .done
    }
}
