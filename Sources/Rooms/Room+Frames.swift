import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// References in the backend's frames: rooms, people, messages.

extension Room {
    /// Whether a frame for `room` concerns this room. Some sockets carry several rooms.
    ///
    /// Where the backend announces its own name of the room, the configured name proves nothing before that.
    func concernsUs(_ room: String?, _ context: RoomsContext) -> Bool {
        guard let room, room != settings.upstreamRoom, room != lane.dialectContext.announcedRoom else { return true }
        if traits.waitsForReady, lane.dialectContext.announcedRoom == nil { return true }
        if report.notesOtherRoom() {
            context.note(
                .info, "other-room", "what the backend says of other rooms is not shown here",
                [
                    "room": settings.name, "upstream-room": settings.upstreamRoom,
                    "other": link.printable(room),
                ])
        }
        return false
    }

    /// The person with the name from a history, where a frame has only the id.
    package func named(_ person: ChatPerson) -> ChatPerson { remotes.named(person) }

    /// The key for deduplication: on wires where senders make the ids, id and sender together.
    func duplicateKey(_ id: ChatID, _ sender: ChatID?) -> SeenMessageIDs.Key {
        SeenMessageIDs.Key(id: id, sender: traits.messageIDOrigin == .client ? sender : nil)
    }

    /// The time of a line: the sender's, unless it lies in the future beyond the clock tolerance.
    func shownTime(_ at: ChatTimestamp?, _ context: RoomsContext) -> ChatTimestamp {
        guard let at else { return context.now.wall }
        return at.milliseconds > context.now.wall.milliseconds + HistoryPage.credibleLead ? context.now.wall : at
    }

    func frameDropped(
        _ reason: DropReason, byteCount: Int, typeKey: String?, _ place: DropPlace?, _ context: RoomsContext
    ) {
        let count = report.dropped(reason)
        if reason != .unknownType, strangeFrames == Self.telling { tellNothingUnderstood(context) }
        // The first ten are logged in full, then every thousandth.
        guard count <= 10 || count % 1000 == 0 else { return }
        context.note(
            .warn, "frame-dropped", "a frame from the backend was not understood",
            [
                "room": settings.name, "reason": reason.rawValue, "length": String(byteCount),
                "type": typeKey.map { String(link.printable($0).prefix(40)) } ?? "",
                "rule": place.map { String($0.rule) } ?? "", "field": place?.field ?? "", "count": String(count),
            ])
    }

    /// So many frames that were not understood are told of, where none was.
    private static let telling = 3

    /// Nothing that came from the backend until now is of the dialect.
    package var understandsNothing: Bool { strangeFrames >= Self.telling }

    package var hasUnderstood: Bool { link.hasUnderstood || report.hasHistory }

    /// Frames that should have been of the dialect, where none was.
    package var strangeFrames: Int { hasUnderstood ? 0 : report.misreadFrames }

    package var misreadFrames: Int { report.misreadFrames }

    private func tellNothingUnderstood(_ context: RoomsContext) {
        context.note(
            .error, "nothing-understood",
            "nothing that the backend sends is understood; its dialect seems to be another",
            ["room": settings.name, "host": settings.url.host])
        notice(nothingUnderstoodSentence)
    }

    var nothingUnderstoodSentence: String {
        "Nothing that \(settings.url.host) sends is understood here, so this room stays silent, and what you write may be "
            + "lost on it. The bridge's operator finds the reason in its log."
    }

    /// Advances the mark by a message from the room's link. Where senders set the times, a relayed message bears a time
    /// of the local clock, which is no measure of theirs.
    func saw(_ message: ChatMessage, _ context: RoomsContext) {
        let isOurTime = message.isSelf && catchUp.sendersTellTime && catchUp.newest?.at != nil
        catchUp.saw(id: message.id, at: isOurTime ? nil : message.at, wall: context.now.wall)
    }

    var clockTolerance: Int64 {
        traits.messageIDOrigin == .server
            ? CatchUp.serverClockTolerance : CatchUp.senderClockTolerance
    }
}
