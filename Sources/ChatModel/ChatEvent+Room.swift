extension ChatEvent {
    /// The room that the event names, as the backend calls it; nil where it names none, or has to do with none.
    package var room: String? {
        switch self {
        case .message(let message): message.room
        case .edit(let edit): edit.room
        case .delete(let delete): delete.room
        case .typing(let typing): typing.room
        case .receipt(let receipt): receipt.room
        case .join(let membership), .leave(let membership): membership.room
        case .presence(let presence): presence.room
        case .reaction(let reaction): reaction.room
        case .system(let system): system.room
        case .history, .ready, .auth, .error, .ping, .pong: nil
        }
    }
}
