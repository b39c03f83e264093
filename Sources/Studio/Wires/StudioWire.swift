import ChatModel
import HTTPProtocol
import WireBytes

/// The dialects of the studio, by the path that a client connects to.
enum StudioWire: Equatable {
    /// Any path; its last component is the room.
    case envelope
    /// `/typed/ROOM`: the page and the bridge of `demo`.
    case typed
    /// `/ws/chat/ROOM?token=…`, a room's number or name; the messages are the account's.
    case jwtRooms(user: String)
    /// `/swiftchat/ROOM`.
    case swiftChat

    /// One for all clients of a wire, to which the same frames go.
    enum Kind: CaseIterable, Hashable {
        case envelope, typed, jwtRooms, swiftChat
    }

    var kind: Kind {
        switch self {
        case .envelope: .envelope
        case .typed: .typed
        case .jwtRooms: .jwtRooms
        case .swiftChat: .swiftChat
        }
    }

    /// Largest message that a client may send, in bytes.
    var maxFrameBytes: Int { self == .swiftChat ? SwiftChatWire.maxFrameBytes : StudioLimits.maxFrameBytes }

    /// Whether a client gets its own events back.
    static func echoes(_ event: StudioEvent, on kind: Kind) -> Bool {
        switch (kind, event) {
        case (.envelope, _), (.swiftChat, _), (.jwtRooms, .reaction): true
        case (.typed, _), (.jwtRooms, _): false
        }
    }

    /// The text frames that tell clients of `kind` about `event`; none where the wire has none.
    static func frames(_ event: StudioEvent, in room: StudioRoom, on kind: Kind, at: ChatTimestamp) -> [[UInt8]] {
        switch kind {
        case .envelope: EnvelopeWire.frames(event)
        case .typed: TypedWire.frame(event, in: room).map { [$0] } ?? []
        case .jwtRooms: JWTRoomsWire.frame(event, in: room, at: at).map { [$0] } ?? []
        case .swiftChat: SwiftChatWire.frame(event).map { [$0] } ?? []
        }
    }
}

/// What a client asks of its room.
enum StudioCommand: Equatable {
    case message(ChatMessage)
    case edit(ChatID, text: String, by: ChatPerson)
    case delete([ChatID], by: ChatPerson)
    case typing(ChatPerson, isActive: Bool)
    case receipt(ChatReceipt.State, [ChatID], by: ChatPerson)
    case reaction(ChatID, emoji: String, isOn: Bool, by: ChatPerson)
    case join(ChatPerson)
    case leave(ChatPerson)
    case history(before: ChatID?, limit: Int)
    /// Nothing: this is the answer.
    case refused([UInt8])

    /// From the vocabulary of the bridge's codecs, for wires on which both sides speak the same.
    init?(_ event: ChatEvent) {
        switch event {
        case .message(let message): self = .message(message)
        case .edit(let edit): self = .edit(edit.id, text: edit.text, by: edit.sender)
        case .delete(let delete): self = .delete(delete.ids, by: delete.sender)
        case .typing(let typing): self = .typing(typing.sender, isActive: typing.state == .start)
        case .receipt(let receipt) where receipt.state != .sent:
            self = .receipt(receipt.state, receipt.ids, by: receipt.by)
        case .reaction(let reaction):
            self = .reaction(
                reaction.target, emoji: reaction.emoji, isOn: reaction.operation == .add, by: reaction.sender)
        case .join(let membership): self = .join(membership.user)
        case .leave(let membership): self = .leave(membership.user)
        case .receipt, .presence, .system, .topic, .account, .history, .ready, .auth, .error, .ping, .pong: return nil
        }
    }
}
