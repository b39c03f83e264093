import ChatModel
import Dialects

/// `envelope`: clients and server say the same, so the bridge's codec does for both.
enum EnvelopeWire {
    private static let dialect = EnvelopeDialect()
    private static let context = DialectContext(room: "")

    /// Nil for frames that are relayed all the same and mean nothing to other wires.
    static func command(_ frame: UnsafeRawBufferPointer) -> StudioCommand? {
        dialect.decode(frame, isBinary: false, context: context).events?.first.flatMap(StudioCommand.init)
    }

    static func frames(_ event: StudioEvent) -> [[UInt8]] {
        let command: ChatCommand
        switch event {
        case .message(let message):
            command = .message(
                ChatMessage(
                    id: message.id, sender: StudioID.withID(message.sender), text: message.textWithLinks,
                    at: message.at))
        case .typing(let person, true):
            let person = StudioID.withID(person)
            // The frame wants an id of its own, and no client looks at it.
            command = .typing(
                ChatTyping(state: .start, sender: person, id: person.id, at: ChatTimestamp(milliseconds: 0)))
        case .receipt(.read, let ids, let reader):
            command = .receipt(
                ChatReceipt(
                    state: .read, ids: ids, by: StudioID.withID(reader), at: ChatTimestamp(milliseconds: 0)))
        case .typing, .receipt, .edit, .delete, .reaction, .join, .leave: return []
        }
        return dialect.encode(command, context: context).frames?.map(\.bytes) ?? []
    }
}
