import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// What a frame of the backend's names: rooms, people, messages.

extension Room {
    /// Whether what names `room` is of this one. Some sockets carry several rooms.
    ///
    /// Where the backend tells its own name of the room, ours proves nothing before that.
    func concernsUs(_ room: String?, _ context: RoomsContext) -> Bool {
        guard let room, room != settings.upstreamRoom, room != lane.dialectContext.announcedRoom else { return true }
        if traits.waitsForReady, lane.dialectContext.announcedRoom == nil { return true }
        if report.notesOtherRoom() {
            context.note(
                .info, "other-room", "what the backend says of other rooms is not shown here",
                [
                    "room": settings.name, "upstream-room": settings.upstreamRoom,
                    "other": link.told(room),
                ])
        }
        return false
    }

    /// The person with the name that a history gave their id, where a frame has only the id.
    package func named(_ person: ChatPerson) -> ChatPerson { remotes.named(person) }

    /// Ids made by senders can be reused by another sender; there the key is both.
    func duplicateKey(_ id: ChatID, _ sender: ChatID?) -> DuplicateRing.Key {
        DuplicateRing.Key(id: id, sender: traits.messageIDOrigin == .client ? sender : nil)
    }

    /// The time a line shows: the sender's, unless it lies in the future by more than clocks differ.
    func shownTime(_ at: ChatTimestamp?, _ context: RoomsContext) -> ChatTimestamp {
        guard let at else { return context.now.wall }
        return at.milliseconds > context.now.wall.milliseconds + HistoryPage.credibleLead ? context.now.wall : at
    }

    func frameDropped(_ reason: DropReason, byteCount: Int, typeKey: String?, _ context: RoomsContext) {
        let count = report.dropped(reason)
        // The first ten tell what is wrong; after that every thousandth shows that it goes on.
        guard count <= 10 || count % 1000 == 0 else { return }
        context.note(
            .warn, "frame-dropped", "a frame from the backend was not understood",
            [
                "room": settings.name, "reason": reason.rawValue, "length": String(byteCount),
                "type": typeKey.map { String(link.told($0).prefix(40)) } ?? "",
                "count": String(count),
            ])
    }

    /// A message of the backend was seen, over the room's link. Where senders tell the time, that of our own messages is ours
    /// of some moment, and says nothing about theirs.
    func saw(_ message: ChatMessage, _ context: RoomsContext) {
        let isOurTime = message.isSelf && catchUp.sendersTellTime && catchUp.newest?.at != nil
        catchUp.saw(id: message.id, at: isOurTime ? nil : message.at, wall: context.now.wall)
    }

    var clockTolerance: Int64 {
        traits.messageIDOrigin == .server
            ? CatchUp.serverClockTolerance : CatchUp.senderClockTolerance
    }
}
