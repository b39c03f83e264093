import BridgeTypes
import ChatModel
import Upstream
import WireBytes

// Authors of messages, and what they hear of those that were given up.

extension Room {
    /// The client through which an IRC user said something, or the same one after it came again.
    func authorClient(_ origin: OutboxEntry.Origin, _ context: RoomsContext) -> ClientID? {
        if let client = origin.client, !context.isDurable || frontEnd.isHere(client) { return client }
        guard let author = locals[puppet: origin.puppet]?.person else { return nil }
        return clients(of: author, context).first {
            TwinName.isSame(locals[$0]?.clientName, origin.clientName)
        }
    }

    /// Other connections of the client through which a message came: an old one that hangs, or the one that took its place.
    /// To them the message is their own, until they are known for clients of their own; see ``TwinName``.
    func twins(
        of client: ClientID?, _ origin: OutboxEntry.Origin, _ context: RoomsContext
    ) -> [ClientID] {
        guard let name = origin.clientName, let author = locals[puppet: origin.puppet]?.person else { return [] }
        return clients(of: author, context).filter {
            $0 != client && TwinName.isSame(locals[$0]?.clientName, name)
        }
    }

    /// Whoever should hear what became of a message.
    private func authorClients(_ origin: OutboxEntry.Origin, _ context: RoomsContext) -> [ClientID] {
        if let client = origin.client, frontEnd.isHere(client) { return [client] }
        return (locals[puppet: origin.puppet]?.person).map { clients(of: $0, context) } ?? []
    }

    // MARK: - Giving up

    func failed(_ entry: OutboxEntry, why: String, _ lane: SendLane, _ context: RoomsContext) {
        tell([lane.giveUp(entry, why: why, context)], lane, context)
    }

    func tell(_ failures: [SendLane.Failure], _ lane: SendLane, _ context: RoomsContext) {
        for failure in failures {
            let origin = failure.entry.origin
            let clients = context.isDurable ? authorClients(origin, context) : origin.client.map { [$0] } ?? []
            for client in clients {
                frontEnd.tell(
                    .notDelivered(origin.text, why: failure.why), in: self, to: client,
                    label: client == origin.client ? origin.label : nil)
                lane.told(failure, to: client, by: frontEnd, context)
            }
        }
    }

    // MARK: - Authors who come later

    /// The lanes of this room that have something to tell a client.
    package func untoldLanes(_ client: ClientID, _ context: RoomsContext) -> [RoomID] {
        guard context.isDurable, let member = locals[client] else { return [] }
        var lanes = [lane]
        if let own = ownLink(of: member, context) { lanes.append(own) }
        return lanes.filter { $0.hasUntold(of: member.puppet) }.map(\.id)
    }

    /// The next line about a failure after `number`; nil when there is none left.
    package func tellUntold(
        _ client: ClientID, _ lane: SendLane, after number: UInt64, _ context: RoomsContext
    ) -> (answer: RoomAnswer, number: UInt64)? {
        guard let member = locals[client],
            let item = lane.nextUntold(of: member.puppet, client, after: number, by: frontEnd, context)
        else { return nil }
        return (.notDelivered(item.entry.origin.text, why: item.reason), item.number)
    }
}
