import ChatModel
import Upstream

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

    package init(_ step: Step, in room: Room) { self.init(step, over: room.lane) }

    init(_ step: Step, over lane: SendLane) {
        self.step = step
        room = lane.settings.name
        account = lane.account
        let link = lane.link
        scrub = { link.scrubbed($0) }
    }
}
