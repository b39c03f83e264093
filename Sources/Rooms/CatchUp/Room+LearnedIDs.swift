import BridgeTypes
import ChatModel
import Dialects
import Identities
import Media
import Upstream
import WireBytes

// The backend's ids of messages of ours.

extension Room {
    /// The id of a message of ours, which IRC has seen without one: the backend has it.
    ///
    /// - Parameter lane: over which it went.
    func learn(_ upstreamID: ChatID?, of sent: SentMessages.Entry, _ lane: SendLane, _ context: RoomsContext) {
        learn(upstreamID, of: sent.msgid, context)
        guard let id = sent.messageID else { return }
        _ = lane.takeDelivered(id: id, context)
    }

    package func learn(_ upstreamID: ChatID?, of msgid: String, _ context: RoomsContext) {
        guard let upstreamID else { return }
        _ = duplicates.insert(duplicateKey(upstreamID, nil))
        recent.learn(upstreamID, of: msgid)
        archive.learn(upstreamID, of: msgid)
        context.keep(.learn(storedKey, msgid: msgid, upstreamID: upstreamID))
    }

    /// The backend has a message that IRC has seen, under an id that is known only now, or is still to be learned.
    func learnShown(
        _ entry: OutboxEntry, _ upstreamID: ChatID?, _ lane: SendLane, _ context: RoomsContext
    ) {
        guard traits.messageIDOrigin == .server else { return }
        let msgid = shownID(of: entry, context)
        _ = lane.sent.take(msgid: msgid)
        if let upstreamID { return learn(upstreamID, of: msgid, context) }
        // What an earlier process sent was known by its words alone: who learns its id would not know what goes with it.
        lane.sent.append(SentMessages.Entry(msgid: msgid, entry: entry, writtenAt: context.now.monotonic))
    }

    /// The id under which IRC is shown a message of ours.
    func shownID(of entry: OutboxEntry, upstreamID: ChatID? = nil, _ context: RoomsContext) -> String {
        context.messageID(
            backend: settings.backend, room: settings.upstreamRoom,
            sender: traits.messageIDOrigin == .client ? entry.message.sender.id : nil,
            id: upstreamID ?? entry.message.id)
    }
}
