import BridgeTypes
import ChatModel
import Dialects
import Identities
import Media
import Upstream
import WireBytes

// The backend's ids of relayed messages.

extension Room {
    /// Records the id of a relayed message, which IRC was shown without one.
    ///
    /// - Parameter lane: the lane that sent it.
    func learn(_ upstreamID: ChatID?, of sent: UnidentifiedMessages.Entry, _ lane: SendLane, _ context: RoomsContext) {
        learn(upstreamID, of: sent.msgid, context)
        guard let id = sent.messageID else { return }
        _ = lane.takeDelivered(id: id, context)
    }

    package func learn(_ upstreamID: ChatID?, of msgid: String, _ context: RoomsContext) {
        guard let upstreamID else { return }
        _ = seenIDs.insert(duplicateKey(upstreamID, nil))
        recent.learn(upstreamID, of: msgid)
        archive.learn(upstreamID, of: msgid)
        context.keep(.learn(storedKey, msgid: msgid, upstreamID: upstreamID))
    }

    /// The backend has a message that IRC was shown, under an id known only now, or still unknown.
    func learnShown(
        _ entry: OutboxEntry, _ upstreamID: ChatID?, _ lane: SendLane, _ context: RoomsContext
    ) {
        guard traits.messageIDOrigin == .server else { return }
        let msgid = shownID(of: entry, context)
        _ = lane.sent.take(msgid: msgid)
        if let upstreamID { return learn(upstreamID, of: msgid, context) }
        // A message of an earlier process was known by its text alone: its other properties are unknown.
        lane.sent.append(UnidentifiedMessages.Entry(msgid: msgid, entry: entry, writtenAt: context.now.monotonic))
    }

    /// The msgid of a relayed message on IRC.
    func shownID(of entry: OutboxEntry, upstreamID: ChatID? = nil, _ context: RoomsContext) -> String {
        context.messageID(
            backend: settings.backend, room: settings.upstreamRoom,
            sender: traits.messageIDOrigin == .client ? entry.message.senderID : nil,
            id: upstreamID ?? entry.message.id)
    }
}
