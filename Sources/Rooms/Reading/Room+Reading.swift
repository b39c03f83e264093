import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// Delivery and read receipts to the backend.

extension Room {
    /// Sends a delivery receipt for a message, where the wire expects one.
    func reportDelivery(of message: ChatMessage, _ context: RoomsContext) {
        guard traits.reportsDelivery, link.isUp, !message.isSelf, let id = message.id,
            // A member with an own link does not use the room's.
            let member = locals.values.filter({ ownLink(of: $0, context) == nil })
                .min(by: { $0.client.rawValue < $1.client.rawValue }),
            let person = context.identities[member.person]
        else { return }
        lane.addReceipts([(upstreamPerson(person, member.puppet), id, .delivered)])
        pump(lane, context)
    }

    /// Sends an IRC user's read receipts, oldest first, in the form of the wire.
    func reportReading(
        _ entries: [RecentLog.Entry], reader: ChatPerson, over lane: SendLane, _ context: RoomsContext
    ) {
        guard lane.canSpeak || traits.readReport == .call else { return }
        var unread = entries
        if lane !== self.lane || settings.identity == .single {
            // The account has read messages that any of its users has; its own need no receipt.
            unread = unread.filter { entry in
                entry.sequence > lane.readSequence && !(entry.puppet.map { isSpeaker($0, over: lane) } ?? false)
            }
            lane.read(upTo: entries.last?.sequence ?? -1)
        }
        switch traits.readReport {
        case .none: break
        case .eachMessage:
            lane.addReceipts(unread.compactMap { entry in entry.upstreamID.map { (reader, $0, .read) } })
        case .upTo:
            guard let newest = unread.last(where: { $0.upstreamID != nil })?.upstreamID else { return }
            lane.setReceipt(reader, upTo: newest)
        case .call:
            if !unread.isEmpty { lane.callMarkRead(context) }
        }
    }

    func isSpeaker(_ puppet: ChatID, over lane: SendLane) -> Bool {
        (own.values.first { $0.puppet == puppet } ?? self.lane) === lane
    }
}
