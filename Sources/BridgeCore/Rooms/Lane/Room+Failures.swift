import ChatModel
import WireBytes

// Messages that were given up, and their authors.
//
// With a store an author is told for certain: the line, then a PING, and only when its PONG came the message counts as told.
// Who is not here is told when they come, also by another process. Without a store it is told once, to whoever is here.

/// What was told to whom, and not yet acknowledged.
final class FailureNotices {
    /// By client, the numbers of ``FailedMessages``.
    fileprivate var shown: [ClientID: Set<UInt64>] = [:]
    fileprivate var asked: [ClientID: Set<UInt64>] = [:]

    func forget(_ client: ClientID) {
        shown[client] = nil
        asked[client] = nil
    }

    /// What the client was told it has not acknowledged.
    func isTelling(_ client: ClientID) -> Bool { shown[client] != nil || asked[client] != nil }

    fileprivate func isShown(_ number: UInt64, to client: ClientID) -> Bool {
        shown[client]?.contains(number) == true || asked[client]?.contains(number) == true
    }
}

extension Room {
    /// The client through which an IRC user said something, or the same one after it came again.
    func authorClient(_ origin: OutboxEntry.Origin, _ context: BridgeContext) -> ClientID? {
        if let client = origin.client, !context.isDurable || frontEnd.isHere(client) { return client }
        guard let author = puppets[origin.puppet]?.person else { return nil }
        return clients(of: author, context).first {
            TwinName.isSame(locals[$0]?.clientName, origin.clientName)
        }
    }

    /// Other connections of the client through which a message came: an old one that hangs, or the one that took its place.
    /// To them the message is their own, until they are known for clients of their own; see ``TwinName``.
    func twins(
        of client: ClientID?, _ origin: OutboxEntry.Origin, _ context: BridgeContext
    ) -> [ClientID] {
        guard let name = origin.clientName, let author = puppets[origin.puppet]?.person else { return [] }
        return clients(of: author, context).filter {
            $0 != client && TwinName.isSame(locals[$0]?.clientName, name)
        }
    }

    /// Whoever should hear what became of a message.
    private func authorClients(_ origin: OutboxEntry.Origin, _ context: BridgeContext) -> [ClientID] {
        if let client = origin.client, frontEnd.isHere(client) { return [client] }
        return (puppets[origin.puppet]?.person).map { clients(of: $0, context) } ?? []
    }

    // MARK: - Giving up

    func failed(_ entry: OutboxEntry, why: String, _ lane: SendLane, _ context: BridgeContext) {
        let number = recordFailure(entry, why: why, lane, context)
        let clients = context.isDurable ? authorClients(entry.origin, context) : entry.origin.client.map { [$0] } ?? []
        for client in clients {
            frontEnd.tell(
                .notDelivered(entry.origin.text, why: why), in: self, to: client,
                label: client == entry.origin.client ? entry.origin.label : nil)
            if let number {
                lane.failureNotices.shown[client, default: []].insert(number)
                askWhetherTold(client, lane, context)
            }
        }
    }

    /// The message is given up, and the author is to be told. Returns the number under which it is remembered.
    @discardableResult
    func recordFailure(_ entry: OutboxEntry, why: String, _ lane: SendLane, _ context: BridgeContext) -> UInt64? {
        context.note(
            .warn, "message-failed", "a message from IRC was not delivered: \(why)", ["room": settings.name])
        let arrived = lane.outbox.arrivedPieces(of: entry)
        lane.outbox.dropPieces(of: entry)
        guard context.isDurable, let id = entry.storedID else { return nil }
        context.keep(.outboxState(id, .failed, confirmedPieces: arrived, reason: why), about: id)
        forget(lane.outbox.failures.remember(entry, reason: why, isTold: false), context)
        return lane.outbox.failures.newest
    }

    private func forget(_ items: [FailedMessages.Item], _ context: BridgeContext) {
        for item in items {
            guard let id = item.entry.storedID else { continue }
            context.keep(.leaveOutbox(id), about: id)
            if !item.isTold {
                context.note(
                    .error, "failure-untold",
                    "an author who does not come back was not told that a message failed; it is forgotten",
                    ["room": settings.name, "nick": item.entry.origin.nick])
            }
        }
    }

    // MARK: - Certainly told

    /// Asks a client whether it got the lines about failures, unless that question is open.
    func askWhetherTold(_ client: ClientID, _ lane: SendLane, _ context: BridgeContext) {
        let notices = lane.failureNotices
        guard notices.asked[client] == nil, let numbers = notices.shown.removeValue(forKey: client) else { return }
        notices.asked[client] = numbers
        frontEnd.whenReceived(by: client) { [weak self] in
            guard let self, notices.asked.removeValue(forKey: client) != nil else { return }
            markTold(numbers, lane, context)
            askWhetherTold(client, lane, context)
        }
    }

    private func markTold(_ numbers: Set<UInt64>, _ lane: SendLane, _ context: BridgeContext) {
        let (told, forgotten) = lane.outbox.failures.told(numbers)
        for item in told {
            guard let id = item.entry.storedID else { continue }
            context.keep(
                .outboxState(id, .told, confirmedPieces: item.entry.confirmedPieces, reason: item.reason), about: id)
        }
        forget(forgotten, context)
    }

    // MARK: - Authors who come later

    /// The lanes of this room that have something to tell a client.
    func untoldLanes(_ client: ClientID, _ context: BridgeContext) -> [RoomID] {
        guard context.isDurable, let member = locals[client] else { return [] }
        var lanes = [lane]
        if let own = ownLink(of: member, context) { lanes.append(own) }
        return lanes.filter { $0.outbox.failures.untold(of: member.puppet, after: 0) != nil }.map(\.id)
    }

    /// The next line about a failure after `number`; nil when there is none left, and then the client is asked whether it
    /// got those before.
    func tellUntold(
        _ client: ClientID, _ lane: SendLane, after number: UInt64, _ context: BridgeContext
    ) -> (answer: RoomAnswer, number: UInt64)? {
        guard let member = locals[client] else { return nil }
        let notices = lane.failureNotices
        var last = number
        while let item = lane.outbox.failures.untold(of: member.puppet, after: last) {
            last = item.number
            guard !notices.isShown(item.number, to: client) else { continue }
            notices.shown[client, default: []].insert(item.number)
            return (.notDelivered(item.entry.origin.text, why: item.reason), item.number)
        }
        askWhetherTold(client, lane, context)
        return nil
    }
}
