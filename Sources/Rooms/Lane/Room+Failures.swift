import BridgeTypes
import ChatModel
import Upstream
import WireBytes

// Authors of messages, and their failure notices.

extension Room {
    /// The client that sent a message, or the same one after a reconnect.
    func authorClient(_ origin: OutboxEntry.Origin, _ context: RoomsContext) -> ClientID? {
        if let client = origin.client, !context.isDurable || frontEnd.isHere(client) { return client }
        guard let author = locals[puppet: origin.puppet]?.person else { return nil }
        return clients(of: author, context).first {
            NumberedClientName.isSame(locals[$0]?.clientName, origin.clientName)
        }
    }

    /// Other connections of the client that sent a message: a stale one, or its successor. They see the message as
    /// their own, until they are recognised as separate clients; see ``NumberedClientName``.
    func twins(
        of client: ClientID?, _ origin: OutboxEntry.Origin, _ context: RoomsContext
    ) -> [ClientID] {
        guard let name = origin.clientName, let author = locals[puppet: origin.puppet]?.person else { return [] }
        return clients(of: author, context).filter {
            $0 != client && NumberedClientName.isSame(locals[$0]?.clientName, name)
        }
    }

    /// The clients to notify of a message's outcome.
    private func authorClients(_ origin: OutboxEntry.Origin, _ context: RoomsContext) -> [ClientID] {
        if let client = origin.client, frontEnd.isHere(client) { return [client] }
        return (locals[puppet: origin.puppet]?.person).map { clients(of: $0, context) } ?? []
    }

    // MARK: - Giving up

    func failed(_ entry: OutboxEntry, why: String, _ lane: SendLane, _ context: RoomsContext) {
        tell([lane.giveUp(entry, why: FailureReason(why), context)], lane, context)
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

    // MARK: - Absent authors

    /// The lanes of this room with pending failure notices for a client.
    package func untoldLanes(_ client: ClientID, _ context: RoomsContext) -> [RoomID] {
        guard context.isDurable, let member = locals[client] else { return [] }
        var lanes = [lane]
        if let own = ownLink(of: member, context) { lanes.append(own) }
        return lanes.filter { $0.hasUntold(of: member.puppet) }.map(\.id)
    }

    /// Sends the next failure notice after `number`; nil when there is none left.
    package func tellUntold(
        _ client: ClientID, _ lane: SendLane, after number: UInt64, _ context: RoomsContext
    ) -> (answer: RoomAnswer, number: UInt64)? {
        guard let member = locals[client],
            let item = lane.nextUntold(of: member.puppet, client, after: number, by: frontEnd, context)
        else { return nil }
        return (.notDelivered(item.entry.origin.text, why: item.reason), item.number)
    }
}
