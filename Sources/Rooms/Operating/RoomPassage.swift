import ChatModel

/// Something that goes in or out of a room, for an operator who watches.
package struct RoomPassage {
    package enum Step {
        case fromBackend(ChatEvent)
        case toBackend(ChatCommand)
        /// By the nick of the client's user.
        case fromIRC(RoomCommand, by: String)
        case toIRC(RoomEvent)
    }

    /// The room's name in the configuration.
    package let room: String
    /// The account whose own link it is; empty: the room's.
    package let account: String
    package let step: Step
    /// Removes the link's secrets from a text of the backend.
    package let scrub: (String) -> String

    init(_ step: Step, room: String, account: String, scrub: @escaping (String) -> String) {
        (self.step, self.room, self.account, self.scrub) = (step, room, account, scrub)
    }
}
